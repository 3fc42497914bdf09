//! Symbols as slots of an environment.

use warpwright_core::index::{Atom, Cond, Index};
use warpwright_core::ir::{Buffer, ParamKind, Program, Stmt, walk};
use warpwright_core::sym::Sym;

/// A dense number for every symbol of a program.
pub(super) struct Names {
    first: u32,
    slots: Vec<u32>,
    /// How many slots there are.
    pub count: usize,
}

impl Names {
    pub fn new(program: &Program) -> Names {
        let mut syms = walk::binders(&program.body);
        let of_buffer = |b: &Buffer, syms: &mut Vec<Sym>| {
            syms.push(b.sym.clone());
            syms.extend(b.row_stride.clone());
            syms.extend(b.layout.iter().flat_map(|l| l.axes.iter().cloned()));
        };
        for param in &program.params {
            syms.push(param.sym.clone());
            if let ParamKind::Tensor(buffer) = &param.kind {
                of_buffer(buffer, &mut syms);
            }
        }
        walk::for_each(&program.body, &mut |stmt| match stmt {
            Stmt::Alloc(buffer) => of_buffer(buffer, &mut syms),
            Stmt::Roles(roles) => syms.extend(roles.iter().map(|r| r.sym.clone())),
            _ => {}
        });
        let first = syms.iter().map(Sym::id).min().unwrap_or(0);
        let last = syms.iter().map(Sym::id).max().unwrap_or(0);
        let mut slots = vec![u32::MAX; (last - first) as usize + 1];
        let mut count = 0;
        for sym in syms {
            let slot = &mut slots[(sym.id() - first) as usize];
            if *slot == u32::MAX {
                *slot = count;
                count += 1;
            }
        }
        Names { first, slots, count: count as usize }
    }

    pub fn slot(&self, sym: &Sym) -> usize {
        self.slots[(sym.id() - self.first) as usize] as usize
    }

    pub fn index(&self, index: &Index, env: &[i64]) -> i64 {
        let mut sum = index.constant_term();
        for (atom, coefficient) in index.terms() {
            sum += coefficient * self.atom(atom, env);
        }
        sum
    }

    fn atom(&self, atom: &Atom, env: &[i64]) -> i64 {
        match atom {
            Atom::Var(sym) => env[self.slot(sym)],
            Atom::Div(x, d) => self.index(x, env).div_euclid(*d),
            Atom::Mod(x, d) => self.index(x, env).rem_euclid(*d),
            Atom::Min(a, b) => self.index(a, env).min(self.index(b, env)),
            Atom::Max(a, b) => self.index(a, env).max(self.index(b, env)),
            Atom::Xor(a, b) => self.index(a, env) ^ self.index(b, env),
            Atom::Select(c, a, b) => self.index(if self.cond(c, env) { a } else { b }, env),
        }
    }

    pub fn cond(&self, cond: &Cond, env: &[i64]) -> bool {
        match cond {
            Cond::Compare(how, a, b) => how.holds(self.index(a, env), self.index(b, env)),
            Cond::Flag(sym) => env[self.slot(sym)] != 0,
            Cond::Not(c) => !self.cond(c, env),
            Cond::And(all) => all.iter().all(|c| self.cond(c, env)),
            Cond::Or(any) => any.iter().any(|c| self.cond(c, env)),
        }
    }
}
