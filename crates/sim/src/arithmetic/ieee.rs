//! Real numbers as the machine has them.
//!
//! In a program that mixes precisions everything is held in the widest type and rounded after each operation to the
//! type the program says; for sums, products and quotients of f32 held in f64 this gives the f32 result exactly.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use half::{bf16, f16};
use warpwright_core::dtype::DType;

use super::Arithmetic;

/// The payload that marks a NaN as poison.
const POISON_F32: u32 = 0x7fde_ad01;
/// The same for binary64. It survives rounding to f32 in a recognisable form only by way of [`Arithmetic::round`].
const POISON_F64: u64 = 0x7ff8_dead_dead_0001;

impl Arithmetic for f32 {
    type Cell = AtomicU32;
    const POISON: f32 = f32::from_bits(POISON_F32);
    const EXACT: bool = false;
    const NAME: &'static str = "f32";

    #[inline(always)]
    fn is_poison(self) -> bool {
        self.to_bits() & 0x7fff_ffff == POISON_F32
    }

    fn from_f64(value: f64) -> f32 {
        value as f32
    }

    fn from_random(bits: [u64; 2]) -> f32 {
        f64::from_random(bits) as f32
    }

    #[inline(always)]
    fn neg(self) -> f32 {
        -self
    }

    #[inline(always)]
    fn conj(self) -> f32 {
        self
    }

    #[inline(always)]
    fn add(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn sub(self, other: f32) -> f32 {
        self - other
    }

    #[inline(always)]
    fn mul(self, other: f32) -> f32 {
        self * other
    }

    #[inline(always)]
    fn div(self, other: f32) -> f32 {
        self / other
    }

    #[inline(always)]
    fn max(self, other: f32) -> f32 {
        if self.is_poison() || other.is_poison() { f32::POISON } else { f32::max(self, other) }
    }

    #[inline(always)]
    fn min(self, other: f32) -> f32 {
        if self.is_poison() || other.is_poison() { f32::POISON } else { f32::min(self, other) }
    }

    #[inline(always)]
    fn mul_add(self, a: f32, b: f32) -> f32 {
        a.mul_add(b, self)
    }

    #[inline(always)]
    fn round(self, dtype: DType) -> f32 {
        match dtype {
            DType::F16 | DType::Bf16 if self.is_poison() => self,
            DType::F16 => f16::from_f32(self).to_f32(),
            DType::Bf16 => bf16::from_f32(self).to_f32(),
            _ => self,
        }
    }

    fn rounds(dtype: DType) -> bool {
        dtype.is_half()
    }

    fn decode(dtype: DType, bytes: &[u8]) -> f32 {
        f64::decode(dtype, bytes) as f32
    }

    fn encode(self, dtype: DType, bytes: &mut [u8]) {
        f64::from(self).encode(dtype, bytes);
    }

    fn cell(self) -> AtomicU32 {
        AtomicU32::new(self.to_bits())
    }

    #[inline(always)]
    fn load(cell: &AtomicU32) -> f32 {
        f32::from_bits(cell.load(Relaxed))
    }

    #[inline(always)]
    fn store(cell: &AtomicU32, value: f32) {
        cell.store(value.to_bits(), Relaxed);
    }

    fn update(cell: &AtomicU32, update: &dyn Fn(f32) -> f32) {
        // Always `Some`, so the loop ends with the value stored.
        let _ = cell.fetch_update(Relaxed, Relaxed, |old| Some(update(f32::from_bits(old)).to_bits()));
    }
}

impl Arithmetic for f64 {
    type Cell = AtomicU64;
    const POISON: f64 = f64::from_bits(POISON_F64);
    const EXACT: bool = false;
    const NAME: &'static str = "f64";

    #[inline(always)]
    fn is_poison(self) -> bool {
        self.to_bits() & (u64::MAX >> 1) == POISON_F64
    }

    fn from_f64(value: f64) -> f64 {
        value
    }

    fn from_random(bits: [u64; 2]) -> f64 {
        (bits[0] >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    #[inline(always)]
    fn neg(self) -> f64 {
        -self
    }

    #[inline(always)]
    fn conj(self) -> f64 {
        self
    }

    #[inline(always)]
    fn add(self, other: f64) -> f64 {
        self + other
    }

    #[inline(always)]
    fn sub(self, other: f64) -> f64 {
        self - other
    }

    #[inline(always)]
    fn mul(self, other: f64) -> f64 {
        self * other
    }

    #[inline(always)]
    fn div(self, other: f64) -> f64 {
        self / other
    }

    #[inline(always)]
    fn max(self, other: f64) -> f64 {
        if self.is_poison() || other.is_poison() { f64::POISON } else { f64::max(self, other) }
    }

    #[inline(always)]
    fn min(self, other: f64) -> f64 {
        if self.is_poison() || other.is_poison() { f64::POISON } else { f64::min(self, other) }
    }

    #[inline(always)]
    fn mul_add(self, a: f64, b: f64) -> f64 {
        a.mul_add(b, self)
    }

    #[inline(always)]
    fn round(self, dtype: DType) -> f64 {
        match dtype {
            DType::F16 | DType::Bf16 | DType::F32 | DType::C64 if self.is_poison() => self,
            DType::F16 => f16::from_f64(self).to_f64(),
            DType::Bf16 => bf16::from_f64(self).to_f64(),
            DType::F32 | DType::C64 => f64::from(self as f32),
            _ => self,
        }
    }

    fn rounds(dtype: DType) -> bool {
        !matches!(dtype, DType::F64 | DType::C128)
    }

    fn decode(dtype: DType, bytes: &[u8]) -> f64 {
        fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
            bytes.first_chunk().copied().unwrap_or([0; N])
        }
        match dtype {
            DType::F16 => f16::from_le_bytes(first(bytes)).to_f64(),
            DType::Bf16 => bf16::from_le_bytes(first(bytes)).to_f64(),
            DType::F32 | DType::C64 => f64::from(f32::from_le_bytes(first(bytes))),
            DType::F64 | DType::C128 => f64::from_le_bytes(first(bytes)),
            DType::I32 => f64::from(i32::from_le_bytes(first(bytes))),
        }
    }

    fn encode(self, dtype: DType, bytes: &mut [u8]) {
        fn put<const N: usize>(value: [u8; N], bytes: &mut [u8]) {
            if let Some(out) = bytes.first_chunk_mut() {
                *out = value;
            }
        }
        match dtype {
            DType::F16 => put(f16::from_f64(self).to_le_bytes(), bytes),
            DType::Bf16 => put(bf16::from_f64(self).to_le_bytes(), bytes),
            DType::F32 | DType::C64 => put((self as f32).to_le_bytes(), bytes),
            DType::F64 | DType::C128 => put(self.to_le_bytes(), bytes),
            DType::I32 => put((self as i32).to_le_bytes(), bytes),
        }
    }

    fn cell(self) -> AtomicU64 {
        AtomicU64::new(self.to_bits())
    }

    #[inline(always)]
    fn load(cell: &AtomicU64) -> f64 {
        f64::from_bits(cell.load(Relaxed))
    }

    #[inline(always)]
    fn store(cell: &AtomicU64, value: f64) {
        cell.store(value.to_bits(), Relaxed);
    }

    fn update(cell: &AtomicU64, update: &dyn Fn(f64) -> f64) {
        // Always `Some`, so the loop ends with the value stored.
        let _ = cell.fetch_update(Relaxed, Relaxed, |old| Some(update(f64::from_bits(old)).to_bits()));
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use crate::arithmetic::Arithmetic;
    use warpwright_core::dtype::DType;

    #[test]
    fn poison_survives_arithmetic_and_rounding() {
        // An optimising compiler that knew the operands would give some NaN, where a processor gives this one.
        let (narrow, wide) = (black_box(f32::POISON), black_box(f64::POISON));
        assert!(Arithmetic::mul_add(narrow, 2.0, 3.0).is_poison());
        assert!(1.0f64.add(wide).is_poison());
        assert!(Arithmetic::round(narrow, DType::Bf16).is_poison());
        assert!(!f32::NAN.is_poison() && !f64::INFINITY.is_poison());
    }

    #[test]
    fn storage_rounds() {
        assert_eq!(Arithmetic::round(1.001f32, DType::Bf16), 1.0);
        assert_eq!(Arithmetic::round(0.1f64, DType::F32), f64::from(0.1f32));
    }
}
