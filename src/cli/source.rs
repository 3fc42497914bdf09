//! Where a kernel comes from: a name, a schedule in a file, or a program in a file.

use std::path::Path;

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::{Program, parse};

use crate::file::unreadable;
use crate::kernels::{self, Kernel, Variant};
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
