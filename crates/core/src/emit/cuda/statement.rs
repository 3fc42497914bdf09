//! Statements, one after another, in the order of the program: for one role, if there are roles.

use super::body::Body;
use super::spelling::{atomic, barrier, complex, mbarrier, wgmma};
use super::threads::Executing;
use super::value::complex_functions;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Cond, Index, Interval};
use crate::instr::{self, Behaviour};
use crate::ir::{
    Access, Assign, AssignOp, BinaryOp, Buffer, If, Mode, Operand, Range, Reduction, Space, Span, Stmt, Sync,
    Value, walk,
};
use crate::sym::Sym;

impl Body<'_> {
    /// Writes a list of statements. A name that a `let` or `alloc` declares is in scope to the end of the list, and
    /// is declared only if the rest of the list mentions it.
    pub(super) fn statements(&mut self, stmts: &[Stmt], executing: &Executing) -> Result<(), Diagnosis> {
        let alone = stmts.iter().filter(|s| self.is_live(s)).count() == 1;
        for (i, stmt) in stmts.iter().enumerate() {
            if !self.is_live(stmt) {
                continue;
            }
            match stmt {
                Stmt::Let(var, value) => return self.binding(var, value, &stmts[i + 1..], executing),
                Stmt::Alloc(buffer) => return self.registers(buffer, &stmts[i + 1..], executing),
                _ => self.statement(stmt, executing, alone)?,
            }
        }
        Ok(())
    }

    /// Whether a statement says anything to the threads in hand.
    fn is_live(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Roles(_) | Stmt::AllocRing(_) => false,
            Stmt::Alloc(buffer) => {
                buffer.space == Space::Reg && buffer.role.as_ref().is_none_or(|r| self.is_role(r))
            }
            Stmt::On(on) => self.is_role(&on.role),
            Stmt::For(_) | Stmt::Tasks(_) | Stmt::Own(_) | Stmt::If(_) if self.role.is_some() => {
                walk::bodies(stmt).flatten().any(|s| self.is_live(s))
            }
            _ => true,
        }
    }

    fn binding(
        &mut self,
        var: &Sym,
        value: &Index,
        rest: &[Stmt],
        executing: &Executing,
    ) -> Result<(), Diagnosis> {
        let bounds = self.ranges.of(&self.ranges.simplify(value));
        self.ranges.set(var, bounds);
        self.names.declare(var);
        self.used.remove(var);
        self.bound.insert(var.clone());
        let c_type = self.index_type(value);
        if c_type != "int" {
            self.long_variables.insert(var.clone());
        }
        let rest = self.captured(0, |s| s.statements(rest, executing))?;
        if self.used.contains(var) {
            let value = self.index(value).text;
            let name = self.names.of(var).to_string();
            self.line(format!("const {c_type} {name} = {value};"));
        }
        self.lines.append(rest);
        Ok(())
    }

    /// A register buffer and the statements after it. If they begin by filling it, the declaration does that.
    fn registers(&mut self, buffer: &Buffer, rest: &[Stmt], executing: &Executing) -> Result<(), Diagnosis> {
        self.names.declare(&buffer.sym);
        self.used.remove(&buffer.sym);
        let declaration = self.register_declaration(buffer)?;
        if let Some(others) = without_zero_fill(buffer, rest) {
            let rest = self.captured(0, |s| s.statements(&others, executing))?;
            if self.used.contains(&buffer.sym) {
                self.line(format!("{declaration} = {{}};"));
            }
            self.lines.append(rest);
            return Ok(());
        }
        let joined = Self::is_scalar(buffer) && self.is_stored_first(rest, &buffer.sym, executing);
        if joined {
            self.to_declare.insert(buffer.sym.clone());
        }
        let rest = self.captured(0, |s| s.statements(rest, executing))?;
        if !joined && self.used.contains(&buffer.sym) {
            let align = if self.moved_wide.contains(&buffer.sym) { "__align__(16) " } else { "" };
            self.line(format!("{align}{declaration};"));
        }
        self.lines.append(rest);
        Ok(())
    }

    /// Whether the first statement of a list that mentions the scalar register `sym` stores to it, and stands, once
    /// written, in the block of the list.
    fn is_stored_first(&self, stmts: &[Stmt], sym: &Sym, executing: &Executing) -> bool {
        let Some(first) = stmts.iter().filter(|s| self.is_live(s)).find(|s| mentions(s, sym)) else {
            return false;
        };
        match first {
            Stmt::Assign(a) => {
                let mut reads = false;
                a.value.for_each_access(&mut |access| reads |= access.buffer == *sym);
                a.target.buffer == *sym && a.op == AssignOp::Store && !reads
            }
            Stmt::Instruction(i) => {
                let gives = instr::by_name(&i.name)
                    .is_some_and(|r| matches!(r.behaviour, Behaviour::Shuffle(_) | Behaviour::ChainedSum));
                gives && matches!(i.operands.first(), Some(Operand::Window(w)) if w.buffer == *sym)
            }
            Stmt::For(l) if l.threads().is_some() => match self.is_transparent(l, executing) {
                Some(inside) => self.is_stored_first(&l.body, sym, &inside),
                None => false,
            },
            _ => false,
        }
    }

    fn statement(&mut self, stmt: &Stmt, executing: &Executing, alone: bool) -> Result<(), Diagnosis> {
        match stmt {
            Stmt::For(l) if matches!(l.mode, Mode::Threads { .. }) => self.thread_loop(l, executing, alone),
            Stmt::For(l) => self.for_loop(l, executing),
            Stmt::Tasks(t) => self.tasks(t, executing),
            Stmt::Own(o) => self.own(o, executing),
            Stmt::If(i) => self.choice(i, executing),
            Stmt::On(on) => {
                let everyone = self.everyone();
                self.statements(&on.body, &everyone)
            }
            Stmt::Assign(a) => self.assign(a),
            Stmt::Instruction(i) => self.instruction(i, executing),
            Stmt::Sync(s) => {
                self.sync(*s, executing);
                Ok(())
            }
            Stmt::Arrive { ring, ordinal, bytes } => self.arrive(ring, ordinal, bytes.as_ref()),
            Stmt::Await { ring, ordinal } => self.wait(ring, ordinal),
            Stmt::Let(..) | Stmt::Alloc(_) | Stmt::AllocRing(_) | Stmt::Roles(_) => Ok(()),
        }
    }

    fn choice(&mut self, i: &If, executing: &Executing) -> Result<(), Diagnosis> {
        let cond = self.ranges.simplify_cond(&i.cond);
        match cond.as_constant() {
            Some(true) => return self.statements(&i.then, executing),
            Some(false) => return self.statements(&i.otherwise, executing),
            None => {}
        }
        // What stands in for an unrolled loop, where something is left over, is not to be unrolled by the compiler.
        if let ([Stmt::For(usual)], [Stmt::For(rest)]) = (&i.then[..], &i.otherwise[..])
            && (usual.mode, rest.mode) == (Mode::Unroll, Mode::Serial)
        {
            self.rolled.insert(rest.var.clone());
        }
        let then = self.branch(&cond, &i.then, executing)?;
        let otherwise = self.branch(&cond.clone().negate(), &i.otherwise, executing)?;
        match (then.is_empty(), otherwise.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let head = format!("if ({})", self.cond(&cond.negate()).text);
                self.lines.block(&head, otherwise);
            }
            (false, no_else) => {
                let asked = self.asked_of_the_last(&cond);
                let head = format!("if ({})", self.cond(&asked).text);
                if no_else {
                    self.lines.guarded(&head, then);
                } else {
                    self.lines.block(&head, then);
                    self.lines.otherwise(otherwise);
                }
            }
        }
        Ok(())
    }

    /// A condition that in an unrolled loop can fail in its last iteration only, so written that it is asked only there. The
    /// compiler does not know how many threads there are: for each of the other iterations, too, it would compare, and find
    /// the address of shared memory anew (NVRTC 13.0: ten instructions instead of two for each piece that is copied).
    fn asked_of_the_last(&self, cond: &Cond) -> Cond {
        for var in self.unrolled_loops.iter().rev() {
            let Interval { lo: Some(first), hi: Some(last) } = self.ranges.get(var) else { continue };
            if last <= first {
                continue;
            }
            let mut ranges = self.ranges.clone();
            ranges.set(var, Interval::new(first, last - 1));
            if ranges.decide(cond) == Some(true) {
                ranges.set(var, Interval::new(last, last));
                return Cond::lt(Index::var(var), last.into()).or(ranges.simplify_cond(cond));
            }
        }
        cond.clone()
    }

    /// Statements that run only where `cond` holds.
    fn branch(
        &mut self,
        cond: &Cond,
        stmts: &[Stmt],
        executing: &Executing,
    ) -> Result<super::text::Lines, Diagnosis> {
        let mut ranges = self.ranges.clone();
        super::refine(&mut ranges, cond);
        let outer = std::mem::replace(&mut self.ranges, ranges);
        let lines = self.nested(|s| s.statements(stmts, executing));
        self.ranges = outer;
        lines
    }

    fn assign(&mut self, a: &Assign) -> Result<(), Diagnosis> {
        let unit = self.unit;
        let dtype = unit.buffer(&a.target.buffer)?.dtype;
        self.written.insert(a.target.buffer.clone());
        match a.op {
            AssignOp::Reduce(how) if a.atomic => self.atomic(a, how, dtype),
            AssignOp::Store => {
                self.replaced_loads = self.loaded_in_parts(a)?;
                let split = unit.buffer(&a.target.buffer)?.split;
                let value = if split { self.parts(&a.value, dtype) } else { self.value(&a.value, dtype) };
                self.replaced_loads.clear();
                let value = value?;
                let store = self.store(&a.target, value)?;
                let declares = self.to_declare.remove(&a.target.buffer);
                let c_type = self.c_type(dtype);
                self.line(if declares { format!("{c_type} {store}") } else { store });
                Ok(())
            }
            AssignOp::Reduce(how) => {
                let line = self.reduce(&a.target, how, &a.value, dtype)?;
                self.line(line);
                Ok(())
            }
        }
    }

    /// The loads of complex numbers from shared memory into fragments of which a lane has several, and how they are
    /// written. A matrix instruction wants the real parts in registers side by side, and the imaginary parts likewise; a
    /// number that was loaded whole is moved there, which takes four instructions for each matrix instruction
    /// (NVRTC 13.0). The compiler joins the two loads again unless they are volatile.
    fn loaded_in_parts(&mut self, a: &Assign) -> Result<Vec<(Access, String)>, Diagnosis> {
        let unit = self.unit;
        let target = unit.buffer(&a.target.buffer)?;
        let Some(fragment) = target.fragment.filter(|_| target.dtype == DType::C128) else {
            return Ok(Vec::new());
        };
        let [.., rows, columns] = &target.dims[..] else { return Ok(Vec::new()) };
        let registers = match (rows.extent.as_constant(), columns.extent.as_constant()) {
            (Some(rows), Some(columns)) => fragment.registers(rows, columns),
            _ => None,
        };
        let mut loads = Vec::new();
        a.value.for_each_access(&mut |access| loads.push(access.clone()));
        let mut in_parts = Vec::new();
        for access in loads {
            if registers > Some(1) && unit.buffer(&access.buffer)?.space == Space::Shared {
                self.prelude.require(&complex::LOAD_PARTS);
                let element = self.element(&access)?;
                in_parts.push((access, format!("load_parts(&{element})")));
            }
        }
        Ok(in_parts)
    }

    fn reduce(
        &mut self,
        target: &Access,
        how: Reduction,
        value: &Value,
        dtype: DType,
    ) -> Result<String, Diagnosis> {
        let own = self.load(target)?;
        if complex_functions(dtype).is_some() {
            if let Value::Binary(BinaryOp::Mul, x, y) = value {
                let sum = self.complex_fma(x, y, own, dtype)?;
                return self.store(target, sum);
            }
        } else if how == Reduction::Sum && !dtype.is_half() {
            let value = self.value(value, dtype)?;
            return Ok(format!("{} += {};", own.text, value.text));
        }
        let value = self.value(value, dtype)?;
        let combined = if dtype.is_half() {
            let (a, b) = (self.convert(own, dtype, DType::F32), self.convert(value, dtype, DType::F32));
            let combined = self.operation(how.operator(), a, b, DType::F32);
            self.convert(combined, DType::F32, dtype)
        } else {
            self.operation(how.operator(), own, value, dtype)
        };
        self.store(target, combined)
    }

    fn atomic(&mut self, a: &Assign, how: Reduction, dtype: DType) -> Result<(), Diagnosis> {
        use DType::{Bf16, C64, C128, F16, F32, F64, I32};
        use Reduction::{Max, Min, Sum};
        let value = self.value(&a.value, dtype)?.text;
        let address = self.address(&a.target)?;
        let (function, helper) = match (how, dtype) {
            (Sum, F32 | F64 | I32) => ("atomicAdd", None),
            (Max, I32) => ("atomicMax", None),
            (Min, I32) => ("atomicMin", None),
            (Sum, C64) => ("atomic_add", Some(&atomic::ADD_C64)),
            (Sum, C128) => ("atomic_add", Some(&atomic::ADD_C128)),
            (Sum, F16) => ("atomic_add_f16", Some(&atomic::ADD_F16)),
            (Sum, Bf16) => {
                self.require_float_to_bf16();
                ("atomic_add_bf16", Some(&atomic::ADD_BF16))
            }
            (Max, F32) => ("atomic_max", Some(&atomic::MAX_F32)),
            (Min, F32) => ("atomic_min", Some(&atomic::MIN_F32)),
            (Max, F64) => ("atomic_max", Some(&atomic::MAX_F64)),
            (Min, F64) => ("atomic_min", Some(&atomic::MIN_F64)),
            (Max | Min, F16 | Bf16 | C64 | C128) => {
                return Err(Diagnosis::new(format!("no atomic maximum or minimum of {dtype}"))
                    .instead("reduce in f32, or in two passes"));
            }
        };
        if let Some(helper) = helper {
            self.prelude.require(helper);
        }
        self.line(format!("{function}({address}, {value});"));
        Ok(())
    }

    fn sync(&mut self, sync: Sync, executing: &Executing) {
        let (helper, call) = match sync {
            Sync::Barrier => return self.barrier(executing),
            Sync::CpCommit => (&barrier::CP_ASYNC_COMMIT, "cp_async_commit();".to_string()),
            Sync::CpWait(n) => (&barrier::CP_ASYNC_WAIT, format!("cp_async_wait<{n}>();")),
            Sync::WgmmaFence => (&wgmma::FENCE, "wgmma_fence();".to_string()),
            Sync::WgmmaCommit => (&wgmma::COMMIT, "wgmma_commit();".to_string()),
            Sync::WgmmaWait(n) => (&wgmma::WAIT, format!("wgmma_wait<{n}>();")),
            Sync::BulkCommit => (&barrier::BULK_COMMIT, "bulk_commit();".to_string()),
            Sync::BulkWait(n) => (&barrier::BULK_WAIT, format!("bulk_wait<{n}>();")),
            Sync::BulkWaitRead(n) => (&barrier::BULK_WAIT_READ, format!("bulk_wait_read<{n}>();")),
            Sync::FenceAsync => (&barrier::FENCE_PROXY_ASYNC, "fence_proxy_async();".to_string()),
        };
        self.prelude.require(helper);
        self.line(call);
    }

    /// The barrier that an ordinal of a ring names: `&full[n%4]`.
    pub(super) fn ring_slot(&mut self, ring: &Sym, ordinal: &Index) -> Result<(String, i64), Diagnosis> {
        let unit = self.unit;
        let Some(depth) = unit.rings.get(ring).map(|r| r.depth) else {
            return Err(Diagnosis::new(format!("`{ring}` is no ring of barriers")));
        };
        let slot = self.index(&ordinal.rem(depth)).text;
        Ok((format!("&{}[{slot}]", self.names.of(ring)), depth))
    }

    fn arrive(&mut self, ring: &Sym, ordinal: &Index, bytes: Option<&Index>) -> Result<(), Diagnosis> {
        let (slot, _) = self.ring_slot(ring, ordinal)?;
        match bytes {
            Some(bytes) => {
                self.prelude.require(&mbarrier::ARRIVE_EXPECT);
                let bytes = self.index(bytes).text;
                self.line(format!("mbarrier_arrive_expect({slot}, {bytes});"));
            }
            None => {
                self.prelude.require(&mbarrier::ARRIVE);
                self.line(format!("mbarrier_arrive({slot});"));
            }
        }
        Ok(())
    }

    fn wait(&mut self, ring: &Sym, ordinal: &Index) -> Result<(), Diagnosis> {
        let (slot, depth) = self.ring_slot(ring, ordinal)?;
        self.prelude.require(&mbarrier::WAIT);
        let parity = self.index(&ordinal.div(depth).rem(2)).text;
        self.line(format!("mbarrier_wait({slot}, {parity});"));
        Ok(())
    }
}

/// Whether a statement touches a buffer.
fn mentions(stmt: &Stmt, sym: &Sym) -> bool {
    let mut found = false;
    walk::for_each(std::slice::from_ref(stmt), &mut |s| match s {
        Stmt::Assign(a) => {
            found |= a.target.buffer == *sym;
            a.value.for_each_access(&mut |access| found |= access.buffer == *sym);
        }
        Stmt::Instruction(i) => {
            found |= i.operands.iter().any(|o| matches!(o, Operand::Window(w) if w.buffer == *sym));
        }
        Stmt::Own(o) => found |= o.window.buffer == *sym,
        _ => {}
    });
    found
}

/// The statements less the nest at their start that sets every element of `buffer` to zero, if there is one.
fn without_zero_fill(buffer: &Buffer, stmts: &[Stmt]) -> Option<Vec<Stmt>> {
    // Allocations declare only, so they may stand between.
    let at = stmts.iter().position(|s| !matches!(s, Stmt::Alloc(_)))?;
    let rest = without_fill_in(buffer, &stmts[at], &mut Vec::new())?;
    let mut others = stmts[..at].to_vec();
    others.extend(rest);
    others.extend_from_slice(&stmts[at + 1..]);
    Some(others)
}

/// What remains of `stmt` when the zero fill it begins with is taken out; `loops` are the loops around it.
fn without_fill_in(
    buffer: &Buffer,
    stmt: &Stmt,
    loops: &mut Vec<(Sym, Option<i64>)>,
) -> Option<Option<Stmt>> {
    match stmt {
        Stmt::For(l) => {
            let whole = l.range.constant_trip_count()?;
            if l.range != Range::upto(whole) {
                return None;
            }
            let of_threads = l.threads().is_some();
            loops.push((l.var.clone(), (!of_threads).then_some(whole)));
            let first = l.body.first()?;
            // A loop of a thread must be used up; a nest of threads may do more.
            if !of_threads && l.body.len() > 1 {
                return None;
            }
            let rest = without_fill_in(buffer, first, loops)?;
            let mut body: Vec<Stmt> = rest.into_iter().collect();
            body.extend_from_slice(&l.body[1..]);
            if body.is_empty() {
                return Some(None);
            }
            if !of_threads {
                return None;
            }
            let mut l = l.clone();
            l.body = body.into();
            Some(Some(Stmt::For(l)))
        }
        Stmt::Own(own) => {
            let [first] = &own.body[..] else { return None };
            if own.run != 1 || own.window.dims.iter().any(|d| matches!(d, Span::Slice(..))) {
                return None;
            }
            loops.extend(own.vars.iter().map(|v| (v.clone(), None)));
            without_fill_in(buffer, first, loops)
        }
        Stmt::Assign(a) if a.target.buffer == buffer.sym && a.op == AssignOp::Store => {
            let zero = matches!(a.value, Value::Const(c) if c == 0.0 && c.is_sign_positive());
            let covers = a.target.index.iter().zip(&buffer.dims).all(|(i, dim)| {
                let extent = dim.extent.as_constant();
                match i.as_var().and_then(|v| loops.iter().find(|(l, _)| l == v)) {
                    Some((_, Some(trips))) => extent == Some(*trips),
                    Some((_, None)) => true,
                    None => extent == Some(1) && dim.pitch.is_none(),
                }
            });
            let mut vars: Vec<_> = a.target.index.iter().filter_map(Index::as_var).collect();
            vars.sort_unstable();
            vars.dedup();
            let distinct = vars.len() == a.target.index.iter().filter(|i| i.as_var().is_some()).count();
            (zero && covers && distinct && !Body::is_scalar(buffer)).then_some(None)
        }
        _ => None,
    }
}
