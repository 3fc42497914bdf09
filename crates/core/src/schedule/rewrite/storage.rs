//! Where buffers are allocated, and where a shared one keeps its elements: the part that all primitives on either share.
//!
//! The axes of a buffer go by the names that the loops of a copy have: `e` in one dimension, `r` and `c` in two. In
//! more, `r` and `c` are the last two, and those before them (a stage, say) are `s`, or `s0`, `s1`, ...

use crate::diag::Diagnosis;
use crate::index::{Index, Interval, Ranges};
use crate::ir::{Buffer, For, Mode, Program, Space, Stmt, walk};
use crate::layout::{Layout, row_major_strides};
use crate::sym::Sym;

/// A shared buffer of known extents, with names for its axes and its present layout over them.
pub(in crate::schedule) struct Storage {
    /// The axes.
    pub axes: Vec<Sym>,
    /// Their extents.
    pub extents: Vec<i64>,
    /// Where the element at the axes is kept.
    pub offset: Index,
}

impl Storage {
    fn of(buffer: &Buffer) -> Result<Storage, Diagnosis> {
        let refuse = |because: &str| {
            Err(Diagnosis::new(format!("`{}` has no layout to choose", buffer.sym)).because(because))
        };
        if buffer.space != Space::Shared {
            return refuse("it is not in shared memory");
        }
        let Some(extents) = buffer.constant_extents() else {
            return refuse("its extents are not constants yet")
                .map_err(|d: Diagnosis| d.instead("apply compute_at first"));
        };
        let axes = axis_names(extents.len());
        let index: Vec<Index> = axes.iter().map(Index::var).collect();
        let offset = match &buffer.layout {
            Some(layout) => layout.apply(&index),
            None => strided(&axes, &row_major_strides(&extents)),
        };
        Ok(Storage { axes, extents, offset })
    }

    /// What the axes can be.
    pub fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::new();
        for (axis, extent) in self.axes.iter().zip(&self.extents) {
            ranges.set(axis, Interval::new(0, (extent - 1).max(0)));
        }
        ranges
    }

    /// The axis of that name.
    ///
    /// # Errors
    /// If there is none, with those that there are.
    pub fn axis(&self, name: &str) -> Result<usize, Diagnosis> {
        self.axes.iter().position(|a| a.name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.axes.iter().map(Sym::name).collect();
            Diagnosis::new(format!("there is no axis `{name}`"))
                .instead(format!("the axes are {}", names.join(", ")))
        })
    }

    /// The stride of each axis, if the layout is nothing but strides.
    pub fn strides(&self) -> Option<Vec<i64>> {
        let strides: Vec<i64> = self.axes.iter().map(|a| self.offset.coefficient(a)).collect();
        (strided(&self.axes, &strides) == self.offset).then_some(strides)
    }
}

/// Refuses a program in which blocks would allocate device memory.
///
/// # Errors
/// The first such buffer.
pub(in crate::schedule) fn none_allocated_by_blocks(program: Program) -> Result<Program, Diagnosis> {
    let mut found = None;
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::For(For { mode: Mode::Block { .. }, body, .. }) = stmt {
            walk::for_each(body, &mut |inner| {
                if let Stmt::Alloc(buffer) = inner
                    && buffer.space == Space::Global
                {
                    found.get_or_insert(buffer.sym.clone());
                }
            });
        }
    });
    match found {
        None => Ok(program),
        Some(buffer) => Err(Diagnosis::new(format!("each block would allocate `{buffer}` in device memory"))
            .because("device memory is allocated by the host, before the launch")
            .instead(format!("apply set_scope({buffer}, reg) or set_scope({buffer}, shared) first"))),
    }
}

/// Whether a loop is one over blocks.
pub(in crate::schedule) fn is_block(l: &For) -> bool {
    matches!(l.mode, Mode::Block { .. })
}

/// Puts an allocation after those that a body starts with.
pub(in crate::schedule) fn insert_alloc(body: &mut Vec<Stmt>, alloc: Buffer) {
    let at = body.iter().position(|s| !matches!(s, Stmt::Alloc(_))).unwrap_or(body.len());
    body.insert(at, Stmt::Alloc(alloc));
}

/// Puts an allocation at the start of the innermost block loop's body.
pub(in crate::schedule) fn at_block_scope(stmts: Vec<Stmt>, alloc: &Buffer) -> Vec<Stmt> {
    stmts
        .into_iter()
        .map(|stmt| match stmt {
            Stmt::For(mut l) if is_block(&l) && super::mentions(&l.body, &alloc.sym) => {
                if matches!(&l.body[..], [Stmt::For(inner)] if is_block(inner)) {
                    l.body = at_block_scope(l.body.take(), alloc).into();
                } else {
                    insert_alloc(&mut l.body, alloc.clone());
                }
                Stmt::For(l)
            }
            mut other => {
                for body in walk::bodies_mut(&mut other) {
                    *body = at_block_scope(body.take(), alloc).into();
                }
                other
            }
        })
        .collect()
}

/// `sum of stride * axis`
pub(in crate::schedule) fn strided(axes: &[Sym], strides: &[i64]) -> Index {
    axes.iter().zip(strides).fold(Index::default(), |sum, (a, s)| &sum + &Index::var(a).scaled(*s))
}

fn axis_names(rank: usize) -> Vec<Sym> {
    let leading = rank.saturating_sub(2);
    (0..rank)
        .map(|i| match (rank - i, leading) {
            (1, _) if rank == 1 => Sym::new("e"),
            (1, _) => Sym::new("c"),
            (2, _) => Sym::new("r"),
            (_, 1) => Sym::new("s"),
            _ => Sym::new(&format!("s{i}")),
        })
        .collect()
}

/// Gives every shared buffer of a name the layout that `place` makes of the one it has.
///
/// # Errors
/// If there is no such buffer, what `place` says, or that two elements would share a place.
pub(in crate::schedule) fn with_layout(
    program: &Program,
    name: &str,
    place: &dyn Fn(&Storage) -> Result<Index, Diagnosis>,
) -> Result<Program, Diagnosis> {
    let mut found = false;
    let mut failure = None;
    let body = walk::rewrite(program.body.clone(), &mut |mut stmt| {
        if let Stmt::Alloc(buffer) = &mut stmt
            && buffer.sym.name() == name
        {
            found = true;
            match layout(buffer, place) {
                Ok(layout) => buffer.layout = layout,
                Err(diagnosis) => failure = Some(diagnosis),
            }
        }
        vec![stmt]
    });
    match failure {
        Some(diagnosis) => Err(diagnosis),
        None if found => Ok(program.with_body(body)),
        None => Err(Diagnosis::new(format!("there is no intermediate buffer `{name}`"))
            .instead("cache_read and cache_write make one; parameters stay as the caller has them")),
    }
}

/// The new layout of a buffer; `None` for plain C order.
fn layout(
    buffer: &Buffer,
    place: &dyn Fn(&Storage) -> Result<Index, Diagnosis>,
) -> Result<Option<Layout>, Diagnosis> {
    let storage = Storage::of(buffer)?;
    let offset = storage.ranges().simplify(&place(&storage)?);
    if offset == strided(&storage.axes, &row_major_strides(&storage.extents)) {
        return Ok(None);
    }
    let layout = Layout { axes: storage.axes, offset };
    layout.span(&storage.extents).map_err(|d| d.at(format!("`{}`", buffer.sym)))?;
    Ok(Some(layout))
}
