//! `tensorize`: a nest becomes the instruction that does the same.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n, 32; ldx], y: out f32[n, 32; ldy])
//!   assume ldx%4 == 0
//! {
//!   for b in block.x(ceil(n, 32)) {
//!     alloc s: f32[32, 32] shared
//!     for r in threads(32@8), c in threads(8@1) {
//!       for v in 0..4 { s[r, 4*c + v] = 32*b + r < n ? x[32*b + r, 4*c + v] : 0 }
//!     }
//!     for r in threads(32@8), c in threads(8@1) {
//!       for v in 0..4 { if 32*b + r < n { y[32*b + r, 4*c + v] = s[r, 4*c + v] } }
//!     }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "tensorize(s.v, cp_async16_f32)").unwrap();
//! assert!(after.program().to_string().contains("\
//!     for r in threads(32@8), c in threads(8@1) {
//!       cp_async16_f32(s[r, 4*c +: 4], x[32*b + r, 4*c +: 4], 32*b + r < n ? 4 : 0)
//!     }
//! "));
//! ```
//!
//! The nest rooted at the loop is unified with the meaning of the record, modulo the order of its loops, loops of one
//! iteration and where the operands start. It must hold one assignment and no condition; the condition of a load with
//! a fill becomes an operand where the record has one for it. Element types, memories, alignment and the number of
//! executing threads must be those of the record.
//!
//! Where the record wants a fragment, the buffer's last two dimensions are cut into its tiles, once, and the nests
//! that touch single elements of it become loops over what each thread owns: `i` becomes a loop `io` over tiles and,
//! with the column, `for (i, j) in own`, which later steps name by its first variable. Elements at one place of several
//! tiles have one owner, so such a nest may touch them all; where a fragment gives neighbours in a row to one thread, a nest
//! over pairs of them (`acc[i, 2*j]` and `acc[i, 2*j + 1]`) becomes `for (i, j by 2) in own`. A copy of the loop that the instruction does not fit, such as the general version beside a
//! specialised one, stays as it is; the step is refused if it fits none.

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::index::{self, Cond, Index};
use crate::instr::{self, Completion, Extent, OperandSpec, Place as Where, Record, WindowSpec};
use crate::ir::validate::swizzle;
use crate::ir::{
    Body, Buffer, If, Instruction, Mode, Operand, Program, Space, Span, Stmt, Sync, Window, walk,
};
use crate::layout::Fragment;
use crate::schedule::facts::Facts;
use crate::schedule::handle::{LoopRef, writes};
use crate::schedule::rewrite::{Neighbours, Nest, Pattern, Place, Tiling, own_nests, retile, rewrite};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "tensorize(label.loop, instruction)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Tensorize {
    /// The outermost loop of the nest.
    pub target: LoopRef,
    /// The instruction.
    pub record: &'static Record,
}

impl Tensorize {
    pub(super) fn read(call: &Call) -> Result<Tensorize, Diagnosis> {
        let (target, name) = (call.loop_at(0)?, call.word_at(1)?);
        let record = instr::by_name(name).ok_or_else(|| {
            let known: Vec<_> = instr::all().map(|r| r.name).collect();
            Diagnosis::new(format!("there is no instruction `{name}`"))
                .instead(format!("the instructions are {}", known.join(", ")))
        })?;
        Ok(Tensorize { target, record })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` is not `{}`", self.target, self.record.name)).because(because)
    }

    fn means(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::For(l) => self.target.means(l),
            Stmt::Own(o) => {
                o.vars.first().is_some_and(|v| v.name() == self.target.name)
                    && writes(&o.body, &self.target.label)
            }
            _ => false,
        }
    }

    /// The instruction that does what a nest does.
    fn instruction(
        &self,
        nest: &Nest,
        pattern: &Pattern,
        place: &Place,
        buffers: &HashMap<Sym, Buffer>,
    ) -> Result<Instruction, String> {
        let threads = place.outer().into_iter().rev().find_map(|l| match l.mode {
            Mode::Threads { pitch } => Some(pitch),
            _ => None,
        });
        if threads != Some(self.record.threads) {
            let present = threads.map_or("a whole block".to_string(), |n| format!("{n} threads together"));
            return Err(format!(
                "it is executed by {present}, and the instruction by {}",
                self.record.threads
            ));
        }
        if nest.guard != Cond::TRUE && self.record.threads != 1 {
            return Err("a condition stands inside it, and all threads that execute it must agree".into());
        }
        let operands = pattern.unify(nest, buffers, &place.facts())?;
        for (operand, spec) in operands.iter().zip(self.record.operands) {
            if let (Operand::Window(window), Some(wanted)) = (operand, &spec.window) {
                let buffer = buffers.get(&window.buffer).ok_or("a buffer is not known")?;
                fits(window, buffer, wanted, &place.facts()).map_err(|because| {
                    format!("`{}` cannot be its operand `{}`: {because}", window.buffer, spec.name)
                })?;
            }
        }
        Ok(Instruction { name: self.record.name.into(), operands, signal: None })
    }

    /// The buffers that the instructions of this step want in fragments.
    fn fragments(&self, instruction: &Instruction) -> Vec<(Sym, &'static Fragment)> {
        let wanted = |(operand, spec): (&Operand, &OperandSpec)| match (operand, spec.window.as_ref()?.place)
        {
            (Operand::Window(w), Where::Fragment(name) | Where::FragmentColumns(name, _)) => {
                Some((w.buffer.clone(), Fragment::by_name(name)?))
            }
            _ => None,
        };
        instruction.operands.iter().zip(self.record.operands).filter_map(wanted).collect()
    }
}

impl Primitive for Tensorize {
    fn call(&self) -> Call {
        Call::new("tensorize").target(&self.target).word(self.record.name)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        if matches!(self.record.completion, Completion::Mbarrier | Completion::BulkGroup) {
            return Err(self
                .refuse("its copies are asynchronous, and barriers report that they are complete")
                .instead("pipeline places bulk copies, and those of the tensor memory accelerator: via=bulk, via=tma"));
        }
        if self.record.completion == Completion::CpAsync && self.is_waited_beside(program) {
            return Err(self
                .refuse("asynchronous copies around it are committed and waited for, and nobody would wait for these")
                .instead("tensorize all copies of a launch before one of its loops is pipelined"));
        }
        let buffers = program.buffers();
        let place = Place::of(program);
        let mut search = Search::new(self, &buffers);
        let body = search.statements(&program.body, &place)?;
        let Search { found, fragments, not_alike, why_not, done, .. } = search;
        if !found {
            return Err(self.target.unknown(program));
        }
        if !done {
            let because = if why_not.is_empty() { not_alike } else { why_not };
            return Err(self.refuse(because).instead(format!("it means: {}", self.record.meaning)));
        }
        let mut after = Program { body, ..program.clone() };
        for (buffer, fragment) in fragments {
            after = self.keep_in_fragments(after, &buffer, fragment)?;
        }
        Ok(after)
    }
}

impl Tensorize {
    /// Whether asynchronous copies are committed in the launch of a loop that is meant.
    fn is_waited_beside(&self, program: &Program) -> bool {
        program.body.iter().any(|stmt| {
            let (mut meant, mut committed) = (false, false);
            walk::for_each(std::slice::from_ref(stmt), &mut |stmt| match stmt {
                Stmt::For(l) => meant |= self.target.means(l),
                Stmt::Sync(sync) => committed |= *sync == Sync::CpCommit,
                _ => {}
            });
            meant && committed
        })
    }
}

/// The search for nests that are the instruction.
struct Search<'a> {
    step: &'a Tensorize,
    buffers: &'a HashMap<Sym, Buffer>,
    /// Whether a nest goes by the handle.
    found: bool,
    /// Whether one of them is the instruction.
    done: bool,
    /// The buffers that the instructions want in fragments.
    fragments: Vec<(Sym, &'static Fragment)>,
    /// Why a nest does not look like the instruction.
    not_alike: String,
    /// Why one that does is not it all the same: the better reason to give.
    why_not: String,
}

impl<'a> Search<'a> {
    fn new(step: &'a Tensorize, buffers: &'a HashMap<Sym, Buffer>) -> Search<'a> {
        Search {
            step,
            buffers,
            found: false,
            done: false,
            fragments: Vec::new(),
            not_alike: String::new(),
            why_not: String::new(),
        }
    }

    /// The statements with every nest that is the instruction replaced by it.
    fn statements(&mut self, stmts: &[Stmt], place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
        rewrite(stmts, place, &mut |stmt, place| {
            if !self.step.means(stmt) {
                return Ok(None);
            }
            self.found = true;
            Ok(self.instruction(stmt, place).map(|(guard, instruction)| {
                let body = vec![Stmt::Instruction(instruction)];
                match guard == Cond::TRUE {
                    true => body,
                    false => {
                        vec![Stmt::If(If { cond: guard, then: body.into(), otherwise: Body::default() })]
                    }
                }
            }))
        })
    }

    /// The instruction that a nest is, and the condition under which it is executed.
    fn instruction(&mut self, stmt: &Stmt, place: &Place) -> Option<(Cond, Instruction)> {
        let record = self.step.record;
        let alike = Nest::of(stmt, self.buffers).and_then(|nest| {
            let pattern = Pattern::for_nest(record, &nest).ok_or("no nest of these loops is what it does")?;
            pattern.check_loops(&nest).map(|()| (nest, pattern))
        });
        let (nest, pattern) = alike.map_err(|because| note(&mut self.not_alike, because)).ok()?;
        let instruction = self.step.instruction(&nest, &pattern, place, self.buffers);
        let instruction = instruction.map_err(|because| note(&mut self.why_not, because)).ok()?;
        for wanted in self.step.fragments(&instruction) {
            if !self.fragments.contains(&wanted) {
                self.fragments.push(wanted);
            }
        }
        self.done = true;
        Some((nest.guard, instruction))
    }
}

impl Tensorize {
    fn keep_in_fragments(
        &self,
        program: Program,
        buffer: &Sym,
        fragment: &'static Fragment,
    ) -> Result<Program, Diagnosis> {
        let buffers = program.buffers();
        let Some(whole) = buffers.get(buffer) else { return Ok(program) };
        if let Some(present) = whole.fragment {
            if present == fragment {
                return Ok(program);
            }
            return Err(self.refuse(format!("`{buffer}` is kept in fragments of `{}` already", present.name)));
        }
        let tiling = Tiling::of(whole, fragment).map_err(|because| self.refuse(because))?;
        let place = Place::of(&program);
        let owned = own_nests(&program.body, &tiling, &buffers, &place)?;
        let body = retile(&owned, &tiling, &buffers, &place.facts());
        Ok(Program { body, ..program.clone() })
    }
}

/// Keeps the first of several reasons.
fn note(first: &mut String, because: String) {
    if first.is_empty() {
        *first = because;
    }
}

/// Whether a window is what an operand must be; why not.
fn fits(window: &Window, buffer: &Buffer, wanted: &WindowSpec, facts: &Facts) -> Result<(), String> {
    if let Some(dtype) = wanted.dtype
        && dtype != buffer.dtype
    {
        return Err(format!("its elements are {}, not {dtype}", buffer.dtype));
    }
    let memory = match wanted.space {
        None => buffer.is_global(),
        Some(space) => buffer.space == space,
    };
    if !memory {
        let name = match wanted.space {
            Some(Space::Shared) => "shared memory",
            Some(Space::Reg) => "registers",
            _ => "device memory",
        };
        return Err(format!("it is not in {name}"));
    }
    match wanted.place {
        Where::Fragment(name)
            if Fragment::by_name(name).is_some_and(|f| f.columns.is_none())
                && window.dims.last() != Some(&Span::All) =>
        {
            Err("the instruction takes all of its columns".into())
        }
        Where::Fragment(_) => in_tile(window, buffer, wanted, None, facts),
        Where::FragmentColumns(_, columns) => in_tile(window, buffer, wanted, Some(columns), facts),
        Where::Rows(bytes) | Where::Aligned(bytes) => pieces(window, buffer, bytes, facts),
        Where::Swizzle128 => swizzle(window, buffer, &index::Facts::new())
            .map_or(Ok(()), |d| Err(format!("{}; {}", d.what, d.because))),
        Where::Element => Ok(()),
        Where::Lanes | Where::TensorMap | Where::Run => {
            Err("its place cannot be checked by this step".into())
        }
    }
}

/// Whether a window is the last two dimensions of its buffer and starts where a tile does, or every `columns` of one.
fn in_tile(
    window: &Window,
    buffer: &Buffer,
    wanted: &WindowSpec,
    columns: Option<i64>,
    facts: &Facts,
) -> Result<(), String> {
    let [lead @ .., row, column] = &window.dims[..] else {
        return Err("it has fewer than two dimensions".into());
    };
    if !lead.iter().all(|d| matches!(d, Span::At(_))) || buffer.dims.len() < 2 {
        return Err("the tile is not its last two dimensions".into());
    }
    let fixed = |at: usize| if let Some(Extent::Fixed(n)) = wanted.shape.get(at) { *n } else { 1 };
    for (span, multiple) in [(row, fixed(0)), (column, columns.unwrap_or(fixed(1)))] {
        match span {
            Span::All => {}
            Span::Slice(start, _) if facts.is_multiple(start, multiple) => {}
            _ => return Err(format!("the tile does not start at a multiple of {multiple}")),
        }
    }
    Ok(())
}

/// Whether the rows of a window are made of pieces of so many bytes, each contiguous and aligned.
fn pieces(window: &Window, buffer: &Buffer, bytes: i64, facts: &Facts) -> Result<(), String> {
    let count = bytes / buffer.dtype.bytes();
    let Some((Span::Slice(..) | Span::All, rows)) = window.dims.split_last() else {
        return Err("its rows are not along the last dimension".into());
    };
    let length = match (window.dims.last(), buffer.dims.last()) {
        (Some(Span::Slice(_, n)), _) => *n,
        (_, Some(dim)) => dim.extent.as_constant().ok_or("its rows are of no known length")?,
        _ => return Err("it has no dimensions".into()),
    };
    if count < 1 || length % count != 0 {
        return Err(format!("its rows are not made of pieces of {bytes} bytes"));
    }
    if count == 1 {
        // Every element lies at a multiple of its own length.
        return Ok(());
    }
    let start = window.start();
    let element = Sym::new("e");
    let mut inside = facts.clone();
    let mut index: Vec<Index> = Vec::new();
    for (first, span) in start.iter().zip(rows) {
        let row = Sym::new("r");
        index.push(match span {
            Span::At(_) => first.clone(),
            Span::Slice(_, n) => {
                inside.enter_range(&row, &(*n).into());
                first + &Index::var(&row)
            }
            Span::All => {
                inside.enter_range(&row, &buffer.dims[index.len()].extent);
                Index::var(&row)
            }
        });
    }
    let neighbours = Neighbours { var: &element, count, facts: &inside };
    let last = start.last().cloned().unwrap_or_default();
    (0..length / count).try_for_each(|piece| {
        let first = &last.offset(piece * count) + &Index::var(&element);
        let index: Vec<Index> = index.iter().cloned().chain([first]).collect();
        neighbours.check(&index, buffer)
    })
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn run(spec: &str, steps: &str) -> Result<String, String> {
        let spec = parse::program(spec).expect("the specification reads");
        Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    /// A block of two warps multiplies 32 x 16 tiles, each warp 16 x 16.
    const WARP_TILE: &str = "program p(x: in bf16[32, 16], y: in bf16[16, 16], z: out f32[32, 16]) {
      for g in block.x(1) {
        alloc acc: f32[2@32, 16, 16] reg
        alloc xs: bf16[32, 16] shared
        alloc ys: bf16[16, 16] shared
        for w in threads(2@32) { for i in 0..16, j in 0..16 { acc[w, i, j] = 0 } }
        for t in threads(32@2) { for u in unroll 0..16 { xs[t, u] = x[t, u] } }
        for t in threads(16@4) { for u in unroll 0..16 { ys[t, u] = y[t, u] } }
        for w in threads(2@32) {
          alloc a: bf16[16, 16] reg
          alloc b: bf16[16, 16] reg
          for i in 0..16, k in 0..16 { a[i, k] = xs[16*w + i, k] }
          for k in 0..16, j in 0..16 { b[k, j] = ys[k, j] }
          for h in 0..2, i in 0..16, j in 0..8, k in 0..16 {
            acc[w, i, 8*h + j] += f32(b[k, 8*h + j]) * f32(a[i, k])
          }
        }
        for w in threads(2@32) { for i in 0..16, j in 0..16 { z[16*w + i, j] = acc[w, i, j] } }
      }
    }";

    #[test]
    fn a_warp_tile_becomes_matrix_instructions() {
        let text = run(WARP_TILE, "tensorize(acc.i, mma_m16n8k16_bf16)").unwrap();
        for wanted in [
            "alloc acc: f32[2@32, 2, 16, 8] reg frag D16x8",
            "for jo in 0..2 {\n        for (i, j) in own acc[w, jo, :, :] {\n          acc[w, jo, i, j] = 0",
            "for (i, k) in own a[:, :] {\n        a[i, k] = xs[16*w + i, k]",
            "for h in 0..2 {\n        mma_m16n8k16_bf16(acc[w, h, :, :], a[:, :], b[:, 8*h +: 8])",
            "for (i, j) in own acc[w, jo, :, :] {\n          z[16*w + i, 8*jo + j] = acc[w, jo, i, j]",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }

    #[test]
    fn elements_at_one_place_in_several_tiles_have_one_owner() {
        let with = |sum: &str| {
            let text = WARP_TILE
                .replace("f32[2@32, 16, 16] reg", "f32[2@32, 2, 16, 16] reg")
                .replace(
                    "{ for i in 0..16, j in 0..16 { acc[w, i, j] = 0",
                    "{ for h in 0..2, i in 0..16, j in 0..16 { acc[w, h, i, j] = 0",
                )
                .replace(
                    "for h in 0..2, i in 0..16, j in 0..8, k",
                    "for h in 0..2, v in 0..2, i in 0..16, j in 0..8, k",
                )
                .replace(
                    "acc[w, i, 8*h + j] += f32(b[k, 8*h + j])",
                    "acc[w, v, i, 8*h + j] += f32(b[k, 8*h + j])",
                )
                .replace("= acc[w, i, j] }", &format!("= {sum} }}"));
            run(&text, "tensorize(acc.i, mma_m16n8k16_bf16)").unwrap()
        };
        let text = with("acc[w, 0, i, j] + acc[w, 1, i, j]");
        let wanted = "for (i, j) in own acc[w, 0, jo, :, :] {
          z[16*w + i, 8*jo + j] = acc[w, 0, jo, i, j] + acc[w, 1, jo, i, j]";
        assert!(text.contains(wanted), "{wanted}\n{text}");
        let text = with("acc[w, 0, i, j] + acc[w, 1, i, 15 - j]");
        assert!(!text.contains("own acc[w, 0"), "other places have other owners\n{text}");
    }

    #[test]
    fn the_two_parts_of_a_number_have_one_owner() {
        let with = |store: &str| {
            let text = WARP_TILE
                .replace("z: out f32[32, 16]", "z: out c64[32, 8]")
                .replace("for i in 0..16, j in 0..16 { z[16*w + i, j] = acc[w, i, j] }", store);
            run(&text, "tensorize(acc.i, mma_m16n8k16_bf16)").unwrap()
        };
        let text = with(
            "for i in 0..16, j in 0..8 { z[16*w + i, j] = c64(acc[w, i, 2*j]) + times_i(c64(acc[w, i, 2*j + 1])) }",
        );
        let wanted = "for (i, j by 2) in own acc[w, jo, :, :] {
          z[16*w + i, 4*jo + j/2] = c64(acc[w, jo, i, j]) + times_i(c64(acc[w, jo, i, j + 1]))";
        assert!(text.contains(wanted), "{wanted}\n{text}");
        // Those of two numbers, and parts of one from an odd place on, have several.
        for store in [
            "for i in 0..16, j in 0..8 { z[16*w + i, j] = c64(acc[w, i, 2*j]) + c64(acc[w, i, 14 - 2*j]) }",
            "for i in 0..16, j in 0..7 { z[16*w + i, j] = c64(acc[w, i, 2*j + 1]) + c64(acc[w, i, 2*j + 2]) }",
        ] {
            let text = with(store);
            assert!(!text.contains("by 2"), "{store}\n{text}");
        }
    }

    #[test]
    fn loads_and_products_may_be_tensorized_in_any_order() {
        let loads = "tensorize(a.i, ldmatrix_x4)\ntensorize(b.k, ldmatrix_x4_trans)\n";
        let product = "tensorize(acc.i, mma_m16n8k16_bf16)\n";
        let first = run(WARP_TILE, &format!("{loads}{product}")).unwrap();
        assert_eq!(first, run(WARP_TILE, &format!("{product}{loads}")).unwrap());
        assert!(first.contains("ldmatrix_x4(a[:, :], xs[16*w +: 16, :])"), "{first}");
        assert!(first.contains("ldmatrix_x4_trans(b[:, :], ys[:, :])"), "{first}");
    }

    #[test]
    fn what_is_another_thing_is_refused() {
        for (step, because) in [
            ("tensorize(acc.h, mma_m16n8k16_bf16)", "2, 8, 16, 16 iterations"),
            ("tensorize(acc.i, mma_m16n8k16_f16)", "its elements are bf16, not f16"),
            ("tensorize(a.i, mma_m16n8k16_bf16)", "its loops have 16, 16 iterations"),
            ("tensorize(xs.u, cp_async16)", "`xs.u` is not `cp_async16`"),
            ("tensorize(a.k, ldmatrix_x4)", "16 iterations"),
            ("tensorize(a.i, tma_load_sw128)", "via=tma"),
            ("tensorize(a.i, wgmma_bf16_sw128)", "no nest of these loops is what it does"),
            ("tensorize(a.i, ldmatrix_x5)", "there is no instruction `ldmatrix_x5`"),
            ("tensorize(q.i, ldmatrix_x4)", "nothing computes a buffer named `q`"),
            (
                "tensorize(a.i, ldmatrix_x4)\ntensorize(b.k, ldmatrix_x4)\ntensorize(acc.i, mma_m16n8k16_bf16)",
                "`b` is kept in fragments of `A16x16` already",
            ),
        ] {
            let refusal = run(WARP_TILE, step).unwrap_err();
            assert!(refusal.contains(because), "{step}: {refusal}");
        }
    }

    #[test]
    fn the_condition_of_a_load_becomes_an_operand() {
        let copy = |load: &str| {
            format!(
                "program p(M: size, N: size, x: in f32[M, N; ldx]) assume ldx%4 == 0 {{
                   for b in block.x(M) {{
                     alloc s: f32[128, 4] shared
                     for t in threads(128@1) {{ for e in 0..4 {{ s[t, e] = {load} }} }}
                   }}
                 }}"
            )
        };
        let step = "tensorize(s.e, cp_async16_f32)";
        for (load, valid) in [
            ("4*t + e < N ? x[b, 4*t + e] : 0", "max(0, min(4, N - 4*t))"),
            ("4*t + e < N && t < 7 ? x[b, 4*t + e] : 0", "t < 7 ? max(0, min(4, N - 4*t)) : 0"),
            ("b < M ? x[b, 4*t + e] : 0", "4"),
            // Of pieces that are there as a whole or not at all, it is asked which.
            ("4*t + e < 60 ? x[b, 4*t + e] : 0", "0 < -4*t + 60 ? 4 : 0"),
            ("4*t + e < 62 ? x[b, 4*t + e] : 0", "max(0, min(4, -4*t + 62))"),
        ] {
            let text = run(&copy(load), step).unwrap();
            let wanted = format!("cp_async16_f32(s[t, :], x[b, 4*t +: 4], {valid})");
            assert!(text.contains(&wanted), "{wanted}\n{text}");
        }
        for (load, because) in [
            ("4*t + e < N ? x[b, 4*t + e] : 1", "another value"),
            ("4*t < N + e ? x[b, 4*t + e] : 0", "not that of the first elements"),
            ("4*t + e < N ? x[b, 4*t + e + 1] : 0", "multiple of 4"),
            ("4*t + e < N ? x[e, t] : 0", "`x` cannot be its operand `a`"),
        ] {
            let refusal = run(&copy(load), step).unwrap_err();
            assert!(refusal.contains(because), "{load}: {refusal}");
        }
    }

    #[test]
    fn a_copy_moves_no_more_than_the_start_of_its_tensor_allows() {
        let copy = |piece: i64, dtype: &str, align: i64| {
            let spec = format!(
                "program p(x: in {dtype}[128] align {align}) {{
                   for b in block.x(1) {{
                     alloc s: {dtype}[128] shared
                     for t in threads({threads}@1) {{ for e in 0..{piece} {{ s[{piece}*t + e] = x[{piece}*t + e] }} }}
                   }}
                 }}",
                threads = 128 / piece
            );
            let bytes = if dtype == "f64" { 8 * piece } else { 4 * piece };
            run(&spec, &format!("tensorize(s.e, cp_async{bytes}_{dtype})"))
        };
        let refusal = copy(4, "f32", 8).unwrap_err();
        assert!(refusal.contains("`x` starts at a multiple of 8 bytes, not of 16"), "{refusal}");
        assert!(copy(2, "f32", 4).is_err() && copy(2, "f64", 8).is_err());
        for (piece, dtype, align) in [(4, "f32", 16), (2, "f32", 8), (1, "f32", 4), (1, "f64", 8)] {
            copy(piece, dtype, align).unwrap_or_else(|e| panic!("{e}"));
        }
    }

    #[test]
    fn a_copy_of_one_element_needs_no_alignment_and_no_loop() {
        let program = "program p(M: size, x: in c64[M, 5; ldx]) {
            for b in block.x(M) {
              alloc s: c64[8, 5] shared
              for t in threads(40@1) { for e in 0..1 { s[t/5, t%5 + e] = b + t/5 < M ? x[b + t/5, t%5 + e] : 0 } }
            }
          }";
        let text = run(program, "tensorize(s.e, cp_async8_c64)").unwrap();
        assert!(
            text.contains("cp_async8_c64(s[t/5, t%5 +: 1], x[b + t/5, t%5 +: 1], b + t/5 < M ? 1 : 0)"),
            "{text}"
        );
    }

    #[test]
    fn a_condition_that_is_the_same_for_all_elements_stands_around_the_instruction() {
        let program = |cond: &str| {
            format!(
                "program p(x: in f64[48, 2]) {{
                   for b in block.x(1) {{
                     alloc s: f64[48, 2] shared
                     for t in threads(64@1) {{ for e in 0..2 {{ if {cond} {{ s[t, e] = x[t, e] }} }} }}
                   }}
                 }}"
            )
        };
        let text = run(&program("t < 48"), "tensorize(s.e, cp_async16_f64)").unwrap();
        assert!(text.contains("if t < 48 {\n        cp_async16_f64(s[t, :], x[t, :], 2)"), "{text}");
        let refusal = run(&program("t + e < 48"), "tensorize(s.e, cp_async16_f64)").unwrap_err();
        assert!(refusal.contains("all or nothing"), "{refusal}");
    }
}
