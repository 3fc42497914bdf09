//! Products by warpgroups, fed by the tensor memory accelerator: every prefix in order, the kernel on threads.

use warpwright::compile;
use warpwright::kernels::{Variant, gemm};
use warpwright_core::ir::Program;
use warpwright_core::schedule::Schedule;
use warpwright_core::target;
use warpwright_sim::exact::{self, Trials};

use crate::check::check;

/// A B^T in bf16: both operands with the axis of the sum along their rows, as wgmma wants them.
fn spec() -> Program {
    gemm::specification(Variant::new("bf16".parse().unwrap(), "nt".parse().unwrap()))
}

/// A tile of 128 x 64, two warpgroups, 64 terms at a time, for rows at multiples of 16 bytes and in general.
const TILED: &str = "specialize(lda%8, ldb%8)
split(C.i, 128) -> by, i
split(C.i, 64) -> w, i
split(C.j, 64) -> bx, j
reorder(C.by, C.bx, C.w, C.i, C.j)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.w, threads@128)
set_scope(acc, reg)
compute_at(acc, C.w)
split(acc.k, 64) -> ko, k
split(acc.k, 16) -> ks, k
reorder(acc.ko, acc.ks, acc.i, acc.j, acc.k)
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
fuse(As.r, As.c) -> f
split(As.f, 256) -> u, t
reorder(As.t, As.u)
bind(As.t, threads)
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
fuse(Bs.r, Bs.c) -> f
split(Bs.f, 256) -> u, t
reorder(Bs.t, Bs.u)
bind(Bs.t, threads)
";
const WGMMA: &str = "swizzle(As)
swizzle(Bs)
tensorize(acc.i, wgmma_bf16_sw128)
";

/// Sums of no term, of one step, of as many steps as the ring has slots, and of more.
const SIZES: [[(&str, i64); 3]; 5] = [
    [("M", 1), ("N", 2), ("K", 0)],
    [("M", 3), ("N", 5), ("K", 8)],
    [("M", 130), ("N", 9), ("K", 33)],
    [("M", 64), ("N", 65), ("K", 192)],
    [("M", 129), ("N", 3), ("K", 330)],
];

#[test]
fn every_step_towards_a_role_that_copies_is_right() {
    let text = format!("{TILED}{WGMMA}pipeline(acc.ko, 3, via=tma)\nunroll(acc.ks)\n");
    let schedule = Schedule::run(spec(), &text).unwrap_or_else(|e| panic!("{e}"));
    for sizes in &SIZES {
        check(&schedule, sizes, TILED.lines().count(), false, 7).unwrap_or_else(|e| panic!("{e}"));
    }
    let valid = compile::validated(schedule.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    for sizes in &SIZES {
        // Rows that start at multiples of 16 bytes go through the ring, others through the loop in step.
        for stride in [336, 331] {
            let strided = [&sizes[..], &[("lda", stride), ("ldb", stride)]].concat();
            let report = exact::check(schedule.spec(), valid.program(), &strided, &Trials::default());
            let report = report.unwrap_or_else(|e| panic!("{strided:?}: {e}"));
            assert!(report.passed(), "{strided:?}: {report:?}");
        }
    }
    compile::cuda(&valid).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn any_number_of_slots_and_up_to_three_warpgroups_will_do() {
    for (rows, stages) in [(64, 2), (192, 5)] {
        let steps = format!("{TILED}{WGMMA}pipeline(acc.ko, {stages}, via=tma)\n")
            .replace("split(C.i, 128)", &format!("split(C.i, {rows})"))
            .replace("f, 256", "f, 128");
        let schedule = Schedule::run(spec(), &steps).unwrap_or_else(|e| panic!("{e}"));
        let valid = compile::validated(schedule.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        for sizes in &SIZES[2..] {
            let strided = [&sizes[..], &[("lda", 336), ("ldb", 344)]].concat();
            let report = exact::check(schedule.spec(), valid.program(), &strided, &Trials::default());
            let report = report.unwrap_or_else(|e| panic!("{strided:?}: {e}"));
            assert!(report.passed(), "{rows} rows, {strided:?}: {report:?}");
        }
    }
}

#[test]
fn what_the_accelerator_cannot_do_is_said() {
    let refused = |steps: &str, words: &str| {
        let error = Schedule::run(spec(), steps).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    let pipeline = "pipeline(acc.ko, 3, via=tma)";
    refused(&format!("{TILED}{pipeline}"), "tensorize the products to wgmma first");
    refused(&format!("{TILED}{WGMMA}pipeline(acc.ko, 1, via=tma)"), "a ring needs two slots");
    refused(&format!("{TILED}{WGMMA}pipeline(acc.kx, 3, via=tma)"), "there is no loop `acc.kx`");
    let unaligned = TILED.replace("specialize(lda%8, ldb%8)\n", "");
    refused(&format!("{unaligned}{WGMMA}{pipeline}"), "may not start at multiples of 16 bytes");
    let four = TILED.replace("split(C.i, 128)", "split(C.i, 256)").replace("f, 256", "f, 512");
    refused(&format!("{four}{WGMMA}{pipeline}"), "4 warpgroups");
    let peeled = format!("{TILED}tail(acc.ko, peel)\n{WGMMA}{pipeline}");
    refused(&peeled, "do not peel it");
    refused(&format!("{TILED}{}", WGMMA.replace("swizzle(Bs)\n", "")), "is not the 128-byte swizzle");
}
