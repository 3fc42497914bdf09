//! Who executes each statement (rules 2, 3, 4 and 20): the range of threads at every place of a launch, and whether the
//! statement there is one that such a range can execute.

use std::collections::HashMap;

use super::place;
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::instr;
use crate::ir::{Buffer, Launch, Mode, Own, Program, Role, Space, Stmt, Sync, print, walk};
use crate::sym::Sym;

/// The range of threads that executes a statement.
#[derive(Clone, Debug)]
pub(super) struct Executor<'a> {
    /// The first thread, an index over the variables of thread loops.
    pub first: Index,
    /// The number of threads, next to each other.
    pub threads: i64,
    /// Threads of the block.
    pub block: i64,
    /// How many such ranges execute it: the product of the counts of the thread loops around.
    pub ranges: i64,
    /// The role whose threads these are.
    pub role: Option<Sym>,
    /// The loop over owned elements around: inside it each element's owner executes alone.
    pub own: Option<&'a Own>,
}

/// The executor of every statement inside a launch, and the owners of every register buffer.
#[derive(Default)]
pub(super) struct Executors<'a> {
    by_stmt: HashMap<*const Stmt, Executor<'a>>,
    owners: HashMap<Sym, Executor<'a>>,
}

impl<'a> Executors<'a> {
    /// The executor of a statement; `None` at host scope.
    pub fn of(&self, stmt: &Stmt) -> Option<&Executor<'a>> {
        self.by_stmt.get(&std::ptr::from_ref(stmt))
    }

    /// The range of threads that a register buffer is allocated for.
    pub fn owners(&self, buffer: &Sym) -> Option<&Executor<'a>> {
        self.owners.get(buffer)
    }
}

/// Adds the executors of a launch to `out` and returns what stands at a range that cannot execute it.
pub(super) fn assign<'a>(
    program: &'a Program,
    launch: &Launch<'a>,
    out: &mut Executors<'a>,
) -> Vec<Diagnosis> {
    let block = Executor {
        first: Index::default(),
        threads: launch.threads,
        block: launch.threads,
        ranges: 1,
        role: None,
        own: None,
    };
    let mut search = Search { program, roles: &launch.roles, out, faults: Vec::new() };
    search.body(launch.body, &block);
    search.faults
}

struct Search<'a, 'b> {
    program: &'a Program,
    roles: &'b [Role],
    out: &'b mut Executors<'a>,
    faults: Vec<Diagnosis>,
}

impl<'a> Search<'a, '_> {
    fn body(&mut self, stmts: &'a [Stmt], executor: &Executor<'a>) {
        for stmt in stmts {
            self.out.by_stmt.insert(std::ptr::from_ref(stmt), executor.clone());
            if let Some(fault) = self.misplaced(stmt, executor) {
                self.faults.push(fault.at(place::of(self.program, stmt)));
            }
            let inner = self.inner(stmt, executor);
            for body in walk::bodies(stmt) {
                self.body(body, &inner);
            }
        }
    }

    /// The executor of the bodies of a statement.
    fn inner(&self, stmt: &'a Stmt, outer: &Executor<'a>) -> Executor<'a> {
        let mut inner = outer.clone();
        match stmt {
            Stmt::For(l) => {
                if let Some((count, pitch)) = l.threads() {
                    inner.first = &inner.first + &Index::var(&l.var).scaled(pitch);
                    inner.threads = pitch;
                    inner.ranges = inner.ranges.saturating_mul(count);
                }
            }
            Stmt::On(on) => {
                if let Some(role) = self.roles.iter().find(|r| r.sym == on.role) {
                    inner.first = role.lo.into();
                    inner.threads = role.hi - role.lo;
                    inner.role = Some(on.role.clone());
                }
            }
            Stmt::Own(own) => inner.own = Some(own),
            _ => {}
        }
        inner
    }

    fn misplaced(&mut self, stmt: &'a Stmt, executor: &Executor<'a>) -> Option<Diagnosis> {
        let here = executor.threads;
        if executor.own.is_some() && !alone(stmt) {
            return Some(
                Diagnosis::new("this stands inside a loop over owned elements")
                    .because("there each thread is alone with one element")
                    .instead("close the `own` loop before it"),
            );
        }
        match stmt {
            Stmt::For(l) => match (l.mode, l.threads()) {
                (Mode::Block { .. }, _) => Some(
                    Diagnosis::new(format!("the blocks of `{}` are counted inside a block", l.var))
                        .instead("put all block loops outside, one directly inside the other"),
                ),
                (_, Some((count, pitch))) if count.saturating_mul(pitch) > here => Some(
                    Diagnosis::new(format!("`{}` asks for {count} ranges of {pitch} threads", l.var))
                        .because(format!("{here} threads execute the loop"))
                        .instead("make the inner ranges smaller, or move the loop out"),
                ),
                _ => None,
            },
            Stmt::On(_) if here != executor.block => Some(
                Diagnosis::new("a role acts inside a smaller range of threads")
                    .because(format!("{here} of {} threads stand here", executor.block)),
            ),
            Stmt::Assign(_) if here != 1 && executor.own.is_none() => Some(
                Diagnosis::new(format!("{here} threads execute one element statement"))
                    .because("each of them would do it, at the same time")
                    .instead(
                        "bind loops around it to threads, down to ranges of 1, or guard it by threads(1@1)",
                    ),
            ),
            Stmt::Instruction(i) => {
                let record = instr::by_name(&i.name)?;
                (record.threads != here).then(|| {
                    Diagnosis::new(format!("{here} threads execute {}", record.name))
                        .because(format!("the instruction is executed by exactly {}", record.threads))
                        .instead(format!("put it under a loop over threads(n@{})", record.threads))
                })
            }
            Stmt::Sync(sync) => synchronisation(*sync, executor),
            Stmt::Alloc(buffer) => self.alloc(buffer, executor),
            Stmt::AllocRing(_) => shared_below_block("a ring of mbarriers", executor),
            _ => None,
        }
    }

    fn alloc(&mut self, buffer: &Buffer, executor: &Executor<'a>) -> Option<Diagnosis> {
        match buffer.space {
            Space::Shared => shared_below_block(&format!("`{}`", buffer.sym), executor),
            Space::Reg => {
                let mut owners = executor.clone();
                if owners.own.is_some() {
                    owners.threads = 1;
                }
                if let Some(role) = &buffer.role {
                    let role = self.roles.iter().find(|r| r.sym == *role)?;
                    if executor.threads != executor.block {
                        return Some(
                            Diagnosis::new(format!(
                                "`{}` is allocated for a role inside a smaller range",
                                buffer.sym
                            ))
                            .instead("allocate it at block scope, or leave `on` out"),
                        );
                    }
                    owners.first = role.lo.into();
                    owners.threads = role.hi - role.lo;
                }
                let fault = spread(buffer, owners.threads);
                self.out.owners.insert(buffer.sym.clone(), owners);
                fault
            }
            Space::Param(_) | Space::Global => None,
        }
    }
}

/// What a thread can do alone.
fn alone(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Assign(_) | Stmt::If(_) | Stmt::Let(..) => true,
        Stmt::For(l) => matches!(l.mode, Mode::Serial | Mode::Unroll | Mode::Vector),
        Stmt::Alloc(buffer) => buffer.space == Space::Reg && !buffer.is_distributed(),
        _ => false,
    }
}

fn synchronisation(sync: Sync, executor: &Executor<'_>) -> Option<Diagnosis> {
    let unit = match sync {
        Sync::Barrier => 32,
        Sync::WgmmaFence | Sync::WgmmaCommit | Sync::WgmmaWait(_) => 128,
        _ => return None,
    };
    let aligned = executor.first.constant_term() % unit == 0
        && executor.first.terms().iter().all(|(_, pitch)| pitch % unit == 0);
    let name = if unit == 32 { "warps" } else { "warpgroups" };
    (executor.threads % unit != 0 || !aligned).then(|| {
        Diagnosis::new(format!("{} threads stand at {}", executor.threads, print::sync(sync)))
            .because(format!("it joins whole {name}, {unit} threads from a multiple of {unit} on"))
            .instead("end the thread loops before it: it stands between them, at the range it joins")
    })
}

fn shared_below_block(what: &str, executor: &Executor<'_>) -> Option<Diagnosis> {
    (executor.threads != executor.block || executor.role.is_some()).then(|| {
        Diagnosis::new(format!("{what} is shared and allocated by {} threads", executor.threads))
            .because("shared memory belongs to the block")
            .instead("allocate it outside the loops over threads and the roles")
    })
}

/// Whether the elements of a register buffer have one owner each among `threads` threads, and a register of their own.
fn spread(buffer: &Buffer, threads: i64) -> Option<Diagnosis> {
    let mut dims: Vec<(i64, i64)> =
        buffer.dims.iter().filter_map(|d| Some((d.pitch?, d.extent.as_constant()?))).collect();
    dims.sort_unstable();
    if threads > 1 && dims.is_empty() && buffer.fragment.is_none() {
        return Some(
            Diagnosis::new(format!("nobody owns the elements of `{}`", buffer.sym))
                .because(format!("it is in registers and allocated for {threads} threads"))
                .instead("spread it over them (16@16), or allocate it inside the thread loops"),
        );
    }
    let mut covered = buffer.fragment.map_or(1, |f| f.threads);
    for (pitch, extent) in &dims {
        if *pitch < covered {
            return Some(
                Diagnosis::new(format!("elements of `{}` share a register", buffer.sym))
                    .because(format!(
                        "{extent}@{pitch} puts elements {pitch} threads apart, and {covered} are taken"
                    ))
                    .instead("make each pitch at least the threads that the dimensions inside it cover"),
            );
        }
        covered = pitch.saturating_mul(extent - 1).saturating_add(covered);
    }
    (covered > threads).then(|| {
        Diagnosis::new(format!("`{}` is spread over {covered} threads", buffer.sym))
            .because(format!("{threads} threads stand here"))
            .instead("make its distributed dimensions fit the range it is allocated for")
    })
}
