//! `cache_read`: a consumer reads a copy in another memory.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   for i in 0..n { y[i] = x[i] * x[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "cache_read(x, y, shared) -> xs").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n], y: out f32[n])
//! {
//!   alloc xs: f32[n] shared
//!   for e in 0..n {
//!     xs[e] = x[e]
//!   }
//!   for i in 0..n {
//!     y[i] = xs[i] * xs[i]
//!   }
//! }
//! ");
//! ```
//!
//! The copy is whole at first; `compute_at` shrinks it to what one iteration of the consumer needs. The loops of the
//! copy are `e` in one dimension, `r` and `c` in two, `e0`, `e1`, ... in more.
//!
//! With `rows=N` the copy of a buffer of one dimension has two: it is read in rows of N elements, of which the copy can
//! then be shrunk to a part. So rows that lie densely one behind the other can be brought near as the one piece of
//! memory that they are, and be used as rows:
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[3*n], y: out f32[n]) {
//!   for i in 0..n { y[i] = 0  for k in 0..3 { y[i] += x[3*i + k] } }
//! }").unwrap();
//! let after = Schedule::run(before, "cache_read(x, y, reg, rows=3) -> xr").unwrap();
//! assert!(after.program().to_string().contains("\
//!   alloc xr: f32[n, 3] reg
//!   for r in 0..n, c in 0..3 {
//!     xr[r, c] = x[3*r + c]
//!   }
//! "));
//! assert!(after.program().to_string().contains("y[i] += xr[i, k]"));
//! ```
//!
//! With `rows=N, columns=M` the copy of a row goes on with the first M - N elements of the next one, for consumers that
//! read beyond the end of rows. Which row is meant is said by the terms of an index that are whole rows: here the
//! element `x[3*i + k]` is in row `i`, also where `k` is 3.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[3*n + 1], y: out f32[n]) {
//!   for i in 0..n { y[i] = 0  for k in 0..4 { y[i] += x[3*i + k] } }
//! }").unwrap();
//! let after = Schedule::run(before, "cache_read(x, y, reg, rows=3, columns=4) -> xr").unwrap();
//! assert!(after.program().to_string().contains("\
//!   alloc xr: f32[n + 1, 4] reg
//!   for r in 0..n + 1, c in 0..4 {
//!     xr[r, c] = 3*r + c < 3*n + 1 ? x[3*r + c] : 0
//!   }
//! "), "{}", after.program());
//! assert!(after.program().to_string().contains("y[i] += xr[i, k]"));
//! ```
//!
//! Several consumers that are computed in one nest (`compute_with`) may share a copy: `cache_read(x, y, z, shared) -> xs`.
//!
//! What is left over behind the last whole row is in the copy as a row that ends with zeros, unless it is certain that nobody reads it.
//!
//! Rows whose length is no multiple of V start anywhere, but memory is read V elements at a time from multiples of V only.
//! With `rows=N, pieces=V` the copy of a row starts with the piece of V elements in which the row starts, so with up to
//! V - 1 elements of the row before; its loops are `r`, `p` (pieces) and `v` (elements of a piece). Each row has the
//! pieces of N elements and what is before them, or of as many elements as `columns` says, of which the last ones are
//! those of the next row:
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[5*n], y: out f32[n]) {
//!   for i in 0..n { y[i] = 0  for k in 0..5 { y[i] += x[5*i + k] } }
//! }").unwrap();
//! let after = Schedule::run(before, "cache_read(x, y, reg, rows=5, pieces=4) -> xr").unwrap();
//! assert!(after.program().to_string().contains("\
//!   alloc xr: f32[n, 2, 4] reg
//!   for r in 0..n, p in 0..2, v in 0..4 {
//!     xr[r, p, v] = 4*p + 4*((5*r)/4) + v < 5*n ? x[4*p + 4*((5*r)/4) + v] : 0
//!   }
//! "));
//! assert!(after.program().to_string().contains("y[i] += xr[i, (k + i%4)/4, (k + i%4)%4]"));
//! ```
//!
//! Where an assignment reads a buffer several times, `nth=1`, `nth=2`, ... lets only that read go to the copy, so that
//! each can have a copy of its own:
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n, n], y: out f32[n, n]) {
//!   for i in 0..n, j in 0..n { y[i, j] = x[i, j] * x[j, i] }
//! }").unwrap();
//! let after = Schedule::run(before, "cache_read(x, y, shared, nth=2) -> xs").unwrap();
//! assert!(after.program().to_string().contains("y[i, j] = x[i, j] * xs[j, i]"));
//! ```

use std::cell::Cell;

use crate::diag::Diagnosis;
use crate::index::{Cond, Index, gcd};
use crate::ir::{
    Access, Assign, AssignOp, Buffer, Dim, For, Mode, Operand, Program, Range, Space, Stmt, Value, walk,
};
use crate::schedule::facts::Facts;
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;
use super::compute_at::for_each_guarded;
use super::set_scope::{space, space_name};

pub(super) const USAGE: &str = "cache_read(buffer, consumer[, consumer]..., shared|reg[, rows=N[, pieces=V][, columns=N]][, nth=N]) -> name";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct CacheRead {
    /// The buffer that is read.
    pub buffer: String,
    /// The buffers that are computed from it, in one nest if there are several.
    pub consumers: Vec<String>,
    /// The memory of the copy.
    pub space: Space,
    /// The elements of a row, where the copy of one dimension has rows.
    pub rows: Option<i64>,
    /// The elements of a piece, where rows are read in whole pieces from where memory has them.
    pub pieces: Option<i64>,
    /// How many elements from the start of a row on are read of it in pieces; all of them if nothing is said.
    pub columns: Option<i64>,
    /// Which of the reads in an assignment goes to the copy, counted from 1; every one if none is named.
    pub nth: Option<i64>,
    /// The name of the copy.
    pub name: String,
}

/// The value of an option that is a positive number.
fn positive(call: &Call, option: &str, otherwise: &str) -> Result<Option<i64>, Diagnosis> {
    match call.option_of(option).map(str::parse) {
        None => Ok(None),
        Some(Ok(n)) if n > 0 => Ok(Some(n)),
        Some(_) => Err(call.wrong(otherwise)),
    }
}

impl CacheRead {
    pub(super) fn read(call: &Call) -> Result<CacheRead, Diagnosis> {
        let rows = positive(call, "rows", "a row has 1 or more elements")?;
        let pieces = positive(call, "pieces", "a piece has 1 or more elements")?;
        let columns = positive(call, "columns", "1 or more elements of a row are read")?;
        if pieces.is_some() && rows.is_none() {
            return Err(call.wrong("only rows are read in pieces: say `rows`, too"));
        }
        if columns.is_some() && rows.is_none() {
            return Err(call.wrong("`columns` says how much of a row is read: say `rows`, too"));
        }
        if pieces.is_none() && columns < rows && columns.is_some() {
            return Err(call.wrong("the copy of a row has all of it: `columns` is no less than `rows`"));
        }
        let last = call.args.len().max(3) - 1;
        let consumers: Result<Vec<String>, Diagnosis> =
            (1..last).map(|at| Ok(call.word_at(at)?.to_string())).collect();
        Ok(CacheRead {
            buffer: call.word_at(0)?.into(),
            consumers: consumers?,
            space: space(call, call.word_at(last)?)?,
            rows,
            pieces,
            columns,
            nth: positive(call, "nth", "reads are counted from 1")?,
            name: call.results(1)?[0].clone(),
        })
    }

    /// Puts the copy directly before the outermost statement with the consumer inside which the buffer does not
    /// change; of a parameter, inside the conditions of the host.
    fn insert(
        &self,
        stmts: Vec<Stmt>,
        source: &Buffer,
        facts: &Facts,
        count: &mut usize,
    ) -> Result<Vec<Stmt>, Diagnosis> {
        let reading = stmts.iter().filter(|s| self.consumes(s, &source.sym)).count();
        if self.consumers.len() > 1 && reading > 1 {
            return Err(Diagnosis::new(format!(
                "`{}` cannot be copied once for `{}`",
                self.buffer,
                self.consumers.join("`, `")
            ))
            .because("they are computed by nests of their own")
            .instead("compute_with brings them together, or make a copy for each"));
        }
        let mut out = Vec::with_capacity(stmts.len() + 2);
        let mut written = false;
        for mut stmt in stmts {
            let changes = changes(&stmt, &source.sym);
            written |= changes;
            if !self.consumes(&stmt, &source.sym) {
                out.push(stmt);
                continue;
            }
            let inside = matches!(stmt, Stmt::If(_)) && !written || changes;
            if inside && !matches!(stmt, Stmt::Assign(_)) {
                let mut facts = facts.clone();
                if let Stmt::For(l) = &stmt {
                    facts.enter(l);
                }
                for body in walk::bodies_mut(&mut stmt) {
                    *body = self.insert(std::mem::take(body), source, &facts, count)?.into();
                }
                out.push(stmt);
                continue;
            }
            *count += 1;
            self.check_columns(&stmt, source, facts)?;
            let left_over = self.reads_what_is_left_over(&stmt, source, facts);
            let copy = Buffer {
                space: self.space,
                dims: self.extents(source, left_over)?.into_iter().map(Dim::new).collect(),
                split: source.split,
                ..Buffer::new(Sym::new(&self.name), source.dtype, Vec::new(), self.space)
            };
            let nest = self.copy_nest(&copy, source, left_over);
            let renamed = self.redirect(stmt, &source.sym, &copy.sym, facts);
            out.extend([Stmt::Alloc(copy), nest, renamed]);
        }
        Ok(out)
    }

    /// The extents of the copy, with what is `left_over` behind the last whole row or without it.
    fn extents(&self, source: &Buffer, left_over: bool) -> Result<Vec<Index>, Diagnosis> {
        let Some(rows) = self.rows else {
            return Ok(source.dims.iter().map(|d| d.extent.clone()).collect());
        };
        match &source.dims[..] {
            [only] if self.pieces.is_none() || only.extent.rem(rows) == Index::default() => {
                let count = only.extent.offset(if left_over { rows - 1 } else { 0 }).div(rows);
                Ok(match self.pieces {
                    None => vec![count, Index::constant(self.columns.unwrap_or(rows))],
                    Some(piece) => vec![count, self.pieces_of_row(rows, piece).into(), piece.into()],
                })
            }
            dims => Err(Diagnosis::new(format!("`{}` does not consist of rows of {rows}", self.buffer))
                .because(match dims {
                    [only] => format!("{rows} does not divide its {} elements", only.extent),
                    dims => format!("it has {} dimensions", dims.len()),
                })
                .instead("leave `rows` out, or give the length of its rows")),
        }
    }

    /// Whether a statement may read something behind the last whole row, where there is such.
    fn reads_what_is_left_over(&self, stmt: &Stmt, source: &Buffer, facts: &Facts) -> bool {
        let (Some(rows), None, [only]) = (self.rows, self.pieces, &source.dims[..]) else { return false };
        // A last row that goes on has nothing to go on with.
        self.columns.is_some()
            || only.extent.rem(rows) != Index::default() && !self.reads_whole_rows(stmt, source, rows, facts)
    }

    /// Refuses a statement that may read what is not in the row that its index says, nor in what the copy of that goes on with.
    fn check_columns(&self, stmt: &Stmt, source: &Buffer, facts: &Facts) -> Result<(), Diagnosis> {
        let (Some(columns), None) = (self.columns, self.pieces) else { return Ok(()) };
        let mut facts = facts.clone();
        match stmt {
            Stmt::For(l) => facts.enter(l),
            Stmt::Assign(a) if self.is_consumer(&a.target.buffer) => {
                let mut beyond = None;
                a.value.for_each_access(&mut |access| {
                    if let ([e], true) = (&access.index[..], access.buffer == source.sym) {
                        let column = &self.row_and_column(e, &facts)[1];
                        let range = facts.ranges().of(column);
                        let inside =
                            range.lo.is_some_and(|lo| lo >= 0) && range.hi.is_some_and(|hi| hi < columns);
                        if !inside {
                            beyond = Some(column.clone());
                        }
                    }
                });
                if let Some(column) = beyond {
                    return Err(Diagnosis::new(format!(
                        "`{}` cannot be copied in rows of {columns} columns",
                        self.buffer
                    ))
                    .because(format!("column {column} may not be one of them"))
                    .instead("say as many `columns` as are read of a row, or leave `columns` out"));
                }
            }
            _ => {}
        }
        walk::bodies(stmt).flatten().try_for_each(|s| self.check_columns(s, source, &facts))
    }

    /// The row of an element, by the terms of its index that are whole rows, and its column there.
    fn row_and_column(&self, e: &Index, facts: &Facts) -> [Index; 2] {
        let rows = self.rows.unwrap_or(1);
        let e = facts.ranges().simplify(e);
        let whole = |factor: i64| factor % rows == 0;
        let terms = e.terms().iter().filter(|(_, factor)| whole(*factor));
        let row = terms.fold(Index::constant(e.constant_term().div_euclid(rows)), |row, (atom, factor)| {
            &row + &Index::atom(atom.clone()).scaled(factor / rows)
        });
        let column = &e - &row.scaled(rows);
        [row, facts.ranges().simplify(&column)]
    }

    /// Whether what the consumer reads inside a statement certainly lies in whole rows.
    fn reads_whole_rows(&self, stmt: &Stmt, source: &Buffer, rows: i64, facts: &Facts) -> bool {
        let mut facts = facts.clone();
        let whole = source.dims[0].extent.div(rows);
        match stmt {
            Stmt::For(l) => facts.enter(l),
            Stmt::If(i) => {
                let mut otherwise = facts.clone();
                facts.assume(&i.cond);
                otherwise.assume(&i.cond.clone().negate());
                return i.then.iter().all(|s| self.reads_whole_rows(s, source, rows, &facts))
                    && i.otherwise.iter().all(|s| self.reads_whole_rows(s, source, rows, &otherwise));
            }
            Stmt::Assign(a) if self.is_consumer(&a.target.buffer) => {
                let mut all = true;
                for_each_guarded(&a.value, &Cond::TRUE, &mut |access, guard| {
                    if access.buffer == source.sym {
                        let mut there = facts.clone();
                        there.assume(guard);
                        let row = there.ranges().simplify(&access.index[0].div(rows));
                        all &= there.proves(&Cond::lt(row, whole.clone()));
                    }
                });
                return all;
            }
            _ => {}
        }
        walk::bodies(stmt).flatten().all(|s| self.reads_whole_rows(s, source, rows, &facts))
    }

    /// Pieces that are read of a row, wherever in a piece it starts.
    fn pieces_of_row(&self, rows: i64, piece: i64) -> i64 {
        let columns = self.columns.unwrap_or(rows).max(rows);
        // Starts are multiples of what row and piece have in common.
        let latest = piece - gcd(rows, piece);
        (latest + columns + piece - 1) / piece
    }

    /// Where the copy keeps the element of the source with this index.
    fn place(&self, index: &[Index], facts: &Facts) -> Vec<Index> {
        let simplified = |i: Index| facts.ranges().simplify(&i);
        match (self.rows, self.pieces, index) {
            (Some(_), None, [e]) if self.columns.is_some() => self.row_and_column(e, facts).into(),
            (Some(rows), None, [e]) => [e.div(rows), e.rem(rows)].map(simplified).into(),
            (Some(rows), Some(piece), [e]) => {
                let [row, column] = [e.div(rows), e.rem(rows)].map(simplified);
                let from_piece = &row.scaled(rows).rem(piece) + &column;
                [row, from_piece.div(piece), from_piece.rem(piece)].map(simplified).into()
            }
            _ => index.to_vec(),
        }
    }

    fn is_consumer(&self, target: &Sym) -> bool {
        self.consumers.iter().any(|consumer| consumer == target.name())
    }

    /// Whether a consumer inside reads this one of the buffers of that name, as often as the wanted read asks for.
    fn consumes(&self, stmt: &Stmt, source: &Sym) -> bool {
        let mut found = false;
        walk::for_each(std::slice::from_ref(stmt), &mut |s| {
            if let Stmt::Assign(a) = s
                && self.is_consumer(&a.target.buffer)
            {
                let mut reads = 0;
                a.value.for_each_access(&mut |access| reads += i64::from(access.buffer == *source));
                found |= reads >= self.nth.unwrap_or(1);
            }
        });
        found
    }

    fn redirect(&self, mut stmt: Stmt, from: &Sym, to: &Sym, facts: &Facts) -> Stmt {
        let mut inside = facts.clone();
        match &mut stmt {
            Stmt::For(l) => inside.enter(l),
            Stmt::Assign(a) if self.is_consumer(&a.target.buffer) => {
                let reads = Cell::new(0);
                let is_wanted = |access: &Access| {
                    reads.set(reads.get() + i64::from(access.buffer == *from));
                    access.buffer == *from && self.nth.is_none_or(|nth| nth == reads.get())
                };
                a.value = a.value.map_accesses(
                    &|access| {
                        Value::Load(if is_wanted(access) {
                            Access { buffer: to.clone(), index: self.place(&access.index, facts) }
                        } else {
                            access.clone()
                        })
                    },
                    &Clone::clone,
                );
            }
            _ => {}
        }
        for body in walk::bodies_mut(&mut stmt) {
            let stmts = std::mem::take(body).into_iter();
            *body = stmts.map(|s| self.redirect(s, from, to, &inside)).collect::<Vec<_>>().into();
        }
        stmt
    }

    /// `for r, c { copy[r, c] = source[r, c] }`, with zeros behind the end of the source.
    fn copy_nest(&self, copy: &Buffer, source: &Buffer, left_over: bool) -> Stmt {
        let rank = copy.dims.len();
        let vars: Vec<Sym> = (0..rank)
            .map(|i| match (rank, self.pieces) {
                (1, _) => Sym::new("e"),
                (2, _) => Sym::new(["r", "c"][i]),
                (_, Some(_)) => Sym::new(["r", "p", "v"][i]),
                _ => Sym::new(&format!("e{i}")),
            })
            .collect();
        let index: Vec<Index> = vars.iter().map(Index::var).collect();
        let or_zero = |from: Index| {
            let exists = Cond::lt(from.clone(), source.dims[0].extent.clone());
            let load = Value::load(&source.sym, vec![from]);
            Value::Select(exists, Box::new(load), Box::new(Value::Const(0.0)))
        };
        let value = match (self.rows, self.pieces, &index[..]) {
            (Some(rows), None, [r, c]) if left_over => or_zero(&r.scaled(rows) + c),
            (Some(rows), None, [r, c]) => Value::load(&source.sym, vec![&r.scaled(rows) + c]),
            (Some(rows), Some(piece), [r, p, v]) => {
                or_zero(&(&r.scaled(rows).div(piece) + p).scaled(piece) + v)
            }
            _ => Value::load(&source.sym, index.clone()),
        };
        let assign = Stmt::Assign(Assign {
            target: Access::new(&copy.sym, index),
            op: AssignOp::Store,
            atomic: false,
            value,
        });
        vars.iter()
            .zip(&copy.dims)
            .rev()
            .fold(assign, |inner, (v, d)| For::serial(v, Range::upto(d.extent.clone()), vec![inner]))
    }
}

/// Whether a buffer is allocated or written inside a statement.
fn changes(stmt: &Stmt, buffer: &Sym) -> bool {
    let mut found = false;
    walk::for_each(std::slice::from_ref(stmt), &mut |s| {
        found |= match s {
            Stmt::Alloc(b) => b.sym == *buffer,
            Stmt::Assign(a) => a.target.buffer == *buffer,
            Stmt::Instruction(i) => {
                matches!(i.operands.first(), Some(Operand::Window(w)) if w.buffer == *buffer)
            }
            _ => false,
        }
    });
    found
}

impl Primitive for CacheRead {
    fn call(&self) -> Call {
        let call =
            self.consumers.iter().fold(Call::new("cache_read").word(&self.buffer), |call, c| call.word(c));
        let call = call.word(space_name(self.space));
        let call = self.rows.into_iter().fold(call, |call, n| call.option("rows", n));
        let call = self.pieces.into_iter().fold(call, |call, n| call.option("pieces", n));
        let call = self.columns.into_iter().fold(call, |call, n| call.option("columns", n));
        let call = self.nth.into_iter().fold(call, |call, n| call.option("nth", n));
        call.gives([&self.name])
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let buffers = program.buffers();
        if buffers.values().any(|b| b.sym.name() == self.name) {
            return Err(Diagnosis::new(format!("there is a buffer `{}` already", self.name))
                .instead("choose another name"));
        }
        let mut body = program.body.clone();
        let (facts, mut count) = (Facts::of(program), 0);
        for source in buffers.values().filter(|b| b.sym.name() == self.buffer) {
            body = self.insert(body, source, &facts, &mut count)?;
        }
        if count == 0 {
            return Err(Diagnosis::new(format!(
                "`{}` does not read `{}`",
                self.consumers.join("`, `"),
                self.buffer
            )));
        }
        let mut in_vector = false;
        walk::for_each(&body, &mut |s| {
            if let Stmt::For(l) = s {
                in_vector |= l.mode == Mode::Vector && l.body.len() > 1;
            }
        });
        if in_vector {
            return Err(Diagnosis::new(format!(
                "`{}` cannot be copied for `{}`",
                self.buffer,
                self.consumers.join("`, `")
            ))
            .because("the copy would stand in a vector loop, which holds one assignment and nothing else")
            .instead("apply cache_read before vectorize"));
        }
        Ok(program.with_body(body))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    /// The program after a copy in rows of 6 of a tensor of 3 n elements, of which those are read that fulfil a condition.
    fn in_rows(where_: &str) -> String {
        let text = format!(
            "program p(n: size, x: in f32[3*n], y: out f32[n]) {{
               for i in 0..n {{ y[i] = 0  for k in 0..6 {{ y[i] += {where_} ? x[6*i + k] : 0 }} }}
             }}"
        );
        let before = parse::program(&text).expect("reads");
        let after = Schedule::run(before, "cache_read(x, y, reg, rows=6) -> xr").expect("copies");
        after.program().to_string()
    }

    #[test]
    fn rows_that_are_not_whole_are_left_out_where_nobody_reads_them() {
        let text = in_rows("i < n/2");
        assert!(text.contains("alloc xr: f32[n/2, 6] reg"), "{text}");
        assert!(text.contains("i < n/2 ? xr[i, k] : 0"), "{text}");
    }

    #[test]
    fn what_is_left_over_is_a_row_that_ends_with_zeros() {
        let text = in_rows("6*i + k < 3*n");
        assert!(text.contains("alloc xr: f32[ceil(n, 2), 6] reg"), "{text}");
        assert!(text.contains("xr[r, c] = 6*r + c < 3*n ? x[6*r + c] : 0"), "{text}");
        assert!(text.contains("6*i + k < 3*n ? xr[i, k] : 0"), "{text}");
    }

    #[test]
    fn rows_go_on_as_far_as_is_read_and_no_less() {
        let refused = |step: &str| {
            let text = "program p(n: size, x: in f32[3*n + 1], y: out f32[n]) {
               for i in 0..n { y[i] = 0  for k in 0..4 { y[i] += x[3*i + k] } }
             }";
            let before = parse::program(text).expect("reads");
            Schedule::run(before, step).expect_err("is refused").to_string()
        };
        let text = refused("cache_read(x, y, reg, rows=3, columns=3) -> xr");
        assert!(text.contains("column k may not be one of them"), "{text}");
        let text = refused("cache_read(x, y, reg, rows=3, columns=2) -> xr");
        assert!(text.contains("`columns` is no less than `rows`"), "{text}");
        let text = refused("cache_read(x, y, reg, columns=4) -> xr");
        assert!(text.contains("say `rows`, too"), "{text}");
    }
}
