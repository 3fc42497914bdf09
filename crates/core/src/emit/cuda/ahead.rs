//! Which tensors are loaded ahead of a barrier.
//!
//! A kernel that hides the latency of a load starts it before a barrier and uses the value after it. The compiler
//! knows that data behind a `const __restrict__` pointer never change, so it may move such a load to the other side
//! of the barrier, next to its use, where nothing hides it; and ptxas does, because that saves registers. An ordinary
//! load stays on its side of a barrier. So these tensors are declared without `__restrict__`, and so are those that
//! the kernel writes, lest the compiler conclude that no store can change what is loaded.

use std::collections::{HashMap, HashSet};

use crate::ir::{Buffer, Space, Stmt, Sync, walk};
use crate::sym::Sym;

/// The buffers from which registers are loaded that live on past a barrier.
pub(super) fn loaded_ahead(stmts: &[Stmt], buffers: &HashMap<Sym, Buffer>) -> HashSet<Sym> {
    let (mut ahead, mut waiting) = (HashSet::new(), HashSet::new());
    for stmt in stmts {
        if matches!(stmt, Stmt::Sync(Sync::Barrier)) {
            ahead.extend(waiting.drain());
        }
        waiting.extend(kept_loads(stmt, buffers));
        walk::bodies(stmt).for_each(|body| ahead.extend(loaded_ahead(body, buffers)));
    }
    ahead
}

/// The buffers that a statement loads into registers that were there before it.
fn kept_loads(stmt: &Stmt, buffers: &HashMap<Sym, Buffer>) -> HashSet<Sym> {
    let stmts = std::slice::from_ref(stmt);
    let (mut inside, mut loads) = (HashSet::new(), HashSet::new());
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Alloc(buffer) => {
            inside.insert(buffer.sym.clone());
        }
        Stmt::Assign(a) if buffers.get(&a.target.buffer).is_some_and(|b| b.space == Space::Reg) => {
            a.value.for_each_access(&mut |access| {
                loads.insert((&a.target.buffer, &access.buffer));
            });
        }
        _ => {}
    });
    loads.into_iter().filter(|(target, _)| !inside.contains(*target)).map(|(_, from)| from.clone()).collect()
}
