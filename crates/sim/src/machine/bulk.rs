//! Bulk copies: runs and boxes that arrive when a phase is complete.

use super::instruction::{PIECE, Run};
use super::{Machine, lanes};
use crate::arithmetic::Arithmetic;
use crate::code::{Call, Form, Memory, MemoryWindow};
use crate::count::Counters;
use crate::hazard::HazardKind;
use crate::memory::{element, place};
use crate::order::{Agent, Stream};
use crate::shadow::Touch;
use warpwright_core::model::requests::Tally;

/// Bytes at multiples of which boxes begin in shared memory: those in the 128-byte swizzle, and others.
const SWIZZLED_BOX: i64 = 1024;
const BOX: i64 = 128;

impl<'a, A: Arithmetic, const W: usize> Machine<'a, A, W> {
    /// A box of a tensor to shared memory, swizzled or not, or back.
    pub(super) fn bulk(
        &mut self,
        call: &'a Call,
        shared: &MemoryWindow,
        tensor: &MemoryWindow,
        load: bool,
        mask: u32,
    ) {
        let (Memory::Local(local), Memory::Global(global)) = (shared.memory, tensor.memory) else { return };
        for lane in lanes(mask) {
            let thread = self.thread(lane);
            let (inner, outer) = if load {
                (Agent::new(thread, Stream::BulkLoad), Agent::new(thread, Stream::BulkLoad))
            } else {
                (Agent::new(thread, Stream::BulkRead), Agent::new(thread, Stream::BulkWrite))
            };
            let stamp = self.order.issue(inner);
            self.order.issue(outer);
            let swizzled = call.record.is_swizzled();
            let offsets = if swizzled {
                self.swizzled(call, shared, lane)
            } else {
                self.rows_of_box(call, shared, lane)
            };
            let Some(offsets) = offsets else { continue };
            let unit = shared.dtype.bytes();
            let (start, bytes) = if swizzled {
                (self.box_start(shared, lane), SWIZZLED_BOX)
            } else {
                (offsets.first().map_or(0, |at| *at as i64), BOX)
            };
            let inside_a_row = swizzled && self.start(shared, lane).last().is_some_and(|c| c % 64 != 0);
            if inside_a_row || start * unit % bytes != 0 {
                self.hazard(HazardKind::Operand, call.site, || {
                    format!(
                        "{}: the box in shared memory does not start at a multiple of {bytes} bytes",
                        call.record.name
                    )
                });
            }
            let info = &self.code.globals[global as usize];
            if info.start * unit % PIECE != 0 {
                let name = info.name.clone();
                self.hazard(HazardKind::Operand, call.site, || {
                    format!("{}: {name} does not start at a multiple of 16 bytes", call.record.name)
                });
            }
            let (to, from) = (self.start(shared, lane), self.start(tensor, lane));
            let [rows, columns] = shared.shape[..] else { continue };
            let mut addresses = Vec::new();
            for i in 0..rows {
                for j in 0..columns {
                    let at = offsets[(i * columns + j) as usize];
                    let index = Self::inner_index(tensor, &from, &[i, j]);
                    let there = place(&self.code.globals[global as usize], &index);
                    if let Some(there) = there {
                        addresses.push(there as i64 * unit);
                    }
                    let touch = if load { Touch::Write } else { Touch::Read };
                    self.touch_element(shared.memory, at, inner, stamp, touch, call.site, || {
                        Self::inner_index(shared, &to, &[i, j])
                    });
                    if load {
                        let value = there.map_or(A::from_f64(0.0), |t| self.globals[global as usize].load(t));
                        self.locals[local as usize][at] = value;
                    } else if let Some(there) = there {
                        let value = self.locals[local as usize][at].round(tensor.dtype);
                        if value.is_poison() && self.checks && self.code.globals[global as usize].output {
                            let text = element(&self.code.globals[global as usize].name, &index);
                            self.hazard(HazardKind::Uninitialised, call.site, || {
                                format!("{text} gets data that was never stored, from thread {thread}")
                            });
                        }
                        self.globals[global as usize].store(there, value);
                    }
                    if let Some(there) = there {
                        let touch = if load { Touch::Read } else { Touch::Write };
                        self.touch_element(tensor.memory, there, outer, stamp, touch, call.site, || index);
                    }
                }
            }
            self.order.tick();
            if load {
                self.report(call, lane, inner, stamp, rows * columns * unit);
            }
            if self.checks {
                self.count_bulk(call, load, &addresses, rows * columns * unit, unit);
            }
        }
    }

    /// The bytes that a bulk copy brings count for the phase to which it reports.
    fn report(&mut self, call: &'a Call, lane: usize, agent: Agent, stamp: u32, bytes: i64) {
        let Some((ring, ordinal)) = &call.signal else {
            self.hazard(HazardKind::Phase, call.site, || format!("{} reports to no phase", call.record.name));
            return;
        };
        let ordinal = self.lane_value(ordinal, lane);
        if self.checks {
            let faults = self.rings[*ring as usize].link(ordinal, agent, stamp, bytes);
            self.ring_faults(*ring, faults, call.site);
        }
    }

    /// How many of `count` elements of a copy are there, which has to be none of fewer or more.
    pub(super) fn valid(&mut self, call: &'a Call, valid: &Form, count: i64, lane: usize) -> i64 {
        let asked = self.lane_value(valid, lane);
        let valid = asked.clamp(0, count);
        if valid != asked {
            self.hazard(HazardKind::Operand, call.site, || {
                format!("{}: {asked} of {count} elements are valid", call.record.name)
            });
        }
        valid
    }

    /// A run of 16-byte pieces, of which the last ones may not be there.
    pub(super) fn bulk_copy(
        &mut self,
        call: &'a Call,
        d: &MemoryWindow,
        a: &MemoryWindow,
        valid: &Form,
        mask: u32,
    ) {
        let (Memory::Local(local), Memory::Global(_)) = (d.memory, a.memory) else { return };
        let unit = d.dtype.bytes();
        let count = d.shape.first().copied().unwrap_or(0);
        // A warp executes it together; its first lane stands for all.
        if let Some(lane) = lanes(mask).next() {
            let agent = Agent::new(self.thread(lane), Stream::BulkLoad);
            let stamp = self.order.issue(agent);
            let (to, from) = (self.start(d, lane), self.start(a, lane));
            let valid = self.valid(call, valid, count, lane);
            let Some(at) = self.local_offset(local, &to) else {
                self.outside(call, d.memory, &to, lane);
                return;
            };
            self.expect_together(call, d, to.clone(), at, count as usize, lane);
            let mut misplaced = (at as i64 * unit % PIECE != 0).then_some("destination");
            let mut addresses = Vec::new();
            let run = Run { to: (d, to), from: (a, from), at, agent, stamp, lane };
            for e in 0..count {
                let Some(source) = self.element_copied(call, &run, e, e < valid) else { continue };
                if e == 0 && source as i64 * unit % PIECE != 0 {
                    misplaced = Some("source");
                }
                addresses.push(source as i64 * unit);
            }
            if let Some(what) = misplaced {
                self.hazard(HazardKind::Operand, call.site, || {
                    format!("{}: the {what} is not a multiple of {PIECE} bytes", call.record.name)
                });
            }
            self.order.tick();
            self.report(call, lane, agent, stamp, count * unit);
            if self.checks {
                self.count_bulk(call, true, &addresses, count * unit, unit);
            }
        }
    }

    /// The other way; elements that stand in shared memory as their parts are put together.
    pub(super) fn bulk_write(
        &mut self,
        call: &'a Call,
        d: &MemoryWindow,
        a: &MemoryWindow,
        valid: &Form,
        mask: u32,
    ) {
        let (Memory::Global(global), Memory::Local(local)) = (d.memory, a.memory) else { return };
        let (count, parts) = (d.shape.first().copied().unwrap_or(0), parts(d, a));
        for lane in lanes(mask) {
            let thread = self.thread(lane);
            let (reads, writes) =
                (Agent::new(thread, Stream::BulkRead), Agent::new(thread, Stream::BulkWrite));
            let stamp = self.order.issue(reads);
            self.order.issue(writes);
            let (to, from) = (self.start(d, lane), self.start(a, lane));
            let valid = self.valid(call, valid, count, lane);
            let Some(at) = self.local_offset(local, &from) else {
                self.outside(call, a.memory, &from, lane);
                continue;
            };
            self.expect_together(call, a, from.clone(), at, (count * parts) as usize, lane);
            let mut misplaced = (at as i64 * a.dtype.bytes() % PIECE != 0).then_some("source");
            let mut addresses = Vec::new();
            for e in 0..valid {
                let index = Self::inner_index(d, &to, &[e]);
                let Some(there) = place(&self.code.globals[global as usize], &index) else {
                    self.outside(call, d.memory, &index, lane);
                    continue;
                };
                if e == 0 && there as i64 * d.dtype.bytes() % PIECE != 0 {
                    misplaced = Some("destination");
                }
                addresses.push(there as i64 * d.dtype.bytes());
                for part in 0..parts {
                    let inner = parts * e + part;
                    self.touch_element(
                        a.memory,
                        at + inner as usize,
                        reads,
                        stamp,
                        Touch::Read,
                        call.site,
                        || Self::inner_index(a, &from, &[inner]),
                    );
                }
                let first = at + (parts * e) as usize;
                let value = match self.locals[local as usize].get(first..first + parts as usize) {
                    Some([value]) => *value,
                    Some([re, im]) => re.add(im.times_i()),
                    _ => A::POISON,
                };
                let value = value.round(d.dtype);
                if value.is_poison() && self.checks && self.code.globals[global as usize].output {
                    let text = element(&self.code.globals[global as usize].name, &index);
                    self.hazard(HazardKind::Uninitialised, call.site, || {
                        format!("{text} gets data that was never stored, from thread {thread}")
                    });
                }
                self.globals[global as usize].store(there, value);
                self.touch_element(d.memory, there, writes, stamp, Touch::Write, call.site, || index);
            }
            if let Some(what) = misplaced {
                self.hazard(HazardKind::Operand, call.site, || {
                    format!("{}: the {what} is not a multiple of {PIECE} bytes", call.record.name)
                });
            }
            self.order.tick();
            if self.checks {
                self.count_bulk(call, false, &addresses, valid * d.dtype.bytes(), d.dtype.bytes());
            }
        }
    }

    fn count_bulk(&mut self, call: &'a Call, load: bool, addresses: &[i64], bytes: i64, unit: i64) {
        let sectors = if addresses.is_empty() { 0 } else { Tally::sectors(addresses, unit) };
        let wavefronts = (bytes as u64).div_ceil(128);
        let mut counters = Counters::default();
        if load {
            counters.global_load_requests = 1;
            counters.global_load_sectors = sectors;
            counters.shared_store_requests = 1;
            counters.shared_store_wavefronts = wavefronts;
        } else {
            counters.global_store_requests = 1;
            counters.global_store_sectors = sectors;
            counters.shared_load_requests = 1;
            counters.shared_load_wavefronts = wavefronts;
        }
        self.count(call.site, counters);
    }

    /// The C-order number of the first element of a window.
    fn box_start(&self, w: &MemoryWindow, lane: usize) -> i64 {
        let Memory::Local(local) = w.memory else { return 0 };
        let strides = warpwright_core::layout::row_major_strides(&self.code.locals[local as usize].extents);
        self.start(w, lane).iter().zip(&strides).map(|(i, s)| i * s).sum()
    }
}

/// How many elements of `a` make one of `d`.
pub(super) fn parts(d: &MemoryWindow, a: &MemoryWindow) -> i64 {
    d.dtype.bytes() / a.dtype.bytes().max(1)
}
