//! Fragments of matrix instructions that lanes read straight from device memory (`unit=mma`, `staging=registers`).
//!
//! Rows that stand some way apart come to shared memory piece by piece, by as many asynchronous copies as loads would be, and the warps of a
//! block meet for each group of them. Lanes that read what their instructions want need neither: of a row they read eight neighbours together, so
//! that in complex128 a load takes whole lines. Where several warps share out C they find in the first-level cache what another has read.
//! With `leapfrog=true` the rows of the next group are on their way to registers while those of this one are multiplied.

use super::mapping;
use super::warps::warp_tile;
use crate::kernels::family::{Choice, Value};
use crate::kernels::staging::{self, Moved};
use crate::problem::{Alignment, Problem};

/// The parameter that says where rows are read from, and its values.
pub(super) const STAGING: &str = "staging";
pub(super) const SHARED: &str = "shared";
pub(super) const REGISTERS: &str = "registers";

/// Whether lanes read fragments straight from device memory.
pub(super) fn is_direct(choice: &Choice) -> bool {
    choice.word("unit") == "mma" && choice.word(STAGING) == REGISTERS
}

/// Whether rows are staged in shared memory. Where matrix units multiply and nothing is said, they are.
pub(super) fn is_staged(choice: &Choice) -> bool {
    match choice.word("unit") {
        "mma" => !is_direct(choice),
        _ => choice.word(STAGING) == SHARED,
    }
}

/// Where fragments may come from: what bulk copies bring to shared memory arrives there for nothing, so only other rows are worth reading
/// otherwise.
pub(super) fn stagings(problem: &Problem, choice: &Choice) -> Vec<Value> {
    let Alignment { a, b, .. } = problem.alignment();
    let in_bulk = mapping::moved_as(staging::BULK, problem, choice) == [Moved::AsOne; 2];
    if in_bulk && [a, b] == [Alignment::MOST; 2] { Vec::new() } else { vec![SHARED.into(), REGISTERS.into()] }
}

/// Elements of A and of B that a lane holds at a time: those of an instruction and of the next, or those of a group of rows and of the
/// next.
pub(super) fn held(problem: &Problem, choice: &Choice) -> i64 {
    let tile = warp_tile(problem, choice);
    let rows =
        if choice.flag("leapfrog") { choice.int("depth") / choice.int("wk").max(1) } else { tile.terms };
    2 * (tile.rows + tile.columns) * rows / 32
}

/// The steps by which lanes read fragments, and those by which they do so ahead. Where B is A, the fragments of A are read by the first of the
/// two reads.
pub(super) fn reads(problem: &Problem, choice: &Choice) -> [String; 2] {
    let (second, nth) = if problem.same { ("A", ", nth=1") } else { ("B", "") };
    let (at, ahead) = if choice.flag("leapfrog") {
        ("mine.ko", "pipeline(mine.ko, 2, via=registers)\n".to_string())
    } else {
        ("mine.ks", String::new())
    };
    let reads = format!(
        "cache_read(A, mine, reg{nth}) -> a
compute_at(a, {at})
cache_read({second}, mine, reg) -> b
compute_at(b, {at})
"
    );
    [reads, ahead]
}
