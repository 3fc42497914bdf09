//! `bulk_store`: what a loop copies from shared to device memory leaves by one bulk copy.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   for b in block.x(1) {
//!     alloc s: f32[64] shared
//!     for k in 0..ceil(n, 64) {
//!       for t in threads(64@1) { s[t] = 64*k + t < n ? 2 * x[64*k + t] : 0 }
//!       for e in 0..64 { if 64*k + e < n { y[64*k + e] = s[e] } }
//!     }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "bulk_store(y.e)").unwrap();
//! assert!(after.program().to_string().contains("\
//!     for k in 0..ceil(n, 64) {
//!       for e in threads(1@1) {
//!         bulk.wait_read 0
//!       }
//!       barrier
//!       for t in threads(64@1) {
//!         s[t] = 64*k + t < n ? 2 * x[64*k + t] : 0
//!       }
//!       fence.async
//!       barrier
//!       for e in threads(1@1) {
//!         bulk_write_f32(y[64*k +: 64], s[:], max(min(n - 64*k, 64), 0))
//!         bulk.commit
//!       }
//!     }
//!     for e in threads(1@1) {
//!       bulk.wait 0
//!     }
//! "), "{}", after.program());
//! ```
//!
//! One thread asks for it, and goes on; the next iteration of the loop around begins when shared memory has been read, and all of it has
//! been written when that loop is over. Where nothing is around that runs one after another, the thread waits at once.
//!
//! Elements are consecutive in both memories, and what is stored of them is all that lies inside the matrix. Where the host's flags
//! choose between a plain copy and something that computes (`beta0`, `alpha1`), the copy leaves in bulk and the other stays a loop. Complex
//! numbers may stand in shared memory as their parts.

use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Atom, Comparison, Cond, Index};
use crate::instr::{self, Behaviour, Record};
use crate::ir::{
    Access, Assign, AssignOp, BinaryOp, Buffer, For, If, Instruction, Mode, Operand, Program, Range, Space,
    Span, Stmt, Sync, UnaryOp, Value, Window, walk,
};
use crate::schedule::facts::Facts;
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Changed, Effects, Place, guard_bounds, head, refresh_loop, rewrite};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;
use super::pipeline::first;

pub(super) const USAGE: &str = "bulk_store(label.loop)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct BulkStore {
    /// The loop.
    pub target: LoopRef,
}

/// A loop that is a plain copy under some flags.
struct Copied {
    /// The flags, outermost first.
    flags: Vec<Cond>,
    /// What is asked of all iterations together.
    asked: Cond,
    copy: Stmt,
    /// What is read of shared memory.
    source: Sym,
}

/// A statement that is reached under some conditions, the outermost first.
struct Leaf<'a> {
    conds: Vec<&'a Cond>,
    assign: &'a Assign,
}

impl BulkStore {
    pub(super) fn read(call: &Call) -> Result<BulkStore, Diagnosis> {
        Ok(BulkStore { target: call.loop_at(0)? })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("what `{}` stores cannot leave by a bulk copy", self.target)).because(because)
    }

    /// The loop around the target, whose next iteration begins when shared memory has been read.
    fn in_turn(&self, around: &For, place: &Place) -> Result<Option<Vec<Stmt>>, Diagnosis> {
        if around.mode != Mode::Serial {
            return Ok(None);
        }
        let mut parts = Vec::new();
        let asked = place.rebuild_all(&[Stmt::For(around.clone())], &mut |body, inside| {
            self.in_iteration(body, inside, &mut parts)
        })?;
        // Those who have asked wait.
        let done = parts.iter().rev().fold(by_one_thread(Sync::BulkWait(0)), |done, part| {
            Stmt::For(refresh_loop(For { body: vec![done].into(), ..head(part) }))
        });
        Ok(asked.map(|asked| asked.into_iter().chain([done]).collect()))
    }

    /// The body of that loop, or of one over `parts` of a block which is all that stands in it.
    fn in_iteration(&self, body: &[Stmt], place: &Place, parts: &mut Vec<For>) -> Changed {
        let meant = body.iter().enumerate().find_map(|(at, stmt)| match stmt {
            Stmt::For(l) if self.target.means(l) => Some((at, l)),
            _ => None,
        });
        let Some((at, l)) = meant else {
            return match body {
                [Stmt::For(part)] if part.threads().is_some() => {
                    parts.push(head(part));
                    place.rebuild_all(body, &mut |body, inside| self.in_iteration(body, inside, parts))
                }
                _ => Ok(None),
            };
        };
        let copied = self.copied(l, place)?;
        if Effects::of(&body[at + 1..]).writes(&copied.source) {
            let because = format!("`{}` is written again before the iteration is over", copied.source);
            return Err(self.refuse(because));
        }
        let mut out = vec![by_one_thread(Sync::BulkWaitRead(0)), Stmt::Sync(Sync::Barrier)];
        out.extend_from_slice(&body[..at]);
        out.extend(copied.statements(l, &[]));
        out.extend_from_slice(&body[at + 1..]);
        Ok(Some(out))
    }

    /// The target, after which it is waited for at once.
    fn alone(&self, l: &For, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        let copied = self.copied(l, place)?;
        let meet = Stmt::Sync(Sync::Barrier);
        Ok(copied.statements(l, &[by_one_thread(Sync::BulkWait(0)), meet]))
    }

    /// What the loop copies, if it is a plain copy under some flags.
    fn copied(&self, l: &For, place: &Place) -> Result<Copied, Diagnosis> {
        let (outer, facts, buffers) = (place.outer(), place.facts(), place.program.buffers());
        let whole_warps = outer.iter().all(|o| o.threads().is_none_or(|(_, pitch)| pitch % 32 == 0));
        if !whole_warps || !outer.iter().any(|o| matches!(o.mode, Mode::Block { .. })) {
            return Err(self
                .refuse("the threads that it belongs to are no whole warps that could meet")
                .instead("apply bulk_store before the loop is shared out among threads"));
        }
        let elements = match &l.range {
            Range::Span { lo, hi, step }
                if l.mode == Mode::Serial && lo.as_constant() == Some(0) && step.as_constant() == Some(1) =>
            {
                hi.as_constant()
            }
            _ => None,
        };
        let Some(elements) = elements else {
            return Err(self
                .refuse("it is no serial loop of a constant number of iterations")
                .instead("fuse the loops over a tile first, and apply bulk_store before split and bind"));
        };
        let (mut leaves, mut conds) = (Vec::new(), Vec::new());
        if !gather(&l.body, &mut conds, &mut leaves) {
            return Err(self.refuse("it holds more than assignments under conditions"));
        }
        let plain = leaves.iter().find_map(|leaf| {
            let (first, parts) = copied_from(&leaf.assign.value)?;
            (leaf.assign.op == AssignOp::Store && !leaf.assign.atomic).then_some((leaf, first, parts))
        });
        let Some((leaf, from, parts)) = plain else {
            return Err(self.refuse("it stores other than what lies in shared memory as it is"));
        };
        let to = &leaf.assign.target;
        let (Some(target), Some(source)) = (buffers.get(&to.buffer), buffers.get(&from.buffer)) else {
            return Err(self.refuse("a buffer is not known"));
        };
        if !target.is_global() || source.space != Space::Shared || source.split {
            return Err(self.refuse("it copies other than from shared to device memory"));
        }
        let record = record(source.dtype, target.dtype).ok_or_else(|| {
            self.refuse(format!("there is no bulk copy of {} as {}", source.dtype, target.dtype))
        })?;
        let (Some((_, start)), Some((others, first)), 1) =
            (begin(to, &l.var, 1), begin(from, &l.var, parts), target.dims.len())
        else {
            return Err(self.refuse("its elements do not follow each other in both memories").instead(
                "let what is stored lie as one run in shared memory, as in the room of one (storage_share)",
            ));
        };
        let piece = (16 / target.dtype.bytes()).max(1);
        if elements % piece != 0 || !facts.is_multiple(&start, piece) || target.align % 16 != 0 {
            return Err(self.refuse(format!(
                "what is stored of `{}` may not start and end at multiples of 16 bytes",
                target.sym
            )));
        }
        let of_source = (16 / source.dtype.bytes()).max(1);
        if !begins_at_multiple(source, others, &first, of_source, &facts) {
            return Err(self.refuse(format!(
                "what is read of `{}` may not start at a multiple of 16 bytes",
                source.sym
            )));
        }
        // All that is inside the matrix is stored, up to what is asked of all elements at once.
        let mut inside = facts.clone();
        inside.enter(l);
        inside.assume(&guard_bounds(to, target, &Facts::default()));
        let (mut flags, mut asked) = (Vec::new(), Cond::TRUE);
        for cond in leaf.conds.iter().flat_map(|c| c.conjuncts()) {
            if is_flag(cond) {
                flags.push(cond.clone());
            } else if !cond.mentions(&l.var) {
                asked = asked.and(cond.clone());
            } else if !inside.proves(&undivided(cond)) {
                return Err(self.refuse(format!("it leaves out elements that `{}` has", target.sym)));
            }
        }
        let there = &target.dims[0].extent - &start;
        let valid = if facts.proves(&Cond::le(elements.into(), there.clone())) {
            elements.into()
        } else {
            there.minimum(&elements.into()).maximum(&0.into())
        };
        let to = Window { buffer: target.sym.clone(), dims: vec![Span::Slice(start, elements)] };
        let all = source.dims.last().and_then(|dim| dim.extent.as_constant()) == Some(parts * elements);
        let along = if all { Span::All } else { Span::Slice(first, parts * elements) };
        let dims = others.iter().cloned().map(Span::At).chain([along]).collect();
        let from = Window { buffer: source.sym.clone(), dims };
        let operands = vec![Operand::Window(to), Operand::Window(from), Operand::Scalar(valid)];
        let copy = Stmt::Instruction(Instruction { name: record.name.into(), operands, signal: None });
        Ok(Copied { flags, asked, copy, source: source.sym.clone() })
    }
}

impl Copied {
    /// The copy, and `after` it; where a flag says otherwise the loop as it was.
    fn statements(self, l: &For, after: &[Stmt]) -> Vec<Stmt> {
        let ask = first("e", 1, vec![self.copy, Stmt::Sync(Sync::BulkCommit)]);
        let ask = match self.asked {
            cond if cond == Cond::TRUE => ask,
            cond => only_if(cond, vec![ask], Vec::new()),
        };
        let mut out = vec![Stmt::Sync(Sync::FenceAsync), Stmt::Sync(Sync::Barrier), ask];
        out.extend_from_slice(after);
        for (at, flag) in self.flags.iter().enumerate().rev() {
            let otherwise = decided(&l.body, &self.flags[..at], &flag.clone().negate());
            let otherwise = For { body: otherwise.into(), ..head(l) };
            out = vec![only_if(flag.clone(), out, vec![Stmt::For(refresh_loop(otherwise))])];
        }
        out
    }
}

/// The statements where these flags hold and the last one.
fn decided(stmts: &[Stmt], flags: &[Cond], last: &Cond) -> Vec<Stmt> {
    walk::rewrite(stmts.to_vec(), &mut |stmt| match stmt {
        Stmt::If(i) if flags.contains(&i.cond) || i.cond == *last => i.then.to_vec(),
        Stmt::If(i) if i.cond.clone().negate() == *last => i.otherwise.to_vec(),
        other => vec![other],
    })
}

fn only_if(cond: Cond, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Stmt {
    Stmt::If(If { cond, then: then.into(), otherwise: otherwise.into() })
}

fn by_one_thread(sync: Sync) -> Stmt {
    first("e", 1, vec![Stmt::Sync(sync)])
}

fn is_flag(cond: &Cond) -> bool {
    match cond {
        Cond::Flag(_) => true,
        Cond::Not(c) => is_flag(c),
        _ => false,
    }
}

/// `a + x/d < b` as the same of what is divided, `d*a + x < d*b`: rows in elements.
fn undivided(cond: &Cond) -> Cond {
    let Cond::Compare(Comparison::Lt, x, y) = cond else { return cond.clone() };
    let divided = x.terms().iter().find_map(|(atom, factor)| match atom {
        Atom::Div(inner, divisor) if *factor == 1 => Some((atom, inner, *divisor)),
        _ => None,
    });
    let Some((atom, inner, divisor)) = divided else { return cond.clone() };
    let rest = x - &Index::atom(atom.clone());
    Cond::lt(&rest.scaled(divisor) + inner, y.scaled(divisor))
}

/// All assignments of a body with what each is under; false if it holds anything else.
fn gather<'a>(stmts: &'a [Stmt], conds: &mut Vec<&'a Cond>, leaves: &mut Vec<Leaf<'a>>) -> bool {
    stmts.len() == 1
        && match &stmts[0] {
            Stmt::Assign(assign) => {
                leaves.push(Leaf { conds: conds.clone(), assign });
                true
            }
            Stmt::If(i) => {
                conds.push(&i.cond);
                let then = gather(&i.then, conds, leaves);
                conds.pop();
                // Elsewhere a condition is not what a copy could be under, unless it is one of the host's.
                then && (i.otherwise.is_empty()
                    || (is_flag(&i.cond) && gather(&i.otherwise, &mut Vec::new(), &mut Vec::new())))
            }
            _ => false,
        }
}

/// Where a value is read as it is: the first element, and how many make one of those that are stored.
fn copied_from(value: &Value) -> Option<(&Access, i64)> {
    fn part(value: &Value) -> Option<&Access> {
        match value {
            Value::Cast(_, a) => match &**a {
                Value::Load(access) => Some(access),
                _ => None,
            },
            _ => None,
        }
    }
    match value {
        Value::Load(access) => Some((access, 1)),
        Value::Binary(BinaryOp::Add, re, im) => {
            let Value::Unary(UnaryOp::TimesI, im) = &**im else { return None };
            let (re, im) = (part(re)?, part(im)?);
            let (last, others) = im.index.split_last()?;
            let follows = re.buffer == im.buffer
                && re
                    .index
                    .split_last()
                    .is_some_and(|(at, before)| before == others && at.offset(1) == *last);
            follows.then_some((re, 2))
        }
        _ => None,
    }
}

/// Where an access begins that goes through the last dimension in the iterations of a loop, so many elements each time, and through no
/// other: the indices of the others, and that of the last.
fn begin<'a>(access: &'a Access, var: &Sym, elements: i64) -> Option<(&'a [Index], Index)> {
    let (last, others) = access.index.split_last()?;
    let start = last - &Index::var(var).scaled(elements);
    (!start.mentions(var) && !others.iter().any(|i| i.mentions(var))).then_some((others, start))
}

/// Whether an element of a shared buffer, by its indices and the last of them, has a multiple of so many before it.
fn begins_at_multiple(buffer: &Buffer, others: &[Index], last: &Index, of: i64, facts: &Facts) -> bool {
    let mut stride = 1;
    let innermost_first = [last].into_iter().chain(others.iter().rev()).zip(buffer.dims.iter().rev());
    buffer.layout.is_none()
        && innermost_first.into_iter().all(|(index, dim)| {
            let begins = stride % of == 0 || facts.is_multiple(&index.scaled(stride), of);
            let extent = dim.extent.as_constant();
            stride *= extent.unwrap_or(0);
            begins && extent.is_some()
        })
}

/// The instruction that writes runs of the one type from shared memory where the other stands.
fn record(from: DType, to: DType) -> Option<&'static Record> {
    instr::all().find(|record| {
        let types = record.operands.iter().filter_map(|o| o.window.as_ref().and_then(|w| w.dtype));
        record.behaviour == Behaviour::BulkWrite && types.eq([to, from])
    })
}

impl Primitive for BulkStore {
    fn call(&self) -> Call {
        Call::new("bulk_store").target(&self.target)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut found = false;
        let body = rewrite(&program.body, &Place::of(program), &mut |stmt, place| {
            let Stmt::For(l) = stmt else { return Ok(None) };
            let done =
                if self.target.means(l) { Some(self.alone(l, place)?) } else { self.in_turn(l, place)? };
            found |= done.is_some();
            Ok(done)
        })?;
        if !found {
            return Err(self.target.unknown(program));
        }
        Ok(program.with_body(body))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn stored(loop_of_stores: &str, dtypes: [&str; 2], rest: &str, steps: &str) -> Result<String, String> {
        let [of_s, of_y] = dtypes;
        let program = format!(
            "program p(n: size, x: in {of_s}[n], beta0: flag, y: inout {of_y}[n]) {{
                for b in block.x(1) {{
                    alloc s: {of_s}[64] shared
                    for k in 0..ceil(n, 64) {{
                        for t in threads(64@1) {{ s[t] = 64*k + t < n ? x[64*k + t] : 0 }}
                        {loop_of_stores}
                        {rest}
                    }}
                }}
            }}"
        );
        let program = parse::program(&program).expect("reads");
        Schedule::run(program, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_no_plain_copy_stays_a_loop() {
        let stores = "for e in 0..64 { if 64*k + e < n {
            if beta0 { y[64*k + e] = s[e] } else { y[64*k + e] = s[e] + 2 * y[64*k + e] }
        } }";
        let text = stored(stores, ["f64", "f64"], "", "bulk_store(y.e)").expect("is legal");
        assert_eq!(text.matches("bulk_write_f64(y[64*k +: 64], s[:], ").count(), 1, "{text}");
        // The other way alone is left for the other value of the flag.
        assert!(text.contains("} else {\n        for e in 0..64 {\n          if 64*k + e < n {\n            y[64*k + e] = s[e] + 2 * y"), "{text}");
        // One after the other where no loop is around.
        let alone = "program p(x: in f32[64], y: out f32[64]) {
            for b in block.x(1) {
                alloc s: f32[64] shared
                for t in threads(64@1) { s[t] = x[t] }
                for e in 0..64 { y[e] = s[e] }
            }
        }";
        let text = Schedule::run(parse::program(alone).expect("reads"), "bulk_store(y.e)").expect("is legal");
        let text = text.program().to_string();
        assert!(
            text.contains("bulk_write_f32(y[0 +: 64], s[:], 64)") && text.contains("bulk.wait 0"),
            "{text}"
        );
    }

    #[test]
    fn numbers_stand_in_shared_memory_as_their_parts() {
        let stores =
            "for e in 0..32 { if 64*k + e < n { y[64*k + e] = c128(s[2*e]) + times_i(c128(s[2*e + 1])) } }";
        let text = stored(stores, ["f64", "c128"], "", "bulk_store(y.e)").expect("is legal");
        assert!(
            text.contains("bulk_write_c128_f64(y[64*k +: 32], s[:], max(min(n - 64*k, 32), 0))"),
            "{text}"
        );
        let turned = stores.replace("s[2*e + 1]", "s[2*e]");
        assert!(stored(&turned, ["f64", "c128"], "", "bulk_store(y.e)").is_err());
    }

    #[test]
    fn what_cannot_leave_in_bulk_is_refused() {
        let plain = "for e in 0..64 { if 64*k + e < n { y[64*k + e] = s[e] } }";
        let rewritten = "for t in threads(64@1) { s[t] = 0 }";
        for (stores, rest, steps, because) in [
            (plain.replace("= s[e]", "= 2 * s[e]"), "", "", "other than what lies in shared memory"),
            (plain.replace("= s[e]", "= x[64*k + e]"), "", "", "other than from shared to device memory"),
            (plain.replace("s[e]", "s[63 - e]"), "", "", "do not follow each other"),
            (plain.replace("< n {", "< n && e < 60 {"), "", "", "leaves out elements"),
            (plain.replace("0..64", "0..62"), "", "", "multiples of 16 bytes"),
            (
                plain.replace("64*k + e", "64*k + e + 1").replace("0..64", "0..60"),
                "",
                "",
                "multiples of 16 bytes",
            ),
            (
                plain.replace("s[e]", "s[e + 2]").replace("0..64", "0..60"),
                "",
                "",
                "may not start at a multiple of 16 bytes",
            ),
            (plain.to_string(), rewritten, "", "written again before the iteration is over"),
            (plain.to_string(), "", "bind(y.e, threads)\n", "no serial loop"),
            (plain.replace("for e in", "for w in threads(4@16), e in"), "", "", "no whole warps"),
        ] {
            let refused = stored(&stores, ["f32", "f32"], rest, &format!("{steps}bulk_store(y.e)"));
            let refused = refused.expect_err("is refused");
            assert!(refused.contains(because), "{stores}\n{refused}");
        }
    }
}
