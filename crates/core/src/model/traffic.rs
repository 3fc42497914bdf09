//! Which bytes of device memory a launch touches, and how often: by how much caches can help.
//!
//! Of every buffer the elements that a block touches are taken as a box: from the least to the greatest index of each of its
//! dimensions, over all loops and threads of the block (intervals, exact for linear indices). The boxes of several accesses to one buffer
//! are joined. A block touches no more elements than its loops have iterations, though: one that takes every other row touches half of
//! the box.

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::{Index, Interval, Ranges};
use crate::instr::{Behaviour, By, OperandAccess, by_name};
use crate::ir::{
    Access, AssignOp, Buffer, For, Launch, Mode, Operand, Param, ParamKind, Program, Range, Space, Span,
    Stmt, Value, Window,
};
use crate::sym::Sym;

use super::rows::Rows;

/// What a launch touches of one buffer in device memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The buffer.
    pub buffer: String,
    /// Whether it is read.
    pub reads: bool,
    /// Whether it is written.
    pub writes: bool,
    /// Bytes that the blocks touch one by one, all of them together: what comes from the second-level cache where a
    /// multiprocessor fetches nothing twice for one block.
    pub by_blocks: f64,
    /// Bytes that waves of blocks touch, all of them together: what comes from device memory and goes there where the second-level cache
    /// keeps what the blocks of one wave share, and nothing longer. What is read and written counts twice.
    pub by_waves: f64,
    /// Bytes that the launch touches at all, twice where it reads and writes them: the least that device memory has to give and take.
    pub compulsory: f64,
    /// How many bytes device memory gives or takes for each that is wanted, where rows stand apart: 1 or more.
    pub spread: f64,
}

impl Traffic {
    /// How often its bytes move: there and back where they are read and written.
    pub fn ways(&self) -> f64 {
        ways(self.reads, self.writes)
    }
}

/// Bytes that device memory gives at a time where nobody says otherwise (`bench/limits/granularity.cu` on an H200, 2026-11-29).
const FETCHED: i64 = 64;

fn ways(reads: bool, writes: bool) -> f64 {
    if reads && writes { 2.0 } else { 1.0 }
}

/// The traffic of each launch of a lowered program, by buffer, given what sizes, strides and flags are, and how many blocks of each launch
/// are resident at a time.
///
/// # Errors
/// Those of [`Launch::of`].
pub fn launches(
    program: &Program,
    value: &dyn Fn(&Sym) -> Option<i64>,
    resident: &dyn Fn(usize) -> i64,
) -> Result<Vec<Vec<Traffic>>, Diagnosis> {
    let mut known = Ranges::new();
    let strides = program.tensors().filter_map(|t| t.row_stride.as_ref());
    for sym in program.params.iter().map(|p| &p.sym).chain(strides) {
        let v = value(sym).unwrap_or(0);
        known.set(sym, Interval::new(v, v));
    }
    let is_flag = |p: &&Param| matches!(p.kind, ParamKind::Flag);
    let flags: HashMap<Sym, i64> =
        program.params.iter().filter(is_flag).map(|p| (p.sym.clone(), value(&p.sym).unwrap_or(0))).collect();
    let buffers = program.buffers();
    let piece = program.fetches.unwrap_or(FETCHED);
    let launches = super::made(&program.body, value)?;
    Ok(launches
        .iter()
        .enumerate()
        .map(|(at, launch)| of_launch(launch, &known, &flags, &buffers, resident(at), piece))
        .collect())
}

fn of_launch(
    launch: &Launch,
    known: &Ranges,
    flags: &HashMap<Sym, i64>,
    buffers: &HashMap<Sym, Buffer>,
    resident: i64,
    piece: i64,
) -> Vec<Traffic> {
    let extents: Vec<i64> =
        launch.blocks.iter().map(|b| known.of(&b.extent).hi.unwrap_or(0).max(0)).collect();
    let blocks: i64 = extents.iter().product();
    if blocks == 0 {
        return Vec::new();
    }
    // So many neighbouring blocks, from the first one or from the middle of the grid.
    let boxes = |number: i64, first: i64, counts: bool| {
        let mut ranges = known.clone();
        let (mut inner, mut first) = (1, first);
        for (block, extent) in launch.blocks.iter().zip(&extents).rev() {
            let length = ((number + inner - 1) / inner).clamp(1, *extent);
            let from = if length == *extent { 0 } else { (first % extent).min(extent - length) };
            ranges.set(&block.var, Interval::new(from, from + length - 1));
            (inner, first) = (inner * extent, first / extent);
        }
        let mut touched = Touched {
            ranges,
            flags,
            buffers,
            found: Vec::new(),
            lets: HashMap::new(),
            trips: HashMap::new(),
            counts,
        };
        touched.list(launch.body);
        touched.found
    };
    let (one, wave, all) =
        (boxes(1, blocks / 2, true), boxes(resident.clamp(1, blocks), 0, false), boxes(blocks, 0, false));
    let waves = blocks as f64 / resident.clamp(1, blocks) as f64;
    let find = |boxes: &'_ [Hull], sym: &Sym, bytes: &dyn Fn(&Hull) -> f64| {
        boxes.iter().find(|b| b.buffer == *sym).map_or(0.0, bytes)
    };
    let in_the_box = |boxes: &[Hull], sym: &Sym| find(boxes, sym, &|b| b.bytes(known, buffers));
    let by_one = |sym: &Sym| in_the_box(&one, sym).min(find(&one, sym, &|b| b.visited(buffers)));
    let together = resident.clamp(1, blocks) as f64;
    all.iter()
        .map(|whole| {
            let ways = ways(whole.reads, whole.writes);
            let by_wave = in_the_box(&wave, &whole.buffer).min(by_one(&whole.buffer) * together);
            Traffic {
                buffer: whole.buffer.name().to_string(),
                reads: whole.reads,
                writes: whole.writes,
                by_blocks: by_one(&whole.buffer) * blocks as f64,
                by_waves: ways * by_wave * waves,
                compulsory: ways * whole.bytes(known, buffers),
                spread: whole.spread(known, buffers, piece),
            }
        })
        .collect()
}

/// What is touched of a buffer, from the least to the greatest index of each dimension.
struct Hull {
    buffer: Sym,
    dims: Vec<Interval>,
    reads: bool,
    writes: bool,
    /// Whether sectors that are written in part are brought to the second-level cache, and waited for, before.
    completed: bool,
    /// How many elements loops visit, to read them and to write them.
    visits: [f64; 2],
}

impl Hull {
    /// Bytes that loops visit, those that they visit again too.
    fn visited(&self, buffers: &HashMap<Sym, Buffer>) -> f64 {
        let bytes = buffers.get(&self.buffer).map_or(0, Buffer::element_bytes);
        self.visits[0].max(self.visits[1]) * bytes as f64
    }

    /// How many bytes device memory gives for each of a row, by pieces of so many bytes, or takes, with what it gives before where only some
    /// of a sector is written.
    fn spread(&self, known: &Ranges, buffers: &HashMap<Sym, Buffer>, piece: i64) -> f64 {
        let of_rows = || {
            let buffer = buffers.get(&self.buffer)?;
            let stride = known.get(buffer.row_stride.as_ref()?).hi?.checked_mul(buffer.element_bytes())?;
            let columns = self.dims.last()?;
            let width = (columns.hi? - columns.lo? + 1).checked_mul(buffer.element_bytes())?;
            if width <= 0 || stride <= width {
                return None;
            }
            let rows = Rows { bytes: width, stride, before: 0 };
            let moved = if self.reads {
                piece as f64 * rows.pieces(piece, piece).touched
            } else {
                rows.moved_to_write(piece, self.completed.then_some(piece))
            };
            Some(moved / (piece * width) as f64)
        };
        of_rows().unwrap_or(1.0).max(1.0)
    }

    /// Bytes of the elements that are there.
    fn bytes(&self, known: &Ranges, buffers: &HashMap<Sym, Buffer>) -> f64 {
        let Some(buffer) = buffers.get(&self.buffer) else { return 0.0 };
        let lengths = self.dims.iter().zip(&buffer.dims).map(|(touched, dim)| {
            let extent = known.of(&dim.extent).hi.unwrap_or(i64::MAX);
            let (lo, hi) =
                (touched.lo.unwrap_or(0).max(0), touched.hi.unwrap_or(i64::MAX - 1).min(extent - 1));
            (hi - lo + 1).max(0) as f64
        });
        lengths.product::<f64>() * buffer.element_bytes() as f64
    }
}

struct Touched<'a> {
    ranges: Ranges,
    /// What flags are: of conditions on nothing else one branch is gone through.
    flags: &'a HashMap<Sym, i64>,
    buffers: &'a HashMap<Sym, Buffer>,
    found: Vec<Hull>,
    lets: HashMap<Sym, Index>,
    /// How many values the variable of each loop takes.
    trips: HashMap<Sym, f64>,
    /// Whether visits are wanted.
    counts: bool,
}

impl Touched<'_> {
    fn list(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(l) => self.repeated(l),
            Stmt::Tasks(t) => {
                for (var, extent) in t.vars.iter().zip(&t.extents) {
                    let hi = self.ranges.of(extent).hi.map(|n| n - 1);
                    self.ranges.set(var, Interval { lo: Some(0), hi });
                    self.trips.insert(var.clone(), hi.map_or(1.0, |hi| (hi + 1).max(1) as f64));
                }
                // The block takes one task of so many.
                let stride = self.ranges.of(&self.resolved(&t.stride)).lo.unwrap_or(1).max(1) as f64;
                if let Some(first) = t.vars.first().and_then(|var| self.trips.get_mut(var)) {
                    *first /= stride;
                }
                self.list(&t.body);
            }
            Stmt::Own(o) => {
                if let Some(buffer) = self.buffers.get(&o.window.buffer) {
                    for (var, extent) in o.vars.iter().zip(o.extents(buffer)) {
                        let hi = self.ranges.of(&extent).hi.map(|n| n - 1);
                        self.ranges.set(var, Interval { lo: Some(0), hi });
                        self.trips.insert(var.clone(), hi.map_or(1.0, |hi| (hi + 1).max(1) as f64));
                    }
                }
                self.list(&o.body);
            }
            Stmt::If(i) => {
                if let Ok(holds) = i.cond.eval(&|sym| self.flags.get(sym).copied()) {
                    return self.list(if holds { &i.then } else { &i.otherwise });
                }
                let before: Vec<[f64; 2]> = self.found.iter().map(|hull| hull.visits).collect();
                self.list(&i.then);
                let then: Vec<[f64; 2]> = self.found.iter().map(|hull| hull.visits).collect();
                for (hull, visits) in
                    self.found.iter_mut().zip(before.into_iter().chain(std::iter::repeat([0.0; 2])))
                {
                    hull.visits = visits;
                }
                self.list(&i.otherwise);
                for (hull, then) in self.found.iter_mut().zip(then) {
                    hull.visits = [0, 1].map(|at| hull.visits[at].max(then[at]));
                }
            }
            Stmt::On(on) => self.list(&on.body),
            Stmt::Let(sym, index) => {
                let index = self.resolved(index);
                self.lets.insert(sym.clone(), index);
            }
            Stmt::Assign(a) => {
                self.value(&a.value);
                if a.op != AssignOp::Store {
                    self.access(&a.target, false);
                }
                self.access(&a.target, true);
            }
            Stmt::Instruction(i) => {
                let Some(record) = by_name(&i.name) else { return };
                for (operand, spec) in i.operands.iter().zip(record.operands) {
                    if let Operand::Window(window) = operand {
                        self.window(window, spec.access);
                    }
                }
                if let (Behaviour::Prefetch(_, By::Copying), [Operand::Window(window)]) =
                    (record.behaviour, &i.operands[..])
                    && let Some(hull) = self.found.iter_mut().find(|hull| hull.buffer == window.buffer)
                {
                    hull.completed = true;
                }
            }
            _ => {}
        }
    }

    fn repeated(&mut self, l: &For) {
        let interval = match &l.range {
            Range::Span { lo, hi, .. } => {
                let (lo, hi) = (self.ranges.of(&self.resolved(lo)), self.ranges.of(&self.resolved(hi)));
                Interval { lo: lo.lo, hi: hi.hi.map(|h| h - 1) }
            }
            Range::List(values) => {
                Interval { lo: values.iter().min().copied(), hi: values.iter().max().copied() }
            }
            Range::Part { lo, hi, .. } => {
                let (lo, hi) = (self.ranges.of(lo), self.ranges.of(hi));
                Interval { lo: lo.lo, hi: hi.hi.map(|h| h - 1) }
            }
        };
        // A loop that never runs touches nothing.
        if l.mode != Mode::Vector && interval.lo.zip(interval.hi).is_some_and(|(lo, hi)| hi < lo) {
            return;
        }
        let step = match &l.range {
            Range::Span { step, .. } => self.ranges.of(&self.resolved(step)).lo.unwrap_or(1).max(1) as f64,
            Range::Part { parts, .. } => self.ranges.of(&self.resolved(parts)).lo.unwrap_or(1).max(1) as f64,
            Range::List(_) => 1.0,
        };
        let trips = match &l.range {
            Range::List(values) => values.len() as f64,
            _ => interval.lo.zip(interval.hi).map_or(1.0, |(lo, hi)| ((hi - lo + 1) as f64 / step).ceil()),
        };
        self.trips.insert(l.var.clone(), trips.max(1.0));
        self.ranges.set(&l.var, interval);
        self.list(&l.body);
    }

    /// How many elements indices reach, as variables of loops take their values.
    fn visits(&self, indices: &[Index]) -> f64 {
        if !self.counts {
            return 0.0;
        }
        let mut vars: Vec<Sym> = Vec::new();
        for index in indices {
            self.resolved(index).for_each_var(&mut |var| {
                if !vars.contains(var) {
                    vars.push(var.clone());
                }
            });
        }
        vars.iter().filter_map(|var| self.trips.get(var)).product()
    }

    fn resolved(&self, index: &Index) -> Index {
        index.substitute(&|s| self.lets.get(s).cloned())
    }

    fn value(&mut self, value: &Value) {
        let mut accesses = Vec::new();
        value.for_each_access(&mut |access| accesses.push(access));
        accesses.into_iter().for_each(|access| self.access(access, false));
    }

    fn access(&mut self, access: &Access, writes: bool) {
        let dims = access.index.iter().map(|i| self.ranges.of(&self.resolved(i))).collect();
        self.touch(&access.buffer, dims, !writes, writes, self.visits(&access.index));
    }

    fn window(&mut self, window: &Window, access: OperandAccess) {
        let Some(buffer) = self.buffers.get(&window.buffer) else { return };
        let dims = window.dims.iter().zip(&buffer.dims).map(|(span, dim)| match span {
            Span::At(i) => self.ranges.of(&self.resolved(i)),
            Span::Slice(start, length) => {
                self.ranges.of(&self.resolved(start)).plus(Interval::new(0, length - 1))
            }
            Span::All => Interval { lo: Some(0), hi: self.ranges.of(&dim.extent).hi.map(|n| n - 1) },
        });
        let dims = dims.collect();
        let (reads, writes) = (access.reads(), access.writes());
        let starts: Vec<Index> = window.start();
        let long = window.dims.iter().zip(&buffer.dims).map(|(span, dim)| match span {
            Span::At(_) => 1.0,
            Span::Slice(_, length) => *length as f64,
            Span::All => self.ranges.of(&dim.extent).hi.unwrap_or(1) as f64,
        });
        let visits = self.visits(&starts) * long.product::<f64>();
        self.touch(&window.buffer, dims, reads, writes, visits);
    }

    fn touch(&mut self, sym: &Sym, dims: Vec<Interval>, reads: bool, writes: bool, visits: f64) {
        let in_device_memory =
            self.buffers.get(sym).is_some_and(|b| matches!(b.space, Space::Param(_) | Space::Global));
        if !in_device_memory {
            return;
        }
        let Some(known) = self.found.iter_mut().find(|b| b.buffer == *sym) else {
            let visits = [reads, writes].map(|does| if does { visits } else { 0.0 });
            self.found.push(Hull { buffer: sym.clone(), dims, reads, writes, completed: false, visits });
            return;
        };
        for (all, one) in known.dims.iter_mut().zip(dims) {
            let least = all.lo.zip(one.lo).map(|(a, b)| a.min(b));
            let most = all.hi.zip(one.hi).map(|(a, b)| a.max(b));
            *all = Interval { lo: least, hi: most };
        }
        known.reads |= reads;
        known.writes |= writes;
        known.visits[0] += if reads { visits } else { 0.0 };
        known.visits[1] += if writes { visits } else { 0.0 };
    }
}
