//! Why a kernel takes as long as it does, and what would change it, without running it.
//!
//! [`Explanation::of`] asks the model for the time of a kernel on a problem and a GPU and makes of it what a profiler would show:
//! the speed of light, what warps wait for, where the bytes go, which accesses take more than they need, how full the multiprocessors are;
//! and it tries edits of the schedule one by one. What of it is said in which words, and drawn how, is in modules of its own:
//!
//! - [`subject`]: what is explained;
//! - [`limits`]: parts of the time, stalls, the limiter in a sentence;
//! - [`findings`]: what is worth saying, under Nsight Compute's names;
//! - [`pictures`]: a request as 32 lanes over sectors or banks;
//! - [`edits`], [`suggestions`]: edits of a schedule, and which of them help;
//! - [`sass`]: the instructions that the compiler makes, where somebody asks for them;
//! - [`measure`]: the same kernels on a GPU, where there is one;
//! - [`text`], [`page`]: all of it for people.
//!
//! Every number is modelled but for those of [`sass`], which are counted in machine code, and those of [`measure`].

pub mod edits;
pub mod findings;
pub mod limits;
pub mod measure;
pub mod page;
pub mod pictures;
pub mod sass;
pub mod subject;
pub mod suggestions;
pub mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::model::count::Counts;
use warpwright_core::model::sites::{self, Memory, Site};
use warpwright_core::model::time::{LaunchTime, Terms, Time};
use warpwright_core::occupancy::Demand;
use warpwright_core::target::Target;

use self::edits::Facts;
use self::findings::Finding;
use self::limits::{Stall, Throughput};
use self::measure::Measured;
use self::sass::Machine;
use self::subject::Subject;
use self::suggestions::Suggestion;
use crate::kernels::family::Choice;
use crate::modelled;
use crate::problem::Problem;
use crate::report::occupancy::OccupancyReport;
use crate::report::{ChosenBy, Kind, ProblemReport, tflops};
use crate::roofline::{Bandwidths, Ceilings, Roofline, compulsory_bytes};

/// Values by the names of the model's terms, in seconds or as shares.
pub type ByTerm = BTreeMap<&'static str, f64>;

/// What is to be said of a kernel: the JSON of `explain`. Times are in seconds.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// What would be computed.
    pub problem: ProblemReport,
    /// On which GPU.
    pub gpu: &'static str,
    /// By what.
    pub kernel: KernelPart,
    /// How the numbers came about, where nothing else is said: by the model.
    pub kind: Kind,
    /// The time of one product.
    pub seconds: f64,
    /// The rate that follows, in 10^12 operations a second.
    pub tflops: f64,
    /// What the time is made of, each as if it were alone.
    pub terms: ByTerm,
    /// By how much the time would be shorter without each, in parts of all such gains.
    pub shares: ByTerm,
    /// The term with the greatest share.
    pub limiter: &'static str,
    /// The same in a sentence.
    pub because: String,
    /// Compute and memory, and what they are made of.
    pub speed_of_light: Vec<Throughput>,
    /// What warps wait for.
    pub stalls: Vec<Stall>,
    /// The bounds of the problem; null where the GPU's table has no rate for the type.
    pub roofline: Option<RooflinePart>,
    /// The launches.
    pub launches: Vec<LaunchPart>,
    /// What is worth saying.
    pub findings: Vec<Finding>,
    /// How many edits of the schedule were tried.
    pub edits_tried: usize,
    /// Those that help, best first.
    pub suggestions: Vec<Suggestion>,
    /// What the compiler makes of it; null where it was not asked.
    pub machine_code: Option<Vec<Machine>>,
    /// What a GPU took; null where there was none.
    pub measured: Option<Measured>,
}

/// The kernel.
#[derive(Debug, Serialize)]
pub struct KernelPart {
    /// Its name.
    pub name: String,
    /// Its family.
    pub family: String,
    /// The parameters of the family.
    pub parameters: Choice,
    /// Who chose it.
    pub chosen_by: ChosenBy,
    /// Its steps; null for a program from a file.
    pub schedule: Option<String>,
    /// The program as threads run it: the text in whose lines findings are.
    pub program: String,
}

/// The least time of the problem, and where the kernel stands.
#[derive(Clone, Debug, Serialize)]
pub struct RooflinePart {
    /// The larger of the two bounds, in seconds.
    pub seconds: f64,
    /// Which it is: `memory` or `arithmetic`.
    pub limiter: &'static str,
    /// Real operations of the product.
    pub flops: f64,
    /// Operations a second that the GPU reaches.
    pub flops_per_second: f64,
    /// Bytes a second that it reads or copies.
    pub bytes_per_second: f64,
    /// Bytes that every kernel has to move.
    pub compulsory_bytes: f64,
    /// Bytes that this one moves.
    pub actual_bytes: f64,
    /// Operations for each byte that has to move.
    pub compulsory_intensity: f64,
    /// Operations for each byte that does.
    pub actual_intensity: f64,
}

/// A launch.
#[derive(Debug, Serialize)]
pub struct LaunchPart {
    /// Its time.
    pub seconds: f64,
    /// What it is made of.
    pub terms: ByTerm,
    /// Blocks.
    pub blocks: f64,
    /// Threads of a block.
    pub threads: i64,
    /// Bytes of shared memory of a block.
    pub shared_bytes: i64,
    /// Registers of a thread.
    pub registers: i64,
    /// Whether these are an estimate, and not the compiler's.
    pub registers_estimated: bool,
    /// Rounds in which the busiest multiprocessor takes its blocks.
    pub rounds: f64,
    /// How many times the mean it has to do.
    pub imbalance: f64,
    /// How full multiprocessors are.
    pub occupancy: OccupancyReport,
    /// What a profiler would count.
    pub counters: CountersPart,
    /// Bytes from and to device memory.
    pub memory_bytes: f64,
    /// Where they go.
    pub traffic: Vec<TrafficPart>,
    /// Each access, in the order of the text.
    pub accesses: Vec<AccessPart>,
}

/// What a profiler would count of a launch, as compilers make it. Sums over all blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "they are those of the model's Counts")]
pub struct CountersPart {
    pub kind: Kind,
    pub global_load_requests: f64,
    pub global_load_sectors: f64,
    pub global_store_requests: f64,
    pub global_store_sectors: f64,
    pub shared_load_requests: f64,
    pub shared_load_wavefronts: f64,
    pub shared_store_requests: f64,
    pub shared_store_wavefronts: f64,
    pub multiply_adds: f64,
    pub barriers: f64,
}

/// The bytes of a buffer.
#[derive(Clone, Debug, Serialize)]
pub struct TrafficPart {
    /// The buffer.
    pub buffer: String,
    /// Bytes that are touched at all.
    pub compulsory: f64,
    /// Bytes from or to device memory, if the second-level cache keeps what a wave of blocks shares.
    pub device_memory: f64,
    /// Bytes from or to the second-level cache, if each block fetches nothing twice.
    pub second_level_cache: f64,
    /// Bytes of the sectors that requests ask for.
    pub requested: f64,
}

/// An access.
#[derive(Clone, Debug, Serialize)]
pub struct AccessPart {
    /// The line of the program.
    pub line: usize,
    /// What stands there.
    pub statement: String,
    /// The buffer.
    pub buffer: String,
    /// `device` or `shared`.
    pub memory: &'static str,
    /// Whether it is written.
    pub writes: bool,
    /// Requests of warps.
    pub requests: f64,
    /// Sectors or wavefronts of a request.
    pub passes_per_request: f64,
    /// The least that would do.
    pub least_per_request: f64,
    /// Whether that is a finding.
    pub wasteful: bool,
    /// The byte addresses of the lanes of one request, from the start of the buffer; null where a lane is idle.
    pub lanes: Option<Vec<Option<i64>>>,
    /// Bytes that each lane accesses.
    pub bytes_per_lane: Option<i64>,
    #[serde(skip)]
    site: Site,
}

/// What is wanted besides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The instructions that the compiler makes.
    pub machine_code: bool,
}

impl Explanation {
    /// The explanation of a kernel on a GPU.
    ///
    /// # Errors
    /// What does not fit the GPU or the problem, and a compiler that is wanted and missing.
    pub fn of(subject: &Subject, target: &'static Target, wanted: Wanted) -> Result<Explanation, Diagnosis> {
        let mut modelled = modelled::Subject::of_program(subject.program(), &subject.problem, target, None)?;
        let mut time = modelled.time()?;
        // Edits are compared with what is estimated in the same way, whatever the compiler says of the kernel itself.
        let facts = facts(subject, &modelled, &time)?;
        let (suggestions, edits_tried) = suggestions::of(subject, &time, &facts, target);
        let machine_code = match wanted.machine_code {
            true => Some(sass::of(&modelled, &subject.problem, target)?),
            false => None,
        };
        if let Some(machine) = &machine_code {
            let registers: Vec<i64> = machine.iter().map(|m| i64::from(m.registers)).collect();
            modelled = modelled.with_registers(registers);
            time = modelled.time()?;
        }
        let sites = sites::launches(modelled.valid().program(), &|s| modelled.value(s))?;
        let time = &time;
        let occupancies: Vec<OccupancyReport> =
            time.launches.iter().map(|l| OccupancyReport::new(&demand(l), target)).collect();
        let both = time.launches.iter().zip(&sites).zip(&occupancies);
        let accesses: Vec<findings::Accesses<'_>> = both.map(|((l, s), o)| (l, s.as_slice(), o)).collect();
        let findings = findings::of(time, &accesses, target);
        let launches =
            time.launches.iter().zip(sites).zip(occupancies).map(|((l, s), o)| launch(l, s, o)).collect();
        let kernel = subject.kernel();
        Ok(Explanation {
            problem: ProblemReport::of(&subject.problem),
            gpu: target.name,
            kernel: KernelPart {
                name: subject.name().to_string(),
                family: kernel.map_or("program".to_string(), |k| k.family.clone()),
                parameters: kernel.map_or_else(Choice::default, |k| k.parameters.clone()),
                chosen_by: subject.chosen_by,
                schedule: kernel.map(|k| k.schedule.text()),
                program: modelled.valid().program().to_string(),
            },
            kind: Kind::Modelled,
            seconds: time.seconds,
            tflops: tflops(&subject.problem, time.seconds),
            terms: by_term(&time.terms),
            shares: by_term(&time.shares),
            limiter: time.limiter,
            because: limits::sentence(time),
            speed_of_light: limits::speed_of_light(time),
            stalls: limits::stalls(time),
            roofline: roofline(&subject.problem, time, target),
            launches,
            findings,
            edits_tried,
            suggestions,
            machine_code,
            measured: None,
        })
    }

    /// The suggestion of this number.
    ///
    /// # Errors
    /// A number that no suggestion has.
    pub fn suggestion(&self, number: usize) -> Result<&Suggestion, Diagnosis> {
        self.suggestions.iter().find(|s| s.number == number).ok_or_else(|| {
            let refusal = Diagnosis::new(format!("there is no suggestion {number}"));
            match self.suggestions.len() {
                0 => refusal
                    .because(format!("none of {} edits that were tried helps by the model", self.edits_tried))
                    .instead("explain another kernel, size or GPU"),
                n => refusal
                    .because(format!("the model finds {n} of {} edits faster", self.edits_tried))
                    .instead(format!("give a number from 1 to {n}")),
            }
        })
    }
}

/// What a suggestion comes to: the JSON of `explain --apply`.
#[derive(Debug, Serialize)]
pub struct Applied {
    /// The suggestion.
    pub suggestion: Suggestion,
    /// How the numbers came about: by the model.
    pub kind: Kind,
    /// Seconds before and after.
    pub seconds: [f64; 2],
    /// The term with the greatest share before and after.
    pub limiter: [&'static str; 2],
    /// What the time is made of before and after.
    pub terms: [ByTerm; 2],
    /// What a profiler would count before and after, a launch each.
    pub counters: [Vec<CountersPart>; 2],
}

impl Applied {
    /// Applies a suggestion.
    ///
    /// # Errors
    /// Those of the model.
    pub fn of(
        subject: &Subject,
        suggestion: &Suggestion,
        target: &'static Target,
    ) -> Result<Applied, Diagnosis> {
        let Some(kernel) = subject.kernel() else {
            return Err(Diagnosis::new("a program from a file has no schedule to edit"));
        };
        let edited = suggestion.made.kernel(kernel, &subject.problem)?;
        let of = |kernel| modelled::Subject::new(kernel, &subject.problem, target, None)?.time();
        let both = [of(kernel)?, of(&edited)?];
        Ok(Applied {
            suggestion: suggestion.clone(),
            kind: Kind::Modelled,
            seconds: both.each_ref().map(|t| t.seconds),
            limiter: both.each_ref().map(|t| t.limiter),
            terms: both.each_ref().map(|t| by_term(&t.terms)),
            counters: both
                .each_ref()
                .map(|t| t.launches.iter().map(|l| CountersPart::of(&l.counts)).collect()),
        })
    }
}

/// What edits go by.
fn facts(subject: &Subject, modelled: &modelled::Subject, time: &Time) -> Result<Facts, Diagnosis> {
    let sites = sites::launches(modelled.valid().program(), &|s| modelled.value(s))?;
    let mut facts = Facts {
        bytes: subject.problem.dtype().bytes(),
        threads: time.launches.first().map_or(0, |l| l.counts.threads),
        ..Facts::default()
    };
    let wasteful = time.launches.iter().zip(&sites);
    for site in wasteful.flat_map(|(launch, sites)| sites.iter().filter(|s| findings::is_wasteful(launch, s)))
    {
        match site.memory {
            Memory::Device => facts.uncoalesced = true,
            Memory::Shared if !facts.conflicting.contains(&site.buffer) => {
                facts.conflicting.push(site.buffer.clone());
            }
            Memory::Shared => {}
        }
    }
    Ok(facts)
}

/// What a launch takes of a multiprocessor.
fn demand(launch: &LaunchTime) -> Demand {
    let whole = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
    Demand::new(whole(launch.counts.threads), whole(launch.registers))
        .with_shared(whole(launch.counts.shared_bytes))
}

fn by_term(terms: &Terms) -> ByTerm {
    Terms::NAMES.iter().zip(terms.values()).map(|((name, _), value)| (*name, value)).collect()
}

fn launch(launch: &LaunchTime, sites: Vec<Site>, occupancy: OccupancyReport) -> LaunchPart {
    let sectors =
        |buffer: &str| launch.counts.sectors.iter().find(|(name, _)| name == buffer).map_or(0.0, |(_, s)| *s);
    LaunchPart {
        seconds: launch.seconds,
        terms: by_term(&launch.terms),
        blocks: launch.counts.blocks,
        threads: launch.counts.threads,
        shared_bytes: launch.counts.shared_bytes,
        registers: launch.registers,
        registers_estimated: launch.registers_estimated,
        rounds: launch.rounds,
        imbalance: launch.imbalance,
        occupancy,
        counters: CountersPart::of(&launch.counts),
        memory_bytes: launch.memory_bytes,
        traffic: launch
            .traffic
            .iter()
            .map(|t| {
                let requested = 32.0 * sectors(&t.buffer);
                TrafficPart {
                    buffer: t.buffer.clone(),
                    compulsory: t.compulsory,
                    // Where all fits in the second-level cache, nothing comes twice.
                    device_memory: if launch.memory_bytes <= compulsory(launch) {
                        t.compulsory
                    } else {
                        t.by_waves.max(t.compulsory)
                    },
                    second_level_cache: (t.ways() * t.by_blocks).min(requested),
                    requested,
                }
            })
            .collect(),
        accesses: sites.into_iter().map(|site| access(launch, site)).collect(),
    }
}

fn compulsory(launch: &LaunchTime) -> f64 {
    launch.traffic.iter().map(|t| t.compulsory).sum()
}

fn access(launch: &LaunchTime, site: Site) -> AccessPart {
    AccessPart {
        line: site.line,
        statement: site.statement.clone(),
        buffer: site.buffer.clone(),
        memory: if site.memory == Memory::Device { "device" } else { "shared" },
        writes: site.writes,
        requests: site.requests,
        passes_per_request: site.passes_of_a_request(),
        least_per_request: site.least_of_a_request(),
        wasteful: findings::is_wasteful(launch, &site),
        lanes: site.sample.as_ref().map(|s| s.lanes.to_vec()),
        bytes_per_lane: site.sample.as_ref().map(|s| s.bytes),
        site,
    }
}

impl CountersPart {
    fn of(counts: &Counts) -> CountersPart {
        CountersPart {
            kind: Kind::Modelled,
            global_load_requests: counts.global_load_requests,
            global_load_sectors: counts.global_load_sectors,
            global_store_requests: counts.global_store_requests,
            global_store_sectors: counts.global_store_sectors,
            shared_load_requests: counts.shared_load_requests,
            shared_load_wavefronts: counts.shared_load_wavefronts,
            shared_store_requests: counts.shared_store_requests,
            shared_store_wavefronts: counts.shared_store_wavefronts,
            multiply_adds: counts.multiply_adds(),
            barriers: counts.barriers,
        }
    }
}

fn roofline(problem: &Problem, time: &Time, target: &Target) -> Option<RooflinePart> {
    let ceilings = Ceilings::of(problem.precision, target, &Bandwidths::default())?;
    let bound = Roofline::under(problem, &ceilings);
    let (least, flops) = (compulsory_bytes(problem), problem.flops());
    let actual: f64 = time.launches.iter().map(|l| l.memory_bytes).sum();
    Some(RooflinePart {
        seconds: bound.seconds(),
        limiter: bound.limiter(),
        flops,
        flops_per_second: ceilings.flops_per_second,
        bytes_per_second: ceilings.bytes_per_second(problem),
        compulsory_bytes: least,
        actual_bytes: actual,
        compulsory_intensity: flops / least.max(1.0),
        actual_intensity: flops / actual.max(1.0),
    })
}
