//! Which threads compute a stage in shared memory together: a block, or each range of whole warps for itself.

use crate::diag::Diagnosis;
use crate::index::Cond;
use crate::ir::{Body, Buffer, For, If, Space, Stmt};
use crate::schedule::rewrite::{Place, over_warps, paths_to, sink_threads};

use super::ComputeAt;

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
        paths_to(&self.at, consumer, &mut Vec::new(), &mut paths);
        let within = |path: &Vec<For>| path.iter().any(|l| over_warps(l.mode));
        let outside = place.outer().iter().any(|l| over_warps(l.mode));
        if !outside && (paths.is_empty() || !paths.iter().all(within)) {
            return Err(self.refuse("no loop over whole warps stands around it").instead(
                "bind such a loop first, as with bind(label.loop, threads@32), or leave out `private`",
            ));
        }
        Ok(())
    }

    /// The consumer with the loops over threads around the attach point below it.
    pub(super) fn sink_threads(&self, stmt: Stmt, place: &Place) -> Result<Stmt, Diagnosis> {
        let refuse = |because: &str| self.refuse(because);
        Ok(wrap_single(sink_threads(stmt, &self.at, self.private, place, &refuse)?))
    }
}

/// A list of statements as one; several stand in a condition that always holds, which `Attach` takes apart again.
pub(super) fn wrap_single(mut stmts: Vec<Stmt>) -> Stmt {
    if stmts.len() == 1 {
        return stmts.swap_remove(0);
    }
    Stmt::If(If { cond: Cond::TRUE, then: stmts.into(), otherwise: Body::default() })
}
