//! Blocks of one launch do not touch each other's elements (rules 19, 25 and 39), as far as the indices tell.

use std::collections::{HashMap, HashSet};

use super::iterations;
use crate::diag::Diagnosis;
use crate::index::Facts;
use crate::instr::{self, Completion};
use crate::ir::{Buffer, For, Mode, Operand, Stmt, facts, walk};
use crate::sym::Sym;

/// What was found out about the blocks of one loop.
pub(super) struct Verdict {
    /// Blocks that certainly collide.
    pub faults: Vec<Diagnosis>,
    /// What the indices do not decide.
    pub open: Vec<Diagnosis>,
}

/// Whether different blocks of a launch touch the same elements of device memory. `known` has the ranges and definitions
/// of all symbols of the launch, and assumes nothing that holds inside it only.
pub(super) fn apart(launch: &Stmt, known: &Facts, buffers: &HashMap<Sym, Buffer>) -> Verdict {
    let mut verdict = Verdict { faults: Vec::new(), open: Vec::new() };
    let mut facts = known.clone();
    let mut at = launch;
    while let Stmt::For(l @ For { mode: Mode::Block { .. }, body, .. }) = at {
        for sym in written(&l.body, buffers) {
            if iterations::blocks_strided(l, &sym, known) {
                continue;
            }
            match iterations::blocks_apart(l, &sym, &facts, buffers) {
                Some(true) => {}
                Some(false) => verdict.faults.push(collide(l, &sym)),
                None => verdict.open.push(may_collide(l, &sym)),
            }
        }
        facts::enter_loop(&mut facts, l);
        match &body[..] {
            [inner] => at = inner,
            _ => break,
        }
    }
    verdict
}

fn collide(l: &For, sym: &Sym) -> Diagnosis {
    Diagnosis::new(format!("different blocks of `{}` touch the same element of `{sym}`", l.var))
        .because("blocks of one launch have no order, and the access is not atomic")
        .instead(format!(
            "index `{sym}` by `{}`, reduce atomically, or add partial results in a second launch",
            l.var
        ))
}

fn may_collide(l: &For, sym: &Sym) -> Diagnosis {
    Diagnosis::new(format!("different blocks of `{}` may touch the same element of `{sym}`", l.var))
        .because("the indices do not decide it")
        .instead("run the whole launch in the simulator: a clean run with all blocks shows it for that size")
}

/// The buffers in device memory that statements write, but for the links of chained instructions.
fn written(stmts: &[Stmt], buffers: &HashMap<Sym, Buffer>) -> Vec<Sym> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    let mut add = |sym: &Sym| {
        if buffers[sym].is_global() && seen.insert(sym.clone()) {
            out.push(sym.clone());
        }
    };
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Assign(a) => add(&a.target.buffer),
        Stmt::Instruction(i) => {
            let Some(record) = instr::by_name(&i.name).filter(|r| r.completion != Completion::Chained) else {
                return;
            };
            for (operand, spec) in i.operands.iter().zip(record.operands) {
                if let (Operand::Window(w), true) = (operand, spec.access.writes()) {
                    add(&w.buffer);
                }
            }
        }
        _ => {}
    });
    out
}
