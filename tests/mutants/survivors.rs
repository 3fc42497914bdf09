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
        "sgemm_register_staging",
        "guard dropped",
        "if 0 < ceil(K, 16)",
        "with K = 0 every load inside is guarded by its own bounds, and the zeros it stores are not read",
    ),
    survivor(
        "sgemm_register_staging",
        "neighbours swapped",
        "for wi in threads(4@64)",
        "the first tile is multiplied from the slot of this step, the next one stored into the other",
    ),
    survivor("hgemm_cp_async", "neighbours swapped", "if ko + 2 < ceil(K, 32)", NEXT_TILE),
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
