//! Element types agree and conversions are explicit (rule 37): the type of every value is known, both sides of an
//! operation share it, and a store never rounds silently.

use std::collections::HashMap;

use super::place;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::ir::{
    Assign, AssignOp, BinaryOp, Buffer, ParamKind, Program, Reduction, Stmt, UnaryOp, Value, walk,
};
use crate::sym::Sym;

/// All faults of typing.
pub(super) fn check(program: &Program) -> Vec<Diagnosis> {
    let types = Types::of(program);
    let mut faults = Vec::new();
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::Assign(a) = stmt
            && let Err(fault) = types.assign(a)
        {
            faults.push(fault.at(place::of(program, stmt)));
        }
    });
    faults
}

/// The element type of each buffer and scalar.
struct Types(HashMap<Sym, DType>);

impl Types {
    fn of(program: &Program) -> Types {
        let mut types = HashMap::new();
        for param in &program.params {
            if let ParamKind::Scalar(dtype) | ParamKind::Tensor(Buffer { dtype, .. }) = &param.kind {
                types.insert(param.sym.clone(), *dtype);
            }
        }
        walk::for_each(&program.body, &mut |stmt| {
            if let Stmt::Alloc(buffer) = stmt {
                types.insert(buffer.sym.clone(), buffer.dtype);
            }
        });
        Types(types)
    }

    fn assign(&self, a: &Assign) -> Result<(), Diagnosis> {
        let target = self.0[&a.target.buffer];
        self.fits(&a.value, target, &format!("`{}` holds {target}", a.target.buffer))?;
        match a.op {
            AssignOp::Reduce(Reduction::Max | Reduction::Min) if target.is_complex() => {
                Err(Diagnosis::new(format!("`{}` is reduced by order", a.target.buffer))
                    .because("complex numbers have none"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a value has the wanted type; literals take any type that can hold them.
    fn fits(&self, value: &Value, wanted: DType, because: &str) -> Result<(), Diagnosis> {
        match self.value(value)? {
            Some(found) if found != wanted => {
                let instead = if found.is_complex() && !wanted.is_complex() {
                    "a complex number cannot become a real one without losing a part".to_string()
                } else {
                    format!("write `{wanted}(...)` where the rounding is meant to happen")
                };
                Err(Diagnosis::new(format!("a value of type {found} stands where {wanted} is wanted"))
                    .because(because.to_string())
                    .instead(instead))
            }
            Some(_) => Ok(()),
            None => literals_fit(value, wanted),
        }
    }

    /// The type of a value; `None` for one made of literals only.
    fn value(&self, value: &Value) -> Result<Option<DType>, Diagnosis> {
        match value {
            Value::Const(_) => Ok(None),
            Value::Scalar(sym) => Ok(Some(self.0[sym])),
            Value::Load(access) => Ok(Some(self.0[&access.buffer])),
            Value::Unary(UnaryOp::TimesI, a) => match self.value(a)? {
                Some(found) if !found.is_complex() => {
                    Err(Diagnosis::new(format!("a {found} is multiplied by the imaginary unit"))
                        .because("the product is no real number")
                        .instead("convert it first: `times_i(c128(...))`"))
                }
                other => Ok(other),
            },
            Value::Unary(_, a) => self.value(a),
            Value::Binary(op, a, b) => {
                let dtype = self.same(a, b, "both sides of an operation have one type")?;
                match (op, dtype) {
                    (BinaryOp::Max | BinaryOp::Min, Some(t)) if t.is_complex() => {
                        Err(Diagnosis::new("max or min of complex numbers").because("they have no order"))
                    }
                    _ => Ok(dtype),
                }
            }
            Value::Select(_, a, b) => self.same(a, b, "both arms of a choice have one type"),
            Value::Cast(wanted, a) => {
                if let Some(found) = self.value(a)?
                    && found.is_complex()
                    && !wanted.is_complex()
                {
                    return Err(Diagnosis::new(format!("a {found} is converted to {wanted}"))
                        .because("that would drop its imaginary part"));
                }
                Ok(Some(*wanted))
            }
        }
    }

    fn same(&self, a: &Value, b: &Value, because: &str) -> Result<Option<DType>, Diagnosis> {
        match (self.value(a)?, self.value(b)?) {
            (Some(x), Some(y)) if x != y => {
                let wider = if x.bytes() >= y.bytes() { x } else { y };
                let instead = if x.is_half() && y.is_half() {
                    "convert both to f32, or one to the other, explicitly".to_string()
                } else {
                    format!("write `{wider}(...)` round the other")
                };
                Err(Diagnosis::new(format!("{x} meets {y}")).because(because).instead(instead))
            }
            (Some(x), None) => literals_fit(b, x).map(|()| Some(x)),
            (None, Some(y)) => literals_fit(a, y).map(|()| Some(y)),
            (x, _) => Ok(x),
        }
    }
}

/// Whether the literals of a value without typed parts can be of type `dtype`.
fn literals_fit(value: &Value, dtype: DType) -> Result<(), Diagnosis> {
    match value {
        Value::Const(c) if dtype == DType::I32 && (c.fract() != 0.0 || c.abs() > f64::from(i32::MAX)) => {
            Err(Diagnosis::new(format!("the literal {c} stands where i32 is wanted"))
                .because("it is no 32-bit integer"))
        }
        Value::Unary(_, a) => literals_fit(a, dtype),
        Value::Binary(_, a, b) | Value::Select(_, a, b) => {
            literals_fit(a, dtype)?;
            literals_fit(b, dtype)
        }
        _ => Ok(()),
    }
}
