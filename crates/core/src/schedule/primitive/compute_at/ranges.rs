//! Which threads compute a stage in shared memory together: a block, or each range of whole warps for itself.

use crate::diag::Diagnosis;
use crate::index::Cond;
use crate::ir::{Body, Buffer, For, If, Mode, Space, Stmt, walk};
use crate::schedule::rewrite::{Place, head, rewrite_loops, sink};
use crate::sym::Sym;

use super::{ComputeAt, is_thread_like};

impl ComputeAt {
    /// Whether ranges of threads can have parts of their own: it is shared memory, inside a loop over ranges.
    pub(super) fn check_private(
        &self,
        buffer: &Buffer,
        consumer: &Stmt,
        place: &Place,
    ) -> Result<(), Diagnosis> {
        let owner = match buffer.space {
            Space::Shared => None,
            Space::Reg => Some("registers belong to single threads"),
            _ => Some("device memory belongs to all threads"),
        };
        if let Some(because) = owner {
            return Err(self.refuse(because).instead("leave out `private`, or set_scope it to shared first"));
        }
        let mut paths = Vec::new();
        self.paths(consumer, &mut Vec::new(), &mut paths);
        let within = |path: &Vec<For>| path.iter().any(|l| over_warps(l.mode));
        let outside = place.outer().iter().any(|l| over_warps(l.mode));
        if !outside && (paths.is_empty() || !paths.iter().all(within)) {
            return Err(self.refuse("no loop over whole warps stands around it").instead(
                "bind such a loop first, as with bind(label.loop, threads@32), or leave out `private`",
            ));
        }
        Ok(())
    }

    /// Sinks every loop from the outermost thread loop down to the attach point below it, innermost first. A loop that
    /// was peeled is several, each of which is an attach point.
    pub(super) fn sink_threads(&self, stmt: Stmt, place: &Place) -> Result<Stmt, Diagnosis> {
        let mut stmt = stmt;
        for _ in 0..MOST_SINKS {
            let mut paths = Vec::new();
            self.paths(&stmt, &mut Vec::new(), &mut paths);
            if paths.is_empty() {
                return Err(self.refuse("the loop does not enclose its use"));
            }
            // Ranges with a part of their own are those of the outermost loop over warps.
            let outside = place.outer().iter().any(|l| over_warps(l.mode));
            let inside_threads = |path: &Vec<For>| {
                let stays = path.iter().position(|l| self.private && !outside && over_warps(l.mode));
                let first =
                    path.iter().enumerate().position(|(i, l)| is_thread_like(l.mode) && stays != Some(i));
                first.is_some_and(|f| f + 1 < path.len())
            };
            let Some(path) = paths.into_iter().find(inside_threads) else { return Ok(stmt) };
            let above = path[path.len() - 2].clone();
            if is_thread_like(path[path.len() - 1].mode) {
                return Err(self
                    .refuse("that loop is a thread loop, and shared memory belongs to the block")
                    .instead(
                        "attach it to a loop that all threads share, such as the outer reduction loop",
                    ));
            }
            let target = path[path.len() - 1].var.clone();
            let sunk = sink_at(&stmt, &above.var, &target, place)?;
            stmt = wrap_single(sunk);
        }
        Err(self
            .refuse("too many loops stand between the threads and that loop")
            .instead("attach it further out"))
    }

    /// The loops from `stmt` down to each attach point, both included.
    fn paths(&self, stmt: &Stmt, above: &mut Vec<For>, paths: &mut Vec<Vec<For>>) {
        let loop_here = if let Stmt::For(l) = stmt { Some(l) } else { None };
        above.extend(loop_here.map(head));
        if loop_here.is_some_and(|l| self.at.means(l)) {
            paths.push(above.clone());
        } else {
            walk::bodies(stmt).flatten().for_each(|inner| self.paths(inner, above, paths));
        }
        if loop_here.is_some() {
            above.pop();
        }
    }
}

/// How often a loop is sunk for one stage, at most: no schedule nests so many.
const MOST_SINKS: usize = 100;

/// A list of statements as one; several stand in a condition that always holds, which `Attach` takes apart again.
pub(super) fn wrap_single(mut stmts: Vec<Stmt>) -> Stmt {
    if stmts.len() == 1 {
        return stmts.swap_remove(0);
    }
    Stmt::If(If { cond: Cond::TRUE, then: stmts.into(), otherwise: Body::default() })
}

/// Sinks the loop `l` to just inside the loop `target`, wherever it is.
fn sink_at(stmt: &Stmt, l: &Sym, target: &Sym, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
    rewrite_loops(std::slice::from_ref(stmt), place, &mut |this, place| {
        (this.var == *l).then(|| sink(this.clone(), &|t| t.var == *target, &place.facts())).transpose()
    })
}

/// Whether a loop divides threads into ranges of whole warps.
fn over_warps(mode: Mode) -> bool {
    matches!(mode, Mode::Threads { pitch } if pitch % 32 == 0)
}
