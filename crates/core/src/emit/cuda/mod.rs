//! CUDA C++ that a person would be content to have written.
//!
//! A kernel is the program seen from one thread. Thread loops become arithmetic on `threadIdx.x` and guards,
//! distributed dimensions vanish (an element is its owner's), roles become branches, and everything else is printed
//! in order: loops as loops, unrolled ones under `#pragma unroll`, vector ones as one wide move. Nothing is printed
//! that is not used: parameters, names and helper functions are declared once it is known that the body mentions
//! them. Inline PTX stands inside small named functions only.
//!
//! Sizes and row strides are `int`, at most [`LARGEST_SIZE`]; the offset of an element is computed in 64 bits, so
//! tensors of more than 2^31 elements work. Everything else is `int` where intervals prove it. For sizes beyond that
//! there is a text of its own, [`emit_long`], in which sizes are `long long` and so is what depends on them.
//!
//! The text includes no header. It needs C++17, and the architecture that [`Source::needs`] asks for.

mod ahead;
mod apart;
mod body;
mod coordinates;
mod corner;
mod cursor;
mod early;
mod element;
mod index;
mod instruction;
mod kernel;
mod lane;
mod loops;
mod names;
mod places;
mod residency;
mod serpentine;
mod source;
mod spelling;
mod statement;
#[cfg(test)]
mod tests;
mod text;
mod threads;
mod value;
mod vector;

use std::collections::HashSet;

pub use source::{
    Argument, Kernel, LARGEST_LAUNCH_PARAMETER, LARGEST_LONG_SIZE, LARGEST_SIZE, Scratch, Source, Step,
    TensorMap, product,
};

use body::Unit;
use names::Names;
use spelling::Prelude;

use crate::diag::Diagnosis;
use crate::index::{Atom, Comparison, Cond, Ranges};
use crate::instr;
use crate::ir::Launch;
use crate::ir::validate::Valid;
use crate::ir::{Early, Program, Stmt, walk};
use crate::sym::Sym;
use crate::target::{Capability, Target};

/// The program as CUDA C++.
///
/// # Errors
/// Something that has no spelling in CUDA, such as an atomic maximum of 16-bit floats.
pub fn emit(valid: &Valid) -> Result<Source, Diagnosis> {
    emit_up_to(valid, LARGEST_SIZE)
}

/// The program as CUDA C++ for sizes that do not fit in an `int`.
///
/// # Errors
/// As [`emit`].
pub fn emit_long(valid: &Valid) -> Result<Source, Diagnosis> {
    emit_up_to(valid, LARGEST_LONG_SIZE)
}

fn emit_up_to(valid: &Valid, largest_size: i64) -> Result<Source, Diagnosis> {
    let target = Target::by_name(valid.target())?;
    let program = &serpentine::serpentine(valid.program().clone());
    let mut unit = Unit::new(program, target, largest_size);
    unit.allot_scratch();
    let mut writer = Writer::new(&unit, Launch::all(&program.body)?.len());
    let alone = Neighbours { calls: program.begins_early, ..Neighbours::default() };
    let host = writer.steps(&program.body, alone)?;
    let text = writer.text(&writer.texts);
    let units = writer.texts.iter().map(|kernel| writer.text(std::slice::from_ref(kernel))).collect();
    let mut scratch = unit.scratch.clone();
    scratch.extend(writer.tickets);
    Ok(Source {
        name: program.name.clone(),
        text,
        units,
        kernels: writer.kernels,
        scratch,
        host,
        largest_size,
        begins_early: program.begins_early.is_some() && unit.has(Capability::DependentLaunch),
        fetches: program.fetches.filter(|_| unit.has(Capability::FetchGranularity)),
        needs: needs(program),
    })
}

/// Writes the launches of a host list, one after another, into one translation unit.
struct Writer<'a> {
    unit: &'a Unit<'a>,
    launches: usize,
    prelude: Prelude,
    kernels: Vec<Kernel>,
    texts: Vec<String>,
    tickets: Vec<Scratch>,
    /// What the kernels so far write.
    written: HashSet<Sym>,
}

/// Whether other launches of the same call come before and after one, and how calls overlap, if they do, as those of a program that begins early.
#[derive(Clone, Copy, Debug, Default)]
struct Neighbours {
    before: bool,
    after: bool,
    calls: Option<Early>,
}

impl Neighbours {
    /// Whether it may begin before what was launched before it has ended, and has to wait for that.
    fn waits(self) -> bool {
        self.before || self.calls.is_some()
    }

    /// Whether what is launched after it may begin before it has ended.
    fn lets_next_begin(self) -> bool {
        self.after || self.calls.is_some()
    }
}

impl<'a> Writer<'a> {
    fn new(unit: &'a Unit<'a>, launches: usize) -> Writer<'a> {
        Writer {
            unit,
            launches,
            prelude: Prelude::default(),
            kernels: Vec::new(),
            texts: Vec::new(),
            tickets: Vec::new(),
            written: HashSet::new(),
        }
    }

    /// The steps of some statements of the host, which stand among others.
    fn steps(&mut self, stmts: &[Stmt], outside: Neighbours) -> Result<Vec<Step>, Diagnosis> {
        let mut steps = Vec::new();
        for (at, stmt) in stmts.iter().enumerate() {
            let neighbours = Neighbours {
                before: outside.before || !Launch::all(&stmts[..at])?.is_empty(),
                after: outside.after || !Launch::all(&stmts[at + 1..])?.is_empty(),
                ..outside
            };
            if let Stmt::If(i) = stmt {
                let (then, otherwise) =
                    (self.steps(&i.then, neighbours)?, self.steps(&i.otherwise, neighbours)?);
                steps.push(Step::If { cond: i.cond.clone(), then, otherwise });
            } else if let Some(launch) = Launch::of(stmt)? {
                steps.push(Step::Launch(self.kernels.len()));
                self.launch(&launch, neighbours)?;
            } else if !kernel::is_scratch(stmt) {
                return Err(Diagnosis::new("a statement stands outside every launch")
                    .because("the host only allots scratch memory, chooses and launches"));
            }
        }
        Ok(steps)
    }

    fn launch(&mut self, launch: &Launch<'_>, neighbours: Neighbours) -> Result<(), Diagnosis> {
        let overlap = self.unit.has(Capability::DependentLaunch);
        let neighbours = if overlap { neighbours } else { Neighbours::default() };
        let mut name = Names::of_kernel(&self.unit.program.name);
        if self.launches > 1 {
            name = format!("{name}_{}", self.kernels.len() + 1);
        }
        let body = coordinates::name_coordinates(launch.body, &self.unit.buffers);
        let launch = &Launch { body: &body, ..launch.clone() };
        let (kernel, text) = kernel::kernel(self, launch, name, neighbours)?;
        self.kernels.push(kernel);
        self.texts.push(text);
        Ok(())
    }

    /// A translation unit: what it is, its device functions, its kernels.
    fn text(&self, kernels: &[String]) -> String {
        let mut parts = Vec::new();
        let doc: String = self.unit.program.doc.iter().map(|line| format!("// {line}\n")).collect();
        let fetches = match self.unit.program.fetches.filter(|_| self.unit.has(Capability::FetchGranularity))
        {
            Some(bytes) => format!(
                "// Faster in a context that fetches {bytes} bytes at a time: cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, {bytes}).\n"
            ),
            None => String::new(),
        };
        parts.extend([doc, fetches, self.prelude.text()].into_iter().filter(|t| !t.is_empty()));
        parts.extend(kernels.iter().cloned());
        parts.join("\n")
    }
}

/// What the instructions of a program need of the target.
fn needs(program: &Program) -> Vec<Capability> {
    let mut needs = Vec::new();
    walk::for_each(&program.body, &mut |stmt| match stmt {
        Stmt::Instruction(call) => {
            needs.extend(instr::by_name(&call.name).into_iter().flat_map(|r| r.needs));
        }
        Stmt::Roles(roles) if roles.iter().any(|r| r.registers.is_some()) => {
            needs.push(Capability::SetMaxRegisters);
        }
        Stmt::AllocRing(_) => needs.push(Capability::Mbarrier),
        _ => {}
    });
    needs.sort_unstable();
    needs.dedup();
    needs
}

/// Adds to `ranges` what a condition says of single variables.
fn refine(ranges: &mut Ranges, cond: &Cond) {
    for part in cond.conjuncts() {
        let Cond::Compare(how, a, b) = part else { continue };
        // a - b = sign*variable + constant
        let difference = a - b;
        let [(Atom::Var(sym), sign @ (1 | -1))] = difference.terms() else { continue };
        let constant = difference.constant_term();
        let mut known = ranges.get(sym);
        let bound = match how {
            Comparison::Lt => -constant - 1,
            Comparison::Le | Comparison::Eq => -constant,
            Comparison::Ne => continue,
        };
        if *sign == 1 || *how == Comparison::Eq {
            let bound = bound * sign;
            known.hi = Some(known.hi.map_or(bound, |hi| hi.min(bound)));
        }
        if *sign == -1 || *how == Comparison::Eq {
            let bound = if *how == Comparison::Eq { bound * sign } else { -bound };
            known.lo = Some(known.lo.map_or(bound, |lo| lo.max(bound)));
        }
        ranges.set(sym, known);
    }
}
