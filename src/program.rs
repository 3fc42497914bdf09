//! Any finished program, whatever its parameters, against what it has to equal: its specification, or itself in order.
//!
//! On the simulator the two are compared over the prime field, and hazards are reported. On a GPU they are compared on
//! small integers: every sum and product of those is exact in every type that accumulates, in any order, so a right
//! program gives the very numbers of the reference, and no tolerance is needed.

use std::collections::BTreeMap;

use fastrand::Rng;
use num_complex::Complex64;
use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::validate::Valid;
use warpwright_core::ir::{Buffer, Io, ParamKind, Program, Space};
use warpwright_core::sym::Sym;
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Arguments, Blocks, Mode, Options, Tensor, simulate};

use crate::matrix::Matrix;
use crate::report::{ExactCheck, LaunchReport};

/// Sizes, launch sizes, row strides and flags by name.
pub type Integers = BTreeMap<String, i64>;

/// How a program fared at some sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The sizes, and what else was given by name.
    pub sizes: Integers,
    /// Elements compared, in all trials.
    pub compared: u64,
    /// Elements that differ.
    pub differing: u64,
    /// The first of them, on a GPU with what was found there.
    pub first: Option<String>,
    /// The check over the prime field; absent on a GPU.
    pub exact: Option<ExactCheck>,
    /// Races, accesses out of bounds and the like, a line each.
    pub hazards: Vec<String>,
    /// The launches.
    pub launches: Vec<LaunchReport>,
    /// Whether nothing is wrong.
    pub passed: bool,
}

/// Sizes to check at where none are given, for programs of one size: nothing, one, less and more than a block.
const ONE: [i64; 5] = [0, 1, 67, 4096, 5003];
/// The same for programs of several: each takes the next extent of the row.
const SEVERAL: [[i64; 3]; 7] =
    [[5, 7, 0], [0, 3, 2], [1, 1, 1], [17, 3, 29], [128, 256, 64], [131, 137, 67], [130, 70, 331]];

/// The sizes to check a program at: those given, and for the others several, as long as its assumptions allow them.
/// Launch sizes that are not given are `launch_size`.
///
/// # Errors
/// A name that is no size, launch size or row stride; and assumptions that none of the sizes fulfil.
pub fn cases(program: &Program, given: &Integers, launch_size: i64) -> Result<Vec<Integers>, Diagnosis> {
    let names = |wanted: &[ParamKind]| -> Vec<String> {
        let params = program.params.iter().filter(|p| wanted.contains(&p.kind));
        params.map(|p| p.sym.name().to_string()).collect()
    };
    let mut known = names(&[ParamKind::Size, ParamKind::Launch]);
    known.extend(program.tensors().filter_map(|t| t.row_stride.as_ref()).map(|s| s.name().to_string()));
    if let Some(unknown) = given.keys().find(|n| !known.contains(n)) {
        return Err(Diagnosis::new(format!("{} has no size `{unknown}`", program.name))
            .instead(format!("use one of {}", known.join(", "))));
    }
    let open: Vec<String> =
        names(&[ParamKind::Size]).into_iter().filter(|n| !given.contains_key(n)).collect();
    let rows: Vec<Vec<i64>> = match open.len() {
        0 => vec![Vec::new()],
        1 => ONE.iter().map(|e| vec![*e]).collect(),
        n => SEVERAL.iter().map(|row| row.iter().cycle().take(n).copied().collect()).collect(),
    };
    let mut cases = Vec::new();
    let mut refusal = None;
    for row in rows {
        let mut case = given.clone();
        case.extend(open.iter().cloned().zip(row));
        for name in names(&[ParamKind::Launch]) {
            case.entry(name).or_insert(launch_size);
        }
        match with_flags(program, &case, false) {
            Ok(_) => cases.push(case),
            Err(diagnosis) => refusal = Some(diagnosis),
        }
    }
    refusal.filter(|_| cases.is_empty()).map_or(Ok(cases), Err)
}

/// Everything that control may depend on: the sizes, all flags alike, and row strides that fit.
fn with_flags(program: &Program, sizes: &Integers, on: bool) -> Result<Integers, Diagnosis> {
    let mut integers = sizes.clone();
    for flag in program.params.iter().filter(|p| p.kind == ParamKind::Flag) {
        integers.insert(flag.sym.name().to_string(), i64::from(on));
    }
    exact::with_strides(program, integers)
}

/// Checks a program on the simulator.
///
/// # Errors
/// What cannot be run at these sizes, and parameters that do not correspond.
pub fn on_simulator(
    valid: &Valid,
    reference: &Program,
    sizes: &Integers,
    trials: &Trials,
) -> Result<Case, Diagnosis> {
    let named: Vec<(&str, i64)> = sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let report = exact::check(reference, valid.program(), &named, trials)?;
    Ok(Case {
        sizes: sizes.clone(),
        compared: report.compared,
        differing: report.differing,
        first: report.first.as_ref().map(|m| m.element.clone()),
        exact: Some(ExactCheck { trials: report.trials, passed: report.equal(), at: None }),
        hazards: report.run.hazards.iter().map(ToString::to_string).collect(),
        launches: report.run.launches.iter().map(LaunchReport::from).collect(),
        passed: report.passed(),
    })
}

/// One call of a program on small integers, and what it has to give.
#[derive(Clone, Debug)]
pub struct Call {
    /// Sizes, launch sizes, row strides and flags.
    pub integers: Integers,
    /// Scalars.
    pub scalars: BTreeMap<String, Complex64>,
    /// The tensors before the call. Padding, and what must not be read, is NaN.
    pub before: BTreeMap<String, Matrix>,
    /// The outputs after it.
    pub expected: BTreeMap<String, Matrix>,
}

/// The calls that compare a program with its reference on small integers: one with every flag false, and one with
/// every flag true if there is any.
///
/// # Errors
/// What the reference cannot be run with.
pub fn calls(
    program: &Program,
    reference: &Program,
    sizes: &Integers,
    seed: u64,
) -> Result<Vec<Call>, Diagnosis> {
    let has_flags = program.params.iter().any(|p| p.kind == ParamKind::Flag);
    let settings: &[bool] = if has_flags { &[false, true] } else { &[false] };
    settings.iter().map(|on| call(program, reference, sizes, *on, seed)).collect()
}

fn call(
    program: &Program,
    reference: &Program,
    sizes: &Integers,
    on: bool,
    seed: u64,
) -> Result<Call, Diagnosis> {
    let integers = with_flags(program, sizes, on)?;
    let expected = in_order(reference, &with_flags(reference, sizes, on)?, seed)
        .map_err(|d| d.at(format!("{}, run in order", reference.name)))?;
    let before = tensors(program, &integers, seed)?;
    Ok(Call { scalars: scalars(program, &integers), integers, before, expected })
}

/// What a program gives in order.
fn in_order(
    program: &Program,
    integers: &Integers,
    seed: u64,
) -> Result<BTreeMap<String, Matrix>, Diagnosis> {
    let before = tensors(program, integers, seed)?;
    let bytes = |m: &Matrix| Tensor::from(m.bytes().to_vec());
    let mut arguments = Arguments {
        integers: integers.clone(),
        scalars: scalars(program, integers),
        tensors: before.iter().map(|(name, m)| (name.clone(), bytes(m))).collect(),
    };
    let options = Options { mode: Mode::InOrder, checks: true, blocks: Blocks::All };
    let report = simulate(program, &mut arguments, &options)?;
    if let Some(hazard) = report.hazards.first() {
        return Err(Diagnosis::new(format!("it is wrong itself: {hazard}")));
    }
    let mut after = BTreeMap::new();
    for output in program.outputs() {
        let name = output.sym.name();
        let (mut matrix, tensor) = (before[name].clone(), &arguments.tensors[name]);
        let length = matrix.bytes().len().min(tensor.bytes.len());
        matrix.bytes_mut()[..length].copy_from_slice(&tensor.bytes[..length]);
        after.insert(name.to_string(), matrix);
    }
    Ok(after)
}

/// Small integers for scalars. `beta0` says that beta is 0, `alpha1` that alpha is 1.
fn scalars(program: &Program, integers: &Integers) -> BTreeMap<String, Complex64> {
    let flag = |name: String| integers.get(&name) == Some(&1);
    let scalars = program.params.iter().filter(|p| matches!(p.kind, ParamKind::Scalar(_)));
    let value = |number: usize, name: &str| match name {
        _ if flag(format!("{name}0")) => 0.0,
        _ if flag(format!("{name}1")) => 1.0,
        _ => 2.0 + number as f64,
    };
    scalars
        .enumerate()
        .map(|(i, p)| (p.sym.name().to_string(), Complex64::new(value(i, p.sym.name()), 0.0)))
        .collect()
}

/// The tensors before a call: integers from -3 to 3 where the program may read, else NaN. An element depends on the
/// seed, the tensor's name and its index alone, so two programs get the same whatever their row strides.
fn tensors(program: &Program, integers: &Integers, seed: u64) -> Result<BTreeMap<String, Matrix>, Diagnosis> {
    let mut tensors = BTreeMap::new();
    for buffer in program.tensors() {
        let name = buffer.sym.name();
        let mut matrix = storage(buffer, integers)?;
        matrix.bytes_mut().fill(0xff);
        let read = match buffer.space {
            Space::Param(Io::In) => true,
            Space::Param(Io::InOut) => integers.get("beta0") != Some(&1),
            _ => false,
        };
        if read {
            let salt = name.bytes().fold(seed, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
            let mut rng = Rng::with_seed(salt);
            let complex = buffer.dtype.is_complex();
            matrix.fill(|_, _| {
                let re = f64::from(rng.i32(-3..=3));
                Complex64::new(re, if complex { f64::from(rng.i32(-3..=3)) } else { 0.0 })
            });
        }
        tensors.insert(name.to_string(), matrix);
    }
    Ok(tensors)
}

/// A matrix in which a tensor is stored: rows of the last dimension.
fn storage(buffer: &Buffer, integers: &Integers) -> Result<Matrix, Diagnosis> {
    let value = |sym: &Sym| integers.get(sym.name()).copied();
    let unknown = |sym: Sym| Diagnosis::new(format!("no value was given for `{sym}`"));
    let extents: Result<Vec<i64>, Sym> = buffer.dims.iter().map(|d| d.extent.eval(&value)).collect();
    let extents = extents.map_err(unknown)?;
    let (columns, rows) = extents.split_last().map_or((1, 1), |(last, rest)| (*last, rest.iter().product()));
    let stride = match &buffer.row_stride {
        Some(sym) => value(sym).ok_or_else(|| unknown(sym.clone()))?,
        None => columns,
    };
    Matrix::zeros(buffer.dtype, rows.max(0) as usize, columns.max(0) as usize, stride.max(columns) as usize)
}

/// How many elements of the outputs of a call are not what they have to be, and the first of them in words.
pub fn differences(call: &Call, found: &BTreeMap<String, Matrix>) -> (u64, u64, Option<String>) {
    let (mut compared, mut differing, mut first) = (0, 0, None);
    for (name, expected) in &call.expected {
        let found = &found[name];
        for row in 0..expected.rows() {
            for column in 0..expected.columns() {
                let (a, b) = (found.get(row, column), expected.get(row, column));
                compared += 1;
                // NaN equals nothing: an element that was never written differs.
                if a != b {
                    differing += 1;
                    first.get_or_insert_with(|| format!("{name}[{row}, {column}] is {a}, not {b}"));
                }
            }
        }
    }
    (compared, differing, first)
}
