//! Integers: indices and conditions become forms, tests and, where they are neither, computations at run time.

use warpwright_core::diag::Diagnosis;
use warpwright_core::index::{Atom, Comparison, Cond, Index};
use warpwright_core::sym::Sym;

use super::{Binding, Lowering, View};
use crate::code::{Form, Integral, LaneVector, Op, Test, WARP};

/// Smallest and largest value, if known.
pub(super) type Bounds = Option<(i64, i64)>;

impl Lowering<'_> {
    pub(super) fn index(&mut self, index: &Index) -> Result<Form, Diagnosis> {
        let mut sum = Form::constant(index.constant_term());
        for (atom, coefficient) in index.terms() {
            let term = self.atom(atom)?;
            let term = self.scale(&term, *coefficient);
            sum = self.add(&sum, &term);
        }
        Ok(sum)
    }

    pub(super) fn indices(&mut self, indices: &[Index]) -> Result<Vec<Form>, Diagnosis> {
        indices.iter().map(|i| self.index(i)).collect()
    }

    fn atom(&mut self, atom: &Atom) -> Result<Form, Diagnosis> {
        match atom {
            Atom::Var(sym) => self.variable(sym),
            Atom::Div(x, d) => {
                let x = self.index(x)?;
                Ok(self.div(&x, *d))
            }
            Atom::Mod(x, d) => {
                let x = self.index(x)?;
                Ok(self.rem(&x, *d))
            }
            Atom::Min(a, b) | Atom::Max(a, b) | Atom::Xor(a, b) => {
                let (a, b) = (self.index(a)?, self.index(b)?);
                Ok(self.integral(match atom {
                    Atom::Min(..) => Integral::Min(a, b),
                    Atom::Max(..) => Integral::Max(a, b),
                    _ => Integral::Xor(a, b),
                }))
            }
            Atom::Select(c, a, b) => {
                let test = self.test(c)?;
                let (a, b) = (self.index(a)?, self.index(b)?);
                Ok(match test {
                    Test::Constant(true) => a,
                    Test::Constant(false) => b,
                    test => self.integral(Integral::Select(test, a, b)),
                })
            }
        }
    }

    fn variable(&mut self, sym: &Sym) -> Result<Form, Diagnosis> {
        match self.bindings.get(sym) {
            Some(Binding::Integer(form)) => Ok(form.clone()),
            Some(Binding::Thread { lanes, uniform }) => {
                Ok(if self.context.view == View::Warp { lanes.clone() } else { uniform.clone() })
            }
            _ => Err(Diagnosis::new(format!("`{sym}` has no value here"))),
        }
    }

    pub(super) fn add(&mut self, a: &Form, b: &Form) -> Form {
        let lanes = match (a.lanes, b.lanes) {
            (Some(x), Some(y)) => {
                let key = (x.min(y), x.max(y));
                if let Some(sum) = self.lane_sums.get(&key) {
                    sum.clone()
                } else {
                    let (x, y) = (&self.code.lanes[x as usize].values, &self.code.lanes[y as usize].values);
                    let sum = x.iter().zip(&y[..]).map(|(x, y)| x.wrapping_add(*y)).collect();
                    let sum = self.intern(sum);
                    self.lane_sums.insert(key, sum.clone());
                    sum
                }
            }
            (lanes, None) | (None, lanes) => Form { lanes, ..Form::default() },
        };
        Form {
            constant: a.constant.wrapping_add(b.constant).wrapping_add(lanes.constant),
            uniform: merge(&a.uniform, &b.uniform),
            lanes: lanes.lanes,
            dynamic: merge(&a.dynamic, &b.dynamic),
        }
    }

    pub(super) fn scale(&mut self, a: &Form, factor: i64) -> Form {
        if factor == 1 {
            return a.clone();
        }
        if factor == 0 {
            return Form::default();
        }
        let scaled = |terms: &[(u32, i64)]| terms.iter().map(|(v, c)| (*v, c.wrapping_mul(factor))).collect();
        let lanes = match a.lanes {
            None => Form::default(),
            Some(x) => {
                if let Some(known) = self.lane_multiples.get(&(x, factor)) {
                    known.clone()
                } else {
                    let values = &self.code.lanes[x as usize].values;
                    let values = values.iter().map(|v| v.wrapping_mul(factor)).collect();
                    let multiple = self.intern(values);
                    self.lane_multiples.insert((x, factor), multiple.clone());
                    multiple
                }
            }
        };
        Form {
            constant: a.constant.wrapping_mul(factor).wrapping_add(lanes.constant),
            uniform: scaled(&a.uniform),
            lanes: lanes.lanes,
            dynamic: scaled(&a.dynamic),
        }
    }

    pub(super) fn sub(&mut self, a: &Form, b: &Form) -> Form {
        let b = self.scale(b, -1);
        self.add(a, &b)
    }

    /// Floor division. What is a whole multiple is divided at once; if only lanes are left, they are divided at once
    /// too; otherwise the machine divides.
    pub(super) fn div(&mut self, x: &Form, d: i64) -> Form {
        if d == 1 {
            return x.clone();
        }
        let whole = |terms: &[(u32, i64)]| terms.iter().all(|(_, c)| c % d == 0);
        if whole(&x.uniform) && whole(&x.dynamic) {
            let over = |terms: &[(u32, i64)]| terms.iter().map(|(v, c)| (*v, c / d)).collect::<Vec<_>>();
            let rest = Form { constant: x.constant, lanes: x.lanes, ..Form::default() };
            let rest = match rest.as_constant() {
                Some(c) => Form::constant(c.div_euclid(d)),
                None => self.fold(&[&rest], |v| v[0].div_euclid(d)),
            };
            return Form { uniform: over(&x.uniform), dynamic: over(&x.dynamic), ..rest };
        }
        if let Some((lo, hi)) = self.bounds(x)
            && lo.div_euclid(d) == hi.div_euclid(d)
        {
            return Form::constant(lo.div_euclid(d));
        }
        self.integral(Integral::Div(x.clone(), d))
    }

    /// The remainder of [`Lowering::div`].
    fn rem(&mut self, x: &Form, d: i64) -> Form {
        if x.uniform.iter().chain(&x.dynamic).all(|(_, c)| c % d == 0) {
            let rest = Form { constant: x.constant, lanes: x.lanes, ..Form::default() };
            return match rest.as_constant() {
                Some(c) => Form::constant(c.rem_euclid(d)),
                None => self.fold(&[&rest], |v| v[0].rem_euclid(d)),
            };
        }
        if let Some((lo, hi)) = self.bounds(x)
            && lo.div_euclid(d) == hi.div_euclid(d)
        {
            let whole = Form::constant(-lo.div_euclid(d) * d);
            return self.add(x, &whole);
        }
        self.integral(Integral::Mod(x.clone(), d))
    }

    /// A computation, folded if its operands depend on the thread alone, else left to the machine.
    pub(super) fn integral(&mut self, value: Integral) -> Form {
        let operands: Vec<&Form> = match &value {
            Integral::Copy(a) | Integral::Div(a, _) | Integral::Mod(a, _) => vec![a],
            Integral::Min(a, b) | Integral::Max(a, b) | Integral::Xor(a, b) => vec![a, b],
            Integral::Select(_, a, b) => vec![a, b],
            Integral::Part { index, parts, lo, hi } => vec![index, parts, lo, hi],
        };
        let tested = match &value {
            Integral::Select(test, ..) => Some(test),
            _ => None,
        };
        let mask = match tested {
            Some(Test::Mask(m)) => Some(self.code.masks[*m as usize].clone()),
            _ => None,
        };
        if operands.iter().all(|f| f.is_static()) && (tested.is_none() || mask.is_some()) {
            let operands: Vec<Form> = operands.into_iter().cloned().collect();
            let operands: Vec<&Form> = operands.iter().collect();
            return match (&value, mask) {
                (Integral::Select(..), Some(mask)) => {
                    let mut thread = 0;
                    self.fold(&operands, |v| {
                        let chosen = mask[thread / WARP] >> (thread % WARP) & 1 == 1;
                        thread += 1;
                        if chosen { v[0] } else { v[1] }
                    })
                }
                _ => self.fold(&operands, |v| compute(&value, v)),
            };
        }
        let uniform = operands.iter().all(|f| f.is_uniform()) && tested.is_none_or(is_uniform);
        let bounds = self.integral_bounds(&value);
        if uniform {
            let variable = self.new_uniform(bounds);
            self.emit(Op::Uniform(variable, value));
            Form::uniform(variable)
        } else {
            let variable = self.new_dynamic(bounds);
            self.emit(Op::Lanes(variable, value));
            Form::dynamic(variable)
        }
    }

    fn integral_bounds(&self, value: &Integral) -> Bounds {
        match value {
            Integral::Copy(a) => self.bounds(a),
            Integral::Div(a, d) => self.bounds(a).map(|(lo, hi)| (lo.div_euclid(*d), hi.div_euclid(*d))),
            Integral::Mod(_, d) => Some((0, d - 1)),
            Integral::Min(a, b) => {
                let (a, b) = (self.bounds(a)?, self.bounds(b)?);
                Some((a.0.min(b.0), a.1.min(b.1)))
            }
            Integral::Max(a, b) => {
                let (a, b) = (self.bounds(a)?, self.bounds(b)?);
                Some((a.0.max(b.0), a.1.max(b.1)))
            }
            Integral::Xor(a, b) => {
                let (a, b) = (self.bounds(a)?, self.bounds(b)?);
                (a.0 >= 0 && b.0 >= 0).then(|| {
                    let bits = 64 - (a.1 | b.1).leading_zeros();
                    (0, if bits >= 63 { i64::MAX } else { (1 << bits) - 1 })
                })
            }
            Integral::Select(_, a, b) => {
                let (a, b) = (self.bounds(a)?, self.bounds(b)?);
                Some((a.0.min(b.0), a.1.max(b.1)))
            }
            Integral::Part { lo, hi, .. } => Some((self.bounds(lo)?.0, self.bounds(hi)?.1)),
        }
    }

    /// A lane vector computed thread by thread from operands that depend on the thread alone.
    fn fold(&mut self, operands: &[&Form], mut f: impl FnMut(&[i64]) -> i64) -> Form {
        let vectors: Vec<(i64, Option<u32>)> = operands.iter().map(|o| (o.constant, o.lanes)).collect();
        if vectors.iter().all(|(_, lanes)| lanes.is_none()) && operands.len() == 1 {
            return Form::constant(f(&[vectors[0].0]));
        }
        let mut arguments = vec![0; operands.len()];
        let mut values = Vec::with_capacity(self.threads);
        for thread in 0..self.threads {
            for (argument, (constant, lanes)) in arguments.iter_mut().zip(&vectors) {
                let lane = lanes.map_or(0, |l| self.code.lanes[l as usize].values[thread]);
                *argument = constant.wrapping_add(lane);
            }
            values.push(f(&arguments));
        }
        self.lane_vector(values)
    }

    /// The value of a static form in each thread.
    pub(super) fn static_values(&self, form: &Form) -> Vec<i64> {
        match form.lanes {
            None => vec![form.constant; self.threads],
            Some(l) => {
                self.code.lanes[l as usize].values.iter().map(|v| v.wrapping_add(form.constant)).collect()
            }
        }
    }

    /// A form for a value of each thread. Threads that do not execute here take the value of the first that does, and
    /// the vector starts at 0, so that vectors which differ by a constant are one.
    pub(super) fn lane_vector(&mut self, mut values: Vec<i64>) -> Form {
        let Some(first) = self.context.active.iter().position(|a| *a) else { return Form::default() };
        let constant = values[first];
        for (value, active) in values.iter_mut().zip(&self.context.active) {
            *value = if *active { value.wrapping_sub(constant) } else { 0 };
        }
        let lanes = self.intern(values).lanes;
        Form { constant, lanes, ..Form::default() }
    }

    /// A form for a value of each thread, taken as it is.
    fn intern(&mut self, values: Vec<i64>) -> Form {
        if values.iter().all(|v| *v == 0) {
            return Form::default();
        }
        let values = values.into_boxed_slice();
        let lanes = match self.lane_numbers.get(&values) {
            Some(number) => *number,
            None => {
                let bounds = values
                    .chunks(WARP)
                    .map(|w| (w.iter().copied().min().unwrap_or(0), w.iter().copied().max().unwrap_or(0)))
                    .collect();
                let number = self.code.lanes.len() as u32;
                self.lane_numbers.insert(values.clone(), number);
                self.code.lanes.push(LaneVector { values, bounds });
                number
            }
        };
        Form { lanes: Some(lanes), ..Form::default() }
    }

    /// Bounds of a form over all threads, from what is known of its variables.
    pub(super) fn bounds(&self, form: &Form) -> Bounds {
        let (mut lo, mut hi) = (form.constant, form.constant);
        let terms = form.uniform.iter().map(|(v, c)| (self.uniform_bounds[*v as usize], *c));
        let dynamic = form.dynamic.iter().map(|(v, c)| (self.dynamic_bounds[*v as usize], *c));
        for (bounds, c) in terms.chain(dynamic) {
            let (a, b) = bounds?;
            let (a, b) = (a.checked_mul(c)?, b.checked_mul(c)?);
            lo = lo.checked_add(a.min(b))?;
            hi = hi.checked_add(a.max(b))?;
        }
        if let Some(lanes) = form.lanes {
            let bounds = &self.code.lanes[lanes as usize].bounds;
            lo = lo.checked_add(bounds.iter().map(|b| b.0).min().unwrap_or(0))?;
            hi = hi.checked_add(bounds.iter().map(|b| b.1).max().unwrap_or(0))?;
        }
        Some((lo, hi))
    }

    /// Whether the form is known to lie in `0..extent`.
    pub(super) fn is_inside(&self, form: &Form, extent: i64) -> bool {
        self.bounds(form).is_some_and(|(lo, hi)| lo >= 0 && hi < extent)
    }

    pub(super) fn test(&mut self, cond: &Cond) -> Result<Test, Diagnosis> {
        Ok(match cond {
            Cond::Compare(how, a, b) => {
                let (a, b) = (self.index(a)?, self.index(b)?);
                let difference = self.sub(&a, &b);
                self.compare(*how, difference)
            }
            Cond::Flag(sym) => {
                let flag = self.variable(sym)?;
                self.compare(Comparison::Ne, flag)
            }
            Cond::Not(c) => match self.test(c)? {
                Test::Constant(truth) => Test::Constant(!truth),
                test => Test::Not(Box::new(test)),
            },
            Cond::And(parts) => {
                let mut tests = Vec::new();
                for part in parts {
                    match self.test(part)? {
                        Test::Constant(false) => return Ok(Test::Constant(false)),
                        Test::Constant(true) => {}
                        test => tests.push(test),
                    }
                }
                match tests.len() {
                    0 => Test::Constant(true),
                    1 => tests.remove(0),
                    _ => Test::And(tests),
                }
            }
            Cond::Or(parts) => {
                let mut tests = Vec::new();
                for part in parts {
                    match self.test(part)? {
                        Test::Constant(true) => return Ok(Test::Constant(true)),
                        Test::Constant(false) => {}
                        test => tests.push(test),
                    }
                }
                match tests.len() {
                    0 => Test::Constant(false),
                    1 => tests.remove(0),
                    _ => Test::Or(tests),
                }
            }
        })
    }

    /// `form how 0`.
    pub(super) fn compare(&mut self, how: Comparison, form: Form) -> Test {
        if let Some((lo, hi)) = self.bounds(&form) {
            let (all, none) = match how {
                Comparison::Lt => (hi < 0, lo >= 0),
                Comparison::Le => (hi <= 0, lo > 0),
                Comparison::Eq => (lo == 0 && hi == 0, lo > 0 || hi < 0),
                Comparison::Ne => (lo > 0 || hi < 0, lo == 0 && hi == 0),
            };
            if all || none {
                return Test::Constant(all);
            }
        }
        if form.is_static() {
            let truth: Vec<bool> = self.static_values(&form).into_iter().map(|v| how.holds(v, 0)).collect();
            return self.mask_test(&truth);
        }
        Test::Compare(how, form)
    }

    /// The test that a thread is in a set.
    pub(super) fn mask_test(&mut self, truth: &[bool]) -> Test {
        let active = || truth.iter().zip(&self.context.active).filter(|(_, a)| **a).map(|(t, _)| *t);
        if active().all(|t| t) {
            Test::Constant(true)
        } else if active().all(|t| !t) {
            Test::Constant(false)
        } else {
            Test::Mask(self.mask(truth))
        }
    }

    /// The number of the mask of a set of threads.
    pub(super) fn mask(&mut self, set: &[bool]) -> u32 {
        let words: Box<[u32]> = set
            .chunks(WARP)
            .map(|warp| warp.iter().enumerate().fold(0, |m, (lane, t)| m | u32::from(*t) << lane))
            .collect();
        match self.code.masks.iter().position(|m| *m == words) {
            Some(at) => at as u32,
            None => {
                self.code.masks.push(words);
                self.code.masks.len() as u32 - 1
            }
        }
    }

    pub(super) fn new_uniform(&mut self, bounds: Bounds) -> u32 {
        self.uniform_bounds.push(bounds);
        self.uniform_bounds.len() as u32 - 1
    }

    pub(super) fn new_dynamic(&mut self, bounds: Bounds) -> u32 {
        self.dynamic_bounds.push(bounds);
        self.dynamic_bounds.len() as u32 - 1
    }
}

/// Whether all threads see the same outcome.
pub(super) fn is_uniform(test: &Test) -> bool {
    match test {
        Test::Constant(_) => true,
        Test::Mask(_) => false,
        Test::Compare(_, form) => form.is_uniform(),
        Test::Not(t) => is_uniform(t),
        Test::And(tests) | Test::Or(tests) => tests.iter().all(is_uniform),
    }
}

/// The value of a computation other than a choice, on the values of its operands.
#[inline(never)]
pub(crate) fn compute(value: &Integral, v: &[i64]) -> i64 {
    match value {
        Integral::Copy(_) | Integral::Select(..) => v[0],
        Integral::Div(_, d) => v[0].div_euclid(*d),
        Integral::Mod(_, d) => v[0].rem_euclid(*d),
        Integral::Min(..) => v[0].min(v[1]),
        Integral::Max(..) => v[0].max(v[1]),
        Integral::Xor(..) => v[0] ^ v[1],
        Integral::Part { .. } => {
            let (index, parts, lo, hi) = (v[0], v[1].max(1), v[2], v[3]);
            let share = i128::from(index) * i128::from((hi - lo).max(0)) / i128::from(parts);
            lo.wrapping_add(share as i64)
        }
    }
}

fn merge(a: &[(u32, i64)], b: &[(u32, i64)]) -> Vec<(u32, i64)> {
    if b.is_empty() {
        return a.to_vec();
    }
    let mut sum = a.to_vec();
    for (variable, coefficient) in b {
        match sum.iter_mut().find(|(v, _)| v == variable) {
            Some((_, c)) => *c = c.wrapping_add(*coefficient),
            None => sum.push((*variable, *coefficient)),
        }
    }
    sum.retain(|(_, c)| *c != 0);
    sum.sort_unstable();
    sum
}
