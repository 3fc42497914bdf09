//! What is to be computed: C = alpha op(A) op(B) + beta C.
//!
//! Matrices are row-major. `op(A)` is M x K, so A itself is stored as M x K under `n` and as K x M under `t`
//! (transpose) and `c` (conjugate transpose); likewise B. Each matrix has a row stride of at least its number
//! of stored columns.

mod place;
mod touched;

use std::fmt;
use std::str::FromStr;

use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

pub use place::{Alignment, Offsets, Strides, alignment};
pub(crate) use touched::{moved_to_write, touched_bytes};

/// The extents of a product, written `MxNxK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows of C.
    pub m: i64,
    /// Columns of C.
    pub n: i64,
    /// Terms of each sum.
    pub k: i64,
}

impl Shape {
    /// A square product.
    pub const fn cube(n: i64) -> Shape {
        Shape { m: n, n, k: n }
    }

    /// Real multiply-adds of the product for real elements.
    pub fn multiply_adds(&self) -> f64 {
        self.m as f64 * self.n as f64 * self.k as f64
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.m, self.n, self.k)
    }
}

impl FromStr for Shape {
    type Err = Diagnosis;

    fn from_str(text: &str) -> Result<Shape, Diagnosis> {
        let refuse = |because: String| {
            Diagnosis::new(format!("`{text}` is not a problem size"))
                .because(because)
                .instead("write MxNxK with three whole numbers, such as 512x256x1024")
        };
        let parts: Vec<&str> = text.split(['x', 'X', '×']).map(str::trim).collect();
        let [m, n, k] = parts.as_slice() else {
            return Err(refuse(format!(
                "it has {} part{}",
                parts.len(),
                if parts.len() == 1 { "" } else { "s" }
            )));
        };
        let extent = |name: &str, digits: &str| -> Result<i64, Diagnosis> {
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(refuse(format!("{name} is `{digits}`")));
            }
            digits.parse().map_err(|_| refuse(format!("{name} = {digits} does not fit in 63 bits")))
        };
        Ok(Shape { m: extent("M", m)?, n: extent("N", n)?, k: extent("K", k)? })
    }
}

/// What is done to an operand before it is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Nothing.
    None,
    /// Transposed.
    Transpose,
    /// Transposed and conjugated; the same as a transpose for real elements.
    ConjugateTranspose,
}

impl Op {
    /// The letter on the command line and in results.
    pub const fn letter(self) -> char {
        match self {
            Op::None => 'n',
            Op::Transpose => 't',
            Op::ConjugateTranspose => 'c',
        }
    }

    /// Whether rows and columns change places.
    pub const fn transposes(self) -> bool {
        !matches!(self, Op::None)
    }

    fn from_letter(letter: char) -> Option<Op> {
        match letter.to_ascii_lowercase() {
            'n' => Some(Op::None),
            't' => Some(Op::Transpose),
            'c' => Some(Op::ConjugateTranspose),
            _ => None,
        }
    }
}

/// The operation on each operand, written with a letter each: `nn`, `tn`, `nc`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// What is done to A.
    pub a: Op,
    /// What is done to B.
    pub b: Op,
}

impl Layout {
    /// Both operands as they are stored.
    pub const NN: Layout = Layout { a: Op::None, b: Op::None };
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.a.letter(), self.b.letter())
    }
}

impl FromStr for Layout {
    type Err = Diagnosis;

    fn from_str(text: &str) -> Result<Layout, Diagnosis> {
        let refuse = || {
            Diagnosis::new(format!("`{text}` is not a layout"))
                .instead("write one letter for each of A and B: n (as stored), t (transposed) or c (conjugate transposed), such as nn or tn")
        };
        let letters: Vec<char> = text.chars().filter(|c| *c != ',').collect();
        let [a, b] = letters.as_slice() else { return Err(refuse()) };
        Ok(Layout { a: Op::from_letter(*a).ok_or_else(refuse)?, b: Op::from_letter(*b).ok_or_else(refuse)? })
    }
}

/// The arithmetic of a problem: a stored element type; tf32, which is stored as f32 and multiplied with ten bits
/// after the point; or 16-bit operands with a result in the type of their sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Elements are multiplied as they are stored.
    Of(DType),
    /// Stored as f32, multiplied as tf32.
    Tf32,
    /// Operands of f16 or bf16, the result in f32.
    Widened(DType),
}

/// Of what products a kernel makes those of a problem, on which the bound of its error depends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Multiplications {
    /// Real ones as they are, and complex ones of all four products of the parts, as the definition says.
    #[default]
    Four,
    /// Complex ones of three: those of the real parts, of the imaginary parts, and of the sums of both.
    Three,
    /// Those of f32 of three products of tf32 parts (3xTF32), and complex ones of four such. Matrix units add up the terms of so many
    /// instructions one after another, eight each, before threads add them to the sum.
    Split {
        /// The instructions.
        chain: u8,
    },
}

impl Multiplications {
    /// The most instructions whose terms matrix units add up before threads do.
    pub const LONGEST_CHAIN: u8 = 16;
    /// Products of tf32 parts, of which matrix units add up as many as they ever do.
    pub const SPLIT: Multiplications = Multiplications::Split { chain: Multiplications::LONGEST_CHAIN };
}

impl Precision {
    /// Operands of 16 bits with a result in f32.
    const WIDENED: [Precision; 2] = [Precision::Widened(DType::F16), Precision::Widened(DType::Bf16)];

    /// The element type of the operands in memory.
    pub const fn storage(self) -> DType {
        match self {
            Precision::Of(dtype) | Precision::Widened(dtype) => dtype,
            Precision::Tf32 => DType::F32,
        }
    }

    /// The element type of the result in memory.
    pub const fn result(self) -> DType {
        match self {
            Precision::Of(dtype) => dtype,
            Precision::Tf32 | Precision::Widened(_) => DType::F32,
        }
    }

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Precision::Of(dtype) => dtype.name(),
            Precision::Tf32 => "tf32",
            Precision::Widened(DType::F16) => "f16-f32",
            Precision::Widened(_) => "bf16-f32",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = Diagnosis;

    fn from_str(text: &str) -> Result<Precision, Diagnosis> {
        match text.to_ascii_lowercase().as_str() {
            "tf32" => Ok(Precision::Tf32),
            "float32" | "single" => Ok(Precision::Of(DType::F32)),
            "float64" | "double" => Ok(Precision::Of(DType::F64)),
            "complex64" => Ok(Precision::Of(DType::C64)),
            "complex128" => Ok(Precision::Of(DType::C128)),
            "float16" | "half" => Ok(Precision::Of(DType::F16)),
            "bfloat16" => Ok(Precision::Of(DType::Bf16)),
            "int32" => Ok(Precision::Of(DType::I32)),
            name if let Some(widened) = Precision::WIDENED.iter().find(|p| p.name() == name) => Ok(*widened),
            name => match name.parse() {
                Ok(dtype) => Ok(Precision::Of(dtype)),
                Err(_) => {
                    let others = Precision::WIDENED.iter().chain(&[Precision::Tf32]).map(|p| p.name());
                    let known: Vec<_> = DType::ALL.iter().map(|t| t.name()).chain(others).collect();
                    Err(Diagnosis::new(format!("unknown element type `{text}`"))
                        .instead(format!("use one of {}", known.join(", "))))
                }
            },
        }
    }
}

/// One product to compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Extents of the product.
    pub shape: Shape,
    /// Arithmetic, and storage of the matrices.
    pub precision: Precision,
    /// What is done to the operands first.
    pub layout: Layout,
    /// Factor of the product. With 0, A and B are not read, as in BLAS.
    pub alpha: Complex64,
    /// Factor of the old C. With 0, C is not read, as in BLAS.
    pub beta: Complex64,
    /// Row strides of A, B and C, in elements.
    pub ld: Strides,
    /// Where A, B and C start, in elements behind an aligned address.
    pub offset: Offsets,
    /// Whether B is A: one matrix in memory, which is read once.
    pub same: bool,
}

impl Problem {
    /// The product `A B` of densely stored matrices: alpha 1, beta 0.
    pub fn new(shape: Shape, precision: Precision, layout: Layout) -> Problem {
        let mut problem = Problem {
            shape,
            precision,
            layout,
            alpha: Complex64::new(1.0, 0.0),
            beta: Complex64::new(0.0, 0.0),
            ld: Strides { a: 0, b: 0, c: 0 },
            offset: Offsets::default(),
            same: false,
        };
        let (a, b, c) = (problem.stored_a(), problem.stored_b(), problem.stored_c());
        problem.ld = Strides { a: a.1.max(1), b: b.1.max(1), c: c.1.max(1) };
        problem
    }

    /// The element type of A and B in memory.
    pub fn dtype(&self) -> DType {
        self.precision.storage()
    }

    /// The element type of C in memory.
    pub fn result_dtype(&self) -> DType {
        self.precision.result()
    }

    /// Rows and columns of A as stored.
    pub fn stored_a(&self) -> (i64, i64) {
        let Shape { m, k, .. } = self.shape;
        if self.layout.a.transposes() { (k, m) } else { (m, k) }
    }

    /// Rows and columns of B as stored.
    pub fn stored_b(&self) -> (i64, i64) {
        let Shape { n, k, .. } = self.shape;
        if self.layout.b.transposes() { (n, k) } else { (k, n) }
    }

    /// Rows and columns of C.
    pub fn stored_c(&self) -> (i64, i64) {
        (self.shape.m, self.shape.n)
    }

    /// How the matrices are aligned.
    pub fn alignment(&self) -> Alignment {
        let (operand, result) = (self.dtype().bytes(), self.result_dtype().bytes());
        let Offsets { a, b, c } = self.offset;
        Alignment { a: alignment(a * operand), b: alignment(b * operand), c: alignment(c * result) }
    }

    /// The row strides with which nothing lies between the rows of any matrix.
    pub fn strides_of_adjacent_rows(&self) -> Strides {
        Problem::new(self.shape, self.precision, self.layout).ld
    }

    /// Whether nothing lies between the rows of any matrix.
    pub fn rows_are_adjacent(&self) -> bool {
        self.ld == self.strides_of_adjacent_rows()
    }

    /// How the rows of the matrices are aligned: where they are some way apart, as their starts and their distance; where
    /// they are adjacent, as the first one, since dense rows can be read as one.
    pub fn alignment_of_rows(&self) -> Alignment {
        let (operand, result) = (self.dtype().bytes(), self.result_dtype().bytes());
        let Alignment { a, b, c } = self.alignment();
        let rows = |start: i64, stride: i64, width: i64, bytes: i64| {
            if stride == width { start } else { start.min(alignment(stride * bytes)) }
        };
        Alignment {
            a: rows(a, self.ld.a, self.stored_a().1, operand),
            b: rows(b, self.ld.b, self.stored_b().1, operand),
            c: rows(c, self.ld.c, self.stored_c().1, result),
        }
    }

    /// Real multiply-adds of the product: a complex one counts as four.
    pub fn multiply_adds(&self) -> f64 {
        self.shape.multiply_adds() * if self.dtype().is_complex() { 4.0 } else { 1.0 }
    }

    /// Floating-point operations of the product, as everybody counts them: two for each real multiply-add.
    pub fn flops(&self) -> f64 {
        2.0 * self.multiply_adds()
    }

    /// Bytes of A, B and C in memory, padding of rows included, of a problem that can be addressed.
    pub fn stored_bytes(&self) -> [usize; 3] {
        let (operand, result) = (self.dtype().bytes(), self.result_dtype().bytes());
        [
            (self.stored_a().0 * self.ld.a * operand) as usize,
            (self.stored_b().0 * self.ld.b * operand) as usize,
            (self.stored_c().0 * self.ld.c * result) as usize,
        ]
    }

    /// Bytes before A, B and C, behind an aligned address.
    pub fn bytes_before(&self) -> [usize; 3] {
        let (operand, result) = (self.dtype().bytes(), self.result_dtype().bytes());
        let Offsets { a, b, c } = self.offset;
        [a * operand, b * operand, c * result].map(|bytes| bytes as usize)
    }

    /// Bytes of the matrices in memory and of what lies before them, or a refusal where that passes what can be
    /// addressed.
    pub fn bytes(&self) -> Result<i64, Diagnosis> {
        let (operand, result) = (self.dtype().bytes(), self.result_dtype().bytes());
        let matrices = [
            (self.stored_a().0, self.ld.a, self.offset.a, operand),
            (if self.same { 0 } else { self.stored_b().0 }, self.ld.b, self.offset.b, operand),
            (self.stored_c().0, self.ld.c, self.offset.c, result),
        ];
        matrices
            .into_iter()
            .try_fold(0i64, |sum, (rows, ld, before, element)| {
                let elements = rows.checked_mul(ld)?.checked_add(before)?;
                sum.checked_add(elements.checked_mul(element)?)
            })
            .ok_or_else(|| {
                Diagnosis::new(format!("{} in {} is too large", self.shape, self.precision))
                    .because("its matrices would not fit in a 63-bit address space")
                    .instead("choose a smaller size")
            })
    }

    /// Refuses a problem that has no meaning: short row strides, factors the element type cannot hold, or one matrix
    /// for two operands that are stored differently.
    pub fn check(&self) -> Result<(), Diagnosis> {
        let (a, b) = (self.stored_a(), self.stored_b());
        if self.same && (a != b || self.ld.a != self.ld.b) {
            let stored = |(rows, columns), ld| format!("{rows}x{columns} with rows {ld} apart");
            return Err(Diagnosis::new(format!("B cannot be A for {} {}", self.shape, self.layout))
                .because(format!("A is stored as {}, B as {}", stored(a, self.ld.a), stored(b, self.ld.b)))
                .instead("give M = N and --layout tn, cn or nt, and the same --lda and --ldb"));
        }
        if self.same && self.offset.a != self.offset.b {
            let Offsets { a, b, .. } = self.offset;
            return Err(Diagnosis::new("B cannot be A where they start in different places")
                .because(format!("A starts {a} elements behind an aligned address, B {b}"))
                .instead("give both the same --offset"));
        }
        let offsets = [("A", self.offset.a), ("B", self.offset.b), ("C", self.offset.c)];
        if let Some((name, offset)) = offsets.into_iter().find(|(_, offset)| *offset < 0) {
            return Err(Diagnosis::new(format!("{name} starts at element {offset}"))
                .instead("give a number of elements that is not negative"));
        }
        let strides = [
            ("lda", self.ld.a, self.stored_a()),
            ("ldb", self.ld.b, self.stored_b()),
            ("ldc", self.ld.c, self.stored_c()),
        ];
        for (name, ld, (rows, columns)) in strides {
            if ld < columns.max(1) {
                return Err(Diagnosis::new(format!("--{name} {ld} is too short"))
                    .because(format!("a row of the stored {rows}x{columns} matrix has {columns} elements"))
                    .instead(format!("give at least {}", columns.max(1))));
            }
        }
        for (name, factor) in [("alpha", self.alpha), ("beta", self.beta)] {
            if factor.im != 0.0 && !self.dtype().is_complex() {
                return Err(Diagnosis::new(format!("--{name} has an imaginary part"))
                    .because(format!("the elements are {}", self.precision))
                    .instead("give a real number, or use --dtype c64 or c128"));
            }
            let whole = factor.re.fract() == 0.0 && factor.re.abs() <= f64::from(i32::MAX);
            if self.dtype() == DType::I32 && !whole {
                return Err(Diagnosis::new(format!("--{name} {} is not a 32-bit integer", factor.re))
                    .because("the elements are i32")
                    .instead("give a whole number"));
            }
        }
        self.bytes().map(|_| ())
    }
}

/// Reads a factor: a real number, or a complex one written `1.5+2i`, `-3i` or `1.5,2`.
pub fn parse_factor(text: &str) -> Result<Complex64, Diagnosis> {
    let refuse = || {
        Diagnosis::new(format!("`{text}` is not a number"))
            .instead("write a real number such as 1.5, or a complex one such as 1.5+2i or 1.5,2")
    };
    let text_without_spaces: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if let Some((re, im)) = text_without_spaces.split_once(',') {
        return match (re.parse(), im.parse()) {
            (Ok(re), Ok(im)) => Ok(Complex64::new(re, im)),
            _ => Err(refuse()),
        };
    }
    if let Ok(re) = text_without_spaces.parse::<f64>() {
        return Ok(Complex64::new(re, 0.0));
    }
    text_without_spaces.parse::<Complex64>().map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use super::{Alignment, Layout, Offsets, Op, Precision, Problem, Shape, alignment, parse_factor};
    use num_complex::Complex64;
    use warpwright_core::dtype::DType;

    fn problem(shape: &str, dtype: &str, layout: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
    }

    #[test]
    fn shapes_are_read_and_printed() {
        assert_eq!("512x256X1024".parse::<Shape>().unwrap(), Shape { m: 512, n: 256, k: 1024 });
        assert_eq!("0x1x2".parse::<Shape>().unwrap().to_string(), "0x1x2");
    }

    #[test]
    fn a_bad_shape_says_what_is_wrong_and_what_to_write() {
        let message = |text: &str| text.parse::<Shape>().unwrap_err().to_string();
        assert_eq!(
            message("512x512"),
            "`512x512` is not a problem size, because it has 2 parts; write MxNxK with three whole numbers, such as 512x256x1024"
        );
        assert!(message("5x-1x3").contains("N is `-1`"));
        assert!(message("5x1x").contains("K is ``"));
        assert!(message("9223372036854775808x1x1").contains("does not fit in 63 bits"));
    }

    #[test]
    fn layouts_say_how_operands_are_stored() {
        let p = problem("2x3x5", "f32", "tc");
        assert_eq!(p.layout, Layout { a: Op::Transpose, b: Op::ConjugateTranspose });
        assert_eq!((p.stored_a(), p.stored_b(), p.stored_c()), ((5, 2), (3, 5), (2, 3)));
        assert_eq!((p.ld.a, p.ld.b, p.ld.c), (2, 5, 3));
        assert_eq!("N,t".parse::<Layout>().unwrap().to_string(), "nt");
        assert!("nnn".parse::<Layout>().unwrap_err().to_string().contains("one letter for each of A and B"));
        assert!("nx".parse::<Layout>().is_err());
    }

    #[test]
    fn element_types_follow_numpy_and_tf32_is_stored_as_f32() {
        assert_eq!("complex64".parse::<Precision>().unwrap(), Precision::Of(DType::C64));
        assert_eq!("tf32".parse::<Precision>().unwrap().storage(), DType::F32);
        let widened = "bf16-f32".parse::<Precision>().unwrap();
        assert_eq!(
            (widened.storage(), widened.result(), widened.name()),
            (DType::Bf16, DType::F32, "bf16-f32")
        );
        let message = "f8".parse::<Precision>().unwrap_err().to_string();
        assert!(
            message.contains("`f8`") && message.contains("bf16") && message.contains("tf32"),
            "{message}"
        );
    }

    #[test]
    fn sizes_that_cannot_be_addressed_are_refused() {
        assert_eq!(problem("10x20x30", "f64", "nn").bytes().unwrap(), 8 * (300 + 600 + 200));
        assert_eq!(problem("10x20x30", "f16-f32", "nn").bytes().unwrap(), 2 * (300 + 600) + 4 * 200);
        assert!(problem("4000000000x4000000000x1", "c128", "nn").bytes().is_err());
    }

    #[test]
    fn meaningless_problems_are_refused() {
        let mut p = problem("4x5x6", "f32", "nn");
        assert!(p.check().is_ok());
        p.ld.a = 5;
        assert!(p.check().unwrap_err().to_string().contains("give at least 6"));
        p.ld.a = 6;
        p.alpha = Complex64::new(1.0, 1.0);
        assert!(p.check().unwrap_err().to_string().contains("imaginary"));
        let mut p = problem("4x5x6", "i32", "nn");
        p.beta = Complex64::new(0.5, 0.0);
        assert!(p.check().unwrap_err().to_string().contains("whole number"));
    }

    #[test]
    fn b_is_a_where_both_are_stored_alike() {
        let mut p = problem("4x4x6", "f32", "tn");
        p.same = true;
        assert!(p.check().is_ok());
        assert_eq!(p.bytes().unwrap(), 4 * (24 + 16));
        p.ld.b = 5;
        assert!(p.check().unwrap_err().to_string().contains("rows 5 apart"));
        (p.ld.b, p.offset.a) = (4, 1);
        assert!(p.check().unwrap_err().to_string().contains("start in different places"));
        p.offset.b = 1;
        assert!(p.check().is_ok());
        let mut p = problem("4x5x6", "f32", "tn");
        p.same = true;
        assert!(p.check().unwrap_err().to_string().contains("give M = N"));
    }

    #[test]
    fn matrices_may_start_anywhere() {
        let mut p = problem("4x5x6", "f32", "nn");
        assert_eq!((p.alignment(), p.alignment().to_string()), (Alignment::default(), String::new()));
        p.offset = "1, 2,3".parse().unwrap();
        assert_eq!(p.alignment(), Alignment { a: 4, b: 8, c: 4 });
        assert_eq!(p.alignment_of_rows(), p.alignment(), "dense rows are one");
        let mut padded = Problem { offset: Offsets::default(), ..p };
        (padded.ld.a, padded.ld.b) = (padded.stored_a().1 + 1, (padded.stored_b().1 / 4 + 1) * 4);
        let bytes = padded.dtype().bytes();
        let rows = padded.alignment_of_rows();
        assert_eq!((rows.a, rows.b), (alignment(padded.ld.a * bytes), alignment(padded.ld.b * bytes)));
        assert!(rows.a < rows.b && rows.b == Alignment::MOST, "{rows:?}");
        assert_eq!(p.alignment().to_string(), "_a4_b8_c4");
        assert_eq!(p.bytes().unwrap(), 4 * (24 + 30 + 20 + 6));
        assert!(p.check().is_ok());
        p.offset.b = 8;
        assert_eq!(p.alignment().b, 16);
        p.offset.c = -1;
        assert!(p.check().unwrap_err().to_string().contains("C starts at element -1"));
        for (dtype, aligned) in [("bf16-f32", [2, 4]), ("c64", [8, 8]), ("c128", [16, 16])] {
            let mut p = problem("4x5x6", dtype, "nn");
            (p.offset.a, p.offset.c) = (1, 1);
            assert_eq!([p.alignment().a, p.alignment().c], aligned, "{dtype}");
        }
        for text in ["1", "1,2", "1,2,3,4", "1,-2,3", "1,x,3", ""] {
            let message = text.parse::<Offsets>().unwrap_err().to_string();
            assert!(message.contains("three whole numbers of elements"), "{message}");
        }
    }

    #[test]
    fn factors_may_be_complex() {
        assert_eq!(parse_factor("-1.5e2").unwrap(), Complex64::new(-150.0, 0.0));
        assert_eq!(parse_factor("1.5+2i").unwrap(), Complex64::new(1.5, 2.0));
        assert_eq!(parse_factor("-3i").unwrap(), Complex64::new(0.0, -3.0));
        assert_eq!(parse_factor("1, 2").unwrap(), Complex64::new(1.0, 2.0));
        assert!(parse_factor("one").unwrap_err().to_string().contains("not a number"));
    }
}
