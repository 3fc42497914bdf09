//! `vectorize`: a short loop of one assignment becomes one wide access.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   for i in 0..n { y[i] = x[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "split(y.i, 4) -> i, v\nvectorize(y.v)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n], y: out f32[n])
//! {
//!   for i in 0..ceil(n, 4) {
//!     if 4*i + 4 <= n {
//!       for v in vector 0..4 {
//!         y[4*i + v] = x[4*i + v]
//!       }
//!     } else {
//!       for v in unroll 0..4 {
//!         if 4*i + v < n {
//!           y[4*i + v] = x[4*i + v]
//!         }
//!       }
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! A guard that tells elements of the vector apart moves outside and is asked of all of them at once; where it fails,
//! the elements are done one by one. On one side at least, the elements must be neighbours in memory of the device or
//! the block; the other side may be registers, or be done element by element: a row read at once may be stored as a
//! column. The first of neighbours must be aligned to the size of the access (4, 8 or 16 bytes), which has to follow
//! from constants, layouts, assumptions and `specialize`; tensors themselves start at a multiple of 16 bytes unless they
//! declare less. A copy of the loop for which it does not follow is unrolled instead; the step is refused if it does not
//! follow for any copy.

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::{Comparison, Cond, Index};
use crate::ir::{Access, Assign, AssignOp, Body, Buffer, For, If, Mode, Program, Range, Space, Stmt, Value};
use crate::schedule::facts::Facts;
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Neighbours, Place, at_loops, head, inline_lets, refresh_loop, rewrite_loops};
use crate::schedule::step::{Argument, Call};
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "vectorize(label.loop, ...)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Vectorize {
    /// The loops.
    pub targets: Vec<LoopRef>,
}

impl Vectorize {
    pub(super) fn read(call: &Call) -> Result<Vectorize, Diagnosis> {
        let targets: Vec<_> = (0..call.args.len()).map(|i| call.loop_at(i)).collect::<Result<_, _>>()?;
        if targets.is_empty() {
            return Err(call.wrong("a loop is wanted"));
        }
        Ok(Vectorize { targets })
    }
}

impl Primitive for Vectorize {
    fn call(&self) -> Call {
        let args = self.targets.iter().cloned().map(Argument::Loop).collect();
        Call { args, ..Call::new("vectorize") }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        self.targets.iter().try_fold(program.clone(), |program, target| apply_to(&program, target))
    }
}

/// Vectorizes every copy of a loop for which it is possible.
fn apply_to(program: &Program, target: &LoopRef) -> Result<Program, Diagnosis> {
    let buffers = program.buffers();
    let mut done = 0;
    let mut why_not = String::from("it is already bound, unrolled or vectorized");
    let after = at_loops(program, target, &mut |mut l, place| {
        if l.mode != Mode::Serial {
            return Ok(vec![Stmt::For(l)]);
        }
        inline_lets(&mut l.body);
        let result = Lanes::of(&l, &buffers).and_then(|lanes| lanes.statements(&l.body, &place.facts()));
        Ok(match result {
            Ok(stmts) => {
                done += 1;
                stmts
            }
            Err(because) => {
                why_not = because;
                let mode = if l.range.constant_trip_count().is_some() { Mode::Unroll } else { Mode::Serial };
                vec![Stmt::For(For { mode, ..l })]
            }
        })
    })?;
    if done == 0 {
        return Err(Diagnosis::new(format!("`{target}` cannot be vectorized")).because(why_not).instead(
            "specialize the sizes and row strides to multiples, stage through registers, or unroll it",
        ));
    }
    Ok(after)
}

/// The program, if all its vectors are still one wide access each: what a new layout must see to.
///
/// # Errors
/// The first that is not.
pub(super) fn check_vectors(program: Program) -> Result<Program, Diagnosis> {
    let buffers = program.buffers();
    rewrite_loops(&program.body, &Place::of(&program), &mut |l, place| {
        if let (Mode::Vector, [Stmt::Assign(a)]) = (l.mode, &l.body[..]) {
            let lanes = Lanes::of(l, &buffers);
            lanes.and_then(|lanes| lanes.check(a, &place.facts())).map_err(|because| {
                Diagnosis::new(format!("the vector loop `{}` would no longer be one access", l.var))
                    .because(because)
                    .instead("choose layouts before vectorize, or one that keeps its elements together")
            })?;
        }
        Ok(None)
    })?;
    Ok(program)
}

/// The loop that is to become a vector.
struct Lanes<'a> {
    l: &'a For,
    /// The number of elements.
    count: i64,
    buffers: &'a HashMap<Sym, Buffer>,
}

impl<'a> Lanes<'a> {
    fn of(l: &'a For, buffers: &'a HashMap<Sym, Buffer>) -> Result<Lanes<'a>, String> {
        let from_0 = matches!(&l.range, Range::Span { lo, step, .. } if lo.as_constant() == Some(0) && step.as_constant() == Some(1));
        match l.range.constant_trip_count() {
            Some(count @ (2 | 4 | 8 | 16)) if from_0 && l.counting.is_none() => {
                Ok(Lanes { l, count, buffers })
            }
            _ => Err("one access moves 2, 4, 8 or 16 elements".into()),
        }
    }

    fn varies(&self, index: &Index) -> bool {
        index.mentions(&self.l.var)
    }

    /// The loop over `body`: as a vector where that is possible, with conditions outside.
    fn statements(&self, body: &[Stmt], facts: &Facts) -> Result<Vec<Stmt>, String> {
        match body {
            [] => Ok(Vec::new()),
            [Stmt::Assign(a)] => self.assignment(a, facts),
            // A loop of one iteration, such as staging one column leaves, may as well stand outside.
            [Stmt::For(one)] if one.range == Range::upto(1) && one.counting.is_none() => {
                let mut inside = facts.clone();
                inside.enter(one);
                let body = self.statements(&one.body, &inside)?;
                Ok(vec![Stmt::For(For { body: body.into(), ..head(one) })])
            }
            [Stmt::If(i)] if !i.cond.mentions(&self.l.var) => {
                let (mut holds, mut fails) = (facts.clone(), facts.clone());
                holds.assume(&i.cond);
                fails.assume(&i.cond.clone().negate());
                let then = self.statements(&i.then, &holds)?;
                let otherwise = self.statements(&i.otherwise, &fails)?;
                Ok(vec![Stmt::If(If {
                    cond: i.cond.clone(),
                    then: then.into(),
                    otherwise: otherwise.into(),
                })])
            }
            [Stmt::If(i)] if i.otherwise.is_empty() => {
                let whole = self.for_all(&i.cond, facts);
                let mut holds = facts.clone();
                holds.assume(&whole);
                let then = self.statements(&i.then, &holds)?;
                let otherwise =
                    if self.is_uniform(&i.cond, facts) { Vec::new() } else { vec![self.one_by_one(body)] };
                Ok(vec![Stmt::If(If { cond: whole, then: then.into(), otherwise: otherwise.into() })])
            }
            [Stmt::If(_)] => Err("its elements go different ways".into()),
            _ => Err("its body is not one assignment".into()),
        }
    }

    /// The vector of one assignment, under the conditions of its loads.
    fn assignment(&self, a: &Assign, facts: &Facts) -> Result<Vec<Stmt>, String> {
        if a.op != AssignOp::Store {
            return Err("it reduces, and a wide access only moves data".into());
        }
        let mut cond = Cond::TRUE;
        let chosen = unconditional(&a.value, &mut |c| cond = cond.clone().and(facts.remaining(c)));
        let whole = self.for_all(&cond, facts);
        let mut holds = facts.clone();
        holds.assume(&whole);
        let plain = Assign { value: chosen, ..a.clone() };
        self.check(&plain, &holds)?;
        // Both arms of a condition may hold one: each binds a variable of its own.
        let vector = |a: Assign| {
            Stmt::For(refresh_loop(For {
                mode: Mode::Vector,
                body: vec![Stmt::Assign(a)].into(),
                ..self.head()
            }))
        };
        if whole == Cond::TRUE {
            return Ok(vec![vector(plain)]);
        }
        let otherwise = match &a.value {
            // All of them or none: the others are filled at once too, in memory by one access.
            Value::Select(_, _, fill)
                if matches!(**fill, Value::Const(_)) && self.is_uniform(&cond, facts) =>
            {
                let For { var, body, .. } = refresh_loop(For {
                    body: vec![Stmt::Assign(Assign { value: (**fill).clone(), ..a.clone() })].into(),
                    ..self.head()
                });
                let at_once = self.access(&a.target, facts).unwrap_or(false);
                let mode = if at_once { Mode::Vector } else { Mode::Unroll };
                Stmt::For(For { var, body, mode, ..self.head() })
            }
            _ => self.one_by_one(&[Stmt::Assign(a.clone())]),
        };
        Ok(vec![Stmt::If(If {
            cond: whole,
            then: vec![vector(plain)].into(),
            otherwise: vec![otherwise].into(),
        })])
    }

    fn head(&self) -> For {
        For { body: Body::default(), ..self.l.clone() }
    }

    fn one_by_one(&self, body: &[Stmt]) -> Stmt {
        Stmt::For(refresh_loop(For { mode: Mode::Unroll, body: body.to_vec().into(), ..self.head() }))
    }

    /// The condition that a condition holds for every element.
    fn for_all(&self, cond: &Cond, facts: &Facts) -> Cond {
        let mut inside = facts.clone();
        inside.enter(&self.head());
        let each = cond.conjuncts().iter().fold(Cond::TRUE, |all, c| {
            let all_of_it = match c {
                Cond::Compare(how @ (Comparison::Lt | Comparison::Le), x, y) if c.mentions(&self.l.var) => {
                    self.extreme(*how, &inside.ranges().simplify(x), &inside.ranges().simplify(y))
                }
                _ => None,
            };
            all.and(all_of_it.unwrap_or_else(|| self.each(c)))
        });
        facts.remaining(&each)
    }

    /// A comparison for the element for which it is hardest to meet, if the comparison is linear in the element.
    fn extreme(&self, how: Comparison, x: &Index, y: &Index) -> Option<Cond> {
        let difference = x - y;
        let c = difference.coefficient(&self.l.var);
        let linear = !self.varies(&(&difference - &Index::var(&self.l.var).scaled(c)));
        let hardest = Index::constant(if c > 0 { self.count - 1 } else { 0 });
        let at = |i: &Index| i.substitute(&|s| (*s == self.l.var).then(|| hardest.clone()));
        linear.then(|| match how {
            // i + 3 < n reads better as i + 4 <= n.
            Comparison::Lt => Cond::le(at(x).offset(1), at(y)),
            _ => Cond::compare(how, at(x), at(y)),
        })
    }

    fn each(&self, cond: &Cond) -> Cond {
        if !cond.mentions(&self.l.var) {
            return cond.clone();
        }
        (0..self.count)
            .fold(Cond::TRUE, |all, n| all.and(cond.substitute(&|s| (*s == self.l.var).then(|| n.into()))))
    }

    /// Whether a condition holds for all elements or for none: nothing of it depends on the element, or it compares
    /// `first + element` with something a multiple of the vector away from `first`.
    fn is_uniform(&self, cond: &Cond, facts: &Facts) -> bool {
        cond.conjuncts().iter().all(|c| match c {
            c if !c.mentions(&self.l.var) => true,
            Cond::Compare(Comparison::Lt, x, y) => {
                let difference = y - x;
                let rest = &difference + &Index::var(&self.l.var);
                !self.varies(&rest) && facts.is_multiple(&rest, self.count)
            }
            _ => false,
        })
    }

    /// Whether the assignment may be one wide access.
    fn check(&self, a: &Assign, facts: &Facts) -> Result<(), String> {
        if !a.target.index.iter().any(|i| self.varies(i)) {
            return Err(format!("all its elements go to one element of `{}`", a.target.buffer));
        }
        let mut wide = self.access(&a.target, facts)?;
        let mut fault = None;
        a.value.for_each_access(&mut |access| {
            if access.buffer == a.target.buffer && access.index != a.target.index {
                fault = Some(format!("an element of `{}` is computed from another", access.buffer));
            }
            match self.access(access, facts) {
                Ok(is_wide) => wide |= is_wide,
                Err(because) => fault = Some(because),
            }
        });
        match fault {
            Some(because) => Err(because),
            None if wide => Ok(()),
            None => Err("its elements are not neighbours in memory".into()),
        }
    }

    /// Whether an access is wide (`false`: it is done element by element); why it is not possible.
    fn access(&self, access: &Access, facts: &Facts) -> Result<bool, String> {
        let Some(buffer) = self.buffers.get(&access.buffer) else { return Ok(false) };
        if buffer.split {
            return Err(format!(
                "`{}` stores numbers as their tf32 parts, which are no neighbours",
                buffer.sym
            ));
        }
        if buffer.space == Space::Reg || !access.index.iter().any(|i| self.varies(i)) {
            return Ok(false);
        }
        let lanes = Neighbours { var: &self.l.var, count: self.count, facts };
        if !lanes.are_neighbours(&access.index, buffer)? {
            return Ok(false);
        }
        let bytes = self.count * buffer.dtype.bytes();
        if !matches!(bytes, 4 | 8 | 16) {
            return Err(format!(
                "{} elements of `{}` are {bytes} bytes, and an access has 4, 8 or 16",
                self.count, buffer.sym
            ));
        }
        Ok(true)
    }
}

/// The value with every choice made as if its condition held; `cond` is told of each condition.
fn unconditional(value: &Value, cond: &mut dyn FnMut(&Cond)) -> Value {
    match value {
        Value::Const(_) | Value::Scalar(_) | Value::Load(_) => value.clone(),
        Value::Unary(op, a) => Value::Unary(*op, Box::new(unconditional(a, cond))),
        Value::Cast(t, a) => Value::Cast(*t, Box::new(unconditional(a, cond))),
        Value::Binary(op, a, b) => {
            let a = unconditional(a, cond);
            Value::Binary(*op, Box::new(a), Box::new(unconditional(b, cond)))
        }
        Value::Select(c, this, _) => {
            cond(c);
            unconditional(this, cond)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn run(params: &str, assume: &str, body: &str, steps: &str) -> Result<String, String> {
        let text = format!("program p({params}) {assume} {{ {body} }}");
        let spec = parse::program(&text).expect("the specification reads");
        Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    const MATRIX: &str = "M: size, N: size, A: in f32[M, N; lda], B: out f32[M, N; ldb]";
    const COPY: &str = "for i in 0..M, j in 0..N { B[i, j] = A[i, j] }";
    const BY_4: &str = "split(B.j, 4) -> j, v\nvectorize(B.v)";

    #[test]
    fn rows_must_be_aligned_too() {
        let refusal = run(MATRIX, "assume N%4 == 0, lda%4 == 0", COPY, BY_4).unwrap_err();
        assert!(refusal.contains("is `ldb` one?"), "{refusal}");
        let text = run(MATRIX, "assume N%4 == 0, lda%4 == 0, ldb%8 == 0", COPY, BY_4).unwrap();
        assert!(text.contains("for v in vector 0..4 {\n      B[i, 4*j + v] = A[i, 4*j + v]"), "{text}");
    }

    #[test]
    fn a_tensor_may_start_off_the_length_of_an_access() {
        let params = "x: in f32[64] align 8, y: out f32[64]";
        let body = "for i in 0..64 { y[i] = x[i] }";
        let refusal = run(params, "", body, "split(y.i, 4) -> i, v\nvectorize(y.v)").unwrap_err();
        assert!(refusal.contains("`x` starts at a multiple of 8 bytes, not of 16"), "{refusal}");
        let text = run(params, "", body, "split(y.i, 2) -> i, v\nvectorize(y.v)").unwrap();
        assert!(text.contains("v in vector 0..2"), "{text}");
    }

    #[test]
    fn a_copy_that_cannot_be_a_vector_is_unrolled() {
        let text = run(MATRIX, "", COPY, &format!("specialize(N%4, lda%4, ldb%4)\n{BY_4}")).unwrap();
        let (first, second) = text.split_once("} else {").unwrap();
        assert!(first.contains("v in vector 0..4") && !first.contains("unroll"), "{text}");
        assert!(second.contains("v in unroll 0..4") && !second.contains("vector"), "{text}");
    }

    #[test]
    fn a_fill_of_whole_vectors_needs_no_elements_one_by_one() {
        let body = "alloc t: f32[64] shared
            for c in 0..64 { t[c] = c < N ? A[0, c] : 0 }
            for j in 0..64 { if j < N { B[0, j] = t[j] } }";
        let text =
            run(MATRIX, "assume N%4 == 0, M == 1", body, "split(t.c, 4) -> c, v\nvectorize(t.v)").unwrap();
        assert!(text.contains("if 4*c + 4 <= N {"), "{text}");
        assert!(text.contains("} else {\n      for v in vector 0..4 {\n        t[4*c + v] = 0"), "{text}");
        assert!(!text.contains("unroll"), "{text}");
    }

    #[test]
    fn what_is_no_wide_access_is_refused() {
        for (body, because) in [
            ("for i in 0..4 { y[i] += x[i] }", "it reduces"),
            ("for i in 0..4 { y[2*i] = x[3*i] }", "not neighbours in memory"),
            ("for i in 0..4 { y[i] = x[i + 1] }", "multiple of 4"),
            ("for i in 0..3 { y[i] = x[i] }", "2, 4, 8 or 16"),
            ("for i in 0..8 { y[i] = x[i] }", "32 bytes"),
            ("for i in 0..4 { y[i + 4] = y[i] }", "computed from another"),
            ("for i in 0..4 { y[0] = x[i] }", "one element of `y`"),
        ] {
            let refusal = run("x: in f32[64], y: inout f32[64]", "", body, "vectorize(y.i)").unwrap_err();
            assert!(refusal.contains(because), "{body}: {refusal}");
        }
    }
}
