//! What has to hold between the parameters.

use warpwright_core::dtype::DType;
use warpwright_core::target::Capability;

use super::mapping::{Elements, HIGH, Tiles, Warps, by_matrix_units};
use crate::kernels::family::Constraint;
use crate::kernels::staging::splits;
use crate::problem::Multiplications;

/// The most instructions, one after another, whose sum matrix units add up ([`crate::reference::bound`]).
const MOST_STEPS: i64 = Multiplications::LONGEST_CHAIN as i64;

pub(super) const CONSTRAINTS: &[Constraint] = &[
    Constraint {
        about: "numbers of 16 bits, and those of B^T, are multiplied by instructions that this GPU does not have",
        on: &["unit"],
        holds: |c, p, t| {
            let needed = match p.dtype() {
                DType::F16 => Capability::MmaF16,
                DType::Bf16 => Capability::MmaBf16,
                _ => Capability::MmaTf32,
            };
            !by_matrix_units(c) || t.has(needed) && t.has(Capability::CpAsync)
        },
    },
    Constraint {
        about: "a warp has whole instructions of 16 rows and 8 columns, of 16-bit elements pairs of them",
        on: &["rows", "columns", "wm", "wn"],
        holds: |c, _, _| {
            let across = Elements::of(c).across();
            c.int("rows") % (HIGH * c.int("wm")) == 0 && c.int("columns") % (across * c.int("wn")) == 0
        },
    },
    Constraint {
        about: "a lane's elements of C, their parts and those of the operands do not fit in its registers",
        on: &["rows", "columns", "wm", "wn", "sets"],
        holds: |c, _, t| {
            let registers = Warps::of(c).registers() + 32;
            registers <= 248 && Tiles::of(c).threads() * registers <= i64::from(t.limits.registers_per_block)
        },
    },
    Constraint {
        about: "a block has 64 to 512 threads",
        on: &["wm", "wn", "sets"],
        holds: |c, _, _| (64..=512).contains(&Tiles::of(c).threads()),
    },
    Constraint {
        about: "matrix units add up the terms of at most 16 instructions on split numbers before threads do",
        on: &["wm", "sets", "depth"],
        holds: |c, _, _| {
            let tiles = Tiles::of(c);
            !splits(c) || tiles.terms_of_a_set() <= MOST_STEPS * tiles.elements.step()
        },
    },
    Constraint {
        about: "a thread's elements of C and of the operands do not fit in 255 registers",
        on: &["tm", "tn"],
        holds: |c, _, _| {
            let tiles = Tiles::of(c);
            let Tiles { tm, tn, .. } = tiles;
            tm * tn + tm * tiles.terms() + tn <= 216
        },
    },
    Constraint {
        about: "a thread's tile is no part of the block's",
        on: &["rows", "columns", "tm", "tn"],
        holds: |c, _, _| c.int("rows") % c.int("tm") == 0 && c.int("columns") % c.int("tn") == 0,
    },
    Constraint {
        about: "lanes of a warp would read terms from the same banks: fewer than four threads of a set stand beside each other",
        on: &["rows", "columns", "tm", "tn", "sets"],
        holds: |c, _, _| {
            let tiles = Tiles::of(c);
            tiles.sets_of_a_warp() == 1 || tiles.across >= 4
        },
    },
    Constraint {
        about: "a block has 64 to 512 threads, in whole warps",
        on: &["rows", "columns", "tm", "tn", "sets"],
        holds: |c, _, _| {
            let threads = Tiles::of(c).threads();
            (64..=512).contains(&threads) && threads % 32 == 0
        },
    },
    Constraint {
        about: "the threads of a block have more registers than a multiprocessor has",
        on: &["tm", "tn", "sets"],
        holds: |c, _, t| {
            let tiles = Tiles::of(c);
            tiles.threads() * (tiles.tm * tiles.tn + 24) <= i64::from(t.limits.registers_per_block)
        },
    },
    Constraint {
        about: "each set of threads has whole groups of the terms that are read at once",
        on: &["sets", "depth"],
        holds: |c, _, _| {
            let tiles = Tiles::of(c);
            tiles.depth % (tiles.sets * tiles.terms()) == 0
        },
    },
    Constraint {
        about: "the tiles do not fit in shared memory",
        on: &["rows", "columns", "sets", "stages"],
        holds: |c, _, t| {
            Tiles::of(c).shared_bytes(c.int("stages")) <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
];
