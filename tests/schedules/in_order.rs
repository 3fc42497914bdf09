//! The definition of the language, run statement by statement over a prime field: small, slow, and nothing else.
//!
//! Statements run in the order of the text; asynchronous instructions act at once, synchronisation does nothing.

use std::collections::HashMap;

use warpwright_core::index::{Cond, Index};
use warpwright_core::instr::{self, Behaviour};
use warpwright_core::ir::{
    Access, AssignOp, BinaryOp, Buffer, Instruction, Operand, Own, ParamKind, Program, Range, Reduction,
    Span, Stmt, UnaryOp, Value, Window,
};
use warpwright_core::layout::indices;
use warpwright_core::sym::Sym;
use warpwright_sim::coroutine::{Arguments, Element};

/// The first index of a window in each dimension, and whether the dimension stays.
type Starts = Vec<(i64, bool)>;

/// Runs a program; its outputs are the changed tensors of `arguments`.
///
/// # Errors
/// An access out of bounds, or a statement that is not known here.
pub fn run(program: &Program, arguments: &mut Arguments) -> Result<(), String> {
    let mut machine = Machine::default();
    for param in &program.params {
        let name = param.sym.name();
        match &param.kind {
            ParamKind::Tensor(buffer) => {
                if let Some(stride) = &buffer.row_stride {
                    machine.set(stride, arguments.integers[stride.name()]);
                }
                machine.tensors.push(buffer.sym.clone());
            }
            ParamKind::Scalar(_) => {
                machine.scalars.insert(param.sym.clone(), arguments.scalars[name]);
            }
            _ => machine.set(&param.sym, arguments.integers[name]),
        }
    }
    for buffer in program.tensors() {
        let extents = machine.extents(buffer);
        let stride = buffer.row_stride.as_ref().map(|s| arguments.integers[s.name()]);
        let elements = arguments.tensors[buffer.sym.name()].clone();
        machine.memory.insert(buffer.sym.clone(), Array { extents, stride, elements });
    }
    machine.list(&program.body)?;
    for buffer in program.outputs() {
        arguments.tensors.insert(buffer.sym.name().into(), machine.memory[&buffer.sym].elements.clone());
    }
    Ok(())
}

struct Array {
    extents: Vec<i64>,
    /// Of a tensor of two dimensions.
    stride: Option<i64>,
    elements: Vec<Element>,
}

impl Array {
    fn offset(&self, index: &[i64]) -> Option<usize> {
        let inside = index.iter().zip(&self.extents).all(|(i, e)| (0..*e).contains(i));
        let flat = match (self.stride, index) {
            (Some(stride), [r, c]) => r * stride + c,
            _ => index.iter().zip(&self.extents).fold(0, |flat, (i, e)| flat * e + i),
        };
        (inside && index.len() == self.extents.len()).then_some(flat as usize)
    }
}

#[derive(Default)]
struct Machine {
    values: Vec<Option<i64>>,
    scalars: HashMap<Sym, Element>,
    memory: HashMap<Sym, Array>,
    tensors: Vec<Sym>,
}

impl Machine {
    fn set(&mut self, sym: &Sym, value: i64) {
        let at = sym.id() as usize;
        if self.values.len() <= at {
            self.values.resize(at + 1, None);
        }
        self.values[at] = Some(value);
    }

    fn index(&self, index: &Index) -> Result<i64, String> {
        index
            .eval(&|s| self.values.get(s.id() as usize).copied().flatten())
            .map_err(|s| format!("`{s}` is not bound"))
    }

    fn holds(&self, cond: &Cond) -> Result<bool, String> {
        cond.eval(&|s| self.values.get(s.id() as usize).copied().flatten())
            .map_err(|s| format!("`{s}` is not bound"))
    }

    fn extents(&self, buffer: &Buffer) -> Vec<i64> {
        buffer.dims.iter().map(|d| self.index(&d.extent).expect("sizes are given")).collect()
    }

    fn list(&mut self, stmts: &[Stmt]) -> Result<(), String> {
        stmts.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<(), String> {
        match stmt {
            Stmt::For(l) => {
                let values: Vec<i64> = match &l.range {
                    Range::Span { lo, hi, step } => {
                        let (lo, hi, step) = (self.index(lo)?, self.index(hi)?, self.index(step)?);
                        (lo..hi.max(lo)).step_by(step as usize).collect()
                    }
                    Range::List(values) => values.clone(),
                    Range::Part { index, parts, lo, hi } => {
                        let (index, parts) = (self.index(index)?, self.index(parts)?);
                        let (lo, hi) = (self.index(lo)?, self.index(hi)?);
                        let count = (hi - lo).max(0);
                        (lo + index * count / parts..lo + (index + 1) * count / parts).collect()
                    }
                };
                for value in values {
                    self.set(&l.var, value);
                    self.list(&l.body)?;
                }
                Ok(())
            }
            Stmt::Own(o) => self.own(o),
            Stmt::If(i) => {
                let arm = if self.holds(&i.cond)? { &i.then } else { &i.otherwise };
                self.list(arm)
            }
            Stmt::Let(sym, value) => {
                let value = self.index(value)?;
                self.set(sym, value);
                Ok(())
            }
            Stmt::Alloc(buffer) => {
                let extents = self.extents(buffer);
                let count = extents.iter().product::<i64>().max(0) as usize;
                let elements = vec![Element::POISON; count];
                self.memory.insert(buffer.sym.clone(), Array { extents, stride: None, elements });
                Ok(())
            }
            Stmt::Assign(a) => {
                let value = self.value(&a.value)?;
                let place = self.place(&a.target)?;
                let old = self.memory[&a.target.buffer].elements[place];
                let new = match a.op {
                    AssignOp::Store => value,
                    AssignOp::Reduce(Reduction::Sum) => old.plus(value),
                    AssignOp::Reduce(_) => return Err("a field has no order".into()),
                };
                self.write(&a.target.buffer, place, new);
                Ok(())
            }
            Stmt::Instruction(i) => self.instruction(i),
            Stmt::On(on) => self.list(&on.body),
            Stmt::Sync(_) | Stmt::Roles(_) => Ok(()),
            other => Err(format!("{other:?} is not known here")),
        }
    }

    fn write(&mut self, buffer: &Sym, place: usize, value: Element) {
        if let Some(array) = self.memory.get_mut(buffer) {
            array.elements[place] = value;
        }
    }

    fn own(&mut self, o: &Own) -> Result<(), String> {
        let extents = self.window(&o.window)?.1;
        for point in indices(&extents) {
            o.vars.iter().zip(point).for_each(|(v, value)| self.set(v, value));
            self.list(&o.body)?;
        }
        Ok(())
    }

    /// The first index of a window in all dimensions, and the extents of those it keeps.
    fn window(&self, window: &Window) -> Result<(Starts, Vec<i64>), String> {
        let array = self.memory.get(&window.buffer).ok_or(format!("`{}` is not allocated", window.buffer))?;
        let (mut first, mut extents) = (Vec::new(), Vec::new());
        for (span, whole) in window.dims.iter().zip(&array.extents) {
            match span {
                Span::At(i) => first.push((self.index(i)?, false)),
                Span::Slice(start, len) => {
                    first.push((self.index(start)?, true));
                    extents.push(*len);
                }
                Span::All => {
                    first.push((0, true));
                    extents.push(*whole);
                }
            }
        }
        Ok((first, extents))
    }

    fn place(&self, access: &Access) -> Result<usize, String> {
        let index: Vec<i64> = access.index.iter().map(|i| self.index(i)).collect::<Result<_, _>>()?;
        self.place_at(&access.buffer, &index)
    }

    fn place_at(&self, buffer: &Sym, index: &[i64]) -> Result<usize, String> {
        let array = self.memory.get(buffer).ok_or(format!("`{buffer}` is not allocated"))?;
        array.offset(index).ok_or(format!("{buffer}{index:?} is out of bounds {:?}", array.extents))
    }

    fn element(&self, window: &Window, at: &[i64]) -> Result<usize, String> {
        let mut at = at.iter();
        let index: Vec<i64> = self
            .window(window)?
            .0
            .iter()
            .map(|(first, kept)| if *kept { first + at.next().copied().unwrap_or(0) } else { *first })
            .collect();
        self.place_at(&window.buffer, &index)
    }

    fn get(&self, window: &Window, at: &[i64]) -> Result<Element, String> {
        Ok(self.memory[&window.buffer].elements[self.element(window, at)?])
    }

    fn instruction(&mut self, i: &Instruction) -> Result<(), String> {
        let record = instr::by_name(&i.name).ok_or(format!("no instruction {}", i.name))?;
        let windows: Vec<&Window> = i
            .operands
            .iter()
            .filter_map(|o| if let Operand::Window(w) = o { Some(w) } else { None })
            .collect();
        let scalar = i.operands.iter().find_map(|o| if let Operand::Scalar(s) = o { Some(s) } else { None });
        let scalar = scalar.map(|s| self.index(s)).transpose()?.unwrap_or(0);
        let target = windows[0];
        let extents = self.window(target)?.1;
        let mut results = Vec::new();
        for at in indices(&extents) {
            let value = match record.behaviour {
                Behaviour::CopyAsync16 if at[0] >= scalar => Element::ZERO,
                Behaviour::CopyAsync16 | Behaviour::LoadMatrix { .. } => self.get(windows[1], &at)?,
                Behaviour::Multiply { k, .. } => (0..k).try_fold(self.get(target, &at)?, |sum, k| {
                    let product =
                        self.get(windows[1], &[at[0], k])?.times(self.get(windows[2], &[k, at[1]])?);
                    Ok::<Element, String>(sum.plus(product))
                })?,
                Behaviour::Shuffle(lane) => self.get(windows[1], &[lane.source(at[0], scalar)])?,
                other => return Err(format!("{other:?} is not known here")),
            };
            results.push((self.element(target, &at)?, value));
        }
        for (place, value) in results {
            self.write(&target.buffer, place, value);
        }
        Ok(())
    }

    fn value(&self, value: &Value) -> Result<Element, String> {
        Ok(match value {
            Value::Const(c) => Element::from_f64(*c),
            Value::Scalar(s) => self.scalars[s],
            Value::Load(access) => self.memory[&access.buffer].elements[self.place(access)?],
            Value::Unary(UnaryOp::Neg, a) => Element::ZERO.minus(self.value(a)?),
            Value::Unary(UnaryOp::Conj, a) | Value::Cast(_, a) => self.value(a)?,
            Value::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                match op {
                    BinaryOp::Add => a.plus(b),
                    BinaryOp::Sub => a.minus(b),
                    BinaryOp::Mul => a.times(b),
                    BinaryOp::Div => a.over(b),
                    BinaryOp::Max | BinaryOp::Min => return Err("a field has no order".into()),
                }
            }
            Value::Select(cond, a, b) => self.value(if self.holds(cond)? { a } else { b })?,
        })
    }
}
