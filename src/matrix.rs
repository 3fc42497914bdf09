//! Matrices in host memory: an element type, extents, a row stride, and bytes.

use half::{bf16, f16};
use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

/// A row-major matrix. Elements are stored little-endian, as every supported host and GPU has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    dtype: DType,
    rows: usize,
    columns: usize,
    stride: usize,
    bytes: Vec<u8>,
}

impl Matrix {
    /// A matrix of zeros, with `stride` elements from the start of a row to the start of the next.
    ///
    /// # Panics
    ///
    /// Where `stride` is less than `columns`.
    pub fn zeros(dtype: DType, rows: usize, columns: usize, stride: usize) -> Result<Matrix, Diagnosis> {
        assert!(stride >= columns, "a row of {columns} elements does not fit a stride of {stride}");
        let too_large = || {
            Diagnosis::new(format!("there is no memory for a {rows}x{columns} matrix of {dtype}"))
                .instead("choose a smaller size")
        };
        let elements = rows.checked_mul(stride).ok_or_else(too_large)?;
        let size = elements.checked_mul(dtype.bytes() as usize).ok_or_else(too_large)?;
        // Pages that the system gives zeroed are not touched here, where one thread would do it.
        Vec::<u8>::new().try_reserve_exact(size).map_err(|_| too_large())?;
        Ok(Matrix { dtype, rows, columns, stride, bytes: vec![0; size] })
    }

    /// A dense matrix around bytes that are already in place.
    ///
    /// # Panics
    ///
    /// Where the number of bytes is not `rows * columns` elements.
    pub fn dense(dtype: DType, rows: usize, columns: usize, bytes: Vec<u8>) -> Matrix {
        assert_eq!(
            bytes.len(),
            rows * columns * dtype.bytes() as usize,
            "bytes of a {rows}x{columns} matrix of {dtype}"
        );
        Matrix { dtype, rows, columns, stride: columns, bytes }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Elements from the start of a row to the start of the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The storage, padding between rows included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The storage, to be written by whoever computes the matrix.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The same elements with another row stride; the padding is zero.
    pub fn with_stride(&self, stride: usize) -> Result<Matrix, Diagnosis> {
        let mut wider = Matrix::zeros(self.dtype, self.rows, self.columns, stride)?;
        for row in 0..self.rows {
            let target = wider.row_range(row);
            wider.bytes[target].copy_from_slice(&self.bytes[self.row_range(row)]);
        }
        Ok(wider)
    }

    /// One element; a real one has no imaginary part.
    pub fn get(&self, row: usize, column: usize) -> Complex64 {
        decode(self.dtype, &self.bytes[self.element_range(row, column)])
    }

    /// Writes one element, rounded to the element type.
    pub fn set(&mut self, row: usize, column: usize, value: Complex64) {
        let range = self.element_range(row, column);
        encode(self.dtype, value, &mut self.bytes[range]);
    }

    /// Writes every element, row by row.
    pub fn fill(&mut self, mut value: impl FnMut(usize, usize) -> Complex64) {
        // With no columns there may be astronomically many rows.
        for row in 0..if self.columns == 0 { 0 } else { self.rows } {
            for column in 0..self.columns {
                self.set(row, column, value(row, column));
            }
        }
    }

    /// Writes every element, bands of so many rows side by side on all cores. `values` makes what gives the elements of
    /// a band, row by row, from the number of the band.
    pub fn fill_in_bands<F: FnMut() -> Complex64>(
        &mut self,
        rows_of_a_band: usize,
        values: impl Fn(usize) -> F + Sync,
    ) {
        let size = self.dtype.bytes() as usize;
        let (dtype, row_bytes, used) = (self.dtype, self.stride * size, self.columns * size);
        if used == 0 {
            return;
        }
        let bands = self.bytes.chunks_mut(rows_of_a_band * row_bytes).enumerate();
        let fill = |(number, band): (usize, &mut [u8])| {
            let mut value = values(number);
            for row in band.chunks_mut(row_bytes) {
                row[..used].chunks_exact_mut(size).for_each(|e| encode(dtype, value(), e));
            }
        };
        if bands.len() == 1 {
            return bands.for_each(fill);
        }
        let bands = std::sync::Mutex::new(bands);
        let next = || bands.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| std::iter::from_fn(next).for_each(fill));
            }
        });
    }

    /// The bytes of one row, padding left out.
    pub fn row_range(&self, row: usize) -> std::ops::Range<usize> {
        let size = self.dtype.bytes() as usize;
        row * self.stride * size..(row * self.stride + self.columns) * size
    }

    fn element_range(&self, row: usize, column: usize) -> std::ops::Range<usize> {
        debug_assert!(row < self.rows && column < self.columns);
        let size = self.dtype.bytes() as usize;
        let start = (row * self.stride + column) * size;
        start..start + size
    }
}

/// The value of one stored element.
pub fn decode(dtype: DType, bytes: &[u8]) -> Complex64 {
    let real = |value: f64| Complex64::new(value, 0.0);
    match dtype {
        DType::F16 => real(f16::from_le_bytes(array(bytes)).to_f64()),
        DType::Bf16 => real(bf16::from_le_bytes(array(bytes)).to_f64()),
        DType::F32 => real(f64::from(f32::from_le_bytes(array(bytes)))),
        DType::F64 => real(f64::from_le_bytes(array(bytes))),
        DType::I32 => real(f64::from(i32::from_le_bytes(array(bytes)))),
        DType::C64 => Complex64::new(
            f64::from(f32::from_le_bytes(array(&bytes[..4]))),
            f64::from(f32::from_le_bytes(array(&bytes[4..]))),
        ),
        DType::C128 => {
            Complex64::new(f64::from_le_bytes(array(&bytes[..8])), f64::from_le_bytes(array(&bytes[8..])))
        }
    }
}

/// Stores one element, rounded to nearest; an integer element takes the low 32 bits of the whole part.
pub fn encode(dtype: DType, value: Complex64, bytes: &mut [u8]) {
    match dtype {
        DType::F16 => bytes.copy_from_slice(&f16::from_f64(value.re).to_le_bytes()),
        DType::Bf16 => bytes.copy_from_slice(&bf16::from_f64(value.re).to_le_bytes()),
        DType::F32 => bytes.copy_from_slice(&(value.re as f32).to_le_bytes()),
        DType::F64 => bytes.copy_from_slice(&value.re.to_le_bytes()),
        DType::I32 => bytes.copy_from_slice(&(value.re as i64 as i32).to_le_bytes()),
        DType::C64 => {
            bytes[..4].copy_from_slice(&(value.re as f32).to_le_bytes());
            bytes[4..].copy_from_slice(&(value.im as f32).to_le_bytes());
        }
        DType::C128 => {
            bytes[..8].copy_from_slice(&value.re.to_le_bytes());
            bytes[8..].copy_from_slice(&value.im.to_le_bytes());
        }
    }
}

/// The bytes of one number. Callers pass exactly as many as the number has.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(bytes);
    number
}

#[cfg(test)]
mod tests {
    use super::Matrix;
    use num_complex::Complex64;
    use warpwright_core::dtype::DType;

    #[test]
    fn elements_come_back_rounded_to_their_type() {
        for (dtype, stored) in [
            (DType::F16, Complex64::new(0.333251953125, 0.0)),
            (DType::Bf16, Complex64::new(0.333984375, 0.0)),
            (DType::F32, Complex64::new(f64::from(1.0f32 / 3.0), 0.0)),
            (DType::F64, Complex64::new(1.0 / 3.0, 0.0)),
            (DType::I32, Complex64::new(0.0, 0.0)),
            (DType::C64, Complex64::new(f64::from(1.0f32 / 3.0), -2.0)),
            (DType::C128, Complex64::new(1.0 / 3.0, -2.0)),
        ] {
            let mut matrix = Matrix::zeros(dtype, 2, 3, 4).unwrap();
            matrix.set(1, 2, Complex64::new(1.0 / 3.0, -2.0));
            assert_eq!(matrix.get(1, 2), stored, "{dtype}");
            assert_eq!(matrix.get(1, 1), Complex64::new(0.0, 0.0), "{dtype}");
        }
    }

    #[test]
    fn another_stride_keeps_the_elements() {
        let mut matrix = Matrix::zeros(DType::I32, 3, 2, 2).unwrap();
        matrix.fill(|i, j| Complex64::new((10 * i + j) as f64, 0.0));
        let wider = matrix.with_stride(5).unwrap();
        assert_eq!(wider.bytes().len(), 3 * 5 * 4);
        assert_eq!(wider.get(2, 1).re, 21.0);
        assert_eq!(wider.with_stride(2).unwrap(), matrix);
    }

    #[test]
    fn a_matrix_that_cannot_be_held_is_refused() {
        assert!(Matrix::zeros(DType::F64, usize::MAX / 2, 8, 8).is_err());
        let message = Matrix::zeros(DType::F64, 1 << 40, 1 << 20, 1 << 20).unwrap_err().to_string();
        assert!(message.contains("no memory"), "{message}");
    }
}
