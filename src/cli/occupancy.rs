//! `occupancy`: how many warps of a kernel a multiprocessor holds, what limits them, and what would change it.

use std::path::PathBuf;

use clap::Args;
use warpwright_core::diag::Diagnosis;
use warpwright_core::occupancy::Demand;
use warpwright_core::target::{self, Target};

use super::options::{OutputOptions, StorageOptions, VariantOptions};
use super::output::{Outcome, notice, print, print_json};
use super::source;
use crate::file::write_whole;
use crate::gpu::diagnosis;
use crate::kernels::family::{Value, Word, parse_parameter};
use crate::problem::Shape;
use crate::report::occupancy::OccupancyReport;
use crate::{compile, target_file};

/// Options of `occupancy`.
#[derive(Args, Debug)]
pub struct Options {
    /// A kernel, a family, or a file with a schedule or a program: it is compiled, which needs NVRTC but no GPU, and threads,
    /// registers, shared memory and barriers are its own.
    #[arg(value_name = "KERNEL|FAMILY|FILE", conflicts_with_all = ["threads", "registers", "shared_static", "shared_dynamic", "barriers"])]
    kernel: Option<String>,
    /// The size of the product, of which a family's kernels depend.
    #[arg(long, value_name = "MxNxK", conflicts_with_all = ["threads", "registers"])]
    size: Option<Shape>,
    /// A parameter of the family, such as tm=4; the others keep their usual values.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter, value_delimiter = ',', conflicts_with_all = ["threads", "registers"])]
    parameters: Vec<(Word, Value)>,
    /// The GPU: a name that `targets` lists, or a file that describes one.
    #[arg(long, value_name = "GPU|FILE", value_parser = target_file::find, default_value = target::DEFAULT.name)]
    gpu: &'static Target,
    /// Threads of a block, 1 to 1024.
    #[arg(long, value_name = "N", required_unless_present = "kernel")]
    threads: Option<u32>,
    /// 32-bit registers of a thread, as the compiler reports them.
    #[arg(long, value_name = "N", required_unless_present = "kernel")]
    registers: Option<u32>,
    /// Bytes of shared memory that the kernel declares.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared_static: u32,
    /// Bytes of shared memory that are asked for at launch.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared_dynamic: u32,
    /// The preferred part of the largest carve-out; it is rounded up to the next that there is, and gives way where not
    /// one block would fit [default: the largest].
    #[arg(long, value_name = "PERCENT")]
    carveout: Option<u32>,
    /// Named barriers of a block: `__syncthreads()` is one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    barriers: u32,
    /// The kernel has not opted in to more than 48 KiB of shared memory.
    #[arg(long)]
    no_opt_in: bool,
    /// Show occupancy over block size, registers and shared memory as well, with today's point.
    #[arg(long)]
    curves: bool,
    /// Write these curves to a file, as a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    variant: VariantOptions,
    #[command(flatten)]
    storage: StorageOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs `occupancy`.
pub fn run(options: &Options) -> Outcome {
    let mut reports = match &options.kernel {
        Some(kernel) => of_kernel(kernel, options)?,
        None => {
            options.storage.problem(None, &options.variant)?;
            let demand = Demand {
                shared_static: options.shared_static,
                shared_dynamic: options.shared_dynamic,
                ..options.demand(options.threads.unwrap_or(0), options.registers.unwrap_or(0))
            };
            vec![options.report(&demand)?]
        }
    };
    if let Some(path) = &options.svg {
        let [report] = reports.as_slice() else {
            return Err(Diagnosis::new("there are several kernels to draw")
                .because(format!("{} has {}", options.kernel.as_deref().unwrap_or_default(), reports.len()))
                .instead("give the numbers of one: --threads, --registers, --shared-static, --shared-dynamic")
                .into());
        };
        write_whole(path, &report.svg())?;
        notice(&format!("the curves are in {}", path.display()));
    }
    if options.curves {
        reports = reports.into_iter().map(OccupancyReport::with_curves).collect();
    }
    if !options.output.json {
        return print(&reports.iter().map(OccupancyReport::describe).collect::<Vec<_>>().join("\n\n"));
    }
    // Numbers are one question, which has one answer; a kernel may be several launches.
    match (&options.kernel, reports.as_slice()) {
        (None, [report]) => print_json(report),
        _ => print_json(&reports),
    }
}

impl Options {
    fn demand(&self, threads: u32, registers: u32) -> Demand {
        Demand {
            barriers: self.barriers,
            opted_in: !self.no_opt_in,
            carveout: self.carveout,
            ..Demand::new(threads, registers)
        }
    }

    fn report(&self, demand: &Demand) -> Result<OccupancyReport, Diagnosis> {
        demand.check(self.gpu.limits).map_err(|mut wrong| {
            wrong.place.insert_str(0, "--");
            wrong
        })?;
        Ok(OccupancyReport::new(demand, self.gpu))
    }
}

/// The launches of a kernel, compiled for the GPU: registers are those that the compiler reports.
fn of_kernel(name: &str, options: &Options) -> Result<Vec<OccupancyReport>, Diagnosis> {
    let Options { size, parameters, gpu, storage, .. } = options;
    let (variant, problem) = (options.variant.variant(), storage.problem(*size, &options.variant)?);
    let source = source::with_parameters(name, variant, problem.as_ref(), parameters, gpu)?;
    let subject = source.into_subject(variant);
    let valid = compile::validated(&subject.program, options.gpu)?;
    let text = compile::cuda(&valid)?;
    let file = format!("{}.cu", text.name);
    let settings = crate::gpu::options(&options.gpu.arch_for(&[]), &text, options.gpu);
    let unit = warpwright_cuda::Source::new(&file, &text.text);
    let compiled = warpwright_cuda::compile::compile(&unit, &settings).map_err(diagnosis)?;
    let mut reports = Vec::new();
    for kernel in &text.kernels {
        let Some(resources) = compiled.kernel(&kernel.name) else { continue };
        let whole = |amount: i64| u32::try_from(amount).unwrap_or(u32::MAX);
        let demand = Demand {
            shared_static: resources.shared_bytes,
            shared_dynamic: whole(kernel.dynamic_shared_bytes),
            // NVIDIA's own calculation takes one where the compiler counts none.
            barriers: resources.barriers.max(1),
            ..options.demand(whole(kernel.threads), resources.registers)
        };
        reports.push(options.report(&demand)?.of_kernel(&kernel.name));
    }
    Ok(reports)
}
