//! Comparing a computed product with the reference: all of it where that is cheap, else a sample.

use fastrand::Rng;
use num_complex::Complex64;

use crate::inputs::Operands;
use crate::matrix::Matrix;
use crate::problem::{Multiplications, Problem};
use crate::reference::{Class, Comparison, Region, class, expected};

/// Multiply-adds that the reference may cost: about a second on two cores.
const BUDGET: f64 = 3e9;

/// Side of the squares of C in each of which a sample has one element at least, as long as there are not too many.
const SQUARE: usize = 64;

/// The most single elements in a sample.
const MOST_ELEMENTS: usize = 2048;

/// Compares a computed C with the reference. The product is sampled where the whole would take long: the corners,
/// and elements drawn from all over the matrix. In any case every element is looked at for being finite, where the
/// operands are, since an element that was never written is not.
///
/// `by` says of how many real products complex ones were made.
pub fn compare(problem: &Problem, operands: &Operands, found: &Matrix, by: Multiplications) -> Comparison {
    let whole = Region::whole(problem);
    let one = |region: &Region| {
        expected(problem, &operands.a, &operands.b, Some(&operands.c), region).compare_by(by, found)
    };
    if 2.0 * problem.multiply_adds() <= BUDGET {
        return one(&whole);
    }
    let sampled = sample(problem, 1).iter().fold(Comparison::empty(), |sum, region| sum.and(one(region)));
    sampled.and(not_finite(problem, operands, found, by))
}

/// The regions of a sample: four corners, and single elements spread over the matrix.
fn sample(problem: &Problem, seed: u64) -> Vec<Region> {
    let (m, n) = (problem.shape.m as usize, problem.shape.n as usize);
    let mut regions = Vec::new();
    let ends = |extent: usize| {
        let width = extent.min(16);
        [0..width, extent - width..extent]
    };
    for rows in ends(m) {
        for columns in ends(n) {
            regions.push(Region { rows: rows.clone(), columns });
        }
    }
    let mut rng = Rng::with_seed(seed);
    let (squares_down, squares_across) = (m.div_ceil(SQUARE), n.div_ceil(SQUARE));
    let squares = squares_down * squares_across;
    let step = squares.div_ceil(MOST_ELEMENTS).max(1);
    for square in (0..squares).step_by(step) {
        let draw = |rng: &mut Rng, at: usize, extent: usize| {
            let start = at * SQUARE;
            rng.usize(start..(start + SQUARE).min(extent))
        };
        let row = draw(&mut rng, square / squares_across, m);
        let column = draw(&mut rng, square % squares_across, n);
        regions.push(Region { rows: row..row + 1, columns: column..column + 1 });
    }
    regions
}

/// The elements that are not finite, where finite operands leave no reason for it.
fn not_finite(problem: &Problem, operands: &Operands, found: &Matrix, by: Multiplications) -> Comparison {
    let mut comparison = Comparison::empty();
    let is_finite = |z: Complex64| class(z.re) == Class::Finite && class(z.im) == Class::Finite;
    let all_finite = |m: &Matrix| (0..m.rows()).all(|i| (0..m.columns()).all(|j| is_finite(m.get(i, j))));
    let c_is_read = problem.beta != Complex64::new(0.0, 0.0);
    if !all_finite(&operands.a) || !all_finite(&operands.b) || (c_is_read && !all_finite(&operands.c)) {
        return comparison;
    }
    for row in 0..found.rows() {
        for column in 0..found.columns() {
            if !is_finite(found.get(row, column)) {
                // Whether it is right after all, by overflow, is for the reference to say.
                let region = Region { rows: row..row + 1, columns: column..column + 1 };
                let old = Some(&operands.c);
                let right = expected(problem, &operands.a, &operands.b, old, &region);
                comparison = comparison.and(right.compare_by(by, found));
                if comparison.wrong >= MOST_WRONG {
                    return comparison;
                }
            }
        }
    }
    comparison
}

/// After so many wrong elements there is no point in looking for more.
const MOST_WRONG: usize = 100;

#[cfg(test)]
mod tests {
    use super::{compare, sample};
    use crate::inputs::Operands;
    use crate::matrix::Matrix;
    use crate::problem::{Multiplications, Problem};
    use num_complex::Complex64;

    fn problem(shape: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), "f32".parse().unwrap(), "nn".parse().unwrap())
    }

    #[test]
    fn a_sample_reaches_every_corner_and_every_part() {
        let regions = sample(&problem("1000x130x1"), 1);
        for (row, column) in [(0, 0), (0, 129), (999, 0), (999, 129)] {
            assert!(regions.iter().any(|r| r.rows.contains(&row) && r.columns.contains(&column)));
        }
        for (down, across) in [(0, 0), (7, 1), (15, 2)] {
            assert!(regions[4..].iter().any(|r| r.rows.start / 64 == down && r.columns.start / 64 == across));
        }
        assert!(regions.iter().all(|r| r.rows.end <= 1000 && r.columns.end <= 130));
    }

    #[test]
    fn an_element_that_was_never_written_is_found_anywhere() {
        // 2 x 1024 x 1024 x 1500 multiply-adds are past the budget, so the product is sampled.
        let p = problem("1024x1024x1500");
        let mut o = Operands::random(&p, 1).unwrap();
        o.b.fill(|_, _| Complex64::new(0.0, 0.0));
        let mut c = Matrix::zeros(p.dtype(), 1024, 1024, 1024).unwrap();
        assert!(compare(&p, &o, &c, Multiplications::Four).passed());
        c.set(777, 333, Complex64::new(f64::NAN, 0.0));
        let comparison = compare(&p, &o, &c, Multiplications::Four);
        assert_eq!(comparison.first_wrong.map(|w| (w.row, w.column)), Some((777, 333)));
    }
}
