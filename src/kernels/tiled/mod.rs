//! The family `tiled`: products in f32 by the multiply-adds of threads. C = alpha A B + beta C with A: M x K and B: K x N.
mod footprint;
mod constraints;
mod mapping;
mod schedule;

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::target::Capability;

use self::mapping::{A_TILE, BY_WARPS, ROWS, TEAM, TURNED};
use super::family::{Choice, Family, Parameter, Value};
use super::gemm::{Fixed, Numbers};
use super::staging::{self, ceil};
use crate::problem::{Op, Problem};

/// The family.
pub const FAMILY: Family = Family {
    name: "tiled",
    about: "matrix times matrix, by tiles of threads",
    fixed,
    flat: |_, _| [false; 3],
    numbers: |_, _| Numbers::Whole,
    classes: |_, _| None,
    suits: |problem| {
        let shape = problem.shape;
        fixed(problem).is_ok() && 8 * shape.m <= shape.k && shape.n * shape.k >= 1 << 21
    },
    parameters: PARAMETERS,
    constraints: constraints::CONSTRAINTS,
    any_order: |_| false,
    reproducible: |_| Choice::default().with("parts", 1).with("sets", 1),
    schedule: schedule::schedule,
    footprint: footprint::footprint,
};

/// The most rows that are served.
const MOST_ROWS: i64 = 1024;

fn fixed(problem: &Problem) -> Result<Fixed, Diagnosis> {
    let shape = problem.shape;
    let refuse = |because: &str, instead: &str| {
        Err(Diagnosis::new(format!("tiled has no kernel for {shape} {} {}", problem.precision, problem.layout))
            .because(because)
            .instead(instead))
    };
    if problem.dtype() != DType::F32 || problem.result_dtype() != DType::F32 || problem.precision.name() != "f32" {
        return refuse("it multiplies numbers of f32 as they are", "use --dtype f32, or a rung of a ladder");
    }
    if problem.layout.a != Op::None || problem.layout.b != Op::None {
        return refuse("it multiplies matrices as they are stored", "use --layout nn");
    }
    if !(1..=MOST_ROWS).contains(&shape.m) || shape.n < 1 || shape.k < 1 {
        return refuse("it takes 1 to 1024 rows of A", "use a rung of the ladder sgemm");
    }
    Ok(Fixed { m: Some(shape.m), n: Some(shape.n), k: Some(shape.k), alpha1: true, ..Fixed::default() })
}

fn numbers(values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    values.into_iter().map(Into::into).collect()
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: A_TILE,
        about: "how the tile of A lies in shared memory: as in memory (rows), or with the rows of each term side by side (turned)",
        values: |_, problem, target| {
            if !target.has(Capability::CpAsync) {
                return numbers([TURNED]);
            }
            if problem.shape.m > 32 { numbers([TURNED, ROWS]) } else { numbers([ROWS, TURNED]) }
        },
    },
    Parameter {
        name: "rows",
        about: "rows of C of a block",
        values: |c, problem, _| {
            let m = problem.shape.m;
            // Whole tiles of as many rows each, or tiles of usual extents that leave little over.
            let unit = if c.word(A_TILE) == TURNED { 4 } else { 1 };
            let mut even: Vec<i64> =
                (1..=8).map(|n| ceil(ceil(m, n), unit) * unit).filter(|rows| *rows <= 256).collect();
            even.extend([128, 64, 32, 96].into_iter().filter(|rows| *rows < m && 8 * (ceil(m, *rows) * rows - m) <= m));
            even.retain(|rows| *rows >= m.min(16));
            let mut seen = Vec::new();
            even.retain(|rows| !seen.contains(rows) && { seen.push(*rows); true });
            numbers(even)
        },
    },
    Parameter {
        name: "columns",
        about: "columns of C of a block",
        values: |_, _, _| numbers([128, 64, 32, 256, 16]),
    },
    Parameter {
        name: "tm",
        about: "rows of a thread",
        values: |c, _, _| {
            let rows = c.int("rows");
            let unit = if c.word(A_TILE) == TURNED { 4 } else { 1 };
            let mut tiles: Vec<i64> = (1..=20).filter(|tm| rows % tm == 0 && tm % unit == 0 && (*tm >= rows.min(3))).collect();
            tiles.sort_by_key(|tm| (tm - 8).abs());
            numbers(tiles)
        },
    },
    Parameter { name: "tn", about: "columns of a thread", values: |_, _, _| numbers([8, 4, 16]) },
    Parameter {
        name: "sets",
        about: "sets of threads of a block that share out the terms of its sums",
        values: |_, _, _| numbers([1, 2, 4, 8, 16, 32, 64]),
    },
    Parameter {
        name: "lanes",
        about: "lanes of a warp that stand below one another, where a set of threads is whole warps",
        values: |c, _, _| {
            let (down, across) = (ceil(c.int("rows"), c.int("tm").max(1)), ceil(c.int("columns"), c.int("tn").max(1)));
            numbers([4, 2, 8, 1, 16].into_iter().filter(|l| mapping::may_have_lanes(down, across, *l)).take(2))
        },
    },
    Parameter {
        name: TEAM,
        about: "who copies tiles and waits for them together: a block, or each warp for itself, whose sets then take the terms that it has copied",
        values: |c, _, _| {
            let tiles = mapping::Tiles::of(c);
            let set = tiles.down * tiles.across;
            let may = c.word(A_TILE) == ROWS && tiles.sets > 1 && 32 % set == 0 && set * tiles.sets % 32 == 0;
            if may { numbers([BY_WARPS, "block"]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "depth",
        about: "terms that a block has in shared memory at a time",
        values: |c, _, _| {
            match (c.word(A_TILE), c.word(TEAM)) {
                (TURNED, _) => numbers([16, 8, 32]),
                (_, BY_WARPS) => Vec::new(),
                _ => numbers([32, 64, 128, 16, 256]),
            }
        },
    },
    Parameter {
        name: "parts",
        about: "parts of a sum, each for blocks of its own",
        values: |c, problem, target| {
            let [down, across] = mapping::blocks(problem, c);
            let (blocks, all) = (down * across, i64::from(target.sm_count.value));
            let steps = ceil(problem.shape.k, mapping::Tiles::of(c).depth);
            // As many as fill the multiprocessors once, twice, ... and leave little over.
            let mut parts: Vec<i64> = (1..=32).filter(|p| *p == 1 || *p <= steps && blocks * p <= 5 * all).collect();
            let full = |p: &i64| {
                let blocks = blocks * p;
                blocks as f64 / (ceil(blocks, all) * all) as f64
            };
            parts.retain(|p| *p == 1 || full(p) >= 0.8);
            parts.sort_by_key(|p| (full(p) < 0.9, *p));
            numbers(parts)
        },
    },
    Parameter {
        name: "stages",
        about: "tiles in shared memory at a time: one that is multiplied while others are waited for",
        values: |c, _, _| {
            if c.word(A_TILE) == TURNED { numbers([2]) } else { numbers([4, 3, 2, 6, 8]) }
        },
    },
    Parameter {
        name: staging::BOUNDED,
        about: staging::ABOUT_BOUNDED,
        values: |_, _, _| numbers([false, true]),
    },
];
