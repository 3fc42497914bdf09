//! A validated program on a GPU: compiled, loaded, and launched from the sizes of a problem.

use std::cell::OnceCell;

use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::emit::cuda::{self, Argument, LARGEST_LAUNCH_PARAMETER, Source};
use warpwright_core::ir::{ParamKind, Program};
use warpwright_core::sym::Sym;
use warpwright_core::target::Target;
use warpwright_cuda::cache::{Cached, Notice};
use warpwright_cuda::tensor_map::{Swizzle, TensorMapSpec, TensorType};
use warpwright_cuda::{
    Arg, Buffer, CompileCache, Compiled, Device, DevicePointer, Kernel, KernelResources, LaunchConfig,
    Options, Stream, TensorMap,
};

use super::{OperandSets, alias, diagnosis};
use crate::bind::{self, Binding, Role};
use crate::report::LaunchReport;

/// Where the values of a program's parameters come from.
pub trait Arguments {
    /// The value of a size, a launch size, a row stride or a flag.
    fn integer(&self, sym: &Sym) -> Option<i64>;
    /// The value of a scalar.
    fn scalar(&self, sym: &Sym) -> Option<Complex64>;
    /// How many sets of tensors there are; launches rotate among them.
    fn sets(&self) -> usize;
    /// Where a tensor of a set is.
    fn tensor(&self, set: usize, sym: &Sym) -> Option<DevicePointer>;
    /// Bytes of a tensor before anything that the program looks at.
    fn bytes_before(&self, _sym: &Sym) -> u64 {
        0
    }
}

/// The arguments of a program that computes a matrix product.
pub struct Product<'a> {
    program: &'a Program,
    binding: &'a Binding,
    sets: &'a OperandSets,
}

impl Arguments for Product<'_> {
    fn integer(&self, sym: &Sym) -> Option<i64> {
        self.binding.value(sym)
    }

    fn scalar(&self, sym: &Sym) -> Option<Complex64> {
        let position = self.program.params.iter().position(|p| p.sym == *sym)?;
        match self.binding.arguments[position] {
            bind::Argument::Scalar(value) => Some(value),
            _ => None,
        }
    }

    fn sets(&self) -> usize {
        self.sets.len()
    }

    fn tensor(&self, set: usize, sym: &Sym) -> Option<DevicePointer> {
        let at = self.sets.at(set);
        let matrix = match Role::named(sym.name())? {
            Role::A => at.a,
            Role::B => at.b,
            Role::C => at.c,
        };
        Some(matrix.before(self.bytes_before(sym)))
    }

    fn bytes_before(&self, sym: &Sym) -> u64 {
        self.binding.bytes_before(sym) as u64
    }
}

/// A program on one GPU. It serves problems of any size; a kernel is compiled, or found compiled, and loaded when a
/// problem first needs it.
pub struct Executable {
    source: Source,
    program: Program,
    options: Options,
    cache: CompileCache,
    kernels: Vec<OnceCell<Loaded>>,
}

/// A kernel on the GPU.
struct Loaded {
    kernel: Kernel,
    compiled: Compiled,
    /// What there is to say of the compilation cache.
    notices: Vec<String>,
}

impl Executable {
    /// A program and its CUDA text, for a GPU.
    pub fn new(device: &Device, program: Program, source: Source, target: &Target) -> Executable {
        Executable::with_cache(device, program, source, target, CompileCache::standard())
    }

    /// The same with a cache of one's choice.
    pub fn with_cache(
        device: &Device,
        program: Program,
        source: Source,
        target: &Target,
        cache: CompileCache,
    ) -> Executable {
        let options = super::options(&device.info().arch(), &source, target);
        let kernels = source.kernels.iter().map(|_| OnceCell::new()).collect();
        Executable { source, program, options, cache, kernels }
    }

    /// A kernel of the source, which is compiled and loaded if nobody has asked for it yet.
    fn kernel(&self, device: &Device, number: usize) -> Result<&Loaded, Diagnosis> {
        let cell = &self.kernels[number];
        if let Some(loaded) = cell.get() {
            return Ok(loaded);
        }
        let name = &self.source.kernels[number].name;
        let cached = compile_unit(&self.source, number, &self.options, &self.cache)?;
        let kernel =
            device.load(&cached.compiled.cubin).and_then(|module| module.kernel(name)).map_err(diagnosis)?;
        let notices = cached.notices.iter().map(ToString::to_string).collect();
        Ok(cell.get_or_init(|| Loaded { kernel, compiled: cached.compiled, notices }))
    }

    /// What there is to say of the compilation cache, of the kernels loaded so far.
    pub fn notices(&self) -> Vec<String> {
        let mut notices: Vec<String> = Vec::new();
        for notice in self.kernels.iter().filter_map(OnceCell::get).flat_map(|k| &k.notices) {
            if !notices.contains(notice) {
                notices.push(notice.clone());
            }
        }
        notices
    }

    /// Everything that is needed to launch the program on the operands of a problem, worked out beforehand. The GPU fetches from then on as the program
    /// wants it: of several that are prepared, the last one decides.
    pub fn prepare(
        &self,
        device: &Device,
        binding: &Binding,
        sets: &OperandSets,
    ) -> Result<Prepared, Diagnosis> {
        self.prepare_with(device, &Product { program: &self.program, binding, sets })
    }

    /// The same for a program with any parameters.
    ///
    /// # Errors
    /// Sizes that no kernel takes, tensors that share memory where one is written, and what CUDA refuses.
    pub fn prepare_with(&self, device: &Device, arguments: &dyn Arguments) -> Result<Prepared, Diagnosis> {
        let value = |sym: &Sym| arguments.integer(sym);
        self.check_sizes(arguments)?;
        for set in 0..arguments.sets() {
            alias::check(&self.program, arguments, set)?;
        }
        let fetched = self.source.fetches.and_then(|bytes| usize::try_from(bytes).ok());
        device.fetch_at_most(fetched).map_err(diagnosis)?;
        let mut scratch = Vec::new();
        for wanted in &self.source.scratch {
            let bytes = wanted.bytes(&value).map_err(unknown)?;
            let bytes = usize::try_from(bytes).map_err(|_| too_large(&self.source.name))?;
            scratch.push((device.alloc(bytes).map_err(diagnosis)?, wanted.zeroed));
        }
        let mut launches = Vec::new();
        for number in self.source.launched(&value).map_err(unknown)? {
            let kernel = &self.source.kernels[number];
            let Some(mut config) = configuration(kernel, &value)? else { continue };
            if kernel.waits && (self.source.begins_early || !launches.is_empty()) {
                config = config.waiting_itself();
            }
            let mut values = Vec::new();
            for set in 0..arguments.sets() {
                let of = |wanted| argument(wanted, arguments, set, &scratch);
                values.push(kernel.arguments.iter().map(of).collect::<Result<Vec<_>, _>>()?);
            }
            let kernel = self.kernel(device, number)?.kernel.clone();
            launches.push(Launch { kernel, number, config, arguments: values });
        }
        Ok(Prepared { launches, scratch })
    }

    /// The launches of a prepared call in a report.
    pub fn launches(&self, prepared: &Prepared) -> Vec<LaunchReport> {
        let one = |launch: &Launch| LaunchReport {
            grid: launch.config.grid.map(u64::from),
            block: launch.config.block,
            shared_bytes: self.source.kernels[launch.number].shared_bytes as u64,
            registers: self.registers(launch.number),
        };
        prepared.launches.iter().map(one).collect()
    }

    /// Registers of a thread, as the compiler reports them.
    fn registers(&self, number: usize) -> Option<u32> {
        let compiled = &self.kernels[number].get()?.compiled;
        compiled.kernel(&self.source.kernels[number].name).map(|k| k.registers)
    }

    /// Sizes are passed as integers of as many bits as the source says, strides of 32 bits; a stride that does not fit is
    /// refused where it is passed.
    fn check_sizes(&self, arguments: &dyn Arguments) -> Result<(), Diagnosis> {
        for param in &self.program.params {
            let (what, most) = match param.kind {
                ParamKind::Size => ("size", self.source.largest_size),
                ParamKind::Launch => ("launch size", LARGEST_LAUNCH_PARAMETER),
                ParamKind::Flag | ParamKind::Scalar(_) | ParamKind::Tensor(_) => continue,
            };
            if arguments.integer(&param.sym).is_some_and(|v| v > most) {
                return Err(Diagnosis::new(format!("the {what} {} is too large for one launch", param.sym))
                    .because(format!("kernels take sizes up to {most}"))
                    .instead("compute the product in parts"));
            }
        }
        Ok(())
    }
}

/// Compiles one kernel of a source, or finds it compiled.
fn compile_unit(
    source: &Source,
    number: usize,
    options: &Options,
    cache: &CompileCache,
) -> Result<Cached, Diagnosis> {
    let file = format!("{}.cu", source.kernels[number].name);
    let unit = warpwright_cuda::Source::new(&file, &source.units[number]);
    let cached = cache.compile(&unit, options).map_err(diagnosis)?;
    match cached.compiled.kernels.iter().find(|k| k.spill_store_bytes > 0 && k.stack_bytes > MOST_SPILLED) {
        Some(kernel) => Err(without_registers(kernel)),
        None => Ok(cached),
    }
}

/// The most bytes of its own that a thread of a kernel that spills may have in memory: those of all the registers that
/// it can have. Where there are more, the compiler has found no registers for the kernel at all, and what it makes then
/// cannot be trusted: of 45 000 candidates of tsmttsm and tsmm on an H200 (2026-11-22, NVRTC 13.0) the
/// results of 8 were wrong, all of them such kernels, though they are exact on the simulator.
const MOST_SPILLED: u32 = 4 * 255;

fn without_registers(kernel: &KernelResources) -> Diagnosis {
    Diagnosis::new(format!("the kernel {} is not run", kernel.name))
        .because(format!(
            "the compiler found no registers for it and keeps {} bytes of each thread in memory; \
             results of such kernels were seen to be wrong",
            kernel.stack_bytes
        ))
        .instead("give a thread or a warp less to hold: a smaller tile, or fewer rows at a time")
}

/// What compiling ahead came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Registers of a thread of the kernel that has most, where the compiler says.
    pub registers: Option<u32>,
    /// Kernels that were compiled.
    pub compiled: usize,
    /// Kernels that were found compiled.
    pub found: usize,
    /// Why a kernel that was compiled could not be kept, if one could not.
    pub lost: Option<String>,
}

/// Compiles the kernels that are needed where parameters have these values into the user's cache, where an
/// [`Executable`] will find them. `own` is the architecture of the GPU, which itself is not used.
///
/// # Errors
/// Source that does not compile, and no NVRTC.
pub fn compile_ahead(
    own: &str,
    source: &Source,
    target: &Target,
    value: &dyn Fn(&Sym) -> Option<i64>,
) -> Result<Ahead, Diagnosis> {
    let (options, cache) = (super::options(own, source, target), CompileCache::standard());
    let mut ahead = Ahead::default();
    for number in source.launched(value).map_err(unknown)? {
        if configuration(&source.kernels[number], value)?.is_some() {
            let Cached { compiled, hit, notices } = compile_unit(source, number, &options, &cache)?;
            let not_kept = |n: &&Notice| matches!(n, Notice::NotKept { .. } | Notice::NoDirectory { .. });
            ahead.lost = ahead.lost.or(notices.iter().find(not_kept).map(ToString::to_string));
            ahead.registers = ahead.registers.max(compiled.kernels.iter().map(|k| k.registers).max());
            ahead.found += usize::from(hit);
            ahead.compiled += usize::from(!hit);
        }
    }
    Ok(ahead)
}

/// What is passed for one parameter of a kernel.
fn argument(
    wanted: &Argument,
    arguments: &dyn Arguments,
    set: usize,
    scratch: &[(Buffer, bool)],
) -> Result<Value, Diagnosis> {
    let integer = |sym: &Sym| arguments.integer(sym).ok_or_else(|| unknown(sym.clone()));
    let address = |sym: &Sym| arguments.tensor(set, sym).ok_or_else(|| unknown(sym.clone()));
    Ok(match wanted {
        Argument::Size(sym) | Argument::Stride(sym) => {
            Value::I32(i32::try_from(integer(sym)?).map_err(|_| too_large(sym.name()))?)
        }
        Argument::LongSize(sym) => Value::I64(integer(sym)?),
        Argument::Flag(sym) => Value::Bool(integer(sym)? != 0),
        Argument::Scalar(sym, dtype) => {
            scalar(arguments.scalar(sym).ok_or_else(|| unknown(sym.clone()))?, *dtype)?
        }
        Argument::Tensor(sym) => Value::Pointer(address(sym)?),
        Argument::Scratch(number) => Value::Pointer(scratch[*number].0.pointer()),
        Argument::TensorMap(map) => {
            Value::TensorMap(Box::new(tensor_map(map, arguments, address(&map.tensor)?)?))
        }
    })
}

fn tensor_map(
    map: &cuda::TensorMap,
    arguments: &dyn Arguments,
    address: DevicePointer,
) -> Result<TensorMap, Diagnosis> {
    let value = |sym: &Sym| arguments.integer(sym);
    // An empty tensor is never read, but its map must not be empty.
    let extent = |i: usize| map.extents[i].eval(&value).map_err(unknown).map(|e| e.max(1) as u64);
    let extents = [extent(0)?, extent(1)?];
    let stride = match &map.row_stride {
        Some(sym) => value(sym).ok_or_else(|| unknown(sym.clone()))? as u64,
        None => extents[1],
    };
    let box_extents = map.box_extents.map(|e| e as u32);
    let row_bytes = stride * map.dtype.bytes() as u64;
    let (element, of_a_number) = elements(map.dtype);
    let wider = |[rows, columns]: [u64; 2]| [rows, columns * u64::from(of_a_number)];
    let [height, width] = box_extents;
    let spec =
        TensorMapSpec::matrix(element, address, wider(extents), row_bytes, [height, width * of_a_number])
            .swizzled(swizzle(map.swizzle_bytes)?);
    TensorMap::encode(&spec).map_err(diagnosis)
}

/// The launches of one problem, with the arguments for each set of operands.
pub struct Prepared {
    launches: Vec<Launch>,
    /// Scratch memory, and whether it is zeroed before every call.
    scratch: Vec<(Buffer, bool)>,
}

struct Launch {
    kernel: Kernel,
    /// Its number in the source.
    number: usize,
    config: LaunchConfig,
    /// The arguments for each set of operands.
    arguments: Vec<Vec<Value>>,
}

impl Prepared {
    /// Enqueues one call of the program, on the operands of launch number `call`.
    pub fn enqueue(&self, stream: &Stream, call: usize) -> warpwright_cuda::Result<()> {
        for (buffer, _) in self.scratch.iter().filter(|(_, zeroed)| *zeroed) {
            buffer.fill(stream, 0)?;
        }
        for launch in &self.launches {
            let arguments: Vec<Arg> =
                launch.arguments[call % launch.arguments.len()].iter().map(Value::as_arg).collect();
            launch.kernel.launch(stream, &launch.config, &arguments)?;
        }
        Ok(())
    }
}

/// An argument that owns what it is made of.
enum Value {
    Bool(bool),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    C64([f32; 2]),
    C128([f64; 2]),
    Pointer(DevicePointer),
    TensorMap(Box<TensorMap>),
}

impl Value {
    fn as_arg(&self) -> Arg<'_> {
        match self {
            Value::Bool(value) => Arg::Bool(*value),
            Value::I32(value) => Arg::I32(*value),
            Value::I64(value) => Arg::I64(*value),
            Value::F32(value) => Arg::F32(*value),
            Value::F64(value) => Arg::F64(*value),
            Value::C64(value) => Arg::C64(*value),
            Value::C128(value) => Arg::C128(*value),
            Value::Pointer(value) => Arg::Pointer(*value),
            Value::TensorMap(map) => Arg::TensorMap(map),
        }
    }
}

fn scalar(value: Complex64, dtype: DType) -> Result<Value, Diagnosis> {
    Ok(match dtype {
        DType::F32 => Value::F32(value.re as f32),
        DType::F64 => Value::F64(value.re),
        DType::I32 => Value::I32(value.re as i32),
        DType::C64 => Value::C64([value.re as f32, value.im as f32]),
        DType::C128 => Value::C128([value.re, value.im]),
        DType::F16 | DType::Bf16 => {
            return Err(Diagnosis::new(format!("a scalar of type {dtype} cannot be passed to a kernel"))
                .instead("declare alpha and beta in the accumulation type, f32"));
        }
    })
}

/// How a kernel is launched for these sizes; `None` where its grid is empty.
fn configuration(
    kernel: &cuda::Kernel,
    value: &dyn Fn(&Sym) -> Option<i64>,
) -> Result<Option<LaunchConfig>, Diagnosis> {
    let grid = kernel.grid(value).map_err(unknown)?;
    if grid.contains(&0) {
        return Ok(None);
    }
    for factors in &kernel.int_products {
        if cuda::product(factors, value).map_err(unknown)? > i64::from(i32::MAX) {
            return Err(too_large(&kernel.name));
        }
    }
    let narrow = |n: i64| u32::try_from(n).map_err(|_| too_large(&kernel.name));
    let grid = [narrow(grid[0])?, narrow(grid[1])?, narrow(grid[2])?];
    let block = [narrow(kernel.threads)?, 1, 1];
    Ok(Some(LaunchConfig::new(grid, block).shared(narrow(kernel.dynamic_shared_bytes)?)))
}

/// As what a tensor map has the elements of a type, which have 8 bytes at most, and how many of these a number is.
fn elements(dtype: DType) -> (TensorType, u32) {
    match dtype {
        DType::F16 => (TensorType::F16, 1),
        DType::Bf16 => (TensorType::Bf16, 1),
        DType::F32 => (TensorType::F32, 1),
        DType::F64 => (TensorType::F64, 1),
        DType::I32 => (TensorType::I32, 1),
        DType::C64 => (TensorType::U64, 1),
        DType::C128 => (TensorType::F64, 2),
    }
}

fn swizzle(bytes: i64) -> Result<Swizzle, Diagnosis> {
    match bytes {
        0 => Ok(Swizzle::None),
        32 => Ok(Swizzle::Bytes32),
        64 => Ok(Swizzle::Bytes64),
        128 => Ok(Swizzle::Bytes128),
        _ => Err(Diagnosis::new(format!("bulk copies know no swizzle of {bytes} bytes"))),
    }
}

fn unknown(sym: Sym) -> Diagnosis {
    Diagnosis::new(format!("`{sym}` has no value when the kernel is launched"))
}

fn too_large(kernel: &str) -> Diagnosis {
    Diagnosis::new(format!("{kernel} cannot be launched on a problem of this size"))
        .because("its grid or its indices would pass the limits of the GPU")
        .instead("choose a smaller size or another kernel")
}
