//! What the tests of several modules need.

use std::path::PathBuf;

use warpwright_core::target::Target;

use super::file::WisdomFile;
use super::record::{Gpu, Key, Record, Trial, hash};
use crate::kernels::family::Choice;
use crate::problem::Problem;

/// A record of a choice of tsmttsm for a square C of this width.
pub fn record(width: i64, tm: i64, seconds: f64) -> Record {
    let shape = format!("{width}x{width}x1000000").parse().unwrap();
    let problem = Problem::new(shape, "f64".parse().unwrap(), "tn".parse().unwrap());
    let gpu = Gpu::of_target(Target::by_name("h200").unwrap());
    let trial = Trial {
        choice: Choice::default().with("tm", tm).with("leapfrog", true).with("source", "l1"),
        seconds: Some(seconds),
        samples: 5,
        ..Trial::default()
    };
    let key = Key::of(&problem);
    let schedule = hash(trial.choice.to_string().as_bytes());
    Record::new("2026-11-22", &gpu, "tsmttsm", &key, &schedule, trial)
}

/// A place for a file in a directory of its own, which goes when this does.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("warpwright-wisdom-{name}-{}", std::process::id())))
    }

    pub fn file(&self) -> WisdomFile {
        WisdomFile::at(self.0.join("made/when/needed.jsonl"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
