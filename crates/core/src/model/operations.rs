//! How many instructions arithmetic takes.

use crate::dtype::DType;
use crate::ir::{Assign, AssignOp, BinaryOp, Value};
use crate::target::{Capability, Target};

/// Instructions by which a thread takes a number in f32 apart into two of tf32: it rounds, subtracts and scales. They count for each product
/// that the number is in: its parts may serve several, but what threads add up between products does not count at all.
const TAKE_APART: f64 = 3.0;

/// Instructions of a thread for the arithmetic of an assignment to an element of this type. A product that is added is one
/// multiply-add, of complex numbers four; signs, conjugates and factors of i are part of what uses them.
pub(super) fn of_assignment(a: &Assign, dtype: Option<DType>) -> f64 {
    let [product, sum] = if dtype.is_some_and(DType::is_complex) { [4.0, 2.0] } else { [1.0, 1.0] };
    let own = of_value(&a.value, product, sum);
    let fused = matches!(&a.value, Value::Binary(BinaryOp::Mul, ..));
    if a.op == AssignOp::Store || a.atomic || fused { own } else { own + sum }
}

fn of_value(value: &Value, product: f64, sum: f64) -> f64 {
    match value {
        Value::Const(_) | Value::Scalar(_) | Value::Load(_) => 0.0,
        Value::Unary(_, a) | Value::Cast(_, a) => of_value(a, product, sum),
        Value::Binary(op, a, b) => {
            let one = if *op == BinaryOp::Mul { product } else { sum };
            of_value(a, product, sum) + of_value(b, product, sum) + one
        }
        Value::Select(_, a, b) => of_value(a, product, sum).max(of_value(b, product, sum)),
    }
}

/// How many products on matrix units make one of numbers of this type: numbers in f32 are taken apart into two of tf32, and the product of the
/// small ones is left out.
pub(super) fn parts(dtype: DType) -> f64 {
    if matches!(dtype, DType::F32 | DType::C64) { 3.0 } else { 1.0 }
}

/// Real products that make one of numbers of this type.
pub(super) fn real(dtype: DType) -> f64 {
    if dtype.is_complex() { 4.0 } else { 1.0 }
}

/// Instructions of a warp for a product of fragments on matrix units: those that multiply, and those that take numbers apart.
pub(super) fn of_product([m, n, k]: [i64; 3], dtype: DType) -> f64 {
    let apart = if parts(dtype) > 1.0 {
        let words = (m * k + k * n) as f64 * if dtype.is_complex() { 2.0 } else { 1.0 };
        TAKE_APART * words / 32.0
    } else {
        0.0
    };
    real(dtype) * parts(dtype) + apart
}

/// How many times as long a GPU takes for products of 8 rows: where there are instructions of 16 rows of f64, those of 8 reach
/// half of the rate (30 of 67 TFLOP/s on an H200, bench/results/tuner-candidates-nvidia-h200-2026-11-22.csv).
pub(super) fn small(target: &Target) -> f64 {
    if target.has(Capability::MmaF64Wide) { 2.0 } else { 1.0 }
}

/// The part of the rate of matrix units that instructions of one warp reach, where there are others of four warps: 301 to 325 TFLOP/s in
/// tf32 of the 495 of the datasheet, with factors in registers (`bench/limits/tf32_rate.cu`, an H200,
/// bench/results/h200-2026-11-25-parts-stored-once.txt), which is taken for 16-bit types, too. Those of f64 are of one warp everywhere.
pub(super) fn of_one_warp(target: &Target, dtype: DType) -> f64 {
    let is_f64 = matches!(dtype, DType::F64 | DType::C128);
    if target.has(Capability::Wgmma) && !is_f64 { 313.0 / 495.0 } else { 1.0 }
}
