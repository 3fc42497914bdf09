//! A process that tries candidates, so that a crash, a hang or an error that spoils the GPU's context costs one of them.
//!
//! The parent writes a [`Job`], then a [`Request`] at a time, each a line of JSON on the worker's standard input; the
//! worker writes lines on its standard output: `ready` once, then an [`Answer`] to each request. A worker ends when its
//! standard input does, so none outlives its parent.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use warpwright_core::diag::Diagnosis;

use super::record::Trial;
use crate::kernels::family::Choice;
use crate::problem::{Offsets, Problem, Shape, Strides};

/// What a worker is started for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The number of the GPU.
    pub gpu: usize,
    /// The family of kernels.
    pub family: String,
    /// Extents M, N and K.
    pub shape: [i64; 3],
    /// The element type.
    pub dtype: String,
    /// A letter for each operand.
    pub layout: String,
    /// Row strides of A, B and C, in elements.
    pub strides: [i64; 3],
    /// By how many elements A, B and C start behind an aligned address.
    pub offsets: [i64; 3],
    /// Real and imaginary part of alpha.
    pub alpha: [f64; 2],
    /// Real and imaginary part of beta.
    pub beta: [f64; 2],
    /// Whether B is A.
    pub same: bool,
    /// Whether candidates are timed after pauses.
    #[serde(default)]
    pub rested: bool,
}

/// A candidate to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What is chosen.
    pub choice: Choice,
    /// The least time so far; what is much slower need not be timed exactly.
    pub best: Option<f64>,
    /// Whether to time it at length.
    pub settle: bool,
}

/// What a worker answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What came of the candidate.
    pub trial: Trial,
    /// Whether the worker is of no use any more: some errors of CUDA spoil everything that comes after them.
    pub spoilt: bool,
}

/// The line that a worker writes when it has what it needs.
pub const READY: &str = "\"ready\"";

impl Job {
    /// The job of tuning a family for a problem, candidates of which are timed one right after the other.
    pub fn new(gpu: usize, family: &str, problem: &Problem) -> Job {
        let Shape { m, n, k } = problem.shape;
        Job {
            gpu,
            family: family.to_string(),
            shape: [m, n, k],
            dtype: problem.precision.name().to_string(),
            layout: problem.layout.to_string(),
            strides: [problem.ld.a, problem.ld.b, problem.ld.c],
            offsets: [problem.offset.a, problem.offset.b, problem.offset.c],
            alpha: [problem.alpha.re, problem.alpha.im],
            beta: [problem.beta.re, problem.beta.im],
            same: problem.same,
            rested: false,
        }
    }

    /// The problem.
    ///
    /// # Errors
    /// Words that are no element type or layout.
    pub fn problem(&self) -> Result<Problem, Diagnosis> {
        let [m, n, k] = self.shape;
        let mut problem = Problem::new(Shape { m, n, k }, self.dtype.parse()?, self.layout.parse()?);
        let [a, b, c] = self.strides;
        problem.ld = Strides { a, b, c };
        let [a, b, c] = self.offsets;
        problem.offset = Offsets { a, b, c };
        problem.alpha = Complex64::new(self.alpha[0], self.alpha[1]);
        problem.beta = Complex64::new(self.beta[0], self.beta[1]);
        problem.same = self.same;
        problem.check()?;
        Ok(problem)
    }
}

/// A worker that is running.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

/// Why a worker gave no answer. It is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its time was over.
    Late,
    /// It has ended, as described.
    Ended(String),
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    ///
    /// # Errors
    /// A command that cannot be started, and a worker that ends or says something else before it is ready.
    pub fn start(mut command: Command, job: &Job, limit: Duration) -> Result<Worker, Diagnosis> {
        let failed =
            |because: String| Diagnosis::new("the process that measures cannot work").because(because);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        let (Some(requests), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no standard input or output".to_string()));
        };
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // The receiver is gone when the worker is given up.
            for line in lines {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut worker = Worker { child, requests, answers };
        match worker.exchange(job, limit) {
            Ok(line) if line == READY => Ok(worker),
            Ok(line) => Err(failed(serde_json::from_str(&line).unwrap_or(line))),
            Err(Fault::Late) => Err(failed(format!("it was not ready after {} s", limit.as_secs()))),
            Err(Fault::Ended(how)) => Err(failed(how)),
        }
    }

    /// Asks for one candidate to be tried.
    ///
    /// # Errors
    /// No answer in time or at all; the worker is then given up.
    pub fn ask(&mut self, request: &Request, limit: Duration) -> Result<Answer, Fault> {
        let line = self.exchange(request, limit)?;
        serde_json::from_str(&line).map_err(|e| Fault::Ended(format!("it answered nonsense ({e})")))
    }

    fn exchange(&mut self, line: &impl Serialize, limit: Duration) -> Result<String, Fault> {
        let ended = |e: &dyn std::fmt::Display| Fault::Ended(e.to_string());
        let text = serde_json::to_string(line).map_err(|e| ended(&e))? + "\n";
        let written = self.requests.write_all(text.as_bytes()).and_then(|()| self.requests.flush());
        if written.is_err() {
            return Err(Fault::Ended(self.end()));
        }
        match self.answers.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(Fault::Late),
            Err(RecvTimeoutError::Disconnected) => Err(Fault::Ended(self.end())),
        }
    }

    /// How it ended, in the system's words.
    fn end(&mut self) -> String {
        // A process that has closed its output may take a moment to end.
        for _ in 0..50 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return format!("it ended with {status}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        "it closed its output".to_string()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The worker's side: reads the job, makes what tries candidates, and answers until standard input ends.
pub fn serve<T>(
    make: impl FnOnce(&Job) -> Result<T, Diagnosis>,
    mut answer: impl FnMut(&mut T, &Request) -> Answer,
) {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
        // Nobody is left to answer, whatever the GPU is doing.
        std::process::exit(0);
    });
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        // Nobody may be listening any more, in which case standard input has ended too.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let Ok(first) = lines.recv() else { return };
    let job = serde_json::from_str(&first).map_err(|e| Diagnosis::new(format!("no job: {e}")));
    let mut made = match job.and_then(|job: Job| make(&job)) {
        Ok(made) => made,
        Err(diagnosis) => return say(quoted(&diagnosis.to_string())),
    };
    say(READY.to_string());
    while let Ok(line) = lines.recv() {
        let Ok(request) = serde_json::from_str(&line) else { return };
        say(serde_json::to_string(&answer(&mut made, &request)).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Job, READY, Request, Worker};
    use crate::kernels::family::Choice;
    use crate::problem::Problem;
    use std::process::Command;
    use std::time::{Duration, Instant};

    fn job() -> Job {
        let mut problem =
            Problem::new("3x5x7".parse().unwrap(), "c128".parse().unwrap(), "cn".parse().unwrap());
        problem.ld.a = 9;
        problem.offset.c = 3;
        problem.alpha.im = -2.5;
        problem.beta.re = 0.5;
        let job = Job::new(1, "tsmttsm", &problem);
        assert_eq!(job.problem(), Ok(problem));
        job
    }

    /// A worker played by the shell: it says it is ready, and for each request does as the script says.
    fn worker(script: &str) -> Worker {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("read job; echo '{READY}'; while read request; do {script}; done")]);
        Worker::start(command, &job(), Duration::from_secs(10)).unwrap()
    }

    fn request() -> Request {
        Request { choice: Choice::default().with("tm", 4), best: None, settle: false }
    }

    #[test]
    fn answers_are_read_and_faults_are_told_apart() {
        let limit = Duration::from_secs(10);
        let mut good =
            worker(r#"echo '{"trial":{"choice":{"tm":4},"status":"correct","seconds":0.5},"spoilt":false}'"#);
        for _ in 0..3 {
            let trial = good.ask(&request(), limit).unwrap().trial;
            assert_eq!((trial.seconds, trial.choice), (Some(0.5), request().choice));
        }
        let ended = |script: &str| match worker(script).ask(&request(), limit) {
            Err(Fault::Ended(how)) => how,
            other => panic!("{other:?}"),
        };
        assert!(ended("exit 3").contains("exit status: 3"));
        assert!(ended("kill -SEGV $$").contains("signal: 11"));
        assert!(ended("echo '{\"trial\":'").contains("nonsense"));
    }

    #[test]
    fn a_worker_that_hangs_is_given_up_in_time_and_is_gone() {
        let start = Instant::now();
        let mut hanging = worker("sleep 1000");
        let id = hanging.child.id();
        assert_eq!(hanging.ask(&request(), Duration::from_millis(200)), Err(Fault::Late));
        drop(hanging);
        assert!(start.elapsed() < Duration::from_secs(8));
        assert!(!std::path::Path::new(&format!("/proc/{id}/stat")).exists());
    }

    #[test]
    fn a_worker_that_refuses_says_why() {
        let refused = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Worker::start(command, &job(), Duration::from_millis(500)).unwrap_err().to_string()
        };
        assert!(refused("read job; echo '\"there is no GPU\"'").contains("because there is no GPU"));
        assert!(refused("exit 1").contains("exit status: 1"));
        assert!(refused("sleep 5").contains("not ready"));
    }
}
