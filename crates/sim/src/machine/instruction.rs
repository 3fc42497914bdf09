//! Instructions: each moves data by its own address rule, under its own stream.

use warpwright_core::dtype::DType;
use warpwright_core::instr::{Behaviour, Lane};

use super::{Machine, lanes};
use crate::arithmetic::Arithmetic;
use crate::code::{Argument, Call, Memory, MemoryWindow, RegisterWindow, WARP};
use crate::count::Counters;
use crate::hazard::HazardKind;
use crate::memory::{element, place};
use crate::order::{Agent, Stream};
use crate::shadow::Touch;

/// Bytes of a row of the 128-byte swizzle, and of the pieces that it moves.
const SWIZZLE_ROW: i64 = 128;
pub(super) const PIECE: i64 = 16;

/// Real multiply-adds in one of a type.
pub(super) fn multiply_adds(dtype: DType) -> u64 {
    if dtype.is_complex() { 4 } else { 1 }
}

/// Elements side by side on their way from device memory to shared memory, for one thread.
pub(super) struct Run<'w> {
    /// The window that they come to, and its first element.
    pub(super) to: (&'w MemoryWindow, Vec<i64>),
    /// The window that they come from, and its first element.
    pub(super) from: (&'w MemoryWindow, Vec<i64>),
    /// Where the first of them stands in the shared buffer.
    pub(super) at: usize,
    /// Who moves them, and when that was issued.
    pub(super) agent: Agent,
    pub(super) stamp: u32,
    /// The lane that asked for them.
    pub(super) lane: usize,
}

impl<'a, A: Arithmetic, const W: usize> Machine<'a, A, W> {
    pub(super) fn call(&mut self, call: &'a Call, mask: u32) {
        if let Some(fault) = call.fault.as_ref().filter(|_| W == WARP) {
            self.hazard(HazardKind::Operand, call.site, || fault.clone());
        }
        if W != WARP {
            self.call_in_order(call);
            return;
        }
        match (call.record.behaviour, &call.arguments[..]) {
            (
                Behaviour::Multiply { m, n, k, conjugate },
                [Argument::Registers(d), Argument::Registers(a), Argument::Registers(b)],
            ) => {
                self.multiply(d, a, b, [m as usize, n as usize, k as usize], conjugate);
            }
            (Behaviour::LoadMatrix { turned, .. }, [Argument::Registers(d), Argument::Memory(a)]) => {
                self.load_matrix(call, d, a, turned)
            }
            (
                Behaviour::Shuffle(lane),
                [Argument::Registers(t), Argument::Registers(v), Argument::Integer(d)],
            ) => {
                let d = self.lane_value(d, 0);
                self.shuffle(t, v, lane, d);
            }
            (
                Behaviour::ChainedSum,
                [Argument::Registers(before), Argument::Registers(total), Argument::Memory(chain)],
            ) => {
                self.chained_sum(call, before, total, chain);
            }
            (
                Behaviour::CopyAsync { bytes, .. },
                [Argument::Memory(d), Argument::Memory(a), Argument::Integer(valid)],
            ) => {
                self.copy_async(call, bytes, d, a, valid, mask);
            }
            (Behaviour::Prefetch(..), [Argument::Memory(a)]) => self.prefetch(call, a, mask),
            (Behaviour::BulkCopy, [Argument::Memory(d), Argument::Memory(a), Argument::Integer(valid)]) => {
                self.bulk_copy(call, d, a, valid, mask);
            }
            (Behaviour::BulkWrite, [Argument::Memory(d), Argument::Memory(a), Argument::Integer(valid)]) => {
                self.bulk_write(call, d, a, valid, mask);
            }
            (Behaviour::BulkLoad, [Argument::Memory(d), Argument::Memory(a)]) => {
                self.bulk(call, d, a, true, mask)
            }
            (Behaviour::BulkStore, [Argument::Memory(d), Argument::Memory(a)]) => {
                self.bulk(call, a, d, false, mask)
            }
            (
                Behaviour::WarpgroupMultiply { k },
                [Argument::Registers(d), Argument::Memory(a), Argument::Memory(b)],
            ) => {
                self.warpgroup_multiply(call, d, a, b, k);
            }
            _ => self.hazard(HazardKind::Operand, call.site, || {
                format!("{}: operands in memories that the instruction does not take", call.record.name)
            }),
        }
    }

    /// The register file index of each element of a window.
    fn register_places(&self, w: &RegisterWindow) -> impl Iterator<Item = usize> {
        let slots = self.slots();
        let first = self.at(w.base);
        let length = self.registers.len();
        w.elements.iter().map(move |(slot, lane)| {
            let (warp, lane) = (*lane as usize / W, *lane as usize % W);
            (first + (warp * slots + *slot as usize) * W + lane).min(length - 1)
        })
    }

    fn gather(&self, w: &RegisterWindow) -> Vec<A> {
        self.register_places(w).map(|at| self.registers[at]).collect()
    }

    /// `d += a b`, or `conj(a) b`.
    fn multiply(
        &mut self,
        d: &RegisterWindow,
        a: &RegisterWindow,
        b: &RegisterWindow,
        [m, n, k]: [usize; 3],
        conjugate: bool,
    ) {
        let (mut a, b) = (self.gather(a), self.gather(b));
        if conjugate {
            a.iter_mut().for_each(|a| *a = a.conj());
        }
        self.accumulate(d, &a, &b, [m, n, k], false);
    }

    /// Sums in the order of k, each product added to the accumulator with one rounding.
    fn accumulate(&mut self, d: &RegisterWindow, a: &[A], b: &[A], [m, n, k]: [usize; 3], transposed: bool) {
        if d.elements.len() != m * n || a.len() != m * k || b.len() != k * n {
            return;
        }
        let row_b: Vec<A> = if transposed {
            (0..k).flat_map(|l| (0..n).map(move |j| j * k + l)).map(|at| b[at]).collect()
        } else {
            b.to_vec()
        };
        let places: Vec<usize> = self.register_places(d).collect();
        let mut sums = vec![A::POISON; n];
        for i in 0..m {
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = self.registers[places[i * n + j]];
            }
            for l in 0..k {
                let x = a[i * k + l];
                for (sum, y) in sums.iter_mut().zip(&row_b[l * n..(l + 1) * n]) {
                    *sum = sum.mul_add(x, *y);
                }
            }
            for (j, sum) in sums.iter().enumerate() {
                self.registers[places[i * n + j]] = sum.round(d.dtype);
            }
        }
        self.counters.fma += (m * n * k) as u64 * multiply_adds(d.dtype);
    }

    fn shuffle(&mut self, t: &RegisterWindow, v: &RegisterWindow, lane: Lane, d: i64) {
        let values = self.gather(v);
        let places: Vec<usize> = self.register_places(t).collect();
        for (l, at) in places.into_iter().enumerate() {
            let source = lane.source(l as i64, d) as usize;
            if let Some(value) = values.get(source) {
                self.registers[at] = *value;
            }
        }
    }

    fn chained_sum(
        &mut self,
        call: &'a Call,
        before: &RegisterWindow,
        total: &RegisterWindow,
        chain: &MemoryWindow,
    ) {
        let index: Vec<i64> = self.index_in_lane(&chain.start, 0);
        let Memory::Global(g) = chain.memory else { return };
        let info = &self.code.globals[g as usize];
        let Some(at) = place(info, &index) else {
            let text = element(&info.name, &index);
            self.hazard(HazardKind::OutOfBounds, call.site, || text);
            return;
        };
        let sum = if at == 0 { A::from_f64(0.0) } else { self.globals[g as usize].load(at - 1) };
        if sum.is_poison() {
            self.hazard(HazardKind::Chain, call.site, || "the block before has given nothing".to_string());
        }
        if !self.launch.ordered {
            self.hazard(HazardKind::Chain, call.site, || {
                "the blocks of the launch are not ordered".to_string()
            });
        }
        let own = self.gather(total).first().copied().unwrap_or(A::POISON);
        for at in self.register_places(before).collect::<Vec<_>>() {
            self.registers[at] = sum;
        }
        self.globals[g as usize].store(at, sum.add(own));
    }

    /// The first index of a window, as a lane sees it.
    pub(super) fn start(&self, w: &MemoryWindow, lane: usize) -> Vec<i64> {
        w.start.iter().map(|f| self.lane_value(f, lane)).collect()
    }

    /// The physical offset of an element of a block's buffer by the buffer's own layout.
    pub(super) fn local_offset(&self, local: u32, index: &[i64]) -> Option<usize> {
        let info = &self.code.locals[local as usize];
        let inside = index.iter().zip(&info.extents).all(|(i, e)| (0..*e).contains(i));
        if !inside {
            return None;
        }
        let flat: i64 = index.iter().zip(&info.strides).map(|(i, s)| i * s).sum();
        let at = usize::try_from(flat).ok()?;
        let at = match &info.table {
            Some(table) => *table.get(at)? as usize,
            None => at,
        };
        (at < info.elements).then_some(at)
    }

    /// The index of element `inner` of a window that starts at `start`.
    pub(super) fn inner_index(w: &MemoryWindow, start: &[i64], inner: &[i64]) -> Vec<i64> {
        let mut index = start.to_vec();
        for (dim, i) in w.kept.iter().zip(inner) {
            index[*dim] += i;
        }
        index
    }

    fn load_matrix(&mut self, call: &'a Call, d: &RegisterWindow, a: &MemoryWindow, turned: bool) {
        let Memory::Local(local) = a.memory else { return };
        if a.shape != [16, 16] || d.elements.len() != 256 {
            return;
        }
        let start = self.start(a, 0);
        let unit = a.dtype.bytes();
        let piece = PIECE / unit;
        let places: Vec<usize> = self.register_places(d).collect();
        let mut addresses = [(0u8, 0i64); WARP];
        for (lane, address) in addresses.iter_mut().enumerate() {
            // Lane l gives the address of row l % 8 of tile l / 8; tiles go down first, in the destination.
            let (tile, row) = (lane / 8, lane % 8);
            let (down, right) = if turned { (tile / 2, tile % 2) } else { (tile % 2, tile / 2) };
            let (i, j) = (8 * down + row, 8 * right);
            let index = Self::inner_index(a, &start, &[i as i64, j as i64]);
            let Some(at) = self.local_offset(local, &index) else {
                self.outside(call, a.memory, &index, lane);
                continue;
            };
            *address = (lane as u8, at as i64 * unit);
            if at as i64 % piece != 0 {
                self.hazard(HazardKind::Operand, call.site, || {
                    format!(
                        "{}: row {i} of a tile does not start at a multiple of 16 bytes",
                        call.record.name
                    )
                });
            }
            self.expect_together(call, a, index, at, 8, lane);
            let agent = Agent::new(self.thread(lane), Stream::Program);
            for c in 0..8 {
                let value = self.locals[local as usize].get(at + c).copied().unwrap_or(A::POISON);
                let place = if turned { (j + c) * 16 + i } else { i * 16 + j + c };
                self.registers[places[place]] = value;
                if at + c < self.code.locals[local as usize].elements {
                    let now = self.order.now;
                    self.touch_element(a.memory, at + c, agent, now, Touch::Read, call.site, || {
                        Self::inner_index(a, &start, &[i as i64, (j + c) as i64])
                    });
                }
            }
        }
        if self.checks {
            let wavefronts = self.tally.wavefronts(&addresses, PIECE);
            let counters = Counters {
                shared_load_requests: 1,
                shared_load_wavefronts: wavefronts,
                ..Counters::default()
            };
            self.count(call.site, counters);
        }
    }

    /// The instruction takes `count` elements from offset `at` on; the layout must have put those of the window there
    /// that begin at `index`.
    pub(super) fn expect_together(
        &mut self,
        call: &'a Call,
        w: &MemoryWindow,
        mut index: Vec<i64>,
        at: usize,
        count: usize,
        lane: usize,
    ) {
        let (Memory::Local(local), Some(&along)) = (w.memory, w.kept.last()) else { return };
        for e in 1..count {
            index[along] += 1;
            match self.local_offset(local, &index) {
                Some(place) if place == at + e => {}
                Some(_) => {
                    let name = self.code.locals[local as usize].name.clone();
                    self.hazard(HazardKind::Operand, call.site, || {
                        format!("{}: the layout of {name} does not keep 16 bytes together", call.record.name)
                    });
                    return;
                }
                None => {
                    self.outside(call, w.memory, &index, lane);
                    return;
                }
            }
        }
    }

    pub(super) fn outside(&mut self, call: &'a Call, memory: Memory, index: &[i64], lane: usize) {
        let (name, extents) = self.buffer_name(memory);
        let thread = self.thread(lane);
        let text = element(&name, index);
        self.hazard(HazardKind::OutOfBounds, call.site, || {
            format!("{text} of a buffer of extents {extents:?}, by thread {thread}")
        });
    }

    /// Nothing happens, but what is asked for has to be there.
    fn prefetch(&mut self, call: &'a Call, a: &MemoryWindow, mask: u32) {
        let Memory::Global(global) = a.memory else { return };
        for lane in lanes(mask) {
            let index = self.start(a, lane);
            if place(&self.code.globals[global as usize], &index).is_none() {
                self.outside(call, a.memory, &index, lane);
            }
        }
    }

    fn copy_async(
        &mut self,
        call: &'a Call,
        bytes: i64,
        d: &MemoryWindow,
        a: &MemoryWindow,
        valid: &crate::code::Form,
        mask: u32,
    ) {
        let (Memory::Local(local), Memory::Global(_)) = (d.memory, a.memory) else { return };
        let unit = d.dtype.bytes();
        let count = d.shape.first().copied().unwrap_or(0);
        let (mut reads, mut writes) = ([0i64; W], [0i64; W]);
        let mut reading = 0u32;
        for lane in lanes(mask) {
            let agent = Agent::new(self.thread(lane), Stream::CpAsync);
            let stamp = self.order.issue(agent);
            let (to, from) = (self.start(d, lane), self.start(a, lane));
            let valid = self.valid(call, valid, count, lane);
            let Some(at) = self.local_offset(local, &to) else {
                self.outside(call, d.memory, &to, lane);
                continue;
            };
            self.expect_together(call, d, to.clone(), at, count as usize, lane);
            writes[lane] = at as i64;
            if at as i64 * unit % bytes != 0 {
                self.hazard(HazardKind::Operand, call.site, || {
                    format!("{}: the destination is not a multiple of {bytes} bytes", call.record.name)
                });
            }
            let run = Run { to: (d, to), from: (a, from), at, agent, stamp, lane };
            for e in 0..count {
                let source = self.element_copied(call, &run, e, e < valid);
                let Some(source) = source.filter(|_| e == 0) else { continue };
                reads[lane] = source as i64;
                reading |= 1 << lane;
                if source as i64 * unit % bytes != 0 {
                    self.hazard(HazardKind::Operand, call.site, || {
                        format!("{}: the source is not a multiple of {bytes} bytes", call.record.name)
                    });
                }
            }
        }
        if self.checks {
            if reading != 0 {
                self.count_access(a.memory, call.site, &reads, unit, bytes, reading, Touch::Read);
            }
            self.count_access(d.memory, call.site, &writes, unit, bytes, mask, Touch::Write);
        }
    }

    /// Copies an element of a run, or puts a zero in its place where nothing is read. Returns which element of device memory was read.
    pub(super) fn element_copied(&mut self, call: &'a Call, run: &Run, e: i64, reads: bool) -> Option<usize> {
        let ((to, first), (from, start)) = (&run.to, &run.from);
        let (Memory::Local(local), Memory::Global(global)) = (to.memory, from.memory) else { return None };
        let (mut value, mut source) = (A::from_f64(0.0), None);
        if reads {
            let index = Self::inner_index(from, start, &[e]);
            source = place(&self.code.globals[global as usize], &index);
            match source {
                Some(source) => {
                    value = self.globals[global as usize].load(source);
                    let (agent, stamp) = (run.agent, run.stamp);
                    self.touch_element(from.memory, source, agent, stamp, Touch::Read, call.site, || index);
                }
                None => {
                    self.outside(call, from.memory, &index, run.lane);
                    value = A::POISON;
                }
            }
        }
        let place = run.at + e as usize;
        if place < self.code.locals[local as usize].elements {
            self.locals[local as usize][place] = value;
            self.touch_element(to.memory, place, run.agent, run.stamp, Touch::Write, call.site, || {
                Self::inner_index(to, first, &[e])
            });
        }
        source
    }

    /// The offsets of a box in swizzled shared memory, by the instruction's own rule. The layout that the program
    /// states is compared with it: if they differ, the program means one thing and the machine does another.
    pub(super) fn swizzled(&mut self, call: &'a Call, w: &MemoryWindow, lane: usize) -> Option<Vec<usize>> {
        let Memory::Local(local) = w.memory else { return None };
        let [rows, columns] = w.shape[..] else { return None };
        let info = &self.code.locals[local as usize];
        let start = self.start(w, lane);
        let last = Self::inner_index(w, &start, &[rows - 1, columns - 1]);
        let inside = |index: &[i64]| index.iter().zip(&info.extents).all(|(i, e)| (0..*e).contains(i));
        if !inside(&start) || !inside(&last) {
            self.outside(call, w.memory, if inside(&start) { &last } else { &start }, lane);
            return None;
        }
        // The instruction counts rows of 128 bytes from the start of the buffer.
        let c_order = warpwright_core::layout::row_major_strides(&info.extents);
        let flat: i64 = start.iter().zip(&c_order).map(|(i, s)| i * s).sum();
        let unit = w.dtype.bytes();
        let (row, piece) = (SWIZZLE_ROW / unit, PIECE / unit);
        let mut offsets = Vec::with_capacity((rows * columns) as usize);
        let elements = info.elements;
        let mut differs = false;
        for i in 0..rows {
            for j in 0..columns {
                let plain = flat + row * i + j;
                let (r, p) = (plain / row, plain % row / piece);
                let at = (plain - p * piece + (p ^ (r % 8)) * piece) as usize;
                if self.checks && j % piece == 0 {
                    let index = Self::inner_index(w, &start, &[i, j]);
                    differs |= self.local_offset(local, &index) != Some(at);
                }
                offsets.push(at.min(elements.saturating_sub(1)));
            }
        }
        if differs {
            let name = self.code.locals[local as usize].name.clone();
            self.hazard(HazardKind::Operand, call.site, || {
                format!(
                    "{}: the layout of {name} is not the 128-byte swizzle of the instruction",
                    call.record.name
                )
            });
        }
        Some(offsets)
    }

    /// The offsets of a box whose rows follow each other in shared memory, by the instruction's own rule; the layout that the program states
    /// is compared with it.
    pub(super) fn rows_of_box(
        &mut self,
        call: &'a Call,
        w: &MemoryWindow,
        lane: usize,
    ) -> Option<Vec<usize>> {
        let Memory::Local(local) = w.memory else { return None };
        let [rows, columns] = w.shape[..] else { return None };
        let start = self.start(w, lane);
        let Some(first) = self.local_offset(local, &start) else {
            self.outside(call, w.memory, &start, lane);
            return None;
        };
        let mut offsets = Vec::with_capacity((rows * columns) as usize);
        for i in 0..rows {
            for j in 0..columns {
                let index = Self::inner_index(w, &start, &[i, j]);
                let at = first + (i * columns + j) as usize;
                match self.local_offset(local, &index) {
                    Some(stated) if stated == at => {}
                    Some(_) => {
                        let name = self.code.locals[local as usize].name.clone();
                        self.hazard(HazardKind::Operand, call.site, || {
                            format!("{}: the rows of {name} do not follow each other", call.record.name)
                        });
                        return None;
                    }
                    None => {
                        self.outside(call, w.memory, &index, lane);
                        return None;
                    }
                }
                offsets.push(at);
            }
        }
        Some(offsets)
    }

    fn warpgroup_multiply(
        &mut self,
        call: &'a Call,
        d: &RegisterWindow,
        a: &MemoryWindow,
        b: &MemoryWindow,
        k: i64,
    ) {
        let first = self.executing.base;
        let agent = Agent::new(first, Stream::Wgmma);
        let stamp = if self.checks { self.order.issue_wgmma(first) } else { self.order.now };
        let [m, n] = d.shape[..] else { return };
        let mut operands = Vec::new();
        for w in [a, b] {
            let Some(offsets) = self.swizzled(call, w, 0) else { return };
            let Memory::Local(local) = w.memory else { return };
            let columns = w.shape.last().copied().unwrap_or(1);
            let start = self.start(w, 0);
            let mut values = Vec::with_capacity(offsets.len());
            for (number, at) in offsets.iter().enumerate() {
                values.push(self.locals[local as usize][*at]);
                self.touch_element(w.memory, *at, agent, stamp, Touch::Read, call.site, || {
                    Self::inner_index(w, &start, &[number as i64 / columns, number as i64 % columns])
                });
            }
            operands.push(values);
        }
        if let Some(accumulator) = d.accumulator.filter(|_| self.checks) {
            let base = (self.at(d.base) - self.base) / W;
            let reach = d.elements.iter().map(|e| e.0 as usize).max().unwrap_or(0);
            for warp in first / WARP..first / WARP + 4 {
                self.wgmma_on(warp, accumulator, base..base + reach + 1, stamp, call.site);
            }
        }
        self.accumulate(d, &operands[0], &operands[1], [m as usize, n as usize, k as usize], true);
    }
}
