//! What the tests of several modules need.

use warpwright_core::target::Target;

use super::record::{Gpu, Key, Record, Trial, schedule_hash};
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
    let schedule = schedule_hash(&trial.choice.to_string());
    Record::new("2026-11-22", &gpu, "tsmttsm", &key, &schedule, trial)
}
