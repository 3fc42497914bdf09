//! The machine: one block at a time, warp by warp.
//!
//! Data registers have `W` lanes: 32 in SIMT mode, 1 in order. A warp's registers lie together, slot after slot, so
//! that the inner loops of a kernel work in the first-level cache.

mod access;
mod block;
mod bulk;
mod in_order;
mod instruction;
mod ring;
mod warp;

use warpwright_core::index::Comparison;

use crate::arithmetic::{Arithmetic, Kernels, Level};
use crate::code::{Code, Constant, Form, LaunchCode, Op, Reg, Test, WARP};
use crate::count::Counters;
use crate::hazard::{HazardKind, Hazards};
use crate::memory::Global;
use crate::order::{Agent, Order, Stream};
use crate::points::Nest;
use crate::shadow::LocalShadow;
use ring::Phases;
use warpwright_core::model::requests::Tally;

/// What to watch while a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Races, poison, bounds of every access, and all counters.
    pub checks: bool,
}

/// Which threads of the block execute: `base..base + size`.
#[derive(Clone, Copy, Debug)]
struct Executing {
    base: usize,
    size: usize,
}

/// How many iterations of a loop a machine runs before the next one takes its turn.
const TURN: i64 = 64;

/// The state of a block while it runs.
pub(crate) struct Machine<'a, A: Arithmetic, const W: usize> {
    code: &'a Code<'a>,
    launch: &'a LaunchCode,
    globals: &'a [Global<A>],
    scalars: &'a [A],
    kernels: Kernels<A>,
    checks: bool,
    block: u64,
    uniforms: Vec<i64>,
    dynamics: Vec<[i64; W]>,
    registers: Vec<A>,
    /// First register of the warp that runs.
    base: usize,
    warp: usize,
    executing: Executing,
    /// The lanes that have taken points.
    points: u32,
    locals: Vec<Vec<A>>,
    shadows: Vec<LocalShadow>,
    order: Order,
    rings: Vec<Phases>,
    /// For each accumulator and each register of it in each warp: who works on it.
    accumulators: Vec<Vec<InFlight>>,
    /// For each warp: the stamp of the last `wgmma.fence`.
    fences: Vec<u32>,
    tally: Tally,
    /// For each access and warp: what the last request cost, if the next is like it.
    costs: Vec<Cost>,
    pub counters: Counters,
    /// Counters by site.
    pub sites: Vec<Counters>,
    pub hazards: Hazards,
}

/// What a request cost: sectors or wavefronts. The same lanes at the same distances cost the same wherever they are,
/// but for the place in a sector or word.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    mask: u32,
    place: i32,
    cost: u32,
}

/// An accumulator register of a warp.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// Stamp of the last ordinary write.
    written: u32,
    /// Stamp of the last wgmma on it; 0 if none.
    wgmma: u32,
}

impl<'a, A: Arithmetic, const W: usize> Machine<'a, A, W> {
    /// All lanes of a warp.
    const ALL: u32 = if W == WARP { u32::MAX } else { 1 };

    pub fn new(
        code: &'a Code<'a>,
        launch: &'a LaunchCode,
        globals: &'a [Global<A>],
        scalars: &'a [A],
        watch: Watch,
    ) -> Self {
        let warps = launch.threads.div_ceil(W).max(1);
        let slots = launch.slots as usize;
        let list = &code.multiply_adds;
        // The kernels rely on this; the code is built so, and it costs next to nothing to be sure.
        let most = list.iter().map(|m| m.d.max(m.a).max(m.b)).max().unwrap_or(0);
        let slots = slots.max(most as usize + 1);
        let simt = W == WARP;
        let here = |l: u32| launch.locals.contains(&l);
        let size = |l: usize| if here(l as u32) { code.locals[l].elements } else { 0 };
        let shadow = |l: usize| {
            let elements = if simt && watch.checks { size(l) } else { 0 };
            LocalShadow::new(elements, code.locals[l].atomics)
        };
        Machine {
            code,
            launch,
            globals,
            scalars,
            kernels: Kernels::new::<W>(Level::detect()),
            checks: watch.checks,
            block: 0,
            uniforms: vec![0; code.uniforms],
            dynamics: vec![[0; W]; code.dynamics],
            registers: vec![A::POISON; warps * slots * W],
            base: 0,
            warp: 0,
            executing: Executing { base: 0, size: launch.threads },
            points: 0,
            locals: (0..code.locals.len()).map(|l| vec![A::POISON; size(l)]).collect(),
            shadows: (0..code.locals.len()).map(shadow).collect(),
            order: Order::new(launch.threads, simt && launch.asynchronous),
            rings: code.rings.iter().map(|r| Phases::new(r.depth, r.count)).collect(),
            accumulators: code
                .accumulators
                .iter()
                .map(|a| vec![InFlight::default(); a.count as usize * warps])
                .collect(),
            fences: vec![0; warps],
            tally: Tally::default(),
            costs: vec![Cost::default(); if watch.checks { code.accesses.len() * warps } else { 0 }],
            counters: Counters::default(),
            sites: vec![Counters::default(); code.sites.len()],
            hazards: Hazards::default(),
        }
    }

    fn warps(&self) -> usize {
        self.launch.threads.div_ceil(W).max(1)
    }

    fn slots(&self) -> usize {
        self.registers.len() / (self.warps() * W)
    }

    /// Runs a block. `at` are the values of the block loops, `number` the block's place in the order of the loops.
    pub fn run_block(&mut self, number: u64, at: &[i64]) {
        self.block = number;
        self.uniforms.fill(0);
        for ((variable, ..), value) in self.launch.grid.iter().zip(at) {
            self.uniforms[*variable as usize] = *value;
        }
        self.order.reset();
        for local in &self.launch.locals {
            self.shadows[*local as usize].reset();
        }
        for ring in &mut self.rings {
            ring.reset();
        }
        for accumulator in &mut self.accumulators {
            accumulator.fill(InFlight::default());
        }
        self.fences.fill(0);
        self.fill_constants();
        self.executing = Executing { base: 0, size: self.launch.threads };
        let body: &'a [Op] = &self.launch.body;
        if W == WARP {
            self.range(body);
            self.end_block();
        } else {
            self.warp(body, 1);
        }
        self.counters.blocks_simulated += 1;
    }

    /// Takes points of a nest, one into each lane; `points` holds their coordinates one after another.
    pub fn take_points(&mut self, nest: &Nest, points: &[i64]) {
        let dims = nest.variables.len().max(1);
        let count = points.len() / dims;
        self.uniforms.fill(0);
        for (dim, variable) in nest.variables.iter().enumerate() {
            for (lane, point) in points.chunks_exact(dims).enumerate() {
                self.dynamics[*variable as usize][lane] = point[dim];
            }
        }
        self.fill_constants();
        let lanes = if count >= 32 { u32::MAX } else { (1 << count) - 1 };
        self.points = lanes & Self::ALL;
    }

    /// Runs the body for the points that machines have taken, each at least one. The machines take turns in its loops, a
    /// few iterations at a time: what one of them reads there is still in a cache when the next one reads it.
    pub fn run_points(machines: &mut [Self]) {
        let Some(launch) = machines.first().map(|machine| machine.launch) else { return };
        for op in &launch.body {
            let Op::Loop { variable, lo, hi, step, counting: None, body } = op else {
                machines.iter_mut().for_each(|machine| machine.warp_op(op, machine.points));
                continue;
            };
            // Uniform integers are the same on all machines.
            let uniform = |form: &Form| machines[0].uniform_part(form);
            let (mut first, hi, step) = (uniform(lo), uniform(hi), uniform(step).max(1));
            while first < hi {
                let end = first.saturating_add(step.saturating_mul(TURN)).min(hi);
                for machine in &mut *machines {
                    let mut at = first;
                    while at < end {
                        machine.uniforms[*variable as usize] = at;
                        machine.warp(body, machine.points);
                        at = at.saturating_add(step);
                    }
                }
                first = end;
            }
        }
    }

    fn fill_constants(&mut self) {
        let slots = self.slots();
        for warp in 0..self.warps() {
            for (slot, constant) in &self.launch.constants {
                let value = match constant {
                    Constant::Literal(bits) => A::from_f64(f64::from_bits(*bits)),
                    Constant::Scalar(s) => self.scalars[*s as usize],
                };
                let first = (warp * slots + *slot as usize) * W;
                self.registers[first..first + W].fill(value);
            }
        }
    }

    /// The part of a form that all lanes share.
    #[inline]
    fn uniform_part(&self, form: &Form) -> i64 {
        let mut sum = form.constant;
        for (variable, coefficient) in &form.uniform {
            sum = sum.wrapping_add(self.uniforms[*variable as usize].wrapping_mul(*coefficient));
        }
        sum
    }

    /// The value of a form in each lane of the warp that runs.
    #[inline]
    fn lane_values(&self, form: &Form) -> [i64; W] {
        let mut values = [self.uniform_part(form); W];
        if let Some(lanes) = form.lanes {
            let lanes = &self.code.lanes[lanes as usize].values[self.warp * W..][..W];
            for (value, lane) in values.iter_mut().zip(lanes) {
                *value = value.wrapping_add(*lane);
            }
        }
        for (variable, coefficient) in &form.dynamic {
            for (value, lane) in values.iter_mut().zip(&self.dynamics[*variable as usize]) {
                *value = value.wrapping_add(lane.wrapping_mul(*coefficient));
            }
        }
        values
    }

    /// The value of a form in one lane.
    fn lane_value(&self, form: &Form, lane: usize) -> i64 {
        let mut value = self.uniform_part(form);
        if let Some(lanes) = form.lanes {
            value = value.wrapping_add(self.code.lanes[lanes as usize].values[self.warp * W + lane]);
        }
        for (variable, coefficient) in &form.dynamic {
            value = value.wrapping_add(self.dynamics[*variable as usize][lane].wrapping_mul(*coefficient));
        }
        value
    }

    /// The lanes of the warp in which a test holds.
    fn test(&self, test: &Test) -> u32 {
        let whole = |truth: bool| if truth { Self::ALL } else { 0 };
        match test {
            Test::Constant(truth) => whole(*truth),
            Test::Mask(mask) => self.code.masks[*mask as usize].get(self.warp).copied().unwrap_or(0),
            Test::Not(t) => !self.test(t) & Self::ALL,
            Test::And(tests) => {
                let mut lanes = Self::ALL;
                for t in tests {
                    if lanes == 0 {
                        break;
                    }
                    lanes &= self.test(t);
                }
                lanes
            }
            Test::Or(tests) => tests.iter().fold(0, |lanes, t| lanes | self.test(t)),
            Test::Compare(how, form) => {
                let uniform = self.uniform_part(form);
                if form.is_uniform() {
                    return whole(how.holds(uniform, 0));
                }
                if form.dynamic.is_empty()
                    && matches!(how, Comparison::Lt | Comparison::Le)
                    && let Some(lanes) = form.lanes
                {
                    let (lo, hi) = self.code.lanes[lanes as usize].bounds[self.warp];
                    if how.holds(uniform.wrapping_add(hi), 0) {
                        return Self::ALL;
                    }
                    if !how.holds(uniform.wrapping_add(lo), 0) {
                        return 0;
                    }
                }
                let values = self.lane_values(form);
                values.iter().enumerate().fold(0, |m, (lane, v)| m | u32::from(how.holds(*v, 0)) << lane)
            }
        }
    }

    /// The first value of a register's lanes in the register file.
    #[inline]
    fn at(&self, reg: Reg) -> usize {
        self.at_lane(reg, 0)
    }

    /// The same, for a register whose index is taken from one lane.
    fn at_lane(&self, reg: Reg, lane: usize) -> usize {
        let slot = match reg.slot() {
            Some(slot) => slot,
            None => {
                let indexed = &self.code.indexed[(reg.0 & !Reg::INDEXED) as usize];
                let index = self.lane_value(&indexed.index, lane);
                indexed.base + index.clamp(0, i64::from(indexed.count.max(1)) - 1) as u32
            }
        };
        self.base + slot as usize * W
    }

    #[inline]
    fn read(&self, reg: Reg) -> [A; W] {
        let at = self.at(reg);
        let mut lanes = [A::POISON; W];
        lanes.copy_from_slice(&self.registers[at..at + W]);
        lanes
    }

    #[inline]
    fn write(&mut self, reg: Reg, values: &[A; W], mask: u32) {
        let at = self.at(reg);
        let lanes = &mut self.registers[at..at + W];
        if mask == Self::ALL {
            lanes.copy_from_slice(values);
        } else {
            for (lane, (register, value)) in lanes.iter_mut().zip(values).enumerate() {
                if mask >> lane & 1 == 1 {
                    *register = *value;
                }
            }
        }
    }

    /// The thread in a lane of the warp that runs.
    fn thread(&self, lane: usize) -> usize {
        self.warp * W + lane
    }

    fn agent(&self, lane: usize) -> Agent {
        Agent::new(self.thread(lane), Stream::Program)
    }

    fn hazard(&mut self, kind: HazardKind, site: u32, what: impl FnOnce() -> String) {
        let block = self.block;
        self.hazards.add(kind, site, || format!("{} (block {block})", what()));
    }
}

/// The lanes of a mask, lowest first.
#[derive(Clone, Copy, Debug)]
struct Lanes(u32);

fn lanes(mask: u32) -> Lanes {
    Lanes(mask)
}

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}
