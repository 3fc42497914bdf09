//! A ring of which a buffer takes the slot that an iteration uses, while others are being filled.

use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::instr::{self, OperandAccess};
use crate::ir::{Access, Buffer, For, Mode, Operand, Range, Span, Stmt, walk};
use crate::schedule::rewrite::{count_uses, covers, map_accesses, map_elements};

use super::{StorageShare, written_anew};

/// A ring of which every iteration of a loop uses a slot.
pub(super) struct Ring {
    /// The slot, as if it were a buffer of its own.
    pub(super) slot: Buffer,
    /// Which one it is.
    pub(super) used: Index,
    /// The body of the loop, in which what uses that slot uses the buffer instead.
    pub(super) body: Vec<Stmt>,
}

impl Ring {
    /// The slot of a ring that an iteration of the loop around the buffer uses, if the other one is such: its first index is that of the
    /// iteration, modulo the number of slots.
    pub(super) fn of(
        step: &StorageShare,
        stmts: &[Stmt],
        [buffer, other]: [&Buffer; 2],
    ) -> Result<Option<Ring>, Diagnosis> {
        let slots = step.extents(other)?[0];
        if slots < 2 || other.dims.len() < 2 {
            return Ok(None);
        }
        // The loop that has all there is to do with the buffer. It stands beside the allocation of the ring, which is another one whenever the
        // loop begins: what a slot was left with is of no use to another run of it.
        let all = count_uses(stmts, &buffer.sym);
        let around = stmts.iter().find_map(|stmt| match stmt {
            Stmt::For(l) if l.mode == Mode::Serial && count_uses(&l.body, &buffer.sym) == all => Some(l),
            _ => None,
        });
        let turns = around.map(|around| Turns::of(around, other));
        let Some(turns) = turns.filter(|turns| written_anew(turns.body(), buffer)) else { return Ok(None) };
        let iteration = turns.number();
        let used = iteration.rem(slots);
        let read = slots_read(turns.body(), other);
        if !read.contains(&used) {
            return Ok(None);
        }
        let refuse = |because: &str| Err(step.refuse(format!("`{}` is a ring, and {because}", other.sym)));
        if slots_read(stmts, other).len() > read.len() || read.iter().any(|slot| *slot != used) {
            return refuse("another slot of it is read than that of the iteration");
        }
        let slot = Buffer { sym: other.sym.fresh(), dims: other.dims[1..].to_vec(), ..other.clone() };
        // All that is written to the ring meanwhile is for iterations to come, each of which finds its slot as it was filled for it.
        let steps = turns.steps_ahead(slots);
        let ahead: Vec<Index> = steps.iter().map(|steps| iteration.offset(*steps).rem(slots)).collect();
        let written = slots_written(stmts, other).and_then(|_| slots_written(turns.body(), other));
        if written.is_none_or(|slots| slots.iter().any(|slot| !ahead.contains(slot))) {
            return refuse("what is written to it is not known to be for iterations to come");
        }
        if !steps.iter().zip(&ahead).any(|(steps, ahead)| turns.fill(*steps, ahead, [other, &slot])) {
            return refuse("it is not known that each slot is filled anew before it is used again");
        }
        let body = map_elements(turns.body().to_vec(), &|access: &mut Access| {
            if access.buffer == other.sym && access.index[0] == used {
                access.buffer = slot.sym.clone();
                access.index.remove(0);
            }
        });
        Ok(Some(Ring { slot, used, body }))
    }
}

/// A loop whose iterations use the slots of a ring one after another, or those of a loop over parts of a block in each of them.
struct Turns<'a> {
    around: &'a For,
    /// The loop over the parts, and how many there are.
    parts: Option<(&'a For, i64)>,
}

impl<'a> Turns<'a> {
    /// The loop, whose parts use slots of their own if there is nothing in it but a loop over threads whose variable is in those slots.
    fn of(around: &'a For, ring: &Buffer) -> Turns<'a> {
        let parts = match &around.body[..] {
            [Stmt::For(l)] => l.threads().map(|(count, _)| (l, count)),
            _ => None,
        };
        let differ = |(parts, _): &(&For, i64)| {
            slots_read(&parts.body, ring).iter().any(|slot| slot.mentions(&parts.var))
        };
        Turns { around, parts: parts.filter(differ) }
    }

    /// What happens in an iteration.
    fn body(&self) -> &'a [Stmt] {
        self.parts.map_or(&self.around.body, |(parts, _)| &parts.body)
    }

    /// How many iterations come before this one.
    fn number(&self) -> Index {
        let iteration = Index::var(&self.around.var);
        match self.parts {
            None => iteration,
            Some((parts, count)) => &iteration.scaled(count) + &Index::var(&parts.var),
        }
    }

    /// How many iterations later a slot may be used that is filled in this one. Parts fill the one that they used themselves the time before:
    /// of no other it is known that it is not in use.
    fn steps_ahead(&self, slots: i64) -> Vec<i64> {
        match self.parts {
            None => (1..slots).collect(),
            Some((_, count)) => (slots > count).then_some(slots - count).into_iter().collect(),
        }
    }

    /// Whether a condition says that there is an iteration so many steps later.
    fn exists(&self, cond: &Cond, steps: i64) -> bool {
        let Range::Span { lo, hi, .. } = &self.around.range else { return false };
        let iteration = Index::var(&self.around.var);
        let Some((parts, count)) = self.parts else {
            return *cond == Cond::lt(iteration.offset(steps), hi.clone());
        };
        // A part that begins has used no slot yet, and the first steps were filled for all.
        let begun = Cond::le(lo.offset(1), iteration.clone());
        let later = |conjunct: &Cond| {
            (0..count).all(|part| {
                let of_part = conjunct.substitute(&|s| (*s == parts.var).then(|| part.into()));
                of_part == Cond::lt(iteration.offset((part + steps) / count), hi.clone())
            })
        };
        cond.conjuncts().iter().all(|conjunct| *conjunct == begun || later(conjunct))
    }

    /// Whether every iteration fills all of the slot `ahead` of the iteration so many steps later, if there is such.
    fn fill(&self, steps: i64, ahead: &Index, [ring, slot]: [&Buffer; 2]) -> bool {
        let Range::Span { step, .. } = &self.around.range else { return false };
        let filled = self.body().iter().flat_map(|stmt| match stmt {
            Stmt::If(i) if self.exists(&i.cond, steps) => i.then.to_vec(),
            other => vec![other.clone()],
        });
        let filled = map_accesses(
            filled.collect(),
            &|access| {
                if access.buffer == ring.sym && access.index[0] == *ahead {
                    access.buffer = slot.sym.clone();
                    access.index.remove(0);
                }
            },
            &|window| {
                if window.buffer == ring.sym && matches!(&window.dims[0], Span::At(at) if at == ahead) {
                    window.buffer = slot.sym.clone();
                    window.dims.remove(0);
                }
            },
        );
        let filled: Vec<Stmt> =
            filled.into_iter().filter(|stmt| count_uses(std::slice::from_ref(stmt), &slot.sym) > 0).collect();
        step.as_constant() == Some(1) && covers(&filled, slot)
    }
}

/// The slots that elements are read from.
fn slots_read(stmts: &[Stmt], ring: &Buffer) -> Vec<Index> {
    let mut slots = Vec::new();
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::Assign(a) = stmt {
            a.value.for_each_access(&mut |access| {
                if access.buffer == ring.sym {
                    slots.push(access.index[0].clone());
                }
            });
        }
    });
    slots
}

/// The slots that elements or whole windows are written to; `None` if an instruction does anything else to the ring.
fn slots_written(stmts: &[Stmt], ring: &Buffer) -> Option<Vec<Index>> {
    let (mut slots, mut only) = (Vec::new(), true);
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Assign(a) if a.target.buffer == ring.sym => slots.push(a.target.index[0].clone()),
        Stmt::Instruction(i) => {
            let known = instr::by_name(&i.name).map_or(&[][..], |record| record.operands);
            for (at, operand) in i.operands.iter().enumerate() {
                if let Operand::Window(window) = operand
                    && window.buffer == ring.sym
                {
                    only &= known.get(at).is_some_and(|o| o.access == OperandAccess::Write);
                    slots.push(window.start()[0].clone());
                }
            }
        }
        _ => {}
    });
    only.then_some(slots)
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    /// Of a ring `d` takes the slot that is used, while another is filled.
    #[test]
    fn a_slot_of_a_ring_is_taken_while_others_are_filled() {
        let program = |uses: &str| {
            format!(
                "program p(n: size, x: in f32[n, 64], y: out f32[n, 64]) {{
                    for b in block.x(1) {{
                        alloc s: f32[64] shared
                        for k in 0..n {{
                            alloc d: f32[2, 32] shared
                            for t in threads(64@1) {{ s[t] = x[k, t] }}
                            {uses}
                            for t in threads(32@1), u in 0..2 {{ y[k, 2*t + u] = d[u, 31 - t] }}
                        }}
                    }}
                }}"
            )
        };
        let run = |uses: &str, steps: &str| {
            let program = parse::program(&program(uses)).expect("reads");
            Schedule::run(program, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
        };
        let made = "for w in threads(1@32) {
            alloc r: f32[2, 32@1] reg
            for t in threads(32@1), u in 0..2 { r[u, t] = s[2*t + u] }
            for t in threads(32@1), u in 0..2 { d[u, t] = r[u, t] }
        }";
        for slots in [2, 3] {
            let text = run(made, &format!("pipeline(y.k, {slots}, via=shared)\nstorage_share(d, s)"))
                .expect("is legal");
            assert!(text.contains(&format!("s[k%{slots}, 32*u + t] = r[u, t]")), "{text}");
            assert!(
                text.contains(&format!("= s[k%{slots}, 32*u - t + 31]")) && !text.contains("alloc d"),
                "{text}"
            );
        }
        // The same order is asked for within an iteration.
        let early =
            "for t in threads(32@1), u in 0..2 { d[u, t] = 1 } for t in threads(32@1) { y[k, t] = s[t] }";
        let refused =
            run(early, "pipeline(y.k, 2, via=shared)\nstorage_share(d, s)").expect_err("is refused");
        assert!(refused.contains("is still used when"), "{refused}");
        // So is what is left in a slot for a loop that begins again.
        let again = "program p(n: size, x: in f32[n, 64], y: out f32[n, 64]) {
            for b in block.x(1) {
                alloc s: f32[2, 64] shared
                for t in threads(64@1) { s[0, t] = x[0, t] }
                for o in 0..2 {
                    for k in 0..n {
                        alloc d: f32[64] shared
                        if k + 1 < n { for t in threads(64@1) { s[(k + 1)%2, t] = x[k, t] } }
                        for t in threads(64@1) { d[t] = s[k%2, t] }
                        for t in threads(64@1) { y[k, t] = d[63 - t] }
                    }
                }
            }
        }";
        let share = |program: &str| {
            let program = parse::program(program).expect("reads");
            Schedule::run(program, "storage_share(d, s)").map(drop).map_err(|e| e.to_string())
        };
        let refused = share(again).expect_err("is refused");
        assert!(refused.contains("what one of them keeps for the next would be lost"), "{refused}");
        // What an iteration reads of another's slot is needed there.
        let before = "program p(n: size, x: in f32[n, 64], y: out f32[n, 64]) {
            for b in block.x(1) {
                alloc s: f32[2, 64] shared
                for k in 0..n {
                    alloc d: f32[64] shared
                    for t in threads(64@1) { s[(k + 1)%2, t] = x[k, t] }
                    for t in threads(64@1) { d[t] = READ }
                    for t in threads(64@1) { y[k, t] = d[63 - t] }
                }
            }
        }";
        for (read, because) in [
            ("s[k%2, t] + s[(k + 1)%2, t]", "another slot of it is read"),
            ("s[(k + 1)%2, t]", "what one of them keeps for the next would be lost"),
        ] {
            let refused = share(&before.replace("READ", read)).expect_err("is refused");
            assert!(refused.contains(because), "{read}: {refused}");
        }
        for (fill, because) in [
            ("for t in threads(64@1) { s[k%2, t] = x[k, t] }", "not known to be for iterations to come"),
            // A slot that is left as it is would be used again.
            ("", "filled anew"),
            ("for t in threads(32@1) { s[(k + 1)%2, t] = x[k, t] }", "filled anew"),
            ("if k < 3 { for t in threads(64@1) { s[(k + 1)%2, t] = x[k, t] } }", "filled anew"),
        ] {
            let fill = before
                .replace("for t in threads(64@1) { s[(k + 1)%2, t] = x[k, t] }", fill)
                .replace("READ", "s[k%2, t]");
            let refused = share(&fill).expect_err("is refused");
            assert!(refused.contains(because), "{fill}: {refused}");
        }
    }
}
