//! The exact check: a program equals its specification, element by element, in a domain without rounding.
//!
//! Over the prime field of p = 2^61 - 1 elements a matrix product is a polynomial of degree 2 in its inputs (3 with
//! alpha), so a wrong program survives one trial with probability at most 3/p for each element: no tolerance, and no
//! false alarm from rounding. Programs with maxima run over small integers instead, where a survival is likelier;
//! complex programs over pairs.
//!
//! Trials take turns with the values of flags; a flag such as `beta0` makes `beta` zero and poisons what may then not
//! be read (rule 36).

use std::collections::BTreeMap;

use rayon::prelude::{IntoParallelIterator, ParallelIterator};
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::ir::{
    ALIGNMENT, AssignOp, BinaryOp, Buffer, Io, ParamKind, Program, Reduction, Space, Stmt, Value, walk,
};

use crate::arithmetic::{Arithmetic, Field, FieldPair, Integer};
use crate::code::Code;
use crate::lower::{Mode, Starts, lower, lower_points};
use crate::machine::Watch;
use crate::memory::Global;
use crate::points::run_points;
use crate::run::{Outcome, run};
use crate::sample::Blocks;
use crate::simulate::{Claim, Options, Report, dtypes, integers, report, tensor};

/// How to check.
#[derive(Clone, Debug)]
pub struct Trials {
    /// How often, at least; there are always enough trials for every flag to be true once and false once.
    pub count: u32,
    /// The seed of all random inputs.
    pub seed: u64,
    /// How to run the program; the specification always runs in order.
    pub options: Options,
}

impl Default for Trials {
    fn default() -> Trials {
        Trials { count: 1, seed: 1, options: Options::default() }
    }
}

/// The outcome of a check.
#[derive(Clone, Debug)]
pub struct ExactReport {
    /// Trials made.
    pub trials: u32,
    /// Elements compared, in all trials.
    pub compared: u64,
    /// Elements that differ, in all trials.
    pub differing: u64,
    /// The first of them: tensor, index, and the number of the trial.
    pub first: Option<Mismatch>,
    /// What was seen while the program ran; counters are those of one trial, hazards of the first trial with any.
    pub run: Report,
}

/// An element that differs from the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The element, such as `C[2, 3]`.
    pub element: String,
    /// The trial.
    pub trial: u32,
}

impl ExactReport {
    /// Whether every compared element is equal and nothing went wrong on the way.
    pub fn passed(&self) -> bool {
        self.equal() && self.run.passed()
    }

    /// Whether every compared element is equal.
    pub fn equal(&self) -> bool {
        self.differing == 0
    }

    /// Of what the result is true.
    pub fn claim(&self) -> Claim {
        self.run.claim
    }
}

/// Checks that `program` computes what `spec` does, for the given sizes (and launch sizes, by name). Row strides that
/// are not given are chosen wider than the rows where the assumptions allow. Tensors start at addresses that are
/// aligned no better than they declare.
///
/// # Errors
/// Sizes that are missing, assumptions that do not hold, parameters that do not correspond, and what cannot be run.
pub fn check(
    spec: &Program,
    program: &Program,
    sizes: &[(&str, i64)],
    trials: &Trials,
) -> Result<ExactReport, Diagnosis> {
    let types: Vec<DType> = [dtypes(spec), dtypes(program)].concat();
    if compares(spec) || compares(program) || types.iter().all(|t| *t == DType::I32) {
        check_in::<Integer>(spec, program, sizes, trials)
    } else if types.iter().any(|t| t.is_complex()) {
        check_in::<FieldPair>(spec, program, sizes, trials)
    } else {
        check_in::<Field>(spec, program, sizes, trials)
    }
}

/// How long a program takes over the field, compilation included and inputs not: seconds, and multiply-adds done. For
/// benchmarks.
///
/// # Errors
/// As [`check`].
pub fn time(program: &Program, sizes: &[(&str, i64)], trials: &Trials) -> Result<(f64, u64), Diagnosis> {
    let flags: Vec<_> = program.params.iter().filter(|p| p.kind == ParamKind::Flag).collect();
    let flags = flags.iter().map(|p| (p.sym.name().to_string(), true)).collect();
    let trial = Trial { seed: trials.seed, flags: &flags };
    let (_, seen, seconds) = execute::<Field>(program, sizes, &trial, trials.options)?;
    Ok((seconds, seen.counters.fma))
}

/// Whether a program takes maxima or minima, which the field does not have.
fn compares(program: &Program) -> bool {
    fn in_value(value: &Value) -> bool {
        match value {
            Value::Const(_) | Value::Scalar(_) | Value::Load(_) => false,
            Value::Unary(_, a) | Value::Cast(_, a) => in_value(a),
            Value::Binary(op, a, b) => {
                matches!(op, BinaryOp::Max | BinaryOp::Min) || in_value(a) || in_value(b)
            }
            Value::Select(_, a, b) => in_value(a) || in_value(b),
        }
    }
    let mut found = false;
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::Assign(a) = stmt {
            let reduces = matches!(a.op, AssignOp::Reduce(Reduction::Max | Reduction::Min));
            found |= reduces || in_value(&a.value);
        }
    });
    found
}

/// A trial: which flags are true, and random bits.
struct Trial<'a> {
    seed: u64,
    flags: &'a BTreeMap<String, bool>,
}

impl Trial<'_> {
    /// The bits of an element of a named tensor, or of a scalar.
    fn bits(&self, name: &str, element: u64) -> [u64; 2] {
        random_bits(self.named(name), element)
    }

    /// The seed of a name.
    fn named(&self, name: &str) -> u64 {
        name.bytes().fold(self.seed, |h, b| mix(h ^ u64::from(b)))
    }

    /// The value of a scalar that a flag determines: `beta0` says that `beta` is 0, `alpha1` that `alpha` is 1.
    fn determined(&self, scalar: &str) -> Option<f64> {
        let flag = |suffix: &str| self.flags.get(&format!("{scalar}{suffix}")).copied() == Some(true);
        if flag("0") {
            Some(0.0)
        } else if flag("1") {
            Some(1.0)
        } else {
            None
        }
    }
}

/// The random bits of an element.
fn random_bits(named: u64, element: u64) -> [u64; 2] {
    let first = mix(named ^ mix(element));
    [first, mix(first)]
}

/// A good mixture of the bits of a number (splitmix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn check_in<A: Arithmetic>(
    spec: &Program,
    program: &Program,
    sizes: &[(&str, i64)],
    trials: &Trials,
) -> Result<ExactReport, Diagnosis> {
    let mut flags: Vec<String> = Vec::new();
    for param in spec.params.iter().chain(&program.params) {
        if param.kind == ParamKind::Flag && !flags.iter().any(|f| f == param.sym.name()) {
            flags.push(param.sym.name().to_string());
        }
    }
    let count = trials.count.max(if flags.is_empty() { 1 } else { 2 });
    let mut total: Option<ExactReport> = None;
    for number in 0..count {
        // Flag i is true in every other trial, starting with its own parity; later trials mix them.
        let on = |i: usize| {
            let pattern = if number < 2 { u64::from(number) } else { mix(u64::from(number)) >> i };
            pattern & 1 == 1
        };
        let set: BTreeMap<String, bool> = flags.iter().enumerate().map(|(i, f)| (f.clone(), on(i))).collect();
        let trial = Trial { seed: mix(trials.seed ^ u64::from(number) << 32), flags: &set };
        let one = check_once::<A>(spec, program, sizes, &trial, trials.options, number)?;
        total = Some(match total {
            None => one,
            Some(mut sum) => {
                sum.trials += 1;
                sum.compared += one.compared;
                sum.differing += one.differing;
                sum.first = sum.first.or(one.first);
                if sum.run.passed() {
                    sum.run = one.run;
                }
                sum
            }
        });
    }
    total.ok_or_else(|| Diagnosis::new("no trial was made"))
}

fn check_once<A: Arithmetic>(
    spec: &Program,
    program: &Program,
    sizes: &[(&str, i64)],
    trial: &Trial<'_>,
    options: Options,
    number: u32,
) -> Result<ExactReport, Diagnosis> {
    let (got, seen, _) = execute::<A>(program, sizes, trial, options)?;
    let wanted = (seen.claim == Claim::Sample).then(|| written(&got));
    let want = specify::<A>(spec, sizes, trial, wanted.as_deref()).map_err(|d| d.at("the specification"))?;
    let mut result = ExactReport { trials: 1, compared: 0, differing: 0, first: None, run: seen };
    for expected in &want {
        let Some(found) = got.iter().find(|o| o.name == expected.name) else {
            return Err(Diagnosis::new(format!("the program has no output `{}`", expected.name)));
        };
        if found.info.extents != expected.info.extents {
            return Err(Diagnosis::new(format!(
                "output `{}` has other extents than specified",
                expected.name
            )));
        }
        let indices: Box<dyn Iterator<Item = Vec<i64>>> = match &wanted {
            Some(points) => {
                let dims = expected.info.extents.len().max(1);
                Box::new(points.chunks_exact(dims).map(<[i64]>::to_vec))
            }
            None => Box::new(warpwright_core::layout::indices(&expected.info.extents)),
        };
        for index in indices {
            let place = |o: &Output<A>| crate::memory::place(&o.info, &index).unwrap_or(usize::MAX);
            let at = place(found);
            result.compared += 1;
            let (a, b) = (found.memory.load(at), expected.memory.load(place(expected)));
            // What neither touches belongs to somebody else, such as what lies before the first row of a tensor that is declared with it.
            let untouched = found.memory.shadow.as_ref().is_none_or(|s| !s.written(at));
            if b.is_poison() && untouched {
                continue;
            }
            if a != b || a.is_poison() {
                result.differing += 1;
                let element = crate::memory::element(&expected.name, &index);
                result.first.get_or_insert(Mismatch { element, trial: number });
            }
        }
    }
    Ok(result)
}

/// The elements that the simulated blocks wrote, in any output.
fn written<A: Arithmetic>(outputs: &[Output<A>]) -> Vec<i64> {
    let mut points = Vec::new();
    let Some(first) = outputs.first() else { return points };
    let width = first.info.extents.last().copied().unwrap_or(1);
    let rows = first.info.extents.len().saturating_sub(1);
    for index in warpwright_core::layout::indices(&first.info.extents[..rows]) {
        let start = first.info.row(&index);
        for column in 0..width {
            let at = (start + column) as usize;
            let touched = |o: &Output<A>| o.memory.shadow.as_ref().is_some_and(|s| s.written(at));
            if outputs.iter().any(touched) {
                points.extend(&index);
                points.push(column);
            }
        }
    }
    points
}

/// The most loop bodies of a specification that is run as a whole because it cannot be run for single elements.
const MOST_WORK: f64 = 2e9;

/// The outputs by the specification: point by point where that is possible, nest after nest, else in order.
fn specify<A: Arithmetic>(
    spec: &Program,
    sizes: &[(&str, i64)],
    trial: &Trial<'_>,
    wanted: Option<&[i64]>,
) -> Result<Vec<Output<A>>, Diagnosis> {
    let given = arguments(spec, sizes, trial)?;
    let values = integers(spec, &given)?;
    let Some(code) = lower_points(spec, &values)? else {
        let work = sizes.iter().map(|(_, n)| (*n).max(1) as f64).product::<f64>();
        if wanted.is_some() && work > MOST_WORK {
            return Err(Diagnosis::new("it is too large to run as a whole")
                .because("it cannot be run for single elements")
                .instead("check smaller sizes"));
        }
        let in_order = Options { mode: Mode::InOrder, checks: true, blocks: Blocks::All };
        return execute::<A>(spec, sizes, trial, in_order).map(|(outputs, ..)| outputs);
    };
    let (globals, scalars) = inputs::<A>(spec, &code, trial);
    let hazards = run_points(&code, &globals, &scalars, wanted);
    if let Some(hazard) = hazards.report(&|_| String::new()).first() {
        return Err(Diagnosis::new(format!("it is wrong itself: {}", hazard.what)));
    }
    Ok(outputs(&code, globals))
}

/// Memory and scalars of a trial.
fn inputs<A: Arithmetic>(program: &Program, code: &Code<'_>, trial: &Trial<'_>) -> (Vec<Global<A>>, Vec<A>) {
    let globals = code.globals.iter().map(|info| {
        let buffer = info.parameter.and_then(|n| tensor(program, n));
        random_tensor::<A>(info, buffer, program, trial)
    });
    let scalars = program.params.iter().filter(|p| matches!(p.kind, ParamKind::Scalar(_)));
    let scalars = scalars.map(|p| match trial.determined(p.sym.name()) {
        Some(value) => A::from_f64(value),
        None => A::from_random(trial.bits(p.sym.name(), 0)),
    });
    (globals.collect(), scalars.collect())
}

fn outputs<A: Arithmetic>(code: &Code<'_>, globals: Vec<Global<A>>) -> Vec<Output<A>> {
    let outputs = code.globals.iter().zip(globals).filter(|(info, _)| info.output);
    outputs.map(|(info, memory)| Output { name: info.name.clone(), info: info.clone(), memory }).collect()
}

/// An output after a run.
struct Output<A: Arithmetic> {
    name: String,
    info: crate::code::GlobalInfo,
    memory: Global<A>,
}

fn execute<A: Arithmetic>(
    program: &Program,
    sizes: &[(&str, i64)],
    trial: &Trial<'_>,
    options: Options,
) -> Result<(Vec<Output<A>>, Report, f64), Diagnosis> {
    let given = arguments(program, sizes, trial)?;
    let values = integers(program, &given)?;
    let start = std::time::Instant::now();
    let code = lower(program, &values, declared_starts(program), options.mode)?;
    let compiling = start.elapsed();
    let (mut globals, scalars) = inputs::<A>(program, &code, trial);
    let watch = Watch { checks: options.checks };
    let start = std::time::Instant::now();
    let outcome: Outcome = run(&code, options.mode, &mut globals, &scalars, watch, options.blocks);
    let seconds = (start.elapsed() + compiling).as_secs_f64();
    let seen = report::<A>(program, &code, options.mode, outcome);
    Ok((outputs(&code, globals), seen, seconds))
}

/// Starts that are aligned as tensors declare, and no better.
fn declared_starts(program: &Program) -> Starts {
    program.tensors().map(|t| (t.sym.clone(), t.align % ALIGNMENT / t.dtype.bytes())).collect()
}

/// Random content for a tensor that is read; poison for the rest, for the padding of rows, and for what a flag forbids
/// to read.
fn random_tensor<A: Arithmetic>(
    info: &crate::code::GlobalInfo,
    buffer: Option<&Buffer>,
    program: &Program,
    trial: &Trial<'_>,
) -> Global<A> {
    let memory = Global::poison(info.elements);
    let has_flag = program.params.iter().any(|p| {
        p.kind == ParamKind::Flag && p.sym.name() == "beta0" && trial.flags.get(p.sym.name()) == Some(&true)
    });
    let read = match buffer.map(|b| b.space) {
        Some(Space::Param(Io::In)) => true,
        Some(Space::Param(Io::InOut)) => !has_flag,
        _ => false,
    };
    if read {
        let named = trial.named(&info.name);
        let width = info.extents.last().copied().unwrap_or(1);
        let rows = info.extents.len().saturating_sub(1);
        let count: i64 = info.extents[..rows].iter().product();
        (0..count).into_par_iter().for_each(|row| {
            let (mut rest, mut start) = (row, info.start);
            for (extent, stride) in info.extents[..rows].iter().zip(&info.strides).rev() {
                start += rest % extent * stride;
                rest /= extent;
            }
            for column in 0..width {
                let bits = random_bits(named, (row * width + column) as u64);
                memory.store((start + column) as usize, A::from_random(bits));
            }
        });
    }
    memory
}

/// The integers of a call: sizes as given, flags of the trial, and row strides.
fn arguments(
    program: &Program,
    sizes: &[(&str, i64)],
    trial: &Trial<'_>,
) -> Result<BTreeMap<String, i64>, Diagnosis> {
    let mut given: BTreeMap<String, i64> = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    for (flag, on) in trial.flags {
        given.insert(flag.clone(), i64::from(*on));
    }
    with_strides(program, given)
}

/// Adds the row strides that are not given: wider than the rows, the first choice for which the assumptions hold.
///
/// # Errors
/// Sizes that are missing, and assumptions that hold for no choice.
pub fn with_strides(
    program: &Program,
    given: BTreeMap<String, i64>,
) -> Result<BTreeMap<String, i64>, Diagnosis> {
    let width = |buffer: &Buffer| buffer.dims.last()?.extent.eval(&|s| given.get(s.name()).copied()).ok();
    let strided: Vec<&Buffer> = program
        .tensors()
        .filter(|t| t.row_stride.as_ref().is_some_and(|s| !given.contains_key(s.name())))
        .collect();
    let choices: [fn(i64) -> i64; 5] =
        [|w| w + 3, |w| (w + 7) / 8 * 8 + 8, |w| (w + 15) / 16 * 16, |w| (w + 127) / 128 * 128, |w| w];
    let mut last = None;
    for choice in choices {
        let mut all = given.clone();
        for buffer in &strided {
            let width = width(buffer)
                .ok_or_else(|| Diagnosis::new(format!("the extents of `{}` are not known", buffer.sym)))?;
            if let Some(stride) = &buffer.row_stride {
                all.insert(stride.name().to_string(), choice(width).max(1));
            }
        }
        match integers(program, &all) {
            Ok(_) => return Ok(all),
            Err(d) => last = Some(d),
        }
    }
    Err(last.unwrap_or_else(|| Diagnosis::new("no row strides fit the assumptions")))
}

#[cfg(test)]
mod tests;
