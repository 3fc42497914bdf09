//! What to change for more warps.

use super::{Axis, Demand, Occupancy};
use crate::target::Limits;

/// One number of a demand that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which: `threads`, `registers`, `shared_memory`, `barriers` or `carveout`.
    pub what: &'static str,
    /// What it is; `carveout` in per cent.
    pub from: u32,
    /// What it has to become.
    pub to: u32,
}

/// A change of one number, or of two where one alone does not help, after which more warps are resident.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// What changes.
    pub changes: Vec<Change>,
    /// The demand with it.
    pub demand: Demand,
    /// What it gives.
    pub occupancy: Occupancy,
}

/// The least changes that raise occupancy by one step: fewer registers, less shared memory, a larger carve-out, fewer
/// barriers, or the nearest block sizes below and above. Each stands for itself; pairs are tried only where fewer
/// registers and less shared memory both fail alone. None where every warp slot is taken.
pub fn suggestions(demand: &Demand, limits: &Limits) -> Vec<Suggestion> {
    let now = Occupancy::of(demand, limits);
    if now.warps == now.warp_slots {
        return Vec::new();
    }
    let better = |changed: Demand, changes: Vec<Change>| {
        let occupancy = Occupancy::of(&changed, limits);
        (occupancy.warps > now.warps).then_some(Suggestion { changes, demand: changed, occupancy })
    };
    let change = |axis: Axis, value: u32| Change { what: axis.name(), from: axis.value(demand), to: value };
    let set = |axis: Axis, value: u32| better(axis.set(demand, value), vec![change(axis, value)]);
    let below = |axis: Axis| axis.values(limits).rev().filter(move |v| *v < axis.value(demand));

    let registers = below(Axis::Registers).find_map(|r| set(Axis::Registers, r));
    let shared = below(Axis::SharedMemory).find_map(|bytes| set(Axis::SharedMemory, bytes));
    let both = if registers.is_none() && shared.is_none() { pair(demand, limits, &now) } else { None };
    let carveout = demand.carveout.and_then(|from| {
        let to = |to| {
            better(Demand { carveout: Some(to), ..*demand }, vec![Change { what: "carveout", from, to }])
        };
        (from + 1..=100).find_map(to)
    });
    let barriers = (1..demand.barriers).rev().find_map(|to| {
        better(
            Demand { barriers: to, ..*demand },
            vec![Change { what: "barriers", from: demand.barriers, to }],
        )
    });
    let smaller = below(Axis::Threads).find_map(|threads| set(Axis::Threads, threads));
    let mut above = Axis::Threads.values(limits).filter(|threads| *threads > demand.threads);
    let larger = above.find_map(|threads| set(Axis::Threads, threads));
    [registers, shared, both, carveout, barriers, smaller, larger].into_iter().flatten().collect()
}

/// Fewer registers and less shared memory together: as much of each as leaves room for one more block.
fn pair(demand: &Demand, limits: &Limits, now: &Occupancy) -> Option<Suggestion> {
    let wanted = Some(now.blocks + 1);
    let allows = |axis: Axis, resource: super::Resource, value: u32| {
        let there = Occupancy::of(&axis.set(demand, value), limits);
        there.limit(resource).blocks.is_none_or(|blocks| Some(blocks) >= wanted)
    };
    let most = |axis: Axis, resource: super::Resource| {
        let mut values = axis.values(limits).rev().filter(|v| *v < axis.value(demand));
        values.find(|v| allows(axis, resource, *v))
    };
    let registers = most(Axis::Registers, super::Resource::Registers)?;
    let shared = most(Axis::SharedMemory, super::Resource::SharedMemory)?;
    let changed = Axis::SharedMemory.set(&Axis::Registers.set(demand, registers), shared);
    let occupancy = Occupancy::of(&changed, limits);
    let changes = [(Axis::Registers, registers), (Axis::SharedMemory, shared)].map(|(axis, to)| Change {
        what: axis.name(),
        from: axis.value(demand),
        to,
    });
    (occupancy.warps > now.warps).then(|| Suggestion {
        changes: changes.to_vec(),
        demand: changed,
        occupancy,
    })
}
