//! The mutants of rungs that nobody may catch, because they are right, and those whose fault no order of threads shows:
//! each with the reason.

use warpwright_sim::mutate::explain::{Explained, explained};

const NEVER: &str = "a remainder is never -1, so the host always takes the version that serves every size";
const NEXT_TILE: &str = "what is fetched goes into another slot of the ring, or into registers, and no barrier stands between the two";

/// Of the mutants with seed 1, one of each kind and rung.
pub const SURVIVORS: &[Explained] = &[
    explained("sgemm_coalesced", "guard off by one", "if M%32 == 0", NEVER),
    explained(
        "sgemm_coalesced",
        "ownership transposed",
        "for ty in threads(32@32), tx in threads(32@1)",
        "threads exchange nothing, so it does not matter which of them computes which element",
    ),
    explained(
        "sgemm_coalesced",
        "fill dropped",
        "acc[0, 0] +=",
        "sums of rows past the last are not stored, whatever they are made of",
    ),
    explained("sgemm_vectorized", "guard off by one", "if M%128 == 0", NEVER),
    explained("sgemm_double_buffering", "neighbours swapped", "if ko + 1 < ceil(K, 16)", NEXT_TILE),
    explained("sgemm_padded_tile", "guard off by one", "if M%128 == 0", NEVER),
    explained(
        "sgemm_async_copies",
        "extent off by one",
        "bx in block.x(ceil(N, 256) + 1)",
        "a block past the last column copies zeros and stores nothing",
    ),
    explained(
        "hgemm_cp_async",
        "swizzle on one side only",
        "alloc Bs: bf16[3, 32, 128]",
        "copies and matrix loads go through the layout, and pieces of 8 stay together: only banks differ",
    ),
    explained(
        "hgemm_cp_async",
        "reduction done twice",
        "nothing => ldmatrix_x4(a[ai, :, :]",
        "a fragment that is loaded again is the same",
    ),
    explained(
        "hgemm_warpgroups",
        "await of the wrong phase",
        "await(empty[ko - 4]) => await(empty[ko - 3])",
        "waiting for a later release keeps at most three slots of the ring full: slower, and right",
    ),
    explained("hgemm_warpgroups", "guard off by one", "if lda%8 == 0", NEVER),
];

const SAME_BYTES: &str = "both copies bring the same bytes, so it does not matter that nothing orders them";
const BOTH_ROLES: &str = "threads 128 to 159 would be both, and only the first producer does anything, so no thread does two things";

/// Of the same mutants, those that are refused or have a hazard that no order of threads shows.
pub const UNSEEN: &[Explained] = &[
    explained(
        "sgemm_coalesced",
        "partition does not divide",
        "for ty in threads(32@64)",
        "refused for 2048 threads in a block: what fits into a multiprocessor is not looked at here",
    ),
    explained(
        "sgemm_padded_tile",
        "layout not injective",
        "131*r + c",
        "refused for the alignment of a vector access, which is made element by element here",
    ),
    explained("sgemm_async_copies", "reduction done twice", "nothing => cp_async16_f32", SAME_BYTES),
    explained("sgemm_small_tile", "reduction done twice", "nothing => cp_async16_f64", SAME_BYTES),
    explained(
        "hgemm_cp_async",
        "fragment of the wrong operand",
        "alloc a: bf16[4, 16, 16]",
        "refused because instructions find `a` by their own fragments, whatever is declared, and nothing else uses it",
    ),
    explained(
        "hgemm_warpgroups",
        "partition does not divide",
        "for t in threads(256@2)",
        "refused because two threads do each copy: both store the same value",
    ),
    explained("hgemm_warpgroups", "role range wrong", "roles producer 0..160", BOTH_ROLES),
    explained(
        "hgemm_warpgroups",
        "neighbours swapped",
        "on producer { => on consumer {",
        "roles run at the same time, whichever stands first: the program is only wrong in order, which it must not be",
    ),
    explained(
        "hgemm_warpgroups",
        "swizzle on one side only",
        "alloc Bs: bf16[4, 128, 64]",
        "refused because bulk copies and wgmma swizzle on their own, whatever is declared, and nothing else uses `Bs`",
    ),
    explained(
        "tsmttsm_given_back_by_warps",
        "guard off by one",
        "if 1 <= ko { => if 1 <= ko + 1 {",
        "there is no phase before the first one, but a barrier that is new looks as if it had passed",
    ),
    explained(
        "tsmttsm_given_back_by_warps",
        "guard dropped",
        "if 0 < ceil(ceil(K, 16) - g, 2) {",
        "a block without groups ends while a copy of zeros, which nobody would read, may be under way",
    ),
    explained(
        "tsmttsm_given_back_by_warps",
        "fence dropped",
        "fence.async => nothing",
        "loads happen at once here; on a GPU one that waits for banks may be overtaken by the copy to its slot",
    ),
];
