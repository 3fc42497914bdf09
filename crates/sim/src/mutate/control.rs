//! Mistakes in loops, guards and ranges of threads.

use std::collections::HashSet;

use warpwright_core::index::{Cond, Index};
use warpwright_core::instr;
use warpwright_core::ir::{For, If, Instruction, Mode, Operand, Range, Role, Stmt, Tasks, Value, walk};
use warpwright_core::sym::Sym;

use super::edit::{self, Body, Site};

/// One more or one less passes.
pub(super) fn guard_off_by_one(site: &Site<'_>) -> Vec<Body> {
    let off = |c: &Cond| match c {
        Cond::Compare(how, a, b) => {
            vec![Cond::compare(*how, a.clone(), b.offset(1)), Cond::compare(*how, a.clone(), b.offset(-1))]
        }
        _ => Vec::new(),
    };
    site.with_each(edit::with_guard(site.stmt(), &|c| edit::conditions(c, &off)))
}

/// One of the conditions that must hold is left out; flags are not guards.
pub(super) fn guard_dropped(site: &Site<'_>) -> Vec<Body> {
    let without_one = |cond: &Cond| {
        let all = cond.conjuncts();
        let without = |at: usize| {
            let rest = all.iter().enumerate().filter(|(i, _)| *i != at);
            rest.fold(Cond::TRUE, |sum, (_, c)| sum.and(c.clone()))
        };
        let is_guard = |at: &usize| !matches!(all[*at], Cond::Flag(_));
        (0..all.len()).filter(is_guard).map(without).collect()
    };
    let simpler = |stmt: Stmt| match stmt {
        Stmt::If(If { cond, then, .. }) if cond == Cond::TRUE => then.into(),
        Stmt::Assign(mut a) => {
            if let Value::Select(cond, this, _) = &a.value
                && *cond == Cond::TRUE
            {
                a.value = (**this).clone();
            }
            vec![Stmt::Assign(a)]
        }
        other => vec![other],
    };
    edit::with_guard(site.stmt(), &without_one).into_iter().map(|s| site.with(simpler(s))).collect()
}

pub(super) fn flag_inverted(site: &Site<'_>) -> Vec<Body> {
    let inverted = |c: &Cond| match c {
        Cond::Flag(_) => vec![c.clone().negate()],
        _ => Vec::new(),
    };
    site.with_each(edit::with_guard(site.stmt(), &|c| edit::conditions(c, &inverted)))
}

/// The loops whose turns are not threads.
fn with_range(site: &Site<'_>, f: impl Fn(&Range) -> Vec<Range>) -> Vec<Body> {
    match site.stmt() {
        Stmt::For(l) if l.threads().is_none() => {
            site.with_each(f(&l.range).into_iter().map(|range| Stmt::For(For { range, ..l.clone() })))
        }
        _ => Vec::new(),
    }
}

pub(super) fn extent_off_by_one(site: &Site<'_>) -> Vec<Body> {
    with_range(site, |range| match range {
        Range::Span { lo, hi, step } => {
            let to = |d: i64| Range::Span { lo: lo.clone(), hi: hi.offset(d), step: step.clone() };
            vec![to(1), to(-1)]
        }
        Range::Part { index, parts, lo, hi } => {
            let to = |d: i64| Range::Part {
                index: index.clone(),
                parts: parts.clone(),
                lo: lo.clone(),
                hi: hi.offset(d),
            };
            vec![to(1), to(-1)]
        }
        Range::List(_) => Vec::new(),
    })
}

pub(super) fn start_off_by_one(site: &Site<'_>) -> Vec<Body> {
    if matches!(site.stmt(), Stmt::For(For { mode: Mode::Block { .. }, .. })) {
        return Vec::new();
    }
    with_range(site, |range| match range {
        Range::Span { lo, hi, step } => {
            vec![Range::Span { lo: lo.offset(1), hi: hi.clone(), step: step.clone() }]
        }
        _ => Vec::new(),
    })
}

pub(super) fn step_wrong(site: &Site<'_>) -> Vec<Body> {
    with_range(site, |range| match range {
        Range::Span { lo, hi, step } if step.as_constant() != Some(1) => {
            let by = |step| Range::Span { lo: lo.clone(), hi: hi.clone(), step };
            vec![by(step.offset(1)), by(step.scaled(2))]
        }
        _ => Vec::new(),
    })
}

pub(super) fn turn_dropped(site: &Site<'_>) -> Vec<Body> {
    with_range(site, |range| match range {
        Range::List(values) => (0..values.len())
            .map(|at| {
                let mut values = values.clone();
                values.remove(at);
                Range::List(values)
            })
            .collect(),
        _ => Vec::new(),
    })
}

/// Every part runs over the whole, or over the part of its neighbour.
pub(super) fn part_not_taken(site: &Site<'_>) -> Vec<Body> {
    with_range(site, |range| match range {
        Range::Part { index, parts, lo, hi } => {
            let first = Range::Part {
                index: Index::constant(0),
                parts: parts.clone(),
                lo: lo.clone(),
                hi: hi.clone(),
            };
            let more =
                Range::Part { index: index.clone(), parts: parts.offset(1), lo: lo.clone(), hi: hi.clone() };
            vec![Range::span(lo.clone(), hi.clone()), first, more]
        }
        _ => Vec::new(),
    })
}

pub(super) fn tasks_shared_wrongly(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Tasks(tasks) = site.stmt() else { return Vec::new() };
    let mut wrong = vec![
        Tasks { start: tasks.start.offset(1), ..tasks.clone() },
        Tasks { stride: tasks.stride.offset(1), ..tasks.clone() },
        Tasks { start: Index::constant(0), stride: Index::constant(1), ..tasks.clone() },
    ];
    for at in 0..tasks.extents.len() {
        let mut short = tasks.clone();
        short.extents[at] = short.extents[at].offset(-1);
        wrong.push(short);
    }
    site.with_each(wrong.into_iter().map(Stmt::Tasks))
}

fn with_threads(site: &Site<'_>, f: impl Fn(i64, i64) -> Vec<(i64, i64)>) -> Vec<Body> {
    let Stmt::For(l) = site.stmt() else { return Vec::new() };
    let Some((count, pitch)) = l.threads() else { return Vec::new() };
    let other = |(count, pitch): (i64, i64)| {
        Stmt::For(For { mode: Mode::Threads { pitch }, range: Range::upto(count), ..l.clone() })
    };
    site.with_each(f(count, pitch).into_iter().map(other))
}

pub(super) fn threads_one_short(site: &Site<'_>) -> Vec<Body> {
    with_threads(site, |count, pitch| vec![(count - 1, pitch)])
}

/// The threads are cut into ranges one larger, one smaller, or twice or half as large.
pub(super) fn partition_does_not_divide(site: &Site<'_>) -> Vec<Body> {
    with_threads(site, |count, pitch| {
        let pitches = [pitch - 1, pitch + 1, pitch / 2, 2 * pitch];
        pitches.into_iter().filter(|p| *p > 0 && *p != pitch).map(|p| (count, p)).collect()
    })
}

/// Two nested loops over threads have changed their variables.
pub(super) fn ownership_transposed(site: &Site<'_>) -> Vec<Body> {
    let Stmt::For(outer) = site.stmt() else { return Vec::new() };
    let [Stmt::For(inner)] = &outer.body[..] else { return Vec::new() };
    if outer.threads().is_none() || inner.threads().is_none() {
        return Vec::new();
    }
    let within = Stmt::For(For { var: outer.var.clone(), ..inner.clone() });
    site.with_each([Stmt::For(For { var: inner.var.clone(), body: vec![within].into(), ..outer.clone() })])
}

/// The first thread of a role, its last, or the boundary between two moves by a warp.
pub(super) fn role_range_wrong(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Roles(roles) = site.stmt() else { return Vec::new() };
    let mut out = Vec::new();
    for (at, role) in roles.iter().enumerate() {
        for (lo, hi) in [(role.lo + 32, role.hi), (role.lo, role.hi - 32), (role.lo, role.hi + 32)] {
            let mut roles = roles.clone();
            roles[at] = Role { lo, hi, ..role.clone() };
            out.push(Stmt::Roles(roles));
        }
    }
    site.with_each(out)
}

/// A nest, a choice, an assignment or an instruction is missing. Synchronisation and initial stores have their own
/// kinds.
pub(super) fn statement_dropped(site: &Site<'_>) -> Vec<Body> {
    match site.stmt() {
        Stmt::For(For { mode: Mode::Block { .. }, .. }) => Vec::new(),
        Stmt::For(_) | Stmt::Own(_) | Stmt::If(_) | Stmt::Assign(_) | Stmt::Instruction(_) | Stmt::On(_) => {
            vec![site.without()]
        }
        _ => Vec::new(),
    }
}

/// Two neighbouring statements, one of which writes what the other touches, are in the wrong order.
pub(super) fn neighbours_swapped(site: &Site<'_>) -> Vec<Body> {
    let Some(next) = site.body.get(site.at + 1) else { return Vec::new() };
    let (here, next) = (Touched::by(site.stmt()), Touched::by(next));
    if here.written.is_disjoint(&next.all) && next.written.is_disjoint(&here.all) {
        return Vec::new();
    }
    vec![site.swapped(site.at + 1)]
}

/// The buffers that a statement touches, at any depth.
#[derive(Default)]
struct Touched {
    written: HashSet<Sym>,
    all: HashSet<Sym>,
}

impl Touched {
    fn by(stmt: &Stmt) -> Touched {
        let mut touched = Touched::default();
        walk::for_each(std::slice::from_ref(stmt), &mut |stmt| match stmt {
            Stmt::Assign(assign) => {
                touched.written.insert(assign.target.buffer.clone());
                assign.value.for_each_access(&mut |a| {
                    touched.all.insert(a.buffer.clone());
                });
            }
            Stmt::Instruction(instruction) => touched.instruction(instruction),
            _ => {}
        });
        touched.all.extend(touched.written.iter().cloned());
        touched
    }

    fn instruction(&mut self, instruction: &Instruction) {
        let Some(record) = instr::by_name(&instruction.name) else { return };
        for (operand, spec) in instruction.operands.iter().zip(record.operands) {
            let Operand::Window(window) = operand else { continue };
            self.all.insert(window.buffer.clone());
            if spec.access.writes() {
                self.written.insert(window.buffer.clone());
            }
        }
    }
}
