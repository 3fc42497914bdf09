//! How long a program takes on a GPU, and what of.
//!
//! For each launch the model works out what one block asks of its multiprocessor, in cycles of the boost clock:
//!
//! - `arithmetic`: multiply-adds over the rate of their pipe;
//! - `issue`: instructions of warps over the schedulers, one a cycle each;
//! - `l1`: passes through the first-level cache and shared memory, which are one memory: a wavefront of shared memory, a line of
//!   device memory, or as many bytes as the cache gives, each takes a cycle;
//! - `l2`: bytes from the second-level cache over what it gives a multiprocessor, or the lines that stores ask it to take;
//! - `waits`: what a warp of the block waits for memory, for barriers and at the turn of loops, with nothing of its own to do
//!   ([`path`]).
//!
//! The first four overlap where a scheduler has several warps, but near a tie they disturb each other: together they take the
//! sum of powers, the higher the more warps there are, not the greatest. While a warp waits for shared memory or for the operation before, the others of
//! its scheduler go on; while a block waits, the others that are resident do: closed queues of as many customers. The busiest
//! multiprocessor takes its blocks in rounds. `memory` is the traffic of all blocks with device memory over its bandwidth, less where
//! requests ask for parts of lines, beside all that; `launch` is what the launch itself takes, after it.

use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::instr;
use crate::ir::{Launch, Program};
use crate::occupancy::{Demand, Occupancy};
use crate::sym::Sym;
use crate::target::{Limits, Pipe, Target};

use super::count::{self, Counts, Reuse};
use super::lanes::{Value, Values};
use super::path::{self, Pace, Path};
use super::traffic::{self, Traffic};
use super::{made, operations, registers};

pub use super::constants::{CONSTANTS, Constants, Place};

/// Cycles from a load of device memory to its value where nobody measured it on the GPU. Chosen among those of the tables, 436 (V100) to 767
/// (H100); not fitted.
const MEMORY_CYCLES: f64 = 600.0;
/// Cycles from a load to its value in the first-level cache where nobody measured it on the GPU.
const L1_CYCLES: f64 = 35.0;
/// Passes through the first-level cache for each instruction of arithmetic on a register that has no place. Chosen by a few kernels of
/// `tiled` with 20 x 8 elements a thread in 168 registers; not fitted.
const SPILL: f64 = 4.0;
/// Bytes that the second-level cache gives a multiprocessor in a cycle where nobody measured it.
const L2_BYTES: f64 = 20.0;

/// What takes time, each as if it were alone, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// Multiply-adds.
    pub arithmetic: f64,
    /// Issue of instructions.
    pub issue: f64,
    /// Passes through the first-level cache and shared memory.
    pub l1: f64,
    /// Traffic with the second-level cache.
    pub l2: f64,
    /// Traffic with device memory.
    pub memory: f64,
    /// Waits of a block with nothing to do, times the rounds in which blocks are resident.
    pub waits: f64,
    /// The launch.
    pub launch: f64,
}

impl Terms {
    /// The names, with what each is.
    pub const NAMES: [(&'static str, &'static str); 7] = [
        ("arithmetic", "multiply-adds"),
        ("issue", "issue of instructions"),
        ("l1", "passes through first-level cache and shared memory"),
        ("l2", "traffic with the second-level cache"),
        ("memory", "traffic with device memory"),
        ("waits", "waits for memory and at barriers"),
        ("launch", "launches"),
    ];

    /// The terms in the order of their names.
    pub fn values(&self) -> [f64; 7] {
        [self.arithmetic, self.issue, self.l1, self.l2, self.memory, self.waits, self.launch]
    }

    fn from_values([arithmetic, issue, l1, l2, memory, waits, launch]: [f64; 7]) -> Terms {
        Terms { arithmetic, issue, l1, l2, memory, waits, launch }
    }

    /// Both, term by term.
    #[must_use]
    pub fn plus(&self, other: &Terms) -> Terms {
        let (a, b) = (self.values(), other.values());
        Terms::from_values(std::array::from_fn(|i| a[i] + b[i]))
    }

    /// The name of the greatest.
    pub fn greatest(&self) -> &'static str {
        let values = self.values();
        let at = (0..values.len()).fold(0, |most, i| if values[i] > values[most] { i } else { most });
        Terms::NAMES[at].0
    }
}

/// What warps of a block wait for, in cycles of the boost clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// For loads from device memory.
    pub memory: f64,
    /// At barriers, and for the first load from shared memory after each.
    pub barriers: f64,
    /// For copies to shared memory to be issued.
    pub copies: f64,
    /// For loads from shared memory. While one warp waits, others of its scheduler go on.
    pub loads: f64,
    /// For the operation before, likewise.
    pub chains: f64,
}

impl Waits {
    /// All of it.
    pub fn sum(&self) -> f64 {
        self.of_blocks() + self.of_warps()
    }

    /// That for which all warps of a block wait together.
    fn of_blocks(&self) -> f64 {
        self.memory + self.barriers + self.copies
    }

    /// That for which each warp waits for itself.
    fn of_warps(&self) -> f64 {
        self.loads + self.chains
    }
}

/// What a launch takes, and what of.
#[derive(Clone, Debug)]
pub struct LaunchTime {
    /// Seconds.
    pub seconds: f64,
    /// What takes them, each as if it were alone.
    pub terms: Terms,
    /// By how much the time would be shorter without each, in parts of all such gains together: they add up to 1.
    pub shares: Terms,
    /// Registers of a thread that the model went by.
    pub registers: i64,
    /// Whether they are an estimate, not what a compiler said.
    pub registers_estimated: bool,
    /// How many blocks a multiprocessor holds, and why.
    pub occupancy: Occupancy,
    /// Rounds in which the busiest multiprocessor takes its blocks.
    pub rounds: f64,
    /// How many times the mean the busiest multiprocessor has to do.
    pub imbalance: f64,
    /// What a profiler would count, as compilers make it.
    pub counts: Counts,
    /// Bytes of device memory, by buffer.
    pub traffic: Vec<Traffic>,
    /// Bytes from and to device memory.
    pub memory_bytes: f64,
    /// The way of a warp through its block.
    pub path: Path,
    /// What the waits of a block are for.
    pub waits: Waits,
}

/// The time of a program.
#[derive(Clone, Debug)]
pub struct Time {
    /// Seconds of all launches.
    pub seconds: f64,
    /// The terms of all launches.
    pub terms: Terms,
    /// The shares of all launches, each weighed by its time.
    pub shares: Terms,
    /// The name of the term with the greatest share.
    pub limiter: &'static str,
    /// The launches that are made.
    pub launches: Vec<LaunchTime>,
}

/// What the model says of a lowered program on a GPU, given what sizes, strides and flags are, and the registers that a compiler gave the threads of
/// each launch that is made, where one was asked.
///
/// # Errors
/// Those of [`Launch::of`]; a launch of which not one block fits on a multiprocessor; arithmetic for which the GPU's table has no
/// rate.
pub fn of(
    program: &Program,
    value: &dyn Fn(&Sym) -> Option<i64>,
    target: &Target,
    registers: Option<&[i64]>,
) -> Result<Time, Diagnosis> {
    with(program, value, target, registers, &CONSTANTS)
}

/// The same with other constants.
///
/// # Errors
/// As [`of`].
pub fn with(
    program: &Program,
    value: &dyn Fn(&Sym) -> Option<i64>,
    target: &Target,
    registers: Option<&[i64]>,
    constants: &Constants,
) -> Result<Time, Diagnosis> {
    let buffers = program.buffers();
    let launches = made(&program.body, value)?;
    let counts = count::launches(program, value, Reuse::AsCompiled)?;
    let mut asked = Vec::new();
    for (at, launch) in launches.iter().enumerate() {
        let given = registers.and_then(|r| r.get(at)).copied().filter(|r| *r > 0);
        let most = most_registers(target, launch.threads);
        let needed = registers::of_launch(launch, &buffers);
        let demand = Demand::new(
            u32::try_from(launch.threads).unwrap_or(u32::MAX),
            u32::try_from(given.unwrap_or(needed.min(most))).unwrap_or(u32::MAX),
        )
        .with_shared(u32::try_from(instr::shared_bytes(launch)).unwrap_or(u32::MAX));
        let spilled = (needed - most).max(0) as f64 / needed.max(1) as f64;
        asked.push((demand, given.is_none(), Occupancy::of(&demand, target.limits), spilled));
    }
    let resident = |at: usize| i64::from(asked[at].2.blocks.max(1)) * i64::from(target.sm_count.value);
    let traffic = traffic::launches(program, value, &resident)?;
    let mut out = Vec::new();
    for ((((launch, counts), traffic), (demand, estimated, occupancy, spilled)), at) in
        launches.iter().zip(counts).zip(traffic).zip(&asked).zip(0..)
    {
        if occupancy.blocks == 0 {
            return Err(Diagnosis::new(format!(
                "not one block of launch {at} fits on a multiprocessor of {}",
                target.name
            ))
            .because(format!(
                "it asks for {} threads, {} registers of each and {} bytes of shared memory",
                demand.threads,
                demand.registers,
                demand.shared()
            ))
            .instead("give smaller tiles, or another GPU"));
        }
        let mut values = Values::default();
        let strides = program.tensors().filter_map(|t| t.row_stride.as_ref());
        for sym in program.params.iter().map(|p| &p.sym).chain(strides) {
            values.set(sym, Value::Same(value(sym).unwrap_or(0)));
        }
        let machine = Machine { target, constants, resident: f64::from(occupancy.blocks) };
        let pace = Pace {
            memory: machine.memory_cycles(&counts, &traffic),
            threads: &|dtype| machine.rate(threads_pipe(dtype)).unwrap_or(1.0),
            matrix_units: &|dtype, by_one_warp| machine.matrix_rate(dtype, by_one_warp).unwrap_or(1.0),
            small: operations::small(target),
            warps: f64::from(demand.warps()),
        };
        let path = path::of_launch(launch, values, &buffers, &pace);
        let asks = machine.asks(launch, &counts, &traffic, &path, program, *spilled)?;
        let seconds = machine.seconds(&asks);
        let gains: [f64; 7] = std::array::from_fn(|i| (seconds - machine.seconds(&asks.without(i))).max(0.0));
        let all: f64 = gains.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let blocks = counts.blocks.max(1.0);
        let sms = f64::from(target.sm_count.value);
        let rounds = (machine.busiest(blocks) / machine.resident).ceil();
        let cycles = |each: f64| each * machine.busiest(blocks) / target.boost_hz();
        out.push(LaunchTime {
            seconds,
            terms: Terms {
                arithmetic: cycles(asks.arithmetic),
                issue: cycles(asks.issue),
                l1: cycles(asks.l1),
                l2: cycles(asks.l2.max(asks.stores)),
                memory: asks.memory,
                waits: asks.waits.sum() * rounds / target.boost_hz(),
                launch: asks.launch,
            },
            shares: Terms::from_values(gains.map(|g| g / all)),
            registers: demand.registers.into(),
            registers_estimated: *estimated,
            occupancy: *occupancy,
            rounds,
            imbalance: machine.busiest(blocks) * sms / blocks,
            memory_bytes: machine.memory_bytes(&counts, &traffic),
            counts,
            traffic,
            waits: asks.waits,
            path,
        });
    }
    let seconds: f64 = out.iter().map(|l| l.seconds).sum();
    let terms = out.iter().fold(Terms::default(), |sum, l| sum.plus(&l.terms));
    let shares = out.iter().fold(Terms::default(), |sum, l| {
        sum.plus(&Terms::from_values(
            l.shares.values().map(|s| s * l.seconds / seconds.max(f64::MIN_POSITIVE)),
        ))
    });
    Ok(Time { seconds, terms, shares, limiter: shares.greatest(), launches: out })
}

/// What one block asks for in cycles, and what all blocks ask for in seconds.
#[derive(Clone, Copy)]
struct Asks {
    blocks: f64,
    warps: f64,
    arithmetic: f64,
    issue: f64,
    l1: f64,
    /// Lines of stores on their way out.
    stores: f64,
    l2: f64,
    waits: Waits,
    memory: f64,
    launch: f64,
}

impl Asks {
    /// The same without one of the terms.
    fn without(mut self, term: usize) -> Asks {
        match Terms::NAMES[term].0 {
            "arithmetic" => self.arithmetic = 0.0,
            "issue" => self.issue = 0.0,
            "l1" => self.l1 = 0.0,
            "l2" => (self.l2, self.stores) = (0.0, 0.0),
            "memory" => self.memory = 0.0,
            "waits" => self.waits = Waits::default(),
            _ => self.launch = 0.0,
        }
        self
    }
}

/// A GPU as a launch meets it.
struct Machine<'a> {
    target: &'a Target,
    constants: &'a Constants,
    /// Blocks that a multiprocessor holds.
    resident: f64,
}

impl Machine<'_> {
    /// Cycles from a load to its value: what comes from the first-level cache comes soon.
    fn memory_cycles(&self, counts: &Counts, traffic: &[Traffic]) -> f64 {
        let levels = &self.target.levels;
        let far = levels.dram.latency_cycles.map_or(MEMORY_CYCLES, |l| l.value.into());
        let near = levels.l1.latency_cycles.map_or(L1_CYCLES, |l| l.value.into());
        let missed = self.l2_bytes(counts, traffic) / self.requested(counts).max(1.0);
        near + (far - near) * missed
    }

    /// Bytes from and to the second-level cache: what blocks read, each byte once, and never more than requests ask for; and all sectors
    /// that requests write, since the first-level cache keeps none of them back.
    fn l2_bytes(&self, counts: &Counts, traffic: &[Traffic]) -> f64 {
        let read: f64 = traffic.iter().filter(|t| t.reads).map(|t| t.by_blocks).sum();
        read.min(32.0 * counts.global_load_sectors) + 32.0 * counts.global_store_sectors
    }

    /// Multiply-adds of matrix units in a cycle, by instructions of one warp or of four.
    fn matrix_rate(&self, dtype: DType, by_one_warp: bool) -> Option<f64> {
        let part = if by_one_warp { operations::of_one_warp(self.target, dtype) } else { 1.0 };
        matrix_pipe(dtype).and_then(|pipe| self.rate(pipe)).map(|rate| rate * part)
    }

    /// Multiply-adds of a pipe in a cycle of a multiprocessor, as sustained.
    fn rate(&self, pipe: Pipe) -> Option<f64> {
        let rate = self.target.rates.iter().find(|r| r.pipe == pipe)?.fma_per_clock.value;
        let part = if matches!(pipe, Pipe::F32 | Pipe::F64) {
            self.constants.threads
        } else {
            self.constants.matrix_units
        };
        Some(f64::from(rate) * part)
    }

    /// Blocks of the busiest multiprocessor.
    fn busiest(&self, blocks: f64) -> f64 {
        (blocks / f64::from(self.target.sm_count.value)).ceil().max(1.0)
    }

    /// Bytes from and to device memory: once where the second-level cache holds everything, else once for each wave of blocks, and
    /// never more than all requests together ask for; with what lies between rows that stand apart, as far as it comes with them.
    fn memory_bytes(&self, counts: &Counts, traffic: &[Traffic]) -> f64 {
        let all: f64 = traffic.iter().map(|t| t.compulsory).sum();
        let fits = all <= self.target.l2_bytes.value as f64;
        let of = |t: &Traffic| if fits { t.compulsory } else { t.by_waves.max(t.compulsory) };
        let once: f64 = traffic.iter().map(of).sum();
        // Of rows that stand apart device memory gives what lies beside them too.
        let given: f64 = traffic.iter().map(|t| of(t) * if fits { 1.0 } else { t.spread }).sum();
        once.min(self.requested(counts)) * if once > 0.0 { given / once } else { 1.0 }
    }

    /// How much of the lines that are asked for is not, in sectors for each that is, over all bytes that come from device memory.
    fn scattered(&self, counts: &Counts, traffic: &[Traffic]) -> f64 {
        let of = |sums: &[(String, f64)], name: &str| sums.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let missed = |t: &Traffic| {
            let (lines, sectors) = (of(&counts.lines, &t.buffer)?, of(&counts.sectors, &t.buffer)?);
            Some((4.0 * lines / sectors.max(1.0) - 1.0).clamp(0.0, 3.0) * t.compulsory)
        };
        let read = traffic.iter().filter(|t| !t.writes);
        let all: f64 = traffic.iter().map(|t| t.compulsory).sum();
        read.filter_map(missed).sum::<f64>() / all.max(1.0)
    }

    fn requested(&self, counts: &Counts) -> f64 {
        32.0 * counts.sectors.iter().map(|(_, sectors)| sectors).sum::<f64>()
    }

    fn asks(
        &self,
        launch: &Launch<'_>,
        counts: &Counts,
        traffic: &[Traffic],
        path: &Path,
        program: &Program,
        spilled: f64,
    ) -> Result<Asks, Diagnosis> {
        let c = self.constants;
        let blocks = counts.blocks.max(1.0);
        let warps = (launch.threads as f64 / f64::from(Limits::WARP)).ceil().max(1.0);
        let no_rate = |dtype: DType| {
            Diagnosis::new(format!(
                "the table of {} has no rate for multiply-adds of {dtype}",
                self.target.name
            ))
            .instead("choose another GPU, or add the rate to the file that describes it")
        };
        let dtype = program.tensors().map(|t| t.dtype).max_by_key(|d| d.bytes()).unwrap_or(DType::F32);
        let by_threads = self.rate(threads_pipe(dtype)).ok_or_else(|| no_rate(dtype))?;
        let mut arithmetic = counts.arithmetic * f64::from(Limits::WARP) / by_threads;
        for (dtype, products) in &counts.products {
            // All products of a launch are of one type and one instruction.
            let by_one_warp = counts.warpgroup_products == 0.0;
            let rate = self.matrix_rate(*dtype, by_one_warp).ok_or_else(|| no_rate(*dtype))?;
            let small = counts.small_products.min(*products) * (operations::small(self.target) - 1.0);
            arithmetic += (products + small) * operations::parts(*dtype) / rate;
        }
        // A multiprocessor looks up a line of a request at a time, and takes the addresses of as many lanes as the cache gives words.
        let given = self.target.levels.l1.bytes_per_cycle.map_or(128.0, |b| b.value);
        let lanes = (128.0 / given).round().max(1.0);
        let requests = counts.global_load_requests + counts.global_store_requests;
        let sectors = counts.global_load_sectors + counts.global_store_sectors;
        let global = counts.global_lines.max(sectors * 32.0 / given).max(requests * lanes);
        let loads = counts.shared_load_wavefronts.max(counts.shared_load_requests * lanes);
        let stores = counts.shared_store_wavefronts.max(counts.shared_store_requests * lanes);
        let shared = counts.shared_load_requests + counts.shared_store_requests;
        let spills = counts.arithmetic * spilled * SPILL;
        let instructions = counts.arithmetic
            + counts.matrix
            + requests * (1.0 + c.address)
            + shared
            + path.iterations * warps * blocks * c.turn;
        let from_l2 = self.l2_bytes(counts, traffic);
        let memory_cycles = self.memory_cycles(counts, traffic);
        let l2 = self.target.levels.l2.bytes_per_cycle.map_or(L2_BYTES, |b| b.value);
        let bandwidth = self
            .target
            .dram_read_bytes_per_second
            .map_or(self.target.dram_bytes_per_second.value * c.bandwidth, |b| b.value);
        Ok(Asks {
            blocks,
            warps,
            arithmetic: arithmetic / blocks,
            issue: instructions / f64::from(self.target.limits.sub_partitions) / blocks,
            l1: (global + loads + stores + spills) / blocks,
            stores: counts.global_store_lines * c.line / blocks,
            l2: from_l2 / l2 / blocks,
            waits: Waits {
                memory: path.memory_waits * memory_cycles * c.latency,
                barriers: path.barriers * c.barrier,
                copies: path.copies * warps * c.copy,
                loads: path.loads * c.load,
                chains: path.chains * c.chain,
            },
            memory: self.memory_bytes(counts, traffic) / bandwidth
                * (1.0 + c.scattered * self.scattered(counts, traffic)),
            launch: c.launch,
        })
    }

    fn seconds(&self, asks: &Asks) -> f64 {
        let c = self.constants;
        let sum =
            |terms: &[f64], power: f64| terms.iter().map(|t| t.powf(power)).sum::<f64>().powf(1.0 / power);
        let schedulers = f64::from(self.target.limits.sub_partitions);
        // Each scheduler has warps and pipes of its own: all wait for the one with most. What one warp does stands in a row; several
        // do different things at a time.
        let work = |blocks: f64| {
            let warps = blocks * asks.warps / schedulers;
            let uneven = warps.ceil() / warps;
            let power = 1.0 + (c.power - 1.0) * warps / (warps + c.overlap);
            let all = blocks
                * sum(&[asks.arithmetic * uneven, asks.issue * uneven, asks.l1, asks.l2, asks.stores], power);
            round(all / warps.ceil(), asks.waits.of_warps(), warps.ceil())
        };
        let round = |blocks: f64| {
            if blocks <= 0.0 {
                return 0.0;
            }
            let (one, each) = (work(1.0), work(blocks) / blocks);
            round(each, (one - each).max(0.0) + asks.waits.of_blocks(), blocks)
        };
        let busiest = self.busiest(asks.blocks);
        let whole = (busiest / self.resident).floor();
        let cycles = whole * round(self.resident) + round(busiest - whole * self.resident);
        sum(&[cycles / self.target.boost_hz(), asks.memory], c.memory_power) + asks.launch
    }
}

/// How long a multiprocessor takes for so many blocks at a time, of which each works for `work` when it has the multiprocessor to itself, and
/// waits for `waits` in pieces in between: a closed queue of one server and as many customers, by mean-value analysis (Reiser and Lavenberg,
/// J. ACM 27(2), 1980). One block takes both, many take the work of all.
fn round(work: f64, waits: f64, blocks: f64) -> f64 {
    if blocks <= 0.0 || work <= 0.0 {
        return if blocks > 0.0 { waits } else { 0.0 };
    }
    let (mut queue, mut cycle) = (0.0, 0.0);
    for customers in 1..=blocks as i64 {
        let stay = work * (1.0 + queue);
        cycle = waits + stay;
        queue = customers as f64 * stay / cycle;
    }
    cycle
}

/// The most registers that a thread can have in a block of so many threads.
fn most_registers(target: &Target, threads: i64) -> i64 {
    let warp = i64::from(Limits::WARP);
    target.limits.most_registers((threads.max(1) + warp - 1) / warp)
}

/// The pipe of multiply-adds of threads.
fn threads_pipe(dtype: DType) -> Pipe {
    if matches!(dtype, DType::F64 | DType::C128) { Pipe::F64 } else { Pipe::F32 }
}

/// The matrix units for a type.
fn matrix_pipe(dtype: DType) -> Option<Pipe> {
    match dtype {
        DType::F32 | DType::C64 => Some(Pipe::TensorTf32),
        DType::F64 | DType::C128 => Some(Pipe::TensorF64),
        DType::F16 => Some(Pipe::TensorF16),
        DType::Bf16 => Some(Pipe::TensorBf16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn blocks_hide_each_others_waits() {
        assert_eq!([round(100.0, 0.0, 1.0), round(100.0, 900.0, 1.0)], [100.0, 1000.0]);
        assert_eq!(round(100.0, 0.0, 4.0), 400.0, "without waits all work adds up");
        // Two blocks take more than one and less than both one after the other.
        let two = round(100.0, 100.0, 2.0);
        assert!((200.0..400.0).contains(&two), "{two}");
        let times: Vec<f64> = (1..=16).map(|n| round(100.0, 900.0, f64::from(n)) / f64::from(n)).collect();
        assert!(times.is_sorted_by(|a, b| a > b), "more blocks take less each: {times:?}");
        assert!(times[15] < 115.0 && times[15] >= 100.0, "and come near the work: {times:?}");
        assert_eq!([round(0.0, 5.0, 3.0), round(0.0, 5.0, 0.0), round(7.0, 5.0, 0.0)], [5.0, 0.0, 0.0]);
    }
}
