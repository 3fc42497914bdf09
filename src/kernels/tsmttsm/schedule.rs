//! The schedules of the three forms.

use super::border;
use super::boxes;
use super::direct::{self, is_direct};
use super::mapping::{
    self, Threads, WHOLE, aligned_for, copied, covered, one_copy, padding, pieces, read, rows_at_once,
    rows_in_a_row, rows_of_a_panel, rows_of_a_thread, slices_of_a_group, tiled_columns,
};
use super::reduction::{self, Parts};
use super::runs;
use super::sets;
use super::turned::Dealt;
use super::warps::{self, EVEN, OMIT, warp_tile};
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ACROSS, Copied, Moved, WarpTile, numbers};
use crate::problem::{Op, Problem};

pub(super) fn by_threads(problem: &Problem, choice: &Choice) -> String {
    let Threads { mt, nt, slices, .. } = Threads::of(problem, choice);
    let (tm, tn) = (choice.int("tm"), choice.int("tn"));
    let Parts { split, taken_by: slice, last, .. } = reduction::of_slices(problem, choice, "");
    let mapping = if choice.flag("transposed") {
        format!(
            "split({slice}.i, {mt}) -> i, it
split({slice}.j, {nt}) -> j, jt
reorder({slice}.i, {slice}.j, {slice}.s, {slice}.it, {slice}.jt)
bind({slice}.i, vthread)
bind({slice}.j, vthread)
"
        )
    } else {
        format!(
            "split({slice}.i, {tm}) -> it, i
split({slice}.j, {tn}) -> jt, j
reorder({slice}.s, {slice}.it, {slice}.jt, {slice}.i, {slice}.j)
"
        )
    };
    let (second, nth) = if problem.same { ("A", FIRST_READ) } else { ("B", "") };
    let overlap = if choice.flag("leapfrog") { "pipeline(mine.ko, 2, via=registers)\n" } else { "" };
    // Loads of rows that are unrolled need no value of the rows before, so they are under way together.
    let [rows, each, unrolled] = match rows_at_once(choice) {
        1 => [format!("split(acc.k, {slices}) -> ko, s\n"), "mine.ko".to_string(), String::new()],
        rows => [
            format!("split(acc.k, {}) -> ko, k\nsplit(acc.k, {slices}) -> u, s\n", rows * slices),
            "mine.u".to_string(),
            "mine.u, ".to_string(),
        ],
    };
    format!(
        "{rows}{split}{mapping}bind({slice}.s, {slice}.it, {slice}.jt, threads)
compute_at(mine, {slice}.jt)
reorder(mine.ko, {unrolled}mine.i, mine.j)
cache_read(A, mine, reg{nth}) -> a
compute_at(a, {each})
cache_read({second}, mine, reg) -> b
compute_at(b, {each})
unroll({unrolled}a.c, b.c, mine.i, mine.j)
{overlap}{last}"
    )
}

pub(super) fn by_threads_from_shared(problem: &Problem, choice: &Choice) -> String {
    let Threads { mt, nt, .. } = Threads::of(problem, choice);
    let slices = slices_of_a_group(problem, choice);
    let (tm, tn) = (choice.int("tm"), choice.int("tn"));
    let (depth, stages) = (choice.int("depth"), choice.int("stages"));
    let transposed = choice.flag("transposed");
    let [of_a, of_b] = pieces(problem, choice);
    let panel = choice.flag("panel");
    let in_a_row = rows_in_a_row(problem, choice);
    let reads_of_rows = || {
        if choice.flag(WHOLE) {
            "vectorize(a.v)\nunroll(a.p)\nvectorize(b.v)\nunroll(b.p)\n".to_string()
        } else {
            read_in_pieces("a", "c", of_a) + &read_in_pieces("b", "c", of_b)
        }
    };
    // The loop over panels is short enough as it is; that over rows is unrolled, as far as is said.
    let [to_panels, row, reads, unrolled] = if panel {
        [
            format!("split(mine.k, {}) -> k, r\n", rows_of_a_panel(problem, choice)),
            "mine.r, ".to_string(),
            format!(
                "{}unroll(b.r)\n{}",
                read_in_pieces("a", "e", 16 / problem.dtype().bytes()),
                read_in_pieces("b", "c", of_b)
            ),
            "mine.r".to_string(),
        ]
    } else if in_a_row < rows_of_a_thread(problem, choice) {
        let split = format!("split(mine.k, {in_a_row}) -> k, r\n");
        [split, "mine.r, ".to_string(), reads_of_rows(), "mine.r".to_string()]
    } else {
        [String::new(), String::new(), reads_of_rows(), "mine.k".to_string()]
    };
    // A panel is read by the loop over panels, a row by the one that is unrolled.
    let at = if panel { "mine.k" } else { unrolled.as_str() };
    // Those of a block that add up their sums are bound to threads as those that read rows themselves; its loop is that of another stage.
    let together = sets::come_together(choice);
    let Parts { split, taken_by: slice, block, bind, last } = if together {
        reduction::of_slices(problem, choice, &format!("split(part.k, {slices}) -> k, s\n"))
    } else {
        reduction::of_sets(problem, choice, slices)
    };
    let block = if together { String::new() } else { format!("{block}, ") };
    // A thread that takes all rows of C has none that are far apart.
    let far_apart: &[&str] = match (transposed, panel) {
        (false, _) => &[],
        (true, true) => &["vj"],
        (true, false) => &["vi", "vj"],
    };
    let far_apart: Vec<String> = far_apart.iter().map(|l| format!("{slice}.{l}")).collect();
    // All threads that share a panel out read the same of it: pairs of them stand side by side.
    let (in_pairs, lanes) = if mapping::in_squares(problem, choice) {
        staging::in_squares(slice)
    } else {
        staging::interleaved(slice, nt, !panel && choice.flag(staging::INTERLEAVED))
    };
    let innermost = lanes.last().cloned().unwrap_or_default();
    let lanes = lanes.join(", ");
    let order = format!(
        "{in_pairs}reorder({block}{listed}{slice}.s, {lanes}, {slice}.i, {slice}.j)\n{bound}",
        listed = far_apart.iter().map(|l| format!("{l}, ")).collect::<String>(),
        bound = far_apart.iter().map(|l| format!("bind({l}, vthread)\n")).collect::<String>(),
    );
    let Staged { specialize, copies, groups } = staged(problem, choice, at, &Default::default());
    format!(
        "{specialize}split({sums}.k, {depth}) -> ko, k
{split}{copies}{rows_of_c}{columns_of_c}{order}{bind}bind({slice}.s, {lanes}, threads)
compute_at(mine, {innermost})
{to_panels}reorder(mine.ko, mine.k, {row}mine.i, mine.j)
{groups}{reads}pipeline(mine.ko, {stages}, via={via})
unroll({unrolled}, mine.i, mine.j, {slice}.i, {slice}.j)
{last}",
        sums = reduction::of_rows(problem, choice),
        via = staging::via(choice),
        rows_of_c = shared_out(slice, "i", tm, mt, of_a, transposed && !panel),
        columns_of_c = shared_out(slice, "j", tn, nt, of_b, transposed),
    )
}

pub(super) fn by_matrix_units(problem: &Problem, choice: &Choice) -> String {
    let WarpTile { high, terms, rows, columns } = warp_tile(problem, choice);
    let depth = choice.int("depth");
    let Parts { split, taken_by: slice, block, bind, last } =
        reduction::of_sets(problem, choice, choice.int("wk"));
    let (instruction, dtype) = (choice.word("instruction"), read(problem, choice).dtype());
    // What is made of rows is conjugated already.
    let conjugated = problem.layout.a == Op::ConjugateTranspose && !mapping::makes_fragments(problem, choice);
    let conjugate = if dtype.is_complex() && conjugated { "_conj" } else { "" };
    let of_border = border::computed(problem, choice);
    let (Staged { specialize, copies, groups }, ahead) = if is_direct(choice) {
        let [groups, ahead] = direct::reads(problem, choice);
        (Staged { specialize: String::new(), copies: String::new(), groups }, ahead)
    } else {
        let ahead = format!("pipeline(mine.ko, {}, via={})\n", choice.int("stages"), staging::via(choice));
        (staged(problem, choice, "mine.ks", &of_border.readers), ahead)
    };
    // Atomics take one element each.
    let pairs = if slice == "slice" {
        staging::pairs(slice, dtype, covered(problem, choice)[1] - border::border(problem, choice)[1])
    } else {
        String::new()
    };
    // The loop over the three products that share tiles, if there are several.
    let three = numbers(problem, choice) == Numbers::Three;
    let [p, of_slice] =
        ["mine", slice].map(|stage| if three { format!("{stage}.p, ") } else { String::new() });
    let fragments = if mapping::makes_fragments(problem, choice) {
        "precompute(mine.ks, 1) -> a\nprecompute(mine.ks, 2) -> b\nstorage_order(b, c, r)\n"
    } else {
        "storage_order(a, c, r)\n"
    };
    let steps = rows_of_instructions("mine", terms, mapping::apart(choice));
    let [along_m, along_n] = if choice.flag(EVEN) {
        [("wm", high), ("wn", ACROSS)]
            .map(|(warps, tile)| format!("nparts={}, even={tile}", choice.int(warps)))
    } else {
        [rows, columns].map(|tile| tile.to_string())
    };
    let rotate = if warps::rotated(problem, choice) {
        let further = if border::is_turned(choice) { Dealt::of(problem, choice).further } else { 0 };
        let further = if further > 0 { format!(", {further}") } else { String::new() };
        format!("rotate({slice}.wn, {slice}.wm{further})\n")
    } else {
        String::new()
    };
    let [omit, versions] = if choice.flag(OMIT) { [", omit=unread", "unswitch(mine.ks)\n"] } else { [""; 2] };
    format!(
        "{specialize}split(acc.k, {depth}) -> ko, k
{split}{copies}split({slice}.i, {along_m}) -> wm, i
split({slice}.j, {along_n}) -> wn, j
reorder({block}, {slice}.s, {slice}.wm, {slice}.wn, {of_slice}{slice}.i, {slice}.j)
{bind}bind({slice}.s, {slice}.wm, {slice}.wn, threads@32)
{rotate}compute_at(mine, {slice}.wn)
{steps}reorder(mine.ko, mine.ks, {p}mine.i, mine.j, mine.k)
{steps_of_border}{groups}{fragments}split(mine.i, {high}) -> mi, i
split(mine.j, {ACROSS}) -> ni, j
reorder(mine.ks, {p}mine.mi, mine.ni, mine.i, mine.j, mine.k)
tensorize(mine.i, mma_{instruction}_{dtype}{conjugate}{omit})
{bases}{instructions_of_border}{ahead}{versions}{versions_of_border}{pairs}unroll(mine.ks, {p}mine.mi, mine.ni{unrolled}{unrolled_of_border})
{last}",
        bases = staging::lane_bases(choice, &["a", "b"]),
        steps_of_border = of_border.steps,
        instructions_of_border = of_border.instructions,
        versions_of_border = of_border.versions,
        unrolled_of_border = of_border.unrolled,
        unrolled = unrolled_tiles(problem, choice, slice, [rows > high, columns > ACROSS]),
    )
}

/// The steps that divide the rows of a group among instructions of a stage, of so many terms: neighbours, or rows that are some way
/// apart, so that the four that lanes read at once lie in different banks.
///
/// Of each `4 apart` rows, the instruction `q` takes those with the numbers `apart t + terms/4 q + h`, as its terms `4 h + t`:
/// lanes have the terms `t` and `t + 4`. An instruction of more terms takes several times so many rows.
pub(super) fn rows_of_instructions(stage: &str, terms: i64, apart: i64) -> String {
    if apart == 1 {
        return format!("split({stage}.k, {terms}) -> ks, k\n");
    }
    let (rows, of_a_lane) = (4 * apart, terms / 4);
    if terms > rows {
        return format!(
            "split({stage}.k, {terms}) -> ks, k
split({stage}.k, {rows}) -> z, k
split({stage}.k, {apart}) -> t, q
reorder({stage}.z, {stage}.q, {stage}.t)
fuse({stage}.z, {stage}.q) -> h
fuse({stage}.h, {stage}.t) -> k
"
        );
    }
    format!(
        "split({stage}.k, {rows}) -> kc, k
split({stage}.k, {apart}) -> t, q
split({stage}.q, {of_a_lane}) -> q, h
reorder({stage}.kc, {stage}.q, {stage}.h, {stage}.t)
fuse({stage}.h, {stage}.t) -> k
fuse({stage}.kc, {stage}.q) -> ks
"
    )
}

/// The loops over the tiles of the fragments and of what is stored of C, where there are several along its rows or
/// columns, and over the three products that share them, if they do.
fn unrolled_tiles(problem: &Problem, choice: &Choice, slice: &str, several: [bool; 2]) -> String {
    let three = numbers(problem, choice) == Numbers::Three;
    let made = mapping::makes_fragments(problem, choice);
    let (of_a, of_b) = if made { ("a.io", "b.jo") } else { ("a.co", "b.co") };
    let mut loops = Vec::new();
    if three {
        loops.extend(["a.p".to_string(), "b.p".to_string(), format!("{slice}.p")]);
    }
    for (several, read, stored) in [(several[0], of_a, "io"), (several[1], of_b, "jo")] {
        if several {
            loops.extend([read.to_string(), format!("{slice}.{stored}")]);
        }
    }
    loops.iter().map(|l| format!(", {l}")).collect()
}

/// The steps by which a thread reads a fragment, whose innermost loop this is, so many elements at once.
fn read_in_pieces(fragment: &str, innermost: &str, at_once: i64) -> String {
    let wide = if at_once > 1 {
        format!("split({fragment}.{innermost}, {at_once}) -> {innermost}, v\nvectorize({fragment}.v)\n")
    } else {
        String::new()
    };
    wide + &format!("unroll({fragment}.{innermost})\n")
}

/// Where B is A, the fragments of A are read by the first of the two reads.
const FIRST_READ: &str = ", nth=1";

/// How the rows or columns of C are shared out among threads in a stage: the loops over them, those bound to virtual threads, and
/// the steps that make them from the loop `axis`. A thread's elements lie in pieces of `piece`, and the pieces side by
/// side, or as far apart as possible.
fn shared_out(stage: &str, axis: &str, tile: i64, threads: i64, piece: i64, transposed: bool) -> String {
    if transposed {
        format!(
            "split({stage}.{axis}, {}) -> v{axis}, {axis}\nsplit({stage}.{axis}, {piece}) -> {axis}t, {axis}\n",
            threads * piece
        )
    } else {
        format!("split({stage}.{axis}, {tile}) -> {axis}t, {axis}\n")
    }
}

/// The steps that bring groups of rows of both operands to shared memory, and rows of them to registers.
struct Staged {
    /// The step that tells products whose rows start at multiples of what is copied at a time from others.
    specialize: String,
    /// The steps that make copies of whole operands, before tiles are cut.
    copies: String,
    /// The steps that shrink them to groups of rows, which so many threads copy in the loop `mine.ko`, and to what is
    /// read of them in the loop `at`. In shared memory rows have as many elements as the tiles that read them.
    groups: String,
}

/// The steps for the stage `mine`, and for others that read the same of A, and of B.
fn staged(problem: &Problem, choice: &Choice, at: &str, readers: &[String; 2]) -> Staged {
    let read = read(problem, choice);
    let dtype = read.dtype();
    let [of_a, of_b] = copied(problem, choice);
    let keep_place = choice.flag(staging::KEEPS_PLACE);
    let mut aligned = Vec::new();
    let (mut copies, mut groups) = (String::new(), String::new());
    let [read_a, read_b] = aligned_for(problem, choice);
    let pieces_of = |fragment: &str| {
        let [of_a, of_b] = tiled_columns(problem, choice);
        let columns = if fragment == "a" { of_a } else { of_b };
        let piece = 16 / dtype.bytes();
        if choice.flag(WHOLE) { format!(", pieces={piece}, columns={columns}") } else { String::new() }
    };
    let [row_of_a, row_of_b] = mapping::rows_in_memory(problem, choice);
    let operands = [("A", "As", row_of_a, read_a, "lda", of_a), ("B", "Bs", row_of_b, read_b, "ldb", of_b)];
    let mut fragments =
        if one_copy(problem, choice) { vec![vec!["a", "b"]] } else { vec![vec!["a"], vec!["b"]] };
    if mapping::makes_fragments(problem, choice) {
        // Fragments hold what is made of the rows, or rows in another order.
        fragments.iter_mut().for_each(Vec::clear);
    }
    let fragments_and_readers = fragments.iter().zip(readers);
    for ((operand, tile, width, at_once, stride, copied), (fragments, readers)) in
        operands.into_iter().zip(fragments_and_readers)
    {
        // Where B is A, a copy of its own is that of one of the two reads.
        let (operand, nth) = match (problem.same, tile, fragments.len()) {
            (true, "As", 1) => ("A", FIRST_READ),
            (true, ..) => ("A", ""),
            _ => (operand, ""),
        };
        let Copied { moved, columns, piece, .. } = copied;
        if moved == Moved::AsOne {
            let rows_of = |fragment: &str| {
                // A panel is read as the one piece that it is.
                let whole = choice.flag("panel") && fragment == "a";
                if whole { String::new() } else { format!(", rows={width}{}", pieces_of(fragment)) }
            };
            let at_groups = format!("compute_at({tile}, mine.ko)\n{}", copied.steps(tile, keep_place));
            if runs::in_runs(choice) {
                // Once it is known which rows are read together.
                let [of_a, of_b] = runs::runs(problem, choice);
                let run = if tile == "As" { of_a } else { of_b };
                let columns =
                    if run.copied > run.rows { format!(", columns={}", run.copied) } else { String::new() };
                groups += &format!(
                    "cache_read({operand}, mine{readers}, shared, rows={rows}{columns}) -> {tile}\n{at_groups}{}",
                    staging::pad(tile, run.padding),
                    rows = run.rows
                );
            } else if readers.is_empty() {
                copies += &format!("cache_read({operand}, mine, shared) -> {tile}\n");
                copies += &each_read("mine", tile, fragments, &rows_of);
                groups += &format!("{}{at_groups}", computed_at(fragments, at));
            } else {
                // One copy for all that are computed together by then.
                copies += &each_read("mine", operand, fragments, &rows_of);
                let of_tiles = if fragments.is_empty() { "mine".to_string() } else { fragments.join(", ") };
                groups += &format!(
                    "{}cache_read({operand}, {of_tiles}{readers}, shared) -> {tile}\n{at_groups}",
                    computed_at(fragments, at)
                );
            }
            continue;
        }
        let rows = if moved == Moved::Rows { format!(", rows={width}") } else { String::new() };
        if moved == Moved::Strided && piece > 1 && !boxes::in_boxes(choice) {
            aligned.push(format!("{stride}%{piece}"));
        }
        copies += &format!("cache_read({operand}, mine, shared{rows}{nth}) -> {tile}\n");
        groups += &format!(
            "compute_at({tile}, mine.ko)
{}{}{}{}",
            copied.steps(tile, keep_place),
            staging::pad(tile, padding(choice, dtype, width, columns, at_once)),
            each_read("mine", tile, fragments, &|_| String::new()),
            computed_at(fragments, at),
        );
    }
    let specialize =
        if aligned.is_empty() { String::new() } else { format!("specialize({})\n", aligned.join(", ")) };
    Staged { specialize, copies, groups }
}

/// The steps that give each read of a tile by a stage a fragment in registers.
pub(super) fn each_read(
    stage: &str,
    tile: &str,
    fragments: &[&str],
    rows: &dyn Fn(&str) -> String,
) -> String {
    let several = if fragments.len() > 1 { FIRST_READ } else { "" };
    let nth = std::iter::once(several).chain(std::iter::repeat(""));
    let reads = fragments.iter().zip(nth);
    reads
        .map(|(f, nth)| format!("cache_read({tile}, {stage}, reg{rows}{nth}) -> {f}\n", rows = rows(f)))
        .collect()
}

fn computed_at(fragments: &[&str], at: &str) -> String {
    fragments.iter().map(|f| format!("compute_at({f}, {at})\n")).collect()
}
