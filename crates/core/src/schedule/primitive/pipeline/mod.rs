//! `pipeline`: a loop fetches the data of later iterations while it computes with those of this one.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n, 32], y: out f32[32]) {
//!   for b in block.x(1) {
//!     alloc s: f32[32] shared
//!     alloc acc: f32[32@1] reg
//!     for t in threads(32@1) { acc[t] = 0 }
//!     for k in 0..n {
//!       for e in threads(32@1) { s[e] = x[k, e] }
//!       for t in threads(32@1) { acc[t] += s[31 - t] }
//!     }
//!     for t in threads(32@1) { y[t] = acc[t] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "pipeline(acc.k, 2, via=shared)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n, 32], y: out f32[32])
//! {
//!   for b in block.x(1) {
//!     alloc s: f32[2, 32] shared
//!     alloc acc: f32[32@1] reg
//!     for t in threads(32@1) {
//!       acc[t] = 0
//!     }
//!     if 0 < n {
//!       for e in threads(32@1) {
//!         s[0, e] = x[0, e]
//!       }
//!     }
//!     for k in 0..n {
//!       if k + 1 < n {
//!         for e in threads(32@1) {
//!           s[(k + 1)%2, e] = x[k + 1, e]
//!         }
//!       }
//!       for t in threads(32@1) {
//!         acc[t] += s[k%2, -t + 31]
//!       }
//!     }
//!     for t in threads(32@1) {
//!       y[t] = acc[t]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! The body of the loop must fall apart into *fills*, which write shared memory or registers and read nothing that
//! the loop writes, and *uses*, which read what was filled in the same iteration (rule 33). That is one test, in
//! `rewrite/stages.rs`; how the data travel is the choice of `via`:
//!
//! - `shared`: the staged buffers become rings of `stages` slots, filled by ordinary stores. `double_buffer` is the
//!   shorthand for two slots.
//! - `registers`: what the next iteration needs is loaded into registers before the uses of this one, and stored to
//!   shared memory at its start; with 1 stage there is one copy in shared memory, with 2 a ring of two, so that one
//!   barrier a step is enough. If the staged buffers are registers themselves, a serial loop moves the next values to
//!   the present ones at its end, an unrolled loop alternates between two sets.
//! - `cp_async`: the fills are asynchronous copies (see `tensorize`); a ring of `stages` slots, with a group of copies
//!   committed in every step and all but the last `stages - 2` groups waited for. Fills that are no such copies, as
//!   of a tile that is turned round on its way, pass through registers. With 1 stage each step waits for its own
//!   copies: the least shared memory, for blocks or parts of them of which others compute meanwhile.
//! - `bulk`: one warp asks for whole runs of memory, or boxes of a matrix, which report to a ring of barriers (see `bulk.rs`). With
//!   `release=warps` it asks as soon as every warp has given a slot back, with `release=role` a warp does nothing but that;
//!   otherwise all threads meet first.
//! - `tma`: one thread of a role of its own copies whole tiles through the tensor memory accelerator, into a ring of
//!   `stages` slots under mbarriers; the other role multiplies with wgmma (see `tma.rs`).
//!
//! Steps through a ring in shared memory may go on across the iterations of a loop around (`across=label.outer`,
//! `across.rs`): the first steps of an iteration are then fetched while the last ones of the one before are used. Where the loop around is
//! one over parts of a block and copies are bulk copies, the parts use the ring in turn (`turns.rs`).
//!
//! A loop that runs once at most, such as the tail that `tail` peels off, only uses the first slot. Loops of any
//! length are right: what is fetched ahead is fetched only if the loop gets there. Barriers are placed
//! later, by the pass `synchronise`, except that `cp_async` places the one that its waits need.

mod across;
mod boxes;
mod bulk;
mod fill;
mod registers;
mod ring;
mod roles;
mod runs;
mod tma;
mod turns;

use std::cell::RefCell;
use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::{Cond, Index, prove};
use crate::instr::{self, Completion};
use crate::ir::{Body, Buffer, Dim, For, If, Mode, Program, Range, Space, Stmt, facts, walk};
use crate::layout::Layout;
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Place, Stages, at_loops};
use crate::schedule::step::Call;
use crate::sym::Sym;

use self::ring::Landing;
pub(super) use self::roles::first;
use super::Primitive;

pub(super) const USAGE: &str = "pipeline(label.loop, stages, via=shared|registers|cp_async|bulk|tma, across=label.outer, release=block|warps|role)";
pub(super) const DOUBLE_BUFFER_USAGE: &str = "double_buffer(label.loop)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The loop.
    pub target: LoopRef,
    /// How many versions of the staged buffers there are.
    pub stages: i64,
    /// How data travel.
    pub via: Via,
    /// The loop right around it in which its steps go on, if they do.
    pub across: Option<LoopRef>,
    /// How it is known that a slot may be filled anew.
    pub release: Release,
}

/// The mechanism of a [`Pipeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Ordinary stores into a ring in shared memory.
    Shared,
    /// Early into registers, late into shared memory; or from register to register.
    Registers,
    /// Asynchronous copies into a ring in shared memory.
    CpAsync,
    /// Bulk copies of runs into a ring in shared memory, asked for by one warp.
    Bulk,
    /// Bulk copies by the tensor memory accelerator, in a role of its own.
    Tma,
}

/// How those who fill a slot of a ring know that it has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// All threads of the block meet.
    #[default]
    Block,
    /// Each warp gives it back, and only those who fill it wait for that. Of bulk copies alone.
    Warps,
    /// The same, and those who fill it do nothing else: they are a role of their own. Of bulk copies alone.
    Role,
}

/// `double_buffer`: `pipeline` with two versions, in whatever memory the staged buffers are.
#[derive(Clone, Debug)]
pub struct DoubleBuffer {
    /// The loop.
    pub target: LoopRef,
}

impl Via {
    const ALL: [(Via, &'static str); 5] = [
        (Via::Shared, "shared"),
        (Via::Registers, "registers"),
        (Via::CpAsync, "cp_async"),
        (Via::Bulk, "bulk"),
        (Via::Tma, "tma"),
    ];

    fn name(self) -> &'static str {
        Via::ALL.iter().find(|(v, _)| *v == self).map_or("", |(_, name)| name)
    }
}

impl Release {
    const ALL: [(Release, &'static str); 3] =
        [(Release::Block, "block"), (Release::Warps, "warps"), (Release::Role, "role")];

    fn read(call: &Call) -> Result<Release, Diagnosis> {
        let Some(name) = call.option_of("release") else { return Ok(Release::default()) };
        let known = Release::ALL.iter().find(|(_, n)| *n == name);
        known.map(|(release, _)| *release).ok_or_else(|| call.wrong("`release` must be block, warps or role"))
    }

    fn name(self) -> &'static str {
        Release::ALL.iter().find(|(r, _)| *r == self).map_or("", |(_, name)| name)
    }
}

impl Pipeline {
    pub(super) fn read(call: &Call) -> Result<Pipeline, Diagnosis> {
        let (target, stages) = (call.loop_at(0)?, call.int_at(1)?);
        let via = call.option_of("via").and_then(|name| Via::ALL.iter().find(|(_, n)| *n == name));
        let Some((via, _)) = via else { return Err(call.wrong("the mechanism is wanted")) };
        if !(1..=64).contains(&stages) {
            return Err(call.wrong("the number of stages must be from 1 to 64"));
        }
        let across = call.loop_option("across")?;
        let release = Release::read(call)?;
        Ok(Pipeline { target, stages, via: *via, across, release })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be pipelined via {}", self.target, self.via.name()))
            .because(because)
    }

    /// The program with the loop pipelined wherever it is, and what was found.
    fn alone(&self, program: &Program) -> Result<(Program, Found), Diagnosis> {
        let found = RefCell::new(Found::default());
        let out =
            at_loops(program, &self.target, &mut |l, place| self.rewrite(l, place, &mut found.borrow_mut()))?;
        Ok((out, found.into_inner()))
    }

    fn rewrite(&self, l: For, place: &Place, found: &mut Found) -> Result<Vec<Stmt>, Diagnosis> {
        if !matches!(l.mode, Mode::Serial | Mode::Unroll) {
            return Err(self.refuse("its iterations do not run one after another"));
        }
        if l.counting.is_some() {
            return Err(self.refuse("its iterations are counted already"));
        }
        let stages = Stages::of(&l, &peers(place.program, &self.target), place.program)?;
        let asynchronous = has_async_copies(&stages.fills);
        found.asynchronous |= asynchronous;
        let via = match self.via {
            // Another copy of the loop may have fills that could not become asynchronous copies.
            Via::CpAsync if !asynchronous => Via::Shared,
            via => via,
        };
        let in_registers = stages.staged.iter().all(|b| b.space == Space::Reg);
        self.check(&l, &stages, via, place)?;
        if in_registers && l.mode == Mode::Serial {
            return registers::between_registers(&l, stages, place).map_err(|because| self.refuse(because));
        }
        let ring_of = |b: &&Buffer| in_registers || b.space == Space::Shared;
        let rings: Vec<Sym> = stages.staged.iter().filter(ring_of).map(|b| b.sym.clone()).collect();
        found.ring(&rings, self.stages);
        let (counted, extent, moved) = self.counted(&l, &stages)?;
        let landing = if via == Via::CpAsync { Landing::Committed } else { Landing::Stored };
        let ring = |l| ring::Ring {
            l,
            extent: &extent,
            around: None,
            rings: &rings,
            slots: self.stages,
            landing: landing.clone(),
        };
        if runs_once_at_most(&extent, place) {
            return Ok(ring(&l).only_step(stages));
        }
        let (ahead, delayed): (Vec<Stmt>, Vec<Stmt>) = match self.via {
            Via::Registers if !in_registers => (Vec::new(), moved.fills),
            Via::CpAsync => moved.fills.into_iter().partition(|s| has_async_copies(std::slice::from_ref(s))),
            _ => (moved.fills, Vec::new()),
        };
        let staging =
            registers::Staging::of(&delayed, &moved.staged).map_err(|because| self.refuse(because))?;
        Ok(ring(&counted).build(Stages { fills: ahead, ..moved }, staging, place))
    }

    /// Whether those who wait for copies can meet: the block, or, inside a thread loop, whole warps that share what is
    /// staged with nobody else.
    fn check_meeting(&self, l: &For, stages: &Stages, place: &Place) -> Result<(), Diagnosis> {
        let ranges = place.outer().into_iter().filter_map(|o| match o.mode {
            Mode::Threads { pitch } => Some(pitch),
            _ => None,
        });
        let Some(smallest) = ranges.min() else { return Ok(()) };
        let allocated = |b: &Buffer| l.body.iter().any(|s| matches!(s, Stmt::Alloc(a) if a.sym == b.sym));
        if smallest % 32 == 0 && stages.staged.iter().all(allocated) {
            return Ok(());
        }
        Err(self.refuse("it stands inside a thread loop, where the block cannot meet").instead(
            "attach what is staged with compute_at(buffer, label.loop, private), inside a loop over warps",
        ))
    }

    /// Whether the mechanism can carry what is staged.
    fn check(&self, l: &For, stages: &Stages, via: Via, place: &Place) -> Result<(), Diagnosis> {
        let register = stages.staged.iter().find(|b| b.space == Space::Reg);
        let all_registers = stages.staged.iter().all(|b| b.space == Space::Reg);
        match via {
            Via::Registers if all_registers && self.stages != 2 => {
                Err(self.refuse("registers are kept twice: this set and the next").instead("use 2 stages"))
            }
            Via::Registers if all_registers => Ok(()),
            Via::Registers if has_async_copies(&stages.fills) => Err(self
                .refuse("its buffers are filled by asynchronous copies, which do not pass through registers")
                .instead("use via=cp_async")),
            Via::Registers if self.stages > 2 => {
                Err(self.refuse("registers hold one step ahead").instead("use 1 or 2 stages"))
            }
            Via::Registers => Ok(()),
            Via::Shared | Via::CpAsync | Via::Bulk | Via::Tma => {
                if let Some(buffer) = register {
                    let because = format!("`{}` is in registers", buffer.sym);
                    return Err(self.refuse(because).instead("use via=registers"));
                }
                if self.stages < 2 && (self.via != Via::CpAsync || self.across.is_some()) {
                    return Err(self.refuse("a ring needs two slots at least"));
                }
                if via == Via::CpAsync { self.check_meeting(l, stages, place) } else { Ok(()) }
            }
        }
    }

    /// The loop with its iterations counted from 0 by 1, how many there are, and its stages accordingly.
    fn counted(&self, l: &For, stages: &Stages) -> Result<(For, Index, Stages), Diagnosis> {
        let Range::Span { lo, hi, step } = &l.range else {
            return Err(self.refuse("its first iteration has no closed form").instead(
                "pipeline a loop over a span; cyclic parts (split_reduce with order=cyclic) are spans",
            ));
        };
        let Some(step) = step.as_constant() else {
            return Err(self.refuse("its step is no constant, so slots cannot be numbered"));
        };
        if lo.as_constant() == Some(0) && step == 1 {
            return Ok((l.clone(), hi.clone(), stages.clone()));
        }
        let extent = (hi - lo).ceil_div(step);
        let counter = l.var.fresh();
        let value = lo + &Index::var(&counter).scaled(step);
        let at = |stmts: &[Stmt]| walk::substitute(stmts, &|s| (*s == l.var).then(|| value.clone()));
        let moved =
            Stages { fills: at(&stages.fills), uses: at(&stages.uses), staged: stages.staged.clone() };
        Ok((For { var: counter, range: Range::upto(extent.clone()), ..l.clone() }, extent, moved))
    }
}

/// What was found in all copies of the loop.
#[derive(Default)]
struct Found {
    /// Buffers that become rings, with the number of slots.
    rings: HashMap<Sym, i64>,
    /// Buffers of one dimension that get this extent.
    longer: HashMap<Sym, i64>,
    /// Buffers of two dimensions that get so many columns, their padding among them.
    wider: HashMap<Sym, i64>,
    /// Bytes at multiples of which the slots of a ring begin, if not at those of [`SLOT_ALIGNMENT`].
    aligned: HashMap<Sym, i64>,
    asynchronous: bool,
}

impl Found {
    fn ring(&mut self, buffers: &[Sym], slots: i64) {
        if slots > 1 {
            self.rings.extend(buffers.iter().map(|b| (b.clone(), slots)));
        }
    }

    /// The program with a copy of each ring's buffer in every slot, as long as was found.
    fn with_slots(&self, program: Program) -> Program {
        let body = walk::rewrite(program.body, &mut |mut stmt| {
            if let Stmt::Alloc(buffer) = &mut stmt {
                if let Some(extent) = self.longer.get(&buffer.sym) {
                    buffer.dims = vec![Dim::new(*extent)];
                }
                if let (Some(columns), Some(last)) = (self.wider.get(&buffer.sym), buffer.dims.last_mut()) {
                    (*last, buffer.layout) = (Dim::new(*columns), None);
                }
                if let Some(slots) = self.rings.get(&buffer.sym) {
                    let aligned = self.aligned.get(&buffer.sym).copied();
                    buffer.layout = ring_layout(buffer, aligned.unwrap_or(SLOT_ALIGNMENT));
                    buffer.dims.insert(0, Dim::new(*slots));
                }
            }
            vec![stmt]
        });
        Program { body, ..program }
    }
}

impl Primitive for Pipeline {
    fn call(&self) -> Call {
        let mut call = Call::new("pipeline").target(&self.target).int(self.stages);
        call = call.option("via", self.via.name());
        if let Some(around) = &self.across {
            call = call.option("across", around);
        }
        if self.release == Release::default() { call } else { call.option("release", self.release.name()) }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        if self.release != Release::Block && self.via != Via::Bulk {
            return Err(self
                .refuse("warps give back only slots that one warp fills for all of them, by bulk copies")
                .instead("use via=bulk, or leave `release` out"));
        }
        if self.via == Via::Tma && self.across.is_none() {
            return tma::apply(self, program);
        }
        if self.via == Via::Bulk && self.across.is_none() {
            return bulk::apply(self, program);
        }
        if let (Via::Bulk, Some(around)) = (self.via, &self.across) {
            return turns::apply(self, program, around);
        }
        let (out, found) = match &self.across {
            Some(around) => self.across(program, around)?,
            None => self.alone(program)?,
        };
        if self.via == Via::CpAsync && !found.asynchronous {
            return Err(self
                .refuse("its buffers are filled by ordinary stores")
                .instead("tensorize the fills to cp_async first, or use via=shared"));
        }
        Ok(found.with_slots(out))
    }
}

impl DoubleBuffer {
    pub(super) fn read(call: &Call) -> Result<DoubleBuffer, Diagnosis> {
        Ok(DoubleBuffer { target: call.loop_at(0)? })
    }
}

impl Primitive for DoubleBuffer {
    fn call(&self) -> Call {
        Call::new("double_buffer").target(&self.target)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let pipeline = |via| {
            let (target, release) = (self.target.clone(), Release::default());
            Pipeline { target, stages: 2, via, across: None, release }.apply(program)
        };
        let staged_in_registers = RefCell::new(false);
        at_loops(program, &self.target, &mut |l, place| {
            let stages = Stages::of(&l, &peers(place.program, &self.target), place.program)?;
            *staged_in_registers.borrow_mut() |= stages.staged.iter().all(|b| b.space == Space::Reg);
            Ok(vec![Stmt::For(l)])
        })?;
        pipeline(if staged_in_registers.into_inner() { Via::Registers } else { Via::Shared })
    }
}

/// The loops of a program that a handle means.
fn peers<'a>(program: &'a Program, target: &LoopRef) -> Vec<&'a For> {
    let mut found = Vec::new();
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::For(l) = stmt
            && target.means(l)
        {
            found.push(l);
        }
    });
    found
}

/// Whether a loop is certain to have no second iteration, as the loop that `tail` peels off.
fn runs_once_at_most(extent: &Index, place: &Place) -> bool {
    let mut known = facts::of_program(place.program);
    place.outer().iter().for_each(|o| facts::enter_loop(&mut known, o));
    prove(&known, &Cond::le(extent.clone(), 1.into())) == Some(true)
}

/// Slots start at multiples of this many bytes, so that what was aligned in one slot is aligned in all.
const SLOT_ALIGNMENT: i64 = 16;

/// The layout of a ring of copies of a buffer, one after the other, each from a multiple of so many bytes; `None` if it is the
/// compact one.
fn ring_layout(buffer: &Buffer, aligned: i64) -> Option<Layout> {
    let extents = buffer.constant_extents()?;
    let inner = match &buffer.layout {
        Some(layout) => layout.clone(),
        None => Layout::row_major(&extents),
    };
    let elements = match &buffer.layout {
        Some(layout) => layout.span(&extents).ok()?,
        None => extents.iter().product(),
    };
    let unit = (aligned / buffer.dtype.bytes()).max(1);
    let slot = (elements + unit - 1) / unit * unit;
    if buffer.space != Space::Shared || (buffer.layout.is_none() && slot == elements) {
        return None;
    }
    let s = Sym::new("s");
    let offset = &Index::var(&s).scaled(slot) + &inner.offset;
    Some(Layout { axes: std::iter::once(s).chain(inner.axes).collect(), offset })
}

fn has_async_copies(stmts: &[Stmt]) -> bool {
    let mut found = false;
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::Instruction(i) = stmt {
            found |= instr::by_name(&i.name).is_some_and(|r| r.completion == Completion::CpAsync);
        }
    });
    found
}

/// A copy of statements for another iteration: `var` becomes `value`, and everything bound inside is new.
fn at_iteration(stmts: &[Stmt], var: &Sym, value: &Index) -> Vec<Stmt> {
    walk::substitute(&walk::refresh(stmts), &|s| (s == var).then(|| value.clone()))
}

/// The statements, if there are any, where `cond` holds; bare if it is known to.
fn only_if(cond: Cond, stmts: Vec<Stmt>, place: &Place) -> Vec<Stmt> {
    if stmts.is_empty() || place.facts().proves(&cond) {
        return stmts;
    }
    vec![Stmt::If(If { cond, then: stmts.into(), otherwise: Body::default() })]
}
