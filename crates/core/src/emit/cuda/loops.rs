//! Loops of one thread: counted, listed, in parts, over tasks, and over the elements a thread owns.

use super::body::{Body, Owned};
use super::text::Strength;
use super::threads::Executing;
use crate::diag::Diagnosis;
use crate::index::{Index, Interval};
use crate::ir::{For, Mode, Own, Range, Span, Stmt, Tasks};
use crate::sym::Sym;

impl Body<'_> {
    pub(super) fn for_loop(&mut self, l: &For, executing: &Executing) -> Result<(), Diagnosis> {
        self.with_sums_apart(l, |s, l| s.loop_of_one_thread(l, executing))
    }

    fn loop_of_one_thread(&mut self, l: &For, executing: &Executing) -> Result<(), Diagnosis> {
        let unrolled = match l.mode {
            Mode::Serial => false,
            Mode::Unroll => true,
            Mode::Vector => return self.vector(l, executing),
            Mode::Interleave | Mode::Block { .. } | Mode::Threads { .. } => {
                return Err(Diagnosis::new(format!(
                    "the loop `{}` stands where none of its mode may",
                    l.var
                ))
                .instead("remove interleaved loops by unrolling; keep block loops outermost"));
            }
        };
        match &l.range {
            Range::Span { lo, hi, step } => self.span(l, lo, hi, step, unrolled, executing),
            Range::List(values) => self.list(l, values, executing),
            Range::Part { index, parts, lo, hi } => self.part(l, [index, parts, lo, hi], unrolled, executing),
        }
    }

    fn span(
        &mut self,
        l: &For,
        lo: &Index,
        hi: &Index,
        step: &Index,
        unrolled: bool,
        executing: &Executing,
    ) -> Result<(), Diagnosis> {
        let (lo, hi) = (self.ranges.simplify(lo), self.ranges.simplify(hi));
        let trips = Range::Span { lo: lo.clone(), hi: hi.clone(), step: step.clone() }.constant_trip_count();
        if let (Some(0), None) = (trips, &l.counting) {
            return Ok(());
        }
        if let (Some(1), Some(only), None) = (trips, lo.as_constant(), &l.counting) {
            return self.with_range(&l.var, Interval::new(only, only), |s| s.statements(&l.body, executing));
        }
        let last = match (trips, lo.as_constant(), step.as_constant()) {
            (Some(n), Some(lo), Some(step)) => Some(lo + (n - 1) * step),
            _ => self.ranges.of(&hi.offset(-1)).hi,
        };
        let interval = Interval { lo: self.ranges.of(&lo).lo, hi: last };
        let beyond = last.zip(self.ranges.of(step).hi).and_then(|(last, step)| last.checked_add(step));
        let c_type = Self::interval_type(Interval { lo: interval.lo, hi: beyond });
        let (first, end) = (self.index(&lo).text, self.index(&hi).at_least(Strength::Shift));
        let advance = |s: &mut Self, name: &str| match step.as_constant() {
            Some(1) => format!("++{name}"),
            _ => format!("{name} += {}", s.index(step).text),
        };
        self.counted(l, c_type, interval, unrolled, executing, |s, name| {
            let advance = advance(s, name);
            format!("for ({c_type} {name} = {first}; {name} < {end}; {advance}")
        })
    }

    /// Writes a loop whose head, less the last bracket, is made from the name of its variable.
    fn counted(
        &mut self,
        l: &For,
        c_type: &str,
        interval: Interval,
        unrolled: bool,
        executing: &Executing,
        head: impl FnOnce(&mut Self, &str) -> String,
    ) -> Result<(), Diagnosis> {
        let mut opening = String::new();
        let corners = if unrolled { self.declare_corners(l)? } else { self.corners.len() };
        let travel = self.begin_travel(l, executing)?;
        let around = if unrolled { &mut self.unrolled_loops } else { &mut self.serial_loops };
        around.push(l.var.clone());
        if c_type != "int" {
            self.long_variables.insert(l.var.clone());
        }
        let body = self.nested(|s| {
            let name = s.names.declare(&l.var);
            opening = head(s, &name);
            s.with_range(&l.var, interval, |s| s.statements(&l.body, executing))?;
            s.advance(&travel)
        })?;
        self.end_travel(&travel)?;
        let around = if unrolled { &mut self.unrolled_loops } else { &mut self.serial_loops };
        around.pop();
        self.forget_corners(corners);
        if let Some(ordinal) = &l.counting {
            opening.push_str(&format!(", ++{}", self.variable(ordinal).text));
        } else if body.is_empty() {
            return Ok(());
        }
        match (unrolled, self.rolled.contains(&l.var)) {
            (true, _) => self.line("#pragma unroll"),
            (_, true) => self.line("#pragma unroll 1"),
            _ => {}
        }
        self.lines.block(&format!("{opening})"), body);
        Ok(())
    }

    /// A loop over listed values: a loop that halves or doubles if they do, else one copy of the body for each.
    fn list(&mut self, l: &For, values: &[i64], executing: &Executing) -> Result<(), Diagnosis> {
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return Ok(()) };
        let halves = values.windows(2).all(|w| w[0] == 2 * w[1]) && last == 1;
        let doubles = values.windows(2).all(|w| 2 * w[0] == w[1]) && first > 0;
        if values.len() > 2 && (halves || doubles) && l.counting.is_none() {
            let interval = Interval::new(first.min(last), first.max(last));
            return self.counted(l, "int", interval, true, executing, |_, name| {
                if halves {
                    format!("for (int {name} = {first}; {name} > 0; {name} /= 2")
                } else {
                    format!("for (int {name} = {first}; {name} <= {last}; {name} *= 2")
                }
            });
        }
        for &value in values {
            let interval = Interval::new(value, value);
            let body =
                self.nested(|s| s.with_range(&l.var, interval, |s| s.statements(&l.body, executing)))?;
            self.lines.block("", body);
            if let Some(ordinal) = &l.counting {
                let ordinal = self.variable(ordinal).text;
                self.line(format!("++{ordinal};"));
            }
        }
        Ok(())
    }

    /// The `index`-th of `parts` balanced parts of `lo..hi`: from `lo + index*(hi - lo)/parts`.
    fn part(
        &mut self,
        l: &For,
        [index, parts, lo, hi]: [&Index; 4],
        unrolled: bool,
        executing: &Executing,
    ) -> Result<(), Diagnosis> {
        let first = self.part_start(index, parts, lo, hi);
        let end = self.part_start(&index.offset(1), parts, lo, hi);
        let interval = Interval { lo: self.ranges.of(lo).lo, hi: self.ranges.of(&hi.offset(-1)).hi };
        let c_type = Self::interval_type(interval);
        self.counted(l, c_type, interval, unrolled, executing, |_, name| {
            format!("for ({c_type} {name} = {first}; {name} < {end}; ++{name}")
        })
    }

    fn part_start(&mut self, index: &Index, parts: &Index, lo: &Index, hi: &Index) -> String {
        let length = hi - lo;
        let most = |s: &Self, x: &Index| s.ranges.of(x).hi;
        let product = most(self, index).zip(most(self, &length)).and_then(|(i, n)| i.checked_mul(n));
        let fits = product.is_some_and(|p| p <= i64::from(i32::MAX));
        let index = if fits { self.index(index) } else { self.long_index(index) };
        let length = self.index(&length).at_least(Strength::Unary);
        let parts = self.index(parts).at_least(Strength::Unary);
        let mut start = format!("{}*{length}/{parts}", index.at_least(Strength::Product));
        if !fits {
            start = format!("(int)({start})");
        }
        match self.index(lo) {
            lo if lo.text == "0" => start,
            lo => format!("{} + {start}", lo.at_least(Strength::Sum)),
        }
    }

    /// Every `stride`-th point of a box, in C order.
    pub(super) fn tasks(&mut self, t: &Tasks, executing: &Executing) -> Result<(), Diagnosis> {
        let extents: Vec<String> =
            t.extents.iter().map(|e| self.index(e).at_least(Strength::Unary)).collect();
        self.int_products.push(t.extents.clone());
        let start = self.index(&t.start).text;
        let stride = self.index(&t.stride).text;
        let mut task = String::new();
        let body = self.nested(|s| {
            task = s.names.reserve("task");
            for (var, extent) in t.vars.iter().zip(&t.extents) {
                s.names.declare(var);
                s.ranges.set(var, Interval { lo: Some(0), hi: s.ranges.of(&extent.offset(-1)).hi });
            }
            let body = s.captured(0, |s| s.statements(&t.body, executing))?;
            for (d, var) in t.vars.iter().enumerate().filter(|(_, v)| s.used.contains(*v)).collect::<Vec<_>>()
            {
                let inner = &extents[d + 1..];
                let mut point = task.clone();
                if inner.len() > 1 {
                    point = format!("{point}/({})", inner.join("*"));
                } else if let [extent] = inner {
                    point = format!("{point}/{extent}");
                }
                if d > 0 {
                    point = format!("{point}%{}", extents[d]);
                }
                let name = s.names.of(var).to_string();
                s.line(format!("const int {name} = {point};"));
            }
            s.lines.append(body);
            Ok(())
        })?;
        let head = format!("for (int {task} = {start}; {task} < {}; {task} += {stride})", extents.join("*"));
        self.lines.block(&head, body);
        Ok(())
    }

    /// The elements of a register window that this thread owns.
    pub(super) fn own(&mut self, own: &Own, executing: &Executing) -> Result<(), Diagnosis> {
        let unit = self.unit;
        let buffer = unit.buffer(&own.window.buffer)?;
        let spans: Vec<usize> =
            (0..own.window.dims.len()).filter(|&d| !matches!(own.window.dims[d], Span::At(_))).collect();
        let Some(fragment) = buffer.fragment else {
            return self.own_dimensions(own, &spans, executing);
        };
        let [.., row, column] = &own.vars[..] else {
            return Err(Diagnosis::new("an `own` loop over a fragment needs its rows and its columns"));
        };
        let tile = [&buffer.dims[buffer.dims.len() - 2], &buffer.dims[buffer.dims.len() - 1]]
            .map(|d| d.extent.as_constant());
        let ([Some(rows), Some(columns)], 2) = (tile, own.vars.len()) else {
            return Err(Diagnosis::new("an `own` loop over a fragment needs one tile of constant extents"));
        };
        let Some(registers) = fragment.registers(rows, columns) else {
            return Err(Diagnosis::new(format!(
                "fragment {} has no tile of {rows} x {columns}",
                fragment.name
            )));
        };
        let register = Sym::new("r");
        let mut head = String::new();
        let body = self.nested(|s| {
            let name = s.names.declare(&register);
            let runs = registers / own.run;
            head = format!("for (int {name} = 0; {name} < {runs}; ++{name})");
            s.ranges.set(&register, Interval::new(0, runs - 1));
            let thread = s.ranges.simplify(&executing.local.rem(fragment.threads));
            let first = Index::var(&register).scaled(own.run);
            let place = (fragment.place)(&thread, &first);
            let bindings = [(row, place.0, rows - 1), (column, place.1, columns - own.run)];
            for (var, place, last) in &bindings {
                s.names.declare(var);
                s.ranges.set(var, Interval::new(0, *last));
                s.thread_values.insert((*var).clone(), place.clone());
            }
            s.unrolled_loops.push(register.clone());
            if let Some(bound) = &mut s.bound_in_loop {
                bound.insert(register.clone());
            }
            s.owned.push(Owned {
                row: row.clone(),
                column: column.clone(),
                fragment,
                register: first,
                run: own.run,
                lane_base: own.lane_base,
            });
            let body = s.captured(0, |s| s.statements(&own.body, executing));
            s.owned.pop();
            s.unrolled_loops.pop();
            for (var, place, _) in &bindings {
                if s.used.contains(var) {
                    let place = s.index(place).text;
                    let name = s.names.of(var).to_string();
                    s.line(format!("const int {name} = {place};"));
                }
            }
            s.lines.append(body?);
            Ok(())
        })?;
        self.line("#pragma unroll");
        self.lines.block(&head, body);
        Ok(())
    }

    /// Without a fragment: a distributed dimension has one element for this thread, others are looped over.
    fn own_dimensions(&mut self, own: &Own, spans: &[usize], executing: &Executing) -> Result<(), Diagnosis> {
        let unit = self.unit;
        let buffer = unit.buffer(&own.window.buffer)?;
        let mut stmts = own.body.to_vec();
        let steps = own.steps(buffer);
        for ((var, _, step), &d) in steps.into_iter().zip(spans).rev() {
            let (lo, extent) = match &own.window.dims[d] {
                Span::Slice(start, length) => (start.clone(), Index::from(*length)),
                _ => (Index::default(), buffer.dims[d].extent.clone()),
            };
            match buffer.dims[d].pitch {
                None => {
                    let range = Range::Span { hi: &lo + &extent, lo, step: step.into() };
                    stmts = vec![For::with_mode(var, Mode::Unroll, range, stmts)];
                }
                Some(pitch) => {
                    let mine = self.everyone().local.div(pitch);
                    let mine = extent.as_constant().map_or(mine.clone(), |e| mine.rem(e));
                    stmts.insert(0, Stmt::Let(var.clone(), mine));
                }
            }
        }
        self.statements(&stmts, executing)
    }
}
