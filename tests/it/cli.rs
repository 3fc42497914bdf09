//! The command as a user meets it: what is printed where, and the exit status.

use std::process::{Command, Output};

use serde_json::Value;

/// Runs the command with these arguments, separated by spaces.
pub fn warpwright(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the command runs")
}

/// Standard output as JSON, where the command ended with this status.
pub fn json(arguments: &str, status: i32) -> Value {
    let output = warpwright(arguments);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON value")
}

/// What the command says on standard error when it refuses, with nothing on standard output.
pub fn refusal(arguments: &str) -> String {
    let output = warpwright(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments} is refused");
    assert!(output.stdout.is_empty(), "{arguments} prints nothing on standard output");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn doctor_lists_every_library_with_advice_for_what_is_missing() {
    let found = json("doctor --json", 0);
    let libraries = found["libraries"].as_array().unwrap();
    assert_eq!(libraries.len(), 4);
    for library in libraries {
        assert!(library["path"].is_string() || library["advice"].is_string(), "{library}");
    }
    assert!(found["simulated_gpus"].as_array().unwrap().len() >= 9);
    let text = String::from_utf8(warpwright("doctor").stdout).unwrap();
    assert!(text.contains("--device auto is"), "{text}");
}

#[test]
fn wrong_use_ends_with_status_2() {
    assert!(refusal("").contains("Usage"));
    assert!(refusal("dance").contains("dance"));
}
