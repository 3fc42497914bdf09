//! Occupancy is what NVIDIA's own `cuda_occupancy.h` says, on more than a million random kernels.
//!
//! The header comes with the Python wheel `nvidia-cuda-runtime` and is none of ours, so the test needs to be told where
//! it is, by the environment variable `WARPWRIGHT_CUDA_OCCUPANCY`, and a C compiler (`CC`, or `cc`). Without the variable
//! the test says so and passes; with it, as in continuous integration, everything has to be there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use warpwright_core::occupancy::{Demand, Occupancy, Resource};
use warpwright_core::target::Limits;

/// Random kernels for each compute capability.
const KERNELS: usize = 50_000;

/// Compute capabilities of our table that the header does not know.
const UNKNOWN: &[&str] = &["2.0", "2.1"];

/// `struct question` and `struct answer` of `cuda_occupancy.c`.
type Question = [i32; 16];
type Answer = [i32; 10];

#[test]
fn occupancy_is_what_nvidias_header_says() {
    let Some(header) = std::env::var_os("WARPWRIGHT_CUDA_OCCUPANCY").map(PathBuf::from) else {
        println!("skipped: WARPWRIGHT_CUDA_OCCUPANCY does not name cuda_occupancy.h of nvidia-cuda-runtime");
        return;
    };
    assert!(header.is_file(), "WARPWRIGHT_CUDA_OCCUPANCY names {}, which is no file", header.display());
    let directory = std::env::temp_dir().join(format!("warpwright-occupancy-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let oracle = compiled(&header, &directory);

    let mut random = fastrand::Rng::with_seed(20261126);
    let (mut compared, mut unknown) = (0, Vec::new());
    for limits in Limits::all() {
        let demands: Vec<Drawn> = (0..KERNELS).map(|_| Drawn::new(limits, &mut random)).collect();
        let questions: Vec<Question> = demands.iter().map(|d| d.question(limits)).collect();
        let answers = answers(&oracle, &questions, &directory);
        if answers.iter().all(|a| a[0] == UNKNOWN_DEVICE) {
            unknown.push(limits.compute.to_string());
            continue;
        }
        for (drawn, answer) in demands.iter().zip(&answers) {
            let ours = our_answer(&Occupancy::of(&drawn.demand, limits));
            assert_eq!(ours, *answer, "{}: {drawn:?}", limits.compute);
            compared += 1;
        }
        let resident = answers.iter().filter(|a| a[1] > 0).count();
        assert!(3 * resident > KERNELS, "{}: only {resident} kernels can be launched at all", limits.compute);
    }
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(unknown, UNKNOWN);
    assert!(compared > 1_000_000, "{compared} kernels were compared");
    println!("{compared} random kernels: no difference");
}

/// `CUDA_OCC_ERROR_UNKNOWN_DEVICE`.
const UNKNOWN_DEVICE: i32 = 2;

/// A kernel, and the preference of caches by which older GPUs choose what newer ones choose by per cent.
#[derive(Debug)]
struct Drawn {
    demand: Demand,
    cache: i32,
}

/// `CACHE_PREFER_NONE`, `_SHARED`, `_L1` and `_EQUAL`.
const CACHES: [i32; 4] = [0, 1, 2, 3];

impl Drawn {
    fn new(limits: &Limits, random: &mut fastrand::Rng) -> Drawn {
        let threads = match random.u32(..8) {
            0 => random.u32(1..=1100),
            1..=3 => 32 * random.u32(1..=8),
            _ => 32 * random.u32(1..=32),
        };
        let most = if random.bool() { 64 } else { 255 };
        let registers = random.u32(0..=limits.registers_per_thread.min(most));
        let shared = match random.u32(..8) {
            0 => 0,
            1..=3 => random.u32(0..=16 << 10),
            4 => random.u32(0..=limits.shared_per_block_opt_in + 2048),
            // At the edges: the 48 KiB of everybody, a unit more or less, and what the system keeps.
            5 => (48 << 10) + random.u32(0..=4096) - 2048,
            6 => 128 * random.u32(0..=limits.shared_per_block_opt_in / 128),
            _ => random.u32(0..=48 << 10),
        };
        let shared_static = if random.bool() { random.u32(0..=shared) } else { 0 };
        let barriers = if random.bool() { 1 } else { random.u32(0..=16) };
        let (carveout, cache) = Drawn::split(limits, random);
        let demand = Demand {
            threads,
            registers,
            shared_static,
            shared_dynamic: shared - shared_static,
            barriers,
            opted_in: random.u32(..4) > 0,
            carveout,
        };
        Drawn { demand, cache }
    }

    /// A preferred split in per cent and in the older way.
    fn split(limits: &Limits, random: &mut fastrand::Rng) -> (Option<u32>, i32) {
        let percent = random.u32(0..=100);
        if limits.compute.major >= 7 {
            return if random.bool() { (Some(percent), 0) } else { (None, 0) };
        }
        // On Kepler a preference is one of three steps, which a percentage of the largest has to land on.
        let steps: Vec<u32> = limits.shared_carveouts_kib.to_vec();
        let landing = |kib: u32| Some(100 * kib / limits.shared_per_sm.div_ceil(1024));
        let cache = CACHES[random.usize(..4)];
        match (steps.as_slice(), cache) {
            ([low, _, _], 2) => (landing(*low), cache),
            ([_, middle, _], 3) => (landing(*middle), cache),
            _ => (None, cache),
        }
    }

    fn question(&self, limits: &Limits) -> Question {
        let demand = &self.demand;
        [
            limits.compute.major.into(),
            limits.compute.minor.into(),
            signed(limits.threads_per_sm()),
            signed(limits.registers_per_block),
            signed(limits.registers_per_sm),
            signed(limits.shared_per_sm),
            signed(limits.shared_per_block_opt_in),
            signed(limits.shared_reserved_per_block),
            signed(demand.threads),
            signed(demand.registers),
            signed(demand.shared_static),
            signed(demand.shared_dynamic),
            signed(demand.barriers),
            i32::from(demand.opted_in),
            demand.carveout.filter(|_| limits.compute.major >= 7).map_or(-1, signed),
            self.cache,
        ]
    }
}

/// Our answer in the header's form: no limit is the largest number.
fn our_answer(ours: &Occupancy) -> Answer {
    let allows = |resource: Resource| ours.limit(resource).blocks.map_or(i32::MAX, signed);
    let bit = |resource: Resource| match resource {
        Resource::Warps => 0x01,
        Resource::Registers => 0x02,
        Resource::SharedMemory => 0x04,
        Resource::Blocks => 0x08,
        Resource::Barriers => 0x10,
    };
    // Where barriers allow the fewest blocks, the header goes on naming what would limit them otherwise.
    let others = ours.limits.iter().filter(|l| l.resource != Resource::Barriers);
    let least = others.clone().filter_map(|l| l.blocks).min();
    let mut named: Vec<Resource> = others.filter(|l| l.blocks == least).map(|l| l.resource).collect();
    named.extend(ours.limiters().filter(|r| *r == Resource::Barriers));
    let taken = |resource: Resource| i32::try_from(ours.limit(resource).per_block).unwrap();
    [
        0,
        signed(ours.blocks),
        allows(Resource::Warps),
        allows(Resource::Registers),
        allows(Resource::SharedMemory),
        allows(Resource::Blocks),
        allows(Resource::Barriers),
        named.into_iter().map(bit).sum(),
        taken(Resource::Registers),
        taken(Resource::SharedMemory),
    ]
}

fn signed(value: u32) -> i32 {
    i32::try_from(value).unwrap()
}

/// The program that answers by the header.
fn compiled(header: &Path, directory: &Path) -> PathBuf {
    let oracle = directory.join("oracle");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let status = Command::new(&compiler)
        .args(["-O2", "-std=gnu11", "-I"])
        .arg(header.parent().unwrap())
        .arg("-o")
        .arg(&oracle)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cuda_occupancy.c"))
        .status()
        .unwrap_or_else(|e| panic!("the C compiler {compiler} cannot be run: {e}; name another one by CC"));
    assert!(status.success(), "{compiler} does not compile cuda_occupancy.c");
    oracle
}

fn answers(oracle: &Path, questions: &[Question], directory: &Path) -> Vec<Answer> {
    let (asked, told) = (directory.join("questions"), directory.join("answers"));
    let bytes: Vec<u8> = questions.iter().flatten().flat_map(|n| n.to_ne_bytes()).collect();
    fs::write(&asked, bytes).unwrap();
    let status = Command::new(oracle)
        .stdin(Stdio::from(File::open(&asked).unwrap()))
        .stdout(Stdio::from(File::create(&told).unwrap()))
        .status()
        .unwrap();
    assert!(status.success());
    let bytes = fs::read(&told).unwrap();
    let (answers, rest) = bytes.as_chunks::<{ size_of::<Answer>() }>();
    assert!(rest.is_empty() && answers.len() == questions.len());
    let number = |four: &[u8; 4]| i32::from_ne_bytes(*four);
    answers.iter().map(|a| std::array::from_fn(|i| number(&a.as_chunks::<4>().0[i]))).collect()
}
