//! The programs whose mutants are made, with small shapes that reach every corner of them, and what they must compute.

use std::collections::HashMap;

use warpwright_core::ir::{Io, ParamKind, Program, Space, parse};
use warpwright_sim::coroutine::{Arguments, Element, Random, tensor_shapes};

/// A program and how to try it.
pub struct Case {
    pub name: &'static str,
    pub program: Program,
    /// Sizes, launch parameters, flags and strides; a stride that is not given is that of a packed tensor.
    pub shapes: Vec<Vec<(&'static str, i64)>>,
    pub specification: Specification,
}

/// The outputs that a program must give for its arguments.
pub type Specification = fn(&Tensors<'_>) -> Vec<(&'static str, Vec<Element>)>;

/// Arguments, seen as mathematics: elements by logical index.
pub struct Tensors<'a> {
    arguments: &'a Arguments,
    strides: HashMap<String, i64>,
}

impl<'a> Tensors<'a> {
    pub fn new(program: &Program, arguments: &'a Arguments) -> Tensors<'a> {
        let shapes = tensor_shapes(program, arguments);
        Tensors { arguments, strides: shapes.into_iter().map(|(name, _, stride)| (name, stride)).collect() }
    }

    fn size(&self, name: &str) -> i64 {
        self.arguments.integers[name]
    }

    fn at(&self, tensor: &str, row: i64, column: i64) -> Element {
        self.arguments.tensors[tensor][(row * self.strides[tensor] + column) as usize]
    }

    /// The tensor with the elements of a `rows x columns` box replaced.
    fn with(
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
    fn epilogue(&self, product: Element, row: i64, column: i64) -> Element {
        let scalars = &self.arguments.scalars;
        let scaled = scalars.get("alpha").map_or(product, |alpha| alpha.times(product));
        match (scalars.get("beta"), self.arguments.integers.get("beta0")) {
            (Some(beta), Some(0)) => scaled.plus(beta.times(self.at("C", row, column))),
            _ => scaled,
        }
    }

    /// C with the product over `k` of what `a` and `b` give for (row or column, k).
    fn product(
        &self,
        (m, n, k): (i64, i64, i64),
        a: impl Fn(i64, i64) -> Element,
        b: impl Fn(i64, i64) -> Element,
    ) -> Vec<(&'static str, Vec<Element>)> {
        let dot = |i, j| (0..k).fold(Element::ZERO, |sum, p| sum.plus(a(i, p).times(b(j, p))));
        vec![("C", self.with("C", m, n, |i, j| self.epilogue(dot(i, j), i, j)))]
    }

    fn mnk(&self) -> (i64, i64, i64) {
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

/// The first output that is not as specified.
pub fn first_difference(case: &Case, before: &Arguments, after: &Arguments) -> Option<String> {
    let expected = (case.specification)(&Tensors::new(&case.program, before));
    for (name, expected) in expected {
        let got = &after.tensors[name];
        let different = expected.iter().zip(got).filter(|(e, g)| e != g).count();
        if different > 0 {
            let first = expected.iter().zip(got).position(|(e, g)| e != g).unwrap_or(0);
            return Some(format!("{different} of {} elements of {name} differ, first {first}", got.len()));
        }
    }
    None
}

fn read(text: &str) -> Program {
    parse::program(text).expect("programs in the repository parse")
}

/// The nine programs.
pub fn nine_programs() -> Vec<Case> {
    let case =
        |name, text: &str, shapes, specification| Case { name, program: read(text), shapes, specification };
    vec![
        case(
            "sgemm_block_tiling",
            include_str!("../../../../programs/sgemm_block_tiling.ww"),
            vec![
                vec![("M", 130), ("N", 129), ("K", 9), ("beta0", 1), ("lda", 11)],
                vec![("M", 5), ("N", 131), ("K", 17), ("beta0", 0), ("ldc", 133)],
            ],
            |t| t.product(t.mnk(), |i, k| t.at("A", i, k), |j, k| t.at("B", k, j)),
        ),
        case(
            "sgemm_virtual_threads",
            include_str!("../../../../programs/sgemm_virtual_threads.ww"),
            vec![vec![("M", 68), ("N", 131), ("K", 33), ("lda", 136), ("ldb", 72)]],
            |t| t.product(t.mnk(), |i, k| t.at("B", k, i), |j, k| t.at("A", k, j)),
        ),
        case(
            "tsmttsm_atomic",
            include_str!("../../../../programs/tsmttsm_atomic.ww"),
            vec![
                vec![("K", 61), ("G", 2), ("beta0", 0), ("lda", 21)],
                vec![("K", 37), ("G", 1), ("beta0", 1), ("ldc", 23)],
            ],
            tall,
        ),
        case(
            "tsmttsm_two_pass",
            // The same program with fewer partial sums, so that each is a sum of several rows here.
            &include_str!("../../../../programs/tsmttsm_two_pass.ww")
                .replace("3168", "36")
                .replace("264", "3"),
            vec![vec![("K", 100), ("beta0", 0), ("lda", 21)], vec![("K", 37), ("beta0", 1), ("ldc", 23)]],
            tall,
        ),
        case(
            "hgemm_cp_async",
            include_str!("../../../../programs/hgemm_cp_async.ww"),
            vec![
                vec![("M", 70), ("N", 20), ("K", 131), ("lda", 136), ("ldb", 24), ("beta0", 0)],
                vec![("M", 2), ("N", 130), ("K", 40), ("lda", 40), ("ldb", 136), ("beta0", 1)],
            ],
            |t| t.product(t.mnk(), |i, k| t.at("A", i, k), |j, k| t.at("B", k, j)),
        ),
        case(
            "hgemm_tma_wgmma",
            include_str!("../../../../programs/hgemm_tma_wgmma.ww"),
            vec![vec![("M", 130), ("N", 60), ("K", 200), ("G", 1), ("lda", 200), ("ldb", 208), ("ldc", 64)]],
            |t| t.product(t.mnk(), |i, k| t.at("A", i, k), |j, k| t.at("B", j, k)),
        ),
        case(
            "reduce_two_pass",
            include_str!("../../../../programs/reduce_two_pass.ww"),
            vec![vec![("n", 5000)]],
            |t| {
                let sum = (0..t.size("n")).fold(Element::ZERO, |sum, i| sum.plus(t.at("x", 0, i)));
                vec![("y", t.with("y", 1, 1, |_, _| sum))]
            },
        ),
        case(
            "scan_look_back",
            include_str!("../../../../programs/scan_look_back.ww"),
            vec![vec![("n", 2500)]],
            |t| {
                let sum = |_, last| (0..=last).fold(Element::ZERO, |sum, i| sum.plus(t.at("x", 0, i)));
                vec![("y", t.with("y", 1, t.size("n"), sum))]
            },
        ),
        case(
            "sgemm_split_k",
            include_str!("../../../../programs/sgemm_split_k.ww"),
            vec![
                vec![("M", 65), ("N", 7), ("K", 100), ("beta0", 0)],
                vec![("M", 3), ("N", 66), ("K", 70), ("beta0", 1)],
            ],
            |t| t.product(t.mnk(), |i, k| t.at("A", i, k), |j, k| t.at("B", k, j)),
        ),
    ]
}

fn tall(t: &Tensors<'_>) -> Vec<(&'static str, Vec<Element>)> {
    t.product((20, 20, t.size("K")), |i, k| t.at("A", k, i), |j, k| t.at("B", k, j))
}
