//! Rings filled by bulk copies: one warp asks for a whole run of memory at a time, and a barrier in shared memory is told
//! when its bytes are there.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[32*n], y: out f32[32]) {
//!   for b in block.x(1) {
//!     alloc s: f32[32] shared
//!     alloc acc: f32[32@1] reg
//!     for t in threads(32@1) { acc[t] = 0 }
//!     for k in 0..n {
//!       for e in 0..32 { s[e] = 32*k + e < 32*n ? x[32*k + e] : 0 }
//!       for t in threads(32@1) { acc[t] += s[31 - t] }
//!     }
//!     for t in threads(32@1) { y[t] = acc[t] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "pipeline(acc.k, 2, via=bulk)").unwrap();
//! assert!(after.program().to_string().contains("\
//!     for k in 0..n {
//!       fence.async
//!       barrier
//!       if k + 1 < n {
//!         for w in threads(1@32) {
//!           bulk_copy_f32(s[(k + 1)%2, :], x[32*k + 32 +: 32], 32) -> full[k + 1]
//!           for e in threads(1@1) {
//!             arrive(full[k + 1], tx 128)
//!           }
//!         }
//!       }
//!       await(full[k])
//!       for t in threads(32@1) {
//!         acc[t] += s[k%2, -t + 31]
//!       }
//!     }
//! "), "{}", after.program());
//! ```
//!
//! Beside asynchronous copies of 16 bytes each, a step takes a few instructions of one warp instead of some of every
//! thread, and no registers for addresses. All threads meet before a slot is filled anew, as they do there; so no
//! role of its own is needed, and the copies of the next step are asked for before those of this one are waited for.
//!
//! With `release=warps` they do not meet: each warp gives a slot back when it has used it, to a second ring of barriers,
//! and only the warp that asks for copies waits until all have.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! # let before = parse::program("program p(n: size, x: in f32[32*n], y: out f32[32]) {
//! #   for b in block.x(1) {
//! #     alloc s: f32[32] shared
//! #     alloc acc: f32[64@1] reg
//! #     for t in threads(64@1) { acc[t] = 0 }
//! #     for k in 0..n {
//! #       for e in 0..32 { s[e] = 32*k + e < 32*n ? x[32*k + e] : 0 }
//! #       for t in threads(64@1) { acc[t] += s[31 - t/2] }
//! #     }
//! #     for t in threads(32@1) { y[t] = acc[t] }
//! #   }
//! # }").unwrap();
//! let after = Schedule::run(before, "pipeline(acc.k, 3, via=bulk, release=warps)").unwrap();
//! let text = after.program().to_string();
//! assert!(text.contains("alloc empty: mbar ring 3 count 2"), "{text}");
//! assert!(text.contains("\
//!     for k in 0..n {
//!       if k + 2 < n {
//!         for w in threads(1@32) {
//!           if 1 <= k {
//!             await(empty[k - 1])
//!           }
//!           bulk_copy_f32(s[(k + 2)%3, :], x[32*k + 64 +: 32], 32) -> full[k + 2]
//!           for e in threads(1@1) {
//!             arrive(full[k + 2], tx 128)
//!           }
//!         }
//!       }
//!       await(full[k])
//!       for t in threads(64@1) {
//!         acc[t] += s[k%3, -(t/2) + 31]
//!       }
//!       for w in threads(2@32) {
//!         fence.async
//!         barrier
//!         for e in threads(1@1) {
//!           arrive(empty[k])
//!         }
//!       }
//!     }
//! "), "{text}");
//! ```
//!
//! The barrier of a warp orders what its lanes have read before the one arrival, and the arrivals of all warps before
//! the copy. Copies go through the async proxy, which may overtake ordinary reads that wait for banks of shared memory unless a fence
//! keeps them apart (PTX ISA, "Async proxy"). The warp that asks uses slots like the others, and waits in every step for the slowest; the others go on as
//! long as what they need has been asked for and is there. How many warps there are is what the loops bound to threads
//! say when the loop is pipelined; warps without work in the loop arrive, too.
//!
//! With `release=role` a warp more does nothing but ask: the block has roles, as in `tma.rs`, and none of those that compute
//! waits for the slowest of them.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! # let before = parse::program("program p(n: size, x: in f32[32*n], y: out f32[32]) {
//! #   for b in block.x(1) {
//! #     alloc s: f32[32] shared
//! #     alloc acc: f32[64@1] reg
//! #     for t in threads(64@1) { acc[t] = 0 }
//! #     for k in 0..n {
//! #       for e in 0..32 { s[e] = 32*k + e < 32*n ? x[32*k + e] : 0 }
//! #       for t in threads(64@1) { acc[t] += s[31 - t/2] }
//! #     }
//! #     for t in threads(32@1) { y[t] = acc[t] }
//! #   }
//! # }").unwrap();
//! let after = Schedule::run(before, "pipeline(acc.k, 3, via=bulk, release=role)").unwrap();
//! let text = after.program().to_string();
//! assert!(text.contains("roles consumer 0..64, producer 64..96"), "{text}");
//! assert!(text.contains("\
//!     for k in 0..n {
//!       on producer {
//!         for w in threads(1@32) {
//!           if 3 <= k {
//!             await(empty[k - 3])
//!             barrier
//!           }
//!           bulk_copy_f32(s[k%3, :], x[32*k +: 32], 32) -> full[k]
//!           for e in threads(1@1) {
//!             arrive(full[k], tx 128)
//!           }
//!         }
//!       }
//!       on consumer {
//!         await(full[k])
//!         for t in threads(64@1) {
//!           acc[t] += s[k%3, -(t/2) + 31]
//!         }
//!         for w in threads(2@32) {
//!           fence.async
//!           barrier
//!           for e in threads(1@1) {
//!             arrive(empty[k])
//!           }
//!         }
//!       }
//!     }
//! "), "{text}");
//! ```
//!
//! A fill must copy consecutive elements of device memory to a buffer of one dimension, and give 0 for what hangs over the end. Copies begin at
//! multiples of 16 bytes; where the elements come behind others, these are copied too, and read by nobody. A buffer of two dimensions gets a copy for
//! each of its rows, between which there may be padding (`storage_align`), so that rows that are read together begin in different banks:
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[64*n], y: out f32[32]) {
//!   for b in block.x(1) {
//!     alloc s: f32[2, 32] shared layout (r, c) => 36*r + c
//!     alloc acc: f32[32@1] reg
//!     for t in threads(32@1) { acc[t] = 0 }
//!     for k in 0..n {
//!       for r in 0..2, c in 0..32 { s[r, c] = x[64*k + 32*r + c] }
//!       for t in threads(32@1) { acc[t] += s[t%2, t] }
//!     }
//!     for t in threads(32@1) { y[t] = acc[t] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "pipeline(acc.k, 2, via=bulk)").unwrap();
//! let text = after.program().to_string();
//! assert!(text.contains("alloc s: f32[2, 2, 32] shared layout (s_2, r, c) => 96*s_2 + 36*r + c"), "{text}");
//! assert!(text.contains("\
//!           for r in unroll 0..2 {
//!             bulk_copy_f32(s[(k + 1)%2, r, :], x[64*k + 32*r + 64 +: 32], 32) -> full[k + 1]
//!           }
//!           for e in threads(1@1) {
//!             arrive(full[k + 1], tx 256)
//!           }
//! "), "{text}");
//! ```
//!
//! Elements that come behind others in their 16 bytes are copied with these, and have places behind them in shared memory:
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[30*n + 3], y: out f32[32]) {
//!   for b in block.x(1) {
//!     alloc s: f32[58] shared
//!     alloc acc: f32[32@1] reg
//!     for t in threads(32@1) { acc[t] = 0 }
//!     for k in 0..ceil(n, 2) {
//!       for e in 0..58 { s[e] = 60*k + e + 3 < 30*n + 3 ? x[60*k + e + 3] : 0 }
//!       for t in threads(32@1) { acc[t] += s[t] }
//!     }
//!     for t in threads(32@1) { y[t] = acc[t] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "pipeline(acc.k, 2, via=bulk)").unwrap();
//! let text = after.program().to_string();
//! assert!(text.contains("bulk_copy_f32(s[(k + 1)%2, :], x[60*k + 60 +: 64], "), "{text}");
//! assert!(text.contains("acc[t] += s[k%2, t + 3]"), "{text}");
//! ```
//!
//! Each copy takes about 50 cycles of its multiprocessor, however short it is (bench/limits/rows_by_bulk.cu), so rows had better be long. Rows of
//! a matrix that stand apart come as a box (`boxes.rs`).

use std::cell::RefCell;

use super::boxes;
use super::fill::Fill;
use super::registers::Staging;
use super::ring::{Landing, Ring, give_back, in_slot};
use super::roles::{Roles, first, in_blocks};
use super::runs::{self, PIECE, Run};
use super::{Found, Pipeline, Release, peers};
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{self, Access, Buffer, Dim, For, Mode, Operand, Program, Role, Stmt, walk};
use crate::schedule::facts::Facts;
use crate::schedule::rewrite::{Place, Stages, at_loops, map_accesses};
use crate::sym::Sym;

/// The threads that ask for copies, and that give a slot back, together.
const WARP: i64 = 32;

/// The program with the loop pipelined wherever it is.
///
/// # Errors
/// Why a copy of the loop cannot be.
pub(super) fn apply(step: &Pipeline, program: &Program) -> Result<Program, Diagnosis> {
    let found = RefCell::new(Found::default());
    let out = if step.release == Release::Role {
        in_blocks(step, program, &mut |stmts, at, place| {
            in_roles(step, stmts, at, place, &mut found.borrow_mut())
        })?
    } else {
        at_loops(program, &step.target, &mut |l, place| rewrite(step, &l, place, &mut found.borrow_mut()))?
    };
    Ok(found.into_inner().with_slots(out))
}

/// A loop in whose steps runs are copied.
pub(super) struct Copied {
    /// The loop, counted from 0 by 1, and how many iterations it has.
    pub counted: For,
    pub extent: Index,
    /// Its statements for these.
    pub moved: Stages,
    pub rings: Vec<Sym>,
    /// The copies of a step, that report to its phase of the ring `full`, and their bytes.
    pub copies: Vec<Stmt>,
    pub bytes: i64,
}

impl Copied {
    /// What is copied in the steps of a loop.
    ///
    /// # Errors
    /// Why a fill is no bulk copy.
    pub fn of(
        step: &Pipeline,
        l: &For,
        full: &Sym,
        place: &Place,
        found: &mut Found,
    ) -> Result<Copied, Diagnosis> {
        if l.mode != Mode::Serial || l.counting.is_some() {
            return Err(step.refuse("its iterations do not run one after another, or are counted already"));
        }
        let stages = Stages::of(l, &peers(place.program, &step.target), place.program)?;
        step.check(l, &stages, step.via, place)?;
        let rings: Vec<Sym> = stages.staged.iter().map(|b| b.sym.clone()).collect();
        found.ring(&rings, step.stages);
        let (counted, extent, moved) = step.counted(l, &stages)?;
        let moved = Stages { staged: moved.staged.iter().map(in_pieces).collect(), ..moved };
        let extents = |b: &Buffer| Some((b.sym.clone(), b.constant_extents()?.first().copied()?));
        found.longer.extend(moved.staged.iter().filter(|b| b.dims.len() == 1).filter_map(extents));
        let mut facts = place.facts();
        facts.enter_range(&counted.var, &extent);
        let (mut copies, mut bytes, mut begun_before) = (Vec::new(), 0, Vec::new());
        for stmt in &moved.fills {
            let signal = (full.clone(), Index::var(&counted.var));
            let Run { tile, copy, bytes: of_run, aligned, columns, elements, before } =
                run(stmt, signal, &moved.staged, place, &facts).map_err(|because| {
                    step.refuse(because).instead(
                        "copy dense rows as the one piece of memory that they are, promise that rows start at multiples of 16 bytes, or use via=cp_async",
                    )
                })?;
            found.wider.extend(columns.map(|columns| (tile.clone(), columns)));
            if before > 0 {
                found.longer.insert(tile.clone(), elements);
                begun_before.push((tile.clone(), before));
            }
            found.aligned.insert(tile, aligned);
            copies.push(copy);
            bytes += of_run;
        }
        let uses = behind(moved.uses, &begun_before).map_err(|because| step.refuse(because))?;
        Ok(Copied { counted, extent, moved: Stages { uses, ..moved }, rings, copies, bytes })
    }
}

/// The ring whose phases are complete when so many warps have used a slot.
fn given_back(step: &Pipeline, warps: Result<i64, String>) -> Result<ir::Ring, Diagnosis> {
    let count = warps.map_err(|because| {
        step.refuse(because).instead("bind loops to threads first, or leave `release` out")
    })?;
    Ok(ir::Ring { sym: Sym::new("empty"), depth: step.stages, count })
}

fn rewrite(step: &Pipeline, l: &For, place: &Place, found: &mut Found) -> Result<Vec<Stmt>, Diagnosis> {
    // Phases are counted from the start of the block, and a barrier there is where all its threads can wait.
    if place.outer().iter().any(|o| !matches!(o.mode, Mode::Block { .. })) {
        return Err(step
            .refuse("it stands inside another loop of the block, and its barriers count its iterations alone")
            .instead("use via=cp_async"));
    }
    let full = Sym::new("full");
    let Copied { counted, extent, moved, rings, copies, bytes } = Copied::of(step, l, &full, place, found)?;
    let empty = match step.release {
        Release::Warps => Some(given_back(step, warps(&moved.uses, place))?),
        Release::Block | Release::Role => None,
    };
    let arrive =
        Stmt::Arrive { ring: full.clone(), ordinal: Index::var(&counted.var), bytes: Some(bytes.into()) };
    let one_warp = first("w", WARP, [copies, vec![first("e", 1, vec![arrive])]].concat());
    let ring = Ring {
        l: &counted,
        extent: &extent,
        around: None,
        rings: &rings,
        slots: step.stages,
        landing: Landing::Reported { full: full.clone(), empty: empty.clone() },
    };
    let nothing = Staging { registers: Vec::new(), load: Vec::new(), store: Vec::new() };
    let full = ir::Ring { sym: full, depth: step.stages, count: 1 };
    let mut out: Vec<Stmt> = std::iter::once(full).chain(empty).map(Stmt::AllocRing).collect();
    out.extend(ring.build(Stages { fills: vec![one_warp], ..moved }, nothing, place));
    Ok(out)
}

/// The statements of a block, of which the one at this position is the loop, with a warp more that asks for the copies.
fn in_roles(
    step: &Pipeline,
    stmts: &[Stmt],
    at: usize,
    place: &Place,
    found: &mut Found,
) -> Result<Vec<Stmt>, Diagnosis> {
    let Stmt::For(l) = &stmts[at] else { return Err(step.refuse("it is no loop")) };
    let full = ir::Ring { sym: Sym::new("full"), depth: step.stages, count: 1 };
    let Copied { counted, moved, rings, copies, bytes, .. } = Copied::of(step, l, &full.sym, place, found)?;
    let empty = given_back(step, warps(&moved.uses, place))?;
    let others = WARP * empty.count;
    let role = |name: &str, lo: i64, hi: i64| Role { sym: Sym::new(name), lo, hi, registers: None };
    let roles = Roles {
        step,
        l: &counted,
        producer: role("producer", others, others + WARP),
        consumer: role("consumer", 0, others),
        full: &full,
        empty: &empty,
    };
    let k = Index::var(&counted.var);
    let in_slot = |stmts| in_slot(stmts, &rings, &k.rem(step.stages));
    let mut uses = vec![Stmt::Await { ring: full.sym.clone(), ordinal: k.clone() }];
    uses.extend(in_slot(moved.uses.clone()));
    uses.push(give_back(&empty, &k));
    // What is staged gets its slots where it is allocated, like that of other rings.
    roles.block(stmts, at, [roles.produce(WARP, in_slot(copies), bytes), uses], &|buffer| buffer, |after| {
        after
    })
}

/// The warps of the block, each of which gives a slot back once; why they are not known. A warp that has nothing to do
/// in the loop waits and arrives like the others.
fn warps(uses: &[Stmt], place: &Place) -> Result<i64, String> {
    let mut bound = false;
    walk::for_each(uses, &mut |stmt| bound |= matches!(stmt, Stmt::For(l) if l.threads().is_some()));
    match place.outer().last() {
        Some(block) if bound => Ok(ir::block_threads(&block.body) / WARP),
        _ => Err("no loop in it is bound to threads, so nobody knows how many warps give slots back".into()),
    }
}

/// A buffer that holds as many whole pieces as its elements take. What lies behind them is copied too, and read by nobody.
fn in_pieces(buffer: &Buffer) -> Buffer {
    let piece = PIECE / buffer.dtype.bytes().min(PIECE);
    let [dim] = &buffer.dims[..] else { return buffer.clone() };
    let Some(extent) = dim.extent.as_constant() else { return buffer.clone() };
    Buffer { dims: vec![Dim::new((extent + piece - 1) / piece * piece)], ..buffer.clone() }
}

/// A fill as bulk copies that report to a barrier: of a matrix whose rows stand apart as a box; why it is none.
fn run(
    stmt: &Stmt,
    signal: (Sym, Index),
    larger: &[Buffer],
    place: &Place,
    facts: &Facts,
) -> Result<Run, String> {
    let fill = Fill::of(stmt, place, facts)?;
    match fill.source.dims.len() {
        2 => boxes::run(&fill, signal, facts),
        _ => runs::run(&fill, signal, larger, facts),
    }
}

/// The uses of a tile that holds so many elements more before its first one.
fn behind(uses: Vec<Stmt>, before: &[(Sym, i64)]) -> Result<Vec<Stmt>, String> {
    let of = |sym: &Sym| before.iter().find(|(tile, _)| tile == sym).map(|(_, elements)| *elements);
    let mut in_one_piece = None;
    walk::for_each(&uses, &mut |stmt| {
        if let Stmt::Instruction(i) = stmt {
            let windows = i.operands.iter().filter_map(|o| match o {
                Operand::Window(w) => Some(&w.buffer),
                Operand::Scalar(_) => None,
            });
            in_one_piece = windows.into_iter().find(|b| of(b).is_some()).cloned().or(in_one_piece.take());
        }
    });
    if let Some(tile) = in_one_piece {
        return Err(format!("instructions take `{tile}`, whose first element cannot begin behind others"));
    }
    let moved = |access: &mut Access| {
        if let (Some(elements), Some(last)) = (of(&access.buffer), access.index.last_mut()) {
            *last = last.offset(elements);
        }
    };
    Ok(map_accesses(uses, &moved, &|_| {}))
}
