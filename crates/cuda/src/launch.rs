//! Launching a kernel.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{self, CUfunction_attribute as Attribute};

use crate::driver::check;
use crate::error::{Error, Result};
use crate::memory::DevicePointer;
use crate::module::Kernel;
use crate::stream::Stream;
use crate::tensor_map::TensorMap;

/// One argument of a kernel, by value.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    /// `bool`
    Bool(bool),
    /// `int`
    I32(i32),
    /// `long long`
    I64(i64),
    /// `unsigned`
    U32(u32),
    /// `float`
    F32(f32),
    /// `double`
    F64(f64),
    /// A complex of two floats, as `float2`.
    C64([f32; 2]),
    /// A complex of two doubles, as `double2`.
    C128([f64; 2]),
    /// Any pointer to device memory.
    Pointer(DevicePointer),
    /// A `const __grid_constant__ CUtensorMap`.
    TensorMap(&'a TensorMap),
}

/// The grid, the block, and what a block needs besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks of a cluster in x, y, z.
    pub cluster: Option<[u32; 3]>,
    /// Whether blocks may begin before the launch before it in the stream has ended: the kernel waits for it itself,
    /// which needs a GPU that knows programmatic dependent launches.
    pub waits_itself: bool,
}

impl LaunchConfig {
    /// A launch with no dynamic shared memory and no clusters.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { grid, block, shared_bytes: 0, cluster: None, waits_itself: false }
    }

    /// With dynamic shared memory.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// With blocks that may begin before the launch before has ended, since they wait for it themselves.
    pub fn waiting_itself(mut self) -> Self {
        self.waits_itself = true;
        self
    }

    /// With blocks in clusters.
    pub fn clusters(mut self, cluster: [u32; 3]) -> Self {
        self.cluster = Some(cluster);
        self
    }
}

/// Room for any argument, aligned for any. The driver reads as many bytes as the kernel's parameter has.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Slot([u8; 128]);

impl Arg<'_> {
    fn slot(&self) -> (Slot, usize) {
        match *self {
            Arg::Bool(value) => slot(&[value as u8]),
            Arg::I32(value) => slot(&value.to_ne_bytes()),
            Arg::I64(value) => slot(&value.to_ne_bytes()),
            Arg::U32(value) => slot(&value.to_ne_bytes()),
            Arg::F32(value) => slot(&value.to_ne_bytes()),
            Arg::F64(value) => slot(&value.to_ne_bytes()),
            Arg::C64(parts) => slot(bytemuck::bytes_of(&parts)),
            Arg::C128(parts) => slot(bytemuck::bytes_of(&parts)),
            Arg::Pointer(DevicePointer(address)) => slot(&address.to_ne_bytes()),
            Arg::TensorMap(map) => slot(map.bytes()),
        }
    }
}

fn slot(bytes: &[u8]) -> (Slot, usize) {
    let mut slot = Slot([0; 128]);
    slot.0[..bytes.len()].copy_from_slice(bytes);
    (slot, bytes.len())
}

impl Kernel {
    /// Enqueues a launch.
    ///
    /// The number and sizes of the arguments are compared with the kernel's parameters, and the configuration
    /// with the GPU's limits. What cannot be compared is whether the kernel stays within the memory that its
    /// pointers point to.
    pub fn launch(&self, stream: &Stream, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        self.fits(config)?;
        let mut slots: Vec<(Slot, usize)> = args.iter().map(Arg::slot).collect();
        self.takes(&slots)?;
        self.device().bind()?;
        self.allow_shared(config.shared_bytes)?;
        let mut pointers: Vec<*mut c_void> =
            slots.iter_mut().map(|(slot, _)| slot.0.as_mut_ptr().cast()).collect();
        let mut attributes: Vec<sys::CUlaunchAttribute> = Vec::new();
        if let Some(cluster) = config.cluster {
            self.allow_cluster(cluster)?;
            attributes.push(cluster_attribute(cluster));
        }
        if config.waits_itself {
            attributes.push(begins_early_attribute());
        }
        let raw = sys::CUlaunchConfig {
            gridDimX: config.grid[0],
            gridDimY: config.grid[1],
            gridDimZ: config.grid[2],
            blockDimX: config.block[0],
            blockDimY: config.block[1],
            blockDimZ: config.block[2],
            sharedMemBytes: config.shared_bytes,
            hStream: stream.raw(),
            attrs: if attributes.is_empty() { std::ptr::null_mut() } else { attributes.as_mut_ptr() },
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: every pointer points to a slot at least as large as the parameter, and the driver copies the
        // arguments and attributes before it returns.
        check("cuLaunchKernelEx", unsafe {
            sys::cuLaunchKernelEx(&raw, self.inner.function, pointers.as_mut_ptr(), std::ptr::null_mut())
        })
    }

    /// Compares a configuration with the limits, so that the message can say which is broken.
    fn fits(&self, config: &LaunchConfig) -> Result<()> {
        let info = self.device().info();
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            self.at_most(&format!("the grid's {name}"), config.grid[axis], info.max_grid[axis])?;
            self.at_most(&format!("the block's {name}"), config.block[axis], info.max_block[axis])?;
            if config.grid[axis] == 0 || config.block[axis] == 0 {
                return Err(self.refuse(format!(
                    "the grid {:?} or the block {:?} is empty in {name}",
                    config.grid, config.block
                )));
            }
            if config.cluster.is_some_and(|c| c[axis] == 0 || !config.grid[axis].is_multiple_of(c[axis])) {
                return Err(self.refuse(format!(
                    "the cluster {:?} does not divide the grid {:?}",
                    config.cluster, config.grid
                )));
            }
        }
        let threads = config.block.iter().product();
        self.at_most("the number of threads in a block", threads, self.inner.attributes.max_threads)?;
        let shared = config.shared_bytes.saturating_add(self.inner.attributes.shared_bytes);
        self.at_most("the shared memory of a block", shared, info.shared_per_block_optin)
    }

    fn at_most(&self, what: &str, wanted: u32, limit: u32) -> Result<()> {
        if wanted <= limit {
            return Ok(());
        }
        Err(self.refuse(format!("{what} would be {wanted}, and the limit is {limit}")))
    }

    /// Compares arguments with the kernel's parameters.
    fn takes(&self, slots: &[(Slot, usize)]) -> Result<()> {
        let Some(parameters) = &self.inner.parameters else { return Ok(()) };
        if slots.len() != parameters.len() {
            return Err(self.refuse(format!(
                "it takes {} arguments and was given {}",
                parameters.len(),
                slots.len()
            )));
        }
        for (index, ((_, given), wanted)) in slots.iter().zip(parameters).enumerate() {
            if given != wanted {
                return Err(self.refuse(format!(
                    "argument {index} (from 0) has {given} bytes and the parameter {wanted}"
                )));
            }
        }
        Ok(())
    }

    /// A kernel gets more dynamic shared memory than the default only if told beforehand.
    pub(crate) fn allow_shared(&self, bytes: u32) -> Result<()> {
        let held = self.inner.allowed_shared.load(Ordering::Relaxed);
        if bytes <= held
            || bytes + self.inner.attributes.shared_bytes <= self.device().info().shared_per_block
        {
            return Ok(());
        }
        self.set(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)?;
        self.inner.allowed_shared.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Every GPU with clusters has clusters of 8 blocks; more must be asked for.
    fn allow_cluster(&self, cluster: [u32; 3]) -> Result<()> {
        if cluster.iter().product::<u32>() <= 8 {
            return Ok(());
        }
        self.set(Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
    }

    fn set(&self, attribute: Attribute, value: i32) -> Result<()> {
        // SAFETY: the function is alive.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.inner.function, attribute, value) })
    }

    fn refuse(&self, reason: String) -> Error {
        Error::Launch { kernel: self.name().to_string(), reason }
    }
}

fn cluster_attribute([x, y, z]: [u32; 3]) -> sys::CUlaunchAttribute {
    let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
    value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
    sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value,
    }
}

fn begins_early_attribute() -> sys::CUlaunchAttribute {
    let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
    value.programmaticStreamSerializationAllowed = 1;
    sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::Arg;
    use crate::memory::DevicePointer;

    #[test]
    fn arguments_have_the_sizes_of_their_c_types() {
        let sizes: Vec<usize> = [
            Arg::Bool(true),
            Arg::I32(-1),
            Arg::I64(-1),
            Arg::F32(1.0),
            Arg::F64(1.0),
            Arg::C64([1.0, 2.0]),
            Arg::C128([1.0, 2.0]),
            Arg::Pointer(DevicePointer::NULL),
        ]
        .iter()
        .map(|arg| arg.slot().1)
        .collect();
        assert_eq!(sizes, [1, 4, 8, 4, 8, 8, 16, 8]);
        assert_eq!(Arg::C64([1.0, 2.0]).slot().0.0[4..8], 2.0f32.to_ne_bytes());
    }
}
