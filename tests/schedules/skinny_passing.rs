//! Blocks of the family `tsmm` that take one group of rows each, or a few, and make room for the next.

use warpwright::compile;
use warpwright::kernels;
use warpwright::kernels::family::{Choice, Permissions};
use warpwright_core::target;

use crate::check::check;
use crate::drawn::drawn;
use crate::tall_skinny::{holds, parameters, problem};

#[test]
fn blocks_that_pass_compute_the_same() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, (wide, deep), form) in [
        ("f64", (20, 17), "unit=mma,stages=1,rows=64,store=shared"),
        ("f64", (33, 40), "unit=mma,stages=1,rows=32,store=direct,team=part,wm=2"),
        ("f64", (64, 65), "unit=mma,depth=16,stages=2,rows=32,store=direct"),
        ("f64", (7, 7), "unit=fma,staging=shared,stages=1,store=shared,team=part,copy=one"),
        ("f32", (13, 20), "unit=fma,staging=shared,stages=1,store=shared,team=block,copy=one"),
        ("f32", (128, 126), "unit=fma,staging=shared,stages=1,store=direct,bands=2,rows=64"),
        ("f32", (24, 40), "unit=mma,numbers=split,split_once=true,stages=1,rows=64,store=shared"),
        ("c64", (9, 16), "unit=fma,staging=shared,stages=1,store=direct"),
        ("c64", (17, 21), "unit=mma,numbers=split-parts,stages=1,rows=64,store=shared,team=part"),
        ("c128", (10, 9), "unit=mma,numbers=parts,stages=1,rows=32,store=shared"),
        ("c128", (16, 12), "unit=mma,numbers=expanded,stages=1,rows=32,store=direct"),
        ("c128", (40, 48), "unit=mma,numbers=three,depth=8,stages=3,rows=32,store=shared"),
        ("f64", (20, 17), "unit=mma,groups=4,stages=2,rows=32,store=shared"),
        ("f64", (33, 40), "unit=mma,groups=2,stages=2,rows=64,store=direct,team=part,wm=2,wn=1"),
        ("f64", (64, 65), "unit=mma,groups=2,depth=16,stages=2,rows=32,store=direct"),
        ("f32", (24, 40), "unit=mma,numbers=split,split_once=true,groups=8,stages=2,rows=32,store=shared"),
        ("f32", (13, 20), "unit=fma,staging=shared,groups=3,stages=1,store=shared,team=block,copy=one"),
        ("c64", (9, 16), "unit=fma,staging=shared,groups=4,stages=2,store=shared,team=part,wm=4,wn=1"),
        ("c64", (17, 21), "unit=mma,numbers=split-parts,groups=4,stages=2,rows=64,store=shared,team=part"),
        (
            "c128",
            (16, 12),
            "unit=mma,numbers=parts,copy=bulk,release=warps,groups=4,stages=3,rows=32,store=direct,team=block",
        ),
        (
            "c128",
            (40, 48),
            "unit=mma,numbers=parts,copy=bulk,release=role,groups=2,stages=2,rows=32,store=direct,team=block",
        ),
    ] {
        let problem = problem(family, (wide, deep), dtype);
        let given = parameters(form).with("passing", true);
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        holds(family, &problem, &choice, &[0, 1, 331]);
    }
}

/// Rows and results are as many numbers there. Where a warp alone has read the rows it stores as soon as it has; where several have, when
/// all have; and with several stages in the slot of the ring that the rows came to, while the next rows come to another.
#[test]
fn results_may_lie_where_the_rows_lay_that_they_were_made_of() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, width, form) in [
        ("f64", 20, "passing=true,groups=1,stages=1,rows=64,wm=4,wn=1"),
        ("f64", 47, "passing=true,groups=1,stages=1,rows=128,wm=8,wn=1,instruction=m16n8k4"),
        ("f64", 13, "passing=true,groups=1,stages=1,rows=128,wm=4,wn=1,team=part"),
        ("f32", 21, "passing=true,groups=1,stages=1,rows=64,wm=2,wn=1,numbers=split"),
        ("c64", 9, "passing=true,groups=1,stages=1,rows=64,wm=4,wn=1,numbers=split"),
        ("f64", 20, "passing=true,groups=1,stages=1,rows=64,wm=2,wn=2"),
        ("f64", 48, "passing=false,blocks=2,stages=1,rows=32,wm=2,wn=1,instruction=m16n8k8"),
        ("c128", 12, "passing=false,blocks=2,stages=2,rows=128,wm=4,wn=1,numbers=parts"),
        ("c64", 17, "passing=true,groups=2,stages=2,rows=64,wm=2,wn=2,numbers=split,rest=units"),
        ("c128", 19, "passing=false,blocks=2,stages=1,rows=64,wm=4,wn=2,numbers=whole,team=part"),
        ("c128", 23, "passing=false,blocks=2,stages=2,rows=32,wm=2,wn=3,numbers=parts,team=part"),
        (
            "c128",
            17,
            "passing=false,blocks=1,stages=3,rows=64,wm=8,wn=1,instruction=m8n8k4,team=part,rest=threads",
        ),
        ("f64", 31, "passing=false,blocks=2,stages=4,rows=64,wm=2,wn=2,terms_apart=2,instruction=m16n8k8"),
        (
            "f32",
            33,
            "passing=false,blocks=2,stages=2,rows=128,wm=4,wn=1,numbers=split,chain=1,rest=threads,team=part",
        ),
    ] {
        let problem = problem(family, (width, width), dtype);
        let given = parameters(&format!("{form},unit=mma,store=shared,copy=one"));
        let [apart, in_place] = [false, true].map(|in_place| {
            let given = given.clone().with("in_place", in_place);
            let choice = family
                .complete(&given, &problem, target::DEFAULT)
                .unwrap_or_else(|e| panic!("{dtype} {width} {form}: {e}"));
            holds(family, &problem, &choice, &[0, 1, 331]);
            let [rows_lay_there, results_do] = ["As", "acc"].map(|name| {
                let kernel = family.build(&problem, &choice).unwrap();
                kernel.program().buffers().values().any(|b| b.sym.name() == name)
            });
            assert!(rows_lay_there && results_do != in_place, "{dtype} {width} {form}");
            (family.footprint)(&problem, &choice, target::DEFAULT).shared_bytes
        });
        assert!(in_place < apart, "{dtype} {width} {form}: {in_place} of {apart} bytes");
    }
    // Results that are longer than rows have no room there.
    let problem = problem(family, (21, 20), "f64");
    let given = parameters("unit=mma,store=shared,copy=one,in_place=true");
    assert!(family.complete(&given, &problem, target::DEFAULT).is_err());
}

/// Neither where rows are short, of which no pieces are made, nor where they are long.
#[test]
fn a_block_that_takes_one_group_has_nothing_to_wait_for_meanwhile() {
    let family = kernels::family("tsmm").unwrap();
    for (width, form) in
        [(20, "unit=mma,passing=true,stages=3"), (64, "unit=mma,depth=64,passing=true,stages=3,rows=32")]
    {
        let problem = problem(family, (width, width), "f64");
        let given = |groups: i64| parameters(form).with("groups", groups);
        let complete = |groups| family.complete(&given(groups), &problem, target::DEFAULT);
        let refused = complete(1).unwrap_err().to_string();
        assert!(refused.contains("there is one stage"), "{width}: {refused}");
        assert!(complete(2).is_ok(), "{width}");
    }
}

#[test]
fn every_prefix_of_blocks_that_pass_is_equal_to_the_specification() {
    let family = kernels::family("tsmm").unwrap();
    for (sizes, dtype, form) in [
        ((9, 4), "f64", "unit=mma,stages=1,rows=32,wm=2,store=shared,passing=true"),
        ((5, 7), "f32", "staging=shared,stages=1,team=part,wm=4,wn=1,store=shared,passing=true"),
        (
            (20, 70),
            "c128",
            "unit=mma,stages=2,team=part,rows=64,wm=4,wn=1,depth=16,store=shared,passing=true",
        ),
        (
            (9, 9),
            "f64",
            "unit=mma,stages=1,rows=32,wm=2,wn=1,copy=one,store=shared,passing=true,groups=1,in_place=true",
        ),
        ((9, 4), "f64", "unit=mma,stages=2,rows=32,wm=2,store=shared,passing=true,groups=2"),
        ((5, 7), "f32", "staging=shared,stages=2,team=part,wm=2,wn=1,store=shared,passing=true,groups=2"),
    ] {
        let problem = problem(family, sizes, dtype);
        let choice = family.complete(&parameters(form), &problem, target::DEFAULT).unwrap();
        let kernel = family.build(&problem, &choice).unwrap();
        for extent in [1, 37] {
            check(&kernel.schedule, &[("M", extent)], 0, false, 5)
                .unwrap_or_else(|e| panic!("{} with {choice}: {e}", kernel.name));
        }
    }
}

/// The small matrix is asked for once the rows are on their way, and waited for together with them.
#[test]
fn rows_are_on_their_way_before_the_small_matrix_is_copied() {
    let family = kernels::family("tsmm").unwrap();
    let problem = problem(family, (20, 20), "f64");
    let text = |form: &str| {
        let choice = family.complete(&parameters(form), &problem, target::DEFAULT).unwrap();
        let kernel = family.build(&problem, &choice).unwrap();
        let valid = compile::validated(kernel.program(), target::DEFAULT).unwrap();
        compile::cuda(&valid).unwrap().text
    };
    let position = |text: &str, of: &str| text.find(of).unwrap_or_else(|| panic!("no `{of}` in\n{text}"));
    let passing = text("unit=mma,stages=1,rows=64,passing=true");
    let (rows, small) = (position(&passing, "cp_async16(&As"), position(&passing, "Bs[5*u + r]"));
    assert!(rows < small && small < position(&passing, "cp_async_wait<0>();"), "{passing}");
    assert!(!passing.contains("for (int blk"), "no block takes a second group:\n{passing}");
    let staying = text("unit=mma,stages=1,rows=64");
    assert!(position(&staying, "Bs[5*u + r]") < position(&staying, "cp_async16(&As"), "{staying}");
    assert!(staying.contains("for (int blk"), "{staying}");
}

/// Constraints permit what the schedule can make: `storage_share` looks at the statements itself.
#[test]
fn choices_with_results_in_place_can_be_made() {
    let family = kernels::family("tsmm").unwrap();
    // Dense rows, and rows that stand so many elements apart from each other.
    for (dtype, width, gap) in [
        ("f32", 33, 0),
        ("f32", 64, 0),
        ("f64", 48, 0),
        ("f64", 97, 0),
        ("c64", 50, 0),
        ("c128", 12, 0),
        ("f32", 9, 1),
        ("f32", 32, 4),
        ("f64", 24, 1),
        ("f64", 17, 2),
        ("c64", 24, 3),
        ("c128", 9, 1),
    ] {
        let mut problem = problem(family, (width, width), dtype);
        problem.ld.a += gap;
        problem.ld.c += gap;
        let given = Choice::default().with("in_place", true);
        let choices = drawn(family, &problem, Permissions::ALL, &given, 9);
        assert_eq!(choices.len(), 9, "{dtype} {width} {gap}");
        for choice in &choices {
            let kernel = family.build(&problem, choice).unwrap_or_else(|e| panic!("{e}"));
            compile::validated(kernel.program(), target::DEFAULT)
                .unwrap_or_else(|e| panic!("{} with {choice}: {e}", kernel.name));
        }
    }
}
