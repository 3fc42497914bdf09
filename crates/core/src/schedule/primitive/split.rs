//! `split`: one loop becomes two.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   for i in 0..n { y[i] = x[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "split(y.i, 32) -> io, ii").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n], y: out f32[n])
//! {
//!   for io in 0..ceil(n, 32), ii in 0..32 {
//!     if 32*io + ii < n {
//!       y[32*io + ii] = x[32*io + ii]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! Where the factor is not known to divide, a tail remains. `tail=guard`, the rule for loops over the result, guards
//! the leaves. `tail=fill`, the rule for reduction loops, lets the extra iterations run and gives every operand of
//! the reduction the value that the reduction does not see: 0 where products are summed. `nparts` splits into a given
//! number of outer iterations and needs a constant extent.
//!
//! Parts that are all of one length leave little for the last: of 13 tiles four warps take 4, 4, 4 and 1. With `even` the parts differ by one
//! piece of so many iterations at most, and the outer loop has a constant number of iterations again.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! # let before = parse::program("program p(x: in f32[100], y: out f32[100]) {
//! #   for i in 0..100 { y[i] = x[i] }
//! # }").unwrap();
//! // 100 iterations are 13 pieces of 8, the last of which is short: 3, 3, 3 and 4.
//! let after = Schedule::run(before, "split(y.i, nparts=4, even=8) -> p, i").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(x: in f32[100], y: out f32[100])
//! {
//!   for p in 0..4, i in 0..32 {
//!     if 8*((13*p)/4) + i < 8*((13*p + 1)/4) + 24 && 8*((13*p)/4) + i < 100 {
//!       y[8*((13*p)/4) + i] = x[8*((13*p)/4) + i]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! Where memory begins within a line, so may the parts: `ahead` says how many iterations before the loop the first part begins. Of 32 threads
//! that copy what starts 3 elements behind a line, the first three have nothing to do in their first turn, and those behind them in their last.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! # let before = parse::program("program p(x: in f32[128], y: out f32[128]) {
//! #   for i in 0..128 { y[i] = x[i] }
//! # }").unwrap();
//! let after = Schedule::run(before, "split(y.i, 32, ahead=3) -> u, t").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(x: in f32[128], y: out f32[128])
//! {
//!   for u in 0..5, t in 0..32 {
//!     if 0 <= 32*u + t - 3 && 32*u + t - 3 < 128 {
//!       y[32*u + t - 3] = x[32*u + t - 3]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! The last variable of a loop over owned elements goes by runs then: its owner does the elements of each in a loop of
//! their own, which can become one wide access. The fragment has to give runs of so many neighbours to one thread.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! # let before = parse::program("program p(C: out f64[16, 8]) {
//! #   for b in block.x(1) { for w in threads(1@32) {
//! #     alloc acc: f64[16, 8] reg frag D16x8
//! #     for (i, j) in own acc[:, :] { acc[i, j] = 0 }
//! #     for (i, j) in own acc[:, :] { C[i, j] = acc[i, j] }
//! #   } }
//! # }").unwrap();
//! // for (i, j) in own acc[:, :] { C[i, j] = acc[i, j] }
//! let after = Schedule::run(before, "split(C.j, 2) -> j, v\nvectorize(C.v)").unwrap();
//! assert!(after.program().to_string().contains("\
//!       for (i, j by 2) in own acc[:, :] {
//!         for v in vector 0..2 {
//!           C[i, j + v] = acc[i, j + v]
//!         }
//!       }
//! "));
//! ```

use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::ir::{Assign, AssignOp, For, Mode, Own, Program, Range, Stmt, walk};
use crate::schedule::facts::Facts;
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Place, fill, guard_leaves, head, rewrite};
use crate::schedule::step::{Argument, Call};
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "split(label.loop, factor [, ahead=iterations] [, tail=guard|fill]) -> outer, inner, \
                                or split(label.loop, nparts=count [, even=pieces]) -> outer, inner";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Split {
    /// The loop.
    pub target: LoopRef,
    /// How far.
    pub by: By,
    /// What to do where the factor does not divide; by rule if `None`.
    pub tail: Option<Tail>,
    /// The names of the two loops.
    pub names: [String; 2],
}

/// How a loop is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The inner loop has this many iterations.
    Factor(i64),
    /// The inner loop has this many iterations, and the first one begins so many before the loop does.
    Ahead {
        /// Iterations of the inner loop.
        factor: i64,
        /// How many of the first one are no iterations of the loop.
        ahead: i64,
    },
    /// The outer loop has this many iterations.
    Parts(i64),
    /// The outer loop has `parts` iterations, which take whole pieces of `piece` iterations, none more than one piece more than another.
    Evenly {
        /// How many parts.
        parts: i64,
        /// Iterations of a piece.
        piece: i64,
    },
}

/// What happens to the iterations past the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Their statements are guarded.
    Guard,
    /// They run on neutral operands.
    Fill,
}

/// The parts of a loop.
struct Parts {
    /// The first iteration of a part.
    first: Index,
    outer_extent: Index,
    /// Iterations of the longest part.
    inner_extent: i64,
    /// Where the next part begins, if some are shorter than others.
    short: Option<Index>,
    /// Whether the first part begins before the loop does.
    ahead: bool,
}

impl Split {
    pub(super) fn read(call: &Call) -> Result<Split, Diagnosis> {
        let target = call.loop_at(0)?;
        let number = |option: &str| call.option_of(option).map(str::parse::<i64>);
        let by = match (call.args.get(1), number("nparts"), number("even")) {
            (Some(Argument::Int(factor)), None, None) => match number("ahead") {
                None => By::Factor(*factor),
                Some(Ok(ahead)) if (0..*factor).contains(&ahead) => By::Ahead { factor: *factor, ahead },
                Some(_) => {
                    return Err(call.wrong("it begins fewer iterations ahead than the factor says, or none"));
                }
            },
            (None, Some(Ok(p)), None) => By::Parts(p),
            (None, Some(Ok(parts)), Some(Ok(piece))) => By::Evenly { parts, piece },
            (_, None, Some(_)) => return Err(call.wrong("even parts need nparts, too")),
            _ => return Err(call.wrong("a factor or nparts is wanted")),
        };
        if matches!(by, By::Factor(n) | By::Parts(n) if n < 1)
            || matches!(by, By::Evenly { parts, piece } if parts < 1 || piece < 1)
        {
            return Err(call.wrong("the factor must be positive"));
        }
        let tail = match call.option_of("tail") {
            None => None,
            Some("guard") => Some(Tail::Guard),
            Some("fill") => Some(Tail::Fill),
            Some(_) => return Err(call.wrong("there is no such strategy for tails")),
        };
        let names = match &call.results[..] {
            [outer, inner] => [outer.clone(), inner.clone()],
            [] => [format!("{}o", target.name), format!("{}i", target.name)],
            _ => return Err(call.wrong("two names must follow `->`")),
        };
        Ok(Split { target, by, tail, names })
    }

    fn split(&self, l: For, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        let Range::Span { lo, hi, step } = &l.range else {
            return Err(self.refuse("it runs over a list or a part"));
        };
        if lo.as_constant() != Some(0) || step.as_constant() != Some(1) || l.counting.is_some() {
            return Err(self.refuse("it does not count from 0 by 1"));
        }
        if l.mode != Mode::Serial {
            return Err(self
                .refuse("it is already bound, unrolled or vectorized")
                .instead("split it before"));
        }
        let (outer, inner) = (Sym::new(&self.names[0]), Sym::new(&self.names[1]));
        let Parts { first, outer_extent, inner_extent, short, ahead } = self.parts(hi, &outer)?;
        let index = &first + &Index::var(&inner);
        let body = walk::substitute(&l.body, &|s| (*s == l.var).then(|| index.clone()));
        let mut facts = place.facts();
        facts.enter_range(&outer, &outer_extent);
        facts.enter_range(&inner, &Index::from(inner_extent));
        let behind = short.map_or(Cond::TRUE, |next| Cond::lt(index.clone(), next));
        let begun = if ahead { Cond::le(0.into(), index.clone()) } else { Cond::TRUE };
        let guard = facts.remaining(&begun.and(behind).and(Cond::lt(index, hi.clone())));
        if guard != Cond::TRUE && numbers_parts(&l) {
            return Err(self
                .refuse("it numbers parts of a range, and there are none past the last")
                .instead("split by a factor of its extent"));
        }
        let body = if guard == Cond::TRUE { body } else { self.tail(body, &guard, &l.var, &l.body, &facts)? };
        let inner = For::serial(&inner, Range::upto(inner_extent), body);
        Ok(vec![Stmt::For(For {
            var: outer,
            range: Range::upto(outer_extent),
            body: vec![inner].into(),
            ..head(&l)
        })])
    }

    /// The parts of a loop over `0..hi` that `outer` numbers.
    fn parts(&self, hi: &Index, outer: &Sym) -> Result<Parts, Diagnosis> {
        let constant = || {
            hi.as_constant().ok_or_else(|| {
                self.refuse("nparts of a symbolic extent multiplies two symbols").instead("give the factor")
            })
        };
        let (factor, ahead) = match self.by {
            By::Factor(factor) => (factor, 0),
            By::Ahead { factor, ahead } => (factor, ahead),
            By::Parts(parts) => ((constant()? + parts - 1).div_euclid(parts).max(1), 0),
            By::Evenly { parts, piece } => {
                let pieces = (constant()? + piece - 1).div_euclid(piece);
                // Parts that end where the next begins: for `parts` that divide all pieces this is a factor times `outer`.
                let first = |part: Index| part.scaled(pieces).div(parts).scaled(piece);
                let next = first(Index::var(outer).offset(1));
                return Ok(Parts {
                    first: first(Index::var(outer)),
                    outer_extent: parts.into(),
                    inner_extent: (pieces + parts - 1).div_euclid(parts).max(1) * piece,
                    short: (pieces % parts != 0).then_some(next),
                    ahead: false,
                });
            }
        };
        Ok(Parts {
            first: Index::var(outer).scaled(factor).offset(-ahead),
            outer_extent: hi.offset(ahead).ceil_div(factor),
            inner_extent: factor,
            short: None,
            ahead: ahead > 0,
        })
    }

    /// A loop over owned elements, by runs of neighbours.
    fn in_runs(&self, o: &Own, place: &Place) -> Result<Stmt, Diagnosis> {
        let By::Factor(run) = self.by else {
            return Err(self.refuse("it is over owned elements, and how many neighbours is wanted"));
        };
        let last = o.vars.last().filter(|v| v.name() == self.target.name);
        let Some(var) = last else {
            return Err(self
                .refuse("only neighbours in a row are in runs")
                .instead("split the last variable of the loop"));
        };
        if o.run != 1 || self.tail.is_some() {
            return Err(self.refuse("runs are whole, and split once"));
        }
        let (first, inner) = (Sym::new(&self.names[0]), Sym::new(&self.names[1]));
        let index = &Index::var(&first) + &Index::var(&inner);
        let body = walk::substitute(&o.body, &|s| (s == var).then(|| index.clone()));
        let vars = o.vars.iter().map(|v| if v == var { first.clone() } else { v.clone() }).collect();
        let body = vec![For::serial(&inner, Range::upto(run), body)].into();
        let runs = Own { vars, run, body, ..o.clone() };
        let buffers = place.program.buffers();
        if !buffers.get(&o.window.buffer).is_some_and(|buffer| runs.has_runs(buffer)) {
            let what = format!("no thread has the elements of `{}` in runs of {run}", o.window.buffer);
            return Err(self.refuse(&what).instead("take a shorter run, or leave single elements"));
        }
        Ok(Stmt::Own(runs))
    }

    /// The body with its tail taken care of. `original` is the body before substitution, over `var`.
    fn tail(
        &self,
        body: Vec<Stmt>,
        guard: &Cond,
        var: &Sym,
        original: &[Stmt],
        facts: &Facts,
    ) -> Result<Vec<Stmt>, Diagnosis> {
        let reduction = is_reduction_over(original, var);
        match self.tail {
            Some(Tail::Guard) => Ok(guard_leaves(body, guard)),
            Some(Tail::Fill) if !reduction => Err(self.refuse("only the loop of a reduction can be filled")),
            None if !reduction => Ok(guard_leaves(body, guard)),
            _ => match fill(body.clone(), guard, facts) {
                Some(filled) => Ok(filled),
                None if self.tail.is_none() => Ok(guard_leaves(body, guard)),
                None => Err(self.refuse("not every operand of the reduction is a load that can be filled")),
            },
        }
    }

    fn refuse(&self, because: &str) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be split", self.target)).because(because)
    }
}

impl Primitive for Split {
    fn call(&self) -> Call {
        let call = Call::new("split").target(&self.target);
        let call = match self.by {
            By::Factor(f) => call.int(f),
            By::Ahead { factor, ahead } => call.int(factor).option("ahead", ahead),
            By::Parts(p) => call.option("nparts", p),
            By::Evenly { parts, piece } => call.option("nparts", parts).option("even", piece),
        };
        let call = match self.tail {
            None => call,
            Some(Tail::Guard) => call.option("tail", "guard"),
            Some(Tail::Fill) => call.option("tail", "fill"),
        };
        call.gives(&self.names)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut count = 0;
        let body = rewrite(&program.body, &Place::of(program), &mut |stmt, place| {
            let split = match stmt {
                Stmt::For(l) if self.target.means(l) => self.split(l.clone(), place)?,
                Stmt::Own(o) if self.target.means_owned(o) => vec![self.in_runs(o, place)?],
                _ => return Ok(None),
            };
            count += 1;
            Ok(Some(split))
        })?;
        if count == 0 {
            return Err(self.target.unknown(program));
        }
        Ok(program.with_body(body))
    }
}

/// Whether the variable of a loop says which part of a range a loop inside takes.
fn numbers_parts(l: &For) -> bool {
    let mut found = false;
    walk::for_each(&l.body, &mut |stmt| {
        if let Stmt::For(For { range: Range::Part { index, .. }, .. }) = stmt {
            found |= index.mentions(&l.var);
        }
    });
    found
}

/// Whether a body only reduces into elements that do not depend on `var`.
fn is_reduction_over(body: &[Stmt], var: &Sym) -> bool {
    let mut reduces = true;
    walk::for_each(body, &mut |stmt| match stmt {
        Stmt::Assign(Assign { target, op: AssignOp::Reduce(_), .. }) => {
            reduces &= !target.index.iter().any(|i| i.mentions(var));
        }
        Stmt::Assign(_) | Stmt::Instruction(_) => reduces = false,
        _ => {}
    });
    reduces
}

#[cfg(test)]
mod tests {
    use crate::index::{Cond, Index};
    use crate::ir::{Assign, For, If, Program, Range, Stmt, parse};
    use crate::schedule::Schedule;
    use crate::sym::Sym;

    fn stored(store: &str, steps: &str) -> Result<String, String> {
        let text = format!(
            "program p(M: size, N: size, C: inout f64[M, N; ldc]) assume ldc%2 == 0 {{
               for b in block.x(1) {{ for w in threads(1@32) {{
                 alloc acc: f64[4, 16, 8] reg frag D16x8
                 for jo in 0..4 {{ for (i, j) in own acc[jo, :, :] {{ acc[jo, i, j] = 0 }} }}
                 for jo in 0..4 {{ for (i, j) in own acc[jo, :, :] {{ {store} }} }}
               }} }} }}"
        );
        let spec = parse::program(&text).expect("the program reads");
        Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    const STORE: &str = "if i < M && 8*jo + j < N { C[i, 8*jo + j] = acc[jo, i, j] }";

    #[test]
    fn runs_are_those_of_one_owner() {
        for (steps, because) in [
            ("split(C.j, 4) -> j, v", "no thread has the elements of `acc` in runs of 4"),
            ("split(C.i, 2) -> i, v", "only neighbours in a row"),
            ("split(C.j, nparts=4) -> j, v", "how many neighbours"),
            ("split(C.j, 2, tail=guard) -> j, v", "runs are whole"),
            ("split(C.j, 2) -> j, v\nsplit(C.j, 2) -> j, u", "split once"),
            ("vectorize(C.j)", "into runs, such as split(C.j, 2) -> first, v"),
        ] {
            let refusal = stored(STORE, steps).unwrap_err();
            assert!(refusal.contains(because), "{steps}: {refusal}");
        }
    }

    #[test]
    fn a_run_in_memory_is_whole_and_aligned_or_its_elements_go_one_by_one() {
        let pairs = |store: &str, before: &str| {
            stored(store, &format!("{before}\nsplit(C.j, 2) -> j, v\nvectorize(C.v)"))
        };
        let text = pairs(STORE, "").unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let stored = words(text.split_once("i, j by 2").expect("there are runs").1);
        assert!(stored.contains("if i < M && 8*jo + j + 2 <= N { for v in vector 0..2 {"), "{text}");
        assert!(stored.contains("else { for v in unroll 0..2 { if i < M && 8*jo + j + v < N {"), "{text}");
        // Where rows have whole pairs, no pair is torn.
        let text = pairs(STORE, "specialize(N%2)").unwrap();
        let even = words(text.split_once("i, j by 2").expect("there are runs").1);
        assert!(
            even.contains("for v in vector 0..2") && !even.split("by 2").next().unwrap().contains("unroll"),
            "{text}"
        );
        for (store, because) in [
            ("C[j, i] = acc[jo, i, j]", "not neighbours in memory"),
            ("C[i, 8*jo + j + 1] = acc[jo, i, j]", "multiple of 2"),
            ("C[i, 8*jo + j] += acc[jo, i, j]", "it reduces"),
        ] {
            let refusal = pairs(store, "").unwrap_err();
            assert!(refusal.contains(because), "{store}: {refusal}");
        }
    }

    fn copy_of(extent: &str) -> Program {
        let text = format!(
            "program p(n: size, x: in f32[{extent}], y: out f32[{extent}]) {{
              for i in 0..{extent} {{ y[i] = x[i] }}
            }}"
        );
        parse::program(&text).expect("the program reads")
    }

    fn evenly(extent: i64, parts: i64, piece: i64) -> Schedule {
        let step = format!("split(y.i, nparts={parts}, even={piece}) -> p, i");
        Schedule::run(copy_of(&extent.to_string()), &step)
            .unwrap_or_else(|e| panic!("{step} of {extent}: {e}"))
    }

    #[test]
    fn even_parts_that_cannot_be_are_refused() {
        for (extent, step, because) in [
            ("100", "split(y.i, even=8)", "even parts need nparts, too"),
            ("100", "split(y.i, 4, even=8)", "even parts need nparts, too"),
            ("100", "split(y.i, 4, nparts=4, even=8)", "a factor or nparts is wanted"),
            ("100", "split(y.i, nparts=4, even=all)", "a factor or nparts is wanted"),
            ("100", "split(y.i, nparts=4, even=0)", "the factor must be positive"),
            ("100", "split(y.i, nparts=4, even=-8)", "the factor must be positive"),
            ("100", "split(y.i, nparts=0, even=8)", "the factor must be positive"),
            ("100", "split(y.i, nparts=-4, even=8)", "the factor must be positive"),
            ("100", "split(y.i, 8, ahead=8)", "fewer iterations ahead than the factor says"),
            ("100", "split(y.i, 8, ahead=-1)", "fewer iterations ahead than the factor says"),
            ("100", "split(y.i, 8, ahead=some)", "fewer iterations ahead than the factor says"),
            ("n", "split(y.i, nparts=4, even=8)", "nparts of a symbolic extent multiplies two symbols"),
        ] {
            let refusal = Schedule::run(copy_of(extent), step).expect_err(step).to_string();
            assert!(refusal.contains(because), "{step}: {refusal}");
        }
        let refusal = stored(STORE, "split(C.j, nparts=4, even=2) -> j, v").unwrap_err();
        assert!(refusal.contains("how many neighbours"), "{refusal}");
    }

    #[test]
    fn parts_with_as_many_pieces_each_begin_at_multiples() {
        let text = evenly(96, 4, 8).program().to_string();
        assert!(text.contains("for p in 0..4, i in 0..24 {\n    y[24*p + i] = x[24*p + i]\n"), "{text}");
        // Only the last piece is short.
        let text = evenly(93, 4, 8).program().to_string();
        assert!(text.contains("    if 24*p + i < 93 {\n      y[24*p + i] = x[24*p + i]\n"), "{text}");
        // Parts of different length ask for no more than their own end where the last piece is whole.
        let text = evenly(104, 4, 8).program().to_string();
        assert!(text.contains("    if 8*((13*p)/4) + i < 8*((13*p + 1)/4) + 24 {\n"), "{text}");
    }

    /// The number of parts, the iterations of the longest, the guard, and the element that is stored.
    fn pieces_of(schedule: &Schedule) -> (i64, i64, Cond, Index) {
        let upto = |l: &For| match &l.range {
            Range::Span { hi, .. } => hi.as_constant().expect("it ends at a constant"),
            _ => panic!("it counts"),
        };
        let [Stmt::For(outer)] = &schedule.program().body[..] else { panic!("{}", schedule.program()) };
        let [Stmt::For(inner)] = &outer.body[..] else { panic!("{}", schedule.program()) };
        let (guard, body) = match &inner.body[..] {
            [Stmt::If(If { cond, then, otherwise })] if otherwise.is_empty() => (cond.clone(), then),
            _ => (Cond::TRUE, &inner.body),
        };
        let [Stmt::Assign(Assign { target, .. })] = &body[..] else { panic!("{}", schedule.program()) };
        (upto(outer), upto(inner), guard, target.index[0].clone())
    }

    #[test]
    fn even_parts_cover_each_iteration_once_and_differ_by_a_piece_at_most() {
        // Among them as many parts as pieces, and more: some have nothing to do.
        let extents = (1..=20).chain([96, 97, 100, 104]);
        let shapes = (1..=7).flat_map(|parts| [1, 2, 3, 8].map(|piece| (parts, piece)));
        let cases = extents.flat_map(|e| shapes.clone().map(move |(parts, piece)| (e, parts, piece)));
        for (extent, parts, piece) in cases {
            let schedule = evenly(extent, parts, piece);
            let (numbered, longest, guard, index) = pieces_of(&schedule);
            let pieces = (extent + piece - 1) / piece;
            assert_eq!(numbered, parts);
            assert_eq!(longest, (pieces + parts - 1) / parts * piece, "{}", schedule.program());
            let mut all = Vec::new();
            for p in 0..parts {
                let value = |i: i64| move |s: &Sym| Some(if s.name() == "p" { p } else { i });
                let runs = (0..longest).filter(|i| guard.eval(&value(*i)).expect("all is known"));
                let part: Vec<i64> = runs.map(|i| index.eval(&value(i)).expect("all is known")).collect();
                let [first, next] = [p, p + 1].map(|p| (p * pieces / parts * piece).min(extent));
                assert_eq!(part, (first..next).collect::<Vec<_>>(), "part {p} of {}", schedule.program());
                let of_part = (part.len() as i64 + piece - 1) / piece;
                assert!((pieces / parts..=(pieces + parts - 1) / parts).contains(&of_part), "part {p}");
                all.extend(part);
            }
            assert_eq!(all, (0..extent).collect::<Vec<_>>(), "{}", schedule.program());
            assert_eq!(guard == Cond::TRUE, extent % (parts * piece) == 0, "{}", schedule.program());
            // What the parts need to be independent is in their guard.
            let bound = Schedule::run(schedule.program().clone(), "bind(y.p, threads)");
            assert!(bound.is_ok(), "{}: {}", schedule.program(), bound.unwrap_err());
        }
    }

    #[test]
    fn parts_of_which_the_guard_is_gone_overlap() {
        let bound = |text: &str| {
            let program = parse::program(text).expect("the program reads");
            Schedule::run(program, "bind(y.p, threads)").map_err(|e| e.to_string())
        };
        let refused = |text: &str| {
            let refusal = bound(text).expect_err(text);
            assert!(refusal.contains("two iterations may touch one element of `y`"), "{text}: {refusal}");
        };
        let text = evenly(100, 4, 8).program().to_string();
        let guard = "if 8*((13*p)/4) + i < 8*((13*p + 1)/4) + 24 && 8*((13*p)/4) + i < 100 {";
        assert!(text.contains(guard), "{text}");
        bound(&text).expect("is taken");
        refused(&text.replace(guard, "if 0 <= i {"));
        refused(&text.replace(guard, "if 8*((13*p)/4) + i < 100 {"));
        // A piece too long, and an end that nobody knows.
        refused(&text.replace("/4) + 24 &&", "/4) + 25 &&"));
        refused(&text.replace(guard, "if i < n {"));
        let whole = text.replace("+ 24 && 8*((13*p)/4) + i < 100 {", "+ 24 {").replace("[100]", "[104]");
        bound(&whole).expect("is taken");
        // Either way of a condition keeps its statements apart, and only those.
        let of = |body: &str| {
            format!("program p(y: out f32[16], z: out f32[4, 4]) {{ for p in 0..4, i in 0..4 {{ {body} }} }}")
        };
        bound(&of("if i < 3 { y[3*p + i] = 1 }")).expect("is taken");
        bound(&of("if 3 <= i { z[p, i] = 1 } else { y[3*p + i] = 1 }")).expect("is taken");
        bound(&of("if i < 3 { if 1 <= i { y[2*p + i] = 1 } }")).expect("is taken");
        refused(&of("if i < 3 { z[p, i] = 1 } else { y[p + 2*i] = 1 }  y[3*p + i] = 1"));
        refused(&of("if 2 <= i { z[p, i] = 1 } else { z[p, i] = 2 }  y[3*p + i] = 1"));
        refused(&of("if i < 3 { z[p, i] = 1 } else { z[p, i] = 2 }  if p < 3 { y[3*p + i] = 1 }"));
        refused(&of("if i < 3 || p < 1 { y[3*p + i] = 1 }"));
        refused(&of("if i < 3 { y[3*p + i] = 1 }  if p < 3 { y[3*p + i] = 2 }"));
    }

    #[test]
    fn rows_and_columns_in_even_parts_are_those_of_one_thread_each() {
        let text = "program p(x: in f32[7, 13], y: out f32[7, 13]) {
          for i in 0..7, j in 0..13 { y[i, j] = x[i, j] }
        }";
        let steps = "split(y.i, nparts=4, even=1) -> u, i\nsplit(y.j, nparts=4, even=1) -> w, j\n";
        let bind = "reorder(y.u, y.w, y.i, y.j)\nbind(y.u, y.w, threads@32)\n";
        let schedule = Schedule::run(parse::program(text).unwrap(), &format!("{steps}{bind}")).unwrap();
        let after = schedule.program().to_string();
        assert!(after.contains("u in threads(4@128)") && after.contains("w in threads(4@32)"), "{after}");
        assert_eq!(schedule.text(), format!("{steps}{bind}"));
    }
}
