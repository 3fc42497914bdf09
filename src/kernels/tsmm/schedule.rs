//! The schedules of the forms.

use super::banks::{self, Small};
use super::bulk::{IN_BULK, take_turns};
use super::mapping::{
    COPIES_BEHIND, ENDS, FETCH, IN_PLACE, REST, SECTORS, Tiles, band, bands, chain, copied_a, depth, group,
    in_parts, is_three, makes_fragments, moved_a, moved_c, numbers, paddings, passing_groups, staged,
    steps_of_a_row, stored_extents, stores_through_shared, takes_one_group, team, terms_at_once, threads,
    warp_tile, wider,
};
use super::pairs;
use super::starts;
use warpwright_core::dtype::DType;

use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ACROSS, Moved, WarpTile, copied_at_once};
use crate::problem::{Alignment, Problem};

/// Columns of the result of a thread of the form that reads rows into registers.
pub(super) fn columns(problem: &Problem, choice: &Choice) -> i64 {
    let threads = choice.int("threads").max(1);
    (problem.shape.n + threads - 1) / threads
}

/// Elements of its columns that a thread writes at a time: as many as it reads of a row of A, where its columns are
/// whole pieces of so many that start at multiples of them.
pub(super) fn written_at_once(problem: &Problem, choice: &Choice) -> i64 {
    let vector = choice.int("vector").max(1);
    let aligned = vector * problem.dtype().bytes() <= problem.alignment_of_rows().c;
    let whole = columns(problem, choice) % vector == 0 && problem.shape.n % vector == 0;
    if aligned && whole { vector } else { 1 }
}

pub(super) fn by_threads(problem: &Problem, choice: &Choice) -> String {
    let (block, unroll, columns) = (choice.int("block"), choice.int("unroll"), columns(problem, choice));
    let (vector, written) = (choice.int("vector").max(1), written_at_once(problem, choice));
    let across = (problem.shape.n + columns - 1) / columns;
    let rows = (block / across).max(1);
    // The loop in which a row of A is read, and what makes it; the loop over what is written at once.
    let (read_in, split_terms) = if vector > 1 {
        let split = format!("split(acc.k, {vector}) -> ks, k\nreorder(acc.ks, acc.k, acc.i, acc.j)\n");
        ("acc.ks", split)
    } else {
        ("acc.k", "reorder(acc.k, acc.i, acc.j)\n".to_string())
    };
    let (piece, split_piece) =
        if written > 1 { (", C.e", format!("split(C.j, {written}) -> j, e\n")) } else { ("", String::new()) };
    let specialize = specialized(&[("lda", vector), ("ldc", written)]);
    let small = match choice.word("c_source") {
        "registers" => "cache_read(B, acc, reg) -> b\ncompute_at(b, C.jt)\nunroll(b.r, b.c)\n".to_string(),
        "l1" => "cache_read(B, acc, reg) -> b\ncompute_at(b, acc.k)\nunroll(b.c)\n".to_string(),
        _ => format!(
            "cache_read(B, acc, shared) -> Bs
compute_at(Bs, C.block)
{copy}cache_read(Bs, acc, reg) -> b
compute_at(b, acc.k)
unroll(b.c)
",
            copy = staging::copied_once(
                "Bs",
                problem.dtype(),
                (problem.shape.k, columns * across),
                rows * across
            )
        ),
    };
    format!(
        "{specialize}split(C.i, {rows_of_a_block}) -> block, i
split(C.i, {unroll}) -> it, i
split(C.j, {columns}) -> jt, j
{split_piece}reorder(C.block, C.it, C.jt, C.i, C.j{piece})
bind(C.block, block.x)
bind(C.it, C.jt, threads)
set_scope(acc, reg)
compute_at(acc, C.jt)
{split_terms}cache_read(A, acc, reg) -> a
compute_at(a, {read_in})
{small}{wide_a}{wide_c}unroll({steps}acc.k, acc.i, acc.j, a.r, C.i, C.j)
",
        rows_of_a_block = rows * unroll,
        wide_a = if vector > 1 { "vectorize(a.c)\n" } else { "" },
        wide_c = if written > 1 { "vectorize(C.e)\n" } else { "" },
        steps = if vector > 1 { "acc.ks, " } else { "" },
    )
}

/// The type of the small matrix as it is staged in shared memory, and its rows and columns: those of real and imaginary parts, if
/// they stand there as numbers of their own.
fn small_stage(problem: &Problem, choice: &Choice) -> (DType, (i64, i64)) {
    let ((dtype, of_a_number), (rows, columns)) = (staged(problem, choice), stored_extents(problem, choice));
    (dtype, (rows, of_a_number * columns))
}

/// The step by which kernels count on row strides that are multiples of these pieces.
fn specialized(strides: &[(&str, i64)]) -> String {
    let wide = strides.iter().filter(|(_, piece)| *piece > 1);
    let multiples: Vec<String> = wide.map(|(stride, piece)| format!("{stride}%{piece}")).collect();
    if multiples.is_empty() { String::new() } else { format!("specialize({})\n", multiples.join(", ")) }
}

/// Elements of C that threads store at a time where results leave through shared memory.
fn piece_of_c(problem: &Problem, choice: &Choice) -> i64 {
    let (dtype, align) = (problem.dtype(), problem.alignment_of_rows().c);
    match moved_c(problem, choice) {
        _ if starts::by_pieces(choice) => Alignment::MOST / dtype.bytes(),
        Moved::AsOne => align / dtype.bytes(),
        _ => copied_at_once(dtype, problem.shape.n, band(problem, choice), align),
    }
}

/// Blocks, or parts of them each for itself, that take every so many groups of rows, or a few each: A is copied to shared memory in the loop
/// over them, and the result leaves through shared memory, so that device memory sees whole lines, or straight from
/// registers.
pub(super) fn from_shared(problem: &Problem, choice: &Choice) -> String {
    let (threads, team) = (threads(problem, choice), team(problem, choice));
    let [pad_a, pad_b, pad_c] = paddings(problem, choice);
    let (of_a, of_c) = (moved_a(problem, choice), moved_c(problem, choice));
    let depth = depth(problem, choice);
    let row_of_a = staged(problem, choice).1 * problem.shape.k;
    let copied = copied_a(problem, choice);
    let piece_a = copied.piece;
    let piece_c = piece_of_c(problem, choice);
    // The innermost loop over blocks, and the steps that make it and the loop over the parts of a block that take groups
    // of their own. The blocks of one group of rows are neighbours: they read it at about the same time.
    let (block, parted) = (if bands(problem, choice) == 1 { "C.g" } else { "C.bj" }, in_parts(choice));
    let mut shared_out = String::new();
    if parted {
        // Those that parts of a block that makes room take at a time are neighbours.
        let of = if passing_groups(choice).is_some() { "blk" } else { "g" };
        shared_out += &format!("split(C.{of}, {}) -> {of}, w\n", choice.int("wm"));
    }
    if block == "C.bj" {
        shared_out += &format!("split(C.j, {}) -> bj, j\n", band(problem, choice));
    }
    let bands = if block == "C.bj" { "C.bj, " } else { "" };
    let parts = if parted { "C.w, " } else { "" };
    let asked = staging::min_blocks(choice);
    shared_out += &format!("reorder(C.g, {bands}{parts}C.blk, C.i, C.j)\n");
    shared_out += &match block {
        "C.bj" => format!("bind(C.g, block.y{asked})\nbind(C.bj, block.x)\n"),
        _ => format!("bind(C.g, block.x{asked})\n"),
    };
    if parted {
        shared_out += &format!("bind(C.w, threads@{team})\n");
    }
    let private = if parted { ", private" } else { "" };
    // What lies some way apart is copied in pieces where its rows start at multiples of them.
    let strided = |moved: Moved, piece: i64| if moved == Moved::Strided { piece } else { 1 };
    let specialize = specialized(&[("lda", strided(of_a, piece_a)), ("ldc", strided(of_c, piece_c))]);
    let in_rows = |moved: Moved, at: Moved| {
        if moved == at { format!(", rows={row_of_a}") } else { String::new() }
    };
    // The nest whose tiles are shared out, and the one that adds up the products.
    let (through_shared, in_bulk) = (stores_through_shared(choice), choice.word("store") == IN_BULK);
    let (tiled, sum) = if through_shared { ("acc", "mine") } else { ("C", "acc") };
    let (copy_in_registers, result) = if through_shared {
        let fetched = match (choice.flag(FETCH), choice.word(ENDS)) {
            (false, _) => String::new(),
            (true, SECTORS) => format!("fetch_ends(C.i, {team})\n"),
            (true, COPIES_BEHIND) => format!("fetch_ends(C.i, {team}, by=copies, behind=As)\n"),
            (true, ends) => format!("fetch_ends(C.i, {team}, by={ends})\n"),
        };
        let out = format!(
            "{fetched}fuse(C.i, C.j) -> f
{whole}split(C.f, {piece_c}{before}) -> f, e
split(C.f, {team}) -> u, t
reorder(C.t, C.u, C.e)
bind(C.t, threads)
unroll(C.u)
tail(C.u, hoist)
{vector}",
            before = starts::begun_before(problem, choice),
            whole = if in_bulk { "bulk_store(C.f)\n" } else { "" },
            vector = if piece_c > 1 { "vectorize(C.e)\n" } else { "" },
        );
        ("cache_write(acc, reg) -> mine\n", out)
    } else {
        ("", String::new())
    };
    let place = if through_shared {
        format!("set_scope(acc, shared)\ncompute_at(acc, C.blk{private})\n{}", staging::pad("acc", pad_c))
    } else {
        "set_scope(acc, reg)\n".to_string()
    };
    // Where blocks do not stay, it is on its way together with the rows.
    let together = takes_one_group(choice) && !parted && !choice.flag(staging::SPLIT_ONCE);
    let small_at = if together { "C.blk" } else { block };
    let [tiles, products, unrolled] = match choice.word("unit") {
        "mma" => by_matrix_units(problem, choice, [small_at, tiled, sum]),
        _ => by_tiles(problem, choice, [small_at, tiled, sum]),
    };
    // The loop in which rows of A are copied, and the steps that make it: once for each group, or piece after piece.
    let (copied_at, across, [before, after]) = if take_turns(choice) {
        ("C.blk".to_string(), ", across=C.w", [String::new(), tiles])
    } else if depth < problem.shape.k {
        let pieces = format!(
            "split({sum}.k, {terms}) -> ko, k
reorder({sum}.ko, {p}{sum}.i, {sum}.j, {sum}.k)
",
            terms = wider(problem, choice) * depth,
            p = over_products(problem, choice, sum),
        );
        // The first piece of a group is on its way while the last one of the group before is multiplied, if there was one.
        let across = if takes_one_group(choice) { "" } else { ", across=C.blk" };
        (format!("{sum}.ko"), across, [tiles + &pieces, String::new()])
    } else {
        ("C.blk".to_string(), "", [String::new(), tiles])
    };
    // The small matrix in shared memory.
    let small = match numbers(problem, choice) {
        Numbers::Expanded => "set_scope(Bs, shared)\n".to_string(),
        _ => format!("cache_read(B, {sum}, shared) -> Bs\n"),
    } + if choice.flag(staging::SPLIT_ONCE) { "store_split(Bs)\n" } else { "" };
    let (small_dtype, small_extents) = small_stage(problem, choice);
    // Of what fragments are made where three real products share them, they are made later.
    let read_a = if makes_fragments(problem, choice) {
        String::new()
    } else {
        format!("cache_read(As, {sum}, reg{}) -> a\n", in_rows(of_a, Moved::AsOne))
    };
    format!(
        "{specialize}{copy_in_registers}cache_read(A, {sum}, shared{rows_in_shared}) -> As
{small}split(C.i, {group}) -> blk, i
{walk}{shared_out}{place}compute_at({sum}, C.blk)
{before}compute_at(As, {copied_at}{private})
{longer_a}{read_a}{after}{copy}{products}{order_b}{longer_b}{copy_b}{result}pipeline({copied_at}, {stages}, via={via}{across})
{unrolled}{in_place}{leaves}",
        small = small,
        rows_in_shared = in_rows(of_a, Moved::Rows),
        read_a = read_a,
        group = group(problem, choice),
        walk = {
            let parts = if parted { choice.int("wm") } else { 1 };
            match passing_groups(choice) {
                Some(groups) => format!("split(C.blk, {}) -> g, blk\n", groups * parts),
                None => format!("split(C.blk, {}) -> blk, g\n", choice.int("blocks") * parts),
            }
        },
        longer_a = staging::pad("As", pad_a),
        order_b = match Small::of(problem, choice, small_extents.1) {
            Some(Small::InOrder) => {
                let apart = banks::columns_apart(choice);
                format!("storage_order(Bs, r, c%{apart}, c/{apart})\n")
            }
            _ => String::new(),
        },
        longer_b = staging::pad("Bs", pad_b),
        copy_b = staging::copied_once("Bs", small_dtype, small_extents, threads),
        copy = copied.steps("As", choice.flag(staging::KEEPS_PLACE)),
        stages = choice.int("stages"),
        via = staging::via(choice),
        in_place = if choice.flag(IN_PLACE) { "storage_share(acc, As)\n" } else { "" },
        // What leaves in bulk does so from where it lies at last.
        result = if in_bulk { "" } else { &result },
        leaves = if in_bulk { &result } else { "" },
    )
}

/// The steps that share out the nest `tiled` among warps, those for the products that `sum` adds up, and those that
/// unroll. The small matrix is brought to the shared memory of each `block` as soon as it is known what a step reads of
/// it, and what lies behind its ends is then zero there.
fn by_matrix_units(problem: &Problem, choice: &Choice, [block, tiled, sum]: [&str; 3]) -> [String; 3] {
    let WarpTile { high, rows, columns, .. } = warp_tile(problem, choice);
    let (instruction, numbers, wider) =
        (choice.word("instruction"), numbers(problem, choice), wider(problem, choice));
    let dtype = staged(problem, choice).0;
    let [of_sum, of_tiled] = [sum, tiled].map(|stage| over_products(problem, choice, stage));
    // What is stored of C has no products of its own.
    let of_tiled = if tiled == "C" { String::new() } else { of_tiled };
    let of_a = if makes_fragments(problem, choice) { "a.io" } else { "a.ro" };
    let of_b = if matches!(numbers, Numbers::Three | Numbers::Embedded) { "b.jo" } else { "b.co" };
    let below = if rows > high { format!(", {of_a}, {tiled}.io") } else { String::new() };
    let beside = if columns > ACROSS * banks::columns_apart(choice) {
        format!(", {of_b}, {tiled}.jo")
    } else {
        String::new()
    };
    // Results that go straight from registers to C are whole numbers there.
    let (of_tiled_row, whole) = if tiled == "C" { (columns / wider, wider == 1) } else { (columns, true) };
    let pairs = if pairs::of_complex(choice) {
        staging::two_at_once(tiled)
    } else if whole && banks::columns_apart(choice) == 1 && pieces_are_aligned(problem, choice, 2) {
        staging::pairs(tiled, if wider == 1 { problem.dtype() } else { dtype }, wider * problem.shape.n)
    } else {
        String::new()
    };
    let warps = if in_parts(choice) {
        format!(
            "split({tiled}.j, {of_tiled_row}) -> wn, j
reorder({tiled}.wn, {of_tiled}{tiled}.i, {tiled}.j)
bind({tiled}.wn, threads@32)
"
        )
    } else {
        format!(
            "split({tiled}.i, {rows}) -> wm, i
split({tiled}.j, {of_tiled_row}) -> wn, j
reorder({tiled}.wm, {tiled}.wn, {of_tiled}{tiled}.i, {tiled}.j)
bind({tiled}.wm, {tiled}.wn, threads@32)
"
        )
    };
    let fragments = fragments(makes_fragments(problem, choice), numbers, block, sum);
    let three = numbers == Numbers::Three;
    let (steps, chain) = (steps_of_a_row(problem, choice), chain(problem, choice));
    // Threads add to the sum what matrix units have added up of some of the steps.
    let (chains, of_chains) = if chain < steps {
        let together = chain / banks::terms_apart(choice);
        (format!("split({sum}.ks, {together}) -> kc, ks\n"), format!("{sum}.kc, "))
    } else {
        Default::default()
    };
    let rest = match (choice.word(REST) == "threads", chain < steps) {
        (true, true) => format!("tail({sum}.kc, threads)\n"),
        (true, false) => format!("tail({sum}.ks, threads)\n"),
        (false, _) => String::new(),
    };
    let products = if three { format!(", a.p, b.p, {of_sum}{of_tiled}") } else { String::new() };
    let apart = Apart::of(choice, [tiled, sum]);
    [
        warps + &format!("compute_at({sum}, {tiled}.wn)\n"),
        format!(
            "split({sum}.k, {at_a_time}) -> ks, k
{chains}reorder({of_chains}{sum}.ks, {of_sum}{sum}.i, {sum}.j, {sum}.k)
{fragments}{apart}split({sum}.i, {high}) -> mi, i
split({sum}.j, {ACROSS}) -> ni, j
reorder({sum}.ks, {of_sum}{steps}{sum}.mi, {beside}{sum}.ni, {sum}.i, {sum}.j, {sum}.k)
tensorize({sum}.i, mma_{instruction}_{dtype})
{bases}{rest}",
            bases = staging::lane_bases(choice, &["a", sum]),
            at_a_time = banks::terms_at_a_time(problem, choice),
            apart = apart.steps,
            steps = apart.over_terms,
            beside = apart.over_columns,
        ),
        format!(
            "{pairs}unroll({of_chains}{sum}.ks, {sum}.mi, {sum}.ni{below}{beside}{apart}{products})\n",
            products = products.trim_end_matches(", "),
            apart = apart.unrolled,
        ),
    ]
}

/// Instructions whose terms or columns lie apart.
struct Apart {
    /// The steps by which fragments have such rows and columns.
    steps: String,
    /// The loop of products over instructions whose terms lie between each other's, as the beginning of a list of loops, and the one
    /// over those whose columns do.
    over_terms: String,
    over_columns: String,
    /// These loops and those of the stages around, as the end of a list.
    unrolled: String,
}

impl Apart {
    fn of(choice: &Choice, [tiled, sum]: [&str; 2]) -> Apart {
        let (terms, columns) = (banks::terms_apart(choice), banks::columns_apart(choice));
        let (mut of_b, mut rows, mut over_b) = (String::new(), "r".to_string(), String::new());
        let mut of_columns = "c".to_string();
        let mut apart = Apart {
            steps: String::new(),
            over_terms: String::new(),
            over_columns: String::new(),
            unrolled: String::new(),
        };
        if terms > 1 {
            apart.steps += &format!(
                "split(a.c, {terms}) -> c, v
reorder(a.v, a.r, a.c)
storage_order(a, r, c%{terms}, c/{terms})
split({sum}.k, {terms}) -> k, q
"
            );
            of_b += &format!("split(b.r, {terms}) -> r, q\n");
            rows = format!("r%{terms}, r/{terms}");
            over_b += "b.q, ";
            apart.over_terms = format!("{sum}.q, ");
            apart.unrolled += &format!(", a.v, b.q, {sum}.q");
        }
        if columns > 1 {
            apart.steps += &format!(
                "split({sum}.j, {columns}) -> j, v
storage_order({sum}, r, c%{columns}, c/{columns})
split({tiled}.j, {columns}) -> j, v
reorder({tiled}.v, {tiled}.i, {tiled}.j)
"
            );
            of_b += &format!("split(b.c, {columns}) -> c, v\n");
            of_columns = format!("c%{columns}, c/{columns}");
            over_b += "b.v, ";
            apart.over_columns = format!("{sum}.v, ");
            apart.unrolled += &format!(", b.v, {sum}.v, {tiled}.v");
        }
        if !of_b.is_empty() {
            apart.steps +=
                &format!("{of_b}reorder({over_b}b.r, b.c)\nstorage_order(b, {rows}, {of_columns})\n");
        }
        apart
    }
}

/// The steps that make the fragments of matrix units, and bring the small matrix to shared memory: where a fragment is more
/// than a copy of what is staged, it is made of that as soon as all of it is there.
fn fragments(made: bool, numbers: Numbers, block: &str, sum: &str) -> String {
    let precomputed = format!("precompute({sum}.ks, 1) -> a\n");
    // What is made of rows can be asked for when the small matrix has its place.
    let [read_a, made_a] = match made {
        true => [String::new(), precomputed],
        false => [format!("compute_at(a, {sum}.ks)\n"), String::new()],
    };
    match numbers {
        Numbers::Three | Numbers::Embedded => format!(
            "{read_a}compute_at(Bs, {block})
{made_a}precompute({sum}.ks, 2) -> b
storage_order(b, c, r)
"
        ),
        _ => format!(
            "{read_a}{made_a}cache_read(Bs, {sum}, reg) -> b
compute_at(b, {sum}.ks)
compute_at(Bs, {block})
"
        ),
    }
}

/// The loop of a stage over the three real products that make a complex one, as the beginning of a list of loops.
fn over_products(problem: &Problem, choice: &Choice, stage: &str) -> String {
    if is_three(problem, choice) { format!("{stage}.p, ") } else { String::new() }
}

/// Whether so many columns of what is added up that go straight from registers to C lie at a multiple of their size in each
/// of its rows.
pub(super) fn pieces_are_aligned(problem: &Problem, choice: &Choice, piece: i64) -> bool {
    let wider = wider(problem, choice);
    let bytes = piece * problem.dtype().bytes() / wider;
    let aligned = stores_through_shared(choice) || bytes <= problem.alignment_of_rows().c;
    aligned && wider * problem.shape.n % piece == 0
}

/// The same for threads. They write pieces where rows of the result consist of such.
fn by_tiles(problem: &Problem, choice: &Choice, [block, tiled, sum]: [&str; 3]) -> [String; 3] {
    let tiles = Tiles::of(problem, choice);
    let Tiles { down, across, piece } = tiles;
    let (at_once, steps) = (terms_at_once(problem, choice), choice.int("steps").max(1));
    let wide = |step: &str, of: i64| if of > 1 { format!("vectorize({step})\n") } else { String::new() };
    let (read, dtype) = (tiles.at_once(problem.dtype()), problem.dtype());
    let whole = piece == read && pieces_are_aligned(problem, choice, piece);
    // Tiles that are no piece of 16 bytes begin with one, and are read in such.
    let (apart_in_b, read_b) = match tiles.step(dtype) - piece {
        _ if piece == read => (String::new(), wide("b.c", piece)),
        longer => (
            if longer > 0 { format!("storage_align(Bs, c/{piece}, {longer})\n") } else { String::new() },
            format!(
                "split(b.c, {read}) -> c, e\n{}vectorize(b.e)\n",
                if piece % read > 0 { "tail(b.c, peel)\n" } else { "" }
            ),
        ),
    };
    // The loop over the terms that are read at once; of several that are unrolled, the compiler reads the later ones
    // while it multiplies the earlier. What steps leave over stands apart, and has no more terms than there are.
    let whole_steps = depth(problem, choice) % (steps * at_once) == 0;
    let (split, read_in) = if steps > 1 {
        let split = format!(
            "split({sum}.k, {}) -> ks, k
split({sum}.k, {at_once}) -> kk, k
reorder({sum}.ks, {sum}.kk, {sum}.k, {sum}.i, {sum}.j)
{rest}",
            steps * at_once,
            rest = if whole_steps {
                String::new()
            } else {
                format!("tail({sum}.ks, peel)\ntail({sum}.kk, guard)\n")
            },
        );
        (split, format!("{sum}.kk"))
    } else {
        let split = format!(
            "split({sum}.k, {at_once}) -> ks, k
reorder({sum}.ks, {sum}.k, {sum}.i, {sum}.j)
"
        );
        (split, format!("{sum}.ks"))
    };
    let (in_pairs, lanes) = staging::interleaved(tiled, across, choice.flag(staging::INTERLEAVED));
    [
        format!(
            "split({tiled}.i, {down}) -> vi, it
split({tiled}.j, {apart}) -> vj, j
split({tiled}.j, {piece}) -> jt, j
{in_pairs}reorder({tiled}.vi, {tiled}.vj, {lanes}, {tiled}.j)
bind({tiled}.vi, vthread)
bind({tiled}.vj, vthread)
bind({lanes}, threads)
compute_at({sum}, {innermost})
",
            apart = piece * across,
            innermost = lanes.last().map_or("", |l| l),
            lanes = lanes.join(", "),
        ),
        format!(
            "{split}compute_at(a, {read_in})
cache_read(Bs, {sum}, reg) -> b
compute_at(b, {sum}.k)
compute_at(Bs, {block})
{apart_in_b}{}",
            wide("a.c", at_once),
        ),
        format!(
            "{read_b}{}unroll({steps}{sum}.k, {sum}.i, {sum}.j)\n",
            if whole { wide(&format!("{tiled}.j"), piece) } else { String::new() },
            steps = if steps > 1 { format!("{sum}.kk, ") } else { String::new() },
        ),
    ]
}
