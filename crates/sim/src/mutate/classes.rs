//! The trial that the field cannot make: infinities and NaNs.
//!
//! Zero times anything is zero in a field, so a product whose tail is filled on one side only is exact there; with an
//! infinity on the other side it is NaN in IEEE arithmetic. Here inputs hold small numbers and a few infinities, and
//! the outputs of a program and of its specification are compared by class: finite, either infinity, or NaN.

use num_complex::Complex;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::ir::{Io, ParamKind, Program, Space};

use super::case::{Case, Shape, arguments};
use crate::coroutine::{Random, tensor_shapes};
use crate::{Arguments, Arithmetic, Blocks, Mode, Options, Tensor, simulate};

/// The first output of the program that has another class than the specification gives.
///
/// # Errors
/// What cannot be run.
pub fn first_difference(
    case: &Case,
    program: &Program,
    shape: &Shape,
    seed: u64,
) -> Result<Option<String>, Diagnosis> {
    let (mut expected, mut got) =
        (sprinkled(&case.program, shape, seed), sprinkled(&case.program, shape, seed));
    let options = Options { mode: Mode::InOrder, checks: false, blocks: Blocks::All };
    simulate(&case.specification, &mut expected, &options)?;
    simulate(program, &mut got, &options)?;
    for buffer in case.program.outputs() {
        let (name, unit) = (buffer.sym.name(), buffer.dtype.bytes() as usize);
        let classes = |a: &Arguments| -> Vec<Class> {
            let elements = a.tensors[name].bytes.chunks_exact(unit);
            elements.map(|bytes| Class::of(f64::decode(buffer.dtype, bytes))).collect()
        };
        let (expected, got) = (classes(&expected), classes(&got));
        if let Some(at) = (0..expected.len()).find(|at| expected[*at] != got[*at]) {
            let what = format!("{name} at {at} is {:?} instead of {:?}", got[at], expected[at]);
            return Ok(Some(what));
        }
    }
    Ok(None)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Finite,
    PlusInfinity,
    MinusInfinity,
    Nan,
}

impl Class {
    fn of(value: f64) -> Class {
        match value {
            v if v.is_nan() => Class::Nan,
            f64::INFINITY => Class::PlusInfinity,
            f64::NEG_INFINITY => Class::MinusInfinity,
            _ => Class::Finite,
        }
    }
}

/// Arguments of small non-zero numbers, with infinities at the end of some rows and columns.
fn sprinkled(program: &Program, shape: &Shape, seed: u64) -> Arguments {
    let in_field = arguments(program, shape, seed);
    let mut random = Random::new(seed);
    let mut given =
        Arguments { integers: in_field.integers.clone().into_iter().collect(), ..Arguments::default() };
    for param in &program.params {
        if let ParamKind::Scalar(_) = param.kind {
            let name = param.sym.name();
            let zero = name == "beta" && given.integers.get("beta0") == Some(&1);
            given.scalars.insert(name.into(), Complex::new(if zero { 0.0 } else { 2.0 }, 0.0));
        }
    }
    let shapes = tensor_shapes(program, &in_field);
    for ((name, extents, stride), buffer) in shapes.into_iter().zip(program.tensors()) {
        let (rows, columns) = if extents.len() == 2 { (extents[0], extents[1]) } else { (1, extents[0]) };
        let unit = buffer.dtype.bytes() as usize;
        let mut bytes = vec![0; (rows * stride).max(0) as usize * unit];
        let forbidden = buffer.space == Space::Param(Io::InOut) && given.integers.get("beta0") == Some(&1);
        for (row, column) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let last = row + 1 == rows || column + 1 == columns;
            let value = match random.below(8) {
                _ if forbidden => f64::NAN,
                0..4 if last && buffer.space == Space::Param(Io::In) => f64::INFINITY,
                n => 1.0 + n as f64,
            };
            let at = (row * stride + column) as usize * unit;
            value.encode(buffer.dtype, &mut bytes[at..at + unit]);
        }
        given.tensors.insert(name, Tensor::from(bytes));
    }
    given
}

/// Whether the elements of a program have infinities.
pub fn apply_to(program: &Program) -> bool {
    program.tensors().all(|t| !t.dtype.is_complex() && t.dtype != DType::I32)
}
