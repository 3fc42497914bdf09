//! The only foreign-function layer of Warpwright: NVIDIA's driver, NVRTC and cuBLAS.
//!
//! This crate knows nothing of programs and schedules. It takes CUDA source text, the names of kernels and
//! plain arguments, and gives back compiled code, results and times. Nothing of NVIDIA's is needed to build it
//! and nothing is linked: each library is looked for when it is first wanted, and one that is missing is an
//! [`Error`] that says how to get it.
//!
//! ```text
//!   locate -> nvrtc -> compile -> cache          works with no GPU
//!                      resources, disassemble    what came of it
//!                      machine_code              multiply-adds in a better order
//!   driver -> device -> memory, stream, graph    needs a GPU
//!             memory -> repeated                 the same memory at many addresses
//!             module -> launch, tensor_map
//!             measure, turns                     times what a closure enqueues
//!             graph -> launched                  what a closure launches
//!             cublas, cublaslt                   loaded only to compare with
//! ```
//!
//! A kernel's way from text to result:
//!
//! ```no_run
//! use warpwright_cuda::{Arg, CompileCache, Device, LaunchConfig, Options, Source};
//!
//! # fn main() -> warpwright_cuda::Result<()> {
//! let text = "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }";
//! let device = Device::open(0)?;
//! let options = Options::for_arch(device.info().arch());
//! let compiled = CompileCache::standard().compile(&Source::new("twice.cu", text), &options)?.compiled;
//! let twice = device.load(&compiled.cubin)?.kernel("twice")?;
//!
//! let stream = device.stream()?;
//! let x = device.upload(&[1.0f32, 2.0, 3.0])?;
//! twice.launch(&stream, &LaunchConfig::new([1, 1, 1], [3, 1, 1]), &[Arg::Pointer(x.pointer())])?;
//! assert_eq!(x.download::<f32>(&stream)?, [2.0, 4.0, 6.0]);
//! # Ok(())
//! # }
//! ```

pub mod cache;
pub mod compile;
pub mod cublas;
pub mod cublaslt;
pub mod device;
pub mod disassemble;
mod driver;
mod error;
pub mod graph;
pub mod launch;
pub mod launched;
mod library;
pub mod locate;
pub mod machine_code;
pub mod measure;
pub mod memory;
pub mod module;
pub mod nvrtc;
mod repeated;
pub mod resources;
pub mod stream;
pub mod tensor_map;
pub mod turns;

pub use cache::CompileCache;
pub use compile::{Compiled, Options, Source};
pub use device::{Device, DeviceInfo};
pub use error::{CompileError, Error, Result};
pub use graph::Graph;
pub use launch::{Arg, LaunchConfig};
pub use library::Library;
pub use measure::{MeasureOptions, Timing};
pub use memory::{Buffer, DevicePointer, Pinned};
pub use module::{Kernel, Module};
pub use resources::KernelResources;
pub use stream::{Event, Stream};
pub use tensor_map::TensorMap;
pub use turns::{Paces, TurnOptions};
