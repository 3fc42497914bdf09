//! What a product must be: a reference in f64, and how far a correct kernel may be from it.
//!
//! [`expected`] computes a region of `alpha op(A) op(B) + beta C` with the rules of BLAS: beta = 0 never reads
//! C, alpha = 0 never reads A and B, and infinities and NaNs travel as plain arithmetic carries them. Real
//! elements are computed in f64, complex ones in pairs of f64, and i32 in wrapping integers, which is exact.
//!
//! [`Expected::compare`] then judges a computed matrix. Finite elements are held to a bound derived from K
//! and the data (see [`bound`]); elements that are not finite are held to their class: +Inf, -Inf or NaN. Where alpha is
//! 1 and C is not read, a complex sum may be multiplied by it or not: plain arithmetic makes a NaN of an infinity times
//! 1 + 0i, and a kernel that does without the factor does not. Both are right.

pub mod bound;
mod product;

use std::ops::Range;

use num_complex::Complex64;
use warpwright_core::dtype::DType;

use crate::matrix::Matrix;
use crate::parallel;
use crate::problem::{Multiplications, Op, Precision, Problem};
use bound::Rounding;

/// A part of C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Rows of C.
    pub rows: Range<usize>,
    /// Columns of C.
    pub columns: Range<usize>,
}

impl Region {
    /// All of C.
    pub fn whole(problem: &Problem) -> Region {
        Region { rows: 0..problem.shape.m as usize, columns: 0..problem.shape.n as usize }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

/// A region of C as it should be, with the error that each element is allowed.
#[derive(Clone, Debug)]
pub struct Expected {
    region: Region,
    dtype: DType,
    values: Vec<Complex64>,
    /// What else each element may be where it is not finite; nothing where it may not.
    unscaled: Option<Vec<Complex64>>,
    /// For each element, the sum of the magnitudes of everything that is added up in it.
    magnitudes: Vec<f64>,
    precision: Precision,
    terms: u64,
}

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The error of the element that comes closest to its bound, or passes it furthest.
    pub max_error: f64,
    /// The bound of that element.
    pub bound: f64,
    /// The first element outside its bound or of the wrong class.
    pub first_wrong: Option<Wrong>,
    /// How many elements are outside their bound or of the wrong class.
    pub wrong: usize,
    /// How many elements were compared.
    pub elements: usize,
}

/// An element that is not what it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// Row of C.
    pub row: usize,
    /// Column of C.
    pub column: usize,
    /// What it should be, but for rounding.
    pub expected: Complex64,
    /// What it is.
    pub found: Complex64,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = |z: Complex64| if z.im == 0.0 { z.re.to_string() } else { z.to_string() };
        let (row, column) = (self.row, self.column);
        write!(f, "C[{row}, {column}] is {} where {} is right", number(self.found), number(self.expected))
    }
}

impl Comparison {
    /// Whether every element is right.
    pub fn passed(&self) -> bool {
        self.wrong == 0
    }

    /// The comparison of no elements.
    pub fn empty() -> Comparison {
        Comparison { max_error: 0.0, bound: 0.0, first_wrong: None, wrong: 0, elements: 0 }
    }

    /// This comparison and another one together.
    #[must_use]
    pub fn and(mut self, other: Comparison) -> Comparison {
        if worse(other.max_error, other.bound, self.max_error, self.bound) {
            (self.max_error, self.bound) = (other.max_error, other.bound);
        }
        self.first_wrong = self.first_wrong.or(other.first_wrong);
        self.wrong += other.wrong;
        self.elements += other.elements;
        self
    }
}

/// Elements that one thread judges at a time.
const BAND: usize = 1 << 15;

/// Whether the first error uses up more of its bound than the second.
fn worse(error: f64, bound: f64, than_error: f64, than_bound: f64) -> bool {
    let used = |error: f64, bound: f64| if error == 0.0 { 0.0 } else { error / bound };
    used(error, bound) > used(than_error, than_bound) || (error == than_error && bound > than_bound)
}

/// Computes a region of the product. `c` is the old C, and may be absent where beta is 0.
///
/// # Panics
///
/// Where the matrices do not have the extents of the problem, or `c` is absent although beta is not 0.
pub fn expected(problem: &Problem, a: &Matrix, b: &Matrix, c: Option<&Matrix>, region: &Region) -> Expected {
    let extents = |m: &Matrix| (m.rows() as i64, m.columns() as i64);
    assert_eq!(extents(a), problem.stored_a(), "extents of A");
    assert_eq!(extents(b), problem.stored_b(), "extents of B");
    let zero = Complex64::new(0.0, 0.0);
    let old = if problem.beta == zero {
        None
    } else {
        let c = c.expect("C is read where beta is not 0");
        assert_eq!(extents(c), problem.stored_c(), "extents of C");
        Some(c)
    };
    let k = if problem.alpha == zero { 0 } else { problem.shape.k as usize };
    let left = Operand { matrix: a, op: problem.layout.a };
    let right = Operand { matrix: b, op: problem.layout.b };
    let mut unscaled = None;
    let values = match problem.dtype() {
        DType::C64 | DType::C128 => {
            let sums = product::<Complex64>(&left, &right, k, region);
            let may_be_unscaled = old.is_none() && problem.alpha == Complex64::new(1.0, 0.0);
            unscaled = may_be_unscaled.then(|| sums.clone());
            combine(problem, old, region, sums)
        }
        DType::I32 => combine(problem, old, region, product::<i64>(&left, &right, k, region)),
        DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => {
            combine(problem, old, region, product::<f64>(&left, &right, k, region))
        }
    };
    Expected {
        region: region.clone(),
        dtype: problem.result_dtype(),
        values,
        unscaled,
        magnitudes: magnitudes(problem, &left, &right, old, k, region),
        precision: problem.precision,
        terms: k as u64,
    }
}

impl Expected {
    /// The same region of a product with beta = 0 whose sums have `times` as many terms, the same ones again and again.
    #[must_use]
    pub fn repeated(&self, times: i64, problem: &Problem) -> Expected {
        let times = times as f64;
        Expected {
            values: self.values.iter().map(|v| v * times).collect(),
            magnitudes: self.magnitudes.iter().map(|m| m * times).collect(),
            terms: problem.shape.k as u64,
            ..self.clone()
        }
    }

    /// The region that was computed.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// An element, by its place in C.
    pub fn value(&self, row: usize, column: usize) -> Complex64 {
        self.values[self.index(row, column)]
    }

    /// Judges the same region of a C that was computed by four real products for each complex one.
    pub fn compare(&self, found: &Matrix) -> Comparison {
        self.compare_by(Multiplications::Four, found)
    }

    /// Judges the same region of a C that was computed by such products, bands of rows on all
    /// cores.
    pub fn compare_by(&self, multiplications: Multiplications, found: &Matrix) -> Comparison {
        let judge = Judge {
            expected: self,
            three: multiplications == Multiplications::Three && self.dtype.is_complex(),
            rounding: Rounding::of(self.precision, self.terms, multiplications),
        };
        let rows = self.region.rows.clone();
        let band = (BAND / self.region.columns.len().max(1)).max(1);
        let bands: Vec<_> =
            rows.clone().step_by(band).map(|first| first..(first + band).min(rows.end)).collect();
        let judged = parallel::map(&bands, |rows| judge.rows(rows.clone(), found));
        judged.into_iter().fold(Comparison::empty(), Comparison::and)
    }

    fn index(&self, row: usize, column: usize) -> usize {
        (row - self.region.rows.start) * self.region.columns.len() + (column - self.region.columns.start)
    }
}

/// The judgement of a computed region.
struct Judge<'a> {
    expected: &'a Expected,
    /// Whether complex products were made of three real ones.
    three: bool,
    rounding: Rounding,
}

impl Judge<'_> {
    fn rows(&self, rows: Range<usize>, found: &Matrix) -> Comparison {
        let mut comparison = Comparison::empty();
        for row in rows {
            for column in self.expected.region.columns.clone() {
                let found = found.get(row, column);
                let (right, error, bound) = self.element(self.expected.index(row, column), found);
                if worse(error, bound, comparison.max_error, comparison.bound) {
                    (comparison.max_error, comparison.bound) = (error, bound);
                }
                if !right {
                    comparison.wrong += 1;
                    comparison.first_wrong.get_or_insert_with(|| Wrong {
                        row,
                        column,
                        expected: self.expected.value(row, column),
                        found,
                    });
                }
                comparison.elements += 1;
            }
        }
        comparison
    }

    /// Whether an element is right, its error, and its bound.
    fn element(&self, index: usize, found: Complex64) -> (bool, f64, f64) {
        let expected = self.expected.values[index];
        let magnitude = self.expected.magnitudes[index];
        if !magnitude.is_finite() {
            // An infinity or a NaN took part: only the class of the result is determined.
            let of_a_part =
                |right: f64, found: f64| class(right) == class(found) || self.three && found.is_nan();
            let is_like = |right: &Complex64| of_a_part(right.re, found.re) && of_a_part(right.im, found.im);
            let unscaled = self.expected.unscaled.as_ref().map(|values| &values[index]);
            return (is_like(&expected) || unscaled.is_some_and(is_like), 0.0, 0.0);
        }
        let bound = self.rounding.bound(magnitude, expected.norm());
        if !found.re.is_finite() || !found.im.is_finite() {
            // A partial sum may leave the range of the type although the data is finite.
            let summed = if self.three { 2.0 * magnitude } else { magnitude };
            return (summed + bound >= bound::largest(self.expected.dtype), 0.0, bound);
        }
        let error = (found - expected).norm();
        (error <= bound, error, bound)
    }
}

/// The class of a number, for results that have no meaningful distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An ordinary number.
    Finite,
    /// Positive infinity.
    PlusInfinity,
    /// Negative infinity.
    MinusInfinity,
    /// Not a number.
    NaN,
}

/// The class of a number.
pub fn class(value: f64) -> Class {
    if value.is_nan() {
        Class::NaN
    } else if value == f64::INFINITY {
        Class::PlusInfinity
    } else if value == f64::NEG_INFINITY {
        Class::MinusInfinity
    } else {
        Class::Finite
    }
}

/// A matrix with the operation that is applied before it is multiplied.
struct Operand<'a> {
    matrix: &'a Matrix,
    op: Op,
}

impl Operand<'_> {
    /// An element of op(X).
    fn get(&self, row: usize, column: usize) -> Complex64 {
        match self.op {
            Op::None => self.matrix.get(row, column),
            Op::Transpose => self.matrix.get(column, row),
            Op::ConjugateTranspose => self.matrix.get(column, row).conj(),
        }
    }
}

/// op(A) op(B) on a region, in the given arithmetic.
fn product<T: product::Arithmetic>(a: &Operand, b: &Operand, k: usize, region: &Region) -> Vec<T> {
    let left = pack(region.rows.clone(), 0..k, |i, j| T::from_complex(a.get(i, j)));
    let right = pack(0..k, region.columns.clone(), |i, j| T::from_complex(b.get(i, j)));
    product::multiply(&left, &right, region.rows.len(), region.columns.len(), k)
}

/// A dense row-major copy of a part of a matrix, made by all cores where it is large.
fn pack<T: product::Arithmetic>(
    rows: Range<usize>,
    columns: Range<usize>,
    get: impl Fn(usize, usize) -> T + Sync,
) -> Vec<T> {
    let width = columns.len();
    let mut packed = vec![T::ZERO; rows.len() * width];
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let each = packed.len().div_ceil(workers).max(PACKED_AT_ONCE);
    let fill = |first: usize, part: &mut [T]| {
        for (e, element) in part.iter_mut().enumerate() {
            let at = first + e;
            *element = get(rows.start + at / width, columns.start + at % width);
        }
    };
    std::thread::scope(|scope| {
        for (number, part) in packed.chunks_mut(each).enumerate() {
            let fill = &fill;
            if part.len() < PACKED_AT_ONCE || number == 0 && each >= rows.len() * width {
                fill(number * each, part);
            } else {
                scope.spawn(move || fill(number * each, part));
            }
        }
    });
    packed
}

/// Elements that are not worth a thread of their own.
const PACKED_AT_ONCE: usize = 1 << 16;

/// alpha times the product, plus beta times the old C.
fn combine<T: product::Arithmetic>(
    problem: &Problem,
    old: Option<&Matrix>,
    region: &Region,
    product: Vec<T>,
) -> Vec<Complex64> {
    let (alpha, beta) = (T::from_complex(problem.alpha), T::from_complex(problem.beta));
    let old =
        old.map(|c| pack(region.rows.clone(), region.columns.clone(), |i, j| T::from_complex(c.get(i, j))));
    let zero = T::from_complex(Complex64::new(0.0, 0.0));
    product
        .iter()
        .enumerate()
        .map(|(e, sum)| {
            // Without a product there is nothing for alpha to scale: not even an infinite alpha makes a NaN.
            let scaled = if problem.alpha == Complex64::new(0.0, 0.0) { zero } else { T::times(alpha, *sum) };
            let total = match &old {
                Some(c) => T::plus(scaled, T::times(beta, c[e])),
                None => scaled,
            };
            total.to_complex()
        })
        .collect()
}

/// |alpha| |op(A)| |op(B)| + |beta| |C| on a region.
fn magnitudes(
    problem: &Problem,
    a: &Operand,
    b: &Operand,
    old: Option<&Matrix>,
    k: usize,
    region: &Region,
) -> Vec<f64> {
    let left = pack(region.rows.clone(), 0..k, |i, j| a.get(i, j).norm());
    let right = pack(0..k, region.columns.clone(), |i, j| b.get(i, j).norm());
    let mut sums = product::multiply(&left, &right, region.rows.len(), region.columns.len(), k);
    let (alpha, beta) = (problem.alpha.norm(), problem.beta.norm());
    for sum in &mut sums {
        *sum = if alpha == 0.0 { 0.0 } else { *sum * alpha };
    }
    if let Some(c) = old {
        let old = pack(region.rows.clone(), region.columns.clone(), |i, j| c.get(i, j).norm());
        for (sum, magnitude) in sums.iter_mut().zip(old) {
            *sum += beta * magnitude;
        }
    }
    sums
}

#[cfg(test)]
mod tests;
