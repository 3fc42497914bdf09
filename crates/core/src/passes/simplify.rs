//! Leaves out what is known.
//!
//! *Takes* any program. *Gives* the same without guards that always hold, branches that are never taken, loops that
//! never run or run once, `let`s and buffers that nothing uses, and with indices as short as the ranges of their
//! variables allow. *Stands* after the passes that make code in general form, so that they need not care, and before
//! barriers are placed, so that only what is really executed asks for one.
//!
//! ```
//! use warpwright_core::ir::{parse, print};
//! use warpwright_core::passes::simplify::simplify;
//!
//! let before = "
//! program p(n: size, x: in f32[n], y: out f32[n])
//! {
//!   if n%32 == 0 {
//!     for b in block.x(ceil(n, 32)) {
//!       for t in threads(32@1) {
//!         for u in 0..1 {
//!           let i = 32*b + t + u
//!           if i < n { y[i] = x[i] }
//!         }
//!       }
//!     }
//!   }
//! }";
//! let after = "
//! program p(n: size, x: in f32[n], y: out f32[n])
//! {
//!   if n%32 == 0 {
//!     for b in block.x(ceil(n, 32)) {
//!       for t in threads(32@1) {
//!         let i = 32*b + t
//!         y[i] = x[i]
//!       }
//!     }
//!   }
//! }";
//! let (before, after) = (parse::program(before)?, parse::program(after)?);
//! assert_eq!(print::program(&simplify(before)), print::program(&after));
//! # Ok::<(), warpwright_core::diag::Diagnosis>(())
//! ```

use std::collections::{HashMap, HashSet};

use crate::index::{Cond, Facts, Index, prove};
use crate::ir::{
    Access, Assign, Body, Buffer, For, If, Instruction, Mode, Operand, Program, Range, Span, Stmt, Value,
    Window, facts, walk,
};
use crate::sym::Sym;

/// Leaves out what is known.
pub fn simplify(program: Program) -> Program {
    let mut program = program;
    let mut place = Place { facts: facts::of_program(&program), buffers: program.buffers() };
    let body = std::mem::take(&mut program.body);
    program.body = without_unused(place.list(body));
    program
}

/// A place in a program and what is known there.
struct Place {
    facts: Facts,
    buffers: HashMap<Sym, Buffer>,
}

impl Place {
    fn list(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let outside = self.facts.mark();
        let mut out = Vec::with_capacity(stmts.len());
        let mut stmts = std::collections::VecDeque::from(stmts);
        while let Some(stmt) = stmts.pop_front() {
            match stmt {
                Stmt::For(l) => self.repeated(l, &mut out, &mut stmts),
                Stmt::If(i) => self.branches(i, &mut out),
                Stmt::Let(sym, value) => {
                    let value = self.index(&value);
                    self.facts.define(&sym, &value);
                    out.push(Stmt::Let(sym, value));
                }
                other => out.extend(self.plain(other)),
            }
        }
        self.facts.reset(outside);
        out
    }

    fn repeated(&mut self, l: For, out: &mut Vec<Stmt>, rest: &mut std::collections::VecDeque<Stmt>) {
        let mut l = l;
        l.range = self.range(&l.range);
        let plain = matches!(l.mode, Mode::Serial | Mode::Unroll | Mode::Vector) && l.counting.is_none();
        if plain {
            if self.never_runs(&l.range) {
                return;
            }
            if let Some(value) = only_value(&l.range) {
                let body = walk::substitute(&l.body, &|s| (*s == l.var).then(|| value.clone()));
                if !body.iter().any(declares) {
                    body.into_iter().rev().for_each(|s| rest.push_front(s));
                    return;
                }
            }
        }
        let before = self.facts.mark();
        facts::enter_loop(&mut self.facts, &l);
        l.body = self.list(l.body.take()).into();
        self.facts.reset(before);
        l.counting.iter().for_each(|ordinal| self.facts.at_least(ordinal, 0));
        let useless = l.body.is_empty() && l.counting.is_none();
        if !useless {
            out.push(Stmt::For(l));
        }
    }

    fn never_runs(&self, range: &Range) -> bool {
        match range {
            Range::Span { lo, hi, .. } | Range::Part { lo, hi, .. } => {
                prove(&self.facts, &Cond::lt(lo.clone(), hi.clone())) == Some(false)
            }
            Range::List(values) => values.is_empty(),
        }
    }

    fn branches(&mut self, mut i: If, out: &mut Vec<Stmt>) {
        let cond = self.cond(&i.cond);
        match cond.as_constant() {
            Some(truth) => {
                let taken = self.list(if truth { i.then } else { i.otherwise }.into());
                // What it declares would meet what follows: names are unique, so nothing is captured.
                out.extend(taken);
            }
            None => {
                let before = self.facts.mark();
                self.facts.assume(&cond);
                let then = self.list(i.then.take());
                self.facts.reset(before);
                self.facts.assume(&cond.clone().negate());
                let otherwise = self.list(i.otherwise.take());
                self.facts.reset(before);
                out.extend(
                    match (then.is_empty(), otherwise.is_empty()) {
                        (true, true) => None,
                        (true, false) => Some(If {
                            cond: cond.negate(),
                            then: otherwise.into(),
                            otherwise: Body::default(),
                        }),
                        _ => Some(If { cond, then: then.into(), otherwise: otherwise.into() }),
                    }
                    .map(Stmt::If),
                );
            }
        }
    }

    /// A statement that is neither a loop over one variable nor a condition.
    fn plain(&mut self, stmt: Stmt) -> Option<Stmt> {
        Some(match stmt {
            Stmt::Tasks(mut t) => {
                let before = self.facts.mark();
                facts::enter_tasks(&mut self.facts, &t);
                t.body = self.list(t.body.take()).into();
                self.facts.reset(before);
                Stmt::Tasks(t)
            }
            Stmt::Own(mut o) => {
                o.window = self.window(&o.window);
                let before = self.facts.mark();
                facts::enter_own(&mut self.facts, &o, &self.buffers);
                o.body = self.list(o.body.take()).into();
                self.facts.reset(before);
                if o.body.is_empty() {
                    return None;
                }
                Stmt::Own(o)
            }
            Stmt::On(mut on) => {
                on.body = self.list(on.body.take()).into();
                if on.body.is_empty() {
                    return None;
                }
                Stmt::On(on)
            }
            Stmt::Assign(a) => {
                Stmt::Assign(Assign { target: self.access(&a.target), value: self.value(&a.value), ..a })
            }
            Stmt::Instruction(i) => {
                let operand = |o: &Operand| match o {
                    Operand::Window(w) => Operand::Window(self.window(w)),
                    Operand::Scalar(s) => Operand::Scalar(self.index(s)),
                };
                let operands = i.operands.iter().map(operand).collect();
                let signal = i.signal.as_ref().map(|(ring, n)| (ring.clone(), self.index(n)));
                Stmt::Instruction(Instruction { operands, signal, ..i })
            }
            other => other,
        })
    }

    fn range(&self, range: &Range) -> Range {
        let index = |i: &Index| self.index(i);
        match range {
            Range::Span { lo, hi, step } => Range::Span { lo: index(lo), hi: index(hi), step: index(step) },
            Range::List(values) => Range::List(values.clone()),
            Range::Part { index: part, parts, lo, hi } => {
                Range::Part { index: index(part), parts: index(parts), lo: index(lo), hi: index(hi) }
            }
        }
    }

    /// Shorter by intervals; `let`s keep their names.
    fn index(&self, index: &Index) -> Index {
        self.facts.ranges().simplify(index)
    }

    fn cond(&self, cond: &Cond) -> Cond {
        self.shorter(&self.facts.simplify_cond(cond))
    }

    fn shorter(&self, cond: &Cond) -> Cond {
        match cond {
            Cond::Compare(how, a, b) => Cond::compare(*how, self.index(a), self.index(b)),
            Cond::Flag(_) => cond.clone(),
            Cond::Not(c) => self.shorter(c).negate(),
            Cond::And(v) => v.iter().fold(Cond::TRUE, |all, c| all.and(self.shorter(c))),
            Cond::Or(v) => v.iter().fold(Cond::FALSE, |any, c| any.or(self.shorter(c))),
        }
    }

    fn access(&self, access: &Access) -> Access {
        Access { buffer: access.buffer.clone(), index: access.index.iter().map(|i| self.index(i)).collect() }
    }

    fn window(&self, window: &Window) -> Window {
        let span = |span: &Span| match span {
            Span::At(i) => Span::At(self.index(i)),
            Span::Slice(start, len) => Span::Slice(self.index(start), *len),
            Span::All => Span::All,
        };
        Window { buffer: window.buffer.clone(), dims: window.dims.iter().map(span).collect() }
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Const(_) | Value::Scalar(_) => value.clone(),
            Value::Load(access) => Value::Load(self.access(access)),
            Value::Unary(op, a) => Value::Unary(*op, Box::new(self.value(a))),
            Value::Binary(op, a, b) => Value::binary(*op, self.value(a), self.value(b)),
            Value::Cast(t, a) => Value::Cast(*t, Box::new(self.value(a))),
            Value::Select(cond, a, b) => {
                let cond = self.cond(cond);
                match cond.as_constant() {
                    Some(true) => self.value(a),
                    Some(false) => self.value(b),
                    None => {
                        let before = self.facts.mark();
                        self.facts.assume(&cond);
                        let this = self.value(a);
                        self.facts.reset(before);
                        self.facts.assume(&cond.clone().negate());
                        let that = self.value(b);
                        self.facts.reset(before);
                        if this == that { this } else { Value::Select(cond, Box::new(this), Box::new(that)) }
                    }
                }
            }
        }
    }
}

/// The value of a loop variable that takes only one.
fn only_value(range: &Range) -> Option<Index> {
    match range {
        Range::Span { lo, .. } if range.constant_trip_count() == Some(1) => Some(lo.clone()),
        Range::List(values) if values.len() == 1 => Some(Index::constant(values[0])),
        _ => None,
    }
}

/// Whether a statement makes something visible for those after it: such a body keeps its braces.
fn declares(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::AllocRing(_) | Stmt::Roles(_))
}

/// Removes `let`s and buffers that nothing mentions any more.
fn without_unused(stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut stmts = stmts;
    loop {
        let mut mentioned: HashSet<Sym> = HashSet::new();
        walk::for_each(&stmts, &mut |stmt| match stmt {
            Stmt::Let(_, value) => value.for_each_var(&mut |s| {
                mentioned.insert(s.clone());
            }),
            Stmt::Alloc(_) => {}
            other => {
                walk::for_each_symbol_of(other, &mut |s| {
                    mentioned.insert(s.clone());
                });
            }
        });
        let mut removed = false;
        stmts = walk::rewrite(stmts, &mut |stmt| match &stmt {
            Stmt::Let(sym, _) if !mentioned.contains(sym) => {
                removed = true;
                Vec::new()
            }
            Stmt::Alloc(buffer) if !mentioned.contains(&buffer.sym) => {
                removed = true;
                Vec::new()
            }
            _ => vec![stmt],
        });
        if !removed {
            return stmts;
        }
    }
}
