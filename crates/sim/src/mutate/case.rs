//! A program, the shapes that reach every corner of it, and what it must compute.

use warpwright_core::ir::{Io, ParamKind, Program, Space};

use crate::coroutine::{self, Arguments, Element, Fault, Policy, Random, tensor_shapes};

/// A program and how to try it.
pub struct Case {
    /// What reports call it.
    pub name: String,
    /// What it must compute: a program whose loops stand at host scope.
    pub specification: Program,
    /// The program.
    pub program: Program,
    /// Sizes, launch parameters, flags and strides; a stride that is not given is that of a packed tensor.
    pub shapes: Vec<Shape>,
}

/// Integer arguments by name.
pub type Shape = Vec<(&'static str, i64)>;

/// Arguments and what the program must make of them.
pub struct Example {
    /// The shape.
    pub shape: Shape,
    /// The arguments before.
    pub before: Arguments,
    /// The arguments after.
    pub after: Arguments,
}

impl Case {
    /// An example for each shape, with inputs drawn by seed.
    ///
    /// # Panics
    /// If the specification cannot be run, or a shape breaks the assumptions of the program.
    pub fn examples(&self, seed: u64) -> Vec<Example> {
        let example = |shape: &Shape| {
            let before = arguments(&self.program, shape, seed);
            assert!(coroutine::assumptions_hold(&self.program, &before), "{} {shape:?}", self.name);
            let mut after = before.clone();
            let result = coroutine::run(&self.specification, &mut after, Policy::from_seed(seed));
            assert_eq!(result, Ok(()), "the specification of {} {shape:?}", self.name);
            Example { shape: shape.clone(), before, after }
        };
        self.shapes.iter().map(example).collect()
    }
}

impl Example {
    /// What goes wrong when a program runs on the arguments: a fault, or the first output that is not as it must be.
    pub fn complaint(&self, program: &Program, policy: Policy) -> Option<String> {
        let mut after = self.before.clone();
        match coroutine::run(program, &mut after, policy) {
            Err(fault @ Fault::OutOfBounds { .. }) => Some(format!("{fault} ({:?})", self.shape)),
            Err(fault) => Some(fault.to_string()),
            Ok(()) => self.first_difference(&after),
        }
    }

    fn first_difference(&self, after: &Arguments) -> Option<String> {
        let mut names: Vec<&String> = self.after.tensors.keys().collect();
        names.sort();
        for name in names {
            let (expected, got) = (&self.after.tensors[name], &after.tensors[name]);
            let mut different = (0..expected.len()).filter(|at| expected[*at] != got[*at]);
            if let Some(first) = different.next() {
                let count = 1 + different.count();
                return Some(format!("{count} of {} elements of {name} differ, first {first}", got.len()));
            }
        }
        None
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
        let columns = extents.last().copied().unwrap_or(1);
        let rows: i64 = extents[..extents.len().saturating_sub(1)].iter().product();
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
