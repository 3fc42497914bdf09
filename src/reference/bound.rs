//! How far from the exact result a correctly computed product may be.
//!
//! For a sum of n products of numbers x and y, evaluated in any order, with or without fused multiply-adds,
//! in an arithmetic with unit roundoff u:
//!
//! ```text
//! |computed - exact| <= n u sum |x| |y|
//! ```
//!
//! (Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic", SIAM J.
//! Matrix Anal. Appl. 34, 2013; without a restriction on n. The classical form with n u / (1 - n u) is in
//! Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1.) Scaling by alpha, scaling the old
//! C by beta and adding the two are three more roundings, and one is kept in hand for their products:
//! n = K + 4 over the magnitude |alpha| |op(A)| |op(B)| + |beta| |C|.
//!
//! - *Complex.* The real and the imaginary part of a sum of K complex products are sums of 2K real ones whose
//!   magnitudes are at most |x| |y|; scaling by a complex alpha mixes the parts. n = 2K + 8 and a factor 2
//!   cover both. The same sums are those of the real product that says the same (`Numbers::Embedded`).
//! - *Complex, by three real products.* (x + iy)(u + iv) is made of P = xu, Q = yv and R = (x + y)(u + v), as P - Q and
//!   R - P - Q, and likewise with other signs where numbers are conjugated. With S = sum (|x| + |y|) (|u| + |v|), which is
//!   at least the magnitude of each of the three sums, P - Q has an error of (K + 1) u S at most, and R - P - Q, whose R
//!   has two more roundings in each term, one of (2K + 6) u S; together sqrt(5) K + 7 at most, and scaling by alpha and
//!   adding the old C as above is 4 more. No part is bounded by its own terms |x| |v| + |y| |u| alone, as it is where four
//!   products are added up (Higham, "Stability of a method for multiplying complex matrices with three real matrix
//!   multiplications", SIAM J. Matrix Anal. Appl. 13, 1992). In absolute values of complex numbers, of which magnitudes
//!   here are made, |x| + |y| <= sqrt(2) |x + iy|, so S is at most twice the magnitude: n = 3K + 12 and the factor 2
//!   cover all of it. An infinity may make a NaN of a part, since it may stand in R, P and Q at once.
//! - *f32 split into tf32 parts.* x is taken as x0 + x1: x0 is x rounded to eleven bits, so |x1| <= 2^-11 |x|, and of the twelve bits
//!   of x1 the hardware multiplies eleven, which loses 2^-23 |x| at most. x0 y0 + x0 y1 + x1 y0 then differs from x y by the product
//!   x1 y1, 2^-22 |x| |y|, and by what was lost of x1 and y1: 2^-21 |x| |y| together, and a little. An instruction adds to a sum the
//!   eight products x0 y0. It aligns them with the largest and cuts off what lies behind two bits after the last one of f32, at worst
//!   2^-25 of the largest for each of eight, and then cuts the sum off to 24 bits: 6 u (u = 2^-24) over the magnitude of what was
//!   added up so far (seen on an H200, `bench/limits/tf32.cu`). So do two instructions for eight terms of complex numbers. Matrix
//!   units add up the terms of up to 16 such steps, one after the other, beginning at zero, where the largest of the eight products
//!   is cut off by nothing. What the other products give, with twice as many instructions, is 2^10 times smaller, and so is its error;
//!   the products x0 y0 may be 2^-10 larger than x y. Threads add both together, one rounding, and add what comes of it to the sum, one
//!   more. A sum of up to 128 terms is one of them: n = (K/2 + 2 ceil(K/8)) (1 + 3 2^-10) + 1/2, for complex numbers
//!   (K + 4 ceil(K/8)) (1 + 3 2^-10) + 1/2. A longer one is made of pieces of c steps: 6 c and K/(8 c) roundings, which is the most for
//!   c = 1 or c = 16; 16 more at the end, where rows are left over: 96 + K/128 or 6 + K/8, whichever is more, and 17. Numbers that
//!   complex ones are embedded in make sums of twice as many terms, which is the same. With the scaling, it is less than the bound of
//!   plain sums of 38 terms and more, except 41, and of 21 complex ones and more; with pieces of one step from 16 terms on, 11 complex ones.
//!   This holds for numbers of 2^-123 and more in absolute value; of smaller ones what is left, though multiplied by 1024, loses bits:
//!   2^-146 of each, however small it is. An infinity times a number below 2^-136 is a NaN.
//! - *Storage narrower than the accumulator.* One more rounding, of the result.
//! - *Matrix units.* Products are exact, but the sums inside one instruction are aligned and truncated
//!   (Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer
//!   Science 7, 2021): four times the unit roundoff of f32.
//! - *tf32.* Each factor is first cut to ten bits after the point, at worst by truncation: 2^-10 each.
//! - *Underflow.* Each operation may lose half a subnormal step instead of a relative error.
//! - *The reference itself* is computed in f64 and gets the same bound in that arithmetic.
//!
//! i32 is exact, and its bound is 0.

use warpwright_core::dtype::DType;

use crate::problem::{Multiplications, Precision};

/// What is needed to bound the error of each element of one product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounding {
    /// Error relative to the magnitude of what is summed.
    relative: f64,
    /// Error relative to the result, from storing it.
    storing: f64,
    /// Error that underflow may cause, whatever the data.
    absolute: f64,
}

impl Rounding {
    /// The rounding of a product with sums of `k` terms, made of such products.
    pub fn of(precision: Precision, k: u64, multiplications: Multiplications) -> Rounding {
        let (dtype, result) = (precision.storage(), precision.result());
        if dtype == DType::I32 {
            return Rounding { relative: 0.0, storing: 0.0, absolute: 0.0 };
        }
        let accumulator = dtype.accumulator();
        let split = matches!(multiplications, Multiplications::Split { .. });
        let on_matrix_units = dtype.is_half() || precision == Precision::Tf32;
        let unit = unit_roundoff(accumulator) * if on_matrix_units { 4.0 } else { 1.0 };
        let (terms, factor) = match (dtype.is_complex(), multiplications) {
            (false, Multiplications::Split { chain }) => (split_steps(k, 1.0, chain) + 5.0, 1.0),
            (true, Multiplications::Split { chain }) => (split_steps(k, 2.0, chain) + 9.0, 2.0),
            (false, _) => (k as f64 + 4.0, 1.0),
            (true, Multiplications::Four) => (2.0 * k as f64 + 8.0, 2.0),
            (true, Multiplications::Three) => (3.0 * k as f64 + 12.0, 2.0),
        };
        let cut = match precision {
            Precision::Tf32 => 2.0 * 2f64.powi(-10) + 2f64.powi(-20),
            _ if split => factor * 2f64.powi(-21) * (1.0 + 2f64.powi(-10)),
            _ => 0.0,
        };
        // Each product is one of three, and each of those has parts.
        let underflows = if split { 6.0 * k as f64 + 8.0 } else { terms };
        Rounding {
            relative: factor * terms * (unit + unit_roundoff(DType::F64)) * (1.0 + 4.0 * unit) + cut,
            storing: if accumulator == result { 0.0 } else { unit_roundoff(result) },
            absolute: underflows * smallest(accumulator) + smallest(result),
        }
    }

    /// The bound of an element: `magnitude` is the sum of the magnitudes of everything added up in it.
    pub fn bound(&self, magnitude: f64, result: f64) -> f64 {
        let computed = self.relative * magnitude + self.absolute;
        computed + self.storing * (result + computed)
    }
}

/// The roundings of a sum of `k` terms whose factors are split, of which `instructions` add up eight, and matrix units `chain` times as
/// many before threads add them.
fn split_steps(k: u64, instructions: f64, chain: u8) -> f64 {
    const LONGEST: f64 = Multiplications::LONGEST_CHAIN as f64;
    // The products of what is left over, and those of leading parts that were rounded up.
    const OTHERS: f64 = 1.0 + 3.0 / 1024.0;
    let steps = (k as f64 / 8.0).ceil();
    if steps <= LONGEST {
        // At worst all that counts is in one piece of the sum. Of its last step, only what is there is aligned, and of its first one,
        // the largest product is whole. Each piece but the first is added to a sum.
        let chain = steps.min(f64::from(chain));
        let terms = (8.0 * chain).min(k as f64);
        instructions * (terms / 2.0 + 2.0 * chain) * OTHERS - 0.5 + (steps / chain.max(1.0)).ceil() - 1.0
    } else {
        let of_a_step = 6.0 * instructions;
        (of_a_step * LONGEST * OTHERS + steps / LONGEST).max(of_a_step * OTHERS + steps) + 16.0
    }
}

/// Whether the error of a product with sums of `k` terms has a larger bound when it is made of such products than by the definition.
pub fn is_larger(precision: Precision, k: i64, multiplications: Multiplications) -> bool {
    let relative = |by| Rounding::of(precision, k.max(0) as u64, by).relative;
    relative(multiplications) > relative(Multiplications::Four)
}

/// Half the distance from 1 to the next larger number; for complex types, of their parts.
pub fn unit_roundoff(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-11),
        DType::Bf16 => 2f64.powi(-8),
        DType::F32 | DType::C64 => 2f64.powi(-24),
        DType::F64 | DType::C128 => 2f64.powi(-53),
        DType::I32 => 0.0,
    }
}

/// The largest finite number of a type.
pub fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::Bf16 => half::bf16::MAX.to_f64(),
        DType::F32 | DType::C64 => f64::from(f32::MAX),
        DType::F64 | DType::C128 => f64::MAX,
        DType::I32 => f64::INFINITY,
    }
}

/// The smallest positive number of a type, subnormal ones included.
fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-24),
        DType::Bf16 => 2f64.powi(-133),
        DType::F32 | DType::C64 => 2f64.powi(-149),
        DType::F64 | DType::C128 => f64::from_bits(1),
        DType::I32 => 0.0,
    }
}
