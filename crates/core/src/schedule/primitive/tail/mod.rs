//! `tail`: what happens to the iterations past the end of a loop that was split by a factor that need not divide.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(K: size, x: in f32[K], y: out f32[1]) {
//!   y[0] = 0
//!   for k in 0..K { y[0] += x[k] * x[k] }
//! }").unwrap();
//! let after = Schedule::run(before, "split(y.k, 8) -> ko, ki\ntail(y.ko, peel)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(K: size,
//!     x: in f32[K], y: out f32[1])
//! {
//!   y[0] = 0
//!   for ko in 0..K/8, ki in 0..8 {
//!     y[0] += x[8*ko + ki] * x[8*ko + ki]
//!   }
//!   for ko in K/8..ceil(K, 8), ki in 0..8 {
//!     y[0] += (8*ko + ki < K ? x[8*ko + ki] : 0) * (8*ko + ki < K ? x[8*ko + ki] : 0)
//!   }
//! }
//! ");
//! ```
//!
//! - `peel`: the last, partial iteration of the outer loop stands apart, and those before it need no conditions. Of
//!   the second loop there is one iteration, or none where the factor divides; of both none where the extent is 0.
//! - `guard`: sums inside are skipped past the end. What else their operands are 0 for, they still are.
//! - `fill`: reductions inside run on operands that they do not see: 0 where products are summed.
//! - `hoist`: what the conditions inside ask of sizes is asked once, of the iteration for which it is hardest; where it
//!   holds, a copy of the loop runs that does without. The other is not unrolled, unless it touches registers.
//! - `threads`: the last, partial iteration of a loop around a matrix instruction stands apart, and threads add up its terms.

mod hoist;
mod threads;

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::{Atom, Cond, Facts as Known, Index};
use crate::ir::{
    Assign, AssignOp, BinaryOp, Body, Buffer, For, If, Mode, Own, Program, Range, Reduction, Stmt, Value,
    facts, walk,
};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Place, at_loops, fill, guard_leaves, head, refresh_loop};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "tail(label.loop, peel|guard|fill|hoist|threads)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The loop.
    pub target: LoopRef,
    /// What to do.
    pub strategy: Strategy,
}

/// What happens to the iterations past the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// They stand apart, with conditions that the others do without.
    Peel,
    /// They do nothing.
    Guard,
    /// They reduce neutral operands.
    Fill,
    /// They are told apart from the others once for the whole loop.
    Hoist,
    /// Threads do what an instruction would do for the last of them.
    Threads,
}

impl Tail {
    pub(super) fn read(call: &Call) -> Result<Tail, Diagnosis> {
        let strategy = match call.word_at(1)? {
            "peel" => Strategy::Peel,
            "guard" => Strategy::Guard,
            "fill" => Strategy::Fill,
            "hoist" => Strategy::Hoist,
            "threads" => Strategy::Threads,
            other => return Err(call.wrong(&format!("there is no strategy `{other}`"))),
        };
        Ok(Tail { target: call.loop_at(0)?, strategy })
    }

    fn refuse(&self, because: &str) -> Diagnosis {
        Diagnosis::new(format!("the tail of `{}` cannot be changed so", self.target)).because(because)
    }

    /// The loop without its last iteration, and that one by itself.
    fn peel(&self, l: &For, place: &Place) -> Result<[For; 2], Diagnosis> {
        if !matches!(l.mode, Mode::Serial | Mode::Unroll) || l.counting.is_some() {
            return Err(self
                .refuse("its iterations are blocks or threads")
                .instead("specialize the sizes: the host then chooses a version without tail"));
        }
        let Range::Span { lo, hi, step } = &l.range else {
            return Err(self.refuse("it runs over a list or a part"));
        };
        if lo.as_constant() != Some(0) || step.as_constant() != Some(1) {
            return Err(self.refuse("it does not count from 0 by 1"));
        }
        let whole = whole_iterations(hi).filter(|n| place.facts().proves(&Cond::le(0.into(), n.clone())));
        let Some(whole) = whole else {
            return Err(self
                .refuse("its extent is not a quotient rounded up")
                .instead("name the outer loop of a split"));
        };
        let mut known = facts::of_program(place.program);
        place.outer().iter().for_each(|o| facts::enter_loop(&mut known, o));
        let mut first = For { range: Range::upto(whole.clone()), ..l.clone() };
        facts::enter_loop(&mut known, &first);
        first.body = without_certain(&first.body, &mut known, &place.program.buffers()).into();
        if first.body == l.body {
            return Err(self.refuse("nothing inside depends on it"));
        }
        let last = For { range: Range::span(whole, hi.clone()), ..l.clone() };
        Ok([first, refresh_loop(last)])
    }

    /// The loop without its last iteration, and what threads do for that one.
    fn by_threads(&self, l: &For, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        let [first, last] = self.peel(l, place)?;
        let rest = threads::by_threads(&last, place).map_err(|because| self.refuse(&because))?;
        Ok(std::iter::once(Stmt::For(first)).chain(rest).collect())
    }

    /// Moves what is said of this loop from conditions around reductions into their operands.
    fn fill(&self, l: For, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        let mut inside = place.facts();
        inside.enter(&l);
        let (mut changed, mut possible) = (false, true);
        let body = walk::rewrite(l.body.to_vec(), &mut |stmt| {
            let Stmt::If(i) = &stmt else { return vec![stmt] };
            let ([Stmt::Assign(a)], []) = (&i.then[..], &i.otherwise[..]) else { return vec![stmt] };
            let AssignOp::Reduce(_) = a.op else { return vec![stmt] };
            let of_target = |c: &Cond| {
                let mut shared = false;
                c.for_each_var(&mut |s| shared |= a.target.index.iter().any(|x| x.mentions(s)));
                shared
            };
            let (stays, moves): (Vec<Cond>, Vec<Cond>) =
                i.cond.conjuncts().iter().cloned().partition(of_target);
            let moves = moves.into_iter().fold(Cond::TRUE, Cond::and);
            if !moves.mentions(&l.var) {
                return vec![stmt];
            }
            match fill(vec![Stmt::Assign(a.clone())], &moves, &inside) {
                Some(filled) => {
                    changed = true;
                    guard_leaves(filled, &stays.into_iter().fold(Cond::TRUE, Cond::and))
                }
                None => {
                    possible = false;
                    vec![stmt]
                }
            }
        });
        if !possible {
            return Err(self.refuse("not every operand of the reduction is a load that can be filled"));
        }
        if !changed {
            return Err(self.refuse("no reduction inside is guarded by it"));
        }
        Ok(vec![Stmt::For(For { body: body.into(), ..head(&l) })])
    }

    /// Skips reductions whose operands would be filled.
    fn guard(&self, l: For) -> Result<Vec<Stmt>, Diagnosis> {
        let mut changed = false;
        let body = walk::rewrite(l.body.to_vec(), &mut |stmt| {
            let Stmt::Assign(Assign { op: AssignOp::Reduce(Reduction::Sum), value, .. }) = &stmt else {
                return vec![stmt];
            };
            let mut cond = Cond::TRUE;
            let Some(plain) = without_fill(value, &l.var, &mut cond) else { return vec![stmt] };
            if cond == Cond::TRUE {
                return vec![stmt];
            }
            changed = true;
            let Stmt::Assign(a) = stmt else { return Vec::new() };
            vec![Stmt::If(If {
                cond,
                then: vec![Stmt::Assign(Assign { value: plain, ..a })].into(),
                otherwise: Body::default(),
            })]
        });
        if !changed {
            return Err(self.refuse("no sum inside has operands that are filled by it"));
        }
        Ok(vec![Stmt::For(For { body: body.into(), ..head(&l) })])
    }
}

impl Primitive for Tail {
    fn call(&self) -> Call {
        let strategy = match self.strategy {
            Strategy::Peel => "peel",
            Strategy::Guard => "guard",
            Strategy::Fill => "fill",
            Strategy::Hoist => "hoist",
            Strategy::Threads => "threads",
        };
        Call::new("tail").target(&self.target).word(strategy)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut done = 0;
        let mut why_not = None;
        let after = at_loops(program, &self.target, &mut |l, place| {
            let result = match self.strategy {
                Strategy::Peel => self.peel(&l, place).map(|loops| loops.map(Stmt::For).into()),
                Strategy::Guard => self.guard(l.clone()),
                Strategy::Fill => self.fill(l.clone(), place),
                Strategy::Hoist => hoist::hoist(&l, place).map_err(|because| self.refuse(because)),
                Strategy::Threads => self.by_threads(&l, place),
            };
            Ok(match result {
                Ok(stmts) => {
                    done += 1;
                    stmts
                }
                // A specialised copy has no tail.
                Err(diagnosis) => {
                    why_not = Some(diagnosis);
                    vec![Stmt::For(l)]
                }
            })
        })?;
        match why_not {
            Some(diagnosis) if done == 0 => Err(diagnosis),
            _ => Ok(after),
        }
    }
}

/// Of `ceil(n, d)` iterations, those that are whole: `n / d`. Of a constant number above 1, all but the last.
fn whole_iterations(extent: &Index) -> Option<Index> {
    if let Some(n) = extent.as_constant() {
        return (n > 1).then(|| (n - 1).into());
    }
    match (extent.terms(), extent.constant_term()) {
        ([(Atom::Div(x, d), 1)], 0) => Some(x.offset(1 - d).div(*d)),
        _ => None,
    }
}

/// The statements without the conditions that are certain.
fn without_certain(stmts: &[Stmt], known: &mut Known, buffers: &HashMap<Sym, Buffer>) -> Vec<Stmt> {
    let outside = known.mark();
    let mut out = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        let before = known.mark();
        match stmt {
            Stmt::For(l) => {
                facts::enter_loop(known, l);
                let body = without_certain(&l.body, known, buffers);
                out.push(Stmt::For(For { body: body.into(), ..head(l) }));
                known.reset(before);
            }
            Stmt::If(i) => {
                let cond = known.simplify_cond(&i.cond);
                known.assume(&i.cond);
                let then = without_certain(&i.then, known, buffers);
                known.reset(before);
                known.assume(&i.cond.clone().negate());
                let otherwise = without_certain(&i.otherwise, known, buffers);
                known.reset(before);
                match cond.as_constant() {
                    Some(true) => out.extend(then),
                    Some(false) => out.extend(otherwise),
                    None => out.push(Stmt::If(If { cond, then: then.into(), otherwise: otherwise.into() })),
                }
            }
            Stmt::Own(o) => {
                facts::enter_own(known, o, buffers);
                let body = without_certain(&o.body, known, buffers).into();
                out.push(Stmt::Own(Own { body, ..o.clone() }));
                known.reset(before);
            }
            Stmt::Let(sym, value) => {
                known.define(sym, value);
                out.push(stmt.clone());
            }
            Stmt::Assign(a) => {
                let value = decided(&a.value, known);
                out.push(Stmt::Assign(Assign { value, ..a.clone() }));
            }
            other => {
                let mut other = other.clone();
                for body in walk::bodies_mut(&mut other) {
                    *body = without_certain(body, known, buffers).into();
                }
                out.push(other);
            }
        }
    }
    known.reset(outside);
    out
}

/// The value with every choice that is certain made.
fn decided(value: &Value, known: &Known) -> Value {
    let again = |v: &Value| Box::new(decided(v, known));
    match value {
        Value::Const(_) | Value::Scalar(_) | Value::Load(_) => value.clone(),
        Value::Unary(op, a) => Value::Unary(*op, again(a)),
        Value::Cast(t, a) => Value::Cast(*t, again(a)),
        Value::Binary(op, a, b) => Value::Binary(*op, again(a), again(b)),
        Value::Select(c, a, b) => {
            let cond = known.simplify_cond(c);
            match cond.as_constant() {
                Some(true) => decided(a, known),
                Some(false) => decided(b, known),
                None => Value::Select(cond, again(a), again(b)),
            }
        }
    }
}

/// A product without what is said of a loop's variable in the conditions of its factors, each of which is 0 where its
/// condition fails; `None` if it is no such product. What was said is added to `cond`.
fn without_fill(value: &Value, var: &Sym, cond: &mut Cond) -> Option<Value> {
    match value {
        Value::Load(_) | Value::Scalar(_) => Some(value.clone()),
        Value::Select(c, this, that) if **that == Value::Const(0.0) => {
            let of_loop = |part: &&Cond| part.mentions(var);
            let (moves, stays): (Vec<&Cond>, Vec<&Cond>) = c.conjuncts().iter().partition(of_loop);
            let all = |parts: Vec<&Cond>| parts.into_iter().cloned().fold(Cond::TRUE, Cond::and);
            *cond = cond.clone().and(all(moves));
            let (this, stays) = (without_fill(this, var, cond)?, all(stays));
            Some(if stays == Cond::TRUE { this } else { Value::Select(stays, Box::new(this), that.clone()) })
        }
        Value::Unary(op, a) => Some(Value::Unary(*op, Box::new(without_fill(a, var, cond)?))),
        Value::Cast(t, a) => Some(Value::Cast(*t, Box::new(without_fill(a, var, cond)?))),
        Value::Binary(BinaryOp::Mul, a, b) => {
            let a = without_fill(a, var, cond)?;
            Some(Value::binary(BinaryOp::Mul, a, without_fill(b, var, cond)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    const DOT: &str = "program p(K: size, x: in f32[K], y: out f32[1]) {
        y[0] = 0
        for k in 0..K { y[0] += x[k] * x[k] }
    }";

    fn run(text: &str, steps: &str) -> Result<String, String> {
        let spec = parse::program(text).expect("reads");
        Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn what_holds_for_the_hardest_iteration_is_asked_once() {
        let copy = "program p(n: size, x: in f32[n], y: out f32[n]) { for i in 0..n { y[i] = x[i] } }";
        let hoisted = run(copy, "split(y.i, 32) -> o, i\nsplit(y.i, 8) -> m, i\ntail(y.m, hoist)").unwrap();
        assert!(hoisted.contains("if 32*o + 31 < n {"), "{hoisted}");
        // The copy for the last iterations keeps its condition, and it alone.
        assert_eq!(hoisted.matches("32*o + 8*m + i < n").count(), 1, "{hoisted}");
        let refused = |steps: &str| run(copy, steps).unwrap_err();
        assert!(refused("tail(y.i, hoist)").contains("no condition inside"));
        let threads = "split(y.i, 128) -> o, i\nbind(y.o, block.x)\nbind(y.i, threads)\ntail(y.i, hoist)";
        assert!(refused(threads).contains("blocks or threads"), "{}", refused(threads));
    }

    #[test]
    fn what_is_left_over_is_unrolled_only_where_it_touches_registers() {
        let copy = "program p(n: size, x: in f32[n], y: out f32[n]) { for i in 0..n { y[i] = x[i] } }";
        let text = run(copy, "split(y.i, 4) -> o, i\nunroll(y.i)\ntail(y.i, hoist)").unwrap();
        assert!(text.contains("for i in unroll 0..4 {\n        y[4*o + i] = x[4*o + i]"), "{text}");
        assert!(text.contains("for i in 0..4 {\n        if 4*o + i < n"), "{text}");
        let held = "program p(n: size, x: in f32[n], y: out f32[n]) {
            for o in 0..ceil(n, 4) {
                alloc r: f32[4] reg
                for i in unroll 0..4 { r[i] = 1 }
                for i in unroll 0..4 { if 4*o + i < n { y[4*o + i] = r[i] } }
            }
        }";
        let text = run(held, "tail(y.i, hoist)").unwrap();
        assert_eq!(text.matches("for i in unroll 0..4").count(), 3, "{text}");
    }

    #[test]
    fn what_a_condition_around_says_is_not_asked_again() {
        let copy = "program p(n: size, m: size, x: in f32[n], y: out f32[n]) {
            for i in 0..n {
                if i%3 < m { if i%3 < m + 1 { y[i] = x[i] } else { y[i] = 1 } } else { if i%3 < m { y[i] = 2 } }
            }
        }";
        let text = run(copy, "split(y.i, 4) -> o, i\ntail(y.i, hoist)").unwrap();
        let (_, all) = text.split_once("if 4*o + 3 < n {").expect("all of them");
        let (all, _) = all.split_once("if 4*o + i < n").expect("and the others");
        assert!(all.contains("if (o + i)%3 < m {"), "{text}");
        for gone in ["m + 1", "= 1", "= 2"] {
            assert!(!all.contains(gone), "{gone} is still there: {text}");
        }
    }

    #[test]
    fn guard_and_fill_are_each_others_inverse() {
        let filled = run(DOT, "split(y.k, 8) -> ko, ki").unwrap();
        let guarded = run(DOT, "split(y.k, 8, tail=guard) -> ko, ki").unwrap();
        assert_ne!(filled, guarded);
        assert_eq!(run(DOT, "split(y.k, 8) -> ko, ki\ntail(y.ki, guard)").unwrap(), guarded);
        assert_eq!(run(DOT, "split(y.k, 8, tail=guard) -> ko, ki\ntail(y.ko, fill)").unwrap(), filled);
    }

    #[test]
    fn sums_are_guarded_only_by_what_is_said_of_the_loop() {
        let spec = "program p(x: in f32[5], y: in f32[7], z: out f32[8]) {
            for j in 0..8 {
                z[j] = 0
                for k in 0..4 { z[j] += (k + 2 < 5 ? x[k + 2] : 0) * (k + 2 < 5 && j < 7 ? y[j] : 0) }
            }
        }";
        let text = run(spec, "tail(z.k, guard)").unwrap();
        assert!(text.contains("if k + 2 < 5 {\n        z[j] += x[k + 2] * (j < 7 ? y[j] : 0)"), "{text}");
        let refused = run(spec, "tail(z.j, guard)\ntail(z.j, guard)").unwrap_err();
        assert!(refused.contains("no sum inside"), "{refused}");
    }

    #[test]
    fn only_loops_with_a_tail_are_peeled() {
        let refusal = run(DOT, "split(y.k, 8) -> ko, ki\ntail(y.ki, peel)").unwrap_err();
        assert!(refusal.contains("nothing inside depends on it"), "{refusal}");
        let refusal = run(DOT, "tail(y.k, peel)").unwrap_err();
        assert!(refusal.contains("not a quotient"), "{refusal}");
        let text = run(DOT, "specialize(K%8)\nsplit(y.k, 8) -> ko, ki\ntail(y.ko, peel)").unwrap();
        assert_eq!(text.matches("for ko in").count(), 3, "{text}");
    }

    #[test]
    fn a_constant_extent_is_peeled_at_its_last_iteration() {
        let copy = "program p(x: in f32[100], y: out f32[100]) { for i in 0..100 { y[i] = x[i] } }";
        let text = run(copy, "split(y.i, 32) -> io, ii\ntail(y.io, peel)").unwrap();
        assert!(text.contains("for io in 0..3, ii in 0..32 {\n    y[32*io + ii] = x[32*io + ii]"), "{text}");
        assert!(text.contains("for io in 3..4, ii in 0..32 {\n    if 32*io + ii < 100"), "{text}");
    }
}
