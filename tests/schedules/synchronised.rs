//! Barriers are placed where they are needed, whatever the program: random programs of nests that exchange values
//! through shared memory give on threads, in random order, what they give in order.

use std::fmt::Write;

use warpwright_core::ir::{Program, parse};
use warpwright_core::passes::lower;
use warpwright_sim::Mode;
use warpwright_sim::coroutine::{self, Policy, Random};
use warpwright_sim::mutate::case::arguments;

use crate::check::exact;

/// Who executes a nest.
#[derive(Clone, Copy, PartialEq)]
enum Range {
    Block,
    /// A warp of the loop over `w`.
    Warp,
    /// The first or the second warp, as a role.
    Role(u64),
}

/// Ways to number the 32 threads of a warp, and the number of a thread in each.
const NUMBERINGS: [(&str, &str); 3] = [
    ("t in threads(32@1)", "t"),
    ("r in threads(4@8), c in threads(8@1)", "8*r + c"),
    ("v in threads(2@16), q in threads(4@4), l in threads(4@1)", "16*v + 4*q + l"),
];

/// Permutations of `0..32`, of a number `#`.
const PERMUTATIONS: [&str; 5] =
    ["#", "31 - (#)", "(# + 5)%32", "4*((#)%8) + (#)/8", "16*((#)/16) + (# + 3)%16"];

struct Writer {
    random: Random,
    text: String,
    loops: usize,
}

impl Writer {
    fn below(&mut self, n: u64) -> u64 {
        self.random.number() % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// The slot of a ring, by one of the loops around.
    fn slot(&mut self) -> String {
        if self.loops == 0 || self.below(4) == 0 {
            return self.below(3).to_string();
        }
        let (k, ahead, depth) = (self.below(self.loops as u64), self.below(3), 2 + self.below(2));
        format!("(k{k} + {ahead})%{depth}")
    }

    fn nest(&mut self, range: Range) {
        let (loops, lane) = self.pick(&NUMBERINGS);
        let lanes = self.pick(&PERMUTATIONS).replace('#', lane);
        let swap = self.below(2);
        let (loops, number, element) = match range {
            Range::Block if swap == 0 => {
                (format!("h in threads(2@32), {loops}"), format!("32*h + {lane}"), format!("32*h + {lanes}"))
            }
            Range::Block => (
                format!("h in threads(2@32), {loops}"),
                format!("32*h + {lane}"),
                format!("32 - 32*h + {lanes}"),
            ),
            Range::Warp => (loops.to_string(), format!("32*w + {lane}"), format!("32*w + {lanes}")),
            Range::Role(r) => {
                (loops.to_string(), format!("{} + {lane}", 32 * r), format!("{} + {lanes}", 32 * swap))
            }
        };
        let slot = self.slot();
        let statement = match self.below(5) {
            0 | 1 => format!("s[{slot}, {element}] = x[{number}] + {}", self.below(9)),
            2 => format!("if {lane} < 16 {{ s[{slot}, {element}] = 2 * x[{element}] }}"),
            3 => format!("atomic s[{slot}, {element}] += x[{number}]"),
            _ => format!("y[64*b + {number}] += {} * s[{slot}, {element}]", 1 + self.below(9)),
        };
        let _ = writeln!(self.text, "for {loops} {{ {statement} }}");
    }

    fn list(&mut self, depth: u64, range: Range) {
        for _ in 0..2 + self.below(3) {
            match self.below(if depth == 0 { 4 } else { 9 }) {
                5 | 6 => {
                    let (lo, hi) = (self.below(2), self.pick(&["n", "2", "5"]));
                    let _ = writeln!(self.text, "for k{} in {lo}..{hi} {{", self.loops);
                    self.loops += 1;
                    self.list(depth - 1, range);
                    self.loops -= 1;
                    self.text += "}\n";
                }
                7 => {
                    let limit = 1 + self.below(4);
                    let _ = writeln!(self.text, "if n < {limit} {{");
                    self.list(depth - 1, range);
                    self.text += "} else {\n";
                    self.list(depth - 1, range);
                    self.text += "}\n";
                }
                8 if range == Range::Block => {
                    let role = self.below(4);
                    let (head, inside) = match role {
                        0 | 1 => {
                            (format!("on {} {{\n", ["first", "second"][role as usize]), Range::Role(role))
                        }
                        _ => ("for w in threads(2@32) {\n".to_string(), Range::Warp),
                    };
                    self.text += &head;
                    self.list(depth - 1, inside);
                    self.text += "}\n";
                }
                _ => self.nest(range),
            }
        }
    }
}

/// A program of 2 blocks of 64 threads, of which each half is a role.
fn random_program(seed: u64) -> String {
    let mut writer = Writer { random: Random::new(seed), text: String::new(), loops: 0 };
    writer.text += "program p(n: size, x: in f32[64], y: inout f32[128]) {
for b in block.x(2) {
alloc s: f32[3, 64] shared
roles first 0..32, second 32..64
for t in threads(64@1) { for d in unroll 0..3 { s[d, t] = x[t] } }
";
    writer.list(2, Range::Block);
    writer.text += "}\n}\n";
    writer.text
}

/// What a program computes on threads under some random orders, if it is always the same.
fn on_threads(program: &Program, sizes: &[(&str, i64)]) -> Result<(), String> {
    let before = arguments(program, sizes, 1);
    let outcome = |seed| {
        let mut after = before.clone();
        coroutine::run(program, &mut after, Policy::from_seed(seed)).map(|()| after.tensors)
    };
    let first = outcome(0).map_err(|e| e.to_string())?;
    if (1..3).all(|seed| outcome(seed).as_ref() == Ok(&first)) { Ok(()) } else { Err("it is open".into()) }
}

#[test]
fn random_exchanges_are_ordered() {
    let mut wrong_without = 0;
    for seed in 0..100 {
        let text = random_program(seed);
        let program = parse::program(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let lowered = lower(&program).unwrap_or_else(|e| panic!("{e}\n{program}"));
        assert_eq!(lower(&lowered).expect("lowers again").to_string(), lowered.to_string(), "seed {seed}");
        let mut wrong = false;
        for n in [0, 1, 2, 5] {
            let sizes = [("n", n)];
            let agrees = |p: &Program| {
                exact(&program, p, &sizes, Mode::Simt, seed).and_then(|()| on_threads(p, &sizes))
            };
            agrees(&lowered).unwrap_or_else(|e| panic!("seed {seed}, n {n}: {e}\n{lowered}"));
            wrong |= agrees(&program).is_err();
        }
        wrong_without += usize::from(wrong);
    }
    // The programs have no barriers of their own: where nothing is wrong without any, nothing was tested.
    assert!(wrong_without > 60, "only {wrong_without} of 100 programs need barriers");
}
