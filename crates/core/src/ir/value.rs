//! Data: what is computed, as opposed to where and when.

use crate::dtype::DType;
use crate::index::{Cond, Index};
use crate::sym::Sym;

/// A data expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A literal; every finite `f64` is a dyadic rational, hence exact in the prime field too.
    Const(f64),
    /// A scalar parameter such as alpha.
    Scalar(Sym),
    /// An element of a buffer.
    Load(Access),
    /// An operation on one value.
    Unary(UnaryOp, Box<Value>),
    /// An operation on two values.
    Binary(BinaryOp, Box<Value>, Box<Value>),
    /// `condition ? this : that`; only the chosen arm is evaluated, so the other may be out of bounds.
    Select(Cond, Box<Value>, Box<Value>),
    /// An explicit conversion (rule 37).
    Cast(DType, Box<Value>),
}

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// The negative.
    Neg,
    /// The complex conjugate; a real number is its own.
    Conj,
    /// A complex number times the imaginary unit.
    TimesI,
}

/// An operation on two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// The larger.
    Max,
    /// The smaller.
    Min,
}

/// A commutative monoid over which a reduction may be split and reordered (rule 32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Sum; the identity is 0.
    Sum,
    /// Maximum; the identity is minus infinity.
    Max,
    /// Minimum; the identity is infinity.
    Min,
}

/// An element of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The buffer.
    pub buffer: Sym,
    /// One index for each logical dimension.
    pub index: Vec<Index>,
}

/// A box of elements of a buffer: the operand of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The buffer.
    pub buffer: Sym,
    /// One entry for each logical dimension.
    pub dims: Vec<Span>,
}

/// One dimension of a [`Window`].
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// One index; the dimension is dropped from the window.
    At(Index),
    /// `start +: len`.
    Slice(Index, i64),
    /// `:`, the whole dimension.
    All,
}

impl Reduction {
    /// The neutral element as a literal.
    pub fn identity(self) -> f64 {
        match self {
            Reduction::Sum => 0.0,
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
        }
    }

    /// The binary operation of the monoid.
    pub fn operator(self) -> BinaryOp {
        match self {
            Reduction::Sum => BinaryOp::Add,
            Reduction::Max => BinaryOp::Max,
            Reduction::Min => BinaryOp::Min,
        }
    }
}

impl Access {
    /// The element of `buffer` at `index`.
    pub fn new(buffer: &Sym, index: Vec<Index>) -> Access {
        Access { buffer: buffer.clone(), index }
    }

    /// Replaces variables in the indices and, where `with` gives a plain variable for it, the buffer.
    #[must_use]
    pub fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Access {
        Access {
            buffer: rename(&self.buffer, with),
            index: self.index.iter().map(|i| i.substitute(with)).collect(),
        }
    }

    /// Calls `visit` for the buffer and each occurrence of a variable.
    pub fn for_each_symbol(&self, visit: &mut dyn FnMut(&Sym)) {
        visit(&self.buffer);
        self.index.iter().for_each(|i| i.for_each_var(visit));
    }
}

impl Window {
    /// Replaces variables and the buffer as [`Access::substitute`] does.
    #[must_use]
    pub fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Window {
        let dims = self.dims.iter().map(|d| match d {
            Span::At(i) => Span::At(i.substitute(with)),
            Span::Slice(start, len) => Span::Slice(start.substitute(with), *len),
            Span::All => Span::All,
        });
        Window { buffer: rename(&self.buffer, with), dims: dims.collect() }
    }

    /// Calls `visit` for the buffer and each occurrence of a variable.
    pub fn for_each_symbol(&self, visit: &mut dyn FnMut(&Sym)) {
        visit(&self.buffer);
        for dim in &self.dims {
            if let Span::At(i) | Span::Slice(i, _) = dim {
                i.for_each_var(visit);
            }
        }
    }

    /// The first index of the window in each dimension of the buffer.
    pub fn start(&self) -> Vec<Index> {
        let first = |d: &Span| match d {
            Span::At(i) | Span::Slice(i, _) => i.clone(),
            Span::All => Index::default(),
        };
        self.dims.iter().map(first).collect()
    }
}

/// The symbol that stands for `sym` under a substitution: buffers are renamed by giving a plain variable.
pub(crate) fn rename(sym: &Sym, with: &dyn Fn(&Sym) -> Option<Index>) -> Sym {
    with(sym).as_ref().and_then(Index::as_var).cloned().unwrap_or_else(|| sym.clone())
}

impl Value {
    /// The element `access`.
    pub fn load(buffer: &Sym, index: Vec<Index>) -> Value {
        Value::Load(Access::new(buffer, index))
    }

    /// `self op other`.
    #[must_use]
    pub fn binary(op: BinaryOp, a: Value, b: Value) -> Value {
        Value::Binary(op, Box::new(a), Box::new(b))
    }

    /// Replaces variables in indices and conditions, and renames buffers.
    #[must_use]
    pub fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Value {
        self.map_accesses(&|a| Value::Load(a.substitute(with)), &|c| c.substitute(with))
    }

    /// Rebuilds the value with every load replaced by what `load` makes of it and every condition by what `cond` does.
    #[must_use]
    pub fn map_accesses(&self, load: &dyn Fn(&Access) -> Value, cond: &dyn Fn(&Cond) -> Cond) -> Value {
        let again = |v: &Value| Box::new(v.map_accesses(load, cond));
        match self {
            Value::Const(_) | Value::Scalar(_) => self.clone(),
            Value::Load(access) => load(access),
            Value::Unary(op, a) => Value::Unary(*op, again(a)),
            Value::Binary(op, a, b) => Value::Binary(*op, again(a), again(b)),
            Value::Select(c, a, b) => Value::Select(cond(c), again(a), again(b)),
            Value::Cast(t, a) => Value::Cast(*t, again(a)),
        }
    }

    /// Calls `visit` for each occurrence of a buffer, or of a variable in an index or a condition.
    pub fn for_each_symbol(&self, visit: &mut dyn FnMut(&Sym)) {
        match self {
            Value::Const(_) | Value::Scalar(_) => {}
            Value::Load(access) => access.for_each_symbol(visit),
            Value::Unary(_, a) | Value::Cast(_, a) => a.for_each_symbol(visit),
            Value::Binary(_, a, b) => {
                a.for_each_symbol(visit);
                b.for_each_symbol(visit);
            }
            Value::Select(c, a, b) => {
                c.for_each_var(visit);
                a.for_each_symbol(visit);
                b.for_each_symbol(visit);
            }
        }
    }

    /// Calls `visit` for every load.
    pub fn for_each_access<'a>(&'a self, visit: &mut dyn FnMut(&'a Access)) {
        match self {
            Value::Const(_) | Value::Scalar(_) => {}
            Value::Load(access) => visit(access),
            Value::Unary(_, a) | Value::Cast(_, a) => a.for_each_access(visit),
            Value::Binary(_, a, b) | Value::Select(_, a, b) => {
                a.for_each_access(visit);
                b.for_each_access(visit);
            }
        }
    }
}
