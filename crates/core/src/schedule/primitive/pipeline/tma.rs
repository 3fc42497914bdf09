//! Rings filled by the tensor memory accelerator, with a role that fills and a role that computes.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(K: size, A: in bf16[64, K; lda], B: in bf16[8, K; ldb], C: out f32[64, 8])
//!   assume lda%8 == 0, ldb%8 == 0
//! {
//!   for b in block.x(1) {
//!     alloc As: bf16[64, 64] shared layout (r, c) => 64*r + 8*xor(c/8, r%8) + c%8
//!     alloc Bs: bf16[8, 64] shared layout (r, c) => 64*r + 8*xor(c/8, r%8) + c%8
//!     alloc acc: f32[1@128, 64, 8] reg frag D64xN
//!     for w in threads(1@128) { for (i, j) in own acc[w, :, :] { acc[w, i, j] = 0 } }
//!     for k in 0..ceil(K, 64) {
//!       for r in 0..64, c in 0..64 { As[r, c] = 64*k + c < K ? A[r, 64*k + c] : 0 }
//!       for r in 0..8, c in 0..64 { Bs[r, c] = 64*k + c < K ? B[r, 64*k + c] : 0 }
//!       for w in threads(1@128) {
//!         for s in 0..4 { wgmma_bf16_sw128(acc[w, :, :], As[:, 16*s +: 16], Bs[:, 16*s +: 16]) }
//!       }
//!     }
//!     for w in threads(1@128) { for (i, j) in own acc[w, :, :] { C[i, j] = acc[w, i, j] } }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "pipeline(acc.k, 3, via=tma)").unwrap();
//! assert!(after.program().to_string().contains("\
//!     for k in 0..ceil(K, 64) {
//!       on producer {
//!         for e in threads(1@1) {
//!           if 3 <= k {
//!             await(empty[k - 3])
//!           }
//!           tma_load_sw128(As[k%3, :, :], A[0 +: 64, 64*k +: 64]) -> full[k]
//!           tma_load_sw128(Bs[k%3, :, :], B[0 +: 8, 64*k +: 64]) -> full[k]
//!           arrive(full[k], tx 9216)
//!         }
//!       }
//!       on consumer {
//!         for w in threads(1@128) {
//!           await(full[k])
//!           wgmma.fence
//!           for s in 0..4 {
//!             wgmma_bf16_sw128(acc[w, :, :], As[k%3, :, 16*s +: 16], Bs[k%3, :, 16*s +: 16])
//!           }
//!           wgmma.commit
//!           wgmma.wait 1
//!           if 0 < k {
//!             for e in threads(1@1) {
//!               arrive(empty[k - 1])
//!             }
//!           }
//!         }
//!       }
//!     }
//! "), "{}", after.program());
//! ```
//!
//! A slot is given back one step late, because the group of products that reads it may be under way until then.
//!
//! A fill must copy a box of a matrix and give 0 where the box hangs over, as the hardware does; its rows must start at
//! multiples of 16 bytes. Where that is not known, as in the general version beside a specialised one, the loop stays
//! in step: all threads copy, meet, and multiply.

use super::fill::Fill;
use super::{Pipeline, SLOT_ALIGNMENT, peers, ring_layout};
use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::instr::{self, Completion, Place as Where};
use crate::ir::validate::swizzle;
use crate::ir::{
    Body, Buffer, Dim, For, If, Instruction, Mode, Operand, Program, Range, Ring, Role, Span, Stmt, Sync,
    Window, walk,
};
use crate::schedule::facts::Facts;
use crate::schedule::rewrite::{Place, Stages, head};
use crate::sym::Sym;

use super::ring::in_slot;
use super::roles::{Roles, first, in_blocks};

/// The threads of a warpgroup, by which wgmma and `setmaxnreg` are executed.
const WARPGROUP: i64 = 128;
/// Registers of a thread that only issues copies, and of one that multiplies, by the number of warpgroups that do: a
/// multiprocessor has 65536, and `setmaxnreg` takes multiples of 8 up to 232 without a warning of the assembler.
const REGISTERS: [(i64, i64); 3] = [(40, 232), (40, 232), (32, 160)];

/// How many loops are given to the accelerator, and why one is not.
#[derive(Default)]
struct Found {
    given: usize,
    why_not: Option<String>,
}

/// The program with the loop pipelined in every block that has it.
///
/// # Errors
/// Why no copy of the loop can be given to the accelerator.
pub(super) fn apply(step: &Pipeline, program: &Program) -> Result<Program, Diagnosis> {
    if step.stages < 2 {
        return Err(step.refuse("a ring needs two slots at least"));
    }
    let mut found = Found::default();
    let out = in_blocks(step, program, &mut |stmts, at, place| block(step, stmts, at, place, &mut found))?;
    match (found.given, found.why_not) {
        (0, why_not) => Err(step
            .refuse(why_not.unwrap_or_default())
            .instead("specialize row strides to multiples of 16 bytes, and keep tiles as they are stored")),
        _ => Ok(out),
    }
}

/// The statements of a block with the loop at position `at` pipelined.
fn block(
    step: &Pipeline,
    stmts: &[Stmt],
    at: usize,
    place: &Place,
    found: &mut Found,
) -> Result<Vec<Stmt>, Diagnosis> {
    let Stmt::For(l) = &stmts[at] else { return Err(step.refuse("it is no loop")) };
    if l.mode != Mode::Serial || l.counting.is_some() {
        return Err(step.refuse("its iterations do not run one after another, or are counted already"));
    }
    let stages = Stages::of(l, &peers(place.program, &step.target), place.program)?;
    let (counted, extent, stages) = step.counted(l, &stages)?;
    let consumers = consumers(&stages.uses).map_err(|because| {
        step.refuse(because)
            .instead("tensorize the products to wgmma first, or use via=shared or via=cp_async")
    })?;
    let mut facts = place.facts();
    facts.enter_range(&counted.var, &extent);
    match copies(&stages, place, &facts) {
        Ok(copies) => {
            found.given += 1;
            let rings = Rings { step, l: &counted, stages: &stages, copies, consumers };
            rings.block(stmts, at)
        }
        Err(because) => {
            found.why_not.get_or_insert(because);
            let mut out = stmts.to_vec();
            out[at] = in_step(l, &Stages::of(l, &peers(place.program, &step.target), place.program)?);
            Ok(out)
        }
    }
}

/// The number of warpgroups that multiply, if the uses are one nest over warpgroups that does nothing else.
fn consumers(uses: &[Stmt]) -> Result<i64, String> {
    let [Stmt::For(nest)] = uses else { return Err("its tiles are not used by one nest".into()) };
    let Some((count, WARPGROUP)) = nest.threads() else {
        return Err("its tiles are not used by warpgroups".into());
    };
    let mut only_products = true;
    walk::for_each(&nest.body, &mut |s| {
        only_products &= match s {
            Stmt::Instruction(i) => {
                instr::by_name(&i.name).is_some_and(|r| r.completion == Completion::Wgmma)
            }
            Stmt::For(l) => matches!(l.mode, Mode::Serial | Mode::Unroll),
            Stmt::Let(..) => true,
            _ => false,
        };
    });
    if !only_products {
        return Err("its tiles are used by more than products of warpgroups".into());
    }
    if count > REGISTERS.len() as i64 {
        return Err(format!("{count} warpgroups do not leave each thread the registers it needs"));
    }
    Ok(count)
}

/// A fill as one bulk copy.
struct Copy {
    instruction: Instruction,
    bytes: i64,
}

/// Every fill as a bulk copy; why one is none.
fn copies(stages: &Stages, place: &Place, facts: &Facts) -> Result<Vec<Copy>, String> {
    stages.fills.iter().map(|fill| copy(&Fill::of(fill, place, facts)?, facts)).collect()
}

/// The bulk copy of a box to a tile.
fn copy(fill: &Fill, facts: &Facts) -> Result<Copy, String> {
    let tile = &fill.tile;
    let extents = tile.constant_extents().ok_or("the extents of a tile are not constants")?;
    let from = fill.window(&extents)?;
    let record = fill.load(&extents, Where::Swizzle128)?;
    let to = Window { buffer: tile.sym.clone(), dims: vec![Span::All; 2] };
    if let Some(fault) = swizzle(&to, tile, &crate::index::Facts::new()) {
        return Err(format!("{}; {}", fault.what, fault.because));
    }
    fill.rows_at_pieces(facts)?;
    let operands = vec![Operand::Window(to), Operand::Window(from)];
    let bytes = extents.iter().product::<i64>() * tile.dtype.bytes();
    Ok(Copy { instruction: Instruction { name: record.name.into(), operands, signal: None }, bytes })
}

/// The loop with its products waited for in every step.
fn in_step(l: &For, stages: &Stages) -> Stmt {
    let mut body: Vec<Stmt> = l.body.iter().filter(|s| matches!(s, Stmt::Alloc(_))).cloned().collect();
    body.extend(stages.fills.iter().cloned());
    body.extend([Sync::FenceAsync, Sync::Barrier].map(Stmt::Sync));
    let multiply = |nest: &For| {
        let mut inner = vec![Stmt::Sync(Sync::WgmmaFence)];
        inner.extend(nest.body.iter().cloned());
        inner.extend([Sync::WgmmaCommit, Sync::WgmmaWait(0)].map(Stmt::Sync));
        Stmt::For(For { body: inner.into(), ..head(nest) })
    };
    let uses = stages.uses.iter().map(|s| if let Stmt::For(nest) = s { multiply(nest) } else { s.clone() });
    body.extend(uses.filter(|s| !matches!(s, Stmt::Alloc(_))));
    Stmt::For(For { body: body.into(), ..head(l) })
}

/// What is needed to write a block with its rings.
struct Rings<'a> {
    step: &'a Pipeline,
    /// The loop, counted from 0 by 1.
    l: &'a For,
    stages: &'a Stages,
    copies: Vec<Copy>,
    /// Warpgroups that multiply.
    consumers: i64,
}

impl Rings<'_> {
    fn block(&self, stmts: &[Stmt], at: usize) -> Result<Vec<Stmt>, Diagnosis> {
        let ring = |name: &str, count: i64| Ring { sym: Sym::new(name), depth: self.step.stages, count };
        let (full, empty) = (ring("full", 1), ring("empty", self.consumers));
        let role = |name: &str, lo: i64, hi: i64, registers: i64| Role {
            sym: Sym::new(name),
            lo,
            hi,
            registers: Some(registers),
        };
        let last = WARPGROUP * (1 + self.consumers);
        let (few, many) = REGISTERS[self.consumers as usize - 1];
        let roles = Roles {
            step: self.step,
            l: self.l,
            producer: role("producer", 0, WARPGROUP, few),
            consumer: role("consumer", WARPGROUP, last, many),
            full: &full,
            empty: &empty,
        };
        let k = Index::var(&self.l.var);
        let copies = self.copies.iter().map(|c| {
            let signal = Some((full.sym.clone(), k.clone()));
            Stmt::Instruction(Instruction { signal, ..c.instruction.clone() })
        });
        let copies = in_slot(copies.collect(), &self.rings(), &k.rem(self.step.stages));
        let bytes = self.copies.iter().map(|c| c.bytes).sum::<i64>();
        let steps = [roles.produce(1, copies, bytes), self.consume(&full, &empty)];
        roles.block(stmts, at, steps, &|buffer| self.in_slots(buffer), |after| self.finish(after))
    }

    /// A buffer of the block: staged ones become rings.
    fn in_slots(&self, mut buffer: Buffer) -> Buffer {
        if self.stages.staged.iter().any(|b| b.sym == buffer.sym) {
            buffer.layout = ring_layout(&buffer, SLOT_ALIGNMENT);
            buffer.dims.insert(0, Dim::new(self.step.stages));
        }
        buffer
    }

    fn consume(&self, full: &Ring, empty: &Ring) -> Vec<Stmt> {
        let k = Index::var(&self.l.var);
        let uses = in_slot(self.stages.uses.clone(), &self.rings(), &k.rem(self.step.stages));
        let in_group = |stmt: Stmt| {
            let Stmt::For(nest) = stmt else { return stmt };
            let mut body = vec![
                Stmt::Await { ring: full.sym.clone(), ordinal: k.clone() },
                Stmt::Sync(Sync::WgmmaFence),
            ];
            body.extend(nest.body.iter().cloned());
            body.extend([Sync::WgmmaCommit, Sync::WgmmaWait(1)].map(Stmt::Sync));
            let back = Stmt::Arrive { ring: empty.sym.clone(), ordinal: k.offset(-1), bytes: None };
            body.push(Stmt::If(If {
                cond: Cond::lt(0.into(), k.clone()),
                then: vec![first("e", 1, vec![back])].into(),
                otherwise: Body::default(),
            }));
            Stmt::For(For { body: body.into(), ..head(&nest) })
        };
        uses.into_iter().map(in_group).collect()
    }

    /// What follows the loop, once the last products are complete.
    fn finish(&self, mut after: Vec<Stmt>) -> Vec<Stmt> {
        let wait = Stmt::Sync(Sync::WgmmaWait(0));
        if let Some(Stmt::For(nest)) = after.first_mut()
            && nest.threads() == Some((self.consumers, WARPGROUP))
        {
            nest.body.insert(0, wait);
            return after;
        }
        let w = Sym::new("w");
        let mode = Mode::Threads { pitch: WARPGROUP };
        after.insert(0, For::with_mode(&w, mode, Range::upto(self.consumers), vec![wait]));
        after
    }

    fn rings(&self) -> Vec<Sym> {
        self.stages.staged.iter().map(|b| b.sym.clone()).collect()
    }
}
