//! Statements.

use super::body::Body;
use super::buffer::{Buffer, Ring};
use super::value::{Access, Reduction, Span, Value, Window};
use crate::index::{Cond, Index};
use crate::sym::Sym;

/// A statement. The text form of each is shown with its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// `for i in ... { ... }`
    For(For),
    /// `for (u, v) in tasks(E1, E2) share(g, G) { ... }`
    Tasks(Tasks),
    /// `for (i, j) in own acc[w, :, :] { ... }`, or `(i, j by 2)`
    Own(Own),
    /// `if cond { ... } else { ... }`
    If(If),
    /// `let x = index`; in scope to the end of the enclosing body.
    Let(Sym, Index),
    /// `alloc As: f32[128, 8] shared`; in scope to the end of the enclosing body.
    Alloc(Buffer),
    /// `alloc full: mbar ring 4 count 1`
    AllocRing(Ring),
    /// `roles producer 0..128 regs 40, consumer 128..384 regs 232`
    Roles(Vec<Role>),
    /// `on producer { ... }`
    On(On),
    /// `C[m, n] += ...`
    Assign(Assign),
    /// `ldmatrix_x4(a[mi, :, :], As[...])`
    Instruction(Instruction),
    /// `barrier`, `cp.wait 1`, ...
    Sync(Sync),
    /// `arrive(full[n], tx 32768)`: one arrival by each executing thread.
    Arrive {
        /// The ring.
        ring: Sym,
        /// The ordinal.
        ordinal: Index,
        /// Bytes that asynchronous copies will deliver to this phase.
        bytes: Option<Index>,
    },
    /// `await(full[n])`
    Await {
        /// The ring.
        ring: Sym,
        /// The ordinal.
        ordinal: Index,
    },
}

/// A loop over one variable.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// The variable.
    pub var: Sym,
    /// How the iterations are carried out.
    pub mode: Mode,
    /// The values of the variable.
    pub range: Range,
    /// A name for the ordinal of the iteration, counted across all executions of this loop in the block (rule 8).
    /// It stays visible after the loop, as the number of iterations so far.
    pub counting: Option<Sym>,
    /// What is repeated.
    pub body: Body,
}

/// How the iterations of a loop are carried out. Never what they compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One after another.
    Serial,
    /// One after another, written out: register indices inside become constants.
    Unroll,
    /// One contiguous, aligned access (rule 30).
    Vector,
    /// Virtual threads: to be unrolled into the statements inside; gone before validation (rule 30).
    Interleave,
    /// Blocks of a launch, along an axis of the grid. `ordered`: numbered in the order in which they start.
    Block {
        /// The axis.
        axis: Axis,
        /// Whether a block may wait for those before it.
        ordered: bool,
        /// How many blocks a multiprocessor should have registers for: so many are asked of the assembler, nothing if 0. `None`
        /// leaves it to the emitter.
        min_blocks: Option<i64>,
    },
    /// `threads(count @ pitch)`: the executing range is split into `count` ranges of `pitch` threads.
    Threads {
        /// The distance between the first threads of neighbouring ranges, and the size of each.
        pitch: i64,
    },
}

/// An axis of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// Fastest.
    X,
    /// Middle.
    Y,
    /// Slowest.
    Z,
}

/// The values a loop variable takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Range {
    /// `lo..hi step step`; the step is positive.
    Span {
        /// First value.
        lo: Index,
        /// First value not taken.
        hi: Index,
        /// Distance.
        step: Index,
    },
    /// `[16, 8, 4]`: exactly these.
    List(Vec<i64>),
    /// `part(index, parts) lo..hi`: the `index`-th of `parts` balanced contiguous parts.
    Part {
        /// Which part.
        index: Index,
        /// How many parts.
        parts: Index,
        /// First value of the whole.
        lo: Index,
        /// First value after the whole.
        hi: Index,
    },
}

/// A loop over a box shared by persistent blocks: every `stride`-th point in C order, from `start` on.
#[derive(Clone, Debug, PartialEq)]
pub struct Tasks {
    /// One variable for each dimension of the box.
    pub vars: Vec<Sym>,
    /// The extents of the box.
    pub extents: Vec<Index>,
    /// The first point: this block.
    pub start: Index,
    /// The distance: the number of blocks.
    pub stride: Index,
    /// What is repeated.
    pub body: Body,
}

/// A loop over the logical indices of a register window; each thread does those it owns (rule 15).
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// One variable for each dimension of the window.
    pub vars: Vec<Sym>,
    /// How far the last variable steps (`j by 2`): the body is done once for so many neighbours of one owner, and the
    /// variable is the first of them. 1 where each element is visited.
    pub run: i64,
    /// The window.
    pub window: Window,
    /// Whether what a lane accesses is written as one place of the lane and what its registers and unrolled loops add to that.
    pub lane_base: bool,
    /// What is done for each element or run.
    pub body: Body,
}

/// A choice by sizes, flags and loop variables.
#[derive(Clone, Debug, PartialEq)]
pub struct If {
    /// The condition.
    pub cond: Cond,
    /// If it holds.
    pub then: Body,
    /// If not.
    pub otherwise: Body,
}

/// A named range of the threads of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// The name.
    pub sym: Sym,
    /// The first thread.
    pub lo: i64,
    /// The first thread after it.
    pub hi: i64,
    /// Registers per thread (`setmaxnreg`), if set.
    pub registers: Option<i64>,
}

/// What one role does at this place (rule 6).
#[derive(Clone, Debug, PartialEq)]
pub struct On {
    /// The role.
    pub role: Sym,
    /// What it does.
    pub body: Body,
}

/// An element statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Assign {
    /// What is written.
    pub target: Access,
    /// Plain store or reduction into the target.
    pub op: AssignOp,
    /// Whether the reduction is atomic.
    pub atomic: bool,
    /// The value.
    pub value: Value,
}

/// How an element statement combines its value with the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssignOp {
    /// `=`
    Store,
    /// `+=`, `max=`, `min=`
    Reduce(Reduction),
}

/// A call of an instruction record.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The name of the record.
    pub name: std::sync::Arc<str>,
    /// The operands in the record's order; outputs come first.
    pub operands: Vec<Operand>,
    /// `-> full[n]`: the ring and ordinal that completion is reported to.
    pub signal: Option<(Sym, Index)>,
}

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A box of elements.
    Window(Window),
    /// An integer.
    Scalar(Index),
}

/// Synchronisation of the executing range (rules 20 to 24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// `barrier`: all threads of the range meet.
    Barrier,
    /// `cp.commit`: closes a group of `cp.async` copies of each thread.
    CpCommit,
    /// `cp.wait n`: all but the last `n` groups have landed.
    CpWait(i64),
    /// `wgmma.fence`: registers written by ordinary code become visible to wgmma.
    WgmmaFence,
    /// `wgmma.commit`
    WgmmaCommit,
    /// `wgmma.wait n`
    WgmmaWait(i64),
    /// `bulk.commit`
    BulkCommit,
    /// `bulk.wait n`: all but the last `n` bulk store groups are complete.
    BulkWait(i64),
    /// `bulk.wait_read n`: all but the last `n` bulk store groups have read their source.
    BulkWaitRead(i64),
    /// `fence.async`: ordinary writes become visible to the async proxy, and what it writes later does not overtake ordinary reads.
    FenceAsync,
}

impl Range {
    /// `0..hi`.
    pub fn upto(hi: impl Into<Index>) -> Range {
        Range::span(0, hi)
    }

    /// `lo..hi`.
    pub fn span(lo: impl Into<Index>, hi: impl Into<Index>) -> Range {
        Range::Span { lo: lo.into(), hi: hi.into(), step: 1.into() }
    }

    /// The number of iterations if it is a constant.
    pub fn constant_trip_count(&self) -> Option<i64> {
        match self {
            Range::Span { lo, hi, step } => {
                let (length, step) = ((hi - lo).as_constant()?, step.as_constant()?);
                Some(length.saturating_add(step - 1).div_euclid(step).max(0))
            }
            Range::List(values) => Some(values.len() as i64),
            Range::Part { .. } => None,
        }
    }

    /// Calls `visit` for each occurrence of a variable.
    pub fn for_each_var(&self, visit: &mut dyn FnMut(&Sym)) {
        match self {
            Range::Span { lo, hi, step } => [lo, hi, step].iter().for_each(|i| i.for_each_var(visit)),
            Range::List(_) => {}
            Range::Part { index, parts, lo, hi } => {
                [index, parts, lo, hi].iter().for_each(|i| i.for_each_var(visit));
            }
        }
    }

    /// Replaces variables.
    #[must_use]
    pub fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Range {
        match self {
            Range::Span { lo, hi, step } => {
                Range::Span { lo: lo.substitute(with), hi: hi.substitute(with), step: step.substitute(with) }
            }
            Range::List(values) => Range::List(values.clone()),
            Range::Part { index, parts, lo, hi } => Range::Part {
                index: index.substitute(with),
                parts: parts.substitute(with),
                lo: lo.substitute(with),
                hi: hi.substitute(with),
            },
        }
    }
}

impl Own {
    /// The extents of the window, one for each variable, in the buffer that it is part of.
    pub fn extents(&self, buffer: &Buffer) -> Vec<Index> {
        let extents = self.window.dims.iter().zip(&buffer.dims).filter_map(|(span, dim)| match span {
            Span::At(_) => None,
            Span::Slice(_, length) => Some(Index::constant(*length)),
            Span::All => Some(dim.extent.clone()),
        });
        extents.collect()
    }

    /// The variables, each with its extent in the buffer and how far it steps.
    pub fn steps(&self, buffer: &Buffer) -> Vec<(&Sym, Index, i64)> {
        let last = self.vars.len().saturating_sub(1);
        let steps = self.vars.iter().zip(self.extents(buffer)).enumerate();
        steps.map(|(at, (var, extent))| (var, extent, if at == last { self.run } else { 1 })).collect()
    }

    /// Whether the runs fill the window, and each of them is in consecutive registers of one thread.
    pub fn has_runs(&self, buffer: &Buffer) -> bool {
        let last = self.window.dims.iter().rposition(|span| !matches!(span, Span::At(_)));
        let extent = self.extents(buffer).last().and_then(Index::as_constant);
        let (Some(last), Some(extent)) = (last, extent) else { return false };
        match (buffer.fragment, &buffer.dims[..], &self.window.dims[..]) {
            _ if self.run == 1 => true,
            (None, dims, _) => dims[last].pitch.is_none() && self.run > 0 && extent % self.run == 0,
            (Some(fragment), [.., rows, _], [.., Span::All, Span::All]) => {
                rows.extent.as_constant().is_some_and(|rows| fragment.has_runs(rows, extent, self.run))
            }
            _ => false,
        }
    }
}

impl For {
    /// A serial loop.
    pub fn serial(var: &Sym, range: Range, body: impl Into<Body>) -> Stmt {
        For::with_mode(var, Mode::Serial, range, body)
    }

    /// A loop of the given mode.
    pub fn with_mode(var: &Sym, mode: Mode, range: Range, body: impl Into<Body>) -> Stmt {
        Stmt::For(For { var: var.clone(), mode, range, counting: None, body: body.into() })
    }

    /// `threads(count @ pitch)`: count and pitch if this is a loop over threads.
    pub fn threads(&self) -> Option<(i64, i64)> {
        match self.mode {
            Mode::Threads { pitch } => Some((self.range.constant_trip_count()?, pitch)),
            _ => None,
        }
    }
}

impl Mode {
    /// The most blocks that a multiprocessor may be asked to have registers for: more than any has room for.
    pub const MOST_MIN_BLOCKS: i64 = 32;

    /// What `min_blocks` may be, for those who wrote something else.
    pub fn about_min_blocks() -> String {
        format!("min_blocks is 0, which asks for nothing, or up to {}", Mode::MOST_MIN_BLOCKS)
    }
}

impl Axis {
    /// `x`, `y` or `z`.
    pub fn name(self) -> &'static str {
        match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        }
    }
}
