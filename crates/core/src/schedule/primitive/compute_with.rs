//! `compute_with`: two stages are computed in one pass.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(K: size, x: in f32[K], y: out f32[1], z: out f32[1]) {
//!   for i in 0..1 { y[i] = 0  for k in 0..K { y[i] += x[k] } }
//!   for i in 0..1 { z[i] = 0  for k in 0..K { z[i] += x[k] * x[k] } }
//! }").unwrap();
//! let after = Schedule::run(before, "compute_with(z.k, y.k)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(K: size,
//!     x: in f32[K], y: out f32[1], z: out f32[1])
//! {
//!   for i in 0..1 {
//!     y[i] = 0
//!     z[i] = 0
//!     for k in 0..K {
//!       y[i] += x[k]
//!       z[i] += x[k] * x[k]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! `compute_with(a.loop, b.loop)` makes one loop of the two and of those around them, pair by pair from the outermost on, which
//! have to run over the same in the same way. What stands beside them stays before or behind. Loops over threads around the
//! two are first sunk below them (fission, as for `compute_at`), so that each stage keeps its own.
//!
//! Neither stage may read what the other writes, nor write the same.

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{For, Mode, Program, Stmt, walk};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Changed, Effects, Place, contains, head, sink_threads};
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "compute_with(label.loop, other.loop)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct ComputeWith {
    /// The loop that is given up.
    pub moved: LoopRef,
    /// The loop that takes its statements.
    pub with: LoopRef,
}

impl ComputeWith {
    pub(super) fn read(call: &Call) -> Result<ComputeWith, Diagnosis> {
        Ok(ComputeWith { moved: call.loop_at(0)?, with: call.loop_at(1)? })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be computed with `{}`", self.moved, self.with)).because(because)
    }

    /// Rewrites every list in which the two stand in different statements.
    fn lists(&self, stmts: &[Stmt], place: &Place, count: &mut usize) -> Changed {
        let of = |target: &LoopRef| stmts.iter().position(|s| contains(s, &|l| target.means(l)));
        match (of(&self.moved), of(&self.with)) {
            (Some(moved), Some(with)) if moved != with => {
                *count += 1;
                self.list(stmts, moved, with, place).map(Some)
            }
            _ => place.rebuild_all(stmts, &mut |body, place| self.lists(body, place, count)),
        }
    }

    /// The list with both statements as one, where the later of them stood.
    fn list(&self, stmts: &[Stmt], moved: usize, with: usize, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        let (first, last) = (moved.min(with), moved.max(with));
        let effects = Effects::of(&stmts[first..=first]);
        for between in &stmts[first + 1..=last] {
            if let Some(buffer) = shared(&effects, &Effects::of(std::slice::from_ref(between))) {
                return Err(self.refuse(format!(
                    "`{buffer}` is written by one and touched by the other, or by what stands between them"
                )));
            }
        }
        let sunk = |at: usize, target: &LoopRef| {
            let refuse = |because: &str| self.refuse(because);
            let stmts = sink_threads(stmts[at].clone(), target, false, place, &refuse)?;
            match &stmts[..] {
                [Stmt::For(l)] => Ok(l.clone()),
                [_] => Err(self.refuse("conditions stand around them")),
                _ => Err(self
                    .refuse("loops over threads are the outermost")
                    .instead("bind a loop around them to blocks first")),
            }
        };
        let merged = self.merge(sunk(moved, &self.moved)?, sunk(with, &self.with)?, moved < with)?;
        let mut out = stmts.to_vec();
        out[last] = Stmt::For(merged);
        out.remove(first);
        Ok(out)
    }

    /// One loop of two that run over the same. The statements of the moved one stand before those of the other, or behind them.
    fn merge(&self, moved: For, with: For, before: bool) -> Result<For, Diagnosis> {
        let differ = |what: &str| self.refuse(format!("`{}` and `{}` {what}", moved.var, with.var));
        if kind(moved.mode) != kind(with.mode) {
            return Err(differ("are not carried out in the same way").instead("bind both alike"));
        }
        let same = Index::var(&with.var);
        let body = walk::substitute(&moved.body, &|s| (*s == moved.var).then(|| same.clone()));
        if moved.range != with.range || moved.counting.is_some() || with.counting.is_some() {
            return Err(differ("do not run over the same"));
        }
        let both = |mut moved: Vec<Stmt>, mut with: Vec<Stmt>| {
            if before {
                moved.append(&mut with);
                moved
            } else {
                with.append(&mut moved);
                with
            }
        };
        let (inner_moved, inner_with) = (self.moved.means(&moved), self.with.means(&with));
        if inner_moved != inner_with {
            return Err(self.refuse("they do not stand in the same number of loops"));
        }
        if inner_moved {
            return Ok(For { body: both(body, with.body.to_vec()).into(), ..head(&with) });
        }
        let [(moved_before, moved_path, moved_behind), (with_before, with_path, with_behind)] =
            [self.around(&body, &self.moved)?, self.around(&with.body, &self.with)?];
        let path = Stmt::For(self.merge(moved_path, with_path, before)?);
        let mut stmts = both(moved_before, with_before);
        stmts.push(path);
        stmts.extend(both(moved_behind, with_behind));
        Ok(For { body: stmts.into(), ..head(&with) })
    }

    /// What stands before the loop around the target, that loop, and what stands behind it.
    fn around(&self, body: &[Stmt], target: &LoopRef) -> Result<(Vec<Stmt>, For, Vec<Stmt>), Diagnosis> {
        let at = body.iter().position(|s| contains(s, &|l| target.means(l)));
        match at.map(|at| (at, &body[at])) {
            Some((at, Stmt::For(l))) => Ok((body[..at].to_vec(), l.clone(), body[at + 1..].to_vec())),
            _ => Err(self.refuse("conditions stand between the loops around them")),
        }
    }
}

/// How a loop is carried out, whatever is asked of the assembler for it.
fn kind(mode: Mode) -> Mode {
    match mode {
        Mode::Block { axis, ordered, .. } => Mode::Block { axis, ordered, min_blocks: None },
        other => other,
    }
}

/// A buffer that one of two writes and the other touches, or what both wait for.
fn shared(a: &Effects, b: &Effects) -> Option<String> {
    if a.synchronises && b.synchronises {
        return Some("a barrier".into());
    }
    let written = |by: &Effects, other: &Effects| {
        by.stores.iter().chain(&by.updates).find(|buffer| other.touches(buffer)).map(|b| b.name().to_string())
    };
    written(a, b).or_else(|| written(b, a))
}

impl Primitive for ComputeWith {
    fn call(&self) -> Call {
        Call::new("compute_with").target(&self.moved).target(&self.with)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        for target in [&self.moved, &self.with] {
            if !program.body.iter().any(|s| contains(s, &|l| target.means(l))) {
                return Err(target.unknown(program));
            }
        }
        let mut count = 0;
        let body = self.lists(&program.body, &Place::of(program), &mut count)?;
        match body {
            Some(body) if count > 0 => Ok(program.with_body(body)),
            _ => Err(self.refuse("they do not stand beside each other").instead("name loops of two nests")),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn run(body: &str, steps: &str) -> Result<String, String> {
        let text = format!("program p(K: size, x: in f32[K, 4], y: out f32[4], z: out f32[4]) {{ {body} }}");
        let spec = parse::program(&text).expect("reads");
        Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    const TWO_SUMS: &str = "
        for k in 0..K { for i in 0..4 { y[i] += x[k, i] } }
        for k in 0..K { for i in 0..4 { z[i] += x[k, i] * x[k, i] } }";

    #[test]
    fn the_order_of_the_statements_stays() {
        let text = run(TWO_SUMS, "compute_with(y.k, z.k)").unwrap();
        let (y, z) = (text.find("y[i] +=").unwrap(), text.find("z[i] +=").unwrap());
        assert!(y < z && text.matches("for k in 0..K").count() == 1, "{text}");
    }

    #[test]
    fn loops_over_threads_are_sunk_and_stay_apart() {
        let steps = "split(y.i, 2) -> b, i\nreorder(y.b, y.i, y.k)
            split(z.i, 2) -> b, i\nreorder(z.b, z.k, z.i)
            bind(y.b, block.x)\nbind(z.b, block.x)
            bind(y.i, threads)\ncompute_with(z.k, y.k)";
        let text = run(TWO_SUMS, steps).unwrap();
        let expected = "for k in 0..K {\n      for i in threads(2@1) {\n        y[2*b + i] += x[k, 2*b + i]";
        assert!(text.contains(expected) && text.matches("for k in").count() == 1, "{text}");
    }

    #[test]
    fn stages_that_need_each_other_or_run_otherwise_stay_apart() {
        let after = "
            for k in 0..K { for i in 0..4 { y[i] += x[k, i] } }
            for k in 0..K { for i in 0..4 { z[i] += x[k, i] * y[i] } }";
        let between = "
            for k in 0..K { for i in 0..4 { y[i] += x[k, i] } }
            for i in 0..4 { y[i] = y[i] + y[i] }
            for k in 0..K { for i in 0..4 { z[i] += x[k, i] } }";
        for (body, steps, because) in [
            (after, "compute_with(z.k, y.k)", "`y` is written by one and touched by the other"),
            (between, "compute_with(z.k, y.k)", "what stands between them"),
            (TWO_SUMS, "compute_with(z.i, y.k)", "same number of loops"),
            (TWO_SUMS, "split(z.k, 2) -> o, k\ncompute_with(z.o, y.k)", "do not run over the same"),
            (TWO_SUMS, "unroll(z.i)\ncompute_with(z.i, y.i)", "not carried out in the same way"),
            (TWO_SUMS, "compute_with(y.i, y.k)", "do not stand beside each other"),
            (TWO_SUMS, "compute_with(z.q, y.k)", "there is no loop `z.q`"),
            (
                TWO_SUMS,
                "reorder(y.i, y.k)\nreorder(z.i, z.k)\nbind(y.i, threads)\ncompute_with(z.k, y.k)",
                "do not run over the same",
            ),
        ] {
            let refused = run(body, steps).unwrap_err();
            assert!(refused.contains(because), "{steps}: {refused}");
        }
    }
}
