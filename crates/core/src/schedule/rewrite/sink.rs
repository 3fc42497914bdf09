//! Loops over threads moved below a loop that all threads share.

use super::{Place, head, rewrite_loops, sink};
use crate::diag::Diagnosis;
use crate::ir::{For, Mode, Stmt, walk};
use crate::schedule::handle::LoopRef;
use crate::sym::Sym;

/// How often a loop is sunk for one stage, at most: no schedule nests so many.
const MOST_SINKS: usize = 100;

/// Sinks every loop from the outermost thread loop down to the loop `at` below it, innermost first. A loop that was peeled
/// is several. With `private`, the outermost loop over whole warps stays.
///
/// # Errors
/// What `refuse` makes of a reason, or why iterations are not independent.
pub(in crate::schedule) fn sink_threads(
    stmt: Stmt,
    at: &LoopRef,
    private: bool,
    place: &Place,
    refuse: &dyn Fn(&str) -> Diagnosis,
) -> Result<Vec<Stmt>, Diagnosis> {
    let mut stmts = vec![stmt];
    for _ in 0..MOST_SINKS {
        let mut paths = Vec::new();
        stmts.iter().for_each(|stmt| paths_to(at, stmt, &mut Vec::new(), &mut paths));
        if paths.is_empty() {
            return Err(refuse("the loop does not enclose its use"));
        }
        // Ranges with a part of their own are those of the outermost loop over warps.
        let outside = place.outer().iter().any(|l| over_warps(l.mode));
        let inside_threads = |path: &Vec<For>| {
            let stays = path.iter().position(|l| private && !outside && over_warps(l.mode));
            let first = path.iter().enumerate().position(|(i, l)| is_thread_like(l.mode) && stays != Some(i));
            first.is_some_and(|f| f + 1 < path.len())
        };
        let Some(path) = paths.into_iter().find(inside_threads) else { return Ok(stmts) };
        let above = path[path.len() - 2].clone();
        if is_thread_like(path[path.len() - 1].mode) {
            return Err(refuse("that loop is a thread loop, and shared memory belongs to the block")
                .instead("attach it to a loop that all threads share, such as the outer reduction loop"));
        }
        stmts = sink_at(&stmts, &above.var, &path[path.len() - 1].var, place)?;
    }
    Err(refuse("too many loops stand between the threads and that loop").instead("attach it further out"))
}

/// The loops from `stmt` down to each loop that is meant, both included.
pub(in crate::schedule) fn paths_to(
    at: &LoopRef,
    stmt: &Stmt,
    above: &mut Vec<For>,
    paths: &mut Vec<Vec<For>>,
) {
    let loop_here = if let Stmt::For(l) = stmt { Some(l) } else { None };
    above.extend(loop_here.map(head));
    if loop_here.is_some_and(|l| at.means(l)) {
        paths.push(above.clone());
    } else {
        walk::bodies(stmt).flatten().for_each(|inner| paths_to(at, inner, above, paths));
    }
    if loop_here.is_some() {
        above.pop();
    }
}

/// Sinks the loop `l` to just inside the loop `target`, wherever it is.
fn sink_at(stmts: &[Stmt], l: &Sym, target: &Sym, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
    rewrite_loops(stmts, place, &mut |this, place| {
        (this.var == *l).then(|| sink(this.clone(), &|t| t.var == *target, &place.facts())).transpose()
    })
}

/// Whether a loop's iterations are threads, virtual ones among them.
pub(in crate::schedule) fn is_thread_like(mode: Mode) -> bool {
    matches!(mode, Mode::Threads { .. } | Mode::Interleave)
}

/// Whether a loop divides threads into ranges of whole warps.
pub(in crate::schedule) fn over_warps(mode: Mode) -> bool {
    matches!(mode, Mode::Threads { pitch } if pitch % 32 == 0)
}
