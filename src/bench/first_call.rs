//! How long the first product by a kernel takes, from its recipe to the result on the GPU.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::nvrtc::Nvrtc;
use warpwright_cuda::{CompileCache, Device, Stream};

use crate::bind::Binding;
use crate::compile;
use crate::gpu::{self, Executable, OperandSets, diagnosis};
use crate::inputs::Operands;
use crate::kernels::{self, Recipe, Variant};
use crate::problem::Problem;
use crate::verify;

/// The first call of one kernel. The driver, the context, NVRTC and the operands are there before the clock starts.
#[derive(Clone, Debug, Serialize)]
pub struct FirstCall {
    /// The kernel.
    pub kernel: String,
    /// Seconds where nothing is in the cache: schedule, checks, emission, NVRTC, loading, launch, copy of the result.
    pub cold_seconds: f64,
    /// Seconds where the compiled kernel is in the cache.
    pub warm_seconds: f64,
    /// Whether both results were right.
    pub passed: bool,
}

/// Times the first calls of kernels on a problem, with a cache of their own.
pub fn run(
    device: &Device,
    target: &Target,
    problem: &Problem,
    recipes: &[&'static Recipe],
    mut tell: impl FnMut(&FirstCall),
) -> Result<Vec<FirstCall>, Diagnosis> {
    let stream = device.stream().map_err(diagnosis)?;
    let operands = Operands::random(problem, 1)?;
    let sets = OperandSets::single(device, problem, &operands).map_err(diagnosis)?;
    Nvrtc::get().map_err(diagnosis)?;
    let directory = Directory::new();
    let bench = Bench { device, target, problem, operands: &operands, sets: &sets, stream: &stream };
    let mut calls = Vec::new();
    for recipe in recipes {
        let cache = CompileCache::at(directory.0.join(recipe.name));
        let (cold_seconds, cold) = bench.call(recipe, &cache)?;
        let (warm_seconds, warm) = bench.call(recipe, &cache)?;
        let call =
            FirstCall { kernel: recipe.name.to_string(), cold_seconds, warm_seconds, passed: cold && warm };
        tell(&call);
        calls.push(call);
    }
    Ok(calls)
}

/// What all first calls share.
struct Bench<'a> {
    device: &'a Device,
    target: &'a Target,
    problem: &'a Problem,
    operands: &'a Operands,
    sets: &'a OperandSets,
    stream: &'a Stream,
}

impl Bench<'_> {
    /// The seconds of one call from the recipe to the result, and whether the result was right.
    fn call(&self, recipe: &Recipe, cache: &CompileCache) -> Result<(f64, bool), Diagnosis> {
        let start = Instant::now();
        let variant = Variant::of(self.problem);
        let kernel = kernels::build(recipe, variant)?;
        let valid = compile::validated(kernel.program(), self.target)?;
        let (program, source) = (valid.program().clone(), compile::cuda(&valid)?);
        let executable = Executable::with_cache(self.device, program, source, self.target, cache.clone());
        let launch_size = i64::from(self.device.info().sm_count);
        let binding = Binding::new(valid.program(), self.problem, launch_size)?;
        let prepared = executable.prepare(self.device, &binding, self.sets)?;
        let result = gpu::result(&prepared, self.sets, self.stream, self.problem, self.operands)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok((
            seconds,
            verify::compare(self.problem, self.operands, &result, kernel.multiplications()).passed(),
        ))
    }
}

/// A directory for temporary files, which goes when this does.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        Directory(std::env::temp_dir().join(format!("warpwright-first-call-{}", std::process::id())))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is left to the system, which cleans its directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
