//! The family `tsmttsm`: a tall skinny matrix, transposed, times another. C = alpha op(A) B + beta C with A: K x M and
//! B: K x N, K long and M, N short; the mappings are those of Ernst, Hager, Thies and Wellein (IJHPCA 35(1), 2021).
//!
//! A block takes every `parts`-th group of rows of A and B. Its threads are divided into slices, of which each takes
//! one row of a group; the threads of a slice share out C in tiles of `tm` x `tn`.

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;

use super::family::{Choice, Constraint, Family, Parameter, Value};
use super::gemm::Fixed;
use crate::problem::{Op, Problem};

/// The family.
pub const FAMILY: Family = Family {
    name: "tsmttsm",
    about: "tall skinny matrix, transposed, times tall skinny matrix",
    fixed,
    suits: |problem| {
        let short = problem.shape.m.max(problem.shape.n);
        fixed(problem).is_ok() && problem.shape.k >= 8 * short
    },
    parameters: PARAMETERS,
    constraints: CONSTRAINTS,
    schedule,
    usual,
};

/// The largest M and N that are served.
const WIDEST: i64 = 128;

fn fixed(problem: &Problem) -> Result<Fixed, Diagnosis> {
    let shape = problem.shape;
    let refuse = |because: &str, instead: &str| {
        Err(Diagnosis::new(format!("tsmttsm has no kernel for {shape} {}", problem.layout))
            .because(because)
            .instead(instead))
    };
    if !problem.layout.a.transposes() || problem.layout.b != Op::None {
        return refuse("it multiplies a transposed matrix by one as it is stored", "use --layout tn or cn");
    }
    if !(1..=WIDEST).contains(&shape.m) || !(1..=WIDEST).contains(&shape.n) {
        return refuse("it takes 1 to 128 rows and columns of C", "use another kernel for wider products");
    }
    Ok(Fixed { m: Some(shape.m), n: Some(shape.n), k: None })
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "block",
        about: "threads of a block",
        values: |_, _| [256, 128].map(Value::from).to_vec(),
    },
    Parameter { name: "tm", about: "rows of C of a thread", values: |problem, _| tiles(problem.shape.m) },
    Parameter { name: "tn", about: "columns of C of a thread", values: |problem, _| tiles(problem.shape.n) },
    Parameter {
        name: "transposed",
        about: "whether a thread's elements of C are as far apart as possible, so that neighbours read side by side",
        values: |_, _| [true, false].map(Value::from).to_vec(),
    },
    Parameter {
        name: "leapfrog",
        about: "whether the next row is loaded into registers before this one is multiplied",
        values: |_, _| [true, false].map(Value::from).to_vec(),
    },
    Parameter {
        name: "parts",
        about: "blocks, of which each adds up its own part of the sum",
        values: |problem, target| {
            let all = i64::from(target.sm_count.value);
            let mut parts: Vec<i64> =
                [4, 2, 1, 8].iter().map(|n| n * all).filter(|p| *p * LEAST_ROWS <= problem.shape.k).collect();
            if parts.is_empty() {
                parts.push((problem.shape.k / LEAST_ROWS).clamp(1, all));
            }
            parts.into_iter().map(Value::from).collect()
        },
    },
];

/// A block with fewer rows to add up than this is not worth its start.
const LEAST_ROWS: i64 = 32;

/// Extents of the tiles of a thread along an axis of C: those that leave less than a tile over.
fn tiles(extent: i64) -> Vec<Value> {
    let useful = |t: &i64| extent % t == 0 || 2 * t <= extent + 1;
    (1..=extent.min(16)).rev().filter(useful).map(Value::from).collect()
}

const CONSTRAINTS: &[Constraint] = &[
    Constraint {
        about: "a block has too few threads to cover C once",
        on: &["block", "tm", "tn"],
        holds: |c, p, _| Mapping::new(p, c).covering() <= c.int("block"),
    },
    Constraint {
        about: "a thread's elements of C and of the operands do not fit in 255 registers",
        on: &["tm", "tn", "leapfrog"],
        holds: |c, p, _| {
            let (tm, tn) = (c.int("tm"), c.int("tn"));
            let rows = if c.flag("leapfrog") { 2 } else { 1 };
            (tm * tn + rows * (tm + tn)) * p.result_dtype().bytes() / 4 <= 224
        },
    },
    Constraint {
        about: "the slices of a block do not fit in shared memory",
        on: &["block", "tm", "tn"],
        holds: |c, p, t| {
            let slices = Mapping::new(p, c).slices;
            slices == 1
                || slices * p.shape.m * p.shape.n * p.result_dtype().bytes()
                    <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
];

/// How the threads of a block stand over C and over rows.
struct Mapping {
    /// Threads along the rows of C.
    mt: i64,
    /// Threads along the columns of C.
    nt: i64,
    /// Groups of threads that each cover C.
    slices: i64,
}

impl Mapping {
    fn new(problem: &Problem, choice: &Choice) -> Mapping {
        let ceil = |a: i64, b: i64| (a + b - 1) / b.max(1);
        let mt = ceil(problem.shape.m, choice.int("tm"));
        let nt = ceil(problem.shape.n, choice.int("tn"));
        Mapping { mt, nt, slices: (choice.int("block") / (mt * nt).max(1)).max(1) }
    }

    /// Threads that cover C once.
    fn covering(&self) -> i64 {
        self.mt * self.nt
    }
}

fn schedule(problem: &Problem, choice: &Choice) -> String {
    let Mapping { mt, nt, slices } = Mapping::new(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let threads = slices * mt * nt;
    let (split, loops) = if choice.flag("transposed") {
        (
            format!("split(slice.i, {mt}) -> i, it\nsplit(slice.j, {nt}) -> j, jt\n"),
            "reorder(slice.i, slice.j, slice.s, slice.it, slice.jt)
bind(slice.i, vthread)
bind(slice.j, vthread)
bind(slice.s, slice.it, slice.jt, threads)
compute_at(mine, slice.jt)
",
        )
    } else {
        (
            format!("split(slice.i, {tm}) -> it, i\nsplit(slice.j, {tn}) -> jt, j\n"),
            "reorder(slice.s, slice.it, slice.jt, slice.i, slice.j)
bind(slice.s, slice.it, slice.jt, threads)
compute_at(mine, slice.jt)
",
        )
    };
    let overlap = if choice.flag("leapfrog") { "pipeline(mine.ko, 2, via=registers)\n" } else { "" };
    format!(
        "split(acc.k, {slices}) -> ko, s
split_reduce(acc.ko, {parts}, order=cyclic) -> part, g
rfactor(part.s, combine=shared) -> slice
cache_write(slice, reg) -> mine
bind(part.g, block.x)
compute_at(slice, part.g)
{split}{loops}reorder(mine.ko, mine.i, mine.j)
cache_read(A, mine, reg) -> a
compute_at(a, mine.ko)
cache_read(B, mine, reg) -> b
compute_at(b, mine.ko)
fuse(part.i, part.j) -> e
split(part.e, {threads}) -> u, t
reorder(part.t, part.u)
bind(part.t, threads)
fuse(C.i, C.j) -> e
split(C.e, 128) -> block, t
bind(C.block, block.x)
bind(C.t, threads)
set_scope(acc, reg)
compute_at(acc, C.t)
unroll(a.c, b.c, mine.i, mine.j)
{overlap}"
    )
}

fn usual(problem: &Problem, target: &Target) -> Choice {
    let largest = |extent: i64| (1..=extent.min(8)).rev().find(|t| extent % t == 0).unwrap_or(1);
    let parts = (FAMILY.parameters.iter().find(|p| p.name == "parts"))
        .and_then(|p| (p.values)(problem, target).into_iter().next())
        .unwrap_or(Value::Int(1));
    let mut choice = Choice::default()
        .with("block", 256)
        .with("tm", largest(problem.shape.m))
        .with("tn", largest(problem.shape.n))
        .with("transposed", true)
        .with("leapfrog", false)
        .with("parts", parts);
    // A tile of a prime width is a column: a block may have too few threads for that many.
    for tile in [4, 6, 8, 12] {
        if FAMILY.constraints.iter().all(|c| (c.holds)(&choice, problem, target)) {
            break;
        }
        choice = choice.with("tm", tile.min(problem.shape.m)).with("tn", tile.min(problem.shape.n));
    }
    choice
}
