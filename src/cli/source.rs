//! Where a kernel comes from: a name, a schedule in a file, or a program in a file.

use std::path::Path;

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::{Program, parse};
use warpwright_core::target::Target;

use crate::file::unreadable;
use crate::kernels::family::{Choice, Value, Word};
use crate::kernels::{self, Kernel, Variant};
use crate::problem::Problem;
use crate::run::Subject;

/// What a user names as a kernel.
pub enum Source {
    /// A kernel of the library, or one made from a schedule: it has a specification and steps.
    Kernel(Box<Kernel>),
    /// A finished program in text form.
    Program(Program),
}

impl Source {
    /// The kernel as it is run.
    pub fn into_subject(self, variant: Variant) -> Subject {
        match self {
            Source::Kernel(kernel) => Subject::from(&*kernel),
            Source::Program(program) => Subject::written(program, variant),
        }
    }

    /// The name to call it by.
    pub fn name(&self) -> &str {
        match self {
            Source::Kernel(kernel) => &kernel.name,
            Source::Program(program) => &program.name,
        }
    }
}

/// Finds a kernel by name, or reads the file of that name: a program if it begins with `program`, else a schedule.
pub fn find(name: &str, variant: Variant) -> Result<Source, Diagnosis> {
    match kernels::by_name(name) {
        Ok(recipe) => kernels::build(recipe, variant).map(|k| Source::Kernel(Box::new(k))),
        Err(unknown) => {
            let path = Path::new(name);
            let is_a_path = path.extension().is_some() || path.components().count() > 1;
            if !path.exists() && !is_a_path {
                return Err(unknown.because("it is neither in the library nor a file"));
            }
            from_file(path, variant)
        }
    }
}

/// Finds a kernel by name or file as [`find`] does, or makes one of a family for a product, with these parameters and the
/// usual ones besides.
pub fn with_parameters(
    name: &str,
    variant: Variant,
    problem: Option<&Problem>,
    parameters: &[(Word, Value)],
    gpu: &Target,
) -> Result<Source, Diagnosis> {
    let Some(family) = kernels::family(name) else {
        if problem.is_some() || !parameters.is_empty() {
            return Err(Diagnosis::new(format!("{name} is no family of kernels"))
                .because("only kernels of a family depend on a size and have parameters")
                .instead("leave out --size and --param, or name a family: tsmttsm, tsmm or tiled"));
        }
        return find(name, variant);
    };
    let problem = problem.ok_or_else(|| {
        Diagnosis::new(format!("{} has a kernel for each size", family.name)).instead("give --size MxNxK")
    })?;
    let choice = family.complete(&Choice::of(parameters), problem, gpu)?;
    family.build(problem, &choice).map(|kernel| Source::Kernel(Box::new(kernel)))
}

/// Reads a program or a schedule from a file.
pub fn from_file(path: &Path, variant: Variant) -> Result<Source, Diagnosis> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
    let first =
        text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or_default();
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    if first.starts_with("program ") {
        parse::program(&text).map(Source::Program).map_err(|d| d.at(place))
    } else {
        kernels::from_schedule(&stem, &text, variant)
            .map(|k| Source::Kernel(Box::new(k)))
            .map_err(|d| d.at(place))
    }
}
