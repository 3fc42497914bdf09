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
