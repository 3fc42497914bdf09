//! One change at a time: every program, statement, value or index that differs from another at a single place.

use std::collections::HashMap;

use warpwright_core::index::{Atom, Cond, Index};
use warpwright_core::ir::{
    Access, Assign, Buffer, For, If, Instruction, Operand, Program, Ring, Span, Stmt, Value, Window, walk,
};
use warpwright_core::sym::Sym;

/// A list of statements.
pub(super) type Body = Vec<Stmt>;

/// A statement of a program, seen from the body it stands in.
pub(super) struct Site<'a> {
    pub body: &'a [Stmt],
    pub at: usize,
    /// The loops around it, outermost first.
    pub around: &'a [&'a For],
    pub buffers: &'a HashMap<Sym, Buffer>,
    pub rings: &'a HashMap<Sym, Ring>,
}

impl Site<'_> {
    pub fn stmt(&self) -> &Stmt {
        &self.body[self.at]
    }

    /// The body with other statements in place of this one.
    pub fn with(&self, stmts: Vec<Stmt>) -> Body {
        let mut body = self.body.to_vec();
        body.splice(self.at..=self.at, stmts);
        body
    }

    /// The bodies with one of several statements in place of this one.
    pub fn with_each(&self, stmts: impl IntoIterator<Item = Stmt>) -> Vec<Body> {
        stmts.into_iter().map(|s| self.with(vec![s])).collect()
    }

    /// The body without this statement.
    pub fn without(&self) -> Body {
        self.with(Vec::new())
    }

    /// The body in which this statement and the one at `other` have changed places.
    pub fn swapped(&self, other: usize) -> Body {
        let mut body = self.body.to_vec();
        body.swap(self.at, other);
        body
    }
}

/// Every program that `alter` makes by replacing one body.
pub(super) fn programs(program: &Program, alter: fn(&Site<'_>) -> Vec<Body>) -> Vec<Program> {
    let buffers = program.buffers();
    let mut rings = HashMap::new();
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::AllocRing(ring) = stmt {
            rings.insert(ring.sym.clone(), ring.clone());
        }
    });
    let walk = Walk { alter, buffers, rings };
    let whole = |body| Program { body, ..program.clone() };
    walk.bodies(&program.body, &mut Vec::new()).into_iter().map(whole).collect()
}

struct Walk {
    alter: fn(&Site<'_>) -> Vec<Body>,
    buffers: HashMap<Sym, Buffer>,
    rings: HashMap<Sym, Ring>,
}

impl Walk {
    /// Every body that differs from this one at a single place, here or deeper.
    fn bodies<'a>(&'a self, body: &'a [Stmt], around: &mut Vec<&'a For>) -> Vec<Body> {
        let mut out = Vec::new();
        for (at, stmt) in body.iter().enumerate() {
            let site = Site { body, at, around, buffers: &self.buffers, rings: &self.rings };
            out.extend((self.alter)(&site));
            if let Stmt::For(l) = stmt {
                around.push(l);
            }
            for (which, inner) in walk::bodies(stmt).enumerate() {
                for changed in self.bodies(inner, around) {
                    let mut body = body.to_vec();
                    if let Some(inner) = walk::bodies_mut(&mut body[at]).nth(which) {
                        *inner = changed.into();
                    }
                    out.push(body);
                }
            }
            if let Stmt::For(_) = stmt {
                around.pop();
            }
        }
        out
    }
}

/// Every value that differs from `value` by one replacement that `f` makes of a part of it.
pub(super) fn values(value: &Value, f: &dyn Fn(&Value) -> Vec<Value>) -> Vec<Value> {
    let mut out = f(value);
    match value {
        Value::Const(_) | Value::Scalar(_) | Value::Load(_) => {}
        Value::Unary(op, a) => out.extend(values(a, f).into_iter().map(|a| Value::Unary(*op, Box::new(a)))),
        Value::Cast(t, a) => out.extend(values(a, f).into_iter().map(|a| Value::Cast(*t, Box::new(a)))),
        Value::Binary(op, a, b) => {
            out.extend(values(a, f).into_iter().map(|a| Value::Binary(*op, Box::new(a), b.clone())));
            out.extend(values(b, f).into_iter().map(|b| Value::Binary(*op, a.clone(), Box::new(b))));
        }
        Value::Select(c, a, b) => {
            out.extend(values(a, f).into_iter().map(|a| Value::Select(c.clone(), Box::new(a), b.clone())));
            out.extend(values(b, f).into_iter().map(|b| Value::Select(c.clone(), a.clone(), Box::new(b))));
        }
    }
    out
}

/// Every statement with one part of its value replaced.
pub(super) fn with_value(stmt: &Stmt, f: &dyn Fn(&Value) -> Vec<Value>) -> Vec<Stmt> {
    let Stmt::Assign(assign) = stmt else { return Vec::new() };
    let whole = |value| Stmt::Assign(Assign { value, ..assign.clone() });
    values(&assign.value, f).into_iter().map(whole).collect()
}

/// Every statement with one of its accesses replaced: its target or a load.
pub(super) fn with_access(stmt: &Stmt, f: &dyn Fn(&Access) -> Vec<Access>) -> Vec<Stmt> {
    let Stmt::Assign(assign) = stmt else { return Vec::new() };
    let load = |value: &Value| match value {
        Value::Load(access) => f(access).into_iter().map(Value::Load).collect(),
        _ => Vec::new(),
    };
    let target = |target| Stmt::Assign(Assign { target, ..assign.clone() });
    let mut out: Vec<Stmt> = f(&assign.target).into_iter().map(target).collect();
    out.extend(with_value(stmt, &load));
    out
}

/// Every access with one of its indices replaced; `f` is given the dimension too.
pub(super) fn indices(access: &Access, f: &dyn Fn(usize, &Index) -> Vec<Index>) -> Vec<Access> {
    let mut out = Vec::new();
    for (dim, index) in access.index.iter().enumerate() {
        for changed in f(dim, index) {
            let mut access = access.clone();
            access.index[dim] = changed;
            out.push(access);
        }
    }
    out
}

/// Every instruction with one of its operands replaced; `f` is given the operand's number too.
pub(super) fn with_operand(stmt: &Stmt, f: &dyn Fn(usize, &Operand) -> Vec<Operand>) -> Vec<Stmt> {
    let Stmt::Instruction(instruction) = stmt else { return Vec::new() };
    let mut out = Vec::new();
    for (number, operand) in instruction.operands.iter().enumerate() {
        for changed in f(number, operand) {
            let mut instruction: Instruction = instruction.clone();
            instruction.operands[number] = changed;
            out.push(Stmt::Instruction(instruction));
        }
    }
    out
}

/// Every instruction with one of the starts of its windows replaced; `f` is given the window, the dimension, the
/// start and the length (1 for a single index).
pub(super) fn with_window_start(
    stmt: &Stmt,
    f: &dyn Fn(&Window, usize, &Index, i64) -> Vec<Index>,
) -> Vec<Stmt> {
    with_operand(stmt, &|_, operand| {
        let Operand::Window(window) = operand else { return Vec::new() };
        let mut out = Vec::new();
        for (dim, span) in window.dims.iter().enumerate() {
            let starts = match span {
                Span::At(start) => f(window, dim, start, 1).into_iter().map(Span::At).collect(),
                Span::Slice(start, length) => f(window, dim, start, *length)
                    .into_iter()
                    .map(|s| Span::Slice(s, *length))
                    .collect::<Vec<_>>(),
                Span::All => Vec::new(),
            };
            for span in starts {
                let mut window = window.clone();
                window.dims[dim] = span;
                out.push(Operand::Window(window));
            }
        }
        out
    })
}

/// Every condition with one comparison or flag in it replaced.
pub(super) fn conditions(cond: &Cond, f: &dyn Fn(&Cond) -> Vec<Cond>) -> Vec<Cond> {
    let several = |all: &[Cond], whole: &dyn Fn(Vec<Cond>) -> Cond| {
        let mut out = Vec::new();
        for (at, one) in all.iter().enumerate() {
            for changed in conditions(one, f) {
                let mut all = all.to_vec();
                all[at] = changed;
                out.push(whole(all));
            }
        }
        out
    };
    match cond {
        Cond::And(all) => several(all, &|v| v.into_iter().fold(Cond::TRUE, Cond::and)),
        Cond::Or(any) => several(any, &|v| v.into_iter().fold(Cond::FALSE, Cond::or)),
        Cond::Not(c) => conditions(c, f).into_iter().map(Cond::negate).collect(),
        one => f(one),
    }
}

/// Every statement with one of its guards replaced: of an `if`, of a choice between values or between integers.
pub(super) fn with_guard(stmt: &Stmt, f: &dyn Fn(&Cond) -> Vec<Cond>) -> Vec<Stmt> {
    match stmt {
        Stmt::If(choice) => {
            f(&choice.cond).into_iter().map(|cond| Stmt::If(If { cond, ..choice.clone() })).collect()
        }
        Stmt::Instruction(_) => with_operand(stmt, &|_, operand| {
            let Operand::Scalar(index) = operand else { return Vec::new() };
            let [(Atom::Select(cond, a, b), 1)] = index.terms() else { return Vec::new() };
            let whole = |c| Operand::Scalar(Index::select(c, a.clone(), b.clone()));
            f(cond).into_iter().map(whole).collect()
        }),
        _ => with_value(stmt, &|value| {
            let Value::Select(cond, a, b) = value else { return Vec::new() };
            f(cond).into_iter().map(|c| Value::Select(c, a.clone(), b.clone())).collect()
        }),
    }
}
