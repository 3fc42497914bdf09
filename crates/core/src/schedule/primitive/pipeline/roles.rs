//! A role of its own that fills a ring, beside the one that uses it: what both ways of doing so have in common.
//!
//! ```text
//! before; for k { fill(b, k); use(b, k) }; after
//!     =>
//! roles producer .., consumer ..
//! on consumer { before }
//! for k { on producer { fill(b[k%S], k) }  on consumer { use(b[k%S], k) } }
//! on consumer { after }
//! ```
//!
//! There is neither prologue nor epilogue: that the producer runs ahead is the ring, not the program.

use super::Pipeline;
use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::ir::{Body, Buffer, For, If, Mode, On, Program, Range, Ring, Role, Space, Stmt, Sync};
use crate::schedule::rewrite::{Changed, Place, head};
use crate::sym::Sym;

/// Rewrites the statements of a block, of which the one with this position is the loop.
pub(super) type InBlock<'a> = &'a mut dyn FnMut(&[Stmt], usize, &Place) -> Result<Vec<Stmt>, Diagnosis>;

/// The program with every block rewritten that has the loop.
///
/// # Errors
/// What the rewriting says; that there is no such loop, or that it is not the only one of its block.
pub(super) fn in_blocks(
    step: &Pipeline,
    program: &Program,
    rewrite: InBlock<'_>,
) -> Result<Program, Diagnosis> {
    let mut found = false;
    let body = lists(step, &program.body, &Place::of(program), &mut |stmts, at, place| {
        found = true;
        rewrite(stmts, at, place)
    })?;
    if !found {
        return Err(step.target.unknown(program));
    }
    Ok(program.with_body(body.unwrap_or_else(|| program.body.clone())))
}

fn lists(step: &Pipeline, stmts: &[Stmt], place: &Place, rewrite: InBlock<'_>) -> Changed {
    let here: Vec<usize> =
        (0..stmts.len()).filter(|i| matches!(&stmts[*i], Stmt::For(l) if step.target.means(l))).collect();
    if let [first, rest @ ..] = &here[..] {
        let in_block = place.outer().last().is_some_and(|l| matches!(l.mode, Mode::Block { .. }));
        if !in_block || !rest.is_empty() {
            return Err(step
                .refuse("a block has other than exactly this one loop over its tiles, with nothing around it")
                .instead("bind the loops around it to blocks, and do not peel it"));
        }
        return rewrite(stmts, *first, place).map(Some);
    }
    place.rebuild_all(stmts, &mut |body, place| lists(step, body, place, rewrite))
}

/// Who fills and who uses a ring.
pub(super) struct Roles<'a> {
    pub(super) step: &'a Pipeline,
    /// The loop, counted from 0 by 1.
    pub(super) l: &'a For,
    pub(super) producer: Role,
    pub(super) consumer: Role,
    /// The barriers of slots that are filled, and of those that have been used.
    pub(super) full: &'a Ring,
    pub(super) empty: &'a Ring,
}

impl Roles<'_> {
    /// The statements of a block, of which the one with the position `at` is the loop: in each step one role does `produce`, the
    /// other `consume`. All else is the consumer's, whose registers it has. `slots` makes what is staged a ring, and `finish`
    /// adds to what follows the loop.
    ///
    /// # Errors
    /// That the block has roles already.
    pub(super) fn block(
        &self,
        stmts: &[Stmt],
        at: usize,
        [produce, consume]: [Vec<Stmt>; 2],
        slots: &dyn Fn(Buffer) -> Buffer,
        finish: impl FnOnce(Vec<Stmt>) -> Vec<Stmt>,
    ) -> Result<Vec<Stmt>, Diagnosis> {
        let [producer, consumer] = [&self.producer.sym, &self.consumer.sym];
        let mut roles = vec![self.producer.clone(), self.consumer.clone()];
        roles.sort_by_key(|r| r.lo);
        let allocated = |buffer: &Buffer| {
            let mut buffer = slots(buffer.clone());
            if buffer.space == Space::Reg {
                buffer.role = Some(consumer.clone());
            }
            Stmt::Alloc(buffer)
        };
        let mut out = vec![Stmt::Roles(roles)];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (i, stmt) in stmts.iter().enumerate() {
            match stmt {
                Stmt::Alloc(buffer) => out.push(allocated(buffer)),
                Stmt::Roles(_) | Stmt::On(_) => return Err(self.step.refuse("the block has roles already")),
                _ if i < at => before.push(stmt.clone()),
                _ if i > at => after.push(stmt.clone()),
                _ => {}
            }
        }
        out.extend(
            self.l.body.iter().filter_map(|s| if let Stmt::Alloc(b) = s { Some(allocated(b)) } else { None }),
        );
        out.extend([self.full, self.empty].map(|ring| Stmt::AllocRing(ring.clone())));
        let on = |role: &Sym, body: Vec<Stmt>| Stmt::On(On { role: role.clone(), body: body.into() });
        if !before.is_empty() {
            out.push(on(consumer, before));
        }
        let steps = vec![on(producer, produce), on(consumer, consume)];
        out.push(Stmt::For(For { body: steps.into(), ..head(self.l) }));
        out.push(on(consumer, finish(after)));
        Ok(out)
    }

    /// What those who fill do in a step, the first so many threads of their role: they wait until the slot has been used the time
    /// before, ask for the copies, and one of them says how many bytes they are.
    pub(super) fn produce(&self, threads: i64, copies: Vec<Stmt>, bytes: i64) -> Vec<Stmt> {
        let (k, slots) = (Index::var(&self.l.var), self.step.stages);
        let free = Stmt::Await { ring: self.empty.sym.clone(), ordinal: k.offset(-slots) };
        // Several meet when all of them have seen it: the phase after the next may not be complete before.
        let meet = (threads > 1).then_some(Stmt::Sync(Sync::Barrier));
        let waits: Vec<Stmt> = std::iter::once(free).chain(meet).collect();
        let mut body = vec![Stmt::If(If {
            cond: Cond::le(slots.into(), k.clone()),
            then: waits.into(),
            otherwise: Body::default(),
        })];
        body.extend(copies);
        let arrive = Stmt::Arrive { ring: self.full.sym.clone(), ordinal: k, bytes: Some(bytes.into()) };
        body.push(if threads == 1 { arrive } else { first("e", 1, vec![arrive]) });
        vec![first(if threads == 1 { "e" } else { "w" }, threads, body)]
    }
}

/// What the first so many threads of a range do together.
pub(in crate::schedule::primitive) fn first(var: &str, threads: i64, body: Vec<Stmt>) -> Stmt {
    For::with_mode(&Sym::new(var), Mode::Threads { pitch: threads }, Range::upto(1), body)
}
