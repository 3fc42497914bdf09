//! The primitives, one file each, and the one list of all of them.

mod begin_early;
mod bind;
mod bulk_store;
mod cache_read;
mod cache_write;
mod compute_at;
mod compute_with;
mod decompose_reduction;
mod fetch_ends;
mod fetch_granularity;
mod fuse;
mod lane_base;
mod partition;
mod pipeline;
mod precompute;
mod reorder;
mod reverse_compute_at;
mod rotate;
mod set_scope;
mod specialize;
mod split;
mod split_reduce;
mod storage_align;
mod storage_order;
mod storage_share;
mod store_split;
mod swizzle;
mod tail;
mod tensorize;
mod tile;
mod unroll;
mod unswitch;
mod vectorize;

use std::fmt::Debug;

pub use begin_early::BeginEarly;
pub use bind::Bind;
pub use bulk_store::BulkStore;
pub use cache_read::CacheRead;
pub use cache_write::CacheWrite;
pub use compute_at::ComputeAt;
pub use compute_with::ComputeWith;
pub use decompose_reduction::DecomposeReduction;
pub use fetch_ends::FetchEnds;
pub use fetch_granularity::FetchGranularity;
pub use fuse::Fuse;
pub use lane_base::LaneBase;
pub use partition::Partition;
pub use pipeline::{DoubleBuffer, Pipeline, Release, Via};
pub use precompute::Precompute;
pub use reorder::Reorder;
pub use reverse_compute_at::ReverseComputeAt;
pub use rotate::Rotate;
pub use set_scope::SetScope;
pub use specialize::Specialize;
pub use split::Split;
pub use split_reduce::{Combine, Parts, SplitReduce};
pub use storage_align::StorageAlign;
pub use storage_order::{Part, StorageOrder};
pub use storage_share::StorageShare;
pub use store_split::StoreSplit;
pub use swizzle::{Bits, Swizzle};
pub use tail::{Strategy, Tail};
pub use tensorize::Tensorize;
pub use tile::Tile;
pub use unroll::Unroll;
pub use unswitch::Unswitch;
pub use vectorize::Vectorize;

use super::step::Call;
use crate::diag::Diagnosis;
use crate::ir::Program;

/// A step of a schedule.
pub trait Primitive: Debug + Send + Sync {
    /// The step as it is written.
    fn call(&self) -> Call;

    /// The program after the step.
    ///
    /// # Errors
    /// Why the step is not legal here, and what to do instead.
    fn apply(&self, program: &Program) -> Result<Program, Diagnosis>;
}

/// How a primitive is written and read.
struct Entry {
    name: &'static str,
    usage: &'static str,
    read: fn(&Call) -> Result<Box<dyn Primitive>, Diagnosis>,
}

/// Every primitive. A new one is a new file and a new line here.
const PRIMITIVES: &[Entry] = &[
    Entry { name: "split", usage: split::USAGE, read: |c| Ok(Box::new(Split::read(c)?)) },
    Entry { name: "tile", usage: tile::USAGE, read: |c| Ok(Box::new(Tile::read(c)?)) },
    Entry { name: "fuse", usage: fuse::USAGE, read: |c| Ok(Box::new(Fuse::read(c)?)) },
    Entry { name: "reorder", usage: reorder::USAGE, read: |c| Ok(Box::new(Reorder::read(c)?)) },
    Entry { name: "rotate", usage: rotate::USAGE, read: |c| Ok(Box::new(Rotate::read(c)?)) },
    Entry { name: "bind", usage: bind::USAGE, read: |c| Ok(Box::new(Bind::read(c)?)) },
    Entry { name: "begin_early", usage: begin_early::USAGE, read: |c| Ok(Box::new(BeginEarly::read(c)?)) },
    Entry {
        name: "fetch_granularity",
        usage: fetch_granularity::USAGE,
        read: |c| Ok(Box::new(FetchGranularity::read(c)?)),
    },
    Entry { name: "unroll", usage: unroll::USAGE, read: |c| Ok(Box::new(Unroll::read(c)?)) },
    Entry { name: "unswitch", usage: unswitch::USAGE, read: |c| Ok(Box::new(Unswitch::read(c)?)) },
    Entry { name: "vectorize", usage: vectorize::USAGE, read: |c| Ok(Box::new(Vectorize::read(c)?)) },
    Entry { name: "cache_read", usage: cache_read::USAGE, read: |c| Ok(Box::new(CacheRead::read(c)?)) },
    Entry { name: "cache_write", usage: cache_write::USAGE, read: |c| Ok(Box::new(CacheWrite::read(c)?)) },
    Entry { name: "compute_at", usage: compute_at::USAGE, read: |c| Ok(Box::new(ComputeAt::read(c)?)) },
    Entry { name: "compute_with", usage: compute_with::USAGE, read: |c| Ok(Box::new(ComputeWith::read(c)?)) },
    Entry { name: "partition", usage: partition::USAGE, read: |c| Ok(Box::new(Partition::read(c)?)) },
    Entry {
        name: "reverse_compute_at",
        usage: reverse_compute_at::USAGE,
        read: |c| Ok(Box::new(ReverseComputeAt::read(c)?)),
    },
    Entry { name: "set_scope", usage: set_scope::USAGE, read: |c| Ok(Box::new(SetScope::read(c)?)) },
    Entry { name: "store_split", usage: store_split::USAGE, read: |c| Ok(Box::new(StoreSplit::read(c)?)) },
    Entry { name: "bulk_store", usage: bulk_store::USAGE, read: |c| Ok(Box::new(BulkStore::read(c)?)) },
    Entry { name: "fetch_ends", usage: fetch_ends::USAGE, read: |c| Ok(Box::new(FetchEnds::read(c)?)) },
    Entry { name: "pipeline", usage: pipeline::USAGE, read: |c| Ok(Box::new(Pipeline::read(c)?)) },
    Entry {
        name: "double_buffer",
        usage: pipeline::DOUBLE_BUFFER_USAGE,
        read: |c| Ok(Box::new(DoubleBuffer::read(c)?)),
    },
    Entry { name: "precompute", usage: precompute::USAGE, read: |c| Ok(Box::new(Precompute::read(c)?)) },
    Entry { name: "split_reduce", usage: split_reduce::USAGE, read: |c| Ok(Box::new(SplitReduce::read(c)?)) },
    Entry {
        name: "rfactor",
        usage: split_reduce::RFACTOR_USAGE,
        read: |c| Ok(Box::new(SplitReduce::read_rfactor(c)?)),
    },
    Entry {
        name: "decompose_reduction",
        usage: decompose_reduction::USAGE,
        read: |c| Ok(Box::new(DecomposeReduction::read(c)?)),
    },
    Entry { name: "specialize", usage: specialize::USAGE, read: |c| Ok(Box::new(Specialize::read(c)?)) },
    Entry {
        name: "storage_order",
        usage: storage_order::USAGE,
        read: |c| Ok(Box::new(StorageOrder::read(c)?)),
    },
    Entry {
        name: "storage_align",
        usage: storage_align::USAGE,
        read: |c| Ok(Box::new(StorageAlign::read(c)?)),
    },
    Entry {
        name: "storage_share",
        usage: storage_share::USAGE,
        read: |c| Ok(Box::new(StorageShare::read(c)?)),
    },
    Entry { name: "lane_base", usage: lane_base::USAGE, read: |c| Ok(Box::new(LaneBase::read(c)?)) },
    Entry { name: "swizzle", usage: swizzle::USAGE, read: |c| Ok(Box::new(Swizzle::read(c)?)) },
    Entry { name: "tail", usage: tail::USAGE, read: |c| Ok(Box::new(Tail::read(c)?)) },
    Entry { name: "tensorize", usage: tensorize::USAGE, read: |c| Ok(Box::new(Tensorize::read(c)?)) },
];

/// Reads a step.
pub(super) fn read(call: &Call) -> Result<Box<dyn Primitive>, Diagnosis> {
    let Some(entry) = PRIMITIVES.iter().find(|e| e.name == call.name) else {
        let known: Vec<_> = primitives().collect();
        return Err(Diagnosis::new(format!("there is no primitive `{}`", call.name))
            .instead(format!("the primitives are {}", known.join(", "))));
    };
    (entry.read)(call)
}

/// The names of all primitives.
pub fn primitives() -> impl Iterator<Item = &'static str> {
    PRIMITIVES.iter().map(|e| e.name)
}

/// How a primitive is written.
pub(super) fn usage(name: &str) -> Option<&'static str> {
    PRIMITIVES.iter().find(|e| e.name == name).map(|e| e.usage)
}
