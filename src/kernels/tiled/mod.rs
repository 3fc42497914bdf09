//! The family `tiled`: products in f32, bf16 and f16 by tiles. C = alpha A B + beta C with A: M x K and B: K x N, or B^T: N x K as many
//! frameworks store weights, M up to 1024, all extents constants of the kernel: the rows of a batch times the weights of a fully connected layer.
//!
//! A block computes `rows` x `columns` elements of C. Tiles of A and B, `depth` terms at a time, are copied to shared memory `stages`
//! ahead. There are two ways to multiply them:
//!
//! - `unit=fma`: a thread multiplies `tm` x `tn` elements, its columns in pieces of 16 bytes that lie as far apart as possible.
//! - `unit=mma`: `wm` x `wn` warps multiply by matrix instructions on numbers that are split into tf32 parts (`numbers=split`, known as
//!   3xTF32): for short sums, whose error has a larger bound then, only where somebody asks for it or permits it, as in the family
//!   `tsmttsm`. A number of B takes three instructions that split it and three that multiply it with 16 rows, where threads need a
//!   multiply-add for each row. Where pieces of rows change places (`swizzled`) and a warp has 16 columns or more, a lane reads two terms
//!   of a row of A and up to four columns of a row of B at once, and instructions have every second term and every fourth column: with 32 to 128
//!   rows the two large layers of `bench fc` took 0.83 to 0.94 of the time that they took before (an H200, 2026-11-27).
//!
//! - Elements of 16 bits are multiplied as they are (`numbers=whole`), by matrix units only: `ldmatrix` brings squares of 16 x 16 of them to the
//!   lanes, turned where they are of B, and sums are f32. Their rows have to start at multiples of 16 bytes.
//!
//! B^T (layout `nt`) is multiplied by matrix units only. Its tile has a row for each column of B (`b_tile`), which lanes read as they read A.
//!
//! What keeps a GPU busy where C has too few tiles for it are sums that are split, always in the same way, so that bits are the same
//! every time:
//!
//! - `sets` of threads or warps of a block share out the terms of its sums: a set of threads takes every so many groups of the terms that a
//!   thread reads at once, one of warps neighbouring terms. What they have added up comes together in shared memory (`split_reduce` and `rfactor` with `combine=shared`).
//! - `parts` of a sum are added up by blocks of their own and come together in a second launch (`split_reduce` in two
//!   passes). With few rows it is better to do without, and to have blocks of few columns: with 16 and 4096 x 4096 weights the best in
//!   one part took 25.7 us, the best in two 26.8 (one H100, 2026-11-26).
//!
//! The tile of A lies in shared memory in one of two ways (`a_tile`):
//!
//! - `rows`: as in memory, so that asynchronous copies bring it; a thread reads four terms of a row at once. So that lanes read from
//!   different banks, pieces of rows change places (`swizzled`), or rows are longer. With `team=warp` each warp copies what its own sets
//!   multiply, and waits for no other warp before the sums come together.
//! - `turned`: rows of a term side by side, as in the last rungs of the ladder `sgemm`; a thread reads four rows of a term at once. Tiles of A
//!   pass through registers on their way.
//!
//! `lanes` of a warp stand below one another, neighbouring ones first: eight lanes that read together then read few pieces of either
//! operand.

mod constraints;
mod footprint;
mod mapping;
mod schedule;

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::target::{Capability, Target};

use self::mapping::{
    A_TILE, B_TILE, BY_WARPS, COLUMNS, Elements, HIGH, PIECE, ROWS, TEAM, TURNED, by_matrix_units,
};
use super::family::{Choice, Family, Parameter, Value};
use super::gemm::{Fixed, Numbers, Strides};
use super::staging::{self, By, ceil};
use crate::problem::{Alignment, Op, Problem};

/// The family.
pub const FAMILY: Family = Family {
    name: "tiled",
    about: "matrix times matrix, by tiles of threads",
    fixed,
    flat: |_, _| [false; 3],
    strides: |_, _| Strides::Arguments,
    before_c: |_, _| 0,
    numbers: |_, _| Numbers::Whole,
    classes: |_, _| None,
    suits: |problem| {
        let shape = problem.shape;
        let by_columns = problem.layout.b != Op::None;
        let most_rows = if by_columns && halves(problem) { MOST_ROWS_BY_COLUMNS } else { MOST_ROWS };
        fixed(problem).is_ok()
            && shape.m <= most_rows
            && (!by_columns || shape.k >= LEAST_TERMS_BY_COLUMNS)
            && shape.k >= LONG.min(8 * shape.m)
            && shape.n * shape.k >= 1 << 21
    },
    parameters: PARAMETERS,
    unmodelled: &[],
    constraints: constraints::CONSTRAINTS,
    any_order: |_| false,
    context: |_| false,
    // The terms of an element are added up one after the other, or by so many sets of threads that each take every so many fours.
    reproducible: |problem| match Height::of(problem) {
        Height::Low => by_threads().with(A_TILE, ROWS).with("sets", 16).with("parts", 1),
        _ => by_threads().with(A_TILE, TURNED).with("sets", 1).with("parts", 1),
    },
    schedule: schedule::schedule,
    footprint: footprint::footprint,
};

/// What every GPU can do.
fn by_threads() -> Choice {
    Choice::default().with("unit", "fma")
}

/// Terms from which it is chosen however many rows there are: with 1024 x 1000 x 4096 its best took 153 us, the tile of the ladder `sgemm`
/// 252, cuBLAS 178 (an H100, 2026-11-26).
const LONG: i64 = 2048;
/// The most rows that are served.
const MOST_ROWS: i64 = 1024;
/// The most rows of 16-bit elements times B^T that it is chosen for: with more the ladder `hgemm` multiplies by instructions of four warps
/// (4096 x 4096 on an H200, 2026-11-27: 28.7 us with 256 rows, tuned, where the ladder's takes 49.2 with 512).
const MOST_ROWS_BY_COLUMNS: i64 = 256;
/// The least terms of a product with B^T that it is chosen for: shorter sums of split numbers would have to be permitted.
const LEAST_TERMS_BY_COLUMNS: i64 = 64;
/// The most rows of a thread that are worth trying.
const MOST_ROWS_OF_A_THREAD: i64 = 20;
/// Terms of each tile that a set of warps multiplies by matrix units.
fn terms_of_a_set(choice: &Choice) -> [i64; 4] {
    match Elements::of(choice) {
        Elements::Words => [16, 32, 8, 64],
        Elements::Halves => [32, 64, 16, 128],
    }
}

/// The most parts of a sum that are worth trying.
const MOST_PARTS: i64 = 32;
/// The most blocks of several parts, counted in multiprocessors.
const MOST_ROUNDS: i64 = 5;

fn fixed(problem: &Problem) -> Result<Fixed, Diagnosis> {
    let shape = problem.shape;
    let refuse = |because: &str, instead: &str| {
        Err(Diagnosis::new(format!(
            "tiled has no kernel for {shape} {} {}",
            problem.precision, problem.layout
        ))
        .because(because)
        .instead(instead))
    };
    if !halves(problem) && problem.precision.name() != "f32" {
        return refuse(
            "it multiplies numbers of f32, in that precision, and of 16 bits",
            "use --dtype f32, bf16 or f16, or a rung of a ladder",
        );
    }
    if halves(problem) && !starts_in_pieces(problem) {
        return refuse(
            "rows of 16-bit elements have to start at multiples of 16 bytes",
            "use a rung of the ladder hgemm or sgemm",
        );
    }
    if problem.layout.a != Op::None || !matches!(problem.layout.b, Op::None | Op::Transpose) {
        return refuse("it multiplies A as it is stored by B or B^T", "use --layout nn or nt");
    }
    if !(1..=MOST_ROWS).contains(&shape.m) || shape.n < 1 || shape.k < 1 {
        return refuse("it takes 1 to 1024 rows of A", "use a rung of the ladder sgemm");
    }
    Ok(Fixed { m: Some(shape.m), n: Some(shape.n), k: Some(shape.k), alpha1: true, ..Fixed::default() })
}

/// Whether elements have 16 bits.
fn halves(problem: &Problem) -> bool {
    matches!(problem.dtype(), DType::Bf16 | DType::F16)
}

/// Whether all rows of A and B start where a copy of 16 bytes may, and end there, too, but for what copies leave out.
fn starts_in_pieces(problem: &Problem) -> bool {
    let aligned = problem.alignment();
    let of_a_piece = Alignment::MOST / problem.dtype().bytes();
    [problem.ld.a, problem.ld.b].iter().all(|stride| stride % of_a_piece == 0)
        && [aligned.a, aligned.b].iter().all(|bytes| *bytes == Alignment::MOST)
}

/// How many rows A has: what is worth trying differs. Of 59 products on an H100 (4096 to 9216 terms, 1000 and 4096 columns, 6530
/// trials, 2026-11-26) the fastest of those with 64 rows and more all had a turned tile of A, eight columns a thread and one set of
/// threads, those with less than 24 all rows as they lie and several sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Height {
    /// Less than 24: reading B takes the time.
    Low,
    /// Up to 63.
    Middle,
    /// More: multiplying takes the time.
    High,
}

impl Height {
    fn of(problem: &Problem) -> Height {
        match problem.shape.m {
            ..24 => Height::Low,
            24..64 => Height::Middle,
            _ => Height::High,
        }
    }
}

fn numbers(values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    values.into_iter().map(Into::into).collect()
}

/// The values of a parameter for low, middle and high products.
fn by_height(problem: &Problem, low: &[i64], middle: &[i64], high: &[i64]) -> Vec<Value> {
    numbers(
        match Height::of(problem) {
            Height::Low => low,
            Height::Middle => middle,
            Height::High => high,
        }
        .iter()
        .copied(),
    )
}

/// Rows of a block that share M out evenly, or are usual and leave little over.
fn rows_of_a_block(choice: &Choice, problem: &Problem) -> Vec<i64> {
    let m = problem.shape.m;
    let unit = match choice.word(A_TILE) {
        _ if by_matrix_units(choice) => HIGH,
        TURNED => PIECE,
        _ => 1,
    };
    let even = (1..=8).map(|blocks| ceil(ceil(m, blocks), unit) * unit);
    let usual =
        [128, 64, 32, 96].into_iter().filter(|rows| *rows < m && 8 * (ceil(m, *rows) * rows - m) <= m);
    let mut rows: Vec<i64> = Vec::new();
    for each in even.chain(usual).filter(|rows| (m.min(16)..=256).contains(rows)) {
        if !rows.contains(&each) {
            rows.push(each);
        }
    }
    rows
}

/// Rows of a thread that are whole pieces and share out those of a block.
fn rows_of_a_thread(choice: &Choice) -> Vec<i64> {
    let rows = choice.int("rows");
    let unit = if choice.word(A_TILE) == TURNED { PIECE } else { 1 };
    let mut tiles: Vec<i64> = (1..=MOST_ROWS_OF_A_THREAD)
        .filter(|tm| rows % tm == 0 && tm % unit == 0 && *tm >= rows.min(3))
        .collect();
    tiles.sort_by_key(|tm| (tm - 8).abs());
    tiles
}

/// As many parts as fill the multiprocessors a few times with little left over, or one.
fn parts(choice: &Choice, problem: &Problem, target: &Target) -> Vec<i64> {
    let [down, across] = mapping::blocks(problem, choice);
    let (blocks, all) = (down * across, i64::from(target.sm_count.value));
    let steps = ceil(problem.shape.k, mapping::Tiles::of(choice).depth);
    let full = |parts: &i64| {
        let blocks = blocks * parts;
        blocks as f64 / (ceil(blocks, all) * all) as f64
    };
    let fits = |parts: &i64| *parts <= steps && blocks * parts <= MOST_ROUNDS * all && full(parts) >= 0.8;
    let mut parts: Vec<i64> = (1..=MOST_PARTS).filter(|parts| *parts == 1 || fits(parts)).collect();
    parts.sort_by_key(|parts| (full(parts) < 0.9, *parts));
    parts
}

/// Numbers of warps that share out so many instructions, where matrix units multiply.
fn warps(choice: &Choice, instructions: i64, likely: [i64; 4]) -> Vec<Value> {
    if !by_matrix_units(choice) {
        return Vec::new();
    }
    numbers(likely.into_iter().filter(|warps| instructions % warps == 0))
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "unit",
        about: "what multiplies: threads (fma) or matrix units (mma)",
        values: |_, problem, target| match problem.dtype() {
            DType::F16 | DType::Bf16 => numbers(["mma"]),
            _ if problem.layout.b != Op::None => numbers(["mma"]),
            _ if target.has(Capability::MmaTf32) => numbers(["fma", "mma"]),
            _ => numbers(["fma"]),
        },
    },
    Parameter {
        name: "numbers",
        about: "how matrix units take numbers: split into tf32 parts, or whole where they have 16 bits",
        values: |c, problem, _| match problem.dtype() {
            _ if !by_matrix_units(c) => Vec::new(),
            DType::F16 | DType::Bf16 => numbers([mapping::WHOLE]),
            _ => numbers(["split"]),
        },
    },
    Parameter {
        name: A_TILE,
        about: "how the tile of A lies in shared memory: as in memory (rows), or with the rows of each term side by side (turned)",
        values: |c, problem, _| match Height::of(problem) {
            _ if by_matrix_units(c) => numbers([ROWS]),
            Height::Low => numbers([ROWS]),
            Height::Middle => numbers([ROWS, TURNED]),
            Height::High => numbers([TURNED]),
        },
    },
    Parameter {
        name: B_TILE,
        about: "how the tile of B^T lies in shared memory: as in memory, a row for each column of B",
        values: |_, problem, _| match problem.layout.b {
            Op::None => Vec::new(),
            _ => numbers([COLUMNS]),
        },
    },
    Parameter {
        name: staging::COPY,
        about: "how tiles come to shared memory: through registers where there are no asynchronous copies, which are usual",
        values: |_, _, target| {
            if target.has(Capability::CpAsync) { Vec::new() } else { numbers([staging::THROUGH_REGISTERS]) }
        },
    },
    Parameter {
        name: "rows",
        about: "rows of C of a block",
        values: |c, problem, _| numbers(rows_of_a_block(c, problem)),
    },
    Parameter {
        name: "columns",
        about: "columns of C of a block",
        values: |c, problem, _| match by_matrix_units(c) {
            true => by_height(problem, &[32, 64, 128], &[64, 32, 128], &[128, 64, 256]),
            false => by_height(problem, &[32, 128, 64], &[128, 32, 64, 256], &[256, 128, 64]),
        },
    },
    Parameter {
        name: "wm",
        about: "warps below one another",
        values: |c, _, _| warps(c, ceil(c.int("rows"), HIGH), [1, 2, 4, 8]),
    },
    Parameter {
        name: "wn",
        about: "warps beside each other",
        values: |c, problem, _| {
            let likely = if Height::of(problem) == Height::High { [4, 2, 1, 8] } else { [1, 2, 4, 8] };
            warps(c, ceil(c.int("columns"), Elements::of(c).across()), likely)
        },
    },
    Parameter {
        name: "tm",
        about: "rows of a thread",
        values: |c, _, _| if by_matrix_units(c) { Vec::new() } else { numbers(rows_of_a_thread(c)) },
    },
    Parameter {
        name: "tn",
        about: "columns of a thread",
        values: |c, problem, _| match by_matrix_units(c) {
            true => Vec::new(),
            false => by_height(problem, &[4, 8], &[8, 4], &[8]),
        },
    },
    Parameter {
        name: "sets",
        about: "sets of threads of a block that share out the terms of its sums",
        values: |c, problem, _| match by_matrix_units(c) {
            true => by_height(problem, &[8, 16, 4, 2], &[4, 8, 2, 1], &[1, 2, 4]),
            false => by_height(problem, &[16, 32, 8, 4], &[1, 4, 8, 2], &[1]),
        },
    },
    Parameter {
        name: "lanes",
        about: "lanes of a warp that stand below one another, where a set of threads is whole warps",
        values: |c, _, _| {
            let tiles = mapping::Tiles::of(c);
            let may_have =
                |l: &i64| !tiles.matrix_units && mapping::may_have_lanes(tiles.down, tiles.across, *l);
            numbers([4, 2, 1, 8, 16].into_iter().filter(may_have).take(2))
        },
    },
    Parameter {
        name: TEAM,
        about: "who copies tiles and waits for them together: a block, or each warp for itself, whose sets then take the terms that it has copied",
        values: |c, _, _| {
            let tiles = mapping::Tiles::of(c);
            let set = tiles.of_a_set;
            let may = c.word(A_TILE) == ROWS && tiles.sets > 1 && 32 % set == 0 && set * tiles.sets % 32 == 0;
            if may { numbers([BY_WARPS, "block"]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "depth",
        about: "terms that a block has in shared memory at a time",
        values: |c, problem, _| match (c.word(A_TILE), c.word(TEAM)) {
            _ if by_matrix_units(c) => numbers(terms_of_a_set(c).map(|terms| terms * c.int("sets"))),
            (TURNED, _) => numbers([16, 8, 32]),
            (_, BY_WARPS) => Vec::new(),
            _ => by_height(problem, &[64, 128, 256, 32], &[32, 64, 16, 128], &[32]),
        },
    },
    Parameter {
        name: mapping::SWIZZLED,
        about: "whether pieces of rows change places in shared memory, so that lanes read from different banks, or rows are longer",
        values: |c, problem, _| match Height::of(problem) {
            _ if c.word(A_TILE) == TURNED => Vec::new(),
            Height::Low => numbers([true, false]),
            Height::High if !by_matrix_units(c) => numbers([false]),
            Height::Middle | Height::High => numbers([false, true]),
        },
    },
    Parameter {
        name: "parts",
        about: "parts of a sum, each for blocks of its own",
        values: |c, problem, target| numbers(parts(c, problem, target)),
    },
    Parameter {
        name: "stages",
        about: "tiles in shared memory at a time: one that is multiplied while others are waited for",
        values: |c, problem, _| match c.word(A_TILE) {
            TURNED => numbers([2]),
            _ if By::of(c) == By::Loading => numbers([2]),
            _ => by_height(problem, &[4, 8, 6, 3], &[3, 2, 4, 8], &[3]),
        },
    },
    Parameter {
        name: staging::BOUNDED,
        about: staging::ABOUT_BOUNDED,
        values: |_, _, _| numbers([false, true]),
    },
];
