//! Which threads touch which elements: extents of thread loops and tiles are constants, so this is enumerated.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::touch::{Around, Kind, Touch, Values};
use crate::index::{Atom, Comparison, Cond, Index};
use crate::sym::Sym;

/// The first and the last thread that touch each element. Elements are keyed by the local parts of their indices.
#[derive(Debug)]
pub(super) struct Footprint {
    pub threads: HashMap<i128, (i64, i64)>,
    /// Whether everything listed is really touched, if sizes are large enough.
    pub exact: bool,
}

/// Makes footprints, and remembers them.
#[derive(Default)]
pub(super) struct Footprints {
    /// The sizes of the problem.
    sizes: HashSet<Sym>,
    known: HashMap<(Touch, usize, Vec<Index>), Option<Rc<Footprint>>>,
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

impl Footprints {
    pub fn new(sizes: HashSet<Sym>) -> Footprints {
        Footprints { sizes, known: HashMap::new() }
    }

    /// The footprint of a touch by the given parts of its indices, which mention enumerable variables only.
    pub fn of(&mut self, touch: &Touch, depth: usize, parts: Vec<Index>) -> Option<Rc<Footprint>> {
        let wanted = (Touch { kind: Kind::Read, index: Vec::new(), ..touch.clone() }, depth, parts);
        if let Some(known) = self.known.get(&wanted) {
            return known.clone();
        }
        let made = self.enumerate(touch, depth, &wanted.2).map(Rc::new);
        self.known.insert(wanted, made.clone());
        made
    }

    fn enumerate(&self, touch: &Touch, depth: usize, parts: &[Index]) -> Option<Footprint> {
        let loops = enumerable(touch, depth);
        let only_known = |c: &Cond| {
            let mut all = true;
            c.for_each_var(&mut |s| all &= loops.iter().any(|l| l.var == *s));
            all
        };
        let (filters, open): (Vec<&Cond>, Vec<&Cond>) = touch.guards.iter().partition(|c| only_known(c));
        let (loops, spread) = mentioned(&loops, parts, &filters);
        let endless = |l: &Around| {
            let grows = |lo: &Index, hi: &Index| self.grows(&(hi - lo));
            !enumerable(touch, depth).contains(&l)
                && !matches!(&l.values, Values::Span { lo, hi, .. } if grows(lo, hi))
        };
        let exact = open.iter().all(|c| self.holds_for_large_sizes(c)) && !touch.local(depth).any(endless);
        let nonlinear = parts.iter().any(|p| p.terms().iter().any(|(a, _)| !matches!(a, Atom::Var(_))));
        let weight = |l: &Around| key(parts.iter().map(|p| p.coefficient(&l.var)));
        let mut walk = Enumeration {
            loops: loops.iter().map(|l| (*l, weight(l))).collect(),
            parts: if nonlinear { Some(parts) } else { None },
            filters,
            last: touch.size - 1 + spread,
            at: Vec::new(),
            found: HashMap::new(),
            left: MOST,
        };
        let constant = key(parts.iter().map(Index::constant_term));
        walk.run(0, touch.base, constant)?;
        Some(Footprint { threads: walk.found, exact })
    }

    /// Whether a guard is of the kind `i < M`, which large enough sizes make true for all iterations at once.
    fn holds_for_large_sizes(&self, cond: &Cond) -> bool {
        match cond {
            Cond::And(all) => all.iter().all(|c| self.holds_for_large_sizes(c)),
            Cond::Compare(Comparison::Lt | Comparison::Le, a, b) => self.grows(&(b - a)),
            _ => false,
        }
    }

    fn grows(&self, index: &Index) -> bool {
        let of_sizes = |a: &Atom| {
            let mut some = false;
            Index::atom(a.clone()).for_each_var(&mut |s| some |= self.sizes.contains(s));
            some
        };
        let mut sizes = index.terms().iter().filter(|(a, _)| of_sizes(a)).peekable();
        sizes.peek().is_some() && sizes.all(|(_, c)| *c > 0)
    }
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
    filters: Vec<&'a Cond>,
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
