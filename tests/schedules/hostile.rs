//! No text makes the readers panic, nor what stands behind them: damaged schedules are applied, damaged programs that
//! still read are checked, lowered and validated.

use std::path::Path;

use warpwright_core::ir::{parse, validate};
use warpwright_core::passes::lower;
use warpwright_core::schedule::Schedule;
use warpwright_core::target;
use warpwright_sim::coroutine::Random;

use crate::pipelines::{TILED, gemm};

/// What damage puts in: marks of the language, numbers at the edges, words that mean something elsewhere.
const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    "->",
    "=",
    "%",
    "/",
    "@",
    "-",
    "0",
    "1",
    "64",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "\u{e9}",
    "\u{0}",
    "\n",
    "acc",
    "C",
    "k",
    "threads",
    "vthread",
    "shared",
    "reg",
    "for",
    "if",
    "min(",
    "xor(",
    "ceil(",
];

/// A text with one to three pieces replaced, put in or taken out.
fn damaged(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(3) {
        let from = random.below(chars.len());
        let to = (from + random.below(4)).min(chars.len());
        let piece = PIECES[random.below(PIECES.len())];
        let piece = if random.once_in(4) { "" } else { piece };
        chars.splice(from..to, piece.chars());
    }
    chars.into_iter().collect()
}

#[test]
fn damaged_schedules_are_refused_or_applied() {
    let text =
        format!("specialize(M%16, lda%4)\n{TILED}storage_align(As, r, 4)\npipeline(acc.ko, 3, via=shared)\n");
    Schedule::run(gemm(), &text).unwrap_or_else(|e| panic!("{e}"));
    let mut applied = 0;
    for seed in 0..4000 {
        let schedule = damaged(&text, &mut Random::new(seed));
        match std::panic::catch_unwind(|| Schedule::run(gemm(), &schedule).is_ok()) {
            Ok(ok) => applied += usize::from(ok),
            Err(_) => panic!("seed {seed}:\n{schedule}"),
        }
    }
    assert!(applied > 10, "{applied} were applied: the damage is too great to reach anything");
}

#[test]
fn damaged_programs_are_refused_or_lowered() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut read = 0;
    for name in
        ["sgemm_block_tiling", "sgemm_virtual_threads", "tsmttsm_atomic", "scan_look_back", "hgemm_cp_async"]
    {
        let text = std::fs::read_to_string(root.join(name).with_extension("ww")).expect("is there");
        for seed in 0..800 {
            let program = damaged(&text, &mut Random::new(seed));
            let done = std::panic::catch_unwind(|| {
                let Ok(read) = parse::program(&program) else { return false };
                let _ = lower(&read);
                if let Ok(formed) = validate::check(read) {
                    let _ = validate::validate(formed, target::DEFAULT);
                }
                true
            });
            match done {
                Ok(ok) => read += usize::from(ok),
                Err(_) => panic!("{name}, seed {seed}:\n{program}"),
            }
        }
    }
    assert!(read > 100, "{read} could be read: the damage is too great to reach anything");
}
