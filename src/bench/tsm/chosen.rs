//! Points by the kernels that are chosen, beside those of the main figure: products with M and N that differ, rows that
//! are padded and matrices that start anywhere, products so short that launches count, and products in f32 whose numbers
//! may be split.

use warpwright_core::dtype::DType;

use super::job::Wanted;
use super::{Figure, Operation, WIDTHS, length};
use crate::problem::{Alignment, Offsets, Problem, alignment};

/// The short extents of oblong products: M and N of `tsmttsm`, columns of A and of C of `tsmm`. Most are small, some reach
/// what is served, and few are what tiles divide.
pub const SHAPES: [(i64, i64); 8] =
    [(1, 32), (4, 20), (16, 8), (32, 5), (33, 7), (64, 16), (128, 24), (12, 100)];
/// Widths whose rows are padded, where none are named.
pub const STRIDE_WIDTHS: [i64; 5] = [4, 9, 16, 24, 32];
/// Lengths of short products.
pub const LENGTHS: [i64; 3] = [10_000, 100_000, 1_000_000];
/// Widths of short products, where none are named.
pub const SHORT_WIDTHS: [i64; 6] = [1, 4, 8, 16, 32, 64];
/// Where A, B and C start, in elements, so that no two do at the same place of 16 bytes.
const OFFSETS: Offsets = Offsets { a: 1, b: 2, c: 3 };

/// The points of a figure for a product and an element type, at these widths or at its usual ones. Long operands have
/// about `bytes` bytes, padding included, unless the figure is about lengths: those that are named, or the usual ones.
pub fn wanted(
    figure: Figure,
    operation: Operation,
    dtype: DType,
    widths: &[i64],
    lengths: &[i64],
    bytes: usize,
) -> Vec<Wanted> {
    let lengths = if lengths.is_empty() { &LENGTHS[..] } else { lengths };
    let widths = |usual: &'static [i64]| if widths.is_empty() { usual.to_vec() } else { widths.to_vec() };
    let problems: Vec<Problem> = match figure {
        Figure::Shapes => {
            let of = |shape: (i64, i64)| {
                operation.oblong(dtype, shape, length(dtype, shape.0.max(shape.1), bytes))
            };
            SHAPES.into_iter().map(of).collect()
        }
        Figure::Strides => {
            let of = |width: i64| placed(operation, dtype, width, bytes);
            widths(&STRIDE_WIDTHS).into_iter().flat_map(of).collect()
        }
        Figure::Short => {
            let of = |width: i64| lengths.iter().map(move |length| operation.problem(dtype, width, *length));
            widths(&SHORT_WIDTHS).into_iter().flat_map(of).collect()
        }
        Figure::Split if dtype.real() == DType::F32 => {
            let of = |width: i64| operation.problem(dtype, width, length(dtype, width, bytes));
            widths(&WIDTHS).into_iter().map(of).collect()
        }
        Figure::Split | Figure::Widths | Figure::Tiles | Figure::Reductions | Figure::Options => Vec::new(),
    };
    problems.into_iter().map(|problem| Wanted::new(figure, operation, dtype, problem)).collect()
}

/// Products of a width whose long matrices have rows that are padded, and one whose matrices start where wide accesses
/// cannot, if the type has such places.
fn placed(operation: Operation, dtype: DType, width: i64, bytes: usize) -> Vec<Problem> {
    let mut strides = vec![width + 1, width + 3, (width / 8 + 1) * 8];
    strides.sort_unstable();
    strides.dedup();
    let padded = strides.into_iter().map(|stride| {
        let mut problem = operation.problem(dtype, width, length(dtype, stride, bytes));
        problem.ld.a = stride;
        match operation {
            Operation::Tsmttsm => problem.ld.b = stride,
            Operation::Tsmm => problem.ld.c = stride,
        }
        problem
    });
    let mut problems: Vec<Problem> = padded.collect();
    if alignment(dtype.bytes()) < Alignment::MOST {
        let dense = operation.problem(dtype, width, length(dtype, width, bytes));
        problems.push(Problem { offset: OFFSETS, ..dense });
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::{LENGTHS, SHAPES, wanted};
    use crate::bench::tsm::job::{Maker, Wanted};
    use crate::bench::tsm::{Figure, Operation};
    use crate::choose;
    use crate::gpu::stage::shortened;
    use std::collections::HashSet;
    use warpwright_core::dtype::DType;
    use warpwright_core::target;

    const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

    fn all(figure: Figure, widths: &[i64]) -> Vec<Wanted> {
        let of = |operation| {
            DTYPES.into_iter().flat_map(move |dtype| wanted(figure, operation, dtype, widths, &[], 1 << 30))
        };
        Operation::ALL.into_iter().flat_map(of).collect()
    }

    #[test]
    fn every_point_stands_once_and_is_a_product_of_its_family() {
        for figure in Figure::CHOSEN {
            let points = all(figure, &[]);
            let keys: HashSet<_> = points.iter().map(|w| w.key.clone()).collect();
            assert_eq!(keys.len(), points.len(), "{figure:?}");
            for w in &points {
                assert!(w.choice.is_none(), "kernels are those that are chosen");
                assert_eq!(choose::family(&w.problem).unwrap().name, w.key.operation.name());
                w.problem.check().unwrap();
                assert!(w.problem.stored_bytes().into_iter().all(|bytes| bytes <= 1 << 30));
                assert_eq!(w.key.placement.is_some(), figure == Figure::Strides);
                let short = shortened(w.family().unwrap(), &w.problem).unwrap().shape;
                let (m, k) = (w.problem.shape.m % short.m, w.problem.shape.k % short.k);
                assert!(figure == Figure::Short || (m, k) == (0, 0), "long operands repeat short ones");
            }
        }
        assert_eq!(all(Figure::Shapes, &[]).len(), 8 * SHAPES.len());
        // Three strides, and for all types but c128 a start.
        assert_eq!(all(Figure::Strides, &[4]).len(), 2 * (4 * 3 + 3));
        assert_eq!(all(Figure::Strides, &[7]).len(), 2 * (4 * 2 + 3), "8 stands once");
        assert_eq!(all(Figure::Short, &[4]).len(), 8 * LENGTHS.len());
        let one = wanted(Figure::Short, Operation::Tsmm, DType::F64, &[4, 8], &[777], 1 << 30);
        assert_eq!(one.iter().map(|w| w.problem.shape.m).collect::<Vec<_>>(), [777, 777]);
    }

    #[test]
    fn there_is_a_kernel_for_every_placement() {
        let maker = Maker::without_wisdom(target::DEFAULT);
        for wanted in all(Figure::Strides, &[9]) {
            let made = maker.make(&wanted);
            assert!(made.is_ok(), "{:?}: {:?}", wanted.key, made.err());
        }
    }
}
