//! One product on a GPU: run, verified, timed beside cuBLAS, and verified again.

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::validate::Valid;
use warpwright_core::target::Target;
use warpwright_cuda::{Device, Library, MeasureOptions, Stream, Timing, locate, measure};

use super::{Executable, OperandSets, Prepared, cublas, diagnosis};
use crate::bind::Binding;
use crate::compile;
use crate::inputs::Operands;
use crate::matrix::Matrix;
use crate::problem::{Multiplications, Problem};
use crate::reference::Comparison;
use crate::report::LaunchReport;
use crate::verify;

/// What is wanted of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct GpuOptions {
    /// How to time the kernel; not at all where absent.
    pub timing: Option<MeasureOptions>,
    /// Whether to time cuBLAS too.
    pub cublas: bool,
    /// Of how many real products the kernel makes a complex one.
    pub multiplications: Multiplications,
}

/// What a run gave.
pub struct GpuRun {
    /// The result.
    pub c: Matrix,
    /// The result compared with the reference: of the first run, and of one after the timing.
    pub comparison: Comparison,
    /// The launches.
    pub launches: Vec<LaunchReport>,
    /// The seconds of one product.
    pub timing: Option<Timing>,
    /// The seconds of one product by cuBLAS.
    pub cublas: Option<Timing>,
    /// What is worth a line on standard error.
    pub notices: Vec<String>,
}

/// Runs a program on a problem.
pub fn run(
    device: &Device,
    target: &Target,
    valid: &Valid,
    problem: &Problem,
    operands: &Operands,
    options: &GpuOptions,
) -> Result<GpuRun, Diagnosis> {
    let source = compile::cuda_for(valid, problem)?;
    let executable = Executable::new(device, valid.program().clone(), source, target);
    let launch_size = i64::from(device.info().sm_count);
    let binding = Binding::new(valid.program(), problem, launch_size)?;
    let stream = device.stream().map_err(diagnosis)?;

    let once = OperandSets::single(device, problem, operands).map_err(diagnosis)?;
    let prepared = executable.prepare(device, &binding, &once)?;
    let c = result(&prepared, &once, &stream, problem, operands)?;
    let mut comparison = verify::compare(problem, operands, &c, options.multiplications);
    let launches = executable.launches(&prepared);
    let mut notices = executable.notices();
    let (mut timing, mut by_cublas) = (None, None);
    if let Some(measuring) = options.timing.filter(|_| comparison.passed() && !launches.is_empty()) {
        drop(prepared);
        drop(once);
        let sets = OperandSets::rotating(device, problem, operands).map_err(diagnosis)?;
        let prepared = executable.prepare(device, &binding, &sets)?;
        timing = Some(
            measure::graph(&stream, &measuring, |s, call| prepared.enqueue(s, call)).map_err(diagnosis)?,
        );
        // Timing may bring out what a single run does not: what is left in scratch memory, say.
        let again = result(&prepared, &sets, &stream, problem, operands)?;
        comparison = comparison.and(verify::compare(problem, operands, &again, options.multiplications));
        if options.cublas {
            by_cublas = time_cublas(device, &stream, problem, &sets, &measuring, &mut notices)?;
        }
    }
    Ok(GpuRun { c, comparison, launches, timing, cublas: by_cublas, notices })
}

/// One call on the first set of operands, on a C that is poisoned where it must not be read.
pub fn result(
    prepared: &Prepared,
    sets: &OperandSets,
    stream: &Stream,
    problem: &Problem,
    operands: &Operands,
) -> Result<Matrix, Diagnosis> {
    let outcome = (|| {
        reset_c(sets, stream, problem, operands)?;
        prepared.enqueue(stream, 0)?;
        Ok((sets.download_c(stream, 0)?, sets.is_c_alone(stream, 0)?))
    })();
    let (bytes, alone) = outcome.map_err(diagnosis)?;
    if !alone {
        return Err(outside_c());
    }
    let mut c = operands.c.clone();
    c.bytes_mut().copy_from_slice(&bytes);
    Ok(c)
}

/// The fault of a kernel that has written before or behind C.
pub fn outside_c() -> Diagnosis {
    Diagnosis::new("the kernel has written memory beside C")
        .because("what lies before or behind C has changed")
}

/// Makes C ready for a call: poisoned where it must not be read, else the old C.
pub fn reset_c(
    sets: &OperandSets,
    stream: &Stream,
    problem: &Problem,
    operands: &Operands,
) -> warpwright_cuda::Result<()> {
    if problem.beta.norm() == 0.0 { sets.poison_c(stream) } else { sets.restore_c(stream, operands) }
}

/// cuBLAS is compared with where it is there; that it is not is worth a line, not a failure. Device memory gives it as many bytes at a time as
/// anybody else who asks for nothing.
fn time_cublas(
    device: &Device,
    stream: &Stream,
    problem: &Problem,
    sets: &OperandSets,
    measuring: &MeasureOptions,
    notices: &mut Vec<String>,
) -> Result<Option<Timing>, Diagnosis> {
    if let Some(advice) = locate::find(Library::Cublas).advice {
        notices.push(format!("not compared with cuBLAS, which was not found; get it: {advice}"));
        return Ok(None);
    }
    device.fetch_at_most(None).map_err(diagnosis)?;
    cublas::time(device, stream, problem, sets, measuring).map_err(diagnosis)
}
