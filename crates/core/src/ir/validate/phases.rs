//! Asynchronous work is counted and waited for (rules 20 to 23), as far as the text tells: arrivals and bytes of each
//! phase add up, and what is issued is committed and waited for by the threads that issued it. Whether a wait stands
//! early enough is the simulator's question.

use std::collections::HashMap;

use super::effects::shape;
use super::executors::Executors;
use super::place;
use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::instr::{self, Behaviour, Completion};
use crate::ir::{Buffer, Instruction, Launch, Mode, Operand, Program, Ring, Stmt, Sync, print, walk};
use crate::sym::Sym;

/// Faults of the asynchronous work of one launch.
pub(super) fn faults(
    program: &Program,
    launch: &Launch<'_>,
    buffers: &HashMap<Sym, Buffer>,
    executors: &Executors<'_>,
) -> Vec<Diagnosis> {
    let mut count =
        Count { buffers, executors, around: Around::default(), arrivals: Vec::new(), copies: Vec::new() };
    count.body(launch.body);
    let mut faults = Vec::new();
    for (ring, _) in &launch.shared.rings {
        faults.extend(arrivals_fault(program, ring, &count));
        faults.extend(bytes_fault(program, ring, &count));
        faults.extend(never_arrives(program, launch, ring, &count));
    }
    faults.extend(groups(program, launch, executors));
    faults
}

/// Where a phase is counted: the same ordinal in the same iteration is the same phase.
#[derive(Clone, PartialEq)]
struct Phase {
    ring: Sym,
    ordinal: Index,
    loops: Vec<Sym>,
}

/// One statement's share of a phase.
struct Share<'a> {
    stmt: &'a Stmt,
    phase: Phase,
    /// How often it happens for each phase; `None` if a guard depends on threads or unrolled loops.
    times: Option<i64>,
    bytes: Option<i64>,
}

#[derive(Clone, Default)]
struct Around {
    /// Loops whose iterations belong to different phases.
    loops: Vec<Sym>,
    /// Iterations of loops that are written out.
    unrolled: i64,
    /// Variables that make a guard or an ordinal more than one case.
    varying: Vec<Sym>,
    guarded: bool,
}

struct Count<'a, 'b> {
    buffers: &'b HashMap<Sym, Buffer>,
    executors: &'b Executors<'b>,
    around: Around,
    arrivals: Vec<Share<'a>>,
    copies: Vec<Share<'a>>,
}

impl<'a> Count<'a, '_> {
    fn body(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            let outer = self.around.clone();
            match stmt {
                Stmt::For(l) => match l.mode {
                    Mode::Threads { .. } => self.around.varying.push(l.var.clone()),
                    Mode::Unroll | Mode::Vector => {
                        self.around.varying.push(l.var.clone());
                        let trips = l.range.constant_trip_count().unwrap_or(0);
                        self.around.unrolled = (self.around.unrolled + 1).saturating_mul(trips) - 1;
                    }
                    _ => self.around.loops.push(l.var.clone()),
                },
                Stmt::Tasks(t) => self.around.loops.extend(t.vars.first().cloned()),
                Stmt::If(i) => self.around.guarded |= self.varies(&i.cond),
                Stmt::Arrive { ring, ordinal, bytes } => {
                    let bytes = bytes.as_ref().and_then(Index::as_constant);
                    let share = self.share(stmt, ring, ordinal, bytes);
                    self.arrivals.push(share);
                }
                Stmt::Instruction(Instruction { signal: Some((ring, ordinal)), .. }) => {
                    let share = self.share(stmt, ring, ordinal, self.copied(stmt));
                    self.copies.push(share);
                }
                _ => {}
            }
            for body in walk::bodies(stmt) {
                self.body(body);
            }
            self.around = outer;
        }
    }

    fn varies(&self, cond: &Cond) -> bool {
        self.around.varying.iter().any(|v| cond.mentions(v))
    }

    fn share(&self, stmt: &'a Stmt, ring: &Sym, ordinal: &Index, bytes: Option<i64>) -> Share<'a> {
        let phase = Phase { ring: ring.clone(), ordinal: ordinal.clone(), loops: self.around.loops.clone() };
        let several = self.around.guarded || self.around.varying.iter().any(|v| ordinal.mentions(v));
        let times = self.executors.of(stmt).filter(|_| !several).map(|executor| {
            // An arrival is made by each thread, a copy by the threads of its record together.
            let each = if matches!(stmt, Stmt::Arrive { .. }) { executor.threads } else { 1 };
            each.saturating_mul(executor.ranges).saturating_mul(self.around.unrolled + 1)
        });
        Share { stmt, phase, times, bytes }
    }

    /// Bytes that a bulk load delivers: all of its box, also what lies outside the tensor.
    fn copied(&self, stmt: &Stmt) -> Option<i64> {
        let Stmt::Instruction(i) = stmt else { return None };
        let Some(Operand::Window(w)) = i.operands.first() else { return None };
        let buffer = self.buffers.get(&w.buffer)?;
        Some(shape(w, buffer)?.iter().product::<i64>() * buffer.dtype.bytes())
    }
}

/// The shares of a list by phase, in order of first appearance.
fn by_phase<'s, 'a>(shares: &'s [Share<'a>], ring: &Sym) -> Vec<(&'s Phase, Vec<&'s Share<'a>>)> {
    let mut out: Vec<(&Phase, Vec<&Share<'a>>)> = Vec::new();
    for share in shares.iter().filter(|s| s.phase.ring == *ring) {
        match out.iter_mut().find(|(phase, _)| **phase == share.phase) {
            Some((_, list)) => list.push(share),
            None => out.push((&share.phase, vec![share])),
        }
    }
    out
}

fn sum(shares: &[&Share<'_>], of: impl Fn(&Share<'_>) -> Option<i64>) -> Option<i64> {
    shares.iter().try_fold(0i64, |sum, share| sum.checked_add(of(share)?))
}

fn arrivals_fault(program: &Program, ring: &Ring, count: &Count<'_, '_>) -> Vec<Diagnosis> {
    let phases = by_phase(&count.arrivals, &ring.sym);
    let alone = phases.len() == 1;
    let wrong = phases.iter().filter_map(|(phase, shares)| {
        let arrivals = sum(shares, |s| s.times)?;
        // Fewer may be completed by arrivals elsewhere; more never can be right.
        let fault = arrivals > ring.count || (alone && arrivals < ring.count);
        fault.then(|| {
            Diagnosis::new(format!("phase {} of `{}` gets {arrivals} arrivals", phase.ordinal, ring.sym))
                .because(format!("the ring counts {}", ring.count))
                .instead(format!("declare count {arrivals}, or let other threads arrive"))
                .at(place::of(program, shares[0].stmt))
        })
    });
    wrong.collect()
}

fn bytes_fault(program: &Program, ring: &Ring, count: &Count<'_, '_>) -> Vec<Diagnosis> {
    let (arrivals, copies) = (by_phase(&count.arrivals, &ring.sym), by_phase(&count.copies, &ring.sym));
    let mut faults = Vec::new();
    for (phase, shares) in &copies {
        let announced = arrivals.iter().find(|(p, _)| p == phase).map_or(&[][..], |(_, list)| list);
        let expected =
            sum(announced, |s| if s.bytes.is_some() { s.times?.checked_mul(s.bytes?) } else { Some(0) });
        let under_way = sum(shares, |s| s.times?.checked_mul(s.bytes?));
        let (Some(expected), Some(under_way)) = (expected, under_way) else { continue };
        if expected != under_way {
            let at = announced.first().map_or(shares[0].stmt, |s| s.stmt);
            faults.push(
                Diagnosis::new(format!("phase {} of `{}` expects {expected} bytes", phase.ordinal, ring.sym))
                    .because(format!("{under_way} bytes are copied in its name"))
                    .instead(format!("arrive with tx {under_way}, in the same iteration as the copies"))
                    .at(place::of(program, at)),
            );
        }
    }
    for (phase, shares) in &arrivals {
        let expects = shares.iter().any(|s| s.bytes.is_some_and(|b| b != 0));
        if expects && !copies.iter().any(|(p, _)| p == phase) {
            faults.push(
                Diagnosis::new(format!("phase {} of `{}` expects bytes", phase.ordinal, ring.sym))
                    .because("no copy reports to it in the same iteration")
                    .instead("name it in the copy: `-> ring[ordinal]`")
                    .at(place::of(program, shares[0].stmt)),
            );
        }
    }
    faults
}

fn never_arrives(
    program: &Program,
    launch: &Launch<'_>,
    ring: &Ring,
    count: &Count<'_, '_>,
) -> Vec<Diagnosis> {
    if count.arrivals.iter().any(|s| s.phase.ring == ring.sym) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    walk::for_each(launch.body, &mut |stmt| {
        if matches!(stmt, Stmt::Await { ring: r, .. } if *r == ring.sym) {
            let fault = Diagnosis::new(format!("nobody arrives at `{}`", ring.sym))
                .because("this waits for ever")
                .instead("let the threads that fill or free the slot arrive");
            faults.push(fault.at(place::of(program, stmt)));
        }
    });
    faults
}

/// One kind of asynchronous group.
struct GroupKind {
    completion: Completion,
    /// What must be there, and the statement to write.
    parts: &'static [fn(Sync) -> bool],
    texts: &'static [&'static str],
}

const GROUPS: [GroupKind; 3] = [
    GroupKind {
        completion: Completion::CpAsync,
        parts: &[|s| s == Sync::CpCommit, |s| matches!(s, Sync::CpWait(_))],
        texts: &["cp.commit", "cp.wait n"],
    },
    GroupKind {
        completion: Completion::BulkGroup,
        parts: &[|s| s == Sync::BulkCommit, |s| matches!(s, Sync::BulkWait(_))],
        texts: &["bulk.commit", "bulk.wait 0"],
    },
    GroupKind {
        completion: Completion::Wgmma,
        parts: &[|s| s == Sync::WgmmaFence, |s| s == Sync::WgmmaCommit, |s| matches!(s, Sync::WgmmaWait(_))],
        texts: &["wgmma.fence", "wgmma.commit", "wgmma.wait n"],
    },
];

fn groups(program: &Program, launch: &Launch<'_>, executors: &Executors<'_>) -> Vec<Diagnosis> {
    let threads = |stmt: &Stmt| executors.of(stmt).map_or(0, |e| e.threads.saturating_mul(e.ranges));
    let mut syncs: Vec<(Sync, i64)> = Vec::new();
    let mut issued: Vec<(&Stmt, Completion)> = Vec::new();
    let mut faults = Vec::new();
    walk::for_each(launch.body, &mut |stmt| match stmt {
        Stmt::Sync(sync) => {
            syncs.push((*sync, threads(stmt)));
            faults.extend(negative(*sync).map(|f| f.at(place::of(program, stmt))));
        }
        Stmt::Instruction(i) => {
            if let Some(record) = instr::by_name(&i.name)
                && record.behaviour != Behaviour::BulkLoad
            {
                issued.push((stmt, record.completion));
            }
        }
        _ => {}
    });
    for kind in &GROUPS {
        let mine = issued.iter().filter(|(_, completion)| *completion == kind.completion);
        let Some((stmt, _)) = mine.max_by_key(|(stmt, _)| threads(stmt)) else { continue };
        for (part, text) in kind.parts.iter().zip(kind.texts) {
            let most = syncs.iter().filter(|(sync, _)| part(*sync)).map(|(_, n)| *n).max();
            let fault = match most {
                None => Diagnosis::new(format!("there is no {text} in the launch"))
                    .because("what is issued here is never known to be complete"),
                Some(n) if n < threads(stmt) => {
                    Diagnosis::new(format!("{} threads issue this, and {n} execute {text}", threads(stmt)))
                        .because("each thread commits and waits for its own")
                }
                Some(_) => continue,
            };
            faults.push(
                fault
                    .instead(format!("write {text} at the range that issues it"))
                    .at(place::of(program, stmt)),
            );
        }
    }
    faults
}

fn negative(sync: Sync) -> Option<Diagnosis> {
    match sync {
        Sync::CpWait(n) | Sync::WgmmaWait(n) | Sync::BulkWait(n) | Sync::BulkWaitRead(n)
            if !(0..8).contains(&n) =>
        {
            Some(
                Diagnosis::new(format!("{} leaves {n} groups in flight", print::sync(sync)))
                    .because("between 0 and 7 can be"),
            )
        }
        _ => None,
    }
}
