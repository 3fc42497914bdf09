//! The ladder `tvm`: the steps of a well-known blog post that schedules GEMM in TVM's tensor-expression language,
//! numbered as there, all through our own expression layer and at one size.
//!
//! The post's last step, a double buffer, made its kernel slower: the copy to the second buffer waits for the loads just
//! as the copy to the first did. The step after it here is the repair.
//!
//! The post multiplies a transposed A (both operands are stored with K as rows), which is layout `tn` here; the steps
//! serve every layout.

use super::sgemm::{Overlap, Storage, operands, widths};
use super::{Recipe, Variant};
use warpwright_core::diag::Diagnosis;

/// The steps in order.
pub const RUNGS: &[Recipe] = &[
    Recipe {
        name: "tvm_naive",
        family: "tvm",
        rung: 0,
        title: "naive",
        change: "A block computes a piece of one row of C, a thread one element of it.",
        why: "Neighbouring threads read neighbours of B, and all the same element of A; but every multiply-add loads both of its operands, and a block uses what it reads of B only once.",
        schedule: naive,
    },
    Recipe {
        name: "tvm_blocked",
        family: "tvm",
        rung: 1,
        title: "blocked",
        change: "A block computes 32 x 32 elements, so that its threads share what they read through the caches.",
        why: "32 threads of the block want each element, and caches can answer all but the first; yet there are as many loads as before, two for each multiply-add, and they set the pace, which is why it is no faster.",
        schedule: blocked,
    },
    Recipe {
        name: "tvm_tiled",
        family: "tvm",
        rung: 2,
        title: "thread tiling",
        change: "A thread computes 8 x 8 elements of a 128 x 128 block, from tiles in shared memory and registers.",
        why: "Memory is asked for every element of a tile once for all threads of the block, and 8 + 8 operands in registers feed 64 multiply-adds that took two loads each before.",
        schedule: |_| Ok(format!("{}{}", tile(&Tile::PLAIN, None), staging())),
    },
    Recipe {
        name: "tvm_virtual_threads",
        family: "tvm",
        rung: 3,
        title: "virtual threads",
        change: "A thread computes four 4 x 4 tiles spread over the block, so that a warp reads shared memory without conflicts.",
        why: "Where the 8 columns of a thread lie side by side, lanes read 8 elements apart and meet in the same banks; runs of 4, read 16 bytes at a time, lie next to those of the neighbours.",
        schedule: |_| Ok(format!("{}{}", tile(&Tile::STRIDED, None), staging())),
    },
    Recipe {
        name: "tvm_vectorized",
        family: "tvm",
        rung: 4,
        title: "vectorized",
        change: "Tiles are stored with K as rows, and every copy to shared memory, to registers and to C moves 16 bytes where sizes and strides allow it.",
        why: "One instruction moves 16 bytes where four moved 4 each, and what a thread needs in one step of the sum lies side by side.",
        schedule: |v| wide(v, Overlap::None),
    },
    Recipe {
        name: "tvm_double_buffer",
        family: "tvm",
        rung: 5,
        title: "double buffer",
        change: "The next tiles are copied to a second pair of buffers before the multiply-adds of this one, so that one barrier a step is enough.",
        why: "A barrier a step is saved; but what is fetched is stored at once, so that threads wait for their loads before they multiply, just as they did before.",
        schedule: |v| wide(v, Overlap::DoubleBuffer),
    },
    Recipe {
        name: "tvm_register_staging",
        family: "tvm",
        rung: 6,
        title: "double buffer that does not wait",
        change: "The next tiles are only loaded, into registers, before the multiply-adds, and stored to the second pair of buffers after them, so that nothing waits for the loads.",
        why: "Loads take as long as ever, but the multiply-adds of a whole tile run meanwhile; the price is the registers that hold what they bring.",
        schedule: |v| wide(v, Overlap::Registers),
    },
];

/// One row a block, 256 columns.
fn naive(_: Variant) -> Result<String, Diagnosis> {
    Ok("split(C.j, 256) -> by, tx
reorder(C.i, C.by, C.tx)
bind(C.i, block.x)
bind(C.by, block.y)
bind(C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
"
    .to_string())
}

/// 32 x 32 elements a block, accumulated in a register.
fn blocked(_: Variant) -> Result<String, Diagnosis> {
    Ok("split(C.i, 32) -> bx, ty
split(C.j, 32) -> by, tx
reorder(C.bx, C.by, C.ty, C.tx)
bind(C.bx, block.x)
bind(C.by, block.y)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
"
    .to_string())
}

/// The threads of a block that computes 128 x 128 elements.
const THREADS: i64 = 256;
/// Adjacent elements of a virtual thread along each dimension.
const RUN: i64 = 4;

/// How the 8 x 8 elements of a thread lie in the 128 x 128 elements of a block.
struct Tile {
    /// Cuts a dimension of 128 elements that is called by the first name.
    cut: fn(&str, &str) -> String,
    /// The virtual threads, if any, and what binds them.
    virtual_threads: &'static str,
    bind: &'static str,
}

impl Tile {
    /// Adjacent.
    const PLAIN: Tile = Tile {
        cut: |axis, thread| format!("split(C.{axis}, 8) -> {thread}, {axis}\n"),
        virtual_threads: "",
        bind: "",
    };
    /// In two runs of 4, 64 apart, along each dimension.
    const STRIDED: Tile = Tile {
        cut: |axis, thread| {
            format!("split(C.{axis}, 64) -> v{axis}, {axis}\nsplit(C.{axis}, 4) -> {thread}, {axis}\n")
        },
        virtual_threads: "C.vi, C.vj, ",
        bind: "bind(C.vi, vthread)\nbind(C.vj, vthread)\n",
    };
}

/// The loops of C and of its accumulators; with `lane`, rows of C are stored so many elements at a time.
fn tile(tile: &Tile, lane: Option<i64>) -> String {
    let Tile { cut, virtual_threads, bind } = tile;
    let (split, lanes) = match lane {
        Some(lane) => (format!("split(C.j, {lane}) -> j, v\n"), ", C.v"),
        None => (String::new(), ""),
    };
    format!(
        "split(C.i, 128) -> bx, i
{rows}split(C.j, 128) -> by, j
{columns}{split}reorder(C.bx, C.by, {virtual_threads}C.ty, C.tx, C.i, C.j{lanes})
bind(C.bx, block.x)
bind(C.by, block.y)
{bind}bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 16) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
",
        rows = cut("i", "ty"),
        columns = cut("j", "tx"),
    )
}

/// The tiles of the virtual threads, copied by wide accesses; `overlap` is how copies and multiply-adds
/// overlap.
fn wide(variant: Variant, overlap: Overlap) -> Result<String, Diagnosis> {
    let [wide_a, wide_b, wide_c] = widths(variant);
    let sizes = format!("specialize(M%128, N%128, K%16, lda%{wide_a}, ldb%{wide_b}, ldc%{wide_c})\n");
    let storage = [Storage::Plain, Storage::Plain];
    let operands = operands(variant, THREADS, [RUN, RUN], storage, overlap);
    Ok(sizes + &tile(&Tile::STRIDED, Some(wide_c.min(RUN))) + &operands)
}

/// Tiles of 16 terms in shared memory, columns of them in registers.
fn staging() -> String {
    let mut steps = String::new();
    for (operand, tile) in [("A", "As"), ("B", "Bs")] {
        steps += &format!(
            "cache_read({operand}, acc, shared) -> {tile}
compute_at({tile}, acc.ko)
fuse({tile}.r, {tile}.c) -> f
split({tile}.f, 256) -> u, t
reorder({tile}.t, {tile}.u)
bind({tile}.t, threads)
unroll({tile}.u)
"
        );
    }
    for (tile, fragment) in [("As", "ra"), ("Bs", "rb")] {
        steps += &format!("cache_read({tile}, acc, reg) -> {fragment}\ncompute_at({fragment}, acc.ki)\n");
    }
    steps + "unroll(acc.ki, acc.i, acc.j, ra.r, ra.c, rb.r, rb.c, C.i, C.j)\n"
}
