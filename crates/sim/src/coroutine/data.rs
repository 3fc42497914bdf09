//! Element statements and register declarations.

use warpwright_core::ir::{Assign, AssignOp, BinaryOp, Buffer, Reduction, Span, UnaryOp, Value, Window};

use super::Fault;
use super::element::Element;
use super::machine::Machine;
use super::memory::{Home, Location, Register};

/// A window whose indices have been evaluated.
pub(super) struct View {
    /// The slot of the buffer.
    pub buffer: usize,
    /// The first element, one index for each dimension of the buffer.
    pub start: Vec<i64>,
    /// The dimensions of the buffer that the window keeps.
    kept: Vec<usize>,
    /// Their extents in the window.
    pub extents: Vec<i64>,
}

impl View {
    /// The index in the buffer of an element of the window.
    pub fn at(&self, index: &[i64]) -> Vec<i64> {
        let mut at = self.start.clone();
        for (dim, i) in self.kept.iter().zip(index) {
            at[*dim] += i;
        }
        at
    }
}

impl<'a> Machine<'a> {
    /// A window as thread `t` evaluates it.
    pub fn view(&self, t: usize, window: &Window) -> View {
        let buffer = self.names.slot(&window.buffer);
        let mut view = View { buffer, start: Vec::new(), kept: Vec::new(), extents: Vec::new() };
        for (dim, span) in window.dims.iter().enumerate() {
            let (start, length) = match span {
                Span::At(i) => (self.names.index(i, &self.threads[t].env), None),
                Span::Slice(i, length) => (self.names.index(i, &self.threads[t].env), Some(*length)),
                Span::All => (0, Some(self.array(buffer).extents[dim])),
            };
            view.start.push(start);
            if let Some(length) = length {
                view.kept.push(dim);
                view.extents.push(length);
            }
        }
        view
    }

    /// Gives a thread its registers of a buffer, without content; `first` is the first thread of its range.
    pub fn allocate_registers(&mut self, t: usize, buffer: &Buffer, first: i64) {
        let slot = self.names.slot(&buffer.sym);
        let Home::Registers(registers) = &self.array(slot).home else { return };
        let size = registers.size;
        let base = buffer.role.as_ref().map_or(first, |role| self.roles[&self.names.slot(role)].0);
        self.threads[t].registers[slot] = vec![Register::EMPTY; size];
        self.threads[t].base[slot] = base;
    }

    /// A store or reduction. A plain reduction of memory is a load and a store, and others may come between.
    pub fn assign(&mut self, t: usize, assign: &Assign) -> Result<(), Fault> {
        let at = self.element(t, &assign.target)?;
        let value = self.value(t, &assign.value)?;
        let AssignOp::Reduce(reduction) = assign.op else { return self.write(at, value, Some(t)) };
        let sum = reduce(reduction, self.read(at, false)?, value);
        if assign.atomic || matches!(at, Location::Register { .. }) {
            self.write(at, sum, Some(t))
        } else {
            self.threads[t].half_done = Some((at, sum));
            Ok(())
        }
    }

    fn value(&self, t: usize, value: &Value) -> Result<Element, Fault> {
        Ok(match value {
            Value::Const(c) => Element::from_f64(*c),
            Value::Scalar(sym) => self.scalars[self.names.slot(sym)],
            Value::Load(access) => self.read(self.element(t, access)?, false)?,
            Value::Unary(UnaryOp::Neg, a) => Element::ZERO.minus(self.value(t, a)?),
            // Real numbers are their own conjugates, and rounding does not exist in the field (rule 37).
            Value::Unary(UnaryOp::Conj, a) | Value::Cast(_, a) => self.value(t, a)?,
            // Programs of complex numbers do not run here.
            Value::Unary(UnaryOp::TimesI, _) => Element::POISON,
            Value::Binary(op, a, b) => binary(*op, self.value(t, a)?, self.value(t, b)?),
            Value::Select(c, a, b) => {
                self.value(t, if self.names.cond(c, &self.threads[t].env) { a } else { b })?
            }
        })
    }
}

fn reduce(reduction: Reduction, a: Element, b: Element) -> Element {
    binary(reduction.operator(), a, b)
}

fn binary(op: BinaryOp, a: Element, b: Element) -> Element {
    match op {
        BinaryOp::Add => a.plus(b),
        BinaryOp::Sub => a.minus(b),
        BinaryOp::Mul => a.times(b),
        BinaryOp::Div => a.over(b),
        // The field has no order; that of the residues is as good as any, and poison is the largest of all.
        BinaryOp::Max => a.max(b),
        BinaryOp::Min if a.is_poison() || b.is_poison() => Element::POISON,
        BinaryOp::Min => a.min(b),
    }
}
