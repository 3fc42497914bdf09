//! Buffers and accesses: where the element at an index is kept.

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::index::{Atom, Comparison, Index};
use warpwright_core::ir::validate::Reach;
use warpwright_core::ir::{Access as IrAccess, Buffer, Space, Stmt};
use warpwright_core::layout::row_major_strides;

use super::{Binding, Lowering, Mode, is_output};
use crate::code::{
    Access, Accumulator, Form, GlobalInfo, Indexed, LocalInfo, Memory, Op, Reg, RingInfo, Test,
};
use crate::hazard::HazardKind;

/// A register buffer: its slots in every thread, and who owns which element.
#[derive(Clone, Debug)]
pub(super) struct RegisterBuffer {
    pub name: String,
    pub dtype: DType,
    pub first: u32,
    /// Slots in each thread.
    pub count: u32,
    pub extents: Vec<i64>,
    pub pitches: Vec<Option<i64>>,
    /// For the dimensions that are not distributed: the distance in slots. The last two are 0 under a fragment.
    pub strides: Vec<i64>,
    /// Row, column to thread and slot, for the last two dimensions.
    pub fragment: Option<FragmentTable>,
    /// For each thread: the first thread of the range that the buffer was allocated for.
    pub origin: Vec<i64>,
    pub accumulator: Option<u32>,
}

/// `(thread, slot)` of each element of a tile in C order.
#[derive(Clone, Debug)]
pub(super) struct FragmentTable {
    pub name: &'static str,
    pub rows: i64,
    pub columns: i64,
    pub places: Vec<(i64, i64)>,
}

/// Where a register access goes.
pub(super) enum Place {
    Register(Reg),
    /// The slot differs between lanes.
    Varying {
        base: u32,
        count: u32,
        index: Form,
    },
}

/// No memory of a simulated block or tensor is larger, so that element counts stay far from overflow.
const MOST_ELEMENTS: i64 = 1 << 40;
/// No thread has more registers than this in the simulator (hardware has 255; buffers may be larger before they are
/// split).
const MOST_SLOTS: i64 = 1 << 16;

impl<'p> Lowering<'p> {
    pub(super) fn global(&mut self, buffer: &Buffer, parameter: Option<usize>) -> Result<(), Diagnosis> {
        let here = |d: Diagnosis| d.at(format!("buffer `{}`", buffer.sym));
        let extents = self.extents(buffer).map_err(here)?;
        let mut strides = row_major_strides(&extents);
        if let Some(sym) = &buffer.row_stride {
            let stride = self.index(&Index::var(sym)).map_err(here)?;
            let stride = stride.as_constant().unwrap_or(0);
            let rows = strides.len().checked_sub(2);
            let rows = rows.ok_or_else(|| here(Diagnosis::new("a row stride needs two dimensions")))?;
            if stride < extents[rows + 1] {
                return Err(here(
                    Diagnosis::new(format!("the row stride `{sym}` is {stride}"))
                        .because(format!("a row has {} elements", extents[rows + 1])),
                ));
            }
            for dim in (0..=rows).rev() {
                strides[dim] =
                    if dim == rows { stride } else { strides[dim + 1].saturating_mul(extents[dim + 1]) };
            }
        }
        let start = self.starts.get(&buffer.sym).copied().unwrap_or(0);
        let last = extents.iter().zip(&strides).map(|(e, s)| (e - 1).saturating_mul(*s));
        let elements = if extents.contains(&0) { start } else { last.fold(start + 1, i64::saturating_add) };
        if elements > MOST_ELEMENTS {
            return Err(here(Diagnosis::new(format!("it has {elements} elements"))));
        }
        let number = self.code.globals.len() as u32;
        self.code.globals.push(GlobalInfo {
            name: buffer.sym.name().to_string(),
            dtype: buffer.dtype,
            extents,
            strides,
            start,
            elements: elements as usize,
            output: is_output(buffer),
            parameter,
        });
        self.bindings.insert(buffer.sym.clone(), Binding::Global(number));
        Ok(())
    }

    fn extents(&mut self, buffer: &Buffer) -> Result<Vec<i64>, Diagnosis> {
        let mut extents = Vec::new();
        for dim in &buffer.dims {
            let extent = self.index(&dim.extent)?.as_constant();
            let extent = extent.ok_or_else(|| Diagnosis::new("an extent is not known before the launch"))?;
            if extent < 0 {
                return Err(Diagnosis::new(format!("an extent is {extent}")));
            }
            extents.push(extent);
        }
        // Extents of 0 count as 1 here, so that strides stay small too.
        let elements = extents.iter().try_fold(1i64, |n, e| n.checked_mul((*e).max(1)));
        if elements.is_none_or(|n| n > MOST_ELEMENTS) {
            return Err(Diagnosis::new("it has too many elements to be simulated"));
        }
        Ok(extents)
    }

    /// An allocation inside a launch, or anywhere in order.
    pub(super) fn alloc(&mut self, buffer: &Buffer) -> Result<(), Diagnosis> {
        let here = |d: Diagnosis| d.at(format!("buffer `{}`", buffer.sym));
        match buffer.space {
            Space::Reg if self.mode == Mode::Simt => self.alloc_registers(buffer).map_err(here),
            Space::Reg | Space::Shared => self.alloc_local(buffer).map_err(here),
            Space::Global if self.mode == Mode::InOrder => {
                self.global(buffer, None)?;
                let number = self.code.globals.len() as u32 - 1;
                self.emit(Op::PoisonGlobal(number));
                Ok(())
            }
            Space::Global | Space::Param(_) => {
                Err(here(Diagnosis::new("device memory is allocated inside a launch"))
                    .instead("allocate it at host scope, before the launch"))
            }
        }
    }

    fn alloc_local(&mut self, buffer: &Buffer) -> Result<(), Diagnosis> {
        if let Some(Binding::Local(known)) = self.bindings.get(&buffer.sym) {
            let known = *known;
            self.emit(Op::PoisonLocal(known));
            return Ok(());
        }
        let extents = self.extents(buffer)?;
        let mut strides = row_major_strides(&extents);
        let mut elements = extents.iter().product::<i64>();
        let mut table = None;
        if let Some(layout) = buffer.layout.as_ref().filter(|_| self.mode == Mode::Simt) {
            elements = layout.span(&extents)?;
            let linear = layout.offset.constant_term() == 0
                && layout.offset.terms().iter().all(|(a, _)| matches!(a, Atom::Var(_)));
            if linear {
                strides = layout.axes.iter().map(|a| layout.offset.coefficient(a)).collect();
            } else {
                table = Some(
                    warpwright_core::layout::indices(&extents)
                        .map(|index| layout.at(&index) as u32)
                        .collect(),
                );
            }
        }
        if elements > 1 << 32 {
            return Err(Diagnosis::new(format!("it has {elements} elements")));
        }
        let number = self.code.locals.len() as u32;
        self.code.locals.push(LocalInfo {
            name: buffer.sym.name().to_string(),
            dtype: buffer.dtype,
            bytes: buffer.plane_bytes(),
            planes: buffer.planes() as u32,
            extents,
            strides,
            elements: elements as usize,
            table,
            atomics: false,
        });
        self.bindings.insert(buffer.sym.clone(), Binding::Local(number));
        self.emit(Op::PoisonLocal(number));
        Ok(())
    }

    fn alloc_registers(&mut self, buffer: &Buffer) -> Result<(), Diagnosis> {
        let extents = self.extents(buffer)?;
        let pitches: Vec<Option<i64>> = buffer.dims.iter().map(|d| d.pitch).collect();
        if self.context.size > 1 && !buffer.is_distributed() {
            return Err(Diagnosis::new(format!("registers of {} threads", self.context.size))
                .because("no dimension says which thread holds which element")
                .instead("give it distributed dimensions `E@P`, or allocate it inside the thread loops"));
        }
        let tiles = extents.len() - if buffer.fragment.is_some() { 2.min(extents.len()) } else { 0 };
        let (mut per_thread, mut fragment) = (1i64, None);
        if let Some(f) = buffer.fragment {
            let [.., rows, columns] = extents[..] else {
                return Err(Diagnosis::new("a fragment needs two dimensions"));
            };
            let owners = f.owners(rows, columns).ok_or_else(|| {
                Diagnosis::new(format!("fragment `{}` has no {rows} x {columns} tile", f.name))
            })?;
            per_thread = rows * columns / f.threads;
            let places = (0..rows * columns).map(|n| owners[&(n / columns, n % columns)]).collect();
            fragment = Some(FragmentTable { name: f.name, rows, columns, places });
        }
        let mut strides = vec![0; extents.len()];
        for dim in (0..tiles).rev() {
            if pitches[dim].is_none() {
                strides[dim] = per_thread;
                per_thread = per_thread.saturating_mul(extents[dim]);
            }
        }
        if per_thread > MOST_SLOTS || i64::from(self.next_slot) + per_thread > MOST_SLOTS {
            return Err(Diagnosis::new(format!("{per_thread} registers in each thread")));
        }
        let first = self.next_slot;
        self.claim(per_thread as u32);
        let role = match buffer.role.as_ref().and_then(|r| self.bindings.get(r)) {
            Some(Binding::Role(lo, _)) => Some(*lo),
            _ => None,
        };
        let offsets = self.context.offset.iter().enumerate();
        let origin = offsets.map(|(thread, offset)| role.unwrap_or(thread as i64 - offset)).collect();
        let accumulator = self.accumulated.contains(&buffer.sym).then(|| {
            let next = self.code.accumulators.len() as u32;
            let number = *self.accumulators.entry(buffer.sym.clone()).or_insert(next);
            if number == next {
                let name = buffer.sym.name().to_string();
                self.code.accumulators.push(Accumulator { name, first, count: per_thread as u32 });
            }
            number
        });
        self.registers.push(RegisterBuffer {
            name: buffer.sym.name().to_string(),
            dtype: buffer.dtype,
            first,
            count: per_thread as u32,
            extents,
            pitches,
            strides,
            fragment,
            origin,
            accumulator,
        });
        self.bindings.insert(buffer.sym.clone(), Binding::Registers(self.registers.len() - 1));
        if per_thread > 0 {
            self.emit(Op::Poison { first, count: per_thread as u32 });
        }
        Ok(())
    }

    pub(super) fn ring(&mut self, ring: &warpwright_core::ir::Ring) {
        let number = match self.bindings.get(&ring.sym) {
            Some(Binding::Ring(number)) => *number,
            _ => {
                let name = ring.sym.name().to_string();
                self.code.rings.push(RingInfo { name, depth: ring.depth.max(1), count: ring.count });
                self.code.rings.len() as u32 - 1
            }
        };
        self.bindings.insert(ring.sym.clone(), Binding::Ring(number));
        self.emit(Op::ResetRing(number));
    }

    /// Takes `count` registers.
    pub(super) fn claim(&mut self, count: u32) -> u32 {
        let first = self.next_slot;
        self.next_slot += count;
        self.most_slots = self.most_slots.max(self.next_slot);
        first
    }

    /// A register for an intermediate value, free again at the end of the statement.
    pub(super) fn temporary(&mut self) -> Reg {
        Reg(self.claim(1))
    }

    /// The element type of a buffer.
    pub(super) fn dtype_of(&self, access: &IrAccess) -> Option<DType> {
        match self.bindings.get(&access.buffer)? {
            Binding::Global(g) => Some(self.code.globals[*g as usize].dtype),
            Binding::Local(l) => Some(self.code.locals[*l as usize].dtype),
            Binding::Registers(r) => Some(self.registers[*r].dtype),
            _ => None,
        }
    }

    /// Emits a hazard for the lanes in which `test` holds.
    pub(super) fn fault(&mut self, test: Test, kind: HazardKind, text: String) {
        if test == Test::Constant(false) {
            return;
        }
        let fault = match self.code.faults.iter().position(|f| f.0 == kind && f.1 == text) {
            Some(at) => at as u32,
            None => {
                self.code.faults.push((kind, text));
                self.code.faults.len() as u32 - 1
            }
        };
        let site = self.site();
        self.emit(Op::Fault { test, fault, site });
    }

    /// The register of an element. Emits a fault where the executing thread does not own it or it does not exist.
    pub(super) fn register(&mut self, buffer: usize, index: &[Index]) -> Result<Place, Diagnosis> {
        let b = self.registers[buffer].clone();
        if index.len() != b.extents.len() {
            return Err(Diagnosis::new(format!("`{}` has {} dimensions", b.name, b.extents.len())));
        }
        let forms = self.indices(index)?;
        for (dim, (form, extent)) in forms.iter().zip(&b.extents).enumerate() {
            if !self.is_inside(form, *extent) {
                let text = format!("index {dim} of register buffer {} outside 0..{extent}", b.name);
                let below = self.compare(Comparison::Lt, form.clone());
                self.fault(below, HazardKind::OutOfBounds, text.clone());
                let past = self.sub(&Form::constant(extent - 1), form);
                let past = self.compare(Comparison::Lt, past);
                self.fault(past, HazardKind::OutOfBounds, text);
            }
        }
        let mut owner = self.lane_vector(b.origin.clone());
        let mut slot = Form::default();
        for (dim, form) in forms.iter().enumerate() {
            let (sum, factor) = match b.pitches[dim] {
                Some(pitch) => (&mut owner, pitch),
                None => (&mut slot, b.strides[dim]),
            };
            let term = self.scale(form, factor);
            *sum = self.add(sum, &term);
        }
        if let Some(fragment) = &b.fragment {
            let [.., row, column] = &forms[..] else {
                return Err(Diagnosis::new("a fragment needs two dimensions"));
            };
            if !row.is_static() || !column.is_static() {
                return Err(Diagnosis::new(format!(
                    "an element of `{}` is not known before it runs",
                    b.name
                ))
                .because("its threads are fixed by a fragment")
                .instead("visit it by `own` loops"));
            }
            let (rows, columns) = (self.static_values(row), self.static_values(column));
            let place = |n: usize| {
                let (r, c) = (rows[n], columns[n]);
                let inside = (0..fragment.rows).contains(&r) && (0..fragment.columns).contains(&c);
                if inside { fragment.places[(r * fragment.columns + c) as usize] } else { (0, 0) }
            };
            let places: Vec<(i64, i64)> = (0..self.threads).map(place).collect();
            let threads = self.lane_vector(places.iter().map(|p| p.0).collect());
            let slots = self.lane_vector(places.iter().map(|p| p.1).collect());
            owner = self.add(&owner, &threads);
            slot = self.add(&slot, &slots);
        }
        self.check_owner(&b, &owner);
        Ok(match slot.as_constant() {
            Some(c) => Place::Register(Reg(b.first + c.clamp(0, i64::from(b.count.max(1)) - 1) as u32)),
            None if slot.is_uniform() => {
                self.code.indexed.push(Indexed { base: b.first, count: b.count, index: slot });
                Place::Register(Reg(Reg::INDEXED | (self.code.indexed.len() as u32 - 1)))
            }
            None => Place::Varying { base: b.first, count: b.count, index: slot },
        })
    }

    fn check_owner(&mut self, buffer: &RegisterBuffer, owner: &Form) {
        let threads = self.lane_vector((0..self.threads as i64).collect());
        let foreign = self.sub(owner, &threads);
        let test = self.compare(Comparison::Ne, foreign);
        let text = format!("a thread touches an element of {} that lives in another thread", buffer.name);
        self.fault(test, HazardKind::Ownership, text);
    }

    /// The access to an element in memory.
    pub(super) fn memory(&mut self, access: &IrAccess, stmt: &'p Stmt, key: usize) -> Result<u32, Diagnosis> {
        let (memory, name, (dtype, bytes, planes), extents, strides, start, table) =
            match self.bindings.get(&access.buffer) {
                Some(Binding::Global(g)) => {
                    let b = &self.code.globals[*g as usize];
                    let (extents, strides) = (b.extents.clone(), b.strides.clone());
                    (
                        Memory::Global(*g),
                        b.name.clone(),
                        (b.dtype, b.dtype.bytes(), 1),
                        extents,
                        strides,
                        b.start,
                        false,
                    )
                }
                Some(Binding::Local(l)) => {
                    let b = &self.code.locals[*l as usize];
                    let (extents, strides) = (b.extents.clone(), b.strides.clone());
                    (
                        Memory::Local(*l),
                        b.name.clone(),
                        (b.dtype, b.bytes, b.planes),
                        extents,
                        strides,
                        0,
                        b.table.is_some(),
                    )
                }
                _ => return Err(Diagnosis::new(format!("`{}` is no buffer here", access.buffer))),
            };
        if access.index.len() != extents.len() {
            return Err(Diagnosis::new(format!("`{name}` has {} dimensions", extents.len())));
        }
        let index = self.indices(&access.index)?;
        let mut offset = Form::constant(start);
        let mut checks = Vec::new();
        for ((form, extent), stride) in index.iter().zip(&extents).zip(&strides) {
            if !self.is_inside(form, *extent) {
                checks.push((form.clone(), *extent));
            }
            let term = self.scale(form, *stride);
            offset = self.add(&offset, &term);
        }
        let mut table = table;
        if table && checks.is_empty() && offset.is_static() {
            let Memory::Local(l) = memory else { unreachable!("only block buffers have tables") };
            let values = self.static_values(&offset);
            let places = self.code.locals[l as usize].table.as_deref().unwrap_or_default();
            let at =
                |n: i64| usize::try_from(n).ok().and_then(|n| places.get(n)).map_or(0, |p| i64::from(*p));
            let values = values.into_iter().map(at).collect();
            offset = self.lane_vector(values);
            table = false;
        }
        let site = self.site_of(key, stmt);
        let width = match self.narrow.get(&key) {
            None => self.width,
            // The first iteration stands for all, with the one element.
            Some(Reach::One) => self.width.min(1),
            Some(_) => 1,
        };
        let number = self.code.accesses.len() as u32;
        self.code.accesses.push(Access {
            memory,
            offset,
            table,
            checks,
            index,
            site,
            width,
            dtype,
            bytes,
            planes,
            number,
        });
        Ok(self.code.accesses.len() as u32 - 1)
    }
}
