//! What every test of schedules asks: is each program equal to its specification, in order and on many threads?

use warpwright_core::ir::{ParamKind, Program};
use warpwright_core::passes;
use warpwright_core::schedule::Schedule;
use warpwright_sim::coroutine::{self, Arguments, Element, Policy, Random, assumptions_hold, tensor_shapes};
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Blocks, Mode, Options};

use crate::in_order;

/// Random arguments of the given sizes; rows are padded to a multiple of 8 and a little more.
pub fn arguments(program: &Program, sizes: &[(&str, i64)], beta0: bool, random: &mut Random) -> Arguments {
    let mut args = Arguments::default();
    for (name, value) in sizes {
        args.integers.insert((*name).into(), *value);
    }
    for param in &program.params {
        match &param.kind {
            ParamKind::Flag => {
                args.integers.insert(param.sym.name().into(), i64::from(beta0));
            }
            ParamKind::Launch => {
                args.integers.entry(param.sym.name().into()).or_insert(3);
            }
            ParamKind::Scalar(_) => {
                let zero = beta0 && param.sym.name() == "beta";
                let value = if zero { Element::ZERO } else { Element::new(random.number()) };
                args.scalars.insert(param.sym.name().into(), value);
            }
            _ => {}
        }
    }
    for buffer in program.tensors() {
        if let Some(stride) = &buffer.row_stride {
            let value = |s: &warpwright_core::sym::Sym| args.integers.get(s.name()).copied();
            let columns = buffer.dims[1].extent.eval(&value).expect("sizes are given");
            args.integers.insert(stride.name().into(), (columns + 7) / 8 * 8 + 8);
        }
    }
    for (name, extents, stride) in tensor_shapes(program, &args) {
        let rows: i64 = extents[..extents.len() - 1].iter().product();
        let elements = (0..rows * stride).map(|_| Element::new(random.number())).collect();
        args.tensors.insert(name, elements);
    }
    args
}

/// Runs every prefix of a schedule from step `first` on in order, and the last program on threads too.
///
/// # Errors
/// The first difference from the specification.
pub fn check(
    schedule: &Schedule,
    sizes: &[(&str, i64)],
    first: usize,
    threads: bool,
    seed: u64,
) -> Result<(), String> {
    let prefixes = schedule.prefixes().map_err(|e| e.to_string())?;
    for beta0 in [false, true] {
        let mut random = Random::new(seed);
        let args = arguments(schedule.spec(), sizes, beta0, &mut random);
        let mut expected = args.clone();
        in_order::run(schedule.spec(), &mut expected)?;
        for (step, program) in prefixes.iter().enumerate().skip(first) {
            if !assumptions_hold(program, &args) {
                continue;
            }
            let mut got = args.clone();
            let place = || format!("after step {step} at {sizes:?}:\n{program}");
            in_order::run(program, &mut got).map_err(|e| format!("{e} {}", place()))?;
            if got.tensors != expected.tensors {
                return Err(format!("not equal {}", place()));
            }
        }
        if threads {
            on_threads(schedule.program(), &args, &expected, seed)?;
        }
    }
    Ok(())
}

fn on_threads(program: &Program, args: &Arguments, expected: &Arguments, seed: u64) -> Result<(), String> {
    let lowered = passes::lower(program).map_err(|e| format!("cannot be lowered: {e}\n{program}"))?;
    for policy in [Policy::latest(seed), Policy::from_seed(seed)] {
        let mut got = args.clone();
        coroutine::run(&lowered, &mut got, policy).map_err(|e| format!("on threads: {e}\n{lowered}"))?;
        if got.tensors != expected.tensors {
            return Err(format!("not equal on threads\n{lowered}"));
        }
    }
    Ok(())
}

/// Whether a program equals its specification over the prime field, with both values of every flag, and meets no
/// hazard on the way.
///
/// # Errors
/// The first hazard or difference.
pub fn exact(
    spec: &Program,
    program: &Program,
    sizes: &[(&str, i64)],
    mode: Mode,
    seed: u64,
) -> Result<(), String> {
    let trials = Trials { count: 1, seed, options: Options { mode, checks: true, blocks: Blocks::All } };
    let report = exact::check(spec, program, sizes, &trials).map_err(|e| e.to_string())?;
    let hazard = report.run.hazards.first().map(ToString::to_string);
    let differs = report.first.map(|m| format!("{} differs", m.element));
    match hazard.or(differs) {
        None => Ok(()),
        Some(complaint) => Err(format!("{complaint} at {sizes:?}, {mode:?}")),
    }
}
