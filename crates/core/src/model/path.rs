//! What one warp of a block goes through from its first statement to its last, if the block were alone on its multiprocessor: how
//! long it works, and how often and how long it waits for memory with nothing else to do.
//!
//! A load into registers is waited for where the registers are read; a copy into shared memory at the barrier that follows, or where
//! its group or its mbarrier is waited for. What is done in between hides the wait. Loops that compilers write out issue all their
//! loads before they use the first. A loop that is not written out is gone through twice, and its second iteration stands for all
//! that follow, so that what one iteration asks for and another uses is found.

use std::collections::HashMap;

use super::lanes::{Value, Values};
use super::operations;
use crate::dtype::DType;
use crate::index::Index;
use crate::instr::{Behaviour, Completion, by_name};
use crate::ir::{
    Access, Assign, AssignOp, Buffer, For, Instruction, Launch, Mode, Operand, Own, Range, Ring, Role, Space,
    Stmt, Sync, Tasks,
};
use crate::sym::Sym;

/// How fast a multiprocessor does what a warp asks for while only its own block is there.
#[derive(Clone, Copy)]
pub struct Pace<'a> {
    /// Cycles from a load of device memory to its value.
    pub memory: f64,
    /// Multiply-adds of threads in a cycle of the multiprocessor, by the type that they multiply.
    pub threads: &'a dyn Fn(DType) -> f64,
    /// Multiply-adds of matrix units likewise, by instructions of one warp (true) or of four.
    pub matrix_units: &'a dyn Fn(DType, bool) -> f64,
    /// How many times as long products of 8 rows take.
    pub small: f64,
    /// Warps of the block.
    pub warps: f64,
}

/// The way of a warp through its block. Cycles are those of a block that is alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// Cycles of multiply-adds and other arithmetic.
    pub work: f64,
    /// Waits for device memory, each as long as nothing hides it: 1 is a whole latency.
    pub memory_waits: f64,
    /// Requests of a warp that take elements from device memory to shared memory with nothing else to do.
    pub copies: f64,
    /// Barriers.
    pub barriers: f64,
    /// Iterations of loops that are not written out.
    pub iterations: f64,
    /// Loads from shared memory whose values are used before anything else can be done.
    pub loads: f64,
    /// Cycles that chains of operations, each on the result of the one before, take longer than the warp's operations take to issue.
    pub chains: f64,
}

impl Path {
    fn length(&self, pace: &Pace<'_>) -> f64 {
        self.work + self.memory_waits * pace.memory
    }
}

/// The path through a launch whose sizes, strides and flags are set in `values`. Of roles it is the longest one's.
pub fn of_launch(
    launch: &Launch<'_>,
    values: Values,
    buffers: &HashMap<Sym, Buffer>,
    pace: &Pace<'_>,
) -> Path {
    let mut walk = Walk {
        values,
        buffers,
        pace: *pace,
        rings: launch.shared.rings.iter().map(|(ring, _)| (ring.sym.clone(), ring.clone())).collect(),
        role: None,
        state: State::default(),
        weight: 1.0,
        written_out: 1.0,
        width: 1.0,
        loops: Vec::new(),
        named: 0,
    };
    for block in &launch.blocks {
        walk.values.set(&block.var, Value::Same(0));
    }
    let roles: Vec<Option<&Role>> = match &launch.roles[..] {
        [] => vec![None],
        roles => roles.iter().map(Some).collect(),
    };
    let mut longest = Path::default();
    for role in roles {
        walk.role = role.map(|r| r.sym.clone());
        walk.state = State::default();
        walk.list(launch.body);
        walk.store_arrives();
        if walk.state.path.length(pace) >= longest.length(pace) {
            longest = walk.state.path;
        }
    }
    longest
}

/// What is on its way, and how far the warp has come.
#[derive(Clone, Default)]
struct State {
    /// Cycles since the start.
    now: f64,
    path: Path,
    /// Register buffers whose loads are on their way, with the time at which they were asked for.
    loads: HashMap<Sym, f64>,
    /// Register buffers whose loads from shared memory are on their way, with the loops that were written out around them.
    near: HashMap<Sym, Vec<usize>>,
    /// When the oldest of the loads was asked for that go to shared memory, or into arithmetic, at once.
    passing: Option<f64>,
    /// When the copies of each group were asked for, the last one open.
    groups: Vec<f64>,
    open: Option<f64>,
    /// When each ring was waited for last.
    awaited: HashMap<Sym, f64>,
}

impl State {
    /// Time goes on, and what is on its way was asked for as long ago as it would be after all iterations that are left out.
    fn shift(&mut self, cycles: f64) {
        self.now += cycles;
        self.loads.values_mut().chain(&mut self.groups).for_each(|at| *at += cycles);
        self.awaited.values_mut().for_each(|at| *at += cycles);
        self.passing.iter_mut().chain(&mut self.open).for_each(|at| *at += cycles);
    }
}

struct Walk<'a> {
    values: Values,
    buffers: &'a HashMap<Sym, Buffer>,
    pace: Pace<'a>,
    rings: HashMap<Sym, Ring>,
    /// The role that is followed.
    role: Option<Sym>,
    state: State,
    /// How many iterations this one stands for.
    weight: f64,
    /// How many times what is done here is written out side by side.
    written_out: f64,
    /// How many neighbours one access takes.
    width: f64,
    /// The loops that are written out around what is done here, the outermost first.
    loops: Vec<WrittenOut>,
    /// How many loops were written out so far.
    named: usize,
}

/// A loop that is written out.
#[derive(Clone)]
struct WrittenOut {
    name: usize,
    vars: Vec<Sym>,
    count: f64,
}

/// Loops that run no more often, a constant number of times, are written out by compilers.
const SHORT_LOOP: i64 = 16;
/// How many iterations of an innermost loop compilers put side by side where nothing forbids it, and how many words of loads from device
/// memory they keep on their way for it.
const SIDE_BY_SIDE: f64 = 16.0;
const WORDS: f64 = 32.0;
/// Schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;
/// How many times the time between two of its instructions a thread's operation takes.
const OPERATION: f64 = 4.0;
/// Cycles of an instruction of matrix units.
const MATRIX_OPERATION: f64 = 33.0;
/// Loads that a warp has on their way at a time whose values are added up one after the other: NVRTC 13.0 asks for 4 to 6 of 204 before
/// it adds the first in a second pass of `tsmttsm`, and of such passes, few blocks that read much, the times on an H100 say 2 to 4. Not fitted.
const CHAINED: f64 = 3.0;
/// Groups of copies that are remembered.
const GROUPS: usize = 64;

impl Walk<'_> {
    fn list(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(l) => self.repeated(l),
            Stmt::Tasks(t) => self.tasks(t),
            Stmt::Own(o) => self.own(o),
            Stmt::If(i) => {
                let holds = self.values.cond(&i.cond) & 1 == 1;
                self.list(if holds { &i.then } else { &i.otherwise });
            }
            Stmt::Let(sym, index) => {
                let value = self.values.index(index);
                self.values.set(sym, value);
            }
            Stmt::On(on) => {
                if self.role.as_ref().is_none_or(|role| *role == on.role) {
                    self.list(&on.body);
                }
            }
            Stmt::Assign(a) => self.assign(a),
            Stmt::Instruction(i) => self.instruction(i),
            Stmt::Sync(sync) => self.sync(*sync),
            Stmt::Await { ring, .. } => self.awaits(ring),
            Stmt::Alloc(_) | Stmt::AllocRing(_) | Stmt::Roles(_) | Stmt::Arrive { .. } => {}
        }
    }

    /// Waits for what was asked for at that time.
    fn wait(&mut self, asked: f64) {
        let rest = (asked + self.pace.memory - self.state.now).clamp(0.0, self.pace.memory);
        self.state.now += rest;
        self.state.path.memory_waits += self.weight * rest / self.pace.memory;
    }

    /// Loads that go to shared memory at once have to be there before others may read it.
    fn store_arrives(&mut self) {
        if let Some(asked) = self.state.passing.take() {
            self.wait(asked);
        }
    }

    fn sync(&mut self, sync: Sync) {
        match sync {
            Sync::Barrier => {
                self.store_arrives();
                self.state.path.barriers += self.weight;
            }
            Sync::CpCommit => {
                let asked = self.state.open.take().unwrap_or(f64::NEG_INFINITY);
                self.state.groups.push(asked);
                if self.state.groups.len() > GROUPS {
                    self.state.groups.remove(0);
                }
            }
            Sync::CpWait(but) => {
                let done = self.state.groups.len().saturating_sub(usize::try_from(but).unwrap_or(0));
                let last = self.state.groups.drain(..done).fold(f64::NEG_INFINITY, f64::max);
                self.wait(last);
            }
            _ => {}
        }
    }

    /// A ring of `depth` slots is filled `depth - 1` steps ahead; its first step is waited for.
    fn awaits(&mut self, ring: &Sym) {
        let Some(depth) = self.rings.get(ring).map(|r| r.depth) else { return };
        let now = self.state.now;
        let before = self.state.awaited.insert(ring.clone(), now);
        let ahead = before.map_or(0.0, |before| (now - before) * (depth - 1) as f64);
        self.wait(now - ahead);
        let now = self.state.now;
        self.state.awaited.insert(ring.clone(), now);
    }

    fn repeated(&mut self, l: &For) {
        if l.threads().is_some() {
            self.values.set(&l.var, Value::Same(0));
            return self.list(&l.body);
        }
        if l.mode == Mode::Vector {
            self.values.set(&l.var, Value::Same(0));
            self.width = l.range.constant_trip_count().unwrap_or(1) as f64;
            self.side_by_side(std::slice::from_ref(&l.var), &l.body, self.width);
            self.width = 1.0;
            return;
        }
        let (first, count, step) = self.iterations(&l.range);
        if count <= 0 {
            return;
        }
        let short = l.range.constant_trip_count().is_some_and(|n| n <= SHORT_LOOP);
        let at = |iteration: i64| first + step * iteration;
        if l.mode == Mode::Unroll || short {
            self.values.set(&l.var, Value::Same(at(0)));
            return self.side_by_side(std::slice::from_ref(&l.var), &l.body, count as f64);
        }
        let set = |walk: &mut Walk<'_>, iteration: i64| {
            walk.values.set(&l.var, Value::Same(at(iteration)));
            l.counting.iter().for_each(|c| walk.values.set(c, Value::Same(iteration)));
        };
        self.serial(std::slice::from_ref(&l.var), &l.body, count as f64, &set);
    }

    fn tasks(&mut self, t: &Tasks) {
        let extents: Vec<i64> = t.extents.iter().map(|e| self.number(e).max(0)).collect();
        let (start, stride) = (self.number(&t.start), self.number(&t.stride).max(1));
        let all: i64 = extents.iter().product();
        let count = (all - start + stride - 1).div_euclid(stride);
        if count <= 0 {
            return;
        }
        let set = |walk: &mut Walk<'_>, iteration: i64| {
            let mut point = start + iteration * stride;
            for (var, extent) in t.vars.iter().zip(&extents).rev() {
                walk.values.set(var, Value::Same(point % extent));
                point /= extent;
            }
        };
        self.serial(&t.vars, &t.body, count as f64, &set);
    }

    /// Iterations side by side: their loads are all asked for before the first is used.
    fn side_by_side(&mut self, vars: &[Sym], body: &[Stmt], count: f64) {
        self.written_out *= count;
        self.named += 1;
        self.loops.push(WrittenOut { name: self.named, vars: vars.to_vec(), count });
        self.list(body);
        self.loops.pop();
        self.written_out /= count;
    }

    /// Iterations one after the other: the first, and the second for all others.
    fn serial(&mut self, vars: &[Sym], body: &[Stmt], count: f64, set: &dyn Fn(&mut Self, i64)) {
        let (weight, written_out) = (self.weight, self.written_out);
        let loops = std::mem::take(&mut self.loops);
        let together = if is_plain(body) {
            let most = (WORDS / self.words(body).max(1.0)).floor().clamp(1.0, SIDE_BY_SIDE);
            most.min(count)
        } else {
            1.0
        };
        let rounds = written_out * count / together;
        self.written_out = together;
        self.named += 1;
        self.loops.push(WrittenOut { name: self.named, vars: vars.to_vec(), count: together });
        set(self, 0);
        self.list(body);
        self.turn();
        self.state.path.iterations += weight;
        if rounds > 1.0 {
            let second = ((count / together).ceil() as i64 - 1).clamp(0, 1) * together as i64;
            set(self, second);
            self.weight = weight * (rounds - 1.0);
            let before = self.state.now;
            self.list(body);
            self.turn();
            self.state.path.iterations += self.weight;
            let once = self.state.now - before;
            self.state.shift(once * (rounds - 2.0).max(0.0));
        }
        (self.weight, self.written_out) = (weight, written_out);
        self.loops = loops;
    }

    /// Words of 4 bytes that a body loads from device memory.
    fn words(&self, body: &[Stmt]) -> f64 {
        let of = |stmt: &Stmt| match stmt {
            Stmt::For(l) if l.threads().is_some() => self.words(&l.body),
            Stmt::For(l) => l.range.constant_trip_count().unwrap_or(1) as f64 * self.words(&l.body),
            Stmt::If(i) => self.words(&i.then).max(self.words(&i.otherwise)),
            Stmt::Own(o) => self.words(&o.body),
            Stmt::Assign(a) => {
                let mut words = 0.0;
                a.value.for_each_access(&mut |access| {
                    let buffer = self.buffer(access).filter(|b| b.is_global());
                    words += buffer.map_or(0.0, |b| b.element_bytes() as f64 / 4.0);
                });
                words
            }
            _ => 0.0,
        };
        body.iter().map(of).sum()
    }

    /// The end of an iteration: what passes through it into arithmetic has been waited for.
    fn turn(&mut self) {
        self.store_arrives();
    }

    /// The first value of a loop's variable, how many there are, and how far they are apart.
    fn iterations(&self, range: &Range) -> (i64, i64, i64) {
        match range {
            Range::Span { lo, hi, step } => {
                let [lo, hi, step] = [lo, hi, step].map(|i| self.number(i));
                let step = step.max(1);
                (lo, (hi - lo + step - 1).div_euclid(step), step)
            }
            Range::List(values) => (values.first().copied().unwrap_or(0), values.len() as i64, 0),
            Range::Part { index, parts, lo, hi } => {
                let [index, parts, lo, hi] = [index, parts, lo, hi].map(|i| self.number(i));
                let begin = |part: i64| lo + (hi - lo).max(0) * part / parts.max(1);
                (begin(index), begin(index + 1) - begin(index), 1)
            }
        }
    }

    fn number(&self, index: &Index) -> i64 {
        self.values.index(index).of(0)
    }

    /// Each thread visits the elements that it has registers for.
    fn own(&mut self, o: &Own) {
        let Some(buffer) = self.buffers.get(&o.window.buffer) else { return };
        o.vars.iter().for_each(|var| self.values.set(var, Value::Same(0)));
        let extents: Vec<i64> = o.extents(buffer).iter().map(|e| self.number(e).max(1)).collect();
        let runs = match (buffer.fragment, &extents[..]) {
            (Some(fragment), [.., rows, columns]) => fragment.registers(*rows, *columns).unwrap_or(1),
            _ => {
                let open = o.window.dims.iter().zip(&buffer.dims);
                let open = open.filter(|(span, _)| !matches!(span, crate::ir::Span::At(_)));
                let own = open.zip(&extents).filter(|((_, dim), _)| dim.pitch.is_none());
                own.map(|(_, extent)| *extent).product()
            }
        };
        self.side_by_side(&o.vars, &o.body, (runs / o.run.max(1)).max(1) as f64);
    }

    /// What an access touches.
    fn buffer(&self, access: &Access) -> Option<&Buffer> {
        self.buffers.get(&access.buffer)
    }

    fn assign(&mut self, a: &Assign) {
        let mut accesses = Vec::new();
        a.value.for_each_access(&mut |access| accesses.push(access));
        for access in &accesses {
            if let Some(asked) = self.state.loads.remove(&access.buffer) {
                self.wait(asked);
            }
        }
        accesses.iter().for_each(|access| self.used(&access.buffer));
        let in_registers = |access: &Access| self.buffer(access).is_some_and(|b| b.space == Space::Reg);
        let loads = accesses.iter().any(|access| self.buffer(access).is_some_and(Buffer::is_global));
        let near = accesses.iter().any(|a| self.buffer(a).is_some_and(|b| b.space == Space::Shared));
        let stays = in_registers(&a.target);
        if near && stays {
            let around = self.loops.iter().map(|l| l.name).collect();
            self.state.near.insert(a.target.buffer.clone(), around);
        }
        let dtype = self.buffer(&a.target).map(|b| b.dtype);
        let operations = operations::of_assignment(a, dtype);
        if loads {
            let now = self.state.now;
            if a.op == AssignOp::Store && stays {
                self.state.loads.entry(a.target.buffer.clone()).or_insert(now);
            } else {
                self.state.passing.get_or_insert(now);
                let to_shared = self.buffer(&a.target).is_some_and(|b| b.space == Space::Shared);
                let requests = self.written_out / self.width;
                self.state.path.copies += if to_shared { self.weight * requests } else { 0.0 };
                // Compilers keep few loads on their way whose values are added up one after the other.
                let waits = if to_shared { 0.0 } else { (requests / CHAINED - 1.0).max(0.0) };
                self.state.now += waits * self.pace.memory;
                self.state.path.memory_waits += self.weight * waits;
            }
        } else if operations > 0.0 {
            self.store_arrives();
        }
        if let Some(dtype) = dtype.filter(|_| operations > 0.0) {
            let cycles = 32.0 / (self.pace.threads)(dtype);
            if a.op != AssignOp::Store {
                // Real and imaginary parts are added up beside each other.
                let in_a_row = if dtype.is_complex() { operations / 2.0 } else { operations };
                let issue = operations * cycles * SCHEDULERS;
                self.chain(&a.target.index, issue, in_a_row * OPERATION * cycles * SCHEDULERS);
            }
            self.work(operations * cycles);
        }
    }

    /// The value of a load from shared memory is used: as often as the innermost loop is written out that both stand in.
    fn used(&mut self, buffer: &Sym) {
        if let Some(around) = self.state.near.remove(buffer) {
            let both = self.loops.iter().zip(&around).take_while(|(l, name)| l.name == **name);
            self.state.path.loads += self.weight * both.map(|(l, _)| l.count).product::<f64>();
        }
    }

    /// Operations on what others have left in the same registers wait for each other: `latency` cycles each, of which the others take
    /// `issue` each.
    fn chain(&mut self, target: &[Index], issue: f64, latency: f64) {
        let apart = |l: &WrittenOut| l.vars.iter().any(|var| target.iter().any(|index| index.mentions(var)));
        let independent: f64 = self.loops.iter().filter(|l| apart(l)).map(|l| l.count).product();
        let rest = self.written_out / independent * latency - self.written_out * issue;
        self.state.path.chains += self.weight * rest.max(0.0);
    }

    /// All warps of the block do what takes one of them so many cycles of the multiprocessor.
    fn work(&mut self, cycles: f64) {
        let cycles = cycles * self.written_out * self.pace.warps;
        self.state.now += cycles;
        self.state.path.work += self.weight * cycles;
    }

    fn instruction(&mut self, i: &Instruction) {
        let Some(record) = by_name(&i.name) else { return };
        if record.completion == Completion::CpAsync {
            let now = self.state.now;
            self.state.open.get_or_insert(now);
            return;
        }
        let windows =
            || i.operands.iter().filter_map(|o| if let Operand::Window(w) = o { Some(w) } else { None });
        for window in windows().skip(1) {
            if let Some(asked) = self.state.loads.remove(&window.buffer) {
                self.wait(asked);
            }
        }
        windows().for_each(|window| self.used(&window.buffer));
        let terms = match record.behaviour {
            Behaviour::Multiply { m, n, k, .. } => (m * n * k) as f64,
            Behaviour::WarpgroupMultiply { k } => {
                let columns = windows()
                    .next()
                    .and_then(|w| self.buffers.get(&w.buffer)?.dims.last()?.extent.as_constant());
                (16 * columns.unwrap_or(0) * k) as f64
            }
            _ => return,
        };
        let Some(dtype) = windows().nth(1).and_then(|w| self.buffers.get(&w.buffer)).map(|b| b.dtype) else {
            return;
        };
        let products = operations::real(dtype) * operations::parts(dtype);
        let small = matches!(record.behaviour, Behaviour::Multiply { m: 8, .. });
        let by_one_warp = matches!(record.behaviour, Behaviour::Multiply { .. });
        let rate = (self.pace.matrix_units)(dtype, by_one_warp) / if small { self.pace.small } else { 1.0 };
        let cycles = terms * products / rate;
        if let Some(target) = windows().next() {
            let in_a_row = if dtype.is_complex() { products / 2.0 } else { products };
            self.chain(&target.start(), cycles * SCHEDULERS, MATRIX_OPERATION * in_a_row);
        }
        self.work(cycles);
    }
}

/// Whether a loop's body is one that compilers put side by side: without loops that are not written out, and without meetings.
fn is_plain(body: &[Stmt]) -> bool {
    body.iter().all(|stmt| match stmt {
        Stmt::For(l) => {
            let written_out = matches!(l.mode, Mode::Unroll | Mode::Vector | Mode::Threads { .. })
                || l.range.constant_trip_count().is_some_and(|n| n <= SHORT_LOOP);
            written_out && is_plain(&l.body)
        }
        Stmt::If(i) => is_plain(&i.then) && is_plain(&i.otherwise),
        Stmt::Own(o) => is_plain(&o.body),
        Stmt::Assign(_) | Stmt::Let(..) | Stmt::Alloc(_) => true,
        _ => false,
    })
}
