//! Unification of a nest with what an instruction means, modulo the order of loops, loops of one iteration, the order
//! of the factors of a product and where the operands start.
//!
//! ```text
//! d[i, j] += f32(a[i, k]) * f32(b[k, j])            the record, for i in 0..16, j in 0..8, k in 0..16
//! acc[w, 16*m + x, 8*n + y] += f32(as[m, x, z]) * f32(bs[z, 8*n + y])      the nest, for x, y, z
//! =>  d = acc[w, 16*m +: 16, 8*n +: 8],  a = as[m, :, :],  b = bs[:, 8*n +: 8]
//! ```

use std::collections::HashMap;

use crate::index::{Comparison, Cond, Index, Interval};
use crate::instr::{Extent, Record, WindowSpec};
use crate::ir::{
    Access, Assign, BinaryOp, Buffer, For, Mode, Operand, Own, ParamKind, Range, Span, Stmt, Value, Window,
    parse,
};
use crate::schedule::facts::Facts;
use crate::sym::Sym;

use super::inline_lets;

/// What an instruction means, as loops around one assignment over its operands.
pub(in crate::schedule) struct Pattern {
    record: &'static Record,
    loops: Vec<(Sym, i64)>,
    assign: Assign,
    /// The symbol of each operand, in the record's order.
    operands: Vec<Sym>,
}

/// A nest as loops of constant extent around one assignment.
pub(in crate::schedule) struct Nest {
    loops: Vec<(Sym, i64)>,
    /// What has to hold for the assignment to be done at all, the same for every iteration.
    pub guard: Cond,
    assign: Assign,
}

impl Pattern {
    /// The pattern of a record whose free extent, if it has one, is `free`. `None` if its meaning is no nest around one
    /// assignment.
    pub fn of(record: &'static Record, free: i64) -> Option<Pattern> {
        let shape = |e: &Extent| match e {
            Extent::Fixed(n) => Some(*n),
            Extent::Multiple(of, most) => (free > 0 && free % of == 0 && free <= *most).then_some(free),
            Extent::Same(_) => None,
        };
        let mut params = Vec::new();
        let mut extent = 0;
        for operand in record.operands {
            params.push(match &operand.window {
                None => format!("{}: size", operand.name),
                Some(window) => {
                    let dims = window.shape.iter().map(shape).collect::<Option<Vec<_>>>()?;
                    extent = *dims.last()?;
                    let dims: Vec<_> = dims.iter().map(i64::to_string).collect();
                    format!("{}: inout {}[{}]", operand.name, window.dtype?, dims.join(", "))
                }
            });
        }
        // `E` is what operands of any extent are called, which the record fixes, and `N` a free extent.
        let text = format!(
            "program meaning({}) {{ const E = {extent}\n const N = {free}\n {} }}",
            params.join(", "),
            record.meaning
        );
        let program = parse::program(&text).ok()?;
        let Nest { loops, assign, .. } = Nest::of(program.body.first()?, &program.buffers()).ok()?;
        let sizes = |p: &crate::ir::Param| matches!(p.kind, ParamKind::Size | ParamKind::Tensor(_));
        let operands = program.params.iter().filter(|p| sizes(p)).map(|p| p.sym.clone()).collect();
        Some(Pattern { record, loops, assign, operands })
    }

    /// The pattern of a record with the free extent that a nest asks for.
    pub fn for_nest(record: &'static Record, nest: &Nest) -> Option<Pattern> {
        let mut extents = nest.loops.iter().map(|(_, e)| *e);
        let fixed = !record.operands.iter().filter_map(|o| o.window.as_ref()).any(has_free_extent);
        if fixed {
            return Pattern::of(record, 0);
        }
        extents.find_map(|free| Pattern::of(record, free).filter(|p| p.check_loops(nest).is_ok()))
    }

    /// Whether a nest has loops of the right lengths; if not, what is different.
    pub fn check_loops(&self, nest: &Nest) -> Result<(), String> {
        let extents = |loops: &[(Sym, i64)]| {
            let mut extents: Vec<i64> = loops.iter().map(|(_, e)| *e).collect();
            extents.sort_unstable();
            extents.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
        };
        let (wanted, present) = (extents(&self.loops), extents(&nest.loops));
        if wanted == present {
            return Ok(());
        }
        let name = self.record.name;
        Err(format!("its loops have {present} iterations, and those of `{name}` have {wanted}"))
    }

    /// The operands with which the instruction does what the nest does.
    ///
    /// # Errors
    /// Why it does not.
    pub fn unify(
        &self,
        nest: &Nest,
        buffers: &HashMap<Sym, Buffer>,
        facts: &Facts,
    ) -> Result<Vec<Operand>, String> {
        self.check_loops(nest)?;
        let nest = nest.simplified(facts);
        let mut why_not = String::new();
        for order in permutations(&nest.loops) {
            if !order.iter().zip(&self.loops).all(|((_, a), (_, b))| a == b) {
                continue;
            }
            let bound = vec![None; self.operands.len()];
            let mut unifier = Unifier { pattern: self, loops: &order, buffers, facts, bound };
            match unifier.assignment(&nest.assign) {
                Ok(()) => return unifier.finish(),
                Err(because) => why_not = because,
            }
        }
        Err(why_not)
    }
}

fn has_free_extent(window: &WindowSpec) -> bool {
    window.shape.iter().any(|e| matches!(e, Extent::Multiple(..)))
}

impl Nest {
    /// The same with indices as short as the ranges of the loops allow: `(4*t + v)/256` is `t/64` where `v` is below 4.
    fn simplified(&self, facts: &Facts) -> Nest {
        let mut ranges = facts.ranges().clone();
        for (var, extent) in &self.loops {
            ranges.set(var, Interval::new(0, extent - 1));
        }
        let access =
            |a: &Access| Access::new(&a.buffer, a.index.iter().map(|i| ranges.simplify(i)).collect());
        let load = |a: &Access| Value::Load(access(a));
        let value = self.assign.value.map_accesses(&load, &|c| ranges.simplify_cond(c));
        let target = access(&self.assign.target);
        Nest {
            loops: self.loops.clone(),
            guard: self.guard.clone(),
            assign: Assign { target, value, ..self.assign.clone() },
        }
    }

    /// Reads a nest.
    ///
    /// # Errors
    /// What is in it besides loops of constant extent, conditions that are the same in all of them, and one assignment.
    pub fn of(root: &Stmt, buffers: &HashMap<Sym, Buffer>) -> Result<Nest, String> {
        let mut loops = Vec::new();
        let mut guard = Cond::TRUE;
        let mut at = root.clone();
        loop {
            let mut body = match at {
                Stmt::For(l) => {
                    loops.push(counted(&l)?);
                    l.body
                }
                Stmt::Own(o) => {
                    loops.extend(owned(&o, buffers)?);
                    o.body
                }
                Stmt::Assign(assign) => {
                    // Loops of one iteration are their only value.
                    let single = |s: &Sym| loops.iter().any(|(v, e)| v == s && *e == 1).then(Index::default);
                    let Some(Stmt::Assign(assign)) =
                        crate::ir::walk::substitute(&[Stmt::Assign(assign)], &single).pop()
                    else {
                        return Err("it is not one assignment".into());
                    };
                    loops.retain(|(_, e)| *e != 1);
                    return Ok(Nest { loops, guard, assign });
                }
                Stmt::If(branch)
                    if branch.otherwise.is_empty() && !loops.iter().any(|(v, _)| branch.cond.mentions(v)) =>
                {
                    guard = guard.and(branch.cond);
                    branch.then
                }
                Stmt::If(_) => {
                    return Err("a condition stands inside it, and an instruction does all or nothing".into());
                }
                _ => return Err("it is not loops around one assignment".into()),
            };
            inline_lets(&mut body);
            let (Some(only), true) = (body.pop(), body.is_empty()) else {
                return Err("it holds more than one statement".into());
            };
            at = only;
        }
    }
}

fn counted(l: &For) -> Result<(Sym, i64), String> {
    let from_0 = matches!(&l.range, Range::Span { lo, step, .. } if lo.as_constant() == Some(0) && step.as_constant() == Some(1));
    match (l.mode, l.range.constant_trip_count()) {
        (Mode::Serial | Mode::Unroll, Some(n)) if from_0 => Ok((l.var.clone(), n)),
        (Mode::Serial | Mode::Unroll, _) => Err(format!("`{}` does not run from 0 to a constant", l.var)),
        _ => Err(format!("`{}` is bound or vectorized", l.var)),
    }
}

fn owned(o: &Own, buffers: &HashMap<Sym, Buffer>) -> Result<Vec<(Sym, i64)>, String> {
    if o.run != 1 {
        return Err(format!("it goes through `{}` in runs", o.window.buffer));
    }
    let extents = buffers.get(&o.window.buffer).map(|b| o.extents(b)).unwrap_or_default();
    let constant = o.vars.iter().zip(&extents).map(|(v, e)| Some((v.clone(), e.as_constant()?)));
    constant.collect::<Option<Vec<_>>>().ok_or_else(|| "the extent of its window is not known".into())
}

fn permutations(loops: &[(Sym, i64)]) -> Vec<Vec<(Sym, i64)>> {
    if loops.is_empty() {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for i in 0..loops.len() {
        let mut rest = loops.to_vec();
        let first = rest.remove(i);
        out.extend(permutations(&rest).into_iter().map(|mut p| {
            p.insert(0, first.clone());
            p
        }));
    }
    out
}

struct Unifier<'a> {
    pattern: &'a Pattern,
    /// The loop of the nest for each loop of the pattern.
    loops: &'a [(Sym, i64)],
    buffers: &'a HashMap<Sym, Buffer>,
    facts: &'a Facts,
    bound: Vec<Option<Operand>>,
}

impl Unifier<'_> {
    fn assignment(&mut self, nest: &Assign) -> Result<(), String> {
        let pattern = &self.pattern.assign;
        if pattern.op != nest.op || nest.atomic {
            return Err(format!("it combines its values with `{}` in another way", nest.target.buffer));
        }
        self.access(&pattern.target, &nest.target)?;
        let mut reads_target = false;
        nest.value.for_each_access(&mut |a| reads_target |= a.buffer == nest.target.buffer);
        if reads_target {
            return Err(format!("it computes `{}` from itself", nest.target.buffer));
        }
        self.value(&pattern.value, &nest.value)
    }

    fn value(&mut self, pattern: &Value, nest: &Value) -> Result<(), String> {
        match (pattern, nest) {
            (Value::Load(p), Value::Load(n)) => self.access(p, n),
            (Value::Const(p), Value::Const(n)) if p == n => Ok(()),
            (Value::Unary(p, a), Value::Unary(n, b)) if p == n => self.value(a, b),
            (Value::Cast(p, a), Value::Cast(n, b)) if p == n => self.value(a, b),
            (Value::Binary(p, a, b), Value::Binary(n, x, y)) if p == n => {
                let before = self.bound.clone();
                let straight = self.value(a, x).and_then(|()| self.value(b, y));
                if straight.is_ok() || !matches!(p, BinaryOp::Mul | BinaryOp::Add) {
                    return straight;
                }
                self.bound = before;
                self.value(a, y).and_then(|()| self.value(b, x)).or(straight)
            }
            (Value::Select(Cond::Compare(Comparison::Lt, e, valid), this, that), _) => {
                self.first_elements(e, valid, this, that, nest)
            }
            _ => Err("it computes another value".into()),
        }
    }

    /// `e < valid ? this : that` where `valid` is an operand: the number of elements for which the condition of the
    /// nest holds, which must be the first ones.
    fn first_elements(
        &mut self,
        e: &Index,
        valid: &Index,
        this: &Value,
        that: &Value,
        nest: &Value,
    ) -> Result<(), String> {
        let position = e.as_var().and_then(|e| self.pattern.loops.iter().position(|(v, _)| v == e));
        let single = e.as_constant() == Some(0);
        let operand = valid.as_var().and_then(|v| self.operand(v));
        let (true, Some(operand)) = (single || position.is_some(), operand) else {
            return Err("its record has a condition that cannot be solved".into());
        };
        let mut inside = self.facts.clone();
        self.loops.iter().for_each(|(v, n)| inside.enter_range(v, &Index::constant(*n)));
        let (cond, load) = match nest {
            Value::Select(cond, load, fill) => {
                self.value(that, fill)?;
                (inside.remaining(cond), &**load)
            }
            other => (Cond::TRUE, other),
        };
        self.value(this, load)?;
        let count = match position.map(|p| &self.loops[p]) {
            Some((var, extent)) => first_where(&cond, var, *extent, self.facts)?,
            // One element: there is no loop to step through.
            None => self.facts.ranges().simplify(&Index::select(cond, Index::constant(1), Index::default())),
        };
        self.bind(operand, Operand::Scalar(count))
    }

    fn operand(&self, sym: &Sym) -> Option<usize> {
        self.pattern.operands.iter().position(|o| o == sym)
    }

    fn bind(&mut self, operand: usize, value: Operand) -> Result<(), String> {
        match &self.bound[operand] {
            Some(other) if *other != value => Err("two of its operands would have to be the same".into()),
            _ => {
                self.bound[operand] = Some(value);
                Ok(())
            }
        }
    }

    /// Binds an operand to the window of a buffer that an access moves through.
    fn access(&mut self, pattern: &Access, nest: &Access) -> Result<(), String> {
        let operand = self.operand(&pattern.buffer).ok_or("its record touches what is no operand")?;
        let buffer =
            self.buffers.get(&nest.buffer).ok_or_else(|| format!("`{}` is not known", nest.buffer))?;
        let mut axes = Vec::new();
        let mut dims = Vec::new();
        for (index, dim) in nest.index.iter().zip(&buffer.dims) {
            let moving: Vec<usize> =
                (0..self.loops.len()).filter(|l| index.mentions(&self.loops[*l].0)).collect();
            let [position] = moving[..] else {
                if !moving.is_empty() {
                    return Err(format!("an index of `{}` mixes two of its loops", nest.buffer));
                }
                dims.push(Span::At(index.clone()));
                continue;
            };
            let (var, extent) = &self.loops[position];
            let start = index - &Index::var(var);
            if start.mentions(var) {
                return Err(format!("it does not step through `{}` one by one", nest.buffer));
            }
            axes.push(self.pattern.loops[position].0.clone());
            let whole = start == Index::default() && dim.extent.as_constant() == Some(*extent);
            dims.push(if whole { Span::All } else { Span::Slice(start, *extent) });
        }
        // Where the operand is one element wide, the nest has no loop: its last axes are meant.
        let first = dims.len().saturating_sub(pattern.index.len());
        for (dim, _) in dims[first..].iter_mut().zip(&pattern.index).filter(|(_, i)| i.as_var().is_none()) {
            if let Span::At(start) = dim {
                *dim = Span::Slice(start.clone(), 1);
            }
        }
        let wanted: Vec<Option<&Sym>> =
            pattern.index.iter().map(Index::as_var).filter(Option::is_some).collect();
        if wanted != axes.iter().map(Some).collect::<Vec<_>>() {
            return Err(format!(
                "it goes through `{}` in other directions than `{}` through `{}`",
                nest.buffer, self.pattern.record.name, pattern.buffer
            ));
        }
        self.bind(operand, Operand::Window(Window { buffer: nest.buffer.clone(), dims }))
    }

    fn finish(self) -> Result<Vec<Operand>, String> {
        let operands = self.bound.into_iter().collect::<Option<Vec<_>>>();
        operands.ok_or_else(|| "an operand does not occur in it".into())
    }
}

/// The number of values of `var` in `0..extent` for which a condition holds, which must be the first ones.
fn first_where(cond: &Cond, var: &Sym, extent: i64, facts: &Facts) -> Result<Index, String> {
    let mut outside = Cond::TRUE;
    let mut count: Option<Index> = None;
    for c in cond.conjuncts() {
        if !c.mentions(var) {
            outside = outside.and(c.clone());
            continue;
        }
        let limit = match c {
            Cond::Compare(Comparison::Lt, a, b) => &(b - a) + &Index::var(var),
            Cond::Compare(Comparison::Le, a, b) => (&(b - a) + &Index::var(var)).offset(1),
            _ => return Err("its condition is not that of the first elements".into()),
        };
        if limit.mentions(var) {
            return Err("its condition is not that of the first elements".into());
        }
        count = Some(count.map_or(limit.clone(), |c| c.minimum(&limit)));
    }
    let all = Index::constant(extent);
    let count = match count {
        None => all,
        // All of them or none.
        Some(limit) if facts.is_multiple(&limit, extent) => {
            outside = outside.and(Cond::lt(0.into(), limit));
            all
        }
        Some(limit) => Index::default().maximum(&all.minimum(&limit)),
    };
    Ok(facts.ranges().simplify(&Index::select(outside, count, Index::default())))
}
