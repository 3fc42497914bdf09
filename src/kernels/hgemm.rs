//! The ladder `hgemm`: products of 16-bit elements, summed in f32 by the matrix units.
//!
//! `mma.sync` takes its operands from registers, which serve every layout. `wgmma` takes them from shared memory as they
//! lie there, with the axis of the sum along the rows: layout `nt`.

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

use super::warps::{WarpTiles, long_axes, turned};
use super::{Recipe, Variant};
use crate::problem::Alignment;

/// The rungs in order.
pub const RUNGS: &[Recipe] = &[
    Recipe {
        name: "hgemm_matrix_units",
        family: "hgemm",
        rung: 1,
        title: "matrix units",
        change: "A warp multiplies 64 x 32 elements of a 128 x 128 block by matrix instructions, whose operands its threads gather from shared memory.",
        why: "One such instruction makes 2048 multiply-adds where an ordinary one of a warp makes 32; what is slow now is to bring it operands, which threads gather element by element.",
        schedule: |v| Ok(TILES.steps(v) + &gathered(v)?),
    },
    Recipe {
        name: "hgemm_cp_async",
        family: "hgemm",
        rung: 2,
        title: "asynchronous copies",
        change: "Tiles arrive by asynchronous copies, two steps ahead, and operands are loaded from shared memory a 16 x 16 matrix at a time.",
        why: "A matrix load deals out 16 x 16 elements as the matrix instruction wants them, where threads gathered them one by one, and copies that are two steps ahead hide how long memory takes.",
        schedule: |v| Ok(TILES.steps(v) + &loaded(v)?),
    },
    Recipe {
        name: "hgemm_warpgroups",
        family: "hgemm",
        rung: 3,
        title: "warpgroups",
        change: "A thread of its own has the tensor memory accelerator fetch tiles into a ring, and two warpgroups multiply 64 x 128 elements each straight from there.",
        why: "Its instruction reads A and B from shared memory itself, so that operands pass through no registers, and the warps that multiply spend no instructions on copies.",
        schedule: |v| warpgroups(v, 128, 4),
    },
    Recipe {
        name: "hgemm_wide_warpgroups",
        family: "hgemm",
        rung: 4,
        title: "wide warpgroups",
        change: "A warpgroup multiplies 64 x 256 elements, so that each tile of A serves twice as many products.",
        why: "A block of 128 x 256 asks for three quarters of the bytes for each multiply-add that one of 128 x 128 asks for; small products have too few such blocks to fill a GPU.",
        schedule: |v| warpgroups(v, 256, 4),
    },
];

/// The ending of instruction names for an element type.
fn ending(variant: Variant) -> Result<&'static str, Diagnosis> {
    match variant.precision.storage() {
        DType::Bf16 => Ok("bf16"),
        DType::F16 => Ok("f16"),
        other => Err(Diagnosis::new(format!("this rung has no form for {other}"))
            .because("its matrix instructions multiply 16-bit elements")
            .instead("use --dtype bf16 or f16, or the ladder sgemm")),
    }
}

/// Tiles for instructions that multiply 16 x 16 by 16 x 8 elements.
const TILES: WarpTiles = WarpTiles { depth: 32, step: 16, piece: 8, rows: 16, columns: 8 };

/// Operands of the matrix instructions element by element.
fn gathered(variant: Variant) -> Result<String, Diagnosis> {
    let ending = ending(variant)?;
    let [a, b] = long_axes(variant);
    let Alignment { a: of_a, b: of_b, .. } = variant.align;
    let [copy_a, copy_b] =
        [of_a, of_b].map(|align| if align == Alignment::MOST { "vectorize" } else { "unroll" });
    Ok(format!(
        "storage_align(As, r, 8)
storage_align(Bs, r, 8)
{copy_a}(As.e)
{copy_b}(Bs.e)
tensorize(acc.i, mma_m16n8k16_{ending})
unroll(acc.ks, acc.mi, acc.ni, a.{a}o, b.{b}o, As.u, Bs.u, C.io, C.jo)
"
    ))
}

/// Operands by matrix loads, tiles by asynchronous copies in a ring of three.
fn loaded(variant: Variant) -> Result<String, Diagnosis> {
    let ending = ending(variant)?;
    // The names of the first instructions there were do not say that they are for bf16.
    let of = |name: &str| if ending == "bf16" { name.to_string() } else { format!("{name}_{ending}") };
    let [turned_a, turned_b] = turned(variant);
    let load_a = of(if turned_a { "ldmatrix_x4_trans_turned" } else { "ldmatrix_x4" });
    let load_b = of(if turned_b { "ldmatrix_x4_turned" } else { "ldmatrix_x4_trans" });
    let [a, b] = long_axes(variant);
    // A copy goes by its loop over the rows of what the instruction takes.
    let [row_a, row_b] = turned(variant).map(|turned| if turned { "c" } else { "r" });
    Ok(format!(
        "split(a.{a}, 16) -> ai, {a}
reorder(a.ai, a.r, a.c)
split(b.{b}, 16) -> bj, {b}
reorder(b.bj, b.r, b.c)
swizzle(As)
swizzle(Bs)
tensorize(As.e, {copy})
tensorize(Bs.e, {copy})
tensorize(acc.i, mma_m16n8k16_{ending})
tensorize(a.{row_a}, {load_a})
tensorize(b.{row_b}, {load_b})
pipeline(acc.ko, 3, via=cp_async)
unroll(acc.ks, acc.mi, acc.ni, a.ai, b.bj, As.u, Bs.u, C.io, C.jo)
",
        copy = of("cp_async16"),
    ))
}

/// Two warpgroups, each 64 x `columns` elements of a block, 64 terms at a time through a ring of `slots`.
fn warpgroups(variant: Variant, columns: i64, slots: i64) -> Result<String, Diagnosis> {
    let ending = ending(variant)?;
    if turned(variant) != [false, true] {
        return Err(Diagnosis::new(format!("this rung has no form for layout {}", variant.layout))
            .because("its instructions take operands from shared memory, as they lie there")
            .instead("use --layout nt, or rung 2"));
    }
    let mut steps = format!(
        "specialize(lda%8, ldb%8)
split(C.i, 128) -> by, i
split(C.i, 64) -> w, i
split(C.j, {columns}) -> bx, j
reorder(C.by, C.bx, C.w, C.i, C.j)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.w, threads@128)
set_scope(acc, reg)
compute_at(acc, C.w)
split(acc.k, 64) -> ko, k
split(acc.k, 16) -> ks, k
reorder(acc.ko, acc.ks, acc.i, acc.j, acc.k)
"
    );
    // Where rows do not start at multiples of 16 bytes, the 256 threads copy elements themselves.
    for (operand, tile) in [("A", "As"), ("B", "Bs")] {
        steps += &format!(
            "cache_read({operand}, acc, shared) -> {tile}
compute_at({tile}, acc.ko)
fuse({tile}.r, {tile}.c) -> f
split({tile}.f, 256) -> u, t
reorder({tile}.t, {tile}.u)
bind({tile}.t, threads)
swizzle({tile})
"
        );
    }
    Ok(steps
        + &format!(
            "tensorize(acc.i, wgmma_{ending}_sw128)
pipeline(acc.ko, {slots}, via=tma)
unroll(acc.ks)
"
        ))
}
