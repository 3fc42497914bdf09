//! The families `tsmm` and `tsmttsm`: rows that stand apart, of which device memory gives 32 bytes at a time.

use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family, Permissions};
use warpwright::problem::Problem;
use warpwright::tune::rank;
use warpwright_core::target::Target;

use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, problem};

/// A product of many rows that stand so many elements apart.
fn padded(family: &Family, widths: (i64, i64), dtype: &str, [a, b, c]: [i64; 3]) -> Problem {
    let mut problem = problem(family, widths, dtype);
    if family.name == "tsmm" {
        problem.shape.m = 10_000_000
    } else {
        problem.shape.k = 10_000_000
    };
    [problem.ld.a, problem.ld.b, problem.ld.c] = [a, b, c];
    problem
}

#[test]
fn what_is_computed_stays_the_same() {
    for (family, widths, dtype, strides, form) in [
        ("tsmm", (4, 4), "f64", [8, 4, 8], "unit=fma,staging=registers"),
        ("tsmm", (16, 16), "f32", [24, 16, 24], "unit=mma"),
        ("tsmttsm", (4, 4), "c64", [8, 8, 4], "unit=fma,staging=registers"),
        ("tsmttsm", (16, 16), "f32", [24, 24, 16], "unit=mma,staging=shared"),
    ] {
        let family = kernels::family(family).unwrap();
        let problem = padded(family, widths, dtype, strides);
        let choice = chosen(family, &problem, &format!("{form},granularity=32"));
        let program = family.build(&problem, &choice).unwrap().program().to_string();
        assert!(program.contains("\n  fetches 32\n"), "{program}");
        holds(family, &problem, &choice, &[0, 1, 63, 1000]);
        let usual = family.build(&problem, &choice.with("granularity", 64)).unwrap().program().to_string();
        assert_eq!(usual, program.replace("\n  fetches 32", ""), "nothing else differs");
    }
}

#[test]
fn no_other_number_of_bytes_is_given() {
    for (family, strides) in [("tsmm", [25, 24, 25]), ("tsmttsm", [36, 36, 24])] {
        let family = kernels::family(family).unwrap();
        let problem = padded(family, (24, 24), "f64", strides);
        let with = |bytes: i64| {
            family.complete(
                &Choice::default().with("granularity", bytes),
                &problem,
                Target::by_name("h200").unwrap(),
            )
        };
        assert!(with(32).is_ok() && with(64).is_ok(), "{}", family.name);
        for bytes in [48, 128] {
            let refused = with(bytes).unwrap_err().to_string();
            assert!(refused.contains("32 or 64 bytes at a time"), "{} {bytes}: {refused}", family.name);
        }
    }
}

#[test]
fn it_matters_where_rows_touch_less_memory_by_32_bytes() {
    let family = kernels::family("tsmttsm").unwrap();
    let offered = |problem: &Problem, gpu: &str| {
        let target = Target::by_name(gpu).unwrap();
        family.complete(&Choice::default(), problem, target).unwrap().get("granularity").is_some()
    };
    // Rows of 64 bytes that stand 96 apart, and 72 that stand 128 apart.
    for (widths, strides, dtype) in [((16, 16), [24, 24, 16], "f32"), ((9, 9), [16, 16, 9], "f64")] {
        let problem = padded(family, widths, dtype, strides);
        assert!(offered(&problem, "h200") && !offered(&problem, "a100-80gb"), "only where it was measured");
        let mut short = problem;
        short.shape.k = 10_000;
        assert!(!offered(&short, "h200"), "what is in the second-level cache is not fetched");
    }
    // Rows without a gap, with a gap that whole pieces of 64 bytes leave out, and with one that no sector does.
    for (widths, strides, dtype) in
        [((16, 16), [16, 16, 16], "f32"), ((16, 16), [24, 24, 16], "f64"), ((24, 24), [25, 25, 24], "c64")]
    {
        assert!(!offered(&padded(family, widths, dtype, strides), "h200"), "{dtype} {strides:?}");
    }
}

#[test]
fn it_matters_where_rows_of_the_result_share_sectors_with_gaps() {
    let family = kernels::family("tsmm").unwrap();
    // With a gap of 8 bytes, with none, and with one that whole sectors leave out.
    for (c, matters) in [(25, true), (24, false), (32, false)] {
        let problem = padded(family, (24, 24), "f64", [24, 24, c]);
        let choice = family.complete(&Choice::default(), &problem, Target::by_name("h200").unwrap());
        assert_eq!(choice.unwrap().get("granularity").is_some(), matters, "{c}");
    }
}

#[test]
fn a_context_is_set_only_with_permission() {
    let family = kernels::family("tsmttsm").unwrap();
    let problem = padded(family, (16, 16), "f32", [24, 24, 16]);
    let choice = chosen(family, &problem, "unit=mma,granularity=32");
    let needed = family.needs(problem.precision, problem.shape.k, &choice);
    assert_eq!(needed, Permissions::OWN_CONTEXT);
    assert!(Permissions::OWN_CONTEXT.cover(needed) && !Permissions::NONE.cover(needed));
    let target = Target::by_name("h200").unwrap();
    let values = |permissions| {
        let mut values = std::collections::BTreeSet::new();
        let given = Choice::default().with("unit", "fma").with("staging", "registers");
        family.choices(&problem, target, permissions, &given, &mut |choice| {
            values.insert(choice.int("granularity"));
            true
        });
        values.into_iter().collect::<Vec<_>>()
    };
    assert_eq!((values(Permissions::NONE), values(Permissions::OWN_CONTEXT)), (vec![64], vec![32, 64]));
}

#[test]
fn the_ranking_knows_what_device_memory_gives() {
    let target = Target::by_name("h200").unwrap();
    for (family, widths, dtype, strides, part) in [
        // Every other sector, of which 64 bytes at a time bring all; and of A alone, where C is stored.
        ("tsmttsm", (4, 4), "f64", [8, 8, 4], 0.5),
        ("tsmm", (4, 4), "f64", [8, 4, 8], 0.67),
    ] {
        let family = kernels::family(family).unwrap();
        let problem = padded(family, widths, dtype, strides);
        let memory = |granularity: &str| {
            let choice =
                chosen(family, &problem, &format!("unit=fma,staging=registers,granularity={granularity}"));
            rank::estimate(family, &problem, &choice, target).unwrap().terms.memory
        };
        let found = memory("32") / memory("64");
        assert!((found - part).abs() < 0.02, "{}: {found}", family.name);
    }
}
