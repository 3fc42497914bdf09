//! What threads in random order make of the small pictures, right and wrong ones.

use warpwright_core::ir::{Program, Stmt, parse, walk};
use warpwright_sim::coroutine::Policy;
use warpwright_sim::mutate::case::Case;

/// What lane 0 of the consumer adds up.
const EVERY_32ND: &str =
    "program spec(n: size, x: in f32[n], y: out f32[1]) { y[0] = 0  for k in 0..n/32 { y[0] += x[32*k] } }";

/// Elements past the end were filled with 0.
const REVERSED: &str = "program spec(n: size, x: in f32[n], y: out f32[n]) {
    for i in 0..n { y[i] = 255 - i < n ? x[255 - i] : 0 }
}";

fn read(text: &str) -> Program {
    parse::program(text).expect("programs in the repository parse")
}

/// What goes wrong under each of several seeds.
fn complaints(program: Program, specification: &str) -> Vec<Option<String>> {
    let name = program.name.clone();
    let case = Case { name, specification: read(specification), program, shapes: vec![vec![("n", 160)]] };
    let example = &case.examples(1)[0];
    let policies = (0..8).map(Policy::from_seed).chain([Policy::latest(0)]);
    policies.map(|policy| example.complaint(&case.program, policy)).collect()
}

#[test]
fn a_ring_is_right_with_roles_inside_and_outside_the_loop() {
    for text in [
        include_str!("../../../../programs/pictures/roles_inside.ww"),
        include_str!("../../../../programs/pictures/roles_outside.ww"),
    ] {
        for complaint in complaints(read(text), EVERY_32ND) {
            assert_eq!(complaint, None);
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
    for complaint in complaints(program, EVERY_32ND) {
        assert_eq!(complaint.as_deref(), Some("deadlock: 64 threads wait"));
    }
}

#[test]
fn threads_exchange_values_only_across_a_barrier() {
    let split = read(include_str!("../../../../programs/pictures/thread_loop_split.ww"));
    for complaint in complaints(split, REVERSED) {
        assert_eq!(complaint, None);
    }
    let not_split = read(include_str!("../../../../programs/pictures/thread_loop_not_split.ww"));
    assert!(complaints(not_split, REVERSED).iter().all(Option::is_some));
}
