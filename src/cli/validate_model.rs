//! `validate-model`: the model beside every table of measured times that the repository has.

use clap::Args;

use super::options::OutputOptions;
use super::output::{Outcome, print, print_json};
use crate::validation::fit::{Plan, STEPS, fit};
use crate::validation::{report, validate};

/// Options of `validate-model`.
#[derive(Args, Debug)]
pub struct Options {
    /// Show the summary alone: a line for each table.
    #[arg(long, conflicts_with = "json")]
    summary: bool,
    /// Fit the constants of the time model of programs on these tables instead, named as the index names them, and test them on the
    /// kernels that are not drawn. Nothing is changed: the constants are printed.
    #[arg(long, value_name = "TABLE,TABLE,...", value_delimiter = ',', conflicts_with = "summary")]
    fit: Vec<String>,
    /// Draws the kernels to fit on.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "fit")]
    seed: u64,
    /// The part of the kernels to fit on.
    #[arg(long, value_name = "PART", default_value_t = 0.5, requires = "fit")]
    part: f64,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs `validate-model`.
pub fn run(options: &Options) -> Outcome {
    if !options.fit.is_empty() {
        let plan = Plan { tables: options.fit.clone(), seed: options.seed, part: options.part, steps: STEPS };
        let found = fit(&plan)?;
        return match options.output.json {
            true => print_json(&found),
            false => print(&report::fitted(&found)),
        };
    }
    let found = validate()?;
    match options.output.json {
        true => print_json(&found),
        false if options.summary => print(&report::summary(&found)),
        false => print(&report::describe(&found)),
    }
}
