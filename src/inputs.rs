//! Operands to compute with: random by seed, and with infinities and NaNs sprinkled in.

use fastrand::Rng;
use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

use crate::matrix::Matrix;
use crate::problem::Problem;

/// The three matrices of a product; `c` holds the old C.
#[derive(Clone, Debug)]
pub struct Operands {
    /// The left operand, as stored.
    pub a: Matrix,
    /// The right operand, as stored.
    pub b: Matrix,
    /// The old C.
    pub c: Matrix,
}

impl Operands {
    /// Random operands: the same seed gives the same numbers.
    pub fn random(problem: &Problem, seed: u64) -> Result<Operands, Diagnosis> {
        let matrix = |dtype: DType, (rows, columns): (i64, i64), stride: i64, salt: u64| {
            random(dtype, rows as usize, columns as usize, stride as usize, seed ^ salt)
        };
        let (operand, result) = (problem.dtype(), problem.result_dtype());
        let a = matrix(operand, problem.stored_a(), problem.ld.a, 0)?;
        let b = if problem.same {
            a.clone()
        } else {
            matrix(operand, problem.stored_b(), problem.ld.b, 0x9e37_79b9_7f4a_7c15)?
        };
        Ok(Operands { a, b, c: matrix(result, problem.stored_c(), problem.ld.c, 0xbf58_476d_1ce4_e5b9)? })
    }
}

/// A random matrix: uniform between -1 and 1, and for integers whole numbers from -9 to 9.
pub fn random(
    dtype: DType,
    rows: usize,
    columns: usize,
    stride: usize,
    seed: u64,
) -> Result<Matrix, Diagnosis> {
    let mut matrix = Matrix::zeros(dtype, rows, columns, stride)?;
    // Bands do not depend on the number of cores, so neither do the numbers.
    matrix.fill_in_bands((BAND / columns.max(1)).max(1), |band| {
        let mut rng = Rng::with_seed(seed ^ (band as u64).wrapping_mul(0xd6e8_feb8_6659_fd93));
        move || match dtype {
            DType::I32 => Complex64::new(f64::from(rng.i32(-9..=9)), 0.0),
            DType::C64 | DType::C128 => {
                let re = 2.0 * rng.f64() - 1.0;
                Complex64::new(re, 2.0 * rng.f64() - 1.0)
            }
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => Complex64::new(2.0 * rng.f64() - 1.0, 0.0),
        }
    });
    Ok(matrix)
}

/// Elements that one stream of random numbers makes.
const BAND: usize = 1 << 18;

/// Replaces `count` elements at random places by infinities of either sign and NaNs. Integers stay as they are.
pub fn sprinkle(matrix: &mut Matrix, count: usize, seed: u64) {
    if matrix.rows() == 0 || matrix.columns() == 0 || matrix.dtype() == DType::I32 {
        return;
    }
    let mut rng = Rng::with_seed(seed);
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for _ in 0..count {
        let (row, column) = (rng.usize(..matrix.rows()), rng.usize(..matrix.columns()));
        let mut value = matrix.get(row, column);
        let part = special[rng.usize(..special.len())];
        if matrix.dtype().is_complex() && rng.bool() {
            value.im = part;
        } else {
            value.re = part;
        }
        matrix.set(row, column, value);
    }
}

#[cfg(test)]
mod tests {
    use super::{BAND, random, sprinkle};
    use warpwright_core::dtype::DType;

    #[test]
    fn the_seed_decides_the_numbers() {
        let make = |seed| random(DType::F32, 4, 5, 5, seed).unwrap();
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
    }

    #[test]
    fn a_matrix_of_many_bands_repeats_nothing_and_leaves_the_padding() {
        let matrix = random(DType::F64, 3 * BAND / 8 + 1, 8, 9, 1).unwrap();
        let rows = BAND / 8;
        assert_ne!(matrix.get(0, 0), matrix.get(rows, 0));
        assert_ne!(matrix.get(rows, 0), matrix.get(2 * rows, 0));
        assert_ne!(matrix.get(3 * rows, 7).re, 0.0, "the last row");
        assert!(matrix.bytes()[8 * 8..9 * 8].iter().all(|b| *b == 0));
        assert_eq!(random(DType::F64, 5, 8, 9, 1).unwrap().get(4, 7), matrix.get(4, 7));
    }

    #[test]
    fn sprinkled_elements_are_not_finite() {
        let mut matrix = random(DType::C64, 6, 6, 6, 1).unwrap();
        sprinkle(&mut matrix, 4, 1);
        let special = (0..36).filter(|i| !matrix.get(i / 6, i % 6).norm().is_finite()).count();
        assert!((1..=4).contains(&special), "{special}");
    }
}
