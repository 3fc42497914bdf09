//! What statements do to memory: the buffers they read, store to, and update.

use crate::instr::{self, OperandAccess};
use crate::ir::{AssignOp, Operand, Stmt, walk};
use crate::sym::Sym;

/// The buffers that statements touch, without those that they allocate themselves.
#[derive(Debug, Default)]
pub(in crate::schedule) struct Effects {
    /// Read from.
    pub reads: Vec<Sym>,
    /// Overwritten: the old value does not matter.
    pub stores: Vec<Sym>,
    /// Reduced into, or changed in a way that is not known.
    pub updates: Vec<Sym>,
    /// Whether something waits, signals, or belongs to a role.
    pub synchronises: bool,
}

impl Effects {
    /// The effects of statements.
    pub fn of(stmts: &[Stmt]) -> Effects {
        let mut effects = Effects::default();
        let mut private: Vec<Sym> = Vec::new();
        walk::for_each(stmts, &mut |stmt| match stmt {
            Stmt::Assign(a) => {
                a.value.for_each_access(&mut |access| effects.reads.push(access.buffer.clone()));
                match a.op {
                    AssignOp::Store => effects.stores.push(a.target.buffer.clone()),
                    AssignOp::Reduce(_) => effects.updates.push(a.target.buffer.clone()),
                }
            }
            Stmt::Instruction(i) => {
                let record = instr::by_name(&i.name);
                for (at, operand) in i.operands.iter().enumerate() {
                    let Operand::Window(window) = operand else { continue };
                    let list = match record.and_then(|r| r.operands.get(at)).map(|o| o.access) {
                        Some(OperandAccess::Named) => continue,
                        Some(OperandAccess::Read) => &mut effects.reads,
                        Some(OperandAccess::Write) => &mut effects.stores,
                        Some(OperandAccess::Update) | None => &mut effects.updates,
                    };
                    list.push(window.buffer.clone());
                }
            }
            Stmt::Alloc(buffer) => private.push(buffer.sym.clone()),
            Stmt::AllocRing(_)
            | Stmt::Roles(_)
            | Stmt::On(_)
            | Stmt::Sync(_)
            | Stmt::Arrive { .. }
            | Stmt::Await { .. } => effects.synchronises = true,
            Stmt::For(_) | Stmt::Tasks(_) | Stmt::Own(_) | Stmt::If(_) | Stmt::Let(..) => {}
        });
        for list in [&mut effects.reads, &mut effects.stores, &mut effects.updates] {
            list.retain(|s| !private.contains(s));
            let mut seen = std::collections::HashSet::new();
            list.retain(|s| seen.insert(s.clone()));
        }
        effects
    }

    /// Whether nothing is done to memory, and nobody is waited for.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.stores.is_empty() && self.updates.is_empty() && !self.synchronises
    }

    /// Whether the buffer is stored to or updated.
    pub fn writes(&self, buffer: &Sym) -> bool {
        self.stores.contains(buffer) || self.updates.contains(buffer)
    }

    /// Whether the buffer is touched at all.
    pub fn touches(&self, buffer: &Sym) -> bool {
        self.reads.contains(buffer) || self.writes(buffer)
    }
}

/// How many element accesses and windows of a buffer statements contain.
pub(in crate::schedule) fn count_uses(stmts: &[Stmt], buffer: &Sym) -> usize {
    let mut count = 0;
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Assign(a) => {
            count += usize::from(a.target.buffer == *buffer);
            a.value.for_each_access(&mut |access| count += usize::from(access.buffer == *buffer));
        }
        Stmt::Instruction(i) => {
            let of_it = |o: &&Operand| matches!(o, Operand::Window(w) if w.buffer == *buffer);
            count += i.operands.iter().filter(of_it).count();
        }
        Stmt::Own(o) => count += usize::from(o.window.buffer == *buffer),
        _ => {}
    });
    count
}
