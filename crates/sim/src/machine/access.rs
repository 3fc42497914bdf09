//! Loads and stores: bounds, poison, races, and what a profiler counts.

use warpwright_core::ir::Reduction;

use super::{Cost, Machine, lanes};
use crate::arithmetic::Arithmetic;
use crate::code::{Access, Form, Memory, Reg, WARP};
use crate::count::Counters;
use crate::hazard::HazardKind;
use crate::memory::element;
use crate::order::Agent;
use crate::shadow::Touch;
use warpwright_core::model::requests::Tally;

impl<'a, A: Arithmetic, const W: usize> Machine<'a, A, W> {
    pub(super) fn load(&mut self, to: Reg, access: u32, mask: u32) {
        let access: &'a Access = &self.code.accesses[access as usize];
        let inside = self.inside(access, mask);
        let offsets = self.offsets(access, inside);
        let at = self.at(to);
        match access.memory {
            Memory::Local(l) => {
                let memory = &self.locals[l as usize];
                let registers = &mut self.registers[at..at + W];
                if inside == Self::ALL {
                    for lane in 0..W {
                        registers[lane] = memory.get(offsets[lane] as usize).copied().unwrap_or(A::POISON);
                    }
                } else {
                    for lane in lanes(inside) {
                        registers[lane] = memory.get(offsets[lane] as usize).copied().unwrap_or(A::POISON);
                    }
                }
            }
            Memory::Global(g) => {
                let memory = &self.globals[g as usize];
                let registers = &mut self.registers[at..at + W];
                if inside == Self::ALL {
                    for lane in 0..W {
                        registers[lane] = memory.load(offsets[lane] as usize);
                    }
                } else {
                    for lane in lanes(inside) {
                        registers[lane] = memory.load(offsets[lane] as usize);
                    }
                }
            }
        }
        for lane in lanes(mask & !inside) {
            self.registers[at + lane] = A::POISON;
        }
        self.observe(access, &offsets, inside, Touch::Read);
    }

    pub(super) fn store(&mut self, from: Reg, access: u32, mask: u32) {
        let access: &'a Access = &self.code.accesses[access as usize];
        let inside = self.inside(access, mask);
        let offsets = self.offsets(access, inside);
        let mut values = self.read(from);
        if A::rounds(access.dtype) {
            for value in &mut values {
                *value = value.round(access.dtype);
            }
        }
        match access.memory {
            Memory::Local(l) => {
                let memory = &mut self.locals[l as usize];
                for lane in lanes(inside) {
                    if let Some(place) = memory.get_mut(offsets[lane] as usize) {
                        *place = values[lane];
                    }
                }
            }
            Memory::Global(g) => {
                let memory = &self.globals[g as usize];
                for lane in lanes(inside) {
                    memory.store(offsets[lane] as usize, values[lane]);
                }
                self.check_poison(access, g, &values, inside);
            }
        }
        self.observe(access, &offsets, inside, Touch::Write);
    }

    pub(super) fn reduce(&mut self, from: Reg, access: u32, reduction: Reduction, mask: u32) {
        let access: &'a Access = &self.code.accesses[access as usize];
        let inside = self.inside(access, mask);
        let offsets = self.offsets(access, inside);
        let values = self.read(from);
        let combine = |old: A, value: A| {
            let new = match reduction {
                Reduction::Sum => old.add(value),
                Reduction::Max => old.max(value),
                Reduction::Min => old.min(value),
            };
            new.round(access.dtype)
        };
        match access.memory {
            Memory::Local(l) => {
                let memory = &mut self.locals[l as usize];
                for lane in lanes(inside) {
                    if let Some(place) = memory.get_mut(offsets[lane] as usize) {
                        *place = combine(*place, values[lane]);
                    }
                }
            }
            Memory::Global(g) => {
                let memory = &self.globals[g as usize];
                for lane in lanes(inside) {
                    if let Some(cell) = memory.cells.get(offsets[lane] as usize) {
                        A::update(cell, &|old| combine(old, values[lane]));
                    }
                }
                self.check_poison(access, g, &values, inside);
            }
        }
        self.observe(access, &offsets, inside, Touch::Atomic);
    }

    /// The lanes of the mask whose index lies inside the buffer. Others are reported.
    fn inside(&mut self, access: &'a Access, mask: u32) -> u32 {
        let mut inside = mask;
        for (form, extent) in &access.checks {
            if self.whole_warp_inside(form, *extent) {
                continue;
            }
            let values = self.lane_values(form);
            for lane in lanes(mask) {
                if !(0..*extent).contains(&values[lane]) {
                    inside &= !(1 << lane);
                }
            }
        }
        if let Some(lane) = lanes(mask & !inside).next() {
            let outside = (mask & !inside).count_ones();
            let (name, extents) = self.buffer_name(access.memory);
            let thread = self.thread(lane);
            let text = element(&name, &self.index_in_lane(&access.index, lane));
            for _ in 1..outside {
                self.hazards.add(HazardKind::OutOfBounds, access.site, String::new);
            }
            self.hazard(HazardKind::OutOfBounds, access.site, || {
                format!("{text} of a buffer of extents {extents:?}, by thread {thread}")
            });
        }
        inside
    }

    /// Whether the bounds of the lane vector already show that every lane is inside.
    fn whole_warp_inside(&self, form: &Form, extent: i64) -> bool {
        if !form.dynamic.is_empty() {
            return false;
        }
        let uniform = self.uniform_part(form);
        let (lo, hi) = form
            .lanes
            .map_or((0, 0), |l| self.code.lanes[l as usize].bounds.get(self.warp).copied().unwrap_or((0, 0)));
        uniform.wrapping_add(lo) >= 0 && uniform.wrapping_add(hi) < extent
    }

    /// The physical offset in each lane; those outside the mask mean nothing.
    #[inline]
    fn offsets(&self, access: &Access, mask: u32) -> [i64; W] {
        let mut offsets = self.lane_values(&access.offset);
        if access.table
            && let Memory::Local(l) = access.memory
            && let Some(table) = &self.code.locals[l as usize].table
        {
            for lane in lanes(mask & Self::ALL) {
                offsets[lane] = table.get(offsets[lane] as usize).map_or(0, |p| i64::from(*p));
            }
        }
        offsets
    }

    pub(super) fn buffer_name(&self, memory: Memory) -> (String, Vec<i64>) {
        match memory {
            Memory::Local(l) => {
                let b = &self.code.locals[l as usize];
                (b.name.clone(), b.extents.clone())
            }
            Memory::Global(g) => {
                let b = &self.code.globals[g as usize];
                (b.name.clone(), b.extents.clone())
            }
        }
    }

    pub(super) fn index_in_lane(&self, index: &[Form], lane: usize) -> Vec<i64> {
        index.iter().map(|f| self.lane_value(f, lane)).collect()
    }

    /// Poison that reaches an output is a fault (rule 12).
    fn check_poison(&mut self, access: &'a Access, global: u32, values: &[A; W], mask: u32) {
        if !self.code.globals[global as usize].output || !(self.checks || W != WARP) {
            return;
        }
        let mut poisoned = lanes(mask).filter(|lane| values[*lane].is_poison());
        if let Some(lane) = poisoned.next() {
            let more = poisoned.count();
            let name = self.code.globals[global as usize].name.clone();
            let text = element(&name, &self.index_in_lane(&access.index, lane));
            let thread = self.thread(lane);
            self.hazard(HazardKind::Uninitialised, access.site, || {
                format!("{text} gets data that was never stored, from thread {thread}")
            });
            for _ in 0..more {
                self.hazards.add(HazardKind::Uninitialised, access.site, String::new);
            }
        }
    }

    /// Races and counters of an access.
    fn observe(&mut self, access: &'a Access, offsets: &[i64; W], mask: u32, touch: Touch) {
        if !self.checks || W != WARP || mask == 0 {
            return;
        }
        if let (Memory::Local(l), false) = (access.memory, self.order.detailed) {
            // Nothing is wrong nearly always, and then nothing has to be looked at twice.
            let shadow = &mut self.shadows[l as usize];
            if shadow.touch_warp(&self.order, offsets, mask, self.warp * W, touch) {
                self.count_request(access, offsets, mask, touch);
                return;
            }
        }
        for lane in lanes(mask) {
            let agent = self.agent(lane);
            let stamp = self.order.now;
            let clash = match access.memory {
                Memory::Local(l) => {
                    let shadow = &mut self.shadows[l as usize];
                    shadow.touch(&self.order, offsets[lane] as usize, agent, stamp, touch)
                }
                Memory::Global(g) => {
                    let Some(shadow) = &self.globals[g as usize].shadow else { break };
                    shadow.touch(&self.order, offsets[lane] as usize, self.block, agent, stamp, touch)
                }
            };
            if let Some(clash) = clash {
                let (name, _) = self.buffer_name(access.memory);
                let text = element(&name, &self.index_in_lane(&access.index, lane));
                let kind = if clash.proxy { HazardKind::ProxyFence } else { HazardKind::Race };
                let block = self.block;
                self.hazards.add(kind, access.site, || clash.describe(&text, agent, block));
            }
        }
        self.count_request(access, offsets, mask, touch);
    }

    /// A vector access to device memory starts at a multiple of its length; where shared memory starts is known before
    /// anything runs.
    fn check_alignment(&mut self, access: &'a Access, offsets: &[i64; W], mask: u32) {
        let width = i64::from(access.width);
        if width == 1 || !matches!(access.memory, Memory::Global(_)) {
            return;
        }
        let Some(lane) = lanes(mask).find(|lane| offsets[*lane] % width != 0) else { return };
        let (name, _) = self.buffer_name(access.memory);
        let text = element(&name, &self.index_in_lane(&access.index, lane));
        let (bytes, thread) = (width * access.bytes, self.thread(lane));
        self.hazard(HazardKind::Operand, access.site, || {
            format!("{bytes} bytes from {text} on do not start at a multiple of {bytes}, by thread {thread}")
        });
    }

    /// Counts an element statement's request, or remembers what the last one like it cost.
    fn count_request(&mut self, access: &'a Access, offsets: &[i64; W], mask: u32, touch: Touch) {
        if access.width == 0 {
            return;
        }
        self.check_alignment(access, offsets, mask);
        let unit = access.bytes;
        let bytes = i64::from(access.width) * unit;
        if access.table || !access.offset.dynamic.is_empty() {
            let cost = self.cost(access.memory, offsets, unit, bytes, mask);
            self.add_requests(access.memory, access.site, (access.planes, cost), touch);
            return;
        }
        let first = mask.trailing_zeros() as usize;
        let place = offsets[first].wrapping_mul(unit)
            & if matches!(access.memory, Memory::Global(_)) { 31 } else { 3 };
        let number = access.number as usize * self.warps() + self.warp;
        let known = self.costs[number];
        let cost = if known.mask == mask && known.place == place as i32 {
            known.cost
        } else {
            let cost = self.cost(access.memory, offsets, unit, bytes, mask);
            self.costs[number] = Cost { mask, place: place as i32, cost };
            cost
        };
        self.add_requests(access.memory, access.site, (access.planes, cost), touch);
    }

    /// Counts one request: lane `l` moves `bytes` bytes from element `offsets[l]` on, each of `unit` bytes.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn count_access(
        &mut self,
        memory: Memory,
        site: u32,
        offsets: &[i64; W],
        unit: i64,
        bytes: i64,
        mask: u32,
        touch: Touch,
    ) {
        let cost = self.cost(memory, offsets, unit, bytes, mask);
        self.add_requests(memory, site, (1, cost), touch);
    }

    /// The sectors or wavefronts of a request.
    fn cost(&mut self, memory: Memory, offsets: &[i64; W], unit: i64, bytes: i64, mask: u32) -> u32 {
        let mut count = 0;
        let cost = match memory {
            Memory::Global(_) => {
                let mut addresses = [0; WARP];
                for lane in lanes(mask) {
                    addresses[count] = offsets[lane].wrapping_mul(unit);
                    count += 1;
                }
                Tally::sectors(&addresses[..count], bytes)
            }
            Memory::Local(_) => {
                let mut addresses = [(0, 0); WARP];
                for lane in lanes(mask) {
                    addresses[count] = (lane as u8, offsets[lane].wrapping_mul(unit));
                    count += 1;
                }
                self.tally.wavefronts(&addresses[..count], bytes)
            }
        };
        cost as u32
    }

    /// Counts so many requests that cost so much each.
    fn add_requests(&mut self, memory: Memory, site: u32, (requests, cost): (u32, u32), touch: Touch) {
        let (count, cost) = (u64::from(requests), u64::from(requests) * u64::from(cost));
        let sums = [&mut self.counters, &mut self.sites[site as usize]];
        for sum in sums {
            let (requests, costs) = match (memory, touch) {
                (Memory::Global(_), Touch::Read) => {
                    (&mut sum.global_load_requests, &mut sum.global_load_sectors)
                }
                (Memory::Global(_), _) => (&mut sum.global_store_requests, &mut sum.global_store_sectors),
                (Memory::Local(_), Touch::Read) => {
                    (&mut sum.shared_load_requests, &mut sum.shared_load_wavefronts)
                }
                (Memory::Local(_), _) => (&mut sum.shared_store_requests, &mut sum.shared_store_wavefronts),
            };
            *requests += count;
            *costs += cost;
        }
    }

    pub(super) fn count(&mut self, site: u32, counters: Counters) {
        self.counters += counters;
        self.sites[site as usize] += counters;
    }

    /// One element is touched by an agent of an instruction.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn touch_element(
        &mut self,
        memory: Memory,
        offset: usize,
        agent: Agent,
        stamp: u32,
        touch: Touch,
        site: u32,
        index: impl FnOnce() -> Vec<i64>,
    ) {
        if !self.checks || W != WARP {
            return;
        }
        let clash = match memory {
            Memory::Local(l) => {
                let shadow = &mut self.shadows[l as usize];
                shadow.touch(&self.order, offset, agent, stamp, touch)
            }
            Memory::Global(g) => self.globals[g as usize]
                .shadow
                .as_ref()
                .and_then(|s| s.touch(&self.order, offset, self.block, agent, stamp, touch)),
        };
        if let Some(clash) = clash {
            let (name, _) = self.buffer_name(memory);
            let kind = if clash.proxy { HazardKind::ProxyFence } else { HazardKind::Race };
            let block = self.block;
            self.hazards.add(kind, site, || clash.describe(&element(&name, &index()), agent, block));
        }
    }
}
