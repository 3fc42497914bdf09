//! Products and other programs on a real GPU: operands in its memory, and cuBLAS beside them.

mod ahead;
mod alias;
pub mod cublas;
mod executable;
mod operands;
pub mod program;
mod run;
pub mod stage;

pub use ahead::Site;
pub use executable::{Ahead, Arguments, Executable, Prepared, compile_ahead};
pub use operands::OperandSets;
pub use run::{GpuOptions, GpuRun, outside_c, reset_c, result, run};

use warpwright_core::diag::Diagnosis;
use warpwright_core::emit::cuda::Source;
use warpwright_core::target::{Capability, ComputeCapability, Target};
use warpwright_cuda::{Device, Options};

/// An error of the CUDA layer as a diagnosis. Its text already says what to do.
pub fn diagnosis(error: warpwright_cuda::Error) -> Diagnosis {
    Diagnosis::new(error.to_string())
}

/// The variable that keeps multiply-adds of f32 where the compiler has put them, if it is `0`: otherwise they change places in machine
/// code for GPUs where that makes them faster ([`warpwright_cuda::machine_code`]).
pub const REORDER: &str = "WARPWRIGHT_REORDER";

/// How a source is compiled for a GPU whose architecture is `own`, and for what is known of it: for its own architecture, in the
/// special form if the program needs that.
pub fn options(own: &str, source: &Source, target: &Target) -> Options {
    let of_target = target.arch_for(&source.needs);
    if !of_target.starts_with(own) {
        return Options::for_arch(own);
    }
    let wanted = std::env::var_os(REORDER).is_none_or(|value| value != "0");
    Options::for_arch(of_target).with_reordering(wanted && target.has(Capability::TwoRegisterBanks))
}

/// The table of a GPU: its own, else that of one with the same compute capability, else of the latest before it.
pub fn target_of(device: &Device) -> Result<&'static Target, Diagnosis> {
    let info = device.info();
    let (major, minor) = info.compute_capability;
    Target::by_product(&info.name, info.sm_count)
        .or_else(|| Target::nearest(ComputeCapability { major: major as u8, minor: minor as u8 }))
        .ok_or_else(|| {
            Diagnosis::new(format!("{} is older than every GPU in the tables", info.name))
                .instead("use --device sim to run on the simulator")
        })
}
