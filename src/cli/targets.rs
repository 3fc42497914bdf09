//! `targets`: the GPUs that are known, their numbers, and where each number comes from.

use clap::Args;
use warpwright_core::target::{ALL, Limits, Target};

use super::options::OutputOptions;
use super::output::{Outcome, print, print_json};
use crate::report::targets::{TargetReport, limits, limits_table, table};
use crate::target_file;

/// Options of `targets`.
#[derive(Args, Debug)]
pub struct Options {
    /// One GPU, or a file that describes one [default: every GPU of the tables].
    #[arg(value_name = "GPU|FILE", value_parser = target_file::find)]
    gpu: Option<&'static Target>,
    /// Print the GPU as a file that describes one, to begin with for a GPU of your own.
    #[arg(long, requires = "gpu", conflicts_with = "json")]
    toml: bool,
    /// List what each compute capability from 2.0 to 12.1 allows instead: the limits that occupancy follows from.
    #[arg(long, conflicts_with_all = ["gpu", "toml"])]
    limits: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs `targets`.
pub fn run(options: &Options) -> Outcome {
    if options.limits {
        return match options.output.json {
            true => print_json(&Limits::all().iter().map(|l| limits(l)).collect::<Vec<_>>()),
            false => print(&limits_table()),
        };
    }
    match options.gpu {
        Some(gpu) if options.toml => print(target_file::print(gpu)?.trim_end()),
        Some(gpu) if options.output.json => print_json(&TargetReport::of(gpu)),
        Some(gpu) => print(&TargetReport::of(gpu).describe()),
        None if options.output.json => {
            print_json(&ALL.iter().map(|t| TargetReport::of(t)).collect::<Vec<_>>())
        }
        None => print(&table(ALL)),
    }
}
