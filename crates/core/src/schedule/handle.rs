//! Handles: how a step names the loops it means.

use std::fmt;

use crate::diag::Diagnosis;
use crate::instr::{self, OperandAccess};
use crate::ir::{Buffer, For, Operand, Own, Program, Stmt, walk};

/// A loop: the buffer that it computes, and the name of its variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoopRef {
    /// The name of the buffer written inside.
    pub label: String,
    /// The name of the loop variable.
    pub name: String,
}

/// Several loops of one label, outermost first.
pub type Loops = Vec<LoopRef>;

impl LoopRef {
    /// `label.name`
    pub fn new(label: &str, name: &str) -> LoopRef {
        LoopRef { label: label.into(), name: name.into() }
    }

    /// Whether a loop is one of those that this handle means: the innermost of its name, as in any scope.
    pub fn means(&self, l: &For) -> bool {
        l.var.name() == self.name && writes(&l.body, &self.label) && !self.is_shadowed(&l.body)
    }

    /// Whether one of the variables of a loop over owned elements is meant.
    pub fn means_owned(&self, o: &Own) -> bool {
        o.vars.iter().any(|v| v.name() == self.name)
            && writes(&o.body, &self.label)
            && !self.is_shadowed(&o.body)
    }

    fn is_shadowed(&self, body: &[Stmt]) -> bool {
        let mut inner = false;
        walk::for_each(body, &mut |stmt| {
            if let Stmt::For(l) = stmt {
                inner |= l.var.name() == self.name && writes(&l.body, &self.label);
            }
        });
        inner
    }

    /// The diagnosis that no loop goes by this handle, with those that there are.
    pub fn unknown(&self, program: &Program) -> Diagnosis {
        let mut names: Vec<String> = Vec::new();
        let mut owned = false;
        walk::for_each(&program.body, &mut |stmt| {
            owned |= matches!(stmt, Stmt::Own(o) if self.means_owned(o));
            if let Stmt::For(l) = stmt
                && writes(&l.body, &self.label)
            {
                let name = format!("{}.{}", self.label, l.var.name());
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        });
        let unknown = Diagnosis::new(format!("there is no loop `{self}`"));
        if owned {
            unknown
                .because("it goes over the elements that a thread owns")
                .instead(format!("split the last variable into runs, such as split({self}, 2) -> first, v"))
        } else if names.is_empty() {
            unknown.because(format!("nothing computes a buffer named `{}`", self.label))
        } else {
            unknown.instead(format!("the loops that compute `{}` are {}", self.label, names.join(", ")))
        }
    }
}

impl fmt::Display for LoopRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.label, self.name)
    }
}

/// Whether statements write a buffer of that name, by assignment or as the first operand of an instruction, unless that only names it.
pub(super) fn writes(stmts: &[Stmt], label: &str) -> bool {
    let mut found = false;
    walk::for_each(stmts, &mut |stmt| {
        found |= match stmt {
            Stmt::Assign(a) => a.target.buffer.name() == label,
            Stmt::Instruction(i) => {
                let named = instr::by_name(&i.name)
                    .is_some_and(|r| r.operands.first().is_some_and(|o| o.access == OperandAccess::Named));
                !named && matches!(i.operands.first(), Some(Operand::Window(w)) if w.buffer.name() == label)
            }
            _ => false,
        }
    });
    found
}

/// The buffer of that name that a statement assigns to.
pub(super) fn written(stmt: &Stmt, name: &str, program: &Program) -> Option<Buffer> {
    let mut found = None;
    walk::for_each(std::slice::from_ref(stmt), &mut |s| {
        if let Stmt::Assign(a) = s
            && a.target.buffer.name() == name
        {
            found = Some(a.target.buffer.clone());
        }
    });
    program.buffers().remove(&found?)
}
