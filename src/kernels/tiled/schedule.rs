//! The schedule of a choice.

use warpwright_core::dtype::DType;

use super::mapping::{Elements, HIGH, PIECE, Tiles, WARP, Warps, copied};
use crate::kernels::family::Choice;
use crate::kernels::staging::{self, ACROSS, ceil};
use crate::problem::Problem;

/// The most multiply-adds of a thread in a row that are unrolled.
const MOST_UNROLLED: i64 = 2048;

/// Threads of a block that adds up parts.
const SECOND_PASS_THREADS: i64 = 128;

/// The stages of a choice: which is shared out among blocks, which among threads, and which adds up products.
struct Stages {
    blocks: &'static str,
    tiled: &'static str,
    sum: &'static str,
}

pub(super) fn schedule(problem: &Problem, choice: &Choice) -> String {
    let tiles = Tiles::of(choice);
    let parts = choice.int("parts").max(1);
    let stages = match (parts > 1, tiles.sets > 1) {
        (false, false) => Stages { blocks: "C", tiled: "C", sum: "acc" },
        (true, false) => Stages { blocks: "part", tiled: "part", sum: "mine" },
        (false, true) => Stages { blocks: "C", tiled: "slice", sum: "mine" },
        (true, true) => Stages { blocks: "part", tiled: "slice", sum: "mine" },
    };
    [
        aligned_rows(problem, choice),
        parts_of_sums(&tiles, parts, &stages),
        over_blocks(choice, &tiles, parts, &stages),
        together(&tiles, &stages),
        if tiles.matrix_units {
            over_warps(&tiles, Warps::of(choice), &stages)
        } else {
            over_threads(&tiles, &stages)
        },
        products(problem, choice, &tiles, &stages),
        stores(problem, choice, &tiles, &stages),
        if parts > 1 { second_pass(problem, choice) } else { String::new() },
    ]
    .concat()
}

/// The step by which a version of its own counts on rows that start where wide accesses may.
fn aligned_rows(problem: &Problem, choice: &Choice) -> String {
    let [of_a, of_b] = copied(problem, choice).map(|copied| copied.piece);
    let strides = [("lda", of_a), ("ldb", of_b), ("ldc", wide_stores(problem, choice))];
    let wide = strides.iter().filter(|(_, elements)| *elements > 1);
    let multiples: Vec<String> = wide.map(|(stride, elements)| format!("{stride}%{elements}")).collect();
    if multiples.is_empty() { String::new() } else { format!("specialize({})\n", multiples.join(", ")) }
}

/// Elements of C that a thread stores at once: neighbours in the registers of one, or as many as a second pass likes.
fn wide_stores(problem: &Problem, choice: &Choice) -> i64 {
    let [_, piece] = match Tiles::of(choice) {
        _ if choice.int("parts") > 1 => [1, PIECE],
        // What a matrix instruction leaves of them is stored one by one.
        tiles if tiles.elements == Elements::Halves => [1, 1],
        tiles => tiles.pieces(),
    };
    let most = (problem.alignment().c / problem.result_dtype().bytes()).min(piece);
    if problem.shape.n % piece == 0 && most == piece { piece } else { 1 }
}

/// The sum over K in tiles of `depth` terms, in parts for blocks and for sets of threads. A set takes every so many groups of
/// the terms that are read at once.
fn parts_of_sums(tiles: &Tiles, parts: i64, stages: &Stages) -> String {
    let mut steps = format!("split(acc.k, {}) -> ko, k\n", tiles.depth);
    let mut whole = "acc";
    if parts > 1 {
        steps += &format!("split_reduce(acc.ko, {parts}, order=cyclic) -> part, g\n");
        whole = "part";
    }
    if tiles.sets > 1 {
        steps += &if tiles.matrix_units {
            // What a warp copies for itself are neighbouring terms.
            format!("split({whole}.k, {}) -> s, k\n", tiles.terms_of_a_set())
        } else {
            format!(
                "split({whole}.k, {terms}) -> q, k\nsplit({whole}.q, {sets}) -> kk, s\n",
                terms = tiles.terms(),
                sets = tiles.sets
            )
        };
        steps += &format!("rfactor({whole}.s, combine=shared) -> slice\ncache_write(slice, reg) -> mine\n");
        if parts > 1 {
            steps += "cache_write(part, reg) -> whole\n";
        }
    } else if parts > 1 {
        steps += "cache_write(part, reg) -> mine\n";
    }
    if tiles.sets == 1 || tiles.matrix_units {
        steps += &format!("split({}.k, {}) -> kk, k\n", stages.sum, tiles.terms());
    }
    steps
}

/// The blocks: of one part of the sum those that read the same columns of B are neighbours.
fn over_blocks(choice: &Choice, tiles: &Tiles, parts: i64, stages: &Stages) -> String {
    let (stage, asked) = (stages.blocks, staging::min_blocks(choice));
    let (part, bound) = if parts > 1 {
        (format!("{stage}.g, "), format!("bind({stage}.g, block.z)\n"))
    } else {
        Default::default()
    };
    format!(
        "split({stage}.i, {rows}) -> bi, i
split({stage}.j, {columns}) -> bj, j
reorder({part}{stage}.bi, {stage}.bj, {stage}.i, {stage}.j)
{bound}bind({stage}.bi, block.y)
bind({stage}.bj, block.x{asked})
",
        rows = tiles.rows,
        columns = tiles.columns,
    )
}

/// What sets have added up comes together in shared memory.
fn together(tiles: &Tiles, Stages { blocks, sum, .. }: &Stages) -> String {
    if tiles.sets == 1 {
        return if *sum == "acc" { "set_scope(acc, reg)\n".to_string() } else { String::new() };
    }
    let whole = if *blocks == "part" {
        "compute_at(whole, part.j)\n"
    } else {
        "set_scope(acc, reg)\ncompute_at(acc, C.j)\n"
    };
    let threads = tiles.threads().min(tiles.rows * tiles.columns);
    format!(
        "{whole}compute_at(slice, {blocks}.bj)
fuse({blocks}.i, {blocks}.j) -> e
split({blocks}.e, {threads}) -> u, t
reorder({blocks}.t, {blocks}.u)
bind({blocks}.t, threads)
"
    )
}

/// The loops over the blocks of a stage whose blocks are its own, as the beginning of a list of loops.
fn over_own_blocks(tiles: &Tiles, Stages { blocks, .. }: &Stages) -> String {
    match (tiles.sets > 1, *blocks) {
        (true, _) => String::new(),
        (false, "part") => "part.g, part.bi, part.bj, ".to_string(),
        (false, blocks) => format!("{blocks}.bi, {blocks}.bj, "),
    }
}

/// The warps of a block that multiply by matrix instructions.
fn over_warps(tiles: &Tiles, warps: Warps, stages: &Stages) -> String {
    let Stages { tiled, sum, .. } = stages;
    let Warps { rows, columns, .. } = warps;
    let set = if tiles.sets > 1 { format!("{tiled}.s, ") } else { String::new() };
    format!(
        "split({tiled}.i, {rows}) -> wm, i
split({tiled}.j, {columns}) -> wn, j
reorder({blocks}{set}{tiled}.wm, {tiled}.wn, {tiled}.i, {tiled}.j)
bind({set}{tiled}.wm, {tiled}.wn, threads@{WARP})
compute_at({sum}, {tiled}.wn)
",
        blocks = over_own_blocks(tiles, stages),
    )
}

/// The threads of a block.
fn over_threads(tiles: &Tiles, stages: &Stages) -> String {
    let Stages { tiled, sum, .. } = stages;
    let Tiles { tm, tn, lanes_down, lanes_across, .. } = tiles;
    let [high, wide] = tiles.pieces();
    let (outer, set) = if tiles.by_warps {
        (format!("{tiled}.w, "), format!("{tiled}.s, "))
    } else if tiles.sets > 1 {
        (String::new(), format!("{tiled}.s, "))
    } else {
        (over_own_blocks(tiles, stages), String::new())
    };
    let [warps, warps_bound] = if tiles.by_warps {
        [
            format!("split({tiled}.s, {}) -> w, s\n", tiles.sets_of_a_warp()),
            format!("bind({tiled}.w, threads@{WARP})\n"),
        ]
    } else {
        Default::default()
    };
    format!(
        "{warps}split({tiled}.i, {of_warp}) -> wi, i
split({tiled}.i, {apart_i}) -> vi, i
split({tiled}.i, {high}) -> ti, i
split({tiled}.j, {across_warp}) -> wj, j
split({tiled}.j, {apart_j}) -> vj, j
split({tiled}.j, {wide}) -> tj, j
reorder({outer}{tiled}.vi, {tiled}.vj, {set}{tiled}.wi, {tiled}.wj, {tiled}.tj, {tiled}.ti, {tiled}.i, {tiled}.j)
{warps_bound}bind({tiled}.vi, vthread)
bind({tiled}.vj, vthread)
bind({set}{tiled}.wi, {tiled}.wj, {tiled}.tj, {tiled}.ti, threads)
compute_at({sum}, {tiled}.ti)
",
        of_warp = lanes_down * tm,
        apart_i = lanes_down * high,
        across_warp = lanes_across * tn,
        apart_j = lanes_across * wide,
    )
}

/// The copies of both tiles with each step, their own steps being given. Where few rows leave the time to reading B, it is asked for first:
/// with 16 rows of 4096 x 4096 kernels took 26.05 us instead of 26.25 by threads, 26.8 instead of 27.2 by matrix units (an H100, 2026-11-26).
fn in_order(tiles: &Tiles, sum: &str, steps: [String; 2]) -> [String; 2] {
    let private = if tiles.by_warps { ", private" } else { "" };
    let [of_a, of_b] = steps;
    let copies = [("As", of_a), ("Bs", of_b)]
        .map(|(tile, steps)| format!("compute_at({tile}, {sum}.ko{private})\n{steps}"));
    if tiles.swizzled {
        let [of_a, of_b] = copies;
        return [of_b, of_a];
    }
    copies
}

/// What those who multiply do with the tiles in shared memory.
struct Reads {
    /// The loops around one product, below those over tiles and over the terms that are read at once.
    loops: [&'static str; 3],
    /// How tiles of A are copied, with how they lie.
    copy_of_a: String,
    /// The steps for what is read of each tile, and for the products.
    of_a: String,
    of_b: String,
    /// Those after the pipeline.
    after: String,
}

/// The copies of tiles to shared memory, what is read of them, and the products.
fn products(problem: &Problem, choice: &Choice, tiles: &Tiles, stages: &Stages) -> String {
    let sum = stages.sum;
    let Reads { loops: [outer, middle, inner], copy_of_a, of_a, of_b, after } = if tiles.matrix_units {
        by_warps(problem, choice, tiles, stages)
    } else {
        by_threads(problem, choice, tiles, sum)
    };
    let [_, of_tile_b] = tiles.spreads();
    let [_, copied_b] = copied(problem, choice);
    let copy_of_b = of_tile_b.steps("Bs", tiles.row_of_b()) + &copied_b.steps("Bs", false);
    format!(
        "reorder({sum}.ko, {sum}.kk, {sum}.{outer}, {sum}.{middle}, {sum}.{inner})
cache_read(A, {sum}, shared) -> As
cache_read(B, {sum}, shared) -> Bs
{copies}cache_read(As, {sum}, reg) -> a
{of_a}cache_read(Bs, {sum}, reg) -> b
{of_b}pipeline({sum}.ko, {stages_of_pipeline}, via={via})
{after}",
        copies = in_order(tiles, sum, [copy_of_a, copy_of_b]).concat(),
        stages_of_pipeline = choice.int("stages"),
        via = staging::via(choice),
    )
}

/// Warps with matrix instructions.
fn by_warps(problem: &Problem, choice: &Choice, tiles: &Tiles, stages: &Stages) -> Reads {
    let sum = stages.sum;
    let [copied_a, _] = copied(problem, choice);
    let [of_tile_a, _] = tiles.spreads();
    let [below, beside] = Warps::of(choice).instructions();
    let halves = tiles.elements == Elements::Halves;
    let Fragments { of_a, of_b, of_products, within, unrolled } = match tiles.at_once() {
        _ if halves => Fragments::of_loads([below, beside], tiles.b_by_columns, sum),
        Some(at_once) => {
            let vectors = leaves_pieces(problem, choice, tiles, stages.tiled);
            Fragments::of_pieces(at_once, stages, vectors)
        }
        None => Fragments::of_neighbours(tiles.b_by_columns, sum),
    };
    let rows = if below > 1 && !halves { ", a.ro" } else { "" };
    let several = beside > tiles.at_once().map_or(1, |[_, columns]| columns);
    let columns = match several && !halves {
        true if tiles.b_by_columns => ", b.ro",
        true => ", b.co",
        false => "",
    };
    // What is loaded by `ldmatrix` gets its form from the instruction that takes it.
    let (instruction, loaded) = match problem.dtype() {
        DType::F16 => ("mma_m16n8k16_f16", loads(tiles.b_by_columns, "_f16")),
        DType::Bf16 => ("mma_m16n8k16_bf16", loads(tiles.b_by_columns, "")),
        _ => ("mma_m16n8k8_f32", String::new()),
    };
    Reads {
        loops: ["i", "j", "k"],
        copy_of_a: of_tile_a.steps("As", tiles.copied_terms()) + &copied_a.steps("As", false),
        of_a: format!("compute_at(a, {sum}.kk)\n{of_a}"),
        of_b: format!(
            "compute_at(b, {sum}.kk)
{of_b}{of_products}split({sum}.i, {HIGH}) -> mi, i
split({sum}.j, {ACROSS}) -> ni, j
reorder({sum}.kk, {within}, {sum}.i, {sum}.j, {sum}.k)
tensorize({sum}.i, {instruction})
{loaded}"
        ),
        after: format!("unroll({sum}.kk, {sum}.mi, {sum}.ni{rows}{columns}{unrolled})\n"),
    }
}

/// The steps by which warps load 16 x 16 elements of 16 bits of either tile at once.
fn loads(b_by_columns: bool, suffix: &str) -> String {
    let of_b = if b_by_columns { "b.c, ldmatrix_x4_turned" } else { "b.r, ldmatrix_x4_trans" };
    format!("tensorize(a.r, ldmatrix_x4{suffix})\ntensorize({of_b}{suffix})\n")
}

/// Which terms and columns instructions get.
struct Fragments {
    /// The steps for what a lane reads of either tile, before there are fragments.
    of_a: String,
    of_b: String,
    /// Those for the products, and for what they leave behind.
    of_products: String,
    /// The loops around an instruction.
    within: String,
    /// Other loops that are unrolled.
    unrolled: String,
}

impl Fragments {
    /// Neighbours, which lanes read one by one. Fragments are of B, however it lies.
    fn of_neighbours(b_by_columns: bool, sum: &str) -> Fragments {
        Fragments {
            of_a: String::new(),
            of_b: if b_by_columns { "storage_order(b, c, r)\n".to_string() } else { String::new() },
            of_products: String::new(),
            within: format!("{sum}.mi, {sum}.ni"),
            unrolled: String::new(),
        }
    }

    /// Squares of 16 x 16 elements of 16 bits, each of which a warp loads at once.
    fn of_loads([below, beside]: [i64; 2], b_by_columns: bool, sum: &str) -> Fragments {
        let several = |tile: &str, along: &str, outer: &str| {
            let steps = format!(
                "split({tile}.{along}, 16) -> {outer}, {along}\nreorder({tile}.{outer}, {tile}.r, {tile}.c)\n"
            );
            (steps, format!(", {tile}.{outer}"))
        };
        let (of_a, rows) = if below > 1 { several("a", "r", "ai") } else { Default::default() };
        let along = if b_by_columns { "r" } else { "c" };
        let (of_b, columns) = if beside > 2 { several("b", along, "bj") } else { Default::default() };
        let neighbours = Fragments::of_neighbours(b_by_columns, sum);
        Fragments { of_a, of_b: neighbours.of_b + &of_b, unrolled: rows + &columns, ..neighbours }
    }

    /// Every so many terms and columns: a lane has neighbours for as many instructions, and reads them at once. It stores what they make of its
    /// columns at once too, as `vectors`, or one by one.
    fn of_pieces([terms, columns]: [i64; 2], Stages { tiled, sum, .. }: &Stages, vectors: bool) -> Fragments {
        let how = if vectors { "vectorize" } else { "unroll" };
        Fragments {
            of_a: format!(
                "split(a.c, {terms}) -> c, v
vectorize(a.v)
storage_order(a, r, c%{terms}, c/{terms})
"
            ),
            of_b: format!(
                "split(b.r, {terms}) -> r, q
split(b.c, {columns}) -> c, v
reorder(b.q, b.r, b.c, b.v)
vectorize(b.v)
storage_order(b, r%{terms}, r/{terms}, c%{columns}, c/{columns})
"
            ),
            of_products: format!(
                "split({sum}.k, {terms}) -> k, q
split({sum}.j, {columns}) -> j, v
storage_order({sum}, r, c%{columns}, c/{columns})
split({tiled}.j, {columns}) -> j, v
{how}({tiled}.v)
"
            ),
            within: format!("{sum}.q, {sum}.mi, {sum}.ni, {sum}.v"),
            unrolled: format!(", b.q, {sum}.q, {sum}.v"),
        }
    }
}

/// Whether lanes store neighbours of a row at once where matrix units have made them.
fn leaves_pieces(problem: &Problem, choice: &Choice, tiles: &Tiles, tiled: &str) -> bool {
    let [_, wide] = tiles.pieces();
    let at_once = if tiled == "C" { wide_stores(problem, choice) } else { wide };
    tiled == "slice" || problem.shape.n % wide == 0 && at_once == wide
}

/// Threads.
fn by_threads(problem: &Problem, choice: &Choice, tiles: &Tiles, sum: &str) -> Reads {
    let [copied_a, _] = copied(problem, choice);
    let [of_tile_a, _] = tiles.spreads();
    let [high, wide] = tiles.pieces();
    let (copy_of_a, a_read, a_at) = if tiles.turned {
        let (piece, threads) = (copied_a.piece, tiles.threads());
        (
            format!(
                "storage_order(As, c, r)
storage_align(As, c, {PIECE})
fuse(As.r, As.c) -> f
split(As.f, {piece}) -> f, v
split(As.f, {threads}) -> u, t
reorder(As.t, As.u, As.v)
bind(As.t, threads)
unroll(As.u)
"
            ),
            format!(
                "split(a.r, {high}) -> r, v\nreorder(a.c, a.r, a.v)\n{}unroll(a.r, a.c)\n",
                wider("a.v", high)
            ),
            "k",
        )
    } else {
        let copy = of_tile_a.steps("As", tiles.copied_terms()) + &copied_a.steps("As", false);
        (copy, "vectorize(a.c)\n".to_string(), "kk")
    };
    // A tile that is turned passes through registers, unless there is none to come.
    let ahead = ceil(ceil(problem.shape.k, tiles.depth), choice.int("parts").max(1)) > 1;
    let stored = match (tiles.turned, ahead) {
        (true, true) => format!("{}unroll(As.v)\n", wider("As_next.v", copied_a.piece)),
        (true, false) => "unroll(As.v)\n".to_string(),
        (false, _) => String::new(),
    };
    let unrolled = if tiles.tm * tiles.tn * tiles.terms_of_a_set() <= MOST_UNROLLED {
        format!("{sum}.kk, ")
    } else {
        String::new()
    };
    Reads {
        loops: ["k", "i", "j"],
        copy_of_a,
        of_a: format!("compute_at(a, {sum}.{a_at})\n{a_read}"),
        of_b: format!("compute_at(b, {sum}.k)\n{}", wider("b.c", wide)),
        after: format!("{stored}unroll({unrolled}{sum}.k, {sum}.i, {sum}.j)\n"),
    }
}

/// What a thread leaves behind, of one piece of its columns at once, and how the sets' sums become one.
fn stores(
    problem: &Problem,
    choice: &Choice,
    tiles: &Tiles,
    Stages { blocks, tiled, .. }: &Stages,
) -> String {
    let sums = match (tiles.sets > 1, *blocks) {
        (false, _) => String::new(),
        (true, "part") => "unroll(part.u, whole.s)\n".to_string(),
        (true, _) => "unroll(C.u, acc.s)\n".to_string(),
    };
    let [_, wide] = tiles.pieces();
    if tiles.matrix_units {
        let at_once = tiles.at_once();
        let pairs = if at_once.is_none() && leaves_pieces(problem, choice, tiles, tiled) {
            staging::pairs(tiled, if *tiled == "C" { problem.result_dtype() } else { DType::F32 }, wide)
        } else {
            String::new()
        };
        let [below, beside] = Warps::of(choice).instructions();
        let mut tiles_of_a_warp = Vec::new();
        if below > 1 {
            tiles_of_a_warp.push(format!("{tiled}.io"));
        }
        if beside > at_once.map_or(1, |[_, columns]| columns) {
            tiles_of_a_warp.push(format!("{tiled}.jo"));
        }
        let unrolled = if tiles_of_a_warp.is_empty() {
            String::new()
        } else {
            format!("unroll({})\n", tiles_of_a_warp.join(", "))
        };
        let apart = if *tiled == "slice" {
            format!("storage_align(slice, r, {})\n", tiles.between_rows_of_sums())
        } else {
            String::new()
        };
        return format!("{apart}{pairs}{unrolled}{sums}");
    }
    let at_once = if *tiled == "C" { wide_stores(problem, choice) } else { wide };
    let aligned = *tiled != "part" || problem.shape.n % wide == 0;
    let tile = if at_once > 1 && aligned {
        wider(&format!("{tiled}.j"), at_once)
    } else {
        format!("unroll({tiled}.j)\n")
    };
    format!("{tile}unroll({tiled}.i)\n{sums}")
}

/// The launch that adds up the parts of an element one after the other, always in the same order: of four elements of a row at once
/// where rows consist of such.
fn second_pass(problem: &Problem, choice: &Choice) -> String {
    let wide = wide_stores(problem, choice);
    let threads = SECOND_PASS_THREADS.min(ceil(ceil(problem.shape.n, wide), 32) * 32);
    let [pieces, read] = if wide > 1 {
        [
            format!("split(C.j, {wide}) -> j, v\n"),
            "reorder(acc.g, acc.i, acc.j)
cache_read(part, acc, reg) -> p
compute_at(p, acc.g)
vectorize(p.e2)
vectorize(C.v)
unroll(acc.j)
"
            .to_string(),
        ]
    } else {
        Default::default()
    };
    format!(
        "{pieces}split(C.j, {threads}) -> bj, t
bind(C.i, block.y)
bind(C.bj, block.x)
bind(C.t, threads)
set_scope(acc, reg)
compute_at(acc, C.t)
{read}unroll(acc.g)
"
    )
}

/// The step that makes one access of a loop of so many elements.
fn wider(target: &str, elements: i64) -> String {
    if elements > 1 { format!("vectorize({target})\n") } else { format!("unroll({target})\n") }
}
