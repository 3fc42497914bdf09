use num_complex::Complex64;
use warpwright_core::dtype::DType;

use super::bound::is_larger;
use super::{Class, Region, class, expected};
use crate::inputs::{Operands, sprinkle};
use crate::matrix::Matrix;
use crate::problem::{Multiplications, Op, Problem};

fn problem(shape: &str, dtype: &str, layout: &str) -> Problem {
    Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
}

fn op_element(matrix: &Matrix, op: Op, row: usize, column: usize) -> Complex64 {
    match op {
        Op::None => matrix.get(row, column),
        Op::Transpose => matrix.get(column, row),
        Op::ConjugateTranspose => matrix.get(column, row).conj(),
    }
}

/// The definition, one element at a time, rounded to the element type after every operation.
fn computed_plainly(p: &Problem, o: &Operands) -> Matrix {
    let mut accumulator = Matrix::zeros(p.dtype().accumulator(), 1, 1, 1).unwrap();
    let mut result = o.c.clone();
    for row in 0..p.shape.m as usize {
        for column in 0..p.shape.n as usize {
            accumulator.set(0, 0, Complex64::new(0.0, 0.0));
            for k in 0..p.shape.k as usize {
                let term = op_element(&o.a, p.layout.a, row, k) * op_element(&o.b, p.layout.b, k, column);
                let sum = accumulator.get(0, 0) + term;
                accumulator.set(0, 0, sum);
            }
            let mut value = p.alpha * accumulator.get(0, 0);
            if p.beta != Complex64::new(0.0, 0.0) {
                value += p.beta * o.c.get(row, column);
            }
            result.set(row, column, value);
        }
    }
    result
}

#[test]
fn every_type_and_layout_agrees_with_the_definition() {
    for dtype in ["f16", "bf16", "f32", "f64", "c64", "c128", "i32"] {
        for layout in ["nn", "nt", "tn", "tt", "cn", "nc", "cc"] {
            let mut p = problem("5x7x19", dtype, layout);
            p.alpha = Complex64::new(2.0, if p.dtype().is_complex() { -1.0 } else { 0.0 });
            p.beta = Complex64::new(-3.0, 0.0);
            let o = Operands::random(&p, 7).unwrap();
            let whole = expected(&p, &o.a, &o.b, Some(&o.c), &Region::whole(&p));
            let comparison = whole.compare(&computed_plainly(&p, &o));
            assert!(comparison.passed(), "{dtype} {layout}: {:?}", comparison.first_wrong);
            assert!(comparison.elements == 35 && comparison.max_error <= comparison.bound);
        }
    }
}

#[test]
fn an_error_beyond_the_bound_is_found_in_every_type() {
    for dtype in ["f16", "bf16", "f32", "f64", "c64", "c128", "i32"] {
        let p = problem("4x4x8", dtype, "nn");
        let o = Operands::random(&p, 1).unwrap();
        let mut found = computed_plainly(&p, &o);
        let wrong = found.get(2, 3) + Complex64::new(1.0, 0.0);
        found.set(2, 3, wrong);
        let comparison = expected(&p, &o.a, &o.b, None, &Region::whole(&p)).compare(&found);
        let first = comparison.first_wrong.clone().expect("the error is found");
        assert_eq!((first.row, first.column, comparison.wrong), (2, 3, 1), "{dtype}");
        assert!(comparison.max_error > comparison.bound);
    }
}

#[test]
fn a_dropped_term_is_found_in_a_long_f32_sum() {
    let p = problem("3x3x2000", "f32", "nn");
    let mut o = Operands::random(&p, 5).unwrap();
    let right = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    let column =
        (0..2000).max_by(|i, j| o.a.get(1, *i).re.abs().total_cmp(&o.a.get(1, *j).re.abs())).unwrap();
    o.a.set(1, column, Complex64::new(0.0, 0.0));
    let comparison = right.compare(&computed_plainly(&p, &o));
    assert_eq!(comparison.first_wrong.map(|w| w.row), Some(1));
}

#[test]
fn beta_zero_never_reads_c_and_alpha_zero_never_reads_a_and_b() {
    let mut p = problem("3x3x3", "f32", "nn");
    let mut o = Operands::random(&p, 2).unwrap();
    o.c.fill(|_, _| Complex64::new(f64::NAN, 0.0));
    let whole = Region::whole(&p);
    assert!(expected(&p, &o.a, &o.b, None, &whole).value(1, 1).re.is_finite());
    p.alpha = Complex64::new(0.0, 0.0);
    o.a.fill(|_, _| Complex64::new(f64::INFINITY, 0.0));
    assert_eq!(expected(&p, &o.a, &o.b, Some(&o.c), &whole).value(2, 0).re, 0.0);
}

#[test]
fn empty_sums_scale_c_and_empty_matrices_are_empty() {
    let mut p = problem("2x2x0", "f64", "nn");
    p.beta = Complex64::new(2.0, 0.0);
    let o = Operands::random(&p, 3).unwrap();
    let e = expected(&p, &o.a, &o.b, Some(&o.c), &Region::whole(&p));
    assert_eq!(e.value(0, 1), o.c.get(0, 1) * 2.0);
    let p = problem("0x5x3", "c64", "nn");
    let o = Operands::random(&p, 3).unwrap();
    assert_eq!(expected(&p, &o.a, &o.b, None, &Region::whole(&p)).compare(&o.c).elements, 0);
}

#[test]
fn regions_are_parts_of_the_whole() {
    let p = problem("9x11x6", "c128", "tc");
    let o = Operands::random(&p, 4).unwrap();
    let whole = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    let part = expected(&p, &o.a, &o.b, None, &Region { rows: 3..5, columns: 7..11 });
    for (row, column) in [(3, 7), (4, 10), (3, 9)] {
        assert_eq!(part.value(row, column), whole.value(row, column));
    }
}

#[test]
fn infinities_and_nans_are_compared_by_class() {
    let p = problem("6x6x10", "f32", "nn");
    let mut o = Operands::random(&p, 6).unwrap();
    sprinkle(&mut o.a, 3, 8);
    sprinkle(&mut o.b, 3, 9);
    let mut found = computed_plainly(&p, &o);
    let e = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    let classes: Vec<Class> = (0..36).map(|i| class(e.value(i / 6, i % 6).re)).collect();
    assert!(classes.contains(&Class::Finite) && classes.contains(&Class::NaN));
    assert!(e.compare(&found).passed());
    let position = classes.iter().position(|c| *c != Class::Finite).unwrap();
    found.set(position / 6, position % 6, Complex64::new(0.0, 0.0));
    assert_eq!(e.compare(&found).wrong, 1);
}

#[test]
fn one_may_be_a_factor_of_an_infinite_complex_number_or_not() {
    let mut p = problem("1x1x1", "c128", "nn");
    let mut o = Operands::random(&p, 1).unwrap();
    // (x + xi) 8 = 8x + 8xi.
    o.a.set(0, 0, Complex64::new(f64::MAX, f64::MAX));
    o.b.set(0, 0, Complex64::new(8.0, 0.0));
    let judge = |p: &Problem, o: &Operands, z| {
        let mut found = o.c.clone();
        found.set(0, 0, z);
        expected(p, &o.a, &o.b, None, &Region::whole(p)).compare(&found).passed()
    };
    let (infinite, nan) = (Complex64::new(f64::INFINITY, f64::INFINITY), Complex64::new(f64::NAN, f64::NAN));
    assert!(judge(&p, &o, infinite) && judge(&p, &o, nan));
    assert!(!judge(&p, &o, -infinite) && !judge(&p, &o, Complex64::new(1.0, 1.0)));
    p.alpha = Complex64::new(2.0, 0.0);
    assert!(judge(&p, &o, nan) && !judge(&p, &o, infinite), "another factor is not left out");
}

#[test]
fn a_result_that_overflows_its_type_is_not_an_error() {
    let p = problem("1x1x1", "f16", "nn");
    let mut o = Operands::random(&p, 1).unwrap();
    o.a.set(0, 0, Complex64::new(300.0, 0.0));
    o.b.set(0, 0, Complex64::new(300.0, 0.0));
    let e = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    o.c.set(0, 0, Complex64::new(f64::INFINITY, 0.0));
    assert!(e.compare(&o.c).passed());
    o.b.set(0, 0, Complex64::new(2.0, 0.0));
    assert!(!expected(&p, &o.a, &o.b, None, &Region::whole(&p)).compare(&o.c).passed());
}

#[test]
fn integers_wrap() {
    let p = problem("1x1x2", "i32", "nn");
    let mut o = Operands::random(&p, 1).unwrap();
    let large = Complex64::new(f64::from(i32::MAX), 0.0);
    o.a.fill(|_, _| large);
    o.b.fill(|_, _| large);
    let e = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    let wrapped = i32::MAX.wrapping_mul(i32::MAX).wrapping_mul(2);
    assert_eq!(e.value(0, 0).re, f64::from(wrapped));
    assert_eq!(p.dtype(), DType::I32);
}

/// The product by three real ones, each rounded after every operation.
fn computed_by_three(p: &Problem, o: &Operands) -> Matrix {
    let mut result = o.c.clone();
    for row in 0..p.shape.m as usize {
        for column in 0..p.shape.n as usize {
            let (mut real, mut imaginary, mut both) = (0.0, 0.0, 0.0);
            for k in 0..p.shape.k as usize {
                let x = op_element(&o.a, p.layout.a, row, k);
                let y = op_element(&o.b, p.layout.b, k, column);
                real += x.re * y.re;
                imaginary += x.im * y.im;
                both += (x.re + x.im) * (y.re + y.im);
            }
            result.set(row, column, p.alpha * Complex64::new(real - imaginary, both - real - imaginary));
        }
    }
    result
}

#[test]
fn three_real_products_have_a_bound_of_their_own() {
    let (four, three) = (Multiplications::Four, Multiplications::Three);
    for k in [1, 3, 50, 2000] {
        let mut p = problem(&format!("7x6x{k}"), "c128", "cn");
        p.alpha = Complex64::new(0.5, 2.0);
        let mut o = Operands::random(&p, 8).unwrap();
        // Imaginary parts that are small beside the real ones lose most of their digits.
        for matrix in [&mut o.a, &mut o.b] {
            let old = matrix.clone();
            matrix.fill(|row, column| {
                let z = old.get(row, column);
                Complex64::new(z.re / 3.0, z.im * 1e-9)
            });
        }
        let right = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
        let mut found = computed_by_three(&p, &o);
        let comparison = right.compare_by(three, &found);
        assert!(comparison.passed() && comparison.max_error > 0.0, "{:?}", comparison.first_wrong);
        // What is off by less than twice the bound is found, in either part of a number.
        let judged = |found: &Matrix, by| right.compare_by(by, found);
        let tight = judged(&found, three).bound / judged(&found, four).bound;
        assert!((1.4..1.6).contains(&tight), "{tight}");
        for (row, off) in [Complex64::new(1.0, 0.0), Complex64::new(0.0, -1.0)].into_iter().enumerate() {
            let region = Region { rows: row..row + 1, columns: 2..3 };
            let one = expected(&p, &o.a, &o.b, None, &region);
            let bound = one.compare_by(three, &found).bound;
            let was = found.get(row, 2);
            found.set(row, 2, one.value(row, 2) + off * bound * 0.9);
            assert!(one.compare_by(three, &found).passed() && !one.compare_by(four, &found).passed());
            found.set(row, 2, one.value(row, 2) + off * bound * 1.1);
            assert!(!one.compare_by(three, &found).passed(), "{k}: {off}");
            found.set(row, 2, was);
        }
    }
    // Real numbers have one product each, whatever is said of complex ones.
    let p = problem("3x3x40", "f64", "nn");
    let o = Operands::random(&p, 2).unwrap();
    let right = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    assert_eq!(right.compare_by(three, &o.c), right.compare_by(four, &o.c));
}

/// C = A B in f32, every product made of so many of tf32 parts, by an `instruction` that adds eight of them to a sum: `chain` of
/// these one after another, what the leading parts give apart from the others, and what comes of these added up in f32.
fn computed_by_parts(
    p: &Problem,
    o: &Operands,
    (products, chain): (usize, usize),
    instruction: fn(f32, &[(f32, f32)]) -> f32,
) -> Matrix {
    let split = |x: f32| {
        let leading = f32::from_bits((x.to_bits() + 0x1000) & 0xffff_e000);
        [leading, f32::from_bits((1024.0 * (x - leading)).to_bits() & 0xffff_e000)]
    };
    let mut result = o.c.clone();
    for row in 0..p.shape.m as usize {
        for column in 0..p.shape.n as usize {
            let mut total = 0f32;
            let terms: Vec<usize> = (0..p.shape.k as usize).collect();
            for piece in terms.chunks(8 * chain) {
                let [mut sum, mut rest] = [0f32; 2];
                for eight in piece.chunks(8) {
                    let factors: Vec<_> = eight
                        .iter()
                        .map(|k| (split(o.a.get(row, *k).re as f32), split(o.b.get(*k, column).re as f32)))
                        .collect();
                    let of = |x: usize, y: usize| -> Vec<(f32, f32)> {
                        factors.iter().map(|(a, b)| (a[x], b[y])).collect()
                    };
                    for (x, y) in [(1, 0), (0, 1)].into_iter().take(products - 1) {
                        rest = instruction(rest, &of(x, y));
                    }
                    sum = instruction(sum, &of(0, 0));
                }
                total += rest / 1024.0 + sum;
            }
            result.set(row, column, Complex64::new(f64::from(total), 0.0));
        }
    }
    result
}

/// Terms added up one after the other, each sum rounded to nearest.
fn to_nearest(start: f32, terms: &[(f32, f32)]) -> f32 {
    terms.iter().fold(start, |sum, (x, y)| sum + x * y)
}

/// Terms added up as matrix units of an H200 do it: cut off, towards zero, two bits behind the last place of the largest, and the sum
/// behind its own (`bench/limits/tf32.cu`).
fn cut_off(start: f32, terms: &[(f32, f32)]) -> f32 {
    let exact: Vec<f64> =
        terms.iter().map(|(x, y)| f64::from(*x) * f64::from(*y)).chain([f64::from(start)]).collect();
    let largest = exact.iter().fold(0f64, |m, x| m.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let place = 2f64.powi(largest.log2().floor() as i32 - 25);
    let sum: f64 = exact.iter().map(|x| (x / place).trunc() * place).sum();
    let rounded = sum as f32;
    if f64::from(rounded).abs() > sum.abs() { f32::from_bits(rounded.to_bits() - 1) } else { rounded }
}

#[test]
fn products_of_three_parts_have_a_bound_that_those_of_fewer_do_not_keep() {
    for instruction in [to_nearest, cut_off] {
        for k in [1, 2, 5, 17, 40, 100, 300] {
            let p = problem(&format!("9x8x{k}"), "f32", "nn");
            let o = Operands::random(&p, 5).unwrap();
            let right = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
            let judged = |products| {
                let found = computed_by_parts(&p, &o, (products, 16), instruction);
                right.compare_by(Multiplications::SPLIT, &found)
            };
            let comparison = judged(3);
            assert!(comparison.passed() && comparison.max_error > 0.0, "{k}: {:?}", comparison.first_wrong);
            assert!(!judged(2).passed() && !judged(1).passed(), "{k}");
        }
    }
}

#[test]
fn whole_numbers_of_few_digits_are_multiplied_exactly_by_their_parts() {
    let p = problem("9x8x60", "f32", "nn");
    let mut o = Operands::random(&p, 5).unwrap();
    for matrix in [&mut o.a, &mut o.b] {
        let old = matrix.clone();
        matrix.fill(|row, column| Complex64::new((old.get(row, column).re * 60.0).round(), 0.0));
    }
    let right = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    let found = computed_by_parts(&p, &o, (3, 16), cut_off);
    assert_eq!(right.compare_by(Multiplications::SPLIT, &found).max_error, 0.0);
}

#[test]
fn sums_of_split_numbers_that_are_not_short_have_a_smaller_bound_than_plain_ones() {
    for (dtype, layout, shortest, except) in [("f32", "tn", 38, 41), ("c64", "cn", 21, 20)] {
        let precision = problem("1x1x1", dtype, layout).precision;
        let larger = |k: i64| is_larger(precision, k, Multiplications::SPLIT);
        assert!((1..shortest).all(larger), "{dtype}");
        for k in (shortest..2000).chain([1_000_000, 1 << 40]) {
            assert_eq!(larger(k), k == except, "{dtype}: {k}");
        }
    }
    let c128 = problem("1x1x1", "c128", "nn").precision;
    assert!([1, 100, 1 << 30].iter().all(|k| is_larger(c128, *k, Multiplications::Three)));
}

#[test]
fn sums_of_split_numbers_that_threads_add_up_piece_by_piece_have_a_smaller_bound() {
    for (dtype, shortest) in [("f32", 16), ("c64", 11)] {
        let precision = problem("1x1x1", dtype, "nn").precision;
        let larger = |k: i64, chain: u8| is_larger(precision, k, Multiplications::Split { chain });
        assert!((1..shortest).all(|k| larger(k, 1)), "{dtype}");
        assert!((shortest..=128).all(|k| !larger(k, 1)), "{dtype}");
        // Longer pieces have one between.
        assert!(!larger(24, 2) && (dtype == "c64" || larger(24, 3)), "{dtype}");
    }
    // A large product, and many that are cut off where they meet it.
    let p = problem("1x1x64", "f32", "nn");
    let mut o = Operands::random(&p, 3).unwrap();
    o.a.fill(|_, k| Complex64::new(if k == 0 { 1.0 } else { 2f64.powi(-12) }, 0.0));
    o.b.fill(|k, _| Complex64::new(if k == 0 { 1.0 } else { 2f64.powi(-13) * (1.0 - 2f64.powi(-9)) }, 0.0));
    let right = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    let passes = |added: usize, judged: u8| {
        let found = computed_by_parts(&p, &o, (3, added), cut_off);
        right.compare_by(Multiplications::Split { chain: judged }, &found).passed()
    };
    assert!(passes(1, 1) && passes(8, 16) && !passes(8, 1));
}

#[test]
fn sums_that_matrix_units_add_up_themselves_shrink() {
    // Of positive terms, whose sum is as large as their magnitudes are together.
    let p = problem("1x1x20000", "f32", "nn");
    let mut o = Operands::random(&p, 3).unwrap();
    for matrix in [&mut o.a, &mut o.b] {
        let old = matrix.clone();
        matrix.fill(|row, column| Complex64::new(old.get(row, column).re.abs(), 0.0));
    }
    let right = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    let off = |found: f32| (f64::from(found) / right.value(0, 0).re - 1.0).abs();
    let by_parts = off(computed_by_parts(&p, &o, (3, 16), cut_off).get(0, 0).re as f32);
    let terms: Vec<(f32, f32)> =
        (0..20000).map(|k| (o.a.get(0, k).re as f32, o.b.get(k, 0).re as f32)).collect();
    let alone = off(terms.chunks(8).fold(0f32, cut_off));
    let plain = off(terms.iter().fold(0f32, |sum, (x, y)| x.mul_add(*y, sum)));
    assert!(alone > 20.0 * by_parts && by_parts < plain.max(1e-6), "{alone:e} {by_parts:e} {plain:e}");
}

#[test]
fn an_infinity_may_leave_no_number_where_three_products_share_it() {
    let p = problem("1x1x1", "c128", "nn");
    let mut o = Operands::random(&p, 1).unwrap();
    o.a.set(0, 0, Complex64::new(f64::INFINITY, 1.0));
    o.b.set(0, 0, Complex64::new(1.0, 1.0));
    let right = expected(&p, &o.a, &o.b, None, &Region::whole(&p));
    let mut judge = |re: f64, im: f64, by| {
        o.c.set(0, 0, Complex64::new(re, im));
        right.compare_by(by, &o.c).passed()
    };
    let (infinite, nan) = (f64::INFINITY, f64::NAN);
    for by in [Multiplications::Four, Multiplications::Three] {
        assert!(judge(infinite, infinite, by) && judge(nan, nan, by), "{by:?}");
        assert!(!judge(1.0, infinite, by) && !judge(-infinite, nan, by), "{by:?}");
    }
    assert!(judge(infinite, nan, Multiplications::Three) && !judge(infinite, nan, Multiplications::Four));
    // What is left of an infinite number that is split is infinite.
    assert!(!judge(nan, infinite, Multiplications::SPLIT) && !judge(1.0, nan, Multiplications::SPLIT));
}
