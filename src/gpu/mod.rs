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
use warpwright_core::target::{ComputeCapability, Target};
use warpwright_cuda::Device;

/// An error of the CUDA layer as a diagnosis. Its text already says what to do.
pub fn diagnosis(error: warpwright_cuda::Error) -> Diagnosis {
    Diagnosis::new(error.to_string())
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
