//! The family `tsmm`: groups of rows that parts of a block take in turn from a ring, and results that leave by bulk copies, change nothing of what
//! is computed.

use warpwright::compile;
use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family};
use warpwright_core::target;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, parameters, problem};

/// A choice that may not be among those that fit best: groups of its ring are as many as are given.
fn with_slots(family: &Family, width: i64, dtype: &str, form: &str, slots: i64) -> Choice {
    let problem = problem(family, (width, width), dtype);
    chosen(family, &problem, form).with("stages", slots)
}

#[test]
fn results_leave_by_bulk_copies() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, width, form) in [
        ("f32", 5, "team=block,rows=32,wm=2,passing=true,groups=1,numbers=split"),
        ("f64", 7, "team=block,rows=32,wm=2,stages=2,blocks=3"),
        ("f64", 12, "team=part,rows=64,wm=4,copy=one,stages=1,blocks=3"),
        ("c64", 6, "team=part,rows=64,wm=2,wn=1,stages=2,blocks=2,numbers=split"),
        ("c64", 5, "team=part,rows=64,wm=2,wn=1,stages=2,blocks=2,numbers=split-parts"),
        ("c128", 9, "team=part,rows=32,wm=2,copy=one,stages=1,passing=true,groups=2,numbers=parts"),
        ("c128", 9, "team=part,rows=32,wm=2,wn=2,copy=one,stages=2,blocks=3,numbers=whole"),
        ("c128", 11, "team=block,rows=16,wm=1,wn=2,copy=one,stages=2,blocks=3,numbers=expanded"),
    ] {
        let problem = problem(family, (width, width), dtype);
        let choice = chosen(family, &problem, &format!("unit=mma,store=bulk,{form}"));
        assert!((family.schedule)(&problem, &choice).contains("bulk_store(C.f)"), "{choice}");
        let rows = choice.int("rows");
        holds(
            family,
            &problem,
            &choice,
            &[0, 1, rows - 1, rows, rows + 1, 3 * rows + 5, 7 * rows, 9 * rows - 3],
        );
    }
}

#[test]
fn parts_take_groups_in_turn_from_a_ring() {
    let family = kernels::family("tsmm").unwrap();
    for (width, dtype, form, slots) in [
        (9, "c128", "rows=32,wm=2,numbers=parts,lane_base=true", [3, 4]),
        (10, "c128", "rows=64,wm=4,numbers=whole,lane_base=true", [5, 7]),
        (7, "c128", "rows=32,wm=4,instruction=m8n8k4,numbers=whole", [6, 8]),
        (12, "c128", "rows=96,wm=6,numbers=expanded", [8, 11]),
        (13, "c128", "rows=32,wm=2,wn=2,numbers=parts", [3, 4]),
        (7, "f32", "rows=64,wm=2,numbers=split", [3, 4]),
        (10, "f64", "rows=64,wm=4", [5, 8]),
        (5, "c64", "rows=32,wm=2,numbers=split", [3, 4]),
        (6, "c64", "rows=64,wm=4,numbers=split-parts,split_once=true", [6, 7]),
    ] {
        for slots in slots {
            let problem = problem(family, (width, width), dtype);
            let form = format!("unit=mma,team=part,store=bulk,copy=bulk,{form},blocks=3");
            let choice = with_slots(family, width, dtype, &form, slots);
            let steps = (family.schedule)(&problem, &choice);
            assert!(steps.contains(&format!("pipeline(C.blk, {slots}, via=bulk, across=C.w)")), "{steps}");
            let rows = choice.int("rows");
            // As many groups as fill the ring of a block, and more, of which some parts have one less than others.
            let group = rows / choice.int("wm");
            let long =
                [1, group, 3 * rows, 6 * rows + group + 1, 12 * rows - group, 21 * rows + 2 * group - 5];
            holds(family, &problem, &choice, &[&[0], &long[..]].concat());
        }
    }
}

#[test]
fn every_prefix_of_rings_that_parts_use_in_turn_is_equal_to_the_specification() {
    let family = kernels::family("tsmm").unwrap();
    for (width, dtype, form, slots) in [
        (5, "c128", "team=part,rows=32,wm=2,copy=bulk,blocks=2,numbers=parts,lane_base=true", 3),
        (4, "c128", "team=part,rows=64,wm=4,copy=bulk,blocks=1,numbers=whole", 6),
        (6, "f64", "team=part,rows=32,wm=2,stages=2,copy=one,blocks=2,lane_base=true", 2),
    ] {
        let problem = problem(family, (width, width), dtype);
        let choice = with_slots(family, width, dtype, &format!("unit=mma,store=bulk,{form}"), slots);
        let kernel = family.build(&problem, &choice).unwrap();
        for extent in [1, 165] {
            check(&kernel.schedule, &[("M", extent)], 0, false, 5)
                .unwrap_or_else(|e| panic!("{} with {choice}: {e}", kernel.name));
        }
    }
}

/// Nobody meets anybody in the loop, and what is asked for is as much as fits.
#[test]
fn parts_that_take_turns_wait_for_copies_alone() {
    let family = kernels::family("tsmm").unwrap();
    let problem = problem(family, (50, 50), "c128");
    let form = "unit=mma,team=part,store=bulk,copy=bulk,rows=128,wm=8,numbers=parts";
    let choice = chosen(family, &problem, form);
    assert_eq!(choice.int("stages"), 14, "{choice}");
    let kernel = family.build(&problem, &choice).unwrap();
    let valid = compile::validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let text = compile::cuda(&valid).unwrap().text;
    let inside = &text[text.find("for (int blk").expect("there is a loop over groups")..];
    assert!(!inside.contains("__syncthreads"), "{inside}");
    assert!(inside.contains("bulk_write<12800>") && inside.contains("bulk_wait_read<0>"), "{inside}");
    // Not where rows are longer than what is multiplied, where blocks have bands, or on a GPU without such copies.
    for (width, form, gpu) in [
        ((50, 49), form, "h200"),
        ((50, 50), "unit=mma,team=part,store=bulk,copy=bulk,bands=2", "h200"),
        ((50, 50), "unit=mma,team=part,store=bulk", "a100-80gb"),
        ((50, 50), "unit=mma,team=part,store=bulk,in_place=false", "h200"),
        ((50, 50), "unit=mma,team=block,store=bulk,copy=bulk", "h200"),
    ] {
        let problem = crate::tall_skinny::problem(family, width, "c128");
        let target = target::Target::by_name(gpu).unwrap();
        assert!(family.complete(&parameters(form), &problem, target).is_err(), "{form} {gpu}");
    }
}
