//! What a profiler would count, from a walk along a few warps of a few blocks.
//!
//! A loop is entered once for each warp, in one of its iterations, and counts as often as it runs; so a walk costs as much as the
//! program is long, not as it runs. Blocks, warps and iterations are drawn evenly spread over all there are, the same for the
//! same program and sizes. Where every warp does the same in every iteration the counts are exact; else they are
//! estimates, as for the last blocks of sizes that tiles do not divide.
//!
//! Counts are those of the program as it is written: the simulator counts the same. Compilers do better where loads in unrolled
//! loops do not depend on all of them, and where such loops run through neighbours in shared memory: [`Reuse::AsCompiled`] counts the former once
//! and the latter by 16 bytes at a time.

mod access;
mod sample;
mod sums;

use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Cond, Index};
use crate::instr;
use crate::ir::{
    Access, Assign, AssignOp, BinaryOp, BlockLoop, Buffer, For, If, Launch, Mode, On, Own, Program, Range,
    Role, Span, Stmt, Sync, Tasks, Value as Data,
};
use crate::sym::Sym;
use std::collections::HashMap;
use std::rc::Rc;

use self::sums::{add, add_of, joined};
use super::lanes::{Lanes, Mask, Value, Values, WARP};
use super::operations;
use super::requests::Tally;
use super::sites::{Record, Recorder};

/// Sums over all blocks of a launch. A request is one instruction of a warp with at least one active lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Blocks.
    pub blocks: f64,
    /// Threads of a block.
    pub threads: i64,
    /// Bytes of shared memory of a block.
    pub shared_bytes: i64,
    /// Loads from device memory, those of copies to shared memory too.
    pub global_load_requests: f64,
    /// Their 32-byte sectors.
    pub global_load_sectors: f64,
    /// Stores to device memory, and atomic additions.
    pub global_store_requests: f64,
    /// Their sectors.
    pub global_store_sectors: f64,
    /// Loads from shared memory.
    pub shared_load_requests: f64,
    /// Their wavefronts.
    pub shared_load_wavefronts: f64,
    /// Stores to shared memory, those of copies too.
    pub shared_store_requests: f64,
    /// Their wavefronts.
    pub shared_store_wavefronts: f64,
    /// Real multiply-adds of threads.
    pub fma: f64,
    /// Real multiply-adds of matrix units, by the type that they multiply.
    pub products: Vec<(DType, f64)>,
    /// Those of instructions of 8 rows among them.
    pub small_products: f64,
    /// Those of instructions that four warps execute together among them.
    pub warpgroup_products: f64,
    /// Instructions of warps for them: those that multiply, and those that take numbers apart.
    pub matrix: f64,
    /// Instructions of warps by which threads multiply and add, or do other arithmetic on data.
    pub arithmetic: f64,
    /// Barriers met, one for each range of threads that meets.
    pub barriers: f64,
    /// Distinct 128-byte lines of requests to device memory, loads and stores together: lookups in the first-level cache.
    pub global_lines: f64,
    /// Those of stores alone.
    pub global_store_lines: f64,
    /// Sectors of requests to device memory by buffer, loads and stores together.
    pub sectors: Vec<(String, f64)>,
    /// Distinct lines of requests by buffer likewise.
    pub lines: Vec<(String, f64)>,
}

impl Counts {
    /// Those of two launches together: blocks, threads and shared memory are those of the one with more multiply-adds.
    #[must_use]
    pub fn and(&self, other: &Counts) -> Counts {
        let more = if self.multiply_adds() >= other.multiply_adds() { self } else { other };
        Counts {
            blocks: more.blocks,
            threads: more.threads,
            shared_bytes: more.shared_bytes,
            global_load_requests: self.global_load_requests + other.global_load_requests,
            global_load_sectors: self.global_load_sectors + other.global_load_sectors,
            global_store_requests: self.global_store_requests + other.global_store_requests,
            global_store_sectors: self.global_store_sectors + other.global_store_sectors,
            shared_load_requests: self.shared_load_requests + other.shared_load_requests,
            shared_load_wavefronts: self.shared_load_wavefronts + other.shared_load_wavefronts,
            shared_store_requests: self.shared_store_requests + other.shared_store_requests,
            shared_store_wavefronts: self.shared_store_wavefronts + other.shared_store_wavefronts,
            fma: self.fma + other.fma,
            products: joined(&self.products, &other.products),
            arithmetic: self.arithmetic + other.arithmetic,
            small_products: self.small_products + other.small_products,
            warpgroup_products: self.warpgroup_products + other.warpgroup_products,
            matrix: self.matrix + other.matrix,
            barriers: self.barriers + other.barriers,
            global_lines: self.global_lines + other.global_lines,
            global_store_lines: self.global_store_lines + other.global_store_lines,
            sectors: joined(&self.sectors, &other.sectors),
            lines: joined(&self.lines, &other.lines),
        }
    }

    /// Real multiply-adds, of threads and matrix units.
    pub fn multiply_adds(&self) -> f64 {
        self.fma + self.products.iter().map(|(_, n)| n).sum::<f64>()
    }
}

/// How often loads in unrolled loops count that do not depend on all of their variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// As often as the loops run.
    AsWritten,
    /// Once for all iterations between which nothing changes, and neighbours in shared memory at once.
    AsCompiled,
}

/// Blocks that are walked, at most.
const BLOCKS: i64 = 4;

/// What each launch of a lowered program does, given what sizes, strides and flags are; a flag is 0 or 1, and what has no value
/// is 0.
///
/// # Errors
/// Those of [`Launch::of`].
pub fn launches(
    program: &Program,
    value: &dyn Fn(&Sym) -> Option<i64>,
    reuse: Reuse,
) -> Result<Vec<Counts>, Diagnosis> {
    let mut walk = Walk::new(program, value, reuse);
    Ok(super::made(&program.body, value)?.iter().map(|launch| walk.launch(launch)).collect())
}

/// What each access of each launch asks for, on the same walk.
pub(super) fn recorded(
    program: &Program,
    value: &dyn Fn(&Sym) -> Option<i64>,
    reuse: Reuse,
) -> Result<Vec<Vec<Record>>, Diagnosis> {
    let mut walk = Walk::new(program, value, reuse);
    let mut out = Vec::new();
    for launch in &super::made(&program.body, value)? {
        walk.recorder = Some(Recorder::default());
        walk.launch(launch);
        out.push(walk.recorder.take().unwrap_or_default().found);
    }
    Ok(out)
}

struct Walk {
    values: Values,
    buffers: HashMap<Sym, Rc<Buffer>>,
    reuse: Reuse,
    tally: Tally,
    /// The number of each lane's thread in its block.
    threads: Lanes,
    /// The first thread of the range that executes what is at hand, for each lane; and the size of these ranges.
    base: Lanes,
    size: i64,
    /// The lanes that execute it.
    mask: Mask,
    /// How many warps in how many iterations this one stands for.
    weight: f64,
    /// The roles of the block.
    roles: Vec<Role>,
    /// The unrolled loops around this place that nothing else stands between, and how often they run.
    unrolled: Vec<(Sym, f64)>,
    /// The loops around this place of which one iteration was drawn.
    serial: Vec<Drawn>,
    /// The vector loop around this place, and its width.
    vector: Option<(Sym, i64)>,
    /// How many iterations have been drawn.
    drawn: u64,
    counts: Counts,
    /// What each access asks for, where that is wanted.
    recorder: Option<Recorder>,
}

/// The lanes of which something holds.
fn lanes_where(holds: impl Fn(usize) -> bool) -> Mask {
    (0..WARP).fold(0, |mask, lane| mask | Mask::from(holds(lane)) << lane)
}

/// A loop of which one iteration stands for all.
#[derive(Clone)]
struct Drawn {
    var: Sym,
    first: Value,
    step: Value,
    count: i64,
}

impl Drawn {
    /// The variable in an iteration.
    fn at(&self, iteration: i64) -> Value {
        self.first.zip(&self.step, |first, step| first + step * iteration)
    }
}

impl Walk {
    fn new(program: &Program, value: &dyn Fn(&Sym) -> Option<i64>, reuse: Reuse) -> Walk {
        let mut values = Values::default();
        let strides = program.tensors().filter_map(|t| t.row_stride.as_ref());
        for sym in program.params.iter().map(|p| &p.sym).chain(strides) {
            values.set(sym, Value::Same(value(sym).unwrap_or(0)));
        }
        Walk {
            values,
            buffers: program.buffers().into_iter().map(|(sym, buffer)| (sym, Rc::new(buffer))).collect(),
            reuse,
            tally: Tally::default(),
            threads: std::array::from_fn(|l| l as i64),
            base: [0; WARP],
            size: 0,
            mask: 0,
            weight: 0.0,
            roles: Vec::new(),
            unrolled: Vec::new(),
            serial: Vec::new(),
            vector: None,
            drawn: 0,
            counts: Counts::default(),
            recorder: None,
        }
    }

    fn launch(&mut self, launch: &Launch) -> Counts {
        let extents: Vec<i64> =
            launch.blocks.iter().map(|b| self.values.index(&b.extent).of(0).max(0)).collect();
        let blocks: f64 = extents.iter().map(|e| *e as f64).product();
        self.counts = Counts {
            blocks,
            threads: launch.threads,
            shared_bytes: instr::shared_bytes(launch),
            ..Counts::default()
        };
        self.roles.clone_from(&launch.roles);
        if blocks >= 1.0 {
            let walked_blocks = (blocks as i64).clamp(1, BLOCKS);
            let warps = sample::of_warps(launch);
            let walk = |walk: &mut Walk, block: i64, warp: i64, weight: f64| {
                walk.at_block(&launch.blocks, &extents, (block as f64 + 0.5) / walked_blocks as f64);
                walk.threads = std::array::from_fn(|l| WARP as i64 * warp + l as i64);
                (walk.base, walk.size, walk.mask) = ([0; WARP], launch.threads, Mask::MAX);
                walk.weight = weight;
                walk.list(launch.body);
            };
            // Where warps far apart do the same, all do.
            let nothing = self.counts.clone();
            let (first, last, middle) = (warps[0].0, warps[warps.len() - 1].0, warps[warps.len() / 2].0);
            let few = [(0, first), (walked_blocks - 1, last), (walked_blocks / 2, middle)];
            let all: f64 = warps.iter().map(|(_, stands_for)| stands_for).sum();
            let found = few.map(|(block, warp)| {
                self.begin_with(&nothing);
                walk(self, block, warp, blocks * all);
                self.counts.clone()
            });
            if found.iter().any(|counts| *counts != found[0]) {
                self.begin_with(&nothing);
                for block in 0..walked_blocks {
                    for (warp, stands_for) in &warps {
                        walk(self, block, *warp, blocks / walked_blocks as f64 * stands_for);
                    }
                }
            }
        }
        std::mem::take(&mut self.counts)
    }

    /// Forgets what was counted and noted.
    fn begin_with(&mut self, counts: &Counts) {
        self.counts.clone_from(counts);
        self.recorder.iter_mut().for_each(|recorder| *recorder = Recorder::default());
    }

    /// Sets the variables of the block that stands at this part of all.
    fn at_block(&mut self, blocks: &[BlockLoop], extents: &[i64], part: f64) {
        let all: f64 = extents.iter().map(|e| *e as f64).product();
        let mut number = (part * all) as i64;
        for (block, extent) in blocks.iter().zip(extents).rev() {
            self.values.set(&block.var, Value::Same(number % extent));
            number /= extent;
        }
    }

    /// The next of the numbers below `count`, spread evenly: those of the golden ratio.
    fn draw(&mut self, count: i64) -> i64 {
        self.drawn += 1;
        let part = (self.drawn as f64 * 0.618_033_988_749_895).fract();
        ((part * count as f64) as i64).clamp(0, (count - 1).max(0))
    }

    fn list(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    /// Walks a body in which other lanes are active, or other ranges execute, or what is done counts more often.
    fn inside(&mut self, body: &[Stmt], mask: Mask, weight: f64) {
        if mask == 0 || weight <= 0.0 {
            return;
        }
        let before = (self.mask, self.weight, self.base, self.size);
        (self.mask, self.weight) = (mask, weight);
        self.list(body);
        (self.mask, self.weight, self.base, self.size) = before;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        if let Some(recorder) = &mut self.recorder {
            recorder.at = (std::ptr::from_ref(stmt).addr(), 0);
        }
        match stmt {
            Stmt::For(l) => self.repeated(l),
            Stmt::Tasks(t) => self.tasks(t),
            Stmt::Own(o) => self.own(o),
            Stmt::If(If { cond, then, otherwise }) => self.in_parts(cond, &mut |walk, holds| {
                walk.inside(then, walk.mask & holds, walk.weight);
                walk.inside(otherwise, walk.mask & !holds, walk.weight);
            }),
            Stmt::Let(sym, index) => {
                let value = self.values.index(index);
                self.values.set(sym, value);
            }
            Stmt::On(on) => self.role(on),
            Stmt::Assign(a) => self.assign(a),
            Stmt::Instruction(i) => self.instruction(i),
            Stmt::Sync(Sync::Barrier) => {
                self.counts.barriers += self.weight * WARP as f64 / self.size.max(WARP as i64) as f64;
            }
            Stmt::Alloc(_)
            | Stmt::AllocRing(_)
            | Stmt::Roles(_)
            | Stmt::Sync(_)
            | Stmt::Arrive { .. }
            | Stmt::Await { .. } => {}
        }
    }

    /// The threads of a role are numbered from its first.
    fn role(&mut self, on: &On) {
        let Some(role) = self.roles.iter().find(|r| r.sym == on.role).cloned() else { return };
        let mask = lanes_where(|lane| (role.lo..role.hi).contains(&self.threads[lane]));
        let (base, size) = ([role.lo; WARP], role.hi - role.lo);
        let outside = (self.base, self.size);
        (self.base, self.size) = (base, size);
        self.inside(&on.body, self.mask & mask, self.weight);
        (self.base, self.size) = outside;
    }

    fn repeated(&mut self, l: &For) {
        if let Some((count, pitch)) = l.threads() {
            return self.shared_out(l, count, pitch);
        }
        let (first, count, step) = self.iterations(&l.range);
        let most = (0..WARP).filter(|lane| self.mask >> lane & 1 == 1).map(|lane| count.of(lane)).max();
        let Some(most) = most.filter(|n| *n > 0) else { return };
        if l.mode == Mode::Vector {
            self.values.set(&l.var, first);
            self.vector = Some((l.var.clone(), most));
            self.list(&l.body);
            self.vector = None;
            return;
        }
        let at = self.draw(most);
        let value = match &l.range {
            Range::List(values) => Value::Same(values.get(at as usize).copied().unwrap_or(0)),
            _ => first.zip(&step, |first, step| first + step * at),
        };
        self.values.set(&l.var, value);
        if let Some(ordinal) = &l.counting {
            self.values.set(ordinal, Value::Same(at));
        }
        let runs = lanes_where(|lane| at < count.of(lane));
        // Compilers unroll loops that run a constant number of times, and few.
        let written_out =
            l.mode == Mode::Unroll || l.range.constant_trip_count().is_some_and(|n| n <= SHORT_LOOP);
        let weight = self.weight * most as f64;
        if !matches!(l.range, Range::List(_)) {
            self.serial.push(Drawn { var: l.var.clone(), first, step, count: most });
        }
        let loops = self.serial.len();
        if written_out {
            self.unrolled.push((l.var.clone(), most as f64));
            self.inside(&l.body, self.mask & runs, weight);
            self.unrolled.pop();
        } else {
            let unrolled = std::mem::take(&mut self.unrolled);
            self.inside(&l.body, self.mask & runs, weight);
            self.unrolled = unrolled;
        }
        self.serial.truncate(if matches!(l.range, Range::List(_)) { loops } else { loops - 1 });
    }

    /// The first value of a loop's variable, how many there are, and how far they are apart.
    fn iterations(&self, range: &Range) -> (Value, Value, Value) {
        match range {
            Range::Span { lo, hi, step } => {
                let [lo, hi, step] = [lo, hi, step].map(|i| self.values.index(i));
                let count = hi.zip(&lo, |hi, lo| hi - lo).zip(&step, |all, step| {
                    let step = step.max(1);
                    (all + step - 1).div_euclid(step)
                });
                (lo, count, step)
            }
            Range::List(values) => (Value::Same(0), Value::Same(values.len() as i64), Value::Same(1)),
            Range::Part { index, parts, lo, hi } => {
                let [index, parts, lo, hi] = [index, parts, lo, hi].map(|i| self.values.index(i).of(0));
                let begin = |part: i64| lo + (hi - lo).max(0) * part / parts.max(1);
                (Value::Same(begin(index)), Value::Same(begin(index + 1) - begin(index)), Value::Same(1))
            }
        }
    }

    /// Threads share out a loop: each of `count` ranges of `pitch` has one iteration.
    fn shared_out(&mut self, l: &For, count: i64, pitch: i64) {
        let value: Lanes = std::array::from_fn(|lane| (self.threads[lane] - self.base[lane]) / pitch.max(1));
        let mask =
            (0..WARP).fold(0, |mask, lane| mask | Mask::from((0..count).contains(&value[lane])) << lane);
        self.values.set(&l.var, Value::Each(value));
        let before = (self.base, self.size);
        self.base = std::array::from_fn(|lane| self.base[lane] + value[lane] * pitch);
        self.size = pitch;
        let unrolled = std::mem::take(&mut self.unrolled);
        if self.mask & mask != 0 {
            let outside = (self.mask, self.weight);
            self.mask &= mask;
            self.list(&l.body);
            (self.mask, self.weight) = outside;
        }
        self.unrolled = unrolled;
        (self.base, self.size) = before;
    }

    fn tasks(&mut self, t: &Tasks) {
        let extents: Vec<i64> = t.extents.iter().map(|e| self.values.index(e).of(0).max(0)).collect();
        let (start, stride) = (self.values.index(&t.start).of(0), self.values.index(&t.stride).of(0).max(1));
        let all: i64 = extents.iter().product();
        let count = (all - start + stride - 1).div_euclid(stride);
        if count <= 0 {
            return;
        }
        let mut point = start + self.draw(count) * stride;
        for (var, extent) in t.vars.iter().zip(&extents).rev() {
            self.values.set(var, Value::Same(point % extent));
            point /= extent;
        }
        let unrolled = std::mem::take(&mut self.unrolled);
        self.inside(&t.body, self.mask, self.weight * count as f64);
        self.unrolled = unrolled;
    }

    /// Each thread visits the elements that it owns: those of its registers of a fragment, or its part of a dimension that is
    /// spread over threads.
    fn own(&mut self, o: &Own) {
        let Some(buffer) = self.buffers.get(&o.window.buffer).cloned() else { return };
        let extents: Vec<i64> = o.extents(&buffer).iter().map(|e| self.values.index(e).of(0)).collect();
        let mut times = 1;
        if let (Some(fragment), [.., rows, columns]) = (buffer.fragment, &extents[..])
            && let Some(registers) = fragment.registers(*rows, *columns)
        {
            let runs = (registers / o.run.max(1)).max(1);
            let register = Index::from(self.draw(runs) * o.run.max(1));
            let place: [(i64, i64); WARP] = std::array::from_fn(|lane| {
                let thread = (self.threads[lane] - self.base[lane]).rem_euclid(fragment.threads);
                let (row, column) = (fragment.place)(&thread.into(), &register);
                (row.as_constant().unwrap_or(0), column.as_constant().unwrap_or(0))
            });
            if let [.., row, column] = &o.vars[..] {
                self.values.set(row, Value::Each(place.map(|p| p.0)));
                self.values.set(column, Value::Each(place.map(|p| p.1)));
            }
            times = runs;
        } else {
            let open =
                o.window.dims.iter().zip(&buffer.dims).filter(|(span, _)| !matches!(span, Span::At(_)));
            let pitches: Vec<Option<i64>> = open.map(|(_, dim)| dim.pitch).collect();
            for (((var, extent), pitch), at) in o.vars.iter().zip(&extents).zip(pitches).zip(0..) {
                let step = if at + 1 == o.vars.len() { o.run.max(1) } else { 1 };
                let value = if let Some(pitch) = pitch {
                    let of = |lane: usize| {
                        (self.threads[lane] - self.base[lane]) / pitch.max(1) % (*extent).max(1)
                    };
                    Value::Each(std::array::from_fn(of))
                } else {
                    times *= extent / step;
                    Value::Same(self.draw(extent / step) * step)
                };
                self.values.set(var, value);
            }
        }
        self.inside(&o.body, self.mask, self.weight * times as f64);
    }

    fn assign(&mut self, a: &Assign) {
        self.data(&a.value);
        let dtype = self.buffers.get(&a.target.buffer).map(|b| b.dtype);
        let wide = self.width(&a.target.index) as f64;
        let lanes = f64::from(self.mask.count_ones());
        let real = dtype.map_or(1.0, operations::real);
        let adds_a_product = a.op != AssignOp::Store && matches!(&a.value, Data::Binary(BinaryOp::Mul, ..));
        if adds_a_product {
            self.counts.fma += self.weight * lanes * wide * real;
        }
        self.counts.arithmetic += self.weight * wide * operations::of_assignment(a, dtype);
        if a.op != AssignOp::Store && !a.atomic {
            self.access(&a.target, false);
        }
        self.access(&a.target, true);
    }

    /// Counts the loads of a value.
    fn data(&mut self, value: &Data) {
        match value {
            Data::Const(_) | Data::Scalar(_) => {}
            Data::Load(access) => self.access(access, false),
            Data::Unary(_, a) | Data::Cast(_, a) => self.data(a),
            Data::Binary(_, a, b) => {
                self.data(a);
                self.data(b);
            }
            // Arms that load the same, as a number or its negative, are one load.
            Data::Select(_, a, b) if accesses(a) == accesses(b) => self.data(a),
            Data::Select(cond, a, b) => self.in_parts(cond, &mut |walk, holds| {
                let all = walk.mask;
                for (arm, lanes) in [(a, all & holds), (b, all & !holds)] {
                    walk.mask = lanes;
                    if lanes != 0 {
                        walk.data(arm);
                    }
                }
                walk.mask = all;
            }),
        }
    }

    /// Does something with the lanes in which a condition holds. Where that changes in the course of the innermost loop that the condition
    /// mentions, as for all but the last iteration, it is done once for the iterations before the change and once for those
    /// after it; a condition changes once at most, as far as this knows.
    fn in_parts(&mut self, cond: &Cond, f: &mut dyn FnMut(&mut Walk, Mask)) {
        let lanes = |walk: &Walk| walk.values.cond(cond) & walk.mask;
        let Some(drawn) = self.serial.iter().rev().find(|d| cond.mentions(&d.var)).cloned() else {
            return f(self, self.values.cond(cond));
        };
        let here = self.values.index(&Index::var(&drawn.var));
        let at = |walk: &mut Walk, iteration: i64| {
            walk.values.set(&drawn.var, drawn.at(iteration));
            lanes(walk)
        };
        let (first, last) = (at(self, 0), at(self, drawn.count - 1));
        if first == last {
            self.values.set(&drawn.var, here);
            return f(self, self.values.cond(cond));
        }
        let (mut before, mut after) = (0, drawn.count - 1);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if at(self, middle) == first { before = middle } else { after = middle }
        }
        let weight = self.weight;
        for (from, to) in [(0, after), (after, drawn.count)] {
            let iteration = from + self.draw(to - from);
            self.values.set(&drawn.var, drawn.at(iteration));
            self.weight = weight * (to - from) as f64 / drawn.count as f64;
            f(self, self.values.cond(cond));
        }
        self.weight = weight;
        self.values.set(&drawn.var, here);
    }
}

/// What a value loads, in order.
fn accesses(value: &Data) -> Vec<&Access> {
    let mut found = Vec::new();
    value.for_each_access(&mut |access| found.push(access));
    found
}

/// Loops that run no more often, a constant number of times, are unrolled by compilers anyway.
const SHORT_LOOP: i64 = 16;
