//! Which kernel to use when nobody names one.

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Launch;
use warpwright_core::target::Target;

use crate::bind::Binding;
use crate::compile;
use crate::kernels::family::Family;
use crate::kernels::{self, Kernel, Recipe, Variant};
use crate::problem::Problem;

/// The family with parameters that should be taken for a problem, if there is one.
pub fn family(problem: &Problem) -> Option<&'static Family> {
    kernels::FAMILIES.iter().copied().find(|f| (f.suits)(problem))
}

/// A sensible kernel for a problem on a GPU that no family with parameters suits: the highest rung of the ladder `hgemm`, else the tile of the ladder
/// `sgemm` that should take the least time, else the highest rung below, in each case one that has a schedule for the
/// variant, fits the GPU, and whose assumptions hold of the problem. Products that are small in C get one with small
/// tiles.
pub fn kernel(problem: &Problem, target: &Target) -> Result<Kernel, Diagnosis> {
    let variant = Variant { precision: problem.precision, layout: problem.layout };
    let fits = |recipe: &'static Recipe| fitting(recipe, variant, problem, target);
    let small = problem.shape.m <= SMALL || problem.shape.n <= SMALL;
    let mut rungs = kernels::ladder("sgemm")?;
    if small {
        rungs.retain(|r| r.rung <= LAST_SMALL_RUNG);
    } else if let Some(kernel) = kernels::ladder("hgemm")?.into_iter().rev().find_map(fits) {
        return Ok(kernel);
    } else if let Some(kernel) = fastest_tile(problem, target, fits)? {
        return Ok(kernel);
    }
    rungs.into_iter().rev().find_map(fits).ok_or_else(|| {
        Diagnosis::new(format!("no kernel fits {} {} {}", problem.shape, problem.precision, problem.layout))
            .instead("name one with --kernel to see why")
    })
}

/// Products with at most this many rows or columns would waste most of a large tile.
const SMALL: i64 = 48;
/// The last rung with tiles of 32 x 32.
const LAST_SMALL_RUNG: u32 = 3;
/// The tiles at the end of the ladder `sgemm`, and their speed in TFLOP/s where blocks are many: f32 at 4096 on an
/// H200, bench/results.
const TILES: [(&str, f64); 2] = [("sgemm_turned_lanes", 53.8), ("sgemm_small_tile", 51.5)];

/// The tile that should take the least time: blocks run in rounds, one block a multiprocessor, and the last round
/// takes as long as the others even if few blocks are left for it.
fn fastest_tile(
    problem: &Problem,
    target: &Target,
    fits: impl Fn(&'static Recipe) -> Option<Kernel>,
) -> Result<Option<Kernel>, Diagnosis> {
    let mut best: Option<(f64, Kernel)> = None;
    for (name, speed) in TILES {
        let Some(kernel) = fits(kernels::by_name(name)?) else { continue };
        let Some(blocks) = blocks(&kernel, problem) else { continue };
        let multiprocessors = i64::from(target.sm_count.value);
        let rounds = (blocks + multiprocessors - 1) / multiprocessors;
        let time = rounds as f64 / blocks as f64 / speed;
        if best.as_ref().is_none_or(|(least, _)| time < *least) {
            best = Some((time, kernel));
        }
    }
    Ok(best.map(|(_, kernel)| kernel))
}

/// The number of blocks of the first launch, if there are any.
fn blocks(kernel: &Kernel, problem: &Problem) -> Option<i64> {
    let binding = Binding::new(kernel.program(), problem, 1).ok()?;
    let launches = Launch::all(&kernel.program().body).ok()?;
    let mut blocks = 1_i64;
    for block in &launches.first()?.blocks {
        blocks = blocks.checked_mul(block.extent.eval(&|s| binding.value(s)).ok()?)?;
    }
    (blocks > 0).then_some(blocks)
}

/// The kernel of a recipe, if there is one that can be used.
fn fitting(recipe: &Recipe, variant: Variant, problem: &Problem, target: &Target) -> Option<Kernel> {
    let kernel = kernels::build(recipe, variant).ok()?;
    compile::validated(kernel.program(), target).ok()?;
    Binding::new(kernel.program(), problem, 1).ok()?;
    Some(kernel)
}

#[cfg(test)]
mod tests {
    use super::{LAST_SMALL_RUNG, kernel};
    use crate::kernels;
    use crate::problem::Problem;
    use warpwright_core::target::{self, Target};

    #[test]
    fn elements_of_16_bits_go_to_the_matrix_units_of_a_gpu_that_has_them() {
        let chosen = |layout: &str, gpu: &str| {
            let dtype = "bf16-f32".parse().unwrap();
            let problem = Problem::new("512x512x512".parse().unwrap(), dtype, layout.parse().unwrap());
            kernel(&problem, Target::by_name(gpu).unwrap()).unwrap().name
        };
        assert_eq!(chosen("nt", "h200"), "hgemm_wide_warpgroups_bf16_f32_nt");
        assert_eq!(chosen("nn", "a6000"), "hgemm_cp_async_bf16_f32_nn");
        assert!(chosen("nn", "gtx980").starts_with("sgemm"));
    }

    #[test]
    fn the_tile_fills_the_multiprocessors() {
        let chosen = |shape: &str| {
            let problem = Problem::new(shape.parse().unwrap(), "f32".parse().unwrap(), "nn".parse().unwrap());
            kernel(&problem, Target::by_name("h200").unwrap()).unwrap().name
        };
        for (shape, tile) in [
            ("1024x1024x1024", "small_tile"),
            ("2048x2048x2048", "turned_lanes"),
            ("4095x4095x4095", "turned_lanes"),
            ("4097x4097x4097", "small_tile"),
            ("8192x8192x8192", "turned_lanes"),
        ] {
            assert!(chosen(shape).contains(tile), "{shape}: {}", chosen(shape));
        }
    }

    #[test]
    fn every_type_and_layout_has_a_kernel() {
        for (shape, dtype, layout) in [
            ("512x512x512", "f32", "nn"),
            ("33x999x5", "c128", "cn"),
            ("7x7x7", "bf16", "tt"),
            ("64x64x0", "i32", "nt"),
        ] {
            let problem =
                Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap());
            let chosen = kernel(&problem, target::DEFAULT).unwrap();
            let recipe = kernels::all().find(|r| chosen.name.starts_with(r.name)).expect("a recipe");
            assert!(problem.shape.m > 48 || recipe.rung <= LAST_SMALL_RUNG, "{shape}: {}", chosen.name);
        }
    }
}
