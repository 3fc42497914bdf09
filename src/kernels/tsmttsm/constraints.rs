//! What has to hold between the parameters.

use warpwright_core::target::Target;

use super::border::{self, BORDER};
use super::boxes;
use super::direct::{self, STAGING, is_direct};
use super::mapping::{self, APART, Threads, WHOLE, area, group_bytes, read, slices_bytes, tiled_columns};
use super::runs::{RUNS, RUNS_OF_A_GROUP};
use super::sets;
use super::strided;
use super::warps::{self, EVEN, OMIT, warp_tile};
use crate::kernels::family::{Choice, Constraint};
use crate::kernels::gemm::Numbers;
use crate::kernels::granularity;
use crate::kernels::staging::{self, By, Moved, ceil};
use crate::problem::Problem;

pub(super) const CONSTRAINTS: &[Constraint] = &[
    granularity::GIVES,
    Constraint {
        about: "a thread that reads panels of A takes all rows of C",
        on: &["panel", "tm"],
        holds: |c, p, _| !c.flag("panel") || c.int("tm") == area(p, c)[0],
    },
    Constraint {
        about: "a block has too few threads to cover C once",
        on: &["block", "tm", "tn"],
        holds: |c, p, _| Threads::of(p, c).covering() <= c.int("block"),
    },
    Constraint {
        about: "a block has too few threads for pairs of them that cover C once",
        on: &["block", "tn", staging::INTERLEAVED],
        holds: |c, p, _| Threads::of(p, c).covering() <= c.int("block"),
    },
    Constraint {
        about: "a thread's elements of C and of the operands do not fit in 255 registers",
        on: &["tm", "tn", "transposed"],
        holds: |c, p, _| {
            // A row that is loaded ahead is not counted: the fastest kernel measured for complex64 9 x 9 has one, and by
            // this count would need 234 (one H200, 2026-11-22).
            let (tm, tn) = (c.int("tm"), c.int("tn"));
            // A panel is multiplied as it is read.
            let read = if c.flag("panel") { 4 + mapping::rows_of_a_panel(p, c) * tn } else { tm + tn };
            (tm * tn + read) * p.result_dtype().bytes() / 4 <= 224
        },
    },
    Constraint {
        about: "rows that a thread reads at a time take at most a quarter of its registers",
        on: &["tm", "tn", "unroll"],
        holds: |c, p, _| {
            let rows = c.int("unroll");
            rows == 1 || rows * (c.int("tm") + c.int("tn")) * p.result_dtype().bytes() / 4 <= 64
        },
    },
    // It follows from the next one, and is known before the threads of a block are shared out.
    Constraint {
        about: "an area of C does not fit in shared memory, where the slices of a block come together",
        on: &["staging", "areas"],
        holds: |c, p, t| {
            let [rows, columns] = area(p, c);
            c.word("staging") == "shared"
                || rows * columns * p.result_dtype().bytes() <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
    Constraint {
        about: "the slices of a block do not fit in shared memory",
        on: &["staging", "block", "tm", "tn", "parts"],
        holds: |c, p, t| {
            c.word("staging") == "shared" || slices_bytes(p, c) <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
    Constraint {
        about: "A and B are one, and tiles of either shape need rows of the same length in shared memory",
        on: &["staging", "tm", "tn", "transposed"],
        holds: |c, p, _| {
            !mapping::one_copy(p, c) || c.word("staging") == "registers" || {
                let [a, b] = tiled_columns(p, c);
                a == b
            }
        },
    },
    Constraint {
        about: "warps would have no part of C",
        on: &["instruction", "wm", "wn"],
        holds: |c, p, _| warps::tiles_of_warps(p, c, c.flag(EVEN)).iter().flatten().all(|tiles| *tiles > 0),
    },
    Constraint {
        about: "tiles are dealt out evenly as they are",
        on: &[EVEN, "instruction", "wm", "wn"],
        holds: |c, p, _| {
            let [evenly, in_blocks] = [true, false].map(|even| {
                let mut dealt = warps::tiles_of_warps(p, c, even);
                dealt.iter_mut().for_each(|tiles| tiles.sort_unstable());
                dealt
            });
            !c.flag(EVEN) || evenly != in_blocks || warps::rotated(p, c)
        },
    },
    Constraint {
        about: "all warps have as many tiles, so none leaves any out",
        on: &[OMIT, EVEN, "wm", "wn"],
        holds: |c, p, _| !c.flag(OMIT) || warps::some_omit(p, c),
    },
    Constraint {
        about: "a block has 2 to 16 warps",
        on: &["wm", "wn", "wk"],
        holds: |c, _, _| (2..=16).contains(&(c.int("wm") * c.int("wn") * c.int("wk"))),
    },
    Constraint {
        about: "a lane's elements of C and of the operands do not fit in its registers",
        on: &["instruction", "wm", "wn", "wk"],
        holds: fragments_fit,
    },
    Constraint {
        about: "a lane's elements of C and of the operands do not fit in its registers beside the places where it reads them",
        on: &[staging::LANE_BASE],
        holds: fragments_fit,
    },
    Constraint {
        about: "a lane's elements of C, what is added to them and the parts of the operands do not fit in its registers",
        on: &["numbers", "instruction", "wm", "wn", "wk", "depth"],
        holds: split_fragments_fit,
    },
    Constraint {
        about: "a lane's elements of C and of the rows that it reads ahead do not fit in its registers",
        on: &[STAGING, "leapfrog", "instruction", "wm", "wn", "wk", "depth"],
        holds: |c, p, t| {
            let (w, words) = (warp_tile(p, c), read(p, c).dtype().bytes() / 4);
            let of_c = w.rows * w.columns / 32;
            !is_direct(c) || (of_c + direct::held(p, c)) * words <= most_registers(c, t) - 24
        },
    },
    Constraint {
        about: "a lane's elements of C and of the operands do not fit in its registers where another warp asks for copies",
        on: &[staging::RELEASE],
        holds: |c, p, t| {
            c.word(staging::RELEASE) != staging::BY_ROLE
                || fragments_fit(c, p, t) && split_fragments_fit(c, p, t)
        },
    },
    Constraint {
        about: "a group of rows that one bulk copy brings is no whole number of 16 bytes",
        on: &[staging::COPY, "depth"],
        holds: |c, p, _| {
            let whole = |row: i64| c.int("depth") * row * p.dtype().bytes() % 16 == 0;
            match c.word(staging::COPY) {
                staging::BULK => whole(p.shape.m) && whole(p.shape.n),
                staging::SPAN => whole(p.ld.a) && whole(p.ld.b),
                _ => true,
            }
        },
    },
    Constraint {
        about: "a box has 256 rows at most, and 256 numbers in each row, which are whole pieces of 16 bytes",
        on: &[staging::COPY, "instruction", "wm", "wn", "depth"],
        holds: |c, p, _| !boxes::in_boxes(c) || boxes::fit(p, c),
    },
    Constraint {
        about: "a group of rows arrives in one run or in four",
        on: &[RUNS_OF_A_GROUP],
        holds: |c, _, _| [1, RUNS].contains(&c.int(RUNS_OF_A_GROUP)),
    },
    Constraint {
        about: "a set of warps has a whole number of instructions in a group of rows",
        on: &["instruction", "wk", "depth"],
        holds: |c, p, _| c.int("depth") % (c.int("wk") * warp_tile(p, c).terms) == 0,
    },
    Constraint {
        about: "rows that are read together are as far apart as instructions can share out, a whole number of times in a group",
        on: &["instruction", "wk", "depth", APART],
        holds: |c, p, _| {
            let (apart, terms) = (mapping::apart(c), warp_tile(p, c).terms);
            let shared_out = 4 * apart % terms == 0 || terms % (4 * apart) == 0;
            apart == 1 || shared_out && c.int("depth") / c.int("wk") % (4 * apart).max(terms) == 0
        },
    },
    Constraint {
        about: "lanes that add up the last rows and columns of C share out whole fours of the rows that a set of warps has of a group",
        on: &[BORDER, "wk", "depth"],
        holds: |c, p, _| !border::threads_add_up(p, c) || c.int("depth") / c.int("wk") % 4 == 0,
    },
    Constraint {
        about: "a slice of threads has a whole number of panels in a group of rows",
        on: &["panel", "depth"],
        holds: |c, p, _| {
            let rows = c.int("depth") / mapping::slices_of_a_group(p, c);
            rows % mapping::rows_of_a_panel(p, c) == 0
        },
    },
    Constraint {
        about: "a thread that reads whole pieces multiplies as many rows of a group as there are ways in which they start",
        on: &[WHOLE, "depth"],
        holds: |c, p, _| !c.flag(WHOLE) || mapping::rows_of_a_thread(p, c) % mapping::rows_of_a_round(p) == 0,
    },
    Constraint {
        about: "a thread that reads whole pieces multiplies as many rows in a row as there are ways in which they start",
        on: &[WHOLE, "steps"],
        holds: |c, p, _| !c.flag(WHOLE) || c.int("steps") % mapping::rows_of_a_round(p) == 0,
    },
    Constraint {
        about: "a thread multiplies its rows of a group in whole numbers of steps",
        on: &["depth", "steps"],
        holds: |c, p, _| {
            let steps = c.int("steps");
            steps == 0 || mapping::rows_of_a_thread(p, c) % steps == 0
        },
    },
    Constraint {
        about: "groups of rows that are copied as one consist of whole pieces",
        on: &["depth"],
        holds: |c, p, _| {
            let ([a, b], align) = (mapping::moved(p, c), p.alignment());
            [(a, p.shape.m, align.a), (b, p.shape.n, align.b)].iter().all(|(moved, columns, align)| {
                *moved != Moved::AsOne
                    || strided::in_spans(c)
                    || c.int("depth") * columns * p.dtype().bytes() % align == 0
            })
        },
    },
    Constraint {
        about: "rows that are copied in whole pieces are not read element by element: tiles are of even sides",
        on: &[staging::COPY, "tm", "tn"],
        holds: |c, p, _| {
            mapping::classes(p, c).is_none() || ["tm", "tn"].iter().all(|side| c.int(side) % 2 == 0)
        },
    },
    Constraint {
        about: "each class of rows has as many blocks as any other: parts is a multiple of their number",
        on: &[staging::COPY, "parts"],
        holds: |c, p, _| c.int("parts") % mapping::class_count(p, c) == 0,
    },
    Constraint {
        about: "registers hold one group of rows ahead, so there are 1 or 2 stages",
        on: &[staging::COPY, "stages"],
        holds: |c, _, _| By::of(c) != By::Loading || c.int("stages") <= 2,
    },
    Constraint {
        about: "the groups of rows do not fit in shared memory",
        on: &["depth", "stages"],
        holds: |c, p, t| {
            let bytes = c.int("stages") * group_bytes(p, c) + border::cost(p, c).shared_bytes;
            bytes <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
    Constraint {
        about: "the groups of rows and the sums of sets do not fit in shared memory",
        on: &["depth", "stages", sets::NAME],
        holds: |c, p, t| {
            let bytes = c.int("stages") * group_bytes(p, c) + sets::bytes(p, c);
            bytes <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
];

/// The most registers that a thread of a block may have whose warps multiply by matrix instructions. Where there is a warp more for
/// copies, each of four schedulers has as many registers as any other, for one warp more or not.
fn most_registers(choice: &Choice, target: &Target) -> i64 {
    let threads = warps::threads_of_warps(choice);
    let threads = if is_role(choice) { ceil(threads, 128) * 128 } else { threads };
    (i64::from(target.limits.registers_per_block) / threads).min(255)
}

/// Whether a warp that does nothing else asks for copies.
fn is_role(choice: &Choice) -> bool {
    choice.word(staging::RELEASE) == staging::BY_ROLE
}

/// Whether a lane's elements of C, those of the border among them, and of the operands fit in its registers.
fn fragments_fit(choice: &Choice, problem: &Problem, target: &Target) -> bool {
    let (w, most) = (warp_tile(problem, choice), most_registers(choice, target));
    let most = most - border::cost(problem, choice).registers;
    let products = if staging::numbers(problem, choice) == Numbers::Three { 3 } else { 1 };
    let dtype = read(problem, choice).dtype();
    let words = dtype.bytes() * products / 4;
    if is_role(choice) && !dtype.is_complex() {
        // Those who ask for no copies have few addresses, and need not have all of the operands at once: with 24 registers beside
        // those of C nothing was kept in memory (NVRTC 13.0, parts of complex128 41 to 48). With 24 beside those of rows that are turned,
        // 500 bytes were (60), with 48 up to 52 (50 and 52).
        let others = if border::is_turned(choice) { 32 } else { 24 };
        return w.rows * w.columns / 32 * words + others <= most;
    }
    // Lanes that count from one place have fewer addresses: of parts of complex128 by 2 x 4 warps and instructions of 16 terms, whose C and operands
    // take 224 registers, and 232 with rows that are turned (57 to 60 columns), nothing is kept in memory (NVRTC 13.0).
    let may_count = match choice.get(staging::LANE_BASE) {
        Some(_) => choice.flag(staging::LANE_BASE),
        None => !staging::lane_base(problem.dtype(), choice).is_empty(),
    };
    let others = if may_count && !dtype.is_complex() { 16 } else { 40 };
    (w.rows * w.columns + (w.rows + w.columns) * w.terms) / 32 * words <= most - others
}

/// The same where numbers are split: with what is added to the elements of C, and the parts of the operands.
fn split_fragments_fit(choice: &Choice, problem: &Problem, target: &Target) -> bool {
    let w = warp_tile(problem, choice);
    let sums = staging::sums_in_registers(choice, warps::steps_of_a_group(problem, choice), true);
    let words = read(problem, choice).dtype().bytes() / 4;
    let all = (sums * w.rows * w.columns + 2 * (w.rows + w.columns) * w.terms) / 32 * words;
    let border = border::cost(problem, choice).registers;
    // With so many beside what is counted 4 bytes of a thread were kept in memory (NVRTC 13.0, f32 115 columns).
    let others = if border > 0 { 24 } else { 32 };
    !staging::splits(choice) || all + border <= most_registers(choice, target) - others
}
