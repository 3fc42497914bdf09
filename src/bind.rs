//! A problem as the arguments of a program.
//!
//! Programs of the GEMM kind name their parameters alike: sizes `M`, `N` and `K`, scalars `alpha` and `beta`, the
//! flags `beta0` (beta is 0) and `alpha1` (alpha is 1), and tensors `A`, `B` and `C`, each with its row stride. A program need not have them
//! all. Anything else is refused here, before anything runs.

use std::collections::HashMap;

use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::ir::{ALIGNMENT, Buffer, ParamKind, Program};
use warpwright_core::sym::Sym;

use crate::problem::{Problem, alignment};

/// One of the three matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The left operand.
    A,
    /// The right operand.
    B,
    /// The result, and with beta the old one.
    C,
}

impl Role {
    /// The matrix that programs call by this name.
    pub fn named(name: &str) -> Option<Role> {
        match name {
            "A" => Some(Role::A),
            "B" => Some(Role::B),
            "C" => Some(Role::C),
            _ => None,
        }
    }
}

/// What is passed for one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// A size, of the problem or of the launch.
    Size(i64),
    /// A truth that the host computes.
    Flag(bool),
    /// A number.
    Scalar(Complex64),
    /// A matrix.
    Matrix(Role),
}

/// The arguments of a program for one problem.
#[derive(Clone, Debug)]
pub struct Binding {
    /// One for each parameter, in order.
    pub arguments: Vec<Argument>,
    values: HashMap<Sym, i64>,
    /// Bytes before the matrix, of tensors that are one row of elements.
    before: HashMap<Sym, i64>,
}

impl Binding {
    /// Binds the parameters of a program to a problem; `launch_size` is passed for every launch parameter.
    pub fn new(program: &Program, problem: &Problem, launch_size: i64) -> Result<Binding, Diagnosis> {
        let place = |d: Diagnosis| d.at(format!("kernel {}", program.name));
        let mut values = HashMap::new();
        let mut arguments = Vec::new();
        for param in &program.params {
            let argument = argument(param.sym.name(), &param.kind, problem, launch_size).map_err(place)?;
            match argument {
                Argument::Size(value) => {
                    values.insert(param.sym.clone(), value);
                }
                Argument::Flag(truth) => {
                    values.insert(param.sym.clone(), i64::from(truth));
                }
                Argument::Scalar(_) | Argument::Matrix(_) => {}
            }
            arguments.push(argument);
        }
        for buffer in program.tensors() {
            if let Some(stride) = &buffer.row_stride {
                let role = role(buffer).map_err(place)?;
                values.insert(stride.clone(), row_stride(role, problem) * parts(buffer, role, problem));
            }
        }
        let mut binding = Binding { arguments, values, before: HashMap::new() };
        for buffer in program.tensors() {
            if let Some(before) = binding.before(buffer, problem) {
                binding.before.insert(buffer.sym.clone(), before);
            }
            binding.check_tensor(buffer, problem).map_err(place)?;
        }
        binding.check_assumptions(program, problem).map_err(place)?;
        Ok(binding)
    }

    /// The value of a size, a stride or a flag.
    pub fn value(&self, sym: &Sym) -> Option<i64> {
        self.values.get(sym).copied()
    }

    /// Bytes by which a tensor starts before its matrix.
    pub fn bytes_before(&self, sym: &Sym) -> i64 {
        self.before.get(sym).copied().unwrap_or(0)
    }

    /// Bytes before the matrix, where a tensor is declared as one row of elements that holds its rows, what lies between them, and what lies before
    /// the first in the 16 bytes where it starts.
    fn before(&self, buffer: &Buffer, problem: &Problem) -> Option<i64> {
        let role = role(buffer).ok()?;
        let parts = parts(buffer, role, problem);
        let (rows, columns) = stored(role, problem);
        let [dim] = &buffer.dims[..] else { return None };
        let of_rows = |more: i64| dim.extent.eval(&|s| self.value(s).map(|value| value + more)).ok();
        let (extent, with_one_more) = (of_rows(0)?, of_rows(1)?);
        // Of no rows nothing is read, wherever they would start.
        if rows == 0 {
            return Some(offset(role, problem) * dtype(role, problem).bytes() % ALIGNMENT);
        }
        let stride = row_stride(role, problem) * parts;
        let all = (rows - 1).checked_mul(stride)?.checked_add(columns * parts)?;
        let before = (extent - all) * buffer.dtype.bytes();
        (with_one_more - extent == stride && (0..ALIGNMENT).contains(&before)).then_some(before)
    }

    /// Compares the type and the extents of a tensor with those of its matrix.
    fn check_tensor(&self, buffer: &Buffer, problem: &Problem) -> Result<(), Diagnosis> {
        let role = role(buffer)?;
        let parts = parts(buffer, role, problem);
        let (rows, columns) = stored(role, problem);
        let columns = columns * parts;
        if parts == 1 && buffer.dtype != dtype(role, problem) {
            return Err(Diagnosis::new(format!("its {} is in {}", buffer.sym, buffer.dtype))
                .because(format!("the problem is in {}", problem.precision))
                .instead("choose a kernel for this type, or another --dtype"));
        }
        let extents: Result<Vec<i64>, Sym> =
            buffer.dims.iter().map(|d| d.extent.eval(&|s| self.value(s))).collect();
        let extents = extents.map_err(|sym| Diagnosis::new(format!("the size {sym} is not a parameter")))?;
        let stride = row_stride(role, problem) * parts;
        let flat = extents.len() == 1;
        let before = self.before.get(&buffer.sym).copied();
        if extents != [rows, columns]
            && before.is_none()
            && !(flat && rows.checked_mul(columns) == Some(extents[0]))
        {
            return Err(Diagnosis::new(format!("its {} is stored as {}", buffer.sym, joined(&extents)))
                .because(format!(
                    "layout {} of {} stores it as {rows}x{columns}",
                    problem.layout, problem.shape
                ))
                .instead("choose a kernel for this layout and size"));
        }
        let start = offset(role, problem) * dtype(role, problem).bytes() - before.unwrap_or(0);
        if start % buffer.align != 0 {
            return Err(Diagnosis::new(format!("its {} starts at a multiple of {} bytes", buffer.sym, buffer.align))
                .because(format!("the problem's starts {start} bytes behind one"))
                .instead(format!(
                    "leave out --offset, choose another kernel, or declare the tensor `align {}` in a program of your own",
                    alignment(start)
                )));
        }
        if buffer.row_stride.is_none() && before.is_none() && stride != columns.max(1) {
            return Err(Diagnosis::new(format!("its {} has no row stride", buffer.sym))
                .because(format!("the problem asks for one of {stride} for rows of {columns}"))
                .instead("leave out --lda, --ldb and --ldc, or choose another kernel"));
        }
        Ok(())
    }

    /// Every assumption of the program has to hold of the problem.
    fn check_assumptions(&self, program: &Program, problem: &Problem) -> Result<(), Diagnosis> {
        for assumption in &program.assumes {
            let text = assumption.text(&warpwright_core::index::PlainNames);
            match assumption.eval(&|s| self.value(s)) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(Diagnosis::new(format!("it assumes {text}"))
                        .because(format!(
                            "that does not hold for {} with lda {}, ldb {}, ldc {}",
                            problem.shape, problem.ld.a, problem.ld.b, problem.ld.c
                        ))
                        .instead("choose another kernel, or sizes and strides that fit"));
                }
                Err(sym) => {
                    return Err(Diagnosis::new(format!("it assumes {text}, and {sym} is not a parameter")));
                }
            }
        }
        Ok(())
    }
}

fn argument(
    name: &str,
    kind: &ParamKind,
    problem: &Problem,
    launch_size: i64,
) -> Result<Argument, Diagnosis> {
    let shape = problem.shape;
    let unknown = |what: &str, known: &str| {
        Diagnosis::new(format!("it has {what} `{name}`"))
            .because(format!("a matrix product has {known}"))
            .instead("rename it, or check the program with a specification of its own")
    };
    match kind {
        ParamKind::Size => match name {
            "M" => Ok(Argument::Size(shape.m)),
            "N" => Ok(Argument::Size(shape.n)),
            "K" => Ok(Argument::Size(shape.k)),
            _ => Err(unknown("a size", "the sizes M, N and K")),
        },
        ParamKind::Launch => Ok(Argument::Size(launch_size.max(1))),
        ParamKind::Flag => match name {
            "beta0" => Ok(Argument::Flag(problem.beta == Complex64::new(0.0, 0.0))),
            "alpha1" => Ok(Argument::Flag(problem.alpha == Complex64::new(1.0, 0.0))),
            _ => Err(unknown("a flag", "the flags beta0 and alpha1")),
        },
        ParamKind::Scalar(_) => match name {
            "alpha" => Ok(Argument::Scalar(problem.alpha)),
            "beta" => Ok(Argument::Scalar(problem.beta)),
            _ => Err(unknown("a scalar", "the scalars alpha and beta")),
        },
        ParamKind::Tensor(buffer) => role(buffer).map(Argument::Matrix),
    }
}

fn role(buffer: &Buffer) -> Result<Role, Diagnosis> {
    Role::named(buffer.sym.name()).ok_or_else(|| {
        Diagnosis::new(format!("it has a tensor `{}`", buffer.sym))
            .because("a matrix product has the tensors A, B and C")
            .instead("rename it, or check the program with a specification of its own")
    })
}

/// How many elements of a tensor make one of its matrix: two where complex numbers are declared as the real numbers that
/// they are stored as, real and imaginary parts side by side.
fn parts(buffer: &Buffer, role: Role, problem: &Problem) -> i64 {
    let dtype = dtype(role, problem);
    if dtype.is_complex() && buffer.dtype == dtype.real() { 2 } else { 1 }
}

fn dtype(role: Role, problem: &Problem) -> DType {
    if role == Role::C { problem.result_dtype() } else { problem.dtype() }
}

fn stored(role: Role, problem: &Problem) -> (i64, i64) {
    match role {
        Role::A => problem.stored_a(),
        Role::B => problem.stored_b(),
        Role::C => problem.stored_c(),
    }
}

fn offset(role: Role, problem: &Problem) -> i64 {
    match role {
        Role::A => problem.offset.a,
        Role::B => problem.offset.b,
        Role::C => problem.offset.c,
    }
}

fn row_stride(role: Role, problem: &Problem) -> i64 {
    match role {
        Role::A => problem.ld.a,
        Role::B => problem.ld.b,
        Role::C => problem.ld.c,
    }
}

fn joined(extents: &[i64]) -> String {
    extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::{Argument, Binding, Role};
    use crate::problem::Problem;
    use num_complex::Complex64;
    use warpwright_core::ir::{Program, parse};

    const KERNEL: &str = "program k(M: size, N: size, K: size, G: launch, alpha: f32, beta: f32, beta0: flag,
            A: in f32[M, K; lda], B: in f32[K, N; ldb], C: inout f32[M, N]) assume ldb % 4 == 0 {
        for b in block.x(G) { for t in threads(1@1) { } }
    }";

    fn program() -> Program {
        parse::program(KERNEL).expect("reads")
    }

    fn problem(shape: &str, dtype: &str, layout: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
    }

    fn refusal(problem: &Problem) -> String {
        Binding::new(&program(), problem, 1).unwrap_err().to_string()
    }

    #[test]
    fn parameters_get_the_values_of_the_problem() {
        let program = program();
        let mut problem = problem("3x8x5", "f32", "nn");
        problem.alpha = Complex64::new(2.0, 0.0);
        problem.ld.a = 6;
        let binding = Binding::new(&program, &problem, 7).unwrap();
        let sizes: Vec<_> = binding.arguments[..4].to_vec();
        assert_eq!(sizes, [3, 8, 5, 7].map(Argument::Size));
        assert_eq!(binding.arguments[4], Argument::Scalar(Complex64::new(2.0, 0.0)));
        assert_eq!(binding.arguments[6], Argument::Flag(true));
        assert_eq!(binding.arguments[9], Argument::Matrix(Role::C));
        let stride = program.tensors().next().unwrap().row_stride.clone().unwrap();
        assert_eq!(binding.value(&stride), Some(6));
    }

    #[test]
    fn a_problem_that_does_not_fit_is_refused_with_a_reason() {
        assert!(
            refusal(&problem("3x8x5", "f64", "nn"))
                .contains("its A is in f32, because the problem is in f64")
        );
        assert!(refusal(&problem("3x8x5", "f32", "tn")).contains("its A is stored as 3x5"));
        assert!(refusal(&problem("3x7x5", "f32", "nn")).contains("it assumes ldb%4 == 0"));
        let mut late = problem("3x8x5", "f32", "nn");
        late.offset.b = 3;
        let because =
            "its B starts at a multiple of 16 bytes, because the problem's starts 12 bytes behind one";
        assert!(
            refusal(&late).contains(because) && refusal(&late).contains("`align 4`"),
            "{}",
            refusal(&late)
        );
        late.offset.b = 4;
        assert!(Binding::new(&program(), &late, 1).is_ok());
        let mut wide = problem("3x8x5", "f32", "nn");
        wide.ld.c = 9;
        assert!(refusal(&wide).contains("its C has no row stride"));
    }

    #[test]
    fn a_matrix_is_one_row_of_elements_with_what_lies_between_its_rows_and_before_them() {
        let text = "program p(M: size, A: in f64[max(17*M, 0)], C: out f64[M, 1; ldc]) { }";
        let of = |extent: &str, stride: i64, offset: i64| {
            let program = parse::program(&text.replace("max(17*M, 0)", extent)).expect("reads");
            let mut problem = problem("5x1x16", "f64", "nn");
            (problem.ld.a, problem.offset.a) = (stride, offset);
            let sym = program.tensors().next().unwrap().sym.clone();
            Binding::new(&program, &problem, 1).map(|b| b.bytes_before(&sym)).map_err(|e| e.to_string())
        };
        // Dense rows, those with an element between them, and both behind an element.
        assert_eq!(of("16*M", 16, 0), Ok(0));
        assert_eq!(of("max(17*M - 1, 0)", 17, 2), Ok(0));
        assert_eq!(of("16*M + 1", 16, 1), Ok(8));
        assert_eq!(of("max(17*M, 0)", 17, 3), Ok(8));
        // Rows that stand apart otherwise, and those that start elsewhere.
        for (extent, stride) in [("16*M", 17), ("max(17*M - 1, 0)", 16), ("max(17*M - 1, 0)", 18)] {
            let refused = of(extent, stride, 0).unwrap_err();
            assert!(refused.contains("is stored as") || refused.contains("no row stride"), "{refused}");
        }
        for (extent, stride, offset) in [("16*M + 1", 16, 0), ("max(17*M - 1, 0)", 17, 1)] {
            let refused = of(extent, stride, offset).unwrap_err();
            assert!(refused.contains("starts at a multiple of 16 bytes"), "{refused}");
        }
    }

    #[test]
    fn other_parameters_are_refused() {
        let program = parse::program("program p(L: size, C: out f32[L]) { }").expect("reads");
        let message = Binding::new(&program, &problem("1x1x1", "f32", "nn"), 1).unwrap_err().to_string();
        assert!(message.contains("kernel p: it has a size `L`"), "{message}");
    }
}
