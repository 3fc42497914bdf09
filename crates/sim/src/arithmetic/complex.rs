//! Complex numbers over the machine's reals. Those of single precision are held in double precision and rounded after
//! every operation.

use num_complex::Complex;
use warpwright_core::dtype::DType;

use super::Arithmetic;

impl Arithmetic for Complex<f64> {
    type Cell = [<f64 as Arithmetic>::Cell; 2];
    const POISON: Complex<f64> = Complex { re: f64::POISON, im: f64::POISON };
    const EXACT: bool = false;
    const NAME: &'static str = "complex";

    #[inline(always)]
    fn is_poison(self) -> bool {
        self.re.is_poison() | self.im.is_poison()
    }

    fn from_f64(value: f64) -> Self {
        Complex::new(value, 0.0)
    }

    fn from_random(bits: [u64; 2]) -> Self {
        Complex::new(f64::from_random([bits[0], 0]), f64::from_random([bits[1], 0]))
    }

    fn neg(self) -> Self {
        -self
    }

    fn conj(self) -> Self {
        Complex::new(self.re, -self.im)
    }

    fn times_i(self) -> Self {
        Complex::new(-self.im, self.re)
    }

    fn add(self, other: Self) -> Self {
        self + other
    }

    fn sub(self, other: Self) -> Self {
        self - other
    }

    fn mul(self, other: Self) -> Self {
        Complex::new(0.0f64, 0.0).mul_add(self, other)
    }

    fn div(self, other: Self) -> Self {
        self / other
    }

    fn max(self, _: Self) -> Self {
        Self::POISON
    }

    fn min(self, _: Self) -> Self {
        Self::POISON
    }

    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        let re = (-a.im).mul_add(b.im, a.re.mul_add(b.re, self.re));
        let im = a.im.mul_add(b.re, a.re.mul_add(b.im, self.im));
        Complex::new(re, im)
    }

    #[inline(always)]
    fn round(self, dtype: DType) -> Self {
        Complex::new(Arithmetic::round(self.re, dtype), Arithmetic::round(self.im, dtype))
    }

    fn rounds(dtype: DType) -> bool {
        f64::rounds(dtype)
    }

    fn decode(dtype: DType, bytes: &[u8]) -> Self {
        if !dtype.is_complex() {
            return Complex::new(f64::decode(dtype, bytes), 0.0);
        }
        let half = (dtype.bytes() / 2) as usize;
        Complex::new(f64::decode(dtype, bytes), f64::decode(dtype, bytes.get(half..).unwrap_or_default()))
    }

    fn encode(self, dtype: DType, bytes: &mut [u8]) {
        self.re.encode(dtype, bytes);
        if dtype.is_complex()
            && let Some(rest) = bytes.get_mut((dtype.bytes() / 2) as usize..)
        {
            self.im.encode(dtype, rest);
        }
    }

    fn cell(self) -> Self::Cell {
        [self.re.cell(), self.im.cell()]
    }

    #[inline(always)]
    fn load(cell: &Self::Cell) -> Self {
        Complex::new(f64::load(&cell[0]), f64::load(&cell[1]))
    }

    #[inline(always)]
    fn store(cell: &Self::Cell, value: Self) {
        f64::store(&cell[0], value.re);
        f64::store(&cell[1], value.im);
    }

    fn update(cell: &Self::Cell, update: &dyn Fn(Self) -> Self) {
        f64::update(&cell[0], &|re| update(Complex::new(re, 0.0)).re);
        f64::update(&cell[1], &|im| update(Complex::new(0.0, im)).im);
    }
}
