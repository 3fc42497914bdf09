//! A program, the shapes that reach every corner of it, and what it must compute.

use std::collections::HashMap;

use warpwright_core::ir::{Io, ParamKind, Program, Space};

use crate::coroutine::{Arguments, Element, Random, tensor_shapes};

/// A program and how to try it.
pub struct Case {
    /// What reports call it.
    pub name: String,
    /// The program.
    pub program: Program,
    /// Sizes, launch parameters, flags and strides; a stride that is not given is that of a packed tensor.
    pub shapes: Vec<Shape>,
    /// What it must compute.
    pub specification: Specification,
}

/// Integer arguments by name.
pub type Shape = Vec<(&'static str, i64)>;

/// The outputs that a program must give for its arguments, padding included.
pub type Specification = fn(&Tensors<'_>) -> Outputs;

/// Tensors by name.
pub type Outputs = Vec<(&'static str, Vec<Element>)>;

/// Arguments, seen as mathematics: elements by logical index.
pub struct Tensors<'a> {
    arguments: &'a Arguments,
    strides: HashMap<String, i64>,
}

impl<'a> Tensors<'a> {
    /// Looks at the arguments of a program.
    pub fn new(program: &Program, arguments: &'a Arguments) -> Tensors<'a> {
        let shapes = tensor_shapes(program, arguments);
        Tensors { arguments, strides: shapes.into_iter().map(|(name, _, stride)| (name, stride)).collect() }
    }

    /// An integer argument.
    pub fn size(&self, name: &str) -> i64 {
        self.arguments.integers[name]
    }

    /// An element; a vector is a row.
    pub fn at(&self, tensor: &str, row: i64, column: i64) -> Element {
        self.arguments.tensors[tensor][(row * self.strides[tensor] + column) as usize]
    }

    /// The tensor with the elements of a `rows x columns` box replaced.
    pub fn with(
        &self,
        tensor: &str,
        rows: i64,
        columns: i64,
        value: impl Fn(i64, i64) -> Element,
    ) -> Vec<Element> {
        let mut content = self.arguments.tensors[tensor].clone();
        for (row, column) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            content[(row * self.strides[tensor] + column) as usize] = value(row, column);
        }
        content
    }

    /// `alpha * product + beta * C`, without reading C if beta is 0 and without what the program has no parameter for.
    pub fn epilogue(&self, product: Element, row: i64, column: i64) -> Element {
        let scalars = &self.arguments.scalars;
        let scaled = scalars.get("alpha").map_or(product, |alpha| alpha.times(product));
        match (scalars.get("beta"), self.arguments.integers.get("beta0")) {
            (Some(beta), Some(0)) => scaled.plus(beta.times(self.at("C", row, column))),
            _ => scaled,
        }
    }

    /// C with the product over `k` of what `a` and `b` give for (row or column, k).
    pub fn product(
        &self,
        (m, n, k): (i64, i64, i64),
        a: impl Fn(i64, i64) -> Element,
        b: impl Fn(i64, i64) -> Element,
    ) -> Outputs {
        let dot = |i, j| (0..k).fold(Element::ZERO, |sum, p| sum.plus(a(i, p).times(b(j, p))));
        vec![("C", self.with("C", m, n, |i, j| self.epilogue(dot(i, j), i, j)))]
    }

    /// M, N and K.
    pub fn mnk(&self) -> (i64, i64, i64) {
        (self.size("M"), self.size("N"), self.size("K"))
    }
}

/// Random arguments: inputs and scalars are drawn, padding and what may not be read are poison.
pub fn arguments(program: &Program, shape: &[(&str, i64)], seed: u64) -> Arguments {
    let mut random = Random::new(seed);
    let mut element = || Element::new(random.number());
    let integers = shape.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let mut arguments = Arguments { integers, ..Arguments::default() };
    let beta_is_zero = arguments.integers.get("beta0") == Some(&1);
    for param in &program.params {
        let name = param.sym.name();
        match &param.kind {
            ParamKind::Scalar(_) => {
                let value = if name == "beta" && beta_is_zero { Element::ZERO } else { element() };
                arguments.scalars.insert(name.into(), value);
            }
            ParamKind::Tensor(buffer) => {
                if let Some(stride) = &buffer.row_stride {
                    let value = |sym: &warpwright_core::sym::Sym| arguments.integers.get(sym.name()).copied();
                    let packed = buffer.dims[1].extent.eval(&value).expect("sizes are given");
                    arguments.integers.entry(stride.name().into()).or_insert(packed);
                }
            }
            ParamKind::Size | ParamKind::Launch | ParamKind::Flag => {
                assert!(arguments.integers.contains_key(name), "{name} is not given");
            }
        }
    }
    for ((name, extents, stride), buffer) in
        tensor_shapes(program, &arguments).into_iter().zip(program.tensors())
    {
        let (rows, columns) = if extents.len() == 2 { (extents[0], extents[1]) } else { (1, extents[0]) };
        let mut content = vec![Element::POISON; (rows * stride).max(0) as usize];
        let readable = match buffer.space {
            Space::Param(Io::In) => true,
            Space::Param(Io::InOut) => !beta_is_zero,
            _ => false,
        };
        if readable {
            for (row, column) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                content[(row * stride + column) as usize] = element();
            }
        }
        arguments.tensors.insert(name, content);
    }
    arguments
}

/// The first output that is not as specified, if there is one.
pub fn first_difference(expected: &Outputs, after: &Arguments) -> Option<String> {
    for (name, expected) in expected {
        let got = &after.tensors[*name];
        let different = expected.iter().zip(got).filter(|(e, g)| e != g).count();
        if different > 0 {
            let first = expected.iter().zip(got).position(|(e, g)| e != g).unwrap_or(0);
            return Some(format!("{different} of {} elements of {name} differ, first {first}", got.len()));
        }
    }
    None
}
