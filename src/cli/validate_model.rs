//! `validate-model`: the model beside every table of measured times that the repository has.

use clap::Args;

use super::options::OutputOptions;
use super::output::{Outcome, print, print_json};
use crate::validation::{report, validate};

/// Options of `validate-model`.
#[derive(Args, Debug)]
pub struct Options {
    /// Show the summary alone: a line for each table.
    #[arg(long, conflicts_with = "json")]
    summary: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs `validate-model`.
pub fn run(options: &Options) -> Outcome {
    let found = validate()?;
    match options.output.json {
        true => print_json(&found),
        false if options.summary => print(&report::summary(&found)),
        false => print(&report::describe(&found)),
    }
}
