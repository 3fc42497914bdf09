//! The product of two packed matrices: blocked for the cache, on all cores.

use std::ops::Range;

use num_complex::Complex64;

/// The arithmetic of a reference: what elements become, and how they multiply and add.
pub trait Arithmetic: Copy + Send + Sync {
    /// The neutral element of addition.
    const ZERO: Self;
    /// The element in this arithmetic.
    fn from_complex(value: Complex64) -> Self;
    /// The element as a number.
    fn to_complex(self) -> Complex64;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
}

impl Arithmetic for f64 {
    const ZERO: f64 = 0.0;
    fn from_complex(value: Complex64) -> f64 {
        value.re
    }
    fn to_complex(self) -> Complex64 {
        Complex64::new(self, 0.0)
    }
    fn times(self, other: f64) -> f64 {
        self * other
    }
    fn plus(self, other: f64) -> f64 {
        self + other
    }
}

impl Arithmetic for Complex64 {
    const ZERO: Complex64 = Complex64::new(0.0, 0.0);
    fn from_complex(value: Complex64) -> Complex64 {
        value
    }
    fn to_complex(self) -> Complex64 {
        self
    }
    fn times(self, other: Complex64) -> Complex64 {
        self * other
    }
    fn plus(self, other: Complex64) -> Complex64 {
        self + other
    }
}

/// Integers that wrap at 32 bits. They wrap at 64 bits on the way, which comes to the same.
impl Arithmetic for i64 {
    const ZERO: i64 = 0;
    fn from_complex(value: Complex64) -> i64 {
        value.re as i64
    }
    fn to_complex(self) -> Complex64 {
        Complex64::new(f64::from(self as i32), 0.0)
    }
    fn times(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
}

/// Rows of the right operand that stay in the cache while they are used.
const K_BLOCK: usize = 64;
/// Columns of the right operand that stay in the cache while they are used.
const N_BLOCK: usize = 512;

/// `left` (m x k) times `right` (k x n), both dense and row-major.
pub fn multiply<T: Arithmetic>(left: &[T], right: &[T], m: usize, n: usize, k: usize) -> Vec<T> {
    let mut result = vec![T::ZERO; m * n];
    if result.is_empty() || k == 0 {
        return result;
    }
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    if m < FEW_ROWS && k > K_SLICE {
        return long_sum(left, right, [m, n, k], workers);
    }
    // A thread is not worth starting for less than about a tenth of a millisecond of work.
    let useful = (m as f64 * n as f64 * k as f64 / 1e5) as usize + 1;
    let rows = m.div_ceil(workers.min(useful));
    std::thread::scope(|scope| {
        for (chunk, part) in result.chunks_mut(rows * n).enumerate() {
            let first = chunk * rows;
            let left = &left[first * k..(first + part.len() / n) * k];
            if rows == m {
                multiply_rows(left, right, part, n, k, 0..k);
            } else {
                scope.spawn(move || multiply_rows(left, right, part, n, k, 0..k));
            }
        }
    });
    result
}

/// Fewer rows than this leave threads without work.
const FEW_ROWS: usize = 256;
/// Terms that are added up together where a sum is long and rows are few: the same on every machine, so that the sums are.
const K_SLICE: usize = 1 << 16;

/// The same for few rows: threads share out the terms, and what the slices give is added in order.
fn long_sum<T: Arithmetic>(left: &[T], right: &[T], [m, n, k]: [usize; 3], workers: usize) -> Vec<T> {
    let slices = k.div_ceil(K_SLICE);
    let one = |slice: usize| {
        let mut part = vec![T::ZERO; m * n];
        multiply_rows(left, right, &mut part, n, k, slice * K_SLICE..((slice + 1) * K_SLICE).min(k));
        part
    };
    let each = slices.div_ceil(workers);
    std::thread::scope(|scope| {
        let of_worker = |first: usize| {
            scope.spawn(move || (first..(first + each).min(slices)).map(one).collect::<Vec<_>>())
        };
        let threads: Vec<_> = (0..slices).step_by(each).map(of_worker).collect();
        let mut total = vec![T::ZERO; m * n];
        for part in threads.into_iter().flat_map(|t| t.join().expect("arithmetic does not panic")) {
            total.iter_mut().zip(part).for_each(|(sum, part)| *sum = sum.plus(part));
        }
        total
    })
}

/// Adds the products of some of the `k` terms to rows of the result.
fn multiply_rows<T: Arithmetic>(
    left: &[T],
    right: &[T],
    result: &mut [T],
    n: usize,
    k: usize,
    terms: Range<usize>,
) {
    for n_start in (0..n).step_by(N_BLOCK) {
        let n_end = (n_start + N_BLOCK).min(n);
        for k_start in terms.clone().step_by(K_BLOCK) {
            let k_end = (k_start + K_BLOCK).min(terms.end);
            for (row, sums) in result.chunks_exact_mut(n).enumerate() {
                let sums = &mut sums[n_start..n_end];
                for term in k_start..k_end {
                    let factor = left[row * k + term];
                    for (sum, other) in sums.iter_mut().zip(&right[term * n + n_start..term * n + n_end]) {
                        *sum = sum.plus(factor.times(*other));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{K_SLICE, multiply};

    #[test]
    fn long_sums_are_those_of_their_slices() {
        let (m, n, k) = (2, 3, 2 * K_SLICE + 5);
        let left: Vec<i64> = (0..m * k).map(|e| (e % 7) as i64 - 3).collect();
        let right: Vec<i64> = (0..k * n).map(|e| (e % 11) as i64 - 5).collect();
        let sum = |i: usize, j: usize| (0..k).map(|t| left[i * k + t] * right[t * n + j]).sum::<i64>();
        let expected: Vec<i64> = (0..m * n).map(|e| sum(e / n, e % n)).collect();
        assert_eq!(multiply(&left, &right, m, n, k), expected);
    }
}
