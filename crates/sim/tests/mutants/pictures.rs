//! What threads in random order make of the small pictures, right and wrong ones.

use warpwright_core::ir::{Program, Stmt, parse, walk};
use warpwright_sim::coroutine::{self, Arguments, Element, Fault, Policy};
use warpwright_sim::mutate::case::{Outputs, Specification, Tensors, arguments, first_difference};

const N: i64 = 160;

fn read(text: &str) -> Program {
    parse::program(text).expect("programs in the repository parse")
}

/// The outcomes under several seeds: what is wrong, if anything.
fn outcomes(program: &Program, specification: Specification) -> Vec<Result<Option<String>, Fault>> {
    let before = arguments(program, &[("n", N)], 1);
    let expected = specification(&Tensors::new(program, &before));
    let one = |policy| {
        let mut after: Arguments = before.clone();
        coroutine::run(program, &mut after, policy).map(|()| first_difference(&expected, &after))
    };
    (0..8).map(|seed| one(Policy::from_seed(seed))).chain([one(Policy::latest(0))]).collect()
}

/// What lane 0 of the consumer adds up.
fn every_32nd(t: &Tensors<'_>) -> Outputs {
    let sum = (0..N / 32).fold(Element::ZERO, |sum, k| sum.plus(t.at("x", 0, 32 * k)));
    vec![("y", vec![sum])]
}

/// `y[i] = x[255 - i]` where that exists; elements past the end were filled with 0.
fn reversed(t: &Tensors<'_>) -> Outputs {
    let at = |i: i64| if 255 - i < N { t.at("x", 0, 255 - i) } else { Element::ZERO };
    vec![("y", (0..N).map(at).collect())]
}

#[test]
fn a_ring_is_right_with_roles_inside_and_outside_the_loop() {
    for text in [
        include_str!("../../../../programs/pictures/roles_inside.ww"),
        include_str!("../../../../programs/pictures/roles_outside.ww"),
    ] {
        for outcome in outcomes(&read(text), every_32nd) {
            assert_eq!(outcome, Ok(None));
        }
    }
}

#[test]
fn a_missing_release_is_a_deadlock() {
    let mut program = read(include_str!("../../../../programs/pictures/roles_inside.ww"));
    let without = |stmt: Stmt| match &stmt {
        Stmt::Arrive { ring, .. } if ring.name() == "empty" => Vec::new(),
        _ => vec![stmt],
    };
    program.body = walk::rewrite(program.body, &mut { without });
    for outcome in outcomes(&program, every_32nd) {
        assert_eq!(outcome, Err(Fault::Deadlock { waiting: 64 }));
    }
}

#[test]
fn threads_exchange_values_only_across_a_barrier() {
    let split = read(include_str!("../../../../programs/pictures/thread_loop_split.ww"));
    for outcome in outcomes(&split, reversed) {
        assert_eq!(outcome, Ok(None));
    }
    let not_split = read(include_str!("../../../../programs/pictures/thread_loop_not_split.ww"));
    let wrong = |o: &Result<Option<String>, Fault>| matches!(o, Err(Fault::Poison { .. }) | Ok(Some(_)));
    assert!(outcomes(&not_split, reversed).iter().all(wrong));
}
