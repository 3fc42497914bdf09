//! The host list and the limits of the target (rules 1, 16, 17, 27 and 30): launches and nothing else that computes,
//! blocks and shared memory that fit, features that exist.

use std::collections::HashMap;

use super::place;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::instr;
use crate::ir::{
    AssignOp, BinaryOp, Buffer, For, If, Launch, Mode, Program, Reduction, Role, Space, Stmt, Sync, Value,
    walk,
};
use crate::sym::Sym;
use crate::target::{Capability, Limits, Target};

/// Faults of the host list: everything that would have to run on the host, or as a launch it is not.
pub(super) fn host(program: &Program) -> Vec<Diagnosis> {
    let mut faults = Vec::new();
    host_list(program, &program.body, &mut faults);
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::For(l) = stmt
            && let Some(fault) = unfinished(l)
        {
            faults.push(fault.at(place::of(program, stmt)));
        }
    });
    faults
}

fn host_list(program: &Program, stmts: &[Stmt], faults: &mut Vec<Diagnosis>) {
    for stmt in stmts {
        let fault = match stmt {
            Stmt::If(If { then, otherwise, .. }) => {
                host_list(program, then, faults);
                host_list(program, otherwise, faults);
                continue;
            }
            Stmt::Let(..) | Stmt::For(For { mode: Mode::Block { .. }, .. }) => continue,
            Stmt::Alloc(buffer) if buffer.space == Space::Global => continue,
            Stmt::Alloc(buffer) => {
                Diagnosis::new(format!("`{}` is allocated outside any launch", buffer.sym))
                    .because("registers and shared memory belong to a block")
                    .instead("move it to where it is used (compute_at), or make it global")
            }
            Stmt::For(l) => Diagnosis::new(format!("the loop `{}` runs on the host", l.var))
                .because("only launches run on the GPU")
                .instead("bind the outer loops to blocks, and inner ones to threads"),
            _ => Diagnosis::new("this runs on the host")
                .because("only launches run on the GPU")
                .instead("put it under block.x(1) and threads(1@1)"),
        };
        faults.push(fault.at(place::of(program, stmt)));
    }
}

/// Modes that a finished program has no more.
fn unfinished(l: &For) -> Option<Diagnosis> {
    match l.mode {
        Mode::Interleave => Some(
            Diagnosis::new(format!("the loop `{}` over virtual threads is still there", l.var))
                .instead("unroll it into the statements inside"),
        ),
        Mode::Unroll if l.range.constant_trip_count().is_none() => Some(
            Diagnosis::new(format!("the loop `{}` cannot be unrolled", l.var))
                .because("its number of iterations is not constant")
                .instead("split it by a constant and unroll the inner part"),
        ),
        _ => None,
    }
}

/// Faults of one launch: its grid, its size, what it needs of the target.
pub(super) fn limits(launch: &Launch<'_>, target: &Target) -> Vec<Diagnosis> {
    let mut faults = grid(launch);
    let threads = i64::from(Limits::THREADS_PER_BLOCK);
    if launch.threads > threads {
        faults.push(
            Diagnosis::new(format!("a block has {} threads", launch.threads))
                .because(format!("at most {threads} fit"))
                .instead("give each thread more elements"),
        );
    }
    let shared = i64::from(target.limits.shared_per_block_opt_in);
    if instr::shared_bytes(launch) > shared {
        let largest = launch.shared.buffers.iter().max_by_key(|b| b.elements * b.buffer.element_bytes());
        let largest = largest
            .map(|b| format!(", {} of them for `{}`", b.elements * b.buffer.element_bytes(), b.buffer.sym));
        faults.push(
            Diagnosis::new(format!(
                "a block uses {} bytes of shared memory{}",
                instr::shared_bytes(launch),
                largest.unwrap_or_default()
            ))
            .because(format!("{} offers {shared}", target.product))
            .instead("use fewer stages or smaller tiles"),
        );
    }
    faults.extend(roles(&launch.roles, launch.threads, target));
    faults
}

fn grid(launch: &Launch<'_>) -> Vec<Diagnosis> {
    let mut faults = Vec::new();
    for (at, block) in launch.blocks.iter().enumerate() {
        let others = &launch.blocks[..at];
        if others.iter().any(|b| b.axis == block.axis) {
            let what = format!("two block loops run along {}", block.axis.name());
            faults.push(Diagnosis::new(what).instead("give each an axis of its own, or fuse them"));
        }
        if let Some(outer) = others.iter().find(|b| block.extent.mentions(&b.var)) {
            faults.push(
                Diagnosis::new(format!("the number of blocks of `{}` depends on `{}`", block.var, outer.var))
                    .because("a grid is a box"),
            );
        }
    }
    faults
}

fn roles(roles: &[Role], threads: i64, target: &Target) -> Vec<Diagnosis> {
    let mut faults = Vec::new();
    let mut registers = 0;
    for role in roles {
        let size = role.hi - role.lo;
        if role.lo % 32 != 0 || size % 32 != 0 {
            faults.push(
                Diagnosis::new(format!("role `{}` cuts through a warp", role.sym))
                    .because(format!("it has the threads {}..{}", role.lo, role.hi))
                    .instead("let roles start and end at multiples of 32"),
            );
        }
        let Some(count) = role.registers else { continue };
        registers = count.saturating_mul(size).saturating_add(registers);
        if !target.has(Capability::SetMaxRegisters) {
            faults.push(missing(&format!("`regs {count}`"), Capability::SetMaxRegisters, target));
        }
        if role.lo % 128 != 0 || size % 128 != 0 || count % 8 != 0 || !(24..=256).contains(&count) {
            faults.push(
                Diagnosis::new(format!("role `{}` sets {count} registers for {size} threads", role.sym))
                    .because("whole warpgroups set 24 to 256, in steps of 8"),
            );
        }
    }
    let all_set = !roles.is_empty()
        && roles.iter().all(|r| r.registers.is_some())
        && roles.iter().map(|r| r.hi - r.lo).sum::<i64>() == threads;
    let available = i64::from(target.limits.registers_per_block);
    if all_set && registers > available {
        faults.push(
            Diagnosis::new(format!("the roles set {registers} registers in all"))
                .because(format!("a block has {available}"))
                .instead("give producers fewer"),
        );
    }
    faults
}

/// What one statement of a launch needs and the target lacks.
pub(super) fn needs(stmt: &Stmt, buffers: &HashMap<Sym, Buffer>, target: &Target) -> Vec<Diagnosis> {
    let mut faults = Vec::new();
    let mut need = |what: &str, capability: Capability| {
        if !target.has(capability) {
            faults.push(missing(what, capability, target));
        }
    };
    match stmt {
        Stmt::Instruction(i) => {
            let needed = instr::by_name(&i.name).map_or(&[][..], |r| r.needs);
            needed.iter().for_each(|c| need(&i.name, *c));
        }
        Stmt::AllocRing(ring) => need(&format!("the ring `{}`", ring.sym), Capability::Mbarrier),
        Stmt::Sync(sync) => match sync {
            Sync::Barrier => {}
            Sync::CpCommit | Sync::CpWait(_) => need("cp.async", Capability::CpAsync),
            Sync::WgmmaFence | Sync::WgmmaCommit | Sync::WgmmaWait(_) => need("wgmma", Capability::Wgmma),
            Sync::BulkCommit | Sync::BulkWait(_) | Sync::BulkWaitRead(_) => {
                need("bulk copies", Capability::Tma)
            }
            Sync::FenceAsync => need("fence.async", Capability::ProxyFence),
        },
        Stmt::Assign(a) => {
            let dtype = buffers[&a.target.buffer].dtype;
            if multiplies_half(&a.value, buffers) || (a.op != AssignOp::Store && dtype.is_half()) {
                let bf16 = dtype == DType::Bf16;
                let capability = if bf16 { Capability::FmaBf16 } else { Capability::FmaF16 };
                need(&format!("arithmetic in {dtype}"), capability);
            }
            if let (true, AssignOp::Reduce(reduction)) = (a.atomic, a.op) {
                match (reduction, dtype) {
                    // A complex number is added as its two parts: nobody reads it before all have added.
                    (Reduction::Sum, DType::F64 | DType::C128) => {
                        need(&format!("an atomic sum of {dtype}"), Capability::AtomicAddF64);
                    }
                    (Reduction::Sum, DType::F32 | DType::C64) | (_, DType::I32) => {}
                    _ => faults.push(
                        Diagnosis::new(format!(
                            "an atomic {} of {dtype} exists on no GPU",
                            monoid(reduction)
                        ))
                        .instead("combine partial results in a second launch"),
                    ),
                }
            }
        }
        _ => {}
    }
    faults
}

/// Whether a value computes in a 16-bit type.
fn multiplies_half(value: &Value, buffers: &HashMap<Sym, Buffer>) -> bool {
    fn half(value: &Value, buffers: &HashMap<Sym, Buffer>) -> bool {
        match value {
            Value::Load(a) => buffers[&a.buffer].dtype.is_half(),
            Value::Cast(t, _) => t.is_half(),
            Value::Unary(_, a) => half(a, buffers),
            Value::Binary(_, a, b) | Value::Select(_, a, b) => half(a, buffers) || half(b, buffers),
            Value::Const(_) | Value::Scalar(_) => false,
        }
    }
    match value {
        Value::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div, a, b) => {
            half(a, buffers) || half(b, buffers) || multiplies_half(a, buffers) || multiplies_half(b, buffers)
        }
        Value::Binary(_, a, b) | Value::Select(_, a, b) => {
            multiplies_half(a, buffers) || multiplies_half(b, buffers)
        }
        Value::Unary(_, a) | Value::Cast(_, a) => multiplies_half(a, buffers),
        Value::Const(_) | Value::Scalar(_) | Value::Load(_) => false,
    }
}

fn missing(what: &str, capability: Capability, target: &Target) -> Diagnosis {
    let has: Vec<_> = crate::target::ALL.iter().filter(|t| t.has(capability)).map(|t| t.name).collect();
    Diagnosis::new(format!("{what} does not exist on {}", target.product))
        .because(format!("it needs {capability:?}"))
        .instead(format!("choose another schedule, or one of {}", has.join(", ")))
}

fn monoid(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Sum => "sum",
        Reduction::Max => "maximum",
        Reduction::Min => "minimum",
    }
}
