//! The `warpwright` command.

fn main() -> std::process::ExitCode {
    warpwright::cli::main()
}
