//! The checker is tested with the kernels that are shipped: mutants of the rungs of the ladders, up to warpgroups fed by
//! bulk copies, must be caught; the rungs themselves must pass; and real threads in random order must find nothing that
//! the SIMT engine misses.
//!
//! The same is asked of the programs of the library in `crates/sim/tests/mutants`.

mod survivors;

use std::collections::HashSet;

use survivors::SURVIVORS;
use warpwright::compile::validated;
use warpwright::kernels::{self, Variant};
use warpwright_core::target::{self, Capability};
use warpwright_sim::mutate::case::{Case, Shape};
use warpwright_sim::mutate::trial::{Effort, Verdict, trial, trials};

/// A rung, its type and layout, and shapes: M, N, K, whether beta is 0, and whether rows are aligned.
type Rung = (&'static str, &'static str, &'static str, [[i64; 5]; 3]);

/// Rungs with one idea each, at shapes that reach every corner: several tiles along each axis, cut ones and whole ones,
/// in the version for whole tiles or aligned rows and in the other.
const RUNGS: &[Rung] = &[
    ("sgemm_coalesced", "f32", "nn", [[33, 5, 9, 0, 0], [5, 35, 3, 1, 0], [64, 64, 4, 0, 1]]),
    ("sgemm_shared_memory", "f32", "nn", [[5, 33, 35, 0, 0], [34, 5, 7, 1, 0], [64, 64, 64, 0, 1]]),
    ("sgemm_vectorized", "f32", "nt", [[129, 5, 9, 0, 0], [5, 130, 3, 1, 0], [128, 256, 16, 0, 1]]),
    ("sgemm_double_buffering", "f32", "nn", [[5, 257, 35, 0, 0], [129, 256, 16, 1, 1], [128, 512, 32, 0, 1]]),
    ("sgemm_padded_tile", "f32", "tn", [[129, 5, 17, 0, 0], [5, 130, 3, 1, 0], [128, 256, 32, 0, 1]]),
    ("sgemm_register_staging", "f32", "nn", [[5, 129, 35, 0, 0], [129, 128, 16, 1, 1], [128, 256, 32, 0, 1]]),
    ("tvm_virtual_threads", "f32", "tn", [[129, 5, 17, 0, 0], [5, 130, 3, 1, 0], [5, 7, 32, 0, 1]]),
    ("hgemm_cp_async", "bf16", "nn", [[129, 6, 99, 0, 0], [6, 133, 134, 1, 1], [129, 132, 71, 0, 0]]),
    ("hgemm_warpgroups", "bf16", "nt", [[129, 6, 70, 0, 0], [133, 130, 330, 1, 1], [6, 132, 7, 0, 0]]),
];

fn cases() -> Vec<Case> {
    // The newest instructions must be known to the target.
    let target = target::ALL.iter().find(|t| t.has(Capability::Wgmma)).expect("the table has such a GPU");
    let case = |(name, dtype, layout, shapes): &Rung| {
        let variant =
            Variant { precision: dtype.parse().expect("a type"), layout: layout.parse().expect("a layout") };
        let kernel = kernels::build(kernels::by_name(name).expect("is there"), variant);
        let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
        let valid = validated(kernel.program(), target).unwrap_or_else(|e| panic!("{name}: {e}"));
        let shape = |[m, n, k, beta0, aligned]: [i64; 5]| -> Shape {
            let stride =
                |columns: i64| if aligned == 1 { (columns + 7) / 8 * 8 } else { columns / 2 * 2 + 3 };
            let transposed = (variant.layout.a.transposes(), variant.layout.b.transposes());
            vec![
                ("M", m),
                ("N", n),
                ("K", k),
                ("beta0", beta0),
                ("lda", stride(if transposed.0 { m } else { k })),
                ("ldb", stride(if transposed.1 { k } else { n })),
                ("ldc", stride(n)),
            ]
        };
        Case {
            name: (*name).to_string(),
            specification: kernel.specification().clone(),
            program: valid.program().clone(),
            shapes: shapes.iter().map(|s| shape(*s)).collect(),
        }
    };
    RUNGS.iter().map(case).collect()
}

#[test]
fn every_rung_passes_without_a_false_alarm() {
    for case in cases() {
        let verdict = trial(&case, &case.examples(1), &case.program, 1, Effort::All);
        assert_eq!(verdict, Verdict::default(), "{}", case.name);
    }
}

#[test]
fn every_mutant_of_a_rung_is_caught_or_explained_and_threads_find_nothing_new() {
    let cases = cases();
    let trials = trials(&cases, 1, 1, Effort::UntilCaught);
    let kinds: HashSet<&str> = trials.iter().map(|t| t.mutant.kind.name).collect();
    assert!(trials.len() >= 200 && kinds.len() >= 12, "{} mutants of {} kinds", trials.len(), kinds.len());

    let mut expected: Vec<_> = SURVIVORS.iter().collect();
    let mut unexplained = Vec::new();
    for trial in trials.iter().filter(|t| !t.verdict.caught()) {
        let (program, kind, site) = (&trial.case.name, trial.mutant.kind.name, &trial.mutant.site);
        let known = |s: &&survivors::Survivor| s.rung == program && s.kind == kind && site.contains(s.site);
        match expected.iter().position(known) {
            Some(at) => drop(expected.swap_remove(at)),
            None => unexplained.push(format!("{program}: {kind}: {site}")),
        }
    }
    assert!(unexplained.is_empty(), "nobody caught these, and nobody says why:\n{}", unexplained.join("\n"));
    let caught: Vec<_> = expected.iter().map(|s| format!("{}: {}: {}", s.rung, s.kind, s.site)).collect();
    assert!(caught.is_empty(), "said to be right, but caught or no longer drawn:\n{}", caught.join("\n"));

    for trial in &trials {
        let verdict = &trial.verdict;
        let missed = verdict.threads.is_some() && verdict.simt.is_none() && verdict.refused.is_none();
        assert!(!missed, "the SIMT engine missed {}: {verdict:?}", trial.mutant.site);
    }
}
