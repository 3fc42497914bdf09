//! `doctor`: what this machine has, what it lacks, and the one command that gets it.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use warpwright_core::target;
use warpwright_cuda::nvrtc::Nvrtc;
use warpwright_cuda::{CompileCache, Library, device, locate};

use super::options::OutputOptions;
use super::output::{Outcome, print, print_json};
use crate::report::number::bytes;

/// Options of `doctor`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    output: OutputOptions,
}

/// What was found; the JSON of `doctor`.
#[derive(Debug, Serialize)]
struct Findings {
    version: &'static str,
    cores: usize,
    libraries: Vec<LibraryFinding>,
    gpus: Vec<Gpu>,
    /// Why no GPU can be used, where none can.
    no_gpu: Option<String>,
    cache: Cache,
    /// What `--device auto` means here.
    default_device: String,
    simulated_gpus: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct LibraryFinding {
    name: String,
    purpose: &'static str,
    path: Option<String>,
    version: Option<String>,
    /// Why it cannot be used although it is there.
    fault: Option<String>,
    /// What gets it, where it is missing.
    advice: Option<String>,
}

#[derive(Debug, Serialize)]
struct Gpu {
    number: usize,
    name: String,
    compute_capability: String,
    multiprocessors: u32,
    memory_bytes: u64,
    /// The table of this product, where there is one.
    table: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Cache {
    directory: Option<String>,
    writable: bool,
}

/// Runs `doctor`.
pub fn run(options: &Options) -> Outcome {
    let findings = examine();
    if options.output.json { print_json(&findings) } else { print(&describe(&findings)) }
}

fn examine() -> Findings {
    let list = device::list();
    let gpus: Vec<Gpu> = list
        .devices
        .iter()
        .map(|d| Gpu {
            number: d.ordinal,
            name: d.name.clone(),
            compute_capability: format!("{}.{}", d.compute_capability.0, d.compute_capability.1),
            multiprocessors: d.sm_count,
            memory_bytes: d.memory_bytes as u64,
            table: target::Target::by_product(&d.name, d.sm_count).map(|t| t.name),
        })
        .collect();
    let nvrtc_found = locate::find(Library::Nvrtc).path.is_some();
    let default_device = if gpus.is_empty() || !nvrtc_found {
        format!("sim:{}", target::DEFAULT.name)
    } else {
        "cuda:0".to_string()
    };
    Findings {
        version: env!("CARGO_PKG_VERSION"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        libraries: locate::survey().into_iter().map(library).collect(),
        no_gpu: list.reason.map(|reason| reason.to_string()),
        gpus,
        cache: cache(),
        default_device,
        simulated_gpus: target::ALL.iter().map(|t| t.name).collect(),
    }
}

fn library(finding: locate::Finding) -> LibraryFinding {
    // Only NVRTC is worth loading to ask for its version: it needs no GPU and is what people lack.
    let (version, fault) = match (finding.library, &finding.path) {
        (Library::Nvrtc, Some(_)) => match Nvrtc::get() {
            Ok(nvrtc) => (Some(format!("{}.{}", nvrtc.version().0, nvrtc.version().1)), None),
            Err(error) => (None, Some(error.to_string())),
        },
        _ => (None, None),
    };
    LibraryFinding {
        name: finding.library.to_string(),
        purpose: finding.library.purpose(),
        path: finding.path.map(|p| p.display().to_string()),
        version,
        fault,
        advice: finding.advice,
    }
}

fn cache() -> Cache {
    let cache = CompileCache::standard();
    let directory = cache.directory();
    Cache { directory: directory.map(|d| d.display().to_string()), writable: directory.is_some_and(writable) }
}

/// Whether a file can be made in a directory, or in the nearest one above it that exists.
fn writable(directory: &Path) -> bool {
    let Some(existing) = directory.ancestors().find(|d| d.exists()) else { return false };
    let probe = existing.join(format!(".warpwright-{}", std::process::id()));
    let made = std::fs::File::create_new(&probe).is_ok();
    if made {
        // An empty file that stays behind does no harm.
        let _ = std::fs::remove_file(&probe);
    }
    made
}

fn describe(findings: &Findings) -> String {
    let mut lines = vec![format!("Warpwright {}, {} cores", findings.version, findings.cores), String::new()];
    for library in &findings.libraries {
        match (&library.path, &library.fault) {
            (Some(path), None) => {
                let version = library.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
                lines.push(format!("  found    {}{version}: {path}", library.name));
            }
            (Some(path), Some(fault)) => {
                lines.push(format!("  broken   {} at {path}: {fault}", library.name));
            }
            (None, _) => {
                lines.push(format!("  missing  {}, for {}", library.name, library.purpose));
                lines.extend(library.advice.iter().map(|a| format!("           get it: {a}")));
            }
        }
    }
    lines.push(String::new());
    for gpu in &findings.gpus {
        lines.push(format!(
            "  GPU {}    {}, compute capability {}, {} multiprocessors, {}",
            gpu.number,
            gpu.name,
            gpu.compute_capability,
            gpu.multiprocessors,
            bytes(gpu.memory_bytes)
        ));
    }
    if findings.gpus.is_empty() {
        lines.push("  no GPU   kernels run on the simulator, which needs nothing else".to_string());
    }
    lines.push(match (&findings.cache.directory, findings.cache.writable) {
        (Some(directory), true) => format!("  cache    compiled kernels are kept in {directory}"),
        (Some(directory), false) => {
            format!("  cache    {directory} cannot be written: kernels are compiled anew each time")
        }
        (None, _) => "  cache    there is no place to keep compiled kernels".to_string(),
    });
    lines.push(format!("  default  --device auto is {} here", findings.default_device));
    lines.push(format!("  sim      --device sim:GPU knows {}", findings.simulated_gpus.join(", ")));
    lines.join("\n")
}
