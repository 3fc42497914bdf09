//! Random schedules: whatever steps are drawn, each is either refused with advice or keeps the meaning.
//!
//! A case is a specification, sizes, and steps drawn among the loops and buffers that there are. A step that is
//! refused must leave the schedule as it was. After every other one the program must be well formed, read back as it is
//! printed, and equal the specification exactly, in order and, where it fits a GPU once lowered, on threads without a
//! hazard; then it must have a CUDA text, too. The text of the whole schedule must give the same program again.
//!
//! `WARPWRIGHT_SCHEDULES=10000 cargo test --test schedules random` draws more cases than every run does, and
//! `WARPWRIGHT_SEED=n` begins with that one. A failure is printed with its seed and the steps it needs.

mod draw;
mod found;
mod names;
mod openings;
mod specifications;

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use warpwright::compile;
use warpwright_core::ir::{Program, parse, validate};
use warpwright_core::passes;
use warpwright_core::schedule::{Schedule, primitives};
use warpwright_core::target;
use warpwright_sim::Mode;

use crate::check::exact;
use draw::Case;

/// Cases of every run of the tests.
const CASES: u64 = 300;
/// After so many failures nothing more is tried.
const MOST_FAILURES: usize = 8;
/// A case that takes longer is a failure: nothing here is large.
const LONGEST: Duration = Duration::from_secs(120);

#[test]
fn random_schedules_keep_the_meaning() {
    let number = |name: &str| std::env::var(name).ok().map(|v| v.parse::<u64>().expect("a number"));
    let first = number("WARPWRIGHT_SEED").unwrap_or(1);
    let cases = number("WARPWRIGHT_SCHEDULES").unwrap_or(CASES);
    let next = AtomicU64::new(first);
    let (total, failures) = (Mutex::new(Outcome::default()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + cases || failures.lock().expect("no panics").len() >= MOST_FAILURES {
                return;
            }
            match in_time(seed) {
                Ok(outcome) => total.lock().expect("no panics").add(outcome),
                Err(text) => failures.lock().expect("no panics").push(text),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let (total, failures) =
        (total.into_inner().expect("no panics"), failures.into_inner().expect("no panics"));
    println!("{cases} cases from seed {first}: {total:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    // A few cases say nothing of what is drawn.
    if cases >= CASES {
        let missing: Vec<_> = primitives().filter(|p| !total.accepted.contains_key(*p)).collect();
        assert!(missing.is_empty(), "never accepted: {missing:?}");
        assert!(total.on_threads > total.accepted.values().sum::<u64>() / 4, "few programs ran on threads");
    }
}

#[test]
fn what_was_found_stays_right() {
    let wrong = |(name, sizes, steps): &found::Found| {
        let case = Case::of(name, sizes);
        let steps: Vec<String> = steps.lines().map(str::to_string).collect();
        run(&case, &steps).err().map(|e| format!("{name}\n{}\n{e}", steps.join("\n")))
    };
    let failures: Vec<String> = found::FOUND.iter().filter_map(wrong).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// What became of the steps.
#[derive(Debug, Default)]
struct Outcome {
    /// By the name of the primitive.
    accepted: BTreeMap<String, u64>,
    /// Of `tensorize`, by the name of the instruction.
    instructions: BTreeMap<String, u64>,
    refused: u64,
    /// Programs that ran on threads.
    on_threads: u64,
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        for (name, count) in other.accepted {
            *self.accepted.entry(name).or_default() += count;
        }
        for (name, count) in other.instructions {
            *self.instructions.entry(name).or_default() += count;
        }
        self.refused += other.refused;
        self.on_threads += other.on_threads;
    }
}

/// Draws a case and runs it, or ends the tests if that takes too long: a loop without end has no other end.
fn in_time(seed: u64) -> Result<Outcome, String> {
    let done = AtomicBool::new(false);
    let steps = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let start = Instant::now();
            while !done.load(Ordering::Relaxed) {
                if start.elapsed() > LONGEST {
                    let steps = steps.lock().expect("no panics").join("\n");
                    // Past the tests' capture, which is lost when the process ends.
                    let _ = writeln!(std::io::stderr(), "seed {seed} takes more than {LONGEST:?}:\n{steps}");
                    std::process::exit(101);
                }
                std::thread::park_timeout(LONGEST);
            }
        });
        let case = Case::draw(seed, &mut |step| steps.lock().expect("no panics").push(step.to_string()));
        let result = run(&case, &case.steps).map_err(|_| explain(&case));
        done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        result
    })
}

/// Applies the steps, skips those that are refused, and checks everything after each.
fn run(case: &Case, steps: &[String]) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(|| {
        let mut schedule = Schedule::new(case.specification.clone());
        let mut outcome = Outcome::default();
        for step in steps {
            one_step(case, &mut schedule, step, &mut outcome).map_err(|e| format!("{step}: {e}"))?;
        }
        let again = Schedule::run(case.specification.clone(), &schedule.text());
        let again = again.map_err(|e| format!("the schedule does not apply again: {e}"))?;
        if again.program().to_string() != schedule.program().to_string() {
            return Err(format!("{}\nwas\n{}", again.program(), schedule.program()));
        }
        Ok(outcome)
    }))
    .unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn one_step(case: &Case, schedule: &mut Schedule, step: &str, outcome: &mut Outcome) -> Result<(), String> {
    let before = schedule.program().clone();
    if let Err(diagnosis) = schedule.steps(step) {
        outcome.refused += 1;
        let unchanged = *schedule.program() == before && !diagnosis.to_string().trim().is_empty();
        return if unchanged { Ok(()) } else { Err("is refused and yet changes the program".into()) };
    }
    let name = step.split('(').next().unwrap_or(step);
    *outcome.accepted.entry(name.to_string()).or_default() += 1;
    if name == "tensorize" {
        let instruction = step.split([',', ')']).nth(1).unwrap_or(step).trim();
        *outcome.instructions.entry(instruction.to_string()).or_default() += 1;
    }
    outcome.on_threads += u64::from(holds(case, schedule.program())?);
    Ok(())
}

/// Checks a program; whether it ran on threads, too.
fn holds(case: &Case, program: &Program) -> Result<bool, String> {
    let text = program.to_string();
    validate::check(program.clone()).map_err(|e| format!("not well formed: {}\n{text}", e[0]))?;
    let again = parse::program(&text).map_err(|e| format!("does not read back: {e}\n{text}"))?;
    if again.to_string() != text {
        return Err(format!("reads back as\n{again}\nwas\n{text}"));
    }
    exact(&case.specification, program, &case.sizes, Mode::InOrder, case.seed)
        .map_err(|e| format!("{e}\n{text}"))?;
    let Ok(lowered) = passes::lower(program) else { return Ok(false) };
    let formed = validate::check(lowered.clone())
        .map_err(|e| format!("lowered to what is not well formed: {}\n{text}\nlowered:\n{lowered}", e[0]))?;
    let Ok(valid) = validate::validate(formed, target::DEFAULT) else { return Ok(false) };
    exact(&case.specification, valid.program(), &case.sizes, Mode::Simt, case.seed)
        .map_err(|e| format!("{e}\n{text}\nlowered:\n{lowered}"))?;
    compile::cuda(&valid).map_err(|e| format!("no CUDA text: {e}\n{text}\nlowered:\n{lowered}"))?;
    Ok(true)
}

/// A failure with as few steps as it needs.
fn explain(case: &Case) -> String {
    let mut steps = case.steps.clone();
    let mut at = steps.len();
    while at > 0 {
        at -= 1;
        let mut fewer = steps.clone();
        fewer.remove(at);
        if run(case, &fewer).is_err() {
            steps = fewer;
        }
    }
    let error = run(case, &steps).err().unwrap_or_default();
    format!("seed {}, {:?}\n{}\n{error}", case.seed, case.sizes, steps.join("\n"))
}
