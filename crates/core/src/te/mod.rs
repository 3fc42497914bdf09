//! Tensor expressions: a product stated as mathematics.
//!
//! ```
//! use warpwright_core::dtype::DType;
//! use warpwright_core::te::{Expression, sum};
//!
//! let mut te = Expression::new("product");
//! let (m, n, k) = (te.size("M"), te.size("N"), te.size("K"));
//! let a = te.placeholder("A", DType::F32, &[&m, &k]);
//! let b = te.placeholder("B", DType::F32, &[&k, &n]);
//! let c = te.output("C", DType::F32, &[&m, &n]);
//! let r = te.reduce_axis("k", &k);
//! te.compute(&c, &["i", "j"], |at| sum(a.at(&[&at[0], &r.var()]) * b.at(&[&r.var(), &at[1]]), &[&r]));
//! let program = te.program();
//! assert_eq!(program.to_string(), "\
//! program product(M: size, N: size, K: size,
//!     A: in f32[M, K; lda], B: in f32[K, N; ldb], C: out f32[M, N; ldc])
//! {
//!   for i in 0..M, j in 0..N {
//!     C[i, j] = 0
//!     for k in 0..K {
//!       C[i, j] += A[i, k] * B[k, j]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! The result is a [`Program`] of plain loops that says what is computed and nothing about how: the specification
//! that every schedule starts from and is checked against.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::dtype::DType;
use crate::index::{Cond, Index};
use crate::ir::{
    Access, Assign, AssignOp, BinaryOp, Buffer, Dim, For, If, Io, Param, ParamKind, Program, Range,
    Reduction, Space, Stmt, UnaryOp, Value,
};
use crate::sym::Sym;

/// An expression under construction.
pub struct Expression {
    program: Program,
}

/// A tensor that can be read at indices and, if it is no placeholder, computed.
#[derive(Clone, Debug)]
pub struct Tensor {
    sym: Sym,
    dims: Vec<Index>,
}

/// An axis that a reduction runs over.
#[derive(Clone, Debug)]
pub struct ReduceAxis {
    name: Sym,
    extent: Index,
}

/// An element of a computation.
#[derive(Clone, Debug)]
pub struct Expr(Value);

/// What a tensor's elements are.
#[derive(Clone, Debug)]
pub enum Body {
    /// This value.
    Store(Expr),
    /// The reduction of this value over the axes.
    Reduce(Reduction, Vec<ReduceAxis>, Expr),
    /// One of two, chosen by a flag that the host computes.
    ByFlag(Sym, Box<Body>, Box<Body>),
}

impl Expression {
    /// A new expression; the name becomes the program's.
    pub fn new(name: &str) -> Expression {
        let program = Program {
            name: name.into(),
            doc: Vec::new(),
            params: Vec::new(),
            assumes: Vec::new(),
            begins_early: None,
            fetches: None,
            body: Vec::new(),
        };
        Expression { program }
    }

    /// Describes the expression; becomes the comment before the program.
    #[must_use]
    pub fn doc(mut self, line: &str) -> Expression {
        self.program.doc.push(line.into());
        self
    }

    /// A size of the problem.
    pub fn size(&mut self, name: &str) -> Index {
        Index::var(&self.param(name, ParamKind::Size))
    }

    /// A number passed at each call, such as alpha.
    pub fn scalar(&mut self, name: &str, dtype: DType) -> Expr {
        Expr(Value::Scalar(self.param(name, ParamKind::Scalar(dtype))))
    }

    /// A truth that the host computes at each call, such as "beta is 0".
    pub fn flag(&mut self, name: &str) -> Sym {
        self.param(name, ParamKind::Flag)
    }

    /// A tensor that is only read.
    pub fn placeholder(&mut self, name: &str, dtype: DType, dims: &[&Index]) -> Tensor {
        self.tensor(name, dtype, dims, Io::In)
    }

    /// A tensor that is only written.
    pub fn output(&mut self, name: &str, dtype: DType, dims: &[&Index]) -> Tensor {
        self.tensor(name, dtype, dims, Io::Out)
    }

    /// A tensor that is read and written, such as the C of BLAS.
    pub fn update(&mut self, name: &str, dtype: DType, dims: &[&Index]) -> Tensor {
        self.tensor(name, dtype, dims, Io::InOut)
    }

    /// An intermediate tensor.
    pub fn intermediate(&mut self, name: &str, dtype: DType, dims: &[&Index]) -> Tensor {
        let sym = Sym::new(name);
        let dims: Vec<Index> = dims.iter().map(|d| (*d).clone()).collect();
        let shape = dims.iter().cloned().map(Dim::new).collect();
        self.program.body.push(Stmt::Alloc(Buffer::new(sym.clone(), dtype, shape, Space::Global)));
        Tensor { sym, dims }
    }

    /// An axis to reduce over.
    pub fn reduce_axis(&mut self, name: &str, extent: &Index) -> ReduceAxis {
        ReduceAxis { name: Sym::new(name), extent: extent.clone() }
    }

    /// Says what every element of `tensor` is; `axes` names one loop for each of its dimensions.
    pub fn compute(&mut self, tensor: &Tensor, axes: &[&str], body: impl FnOnce(&[Index]) -> Body) {
        assert_eq!(axes.len(), tensor.dims.len(), "one axis for each dimension of {}", tensor.sym);
        self.compute_over(tensor, axes, &tensor.dims, |at| at.to_vec(), body);
    }

    /// Computes a tensor of one dimension that holds rows of `width` elements behind `before` others: at row `i` and column `j`, its element
    /// `before + width*i + j`.
    pub fn compute_rows(
        &mut self,
        tensor: &Tensor,
        before: i64,
        width: i64,
        axes: &[&str; 2],
        body: impl FnOnce(&[Index]) -> Body,
    ) {
        let extents = [tensor.dims[0].offset(-before).div(width), Index::constant(width)];
        let place = |at: &[Index]| (&at[0].scaled(width) + &at[1]).offset(before);
        self.compute_over(tensor, axes, &extents, |at| vec![place(at)], body);
    }

    fn compute_over(
        &mut self,
        tensor: &Tensor,
        axes: &[&str],
        extents: &[Index],
        index: impl FnOnce(&[Index]) -> Vec<Index>,
        body: impl FnOnce(&[Index]) -> Body,
    ) {
        let vars: Vec<Sym> = axes.iter().map(|a| Sym::new(a)).collect();
        let at: Vec<Index> = vars.iter().map(Index::var).collect();
        let target = Access::new(&tensor.sym, index(&at));
        let inner = statements(&target, body(&at));
        let nest =
            vars.iter().zip(extents).rev().fold(inner, |inner, (var, extent)| {
                vec![For::serial(var, Range::upto(extent.clone()), inner)]
            });
        self.program.body.extend(nest);
    }

    /// States that a tensor's address is a multiple of no more than so many bytes, a power of two.
    pub fn align(&mut self, tensor: &Tensor, bytes: i64) {
        for param in &mut self.program.params {
            if let ParamKind::Tensor(buffer) = &mut param.kind
                && buffer.sym == tensor.sym
            {
                buffer.align = bytes;
            }
        }
    }

    /// States that rows of a matrix stand apart by a multiple of so many elements, as callers promise. Rows that are one cannot.
    pub fn assume_stride(&mut self, tensor: &Tensor, elements: i64) {
        let stride = self.program.params.iter().find_map(|param| match &param.kind {
            ParamKind::Tensor(buffer) if buffer.sym == tensor.sym => buffer.row_stride.clone(),
            _ => None,
        });
        if let Some(stride) = stride {
            self.assume(Cond::eq(Index::var(&stride).rem(elements), 0.into()));
        }
    }

    /// States something that callers promise.
    pub fn assume(&mut self, cond: Cond) {
        self.program.assumes.push(cond);
    }

    /// The specification.
    pub fn program(self) -> Program {
        self.program
    }

    fn param(&mut self, name: &str, kind: ParamKind) -> Sym {
        let sym = Sym::new(name);
        self.program.params.push(Param { sym: sym.clone(), kind });
        sym
    }

    fn tensor(&mut self, name: &str, dtype: DType, dims: &[&Index], io: Io) -> Tensor {
        let sym = Sym::new(name);
        let dims: Vec<Index> = dims.iter().map(|d| (*d).clone()).collect();
        let shape = dims.iter().cloned().map(Dim::new).collect();
        let mut buffer = Buffer::new(sym.clone(), dtype, shape, Space::Param(io));
        if dims.len() == 2 {
            buffer.row_stride = Some(Sym::new(&format!("ld{}", name.to_lowercase())));
        }
        self.program.params.push(Param { sym: sym.clone(), kind: ParamKind::Tensor(buffer) });
        Tensor { sym, dims }
    }
}

fn statements(target: &Access, body: Body) -> Vec<Stmt> {
    let assign =
        |op, value: Expr| Stmt::Assign(Assign { target: target.clone(), op, atomic: false, value: value.0 });
    match body {
        Body::Store(value) => vec![assign(AssignOp::Store, value)],
        Body::Reduce(reduction, axes, value) => {
            let update = vec![assign(AssignOp::Reduce(reduction), value)];
            let nest = axes.iter().rev().fold(update, |inner, axis| {
                vec![For::serial(&axis.name, Range::upto(axis.extent.clone()), inner)]
            });
            let init = assign(AssignOp::Store, Expr(Value::Const(reduction.identity())));
            std::iter::once(init).chain(nest).collect()
        }
        Body::ByFlag(flag, this, that) => vec![Stmt::If(If {
            cond: Cond::Flag(flag),
            then: statements(target, *this).into(),
            otherwise: statements(target, *that).into(),
        })],
    }
}

impl Tensor {
    /// The element at an index.
    pub fn at(&self, index: &[&Index]) -> Expr {
        assert_eq!(index.len(), self.dims.len(), "one index for each dimension of {}", self.sym);
        Expr(Value::load(&self.sym, index.iter().map(|i| (*i).clone()).collect()))
    }

    /// The symbol of the buffer.
    pub fn sym(&self) -> &Sym {
        &self.sym
    }
}

impl ReduceAxis {
    /// The variable, for use in indices.
    pub fn var(&self) -> Index {
        Index::var(&self.name)
    }
}

impl Expr {
    /// The complex conjugate.
    #[must_use]
    pub fn conj(self) -> Expr {
        Expr(Value::Unary(UnaryOp::Conj, Box::new(self.0)))
    }

    /// The complex number whose real part is this and whose imaginary part is another real number, in a complex type.
    #[must_use]
    pub fn complex(self, imaginary: Expr, dtype: DType) -> Expr {
        let Expr(imaginary) = imaginary.cast(dtype);
        self.cast(dtype) + Expr(Value::Unary(UnaryOp::TimesI, Box::new(imaginary)))
    }

    /// The value converted to another type.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Expr {
        Expr(Value::Cast(dtype, Box::new(self.0)))
    }

    /// A literal.
    pub fn constant(value: f64) -> Expr {
        Expr(Value::Const(value))
    }
}

/// `this` where a condition on indices holds, else `that`.
pub fn select(cond: Cond, this: Expr, that: Expr) -> Expr {
    Expr(Value::Select(cond, Box::new(this.0), Box::new(that.0)))
}

/// The sum of `value` over `axes`.
pub fn sum(value: Expr, axes: &[&ReduceAxis]) -> Body {
    Body::Reduce(Reduction::Sum, axes.iter().map(|a| (*a).clone()).collect(), value)
}

/// The maximum of `value` over `axes`.
pub fn max(value: Expr, axes: &[&ReduceAxis]) -> Body {
    Body::Reduce(Reduction::Max, axes.iter().map(|a| (*a).clone()).collect(), value)
}

/// `this` where the flag holds, else `that`.
pub fn by_flag(flag: &Sym, this: impl Into<Body>, that: impl Into<Body>) -> Body {
    Body::ByFlag(flag.clone(), Box::new(this.into()), Box::new(that.into()))
}

impl From<Expr> for Body {
    fn from(value: Expr) -> Body {
        Body::Store(value)
    }
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr(Value::binary(op, a.0, b.0))
}

impl Add for Expr {
    type Output = Expr;
    fn add(self, other: Expr) -> Expr {
        binary(BinaryOp::Add, self, other)
    }
}

impl Sub for Expr {
    type Output = Expr;
    fn sub(self, other: Expr) -> Expr {
        binary(BinaryOp::Sub, self, other)
    }
}

impl Mul for Expr {
    type Output = Expr;
    fn mul(self, other: Expr) -> Expr {
        binary(BinaryOp::Mul, self, other)
    }
}

impl Div for Expr {
    type Output = Expr;
    fn div(self, other: Expr) -> Expr {
        binary(BinaryOp::Div, self, other)
    }
}

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        Expr(Value::Unary(UnaryOp::Neg, Box::new(self.0)))
    }
}
