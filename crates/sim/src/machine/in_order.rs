//! Instructions in order: the sequential program that each equals, on logical arrays.

use warpwright_core::instr::Behaviour;

use super::Machine;
use super::bulk::parts;
use super::instruction::multiply_adds;
use crate::arithmetic::Arithmetic;
use crate::code::{Argument, Call, Memory, MemoryWindow, WARP};
use crate::hazard::HazardKind;
use crate::memory::{element, place};

impl<'a, A: Arithmetic, const W: usize> Machine<'a, A, W> {
    pub(super) fn call_in_order(&mut self, call: &'a Call) {
        let mut windows = Vec::new();
        let mut integer = 0;
        for argument in &call.arguments {
            match argument {
                Argument::Memory(w) => windows.push(w),
                Argument::Integer(form) => integer = self.lane_value(form, 0),
                Argument::Registers(_) => {}
            }
        }
        match (call.record.behaviour, &windows[..]) {
            (Behaviour::Multiply { conjugate, .. }, [d, a, b]) => {
                self.multiply_in_order(call, d, a, b, [false, conjugate]);
            }
            (Behaviour::WarpgroupMultiply { .. }, [d, a, b]) => {
                self.multiply_in_order(call, d, a, b, [true, false])
            }
            (Behaviour::LoadMatrix { turned, .. }, [d, a]) => {
                let mut values = self.read_all(call, a, false);
                if let (true, [_, columns]) = (turned, &a.shape[..]) {
                    let columns = (*columns).max(1) as usize;
                    let rows = values.len() / columns;
                    values = (0..values.len()).map(|at| values[at % rows * columns + at / rows]).collect();
                }
                self.write_all(call, d, &values, false);
            }
            (Behaviour::BulkLoad, [d, a]) => {
                let values = self.read_all(call, a, true);
                self.write_all(call, d, &values, false);
            }
            (Behaviour::BulkStore, [d, a]) => {
                let values = self.read_all(call, a, false);
                self.write_all(call, d, &values, true);
            }
            (Behaviour::Shuffle(lane), [t, v]) => {
                let values = self.read_all(call, v, false);
                let moved: Vec<A> = (0..values.len() as i64)
                    .map(|l| values.get(lane.source(l, integer) as usize).copied().unwrap_or(A::POISON))
                    .collect();
                self.write_all(call, t, &moved, false);
            }
            (Behaviour::CopyAsync { .. } | Behaviour::BulkCopy, [d, a]) => {
                self.copy_in_order(call, d, a, integer)
            }
            (Behaviour::BulkWrite, [d, a]) => {
                for e in 0..d.shape.first().copied().unwrap_or(0).min(integer) {
                    let value = match parts(d, a) {
                        1 => self.read_one(call, a, &[e], false),
                        _ => {
                            let [re, im] =
                                [2 * e, 2 * e + 1].map(|inner| self.read_one(call, a, &[inner], false));
                            re.add(im.times_i())
                        }
                    };
                    self.write_one(call, d, &[e], value, false);
                }
            }
            (Behaviour::Prefetch(..), [a]) => {
                let (index, at) = self.find(a, &[0]);
                if at.is_none() {
                    self.missing(call, a.memory, &index);
                }
            }
            (Behaviour::ChainedSum, [before, total, chain]) => {
                self.chain_in_order(call, before, total, chain)
            }
            _ => self.hazard(HazardKind::Operand, call.site, || {
                format!("{}: operands that the instruction does not take", call.record.name)
            }),
        }
    }

    /// The element of a window at `inner`, if it exists.
    fn find(&self, w: &MemoryWindow, inner: &[i64]) -> (Vec<i64>, Option<usize>) {
        let mut index = self.index_in_lane(&w.start, 0);
        for (dim, i) in w.kept.iter().zip(inner) {
            index[*dim] += i;
        }
        let at = match w.memory {
            Memory::Global(g) => place(&self.code.globals[g as usize], &index),
            Memory::Local(l) => {
                let info = &self.code.locals[l as usize];
                let inside = index.iter().zip(&info.extents).all(|(i, e)| (0..*e).contains(i));
                let flat: i64 = index.iter().zip(&info.strides).map(|(i, s)| i * s).sum();
                inside.then_some(flat as usize).filter(|at| *at < info.elements)
            }
        };
        (index, at)
    }

    /// All elements in C order. With `clipped`, those that do not exist read as zero.
    fn read_all(&mut self, call: &'a Call, w: &MemoryWindow, clipped: bool) -> Vec<A> {
        let inners: Vec<Vec<i64>> = warpwright_core::layout::indices(&w.shape).collect();
        inners.iter().map(|inner| self.read_one(call, w, inner, clipped)).collect()
    }

    fn read_one(&mut self, call: &'a Call, w: &MemoryWindow, inner: &[i64], clipped: bool) -> A {
        let (index, at) = self.find(w, inner);
        match (at, w.memory) {
            (Some(at), Memory::Global(g)) => self.globals[g as usize].load(at),
            (Some(at), Memory::Local(l)) => self.locals[l as usize][at],
            (None, _) if clipped => A::from_f64(0.0),
            (None, memory) => {
                self.missing(call, memory, &index);
                A::POISON
            }
        }
    }

    fn write_all(&mut self, call: &'a Call, w: &MemoryWindow, values: &[A], clipped: bool) {
        let inners: Vec<Vec<i64>> = warpwright_core::layout::indices(&w.shape).collect();
        for (inner, value) in inners.iter().zip(values) {
            self.write_one(call, w, inner, *value, clipped);
        }
    }

    fn write_one(&mut self, call: &'a Call, w: &MemoryWindow, inner: &[i64], value: A, clipped: bool) {
        let value = value.round(w.dtype);
        let (index, at) = self.find(w, inner);
        match (at, w.memory) {
            (Some(at), Memory::Global(g)) => {
                let info = &self.code.globals[g as usize];
                if info.output && value.is_poison() {
                    let text = element(&info.name, &index);
                    self.hazard(HazardKind::Uninitialised, call.site, || {
                        format!("{text} gets data that was never stored")
                    });
                }
                self.globals[g as usize].store(at, value);
            }
            (Some(at), Memory::Local(l)) => self.locals[l as usize][at] = value,
            (None, _) if clipped => {}
            (None, memory) => self.missing(call, memory, &index),
        }
    }

    fn missing(&mut self, call: &'a Call, memory: Memory, index: &[i64]) {
        let (name, extents) = self.buffer_name(memory);
        let text = element(&name, index);
        self.hazard(HazardKind::OutOfBounds, call.site, || {
            format!("{text} of a buffer of extents {extents:?}")
        });
    }

    fn multiply_in_order(
        &mut self,
        call: &'a Call,
        d: &MemoryWindow,
        a: &MemoryWindow,
        b: &MemoryWindow,
        [transposed, conjugate]: [bool; 2],
    ) {
        let ([m, n], [rows, k]) = (&d.shape[..], &a.shape[..]) else { return };
        let (m, n, k) = (*m as usize, *n as usize, *k as usize);
        let (mut x, y) = (self.read_all(call, a, false), self.read_all(call, b, false));
        if conjugate {
            x.iter_mut().for_each(|x| *x = x.conj());
        }
        let mut sums = self.read_all(call, d, false);
        if *rows as usize != m || y.len() != n * k {
            self.hazard(HazardKind::Operand, call.site, || {
                format!("{}: the shapes of the operands do not match", call.record.name)
            });
            return;
        }
        for i in 0..m {
            for j in 0..n {
                let sum = &mut sums[i * n + j];
                for l in 0..k {
                    *sum = sum.mul_add(x[i * k + l], if transposed { y[j * k + l] } else { y[l * n + j] });
                }
            }
        }
        self.counters.fma += (m * n * k) as u64 * multiply_adds(d.dtype);
        self.write_all(call, d, &sums, false);
    }

    fn copy_in_order(&mut self, call: &'a Call, d: &MemoryWindow, a: &MemoryWindow, valid: i64) {
        for e in 0..d.shape.first().copied().unwrap_or(0) {
            let value = if e < valid { self.read_one(call, a, &[e], false) } else { A::from_f64(0.0) };
            self.write_one(call, d, &[e], value, false);
        }
    }

    fn chain_in_order(
        &mut self,
        call: &'a Call,
        before: &MemoryWindow,
        total: &MemoryWindow,
        chain: &MemoryWindow,
    ) {
        debug_assert!(W != WARP);
        let index = self.index_in_lane(&chain.start, 0);
        let Memory::Global(g) = chain.memory else { return };
        let Some(at) = place(&self.code.globals[g as usize], &index) else {
            self.missing(call, chain.memory, &index);
            return;
        };
        let sum = if at == 0 { A::from_f64(0.0) } else { self.globals[g as usize].load(at - 1) };
        if sum.is_poison() {
            self.hazard(HazardKind::Chain, call.site, || "the block before has given nothing".to_string());
        }
        let own = self.read_one(call, total, &[0], false);
        let lanes = before.shape.iter().product::<i64>().max(0) as usize;
        self.write_all(call, before, &vec![sum; lanes], false);
        self.globals[g as usize].store(at, sum.add(own));
    }
}
