//! Whether the iterations of a loop stay apart: the question of [`super`] with iterations in the place of threads.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::conflict::{Conflicts, Verdict};
use super::pending::{Flight, Pending};
use super::touch::{Around, Kind, Touch, Values};
use super::{Group, Ranges};
use crate::index::Index;
use crate::ir::{Access, AssignOp, For, Operand, Reduction, Stmt, walk};
use crate::sym::Sym;

/// Whether no two iterations of `l`, of which there are `trips`, touch one element of `buffer`, or both only reduce
/// it. Elements are enumerated, so extents must be constants; windows of instructions are not looked into.
pub(in crate::passes) fn iterations_stay_apart(l: &For, trips: i64, buffer: &Sym, ranges: &Ranges) -> bool {
    let mut found =
        Found { buffer, lets: HashMap::new(), touches: Vec::new(), reduction: None, opaque: false };
    let own = Around { var: l.var.clone(), values: Values::Threads { count: trips, pitch: 1 }, depth: 1 };
    found.list(&l.body, &mut vec![own]);
    let mut conflicts = Conflicts::new(HashSet::new(), ranges.clone());
    let alone = Group { starts: (0..trips).collect(), size: 1, whole: false, closed: false };
    let touches = &found.touches;
    let pairs = touches.iter().enumerate().flat_map(|(at, a)| touches[at..].iter().map(move |b| (a, b)));
    !found.opaque
        && pairs.filter(|(a, b)| a.kind.conflicts(b.kind)).all(|(a, b)| {
            let earlier = Pending::new(Rc::clone(a), 0, Flight::None);
            conflicts.verdict(&earlier, b, 0, &alone) == Verdict::Apart
        })
}

struct Found<'a> {
    buffer: &'a Sym,
    lets: HashMap<Sym, Index>,
    touches: Vec<Rc<Touch>>,
    reduction: Option<Reduction>,
    opaque: bool,
}

impl Found<'_> {
    fn list(&mut self, stmts: &[Stmt], around: &mut Vec<Around>) {
        for stmt in stmts {
            let outside = around.len();
            match stmt {
                Stmt::For(l) => {
                    let range = l.range.substitute(&|s| self.lets.get(s).cloned());
                    around.push(Around { var: l.var.clone(), values: Values::of(&range), depth: 1 });
                }
                Stmt::Let(sym, value) => {
                    let value = value.substitute(&|s| self.lets.get(s).cloned());
                    self.lets.insert(sym.clone(), value);
                }
                Stmt::Assign(a) => {
                    a.value.for_each_access(&mut |x| self.add(x, Kind::Read, around));
                    let kind = match a.op {
                        _ if a.target.buffer != *self.buffer => continue,
                        AssignOp::Store => Kind::Write,
                        // Equal reductions commute with each other, as atomic ones do.
                        AssignOp::Reduce(r) if *self.reduction.get_or_insert(r) == r => Kind::Atomic,
                        AssignOp::Reduce(_) => Kind::Write,
                    };
                    self.add(&a.target, kind, around);
                }
                Stmt::Instruction(i) => {
                    let touches = |o: &Operand| matches!(o, Operand::Window(w) if w.buffer == *self.buffer);
                    self.opaque |= i.operands.iter().any(touches);
                }
                Stmt::Own(_) | Stmt::Tasks(_) => self.opaque |= mentions_buffer(stmt, self.buffer),
                _ => {}
            }
            for body in walk::bodies(stmt) {
                self.list(body, around);
            }
            around.truncate(outside);
        }
    }

    fn add(&mut self, access: &Access, kind: Kind, around: &[Around]) {
        if access.buffer == *self.buffer {
            self.touches.push(Rc::new(Touch {
                buffer: access.buffer.clone(),
                index: access.index.iter().map(|i| i.substitute(&|s| self.lets.get(s).cloned())).collect(),
                kind,
                base: 0,
                size: 1,
                around: around.to_vec(),
                guards: Vec::new(),
            }));
        }
    }
}

fn mentions_buffer(stmt: &Stmt, buffer: &Sym) -> bool {
    crate::passes::uses::symbols(std::slice::from_ref(stmt)).contains(buffer)
}
