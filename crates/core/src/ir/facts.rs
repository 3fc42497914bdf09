//! What is known at each place of a program: the ranges of the loops around it, the guards, the assumptions.

use std::collections::HashMap;

use super::buffer::Buffer;
use super::program::{ParamKind, Program};
use super::statement::{For, If, Own, Range, Stmt, Tasks};
use super::walk;
use crate::index::{Facts, Index};
use crate::sym::Sym;

/// What is known in all of a program: sizes and row strides are not negative, launch parameters are positive, and the
/// assumptions hold.
pub fn of_program(program: &Program) -> Facts {
    let mut facts = Facts::new();
    for param in &program.params {
        match param.kind {
            ParamKind::Size => facts.at_least(&param.sym, 0),
            ParamKind::Launch => facts.at_least(&param.sym, 1),
            _ => {}
        }
    }
    for stride in program.tensors().filter_map(|t| t.row_stride.as_ref()) {
        facts.at_least(stride, 0);
    }
    program.assumes.iter().for_each(|a| facts.assume(a));
    facts
}

/// Calls `visit` for every statement of a program, outer before inner, with what is known where it stands.
pub fn at_each<'a>(program: &'a Program, visit: &mut dyn FnMut(&'a Stmt, &Facts)) {
    at_each_of(&program.body, &mut of_program(program), &program.buffers(), visit);
}

/// As [`at_each`] for those statements alone for which `wanted` holds: nothing is put together for places where none is.
pub fn at_those<'a>(
    program: &'a Program,
    wanted: &dyn Fn(&Stmt) -> bool,
    visit: &mut dyn FnMut(&'a Stmt, &Facts),
) {
    if program.body.iter().any(|stmt| holds(stmt, wanted)) {
        Visit { buffers: &program.buffers(), wanted, visit }.list(&program.body, &mut of_program(program));
    }
}

/// As [`at_each`] for statements inside a program, with what is known before them and the buffers they use. `facts`
/// are afterwards as they were, but for symbols that the statements bind.
pub fn at_each_of<'a>(
    stmts: &'a [Stmt],
    facts: &mut Facts,
    buffers: &HashMap<Sym, Buffer>,
    visit: &mut dyn FnMut(&'a Stmt, &Facts),
) {
    Visit { buffers, wanted: &|_| true, visit }.list(stmts, facts);
}

/// Whether `wanted` holds of a statement or of one inside it.
fn holds(stmt: &Stmt, wanted: &dyn Fn(&Stmt) -> bool) -> bool {
    wanted(stmt) || walk::bodies(stmt).any(|body| body.iter().any(|s| holds(s, wanted)))
}

/// A walk over statements with what is known where they stand.
struct Visit<'v, 'a> {
    buffers: &'v HashMap<Sym, Buffer>,
    wanted: &'v dyn Fn(&Stmt) -> bool,
    visit: &'v mut dyn FnMut(&'a Stmt, &Facts),
}

impl<'a> Visit<'_, 'a> {
    fn list(&mut self, stmts: &'a [Stmt], facts: &mut Facts) {
        let outside = facts.mark();
        for stmt in stmts {
            if (self.wanted)(stmt) {
                (self.visit)(stmt, facts);
            }
            if holds(stmt, self.wanted) {
                self.inside(stmt, facts);
            }
            match stmt {
                Stmt::Let(sym, value) => facts.define(sym, value),
                Stmt::For(For { counting: Some(ordinal), .. }) => facts.at_least(ordinal, 0),
                _ => {}
            }
        }
        facts.reset(outside);
    }

    fn inside(&mut self, stmt: &'a Stmt, facts: &mut Facts) {
        let before = facts.mark();
        match stmt {
            Stmt::For(l) => {
                enter_loop(facts, l);
                self.list(&l.body, facts);
            }
            Stmt::Tasks(t) => {
                enter_tasks(facts, t);
                self.list(&t.body, facts);
            }
            Stmt::Own(o) => {
                enter_own(facts, o, self.buffers);
                self.list(&o.body, facts);
            }
            Stmt::If(If { cond, then, otherwise }) => {
                facts.assume(cond);
                self.list(then, facts);
                facts.reset(before);
                facts.assume(&cond.clone().negate());
                self.list(otherwise, facts);
            }
            Stmt::On(on) => self.list(&on.body, facts),
            _ => {}
        }
        facts.reset(before);
    }
}

/// Adds what is known inside a loop.
pub fn enter_loop(facts: &mut Facts, l: &For) {
    match &l.range {
        Range::Span { lo, hi, step } => facts.runs_over(&l.var, lo, hi, step),
        Range::List(values) => facts.is_one_of(&l.var, values),
        Range::Part { index, parts, lo, hi } => {
            facts.runs_over(&l.var, lo, hi, &1.into());
            facts.partition(index, std::slice::from_ref(&l.var), &[parts, lo, hi]);
        }
    }
    l.counting.iter().for_each(|ordinal| facts.at_least(ordinal, 0));
}

/// Adds what is known inside a loop over tasks.
pub fn enter_tasks(facts: &mut Facts, t: &Tasks) {
    for (var, extent) in t.vars.iter().zip(&t.extents) {
        facts.runs_over(var, &0.into(), extent, &1.into());
    }
    let of: Vec<&Index> = t.extents.iter().chain([&t.stride]).collect();
    facts.partition(&t.start, &t.vars, &of);
}

/// Adds what is known inside a loop over owned elements. Its variables count from the start of the window.
pub fn enter_own(facts: &mut Facts, o: &Own, buffers: &HashMap<Sym, Buffer>) {
    let Some(buffer) = buffers.get(&o.window.buffer) else { return };
    for (var, extent, step) in o.steps(buffer) {
        // Runs are whole: the last begins a run before the end.
        facts.runs_over(var, &0.into(), &extent.offset(1 - step), &step.into());
    }
}
