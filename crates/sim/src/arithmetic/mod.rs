//! What the numbers are: the engine is generic over [`Arithmetic`].
//!
//! The same program runs over IEEE numbers (what a GPU would give), over integers (maxima and comparisons), and over
//! the prime field of 2^61 - 1 elements, where equality of two programs is exact (rule 35). An element is also *poison*
//! when nothing was ever stored there: poison absorbs everything, and is a fault only when it reaches an output
//! (rule 12). In the field and in the integers poison is a value that arithmetic never yields. In IEEE domains it is a
//! quiet NaN with a payload of its own, carried along by the processor's NaN rules: good evidence, not proof.

mod complex;
mod field;
mod ieee;
mod integer;
mod lanes;

use warpwright_core::dtype::DType;

pub use field::{Field, FieldPair, MODULUS};
pub use integer::Integer;
pub(crate) use lanes::{Kernels, Level, MultiplyAdd};

/// A number of a domain in which programs run.
pub trait Arithmetic: Copy + PartialEq + Send + Sync + std::fmt::Debug + 'static {
    /// An element of memory that blocks on different cores may touch at once.
    type Cell: Send + Sync;

    /// What memory holds before anything is stored there.
    const POISON: Self;
    /// Whether a sum gives the same bits in any order, so that blocks may add atomically in parallel.
    const EXACT: bool;
    /// The name for tables: `f32`, `GF(2^61-1)`, ...
    const NAME: &'static str;

    /// Whether this is [`Arithmetic::POISON`].
    fn is_poison(self) -> bool;
    /// A literal. Every finite `f64` is a dyadic rational, hence exact in the field.
    fn from_f64(value: f64) -> Self;
    /// A random element for exact trials.
    fn from_random(bits: [u64; 2]) -> Self;
    /// The negative.
    fn neg(self) -> Self;
    /// The complex conjugate.
    fn conj(self) -> Self;
    /// The product with the imaginary unit; poison where the domain has none.
    fn times_i(self) -> Self {
        Self::POISON
    }
    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Difference.
    fn sub(self, other: Self) -> Self;
    /// Product.
    fn mul(self, other: Self) -> Self;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// The larger.
    fn max(self, other: Self) -> Self;
    /// The smaller.
    fn min(self, other: Self) -> Self;
    /// `self + a * b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The value as an element of type `dtype` holds it. The identity in the field.
    fn round(self, dtype: DType) -> Self;
    /// Whether [`Arithmetic::round`] to `dtype` changes anything.
    fn rounds(_dtype: DType) -> bool {
        false
    }
    /// Reads an element from its stored bytes.
    fn decode(dtype: DType, bytes: &[u8]) -> Self;
    /// Writes an element as stored bytes.
    fn encode(self, dtype: DType, bytes: &mut [u8]);

    /// A memory cell that holds `self`.
    fn cell(self) -> Self::Cell;
    /// Reads a cell.
    fn load(cell: &Self::Cell) -> Self;
    /// Writes a cell.
    fn store(cell: &Self::Cell, value: Self);
    /// Replaces the content of a cell by what `update` makes of it, atomically (for pairs: each part by itself).
    fn update(cell: &Self::Cell, update: &dyn Fn(Self) -> Self);
}

/// `fma` counts real multiply-adds: a complex one is four.
pub(crate) fn multiply_adds(dtype: DType) -> u64 {
    if dtype.is_complex() { 4 } else { 1 }
}
