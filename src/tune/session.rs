//! A tuning session: search, measurement and record put together.
//!
//! Every result is on the disk before the next candidate is looked at, and the records are all that a session
//! remembers. So one that was killed goes on where it was when it is started again, and nothing is tried twice, but for
//! champions: what earlier runs timed at length, maybe on a faster card of the same kind, and had shorter times than this run finds. They are timed anew
//! beside it, and later records count.

use std::collections::HashSet;
use std::time::Instant;

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;

use super::alike::is_same_but_long;
use super::candidates::{Choices, PROMISING};
use super::file::WisdomFile;
use super::record::{Gpu, Key, Record, Status, Trial};
use super::search::{Measure, Plan, Search, Trials, Which};
use super::space::{self, Candidate, Space};
use super::summary;
use super::wisdom::{self, Wisdom};
use crate::bench::record::today;
use crate::kernels::family::{Choice, Family, Permissions};
use crate::problem::Problem;
use crate::roofline::Roofline;

/// What is tuned, and where the results go.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// The GPU, as the records name it.
    pub gpu: &'a Gpu,
    /// Its table.
    pub target: &'a Target,
    /// The family of kernels.
    pub family: &'static Family,
    /// The problem.
    pub problem: &'a Problem,
    /// What candidates may do.
    pub permissions: Permissions,
    /// What every candidate has to have in it.
    pub given: &'a Choice,
    /// The file of wisdom that is read and added to; nothing is kept where there is none.
    pub file: Option<&'a WisdomFile>,
    /// Whether to try again what is known.
    pub again: bool,
    /// Whether to do without the wisdom that ships with the program, as if nobody had tuned before.
    pub alone: bool,
    /// Whether the GPU rests before each candidate is timed. What was timed at another pace counts as not tried.
    pub rested: bool,
}

/// How far a session is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Candidates tried, in earlier runs too.
    pub tried: usize,
    /// Candidates there are.
    pub candidates: usize,
    /// The least seconds so far.
    pub best: Option<f64>,
    /// The fraction of the roofline that this is.
    pub fraction: Option<f64>,
    /// Seconds of the budget that are left.
    pub left: f64,
    /// The latest result.
    pub latest: &'a Trial,
}

/// What a session found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Candidates there are.
    pub candidates: usize,
    /// The choices that they were taken out of.
    pub choices: usize,
    /// Candidates tried, in earlier runs too.
    pub tried: usize,
    /// Those of them that this run tried.
    pub tried_now: usize,
    /// Candidates that failed.
    pub failed: usize,
    /// Seconds spent, those of earlier runs included.
    pub seconds: f64,
    /// Right configurations: first those that were timed at length, the fastest first, then the others likewise.
    pub best: Vec<Trial>,
    /// What is worth a line on standard error.
    pub notices: Vec<String>,
}

/// How many of the best are timed once more, at length: the best of many quick looks is partly luck.
const FINALISTS: usize = 5;

/// The part of the budget of seconds that is kept for that.
const RESERVE: f64 = 0.08;

/// A result this much faster than [`Roofline::floor`] is a fault of the measurement. The bandwidth in it is itself
/// measured, so a few per cent are possible.
const TOO_FAST: f64 = 1.15;

impl Session<'_> {
    /// Searches until the budget is spent, and says how far it is after every result.
    ///
    /// # Errors
    /// Wisdom that cannot be read or written, and whatever keeps candidates from being measured at all.
    pub fn run(
        &self,
        plan: &Plan,
        measure: &mut dyn Measure,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<Found, Diagnosis> {
        self.run_in(&self.space(plan.which)?, plan, measure, tell)
    }

    /// The same where the candidates are known already: they are [`Session::space`]'s.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_in(
        &self,
        space: &Space,
        plan: &Plan,
        measure: &mut dyn Measure,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<Found, Diagnosis> {
        self.check(space)?;
        let key = Key::of(self.problem);
        let (wisdom, mut notices) = self.wisdom()?;
        let mut run = Run {
            session: self,
            key: &key,
            space,
            search: Search::new(space, plan.clone(), &self.good(&wisdom, &key)?),
            trials: Vec::new(),
            timed_now: HashSet::new(),
            champions: self.champions(&wisdom, &key),
            unmakeable: Vec::new(),
            roofline: Roofline::reached(self.problem, self.target).map(|r| r.seconds()),
            least: Roofline::floor(self.problem, self.target, self.permissions.three_multiplications)
                .map_or(0.0, |seconds| seconds / TOO_FAST),
            spent_before: 0.0,
            start: Instant::now(),
            last: 0.0,
            budget: plan.seconds,
            reserve: plan.seconds * RESERVE,
        };
        if !self.again {
            let mut tried = wisdom.tried(self.gpu, self.family.name, &key);
            tried.retain(|record| record.trial.rested == self.rested);
            run.remember(&tried);
        }
        let known = run.search.count();
        run.search(measure, tell)?;
        run.settle(measure, tell)?;
        if let Some(Err(diagnosis)) = self.file.map(summary::write) {
            notices.push(diagnosis.to_string());
        }
        // Champions that have not what candidates were to have stand in the records only.
        let (mut best, failed): (Vec<Trial>, Vec<Trial>) = run
            .trials
            .iter()
            .filter(|t| space.place(&t.choice).is_some())
            .cloned()
            .partition(|t| t.status == Status::Correct);
        let seconds = |t: &Trial| t.seconds.unwrap_or(f64::INFINITY);
        best.sort_by(|a, b| b.settled.cmp(&a.settled).then(seconds(a).total_cmp(&seconds(b))));
        Ok(Found {
            candidates: space.len(),
            choices: space.choices(),
            tried: run.search.count(),
            tried_now: run.search.count() - known,
            failed: failed.len(),
            seconds: run.spent(),
            best,
            notices,
        })
    }
}

impl Session<'_> {
    /// All candidates, those first with which a search begins that knows no results of this problem.
    ///
    /// # Errors
    /// Wisdom that cannot be read, and a space without candidates.
    pub fn order(&self) -> Result<Vec<Candidate>, Diagnosis> {
        let space = self.space(Which::Promising)?;
        self.check(&space)?;
        let good = self.good(&self.wisdom()?.0, &Key::of(self.problem))?;
        let order = Search::new(&space, Plan::default(), &good).order();
        Ok(order.into_iter().map(|place| space.candidates()[place].clone()).collect())
    }

    /// What is known of the family, and what is worth saying of it.
    fn wisdom(&self) -> Result<(Wisdom, Vec<String>), Diagnosis> {
        if self.alone {
            summary::of_file(self.family.name, self.file)
        } else {
            summary::known(self.family.name, self.file, true)
        }
    }

    /// The candidates: of some millions of choices, the most promising and what is known of, unless all are to be tried or
    /// drawn from. To look at ten million takes a core half a minute.
    ///
    /// # Errors
    /// Wisdom that cannot be read, and constraints that no choice fulfils.
    pub fn space(&self, which: Which) -> Result<Space, Diagnosis> {
        let Session { family, problem, target, permissions, given, .. } = *self;
        let choices = Choices { family, problem, target, permissions, given };
        family.complete_permitted(given, problem, target, permissions)?;
        if which != Which::Promising {
            return Ok(choices.all());
        }
        let (wisdom, key) = (self.wisdom()?.0, Key::of(problem));
        let tried = wisdom.tried(self.gpu, family.name, &key).into_iter();
        let mut known = self.good(&wisdom, &key)?;
        known.extend(tried.filter_map(|record| family.complete(&record.trial.choice, problem, target).ok()));
        Ok(choices.promising(PROMISING, &known))
    }

    fn check(&self, space: &Space) -> Result<(), Diagnosis> {
        if !space.is_empty() {
            return Ok(());
        }
        let Session { family, problem, .. } = self;
        Err(Diagnosis::new(format!("{} has no candidate for {}", family.name, problem.shape))
            .because("its constraints hold for no choice")
            .instead("name another family with --kernel"))
    }

    /// What was timed at length for this very problem, at this pace, the fastest first.
    fn champions(&self, wisdom: &Wisdom, key: &Key) -> Vec<(f64, Candidate)> {
        let Session { family, problem, target, given, permissions, .. } = *self;
        let choices = Choices { family, problem, target, permissions, given };
        let of_record = |record: &Record| {
            let choice = family.complete(&record.trial.choice, problem, target).ok()?;
            let champion = choices.candidate(&choice);
            (champion.schedule == record.schedule).then_some((wisdom::seconds(record), champion))
        };
        let mut tried = wisdom.tried(self.gpu, family.name, key);
        tried.retain(|r| {
            r.trial.settled && r.trial.rested == self.rested && permissions.cover(wisdom::needs(r))
        });
        tried.sort_by(|a, b| wisdom::seconds(a).total_cmp(&wisdom::seconds(b)));
        tried.into_iter().take(FINALISTS).filter_map(of_record).collect()
    }

    /// Choices that are likely to be good: those of the same problem on other GPUs like this one, or of one that differs in a long extent
    /// only, those of near problems, and the usual one.
    fn good(&self, wisdom: &Wisdom, key: &Key) -> Result<Vec<Choice>, Diagnosis> {
        let alike = |other: &Key| is_same_but_long(self.family, self.problem, key, other);
        let elsewhere = wisdom.elsewhere(self.gpu, self.family.name, key, &alike, self.permissions);
        let mut choices: Vec<&Choice> =
            elsewhere.into_iter().take(OF_OTHERS).map(|record| &record.trial.choice).collect();
        // What was good without what is asked for may be better with it.
        let mut here = wisdom.tried(self.gpu, self.family.name, key);
        here.retain(|record| !self.given.is_empty() && record.trial.settled);
        here.sort_by(|a, b| wisdom::seconds(a).total_cmp(&wisdom::seconds(b)));
        choices.extend(here.iter().take(OF_OTHERS).map(|record| &record.trial.choice));
        let mut good: Vec<Choice> = choices.into_iter().filter_map(|choice| self.as_asked(choice)).collect();
        good.extend(self.good_nearby(wisdom, key));
        let (given, permissions) = (self.given, self.permissions);
        good.push(self.family.complete_permitted(given, self.problem, self.target, permissions)?);
        Ok(good)
    }
}

/// How many near problems are asked for their best choices, and for how many each.
const NEAR: usize = 6;
const OF_EACH: usize = 2;

/// How many choices for the same problem on other GPUs are tried early.
const OF_OTHERS: usize = 6;

impl Session<'_> {
    /// The best choices of the nearest problems, as they suit this one.
    fn good_nearby(&self, wisdom: &Wisdom, key: &Key) -> Vec<Choice> {
        let mut asked: Vec<(&Key, usize)> = Vec::new();
        let mut good = Vec::new();
        for (_, record) in wisdom.near(self.gpu, self.family.name, key, self.permissions) {
            match asked.iter().position(|(problem, _)| **problem == record.problem) {
                Some(at) if asked[at].1 == OF_EACH => continue,
                Some(at) => asked[at].1 += 1,
                None if asked.len() == NEAR => break,
                None => asked.push((&record.problem, 1)),
            }
            let adapted = space::adapted(self.family, &record.trial.choice, self.problem, self.target);
            good.extend(self.as_asked(&adapted));
        }
        good
    }

    /// A choice with what is asked for in the place of what it has, if there is such a one.
    fn as_asked(&self, choice: &Choice) -> Option<Choice> {
        let asked = self.given.iter().fold(choice.clone(), |c, (name, value)| c.with(name, *value));
        self.family.complete(&asked, self.problem, self.target).ok()
    }
}

/// A session that is going on.
struct Run<'a> {
    session: &'a Session<'a>,
    key: &'a Key,
    space: &'a Space,
    search: Search<'a>,
    /// Of each candidate that was tried, the latest result.
    trials: Vec<Trial>,
    /// Choices that this run has timed.
    timed_now: HashSet<Choice>,
    /// What earlier runs timed at length, with the seconds they had then.
    champions: Vec<(f64, Candidate)>,
    /// Choices of which it is on record that no kernel can be made of them.
    unmakeable: Vec<Choice>,
    /// Seconds by what is known to be reached on this GPU, of which results are fractions.
    roofline: Option<f64>,
    /// What takes less seconds is a fault of the measurement.
    least: f64,
    spent_before: f64,
    start: Instant,
    /// When the last result was noted.
    last: f64,
    budget: f64,
    /// What of it is kept for timing the best at length.
    reserve: f64,
}

impl Run<'_> {
    /// Takes up what earlier runs have recorded, as far as the same choice still means the same schedule; parameters that
    /// came later have their usual values in it. A kernel that could not be made is tried again, which costs
    /// milliseconds: this version may know how.
    fn remember(&mut self, records: &[&Record]) {
        let Session { family, problem, target, .. } = self.session;
        for record in records {
            let same = |c: &Candidate| c.schedule == record.schedule;
            let Ok(choice) = family.complete(&record.trial.choice, problem, target) else { continue };
            let place = self.space.place(&choice);
            if !place.is_some_and(|p| same(&self.space.candidates()[p])) {
                continue;
            }
            self.spent_before += record.trial.times.all;
            if record.trial.status == Status::Constraints {
                self.unmakeable.push(choice);
            } else {
                self.note(Trial { choice, ..record.trial.clone() });
            }
        }
    }

    fn spent(&self) -> f64 {
        self.spent_before + self.start.elapsed().as_secs_f64()
    }

    fn note(&mut self, trial: Trial) {
        self.search.tell(&trial);
        match self.trials.iter_mut().find(|t| t.choice == trial.choice) {
            Some(known) => *known = trial,
            None => self.trials.push(trial),
        }
    }

    /// Completes a result, records it, and says how far the session is. Gives whether the budget allows another.
    fn result(&mut self, mut trial: Trial, tell: &mut dyn FnMut(&Progress)) -> Result<bool, Diagnosis> {
        let now = self.start.elapsed().as_secs_f64();
        // What is timed once more has cost both times.
        let before = self.trials.iter().find(|t| t.choice == trial.choice).map_or(0.0, |t| t.times.all);
        trial.times.all = before + now - self.last;
        trial.rested = self.session.rested;
        self.last = now;
        if trial.status == Status::Correct {
            trial.fraction = self.roofline.zip(trial.seconds).map(|(roof, seconds)| roof / seconds);
        }
        if let Some(seconds) = trial.seconds.filter(|s| *s < self.least) {
            trial.status = Status::Correctness;
            let table = TOO_FAST * self.least / seconds;
            trial.message = Some(format!(
                "it was timed at {table:.2} times the peak of the GPU's table, which cannot be"
            ));
        }
        let is_on_record = trial.status == Status::Constraints && self.unmakeable.contains(&trial.choice);
        let champion = self.champions.iter().map(|(_, c)| c).find(|c| c.choice == trial.choice);
        let of_space = self.space.place(&trial.choice).map(|place| &self.space.candidates()[place]);
        let candidate = of_space.or(champion).filter(|_| !is_on_record);
        if let (Some(file), Some(Candidate { schedule, .. })) = (self.session.file, candidate) {
            let Session { gpu, family, .. } = self.session;
            file.append(&[Record::new(&today(), gpu, family.name, self.key, schedule, trial.clone())])?;
        }
        self.timed_now.insert(trial.choice.clone());
        self.note(trial.clone());
        let best = self.search.best();
        let going_on = self.search.may_go_on(self.spent() + self.reserve);
        tell(&Progress {
            tried: self.search.count(),
            candidates: self.space.len(),
            best,
            fraction: self.roofline.zip(best).map(|(roof, seconds)| roof / seconds),
            left: (self.budget - self.spent()).max(0.0),
            latest: &trial,
        });
        Ok(going_on)
    }

    fn search(
        &mut self,
        measure: &mut dyn Measure,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<(), Diagnosis> {
        if !self.search.may_go_on(self.spent() + self.reserve) {
            return Ok(());
        }
        let before = self.search.count();
        measure.measure(&mut Searched { run: self, tell })?;
        if self.search.count() == before {
            return Err(Diagnosis::new("no candidate could be tried")
                .because("the measurement gave no result for any of them"));
        }
        Ok(())
    }

    /// Times the best few at length, unless an earlier run has done so, and the best few of this run, which may have been timed on a slower
    /// card, with the champions that had shorter times.
    fn settle(
        &mut self,
        measure: &mut dyn Measure,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<(), Diagnosis> {
        let ranking = self.candidates(&self.search.ranking());
        let timed_now = |c: &&Candidate| self.timed_now.contains(&c.choice);
        let settled = |c: &&Candidate| self.trials.iter().any(|t| t.settled && t.choice == c.choice);
        let of_this_run = ranking.iter().filter(timed_now).take(FINALISTS);
        let best = ranking.iter().take(FINALISTS);
        let mut finalists: Vec<Candidate> = Vec::new();
        for candidate in best.chain(of_this_run).filter(|c| !settled(c)) {
            if !finalists.contains(candidate) {
                finalists.push(candidate.clone());
            }
        }
        if finalists.is_empty() {
            return Ok(());
        }
        let best_now = ranking.iter().find(timed_now).and_then(|c| self.seconds_of(&c.choice));
        let shorter =
            self.champions.iter().filter(|(seconds, _)| best_now.is_some_and(|best| *seconds < best));
        finalists.extend(shorter.map(|(_, c)| c).filter(|c| !timed_now(c)).cloned());
        measure.settle(&mut Finalists { left: finalists.into_iter(), run: self, tell })
    }

    fn seconds_of(&self, choice: &Choice) -> Option<f64> {
        self.trials.iter().find(|t| t.choice == *choice).and_then(|t| t.seconds)
    }

    fn candidates(&self, places: &[usize]) -> Vec<Candidate> {
        places.iter().map(|place| self.space.candidates()[*place].clone()).collect()
    }
}

/// What the search asks for.
struct Searched<'r, 'a> {
    run: &'r mut Run<'a>,
    tell: &'r mut dyn FnMut(&Progress),
}

impl Trials for Searched<'_, '_> {
    fn more(&mut self, most: usize) -> Vec<Candidate> {
        let places = self.run.search.next(most);
        self.run.candidates(&places)
    }

    fn begin(&mut self) {
        self.run.start = Instant::now();
    }

    fn best(&self) -> Option<f64> {
        self.run.search.best()
    }

    fn result(&mut self, trial: Trial) -> Result<bool, Diagnosis> {
        self.run.result(trial, self.tell)
    }
}

/// The best few, to be timed at length.
struct Finalists<'r, 'a> {
    left: std::vec::IntoIter<Candidate>,
    run: &'r mut Run<'a>,
    tell: &'r mut dyn FnMut(&Progress),
}

impl Trials for Finalists<'_, '_> {
    fn more(&mut self, most: usize) -> Vec<Candidate> {
        self.left.by_ref().take(most).collect()
    }

    fn result(&mut self, trial: Trial) -> Result<bool, Diagnosis> {
        let trial = Trial { settled: trial.status == Status::Correct, ..trial };
        self.run.result(trial, self.tell).map(|_| true)
    }
}

#[cfg(test)]
mod tests {
    use warpwright_core::diag::Diagnosis;
    use warpwright_core::target;

    use super::super::record::{Gpu, Status, Trial};
    use super::super::search::{Measure, Plan, Trials};
    use super::super::tests::Scratch;
    use super::Session;
    use crate::kernels;
    use crate::kernels::family::{Choice, Permissions};
    use crate::problem::Problem;

    /// Says of the first candidate that it took so many seconds.
    struct Took(f64);

    impl Measure for Took {
        fn measure(&mut self, trials: &mut dyn Trials) -> Result<(), Diagnosis> {
            let choice = trials.more(1)[0].choice.clone();
            trials.result(Trial { choice, seconds: Some(self.0), ..Trial::default() }).map(|_| ())
        }

        fn settle(&mut self, _: &mut dyn Trials) -> Result<(), Diagnosis> {
            Ok(())
        }
    }

    /// What is on record of a candidate for A C that is said to have taken so many seconds, and whether it counts as found.
    fn told(shape: &str, dtype: &str, given: &Choice, seconds: f64) -> (Trial, bool) {
        let problem = Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), "nn".parse().unwrap());
        let target = target::Target::by_name("h200").unwrap();
        let scratch = Scratch::new(&format!("took-{dtype}-{seconds}"));
        let session = Session {
            gpu: &Gpu::of_target(target),
            target,
            family: kernels::family("tsmm").unwrap(),
            problem: &problem,
            permissions: Permissions::NONE,
            given,
            file: Some(&scratch.file()),
            again: false,
            alone: true,
            rested: false,
        };
        let plan = Plan { candidates: 1, ..Plan::default() };
        let found = session.run(&plan, &mut Took(seconds), &mut |_| {}).unwrap();
        assert_eq!((found.tried, found.failed + found.best.len()), (1, 1));
        (scratch.file().load().unwrap().records[0].trial.clone(), found.failed == 0)
    }

    #[test]
    fn a_time_that_no_gpu_can_reach_is_no_result() {
        let given = Choice::default().with("unit", "fma").with("staging", "registers");
        let (trial, found) = told("1000000x4x6", "f64", &given, 1e-9);
        assert!(!found && trial.status == Status::Correctness);
        assert!(trial.message.as_ref().unwrap().contains("times the peak"), "{trial:?}");
    }

    #[test]
    fn split_numbers_may_be_multiplied_faster_than_threads_multiply() {
        // Measured on an H200: 1.22 times the peak of f32 by threads.
        let ring = Choice::default().with("unit", "mma").with("copy", "bulk").with("rows", 64);
        assert!(told("2100882x126x126", "c64", &ring, 3271e-6).1);
        assert!(!told("2100882x126x126", "c64", &ring, 1e-3).1, "that is less than the bytes take");
    }
}
