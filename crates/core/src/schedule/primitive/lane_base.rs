//! `lane_base`: what lanes access for elements of a fragment is written as one place of the lane and constants.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(x: in f64[16, 8], y: out f64[16, 8]) {
//!   for w in threads(1@32) {
//!     alloc acc: f64[2, 8, 8] reg frag D8x8
//!     for io in 0..2 { for (i, j) in own acc[io, :, :] { acc[io, i, j] = x[8*io + i, j] } }
//!     for io in 0..2 { for (i, j) in own acc[io, :, :] { y[8*io + i, j] = acc[io, i, j] } }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "lane_base(acc)").unwrap();
//! assert!(after.program().to_string().contains("for (i, j) in own acc[io, :, :] lane_base {"));
//! ```
//!
//! Which elements a lane accesses stays as it is, and so does the order. In CUDA C an element of shared memory in such a loop is an address of the
//! lane and a constant for each register and each iteration of an unrolled loop around, which takes no registers; how a compiler orders the
//! loads changes with it, so that kernels become faster or slower: measure both.

use crate::diag::Diagnosis;
use crate::ir::{Own, Program, Space, Stmt, walk};
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "lane_base(fragment)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct LaneBase {
    /// The buffer, whose elements are distributed over lanes by a fragment.
    pub buffer: String,
}

impl LaneBase {
    pub(super) fn read(call: &Call) -> Result<LaneBase, Diagnosis> {
        Ok(LaneBase { buffer: call.word_at(0)?.into() })
    }
}

impl Primitive for LaneBase {
    fn call(&self) -> Call {
        Call::new("lane_base").word(&self.buffer)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let refuse = |because: &str, instead: &str| {
            Err(Diagnosis::new(format!("lanes have no base for what is in `{}`", self.buffer))
                .because(because)
                .instead(instead))
        };
        let of_it: Vec<_> = program.buffers().into_values().filter(|b| b.sym.name() == self.buffer).collect();
        if of_it.is_empty() {
            return refuse("there is no buffer of that name", "name the fragment that is read or stored");
        }
        if !of_it.iter().all(|b| b.space == Space::Reg && b.fragment.is_some()) {
            return refuse(
                "it is no fragment: no lane owns elements that lie in a pattern",
                "apply tensorize first, which makes fragments of what instructions read and add to",
            );
        }
        let mut any = false;
        let body = walk::rewrite(program.body.clone(), &mut |stmt| match stmt {
            Stmt::Own(own) if own.window.buffer.name() == self.buffer => {
                any = true;
                vec![Stmt::Own(Own { lane_base: true, ..own })]
            }
            other => vec![other],
        });
        if !any {
            return refuse(
                "no loop goes over its elements",
                "apply it where they are loaded or stored one by one",
            );
        }
        Ok(program.with_body(body))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn refusal(steps: &str) -> String {
        let program = parse::program(
            "program p(x: in f64[8, 8], y: out f64[8, 8]) {
                alloc s: f64[8] shared
                for w in threads(1@32) {
                    alloc acc: f64[8, 8] reg frag D8x8
                    for (i, j) in own acc[:, :] { acc[i, j] = x[i, j] }
                    for (i, j) in own acc[:, :] { y[i, j] = acc[i, j] }
                }
            }",
        );
        Schedule::run(program.expect("reads"), steps).expect_err("is refused").to_string()
    }

    #[test]
    fn only_fragments_have_lanes() {
        assert!(refusal("lane_base(s)").contains("it is no fragment"));
        assert!(refusal("lane_base(q)").contains("there is no buffer of that name"));
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let program = parse::program(
            "program p(x: in f64[8, 8], y: out f64[8, 8]) {
                for w in threads(1@32) {
                    alloc acc: f64[8, 8] reg frag D8x8
                    for (i, j) in own acc[:, :] lane_base { acc[i, j] = x[i, j] }
                    for (i, j) in own acc[:, :] { y[i, j] = acc[i, j] }
                }
            }",
        )
        .expect("reads");
        let text = program.to_string();
        assert!(text.contains("own acc[:, :] lane_base {"), "{text}");
        assert_eq!(parse::program(&text).expect("reads").to_string(), text);
    }
}
