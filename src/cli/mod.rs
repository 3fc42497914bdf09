//! The command line: one file per subcommand.
//!
//! Results go to standard output, everything else to standard error. The exit status is 0 for success, 1 for
//! a check that failed, and 2 for wrong use or for a machine that lacks what was asked for.

mod bandwidth;
mod batch;
mod bench;
mod check;
mod compile;
mod doctor;
mod explain;
mod fc;
mod gemm;
mod known;
mod ladder;
mod occupancy;
mod options;
mod output;
mod predict;
mod show;
mod source;
mod targets;
mod tsm;
mod tune;
mod validate_model;
mod wisdom;

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
    /// Compute one product: choose or take a kernel, run it, check it, and say what it cost.
    Gemm(gemm::Options),
    /// Run every rung of a ladder of kernels, check each, and show what each change buys.
    Ladder(ladder::Options),
    /// Check a kernel or a program: exactly, and on the simulator for races, bounds and barriers.
    Check(check::Options),
    /// Time kernels on a GPU beside cuBLAS, or the simulator, or the compiler.
    Bench(bench::Options),
    /// Find the fastest parameters of a family of kernels for a problem, by measuring on a GPU or by the model.
    Tune(tune::Options),
    /// Compile the kernels of products ahead, for a GPU that need not be here.
    Compile(compile::Options),
    /// List, merge, import or export what tuning has found.
    Wisdom(wisdom::Options),
    /// Try candidates for a tuner, which writes to standard input.
    #[command(name = tune::WORKER, hide = true)]
    TuneWorker,
    /// Show a kernel at any stage: its specification, the program after each step, the steps.
    Show(show::Options),
    /// Explain a kernel or a product: what limits it, where the bytes go, which accesses are wasteful, and what would help.
    Explain(explain::Options),
    /// Say how many warps of a kernel a GPU's multiprocessor holds, what limits them, and what would change it.
    Occupancy(occupancy::Options),
    /// Predict the time of a product on any GPU by the model alone: what it is made of, and what limits it.
    Predict(predict::Options),
    /// Compare the model with every table of measured times that the repository has: how far it can be believed.
    ValidateModel(validate_model::Options),
    /// List the GPUs that are known, with their numbers and where each comes from.
    Targets(targets::Options),
    /// Say what this machine has, what it lacks, and how to get it.
    Doctor(doctor::Options),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // clap itself exits with status 2 on wrong use.
    let cli = Cli::parse();
    output::exit_code(match &cli.command {
        Command::Gemm(options) => gemm::run(options),
        Command::Ladder(options) => ladder::run(options),
        Command::Check(options) => check::run(options),
        Command::Bench(options) => bench::run(options),
        Command::Tune(options) => tune::run(options),
        Command::Compile(options) => compile::run(options),
        Command::Wisdom(options) => wisdom::run(options),
        Command::TuneWorker => tune::work(),
        Command::Show(options) => show::run(options),
        Command::Explain(options) => explain::run(options),
        Command::Occupancy(options) => occupancy::run(options),
        Command::Predict(options) => predict::run(options),
        Command::ValidateModel(options) => validate_model::run(options),
        Command::Targets(options) => targets::run(options),
        Command::Doctor(options) => doctor::run(options),
    })
}
