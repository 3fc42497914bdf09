//! Loops over the elements of a register window, each visited by its owner.

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::{Own, Span};

use super::{Binding, Context, Lowering, MOST_UNROLLED, View};
use crate::code::{Form, Op};

impl<'p> Lowering<'p> {
    /// A loop over the elements of a register window, each visited by its owner.
    pub(super) fn own(&mut self, o: &'p Own) -> Result<(), Diagnosis> {
        let Some(Binding::Registers(buffer)) = self.bindings.get(&o.window.buffer).cloned() else {
            return self.own_in_order(o);
        };
        if o.window.dims.len() != self.registers[buffer].extents.len() {
            return Err(Diagnosis::new("the window has another number of dimensions than the buffer"));
        }
        let active = self.context.active.clone();
        let (size, offset) = (self.context.size, self.context.offset.clone());
        // Each thread executes alone from here on.
        let inner =
            Context { view: View::Warp, size: 1, offset: vec![0; self.threads], active: active.clone() };
        let range_context = Context { view: View::Warp, size, offset, active: active.clone() };
        let outer = std::mem::replace(&mut self.context, range_context);
        let lists = self.owned_elements(buffer, o);
        self.context = inner;
        let body = lists.and_then(|lists| self.visit_owned(o, &lists));
        self.context = outer;
        self.enclose(&active, body?);
        Ok(())
    }

    /// For each thread, the window indices of the elements that it owns, or of the first of each run of them, in the
    /// order of its registers.
    fn owned_elements(&mut self, buffer: usize, o: &'p Own) -> Result<Vec<Vec<Vec<i64>>>, Diagnosis> {
        let b = self.registers[buffer].clone();
        let mut fixed = Vec::new();
        let mut shape = Vec::new();
        for (dim, span) in o.window.dims.iter().enumerate() {
            let (start, length) = match span {
                Span::At(i) => (self.index(i)?, None),
                Span::Slice(i, length) => (self.index(i)?, Some(*length)),
                Span::All => (Form::default(), Some(b.extents[dim])),
            };
            let matters = b.pitches[dim].is_some() || length.is_some();
            if matters && !start.is_static() {
                return Err(Diagnosis::new(format!(
                    "the threads of the window of `{}` are not known",
                    b.name
                )));
            }
            fixed.push((if matters { self.static_values(&start) } else { vec![0; self.threads] }, length));
            shape.extend(length);
        }
        if shape.iter().product::<i64>() > MOST_UNROLLED as i64 {
            return Err(Diagnosis::new("the window is too large"));
        }
        let mut lists = vec![Vec::new(); self.threads];
        let mut done: Vec<(Vec<i64>, i64)> = Vec::new();
        let first_of_run = |element: &Vec<i64>| element.last().is_none_or(|at| at % o.run == 0);
        for thread in (0..self.threads).filter(|t| self.context.active[*t]) {
            let starts: Vec<i64> = fixed.iter().map(|(values, _)| values[thread]).collect();
            let key = (starts.clone(), b.origin[thread]);
            if done.contains(&key) {
                continue;
            }
            done.push(key);
            for element in warpwright_core::layout::indices(&shape).filter(first_of_run) {
                let mut at = 0;
                let mut owner = b.origin[thread];
                let mut slot = 0;
                let mut tile = [0, 0];
                for dim in 0..starts.len() {
                    let mut value = starts[dim];
                    if fixed[dim].1.is_some() {
                        value += element[at];
                        at += 1;
                    }
                    match b.pitches[dim] {
                        Some(pitch) => owner += value * pitch,
                        None => slot += value * b.strides[dim],
                    }
                    if dim + 2 >= starts.len() {
                        tile[dim + 2 - starts.len()] = value;
                    }
                }
                if let Some(f) = &b.fragment {
                    let inside = (0..f.rows).contains(&tile[0]) && (0..f.columns).contains(&tile[1]);
                    if !inside {
                        return Err(Diagnosis::new("the window reaches past the fragment"));
                    }
                    let (t, s) = f.places[(tile[0] * f.columns + tile[1]) as usize];
                    owner += t;
                    slot += s;
                }
                if let Some(list) = usize::try_from(owner).ok().and_then(|t| lists.get_mut(t)) {
                    list.push((slot, element));
                }
            }
        }
        Ok(lists
            .into_iter()
            .map(|mut list| {
                list.sort();
                list.into_iter().map(|(_, element)| element).collect()
            })
            .collect())
    }

    fn visit_owned(&mut self, o: &'p Own, lists: &[Vec<Vec<i64>>]) -> Result<Vec<Op>, Diagnosis> {
        let outer = std::mem::take(&mut self.ops);
        let active = self.context.active.clone();
        let rounds = lists.iter().zip(&active).filter(|(_, a)| **a).map(|(l, _)| l.len()).max().unwrap_or(0);
        let mut failure = None;
        for round in 0..rounds {
            let here: Vec<bool> = lists.iter().zip(&active).map(|(l, a)| *a && l.len() > round).collect();
            self.context.active.clone_from(&here);
            for (dim, sym) in o.vars.iter().enumerate() {
                let value = |l: &Vec<Vec<i64>>| l.get(round).and_then(|e| e.get(dim)).copied().unwrap_or(0);
                let form = self.lane_vector(lists.iter().map(value).collect());
                self.bindings.insert(sym.clone(), Binding::Integer(form));
            }
            let body = self.block(&o.body);
            self.context.active.clone_from(&active);
            match body {
                Ok(body) => self.enclose(&here, body),
                Err(d) => failure = failure.or(Some(d)),
            }
            if failure.is_some() {
                break;
            }
        }
        let ops = std::mem::replace(&mut self.ops, outer);
        failure.map_or(Ok(ops), Err)
    }

    /// In order an `own` loop is a nest over the window.
    fn own_in_order(&mut self, o: &'p Own) -> Result<(), Diagnosis> {
        let Some(Binding::Local(buffer)) = self.bindings.get(&o.window.buffer) else {
            return Err(Diagnosis::new(format!("`{}` is no register buffer here", o.window.buffer)));
        };
        let extents = self.code.locals[*buffer as usize].extents.clone();
        let spans = o.window.dims.iter().zip(&extents).filter_map(|(span, extent)| match span {
            Span::At(_) => None,
            Span::Slice(_, length) => Some(*length),
            Span::All => Some(*extent),
        });
        // The last variable steps from run to run.
        let last = o.vars.len().saturating_sub(1);
        let steps = (0..).map(|at| if at == last { o.run } else { 1 });
        let mut loops = Vec::new();
        for ((sym, extent), step) in o.vars.iter().zip(spans).zip(steps) {
            let variable = self.new_uniform(Some((0, (extent - step).max(0))));
            self.bindings.insert(sym.clone(), Binding::Integer(Form::uniform(variable)));
            loops.push((variable, extent, step));
        }
        let mut body = self.block(&o.body)?;
        for (variable, extent, step) in loops.into_iter().rev() {
            let (lo, hi, step) = (Form::default(), Form::constant(extent), Form::constant(step));
            body = vec![Op::Loop { variable, lo, hi, step, counting: None, body }];
        }
        self.ops.extend(body);
        Ok(())
    }
}
