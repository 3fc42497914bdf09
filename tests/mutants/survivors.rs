//! The mutants of rungs that nobody may catch, because they are right: each with the reason.

/// A mutant that computes the same, safely.
pub struct Survivor {
    pub rung: &'static str,
    pub kind: &'static str,
    /// What its site says, after the number of the line.
    pub site: &'static str,
    /// Why it is right.
    #[expect(dead_code, reason = "for readers")]
    pub because: &'static str,
}

const fn survivor(
    rung: &'static str,
    kind: &'static str,
    site: &'static str,
    because: &'static str,
) -> Survivor {
    Survivor { rung, kind, site, because }
}

const NEVER: &str = "a remainder is never -1, so the host always takes the version that serves every size";
const NEXT_TILE: &str = "what is fetched goes into another slot of the ring, or into registers, and no barrier stands between the two";

/// Of the mutants with seed 1, one of each kind and rung.
pub const SURVIVORS: &[Survivor] = &[
    survivor("sgemm_coalesced", "guard off by one", "if M%32 == 0", NEVER),
    survivor(
        "sgemm_coalesced",
        "ownership transposed",
        "for ty in threads(32@32), tx in threads(32@1)",
        "threads exchange nothing, so it does not matter which of them computes which element",
    ),
    survivor(
        "sgemm_coalesced",
        "fill dropped",
        "acc[0, 0] +=",
        "sums of rows past the last are not stored, whatever they are made of",
    ),
    survivor("sgemm_vectorized", "guard off by one", "if M%128 == 0", NEVER),
    survivor("sgemm_double_buffering", "neighbours swapped", "if ko + 1 < ceil(K, 16)", NEXT_TILE),
    survivor("sgemm_padded_tile", "guard off by one", "if M%128 == 0", NEVER),
    survivor(
        "hgemm_cp_async",
        "swizzle on one side only",
        "alloc Bs: bf16[3, 32, 128]",
        "copies and matrix loads go through the layout, and pieces of 8 stay together: only banks differ",
    ),
    survivor(
        "hgemm_cp_async",
        "reduction done twice",
        "nothing => ldmatrix_x4(a[ai, :, :]",
        "a fragment that is loaded again is the same",
    ),
    survivor(
        "hgemm_warpgroups",
        "await of the wrong phase",
        "await(empty[ko - 4]) => await(empty[ko - 3])",
        "waiting for a later release keeps at most three slots of the ring full: slower, and right",
    ),
    survivor("hgemm_warpgroups", "guard off by one", "if lda%8 == 0", NEVER),
];
