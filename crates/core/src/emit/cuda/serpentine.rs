//! Orders the multiply-adds of a register tile so that neighbours share an operand.
//!
//! Every outer product `c[i, j] += a[i] * b[j]` in registers whose loops are unrolled is written row by row, one row
//! forwards, the next one backwards, the longer side outside. That changes no value, because no two iterations meet in
//! an element.
//!
//! ```text
//! for j in unroll 0..4, i in unroll 0..4 { c[i, j] += a[i] * b[j] }
//! =>
//! for i in unroll 0..4, j in unroll 0..4 {
//!   c[i, i%2 == 1 ? 3 - j : j] += a[i] * b[i%2 == 1 ? 3 - j : j]
//! }
//! ```
//!
//! Each multiply-add reads three registers, and the register file gives fewer in a cycle. An operand that the
//! instruction before has read in the same place comes from a small cache instead, so going on with the same row of
//! `a`, and turning at its end with the same column of `b`, saves a read every time. The compiler keeps to this order
//! where nothing else matters more. On an H200 it makes the best SGEMM of the ladder 1.6 % faster (4096 x 4096 x 4096,
//! bench/results).

use std::collections::HashMap;

use crate::index::{Cond, Index};
use crate::ir::{Access, Assign, AssignOp, Buffer, For, Mode, Program, Range, Reduction, Space, Stmt, walk};
use crate::sym::Sym;

/// The program with its outer products in registers in order.
pub(super) fn serpentine(program: Program) -> Program {
    let mut program = program;
    let buffers = program.buffers();
    program.body = in_order(std::mem::take(&mut program.body), &buffers);
    program
}

/// The statements with outer products ordered; the outermost loop of a tile decides for all of it.
fn in_order(stmts: Vec<Stmt>, buffers: &HashMap<Sym, Buffer>) -> Vec<Stmt> {
    let one = |mut stmt: Stmt| {
        if let Some(tile) = Tile::of(&stmt, buffers) {
            return tile.serpentine();
        }
        for body in walk::bodies_mut(&mut stmt) {
            *body = in_order(body.take(), buffers).into();
        }
        stmt
    };
    stmts.into_iter().map(one).collect()
}

/// A loop of a tile: its variable and how often it runs.
type Side = Vec<(Sym, i64)>;

/// An outer product in registers.
struct Tile {
    /// The loops that number the elements of each factor, in the order of the result's dimensions.
    sides: [Side; 2],
    assign: Assign,
}

impl Tile {
    fn of(root: &Stmt, buffers: &HashMap<Sym, Buffer>) -> Option<Tile> {
        let mut loops = Vec::new();
        let mut at = root;
        let assign = loop {
            match at {
                Stmt::For(l) if l.mode == Mode::Unroll && l.counting.is_none() => {
                    loops.push((l.var.clone(), from_zero(&l.range)?));
                    let [only] = &l.body[..] else { return None };
                    at = only;
                }
                Stmt::Assign(assign) if assign.op == AssignOp::Reduce(Reduction::Sum) && !assign.atomic => {
                    break assign;
                }
                _ => return None,
            }
        };
        let mut factors: Vec<&Access> = Vec::new();
        assign.value.for_each_access(&mut |access| factors.push(access));
        let [a, b] = factors[..] else { return None };
        let in_registers = |x: &Access| buffers.get(&x.buffer).is_some_and(|b| b.space == Space::Reg);
        let target = &assign.target;
        let apart = a.buffer != target.buffer && b.buffer != target.buffer;
        if !apart || ![a, b, target].into_iter().all(in_registers) {
            return None;
        }
        // Every loop numbers one dimension of the result by itself, so no two iterations meet in an element.
        let position = |var: &Sym| target.index.iter().position(|i| i.as_var() == Some(var));
        let mut placed = Vec::new();
        for (var, extent) in &loops {
            placed.push((position(var)?, var.clone(), *extent));
        }
        placed.sort_by_key(|(at, ..)| *at);
        let mentions = |x: &Access, var: &Sym| x.index.iter().any(|i| i.mentions(var));
        let mut sides = [Side::new(), Side::new()];
        for (_, var, extent) in placed {
            match (mentions(a, &var), mentions(b, &var)) {
                (true, false) => sides[0].push((var, extent)),
                (false, true) => sides[1].push((var, extent)),
                _ => return None,
            }
        }
        let worth_it = sides.iter().all(|side| count(side) > 1);
        worth_it.then(|| Tile { sides, assign: assign.clone() })
    }

    /// The nest in its new order.
    fn serpentine(self) -> Stmt {
        let [a, b] = self.sides;
        let (outer, inner) = if count(&a) < count(&b) { (b, a) } else { (a, b) };
        let row = outer.iter().fold(Index::default(), |row, (var, n)| &row.scaled(*n) + &Index::var(var));
        let back = Cond::eq(parity(&row), 1.into());
        let turned = |s: &Sym| {
            let (var, n) = inner.iter().find(|(var, _)| var == s)?;
            let forth = Index::var(var);
            Some(Index::select(back.clone(), &Index::constant(n - 1) - &forth, forth))
        };
        let Assign { target, value, .. } = &self.assign;
        let (target, value) = (target.substitute(&turned), value.substitute(&turned));
        let turned = Stmt::Assign(Assign { target, value, ..self.assign });
        let loops = inner.iter().rev().chain(outer.iter().rev());
        loops.fold(turned, |nest, (var, n)| For::with_mode(var, Mode::Unroll, Range::upto(*n), vec![nest]))
    }
}

/// How many elements the loops number.
fn count(side: &Side) -> i64 {
    side.iter().map(|(_, n)| n).product()
}

/// The remainder of an index by 2: terms with an even factor do not count.
fn parity(index: &Index) -> Index {
    let odd = index.terms().iter().filter(|(_, c)| c % 2 != 0);
    let sum = odd.fold(Index::default(), |sum, (atom, _)| &sum + &Index::atom(atom.clone()));
    sum.offset(index.constant_term()).rem(2)
}

/// The number of iterations of a loop that counts from 0 by 1.
fn from_zero(range: &Range) -> Option<i64> {
    match range {
        Range::Span { lo, hi, step } if lo.as_constant() == Some(0) && step.as_constant() == Some(1) => {
            hi.as_constant()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::serpentine;
    use crate::ir::{parse, print};

    fn ordered(tile: &str) -> String {
        let program = parse::program(&format!(
            "program p(x: in f32[8], y: out f32[32, 4, 4])
             {{
               for b in block.x(1) {{ for t in threads(32@1) {{
                 alloc c: f32[4, 4] reg
                 alloc r: f32[8] reg
                 for i in unroll 0..8 {{ r[i] = x[i] }}
                 for i in unroll 0..4, j in unroll 0..4 {{ c[i, j] = 0 }}
                 {tile}
                 for i in unroll 0..4, j in unroll 0..4 {{ y[t, i, j] = c[i, j] }}
               }} }}
             }}"
        ));
        print::program(&serpentine(program.expect("parses")))
    }

    #[test]
    fn rows_run_forwards_and_backwards() {
        let text = ordered("for j in unroll 0..4, i in unroll 0..4 { c[i, j] += r[i] * r[j + 4] }");
        let row = "      for i in unroll 0..4, j in unroll 0..4 {
        c[i, i%2 == 1 ? -j + 3 : j] += r[i] * r[(i%2 == 1 ? -j + 3 : j) + 4]
      }
";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn the_longer_side_is_outside() {
        let text = ordered("for i in unroll 0..2, j in unroll 0..4 { c[i, j] += r[i] * r[j + 4] }");
        assert!(text.contains("for j in unroll 0..4, i in unroll 0..2 {"), "{text}");
        assert!(text.contains("c[j%2 == 1 ? -i + 1 : i, j] +="), "{text}");
    }

    #[test]
    fn what_is_no_outer_product_stays() {
        for tile in [
            "for i in unroll 0..4, j in unroll 0..4 { c[i, j] += r[i] * r[i + 4] }",
            "for i in unroll 0..4, j in unroll 0..4 { c[i, 0] += r[i] * r[j + 4] }",
            "for i in unroll 0..4, j in 0..4 { c[i, j] += r[i] * r[j + 4] }",
            "for i in unroll 0..4, j in unroll 0..4 { c[i, j] = r[i] * r[j + 4] }",
        ] {
            assert!(!ordered(tile).contains("%2"), "{tile}");
        }
    }
}
