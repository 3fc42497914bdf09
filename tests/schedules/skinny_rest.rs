//! What is left over beside whole matrix instructions in the family `tsmm`, and is added up by threads.

use warpwright::compile;
use warpwright::kernels;
use warpwright::kernels::family::Choice;
use warpwright_core::target;

use crate::tall_skinny::{holds, parameters, problem};

/// One or two terms beside whole instructions: of numbers that are split where they are staged and where they are read, in chains, whole
/// and as parts, straight from registers to C and through shared memory.
#[test]
fn threads_add_up_what_is_left_over_beside_instructions() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, (wide, deep), form) in [
        ("f32", (49, 49), "split_once=true,store=shared"),
        ("f32", (12, 42), "split_once=false,store=direct"),
        ("f32", (33, 33), "chain=1,team=part,in_place=true,store=shared"),
        ("f32", (20, 25), "chain=1,copy=rows,store=shared"),
        ("c64", (25, 25), "numbers=split,split_once=true"),
        ("c64", (17, 34), "numbers=split,store=direct"),
        ("c64", (25, 25), "numbers=split-parts,split_once=true"),
        ("c64", (7, 29), "numbers=split-parts,passing=true"),
        ("f64", (49, 49), "instruction=m16n8k4"),
        ("f64", (9, 18), "instruction=m16n8k8,store=direct"),
        ("f64", (24, 33), "instruction=m16n8k16,passing=true,store=shared"),
        ("c128", (9, 17), "numbers=whole"),
        ("c128", (9, 13), "numbers=parts,instruction=m16n8k8"),
        ("c128", (9, 17), "numbers=expanded,instruction=m16n8k8"),
    ] {
        let problem = problem(family, (wide, deep), dtype);
        let given = parameters(form).with("unit", "mma").with("rest", "threads");
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        holds(family, &problem, &choice, &[0, 1, 150]);
        let instructions = |choice: &Choice| {
            let source = compile::cuda(
                &compile::validated(family.build(&problem, choice).unwrap().program(), target::DEFAULT)
                    .unwrap(),
            );
            source.unwrap().text
        };
        let units = choice.clone().with("rest", "units");
        assert_ne!(instructions(&choice), instructions(&units), "{choice}");
    }
    // What fills more than a quarter of an instruction is left to one.
    for (dtype, deep) in [("f32", 51), ("f32", 48), ("f32", 7), ("f64", 51), ("c64", 28)] {
        let problem = problem(family, (9, deep), dtype);
        let given = Choice::default().with("unit", "mma").with("rest", "threads");
        let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refused.contains("rest"), "{dtype} {deep}: {refused}");
    }
}
