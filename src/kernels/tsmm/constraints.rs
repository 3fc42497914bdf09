//! What has to hold between the parameters.

use warpwright_core::dtype::DType;

use super::banks;
use super::bulk;
use super::mapping::{
    self, Tiles, band, bands, group, in_parts, is_three, moved_a, moved_c, staged, staged_bytes, threads,
    threads_with_role, warp_tile, wider,
};
use super::schedule::columns;
use crate::kernels::family::{Choice, Constraint};
use crate::kernels::granularity;
use crate::kernels::staging::{self, Moved};
use crate::problem::Problem;

/// The most multiply-adds in a row that are worth compiling: some thousands take seconds, and run no faster.
const MOST_UNROLLED: i64 = 1500;

pub(super) const CONSTRAINTS: &[Constraint] = &[
    granularity::GIVES,
    Constraint {
        about: "a thread's elements of the result and of the operands do not fit in 255 registers",
        on: &["threads", "unroll", "c_source"],
        holds: |c, p, _| {
            let columns = columns(p, c);
            let small = if c.word("c_source") == "registers" { p.shape.k * columns } else { columns };
            (c.int("unroll") * (columns + 1) + small) * p.result_dtype().bytes() / 4 <= 208
        },
    },
    Constraint {
        about: "the unrolled loop would have more multiply-adds than a compiler digests",
        on: &["threads", "unroll"],
        holds: |c, p, _| {
            let parts_of_number = if p.dtype().is_complex() { 4 } else { 1 };
            c.int("unroll") * columns(p, c) * p.shape.k * parts_of_number <= MOST_UNROLLED
        },
    },
    Constraint {
        about: "a row is no whole number of pieces that are read at a time, of 16 bytes or a part of them",
        on: &["vector"],
        holds: |c, p, _| 16 / p.dtype().bytes() % c.int("vector") == 0 && p.shape.k % c.int("vector") == 0,
    },
    Constraint {
        about: "threads add up pieces of a sum of as many instructions each",
        on: &[staging::CHAIN],
        holds: |c, p, _| mapping::steps_of_a_row(p, c) % c.int(staging::CHAIN) == 0,
    },
    Constraint {
        about: "the instructions that a warp executes one after another are no multiple of the distance of their terms",
        on: &[banks::TERMS_APART],
        holds: |c, p, _| banks::instructions_together(p, c) % banks::terms_apart(c) == 0,
    },
    Constraint {
        about: "the instructions that a warp has beside each other are no multiple of the distance of their columns",
        on: &[banks::COLUMNS_APART],
        holds: |c, p, _| banks::instructions_beside(p, c) % banks::columns_apart(c) == 0,
    },
    Constraint {
        about: "a warp has a whole number of instructions in its rows",
        on: &["instruction", "rows", "wm"],
        holds: |c, p, _| {
            let warps = warp_tile(p, c);
            c.int("rows") % c.int("wm") == 0 && warps.rows > 0 && warps.rows % warps.high == 0
        },
    },
    Constraint {
        about: "a warp has more than 32 rows of more than 16 columns, which never were the fastest",
        on: &["rows", "wm", "wn"],
        holds: |c, p, _| {
            let warps = warp_tile(p, c);
            // Sums of f32 take half the registers.
            let wide = if p.dtype().real() == DType::F32 { 64 } else { 32 };
            warps.rows <= if warps.columns > 16 { wide } else { 128 }
        },
    },
    Constraint {
        about: "warps would have no columns of C, or a block has other than 2 to 16 warps",
        on: &["wm", "wn"],
        holds: |c, p, _| {
            let warps = c.int("wm") * c.int("wn");
            (c.int("wn") - 1) * warp_tile(p, c).columns < wider(p, c) * band(p, c)
                && (2..=16).contains(&warps)
        },
    },
    Constraint {
        about: "a lane's elements of C and of the operands do not fit in its registers",
        on: &["instruction", "rows", "wm", "wn"],
        holds: |c, p, t| {
            let w = warp_tile(p, c);
            let most = i64::from(t.limits.registers_per_block) / threads(p, c);
            let sums = if is_three(p, c) { 3 } else { 1 };
            (w.rows * w.columns + (w.rows + w.columns) * w.terms) / 32 * sums * staged(p, c).0.bytes() / 4
                <= most.min(255) - 40
        },
    },
    Constraint {
        about: "a lane's elements of C, what is added to them and the parts of the operands do not fit in its registers",
        on: &["numbers", "instruction", "rows", "wm", "wn"],
        holds: |c, p, t| {
            let w = warp_tile(p, c);
            let most = (i64::from(t.limits.registers_per_block) / threads(p, c)).min(255);
            let steps = mapping::chain(p, c);
            let there = steps * w.terms < wider(p, c) * p.shape.k;
            let sums = staging::sums_in_registers(c, steps, there);
            let words = staged(p, c).0.bytes() / 4;
            !staging::splits(c)
                || (sums * w.rows * w.columns + 2 * (w.rows + w.columns) * w.terms) / 32 * words <= most - 24
        },
    },
    Constraint {
        about: "a block has 64 to 512 threads",
        on: &["tm", "tn", "piece"],
        holds: |c, p, _| {
            (64..=512).contains(&threads(p, c)) && (in_parts(c) || c.int("rows") % c.int("tm") == 0)
        },
    },
    Constraint {
        about: "more than an eighth of the lanes of a part would have no tile",
        on: &["team", "tn", "piece"],
        holds: |c, p, _| {
            let Tiles { down, across, .. } = Tiles::of(p, c);
            !in_parts(c) || c.word("unit") == "mma" || 8 * down * across >= 7 * mapping::team(p, c)
        },
    },
    Constraint {
        about: "three warps of a part leave no fewer lanes without a tile than one, two or four",
        on: &["wn", "tn", "piece"],
        holds: |c, p, _| {
            let across = Tiles::of(p, c).across;
            let idle = |warps: i64| (32 * warps % across) as f64 / warps as f64;
            let tiles = in_parts(c) && c.word("unit") == "fma" && c.int("wn") == 3;
            !tiles || [1, 2, 4].into_iter().all(|warps| idle(3) < idle(warps))
        },
    },
    Constraint {
        about: "what a part copies as one piece of memory would not start at a multiple of 16 bytes",
        on: &["team", "store"],
        holds: |c, p, _| {
            let whole = |moved: Moved, columns: i64| {
                moved != Moved::AsOne || group(p, c) * columns * p.dtype().bytes() % 16 == 0
            };
            !in_parts(c) || (whole(moved_a(p, c), p.shape.k) && whole(moved_c(p, c), p.shape.n))
        },
    },
    Constraint {
        about: "a thread's elements of C and of the operands do not fit in its registers",
        on: &["tm", "tn", "piece"],
        holds: |c, p, t| {
            let (tm, tn) = (c.int("tm"), c.int("tn"));
            let most = i64::from(t.limits.registers_per_block) / threads(p, c);
            let at_once = mapping::terms_at_once(p, c);
            (tm * tn + tm * at_once + tn) * p.dtype().bytes() / 4 <= most.min(255) - 30
        },
    },
    Constraint {
        about: "a thread has fewer products than it reads elements",
        on: &["tm", "tn"],
        holds: |c, p, _| {
            let Tiles { across, .. } = Tiles::of(p, c);
            c.int("tm") * c.int("tn") >= 4 || across == 1
        },
    },
    Constraint {
        about: "a piece of a row has a whole number of instructions",
        on: &["instruction", "depth"],
        holds: |c, p, _| {
            c.int("depth") == p.shape.k || wider(p, c) * c.int("depth") % warp_tile(p, c).terms == 0
        },
    },
    Constraint {
        about: "rows that are copied piece by piece have two pieces at least in shared memory",
        on: &["depth", "stages"],
        holds: |c, p, _| c.int("stages") > 1 || c.int("depth") == p.shape.k,
    },
    Constraint {
        about: "a block that takes one group of rows has none to wait for while it multiplies: there is one stage, unless rows are copied piece by piece",
        on: &[mapping::PASSING, mapping::GROUPS, "stages"],
        holds: |c, p, _| {
            let one = mapping::takes_one_group(c) && mapping::depth(p, c) == p.shape.k;
            !one || c.int("stages") == 1
        },
    },
    Constraint {
        about: "what leaves by a bulk copy lies where the rows lay",
        on: &["store", staging::COPY, mapping::IN_PLACE],
        holds: |c, p, _| {
            c.word("store") != bulk::IN_BULK || (c.flag(mapping::IN_PLACE) && mapping::may_be_in_place(p, c))
        },
    },
    Constraint {
        about: "parts that use a ring in turn ask for what comes after theirs: there is room for more groups than there are parts",
        on: &[staging::COPY, "wm", mapping::IN_PLACE],
        holds: |c, p, t| {
            let more = || match c.get("stages") {
                Some(_) => c.int("stages") > c.int("wm"),
                None => bulk::turns(p, c, t).is_some(),
            };
            !bulk::take_turns(c) || more()
        },
    },
    Constraint {
        about: "a warp that waits for nobody else asks for a group while another is multiplied: there are two at least",
        on: &[staging::COPY, "stages"],
        holds: |c, _, _| !staging::arrives_as_one(c) || c.int("stages") > 1,
    },
    // The last of these three is the condition. The others follow from it, and are known before most parameters have values: where a
    // GPU has little shared memory, tens of thousands of choices need not be looked at.
    Constraint {
        about: "a band of the small matrix does not fit in shared memory",
        on: &["bands"],
        holds: |c, p, t| band_bytes(p, c) <= i64::from(t.limits.shared_per_block_opt_in),
    },
    Constraint {
        about: "a group of rows and a band of the small matrix do not fit in shared memory",
        on: &["bands", "rows", "depth"],
        holds: |c, p, t| {
            // Of what is copied piece by piece there are two pieces.
            let least = if c.int("depth") < p.shape.k { 2 } else { 1 };
            let rows = least * c.int("rows") * c.int("depth") * p.dtype().bytes();
            band_bytes(p, c) + rows <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
    Constraint {
        about: "the groups of rows and the small matrix do not fit in shared memory",
        on: &["store", "stages"],
        holds: |c, p, t| staged_bytes(p, c) <= i64::from(t.limits.shared_per_block_opt_in),
    },
    Constraint {
        about: "there would be more blocks than can be resident, each of which takes its share of the rows at once",
        on: &["store", "stages", "blocks"],
        holds: |c, p, t| {
            // By threads and shared memory: how many registers a kernel takes is not known here.
            let by_threads = i64::from(t.limits.warps_per_sm) * 32 / threads_with_role(p, c);
            let reserved = i64::from(t.limits.shared_reserved_per_block);
            let by_shared = i64::from(t.limits.shared_per_sm) / (staged_bytes(p, c) + reserved);
            let multiprocessors = i64::from(t.sm_count.value);
            c.int("blocks") * bands(p, c) <= multiprocessors * by_threads.min(by_shared).max(1)
        },
    },
    Constraint {
        about: "the small matrix does not fit in shared memory",
        on: &["c_source"],
        holds: |c, p, t| {
            c.word("c_source") != "shared"
                || p.shape.k * p.shape.n * p.dtype().bytes() <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
];

/// Bytes of a band of the small matrix, without what it is padded by.
fn band_bytes(problem: &Problem, choice: &Choice) -> i64 {
    problem.shape.k * band(problem, choice) * problem.dtype().bytes()
}
