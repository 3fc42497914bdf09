//! Specifications that are run point by point give what they give in order.

use warpwright_core::ir::parse;

use super::*;
use crate::arithmetic::FieldPair;

/// A complex product from the products of real and imaginary parts, which are four times as many.
const PARTS: &str = "program spec(M: size, N: size, K: size, alpha: c128, beta: c128, beta0: flag,
    A: in f64[K, 2*M; lda], B: in f64[K, 2*N; ldb], C: inout c128[M, N; ldc]) {
    alloc acc: f64[2*M, 2*N] global
    for i in 0..2*M, j in 0..2*N {
        acc[i, j] = 0
        for k in 0..K { acc[i, j] += A[k, i] * B[k, j] }
    }
    for i in 0..M, j in 0..N {
        if beta0 {
            C[i, j] = alpha * (c128(acc[2*i, 2*j] + acc[2*i + 1, 2*j + 1])
                + times_i(c128(acc[2*i, 2*j + 1] - acc[2*i + 1, 2*j])))
        } else {
            C[i, j] = alpha * (c128(acc[2*i, 2*j] + acc[2*i + 1, 2*j + 1])
                + times_i(c128(acc[2*i, 2*j + 1] - acc[2*i + 1, 2*j]))) + beta * C[i, j]
        }
    } }";

/// A matrix is written out before it is multiplied, sums lie in a buffer of three dimensions, and the output has one.
const EXPANDED: &str =
    "program spec(M: size, N: size, K: size, A: in f64[M, K], B: in f64[K, N], C: out f64[M*12]) {
    alloc Bs: f64[K, 2*N] global
    for r in 0..K, c in 0..2*N { Bs[r, c] = c%2 < r%2 ? -B[r, c/2] : B[r, c/2] }
    alloc acc: f64[2, M, 2*N] global
    for p in 0..2, i in 0..M, j in 0..2*N {
        acc[p, i, j] = 0
        for k in 0..K { acc[p, i, j] += (p < 1 ? A[i, k] : -A[i, k]) * Bs[k, j] }
    }
    for i in 0..M, j in 0..12 { C[12*i + j] = acc[0, i, j] * acc[1, M - 1 - i, 2*N - 1 - j] } }";

fn read(text: &str) -> Program {
    parse::program(text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// The values of the only output, in C order; poison where there is none.
fn values(outputs: &[Output<FieldPair>]) -> Vec<FieldPair> {
    let [output] = outputs else { panic!("{} outputs", outputs.len()) };
    let indices = warpwright_core::layout::indices(&output.info.extents);
    indices.map(|i| output.memory.load(crate::memory::place(&output.info, &i).expect("inside"))).collect()
}

/// Whether a specification is run point by point.
fn by_points(spec: &Program, sizes: &[(&str, i64)], trial: &Trial<'_>) -> bool {
    let given = arguments(spec, sizes, trial).expect("arguments");
    lower_points(spec, &integers(spec, &given).expect("integers")).expect("compiles").is_some()
}

fn with_trial(beta0: bool, test: impl FnOnce(&Trial<'_>)) {
    let flags = BTreeMap::from([("beta0".to_string(), beta0)]);
    test(&Trial { seed: 7, flags: &flags });
}

/// What a specification gives in order.
fn in_order(spec: &Program, sizes: &[(&str, i64)], trial: &Trial<'_>) -> Vec<FieldPair> {
    let options = Options { mode: Mode::InOrder, checks: true, blocks: Blocks::All };
    values(&execute::<FieldPair>(spec, sizes, trial, options).expect("runs").0)
}

#[test]
fn nests_of_different_extents_give_what_they_give_in_order() {
    let cases: [(&str, &[(&str, i64)]); 5] = [
        (PARTS, &[("M", 5), ("N", 11), ("K", 7)]),
        (PARTS, &[("M", 1), ("N", 1), ("K", 3)]),
        (PARTS, &[("M", 0), ("N", 4), ("K", 3)]),
        (EXPANDED, &[("M", 9), ("N", 6), ("K", 5)]),
        (EXPANDED, &[("M", 1), ("N", 6), ("K", 0)]),
    ];
    for (number, (text, sizes)) in cases.into_iter().enumerate() {
        with_trial(number % 2 == 0, |trial| {
            let spec = read(text);
            assert!(by_points(&spec, sizes, trial), "{sizes:?}");
            let found = specify::<FieldPair>(&spec, sizes, trial, None).expect("runs");
            assert_eq!(values(&found), in_order(&spec, sizes, trial), "{sizes:?}");
        });
    }
}

#[test]
fn of_nests_of_different_extents_only_what_is_wanted_is_computed() {
    let sizes = [("M", 6), ("N", 6), ("K", 5)];
    // Elements of C by row and column, or by number.
    let cases: [(&str, &[i64], &[usize]); 3] = [
        (PARTS, &[1, 2, 0, 5, 5, 3, 1, 2], &[8, 5, 33]),
        (EXPANDED, &[71, 0, 30], &[71, 0, 30]),
        (EXPANDED, &[], &[]),
    ];
    for (text, wanted, numbers) in cases {
        with_trial(true, |trial| {
            let spec = read(text);
            let found = specify::<FieldPair>(&spec, &sizes, trial, Some(wanted)).expect("runs");
            let (found, want) = (values(&found), in_order(&spec, &sizes, trial));
            for (number, value) in found.iter().enumerate() {
                if numbers.contains(&number) {
                    assert_eq!(*value, want[number], "element {number}");
                } else {
                    assert!(value.is_poison(), "element {number} was not asked for");
                }
            }
        });
    }
}

#[test]
fn later_nests_go_on_with_what_earlier_ones_wrote() {
    let spec = read(
        "program spec(n: size, x: in f64[n], y: out f64[n]) {
            alloc s: f64[n] global
            for i in 0..n { s[i] = x[i] }
            for i in 0..n { y[i] = s[n - 1 - i] }
            for i in 0..n { s[i] += x[i] * x[n - 1 - i] }
            for i in 0..n { y[i] += s[i] * s[0] } }",
    );
    let sizes = [("n", 70)];
    with_trial(false, |trial| {
        assert!(by_points(&spec, &sizes, trial));
        let want = in_order(&spec, &sizes, trial);
        assert_eq!(values(&specify::<FieldPair>(&spec, &sizes, trial, None).expect("runs")), want);
        let found = specify::<FieldPair>(&spec, &sizes, trial, Some(&[41, 3])).expect("runs");
        let found = values(&found);
        assert_eq!([found[41], found[3]], [want[41], want[3]]);
    });
}

#[test]
fn points_that_touch_the_same_elements_are_run_in_order() {
    let bodies = [
        // A point reads what its neighbour writes.
        "for i in 0..n { y[i] = i < 1 ? x[i] : x[i] + y[max(i - 1, 0)] }",
        // Two points write one element.
        "for i in 0..n { y[i] = x[i] } for i in 0..n, j in 0..n { y[i + j - min(j, n - 1 - i)] += x[j] }",
        "for i in 0..n { y[i] = x[i] } for k in 0..n, i in 0..n { y[i] += x[k] * x[i] }",
    ];
    for body in bodies {
        let spec = read(&format!("program spec(n: size, x: in f64[n], y: out f64[n]) {{ {body} }}"));
        with_trial(false, |trial| {
            let sizes = [("n", 37)];
            assert!(!by_points(&spec, &sizes, trial), "{body}");
            let found = specify::<FieldPair>(&spec, &sizes, trial, None).expect("runs");
            assert_eq!(values(&found), in_order(&spec, &sizes, trial), "{body}");
        });
    }
}

#[test]
fn what_no_nest_wrote_is_poison() {
    let bodies = [
        "for i in 0..n { s[i] = x[i] } for i in 0..2*n { y[i] = s[i] }",
        // The registers of one point are not those of the point before it.
        "for i in 0..2*n { alloc r: f64[1] reg if i < n { r[0] = x[i] } y[i] = r[0] }",
    ];
    for body in bodies {
        let spec = read(&format!(
            "program spec(n: size, x: in f64[n], y: out f64[2*n]) {{ alloc s: f64[2*n] global {body} }}"
        ));
        with_trial(false, |trial| {
            let sizes = [("n", 100)];
            assert!(by_points(&spec, &sizes, trial), "{body}");
            let found = values(&specify::<FieldPair>(&spec, &sizes, trial, None).expect("runs"));
            assert!(found[..100].iter().all(|v| !v.is_poison()), "{body}");
            assert!(found[100..].iter().all(|v| v.is_poison()), "{body}");
        });
    }
}

#[test]
fn an_access_out_of_bounds_in_any_nest_is_reported() {
    let bodies = [
        "for i in 0..n + 1 { s[i] = x[i] } for i in 0..n { y[i] = s[i + 1] }",
        "for i in 0..n + 1 { s[i] = 0 } for i in 0..n { y[i] = s[i + 2] }",
    ];
    for body in bodies {
        let spec = read(&format!(
            "program spec(n: size, x: in f64[n], y: out f64[n]) {{ alloc s: f64[n + 1] global {body} }}"
        ));
        with_trial(false, |trial| {
            let sizes = [("n", 100)];
            assert!(by_points(&spec, &sizes, trial), "{body}");
            let wrong = specify::<FieldPair>(&spec, &sizes, trial, None).map(|_| ()).expect_err(body);
            assert!(wrong.to_string().contains("wrong itself"), "{wrong}");
            // The last element depends on what is out of bounds, the first does not.
            assert!(specify::<FieldPair>(&spec, &sizes, trial, Some(&[99])).is_err(), "{body}");
            assert!(specify::<FieldPair>(&spec, &sizes, trial, Some(&[0])).is_ok(), "{body}");
        });
    }
}
