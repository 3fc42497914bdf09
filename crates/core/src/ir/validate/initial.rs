//! Nothing is read or reduced into that nobody has written (rules 11 and 12), as far as the structure tells: the
//! simulator's poison finds the rest.

use std::collections::HashMap;

use super::place;
use crate::diag::Diagnosis;
use crate::instr::{self, OperandAccess};
use crate::ir::{AssignOp, Io, Operand, Program, Space, Stmt, walk};
use crate::sym::Sym;

/// All uses of buffers before anything is in them.
pub(super) fn check(program: &Program) -> Vec<Diagnosis> {
    let mut empty: HashMap<Sym, Vec<Sym>> = program
        .tensors()
        .filter(|t| t.space == Space::Param(Io::Out))
        .map(|t| (t.sym.clone(), Vec::new()))
        .collect();
    let mut later = HashMap::new();
    writes(&program.body, &mut Vec::new(), &mut later);
    let mut search =
        Search { program, empty: &mut empty, later: &later, loops: Vec::new(), faults: Vec::new() };
    search.body(&program.body);
    search.faults
}

/// For each buffer, the loops around each statement that writes it.
type Writes = HashMap<Sym, Vec<Vec<Sym>>>;

fn writes(stmts: &[Stmt], loops: &mut Vec<Sym>, out: &mut Writes) {
    for stmt in stmts {
        for sym in written(stmt) {
            out.entry(sym).or_default().push(loops.clone());
        }
        let depth = loops.len();
        loops.extend(loop_name(stmt));
        for body in walk::bodies(stmt) {
            writes(body, loops, out);
        }
        loops.truncate(depth);
    }
}

fn loop_name(stmt: &Stmt) -> Option<Sym> {
    match stmt {
        Stmt::For(l) => Some(l.var.clone()),
        Stmt::Tasks(t) => t.vars.first().cloned(),
        Stmt::Own(o) => o.vars.first().cloned(),
        _ => None,
    }
}

/// The buffers a statement itself writes without reading them first.
fn written(stmt: &Stmt) -> Vec<Sym> {
    match stmt {
        Stmt::Assign(a) if a.op == AssignOp::Store => vec![a.target.buffer.clone()],
        Stmt::Instruction(i) => {
            let Some(record) = instr::by_name(&i.name) else { return Vec::new() };
            let outputs =
                i.operands.iter().zip(record.operands).filter_map(|(operand, spec)| match operand {
                    Operand::Window(w) if spec.access == OperandAccess::Write => Some(w.buffer.clone()),
                    _ => None,
                });
            outputs.collect()
        }
        _ => Vec::new(),
    }
}

/// The buffers a statement itself reads, and whether it reduces into them.
fn read(stmt: &Stmt) -> Vec<(Sym, bool)> {
    match stmt {
        Stmt::Assign(a) => {
            let mut out = Vec::new();
            a.value.for_each_access(&mut |load| out.push((load.buffer.clone(), false)));
            if a.op != AssignOp::Store {
                out.push((a.target.buffer.clone(), true));
            }
            out
        }
        Stmt::Instruction(i) => {
            let Some(record) = instr::by_name(&i.name) else { return Vec::new() };
            let inputs = i.operands.iter().zip(record.operands).filter_map(|(operand, spec)| match operand {
                Operand::Window(w) if spec.access.reads() => {
                    Some((w.buffer.clone(), spec.access == OperandAccess::Update))
                }
                _ => None,
            });
            inputs.collect()
        }
        _ => Vec::new(),
    }
}

struct Search<'a> {
    program: &'a Program,
    /// The buffers that nothing has been written to so far, with the loops around their declaration.
    empty: &'a mut HashMap<Sym, Vec<Sym>>,
    later: &'a Writes,
    loops: Vec<Sym>,
    faults: Vec<Diagnosis>,
}

impl Search<'_> {
    fn body(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            if let Stmt::Alloc(buffer) = stmt {
                self.empty.insert(buffer.sym.clone(), self.loops.clone());
            }
            for (sym, reduces) in read(stmt) {
                if self.empty.contains_key(&sym) && !self.an_earlier_iteration_writes(&sym) {
                    self.faults.push(fault(&sym, reduces).at(place::of(self.program, stmt)));
                    self.empty.remove(&sym);
                }
            }
            for sym in written(stmt) {
                self.empty.remove(&sym);
            }
            let depth = self.loops.len();
            self.loops.extend(loop_name(stmt));
            for body in walk::bodies(stmt) {
                self.body(body);
            }
            self.loops.truncate(depth);
        }
    }

    /// Whether a statement further down writes the buffer inside a loop that is also around this place and keeps the
    /// buffer from one iteration to the next.
    fn an_earlier_iteration_writes(&self, sym: &Sym) -> bool {
        let kept = &self.loops[self.empty[sym].len().min(self.loops.len())..];
        self.later.get(sym).is_some_and(|all| all.iter().any(|loops| kept.iter().any(|l| loops.contains(l))))
    }
}

fn fault(sym: &Sym, reduces: bool) -> Diagnosis {
    if reduces {
        Diagnosis::new(format!("`{sym}` is reduced into before anything is stored in it"))
            .because("a reduction has an explicit initial store")
            .instead(format!("store the identity (0 for a sum) in `{sym}` first"))
    } else {
        Diagnosis::new(format!("`{sym}` is read before anything is stored in it"))
            .because("its content is undefined")
            .instead("move the statement that fills it before this one")
    }
}
