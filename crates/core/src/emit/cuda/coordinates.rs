//! Coordinates get names: what a schedule spells out at every use, a person computes once.
//!
//! ```text
//! for u { As[32*u + r, c] = 128*by + 32*u + r < M && 8*ko + c < K ? A[128*by + 32*u + r, 8*ko + c] : 0 }
//! =>
//! let m = 128*by + r
//! let k = 8*ko + c
//! for u { As[32*u + r, c] = m + 32*u < M && k < K ? A[m + 32*u, k] : 0 }
//! ```
//!
//! A coordinate is the part of an index into device memory that is known where a statement begins: at least two
//! terms, used at least twice in the statement and those after it. Its name is that of the size it runs up to. Before
//! the text is written, because names are cheap to add to a program and hard to add to text.

use std::collections::HashMap;
use std::sync::Arc;

use crate::index::{Atom, Cond, Index};
use crate::ir::{Access, Buffer, For, Instruction, Mode, Operand, Span, Stmt, Value, Window, walk};
use crate::sym::Sym;

/// The statements with their coordinates named.
pub(super) fn name_coordinates(stmts: &[Stmt], buffers: &HashMap<Sym, Buffer>) -> Vec<Stmt> {
    let mut stmts = without_inner_lets(stmts, &[]);
    let ordinals = ordinals(&stmts);
    let mut namer = Namer { buffers, ordinals, named: Vec::new() };
    namer.list(&mut stmts, false);
    stmts
}

struct Namer<'a> {
    buffers: &'a HashMap<Sym, Buffer>,
    /// Counters of iterations, which change as the program goes on.
    ordinals: Vec<Sym>,
    /// The names given so far: what is counted from a named coordinate gets no name of its own.
    named: Vec<Sym>,
}

impl Namer<'_> {
    /// Names what can be named before each statement of a list, then inside. Coordinates belong to threads.
    fn list(&mut self, stmts: &mut Vec<Stmt>, in_thread: bool) {
        let mut at = 0;
        while in_thread && at < stmts.len() {
            for (coordinate, name) in self.candidates(&stmts[at]) {
                let mut uses = 0;
                for stmt in &mut stmts[at..].to_vec() {
                    uses += self.replace(stmt, &coordinate, &Index::default());
                }
                if uses >= 2 {
                    let sym = Sym::new(&name);
                    for stmt in &mut stmts[at..] {
                        self.replace(stmt, &coordinate, &Index::var(&sym));
                    }
                    self.named.push(sym.clone());
                    stmts.insert(at, Stmt::Let(sym, coordinate));
                    at += 1;
                }
            }
            at += 1;
        }
        for stmt in stmts {
            // A vector loop has one statement, and keeps it.
            if matches!(stmt, Stmt::For(For { mode: Mode::Vector, .. })) {
                continue;
            }
            let in_thread = in_thread || matches!(stmt, Stmt::For(For { mode: Mode::Threads { .. }, .. }));
            for body in walk::bodies_mut(stmt) {
                self.list(body, in_thread);
            }
        }
    }

    /// The coordinates of a statement, each with the name it would like, in the order of the text.
    fn candidates(&self, stmt: &Stmt) -> Vec<(Index, String)> {
        let inner = walk::binders(std::slice::from_ref(stmt));
        let mut found: Vec<(Index, String)> = Vec::new();
        let mut consider = |buffer: &Sym, index: &[Index]| {
            let Some(buffer) = self.buffers.get(buffer).filter(|b| b.is_global()) else { return };
            for (i, dim) in index.iter().zip(&buffer.dims) {
                let Some(size) = dim.extent.as_var() else { continue };
                let outer = self.known_part(i, &inner);
                let is_new = !self.named.iter().any(|s| outer.mentions(s));
                if is_new && outer.terms().len() >= 2 && !found.iter().any(|(known, _)| *known == outer) {
                    let lower = size.name().to_lowercase();
                    found.push((outer, if lower == size.name() { "i".to_string() } else { lower }));
                }
            }
        };
        walk::for_each(std::slice::from_ref(stmt), &mut |s| match s {
            Stmt::Assign(a) => {
                a.value.for_each_access(&mut |access| consider(&access.buffer, &access.index));
                consider(&a.target.buffer, &a.target.index);
            }
            Stmt::Instruction(call) => {
                for operand in &call.operands {
                    if let Operand::Window(w) = operand {
                        consider(&w.buffer, &w.start());
                    }
                }
            }
            _ => {}
        });
        found
    }

    /// The terms of an index that mention no variable bound by the statement, and no counter.
    fn known_part(&self, index: &Index, inner: &[Sym]) -> Index {
        let known = |atom: &Atom| {
            let mut all = true;
            Index::atom(atom.clone())
                .for_each_var(&mut |s| all &= !inner.contains(s) && !self.ordinals.contains(s));
            all
        };
        let terms = index.terms().iter().filter(|(atom, _)| known(atom));
        terms.fold(Index::default(), |sum, (atom, c)| &sum + &Index::atom(atom.clone()).scaled(*c))
    }

    /// Writes `name` for `coordinate` in the indices into device memory, the conditions and the integer operands of a
    /// statement. Returns how often.
    fn replace(&self, stmt: &mut Stmt, coordinate: &Index, name: &Index) -> usize {
        let mut uses = 0;
        match stmt {
            Stmt::Assign(a) => {
                uses += self.replace_access(&mut a.target, coordinate, name);
                uses += self.replace_value(&mut a.value, coordinate, name);
            }
            Stmt::If(i) => uses += replace_cond(&mut i.cond, coordinate, name),
            Stmt::Instruction(call) => uses += self.replace_call(call, coordinate, name),
            _ => {}
        }
        for body in walk::bodies_mut(stmt) {
            for inner in body {
                uses += self.replace(inner, coordinate, name);
            }
        }
        uses
    }

    fn replace_access(&self, access: &mut Access, coordinate: &Index, name: &Index) -> usize {
        if !self.buffers.get(&access.buffer).is_some_and(Buffer::is_global) {
            return 0;
        }
        access.index.iter_mut().map(|i| replace_index(i, coordinate, name)).sum()
    }

    fn replace_value(&self, value: &mut Value, coordinate: &Index, name: &Index) -> usize {
        match value {
            Value::Const(_) | Value::Scalar(_) => 0,
            Value::Load(access) => self.replace_access(access, coordinate, name),
            Value::Unary(_, a) | Value::Cast(_, a) => self.replace_value(a, coordinate, name),
            Value::Binary(_, a, b) => {
                self.replace_value(a, coordinate, name) + self.replace_value(b, coordinate, name)
            }
            Value::Select(c, a, b) => {
                replace_cond(c, coordinate, name)
                    + self.replace_value(a, coordinate, name)
                    + self.replace_value(b, coordinate, name)
            }
        }
    }

    fn replace_call(&self, call: &mut Instruction, coordinate: &Index, name: &Index) -> usize {
        let mut uses = 0;
        for operand in &mut call.operands {
            match operand {
                Operand::Scalar(i) => uses += replace_index(i, coordinate, name),
                Operand::Window(Window { buffer, dims }) => {
                    if self.buffers.get(buffer).is_some_and(Buffer::is_global) {
                        for span in dims {
                            if let Span::At(i) | Span::Slice(i, _) = span {
                                uses += replace_index(i, coordinate, name);
                            }
                        }
                    }
                }
            }
        }
        uses
    }
}

/// The statements with every `let` that mentions the variable of an unrolled loop written out: what is known outside
/// the loop is named there.
fn without_inner_lets(stmts: &[Stmt], unrolled: &[Sym]) -> Vec<Stmt> {
    let mut out: Vec<Stmt> = Vec::new();
    let mut rest = stmts.to_vec();
    rest.reverse();
    while let Some(mut stmt) = rest.pop() {
        if let Stmt::Let(var, value) = &stmt
            && unrolled.iter().any(|s| value.mentions(s))
        {
            rest = walk::substitute(&rest, &|s| (s == var).then(|| value.clone()));
            continue;
        }
        let mut inside = unrolled.to_vec();
        if let Stmt::For(For { var, mode: Mode::Unroll, .. }) = &stmt {
            inside.push(var.clone());
        }
        if let Stmt::Own(own) = &stmt {
            inside.extend(own.vars.iter().cloned());
        }
        for body in walk::bodies_mut(&mut stmt) {
            *body = without_inner_lets(body, &inside).into();
        }
        out.push(stmt);
    }
    out
}

fn ordinals(stmts: &[Stmt]) -> Vec<Sym> {
    let mut out = Vec::new();
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::For(For { counting: Some(ordinal), .. }) = stmt {
            out.push(ordinal.clone());
        }
    });
    out
}

/// Replaces a coordinate where all of its terms stand in a sum, with one sign or the other.
fn replace_index(index: &mut Index, coordinate: &Index, name: &Index) -> usize {
    for sign in [1, -1] {
        let rest = &*index - &coordinate.scaled(sign);
        if rest.terms().len() + coordinate.terms().len() == index.terms().len() {
            *index = &rest + &name.scaled(sign);
            return 1;
        }
    }
    let mut uses = 0;
    let mut sum = Index::constant(index.constant_term());
    for (atom, c) in index.terms() {
        let mut atom = atom.clone();
        uses += replace_atom(&mut atom, coordinate, name);
        sum = &sum + &Index::atom(atom).scaled(*c);
    }
    if uses > 0 {
        *index = sum;
    }
    uses
}

fn replace_atom(atom: &mut Atom, coordinate: &Index, name: &Index) -> usize {
    match atom {
        // Divisions simplify best when spelt out.
        Atom::Var(_) | Atom::Div(..) | Atom::Mod(..) | Atom::Xor(..) => 0,
        Atom::Min(a, b) | Atom::Max(a, b) => {
            replace_index(a, coordinate, name) + replace_index(b, coordinate, name)
        }
        Atom::Select(c, a, b) => {
            replace_cond(Arc::make_mut(c), coordinate, name)
                + replace_index(a, coordinate, name)
                + replace_index(b, coordinate, name)
        }
    }
}

fn replace_cond(cond: &mut Cond, coordinate: &Index, name: &Index) -> usize {
    match cond {
        Cond::Compare(_, a, b) => replace_index(a, coordinate, name) + replace_index(b, coordinate, name),
        Cond::Flag(_) => 0,
        Cond::Not(c) => replace_cond(c, coordinate, name),
        Cond::And(v) | Cond::Or(v) => v.iter_mut().map(|c| replace_cond(c, coordinate, name)).sum(),
    }
}
