//! What a warp executes: operations on its lanes under a mask.

use warpwright_core::dtype::DType;
use warpwright_core::ir::{BinaryOp, UnaryOp};

use super::{Machine, lanes};
use crate::arithmetic::{Arithmetic, multiply_adds};
use crate::code::{Form, Integral, Op, Reg, WARP};
use crate::lower::compute;

impl<'a, A: Arithmetic, const W: usize> Machine<'a, A, W> {
    /// Executes operations in the lanes of `mask`, which is not empty.
    pub(super) fn warp(&mut self, ops: &'a [Op], mask: u32) {
        for op in ops {
            self.warp_op(op, mask);
        }
    }

    pub(super) fn warp_op(&mut self, op: &'a Op, mask: u32) {
        match op {
            Op::MultiplyAdds { first, count, dtype } => {
                self.multiply_adds(*first as usize, *count as usize, *dtype, mask);
            }
            Op::Load { to, access } => self.load(*to, *access, mask),
            Op::Store { from, access } => self.store(*from, *access, mask),
            Op::MultiplyAdd { to, c, a, b, dtype } => {
                let (c, a, b) = (self.read(*c), self.read(*a), self.read(*b));
                let mut sum = c;
                for lane in 0..W {
                    sum[lane] = c[lane].mul_add(a[lane], b[lane]);
                }
                self.count_multiply_adds(1, *dtype, mask);
                self.finish(*to, sum, *dtype, mask);
            }
            Op::Move { to, from, dtype } => {
                let values = self.read(*from);
                match dtype {
                    Some(dtype) => self.finish(*to, values, *dtype, mask),
                    None => self.write(*to, &values, mask),
                }
            }
            Op::If { test, then, otherwise, site } => {
                let taken = self.test(test) & mask;
                if let Some(site) = site
                    && taken != 0
                    && taken != mask
                {
                    self.counters.divergent_branches += 1;
                    self.sites[*site as usize].divergent_branches += 1;
                }
                if taken != 0 {
                    self.warp(then, taken);
                }
                if taken != mask && !otherwise.is_empty() {
                    self.warp(otherwise, mask & !taken);
                }
            }
            Op::Binary { op, to, a, b, dtype } => self.binary(*op, *to, *a, *b, *dtype, mask),
            Op::Unary { op, to, from, dtype } => {
                let mut values = self.read(*from);
                for value in &mut values {
                    *value = match op {
                        UnaryOp::Neg => value.neg(),
                        UnaryOp::Conj => value.conj(),
                        UnaryOp::TimesI => value.times_i(),
                    };
                }
                self.finish(*to, values, *dtype, mask);
            }
            Op::Reduce { from, access, reduction } => self.reduce(*from, *access, *reduction, mask),
            Op::Loop { .. } | Op::LaneLoop { .. } | Op::Tasks { .. } => self.warp_loop(op, mask),
            Op::Uniform(variable, value) => self.uniforms[*variable as usize] = self.uniform_integral(value),
            Op::Lanes(variable, value) => self.dynamics[*variable as usize] = self.lane_integral(value),
            Op::Poison { first, count } => {
                if self.checks || W != WARP || self.launch.nest.is_some() {
                    for slot in *first..first + count {
                        self.write(Reg(slot), &[A::POISON; W], mask);
                    }
                }
            }
            Op::PoisonLocal(local) => self.locals[*local as usize].fill(A::POISON),
            Op::PoisonGlobal(global) => {
                for cell in &self.globals[*global as usize].cells {
                    A::store(cell, A::POISON);
                }
            }
            Op::Scatter { register, base, count, index, store } => {
                self.scatter(*register, *base, *count, index, *store, mask);
            }
            Op::Fault { test, fault, site } => {
                let wrong = self.test(test) & mask;
                if let Some(lane) = lanes(wrong).next() {
                    let (kind, text) = &self.code.faults[*fault as usize];
                    let thread = self.thread(lane);
                    self.hazard(*kind, *site, || format!("{text} (thread {thread})"));
                }
            }
            Op::TouchAccumulator { register, accumulator, write, site } => {
                self.touch_accumulator(*register, *accumulator, *write, *site, mask);
            }
            Op::Sync { sync, size, site } => self.warp_sync(*sync, *size, *site, mask),
            Op::Arrive { ring, ordinal, bytes, times, site } => {
                self.arrive(*ring, ordinal, bytes, *times, *site, mask);
            }
            Op::Await { ring, ordinal, site } => self.warp_await(*ring, ordinal, *site, mask),
            Op::Call(call) => self.call(call, mask),
            Op::ResetRing(ring) => self.rings[*ring as usize].reset(),
            // Ranges of threads are taken apart before warps see them.
            Op::Ranges { .. } | Op::On { .. } | Op::Nest { .. } => {}
        }
    }

    fn warp_loop(&mut self, op: &'a Op, mask: u32) {
        match op {
            Op::Loop { variable, lo, hi, step, counting, body } => {
                let (lo, hi) = (self.uniform_part(lo), self.uniform_part(hi));
                let step = self.uniform_part(step).max(1);
                let mut at = lo;
                while at < hi {
                    self.uniforms[*variable as usize] = at;
                    self.warp(body, mask);
                    if let Some(ordinal) = counting {
                        self.uniforms[*ordinal as usize] += 1;
                    }
                    let Some(next) = at.checked_add(step) else { break };
                    at = next;
                }
            }
            Op::LaneLoop { variable, lo, hi, step, site, body } => {
                let mut at = self.lane_values(lo);
                let (hi, step) = (self.lane_values(hi), self.lane_values(step));
                loop {
                    let going = (0..W).fold(0, |m, lane| m | u32::from(at[lane] < hi[lane]) << lane) & mask;
                    if going == 0 {
                        break;
                    }
                    if going != mask {
                        self.counters.divergent_branches += 1;
                        self.sites[*site as usize].divergent_branches += 1;
                    }
                    self.dynamics[*variable as usize] = at;
                    self.warp(body, going);
                    for lane in 0..W {
                        at[lane] = at[lane].saturating_add(step[lane].max(1));
                    }
                }
            }
            Op::Tasks { variables, extents, start, stride, body } => {
                for point in self.task_points(extents, start, stride) {
                    self.set_task(variables, extents, point);
                    self.warp(body, mask);
                }
            }
            _ => {}
        }
    }

    /// The points of a box that this block does.
    pub(super) fn task_points(
        &self,
        extents: &[Form],
        start: &Form,
        stride: &Form,
    ) -> impl Iterator<Item = i64> + use<A, W> {
        let total = extents.iter().map(|e| self.uniform_part(e).max(0)).fold(1i64, i64::saturating_mul);
        let (start, stride) = (self.uniform_part(start).max(0), self.uniform_part(stride).max(1));
        (start..total).step_by(usize::try_from(stride).unwrap_or(usize::MAX))
    }

    pub(super) fn set_task(&mut self, variables: &[u32], extents: &[Form], point: i64) {
        let mut rest = point;
        for (variable, extent) in variables.iter().zip(extents).rev() {
            let extent = self.uniform_part(extent).max(1);
            self.uniforms[*variable as usize] = rest % extent;
            rest /= extent;
        }
    }

    pub(super) fn uniform_integral(&self, value: &Integral) -> i64 {
        let v = |f: &Form| self.uniform_part(f);
        match value {
            Integral::Copy(a) | Integral::Div(a, _) | Integral::Mod(a, _) => compute(value, &[v(a)]),
            Integral::Min(a, b) | Integral::Max(a, b) | Integral::Xor(a, b) => compute(value, &[v(a), v(b)]),
            Integral::Select(test, a, b) => {
                if self.test(test) != 0 {
                    v(a)
                } else {
                    v(b)
                }
            }
            Integral::Part { index, parts, lo, hi } => compute(value, &[v(index), v(parts), v(lo), v(hi)]),
        }
    }

    fn lane_integral(&self, value: &Integral) -> [i64; W] {
        let v = |f: &Form| self.lane_values(f);
        let mut out = [0; W];
        match value {
            Integral::Copy(a) | Integral::Div(a, _) | Integral::Mod(a, _) => {
                let a = v(a);
                for lane in 0..W {
                    out[lane] = compute(value, &[a[lane]]);
                }
            }
            Integral::Min(a, b) | Integral::Max(a, b) | Integral::Xor(a, b) => {
                let (a, b) = (v(a), v(b));
                for lane in 0..W {
                    out[lane] = compute(value, &[a[lane], b[lane]]);
                }
            }
            Integral::Select(test, a, b) => {
                let (chosen, a, b) = (self.test(test), v(a), v(b));
                for lane in 0..W {
                    out[lane] = if chosen >> lane & 1 == 1 { a[lane] } else { b[lane] };
                }
            }
            Integral::Part { index, parts, lo, hi } => {
                let (index, parts, lo, hi) = (v(index), v(parts), v(lo), v(hi));
                for lane in 0..W {
                    out[lane] = compute(value, &[index[lane], parts[lane], lo[lane], hi[lane]]);
                }
            }
        }
        out
    }

    /// Rounds to the type and writes.
    fn finish(&mut self, to: Reg, mut values: [A; W], dtype: DType, mask: u32) {
        if A::rounds(dtype) {
            for value in &mut values {
                *value = value.round(dtype);
            }
        }
        self.write(to, &values, mask);
    }

    fn binary(&mut self, op: BinaryOp, to: Reg, a: Reg, b: Reg, dtype: DType, mask: u32) {
        let (a, b) = (self.read(a), self.read(b));
        let mut out = a;
        // One loop for each operation, so that each is vectorised.
        let all = |f: fn(A, A) -> A, out: &mut [A; W]| {
            for lane in 0..W {
                out[lane] = f(a[lane], b[lane]);
            }
        };
        match op {
            BinaryOp::Add => all(A::add, &mut out),
            BinaryOp::Sub => all(A::sub, &mut out),
            BinaryOp::Mul => all(A::mul, &mut out),
            BinaryOp::Div => all(A::div, &mut out),
            BinaryOp::Max => all(A::max, &mut out),
            BinaryOp::Min => all(A::min, &mut out),
        }
        self.finish(to, out, dtype, mask);
    }

    fn multiply_adds(&mut self, first: usize, count: usize, dtype: DType, mask: u32) {
        let list = &self.code.multiply_adds[first..first + count];
        if mask == Self::ALL && !A::rounds(dtype) {
            let registers = &mut self.registers[self.base..];
            // SAFETY: every slot of the list lies inside the registers of a warp (see `Machine::new`), `base` is the
            // first register of one, and the level of the kernels was detected on this processor.
            unsafe { (self.kernels.multiply_adds)(registers.as_mut_ptr(), list) };
        } else {
            for op in list {
                let (d, a, b) = (self.read(Reg(op.d)), self.read(Reg(op.a)), self.read(Reg(op.b)));
                let mut sum = d;
                for lane in 0..W {
                    sum[lane] = d[lane].mul_add(a[lane], b[lane]);
                }
                self.finish(Reg(op.d), sum, dtype, mask);
            }
        }
        self.count_multiply_adds(count as u64, dtype, mask);
    }

    fn count_multiply_adds(&mut self, count: u64, dtype: DType, mask: u32) {
        self.counters.fma += count * u64::from(mask.count_ones()) * multiply_adds(dtype);
    }

    fn scatter(&mut self, register: Reg, base: u32, count: u32, index: &Form, store: bool, mask: u32) {
        let slots = self.lane_values(index);
        let at = self.at(register);
        for lane in lanes(mask) {
            let slot = base as usize + slots[lane].clamp(0, i64::from(count.max(1)) - 1) as usize;
            let there = self.base + slot * W + lane;
            if store {
                self.registers[there] = self.registers[at + lane];
            } else {
                self.registers[at + lane] = self.registers[there];
            }
        }
    }
}
