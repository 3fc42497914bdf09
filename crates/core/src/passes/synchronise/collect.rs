//! The touches that a statement consists of.

use super::pending::Flight;
use super::touch::{Around, Kind, Touch, Values};
use super::{Group, Scan, Stop};
use crate::index::Index;
use crate::instr::{Completion, by_name};
use crate::ir::{Access, Assign, AssignOp, Instruction, Operand, Own, Span, Value, Window};
use crate::sym::Sym;

impl Scan<'_> {
    /// Loads first, then the target.
    pub(super) fn assign(&mut self, a: &Assign) -> Result<(), Stop> {
        self.loads(&a.value)?;
        let kind = if a.atomic { Kind::Atomic } else { Kind::Write };
        if !a.atomic && a.op != AssignOp::Store {
            self.access(&a.target, Kind::Read)?;
        }
        self.access(&a.target, kind)
    }

    fn loads(&mut self, value: &Value) -> Result<(), Stop> {
        match value {
            Value::Const(_) | Value::Scalar(_) => Ok(()),
            Value::Load(access) => self.access(access, Kind::Read),
            Value::Unary(_, a) | Value::Cast(_, a) => self.loads(a),
            Value::Binary(_, a, b) => {
                self.loads(a)?;
                self.loads(b)
            }
            Value::Select(cond, a, b) => {
                let cond = cond.substitute(&|s| self.at.lets.get(s).cloned());
                self.at.guards.push(cond.clone());
                self.loads(a)?;
                self.at.guards.pop();
                self.at.guards.push(cond.negate());
                self.loads(b)?;
                self.at.guards.pop();
                Ok(())
            }
        }
    }

    fn access(&mut self, access: &Access, kind: Kind) -> Result<(), Stop> {
        if !self.watched.contains(&access.buffer) {
            return Ok(());
        }
        let index = access.index.iter().map(|i| self.resolve(i)).collect();
        let touch = self.made(&access.buffer, index, kind, Vec::new());
        self.touch(touch, Flight::None)
    }

    fn made(&self, buffer: &Sym, index: Vec<Index>, kind: Kind, offsets: Vec<Around>) -> Touch {
        let mut around = self.at.around.clone();
        around.extend(offsets);
        Touch {
            buffer: buffer.clone(),
            index,
            kind,
            base: self.at.base,
            size: self.group().size,
            around,
            guards: self.at.guards.clone(),
        }
    }

    /// What an instruction reads and writes in memory. One that waits for other blocks orders itself.
    pub(super) fn instruction(&mut self, i: &Instruction) -> Result<(), Stop> {
        let Some(record) = by_name(&i.name) else { return Ok(()) };
        if record.completion == Completion::Chained {
            return Ok(());
        }
        for writes in [false, true] {
            for (operand, spec) in i.operands.iter().zip(record.operands) {
                let Operand::Window(window) = operand else { continue };
                let wanted = if writes { spec.access.writes() } else { spec.access.reads() };
                if !wanted || !self.watched.contains(&window.buffer) {
                    continue;
                }
                let flight = match (record.completion, &i.signal) {
                    (Completion::CpAsync, _) if writes => Flight::CpAsync,
                    (_, Some((ring, _))) if writes => Flight::Ring(ring.clone()),
                    (Completion::Wgmma, _) => Flight::Products,
                    _ => Flight::None,
                };
                let (index, offsets) = self.box_of(window);
                let kind = if writes { Kind::Write } else { Kind::Read };
                let touch = self.made(&window.buffer, index, kind, offsets);
                self.touch(touch, flight)?;
            }
        }
        Ok(())
    }

    /// A window as an index: its free dimensions are loops.
    fn box_of(&mut self, window: &Window) -> (Vec<Index>, Vec<Around>) {
        let mut offsets = Vec::new();
        let mut index = Vec::new();
        for (dim, span) in window.dims.iter().enumerate() {
            let (start, length) = match span {
                Span::At(i) => {
                    index.push(self.resolve(i));
                    continue;
                }
                Span::Slice(start, length) => (self.resolve(start), Index::constant(*length)),
                Span::All => (Index::default(), self.extent(&window.buffer, dim)),
            };
            let var = self.offset(dim);
            index.push(&start + &Index::var(&var));
            let values = Values::Span { lo: Index::default(), hi: length, step: 1 };
            offsets.push(Around { var, values, depth: usize::MAX });
        }
        (index, offsets)
    }

    fn extent(&self, buffer: &Sym, dim: usize) -> Index {
        self.facts.buffers.get(buffer).map(|b| b.dims[dim].extent.clone()).unwrap_or_default()
    }

    /// One symbol for each dimension, so that equal windows make equal touches.
    fn offset(&mut self, dim: usize) -> Sym {
        while self.offsets.len() <= dim {
            self.offsets.push(Sym::new("offset"));
        }
        self.offsets[dim].clone()
    }

    /// Each element is visited by its owner; which thread that is, is left open, so that all of them count.
    pub(super) fn own(&mut self, o: &mut Own) -> Result<(), Stop> {
        let outside = self.at.around.len();
        let depth = self.depth() + 1;
        let steps = self.facts.buffers.get(&o.window.buffer).map(|b| o.steps(b)).unwrap_or_default();
        let loops: Vec<Around> = steps
            .into_iter()
            .map(|(var, hi, step)| Around {
                var: var.clone(),
                values: Values::Span { lo: Index::default(), hi, step },
                depth,
            })
            .collect();
        self.at.around.extend(loops);
        let group = Group { closed: true, ..self.group().clone() };
        self.inner(&mut o.body, group)?;
        self.at.around.truncate(outside);
        Ok(())
    }
}
