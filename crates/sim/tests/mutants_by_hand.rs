//! Programs made wrong by hand, each in one place: barriers, stages, guards, fragments, swizzles, phases, fences,
//! ownership, atomics, tails. The SIMT walk finds every one that changes meaning or safety, and threads in random order
//! agree.

mod common;

use common::{read, specification, text};
use warpwright_core::ir::Program;
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::mutate::case::{Case, Shape};
use warpwright_sim::mutate::trial::{Agreement, Effort, trial};
use warpwright_sim::{HazardKind, Options};

/// What the walk makes of a mutant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Finding {
    /// A hazard of this kind is among those found.
    Hazard(HazardKind),
    /// Only values differ, or a diagnosis before anything ran.
    Anything,
    /// Nothing: the program is equivalent.
    Equivalent,
}

use Finding::{Anything, Equivalent, Hazard};
use HazardKind::{
    ExpectedBytes, Hang, InFlight, Operand, OutOfBounds, Outstanding, Ownership, Phase, ProxyFence, Race,
    Uninitialised, WgmmaFence,
};

const TILING: &str = "sgemm_block_tiling";
const VIRTUAL: &str = "sgemm_virtual_threads";
const ATOMIC: &str = "tsmttsm_atomic";
const TWO_PASS: &str = "tsmttsm_two_pass";
const CP_ASYNC: &str = "hgemm_cp_async";
const WGMMA: &str = "hgemm_tma_wgmma";
const REDUCE: &str = "reduce_two_pass";
const SCAN: &str = "scan_look_back";
const SPLIT_K: &str = "sgemm_split_k";

/// Program, old text, which occurrence (from 1), new text, what is found.
type Mutant = (&'static str, &'static str, usize, &'static str, Finding);

const MUTANTS: &[Mutant] = &[
    (TILING, "barrier", 1, "", Hazard(Race)),
    (TILING, "barrier", 2, "", Hazard(Race)),
    (TILING, "32*u + r < M", 1, "32*u + r < M + 1", Hazard(OutOfBounds)),
    (TILING, "m < M", 1, "m <= M", Hazard(OutOfBounds)),
    (TILING, "8*ko + c < K ?", 1, "8*ko + c < K + 7 ?", Hazard(OutOfBounds)),
    (TILING, "acc[ty, tx, i, j] += ", 1, "acc[tx, ty, i, j] += ", Hazard(Ownership)),
    (TILING, "c in threads(128@1)", 1, "c in threads(127@1)", Hazard(Uninitialised)),
    (TILING, "if beta0 {", 1, "if !beta0 {", Hazard(Uninitialised)),
    (VIRTUAL, "barrier", 1, "", Hazard(Race)),
    (VIRTUAL, "barrier", 2, "", Hazard(Race)),
    (VIRTUAL, "64*u + 4*tx + 4 <= N", 1, "64*u + 4*tx <= N", Hazard(OutOfBounds)),
    (VIRTUAL, "16*ko + ty < K && 128*bx", 1, "128*bx", Hazard(OutOfBounds)),
    (ATOMIC, "atomic part", 1, "part", Hazard(Race)),
    (ATOMIC, "atomic C", 1, "C", Hazard(Race)),
    (ATOMIC, "barrier", 1, "", Hazard(Race)),
    (ATOMIC, "barrier", 2, "", Hazard(Race)),
    (ATOMIC, "barrier", 3, "", Hazard(Race)),
    (ATOMIC, "7*j + nt < 20 {", 1, "7*j + nt < 21 {", Hazard(OutOfBounds)),
    (ATOMIC, "K - 12*G step", 1, "K - 11*G step", Hazard(OutOfBounds)),
    (ATOMIC, "if k0 < K {", 2, "if k0 < 0 {", Anything),
    (TWO_PASS, "barrier", 1, "", Hazard(Race)),
    (TWO_PASS, "barrier", 2, "", Hazard(Race)),
    (CP_ASYNC, "cp.wait 1", 1, "cp.wait 2", Hazard(Race)),
    (CP_ASYNC, "barrier", 1, "", Hazard(Race)),
    (CP_ASYNC, "As[(ko + 2)%3", 1, "As[(ko + 3)%3", Hazard(Race)),
    (CP_ASYNC, "As[ko%3", 1, "As[(ko + 1)%3", Hazard(Race)),
    (CP_ASYNC, "cp.commit", 2, "", Hazard(Race)),
    (CP_ASYNC, "(r/2)%4) + c%8", 1, "(r/2)%5) + c%8", Anything),
    (CP_ASYNC, "(r/2)%4) + c%8", 1, "(r/2)%4) + (c + 4)%8", Hazard(Operand)),
    (CP_ASYNC, "b[nj, :, 8*h +: 8]", 1, "b[nj, :, 8 - 8*h +: 8]", Anything),
    (CP_ASYNC, "A16x16", 1, "B16x16", Hazard(Operand)),
    (WGMMA, "4 <= n {\n              await(empty[n - 4])", 1, "5 <= n {\n await(empty[n - 5])", Hazard(Race)),
    (WGMMA, "await(empty[n - 4])", 1, "", Hazard(Race)),
    (WGMMA, "await(empty[n - 4])", 1, "await(empty[n])", Hazard(Hang)),
    (WGMMA, "await(full[n])", 1, "", Hazard(Race)),
    (WGMMA, "await(full[n])", 1, "if 0 < n { await(full[n - 1]) }", Hazard(Race)),
    (WGMMA, "wgmma.fence", 1, "", Hazard(WgmmaFence)),
    (WGMMA, "wgmma.wait 1", 1, "wgmma.wait 2", Hazard(Race)),
    (WGMMA, "if 0 < k {", 1, "if true_k {", Anything),
    (WGMMA, "wgmma.wait 0", 1, "", Hazard(InFlight)),
    (WGMMA, "fence.async", 1, "", Hazard(ProxyFence)),
    // The first of the name stands in the comment.
    (WGMMA, "barrier", 2, "", Hazard(Race)),
    (WGMMA, "barrier", 3, "", Hazard(Race)),
    (WGMMA, "bulk.wait_read 0", 1, "", Hazard(Race)),
    (WGMMA, "bulk.wait 0", 1, "", Hazard(Outstanding)),
    (WGMMA, "tx 32768", 1, "tx 16384", Hazard(ExpectedBytes)),
    (WGMMA, "64*r + 8*xor(c/8, r%8) + c%8", 1, "64*r + c", Hazard(Operand)),
    (WGMMA, "4096*q + 64*r + 8*xor(c/8, r%8) + c%8", 1, "4096*q + 64*r + c", Hazard(Operand)),
    (WGMMA, "ring 4 count 2", 1, "ring 4 count 1", Hazard(Phase)),
    (WGMMA, "As[n%4, 64*w +: 64", 1, "As[n%4, 0 +: 64", Anything),
    (REDUCE, "barrier", 1, "", Hazard(Race)),
    (REDUCE, "[16, 8, 4, 2, 1]", 1, "[16, 8, 4, 2]", Anything),
    // Lanes past the eighth add what the first eight added already, and nobody reads them: equivalent.
    (REDUCE, "l < 8 ? s[l] : 0", 1, "s[min(l, 7)]", Equivalent),
    (SCAN, "barrier", 1, "", Hazard(Race)),
    (SCAN, "barrier", 2, "", Hazard(Race)),
    (SCAN, "if d <= l {", 1, "if 0 <= l {", Anything),
    (SCAN, "shfl_idx(total[:], p[:], 7)", 1, "shfl_idx(total[:], p[:], 6)", Anything),
    (SPLIT_K, "part(s, 4) 0..", 1, "0..", Anything),
    (SPLIT_K, "barrier", 1, "", Hazard(Race)),
    (SPLIT_K, "barrier", 2, "", Hazard(Race)),
];

/// Those that no order of threads shows: both are refused because of what is declared, but instructions find their
/// operands by rules of their own, and nothing else uses these.
const UNSEEN: &[&str] = &[
    "hgemm_cp_async: `A16x16` -> `B16x16`",
    "hgemm_tma_wgmma: `64*r + 8*xor(c/8, r%8) + c%8` -> `64*r + c`",
];

fn sizes(name: &str) -> &'static [(&'static str, i64)] {
    match name {
        TILING => &[("M", 130), ("N", 129), ("K", 9)],
        VIRTUAL => &[("M", 68), ("N", 132), ("K", 17), ("lda", 136), ("ldb", 72)],
        ATOMIC => &[("K", 61), ("G", 2)],
        TWO_PASS => &[("K", 100)],
        CP_ASYNC => &[("M", 33), ("N", 20), ("K", 136), ("lda", 136), ("ldb", 24)],
        WGMMA => &[("M", 130), ("N", 60), ("K", 330), ("G", 1), ("lda", 336), ("ldb", 336), ("ldc", 64)],
        REDUCE => &[("n", 5000)],
        SCAN => &[("n", 2500)],
        _ => &[("M", 65), ("N", 67), ("K", 100)],
    }
}

fn mutate(name: &str, old: &str, nth: usize, new: &str) -> String {
    let text = text(name);
    let found = text.match_indices(old).nth(nth - 1);
    let (at, _) = found.unwrap_or_else(|| panic!("{name} has no {nth}th `{old}`"));
    format!("{}{new}{}", &text[..at], &text[at + old.len()..])
}

/// A mutant as a program, and what reports call it.
fn made((name, old, nth, new, _): &Mutant) -> (Program, String) {
    let new = if *new == "if true_k {" { "if 0 <= k {" } else { new };
    (read(&mutate(name, old, *nth, new)), format!("{name}: `{old}` -> `{new}`"))
}

#[test]
fn every_mutant_is_found_for_the_right_reason() {
    let mut failures = Vec::new();
    for entry @ (name, .., finding) in MUTANTS {
        let (mutant, label) = made(entry);
        let spec = read(&specification(name));
        let trials = Trials { count: 1, options: Options::default(), ..Trials::default() };
        match exact::check(&spec, &mutant, sizes(name), &trials) {
            Err(_) if *finding == Anything => {}
            Err(d) => failures.push(format!("{label}: refused: {d}")),
            Ok(report) => {
                let fine = match finding {
                    Hazard(kind) => report.run.hazards.iter().any(|h| h.kind == *kind),
                    Anything => !report.passed(),
                    Equivalent => report.passed(),
                };
                if !fine {
                    failures.push(format!("{label}: {} differ; {}", report.differing, report.run));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), MUTANTS.len(), failures.join("\n"));
}

#[test]
fn threads_in_random_order_agree_about_every_mutant() {
    let mut names: Vec<&str> = MUTANTS.iter().map(|m| m.0).collect();
    names.dedup();
    let mut unseen = Vec::new();
    for name in names {
        let (program, specification) = (read(&text(name)), read(&specification(name)));
        let betas: &[i64] = if program.param("beta0").is_some() { &[0, 1] } else { &[0] };
        let shape = |beta0: &i64| -> Shape { [sizes(name), &[("beta0", *beta0)]].concat() };
        let shapes = betas.iter().map(shape).collect();
        let case = Case { name: name.to_string(), specification, program, shapes };
        let examples = case.examples(1);
        for entry in MUTANTS.iter().filter(|m| m.0 == name) {
            let (mutant, label) = made(entry);
            let verdict = trial(&case, &examples, &mutant, 1, Effort::UntilCaught);
            match verdict.agreement() {
                Agreement::Clean => assert_eq!(entry.4, Equivalent, "{label}: {verdict:?}"),
                Agreement::Shown => {}
                Agreement::Unseen => unseen.push(label),
                Agreement::Disagreement => panic!("{label}: {verdict:?}"),
            }
        }
    }
    assert_eq!(unseen, UNSEEN);
}
