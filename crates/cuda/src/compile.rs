//! CUDA source text to machine code, by NVRTC. No GPU is needed.

use crate::error::{CompileError, Error, Result};
use crate::machine_code;
use crate::nvrtc::{Compilation, Nvrtc};
use crate::resources::{self, KernelResources};

/// A piece of CUDA source and the name that messages call it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// The name that messages use.
    pub name: &'a str,
    /// The CUDA C++ text.
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// A source under a name.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text }
    }
}

/// How to compile. Arithmetic is IEEE as CUDA defines it, with fused multiply-adds: there is no fast-math switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The real architecture, as in `sm_80` or `sm_90a`.
    pub arch: String,
    /// The C++ standard.
    pub standard: &'static str,
    /// Macros to define, with their values.
    pub defines: Vec<(String, String)>,
    /// A cap on registers per thread.
    pub max_registers: Option<u32>,
    /// Keep line numbers in the machine code, for profilers.
    pub line_info: bool,
    /// Keep the PTX too.
    pub keep_ptx: bool,
    /// Let multiply-adds of f32 change places where that suits the register file ([`crate::machine_code`]): on GPUs with two banks of
    /// registers only.
    pub reorder: bool,
    /// Any other options, in NVRTC's words.
    pub extra: Vec<String>,
}

impl Options {
    /// The usual options for one architecture.
    pub fn for_arch(arch: impl Into<String>) -> Self {
        Self {
            arch: arch.into(),
            standard: "c++17",
            defines: Vec::new(),
            max_registers: None,
            line_info: false,
            keep_ptx: false,
            reorder: false,
            extra: Vec::new(),
        }
    }

    /// Keeps the PTX too.
    pub fn with_ptx(mut self) -> Self {
        self.keep_ptx = true;
        self
    }

    /// Lets multiply-adds of f32 change places, or leaves them where the assembler has put them.
    pub fn with_reordering(mut self, reorder: bool) -> Self {
        self.reorder = reorder;
        self
    }

    /// The options in NVRTC's words.
    pub fn to_nvrtc(&self) -> Vec<String> {
        let mut words = vec![
            format!("--gpu-architecture={}", self.arch),
            format!("--std={}", self.standard),
            "--ptxas-options=-v".to_string(),
        ];
        words.extend(self.defines.iter().map(|(name, value)| format!("--define-macro={name}={value}")));
        words.extend(self.max_registers.map(|n| format!("--maxrregcount={n}")));
        words.extend(self.line_info.then(|| "--generate-line-info".to_string()));
        words.extend(self.extra.iter().cloned());
        words
    }
}

/// What came of a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The machine code, to be loaded with [`crate::Device::load`].
    pub cubin: Vec<u8>,
    /// The PTX, where [`Options::keep_ptx`] asked for it.
    pub ptx: Option<String>,
    /// The compiler's log: warnings, and the assembler's report.
    pub log: String,
    /// The resources of each kernel.
    pub kernels: Vec<KernelResources>,
    /// The architecture compiled for.
    pub arch: String,
    /// The version of NVRTC that compiled it.
    pub compiler: (u32, u32),
}

impl Compiled {
    /// The resources of the kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&KernelResources> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// The log less the assembler's report: what a person should read after a success.
    pub fn warnings(&self) -> String {
        let lines: Vec<&str> = self.log.lines().filter(|line| !is_report(line)).collect();
        lines.join("\n").trim().to_string()
    }
}

fn is_report(line: &str) -> bool {
    line.starts_with("ptxas info") || line.starts_with("ptxas         .")
}

/// The first NVRTC that keeps compiled code of its own beside the driver's (NVRTC manual, section Caching). It is told
/// not to: [`crate::CompileCache`] keeps the code in one known place, and a time said to be cold is cold.
const HAS_A_CACHE: (u32, u32) = (12, 9);

/// Compiles a source to machine code.
pub fn compile(source: &Source<'_>, options: &Options) -> Result<Compiled> {
    let nvrtc = Nvrtc::get()?;
    let compilation = Compilation::new(nvrtc, source.name, source.text)?;
    let mut words = options.to_nvrtc();
    words.extend(nvrtc.version().ge(&HAS_A_CACHE).then(|| "--no-cache".to_string()));
    let succeeded = compilation.compile(&words)?;
    let log = compilation.log()?;
    if !succeeded {
        return Err(Error::Compile(Box::new(explain(nvrtc, source, options, log))));
    }
    let mut cubin = compilation.cubin()?;
    if options.reorder {
        machine_code::reorder(&mut cubin);
    }
    let ptx = if options.keep_ptx { Some(compilation.ptx()?) } else { None };
    let kernels = resources::parse(&log);
    Ok(Compiled { cubin, ptx, log, kernels, arch: options.arch.clone(), compiler: nvrtc.version() })
}

/// Finds the first complaint in the log and the line it is about.
fn explain(nvrtc: &Nvrtc, source: &Source<'_>, options: &Options, log: String) -> CompileError {
    let complaint =
        log.lines().find(|l| l.contains("error") || l.contains("fatal")).unwrap_or("no reason was given");
    let (line, text) = if let Some(line) = number_after(complaint, &format!("{}(", source.name)) {
        (Some(line), line_of(source.text, line))
    } else if let Some(line) = number_after(complaint, "ptxas application ptx input, line ") {
        // The assembler counts lines of the PTX, which the failed compilation does not give.
        (Some(line), ptx_of(nvrtc, source, options).and_then(|ptx| line_of(&ptx, line)))
    } else {
        (None, None)
    };
    CompileError {
        source_name: source.name.to_string(),
        arch: options.arch.clone(),
        message: complaint.trim().to_string(),
        line,
        text,
        log,
    }
}

fn ptx_of(nvrtc: &Nvrtc, source: &Source<'_>, options: &Options) -> Option<String> {
    let virtual_arch = Options { arch: options.arch.replace("sm_", "compute_"), ..options.clone() };
    let words: Vec<String> =
        virtual_arch.to_nvrtc().into_iter().filter(|w| !w.starts_with("--ptxas-options")).collect();
    let compilation = Compilation::new(nvrtc, source.name, source.text).ok()?;
    compilation.compile(&words).ok().filter(|done| *done)?;
    compilation.ptx().ok()
}

fn number_after(text: &str, phrase: &str) -> Option<usize> {
    let rest = text.split_once(phrase)?.1;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

fn line_of(text: &str, line: usize) -> Option<String> {
    text.lines().nth(line.checked_sub(1)?).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::{Options, line_of, number_after};

    #[test]
    fn options_are_spelled_for_nvrtc_and_none_is_fast_math() {
        let mut options = Options::for_arch("sm_90a");
        options.defines.push(("TILE".to_string(), "128".to_string()));
        options.max_registers = Some(168);
        let words = options.to_nvrtc();
        assert!(words.contains(&"--gpu-architecture=sm_90a".to_string()));
        assert!(words.contains(&"--std=c++17".to_string()));
        assert!(words.contains(&"--define-macro=TILE=128".to_string()));
        assert!(words.contains(&"--maxrregcount=168".to_string()));
        assert!(!words.iter().any(|w| w.contains("fast")));
    }

    #[test]
    fn positions_are_read_from_messages() {
        assert_eq!(number_after("k.cu(12): error: expected a \";\"", "k.cu("), Some(12));
        assert_eq!(number_after("ptxas application ptx input, line 7; error", "input, line "), Some(7));
        assert_eq!(number_after("k.cu(): error", "k.cu("), None);
        assert_eq!(line_of("a\nb", 2).as_deref(), Some("b"));
        assert_eq!(line_of("a\nb", 0), None);
    }
}
