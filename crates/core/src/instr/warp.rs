//! Instructions by which the lanes of a warp exchange values, and blocks theirs.

use super::{
    Behaviour, Completion, Extent, Lane, OperandSpec, Place, Record, WindowSpec, integer, read, write,
};
use crate::ir::Space;

const WARP: &[Extent] = &[Extent::Fixed(32)];

const fn lanes() -> WindowSpec {
    WindowSpec { dtype: None, space: Some(Space::Reg), shape: WARP, place: Place::Lanes }
}

const SHUFFLE: &[OperandSpec] = &[write("t", lanes()), read("v", lanes()), integer("d")];

const fn shuffle(name: &'static str, lane: Lane, meaning: &'static str) -> Record {
    Record {
        name,
        threads: 32,
        operands: SHUFFLE,
        meaning,
        completion: Completion::InOrder,
        behaviour: Behaviour::Shuffle(lane),
        needs: &[],
    }
}

pub(super) const RECORDS: &[Record] = &[
    shuffle("shfl_xor", Lane::Xor, "for l in 0..32 { t[l] = v[l xor d] }"),
    shuffle("shfl_up", Lane::Up, "for l in 0..32 { t[l] = l >= d ? v[l - d] : v[l] }"),
    shuffle("shfl_down", Lane::Down, "for l in 0..32 { t[l] = l + d < 32 ? v[l + d] : v[l] }"),
    shuffle("shfl_idx", Lane::Index, "for l in 0..32 { t[l] = v[d] }"),
    Record {
        name: "chained_sum",
        threads: 32,
        operands: &[
            write("before", lanes()),
            read("total", lanes()),
            write(
                "chain",
                WindowSpec { dtype: None, space: Some(Space::Global), shape: &[], place: Place::Element },
            ),
        ],
        meaning: "for l in 0..32 { before[l] = b == 0 ? 0 : chain[b - 1] } chain[b] = before[0] + total[0]",
        completion: Completion::Chained,
        behaviour: Behaviour::ChainedSum,
        needs: &[],
    },
];
