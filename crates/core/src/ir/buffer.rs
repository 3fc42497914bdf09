//! Buffers: tensors, scratch memory, shared memory and registers; and rings of mbarriers.

use crate::dtype::DType;
use crate::index::Index;
use crate::layout::{Fragment, Layout};
use crate::sym::Sym;

/// A named array.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// The name that accesses use.
    pub sym: Sym,
    /// The type of a stored element.
    pub dtype: DType,
    /// The logical dimensions; accesses have one index for each.
    pub dims: Vec<Dim>,
    /// The memory it lives in.
    pub space: Space,
    /// For a two-dimensional tensor parameter, the size parameter that holds the row stride in elements; without
    /// one, rows are adjacent.
    pub row_stride: Option<Sym>,
    /// The bytes of which its address is a multiple: [`ALIGNMENT`], or less for a tensor parameter that the caller may
    /// begin anywhere.
    pub align: i64,
    /// For a shared buffer, where each element is kept; without one, C order.
    pub layout: Option<Layout>,
    /// For a register buffer, how the last two dimensions are spread over a warp or warpgroup.
    pub fragment: Option<&'static Fragment>,
    /// For a register buffer, the role whose threads own it.
    pub role: Option<Sym>,
    /// For a shared or register buffer of f32 or complex64, whether elements are stored as their tf32 parts: rounded to eleven
    /// bits, and what is left, in as many bytes again. They are the same numbers; matrix units multiply them as they are.
    pub split: bool,
}

/// The alignment in bytes that the widest access asks for. Everything that is allocated has it, and so has a tensor
/// parameter that declares nothing else.
pub const ALIGNMENT: i64 = 16;

/// One dimension of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Dim {
    /// The number of elements.
    pub extent: Index,
    /// If distributed: element `i` of this dimension lives `i * pitch` threads after the first.
    pub pitch: Option<i64>,
}

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// A tensor that the caller passes.
    Param(Io),
    /// Scratch in device memory, allocated for one call.
    Global,
    /// Memory of a block.
    Shared,
    /// Registers, owned by threads.
    Reg,
}

/// What a program may do with a tensor parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Io {
    /// Only read.
    In,
    /// Only written; its content before is undefined.
    Out,
    /// Read and written.
    InOut,
}

/// A ring of mbarriers addressed by ordinals: ordinal `n` is phase `n / depth` of slot `n % depth` (rule 22).
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// The name.
    pub sym: Sym,
    /// The number of slots.
    pub depth: i64,
    /// Arrivals that complete a phase.
    pub count: i64,
}

impl Dim {
    /// An ordinary dimension.
    pub fn new(extent: impl Into<Index>) -> Dim {
        Dim { extent: extent.into(), pitch: None }
    }

    /// A dimension spread over threads, `pitch` apart.
    pub fn distributed(extent: i64, pitch: i64) -> Dim {
        Dim { extent: extent.into(), pitch: Some(pitch) }
    }
}

impl Buffer {
    /// A buffer with neither layout nor fragment, row stride nor role, aligned for every access.
    pub fn new(sym: Sym, dtype: DType, dims: Vec<Dim>, space: Space) -> Buffer {
        Buffer {
            sym,
            dtype,
            dims,
            space,
            row_stride: None,
            align: ALIGNMENT,
            layout: None,
            fragment: None,
            role: None,
            split: false,
        }
    }

    /// Bytes of an element as it is stored.
    pub fn element_bytes(&self) -> i64 {
        self.dtype.bytes() * if self.split { 2 } else { 1 }
    }

    /// How many planes an element in shared memory is spread over: parts of split numbers, real and imaginary ones, each in a plane of
    /// its own. What reads or writes an element makes a request of each plane.
    pub fn planes(&self) -> i64 {
        if self.split && self.space == Space::Shared { self.element_bytes() / 4 } else { 1 }
    }

    /// Bytes of an element in one of its planes.
    pub fn plane_bytes(&self) -> i64 {
        self.element_bytes() / self.planes()
    }

    /// The extents if all are constants.
    pub fn constant_extents(&self) -> Option<Vec<i64>> {
        self.dims.iter().map(|d| d.extent.as_constant()).collect()
    }

    /// Whether the buffer is in device memory: a parameter or scratch.
    pub fn is_global(&self) -> bool {
        matches!(self.space, Space::Param(_) | Space::Global)
    }

    /// Whether elements are spread over threads.
    pub fn is_distributed(&self) -> bool {
        self.fragment.is_some() || self.dims.iter().any(|d| d.pitch.is_some())
    }

    /// Whether the program may write it.
    pub fn is_writable(&self) -> bool {
        self.space != Space::Param(Io::In)
    }
}
