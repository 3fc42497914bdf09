//! The family `tsmm`: a tall skinny matrix times a small one. C = alpha A B + beta C with A: M x K and B: K x N, M long
//! and N, K short. There are two forms:
//!
//! - `unit=fma`: the mappings of Ernst, Hager, Thies and Wellein (IJHPCA 35(1), 2021). `threads` threads share out the
//!   columns of a row of the result, and take `unroll` rows at a time.
//! - `unit=mma`: a block takes every so many groups of `rows` rows. They are copied to shared memory, `stages` ahead,
//!   and `wm` x `wn` warps multiply them by the small matrix, which stays in shared memory, by matrix instructions.

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::target::{Capability, Target};

use super::family::{Choice, Constraint, Family, Footprint, Parameter, Value};
use super::gemm::Fixed;
use super::staging::{self, ACROSS, copied_at_once};
use crate::problem::{Op, Precision, Problem};

/// The family.
pub const FAMILY: Family = Family {
    name: "tsmm",
    about: "tall skinny matrix times small matrix",
    fixed,
    suits: |problem| {
        let short = problem.shape.k.max(problem.shape.n);
        fixed(problem).is_ok() && problem.shape.m >= 8 * short
    },
    parameters: PARAMETERS,
    constraints: CONSTRAINTS,
    any_order: |_| false,
    schedule: |problem, choice| match choice.word("unit") {
        "mma" => by_matrix_units(problem, choice),
        _ => by_threads(problem, choice),
    },
    footprint,
};

/// The largest N and K that are served.
const WIDEST: i64 = 128;

fn fixed(problem: &Problem) -> Result<Fixed, Diagnosis> {
    let shape = problem.shape;
    let refuse = |because: &str, instead: &str| {
        Err(Diagnosis::new(format!("tsmm has no kernel for {shape} {}", problem.layout))
            .because(because)
            .instead(instead))
    };
    if problem.layout.a != Op::None || problem.layout.b != Op::None {
        return refuse("it multiplies matrices as they are stored", "use --layout nn");
    }
    if !(1..=WIDEST).contains(&shape.n) || !(1..=WIDEST).contains(&shape.k) {
        return refuse("it takes 1 to 128 columns of A and of C", "use another kernel for wider products");
    }
    Ok(Fixed { m: None, n: Some(shape.n), k: Some(shape.k) })
}

/// The values of a parameter of one of the two forms.
fn with(unit: &str, choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if choice.word("unit") == unit { values.into_iter().map(Into::into).collect() } else { Vec::new() }
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "unit",
        about: "what multiplies: fma (threads) or mma (matrix units)",
        values: |_, problem, target| {
            let doubles = [DType::F64, DType::C128].map(Precision::Of);
            let mma = doubles.contains(&problem.precision) && target.has(Capability::MmaF64);
            // Below this width threads have fewer products than loads to do.
            let wide = problem.shape.k.min(problem.shape.n) * problem.dtype().bytes() >= 96;
            match (mma, wide) {
                (true, true) => vec!["mma".into(), "fma".into()],
                (true, false) => vec!["fma".into(), "mma".into()],
                (false, _) => vec!["fma".into()],
            }
        },
    },
    Parameter {
        name: "block",
        about: "threads of a block",
        values: |c, _, _| with("fma", c, [256, 128, 512, 1024]),
    },
    Parameter {
        name: "threads",
        about: "threads that share out a row",
        values: |choice, problem, _| {
            // Eight columns a thread are usual, four threads at least where there are as many columns.
            let usual = (problem.shape.n / 8).clamp(problem.shape.n.min(4), 16);
            let mut counts: Vec<i64> =
                [1, 2, 4, 8, 16, 32].into_iter().filter(|t| *t <= problem.shape.n).collect();
            counts.sort_by_key(|t| (t - usual).abs());
            with("fma", choice, counts)
        },
    },
    Parameter { name: "unroll", about: "rows of a thread", values: |c, _, _| with("fma", c, [2, 1, 3, 4]) },
    Parameter {
        name: "c_source",
        about: "where the small matrix is read from",
        values: |c, _, _| with("fma", c, ["shared", "l1", "registers"]),
    },
    Parameter {
        name: "instruction",
        about: "extents of the matrix instruction",
        values: |c, problem, target| with("mma", c, staging::instructions(problem.dtype(), target)),
    },
    Parameter {
        name: "rows",
        about: "rows of A that a block takes at a time",
        values: |c, _, _| with("mma", c, [64, 32, 128, 256]),
    },
    Parameter {
        name: "wm",
        about: "warps that share out these rows",
        values: |c, _, _| with("mma", c, [4, 2, 8, 1]),
    },
    Parameter {
        name: "wn",
        about: "warps that share out the columns of C",
        values: |c, _, _| with("mma", c, [1, 2, 4]),
    },
    Parameter {
        name: "stages",
        about: "groups of rows in shared memory at a time",
        values: |c, _, _| with("mma", c, [3, 4, 2, 6]),
    },
    Parameter {
        name: "blocks",
        about: "blocks, of which each takes every so many groups of rows",
        values: |c, problem, target| {
            let all = i64::from(target.sm_count.value);
            let groups = (problem.shape.m / c.int("rows").max(1)).max(1);
            let mut counts: Vec<i64> =
                [1, 2, 3, 4].iter().map(|n| n * all).filter(|b| *b <= groups).collect();
            if counts.is_empty() {
                counts.push(groups);
            }
            with("mma", c, counts)
        },
    },
];

const CONSTRAINTS: &[Constraint] = &[
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
        about: "a warp has a whole number of instructions in its rows",
        on: &["instruction", "rows", "wm"],
        holds: |c, p, _| {
            let warps = Warps::of(p, c);
            c.int("rows") % c.int("wm") == 0 && warps.rows > 0 && warps.rows % warps.high == 0
        },
    },
    Constraint {
        about: "warps would have no columns of C, or a block has other than 2 to 16 warps",
        on: &["wm", "wn"],
        holds: |c, p, _| {
            let warps = c.int("wm") * c.int("wn");
            (c.int("wn") - 1) * Warps::of(p, c).columns < p.shape.n && (2..=16).contains(&warps)
        },
    },
    Constraint {
        about: "a lane's elements of C and of the operands do not fit in 255 registers",
        on: &["instruction", "rows", "wm", "wn"],
        holds: |c, p, _| {
            let w = Warps::of(p, c);
            (w.rows * w.columns + (w.rows + w.columns) * w.terms) / 32 * p.dtype().bytes() / 4 <= 208
        },
    },
    Constraint {
        about: "the groups of rows and the small matrix do not fit in shared memory",
        on: &["instruction", "rows", "wn", "stages"],
        holds: |c, p, t| staged_bytes(p, c) <= i64::from(t.limits.shared_per_block_opt_in),
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

/// How the warps of a block stand over its rows.
struct Warps {
    /// Rows of an instruction.
    high: i64,
    /// Terms of an instruction.
    terms: i64,
    /// Rows of a warp.
    rows: i64,
    /// Columns of a warp.
    columns: i64,
}

impl Warps {
    fn of(problem: &Problem, choice: &Choice) -> Warps {
        let (high, terms) = staging::instruction(choice.word("instruction"));
        let columns = (problem.shape.n + ACROSS - 1) / ACROSS;
        let wn = choice.int("wn").max(1);
        Warps {
            high,
            terms,
            rows: choice.int("rows") / choice.int("wm").max(1),
            columns: (columns + wn - 1) / wn * ACROSS,
        }
    }
}

/// Columns of A and rows of the small matrix in shared memory: whole instructions.
fn staged_terms(problem: &Problem, choice: &Choice) -> i64 {
    let (_, terms) = staging::instruction(choice.word("instruction"));
    (problem.shape.k + terms - 1) / terms * terms
}

/// By how many elements rows of A and of the small matrix grow, so that a warp reads from different banks: of A eight
/// rows and four columns, of the small matrix four rows and eight columns.
fn paddings(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let (dtype, staged) = (problem.dtype(), staged_terms(problem, choice));
    let piece = copied_at_once(dtype, problem.shape.k, staged);
    let columns = choice.int("wn") * Warps::of(problem, choice).columns;
    if dtype == DType::C128 {
        [
            staging::padding(staged, piece, |c| c % 8 == 4),
            staging::padding(columns, 1, |c| matches!(c % 8, 2 | 6)),
        ]
    } else {
        let free = |c: i64| matches!(c % 16, 4 | 12);
        [staging::padding(staged, piece, free), staging::padding(columns, 1, free)]
    }
}

/// Bytes of shared memory of a block that multiplies by matrix units.
fn staged_bytes(problem: &Problem, choice: &Choice) -> i64 {
    let [a, b] = paddings(problem, choice);
    let staged = staged_terms(problem, choice);
    let columns = choice.int("wn") * Warps::of(problem, choice).columns;
    (choice.int("stages") * choice.int("rows") * (staged + a) + staged * (columns + b))
        * problem.dtype().bytes()
}

fn by_matrix_units(problem: &Problem, choice: &Choice) -> String {
    let Warps { high, terms, rows, columns } = Warps::of(problem, choice);
    let (dtype, instruction) = (problem.dtype(), choice.word("instruction"));
    let threads = 32 * choice.int("wm") * choice.int("wn");
    let piece = copied_at_once(dtype, problem.shape.k, staged_terms(problem, choice));
    let specialize = if piece > 1 { format!("specialize(lda%{piece})\n") } else { String::new() };
    let [pad_a, pad_b] = paddings(problem, choice);
    let below = if rows > high { ", a.ro, C.io" } else { "" };
    let beside = if columns > ACROSS { ", b.co, C.jo" } else { "" };
    format!(
        "{specialize}split(C.i, {group}) -> blk, i
split(C.blk, {blocks}) -> blk, g
split(C.i, {rows}) -> wm, i
split(C.j, {columns}) -> wn, j
reorder(C.g, C.blk, C.wm, C.wn, C.i, C.j)
bind(C.g, block.x)
bind(C.wm, C.wn, threads@32)
set_scope(acc, reg)
compute_at(acc, C.wn)
split(acc.k, {terms}) -> ks, k
reorder(acc.ks, acc.i, acc.j, acc.k)
{copy}{longer_a}cache_read(B, acc, shared) -> Bs
compute_at(Bs, C.g)
fuse(Bs.r, Bs.c) -> f
split(Bs.f, {threads}) -> u, t
reorder(Bs.t, Bs.u)
bind(Bs.t, threads)
{longer_b}cache_read(As, acc, reg) -> a
compute_at(a, acc.ks)
cache_read(Bs, acc, reg) -> b
compute_at(b, acc.ks)
split(acc.i, {high}) -> mi, i
split(acc.j, {ACROSS}) -> ni, j
reorder(acc.ks, acc.mi, acc.ni, acc.i, acc.j, acc.k)
tensorize(acc.i, mma_{instruction}_{dtype})
pipeline(C.blk, {stages}, via=cp_async)
unroll(acc.ks, acc.mi, acc.ni{below}{beside})
",
        group = choice.int("rows"),
        blocks = choice.int("blocks"),
        copy = staging::copy("A", "acc", "As", "C.blk", piece, threads, dtype),
        longer_a = staging::pad("As", pad_a),
        longer_b = staging::pad("Bs", pad_b),
        stages = choice.int("stages"),
    )
}

/// Columns of the result of a thread.
fn columns(problem: &Problem, choice: &Choice) -> i64 {
    let threads = choice.int("threads").max(1);
    (problem.shape.n + threads - 1) / threads
}

fn by_threads(problem: &Problem, choice: &Choice) -> String {
    let (block, unroll, columns) = (choice.int("block"), choice.int("unroll"), columns(problem, choice));
    let across = (problem.shape.n + columns - 1) / columns;
    let rows = (block / across).max(1);
    let small = match choice.word("c_source") {
        "registers" => "cache_read(B, acc, reg) -> b\ncompute_at(b, C.jt)\nunroll(b.r, b.c)\n".to_string(),
        "l1" => "cache_read(B, acc, reg) -> b\ncompute_at(b, acc.k)\nunroll(b.c)\n".to_string(),
        _ => format!(
            "cache_read(B, acc, shared) -> Bs
compute_at(Bs, C.block)
fuse(Bs.r, Bs.c) -> f
split(Bs.f, {threads}) -> u, t
reorder(Bs.t, Bs.u)
bind(Bs.t, threads)
cache_read(Bs, acc, reg) -> b
compute_at(b, acc.k)
unroll(b.c)
",
            threads = rows * across
        ),
    };
    format!(
        "split(C.i, {rows_of_a_block}) -> block, i
split(C.i, {unroll}) -> it, i
split(C.j, {columns}) -> jt, j
reorder(C.block, C.it, C.jt, C.i, C.j)
bind(C.block, block.x)
bind(C.it, C.jt, threads)
set_scope(acc, reg)
compute_at(acc, C.jt)
reorder(acc.k, acc.i, acc.j)
cache_read(A, acc, reg) -> a
compute_at(a, acc.k)
{small}unroll(acc.k, acc.i, acc.j, a.r, C.i, C.j)
",
        rows_of_a_block = rows * unroll,
    )
}

fn footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
    match choice.word("unit") {
        "mma" => matrix_footprint(problem, choice, target),
        _ => thread_footprint(problem, choice),
    }
}

fn matrix_footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
    let Warps { high, terms, rows, columns } = Warps::of(problem, choice);
    let (m, n, k) = (problem.shape.m as f64, problem.shape.n as f64, problem.shape.k as f64);
    let (bytes, blocks, group) = (problem.dtype().bytes(), choice.int("blocks"), choice.int("rows"));
    let staged = staged_terms(problem, choice);
    let over_rows = m / rows as f64 * choice.int("wn") as f64;
    // Steps of all warps, an instruction deep.
    let steps = over_rows * (staged / terms) as f64;
    let fragments = (rows + columns) * terms / 32;
    let small = target.has(Capability::MmaF64Wide) && choice.word("instruction") == "m8n8k4";
    let parts_of_number = if problem.dtype().is_complex() { 4.0 } else { 1.0 };
    let passes_over_c = if problem.beta.norm() == 0.0 { 1.0 } else { 2.0 };
    let piece = copied_at_once(problem.dtype(), problem.shape.k, staged);
    Footprint {
        blocks: blocks as f64,
        threads: 32 * choice.int("wm") * choice.int("wn"),
        registers: (rows * columns / 32 + 2 * fragments) * bytes / 4 + 24,
        shared_bytes: staged_bytes(problem, choice),
        // As in the family tsmttsm.
        multiply_adds: steps
            * (rows * columns * terms) as f64
            * if small { 1.9 } else { 1.0 }
            * parts_of_number,
        matrix_units: true,
        dram_bytes: m * (k + passes_over_c * n) * bytes as f64,
        wavefronts: steps * (fragments * bytes) as f64 / 4.0 + m * (k + n) * bytes as f64 / 128.0,
        instructions: steps * (fragments + rows / high * columns / ACROSS + 4) as f64
            + m * k / (32 * piece) as f64 * 2.0
            + over_rows * (rows * columns / 32 * 4) as f64,
        steps: m / (blocks * group * (choice.int("stages") - 1).max(1)) as f64 + 2.0,
        overlaps: true,
        launches: 1,
    }
}

fn thread_footprint(problem: &Problem, choice: &Choice) -> Footprint {
    let (block, unroll, columns) = (choice.int("block"), choice.int("unroll"), columns(problem, choice));
    let across = (problem.shape.n + columns - 1) / columns;
    let rows = (block / across).max(1);
    let (m, n, k) = (problem.shape.m as f64, problem.shape.n as f64, problem.shape.k as f64);
    let bytes = problem.dtype().bytes();
    let (words, size) = (bytes / 4, bytes as f64);
    let parts_of_number = if problem.dtype().is_complex() { 4.0 } else { 1.0 };
    let blocks = (m / (rows * unroll) as f64).ceil();
    let warps = blocks * (rows * across) as f64 / 32.0;
    // A warp reads one element of each of its rows at a time, and writes pieces of `columns` elements.
    let rows_of_warp = (32.0 / across as f64).max(1.0);
    let small_bytes = problem.shape.k * problem.shape.n * bytes;
    let (small_passes, small_registers, shared_bytes) = match choice.word("c_source") {
        "registers" => (0.0, problem.shape.k * columns, 0),
        "shared" => ((across as f64).min(32.0) * size / 128.0, columns, small_bytes),
        _ => ((across as f64).min(32.0) * size.max(32.0) / 128.0, columns, 0),
    };
    // A line for each of its rows, or fewer where several rows fit in a line of 128 bytes.
    let lines = |width: f64| (rows_of_warp * (unroll as f64 * width * size / 128.0).min(1.0)).max(1.0);
    let a_passes = unroll as f64 * k * lines(k);
    let b_passes = k * columns as f64 * small_passes.max(if small_passes > 0.0 { 1.0 } else { 0.0 });
    let c_passes = (unroll * columns) as f64 * lines(n).max(32.0 * size / 128.0);
    let fill = if shared_bytes > 0 { blocks * small_bytes as f64 / 64.0 } else { 0.0 };
    let once_a_block = if choice.word("c_source") == "shared" { 1.0 } else { 0.0 };
    let passes_over_c = if problem.beta.norm() == 0.0 { 1.0 } else { 2.0 };
    Footprint {
        blocks,
        threads: rows * across,
        registers: (unroll * (columns + 2) + small_registers) * words + 20,
        shared_bytes,
        multiply_adds: blocks * (rows * unroll * across * columns) as f64 * k * parts_of_number,
        matrix_units: false,
        dram_bytes: m * (k + passes_over_c * n) * size,
        wavefronts: warps * (a_passes + b_passes + c_passes) + fill,
        instructions: warps
            * (unroll as f64 * k + b_passes.min(k * columns as f64) + (unroll * columns) as f64 * 3.0 + 40.0),
        // Loads of four terms or so are in flight at once, and the small matrix is waited for before the first.
        steps: once_a_block * 1.5 + (k / 4.0).ceil(),
        overlaps: true,
        launches: 1,
    }
}
