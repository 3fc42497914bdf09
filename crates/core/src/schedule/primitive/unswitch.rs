//! `unswitch`: a loop is taken apart by conditions in it that stay the same while it runs.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(x: in f32[8, 12], y: out f32[12]) {
//!   for b in block.x(1) { for w in threads(4@1) { for k in 0..8 {
//!     for i in 0..3 { if 3*w + i < 10 { y[3*w + i] = x[k, 3*w + i] } }
//!   } } }
//! }").unwrap();
//! let after = Schedule::run(before, "unswitch(y.k)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(x: in f32[8, 12], y: out f32[12])
//! {
//!   for b in block.x(1) {
//!     for w in threads(4@1) {
//!       if w < 3 {
//!         for k in 0..8, i in 0..3 {
//!           y[3*w + i] = x[k, 3*w + i]
//!         }
//!       } else {
//!         for k in 0..8, i in 0..1 {
//!           y[3*w + i] = x[k, 3*w + i]
//!         }
//!       }
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! The conditions are asked once, before the loop, and each version of it does what they leave: loops with a constant number
//! of iterations end with the last one that does anything. A condition around a matrix instruction costs as much as the
//! instruction, where the compiler predicates it; before the loop it costs a branch. Later steps apply to all versions.
//!
//! Conditions that loops around the loop decide are taken, of those on loops inside it one for each of their values. Loops around with
//! few iterations are tried value by value, so that no two versions stand for the same of them.

use crate::diag::Diagnosis;
use crate::index::{Comparison, Cond, Index, gcd};
use crate::ir::{For, If, Mode, Program, Range, Space, Stmt, walk};
use crate::schedule::facts::Facts;
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Effects, at_loops, head, over_warps};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "unswitch(label.loop)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Unswitch {
    /// The loop.
    pub target: LoopRef,
}

/// At most so many versions: each is code of its own.
const VERSIONS: usize = 16;

/// Loops of at most so many iterations are tried value by value.
const VALUES: i64 = 64;

/// At most so many values of the loops around, together.
const CASES: usize = 1024;

impl Unswitch {
    pub(super) fn read(call: &Call) -> Result<Unswitch, Diagnosis> {
        if call.args.len() != 1 {
            return Err(call.wrong("one loop is wanted"));
        }
        Ok(Unswitch { target: call.loop_at(0)? })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be unswitched", self.target)).because(because)
    }
}

impl Primitive for Unswitch {
    fn call(&self) -> Call {
        Call::new("unswitch").target(&self.target)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        at_loops(program, &self.target, &mut |l, place| {
            if !matches!(l.mode, Mode::Serial | Mode::Unroll) {
                return Err(self.refuse("it is bound or vectorized").instead("unswitch a loop inside it"));
            }
            if l.counting.is_some() {
                return Err(self.refuse("its iterations are counted beyond its end"));
            }
            let effects = Effects::of(&l.body);
            let buffers = program.buffers();
            let shared = |s: &&Sym| buffers.get(s).is_some_and(|b| b.space == Space::Shared);
            let mut met = effects.stores.iter().chain(&effects.updates).find(shared).cloned();
            walk::for_each(&l.body, &mut |stmt| match stmt {
                Stmt::Alloc(b) if b.space == Space::Shared => met = Some(b.sym.clone()),
                _ => {}
            });
            if let Some(met) = met {
                return Err(self.refuse(format!(
                    "threads meet where `{}` is written, and in versions of their own they would not",
                    met.name()
                )));
            }
            if effects.synchronises {
                return Err(self.refuse("threads wait in it, and in versions of their own they would not"));
            }
            let facts = place.facts();
            let mut inside = walk::binders(&l.body);
            inside.push(l.var.clone());
            if works_as_warps(&l.body) {
                // A warp stays together.
                let apart = |l: &&&For| matches!(l.mode, Mode::Threads { .. }) && !over_warps(l.mode);
                inside.extend(place.outer().iter().filter(apart).map(|l| l.var.clone()));
            }
            let mut found = Vec::new();
            Conditions { inside: &inside, counted: Vec::new() }.collect(&l.body, &mut found);
            let around = Around { cases: Cases::of(&place.outer(), &found), facts };
            if around.undecided(&found).is_none() {
                return Err(self
                    .refuse("no condition in it depends only on what stands around it")
                    .instead("leave it out, or apply it after the step that makes conditions"));
            }
            let mut left = VERSIONS;
            versions(&l, around, &found, &mut left).ok_or_else(|| {
                self.refuse(format!("its conditions make more than {VERSIONS} versions of it"))
                    .instead("give each warp fewer tiles, or unswitch a loop with fewer conditions")
            })
        })
    }
}

/// A variable of a loop and its values.
type Counted = (Sym, std::ops::Range<i64>);

/// Whether an instruction is among the statements: those of matrices are carried out by whole warps.
fn works_as_warps(stmts: &[Stmt]) -> bool {
    let mut found = false;
    walk::for_each(stmts, &mut |s| found |= matches!(s, Stmt::Instruction(_)));
    found
}

/// The conditions in a loop, in terms of what stands around it.
struct Conditions<'a> {
    /// Variables that conditions must not mention: those of the loop and inside it, and those that differ between threads
    /// that stay together.
    inside: &'a [Sym],
    /// Loops inside it with constant ranges.
    counted: Vec<Counted>,
}

impl Conditions<'_> {
    /// Notes every condition that is the same in each iteration of the loop, once for each value of loops inside.
    fn collect(&mut self, stmts: &[Stmt], found: &mut Vec<Cond>) {
        for stmt in stmts {
            match stmt {
                Stmt::If(i) => {
                    for conjunct in i.cond.conjuncts() {
                        self.note(conjunct, found);
                    }
                    self.collect(&i.then, found);
                    self.collect(&i.otherwise, found);
                }
                Stmt::For(l) => match values(l) {
                    Some(range) => {
                        self.counted.push((l.var.clone(), range));
                        self.collect(&l.body, found);
                        self.counted.pop();
                    }
                    None => self.collect(&l.body, found),
                },
                _ => {}
            }
        }
    }

    fn note(&self, cond: &Cond, found: &mut Vec<Cond>) {
        if !matches!(cond, Cond::Compare(Comparison::Lt | Comparison::Le, ..)) {
            return;
        }
        each_instance(cond, &self.counted, &mut |instance| {
            let normal = normal(instance);
            let mut changes = false;
            normal.for_each_var(&mut |s| changes |= self.inside.contains(s));
            if !changes && normal.as_constant().is_none() && !found.contains(&normal) {
                found.push(normal);
            }
        });
    }
}

/// The values of a loop that runs through a few neighbours, one after another.
fn values(l: &For) -> Option<std::ops::Range<i64>> {
    let Range::Span { lo, hi, step } = &l.range else { return None };
    let ordinary = matches!(l.mode, Mode::Serial | Mode::Unroll) && step.as_constant() == Some(1);
    let range = lo.as_constant()?..hi.as_constant()?;
    (ordinary && l.counting.is_none() && range.end - range.start <= VALUES).then_some(range)
}

/// Offers the condition with every combination of values of those loops that it mentions.
fn each_instance(cond: &Cond, counted: &[Counted], offer: &mut dyn FnMut(&Cond)) {
    match counted.iter().position(|(var, _)| cond.mentions(var)) {
        None => offer(cond),
        Some(at) => {
            let (var, range) = &counted[at];
            for value in range.clone() {
                let instance = cond.substitute(&|s| (s == var).then(|| Index::constant(value)));
                each_instance(&instance, counted, offer);
            }
        }
    }
}

/// The same condition on whole numbers with the smallest coefficients: of `48*w + 16 < 104` is left `w < 2`.
fn normal(cond: &Cond) -> Cond {
    let Cond::Compare(how @ (Comparison::Lt | Comparison::Le), a, b) = cond else { return cond.clone() };
    let room = (b - a).offset(-i64::from(*how == Comparison::Lt));
    let common = room.terms().iter().fold(0, |common, (_, factor)| gcd(common, *factor));
    if common <= 1 {
        return cond.clone();
    }
    let terms = &room - &Index::from(room.constant_term());
    let terms = terms.div(common);
    // 0 <= terms + least, in the way that people write it.
    let least = room.constant_term().div_euclid(common);
    Cond::lt(terms.scaled(-1), Index::from(least + 1))
}

/// The values that loops around may have, together.
#[derive(Clone)]
struct Cases {
    vars: Vec<Sym>,
    left: Vec<Vec<i64>>,
}

impl Cases {
    /// Of the loops that conditions mention and that have few values.
    fn of(outer: &[&For], conditions: &[Cond]) -> Cases {
        let mut cases = Cases { vars: Vec::new(), left: vec![Vec::new()] };
        for l in outer {
            let Range::Span { lo, hi, step } = &l.range else { continue };
            let (Some(lo), Some(hi), Some(1)) = (lo.as_constant(), hi.as_constant(), step.as_constant())
            else {
                continue;
            };
            let several = cases.left.len().saturating_mul((hi - lo).clamp(0, VALUES + 1) as usize);
            if hi - lo <= VALUES && several <= CASES && conditions.iter().any(|c| c.mentions(&l.var)) {
                let with = |case: &Vec<i64>| (lo..hi).map(|v| [&case[..], &[v]].concat()).collect::<Vec<_>>();
                cases.left = cases.left.iter().flat_map(with).collect();
                cases.vars.push(l.var.clone());
            }
        }
        cases
    }

    fn holds(&self, cond: &Cond, case: &[i64]) -> Option<bool> {
        cond.eval(&|s| self.vars.iter().position(|v| v == s).map(|at| case[at])).ok()
    }

    /// Whether a condition holds in all cases that are left, or in none.
    fn decided(&self, cond: &Cond) -> Option<bool> {
        let first = self.holds(cond, self.left.first()?)?;
        self.left.iter().all(|case| self.holds(cond, case) == Some(first)).then_some(first)
    }
}

/// What is known around a version of the loop.
#[derive(Clone)]
struct Around {
    facts: Facts,
    cases: Cases,
}

impl Around {
    /// Whether a condition always holds, or never.
    fn decided(&self, cond: &Cond) -> Option<bool> {
        let by_facts = || {
            let never = || self.facts.proves(&cond.clone().negate()).then_some(false);
            if self.facts.proves(cond) { Some(true) } else { never() }
        };
        self.cases.decided(cond).or_else(by_facts)
    }

    fn assume(&mut self, cond: &Cond) {
        self.facts.assume(cond);
        let cases = std::mem::take(&mut self.cases.left);
        self.cases.left =
            cases.into_iter().filter(|case| self.cases.holds(cond, case) != Some(false)).collect();
    }

    /// The first of the conditions that is neither known to hold nor known not to.
    fn undecided<'a>(&self, found: &'a [Cond]) -> Option<&'a Cond> {
        found.iter().find(|cond| self.decided(cond).is_none())
    }
}

/// The loop where so much is known, taken apart by what is not; `None` if that makes more versions than are `left`.
fn versions(l: &For, around: Around, found: &[Cond], left: &mut usize) -> Option<Vec<Stmt>> {
    let Some(cond) = around.undecided(found) else {
        *left = left.checked_sub(1)?;
        let mut inside = around;
        inside.facts.enter(l);
        let body = Known { around: inside, counted: Vec::new() }.reduced(&l.body);
        if body.is_empty() {
            return Some(Vec::new());
        }
        return Some(vec![Stmt::For(For { body: body.into(), ..head(l) })]);
    };
    let mut branch = |cond: Cond| {
        let mut around = around.clone();
        around.assume(&cond);
        versions(l, around, found, left)
    };
    let then = branch(cond.clone())?;
    let otherwise = walk::refresh(&branch(cond.clone().negate())?);
    let (cond, then, otherwise) = match (then.is_empty(), otherwise.is_empty()) {
        (true, true) => return Some(Vec::new()),
        (true, false) => (cond.clone().negate(), otherwise, then),
        _ => (cond.clone(), then, otherwise),
    };
    Some(vec![Stmt::If(If { cond, then: then.into(), otherwise: otherwise.into() })])
}

/// What is known inside a version of the loop.
struct Known {
    around: Around,
    /// The loops around with constant ranges.
    counted: Vec<Counted>,
}

impl Known {
    /// Whether a condition always holds, or never.
    fn decided(&self, cond: &Cond) -> Option<bool> {
        let (mut all, mut none) = (true, true);
        each_instance(cond, &self.counted, &mut |instance| {
            let decided = self.around.decided(&normal(instance));
            all &= decided == Some(true);
            none &= decided == Some(false);
        });
        if all {
            Some(true)
        } else if none {
            Some(false)
        } else {
            None
        }
    }

    /// Whether the statements do nothing.
    fn idle(&mut self, stmts: &[Stmt]) -> bool {
        stmts.iter().all(|stmt| match stmt {
            Stmt::If(i) if i.cond.conjuncts().iter().any(|c| self.decided(c) == Some(false)) => {
                self.idle(&i.otherwise)
            }
            Stmt::If(i) => self.idle(&i.then) && self.idle(&i.otherwise),
            Stmt::For(l) => match values(l) {
                Some(range) => self.within(l, range, |known| known.idle(&l.body)),
                None => false,
            },
            _ => false,
        })
    }

    /// What `f` says inside a loop with these values.
    fn within<T>(&mut self, l: &For, range: std::ops::Range<i64>, f: impl FnOnce(&mut Known) -> T) -> T {
        self.counted.push((l.var.clone(), range));
        let said = f(self);
        self.counted.pop();
        said
    }

    /// The statements without what never happens, and without conditions that always hold.
    fn reduced(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        stmts.iter().flat_map(|stmt| self.reduced_one(stmt)).collect()
    }

    fn reduced_one(&mut self, stmt: &Stmt) -> Vec<Stmt> {
        match stmt {
            Stmt::If(i) => {
                let mut left = Cond::TRUE;
                for conjunct in i.cond.conjuncts() {
                    match self.decided(conjunct) {
                        Some(true) => {}
                        Some(false) => return self.reduced(&i.otherwise),
                        None => left = left.and(conjunct.clone()),
                    }
                }
                let then = self.reduced(&i.then);
                if left == Cond::TRUE {
                    return then;
                }
                let otherwise = self.reduced(&i.otherwise).into();
                vec![Stmt::If(If { cond: left, then: then.into(), otherwise })]
            }
            Stmt::For(l) => self.shortened(l),
            other => vec![other.clone()],
        }
    }

    /// The loop to the last iteration that does anything.
    fn shortened(&mut self, l: &For) -> Vec<Stmt> {
        let Some(range) = values(l) else {
            let around = self.around.clone();
            self.around.facts.enter(l);
            let body = self.reduced(&l.body);
            self.around = around;
            return vec![Stmt::For(For { body: body.into(), ..head(l) })];
        };
        let busy =
            range.clone().rfind(|value| !self.within(l, *value..*value + 1, |known| known.idle(&l.body)));
        let Some(last) = busy else { return Vec::new() };
        let body = self.within(l, range.start..last + 1, |known| known.reduced(&l.body));
        let span = Range::Span { lo: range.start.into(), hi: (last + 1).into(), step: 1.into() };
        let range = if last + 1 == range.end { l.range.clone() } else { span };
        vec![Stmt::For(For { body: body.into(), range, ..head(l) })]
    }
}

#[cfg(test)]
mod tests {
    use crate::index::Cond;
    use crate::ir::{If, Program, Stmt, parse};
    use crate::schedule::Schedule;
    use crate::sym::Sym;

    fn run(text: &str, steps: &str) -> Result<String, String> {
        let program = parse::program(text).expect("reads");
        Schedule::run(program, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    /// Tiles of four warps: two along rows, two along columns, of which the last have less.
    const TILES: &str = "program p(x: in f32[8, 12], y: out f32[8, 5, 7]) {
      for b in block.x(1) { for u in threads(2@64) { for w in threads(2@32) { for l in threads(32@1) { for k in 0..8 {
        for i in 0..3, j in 0..4 {
          if 3*u + i < 5 && 4*w + j < 7 { y[k, 3*u + i, 4*w + j] = x[k, 3*u + i] }
        }
      } } } } }
    }";

    #[test]
    fn each_combination_of_conditions_has_a_version() {
        let after = run(TILES, "unswitch(y.k)").expect("is taken");
        let versions: Vec<&str> = after.lines().filter(|l| l.contains("for k in")).map(str::trim).collect();
        let expected = [(3, 4), (3, 3), (2, 4), (2, 3)]
            .map(|(rows, columns)| format!("for k in 0..8, i in 0..{rows}, j in 0..{columns} {{"));
        assert_eq!(versions, expected, "{after}");
        assert_eq!(after.matches("if ").count(), 3, "{after}");
        // Later steps find all of them.
        let unrolled = run(TILES, "unswitch(y.k)\nunroll(y.j)").expect("is taken");
        assert_eq!(unrolled.matches("j in unroll 0..").count(), 4, "{unrolled}");
    }

    #[test]
    fn what_changes_in_the_loop_stays_in_it() {
        let text = "program p(x: in f32[8], y: out f32[8]) {
          for b in block.x(1) { for w in threads(4@1) { for k in 0..8 {
            if k < 5 && w < 3 { y[k] = x[k] } else { if w + k < 4 { y[k] = 1 } }
          } } }
        }";
        let after = run(text, "unswitch(y.k)").expect("is taken");
        assert_eq!(after.matches("if w < 3").count(), 1, "{after}");
        assert_eq!(after.matches("if k < 5").count(), 1, "{after}");
        assert_eq!(after.matches("if w + k < 4").count(), 2, "{after}");
    }

    #[test]
    fn refusals_say_why() {
        let refused = |text: &str, why: &str| {
            let said = run(text, "unswitch(y.k)").expect_err("is refused");
            assert!(said.contains(why), "{said}");
        };
        let plain = "program p(x: in f32[8], y: out f32[8]) { for k in 0..8 { if k < 5 { y[k] = x[k] } } }";
        refused(plain, "no condition in it depends only on what stands around it");
        let shared = "program p(x: in f32[4], y: out f32[4, 4]) { for b in block.x(1) {
          alloc s: f32[4] shared
          for w in threads(4@1) { for k in 0..4 { if w < 3 { s[w] = x[k]  y[k, w] = s[w] } } }
        } }";
        refused(shared, "threads meet where `s` is written");
        let bound = "program p(n: size, y: out f32[n]) { for b in block.x(1) { for k in threads(4@1) {
          if k < n { y[k] = 1 } } } }";
        refused(bound, "bound");
        let many =
            "program p(y: out f32[8, 64]) { for b in block.x(1) { for w in threads(32@1) { for k in 0..8 {
          for i in 0..20 { if w + i < 24 { y[k, w + i] = 1 } } } } } }";
        refused(many, "versions of it");
    }

    #[test]
    fn a_version_that_does_nothing_is_left_out() {
        let text = "program p(x: in f32[8], y: out f32[8, 4]) { for b in block.x(1) { for w in threads(4@1) { for k in 0..8 {
          if 1 <= w { y[k, w] = x[k] }
        } } } }";
        let after = run(text, "unswitch(y.k)").expect("is taken");
        assert!(after.contains("if 1 <= w {") && !after.contains("else"), "{after}");
    }

    /// Lanes of a warp may not go different ways where matrix instructions are.
    #[test]
    fn conditions_on_lanes_stay_where_instructions_are() {
        let text = "program p(x: in f64[16, 4], z: in f64[4, 8], y: out f64[16, 8]) {
          for b in block.x(1) { for w in threads(1@32) {
            alloc acc: f64[16, 8] reg frag D16x8
            alloc a: f64[16, 4] reg frag A16x4
            alloc c: f64[4, 8] reg frag B4x8
            for (i, j) in own acc[:, :] { acc[i, j] = 0 }
            for (i, j) in own a[:, :] { a[i, j] = x[i, j] }
            for (i, j) in own c[:, :] { c[i, j] = z[i, j] }
            for l in threads(32@1) { for k in 0..4 {
              if l < 16 { acc[0, 0] = 0 }
              mma_m16n8k4_f64(acc[:, :], a[:, :], c[:, :])
            } }
            for (i, j) in own acc[:, :] { y[i, j] = acc[i, j] }
          } }
        }";
        let said = run(text, "unswitch(acc.k)").expect_err("is refused");
        assert!(said.contains("no condition in it"), "{said}");
    }

    /// The versions of the loop over `k`, each with the conditions on the way to it and the iterations of the
    /// loops in it.
    fn versions_of(stmts: &[Stmt], given: &Cond, found: &mut Vec<(Cond, [i64; 2])>) {
        for stmt in stmts {
            match stmt {
                Stmt::For(l) if l.var.name() == "k" => {
                    let [Stmt::For(i)] = &l.body[..] else { panic!("there are rows in it") };
                    let [Stmt::For(j)] = &i.body[..] else { panic!("there are columns in it") };
                    assert!(matches!(j.body[..], [Stmt::Assign(_)]), "nothing is asked in it");
                    let extents = [i, j].map(|l| l.range.constant_trip_count().expect("it is constant"));
                    found.push((given.clone(), extents));
                }
                Stmt::For(l) => versions_of(&l.body, given, found),
                Stmt::If(If { cond, then, otherwise }) => {
                    versions_of(then, &given.clone().and(cond.clone()), found);
                    versions_of(otherwise, &given.clone().and(cond.clone().negate()), found);
                }
                _ => {}
            }
        }
    }

    /// Asserts that there are these versions and no other, and that each warp takes the one for what `of` says
    /// that it has.
    fn has_versions(after: &Program, expected: &[[i64; 2]], rows: i64, of: impl Fn(i64, i64) -> [i64; 2]) {
        let mut versions = Vec::new();
        versions_of(&after.body, &Cond::TRUE, &mut versions);
        let mut extents: Vec<_> = versions.iter().map(|(_, extents)| *extents).collect();
        extents.sort_unstable();
        assert_eq!(extents, expected, "{after}");
        let mut ran = vec![false; versions.len()];
        for (u, w) in (0..rows).flat_map(|u| (0..4).map(move |w| (u, w))) {
            let value = |s: &Sym| Some(if s.name() == "u" { u } else { w });
            let taken = |at: &usize| versions[*at].0.eval(&value).expect("all is known");
            let taken: Vec<usize> = (0..versions.len()).filter(taken).collect();
            let [at] = taken[..] else { panic!("warp {u}, {w} has {} versions: {after}", taken.len()) };
            assert_eq!(versions[at].1, of(u, w), "warp {u}, {w} of {after}");
            ran[at] = true;
        }
        assert!(ran.iter().all(|ran| *ran), "some version is nobody's: {after}");
    }

    #[test]
    fn warps_with_even_parts_of_rows_and_columns_have_four_versions() {
        let text = "program p(x: in f32[8, 7], y: out f32[8, 7, 13]) {
          for b in block.x(1) { for k in 0..8, i in 0..7, j in 0..13 { y[k, i, j] = x[k, i] } }
        }";
        let steps = "split(y.i, nparts=4, even=1) -> u, i
            split(y.j, nparts=4, even=1) -> w, j
            reorder(y.u, y.w, y.k, y.i, y.j)
            bind(y.u, y.w, threads@32)";
        let tiles = |all: i64, at: i64| (at + 1) * all / 4 - at * all / 4;
        for (rotate, turn) in [("", 0), ("rotate(y.w, y.u)", 1)] {
            let steps = format!("{steps}\n{rotate}\nunswitch(y.k)");
            let schedule = Schedule::run(parse::program(text).expect("reads"), &steps).expect("is taken");
            let expected = [[1, 3], [1, 4], [2, 3], [2, 4]];
            let of = |u, w| [tiles(7, u), tiles(13, (w + turn * u) % 4)];
            has_versions(schedule.program(), &expected, 4, of);
        }
    }

    #[test]
    fn a_version_that_no_warp_takes_is_not_made() {
        // Nobody has the one short row of tiles and the long column of tiles.
        let text = "program p(x: in f32[8, 7], y: out f32[8, 7, 13]) {
          for b in block.x(1) { for w in threads(4@32) { for k in 0..8, i in 0..2, j in 0..4 {
            if (7*w)/4 + i < (7*w + 7)/4 && (13*w)/4 + j < (13*w + 13)/4 {
              y[k, (7*w)/4 + i, (13*w)/4 + j] = x[k, (7*w)/4 + i]
            }
          } } }
        }";
        let schedule =
            Schedule::run(parse::program(text).expect("reads"), "unswitch(y.k)").expect("is taken");
        let tiles = |all: i64, at: i64| (at + 1) * all / 4 - at * all / 4;
        has_versions(schedule.program(), &[[1, 3], [2, 3], [2, 4]], 1, |_, w| [tiles(7, w), tiles(13, w)]);
    }
}
