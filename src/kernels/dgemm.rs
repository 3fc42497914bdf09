//! The ladder `dgemm`: products of f64 by the matrix units.

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

use super::warps::{WarpTiles, long_axes};
use super::{Recipe, Variant};
use crate::problem::Precision;

/// The rungs in order.
pub const RUNGS: &[Recipe] = &[
    Recipe {
        name: "dgemm_matrix_units",
        family: "dgemm",
        rung: 1,
        title: "matrix units",
        change: "A warp multiplies 64 x 32 elements of a 128 x 128 block by matrix instructions of 8 x 8 elements and 4 terms.",
        why: "One such instruction makes 256 multiply-adds where an ordinary one of a warp makes 32, and where a GPU has matrix units for doubles they are the faster pipe.",
        schedule: |v| steps(v, "vectorize(As.e, Bs.e)\n", ""),
    },
    Recipe {
        name: "dgemm_cp_async",
        family: "dgemm",
        rung: 2,
        title: "asynchronous copies",
        change: "Tiles arrive by asynchronous copies, two steps ahead.",
        why: "Copies are under way while two tiles are multiplied, and pass through no registers, so that the few warps for which there are registers need not wait for them.",
        schedule: |v| {
            let copies = "tensorize(As.e, cp_async16_f64)\ntensorize(Bs.e, cp_async16_f64)\n";
            steps(v, copies, "pipeline(acc.ko, 3, via=cp_async)\n")
        },
    },
];

const TILES: WarpTiles = WarpTiles { depth: 16, step: 4, piece: 2, rows: 8, columns: 8 };

/// The schedule with these steps for the copies and for what makes them overlap the products.
fn steps(variant: Variant, copies: &str, overlap: &str) -> Result<String, Diagnosis> {
    if variant.precision != Precision::Of(DType::F64) {
        return Err(Diagnosis::new(format!("this rung has no form for {}", variant.precision))
            .because("its matrix instructions multiply f64")
            .instead("use --dtype f64, or another ladder"));
    }
    let [a, b] = long_axes(variant);
    // Rows begin 8 banks apart, so that the 8 rows and 4 terms of an instruction lie in different banks.
    Ok(TILES.steps(variant)
        + &format!(
            "storage_align(As, r, 4)
storage_align(Bs, r, 4)
{copies}tensorize(acc.i, mma_m8n8k4_f64)
{overlap}unroll(acc.ks, acc.mi, acc.ni, a.{a}o, b.{b}o, As.u, Bs.u, C.io, C.jo)
"
        ))
}
