//! Exercises everything this crate does on a GPU; prints one line per item and fails if one fails.
//!
//! The same checks run as tests (`tests/gpu.rs`); this program is for machines with a GPU and no Rust.

mod checks;
mod gemm;

use std::process::ExitCode;

use warpwright_cuda::{device, locate};

fn main() -> ExitCode {
    for finding in locate::survey() {
        match (&finding.path, &finding.advice) {
            (Some(path), _) => println!("found    {}: {}", finding.library, path.display()),
            (None, advice) => println!("missing  {}: {}", finding.library, advice.as_deref().unwrap_or("")),
        }
    }
    let list = device::list();
    for info in &list.devices {
        println!("device   {info:?}");
    }
    if let Some(reason) = list.reason {
        println!("failed   no GPU: {reason}");
        return ExitCode::FAILURE;
    }
    let mut failures = 0;
    for check in checks::ALL {
        match checks::run(check) {
            Ok(checks::Outcome::Passed(detail)) => println!("ok       {}: {detail}", check.name),
            Ok(checks::Outcome::Skipped(reason)) => println!("skipped  {}: {reason}", check.name),
            Err(error) => {
                failures += 1;
                println!("failed   {}: {error}", check.name);
            }
        }
    }
    println!("{} checks, {failures} failed", checks::ALL.len());
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
