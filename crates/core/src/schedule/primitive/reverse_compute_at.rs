//! `reverse_compute_at`: what uses a stage is computed inside the stage's own loops, on as much as one iteration gives.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   alloc t: f32[n] global
//!   for i in 0..n { t[i] = x[i] + x[i] }
//!   for i in 0..n { y[i] = t[i] * t[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "
//!     split(t.i, 8) -> io, ii
//!     set_scope(t, reg)
//!     reverse_compute_at(y, t.io)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n], y: out f32[n])
//! {
//!   for io in 0..ceil(n, 8) {
//!     alloc t: f32[8] reg
//!     for ii in 0..8 {
//!       if 8*io + ii < n {
//!         t[ii] = x[8*io + ii] + x[8*io + ii]
//!       }
//!     }
//!     for i in 0..8 {
//!       if 8*io + i < n {
//!         y[8*io + i] = t[i] * t[i]
//!       }
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! The mirror image of `compute_at`: there the loops of the consumer are shaped and the producer follows, here the
//! loops of the producer are shaped and the consumer, an epilogue say, follows. Where nothing else uses the stage, its
//! buffer shrinks to what one iteration gives.
//!
//! Every element must be complete after one iteration of the loops down to the attach point, and these loops must cut
//! the consumer's domain into pieces that neither overlap nor leave anything out: along each dimension the pieces are
//! as long as the loops' steps are wide. A loop of a reduction is no such loop; nor is one whose factor does not divide
//! the tile around it.

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::{Atom, Cond, Index};
use crate::ir::{Body, Buffer, Dim, For, If, Mode, Program, Range, Space, Stmt, walk};
use crate::schedule::facts::Facts;
use crate::schedule::handle::{LoopRef, writes, written};
use crate::schedule::rewrite::{
    Changed, Effects, Extent, Place, at_block_scope, contains, count_uses, head, hull, insert_alloc,
    is_block, is_thread_like, map_elements, mentions, none_allocated_by_blocks,
};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;
use super::compute_at::canonical_nest;

pub(super) const USAGE: &str = "reverse_compute_at(buffer, label.loop)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct ReverseComputeAt {
    /// The buffer that the consumer computes.
    pub consumer: String,
    /// The loop of the producer inside which it is computed.
    pub at: LoopRef,
}

/// The loops from a statement down to the attach point, both included, and the conditions on the way.
#[derive(Default)]
struct Path {
    loops: Vec<For>,
    conds: Vec<Cond>,
}

/// The consumer's nest.
struct Consumer {
    buffer: Buffer,
    vars: Vec<Sym>,
    inner: Vec<Stmt>,
}

impl ReverseComputeAt {
    pub(super) fn read(call: &Call) -> Result<ReverseComputeAt, Diagnosis> {
        Ok(ReverseComputeAt { consumer: call.word_at(0)?.into(), at: call.loop_at(1)? })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be computed at `{}`", self.consumer, self.at)).because(because)
    }

    /// Rewrites every list in which the producer and the consumer stand side by side.
    fn lists(&self, stmts: &[Stmt], place: &Place) -> Changed {
        let producer = stmts.iter().position(|s| contains(s, &|l| self.at.means(l)));
        let computes = |i: &usize| Some(*i) != producer && writes(&stmts[*i..=*i], &self.consumer);
        let consumers: Vec<usize> = (0..stmts.len()).filter(computes).collect();
        if let (Some(producer), [first, rest @ ..]) = (producer, &consumers[..]) {
            if !rest.is_empty() {
                return Err(self.refuse(format!("`{}` is computed by several nests", self.consumer)));
            }
            return self.list(stmts, producer, *first, place).map(Some);
        }
        place.rebuild_all(stmts, &mut |body, place| self.lists(body, place))
    }

    /// Rewrites a list with the producer and the consumer at these positions.
    fn list(&self, stmts: &[Stmt], from: usize, to: usize, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        if to < from {
            return Err(self.refuse("it is computed before that loop"));
        }
        let program = place.program;
        let attach = |s: &Stmt| contains(s, &|l| self.at.means(l));
        if stmts.iter().filter(|s| attach(s)).count() > 1 {
            return Err(self.refuse(format!("several nests have a loop `{}`", self.at)));
        }
        let stage = written(&stmts[from], &self.at.label, program)
            .ok_or_else(|| self.refuse(format!("`{}` is no buffer", self.at.label)))?;
        let consumer = self.consumer(&stmts[to], program)?;
        self.check_order(&stmts[from..=to], &stage, &consumer)?;
        let mut path = Path::default();
        self.path(&stmts[from], &mut path);
        let Some(at) = path.loops.last().cloned() else { return Err(self.at.unknown(program)) };
        if path.loops.iter().chain(place.outer()).any(|l| l.mode == Mode::Vector) {
            return Err(self
                .refuse("a vector loop holds one assignment and nothing else")
                .instead("attach it to a loop around, or vectorize afterwards"));
        }
        if count_writes(&stmts[from], &stage.sym) > count_writes(&Stmt::For(at.clone()), &stage.sym) {
            return Err(self
                .refuse(format!("`{}` is also computed outside that loop", stage.sym))
                .instead("attach it further out"));
        }
        let mut facts = place.facts();
        path.loops.iter().for_each(|l| facts.enter(l));
        let region = self.region(&at, &stage, &facts)?;
        let dims = self.used_as(&consumer, &stage)?;
        let pieces: Vec<Option<&Extent>> =
            (0..consumer.vars.len()).map(|v| dims.iter().position(|d| *d == v).map(|d| &region[d])).collect();
        self.check_pieces(&pieces, &consumer, &path)?;
        let nest = self.nest(&consumer, &pieces, &path, &facts)?;

        let uses = |stmts: &[Stmt]| count_uses(stmts, &stage.sym);
        let local = stmts.iter().any(|s| matches!(s, Stmt::Alloc(b) if b.sym == stage.sym));
        let only_here =
            uses(stmts) == uses(std::slice::from_ref(&Stmt::For(at.clone()))) + uses(&stmts[to..=to]);
        let tile = (local && only_here).then(|| shrunk(&stage, &region));
        if stage.space == Space::Shared
            && path.loops.iter().chain(place.outer()).any(|l| is_thread_like(l.mode))
        {
            return Err(self
                .refuse(format!("that is inside a thread loop, and `{}` belongs to the block", stage.sym))
                .instead("attach it to a loop that all threads share, or keep the stage in registers"));
        }
        let of_block = path.loops.iter().chain(place.outer()).any(is_block);
        // Shared memory is allocated for the block; the rest stands where it is used.
        let inside = stage.space != Space::Shared || !of_block;
        let shrunk = tile.as_ref().map(|t| (&stage, t, &region[..]));
        let moved = self.attached(stmts[from].clone(), &nest, shrunk, inside);
        let mut out: Vec<Stmt> = Vec::with_capacity(stmts.len());
        for (i, stmt) in stmts.iter().enumerate() {
            match stmt {
                Stmt::Alloc(b) if tile.is_some() && b.sym == stage.sym => {}
                _ if i == to => {}
                // What the consumer needs must be there before it.
                _ if i == from => {
                    out.extend(stmts[from..to].iter().filter(|s| matches!(s, Stmt::Alloc(_))).cloned());
                    out.push(moved.clone());
                }
                Stmt::Alloc(_) if (from..to).contains(&i) => {}
                other => out.push(other.clone()),
            }
        }
        if let Some(tile) = tile.filter(|_| !inside) {
            if place.outer().into_iter().any(is_block) {
                insert_alloc(&mut out, tile);
            } else {
                out = at_block_scope(out, &tile);
            }
        }
        Ok(out)
    }

    /// The consumer, if it is a nest over its own extents that may run in any order.
    fn consumer(&self, stmt: &Stmt, program: &Program) -> Result<Consumer, Diagnosis> {
        let changed = || {
            self.refuse(format!("the loops of `{}` have been changed already", self.consumer))
                .instead("apply reverse_compute_at first")
        };
        let buffer = written(stmt, &self.consumer, program).ok_or_else(changed)?;
        let (vars, inner) = canonical_nest(stmt, &buffer).ok_or_else(changed)?;
        let own: Vec<Index> = vars.iter().map(Index::var).collect();
        let mut only_itself = true;
        walk::for_each(&inner, &mut |s| match s {
            Stmt::Assign(a) => a.value.for_each_access(&mut |access| {
                only_itself &= access.buffer != buffer.sym || access.index == own;
            }),
            Stmt::Instruction(_) => only_itself = false,
            _ => {}
        });
        if !only_itself {
            return Err(self.refuse(format!("an element of `{}` depends on others of it", self.consumer)));
        }
        Ok(Consumer { buffer, vars, inner })
    }

    /// The consumer may move up past what stands between, and run between iterations of the producer.
    fn check_order(&self, stmts: &[Stmt], stage: &Buffer, consumer: &Consumer) -> Result<(), Diagnosis> {
        let [producer, between @ .., _] = stmts else { return Err(self.refuse("it is not a consumer")) };
        let own = Effects::of(&consumer.inner);
        let written: Vec<&Sym> = own.stores.iter().chain(&own.updates).collect();
        if let Some(other) = written.iter().find(|b| ***b != consumer.buffer.sym) {
            return Err(self.refuse(format!("its loops also compute `{other}`")));
        }
        if !own.reads.contains(&stage.sym) {
            return Err(self.refuse(format!("it does not use `{}`", stage.sym)));
        }
        let first = Effects::of(std::slice::from_ref(producer));
        // Buffers that are allocated between are the consumer's, too.
        let allocated = |s: &&Stmt| matches!(s, Stmt::Alloc(_));
        let later = Effects::of(&between.iter().filter(|s| !allocated(s)).cloned().collect::<Vec<_>>());
        if first.synchronises || later.synchronises {
            return Err(self
                .refuse("something waits or signals on the way")
                .instead("apply reverse_compute_at before pipeline"));
        }
        for buffer in &own.reads {
            let is_stage = *buffer == stage.sym;
            if later.writes(buffer) || (!is_stage && first.writes(buffer)) {
                return Err(self.refuse(format!("it reads `{buffer}`, which is not complete there")));
            }
        }
        let target = &consumer.buffer.sym;
        if first.touches(target) || later.touches(target) {
            return Err(self.refuse(format!("`{target}` is also used by what stands before it")));
        }
        Ok(())
    }

    fn path(&self, stmt: &Stmt, path: &mut Path) -> bool {
        match stmt {
            Stmt::For(l) => {
                path.loops.push(head(l));
                if self.at.means(l) {
                    if let Some(at) = path.loops.last_mut() {
                        at.body.clone_from(&l.body);
                    }
                    return true;
                }
                if l.body.iter().any(|s| self.path(s, path)) {
                    return true;
                }
                path.loops.pop();
                false
            }
            Stmt::If(i) => {
                let arms = [(&i.then, i.cond.clone()), (&i.otherwise, i.cond.clone().negate())];
                arms.into_iter().any(|(arm, cond)| {
                    path.conds.push(cond);
                    let found = arm.iter().any(|s| self.path(s, path));
                    if !found {
                        path.conds.pop();
                    }
                    found
                })
            }
            other => walk::bodies(other).flatten().any(|s| self.path(s, path)),
        }
    }

    /// What one iteration of the attach point computes of the stage.
    fn region(&self, at: &For, stage: &Buffer, facts: &Facts) -> Result<Vec<Extent>, Diagnosis> {
        let mut inside = facts.clone();
        let mut inner: Vec<Sym> = Vec::new();
        let mut lets: HashMap<Sym, Index> = HashMap::new();
        let mut targets: Vec<Vec<Index>> = Vec::new();
        let mut windows = false;
        walk::for_each(&at.body, &mut |stmt| match stmt {
            Stmt::For(l) => {
                inside.enter(l);
                inner.push(l.var.clone());
            }
            Stmt::Let(sym, value) => {
                lets.insert(sym.clone(), value.substitute(&|s| lets.get(s).cloned()));
            }
            Stmt::Assign(a) if a.target.buffer == stage.sym => {
                targets
                    .push(a.target.index.iter().map(|i| i.substitute(&|s| lets.get(s).cloned())).collect());
            }
            Stmt::Instruction(_) | Stmt::Own(_) => {
                windows |= mentions(std::slice::from_ref(stmt), &stage.sym);
            }
            _ => {}
        });
        if windows {
            return Err(self
                .refuse(format!("an instruction computes `{}`", stage.sym))
                .instead("tensorize after reverse_compute_at"));
        }
        let ranges = inside.ranges();
        Ok((0..stage.dims.len())
            .map(|dim| {
                let column: Vec<Index> = targets.iter().map(|t| ranges.simplify(&t[dim])).collect();
                hull(&column, &inner, ranges).unwrap_or_else(|| Extent {
                    start: Index::default(),
                    length: stage.dims[dim].extent.clone(),
                })
            })
            .collect())
    }

    /// For each dimension of the stage, which loop of the consumer reads along it.
    fn used_as(&self, consumer: &Consumer, stage: &Buffer) -> Result<Vec<usize>, Diagnosis> {
        let mut dims: Option<Vec<Option<usize>>> = None;
        let mut alike = true;
        walk::for_each(&consumer.inner, &mut |s| {
            if let Stmt::Assign(a) = s {
                a.value.for_each_access(&mut |access| {
                    if access.buffer == stage.sym {
                        let var = |i: &Index| {
                            let sym = i.as_var()?;
                            consumer.vars.iter().position(|v| v == sym)
                        };
                        let here: Vec<Option<usize>> = access.index.iter().map(var).collect();
                        alike &= dims.get_or_insert_with(|| here.clone()) == &here;
                    }
                });
            }
        });
        let dims: Option<Vec<usize>> = dims.filter(|_| alike).and_then(|d| d.into_iter().collect());
        let distinct = |d: &Vec<usize>| d.iter().enumerate().all(|(i, v)| !d[..i].contains(v));
        dims.filter(distinct).ok_or_else(|| {
            self.refuse(format!("it does not read `{}` element by element along its own loops", stage.sym))
                .instead("compute_at moves the producer instead")
        })
    }

    /// Whether the loops of the path cut the consumer's domain into pieces that neither overlap nor leave a gap.
    fn check_pieces(
        &self,
        pieces: &[Option<&Extent>],
        consumer: &Consumer,
        path: &Path,
    ) -> Result<(), Diagnosis> {
        let mut used: Vec<&Sym> = Vec::new();
        for ((piece, dim), var) in pieces.iter().zip(&consumer.buffer.dims).zip(&consumer.vars) {
            let Some(piece) = piece else { continue };
            let uneven = || {
                self.refuse(format!("its loops do not cut `{var}` into pieces of one length side by side"))
                    .instead("choose factors that divide the tile around them")
            };
            let mut steps: Vec<(&Sym, i64)> = Vec::new();
            for (atom, step) in piece.start.terms() {
                let Atom::Var(sym) = atom else { return Err(uneven()) };
                steps.push((sym, *step));
            }
            steps.sort_by_key(|(_, step)| *step);
            let mut covered = piece.length.clone();
            for (sym, step) in steps {
                let trips = path.loops.iter().find(|l| l.var == *sym).and_then(trip_count);
                let (Some(trips), true) = (trips, covered.as_constant() == Some(step)) else {
                    return Err(uneven());
                };
                covered = if trips == dim.extent.ceil_div(step) {
                    dim.extent.clone()
                } else {
                    trips.as_constant().map(|t| Index::constant(t * step)).ok_or_else(uneven)?
                };
                used.push(sym);
            }
            let enough = covered == dim.extent
                || covered.as_constant().zip(dim.extent.as_constant()).is_some_and(|(c, e)| c >= e);
            if piece.start.constant_term() != 0 || !enough {
                return Err(uneven());
            }
        }
        let idle = path
            .loops
            .iter()
            .find(|l| !used.contains(&&l.var) && trip_count(l).and_then(|t| t.as_constant()) != Some(1));
        match idle {
            Some(l) => Err(self
                .refuse(format!(
                    "every iteration of `{}` goes over the same elements of `{}`, which are complete after the last",
                    l.var, self.at.label
                ))
                .instead(format!("attach it outside `{}.{}`", self.at.label, l.var))),
            None => Ok(()),
        }
    }

    /// The consumer's loops over one piece.
    fn nest(
        &self,
        consumer: &Consumer,
        pieces: &[Option<&Extent>],
        path: &Path,
        facts: &Facts,
    ) -> Result<Stmt, Diagnosis> {
        let mut facts = facts.clone();
        let fresh: Vec<Sym> = consumer.vars.iter().map(Sym::fresh).collect();
        let mut moved = Vec::new();
        let mut lengths = Vec::new();
        let mut guard = Cond::TRUE;
        for ((piece, var), dim) in pieces.iter().zip(&fresh).zip(&consumer.buffer.dims) {
            // Along a dimension that is not cut, the consumer runs over its own extent.
            let cut = piece.filter(|p| p.length.as_constant().is_some());
            let (start, length) = cut.map_or_else(
                || (Index::default(), dim.extent.clone()),
                |p| (p.start.clone(), p.length.clone()),
            );
            facts.enter_range(var, &length);
            let index = &start + &Index::var(var);
            guard = guard.and(facts.remaining(&Cond::lt(index.clone(), dim.extent.clone())));
            moved.push(index);
            lengths.push(length);
        }
        facts.assume(&guard);
        if !path.conds.iter().all(|c| facts.proves(c)) {
            return Err(self
                .refuse("that loop runs under a condition that the consumer does not have")
                .instead("attach it outside the condition"));
        }
        let vars = &consumer.vars;
        let inner = walk::substitute(&walk::refresh(&consumer.inner), &|s| {
            vars.iter().position(|v| v == s).map(|i| moved[i].clone())
        });
        let inner = if guard == Cond::TRUE {
            inner
        } else {
            vec![Stmt::If(If { cond: guard, then: inner.into(), otherwise: Body::default() })]
        };
        let nest = fresh
            .iter()
            .zip(lengths)
            .rev()
            .fold(inner, |body, (v, length)| vec![For::serial(v, Range::upto(length), body)]);
        nest.into_iter().next().ok_or_else(|| self.refuse("it has no dimension to follow that loop"))
    }

    /// The producer with the consumer's nest at the end of the attach point, and the stage shrunk to its tile.
    /// The tile is allocated there if it is to be `inside`.
    fn attached(
        &self,
        stmt: Stmt,
        nest: &Stmt,
        tile: Option<(&Buffer, &Buffer, &[Extent])>,
        inside: bool,
    ) -> Stmt {
        match stmt {
            Stmt::For(mut l) if self.at.means(&l) => {
                l.body.push(nest.clone());
                if let Some((stage, tile, region)) = tile {
                    l.body = map_elements(l.body.take(), &|access| {
                        if access.buffer == stage.sym {
                            access.buffer = tile.sym.clone();
                            access.index =
                                access.index.iter().zip(region).map(|(i, e)| i - &e.start).collect();
                        }
                    })
                    .into();
                    if inside {
                        insert_alloc(&mut l.body, tile.clone());
                    }
                }
                Stmt::For(l)
            }
            mut other => {
                for body in walk::bodies_mut(&mut other) {
                    let stmts = std::mem::take(body);
                    *body = stmts.into_iter().map(|s| self.attached(s, nest, tile, inside)).collect();
                }
                other
            }
        }
    }
}

/// The buffer of the region.
fn shrunk(stage: &Buffer, region: &[Extent]) -> Buffer {
    let dims = region.iter().map(|e| Dim::new(e.length.clone())).collect();
    Buffer { sym: stage.sym.fresh(), dims, layout: None, ..stage.clone() }
}

/// How often a loop that counts from 0 by 1 runs.
fn trip_count(l: &For) -> Option<Index> {
    match &l.range {
        Range::Span { lo, hi, step } if lo.as_constant() == Some(0) && step.as_constant() == Some(1) => {
            Some(hi.clone())
        }
        _ => None,
    }
}

fn count_writes(stmt: &Stmt, buffer: &Sym) -> usize {
    let mut count = 0;
    walk::for_each(std::slice::from_ref(stmt), &mut |s| {
        count += usize::from(matches!(s, Stmt::Assign(a) if a.target.buffer == *buffer));
    });
    count
}

impl Primitive for ReverseComputeAt {
    fn call(&self) -> Call {
        Call::new("reverse_compute_at").word(&self.consumer).target(&self.at)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        if let Some(body) = self.lists(&program.body, &Place::of(program))? {
            return none_allocated_by_blocks(program.with_body(body));
        }
        let mut exists = false;
        walk::for_each(&program.body, &mut |s| exists |= matches!(s, Stmt::For(l) if self.at.means(l)));
        if !exists {
            return Err(self.at.unknown(program));
        }
        Err(self
            .refuse(format!("nothing beside that loop computes `{}`", self.consumer))
            .instead("name a buffer that a later nest computes from the loop's own buffer"))
    }
}
