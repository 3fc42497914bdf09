//! The mutants that nobody may catch, because they are right: each with the reason.

/// A mutant that computes the same, safely.
pub struct Survivor {
    pub program: &'static str,
    pub kind: &'static str,
    /// How its site begins.
    pub site: &'static str,
    /// Why it is right.
    #[expect(dead_code, reason = "for readers")]
    pub because: &'static str,
}

const fn survivor(
    program: &'static str,
    kind: &'static str,
    site: &'static str,
    because: &'static str,
) -> Survivor {
    Survivor { program, kind, site, because }
}

const NOT_KEPT: &str =
    "the elements concerned lie in row or column 20 and beyond, whose sums are never added to C";
const LANES_FROM_8: &str =
    "what lanes 8 to 31 hold never reaches lane 0: the last three steps exchange lanes 0 to 7";
const PAST_THE_END: &str = "elements past the end only reach later ones, none of which is stored";

/// Of the mutants with seed 1, one of each kind and program.
pub const SURVIVORS: &[Survivor] = &[
    survivor(
        "tsmttsm_atomic",
        "partition does not divide",
        "line 61: for nt in threads(7@3)",
        "each element of `part` is set to 0 by one thread, only by another than before; a barrier follows",
    ),
    survivor("tsmttsm_atomic", "fill dropped", "line 42: bx[j]", NOT_KEPT),
    survivor("tsmttsm_atomic", "fill left out", "line 39: ax[i]", NOT_KEPT),
    survivor("tsmttsm_two_pass", "fill dropped", "line 30: bx[j]", NOT_KEPT),
    survivor("tsmttsm_two_pass", "fill left out", "line 27: ax[i]", NOT_KEPT),
    survivor(
        "hgemm_cp_async",
        "swizzle on one side only",
        "line 7: alloc As",
        "cp.async and ldmatrix take their addresses from the layout, and this is another conflict-free swizzle",
    ),
    survivor(
        "hgemm_tma_wgmma",
        "await of the wrong phase",
        "line 27: await(empty[n - 4]) => await(empty[n - 3])",
        "waiting for a later release keeps at most three slots of the ring full: slower, and right",
    ),
    survivor(
        "hgemm_tma_wgmma",
        "ownership transposed",
        "line 78: for w in threads(2@128), e in threads(1@1)",
        "neither variable is used, and the same threads wait",
    ),
    survivor("reduce_two_pass", "fill dropped", "line 31: u[l]", LANES_FROM_8),
    survivor("reduce_two_pass", "fill left out", "line 31: u[l]", LANES_FROM_8),
    survivor(
        "scan_look_back",
        "threads one short",
        "line 54: for l in threads(32@1)",
        "lane 31 gets a wrong prefix of the warp totals; lanes 0 to 7 are used",
    ),
    survivor(
        "scan_look_back",
        "reduction done twice",
        "line 66: nothing => shfl_up(z[:], p[:], 1)",
        "a shuffle into another buffer gives the same again",
    ),
    survivor("scan_look_back", "fill dropped", "line 12: v[w, l, q]", PAST_THE_END),
    survivor("scan_look_back", "fill left out", "line 12: v[w, l, q]", PAST_THE_END),
];
