//! The state of writing one kernel's body.

use std::collections::{HashMap, HashSet};

use super::apart::Apart;
use super::corner::Corner;
use super::cursor::{Cursor, Slot, ThreadValues};
use super::names::Names;
use super::places::Place;
use super::source::{Scratch, TensorMap};
use super::spelling::Prelude;
use super::text::Lines;
use super::threads::{Executing, Nest};
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Index, Interval, Ranges};
use crate::instr::{self, Behaviour};
use crate::ir::{Access, Buffer, Operand, Param, ParamKind, Program, Ring, Role, Space, Stmt, walk};
use crate::layout::Fragment;
use crate::sym::Sym;
use crate::target::{Capability, Target};

use super::source::{LARGEST_LAUNCH_PARAMETER, LARGEST_SIZE};

/// What a whole translation unit shares: the program's symbols and what has been required so far.
pub(super) struct Unit<'a> {
    pub(super) program: &'a Program,
    pub(super) target: &'a Target,
    /// The largest size that the kernels are launched with.
    pub(super) largest_size: i64,
    pub(super) buffers: HashMap<Sym, Buffer>,
    pub(super) rings: HashMap<Sym, Ring>,
    pub(super) scalars: HashMap<Sym, DType>,
    /// The program's scratch buffers, in the order of [`Unit::scratch`].
    pub(super) scratch_buffers: Vec<Sym>,
    pub(super) scratch: Vec<Scratch>,
    /// The scratch buffers by which blocks pass sums on: each element is a link of 8 bytes.
    pub(super) links: HashSet<Sym>,
}

/// Writes the statements of one launch.
pub(super) struct Body<'a> {
    pub(super) unit: &'a Unit<'a>,
    pub(super) prelude: Prelude,
    pub(super) names: Names,
    pub(super) ranges: Ranges,
    /// Variables whose C type is `long long`.
    pub(super) long_variables: HashSet<Sym>,
    /// Variables that stand for a sum.
    pub(super) bound: HashSet<Sym>,
    /// Variables that are written as another: thread variables with one name at the top.
    pub(super) aliases: HashMap<Sym, Sym>,
    /// What the text so far mentions: the rest is not declared.
    pub(super) used: HashSet<Sym>,
    /// Buffers that the text so far writes.
    pub(super) written: HashSet<Sym>,
    /// Buffers that are loaded ahead of a barrier.
    pub(super) ahead: HashSet<Sym>,
    /// Buffers that launches before this one write, which it waits for itself.
    pub(super) written_before: HashSet<Sym>,
    pub(super) lines: Lines,
    /// `threadIdx.x`
    pub(super) tid: Sym,
    pub(super) block_threads: i64,
    pub(super) role: Option<Role>,
    /// Thread decompositions that have a name at the top.
    pub(super) named: Vec<(Nest, Sym)>,
    /// The `own` loops around the statement in hand.
    pub(super) owned: Vec<Owned>,
    /// Sums of the loops around the statement in hand that are added up apart from their buffers.
    pub(super) apart: Vec<Apart>,
    /// Whether numbers that are split may be of any value: that of their leading parts has to be kept finite.
    pub(super) any_number: bool,
    /// Register tiles whose first element has a pointer.
    pub(super) corners: Vec<Corner>,
    /// Pointers and slots that travel with the loops around the statement in hand.
    pub(super) cursors: Vec<Cursor>,
    pub(super) slots: Vec<Slot>,
    pub(super) thread_values: ThreadValues,
    /// Places in shared memory that are computed before the loop around, and what is bound in that loop.
    pub(super) places: Vec<Place>,
    /// How many places of each buffer have a name so far.
    pub(super) places_of: HashMap<Sym, usize>,
    pub(super) bound_in_loop: Option<HashSet<Sym>>,
    /// The variables of the loops around the statement in hand that are not unrolled.
    pub(super) serial_loops: Vec<Sym>,
    /// The variables of those that are.
    pub(super) unrolled_loops: Vec<Sym>,
    /// The variables of loops that the compiler is to leave as they are.
    pub(super) rolled: HashSet<Sym>,
    /// Named hardware barriers, each for one kind of range: its first thread, its size, its first number.
    pub(super) barriers: Vec<(i64, i64, i64)>,
    pub(super) maps: Vec<(String, TensorMap)>,
    /// Scalar registers that the next statement to store to them also declares.
    pub(super) to_declare: HashSet<Sym>,
    /// Register buffers of which several elements are moved at once.
    pub(super) moved_wide: HashSet<Sym>,
    /// Loads that have been done as part of a wide one, and their texts.
    pub(super) replaced_loads: Vec<(Access, String)>,
    pub(super) int_products: Vec<Vec<Index>>,
    /// The function that computes offsets in a shared buffer with a layout.
    pub(super) layout_functions: HashMap<Sym, String>,
}

/// An `own` loop over a fragment: the variables of its rows and columns stand for this register, the first of a run.
pub(super) struct Owned {
    pub(super) row: Sym,
    pub(super) column: Sym,
    pub(super) fragment: &'static Fragment,
    pub(super) register: Index,
    pub(super) run: i64,
    pub(super) lane_base: bool,
}

impl<'a> Unit<'a> {
    pub(super) fn new(program: &'a Program, target: &'a Target, largest_size: i64) -> Unit<'a> {
        let mut rings = HashMap::new();
        walk::for_each(&program.body, &mut |stmt| {
            if let Stmt::AllocRing(ring) = stmt {
                rings.insert(ring.sym.clone(), ring.clone());
            }
        });
        let scalars = program.params.iter().filter_map(|p| match p.kind {
            ParamKind::Scalar(dtype) => Some((p.sym.clone(), dtype)),
            _ => None,
        });
        Unit {
            program,
            target,
            largest_size,
            buffers: program.buffers(),
            rings,
            scalars: scalars.collect(),
            scratch_buffers: Vec::new(),
            scratch: Vec::new(),
            links: HashSet::new(),
        }
    }

    /// Lists the program's scratch buffers.
    pub(super) fn allot_scratch(&mut self) {
        let program = self.program;
        walk::for_each(&program.body, &mut |stmt| {
            if let Stmt::Instruction(call) = stmt
                && instr::by_name(&call.name).is_some_and(|r| r.behaviour == Behaviour::ChainedSum)
                && let Some(Operand::Window(link)) = call.operands.last()
            {
                self.links.insert(link.buffer.clone());
            }
        });
        walk::for_each(&program.body, &mut |stmt| {
            if let Stmt::Alloc(buffer) = stmt
                && buffer.space == Space::Global
            {
                let is_link = self.links.contains(&buffer.sym);
                self.scratch.push(Scratch {
                    name: buffer.sym.name().to_string(),
                    element_bytes: if is_link { 8 } else { buffer.dtype.bytes() },
                    extents: buffer.dims.iter().map(|d| d.extent.clone()).collect(),
                    zeroed: is_link,
                });
                self.scratch_buffers.push(buffer.sym.clone());
            }
        });
    }

    /// What is known of parameters: sizes are not negative, and what `assume` says of one of them.
    pub(super) fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::new();
        for Param { sym, kind } in &self.program.params {
            match kind {
                ParamKind::Size => ranges.set(sym, Interval::new(0, self.largest_size)),
                ParamKind::Launch => ranges.set(sym, Interval::new(1, LARGEST_LAUNCH_PARAMETER)),
                ParamKind::Tensor(Buffer { row_stride: Some(stride), .. }) => {
                    ranges.set(stride, Interval::new(0, LARGEST_SIZE));
                }
                _ => {}
            }
        }
        for assumed in &self.program.assumes {
            super::refine(&mut ranges, assumed);
        }
        ranges
    }

    /// The buffer of that symbol.
    pub(super) fn buffer(&self, sym: &Sym) -> Result<&Buffer, Diagnosis> {
        self.buffers.get(sym).ok_or_else(|| Diagnosis::new(format!("`{sym}` is no buffer of the program")))
    }

    /// Whether sizes are `long long`.
    pub(super) fn is_long(&self) -> bool {
        self.largest_size > LARGEST_SIZE
    }

    pub(super) fn has(&self, capability: Capability) -> bool {
        self.target.has(capability)
    }
}

impl Body<'_> {
    pub(super) fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line);
    }

    /// Writes into a block one level deeper and returns it; names declared inside end with it.
    pub(super) fn nested(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), Diagnosis>,
    ) -> Result<Lines, Diagnosis> {
        self.names.enter();
        let result = self.captured(1, write);
        self.names.leave();
        result
    }

    /// Writes aside, `deeper` levels deeper, and returns what was written.
    pub(super) fn captured(
        &mut self,
        deeper: usize,
        write: impl FnOnce(&mut Self) -> Result<(), Diagnosis>,
    ) -> Result<Lines, Diagnosis> {
        let inner = Lines::at_depth(self.lines.depth() + deeper);
        let outer = std::mem::replace(&mut self.lines, inner);
        let result = write(self);
        let inner = std::mem::replace(&mut self.lines, outer);
        result.map(|()| inner)
    }

    /// Writes statements in which `sym` lies in `interval`.
    pub(super) fn with_range<T>(
        &mut self,
        sym: &Sym,
        interval: Interval,
        write: impl FnOnce(&mut Self) -> Result<T, Diagnosis>,
    ) -> Result<T, Diagnosis> {
        let before = self.ranges.get(sym);
        self.ranges.set(sym, interval);
        let result = write(self);
        self.ranges.set(sym, before);
        result
    }

    /// All threads of the block, or of the role in hand.
    pub(super) fn everyone(&self) -> Executing {
        let (base, size) = match &self.role {
            Some(role) => (role.lo, role.hi - role.lo),
            None => (0, self.block_threads),
        };
        Executing { base, size, local: Index::var(&self.tid).offset(-base) }
    }

    /// Whether a register buffer is one plain variable of each thread.
    pub(super) fn is_scalar(buffer: &Buffer) -> bool {
        buffer.space == Space::Reg
            && buffer.fragment.is_none()
            && buffer.dims.iter().all(|d| d.pitch.is_some() || d.extent.as_constant() == Some(1))
    }
}
