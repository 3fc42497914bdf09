//! Where NVIDIA's libraries are on this machine, and what gets the missing ones.
//!
//! Only names of files are looked at; nothing is loaded and nothing is run, so a search costs well under a
//! millisecond. The order of the search is the order in which a person's wishes are explicit: a variable of
//! our own, the toolkit's variables, the loader's path, the Python environment, then the usual places.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::driver;
use crate::library::Library;

/// The NVRTC wheel that Warpwright is tested with.
pub const NVRTC_COMMAND: &str = "pip install nvidia-cuda-nvrtc==13.0.88";
/// The cuBLAS wheel (with cuBLASLt in it) of the same CUDA release.
pub const CUBLAS_COMMAND: &str = "pip install nvidia-cublas==13.0.2.14";
/// The NVRTC wheel for a driver that knows only CUDA 12.
pub const NVRTC_COMMAND_12: &str = "pip install nvidia-cuda-nvrtc-cu12==12.9.86";
/// The cuBLAS wheel for a driver that knows only CUDA 12.
pub const CUBLAS_COMMAND_12: &str = "pip install nvidia-cublas-cu12==12.9.1.4";

/// The wheel with the disassembler; it reads the machine code of earlier releases too.
pub const NVDISASM_COMMAND: &str = "pip install nvidia-cuda-nvdisasm==13.2.51";

/// What a search for one library gave; the data behind a line of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which library.
    pub library: Library,
    /// The file that would be loaded, if there is one. For the driver it is the name the loader found.
    pub path: Option<PathBuf>,
    /// The directories looked into, in order, up to the one with the library.
    pub searched: Vec<PathBuf>,
    /// The one command or action that gets it, when it is missing.
    pub advice: Option<String>,
}

/// Looks for every library.
pub fn survey() -> Vec<Finding> {
    Library::ALL.into_iter().map(find).collect()
}

/// Looks for one library.
pub fn find(library: Library) -> Finding {
    if library == Library::Driver {
        let path = driver::present().then(|| PathBuf::from("libcuda.so.1"));
        let advice = path.is_none().then(|| advice(library));
        return Finding { library, path, searched: Vec::new(), advice };
    }
    find_in(library, &Environment::of_this_process())
}

/// The disassembler, `nvdisasm`, if it is anywhere: on the `PATH`, in a toolkit, or in a Python wheel (Triton's
/// brings one as well). [`NVDISASM_COMMAND`] gets it.
pub fn disassembler() -> Option<PathBuf> {
    Environment::of_this_process()
        .tool_directories()
        .into_iter()
        .map(|d| d.join("nvdisasm"))
        .find(|p| p.is_file())
}

/// What gets a missing library.
pub fn advice(library: Library) -> String {
    let old_driver = driver::present() && driver::version().is_ok_and(|(major, _)| major < 13);
    match (library, old_driver) {
        (Library::Driver, _) => "install NVIDIA's driver for your GPU (https://www.nvidia.com/drivers); without a GPU use the simulator: --device sim".to_string(),
        (Library::Nvrtc, false) => format!("{NVRTC_COMMAND}, or set WARPWRIGHT_NVRTC to the directory that holds it"),
        (Library::Nvrtc, true) => format!("{NVRTC_COMMAND_12}, or set WARPWRIGHT_NVRTC to the directory that holds it"),
        (_, false) => format!("{CUBLAS_COMMAND}, or set CUDA_HOME to a toolkit that holds it"),
        (_, true) => format!("{CUBLAS_COMMAND_12}, or set CUDA_HOME to a toolkit that holds it"),
    }
}

/// What a search depends on, as a value, so that it can be tested.
#[derive(Debug, Clone, Default)]
struct Environment {
    /// `WARPWRIGHT_NVRTC`: a directory, or the file itself.
    nvrtc: Option<PathBuf>,
    /// `CUDA_HOME` and `CUDA_PATH`.
    toolkits: Vec<PathBuf>,
    /// `PATH`.
    path: Vec<PathBuf>,
    /// `LD_LIBRARY_PATH`.
    loader_path: Vec<PathBuf>,
    /// `VIRTUAL_ENV`, `CONDA_PREFIX` and the prefixes of the `python3` and `python` on the `PATH`.
    pythons: Vec<PathBuf>,
    /// The user's home, for `pip install --user`.
    home: Option<PathBuf>,
    /// The places a toolkit or a package manager usually uses.
    usual: Vec<PathBuf>,
}

impl Environment {
    fn of_this_process() -> Self {
        let directory = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let list = |name: &str| split_path(std::env::var_os(name));
        let mut pythons: Vec<PathBuf> =
            ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(directory).collect();
        let path = list("PATH");
        for bin in &path {
            for name in ["python3", "python"] {
                let program = bin.join(name);
                if program.is_file() {
                    // A virtual environment's python is a link to the system's: both prefixes count.
                    pythons.extend(prefix(&program));
                    pythons.extend(program.canonicalize().ok().as_deref().and_then(prefix));
                }
            }
        }
        let mut usual: Vec<PathBuf> =
            ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"].map(PathBuf::from).to_vec();
        usual.extend(children(Path::new("/usr/local"), "cuda-").into_iter().rev());
        Self {
            nvrtc: directory("WARPWRIGHT_NVRTC"),
            toolkits: ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(directory).collect(),
            path,
            loader_path: list("LD_LIBRARY_PATH"),
            pythons,
            home: directory("HOME"),
            usual,
        }
    }

    /// The directories that may hold `library`, most explicit first, without repetition.
    fn directories(&self, library: Library) -> Vec<PathBuf> {
        let mut all = Vec::new();
        if let (Library::Nvrtc, Some(path)) = (library, &self.nvrtc) {
            all.push(path.clone());
            all.extend(below_toolkit(path));
        }
        all.extend(self.toolkits.iter().flat_map(|t| below_toolkit(t)));
        all.extend(self.loader_path.iter().cloned());
        all.extend(self.pythons.iter().flat_map(|p| below_python(p, library)));
        all.extend(self.home.iter().flat_map(|home| below_python(&home.join(".local"), library)));
        all.extend(self.usual.iter().flat_map(|t| below_toolkit(t)));
        all.extend(
            [
                "/usr/lib/x86_64-linux-gnu",
                "/usr/lib/aarch64-linux-gnu",
                "/usr/lib64",
                "/usr/lib",
                "/usr/local/lib",
            ]
            .map(PathBuf::from),
        );
        let mut seen = std::collections::HashSet::new();
        all.retain(|d| seen.insert(d.clone()));
        all
    }

    /// The directories that may hold NVIDIA's tools.
    fn tool_directories(&self) -> Vec<PathBuf> {
        let bin = |toolkit: &PathBuf| toolkit.join("bin");
        let mut all: Vec<PathBuf> = self.toolkits.iter().map(bin).collect();
        all.extend(self.path.iter().cloned());
        let users = self.home.iter().map(|home| home.join(".local"));
        for packages in self.pythons.iter().cloned().chain(users).flat_map(|p| python_packages(&p)) {
            all.extend(["nvidia/cu13/bin", "triton/backends/nvidia/bin"].map(|d| packages.join(d)));
        }
        all.extend(self.usual.iter().map(bin));
        all
    }
}

fn find_in(library: Library, environment: &Environment) -> Finding {
    if let (Library::Nvrtc, Some(file)) = (library, &environment.nvrtc)
        && file.is_file()
    {
        return Finding { library, path: Some(file.clone()), searched: Vec::new(), advice: None };
    }
    let mut searched = Vec::new();
    for directory in environment.directories(library) {
        let found = newest(&directory, library.stem());
        if directory.is_dir() {
            searched.push(directory);
        }
        if found.is_some() {
            return Finding { library, path: found, searched, advice: None };
        }
    }
    Finding { library, path: None, searched, advice: Some(advice(library)) }
}

/// The newest `lib{stem}.so*` in a directory: the highest number after `.so.`, else the bare name.
fn newest(directory: &Path, stem: &str) -> Option<PathBuf> {
    let bare = format!("lib{stem}.so");
    let mut best: Option<(Vec<u32>, PathBuf)> = None;
    for entry in std::fs::read_dir(directory).ok()?.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|n| n.strip_prefix(&bare)) else { continue };
        let Some(version) = version_suffix(rest) else { continue };
        // Of libnvrtc.so.13 and libnvrtc.so.13.0.88 the first is the stable name; numbers decide between releases.
        if best.as_ref().is_none_or(|(held, _)| {
            version.first().cmp(&held.first()).then(held.len().cmp(&version.len())).is_gt()
        }) {
            best = Some((version, entry.path()));
        }
    }
    best.map(|(_, path)| path)
}

/// The numbers of `.13` or `.13.0.88`; none of a bare name; `None` for anything else.
fn version_suffix(rest: &str) -> Option<Vec<u32>> {
    if rest.is_empty() {
        return Some(Vec::new());
    }
    rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect()
}

fn below_toolkit(toolkit: &Path) -> [PathBuf; 4] {
    ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"].map(|d| toolkit.join(d))
}

/// The wheels' directories below a Python prefix; in a Conda environment also its own `lib`.
fn below_python(prefix: &Path, library: Library) -> Vec<PathBuf> {
    let wheel = if library == Library::Nvrtc { "cuda_nvrtc" } else { "cublas" };
    let mut found = Vec::new();
    for packages in python_packages(prefix) {
        // cu13 is where the CUDA 13 wheels put everything; each CUDA 12 wheel has a directory of its own.
        found.extend(["cu13", wheel].map(|d| packages.join("nvidia").join(d).join("lib")));
    }
    found.push(prefix.join("lib"));
    found
}

/// The directories of installed packages below a Python prefix.
fn python_packages(prefix: &Path) -> Vec<PathBuf> {
    let pythons = children(&prefix.join("lib"), "python3").into_iter();
    pythons.flat_map(|python| ["site-packages", "dist-packages"].map(|d| python.join(d))).collect()
}

fn children(directory: &Path, starting_with: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with(starting_with))
        .map(|e| e.path())
        .collect();
    found.sort();
    found
}

fn prefix(program: &Path) -> Option<PathBuf> {
    program.parent()?.parent().map(Path::to_path_buf)
}

fn split_path(value: Option<OsString>) -> Vec<PathBuf> {
    value
        .map(|v| std::env::split_paths(&v).filter(|p| !p.as_os_str().is_empty()).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Environment, Library, advice, find_in, newest};
    use std::path::Path;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"").unwrap();
    }

    #[test]
    fn the_wheel_is_found_below_the_python_prefix() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
        touch(&file);
        touch(&file.with_file_name("libnvrtc-builtins.so.13.0"));
        touch(&file.with_file_name("libnvrtc.alt.so.13"));
        let environment = Environment { pythons: vec![root.path().to_path_buf()], ..Environment::default() };
        assert_eq!(find_in(Library::Nvrtc, &environment).path, Some(file));
    }

    #[test]
    fn our_own_variable_wins_and_may_name_the_file_itself() {
        let root = tempfile::tempdir().unwrap();
        let wheel = root.path().join("env/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
        let own = root.path().join("mine/libnvrtc.so.12");
        touch(&wheel);
        touch(&own);
        let mut environment =
            Environment { pythons: vec![root.path().join("env")], ..Environment::default() };
        assert_eq!(find_in(Library::Nvrtc, &environment).path, Some(wheel.clone()));
        environment.nvrtc = Some(own.parent().unwrap().to_path_buf());
        assert_eq!(find_in(Library::Nvrtc, &environment).path, Some(own));
        environment.nvrtc = Some(wheel.clone());
        assert_eq!(find_in(Library::Nvrtc, &environment).path, Some(wheel));
    }

    #[test]
    fn the_newest_release_of_a_directory_is_taken() {
        let root = tempfile::tempdir().unwrap();
        for name in
            ["libnvrtc.so", "libnvrtc.so.9.1", "libnvrtc.so.12", "libnvrtc.so.13.0.88", "libnvrtc.so.13"]
        {
            touch(&root.path().join(name));
        }
        assert_eq!(newest(root.path(), "nvrtc"), Some(root.path().join("libnvrtc.so.13")));
    }

    #[test]
    fn the_disassembler_is_looked_for_in_toolkits_the_path_and_wheels() {
        let environment = Environment {
            toolkits: vec!["/toolkit".into()],
            path: vec!["/somewhere/bin".into()],
            ..Environment::default()
        };
        let directories = environment.tool_directories();
        assert_eq!(directories, [Path::new("/toolkit/bin"), Path::new("/somewhere/bin")]);
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("lib/python3.12/site-packages/nvidia/cu13/bin");
        touch(&bin.join("nvdisasm"));
        let environment = Environment { pythons: vec![root.path().to_path_buf()], ..Environment::default() };
        assert!(environment.tool_directories().contains(&bin));
    }

    #[test]
    fn what_is_missing_comes_with_the_command_that_gets_it() {
        let root = tempfile::tempdir().unwrap();
        let environment = Environment { toolkits: vec![root.path().to_path_buf()], ..Environment::default() };
        let finding = find_in(Library::CublasLt, &environment);
        if finding.path.is_none() {
            assert!(finding.advice.unwrap().contains("pip install nvidia-cublas"));
        }
        assert!(advice(Library::Nvrtc).contains("pip install nvidia-cuda-nvrtc"));
    }
}
