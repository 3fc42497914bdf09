//! Places the barriers that a program needs.
//!
//! *Takes* a program whose element statements all belong to threads. *Gives* the same program with a `barrier`
//! between any two sibling statements of which one touches what another thread has touched in the other. *Stands*
//! after everything that moves statements, because it looks at what finally stands beside what.
//!
//! Each statement list is scanned in order with the touches since the last barrier. Where a touch conflicts with one
//! of them, a barrier is put into the innermost list that contains both, directly before the later statement; for a
//! conflict with an earlier iteration of the loop whose body the list is, at the end of the body. Barriers that are
//! there count, and so do mbarriers and waits; none of those is invented. Which threads touch which elements is
//! enumerated, so elements that stay with their thread need no barrier, and neither do different slots of a ring.
//!
//! ```
//! use warpwright_core::ir::{parse, print};
//! use warpwright_core::passes::synchronise::synchronise;
//!
//! let before = "
//! program reverse(n: size, x: in f32[n], y: out f32[n])
//! {
//!   for b in block.x(ceil(n, 256)) {
//!     alloc s: f32[256] shared
//!     for t in threads(256@1) { s[t] = 256*b + t < n ? x[256*b + t] : 0 }
//!     for t in threads(256@1) { if 256*b + t < n { y[256*b + t] = s[255 - t] } }
//!   }
//! }";
//! let after = "
//! program reverse(n: size, x: in f32[n], y: out f32[n])
//! {
//!   for b in block.x(ceil(n, 256)) {
//!     alloc s: f32[256] shared
//!     for t in threads(256@1) { s[t] = 256*b + t < n ? x[256*b + t] : 0 }
//!     barrier
//!     for t in threads(256@1) { if 256*b + t < n { y[256*b + t] = s[255 - t] } }
//!   }
//! }";
//! let (before, after) = (parse::program(before)?, parse::program(after)?);
//! assert_eq!(print::program(&synchronise(before)?), print::program(&after));
//! # Ok::<(), warpwright_core::diag::Diagnosis>(())
//! ```

mod apart;
mod collect;
mod conflict;
mod digits;
mod footprint;
mod pending;
mod repeat;
mod touch;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::diag::Diagnosis;
use crate::index::{Index, Interval, Ranges};
use crate::instr::{Completion, by_name};
use crate::ir::{
    Buffer, For, If, Launch, Mode, On, Operand, ParamKind, Program, Role, Space, Stmt, Sync, walk,
};
use crate::sym::Sym;
pub(super) use apart::iterations_stay_apart;
use conflict::{Conflicts, Verdict};
use pending::{Flight, Pending, merge};
use touch::{Around, Kind, Touch, Values};

/// Places the barriers of every launch.
///
/// # Errors
/// A value that passes between threads inside one thread loop, where no barrier can stand; a barrier or a shared
/// buffer under a thread loop that is too small for it.
pub fn synchronise(program: Program) -> Result<Program, Diagnosis> {
    let mut program = program;
    let sizes = program.params.iter().filter(|p| matches!(p.kind, ParamKind::Size)).map(|p| p.sym.clone());
    let mut facts =
        Facts { sizes: sizes.collect(), ranges: Ranges::new(), buffers: program.buffers(), path: Vec::new() };
    for param in &program.params {
        match param.kind {
            ParamKind::Size => facts.ranges.set(&param.sym, Interval::SIZE),
            ParamKind::Launch => facts.ranges.set(&param.sym, Interval { lo: Some(1), hi: None }),
            _ => {}
        }
    }
    host_list(&mut program.body, &mut facts)?;
    Ok(program)
}

/// What is known outside a launch.
struct Facts {
    sizes: HashSet<Sym>,
    ranges: Ranges,
    buffers: HashMap<Sym, Buffer>,
    /// The block loops, for diagnoses.
    path: Vec<Sym>,
}

fn host_list(stmts: &mut [Stmt], facts: &mut Facts) -> Result<(), Diagnosis> {
    for stmt in stmts {
        match stmt {
            Stmt::If(i) => {
                host_list(&mut i.then, facts)?;
                host_list(&mut i.otherwise, facts)?;
            }
            Stmt::For(For { mode: Mode::Block { .. }, .. }) => {
                let Some(view) = Launch::of(stmt)? else { continue };
                let (threads, roles) = (view.threads, view.roles.clone());
                facts.path.clear();
                let mut body = std::slice::from_mut(stmt);
                // Down the nest of block loops.
                let body = loop {
                    match body {
                        [Stmt::For(For { mode: Mode::Block { .. }, var, body: inner, .. })] => {
                            facts.ranges.set(var, Interval::SIZE);
                            facts.path.push(var.clone());
                            if !matches!(&inner[..], [Stmt::For(For { mode: Mode::Block { .. }, .. })]) {
                                break inner;
                            }
                            body = &mut inner[..];
                        }
                        _ => unreachable!("a launch is a nest of block loops"),
                    }
                };
                launch(body, threads, roles, facts)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn launch(body: &mut Vec<Stmt>, threads: i64, roles: Vec<Role>, facts: &Facts) -> Result<(), Diagnosis> {
    let watched = watched(body, &facts.buffers);
    // Copies that a wait completes fix where their barrier must stand, after the wait, so they come first: the same
    // barrier often serves the others.
    let phases: &[bool] = if copies_asynchronously(body) { &[true, false] } else { &[false] };
    for only_async in phases.iter().copied() {
        let block = Group { starts: Rc::from([0]), size: threads, whole: true, closed: false };
        let mut scan = Scan {
            facts,
            roles: &roles,
            watched: &watched,
            conflicts: Conflicts::new(facts.sizes.clone(), facts.ranges.clone()),
            only_async,
            at: Place { groups: vec![block], ..Place::default() },
            pending: Vec::new(),
            placed: 0,
            offsets: Vec::new(),
        };
        match scan.list(body) {
            Ok(()) => {}
            Err(Stop::Refused(diagnosis)) => return Err(*diagnosis),
            Err(Stop::Before { .. } | Stop::AtEnd { .. }) => unreachable!("some list takes every barrier"),
        }
    }
    Ok(())
}

fn copies_asynchronously(body: &[Stmt]) -> bool {
    let mut found = false;
    walk::for_each(body, &mut |stmt| {
        if let Stmt::Instruction(i) = stmt {
            found |= by_name(&i.name).is_some_and(|r| r.completion == Completion::CpAsync);
        }
    });
    found
}

/// The buffers whose touches matter: shared ones, and those in device memory that this launch writes.
fn watched(body: &[Stmt], buffers: &HashMap<Sym, Buffer>) -> HashSet<Sym> {
    let mut out = HashSet::new();
    let written = |sym: &Sym, out: &mut HashSet<Sym>| {
        if buffers.get(sym).is_some_and(|b| b.is_global()) {
            out.insert(sym.clone());
        }
    };
    walk::for_each(body, &mut |stmt| match stmt {
        Stmt::Alloc(buffer) if buffer.space == Space::Shared => {
            out.insert(buffer.sym.clone());
        }
        Stmt::Assign(a) => written(&a.target.buffer, &mut out),
        Stmt::Instruction(i) => {
            let specs = by_name(&i.name).map_or(&[][..], |r| r.operands);
            for (operand, spec) in i.operands.iter().zip(specs) {
                if let (Operand::Window(w), true) = (operand, spec.access.writes()) {
                    written(&w.buffer, &mut out);
                }
            }
        }
        _ => {}
    });
    out
}

/// The ranges of threads that a barrier at some place joins, each apart from the others, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    starts: Rc<[i64]>,
    size: i64,
    /// Whether it is the whole block.
    whole: bool,
    /// Whether no barrier can stand here although there are threads enough.
    closed: bool,
}

impl Group {
    /// Whether two threads meet at the barrier.
    fn joins(&self, first: i64, last: i64) -> bool {
        self.starts.iter().any(|s| *s <= first && last < s + self.size)
    }

    /// The range that a thread belongs to, if it belongs to one.
    fn range_of(&self, thread: i64) -> Option<(i64, i64)> {
        let after = self.starts.partition_point(|s| *s <= thread);
        let first = *self.starts[..after].last()?;
        (thread < first + self.size).then_some((first, first + self.size))
    }

    /// Whether some thread from `first` to before `end` belongs to it.
    fn has_some(&self, first: i64, end: i64) -> bool {
        let at = self.starts.partition_point(|s| s + self.size <= first);
        self.starts.get(at).is_some_and(|s| *s < end)
    }

    /// Whether hardware has a barrier for such ranges: a block, or whole warps.
    fn has_barrier(&self) -> bool {
        !self.closed && (self.whole || (self.size % 32 == 0 && self.starts.iter().all(|s| s % 32 == 0)))
    }

    /// The ranges that a thread loop splits each of these into.
    fn split(&self, count: i64, pitch: i64) -> Group {
        let starts = self.starts.iter().flat_map(|s| (0..count).map(move |i| s + i * pitch)).collect();
        Group { starts, size: pitch, whole: false, closed: false }
    }
}

/// Where the scan is: everything that is restored when it leaves a list.
#[derive(Clone, Default)]
struct Place {
    around: Vec<Around>,
    guards: Vec<crate::index::Cond>,
    lets: HashMap<Sym, Index>,
    /// For each open statement list, its threads; and, in `cursor`, the statement under way.
    groups: Vec<Group>,
    cursor: Vec<usize>,
    /// The first thread of the block or role.
    base: i64,
    /// The rings on which the threads of this nest or role have waited.
    acquired: Vec<Sym>,
    /// Whether the statements are only compared with what is pending, because they have been with each other.
    probing: bool,
}

/// Why a scan stops before the end.
enum Stop {
    /// A barrier is needed in the open list of that depth, before that statement.
    Before { depth: usize, statement: usize },
    /// A barrier is needed at the end of the open list of that depth, which is the body of a loop.
    AtEnd { depth: usize },
    /// No barrier can help.
    Refused(Box<Diagnosis>),
}

struct Scan<'a> {
    facts: &'a Facts,
    roles: &'a [Role],
    watched: &'a HashSet<Sym>,
    conflicts: Conflicts,
    /// Whether only conflicts with completed asynchronous copies are looked at.
    only_async: bool,
    at: Place,
    pending: Vec<Pending>,
    /// The number of barriers placed so far.
    placed: usize,
    /// Variables of the windows of instructions.
    offsets: Vec<Sym>,
}

impl Scan<'_> {
    /// The depth of the innermost open list.
    fn depth(&self) -> usize {
        self.at.groups.len() - 1
    }

    /// The threads that execute the statements of the innermost open list together.
    fn group(&self) -> &Group {
        self.at.groups.last().expect("a list is open")
    }

    /// Scans the list for whose threads `at.groups` already has an entry, and closes it. Puts in the barriers that
    /// belong to it, and begins again after each.
    fn list(&mut self, stmts: &mut Vec<Stmt>) -> Result<(), Stop> {
        let depth = self.depth();
        let (at, pending) = (self.at.clone(), self.pending.clone());
        self.at.cursor.push(0);
        let mut next = 0;
        while next < stmts.len() {
            self.at.cursor[depth] = next;
            match self.stmt(&mut stmts[next]) {
                Ok(()) => next += 1,
                Err(Stop::Before { depth: wanted, statement }) if wanted == depth => {
                    let beside = &stmts[statement.saturating_sub(1)..(statement + 1).min(stmts.len())];
                    if beside.iter().any(is_barrier) {
                        return Err(self.refuse(too_late()));
                    }
                    stmts.insert(statement, Stmt::Sync(Sync::Barrier));
                    self.placed += 1;
                    self.at = at.clone();
                    self.at.cursor.push(0);
                    self.pending.clone_from(&pending);
                    next = 0;
                }
                Err(stop) => return Err(stop),
            }
        }
        self.at.cursor.pop();
        self.at.groups.pop();
        for entry in &mut self.pending {
            entry.close(depth);
        }
        Ok(())
    }

    /// Scans a list that is executed by `group` and nested in the innermost open one.
    fn inner(&mut self, stmts: &mut Vec<Stmt>, group: Group) -> Result<(), Stop> {
        self.at.groups.push(group);
        self.list(stmts)
    }

    fn stmt(&mut self, stmt: &mut Stmt) -> Result<(), Stop> {
        match stmt {
            Stmt::For(l) => match l.threads() {
                Some((count, pitch)) => self.threads(l, count, pitch),
                None => self.repeated(l),
            },
            Stmt::Tasks(t) => self.tasks(t),
            Stmt::Own(o) => self.own(o),
            Stmt::If(i) => self.branches(i),
            Stmt::On(on) => self.role(on),
            Stmt::Let(var, value) => {
                let value = self.resolve(value);
                self.at.lets.insert(var.clone(), value);
                Ok(())
            }
            Stmt::Alloc(buffer) => self.alloc(buffer),
            Stmt::AllocRing(_) | Stmt::Roles(_) => Ok(()),
            Stmt::Assign(a) => self.assign(a),
            Stmt::Instruction(i) => self.instruction(i),
            Stmt::Sync(sync) => self.sync(*sync),
            Stmt::Arrive { ring, .. } => {
                let arriving = self.group().clone();
                self.pending.iter_mut().for_each(|p| p.release(ring, &arriving));
                Ok(())
            }
            Stmt::Await { ring, .. } => {
                self.at.acquired.push(ring.clone());
                Ok(())
            }
        }
    }

    fn threads(&mut self, l: &mut For, count: i64, pitch: i64) -> Result<(), Stop> {
        let available = self.group().size;
        if count.saturating_mul(pitch) > available {
            let diagnosis = Diagnosis::new(format!("`{}` asks for {count} times {pitch} threads", l.var))
                .because(format!("the threads there are {available}"))
                .instead("split them into smaller ranges");
            return Err(self.refuse(diagnosis));
        }
        let outside = (self.at.around.len(), self.at.acquired.len());
        let depth = self.depth() + 1;
        self.at.around.push(Around { var: l.var.clone(), values: Values::Threads { count, pitch }, depth });
        let group = self.group().split(count, pitch);
        self.inner(&mut l.body, group)?;
        self.at.around.truncate(outside.0);
        self.at.acquired.truncate(outside.1);
        Ok(())
    }

    fn role(&mut self, on: &mut On) -> Result<(), Stop> {
        let Some(role) = self.roles.iter().find(|r| r.sym == on.role) else { return Ok(()) };
        let outside = (self.at.base, self.at.acquired.len());
        self.at.base = role.lo;
        self.inner(
            &mut on.body,
            Group { starts: Rc::from([role.lo]), size: role.hi - role.lo, whole: false, closed: false },
        )?;
        self.at.base = outside.0;
        self.at.acquired.truncate(outside.1);
        Ok(())
    }

    fn branches(&mut self, i: &mut If) -> Result<(), Stop> {
        let cond = i.cond.substitute(&|s| self.at.lets.get(s).cloned());
        let before = self.pending.clone();
        let group = self.group().clone();
        self.at.guards.push(cond.clone());
        self.inner(&mut i.then, group.clone())?;
        let after = std::mem::replace(&mut self.pending, before);
        self.at.guards.pop();
        self.at.guards.push(cond.negate());
        self.inner(&mut i.otherwise, group)?;
        self.at.guards.pop();
        merge(&mut self.pending, after);
        Ok(())
    }

    fn alloc(&mut self, buffer: &Buffer) -> Result<(), Stop> {
        if buffer.space == Space::Shared
            && self.at.around.iter().any(|l| matches!(l.values, Values::Threads { .. }))
        {
            let diagnosis =
                Diagnosis::new(format!("the shared buffer `{}` stands inside a thread loop", buffer.sym))
                    .because("shared memory belongs to the whole block, so all its threads must be there")
                    .instead("sink the thread loop below the buffer first");
            return Err(self.refuse(diagnosis));
        }
        Ok(())
    }

    fn sync(&mut self, sync: Sync) -> Result<(), Stop> {
        match sync {
            Sync::Barrier if self.group().has_barrier() => {
                let group = self.group().clone();
                self.pending.retain_mut(|p| p.meet(&group));
            }
            Sync::Barrier => {
                let diagnosis = Diagnosis::new("a barrier stands inside a thread loop")
                    .because(format!(
                        "the ranges of threads there have {} threads, which are no whole warps",
                        self.group().size
                    ))
                    .instead("split the thread loop where the barrier stands");
                return Err(self.refuse(diagnosis));
            }
            Sync::CpWait(_) => {
                let place = (self.depth(), self.at.cursor[self.depth()]);
                self.pending.iter_mut().for_each(|p| p.land(place));
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares a touch with those since the last barrier, and adds it to them.
    fn touch(&mut self, touch: Touch, flight: Flight) -> Result<(), Stop> {
        let touch = Rc::new(touch);
        for p in &self.pending {
            let group = &self.at.groups[p.depth];
            let settled = p.touch.buffer != touch.buffer
                || !p.touch.kind.conflicts(touch.kind)
                || p.settled(&self.at.acquired, self.only_async)
                || p.met.contains(group);
            if settled {
                continue;
            }
            match self.conflicts.verdict(p, &touch, p.depth, group) {
                Verdict::Apart => {}
                Verdict::Torn => return Err(self.refuse(torn(&p.touch, &touch))),
                Verdict::Met { certain: true } if !group.has_barrier() && !group.closed => {
                    return Err(self.refuse(torn(&p.touch, &touch)));
                }
                Verdict::Met { .. } if !group.has_barrier() => {}
                Verdict::Met { .. } => return Err(p.barrier(&self.at.cursor)),
            }
        }
        if self.at.probing {
            return Ok(());
        }
        let depth = self.depth();
        let made = Pending::new(touch, depth, flight);
        if made.touch.kind == Kind::Write && made.touch.size == 1 {
            let group = self.at.groups[depth].clone();
            if self.conflicts.verdict(&made, &made.touch, depth, &group) == Verdict::Torn {
                return Err(self.refuse(twice(&made.touch)));
            }
        }
        self.pending.push(made);
        Ok(())
    }

    fn refuse(&self, diagnosis: Diagnosis) -> Stop {
        let loops = self.facts.path.iter().chain(self.at.around.iter().map(|l| &l.var));
        let path: Vec<&str> = loops.map(Sym::name).collect();
        Stop::Refused(Box::new(diagnosis.at(path.join("."))))
    }

    /// An index with `let`s replaced by what they stand for.
    fn resolve(&self, index: &Index) -> Index {
        index.substitute(&|s| self.at.lets.get(s).cloned())
    }
}

fn torn(earlier: &Touch, later: &Touch) -> Diagnosis {
    let name = later.around.iter().find(|l| matches!(l.values, Values::Threads { .. }));
    let name = name.map_or_else(|| "thread".to_string(), |l| format!("`{}`", l.var));
    let did = if earlier.kind == Kind::Read { "reads" } else { "writes" };
    let does = if later.kind == Kind::Read { "read" } else { "written" };
    Diagnosis::new(format!(
        "an element of `{}` is {does} by one thread while another {did} it in the same {name} loop",
        later.buffer
    ))
    .because("no barrier can stand inside a thread loop over smaller ranges")
    .instead("split the thread loop between the two statements")
}

fn is_barrier(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Sync(Sync::Barrier))
}

/// A barrier that is there already does not help.
fn too_late() -> Diagnosis {
    Diagnosis::new("asynchronous copies are used by threads that no barrier orders after the wait for them")
        .because("the wait stands inside a statement or a range of threads that only some of them execute")
        .instead("wait where all threads that use the copies are together")
}

fn twice(touch: &Touch) -> Diagnosis {
    Diagnosis::new(format!("several threads write the same element of `{}`", touch.buffer))
        .because("which of them comes last is open")
        .instead("let one thread write it, or make it an atomic reduction")
}
