//! Measuring candidates on a GPU: while one is tried by a [`Worker`], others are compiled on all cores.
//!
//! A compiled kernel reaches the worker through the cache of compiled kernels. A worker that crashes or does not answer
//! in time is replaced by a new one, and so is one that says that an error has spoilt it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use warpwright_core::diag::Diagnosis;

use super::compilers::Compilers;
use super::record::{Status, Times, Trial};
use super::search::{Measure, Trials};
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
    /// Compiles a candidate, on any thread, and perhaps longer than anybody waits for it.
    pub compile: Arc<dyn Fn(&Choice) -> Compiled + Send + Sync>,
    /// The threads that do so.
    pub compilers: &'a Compilers,
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
    fn measure(&mut self, trials: &mut dyn Trials) -> Result<(), Diagnosis> {
        self.all(trials, false)
    }

    fn settle(&mut self, trials: &mut dyn Trials) -> Result<(), Diagnosis> {
        self.all(trials, true)
    }
}

/// A candidate that has been compiled, what came of it, and how many seconds it took.
type Ready = (Choice, Compiled, f64);

impl Isolated<'_> {
    /// Compiles candidates on all threads and tries them as they become ready. What is compiled when there is enough is
    /// left to itself.
    fn all(&mut self, trials: &mut dyn Trials, settle: bool) -> Result<(), Diagnosis> {
        let (sender, ready) = mpsc::channel();
        let mut on_the_way = self.hand_out(trials, 0, &sender);
        if self.worker.is_none() {
            self.worker = Some(self.start()?);
        }
        trials.begin();
        let outcome = self.try_all(trials, settle, &mut on_the_way, (&sender, &ready));
        self.compilers.forget();
        outcome
    }

    fn try_all(
        &mut self,
        trials: &mut dyn Trials,
        settle: bool,
        on_the_way: &mut usize,
        (sender, ready): (&Sender<Ready>, &Receiver<Ready>),
    ) -> Result<(), Diagnosis> {
        while *on_the_way > 0
            && let Ok((choice, compiled, seconds)) = ready.recv()
        {
            *on_the_way -= 1;
            let mut trial = match compiled {
                Ok(registers) => {
                    let best = if settle { None } else { trials.best() };
                    let request = Request { choice, best, settle };
                    Trial { registers, ..self.try_one(&request)? }
                }
                Err((status, message)) => failure(&choice, status, message),
            };
            trial.times.compile = seconds;
            if !trials.result(trial)? {
                break;
            }
            // A few at a time: who is asked has a whole space to look through.
            if *on_the_way < self.compilers.threads() {
                *on_the_way += self.hand_out(trials, *on_the_way, sender);
            }
        }
        Ok(())
    }

    /// Hands out candidates to be compiled, so that each thread has another one to go on with; gives how many.
    fn hand_out(&self, trials: &mut dyn Trials, on_the_way: usize, sender: &Sender<Ready>) -> usize {
        let candidates = trials.more(2 * self.compilers.threads() - on_the_way);
        for candidate in &candidates {
            let (choice, compile, sender) = (candidate.choice.clone(), self.compile.clone(), sender.clone());
            self.compilers.run(move || {
                let start = Instant::now();
                let compiled = catch_unwind(AssertUnwindSafe(|| compile(&choice)))
                    .unwrap_or_else(|_| Err((Status::Compile, "the compiler panicked".to_string())));
                // Nobody may be waiting for it any more.
                let _ = sender.send((choice, compiled, start.elapsed().as_secs_f64()));
            });
        }
        candidates.len()
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
    use crate::tune::compilers::Compilers;
    use crate::tune::record::{Status, Trial};
    use crate::tune::search::{Measure, Trials};
    use crate::tune::space::Candidate;
    use crate::tune::worker::READY;
    use std::process::Command;
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use warpwright_core::diag::Diagnosis;

    /// Candidates by their numbers, and the results of those that were tried.
    struct Numbered {
        left: std::ops::Range<i64>,
        most: usize,
        results: Vec<Trial>,
    }

    impl Numbered {
        fn new(candidates: i64, most: usize) -> Numbered {
            Numbered { left: 0..candidates, most, results: Vec::new() }
        }
    }

    impl Trials for Numbered {
        fn more(&mut self, most: usize) -> Vec<Candidate> {
            let one = |x: i64| {
                let choice = Choice::default().with("x", x);
                Candidate { schedule: choice.to_string(), choice, modelled: x as f64 }
            };
            self.left.by_ref().take(most).map(one).collect()
        }

        fn result(&mut self, trial: Trial) -> Result<bool, Diagnosis> {
            self.results.push(trial);
            Ok(self.results.len() < self.most)
        }
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

    fn isolated(
        compilers: &Compilers,
        compile: impl Fn(&Choice) -> Compiled + Send + Sync + 'static,
    ) -> Isolated<'_> {
        let problem = Problem::new("3x5x7".parse().unwrap(), "f64".parse().unwrap(), "tn".parse().unwrap());
        Isolated {
            command: &shell,
            job: Job::new(0, "tsmttsm", &problem),
            compile: Arc::new(compile),
            compilers,
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
            8 => panic!("on purpose"),
            x => Ok(Some(30 + x as u32)),
        };
        let mut trials = Numbered::new(9, usize::MAX);
        isolated(&Compilers::new(3), compile).measure(&mut trials).unwrap();
        let mut trials = trials.results;
        trials.sort_by_key(|t| t.choice.int("x"));
        let statuses: Vec<Status> = trials.iter().map(|t| t.status).collect();
        use Status::{Compile, Correct, Correctness, Runtime, Timeout};
        assert_eq!(
            statuses,
            [Correct, Runtime, Timeout, Correctness, Runtime, Compile, Correct, Correct, Compile]
        );
        assert!(trials[1].message.as_ref().unwrap().contains("signal: 11"), "{:?}", trials[1]);
        assert_eq!((trials[6].registers, trials[6].seconds), (Some(36), Some(0.6)));
        assert!(trials[5].message.as_ref().unwrap().contains("no such instruction"));
        assert!(trials[8].message.as_ref().unwrap().contains("panicked"));
    }

    #[test]
    fn it_ends_when_told_to_and_waits_for_no_compiler() {
        // The first is ready at once, the others take long.
        let compile = |choice: &Choice| {
            std::thread::sleep(Duration::from_millis(if choice.int("x") == 0 { 0 } else { 3000 }));
            Ok(None)
        };
        let compilers = Compilers::new(3);
        let (mut trials, start) = (Numbered::new(1000, 1), Instant::now());
        isolated(&compilers, compile).measure(&mut trials).unwrap();
        assert_eq!(trials.results.len(), 1);
        assert!(start.elapsed() < Duration::from_millis(2500), "it took {:?}", start.elapsed());
        drop(compilers);
        assert!(start.elapsed() < Duration::from_secs(6), "what nobody has begun is not compiled");
    }
}
