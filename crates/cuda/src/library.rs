//! Opening a shared library by its path and taking functions from it.

use std::ffi::OsStr;

use crate::error::{Error, Result};

/// The libraries of NVIDIA's that this crate can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    /// The driver's user-space half, `libcuda`.
    Driver,
    /// The run-time compiler, `libnvrtc`.
    Nvrtc,
    /// The BLAS, for comparison.
    Cublas,
    /// The BLAS's matrix-product library with selectable algorithms, for comparison.
    CublasLt,
}

impl Library {
    /// All of them, in the order `doctor` lists them.
    pub const ALL: [Library; 4] = [Library::Driver, Library::Nvrtc, Library::Cublas, Library::CublasLt];

    /// The stem of the file's name, as in `lib{stem}.so.13`.
    pub fn stem(self) -> &'static str {
        match self {
            Library::Driver => "cuda",
            Library::Nvrtc => "nvrtc",
            Library::Cublas => "cublas",
            Library::CublasLt => "cublasLt",
        }
    }

    /// What the library is needed for, as a phrase.
    pub fn purpose(self) -> &'static str {
        match self {
            Library::Driver => "running kernels on a GPU",
            Library::Nvrtc => "compiling kernels (no GPU needed)",
            Library::Cublas => "comparing with cuBLAS",
            Library::CublasLt => "comparing with the best cuBLASLt heuristic",
        }
    }
}

impl std::fmt::Display for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Library::Driver => "the NVIDIA driver (libcuda)",
            Library::Nvrtc => "NVRTC (libnvrtc)",
            Library::Cublas => "cuBLAS (libcublas)",
            Library::CublasLt => "cuBLASLt (libcublasLt)",
        })
    }
}

/// A loaded shared library. It stays loaded for the life of the process: its functions are kept as plain
/// pointers, and NVIDIA's libraries do not support being unloaded.
pub(crate) struct Loaded {
    handle: libloading::Library,
    library: Library,
}

impl Loaded {
    /// Loads the file at `path` (or, for a bare name, what the system's loader finds under it).
    pub(crate) fn open(library: Library, path: &OsStr, advice: &dyn Fn() -> String) -> Result<Self> {
        match open_globally(path) {
            Ok(handle) => Ok(Self { handle, library }),
            Err(error) => Err(Error::LibraryMissing {
                library,
                reason: format!("{} could not be loaded: {}", path.to_string_lossy(), with_sources(&error)),
                advice: advice(),
            }),
        }
    }

    /// The function called `symbol`.
    ///
    /// # Safety
    /// `F` must be an `unsafe extern "C" fn` type that agrees with the library's declaration of `symbol`.
    pub(crate) unsafe fn function<F: Copy + 'static>(&self, symbol: &'static str) -> Result<F> {
        // SAFETY: the caller vouches for the type, and `self` is never unloaded (see `leak`).
        match unsafe { self.handle.get::<F>(symbol) } {
            Ok(function) => Ok(*function),
            Err(_) => Err(Error::SymbolMissing {
                library: self.library,
                symbol,
                advice: "install the release for CUDA 12 or later".to_string(),
            }),
        }
    }

    /// Keeps the library loaded for good.
    pub(crate) fn leak(self) {
        std::mem::forget(self.handle);
    }
}

/// Loads a library that others must be able to find by name afterwards, and keeps it.
pub(crate) fn preload(path: &OsStr) -> bool {
    match open_globally(path) {
        Ok(handle) => {
            std::mem::forget(handle);
            true
        }
        Err(_) => false,
    }
}

/// An error with what caused it: the loader's own words come second.
fn with_sources(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |e| e.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(unix)]
fn open_globally(path: &OsStr) -> std::result::Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // SAFETY: NVIDIA's libraries have no load-time requirement beyond their dependencies being present.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map(Into::into)
}

#[cfg(not(unix))]
fn open_globally(path: &OsStr) -> std::result::Result<libloading::Library, libloading::Error> {
    // SAFETY: as above.
    unsafe { libloading::Library::new(path) }
}
