//! Options that several subcommands share.

use clap::Args;

/// How results are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputOptions {
    /// Print one JSON object or array on standard output, and nothing else there.
    #[arg(long)]
    pub json: bool,
}
