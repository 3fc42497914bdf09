//! How many blocks the assembler is asked to make fit on a multiprocessor.

use crate::dtype::DType;
use crate::instr;
use crate::ir::{Dim, Launch, Space, Stmt, walk};
use crate::target::{Limits, Target};

/// Registers of a thread that count as a tile.
const REGISTER_TILE: i64 = 16;
/// What addresses, loop counters and values on their way need besides register tiles, as observed in kernels that
/// stage tiles through shared memory.
const REGISTERS_BESIDES_TILES: i64 = 40;
/// What the assembler wants where matrix units multiply doubles: with fewer it refuses `mma` of 16 rows (ptxas 13.0).
const REGISTERS_FOR_DOUBLES: i64 = 64;
/// More blocks than this are not asked for.
const MOST_BLOCKS: i64 = 8;

/// How many blocks should fit on a multiprocessor, where that is worth telling the assembler: with large register
/// tiles it may otherwise take a few registers too many and halve the number of blocks. No more are asked for than a
/// multiprocessor gets where their number is known: registers would be spilled for nothing. But so many are asked for then, be it one:
/// where nothing is said, the assembler keeps room for more of its own accord. A^T B in f32 37 x 37, two blocks of 128 threads, took 143
/// registers and 1.20 ms where blocks were asked for, 128 and 1.98 ms where none were (one H200 each, NVRTC 13.0, 2026-11-23); A C in f32 55 x 55, one
/// block of 512 threads, takes 91 or 64.
pub(super) fn blocks_per_sm(target: &Target, launch: &Launch<'_>) -> Option<i64> {
    if let Some(asked) = launch.blocks.iter().find_map(|l| l.min_blocks) {
        return (asked > 0).then_some(asked);
    }
    let tile = register_words(launch.body);
    if tile < REGISTER_TILE || launch.roles.iter().any(|r| r.registers.is_some()) {
        return None;
    }
    let limits = &target.limits;
    let least = if multiplies_doubles(launch.body) { REGISTERS_FOR_DOUBLES } else { 0 };
    let needed = (tile + REGISTERS_BESIDES_TILES).max(least);
    let up = |value: i64, of: i64| (value + of - 1) / of;
    let warps = up(launch.threads, Limits::WARP.into());
    let given = |blocks: i64| limits.most_registers(blocks * warps);
    let shared = instr::shared_bytes(launch) + i64::from(limits.shared_reserved_per_block);
    let fits = |blocks: i64| {
        given(blocks) >= needed
            && blocks * launch.threads <= i64::from(limits.threads_per_sm())
            && blocks * shared <= i64::from(limits.shared_per_sm)
    };
    let grid = launch.blocks.iter().try_fold(1, |grid: i64, l| grid.checked_mul(l.extent.as_constant()?));
    let come = grid.map_or(MOST_BLOCKS, |grid| up(grid, target.sm_count.value.into()));
    let blocks = (1..=come.min(MOST_BLOCKS)).take_while(|b| fits(*b)).last()?;
    // Where it is not known how many come, and a thread may have all it can name, there is nothing to ask for.
    let worth_it = blocks > 1 && given(blocks) < Limits::REGISTERS_PER_THREAD.into();
    (grid.is_some() || worth_it).then_some(blocks)
}

/// The 32-bit registers that the register buffers alive at once take in one thread.
fn register_words(stmts: &[Stmt]) -> i64 {
    let own: i64 = stmts
        .iter()
        .map(|stmt| match stmt {
            Stmt::Alloc(buffer) if buffer.space == Space::Reg => {
                let plain = buffer.dims.len() - if buffer.fragment.is_some() { 2 } else { 0 };
                let elements =
                    |d: &Dim| if d.pitch.is_some() { 1 } else { d.extent.as_constant().unwrap_or(1) };
                let mut words: i64 = buffer.dims[..plain].iter().map(elements).product();
                if let Some(fragment) = buffer.fragment {
                    let extent = |d: &Dim| d.extent.as_constant().unwrap_or(0);
                    words *= fragment
                        .registers(extent(&buffer.dims[plain]), extent(&buffer.dims[plain + 1]))
                        .unwrap_or(1);
                }
                words * buffer.element_bytes() / 4
            }
            _ => 0,
        })
        .sum();
    let inner = stmts.iter().flat_map(walk::bodies).map(|body| register_words(body)).max();
    own + inner.unwrap_or(0)
}

/// Whether matrix units multiply doubles.
fn multiplies_doubles(stmts: &[Stmt]) -> bool {
    let mut found = false;
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::Alloc(buffer) = stmt {
            found |= buffer.fragment.is_some() && matches!(buffer.dtype, DType::F64 | DType::C128);
        }
    });
    found
}
