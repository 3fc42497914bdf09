//! Loops have ranges that mean something (rules 2, 7, 8 and 9): steps are positive, blocks and threads are counted
//! from 0, parts and tasks are partitions, ordinals are uniform, exclusive ors are of numbers that are not negative.

use std::collections::HashMap;

use super::place;
use crate::diag::Diagnosis;
use crate::index::{Atom, Cond, Facts, Index, prove};
use crate::ir::{
    Access, Assign, For, Instruction, Mode, Operand, Program, Range, Span, Stmt, Tasks, Value, facts, walk,
};
use crate::sym::Sym;

/// All faults of ranges and indices.
pub(super) fn check(program: &Program) -> Vec<Diagnosis> {
    let mut faults = Vec::new();
    let blocks = block_extents(program);
    let mut visit = |stmt: &Stmt, facts: &Facts| {
        let mut found = match stmt {
            Stmt::For(l) => loop_faults(l, facts),
            Stmt::Tasks(t) => tasks_faults(t, facts, &blocks),
            _ => Vec::new(),
        };
        each_index(stmt, &mut |index| found.extend(xor_fault(index, facts)));
        faults.extend(found.into_iter().map(|f| f.at(place::of(program, stmt))));
    };
    let mut asks = false;
    walk::for_each(&program.body, &mut |stmt| asks = asks || asks_for_proof(stmt));
    if asks {
        facts::at_each(program, &mut visit);
    } else {
        let nothing = Facts::new();
        walk::for_each(&program.body, &mut |stmt| visit(stmt, &nothing));
    }
    ordinals_under_threads(program, &program.body, None, &mut faults);
    faults
}

/// Whether a statement is right only if something follows from what is known at its place.
fn asks_for_proof(stmt: &Stmt) -> bool {
    let mut asks = match stmt {
        Stmt::For(For { range: Range::Span { step, .. }, .. }) => step.as_constant().is_none(),
        Stmt::For(For { range: Range::Part { .. }, .. }) | Stmt::Tasks(_) => true,
        _ => false,
    };
    each_index(stmt, &mut |index| asks = asks || has_xor(index));
    asks
}

fn has_xor(index: &Index) -> bool {
    index.terms().iter().any(|(atom, _)| match atom {
        Atom::Var(_) => false,
        Atom::Div(x, _) | Atom::Mod(x, _) => has_xor(x),
        Atom::Min(a, b) | Atom::Max(a, b) | Atom::Select(_, a, b) => has_xor(a) || has_xor(b),
        Atom::Xor(..) => true,
    })
}

/// The extent of each block loop by its variable.
fn block_extents(program: &Program) -> HashMap<Sym, Index> {
    let mut out = HashMap::new();
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::For(For { var, mode: Mode::Block { .. }, range: Range::Span { hi, .. }, .. }) = stmt {
            out.insert(var.clone(), hi.clone());
        }
    });
    out
}

fn loop_faults(l: &For, facts: &Facts) -> Vec<Diagnosis> {
    let mut faults = Vec::new();
    let var = &l.var;
    match &l.range {
        Range::Span { lo, hi, step } => {
            let positive = prove(facts, &Cond::lt(0.into(), step.clone()));
            if positive != Some(true) {
                let what = format!("the step {step} of `{var}` is not certainly positive");
                faults.push(Diagnosis::new(what).instead("count upwards; a launch parameter is at least 1"));
            }
            let counted_from_0 = *lo == Index::default() && *step == Index::constant(1);
            match l.mode {
                Mode::Block { .. } | Mode::Threads { .. } if !counted_from_0 => {
                    let what =
                        format!("`{var}` numbers blocks or threads and is not counted from 0 in steps of 1");
                    faults.push(
                        Diagnosis::new(what).instead("count from 0 and add the offset where it is used"),
                    );
                }
                Mode::Threads { pitch } => match hi.as_constant() {
                    Some(count) if count >= 1 && pitch >= 1 => {}
                    Some(count) => {
                        faults.push(Diagnosis::new(format!(
                            "`{var}` splits threads into {count} ranges of {pitch}"
                        )));
                    }
                    None => {
                        let what = format!("`{var}` numbers a range of threads whose size is not constant");
                        faults.push(
                            Diagnosis::new(what)
                                .because("the size of a block is fixed when it is compiled")
                                .instead("split the loop by a constant first"),
                        );
                    }
                },
                _ => {}
            }
        }
        Range::List(_) | Range::Part { .. }
            if matches!(l.mode, Mode::Block { .. } | Mode::Threads { .. }) =>
        {
            faults.push(Diagnosis::new(format!("`{var}` numbers blocks or threads by a list or a part")));
        }
        Range::List(_) => {}
        Range::Part { index, parts, .. } => {
            let inside = Cond::le(0.into(), index.clone()).and(Cond::lt(index.clone(), parts.clone()));
            if prove(facts, &inside) != Some(true) {
                let what = format!("part {index} of {parts} may not exist");
                faults.push(
                    Diagnosis::new(what)
                        .because(format!("0 <= {index} < {parts} does not follow from the loops around"))
                        .instead("number the parts by a loop over exactly as many"),
                );
            }
        }
    }
    faults
}

/// Tasks are a partition among blocks only if each of exactly `stride` blocks starts at its own number.
fn tasks_faults(t: &Tasks, facts: &Facts, blocks: &HashMap<Sym, Index>) -> Vec<Diagnosis> {
    let start = facts.expanded(&t.start);
    let extent = start.as_var().and_then(|s| blocks.get(s));
    let stride = facts.expanded(&t.stride);
    if extent.is_some_and(|e| facts.expanded(e) == stride) {
        return Vec::new();
    }
    let because = match extent {
        Some(extent) => format!("there are {extent} blocks and a stride of {stride}"),
        None => format!("{start} is no block variable"),
    };
    let fault = Diagnosis::new("the tasks are not shared out among the blocks")
        .because(because)
        .instead("write share(g, G) for g in a block loop over G");
    vec![fault]
}

/// An exclusive or of a number that may be negative has no meaning in the index language.
fn xor_fault(index: &Index, facts: &Facts) -> Option<Diagnosis> {
    let mut fault = None;
    for (atom, _) in index.terms() {
        let parts: Vec<&Index> = match atom {
            Atom::Var(_) => continue,
            Atom::Div(x, _) | Atom::Mod(x, _) => vec![x],
            Atom::Min(a, b) | Atom::Max(a, b) | Atom::Select(_, a, b) => vec![a, b],
            Atom::Xor(a, b) => {
                for side in [a, b] {
                    if prove(facts, &Cond::le(0.into(), side.clone())) != Some(true) {
                        let what = format!("{side} stands under xor and may be negative");
                        fault = Some(
                            Diagnosis::new(what).instead("exclusive-or remainders or bounded variables"),
                        );
                    }
                }
                vec![a, b]
            }
        };
        for part in parts {
            fault = fault.or_else(|| xor_fault(part, facts));
        }
    }
    fault
}

/// Calls `visit` for each index of a statement itself, not of statements inside it.
fn each_index(stmt: &Stmt, visit: &mut dyn FnMut(&Index)) {
    fn element(access: &Access, visit: &mut dyn FnMut(&Index)) {
        access.index.iter().for_each(visit);
    }
    fn value(v: &Value, visit: &mut dyn FnMut(&Index)) {
        v.for_each_access(&mut |a| element(a, visit));
    }
    match stmt {
        Stmt::Let(_, index) => visit(index),
        Stmt::Assign(Assign { target, value: v, .. }) => {
            element(target, visit);
            value(v, visit);
        }
        Stmt::Instruction(Instruction { operands, .. }) => {
            for operand in operands {
                match operand {
                    Operand::Scalar(index) => visit(index),
                    Operand::Window(w) => w.dims.iter().for_each(|d| {
                        if let Span::At(i) | Span::Slice(i, _) = d {
                            visit(i);
                        }
                    }),
                }
            }
        }
        _ => {}
    }
}

/// In order, a loop under a loop over threads is run once for each range of threads, and its ordinal would count all
/// of them together; on the machine each thread counts its own.
fn ordinals_under_threads(
    program: &Program,
    stmts: &[Stmt],
    threads: Option<&Sym>,
    faults: &mut Vec<Diagnosis>,
) {
    for stmt in stmts {
        let mut inner = threads;
        if let Stmt::For(l) = stmt {
            if let (Some(ordinal), Some(outer)) = (&l.counting, threads) {
                let fault = Diagnosis::new(format!(
                    "`{ordinal}` counts a loop inside the loop `{outer}` over threads"
                ))
                .because("an ordinal is the same for all threads of the block")
                .instead(format!("put the loop `{}` around the thread loop", l.var));
                faults.push(fault.at(place::of(program, stmt)));
            }
            if matches!(l.mode, Mode::Threads { .. }) {
                inner = Some(&l.var);
            }
        }
        for body in walk::bodies(stmt) {
            ordinals_under_threads(program, body, inner, faults);
        }
    }
}
