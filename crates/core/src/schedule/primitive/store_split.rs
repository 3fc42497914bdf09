//! `store_split`: a buffer stores its elements as their tf32 parts.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(x: in f32[8], y: out f32[8]) {
//!   alloc t: f32[8] shared
//!   for i in 0..8 { t[i] = x[i] }
//!   for i in 0..8 { y[i] = t[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "store_split(t)").unwrap();
//! assert!(after.program().to_string().contains("alloc t: f32[8] shared split"));
//! ```
//!
//! An element is then the number rounded to eleven bits and what is left of it, and takes twice the bytes. It is the same
//! number. Matrix units multiply f32 numbers by such parts: those of a small matrix, which every warp reads again and again,
//! are found once instead of each time. What `cache_read` copies of the buffer afterwards is stored so too.

use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::ir::{AssignOp, Mode, Operand, Program, Space, Stmt, walk};
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "store_split(buffer)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct StoreSplit {
    /// The buffer.
    pub buffer: String,
}

impl StoreSplit {
    pub(super) fn read(call: &Call) -> Result<StoreSplit, Diagnosis> {
        Ok(StoreSplit { buffer: call.word_at(0)?.into() })
    }

    fn refuse(&self, because: &str, instead: &str) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot store its elements split", self.buffer))
            .because(because)
            .instead(instead)
    }

    /// Whether statements move several elements of it at once.
    fn is_moved_wide(&self, stmts: &[Stmt]) -> bool {
        let mut found = false;
        walk::for_each(stmts, &mut |stmt| {
            if let Stmt::For(l) = stmt
                && l.mode == Mode::Vector
            {
                walk::for_each_symbol(&l.body, &mut |sym| found |= sym.name() == self.buffer);
            }
        });
        found
    }
}

impl Primitive for StoreSplit {
    fn call(&self) -> Call {
        Call::new("store_split").word(&self.buffer)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut found = None;
        let (mut by_instructions, mut added_to) = (false, false);
        walk::for_each(&program.body, &mut |stmt| match stmt {
            Stmt::Alloc(buffer) if buffer.sym.name() == self.buffer => found = Some(buffer.clone()),
            Stmt::Instruction(i) => {
                let is_it = |o: &Operand| matches!(o, Operand::Window(w) if w.buffer.name() == self.buffer);
                by_instructions |= i.operands.iter().any(is_it);
            }
            Stmt::Assign(a) => {
                added_to |= a.target.buffer.name() == self.buffer && a.op != AssignOp::Store;
            }
            _ => {}
        });
        let Some(buffer) = found else {
            return Err(Diagnosis::new(format!("there is no intermediate buffer `{}`", self.buffer))
                .instead("cache_read and cache_write make one; parameters stay as they are"));
        };
        if !matches!(buffer.dtype, DType::F32 | DType::C64) {
            return Err(self.refuse("only numbers of f32 and c64 have tf32 parts", "leave it as it is"));
        }
        if buffer.space == Space::Global {
            return Err(
                self.refuse("it is in device memory", "apply it to what is in shared memory or registers")
            );
        }
        if by_instructions || self.is_moved_wide(&program.body) {
            return Err(self.refuse(
                "instructions or wide accesses move its elements as they are",
                "apply store_split before tensorize and vectorize, to copies that go element by element",
            ));
        }
        if added_to {
            return Err(self.refuse("something is added to its elements", "add up in another buffer"));
        }
        let body = walk::rewrite(program.body.clone(), &mut |mut stmt| {
            if let Stmt::Alloc(buffer) = &mut stmt
                && buffer.sym.name() == self.buffer
            {
                buffer.split = true;
            }
            vec![stmt]
        });
        Ok(program.with_body(body))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::ir::validate::check;
    use crate::schedule::Schedule;

    fn refusal(program: &str, steps: &str) -> String {
        let program = parse::program(program).expect("reads");
        Schedule::run(program, steps).expect_err("is refused").to_string()
    }

    #[test]
    fn only_copies_that_go_element_by_element_store_parts() {
        let copies = |dtype: &str, space: &str, body: &str| {
            format!(
                "program p(x: in {dtype}[8], y: out {dtype}[8]) {{
                    alloc t: {dtype}[8] {space}
                    {body}
                    for i in 0..8 {{ y[i] = t[i] }}
                }}"
            )
        };
        let plain = "for i in 0..8 { t[i] = x[i] }";
        for (program, because) in [
            (copies("f64", "shared", plain), "only numbers of f32 and c64"),
            (copies("f32", "global", plain), "it is in device memory"),
            (copies("f32", "shared", "for i in vector 0..8 { t[i] = x[i] }"), "wide accesses"),
            (copies("f32", "shared", "for i in 0..8 { t[i] = 0 t[i] += x[i] }"), "something is added"),
        ] {
            let refused = refusal(&program, "store_split(t)");
            assert!(refused.contains(because), "{refused}");
        }
        assert!(
            refusal(&copies("f32", "shared", plain), "store_split(y)").contains("no intermediate buffer")
        );
        let refused =
            refusal(&copies("f32", "shared", plain), "store_split(t)\nsplit(y.i, 4) -> i, v\nvectorize(y.v)");
        assert!(refused.contains("which are no neighbours"), "{refused}");
        let moved = Schedule::run(
            parse::program(&copies("c64", "shared", plain)).expect("reads"),
            "store_split(t)\nset_scope(t, global)",
        );
        assert!(moved.expect("is moved").program().to_string().contains("alloc t: c64[8] global\n"));
    }

    #[test]
    fn what_stores_parts_is_read_and_stored_only() {
        let faults = |text: &str| {
            let found = check(parse::program(text).expect("reads")).expect_err("is no right program");
            found.iter().map(ToString::to_string).collect::<String>()
        };
        let added = "program p(x: in f32[8], y: out f32[8]) {
            alloc t: f32[8] shared split
            for i in 0..8 { t[i] = 0 t[i] += x[i] }
            for i in 0..8 { y[i] = t[i] }
        }";
        assert!(faults(added).contains("`t` is added to"));
        let wide = "program p(x: in f32[8], y: out f32[8]) {
            alloc t: f32[8] shared split
            for i in 0..8 { t[i] = x[i] }
            for j in 0..2 { for i in vector 0..4 { y[4*j + i] = t[4*j + i] } }
        }";
        assert!(faults(wide).contains("moves elements of `t`"));
        let of_ints = "program p(y: out i32[8]) {
            alloc t: i32[8] shared split
            for i in 0..8 { t[i] = 1 }
            for i in 0..8 { y[i] = t[i] }
        }";
        assert!(faults(of_ints).contains("which those of its type do not have"));
    }
}
