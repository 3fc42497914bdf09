//! Programs and their parameters.

use std::collections::HashMap;

use super::buffer::{Buffer, Io, Space};
use super::early::Early;
use super::statement::Stmt;
use super::walk;
use crate::dtype::DType;
use crate::index::Cond;
use crate::sym::Sym;

/// A loop program: see the essay of [`crate::ir`].
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// A name that is also a C identifier.
    pub name: String,
    /// What it is for, a line each; printed as a comment.
    pub doc: Vec<String>,
    /// The parameters, in the order in which they are passed. Row strides are not listed: they belong to tensors.
    pub params: Vec<Param>,
    /// What the caller promises about sizes and strides.
    pub assumes: Vec<Cond>,
    /// Whether a call may begin while what was launched before it still runs, and how: each of its launches waits itself until that has ended,
    /// before it reads or writes anything.
    pub begins_early: Option<Early>,
    /// How many bytes device memory is asked to give at a time at most, where the program says so: a hint to caches, of which no result depends.
    pub fetches: Option<i64>,
    /// The host list: scratch buffers, conditions and launches, in order.
    pub body: Vec<Stmt>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The name.
    pub sym: Sym,
    /// What is passed.
    pub kind: ParamKind,
}

/// What is passed for a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// A size of the problem: 0 or more.
    Size,
    /// A size of the launch, chosen by whoever launches: 1 or more.
    Launch,
    /// A truth that the host computes from scalars, such as "beta is 0".
    Flag,
    /// A number such as alpha.
    Scalar(DType),
    /// A tensor; its symbol is the buffer's.
    Tensor(Buffer),
}

impl Program {
    /// The same program with another host list.
    #[must_use]
    pub fn with_body(&self, body: Vec<Stmt>) -> Program {
        Program {
            name: self.name.clone(),
            doc: self.doc.clone(),
            params: self.params.clone(),
            assumes: self.assumes.clone(),
            begins_early: self.begins_early,
            fetches: self.fetches,
            body,
        }
    }

    /// The tensor parameters in order.
    pub fn tensors(&self) -> impl Iterator<Item = &Buffer> {
        self.params.iter().filter_map(|p| if let ParamKind::Tensor(b) = &p.kind { Some(b) } else { None })
    }

    /// The parameter of that name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.sym.name() == name)
    }

    /// The tensors that the program may write.
    pub fn outputs(&self) -> impl Iterator<Item = &Buffer> {
        self.tensors().filter(|b| b.space != Space::Param(Io::In))
    }

    /// Every buffer by its symbol: parameters and allocations at any depth.
    pub fn buffers(&self) -> HashMap<Sym, Buffer> {
        let mut all: HashMap<Sym, Buffer> = self.tensors().map(|b| (b.sym.clone(), b.clone())).collect();
        walk::for_each(&self.body, &mut |stmt| {
            if let Stmt::Alloc(buffer) = stmt {
                all.insert(buffer.sym.clone(), buffer.clone());
            }
        });
        all
    }
}
