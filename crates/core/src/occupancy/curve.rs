//! Occupancy over one of a kernel's demands while the others stay as they are.

use super::{Demand, Occupancy};
use crate::target::Limits;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// Threads of a block.
    Threads,
    /// Registers of a thread.
    Registers,
    /// Bytes of shared memory of a block.
    SharedMemory,
}

impl Axis {
    /// Every axis.
    pub const ALL: [Axis; 3] = [Axis::Threads, Axis::Registers, Axis::SharedMemory];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Threads => "threads",
            Axis::Registers => "registers",
            Axis::SharedMemory => "shared_memory",
        }
    }

    /// What a demand has of it.
    pub fn value(self, demand: &Demand) -> u32 {
        match self {
            Axis::Threads => demand.threads,
            Axis::Registers => demand.registers,
            Axis::SharedMemory => u32::try_from(demand.shared()).unwrap_or(u32::MAX),
        }
    }

    /// The demand with another value of it. Of shared memory the part that is declared in the kernel stays, as far as the
    /// value allows.
    pub fn set(self, demand: &Demand, value: u32) -> Demand {
        match self {
            Axis::Threads => Demand { threads: value, ..*demand },
            Axis::Registers => Demand { registers: value, ..*demand },
            Axis::SharedMemory => {
                let shared_static = demand.shared_static.min(value);
                Demand { shared_static, shared_dynamic: value - shared_static, ..*demand }
            }
        }
    }

    /// The values at which occupancy can change, ascending: whole warps, every number of registers, and every unit of
    /// shared memory up to what a block may have.
    pub fn values(self, limits: &Limits) -> Box<dyn DoubleEndedIterator<Item = u32>> {
        let every = |unit: u32, from: u32, to: u32| (from..=to / unit).map(move |n| n * unit);
        match self {
            Axis::Threads => Box::new(every(Limits::WARP, 1, Limits::THREADS_PER_BLOCK)),
            Axis::Registers => Box::new(every(1, 1, limits.registers_per_thread)),
            Axis::SharedMemory => {
                Box::new(every(limits.shared_allocation_unit, 0, limits.shared_per_block_opt_in))
            }
        }
    }
}

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Threads, registers or bytes.
    pub value: u32,
    /// Blocks that are resident on a multiprocessor there.
    pub blocks: u32,
    /// Warps that are.
    pub warps: u32,
}

/// Occupancy over one demand.
pub fn curve(demand: &Demand, limits: &Limits, axis: Axis) -> Vec<Point> {
    let point = |value: u32| {
        let there = Occupancy::of(&axis.set(demand, value), limits);
        Point { value, blocks: there.blocks, warps: there.warps }
    };
    axis.values(limits).map(point).collect()
}

/// The parts of a curve that have as many warps throughout, each by its first and its last point.
pub fn steps(curve: &[Point]) -> Vec<(Point, Point)> {
    curve
        .chunk_by(|a, b| a.warps == b.warps)
        .filter_map(|step| Some((*step.first()?, *step.last()?)))
        .collect()
}

/// The largest value of an axis at which no block is lost, the others staying as they are: registers or bytes that a
/// kernel can have more of for nothing. `None` where it cannot be launched as it is.
pub fn room(demand: &Demand, limits: &Limits, axis: Axis) -> Option<u32> {
    let now = Occupancy::of(demand, limits).blocks;
    let keeps = |value: &u32| Occupancy::of(&axis.set(demand, *value), limits).blocks >= now;
    axis.values(limits).rev().find(keeps).filter(|_| now > 0)
}
