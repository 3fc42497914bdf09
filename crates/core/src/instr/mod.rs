//! Instructions are records, not code paths.
//!
//! A [`Record`] says what an instruction equals (a sequential program on its operands), which threads execute it,
//! where each operand must live, when it completes, what it needs of the target, and how it behaves physically. A new
//! shape or type is a new row in one of the family files; a new kind of behaviour is a new variant of [`Behaviour`],
//! and the compiler then lists the places to extend: simulator, emitter and model.

mod copy;
mod landing;
mod matrix;
mod warp;

pub use landing::{landing, shared_bytes};

use crate::dtype::DType;
use crate::ir::Space;
use crate::target::Capability;

/// Everything there is to know of an instruction.
#[derive(Debug)]
pub struct Record {
    /// The name used in programs.
    pub name: &'static str,
    /// The number of threads that execute it together.
    pub threads: i64,
    /// The operands, outputs first.
    pub operands: &'static [OperandSpec],
    /// The sequential program it equals, as statements over the operand names; `unify` and readers use it.
    pub meaning: &'static str,
    /// When its effects are visible, and to whom.
    pub completion: Completion,
    /// What it does physically.
    pub behaviour: Behaviour,
    /// What the target must have.
    pub needs: &'static [Capability],
}

impl Record {
    /// Whether what it keeps in shared memory is swizzled there.
    pub fn is_swizzled(&self) -> bool {
        let places = self.operands.iter().filter_map(|o| o.window.as_ref());
        places.into_iter().any(|w| w.place == Place::Swizzle128)
    }
}

/// What an operand must be.
#[derive(Debug)]
pub struct OperandSpec {
    /// The name in [`Record::meaning`].
    pub name: &'static str,
    /// How it is used.
    pub access: OperandAccess,
    /// What it is; `None` for an integer.
    pub window: Option<WindowSpec>,
}

/// What a window operand must be.
#[derive(Debug)]
pub struct WindowSpec {
    /// The element type; `None` where the instruction takes any of the sizes of [`Behaviour::moves`].
    pub dtype: Option<DType>,
    /// The memory; `None` means device memory, parameter or scratch.
    pub space: Option<Space>,
    /// The extents, outermost first.
    pub shape: &'static [Extent],
    /// Where its elements must be.
    pub place: Place,
}

/// Whether an operand is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandAccess {
    /// Read.
    Read,
    /// Written.
    Write,
    /// Read and written: an accumulator.
    Update,
    /// Neither: only where it is matters.
    Named,
}

impl OperandAccess {
    /// Whether values are read.
    pub fn reads(self) -> bool {
        matches!(self, OperandAccess::Read | OperandAccess::Update)
    }

    /// Whether values are written.
    pub fn writes(self) -> bool {
        matches!(self, OperandAccess::Write | OperandAccess::Update)
    }
}

/// An extent of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Exactly this many.
    Fixed(i64),
    /// Any multiple of this many, at most the second.
    Multiple(i64, i64),
    /// What the other operand's extent of the same letter is.
    Same(char),
}

/// Where the elements of an operand must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Spread over the executing threads by this fragment.
    Fragment(&'static str),
    /// A half of a fragment: `columns` of its columns, starting at a multiple of them.
    FragmentColumns(&'static str, i64),
    /// One element a lane: a dimension distributed with pitch 1.
    Lanes,
    /// One element, the same for all threads.
    Element,
    /// Shared memory whose rows (last dimension) are contiguous pieces of this many bytes, aligned to as many.
    Rows(i64),
    /// Shared memory that is one contiguous run, at a multiple of 16 bytes.
    Run,
    /// Shared memory in the 128-byte swizzle of the tensor memory accelerator: 16-byte piece `c` of the 128-byte row
    /// `r` (counted from a 1024-byte boundary) is kept at piece `c xor r % 8`.
    Swizzle128,
    /// Shared memory that is one matrix, its rows one after the other, at a multiple of 128 bytes.
    Box,
    /// Device memory, contiguous along the last dimension and aligned to this many bytes.
    Aligned(i64),
    /// A box of a tensor described by a tensor map; elements outside the tensor read as zero and are not written.
    TensorMap,
}

/// When the effects of an instruction are complete (rules 20, 22 and 24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// At once, in program order.
    InOrder,
    /// With the executing thread's `cp.async` group.
    CpAsync,
    /// When the mbarrier phase named by `->` completes.
    Mbarrier,
    /// With the executing thread's bulk store group.
    BulkGroup,
    /// With the warpgroup's wgmma group; waiting for it joins the threads of the warpgroup.
    Wgmma,
    /// In order, after the same instruction of the previous block.
    Chained,
}

impl Completion {
    /// Whether memory is touched through the async proxy (rule 21).
    pub fn async_proxy(self) -> bool {
        matches!(self, Completion::Mbarrier | Completion::BulkGroup | Completion::Wgmma)
    }
}

/// What an instruction does physically. Addresses are computed by these rules, not by the layout of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// `d += a b` on fragments of a warp.
    Multiply {
        /// Rows of `d`.
        m: i64,
        /// Columns of `d`.
        n: i64,
        /// The summed extent.
        k: i64,
        /// Whether `a` is conjugated.
        conjugate: bool,
    },
    /// `d += a b^T` by a warpgroup, `a` and `b` in swizzled shared memory, `n` free, `m` = 64.
    WarpgroupMultiply {
        /// The summed extent.
        k: i64,
    },
    /// Four 8 x 8 tiles from shared memory: lane `l` gives the address of row `l % 8` of tile `l / 8`. Tiles are
    /// numbered down the columns of `d`.
    LoadMatrix {
        /// Whether each tile is transposed on its way to registers.
        transposed: bool,
        /// Whether shared memory holds `d` with rows and columns exchanged.
        turned: bool,
    },
    /// A copy by one thread, of which the elements from the third operand on are zero.
    CopyAsync {
        /// What it copies: 4, 8 or 16 bytes, which lie at multiples of as many.
        bytes: i64,
        /// Where it leaves them on their way.
        caching: Caching,
    },
    /// A run of 16-byte pieces to shared memory, of which the elements from the third operand on are zero.
    BulkCopy,
    /// A box from a tensor to shared memory, swizzled or not.
    BulkLoad,
    /// A run of 16-byte pieces from shared memory to device memory, without the elements from the third operand on. Elements may stand in
    /// shared memory as their real and imaginary parts.
    BulkWrite,
    /// A box from swizzled shared memory to a tensor.
    BulkStore,
    /// A value from another lane of the warp.
    Shuffle(Lane),
    /// The sum of what the earlier blocks of an ordered launch gave, by decoupled look-back.
    ChainedSum,
    /// What is around an element is brought to the second-level cache. No value is read.
    Prefetch(Around, By),
}

/// Which sectors are brought to the second-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// That of an element.
    Element,
    /// That of an element, unless it begins there.
    Before,
    /// That of an element, unless it ends there.
    Behind,
}

/// Which caches keep what an asynchronous copy takes from device memory, in the words of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// The first level too (`ca`), which copies of less than 16 bytes always do. Of a sector in the middle of which a row begins, the second level
    /// may be asked once instead of twice.
    All,
    /// The second level alone (`cg`).
    Global,
}

/// How a sector is brought to the second-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By asking for it. Nobody waits, and as much comes with it as the cache likes.
    Asking,
    /// By an asynchronous copy of a word of it, which belongs to the thread's group of copies, to a place where nobody looks.
    Copying,
}

impl Behaviour {
    /// The sizes in bytes of the elements that an instruction moves where its operands have no type of their own.
    /// Hardware shuffles 4 bytes; 8 and 16 take two and four of its instructions.
    pub fn moves(self) -> &'static [i64] {
        match self {
            Behaviour::Shuffle(_) => &[4, 8, 16],
            Behaviour::Prefetch(..) => &[1, 2, 4, 8, 16],
            _ => &[4],
        }
    }
}

/// Which lane a shuffle reads; `l` is the reading lane and `d` the last operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// `l xor d`
    Xor,
    /// `l - d`, or `l` itself if that is negative.
    Up,
    /// `l + d`, or `l` itself if that is past the warp.
    Down,
    /// `d`
    Index,
}

impl Lane {
    /// The lane that `lane` reads.
    pub fn source(self, lane: i64, d: i64) -> i64 {
        let other = match self {
            Lane::Xor => lane ^ d,
            Lane::Up => lane - d,
            Lane::Down => lane + d,
            Lane::Index => d,
        };
        if (0..32).contains(&other) { other } else { lane }
    }
}

/// Every instruction.
pub fn all() -> impl Iterator<Item = &'static Record> {
    matrix::RECORDS.iter().chain(copy::RECORDS).chain(warp::RECORDS)
}

/// The instruction of that name.
pub fn by_name(name: &str) -> Option<&'static Record> {
    all().find(|r| r.name == name)
}

const fn read(name: &'static str, window: WindowSpec) -> OperandSpec {
    OperandSpec { name, access: OperandAccess::Read, window: Some(window) }
}

const fn write(name: &'static str, window: WindowSpec) -> OperandSpec {
    OperandSpec { name, access: OperandAccess::Write, window: Some(window) }
}

const fn update(name: &'static str, window: WindowSpec) -> OperandSpec {
    OperandSpec { name, access: OperandAccess::Update, window: Some(window) }
}

const fn integer(name: &'static str) -> OperandSpec {
    OperandSpec { name, access: OperandAccess::Read, window: None }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = super::all().map(|r| r.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
