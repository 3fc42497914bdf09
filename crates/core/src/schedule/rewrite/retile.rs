//! Registers of a warp in fragments: the last two dimensions of a buffer cut into tiles, and the nests that touch its
//! elements turned into loops over what each thread owns.
//!
//! ```text
//! alloc acc: f32[64, 64] reg                    alloc acc: f32[4, 8, 16, 8] reg frag D16x8
//! for i in 0..64, j in 0..64 {           =>     for io in 0..4, jo in 0..8 {
//!   acc[i, j] = 0                                 for (i, j) in own acc[io, jo, :, :] {
//! }                                                 acc[io, jo, i, j] = 0 } }
//! ```

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{
    Access, Assign, Body, Buffer, Dim, For, If, Instruction, Mode, Operand, Own, Range, Space, Span, Stmt,
    Value, Window, walk,
};
use crate::layout::Fragment;
use crate::schedule::facts::Facts;
use crate::sym::Sym;

use super::{Place, head, independent, inline_lets, map_elements, rewrite};

/// A buffer that is to be kept in fragments.
pub(in crate::schedule) struct Tiling {
    /// The buffer, as it is before.
    pub buffer: Buffer,
    /// The fragment.
    pub fragment: &'static Fragment,
    rows: i64,
    columns: i64,
    /// How many tiles below one another and side by side.
    counts: (i64, i64),
}

impl Tiling {
    /// The tiling of a buffer.
    ///
    /// # Errors
    /// Why the fragment does not fit.
    pub fn of(buffer: &Buffer, fragment: &'static Fragment) -> Result<Tiling, String> {
        let rows = fragment.rows;
        let [.., r, c] = &buffer.dims[..] else {
            return Err(format!("`{}` has fewer than two dimensions", buffer.sym));
        };
        // A fragment of any width is as wide as the buffer.
        let columns = fragment.columns.or(c.extent.as_constant()).unwrap_or(0);
        if fragment.registers(rows, columns).is_none() {
            return Err(format!("`{}` has no tile of {columns} columns", fragment.name));
        }
        let extents = (r.pitch, r.extent.as_constant(), c.pitch, c.extent.as_constant());
        match extents {
            (None, Some(r), None, Some(c)) if r > 0 && c > 0 && r % rows == 0 && c % columns == 0 => {
                Ok(Tiling {
                    buffer: buffer.clone(),
                    fragment,
                    rows,
                    columns,
                    counts: (r / rows, c / columns),
                })
            }
            _ => Err(format!(
                "the last dimensions of `{}` are not multiples of the {rows} x {columns} of `{}`",
                buffer.sym, fragment.name
            )),
        }
    }

    /// The dimensions and the fragment of the tiled buffer.
    fn tiled(&self) -> Buffer {
        let mut buffer = self.buffer.clone();
        let rank = buffer.dims.len();
        buffer.dims.truncate(rank - 2);
        let counts = [self.counts.0, self.counts.1].into_iter().filter(|n| *n > 1);
        buffer.dims.extend(counts.chain([self.rows, self.columns]).map(Dim::new));
        buffer.fragment = Some(self.fragment);
        buffer
    }

    /// An index of the last two dimensions, as tile and place in the tile.
    fn cut(&self, index: &[Index], facts: &Facts) -> Vec<Index> {
        let [lead @ .., row, column] = index else { return index.to_vec() };
        let simplify = |i: Index| facts.ranges().simplify(&i);
        let mut out = lead.to_vec();
        if self.counts.0 > 1 {
            out.push(simplify(row.div(self.rows)));
        }
        if self.counts.1 > 1 {
            out.push(simplify(column.div(self.columns)));
        }
        out.extend([simplify(row.rem(self.rows)), simplify(column.rem(self.columns))]);
        out
    }

    fn cut_access(&self, access: &Access, facts: &Facts) -> Access {
        if access.buffer != self.buffer.sym {
            return access.clone();
        }
        Access { buffer: access.buffer.clone(), index: self.cut(&access.index, facts) }
    }

    /// A window of the tiled buffer; windows never cross a tile.
    fn cut_window(&self, window: &Window, facts: &Facts) -> Window {
        let [lead @ .., row, column] = &window.dims[..] else { return window.clone() };
        if window.buffer != self.buffer.sym {
            return window.clone();
        }
        let simplify = |i: Index| facts.ranges().simplify(&i);
        let start = |s: &Span| match s {
            Span::At(i) | Span::Slice(i, _) => i.clone(),
            Span::All => Index::default(),
        };
        let inside = |s: &Span, tile: i64| match s {
            Span::At(i) => Span::At(simplify(i.rem(tile))),
            Span::Slice(_, n) if *n == tile => Span::All,
            Span::Slice(i, n) => Span::Slice(simplify(i.rem(tile)), *n),
            Span::All => Span::All,
        };
        let mut dims = lead.to_vec();
        if self.counts.0 > 1 {
            dims.push(Span::At(simplify(start(row).div(self.rows))));
        }
        if self.counts.1 > 1 {
            dims.push(Span::At(simplify(start(column).div(self.columns))));
        }
        dims.extend([inside(row, self.rows), inside(column, self.columns)]);
        Window { buffer: window.buffer.clone(), dims }
    }
}

/// Keeps a buffer in fragments: its allocation and every use of it. `buffers` are all others, as they are.
pub(in crate::schedule) fn retile(
    stmts: &[Stmt],
    tiling: &Tiling,
    buffers: &HashMap<Sym, Buffer>,
    facts: &Facts,
) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        out.push(match stmt {
            Stmt::Alloc(b) if b.sym == tiling.buffer.sym => Stmt::Alloc(tiling.tiled()),
            Stmt::For(l) => {
                let mut inside = facts.clone();
                inside.enter(l);
                Stmt::For(For { body: retile(&l.body, tiling, buffers, &inside).into(), ..head(l) })
            }
            Stmt::Own(o) => {
                let mut inside = facts.clone();
                inside.enter_own(o, buffers);
                Stmt::Own(Own {
                    window: tiling.cut_window(&o.window, facts),
                    body: retile(&o.body, tiling, buffers, &inside).into(),
                    ..o.clone()
                })
            }
            Stmt::Assign(a) => Stmt::Assign(Assign {
                target: tiling.cut_access(&a.target, facts),
                value: a.value.map_accesses(&|x| Value::Load(tiling.cut_access(x, facts)), &Clone::clone),
                ..a.clone()
            }),
            Stmt::Instruction(i) => {
                let operand = |o: &Operand| match o {
                    Operand::Window(w) => Operand::Window(tiling.cut_window(w, facts)),
                    Operand::Scalar(_) => o.clone(),
                };
                Stmt::Instruction(Instruction {
                    operands: i.operands.iter().map(operand).collect(),
                    ..i.clone()
                })
            }
            other => {
                let mut other = other.clone();
                for body in walk::bodies_mut(&mut other) {
                    *body = retile(body, tiling, buffers, facts).into();
                }
                other
            }
        });
    }
    out
}

/// Turns every nest that touches single elements of a buffer, tile by tile, into a loop over what each thread owns.
/// Nests for which that cannot be done stay as they are, to be tensorized.
pub(in crate::schedule) fn own_nests(
    stmts: &[Stmt],
    tiling: &Tiling,
    buffers: &HashMap<Sym, Buffer>,
    place: &Place,
) -> Result<Vec<Stmt>, Diagnosis> {
    rewrite(stmts, place, &mut |stmt, place| {
        Ok(match stmt {
            Stmt::Own(_) => Some(vec![stmt.clone()]),
            Stmt::For(l) if matches!(l.mode, Mode::Serial | Mode::Unroll) => {
                own_nest(l, tiling, buffers, place).map(|owned| vec![owned])
            }
            _ => None,
        })
    })
}

/// The loops of the nest rooted at `l`, one directly inside the other, and what stands inside them all.
fn taken_apart(l: &For) -> (Vec<For>, Body) {
    let mut loops = vec![head(l)];
    let mut body = l.body.clone();
    loop {
        inline_lets(&mut body);
        match &body[..] {
            [Stmt::For(inner)] if matches!(inner.mode, Mode::Serial | Mode::Unroll) => {
                loops.push(head(inner));
                body = inner.body.clone();
            }
            _ => return (loops, body),
        }
    }
}

/// Statements with the last index of a buffer moved.
fn with_columns_moved(body: &Body, buffer: &Sym, by: &Index) -> Body {
    let moved = map_elements(body.to_vec(), &|access| {
        if access.buffer == *buffer
            && let Some(column) = access.index.last_mut()
        {
            *column = &*column + by;
        }
    });
    moved.into()
}

/// The nest rooted at `l` as a loop over owned elements, if it goes through tiles of the buffer.
fn own_nest(l: &For, tiling: &Tiling, buffers: &HashMap<Sym, Buffer>, place: &Place) -> Option<Stmt> {
    let (loops, body) = taken_apart(l);
    let touched = touched(&body, &tiling.buffer.sym);
    let index = touched.first()?;
    // A product of register tiles is for an instruction: its operands are spread in different ways.
    if touches_other_registers(&body, &tiling.buffer.sym, buffers) {
        return None;
    }
    let [lead @ .., row, column] = &index[..] else { return None };
    let mut facts = place.facts();
    loops.iter().for_each(|o| facts.enter(o));
    // Wide accesses stay, and those that take their place under a condition: their elements are at one place of several tiles.
    let wide = inner_loops(&body);
    wide.iter().for_each(|l| facts.enter(l));
    let of_first = |i: &Index| i.substitute(&|s| wide.iter().any(|l| l.var == *s).then(Index::default));
    let (i, row_start) = stepped(row, &loops, 1)?;
    // Each element, or neighbours that belong to one thread.
    let (run, (j, column_start)) =
        [1, PAIR].iter().find_map(|run| Some((*run, stepped(column, &loops, *run)?)))?;
    if run > 1 && !tiling.fragment.has_runs(tiling.rows, tiling.columns, run) {
        return None;
    }
    let both = [(i, row_start, tiling.rows, 1), (j, column_start, tiling.columns, run)];
    // Elements at one place in several tiles have one owner.
    let is_tile = |i: &Index, tile: i64| facts.is_multiple(&(i - &of_first(i)), tile);
    let at_one_place = |other: &Vec<Index>| match &other[..] {
        [.., r, c] => {
            let [down, across] = [(r, row), (c, column)].map(|(i, of_it)| &of_first(i) - &of_first(of_it));
            let in_run = across.as_constant().is_some_and(|at| (0..run).contains(&at));
            down.as_constant() == Some(0) && in_run && is_tile(r, tiling.rows) && is_tile(c, tiling.columns)
        }
        _ => false,
    };
    let leads = touched.iter().flat_map(|other| &other[..lead.len()]);
    if i == j
        || !touched.iter().all(at_one_place)
        || leads.into_iter().any(|x| both.iter().any(|(v, ..)| x.mentions(&loops[*v].var)))
    {
        return None;
    }
    // The loops move inward past others: their iterations must not touch one element.
    let nest = |from: usize| {
        let inner = loops[from..]
            .iter()
            .rev()
            .fold(body.clone(), |inner, o| vec![Stmt::For(For { body: inner, ..o.clone() })].into());
        inner.into_iter().next()
    };
    let mut windows = Vec::new();
    let mut vars = Vec::new();
    for (at, start, tile, run) in both {
        let Stmt::For(whole) = nest(at)? else { return None };
        let mut before = place.facts();
        loops[..at].iter().for_each(|o| before.enter(o));
        independent(&whole, &before).ok()?;
        let extent = run * loops[at].range.constant_trip_count()?;
        if !facts.is_multiple(&start, tile) || extent % tile != 0 {
            return None;
        }
        let own = if run == 1 { loops[at].var.clone() } else { loops[at].var.fresh() };
        let outer = (extent > tile).then(|| Sym::new(&format!("{own}o")));
        let first = outer.as_ref().map(|o| Index::var(o).scaled(tile)).unwrap_or_default();
        windows.push(Span::Slice(&of_first(&start) + &first, tile));
        vars.push((at, own, outer, first, extent / tile));
    }
    let shift = |s: &Sym| {
        let (at, own, _, first, _) = vars.iter().find(|v| loops[v.0].var == *s)?;
        Some((&Index::var(own) + first).div(if *at == j { run } else { 1 }))
    };
    // Within a run, neighbours are told from its first one.
    let body = match &vars[1] {
        _ if run == 1 => body,
        (_, own, _, first, _) => {
            let from_first = &(&Index::var(own) + first) - &Index::var(&loops[j].var).scaled(run);
            with_columns_moved(&body, &tiling.buffer.sym, &from_first)
        }
    };
    let body = walk::substitute(&body, &shift);
    let window = Window {
        buffer: tiling.buffer.sym.clone(),
        dims: lead.iter().map(|x| Span::At(x.substitute(&shift))).chain(windows).collect(),
    };
    let vars_of_tile = vars.iter().map(|v| v.1.clone()).collect();
    let owned = Stmt::Own(Own { vars: vars_of_tile, run, window, lane_base: false, body: body.into() });
    let outer =
        loops.iter().enumerate().rev().fold(owned, |inner, (at, l)| match vars.iter().find(|v| v.0 == at) {
            None => Stmt::For(For { body: vec![inner].into(), ..l.clone() }),
            Some((_, _, None, ..)) => inner,
            Some((_, _, Some(outer), _, count)) => Stmt::For(For {
                var: outer.clone(),
                range: Range::upto(*count),
                body: vec![inner].into(),
                ..l.clone()
            }),
        });
    Some(outer)
}

/// Neighbours that the nest of an element may touch together, the parts of a number: the first one at an even place.
const PAIR: i64 = 2;

/// The loops among statements.
fn inner_loops(stmts: &[Stmt]) -> Vec<For> {
    let mut found = Vec::new();
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::For(l) = stmt {
            found.push(head(l));
        }
    });
    found
}

/// The elements of a buffer that statements touch; none if there are loops among these, but for wide and unrolled accesses.
fn touched(stmts: &[Stmt], buffer: &Sym) -> Vec<Vec<Index>> {
    let mut elements: Vec<Vec<Index>> = Vec::new();
    let mut plain = true;
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Assign(a) => {
            let mut see = |x: &Access| {
                if x.buffer == *buffer && !elements.contains(&x.index) {
                    elements.push(x.index.clone());
                }
            };
            see(&a.target);
            a.value.for_each_access(&mut see);
        }
        Stmt::If(If { .. }) => {}
        Stmt::For(l) => plain &= matches!(l.mode, Mode::Vector | Mode::Unroll),
        _ => plain = false,
    });
    if plain { elements } else { Vec::new() }
}

fn touches_other_registers(stmts: &[Stmt], buffer: &Sym, buffers: &HashMap<Sym, Buffer>) -> bool {
    let mut found = false;
    let mut see = |x: &Access| {
        found |= x.buffer != *buffer && buffers.get(&x.buffer).is_some_and(|b| b.space == Space::Reg);
    };
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::Assign(a) = stmt {
            see(&a.target);
            a.value.for_each_access(&mut see);
        }
    });
    found
}

/// The one loop whose variable an index steps by so many, and where it starts; other loops may be part of the start.
fn stepped(index: &Index, loops: &[For], by: i64) -> Option<(usize, Index)> {
    let candidates: Vec<usize> =
        (0..loops.len()).filter(|l| index.coefficient(&loops[*l].var) == by).collect();
    let [at] = candidates[..] else { return None };
    let start = index - &Index::var(&loops[at].var).scaled(by);
    let from_0 = matches!(&loops[at].range, Range::Span { lo, step, .. } if lo.as_constant() == Some(0) && step.as_constant() == Some(1));
    (from_0 && !start.mentions(&loops[at].var)).then_some((at, start))
}
