//! Whether two touches of one buffer can meet in one element, and in which threads.

use std::collections::HashSet;

use super::Group;
use super::digits::same_thread;
use super::footprint::{Footprints, View, enumerable, is_flag, key};
use super::pending::Pending;
use super::touch::{Touch, Values};
use crate::index::{Atom, Cond, Index, Interval, Ranges, gcd};
use crate::sym::Sym;

/// What a pair of touches needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing: they never meet, or only within one thread, or they are ordered already.
    Apart,
    /// They may meet in different threads, and a barrier of the group may help.
    Met {
        /// Whether they surely do.
        certain: bool,
    },
    /// They meet in threads of which no barrier of the group joins the two.
    Torn,
}

/// Decides about pairs.
pub(super) struct Conflicts {
    footprints: Footprints,
    /// The sizes of the problem.
    sizes: HashSet<Sym>,
    /// What is known of the symbols of the launch.
    ranges: Ranges,
}

/// One dimension of two accesses: what differs from iteration to iteration, and by how much the rest differs.
struct Compared {
    earlier: Index,
    later: Index,
    /// Added to `later` before comparing.
    shift: i64,
}

impl Conflicts {
    pub fn new(sizes: HashSet<Sym>, ranges: Ranges) -> Conflicts {
        Conflicts { footprints: Footprints::default(), sizes, ranges }
    }

    /// What an earlier and a later touch need that stand in one list of the given depth, executed by `group`.
    pub fn verdict(&mut self, p: &Pending, later: &Touch, depth: usize, group: &Group) -> Verdict {
        let earlier = &*p.touch;
        let opposite = |c: &Cond| is_flag(c) && later.guards.contains(&c.clone().negate());
        if earlier.guards.iter().any(opposite) {
            return Verdict::Apart;
        }
        let (before, after) = (self.seen(earlier, depth), self.seen(later, depth));
        let equal = |(now, then): &(Sym, Sym)| equal_if_met(&before, &after, now, then);
        if p.distinct.iter().any(|tuple| tuple.iter().all(equal)) {
            return Verdict::Apart;
        }
        let mut dims = Vec::new();
        let mut all_dims = true;
        for (dim, (a, b)) in earlier.index.iter().zip(&later.index).enumerate() {
            match compare((&before, a), (&after, b)) {
                Some(Some(dim)) => dims.push(dim),
                Some(None) => all_dims &= both_begin_there(&before, &after, dim),
                None => return Verdict::Apart,
            }
        }
        self.at_a_glance(p, later, depth, group, &dims, all_dims)
            .unwrap_or_else(|| self.by_enumeration(p, later, depth, group, &dims, all_dims))
    }

    /// What two touches need, if the form of their indices or one element settles it.
    fn at_a_glance(
        &self,
        p: &Pending,
        later: &Touch,
        depth: usize,
        group: &Group,
        dims: &[Compared],
        all: bool,
    ) -> Option<Verdict> {
        let equal: Vec<(&Index, &Index)> =
            dims.iter().filter(|d| d.shift == 0).map(|d| (&d.earlier, &d.later)).collect();
        if same_thread(&p.touch, later, &equal) {
            return Some(Verdict::Apart);
        }
        self.example(p, later, depth, group, dims, all)
    }

    /// What two touches need, from all the elements that they touch.
    fn by_enumeration(
        &mut self,
        p: &Pending,
        later: &Touch,
        depth: usize,
        group: &Group,
        dims: &[Compared],
        all: bool,
    ) -> Verdict {
        // One dimension often tells threads apart, and has few points.
        let alone = |c: &mut Conflicts, dim| c.meet(p, later, depth, group, std::slice::from_ref(dim), false);
        if dims.len() > 1 && dims.iter().any(|dim| alone(self, dim) == Verdict::Apart) {
            return Verdict::Apart;
        }
        self.meet(p, later, depth, group, dims, all)
    }

    /// What two touches need, if one of a few elements that they might meet in settles it.
    fn example(
        &self,
        p: &Pending,
        later: &Touch,
        depth: usize,
        group: &Group,
        dims: &[Compared],
        all: bool,
    ) -> Option<Verdict> {
        let [a, b] = Conflicts::views(p, later, depth, dims);
        for (here, there, sign) in [(&a, &b, -1), (&b, &a, 1)] {
            for sample in here.samples() {
                let met = here.example(&sample).and_then(|(element, threads)| {
                    let other: Vec<i64> =
                        element.iter().zip(dims).map(|(i, dim)| i + sign * dim.shift).collect();
                    let (again, others) = there.example(&there.solve(&other)?)?;
                    (again == other).then(|| (threads.0.min(others.0), threads.1.max(others.1)))
                });
                let Some((first, last)) = met.filter(|(first, last)| p.may_meet(*first, *last)) else {
                    continue;
                };
                let certain = all && self.meet_as_seen(p, &a, &b);
                if certain && !group.joins(first, last) {
                    return Some(Verdict::Torn);
                }
                if !certain || group.whole {
                    return Some(Verdict::Met { certain });
                }
            }
        }
        None
    }

    /// Whether the touches really meet where their views do, for some sizes. Conditions that are the same for all
    /// threads hide nothing: where the touch that has more of them is made, so is the other. If that is one of an earlier
    /// iteration, both need the same ones.
    fn meet_as_seen(&self, p: &Pending, earlier: &View, later: &View) -> bool {
        let (earlier, later) = (earlier.exact_where(&self.sizes), later.exact_where(&self.sizes));
        let (Some(earlier), Some(later)) = (earlier, later) else { return false };
        let implied = earlier.iter().all(|c| later.contains(c));
        let implies = later.iter().all(|c| earlier.contains(c));
        if p.carried { implied && implies } else { implied || implies }
    }

    fn views<'a>(p: &'a Pending, later: &'a Touch, depth: usize, dims: &[Compared]) -> [View<'a>; 2] {
        let parts = |part: fn(&Compared) -> &Index| dims.iter().map(|d| part(d).clone()).collect();
        [View::of(&p.touch, depth, parts(|d| &d.earlier)), View::of(later, depth, parts(|d| &d.later))]
    }

    /// What two touches need by the given dimensions; these are all there are if `all`.
    fn meet(
        &mut self,
        p: &Pending,
        later: &Touch,
        depth: usize,
        group: &Group,
        dims: &[Compared],
        all: bool,
    ) -> Verdict {
        let [a, b] = Conflicts::views(p, later, depth, dims);
        let certain = all && self.meet_as_seen(p, &a, &b);
        let (a, b) = (self.footprints.of(&a), self.footprints.of(&b));
        let (Some(a), Some(b)) = (a, b) else { return Verdict::Met { certain: false } };
        let shift = key(dims.iter().map(|d| d.shift));
        let mut verdict = Verdict::Apart;
        for (at, threads) in &b.threads {
            let Some(others) = a.threads.get(&at.wrapping_add(shift)) else { continue };
            let (first, last) = (threads.0.min(others.0), threads.1.max(others.1));
            if !p.may_meet(first, last) {
                continue;
            }
            if certain && !group.joins(first, last) {
                return Verdict::Torn;
            }
            verdict = Verdict::Met { certain };
            if !certain {
                break;
            }
        }
        verdict
    }

    /// A touch with the ranges of its variables, as far as they are constants.
    fn seen<'a>(&self, touch: &'a Touch, depth: usize) -> Seen<'a> {
        let mut ranges = self.ranges.clone();
        for loop_ in &touch.around {
            let interval = match &loop_.values {
                Values::Threads { count, .. } => Interval::new(0, count - 1),
                Values::Span { lo, hi, .. } => {
                    Interval { lo: ranges.of(lo).lo, hi: ranges.of(hi).hi.and_then(|h| h.checked_sub(1)) }
                }
                Values::List(v) => Interval { lo: v.iter().min().copied(), hi: v.iter().max().copied() },
                Values::Unknown => Interval::ALL,
            };
            ranges.set(&loop_.var, interval);
        }
        Seen { touch, depth, ranges }
    }
}

/// A touch in a list of that depth, and what its variables can be.
struct Seen<'a> {
    touch: &'a Touch,
    depth: usize,
    ranges: Ranges,
}

/// Whether the touches can only meet where `now` and `then` are equal: some dimension is `c * now` and `c * then` and
/// less than `c` besides.
fn equal_if_met(earlier: &Seen, later: &Seen, now: &Sym, then: &Sym) -> bool {
    earlier.touch.index.iter().zip(&later.touch.index).any(|(a, b)| {
        let (a_local, a_rest) = split(earlier, a);
        let (b_local, b_rest) = split(later, b);
        let c = b_rest.coefficient(now);
        let symbols = &Index::var(now).scaled(c) - &Index::var(then).scaled(c);
        let Some(k) = (&(&b_rest - &a_rest) - &symbols).as_constant() else { return false };
        let (a, b) = (earlier.ranges.of(&a_local), later.ranges.of(&b_local));
        let (Some(low), Some(high)) =
            (b.lo.zip(a.hi).map(|(b, a)| b - a + k), b.hi.zip(a.lo).map(|(b, a)| b - a + k))
        else {
            return false;
        };
        c > 0 && -c < low && high < c
    })
}

/// `None` if the two indices are never equal; `Some(None)` if nothing useful is known.
fn compare(a: (&Seen, &Index), b: (&Seen, &Index)) -> Option<Option<Compared>> {
    let (a_local, a_rest) = split(a.0, a.1);
    let (b_local, b_rest) = split(b.0, b.1);
    let rest = &b_rest - &a_rest;
    if excludes_zero(b.0.ranges.of(&rest), a.0.ranges.of(&a_local), b.0.ranges.of(&b_local))
        || never_divides(&rest, &a_local, &b_local)
        || passes_by((&rest, &b.0.ranges), (&a_local, &a.0.ranges), (&b_local, &b.0.ranges))
    {
        return None;
    }
    if let (Some(0), Some(0)) = (a_local.as_constant(), b_local.as_constant())
        && slots_differ(&a_rest, &b_rest)
    {
        return None;
    }
    let known = |seen: &Seen, local: &Index| {
        let loops = enumerable(seen.touch, seen.depth);
        let mut all = true;
        local.for_each_var(&mut |s| all &= loops.iter().any(|l| l.var == *s));
        all
    };
    let usable = rest.as_constant().filter(|_| known(a.0, &a_local) && known(b.0, &b_local));
    Some(usable.map(|shift| Compared { earlier: a_local, later: b_local, shift }))
}

/// Whether both touches certainly reach the same index of that dimension, whatever those of the others are: both run through it
/// by loops that do nothing else, as `j` of `0..N`, from the same value on.
fn both_begin_there(earlier: &Seen, later: &Seen, dim: usize) -> bool {
    match (earlier.begins(dim), later.begins(dim)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

impl Seen<'_> {
    /// The index of a dimension in the first iteration of the loops that run through it, if they do nothing else.
    fn begins(&self, dim: usize) -> Option<Index> {
        let index = &self.touch.index[dim];
        let others = || (0..self.touch.index.len()).filter(|other| *other != dim);
        let mut first: Vec<(&Sym, &Index)> = Vec::new();
        for loop_ in self.touch.local(self.depth).filter(|l| index.mentions(&l.var)) {
            let Values::Span { lo, .. } = &loop_.values else { return None };
            let bound = self.touch.local(self.depth).any(|l| lo.mentions(&l.var));
            if bound || others().any(|other| self.touch.index[other].mentions(&loop_.var)) {
                return None;
            }
            first.push((&loop_.var, lo));
        }
        Some(index.substitute(&|s| first.iter().find(|(var, _)| *var == s).map(|(_, lo)| (*lo).clone())))
    }
}

/// The terms of an index that mention a variable of the touch's own loops, and the others with the constant.
fn split(seen: &Seen, index: &Index) -> (Index, Index) {
    index.parted(|atom| atom.mentions_any(|s| seen.touch.local(seen.depth).any(|l| l.var == *s)))
}

/// Whether `rest + b - a` cannot be 0 for any values in the intervals.
fn excludes_zero(rest: Interval, a: Interval, b: Interval) -> bool {
    let low = rest.lo.zip(b.lo).zip(a.hi).is_some_and(|((r, b), a)| {
        r.checked_add(b).and_then(|s| s.checked_sub(a)).is_some_and(|least| least > 0)
    });
    let high = rest.hi.zip(b.hi).zip(a.lo).is_some_and(|((r, b), a)| {
        r.checked_add(b).and_then(|s| s.checked_sub(a)).is_some_and(|most| most < 0)
    });
    low || high
}

/// Whether all terms of `rest + b - a` have a common divisor that its constant has not.
fn never_divides(rest: &Index, a: &Index, b: &Index) -> bool {
    let terms = rest.terms().iter().chain(a.terms()).chain(b.terms());
    let divisor = terms.fold(0, |g, (_, c)| gcd(g, *c));
    let constant = rest.constant_term() + b.constant_term() - a.constant_term();
    if divisor == 0 { constant != 0 } else { constant % divisor != 0 }
}

/// Whether `rest + b - a` steps over 0, given what the symbols of each can be: up to multiples of some coefficient it
/// keeps clear of it, as `64*x + i + 8` and `64*y + j` do if `i` and `j` are less than 8.
fn passes_by(rest: (&Index, &Ranges), a: (&Index, &Ranges), b: (&Index, &Ranges)) -> bool {
    let constant = rest.0.constant_term() + b.0.constant_term() - a.0.constant_term();
    let parts = [(rest, 1), (a, -1), (b, 1)];
    let clear = |period: i64| {
        let mut between = Interval::new(constant, constant);
        for ((index, ranges), sign) in parts {
            for (atom, c) in index.terms().iter().filter(|(_, c)| c % period != 0) {
                between = between.plus(ranges.of_term(atom, sign * c));
            }
        }
        let (Some(lo), Some(hi)) = (between.lo, between.hi) else { return false };
        lo.rem_euclid(period) != 0 && lo.div_euclid(period) == hi.div_euclid(period)
    };
    a.0.terms().iter().map(|(_, c)| c.abs()).filter(|c| *c > 1).any(clear)
}

/// Whether two slots of a ring, `x % d` and `y % d`, are never the same: `x - y` is a constant and no multiple of `d`.
fn slots_differ(a: &Index, b: &Index) -> bool {
    let slot = |i: &Index| match i.terms() {
        [(Atom::Mod(x, d), 1)] if i.constant_term() == 0 => Some((x.clone(), *d)),
        [] => Some((i.clone(), 0)),
        _ => None,
    };
    let (Some((x, d)), Some((y, e))) = (slot(a), slot(b)) else { return false };
    let depth = d.max(e);
    depth > 0 && (d == e || d == 0 || e == 0) && (&x - &y).as_constant().is_some_and(|c| c % depth != 0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::rc::Rc;

    use super::{Compared, Conflicts, Verdict, passes_by};
    use crate::index::{Index, Interval, Ranges};
    use crate::passes::synchronise::Group;
    use crate::passes::synchronise::pending::{Flight, Pending};
    use crate::passes::synchronise::touch::{Around, Kind, Touch, Values};
    use crate::sym::Sym;

    /// Numbers that look random and are the same every time.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, n: u64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % n) as i64
        }
    }

    /// A touch of two dimensions under `threads(4@8)`, `threads(8@1)` and a loop of 4.
    fn touch(numbers: &mut Numbers, buffer: &Sym) -> Touch {
        let vars = ["w", "t", "u"].map(Sym::new);
        let values = [
            Values::Threads { count: 4, pitch: 8 },
            Values::Threads { count: 8, pitch: 1 },
            Values::Span { lo: 0.into(), hi: 4.into(), step: 1 },
        ];
        let mut index: Vec<Index> = Vec::new();
        for _ in 0..2 {
            let weight = |numbers: &mut Numbers| [0, 0, 1, 2, 4, 8, 16, 32][numbers.below(8) as usize];
            let terms = vars.iter().map(|v| Index::var(v).scaled(weight(numbers)));
            let sum = terms.fold(Index::default(), |sum, term| &sum + &term);
            index.push(match numbers.below(4) {
                0 => sum.div(8),
                1 => sum.rem(8),
                _ => sum,
            });
        }
        if numbers.below(4) == 0 {
            index = vec![index[0].div(8), index[0].rem(8)];
        }
        let around = vars.into_iter().zip(values).map(|(var, values)| Around { var, values, depth: 1 });
        Touch {
            buffer: buffer.clone(),
            index,
            kind: Kind::Write,
            base: 0,
            size: 1,
            around: around.collect(),
            guards: Vec::new(),
        }
    }

    #[test]
    fn what_stays_clear_of_every_multiple_never_meets() {
        let [x, i, y, j, n] = ["x", "i", "y", "j", "n"].map(Sym::new);
        let mut ranges = Ranges::new();
        for fine in [&i, &j] {
            ranges.set(fine, Interval::new(0, 7));
        }
        let a = &Index::var(&x).scaled(64) + &Index::var(&i);
        let b = &Index::var(&y).scaled(64) + &Index::var(&j);
        let apart = |rest: Index| passes_by((&rest, &ranges), (&a, &ranges), (&b, &ranges));
        assert!(apart(8.into()) && apart(56.into()) && apart((-8).into()));
        assert!(!apart(0.into()) && !apart(7.into()) && !apart(57.into()) && !apart(64.into()));
        // Whole multiples of anything may be added, other unknown numbers may not.
        assert!(apart(Index::var(&n).scaled(128).offset(8)));
        assert!(!apart(Index::var(&n).scaled(32).offset(8)));
    }

    #[test]
    fn a_glance_sees_what_enumeration_finds() {
        let mut numbers = Numbers(7);
        let buffer = Sym::new("s");
        let block = Group { starts: Rc::from([0]), size: 32, whole: true, closed: false };
        let warps = Group { starts: (0..4).map(|w| 8 * w).collect(), size: 8, whole: false, closed: false };
        let mut seen = [0; 3];
        for round in 0..4000 {
            let earlier = touch(&mut numbers, &buffer);
            let mut later = touch(&mut numbers, &buffer);
            if round % 2 == 0 {
                // The same indices over loops of its own.
                let renamed: Vec<_> = earlier.around.iter().zip(&later.around).collect();
                let with =
                    |s: &Sym| renamed.iter().find(|(a, _)| a.var == *s).map(|(_, b)| Index::var(&b.var));
                later.index = earlier.index.iter().map(|i| i.substitute(&with)).collect();
            }
            let dims: Vec<Compared> = (earlier.index.iter().zip(&later.index))
                .map(|(a, b)| Compared {
                    earlier: a.clone(),
                    later: b.clone(),
                    shift: [0, 0, 0, 1, -8][numbers.below(5) as usize],
                })
                .collect();
            let p = Pending::new(Rc::new(earlier), 0, Flight::None);
            let group = if numbers.below(2) == 0 { &block } else { &warps };
            let mut conflicts = Conflicts::new(HashSet::new(), Ranges::new());
            let Some(verdict) = conflicts.at_a_glance(&p, &later, 0, group, &dims, true) else { continue };
            assert_eq!(
                verdict,
                conflicts.by_enumeration(&p, &later, 0, group, &dims, true),
                "{:?} and {:?}",
                p.touch.index,
                later.index
            );
            seen[match verdict {
                Verdict::Apart => 0,
                Verdict::Met { .. } => 1,
                Verdict::Torn => 2,
            }] += 1;
        }
        assert!(seen.iter().all(|n| *n > 50), "{seen:?}");
    }
}
