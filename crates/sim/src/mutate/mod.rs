//! Mutants: programs with one mistake in them, of the kinds that people and compilers make.
//!
//! A checker that has never been seen to fail proves nothing. Each [`Kind`] of mistake knows every place of a program
//! where it can be made; [`mutants`] draws some of them by seed. A mutant changes the *program*, not its text, so what
//! a mistake is does not depend on how programs are written. Not every mutant is wrong: one more turn of a loop
//! whose body is guarded changes nothing. Whoever tries mutants lists those that survive, and says why each may.
//!
//! The mistakes stand in four files: `sync` (waiting and fencing), `control` (loops, guards, thread ranges),
//! `data` (values and indices), and `place` (layouts, fragments, buffers). `edit` is how a single change is made.

pub mod case;
pub mod classes;
mod control;
mod data;
mod edit;
pub mod explain;
mod place;
mod sync;
pub mod trial;

use std::collections::HashSet;

use warpwright_core::ir::Program;

use crate::coroutine::Random;

/// A program with one mistake.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What kind of mistake it is.
    pub kind: Kind,
    /// Where it is: the first changed line of the text, before and after.
    pub site: String,
    /// The wrong program.
    pub program: Program,
}

/// A kind of mistake.
#[derive(Clone, Copy)]
pub struct Kind {
    /// What it is called in reports.
    pub name: &'static str,
    /// Every replacement of the body around a statement by a wrong one.
    alter: fn(&edit::Site<'_>) -> Vec<edit::Body>,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

/// Every kind. A new kind is a new line.
pub const KINDS: &[Kind] = &[
    Kind { name: "barrier dropped", alter: sync::barrier_dropped },
    Kind { name: "barrier moved", alter: sync::barrier_moved },
    Kind { name: "wait dropped", alter: sync::wait_dropped },
    Kind { name: "wait for one group too few", alter: sync::wait_weakened },
    Kind { name: "await dropped", alter: sync::await_dropped },
    Kind { name: "await of the wrong phase", alter: sync::await_wrong_phase },
    Kind { name: "parity missed", alter: sync::parity_missed },
    Kind { name: "commit dropped", alter: sync::commit_dropped },
    Kind { name: "fence dropped", alter: sync::fence_dropped },
    Kind { name: "arrival dropped", alter: sync::arrival_dropped },
    Kind { name: "release by the wrong threads", alter: sync::release_by_wrong_threads },
    Kind { name: "release of the wrong phase", alter: sync::release_of_wrong_phase },
    Kind { name: "arrival count wrong", alter: sync::count_wrong },
    Kind { name: "expected bytes wrong", alter: sync::bytes_wrong },
    Kind { name: "completion signalled elsewhere", alter: sync::signal_elsewhere },
    Kind { name: "blocks not ordered", alter: sync::blocks_not_ordered },
    Kind { name: "guard off by one", alter: control::guard_off_by_one },
    Kind { name: "guard dropped", alter: control::guard_dropped },
    Kind { name: "flag inverted", alter: control::flag_inverted },
    Kind { name: "extent off by one", alter: control::extent_off_by_one },
    Kind { name: "start off by one", alter: control::start_off_by_one },
    Kind { name: "step wrong", alter: control::step_wrong },
    Kind { name: "listed turn dropped", alter: control::turn_dropped },
    Kind { name: "part not taken", alter: control::part_not_taken },
    Kind { name: "tasks shared wrongly", alter: control::tasks_shared_wrongly },
    Kind { name: "threads one short", alter: control::threads_one_short },
    Kind { name: "partition does not divide", alter: control::partition_does_not_divide },
    Kind { name: "ownership transposed", alter: control::ownership_transposed },
    Kind { name: "role range wrong", alter: control::role_range_wrong },
    Kind { name: "statement dropped", alter: control::statement_dropped },
    Kind { name: "neighbours swapped", alter: control::neighbours_swapped },
    Kind { name: "initial store dropped", alter: data::init_dropped },
    Kind { name: "reduction made a store", alter: data::reduction_made_store },
    Kind { name: "reduction done twice", alter: data::done_twice },
    Kind { name: "shared atomic made plain", alter: data::shared_atomic_made_plain },
    Kind { name: "global atomic made plain", alter: data::global_atomic_made_plain },
    Kind { name: "fill dropped", alter: data::fill_dropped },
    Kind { name: "fill left out", alter: data::fill_left_out },
    Kind { name: "scalar dropped", alter: data::scalar_dropped },
    Kind { name: "index coefficient wrong", alter: data::coefficient_wrong },
    Kind { name: "index off by one", alter: data::index_off_by_one },
    Kind { name: "indices swapped", alter: data::indices_swapped },
    Kind { name: "stage index wrong", alter: data::stage_wrong },
    Kind { name: "window shifted", alter: data::window_shifted },
    Kind { name: "integer operand wrong", alter: data::integer_operand_wrong },
    Kind { name: "swizzle on one side only", alter: place::swizzle_on_one_side },
    Kind { name: "layout not injective", alter: place::layout_not_injective },
    Kind { name: "layout breaks rows", alter: place::layout_breaks_rows },
    Kind { name: "fragment of the wrong operand", alter: place::fragment_of_wrong_operand },
    Kind { name: "layout of the wrong operand", alter: place::layout_of_wrong_operand },
    Kind { name: "fragment transposed", alter: place::fragment_transposed },
    Kind { name: "buffer one short", alter: place::buffer_one_short },
];

/// At most `most` mutants of each kind, their sites drawn by `seed`. No two have the same text.
pub fn mutants(program: &Program, seed: u64, most: usize) -> Vec<Mutant> {
    let original = program.to_string();
    let mut seen = HashSet::from([original.clone()]);
    let mut out = Vec::new();
    for kind in KINDS {
        // By name, so that a new kind changes nothing for the others.
        let named = kind.name.bytes().fold(seed, |n, byte| n.wrapping_mul(1_000_003) ^ u64::from(byte));
        let mut random = Random::new(named);
        let mut wrong = edit::programs(program, kind.alter);
        random.shuffle(&mut wrong);
        let mut taken = 0;
        for program in wrong {
            if taken == most {
                break;
            }
            let text = program.to_string();
            if seen.insert(text.clone()) {
                out.push(Mutant { kind: *kind, site: site(&original, &text), program });
                taken += 1;
            }
        }
    }
    out
}

/// The first line that differs, with its number, before and after.
fn site(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(b, a)| b == a).count();
    let tail =
        before[same..].iter().rev().zip(after[same..].iter().rev()).take_while(|(b, a)| b == a).count();
    let first = |lines: &[&str]| {
        lines[same..lines.len() - tail].first().map_or("nothing".to_owned(), |line| line.trim().to_owned())
    };
    format!("line {}: {} => {}", same + 1, first(&before), first(&after))
}

#[cfg(test)]
mod tests {
    use super::{KINDS, mutants};
    use warpwright_core::ir::parse;

    #[test]
    fn mutants_are_drawn_by_seed_and_differ_from_the_program() {
        let program =
            parse::program(include_str!("../../../../programs/hgemm_tma_wgmma.ww")).expect("parses");
        let names = |seed| mutants(&program, seed, 1).into_iter().map(|m| m.site).collect::<Vec<_>>();
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
        let barriers = mutants(&program, 0, 10).into_iter().filter(|m| m.kind == KINDS[0]);
        assert_eq!(barriers.count(), 2);
    }
}
