//! The family `tsmttsm`: sets of threads that share out the rows of a staged group add up their sums in shared memory.

use warpwright::kernels;
use warpwright_core::target;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, parameters, problem};

const SHARED: &str = "unit=fma,staging=shared,reduction=two-pass,block=128,depth=64,parts=3";

#[test]
fn sets_come_together_in_shared_memory() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f32", (8, 8), "tm=4,tn=2,stages=3"),
        ("f32", (8, 8), "tm=4,tn=4,stages=2,transposed=true"),
        ("f32", (4, 4), "tm=4,tn=4,copy=rows"),
        ("f32", (5, 3), "tm=2,tn=1,copy=one"),
        ("f32", (16, 16), "tm=4,tn=4,stages=2"),
        ("f64", (1, 1), "tm=1,tn=1"),
        ("f64", (7, 2), "tm=4,tn=2"),
        ("f64", (4, 4), "tm=2,tn=2,copy=one,stages=3"),
        ("c64", (3, 4), "tm=2,tn=2"),
        ("c128", (2, 5), "tm=1,tn=3"),
    ] {
        let problem = problem(family, widths, dtype);
        let texts = ["apart", "together"].map(|sets| {
            let choice = chosen(family, &problem, &format!("{SHARED},{form},sets={sets}"));
            holds(family, &problem, &choice, &[0, 1, 2, 63, 64, 65, 191, 192, 193, 1000]);
            family.build(&problem, &choice).unwrap().program().to_string()
        });
        // What the first launch leaves is one part for each block, not one for each set of each.
        let lies = |text: &str, buffer: &str, space: &str| {
            let declared = format!("alloc {buffer}: ");
            text.lines().any(|line| line.trim_start().starts_with(&declared) && line.ends_with(space))
        };
        let [apart, together] = &texts;
        assert!(lies(apart, "slice", " global"), "{apart}");
        assert!(lies(together, "slice", " shared") && lies(together, "part", " global"), "{together}");
    }
}

#[test]
fn a_matrix_may_be_multiplied_by_itself_so() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, width) in [("f32", 8), ("c128", 3)] {
        let mut problem = problem(family, (width, width), dtype);
        problem.same = true;
        let choice = chosen(family, &problem, &format!("{SHARED},tm=2,tn=2,sets=together"));
        holds(family, &problem, &choice, &[0, 1, 65, 193, 500]);
    }
}

#[test]
fn every_step_towards_it_changes_nothing() {
    let family = kernels::family("tsmttsm").unwrap();
    let problem = problem(family, (4, 3), "f64");
    let choice = chosen(family, &problem, &format!("{SHARED},tm=2,tn=1,sets=together"));
    let kernel = family.build(&problem, &choice).unwrap();
    check(&kernel.schedule, &[("K", 131)], 1, true, 5).unwrap_or_else(|e| panic!("{choice}: {e}"));
}

#[test]
fn it_is_asked_only_where_small_sums_of_several_sets_are_left() {
    let family = kernels::family("tsmttsm").unwrap();
    let sets = family.parameters.iter().find(|p| p.name == "sets").unwrap();
    let offered = |width, form: &str| {
        let problem = problem(family, (width, width), "f32");
        (sets.values)(&chosen(family, &problem, form), &problem, target::DEFAULT)
    };
    let small = offered(8, SHARED);
    assert_eq!(small.iter().map(ToString::to_string).collect::<Vec<_>>(), ["apart", "together"]);
    for (width, form, why) in [
        (8, "unit=fma,staging=registers", "slices of rows in registers always come together"),
        (8, "unit=mma", "sets of warps leave their tiles"),
        (8, "unit=fma,staging=shared,copy=bulk", "barriers of bulk copies count one loop alone"),
        (32, SHARED, "a large C has many sums, and few sets"),
        (8, "unit=fma,staging=shared,reduction=global", "atomics add what each set has"),
    ] {
        assert!(offered(width, form).is_empty(), "{why}");
    }
}

#[test]
fn shared_memory_has_room_for_their_sums() {
    let family = kernels::family("tsmttsm").unwrap();
    let small = problem(family, (8, 8), "f32");
    let bytes = ["apart", "together"].map(|sets| {
        let choice = chosen(family, &small, &format!("{SHARED},tm=4,tn=4,sets={sets}"));
        (family.footprint)(&small, &choice, target::DEFAULT).shared_bytes
    });
    // 32 sets of four threads, and the two shares in which 128 threads add up what 64 elements have of them.
    assert_eq!(bytes[1] - bytes[0], (32 + 2) * 8 * 8 * 4);
    // 64 sets of 16 threads leave 128 KiB of 256 sums each, beside two groups of 64 KiB.
    let wide = problem(family, (16, 16), "f64");
    let large = "unit=fma,staging=shared,block=1024,depth=256,stages=2,tm=4,tn=4,sets";
    let complete =
        |sets: &str| family.complete(&parameters(&format!("{large}={sets}")), &wide, target::DEFAULT);
    assert!(complete("apart").is_ok());
    assert!(complete("together").is_err_and(|d| d.to_string().contains("sums of sets do not fit")));
}

/// Of the ways to be refused, that of the one thing that has no meaning beside the others is said, not what was too large on the way there.
#[test]
fn what_has_no_meaning_is_said_first() {
    let family = kernels::family("tsmttsm").unwrap();
    let small = problem(family, (8, 8), "f32");
    for (given, because) in [
        ("staging=registers,sets=together", "sets has no meaning with areas=1"),
        ("unit=fma,staging=registers,depth=4096", "depth has no meaning with areas=1"),
        ("staging=shared,depth=4096", "the groups of rows do not fit"),
    ] {
        let refusal = family.complete(&parameters(given), &small, target::DEFAULT).expect_err(given);
        assert!(refusal.to_string().contains(because), "{given}: {refusal}");
    }
}
