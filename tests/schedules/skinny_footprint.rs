//! The families for tall and skinny products: blocks have the threads and the shared memory that constraints and the model take for granted.

use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family};
use warpwright::problem::Problem;
use warpwright_core::emit::cuda::Source;
use warpwright_core::ir::validate::Valid;
use warpwright_core::target;

use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, problem};

/// The program and its text are what the footprint of the choice says, in whole warps, and but for what lies between buffers in shared memory: they
/// start at multiples of up to 1024 bytes, or of 128.
pub fn agrees(family: &Family, problem: &Problem, choice: &Choice, program: &Valid, source: &Source) {
    let footprint = (family.footprint)(problem, choice, target::DEFAULT);
    // In `tsmttsm`, where threads add up the border of a sum, blocks have as many as that takes.
    if family.name == "tsmm" {
        let warps = |threads: i64| (threads + 31) / 32;
        let found: Vec<i64> = program.launches().iter().map(|launch| launch.threads).collect();
        let same = found.iter().all(|threads| warps(*threads) == warps(footprint.threads));
        assert!(
            same,
            "{problem:?} with {choice}: {} threads in a block expected: {found:?}",
            footprint.threads
        );
    }
    if choice.get("stages").is_some() {
        let expected = footprint.shared_bytes;
        let found: Vec<i64> = source.kernels.iter().map(|kernel| kernel.shared_bytes).collect();
        let near = found.iter().any(|bytes| (bytes - expected).abs() <= 1024 + 2 * 128 + expected / 50);
        assert!(near, "{problem:?} with {choice}: {expected} bytes of shared memory expected: {found:?}");
    }
}

#[test]
fn a_small_matrix_that_threads_pad_is_copied_by_those_that_read_rows() {
    let family = kernels::family("tsmm").unwrap();
    // Two threads of three columns each, of which there are five; and five of two, of which there are nine.
    for (dtype, width, form) in [
        ("f64", 5, "threads=2,block=512"),
        ("c128", 5, "threads=2,block=128"),
        ("f32", 9, "threads=8,block=128"),
    ] {
        let problem = problem(family, (width, width), dtype);
        let choice = chosen(family, &problem, &format!("staging=registers,c_source=shared,unroll=1,{form}"));
        // It asks for what `agrees` says, too.
        holds(family, &problem, &choice, &[0, 1, 257]);
    }
}
