//! Points that are wanted, and their kernels as CUDA text.

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::emit::cuda::Source;
use warpwright_core::ir::Program;
use warpwright_core::target::Target;

use super::{Figure, Key, Operation, Placement, Size, length};
use crate::kernels::family::{Choice, Family};
use crate::problem::{Multiplications, Problem};
use crate::report::ChosenBy;
use crate::tune::file::WisdomFile;
use crate::tune::record::{Gpu, hash};
use crate::tune::summary;
use crate::tune::wisdom::Wisdom;
use crate::{choose, compile, kernels};

/// A point that is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What it is.
    pub key: Key,
    /// The product.
    pub problem: Problem,
    /// All parameters of its kernel; none where it is the one that is chosen for the product.
    pub choice: Option<Choice>,
}

/// A point that can be measured.
#[derive(Clone, Debug)]
pub struct Job {
    /// The parameters of the kernel.
    pub parameters: Choice,
    /// Who chose them.
    pub chosen_by: ChosenBy,
    /// Of what products the kernel makes those of the problem.
    pub multiplications: Multiplications,
    /// The finished program.
    pub program: Program,
    /// Its CUDA text.
    pub source: Source,
    /// The hash of that text.
    pub text: String,
}

impl Wanted {
    /// A point of the main figure.
    pub fn at_width(operation: Operation, dtype: DType, width: i64, bytes: usize) -> Wanted {
        let problem = operation.problem(dtype, width, length(dtype, width, bytes));
        Wanted::new(Figure::Widths, operation, dtype, problem)
    }

    /// A point of a figure, by the kernel that is chosen.
    pub fn new(figure: Figure, operation: Operation, dtype: DType, problem: Problem) -> Wanted {
        let size = Size { m: problem.shape.m, n: problem.shape.n, k: problem.shape.k };
        let dtype = dtype.name().to_string();
        Wanted {
            key: Key {
                figure,
                operation,
                dtype,
                size,
                placement: Placement::of(&problem),
                varied: Choice::default(),
            },
            problem,
            choice: None,
        }
    }

    /// The family of the product.
    ///
    /// # Errors
    /// None of that name, which would be a fault of this program.
    pub fn family(&self) -> Result<&'static Family, Diagnosis> {
        let name = self.key.operation.name();
        kernels::family(name).ok_or_else(|| Diagnosis::new(format!("there is no family `{name}`")))
    }
}

/// What kernels are made for, and by which wisdom they are chosen.
pub struct Maker<'a> {
    target: &'a Target,
    gpu: Gpu,
    wisdom: Vec<(&'static str, Wisdom)>,
}

impl Maker<'_> {
    /// The user's wisdom, and what is worth saying about it.
    ///
    /// # Errors
    /// Wisdom that is there and cannot be read.
    pub fn new(target: &Target, gpu: Gpu) -> Result<(Maker<'_>, Vec<String>), Diagnosis> {
        let file = WisdomFile::standard();
        let (mut wisdom, mut notices) = (Vec::new(), Vec::new());
        for operation in Operation::ALL {
            let (known, said) = summary::known(operation.name(), file.as_ref(), false)?;
            wisdom.push((operation.name(), known));
            notices.extend(said);
        }
        notices.dedup();
        Ok((Maker { target, gpu, wisdom }, notices))
    }

    /// By the model alone.
    #[cfg(test)]
    pub fn without_wisdom(target: &Target) -> Maker<'_> {
        Maker { target, gpu: Gpu::of_target(target), wisdom: Vec::new() }
    }

    /// The kernel of a point.
    ///
    /// # Errors
    /// Parameters that make none, and products that have none.
    pub fn make(&self, wanted: &Wanted) -> Result<Job, Diagnosis> {
        let (family, problem) = (wanted.family()?, &wanted.problem);
        let nothing = Wisdom::default();
        let known = self.wisdom.iter().find(|(name, _)| *name == family.name);
        let wisdom = known.map_or(&nothing, |(_, wisdom)| wisdom);
        let (kernel, chosen_by) = match &wanted.choice {
            Some(choice) => (family.build(problem, choice)?, ChosenBy::Named),
            None => {
                let permissions = wanted.key.figure.permissions();
                choose::parameters(family, problem, self.target, &self.gpu, wisdom, permissions)?
            }
        };
        let valid = compile::validated(kernel.program(), self.target)?;
        let source = compile::cuda_for(&valid, problem)?;
        Ok(Job {
            multiplications: kernel.multiplications(),
            parameters: kernel.parameters,
            chosen_by,
            program: valid.program().clone(),
            text: hash(source.text.as_bytes()),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Maker, Wanted};
    use crate::bench::tsm::Operation;
    use crate::kernels::family::Choice;
    use crate::report::ChosenBy;
    use warpwright_core::dtype::DType;
    use warpwright_core::target;

    #[test]
    fn every_product_and_type_has_a_kernel_and_texts_tell_kernels_apart() {
        let maker = Maker::without_wisdom(target::DEFAULT);
        for operation in Operation::ALL {
            for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
                let wanted = Wanted::at_width(operation, dtype, 37, 2 << 30);
                let job = maker.make(&wanted).unwrap();
                assert_eq!(job.chosen_by, ChosenBy::Model);
                assert_eq!(maker.make(&wanted).unwrap().text, job.text);
                let given = Wanted { choice: Some(job.parameters.clone()), ..wanted.clone() };
                assert_eq!(maker.make(&given).unwrap().text, job.text);
                let other = Wanted::at_width(operation, dtype, 36, 2 << 30);
                assert_ne!(maker.make(&other).unwrap().text, job.text);
                let nonsense = Choice::default().with("unit", "fma");
                assert!(maker.make(&Wanted { choice: Some(nonsense), ..wanted }).is_err());
            }
        }
    }
}
