//! `rotate`: a loop begins elsewhere in each iteration of a loop around it.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(x: in f32[3, 4], y: out f32[3, 4]) {
//!   for i in 0..3, j in 0..4 { y[i, j] = x[i, j] }
//! }").unwrap();
//! let after = Schedule::run(before, "rotate(y.j, y.i)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(x: in f32[3, 4], y: out f32[3, 4])
//! {
//!   for i in 0..3, j in 0..4 {
//!     y[i, (i + j)%4] = x[i, (i + j)%4]
//!   }
//! }
//! ");
//! ```
//!
//! With a number, `rotate(y.j, y.i, 2)`, the first iteration of the loop around begins so many further on: `y[i, (i + j + 2)%4]`.
//!
//! Each iteration still runs once. What is bound to threads changes hands: of four rows of four warps, warp `w` of each stands on
//! scheduler `w`; where the parts of the last column are small, its scheduler has little to do. Rotated by their rows, each scheduler has
//! a warp of each row and of each column. (The name and its meaning are those of DISTAL's command,
//! <https://arxiv.org/abs/2203.08069>.)
//!
//! The loop counts from 0 to a constant, and its iterations are independent, or run in threads or blocks already.

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{Buffer, For, Mode, Program, Range, Stmt, walk};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Effects, at_loops, head, independent};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "rotate(label.loop, label.outer, further)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Rotate {
    /// The loop.
    pub target: LoopRef,
    /// The loop around it by which it is rotated.
    pub by: LoopRef,
    /// By how many iterations more, at least 0.
    pub further: i64,
}

impl Rotate {
    pub(super) fn read(call: &Call) -> Result<Rotate, Diagnosis> {
        if !(2..=3).contains(&call.args.len()) {
            return Err(call.wrong("a loop and one around it are wanted, and a number, if need be"));
        }
        let further = if call.args.len() == 3 { call.int_at(2)? } else { 0 };
        if further < 0 {
            return Err(call.wrong("it begins 0 iterations further on, or more"));
        }
        Ok(Rotate { target: call.loop_at(0)?, by: call.loop_at(1)?, further })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be rotated by `{}`", self.target, self.by)).because(because)
    }
}

impl Primitive for Rotate {
    fn call(&self) -> Call {
        let call = Call::new("rotate").target(&self.target).target(&self.by);
        if self.further == 0 { call } else { call.int(self.further) }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        at_loops(program, &self.target, &mut |l, place| {
            let extent = match &l.range {
                Range::Span { lo, hi, step }
                    if lo.as_constant() == Some(0)
                        && step.as_constant() == Some(1)
                        && l.counting.is_none() =>
                {
                    hi.as_constant()
                }
                _ => None,
            };
            let Some(extent) = extent.filter(|extent| *extent > 0) else {
                return Err(self
                    .refuse("it does not count from 0 by 1 to a constant")
                    .instead("split it and rotate the inner loop"));
            };
            let outer = place.outer();
            let Some(by) = outer.iter().find(|o| self.by.means(o)) else {
                return Err(self.refuse("the second is not around the first").instead("reorder them first"));
            };
            match l.mode {
                Mode::Block { .. } => {}
                Mode::Threads { .. } => {
                    if let Some(owned) = owned(&l, &place.program.buffers()) {
                        return Err(self
                            .refuse(format!("each thread has elements of `{owned}` that no other can reach"))
                            .instead("rotate it before anything is computed at it"));
                    }
                }
                Mode::Serial => independent(&l, &place.facts()).map_err(|because| self.refuse(because))?,
                _ => {
                    return Err(self
                        .refuse("it is unrolled, vectorized or interleaved already")
                        .instead("rotate it before"));
                }
            }
            let turned =
                (&Index::var(&l.var) + &Index::var(&by.var)).offset(self.further % extent).rem(extent);
            let body = walk::substitute(&l.body, &|s| (*s == l.var).then(|| turned.clone()));
            Ok(vec![Stmt::For(For { body: body.into(), ..head(&l) })])
        })
    }
}

/// A buffer outside a loop over threads that it uses and whose elements each belong to one of them.
fn owned(l: &For, buffers: &HashMap<Sym, Buffer>) -> Option<Sym> {
    let Effects { reads, stores, updates, .. } = Effects::of(&l.body);
    let mut used = [reads, stores, updates].into_iter().flatten();
    used.find(|sym| buffers.get(sym).is_some_and(Buffer::is_distributed))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::ir::{Assign, Stmt, parse, walk};
    use crate::schedule::Schedule;

    fn run(text: &str, steps: &str) -> Result<Schedule, String> {
        let program = parse::program(text).expect("reads");
        Schedule::run(program, steps).map_err(|e| e.to_string())
    }

    /// Rows and columns, which are copied.
    const COPY: &str = "program p(n: size, x: in f32[3, 4], y: out f32[3, 4], z: out f32[3, n]) {
      for i in 0..3, j in 0..4 { y[i, j] = x[i, j] }
      for i in 0..3, j in 0..n { z[i, j] = 1 }
    }";

    #[test]
    fn refusals_say_why() {
        for (steps, because) in [
            (
                "rotate(z.j, z.i)",
                "it does not count from 0 by 1 to a constant; split it and rotate the inner loop",
            ),
            ("rotate(y.i, y.j)", "the second is not around the first; reorder them first"),
            ("rotate(y.i, y.i)", "the second is not around the first"),
            ("rotate(y.j, z.i)", "the second is not around the first"),
            ("unroll(y.j)\nrotate(y.j, y.i)", "it is unrolled, vectorized or interleaved already"),
            ("vectorize(y.j)\nrotate(y.j, y.i)", "it is unrolled, vectorized or interleaved already"),
            ("bind(y.j, vthread)\nrotate(y.j, y.i)", "it is unrolled, vectorized or interleaved already"),
            ("rotate(y.k, y.i)", "there is no loop `y.k`"),
            ("rotate(y.j)", "a loop and one around it are wanted"),
            ("rotate(y.j, y.i, -1)", "it begins 0 iterations further on, or more"),
        ] {
            let refusal = run(COPY, steps).expect_err(steps);
            assert!(refusal.contains(because), "{steps}: {refusal}");
        }
    }

    #[test]
    fn a_serial_loop_whose_iterations_depend_on_each_other_stays_as_it_is() {
        let of = |body: &str| {
            let text = format!(
                "program p(x: in f32[3, 4], y: inout f32[3, 5]) {{ for i in 0..3, j in 0..4 {{ {body} }} }}"
            );
            run(&text, "rotate(y.j, y.i)").map(|s| s.program().to_string())
        };
        for body in [
            // A sum of all before.
            "y[i, j + 1] = y[i, j] + x[i, j]",
            // The last one stays.
            "y[i, 0] = x[i, j]",
            // Of two neighbours the later one stays.
            "y[i, j] = x[i, j]  y[i, j + 1] = 1",
            "if j < 2 { y[i, j] = x[i, j] } else { y[i, 3 - j] = 1 }",
        ] {
            let refusal = of(body).expect_err(body);
            assert!(refusal.contains("two iterations may touch one element of `y`"), "{body}: {refusal}");
        }
        // A sum may begin anywhere, and so may what conditions keep apart.
        let sum = of("y[i, 4] += x[i, j]").expect("is taken");
        assert!(sum.contains("y[i, 4] += x[i, (i + j)%4]"), "{sum}");
        let apart = of("if j < 2 { y[i, j] = x[i, j] } else { y[i, 5 - j] = 1 }").expect("is taken");
        assert!(apart.contains("if (i + j)%4 < 2 {"), "{apart}");
    }

    #[test]
    fn loops_over_threads_and_blocks_may_be_rotated() {
        let after = run(COPY, "bind(y.j, threads)\nrotate(y.j, y.i)").expect("is taken");
        let text = after.program().to_string();
        assert!(text.contains("for j in threads(4@1) {"), "{text}");
        assert!(text.contains("y[i, (i + j)%4] = x[i, (i + j)%4]"), "{text}");
        // Of two loops over the same threads one may be rotated: what they share is in shared memory.
        let shared = "program p(x: in f32[3, 4], y: out f32[3, 4]) { for b in block.x(3) {
          alloc s: f32[4] shared
          for j in threads(4@1) { s[j] = x[b, j] }
          barrier
          for j in threads(4@1) { y[b, j] = s[3 - j] }
        } }";
        let text = run(shared, "rotate(y.j, y.b)").expect("is taken").program().to_string();
        assert!(text.contains("s[j] = x[b, j]"), "{text}");
        assert!(text.contains("y[b, (b + j)%4] = s[-((b + j)%4) + 3]"), "{text}");
        let text = run(COPY, "bind(y.i, block.y)\nbind(y.j, block.x)\nrotate(y.j, y.i)");
        let text = text.expect("is taken").program().to_string();
        assert!(text.contains("j in block.x(4)") && text.contains("y[i, (i + j)%4] ="), "{text}");
    }

    #[test]
    fn a_loop_may_begin_further_on_by_a_number() {
        for (further, index) in
            [(0, "(i + j)%4"), (2, "(i + j + 2)%4"), (7, "(i + j + 3)%4"), (8, "(i + j)%4")]
        {
            let after = run(COPY, &format!("rotate(y.j, y.i, {further})")).expect("is taken");
            let text = after.program().to_string();
            assert!(text.contains(&format!("y[i, {index}] = x[i, {index}]")), "{text}");
        }
        let steps = run(COPY, "rotate(y.j, y.i, 2)").expect("is taken").text();
        assert!(steps.contains("rotate(y.j, y.i, 2)"), "{steps}");
    }

    #[test]
    fn what_threads_have_in_registers_stays_theirs() {
        let text = "program p(x: in f32[3, 4], y: out f32[3, 4]) { for b in block.x(3) {
          alloc r: f32[4@1] reg
          for j in threads(4@1) { r[j] = x[b, j] }
          for j in threads(4@1) { y[b, j] = r[j] }
        } }";
        for step in ["rotate(y.j, y.b)", "rotate(r.j, r.b)"] {
            let refusal = run(text, step).expect_err(step);
            assert!(refusal.contains("each thread has elements of `r`"), "{step}: {refusal}");
        }
    }

    #[test]
    fn each_iteration_runs_once_however_long_the_loop_around_is() {
        for (rows, columns) in [(1, 1), (1, 4), (3, 4), (4, 4), (9, 4), (5, 1), (2, 7)] {
            let text = format!(
                "program p(y: out f32[{rows}, {columns}]) {{
                  for i in 0..{rows}, j in 0..{columns} {{ y[i, j] = 1 }}
                }}"
            );
            let after = run(&text, "rotate(y.j, y.i)").expect("is taken");
            let mut indices = Vec::new();
            walk::for_each(&after.program().body, &mut |stmt| {
                if let Stmt::Assign(Assign { target, .. }) = stmt {
                    indices.push(target.index.clone());
                }
            });
            let [index] = &indices[..] else { panic!("one element is stored: {}", after.program()) };
            for row in 0..rows {
                let at = |column: i64| {
                    let value = |s: &crate::sym::Sym| Some(if s.name() == "i" { row } else { column });
                    [&index[0], &index[1]].map(|i| i.eval(&value).expect("every variable is known"))
                };
                let stored: BTreeSet<_> = (0..columns).map(at).collect();
                assert_eq!(stored, (0..columns).map(|column| [row, column]).collect(), "{}", after.program());
                assert_eq!(at(0), [row, row % columns], "each row begins one further");
            }
        }
    }

    #[test]
    fn the_step_is_written_back_as_it_was_read() {
        let steps = "bind(y.j, threads)\nrotate(y.j, y.i)\n";
        let schedule = run(COPY, steps).expect("is taken");
        assert_eq!(schedule.text(), steps);
        let again = run(COPY, &schedule.text()).expect("is taken");
        assert_eq!(again.program().to_string(), schedule.program().to_string());
    }
}
