//! NVRTC's functions, taken from the library that [`crate::locate`] found.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::library::{Library, Loaded, preload};
use crate::locate;

type Program = *mut c_void;
type SizeOf = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Read = unsafe extern "C" fn(Program, *mut c_char) -> c_int;

/// NVRTC, loaded.
pub struct Nvrtc {
    path: PathBuf,
    version: (u32, u32),
    functions: Functions,
}

/// The part of NVRTC's interface that is used, under NVRTC's names less the prefix.
struct Functions {
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: SizeOf,
    log: Read,
    cubin_size: SizeOf,
    cubin: Read,
    ptx_size: SizeOf,
    ptx: Read,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    archs_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    archs: unsafe extern "C" fn(*mut c_int) -> c_int,
}

/// `NVRTC_ERROR_COMPILATION`: the source is at fault.
pub(crate) const COMPILATION_FAILED: c_int = 6;
const INVALID_OPTION: c_int = 5;
const BUILTINS_MISSING: c_int = 7;

impl Nvrtc {
    /// NVRTC, found and loaded once for the process.
    pub fn get() -> Result<&'static Nvrtc> {
        static NVRTC: OnceLock<Result<Nvrtc>> = OnceLock::new();
        NVRTC.get_or_init(Nvrtc::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Nvrtc> {
        let finding = locate::find(Library::Nvrtc);
        let advice = || locate::advice(Library::Nvrtc);
        if let Some(path) = finding.path {
            return Nvrtc::load_from(path);
        }
        // Last, whatever the system's loader knows by name (its cache may list directories we do not).
        for name in ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"] {
            if let Ok(loaded) = Loaded::open(Library::Nvrtc, OsStr::new(name), &advice) {
                return Nvrtc::from_loaded(PathBuf::from(name), loaded);
            }
        }
        let places: Vec<String> = finding.searched.iter().map(|d| d.display().to_string()).collect();
        Err(Error::LibraryMissing {
            library: Library::Nvrtc,
            reason: format!("no libnvrtc.so in any of {}", places.join(", ")),
            advice: advice(),
        })
    }

    fn load_from(path: PathBuf) -> Result<Nvrtc> {
        // NVRTC opens its built-in headers by bare name when it first compiles, and fails with error 7 outside
        // the loader's path; loading them first by their full path makes that name known.
        for builtins in builtins_beside(&path) {
            preload(builtins.as_os_str());
        }
        let loaded = Loaded::open(Library::Nvrtc, path.as_os_str(), &|| locate::advice(Library::Nvrtc))?;
        Nvrtc::from_loaded(path, loaded)
    }

    fn from_loaded(path: PathBuf, loaded: Loaded) -> Result<Nvrtc> {
        // SAFETY: the types are those of nvrtc.h.
        let functions = unsafe {
            Functions {
                create: loaded.function("nvrtcCreateProgram")?,
                destroy: loaded.function("nvrtcDestroyProgram")?,
                compile: loaded.function("nvrtcCompileProgram")?,
                log_size: loaded.function("nvrtcGetProgramLogSize")?,
                log: loaded.function("nvrtcGetProgramLog")?,
                cubin_size: loaded.function("nvrtcGetCUBINSize")?,
                cubin: loaded.function("nvrtcGetCUBIN")?,
                ptx_size: loaded.function("nvrtcGetPTXSize")?,
                ptx: loaded.function("nvrtcGetPTX")?,
                error_string: loaded.function("nvrtcGetErrorString")?,
                archs_count: loaded.function("nvrtcGetNumSupportedArchs")?,
                archs: loaded.function("nvrtcGetSupportedArchs")?,
            }
        };
        // SAFETY: as above.
        let ask_version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int =
            unsafe { loaded.function("nvrtcVersion")? };
        loaded.leak();
        let mut nvrtc = Nvrtc { path, version: (0, 0), functions };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both point to integers.
        nvrtc.check("nvrtcVersion", unsafe { ask_version(&mut major, &mut minor) })?;
        nvrtc.version = (major as u32, minor as u32);
        Ok(nvrtc)
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its CUDA version, as in (13, 0).
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The architectures it compiles for, as in 90 for `sm_90`.
    pub fn architectures(&self) -> Result<Vec<u32>> {
        let mut count = 0;
        // SAFETY: the array has the length that NVRTC asked for.
        unsafe {
            self.check("nvrtcGetNumSupportedArchs", (self.functions.archs_count)(&mut count))?;
            let mut archs = vec![0; count.max(0) as usize];
            self.check("nvrtcGetSupportedArchs", (self.functions.archs)(archs.as_mut_ptr()))?;
            Ok(archs.into_iter().map(|a| a as u32).collect())
        }
    }

    pub(crate) fn check(&self, call: &'static str, status: c_int) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC gives a static C string for every number.
        let text = unsafe { CStr::from_ptr((self.functions.error_string)(status)) };
        let advice = match status {
            INVALID_OPTION => Some("an option, or the architecture, is not known to this NVRTC"),
            BUILTINS_MISSING => Some("libnvrtc-builtins must lie beside libnvrtc: reinstall NVRTC"),
            _ => None,
        };
        Err(Error::Nvrtc { call, text: text.to_string_lossy().into_owned(), advice })
    }
}

/// One compilation: from the source to what came of it.
pub(crate) struct Compilation<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl<'a> Compilation<'a> {
    /// Hands over the source.
    pub(crate) fn new(nvrtc: &'a Nvrtc, name: &str, text: &str) -> Result<Self> {
        let (text, name) = (c_string("CUDA source", text)?, c_string("name of a CUDA source", name)?);
        let mut program = std::ptr::null_mut();
        // SAFETY: both strings end in a null and NVRTC copies them; there are no headers.
        let status = unsafe {
            (nvrtc.functions.create)(
                &mut program,
                text.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        nvrtc.check("nvrtcCreateProgram", status)?;
        Ok(Self { nvrtc, program })
    }

    /// Compiles; false means that the source is at fault and the log says why.
    pub(crate) fn compile(&self, options: &[String]) -> Result<bool> {
        let options: Vec<CString> =
            options.iter().map(|o| c_string("NVRTC option", o)).collect::<Result<_>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the pointers are as many as said and outlive the call.
        let status = unsafe {
            (self.nvrtc.functions.compile)(self.program, pointers.len() as c_int, pointers.as_ptr())
        };
        if status == COMPILATION_FAILED {
            return Ok(false);
        }
        match self.nvrtc.check("nvrtcCompileProgram", status) {
            Ok(()) => Ok(true),
            Err(Error::Nvrtc { call, text, advice }) => {
                let log = self.log().unwrap_or_default();
                Err(Error::Nvrtc {
                    call,
                    text: format!("{text}\n{}", log.trim()).trim_end().to_string(),
                    advice,
                })
            }
            Err(other) => Err(other),
        }
    }

    /// What the compiler and its assembler had to say.
    pub(crate) fn log(&self) -> Result<String> {
        let f = &self.nvrtc.functions;
        self.read(("nvrtcGetProgramLogSize", f.log_size), ("nvrtcGetProgramLog", f.log)).map(text)
    }

    /// The machine code; only after compiling for a real architecture.
    pub(crate) fn cubin(&self) -> Result<Vec<u8>> {
        let f = &self.nvrtc.functions;
        self.read(("nvrtcGetCUBINSize", f.cubin_size), ("nvrtcGetCUBIN", f.cubin))
    }

    /// The intermediate assembly.
    pub(crate) fn ptx(&self) -> Result<String> {
        let f = &self.nvrtc.functions;
        self.read(("nvrtcGetPTXSize", f.ptx_size), ("nvrtcGetPTX", f.ptx)).map(text)
    }

    fn read(&self, size: (&'static str, SizeOf), read: (&'static str, Read)) -> Result<Vec<u8>> {
        let mut length = 0;
        // SAFETY: the buffer has the length that NVRTC asked for.
        unsafe {
            self.nvrtc.check(size.0, (size.1)(self.program, &mut length))?;
            let mut bytes = vec![0u8; length];
            self.nvrtc.check(read.0, (read.1)(self.program, bytes.as_mut_ptr().cast()))?;
            Ok(bytes)
        }
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created by this NVRTC and is not used afterwards.
        unsafe { (self.nvrtc.functions.destroy)(&mut self.program) };
    }
}

fn c_string(what: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::Invalid { what, reason: "it contains a null byte".to_string() })
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_string()
}

/// The `libnvrtc-builtins.so.*` files in NVRTC's directory.
fn builtins_beside(nvrtc: &Path) -> Vec<PathBuf> {
    let real = nvrtc.canonicalize().unwrap_or_else(|_| nvrtc.to_path_buf());
    let Some(entries) = real.parent().and_then(|d| std::fs::read_dir(d).ok()) else { return Vec::new() };
    entries
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so"))
        .map(|e| e.path())
        .collect()
}
