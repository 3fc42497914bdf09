//! What the emitter gives: the text, and everything a runtime must know to launch it from sizes alone.

use std::fmt;

use crate::dtype::DType;
use crate::index::{Cond, Index};
use crate::sym::Sym;
use crate::target::Capability;

/// The largest size or row stride that an emitted kernel can be launched with: both are passed as `int`, and the
/// indices of a ragged last tile, or of the step beyond the last, may exceed a size by up to 2^24.
pub const LARGEST_SIZE: i64 = (1 << 31) - (1 << 24) - 1;
/// The largest size that a kernel for long sizes can be launched with: they are passed as `long long`.
pub const LARGEST_LONG_SIZE: i64 = 1 << 40;
/// The largest launch parameter: also passed as `int`, and multiplied by the steps of grid-stride loops.
pub const LARGEST_LAUNCH_PARAMETER: i64 = 1 << 20;

/// A program as CUDA C++.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the program.
    pub name: String,
    /// The whole translation unit; it includes no header.
    pub text: String,
    /// The same by kernels: each with the device functions is a translation unit of its own, so that who launches one
    /// kernel compiles one.
    pub units: Vec<String>,
    /// The kernels, in the order of the text.
    pub kernels: Vec<Kernel>,
    /// Device memory that each call needs besides its tensors.
    pub scratch: Vec<Scratch>,
    /// What the host does, in order.
    pub host: Vec<Step>,
    /// The largest size that the kernels can be launched with: [`LARGEST_SIZE`] or [`LARGEST_LONG_SIZE`].
    pub largest_size: i64,
    /// Whether the first launch of a call may begin before the launch before it in the stream has ended: its kernel waits for it itself.
    pub begins_early: bool,
    /// How many bytes device memory should give at a time at most (`CU_LIMIT_MAX_L2_FETCH_GRANULARITY` of the context); otherwise as many as the driver
    /// has it give.
    pub fetches: Option<i64>,
    /// What the target must have, for choosing the architecture to compile for.
    pub needs: Vec<Capability>,
}

/// One step of the host.
#[derive(Clone, Debug)]
pub enum Step {
    /// Launches the kernel of this number in [`Source::kernels`], unless its grid has no block.
    Launch(usize),
    /// Carries out one of two lists of steps.
    If {
        /// A condition on sizes and flags.
        cond: Cond,
        /// The steps if it holds.
        then: Vec<Step>,
        /// The steps if not.
        otherwise: Vec<Step>,
    },
}

/// A kernel and how to launch it.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name in the text; it is `extern "C"`.
    pub name: String,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// The number of blocks along x, y and z, each a product. No block, no launch.
    pub grid: [Vec<Index>; 3],
    /// Threads per block, along x.
    pub threads: i64,
    /// Dynamic shared memory to ask for; 0 where all of it is static.
    pub dynamic_shared_bytes: i64,
    /// Shared memory of a block in all, as the program lays it out.
    pub shared_bytes: i64,
    /// Products that the kernel keeps in an `int`: the caller checks that they stay below 2^31.
    pub int_products: Vec<Vec<Index>>,
    /// Whether it waits itself for the launch before it, in the same call or, where calls begin early, in another, so that it may be launched
    /// to begin before that one has ended. It does where the target has programmatic dependent launches.
    pub waits: bool,
}

/// What is passed for one parameter of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A size or launch parameter, as `int`.
    Size(Sym),
    /// A size, as `long long`.
    LongSize(Sym),
    /// A row stride in elements, as `int`.
    Stride(Sym),
    /// A flag, as `bool`.
    Flag(Sym),
    /// A scalar by value; complex ones as `float2` or `double2`, 16-bit ones as their bits.
    Scalar(Sym, DType),
    /// The address of a tensor parameter.
    Tensor(Sym),
    /// The address of the scratch buffer of this number in [`Source::scratch`].
    Scratch(usize),
    /// A tensor map, passed by value as a `__grid_constant__` of 128 bytes.
    TensorMap(TensorMap),
}

/// The description of a tensor by which bulk copies address it. Elements outside read as zero and are not written.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMap {
    /// The tensor.
    pub tensor: Sym,
    /// The type of its elements.
    pub dtype: DType,
    /// Rows and columns of the tensor.
    pub extents: [Index; 2],
    /// The row stride in elements; without one, rows are adjacent.
    pub row_stride: Option<Sym>,
    /// Rows and columns of the box that one copy moves.
    pub box_extents: [i64; 2],
    /// The period of the swizzle of the box in shared memory, in bytes; 0 where its rows lie one after the other.
    pub swizzle_bytes: i64,
}

/// Device memory that a call needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Scratch {
    /// What it is, for people.
    pub name: String,
    /// Bytes of one element.
    pub element_bytes: i64,
    /// The number of elements, as a product.
    pub extents: Vec<Index>,
    /// Whether it must be filled with zero bytes before every call.
    pub zeroed: bool,
}

impl Source {
    /// The numbers of the kernels that the host launches, in order, from the values of sizes and flags.
    ///
    /// # Errors
    /// The first symbol that has no value.
    pub fn launched(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<Vec<usize>, Sym> {
        let mut numbers = Vec::new();
        launched(&self.host, value, &mut numbers)?;
        Ok(numbers)
    }
}

fn launched(
    steps: &[Step],
    value: &dyn Fn(&Sym) -> Option<i64>,
    numbers: &mut Vec<usize>,
) -> Result<(), Sym> {
    for step in steps {
        match step {
            Step::Launch(number) => numbers.push(*number),
            Step::If { cond, then, otherwise } => {
                launched(if cond.eval(value)? { then } else { otherwise }, value, numbers)?;
            }
        }
    }
    Ok(())
}

impl Kernel {
    /// The number of blocks along x, y and z, from the values of sizes and launch parameters.
    ///
    /// # Errors
    /// The first symbol that has no value.
    pub fn grid(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<[i64; 3], Sym> {
        let mut grid = [1; 3];
        for (blocks, factors) in grid.iter_mut().zip(&self.grid) {
            *blocks = product(factors, value)?;
        }
        Ok(grid)
    }
}

impl Scratch {
    /// Bytes in all, from the values of sizes and launch parameters.
    ///
    /// # Errors
    /// The first symbol that has no value.
    pub fn bytes(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<i64, Sym> {
        Ok(product(&self.extents, value)?.saturating_mul(self.element_bytes))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The product of factors that are sizes, so never below 0; 2^63 - 1 if it is larger than that.
pub fn product(factors: &[Index], value: &dyn Fn(&Sym) -> Option<i64>) -> Result<i64, Sym> {
    factors.iter().try_fold(1i64, |product, f| Ok(product.saturating_mul(f.eval(value)?.max(0))))
}
