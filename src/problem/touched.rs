//! What memory a matrix touches whose rows stand apart.

use warpwright_core::model::rows::Rows;

/// Bytes of a matrix where its rows follow each other; else of all pieces of memory, of `piece` bytes each, that hold some of it. `stride` and `before`
/// are the elements from row to row and before the first.
pub(crate) fn touched_bytes(
    (rows, columns): (i64, i64),
    stride: i64,
    before: i64,
    size: i64,
    piece: i64,
) -> f64 {
    match spaced((rows, columns), stride, before, size) {
        None => rows as f64 * columns as f64 * size as f64,
        Some(spaced) => piece as f64 * spaced.pieces(rows, piece).touched,
    }
}

/// The same of the bytes that device memory moves where the matrix is written: sectors that it shares with gaps are read first, by so many bytes each if they
/// are `brought` to the second-level cache before.
pub(crate) fn moved_to_write(
    (rows, columns): (i64, i64),
    stride: i64,
    before: i64,
    size: i64,
    brought: Option<i64>,
) -> f64 {
    match spaced((rows, columns), stride, before, size) {
        None => rows as f64 * columns as f64 * size as f64,
        Some(spaced) => spaced.moved_to_write(rows, brought),
    }
}

/// The rows of a matrix, if they stand apart.
fn spaced((rows, columns): (i64, i64), stride: i64, before: i64, size: i64) -> Option<Rows> {
    let apart = stride != columns && rows > 1 && columns > 0;
    apart.then_some(Rows { bytes: columns * size, stride: stride * size, before: before * size })
}

#[cfg(test)]
mod tests {
    use super::touched_bytes;

    #[test]
    fn of_padded_rows_the_pieces_that_hold_them_count() {
        // Every sector of a short matrix, marked byte by byte.
        let marked = |rows: i64, columns: i64, stride: i64, before: i64, size: i64, piece: i64| {
            let bytes = (0..rows).flat_map(|r| {
                let start = (before + r * stride) * size;
                start..start + columns * size
            });
            piece as f64 * bytes.map(|b| b / piece).collect::<std::collections::HashSet<_>>().len() as f64
        };
        for rows in [2, 31, 64, 65, 1000, 1023] {
            for (columns, stride, before) in [(4, 5, 0), (4, 8, 1), (1, 3, 0), (9, 12, 2), (31, 40, 3)] {
                for (size, piece) in [(4, 32), (8, 32), (16, 32), (4, 64), (8, 64)] {
                    let counted = touched_bytes((rows, columns), stride, before, size, piece);
                    assert_eq!(
                        counted,
                        marked(rows, columns, stride, before, size, piece),
                        "{rows} {columns} {stride}"
                    );
                }
            }
        }
        assert_eq!(touched_bytes((1000, 3), 3, 1, 4, 32), 12000.0, "what is dense counts as it is");
    }
}
