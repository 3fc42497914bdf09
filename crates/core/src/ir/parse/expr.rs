//! Expressions: parsed once without types, then read as an index, a condition or data, as the place demands.

use super::Parser;
use super::lexer::Kind;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Comparison, Cond, Index};
use crate::ir::value::{Access, BinaryOp, Span, UnaryOp, Value, Window};
use crate::sym::Sym;

/// An expression whose kind is not yet known.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub line: u32,
    pub column: u32,
    pub node: Node,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Int(i64),
    Float(f64),
    Name(String),
    Call(String, Vec<Expr>),
    Element(String, Vec<Item>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// One entry between the brackets of an access or window.
#[derive(Clone, Debug)]
pub(super) enum Item {
    All,
    At(Expr),
    Slice(Expr, Expr),
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Entity {
    Var(Sym),
    Const(i64),
    Flag(Sym),
    Scalar(Sym),
    Buffer(Sym, usize),
    Ring(Sym),
    Role(Sym),
}

/// Deeper nesting than any program needs; keeps hostile text from exhausting the stack.
const DEEPEST: u32 = 64;

/// Binary operators by level, weakest first.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<", "<=", ">", ">=", "==", "!="], &["+", "-"], &["*", "/", "%"]];

impl Parser {
    pub(super) fn expr(&mut self) -> Result<Expr, Diagnosis> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("the expression is nested too deeply"));
        }
        let cond = self.level(0)?;
        let result = if self.take("?") {
            let this = self.expr()?;
            self.expect(":")?;
            let that = self.expr()?;
            let node = Node::Choice(Box::new(cond.clone()), Box::new(this), Box::new(that));
            Expr { node, ..cond }
        } else {
            cond
        };
        self.depth -= 1;
        Ok(result)
    }

    fn level(&mut self, level: usize) -> Result<Expr, Diagnosis> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some(op) = operators.iter().find(|op| self.peek_mark(op)) {
            self.advance();
            let right = self.level(level + 1)?;
            let (line, column) = (left.line, left.column);
            left = Expr { line, column, node: Node::Binary(op, Box::new(left), Box::new(right)) };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Diagnosis> {
        let (line, column) = self.here();
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("the expression is nested too deeply"));
        }
        let node = if self.take("-") {
            Node::Neg(Box::new(self.unary()?))
        } else if self.take("!") {
            Node::Not(Box::new(self.unary()?))
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(Expr { line, column, node })
    }

    fn primary(&mut self) -> Result<Node, Diagnosis> {
        match self.advance() {
            Kind::Int(value) => Ok(Node::Int(value)),
            Kind::Float(value) => Ok(Node::Float(value)),
            Kind::Mark("(") => {
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner.node)
            }
            Kind::Name(name) if self.take("(") => Ok(Node::Call(name, self.list(")", Parser::expr)?)),
            Kind::Name(name) if self.take("[") => Ok(Node::Element(name, self.list("]", Parser::item)?)),
            Kind::Name(name) => Ok(Node::Name(name)),
            other => {
                self.back();
                Err(self.error(format!("expected an expression, found `{}`", other.text())))
            }
        }
    }

    pub(super) fn item(&mut self) -> Result<Item, Diagnosis> {
        if self.take(":") {
            return Ok(Item::All);
        }
        let start = self.expr()?;
        if self.take("+:") { Ok(Item::Slice(start, self.expr()?)) } else { Ok(Item::At(start)) }
    }

    pub(super) fn fail<T>(&self, at: &Expr, what: impl Into<String>) -> Result<T, Diagnosis> {
        Err(Diagnosis::new(what).at(format!("line {}:{}", at.line, at.column)))
    }

    /// Reads an expression as an index.
    pub(super) fn index(&self, e: &Expr) -> Result<Index, Diagnosis> {
        match &e.node {
            Node::Int(value) => Ok(Index::constant(*value)),
            Node::Neg(x) => Ok(self.index(x)?.scaled(-1)),
            Node::Name(name) => match self.entity(e, name)? {
                Entity::Var(sym) => Ok(Index::var(sym)),
                Entity::Const(value) => Ok(Index::constant(*value)),
                _ => self.fail(e, format!("`{name}` is no integer, so it cannot stand in an index or bound")),
            },
            Node::Choice(c, a, b) => Ok(Index::select(self.cond(c)?, self.index(a)?, self.index(b)?)),
            Node::Call(f, args) => match (f.as_str(), &args[..]) {
                ("ceil", [a, d]) => Ok(self.index(a)?.ceil_div(self.divisor(d)?)),
                ("min", [a, b]) => Ok(self.index(a)?.minimum(&self.index(b)?)),
                ("max", [a, b]) => Ok(self.index(a)?.maximum(&self.index(b)?)),
                ("xor", [a, b]) => Ok(self.index(a)?.xor(&self.index(b)?)),
                _ => self.fail(e, format!("`{f}` of {} arguments is no index function", args.len())),
            },
            Node::Binary(op, a, b) => self.index_binary(e, op, a, b),
            Node::Element(name, _) => {
                self.fail(e, format!("an index cannot read `{name}`: control never reads data"))
            }
            Node::Float(_) | Node::Not(_) => self.fail(e, "an index is an integer expression"),
        }
    }

    fn index_binary(&self, e: &Expr, op: &str, a: &Expr, b: &Expr) -> Result<Index, Diagnosis> {
        match op {
            "+" => Ok(&self.index(a)? + &self.index(b)?),
            "-" => Ok(&self.index(a)? - &self.index(b)?),
            "*" => match self.index(a)?.times(&self.index(b)?) {
                Some(product) => Ok(product),
                None => self.fail(e, "a product of two symbols is outside the index language"),
            },
            "/" => Ok(self.index(a)?.div(self.divisor(b)?)),
            "%" => Ok(self.index(a)?.rem(self.divisor(b)?)),
            _ => self.fail(e, format!("`{op}` makes a condition, here an index is wanted")),
        }
    }

    fn divisor(&self, e: &Expr) -> Result<i64, Diagnosis> {
        match self.index(e)?.as_constant() {
            Some(d) if d > 0 => Ok(d),
            _ => self.fail(e, "only positive constants may divide"),
        }
    }

    /// Reads an expression as a constant.
    pub(super) fn constant(&self, e: &Expr) -> Result<i64, Diagnosis> {
        match self.index(e)?.as_constant() {
            Some(value) => Ok(value),
            None => self.fail(e, "a constant is wanted here"),
        }
    }

    /// Reads an expression as a condition.
    pub(super) fn cond(&self, e: &Expr) -> Result<Cond, Diagnosis> {
        match &e.node {
            Node::Name(name) if name == "true" => Ok(Cond::TRUE),
            Node::Name(name) if name == "false" => Ok(Cond::FALSE),
            Node::Name(name) => match self.entity(e, name)? {
                Entity::Flag(sym) => Ok(Cond::Flag(sym.clone())),
                _ => self.fail(e, format!("`{name}` is no flag")),
            },
            Node::Not(c) => Ok(self.cond(c)?.negate()),
            Node::Binary("&&", a, b) => Ok(self.cond(a)?.and(self.cond(b)?)),
            Node::Binary("||", a, b) => Ok(self.cond(a)?.or(self.cond(b)?)),
            Node::Binary(op, a, b) => {
                let (a, b) = (self.index(a)?, self.index(b)?);
                match *op {
                    "<" => Ok(Cond::lt(a, b)),
                    "<=" => Ok(Cond::le(a, b)),
                    ">" => Ok(Cond::lt(b, a)),
                    ">=" => Ok(Cond::le(b, a)),
                    "==" => Ok(Cond::eq(a, b)),
                    "!=" => Ok(Cond::compare(Comparison::Ne, a, b)),
                    _ => self.fail(e, "a condition is wanted here"),
                }
            }
            _ => self.fail(e, "a condition is wanted here"),
        }
    }

    /// Reads an expression as data.
    pub(super) fn value(&self, e: &Expr) -> Result<Value, Diagnosis> {
        let boxed = |x: &Expr| self.value(x).map(Box::new);
        match &e.node {
            Node::Int(value) => Ok(Value::Const(*value as f64)),
            Node::Float(value) => Ok(Value::Const(*value)),
            Node::Name(name) if name == "inf" => Ok(Value::Const(f64::INFINITY)),
            Node::Name(name) => match self.entity(e, name)? {
                Entity::Scalar(sym) => Ok(Value::Scalar(sym.clone())),
                Entity::Const(value) => Ok(Value::Const(*value as f64)),
                _ => self.fail(e, format!("`{name}` is no data")),
            },
            Node::Element(name, items) => Ok(Value::Load(self.access(e, name, items)?)),
            Node::Neg(x) => Ok(match self.value(x)? {
                Value::Const(c) => Value::Const(-c),
                other => Value::Unary(UnaryOp::Neg, Box::new(other)),
            }),
            Node::Choice(c, a, b) => Ok(Value::Select(self.cond(c)?, boxed(a)?, boxed(b)?)),
            Node::Binary(op, a, b) => {
                let op = match *op {
                    "+" => BinaryOp::Add,
                    "-" => BinaryOp::Sub,
                    "*" => BinaryOp::Mul,
                    "/" => BinaryOp::Div,
                    _ => {
                        return self
                            .fail(e, format!("`{op}` cannot be applied to data: control never reads data"));
                    }
                };
                Ok(Value::Binary(op, boxed(a)?, boxed(b)?))
            }
            Node::Call(f, args) => match (f.as_str(), &args[..]) {
                ("conj", [x]) => Ok(Value::Unary(UnaryOp::Conj, boxed(x)?)),
                ("times_i", [x]) => Ok(Value::Unary(UnaryOp::TimesI, boxed(x)?)),
                ("max", [a, b]) => Ok(Value::Binary(BinaryOp::Max, boxed(a)?, boxed(b)?)),
                ("min", [a, b]) => Ok(Value::Binary(BinaryOp::Min, boxed(a)?, boxed(b)?)),
                (name, [x]) => match name.parse::<DType>() {
                    Ok(dtype) => Ok(Value::Cast(dtype, boxed(x)?)),
                    Err(_) => self.fail(e, format!("unknown function `{name}`")),
                },
                _ => self.fail(e, format!("unknown function `{f}` of {} arguments", args.len())),
            },
            Node::Not(_) => self.fail(e, "data is wanted here, not a condition"),
        }
    }

    /// Reads `name[items]` as one element.
    pub(super) fn access(&self, e: &Expr, name: &str, items: &[Item]) -> Result<Access, Diagnosis> {
        let buffer = self.buffer(e, name, items.len())?;
        let index = items.iter().map(|item| match item {
            Item::At(x) => self.index(x),
            _ => self
                .fail(e, format!("`{name}` is read element by element here; a window needs an instruction")),
        });
        Ok(Access { buffer, index: index.collect::<Result<_, _>>()? })
    }

    /// Reads `name[items]` as a window.
    pub(super) fn window(&self, e: &Expr, name: &str, items: &[Item]) -> Result<Window, Diagnosis> {
        let buffer = self.buffer(e, name, items.len())?;
        let dims = items.iter().map(|item| match item {
            Item::All => Ok(Span::All),
            Item::At(x) => Ok(Span::At(self.index(x)?)),
            Item::Slice(start, len) => Ok(Span::Slice(self.index(start)?, self.constant(len)?)),
        });
        Ok(Window { buffer, dims: dims.collect::<Result<_, _>>()? })
    }

    fn buffer(&self, e: &Expr, name: &str, indices: usize) -> Result<Sym, Diagnosis> {
        match self.entity(e, name)? {
            Entity::Buffer(sym, dims) if *dims == indices => Ok(sym.clone()),
            Entity::Buffer(_, dims) => self.fail(e, format!("`{name}` has {dims} dimensions, not {indices}")),
            _ => self.fail(e, format!("`{name}` is no buffer")),
        }
    }

    fn entity(&self, e: &Expr, name: &str) -> Result<&Entity, Diagnosis> {
        match self.names.iter().rev().find(|(n, _)| n == name) {
            Some((_, entity)) => Ok(entity),
            None => self.fail(e, format!("`{name}` is not declared")),
        }
    }

    /// The ring or role of that name.
    pub(super) fn named(&self, e: &Expr, name: &str, what: &str) -> Result<Sym, Diagnosis> {
        match (self.entity(e, name)?, what) {
            (Entity::Ring(sym), "ring") | (Entity::Role(sym), "role") => Ok(sym.clone()),
            _ => self.fail(e, format!("`{name}` is no {what}")),
        }
    }
}
