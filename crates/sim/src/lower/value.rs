//! Data: expressions become operations on registers.

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::ir::{Access as IrAccess, Assign, AssignOp, BinaryOp, Reduction, Stmt, UnaryOp, Value};

use super::buffer::Place;
use super::{Binding, Lowering, reads_target};
use crate::code::{Constant, Op, Reg, Test};

impl<'p> Lowering<'p> {
    pub(super) fn assign(&mut self, assign: &'p Assign, stmt: &'p Stmt) -> Result<(), Diagnosis> {
        if self.context.size > 1 {
            return Err(Diagnosis::new(format!(
                "an element statement executed by {} threads",
                self.context.size
            ))
            .because("it belongs to one thread")
            .instead("put it into thread loops, or run the program in order"));
        }
        let slots = self.next_slot;
        let dtype = self.dtype_of(&assign.target);
        let dtype =
            dtype.ok_or_else(|| Diagnosis::new(format!("`{}` is no buffer here", assign.target.buffer)))?;
        match self.bindings.get(&assign.target.buffer) {
            Some(Binding::Registers(r)) => {
                let register = *r;
                self.assign_register(assign, stmt, register, dtype)?;
            }
            _ => self.assign_memory(assign, stmt, dtype)?,
        }
        self.next_slot = slots;
        Ok(())
    }

    fn assign_register(
        &mut self,
        assign: &'p Assign,
        stmt: &'p Stmt,
        register: usize,
        dtype: DType,
    ) -> Result<(), Diagnosis> {
        let accumulator = self.registers[register].accumulator;
        let place = self.register(register, &assign.target.index)?;
        let target = match &place {
            Place::Register(reg) => *reg,
            Place::Varying { base, count, index } => {
                let reg = self.temporary();
                let (base, count, index) = (*base, *count, index.clone());
                if reads_target(assign.op) {
                    self.emit(Op::Scatter { register: reg, base, count, index, store: false });
                }
                reg
            }
        };
        if let Some(accumulator) = accumulator {
            let site = self.site();
            self.emit(Op::TouchAccumulator { register: target, accumulator, write: true, site });
        }
        match assign.op {
            AssignOp::Store => {
                let from = self.value(&assign.value, Some((target, dtype)), stmt)?;
                if from != target {
                    self.emit(Op::Move { to: target, from, dtype: Some(dtype) });
                }
            }
            AssignOp::Reduce(reduction) => self.reduce(target, reduction, &assign.value, dtype, stmt)?,
        }
        if let Place::Varying { base, count, index } = place {
            self.emit(Op::Scatter { register: target, base, count, index, store: true });
        }
        Ok(())
    }

    fn assign_memory(&mut self, assign: &'p Assign, stmt: &'p Stmt, dtype: DType) -> Result<(), Diagnosis> {
        let target = &assign.target;
        let key = std::ptr::from_ref(target) as usize;
        match assign.op {
            AssignOp::Store => {
                let from = self.value(&assign.value, None, stmt)?;
                let access = self.memory(target, stmt, key)?;
                self.emit(Op::Store { from, access });
            }
            AssignOp::Reduce(reduction) if assign.atomic => {
                let from = self.value(&assign.value, None, stmt)?;
                let access = self.memory(target, stmt, key)?;
                if let crate::code::Memory::Local(l) = self.code.accesses[access as usize].memory {
                    self.code.locals[l as usize].atomics = true;
                }
                self.emit(Op::Reduce { from, access, reduction });
            }
            AssignOp::Reduce(reduction) => {
                let access = self.memory(target, stmt, key)?;
                let to = self.temporary();
                self.emit(Op::Load { to, access });
                self.reduce(to, reduction, &assign.value, dtype, stmt)?;
                self.emit(Op::Store { from: to, access });
            }
        }
        Ok(())
    }

    /// `target = target reduction value`; a sum of products is a multiply-add.
    fn reduce(
        &mut self,
        target: Reg,
        reduction: Reduction,
        value: &'p Value,
        dtype: DType,
        stmt: &'p Stmt,
    ) -> Result<(), Diagnosis> {
        if let (Reduction::Sum, Value::Binary(BinaryOp::Mul, a, b)) = (reduction, value) {
            let (a, b) = (self.value(a, None, stmt)?, self.value(b, None, stmt)?);
            self.emit(Op::MultiplyAdd { to: target, c: target, a, b, dtype });
            return Ok(());
        }
        let b = self.value(value, None, stmt)?;
        self.emit(Op::Binary { op: reduction.operator(), to: target, a: target, b, dtype });
        Ok(())
    }

    /// The type of a value, as far as it is not that of whatever it is combined with.
    fn value_dtype(&self, value: &Value) -> Option<DType> {
        match value {
            Value::Const(_) => None,
            Value::Scalar(sym) => self.scalars.get(sym).map(|s| self.scalar_types[*s as usize]),
            Value::Load(access) => self.dtype_of(access),
            Value::Unary(_, a) => self.value_dtype(a),
            Value::Binary(_, a, b) | Value::Select(_, a, b) => {
                self.value_dtype(a).or_else(|| self.value_dtype(b))
            }
            Value::Cast(dtype, _) => Some(*dtype),
        }
    }

    /// The register that holds a value. If `into` is given and something has to be computed or loaded, it is done
    /// there; the result is another register only if the value already had one.
    fn value(
        &mut self,
        value: &'p Value,
        into: Option<(Reg, DType)>,
        stmt: &'p Stmt,
    ) -> Result<Reg, Diagnosis> {
        let dtype = self.value_dtype(value).or(into.map(|i| i.1)).unwrap_or(DType::F64);
        // A value of another type than its target is rounded on its way there.
        let into = into.filter(|(_, t)| *t == dtype);
        match value {
            Value::Const(c) => self.constant(Constant::Literal(c.to_bits())),
            Value::Scalar(sym) => match self.scalars.get(sym) {
                Some(scalar) => self.constant(Constant::Scalar(*scalar)),
                None => Err(Diagnosis::new(format!("`{sym}` is no scalar parameter"))),
            },
            Value::Load(access) => self.load(access, into, stmt),
            Value::Unary(UnaryOp::Conj, a) if !dtype.is_complex() => self.value(a, into, stmt),
            Value::Unary(op, a) => {
                let from = self.value(a, None, stmt)?;
                let to = self.target(into);
                self.emit(Op::Unary { op: *op, to, from, dtype });
                Ok(to)
            }
            Value::Binary(BinaryOp::Add, a, b) if is_product(a) || is_product(b) => {
                let (product, other) = if is_product(a) { (a, b) } else { (b, a) };
                let Value::Binary(_, x, y) = &**product else { unreachable!("it is a product") };
                let c = self.value(other, None, stmt)?;
                let (a, b) = (self.value(x, None, stmt)?, self.value(y, None, stmt)?);
                let to = self.target(into);
                self.emit(Op::MultiplyAdd { to, c, a, b, dtype });
                Ok(to)
            }
            Value::Binary(op, a, b) => {
                let (a, b) = (self.value(a, None, stmt)?, self.value(b, None, stmt)?);
                let to = self.target(into);
                self.emit(Op::Binary { op: *op, to, a, b, dtype });
                Ok(to)
            }
            Value::Select(cond, a, b) => match self.test(cond)? {
                Test::Constant(true) => self.value(a, into, stmt),
                Test::Constant(false) => self.value(b, into, stmt),
                // A sign is chosen: what it stands before is computed, and loaded, once for both.
                test if matches!(&**a, Value::Unary(UnaryOp::Neg, negated) if negated == b) => {
                    let from = self.value(b, None, stmt)?;
                    let to = self.target(into);
                    self.emit(Op::Move { to, from, dtype: None });
                    let then = vec![Op::Unary { op: UnaryOp::Neg, to, from: to, dtype }];
                    self.emit(Op::If { test, then, otherwise: Vec::new(), site: None });
                    Ok(to)
                }
                test => {
                    let to = self.target(into);
                    let then = self.arm(a, to, dtype, stmt)?;
                    let otherwise = self.arm(b, to, dtype, stmt)?;
                    self.emit(Op::If { test, then, otherwise, site: None });
                    Ok(to)
                }
            },
            Value::Cast(dtype, a) => {
                let from = self.value(a, None, stmt)?;
                let to = self.target(into);
                self.emit(Op::Move { to, from, dtype: Some(*dtype) });
                Ok(to)
            }
        }
    }

    /// One arm of a choice: the operations that leave its value in `to`.
    fn arm(&mut self, value: &'p Value, to: Reg, dtype: DType, stmt: &'p Stmt) -> Result<Vec<Op>, Diagnosis> {
        let outer = std::mem::take(&mut self.ops);
        let from = self.value(value, Some((to, dtype)), stmt)?;
        if from != to {
            self.emit(Op::Move { to, from, dtype: None });
        }
        Ok(std::mem::replace(&mut self.ops, outer))
    }

    fn target(&mut self, into: Option<(Reg, DType)>) -> Reg {
        into.map_or_else(|| self.temporary(), |(reg, _)| reg)
    }

    fn constant(&mut self, constant: Constant) -> Result<Reg, Diagnosis> {
        let slot = self.constants.iter().position(|c| *c == constant);
        slot.map(|s| Reg(s as u32)).ok_or_else(|| Diagnosis::new("a constant was overlooked"))
    }

    fn load(
        &mut self,
        access: &'p IrAccess,
        into: Option<(Reg, DType)>,
        stmt: &'p Stmt,
    ) -> Result<Reg, Diagnosis> {
        if let Some(Binding::Registers(r)) = self.bindings.get(&access.buffer) {
            let register = *r;
            let accumulator = self.registers[register].accumulator;
            let reg = match self.register(register, &access.index)? {
                Place::Register(reg) => reg,
                Place::Varying { base, count, index } => {
                    let reg = self.target(into);
                    self.emit(Op::Scatter { register: reg, base, count, index, store: false });
                    reg
                }
            };
            if let Some(accumulator) = accumulator {
                let site = self.site();
                self.emit(Op::TouchAccumulator { register: reg, accumulator, write: false, site });
            }
            return Ok(reg);
        }
        let number = self.memory(access, stmt, std::ptr::from_ref(access) as usize)?;
        let to = self.target(into);
        self.emit(Op::Load { to, access: number });
        Ok(to)
    }
}

fn is_product(value: &Value) -> bool {
    matches!(value, Value::Binary(BinaryOp::Mul, ..))
}
