//! Roles stand inside the loops they share, and a ring is counted by one loop (rules 6, 8, 10 and 22): otherwise the
//! program has no meaning in order, even if it would run on a GPU.

use std::collections::{BTreeSet, HashMap};

use super::place;
use crate::diag::Diagnosis;
use crate::index::{Cond, Index, prove};
use crate::ir::{For, Mode, Program, Role, Stmt, facts, walk};
use crate::sym::Sym;

/// All faults of roles and rings.
pub(super) fn check(program: &Program) -> Vec<Diagnosis> {
    let mut search = Search {
        program,
        around: Vec::new(),
        role: None,
        threads: None,
        uses: HashMap::new(),
        faults: Vec::new(),
    };
    search.body(&program.body);
    let mut faults = search.faults;
    facts::at_those(program, &|stmt| phase(stmt).is_some(), &mut |stmt, facts| {
        if let Some((ring, ordinal)) = phase(stmt)
            && prove(facts, &Cond::lt(ordinal.clone(), 0.into())) == Some(true)
        {
            let fault = Diagnosis::new(format!("`{ring}` has no phase {ordinal}"))
                .because("ordinals count from 0")
                .instead("guard the first iterations");
            faults.push(fault.at(place::of(program, stmt)));
        }
    });
    faults
}

/// The ring and ordinal that a statement names.
fn phase(stmt: &Stmt) -> Option<(&Sym, &Index)> {
    match stmt {
        Stmt::Arrive { ring, ordinal, .. } | Stmt::Await { ring, ordinal } => Some((ring, ordinal)),
        Stmt::Instruction(i) => i.signal.as_ref().map(|(ring, ordinal)| (ring, ordinal)),
        _ => None,
    }
}

/// What one use of a ring counts by, and who uses it.
struct Use<'a> {
    stmt: &'a Stmt,
    role: Option<Sym>,
    counters: BTreeSet<Sym>,
}

struct Search<'a> {
    program: &'a Program,
    /// The variables of unrolled loops and, by their `let`, what else stands for constants.
    around: Vec<Sym>,
    role: Option<Sym>,
    threads: Option<Sym>,
    uses: HashMap<Sym, Vec<Use<'a>>>,
    faults: Vec<Diagnosis>,
}

impl<'a> Search<'a> {
    fn body(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::For(l) => self.enter(l, stmt),
                Stmt::On(on) => {
                    if let Some(outer) = self.role.clone() {
                        self.fault(
                            stmt,
                            Diagnosis::new(format!("role `{}` acts inside role `{outer}`", on.role))
                                .because("a thread has one role"),
                        );
                    }
                    if let Some(threads) = &self.threads {
                        let fault = Diagnosis::new(format!(
                            "role `{}` acts inside the thread loop `{threads}`",
                            on.role
                        ))
                        .because("a role is a range of the threads of the block")
                        .instead("put the thread loop inside the role");
                        self.fault(stmt, fault);
                    }
                    let outer = self.role.replace(on.role.clone());
                    self.body(&on.body);
                    self.role = outer;
                }
                Stmt::Roles(roles) => self.roles(roles, stmt),
                _ => {
                    if let Some((ring, ordinal)) = phase(stmt) {
                        self.ring(stmt, ring, ordinal);
                    }
                    for body in walk::bodies(stmt) {
                        self.body(body);
                    }
                }
            }
        }
    }

    fn enter(&mut self, l: &'a For, stmt: &'a Stmt) {
        let (threads, depth) = (self.threads.clone(), self.around.len());
        match l.mode {
            Mode::Threads { .. } => self.threads = Some(l.var.clone()),
            Mode::Unroll => self.around.push(l.var.clone()),
            _ => {}
        }
        if matches!(l.mode, Mode::Block { .. }) {
            self.one_list_of_roles(l, stmt);
        }
        self.body(&l.body);
        self.around.truncate(depth);
        self.threads = threads;
    }

    fn one_list_of_roles(&mut self, l: &For, stmt: &Stmt) {
        let here = l.body.iter().filter(|s| matches!(s, Stmt::Roles(_))).count();
        let mut all = 0;
        walk::for_each(&l.body, &mut |s| all += usize::from(matches!(s, Stmt::Roles(_))));
        let innermost = !matches!(&l.body[..], [Stmt::For(For { mode: Mode::Block { .. }, .. })]);
        if innermost && (all > 1 || all != here) {
            let fault = Diagnosis::new("roles are not declared once, at block scope")
                .because("a thread keeps its role for the whole launch")
                .instead("declare all roles in one statement before they act");
            self.fault(stmt, fault);
        }
    }

    fn roles(&mut self, roles: &[Role], stmt: &Stmt) {
        for (at, role) in roles.iter().enumerate() {
            if role.lo < 0 || role.lo >= role.hi {
                let what = format!("role `{}` has the threads {}..{}", role.sym, role.lo, role.hi);
                self.fault(stmt, Diagnosis::new(what).instead("a role has at least one thread"));
            }
            for other in &roles[..at] {
                if role.lo < other.hi && other.lo < role.hi {
                    let what = format!("roles `{}` and `{}` share threads", other.sym, role.sym);
                    self.fault(stmt, Diagnosis::new(what).because("a thread has one role"));
                }
            }
        }
    }

    /// Compares how a ring is counted here with how another role counts it.
    fn ring(&mut self, stmt: &'a Stmt, ring: &Sym, ordinal: &Index) {
        let mut counters = BTreeSet::new();
        ordinal.for_each_var(&mut |s| {
            if !self.around.contains(s) {
                counters.insert(s.clone());
            }
        });
        let role = self.role.clone();
        let uses = self.uses.entry(ring.clone()).or_default();
        let other = uses.iter().find(|u| {
            u.role != role && !u.counters.is_empty() && !counters.is_empty() && u.counters != counters
        });
        if let Some(other) = other {
            let names = |c: &BTreeSet<Sym>| c.iter().map(|s| format!("`{s}`")).collect::<Vec<_>>().join(", ");
            let fault = Diagnosis::new(format!(
                "`{ring}` is counted by {} here and by {} in another role",
                names(&counters),
                names(&other.counters)
            ))
            .because(format!(
                "in order one role would run all its iterations before the other starts (see {})",
                place::of(self.program, other.stmt)
            ))
            .instead("put both roles inside one loop: for k ... counting n { on ... { } on ... { } }");
            self.fault(stmt, fault);
        } else {
            uses.push(Use { stmt, role, counters });
        }
    }

    fn fault(&mut self, stmt: &Stmt, fault: Diagnosis) {
        self.faults.push(fault.at(place::of(self.program, stmt)));
    }
}
