//! Which kernel to use when nobody names one.

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;

use crate::bind::Binding;
use crate::compile;
use crate::kernels::{self, Kernel, Recipe, Variant};
use crate::problem::Problem;

/// A sensible kernel for a problem on a GPU: the highest rung of the ladder `hgemm`, else of `sgemm` up to the fastest,
/// that has a schedule for the variant, fits the GPU, and whose assumptions hold of the problem. Products that are
/// small in C get one with small tiles.
pub fn kernel(problem: &Problem, target: &Target) -> Result<Kernel, Diagnosis> {
    let variant = Variant { precision: problem.precision, layout: problem.layout };
    let small = problem.shape.m <= SMALL || problem.shape.n <= SMALL;
    let mut rungs = kernels::ladder("sgemm")?;
    rungs.retain(|r| r.rung <= if small { LAST_SMALL_RUNG } else { FASTEST_RUNG });
    if !small {
        rungs.extend(kernels::ladder("hgemm")?);
    }
    rungs.into_iter().rev().find_map(|recipe| fitting(recipe, variant, problem, target)).ok_or_else(|| {
        Diagnosis::new(format!("no kernel fits {} {} {}", problem.shape, problem.precision, problem.layout))
            .instead("name one with --kernel to see why")
    })
}

/// Products with at most this many rows or columns would waste most of a large tile.
const SMALL: i64 = 48;
/// The last rung with tiles of 32 x 32.
const LAST_SMALL_RUNG: u32 = 3;
/// The fastest rung on an H200 at the square sizes from 1024 to 8192 in bench/results; the one after it is slower.
const FASTEST_RUNG: u32 = 13;

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
