//! A loop body taken apart into fills, which bring an iteration's data nearer, and uses, which compute with it.
//!
//! This is the one condition under which a loop can be pipelined, whatever the mechanism (rule 33): a fill reads
//! nothing that the loop writes, so it may run early; it overwrites the whole of what it stages, and each use comes
//! after it in the iteration, so a use reads the current version only; and nobody outside the loop sees the staged
//! buffer, so it may have several versions.

use super::cover::covers;
use super::effects::{Effects, count_uses};
use super::fission::inline_lets;
use crate::diag::Diagnosis;
use crate::ir::{Buffer, For, Program, Space, Stmt};
use crate::sym::Sym;

/// A loop body taken apart.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct Stages {
    /// The statements that fill staged buffers.
    pub fills: Vec<Stmt>,
    /// All others, with the allocations they need.
    pub uses: Vec<Stmt>,
    /// The buffers that fills write and uses read, in the order in which they are filled.
    pub staged: Vec<Buffer>,
}

impl Stages {
    /// Takes the body of `l` apart. `peers` are all loops to which the same is done, `l` among them: they may share
    /// staged buffers, because each fills them before it uses them.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn of(l: &For, peers: &[&For], program: &Program) -> Result<Stages, Diagnosis> {
        let mut body = l.body.clone();
        inline_lets(&mut body);
        let (allocs, stmts): (Vec<Stmt>, Vec<Stmt>) =
            body.into_iter().partition(|s| matches!(s, Stmt::Alloc(_)));
        let effects: Vec<Effects> = stmts.iter().map(|s| Effects::of(std::slice::from_ref(s))).collect();
        if effects.iter().any(|e| e.synchronises) {
            return Err(refuse(l, "its body waits or signals already")
                .instead("pipeline a loop once, and before barriers are placed"));
        }
        let mut survey = Survey { peers, program, allocs: &allocs, effects: &effects, reasons: Vec::new() };
        let mut is_fill: Vec<bool> = (0..stmts.len()).map(|at| survey.is_fill(at)).collect();
        // Whatever a use writes as well is no staged buffer.
        let shares = |at: usize, fill: &[bool]| {
            let mut uses = effects.iter().zip(fill).filter(|(_, f)| !**f);
            fill[at] && uses.any(|(e, _)| effects[at].stores.iter().any(|b| e.writes(b)))
        };
        while let Some(at) = (0..stmts.len()).find(|at| shares(*at, &is_fill)) {
            is_fill[at] = false;
        }
        let reasons = std::mem::take(&mut survey.reasons);
        let staged = survey.staged(&is_fill);
        if staged.is_empty() {
            let because = match reasons.first() {
                Some(reason) => {
                    format!("none of its statements only fills a buffer ahead of its use: {reason}")
                }
                None => {
                    "none of its statements only fills a shared buffer or registers from elsewhere".into()
                }
            };
            return Err(
                refuse(l, because).instead("stage an operand at it first: cache_read, then compute_at")
            );
        }
        for buffer in &staged {
            check_versions(l, &buffer.sym, &stmts, &effects, &is_fill)?;
        }
        let mut stages = Stages { fills: Vec::new(), uses: Vec::new(), staged };
        let is_staged =
            |s: &Stmt| matches!(s, Stmt::Alloc(b) if stages.staged.iter().any(|t| t.sym == b.sym));
        stages.uses = allocs.iter().filter(|s| !is_staged(s)).cloned().collect();
        for (stmt, fill) in stmts.into_iter().zip(is_fill) {
            if fill { stages.fills.push(stmt) } else { stages.uses.push(stmt) }
        }
        for buffer in &stages.staged {
            if !covers(&stages.fills, buffer) {
                return Err(refuse(
                    l,
                    format!("it could not be shown that all of `{}` is filled", buffer.sym),
                )
                .instead("give the elements that hang over a value too, as cache_read and compute_at do"));
            }
        }
        Ok(stages)
    }
}

fn refuse(l: &For, because: impl Into<String>) -> Diagnosis {
    Diagnosis::new(format!("the loop `{}` cannot be pipelined", l.var)).because(because)
}

/// A use must come after every fill of what it reads.
fn check_versions(
    l: &For,
    buffer: &Sym,
    stmts: &[Stmt],
    effects: &[Effects],
    is_fill: &[bool],
) -> Result<(), Diagnosis> {
    let last_fill = (0..stmts.len()).rev().find(|at| is_fill[*at] && effects[*at].writes(buffer));
    let first_use = (0..stmts.len()).find(|at| !is_fill[*at] && effects[*at].touches(buffer));
    match (last_fill, first_use) {
        (Some(fill), Some(usage)) if usage < fill => Err(refuse(
            l,
            format!("`{buffer}` is used before it is filled, so what the last iteration left is read"),
        )),
        _ => Ok(()),
    }
}

/// The statements of a body and what they do.
struct Survey<'a> {
    peers: &'a [&'a For],
    program: &'a Program,
    allocs: &'a [Stmt],
    effects: &'a [Effects],
    /// Why statements that look like fills are none.
    reasons: Vec<String>,
}

impl Survey<'_> {
    fn is_fill(&mut self, at: usize) -> bool {
        let own = &self.effects[at];
        // What only asks for memory is asked for ahead.
        if own.is_empty() {
            return true;
        }
        if own.stores.is_empty() || !own.updates.is_empty() {
            return false;
        }
        let others = || self.effects.iter().enumerate().filter(|(i, _)| *i != at);
        for buffer in &own.stores {
            let Some(found) = self.buffer(buffer) else { return false };
            if !matches!(found.space, Space::Shared | Space::Reg) {
                return false;
            }
            let allocated_here = self.allocs.iter().any(|s| matches!(s, Stmt::Alloc(b) if b.sym == *buffer));
            let inside: usize = self.peers.iter().map(|l| count_uses(&l.body, buffer)).sum();
            let outside = count_uses(&self.program.body, buffer) > inside;
            if !allocated_here && outside {
                self.reasons.push(format!("`{buffer}` is also used outside the loop"));
                return false;
            }
            if others().any(|(_, e)| e.updates.contains(buffer)) {
                return false;
            }
        }
        let loop_writes = |buffer: &Sym| self.effects.iter().any(|e| e.writes(buffer));
        if let Some(buffer) = own.reads.iter().find(|b| loop_writes(b)) {
            self.reasons
                .push(format!("what fills `{}` reads `{buffer}`, which the loop writes", own.stores[0]));
            return false;
        }
        true
    }

    /// The buffers that fills write, if some other statement reads them.
    fn staged(&self, is_fill: &[bool]) -> Vec<Buffer> {
        let mut staged: Vec<Buffer> = Vec::new();
        for (effects, _) in self.effects.iter().zip(is_fill).filter(|(_, fill)| **fill) {
            for sym in &effects.stores {
                if !staged.iter().any(|b| b.sym == *sym) {
                    staged.extend(self.buffer(sym));
                }
            }
        }
        staged
    }

    fn buffer(&self, sym: &Sym) -> Option<Buffer> {
        let here = self.allocs.iter().find_map(|s| match s {
            Stmt::Alloc(b) if b.sym == *sym => Some(b.clone()),
            _ => None,
        });
        here.or_else(|| self.program.buffers().get(sym).cloned())
    }
}
