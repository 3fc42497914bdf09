//! Which threads touch which elements: extents of thread loops and tiles are constants, so this is enumerated.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::touch::{Around, Touch, Values};
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
    pub fn of(&mut self, touch: &Touch, depth: usize, parts: &[Index]) -> Option<Rc<Footprint>> {
        let wanted = (touch.clone(), depth, parts.to_vec());
        if let Some(known) = self.known.get(&wanted) {
            return known.clone();
        }
        let made = self.enumerate(touch, depth, parts).map(Rc::new);
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
        let loops = self.mentioned(&loops, parts, &filters);
        let endless = |l: &Around| {
            let grows = |lo: &Index, hi: &Index| self.grows(&(hi - lo));
            !enumerable(touch, depth).contains(&l)
                && !matches!(&l.values, Values::Span { lo, hi, .. } if grows(lo, hi))
        };
        let exact = open.iter().all(|c| self.holds_for_large_sizes(c)) && !touch.local(depth).any(endless);
        let mut walk = Enumeration { touch, parts, filters, found: HashMap::new(), left: MOST };
        walk.run(&loops, &mut Vec::new(), touch.base)?;
        Some(Footprint { threads: walk.found, exact })
    }

    /// Thread loops, and of the others those that matter, with those that their bounds mention.
    fn mentioned<'a>(&self, loops: &[&'a Around], parts: &[Index], filters: &[&Cond]) -> Vec<&'a Around> {
        let mut needed: Vec<&Around> = Vec::new();
        for loop_ in loops.iter().rev() {
            let in_bounds = needed.iter().any(|l| {
                matches!(&l.values, Values::Span { lo, hi, .. } if lo.mentions(&loop_.var) || hi.mentions(&loop_.var))
            });
            let wanted = matches!(loop_.values, Values::Threads { .. })
                || in_bounds
                || parts.iter().any(|p| p.mentions(&loop_.var))
                || filters.iter().any(|c| c.mentions(&loop_.var));
            if wanted {
                needed.push(loop_);
            }
        }
        needed.reverse();
        needed
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

struct Enumeration<'a> {
    touch: &'a Touch,
    parts: &'a [Index],
    filters: Vec<&'a Cond>,
    found: HashMap<i128, (i64, i64)>,
    left: usize,
}

impl Enumeration<'_> {
    /// All iterations of `loops`; `None` if there are too many.
    fn run(&mut self, loops: &[&Around], at: &mut Vec<(Sym, i64)>, thread: i64) -> Option<()> {
        let Some((loop_, inner)) = loops.split_first() else {
            self.left = self.left.checked_sub(1)?;
            self.visit(at, thread);
            return Some(());
        };
        let value = |i: &Index| i.eval(&|s| lookup(at, s)).ok();
        let (values, pitch): (Box<dyn Iterator<Item = i64>>, i64) = match &loop_.values {
            Values::Threads { count, pitch } => (Box::new(0..*count), *pitch),
            Values::List(list) => (Box::new(list.clone().into_iter()), 0),
            Values::Span { lo, hi, step } => {
                (Box::new((value(lo)?..value(hi)?).step_by(usize::try_from(*step).ok()?)), 0)
            }
            Values::Unknown => return None,
        };
        for v in values {
            at.push((loop_.var.clone(), v));
            let done = self.run(inner, at, thread + pitch * v);
            at.pop();
            done?;
        }
        Some(())
    }

    fn visit(&mut self, at: &[(Sym, i64)], thread: i64) {
        let value = |s: &Sym| lookup(at, s);
        if self.filters.iter().any(|c| c.eval(&value) == Ok(false)) {
            return;
        }
        let key = key(self.parts.iter().map(|p| p.eval(&value).unwrap_or(0)));
        let last = thread + self.touch.size - 1;
        let entry = self.found.entry(key).or_insert((thread, last));
        *entry = (entry.0.min(thread), entry.1.max(last));
    }
}

fn lookup(at: &[(Sym, i64)], sym: &Sym) -> Option<i64> {
    at.iter().rev().find_map(|(s, v)| (s == sym).then_some(*v))
}
