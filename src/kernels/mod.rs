//! Kernel families: each is an expression, schedules that shape it, and the shapes they are tested at.
//!
//! A [`Recipe`] names a kernel and says how its schedule is written for a [`Variant`] of the product. [`build`]
//! applies the schedule and gives the [`Kernel`]. Recipes use the public schedule language and nothing else; CUDA
//! text occurs nowhere here.

mod choice;
pub mod classes;
mod dgemm;
mod early;
pub mod family;
pub mod gemm;
pub(crate) mod granularity;
mod hgemm;
mod sgemm;
mod staging;
mod tiled;
mod tsmm;
mod tsmttsm;
mod tvm;
mod warps;

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_core::schedule::Schedule;

use self::family::{Choice, Family};
use crate::problem::{Alignment, Layout, Multiplications, Precision, Problem};

/// What a kernel of the GEMM kind is generated for. Sizes are arguments of the call, not of the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Element type and arithmetic.
    pub precision: Precision,
    /// How the operands are stored.
    pub layout: Layout,
    /// Where the matrices may start.
    pub align: Alignment,
}

impl Variant {
    /// For matrices that are aligned for every access.
    pub fn new(precision: Precision, layout: Layout) -> Variant {
        Variant { precision, layout, align: Alignment::default() }
    }

    /// For the matrices of a problem.
    pub fn of(problem: &Problem) -> Variant {
        Variant { precision: problem.precision, layout: problem.layout, align: problem.alignment() }
    }
}

/// How a kernel is made.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// The name on the command line, a C identifier.
    pub name: &'static str,
    /// The family it belongs to, which for a rung is its ladder.
    pub family: &'static str,
    /// Its number in the ladder.
    pub rung: u32,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it changes in the rung before, in one sentence.
    pub change: &'static str,
    /// Why that helps, or why it does not, in one more.
    pub why: &'static str,
    /// Its schedule for a variant, or why there is none.
    pub schedule: fn(Variant) -> Result<String, Diagnosis>,
}

/// A finished kernel: what it computes, how it was made, and the program it has become.
#[derive(Debug)]
pub struct Kernel {
    /// Its full name: that of the recipe, with the variant.
    pub name: String,
    /// The family it belongs to.
    pub family: String,
    /// What was chosen for the parameters of the family, if it has any.
    pub parameters: Choice,
    /// The specification, the program and the steps between them.
    pub schedule: Schedule,
}

impl Kernel {
    /// The product as mathematics.
    pub fn specification(&self) -> &Program {
        self.schedule.spec()
    }

    /// The finished program.
    pub fn program(&self) -> &Program {
        self.schedule.program()
    }

    /// Of how many real products it makes a complex one.
    pub fn multiplications(&self) -> Multiplications {
        family(&self.family).map_or(Multiplications::Four, |family| family.multiplications(&self.parameters))
    }
}

/// The families with parameters.
pub const FAMILIES: &[&Family] = &[&tsmttsm::FAMILY, &tsmm::FAMILY, &tiled::FAMILY];

/// Those of tall and skinny products.
pub const TALL_SKINNY: &[&Family] = &[&tsmttsm::FAMILY, &tsmm::FAMILY];

/// The family of that name.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().copied().find(|f| f.name.eq_ignore_ascii_case(name.trim()))
}

/// Every recipe, ladder by ladder and in the order of the rungs.
pub fn all() -> impl Iterator<Item = &'static Recipe> {
    sgemm::RUNGS.iter().chain(tvm::RUNGS).chain(hgemm::RUNGS).chain(dgemm::RUNGS)
}

/// The recipe of that name; a number may stand for a rung of the first ladder.
pub fn by_name(name: &str) -> Result<&'static Recipe, Diagnosis> {
    let wanted = name.trim().to_ascii_lowercase();
    all().find(|r| r.name == wanted || r.rung.to_string() == wanted).ok_or_else(|| {
        let known: Vec<_> = all().map(|r| r.name).collect();
        Diagnosis::new(format!("there is no kernel `{name}`"))
            .instead(format!("use one of {}", known.join(", ")))
    })
}

/// The rungs of a ladder.
pub fn ladder(name: &str) -> Result<Vec<&'static Recipe>, Diagnosis> {
    let rungs: Vec<_> = all().filter(|r| r.family == name).collect();
    if rungs.is_empty() {
        let mut known: Vec<_> = all().map(|r| r.family).collect();
        known.dedup();
        return Err(Diagnosis::new(format!("there is no ladder `{name}`"))
            .instead(format!("use one of {}", known.join(", "))));
    }
    Ok(rungs)
}

/// The full name of the kernel of a recipe for a variant.
pub fn full_name(recipe: &Recipe, variant: Variant) -> String {
    let precision = variant.precision.name().replace('-', "_");
    format!("{}_{precision}_{}{}", recipe.name, variant.layout, variant.align)
}

/// Makes the kernel of a recipe for a variant.
pub fn build(recipe: &Recipe, variant: Variant) -> Result<Kernel, Diagnosis> {
    let name = full_name(recipe, variant);
    let place = |d: Diagnosis| d.at(format!("kernel {name}"));
    let text = (recipe.schedule)(variant).map_err(place)?;
    let mut specification = gemm::specification(variant);
    specification.name.clone_from(&name);
    let schedule = Schedule::run(specification, &text).map_err(place)?;
    Ok(Kernel { name, family: recipe.family.to_string(), parameters: Choice::default(), schedule })
}

/// Makes a kernel from a schedule that a user has written.
pub fn from_schedule(name: &str, text: &str, variant: Variant) -> Result<Kernel, Diagnosis> {
    let schedule = Schedule::run(gemm::specification(variant), text)?;
    Ok(Kernel {
        name: name.to_string(),
        family: "schedule".to_string(),
        parameters: Choice::default(),
        schedule,
    })
}

#[cfg(test)]
mod tests {
    use super::{Variant, all, build, by_name, ladder};
    use warpwright_core::ir::parse;

    #[test]
    fn names_are_unique_and_rungs_ascend() {
        let names: Vec<_> = all().map(|r| r.name).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name} stands twice");
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{name}"
            );
        }
        let numbers: Vec<_> = ladder("sgemm").unwrap().iter().map(|r| r.rung).collect();
        assert!(numbers.windows(2).all(|w| w[0] < w[1]), "{numbers:?}");
        assert!(by_name("no_such").unwrap_err().to_string().contains(names[0]));
        assert!(ladder("no_such").is_err());
    }

    #[test]
    fn every_rung_says_what_it_changes_and_why_that_helps_in_a_sentence_each() {
        for recipe in all() {
            for sentence in [recipe.change, recipe.why] {
                let begins = sentence.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
                assert!(
                    begins && sentence.ends_with('.') && sentence.len() > 40,
                    "{}: {sentence}",
                    recipe.name
                );
            }
            let twice = all().filter(|r| r.why == recipe.why || r.change == recipe.why).count();
            assert_eq!(twice, 1, "{}: {}", recipe.name, recipe.why);
        }
    }

    #[test]
    fn every_recipe_makes_a_kernel_for_every_type_and_layout_it_claims() {
        for recipe in all() {
            for (dtype, layout) in [
                ("f32", "nn"),
                ("f64", "tn"),
                ("c128", "nc"),
                ("bf16", "nt"),
                ("f16-f32", "nn"),
                ("i32", "tt"),
            ] {
                let variant = Variant::new(dtype.parse().unwrap(), layout.parse().unwrap());
                if (recipe.schedule)(variant).is_err() {
                    continue;
                }
                let kernel = build(recipe, variant).unwrap_or_else(|e| panic!("{e}"));
                let read = parse::program(&kernel.program().to_string()).map(|p| p.to_string());
                assert_eq!(read, Ok(kernel.program().to_string()), "{}", kernel.name);
                assert!(
                    kernel.program().body != kernel.specification().body,
                    "{} changes nothing",
                    kernel.name
                );
            }
        }
    }
}
