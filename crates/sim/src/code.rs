//! The code that programs are compiled to: what the engine executes.
//!
//! A program is compiled for given sizes, so every size is a number here. What is left to vary is of two kinds.
//! *Uniform* integers (block and loop variables, ordinals) are the same for all threads that execute a statement;
//! *lane vectors* have a value for each thread. Whatever depends on the thread alone is computed once, at compile time,
//! as a vector with one entry for each thread of the block; an address is then "uniform part + vector of the lane".
//!
//! Unrolled loops are written out, so the slot of a register is a constant. Data lives in registers of `W` lanes: 32
//! for a warp in SIMT mode, 1 in order.

use warpwright_core::dtype::DType;
use warpwright_core::index::Comparison;
use warpwright_core::instr::Record;
use warpwright_core::ir::{BinaryOp, Reduction, Stmt, UnaryOp};

use crate::points::Nest;

/// The lanes of a warp in SIMT mode.
pub(crate) const WARP: usize = 32;

/// An integer: a constant, multiples of uniform variables, a lane vector, and multiples of run-time lane variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub constant: i64,
    pub uniform: Vec<(u32, i64)>,
    pub lanes: Option<u32>,
    pub dynamic: Vec<(u32, i64)>,
}

impl Form {
    pub fn constant(value: i64) -> Form {
        Form { constant: value, ..Form::default() }
    }

    pub fn uniform(variable: u32) -> Form {
        Form { uniform: vec![(variable, 1)], ..Form::default() }
    }

    pub fn dynamic(variable: u32) -> Form {
        Form { dynamic: vec![(variable, 1)], ..Form::default() }
    }

    /// The value if it is a number.
    pub fn as_constant(&self) -> Option<i64> {
        (self.is_uniform() && self.uniform.is_empty()).then_some(self.constant)
    }

    /// Whether all threads see the same value.
    pub fn is_uniform(&self) -> bool {
        self.lanes.is_none() && self.dynamic.is_empty()
    }

    /// Whether the value depends on the thread alone.
    pub fn is_static(&self) -> bool {
        self.uniform.is_empty() && self.dynamic.is_empty()
    }
}

/// A vector with a value for each thread of the block, and its bounds in each warp.
#[derive(Clone, Debug)]
pub(crate) struct LaneVector {
    pub values: Box<[i64]>,
    /// Smallest and largest value in each warp.
    pub bounds: Box<[(i64, i64)]>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    Constant(bool),
    /// A bit for each thread, 32 to a word: the number of a mask.
    Mask(u32),
    /// The form compared with 0.
    Compare(Comparison, Form),
    Not(Box<Test>),
    And(Vec<Test>),
    Or(Vec<Test>),
}

/// A computation on integers that is not a sum of multiples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Integral {
    /// A copy: fixes the value of an ordinal at this point.
    Copy(Form),
    Div(Form, i64),
    Mod(Form, i64),
    Min(Form, Form),
    Max(Form, Form),
    Xor(Form, Form),
    Select(Test, Form, Form),
    /// The first value of part `index` of `parts` of `lo..hi`.
    Part {
        index: Form,
        parts: Form,
        lo: Form,
        hi: Form,
    },
}

/// A register: a slot, or (top bit set) the number of an entry of [`Code::indexed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reg(pub u32);

impl Reg {
    pub const INDEXED: u32 = 1 << 31;

    /// The slot, if it is a constant.
    pub fn slot(self) -> Option<u32> {
        (self.0 & Reg::INDEXED == 0).then_some(self.0)
    }
}

/// A register whose slot is known only at run time; `index` is uniform and was checked to lie in `0..count`.
#[derive(Clone, Debug)]
pub(crate) struct Indexed {
    pub base: u32,
    pub count: u32,
    pub index: Form,
}

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// A parameter or scratch buffer: the number of an entry of [`Code::globals`].
    Global(u32),
    /// A buffer of the block: the number of an entry of [`Code::locals`].
    Local(u32),
}

/// An element statement's access to memory.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub memory: Memory,
    /// The element: its physical offset, or its C-order number if [`Access::table`].
    pub offset: Form,
    /// Look the offset up in the table of the buffer's layout.
    pub table: bool,
    /// Indices whose bounds could not be proved when the code was made, with the extents.
    pub checks: Vec<(Form, i64)>,
    /// All indices, to name the element in a report.
    pub index: Vec<Form>,
    /// The statement and access within it that this is part of.
    pub site: u32,
    /// Elements that count as one access of a lane: more than 1 for the first element of a vector loop, 0 for others.
    pub width: u32,
    pub dtype: DType,
    /// Bytes of an element in each plane that it is stored in, of which all are asked for.
    pub bytes: i64,
    pub planes: u32,
    /// Its place in [`Code::accesses`].
    pub number: u32,
}

/// An operand of an instruction.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Integer(Form),
    Memory(MemoryWindow),
    Registers(RegisterWindow),
}

/// A box of elements in memory.
#[derive(Clone, Debug)]
pub(crate) struct MemoryWindow {
    pub memory: Memory,
    /// The first index in each dimension of the buffer.
    pub start: Vec<Form>,
    /// The dimensions of the buffer that the window keeps.
    pub kept: Vec<usize>,
    /// The extents of the window, dropped dimensions left out.
    pub shape: Vec<i64>,
    pub dtype: DType,
}

/// A box of elements in the registers of a warp or warpgroup, in C order of the window.
#[derive(Clone, Debug)]
pub(crate) struct RegisterWindow {
    /// The register to which the slots of `elements` are added.
    pub base: Reg,
    /// For each element: slot from `base`, and lane counted from the first thread of the executing range.
    pub elements: Vec<(u16, u16)>,
    pub shape: Vec<i64>,
    pub dtype: DType,
    /// The number of an entry of [`Code::accumulators`], if wgmma works on this buffer.
    pub accumulator: Option<u32>,
}

/// A call of an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub record: &'static Record,
    pub arguments: Vec<Argument>,
    pub signal: Option<(u32, Form)>,
    pub site: u32,
    /// What is wrong with the operands for the record, found when the code was made.
    pub fault: Option<String>,
}

/// A statement of the engine.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A uniform variable takes a value.
    Uniform(u32, Integral),
    /// A run-time lane variable takes a value in each lane.
    Lanes(u32, Integral),
    /// Registers `first..first + count` of all lanes become poison.
    Poison {
        first: u32,
        count: u32,
    },
    /// A buffer of the block becomes poison.
    PoisonLocal(u32),
    /// A scratch buffer becomes poison.
    PoisonGlobal(u32),
    Move {
        to: Reg,
        from: Reg,
        dtype: Option<DType>,
    },
    Unary {
        op: UnaryOp,
        to: Reg,
        from: Reg,
        dtype: DType,
    },
    Binary {
        op: BinaryOp,
        to: Reg,
        a: Reg,
        b: Reg,
        dtype: DType,
    },
    /// `to = c + a * b`.
    MultiplyAdd {
        to: Reg,
        c: Reg,
        a: Reg,
        b: Reg,
        dtype: DType,
    },
    /// Many of them on constant slots: entries of [`Code::multiply_adds`].
    MultiplyAdds {
        first: u32,
        count: u32,
        dtype: DType,
    },
    Load {
        to: Reg,
        access: u32,
    },
    Store {
        from: Reg,
        access: u32,
    },
    /// An atomic reduction into memory.
    Reduce {
        from: Reg,
        access: u32,
        reduction: Reduction,
    },
    /// A register whose index differs between lanes: moves to (`store`) or from slot `base + index`.
    Scatter {
        register: Reg,
        base: u32,
        count: u32,
        index: Form,
        store: bool,
    },
    /// A hazard for every active lane in which the test holds.
    Fault {
        test: Test,
        fault: u32,
        site: u32,
    },
    /// Ordinary code touches registers that wgmma may be working on.
    TouchAccumulator {
        register: Reg,
        accumulator: u32,
        write: bool,
        site: u32,
    },
    Loop {
        variable: u32,
        lo: Form,
        hi: Form,
        step: Form,
        counting: Option<u32>,
        body: Vec<Op>,
    },
    /// A loop whose bounds differ between lanes.
    LaneLoop {
        variable: u32,
        lo: Form,
        hi: Form,
        step: Form,
        site: u32,
        body: Vec<Op>,
    },
    Tasks {
        variables: Vec<u32>,
        extents: Vec<Form>,
        start: Form,
        stride: Form,
        body: Vec<Op>,
    },
    /// `site` is present where a divergent outcome counts as a divergent branch.
    If {
        test: Test,
        then: Vec<Op>,
        otherwise: Vec<Op>,
        site: Option<u32>,
    },
    /// For each of `count` ranges of `pitch` threads, one after another: the body, executed by that range.
    Ranges {
        variable: u32,
        count: i64,
        pitch: i64,
        body: Vec<Op>,
    },
    /// The body, executed by the threads `lo..hi` of the block.
    On {
        lo: i64,
        hi: i64,
        body: Vec<Op>,
    },
    /// Warp by warp, the threads of the executing range that are in the mask: the body. `ordinals` are counted in it.
    Nest {
        mask: u32,
        ordinals: Vec<u32>,
        body: Vec<Op>,
    },
    Sync {
        sync: warpwright_core::ir::Sync,
        size: i64,
        site: u32,
    },
    /// `times` arrivals by each executing thread.
    Arrive {
        ring: u32,
        ordinal: Form,
        bytes: Form,
        times: i64,
        site: u32,
    },
    Await {
        ring: u32,
        ordinal: Form,
        site: u32,
    },
    Call(Box<Call>),
    /// All phases of a ring are new.
    ResetRing(u32),
}

/// A parameter or scratch buffer.
#[derive(Clone, Debug)]
pub(crate) struct GlobalInfo {
    pub name: String,
    pub dtype: DType,
    pub extents: Vec<i64>,
    pub strides: Vec<i64>,
    /// Elements' lengths from a multiple of 16 bytes to its address.
    pub start: i64,
    /// Elements from that multiple to the last, row padding included.
    pub elements: usize,
    /// A store of poison is a fault.
    pub output: bool,
    /// Its content before the program is poison: scratch, and outputs that are only written.
    pub parameter: Option<usize>,
}

impl GlobalInfo {
    /// The place of the first element of a row, named by all indices but the last.
    pub fn row(&self, index: &[i64]) -> i64 {
        index.iter().zip(&self.strides).fold(self.start, |at, (i, stride)| at + i * stride)
    }
}

/// A buffer of a block: shared memory, and in order also registers.
#[derive(Clone, Debug)]
pub(crate) struct LocalInfo {
    pub name: String,
    pub dtype: DType,
    /// Bytes of an element in each plane that it is stored in.
    pub bytes: i64,
    pub planes: u32,
    pub extents: Vec<i64>,
    pub strides: Vec<i64>,
    pub elements: usize,
    /// C-order number to physical offset, if the layout is not C order.
    pub table: Option<Vec<u32>>,
    /// Some statement adds atomically to it.
    pub atomics: bool,
}

/// A ring of mbarriers.
#[derive(Clone, Debug)]
pub(crate) struct RingInfo {
    pub name: String,
    pub depth: i64,
    pub count: i64,
}

/// A register buffer that wgmma accumulates in: its slots.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    pub name: String,
    pub first: u32,
    pub count: u32,
}

/// A place in the program that touches memory, branches or synchronises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'p> {
    pub stmt: &'p Stmt,
}

/// A step of the host.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A scratch buffer becomes poison.
    Scratch(u32),
    Launch(LaunchCode),
}

/// A launch.
#[derive(Clone, Debug)]
pub(crate) struct LaunchCode {
    /// The block loops, outermost first: variable, extent and axis.
    pub grid: Vec<(u32, i64, warpwright_core::ir::Axis)>,
    pub threads: usize,
    pub ordered: bool,
    /// Some block adds atomically to device memory.
    pub global_atomics: bool,
    pub body: Vec<Op>,
    /// Register slots of a thread.
    pub slots: u32,
    /// The streams of a thread that this launch uses beyond program order: see [`crate::order::Order`].
    pub asynchronous: bool,
    /// Which globals are written: only those need a record of who touched them.
    pub written: Vec<bool>,
    /// Constants and scalars that live in registers: slot and value.
    pub constants: Vec<(u32, Constant)>,
    pub locals: Vec<u32>,
    pub rings: Vec<u32>,
    pub shared_bytes: i64,
    /// The nest of loops around the body, if it is run point by point.
    pub nest: Option<Box<Nest>>,
}

/// What a register that never changes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    /// The bits of an `f64`.
    Literal(u64),
    /// The number of a scalar parameter.
    Scalar(u32),
}

/// A compiled program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code<'p> {
    pub steps: Vec<Step>,
    pub globals: Vec<GlobalInfo>,
    pub locals: Vec<LocalInfo>,
    pub rings: Vec<RingInfo>,
    pub accumulators: Vec<Accumulator>,
    /// Texts of the faults that [`Op::Fault`] reports.
    pub faults: Vec<(crate::hazard::HazardKind, String)>,
    pub lanes: Vec<LaneVector>,
    pub masks: Vec<Box<[u32]>>,
    pub indexed: Vec<Indexed>,
    pub accesses: Vec<Access>,
    pub multiply_adds: Vec<crate::arithmetic::MultiplyAdd>,
    pub sites: Vec<Site<'p>>,
    pub scalars: Vec<String>,
    pub uniforms: usize,
    pub dynamics: usize,
}
