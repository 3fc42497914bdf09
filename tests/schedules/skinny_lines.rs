//! The family `tsmm`: dense rows of matrices that start within a line of 128 bytes, which warps copy and store by whole lines.

use warpwright::kernels;
use warpwright::kernels::family::Family;
use warpwright::problem::{Offsets, Problem};
use warpwright_core::target;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, problem};

/// A, B and C start one, two and three times so many elements behind an aligned address.
fn from(family: &Family, widths: (i64, i64), dtype: &str, offset: i64) -> Problem {
    let mut problem = problem(family, widths, dtype);
    problem.offset = Offsets { a: offset, b: 2 * offset, c: 3 * offset };
    problem
}

#[test]
fn warps_take_whole_lines() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, widths, offset, form) in [
        ("f32", (32, 32), 1, "unit=mma,numbers=split,team=part,rows=64,wm=2,wn=1,copy=rows"),
        ("f32", (32, 32), 1, "unit=mma,numbers=split,team=block,rows=64,wm=2,wn=1,copy=one"),
        ("f32", (24, 24), 5, "unit=mma,numbers=split,team=part,rows=64,wm=2,wn=1,copy=rows,passing=true"),
        ("f32", (9, 7), 3, "unit=fma,staging=shared,team=block,rows=64,copy=one"),
        ("f32", (32, 16), 31, "unit=fma,staging=shared,team=part,wm=2,wn=1,copy=rows"),
        ("f64", (16, 16), 1, "unit=mma,team=part,rows=64,wm=2,wn=1,copy=rows"),
        ("c64", (24, 24), 1, "unit=mma,numbers=split,team=block,rows=64,wm=1,wn=3,copy=rows"),
        ("c64", (10, 12), 3, "unit=mma,numbers=split,team=block,rows=64,wm=2,wn=1,copy=one"),
    ] {
        let problem = from(family, widths, dtype, offset);
        for lines in [false, true] {
            let choice = chosen(family, &problem, &format!("{form},store=shared,lines={lines}"));
            let steps = (family.schedule)(&problem, &choice);
            assert_eq!(steps.contains("ahead="), lines, "{choice}:\n{steps}");
            let rows = choice.int("rows").max(64);
            holds(family, &problem, &choice, &[0, 1, rows - 1, rows, rows + 1, 5 * rows + 3]);
        }
    }
}

#[test]
fn every_step_towards_it_changes_nothing() {
    let family = kernels::family("tsmm").unwrap();
    for (form, dtype) in [("unit=mma,numbers=split,copy=rows", "f32"), ("unit=mma,copy=one", "f64")] {
        let problem = from(family, (8, 8), dtype, 1);
        let choice = chosen(family, &problem, &format!("{form},store=shared,rows=32,wm=2,wn=1,lines=true"));
        let kernel = family.build(&problem, &choice).unwrap();
        check(&kernel.schedule, &[("M", 131)], 1, true, 5).unwrap_or_else(|e| panic!("{choice}: {e}"));
    }
}

#[test]
fn it_is_asked_only_where_matrices_start_within_a_line() {
    let family = kernels::family("tsmm").unwrap();
    let lines = family.parameters.iter().find(|p| p.name == "lines").unwrap();
    let offered = |problem: &Problem, form: &str| {
        (lines.values)(&chosen(family, problem, form), problem, target::DEFAULT)
    };
    let form = "unit=mma,store=shared,rows=64";
    let within = from(family, (16, 16), "f64", 1);
    assert_eq!(offered(&within, form).len(), 2);
    assert_eq!(offered(&within, form)[0].to_string(), "false", "what older wisdom has");
    assert!(offered(&from(family, (16, 16), "f64", 0), form).is_empty(), "they start where a line does");
    assert!(offered(&from(family, (16, 16), "f64", 16), form).is_empty(), "and so do these");
    assert!(
        offered(&from(family, (16, 16), "f64", 2), form).is_empty(),
        "pieces of 16 bytes lie in few lines"
    );
    assert!(offered(&within, "unit=mma,store=direct").is_empty(), "registers have results of many lines");
    assert!(offered(&within, "unit=fma,staging=registers").is_empty(), "threads read rows of their own");
    // 32 rows of 25 numbers are 25 lines, 16 of them twelve and a half.
    let odd = from(family, (25, 25), "f32", 1);
    let of =
        |rows| offered(&odd, &format!("unit=mma,numbers=split,store=shared,team=block,rows={rows}")).len();
    assert_eq!([32, 16].map(of), [2, 0], "every group starts as far behind a line as the first");
    let small = from(family, (2, 2), "f64", 1);
    assert!(offered(&small, form).is_empty(), "all pieces are copied in two turns");
    let mut apart = within;
    (apart.ld.a, apart.ld.c) = (17, 17);
    assert!(offered(&apart, form).is_empty(), "rows that stand apart start anywhere");
}
