//! Thread loops become arithmetic on `threadIdx.x` and guards; barriers of a range become the barrier that joins it.

use super::body::Body;
use super::spelling::barrier;
use super::text::Strength;
use crate::diag::Diagnosis;
use crate::index::{Cond, Index, Interval};
use crate::ir::{For, Role, Space, Stmt, walk};
use crate::sym::Sym;

/// A range of threads that executes a statement.
#[derive(Clone, Debug)]
pub(super) struct Executing {
    /// The first thread of the whole range at the top: the block's, or a role's.
    pub(super) base: i64,
    /// The number of threads of the range.
    pub(super) size: i64,
    /// The number of the thread within the range.
    pub(super) local: Index,
}

/// A name and what it is of `threadIdx.x`: equal ones are declared once.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Nest {
    name: String,
    place: Index,
}

/// One thread loop, taken apart.
pub(super) struct Split {
    count: i64,
    pitch: i64,
    /// The value of the loop variable.
    pub(super) place: Index,
    /// Whether some threads of the executing range have no iteration.
    guarded: bool,
    pub(super) inside: Executing,
}

impl Body<'_> {
    pub(super) fn split(&self, l: &For, executing: &Executing) -> Result<Split, Diagnosis> {
        let Some((count, pitch)) = l.threads() else {
            return Err(Diagnosis::new(format!("the loop over threads `{}` has no constant extent", l.var)));
        };
        let local = &executing.local;
        let inside = if count == 1 { local.clone() } else { self.ranges.simplify(&local.rem(pitch)) };
        Ok(Split {
            count,
            pitch,
            place: self.ranges.simplify(&local.div(pitch)),
            guarded: count * pitch < executing.size,
            inside: Executing { base: executing.base, size: pitch, local: inside },
        })
    }

    /// Writes a thread loop. `alone`: it is the only statement of its body, so what it declares may stand there.
    pub(super) fn thread_loop(
        &mut self,
        l: &For,
        executing: &Executing,
        alone: bool,
    ) -> Result<(), Diagnosis> {
        let split = self.split(l, executing)?;
        let declared = self.bind_thread_variable(l, &split);
        let write = |s: &mut Self| {
            if declared {
                s.names.declare(&l.var);
                s.used.remove(&l.var);
            }
            let body = s.captured(0, |s| s.statements(&l.body, &split.inside))?;
            if declared && s.used.contains(&l.var) {
                let place = s.index(&split.place).text;
                let name = s.names.of(&l.var).to_string();
                s.line(format!("const int {name} = {place};"));
            }
            s.lines.append(body);
            Ok(())
        };
        if split.guarded {
            let head = self.thread_guard(l, &split, executing, declared);
            let body = self.nested(write)?;
            self.lines.guarded(&head, body);
        } else if alone || !self.declares(l, executing) {
            write(self)?;
        } else {
            let body = self.nested(write)?;
            self.lines.block("", body);
        }
        Ok(())
    }

    /// Makes the variable of a thread loop readable; whether it needs a declaration of its own.
    fn bind_thread_variable(&mut self, l: &For, split: &Split) -> bool {
        self.ranges.set(&l.var, Interval::new(0, split.count - 1));
        if split.count == 1 {
            return false;
        }
        if split.place.as_var() == Some(&self.tid) {
            self.aliases.insert(l.var.clone(), self.tid.clone());
            return false;
        }
        let nest = Nest { name: l.var.name().to_string(), place: split.place.clone() };
        match self.named.iter().find(|(n, _)| *n == nest) {
            Some((_, sym)) => {
                self.aliases.insert(l.var.clone(), sym.clone());
                false
            }
            None => true,
        }
    }

    fn thread_guard(&mut self, l: &For, split: &Split, executing: &Executing, declared: bool) -> String {
        let threads = split.count * split.pitch;
        let cond = if split.count > 1 && !declared && split.place.as_var() != Some(&self.tid) {
            Cond::lt(Index::var(&l.var), split.count.into())
        } else if threads == 1 {
            Cond::eq(executing.local.clone(), Index::default())
        } else {
            Cond::lt(executing.local.clone(), threads.into())
        };
        // The range of the variable takes the guard for granted.
        let range = self.ranges.get(&l.var);
        self.ranges.set(&l.var, Interval::new(0, executing.size / split.pitch));
        let head = format!("if ({})", self.cond(&cond).at_least(Strength::Choice));
        self.ranges.set(&l.var, range);
        head
    }

    /// Whether writing a thread loop without a block of its own might declare names in the block around it.
    pub(super) fn declares(&self, l: &For, executing: &Executing) -> bool {
        let Ok(split) = self.split(l, executing) else { return true };
        let nest = Nest { name: l.var.name().to_string(), place: split.place.clone() };
        let has_name = split.count == 1
            || split.place.as_var() == Some(&self.tid)
            || self.named.iter().any(|(n, _)| *n == nest);
        !has_name
            || l.body.iter().any(|stmt| match stmt {
                Stmt::Let(..) => true,
                Stmt::Alloc(buffer) => buffer.space == Space::Reg,
                Stmt::For(inner) if inner.threads().is_some() => {
                    self.split(inner, &split.inside).is_ok_and(|s| !s.guarded)
                        && self.declares(inner, &split.inside)
                }
                _ => false,
            })
    }

    /// Whether a thread loop has neither guard nor block, so that its first statement stands where the loop stands.
    pub(super) fn is_transparent(&self, l: &For, executing: &Executing) -> Option<Executing> {
        let split = self.split(l, executing).ok()?;
        (!split.guarded && !self.declares(l, executing)).then_some(split.inside)
    }

    /// Gives a name to each thread decomposition that occurs more than once in the statements of the launch or role
    /// in hand. The names are declared once it is known which are used.
    pub(super) fn name_decompositions(&mut self, stmts: &[Stmt]) -> Result<(), Diagnosis> {
        let mut nests: Vec<(Nest, usize)> = Vec::new();
        let everyone = self.everyone();
        self.count_nests(stmts, &everyone, &mut nests)?;
        for (nest, count) in nests {
            if count > 1 {
                let sym = Sym::new(&nest.name);
                self.names.declare(&sym);
                self.named.push((nest, sym));
            }
        }
        Ok(())
    }

    fn count_nests(
        &mut self,
        stmts: &[Stmt],
        executing: &Executing,
        nests: &mut Vec<(Nest, usize)>,
    ) -> Result<(), Diagnosis> {
        for stmt in stmts {
            match stmt {
                Stmt::For(l) if l.threads().is_some() => {
                    let split = self.split(l, executing)?;
                    if split.count > 1 && split.place.as_var() != Some(&self.tid) {
                        let nest = Nest { name: l.var.name().to_string(), place: split.place };
                        match nests.iter_mut().find(|(n, _)| *n == nest) {
                            Some((_, count)) => *count += 1,
                            None => nests.push((nest, 1)),
                        }
                    }
                    self.count_nests(&l.body, &split.inside, nests)?;
                }
                Stmt::On(on) if !self.is_role(&on.role) => {}
                Stmt::On(on) => {
                    let everyone = self.everyone();
                    self.count_nests(&on.body, &everyone, nests)?;
                }
                other => {
                    for body in walk::bodies(other) {
                        self.count_nests(body, executing, nests)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether `sym` is the role in hand.
    pub(super) fn is_role(&self, sym: &Sym) -> bool {
        self.role.as_ref().is_some_and(|role: &Role| role.sym == *sym)
    }

    /// The declarations of the names given by [`Body::name_decompositions`] that are used.
    pub(super) fn declare_decompositions(&mut self) {
        let named = std::mem::take(&mut self.named);
        for (nest, sym) in &named {
            if self.used.contains(sym) {
                let place = self.index(&nest.place).text;
                let name = self.names.of(sym).to_string();
                self.line(format!("const int {name} = {place};"));
            }
        }
    }

    /// A barrier of the executing range.
    pub(super) fn barrier(&mut self, executing: &Executing) {
        let whole = executing.size == self.block_threads && executing.base == 0;
        if executing.size == 32 {
            self.line("__syncwarp();");
        } else if whole {
            self.line("__syncthreads();");
        } else if executing.size < 32 {
            let first = &Index::var(&self.tid).rem(32) - &executing.local;
            let shift = self.index(&first).at_least(Strength::Sum);
            let mask = (1u64 << executing.size) - 1;
            let mask = if shift == "0" { format!("{mask:#x}u") } else { format!("{mask:#x}u << ({shift})") };
            self.line(format!("__syncwarp({mask});"));
        } else {
            self.named_barrier(executing);
        }
    }

    /// Ranges of more than a warp and less than the block meet at hardware barriers 1 to 15, one for each range.
    fn named_barrier(&mut self, executing: &Executing) {
        let everyone = self.everyone();
        let (base, size) = (executing.base, executing.size);
        let first = match self.barriers.iter().find(|(b, s, _)| (*b, *s) == (base, size)) {
            Some((_, _, first)) => *first,
            None => {
                let used: i64 =
                    self.barriers.iter().map(|(_, s, first)| first + everyone.size / s).max().unwrap_or(1);
                self.barriers.push((base, size, used));
                used
            }
        };
        self.prelude.require(&barrier::BARRIER_SYNC);
        let number = everyone.local.div(size).offset(first);
        let number = self.index(&number).text;
        self.line(format!("barrier_sync({number}, {size});"));
    }
}
