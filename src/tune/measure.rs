//! Measuring candidates on a GPU: each is compiled ahead on all cores, then tried by a [`Worker`].
//!
//! A compiled kernel reaches the worker through the cache of compiled kernels. A worker that crashes or does not answer
//! in time is replaced by a new one, and so is one that says that an error has spoilt it.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use warpwright_core::diag::Diagnosis;

use super::record::{Status, Times, Trial};
use super::search::Measure;
use super::space::Candidate;
use super::worker::{Answer, Fault, Job, Request, Worker};
use crate::kernels::family::Choice;

/// What became of compiling a candidate: registers of a thread, or why there is no kernel.
pub type Compiled = Result<Option<u32>, (Status, String)>;

/// Tries candidates in a process of its own.
pub struct Isolated<'a> {
    /// How to start a worker.
    pub command: &'a dyn Fn() -> Command,
    /// What the worker is for.
    pub job: Job,
    /// Compiles a candidate, on any thread.
    pub compile: &'a (dyn Fn(&Choice) -> Compiled + Sync),
    /// Threads that compile.
    pub threads: usize,
    /// How long one candidate may take to be tried.
    pub limit: Duration,
    /// How long a worker may take to be ready.
    pub start_limit: Duration,
    /// The worker, once it was needed.
    pub worker: Option<Worker>,
    /// Whether there was a worker that could work.
    pub has_worked: bool,
}

/// How often a worker is started anew, and how long after the one before, where there was one that could work: the
/// system may need a while to take the GPU from a process that was killed.
const RESTARTS: usize = 3;
const RESTART_PAUSE: Duration = Duration::from_secs(2);

impl Measure for Isolated<'_> {
    fn prepare(&mut self) -> Result<(), Diagnosis> {
        if self.worker.is_none() {
            self.worker = Some(self.start()?);
        }
        Ok(())
    }

    fn measure(
        &mut self,
        candidates: &[Candidate],
        best: Option<f64>,
        each: &mut dyn FnMut(Trial) -> Result<bool, Diagnosis>,
    ) -> Result<(), Diagnosis> {
        let mut best = best;
        self.all(candidates, each, &mut |choice, trial| {
            if let (Some(Status::Correct), Some(seconds)) =
                (trial.map(|t| t.status), trial.and_then(|t| t.seconds))
            {
                best = Some(best.map_or(seconds, |b: f64| b.min(seconds)));
            }
            Request { choice: choice.clone(), best, settle: false }
        })
    }

    fn settle(
        &mut self,
        candidates: &[Candidate],
        each: &mut dyn FnMut(Trial) -> Result<bool, Diagnosis>,
    ) -> Result<(), Diagnosis> {
        self.all(candidates, each, &mut |choice, _| Request {
            choice: choice.clone(),
            best: None,
            settle: true,
        })
    }
}

impl Isolated<'_> {
    /// Compiles candidates on all threads and tries them as they become ready. `request` is what to ask the worker of a
    /// choice, given the result before it.
    fn all(
        &mut self,
        candidates: &[Candidate],
        each: &mut dyn FnMut(Trial) -> Result<bool, Diagnosis>,
        request: &mut dyn FnMut(&Choice, Option<&Trial>) -> Request,
    ) -> Result<(), Diagnosis> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, compiled) = mpsc::channel();
        let compile = self.compile;
        std::thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, candidates.len().max(1)) {
                let (sender, next, stop) = (sender.clone(), &next, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let Some(candidate) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            break;
                        };
                        let start = Instant::now();
                        let result = compile(&candidate.choice);
                        if sender.send((candidate, result, start.elapsed().as_secs_f64())).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut before: Option<Trial> = None;
            let mut go_on = || -> Result<(), Diagnosis> {
                while let Ok((candidate, result, seconds)) = compiled.recv() {
                    let choice = &candidate.choice;
                    let mut trial = match result {
                        Ok(registers) => {
                            let request = request(choice, before.as_ref());
                            Trial { registers, ..self.try_one(&request)? }
                        }
                        Err((status, message)) => failure(choice, status, message),
                    };
                    trial.times.compile = seconds;
                    before = Some(trial.clone());
                    if !each(trial)? {
                        break;
                    }
                }
                Ok(())
            };
            let outcome = go_on();
            stop.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn start(&mut self) -> Result<Worker, Diagnosis> {
        let attempts = if self.has_worked { RESTARTS } else { 1 };
        let mut attempt = 1;
        loop {
            match Worker::start((self.command)(), &self.job, self.start_limit) {
                Err(_) if attempt < attempts => std::thread::sleep(RESTART_PAUSE),
                Err(diagnosis) => return Err(diagnosis),
                Ok(worker) => {
                    self.has_worked = true;
                    return Ok(worker);
                }
            }
            attempt += 1;
        }
    }

    fn try_one(&mut self, request: &Request) -> Result<Trial, Diagnosis> {
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.start()?,
        };
        let start = Instant::now();
        let trial = match worker.ask(request, self.limit) {
            Ok(Answer { trial, spoilt }) => {
                self.worker = (!spoilt).then_some(worker);
                trial
            }
            Err(fault) => {
                let (status, message) = match fault {
                    Fault::Late => {
                        (Status::Timeout, format!("it did not end within {} s", self.limit.as_secs_f64()))
                    }
                    Fault::Ended(how) => {
                        (Status::Runtime, format!("the process that tried it is gone: {how}"))
                    }
                };
                let times = Times { measure: start.elapsed().as_secs_f64(), ..Times::default() };
                Trial { times, ..failure(&request.choice, status, message) }
            }
        };
        Ok(trial)
    }
}

/// A trial that came to nothing.
pub fn failure(choice: &Choice, status: Status, message: String) -> Trial {
    Trial { choice: choice.clone(), status, message: Some(message), ..Trial::default() }
}

#[cfg(test)]
mod tests {
    use super::{Compiled, Isolated, Job};
    use crate::kernels::family::Choice;
    use crate::problem::Problem;
    use crate::tune::record::{Status, Trial};
    use crate::tune::search::Measure;
    use crate::tune::space::Candidate;
    use crate::tune::worker::READY;
    use std::process::Command;
    use std::time::Duration;

    fn candidates(count: i64) -> Vec<Candidate> {
        let one = |x: i64| {
            let choice = Choice::default().with("x", x);
            Candidate { schedule: choice.to_string(), choice, modelled: x as f64 }
        };
        (0..count).map(one).collect()
    }

    /// A worker played by the shell: candidate 1 crashes it, 2 hangs, 3 is wrong, 4 fails; the others are right.
    fn shell() -> Command {
        let answer = |status: &str, spoilt: bool| {
            let trial = format!(r#"{{\"choice\":{{\"x\":$x}},\"status\":\"{status}\",\"seconds\":0.$x}}"#);
            format!(r#"echo "{{\"trial\":{trial},\"spoilt\":{spoilt}}}"; spoilt={spoilt}"#)
        };
        let script = format!(
            "read job; echo '{READY}'; while read -r line; do
               x=${{line#*:}}; x=${{x#*:}}; x=${{x%%\\}}*}}
               case $x in 1) kill -SEGV $$;; 2) exec sleep 100;; 3) {};; 4) {};; *) {};; esac
               # Who asks a spoilt worker once more has not listened.
               if $spoilt; then read -r line && exit 9; fi
             done",
            answer("correctness", false),
            answer("runtime", true),
            answer("correct", false)
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        command
    }

    fn isolated<'a>(compile: &'a (dyn Fn(&Choice) -> Compiled + Sync)) -> Isolated<'a> {
        let problem = Problem::new("3x5x7".parse().unwrap(), "f64".parse().unwrap(), "tn".parse().unwrap());
        Isolated {
            command: &shell,
            job: Job::new(0, "tsmttsm", &problem),
            compile,
            threads: 3,
            limit: Duration::from_millis(400),
            start_limit: Duration::from_secs(10),
            worker: None,
            has_worked: false,
        }
    }

    #[test]
    fn whatever_a_candidate_does_costs_that_candidate_only() {
        let compile = |choice: &Choice| match choice.int("x") {
            5 => Err((Status::Compile, "no such instruction".to_string())),
            x => Ok(Some(30 + x as u32)),
        };
        let mut trials: Vec<Trial> = Vec::new();
        isolated(&compile)
            .measure(&candidates(8), None, &mut |trial| {
                trials.push(trial);
                Ok(true)
            })
            .unwrap();
        trials.sort_by_key(|t| t.choice.int("x"));
        let statuses: Vec<Status> = trials.iter().map(|t| t.status).collect();
        use Status::{Compile, Correct, Correctness, Runtime, Timeout};
        assert_eq!(statuses, [Correct, Runtime, Timeout, Correctness, Runtime, Compile, Correct, Correct]);
        assert!(trials[1].message.as_ref().unwrap().contains("signal: 11"), "{:?}", trials[1]);
        assert_eq!((trials[6].registers, trials[6].seconds), (Some(36), Some(0.6)));
        assert!(trials[5].message.as_ref().unwrap().contains("no such instruction"));
    }

    #[test]
    fn it_ends_when_told_to() {
        let compile = |_: &Choice| Ok(None);
        let mut count = 0;
        let told = isolated(&compile).measure(&candidates(1000), None, &mut |_| {
            count += 1;
            Ok(count < 2)
        });
        assert_eq!((told, count), (Ok(()), 2));
    }
}
