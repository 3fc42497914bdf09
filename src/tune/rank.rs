//! How long a choice should take: a model that ranks candidates before any is compiled.
//!
//! A family says what a choice asks of a GPU ([`Footprint`]); the GPU's table says how fast it gives that. Eight terms are
//! worked out, each in seconds and each as if it were alone:
//!
//! - `memory`: bytes over the bandwidth of device memory;
//! - `arithmetic`: multiply-adds, those of tiles over the edge included, over the rate of their pipe;
//! - `cache`: passes through the first-level cache or shared memory, one a clock and multiprocessor;
//! - `issue`: instructions of warps, one a clock and scheduler;
//! - `latency`: the steps of a block one after the other, each with a wait for memory, times the rounds in which the
//!   blocks are resident (Little's law, read the other way round);
//! - `meetings`: what threads that copy together wait for each other, less where a multiprocessor has several such teams, and what blocks that have little
//!   on their way compute meanwhile;
//! - `start`: what each block loads, load after load, before its first step;
//! - `launch`: what the launches themselves take.
//!
//! The last three are added to the rest. The first four are stretched where blocks do not fill the multiprocessors evenly, the second where few warps are
//! resident to keep a pipe busy, and the second and fourth where the schedulers have unlike numbers of them. Terms
//! overlap, but near a tie they disturb each other: the sum is of high powers, not the greatest of them. The numbers
//! rank; none is a promise.

use serde::Serialize;
use warpwright_core::dtype::DType;
use warpwright_core::occupancy::blocks_per_sm;
use warpwright_core::target::{Limits, Pipe, Target};

use crate::kernels::family::{Choice, Family, Footprint};
use crate::problem::{Precision, Problem};

/// The part of a pipe's peak at the boost clock that large products reach: cuBLAS on one H200, 56.4 of 67 TFLOP/s in
/// f64 and 53.6 of 67 in f32, 2026-11-21.
const SUSTAINED: f64 = 0.82;
/// The part of the vendor's bandwidth that a kernel which reads and writes reaches by blocks that stay on their multiprocessors: 4069 of
/// 4800 GB/s on one H200, 2026-11-21.
const REACHED: f64 = 0.85;
/// Seconds from a load of device memory to its use under load. Idle it is 350 ns at 1980 MHz (gpu-benches, gpu-latency,
/// GH200). Fitted, as are the registers in the footprints of the forms by threads, on 47 kernels of another generator
/// with the same mappings (tsmgen, the best found for each width from 1 to 64 in f64 and c128 on one H200, 2026-11-21):
/// the model's times are those that were measured in the geometric mean, with a spread of a factor of 1.3. The forms
/// with matrix units and with staging in shared memory are not in that fit.
const MEMORY_LATENCY: f64 = 500e-9;
/// How many times as long as by the rate of large products the matrix units take. Fitted with what searches tried of both
/// families at 255 problems of width 1 to 128, four types (24 605 candidates, one H200, 2026-11-22), before there were meetings.
const BY_MATRIX_UNITS: f64 = 1.16;
/// Likewise of the pipes of threads if `warps` resident warps feed them: `least (1 + half / warps)`. These, the cycles of an
/// instruction, the part of a wait that copies made ahead leave, the time of a meeting, and what small copies and lone stores
/// take in the footprints are fitted together on what searches tried at 113 problems that take 40 us or more (8094 candidates,
/// widths 4 to 126, four types, most of them widths that no tile divides; H200s, 2026-11-22, night). The best of the first 12 by the model is slower than
/// the best that was tried by 2.3 % in the geometric mean, the best of the first 4 by 7.8 %; by the model without meetings and small copies, 7.2 and
/// 15 %. All are in the fit.
const BY_THREADS: [f64; 2] = [0.34, 24.0];
/// How fast what one warp of a scheduler lacks vanishes with more of them, where a family says what that is: a power. Fitted with the
/// constants of `kernels/tiled/footprint.rs`.
const LESS_LONELY: f64 = 2.2;
/// Cycles of a scheduler for each instruction.
const ISSUE: f64 = 1.3;
/// The part of a wait for memory that is left to a step whose data were asked for steps before.
const AHEAD: f64 = 0.42;
/// Seconds of a meeting of threads that copy together: they wait for the last of them and for their copies, and then all ask
/// for the next, while none of them multiplies.
const MEETING: f64 = 0.42e-6;
/// Seconds of a load of those before the first step, of which up to 32 are on their way together: about a latency of memory for so many.
/// Chosen, not fitted.
const START: f64 = 0.03e-6;
/// Seconds that a launch in a graph takes besides its work. An estimate, not fitted yet.
const LAUNCH: f64 = 1.5e-6;
/// By what part each spilled register lengthens the passes through the first-level cache. Chosen, not fitted.
const SPILL: f64 = 0.05;
/// The power in the sum of the terms. Chosen, not fitted: at 6, two equal terms cost 12 % more than one.
const POWER: f64 = 6.0;

/// The terms of the model, each as if it were alone, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Terms {
    /// The traffic with device memory.
    pub memory: f64,
    /// The multiply-adds.
    pub arithmetic: f64,
    /// Passes through the first-level cache and shared memory.
    pub cache: f64,
    /// To issue the instructions.
    pub issue: f64,
    /// The waits for memory, one after the other.
    pub latency: f64,
    /// What threads that copy together wait for each other, and what blocks that have little on their way compute meanwhile.
    pub meetings: f64,
    /// The loads before the first step.
    pub start: f64,
    /// The launches.
    pub launch: f64,
}

/// One of them, for people and programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it is, as a person reads it.
    pub about: &'static str,
    /// Seconds.
    pub seconds: f64,
}

impl Terms {
    /// All of them, in the order of the module's list.
    pub fn all(&self) -> [Term; 8] {
        let term = |name, about, seconds| Term { name, about, seconds };
        [
            term("memory", "traffic with device memory", self.memory),
            term("arithmetic", "multiply-adds", self.arithmetic),
            term("cache", "passes through cache and shared memory", self.cache),
            term("issue", "issue of instructions", self.issue),
            term("latency", "waits for memory", self.latency),
            term("meetings", "meetings of threads", self.meetings),
            term("start", "loads before the first step", self.start),
            term("launch", "launches", self.launch),
        ]
    }

    /// The greatest: what bounds the choice.
    pub fn limiter(&self) -> Term {
        let nothing = Term { name: "nothing", about: "nothing", seconds: 0.0 };
        self.all()
            .into_iter()
            .fold(nothing, |most, term| if term.seconds > most.seconds { term } else { most })
    }
}

/// What the model says of a choice: seconds, and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Seconds of one product.
    pub seconds: f64,
    /// Where they go.
    #[serde(flatten)]
    pub terms: Terms,
    /// Warps resident on a multiprocessor.
    pub warps: f64,
    /// Rounds in which the blocks are resident.
    pub rounds: f64,
    /// How much longer the slowest multiprocessor has to do than the mean.
    pub imbalance: f64,
}

/// The model's estimate of a choice, or `None` where not one block fits on a multiprocessor, or the GPU's table has no
/// rate for the arithmetic.
pub fn estimate(family: &Family, problem: &Problem, choice: &Choice, target: &Target) -> Option<Estimate> {
    of_footprint(&(family.footprint)(problem, choice, target), problem, target)
}

/// The same from what the choice asks of the GPU.
pub fn of_footprint(footprint: &Footprint, problem: &Problem, target: &Target) -> Option<Estimate> {
    let Footprint { threads, shared_bytes, .. } = *footprint;
    // The compiler spills what does not fit, so that a block can run at all.
    let registers = footprint.registers.min(most_registers(target, threads));
    let spilled = (footprint.registers - registers) as f64;
    let resident = blocks_per_sm(target, threads, registers, shared_bytes) as f64;
    let rate = target.fma_per_second(pipe(problem.precision, footprint.matrix_units)?)? * SUSTAINED;
    if resident < 1.0 {
        return None;
    }
    let multiprocessors = f64::from(target.sm_count.value);
    let clock = target.boost_hz() * SUSTAINED;
    let blocks = footprint.blocks.max(1.0);
    let at_once = resident * multiprocessors;
    let rounds = (blocks / at_once).ceil();
    // Few blocks leave multiprocessors idle; in the last round some are.
    let busiest = if blocks <= at_once {
        (blocks / multiprocessors).ceil()
    } else {
        (rounds - 1.0) * resident + ((blocks - (rounds - 1.0) * at_once) / multiprocessors).ceil()
    };
    let imbalance = busiest * multiprocessors / blocks;
    let over = |amount: f64, rate: f64| amount / rate * imbalance;
    let warps =
        resident.min(blocks / multiprocessors).max(1.0) * (threads as f64 / f64::from(Limits::WARP)).ceil();
    // Each scheduler has pipes of its own, which are idle where others have a warp more. Matrix units wait for the
    // slowest; of threads, which meet seldom, half of that is seen.
    let schedulers = f64::from(target.limits.sub_partitions);
    let by_warps = (warps / schedulers).ceil() * schedulers / warps;
    // What a family says of it counts: of 30 problems with a warp that only asks for copies (4073 times, H200s, 2026-11-26) the best of
    // the first eight is 3.3 % slower than the best tried, and 14.1 % by the number of warps.
    let uneven = footprint.uneven.unwrap_or(by_warps);
    let (uneven, fed) = if footprint.matrix_units {
        (uneven, BY_MATRIX_UNITS)
    } else {
        let [least, half] = BY_THREADS;
        let by_number = least * (1.0 + half / warps);
        let of = |lonely: f64| 1.0 + lonely / (warps / schedulers).powf(LESS_LONELY);
        (uneven.sqrt(), footprint.lonely.map_or(by_number, of))
    };
    let memory = footprint.dram_bytes / bandwidth(footprint, problem, target);
    let arithmetic = over(footprint.multiply_adds, rate) * fed * uneven;
    let cache = over(footprint.wavefronts, clock * multiprocessors) * (1.0 + spilled * SPILL);
    let multiply_adds = if footprint.matrix_units { 0.0 } else { footprint.multiply_adds / 32.0 };
    let uneven = if footprint.matrix_units { 1.0 } else { uneven };
    let issue =
        over(footprint.instructions + multiply_adds, clock * multiprocessors * schedulers) * ISSUE * uneven;
    // What a block itself does in a step, where the next step's data is not on its way meanwhile.
    let own = arithmetic.max(issue).max(cache) / (rounds * footprint.steps.max(1.0)) / resident;
    // Where it is not, a team computes what is its own, and others have theirs on the way.
    let own_of_team = own / footprint.teams.max(1) as f64;
    let step = if footprint.overlaps { MEMORY_LATENCY.max(own) } else { MEMORY_LATENCY + own_of_team };
    let latency = rounds * footprint.steps * step * if footprint.ahead { AHEAD } else { 1.0 };
    let launch = footprint.launches as f64 * LAUNCH;
    let start = rounds * footprint.start * START;
    let powers: f64 = [memory, arithmetic, cache, issue, latency].iter().map(|t| t.powf(POWER)).sum();
    // While one team meets, the others go on.
    let beside = resident.min(blocks / multiprocessors).max(1.0);
    let teams = beside * footprint.teams.max(1) as f64;
    let bare = footprint.bare * arithmetic.max(cache).max(issue) / beside;
    let meetings = rounds * footprint.meetings * MEETING / teams + bare;
    Some(Estimate {
        seconds: powers.powf(1.0 / POWER) + meetings + start + launch,
        terms: Terms { memory, arithmetic, cache, issue, latency, meetings, start, launch },
        warps,
        rounds,
        imbalance,
    })
}

/// The most registers that a thread can have in a block of so many threads.
fn most_registers(target: &Target, threads: i64) -> i64 {
    let warp = i64::from(Limits::WARP);
    target.limits.most_registers((threads.max(1) + warp - 1) / warp)
}

/// Bytes per second of device memory: what a plain read reaches where somebody measured that and little is written.
fn bandwidth(footprint: &Footprint, problem: &Problem, target: &Target) -> f64 {
    let (rows, columns) = problem.stored_c();
    let written = rows as f64 * columns as f64 * problem.result_dtype().bytes() as f64;
    match target.dram_read_bytes_per_second {
        Some(read) if written < 0.1 * footprint.dram_bytes => read.value,
        _ => target.dram_bytes_per_second.value * REACHED,
    }
}

/// The pipe that does the multiply-adds.
fn pipe(precision: Precision, matrix_units: bool) -> Option<Pipe> {
    Some(match (precision, matrix_units) {
        (Precision::Tf32 | Precision::Of(DType::F32 | DType::C64), true) => Pipe::TensorTf32,
        (Precision::Of(DType::F64 | DType::C128), true) => Pipe::TensorF64,
        (Precision::Of(DType::F64 | DType::C128), false) => Pipe::F64,
        (Precision::Of(DType::F16) | Precision::Widened(DType::F16), true) => Pipe::TensorF16,
        (Precision::Of(DType::Bf16) | Precision::Widened(_), true) => Pipe::TensorBf16,
        (_, true) => return None,
        (_, false) => Pipe::F32,
    })
}

#[cfg(test)]
mod tests {
    use super::{Estimate, MEETING, MEMORY_LATENCY, estimate, most_registers, of_footprint};
    use crate::kernels;
    use crate::kernels::family::{Choice, Footprint, parse_parameter};
    use crate::problem::Problem;
    use warpwright_core::occupancy::blocks_per_sm;
    use warpwright_core::target::{self, Target};

    fn problem(shape: &str, dtype: &str, layout: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
    }

    /// A kernel that only streams: everything but traffic is negligible.
    const STREAM: Footprint = Footprint {
        blocks: 132.0 * 8.0,
        threads: 256,
        registers: 32,
        shared_bytes: 0,
        multiply_adds: 1e6,
        matrix_units: false,
        dram_bytes: 4e9,
        wavefronts: 1e6,
        instructions: 1e6,
        steps: 10.0,
        start: 0.0,
        overlaps: true,
        ahead: false,
        meetings: 0.0,
        teams: 1,
        bare: 0.0,
        launches: 1,
        uneven: None,
        lonely: None,
    };

    #[test]
    fn matrix_units_wait_for_the_fullest_scheduler() {
        let seven = Footprint {
            threads: 7 * 32,
            multiply_adds: 1e12,
            matrix_units: true,
            blocks: 132.0,
            shared_bytes: 200 << 10,
            ..STREAM
        };
        let arithmetic = |uneven: Option<f64>| of(Footprint { uneven, ..seven }).terms.arithmetic;
        assert!((arithmetic(None) / arithmetic(Some(1.0)) - 8.0 / 7.0).abs() < 1e-12);
        assert!((arithmetic(Some(1.01)) / arithmetic(Some(1.0)) - 1.01).abs() < 1e-12);
    }

    fn of(footprint: Footprint) -> Estimate {
        let h200 = Target::by_name("h200").unwrap();
        of_footprint(&footprint, &problem("8x8x1000000", "f64", "tn"), h200).unwrap()
    }

    #[test]
    fn each_term_bounds_the_kernel_that_asks_for_it_most() {
        let stream = of(STREAM);
        assert_eq!(stream.terms.limiter().about, "traffic with device memory");
        assert!((stream.seconds / (4e9 / 4552e9) - 1.0).abs() < 0.03, "{stream:?}");
        let limiter = |footprint| of(footprint).terms.limiter().about;
        assert_eq!(limiter(Footprint { meetings: 3e4, ..STREAM }), "meetings of threads");
        assert_eq!(limiter(Footprint { multiply_adds: 1e12, matrix_units: true, ..STREAM }), "multiply-adds");
        assert_eq!(
            limiter(Footprint { wavefronts: 1e10, ..STREAM }),
            "passes through cache and shared memory"
        );
        assert_eq!(limiter(Footprint { instructions: 1e10, ..STREAM }), "issue of instructions");
        assert_eq!(limiter(Footprint { steps: 1e4, ..STREAM }), "waits for memory");
        assert_eq!(limiter(Footprint { start: 1e5, ..STREAM }), "loads before the first step");
        assert_eq!(
            limiter(Footprint { dram_bytes: 1.0, steps: 1.0, wavefronts: 1.0, launches: 3, ..STREAM }),
            "launches"
        );
    }

    #[test]
    fn idle_multiprocessors_and_last_rounds_cost() {
        let busy = Footprint { multiply_adds: 1e12, ..STREAM };
        let seconds = |blocks: f64| of(Footprint { blocks, ..busy }).seconds;
        assert!(seconds(66.0) > 1.9 * seconds(132.0), "half of the multiprocessors are idle");
        assert!(seconds(133.0) > 1.9 * seconds(132.0), "one has twice as much to do");
        assert!(seconds(132.0 * 80.0 + 1.0) < 1.05 * seconds(132.0 * 80.0), "many rounds level out");
    }

    #[test]
    fn sectors_written_in_part_and_copies_in_small_pieces_cost() {
        let h200 = Target::by_name("h200").unwrap();
        let of = |family: &str, p: &Problem, form: &str| {
            let family = kernels::family(family).unwrap();
            let words = form.split(',').map(|word| parse_parameter(word).unwrap());
            let given = words.fold(Choice::default(), |c, (name, value)| c.with(name, value));
            let choice = family.complete(&given, p, h200).unwrap_or_else(|d| panic!("{form}: {d}"));
            estimate(family, p, &choice, h200).unwrap()
        };
        // Measured on an H200 (2026-11-22): 31 wide 0.28 of the roofline, 32 wide 0.91.
        let tile =
            "staging=shared,team=part,store=direct,piece=4,tm=4,tn=8,wm=8,wn=1,stages=2,steps=1,blocks=264";
        let [odd, whole] =
            ["4000000x31x31", "4000000x32x32"].map(|s| of("tsmm", &problem(s, "f32", "nn"), tile));
        assert!(odd.seconds > 2.0 * whole.seconds, "{odd:?} {whole:?}");
        let p = problem("33x33x4000000", "f32", "tn");
        let form = "unit=fma,staging=shared,block=128,tm=11,tn=11,depth=112,stages=2";
        let [one, rows] = ["one", "rows"].map(|copy| of("tsmttsm", &p, &format!("{form},copy={copy}")));
        assert!(rows.terms.cache > 1.3 * one.terms.cache, "{one:?} {rows:?}");
    }

    #[test]
    fn teams_that_meet_each_for_itself_wait_less() {
        // One block of 256 threads on each multiprocessor: as one team, and as four.
        let alone = Footprint { blocks: 132.0, shared_bytes: 200 << 10, meetings: 400.0, teams: 1, ..STREAM };
        let (one, four) = (of(alone), of(Footprint { teams: 4, ..alone }));
        assert!(
            (one.terms.meetings - 400.0 * MEETING).abs() < 1e-12
                && four.terms.meetings == one.terms.meetings / 4.0
        );
        assert!((one.seconds - four.seconds - 0.75 * one.terms.meetings).abs() < 1e-12);
        let two = of(Footprint { blocks: 264.0, shared_bytes: 100 << 10, ..alone });
        assert_eq!(two.terms.meetings, one.terms.meetings / 2.0, "two blocks on each");
    }

    #[test]
    fn teams_whose_data_is_not_on_its_way_compute_one_while_others_wait() {
        let alone = Footprint { blocks: 132.0, shared_bytes: 200 << 10, overlaps: false, ..STREAM };
        let (one, four) = (of(alone), of(Footprint { teams: 4, ..alone }));
        let waits = alone.steps * MEMORY_LATENCY;
        let own = one.terms.latency - waits;
        assert!(own > 0.0 && (four.terms.latency - waits - own / 4.0).abs() < 1e-12);
        // Where it is on its way, what a block computes is all of it.
        let ahead = Footprint { overlaps: true, ..alone };
        assert_eq!(of(ahead).terms.latency, of(Footprint { teams: 4, ..ahead }).terms.latency);
    }

    #[test]
    fn fewer_resident_warps_hide_less() {
        let waiting = Footprint { steps: 2000.0, blocks: 132.0 * 64.0, ..STREAM };
        let crowded = of(waiting).terms.latency;
        assert!(of(Footprint { registers: 128, ..waiting }).terms.latency > 3.0 * crowded);
        let spilling = Footprint { registers: 300, wavefronts: 1e9, ..STREAM };
        assert!(of(spilling).terms.cache > 2.0 * of(Footprint { registers: 255, ..spilling }).terms.cache);
        let h200 = Target::by_name("h200").unwrap();
        let p = problem("8x8x1000000", "f64", "tn");
        assert!(of_footprint(&Footprint { shared_bytes: 300 << 10, ..STREAM }, &p, h200).is_none());
    }

    #[test]
    fn a_block_that_the_compiler_can_make_fit_has_an_estimate() {
        let h200 = Target::by_name("h200").unwrap();
        for threads in [32, 96, 128, 160, 288, 320, 352, 384, 512, 768, 1024] {
            let most = most_registers(h200, threads);
            assert!(blocks_per_sm(h200, threads, most, 0) >= 1, "{threads} threads of {most}");
            assert!(most == 255 || blocks_per_sm(h200, threads, most + 8, 0) == 0, "{threads}: more fit");
        }
        assert_eq!(most_registers(h200, 320), 168, "10 warps are dealt out as 3, 3, 2 and 2");
    }

    #[test]
    fn every_usual_choice_has_an_estimate_not_below_its_roofline() {
        for (shape, layout) in [
            ("1x1x10000000", "tn"),
            ("64x64x1000000", "tn"),
            ("17x5x1000", "tn"),
            ("1000000x64x64", "nn"),
            ("9000x3x7", "nn"),
        ] {
            for dtype in ["f32", "f64", "c64", "c128"] {
                let p = problem(shape, dtype, layout);
                let family = kernels::FAMILIES.iter().find(|f| (f.fixed)(&p).is_ok()).unwrap();
                let choice = family.complete(&Choice::default(), &p, target::DEFAULT).unwrap();
                let modelled = estimate(family, &p, &choice, target::DEFAULT).unwrap();
                let roofline = crate::roofline::Roofline::of(&p, target::DEFAULT).unwrap();
                assert!(modelled.seconds > roofline.memory_seconds, "{shape} {dtype}: {modelled:?}");
                assert!(
                    modelled.seconds < 1e4 * roofline.seconds().max(1e-6),
                    "{shape} {dtype}: {modelled:?}"
                );
            }
        }
    }
}
