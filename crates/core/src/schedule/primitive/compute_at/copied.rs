//! What a stage copies, if it is a plain copy: then the bounds of the source say which of its elements exist.

use crate::index::{Comparison, Cond, Index};
use crate::ir::{Assign, AssignOp, Buffer, Stmt};
use crate::schedule::rewrite::guarded_load;
use crate::sym::Sym;

/// What a stage copies.
pub(super) enum Copied<'a> {
    /// The elements of a buffer, each at its own indices.
    AsIs(&'a Sym),
    /// A buffer of one dimension, in rows.
    InRows,
    /// The same with what is left over behind the last whole row, and behind that a number. The elements of the source are those for
    /// which this holds.
    WithRest { exists: Cond, otherwise: f64 },
    /// A buffer of one dimension, in rows of so many elements that start with the piece in which they start.
    InPieces { columns: i64, piece: i64 },
}

impl Copied<'_> {
    /// What the nests of a stage, each of these loops around these statements, copy to its buffer.
    pub(super) fn of<'a>(buffer: &Buffer, nests: &'a [(Vec<Sym>, Vec<Stmt>)]) -> Option<Copied<'a>> {
        let [(vars, inner)] = nests else { return None };
        let [Stmt::Assign(Assign { op: AssignOp::Store, value, .. })] = &inner[..] else { return None };
        let (guard, access, otherwise) = guarded_load(value)?;
        let index: Vec<Index> = vars.iter().map(Index::var).collect();
        match (&access.index[..], &index[..]) {
            ([from], [r, p, v]) => {
                let [rows, _, piece] = &buffer.dims[..] else { return None };
                let piece = piece.extent.as_constant()?;
                // The elements of a row, told by where the first row starts that starts with a piece.
                let columns = from.eval(&|s| Some(if *s == vars[0] { piece } else { 0 })).ok()? / piece;
                let start = &(&r.scaled(columns).div(piece) + p).scaled(piece) + v;
                let exists = Cond::lt(start.clone(), rows.extent.scaled(columns));
                (*from == start && guard == exists).then_some(Copied::InPieces { columns, piece })
            }
            (from, to) if from == to && guard == Cond::TRUE => Some(Copied::AsIs(&access.buffer)),
            ([from], [r, c]) => {
                let columns = buffer.dims[1].extent.as_constant()?;
                // The elements of a row; the copy of one may go on with some of the next.
                let row = from.eval(&|s| Some(i64::from(*s == vars[0]))).ok()?;
                if row < 1 || row > columns || *from != &r.scaled(row) + c {
                    return None;
                }
                if guard == Cond::TRUE {
                    return (row == columns).then_some(Copied::InRows);
                }
                // All rows of the source and no more, so that there is nothing behind the last one.
                let elements = bound_of(from, &guard).filter(|e| !vars.iter().any(|v| e.mentions(v)))?;
                let all = buffer.dims[0].extent == elements.ceil_div(row);
                all.then_some(Copied::WithRest { exists: guard, otherwise })
            }
            _ => None,
        }
    }

    /// Whether it has this number where it copies nothing.
    pub(super) fn fills_with(&self, number: f64) -> bool {
        match self {
            Copied::WithRest { otherwise, .. } => *otherwise == number,
            _ => true,
        }
    }
}

/// What an index is less than if a condition says that and nothing else.
fn bound_of(index: &Index, cond: &Cond) -> Option<Index> {
    match cond {
        Cond::Compare(Comparison::Lt, x, y) => {
            let bound = index - &(x - y);
            (Cond::lt(index.clone(), bound.clone()) == *cond).then_some(bound)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    /// The program in which y reads so many rows of x under a condition, once the rows are copied in each iteration.
    fn computed(rows: &str, cond: &str) -> String {
        let text = format!(
            "program p(n: size, x: in f32[3*n], y: out f32[n]) {{
               alloc s: f32[{rows}, 6] reg
               for r in 0..{rows}, c in 0..6 {{ s[r, c] = 6*r + c < 3*n ? x[6*r + c] : 0 }}
               for i in 0..n {{ y[i] = 0  for k in 0..6 {{ y[i] += {cond} ? s[i, k] : 0 }} }}
             }}"
        );
        let before = parse::program(&text).unwrap_or_else(|e| panic!("{e}"));
        let after = Schedule::run(before, "compute_at(s, y.i)").unwrap_or_else(|e| panic!("{e}"));
        after.program().to_string()
    }

    #[test]
    fn conditions_that_keep_inside_what_is_left_over_are_dropped() {
        let text = computed("ceil(n, 2)", "6*i + k < 3*n");
        assert!(text.contains("y[i] += s[0, k]"), "{text}");
        let text = computed("ceil(n, 2)", "6*i + k + 1 < 3*n");
        assert!(text.contains("y[i] += 6*i + k + 1 < 3*n ? s[0, k] : 0"), "{text}");
        // There is more of x than of these rows, and a tile of them may hold it.
        let text = computed("1", "i < 1");
        assert!(text.contains("y[i] += i < 1 ? s[0, k] : 0"), "{text}");
    }
}
