//! What can go wrong between us and NVIDIA's software, as types.
//!
//! Every message says what was attempted, what happened, and what to do about it.

use crate::library::Library;

/// The result of anything this crate does.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in this crate. No call here panics because of the machine it runs on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library of NVIDIA's is not on this machine, or could not be loaded.
    #[error("{library} is not available: {reason}\nhelp: {advice}")]
    LibraryMissing {
        /// Which library.
        library: Library,
        /// What was looked for, or why loading failed.
        reason: String,
        /// The one command or action that gets it.
        advice: String,
    },

    /// A library was loaded but lacks a function we call: it is too old.
    #[error("{library} has no function `{symbol}`: it is too old\nhelp: {advice}")]
    SymbolMissing {
        /// Which library.
        library: Library,
        /// The function that is missing.
        symbol: &'static str,
        /// What to do about it.
        advice: String,
    },

    /// There is no such GPU here.
    #[error(
        "no CUDA device {ordinal}: {reason}\nhelp: use `--device auto` or `--device sim` to run on the simulator"
    )]
    NoDevice {
        /// The number that was asked for.
        ordinal: usize,
        /// How many there are, or why there are none.
        reason: String,
    },

    /// The driver refused or failed.
    #[error("{call} failed: {name} ({code}): {text}{}", help(.advice))]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The driver's error number.
        code: u32,
        /// The driver's name of the error.
        name: String,
        /// The driver's description.
        text: String,
        /// What to do about it, where we know.
        advice: Option<&'static str>,
    },

    /// The GPU's memory does not hold what was asked for.
    #[error(
        "the GPU has no room for {wanted} bytes ({free} of {total} bytes are free)\nhelp: use a smaller problem, or free what other processes hold (nvidia-smi lists them)"
    )]
    OutOfMemory {
        /// Bytes asked for.
        wanted: usize,
        /// Bytes free now.
        free: usize,
        /// Bytes the GPU has.
        total: usize,
    },

    /// The source does not compile.
    #[error("{0}")]
    Compile(Box<CompileError>),

    /// NVRTC itself failed, for a reason that is not the source's.
    #[error("{call} failed: {text}{}", help(.advice))]
    Nvrtc {
        /// The NVRTC function.
        call: &'static str,
        /// NVRTC's name of the error.
        text: String,
        /// What to do about it, where we know.
        advice: Option<&'static str>,
    },

    /// The disassembler is not on this machine, or failed.
    #[error("the disassembler (nvdisasm) {reason}\nhelp: {advice}")]
    Disassembler {
        /// What happened.
        reason: String,
        /// What to do about it.
        advice: String,
    },

    /// A launch that the kernel or the GPU does not allow.
    #[error("kernel `{kernel}` cannot be launched: {reason}")]
    Launch {
        /// The kernel's name.
        kernel: String,
        /// Which limit is broken and by how much.
        reason: String,
    },

    /// cuBLAS or cuBLASLt refused or failed.
    #[error("{call} failed: {name} ({code})")]
    Cublas {
        /// The cuBLAS function.
        call: &'static str,
        /// cuBLAS's status number.
        code: i32,
        /// cuBLAS's name of the status.
        name: &'static str,
    },

    /// A request that makes no sense whatever the machine: an offset outside a buffer, a bad box of a tensor map.
    #[error("{what}: {reason}")]
    Invalid {
        /// What was asked for.
        what: &'static str,
        /// Why it cannot be.
        reason: String,
    },
}

/// A source that NVRTC or its assembler refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    /// The name given to the source.
    pub source_name: String,
    /// The architecture compiled for.
    pub arch: String,
    /// The first complaint, in the compiler's words.
    pub message: String,
    /// The line of the complaint, counted from 1, where the compiler named one.
    pub line: Option<usize>,
    /// The text of that line; of the generated PTX where the assembler complained.
    pub text: Option<String>,
    /// The compiler's whole log.
    pub log: String,
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} does not compile for {}: {}", self.source_name, self.arch, self.message)?;
        if let (Some(line), Some(text)) = (self.line, &self.text) {
            write!(f, "\n  line {line}: {}", text.trim())?;
        }
        write!(f, "\nthe compiler's log:\n{}", self.log.trim_end())
    }
}

fn help(advice: &Option<&'static str>) -> String {
    advice.map(|text| format!("\nhelp: {text}")).unwrap_or_default()
}
