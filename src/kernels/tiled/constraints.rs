//! What has to hold between the parameters.

use super::mapping::Tiles;
use crate::kernels::family::Constraint;

pub(super) const CONSTRAINTS: &[Constraint] = &[
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
