//! `compute_at`: a stage is computed where it is used, as much of it as one iteration needs.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   alloc t: f32[n] global
//!   for i in 0..n { t[i] = x[i] + x[i] }
//!   for i in 0..n { y[i] = t[i] * t[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "
//!     split(y.i, 8) -> io, ii
//!     set_scope(t, reg)
//!     compute_at(t, y.io)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n], y: out f32[n])
//! {
//!   for io in 0..ceil(n, 8) {
//!     alloc t: f32[8] reg
//!     for i in 0..8 {
//!       t[i] = (8*io + i < n ? x[8*io + i] : 0) + (8*io + i < n ? x[8*io + i] : 0)
//!     }
//!     for ii in 0..8 {
//!       if 8*io + ii < n {
//!         y[8*io + ii] = t[ii] * t[ii]
//!       }
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! Loops inside the attach point are relaxed, loops outside are fixed; the region is the hull of what is read (rule
//! 28). Where it hangs over the stage's own extents, loads are guarded by their own bounds and give 0 (or the identity
//! of a maximum or minimum), so the guards of consumers that only kept them inside are dropped with them.
//!
//! A stage in shared memory is computed by the whole block: thread loops around the attach point are first sunk below
//! it (fission), and what lives across the cut gains them as dimensions. With `private`, the outermost loop over whole
//! warps stays: each such range of threads computes what it needs itself, in a part of shared memory of its own, and
//! waits for nobody else.

mod copied;
mod guards;
mod ranges;

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::ir::{
    Access, Assign, AssignOp, Buffer, Dim, For, Mode, Program, Range, Reduction, Space, Stmt, Value, walk,
};
use crate::schedule::facts::Facts;
use crate::schedule::handle::{LoopRef, writes};
use crate::schedule::rewrite::{
    Changed, Effects, Extent, Place, at_block_scope, at_loops, guard_bounds, guarded_load, head, hull,
    insert_alloc, is_block, is_thread_like, map_elements, none_allocated_by_blocks,
};
use crate::schedule::step::Call;
use crate::sym::Sym;

use self::copied::Copied;
pub(in crate::schedule) use self::guards::for_each_guarded;
use self::guards::{clipped, deduced, follows, guard_all_loads, rewrite_values};
use self::ranges::wrap_single;
use super::Primitive;

pub(super) const USAGE: &str = "compute_at(buffer, label.loop[, private])";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct ComputeAt {
    /// The buffer that the stage computes.
    pub stage: String,
    /// The loop inside which it is computed.
    pub at: LoopRef,
    /// Whether each range of whole warps around the loop has a part of shared memory of its own.
    pub private: bool,
}

impl ComputeAt {
    pub(super) fn read(call: &Call) -> Result<ComputeAt, Diagnosis> {
        let private = match call.args.get(2) {
            None => false,
            Some(_) if call.word_at(2)? == "private" => true,
            Some(_) => return Err(call.wrong("a third argument can only be `private`")),
        };
        Ok(ComputeAt { stage: call.word_at(0)?.into(), at: call.loop_at(1)?, private })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be computed at `{}`", self.stage, self.at)).because(because)
    }

    /// Rewrites every list in which the stage is allocated.
    fn move_stages(&self, stmts: &[Stmt], place: &Place) -> Changed {
        let here = stmts.iter().position(|s| matches!(s, Stmt::Alloc(b) if b.sym.name() == self.stage));
        if let Some(at) = here {
            return self.move_stage(stmts, at, place).map(Some);
        }
        place.rebuild_all(stmts, &mut |body, place| self.move_stages(body, place))
    }

    /// Rewrites the list in which the stage is allocated at position `at`.
    fn move_stage(&self, stmts: &[Stmt], at: usize, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        let Stmt::Alloc(buffer) = &stmts[at] else { return Err(self.refuse("it is not allocated here")) };
        let mut producers = Vec::new();
        let mut rest = Vec::new();
        let (mut lets_follow, mut behind) = (false, 0);
        for (i, stmt) in stmts.iter().enumerate() {
            if i == at {
                continue;
            }
            if i > at && writes(std::slice::from_ref(stmt), &self.stage) && !lets_follow {
                producers.push(stmt.clone());
                behind = rest.len();
            } else {
                lets_follow |= i > at && mentions_buffer(stmt, &buffer.sym);
                rest.push(stmt.clone());
            }
        }
        if producers.is_empty() {
            return Err(self
                .refuse("it is not computed by loops of its own")
                .instead("it may be there already"));
        }
        let nests: Vec<(Vec<Sym>, Vec<Stmt>)> =
            producers.iter().map(|p| canonical_nest(p, buffer)).collect::<Option<_>>().ok_or_else(|| {
                self.refuse("its own loops have been changed already").instead("apply compute_at first")
            })?;
        let effects = nests.iter().map(|(_, inner)| Effects::of(inner));
        if let Some(other) =
            effects.flat_map(|e| [e.stores, e.updates].concat()).find(|written| *written != buffer.sym)
        {
            // Only what is needed of the stage would be computed there, and some of it more than once.
            return Err(self
                .refuse(format!("its loops compute `{}`, too", other.name()))
                .instead("attach it before anything else is brought into its loops"));
        }
        let users: Vec<usize> = (0..rest.len()).filter(|i| mentions_buffer(&rest[*i], &buffer.sym)).collect();
        let [user] = users[..] else {
            return Err(self.refuse(format!("it is used by {} statements, not by one nest", users.len())));
        };
        if !self.encloses_all_uses(&rest[user], &buffer.sym) {
            return Err(self.refuse("it is also read outside that loop").instead("attach it further out"));
        }
        self.check_what_it_reads(&nests, &rest[behind.min(user)..=user], place)?;
        let mut consumer = rest[user].clone();
        if self.private {
            self.check_private(buffer, &consumer, place)?;
        } else if buffer.space != Space::Reg && place.outer().iter().any(|l| is_thread_like(l.mode)) {
            return Err(self.refuse("it stands inside a thread loop").instead("stage it into registers"));
        }
        if buffer.space != Space::Reg {
            consumer = self.sink_threads(consumer, place)?;
        }
        let attach = Attach { step: self, buffer, nests: &nests, place };
        let moved = attach.attach_to(consumer)?;
        rest.splice(user..=user, moved);
        Ok(rest)
    }

    /// Whether nothing that a stage reads of other stages is overwritten by what it would then be computed behind or among, as where
    /// a later stage has taken the room of an earlier one.
    fn check_what_it_reads(
        &self,
        nests: &[(Vec<Sym>, Vec<Stmt>)],
        behind: &[Stmt],
        place: &Place,
    ) -> Result<(), Diagnosis> {
        let buffers = place.program.buffers();
        let overwritten =
            |read: &Sym| behind.iter().any(|stmt| Effects::of(std::slice::from_ref(stmt)).writes(read));
        let lost = nests.iter().flat_map(|(_, inner)| Effects::of(inner).reads).find(|read| {
            overwritten(read) && buffers.get(read).is_some_and(|b| !matches!(b.space, Space::Param(_)))
        });
        match lost {
            Some(read) => Err(self
                .refuse(format!("`{}`, which it reads, is overwritten there", read.name()))
                .instead("attach it before storage_share")),
            None => Ok(()),
        }
    }

    fn encloses_all_uses(&self, stmt: &Stmt, buffer: &Sym) -> bool {
        match stmt {
            Stmt::For(l) if self.at.means(l) => true,
            Stmt::Assign(_) | Stmt::Instruction(_) => !mentions_buffer(stmt, buffer),
            _ => walk::bodies(stmt).flatten().all(|s| self.encloses_all_uses(s, buffer)),
        }
    }
}

fn mentions_buffer(stmt: &Stmt, buffer: &Sym) -> bool {
    crate::schedule::rewrite::mentions(std::slice::from_ref(stmt), buffer)
}

/// If a statement is one loop for each dimension of the buffer, in order and over its extents, and every write inside
/// is to the element at those loops: the loop variables and the statements inside.
pub(super) fn canonical_nest(stmt: &Stmt, buffer: &Buffer) -> Option<(Vec<Sym>, Vec<Stmt>)> {
    let mut vars = Vec::new();
    let mut body = std::slice::from_ref(stmt);
    for dim in &buffer.dims {
        let [Stmt::For(l)] = body else { return None };
        let whole = matches!(&l.range, Range::Span { lo, hi, step }
            if lo.as_constant() == Some(0) && *hi == dim.extent && step.as_constant() == Some(1));
        if !whole || l.mode != Mode::Serial {
            return None;
        }
        vars.push(l.var.clone());
        body = &l.body;
    }
    let index: Vec<Index> = vars.iter().map(Index::var).collect();
    let mut canonical = true;
    walk::for_each(body, &mut |s| {
        if let Stmt::Assign(a) = s {
            canonical &= a.target.buffer != buffer.sym || a.target.index == index;
        }
    });
    canonical.then(|| (vars, body.to_vec()))
}

/// The attaching of one stage to one consumer.
struct Attach<'a> {
    step: &'a ComputeAt,
    buffer: &'a Buffer,
    nests: &'a [(Vec<Sym>, Vec<Stmt>)],
    place: &'a Place<'a>,
}

impl Attach<'_> {
    fn attach_to(&self, consumer: Stmt) -> Result<Vec<Stmt>, Diagnosis> {
        let program = Program {
            body: match consumer {
                Stmt::If(i) if i.cond == Cond::TRUE => i.then.into(),
                other => vec![other],
            },
            ..self.place.program.clone()
        };
        let mut buffers = self.place.program.buffers();
        buffers.extend(program.buffers());
        let mut shared: Vec<Buffer> = Vec::new();
        let moved = at_loops(&program, &self.step.at, &mut |l, inner| {
            if !mentions_buffer(&Stmt::For(l.clone()), &self.buffer.sym) {
                return Ok(vec![Stmt::For(l)]);
            }
            let vector = |o: &For| matches!(o.mode, Mode::Vector);
            if vector(&l) || inner.outer().into_iter().any(vector) {
                return Err(self
                    .step
                    .refuse("a vector loop holds one assignment and nothing else")
                    .instead("compute it at a loop around, or vectorize afterwards"));
            }
            // `inner` knows what stands inside the consumer, `place` what stands around it.
            let mut facts = self.place.facts();
            inner.outer().iter().for_each(|o| facts.enter(o));
            facts.enter(&l);
            let (alloc, body) = self.attach(l.body.to_vec(), &facts, &buffers)?;
            let mut body = body;
            let of_block = inner.outer().into_iter().chain(self.place.outer()).any(is_block);
            if self.buffer.space != Space::Shared || !of_block || self.step.private {
                insert_alloc(&mut body, alloc);
            } else if let Some(same) = shared.iter().find(|s| s.dims == alloc.dims) {
                let same = Index::var(&same.sym);
                body = walk::substitute(&body, &|s| (*s == alloc.sym).then(|| same.clone()));
            } else {
                shared.push(alloc);
            }
            Ok(vec![Stmt::For(For { body: body.into(), ..head(&l) })])
        })?;
        let mut stmts = moved.body;
        for alloc in shared.into_iter().rev() {
            if self.place.outer().into_iter().any(is_block) {
                insert_alloc(&mut stmts, alloc);
            } else {
                stmts = at_block_scope(stmts, &alloc);
            }
        }
        Ok(stmts)
    }

    /// The buffer of the region and the statements that compute and use it.
    fn attach(
        &self,
        body: Vec<Stmt>,
        facts: &Facts,
        buffers: &HashMap<Sym, Buffer>,
    ) -> Result<(Buffer, Vec<Stmt>), Diagnosis> {
        let source = self.source(buffers);
        let region = self.region(&body, facts, source)?;
        let mut tile = self.buffer.clone();
        tile.sym = tile.sym.fresh();
        tile.dims = region.iter().map(|e| Dim::new(e.length.clone())).collect();
        let fill = identity_for(&body, &self.buffer.sym);
        // Directly before the first use, so that stages stand in the order in which they were attached.
        let first_use = body.iter().position(|s| mentions_buffer(s, &self.buffer.sym)).unwrap_or(0);
        let mut out = self.consumer(body, &region, &tile, facts, buffers, fill);
        let nests = self
            .nests
            .iter()
            .map(|(vars, inner)| self.producer(vars, inner, &region, &tile, facts, buffers, fill));
        let nests: Result<Vec<Stmt>, Diagnosis> = nests.collect();
        out.splice(first_use..first_use, nests?);
        Ok((tile, out))
    }

    /// The loops of the stage over the region.
    #[expect(clippy::too_many_arguments, reason = "one place, all of it needed")]
    fn producer(
        &self,
        vars: &[Sym],
        inner: &[Stmt],
        region: &[Extent],
        tile: &Buffer,
        facts: &Facts,
        buffers: &HashMap<Sym, Buffer>,
        fill: f64,
    ) -> Result<Stmt, Diagnosis> {
        let mut facts = facts.clone();
        let fresh: Vec<Sym> = vars.iter().map(Sym::fresh).collect();
        fresh.iter().zip(region).for_each(|(v, e)| facts.enter_range(v, &e.length));
        let moved: Vec<Index> = fresh.iter().zip(region).map(|(v, e)| &e.start + &Index::var(v)).collect();
        let inner = walk::refresh(inner);
        let inner = walk::substitute(&inner, &|s| vars.iter().position(|v| v == s).map(|i| moved[i].clone()));
        let local: Vec<Index> = fresh.iter().map(Index::var).collect();
        let inner = map_elements(inner, &|access| {
            if access.buffer == self.buffer.sym {
                *access = Access::new(&tile.sym, local.clone());
            }
        });
        let hangs_over = moved.iter().zip(&self.buffer.dims).any(|(i, d)| {
            !facts.proves(&Cond::lt(i.clone(), d.extent.clone()))
                || !facts.proves(&Cond::le(0.into(), i.clone()))
        });
        if hangs_over && !parts_exist(&inner, &facts) {
            return Err(self
                .step
                .refuse("one iteration there may need more parts of a reduction than there are")
                .instead("split that reduction with order=cyclic, or apply compute_at before its parts are grouped"));
        }
        let mut others = buffers.clone();
        others.remove(&tile.sym);
        let inner = match self.copied() {
            _ if !hangs_over => inner,
            // All rows are in the source, and what would lie behind the end of one is the start of the next.
            Some(Copied::InRows) => {
                let inside = guard_bounds(&Access::new(&self.buffer.sym, moved), self.buffer, &facts);
                rewrite_values(inner, &facts, &|value, _| {
                    let fill = Box::new(Value::Const(fill));
                    Some(Value::Select(inside.clone(), Box::new(value.clone()), fill))
                })
            }
            // Behind the last row the source has ended, so whoever asks for an element of such a row finds 0. That there is
            // nothing before the first row, nor behind the last piece or element of a row, has to be said.
            Some(Copied::InPieces { .. } | Copied::WithRest { .. }) => {
                let mut rows = self.buffer.clone();
                rows.dims[0] = Dim::new(&moved[0] + &1.into());
                let inside = guard_bounds(&Access::new(&rows.sym, moved), &rows, &facts);
                rewrite_values(inner, &facts, &|value, _| {
                    let fill = Box::new(Value::Const(fill));
                    let keeps = inside == Cond::TRUE;
                    (!keeps).then(|| Value::Select(inside.clone(), Box::new(value.clone()), fill))
                })
            }
            _ => guard_all_loads(inner, &others, &facts, fill),
        };
        let nest = fresh
            .iter()
            .zip(region)
            .rev()
            .fold(inner, |inner, (v, e)| vec![For::serial(v, Range::upto(e.length.clone()), inner)]);
        Ok(wrap_single(nest))
    }

    /// The use of the stage, reading the region.
    fn consumer(
        &self,
        body: Vec<Stmt>,
        region: &[Extent],
        tile: &Buffer,
        facts: &Facts,
        buffers: &HashMap<Sym, Buffer>,
        fill: f64,
    ) -> Vec<Stmt> {
        let source = self.source(buffers);
        let relocate = |access: &Access| {
            let index = access.index.iter().zip(region).map(|(i, e)| i - &e.start).collect();
            Access { buffer: tile.sym.clone(), index }
        };
        rewrite_values(body, facts, &|value, facts| {
            let (cond, access, present) = guarded_load(value)?;
            if access.buffer != self.buffer.sym {
                return None;
            }
            let load = Value::Load(relocate(access));
            if cond == Cond::TRUE {
                return Some(load);
            }
            if let Some(origin) = source
                && present == fill
                && self.copied().is_some_and(|copied| copied.fills_with(present))
                && self.is_of_its_row(&access.index, facts)
            {
                let bounds = self.exists(origin, &access.index, facts);
                let mut inside = facts.clone();
                inside.assume(&bounds);
                let implied = |c: &&Cond| {
                    inside.proves(c)
                        || follows(&facts.ranges().simplify_cond(c), &bounds, facts)
                        || deduced(c, &bounds, facts)
                };
                let (filled, asked): (Vec<_>, Vec<_>) = cond.conjuncts().iter().partition(implied);
                if !filled.is_empty() {
                    // What was filled is part of the region, except along dimensions that are kept whole.
                    let left = guard_bounds(&self.along_whole_dims(access, region, tile), tile, facts);
                    let cond = asked.into_iter().cloned().fold(left, Cond::and);
                    if cond == Cond::TRUE {
                        return Some(load);
                    }
                    return Some(Value::Select(cond, Box::new(load), Box::new(Value::Const(present))));
                }
            }
            Some(Value::Select(cond, Box::new(load), Box::new(Value::Const(present))))
        })
    }

    /// The access in the region with the first index in place of those that are inside it by its making.
    fn along_whole_dims(&self, access: &Access, region: &[Extent], tile: &Buffer) -> Access {
        let whole = |dim: usize| {
            region[dim].start == Index::default() && region[dim].length == self.buffer.dims[dim].extent
        };
        let index = access.index.iter().enumerate();
        let index = index.map(|(dim, i)| if whole(dim) { i.clone() } else { Index::default() }).collect();
        Access { buffer: tile.sym.clone(), index }
    }

    /// If the stage is a plain copy, the buffer whose bounds say which of its elements exist.
    fn source<'b>(&'b self, buffers: &'b HashMap<Sym, Buffer>) -> Option<&'b Buffer> {
        match self.copied()? {
            Copied::AsIs(source) => buffers.get(source),
            Copied::InRows | Copied::WithRest { .. } | Copied::InPieces { .. } => Some(self.buffer),
        }
    }

    /// That the stage, a plain copy, has a number at this index, other than the one with which it is filled: that its `origin` does.
    fn exists(&self, origin: &Buffer, index: &[Index], facts: &Facts) -> Cond {
        let there = Access { buffer: origin.sym.clone(), index: index.to_vec() };
        let bounds = guard_bounds(&there, origin, facts);
        match (self.copied(), self.nests) {
            (Some(Copied::WithRest { exists, .. }), [(vars, _)]) => {
                let at = |s: &Sym| vars.iter().position(|v| v == s).map(|dim| index[dim].clone());
                bounds.and(exists.substitute(&at))
            }
            _ => bounds,
        }
    }

    /// Whether what is read is certainly no element that a piece has of the row before: there are such elements behind the last row.
    fn is_of_its_row(&self, index: &[Index], facts: &Facts) -> bool {
        let (Some(Copied::InPieces { columns, piece }), [r, p, v]) = (self.copied(), index) else {
            return true;
        };
        let element = facts.ranges().simplify(&(&p.scaled(piece) + v));
        facts.proves(&Cond::le(r.scaled(columns).rem(piece), element))
    }

    /// If the stage is a plain copy, of what.
    fn copied(&self) -> Option<Copied<'_>> {
        Copied::of(self.buffer, self.nests)
    }

    /// The hull of what a body reads of the stage.
    fn region(
        &self,
        body: &[Stmt],
        facts: &Facts,
        source: Option<&Buffer>,
    ) -> Result<Vec<Extent>, Diagnosis> {
        let mut inside = facts.clone();
        let mut inner: Vec<Sym> = Vec::new();
        let mut lets: HashMap<Sym, Index> = HashMap::new();
        let mut accesses: Vec<Vec<Index>> = Vec::new();
        let mut windows = false;
        walk::for_each(body, &mut |stmt| match stmt {
            Stmt::For(l) => {
                inside.enter(l);
                inner.push(l.var.clone());
            }
            Stmt::Own(o) => inner.extend(o.vars.iter().cloned()),
            Stmt::Tasks(t) => {
                t.vars.iter().zip(&t.extents).for_each(|(v, e)| inside.enter_range(v, e));
                inner.extend(t.vars.iter().cloned());
            }
            Stmt::Let(sym, value) => {
                lets.insert(sym.clone(), value.substitute(&|s| lets.get(s).cloned()));
            }
            Stmt::Assign(a) => for_each_guarded(&a.value, &Cond::TRUE, &mut |access, guard| {
                if access.buffer == self.buffer.sym {
                    let with_lets = |i: &Index| i.substitute(&|s| lets.get(s).cloned());
                    let guard = guard.substitute(&|s| lets.get(s).cloned());
                    let index: Vec<Index> = access.index.iter().map(with_lets).collect();
                    // What the bounds of the source keep out is filled as part of the region.
                    let filled =
                        source.filter(|_| self.is_of_its_row(&index, &inside)).is_some_and(|origin| {
                            let mut facts = inside.clone();
                            let bounds = self.exists(origin, &index, &inside);
                            facts.assume(&bounds);
                            let implied = |c: &Cond| facts.proves(c) || deduced(c, &bounds, &inside);
                            guard.conjuncts().iter().all(implied)
                        });
                    let mut clip = |i: &Index| clipped(i, &guard, &mut inside, &mut inner);
                    accesses.push(if filled { index } else { index.iter().map(&mut clip).collect() });
                }
            }),
            Stmt::Instruction(_) => windows |= mentions_buffer(stmt, &self.buffer.sym),
            _ => {}
        });
        if windows {
            return Err(self.step.refuse("an instruction uses it").instead("tensorize after compute_at"));
        }
        let ranges = inside.ranges();
        Ok((0..self.buffer.dims.len())
            .map(|dim| {
                let column: Vec<Index> = accesses.iter().map(|a| ranges.simplify(&a[dim])).collect();
                hull(&column, &inner, ranges).unwrap_or_else(|| Extent {
                    start: Index::default(),
                    length: self.buffer.dims[dim].extent.clone(),
                })
            })
            .collect())
    }
}

/// What a consumer's reduction does not see: the identity of a maximum or minimum that reads the buffer, else 0.
fn identity_for(body: &[Stmt], buffer: &Sym) -> f64 {
    let mut identity = Reduction::Sum.identity();
    walk::for_each(body, &mut |stmt| {
        if let Stmt::Assign(Assign { op: AssignOp::Reduce(r), value, .. }) = stmt {
            value.for_each_access(&mut |a| {
                if a.buffer == *buffer {
                    identity = r.identity();
                }
            });
        }
    });
    identity
}

/// Whether each part that loops run over is one of those that there are, wherever the statements stand in `facts`.
fn parts_exist(stmts: &[Stmt], facts: &Facts) -> bool {
    stmts.iter().all(|stmt| {
        let mut inside = facts.clone();
        if let Stmt::For(l) = stmt {
            let exists = |index: &Index, parts: &Index| {
                facts.proves(&Cond::le(0.into(), index.clone()))
                    && facts.proves(&Cond::lt(index.clone(), parts.clone()))
            };
            if matches!(&l.range, Range::Part { index, parts, .. } if !exists(index, parts)) {
                return false;
            }
            inside.enter(l);
        }
        walk::bodies(stmt).all(|body| parts_exist(body, &inside))
    })
}

impl Primitive for ComputeAt {
    fn call(&self) -> Call {
        let call = Call::new("compute_at").word(&self.stage).target(&self.at);
        if self.private { call.word("private") } else { call }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        match self.move_stages(&program.body, &Place::of(program))? {
            Some(body) => none_allocated_by_blocks(program.with_body(body)),
            None => Err(Diagnosis::new(format!("there is no intermediate buffer `{}`", self.stage))
                .instead("cache_read and cache_write make one")),
        }
    }
}
