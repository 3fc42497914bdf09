//! Corners: the address of the first element of a register tile in a tensor, computed once before the unrolled loops
//! over the tile.
//!
//! ```text
//! for i { for j { C[(long long)(m + i)*ldc + n + j] = acc[i][j]; } }
//! =>
//! float* c = &C[(long long)m*ldc + n];
//! for i { for j { c[(long long)i*ldc + j] = acc[i][j]; } }
//! ```
//!
//! Not inside loops over the summed dimension: there the compiler does better by itself.

use super::body::Body;
use super::text::Strength;
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{Access, For, Mode, Stmt, walk};
use crate::sym::Sym;

/// The first element of a tile.
#[derive(Clone, Debug)]
pub(super) struct Corner {
    first: Access,
    pub(super) name: String,
}

impl Body<'_> {
    /// Declares the corners of the tiles that an outermost unrolled loop goes over. Returns how many corners were known before,
    /// for [`Body::forget_corners`].
    pub(super) fn declare_corners(&mut self, l: &For) -> Result<usize, Diagnosis> {
        let known = self.corners.len();
        if !self.serial_loops.is_empty() || known > 0 || !is_unrolled(&l.body) {
            return Ok(known);
        }
        let stmt = Stmt::For(l.clone());
        let mut inner = walk::binders(std::slice::from_ref(&stmt));
        inner.push(l.var.clone());
        let (mut accesses, mut written) = (Vec::new(), Vec::new());
        walk::for_each(&l.body, &mut |s| {
            if let Stmt::Assign(a) = s {
                a.value.for_each_access(&mut |access| accesses.push(access.clone()));
                accesses.push(a.target.clone());
                written.push(a.target.buffer.clone());
            }
        });
        for access in accesses {
            let Some(first) = self.first_of_tile(&access, &inner)? else { continue };
            if self.corners.iter().any(|c| c.first == first) {
                continue;
            }
            let address = self.address(&first)?;
            let c_type = self.c_type(self.unit.buffer(&first.buffer)?.dtype);
            let constant = if written.contains(&first.buffer) { "" } else { "const " };
            let name = self.names.reserve(&first.buffer.name().to_lowercase());
            self.line(format!("{constant}{c_type}* {name} = {address};"));
            self.corners.push(Corner { first, name });
        }
        Ok(known)
    }

    /// Ends the scope of the corners declared since.
    pub(super) fn forget_corners(&mut self, known: usize) {
        self.corners.truncate(known);
    }

    /// The element from which an access to a matrix counts within the loops that bind `inner`.
    fn first_of_tile(&self, access: &Access, inner: &[Sym]) -> Result<Option<Access>, Diagnosis> {
        let buffer = self.unit.buffer(&access.buffer)?;
        if !buffer.is_global() || buffer.row_stride.is_none() {
            return Ok(None);
        }
        let mut moves = false;
        let index: Vec<Index> = access
            .index
            .iter()
            .map(|i| {
                let i = self.ranges.simplify(i);
                let outer = i.terms().iter().filter(|(atom, _)| {
                    let mut is_inner = false;
                    Index::atom(atom.clone()).for_each_var(&mut |s| is_inner |= inner.contains(s));
                    moves |= is_inner;
                    !is_inner
                });
                outer.fold(Index::default(), |sum, (a, c)| &sum + &Index::atom(a.clone()).scaled(*c))
            })
            .collect();
        let is_corner = index.iter().all(|i| !i.terms().is_empty());
        Ok((moves && is_corner).then(|| Access { buffer: access.buffer.clone(), index }))
    }

    /// An element counted from a known corner.
    pub(super) fn element_by_corner(&mut self, access: &Access, stride: &Sym) -> Option<String> {
        let offset = |corner: &Corner| -> Option<[Index; 2]> {
            let [row, column] = &access.index[..] else { return None };
            let [first_row, first_column] = &corner.first.index[..] else { return None };
            let fits = |i: &Index, first: &Index| {
                let i = self.ranges.simplify(i);
                let rest = &i - first;
                (rest.terms().len() + first.terms().len() == i.terms().len()).then_some(rest)
            };
            Some([fits(row, first_row)?, fits(column, first_column)?])
        };
        let corners = self.corners.iter().filter(|c| c.first.buffer == access.buffer);
        let (name, [row, column]) = corners.rev().find_map(|c| Some((c.name.clone(), offset(c)?)))?;
        Some(self.counted_from(&name, &row, &column, Some(stride)))
    }

    /// The element so many rows and columns from where a pointer is.
    pub(super) fn counted_from(
        &mut self,
        name: &str,
        row: &Index,
        column: &Index,
        stride: Option<&Sym>,
    ) -> String {
        let column = self.index(column);
        let offset = match (row.as_constant(), stride) {
            (Some(0), _) | (_, None) => column.text,
            (_, Some(stride)) => {
                let row = self.long_index(row).at_least(Strength::Product);
                let product = format!("{row}*{}", self.variable(stride).text);
                super::element::added(product, column).text
            }
        };
        format!("{name}[{offset}]")
    }
}

/// Whether a body has loops that disappear when they are unrolled, and no others.
fn is_unrolled(body: &[Stmt]) -> bool {
    let mut unrolled = true;
    walk::for_each(body, &mut |stmt| {
        unrolled &= match stmt {
            Stmt::For(l) => matches!(l.mode, Mode::Unroll | Mode::Vector),
            Stmt::Tasks(_) | Stmt::On(_) => false,
            _ => true,
        };
    });
    unrolled
}
