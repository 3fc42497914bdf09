//! Terms and columns of matrix instructions that lie apart in the family `tsmm`, so that fewer lanes meet in a bank.

use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family};
use warpwright::problem::Problem;
use warpwright_core::target;

use crate::tall_skinny::{counted, holds, parameters, problem};

/// Passes through shared memory of loads and of stores at so many rows.
fn wavefronts(family: &Family, problem: &Problem, choice: &Choice, rows: i64) -> [u64; 2] {
    let counters = counted(family, problem, choice, rows);
    [counters.shared_load_wavefronts, counters.shared_store_wavefronts]
}

#[test]
fn terms_and_columns_that_lie_apart_meet_in_fewer_banks() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, (wide, deep), form, [terms, columns]) in [
        ("f32", (49, 49), "split_once=true,rest=units", [1, 7]),
        ("f32", (49, 49), "split_once=true,rest=threads", [1, 7]),
        (
            "f32",
            (31, 31),
            "split_once=false,team=part,in_place=true,rows=128,wm=4,wn=1,numbers=split,chain=4",
            [4, 4],
        ),
        ("f32", (33, 57), "team=part,rows=64,wm=4,wn=1,depth=57,rest=units", [8, 5]),
        ("f32", (20, 53), "depth=53", [7, 1]),
        ("f64", (63, 63), "instruction=m16n8k8", [4, 2]),
        ("f64", (63, 31), "instruction=m16n8k4,wm=4,wn=2", [4, 2]),
        ("f64", (47, 17), "instruction=m16n8k4,rest=units,passing=true,groups=8", [5, 2]),
        ("f64", (41, 41), "instruction=m16n8k8,rest=threads", [1, 2]),
        ("c64", (33, 33), "numbers=split,split_once=true,rest=units,team=part,rows=64,wm=4,wn=1", [5, 1]),
        ("c64", (33, 33), "numbers=split,rest=threads,team=part,rows=64,wm=4,wn=1", [4, 1]),
        ("f32", (57, 57), "rest=threads,depth=57,wn=1", [1, 4]),
        ("f64", (17, 33), "instruction=m16n8k4,rest=threads,rows=64,wm=4,wn=1", [4, 1]),
        ("c64", (25, 25), "numbers=split,split_once=true,rest=threads,team=part,rows=64,wm=4,wn=1", [1, 2]),
        ("c64", (25, 25), "numbers=split,split_once=false,rest=units,team=part,rows=64,wm=4,wn=1", [4, 2]),
        ("c128", (31, 31), "numbers=whole,instruction=m16n8k8,team=part,rows=64,wm=4,wn=1", [2, 1]),
    ] {
        let problem = problem(family, (wide, deep), dtype);
        let together = parameters(form).with("unit", "mma").with("store", "shared").with("copy", "one");
        let together = if form.contains("passing") {
            together
        } else {
            together.with("passing", false).with("blocks", 2)
        };
        let apart =
            [("terms_apart", terms), ("columns_apart", columns)].into_iter().filter(|(_, by)| *by > 1);
        let given = apart.clone().fold(together, |given, (name, by)| given.with(name, by));
        let complete = |given: &Choice| {
            family
                .complete(given, &problem, target::DEFAULT)
                .unwrap_or_else(|e| panic!("{dtype} {form}: {e}"))
        };
        let choice = complete(&given);
        holds(family, &problem, &choice, &[0, 1, 150]);
        // The same with neighbours; how the small matrix is stored differs by little.
        let neighbours = complete(&apart.fold(choice.clone(), |c, (name, _)| c.with(name, 1)));
        let [now, before] = [&choice, &neighbours].map(|c| wavefronts(family, &problem, c, 2000));
        if columns > 1 {
            assert!(10 * now[1] < 9 * before[1], "{choice}: stores {now:?} of {before:?}");
        }
        if terms > 1 {
            assert!(10 * now[0] < 9 * before[0], "{choice}: loads {now:?} of {before:?}");
        }
    }
}

#[test]
fn what_meets_in_no_bank_or_is_not_stored_stays_together() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, width, form) in [
        // Eight rows of 40 numbers begin in different banks.
        ("f32", 40, "copy=one,store=shared"),
        // Rows that are copied each for itself are longer where that helps.
        ("f32", 49, "copy=rows,store=shared"),
        ("f32", 49, "copy=one,store=direct"),
        ("c64", 33, "copy=one,store=shared,numbers=split-parts"),
    ] {
        let problem = problem(family, (width, width), dtype);
        let given = parameters(form).with("unit", "mma").with("columns_apart", 7);
        let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refused.contains("columns_apart"), "{dtype} {width} {form}: {refused}");
    }
    // Seven instructions beside each other have no every other column, and four after one another no every third term.
    let refused = |dtype: &str, width: i64, form: &str| {
        let given = parameters(form).with("unit", "mma").with("store", "shared").with("copy", "one");
        let problem = problem(family, (width, width), dtype);
        family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string()
    };
    let columns = refused("f32", 49, "team=part,rows=64,wm=4,wn=1,columns_apart=2");
    assert!(columns.contains("distance of their columns"), "{columns}");
    let terms = refused("f64", 31, "instruction=m16n8k8,rows=64,wm=4,terms_apart=3");
    assert!(terms.contains("distance of their terms"), "{terms}");
}
