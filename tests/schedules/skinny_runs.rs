//! Groups of rows of the family `tsmttsm` that arrive in four runs, so that rows that lanes read together begin in different banks.

use warpwright::kernels;
use warpwright::problem::Problem;
use warpwright_core::target;

use crate::skinny_reads::chosen;
use crate::tall_skinny::{counted, holds, parameters, problem};

/// All types and instructions, ways in which groups are given back, tiles that are dealt out evenly and such that stand over the end of a row,
/// so that runs go on into the next; square products of one matrix, too. Lengths end within each of the runs.
#[test]
fn rows_that_are_read_together_begin_in_different_banks() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, (wide, high), form) in [
        ("f64", (32, 48), "instruction=m16n8k4,wm=3,wn=2,depth=16,release=warps"),
        ("f64", (80, 80), "instruction=m16n8k8,wm=5,wn=2,depth=32,release=role"),
        ("f64", (64, 64), "instruction=m16n8k16,wm=2,wn=4,depth=64"),
        ("c128", (40, 40), "numbers=parts,instruction=m16n8k4,wm=5,wn=2,depth=32,release=role"),
        ("c128", (56, 56), "numbers=parts,instruction=m16n8k4,wm=4,wn=4,depth=16,omit=true,even=true"),
        ("c128", (32, 24), "numbers=whole,instruction=m8n8k4,wm=3,wn=2,depth=16,release=warps"),
        ("f32", (64, 32), "wm=2,wn=2,depth=32"),
        ("c128", (52, 52), "numbers=parts,instruction=m16n8k4,wm=2,wn=4,depth=32,omit=true,even=true"),
        ("c128", (44, 36), "numbers=parts,instruction=m16n8k8,wm=2,wn=3,depth=16,omit=false,release=role"),
        ("f64", (104, 72), "instruction=m16n8k4,wm=5,wn=2,depth=16,omit=false"),
        ("c64", (16, 32), "numbers=split-parts,wm=2,wn=1,depth=32,release=warps"),
    ] {
        let problem = problem(family, (wide, high), dtype);
        let given = format!("unit=mma,copy=bulk,parts=3,wk=1,runs=4,{form}");
        let choice = chosen(family, &problem, &given);
        let depth = choice.int("depth");
        holds(family, &problem, &choice, &[0, 1, depth / 2, 3 * depth - 1, 3 * depth + depth / 4 + 1]);
        let dense = chosen(family, &problem, &given.replace("runs=4", "runs=1"));
        let passes = |c| counted(family, &problem, c, 1024).shared_load_wavefronts;
        let [now, before] = [&choice, &dense].map(passes);
        assert!(4 * now < 3 * before, "{choice}: {now} passes, {before} of dense rows");
        if wide == high {
            let of_one = Problem { same: true, ..problem };
            holds(family, &of_one, &chosen(family, &of_one, &given), &[0, 1, 2 * depth + depth / 4 + 1]);
        }
    }
}

/// Where rows that are some way apart are in different banks, where they do not come by bulk copies, where sets of warps share out the
/// rows of a group, and where tiles read half a piece of 16 bytes beyond the end of rows.
#[test]
fn groups_arrive_in_runs_only_where_that_takes_them_apart() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f64", (57, 57), "copy=bulk"),
        ("f64", (60, 60), "copy=bulk"),
        ("f64", (64, 64), "copy=rows"),
        ("c128", (50, 50), "copy=bulk,numbers=parts"),
        ("c128", (40, 40), "copy=bulk,numbers=parts,wk=2"),
        ("f64", (5, 128), "copy=bulk,instruction=m16n8k8,wk=1"),
        ("c128", (40, 40), "copy=bulk,numbers=three"),
    ] {
        let problem = problem(family, widths, dtype);
        let given = parameters(form).with("unit", "mma").with("runs", 4);
        let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refused.contains("runs"), "{dtype} {widths:?} {form}: {refused}");
    }
    let three = parameters("unit=mma,copy=bulk,numbers=parts,wk=1,runs=3");
    let refused = family.complete(&three, &problem(family, (40, 40), "c128"), target::DEFAULT).unwrap_err();
    assert!(refused.to_string().contains("in one run or in four"), "{refused}");
}
