//! How the parts of the sum come together.

use super::mapping::{Threads, shares};
use crate::kernels::family::Choice;
use crate::problem::Problem;

/// The steps by which a sum becomes parts that come together again.
pub(super) struct Parts {
    /// Those that split the sum over the blocks, which are `acc.ko`, and over the slices or sets of warps of a block.
    /// They make the stage `mine`, which is what a thread adds up.
    pub(super) split: String,
    /// The stage that takes over what a thread has added up; its loops are shared out among threads.
    pub(super) taken_by: &'static str,
    /// The loop over the blocks.
    pub(super) block: &'static str,
    /// The steps that follow the main launch's.
    pub(super) last: String,
}

/// The launch that stores beta C first, where parts are added atomically to it.
const FIRST: &str = "fuse(C.i0, C.j0) -> e0
split(C.e0, 128) -> b0, t0
bind(C.b0, block.x)
bind(C.t0, threads)
";

/// The steps by which so many threads share out the elements of C in a stage, whose loops end in `number`.
fn elements(stage: &str, number: &str, threads: i64) -> String {
    format!(
        "fuse({stage}.i{number}, {stage}.j{number}) -> e{number}
split({stage}.e{number}, {threads}) -> u{number}, t{number}
reorder({stage}.t{number}, {stage}.u{number})
bind({stage}.t{number}, threads)
"
    )
}

/// The parts of a sum over slices of threads, which are `s`. The slices of a block are added up in its shared memory,
/// by several threads for each element if there are as many.
pub(super) fn of_slices(problem: &Problem, choice: &Choice) -> Parts {
    let parts = choice.int("parts");
    let Threads { area: [height, width], .. } = Threads::of(problem, choice);
    let threads = Threads::of(problem, choice).of_block();
    let (owners, shares) = (threads.min(height * width), shares(problem, choice));
    let split = match choice.word("reduction") {
        "two-pass" => format!("split_reduce(acc.ko, {parts}, order=cyclic) -> part, g\n"),
        "global" | "local" => {
            format!("split_reduce(acc.ko, {parts}, order=cyclic, combine=atomic) -> part, g\n{FIRST}")
        }
        _ => String::new(),
    };
    if choice.word("reduction") == "local" {
        let (to_zero, to_result) = (elements("part", "0", owners), elements("C", "", owners));
        return Parts {
            split: format!(
                "{split}rfactor(part.s, combine=shared_atomic) -> mine
bind(C.g, block.x)
compute_at(part, C.g)
{to_zero}{to_result}set_scope(mine, reg)
"
            ),
            taken_by: "part",
            block: "C.g",
            last: String::new(),
        };
    }
    // The sum over slices, the stage that stores it, the loop over blocks, and how each is made so.
    let (whole, result, block, steps) = match choice.word("reduction") {
        "two-pass" => (
            "part",
            "part",
            "part.g",
            "cache_write(part, reg) -> whole\nbind(part.g, block.x)\ncompute_at(whole, part.j)\n".to_string(),
        ),
        "global" => (
            "part",
            "C",
            "C.g",
            "bind(C.g, block.x)\nset_scope(part, reg)\ncompute_at(part, C.j)\n".to_string(),
        ),
        _ => (
            "acc",
            "C",
            "C.bj",
            format!(
                "split(C.i, {height}) -> bi, i
split(C.j, {width}) -> bj, j
reorder(C.bi, C.bj, C.i, C.j)
bind(C.bi, block.y)
bind(C.bj, block.x)
set_scope(acc, reg)
compute_at(acc, C.j)
"
            ),
        ),
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
{shared_out}{steps}{share}compute_at(slice, {block})
{elements_of_shares}{elements}",
            elements = elements(result, "", owners),
        ),
        taken_by: "slice",
        block,
        last: if block == "part.g" { second_pass(problem, choice) } else { String::new() },
    }
}

/// The parts of a sum over sets of threads, which have `rows` rows of a group each. They stay apart until they are
/// read, or added to the result.
pub(super) fn of_sets(problem: &Problem, choice: &Choice, rows: i64) -> Parts {
    let parts = choice.int("parts");
    if choice.word("reduction") == "global" {
        return Parts {
            split: format!(
                "split_reduce(acc.ko, {parts}, order=cyclic, combine=atomic) -> part, g
split(part.k, {rows}) -> s, k
rfactor(part.s, combine=atomic) -> mine
set_scope(mine, reg)
{FIRST}"
            ),
            taken_by: "C",
            block: "C.g",
            last: String::new(),
        };
    }
    Parts {
        split: format!(
            "split_reduce(acc.ko, {parts}, order=cyclic) -> part, g
split(part.k, {rows}) -> s, k
rfactor(part.s) -> slice
cache_write(slice, reg) -> mine
"
        ),
        taken_by: "slice",
        block: "slice.g",
        last: format!("{}{SETS_AS_THEY_ARE_READ}", second_pass(problem, choice)),
    }
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
