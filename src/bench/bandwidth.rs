//! How fast a GPU reads and writes its memory: the bandwidths that rooflines are made of.
//!
//! Two questions, each with programs of its own, which are written in the text form and compiled like any other:
//!
//! - *How much has to be under way?* A sum over a long vector, read with 1 to 16 loads in flight in each thread, by 4
//!   warps alone and by 4 to all warps of every multiprocessor: Table 1 of Ernst, Hager, Thies and Wellein (IJHPCA
//!   35(1), 2021). The loop ends in a barrier of the warp, so that the compiler does not unroll it and put more loads
//!   in flight than it should.
//! - *How fast is it at best?* Read only, write only, and mixes of the two, each in several ways, of which the fastest
//!   counts: elements of 8 and of 16 bytes, several loads in flight and several numbers of blocks: blocks that stay and take every
//!   so many steps, and blocks that take one step each and make room for the next, which is faster where memory is written
//!   (`bench/limits/walks.cu`).
//!
//! What is read are random numbers, as in products: zeros take less power to move.

use std::path::Path;

use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::emit::cuda::{LARGEST_LAUNCH_PARAMETER, Source};
use warpwright_core::ir::{Program, parse};
use warpwright_core::occupancy;
use warpwright_core::sym::Sym;
use warpwright_core::target::Target;
use warpwright_cuda::{Buffer, Device, DevicePointer, MeasureOptions, Stream, measure};

use super::record::{self, Record};
use crate::gpu::{Arguments, Executable, compile_ahead, diagnosis, stage};
use crate::roofline::Bandwidths;
use crate::{compile, inputs, parallel};

/// One way to stream through memory, and how fast it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// What was asked: `parallelism` or `mix`.
    pub question: Question,
    /// Elements read, for each `writes` that are written.
    pub reads: i64,
    /// Elements written.
    pub writes: i64,
    /// Bytes of an element, and of each access of a thread.
    pub element_bytes: i64,
    /// Loads that a thread has in flight, or stores where nothing is read.
    pub in_flight: i64,
    /// Blocks of [`THREADS`] threads.
    pub blocks: i64,
    /// Warps of a multiprocessor at a time, as registers allow; of the only block where there is one.
    pub warps_per_sm: i64,
    /// These warps over the most that the multiprocessor holds; none where there is one block for the whole GPU.
    pub occupancy: Option<f64>,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Bytes moved by one launch.
    pub bytes: f64,
    /// Seconds of one launch: the median.
    pub seconds: f64,
    /// The quartiles of the samples.
    pub quartiles: (f64, f64),
    /// Samples.
    pub samples: usize,
    /// Bytes moved in a second, by the median.
    pub bytes_per_second: f64,
    /// What was read. Zeros take less power to move than numbers do.
    #[serde(default)]
    pub data: Data,
}

/// What the memory holds that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Zeros, as in records that do not say.
    #[default]
    Zeros,
    /// Random f64 between -1 and 1, or pairs of them: operands as products have them.
    Random,
}

/// What a measurement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Reading with more and more loads in flight.
    Parallelism,
    /// The best that a mix of reads and writes reaches.
    Mix,
}

/// Threads of a block.
pub const THREADS: i64 = 128;
/// Loads in flight in each thread.
pub const IN_FLIGHT: [i64; 5] = [1, 2, 4, 8, 16];
/// Reads and writes of a mix.
pub const MIXES: [(i64, i64); 9] = [(1, 0), (8, 1), (4, 1), (2, 1), (1, 1), (1, 2), (1, 4), (1, 8), (0, 1)];
/// Blocks of a multiprocessor in the mixes: half of its threads, all, and four rounds of all.
const MIX_BLOCKS: [i64; 3] = [8, 16, 64];
/// Blocks that pass in one launch, as many as a launch takes. They move 1 GB at least.
const MOST_PASSING: i64 = LARGEST_LAUNCH_PARAMETER;
/// Stores of a thread in one step.
const MOST_STORES: i64 = 32;
/// Random numbers that are repeated over the memory that is read: 64 MiB of them.
const RANDOM_ROWS: usize = 1 << 17;
const RANDOM_COLUMNS: usize = 64;
/// What a single block reads: little, since it takes a thousand times as long as all of them.
const ALONE_BYTES: f64 = (256 << 20) as f64;

/// A measurement to be made: a program and a size of the launch.
#[derive(Clone, Debug, PartialEq)]
struct Way {
    question: Question,
    reads: i64,
    writes: i64,
    dtype: DType,
    in_flight: i64,
    blocks: i64,
    /// Blocks of a multiprocessor; none where there is one for the whole GPU.
    blocks_per_sm: Option<i64>,
    /// Whether there is a block for each step instead.
    passing: bool,
}

impl Way {
    /// Elements that a thread reads and writes in one step of its loop.
    fn a_step(&self) -> (i64, i64) {
        match self.reads {
            0 => (0, self.in_flight),
            reads => (self.in_flight / reads * reads, self.in_flight / reads * self.writes),
        }
    }

    /// The program. `n` counts steps of a block, all blocks together.
    fn text(&self) -> String {
        let Way { question, dtype, .. } = self;
        let (read, written) = self.a_step();
        let name = format!("read{}_write{}_{dtype}_{}", self.reads, self.writes, self.in_flight);
        let (x, y) = (THREADS * read, THREADS * written);
        if *question == Question::Parallelism {
            return format!(
                "program {name}_paced(n: size, G: launch, x: in {dtype}[{x}*n], y: out {dtype}[{THREADS}*G])
{{
  for b in block.x(G) {{
    alloc sum: {dtype}[{}@32, 32@1] reg
    for w in threads({}@32) {{
      for l in threads(32@1) {{
        sum[w, l] = 0
      }}
      for p in b..n step G {{
        for l in threads(32@1) {{
          alloc v: {dtype}[{read}] reg
          for u in unroll 0..{read} {{
            v[u] = x[{x}*p + {THREADS}*u + 32*w + l]
          }}
          for u in unroll 0..{read} {{
            sum[w, l] += v[u]
          }}
        }}
        barrier
      }}
      for l in threads(32@1) {{
        y[{THREADS}*b + 32*w + l] = sum[w, l]
      }}
    }}
  }}
}}
",
                THREADS / 32,
                THREADS / 32
            );
        }
        // What a thread does with what it reads, and where it writes.
        let (parameters, before, step, after) = match (self.reads, self.writes) {
            (_, 0) => (
                format!("x: in {dtype}[{x}*n], y: out {dtype}[{THREADS}*G]"),
                format!("alloc sum: {dtype}[1] reg\n      sum[0] = 0"),
                format!("{}\n        for u in unroll 0..{read} {{ sum[0] += v[u] }}", load(*dtype, read)),
                format!("y[{THREADS}*b + t] = sum[0]"),
            ),
            (0, _) => (
                format!("y: out {dtype}[{y}*n]"),
                String::new(),
                format!("for u in unroll 0..{written} {{ y[{y}*p + {THREADS}*u + t] = 1 }}"),
                String::new(),
            ),
            (r, w) => (
                format!("x: in {dtype}[{x}*n], y: out {dtype}[{y}*n]"),
                String::new(),
                format!(
                    "{}
        for u in unroll 0..{} {{
          alloc s: {dtype}[1] reg
          s[0] = 0
          for i in unroll 0..{r} {{ s[0] += v[{r}*u + i] }}
          for i in unroll 0..{w} {{ y[{y}*p + {}*u + {THREADS}*i + t] = s[0] }}
        }}",
                    load(*dtype, read),
                    read / r,
                    THREADS * w
                ),
                String::new(),
            ),
        };
        format!(
            "program {name}(n: size, G: launch, {parameters})
{{
  for b in block.x(G) {{
    for t in threads({THREADS}@1) {{
      {before}
      for p in b..n step G {{
        {step}
      }}
      {after}
    }}
  }}
}}
"
        )
    }

    fn program(&self) -> Result<Program, Diagnosis> {
        parse::program(&self.text())
    }

    /// Steps and blocks of a launch where there is room for so many steps.
    fn launched(&self, steps: i64) -> (i64, i64) {
        if !self.passing {
            return (steps, self.blocks);
        }
        let steps = steps.min(MOST_PASSING);
        (steps, steps)
    }
}

/// The loads of a step into `v`.
fn load(dtype: DType, count: i64) -> String {
    format!(
        "alloc v: {dtype}[{count}] reg
        for u in unroll 0..{count} {{ v[u] = x[{}*p + {THREADS}*u + t] }}",
        THREADS * count
    )
}

/// Everything that is measured on a GPU.
fn ways(target: &Target, multiprocessors: i64) -> Vec<Way> {
    let mut ways = Vec::new();
    let most = i64::from(target.limits.warps_per_sm) * 32 / THREADS;
    let mut counts: Vec<i64> =
        std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < most).collect();
    counts.push(most);
    let launches = std::iter::once(None).chain(counts.into_iter().map(Some));
    for blocks_per_sm in launches {
        for in_flight in IN_FLIGHT {
            ways.push(Way {
                question: Question::Parallelism,
                reads: 1,
                writes: 0,
                dtype: DType::F64,
                in_flight,
                blocks: blocks_per_sm.map_or(1, |n| n * multiprocessors),
                blocks_per_sm,
                passing: false,
            });
        }
    }
    for (reads, writes) in MIXES {
        for dtype in [DType::F64, DType::C128] {
            for in_flight in IN_FLIGHT.into_iter().filter(|n| *n >= reads && *n * dtype.bytes() <= 128) {
                let staying = MIX_BLOCKS.map(|per_sm| Way {
                    question: Question::Mix,
                    reads,
                    writes,
                    dtype,
                    in_flight,
                    blocks: per_sm * multiprocessors,
                    blocks_per_sm: Some(per_sm),
                    passing: false,
                });
                // Each block of those that read only leaves a sum behind: there are to be few of them.
                let passing =
                    (writes > 0).then(|| Way { passing: true, ..staying[MIX_BLOCKS.len() - 1].clone() });
                ways.extend(staying.into_iter().chain(passing));
            }
        }
    }
    ways.retain(|way| way.a_step().1 <= MOST_STORES);
    ways
}

/// What is said while it goes on: how many measurements are done, how many there are, and the latest.
pub struct Progress<'a> {
    /// Measurements that are done.
    pub done: usize,
    /// Measurements there are.
    pub of: usize,
    /// The latest.
    pub latest: &'a Bandwidth,
}

/// Measures a GPU with two buffers of at most `bytes` each, as far as there is memory for them.
///
/// # Errors
/// Memory that cannot be had, and programs that cannot be compiled or launched.
pub fn run(
    device: &Device,
    target: &Target,
    bytes: usize,
    mut tell: impl FnMut(&Progress),
) -> Result<Vec<Bandwidth>, Diagnosis> {
    let (free, _) = device.memory().map_err(diagnosis)?;
    let bytes = bytes.min(free / 10 * 4);
    let multiprocessors = i64::from(device.info().sm_count);
    let ways = ways(target, multiprocessors);
    let programs = programs(&ways, &device.info().arch(), target)?;
    let stream = device.stream().map_err(diagnosis)?;
    let numbers = inputs::random(DType::F64, RANDOM_ROWS, RANDOM_COLUMNS, RANDOM_COLUMNS, 1)?;
    let buffer = || -> warpwright_cuda::Result<Buffer> {
        let buffer = device.alloc(bytes)?;
        stage::fill(&stream, &buffer, 0, numbers.bytes(), bytes)?;
        Ok(buffer)
    };
    let (x, y) = (buffer().map_err(diagnosis)?, buffer().map_err(diagnosis)?);
    let bench = Bench { device, target, stream: &stream, x: &x, y: &y };
    let mut results = Vec::new();
    for (way, (program, source)) in ways.iter().zip(programs) {
        let result = bench.measure(way, program, source)?;
        tell(&Progress { done: results.len() + 1, of: ways.len(), latest: &result });
        results.push(result);
    }
    Ok(results)
}

/// The programs of all measurements as CUDA text, compiled into the user's cache by all cores.
fn programs(ways: &[Way], arch: &str, target: &Target) -> Result<Vec<(Program, Source)>, Diagnosis> {
    let one = |way: &Way| -> Result<(Program, Source), Diagnosis> {
        let valid = compile::validated(&way.program()?, target)?;
        let source = compile::cuda(&valid)?;
        // What does not compile says so where it is launched.
        let _ = compile_ahead(arch, &source, target, &|_: &Sym| Some(1));
        Ok((valid.program().clone(), source))
    };
    parallel::map(ways, one).into_iter().collect()
}

struct Bench<'a> {
    device: &'a Device,
    target: &'a Target,
    stream: &'a Stream,
    x: &'a Buffer,
    y: &'a Buffer,
}

impl Bench<'_> {
    fn measure(&self, way: &Way, program: Program, source: Source) -> Result<Bandwidth, Diagnosis> {
        let (read, written) = way.a_step();
        let step_bytes = |elements: i64| (elements * THREADS * way.dtype.bytes()) as f64;
        let room = if way.blocks_per_sm.is_some() { self.x.bytes() as f64 } else { ALONE_BYTES };
        let steps = (room.min(self.x.bytes() as f64) / step_bytes(read.max(written))).floor() as i64;
        let (steps, blocks) = way.launched(steps);
        let executable = Executable::new(self.device, program, source, self.target);
        let given = Given { steps, blocks, x: self.x.pointer(), y: self.y.pointer() };
        let prepared = executable.prepare_with(self.device, &given)?;
        let options = MeasureOptions { warm_up_seconds: 0.02, seconds: 0.1, ..MeasureOptions::default() };
        let timing =
            measure::graph(self.stream, &options, |s, call| prepared.enqueue(s, call)).map_err(diagnosis)?;
        let registers = executable.launches(&prepared).first().and_then(|l| l.registers);
        let most = i64::from(self.target.limits.warps_per_sm);
        let resident = occupancy::blocks_per_sm(self.target, THREADS, registers.map_or(1, i64::from), 0);
        let warps_per_sm = way.blocks_per_sm.unwrap_or(1).min(resident) * THREADS / 32;
        let bytes = steps as f64 * step_bytes(read + written);
        Ok(Bandwidth {
            question: way.question,
            reads: way.reads,
            writes: way.writes,
            element_bytes: way.dtype.bytes(),
            in_flight: way.in_flight,
            blocks,
            warps_per_sm,
            occupancy: way.blocks_per_sm.map(|_| warps_per_sm as f64 / most as f64),
            registers,
            bytes,
            seconds: timing.median,
            quartiles: timing.quartiles,
            samples: timing.samples.len(),
            bytes_per_second: bytes / timing.median,
            data: Data::Random,
        })
    }
}

/// The arguments of a launch.
struct Given {
    steps: i64,
    blocks: i64,
    x: DevicePointer,
    y: DevicePointer,
}

impl Arguments for Given {
    fn integer(&self, sym: &Sym) -> Option<i64> {
        match sym.name() {
            "n" => Some(self.steps),
            "G" => Some(self.blocks),
            _ => None,
        }
    }

    fn scalar(&self, _: &Sym) -> Option<Complex64> {
        None
    }

    fn sets(&self) -> usize {
        1
    }

    fn tensor(&self, _: usize, sym: &Sym) -> Option<DevicePointer> {
        match sym.name() {
            "x" => Some(self.x),
            "y" => Some(self.y),
            _ => None,
        }
    }
}

/// The fastest way of a mix of reads and writes.
pub fn best(results: &[Bandwidth], mix: (i64, i64)) -> Option<&Bandwidth> {
    results
        .iter()
        .filter(|r| (r.reads, r.writes) == mix)
        .max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second))
}

/// The bandwidths that rooflines are made of.
pub fn summary(results: &[Bandwidth]) -> Bandwidths {
    let of = |mix| best(results, mix).map(|r| r.bytes_per_second);
    Bandwidths { read: of((1, 0)), copy: of((1, 1)) }
}

/// What was recorded of a GPU in a directory on the latest day, if there is anything that can be read.
pub fn recorded(directory: &Path, gpu: &str) -> Option<Record<Bandwidth>> {
    let records = record::read::<Bandwidth>(directory, NAME).unwrap_or_default();
    records.into_iter().rfind(|r| r.gpu == gpu)
}

/// What the results are filed under.
pub const NAME: &str = "bandwidth";

#[cfg(test)]
mod tests {
    use super::{Bandwidth, Data, IN_FLIGHT, MIXES, NAME, Question, best, recorded, ways};
    use crate::compile;
    use crate::program::on_simulator;
    use std::collections::BTreeMap;
    use warpwright_core::target::{self, Target};
    use warpwright_sim::exact::Trials;
    use warpwright_sim::{Blocks, Mode, Options};

    #[test]
    fn the_table_has_a_single_block_and_every_occupancy_up_to_the_whole() {
        let counts = |gpu: &str| -> Vec<Option<i64>> {
            let all = ways(Target::by_name(gpu).unwrap(), 10);
            let table = all.iter().filter(|w| w.question == Question::Parallelism);
            table.step_by(IN_FLIGHT.len()).map(|w| w.blocks_per_sm).collect()
        };
        assert_eq!(counts("h200"), [None, Some(1), Some(2), Some(4), Some(8), Some(16)]);
        // 48 warps.
        assert_eq!(counts("a6000"), [None, Some(1), Some(2), Some(4), Some(8), Some(12)]);
        let all = ways(target::DEFAULT, 10);
        assert!(MIXES.iter().all(|m| all.iter().any(|w| (w.reads, w.writes) == *m)));
        // Blocks that pass are as many as there are steps, in launches that the program takes.
        let launched = |passing| all.iter().find(|w| w.passing == passing).unwrap().launched(1 << 30);
        assert_eq!(launched(true), (1 << 20, 1 << 20));
        assert_eq!(launched(false), (1 << 30, all[0].blocks));
        // Where anything is written, blocks that pass are among the ways.
        for (reads, writes) in MIXES {
            let pass = all.iter().any(|w| (w.reads, w.writes) == (reads, writes) && w.passing);
            assert_eq!(pass, writes > 0, "{reads}:{writes}");
        }
    }

    #[test]
    fn every_program_is_free_of_hazards_and_reads_and_writes_what_it_should() {
        let options = Options { mode: Mode::Simt, checks: true, blocks: Blocks::All };
        let mut seen: Vec<String> = Vec::new();
        for way in ways(target::DEFAULT, 132) {
            let program = way.program().unwrap_or_else(|e| panic!("{e}\n{}", way.text()));
            if seen.contains(&program.name) {
                continue;
            }
            seen.push(program.name.clone());
            let valid = compile::validated(&program, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
            compile::cuda(&valid).unwrap_or_else(|e| panic!("{e}"));
            let sizes = BTreeMap::from([("n".to_string(), 7), ("G".to_string(), 3)]);
            let trials = Trials { count: 1, seed: 1, options };
            let case = on_simulator(&valid, &program, &sizes, &trials).unwrap();
            assert!(case.passed, "{}: {:?}", program.name, case.hazards);
            let (_, written) = way.a_step();
            let elements = if way.writes == 0 { 3 * 128 } else { 7 * 128 * written };
            assert_eq!(case.compared, elements as u64, "{}", program.name);
        }
        assert!(seen.len() > 30, "{}", seen.len());
    }

    fn result(mix: (i64, i64), in_flight: i64, bytes_per_second: f64) -> Bandwidth {
        Bandwidth {
            question: Question::Mix,
            reads: mix.0,
            writes: mix.1,
            element_bytes: 8,
            in_flight,
            blocks: 132,
            warps_per_sm: 4,
            occupancy: Some(0.0625),
            registers: Some(32),
            bytes: 1e9,
            seconds: 1e9 / bytes_per_second,
            quartiles: (1e-3, 2e-3),
            samples: 5,
            bytes_per_second,
            data: Data::Random,
        }
    }

    #[test]
    fn the_fastest_way_counts_and_the_latest_record_of_the_gpu_is_read() {
        let results = [result((1, 1), 2, 3e12), result((1, 1), 4, 4e12), result((1, 0), 1, 5e12)];
        assert_eq!(best(&results, (1, 1)).unwrap().in_flight, 4);
        assert!(best(&results, (8, 1)).is_none());
        let directory = std::env::temp_dir().join(format!("warpwright-bandwidth-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (gpu, date, results) in [
            ("NVIDIA H200", "2026-11-21", &results[..1]),
            ("NVIDIA H200", "2026-11-22", &results[..]),
            ("NVIDIA L4", "2026-11-23", &results[..2]),
        ] {
            let text = serde_json::json!({
                "version": "0.1.0", "gpu": gpu, "date": date, "driver": "13.0", "nvrtc": null, "results": results
            });
            std::fs::write(directory.join(format!("{NAME}-{date}.json")), text.to_string()).unwrap();
        }
        assert_eq!(recorded(&directory, "NVIDIA H200").unwrap().results, results);
        assert!(recorded(&directory, "NVIDIA B200").is_none());
        let mut older = serde_json::to_value(&results[0]).unwrap();
        assert_eq!(older["data"], "random");
        older.as_object_mut().unwrap().remove("data");
        assert_eq!(serde_json::from_value::<Bandwidth>(older).unwrap().data, Data::Zeros);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
