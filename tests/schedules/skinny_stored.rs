//! The family `tsmm`: dense rows of C that start anywhere, stored by pieces of 16 bytes.

use warpwright::kernels;
use warpwright::kernels::family::Family;
use warpwright::problem::{Offsets, Problem};
use warpwright_core::target;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{counted, holds, problem};

/// C starts so many elements behind an aligned address, and A one.
fn from(family: &Family, widths: (i64, i64), dtype: &str, start: i64) -> Problem {
    let mut problem = problem(family, widths, dtype);
    problem.offset = Offsets { a: 1, b: 0, c: start };
    problem
}

const PIECES: &str = "store=shared,stored=pieces";

#[test]
fn results_leave_by_whole_pieces() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, widths, start, form) in [
        ("f32", (32, 32), 3, "unit=mma,numbers=split,team=part,rows=64,wm=2,wn=1,copy=rows"),
        ("f32", (32, 32), 2, "unit=mma,numbers=split,team=block,rows=64,wm=2,wn=1,copy=one"),
        ("f32", (32, 32), 5, "unit=mma,numbers=split,team=block,rows=64,wm=2,wn=1,copy=span"),
        ("f32", (24, 24), 1, "unit=mma,numbers=split,team=part,rows=64,wm=2,wn=1,copy=rows,passing=true"),
        ("f32", (9, 7), 3, "unit=fma,staging=shared,team=block,rows=64,copy=one"),
        ("f32", (7, 1), 2, "unit=fma,staging=shared,team=block,rows=64,copy=one"),
        ("f64", (16, 16), 1, "unit=mma,team=part,rows=64,wm=2,wn=1,copy=rows"),
        ("c64", (24, 24), 3, "unit=mma,numbers=split,team=block,rows=64,wm=1,wn=3,copy=rows"),
        ("c64", (10, 12), 1, "unit=fma,staging=shared,team=block,rows=64,copy=one"),
    ] {
        let problem = from(family, widths, dtype, start);
        let choice = chosen(family, &problem, &format!("{form},{PIECES}"));
        let rows = choice.int("rows").max(64);
        holds(family, &problem, &choice, &[0, 1, rows - 1, rows, rows + 1, 5 * rows + 3]);
        let text = family.build(&problem, &choice).unwrap().program().to_string();
        assert!(text.contains("in vector 0.."), "{choice}:\n{text}");
    }
}

/// A fourth as many stores, but for the ends of groups, and each of whole sectors.
#[test]
fn there_are_fewer_stores() {
    let family = kernels::family("tsmm").unwrap();
    let problem = from(family, (32, 32), "f32", 3);
    let form = "unit=mma,numbers=split,team=block,rows=128,wm=4,wn=1,copy=rows,store=shared";
    let [elements, pieces] = ["elements", "pieces"].map(|stored| {
        let choice = chosen(family, &problem, &format!("{form},stored={stored}"));
        let counters = counted(family, &problem, &choice, 2048);
        (counters.global_store_requests, counters.global_store_sectors)
    });
    assert_eq!(elements, (2048, 5 * 2048));
    assert!(10 * pieces.0 < 4 * elements.0 && 10 * pieces.1 < 9 * elements.1, "{pieces:?}");
}

#[test]
fn every_step_towards_it_changes_nothing() {
    let family = kernels::family("tsmm").unwrap();
    for (form, dtype) in [("unit=mma,numbers=split,copy=rows", "f32"), ("unit=mma,copy=one", "f64")] {
        let problem = from(family, (8, 8), dtype, 1);
        let choice = chosen(family, &problem, &format!("{form},rows=32,wm=2,wn=1,{PIECES}"));
        let kernel = family.build(&problem, &choice).unwrap();
        check(&kernel.schedule, &[("M", 131)], 1, true, 5).unwrap_or_else(|e| panic!("{choice}: {e}"));
    }
}

#[test]
fn it_is_asked_only_where_dense_rows_start_within_a_piece() {
    let family = kernels::family("tsmm").unwrap();
    let stored = family.parameters.iter().find(|p| p.name == "stored").unwrap();
    let offered = |problem: &Problem, form: &str| {
        let choice = chosen(family, problem, form);
        (stored.values)(&choice, problem, target::DEFAULT).len()
    };
    let form = "unit=mma,numbers=split,store=shared";
    assert_eq!(offered(&from(family, (32, 32), "f32", 3), form), 2);
    assert_eq!(
        offered(&from(family, (32, 32), "f32", 4), form),
        0,
        "a start at whole pieces is no start within one"
    );
    assert_eq!(offered(&from(family, (32, 32), "f32", 3), "unit=mma,numbers=split,store=direct"), 0);
    assert_eq!(
        offered(&from(family, (32, 32), "c128", 1), "unit=mma,store=shared"),
        0,
        "an element is a piece"
    );
    let in_place = format!("{form},copy=one,in_place=true");
    assert_eq!(offered(&from(family, (32, 32), "f32", 3), &in_place), 0, "rows of A begin with 16 bytes");
    let mut padded = from(family, (32, 32), "f32", 3);
    padded.ld.c = 33;
    assert_eq!(offered(&padded, form), 0, "rows that stand apart start in many ways");
}
