//! Registers are touched by their owners only, and by constant number (rules 13 to 16).

use std::collections::{HashMap, HashSet};

use super::executors::{Executor, Executors};
use crate::diag::Diagnosis;
use crate::index::{Cond, Facts, Index, prove};
use crate::ir::{Access, Assign, Buffer, Mode, Own, Program, Range, Space, Span, Stmt, Value, Window, walk};
use crate::layout::Fragment;
use crate::sym::Sym;

/// Loop variables that become constants when loops are written out.
pub(super) struct Constants {
    /// Of unrolled and vector loops.
    unrolled: HashSet<Sym>,
    /// Of other loops whose number of iterations is constant: the CUDA compiler can still write them out.
    countable: HashSet<Sym>,
}

impl Constants {
    pub fn of(program: &Program) -> Constants {
        let (mut unrolled, mut countable) = (HashSet::new(), HashSet::new());
        walk::for_each(&program.body, &mut |stmt| {
            let Stmt::For(l) = stmt else { return };
            // The first value too: an unrolled loop from `t` on is no constant in any iteration.
            let known = |s: &Sym| unrolled.contains(s) || countable.contains(s);
            let from_constant = match &l.range {
                Range::Span { lo, .. } => {
                    let mut all = true;
                    lo.for_each_var(&mut |s| all &= known(s));
                    all
                }
                Range::List(_) => true,
                Range::Part { .. } => false,
            };
            if from_constant && l.range.constant_trip_count().is_some() {
                match l.mode {
                    Mode::Unroll | Mode::Vector => unrolled.insert(l.var.clone()),
                    Mode::Serial => countable.insert(l.var.clone()),
                    Mode::Block { .. } | Mode::Threads { .. } | Mode::Interleave => false,
                };
            }
        });
        Constants { unrolled, countable }
    }

    /// The first variable of `index` that is no constant after unrolling.
    fn varying(&self, index: &Index, strict: bool) -> Option<Sym> {
        let mut found = None;
        index.for_each_var(&mut |s| {
            if !self.unrolled.contains(s) && (strict || !self.countable.contains(s)) {
                found = Some(s.clone());
            }
        });
        found
    }
}

/// What the checks of one program share.
pub(super) struct Registers<'a> {
    pub buffers: &'a HashMap<Sym, Buffer>,
    pub executors: &'a Executors<'a>,
    pub constants: &'a Constants,
}

/// Where an element lives: `linear`, plus its place in the fragment if there is one.
struct Owner {
    linear: Index,
    tile: Option<Tile>,
}

/// An element of a fragment.
struct Tile {
    fragment: &'static Fragment,
    extents: (i64, i64),
    row: Index,
    column: Index,
}

impl Registers<'_> {
    /// Faults of an element statement executed by `executor`.
    pub fn assign(&self, a: &Assign, executor: &Executor<'_>, facts: &Facts) -> Vec<Diagnosis> {
        let mut faults: Vec<Diagnosis> = self.access(&a.target, executor, facts).into_iter().collect();
        self.loads(&a.value, executor, facts, &mut faults);
        faults
    }

    /// Faults of the loads of a value, each under the conditions of the choices around it: only the chosen arm is read.
    fn loads(&self, value: &Value, executor: &Executor<'_>, facts: &Facts, faults: &mut Vec<Diagnosis>) {
        match value {
            Value::Const(_) | Value::Scalar(_) => {}
            Value::Load(access) => faults.extend(self.access(access, executor, facts)),
            Value::Unary(_, a) | Value::Cast(_, a) => self.loads(a, executor, facts, faults),
            Value::Binary(_, a, b) => {
                self.loads(a, executor, facts, faults);
                self.loads(b, executor, facts, faults);
            }
            Value::Select(c, a, b) => {
                for (cond, arm) in [(c.clone(), a), (c.clone().negate(), b)] {
                    let mut registers = false;
                    arm.for_each_access(&mut |a| registers |= self.buffers[&a.buffer].space == Space::Reg);
                    if registers {
                        let mut facts = facts.clone();
                        facts.assume(&cond);
                        self.loads(arm, executor, &facts, faults);
                    }
                }
            }
        }
    }

    fn access(&self, access: &Access, executor: &Executor<'_>, facts: &Facts) -> Option<Diagnosis> {
        let buffer = &self.buffers[&access.buffer];
        let base = self.executors.owners(&access.buffer)?;
        let index: Vec<Index> = access.index.iter().map(|i| facts.expanded(i)).collect();
        if let Some(fault) = self.number(buffer, &index, false).or_else(|| inside(buffer, &index, facts)) {
            return Some(fault);
        }
        if base.own.is_some() {
            // Allocated inside the `own` loop: each element's owner has its own.
            return None;
        }
        let owner = owner(buffer, &base.first, &index);
        let (thread, tile) = match executor.own {
            None => (executor.first.clone(), None),
            Some(own) => {
                let own = self.element_of(own, facts);
                (own.linear, own.tile)
            }
        };
        if let (None, Some(tile)) = (&tile, &owner.tile) {
            return Some(
                Diagnosis::new(format!("an element of `{}` is touched outside an `own` loop", buffer.sym))
                    .because(format!("fragment {} decides which thread has it", tile.fragment.name))
                    .instead("visit its elements by for (i, j) in own ..., or use an instruction"),
            );
        }
        let same_tile = match (&tile, &owner.tile) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                a.fragment == b.fragment
                    && a.extents == b.extents
                    && a.row == b.row
                    && within_run(executor.own, &(&b.column - &a.column), facts)
            }
            _ => false,
        };
        let linear_equal = || prove(facts, &Cond::eq(thread.clone(), owner.linear.clone())) == Some(true);
        let owned = if same_tile {
            linear_equal()
        } else {
            same_by_trial(executor.own, &thread, tile.as_ref(), &owner)
        };
        (!owned).then(|| not_the_owner(buffer, &index, &thread, &owner))
    }

    /// Faults of a loop over owned elements: its range has all owners, its window is in bounds.
    pub fn own(&self, own: &Own, executor: &Executor<'_>, facts: &Facts) -> Option<Diagnosis> {
        let buffer = &self.buffers[&own.window.buffer];
        let base = self.executors.owners(&own.window.buffer)?;
        let start: Vec<Index> = own.window.start().iter().map(|i| facts.expanded(i)).collect();
        let end: Vec<Index> = last_of(&own.window, buffer, &start);
        let fault = inside(buffer, &start, facts).or_else(|| inside(buffer, &end, facts));
        if let Some(fault) = fault.or_else(|| self.number(buffer, &start, false)) {
            return Some(fault);
        }
        let (first, last) =
            (owner(buffer, &base.first, &start).linear, owner(buffer, &base.first, &end).linear);
        let last = last.offset(buffer.fragment.map_or(0, |f| f.threads - 1));
        let within = Cond::le(executor.first.clone(), first.clone())
            .and(Cond::lt(last.clone(), executor.first.offset(executor.threads)));
        (prove(facts, &within) != Some(true)).then(|| {
            Diagnosis::new(format!("not all owners of the window of `{}` stand here", buffer.sym))
                .because(format!(
                    "they are threads {first} to {last}, here stand {} from {}",
                    executor.threads, executor.first
                ))
                .instead("put the loop at the range of threads that shares the window")
        })
    }

    /// Checks a register operand of an instruction: full tiles or lanes of the executing range, by constant number.
    pub fn window(&self, window: &Window, executor: &Executor<'_>, facts: &Facts) -> Option<Diagnosis> {
        let buffer = &self.buffers[&window.buffer];
        let base = self.executors.owners(&window.buffer)?;
        let start: Vec<Index> = window.start().iter().map(|i| facts.expanded(i)).collect();
        let end = last_of(window, buffer, &start);
        let fault = self.number(buffer, &start, true).or_else(|| inside(buffer, &start, facts));
        if let Some(fault) = fault.or_else(|| inside(buffer, &end, facts)) {
            return Some(fault);
        }
        let first = owner(buffer, &base.first, &start).linear;
        (prove(facts, &Cond::eq(first.clone(), executor.first.clone())) != Some(true)).then(|| {
            Diagnosis::new(format!("the operand in `{}` lives from thread {first} on", buffer.sym))
                .because(format!("the instruction is executed by the threads from {} on", executor.first))
                .instead("index the distributed dimensions by the thread loops around")
        })
    }

    /// Rule 16: which register it is must be known when the program is compiled.
    fn number(&self, buffer: &Buffer, index: &[Index], strict: bool) -> Option<Diagnosis> {
        let tile = if buffer.fragment.is_some() { buffer.dims.len() - 2 } else { buffer.dims.len() };
        let plain = buffer.dims[..tile].iter().zip(index).filter(|(d, _)| d.pitch.is_none());
        plain.into_iter().find_map(|(_, i)| self.constants.varying(i, strict)).map(|var| {
            Diagnosis::new(format!("which register of `{}` is meant depends on `{var}`", buffer.sym))
                .because("registers have no addresses: their numbers are constants once loops are unrolled")
                .instead(format!("unroll the loop over `{var}`, or move values between registers"))
        })
    }

    fn element_of(&self, own: &Own, facts: &Facts) -> Owner {
        let buffer = &self.buffers[&own.window.buffer];
        let mut vars = own.vars.iter();
        let index = own.window.dims.iter().map(|span| match span {
            Span::At(i) => facts.expanded(i),
            Span::Slice(start, _) => {
                &facts.expanded(start) + &vars.next().map(Index::var).unwrap_or_default()
            }
            Span::All => vars.next().map(Index::var).unwrap_or_default(),
        });
        let index: Vec<Index> = index.collect();
        let base = self.executors.owners(&buffer.sym).map(|e| e.first.clone()).unwrap_or_default();
        owner(buffer, &base, &index)
    }
}

/// The owner of the element of `buffer` at `index`, if the buffer is allocated from thread `base` on.
fn owner(buffer: &Buffer, base: &Index, index: &[Index]) -> Owner {
    let mut linear = base.clone();
    for (dim, i) in buffer.dims.iter().zip(index) {
        if let Some(pitch) = dim.pitch {
            linear = &linear + &i.scaled(pitch);
        }
    }
    let n = index.len();
    let tile = buffer.fragment.and_then(|fragment| {
        let extents = (buffer.dims[n - 2].extent.as_constant()?, buffer.dims[n - 1].extent.as_constant()?);
        Some(Tile { fragment, extents, row: index[n - 2].clone(), column: index[n - 1].clone() })
    });
    Owner { linear, tile }
}

/// The last index of a window in each dimension.
fn last_of(window: &Window, buffer: &Buffer, start: &[Index]) -> Vec<Index> {
    let spans = window.dims.iter().zip(&buffer.dims).zip(start);
    spans
        .map(|((span, dim), start)| match span {
            Span::At(_) => start.clone(),
            Span::Slice(_, len) => start.offset(len - 1),
            Span::All => dim.extent.offset(-1),
        })
        .collect()
}

/// A register outside its buffer is another buffer's: nothing at run time would notice.
fn inside(buffer: &Buffer, index: &[Index], facts: &Facts) -> Option<Diagnosis> {
    buffer.dims.iter().zip(index).find_map(|(dim, i)| {
        let within = Cond::le(0.into(), i.clone()).and(Cond::lt(i.clone(), dim.extent.clone()));
        (prove(facts, &within) != Some(true)).then(|| {
            Diagnosis::new(format!("index {i} of `{}` may lie outside 0..{}", buffer.sym, dim.extent))
                .because("nothing at run time guards registers")
                .instead("bound the loops, or guard the statement")
        })
    })
}

/// Whether an element so many columns after the one that an `own` loop is at is of the same run.
fn within_run(own: Option<&Own>, distance: &Index, facts: &Facts) -> bool {
    let run = own.map_or(1, |o| o.run);
    let within = || Cond::le(0.into(), distance.clone()).and(Cond::lt(distance.clone(), run.into()));
    *distance == Index::default() || prove(facts, &within()) == Some(true)
}

/// Compares owners element by element of an `own` loop.
fn same_by_trial(own: Option<&Own>, thread: &Index, tile: Option<&Tile>, owner: &Owner) -> bool {
    let (Some(own), Some(tile)) = (own, tile) else { return false };
    let [.., i, j] = &own.vars[..] else { return false };
    let Some(owners) = tile.fragment.owners(tile.extents.0, tile.extents.1) else { return false };
    let others = match &owner.tile {
        Some(t) => match t.fragment.owners(t.extents.0, t.extents.1) {
            Some(map) => Some((t, map)),
            None => return false,
        },
        None => None,
    };
    let difference = &owner.linear - thread;
    (0..tile.extents.0).all(|row| {
        (0..tile.extents.1).step_by(own.run.max(1) as usize).all(|column| {
            let at = |x: &Index| {
                let value = |s: &Sym| match s {
                    s if s == i => Some(row.into()),
                    s if s == j => Some(column.into()),
                    _ => None,
                };
                x.substitute(&value).as_constant()
            };
            let Some(difference) = at(&difference) else { return false };
            let own_place = at(&tile.row).zip(at(&tile.column)).and_then(|e| owners.get(&e));
            let place = match &others {
                None => Some(0),
                Some((t, map)) => at(&t.row).zip(at(&t.column)).and_then(|e| map.get(&e)).map(|o| o.0),
            };
            own_place.zip(place).is_some_and(|(a, b)| a.0 == b + difference)
        })
    })
}

fn not_the_owner(buffer: &Buffer, index: &[Index], thread: &Index, owner: &Owner) -> Diagnosis {
    let element: Vec<_> = index.iter().map(ToString::to_string).collect();
    let by_fragment = if owner.tile.is_some() { " and its fragment" } else { "" };
    Diagnosis::new(format!("thread {thread} touches {}[{}]", buffer.sym, element.join(", ")))
        .because(format!("that element lives in thread {}{by_fragment}", owner.linear))
        .instead("let the owner touch it, or exchange values by a shuffle or through shared memory")
}
