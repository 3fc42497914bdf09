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

use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::ir::{Assign, AssignOp, For, Mode, Program, Range, Stmt, Value, walk};
use crate::ir::{BinaryOp, Reduction};
use crate::schedule::facts::Facts;
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Place, at_loops, guard_leaves, guarded_load, head};
use crate::schedule::step::{Argument, Call};
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "split(label.loop, factor [, tail=guard|fill]) -> outer, inner, \
                                or split(label.loop, nparts=count) -> outer, inner";

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
}

/// What happens to the iterations past the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Their statements are guarded.
    Guard,
    /// They run on neutral operands.
    Fill,
}

impl Split {
    pub(super) fn read(call: &Call) -> Result<Split, Diagnosis> {
        let target = call.loop_at(0)?;
        let parts = call.option_of("nparts").map(str::parse::<i64>);
        let by = match (call.args.get(1), parts) {
            (Some(Argument::Int(f)), None) => By::Factor(*f),
            (None, Some(Ok(p))) => By::Parts(p),
            _ => return Err(call.wrong("a factor or nparts is wanted")),
        };
        if matches!(by, By::Factor(n) | By::Parts(n) if n < 1) {
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
        let factor = match self.by {
            By::Factor(f) => f,
            By::Parts(p) => match hi.as_constant() {
                Some(n) => (n + p - 1).div_euclid(p).max(1),
                None => {
                    return Err(self
                        .refuse("nparts of a symbolic extent multiplies two symbols")
                        .instead("give the factor"));
                }
            },
        };
        let (outer, inner) = (Sym::new(&self.names[0]), Sym::new(&self.names[1]));
        let index = &Index::var(&outer).scaled(factor) + &Index::var(&inner);
        let outer_extent = hi.ceil_div(factor);
        let body = walk::substitute(&l.body, &|s| (*s == l.var).then(|| index.clone()));
        let mut facts = place.facts();
        facts.enter_range(&outer, &outer_extent);
        facts.enter_range(&inner, &Index::from(factor));
        let guard = facts.remaining(&Cond::lt(index, hi.clone()));
        if guard != Cond::TRUE && numbers_parts(&l) {
            return Err(self
                .refuse("it numbers parts of a range, and there are none past the last")
                .instead("split by a factor of its extent"));
        }
        let body = if guard == Cond::TRUE { body } else { self.tail(body, &guard, &l.var, &l.body, &facts)? };
        let inner = For::serial(&inner, Range::upto(factor), body);
        Ok(vec![Stmt::For(For {
            var: outer,
            range: Range::upto(outer_extent),
            body: vec![inner].into(),
            ..head(&l)
        })])
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
        };
        let call = match self.tail {
            None => call,
            Some(Tail::Guard) => call.option("tail", "guard"),
            Some(Tail::Fill) => call.option("tail", "fill"),
        };
        call.gives(&self.names)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        at_loops(program, &self.target, &mut |l, place| self.split(l, place))
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
/// identity there (a maximum or minimum of single loads).
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
        Value::Load(_) | Value::Select(..) => {
            let (cond, access, fill) = guarded_load(value)?;
            (fill == 0.0).then(|| {
                let load = Box::new(Value::Load(access.clone()));
                Value::Select(cond.and(guard.clone()), load, Box::new(Value::Const(0.0)))
            })
        }
        Value::Binary(BinaryOp::Mul, a, b) => Some(Value::Binary(BinaryOp::Mul, again(a)?, again(b)?)),
        Value::Unary(op, a) => Some(Value::Unary(*op, again(a)?)),
        Value::Cast(t, a) => Some(Value::Cast(*t, again(a)?)),
        Value::Scalar(_) => Some(value.clone()),
        Value::Const(_) | Value::Binary(..) => None,
    }
}
