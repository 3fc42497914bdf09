//! Which threads touch which elements: extents of thread loops and tiles are constants, so this is enumerated.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::digits::Digits;
use super::touch::{Around, Kind, Touch, Values};
use crate::index::{Atom, Comparison, Cond, Index};
use crate::sym::Sym;

/// The first and the last thread that touch each element. Elements are keyed by the local parts of their indices.
#[derive(Debug)]
pub(super) struct Footprint {
    pub threads: HashMap<i128, (i64, i64)>,
}

/// More iterations than this are not enumerated.
const MOST: usize = 1 << 20;
/// Indices below this keep their keys apart.
const RADIX: i128 = 1 << 24;

/// The key of an element: linear in its indices, so that a constant shift of the indices shifts the key.
pub(super) fn key(index: impl IntoIterator<Item = i64>) -> i128 {
    index.into_iter().fold(0, |key: i128, i| key.wrapping_mul(RADIX).wrapping_add(i128::from(i)))
}

/// The loops whose variables can be enumerated: their bounds are constants, given those outside them.
pub(super) fn enumerable(touch: &Touch, depth: usize) -> Vec<&Around> {
    let mut found: Vec<&Around> = Vec::new();
    for loop_ in touch.local(depth) {
        let known = |i: &Index| {
            let mut all = true;
            i.for_each_var(&mut |s| all &= found.iter().any(|l| l.var == *s));
            all
        };
        let fits = match &loop_.values {
            Values::Threads { .. } | Values::List(_) => true,
            Values::Span { lo, hi, .. } => known(lo) && known(hi),
            Values::Unknown => false,
        };
        if fits {
            found.push(loop_);
        }
    }
    found
}

/// A touch, seen by some parts of its indices: what its footprint is made from.
pub(super) struct View<'a> {
    touch: &'a Touch,
    /// The list in which it meets another touch.
    depth: usize,
    /// The parts.
    pub parts: Vec<Index>,
    /// The loops that tell elements apart.
    loops: Vec<&'a Around>,
    /// The conditions that only mention these.
    filters: Vec<&'a Cond>,
    /// All others.
    open: Vec<&'a Cond>,
    /// How far the last thread that touches an element lies from the first, for given values of these loops.
    last: i64,
}

impl<'a> View<'a> {
    /// The view by parts of the indices that mention enumerable variables only.
    pub fn of(touch: &'a Touch, depth: usize, parts: Vec<Index>) -> View<'a> {
        let all = enumerable(touch, depth);
        let only_known = |c: &Cond| {
            let mut known = true;
            c.for_each_var(&mut |s| known &= all.iter().any(|l| l.var == *s));
            known
        };
        let guards = touch.guards.iter().flat_map(|c| match c {
            Cond::And(parts) => &parts[..],
            one => std::slice::from_ref(one),
        });
        let (filters, open): (Vec<&Cond>, Vec<&Cond>) = guards.partition(|c| only_known(c));
        let (loops, spread) = mentioned(&all, &parts, &filters);
        View { touch, depth, parts, loops, filters, open, last: touch.size - 1 + spread }
    }

    /// The conditions under which everything in view is really touched if sizes are large enough; `None` if one of them
    /// differs between iterations in view, or is about sizes, and so may hold for small ones only.
    pub fn exact_where(&self, sizes: &HashSet<Sym>) -> Option<Vec<&'a Cond>> {
        let local: Vec<&Around> = self.touch.local(self.depth).collect();
        let all = enumerable(self.touch, self.depth);
        let endless = |l: &&Around| {
            !all.contains(l) && !matches!(&l.values, Values::Span { lo, hi, .. } if grows(&(hi - lo), sizes))
        };
        if local.iter().any(endless) {
            return None;
        }
        let uniform = |c: &Cond| {
            let mut uniform = true;
            c.for_each_var(&mut |s| uniform &= !sizes.contains(s) && local.iter().all(|l| l.var != *s));
            uniform
        };
        let doubtful = self.open.iter().copied().filter(|c| !holds_for_large_sizes(c, sizes));
        doubtful.map(|c| uniform(c).then_some(c)).collect()
    }

    /// The threads that touch an element for some values of the loops, the first and the last, and the element; `None`
    /// if a condition fails or the loops do not take these values. Loops without a value take their first.
    pub fn example(&self, values: &[(Sym, i64)]) -> Option<(Vec<i64>, (i64, i64))> {
        let mut at: Vec<(&Sym, i64)> = Vec::with_capacity(self.loops.len());
        let mut thread = self.touch.base;
        for loop_ in &self.loops {
            let given = values.iter().find(|(s, _)| *s == loop_.var).map_or(0, |(_, v)| *v);
            if !(0..loop_.values.count()?).contains(&given) {
                return None;
            }
            if let Values::Threads { pitch, .. } = loop_.values {
                thread += pitch * given;
            }
            at.push((&loop_.var, given));
        }
        let value = |s: &Sym| at.iter().find_map(|(var, v)| (*var == s).then_some(*v));
        if self.filters.iter().any(|c| c.eval(&value) != Ok(true)) {
            return None;
        }
        let element = self.parts.iter().map(|p| p.eval(&value).ok()).collect::<Option<_>>()?;
        Some((element, (thread, thread + self.last)))
    }

    /// Some values of the loops: the corners of the box that they span, as far as one loop alone leads there.
    pub fn samples(&self) -> Vec<Vec<(Sym, i64)>> {
        let last = |l: &&Around| Some((l.var.clone(), l.values.count()? - 1));
        let all: Vec<(Sym, i64)> = self.loops.iter().filter_map(last).collect();
        let each: Vec<Vec<(Sym, i64)>> = all.iter().map(|one| vec![one.clone()]).collect();
        [vec![Vec::new(), all], each].concat()
    }

    /// The values of the loops for which the parts are this element.
    pub fn solve(&self, element: &[i64]) -> Option<Vec<(Sym, i64)>> {
        let mut solution: Vec<(Sym, i64)> = Vec::new();
        for (part, value) in self.parts.iter().zip(element) {
            solution.extend(Digits::of(part, self.touch)?.solve(*value)?);
        }
        Some(solution)
    }
}

/// Makes footprints, and remembers them.
#[derive(Default)]
pub(super) struct Footprints {
    known: HashMap<(Touch, usize, Vec<Index>), Option<Rc<Footprint>>>,
}

impl Footprints {
    /// The footprint of a touch in a view.
    pub fn of(&mut self, view: &View) -> Option<Rc<Footprint>> {
        let touch = Touch { kind: Kind::Read, index: Vec::new(), ..view.touch.clone() };
        let wanted = (touch, view.depth, view.parts.clone());
        if let Some(known) = self.known.get(&wanted) {
            return known.clone();
        }
        let made = Footprints::enumerate(view).map(Rc::new);
        self.known.insert(wanted, made.clone());
        made
    }

    fn enumerate(view: &View) -> Option<Footprint> {
        let View { touch, parts, .. } = view;
        let nonlinear = parts.iter().any(|p| p.terms().iter().any(|(a, _)| !matches!(a, Atom::Var(_))));
        let weight = |l: &Around| key(parts.iter().map(|p| p.coefficient(&l.var)));
        let mut walk = Enumeration {
            loops: view.loops.iter().map(|l| (*l, weight(l))).collect(),
            parts: if nonlinear { Some(parts) } else { None },
            filters: &view.filters,
            last: view.last,
            at: Vec::new(),
            found: HashMap::new(),
            left: MOST,
        };
        let constant = key(parts.iter().map(Index::constant_term));
        walk.run(0, touch.base, constant)?;
        Some(Footprint { threads: walk.found })
    }
}

/// Whether a guard is a flag, or of the kind `i < M`, which large enough sizes make true for all iterations at once.
fn holds_for_large_sizes(cond: &Cond, sizes: &HashSet<Sym>) -> bool {
    match cond {
        Cond::And(all) => all.iter().all(|c| holds_for_large_sizes(c, sizes)),
        Cond::Compare(Comparison::Lt | Comparison::Le, a, b) => grows(&(b - a), sizes),
        _ => is_flag(cond),
    }
}

/// Whether a condition is a flag or its negation: the same for all threads, and either at the caller's choice.
pub(super) fn is_flag(cond: &Cond) -> bool {
    match cond {
        Cond::Flag(_) => true,
        Cond::Not(c) => matches!(**c, Cond::Flag(_)),
        _ => false,
    }
}

fn grows(index: &Index, sizes: &HashSet<Sym>) -> bool {
    let of_sizes = |a: &Atom| {
        let mut some = false;
        Index::atom(a.clone()).for_each_var(&mut |s| some |= sizes.contains(s));
        some
    };
    let mut sizes = index.terms().iter().filter(|(a, _)| of_sizes(a)).peekable();
    sizes.peek().is_some() && sizes.all(|(_, c)| *c > 0)
}

/// The loops that tell elements apart, with those that their bounds mention; and how far the threads of the thread
/// loops left out lie from the first.
fn mentioned<'a>(loops: &[&'a Around], parts: &[Index], filters: &[&Cond]) -> (Vec<&'a Around>, i64) {
    let mut needed: Vec<&Around> = Vec::new();
    let mut spread = 0;
    for loop_ in loops.iter().rev() {
        let bounds = |l: &&Around| match &l.values {
            Values::Span { lo, hi, .. } => lo.mentions(&loop_.var) || hi.mentions(&loop_.var),
            _ => false,
        };
        if parts.iter().any(|p| p.mentions(&loop_.var))
            || filters.iter().any(|c| c.mentions(&loop_.var))
            || needed.iter().any(bounds)
        {
            needed.push(loop_);
        } else if let Values::Threads { count, pitch } = loop_.values {
            spread += (count - 1) * pitch;
        }
    }
    needed.reverse();
    (needed, spread)
}

struct Enumeration<'a> {
    /// The loops, and by how much the key grows with each variable where it is linear.
    loops: Vec<(&'a Around, i128)>,
    /// The indices, if they are not linear.
    parts: Option<&'a [Index]>,
    filters: &'a [&'a Cond],
    /// The distance from the first to the last thread of a touch.
    last: i64,
    /// The values of the variables of the loops so far.
    at: Vec<i64>,
    found: HashMap<i128, (i64, i64)>,
    left: usize,
}

impl Enumeration<'_> {
    /// All iterations of the loops from `next` on; `None` if there are too many.
    fn run(&mut self, next: usize, thread: i64, linear: i128) -> Option<()> {
        let Some((loop_, weight)) = self.loops.get(next).copied() else {
            self.left = self.left.checked_sub(1)?;
            self.visit(thread, linear);
            return Some(());
        };
        let one = |scan: &mut Self, v: i64, pitch: i64| {
            scan.at.push(v);
            let done = scan.run(
                next + 1,
                thread + pitch * v,
                linear.wrapping_add(weight.wrapping_mul(i128::from(v))),
            );
            scan.at.pop();
            done
        };
        match &loop_.values {
            Values::Threads { count, pitch } => (0..*count).try_for_each(|v| one(self, v, *pitch)),
            Values::List(list) => list.iter().try_for_each(|v| one(self, *v, 0)),
            Values::Span { lo, hi, step } => {
                let value = |i: &Index| i.eval(&|s| self.value(s)).ok();
                let (lo, hi, step) = (value(lo)?, value(hi)?, usize::try_from(*step).ok()?);
                (lo..hi).step_by(step).try_for_each(|v| one(self, v, 0))
            }
            Values::Unknown => None,
        }
    }

    fn visit(&mut self, thread: i64, linear: i128) {
        let value = |s: &Sym| self.value(s);
        if self.filters.iter().any(|c| c.eval(&value) == Ok(false)) {
            return;
        }
        let key = match self.parts {
            None => linear,
            Some(parts) => key(parts.iter().map(|p| p.eval(&value).unwrap_or(0))),
        };
        let last = thread + self.last;
        let entry = self.found.entry(key).or_insert((thread, last));
        *entry = (entry.0.min(thread), entry.1.max(last));
    }

    fn value(&self, sym: &Sym) -> Option<i64> {
        self.loops.iter().zip(&self.at).find_map(|((l, _), v)| (l.var == *sym).then_some(*v))
    }
}
