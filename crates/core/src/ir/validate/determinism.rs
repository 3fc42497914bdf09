//! Whether a program gives the same bits every time, and for every size of the launch (rule 38).

use std::collections::HashSet;

use super::place;
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::instr::{self, Behaviour, OperandAccess};
use crate::ir::{AssignOp, Operand, ParamKind, Program, Range, Stmt, walk};
use crate::sym::Sym;

/// Whether the program gives the same bits every time, for every size of the launch. See [`nondeterminism`] for why
/// not.
pub fn is_deterministic(program: &Program) -> bool {
    nondeterminism(program).is_none()
}

/// The first reason why two runs, or two sizes of the launch, may differ in the last bits: a floating-point reduction
/// whose order is not fixed by the text.
pub fn nondeterminism(program: &Program) -> Option<Diagnosis> {
    let launch: HashSet<Sym> = program
        .params
        .iter()
        .filter(|p| matches!(p.kind, ParamKind::Launch))
        .map(|p| p.sym.clone())
        .collect();
    let mut search = Search { program, by_launch: launch, shared_out: Vec::new(), fresh: Vec::new() };
    search.body(&program.body).err()
}

struct Search<'a> {
    program: &'a Program,
    /// Launch parameters, and what is computed from them.
    by_launch: HashSet<Sym>,
    /// The loops around whose ranges depend on the launch.
    shared_out: Vec<&'a Stmt>,
    /// For each of these, the buffers that start anew in each iteration.
    fresh: Vec<HashSet<Sym>>,
}

impl<'a> Search<'a> {
    fn body(&mut self, stmts: &'a [Stmt]) -> Result<(), Diagnosis> {
        stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), Diagnosis> {
        match stmt {
            Stmt::Let(sym, index) if self.depends(index) => {
                self.by_launch.insert(sym.clone());
            }
            Stmt::Alloc(buffer) => self.starts_anew(&buffer.sym),
            Stmt::Assign(a) => {
                let floating = self.is_floating(&a.target.buffer);
                match a.op {
                    AssignOp::Store => self.starts_anew(&a.target.buffer),
                    AssignOp::Reduce(_) if a.atomic && floating => {
                        return Err(Diagnosis::new(format!(
                            "`{}` is reduced by floating-point atomics",
                            a.target.buffer
                        ))
                        .because("they happen in any order, and each order rounds differently")
                        .instead("write partial results and add them in a second launch")
                        .at(place::of(self.program, stmt)));
                    }
                    AssignOp::Reduce(_) if floating => self.accumulates(&a.target.buffer, stmt)?,
                    AssignOp::Reduce(_) => {}
                }
            }
            Stmt::Instruction(i) => {
                let Some(record) = instr::by_name(&i.name) else { return Ok(()) };
                if record.behaviour == Behaviour::ChainedSum {
                    return Err(Diagnosis::new("the sum of earlier blocks is put together as they finish")
                        .because("its association depends on timing")
                        .instead("reduce, scan the partial results, and add them, in three launches")
                        .at(place::of(self.program, stmt)));
                }
                for (operand, spec) in i.operands.iter().zip(record.operands) {
                    let Operand::Window(w) = operand else { continue };
                    match spec.access {
                        OperandAccess::Read | OperandAccess::Named => {}
                        OperandAccess::Write => self.starts_anew(&w.buffer),
                        OperandAccess::Update if self.is_floating(&w.buffer) => {
                            self.accumulates(&w.buffer, stmt)?
                        }
                        OperandAccess::Update => {}
                    }
                }
            }
            _ => {}
        }
        let shared_out = self.range_depends(stmt);
        if shared_out {
            self.shared_out.push(stmt);
            self.fresh.push(HashSet::new());
        }
        let inside = walk::bodies(stmt).try_for_each(|body| self.body(body));
        if shared_out {
            self.shared_out.pop();
            self.fresh.pop();
        }
        inside
    }

    /// From here on the buffer holds something that does not depend on earlier iterations.
    fn starts_anew(&mut self, buffer: &Sym) {
        self.fresh.iter_mut().for_each(|loops| {
            loops.insert(buffer.clone());
        });
    }

    fn accumulates(&self, buffer: &Sym, stmt: &Stmt) -> Result<(), Diagnosis> {
        let Some(at) = self.fresh.iter().position(|loops| !loops.contains(buffer)) else { return Ok(()) };
        let shared_out = place::of(self.program, self.shared_out[at]);
        Err(Diagnosis::new(format!("`{buffer}` sums up a share that depends on the size of the launch"))
            .because(format!("the loop around is {shared_out}"))
            .instead("let a constant of the schedule number the partial results")
            .at(place::of(self.program, stmt)))
    }

    fn is_floating(&self, buffer: &Sym) -> bool {
        let is_i32 = |b: &crate::ir::Buffer| b.sym == *buffer && b.dtype == crate::dtype::DType::I32;
        let mut integer = self.program.tensors().any(is_i32);
        walk::for_each(&self.program.body, &mut |stmt| {
            if let Stmt::Alloc(b) = stmt {
                integer |= is_i32(b);
            }
        });
        !integer
    }

    fn depends(&self, index: &Index) -> bool {
        let mut found = false;
        index.for_each_var(&mut |s| found |= self.by_launch.contains(s));
        found
    }

    /// Whether the launch decides which iterations a loop has. Block loops are not asked: what their blocks share they
    /// reduce atomically or not at all.
    fn range_depends(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::For(l) => match &l.range {
                Range::Span { lo, hi, step } => {
                    !matches!(l.mode, crate::ir::Mode::Block { .. })
                        && [lo, hi, step].iter().any(|x| self.depends(x))
                }
                Range::List(_) => false,
                Range::Part { index, parts, lo, hi } => {
                    [index, parts, lo, hi].iter().any(|x| self.depends(x))
                }
            },
            Stmt::Tasks(t) => self.depends(&t.stride) || t.extents.iter().any(|e| self.depends(e)),
            _ => false,
        }
    }
}
