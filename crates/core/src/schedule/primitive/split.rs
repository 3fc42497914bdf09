//! `split`: one loop becomes two.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   for i in 0..n { y[i] = x[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "split(y.i, 32) -> io, ii").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n], y: out f32[n])
//! {
//!   for io in 0..ceil(n, 32), ii in 0..32 {
//!     if 32*io + ii < n {
//!       y[32*io + ii] = x[32*io + ii]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! Where the factor is not known to divide, a tail remains. `tail=guard`, the rule for loops over the result, guards
//! the leaves. `tail=fill`, the rule for reduction loops, lets the extra iterations run and gives every operand of
//! the reduction the value that the reduction does not see: 0 where products are summed. `nparts` splits into a given
//! number of outer iterations and needs a constant extent.
//!
//! Parts that are all of one length leave little for the last: of 13 tiles four warps take 4, 4, 4 and 1. With `even` the parts differ by one
//! piece of so many iterations at most, and the outer loop has a constant number of iterations again.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! # let before = parse::program("program p(x: in f32[100], y: out f32[100]) {
//! #   for i in 0..100 { y[i] = x[i] }
//! # }").unwrap();
//! // 100 iterations are 13 pieces of 8, the last of which is short: 3, 3, 3 and 4.
//! let after = Schedule::run(before, "split(y.i, nparts=4, even=8) -> p, i").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(x: in f32[100], y: out f32[100])
//! {
//!   for p in 0..4, i in 0..32 {
//!     if 8*((13*p)/4) + i < 8*((13*p + 1)/4) + 24 && 8*((13*p)/4) + i < 100 {
//!       y[8*((13*p)/4) + i] = x[8*((13*p)/4) + i]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! The last variable of a loop over owned elements goes by runs then: its owner does the elements of each in a loop of
//! their own, which can become one wide access. The fragment has to give runs of so many neighbours to one thread.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! # let before = parse::program("program p(C: out f64[16, 8]) {
//! #   for b in block.x(1) { for w in threads(1@32) {
//! #     alloc acc: f64[16, 8] reg frag D16x8
//! #     for (i, j) in own acc[:, :] { acc[i, j] = 0 }
//! #     for (i, j) in own acc[:, :] { C[i, j] = acc[i, j] }
//! #   } }
//! # }").unwrap();
//! // for (i, j) in own acc[:, :] { C[i, j] = acc[i, j] }
//! let after = Schedule::run(before, "split(C.j, 2) -> j, v\nvectorize(C.v)").unwrap();
//! assert!(after.program().to_string().contains("\
//!       for (i, j by 2) in own acc[:, :] {
//!         for v in vector 0..2 {
//!           C[i, j + v] = acc[i, j + v]
//!         }
//!       }
//! "));
//! ```

use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::ir::{Assign, AssignOp, For, Mode, Own, Program, Range, Stmt, Value, walk};
use crate::ir::{BinaryOp, Reduction};
use crate::schedule::facts::Facts;
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Place, guard_leaves, guarded_load, head, rewrite};
use crate::schedule::step::{Argument, Call};
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "split(label.loop, factor [, tail=guard|fill]) -> outer, inner, \
                                or split(label.loop, nparts=count [, even=pieces]) -> outer, inner";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Split {
    /// The loop.
    pub target: LoopRef,
    /// How far.
    pub by: By,
    /// What to do where the factor does not divide; by rule if `None`.
    pub tail: Option<Tail>,
    /// The names of the two loops.
    pub names: [String; 2],
}

/// How a loop is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The inner loop has this many iterations.
    Factor(i64),
    /// The outer loop has this many iterations.
    Parts(i64),
    /// The outer loop has `parts` iterations, which take whole pieces of `piece` iterations, none more than one piece more than another.
    Evenly {
        /// How many parts.
        parts: i64,
        /// Iterations of a piece.
        piece: i64,
    },
}

/// What happens to the iterations past the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Their statements are guarded.
    Guard,
    /// They run on neutral operands.
    Fill,
}

/// The parts of a loop.
struct Parts {
    /// The first iteration of a part.
    first: Index,
    outer_extent: Index,
    /// Iterations of the longest part.
    inner_extent: i64,
    /// Where the next part begins, if some are shorter than others.
    short: Option<Index>,
}

impl Split {
    pub(super) fn read(call: &Call) -> Result<Split, Diagnosis> {
        let target = call.loop_at(0)?;
        let number = |option: &str| call.option_of(option).map(str::parse::<i64>);
        let by = match (call.args.get(1), number("nparts"), number("even")) {
            (Some(Argument::Int(f)), None, None) => By::Factor(*f),
            (None, Some(Ok(p)), None) => By::Parts(p),
            (None, Some(Ok(parts)), Some(Ok(piece))) => By::Evenly { parts, piece },
            (_, None, Some(_)) => return Err(call.wrong("even parts need nparts, too")),
            _ => return Err(call.wrong("a factor or nparts is wanted")),
        };
        if matches!(by, By::Factor(n) | By::Parts(n) if n < 1)
            || matches!(by, By::Evenly { parts, piece } if parts < 1 || piece < 1)
        {
            return Err(call.wrong("the factor must be positive"));
        }
        let tail = match call.option_of("tail") {
            None => None,
            Some("guard") => Some(Tail::Guard),
            Some("fill") => Some(Tail::Fill),
            Some(_) => return Err(call.wrong("there is no such strategy for tails")),
        };
        let names = match &call.results[..] {
            [outer, inner] => [outer.clone(), inner.clone()],
            [] => [format!("{}o", target.name), format!("{}i", target.name)],
            _ => return Err(call.wrong("two names must follow `->`")),
        };
        Ok(Split { target, by, tail, names })
    }

    fn split(&self, l: For, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        let Range::Span { lo, hi, step } = &l.range else {
            return Err(self.refuse("it runs over a list or a part"));
        };
        if lo.as_constant() != Some(0) || step.as_constant() != Some(1) || l.counting.is_some() {
            return Err(self.refuse("it does not count from 0 by 1"));
        }
        if l.mode != Mode::Serial {
            return Err(self
                .refuse("it is already bound, unrolled or vectorized")
                .instead("split it before"));
        }
        let (outer, inner) = (Sym::new(&self.names[0]), Sym::new(&self.names[1]));
        let Parts { first, outer_extent, inner_extent, short } = self.parts(hi, &outer)?;
        let index = &first + &Index::var(&inner);
        let body = walk::substitute(&l.body, &|s| (*s == l.var).then(|| index.clone()));
        let mut facts = place.facts();
        facts.enter_range(&outer, &outer_extent);
        facts.enter_range(&inner, &Index::from(inner_extent));
        let behind = short.map_or(Cond::TRUE, |next| Cond::lt(index.clone(), next));
        let guard = facts.remaining(&behind.and(Cond::lt(index, hi.clone())));
        if guard != Cond::TRUE && numbers_parts(&l) {
            return Err(self
                .refuse("it numbers parts of a range, and there are none past the last")
                .instead("split by a factor of its extent"));
        }
        let body = if guard == Cond::TRUE { body } else { self.tail(body, &guard, &l.var, &l.body, &facts)? };
        let inner = For::serial(&inner, Range::upto(inner_extent), body);
        Ok(vec![Stmt::For(For {
            var: outer,
            range: Range::upto(outer_extent),
            body: vec![inner].into(),
            ..head(&l)
        })])
    }

    /// The parts of a loop over `0..hi` that `outer` numbers.
    fn parts(&self, hi: &Index, outer: &Sym) -> Result<Parts, Diagnosis> {
        let constant = || {
            hi.as_constant().ok_or_else(|| {
                self.refuse("nparts of a symbolic extent multiplies two symbols").instead("give the factor")
            })
        };
        let factor = match self.by {
            By::Factor(factor) => factor,
            By::Parts(parts) => (constant()? + parts - 1).div_euclid(parts).max(1),
            By::Evenly { parts, piece } => {
                let pieces = (constant()? + piece - 1).div_euclid(piece);
                // Parts that end where the next begins: for `parts` that divide all pieces this is a factor times `outer`.
                let first = |part: Index| part.scaled(pieces).div(parts).scaled(piece);
                let next = first(Index::var(outer).offset(1));
                return Ok(Parts {
                    first: first(Index::var(outer)),
                    outer_extent: parts.into(),
                    inner_extent: (pieces + parts - 1).div_euclid(parts).max(1) * piece,
                    short: (pieces % parts != 0).then_some(next),
                });
            }
        };
        Ok(Parts {
            first: Index::var(outer).scaled(factor),
            outer_extent: hi.ceil_div(factor),
            inner_extent: factor,
            short: None,
        })
    }

    /// A loop over owned elements, by runs of neighbours.
    fn in_runs(&self, o: &Own, place: &Place) -> Result<Stmt, Diagnosis> {
        let By::Factor(run) = self.by else {
            return Err(self.refuse("it is over owned elements, and how many neighbours is wanted"));
        };
        let last = o.vars.last().filter(|v| v.name() == self.target.name);
        let Some(var) = last else {
            return Err(self
                .refuse("only neighbours in a row are in runs")
                .instead("split the last variable of the loop"));
        };
        if o.run != 1 || self.tail.is_some() {
            return Err(self.refuse("runs are whole, and split once"));
        }
        let (first, inner) = (Sym::new(&self.names[0]), Sym::new(&self.names[1]));
        let index = &Index::var(&first) + &Index::var(&inner);
        let body = walk::substitute(&o.body, &|s| (s == var).then(|| index.clone()));
        let vars = o.vars.iter().map(|v| if v == var { first.clone() } else { v.clone() }).collect();
        let body = vec![For::serial(&inner, Range::upto(run), body)].into();
        let runs = Own { vars, run, window: o.window.clone(), body };
        let buffers = place.program.buffers();
        if !buffers.get(&o.window.buffer).is_some_and(|buffer| runs.has_runs(buffer)) {
            let what = format!("no thread has the elements of `{}` in runs of {run}", o.window.buffer);
            return Err(self.refuse(&what).instead("take a shorter run, or leave single elements"));
        }
        Ok(Stmt::Own(runs))
    }

    /// The body with its tail taken care of. `original` is the body before substitution, over `var`.
    fn tail(
        &self,
        body: Vec<Stmt>,
        guard: &Cond,
        var: &Sym,
        original: &[Stmt],
        facts: &Facts,
    ) -> Result<Vec<Stmt>, Diagnosis> {
        let reduction = is_reduction_over(original, var);
        match self.tail {
            Some(Tail::Guard) => Ok(guard_leaves(body, guard)),
            Some(Tail::Fill) if !reduction => Err(self.refuse("only the loop of a reduction can be filled")),
            None if !reduction => Ok(guard_leaves(body, guard)),
            _ => match fill(body.clone(), guard, facts) {
                Some(filled) => Ok(filled),
                None if self.tail.is_none() => Ok(guard_leaves(body, guard)),
                None => Err(self.refuse("not every operand of the reduction is a load that can be filled")),
            },
        }
    }

    fn refuse(&self, because: &str) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be split", self.target)).because(because)
    }
}

impl Primitive for Split {
    fn call(&self) -> Call {
        let call = Call::new("split").target(&self.target);
        let call = match self.by {
            By::Factor(f) => call.int(f),
            By::Parts(p) => call.option("nparts", p),
            By::Evenly { parts, piece } => call.option("nparts", parts).option("even", piece),
        };
        let call = match self.tail {
            None => call,
            Some(Tail::Guard) => call.option("tail", "guard"),
            Some(Tail::Fill) => call.option("tail", "fill"),
        };
        call.gives(&self.names)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut count = 0;
        let body = rewrite(&program.body, &Place::of(program), &mut |stmt, place| {
            let split = match stmt {
                Stmt::For(l) if self.target.means(l) => self.split(l.clone(), place)?,
                Stmt::Own(o) if self.target.means_owned(o) => vec![self.in_runs(o, place)?],
                _ => return Ok(None),
            };
            count += 1;
            Ok(Some(split))
        })?;
        if count == 0 {
            return Err(self.target.unknown(program));
        }
        Ok(program.with_body(body))
    }
}

/// Whether the variable of a loop says which part of a range a loop inside takes.
fn numbers_parts(l: &For) -> bool {
    let mut found = false;
    walk::for_each(&l.body, &mut |stmt| {
        if let Stmt::For(For { range: Range::Part { index, .. }, .. }) = stmt {
            found |= index.mentions(&l.var);
        }
    });
    found
}

/// Whether a body only reduces into elements that do not depend on `var`.
fn is_reduction_over(body: &[Stmt], var: &Sym) -> bool {
    let mut reduces = true;
    walk::for_each(body, &mut |stmt| match stmt {
        Stmt::Assign(Assign { target, op: AssignOp::Reduce(_), .. }) => {
            reduces &= !target.index.iter().any(|i| i.mentions(var));
        }
        Stmt::Assign(_) | Stmt::Instruction(_) => reduces = false,
        _ => {}
    });
    reduces
}

/// Gives the operands of each reduction a neutral value where `guard` fails; `None` if that cannot be done.
pub(super) fn fill(body: Vec<Stmt>, guard: &Cond, facts: &Facts) -> Option<Vec<Stmt>> {
    let mut possible = true;
    let out = walk::rewrite(body, &mut |mut stmt| {
        if let Stmt::Assign(Assign { op: AssignOp::Reduce(reduction), value, .. }) = &mut stmt {
            match neutral(value, *reduction, guard, facts) {
                Some(filled) => *value = filled,
                None => possible = false,
            }
        }
        vec![stmt]
    });
    possible.then_some(out)
}

/// The value with every factor replaced by one that is 0 where `guard` fails (a sum), or the value itself made the
/// identity there (a maximum or minimum of single loads). A sum or a choice of what is 0 there is 0 too.
fn neutral(value: &Value, reduction: Reduction, guard: &Cond, facts: &Facts) -> Option<Value> {
    if reduction != Reduction::Sum {
        let (cond, access, _) = guarded_load(value)?;
        let load = Box::new(Value::Load(access.clone()));
        return Some(Value::Select(
            cond.and(facts.remaining(guard)),
            load,
            Box::new(Value::Const(reduction.identity())),
        ));
    }
    let again = |v: &Value| neutral(v, reduction, guard, facts).map(Box::new);
    match value {
        Value::Load(_) | Value::Select(..) if guarded_load(value).is_some() => {
            let (cond, access, fill) = guarded_load(value)?;
            (fill == 0.0).then(|| {
                let load = Box::new(Value::Load(access.clone()));
                Value::Select(cond.and(guard.clone()), load, Box::new(Value::Const(0.0)))
            })
        }
        Value::Select(cond, a, b) => Some(Value::Select(cond.clone(), again(a)?, again(b)?)),
        Value::Binary(op @ (BinaryOp::Mul | BinaryOp::Add | BinaryOp::Sub), a, b) => {
            Some(Value::Binary(*op, again(a)?, again(b)?))
        }
        Value::Unary(op, a) => Some(Value::Unary(*op, again(a)?)),
        Value::Cast(t, a) => Some(Value::Cast(*t, again(a)?)),
        Value::Scalar(_) => Some(value.clone()),
        Value::Const(_) | Value::Load(_) | Value::Binary(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn stored(store: &str, steps: &str) -> Result<String, String> {
        let text = format!(
            "program p(M: size, N: size, C: inout f64[M, N; ldc]) assume ldc%2 == 0 {{
               for b in block.x(1) {{ for w in threads(1@32) {{
                 alloc acc: f64[4, 16, 8] reg frag D16x8
                 for jo in 0..4 {{ for (i, j) in own acc[jo, :, :] {{ acc[jo, i, j] = 0 }} }}
                 for jo in 0..4 {{ for (i, j) in own acc[jo, :, :] {{ {store} }} }}
               }} }} }}"
        );
        let spec = parse::program(&text).expect("the program reads");
        Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    const STORE: &str = "if i < M && 8*jo + j < N { C[i, 8*jo + j] = acc[jo, i, j] }";

    #[test]
    fn runs_are_those_of_one_owner() {
        for (steps, because) in [
            ("split(C.j, 4) -> j, v", "no thread has the elements of `acc` in runs of 4"),
            ("split(C.i, 2) -> i, v", "only neighbours in a row"),
            ("split(C.j, nparts=4) -> j, v", "how many neighbours"),
            ("split(C.j, 2, tail=guard) -> j, v", "runs are whole"),
            ("split(C.j, 2) -> j, v\nsplit(C.j, 2) -> j, u", "split once"),
            ("vectorize(C.j)", "into runs, such as split(C.j, 2) -> first, v"),
        ] {
            let refusal = stored(STORE, steps).unwrap_err();
            assert!(refusal.contains(because), "{steps}: {refusal}");
        }
    }

    #[test]
    fn a_run_in_memory_is_whole_and_aligned_or_its_elements_go_one_by_one() {
        let pairs = |store: &str, before: &str| {
            stored(store, &format!("{before}\nsplit(C.j, 2) -> j, v\nvectorize(C.v)"))
        };
        let text = pairs(STORE, "").unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let stored = words(text.split_once("i, j by 2").expect("there are runs").1);
        assert!(stored.contains("if i < M && 8*jo + j + 2 <= N { for v in vector 0..2 {"), "{text}");
        assert!(stored.contains("else { for v in unroll 0..2 { if i < M && 8*jo + j + v < N {"), "{text}");
        // Where rows have whole pairs, no pair is torn.
        let text = pairs(STORE, "specialize(N%2)").unwrap();
        let even = words(text.split_once("i, j by 2").expect("there are runs").1);
        assert!(
            even.contains("for v in vector 0..2") && !even.split("by 2").next().unwrap().contains("unroll"),
            "{text}"
        );
        for (store, because) in [
            ("C[j, i] = acc[jo, i, j]", "not neighbours in memory"),
            ("C[i, 8*jo + j + 1] = acc[jo, i, j]", "multiple of 2"),
            ("C[i, 8*jo + j] += acc[jo, i, j]", "it reduces"),
        ] {
            let refusal = pairs(store, "").unwrap_err();
            assert!(refusal.contains(because), "{store}: {refusal}");
        }
    }
}
