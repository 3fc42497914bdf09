//! The levels of memory between a multiprocessor's registers and device memory: how long each takes, and how much each
//! gives.

use super::fact::Fact;

/// One level of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Cycles of the boost clock from a load that depends on the one before to its value, with nothing else going on,
    /// where somebody measured it.
    pub latency_cycles: Option<Fact<u32>>,
    /// Bytes that it gives one multiprocessor in a cycle of the boost clock while all ask for them, where somebody
    /// measured it. Of device memory the table of a GPU has bytes per second instead.
    pub bytes_per_cycle: Option<Fact<f64>>,
}

impl Level {
    /// A level that nobody measured.
    pub const UNKNOWN: Level = Level { latency_cycles: None, bytes_per_cycle: None };

    /// A level of which the latency is known.
    pub(super) const fn after(latency_cycles: Fact<u32>) -> Level {
        Level { latency_cycles: Some(latency_cycles), bytes_per_cycle: None }
    }

    /// The level with its bandwidth.
    pub(super) const fn giving(self, bytes_per_cycle: Fact<f64>) -> Level {
        Level { latency_cycles: self.latency_cycles, bytes_per_cycle: Some(bytes_per_cycle) }
    }
}

/// The levels of memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Shared memory.
    pub shared: Level,
    /// The first-level cache.
    pub l1: Level,
    /// The second-level cache, its nearer half where it has two.
    pub l2: Level,
    /// Device memory, of which loads miss every cache but hit the nearest translation buffers.
    pub dram: Level,
}

impl Levels {
    /// Nothing is known.
    pub const UNKNOWN: Levels =
        Levels { shared: Level::UNKNOWN, l1: Level::UNKNOWN, l2: Level::UNKNOWN, dram: Level::UNKNOWN };

    /// Each level with its name, the nearest first.
    pub fn named(&self) -> [(&'static str, &Level); 4] {
        [("shared", &self.shared), ("l1", &self.l1), ("l2", &self.l2), ("dram", &self.dram)]
    }
}
