//! What memory a matrix touches whose rows stand apart.

/// Bytes of a matrix where its rows follow each other; else of all pieces of memory, of `piece` bytes each, that hold some of it. `stride` and `before`
/// are the elements from row to row and before the first.
pub(crate) fn touched_bytes(
    (rows, columns): (i64, i64),
    stride: i64,
    before: i64,
    size: i64,
    piece: i64,
) -> f64 {
    if stride == columns || rows <= 1 || columns == 0 {
        return rows as f64 * columns as f64 * size as f64;
    }
    let up_to = |rows: i64| pieces(rows, columns * size, stride * size, before * size, piece);
    // After as many rows as a piece has bytes everything stands in the same places of its pieces again.
    let (first, period) = (rows % piece + piece, rows / piece - 1);
    if period <= 0 {
        return (piece * up_to(rows)) as f64;
    }
    let repeated = up_to(2 * piece) - up_to(piece);
    piece as f64 * (up_to(first) as f64 + period as f64 * repeated as f64)
}

/// Pieces that hold something of `rows` rows of so many bytes, `stride` bytes apart, that begin `before` bytes behind the start of a piece.
fn pieces(rows: i64, bytes: i64, stride: i64, before: i64, piece: i64) -> i64 {
    let (mut all, mut next) = (0, 0);
    for row in 0..rows {
        let start = before + row * stride;
        let (first, behind) = ((start / piece).max(next), (start + bytes - 1) / piece + 1);
        all += (behind - first).max(0);
        next = behind;
    }
    all
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
