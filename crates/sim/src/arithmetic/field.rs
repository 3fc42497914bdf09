//! The prime field of p = 2^61 - 1 elements, and pairs over it with i^2 = -1.
//!
//! A program and its specification are polynomials in their inputs; if they differ, they agree at a random point with
//! probability at most (degree)/p. Because p = 3 mod 4, -1 has no root in the field, so pairs are a field too and the
//! conjugate is defined on values.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use warpwright_core::dtype::DType;

use super::Arithmetic;

/// 2^61 - 1, a Mersenne prime: reduction is a shift and an addition.
pub const MODULUS: u64 = (1 << 61) - 1;

/// An element of the prime field, kept in `0..p`; all bits set is poison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field(pub u64);

/// An element of the field extended by i; poison if either part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPair(pub Field, pub Field);

/// Brings a number below 2^63 into `0..p`.
#[inline(always)]
fn reduce(x: u64) -> u64 {
    let folded = (x & MODULUS) + (x >> 61);
    if folded >= MODULUS { folded - MODULUS } else { folded }
}

/// Brings a product of two elements, plus an element, below 2^63.
#[inline(always)]
fn fold(x: u128) -> u64 {
    (x as u64 & MODULUS).wrapping_add((x >> 61) as u64)
}

impl Field {
    /// Values from here on are poison: elements lie below 2^61.
    const SIGN: u64 = 1 << 63;

    #[inline(always)]
    fn unless_poison(parts: u64, value: u64) -> Field {
        Field(if parts & Self::SIGN == 0 { value } else { u64::MAX })
    }

    fn power(self, mut exponent: u64) -> Field {
        let (mut base, mut result) = (self, Field(1));
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.mul(base);
            }
            base = base.mul(base);
            exponent >>= 1;
        }
        result
    }
}

impl Arithmetic for Field {
    type Cell = AtomicU64;
    const POISON: Field = Field(u64::MAX);
    const EXACT: bool = true;
    const NAME: &'static str = "GF(2^61-1)";

    #[inline(always)]
    fn is_poison(self) -> bool {
        self.0 & Self::SIGN != 0
    }

    fn from_f64(value: f64) -> Field {
        if value == 0.0 {
            return Field(0);
        }
        if !value.is_finite() {
            return Field::POISON;
        }
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i64;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) =
            if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        // 2 has order 61 in the field, so powers of two, inverses included, are shifts.
        let magnitude = Field(mantissa).mul(Field(1 << exponent.rem_euclid(61)));
        if value < 0.0 { magnitude.neg() } else { magnitude }
    }

    fn from_random(bits: [u64; 2]) -> Field {
        Field(reduce(bits[0] >> 1))
    }

    #[inline(always)]
    fn neg(self) -> Field {
        Field(0).sub(self)
    }

    #[inline(always)]
    fn conj(self) -> Field {
        self
    }

    #[inline(always)]
    fn add(self, other: Field) -> Field {
        let sum = self.0.wrapping_add(other.0);
        Self::unless_poison(self.0 | other.0, if sum >= MODULUS { sum.wrapping_sub(MODULUS) } else { sum })
    }

    #[inline(always)]
    fn sub(self, other: Field) -> Field {
        let difference = self.0.wrapping_sub(other.0);
        let borrowed = if self.0 < other.0 { difference.wrapping_add(MODULUS) } else { difference };
        Self::unless_poison(self.0 | other.0, borrowed)
    }

    #[inline(always)]
    fn mul(self, other: Field) -> Field {
        Self::unless_poison(self.0 | other.0, reduce(fold(u128::from(self.0) * u128::from(other.0))))
    }

    fn div(self, other: Field) -> Field {
        if other.0 == 0 || other.is_poison() { Field::POISON } else { self.mul(other.power(MODULUS - 2)) }
    }

    /// The field has no order; programs with maxima run over integers instead.
    fn max(self, _: Field) -> Field {
        Field::POISON
    }

    fn min(self, _: Field) -> Field {
        Field::POISON
    }

    #[inline(always)]
    fn mul_add(self, a: Field, b: Field) -> Field {
        let sum = fold(u128::from(a.0) * u128::from(b.0)).wrapping_add(self.0);
        Self::unless_poison(self.0 | a.0 | b.0, reduce(sum))
    }

    #[inline(always)]
    fn round(self, _: DType) -> Field {
        self
    }

    fn decode(_: DType, bytes: &[u8]) -> Field {
        Field(bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)))
    }

    fn encode(self, _: DType, bytes: &mut [u8]) {
        if let Some(out) = bytes.first_chunk_mut() {
            *out = self.0.to_le_bytes();
        }
    }

    fn cell(self) -> AtomicU64 {
        AtomicU64::new(self.0)
    }

    #[inline(always)]
    fn load(cell: &AtomicU64) -> Field {
        Field(cell.load(Relaxed))
    }

    #[inline(always)]
    fn store(cell: &AtomicU64, value: Field) {
        cell.store(value.0, Relaxed);
    }

    fn update(cell: &AtomicU64, update: &dyn Fn(Field) -> Field) {
        // Always `Some`, so the loop ends with the value stored.
        let _ = cell.fetch_update(Relaxed, Relaxed, |old| Some(update(Field(old)).0));
    }
}

impl FieldPair {
    #[inline(always)]
    fn settled(self) -> FieldPair {
        if self.is_poison() { FieldPair::POISON } else { self }
    }
}

impl Arithmetic for FieldPair {
    type Cell = [AtomicU64; 2];
    const POISON: FieldPair = FieldPair(Field::POISON, Field::POISON);
    const EXACT: bool = true;
    const NAME: &'static str = "GF(2^61-1)[i]";

    #[inline(always)]
    fn is_poison(self) -> bool {
        self.0.is_poison() | self.1.is_poison()
    }

    fn from_f64(value: f64) -> FieldPair {
        FieldPair(Field::from_f64(value), Field(0)).settled()
    }

    fn from_random(bits: [u64; 2]) -> FieldPair {
        FieldPair(Field(reduce(bits[0] >> 1)), Field(reduce(bits[1] >> 1)))
    }

    fn neg(self) -> FieldPair {
        FieldPair(self.0.neg(), self.1.neg())
    }

    fn conj(self) -> FieldPair {
        FieldPair(self.0, self.1.neg())
    }

    fn times_i(self) -> FieldPair {
        FieldPair(self.1.neg(), self.0)
    }

    #[inline(always)]
    fn add(self, other: FieldPair) -> FieldPair {
        FieldPair(self.0.add(other.0), self.1.add(other.1)).settled()
    }

    #[inline(always)]
    fn sub(self, other: FieldPair) -> FieldPair {
        FieldPair(self.0.sub(other.0), self.1.sub(other.1)).settled()
    }

    #[inline(always)]
    fn mul(self, other: FieldPair) -> FieldPair {
        let re = self.0.mul(other.0).sub(self.1.mul(other.1));
        FieldPair(re, self.0.mul(other.1).mul_add(self.1, other.0)).settled()
    }

    fn div(self, other: FieldPair) -> FieldPair {
        let norm = other.0.mul(other.0).mul_add(other.1, other.1);
        let top = self.mul(other.conj());
        FieldPair(top.0.div(norm), top.1.div(norm)).settled()
    }

    fn max(self, _: FieldPair) -> FieldPair {
        FieldPair::POISON
    }

    fn min(self, _: FieldPair) -> FieldPair {
        FieldPair::POISON
    }

    #[inline(always)]
    fn mul_add(self, a: FieldPair, b: FieldPair) -> FieldPair {
        self.add(a.mul(b))
    }

    #[inline(always)]
    fn round(self, _: DType) -> FieldPair {
        self
    }

    fn decode(dtype: DType, bytes: &[u8]) -> FieldPair {
        FieldPair(Field::decode(dtype, bytes), Field::decode(dtype, bytes.get(8..).unwrap_or_default()))
    }

    fn encode(self, dtype: DType, bytes: &mut [u8]) {
        self.0.encode(dtype, bytes);
        if let Some(rest) = bytes.get_mut(8..) {
            self.1.encode(dtype, rest);
        }
    }

    fn cell(self) -> [AtomicU64; 2] {
        [self.0.cell(), self.1.cell()]
    }

    #[inline(always)]
    fn load(cell: &[AtomicU64; 2]) -> FieldPair {
        FieldPair(Field::load(&cell[0]), Field::load(&cell[1]))
    }

    #[inline(always)]
    fn store(cell: &[AtomicU64; 2], value: FieldPair) {
        Field::store(&cell[0], value.0);
        Field::store(&cell[1], value.1);
    }

    fn update(cell: &[AtomicU64; 2], update: &dyn Fn(FieldPair) -> FieldPair) {
        // Reductions of pairs are sums, and sums work part by part.
        Field::update(&cell[0], &|re| update(FieldPair(re, Field(0))).0);
        Field::update(&cell[1], &|im| update(FieldPair(Field(0), im)).1);
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, FieldPair, MODULUS};
    use crate::arithmetic::Arithmetic;

    #[test]
    fn literals_are_exact_and_inverses_invert() {
        let half = Field::from_f64(0.5);
        assert_eq!(half.add(half), Field(1));
        assert_eq!(Field::from_f64(-3.25).add(Field::from_f64(3.25)), Field(0));
        assert_eq!(Field(7).div(Field(7)), Field(1));
        assert_eq!(Field(MODULUS - 1).mul(Field(MODULUS - 1)), Field(1));
        assert_eq!(Field(MODULUS - 1).mul_add(Field(MODULUS - 1), Field(MODULUS - 1)), Field(0));
    }

    #[test]
    fn poison_absorbs_even_zero() {
        assert!(Field(0).mul(Field::POISON).is_poison());
        assert!(Field::POISON.mul_add(Field(0), Field(0)).is_poison());
        assert!(Field(5).sub(Field::POISON).is_poison() && Field::POISON.neg().is_poison());
        assert!(Field(5).div(Field(0)).is_poison());
        assert!(FieldPair::from_f64(1.0).mul(FieldPair::POISON).is_poison());
    }

    #[test]
    fn the_pair_is_a_field_with_a_conjugate() {
        let z = FieldPair(Field(3), Field(4));
        assert_eq!(z.mul(z.conj()), FieldPair(Field(25), Field(0)));
        assert_eq!(z.div(z), FieldPair(Field(1), Field(0)));
        let i = FieldPair(Field(0), Field(1));
        assert_eq!(i.mul(i), FieldPair::from_f64(-1.0));
    }
}
