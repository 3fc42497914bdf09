//! The checker is tested with the kernels that are shipped: mutants of the rungs of the ladders, up to warpgroups fed by
//! bulk copies, and of a kernel whose warps give back what bulk copies fill, must be caught; the kernels themselves must
//! pass; and real threads in random order must agree with the SIMT engine, mutant by mutant.
//!
//! The same is asked of the programs of the library in `crates/sim/tests/mutants`.

mod survivors;

use std::collections::HashSet;

use survivors::{SURVIVORS, UNSEEN};
use warpwright::compile::validated;
use warpwright::kernels::family::{Choice, parse_parameter};
use warpwright::kernels::{self, Variant};
use warpwright::problem::Problem;
use warpwright_core::schedule::Schedule;
use warpwright_core::target::{self, Capability};
use warpwright_sim::mutate::case::{Case, Shape};
use warpwright_sim::mutate::explain::{Explained, faults};
use warpwright_sim::mutate::trial::{Agreement, Effort, trial, trials};

/// A rung, its type and layout, and shapes: M, N, K, whether beta is 0, and whether rows are aligned.
type Rung = (&'static str, &'static str, &'static str, &'static [[i64; 5]]);

/// Shapes of a rung with tiles of 128 x 256 elements and 16 terms.
const OF_A_LARGE_TILE: &[[i64; 5]] =
    &[[5, 257, 19, 0, 0], [129, 5, 3, 1, 0], [128, 256, 48, 0, 1], [129, 256, 0, 1, 1], [128, 256, 0, 1, 1]];

/// Rungs with one idea each, at shapes that reach every corner: several tiles along each axis, cut ones and whole ones,
/// in the version for whole tiles or aligned rows and in the other, and all of it with few terms to sum. Without terms,
/// one element more than whole tiles asks for the right version, and whole tiles for the branch without C.
const RUNGS: &[Rung] = &[
    ("sgemm_coalesced", "f32", "nn", &[[33, 5, 9, 0, 0], [5, 35, 3, 1, 0], [64, 64, 4, 0, 1]]),
    (
        "sgemm_shared_memory",
        "f32",
        "nn",
        &[[5, 33, 35, 0, 0], [34, 5, 7, 1, 0], [64, 64, 64, 0, 1], [33, 64, 0, 1, 1], [64, 64, 0, 1, 1]],
    ),
    (
        "sgemm_vectorized",
        "f32",
        "nt",
        &[
            [129, 5, 9, 0, 0],
            [5, 130, 3, 1, 0],
            [128, 256, 16, 0, 1],
            [129, 128, 0, 1, 1],
            [128, 128, 0, 1, 1],
        ],
    ),
    (
        "sgemm_double_buffering",
        "f32",
        "nn",
        &[
            [5, 257, 19, 0, 0],
            [129, 5, 3, 1, 0],
            [128, 256, 32, 0, 1],
            [129, 256, 0, 1, 1],
            [128, 256, 0, 1, 1],
        ],
    ),
    (
        "sgemm_padded_tile",
        "f32",
        "tn",
        &[
            [129, 5, 17, 0, 0],
            [5, 130, 3, 1, 0],
            [128, 128, 32, 0, 1],
            [129, 128, 0, 1, 1],
            [128, 128, 0, 1, 1],
        ],
    ),
    ("sgemm_async_copies", "f32", "tn", OF_A_LARGE_TILE),
    (
        "sgemm_small_tile",
        "f64",
        "tn",
        &[[65, 5, 35, 0, 0], [5, 130, 3, 1, 0], [64, 128, 48, 0, 1], [65, 128, 0, 1, 1], [64, 128, 0, 1, 1]],
    ),
    ("tvm_virtual_threads", "f32", "tn", &[[129, 5, 17, 0, 0], [5, 130, 3, 1, 0], [5, 7, 32, 0, 1]]),
    ("hgemm_cp_async", "bf16", "nn", &[[129, 6, 99, 1, 0], [6, 133, 134, 0, 1], [6, 132, 71, 0, 0]]),
    (
        "hgemm_warpgroups",
        "bf16",
        "nt",
        &[[129, 6, 70, 0, 0], [69, 130, 330, 0, 1], [6, 132, 7, 1, 0], [129, 7, 9, 1, 1]],
    ),
];

/// Two more that differ little from their neighbours: they have to pass like all others; their mutants are looked at when somebody asks.
const NEIGHBOURS: &[Rung] = &[
    (
        "sgemm_register_staging",
        "f32",
        "nn",
        &[
            [5, 129, 35, 0, 0],
            [129, 5, 3, 1, 0],
            [128, 128, 32, 0, 1],
            [129, 128, 0, 1, 1],
            [128, 128, 0, 1, 1],
        ],
    ),
    ("sgemm_turned_lanes", "f32", "nn", OF_A_LARGE_TILE),
];

fn cases(rungs: &[Rung]) -> Vec<Case> {
    // The newest instructions must be known to the target.
    let target = target::ALL.iter().find(|t| t.has(Capability::Wgmma)).expect("the table has such a GPU");
    let case = |(name, dtype, layout, shapes): &Rung| {
        let variant = Variant::new(dtype.parse().expect("a type"), layout.parse().expect("a layout"));
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
    rungs.iter().map(case).collect()
}

/// A kernel of a family whose rows come by bulk copies, into slots that each warp gives back: blocks of no group, of one, and
/// of several more than there are slots.
fn given_back_by_warps() -> Case {
    let family = kernels::family("tsmttsm").expect("is there");
    let [size, dtype, layout] = ["9x10x4000", "f32", "tn"];
    let problem = Problem::new(
        size.parse().expect("a size"),
        dtype.parse().expect("a type"),
        layout.parse().expect("a layout"),
    );
    let given = "unit=fma,staging=shared,copy=bulk,block=128,panel=false,tm=3,tn=2,\
                 transposed=false,depth=16,stages=2,parts=2";
    let given = given.split(',').map(|p| parse_parameter(p).expect("a parameter"));
    let given = given.fold(Choice::default(), |choice, (name, value)| choice.with(name, value));
    let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{e}"));
    // The family does so on matrix units alone.
    let steps = (family.schedule)(&problem, &choice).replace("via=bulk", "via=bulk, release=warps");
    let schedule = Schedule::run(kernel.specification().clone(), &steps).unwrap_or_else(|e| panic!("{e}"));
    let valid = validated(schedule.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    Case {
        name: "tsmttsm_given_back_by_warps".to_string(),
        specification: kernel.specification().clone(),
        program: valid.program().clone(),
        shapes: [(5, 0), (70, 1), (131, 0)]
            .map(|(k, beta0)| vec![("K", k), ("beta0", beta0), ("ldc", 11)])
            .to_vec(),
    }
}

#[test]
fn every_rung_passes_without_a_false_alarm() {
    for case in cases(RUNGS).into_iter().chain(cases(NEIGHBOURS)).chain([given_back_by_warps()]) {
        let verdict = trial(&case, &case.examples(1), &case.program, 1, Effort::All);
        assert_eq!(
            (verdict.caught(), verdict.agreement()),
            (false, Agreement::Clean),
            "{}: {verdict:?}",
            case.name
        );
    }
}

/// So many mutants at least, of so many kinds, are caught or explained.
fn are_caught_or_explained(cases: &[Case], [mutants, kinds]: [usize; 2], explained: [&[Explained]; 2]) {
    let trials = trials(cases, 1, 1, Effort::UntilCaught);
    let seen: HashSet<&str> = trials.iter().map(|t| t.mutant.kind.name).collect();
    let are_enough = trials.len() >= mutants && seen.len() >= kinds;
    assert!(are_enough, "{} mutants of {} kinds", trials.len(), seen.len());
    let [survivors, unseen] = explained;
    let faults = faults(&trials, survivors, unseen);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_mutant_of_a_rung_is_caught_or_explained_and_threads_agree() {
    let mut cases = cases(RUNGS);
    cases.push(given_back_by_warps());
    are_caught_or_explained(&cases, [200, 12], [SURVIVORS, UNSEEN]);
}

#[test]
#[ignore = "takes half a minute for two kernels that differ little from others"]
fn every_mutant_of_their_neighbours_is_caught() {
    are_caught_or_explained(&cases(NEIGHBOURS), [30, 8], [&[], &[]]);
}
