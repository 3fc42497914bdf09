//! Integers: native 32-bit arithmetic that wraps, and the small integers over which programs with maxima are checked.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use warpwright_core::dtype::DType;

use super::Arithmetic;

/// A 32-bit integer, held in 64 bits so that poison is a value of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer(pub i64);

impl Integer {
    #[inline(always)]
    fn with(self, other: Integer, value: i64) -> Integer {
        if self.is_poison() | other.is_poison() { Integer::POISON } else { Integer(i64::from(value as i32)) }
    }
}

impl Arithmetic for Integer {
    type Cell = AtomicI64;
    const POISON: Integer = Integer(i64::MIN);
    const EXACT: bool = true;
    const NAME: &'static str = "i32";

    #[inline(always)]
    fn is_poison(self) -> bool {
        self.0 == i64::MIN
    }

    fn from_f64(value: f64) -> Integer {
        Integer(i64::from(value as i32))
    }

    fn from_random(bits: [u64; 2]) -> Integer {
        Integer((bits[0] % 17) as i64 - 8)
    }

    #[inline(always)]
    fn neg(self) -> Integer {
        self.with(self, self.0.wrapping_neg())
    }

    #[inline(always)]
    fn conj(self) -> Integer {
        self
    }

    #[inline(always)]
    fn add(self, other: Integer) -> Integer {
        self.with(other, self.0.wrapping_add(other.0))
    }

    #[inline(always)]
    fn sub(self, other: Integer) -> Integer {
        self.with(other, self.0.wrapping_sub(other.0))
    }

    #[inline(always)]
    fn mul(self, other: Integer) -> Integer {
        self.with(other, self.0.wrapping_mul(other.0))
    }

    fn div(self, other: Integer) -> Integer {
        if other.0 == 0 { Integer::POISON } else { self.with(other, self.0.wrapping_div(other.0)) }
    }

    #[inline(always)]
    fn max(self, other: Integer) -> Integer {
        self.with(other, self.0.max(other.0))
    }

    #[inline(always)]
    fn min(self, other: Integer) -> Integer {
        self.with(other, self.0.min(other.0))
    }

    #[inline(always)]
    fn mul_add(self, a: Integer, b: Integer) -> Integer {
        self.add(a.mul(b))
    }

    #[inline(always)]
    fn round(self, _: DType) -> Integer {
        self
    }

    fn decode(dtype: DType, bytes: &[u8]) -> Integer {
        Integer::from_f64(f64::decode(dtype, bytes))
    }

    fn encode(self, dtype: DType, bytes: &mut [u8]) {
        (self.0 as f64).encode(dtype, bytes);
    }

    fn cell(self) -> AtomicI64 {
        AtomicI64::new(self.0)
    }

    #[inline(always)]
    fn load(cell: &AtomicI64) -> Integer {
        Integer(cell.load(Relaxed))
    }

    #[inline(always)]
    fn store(cell: &AtomicI64, value: Integer) {
        cell.store(value.0, Relaxed);
    }

    fn update(cell: &AtomicI64, update: &dyn Fn(Integer) -> Integer) {
        // Always `Some`, so the loop ends with the value stored.
        let _ = cell.fetch_update(Relaxed, Relaxed, |old| Some(update(Integer(old)).0));
    }
}

#[cfg(test)]
mod tests {
    use super::Integer;
    use crate::arithmetic::Arithmetic;

    #[test]
    fn wraps_at_32_bits_and_keeps_poison_apart() {
        assert_eq!(Integer(i64::from(i32::MAX)).add(Integer(1)), Integer(i64::from(i32::MIN)));
        assert!(Integer::POISON.mul(Integer(0)).is_poison());
        assert_eq!(Integer::from_f64(f64::NEG_INFINITY).max(Integer(3)), Integer(3));
    }
}
