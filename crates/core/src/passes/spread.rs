//! Gives each range of threads its part of the shared memory that is allocated inside a thread loop.
//!
//! *Takes* any program without virtual threads. *Gives* one in which no shared buffer stands inside a thread loop: it
//! has moved out to the block, with a dimension for each thread loop around it, and every range of threads works on
//! its own part. *Stands* after registers have become shared memory and before statements are given to threads and
//! barriers placed: from here on shared memory belongs to the block (rule 4).
//!
//! ```
//! use warpwright_core::ir::{parse, print};
//! use warpwright_core::passes::spread::spread;
//!
//! let before = "
//! program p(x: in f32[4, 32], y: out f32[4, 32])
//! {
//!   for b in block.x(1) {
//!     for w in threads(4@32) {
//!       alloc s: f32[32] shared
//!       for t in threads(32@1) { s[t] = x[w, t] }
//!       for t in threads(32@1) { y[w, t] = s[31 - t] }
//!     }
//!   }
//! }";
//! let after = "
//! program p(x: in f32[4, 32], y: out f32[4, 32])
//! {
//!   for b in block.x(1) {
//!     alloc s: f32[4, 32] shared
//!     for w in threads(4@32) {
//!       for t in threads(32@1) { s[w, t] = x[w, t] }
//!       for t in threads(32@1) { y[w, t] = s[w, 31 - t] }
//!     }
//!   }
//! }";
//! let (before, after) = (parse::program(before)?, parse::program(after)?);
//! assert_eq!(print::program(&spread(before)?), print::program(&after));
//! # Ok::<(), warpwright_core::diag::Diagnosis>(())
//! ```
//!
//! The parts of ranges begin at multiples of 16 bytes, as buffers do.

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{
    ALIGNMENT, Access, Assign, Buffer, Dim, Instruction, Operand, Own, Program, Space, Span, Stmt, Value,
    Window, walk,
};
use crate::layout::{Layout, row_major_strides};
use crate::sym::Sym;

/// Moves shared buffers out of thread loops.
///
/// # Errors
/// Such a buffer whose size is not a constant, or whose layout is none.
pub fn spread(program: Program) -> Result<Program, Diagnosis> {
    let mut program = program;
    let mut found = Found::default();
    program.body = list(program.body, &mut found)?;
    if !found.ranges.is_empty() {
        program.body = walk::rewrite(program.body, &mut |stmt| vec![found.in_own_part(stmt)]);
    }
    Ok(program)
}

/// The shared buffers that stood inside thread loops, with the variables of those loops, outermost first.
#[derive(Default)]
struct Found {
    ranges: HashMap<Sym, Vec<Sym>>,
}

/// A list at the level of the block: before each thread loop, what is allocated inside it.
fn list(stmts: Vec<Stmt>, found: &mut Found) -> Result<Vec<Stmt>, Diagnosis> {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        if matches!(&stmt, Stmt::For(l) if l.threads().is_some()) {
            let mut moved = Vec::new();
            found.take_out(&mut stmt, &mut Vec::new(), &mut moved)?;
            out.extend(moved.into_iter().map(Stmt::Alloc));
        } else {
            for body in walk::bodies_mut(&mut stmt) {
                if allocates_shared(body) {
                    *body = list(body.take(), found)?.into();
                }
            }
        }
        out.push(stmt);
    }
    Ok(out)
}

/// Whether shared memory is allocated at any depth.
fn allocates_shared(stmts: &[Stmt]) -> bool {
    let mut shared = false;
    walk::for_each(stmts, &mut |stmt| {
        shared |= matches!(stmt, Stmt::Alloc(buffer) if buffer.space == Space::Shared);
    });
    shared
}

impl Found {
    /// Takes the shared buffers out of a statement inside the thread loops `around`, and adds them to `moved`.
    fn take_out(
        &mut self,
        stmt: &mut Stmt,
        around: &mut Vec<(Sym, i64)>,
        moved: &mut Vec<Buffer>,
    ) -> Result<(), Diagnosis> {
        let threads = match stmt {
            Stmt::For(l) => l.threads().map(|(count, _)| (l.var.clone(), count)),
            _ => None,
        };
        let outside = around.len();
        around.extend(threads);
        for body in walk::bodies_mut(stmt) {
            if !allocates_shared(body) {
                continue;
            }
            let mut kept = Vec::with_capacity(body.len());
            for mut inner in body.take() {
                match inner {
                    Stmt::Alloc(buffer) if buffer.space == Space::Shared => {
                        self.ranges
                            .insert(buffer.sym.clone(), around.iter().map(|(var, _)| var.clone()).collect());
                        moved.push(for_each_range(buffer, around)?);
                    }
                    _ => {
                        self.take_out(&mut inner, around, moved)?;
                        kept.push(inner);
                    }
                }
            }
            *body = kept.into();
        }
        around.truncate(outside);
        Ok(())
    }

    /// A statement on the part of its range.
    fn in_own_part(&self, stmt: Stmt) -> Stmt {
        match stmt {
            Stmt::Assign(a) => Stmt::Assign(Assign {
                target: self.access(&a.target),
                value: a.value.map_accesses(&|x| Value::Load(self.access(x)), &|c| c.clone()),
                ..a
            }),
            Stmt::Instruction(i) => {
                let operand = |o: Operand| match o {
                    Operand::Window(w) => Operand::Window(self.window(w)),
                    scalar => scalar,
                };
                Stmt::Instruction(Instruction {
                    operands: i.operands.into_iter().map(operand).collect(),
                    ..i
                })
            }
            Stmt::Own(o) => Stmt::Own(Own { window: self.window(o.window), ..o }),
            other => other,
        }
    }

    /// The variables that select a range's part of a buffer.
    fn part(&self, buffer: &Sym) -> impl DoubleEndedIterator<Item = Index> + use<'_> {
        self.ranges.get(buffer).into_iter().flatten().map(Index::var)
    }

    fn access(&self, access: &Access) -> Access {
        let mut access = access.clone();
        access.index.splice(0..0, self.part(&access.buffer).collect::<Vec<_>>());
        access
    }

    fn window(&self, mut window: Window) -> Window {
        window.dims.splice(0..0, self.part(&window.buffer).map(Span::At).collect::<Vec<_>>());
        window
    }
}

/// The buffer with a part for each range of the thread loops.
fn for_each_range(mut buffer: Buffer, around: &[(Sym, i64)]) -> Result<Buffer, Diagnosis> {
    let Some(extents) = buffer.constant_extents() else {
        return Err(Diagnosis::new(format!("the extents of `{}` are not constants", buffer.sym))
            .because("shared memory is allocated when the kernel is compiled"));
    };
    let elements = match &buffer.layout {
        Some(layout) => layout.span(&extents)?,
        None => extents.iter().product(),
    };
    let whole = ALIGNMENT / buffer.dtype.bytes();
    let part = (elements + whole - 1) / whole * whole;
    let counts: Vec<i64> = around.iter().map(|(_, count)| *count).collect();
    if part != elements || buffer.layout.is_some() {
        let inner = buffer.layout.take().unwrap_or_else(|| Layout::row_major(&extents));
        let starts = Layout::strided(&row_major_strides(&counts));
        let axes: Vec<Sym> = around.iter().map(|(var, _)| var.fresh()).collect();
        let start = starts.apply(&axes.iter().map(Index::var).collect::<Vec<_>>());
        let offset = &start.scaled(part) + &inner.offset;
        buffer.layout = Some(Layout { axes: axes.into_iter().chain(inner.axes).collect(), offset });
    }
    buffer.dims.splice(0..0, counts.into_iter().map(Dim::new));
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::spread;
    use crate::ir::parse;

    #[test]
    fn parts_begin_at_whole_pieces_and_keep_their_layout() {
        let spread_out = |alloc: &str| {
            let text = format!(
                "program p(x: in f32[6, 32], y: out f32[6, 32]) {{ for b in block.x(1) {{
                    for v in threads(3@64) {{ for w in threads(2@32) {{
                        {alloc}
                        for t in threads(5@1) {{ s[t, 0] = x[2*v + w, t] }}
                        for t in threads(5@1) {{ y[2*v + w, t] = s[4 - t, 0] }}
                    }} }}
                }} }}"
            );
            spread(parse::program(&text).unwrap()).unwrap().to_string()
        };
        let dense = spread_out("alloc s: f32[5, 1] shared");
        assert!(dense.contains("alloc s: f32[3, 2, 5, 1] shared layout"), "{dense}");
        assert!(dense.contains("16*v + 8*w + "), "5 numbers take the room of 8:\n{dense}");
        assert!(dense.contains("s[v, w, t, 0] = "), "{dense}");
        let padded = spread_out("alloc s: f32[5, 1] shared layout (r, c) => 3*r + c");
        assert!(padded.contains("32*v + 16*w + 3*r + c"), "13 numbers take the room of 16:\n{padded}");
    }
}
