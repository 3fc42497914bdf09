//! The command line: one file per subcommand.
//!
//! Results go to standard output, everything else to standard error. The exit status is 0 for success, 1 for
//! a check that failed, and 2 for wrong use or for a machine that lacks what was asked for.

mod doctor;
mod options;
mod output;
mod show;
mod source;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Makes, checks and explains matrix-multiplication kernels for NVIDIA GPUs, with or without a GPU.
#[derive(Parser, Debug)]
#[command(name = "warpwright", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show a kernel at any stage: its specification, the program after each step, the steps.
    Show(show::Options),
    /// Say what this machine has, what it lacks, and how to get it.
    Doctor(doctor::Options),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // clap itself exits with status 2 on wrong use.
    let cli = Cli::parse();
    output::exit_code(match &cli.command {
        Command::Show(options) => show::run(options),
        Command::Doctor(options) => doctor::run(options),
    })
}
