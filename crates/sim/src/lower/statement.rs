//! Statements: loops, conditions, ranges of threads and synchronisation. Loops over owned elements are in `own`.

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::{For, If, Mode as LoopMode, On, Range, Stmt, Sync, Tasks, walk};
use warpwright_core::sym::Sym;

use super::index::is_uniform;
use super::{Binding, Context, Lowering, MOST_UNROLLED, Mode, View, constant_values};
use crate::arithmetic::MultiplyAdd;
use crate::code::{Form, Integral, Op, Test, WARP};

impl<'p> Lowering<'p> {
    pub(super) fn stmts(&mut self, stmts: &'p [Stmt]) -> Result<(), Diagnosis> {
        let slots = self.next_slot;
        for stmt in stmts {
            let outer = self.stmt.replace(stmt);
            let result = self.stmt(stmt);
            self.stmt = outer;
            // The innermost statement names the place; those around it leave it alone.
            result.map_err(|d| if d.place.contains(": ") { d } else { d.at(self.place(stmt)) })?;
        }
        self.next_slot = slots;
        Ok(())
    }

    fn stmt(&mut self, stmt: &'p Stmt) -> Result<(), Diagnosis> {
        match stmt {
            Stmt::For(l) => self.for_loop(l),
            Stmt::Tasks(t) => self.tasks(t),
            Stmt::Own(o) => self.own(o),
            Stmt::If(i) => self.choice(i),
            Stmt::Let(sym, value) => {
                let form = self.index(value)?;
                // An ordinal goes on counting; what was bound keeps its value.
                let form = if form.uniform.iter().any(|(v, _)| self.ordinals.contains(v)) {
                    self.copy(form)
                } else {
                    form
                };
                self.bindings.insert(sym.clone(), Binding::Integer(form));
                Ok(())
            }
            Stmt::Alloc(buffer) => self.alloc(buffer),
            Stmt::AllocRing(ring) => {
                self.ring(ring);
                Ok(())
            }
            Stmt::Roles(roles) => {
                for role in roles {
                    self.bindings.insert(role.sym.clone(), Binding::Role(role.lo, role.hi));
                }
                Ok(())
            }
            Stmt::On(on) => self.on(on),
            Stmt::Assign(assign) => self.assign(assign, stmt),
            Stmt::Instruction(call) => self.call(call),
            Stmt::Sync(sync) => self.sync(*sync),
            Stmt::Arrive { ring, ordinal, bytes } => {
                let ring = self.ring_number(ring)?;
                let ordinal = self.index(ordinal)?;
                let bytes = bytes.as_ref().map_or(Ok(Form::default()), |b| self.index(b))?;
                let site = self.site();
                let times = if self.mode == Mode::InOrder { self.arrivals } else { 1 };
                self.in_warps(|s| {
                    s.emit(Op::Arrive { ring, ordinal, bytes, times, site });
                    Ok(())
                })
            }
            Stmt::Await { ring, ordinal } => {
                let ring = self.ring_number(ring)?;
                let ordinal = self.index(ordinal)?;
                let site = self.site();
                self.emit(Op::Await { ring, ordinal, site });
                Ok(())
            }
        }
    }

    fn copy(&mut self, form: Form) -> Form {
        let bounds = self.bounds(&form);
        if form.is_uniform() {
            let variable = self.new_uniform(bounds);
            self.emit(Op::Uniform(variable, Integral::Copy(form)));
            Form::uniform(variable)
        } else {
            let variable = self.new_dynamic(bounds);
            self.emit(Op::Lanes(variable, Integral::Copy(form)));
            Form::dynamic(variable)
        }
    }

    fn ring_number(&self, sym: &Sym) -> Result<u32, Diagnosis> {
        match self.bindings.get(sym) {
            Some(Binding::Ring(number)) => Ok(*number),
            _ => Err(Diagnosis::new(format!("`{sym}` is no ring of mbarriers here"))),
        }
    }

    /// The operations that a body becomes.
    pub(super) fn block(&mut self, stmts: &'p [Stmt]) -> Result<Vec<Op>, Diagnosis> {
        let outer = std::mem::take(&mut self.ops);
        let result = self.stmts(stmts);
        let ops = std::mem::replace(&mut self.ops, outer);
        result.map(|()| self.gather_multiply_adds(ops))
    }

    /// Joins neighbouring multiply-adds on constant slots into lists, which the machine runs through at once.
    pub(super) fn gather_multiply_adds(&mut self, ops: Vec<Op>) -> Vec<Op> {
        let mut out: Vec<Op> = Vec::with_capacity(ops.len());
        for op in ops {
            let Op::MultiplyAdd { to, c, a, b, dtype } = op else {
                out.push(op);
                continue;
            };
            let (Some(d), Some(a_slot), Some(b_slot), true) = (to.slot(), a.slot(), b.slot(), to == c) else {
                out.push(Op::MultiplyAdd { to, c, a, b, dtype });
                continue;
            };
            self.code.multiply_adds.push(MultiplyAdd { d, a: a_slot, b: b_slot });
            let at = self.code.multiply_adds.len() as u32 - 1;
            match out.last_mut() {
                Some(Op::MultiplyAdds { first, count, dtype: t }) if *t == dtype && *first + *count == at => {
                    *count += 1;
                }
                _ => out.push(Op::MultiplyAdds { first: at, count: 1, dtype }),
            }
        }
        out
    }

    fn for_loop(&mut self, l: &'p For) -> Result<(), Diagnosis> {
        match l.mode {
            LoopMode::Threads { pitch } if self.mode == Mode::Simt => return self.threads(l, pitch),
            LoopMode::Block { .. } if self.mode == Mode::Simt => {
                return Err(Diagnosis::new("a block loop inside a launch"));
            }
            LoopMode::Block { .. } => self.enter_block(l),
            LoopMode::Unroll | LoopMode::Vector | LoopMode::Interleave => {
                if let Some(values) = constant_values(self, &l.range)?
                    && self.emitted < MOST_UNROLLED
                    && l.counting.is_none()
                    && self.room_for(values.len(), &l.body)
                {
                    return self.unrolled(l, &values);
                }
            }
            LoopMode::Serial | LoopMode::Threads { .. } => {}
        }
        match &l.range {
            Range::List(values) => {
                let values = values.clone();
                self.unrolled(l, &values)
            }
            Range::Span { lo, hi, step } => {
                let (lo, hi, step) = (self.index(lo)?, self.index(hi)?, self.index(step)?);
                self.serial(l, lo, hi, step)
            }
            Range::Part { index, parts, lo, hi } => {
                let (index, parts) = (self.index(index)?, self.index(parts)?);
                let (lo, hi) = (self.index(lo)?, self.index(hi)?);
                let next = self.add(&index, &Form::constant(1));
                let first = self.integral(Integral::Part {
                    index,
                    parts: parts.clone(),
                    lo: lo.clone(),
                    hi: hi.clone(),
                });
                let last = self.integral(Integral::Part { index: next, parts, lo, hi });
                self.serial(l, first, last, Form::constant(1))
            }
        }
    }

    /// Whether writing the loop out keeps the code small enough.
    fn room_for(&self, trips: usize, body: &[Stmt]) -> bool {
        let mut statements = 0usize;
        walk::for_each(body, &mut |_| statements += 1);
        // In order, code is mostly executed few times, and compiling costs more than looping.
        let limit = if self.mode == Mode::Simt { MOST_UNROLLED } else { 64 };
        trips.saturating_mul(statements) <= limit
    }

    fn unrolled(&mut self, l: &'p For, values: &[i64]) -> Result<(), Diagnosis> {
        let outer = self.width;
        for (n, value) in values.iter().enumerate() {
            if l.mode == LoopMode::Vector {
                self.width = if n == 0 { values.len() as u32 } else { 0 };
            }
            self.bindings.insert(l.var.clone(), Binding::Integer(Form::constant(*value)));
            self.stmts(&l.body)?;
        }
        self.width = outer;
        Ok(())
    }

    fn serial(&mut self, l: &'p For, lo: Form, hi: Form, step: Form) -> Result<(), Diagnosis> {
        let bounds = match (self.bounds(&lo), self.bounds(&hi)) {
            (Some((lo, _)), Some((_, hi))) => Some((lo, (hi - 1).max(lo))),
            _ => None,
        };
        if lo.is_uniform() && hi.is_uniform() && step.is_uniform() {
            let variable = self.new_uniform(bounds);
            self.bindings.insert(l.var.clone(), Binding::Integer(Form::uniform(variable)));
            let counting = l.counting.as_ref().map(|sym| self.ordinal(sym));
            let mut body = if matches!(l.mode, LoopMode::Block { .. }) {
                self.reset_ordinals(&l.body)
            } else {
                Vec::new()
            };
            let arrivals = self.arrivals;
            if let LoopMode::Threads { pitch } = l.mode {
                self.arrivals = pitch;
            }
            let inner = self.block(&l.body);
            self.arrivals = arrivals;
            body.extend(inner?);
            self.emit(Op::Loop { variable, lo, hi, step, counting, body });
            return Ok(());
        }
        if l.counting.is_some() {
            return Err(Diagnosis::new("a loop that counts has bounds that differ between threads")
                .because("ordinals are the same for all threads (rule 8)"));
        }
        if self.context.view == View::Range {
            return Err(Diagnosis::new("the bounds of a loop differ between the threads that execute it"));
        }
        let variable = self.new_dynamic(bounds);
        self.bindings.insert(l.var.clone(), Binding::Integer(Form::dynamic(variable)));
        let site = self.site();
        let body = self.block(&l.body)?;
        self.emit(Op::LaneLoop { variable, lo, hi, step, site, body });
        Ok(())
    }

    /// The variable of an ordinal: one for all executions of the loop in the block.
    fn ordinal(&mut self, sym: &Sym) -> u32 {
        if let Some(Binding::Integer(form)) = self.bindings.get(sym)
            && let [(variable, 1)] = form.uniform[..]
        {
            return variable;
        }
        let variable = self.new_uniform(None);
        self.ordinals.insert(variable);
        self.bindings.insert(sym.clone(), Binding::Integer(Form::uniform(variable)));
        variable
    }

    /// In order, the number of threads that a launch would have is only needed to count arrivals.
    fn enter_block(&mut self, l: &'p For) {
        let most = |stmt: &Stmt| match stmt {
            Stmt::For(l) => l.threads().map_or(1, |(count, pitch)| count.saturating_mul(pitch)),
            Stmt::Roles(roles) => roles.iter().map(|r| r.hi).max().unwrap_or(1),
            _ => 1,
        };
        let mut threads = 1;
        walk::for_each(&l.body, &mut |stmt| threads = threads.max(most(stmt)));
        self.arrivals = threads.saturating_add(31) / 32 * 32;
    }

    /// In order, ordinals start again with every block.
    fn reset_ordinals(&mut self, body: &'p [Stmt]) -> Vec<Op> {
        let mut counted = Vec::new();
        walk::for_each(body, &mut |stmt| {
            if let Stmt::For(For { counting: Some(sym), .. }) = stmt {
                counted.push(sym.clone());
            }
        });
        let zero = |s: &mut Self, sym: &Sym| Op::Uniform(s.ordinal(sym), Integral::Copy(Form::default()));
        counted.iter().map(|sym| zero(self, sym)).collect()
    }

    fn tasks(&mut self, t: &'p Tasks) -> Result<(), Diagnosis> {
        let extents = self.indices(&t.extents)?;
        let (start, stride) = (self.index(&t.start)?, self.index(&t.stride)?);
        if !extents.iter().chain([&start, &stride]).all(|f| f.is_uniform()) {
            return Err(Diagnosis::new("tasks that differ between the threads that execute them"));
        }
        let mut variables = Vec::new();
        for (sym, extent) in t.vars.iter().zip(&extents) {
            let bounds = self.bounds(extent).map(|(_, hi)| (0, (hi - 1).max(0)));
            let variable = self.new_uniform(bounds);
            self.bindings.insert(sym.clone(), Binding::Integer(Form::uniform(variable)));
            variables.push(variable);
        }
        let body = self.block(&t.body)?;
        self.emit(Op::Tasks { variables, extents, start, stride, body });
        Ok(())
    }

    fn choice(&mut self, i: &'p If) -> Result<(), Diagnosis> {
        match self.test(&i.cond)? {
            Test::Constant(true) => self.nested(&i.then),
            Test::Constant(false) => self.nested(&i.otherwise),
            test => {
                if self.context.view == View::Range && !is_uniform(&test) {
                    return Err(Diagnosis::new("a condition differs between the threads that execute it"));
                }
                let site = Some(self.site());
                let then = self.block(&i.then)?;
                let otherwise = self.block(&i.otherwise)?;
                self.emit(Op::If { test, then, otherwise, site });
                Ok(())
            }
        }
    }

    fn nested(&mut self, stmts: &'p [Stmt]) -> Result<(), Diagnosis> {
        let ops = self.block(stmts)?;
        self.ops.extend(ops);
        Ok(())
    }

    fn on(&mut self, on: &'p On) -> Result<(), Diagnosis> {
        if self.mode == Mode::InOrder {
            let arrivals = self.arrivals;
            if let Some(Binding::Role(lo, hi)) = self.bindings.get(&on.role) {
                self.arrivals = hi - lo;
            }
            let result = self.nested(&on.body);
            self.arrivals = arrivals;
            return result;
        }
        let Some(Binding::Role(lo, hi)) = self.bindings.get(&on.role) else {
            return Err(Diagnosis::new(format!("`{}` is no role here", on.role)));
        };
        let (lo, hi) = (*lo, *hi);
        if self.context.size != self.threads as i64 || lo < 0 || lo >= hi || hi > self.threads as i64 {
            return Err(Diagnosis::new("`on` stands outside block scope, or its role has no threads"));
        }
        let inside = |t: i64| (lo..hi).contains(&t);
        let context = Context {
            view: View::Range,
            size: hi - lo,
            offset: (0..self.threads as i64).map(|t| if inside(t) { t - lo } else { 0 }).collect(),
            active: (0..self.threads as i64).map(inside).collect(),
        };
        let outer = std::mem::replace(&mut self.context, context);
        let body = self.block(&on.body);
        self.context = outer;
        self.emit(Op::On { lo, hi, body: body? });
        Ok(())
    }

    /// A loop over ranges of threads.
    fn threads(&mut self, l: &'p For, pitch: i64) -> Result<(), Diagnosis> {
        let Some((count, _)) = l.threads() else {
            return Err(Diagnosis::new("the number of thread ranges is not a constant"));
        };
        if pitch < 1 || count < 0 || count.checked_mul(pitch).is_none_or(|n| n > self.context.size) {
            return Err(Diagnosis::new(format!("threads({count}@{pitch}) does not fit"))
                .because(format!("{} threads execute it", self.context.size)));
        }
        if count == 0 {
            return Ok(());
        }
        let numbers: Vec<i64> = self.context.offset.iter().map(|o| o.div_euclid(pitch)).collect();
        let active: Vec<bool> =
            numbers.iter().zip(&self.context.active).map(|(n, a)| *a && *n < count).collect();
        let offset = self.context.offset.iter().map(|o| o.rem_euclid(pitch)).collect();
        let by_range = pitch > WARP as i64 && self.context.view == View::Range;
        let view = if by_range { View::Range } else { View::Warp };
        let inner = Context { view, size: pitch, offset, active: active.clone() };
        let outer = std::mem::replace(&mut self.context, inner);
        let lanes = self.lane_vector(numbers);
        if by_range {
            let variable = self.new_uniform(Some((0, count - 1)));
            let uniform = Form::uniform(variable);
            self.bindings.insert(l.var.clone(), Binding::Thread { lanes, uniform });
            let body = self.block(&l.body);
            self.context = outer;
            self.emit(Op::Ranges { variable, count, pitch, body: body? });
            return Ok(());
        }
        self.bindings.insert(l.var.clone(), Binding::Integer(lanes));
        let body = self.block(&l.body);
        self.context = outer;
        self.enclose(&active, body?);
        Ok(())
    }

    /// Emits a body that the threads in `active` execute, lane by lane.
    pub(super) fn enclose(&mut self, active: &[bool], body: Vec<Op>) {
        if self.context.view == View::Range {
            let mask = self.mask(active);
            let mut ordinals = Vec::new();
            collect_ordinals(&body, &mut ordinals);
            self.emit(Op::Nest { mask, ordinals, body });
            return;
        }
        match self.mask_test(active) {
            Test::Constant(true) => self.ops.extend(body),
            Test::Constant(false) => {}
            test => self.emit(Op::If { test, then: body, otherwise: Vec::new(), site: None }),
        }
    }

    /// Lowers something that every thread of the range does by itself.
    pub(super) fn in_warps(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<(), Diagnosis>,
    ) -> Result<(), Diagnosis> {
        if self.context.view == View::Warp {
            return f(self);
        }
        let active = self.context.active.clone();
        let outer = std::mem::take(&mut self.ops);
        self.context.view = View::Warp;
        let result = f(self);
        self.context.view = View::Range;
        let body = std::mem::replace(&mut self.ops, outer);
        self.enclose(&active, body);
        result
    }

    fn sync(&mut self, sync: Sync) -> Result<(), Diagnosis> {
        if self.mode == Mode::InOrder {
            return Ok(());
        }
        let size = self.context.size;
        let wgmma = matches!(sync, Sync::WgmmaCommit | Sync::WgmmaWait(_) | Sync::WgmmaFence);
        if wgmma && size != 128 {
            return Err(Diagnosis::new(format!("wgmma synchronisation by {size} threads"))
                .because("it is executed by a warpgroup of 128"));
        }
        if sync == Sync::Barrier && size == 1 {
            return Err(Diagnosis::new("a barrier of one thread"));
        }
        let site = self.site();
        self.emit(Op::Sync { sync, size, site });
        Ok(())
    }
}

/// The ordinals that a body counts.
fn collect_ordinals(ops: &[Op], out: &mut Vec<u32>) {
    for op in ops {
        match op {
            Op::Loop { counting, body, .. } => {
                out.extend(counting);
                collect_ordinals(body, out);
            }
            Op::LaneLoop { body, .. } | Op::Tasks { body, .. } => collect_ordinals(body, out),
            Op::If { then, otherwise, .. } => {
                collect_ordinals(then, out);
                collect_ordinals(otherwise, out);
            }
            _ => {}
        }
    }
}
