//! `partition`: the last elements of a stage become a stage of their own.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(x: in f32[9], y: out f32[9]) {
//!   alloc t: f32[9] global
//!   for i in 0..9 { t[i] = x[i] + x[i] }
//!   for i in 0..9 { y[i] = t[i] * t[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "partition(t.i, 8) -> last").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(x: in f32[9], y: out f32[9])
//! {
//!   alloc t: f32[8] global
//!   alloc last: f32[1] global
//!   for i in 0..8 {
//!     t[i] = x[i] + x[i]
//!   }
//!   for i in 0..1 {
//!     last[i] = x[i + 8] + x[i + 8]
//!   }
//!   for i in 0..9 {
//!     y[i] = (i < 8 ? t[i] : last[i - 8]) * (i < 8 ? t[i] : last[i - 8])
//!   }
//! }
//! ");
//! ```
//!
//! `partition(label.loop, N)` leaves the stage the first N iterations of one of its loops. The two can be scheduled each in
//! its own way: what is whole tiles by matrix instructions, the few rows and columns beside them by threads. Where both read the
//! same, [`compute_with`](super::ComputeWith) brings them together again.
//!
//! The stage must not have been moved or reordered yet, and its loop has a constant extent.

use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::ir::{Access, Buffer, Dim, For, Operand, Program, Range, Stmt, Value, walk};
use crate::schedule::handle::{LoopRef, writes};
use crate::schedule::rewrite::{Changed, Effects, Place, head, map_elements};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;
use super::compute_at::canonical_nest;

pub(super) const USAGE: &str = "partition(label.loop, N) -> rest";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The loop of the stage.
    pub target: LoopRef,
    /// The iterations that the stage keeps.
    pub keep: i64,
    /// The name of the stage of the others.
    pub rest: String,
}

/// The two stages that a stage becomes.
struct Parts<'a> {
    stage: &'a Buffer,
    rest: Buffer,
    /// The dimension along which they lie behind each other.
    dim: usize,
    keep: i64,
}

impl Partition {
    pub(super) fn read(call: &Call) -> Result<Partition, Diagnosis> {
        Ok(Partition { target: call.loop_at(0)?, keep: call.int_at(1)?, rest: call.results(1)?[0].clone() })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be partitioned", self.target)).because(because)
    }

    /// Rewrites every list in which the stage is allocated.
    fn lists(&self, stmts: &[Stmt], place: &Place, count: &mut usize) -> Changed {
        let here =
            stmts.iter().position(|s| matches!(s, Stmt::Alloc(b) if b.sym.name() == self.target.label));
        if let Some(at) = here {
            *count += 1;
            return self.list(stmts, at).map(Some);
        }
        place.rebuild_all(stmts, &mut |body, place| self.lists(body, place, count))
    }

    fn list(&self, stmts: &[Stmt], alloc: usize) -> Result<Vec<Stmt>, Diagnosis> {
        let Stmt::Alloc(stage) = &stmts[alloc] else { return Err(self.refuse("it is not allocated here")) };
        let computes = |s: &Stmt| writes(std::slice::from_ref(s), &self.target.label);
        let producers: Vec<usize> = (0..stmts.len()).filter(|at| computes(&stmts[*at])).collect();
        let [nest] = producers[..] else {
            return Err(match producers.len() {
                0 => self.refuse("no nest beside its allocation computes it"),
                several => self.refuse(format!("{several} nests compute it, one after another")),
            }
            .instead("apply partition before other steps, such as decompose_reduction"));
        };
        if stage.layout.is_some() || stage.is_distributed() {
            return Err(self
                .refuse("its elements have places of their own already")
                .instead("apply partition before steps on its storage"));
        }
        let changed = || {
            self.refuse("its stage has been moved or reordered").instead("apply partition before other steps")
        };
        let (vars, inner) = canonical_nest(&stmts[nest], stage).ok_or_else(changed)?;
        let own: Vec<Index> = vars.iter().map(Index::var).collect();
        let mut elsewhere = false;
        walk::for_each(&inner, &mut |s| {
            if let Stmt::Assign(a) = s {
                a.value.for_each_access(&mut |x| elsewhere |= x.buffer == stage.sym && x.index != own);
            }
        });
        if elsewhere {
            return Err(self.refuse("an element is computed from others of the same stage"));
        }
        let effects = Effects::of(&inner);
        if let Some(other) = effects.stores.iter().chain(&effects.updates).find(|b| **b != stage.sym) {
            // What comes first and what last would change.
            return Err(self
                .refuse(format!("its loops compute `{}`, too", other.name()))
                .instead("partition it before anything else is brought into its loops"));
        }
        let Some(dim) = vars.iter().position(|v| v.name() == self.target.name) else {
            return Err(self.refuse("that loop is none over its elements"));
        };
        let Some(extent) = stage.dims[dim].extent.as_constant() else {
            return Err(self.refuse(format!("its extent, {}, is no constant", stage.dims[dim].extent)));
        };
        if !(1..extent).contains(&self.keep) {
            return Err(self
                .refuse(format!("of {extent} iterations {} are no part", self.keep))
                .instead(format!("keep 1 to {} of them", extent - 1)));
        }
        let rest = Buffer {
            sym: Sym::new(&self.rest),
            dims: with_extent(&stage.dims, dim, extent - self.keep),
            ..stage.clone()
        };
        let parts = Parts { stage, rest, dim, keep: self.keep };
        let mut out = Vec::with_capacity(stmts.len() + 2);
        for (at, stmt) in stmts.iter().enumerate() {
            if at == alloc {
                let kept = Buffer { dims: with_extent(&stage.dims, dim, self.keep), ..stage.clone() };
                out.extend([Stmt::Alloc(kept), Stmt::Alloc(parts.rest.clone())]);
            } else if at == nest {
                out.push(shortened(stmt, &vars[dim], self.keep));
                out.push(parts.computed(stmt, &vars, extent));
            } else {
                if moved_whole(stmt, &stage.sym) {
                    return Err(self
                        .refuse("instructions move its elements")
                        .instead("apply partition before tensorize"));
                }
                out.push(parts.read_by(stmt));
            }
        }
        Ok(out)
    }
}

/// The dimensions with another extent of one of them.
fn with_extent(dims: &[Dim], dim: usize, extent: i64) -> Vec<Dim> {
    let mut dims = dims.to_vec();
    dims[dim] = Dim::new(Index::constant(extent));
    dims
}

/// The statement with the loop over `var`, one of those of a nest, made anew.
fn at_loop(stmt: &Stmt, var: &Sym, f: &dyn Fn(&For) -> For) -> Stmt {
    match stmt {
        Stmt::For(l) if l.var == *var => Stmt::For(f(l)),
        Stmt::For(l) => {
            let body: Vec<Stmt> = l.body.iter().map(|s| at_loop(s, var, f)).collect();
            Stmt::For(For { body: body.into(), ..head(l) })
        }
        other => other.clone(),
    }
}

/// The statement with only so many iterations of a loop.
fn shortened(stmt: &Stmt, var: &Sym, extent: i64) -> Stmt {
    at_loop(stmt, var, &|l| For { range: Range::upto(Index::constant(extent)), ..l.clone() })
}

impl Parts<'_> {
    /// The nest that computes the rest, made of the one that computes the whole.
    fn computed(&self, nest: &Stmt, vars: &[Sym], extent: i64) -> Stmt {
        let own: Vec<Index> = vars.iter().map(Index::var).collect();
        // The element is named first, so that what comes after it moves what is read alone.
        let named = map_elements(vec![nest.clone()], &|access| {
            if access.buffer == self.stage.sym {
                *access = Access::new(&self.rest.sym, Vec::new());
            }
        });
        let moved = shortened(&named[0], &vars[self.dim], extent - self.keep);
        let further = Index::var(&vars[self.dim]).offset(self.keep);
        let moved = at_loop(&moved, &vars[self.dim], &|l| {
            let body = walk::substitute(&l.body, &|s| (*s == l.var).then(|| further.clone()));
            For { body: body.into(), ..head(l) }
        });
        let placed = map_elements(vec![moved], &|access| {
            if access.buffer == self.rest.sym {
                access.index.clone_from(&own);
            }
        });
        walk::refresh(&placed).swap_remove(0)
    }

    /// The statement with every read of the stage going to the part that has the element.
    fn read_by(&self, stmt: &Stmt) -> Stmt {
        let read = |access: &Access| {
            if access.buffer != self.stage.sym {
                return Value::Load(access.clone());
            }
            let at = access.index[self.dim].clone();
            let mut of_rest = access.clone();
            of_rest.buffer = self.rest.sym.clone();
            of_rest.index[self.dim] = at.offset(-self.keep);
            let kept = Cond::lt(at, self.keep.into());
            match kept.as_constant() {
                Some(true) => Value::Load(access.clone()),
                Some(false) => Value::Load(of_rest),
                None => {
                    Value::Select(kept, Box::new(Value::Load(access.clone())), Box::new(Value::Load(of_rest)))
                }
            }
        };
        let mut out = walk::rewrite(vec![stmt.clone()], &mut |mut stmt| {
            if let Stmt::Assign(a) = &mut stmt {
                a.value = a.value.map_accesses(&read, &Clone::clone);
            }
            vec![stmt]
        });
        out.swap_remove(0)
    }
}

/// Whether an instruction or a loop over owned elements has a window of the buffer.
fn moved_whole(stmt: &Stmt, buffer: &Sym) -> bool {
    let mut found = false;
    walk::for_each(std::slice::from_ref(stmt), &mut |s| {
        found |= match s {
            Stmt::Instruction(i) => {
                i.operands.iter().any(|o| matches!(o, Operand::Window(w) if w.buffer == *buffer))
            }
            Stmt::Own(o) => o.window.buffer == *buffer,
            _ => false,
        }
    });
    found
}

impl Primitive for Partition {
    fn call(&self) -> Call {
        Call::new("partition").target(&self.target).int(self.keep).gives([&self.rest])
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let buffers = program.buffers();
        if buffers.values().any(|b| b.sym.name() == self.rest) {
            return Err(Diagnosis::new(format!("there is a buffer `{}` already", self.rest))
                .instead("choose another name"));
        }
        if program.tensors().any(|b| b.sym.name() == self.target.label) {
            return Err(self
                .refuse("it is a result of the program, and stays in one piece")
                .instead("partition a stage that it is made of: cache_write makes one"));
        }
        let mut count = 0;
        let body = self.lists(&program.body, &Place::of(program), &mut count)?;
        if count == 0 {
            return Err(self.target.unknown(program));
        }
        Ok(program.with_body(body.unwrap_or_else(|| program.body.clone())))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    const SUMS: &str = "program p(K: size, A: in f32[K, 9], B: in f32[K, 5], C: out f32[9, 5]) {
        alloc acc: f32[9, 5] global
        for i in 0..9, j in 0..5 { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[k, i] * B[k, j] } }
        for i in 0..9, j in 0..5 { C[i, j] = acc[i, j] + acc[8, j] }
    }";

    fn run(steps: &str) -> Result<String, String> {
        let spec = parse::program(SUMS).expect("reads");
        Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_and_columns_become_stages_of_their_own() {
        let text = run("partition(acc.i, 8) -> below\npartition(acc.j, 4) -> beside").unwrap();
        for part in ["acc: f32[8, 4]", "beside: f32[8, 1]", "below: f32[1, 5]"] {
            assert!(text.contains(&format!("alloc {part} global")), "{text}");
        }
        assert!(text.contains("below[i, j] += A[k, i + 8] * B[k, j]"), "{text}");
        assert!(text.contains("beside[i, j] += A[k, i] * B[k, j + 4]"), "{text}");
        // What is read at a place that is known goes straight to the part that has it.
        let read =
            "C[i, j] = (i < 8 ? (j < 4 ? acc[i, j] : beside[i, j - 4]) : below[i - 8, j]) + below[0, j]";
        assert!(text.contains(read), "{text}");
    }

    #[test]
    fn what_else_its_loops_compute_keeps_its_order() {
        let text = "program p(x: in f32[4, 9], y: out f32[4], C: out f32[4, 9]) {
            alloc t: f32[4, 9] global
            for i in 0..4, j in 0..9 { t[i, j] = x[i, j]  y[i] = t[i, j] }
            for i in 0..4, j in 0..9 { C[i, j] = t[i, j] }
        }";
        let refused = Schedule::run(parse::program(text).expect("reads"), "partition(t.j, 8) -> r");
        assert!(refused.unwrap_err().to_string().contains("its loops compute `y`, too"));
        let text =
            text.replace("global", "shared").replace("  y[i] = t[i, j]", "").replace("y: out f32[4], ", "");
        let steps = "storage_align(t, r, 1)\npartition(t.j, 8) -> r";
        let refused = Schedule::run(parse::program(&text).expect("reads"), steps).unwrap_err().to_string();
        assert!(refused.contains("places of their own"), "{refused}");
    }

    #[test]
    fn a_part_is_some_of_the_elements_of_a_stage_that_has_not_been_changed() {
        for (steps, because) in [
            ("partition(acc.i, 9) -> r", "of 9 iterations 9 are no part"),
            ("partition(acc.i, 0) -> r", "keep 1 to 8"),
            ("partition(acc.k, 1) -> r", "none over its elements"),
            ("partition(C.i, 8) -> r", "stays in one piece"),
            ("partition(acc.i, 8) -> C", "there is a buffer `C` already"),
            ("partition(acc.x, 8) -> r", "none over its elements"),
            ("partition(x.i, 8) -> r", "there is no loop `x.i`"),
            ("split(acc.i, 2) -> o, i\npartition(acc.i, 1) -> r", "moved or reordered"),
            ("decompose_reduction(acc.i)\npartition(acc.i, 8) -> r", "2 nests compute it"),
        ] {
            let refused = run(steps).unwrap_err();
            assert!(refused.contains(because), "{steps}: {refused}");
        }
    }
}
