//! Instructions: operands become boxes of elements in memory or in registers, compared with what the record wants.

use warpwright_core::diag::Diagnosis;
use warpwright_core::index::Comparison;
use warpwright_core::instr::{self, Extent, Place as WantedPlace, Record, WindowSpec};
use warpwright_core::ir::{Instruction, Operand, Span, Window};

use super::buffer::RegisterBuffer;
use super::{Binding, Lowering, Mode, View};
use crate::code::{Argument, Call, Form, Indexed, Memory, MemoryWindow, Op, Reg, RegisterWindow};
use crate::hazard::HazardKind;

/// No instruction has a larger operand.
const MOST_ELEMENTS: i64 = 1 << 15;

impl<'p> Lowering<'p> {
    pub(super) fn call(&mut self, call: &'p Instruction) -> Result<(), Diagnosis> {
        let record = instr::by_name(&call.name)
            .ok_or_else(|| Diagnosis::new(format!("there is no instruction `{}`", call.name)))?;
        if record.operands.len() != call.operands.len() {
            return Err(Diagnosis::new(format!(
                "`{}` has {} operands, not {}",
                record.name,
                record.operands.len(),
                call.operands.len()
            )));
        }
        if self.mode == Mode::Simt {
            self.check_executor(record)?;
        }
        if self.mode == Mode::Simt && record.threads <= 32 && self.context.view == View::Range {
            return self.in_warps(|s| s.emit_call(record, call));
        }
        self.emit_call(record, call)
    }

    /// An instruction stands at exactly its record's range (rule 3), on whole warps.
    fn check_executor(&self, record: &Record) -> Result<(), Diagnosis> {
        if record.threads != self.context.size {
            return Err(Diagnosis::new(format!(
                "`{}` is executed by {} threads, not {}",
                record.name, record.threads, self.context.size
            )));
        }
        let mut threads = (0..self.threads).filter(|t| self.context.active[*t]);
        if record.threads > 1 && threads.any(|t| (t as i64 - self.context.offset[t]) % 32 != 0) {
            return Err(Diagnosis::new(format!("`{}` is executed by threads of two warps", record.name)));
        }
        Ok(())
    }

    fn emit_call(&mut self, record: &'static Record, call: &'p Instruction) -> Result<(), Diagnosis> {
        let site = self.site();
        let mut fault = None;
        let mut arguments = Vec::new();
        for (operand, spec) in call.operands.iter().zip(record.operands) {
            arguments.push(match (operand, &spec.window) {
                (Operand::Scalar(i), None) => Argument::Integer(self.index(i)?),
                (Operand::Window(window), Some(wanted)) => {
                    let (argument, wrong) = self.window(window, wanted)?;
                    fault = fault.or(wrong.map(|w| format!("{}: {w}", record.name)));
                    argument
                }
                _ => {
                    return Err(Diagnosis::new(format!(
                        "operand `{}` of `{}` is of the wrong kind",
                        spec.name, record.name
                    )));
                }
            });
        }
        let signal = match &call.signal {
            None => None,
            Some((ring, ordinal)) => match self.bindings.get(ring) {
                Some(Binding::Ring(ring)) => {
                    let ring = *ring;
                    Some((ring, self.index(ordinal)?))
                }
                _ => return Err(Diagnosis::new(format!("`{ring}` is no ring of mbarriers here"))),
            },
        };
        self.emit(Op::Call(Box::new(Call { record, arguments, signal, site, fault })));
        Ok(())
    }

    fn window(
        &mut self,
        window: &Window,
        wanted: &WindowSpec,
    ) -> Result<(Argument, Option<String>), Diagnosis> {
        match self.bindings.get(&window.buffer) {
            Some(Binding::Registers(r)) => {
                let register = self.registers[*r].clone();
                let fault = register_fault(&register, window, wanted);
                Ok((Argument::Registers(self.register_window(&register, window)?), fault))
            }
            Some(Binding::Global(g)) => {
                let b = &self.code.globals[*g as usize];
                let (memory, extents, dtype) = (Memory::Global(*g), b.extents.clone(), b.dtype);
                self.memory_window(window, memory, &extents, dtype, wanted)
            }
            Some(Binding::Local(l)) => {
                let b = &self.code.locals[*l as usize];
                let (memory, extents, dtype) = (Memory::Local(*l), b.extents.clone(), b.dtype);
                self.memory_window(window, memory, &extents, dtype, wanted)
            }
            _ => Err(Diagnosis::new(format!("`{}` is no buffer here", window.buffer))),
        }
    }

    fn memory_window(
        &mut self,
        window: &Window,
        memory: Memory,
        extents: &[i64],
        dtype: warpwright_core::dtype::DType,
        wanted: &WindowSpec,
    ) -> Result<(Argument, Option<String>), Diagnosis> {
        if window.dims.len() != extents.len() {
            return Err(Diagnosis::new(format!("`{}` has {} dimensions", window.buffer, extents.len())));
        }
        let (mut start, mut kept, mut shape) = (Vec::new(), Vec::new(), Vec::new());
        for (dim, (span, extent)) in window.dims.iter().zip(extents).enumerate() {
            let (first, length) = match span {
                Span::At(i) => (self.index(i)?, None),
                Span::Slice(i, length) => (self.index(i)?, Some(*length)),
                Span::All => (Form::default(), Some(*extent)),
            };
            start.push(first);
            if let Some(length) = length {
                kept.push(dim);
                shape.push(length);
            }
        }
        if shape
            .iter()
            .try_fold(1i64, |n, l| n.checked_mul(*l))
            .is_none_or(|n| !(0..=MOST_ELEMENTS).contains(&n))
        {
            return Err(Diagnosis::new("the window is too large for an instruction"));
        }
        let fault = shape_fault(&shape, wanted).or_else(|| {
            let wrong = wanted.dtype.is_some_and(|t| t != dtype);
            wrong.then(|| format!("{} holds {dtype}", window.buffer))
        });
        let w = MemoryWindow { memory, start, kept, shape, dtype };
        Ok((Argument::Memory(w), fault))
    }

    fn register_window(&mut self, b: &RegisterBuffer, window: &Window) -> Result<RegisterWindow, Diagnosis> {
        if window.dims.len() != b.extents.len() {
            return Err(Diagnosis::new(format!("`{}` has {} dimensions", b.name, b.extents.len())));
        }
        let tiles = b.extents.len() - if b.fragment.is_some() { 2 } else { 0 };
        let mut owner = self.as_lanes(|s| Ok(s.lane_vector(b.origin.clone())))?;
        let mut slot = Form::default();
        // For each dimension: where its window starts in the enumeration, and its length (`None` if dropped).
        let mut spans = Vec::new();
        for (dim, span) in window.dims.iter().enumerate() {
            let (index, length) = match span {
                Span::At(i) => (Some(i.clone()), None),
                Span::Slice(i, length) => (Some(i.clone()), Some(*length)),
                Span::All => (None, Some(b.extents[dim])),
            };
            let start = match (&index, b.pitches[dim]) {
                (None, _) => Form::default(),
                (Some(i), Some(_)) => self.as_lanes(|s| s.index(i))?,
                (Some(i), None) => self.index(i)?,
            };
            let last = b.extents[dim] - length.unwrap_or(1);
            if !self.is_inside(&start, last + 1) {
                let below = self.compare(Comparison::Lt, start.clone());
                let past = self.sub(&Form::constant(last), &start);
                let past = self.compare(Comparison::Lt, past);
                let text = format!(
                    "window of register buffer {}, dimension {dim}, outside 0..{}",
                    b.name, b.extents[dim]
                );
                self.fault(below, HazardKind::OutOfBounds, text.clone());
                self.fault(past, HazardKind::OutOfBounds, text);
            }
            let mut origin = 0;
            if dim >= tiles {
                origin = start.as_constant().ok_or_else(|| {
                    Diagnosis::new(format!("the part of the fragment of `{}` is not constant", b.name))
                })?;
            } else {
                let (sum, factor) = match b.pitches[dim] {
                    Some(pitch) => (&mut owner, pitch),
                    None => (&mut slot, b.strides[dim]),
                };
                let term = self.scale(&start, factor);
                *sum = self.add(sum, &term);
            }
            spans.push((origin, length));
        }
        let first = self.as_lanes(|s| {
            let offset = s.context.offset.iter().enumerate().map(|(t, o)| t as i64 - o).collect();
            Ok(s.lane_vector(offset))
        })?;
        let shift = self.sub(&owner, &first);
        let test = self.compare(Comparison::Ne, shift);
        let text = format!("the window of {} lives in other threads than execute the instruction", b.name);
        self.fault(test, HazardKind::Ownership, text);
        let (shape, elements) = enumerate(b, &spans, self.context.size)?;
        let base = match slot.as_constant() {
            Some(c) => Reg(b.first + c.clamp(0, i64::from(b.count.max(1)) - 1) as u32),
            None if slot.is_uniform() || self.context.view == View::Warp => {
                self.code.indexed.push(Indexed { base: b.first, count: b.count, index: slot });
                Reg(Reg::INDEXED | (self.code.indexed.len() as u32 - 1))
            }
            None => return Err(Diagnosis::new(format!("the registers of `{}` are not known", b.name))),
        };
        let reach = elements.iter().map(|e| u32::from(e.0)).max().unwrap_or(0);
        if base.slot().is_some_and(|s| s + reach >= b.first + b.count) {
            return Err(Diagnosis::new(format!("the window of `{}` reaches past the buffer", b.name)));
        }
        Ok(RegisterWindow { base, elements, shape, dtype: b.dtype, accumulator: b.accumulator })
    }

    /// Lowers something in terms of lanes, wherever the instruction stands.
    fn as_lanes<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Diagnosis>) -> Result<T, Diagnosis> {
        let view = std::mem::replace(&mut self.context.view, View::Warp);
        let result = f(self);
        self.context.view = view;
        result
    }
}

/// Slot and lane of each element of a register window.
#[allow(clippy::type_complexity)]
fn enumerate(
    b: &RegisterBuffer,
    spans: &[(i64, Option<i64>)],
    threads: i64,
) -> Result<(Vec<i64>, Vec<(u16, u16)>), Diagnosis> {
    let shape: Vec<i64> = spans.iter().filter_map(|s| s.1).collect();
    if shape.iter().try_fold(1i64, |n, l| n.checked_mul(*l)).is_none_or(|n| !(0..=MOST_ELEMENTS).contains(&n))
    {
        return Err(Diagnosis::new("the window is too large for an instruction"));
    }
    let mut elements = Vec::new();
    for element in warpwright_core::layout::indices(&shape) {
        let (mut at, mut lane, mut slot, mut tile) = (0, 0, 0, [0, 0]);
        for (dim, (origin, length)) in spans.iter().enumerate() {
            let mut value = *origin;
            if length.is_some() {
                value += element[at];
                at += 1;
            }
            match b.pitches[dim] {
                Some(pitch) => lane += value * pitch,
                None => slot += value * b.strides[dim],
            }
            if dim + 2 >= spans.len() {
                tile[dim + 2 - spans.len()] = value;
            }
        }
        if let Some(f) = &b.fragment {
            if !(0..f.rows).contains(&tile[0]) || !(0..f.columns).contains(&tile[1]) {
                return Err(Diagnosis::new(format!("the window reaches past the fragment of `{}`", b.name)));
            }
            let (t, s) = f.places[(tile[0] * f.columns + tile[1]) as usize];
            lane += t;
            slot += s;
        }
        if !(0..threads).contains(&lane) || !(0..i64::from(b.count)).contains(&slot) {
            return Err(Diagnosis::new(format!(
                "the window of `{}` lives in more threads than execute it",
                b.name
            )));
        }
        elements.push((slot as u16, lane as u16));
    }
    Ok((shape, elements))
}

fn shape_fault(shape: &[i64], wanted: &WindowSpec) -> Option<String> {
    let fits = shape.len() == wanted.shape.len()
        && shape.iter().zip(wanted.shape).all(|(n, extent)| match extent {
            Extent::Fixed(m) => n == m,
            Extent::Multiple(m, most) => *n > 0 && n % m == 0 && n <= most,
            Extent::Same(_) => true,
        });
    (!fits).then(|| format!("an operand of shape {shape:?} where the record has {:?}", wanted.shape))
}

/// What is wrong with a register operand for the place that the record wants.
fn register_fault(b: &RegisterBuffer, window: &Window, wanted: &WindowSpec) -> Option<String> {
    let lengths: Vec<Option<i64>> = window
        .dims
        .iter()
        .zip(&b.extents)
        .map(|(span, extent)| match span {
            Span::At(_) => None,
            Span::Slice(_, length) => Some(*length),
            Span::All => Some(*extent),
        })
        .collect();
    let shape: Vec<i64> = lengths.iter().filter_map(|l| *l).collect();
    if let Some(fault) = shape_fault(&shape, wanted) {
        return Some(fault);
    }
    if wanted.dtype.is_some_and(|t| t != b.dtype) {
        return Some(format!("{} holds {}", b.name, b.dtype));
    }
    let fragment = b.fragment.as_ref().map(|f| f.name);
    let last = window.dims.last().map(|span| match span {
        Span::At(i) | Span::Slice(i, _) => i.as_constant(),
        Span::All => Some(0),
    });
    let wrong = match wanted.place {
        WantedPlace::Fragment(name) => fragment != Some(name) || last != Some(Some(0)),
        WantedPlace::FragmentColumns(name, columns) => {
            // A start that is not constant on its face (an unrolled loop) was made constant and checked elsewhere.
            fragment != Some(name) || last.flatten().is_some_and(|l| l % columns != 0)
        }
        WantedPlace::Lanes => {
            let lanes = lengths.iter().position(Option::is_some);
            lanes.is_none_or(|dim| b.pitches[dim] != Some(1))
        }
        _ => true,
    };
    wrong.then(|| format!("{} has not the layout {:?}", b.name, wanted.place))
}
