//! The tuner as a whole, with a measurement that is made up: sessions that are killed and started again, two at a time,
//! and the commands that need no GPU.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use warpwright::kernels;
use warpwright::kernels::family::Choice;
use warpwright::kernels::family::Permissions;
use warpwright::problem::Problem;
use warpwright::tune::candidates::Choices;
use warpwright::tune::file::WisdomFile;
use warpwright::tune::record::{Gpu, Key, Record, Status, Trial};
use warpwright::tune::search::{Measure, Plan, Trials, Which};
use warpwright::tune::session::{Found, Session};
use warpwright::tune::space::{Candidate, Space};
use warpwright::tune::wisdom::Wisdom;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target;

use crate::cli::{json, refusal, warpwright};

/// Makes up how long a candidate takes: the model's opinion with whims of its own; some candidates fail.
struct MadeUp {
    pause: Duration,
    /// How many times as long it takes on this card.
    slower: f64,
    /// What was measured so far.
    order: Vec<Choice>,
}

impl MadeUp {
    fn new(pause: Duration) -> MadeUp {
        MadeUp { pause, slower: 1.0, order: Vec::new() }
    }

    fn trial(&self, candidate: &Candidate) -> Trial {
        let whim = u64::from_str_radix(&candidate.schedule, 16).unwrap() % 1000;
        let (status, seconds) = match whim % 9 {
            // A kernel that cannot be made may be possible in a later version.
            0 if whim.is_multiple_of(2) => (Status::Constraints, None),
            0 => (Status::Runtime, None),
            1 => (Status::Correctness, None),
            // Longer than any roofline.
            _ => {
                (Status::Correct, Some(self.slower * 2.0 * candidate.modelled * (1.0 + whim as f64 / 1000.0)))
            }
        };
        Trial { choice: candidate.choice.clone(), status, seconds, samples: 3, ..Trial::default() }
    }
}

impl Measure for MadeUp {
    fn measure(&mut self, trials: &mut dyn Trials) -> Result<(), Diagnosis> {
        trials.begin();
        loop {
            let candidates = trials.more(8);
            if candidates.is_empty() {
                return Ok(());
            }
            for candidate in candidates {
                std::thread::sleep(self.pause);
                self.order.push(candidate.choice.clone());
                if !trials.result(self.trial(&candidate))? {
                    return Ok(());
                }
            }
        }
    }

    fn settle(&mut self, trials: &mut dyn Trials) -> Result<(), Diagnosis> {
        self.measure(trials)
    }
}

fn problem() -> Problem {
    Problem::new("1000000x4x6".parse().unwrap(), "f64".parse().unwrap(), "nn".parse().unwrap())
}

/// What every candidate has: 288 are enough, and the whole space has 15193, with which the tests take minutes.
fn given() -> Choice {
    Choice::default().with("unit", "fma").with("staging", "registers").with("early", false)
}

/// Tunes the problem and records in a file.
fn tune(file: &WisdomFile, plan: &Plan, measure: &mut MadeUp) -> Found {
    tune_at_pace(file, plan, measure, false)
}

/// The same, with candidates that are timed on a rested GPU, or one after the other.
fn tune_at_pace(file: &WisdomFile, plan: &Plan, measure: &mut MadeUp, rested: bool) -> Found {
    tune_part(file, plan, measure, rested, &given())
}

/// The same with candidates that have these values.
fn tune_part(file: &WisdomFile, plan: &Plan, measure: &mut MadeUp, rested: bool, given: &Choice) -> Found {
    let gpu = Gpu::of_target(target::DEFAULT);
    let session = Session {
        gpu: &gpu,
        target: target::DEFAULT,
        family: kernels::family("tsmm").unwrap(),
        problem: &problem(),
        permissions: Permissions::NONE,
        given,
        file: Some(file),
        again: false,
        alone: false,
        rested,
    };
    session.run(plan, measure, &mut |_| {}).unwrap()
}

/// Times of a GPU that has rested say nothing of one that has not.
#[test]
fn what_was_timed_at_another_pace_counts_as_not_tried() {
    let scratch = Scratch::new("paces");
    let plan = Plan { candidates: 12, ..Plan::default() };
    let mut known = Vec::new();
    for rested in [false, false, true, true, false] {
        let found = tune_at_pace(&scratch.file(), &plan, &mut MadeUp::new(Duration::ZERO), rested);
        assert!(!found.best.is_empty() && found.best.iter().all(|trial| trial.rested == rested));
        known.push(found.tried - found.tried_now);
    }
    assert_eq!((known[0], known[2]), (0, 0), "nothing was timed at this pace before");
    assert!(known[1] > 0 && known[3] > 0 && known[4] > 0, "{known:?}");
    let text = std::fs::read_to_string(scratch.file().path()).unwrap();
    let of_pace =
        |rested: bool| text.lines().filter(|line| line.contains("\"rested\":true") == rested).count();
    assert!(of_pace(true) >= known[3] && of_pace(false) >= known[1]);
    assert!(!text.contains("\"rested\":false"), "lines are as they were before there was a pace");
}

/// A record of a faster card of the same kind does not win by its card: what is chosen today is timed beside what is found, whatever
/// candidates are to have.
#[test]
fn the_champion_is_timed_anew_on_the_card_at_hand() {
    let (scratch, apart) = (Scratch::new("champion"), Scratch::new("champions"));
    let mut blocks: Vec<(f64, Choice)> = [128, 256]
        .map(|block| {
            let given = given().with("block", block);
            let file = apart.file();
            let found = tune_part(&file, &EXHAUSTIVE, &mut MadeUp::new(Duration::ZERO), true, &given);
            (found.best[0].seconds.unwrap(), given)
        })
        .into();
    blocks.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [(worse, first), (better, second)] = [&blocks[0], &blocks[1]];
    let slower = 1.2 * worse / better;
    // On a fast card only the worse half is looked at, on a slow one the other.
    let before = tune_part(&scratch.file(), &EXHAUSTIVE, &mut MadeUp::new(Duration::ZERO), true, first);
    let champion = &before.best[0].choice;
    let mut measure = MadeUp { slower, ..MadeUp::new(Duration::ZERO) };
    let found = tune_part(&scratch.file(), &EXHAUSTIVE, &mut measure, true, second);
    assert!(found.best[0].seconds.unwrap() > *worse, "the card is slower than what is found is faster");
    assert_eq!(measure.order.iter().filter(|c| *c == champion).count(), 1);
    assert!(found.best.iter().all(|trial| trial.choice != *champion), "it has not what was asked for");
    let mut wisdom = Wisdom::default();
    wisdom.extend(scratch.file().load().unwrap().records);
    let gpu = Gpu::of_target(target::DEFAULT);
    let best = wisdom.best(&gpu, "tsmm", &Key::of(&problem()), Permissions::NONE).unwrap();
    assert_eq!(best.trial.choice, found.best[0].choice);
    // Where nothing is found there is nothing to compare.
    let mut again = MadeUp { slower, ..MadeUp::new(Duration::ZERO) };
    tune_part(&scratch.file(), &EXHAUSTIVE, &mut again, true, second);
    assert!(again.order.iter().all(|c| c != champion), "{:?}", again.order);
}

/// A search that is to look at a part of the space begins with what was good in another, changed to what is asked for.
#[test]
fn what_was_good_is_tried_with_what_is_asked_for() {
    let scratch = Scratch::new("asked");
    let mut made_up = MadeUp::new(Duration::ZERO);
    let before = tune_part(&scratch.file(), &EXHAUSTIVE, &mut made_up, false, &given().with("block", 128));
    let plan = Plan { candidates: 1, ..Plan::default() };
    let mut measure = MadeUp::new(Duration::ZERO);
    tune_part(&scratch.file(), &plan, &mut measure, false, &given().with("block", 256));
    assert_eq!(measure.order[0], before.best[0].choice.clone().with("block", 256));
}

/// What ships is known of a product from the start, unless the tuner is alone.
#[test]
fn what_ships_is_left_out_where_the_tuner_is_alone() {
    let gpu = Gpu::of_target(target::DEFAULT);
    let shipped =
        Problem::new("48x48x2050861".parse().unwrap(), "f64".parse().unwrap(), "tn".parse().unwrap());
    let given = Choice::default().with("unit", "mma").with("copy", "bulk").with("stages", 2).with("wm", 1);
    let known_before = |alone: bool| {
        let session = Session {
            gpu: &gpu,
            target: target::DEFAULT,
            family: kernels::family("tsmttsm").unwrap(),
            problem: &shipped,
            permissions: Permissions::NONE,
            given: &given,
            file: None,
            again: false,
            alone,
            rested: false,
        };
        let plan = Plan { candidates: 5, ..Plan::default() };
        let found = session.run(&plan, &mut MadeUp::new(Duration::ZERO), &mut |_| {}).unwrap();
        found.tried - found.tried_now
    };
    assert_eq!((known_before(false), known_before(true)), (1, 0));
}

/// Of several products those are left to tune that nobody has tuned at about their length.
#[test]
fn what_was_tuned_before_can_be_left_out() {
    let scratch = Scratch::new("new-shapes");
    let (shapes, wisdom) = (scratch.0.join("shapes.txt"), scratch.0.join("none.jsonl"));
    // The first two are as what ships, but for their length; the third is much shorter, the last is of other widths.
    let lines = ["64x64x2000000 f64 tn", "4000000x16x16 f64 nn", "63x63x600 f64 tn", "61x59x1000000 f64 tn"];
    std::fs::write(&shapes, lines.join("\n")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(["tune", "--new", "--param", "staging=registers", "--device", "sim:h200", "--json", "--shapes"])
        .arg(&shapes)
        .env("WARPWRIGHT_WISDOM", &wisdom)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("2 of 4 products were tuned before"));
    let tuned: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let lengths: Vec<i64> =
        tuned.as_array().unwrap().iter().map(|t| t["problem"]["k"].as_i64().unwrap()).collect();
    assert_eq!(lengths, [600, 1_000_000]);
}

/// What else a product's kernel has stays as it would be chosen.
#[test]
fn some_parameters_can_be_varied_alone() {
    let scratch = Scratch::new("vary");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args(arguments)
            .args(["--device", "sim:h200", "--json"])
            .env("WARPWRIGHT_WISDOM", scratch.0.join("none.jsonl"))
            .output()
            .unwrap();
        (output.stdout, String::from_utf8_lossy(&output.stderr).to_string())
    };
    let product = ["10000x16x16", "--dtype", "c64"];
    let json = |(stdout, _): (Vec<u8>, String)| serde_json::from_slice::<serde_json::Value>(&stdout).unwrap();
    let of_early = ["early", "lets", "asks", "asked"];
    let tuned = json(run(&[&["tune", "--vary", "early,lets,asks,asked"], &product[..]].concat()));
    // Not early; or one of two ways to let others begin, and of each nothing asked for, or one of three amounts in two ways.
    assert_eq!(tuned["choices"], 1 + 2 * (1 + 3 * 2));
    let chosen = json(run(&[&["gemm"], &product[..]].concat()));
    let others = |parameters: &serde_json::Value| {
        let mut parameters = parameters.as_object().unwrap().clone();
        parameters.retain(|name, _| !of_early.contains(&name.as_str()));
        parameters
    };
    for best in tuned["best"].as_array().unwrap() {
        assert_eq!(others(&best["parameters"]), others(&chosen["kernel"]["parameters"]));
    }
    let one =
        json(run(&[&["tune", "--vary", "lets", "--param", "asks=1,early=true"], &product[..]].concat()));
    assert_eq!(one["choices"], 2, "what is named counts before what is chosen");
    let (_, refusal) = run(&[&["tune", "--vary", "early,late"], &product[..]].concat());
    assert!(refusal.contains("tsmm has no parameter `late` to vary"), "{refusal}");
}

/// A file in a directory of its own, which goes when this does.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("warpwright-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Scratch(directory)
    }

    fn file(&self) -> WisdomFile {
        WisdomFile::at(self.0.join("wisdom.jsonl"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const EXHAUSTIVE: Plan = Plan { seconds: 0.0, candidates: usize::MAX, which: Which::All, seed: 1 };

/// The variable that tells [`a_tuner_that_is_killed`] which file to write.
const FILE: &str = "WARPWRIGHT_TEST_TUNER_FILE";

/// Not a test: what the tests below start in a process of its own.
#[test]
#[ignore = "run by other tests, in a process of its own"]
fn a_tuner_that_is_killed() {
    if let Some(file) = std::env::var_os(FILE) {
        tune(&WisdomFile::at(file), &EXHAUSTIVE, &mut MadeUp::new(Duration::from_millis(4)));
    }
}

fn start(file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tuner::a_tuner_that_is_killed", "--ignored"])
        .env(FILE, file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// All candidates.
fn space() -> Space {
    let family = kernels::family("tsmm").unwrap();
    let (problem, given) = (problem(), given());
    let (target, permissions) = (target::DEFAULT, Permissions::NONE);
    Choices { family, problem: &problem, target, permissions, given: &given }.all()
}

/// How often each choice was tried, those timed at length not counted.
fn tries(records: &[Record]) -> BTreeMap<Choice, usize> {
    let mut tries = BTreeMap::new();
    for record in records.iter().filter(|r| !r.trial.settled) {
        *tries.entry(record.trial.choice.clone()).or_insert(0) += 1;
    }
    tries
}

#[test]
fn a_tuner_killed_at_any_moment_goes_on_and_tries_nothing_twice() {
    let scratch = Scratch::new("killed");
    let file = scratch.file();
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut kills, mut before) = (0, 0);
    while kills < 12 {
        let mut child = start(file.path());
        std::thread::sleep(Duration::from_millis(rng.u64(15..60)));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        let loaded = file.load().unwrap();
        assert!(loaded.notices.len() <= kills, "{:?}", loaded.notices);
        assert!(loaded.records.len() >= before, "what was recorded stays");
        before = loaded.records.len();
    }
    assert!(kills >= 10, "the tuner ended after {kills} kills");
    let mut measure = MadeUp::new(Duration::ZERO);
    let found = tune(&file, &EXHAUSTIVE, &mut measure);
    let space = space();
    assert_eq!((found.tried, found.candidates), (space.len(), space.len()));
    let loaded = file.load().unwrap();
    let tries = tries(&loaded.records);
    assert_eq!(tries.len(), space.len());
    assert!(tries.values().all(|n| *n == 1), "{tries:?}");
    // The same as without a kill.
    let whole = Scratch::new("whole");
    let uninterrupted = tune(&whole.file(), &EXHAUSTIVE, &mut MadeUp::new(Duration::ZERO));
    assert_eq!(found.best[0].choice, uninterrupted.best[0].choice);
    // A further run finds everything done, but for kernels that could not be made, which it does not record again.
    let mut measure = MadeUp::new(Duration::ZERO);
    tune(&file, &EXHAUSTIVE, &mut measure);
    let unmakeable = |c: &&Candidate| MadeUp::new(Duration::ZERO).trial(c).status == Status::Constraints;
    assert_eq!(measure.order.len(), space.candidates().iter().filter(unmakeable).count());
    assert_eq!(file.load().unwrap().records, loaded.records);
}

#[test]
fn what_was_tried_before_there_was_a_parameter_is_not_tried_again() {
    let (scratch, older) = (Scratch::new("newer"), Scratch::new("older"));
    tune(&scratch.file(), &EXHAUSTIVE, &mut MadeUp::new(Duration::ZERO));
    let family = kernels::family("tsmm").unwrap();
    let mut without = 0;
    for mut record in scratch.file().load().unwrap().records {
        let others = record.trial.choice.iter().filter(|(name, _)| *name != "c_source");
        let others = others.fold(Choice::default(), |c, (name, value)| c.with(name, *value));
        let usual = family.complete(&others, &problem(), target::DEFAULT);
        if others != record.trial.choice && usual.as_ref() == Ok(&record.trial.choice) {
            record.trial.choice = others;
            without += 1;
        }
        older.file().append(&[record]).unwrap();
    }
    let mut measure = MadeUp::new(Duration::ZERO);
    let found = tune(&older.file(), &EXHAUSTIVE, &mut measure);
    assert!(without > 10 && found.tried == found.candidates, "{without} of {}", found.tried);
    let makeable = |c: &&Choice| found.best.iter().any(|t| t.choice == **c);
    assert_eq!(measure.order.iter().filter(makeable).count(), 0);
}

#[test]
fn two_tuners_on_one_file_lose_and_spoil_nothing() {
    let scratch = Scratch::new("two");
    let file = scratch.file();
    let mut children: Vec<Child> = (0..2).map(|_| start(file.path())).collect();
    assert!(children.iter_mut().all(|c| c.wait().unwrap().success()));
    let loaded = file.load().unwrap();
    assert_eq!(loaded.notices, [] as [&str; 0]);
    let space = space();
    let tries = tries(&loaded.records);
    assert!(tries.len() == space.len() && tries.values().all(|n| *n <= 2));
    assert!(loaded.records.iter().all(|r| r.problem == Key::of(&problem())));
}

#[test]
fn a_budget_of_seconds_counts_what_earlier_runs_have_spent() {
    let scratch = Scratch::new("budget");
    let file = scratch.file();
    let plan = |seconds: f64| Plan { seconds, ..Plan::default() };
    let mut measure = MadeUp::new(Duration::from_millis(10));
    let first = tune(&file, &plan(0.15), &mut measure);
    assert!(first.tried_now > 1 && first.tried_now < first.candidates, "{}", first.tried_now);
    assert!(first.seconds < 2.0);
    assert!(first.best[0].settled, "the best are timed at length");
    let second = tune(&file, &plan(0.15), &mut MadeUp::new(Duration::ZERO));
    assert_eq!(second.tried_now, 0);
    assert_eq!(second.best, first.best);
    let third = tune(&file, &plan(1e6), &mut MadeUp::new(Duration::ZERO));
    assert_eq!(third.tried, third.candidates);
}

#[test]
fn the_best_of_a_problem_nearby_is_tried_first() {
    let scratch = Scratch::new("nearby");
    let file = scratch.file();
    let gpu = Gpu::of_target(target::DEFAULT);
    let nearby = Problem::new("1100000x4x6".parse().unwrap(), problem().precision, problem().layout);
    let choice = ["block", "threads", "unroll", "vector"].into_iter().zip([512, 2, 3, 1]);
    let form = Choice::default().with("unit", "fma").with("staging", "registers").with("c_source", "l1");
    let form = form.with("early", false);
    let choice = choice.fold(form, |c, (name, value)| c.with(name, value));
    let trial = Trial { choice: choice.clone(), seconds: Some(1e-3), ..Trial::default() };
    file.append(&[Record::new("2026-11-22", &gpu, "tsmm", &Key::of(&nearby), "", trial)]).unwrap();
    let mut measure = MadeUp::new(Duration::ZERO);
    tune(&file, &Plan { candidates: 5, ..Plan::default() }, &mut measure);
    assert_eq!(measure.order[0], choice);
}

#[test]
fn without_a_gpu_the_model_ranks_where_it_is_asked_to() {
    let ranked = json(
        "tune 64x48x1000000 --dtype f64 --layout tn --param unit=mma --param bounded=true --param stages=2 --device sim --json",
        0,
    );
    assert_eq!((ranked["kind"].as_str(), ranked["family"].as_str()), (Some("modelled"), Some("tsmttsm")));
    let best = ranked["best"].as_array().unwrap();
    assert_eq!(best.len(), 5);
    assert!(best.windows(2).all(|w| w[0]["seconds"].as_f64() <= w[1]["seconds"].as_f64()));
    assert!(best[0]["modelled"]["memory"].as_f64().unwrap() > 0.0 && best[0]["registers"].is_null());
    assert!(ranked["why"][0].as_str().unwrap().contains("modelled"), "{}", ranked["why"]);
    assert!(ranked["candidates"].as_u64().unwrap() > 1000);
    let text = String::from_utf8(warpwright("tune 99999x9x9 --param unroll=2 --device sim").stdout).unwrap();
    assert!(text.contains("ranked by the model") && text.contains("modelled  of the roofline"), "{text}");
}

#[test]
fn what_cannot_be_tuned_is_refused_with_advice() {
    assert!(refusal("tune 512x512x512 --device sim").contains("name one with --kernel: tsmttsm, tsmm"));
    assert!(refusal("tune 9x9x9999 --layout tn --kernel sgemm --device sim").contains("use one of tsmttsm"));
    assert!(refusal("tune 9x9x9999 --layout nn --kernel tsmttsm --device sim").contains("use --layout tn"));
    assert!(refusal("tune 9x9x9999 --layout tn --rested --device sim").contains("needs a GPU"));
    assert!(refusal("tune").contains("MxNxK"));
    let scratch = Scratch::new("shapes");
    let shapes = scratch.0.join("shapes.txt");
    std::fs::write(&shapes, "# a comment\n8x8x4096 f64 tn\n9999x8x8 c64 nn # another\n").unwrap();
    let part = "--param staging=registers";
    let starts = "--offset 1,2,3 --lda 9";
    let ranked = json(&format!("tune --shapes {} {part} {starts} --device sim --json", shapes.display()), 0);
    let problem = &ranked[1]["problem"];
    assert_eq!(problem["offset"], serde_json::json!([1, 2, 3]), "{problem}");
    assert_eq!(problem["row_strides"], serde_json::json!([9, 8, 8]), "{problem}");
    let families: Vec<_> = ranked.as_array().unwrap().iter().map(|r| r["family"].as_str().unwrap()).collect();
    assert_eq!(families, ["tsmttsm", "tsmm"]);
    std::fs::write(&shapes, "8x8x4096 f64 tn\n8x8 f64\n").unwrap();
    let message = refusal(&format!("tune --shapes {} --device sim", shapes.display()));
    assert!(message.contains("shapes.txt:2") && message.contains("write MxNxK"), "{message}");
}

/// Runs a command with this file as the user's wisdom; gives the status, standard output and standard error.
fn with_wisdom(file: &WisdomFile, arguments: &str) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(arguments.split_whitespace())
        .env("WARPWRIGHT_WISDOM", file.path())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn gemm_uses_what_was_tuned_and_says_who_chose() {
    let scratch = Scratch::new("dispatch");
    let file = scratch.file();
    let chosen = |arguments: &str| {
        let (status, out, said) = with_wisdom(&file, &format!("gemm {arguments} --device sim --json"));
        assert_eq!(status, Some(0), "{said}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["check"]["passed"], true);
        let kernel = &report["kernel"];
        (kernel["chosen_by"].as_str().unwrap().to_string(), kernel["parameters"]["unroll"].as_i64())
    };
    let by = |arguments: &str| chosen(arguments).0;
    // Nothing that ships is about products so short; of longer ones it knows those that do not add to C.
    assert_eq!(by("200x12x20 --dtype f64 --beta 0.5"), "model");
    assert_eq!(by("4000x12x20 --dtype f64 --beta 0.5"), "neighbour");
    let gpu = Gpu::of_target(target::DEFAULT);
    let mut tuned =
        Problem::new("4000x12x20".parse().unwrap(), "f64".parse().unwrap(), "nn".parse().unwrap());
    tuned.beta.re = 0.5;
    let choice = Choice::default().with("unit", "fma").with("unroll", 3);
    let trial = Trial { choice, seconds: Some(1e-3), ..Trial::default() };
    file.append(&[Record::new("2026-11-22", &gpu, "tsmm", &Key::of(&tuned), "", trial)]).unwrap();
    assert_eq!(chosen("4000x12x20 --dtype f64 --beta 0.5"), ("wisdom".to_string(), Some(3)));
    assert_eq!(chosen("4000x12x20 --dtype f64 --beta 0.5 --kernel tsmm").0, "wisdom");
    assert_eq!(chosen("3000x12x20 --dtype f64 --beta 0.5"), ("neighbour".to_string(), Some(3)));
    assert_eq!(by("4000x12x20 --dtype f32 --beta 0.5"), "neighbour");
    assert_eq!(by("4000x12x20 --dtype f64 --param unroll=2"), "named");
    assert_eq!(by("40x40x40 --kernel sgemm_naive"), "named");
    assert_eq!(by("40x40x40"), "rule");
    // Wisdom that cannot be read costs a notice.
    let (status, _, said) = with_wisdom(&WisdomFile::at(&scratch.0), "gemm 4000x12x20 --device sim --json");
    assert!(status == Some(0) && said.contains("cannot be read"), "{said}");
}

#[test]
fn wisdom_is_listed_merged_imported_and_exported() {
    let scratch = Scratch::new("commands");
    let (file, other) = (scratch.file(), WisdomFile::at(scratch.0.join("other.jsonl")));
    let plan = Plan { candidates: 20, ..Plan::default() };
    let found = tune(&file, &plan, &mut MadeUp::new(Duration::ZERO));
    let path = |name: &str| scratch.0.join(name).display().to_string();
    let (status, out, _) = with_wisdom(&file, "wisdom list --json");
    let listed: serde_json::Value = serde_json::from_str(&out).unwrap();
    // What ships is listed, too; of each of those problems a choice is known for each permission.
    let mut here = listed.as_array().unwrap().iter().filter(|problem| problem["tried"].as_u64() > Some(3));
    let problem = here.next().unwrap();
    assert_eq!((status, problem["tried"].as_u64(), here.next()), (Some(0), Some(20), None));
    assert_eq!(problem["choice"], serde_json::to_value(&found.best[0].choice).unwrap());
    assert!(with_wisdom(&file, "wisdom list").1.contains("1000000x4x6"));
    // A damaged line costs a notice.
    let half = std::fs::read_to_string(file.path()).unwrap()[..50].to_string();
    std::fs::write(other.path(), format!("{half}\n")).unwrap();
    let merge =
        format!("wisdom merge {} {} --out {}", file.path().display(), other.path().display(), path("m"));
    let (status, _, said) = with_wisdom(&file, &merge);
    assert!(
        status == Some(0) && said.contains("other.jsonl:1 is passed over") && said.contains("20 records"),
        "{said}"
    );
    with_wisdom(&file, &format!("{merge} --best"));
    assert_eq!(std::fs::read_to_string(path("m")).unwrap().lines().count(), 1);
    // The best five were timed twice.
    for expected in ["25 new records", "0 new records"] {
        let (status, _, said) = with_wisdom(&other, &format!("wisdom import {}", file.path().display()));
        assert!(status == Some(0) && said.contains(expected), "{said}");
    }
    let export = format!("wisdom export --t4 {} --shape 1000000x4x6", path("t4"));
    assert_eq!(with_wisdom(&other, &export).0, Some(0));
    let exported: serde_json::Value = serde_json::from_slice(&std::fs::read(path("t4")).unwrap()).unwrap();
    assert_eq!(exported["results"].as_array().unwrap().len(), 20);
    let none = with_wisdom(&other, &format!("wisdom export --t4 {} --shape 8x8x8", path("t4")));
    assert!(none.2.contains("0 results"), "{}", none.2);
    let (status, _, said) = with_wisdom(&file, "wisdom merge /no/such/file --out x");
    assert!(status == Some(2) && said.contains("/no/such"), "{said}");
}
