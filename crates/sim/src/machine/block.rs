//! What a range of threads executes as a whole, and how ranges meet.

use warpwright_core::ir::Sync;

use super::{Executing, InFlight, Machine, lanes};
use crate::arithmetic::Arithmetic;
use crate::code::{Form, Op, Reg, WARP};
use crate::count::Counters;
use crate::hazard::HazardKind;
use crate::order::{Agent, Stream};

impl<'a, A: Arithmetic, const W: usize> Machine<'a, A, W> {
    /// Executes operations by the present range of threads. Integers are uniform here.
    pub(super) fn range(&mut self, ops: &'a [Op]) {
        for op in ops {
            self.range_op(op);
        }
    }

    fn range_op(&mut self, op: &'a Op) {
        match op {
            Op::Nest { mask, ordinals, body } => self.nest(*mask, ordinals, body),
            Op::Loop { variable, lo, hi, step, counting, body } => {
                let (lo, hi) = (self.uniform_part(lo), self.uniform_part(hi));
                let step = self.uniform_part(step).max(1);
                let mut at = lo;
                while at < hi {
                    self.uniforms[*variable as usize] = at;
                    self.range(body);
                    if let Some(ordinal) = counting {
                        self.uniforms[*ordinal as usize] += 1;
                    }
                    let Some(next) = at.checked_add(step) else { break };
                    at = next;
                }
            }
            Op::Tasks { variables, extents, start, stride, body } => {
                for point in self.task_points(extents, start, stride) {
                    self.set_task(variables, extents, point);
                    self.range(body);
                }
            }
            Op::If { test, then, otherwise, .. } => {
                if self.test(test) != 0 {
                    self.range(then);
                } else {
                    self.range(otherwise);
                }
            }
            Op::Ranges { variable, count, pitch, body } => {
                let outer = self.executing;
                for n in 0..*count {
                    self.uniforms[*variable as usize] = n;
                    let base = outer.base + (n * pitch) as usize;
                    self.executing = Executing { base, size: *pitch as usize };
                    self.range(body);
                }
                self.executing = outer;
            }
            Op::On { lo, hi, body } => {
                let outer = self.executing;
                self.executing = Executing { base: *lo as usize, size: (hi - lo) as usize };
                self.range(body);
                self.executing = outer;
            }
            Op::Uniform(variable, value) => self.uniforms[*variable as usize] = self.uniform_integral(value),
            Op::Poison { first, count } if self.checks => self.poison_range(*first, *count),
            Op::PoisonLocal(local) => self.locals[*local as usize].fill(A::POISON),
            Op::ResetRing(ring) => self.rings[*ring as usize].reset(),
            Op::Sync { sync, site, .. } => {
                let threads = self.executing.base..self.executing.base + self.executing.size;
                self.meet(*sync, *site, threads);
            }
            Op::Await { ring, ordinal, site } => {
                let ordinal = self.uniform_part(ordinal);
                let threads = self.executing.base..self.executing.base + self.executing.size;
                self.wait_for(*ring, ordinal, *site, threads);
            }
            Op::Call(call) => {
                self.warp = self.executing.base / WARP;
                self.base = self.warp * self.slots() * W;
                self.call(call, Self::ALL);
            }
            Op::Fault { test, fault, site } => {
                self.warp = self.executing.base / WARP;
                if self.test(test) != 0 {
                    let (kind, text) = &self.code.faults[*fault as usize];
                    self.hazard(*kind, *site, || text.clone());
                }
            }
            // Data is moved by warps only.
            _ => {}
        }
    }

    /// Warp by warp, the threads of the range that are in the mask.
    fn nest(&mut self, mask: u32, ordinals: &[u32], body: &'a [Op]) {
        let saved: Vec<i64> = ordinals.iter().map(|o| self.uniforms[*o as usize]).collect();
        let code = self.code;
        let words = &code.masks[mask as usize];
        let first = self.executing.base / WARP;
        let last = (self.executing.base + self.executing.size).div_ceil(WARP);
        for warp in first..last {
            let word = words.get(warp).copied().unwrap_or(0) & self.members(warp);
            if word == 0 {
                continue;
            }
            for (ordinal, value) in ordinals.iter().zip(&saved) {
                self.uniforms[*ordinal as usize] = *value;
            }
            self.warp = warp;
            self.base = warp * self.slots() * W;
            self.warp(body, word);
        }
    }

    /// The lanes of a warp that belong to the executing range.
    fn members(&self, warp: usize) -> u32 {
        let Executing { base, size } = self.executing;
        let lo = base.saturating_sub(warp * WARP).min(WARP);
        let hi = (base + size).saturating_sub(warp * WARP).min(WARP);
        let below = |n: usize| if n >= 32 { u32::MAX } else { (1 << n) - 1 };
        below(hi) & !below(lo)
    }

    /// Registers of all threads of the range become poison.
    fn poison_range(&mut self, slot: u32, count: u32) {
        let first = self.executing.base / WARP;
        let last = (self.executing.base + self.executing.size).div_ceil(WARP);
        for warp in first..last {
            self.warp = warp;
            self.base = warp * self.slots() * W;
            let members = self.members(warp);
            for slot in slot..slot + count {
                self.write(Reg(slot), &[A::POISON; W], members);
            }
        }
    }

    /// Synchronisation inside a warp: each of the ranges of `size` threads in the mask by itself.
    pub(super) fn warp_sync(&mut self, sync: Sync, size: i64, site: u32, mask: u32) {
        if W != WARP {
            return;
        }
        let first = self.warp * W;
        if sync != Sync::Barrier || size as usize >= WARP {
            let threads: Vec<usize> = lanes(mask).map(|lane| first + lane).collect();
            self.meet_some(sync, site, &threads);
            return;
        }
        // Ranges smaller than a warp: neighbours of equal size, as the thread loops made them.
        let mut at = 0;
        let all: Vec<usize> = lanes(mask).collect();
        while at < all.len() {
            let end = (at + size as usize).min(all.len());
            let threads: Vec<usize> = all[at..end].iter().map(|lane| first + lane).collect();
            self.meet_some(sync, site, &threads);
            at = end;
        }
    }

    fn meet(&mut self, sync: Sync, site: u32, threads: std::ops::Range<usize>) {
        let threads: Vec<usize> = threads.collect();
        self.meet_some(sync, site, &threads);
    }

    fn meet_some(&mut self, sync: Sync, site: u32, threads: &[usize]) {
        let all = threads.iter().copied();
        let first = threads.first().copied().unwrap_or(0);
        if sync == Sync::Barrier {
            self.count(site, Counters { barriers: 1, ..Counters::default() });
        }
        if !self.checks {
            return;
        }
        match sync {
            Sync::Barrier => self.order.barrier(all),
            Sync::CpCommit => self.order.commit(0, all),
            Sync::CpWait(n) => self.order.wait(0, n, &[Stream::CpAsync], all),
            Sync::BulkCommit => self.order.commit(1, all),
            Sync::BulkWaitRead(n) => self.order.wait(1, n, &[Stream::BulkRead], all),
            Sync::BulkWait(n) => self.order.wait(1, n, &[Stream::BulkRead, Stream::BulkWrite], all),
            Sync::FenceAsync => self.order.fence(all),
            Sync::WgmmaFence => {
                let now = self.order.now;
                for thread in all {
                    self.fences[thread / WARP] = now;
                }
                self.order.tick();
            }
            Sync::WgmmaCommit if threads.len() == 128 => self.order.commit_wgmma(first),
            Sync::WgmmaWait(n) if threads.len() == 128 => self.order.wait_wgmma(first, n),
            Sync::WgmmaCommit | Sync::WgmmaWait(_) => {}
        }
    }

    pub(super) fn arrive(
        &mut self,
        ring: u32,
        ordinal: &Form,
        bytes: &Form,
        times: i64,
        site: u32,
        mask: u32,
    ) {
        if W != WARP {
            let ordinal = self.lane_value(ordinal, 0);
            self.rings[ring as usize].arrive_in_order(ordinal, times);
            return;
        }
        if !self.checks {
            return;
        }
        for lane in lanes(mask) {
            let (ordinal, bytes) = (self.lane_value(ordinal, lane), self.lane_value(bytes, lane));
            let thread = self.thread(lane);
            let faults = self.rings[ring as usize].arrive(&mut self.order, thread, ordinal, bytes);
            self.ring_faults(ring, faults, site);
        }
    }

    pub(super) fn warp_await(&mut self, ring: u32, ordinal: &Form, site: u32, mask: u32) {
        if W != WARP {
            let ordinal = self.lane_value(ordinal, 0);
            if let Some(fault) = self.rings[ring as usize].await_in_order(ordinal) {
                self.ring_faults(ring, vec![fault], site);
            }
            return;
        }
        for lane in lanes(mask) {
            let ordinal = self.lane_value(ordinal, lane);
            let thread = self.thread(lane);
            self.wait_for(ring, ordinal, site, thread..thread + 1);
        }
    }

    fn wait_for(&mut self, ring: u32, ordinal: i64, site: u32, threads: std::ops::Range<usize>) {
        if !self.checks {
            return;
        }
        let faults = self.rings[ring as usize].wait(&mut self.order, threads, ordinal);
        self.ring_faults(ring, faults, site);
    }

    pub(super) fn ring_faults(&mut self, ring: u32, faults: Vec<super::ring::Fault>, site: u32) {
        for (kind, text) in faults {
            let name = &self.code.rings[ring as usize].name;
            self.hazard(kind, site, || format!("{name}: {text}"));
        }
    }

    /// Ordinary code touches accumulator registers.
    pub(super) fn touch_accumulator(
        &mut self,
        reg: Reg,
        accumulator: u32,
        write: bool,
        site: u32,
        mask: u32,
    ) {
        if !self.checks || W != WARP {
            return;
        }
        let info = &self.code.accumulators[accumulator as usize];
        let slot = (self.at(reg) - self.base) / W;
        let Some(number) = slot.checked_sub(info.first as usize).filter(|n| *n < info.count as usize) else {
            return;
        };
        let at = self.warp * info.count as usize + number;
        let now = self.order.now;
        let InFlight { wgmma, .. } = self.accumulators[accumulator as usize][at];
        if wgmma > 0 {
            let group = Agent::new(self.warp / 4 * 128, Stream::Wgmma);
            let blind =
                lanes(mask).map(|lane| self.thread(lane)).find(|t| self.knows_group(*t, group) < wgmma);
            if let Some(thread) = blind {
                let name = info.name.clone();
                self.hazard(HazardKind::InFlight, site, || {
                    format!("thread {thread} uses a register of {name} while wgmma may still write it")
                });
            }
        }
        if write {
            self.accumulators[accumulator as usize][at].written = now;
        }
    }

    /// Up to which stamp a thread knows the wgmma of its warpgroup to be finished; warpgroups need not start at
    /// multiples of 128 threads.
    fn knows_group(&self, thread: usize, group: Agent) -> u32 {
        let _ = group;
        let lowest = thread.saturating_sub(127) / WARP * WARP;
        (lowest..=thread)
            .step_by(WARP)
            .map(|first| self.order.knows(thread, Agent::new(first, Stream::Wgmma)))
            .max()
            .unwrap_or(0)
    }

    /// wgmma works on accumulator registers of a warp.
    pub(super) fn wgmma_on(
        &mut self,
        warp: usize,
        accumulator: u32,
        slots: std::ops::Range<usize>,
        stamp: u32,
        site: u32,
    ) {
        let info = &self.code.accumulators[accumulator as usize];
        let mut unfenced = false;
        for slot in slots {
            let Some(number) = slot.checked_sub(info.first as usize).filter(|n| *n < info.count as usize)
            else {
                continue;
            };
            let state = &mut self.accumulators[accumulator as usize][warp * info.count as usize + number];
            unfenced |= state.written > 0 && state.written > self.fences[warp];
            state.wgmma = stamp;
        }
        if unfenced {
            let name = info.name.clone();
            self.hazard(HazardKind::WgmmaFence, site, || {
                format!("{name} was written by ordinary code of warp {warp} and not fenced for wgmma")
            });
        }
    }

    /// When a block ends, nothing may be under way.
    pub(super) fn end_block(&mut self) {
        if !self.checks {
            return;
        }
        for ring in 0..self.rings.len() {
            if let Some(text) = self.rings[ring].unfinished() {
                let name = &self.code.rings[ring].name;
                self.hazard(HazardKind::Phase, u32::MAX, || format!("{name}: {text}"));
            }
        }
        if let Some(agent) = self.order.outstanding().first() {
            let agent = *agent;
            self.hazard(HazardKind::Outstanding, u32::MAX, || {
                format!("the block ends while something of {} is under way", agent.describe())
            });
        }
    }
}
