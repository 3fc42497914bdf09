//! The mutants that nobody may catch, because they are right, and those whose fault no order of threads shows: each with
//! the reason.

use warpwright_sim::mutate::explain::{Explained, explained};

const NOT_KEPT: &str =
    "the elements concerned lie in row or column 20 and beyond, whose sums are never added to C";
const LANES_FROM_8: &str =
    "what lanes 8 to 31 hold never reaches lane 0: the last three steps exchange lanes 0 to 7";
const PAST_THE_END: &str = "elements past the end only reach later ones, none of which is stored";

/// Of the mutants with seed 1, one of each kind and program.
pub const SURVIVORS: &[Explained] = &[
    explained(
        "tsmttsm_atomic",
        "partition does not divide",
        "line 61: for nt in threads(7@3)",
        "each element of `part` is set to 0 by one thread, only by another than before; a barrier follows",
    ),
    explained("tsmttsm_atomic", "fill dropped", "line 42: bx[j]", NOT_KEPT),
    explained("tsmttsm_atomic", "fill left out", "line 39: ax[i]", NOT_KEPT),
    explained("tsmttsm_two_pass", "fill dropped", "line 30: bx[j]", NOT_KEPT),
    explained("tsmttsm_two_pass", "fill left out", "line 27: ax[i]", NOT_KEPT),
    explained(
        "hgemm_cp_async",
        "swizzle on one side only",
        "line 7: alloc As",
        "cp.async and ldmatrix take their addresses from the layout, and this is another conflict-free swizzle",
    ),
    explained(
        "hgemm_tma_wgmma",
        "await of the wrong phase",
        "line 27: await(empty[n - 4]) => await(empty[n - 3])",
        "waiting for a later release keeps at most three slots of the ring full: slower, and right",
    ),
    explained(
        "hgemm_tma_wgmma",
        "ownership transposed",
        "line 78: for w in threads(2@128), e in threads(1@1)",
        "neither variable is used, and the same threads wait",
    ),
    explained("reduce_two_pass", "fill dropped", "line 31: u[l]", LANES_FROM_8),
    explained("reduce_two_pass", "fill left out", "line 31: u[l]", LANES_FROM_8),
    explained(
        "scan_look_back",
        "threads one short",
        "line 54: for l in threads(32@1)",
        "lane 31 gets a wrong prefix of the warp totals; lanes 0 to 7 are used",
    ),
    explained(
        "scan_look_back",
        "reduction done twice",
        "line 66: nothing => shfl_up(z[:], p[:], 1)",
        "a shuffle into another buffer gives the same again",
    ),
    explained("scan_look_back", "fill dropped", "line 12: v[w, l, q]", PAST_THE_END),
    explained("scan_look_back", "fill left out", "line 12: v[w, l, q]", PAST_THE_END),
];

/// Of the same mutants, those that are refused or have a hazard that no order of threads shows.
pub const UNSEEN: &[Explained] = &[
    explained(
        "hgemm_tma_wgmma",
        "guard off by one",
        "line 54: if 0 < ceil(K, 64)",
        "the arrivals on phase -1 come where there is nothing to sum, so nothing is copied that they could let through",
    ),
    explained(
        "hgemm_tma_wgmma",
        "guard dropped",
        "line 26: if 4 <= n",
        "a new mbarrier lets through whoever waits for the phase before the first; here there is no such phase",
    ),
    explained(
        "hgemm_tma_wgmma",
        "role range wrong",
        "=> roles producer 0..160",
        "threads 128 to 159 would be both, and only the first producer does anything, so no thread does two things",
    ),
];
