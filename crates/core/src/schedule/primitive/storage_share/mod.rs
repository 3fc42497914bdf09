//! `storage_share`: a buffer in shared memory takes the room of another, which nobody needs any more.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(x: in f32[32], y: out f32[32]) {
//!   for b in block.x(1) {
//!     alloc s: f32[32] shared
//!     alloc d: f32[32] shared
//!     for w in threads(1@32) {
//!       alloc r: f32[32@1] reg
//!       for t in threads(32@1) { s[t] = x[t] }
//!       for t in threads(32@1) { r[t] = 2 * s[31 - t] }
//!       for t in threads(32@1) { d[t] = r[t] }
//!       for t in threads(32@1) { y[t] = d[31 - t] }
//!     }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "storage_share(d, s)").unwrap();
//! assert!(after.program().to_string().contains("s[t] = r[t]"));
//! ```
//!
//! Elements take the places of those with the same number, counted in C order, in the layout of the other buffer; what is left of it is not
//! used. In every list of statements those that touch the other buffer stand before those that touch this one, or both
//! stand in a loop over threads whose iterations keep to elements of their own, or in one whose iterations write both
//! anew, where it is so again: then nothing is overwritten that is read later. A loop over threads whose iterations do not keep to
//! elements of their own is taken apart before the first statement that touches this buffer: then all of them have done with
//! the other one. Of a ring (`pipeline`) the buffer takes the slot that the iteration uses, while others are being filled.

mod ring;

use std::collections::{HashMap, HashSet};

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{Access, Buffer, For, Mode, Operand, Program, Space, Stmt, walk};
use crate::layout::row_major_strides;
use crate::schedule::rewrite::{Effects, Touched, count_uses, covers, distribute, map_elements, values_of};
use crate::schedule::step::Call;
use crate::sym::Sym;

use self::ring::Ring;
use super::Primitive;
use super::vectorize::check_vectors;

pub(super) const USAGE: &str = "storage_share(buffer, other)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct StorageShare {
    /// The buffer that gives up its own room.
    pub buffer: String,
    /// The one whose room it takes.
    pub other: String,
}

impl StorageShare {
    pub(super) fn read(call: &Call) -> Result<StorageShare, Diagnosis> {
        Ok(StorageShare { buffer: call.word_at(0)?.into(), other: call.word_at(1)?.into() })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot take the room of `{}`", self.buffer, self.other)).because(because)
    }

    /// The list with the buffer in the room of the other, where that is allocated there and the buffer too, or further in; the number of
    /// lists where it is so.
    fn share(
        &self,
        stmts: &[Stmt],
        buffers: &HashMap<Sym, Buffer>,
        lists: &mut usize,
    ) -> Result<Vec<Stmt>, Diagnosis> {
        let other = stmts.iter().find_map(|stmt| allocated(stmt, &self.other));
        let mut buffer = None;
        walk::for_each(stmts, &mut |stmt| buffer = buffer.or(allocated(stmt, &self.buffer)));
        if let (Some(buffer), Some(other)) = (buffer, other) {
            *lists += 1;
            return self.in_room_of(stmts, buffers, [buffer, other]);
        }
        let mut out = stmts.to_vec();
        for stmt in &mut out {
            for body in walk::bodies_mut(stmt) {
                *body = self.share(body, buffers, lists)?.into();
            }
        }
        Ok(out)
    }

    fn in_room_of(
        &self,
        stmts: &[Stmt],
        buffers: &HashMap<Sym, Buffer>,
        [buffer, other]: [&Buffer; 2],
    ) -> Result<Vec<Stmt>, Diagnosis> {
        let ring = Ring::of(self, stmts, [buffer, other])?;
        let [of_buffer, mut of_other] = [self.extents(buffer)?, self.extents(other)?];
        if ring.is_some() {
            of_other.remove(0);
        }
        let [needed, there] = [&of_buffer, &of_other].map(|extents| extents.iter().product::<i64>());
        if buffer.dtype != other.dtype {
            return Err(self.refuse(format!("it has elements of {}, not of {}", buffer.dtype, other.dtype)));
        }
        if needed > there {
            return Err(self.refuse(format!("it has {needed} elements, the other {there}")));
        }
        match &ring {
            // Within an iteration the slot is a buffer of its own.
            Some(ring) => {
                let mut known = buffers.clone();
                known.insert(ring.slot.sym.clone(), ring.slot.clone());
                self.in_turn(&ring.body, [buffer, &ring.slot], &mut Touched::new(&known))?;
            }
            None => self.in_turn(stmts, [buffer, other], &mut Touched::new(buffers))?,
        }
        let (strides, room) = (row_major_strides(&of_buffer), row_major_strides(&of_other));
        let place = |access: &mut Access| {
            if access.buffer != buffer.sym {
                return;
            }
            access.buffer = other.sym.clone();
            if of_buffer != of_other {
                let number = access
                    .index
                    .iter()
                    .zip(&strides)
                    .fold(Index::default(), |sum, (index, stride)| &sum + &index.scaled(*stride));
                access.index = of_other
                    .iter()
                    .zip(&room)
                    .enumerate()
                    .map(|(axis, (extent, stride))| {
                        let whole = number.div(*stride);
                        if axis == 0 { whole } else { whole.rem(*extent) }
                    })
                    .collect();
            }
            if let Some(ring) = &ring {
                access.index.insert(0, ring.used.clone());
            }
        };
        let rest = walk::rewrite(stmts.to_vec(), &mut |stmt| {
            let is_it = allocated(&stmt, &self.buffer).is_some_and(|b| b.sym == buffer.sym);
            if is_it { Vec::new() } else { vec![stmt] }
        });
        Ok(map_elements(rest, &place))
    }

    /// The extents of a buffer in shared memory. How it lies there does not matter: no two elements of a layout have one place.
    fn extents(&self, buffer: &Buffer) -> Result<Vec<i64>, Diagnosis> {
        let refuse = |because: &str| Err(self.refuse(format!("`{}` {because}", buffer.sym)));
        if buffer.space != Space::Shared {
            return refuse("is not in shared memory");
        }
        if buffer.split || buffer.role.is_some() {
            return refuse("has a role, or stores parts of numbers");
        }
        match buffer.constant_extents() {
            Some(extents) => Ok(extents),
            None => refuse("has extents that are no constants"),
        }
    }

    /// Whether the other buffer is done with when this one is begun.
    fn in_turn(
        &self,
        stmts: &[Stmt],
        [buffer, other]: [&Buffer; 2],
        touched: &mut Touched,
    ) -> Result<(), Diagnosis> {
        let touches = |stmt: &Stmt, which: &Buffer| count_uses(std::slice::from_ref(stmt), &which.sym) > 0;
        let begun = stmts.iter().position(|stmt| touches(stmt, buffer));
        let done = stmts.iter().rposition(|stmt| touches(stmt, other));
        let (Some(begun), Some(done)) = (begun, done) else { return Ok(()) };
        if done < begun {
            return Ok(());
        }
        if begun < done {
            return Err(self.refuse(format!("`{}` is still used when `{}` is", other.sym, buffer.sym)));
        }
        match &stmts[begun] {
            Stmt::For(l) => {
                let values = match (values_of(&l.range), l.mode) {
                    (Some(values), _) if values.len() == 1 => values,
                    (Some(values), Mode::Threads { .. }) => {
                        self.apart(l, &values, [&buffer.sym, &other.sym], touched)?;
                        values
                    }
                    _ if written_anew(&l.body, buffer) && written_anew(&l.body, other) => {
                        touched.forget(&l.var);
                        return self.in_turn(&l.body, [buffer, other], touched);
                    }
                    _ => {
                        return Err(self.refuse(format!(
                            "both are used in every iteration of the loop `{}`, and what one of them keeps for the next would be lost",
                            l.var
                        )));
                    }
                };
                for value in values {
                    touched.within(&l.var, value);
                    self.in_turn(&l.body, [buffer, other], touched)?;
                }
                Ok(())
            }
            Stmt::If(i) => {
                self.in_turn(&i.then, [buffer, other], touched)?;
                self.in_turn(&i.otherwise, [buffer, other], touched)
            }
            _ => Err(self.refuse("one statement uses both of them")),
        }
    }

    /// The statements with innermost loops over threads that use the other buffer before this one taken apart in between; `None` if there are
    /// none. Iterations of such a loop run at the same time and do not depend on each other, so that those of a part may all come before
    /// those of the next.
    fn taken_apart(&self, stmts: &[Stmt]) -> Result<Option<Vec<Stmt>>, Diagnosis> {
        let (mut out, mut any) = (Vec::new(), false);
        for stmt in stmts {
            let mut stmt = stmt.clone();
            let mut inside = false;
            for body in walk::bodies_mut(&mut stmt) {
                if let Some(apart) = self.taken_apart(body)? {
                    *body = apart.into();
                    inside = true;
                }
            }
            any |= inside;
            match stmt {
                Stmt::For(l) if !inside && matches!(l.mode, Mode::Threads { .. }) => match self.between(&l) {
                    Some(at) => {
                        let (loops, allocations) = distribute(&l, at)?;
                        out.extend(allocations.into_iter().chain(loops.into_iter().map(Stmt::For)));
                        any = true;
                    }
                    None => out.push(Stmt::For(l)),
                },
                other => out.push(other),
            }
        }
        Ok(any.then_some(out))
    }

    /// Where a loop may be taken apart: before the first statement of its body that touches this buffer, if all that touch the other one
    /// stand before that, and there are iterations to wait for.
    fn between(&self, l: &For) -> Option<usize> {
        let touches = |stmt: &Stmt, name: &str| {
            let effects = Effects::of(std::slice::from_ref(stmt));
            [&effects.reads, &effects.stores, &effects.updates]
                .into_iter()
                .flatten()
                .any(|buffer| buffer.name() == name)
        };
        let several = l.range.constant_trip_count().is_none_or(|count| count > 1);
        let begun = l.body.iter().position(|stmt| touches(stmt, &self.buffer))?;
        let done = l.body.iter().rposition(|stmt| touches(stmt, &self.other))?;
        (several && done < begun).then_some(begun)
    }

    /// Whether no iteration of a loop over threads touches places of this buffer where another touches the other buffer.
    fn apart(
        &self,
        l: &For,
        values: &[i64],
        [buffer, other]: [&Sym; 2],
        touched: &mut Touched,
    ) -> Result<(), Diagnosis> {
        let unknown = || self.refuse(format!("it is not known what iterations of the loop `{}` use", l.var));
        let mut elements = |which: &Sym, value: i64| {
            touched.within(&l.var, value);
            touched.of(&l.body, which).ok_or_else(unknown)
        };
        let mut of_other: HashMap<i64, i64> = HashMap::new();
        let mut of_several: HashSet<i64> = HashSet::new();
        for value in values {
            for element in elements(other, *value)? {
                if of_other.insert(element, *value).is_some() {
                    of_several.insert(element);
                }
            }
        }
        for value in values {
            let lost = elements(buffer, *value)?.into_iter().any(|element| {
                of_several.contains(&element) || of_other.get(&element).is_some_and(|user| user != value)
            });
            if lost {
                return Err(self.refuse(format!(
                    "an iteration of the loop `{}` would overwrite what another uses",
                    l.var
                )));
            }
        }
        Ok(())
    }
}

/// The buffer of that name, if the statement allocates it.
fn allocated<'a>(stmt: &'a Stmt, name: &str) -> Option<&'a Buffer> {
    match stmt {
        Stmt::Alloc(buffer) if buffer.sym.name() == name => Some(buffer),
        _ => None,
    }
}

/// Whether the body of a loop allocates a buffer, or writes all its elements before it reads any, so that nothing is left
/// of an iteration before.
fn written_anew(body: &[Stmt], buffer: &Buffer) -> bool {
    if body.iter().any(|stmt| allocated(stmt, buffer.sym.name()).is_some()) {
        return true;
    }
    let reads = |stmt: &Stmt| {
        let effects = Effects::of(std::slice::from_ref(stmt));
        effects.reads.contains(&buffer.sym) || effects.updates.contains(&buffer.sym)
    };
    let first = body.iter().position(reads).unwrap_or(body.len());
    covers(&body[..first], buffer)
}

impl Primitive for StorageShare {
    fn call(&self) -> Call {
        Call::new("storage_share").word(&self.buffer).word(&self.other)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut by_instructions = false;
        walk::for_each(&program.body, &mut |stmt| {
            if let Stmt::Instruction(i) = stmt {
                let is_it = |o: &Operand| matches!(o, Operand::Window(w) if w.buffer.name() == self.buffer);
                by_instructions |= i.operands.iter().any(is_it);
            }
        });
        if by_instructions {
            return Err(self.refuse(format!("instructions work on `{}` where it is", self.buffer)));
        }
        let mut lists = 0;
        let mut shared = self.share(&program.body, &program.buffers(), &mut lists);
        let mut program = program.clone();
        while let Err(refused) = shared {
            // From the inside out.
            let Some(body) = self.taken_apart(&program.body)? else { return Err(refused) };
            program = program.with_body(body);
            lists = 0;
            shared = self.share(&program.body, &program.buffers(), &mut lists);
        }
        let body = shared?;
        if lists == 0 {
            return Err(self
                .refuse("nothing allocates the other around it")
                .instead("attach the copy in it with compute_at, to a loop outside or the same"));
        }
        check_vectors(program.with_body(body))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::passes::synchronise::synchronise;
    use crate::schedule::Schedule;

    fn shared(body: &str) -> String {
        format!(
            "program p(x: in f32[64], y: out f32[64]) {{
                for b in block.x(1) {{
                    alloc s: f32[64] shared
                    alloc d: f32[2, 32] shared
                    {body}
                }}
            }}"
        )
    }

    fn after(program: &str) -> Result<Schedule, String> {
        let program = parse::program(program).expect("reads");
        Schedule::run(program, "storage_share(d, s)").map_err(|refused| refused.to_string())
    }

    const FILL: &str = "for t in threads(32@1), u in 0..2 { s[32*u + t] = x[32*u + t] }";
    const READ: &str = "for t in threads(32@1), u in 0..2 { y[32*u + t] = d[u, 31 - t] }";

    #[test]
    fn elements_take_the_places_of_those_with_their_number() {
        let made = "for w in threads(1@32) {
            alloc r: f32[2, 32@1] reg
            for t in threads(32@1), u in 0..2 { r[u, t] = s[2*t + u] }
            for t in threads(32@1), u in 0..2 { d[u, t] = r[u, t] }
        }";
        let shared = after(&shared(&format!("{FILL} {made} {READ}"))).expect("is legal");
        let text = shared.program().to_string();
        assert!(text.contains("s[32*u + t] = r[u, t]") && text.contains("= s[32*u - t + 31]"), "{text}");
        assert!(!text.contains("alloc d"), "{text}");
        // What one thread reads another overwrites: they wait for each other in the middle.
        let lowered = synchronise(shared.program().clone()).expect("barriers can stand").to_string();
        let made = &lowered[lowered.find("r[u, t] = s[2*t + u]").expect("is there")..];
        assert!(
            made.find("barrier").expect("is there") < made.find("s[32*u + t] = r[u, t]").expect("is there")
        );
    }

    #[test]
    fn what_is_needed_later_keeps_its_room() {
        let made = "for t in threads(32@1), u in 0..2 { d[u, t] = s[2*t + u] }";
        let in_place = "for t in threads(32@1), u in 0..2 { d[u, t] = s[32*u + t] }";
        let again = "for t in threads(32@1) { y[t] = s[t] }";
        let every = format!("for k in 0..4 {{ {FILL} {READ} }}");
        for (body, because) in [
            (format!("{FILL} {made} {READ}"), "an iteration of the loop `t` would overwrite"),
            (format!("{FILL} {in_place} {READ}"), "every iteration of the loop `u`"),
            (format!("{FILL} for t in threads(32@1) {{ d[0, t] = s[t] }} {READ}"), "one statement uses both"),
            (
                format!("{FILL} for t in threads(32@1) {{ d[0, t] = 1 }} {again} {READ}"),
                "`s` is still used when",
            ),
            (every, "every iteration of the loop `k`"),
        ] {
            let refused = after(&shared(&body)).expect_err("is refused");
            assert!(refused.contains(because), "{refused}");
        }
    }

    /// Two warps read all of `s` and make half of `d` each: the loop over them is taken apart, and both have read when one stores.
    #[test]
    fn threads_that_read_what_others_overwrite_wait_for_each_other() {
        let made = "for w in threads(2@32) {
            alloc r: f32[32@1] reg
            for t in threads(32@1) { r[t] = s[t] + s[t + 32] }
            for t in threads(32@1) { d[w, t] = r[t] }
        }";
        let shared = after(&shared(&format!("{FILL} {made} {READ}"))).expect("is legal");
        let text = shared.program().to_string();
        assert!(text.contains("alloc r: f32[2@32, 32@1] reg") && !text.contains("alloc d"), "{text}");
        let lowered = synchronise(shared.program().clone()).expect("barriers can stand").to_string();
        let [read, store] = ["r[w, t] = s[t] + s[t + 32]", "s[32*w"].map(|of| lowered.find(of));
        let between = &lowered[read.expect("is there")..store.expect("is there")];
        assert!(between.contains("barrier"), "{lowered}");
        // Not where a thread stores what it has read and then reads again.
        let again = "for w in threads(2@32) {
            for t in threads(32@1) { d[w, t] = 1 }
            for t in threads(32@1) { y[t] = s[t] }
        }";
        let refused =
            after(&super::tests::shared(&format!("{FILL} {again} {READ}"))).expect_err("is refused");
        assert!(refused.contains("would overwrite what another uses"), "{refused}");
    }

    /// `d` is another in every iteration, `s` the same: where some of it is kept from one to the next, it is needed.
    #[test]
    fn what_iterations_keep_is_not_lost() {
        let program = |fill: &str| {
            format!(
                "program p(n: size, x: in f32[n, 64], y: out f32[n, 64]) {{
                    for b in block.x(1) {{
                        alloc s: f32[64] shared
                        for t in threads(64@1) {{ s[t] = 0 }}
                        for k in 0..n {{
                            alloc d: f32[64] shared
                            {fill}
                            for w in threads(1@32) {{
                                alloc r: f32[2, 32@1] reg
                                for t in threads(32@1), u in 0..2 {{ r[u, t] = s[2*t + u] }}
                                for t in threads(32@1), u in 0..2 {{ d[32*u + t] = r[u, t] }}
                            }}
                            for t in threads(32@1), u in 0..2 {{ y[k, 2*t + u] = d[2*t + u] }}
                        }}
                    }}
                }}"
            )
        };
        let anew =
            after(&program("for t in threads(64@1) { s[t] = x[k, t] }")).map(|s| s.program().to_string());
        // What is written before the loop is of no use there, and stands before all of `d`.
        assert!(anew.as_ref().is_ok_and(|text| !text.contains("alloc d")), "{anew:?}");
        for part in
            ["for t in threads(32@1) { s[t] = x[k, t] }", "for t in threads(64@1) { s[t] += x[k, t] }"]
        {
            let refused = after(&program(part)).expect_err("is refused");
            assert!(refused.contains("every iteration of the loop `k`"), "{refused}");
        }
    }

    /// Of what is computed between the two nothing comes later.
    #[test]
    fn a_stage_stays_before_what_overwrites_what_it_reads() {
        let program = "program staged(M: size, x: in f32[M, 8], y: out f32[M, 8]) {
            alloc s: f32[M, 8] global
            alloc d: f32[M, 8] global
            for i in 0..M, j in 0..8 { s[i, j] = x[i, j] }
            for i in 0..M, j in 0..8 { d[i, j] = s[i, j] + s[i, 7 - j] }
            for i in 0..M, j in 0..8 { y[i, j] = d[i, j] + d[i, 7 - j] }
        }";
        let steps = "cache_write(d, reg) -> own
            split(y.i, 2) -> b, i
            set_scope(s, shared)
            set_scope(d, shared)
            compute_at(d, y.b)
            compute_at(own, y.b)
            compute_at(s, y.b)
            storage_share(d, s)";
        let program = parse::program(program).expect("reads");
        let mut schedule = Schedule::run(program, steps).expect("is legal");
        let refused = schedule.steps("compute_at(own, s.j)").map(drop).expect_err("is refused").to_string();
        assert!(refused.contains("`s`, which it reads, is overwritten there"), "{refused}");
    }

    #[test]
    fn elements_lie_as_the_layout_of_the_other_buffer_says() {
        let made = "for w in threads(1@32) {
            alloc r: f32[2, 32@1] reg
            for t in threads(32@1), u in 0..2 { r[u, t] = s[32*u + 31 - t] }
            for t in threads(32@1), u in 0..2 { d[u, t] = r[u, t] }
        }";
        // Of either buffer: what is shared has the one of `s`.
        let program = shared(&format!("{FILL} {made} {READ}"));
        for (from, to) in [
            ("s: f32[64] shared", "s: f32[64] shared layout (i) => 40*(i/32) + i%32"),
            ("d: f32[2, 32] shared", "d: f32[2, 32] shared layout (r, c) => 33*r + c"),
        ] {
            let text = after(&program.replacen(from, to, 1)).expect("is legal").program().to_string();
            assert!(!text.contains("33*r") && !text.contains("alloc d"), "{text}");
            assert_eq!(text.contains("40*(i/32)"), from.starts_with('s'), "{text}");
            assert!(text.contains("s[32*u + t] = r[u, t]"), "{text}");
        }
    }

    #[test]
    fn only_plain_shared_memory_that_is_large_enough_is_taken() {
        let program = shared(&format!("{FILL} {READ}"));
        for (from, to, because) in [
            ("d: f32[2, 32] shared", "d: f32[2, 48] shared", "it has 96 elements, the other 64"),
            ("d: f32[2, 32] shared", "d: f32[2, 32] shared split", "stores parts of numbers"),
            ("s: f32[64] shared", "s: f64[64] shared", "it has elements of f32, not of f64"),
            ("d: f32[2, 32] shared", "e: f32[2, 32] shared", "nothing allocates the other around it"),
        ] {
            let refused = after(
                &program
                    .replacen(from, to, 1)
                    .replace("d[u", if to.starts_with('e') { "e[u" } else { "d[u" }),
            )
            .expect_err("is refused");
            assert!(refused.contains(because), "{refused}");
        }
    }
}
