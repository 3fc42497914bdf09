//! The family `tsmm`: a tall skinny matrix times a small one. C = alpha A B + beta C with A: M x K and B: K x N, M long
//! and N, K short; the mappings are those of Ernst, Hager, Thies and Wellein (IJHPCA 35(1), 2021).
//!
//! `threads` threads share out the columns of a row of the result, and take `unroll` rows at a time.

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;

use super::family::{Choice, Constraint, Family, Footprint, Parameter, Value};
use super::gemm::Fixed;
use crate::problem::{Op, Problem};

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
    schedule,
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

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "block",
        about: "threads of a block",
        values: |_, _, _| [256, 128, 512, 1024].map(Value::from).to_vec(),
    },
    Parameter {
        name: "threads",
        about: "threads that share out a row",
        values: |_, problem, _| {
            // Eight columns a thread are usual, four threads at least where there are as many columns.
            let usual = (problem.shape.n / 8).clamp(problem.shape.n.min(4), 16);
            let mut counts: Vec<i64> =
                [1, 2, 4, 8, 16, 32].into_iter().filter(|t| *t <= problem.shape.n).collect();
            counts.sort_by_key(|t| (t - usual).abs());
            counts.into_iter().map(Value::from).collect()
        },
    },
    Parameter {
        name: "unroll",
        about: "rows of a thread",
        values: |_, _, _| [2, 1, 3, 4].map(Value::from).to_vec(),
    },
    Parameter {
        name: "c_source",
        about: "where the small matrix is read from",
        values: |_, _, _| ["shared", "l1", "registers"].map(Value::from).to_vec(),
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
        about: "the small matrix does not fit in shared memory",
        on: &["c_source"],
        holds: |c, p, t| {
            c.word("c_source") != "shared"
                || p.shape.k * p.shape.n * p.dtype().bytes() <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
];

/// Columns of the result of a thread.
fn columns(problem: &Problem, choice: &Choice) -> i64 {
    let threads = choice.int("threads").max(1);
    (problem.shape.n + threads - 1) / threads
}

fn schedule(problem: &Problem, choice: &Choice) -> String {
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

fn footprint(problem: &Problem, choice: &Choice, _: &Target) -> Footprint {
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
