//! The driver: present or not, its version, and its error codes as [`Error`]s.
//!
//! cudarc loads `libcuda` on first use and panics if that fails, so [`ready`] stands before every first use.

use std::ffi::CStr;
use std::sync::OnceLock;

use cudarc::driver::sys;

use crate::error::{Error, Result};
use crate::library::Library;
use crate::locate;

/// The functions we call that old drivers lack. cudarc panics on a missing function, so these are asked for first.
const NEEDED: [&str; 3] = ["cuLaunchKernelEx", "cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags"];

/// Whether a driver library can be loaded at all.
pub(crate) fn present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: it only tries to load the driver's library.
    *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

/// Whether the driver has a function of this name. False without a driver.
pub(crate) fn has(symbol: &str) -> bool {
    // SAFETY: the symbol is looked up and never called.
    present() && unsafe { sys::culib().get::<unsafe extern "C" fn()>(symbol) }.is_ok()
}

/// The type of `cuEventElapsedTime`.
pub(crate) type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;

/// `cuEventElapsedTime`. The bindings for CUDA 13 offer only its second version, which drivers before 12.8 lack and
/// which tells no more; the first is still in every driver.
pub(crate) fn elapsed_time() -> Result<ElapsedTime> {
    static FUNCTION: OnceLock<Option<ElapsedTime>> = OnceLock::new();
    const SYMBOL: &str = "cuEventElapsedTime";
    ready()?;
    // SAFETY: the driver is loaded for good, and the type is that of cuda.h.
    let function =
        FUNCTION.get_or_init(|| unsafe { sys::culib().get::<ElapsedTime>(SYMBOL) }.ok().map(|f| *f));
    function.ok_or_else(|| Error::SymbolMissing {
        library: Library::Driver,
        symbol: SYMBOL,
        advice: "reinstall the NVIDIA driver".to_string(),
    })
}

/// The CUDA version the driver supports, as in (13, 0).
pub(crate) fn version() -> Result<(u32, u32)> {
    if !present() {
        return Err(missing());
    }
    let mut version = 0;
    // SAFETY: it may be called before cuInit.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })?;
    Ok((version as u32 / 1000, version as u32 % 1000 / 10))
}

/// Loads and initialises the driver once; every function of the driver may be called after it.
pub(crate) fn ready() -> Result<()> {
    static READY: OnceLock<Result<()>> = OnceLock::new();
    READY.get_or_init(initialise).clone()
}

fn initialise() -> Result<()> {
    if !present() {
        return Err(missing());
    }
    if let Some(symbol) = NEEDED.into_iter().find(|symbol| !has(symbol)) {
        let advice = "update the NVIDIA driver to release 525 or later".to_string();
        return Err(Error::SymbolMissing { library: Library::Driver, symbol, advice });
    }
    // SAFETY: the driver is loaded.
    check("cuInit", unsafe { sys::cuInit(0) })
}

fn missing() -> Error {
    Error::LibraryMissing {
        library: Library::Driver,
        reason: "the system's loader finds no libcuda.so".to_string(),
        advice: locate::advice(Library::Driver),
    }
}

/// Turns a driver status into a result.
pub(crate) fn check(call: &'static str, status: sys::CUresult) -> Result<()> {
    if status == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Error::Driver {
        call,
        code: status as u32,
        name: describe(status, |s, p| unsafe { sys::cuGetErrorName(s, p) }),
        text: describe(status, |s, p| unsafe { sys::cuGetErrorString(s, p) }),
        advice: hint(status),
    })
}

fn describe(
    status: sys::CUresult,
    ask: impl Fn(sys::CUresult, *mut *const std::ffi::c_char) -> sys::CUresult,
) -> String {
    let mut text = std::ptr::null();
    if ask(status, &mut text) != sys::CUresult::CUDA_SUCCESS || text.is_null() {
        return "unknown".to_string();
    }
    // SAFETY: the driver gives a static C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn hint(status: sys::CUresult) -> Option<&'static str> {
    use sys::CUresult as R;
    Some(match status {
        R::CUDA_ERROR_NO_DEVICE => {
            "no GPU is visible: see CUDA_VISIBLE_DEVICES, or run on the simulator with --device sim"
        }
        R::CUDA_ERROR_STUB_LIBRARY => {
            "the libcuda found is the toolkit's link stub: remove its directory from LD_LIBRARY_PATH"
        }
        R::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            "the driver was updated while running: restart the machine or reload the kernel module"
        }
        R::CUDA_ERROR_NO_BINARY_FOR_GPU => "the kernel was compiled for another architecture than this GPU's",
        R::CUDA_ERROR_UNSUPPORTED_PTX_VERSION | R::CUDA_ERROR_INVALID_IMAGE => {
            "NVRTC may be newer than the driver: `warpwright doctor` shows both versions; update the driver or install an older NVRTC wheel"
        }
        R::CUDA_ERROR_ILLEGAL_ADDRESS | R::CUDA_ERROR_MISALIGNED_ADDRESS => {
            "a kernel accessed memory it must not; the context is lost. `warpwright check` finds the access on the simulator"
        }
        R::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => {
            "the block needs more registers or shared memory than a multiprocessor has"
        }
        R::CUDA_ERROR_LAUNCH_TIMEOUT => {
            "the kernel ran into the display driver's time limit: use a smaller problem"
        }
        _ => return None,
    })
}
