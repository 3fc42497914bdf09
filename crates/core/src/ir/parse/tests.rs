use super::program;
use std::path::{Path, PathBuf};

fn texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let mut out = Vec::new();
    for folder in [root.clone(), root.join("pictures")] {
        for entry in std::fs::read_dir(&folder).expect("the programs are there") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|e| e == "ww") {
                let text = std::fs::read_to_string(&path).expect("readable");
                out.push((path, text));
            }
        }
    }
    out.sort();
    assert!(out.len() >= 17, "only {} programs found", out.len());
    out
}

#[test]
fn programs_are_written_as_they_are_printed() {
    for (path, text) in texts() {
        let read = program(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(read.to_string(), text, "{}", path.display());
    }
}

/// Every prefix of every text, and every text with one character replaced, is read or refused, never a panic.
#[test]
fn hostile_texts_are_refused_without_panic() {
    let marks = ['(', '}', '0', '/', '-', '@', 'x', ' ', '\u{e9}'];
    for (path, text) in texts() {
        let chars: Vec<char> = text.trim_end().chars().collect();
        for at in (0..chars.len()).step_by(7) {
            let prefix: String = chars[..at].iter().collect();
            assert!(program(&prefix).is_err(), "{} cut at {at}", path.display());
            let mut changed = chars.clone();
            changed[at] = marks[at % marks.len()];
            let _ = program(&changed.into_iter().collect::<String>());
        }
    }
    let deep = format!("program p() {{ {} }}", "if true {".repeat(10_000));
    assert!(program(&deep).unwrap_err().to_string().contains("nested too deeply"));
    let deep = format!("program p(n: size) {{ let x = {}n }}", "-(".repeat(10_000));
    assert!(program(&deep).unwrap_err().to_string().contains("nested too deeply"));
}

#[test]
fn diagnoses_say_where_and_what() {
    let cases = [
        (
            "program p(n: size) { let x = n*n }",
            "line 1:30: a product of two symbols is outside the index language",
        ),
        ("program p(n: size) { let x = n/0 }", "line 1:32: only positive constants may divide"),
        ("program p(x: in f32[4]) { let y = x[0] }", "control never reads data"),
        ("program p(x: in f33[4]) { }", "line 1:17: unknown element type `f33`"),
        ("program p() { y[0] = 1 }", "line 1:15: `y` is not declared"),
        ("program p(x: out f32[2, 2]) { x[0] = 1 }", "`x` has 2 dimensions, not 1"),
        ("program p(x: out f32[2]) { atomic x[0] = 1 }", "only a reduction can be atomic"),
        ("program p() { for t in threads(0@1) { } }", "at least one range of at least one thread"),
    ];
    for (text, expected) in cases {
        let message = program(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text}\n  said: {message}");
    }
}

#[test]
fn constants_can_be_overridden() {
    let text = "program p(x: out f32[8]) { const P = 4 for i in 0..P { x[i] = 1 } }";
    let read = super::program_with(text, &[("P", 8)]).expect("reads");
    assert!(read.to_string().contains("0..8"));
}

#[test]
fn a_tensor_says_where_it_may_start() {
    let text =
        "program p(N: size,\n    x: in f32[N] align 4, y: out f32[8, N; ldy] align 8, z: in f32[N])\n{\n}\n";
    let read = program(text).expect("reads");
    assert_eq!(read.tensors().map(|t| t.align).collect::<Vec<_>>(), [4, 8, 16]);
    assert_eq!(read.to_string(), text);
}

#[test]
fn the_last_variable_of_an_own_loop_goes_by_runs() {
    let with = |head: &str| {
        format!(
            "program p()\n{{\n  for b in block.x(1) {{\n    for w in threads(1@32) {{\n      \
             alloc acc: f64[8, 8] reg frag D8x8\n      for ({head} {{\n        \
             acc[i, j] = 0\n      }}\n    }}\n  }}\n}}\n"
        )
    };
    let text = with("i, j by 2) in own acc[:, :]");
    assert_eq!(program(&text).expect("reads").to_string(), text);
    for (head, because) in [
        ("i by 2, j) in own acc[:, :]", "only the last variable goes by runs"),
        ("i, j by 0) in own acc[:, :]", "at least one element"),
        ("i, j by 2) in tasks(8, 8) share(b, 1)", "only elements that are owned"),
    ] {
        let refusal = program(&with(head)).unwrap_err().to_string();
        assert!(refusal.contains(because), "{head}: {refusal}");
    }
}
