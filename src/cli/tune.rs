//! `tune`: the fastest choice of a family's parameters for a problem, found by measuring, or ranked by the model.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::{self, Target};
use warpwright_cuda::nvrtc::Nvrtc;

use super::known::{gpu_of, wisdom};
use super::options::{DeviceOptions, OutputOptions, PermissionOptions, ProblemsOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use crate::device::{Device, DeviceChoice};
use crate::gpu::Site;
use crate::kernels;
use crate::kernels::family::{Choice, Family, Value, Word, parse_parameter};
use crate::problem::{Problem, Shape};
use crate::report::number::seconds;
use crate::report::progress::Progress;
use crate::report::table::{numbers, render, words};
use crate::report::{DeviceReport, Kind, ProblemReport};
use crate::roofline::Roofline;
use crate::tune::accuracy::Accuracy;
use crate::tune::bench::Bench;
use crate::tune::compilers::Compilers;
use crate::tune::file::WisdomFile;
use crate::tune::measure::{Compiled, Isolated};
use crate::tune::rank::{self, Estimate};
use crate::tune::record::{Gpu, Status, Trial};
use crate::tune::search::{Plan, Which};
use crate::tune::session::{self, Found, Session};
use crate::tune::space::Space;
use crate::tune::wisdom::Wisdom;
use crate::tune::{accuracy, why, worker};
use crate::{choose, gpu, memory, parallel};

/// Options of `tune`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    problems: ProblemsOptions,
    #[command(flatten)]
    permissions: PermissionOptions,
    /// The family of kernels [default: the one that suits the problem].
    #[arg(long, value_name = "FAMILY")]
    kernel: Option<String>,
    /// A value that every candidate has, such as unit=mma: only a part of the space is tried.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter, value_delimiter = ',')]
    parameters: Vec<(Word, Value)>,
    /// Vary these parameters alone: in each product, the others stay as `gemm` would choose them. Small spaces, which --exhaustive
    /// tries in a second or two; parameters that have a meaning only beside one of these belong to them, such as early,lets,asks,asked.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["alone", "new"])]
    vary: Vec<String>,
    /// Seconds to spend on a problem, those of earlier runs included.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    budget: f64,
    /// Candidates to try at most, those of earlier runs included [default: no limit].
    #[arg(long, value_name = "N")]
    candidates: Option<usize>,
    /// Try every candidate, however long it takes.
    #[arg(long)]
    exhaustive: bool,
    /// Try so many candidates that are drawn from all of them by --seed, good and bad, however long it takes: what the model can be
    /// judged by.
    #[arg(long, value_name = "N", conflicts_with_all = ["exhaustive", "candidates"])]
    draw: Option<NonZeroUsize>,
    /// Do without the wisdom that ships with the program, as if nobody had tuned anything before.
    #[arg(long)]
    alone: bool,
    /// Try again what is known already.
    #[arg(long)]
    again: bool,
    /// Leave out products that were tuned before, at this length or one like it.
    #[arg(long, conflicts_with_all = ["again", "alone"])]
    new: bool,
    /// Let the GPU rest before each candidate is timed, as between calls now and then: for products that bring it to its limit of
    /// power, which slows what comes later. Fewer candidates are tried in the same time; those timed otherwise count as not tried.
    #[arg(long)]
    rested: bool,
    /// Seconds that one candidate may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    limit: f64,
    /// Decides which candidates are drawn: once the best have been looked at, or with --draw.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// The result for one problem: the JSON of `tune`.
#[derive(Debug, Serialize)]
struct Tuned {
    problem: ProblemReport,
    device: DeviceReport,
    family: &'static str,
    /// Whether times were measured on a GPU or are the model's alone.
    kind: Kind,
    /// Whether the GPU had rested before each candidate was timed.
    rested: bool,
    /// Seconds of the roofline, by what is known to be reached on this GPU.
    roofline_seconds: Option<f64>,
    /// Candidates there are, each with a schedule of its own.
    candidates: usize,
    /// The choices of parameters that they were taken out of: all that the constraints allow.
    choices: usize,
    /// Candidates tried, in earlier runs too.
    tried: usize,
    /// Candidates that this run tried.
    tried_now: usize,
    /// Candidates that failed.
    failed: usize,
    /// Seconds spent, those of earlier runs included.
    seconds_spent: f64,
    /// The best, the first first.
    best: Vec<Ranked>,
    /// How well the model ranks the candidates that were measured.
    model: Option<Accuracy>,
    /// Why the first won: what bounds it, and what each of the others lacks. By the model.
    why: Vec<String>,
    /// The file with the record of everything that was tried.
    wisdom: Option<PathBuf>,
}

/// One of the best.
#[derive(Debug, Serialize)]
struct Ranked {
    parameters: Choice,
    /// Seconds of one product.
    seconds: f64,
    quartiles: Option<(f64, f64)>,
    samples: usize,
    /// The fraction of the roofline.
    fraction: Option<f64>,
    registers: Option<u32>,
    /// What the model says, in seconds.
    modelled: Option<Estimate>,
}

/// How many of the best are shown.
const SHOWN: usize = 5;

/// Runs `tune`.
pub fn run(options: &Options) -> Outcome {
    let (device, notices) = options.device.device.open()?;
    notices.iter().for_each(|n| notice(n));
    let problems = options.left(options.problems.all()?, &device)?;
    // The worker's own work on the host wants a core too.
    let compilers = Compilers::new(parallel::threads().saturating_sub(1));
    let families: Vec<&'static Family> =
        problems.iter().map(|problem| options.family(problem)).collect::<Result<_, _>>()?;
    let (target, permissions) = (device.target(), options.permissions.of_kernels());
    if matches!(device, Device::Sim(_)) && options.device.device == DeviceChoice::Auto && !problems.is_empty()
    {
        return Err(Diagnosis::new("there is no GPU to tune on")
            .because("times on the simulator would say nothing about a GPU")
            .instead(format!("use --device sim:{} to rank by the model alone", target::DEFAULT.name))
            .into());
    }
    if matches!(device, Device::Sim(_)) && options.rested {
        return Err(Diagnosis::new("--rested needs a GPU")
            .because("the model ranks candidates without running them")
            .instead("leave it out")
            .into());
    }
    // The model ranks what it ranks, whatever was measured before.
    let file = WisdomFile::standard().filter(|_| matches!(device, Device::Cuda(..)));
    let gpu = gpu_of(&device);
    let given: Vec<Choice> = problems
        .iter()
        .zip(&families)
        .map(|(problem, family)| options.given(family, problem, target, &gpu))
        .collect::<Result<_, _>>()?;
    let session_of = |at: usize| -> Option<Session<'_>> {
        Some(Session {
            gpu: &gpu,
            target,
            family: families.get(at)?,
            problem: problems.get(at)?,
            permissions,
            given: given.get(at)?,
            file: file.as_ref(),
            again: options.again,
            alone: options.alone,
            rested: options.rested,
        })
    };
    let mut all = Vec::new();
    std::thread::scope(|scope| -> Result<(), Failure> {
        // While one product is measured, the candidates for the next are found.
        let space_of = |at: usize| -> Option<ScopedJoinHandle<'_, Result<Space, Diagnosis>>> {
            let session = session_of(at)?;
            Some(scope.spawn(move || session.space(options.which())))
        };
        let mut next = space_of(0);
        for (at, problem) in problems.iter().enumerate() {
            let progress = Progress::waiting(format!("{}: candidates", problem.shape));
            let found = next.take().map(ScopedJoinHandle::join);
            drop(progress);
            let (Some(session), Some(Ok(space))) = (session_of(at), found) else {
                return Err(Diagnosis::new("the candidates could not be found").into());
            };
            let space = space?;
            next = space_of(at + 1);
            let tuned = match &device {
                Device::Cuda(gpu, target) => on_gpu(options, &session, &space, (gpu, target), &compilers)?,
                Device::Sim(_) => by_model(&session, &space, &device),
            };
            if !options.output.json {
                print(&text(&tuned))?;
            }
            all.push(tuned);
        }
        Ok(())
    })?;
    if options.output.json {
        match &all[..] {
            [one] if options.problems.is_one() => print_json(one)?,
            several => print_json(&several)?,
        }
    }
    // Where nothing right was found, there is nothing to use.
    if all.iter().all(|t| !t.best.is_empty()) { Ok(()) } else { Err(Failure::Wrong) }
}

impl Options {
    /// The products to tune: all, or those that nobody has tuned.
    fn left(&self, problems: Vec<Problem>, device: &Device) -> Result<Vec<Problem>, Diagnosis> {
        if !self.new {
            return Ok(problems);
        }
        let (gpu, permissions, all) = (gpu_of(device), self.permissions.of_kernels(), problems.len());
        let known: BTreeMap<&str, Wisdom> =
            kernels::FAMILIES.iter().map(|f| (f.name, wisdom(f.name))).collect();
        let mut left = Vec::new();
        for problem in problems {
            let family = self.family(&problem)?;
            if !choose::is_tuned(family, &problem, &gpu, &known[family.name], permissions) {
                left.push(problem);
            }
        }
        notice(&format!("{} of {all} products were tuned before", all - left.len()));
        Ok(left)
    }

    /// What every candidate for a product has: the values that are named, and of the choice for it what is not to be varied.
    fn given(
        &self,
        family: &Family,
        problem: &Problem,
        target: &Target,
        gpu: &Gpu,
    ) -> Result<Choice, Diagnosis> {
        let named = Choice::of(&self.parameters);
        if self.vary.is_empty() {
            return Ok(named);
        }
        let known: Vec<&str> = family.parameters.iter().map(|p| p.name).collect();
        if let Some(unknown) = self.vary.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Diagnosis::new(format!("{} has no parameter `{unknown}` to vary", family.name))
                .instead(format!("name some of {}", known.join(", "))));
        }
        let permissions = self.permissions.of_kernels();
        let (kernel, _) =
            choose::parameters(family, problem, target, gpu, &wisdom(family.name), permissions)?;
        let stays = |name: &str| named.get(name).is_none() && !self.vary.iter().any(|varied| varied == name);
        let chosen = kernel.parameters.iter().filter(|(name, _)| stays(name));
        Ok(chosen.fold(named.clone(), |given, (name, value)| given.with(name, *value)))
    }

    /// Which candidates to try.
    fn which(&self) -> Which {
        match (self.draw, self.exhaustive) {
            (Some(number), _) => Which::Drawn(number.get()),
            (None, true) => Which::All,
            (None, false) => Which::Promising,
        }
    }

    fn family(&self, problem: &Problem) -> Result<&'static Family, Diagnosis> {
        let known = || kernels::FAMILIES.iter().map(|f| f.name).collect::<Vec<_>>().join(", ");
        let family = match &self.kernel {
            Some(name) => kernels::family(name).ok_or_else(|| {
                Diagnosis::new(format!("there is no family `{name}` to tune"))
                    .instead(format!("use one of {}", known()))
            })?,
            None => choose::family(problem).ok_or_else(|| {
                Diagnosis::new(format!(
                    "no family with parameters suits {} {}",
                    problem.shape, problem.layout
                ))
                .because("those that there are serve tall and skinny products")
                .instead(format!("name one with --kernel: {}", known()))
            })?,
        };
        (family.fixed)(problem).map(|_| family)
    }
}

/// The candidates ranked by the model.
fn by_model(session: &Session, space: &Space, device: &Device) -> Tuned {
    let Session { family, problem, target, .. } = *session;
    let roofline = Roofline::reached(problem, target).map(|r| r.seconds());
    let ranked = |choice: &Choice, modelled: f64| Ranked {
        parameters: choice.clone(),
        seconds: modelled,
        quartiles: None,
        samples: 0,
        fraction: roofline.map(|r| r / modelled),
        registers: None,
        modelled: rank::estimate(family, problem, choice, target),
    };
    let possible = space.candidates().iter().filter(|c| c.modelled.is_finite());
    // Of what differs in nothing that the model knows, the most usual comes first.
    let mut seen = HashSet::new();
    let other = possible.filter(|c| seen.insert(c.choice.clone().without(family.unmodelled)));
    let best: Vec<Ranked> = other.take(SHOWN).map(|c| ranked(&c.choice, c.modelled)).collect();
    Tuned {
        problem: ProblemReport::of(problem),
        device: device.report(),
        family: family.name,
        kind: Kind::Modelled,
        rested: false,
        roofline_seconds: roofline,
        candidates: space.len(),
        choices: space.choices(),
        tried: 0,
        tried_now: 0,
        failed: 0,
        seconds_spent: 0.0,
        model: None,
        why: reasons(&best),
        best,
        wisdom: None,
    }
}

/// The candidates measured on a GPU.
fn on_gpu(
    options: &Options,
    session: &Session,
    space: &Space,
    (device, target): (&warpwright_cuda::Device, &'static Target),
    compilers: &Compilers,
) -> Result<Tuned, Diagnosis> {
    let Session { family, problem, .. } = *session;
    memory::check_fits(problem, 2.0)?;
    // Without it every candidate would fail, and be remembered as one that fails.
    let nvrtc = Nvrtc::get().map_err(gpu::diagnosis)?.version();
    if session.file.is_none() {
        notice("what is found will not be kept; set WARPWRIGHT_WISDOM to a file to keep it");
    }
    let program = std::env::current_exe()
        .map_err(|e| Diagnosis::new("this program cannot be started a second time").because(e.to_string()))?;
    let command = || {
        let mut command = Command::new(&program);
        command.arg(WORKER);
        command
    };
    let site = Site::here(device, target);
    let compiled = *problem;
    let compile_one = move |choice: &Choice| compile_candidate(family, &compiled, choice, &site);
    let mut measure = Isolated {
        command: &command,
        job: worker::Job {
            rested: options.rested,
            ..worker::Job::new(device.info().ordinal, family.name, problem)
        },
        compile: Arc::new(compile_one),
        compilers,
        limit: Duration::from_secs_f64(options.limit.clamp(0.1, 1e6)),
        start_limit: START_LIMIT,
        worker: None,
        has_worked: false,
    };
    let plan = Plan {
        seconds: options.budget,
        candidates: options.candidates.unwrap_or(usize::MAX),
        which: options.which(),
        seed: options.seed,
    };
    let gpu = Gpu::of_device(device.info(), Some(nvrtc));
    let session = Session { gpu: &gpu, ..*session };
    let found = {
        let shape = problem.shape;
        let progress = Progress::waiting(format!("{shape}: operands and reference"));
        session.run_in(space, &plan, &mut measure, &mut |p| progress.say(said(shape, p)))?
    };
    found.notices.iter().for_each(|n| notice(n));
    Ok(Tuned { rested: options.rested, ..measured(&session, device, found) })
}

/// The hidden subcommand that a worker runs.
pub const WORKER: &str = "tune-worker";

/// How long a worker may take to prepare operands and references.
const START_LIMIT: Duration = Duration::from_secs(300);

/// Runs the hidden subcommand `tune-worker`: tries candidates for a tuner that is listening.
pub fn work() -> Outcome {
    worker::serve(Bench::new, Bench::answer);
    Ok(())
}

fn compile_candidate(family: &Family, problem: &Problem, choice: &Choice, site: &Site) -> Compiled {
    let unmakeable = |d: Diagnosis| (Status::Constraints, d.to_string());
    let kernel = family.build(problem, choice).map_err(unmakeable)?;
    let text = site.source(kernel.program(), problem).map_err(unmakeable)?;
    text.compile().map(|ahead| ahead.registers).map_err(|d| (Status::Compile, d.to_string()))
}

/// One line of progress.
fn said(shape: Shape, progress: &session::Progress) -> String {
    let best = match (progress.best, progress.fraction) {
        (Some(best), Some(fraction)) => {
            format!("best {} ({:.1} % of the roofline)", seconds(best), 100.0 * fraction)
        }
        (Some(best), None) => format!("best {}", seconds(best)),
        (None, _) => "nothing right yet".to_string(),
    };
    let left =
        if progress.left.is_finite() { format!(", {:.0} s left", progress.left) } else { String::new() };
    format!("{shape} [{}/{}] {best}{left}", progress.tried, progress.candidates)
}

fn measured(session: &Session, device: &warpwright_cuda::Device, found: Found) -> Tuned {
    let Session { family, problem, target, file, .. } = *session;
    let roofline = Roofline::reached(problem, target).map(|r| r.seconds());
    let ranked = |trial: &Trial| Ranked {
        parameters: trial.choice.clone(),
        seconds: trial.seconds.unwrap_or(f64::INFINITY),
        quartiles: trial.quartiles,
        samples: trial.samples,
        // Not as it was recorded: older records may be of another roofline.
        fraction: roofline.zip(trial.seconds).map(|(roofline, seconds)| roofline / seconds),
        registers: trial.registers,
        modelled: rank::estimate(family, problem, &trial.choice, target),
    };
    let pair = |trial: &Trial| {
        let modelled = rank::estimate(family, problem, &trial.choice, target)?.seconds;
        Some((modelled, trial.seconds?))
    };
    let pairs: Vec<(f64, f64)> = found.best.iter().filter_map(pair).collect();
    let best: Vec<Ranked> = found.best.iter().take(SHOWN).map(ranked).collect();
    Tuned {
        problem: ProblemReport::of(problem),
        device: DeviceReport { kind: "cuda", gpu: device.info().name.clone() },
        family: family.name,
        kind: Kind::Measured,
        rested: false,
        roofline_seconds: roofline,
        candidates: found.candidates,
        choices: found.choices,
        tried: found.tried,
        tried_now: found.tried_now,
        failed: found.failed,
        seconds_spent: found.seconds,
        model: accuracy::compare(&pairs),
        why: reasons(&best),
        best,
        wisdom: file.map(|f| Path::to_path_buf(f.path())),
    }
}

/// Why the first is ahead: what bounds it, and what the others lack.
fn reasons(best: &[Ranked]) -> Vec<String> {
    let Some((first, modelled)) = best.first().and_then(|r| r.modelled.as_ref().map(|m| (r, m))) else {
        return Vec::new();
    };
    let mut reasons = vec![format!("the first is {}", why::bound(modelled))];
    for (at, other) in best.iter().enumerate().skip(1) {
        if let Some(estimate) = &other.modelled {
            let slower = 100.0 * (other.seconds / first.seconds - 1.0);
            let lack = why::lack((&first.parameters, modelled), (&other.parameters, estimate));
            reasons.push(format!("number {} is {slower:.1} % slower {lack}", at + 1));
        }
    }
    reasons
}

fn text(tuned: &Tuned) -> String {
    let p = &tuned.problem;
    let kind = match tuned.kind {
        Kind::Measured if tuned.rested => "measured, rested",
        Kind::Measured => "measured",
        Kind::Simulated => "simulated",
        Kind::Modelled => "modelled",
    };
    let tried = if tuned.kind == Kind::Measured {
        format!(
            "{} of {} candidates ({} choices) tried, {} of them now; {} failed; {:.0} s spent",
            tuned.tried, tuned.candidates, tuned.choices, tuned.tried_now, tuned.failed, tuned.seconds_spent
        )
    } else {
        format!("{} candidates ({} choices), ranked by the model", tuned.candidates, tuned.choices)
    };
    let heading = format!(
        "{} {}x{}x{} {} {} on {}: {tried}",
        tuned.family, p.m, p.n, p.k, p.dtype, p.layout, tuned.device.gpu
    );
    let percent = |value: f64, of: f64| format!("{:+.1} %", 100.0 * (value / of - 1.0));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let is_measured = tuned.kind == Kind::Measured;
    let mut columns = vec![words("parameters"), numbers(kind), numbers("of the roofline")];
    if is_measured {
        columns.extend([numbers("quartiles"), numbers("registers"), numbers("modelled")]);
    }
    columns.push(words("bound by (modelled)"));
    let row = |r: &Ranked| {
        let mut cells = vec![
            r.parameters.to_string(),
            seconds(r.seconds),
            or_dash(r.fraction.map(|f| format!("{:.1} %", 100.0 * f))),
        ];
        if is_measured {
            let quartiles =
                r.quartiles.map(|(low, high)| [percent(low, r.seconds), percent(high, r.seconds)]);
            cells.push(or_dash(quartiles.map(|q| q.join(" "))));
            cells.push(or_dash(r.registers.map(|n| n.to_string())));
            cells.push(or_dash(r.modelled.map(|m| seconds(m.seconds))));
        }
        cells.push(or_dash(r.modelled.map(|m| m.terms.limiter().about.to_string())));
        cells
    };
    let mut lines = vec![heading, render(&columns, &tuned.best.iter().map(row).collect::<Vec<_>>())];
    lines.extend(tuned.model.iter().map(|m| {
        format!(
            "  the model ranks the {} that were measured with a correlation of {:.2}; the fastest is number {} of them, its first takes {:.2} of the least time, the best of its first 8 {:.2}",
            m.candidates, m.rank_correlation, m.place_of_best, m.first, m.best_of_8
        )
    }));
    lines.extend(tuned.why.iter().map(|line| format!("  {line}")));
    lines.extend(
        tuned.wisdom.iter().map(|path| format!("  everything tried is recorded in {}", path.display())),
    );
    lines.join("\n")
}
