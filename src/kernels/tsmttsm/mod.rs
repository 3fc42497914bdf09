//! The family `tsmttsm`: a tall skinny matrix, transposed, times another. C = alpha op(A) B + beta C with A: K x M and
//! B: K x N, K long and M, N short.
//!
//! A block takes every `parts`-th group of rows of A and B and adds up their products in registers. How the parts
//! come together is the parameter `reduction`:
//!
//! - `two-pass`: a block leaves its part in device memory; a second launch adds the parts in order, so the bits are the
//!   same every time.
//! - `global`: a first launch stores beta C, and blocks add their parts to it by atomics, in any order.
//! - `local`: likewise, and the threads of a block add to the part of the block by atomics in shared memory.
//!
//! The bits of a result follow from the choice and the problem, never from the launch. The choice itself depends on the
//! GPU, whose multiprocessors `parts` is to fill, and on what was measured there; where bits have to be the same on every
//! GPU, it is made from the problem alone.
//!
//! With `parts=1` nothing is left to come together: one launch does everything. That suits short sums.
//!
//! Where B is A (A^T A, A^H A) the kernel reads it once: what is staged in shared memory is staged once, and what
//! threads read into registers is found in the first-level cache the second time.
//!
//! There are three forms:
//!
//! - `unit=fma`: the threads of a block are divided into slices; the threads of a slice share out C in tiles of
//!   `tm` x `tn`. With `staging=registers` each slice takes one row of a group, and threads read their elements of it
//!   from device memory: the mappings of Ernst, Hager, Thies and Wellein (IJHPCA 35(1), 2021). With `staging=shared`
//!   groups of `depth` rows are copied to shared memory, `stages` ahead, and slices share out the rows of a group, each for the second launch or
//!   for the block (`sets`; see `sets.rs`).
//!   Where rows of A are no whole pieces of 16 bytes, a `panel` of several rows is: a thread that takes all rows of C reads
//!   it as the one piece of memory that it is.
//!   A group of dense rows may be copied as the one piece of memory that it is, by asynchronous copies of all threads
//!   (`copy=one`) or by one bulk copy that one warp asks for (`copy=bulk`, the fewest instructions and registers), or row by row,
//!   so that rows in shared memory are as long as suits the tiles and the banks. Rows that are no whole pieces of 16 bytes
//!   start in two or four ways; with `copy=classes` those that start alike are added up by blocks of their own, which copy and
//!   read 16 bytes at a time, and C is put together from the sums of all classes (`crate::kernels::classes`). Before a group is overwritten all warps of
//!   the block meet; with `unit=mma` and `copy=bulk` it is enough that each of them gives it back (`release=warps`).
//! - `unit=mma`: groups of rows are staged in shared memory likewise; or, where they stand apart or start anywhere, lanes read what
//!   instructions want straight from device memory (`staging=registers`, see `direct.rs`). `wm` x `wn` warps share out C in tiles of matrix
//!   instructions, `wk` such sets of warps share out the rows of a group. Lanes read four rows together; where the rows that
//!   a bulk copy has brought would be in each other's banks, they read rows that are some way `apart`: the terms of a sum
//!   come in another order, and each load takes the passes that its bytes take (97 columns of f64: 2 instead of 8).
//!
//! Matrix units multiply complex numbers in one of three ways. With `numbers=whole` each product of two tiles is four of
//! their real and imaginary parts. With `numbers=parts` the operands are taken as the real matrices of twice the width
//! that they are in memory, whose product has all four products of the parts of an element side by side; the last step
//! puts them together. That takes twice the registers for sums, but leaves over as little as real matrices do (36
//! columns are 72 instead of 48 in whole instructions of 16 x 8), and loads go straight to where instructions want them.
//!
//! With `numbers=three`, which is chosen only where somebody asks for it or permits it, a product is made of three real
//! ones (3M): C is specified by the sums `acc[p, i, j]`, `p` being 0 for the real parts, 1 for the imaginary parts and 2
//! for the sums or differences of both. Rows are staged as they are; what a lane reads of them becomes the three factors
//! in its registers (`precompute`), so that tiles of C take three instructions instead of four, one addition for each
//! element of a fragment, and three registers of sums instead of four. The last step puts the three together. The error
//! is bounded otherwise: see `crate::reference::bound`.
//!
//! In f32 and complex64 matrix units make each product of three of tf32 parts (`numbers=split`, known as 3xTF32), whose error has a
//! bound of its own: see `crate::reference::bound`. For sums that are not short it is no larger than that of plain sums, and they
//! are chosen like any other; for others only where somebody asks for it or permits it. Complex numbers are taken whole, or as
//! columns of parts (`numbers=split-parts`). What a lane adds up of a group of rows is apart from its part of C, leading parts and
//! others, so warps have smaller parts of C.
//!
//! Where tiles do not divide among warps, the last ones stand over the end of C. With `omit=true` they leave out the tiles beyond it: before
//! each group of rows a warp branches to code for as many tiles as it has (`unswitch`), so that warps may be as many as share
//! out the tiles evenly among schedulers (52 columns of complex128 are 7 x 13 tiles: 3 x 5 warps have 24 of them on the fullest
//! scheduler, 7 x 1 have 26). With `even=true` no warp has more than one row or column of tiles more than another, and warps side by
//! side are rotated from row to row (`rotate`), so that the small ones of all rows do not stand on one scheduler: 4 x 4 warps have 23.
//! Lanes that read beyond the end of a row find zeros there, which costs a condition and registers for each load; with `zeros=false` they
//! find what follows the row, and nobody reads what comes of it.
//!
//! Rows of a multiple of 64 bytes meet in banks however far apart they are. With `runs=4` a group of them arrives by four bulk copies, a
//! quarter of its rows each, with padding between these, and an instruction takes its terms from all four: see `runs.rs`. Where tiles stand
//! over the end of rows, each copy goes on with as much of the next run as they read.
//!
//! Rows that are some way apart, by whole pieces of 16 bytes, may come as boxes of a matrix (`copy=boxes`), one of A and one of B for each
//! group, which the tensor memory accelerator finds by itself; see `boxes.rs`. Those that stand apart by little may come with what lies between
//! them as the one piece of memory that they are then (`copy=span`), by kernels that know their stride; see `strided.rs`. Of those
//! that stand farther apart device memory may give 32 bytes at a time (`granularity`; see `granularity.rs`).
//!
//! Where whole instructions would leave most of a tile over, threads add up the last rows and columns of C (`border`), from the same
//! copies and in the same pass: see `border.rs`. Up to half an instruction of rows may be turned instead, so that they are columns of
//! instructions: of 52 columns of complex128 the last 8 rows of sums take 7 instructions instead of 13. See `turned.rs`.
//!
//! In all forms C may be divided into `areas`, each of blocks of its own: a C of 128 x 128 complex128 is as large as all
//! registers of a multiprocessor. What is staged is then the columns of the area. Short products may begin while the call before them ends
//! (`early`; see `early.rs`).

mod border;
mod boxes;
mod constraints;
mod direct;
mod footprint;
mod mapping;
mod reduction;
mod runs;
mod schedule;
mod sets;
mod strided;
mod turned;
mod warps;

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::target::Capability;

use self::border::BORDER;
use self::direct::{REGISTERS, SHARED, STAGING, is_direct, is_staged};
use self::mapping::{APART, Threads, WHOLE, ZEROS, area, areas, read};
use self::runs::{RUNS, RUNS_OF_A_GROUP};
use self::warps::{EVEN, OMIT};
use super::early::{self, ASKED, ASKS, EARLY, LETS};
use super::family::{Choice, Family, Parameter, Value};
use super::gemm::{Fixed, Numbers};
use super::granularity::{self, GRANULARITY};
use super::staging::{self, ACROSS, By, Copied, Moved, ceil};
use crate::problem::{Alignment, Op, Problem};

/// The family.
pub const FAMILY: Family = Family {
    name: "tsmttsm",
    about: "tall skinny matrix, transposed, times tall skinny matrix",
    fixed,
    flat: |problem, choice| {
        let staged = choice.get("stages").is_some();
        let [a, b] = mapping::moved(problem, choice).map(|moved| staged && moved != Moved::Strided);
        [a, b, false]
    },
    strides: strided::strides,
    before_c: |_, _| 0,
    numbers: staging::numbers,
    classes: mapping::classes,
    suits: |problem| {
        let short = problem.shape.m.max(problem.shape.n);
        fixed(problem).is_ok() && problem.shape.k >= 8 * short
    },
    parameters: PARAMETERS,
    unmodelled: &[EARLY.name, LETS.name, ASKS.name, ASKED.name],
    constraints: constraints::CONSTRAINTS,
    any_order: |choice| matches!(choice.word("reduction"), "global" | "local"),
    context: granularity::needs_context,
    reproducible,
    schedule: |problem, choice| {
        let schedule = match choice.word("unit") {
            "mma" => schedule::by_matrix_units,
            _ if choice.word("staging") == "shared" => schedule::by_threads_from_shared,
            _ => schedule::by_threads,
        };
        granularity::scheduled(early::scheduled(schedule(problem, choice), choice), choice)
    },
    footprint: footprint::footprint,
};

/// The most rows of a group that matrix units multiply.
const DEEPEST: i64 = 128;

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
    Ok(Fixed { m: Some(shape.m), n: Some(shape.n), same: problem.same, ..Fixed::default() })
}

/// Parts for the problem's length alone, whatever GPU there is.
fn reproducible(problem: &Problem) -> Choice {
    let parts =
        (1..=MOST_REPRODUCIBLE).rev().find(|p| p & (p - 1) == 0 && p * 2 * LEAST_ROWS <= problem.shape.k);
    Choice::default()
        .with("unit", "fma")
        .with("staging", "registers")
        .with("block", 256)
        .with("parts", parts.unwrap_or(1))
}

/// Parts of a sum that has to have the same bits on every GPU: enough for the largest.
const MOST_REPRODUCIBLE: i64 = 512;

/// The values of a parameter of the form by threads.
fn with_fma(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if choice.word("unit") == "fma" { values.into_iter().map(Into::into).collect() } else { Vec::new() }
}

/// The values of a parameter of the forms that stage rows in shared memory.
fn with_stages(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if is_staged(choice) { values.into_iter().map(Into::into).collect() } else { Vec::new() }
}

/// Into how many parts so many instructions side by side may be shared out among warps: any, where a warp with less than the others
/// leaves out what it has not.
fn shares(instructions: i64, choice: &Choice) -> Vec<i64> {
    if choice.flag(OMIT) { (1..=8).collect() } else { staging::shares(instructions) }
}

/// The values of a parameter of the form by matrix units that stage rows in shared memory.
fn with_staged_mma(choice: &Choice, values: impl IntoIterator<Item = impl Into<Value>>) -> Vec<Value> {
    if is_direct(choice) { Vec::new() } else { with_mma(choice, values) }
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
            let narrow = problem.shape.m.min(problem.shape.n);
            let mut units = staging::units(problem, target, narrow, narrow == 1);
            // Of one group of rows that is not full, instructions on split numbers add up more often than their bound says.
            if problem.dtype().real() == DType::F32 && problem.shape.k <= DEEPEST {
                units.retain(|unit| *unit == "fma".into());
            }
            units
        },
    },
    GRANULARITY,
    Parameter {
        name: STAGING,
        about: "where threads read rows from: their own registers, or shared memory",
        values: |c, problem, target| {
            if c.word("unit") == "mma" {
                return direct::stagings(problem, c);
            }
            let (m, n) = (problem.shape.m, problem.shape.n);
            // Where few threads read an element, sharing it gains nothing.
            let order = if m.min(n) * problem.dtype().bytes() < 128 {
                [REGISTERS, SHARED]
            } else {
                [SHARED, REGISTERS]
            };
            with_fma(c, order.into_iter().filter(|s| *s == REGISTERS || target.has(Capability::CpAsync)))
        },
    },
    Parameter {
        name: "areas",
        about: "areas of C, each added up by a block of its own",
        values: |c, problem, _| {
            let (elements, short) = (problem.shape.m * problem.shape.n, problem.shape.k <= SHORT);
            if c.word("unit") == "fma" && !is_staged(c) {
                let useful = [1, 4, 16, 64].into_iter();
                return with_fma(
                    c,
                    useful.filter(|a| *a == 1 || short && *a <= elements || 256 * a <= elements),
                );
            }
            // As long as a block's part of C is large.
            let most = elements * problem.result_dtype().bytes() / LARGE_AREA;
            if most > 1 {
                [1, 2, 4].into_iter().filter(|a| *a <= most).map(Value::from).collect()
            } else {
                Vec::new()
            }
        },
    },
    Parameter {
        name: "numbers",
        about: "how matrix units take numbers: complex ones whole, as columns of real and of imaginary parts (parts), or by three real products; those of f32 split into tf32 parts, and complex ones of them whole (split) or as columns of parts (split-parts)",
        values: |c, problem, _| {
            // Areas of one matrix would need copies of each factor of the three.
            let three = !is_direct(c) && (!problem.same || areas(problem, c) == 1);
            let forms = ["parts", "whole", "three"].into_iter().filter(|form| three || *form != "three");
            match problem.dtype() {
                DType::F32 => with_mma(c, ["split"]),
                DType::C64 => with_mma(c, ["split-parts", "split"]),
                DType::C128 => with_mma(c, forms),
                _ => Vec::new(),
            }
        },
    },
    Parameter {
        name: "block",
        about: "threads of a block",
        values: |c, problem, _| {
            // Where the second pass counts, larger blocks leave it fewer parts.
            let large = if c.word("staging") == "shared" { SHORT } else { FEW_PARTS };
            let sizes = if problem.shape.k <= large { vec![256, 128, 512, 1024] } else { vec![256, 128] };
            with_fma(c, sizes)
        },
    },
    Parameter {
        name: "panel",
        about: "whether a thread takes all rows of C, and reads so many dense rows of A at a time as are whole pieces of 16 bytes",
        values: |c, problem, _| {
            let dense = c.word("staging") == "shared" && mapping::moved_as("", problem, c)[0] == Moved::AsOne;
            if dense { with_fma(c, [false, true]) } else { Vec::new() }
        },
    },
    Parameter {
        name: staging::COPY,
        about: staging::ABOUT_COPY,
        values: |c, problem, target| {
            let mut ways = staging::copies(|copy| mapping::moved_as(copy, problem, c));
            let Alignment { a, b, .. } = problem.alignment();
            let runs = mapping::moved_as(staging::BULK, problem, c) == [Moved::AsOne; 2];
            let aligned = [a, b] == [Alignment::MOST; 2];
            if runs && aligned && !ways.is_empty() && target.has(Capability::Tma) {
                ways.push(staging::BULK);
            }
            if !ways.is_empty() && strided::may_arrive_in_spans(problem, c, target) {
                ways.push(staging::SPAN);
            }
            if mapping::moved_as(staging::BY_ROWS, problem, c) == [Moved::Strided; 2] {
                return with_staged_mma(c, strided::ways(problem, c, target));
            }
            // Asynchronous copies of less than 16 bytes a lane are slow.
            let by_registers = c.clone().with(staging::COPY, staging::THROUGH_REGISTERS);
            let small = |copied: &Copied| copied.piece * problem.dtype().bytes() < 16;
            if c.word("unit") == "fma"
                && !ways.is_empty()
                && mapping::copied(problem, &by_registers).iter().all(small)
            {
                ways.push(staging::THROUGH_REGISTERS);
            }
            if c.word("unit") == "fma" && runs && aligned && mapping::may_be_classed(problem, c) {
                ways.push(staging::BY_CLASSES);
            }
            // A panel is one piece of memory.
            with_stages(
                c,
                ways.into_iter().filter(|copy| !c.flag("panel") || ["one", staging::BULK].contains(copy)),
            )
        },
    },
    Parameter {
        name: "tm",
        about: "rows of C of a thread",
        values: |c, problem, _| {
            let rows = area(problem, c)[0];
            with_fma(c, if c.flag("panel") { vec![rows] } else { tiles(rows) })
        },
    },
    Parameter {
        name: "tn",
        about: "columns of C of a thread",
        values: |c, problem, _| with_fma(c, tiles(area(problem, c)[1])),
    },
    Parameter {
        name: "transposed",
        about: "whether a thread's elements of C are as far apart as possible, so that neighbours read side by side",
        values: |c, _, _| with_fma(c, [true, false]),
    },
    Parameter {
        name: WHOLE,
        about: "whether tiles of dense rows are read in whole pieces of 16 bytes, with what lies before and behind them, wherever rows start",
        values: |c, problem, _| {
            if mapping::may_read_whole(problem, c) { with_fma(c, [false, true]) } else { Vec::new() }
        },
    },
    Parameter {
        name: staging::INTERLEAVED,
        about: staging::ABOUT_INTERLEAVED,
        values: |c, problem, _| {
            let staged = c.word("staging") == "shared" && c.int("tm") > 0 && c.int("tn") > 0;
            // Loads of 4 bytes a lane take one pass in any case.
            let wide = mapping::pieces(problem, c).iter().any(|p| p * problem.dtype().bytes() > 4);
            let Threads { mt, nt, .. } = Threads::of(problem, c);
            let may = staged && wide && nt > 1 && mt % 2 == 0;
            // A thread too many makes an odd number of them even.
            let odd = || ceil(area(problem, c)[1], c.int("tn")) % 2 == 1;
            let may = may || c.flag("panel") && staged && nt > 1 && odd();
            if may { with_fma(c, [false, true]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "leapfrog",
        about: "whether the next row, or group of rows, is loaded into registers before this one is multiplied",
        values: |c, _, _| {
            let flags = [false, true].map(Value::from).to_vec();
            if c.word(STAGING) == REGISTERS { flags } else { Vec::new() }
        },
    },
    Parameter {
        name: "unroll",
        about: "rows that a thread reads into registers at a time",
        values: |c, _, _| {
            let ahead = c.word(STAGING) != REGISTERS || c.flag("leapfrog");
            if ahead { Vec::new() } else { with_fma(c, [1, 2, 4, 8]) }
        },
    },
    Parameter {
        name: "instruction",
        about: "extents of the matrix instruction",
        values: |c, problem, target| with_mma(c, staging::instructions(read(problem, c).dtype(), target)),
    },
    Parameter {
        name: BORDER,
        about: border::ABOUT,
        values: |c, problem, _| with_staged_mma(c, border::values(problem, c)),
    },
    Parameter {
        name: OMIT,
        about: "whether warps that stand over the end of C leave out the tiles beyond it, each in code of its own",
        values: |c, _, _| with_staged_mma(c, [false, true]),
    },
    Parameter {
        name: EVEN,
        about: "whether warps that leave out tiles have as many as each other, or one row or column of them less, and schedulers as many warps with less",
        values: |c, _, _| if c.flag(OMIT) { with_mma(c, [false, true]) } else { Vec::new() },
    },
    Parameter {
        name: "wm",
        about: "warps that share out the rows of C",
        values: |c, problem, _| {
            let (high, _) = staging::instruction(c.word("instruction"));
            let mut shares = shares(ceil(mapping::tiled(problem, c)[0], high), c);
            // A lane of a warp has its part of C three times where numbers are split.
            if staging::splits(c) {
                shares.reverse();
            }
            with_mma(c, shares)
        },
    },
    Parameter {
        name: "wn",
        about: "warps that share out the columns of C",
        values: |c, problem, _| with_mma(c, shares(ceil(mapping::tiled(problem, c)[1], ACROSS), c)),
    },
    Parameter {
        name: "wk",
        about: "sets of warps that share out the rows of a group",
        values: |c, _, _| with_mma(c, [4, 8, 2, 1]),
    },
    Parameter {
        name: "depth",
        about: "rows of A and B in a group",
        values: |c, problem, _| {
            if c.word("unit") == "mma" {
                return with_mma(c, [32, 64, 16, DEEPEST]);
            }
            // As many rows for each slice of threads.
            let slices = Threads::of(problem, c).slices;
            let depths = [4, 8, 2, 1, 16, 32].map(|rows| slices * rows);
            // Of classes a single row is no group: what each round leaves over would not be known.
            let least = if mapping::classes(problem, c).is_some() { 2 } else { 1 };
            with_stages(c, depths.into_iter().filter(|d| (least..=slices.max(256)).contains(d)))
        },
    },
    Parameter {
        name: RUNS_OF_A_GROUP,
        about: "in how many runs a group of dense rows arrives, each by a bulk copy of its own: one, or four with padding between them, so that the rows that lanes read together are in different banks",
        values: |c, problem, _| {
            if runs::may_arrive_in_runs(problem, c) { with_mma(c, [1, RUNS]) } else { Vec::new() }
        },
    },
    Parameter {
        name: APART,
        about: "how far apart the rows are that lanes read together for a matrix instruction: neighbours, or so many rows apart that dense ones are in different banks",
        values: |c, problem, _| {
            let three = staging::numbers(problem, c) == Numbers::Three;
            if staging::arrives_as_one(c) && !three && !runs::in_runs(c) {
                with_mma(c, mapping::distances(problem, c))
            } else {
                Vec::new()
            }
        },
    },
    Parameter {
        name: ZEROS,
        about: "whether lanes find zeros where tiles stand over the end of a row, or what follows the row: nobody reads what comes of it",
        values: |c, problem, _| {
            if mapping::may_go_without_zeros(problem, c) { with_mma(c, [true, false]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "steps",
        about: "rows of a group that a thread multiplies in a row, unrolled",
        values: |c, problem, _| {
            let may = c.word("staging") == "shared" && !c.flag("panel") && c.int("depth") > 0;
            if may { with_fma(c, mapping::steps(problem, c)) } else { Vec::new() }
        },
    },
    Parameter {
        name: staging::RELEASE,
        about: staging::ABOUT_RELEASE,
        values: |c, _, _| {
            // Of 17 kernels by threads none gained more than 1 % (an H200, 2026-11-24).
            let ways = ["block", staging::BY_WARPS, staging::BY_ROLE];
            if By::of(c) == By::Bulk { with_mma(c, ways) } else { Vec::new() }
        },
    },
    Parameter {
        name: "stages",
        about: "groups of rows in shared memory at a time",
        values: |c, _, _| {
            let through_registers = By::of(c) == By::Loading;
            with_stages(c, if through_registers { vec![2, 1] } else { vec![4, 3, 6, 2] })
        },
    },
    Parameter {
        name: staging::KEEPS_PLACE,
        about: staging::ABOUT_KEEPING_PLACE,
        values: |c, problem, _| {
            let may = || mapping::copied(problem, c).iter().any(Copied::may_keep_place);
            if c.get("stages").is_some() && may() { with_stages(c, [false, true]) } else { Vec::new() }
        },
    },
    Parameter {
        name: "parts",
        about: "blocks, of which each adds up its own part of the sum",
        values: |choice, problem, target| {
            let all = i64::from(target.sm_count.value);
            // Blocks of several areas fill the multiprocessors together.
            let staged = choice.get("stages").is_some();
            let (waves, all) = if staged || is_direct(choice) {
                ([1, 2, 3, 4], all / areas(problem, choice))
            } else {
                ([4, 2, 8, 1], all)
            };
            let least = choice.int("depth").max(LEAST_ROWS);
            let mut parts: Vec<i64> =
                waves.iter().map(|n| n * all).filter(|p| p * least <= problem.shape.k).collect();
            if parts.is_empty() {
                parts.push((problem.shape.k / least).clamp(1, all));
            }
            if !staged && problem.shape.k <= SHORT && parts != [1] {
                parts.push(1);
            }
            parts.into_iter().map(Value::from).collect()
        },
    },
    Parameter {
        name: "reduction",
        about: "how the parts come together: in order by a second launch, or in any order by atomics",
        values: |c, problem, target| {
            let double = matches!(problem.dtype(), DType::F64 | DType::C128);
            let of_threads = if c.word("unit") == "fma" { c.word(STAGING) } else { SHARED };
            let all: &[&str] = match of_threads {
                "registers" if c.int("parts") == 1 => &[],
                _ if double && !target.has(Capability::AtomicAddF64) => &["two-pass"],
                // Several sums make one number of C.
                _ if !matches!(c.word(BORDER), "" | "none") => &["two-pass"],
                _ if mapping::sums(problem, c) > 1 || mapping::classes(problem, c).is_some() => &["two-pass"],
                "registers" => &["two-pass", "global", "local"],
                // What is staged has no sum in shared memory.
                _ => &["two-pass", "global"],
            };
            all.iter().map(|word| Value::from(*word)).collect()
        },
    },
    sets::SETS,
    Parameter {
        name: staging::LANE_BASE,
        about: staging::ABOUT_LANE_BASE,
        values: |c, problem, _| {
            if is_direct(c) { Vec::new() } else { staging::lane_base(problem.dtype(), c) }
        },
    },
    Parameter {
        name: staging::BOUNDED,
        about: staging::ABOUT_BOUNDED,
        values: |c, _, _| {
            if is_direct(c) { with_mma(c, [true, false]) } else { with_stages(c, [true, false]) }
        },
    },
    EARLY,
    LETS,
    ASKS,
    ASKED,
];

/// For sums of at most this many terms one launch may be faster than two.
const SHORT: i64 = 1 << 14;

/// For sums of at most this many terms blocks of many threads that read their own rows may be faster: at a million
/// the second pass over the parts takes a fifth of the time (bench/limits/short.cu on an H200, 2026-11-22).
const FEW_PARTS: i64 = 1 << 22;

/// Bytes of an area of C from which on smaller ones are worth trying: an eighth of a multiprocessor's registers.
const LARGE_AREA: i64 = 32 << 10;

/// A block with fewer rows to add up than this is not worth its start.
const LEAST_ROWS: i64 = 32;

/// Extents of the tiles of a thread along an axis of C: those that leave less than a tile over, first of about eight
/// elements that leave little.
fn tiles(extent: i64) -> Vec<i64> {
    let useful = |t: &i64| extent % t == 0 || 2 * t <= extent + 1;
    let mut tiles: Vec<i64> = (1..=extent.min(16)).rev().filter(useful).collect();
    let over = |t: i64| (t - extent % t) % t;
    tiles.sort_by_key(|t| (10 * over(*t) > extent || *t > 8, (t - 8).abs()));
    tiles
}
