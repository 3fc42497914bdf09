//! What consumers of a valid program share about each launch, beyond [`Launch`]: which barriers need numbers, what
//! registers its buffers take, which features it uses.

use super::executors::Executors;
use super::place;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::Index;
use crate::instr;
use crate::ir::{AssignOp, Buffer, Launch, Program, Space, Stmt, Sync, walk};
use crate::sym::Sym;
use crate::target::{Capability, Limits};

/// Facts about one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFacts {
    /// Threads of a block.
    pub threads: i64,
    /// Bytes of shared memory of a block.
    pub shared_bytes: i64,
    /// The named barriers. Barriers of the whole block and of single warps need no number and are not listed.
    pub barriers: Vec<BarrierGroup>,
    /// For each register buffer in the order of the text, the elements that each thread holds.
    pub registers: Vec<(Sym, i64)>,
    /// 32-bit registers that the buffers of one thread take, where most of them are alive.
    pub register_words: i64,
    /// Features that the launch uses, each once, in a fixed order.
    pub capabilities: Vec<Capability>,
}

/// Ranges of threads next to each other, each with a barrier of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierGroup {
    /// The first thread of the first range: 0, or where the role starts.
    pub first_thread: i64,
    /// The threads that one barrier joins.
    pub threads: i64,
    /// The number of ranges.
    pub ranges: i64,
    /// The barrier of the first range; the others follow. Thread `t` meets at
    /// `first_id + (t - first_thread) / threads`.
    pub first_id: i64,
}

impl LaunchFacts {
    /// The barriers of ranges of `threads` threads from `first_thread` on.
    pub fn barrier(&self, first_thread: i64, threads: i64) -> Option<&BarrierGroup> {
        self.barriers.iter().find(|b| b.first_thread == first_thread && b.threads == threads)
    }
}

/// The facts of all launches.
pub(super) fn of(
    program: &Program,
    launches: &[Launch<'_>],
    executors: &Executors<'_>,
) -> Result<Vec<LaunchFacts>, Vec<Diagnosis>> {
    let mut faults = Vec::new();
    let mut out = Vec::new();
    for launch in launches {
        let barriers = barriers(program, launch, executors, &mut faults);
        let mut registers = Vec::new();
        let register_words = words(launch.body, &mut registers);
        out.push(LaunchFacts {
            threads: launch.threads,
            shared_bytes: instr::shared_bytes(launch),
            barriers,
            registers,
            register_words,
            capabilities: capabilities(program, launch),
        });
    }
    if faults.is_empty() { Ok(out) } else { Err(faults) }
}

/// Gives numbers to the barriers of a launch. Barrier 0 is the block's.
fn barriers(
    program: &Program,
    launch: &Launch<'_>,
    executors: &Executors<'_>,
    faults: &mut Vec<Diagnosis>,
) -> Vec<BarrierGroup> {
    let mut groups: Vec<BarrierGroup> = Vec::new();
    let mut next = 1;
    walk::for_each(launch.body, &mut |stmt| {
        let (Stmt::Sync(Sync::Barrier), Some(executor)) = (stmt, executors.of(stmt)) else { return };
        let threads = executor.threads;
        let role = executor.role.as_ref().and_then(|r| launch.roles.iter().find(|x| x.sym == *r));
        let (first_thread, size) = role.map_or((0, launch.threads), |r| (r.lo, r.hi - r.lo));
        let whole = threads == launch.threads;
        let known = groups.iter().any(|g| g.first_thread == first_thread && g.threads == threads);
        if whole || threads <= i64::from(Limits::WARP) || known {
            return;
        }
        if executor.first.offset(-first_thread).rem(threads) != Index::default() {
            faults.push(
                Diagnosis::new(format!(
                    "the ranges of {threads} threads that meet here overlap each other's numbers"
                ))
                .because(format!("they start at {}, not at multiples of {threads}", executor.first))
                .instead("split threads so that each pitch is a multiple of the next")
                .at(place::of(program, stmt)),
            );
        }
        let ranges = (size + threads - 1) / threads;
        groups.push(BarrierGroup { first_thread, threads, ranges, first_id: next });
        next += ranges;
        if next > i64::from(Limits::NAMED_BARRIERS_PER_BLOCK) {
            faults.push(
                Diagnosis::new(format!("the block needs {next} barriers"))
                    .because(format!("there are {}", Limits::NAMED_BARRIERS_PER_BLOCK))
                    .instead("let larger ranges of threads meet")
                    .at(place::of(program, stmt)),
            );
        }
    });
    groups
}

/// Elements of a register buffer that one thread holds.
fn per_thread(buffer: &Buffer) -> i64 {
    let extents = buffer.constant_extents().unwrap_or_default();
    let n = extents.len();
    let tile =
        buffer.fragment.and_then(|f| Some((2, f.registers(*extents.get(n - 2)?, *extents.get(n - 1)?)?)));
    let (inner, registers) = tile.unwrap_or((0, 1));
    let outer = buffer.dims.iter().zip(&extents).take(n - inner).filter(|(d, _)| d.pitch.is_none());
    outer.fold(registers, |n, (_, extent)| n.saturating_mul(*extent))
}

/// Lists the register buffers and returns how many 32-bit registers those that are alive together take at most.
fn words(stmts: &[Stmt], registers: &mut Vec<(Sym, i64)>) -> i64 {
    let (mut alive, mut most) = (0i64, 0i64);
    for stmt in stmts {
        if let Stmt::Alloc(buffer) = stmt
            && buffer.space == Space::Reg
        {
            let elements = per_thread(buffer);
            registers.push((buffer.sym.clone(), elements));
            alive += (elements.saturating_mul(buffer.element_bytes()) + 3) / 4;
        }
        let inside = walk::bodies(stmt).map(|body| words(body, registers)).max().unwrap_or(0);
        most = most.max(alive + inside);
    }
    most
}

/// What decides which architecture to compile for.
fn capabilities(program: &Program, launch: &Launch<'_>) -> Vec<Capability> {
    let mut out = Vec::new();
    let buffers = program.buffers();
    walk::for_each(launch.body, &mut |stmt| match stmt {
        Stmt::Instruction(i) => out.extend(instr::by_name(&i.name).map_or(&[][..], |r| r.needs)),
        Stmt::AllocRing(_) => out.push(Capability::Mbarrier),
        Stmt::Assign(a) => {
            let of_f64 = |b: &Buffer| matches!(b.dtype, DType::F64 | DType::C128);
            if a.atomic && buffers.get(&a.target.buffer).is_some_and(of_f64) && a.op != AssignOp::Store {
                out.push(Capability::AtomicAddF64);
            }
        }
        _ => {}
    });
    if launch.roles.iter().any(|r| r.registers.is_some()) {
        out.push(Capability::SetMaxRegisters);
    }
    out.sort_unstable();
    out.dedup();
    out
}
