//! Loaded machine code and the kernels in it.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use cudarc::driver::sys::{self, CUfunction_attribute as Attribute};

use crate::device::Device;
use crate::driver::{self, check};
use crate::error::{Error, Result};

/// Machine code loaded on a GPU.
#[derive(Clone)]
pub struct Module {
    inner: Arc<Code>,
}

struct Code {
    device: Device,
    module: sys::CUmodule,
}

// SAFETY: the driver allows a module to be used from any thread.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: loaded in `Module::new`; every kernel taken from it holds it.
            unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}

impl Module {
    pub(crate) fn new(device: &Device, cubin: &[u8]) -> Result<Self> {
        // The driver reads as far as the image's own header says, so what is not an image must not reach it.
        if !cubin.starts_with(b"\x7fELF") {
            let reason = "it is not an ELF image; compile for a real architecture (sm_..)".to_string();
            return Err(Error::Invalid { what: "machine code", reason });
        }
        device.bind()?;
        let mut module = std::ptr::null_mut();
        // SAFETY: the image is whole: it comes from the compiler, or from the cache with its checksum.
        check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut module, cubin.as_ptr().cast()) })?;
        Ok(Self { inner: Arc::new(Code { device: device.clone(), module }) })
    }

    /// The kernel of this name (mangled, unless it is `extern "C"`).
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        self.inner.device.bind()?;
        let not_there = || Error::Launch {
            kernel: name.to_string(),
            reason: "the compiled module has no kernel of this name".to_string(),
        };
        let c_name = CString::new(name).map_err(|_| not_there())?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is alive and the name ends in a null.
        let status = unsafe { sys::cuModuleGetFunction(&mut function, self.inner.module, c_name.as_ptr()) };
        if status == sys::CUresult::CUDA_ERROR_NOT_FOUND {
            return Err(not_there());
        }
        check("cuModuleGetFunction", status)?;
        let attributes = KernelAttributes::of(function)?;
        let parameters = parameter_sizes(function)?;
        let kernel = Loaded {
            function,
            name: name.to_string(),
            attributes,
            parameters,
            allowed_shared: AtomicU32::new(0),
            module: self.clone(),
        };
        Ok(Kernel { inner: Arc::new(kernel) })
    }
}

/// What the driver says about a loaded kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelAttributes {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of local memory per thread.
    pub local_bytes: u32,
    /// Bytes of static shared memory per block.
    pub shared_bytes: u32,
    /// Bytes of constant memory.
    pub constant_bytes: u32,
    /// The most threads a block of it can have.
    pub max_threads: u32,
}

impl KernelAttributes {
    pub(crate) fn of(function: sys::CUfunction) -> Result<Self> {
        let attribute = |which: Attribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function is alive.
            check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&mut value, which, function) })?;
            Ok(value.max(0) as u32)
        };
        Ok(Self {
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            constant_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }
}

/// The size of each parameter, where the driver is new enough (12.4) to tell.
fn parameter_sizes(function: sys::CUfunction) -> Result<Option<Vec<usize>>> {
    if !driver::has("cuFuncGetParamInfo") {
        return Ok(None);
    }
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is alive; past the last parameter the driver says so.
        let status = unsafe { sys::cuFuncGetParamInfo(function, sizes.len(), &mut offset, &mut size) };
        if status == sys::CUresult::CUDA_ERROR_INVALID_VALUE {
            return Ok(Some(sizes));
        }
        check("cuFuncGetParamInfo", status)?;
        sizes.push(size);
    }
}

/// A kernel, ready to be launched.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) inner: Arc<Loaded>,
}

pub(crate) struct Loaded {
    pub(crate) function: sys::CUfunction,
    pub(crate) name: String,
    pub(crate) attributes: KernelAttributes,
    pub(crate) parameters: Option<Vec<usize>>,
    /// The dynamic shared memory allowed so far.
    pub(crate) allowed_shared: AtomicU32,
    module: Module,
}

// SAFETY: the driver allows a function to be launched from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The GPU it is loaded on.
    pub fn device(&self) -> &Device {
        &self.inner.module.inner.device
    }

    /// What the driver says about it.
    pub fn attributes(&self) -> KernelAttributes {
        self.inner.attributes
    }

    /// How many blocks of this size a multiprocessor holds, by the driver's reckoning.
    pub fn blocks_per_sm(&self, threads: u32, dynamic_shared_bytes: u32) -> Result<u32> {
        self.device().bind()?;
        self.allow_shared(dynamic_shared_bytes)?;
        let mut blocks = 0;
        // SAFETY: the function is alive.
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.inner.function,
                threads as i32,
                dynamic_shared_bytes as usize,
            )
        })?;
        Ok(blocks.max(0) as u32)
    }
}
