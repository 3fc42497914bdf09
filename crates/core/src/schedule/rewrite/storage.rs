//! Where a shared buffer keeps its elements: the part that all primitives on layouts share.
//!
//! The axes of a buffer go by the names that the loops of a copy have: `e` in one dimension, `r` and `c` in two. In
//! more, `r` and `c` are the last two, and those before them (a stage, say) are `s`, or `s0`, `s1`, ...

use crate::diag::Diagnosis;
use crate::index::{Index, Interval, Ranges};
use crate::ir::{Buffer, Program, Space, Stmt, walk};
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
