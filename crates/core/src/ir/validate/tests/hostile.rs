//! Nothing that can be read makes the checks panic, and what they refuse they refuse with reasons.

use super::{FINISHED, PICTURES, text};
use crate::diag::Diagnosis;
use crate::ir::parse;
use crate::ir::validate::{check, validate};
use crate::target::Target;

/// `Some(faults)` if the text can be read and is refused.
fn faults(text: &str) -> Option<Vec<Diagnosis>> {
    let target = Target::by_name("h200").expect("is in the table");
    let program = parse::program(text).ok()?;
    check(program).and_then(|program| validate(program, target)).err()
}

/// The places in a text where a number starts, with its length.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let in_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 && !in_name {
            out.push((at, digits));
        }
        at += digits.max(1);
    }
    out
}

#[test]
fn numbers_replaced_by_extremes_are_judged_without_panic() {
    let extremes = ["0", "1", "(-1)", "7", "9223372036854775807", "(-9223372036854775807)", "n", "K"];
    let (mut judged, mut refused) = (0, 0);
    for (which, name) in FINISHED.iter().chain(&PICTURES).enumerate() {
        let whole = text(name);
        for (turn, (at, length)) in numbers(&whole).into_iter().enumerate().skip(which % 4).step_by(4) {
            let extreme = extremes[(turn / 4 + which) % extremes.len()];
            let changed = format!("{}{extreme}{}", &whole[..at], &whole[at + length..]);
            judged += 1;
            if let Some(faults) = faults(&changed) {
                refused += 1;
                assert!(faults.iter().all(|f| !f.what.is_empty()), "{name} at {at}: {extreme}");
            }
        }
    }
    assert!(judged > 200 && refused > judged / 10, "{refused} of {judged} refused");
}

#[test]
fn lines_dropped_or_doubled_are_judged_without_panic() {
    for (which, name) in FINISHED.iter().chain(&PICTURES).enumerate() {
        let whole = text(name);
        let lines: Vec<&str> = whole.lines().collect();
        for at in (which % 5..lines.len()).step_by(5) {
            let without = [&lines[..at], &lines[at + 1..]].concat().join("\n");
            let twice = [&lines[..=at], &lines[at..]].concat().join("\n");
            let _ = (faults(&without), faults(&twice));
        }
    }
}
