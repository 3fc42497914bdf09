//! Data expressions as C. Types agree already (rule 37), so every conversion printed here was asked for.

use super::body::Body;
use super::spelling::complex::{self, Complex};
use super::spelling::{convert, sign};
use super::text::{Strength, Text};
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::ir::{BinaryOp, UnaryOp, Value};
use crate::target::Capability;

impl Body<'_> {
    /// A value of the given type.
    pub(super) fn value(&mut self, value: &Value, dtype: DType) -> Result<Text, Diagnosis> {
        match value {
            Value::Const(c) => Ok(literal(*c, dtype)),
            Value::Scalar(sym) => Ok(self.variable(sym)),
            Value::Load(access) => match self.replaced_load(access) {
                Some(text) => Ok(Text::primary(text)),
                None => self.load(access),
            },
            Value::Select(cond, a, b) => {
                let cond = self.ranges.simplify_cond(cond);
                match cond.as_constant() {
                    Some(true) => return self.value(a, dtype),
                    Some(false) => return self.value(b, dtype),
                    None => {}
                }
                if let (Value::Unary(UnaryOp::Neg, negated), DType::F32 | DType::F64) = (&**a, dtype)
                    && negated == b
                {
                    let helper =
                        if dtype == DType::F64 { &sign::NEGATED_IF_F64 } else { &sign::NEGATED_IF_F32 };
                    self.prelude.require(helper);
                    let (c, x) = (self.cond(&cond).text, self.value(b, dtype)?.text);
                    return Ok(Text::primary(format!("negated_if({c}, {x})")));
                }
                let c = self.cond(&cond).at_least(Strength::Or);
                let a = self.value(a, dtype)?.at_least(Strength::Choice);
                let b = self.value(b, dtype)?.at_least(Strength::Choice);
                Ok(Text::new(format!("{c} ? {a} : {b}"), Strength::Choice))
            }
            Value::Cast(to, inner) => self.cast(inner, *to),
            Value::Unary(..) | Value::Binary(..) if dtype.is_half() => {
                let computed = self.in_float(value)?;
                Ok(self.convert(computed, DType::F32, dtype))
            }
            Value::Unary(UnaryOp::Conj, a) if !dtype.is_complex() => self.value(a, dtype),
            Value::Unary(op, a) => {
                let a = self.value(a, dtype)?;
                Ok(self.unary(*op, a, dtype))
            }
            Value::Binary(op, a, b) => self.binary(*op, a, b, dtype),
        }
    }

    /// Arithmetic on 16-bit elements: carried out in `float`, rounded once by the caller.
    fn in_float(&mut self, value: &Value) -> Result<Text, Diagnosis> {
        let part = |s: &mut Self, v: &Value| -> Result<Text, Diagnosis> {
            let Some(half) = s.type_of(v) else { return s.value(v, DType::F32) };
            let text = s.value(v, half)?;
            Ok(s.convert(text, half, DType::F32))
        };
        match value {
            Value::Unary(op, a) => {
                let a = part(self, a)?;
                Ok(self.unary(*op, a, DType::F32))
            }
            Value::Binary(op, a, b) => {
                let (a, b) = (part(self, a)?, part(self, b)?);
                Ok(self.operation(*op, a, b, DType::F32))
            }
            other => part(self, other),
        }
    }

    fn unary(&mut self, op: UnaryOp, a: Text, dtype: DType) -> Text {
        match (op, complex_functions(dtype)) {
            (UnaryOp::Neg, None) => Text::new(format!("-{}", a.at_least(Strength::Primary)), Strength::Unary),
            // Types are checked before: a real number is never multiplied by the imaginary unit.
            (UnaryOp::Conj | UnaryOp::TimesI, None) => a,
            (UnaryOp::Neg, Some(f)) => {
                self.prelude.require(&f.neg);
                Text::primary(format!("cneg({})", a.text))
            }
            (UnaryOp::Conj, Some(f)) => {
                self.prelude.require(&f.conj);
                Text::primary(format!("conj({})", a.text))
            }
            (UnaryOp::TimesI, Some(f)) => {
                self.prelude.require(&f.times_i);
                Text::primary(format!("times_i({})", a.text))
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Value, b: &Value, dtype: DType) -> Result<Text, Diagnosis> {
        if let Some((re, im)) = parts_of(op, a, b)
            && dtype.is_complex()
            && [re, im].map(|part| self.type_of(part)) == [Some(dtype.real()); 2]
        {
            let (re, im) = (self.value(re, dtype.real())?.text, self.value(im, dtype.real())?.text);
            let make = if dtype.real() == DType::F64 { "make_double2" } else { "make_float2" };
            return Ok(Text::primary(format!("{make}({re}, {im})")));
        }
        if let (BinaryOp::Add, Some(_)) = (op, complex_functions(dtype)) {
            // Complex multiply-adds are not fused by the compiler.
            for (product, addend) in [(a, b), (b, a)] {
                if let Value::Binary(BinaryOp::Mul, x, y) = product {
                    let addend = self.value(addend, dtype)?;
                    return self.complex_fma(x, y, addend, dtype);
                }
            }
        }
        let (a, b) = (self.value(a, dtype)?, self.value(b, dtype)?);
        Ok(self.operation(op, a, b, dtype))
    }

    /// `x y + addend` of complex numbers.
    pub(super) fn complex_fma(
        &mut self,
        x: &Value,
        y: &Value,
        addend: Text,
        dtype: DType,
    ) -> Result<Text, Diagnosis> {
        if let Some(f) = complex_functions(dtype) {
            self.prelude.require(&f.fma);
        }
        let (x, y) = (self.value(x, dtype)?.text, self.value(y, dtype)?.text);
        Ok(Text::primary(format!("cfma({x}, {y}, {})", addend.text)))
    }

    /// `a op b` of two texts of the same type.
    pub(super) fn operation(&mut self, op: BinaryOp, a: Text, b: Text, dtype: DType) -> Text {
        if let Some(f) = complex_functions(dtype) {
            let (name, helper) = match op {
                BinaryOp::Add | BinaryOp::Max | BinaryOp::Min => ("cadd", &f.add),
                BinaryOp::Sub => ("csub", &f.sub),
                BinaryOp::Mul => ("cmul", &f.mul),
                BinaryOp::Div => ("cdiv", &f.div),
            };
            self.prelude.require(helper);
            return Text::primary(format!("{name}({}, {})", a.text, b.text));
        }
        let infix = |a: Text, symbol: &str, b: Text, own: Strength, right: Strength| {
            Text::new(format!("{}{symbol}{}", a.at_least(own), b.at_least(right)), own)
        };
        match op {
            BinaryOp::Add => infix(a, " + ", b, Strength::Sum, Strength::Product),
            BinaryOp::Sub => infix(a, " - ", b, Strength::Sum, Strength::Product),
            BinaryOp::Mul => infix(a, "*", b, Strength::Product, Strength::Unary),
            BinaryOp::Div => infix(a, "/", b, Strength::Product, Strength::Unary),
            BinaryOp::Max | BinaryOp::Min => {
                let name = match (op, dtype) {
                    (BinaryOp::Max, DType::I32) => "max",
                    (BinaryOp::Max, DType::F64) => "fmax",
                    (BinaryOp::Max, _) => "fmaxf",
                    (_, DType::I32) => "min",
                    (_, DType::F64) => "fmin",
                    _ => "fminf",
                };
                Text::primary(format!("{name}({}, {})", a.text, b.text))
            }
        }
    }

    fn cast(&mut self, inner: &Value, to: DType) -> Result<Text, Diagnosis> {
        match self.type_of(inner) {
            None => Ok(literal_value(inner).map_or_else(|| self.value(inner, to), |c| Ok(literal(c, to)))?),
            Some(from) => {
                // 16-bit arithmetic that is wanted as float at once is rounded in between: so the program says.
                let text = self.value(inner, from)?;
                Ok(self.convert(text, from, to))
            }
        }
    }

    /// The type of a value; `None` if it is made of literals only.
    pub(super) fn type_of(&self, value: &Value) -> Option<DType> {
        match value {
            Value::Const(_) => None,
            Value::Scalar(sym) => self.unit.scalars.get(sym).copied(),
            Value::Load(access) => self.unit.buffers.get(&access.buffer).map(|b| b.dtype),
            Value::Unary(_, a) => self.type_of(a),
            Value::Binary(_, a, b) | Value::Select(_, a, b) => self.type_of(a).or_else(|| self.type_of(b)),
            Value::Cast(to, _) => Some(*to),
        }
    }

    /// A text of type `from` as one of type `to`.
    pub(super) fn convert(&mut self, text: Text, from: DType, to: DType) -> Text {
        use DType::{Bf16, C64, C128, F16, F32, F64, I32};
        let call = |name: &str, text: Text| Text::primary(format!("{name}({})", text.text));
        let prefix = |name: &str, text: Text| {
            Text::new(format!("({name}){}", text.at_least(Strength::Unary)), Strength::Unary)
        };
        match (from, to) {
            _ if from == to => text,
            (F16, _) => {
                self.prelude.require(&convert::F16_TO_FLOAT);
                self.convert(call("f16_to_float", text), F32, to)
            }
            (Bf16, _) => {
                self.prelude.require(&convert::BF16_TO_FLOAT);
                self.convert(call("bf16_to_float", text), F32, to)
            }
            (F32, F16) => {
                self.prelude.require(&convert::FLOAT_TO_F16);
                call("float_to_f16", text)
            }
            (F32, Bf16) => {
                self.require_float_to_bf16();
                call("float_to_bf16", text)
            }
            (C64, C128) => {
                self.prelude.require(&convert::TO_DOUBLE2);
                call("to_double2", text)
            }
            (C128, C64) => {
                self.prelude.require(&convert::TO_FLOAT2);
                call("to_float2", text)
            }
            (_, C64) => {
                let real = self.convert(text, from, F32);
                Text::primary(format!("make_float2({}, 0.0f)", real.text))
            }
            (_, C128) => {
                let real = self.convert(text, from, F64);
                Text::primary(format!("make_double2({}, 0.0)", real.text))
            }
            (_, F16 | Bf16) => {
                let single = self.convert(text, from, F32);
                self.convert(single, F32, to)
            }
            (_, F32) => prefix("float", text),
            (_, F64) => prefix("double", text),
            (_, I32) => prefix("int", text),
        }
    }

    /// The conversion that the target has.
    pub(super) fn require_float_to_bf16(&mut self) {
        self.prelude.require(if self.unit.has(Capability::FmaBf16) {
            &convert::FLOAT_TO_BF16
        } else {
            &convert::FLOAT_TO_BF16_BY_INTEGERS
        });
    }
}

/// The real and the imaginary part where a sum puts a complex number together of them: x + i y, both of real types.
fn parts_of<'v>(op: BinaryOp, a: &'v Value, b: &'v Value) -> Option<(&'v Value, &'v Value)> {
    match (op, a, b) {
        (BinaryOp::Add, Value::Cast(_, re), Value::Unary(UnaryOp::TimesI, imaginary)) => match &**imaginary {
            Value::Cast(_, im) => Some((re, im)),
            _ => None,
        },
        _ => None,
    }
}

/// The functions of a complex type.
pub(super) fn complex_functions(dtype: DType) -> Option<&'static Complex> {
    match dtype {
        DType::C64 => Some(&complex::FLOAT2),
        DType::C128 => Some(&complex::DOUBLE2),
        _ => None,
    }
}

fn literal_value(value: &Value) -> Option<f64> {
    match value {
        Value::Const(c) => Some(*c),
        Value::Unary(UnaryOp::Neg, a) => literal_value(a).map(|c| -c),
        _ => None,
    }
}

/// A literal of a type.
pub(super) fn literal(c: f64, dtype: DType) -> Text {
    let signed = |text: String| {
        let strength = if text.starts_with('-') { Strength::Unary } else { Strength::Primary };
        Text::new(text, strength)
    };
    match dtype {
        DType::F32 if !c.is_finite() || (c as f32).is_infinite() => {
            Text::primary(format!("__int_as_float({:#x})", (c as f32).to_bits()))
        }
        DType::F64 if !c.is_finite() => Text::primary(format!("__longlong_as_double({:#x})", c.to_bits())),
        DType::F32 => signed(format!("{:?}f", c as f32)),
        DType::F64 => signed(format!("{c:?}")),
        DType::C64 => Text::primary(format!("make_float2({}, 0.0f)", literal(c, DType::F32).text)),
        DType::C128 => Text::primary(format!("make_double2({}, 0.0)", literal(c, DType::F64).text)),
        DType::I32 => signed(format!("{}", c as i64)),
        DType::F16 => Text::primary(bits16(f16_bits(c))),
        DType::Bf16 => Text::primary(bits16(bf16_bits(c))),
    }
}

fn bits16(bits: u16) -> String {
    if bits == 0 { "0".into() } else { format!("{bits:#06x}") }
}

/// To nearest, ties to even.
fn bf16_bits(c: f64) -> u16 {
    let bits = (c as f32).to_bits();
    if c.is_nan() {
        return 0x7fff;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// To nearest, ties to even.
fn f16_bits(c: f64) -> u16 {
    let sign = if c.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = c.abs();
    if c.is_nan() {
        return 0x7fff;
    }
    // Half the unit in the last place below which 65504 is still the nearest.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = if magnitude < 2f64.powi(-14) { -14 } else { magnitude.log2().floor() as i32 };
    let exponent = if magnitude < 2f64.powi(exponent) && exponent > -14 { exponent - 1 } else { exponent };
    // Exact: a power of two times an f64; the fraction counts units of the last place.
    let units = (magnitude * 2f64.powi(10 - exponent)).round_ties_even() as u16;
    if exponent == -14 { sign | units } else { sign | ((((exponent + 14) as u16) << 10) + units) }
}

#[cfg(test)]
mod tests {
    use super::{bf16_bits, f16_bits, literal};
    use crate::dtype::DType;

    #[test]
    fn literals_are_exact() {
        let text = |c: f64, dtype| literal(c, dtype).text;
        assert_eq!(text(0.0, DType::F32), "0.0f");
        assert_eq!(text(-1.5, DType::F64), "-1.5");
        assert_eq!(text(0.1, DType::F32), "0.1f");
        assert_eq!(text(f64::INFINITY, DType::F32), "__int_as_float(0x7f800000)");
        assert_eq!(text(f64::NEG_INFINITY, DType::F64), "__longlong_as_double(0xfff0000000000000)");
        assert_eq!(text(3.0, DType::I32), "3");
        assert_eq!(text(1.0, DType::C64), "make_float2(1.0f, 0.0f)");
    }

    #[test]
    fn sixteen_bit_literals_are_rounded_to_nearest() {
        let half = [
            (0.0, 0),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65520.0, 0x7c00),
            (2f64.powi(-24), 1),
            (2f64.powi(-14), 0x0400),
            (0.1, 0x2e66),
            (1.0 + 2f64.powi(-11), 0x3c00),
            (f64::NEG_INFINITY, 0xfc00),
        ];
        for (c, bits) in half {
            assert_eq!(f16_bits(c), bits, "{c}");
        }
        for (c, bits) in
            [(1.0, 0x3f80), (-0.5, 0xbf00), (1.0 + 2f64.powi(-8), 0x3f80), (f64::INFINITY, 0x7f80)]
        {
            assert_eq!(bf16_bits(c), bits, "{c}");
        }
    }
}
