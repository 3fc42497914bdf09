//! Removes virtual threads.
//!
//! *Takes* any program. *Gives* one without `interleave` loops (rule 30): each has moved inside the loops that it
//! stood around, down to the statements that its variable reaches, and is written out there; what it allocated has
//! one copy for each of its iterations. *Stands* first, because it moves statements across thread loops.
//!
//! ```
//! use warpwright_core::ir::{parse, print};
//! use warpwright_core::passes::interleave::interleave;
//!
//! let before = "
//! program p(x: in f32[4, 32, 8], y: out f32[2, 32])
//! {
//!   for b in block.x(1) {
//!     for v in interleave 0..2 {
//!       for t in threads(32@1) {
//!         alloc s: f32[1] reg
//!         s[0] = 0
//!         for k in 0..8 {
//!           s[0] += x[v, t, k]
//!         }
//!         y[v, t] = s[0]
//!       }
//!     }
//!   }
//! }";
//! let after = "
//! program p(x: in f32[4, 32, 8], y: out f32[2, 32])
//! {
//!   for b in block.x(1) {
//!     for t in threads(32@1) {
//!       alloc s: f32[2, 1] reg
//!       for v in unroll 0..2 { s[v, 0] = 0 }
//!       for k in 0..8 {
//!         for v in unroll 0..2 { s[v, 0] += x[v, t, k] }
//!       }
//!       for v in unroll 0..2 { y[v, t] = s[v, 0] }
//!     }
//!   }
//! }";
//! let (before, after) = (parse::program(before)?, parse::program(after)?);
//! assert_eq!(print::program(&interleave(before)?), print::program(&after));
//! # Ok::<(), warpwright_core::diag::Diagnosis>(())
//! ```
//!
//! This changes the order of statements, so the iterations must be independent, which is checked.

use std::collections::{HashMap, HashSet};

use super::synchronise::iterations_stay_apart;
use crate::diag::Diagnosis;
use crate::index::{Facts, Index};
use crate::ir::validate::iterations::independent;
use crate::ir::{
    Access, Assign, Buffer, Dim, For, Instruction, Mode, Operand, Own, Program, Range, Span, Stmt, Value,
    Window, facts, walk,
};
use crate::sym::Sym;

/// Removes virtual threads.
///
/// # Errors
/// An interleaved loop whose iterations are not independent, whose number is not a constant, or whose body
/// synchronises.
pub fn interleave(program: Program) -> Result<Program, Diagnosis> {
    let mut refused = None;
    let buffers = program.buffers();
    facts::at_those(&program, &is_interleaved, &mut |stmt, facts| {
        if let Stmt::For(l) = stmt
            && refused.is_none()
        {
            refused = refusal(l, facts, &buffers).map(|d| d.at(l.var.name()));
        }
    });
    if let Some(diagnosis) = refused {
        return Err(diagnosis);
    }
    let mut program = program;
    let body = std::mem::take(&mut program.body);
    // Innermost first, so that what an outer loop finds inside is free of virtual threads.
    program.body = walk::rewrite(body, &mut |stmt| match stmt {
        Stmt::For(l) if l.mode == Mode::Interleave => Jam::of(l).unwrap_or_default(),
        other => vec![other],
    });
    Ok(program)
}

fn is_interleaved(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(For { mode: Mode::Interleave, .. }))
}

/// Why a loop cannot be interleaved.
fn refusal(l: &For, facts: &Facts, buffers: &HashMap<Sym, Buffer>) -> Option<Diagnosis> {
    let refuse = |because: String| Some(Diagnosis::new("the loop cannot be interleaved").because(because));
    let constant = matches!(&l.range, Range::Span { lo, step, .. }
        if lo.as_constant() == Some(0) && step.as_constant() == Some(1))
        && l.range.constant_trip_count().is_some();
    if !constant {
        return refuse("it does not count from 0 to a constant by 1".into());
    }
    let mut because = l.counting.as_ref().map(|n| format!("its iterations are counted by `{n}`"));
    walk::for_each(&l.body, &mut |stmt| match stmt {
        Stmt::For(For { counting: Some(n), .. }) => {
            because = Some(format!("`{n}` counts iterations inside it"))
        }
        Stmt::AllocRing(_) | Stmt::Arrive { .. } | Stmt::Await { .. } | Stmt::Tasks(_) | Stmt::Roles(_) => {
            because = Some("it contains mbarriers, roles or tasks".into());
        }
        Stmt::Alloc(b) if b.layout.is_some() => {
            because = Some(format!("`{}`, which is allocated inside, has a layout", b.sym));
        }
        _ => {}
    });
    if because.is_some() {
        return refuse(because.unwrap_or_default());
    }
    let inner: HashSet<Sym> = walk::binders(&l.body).into_iter().collect();
    let trips = l.range.constant_trip_count().unwrap_or(0);
    let apart = |b: &Sym| {
        inner.contains(b)
            || iterations_stay_apart(l, trips, b, facts.ranges())
            || independent(l, b, facts, buffers) == Some(true)
    };
    let buffer = written(&l.body).into_iter().find(|b| !apart(b))?;
    refuse(format!("two of its iterations may touch the same element of `{buffer}`"))
        .map(|d| d.instead("interleave a loop over elements of the result"))
}

/// The buffers that statements write or may write.
fn written(stmts: &[Stmt]) -> Vec<Sym> {
    let mut out = Vec::new();
    let mut add = |sym: &Sym| {
        if !out.contains(sym) {
            out.push(sym.clone());
        }
    };
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Assign(a) => add(&a.target.buffer),
        Stmt::Instruction(i) => i.operands.iter().for_each(|o| {
            if let Operand::Window(w) = o {
                add(&w.buffer);
            }
        }),
        _ => {}
    });
    out
}

/// An interleaved loop on its way inwards.
struct Jam {
    var: Sym,
    trips: i64,
    /// What the body allocates.
    inner: HashSet<Sym>,
    /// Those of which each iteration has its own content, and so its own copy.
    copied: HashSet<Sym>,
}

impl Jam {
    /// The body with the loop inside; `None` if there is no iteration.
    fn of(l: For) -> Option<Vec<Stmt>> {
        let trips = l.range.constant_trip_count().filter(|n| *n > 0)?;
        let body = inline(l.body.into(), &l.var);
        let inner = walk::binders(&body).into_iter().collect();
        let mut jam = Jam { var: l.var, trips, inner, copied: HashSet::new() };
        // What one copied buffer is written from makes others differ too.
        loop {
            let before = jam.copied.len();
            jam.find_copied(&body, false);
            if jam.copied.len() == before {
                break;
            }
        }
        Some(jam.list(body))
    }

    /// Whether the variable reaches something a statement mentions.
    fn reaches(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        walk::for_each_symbol(std::slice::from_ref(stmt), &mut |s| found = found || self.concerns(s));
        found
    }

    /// As [`Jam::reaches`] for a statement without those inside it.
    fn reaches_itself(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        walk::for_each_symbol_of(stmt, &mut |s| found = found || self.concerns(s));
        found
    }

    fn concerns(&self, sym: &Sym) -> bool {
        *sym == self.var || self.copied.contains(sym)
    }

    /// Adds the inner buffers whose content depends on the variable. `under` says whether a condition or a bound
    /// around the statements does.
    fn find_copied(&mut self, stmts: &[Stmt], under: bool) {
        for stmt in stmts {
            let depends = under || self.reaches_itself(stmt);
            match stmt {
                Stmt::Assign(_) | Stmt::Instruction(_) if depends => {
                    let own = written(std::slice::from_ref(stmt));
                    self.copied.extend(own.into_iter().filter(|b| self.inner.contains(b)));
                }
                _ => walk::bodies(stmt).for_each(|body| self.find_copied(body, depends)),
            }
        }
    }

    fn list(&self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        stmts.into_iter().flat_map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&self, stmt: Stmt) -> Vec<Stmt> {
        let depends = self.reaches_itself(&stmt);
        match stmt {
            Stmt::Alloc(mut buffer) => {
                if self.copied.contains(&buffer.sym) {
                    buffer.dims.insert(0, Dim::new(self.trips));
                }
                vec![Stmt::Alloc(buffer)]
            }
            stmt if !self.must_repeat(&stmt) => vec![stmt],
            Stmt::For(mut l) if !depends && l.mode != Mode::Vector => {
                l.body = self.list(l.body.take()).into();
                vec![Stmt::For(l)]
            }
            Stmt::If(mut i) if !i.cond.mentions(&self.var) => {
                i.then = self.list(i.then.take()).into();
                i.otherwise = self.list(i.otherwise.take()).into();
                vec![Stmt::If(i)]
            }
            Stmt::On(mut on) => {
                on.body = self.list(on.body.take()).into();
                vec![Stmt::On(on)]
            }
            leaf => {
                let var = self.var.fresh();
                let body = self.with_copies(leaf, &var);
                vec![For::with_mode(&var, Mode::Unroll, Range::upto(self.trips), vec![body])]
            }
        }
    }

    /// Whether a statement has to be done once for each iteration: it depends on the variable, or it does something
    /// to a buffer that outlives the loop.
    fn must_repeat(&self, stmt: &Stmt) -> bool {
        self.reaches(stmt) || written(std::slice::from_ref(stmt)).iter().any(|b| !self.inner.contains(b))
    }

    /// A statement of iteration `var`, on the copies of that iteration.
    fn with_copies(&self, stmt: Stmt, var: &Sym) -> Stmt {
        let renamed = walk::substitute(&[stmt], &|s| (*s == self.var).then(|| Index::var(var)));
        let mut out = walk::rewrite(renamed, &mut |stmt| {
            vec![match stmt {
                Stmt::Assign(a) => Stmt::Assign(Assign {
                    target: self.access(&a.target, var),
                    value: a.value.map_accesses(&|x| Value::Load(self.access(x, var)), &|c| c.clone()),
                    ..a
                }),
                Stmt::Instruction(i) => {
                    let operand = |o: &Operand| match o {
                        Operand::Window(w) => Operand::Window(self.window(w, var)),
                        scalar => scalar.clone(),
                    };
                    let operands = i.operands.iter().map(operand).collect();
                    Stmt::Instruction(Instruction { operands, ..i })
                }
                Stmt::Own(o) => Stmt::Own(Own { window: self.window(&o.window, var), ..o }),
                Stmt::Alloc(mut b) if self.copied.contains(&b.sym) => {
                    // Inside a statement that is repeated as a whole, each repetition has its own already.
                    b.dims.insert(0, Dim::new(self.trips));
                    Stmt::Alloc(b)
                }
                other => other,
            }]
        });
        out.pop().expect("one statement becomes one")
    }

    fn access(&self, access: &Access, var: &Sym) -> Access {
        let mut access = access.clone();
        if self.copied.contains(&access.buffer) {
            access.index.insert(0, Index::var(var));
        }
        access
    }

    fn window(&self, window: &Window, var: &Sym) -> Window {
        let mut window = window.clone();
        if self.copied.contains(&window.buffer) {
            window.dims.insert(0, Span::At(Index::var(var)));
        }
        window
    }
}

/// Replaces the `let`s whose values depend on the variable.
fn inline(stmts: Vec<Stmt>, var: &Sym) -> Vec<Stmt> {
    let mut values: HashMap<Sym, Index> = HashMap::new();
    walk::for_each(&stmts, &mut |stmt| {
        if let Stmt::Let(sym, value) = stmt {
            let value = value.substitute(&|s| values.get(s).cloned());
            if value.mentions(var) {
                values.insert(sym.clone(), value);
            }
        }
    });
    if values.is_empty() {
        return stmts;
    }
    let kept = walk::rewrite(stmts, &mut |stmt| match stmt {
        Stmt::Let(sym, _) if values.contains_key(&sym) => Vec::new(),
        other => vec![other],
    });
    walk::substitute(&kept, &|s| values.get(s).cloned())
}
