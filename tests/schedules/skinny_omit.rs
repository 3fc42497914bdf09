//! Tiles beyond the end of C that warps of the family `tsmttsm` leave out, each in code of its own.

use warpwright::compile;
use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family};
use warpwright::problem::Problem;
use warpwright_core::target;

use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, parameters, problem};

/// The CUDA C of a choice, which is exactly equal to the specification and without a hazard.
fn text_that_holds(family: &Family, problem: &Problem, choice: &Choice) -> String {
    holds(family, problem, choice, &[0, 1, 150, 3 * choice.int("depth") + 5]);
    let kernel = family.build(problem, choice).unwrap_or_else(|e| panic!("{e}"));
    let program = compile::validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    compile::cuda(&program).unwrap_or_else(|e| panic!("{e}")).text
}

/// Warps of four kinds (rows and columns left out or not), of two, with sets of warps beside each other, all types and ways in which
/// groups are brought and given back.
#[test]
fn warps_leave_out_tiles_beyond_the_end() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, (wide, high), form) in [
        ("f64", (104, 104), "copy=bulk,instruction=m16n8k4,wm=3,wn=5,wk=1,depth=16,release=warps"),
        ("f64", (97, 49), "copy=bulk,instruction=m16n8k8,wm=3,wn=2,wk=2,depth=16,release=role"),
        ("f64", (33, 40), "copy=rows,instruction=m16n8k4,wm=2,wn=3,wk=2,depth=16"),
        ("f64", (33, 19), "copy=one,instruction=m8n8k4,wm=3,wn=2,wk=1,depth=16"),
        ("c128", (52, 52), "copy=bulk,numbers=parts,instruction=m16n8k4,wm=3,wn=5,wk=1,depth=16"),
        ("c128", (50, 49), "copy=bulk,numbers=parts,instruction=m16n8k4,wm=4,wn=4,wk=1,depth=16"),
        ("c128", (34, 25), "copy=rows,numbers=whole,instruction=m16n8k4,wm=2,wn=3,wk=1,depth=16"),
        ("f32", (49, 33), "copy=bulk,wm=3,wn=2,wk=1,depth=32"),
        ("c64", (25, 41), "copy=bulk,numbers=split-parts,wm=3,wn=4,wk=1,depth=32"),
        ("f64", (104, 104), "copy=bulk,instruction=m16n8k4,wm=4,wn=4,wk=1,depth=16,release=warps,even=true"),
        ("f64", (97, 49), "copy=bulk,instruction=m16n8k8,wm=3,wn=2,wk=2,depth=16,release=role,even=true"),
        ("f64", (33, 97), "copy=one,instruction=m8n8k4,wm=3,wn=4,wk=1,depth=16,even=true"),
        ("c128", (50, 54), "copy=bulk,numbers=parts,instruction=m16n8k4,wm=4,wn=4,wk=1,depth=16,even=true"),
        ("c128", (40, 23), "copy=rows,numbers=whole,instruction=m16n8k4,wm=2,wn=2,wk=1,depth=16,even=true"),
        ("f32", (49, 81), "copy=bulk,wm=3,wn=4,wk=1,depth=32,even=true"),
    ] {
        let problem = problem(family, (wide, high), dtype);
        let choice = chosen(family, &problem, &format!("unit=mma,omit=true,parts=3,{form}"));
        let text = text_that_holds(family, &problem, &choice);
        // One version for each number of tiles; no instruction stands in a condition of its own.
        let conditional = text.lines().filter(|l| l.contains("if (") && l.contains("mma_")).count();
        assert_eq!(conditional, 0, "{choice}: {text}");
    }
}

/// Where all warps have as much nothing is left out.
#[test]
fn nothing_is_left_out_where_all_warps_have_as_much() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in
        [("f64", (64, 64), "wm=4,wn=4"), ("c128", (32, 32), "instruction=m16n8k4,wm=2,wn=2")]
    {
        let problem = problem(family, widths, dtype);
        let given = parameters(form).with("unit", "mma").with("omit", true);
        let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refused.contains("omit"), "{dtype} {widths:?}: {refused}");
    }
}

/// Where tiles stand over the end of a row, what follows it is multiplied, and nobody reads what comes of that. The last row of a slot is
/// followed by what the copy brought behind it.
#[test]
fn lanes_may_find_what_follows_a_row() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f64", (38, 21), "wm=1,wn=3,wk=1,depth=16,instruction=m16n8k4"),
        ("f64", (22, 38), "wm=2,wn=1,wk=2,depth=32,instruction=m16n8k8,release=role"),
        ("f64", (108, 52), "wm=4,wn=4,wk=1,depth=16,instruction=m16n8k4,omit=true,even=true,release=warps"),
        ("c128", (27, 54), "numbers=parts,wm=2,wn=4,wk=1,depth=16,instruction=m16n8k8,omit=true,even=true"),
        ("c128", (18, 10), "numbers=whole,wm=1,wn=2,wk=1,depth=16,instruction=m16n8k4"),
        ("f32", (20, 36), "wm=1,wn=1,wk=2,depth=32"),
        ("c64", (18, 27), "numbers=split-parts,wm=1,wn=2,wk=2,depth=32"),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("unit=mma,copy=bulk,zeros=false,parts=3,{form}"));
        let text = text_that_holds(family, &problem, &choice);
        let loads = |l: &&str| l.contains("? As") || l.contains("? Bs");
        assert_eq!(text.lines().filter(loads).count(), 0, "{choice}: {text}");
    }
    let problem = problem(family, (64, 64), "f64");
    let given = parameters("copy=bulk,omit=false").with("unit", "mma").with("zeros", false);
    let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
    assert!(refused.contains("zeros"), "{refused}");
}
