//! Counters: what a profiler would count.
//!
//! A *request* is one warp-level instruction with at least one active lane. Its sectors and wavefronts are those of
//! `core::model::requests`. A vector loop is one wide access of each lane; where parts of numbers lie in planes, each plane is a
//! request of its own.
//!
//! Instructions: `ldmatrix` is one shared load of 16 bytes a lane; `cp.async` one global load (of the bytes that are
//! valid) and one shared store of 16 bytes a lane; a bulk copy is one request to each memory, with the sectors and
//! 128-byte wavefronts of its box; `wgmma` reads shared memory beside the load units and is not counted there. Atomic
//! reductions count as stores. `fma` counts the real multiply-adds of active lanes (a complex one is four, an
//! m x n x k matrix instruction m n k). A barrier counts once for each range that meets. A branch is divergent when
//! some active lanes take it and some do not; choices `c ? a : b` are predicated and do not count.

use std::ops::AddAssign;

/// Sums over the simulated blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Loads from device memory.
    pub global_load_requests: u64,
    /// Their sectors.
    pub global_load_sectors: u64,
    /// Stores to device memory.
    pub global_store_requests: u64,
    /// Their sectors.
    pub global_store_sectors: u64,
    /// Loads from shared memory.
    pub shared_load_requests: u64,
    /// Their wavefronts.
    pub shared_load_wavefronts: u64,
    /// Stores to shared memory.
    pub shared_store_requests: u64,
    /// Their wavefronts.
    pub shared_store_wavefronts: u64,
    /// Real multiply-adds.
    pub fma: u64,
    /// Barriers met.
    pub barriers: u64,
    /// Branches that some lanes of a warp take and some do not.
    pub divergent_branches: u64,
    /// Blocks that were simulated.
    pub blocks_simulated: u64,
    /// Blocks of all launches.
    pub blocks_total: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.global_load_requests += other.global_load_requests;
        self.global_load_sectors += other.global_load_sectors;
        self.global_store_requests += other.global_store_requests;
        self.global_store_sectors += other.global_store_sectors;
        self.shared_load_requests += other.shared_load_requests;
        self.shared_load_wavefronts += other.shared_load_wavefronts;
        self.shared_store_requests += other.shared_store_requests;
        self.shared_store_wavefronts += other.shared_store_wavefronts;
        self.fma += other.fma;
        self.barriers += other.barriers;
        self.divergent_branches += other.divergent_branches;
        self.blocks_simulated += other.blocks_simulated;
        self.blocks_total += other.blocks_total;
    }
}

/// The counters of one place in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteCounters {
    /// The loops around the statement, and the statement.
    pub place: String,
    /// What happened there.
    pub counters: Counters,
}
