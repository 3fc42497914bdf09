//! What every test of schedules asks: is each program equal to its specification, in order and on many threads?

use warpwright_core::ir::{ParamKind, Program};
use warpwright_core::passes;
use warpwright_core::schedule::Schedule;
use warpwright_core::sym::Sym;
use warpwright_sim::coroutine::{self, Policy};
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::mutate::case;
use warpwright_sim::{Blocks, Mode, Options};

/// Checks that a program equals its specification over the prime field, with both values of every flag, and meets no
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
        Some(complaint) => Err(format!("{complaint}, {mode:?} at {sizes:?}")),
    }
}

/// Checks that real threads in random order, asynchronous effects as late as they may be, compute what a
/// specification does.
///
/// # Errors
/// The first fault or difference.
pub fn threads(spec: &Program, program: &Program, sizes: &[(&str, i64)], seed: u64) -> Result<(), String> {
    for beta0 in [0, 1] {
        let flags = spec.params.iter().filter(|p| p.kind == ParamKind::Flag);
        let mut all = sizes.to_vec();
        all.extend(flags.map(|p| (p.sym.name(), beta0)));
        let before = case::arguments(spec, &all, seed);
        let mut expected = before.clone();
        let specified = coroutine::run(
            &passes::lower(spec).map_err(|e| e.to_string())?,
            &mut expected,
            Policy::from_seed(seed),
        );
        specified.map_err(|e| format!("the specification: {e}"))?;
        for policy in [Policy::latest(seed), Policy::from_seed(seed)] {
            let mut got = before.clone();
            coroutine::run(program, &mut got, policy).map_err(|e| format!("{e}, on threads at {all:?}"))?;
            if got.tensors != expected.tensors {
                return Err(format!("not equal on threads at {all:?}"));
            }
        }
    }
    Ok(())
}

/// The sizes with a stride for each tensor whose rows are a multiple of 8 elements apart, with some to spare.
pub fn with_aligned_rows<'a>(program: &'a Program, sizes: &[(&'a str, i64)]) -> Vec<(&'a str, i64)> {
    let mut all = sizes.to_vec();
    let value = |s: &Sym| sizes.iter().find(|(name, _)| *name == s.name()).map(|(_, value)| *value);
    for buffer in program.tensors() {
        if let (Some(stride), Some(columns)) = (&buffer.row_stride, buffer.dims.last()) {
            let columns = columns.extent.eval(&value).expect("sizes are given");
            all.push((stride.name(), (columns + 7) / 8 * 8 + 8));
        }
    }
    all
}

/// Checks every prefix of a schedule from step `first` on in order, and, if it is to be run on threads, the last
/// program as SIMT and on threads in random order.
///
/// # Errors
/// The first difference from the specification.
pub fn check(
    schedule: &Schedule,
    sizes: &[(&str, i64)],
    first: usize,
    on_threads: bool,
    seed: u64,
) -> Result<(), String> {
    let spec = schedule.spec();
    let sizes = with_aligned_rows(spec, sizes);
    for (step, program) in schedule.prefixes().map_err(|e| e.to_string())?.iter().enumerate().skip(first) {
        exact(spec, program, &sizes, Mode::InOrder, seed)
            .map_err(|e| format!("{e}, after step {step}:\n{program}"))?;
    }
    if on_threads {
        let lowered =
            passes::lower(schedule.program()).map_err(|e| format!("{e}\n{}", schedule.program()))?;
        let place = |e: String| format!("{e}:\n{lowered}");
        exact(spec, &lowered, &sizes, Mode::Simt, seed).map_err(place)?;
        threads(spec, &lowered, &sizes, seed).map_err(place)?;
    }
    Ok(())
}
