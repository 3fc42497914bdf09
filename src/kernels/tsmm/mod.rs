//! The family `tsmm`: a tall skinny matrix times a small one. C = alpha A B + beta C with A: M x K and B: K x N, M long and N, K short. Its forms:
//!
//! - `unit=fma staging=registers`: the mappings of Ernst, Hager, Thies and Wellein (IJHPCA 35(1), 2021). `threads` threads share out the
//!   columns of a row of the result, and take `unroll` rows at a time, element by element or in pieces of 16 bytes (`vector`).
//! - `unit=fma staging=shared`: a block takes every so many groups of `rows` rows. They are copied to shared memory,
//!   `stages` ahead, where the small matrix stays; a thread multiplies `tm` rows by `tn` columns; and the result leaves
//!   through shared memory, so that device memory sees whole lines.
//! - `unit=mma`: the same, but `wm` x `wn` warps multiply by matrix instructions; f32 and complex64 numbers are split into tf32
//!   parts (`numbers=split`), for short sums only where somebody asks for it or permits it, as in the family `tsmttsm`, unless threads add
//!   up what matrix units make of some of the terms (`chain` instructions), which has a smaller bound of its error. With
//!   `split_once=true` the small matrix is stored as such parts (`store_split`).
//!
//! Matrix units multiply complex numbers in one of three ways. With `numbers=whole` each product of two tiles is four of
//! their real and imaginary parts. With `numbers=parts` the product is the real one that says the same: rows of A as the
//! 2 K real numbers that they are in memory, times the real matrix of 2 K rows and 2 N columns in which each number
//! u + iv of B stands as the rows (u, v) and (-v, u). Its columns are the real and imaginary parts of C, side by side in the
//! registers of one lane. The products are those of the definition, and so is the bound on the error, but whole
//! instructions leave less over: 57 columns are 114 in tiles of 8 and 114 terms in steps of 4, 1.10 times fewer
//! multiply-adds than 60 terms by 64 columns of complex numbers. B is staged as it is; what a lane reads of it gets its
//! sign, which is the lane's own, in registers (`precompute`). With `numbers=expanded` the real matrix is what is stored in shared
//! memory, twice as large: nobody gives its elements signs again, and a warp reads half as many bytes of it. With `numbers=three` products are made of three real ones, as
//! in the family `tsmttsm`: only where somebody asks for it or permits it.
//!
//! In complex64, where numbers have to be split (`numbers=split`), the same is `numbers=split-parts`. There, with `split_once=true`, the real
//! matrix is what is stored in shared memory.
//!
//! Where rows are staged, they belong to a block, whose warps wait for copies together, or, with `team=part`, each of
//! its `wm` parts of `wn` warps takes groups of its own, copies them itself and waits for no other: while one of them
//! waits or stores, the others multiply.
//!
//! A thread has its columns in pieces of up to 16 bytes, which it reads at once, or (`piece` as large as `tn`) as one piece of
//! another width: 13 columns each for four threads leave 3 of 52 over, where pieces of four leave 11 of 60. The small matrix
//! then leaves room between pieces in shared memory, so that each begins with 16 bytes.
//!
//! Dense rows of A and C move as one piece of memory (`copy=one`) or row by row, as in the family `tsmttsm`. One bulk copy may bring a group of rows of
//! A (`copy=bulk`), which each warp gives back when it has multiplied them: to the warp that asks for the next (`release=warps`), or to one that does
//! nothing else (`release=role`).
//!
//! Rows that are one piece of memory cannot be longer than they are, so that lanes meet in banks of shared memory. Then the instructions of a
//! warp may take every so many terms (`terms_apart`) and make every so many columns (`columns_apart`), see `banks.rs`. Lanes
//! store two real results at once there, and may store two complex ones (`pairs`; see `pairs.rs`).
//!
//! Where the small matrix is square (K = N), rows of A and of C are as long, and results may lie where the rows lay that they were made of
//! (`in_place`, by `storage_share`): room for more rows on their way, or for more blocks or parts of them, of which some compute while others wait.
//!
//! Results that lie there may leave by one bulk copy for each group (`store=bulk`, by `bulk_store`), which one thread asks for. Where rows come by
//! bulk copies too, the parts of a block use one ring of groups in turn (`team=part copy=bulk`, by `pipeline` across the loop over parts): it has as many
//! groups as fit, not a number for each part, and a part asks for the next group in the place of its last one, waits for the one whose
//! turn it is, multiplies it, and sends it away; nobody meets anybody.
//!
//! Blocks stay on their multiprocessors and take every so many groups of rows, or each takes a few neighbouring ones (`groups`) and makes room for
//! the next (`passing`): it has to bring the small matrix anew, but all that are on the GPU at a time read and write neighbouring rows,
//! which device memory does faster (`bench/limits/walks.cu`). Where rows of C stand apart, such a block may ask for the sectors at their ends too, while
//! rows of A come (`fetch`, by `fetch_ends`): what is stored to a part of a sector has to be put together with the rest of it. Rows of A that
//! stand apart by little, or start anywhere, may come with what lies between them by one bulk copy for each group (`copy=span`; see `spans.rs`); of those that
//! stand farther apart device memory may give 32 bytes at a time (`granularity`; see `granularity.rs`), and the first-level cache may keep them (`caching`; see
//! `caching.rs`). Dense rows of C that start anywhere may be stored by whole pieces of 16 bytes (`stored`; see
//! `starts.rs`). Short products may begin while the call before them ends (`early`; see `early.rs`).
//!
//! Where rows are staged, a large small matrix may be divided into `bands` of columns, each for blocks of its own, which read the same rows of A; and
//! long rows of A may be copied in pieces of `depth` terms, one after the other, so that groups of more rows fit in shared memory. The first piece of a
//! group is on its way while the last of the group before is multiplied.

mod banks;
mod bulk;
mod caching;
mod constraints;
mod footprint;
mod mapping;
mod pairs;
mod passes;
mod schedule;
mod spans;
mod starts;

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::target::Capability;

use self::bulk::IN_BULK;
use self::mapping::{
    IN_PLACE, PASSING, band, bands, in_parts, instructions_across, moved_a, moved_c, staged, wider,
};
use super::early::{self, ASKED, ASKS, EARLY, LETS};
use super::family::{Choice, Family, Parameter, Value};
use super::gemm::Fixed;
use super::granularity::{self, GRANULARITY};
use super::staging::{self, By, Moved, ceil};
use crate::problem::{Op, Problem, alignment};

/// The family.
pub const FAMILY: Family = Family {
    name: "tsmm",
    about: "tall skinny matrix times small matrix",
    fixed,
    flat: |problem, choice| {
        let dense = |moved: Moved| is_staged(choice) && moved != Moved::Strided;
        let of_c = starts::by_pieces(choice) || dense(moved_c(problem, choice));
        [dense(moved_a(problem, choice)), false, of_c]
    },
    strides: spans::strides,
    before_c: starts::before_c,
    numbers: mapping::numbers,
    classes: |_, _| None,
    suits: |problem| {
        let short = problem.shape.k.max(problem.shape.n);
        fixed(problem).is_ok() && problem.shape.m >= 8 * short
    },
    parameters: PARAMETERS,
    unmodelled: &[starts::STORED.name, EARLY.name, LETS.name, ASKS.name, ASKED.name],
    constraints: constraints::CONSTRAINTS,
    any_order: |_| false,
    context: granularity::needs_context,
    // A thread adds up the terms of an element one after the other.
    reproducible: |_| Choice::default().with("unit", "fma").with("staging", "registers"),
    schedule: |problem, choice| {
        let schedule = if is_staged(choice) { schedule::from_shared } else { schedule::by_threads };
        granularity::scheduled(early::scheduled(schedule(problem, choice), choice), choice)
    },
    footprint: footprint::footprint,
};

/// The most columns of a thread that are worth trying.
const MOST_COLUMNS: i64 = 20;

/// Bytes of a band of the small matrix from which on smaller ones are worth trying.
const LARGE_BAND: i64 = 16 << 10;

/// Bytes of a row of A from which on it is worth trying to copy it in pieces.
const LONG_ROW: i64 = 192;

/// Whether rows are staged in shared memory.
fn is_staged(choice: &Choice) -> bool {
    choice.word("unit") == "mma" || choice.word("staging") == "shared"
}

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
    Ok(Fixed { n: Some(shape.n), k: Some(shape.k), alpha1: true, ..Fixed::default() })
}

/// The values of a parameter of the form that reads rows into registers.
fn in_registers(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if is_staged(choice) { Vec::new() } else { values.into_iter().map(Into::into).collect() }
}

/// The values of a parameter of the forms that stage rows in shared memory.
fn with_stages(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if is_staged(choice) { values.into_iter().map(Into::into).collect() } else { Vec::new() }
}

/// The values of a parameter of the form by matrix units, which stages rows too.
fn with_mma(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if choice.word("unit") == "mma" { with_stages(choice, values) } else { Vec::new() }
}

/// Values of which one is to be chosen: none where there is only one, so that the parameter has no meaning.
fn several(values: Vec<i64>) -> Vec<i64> {
    if values.len() > 1 { values } else { Vec::new() }
}

/// The values of a parameter of the form by threads that stages rows.
fn with_tiles(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if choice.word("unit") == "fma" { with_stages(choice, values) } else { Vec::new() }
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "unit",
        about: "what multiplies: fma (threads) or mma (matrix units)",
        values: |_, problem, target| {
            staging::units(problem, target, problem.shape.k.min(problem.shape.n), problem.shape.k == 1)
        },
    },
    GRANULARITY,
    Parameter {
        name: "staging",
        about: "where threads read rows from: their own registers, or shared memory",
        values: |c, problem, target| {
            let wide = problem.shape.k.min(problem.shape.n) * problem.dtype().bytes() >= 64;
            let order = if wide { ["shared", "registers"] } else { ["registers", "shared"] };
            let order = order.into_iter().filter(|s| *s == "registers" || target.has(Capability::CpAsync));
            if c.word("unit") == "fma" { order.map(Into::into).collect() } else { Vec::new() }
        },
    },
    Parameter {
        name: "block",
        about: "threads of a block",
        values: |c, _, _| in_registers(c, [256, 128, 512, 1024]),
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
            in_registers(choice, counts)
        },
    },
    Parameter { name: "unroll", about: "rows of a thread", values: |c, _, _| in_registers(c, [2, 1, 3, 4]) },
    Parameter {
        name: "c_source",
        about: "where the small matrix is read from",
        values: |c, _, _| in_registers(c, ["shared", "l1", "registers"]),
    },
    Parameter {
        name: "vector",
        about: "elements of a row of A that a thread reads at a time, and of C that it writes",
        values: |c, problem, _| {
            let most = 16 / problem.dtype().bytes();
            let may = problem.shape.k % most == 0 && problem.alignment_of_rows().a == 16;
            if most > 1 && may { in_registers(c, [1, most]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "team",
        about: "who copies rows and waits for them together: a block, or each of its parts for itself",
        values: |c, _, _| with_stages(c, ["block", "part"]),
    },
    Parameter {
        name: "numbers",
        about: "how matrix units take numbers: complex ones whole, as real and imaginary parts in the product of real matrices that says the same (parts), of which the small one is stored as such (expanded) or made where it is read, or by three real products; those of f32 split into tf32 parts, and complex ones of them whole (split) or as real and imaginary parts (split-parts)",
        values: |c, problem, _| match problem.dtype() {
            DType::F32 => with_mma(c, ["split"]),
            DType::C64 => with_mma(c, ["split", "split-parts"]),
            DType::C128 => with_mma(c, ["whole", "parts", "expanded", "three"]),
            _ => Vec::new(),
        },
    },
    Parameter {
        name: staging::SPLIT_ONCE,
        about: "whether numbers of the small matrix are split once, and stored in shared memory as parts, or by each warp that reads them",
        values: |c, _, _| {
            if staging::splits(c) { with_mma(c, [false, true]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "instruction",
        about: "extents of the matrix instruction",
        values: |c, problem, target| {
            let (dtype, _) = staged(problem, c);
            // Where there are larger ones, 8 rows of doubles take as long as 16, and a group has rows in plenty.
            let small = target.has(Capability::MmaF64Wide) && !dtype.is_complex();
            let all = staging::instructions(dtype, target).into_iter();
            with_mma(c, all.filter(|i| !small || *i != "m8n8k4"))
        },
    },
    Parameter {
        name: "bands",
        about: "bands of columns of the small matrix and of C, each for blocks of its own",
        values: |c, problem, _| {
            let most = problem.shape.k * problem.shape.n * problem.dtype().bytes() / LARGE_BAND;
            if most > 1 { with_stages(c, [1, 2, 4].into_iter().filter(|b| *b <= most)) } else { Vec::new() }
        },
    },
    Parameter {
        name: "rows",
        about: "rows of A that a block takes at a time",
        values: |c, problem, target| match (c.word("unit"), in_parts(c)) {
            // The tiles of the parts say how many.
            ("fma", true) => Vec::new(),
            (_, in_parts) => {
                let usual: &[i64] =
                    if in_parts { &[64, 128, 32, 192, 256, 96] } else { &[64, 128, 32, 256, 16] };
                let even = mapping::even_groups(problem.shape.m, target.sm_count.value);
                // Of those that a bulk copy brings several have to fit beside a small matrix of complex doubles.
                let thirds: &[i64] = if mapping::may_be_of_three(problem, c) { &[48, 96] } else { &[] };
                let usual: Vec<i64> = usual.iter().chain(thirds).copied().collect();
                let even = even.into_iter().filter(|rows| !usual.contains(rows)).collect::<Vec<_>>();
                with_stages(c, usual.into_iter().chain(even))
            }
        },
    },
    Parameter {
        name: "depth",
        about: "terms of these rows that are copied at a time: all, or some",
        values: |c, problem, _| {
            let (k, bytes) = (problem.shape.k, problem.dtype().bytes());
            // Pieces of 128 or 256 bytes; halves of rows that are too short for them.
            let pieces = [128, 256].map(|at_once| at_once / bytes).into_iter().filter(|depth| 2 * depth <= k);
            let half = (k % 2 == 0 && k / 2 * bytes % 16 == 0 && k * bytes < 256).then_some(k / 2);
            // And two whose last one is nearly full, where those before would end with many zeros.
            let whole = if c.word("unit") == "mma" {
                staging::instruction(c.word("instruction")).1 / wider(problem, c)
            } else {
                16 / bytes
            };
            let zeros = |depth: i64| ceil(k, depth) * depth - k;
            let most = pieces.clone().map(zeros).min().unwrap_or(k);
            let even = (2..=8).map(|pieces| ceil(ceil(k, pieces), whole) * whole);
            let mut even: Vec<i64> =
                even.filter(|d| (64..=256).contains(&(d * bytes)) && zeros(*d) < most).collect();
            even.sort_by_key(|depth| zeros(*depth));
            even.dedup();
            even.truncate(2);
            let pieces = pieces.chain(half).chain(even).filter(|_| k * bytes >= LONG_ROW);
            let depths: Vec<i64> = std::iter::once(k).chain(pieces).collect();
            with_stages(c, several(depths))
        },
    },
    Parameter {
        name: staging::CHAIN,
        about: "instructions on split numbers, one after another, that add up their terms before threads add them to the sum: where all would make the bound of the error larger, as many as do not",
        values: |c, problem, _| with_mma(c, several(mapping::chains(problem, c))),
    },
    Parameter {
        name: mapping::REST,
        about: "who adds up one or two terms that are left over beside whole matrix instructions: one more instruction, most of which is zeros (units), or threads",
        values: |c, problem, _| {
            let apart = c.word("unit") == "mma" && mapping::may_leave_rest(problem, c);
            if apart { with_mma(c, ["units", "threads"]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "wm",
        about: "warps, or parts of a block, that share out these rows",
        values: |c, _, _| {
            // Five of them share out 80 rows.
            let five = (c.word("unit") == "mma" && c.int("rows") % 80 == 0).then_some(5);
            let thirds = if c.int("rows") % 48 == 0 { &[3, 6][..] } else { &[] };
            if in_parts(c) {
                with_stages(c, [4, 8, 12, 2, 16, 10, 6].into_iter().chain(five))
            } else {
                with_mma(c, [4, 2, 8, 1].into_iter().chain(five).chain(thirds.iter().copied()))
            }
        },
    },
    Parameter {
        name: "wn",
        about: "warps that share out the columns of C, or stand together in a part",
        values: |c, problem, _| {
            let shares = staging::shares(instructions_across(problem, c));
            match (c.word("unit"), in_parts(c)) {
                ("fma", true) => with_stages(c, [1, 2, 4, 3]),
                (_, true) => with_stages(c, shares.into_iter().filter(|w| *w <= 4)),
                _ => with_mma(c, shares),
            }
        },
    },
    Parameter {
        name: "tm",
        about: "rows of a thread",
        values: |c, _, _| with_tiles(c, [8, 4, 2, 1, 16, 12, 6, 10]),
    },
    Parameter {
        name: "piece",
        about: "neighbouring columns of a thread: 16 bytes or a part of them, or all that it has where these are other widths that share out a row evenly",
        values: |c, problem, _| {
            let most = 16 / problem.dtype().bytes();
            let whole = problem.shape.n >= most && most > 1;
            let halves = (most > 2).then_some(most / 2);
            let tiles = mapping::odd_tiles(problem, c);
            let pieces = [most].into_iter().chain(halves).chain([1]).chain(tiles);
            with_tiles(c, if whole { pieces.collect() } else { vec![1] })
        },
    },
    Parameter {
        name: "tn",
        about: "columns of a thread",
        values: |c, problem, _| {
            let piece = c.int("piece").max(1);
            let n = band(problem, c);
            // What is no piece of 16 bytes is all that a thread has.
            let most = if piece * problem.dtype().bytes() > 16 { piece } else { MOST_COLUMNS };
            let widest = (n + piece - 1) / piece * piece;
            let mut counts: Vec<i64> =
                (1..=MOST_COLUMNS).map(|n| n * piece).filter(|n| *n <= widest.min(most)).collect();
            // Tiles that leave little over, of eight columns or so.
            let waste = move |t: i64| (n + t - 1) / t * t - n;
            counts.retain(|t| 4 * waste(*t) <= n);
            counts.sort_by_key(|t| (waste(*t) > 0, (t - 8).abs()));
            if counts.is_empty() {
                counts.push(piece);
            }
            with_tiles(c, counts)
        },
    },
    Parameter {
        name: staging::INTERLEAVED,
        about: staging::ABOUT_INTERLEAVED,
        values: |c, problem, _| {
            let wide = c.int("tn") > 0 && mapping::may_interleave(problem, c);
            if wide { with_tiles(c, [false, true]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "steps",
        about: "reads of terms of A, 16 bytes of a row each, that are unrolled",
        values: |c, problem, _| {
            let depth = if c.int("depth") > 0 { c.int("depth") } else { problem.shape.k };
            let reads = depth / mapping::terms_at_once(problem, c);
            // Those that leave none over come first.
            let mut steps: Vec<i64> = [4, 2, 1].into_iter().filter(|s| 2 * s <= reads || *s == 1).collect();
            steps.sort_by_key(|s| *s > 1 && reads % s != 0);
            with_tiles(c, steps)
        },
    },
    Parameter {
        name: "store",
        about: "how the result leaves: straight from registers, through shared memory in whole lines, or from there by a bulk copy for each group",
        values: |c, problem, target| {
            // What threads or lanes hold side by side fills whole sectors where rows consist of pieces of 16 bytes.
            let aligned =
                problem.alignment_of_rows().c.min(alignment(problem.shape.n * problem.dtype().bytes())) == 16;
            let pieces = c.word("unit") == "mma" || c.int("piece") * problem.dtype().bytes() == 16;
            // What lanes of a matrix instruction add to is a small part of each line that the first-level cache has to have room
            // for: 1 000 000 x 40 x 40 in f64 with beta = 1 takes 388 us straight from registers, 224 through shared memory
            // (an H200, 2026-11-27). Numbers of 16 bytes fill more of a line; nobody has measured them.
            let is_small = problem.dtype().bytes() <= 8;
            let adds = problem.beta.norm() != 0.0 && c.word("unit") == "mma" && is_small;
            let mut ways = match (adds, aligned && pieces) {
                (true, _) => vec!["shared"],
                (false, true) => vec!["direct", "shared"],
                (false, false) => vec!["shared", "direct"],
            };
            if is_staged(c) && bulk::may_leave(problem, c, target) {
                ways.push(IN_BULK);
            }
            with_stages(c, ways)
        },
    },
    Parameter {
        name: staging::COPY,
        about: staging::ABOUT_COPY,
        values: |c, problem, target| {
            // Results that go straight from registers to C are not moved by rows.
            let through_shared = mapping::stores_through_shared(c);
            let moved_c = |copy: &str| through_shared.then(|| mapping::moved_c_as(copy, problem, c));
            let ways = || staging::copies(|copy| (mapping::moved_a_as(copy, problem, c), moved_c(copy)));
            let mut ways = match c.word("store") {
                // What leaves in bulk has come as one piece of memory too.
                IN_BULK => vec!["one"],
                _ if is_staged(c) => ways(),
                _ => Vec::new(),
            };
            if bulk::may_bring(problem, c, target) {
                ways.push(staging::BULK);
            }
            if spans::may_arrive_in_spans(problem, c, target) {
                if ways.is_empty() {
                    ways.push(staging::BY_ROWS);
                }
                ways.push(staging::SPAN);
            }
            with_stages(c, ways)
        },
    },
    Parameter {
        name: staging::RELEASE,
        about: staging::ABOUT_RELEASE,
        values: |c, _, _| {
            let ways = [staging::BY_ROLE, staging::BY_WARPS];
            if By::of(c) == By::Bulk && !in_parts(c) { with_mma(c, ways) } else { Vec::new() }
        },
    },
    Parameter {
        name: banks::TERMS_APART,
        about: "how far apart the terms lie that a matrix instruction takes of rows that are one piece of memory: neighbours, or a distance at which fewer lanes meet in a bank of shared memory",
        values: |c, problem, _| with_mma(c, several(banks::terms_worth_trying(problem, c))),
    },
    Parameter {
        name: banks::COLUMNS_APART,
        about: "how far apart the columns lie that it makes: neighbours, or a distance at which fewer lanes meet in a bank when they store them",
        values: |c, problem, _| with_mma(c, several(banks::columns_worth_trying(problem, c))),
    },
    passes::PASSES,
    passes::GROUPS_OF_A_PASS,
    Parameter {
        name: mapping::FETCH,
        about: "whether the sectors that rows of C share with what lies between them are brought to the second-level cache while rows of A come",
        values: |c, problem, _| match mapping::may_fetch(problem, c) {
            true if granularity::shares_sectors(problem) => with_stages(c, [false, true]),
            // Kernels that bring none are as right, and some are wisdom.
            true => with_stages(c, [false]),
            false => Vec::new(),
        },
    },
    Parameter {
        name: mapping::ENDS,
        about: "how they are: by prefetches of the sectors of both ends of a row (sectors), of those alone that are stored in part (parts), or by copies of a word of each of those before rows of A (copies) or behind them (copies-behind)",
        values: |c, _, target| {
            let copies = if target.has(Capability::CpAsync) { mapping::ALL_COPIES } else { &[] };
            let all = [mapping::SECTORS, mapping::PARTS].iter().chain(copies).map(|way| (*way).into());
            if c.flag(mapping::FETCH) { all.collect() } else { Vec::new() }
        },
    },
    Parameter {
        name: IN_PLACE,
        about: "whether results lie in shared memory where the rows lay that they were made of, so that more blocks fit there, or more parts",
        values: |c, problem, _| match mapping::may_be_in_place(problem, c) {
            true if c.word("store") == IN_BULK => with_stages(c, [true]),
            true => with_stages(c, [false, true]),
            false => Vec::new(),
        },
    },
    Parameter {
        name: "stages",
        about: "groups of rows in shared memory at a time: one that is waited for while others compute, or more; of parts that use them in turn, those of all",
        values: |c, problem, target| {
            if bulk::take_turns(c) {
                return with_stages(c, bulk::turns(problem, c, target));
            }
            // Where a block takes one group of rows, there are others at a time only if it takes them piece by piece.
            let one = mapping::takes_one_group(c) && mapping::depth(problem, c) == problem.shape.k;
            if one { with_stages(c, [1]) } else { with_stages(c, [2, 3, 4, 1]) }
        },
    },
    caching::CACHING,
    pairs::PAIRS,
    Parameter {
        name: staging::KEEPS_PLACE,
        about: staging::ABOUT_KEEPING_PLACE,
        values: |c, problem, _| {
            let may = is_staged(c) && mapping::copied_a(problem, c).may_keep_place();
            if may { with_stages(c, [false, true]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "blocks",
        about: "blocks, of which each takes every so many groups of rows",
        values: |c, problem, target| {
            if c.flag(PASSING) {
                return Vec::new();
            }
            // Blocks of several bands fill the multiprocessors together.
            let all = i64::from(target.sm_count.value) / bands(problem, c);
            let groups = ceil(problem.shape.m, mapping::rows(problem, c)).max(1);
            let mut counts: Vec<i64> =
                [2, 1, 3, 4].iter().map(|n| n * all).filter(|b| *b <= groups).collect();
            if counts.is_empty() {
                counts.push(groups);
            }
            with_stages(c, counts)
        },
    },
    Parameter {
        name: staging::LANE_BASE,
        about: staging::ABOUT_LANE_BASE,
        values: |c, problem, _| staging::lane_base(problem.dtype(), c),
    },
    Parameter {
        name: staging::BOUNDED,
        about: staging::ABOUT_BOUNDED,
        values: |c, _, _| with_stages(c, [true, false]),
    },
    starts::STORED,
    EARLY,
    LETS,
    ASKS,
    ASKED,
];
