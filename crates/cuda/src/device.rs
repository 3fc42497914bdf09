//! The GPUs of this machine, and a GPU in use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use crate::driver::{self, check};
use crate::error::{Error, Result};
use crate::memory::{Buffer, Pinned};
use crate::module::Module;
use crate::stream::Stream;

/// What the driver says about one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number, as in `cuda:0`.
    pub ordinal: usize,
    /// Its marketing name.
    pub name: String,
    /// Its compute capability, as in (9, 0).
    pub compute_capability: (u32, u32),
    /// Its streaming multiprocessors.
    pub sm_count: u32,
    /// Bytes of second-level cache.
    pub l2_bytes: usize,
    /// Bytes of memory.
    pub memory_bytes: usize,
    /// The greatest clock of the multiprocessors, in kHz.
    pub sm_clock_khz: u32,
    /// The greatest clock of the memory, in kHz.
    pub memory_clock_khz: u32,
    /// The width of the memory bus, in bits.
    pub memory_bus_bits: u32,
    /// Bytes of shared memory a block gets without asking.
    pub shared_per_block: u32,
    /// Bytes of shared memory a block can get by asking.
    pub shared_per_block_optin: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_sm: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_sm: u32,
    /// Threads a multiprocessor holds.
    pub threads_per_sm: u32,
    /// Blocks a multiprocessor holds.
    pub blocks_per_sm: u32,
    /// The greatest grid.
    pub max_grid: [u32; 3],
    /// The greatest block, per dimension.
    pub max_block: [u32; 3],
    /// The most threads in a block.
    pub max_block_threads: u32,
    /// Whether blocks can be launched in clusters.
    pub clusters: bool,
    /// Whether kernels can use tensor maps.
    pub tensor_maps: bool,
    /// The CUDA version the driver supports, as in (13, 0).
    pub driver_version: (u32, u32),
}

impl DeviceInfo {
    /// The architecture to compile for, as in `sm_80`. It has no suffix: kernels that need an architecture's own
    /// instructions append the `a` themselves.
    pub fn arch(&self) -> String {
        format!("sm_{}{}", self.compute_capability.0, self.compute_capability.1)
    }
}

/// The GPUs found, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceList {
    /// The GPUs, by number.
    pub devices: Vec<DeviceInfo>,
    /// Why the list is empty, if it is.
    pub reason: Option<Error>,
}

/// Lists the GPUs. A machine with no driver has none: that is an answer, not a failure.
pub fn list() -> DeviceList {
    let found = count().and_then(|n| (0..n).map(describe).collect::<Result<Vec<_>>>());
    match found {
        Ok(devices) if devices.is_empty() => {
            let reason = Error::NoDevice { ordinal: 0, reason: "the driver sees no GPU".to_string() };
            DeviceList { devices, reason: Some(reason) }
        }
        Ok(devices) => DeviceList { devices, reason: None },
        Err(reason) => DeviceList { devices: Vec::new(), reason: Some(reason) },
    }
}

fn count() -> Result<usize> {
    driver::ready()?;
    let mut count = 0;
    // SAFETY: the driver is initialised.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
    Ok(count.max(0) as usize)
}

fn handle(ordinal: usize) -> Result<sys::CUdevice> {
    let mut device = 0;
    // SAFETY: the driver is initialised.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, ordinal as i32) })?;
    Ok(device)
}

fn describe(ordinal: usize) -> Result<DeviceInfo> {
    let device = handle(ordinal)?;
    let attribute = |which: Attribute| -> Result<u32> {
        let mut value = 0;
        // SAFETY: the device exists.
        check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) })?;
        Ok(value.max(0) as u32)
    };
    // A driver older than an attribute refuses the question.
    let optional = |which: Attribute| attribute(which).is_ok_and(|value| value != 0);
    use Attribute as A;
    Ok(DeviceInfo {
        ordinal,
        name: name(device)?,
        compute_capability: (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        sm_count: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        memory_bytes: total_memory(device)?,
        sm_clock_khz: attribute(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        memory_clock_khz: attribute(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        memory_bus_bits: attribute(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
        shared_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_per_block_optin: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_sm: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        registers_per_sm: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        threads_per_sm: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        blocks_per_sm: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        max_grid: [
            attribute(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        max_block: [
            attribute(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        max_block_threads: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        clusters: optional(A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH),
        tensor_maps: optional(A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED),
        driver_version: driver::version()?,
    })
}

fn name(device: sys::CUdevice) -> Result<String> {
    let mut bytes = [0u8; 256];
    // SAFETY: the buffer is as long as said.
    check("cuDeviceGetName", unsafe { sys::cuDeviceGetName(bytes.as_mut_ptr().cast(), 255, device) })?;
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn total_memory(device: sys::CUdevice) -> Result<usize> {
    let mut bytes = 0;
    // SAFETY: the device exists.
    check("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&mut bytes, device) })?;
    Ok(bytes)
}

const FETCH_LIMIT: sys::CUlimit = sys::CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY;

/// How many bytes the current context asks for at most; none where the driver knows no such limit.
fn fetch_limit() -> Result<Option<usize>> {
    let mut bytes = 0;
    // SAFETY: a context is current.
    let status = unsafe { sys::cuCtxGetLimit(&mut bytes, FETCH_LIMIT) };
    if status == sys::CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT {
        return Ok(None);
    }
    check("cuCtxGetLimit", status)?;
    Ok(Some(bytes))
}

/// A GPU in use. Clones share it; it is released when the last clone, and everything made from it, is gone.
#[derive(Clone)]
pub struct Device {
    context: Arc<Context>,
}

/// The primary context, held.
struct Context {
    info: DeviceInfo,
    device: sys::CUdevice,
    context: sys::CUcontext,
}

/// How many bytes the second-level cache of a GPU asks its memory for at most. A process has one primary context for each GPU, and so one such setting,
/// however often the GPU is taken into use.
#[derive(Default)]
struct Fetches {
    /// How often it is in use.
    users: usize,
    /// What the driver had in the beginning; none before anything else was wanted.
    usual: Option<usize>,
    /// What is wanted now; none where that is the usual.
    wanted: Option<usize>,
}

/// By the numbers of GPUs.
static FETCHES: Mutex<BTreeMap<usize, Fetches>> = Mutex::new(BTreeMap::new());

// SAFETY: the driver's functions may be called from any thread; the context is made current before each use.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        let mut known = FETCHES.lock().unwrap_or_else(PoisonError::into_inner);
        let fetches = known.entry(self.info.ordinal).or_default();
        fetches.users = fetches.users.saturating_sub(1);
        // Others in this process may use the primary context: they find it as it was.
        if fetches.users == 0
            && let (Some(usual), Some(_)) = (fetches.usual, fetches.wanted.take())
        {
            // SAFETY: the context is alive; where the driver refuses, a hint stays as it is.
            unsafe {
                if sys::cuCtxSetCurrent(self.context) == sys::CUresult::CUDA_SUCCESS {
                    sys::cuCtxSetLimit(FETCH_LIMIT, usual);
                }
            }
        }
        // SAFETY: retained once in `Device::open`; whatever was made from it holds the context and so is gone.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

impl Device {
    /// Takes a GPU into use.
    pub fn open(ordinal: usize) -> Result<Self> {
        let count = count()?;
        if ordinal >= count {
            let reason = format!("the driver sees {count} GPU{}", if count == 1 { "" } else { "s" });
            return Err(Error::NoDevice { ordinal, reason });
        }
        let device = handle(ordinal)?;
        let info = describe(ordinal)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the device exists.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) })?;
        FETCHES.lock().unwrap_or_else(PoisonError::into_inner).entry(ordinal).or_default().users += 1;
        let opened = Self { context: Arc::new(Context { info, device, context }) };
        opened.bind()?;
        Ok(opened)
    }

    /// What the driver says about it.
    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    /// Bytes of memory: free now, and in all.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free, total))
    }

    /// Waits until everything enqueued on the GPU by this process is done.
    pub fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the context is current.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// How many bytes the second-level cache asks device memory for at a time at most; none where the driver knows no such limit.
    pub fn fetches_at_most(&self) -> Result<Option<usize>> {
        self.bind()?;
        fetch_limit()
    }

    /// Lets the second-level cache ask device memory for so many bytes at a time at most, 32, 64 or 128, or for as many as the driver had it ask for
    /// in the beginning. It holds for everything that runs in the primary context of this process, what runs already too. A change takes the host 0.2 to
    /// 0.5 ms on an H200 (`bench/limits/granularity.cu`), and cannot be made while a stream of the context is recorded; what holds already costs nothing.
    ///
    /// # Errors
    /// What the driver says. Where it knows no such limit nothing is changed, which is no error: it is a hint.
    pub fn fetch_at_most(&self, bytes: Option<usize>) -> Result<()> {
        let mut known = FETCHES.lock().unwrap_or_else(PoisonError::into_inner);
        let fetches = known.entry(self.info().ordinal).or_default();
        if fetches.wanted == bytes {
            return Ok(());
        }
        self.bind()?;
        let usual = match fetches.usual {
            Some(usual) => usual,
            None => match fetch_limit()? {
                Some(usual) => *fetches.usual.insert(usual),
                None => return Ok(()),
            },
        };
        // SAFETY: the context is current.
        check("cuCtxSetLimit", unsafe { sys::cuCtxSetLimit(FETCH_LIMIT, bytes.unwrap_or(usual)) })?;
        fetches.wanted = bytes;
        Ok(())
    }

    /// A new stream.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// Uninitialised device memory.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer> {
        Buffer::new(self, bytes)
    }

    /// Addresses for `bytes` behind which the same memory stands again and again: `period` bytes of it, rounded up to whole pages
    /// of the GPU. What is written at one address is read at all others of the same place in the period, once the kernel that
    /// wrote is over. Kernels that read it find it in the second-level cache if the period is short.
    ///
    /// # Errors
    /// Memory that cannot be had, and a driver older than release 440 (CUDA 10.2).
    pub fn alloc_repeated(&self, bytes: usize, period: usize) -> Result<Buffer> {
        Buffer::repeated(self, bytes, period)
    }

    /// Device memory with a copy of a slice. It is there when this returns.
    pub fn upload<T: bytemuck::NoUninit>(&self, data: &[T]) -> Result<Buffer> {
        self.upload_between(&[], data, &[])
    }

    /// The same with some bytes before the copy and some behind it.
    pub fn upload_between<T: bytemuck::NoUninit>(
        &self,
        before: &[u8],
        data: &[T],
        behind: &[u8],
    ) -> Result<Buffer> {
        let end = before.len() + std::mem::size_of_val(data);
        let buffer = self.alloc(end + behind.len())?;
        buffer.write_now(0, before)?;
        buffer.write_now(before.len(), data)?;
        buffer.write_now(end, behind)?;
        Ok(buffer)
    }

    /// Page-locked host memory for `len` elements, zeroed; copies from and to it are asynchronous.
    pub fn pinned<T: bytemuck::Pod>(&self, len: usize) -> Result<Pinned<T>> {
        Pinned::new(self, len)
    }

    /// Loads machine code.
    pub fn load(&self, cubin: &[u8]) -> Result<Module> {
        Module::new(self, cubin)
    }

    /// Makes the context current on this thread.
    pub(crate) fn bind(&self) -> Result<()> {
        // SAFETY: the context is alive.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context.context) })
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({}, {})", self.info().ordinal, self.info().name)
    }
}
