//! `split_reduce`: a reduction becomes several partial ones, which can run side by side, and their combination.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(M: size, K: size, A: in f32[M, K], C: out f32[M]) {
//!   for i in 0..M {
//!     C[i] = 0
//!     for k in 0..K { C[i] += A[i, k] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "split_reduce(C.k, 4) -> part, s").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(M: size, K: size,
//!     A: in f32[M, K], C: out f32[M])
//! {
//!   alloc part: f32[4, M] global
//!   for s in 0..4, i in 0..M {
//!     part[s, i] = 0
//!     for k in part(s, 4) 0..K {
//!       part[s, i] += A[i, k]
//!     }
//!   }
//!   for i in 0..M {
//!     C[i] = 0
//!     for s in 0..4 {
//!       C[i] += part[s, i]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! The number of parts belongs to the schedule, never to the launch, so the result has the same bits on every grid
//! (rule 32). The parts are contiguous and balanced, or, with `order=cyclic`, take turns. Both
//! nests are ordinary stages: bind `part.s` to blocks, compute the parts in registers with `cache_write`, move the
//! stages with `compute_at`. How the parts come together is the choice of `combine`:
//!
//! - `two_pass`: they are kept in device memory and added in order by a second launch.
//! - `shared`: the same in shared memory: one block computes and adds them; attach the partial stage to a block loop.
//! - `shuffle`: 32 parts are computed by the lanes of a warp, in registers, and added by shuffles, always in the same
//!   order. Bind the loops around them to warps (`threads@32`) or blocks, and bring what uses the result to the lane
//!   that has it: `reverse_compute_at(C, acc.s)`.
//! - `shared_atomic`: the result of the stage moves to shared memory, and the parts are added to it atomically. The
//!   loops of its initial store get a 0 to their names (`i0`), so that they can be bound on their own.
//! - `atomic`: they are added to the result atomically, in any order. What the result is besides is stored first, by a
//!   launch of its own, so the reduction must enter the result linearly: `C = alpha sum + beta C` does. The loops of
//!   that launch, too, get a 0 to their names.
//!
//! Ways of combining nest: after `split_reduce(acc.ko, 8, combine=atomic) -> part, s` blocks add to the result;
//! `rfactor(part.t, combine=shared_atomic) -> mine` lets the threads of each block add to `part` first, and
//! `rfactor(part.t, combine=atomic) -> mine` lets them, too, add to the result.
//!
//! `rfactor(label.loop)` takes the iterations of a loop as the parts: after `split(C.k, 4) -> ko, s` it does what
//! TVM's primitive of that name does.
//!
//! The reduction must be a sum, maximum or minimum into an element that starts as its identity, and its stage must not
//! have been moved or reordered yet.

mod atomic;
mod shuffle;

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{
    Access, Assign, AssignOp, Buffer, Dim, For, Mode, Program, Range, Reduction, Space, Stmt, Value, walk,
};
use crate::schedule::handle::{LoopRef, written};
use crate::schedule::rewrite::{count_uses, head, map_elements, none_allocated_by_blocks};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;
use super::compute_at::canonical_nest;

pub(super) const USAGE: &str = "split_reduce(label.loop, parts [, combine=two_pass|shared|shuffle|shared_atomic|atomic] [, order=contiguous|cyclic]) -> partial, loop";
pub(super) const RFACTOR_USAGE: &str =
    "rfactor(label.loop [, combine=two_pass|shared|shuffle|shared_atomic|atomic]) -> partial";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct SplitReduce {
    /// The loop of the reduction.
    pub target: LoopRef,
    /// Which iterations belong to a part.
    pub parts: Parts,
    /// How the parts come together.
    pub combine: Combine,
    /// The name of the partial results.
    pub partial: String,
    /// The name of the loop over the parts.
    pub name: String,
}

/// Which iterations of a reduction belong to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// This many balanced contiguous pieces.
    Contiguous(i64),
    /// One in so many iterations.
    Cyclic(i64),
    /// Each iteration is a part: `rfactor`.
    Each,
}

/// How partial results come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// In order, by a second launch.
    TwoPass,
    /// In order, in the shared memory of a block.
    Shared,
    /// By shuffles among the lanes of a warp.
    Shuffle,
    /// By atomic additions in the shared memory of a block.
    SharedAtomic,
    /// By atomic additions to the result.
    Atomic,
}

impl Combine {
    const ALL: [(Combine, &'static str); 5] = [
        (Combine::TwoPass, "two_pass"),
        (Combine::Shared, "shared"),
        (Combine::Shuffle, "shuffle"),
        (Combine::SharedAtomic, "shared_atomic"),
        (Combine::Atomic, "atomic"),
    ];

    fn read(call: &Call) -> Result<Combine, Diagnosis> {
        let Some(wanted) = call.option_of("combine") else { return Ok(Combine::TwoPass) };
        let found = Combine::ALL.iter().find(|(_, name)| *name == wanted);
        found.map(|(c, _)| *c).ok_or_else(|| call.wrong(&format!("parts cannot be combined by `{wanted}`")))
    }

    fn write(self, call: Call) -> Call {
        let name = Combine::ALL.iter().find(|(c, _)| *c == self).map_or("", |(_, name)| name);
        if self == Combine::TwoPass { call } else { call.option("combine", name) }
    }
}

impl SplitReduce {
    pub(super) fn read(call: &Call) -> Result<SplitReduce, Diagnosis> {
        let (target, parts) = (call.loop_at(0)?, call.int_at(1)?);
        if !(1..=1 << 20).contains(&parts) {
            return Err(call.wrong("the number of parts must be from 1 to 1048576"));
        }
        let parts = match call.option_of("order") {
            None | Some("contiguous") => Parts::Contiguous(parts),
            Some("cyclic") => Parts::Cyclic(parts),
            Some(_) => return Err(call.wrong("there is no such order")),
        };
        let [partial, name] = call.results(2)? else { return Err(call.wrong("two names must follow `->`")) };
        let (partial, name) = (partial.clone(), name.clone());
        Ok(SplitReduce { target, parts, combine: Combine::read(call)?, partial, name })
    }

    pub(super) fn read_rfactor(call: &Call) -> Result<SplitReduce, Diagnosis> {
        let target = call.loop_at(0)?;
        let (partial, name) = (call.results(1)?[0].clone(), target.name.clone());
        Ok(SplitReduce { target, parts: Parts::Each, combine: Combine::read(call)?, partial, name })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("the reduction over `{}` cannot be split", self.target)).because(because)
    }

    /// Rewrites every list in which a stage with the loop stands.
    fn lists(&self, stmts: &[Stmt], program: &Program, count: &mut usize) -> Result<Vec<Stmt>, Diagnosis> {
        if let Some(at) = stmts.iter().position(|s| self.is_stage(s)) {
            *count += 1;
            return self.stage(stmts, at, program);
        }
        let mut out = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            let mut stmt = stmt.clone();
            if let Stmt::If(i) = &mut stmt {
                i.then = self.lists(&i.then, program, count)?.into();
                i.otherwise = self.lists(&i.otherwise, program, count)?.into();
            }
            out.push(stmt);
        }
        Ok(out)
    }

    fn is_stage(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        walk::for_each(std::slice::from_ref(stmt), &mut |s| {
            if let Stmt::For(l) = s {
                found |= self.target.means(l);
            }
        });
        found && !matches!(stmt, Stmt::If(_))
    }

    fn stage(&self, stmts: &[Stmt], at: usize, program: &Program) -> Result<Vec<Stmt>, Diagnosis> {
        let changed =
            || self.refuse("its stage has been moved or reordered").instead("apply split_reduce before");
        let buffer = written(&stmts[at], &self.target.label, program).ok_or_else(changed)?;
        let (vars, inner) = canonical_nest(&stmts[at], &buffer).ok_or_else(changed)?;
        let reduction = self.reduction(&inner, &buffer)?;
        let (s, count, inner) = self.one_part(&inner, &vars)?;
        let mut dims = vec![Dim::new(count.clone())];
        dims.extend(buffer.dims.iter().map(|d| Dim::new(d.extent.clone())));
        let space = if self.combine == Combine::Shared { Space::Shared } else { Space::Global };
        let partial = Buffer::new(Sym::new(&self.partial), buffer.dtype, dims, space);
        let of_part = map_elements(inner, &|access| {
            if access.buffer == buffer.sym {
                access.buffer = partial.sym.clone();
                access.index.insert(0, Index::var(&s));
            }
        });
        let parts = PartialSums { buffer, partial, reduction, vars, count, name: &self.name };
        if self.combine == Combine::Shuffle {
            let nest = shuffle::combine(&parts, &s, of_part).map_err(|because| self.refuse(because))?;
            return Ok([&stmts[..at], &[nest], &stmts[at + 1..]].concat());
        }
        let nest = parts.nest(&parts.vars, of_part);
        let nest = walk::refresh(&[For::serial(&s, Range::upto(parts.count.clone()), nest)]);
        let combined = match self.combine {
            Combine::Atomic => {
                return atomic::combine(stmts, at, nest, &parts, program).map_err(|because| {
                    self.refuse(because).instead("use combine=two_pass, which adds the parts first")
                });
            }
            Combine::SharedAtomic => atomic::in_shared(&parts).map_err(|because| self.refuse(because))?,
            Combine::TwoPass | Combine::Shared | Combine::Shuffle => [Vec::new(), parts.in_order()],
        };
        let [first, last] = combined;
        let alloc = Stmt::Alloc(parts.partial.clone());
        let mut out = [&stmts[..at], &[alloc], &first, &nest, &last, &stmts[at + 1..]].concat();
        if self.combine == Combine::SharedAtomic {
            let allocated = out.iter_mut().find_map(|s| match s {
                Stmt::Alloc(b) if b.sym == parts.buffer.sym => Some(b),
                _ => None,
            });
            let Some(buffer) = allocated else {
                let because =
                    format!("`{}` is itself a result, not a sum in shared memory", parts.buffer.sym);
                return Err(self
                    .refuse(because)
                    .instead("use combine=atomic, or two of them, one in the other"));
            };
            buffer.space = Space::Shared;
        }
        Ok(out)
    }

    /// What the stage reduces by, if it does nothing else, and all of it inside the loop.
    fn reduction(&self, inner: &[Stmt], buffer: &Buffer) -> Result<Reduction, Diagnosis> {
        let mut found: Vec<Reduction> = Vec::new();
        let mut plain = true;
        walk::for_each(inner, &mut |stmt| match stmt {
            Stmt::Assign(a) => {
                a.value.for_each_access(&mut |access| plain &= access.buffer != buffer.sym);
                plain &= a.target.buffer == buffer.sym;
                if let AssignOp::Reduce(r) = a.op {
                    found.push(r);
                }
            }
            Stmt::For(_) | Stmt::If(_) | Stmt::Let(..) => {}
            _ => plain = false,
        });
        let inside = count_uses(&self.body_of_target(inner), &buffer.sym);
        let Some(reduction) = found.first().copied().filter(|r| found.iter().all(|f| f == r)) else {
            return Err(self.refuse("its stage does not reduce by one operation"));
        };
        let starts = matches!(inner.first(), Some(Stmt::Assign(Assign { op: AssignOp::Store, value: Value::Const(c), .. }))
            if *c == reduction.identity());
        if !plain || !starts || inside != found.len() {
            return Err(self.refuse(
                "its stage is not an initial store of the identity and one reduction inside the loop",
            ));
        }
        Ok(reduction)
    }

    fn body_of_target(&self, inner: &[Stmt]) -> Vec<Stmt> {
        let mut body = Vec::new();
        walk::for_each(inner, &mut |stmt| {
            if let Stmt::For(l) = stmt
                && self.target.means(l)
            {
                body.extend(l.body.iter().cloned());
            }
        });
        body
    }

    /// The statements of one part, with the variable that numbers parts and their count; `vars` are the loops of the
    /// stage.
    fn one_part(&self, inner: &[Stmt], vars: &[Sym]) -> Result<(Sym, Index, Vec<Stmt>), Diagnosis> {
        let s = Sym::new(&self.name);
        let index = Index::var(&s);
        let bound = [walk::binders(inner), vars.to_vec()].concat();
        let mut count = None;
        let mut failure = None;
        let body = walk::rewrite(inner.to_vec(), &mut |stmt| match stmt {
            Stmt::For(l) if self.target.means(&l) => match self.restrict(l.clone(), &index, &bound) {
                Ok((stmts, parts)) => {
                    if count.as_ref().is_some_and(|others| *others != parts) {
                        failure = Some(
                            self.refuse("it is several loops, each with iterations of its own")
                                .instead("apply it before the loop is peeled, or give a number of parts"),
                        );
                    }
                    count = Some(parts);
                    stmts
                }
                Err(diagnosis) => {
                    failure = Some(diagnosis);
                    vec![Stmt::For(l)]
                }
            },
            other => vec![other],
        });
        match (failure, count) {
            (Some(diagnosis), _) => Err(diagnosis),
            (None, Some(count)) => Ok((s, count, body)),
            (None, None) => Err(self.refuse("the loop is not part of it")),
        }
    }

    /// The loop over the iterations of one part.
    fn restrict(&self, l: For, s: &Index, bound: &[Sym]) -> Result<(Vec<Stmt>, Index), Diagnosis> {
        let Range::Span { lo, hi, step } = l.range.clone() else {
            return Err(self.refuse("the loop runs over a list or a part already"));
        };
        if l.mode != Mode::Serial || step.as_constant() != Some(1) || l.counting.is_some() {
            return Err(self
                .refuse("the loop is bound, unrolled or strided already")
                .instead("split it before"));
        }
        let with = |value: Index| walk::substitute(&l.body, &|v| (*v == l.var).then(|| value.clone()));
        match self.parts {
            Parts::Contiguous(parts) => {
                let range = Range::Part { index: s.clone(), parts: parts.into(), lo, hi };
                Ok((vec![Stmt::For(For { range, ..l })], parts.into()))
            }
            Parts::Cyclic(parts) => {
                let turn = l.var.fresh();
                let body = with(&(&lo + &Index::var(&turn).scaled(parts)) + s);
                let range = Range::upto((&(&hi - &lo) - s).ceil_div(parts));
                Ok((vec![Stmt::For(For { var: turn, range, body: body.into(), ..head(&l) })], parts.into()))
            }
            Parts::Each => {
                if bound.iter().any(|v| lo.mentions(v) || hi.mentions(v)) {
                    return Err(self.refuse("the bounds of the loop depend on a loop around it"));
                }
                Ok((with(&lo + s), &hi - &lo))
            }
        }
    }
}

/// The parts of a reduction, to be combined.
struct PartialSums<'a> {
    /// The result.
    buffer: Buffer,
    /// The parts.
    partial: Buffer,
    reduction: Reduction,
    /// The loops of the result's stage.
    vars: Vec<Sym>,
    /// The number of parts.
    count: Index,
    /// The name of the loop over the parts.
    name: &'a str,
}

impl PartialSums<'_> {
    /// Loops over the result, one for each of its dimensions.
    fn nest(&self, vars: &[Sym], inner: Vec<Stmt>) -> Vec<Stmt> {
        let loops = vars.iter().zip(&self.buffer.dims).rev();
        loops.fold(inner, |body, (v, d)| vec![For::serial(v, Range::upto(d.extent.clone()), body)])
    }

    /// `acc[i, j] = 0`
    fn start(&self, vars: &[Sym]) -> Stmt {
        self.assign(vars, AssignOp::Store, false, Value::Const(self.reduction.identity()))
    }

    /// `for s { acc[i, j] += part[s, i, j] }`
    fn add(&self, vars: &[Sym], atomic: bool) -> Stmt {
        let s = Sym::new(self.name);
        let part = std::iter::once(&s).chain(vars).map(Index::var).collect();
        let value = Value::load(&self.partial.sym, part);
        let add = self.assign(vars, AssignOp::Reduce(self.reduction), atomic, value);
        For::serial(&s, Range::upto(self.count.clone()), vec![add])
    }

    fn assign(&self, vars: &[Sym], op: AssignOp, atomic: bool, value: Value) -> Stmt {
        let target = Access::new(&self.buffer.sym, vars.iter().map(Index::var).collect());
        Stmt::Assign(Assign { target, op, atomic, value })
    }

    /// `for i, j { acc[i, j] = 0; for s { acc[i, j] += part[s, i, j] } }`
    fn in_order(&self) -> Vec<Stmt> {
        let vars: Vec<Sym> = self.vars.iter().map(Sym::fresh).collect();
        self.nest(&vars, vec![self.start(&vars), self.add(&vars, false)])
    }
}

impl Primitive for SplitReduce {
    fn call(&self) -> Call {
        match self.parts {
            Parts::Each => {
                let call = Call::new("rfactor").target(&self.target);
                self.combine.write(call).gives([&self.partial])
            }
            Parts::Contiguous(parts) | Parts::Cyclic(parts) => {
                let call = Call::new("split_reduce").target(&self.target).int(parts);
                let call = self.combine.write(call);
                let cyclic = matches!(self.parts, Parts::Cyclic(_));
                let call = if cyclic { call.option("order", "cyclic") } else { call };
                call.gives([&self.partial, &self.name])
            }
        }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        if program.buffers().values().any(|b| b.sym.name() == self.partial) {
            return Err(Diagnosis::new(format!("there is a buffer `{}` already", self.partial))
                .instead("choose another name"));
        }
        let mut count = 0;
        let body = self.lists(&program.body, program, &mut count)?;
        if count == 0 {
            return Err(self.target.unknown(program));
        }
        none_allocated_by_blocks(program.with_body(body))
    }
}
