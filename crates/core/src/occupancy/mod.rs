//! How many blocks of a kernel a multiprocessor holds at a time, and what stops it from holding more.
//!
//! A block becomes resident when a multiprocessor has everything it asks for: warp slots, registers, shared memory, a
//! block slot and named barriers. Each of these resources allows some number of blocks, and the least of these numbers
//! counts. Occupancy is the part of the warp slots that is taken then.
//!
//! The rules are NVIDIA's, whose `cuda_occupancy.h` a test compares this module with on random kernels for every compute
//! capability that the header knows (`tests/it/occupancy/`). They differ from the division that textbooks show in five
//! points:
//!
//! - registers are handed out to warps, in units, and each *sub-partition* has registers of its own for the warps that
//!   are dealt to it: what is left over in each of four adds up to nothing;
//! - a launch checks the registers of a block as if its warps filled whole rows of sub-partitions, which matters where a
//!   block may not have all registers of a multiprocessor;
//! - shared memory is handed out in units, and from compute capability 8.0 on the system keeps 1 KiB of each block's;
//! - how much of the on-chip memory is shared memory is a choice (the *carve-out*) that comes in steps and gives way where
//!   not even one block would fit;
//! - since 9.0 the blocks of a multiprocessor share a limited number of named barriers.
//!
//! Two inputs of the header are left out, since no kernel here has them: partitioned global caching of 5.2 to 6.2, off
//! unless a compiler option turns it on, and the "virtual resources" of 10.0 and later.

mod advice;
mod curve;

pub use advice::{Change, Suggestion, suggestions};
pub use curve::{Axis, Point, curve, room, steps};

use crate::diag::Diagnosis;
use crate::target::{Limits, Target};

/// What one block asks of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Threads of a block.
    pub threads: u32,
    /// 32-bit registers of a thread, as the compiler reports them.
    pub registers: u32,
    /// Bytes of shared memory that are declared in the kernel.
    pub shared_static: u32,
    /// Bytes of shared memory that are asked for at launch.
    pub shared_dynamic: u32,
    /// Named barriers, of which `__syncthreads()` is one.
    pub barriers: u32,
    /// Whether the kernel has opted in to more than 48 KiB of shared memory, where the GPU has more.
    pub opted_in: bool,
    /// The part of the largest carve-out that is preferred, in per cent; `None` is the driver's choice, all of it.
    pub carveout: Option<u32>,
}

impl Demand {
    /// Blocks of so many threads that use these registers and no shared memory, with one barrier, opted in.
    pub const fn new(threads: u32, registers: u32) -> Demand {
        Demand {
            threads,
            registers,
            shared_static: 0,
            shared_dynamic: 0,
            barriers: 1,
            opted_in: true,
            carveout: None,
        }
    }

    /// The same with this much shared memory, asked for at launch.
    #[must_use]
    pub const fn with_shared(self, bytes: u32) -> Demand {
        Demand { shared_static: 0, shared_dynamic: bytes, ..self }
    }

    /// Bytes of shared memory that the kernel asks for, however it does.
    pub fn shared(&self) -> u64 {
        u64::from(self.shared_static) + u64::from(self.shared_dynamic)
    }

    /// Warps of a block.
    pub fn warps(&self) -> u32 {
        self.threads.div_ceil(Limits::WARP)
    }

    /// Refuses what no kernel can ask for on GPUs of these limits, and names the field. What it could ask for but cannot
    /// launch with, such as 1024 threads of 100 registers, is no wrong question: its answer is no block.
    pub fn check(&self, limits: &Limits) -> Result<(), Diagnosis> {
        let compute = limits.compute;
        let within = |field: &str, value: u64, least: u64, most: u64, of: String| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Diagnosis::new(format!("{value} is no number of {of}"))
                .at(field)
                .because(format!("compute capability {compute} allows {least} to {most}"))
                .instead(format!("give a number from {least} to {most}")))
        };
        within(
            "threads",
            self.threads.into(),
            1,
            Limits::THREADS_PER_BLOCK.into(),
            "threads of a block".to_string(),
        )?;
        let registers = u64::from(limits.registers_per_thread);
        within("registers", self.registers.into(), 0, registers, "registers of a thread".to_string())?;
        let shared = u64::from(limits.shared_per_block_opt_in);
        let parts = format!(
            "bytes of shared memory of a block ({} static and {} dynamic)",
            self.shared_static, self.shared_dynamic
        );
        let field = if u64::from(self.shared_static) > shared { "shared-static" } else { "shared-dynamic" };
        within(field, self.shared(), 0, shared, parts)?;
        let barriers = u64::from(Limits::NAMED_BARRIERS_PER_BLOCK);
        within("barriers", self.barriers.into(), 0, barriers, "named barriers of a block".to_string())?;
        let carveout = self.carveout.unwrap_or(0).into();
        within("carveout", carveout, 0, 100, "per cent of the largest carve-out".to_string())
    }
}

/// What limits the blocks of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Warp slots.
    Warps,
    /// The register files.
    Registers,
    /// Shared memory, as far as the carve-out goes.
    SharedMemory,
    /// Block slots.
    Blocks,
    /// Named barriers.
    Barriers,
}

impl Resource {
    /// Every resource, in the order in which one of several limiters is named first.
    pub const ALL: [Resource; 5] =
        [Resource::Warps, Resource::Registers, Resource::SharedMemory, Resource::Blocks, Resource::Barriers];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Warps => "warps",
            Resource::Registers => "registers",
            Resource::SharedMemory => "shared_memory",
            Resource::Blocks => "blocks",
            Resource::Barriers => "barriers",
        }
    }
}

/// What a multiprocessor has of a resource and what blocks take of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Which resource.
    pub resource: Resource,
    /// Blocks that it allows; `None` where it sets no limit.
    pub blocks: Option<u32>,
    /// What the multiprocessor has: warps, registers, bytes, blocks or barriers. `None` where it is not counted.
    pub available: Option<u64>,
    /// What one block takes, as it is handed out.
    pub per_block: u64,
}

/// How many blocks are resident, and why not more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks that are resident on a multiprocessor; 0 where the kernel cannot be launched.
    pub blocks: u32,
    /// Warps that are resident then.
    pub warps: u32,
    /// Warps that could be.
    pub warp_slots: u32,
    /// Bytes of shared memory that the multiprocessor is set to.
    pub carveout_bytes: u32,
    /// What each resource allows, in the order of [`Resource::ALL`].
    pub limits: [Limit; 5],
}

impl Occupancy {
    /// The occupancy of a multiprocessor with these limits.
    pub fn of(demand: &Demand, limits: &Limits) -> Occupancy {
        let warps = by_warps(demand, limits);
        let registers = by_registers(demand, limits);
        let (shared, carveout_bytes) = by_shared_memory(demand, limits);
        let slots = Limit {
            resource: Resource::Blocks,
            blocks: Some(limits.blocks_per_sm),
            available: Some(limits.blocks_per_sm.into()),
            per_block: 1,
        };
        let all = [warps, registers, shared, slots, by_barriers(demand, limits)];
        let blocks = all.iter().filter_map(|l| l.blocks).min().unwrap_or(0);
        Occupancy {
            blocks,
            warps: blocks * demand.warps(),
            warp_slots: limits.warps_per_sm,
            carveout_bytes,
            limits: all,
        }
    }

    /// The part of the warp slots that is taken, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        f64::from(self.warps) / f64::from(self.warp_slots)
    }

    /// The resources that allow no more blocks than there are.
    pub fn limiters(&self) -> impl Iterator<Item = Resource> {
        self.limits.iter().filter(|l| l.blocks == Some(self.blocks)).map(|l| l.resource)
    }

    /// The first of them.
    pub fn limiter(&self) -> Resource {
        self.limiters().next().unwrap_or(Resource::Blocks)
    }

    /// What one resource allows.
    pub fn limit(&self, resource: Resource) -> &Limit {
        &self.limits[resource as usize]
    }

    /// What the resident blocks leave over of a resource; `None` where it is not counted.
    pub fn left(&self, resource: Resource) -> Option<u64> {
        let limit = self.limit(resource);
        Some(limit.available?.saturating_sub(limit.per_block * u64::from(self.blocks)))
    }
}

/// Blocks of a kernel that are resident on one multiprocessor, opted in to all the shared memory there is; 0 where not
/// even one fits, or where the numbers are no kernel's.
pub fn blocks_per_sm(target: &Target, threads: i64, registers: i64, shared_bytes: i64) -> i64 {
    let whole = |value: i64| u32::try_from(value.max(0)).unwrap_or(u32::MAX);
    let demand = Demand::new(whole(threads).max(1), whole(registers).max(1)).with_shared(whole(shared_bytes));
    match demand.check(target.limits) {
        Ok(()) => Occupancy::of(&demand, target.limits).blocks.into(),
        Err(_) => 0,
    }
}

fn by_warps(demand: &Demand, limits: &Limits) -> Limit {
    let possible = (1..=Limits::THREADS_PER_BLOCK).contains(&demand.threads);
    Limit {
        resource: Resource::Warps,
        blocks: Some(if possible { limits.warps_per_sm / demand.warps() } else { 0 }),
        available: Some(limits.warps_per_sm.into()),
        per_block: demand.warps().into(),
    }
}

fn by_registers(demand: &Demand, limits: &Limits) -> Limit {
    let warps = u64::from(demand.warps());
    let of_warp = limits.registers_of_warp(demand.registers);
    let blocks = if demand.registers > limits.registers_per_thread {
        Some(0)
    } else if of_warp == 0 {
        None
    } else {
        let assumed = warps.next_multiple_of(limits.sub_partitions_of_check.into()) * of_warp;
        let parts = u64::from(limits.sub_partitions);
        let resident_warps = u64::from(limits.registers_per_sm) / parts / of_warp * parts;
        let launches = assumed <= u64::from(limits.registers_per_block);
        Some(if launches { small(resident_warps / warps.max(1)) } else { 0 })
    };
    Limit {
        resource: Resource::Registers,
        blocks,
        available: Some(limits.registers_per_sm.into()),
        per_block: of_warp * warps,
    }
}

/// The limit by shared memory, and the carve-out in bytes.
fn by_shared_memory(demand: &Demand, limits: &Limits) -> (Limit, u32) {
    let reserved = u64::from(limits.shared_reserved_per_block);
    let of_block = (demand.shared() + reserved).next_multiple_of(limits.shared_allocation_unit.into());
    let allowed =
        if demand.opted_in { limits.shared_per_block_opt_in } else { Limits::SHARED_PER_BLOCK_DEFAULT };
    let preferred = preferred_carveout(demand.carveout, limits);
    let carveout = if u64::from(preferred) >= of_block {
        preferred
    } else if limits.carveout_grows_by_need() {
        carveout_that_holds(of_block, limits)
    } else {
        limits.shared_per_sm
    };
    let fits = of_block <= u64::from(allowed) + reserved;
    let blocks = if fits { u64::from(carveout).checked_div(of_block).map(small) } else { Some(0) };
    let limit = Limit {
        resource: Resource::SharedMemory,
        blocks,
        available: Some(carveout.into()),
        per_block: of_block,
    };
    (limit, carveout)
}

/// The smallest carve-out of at least this part of the largest one, in bytes.
fn preferred_carveout(percent: Option<u32>, limits: &Limits) -> u32 {
    match percent {
        None => limits.shared_per_sm,
        Some(percent) => {
            carveout_that_holds(u64::from(percent) * u64::from(limits.shared_per_sm) / 100, limits)
        }
    }
}

/// The smallest carve-out of at least so many bytes, or the largest there is.
fn carveout_that_holds(bytes: u64, limits: &Limits) -> u32 {
    let carveouts = limits.shared_carveouts_kib.iter().map(|kib| kib * 1024);
    carveouts.filter(|c| u64::from(*c) >= bytes).min().unwrap_or(limits.shared_per_sm)
}

fn by_barriers(demand: &Demand, limits: &Limits) -> Limit {
    Limit {
        resource: Resource::Barriers,
        blocks: limits.barriers_per_sm.and_then(|all| all.checked_div(demand.barriers)),
        available: limits.barriers_per_sm.map(u64::from),
        per_block: demand.barriers.into(),
    }
}

fn small(blocks: u64) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
