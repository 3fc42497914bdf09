//! What goes to standard output, and how a command ends.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use serde::Serialize;
use warpwright_core::diag::Diagnosis;

/// Why a command does not end well.
#[derive(Debug)]
pub enum Failure {
    /// Wrong use, or a machine that lacks something: exit status 2.
    Refused(Diagnosis),
    /// A check that failed; what is wrong has been printed: exit status 1.
    Wrong,
    /// Nobody reads standard output any more, which is no fault: exit status 0.
    Closed,
}

impl From<Diagnosis> for Failure {
    fn from(diagnosis: Diagnosis) -> Failure {
        Failure::Refused(diagnosis)
    }
}

/// How a command ends.
pub type Outcome = Result<(), Failure>;

/// Says on standard error what went wrong, and gives the exit status.
pub fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(Failure::Wrong) => ExitCode::from(1),
        Err(Failure::Refused(diagnosis)) => {
            notice(&format!("error: {diagnosis}"));
            ExitCode::from(2)
        }
    }
}

/// Prints a line, or several, on standard output.
pub fn print(text: &str) -> Outcome {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(failed)
}

/// Prints one JSON value on standard output.
pub fn print_json(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Diagnosis::new("the result cannot be written as JSON").because(e.to_string()))?;
    print(&text)
}

/// Tells the user something on standard error.
pub fn notice(text: &str) {
    // There is nowhere to complain when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn failed(error: io::Error) -> Failure {
    if error.kind() == ErrorKind::BrokenPipe {
        return Failure::Closed;
    }
    Failure::Refused(
        Diagnosis::new("standard output cannot be written")
            .because(error.to_string())
            .instead("free some space, or redirect the output elsewhere"),
    )
}
