//! Which symbols statements mention, and which buffers they touch.

use std::collections::HashSet;

use crate::ir::{Access, Operand, Stmt, Value, Window, walk};
use crate::sym::Sym;

/// Every symbol that statements mention, in indices, conditions, ranges, accesses or as what they bind.
pub(super) fn symbols(stmts: &[Stmt]) -> HashSet<Sym> {
    let mut found = HashSet::new();
    walk::for_each_symbol(stmts, &mut |s| {
        found.insert(s.clone());
    });
    found
}

/// A use of a buffer by a statement itself, not by those inside it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use<'a> {
    /// An element.
    Element(&'a Access),
    /// A box of elements.
    Window(&'a Window),
}

impl Use<'_> {
    /// The buffer.
    pub fn buffer(&self) -> &Sym {
        match self {
            Use::Element(a) => &a.buffer,
            Use::Window(w) => &w.buffer,
        }
    }
}

/// Calls `visit` for every use of a buffer at any depth.
pub(super) fn for_each<'a>(stmts: &'a [Stmt], visit: &mut dyn FnMut(Use<'a>)) {
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Assign(a) => {
            visit(Use::Element(&a.target));
            loads(&a.value, visit);
        }
        Stmt::Instruction(i) => {
            for operand in &i.operands {
                if let Operand::Window(w) = operand {
                    visit(Use::Window(w));
                }
            }
        }
        Stmt::Own(o) => visit(Use::Window(&o.window)),
        _ => {}
    });
}

fn loads<'a>(value: &'a Value, visit: &mut dyn FnMut(Use<'a>)) {
    value.for_each_access(&mut |access| visit(Use::Element(access)));
}
