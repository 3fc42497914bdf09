use super::{Cond, Index, Interval, Naming, Ranges};
use crate::sym::Sym;

fn vars() -> (Index, Index, Index) {
    (Index::var(&Sym::new("x")), Index::var(&Sym::new("y")), Index::var(&Sym::new("z")))
}

#[test]
fn sums_are_canonical() {
    let (x, y, _) = vars();
    assert_eq!(&(&x + &y) - &x, y);
    assert_eq!((&(&x * 8) + &y).to_string(), "8*x + y");
    assert_eq!((&Index::from(5) - &(&x * 3)).to_string(), "-3*x + 5");
}

#[test]
fn division_takes_out_multiples() {
    let (x, y, _) = vars();
    assert_eq!((&(&x * 8) + &y).div(8).to_string(), "x + y/8");
    assert_eq!((&x * 8).div(16).to_string(), "x/2");
    assert_eq!(x.div(4).div(8).to_string(), "x/32");
    assert_eq!(x.ceil_div(128).to_string(), "ceil(x, 128)");
    assert_eq!((&x * 6).rem(4).to_string(), "2*(x%2)");
}

#[test]
fn equal_coefficients_are_printed_in_an_order_that_names_decide() {
    struct ByName;
    impl Naming for ByName {
        fn name(&self, sym: &Sym) -> String {
            sym.name().to_string()
        }
        fn rank(&self, sym: &Sym) -> u32 {
            if sym.name() == "last" { 2 } else { 1 }
        }
    }
    for order in [["a", "b", "last"], ["last", "b", "a"]] {
        let made: Vec<Index> = order.iter().map(|name| Index::var(&Sym::new(name))).collect();
        let of = |name: &str| made[order.iter().position(|n| *n == name).unwrap()].clone();
        let sum = &(&of("last").div(2) + &of("b").div(3)) + &(&of("a").rem(4) + &of("last"));
        assert_eq!(sum.text(&ByName), "last + a%4 + b/3 + last/2");
    }
}

#[test]
fn division_and_remainder_join() {
    let (x, y, _) = vars();
    let sum = &(&x + &y).div(8).scaled(8) + &(&x + &y).rem(8);
    assert_eq!(sum, &x + &y);
}

#[test]
fn ranges_resolve_division() {
    let (sx, si) = (Sym::new("ty"), Sym::new("i"));
    let mut ranges = Ranges::new();
    ranges.set(&si, Interval::new(0, 7));
    let e = &Index::var(&sx).scaled(8) + &Index::var(&si);
    assert_eq!(ranges.simplify(&e.div(8)).to_string(), "ty");
    assert_eq!(ranges.simplify(&e.rem(8)).to_string(), "i");
    assert_eq!(ranges.simplify(&e.div(16)).to_string(), "ty/2");
    assert_eq!(ranges.simplify(&e.rem(16)).to_string(), "8*(ty%2) + i");
}

/// The same operation on integers.
type Plain = fn(i64, i64) -> i64;

#[test]
fn operations_agree_with_integers() {
    let (sx, sy) = (Sym::new("x"), Sym::new("y"));
    let (x, y) = (Index::var(&sx), Index::var(&sy));
    let cases: Vec<(Index, Plain)> = vec![
        ((&(&x * 6) + &(&y * 4)).offset(-5).div(4), |x, y| (6 * x + 4 * y - 5).div_euclid(4)),
        ((&(&x * 6) + &(&y * 4)).offset(-5).rem(4), |x, y| (6 * x + 4 * y - 5).rem_euclid(4)),
        ((&(&x * 6) + &(&y * 4)).offset(3).rem(10), |x, y| (6 * x + 4 * y + 3).rem_euclid(10)),
        (x.rem(12).rem(4), |x, _| x.rem_euclid(12).rem_euclid(4)),
        (&x.div(3).scaled(6) + &x.rem(3).scaled(2), |x, _| 2 * x),
        (x.minimum(&y).maximum(&(&x - &y)), |x, y| x.min(y).max(x - y)),
    ];
    let mut ranges = Ranges::new();
    ranges.set(&sx, Interval::new(-9, 9));
    ranges.set(&sy, Interval::new(0, 3));
    for (index, expected) in cases {
        let simple = ranges.simplify(&index);
        for a in -9..10 {
            for b in 0..4 {
                let value = |s: &Sym| Some(if *s == sx { a } else { b });
                assert_eq!(index.eval(&value), Ok(expected(a, b)), "{index} at {a}, {b}");
                assert_eq!(simple.eval(&value), Ok(expected(a, b)), "{simple} at {a}, {b}");
                let Interval { lo, hi } = ranges.of(&index);
                assert!(lo.is_none_or(|l| l <= expected(a, b)) && hi.is_none_or(|h| expected(a, b) <= h));
            }
        }
    }
}

#[test]
fn conditions_are_decided_by_intervals() {
    let s = Sym::new("r");
    let mut ranges = Ranges::new();
    ranges.set(&s, Interval::new(0, 7));
    let r = Index::var(&s);
    assert_eq!(ranges.decide(&Cond::lt(r.clone(), 8.into())), Some(true));
    assert_eq!(ranges.decide(&Cond::lt(r.clone(), 7.into())), None);
    assert_eq!(ranges.decide(&Cond::le(8.into(), r.clone())), Some(false));
    assert_eq!(Cond::lt(r.clone(), 3.into()).negate().to_string(), "3 <= r");
    assert_eq!(Cond::lt(r.clone(), 3.into()).and(Cond::TRUE), Cond::lt(r, 3.into()));
}
