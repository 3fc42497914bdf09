//! The family `tsmttsm`: lanes of a warp add up the parts of an element of a small C, by shuffles.

use warpwright::kernels;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, problem};

const LAST: &str = "unit=fma,reduction=two-pass,finish=shuffles";

#[test]
fn lanes_add_up_what_is_left_of_a_small_result() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form, in_blocks_too) in [
        ("f64", (1, 1), "staging=registers,block=256,parts=33,tm=1,tn=1", true),
        (
            "f64",
            (1, 1),
            "staging=shared,block=128,depth=256,parts=264,tm=1,tn=1,sets=together,stages=2",
            true,
        ),
        ("f32", (2, 3), "staging=registers,block=256,parts=40,tm=1,tn=1,transposed=true", true),
        ("f32", (4, 4), "staging=registers,block=512,parts=32,tm=4,tn=4", true),
        ("f32", (4, 4), "staging=shared,block=128,depth=64,parts=64,tm=4,tn=4,sets=apart", false),
        ("c64", (1, 1), "staging=shared,block=128,depth=128,parts=50,tm=1,tn=1,sets=apart", false),
        ("c64", (2, 2), "staging=registers,block=128,parts=37,tm=2,tn=2,leapfrog=true", true),
        ("c64", (3, 2), "staging=registers,block=128,parts=37,tm=1,tn=1", false),
        ("c128", (1, 1), "staging=shared,block=128,depth=64,parts=36,tm=1,tn=1,sets=together", true),
        ("c128", (16, 1), "staging=registers,block=256,parts=32,tm=4,tn=1", false),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("{LAST},{form}"));
        holds(family, &problem, &choice, &[0, 1, 255, 257, 2111]);
        let text = family.build(&problem, &choice).unwrap().program().to_string();
        let shares = text.lines().filter(|line| line.contains("shfl_xor(")).count();
        assert_eq!(shares, 1 + usize::from(in_blocks_too), "{dtype} {widths:?} {form}: {text}");
    }
}

#[test]
fn it_has_no_meaning_where_the_result_is_large_or_comes_together_otherwise() {
    let family = kernels::family("tsmttsm").unwrap();
    for (widths, given, known) in [
        ((4, 4), "unit=fma,reduction=two-pass,parts=64", true),
        ((4, 5), "unit=fma,reduction=two-pass,parts=64", false),
        ((4, 4), "unit=fma,reduction=two-pass,parts=16", false),
        ((4, 4), "unit=fma,reduction=global,parts=64", false),
        ((16, 16), "unit=mma,parts=64", false),
    ] {
        let problem = problem(family, widths, "f64");
        let choice = chosen(family, &problem, given);
        assert_eq!(choice.get("finish").is_some(), known, "{widths:?} {choice}");
    }
}

#[test]
fn every_step_towards_it_changes_nothing() {
    let family = kernels::family("tsmttsm").unwrap();
    let problem = problem(family, (2, 2), "c64");
    let choice = chosen(family, &problem, &format!("{LAST},staging=registers,block=128,parts=33,tm=1,tn=2"));
    let kernel = family.build(&problem, &choice).unwrap();
    check(&kernel.schedule, &[("K", 531)], 1, true, 5).unwrap_or_else(|e| panic!("{choice}: {e}"));
}
