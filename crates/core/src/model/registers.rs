//! How many registers a thread of a launch needs, before a compiler has said so.

use std::collections::HashMap;

use crate::ir::{Access, Assign, AssignOp, Buffer, For, Launch, Mode, Space, Stmt, walk};
use crate::sym::Sym;

/// Registers for addresses, loop variables and what else a compiler keeps. Chosen by the kernels of the ladders, where NVRTC 13.0 takes
/// 16 to 67 more than their register buffers have words.
const BESIDE: f64 = 28.0;
/// Words of loads on their way to shared memory that compilers keep in registers at a time, at most.
const PASSING: f64 = 32.0;

/// The registers of a thread of a launch: those of its register buffers, as many as are alive at a time; those of loads that
/// compilers hold together on their way to shared memory; and some besides. An estimate: compilers find more, or less.
pub fn of_launch(launch: &Launch<'_>, buffers: &HashMap<Sym, Buffer>) -> i64 {
    let words = alive(launch.body, buffers, 1.0) + BESIDE;
    words.ceil() as i64
}

/// Words of the buffers of a body and of the deepest body inside it.
fn alive(body: &[Stmt], buffers: &HashMap<Sym, Buffer>, written_out: f64) -> f64 {
    let mut own = 0.0;
    let mut inside: f64 = 0.0;
    let mut passing = 0.0;
    for stmt in body {
        let times = match stmt {
            Stmt::For(For { mode: Mode::Unroll | Mode::Vector, range, .. }) => {
                range.constant_trip_count().unwrap_or(1) as f64
            }
            _ => 1.0,
        };
        match stmt {
            Stmt::Alloc(buffer) if buffer.space == Space::Reg => own += words(buffer),
            Stmt::Assign(assign) if passes(assign, buffers) => {
                let bytes = buffers.get(&assign.target.buffer).map_or(4, Buffer::element_bytes);
                passing += written_out * bytes as f64 / 4.0;
            }
            _ => {
                for inner in walk::bodies(stmt) {
                    inside = inside.max(alive(inner, buffers, written_out * times));
                }
            }
        }
    }
    own + inside.max(passing.min(PASSING))
}

/// Whether an assignment takes elements from device memory to shared memory.
fn passes(assign: &Assign, buffers: &HashMap<Sym, Buffer>) -> bool {
    let space = |access: &Access| buffers.get(&access.buffer).map(|b| b.space);
    let mut loads = false;
    assign.value.for_each_access(&mut |access| {
        loads |= buffers.get(&access.buffer).is_some_and(Buffer::is_global);
    });
    loads && assign.op == AssignOp::Store && space(&assign.target) == Some(Space::Shared)
}

/// Words of 4 bytes that a thread has of a register buffer.
fn words(buffer: &Buffer) -> f64 {
    let extents: Vec<i64> = buffer.dims.iter().map(|d| d.extent.as_constant().unwrap_or(1)).collect();
    let own: i64 = match (buffer.fragment, &extents[..]) {
        (Some(fragment), [outer @ .., rows, columns]) => {
            outer
                .iter()
                .zip(&buffer.dims)
                .filter(|(_, d)| d.pitch.is_none())
                .map(|(e, _)| *e)
                .product::<i64>()
                * fragment.registers(*rows, *columns).unwrap_or(1)
        }
        _ => extents.iter().zip(&buffer.dims).filter(|(_, d)| d.pitch.is_none()).map(|(e, _)| *e).product(),
    };
    own as f64 * buffer.element_bytes() as f64 / 4.0
}
