//! The family `tsmm`: results in complex64 that lanes store two at once in shared memory.

use warpwright::kernels;
use warpwright_core::target;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, problem};

#[test]
fn two_neighbours_are_stored_at_once() {
    let family = kernels::family("tsmm").unwrap();
    for (widths, between, form) in [
        ((24, 24), 0, "team=part,rows=64,wm=2,wn=1,in_place=true,store=bulk"),
        ((24, 24), 1, "team=block,rows=64,wm=1,wn=3,passing=true,groups=1,copy=rows,store=shared"),
        ((24, 24), 8, "team=part,rows=64,wm=2,wn=1,passing=true,groups=1,in_place=true,store=shared"),
        ((10, 7), 0, "team=block,rows=32,wm=2,wn=1,store=shared"),
        ((18, 33), 3, "team=block,rows=32,wm=2,wn=1,store=shared"),
    ] {
        let mut problem = problem(family, widths, "c64");
        problem.ld.a += between;
        problem.ld.c += between;
        for pairs in [false, true] {
            let choice = chosen(family, &problem, &format!("unit=mma,numbers=split,{form},pairs={pairs}"));
            let text = family.build(&problem, &choice).unwrap().program().to_string();
            assert_eq!(text.contains("(i, j by 2) in own mine"), pairs, "{choice}:\n{text}");
            let rows = choice.int("rows");
            holds(family, &problem, &choice, &[0, 1, rows - 1, rows + 1, 5 * rows + 3]);
        }
    }
}

#[test]
fn every_step_towards_it_changes_nothing() {
    let family = kernels::family("tsmm").unwrap();
    let problem = problem(family, (8, 6), "c64");
    let choice = chosen(family, &problem, "unit=mma,numbers=split,store=shared,rows=32,wm=2,wn=1,pairs=true");
    let kernel = family.build(&problem, &choice).unwrap();
    check(&kernel.schedule, &[("M", 131)], 1, true, 5).unwrap_or_else(|e| panic!("{choice}: {e}"));
}

#[test]
fn it_is_asked_only_where_complex_numbers_of_eight_bytes_are_gathered() {
    let family = kernels::family("tsmm").unwrap();
    let pairs = family.parameters.iter().find(|p| p.name == "pairs").unwrap();
    let offered = |dtype, width, form| {
        let problem = problem(family, (width, width), dtype);
        (pairs.values)(&chosen(family, &problem, form), &problem, target::DEFAULT)
    };
    let form = "unit=mma,numbers=split,store=shared";
    assert_eq!(offered("c64", 24, form).len(), 2);
    assert_eq!(offered("c64", 24, form)[0].to_string(), "false", "what older wisdom has");
    for (dtype, width, form, why) in [
        ("c64", 25, form, "rows of an odd number begin between two pairs"),
        ("c64", 24, "unit=mma,numbers=split,store=direct", "nothing is gathered"),
        ("c64", 24, "unit=mma,numbers=split-parts,store=shared", "parts are real numbers"),
        ("c64", 24, "unit=fma,staging=shared,store=shared", "threads have results of their own"),
        ("f64", 24, "unit=mma,store=shared", "two real numbers are stored at once in any case"),
        ("c128", 24, "unit=mma,numbers=whole,store=shared", "one number is 16 bytes"),
    ] {
        assert!(offered(dtype, width, form).is_empty(), "{why}");
    }
}
