//! The family `tsmm`: rows of A that stand apart, whose copies to shared memory the first-level cache may keep too.

use warpwright::kernels;
use warpwright::kernels::family::Family;
use warpwright::problem::Problem;
use warpwright_core::target;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, problem};

/// Rows of A and of C with so many elements between them.
fn apart(family: &Family, widths: (i64, i64), dtype: &str, between: i64) -> Problem {
    let mut problem = problem(family, widths, dtype);
    problem.ld.a += between;
    problem.ld.c += between;
    problem
}

#[test]
fn the_first_level_keeps_what_it_is_asked_to_keep() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, widths, between, form) in [
        ("f32", (32, 32), 8, "unit=mma,team=block,rows=64,wm=2,wn=1,passing=true,in_place=true"),
        ("f32", (16, 16), 8, "unit=fma,staging=shared,team=part,wm=2,wn=1"),
        ("f64", (24, 24), 8, "unit=mma,team=part,rows=64,wm=2,wn=1"),
        ("c64", (10, 12), 2, "unit=mma,team=block,rows=32,wm=2,wn=1"),
        ("c128", (5, 4), 1, "unit=mma,team=block,rows=32,wm=2,wn=1"),
        ("c128", (9, 9), 1, "unit=fma,staging=shared,team=block,rows=32"),
    ] {
        let problem = apart(family, widths, dtype, between);
        for (caching, copies) in [("cg", "cp_async16_"), ("ca", "cp_async16_ca_")] {
            let choice = chosen(family, &problem, &format!("{form},store=shared,caching={caching}"));
            let text = family.build(&problem, &choice).unwrap().program().to_string();
            let others = text.matches("cp_async16_").count() - text.matches("cp_async16_ca_").count();
            assert!(text.contains(&format!("{copies}{dtype}(As")), "{choice}:\n{text}");
            assert!(caching == "cg" || others == 0, "{choice}:\n{text}");
            let rows = choice.int("rows").max(64);
            holds(family, &problem, &choice, &[0, 1, rows - 1, rows + 1, 5 * rows + 3]);
        }
    }
}

#[test]
fn every_step_towards_it_changes_nothing() {
    let family = kernels::family("tsmm").unwrap();
    let problem = apart(family, (8, 6), "f64", 2);
    let choice = chosen(family, &problem, "unit=mma,team=part,rows=32,wm=2,wn=1,caching=ca");
    let kernel = family.build(&problem, &choice).unwrap();
    check(&kernel.schedule, &[("M", 131)], 1, true, 5).unwrap_or_else(|e| panic!("{choice}: {e}"));
}

#[test]
fn it_is_asked_only_where_16_bytes_of_rows_that_stand_apart_are_copied() {
    let family = kernels::family("tsmm").unwrap();
    let caching = family.parameters.iter().find(|p| p.name == "caching").unwrap();
    let offered = |dtype, between, form| {
        let problem = apart(family, (24, 24), dtype, between);
        (caching.values)(&chosen(family, &problem, form), &problem, target::DEFAULT)
    };
    assert_eq!(offered("f64", 2, "unit=mma").len(), 2);
    assert_eq!(offered("f64", 2, "unit=mma")[0].to_string(), "cg", "what older wisdom has");
    for (between, form, why) in [
        (1, "unit=mma", "pieces of 8 bytes always pass both"),
        (0, "unit=mma", "dense rows are one piece of memory, which begins at a sector"),
        (2, "unit=fma,staging=registers", "nothing is copied"),
    ] {
        assert!(offered("f64", between, form).is_empty(), "{why}");
    }
    assert!(offered("c64", 2, "unit=mma,copy=span").is_empty(), "spans come by bulk copies");
}
