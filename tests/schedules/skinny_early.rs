//! The families `tsmm` and `tsmttsm`: calls that begin while what was launched before them ends.

use warpwright::kernels;
use warpwright::kernels::family::Choice;
use warpwright_core::target::Target;

use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, problem};

#[test]
fn what_is_computed_stays_the_same() {
    for (family, widths, dtype, form) in [
        ("tsmm", (1, 1), "f32", "unit=fma,staging=registers"),
        ("tsmm", (16, 12), "f64", "unit=mma,team=part,rows=32,wm=2,wn=1"),
        ("tsmttsm", (4, 4), "c64", "unit=fma,staging=registers"),
        ("tsmttsm", (16, 16), "f64", "unit=mma"),
    ] {
        let family = kernels::family(family).unwrap();
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("{form},early=true"));
        let program = family.build(&problem, &choice).unwrap().program().to_string();
        assert!(program.contains("\n  begins_early\n"), "{program}");
        holds(family, &problem, &choice, &[0, 1, 63, 1000]);
    }
}

#[test]
fn only_short_calls_begin_early_and_only_where_a_gpu_can() {
    let family = kernels::family("tsmttsm").unwrap();
    let early = |rows: i64, gpu: &str| {
        let mut problem = problem(family, (8, 8), "f64");
        problem.shape.k = rows;
        let target = Target::by_name(gpu).unwrap();
        let choice = family.complete(&Choice::default(), &problem, target).unwrap();
        choice.get("early").is_some()
    };
    assert!(early(1_000_000, "h200") && !early(1_000_000, "a100-80gb") && !early(10_000_000, "h200"));
}

#[test]
fn calls_that_ask_ahead_compute_the_same() {
    for (family, widths, dtype, form, says) in [
        (
            "tsmm",
            (8, 8),
            "c64",
            "unit=fma,staging=registers,early=true,lets=none,asks=2,asked=bulk",
            "asks 2048 KiB bulk lets none",
        ),
        (
            "tsmm",
            (5, 3),
            "f32",
            "unit=fma,staging=registers,early=true,asks=1,asked=lines",
            "asks 1024 KiB lines",
        ),
        (
            "tsmttsm",
            (4, 4),
            "f64",
            "unit=fma,staging=registers,reduction=two-pass,early=true,lets=all,asks=4,asked=lines",
            "asks 4096 KiB lines lets all",
        ),
    ] {
        let family = kernels::family(family).unwrap();
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, form);
        let program = family.build(&problem, &choice).unwrap().program().to_string();
        assert!(program.contains(&format!("\n  begins_early {says}\n")), "{program}");
        holds(family, &problem, &choice, &[0, 1, 63, 1000]);
    }
}

#[test]
fn what_lies_between_rows_is_not_asked_for() {
    let family = kernels::family("tsmm").unwrap();
    let target = Target::by_name("h200").unwrap();
    let offered = |lda: i64| {
        let mut problem = problem(family, (8, 8), "f64");
        problem.shape.m = 1000;
        problem.ld.a = lda;
        let choice = Choice::default().with("early", true);
        let choice = family.complete(&choice, &problem, target).unwrap();
        (choice.get("lets").is_some(), choice.get("asks").is_some())
    };
    assert_eq!((offered(8), offered(9)), ((true, true), (true, false)));
}

/// What tuning has recorded is read again as what it was, with nothing asked for too.
#[test]
fn every_way_to_begin_early_is_a_choice() {
    let family = kernels::family("tsmttsm").unwrap();
    let (problem, target) = (problem(family, (4, 4), "f64"), Target::by_name("h200").unwrap());
    let usual = family.complete(&Choice::default(), &problem, target).unwrap().with("early", true);
    for lets in ["most", "none", "all"] {
        let nothing = usual.clone().with("lets", lets).with("asks", 0);
        assert_eq!(family.complete(&nothing, &problem, target).as_ref(), Ok(&nothing));
        for (asks, asked) in [(1, "bulk"), (4, "lines")] {
            let choice = nothing.clone().with("asks", asks).with("asked", asked);
            assert_eq!(family.complete(&choice, &problem, target).as_ref(), Ok(&choice));
        }
    }
    assert!(family.complete(&usual.with("asks", -1), &problem, target).is_err());
}
