//! Leap frogging: the next step's data are on their way to registers while this step computes.
//!
//! Through registers into shared memory, beside asynchronous copies `c` if there are any:
//!
//! ```text
//! for k { s = x[k]; c = copy y[k]; use(s, c, k) }
//!     =>
//! alloc s_next reg
//! [for p in unroll 0..S-1 { if p < n { c[p] = copy y[p] }; cp.commit }]
//! if 0 < n { s_next = x[0] }
//! for k {
//!   s[k%S] = s_next
//!   if k + 1 < n { s_next = x[k + 1] }      # the loads fly while the uses compute
//!   [cp.wait S-2; barrier]
//!   [if k + S - 1 < n { c[(k + S - 1)%S] = copy y[k + S - 1] }; cp.commit]
//!   use(s[k%S], c[k%S], k)
//! }
//! ```
//!
//! In brackets what only asynchronous copies need; without them `synchronise` places the barrier there, and with one
//! slot a second one at the end of the step. The loads stand before the barrier, so that no compiler puts them off
//! until the registers are wanted.
//!
//! From register to register, in a serial loop, whose iterations cannot index registers:
//!
//! ```text
//! for k in lo..hi step d { alloc a reg; a = x[k]; use(a, k) }
//!     =>
//! alloc a reg
//! if lo < hi { a = x[lo] }
//! for k in lo..hi - d step d { alloc a_next reg; a_next = x[k + d]; use(a, k); a = a_next }
//! if lo < hi { use(a, the last k) }
//! ```

use std::collections::HashMap;

use super::{at_iteration, only_if};
use crate::index::{Cond, Index};
use crate::ir::{
    Access, Assign, AssignOp, Buffer, Dim, For, If, Mode, Own, Range, Space, Span, Stmt, Value, Window, walk,
};
use crate::schedule::rewrite::{Place, Stages, alike, head, mentions};
use crate::sym::Sym;

/// Fills on their way through registers, one step ahead: what to allocate, the loads and the stores.
pub(super) struct Staging {
    pub registers: Vec<Buffer>,
    pub load: Vec<Stmt>,
    pub store: Vec<Stmt>,
}

impl Staging {
    /// The fills of staged buffers, split into loads and stores.
    ///
    /// # Errors
    /// Why a fill cannot be split.
    pub fn of(fills: &[Stmt], staged: &[Buffer]) -> Result<Staging, String> {
        let mut detour = Detour { staged, registers: Vec::new() };
        let (mut load, mut store) = (Vec::new(), Vec::new());
        for fill in fills {
            let (first, second) = detour.split(fill)?;
            load.extend(first);
            store.extend(second);
        }
        Ok(Staging { registers: detour.registers, load, store })
    }

    /// The loads for iteration 0, before the loop.
    pub fn first_load(&self, var: &Sym) -> Vec<Stmt> {
        let registers: Vec<Sym> = self.registers.iter().map(|b| b.sym.clone()).collect();
        refresh_but(&self.load_at(var, &Index::default()), &registers)
    }

    /// The loads for another iteration.
    pub fn load_at(&self, var: &Sym, value: &Index) -> Vec<Stmt> {
        walk::substitute(&self.load, &|s| (s == var).then(|| value.clone()))
    }
}

/// Fills taken apart into loads to registers and stores from them.
struct Detour<'a> {
    staged: &'a [Buffer],
    registers: Vec<Buffer>,
}

/// A loop on the way to a leaf.
type Path = Vec<(Sym, Mode, i64)>;

impl Detour<'_> {
    fn split(&mut self, fill: &Stmt) -> Result<(Vec<Stmt>, Vec<Stmt>), String> {
        let fill = walk::refresh(std::slice::from_ref(fill));
        let mut path = Path::new();
        let (load, store) = self.list(&fill, &mut path)?;
        // The stores are a second nest: what they bind must be new, the registers must not.
        let kept: Vec<Sym> = self.registers.iter().map(|b| b.sym.clone()).collect();
        Ok((load, refresh_but(&tidy(store), &kept)))
    }

    fn list(&mut self, stmts: &[Stmt], path: &mut Path) -> Result<(Vec<Stmt>, Vec<Stmt>), String> {
        let (mut load, mut store) = (Vec::new(), Vec::new());
        for stmt in stmts {
            match stmt {
                Stmt::For(l) => {
                    let from_zero = matches!(&l.range, Range::Span { lo, step, .. }
                        if lo.as_constant() == Some(0) && step.as_constant() == Some(1));
                    let Some(count) = l.range.constant_trip_count().filter(|_| from_zero) else {
                        return Err(format!(
                            "the loop `{}` of a fill does not count from 0 to a constant",
                            l.var
                        ));
                    };
                    path.push((l.var.clone(), l.mode, count));
                    let (first, second) = self.list(&l.body, path)?;
                    path.pop();
                    // Registers that are filled with a constant are no neighbours in memory.
                    let mode =
                        if l.mode == Mode::Vector && loads_nothing(&first) { Mode::Unroll } else { l.mode };
                    load.push(Stmt::For(For { mode, body: first.into(), ..head(l) }));
                    store.push(Stmt::For(For { body: second.into(), ..head(l) }));
                }
                Stmt::If(i) => {
                    let (first, second) = self.choice(i, path)?;
                    load.push(first);
                    store.extend(second);
                }
                Stmt::Let(..) => {
                    load.push(stmt.clone());
                    store.push(stmt.clone());
                }
                Stmt::Assign(a) if a.op == AssignOp::Store => {
                    let (first, second) = self.leaf(a, path)?;
                    load.push(first);
                    store.push(second);
                }
                _ => return Err("a fill is more than loads and stores of elements".into()),
            }
        }
        Ok((load, store))
    }

    /// A condition: the two arms share their registers where they have the same loops, and the stores need no
    /// condition where both do the same.
    fn choice(&mut self, i: &If, path: &mut Path) -> Result<(Stmt, Vec<Stmt>), String> {
        let start = self.registers.len();
        let (load, store) = self.list(&i.then, path)?;
        let middle = self.registers.len();
        let (mut other_load, mut other_store) = self.list(&i.otherwise, path)?;
        let (ours, theirs) = (&self.registers[start..middle], &self.registers[middle..]);
        let same = ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(a, b)| a.dtype == b.dtype && a.dims == b.dims);
        if same {
            let names: HashMap<Sym, Index> =
                theirs.iter().zip(ours).map(|(b, a)| (b.sym.clone(), Index::var(&a.sym))).collect();
            let rename = |stmts: &[Stmt]| walk::substitute(stmts, &|s| names.get(s).cloned());
            (other_load, other_store) = (rename(&other_load), rename(&other_store));
            self.registers.truncate(middle);
        }
        let load = Stmt::If(If { cond: i.cond.clone(), then: load.into(), otherwise: other_load.into() });
        if alike(&store, &other_store) {
            return Ok((load, store));
        }
        Ok((
            load,
            vec![Stmt::If(If { cond: i.cond.clone(), then: store.into(), otherwise: other_store.into() })],
        ))
    }

    fn leaf(&mut self, a: &Assign, path: &Path) -> Result<(Stmt, Stmt), String> {
        let Some(buffer) = self.staged.iter().find(|b| b.sym == a.target.buffer) else {
            return Err(format!("a fill also keeps values in `{}`", a.target.buffer));
        };
        let name = Sym::new(&format!("{}_next", buffer.sym));
        let access = if buffer.space == Space::Reg {
            self.registers.push(Buffer { sym: name.clone(), ..buffer.clone() });
            Access::new(&name, a.target.index.clone())
        } else {
            if !path.iter().any(|(_, mode, _)| matches!(mode, Mode::Threads { .. })) {
                return Err(format!(
                    "the loops that fill `{}` are not bound, so nobody owns the registers; bind them to threads first",
                    buffer.sym
                ));
            }
            let dims = path.iter().map(|(_, mode, count)| match mode {
                Mode::Threads { pitch } => Dim::distributed(*count, *pitch),
                _ => Dim::new(*count),
            });
            self.registers.push(Buffer::new(name.clone(), buffer.dtype, dims.collect(), Space::Reg));
            Access::new(&name, path.iter().map(|(var, ..)| Index::var(var)).collect())
        };
        let load = Assign { target: access.clone(), ..a.clone() };
        Ok((Stmt::Assign(load), Stmt::Assign(Assign { value: Value::Load(access), ..a.clone() })))
    }
}

/// Whether no statement reads anything.
fn loads_nothing(stmts: &[Stmt]) -> bool {
    let mut loads = false;
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::Assign(a) = stmt {
            a.value.for_each_access(&mut |_| loads = true);
        }
    });
    !loads
}

/// The statements without lets that nothing uses.
fn tidy(stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut out: Vec<Stmt> = Vec::new();
    for mut stmt in stmts.into_iter().rev() {
        for body in walk::bodies_mut(&mut stmt) {
            *body = tidy(std::mem::take(body)).into();
        }
        if !matches!(&stmt, Stmt::Let(sym, _) if !mentions(&out, sym)) {
            out.insert(0, stmt);
        }
    }
    out
}

/// A copy with new binders, but for those that are kept.
fn refresh_but(stmts: &[Stmt], kept: &[Sym]) -> Vec<Stmt> {
    let new: HashMap<Sym, Index> = walk::binders(stmts)
        .into_iter()
        .filter(|s| !kept.contains(s))
        .map(|s| (s.clone(), Index::var(&s.fresh())))
        .collect();
    walk::substitute(stmts, &|s| new.get(s).cloned())
}

/// The loop with two sets of registers and a move.
///
/// # Errors
/// Why that is not possible.
pub(super) fn between_registers(l: &For, stages: Stages, place: &Place) -> Result<Vec<Stmt>, String> {
    let Range::Span { lo, hi, step } = &l.range else {
        return Err("its first iteration has no closed form".into());
    };
    let next: Vec<Buffer> = stages
        .staged
        .iter()
        .map(|b| Buffer { sym: Sym::new(&format!("{}_next", b.sym)), ..b.clone() })
        .collect();
    let renamed = |stmts: &[Stmt]| {
        let name = |s: &Sym| stages.staged.iter().position(|b| b.sym == *s);
        walk::substitute(stmts, &|s| name(s).map(|at| Index::var(&next[at].sym)))
    };
    let runs = Cond::lt(lo.clone(), hi.clone());
    let here = |b: &&Buffer| l.body.iter().any(|s| matches!(s, Stmt::Alloc(a) if a.sym == b.sym));
    let mut out: Vec<Stmt> = stages.staged.iter().filter(here).cloned().map(Stmt::Alloc).collect();
    out.extend(only_if(runs.clone(), at_iteration(&stages.fills, &l.var, lo), place));
    let ahead = &Index::var(&l.var) + step;
    let fetch = renamed(&at_iteration(&stages.fills, &l.var, &ahead));
    let moves: Vec<Stmt> =
        stages.staged.iter().zip(&next).map(|(b, n)| copy(b, n)).collect::<Result<_, _>>()?;
    let allocs = next.iter().cloned().map(Stmt::Alloc);
    let last = last_iteration(lo, hi, step);
    let peeled = last.is_some() || !mentions(&stages.uses, &l.var);
    if !peeled {
        let exists = Cond::lt(ahead, hi.clone());
        let body = allocs
            .chain(only_if(exists.clone(), fetch, place))
            .chain(stages.uses.clone())
            .chain(only_if(exists, moves, place))
            .collect();
        out.push(Stmt::For(For { body, ..head(l) }));
        return Ok(out);
    }
    let body = allocs.chain(fetch).chain(stages.uses.clone()).chain(moves).collect();
    let range = Range::Span { lo: lo.clone(), hi: hi - step, step: step.clone() };
    out.push(Stmt::For(For { body, range, ..head(l) }));
    let epilogue = at_iteration(&stages.uses, &l.var, &last.unwrap_or_default());
    out.extend(only_if(runs, epilogue, place));
    Ok(out)
}

/// The last value of a loop variable, if it has a closed form.
fn last_iteration(lo: &Index, hi: &Index, step: &Index) -> Option<Index> {
    let step = step.as_constant()?;
    Some(lo + &(hi - lo).offset(-1).div(step).scaled(step))
}

/// `to = from`, for all elements of two register buffers.
fn copy(to: &Buffer, from: &Buffer) -> Result<Stmt, String> {
    let extents = to.constant_extents().ok_or(format!("the extents of `{}` are no constants", to.sym))?;
    let spread = if to.fragment.is_some() { 2 } else { 0 };
    let plain = extents.len() - spread;
    let vars: Vec<Sym> = (0..extents.len()).map(|at| Sym::new(&format!("e{at}"))).collect();
    let index: Vec<Index> = vars.iter().map(Index::var).collect();
    let mut stmt = Stmt::Assign(Assign {
        target: Access::new(&to.sym, index.clone()),
        op: AssignOp::Store,
        atomic: false,
        value: Value::load(&from.sym, index.clone()),
    });
    if spread > 0 {
        let dims = index[..plain].iter().cloned().map(Span::At).chain([Span::All, Span::All]).collect();
        let window = Window { buffer: to.sym.clone(), dims };
        stmt = Stmt::Own(Own {
            vars: vars[plain..].to_vec(),
            run: 1,
            window,
            lane_base: false,
            body: vec![stmt].into(),
        });
    }
    for at in (0..plain).rev() {
        let mode = match to.dims[at].pitch {
            Some(pitch) => Mode::Threads { pitch },
            None => Mode::Unroll,
        };
        stmt = For::with_mode(&vars[at], mode, Range::upto(extents[at]), vec![stmt]);
    }
    Ok(stmt)
}
