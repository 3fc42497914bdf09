//! How the parts of the sum come together.

use super::border;
use super::mapping::{area, areas, class_count, covered, owners, shares};
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{ceil, min_blocks, numbers};
use crate::problem::Problem;

/// The steps by which a sum becomes parts that come together again.
pub(super) struct Parts {
    /// Those that split the sum over the blocks, which are `acc.ko`, and over the slices or sets of warps of a block.
    /// They make the stage `mine`, which is what a thread adds up.
    pub(super) split: String,
    /// The stage that takes over what a thread has added up; its loops are shared out among threads.
    pub(super) taken_by: &'static str,
    /// The loop over the blocks, the innermost if there are several.
    pub(super) block: &'static str,
    /// The step that makes blocks of it where `split` does not: for after loops have been put in order.
    pub(super) bind: String,
    /// The steps that follow the main launch's.
    pub(super) last: String,
}

/// The launch that stores beta C first, where parts are added atomically to it: a block for each row.
const FIRST: &str = "bind(C.i0, block.x)
bind(C.j0, threads)
";

/// The steps by which so many threads share out the elements of C in a stage, whose loops end in `number`. Of a single row that has more
/// elements than there are threads they are its columns: which row one lies in is not to be asked.
fn elements(stage: &str, number: &str, threads: i64, [height, width]: [i64; 2]) -> String {
    if height == 1 && threads < width {
        return format!(
            "split({stage}.j{number}, {threads}) -> u{number}, t{number}
reorder({stage}.t{number}, {stage}.u{number})
bind({stage}.t{number}, threads)
"
        );
    }
    format!(
        "fuse({stage}.i{number}, {stage}.j{number}) -> e{number}
split({stage}.e{number}, {threads}) -> u{number}, t{number}
reorder({stage}.t{number}, {stage}.u{number})
bind({stage}.t{number}, threads)
"
    )
}

/// The parts of a sum over slices of threads, which are `s`. The slices of a block are added up in its shared memory,
/// by several threads for each element if there are as many. Where rows are staged, those of a group become slices by `taken`.
pub(super) fn of_slices(problem: &Problem, choice: &Choice, taken: &str) -> Parts {
    let (parts, reduction) = (choice.int("parts"), choice.word("reduction"));
    let area = area(problem, choice);
    let (owners, shares) = (owners(problem, choice), shares(problem, choice));
    // The sum over slices, and the stage that stores it.
    let (whole, result, split) = match reduction {
        "two-pass" => {
            ("part", "part", format!("split_reduce(acc.ko, {parts}, order=cyclic) -> part, g\n{taken}"))
        }
        "global" | "local" => (
            "part",
            "C",
            format!("split_reduce(acc.ko, {parts}, order=cyclic, combine=atomic) -> part, g\n{FIRST}"),
        ),
        _ => ("acc", "C", String::new()),
    };
    let asked = min_blocks(choice);
    let (block, blocks) = match (reduction, areas(problem, choice)) {
        ("two-pass", 1) => ("part.g", format!("bind(part.g, block.x{asked})\n")),
        ("global" | "local", 1) => ("C.g", format!("bind(C.g, block.x{asked})\n")),
        ("two-pass", _) => ("part.bj", over_areas("part", &["g"], &[], area, asked)),
        ("global" | "local", _) => ("C.bj", over_areas("C", &["g"], &[], area, asked)),
        _ => ("C.bj", over_areas("C", &[], &[], area, asked)),
    };
    if reduction == "local" {
        let (to_zero, to_result) = (elements("part", "0", owners, area), elements("C", "", owners, area));
        return Parts {
            split: format!(
                "{split}rfactor(part.s, combine=shared_atomic) -> mine
{blocks}compute_at(part, {block})
{to_zero}{to_result}set_scope(mine, reg)
"
            ),
            taken_by: "part",
            block,
            bind: String::new(),
            last: String::new(),
        };
    }
    let (in_registers, stored) = match reduction {
        "two-pass" => ("cache_write(part, reg) -> whole\n", "compute_at(whole, part.j)\n".to_string()),
        _ => ("", format!("set_scope({whole}, reg)\ncompute_at({whole}, C.j)\n")),
    };
    let [shared_out, share, elements_of_shares] = if shares > 1 {
        [
            format!(
                "split_reduce({whole}.s, {shares}, combine=shared, order=cyclic) -> share, q
cache_write(share, reg) -> some
"
            ),
            format!("compute_at(share, {block})\ncompute_at(some, share.j)\n"),
            format!(
                "fuse(share.i, share.j) -> e
split(share.e, {owners}) -> u, t
reorder(share.q, share.t, share.u)
bind(share.q, share.t, threads)
"
            ),
        ]
    } else {
        [String::new(), String::new(), String::new()]
    };
    Parts {
        split: format!(
            "{split}rfactor({whole}.s, combine=shared) -> slice
cache_write(slice, reg) -> mine
{shared_out}{in_registers}{blocks}{stored}{share}compute_at(slice, {block})
{elements_of_shares}{elements}",
            elements = elements(result, "", owners, area),
        ),
        taken_by: "slice",
        block,
        bind: String::new(),
        last: if reduction == "two-pass" { second_pass(problem, choice, None) } else { String::new() },
    }
}

/// The steps by which blocks share out areas of C in a stage: those of its loops `outer`, which are the parts of the sum
/// if it has them, stand outside the areas, and those of its loops `inner` inside. Blocks of one part are neighbours:
/// they read the same rows at about the same time, so device memory is asked for them once.
fn over_areas(stage: &str, outer: &[&str], inner: &[&str], [height, width]: [i64; 2], asked: &str) -> String {
    let order = [outer, &["bi", "bj"], inner, &["i", "j"]].concat();
    let order: Vec<String> = order.iter().map(|axis| format!("{stage}.{axis}")).collect();
    let parts: String = outer.iter().map(|axis| format!("bind({stage}.{axis}, block.z)\n")).collect();
    format!(
        "split({stage}.i, {height}) -> bi, i
split({stage}.j, {width}) -> bj, j
reorder({order})
{parts}bind({stage}.bi, block.y)
bind({stage}.bj, block.x{asked})
",
        order = order.join(", ")
    )
}

/// The parts of a sum over so many sets of threads, which share out the rows of a group. They stay apart until they are
/// read, or added to the result.
pub(super) fn of_sets(problem: &Problem, choice: &Choice, sets: i64) -> Parts {
    let (parts, rows) = (choice.int("parts"), choice.int("depth") / sets);
    let (several, asked) = (areas(problem, choice) > 1, min_blocks(choice));
    let bind = |stage| if several { String::new() } else { format!("bind({stage}.g, block.x{asked})\n") };
    let inner: &[&str] = if numbers(problem, choice) == Numbers::Three { &["s", "p"] } else { &["s"] };
    let over_areas = |stage| {
        if several { over_areas(stage, &["g"], inner, area(problem, choice), asked) } else { String::new() }
    };
    if choice.word("reduction") == "global" {
        return Parts {
            split: format!(
                "split_reduce(acc.ko, {parts}, order=cyclic, combine=atomic) -> part, g
split(part.k, {rows}) -> s, k
rfactor(part.s, combine=atomic) -> mine
set_scope(mine, reg)
{FIRST}{}",
                over_areas("C")
            ),
            taken_by: "C",
            block: if several { "C.bj" } else { "C.g" },
            bind: bind("C"),
            last: String::new(),
        };
    }
    let classes = class_count(problem, choice);
    let (block, bind) = match (classes > 1, several) {
        // The rows of a round of classes lie one behind the other: their blocks are neighbours.
        (true, _) => ("slice.g, slice.q", format!("bind(slice.g, block.y)\nbind(slice.q, block.x{asked})\n")),
        (false, true) => ("slice.bj", bind("slice")),
        (false, false) => ("slice.g", bind("slice")),
    };
    Parts {
        split: format!(
            "split_reduce({sums}.ko, {}, order=cyclic) -> part, g
split(part.k, {rows}) -> s, k
rfactor(part.s) -> slice
{}cache_write(slice, reg) -> mine
{}",
            parts / classes,
            border::partitioned(problem, choice),
            over_areas("slice"),
            sums = of_rows(problem, choice),
        ),
        taken_by: "slice",
        block,
        bind,
        last: second_pass(problem, choice, Some(sets)),
    }
}

/// The stage that adds up products of rows: the sums themselves, or those of each class.
pub(super) fn of_rows(problem: &Problem, choice: &Choice) -> &'static str {
    if class_count(problem, choice) > 1 { "each" } else { "acc" }
}

/// The launch that adds up the parts: a block for each row of C, in which several threads share out the parts of an
/// element and one adds up what they have, always in the same order. Where sets of threads have left their own parts
/// behind, these become one as they are read.
fn second_pass(problem: &Problem, choice: &Choice, sets: Option<i64>) -> String {
    let shares = second_pass_shares(problem, choice);
    // Where numbers come in parts, a row of C takes two rows of sums, and an element four sums, or two of one row.
    let (outer, unrolled) = match numbers(problem, choice) {
        Numbers::Whole => ("sub.t, sub.i, sub.j", "acc.t"),
        Numbers::Embedded | Numbers::Expanded => ("sub.t, sub.i, sub.j", "acc.j, acc.t"),
        Numbers::Parts => ("sub.t, sub.j, sub.i", "acc.i, acc.j, acc.t"),
        Numbers::Three => ("sub.t, sub.j, sub.p, sub.i", "acc.p, acc.t"),
    };
    // Parts are read together, as many as there are registers for, since each wait takes longer than the work.
    let parts = choice.int("parts") / class_count(problem, choice);
    let (of_a_thread, most) = (ceil(parts, shares), PARTS_AT_A_TIME / sets.unwrap_or(1));
    let together = ceil(of_a_thread, ceil(of_a_thread, most.max(4)));
    let as_they_are_read =
        if sets.is_some() { "set_scope(part, reg)\ncompute_at(part, sum.g)\nunroll(part.s)\n" } else { "" };
    let adds_up = format!(
        "split_reduce({sums}.g, {shares}, combine=shared, order=cyclic) -> sub, t
cache_write(sub, reg) -> sum
split(sum.g, {together}) -> go, g
",
        sums = of_rows(problem, choice),
    );
    if class_count(problem, choice) > 1 {
        // A block for each row of each class; and a launch that takes of each what belongs to C.
        return format!(
            "{adds_up}cache_write(each, reg) -> whole
bind(each.q, block.y)
bind(each.i, block.x)
bind(each.j, threads)
compute_at(whole, each.j)
compute_at(sub, each.i)
reorder(sub.t, sub.q, sub.i, sub.j)
bind(sub.t, sub.j, threads)
compute_at(sum, sub.j)
{as_they_are_read}unroll(sum.g, whole.t)
bind(C.i, block.x)
bind(C.j, threads)
set_scope(acc, reg)
compute_at(acc, C.j)
set_scope(rest, reg)
compute_at(rest, C.j)
unroll(acc.q)
"
        );
    }
    format!(
        "{adds_up}bind(C.i, block.x)
bind(C.j, threads)
set_scope(acc, reg)
compute_at(acc, C.j)
compute_at(sub, C.i)
reorder({outer})
bind(sub.t, sub.j, threads)
compute_at(sum, sub.j)
{as_they_are_read}unroll(sum.g, {unrolled})
"
    )
}

/// How many threads of the second pass share out the parts of an element of C.
pub(super) fn second_pass_shares(problem: &Problem, choice: &Choice) -> i64 {
    let [_, columns] = covered(problem, choice);
    let parts = choice.int("parts") / class_count(problem, choice);
    let most = (SECOND_PASS_THREADS / columns).min(parts).min(32);
    (0..=5).map(|e| 1 << e).rfind(|shares| *shares <= most).unwrap_or(1)
}

/// Parts of an element of C that a thread of the second pass reads at a time, those of all sets of threads counted.
pub(super) const PARTS_AT_A_TIME: i64 = 36;

/// Threads of a block that adds up parts, at most.
const SECOND_PASS_THREADS: i64 = 512;
