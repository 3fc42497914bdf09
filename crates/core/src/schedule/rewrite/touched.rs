//! Which elements statements may touch, found by running every loop.

use std::collections::{HashMap, HashSet};

use super::cover::values_of;
use crate::index::{Cond, Index};
use crate::ir::{Access, Buffer, Operand, Own, Span, Stmt, Value, walk};
use crate::layout::indices;
use crate::sym::Sym;

/// More than so many accesses are not looked at.
const MOST_ACCESSES: usize = 1 << 18;

/// What is known while statements are looked at.
pub(in crate::schedule) struct Touched<'a> {
    buffers: &'a HashMap<Sym, Buffer>,
    values: HashMap<Sym, i64>,
    accesses: usize,
}

/// The numbers of elements of a buffer, counted in C order. `None` where they depend on what is not known.
pub(in crate::schedule) type Elements = Option<HashSet<i64>>;

impl<'a> Touched<'a> {
    /// Nothing is known but what the buffers of the program are.
    pub fn new(buffers: &'a HashMap<Sym, Buffer>) -> Touched<'a> {
        Touched { buffers, values: HashMap::new(), accesses: 0 }
    }

    /// From now on a loop is in the iteration where its variable has this value.
    pub fn within(&mut self, var: &Sym, value: i64) {
        self.values.insert(var.clone(), value);
    }

    /// Nothing is known any more of the variable of a loop.
    pub fn forget(&mut self, var: &Sym) {
        self.values.remove(var);
    }

    /// The elements of `buffer` that statements may touch: conditions that nothing is known of hold and do not hold.
    pub fn of(&mut self, stmts: &[Stmt], buffer: &Sym) -> Elements {
        let mut found = HashSet::new();
        self.list(stmts, buffer, &mut found)?;
        Some(found)
    }

    fn list(&mut self, stmts: &[Stmt], buffer: &Sym, found: &mut HashSet<i64>) -> Option<()> {
        for stmt in stmts {
            match stmt {
                Stmt::For(l) => {
                    for value in values_of(&l.range)? {
                        self.within(&l.var, value);
                        self.list(&l.body, buffer, found)?;
                    }
                }
                Stmt::Own(own) => self.own(own, buffer, found)?,
                Stmt::Let(var, value) => match self.value(value) {
                    Some(value) => self.within(var, value),
                    None => {
                        self.values.remove(var);
                    }
                },
                Stmt::If(i) => {
                    let holds = self.holds(&i.cond);
                    if holds != Some(false) {
                        self.list(&i.then, buffer, found)?;
                    }
                    if holds != Some(true) {
                        self.list(&i.otherwise, buffer, found)?;
                    }
                }
                Stmt::Assign(a) => {
                    self.element(&a.target, buffer, found)?;
                    self.loads(&a.value, buffer, found)?;
                }
                Stmt::Instruction(call) => {
                    for operand in &call.operands {
                        if let Operand::Window(window) = operand
                            && window.buffer == *buffer
                        {
                            let lengths = lengths(&window.dims, self.buffers.get(buffer)?)?;
                            for point in indices(&lengths) {
                                let shifted = window.start().into_iter().zip(point).map(|(i, p)| i.offset(p));
                                let access = Access { buffer: buffer.clone(), index: shifted.collect() };
                                self.element(&access, buffer, found)?;
                            }
                        }
                    }
                }
                other => {
                    for body in walk::bodies(other) {
                        self.list(body, buffer, found)?;
                    }
                }
            }
        }
        Some(())
    }

    fn own(&mut self, own: &Own, buffer: &Sym, found: &mut HashSet<i64>) -> Option<()> {
        let window = &own.window;
        let all = lengths(&window.dims, self.buffers.get(&window.buffer)?)?;
        let kept = window.dims.iter().zip(all).zip(window.start());
        let kept: Vec<(i64, Index)> = kept
            .filter(|((span, _), _)| !matches!(span, Span::At(_)))
            .map(|((_, length), start)| (length, start))
            .collect();
        let lengths: Vec<i64> = kept.iter().map(|(length, _)| *length).collect();
        // Those that are gone over in runs are named by the first of each.
        let named = |point: &Vec<i64>| point.last().is_none_or(|place| place % own.run == 0);
        for point in indices(&lengths).filter(named) {
            for ((var, (_, start)), place) in own.vars.iter().zip(&kept).zip(point) {
                let first = self.value(start)?;
                self.within(var, first + place);
            }
            self.list(&own.body, buffer, found)?;
        }
        Some(())
    }

    fn loads(&mut self, value: &Value, buffer: &Sym, found: &mut HashSet<i64>) -> Option<()> {
        if let Value::Select(cond, a, b) = value {
            let holds = self.holds(cond);
            if holds != Some(false) {
                self.loads(a, buffer, found)?;
            }
            if holds != Some(true) {
                self.loads(b, buffer, found)?;
            }
            return Some(());
        }
        let mut accesses = Vec::new();
        value.for_each_access(&mut |access| accesses.push(access.clone()));
        accesses.iter().try_for_each(|access| self.element(access, buffer, found))
    }

    fn element(&mut self, access: &Access, buffer: &Sym, found: &mut HashSet<i64>) -> Option<()> {
        if access.buffer != *buffer {
            return Some(());
        }
        self.accesses += 1;
        if self.accesses > MOST_ACCESSES {
            return None;
        }
        let extents = self.buffers.get(buffer)?.constant_extents()?;
        let mut number = 0;
        for (index, extent) in access.index.iter().zip(extents) {
            number = number * extent + self.value(index)?;
        }
        found.insert(number);
        Some(())
    }

    fn value(&self, index: &Index) -> Option<i64> {
        index.eval(&|s| self.values.get(s).copied()).ok()
    }

    fn holds(&self, cond: &Cond) -> Option<bool> {
        cond.eval(&|s| self.values.get(s).copied()).ok()
    }
}

/// How many elements a window has along each dimension.
fn lengths(dims: &[Span], buffer: &Buffer) -> Option<Vec<i64>> {
    dims.iter()
        .zip(&buffer.dims)
        .map(|(span, dim)| match span {
            Span::At(_) => Some(1),
            Span::Slice(_, length) => Some(*length),
            Span::All => dim.extent.as_constant(),
        })
        .collect()
}
