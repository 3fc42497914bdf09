//! A ring that parts of a block use in turn: `pipeline(.., via=bulk, across=label.outer)`, where the loop around is one over threads.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[64*n], y: out f32[64*n]) {
//!   for b in block.x(1) {
//!     for w in threads(2@32) {
//!       for k in 0..n {
//!         alloc s: f32[32] shared
//!         for e in 0..32 { s[e] = 64*k + 32*w + e < 64*n ? x[64*k + 32*w + e] : 0 }
//!         for t in threads(32@1) { y[64*k + 32*w + t] = s[31 - t] }
//!       }
//!     }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "pipeline(y.k, 3, via=bulk, across=y.w)").unwrap();
//! let text = after.program().to_string();
//! assert!(text.contains("alloc s: f32[3, 32] shared"), "{text}");
//! assert!(text.contains("alloc full: mbar ring 6 count 1"), "{text}");
//! assert!(text.contains("\
//!     barrier
//!     for k in 0..n {
//!       for w in threads(2@32) {
//!         await(full[2*k + w])
//!         if k + (w + 1 < 2 ? 0 : 1) < n && 1 <= k {
//!           fence.async
//!           barrier
//!           for ask in threads(1@32) {
//!             for e in threads(1@1) {
//!               arrive(full[2*k + w + 1], tx 128)
//!             }
//! "), "{text}");
//! ```
//!
//! Steps are numbered in the order of their iterations: that of iteration `k` of part `w` of `W` is `W*k + w`, and uses slot `(W*k + w) % S`. The
//! first warp of the block asks for the first `S`; then each part, when it begins a step, asks for the one that comes to the slot that it
//! used the time before, `S - W` steps later. So slots need not be a multiple of the parts, nobody meets anybody, and only the copies are
//! waited for. The loop over steps comes to stand around that over parts: in this order each step has been asked for before its turn.
//!
//! A barrier of the ring `full` belongs to every `lcm(S, W)`-th step, so that those of one barrier are all of one part, and each is over
//! before the next is asked for: a step is asked for by the part that has done with the one `S` before, which was asked for when the one
//! `S` before that was done, and so on to one of the same part.

use std::cell::RefCell;

use super::bulk::Copied;
use super::ring::{Around, Landing, Ring, Step};
use super::roles::first;
use super::{Found, Pipeline, Release, only_if};
use crate::diag::Diagnosis;
use crate::index::{Cond, Index, gcd};
use crate::ir::{self, For, Mode, Program, Range, Stmt, Sync, walk};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Place, at_loops, head, rewrite_loops};
use crate::sym::Sym;

/// The threads that ask for copies together.
const WARP: i64 = 32;

/// The program with the loop pipelined in every copy of the loop over parts around it.
///
/// # Errors
/// Why that cannot be.
pub(super) fn apply(step: &Pipeline, program: &Program, around: &LoopRef) -> Result<Program, Diagnosis> {
    let found = RefCell::new(Found::default());
    let out =
        at_loops(program, around, &mut |parts, place| rewrite(step, &parts, place, &mut found.borrow_mut()))?;
    Ok(found.into_inner().with_slots(out))
}

fn rewrite(step: &Pipeline, parts: &For, place: &Place, found: &mut Found) -> Result<Vec<Stmt>, Diagnosis> {
    let Some((count, pitch)) = parts.threads() else {
        return Err(step
            .refuse("bulk copies report to barriers that are numbered by the iterations of one loop")
            .instead("use via=cp_async, leave `across` out, or name a loop over parts of a block"));
    };
    let in_block = place.outer().iter().all(|o| matches!(o.mode, Mode::Block { .. }));
    if !in_block || pitch % WARP != 0 {
        return Err(
            step.refuse(format!("`{}` does not share out a block among parts of whole warps", parts.var))
        );
    }
    if step.release != Release::Block {
        return Err(step
            .refuse("parts that use a ring in turn give nothing back to others")
            .instead("leave `release` out"));
    }
    if step.stages <= count {
        return Err(step
            .refuse(format!("{count} parts use the ring in turn, and each asks for what comes after theirs"))
            .instead(format!("use {} stages at least", count + 1)));
    }
    let full = Sym::new("full");
    let mut copied = None;
    rewrite_loops(&[Stmt::For(parts.clone())], place, &mut |l, inner| {
        if step.target.means(l) {
            copied = Some(Copied::of(step, l, &full, inner, found)?);
        }
        Ok(None)
    })?;
    let alone = matches!(&parts.body[..], [Stmt::For(l)] if step.target.means(l));
    let (Some(copied), true) = (copied, alone) else {
        return Err(step.refuse(format!("there is more in the body of `{}` than this loop", parts.var)));
    };
    let Copied { counted, extent, moved, rings, copies, bytes } = copied;
    if extent.mentions(&parts.var) {
        return Err(step.refuse("its parts have different numbers of iterations"));
    }
    let barriers =
        ir::Ring { sym: full.clone(), depth: step.stages / gcd(step.stages, count) * count, count: 1 };
    let ring = Ring {
        l: parts,
        extent: &count.into(),
        around: Some(Around { l: &counted, extent: &extent, steps: count }),
        rings: &rings,
        slots: step.stages,
        landing: Landing::Reported { full: full.clone(), empty: None },
    };
    let ask = |step: &Step| ask(&ring, &copies, step, bytes);
    let p = Sym::new("p");
    let early = ring.first(&Index::var(&p));
    let asked = only_if(early.exists.clone(), ask(&early), place);
    let early = For::with_mode(&p, Mode::Serial, Range::upto(step.stages), asked);
    let mut out: Vec<Stmt> = moved.staged.iter().cloned().map(Stmt::Alloc).collect();
    // What was stored before is there for all parts, which do not meet any more.
    out.extend([Stmt::AllocRing(barriers), first("ask", WARP, vec![early]), Stmt::Sync(Sync::Barrier)]);
    // The part is together when it asks: all of it has done with the slot, whatever it did there.
    let later = ring.ahead(step.stages - count);
    let mut again = [Sync::FenceAsync, Sync::Barrier].map(Stmt::Sync).to_vec();
    again.push(first("ask", WARP, ask(&later)));
    let exists = later.exists.clone().and(Cond::le(1.into(), Index::var(&counted.var)));
    let mut body = vec![Stmt::Await { ring: full, ordinal: ring.present() }];
    body.extend(only_if(exists, again, place));
    body.extend(ring.in_slot_of(&ring.present(), moved.uses));
    let of_a_step = Stmt::For(For { body: body.into(), ..head(parts) });
    out.push(Stmt::For(For { body: vec![of_a_step].into(), ..head(&counted) }));
    Ok(out)
}

/// What a warp does to ask for the copies of a step. It says first how many bytes they are: that its part has done with the slot is known
/// before anything comes to it.
fn ask(ring: &Ring, copies: &[Stmt], step: &Step, bytes: i64) -> Vec<Stmt> {
    let Landing::Reported { full, .. } = &ring.landing else { return Vec::new() };
    let announce =
        Stmt::Arrive { ring: full.clone(), ordinal: step.number.clone(), bytes: Some(bytes.into()) };
    let mut asked = vec![first("e", 1, vec![announce])];
    asked.extend(ring.in_slot_of(&step.number, step.of(copies)));
    walk::rewrite(asked, &mut |mut stmt| {
        if let Stmt::Instruction(i) = &mut stmt {
            i.signal = Some((full.clone(), step.number.clone()));
        }
        vec![stmt]
    })
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn run(inside: &str, steps: &str) -> Result<String, String> {
        let program = format!(
            "program p(n: size, x: in f32[128*n], y: out f32[128*n]) {{
                for b in block.x(1) {{
                    for w in threads(4@32) {{
                        {inside}
                    }}
                }}
            }}"
        );
        let program = parse::program(&program).expect("reads");
        Schedule::run(program, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    const LOOP: &str = "for k in 0..n {
        alloc s: f32[32] shared
        alloc d: f32[32] shared
        for e in 0..32 { s[e] = 128*k + 32*w + e < 128*n ? x[128*k + 32*w + e] : 0 }
        for v in threads(1@32) {
            alloc r: f32[32@1] reg
            for t in threads(32@1) { r[t] = s[31 - t] }
            for t in threads(32@1) { d[t] = r[t] }
        }
        for t in threads(32@1) { y[128*k + 32*w + t] = d[t] }
    }";

    #[test]
    fn only_what_all_parts_do_alike_is_done_in_turn() {
        for (inside, steps, because) in [
            (LOOP.to_string(), "pipeline(y.k, 4, via=bulk, across=y.w)", "use 5 stages at least"),
            (LOOP.to_string(), "pipeline(y.k, 5, via=bulk, across=y.w, release=warps)", "give nothing back"),
            (
                format!("for t in threads(32@1) {{ y[t] = 1 }}\n{LOOP}"),
                "pipeline(y.k, 5, via=bulk, across=y.w)",
                "more in the body",
            ),
            (
                LOOP.replace("0..n {", "0..n - w {"),
                "pipeline(y.k, 5, via=bulk, across=y.w)",
                "different numbers",
            ),
            (
                format!("for o in 0..2 {{ {LOOP} }}"),
                "pipeline(y.k, 5, via=bulk, across=y.o)",
                "numbered by the iterations of one loop",
            ),
            (
                LOOP.replace("x[128*k + 32*w + e]", "x[128*k + 32*w + 31 - e]"),
                "pipeline(y.k, 5, via=bulk, across=y.w)",
                "in another order",
            ),
        ] {
            let refused = run(&inside, steps).expect_err("is refused");
            assert!(refused.contains(because), "{inside}\n{refused}");
        }
    }

    /// Results lie in the slot that a part uses, which it has filled anew itself when its turn comes again.
    #[test]
    fn slots_that_are_used_in_turn_hold_results() {
        let steps = "pipeline(y.k, 6, via=bulk, across=y.w)\nstorage_share(d, s)";
        let text = run(LOOP, steps).expect("is legal");
        assert!(text.contains("s[(4*k + w)%6, t] = r[t]") && !text.contains("alloc d"), "{text}");
        // Written as it is, and with other slots or fewer steps filled.
        let shared = |from: &str, to: &str| {
            let written = run(LOOP, "pipeline(y.k, 6, via=bulk, across=y.w)").expect("is legal");
            assert!(written.contains(from), "{written}");
            let program = parse::program(&written.replace(from, to)).expect("reads");
            Schedule::run(program, "storage_share(d, s)").map(drop).map_err(|e| e.to_string())
        };
        shared("1 <= k {", "1 <= k {").expect("is legal");
        for (from, to, because) in [
            ("&& 1 <= k {", "&& 2 <= k {", "filled anew"),
            ("s[(4*k + w + 2)%6, :]", "s[(4*k + w + 3)%6, :]", "not known to be for iterations to come"),
            ("k + (w + 2 < 4 ? 0 : 1) < n", "k + (w + 1 < 4 ? 0 : 1) < n", "filled anew"),
            ("r[t] = s[(4*k + w)%6, -t + 31]", "r[t] = s[(4*k + w + 1)%6, -t + 31]", ""),
        ] {
            let refused = shared(from, to).expect_err("is refused");
            assert!(refused.contains(because), "{to}: {refused}");
        }
    }
}
