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
//! tiles have one owner, so such a nest may touch them all, by wide accesses too, which stay as they are inside it; where a fragment gives neighbours in a row to one thread, a nest
//! over pairs of them (`acc[i, 2*j]` and `acc[i, 2*j + 1]`) becomes `for (i, j by 2) in own`.
//!
//! With `omit=unread` an instruction that updates a tile is executed only where some element of the tile may pass the conditions under
//! which it is read (`tensorize/unread.rs`): warps whose tiles stand over the end of a matrix leave their time to others.
//!
//! A copy of the loop that the instruction does not fit, such as the general version beside a
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

mod unread;

pub(super) const USAGE: &str = "tensorize(label.loop, instruction, omit=unread)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Tensorize {
    /// The outermost loop of the nest.
    pub target: LoopRef,
    /// The instruction.
    pub record: &'static Record,
    /// Whether it is left out wherever nobody reads what it updates.
    pub omit: bool,
}

impl Tensorize {
    pub(super) fn read(call: &Call) -> Result<Tensorize, Diagnosis> {
        let (target, name) = (call.loop_at(0)?, call.word_at(1)?);
        let record = instr::by_name(name).ok_or_else(|| {
            let known: Vec<_> = instr::all().map(|r| r.name).collect();
            Diagnosis::new(format!("there is no instruction `{name}`"))
                .instead(format!("the instructions are {}", known.join(", ")))
        })?;
        let omit = match call.option_of("omit") {
            None => false,
            Some("unread") => true,
            Some(_) => return Err(call.wrong("`omit` must be unread")),
        };
        Ok(Tensorize { target, record, omit })
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
        let call = Call::new("tensorize").target(&self.target).word(self.record.name);
        if self.omit { call.option("omit", "unread") } else { call }
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
        let Search { found, fragments, updated, not_alike, why_not, done, .. } = search;
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
        if self.omit { unread::omitted(&after, self.record, &updated) } else { Ok(after) }
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
    /// What the instructions update.
    updated: Vec<Sym>,
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
            updated: Vec::new(),
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
        if let Some(window) = unread::updated(&instruction, record)
            && !self.updated.contains(&window.buffer)
        {
            self.updated.push(window.buffer.clone());
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
        Where::Lanes | Where::TensorMap | Where::Run | Where::Box => {
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
mod tests;
