//! Asking once for a whole loop what the conditions inside ask each time.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   for i in 0..n { y[i] = x[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "split(y.i, 4) -> o, i\ntail(y.i, hoist)").unwrap();
//! assert!(after.program().to_string().contains("
//!   for o in 0..ceil(n, 4) {
//!     if 4*o + 3 < n {
//!       for i in 0..4 {
//!         y[4*o + i] = x[4*o + i]
//!       }
//!     } else {
//!       for i in 0..4 {
//!         if 4*o + i < n {
//!           y[4*o + i] = x[4*o + i]
//!         }
//!       }
//!     }
//!   }
//! "));
//! ```

use crate::index::{Atom, Comparison, Cond, Index, Ranges};
use crate::ir::{AssignOp, Body, For, If, Mode, ParamKind, Program, Space, Stmt, Value, facts, walk};
use crate::schedule::facts::Facts;
use crate::schedule::rewrite::{Place, refresh_loop};
use crate::sym::Sym;

use super::without_certain;

/// The loop behind its conditions, and as it was.
pub(super) fn hoist(l: &For, place: &Place) -> Result<Vec<Stmt>, &'static str> {
    if !matches!(l.mode, Mode::Serial | Mode::Unroll) || l.counting.is_some() {
        return Err("its iterations are blocks or threads");
    }
    let sizes: Vec<Sym> = place
        .program
        .params
        .iter()
        .filter(|p| matches!(p.kind, ParamKind::Size))
        .map(|p| p.sym.clone())
        .collect();
    let mut search = Search { sizes: &sizes, inner: Vec::new(), facts: place.facts(), hardest: Vec::new() };
    search.visit(&Stmt::For(l.clone()));
    let all = search.hardest.into_iter().fold(Cond::TRUE, Cond::and);
    if all == Cond::TRUE {
        return Err("no condition inside asks anything of sizes that can be asked of all iterations at once");
    }
    let mut known = facts::of_program(place.program);
    place.outer().iter().for_each(|o| facts::enter_loop(&mut known, o));
    known.assume(&all);
    let then = without_certain(&[Stmt::For(l.clone())], &mut known, &place.program.buffers());
    if then == [Stmt::For(l.clone())] {
        return Err("its conditions do not follow from that of one iteration");
    }
    // What runs for the last iterations only is not worth the space that it takes when it is unrolled; registers have no
    // numbers that are known only when it runs.
    let mut rest = refresh_loop(l.clone());
    if rest.mode == Mode::Unroll && !touches_registers(&rest.body, place.program) {
        rest.mode = Mode::Serial;
    }
    let otherwise: Body = vec![Stmt::For(rest)].into();
    Ok(vec![Stmt::If(If { cond: all, then: then.into(), otherwise })])
}

fn touches_registers(stmts: &[Stmt], program: &Program) -> bool {
    let buffers = program.buffers();
    let mut touches = false;
    walk::for_each_symbol(stmts, &mut |sym| {
        touches |= buffers.get(sym).is_some_and(|buffer| buffer.space == Space::Reg);
    });
    touches
}

/// The conditions in a loop, each of the iteration for which it is hardest.
struct Search<'a> {
    sizes: &'a [Sym],
    /// The variables of the loop and of those inside.
    inner: Vec<Sym>,
    facts: Facts,
    hardest: Vec<Cond>,
}

impl Search<'_> {
    fn visit(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(l) => {
                self.facts.enter(l);
                self.inner.push(l.var.clone());
            }
            Stmt::If(i) => self.ask(&i.cond),
            Stmt::Assign(a) if a.op == AssignOp::Store => self.value(&a.value),
            _ => {}
        }
        walk::bodies(stmt).flatten().for_each(|s| self.visit(s));
    }

    fn value(&mut self, value: &Value) {
        if let Value::Select(cond, a, b) = value {
            self.ask(cond);
            self.value(a);
            self.value(b);
        }
    }

    fn ask(&mut self, cond: &Cond) {
        for conjunct in cond.conjuncts() {
            if !self.sizes.iter().any(|size| conjunct.mentions(size)) {
                continue;
            }
            if let Some(hardest) = self.hardest(conjunct)
                && !self.hardest.contains(&hardest)
            {
                self.hardest.push(hardest);
            }
        }
    }

    /// The condition where it is hardest; `None` where that is not one iteration.
    fn hardest(&self, cond: &Cond) -> Option<Cond> {
        let Cond::Compare(how @ (Comparison::Lt | Comparison::Le), x, y) = cond else { return None };
        let ranges = self.facts.ranges();
        Some(Cond::compare(*how, self.extreme(x, true, ranges)?, self.extreme(y, false, ranges)?))
    }

    /// The largest or smallest value of an index over the inner loops.
    fn extreme(&self, index: &Index, largest: bool, ranges: &Ranges) -> Option<Index> {
        let mut out = Index::constant(index.constant_term());
        for (atom, factor) in index.terms() {
            let up = largest == (*factor > 0);
            let part = match atom {
                _ if !atom.mentions_any(|s| self.inner.contains(s)) => Index::atom(atom.clone()),
                Atom::Var(sym) => {
                    let range = ranges.get(sym);
                    Index::constant(if up { range.hi? } else { range.lo? })
                }
                // Division goes up and down with what is divided.
                Atom::Div(x, d) => self.extreme(x, up, ranges)?.div(*d),
                _ => return None,
            };
            out = &out + &part.scaled(*factor);
        }
        Some(out)
    }
}
