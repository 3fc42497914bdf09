//! The family `tsmttsm`: a tall skinny matrix, transposed, times another. C = alpha op(A) B + beta C with A: K x M and
//! B: K x N, K long and M, N short.
//!
//! A block takes every `parts`-th group of rows of A and B, adds up their products in registers, and leaves its part
//! of the sum in device memory; a second launch adds the parts in order, so the bits are the same every time. There
//! are two forms:
//!
//! - `unit=fma`: the threads of a block are divided into slices; the threads of a slice share out C in tiles of
//!   `tm` x `tn`. With `staging=registers` each slice takes one row of a group, and threads read their elements of it
//!   from device memory: the mappings of Ernst, Hager, Thies and Wellein (IJHPCA 35(1), 2021). With `staging=shared`
//!   groups of `depth` rows are copied to shared memory, `stages` ahead, and slices share out the rows of a group.
//! - `unit=mma`: groups of rows are staged in shared memory likewise. `wm` x `wn` warps share out C in tiles of matrix
//!   instructions, `wk` such sets of warps share out the rows of a group.

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::target::{Capability, Target};

use super::family::{Choice, Constraint, Family, Footprint, Parameter, Value};
use super::gemm::Fixed;
use super::staging::{self, ACROSS, copied_at_once};
use crate::problem::{Op, Precision, Problem};

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
    schedule: |problem, choice| match choice.word("unit") {
        "mma" => by_matrix_units(problem, choice),
        _ if choice.word("staging") == "shared" => by_threads_from_shared(problem, choice),
        _ => by_threads(problem, choice),
    },
    footprint,
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

/// The values of a parameter of the form by threads.
fn with_fma(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if choice.word("unit") == "fma" { values.into_iter().map(Into::into).collect() } else { Vec::new() }
}

/// The values of a parameter of the forms that stage rows in shared memory.
fn with_stages(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    let staged = choice.word("unit") == "mma" || choice.word("staging") == "shared";
    if staged { values.into_iter().map(Into::into).collect() } else { Vec::new() }
}

/// The values of a parameter of the form by matrix units.
fn with_mma(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if choice.word("unit") == "mma" { values.into_iter().map(Into::into).collect() } else { Vec::new() }
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "unit",
        about: "what multiplies: fma (threads) or mma (matrix units)",
        values: |_, problem, target| {
            let doubles = [DType::F64, DType::C128].map(Precision::Of);
            let mma = doubles.contains(&problem.precision) && target.has(Capability::MmaF64);
            // Below this width the threads have fewer products than loads to do.
            let bytes = problem.shape.m.min(problem.shape.n) * problem.dtype().bytes();
            let wide = bytes >= 96;
            match (mma, wide) {
                (true, true) => vec!["mma".into(), "fma".into()],
                (true, false) => vec!["fma".into(), "mma".into()],
                (false, _) => vec!["fma".into()],
            }
        },
    },
    Parameter {
        name: "staging",
        about: "where threads read rows from: their own registers, or shared memory",
        values: |c, problem, target| {
            let (m, n) = (problem.shape.m, problem.shape.n);
            // Where few threads read an element, sharing it gains nothing.
            let order = if m.min(n) * problem.dtype().bytes() < 128 {
                ["registers", "shared"]
            } else {
                ["shared", "registers"]
            };
            with_fma(c, order.into_iter().filter(|s| *s == "registers" || target.has(Capability::CpAsync)))
        },
    },
    Parameter { name: "block", about: "threads of a block", values: |c, _, _| with_fma(c, [256, 128]) },
    Parameter {
        name: "tm",
        about: "rows of C of a thread",
        values: |c, problem, _| with_fma(c, tiles(problem.shape.m)),
    },
    Parameter {
        name: "tn",
        about: "columns of C of a thread",
        values: |c, problem, _| with_fma(c, tiles(problem.shape.n)),
    },
    Parameter {
        name: "transposed",
        about: "whether a thread's elements of C are as far apart as possible, so that neighbours read side by side",
        values: |c, _, _| with_fma(c, [true, false]),
    },
    Parameter {
        name: "leapfrog",
        about: "whether the next row is loaded into registers before this one is multiplied",
        values: |c, _, _| {
            let flags = with_fma(c, [false, true]);
            if c.word("staging") == "registers" { flags } else { Vec::new() }
        },
    },
    Parameter {
        name: "instruction",
        about: "extents of the matrix instruction",
        values: |c, problem, target| with_mma(c, staging::instructions(problem.dtype(), target)),
    },
    Parameter {
        name: "wm",
        about: "warps that share out the rows of C",
        values: |c, _, _| with_mma(c, [1, 2, 4]),
    },
    Parameter {
        name: "wn",
        about: "warps that share out the columns of C",
        values: |c, _, _| with_mma(c, [1, 2, 4]),
    },
    Parameter {
        name: "wk",
        about: "sets of warps that share out the rows of a group",
        values: |c, _, _| with_mma(c, [4, 8, 2, 1]),
    },
    Parameter {
        name: "depth",
        about: "rows of A and B in a group",
        values: |c, _, _| with_stages(c, [32, 64, 16, 128]),
    },
    Parameter {
        name: "stages",
        about: "groups of rows in shared memory at a time",
        values: |c, _, _| with_stages(c, [4, 3, 6, 2]),
    },
    Parameter {
        name: "parts",
        about: "blocks, of which each adds up its own part of the sum",
        values: |choice, problem, target| {
            let all = i64::from(target.sm_count.value);
            let waves = if choice.get("stages").is_some() { [1, 2, 3, 4] } else { [4, 2, 8, 1] };
            let least = choice.int("depth").max(LEAST_ROWS);
            let mut parts: Vec<i64> =
                waves.iter().map(|n| n * all).filter(|p| p * least <= problem.shape.k).collect();
            if parts.is_empty() {
                parts.push((problem.shape.k / least).clamp(1, all));
            }
            parts.into_iter().map(Value::from).collect()
        },
    },
];

/// A block with fewer rows to add up than this is not worth its start.
const LEAST_ROWS: i64 = 32;

/// Extents of the tiles of a thread along an axis of C: those that leave less than a tile over, the largest up to 8
/// that divides the axis first.
fn tiles(extent: i64) -> Vec<i64> {
    let useful = |t: &i64| extent % t == 0 || 2 * t <= extent + 1;
    let mut tiles: Vec<i64> = (1..=extent.min(16)).rev().filter(useful).collect();
    tiles.sort_by_key(|t| (extent % t != 0 || *t > 8, (t - 8).abs()));
    tiles
}

const CONSTRAINTS: &[Constraint] = &[
    Constraint {
        about: "a block has too few threads to cover C once",
        on: &["block", "tm", "tn"],
        holds: |c, p, _| Threads::of(p, c).covering() <= c.int("block"),
    },
    Constraint {
        about: "a thread's elements of C and of the operands do not fit in 255 registers",
        on: &["tm", "tn", "transposed"],
        holds: |c, p, _| {
            let (tm, tn) = (c.int("tm"), c.int("tn"));
            let rows = if c.flag("leapfrog") { 2 } else { 1 };
            (tm * tn + rows * (tm + tn)) * p.result_dtype().bytes() / 4 <= 224
        },
    },
    Constraint {
        about: "the slices of a block do not fit in shared memory",
        on: &["staging", "block", "tm", "tn"],
        holds: |c, p, t| {
            let slices = Threads::of(p, c).slices;
            slices == 1
                || c.word("staging") == "shared"
                || slices * p.shape.m * p.shape.n * p.result_dtype().bytes()
                    <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
    Constraint {
        about: "warps would have no part of C",
        on: &["instruction", "wm", "wn"],
        holds: |c, p, _| {
            let w = Warps::of(p, c);
            (c.int("wm") - 1) * w.rows < p.shape.m && (c.int("wn") - 1) * w.columns < p.shape.n
        },
    },
    Constraint {
        about: "a block has 2 to 16 warps",
        on: &["wm", "wn", "wk"],
        holds: |c, _, _| (2..=16).contains(&(c.int("wm") * c.int("wn") * c.int("wk"))),
    },
    Constraint {
        about: "a lane's elements of C and of the operands do not fit in 255 registers",
        on: &["instruction", "wm", "wn"],
        holds: |c, p, _| {
            let w = Warps::of(p, c);
            (w.rows * w.columns + (w.rows + w.columns) * w.terms) / 32 * p.dtype().bytes() / 4 <= 208
        },
    },
    Constraint {
        about: "a set of warps has a whole number of instructions in a group of rows",
        on: &["instruction", "wk", "depth"],
        holds: |c, p, _| c.int("depth") % (c.int("wk") * Warps::of(p, c).terms) == 0,
    },
    Constraint {
        about: "the groups of rows do not fit in shared memory",
        on: &["depth", "stages"],
        holds: |c, p, t| {
            c.int("depth") * c.int("stages") * row_bytes(p, c) <= i64::from(t.limits.shared_per_block_opt_in)
        },
    },
];

/// How the threads of a block stand over C and over rows.
struct Threads {
    /// Threads along the rows of C.
    mt: i64,
    /// Threads along the columns of C.
    nt: i64,
    /// Groups of threads that each cover C.
    slices: i64,
}

impl Threads {
    fn of(problem: &Problem, choice: &Choice) -> Threads {
        let mt = ceil(problem.shape.m, choice.int("tm"));
        let nt = ceil(problem.shape.n, choice.int("tn"));
        Threads { mt, nt, slices: (choice.int("block") / (mt * nt).max(1)).max(1) }
    }

    /// Threads that cover C once.
    fn covering(&self) -> i64 {
        self.mt * self.nt
    }
}

fn ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b.max(1)
}

/// How the rows or columns of C are shared out among threads: the loops over them, those bound to virtual threads, and
/// the steps that make them from the loop `axis`. A thread's elements lie in pieces of `piece`, and the pieces side by
/// side, or as far apart as possible.
fn shared_out(axis: &str, tile: i64, threads: i64, piece: i64, transposed: bool) -> String {
    if transposed {
        format!(
            "split(slice.{axis}, {}) -> v{axis}, {axis}\nsplit(slice.{axis}, {piece}) -> {axis}t, {axis}\n",
            threads * piece
        )
    } else {
        format!("split(slice.{axis}, {tile}) -> {axis}t, {axis}\n")
    }
}

/// Elements of a row of this many columns that a thread with `tile` of them reads at once: 16 bytes, if rows are made
/// of whole tiles.
fn piece(problem: &Problem, columns: i64, tile: i64) -> i64 {
    let most = 16 / problem.dtype().bytes();
    if columns % tile == 0 && tile % most == 0 { most } else { 1 }
}

fn by_threads_from_shared(problem: &Problem, choice: &Choice) -> String {
    let Threads { mt, nt, .. } = Threads::of(problem, choice);
    let slices = slices_of_a_group(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let (depth, stages) = (choice.int("depth"), choice.int("stages"));
    let transposed = choice.flag("transposed");
    let mut reads = String::new();
    for (tile, fragment, columns, of_a_thread) in
        [("As", "a", problem.shape.m, tm), ("Bs", "b", problem.shape.n, tn)]
    {
        reads += &format!("cache_read({tile}, mine, reg) -> {fragment}\ncompute_at({fragment}, mine.k)\n");
        let at_once = piece(problem, columns, of_a_thread);
        reads += &if at_once > 1 {
            format!("split({fragment}.c, {at_once}) -> c, v\nvectorize({fragment}.v)\nunroll({fragment}.c)\n")
        } else {
            format!("unroll({fragment}.c)\n")
        };
    }
    let order = if transposed {
        "reorder(slice.g, slice.vi, slice.vj, slice.s, slice.it, slice.jt, slice.i, slice.j)
bind(slice.vi, vthread)
bind(slice.vj, vthread)
"
    } else {
        "reorder(slice.g, slice.s, slice.it, slice.jt, slice.i, slice.j)\n"
    };
    let (specialize, staging) = staging(problem, staged_columns(problem, choice), slices * mt * nt);
    format!(
        "{specialize}split(acc.k, {depth}) -> ko, k
split_reduce(acc.ko, {parts}, order=cyclic) -> part, g
split(part.k, {rows}) -> s, k
rfactor(part.s) -> slice
cache_write(slice, reg) -> mine
{rows_of_c}{columns_of_c}{order}bind(slice.g, block.x)
bind(slice.s, slice.it, slice.jt, threads)
compute_at(mine, slice.jt)
reorder(mine.ko, mine.k, mine.i, mine.j)
{staging}{reads}pipeline(mine.ko, {stages}, via=cp_async)
unroll(mine.k, mine.i, mine.j, slice.i, slice.j)
{second_pass}{SETS_AS_THEY_ARE_READ}",
        second_pass = second_pass(problem, choice),
        rows = depth / slices,
        rows_of_c = shared_out("i", tm, mt, piece(problem, problem.shape.m, tm), transposed),
        columns_of_c = shared_out("j", tn, nt, piece(problem, problem.shape.n, tn), transposed),
    )
}

/// Slices among which the rows of a group are shared out: the most that there are threads for and that divide it.
fn slices_of_a_group(problem: &Problem, choice: &Choice) -> i64 {
    let most = Threads::of(problem, choice).slices;
    (1..=most).rev().find(|s| choice.int("depth") % s == 0).unwrap_or(1)
}

/// The launch that adds up the parts: a block for each row of C, in which several threads share out the parts of an
/// element and one adds up what they have, always in the same order.
fn second_pass(problem: &Problem, choice: &Choice) -> String {
    let most = (SECOND_PASS_THREADS / problem.shape.n).min(choice.int("parts")).min(32);
    let shares = (0..=5).map(|e| 1 << e).rfind(|shares| *shares <= most).unwrap_or(1);
    format!(
        "split_reduce(acc.g, {shares}, combine=shared, order=cyclic) -> sub, t
cache_write(sub, reg) -> sum
bind(C.i, block.x)
bind(C.j, threads)
set_scope(acc, reg)
compute_at(acc, C.j)
compute_at(sub, C.i)
reorder(sub.t, sub.i, sub.j)
bind(sub.t, sub.j, threads)
compute_at(sum, sub.j)
unroll(acc.t)
"
    )
}

/// Threads of a block that adds up parts, at most.
const SECOND_PASS_THREADS: i64 = 512;

/// The steps that make the sets of a part, which the first launch leaves behind, one sum as they are read.
const SETS_AS_THEY_ARE_READ: &str = "set_scope(part, reg)
compute_at(part, sum.g)
unroll(part.s)
";

fn by_threads(problem: &Problem, choice: &Choice) -> String {
    let Threads { mt, nt, slices } = Threads::of(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let threads = slices * mt * nt;
    let (split, order) = if choice.flag("transposed") {
        (
            format!("split(slice.i, {mt}) -> i, it\nsplit(slice.j, {nt}) -> j, jt\n"),
            "reorder(slice.i, slice.j, slice.s, slice.it, slice.jt)
bind(slice.i, vthread)
bind(slice.j, vthread)
",
        )
    } else {
        (
            format!("split(slice.i, {tm}) -> it, i\nsplit(slice.j, {tn}) -> jt, j\n"),
            "reorder(slice.s, slice.it, slice.jt, slice.i, slice.j)\n",
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
{split}{order}bind(slice.s, slice.it, slice.jt, threads)
compute_at(mine, slice.jt)
reorder(mine.ko, mine.i, mine.j)
cache_read(A, mine, reg) -> a
compute_at(a, mine.ko)
cache_read(B, mine, reg) -> b
compute_at(b, mine.ko)
fuse(part.i, part.j) -> e
split(part.e, {threads}) -> u, t
reorder(part.t, part.u)
bind(part.t, threads)
unroll(a.c, b.c, mine.i, mine.j)
{overlap}{second_pass}",
        second_pass = second_pass(problem, choice),
    )
}

/// How the warps of a block stand over C.
struct Warps {
    /// Rows of C of an instruction.
    high: i64,
    /// Terms of an instruction.
    terms: i64,
    /// Rows of C of a warp.
    rows: i64,
    /// Columns of C of a warp.
    columns: i64,
}

impl Warps {
    fn of(problem: &Problem, choice: &Choice) -> Warps {
        let (high, terms) = staging::instruction(choice.word("instruction"));
        let rows = ceil(ceil(problem.shape.m, high), choice.int("wm")) * high;
        let columns = ceil(ceil(problem.shape.n, ACROSS), choice.int("wn")) * ACROSS;
        Warps { high, terms, rows, columns }
    }
}

/// By how many elements a row of `columns` grows: as much as takes the four rows and eight columns that a warp reads for
/// a matrix instruction to different banks. Threads read the same row together, so other types stay as they are.
fn padding(dtype: DType, columns: i64, piece: i64) -> i64 {
    match dtype {
        DType::F64 => staging::padding(columns, piece, |c| matches!(c % 16, 4 | 12) || c % 2 == 1),
        // A quarter of a warp reads two columns of four rows at a time.
        DType::C128 => staging::padding(columns, piece, |c| matches!(c % 8, 2 | 6)),
        _ => staging::padding(columns, piece, |_| true),
    }
}

/// Columns of A and B in shared memory: those of all tiles of C.
fn staged_columns(problem: &Problem, choice: &Choice) -> [i64; 2] {
    if choice.word("unit") == "mma" {
        let Warps { rows, columns, .. } = Warps::of(problem, choice);
        [choice.int("wm") * rows, choice.int("wn") * columns]
    } else {
        let Threads { mt, nt, .. } = Threads::of(problem, choice);
        let (m, n) = (problem.shape.m, problem.shape.n);
        [(m, choice.int("tm"), mt), (n, choice.int("tn"), nt)].map(|(columns, tile, threads)| {
            // Pieces that lie far apart end with the last that is needed, tiles with the last thread's.
            let apart = threads * piece(problem, columns, tile);
            if choice.flag("transposed") { ceil(columns, apart) * apart } else { threads * tile }
        })
    }
}

/// Bytes that a row of A and one of B take in shared memory.
fn row_bytes(problem: &Problem, choice: &Choice) -> i64 {
    let dtype = problem.dtype();
    let of = |width: i64, staged: i64| staged + padding(dtype, staged, copied_at_once(dtype, width, staged));
    let [a, b] = staged_columns(problem, choice);
    (of(problem.shape.m, a) + of(problem.shape.n, b)) * dtype.bytes()
}

/// The step that tells products whose rows start at multiples of 16 bytes from others, and the steps that copy groups
/// of rows of both operands to shared memory with so many threads. There the rows have as many elements as the tiles
/// that read them, in `staged`.
fn staging(problem: &Problem, staged: [i64; 2], threads: i64) -> (String, String) {
    let dtype = problem.dtype();
    let mut aligned = Vec::new();
    let mut steps = String::new();
    for (operand, tile, width, staged, stride) in
        [("A", "As", problem.shape.m, staged[0], "lda"), ("B", "Bs", problem.shape.n, staged[1], "ldb")]
    {
        let piece = copied_at_once(dtype, width, staged);
        if piece > 1 {
            aligned.push(format!("{stride}%{piece}"));
        }
        steps += &staging::copy(operand, "mine", tile, "mine.ko", piece, threads, dtype);
        steps += &staging::pad(tile, padding(dtype, staged, piece));
    }
    let specialize =
        if aligned.is_empty() { String::new() } else { format!("specialize({})\n", aligned.join(", ")) };
    (specialize, steps)
}

fn by_matrix_units(problem: &Problem, choice: &Choice) -> String {
    let Warps { high, terms, rows, columns } = Warps::of(problem, choice);
    let (depth, parts, stages) = (choice.int("depth"), choice.int("parts"), choice.int("stages"));
    let threads = 32 * choice.int("wm") * choice.int("wn") * choice.int("wk");
    let (instruction, dtype) = (choice.word("instruction"), problem.dtype());
    let conjugate =
        if dtype.is_complex() && problem.layout.a == Op::ConjugateTranspose { "_conj" } else { "" };
    let (specialize, staging) = staging(problem, staged_columns(problem, choice), threads);
    format!(
        "{specialize}split(acc.k, {depth}) -> ko, k
split_reduce(acc.ko, {parts}, order=cyclic) -> part, g
split(part.k, {slice}) -> s, k
rfactor(part.s) -> slice
cache_write(slice, reg) -> mine
split(slice.i, {rows}) -> wm, i
split(slice.j, {columns}) -> wn, j
reorder(slice.g, slice.s, slice.wm, slice.wn, slice.i, slice.j)
bind(slice.g, block.x)
bind(slice.s, slice.wm, slice.wn, threads@32)
compute_at(mine, slice.wn)
split(mine.k, {terms}) -> ks, k
reorder(mine.ko, mine.ks, mine.i, mine.j, mine.k)
{staging}cache_read(As, mine, reg) -> a
compute_at(a, mine.ks)
storage_order(a, c, r)
cache_read(Bs, mine, reg) -> b
compute_at(b, mine.ks)
split(mine.i, {high}) -> mi, i
split(mine.j, {ACROSS}) -> ni, j
reorder(mine.ks, mine.mi, mine.ni, mine.i, mine.j, mine.k)
tensorize(mine.i, mma_{instruction}_{dtype}{conjugate})
pipeline(mine.ko, {stages}, via=cp_async)
unroll(mine.ks, mine.mi, mine.ni{tiles})
{second_pass}{SETS_AS_THEY_ARE_READ}",
        second_pass = second_pass(problem, choice),
        slice = depth / choice.int("wk"),
        tiles = [(rows > high, ", a.co, slice.io"), (columns > ACROSS, ", b.co, slice.jo")]
            .map(|(several, loops)| if several { loops } else { "" })
            .concat(),
    )
}

fn footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
    let (m, n, k) = (problem.shape.m as f64, problem.shape.n as f64, problem.shape.k as f64);
    let parts = choice.int("parts");
    let common = Footprint {
        blocks: parts as f64,
        // Every row once; a part of C for each block, written and read.
        dram_bytes: (k * (m + n) + 2.0 * parts as f64 * m * n) * problem.dtype().bytes() as f64,
        launches: 2,
        ..Footprint::default()
    };
    match choice.word("unit") {
        "mma" => matrix_footprint(problem, choice, target, common),
        _ if choice.word("staging") == "shared" => shared_footprint(problem, choice, common),
        _ => thread_footprint(problem, choice, common),
    }
}

fn thread_footprint(problem: &Problem, choice: &Choice, common: Footprint) -> Footprint {
    let Threads { mt, nt, slices } = Threads::of(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let (k, bytes) = (problem.shape.k as f64, problem.dtype().bytes());
    let covering = (mt * nt) as f64;
    // A warp stands on so many rows, and in each on so many tiles along M and along N.
    let rows = (32.0 / covering).max(1.0);
    let along_n = (nt as f64).min(32.0);
    let along_m = (32.0 / nt as f64).clamp(1.0, mt as f64);
    // Threads that read side by side share sectors; those that read a tile apart do not.
    let passes = |neighbours: f64, tile: i64| {
        let apart = if choice.flag("transposed") { bytes } else { (tile * bytes).min(bytes.max(32)) };
        (rows * (neighbours * apart as f64 / 128.0).max(0.25)).max(1.0)
    };
    let warps = k * covering / 32.0;
    let loads = tm + tn;
    let ahead = if choice.flag("leapfrog") { 2 } else { 1 };
    Footprint {
        threads: slices * mt * nt,
        registers: (tm * tn + ahead * loads) * bytes / 4 + 16,
        shared_bytes: if slices > 1 { slices * problem.shape.m * problem.shape.n * bytes } else { 0 },
        multiply_adds: warps * 32.0 * (tm * tn) as f64 * if problem.dtype().is_complex() { 4.0 } else { 1.0 },
        wavefronts: warps * (tm as f64 * passes(along_m, tm) + tn as f64 * passes(along_n, tn)),
        instructions: warps * (2 * loads + 8) as f64,
        steps: k / (parts * slices) as f64 + 4.0,
        overlaps: choice.flag("leapfrog"),
        ..common
    }
}

fn shared_footprint(problem: &Problem, choice: &Choice, common: Footprint) -> Footprint {
    let Threads { mt, nt, .. } = Threads::of(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let (depth, stages) = (choice.int("depth"), choice.int("stages"));
    let (m, n, k) = (problem.shape.m, problem.shape.n, problem.shape.k as f64);
    let bytes = problem.dtype().bytes();
    let warps = k * (mt * nt) as f64 / 32.0;
    // Loads of a thread from shared memory for a row; a warp takes a wavefront for each 4 bytes of a thread at most.
    let loads = tm / piece(problem, m, tm) + tn / piece(problem, n, tn);
    let copies = k * ((m + n) * bytes) as f64 / 16.0 / 32.0;
    Footprint {
        threads: slices_of_a_group(problem, choice) * mt * nt,
        registers: (tm * tn + 2 * (tm + tn)) * bytes / 4 + 28,
        shared_bytes: depth * stages * row_bytes(problem, choice),
        multiply_adds: warps * 32.0 * (tm * tn) as f64 * if problem.dtype().is_complex() { 4.0 } else { 1.0 },
        wavefronts: warps * ((tm + tn) * bytes) as f64 / 16.0 + k * ((m + n) * bytes) as f64 / 128.0,
        instructions: warps * loads as f64 + 2.0 * copies,
        steps: k / (parts * depth * (stages - 1).max(1)) as f64 + 2.0,
        overlaps: true,
        ..common
    }
}

fn matrix_footprint(problem: &Problem, choice: &Choice, target: &Target, common: Footprint) -> Footprint {
    let Warps { high, terms, rows, columns } = Warps::of(problem, choice);
    let (depth, parts, stages) = (choice.int("depth"), choice.int("parts"), choice.int("stages"));
    let (m, n, k) = (problem.shape.m, problem.shape.n, problem.shape.k as f64);
    let over_c = choice.int("wm") * choice.int("wn");
    // Steps of all warps, an instruction deep.
    let steps = k / terms as f64 * over_c as f64;
    let fragments = (rows + columns) * terms / 32;
    let bytes = problem.dtype().bytes();
    let pieces =
        [m, n].map(|width| width as f64 / if width % 2 == 0 { 2.0 } else { 1.0 }).iter().sum::<f64>();
    let small = target.has(Capability::MmaF64Wide) && choice.word("instruction") == "m8n8k4";
    Footprint {
        threads: 32 * over_c * choice.int("wk"),
        registers: (rows * columns / 32 + 2 * fragments) * bytes / 4 + 12,
        shared_bytes: depth * stages * row_bytes(problem, choice),
        // Where there are larger instructions, this one reaches 30 of 56 TFLOP/s (one H200, 2026-11-21).
        multiply_adds: steps
            * (rows * columns * terms) as f64
            * if small { 1.9 } else { 1.0 }
            * if problem.dtype().is_complex() { 4.0 } else { 1.0 },
        matrix_units: true,
        wavefronts: steps * (fragments * bytes) as f64 / 4.0 + k * ((m + n) * bytes) as f64 / 128.0,
        instructions: steps * (fragments + rows / high * columns / ACROSS + 4) as f64
            + k * pieces / 32.0 * 2.0,
        steps: k / (parts * depth * (stages - 1).max(1)) as f64 + 2.0,
        overlaps: true,
        ..common
    }
}
