//! Running a program on given arguments, and what is reported.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use num_complex::Complex;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::ir::{Buffer, ParamKind, Program, Stmt, walk};
use warpwright_core::sym::Sym;

use crate::arithmetic::{Arithmetic, Integer};
use crate::code::Code;
use crate::count::{Counters, SiteCounters};
use crate::hazard::{Hazard, HazardKind};
use crate::lower::{Mode, Starts, lower};
use crate::machine::Watch;
use crate::memory::Global;
use crate::run::{LaunchShape, Outcome, run};
use crate::sample::Blocks;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// In order or SIMT.
    pub mode: Mode,
    /// Watch races, poison and counters. Bounds are always watched.
    pub checks: bool,
    /// Which blocks to simulate; ignored in order.
    pub blocks: Blocks,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: Mode::Simt, checks: true, blocks: Blocks::All }
    }
}

/// What a program is called with, by the names of its parameters.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Sizes, row strides and launch sizes; flags as 0 or 1.
    pub integers: BTreeMap<String, i64>,
    /// Scalars.
    pub scalars: BTreeMap<String, Complex<f64>>,
    /// Tensors; those the program writes are changed.
    pub tensors: BTreeMap<String, Tensor>,
}

/// The elements of a tensor as they are stored: rows lie a row stride apart, each element as its type has it, little
/// end first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensor {
    /// The bytes, padding of rows included; the last row may end with its last element.
    pub bytes: Vec<u8>,
    /// By how many bytes it starts behind a multiple of 16: a whole number of elements.
    pub start: usize,
}

impl From<Vec<u8>> for Tensor {
    /// These bytes, at a multiple of 16.
    fn from(bytes: Vec<u8>) -> Tensor {
        Tensor { bytes, start: 0 }
    }
}

/// The numbers in which a program is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// f32, with f16 and bf16 rounded when stored.
    F32,
    /// f64, and mixtures of f64 and narrower types.
    F64,
    /// Complex numbers, those of two f32 rounded after each operation.
    C128,
    /// 32-bit integers that wrap.
    I32,
    /// The prime field of 2^61 - 1 elements.
    Field,
    /// Pairs over the prime field, for complex programs.
    FieldPair,
}

impl Domain {
    /// The IEEE (or native integer) domain that holds every type of a program.
    pub fn native(program: &Program) -> Domain {
        let types = dtypes(program);
        let any = |wanted: &[DType]| types.iter().any(|t| wanted.contains(t));
        if any(&[DType::C128, DType::C64]) {
            Domain::C128
        } else if any(&[DType::F64]) {
            Domain::F64
        } else if any(&[DType::I32]) && types.iter().all(|t| *t == DType::I32) {
            Domain::I32
        } else {
            Domain::F32
        }
    }
}

/// The element types of parameters, scalars and buffers.
pub(crate) fn dtypes(program: &Program) -> Vec<DType> {
    let mut types: Vec<DType> = program
        .params
        .iter()
        .filter_map(|p| match &p.kind {
            ParamKind::Scalar(t) => Some(*t),
            ParamKind::Tensor(b) => Some(b.dtype),
            ParamKind::Size | ParamKind::Launch | ParamKind::Flag => None,
        })
        .collect();
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::Alloc(b) = stmt {
            types.push(b.dtype);
        }
    });
    types
}

/// Of what a report is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Every block of every launch was simulated: the report is about the launch, in all its possible executions.
    Launch,
    /// Only some blocks were simulated: races with others cannot be seen.
    Sample,
}

/// What was seen while a program ran.
#[derive(Clone, Debug)]
pub struct Report {
    /// The mode it ran in.
    pub mode: Mode,
    /// The arithmetic, for tables.
    pub arithmetic: &'static str,
    /// Sums over the simulated blocks.
    pub counters: Counters,
    /// The same by place, for every place where something was counted.
    pub sites: Vec<SiteCounters>,
    /// Everything that went wrong.
    pub hazards: Vec<Hazard>,
    /// Of what this is true.
    pub claim: Claim,
    /// The launches that ran, in order.
    pub launches: Vec<LaunchShape>,
}

impl Report {
    /// Whether nothing went wrong.
    pub fn passed(&self) -> bool {
        self.hazards.is_empty()
    }

    /// Hazards of these kinds.
    pub fn count(&self, kinds: &[HazardKind]) -> u64 {
        self.hazards.iter().filter(|h| kinds.contains(&h.kind)).map(|h| h.count).sum()
    }

    /// Conflicting accesses that nothing orders, missing fences included.
    pub fn races(&self) -> u64 {
        let kinds = [HazardKind::Race, HazardKind::ProxyFence, HazardKind::WgmmaFence, HazardKind::InFlight];
        self.count(&kinds)
    }

    /// Indices outside buffers, and registers and operands that are not where they should be.
    pub fn out_of_bounds(&self) -> u64 {
        self.count(&[HazardKind::OutOfBounds, HazardKind::Ownership, HazardKind::Operand])
    }

    /// Outputs that got data never stored.
    pub fn uninitialized(&self) -> u64 {
        self.count(&[HazardKind::Uninitialised])
    }

    /// Waits and phases that do not fit, and work left under way.
    pub fn barrier_faults(&self) -> u64 {
        let kinds = [
            HazardKind::Hang,
            HazardKind::Phase,
            HazardKind::ExpectedBytes,
            HazardKind::Outstanding,
            HazardKind::Chain,
        ];
        self.count(&kinds)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hazards.is_empty() {
            return f.write_str("no hazard");
        }
        for hazard in &self.hazards {
            writeln!(f, "{hazard}")?;
        }
        Ok(())
    }
}

/// Runs a program on the given arguments in its native domain ([`Domain::native`]).
///
/// # Errors
/// Arguments that are missing or do not fit, assumptions that do not hold, and what cannot be run in the mode.
pub fn simulate(
    program: &Program,
    arguments: &mut Arguments,
    options: &Options,
) -> Result<Report, Diagnosis> {
    match Domain::native(program) {
        Domain::F32 => simulate_in::<f32>(program, arguments, options),
        Domain::F64 => simulate_in::<f64>(program, arguments, options),
        Domain::C128 => simulate_in::<Complex<f64>>(program, arguments, options),
        Domain::I32 => simulate_in::<Integer>(program, arguments, options),
        Domain::Field | Domain::FieldPair => Err(Diagnosis::new("no program computes in the field natively")),
    }
}

fn simulate_in<A: Arithmetic>(
    program: &Program,
    arguments: &mut Arguments,
    options: &Options,
) -> Result<Report, Diagnosis> {
    let values = integers(program, &arguments.integers)?;
    let code = lower(program, &values, starts(program, &arguments.tensors)?, options.mode)?;
    let mut globals: Vec<Global<A>> = Vec::with_capacity(code.globals.len());
    for info in &code.globals {
        let Some(number) = info.parameter else {
            globals.push(Global::poison(info.elements));
            continue;
        };
        let buffer = tensor(program, number);
        let unit = buffer.map_or(1, |b| b.dtype.bytes()) as usize;
        let given = arguments.tensors.get(&info.name);
        let only_written = buffer
            .is_some_and(|b| b.space == warpwright_core::ir::Space::Param(warpwright_core::ir::Io::Out));
        if only_written {
            globals.push(Global::poison(info.elements));
            continue;
        }
        let bytes = given.map(|t| &t.bytes[..]).unwrap_or_default();
        let elements = info.elements - info.start as usize;
        if bytes.len() < elements * unit {
            return Err(Diagnosis::new(format!("tensor `{}` has {} bytes", info.name, bytes.len()))
                .because(format!("the program needs {elements} elements of {unit}")));
        }
        let before = (0..info.start).map(|_| A::POISON.cell());
        let cells = bytes.chunks_exact(unit).take(elements).map(|b| A::decode(info.dtype, b).cell());
        globals.push(Global { cells: before.chain(cells).collect(), shadow: None });
    }
    let scalars: Result<Vec<A>, Diagnosis> = program
        .params
        .iter()
        .filter_map(|p| match p.kind {
            ParamKind::Scalar(dtype) => Some((p.sym.name(), dtype)),
            _ => None,
        })
        .map(|(name, dtype)| {
            let value = arguments.scalars.get(name);
            let value = value.ok_or_else(|| Diagnosis::new(format!("no value was given for `{name}`")))?;
            Ok(scalar::<A>(*value, dtype))
        })
        .collect();
    let watch = Watch { checks: options.checks };
    let outcome = run(&code, options.mode, &mut globals, &scalars?, watch, options.blocks);
    for (info, global) in code.globals.iter().zip(&globals) {
        if info.output {
            store(info, global, arguments.tensors.entry(info.name.clone()).or_default());
        }
    }
    Ok(report::<A>(program, &code, options.mode, outcome))
}

/// Where the tensors of a call start.
fn starts(program: &Program, given: &BTreeMap<String, Tensor>) -> Result<Starts, Diagnosis> {
    let start = |buffer: &Buffer| {
        let bytes = given.get(buffer.sym.name()).map_or(0, |t| t.start as i64);
        if bytes % buffer.dtype.bytes() != 0 {
            return Err(Diagnosis::new(format!("tensor `{}` starts {bytes} bytes late", buffer.sym))
                .because(format!("its elements have {}", buffer.dtype.bytes())));
        }
        Ok((buffer.sym.clone(), bytes / buffer.dtype.bytes()))
    };
    program.tensors().map(start).collect()
}

/// Writes the elements of an output back; the padding of rows is left as it is.
fn store<A: Arithmetic>(info: &crate::code::GlobalInfo, global: &Global<A>, tensor: &mut Tensor) {
    let unit = info.dtype.bytes() as usize;
    let elements = info.elements - info.start as usize;
    if tensor.bytes.len() < elements * unit {
        tensor.bytes.resize(elements * unit, 0);
    }
    let width = info.extents.last().copied().unwrap_or(1).max(0) as usize;
    let rows = info.extents.len().saturating_sub(1);
    let starts = warpwright_core::layout::indices(&info.extents[..rows]);
    for index in starts {
        let row = (info.row(&index) - info.start) as usize;
        for at in row..row + width {
            let cell = global.cells.get(at + info.start as usize);
            if let (Some(cell), Some(bytes)) = (cell, tensor.bytes.get_mut(at * unit..(at + 1) * unit)) {
                A::load(cell).encode(info.dtype, bytes);
            }
        }
    }
}

fn scalar<A: Arithmetic>(value: Complex<f64>, dtype: DType) -> A {
    let wide = if dtype.is_complex() { DType::C128 } else { DType::F64 };
    let mut bytes = [0; 16];
    value.encode(wide, &mut bytes);
    A::decode(wide, &bytes).round(dtype)
}

/// The tensor that is parameter `number`.
pub(crate) fn tensor(program: &Program, number: usize) -> Option<&Buffer> {
    match &program.params.get(number)?.kind {
        ParamKind::Tensor(buffer) => Some(buffer),
        _ => None,
    }
}

/// The values of sizes, strides, launch sizes and flags, with the assumptions checked.
pub(crate) fn integers(
    program: &Program,
    given: &BTreeMap<String, i64>,
) -> Result<HashMap<Sym, i64>, Diagnosis> {
    let mut values = HashMap::new();
    let strides = program.tensors().filter_map(|t| t.row_stride.as_ref());
    let params = program
        .params
        .iter()
        .filter(|p| matches!(p.kind, ParamKind::Size | ParamKind::Launch | ParamKind::Flag));
    for sym in params.map(|p| &p.sym).chain(strides) {
        let value = given.get(sym.name());
        let value =
            value.ok_or_else(|| Diagnosis::new(format!("no value was given for `{}`", sym.name())))?;
        values.insert(sym.clone(), *value);
    }
    for param in &program.params {
        let least = match param.kind {
            ParamKind::Size => 0,
            ParamKind::Launch => 1,
            _ => continue,
        };
        if values[&param.sym] < least {
            return Err(Diagnosis::new(format!("`{}` is {}", param.sym, values[&param.sym]))
                .because(format!("it is at least {least}")));
        }
    }
    for assumption in &program.assumes {
        let holds = assumption.eval(&|sym| values.get(sym).copied());
        let holds = holds.map_err(|sym| Diagnosis::new(format!("an assumption mentions `{sym}`")))?;
        if !holds {
            let names = warpwright_core::ir::print::Scope::default();
            return Err(Diagnosis::new(format!(
                "the assumption `{}` does not hold",
                assumption.text(&names)
            ))
            .instead("choose sizes and row strides for which it does, or another program"));
        }
    }
    Ok(values)
}

/// The report of an outcome, with places named.
pub(crate) fn report<A: Arithmetic>(
    program: &Program,
    code: &Code<'_>,
    mode: Mode,
    outcome: Outcome,
) -> Report {
    let place = |site: u32| match code.sites.get(site as usize) {
        Some(site) => warpwright_core::ir::validate::place::of(program, site.stmt),
        None => "the end of the block".to_string(),
    };
    let sites = outcome.sites.iter().enumerate().filter(|(_, c)| **c != Counters::default());
    let sites = sites.map(|(n, c)| SiteCounters { place: place(n as u32), counters: *c }).collect::<Vec<_>>();
    Report {
        mode,
        arithmetic: A::NAME,
        counters: outcome.counters,
        sites,
        hazards: outcome.hazards.report(&place),
        claim: if outcome.whole { Claim::Launch } else { Claim::Sample },
        launches: outcome.launches,
    }
}
