//! cuBLAS, loaded only to compare with.
//!
//! Everything here is row-major. cuBLAS is column-major, and a row-major matrix read by columns is its transpose;
//! so it is asked for C^T = op(B)^T op(A)^T, with the operands swapped and each operation as it was.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::library::{Library, Loaded, preload};
use crate::locate;
use crate::memory::{Buffer, DevicePointer};
use crate::stream::Stream;

/// What is done to an operand before the product. The numbers are cuBLAS's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(i32)]
pub enum Op {
    /// As it is.
    #[default]
    None = 0,
    /// Transposed.
    Transpose = 1,
    /// Transposed and conjugated.
    ConjugateTranspose = 2,
}

/// The type of a matrix's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GemmType {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Complex of two singles.
    C64,
    /// Complex of two doubles.
    C128,
    /// Half precision.
    F16,
    /// The 16-bit format with single precision's exponent.
    Bf16,
}

impl GemmType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            GemmType::F16 | GemmType::Bf16 => 2,
            GemmType::F32 => 4,
            GemmType::F64 | GemmType::C64 => 8,
            GemmType::C128 => 16,
        }
    }

    /// cuBLAS's number for the type.
    pub(crate) fn data_type(self) -> c_int {
        match self {
            GemmType::F32 => 0,
            GemmType::F64 => 1,
            GemmType::F16 => 2,
            GemmType::C64 => 4,
            GemmType::C128 => 5,
            GemmType::Bf16 => 14,
        }
    }

    /// The type of alpha and beta: 16-bit products are scaled in single precision.
    pub(crate) fn scale(self) -> GemmType {
        match self {
            GemmType::F16 | GemmType::Bf16 => GemmType::F32,
            other => other,
        }
    }
}

/// Which arithmetic cuBLAS may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Math {
    /// What cuBLAS does unless asked otherwise: single precision is single precision, no TF32.
    #[default]
    Default,
    /// Only the textbook's operations in the textbook's precision.
    Pedantic,
    /// Single precision may be rounded to TF32 for the tensor cores.
    Tf32,
}

/// C = alpha op(A) op(B) + beta C, row-major.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gemm {
    /// Rows of C, columns of C, and the length of the sums.
    pub shape: [usize; 3],
    /// The type of A and B.
    pub element: GemmType,
    /// The type of C: that of A and B, or for the 16-bit ones also single precision.
    pub output: GemmType,
    /// What is done to A.
    pub op_a: Op,
    /// What is done to B.
    pub op_b: Op,
    /// Elements from one row of A, of B and of C to the next, as stored.
    pub leading: [usize; 3],
    /// alpha, with its imaginary part.
    pub alpha: [f64; 2],
    /// beta, with its imaginary part.
    pub beta: [f64; 2],
    /// The arithmetic allowed.
    pub math: Math,
}

impl Gemm {
    /// C = A B on packed matrices.
    pub fn new(element: GemmType, shape: [usize; 3]) -> Self {
        let gemm = Self {
            shape,
            element,
            output: element,
            op_a: Op::None,
            op_b: Op::None,
            leading: [0; 3],
            alpha: [1.0, 0.0],
            beta: [0.0, 0.0],
            math: Math::Default,
        };
        gemm.packed()
    }

    /// The same with other operations, on packed matrices.
    pub fn with_ops(mut self, op_a: Op, op_b: Op) -> Self {
        (self.op_a, self.op_b) = (op_a, op_b);
        self.packed()
    }

    fn packed(mut self) -> Self {
        self.leading = [self.stored_a()[1], self.stored_b()[1], self.shape[1]];
        self
    }

    /// Rows and columns of A as stored.
    pub fn stored_a(&self) -> [usize; 2] {
        let [m, _, k] = self.shape;
        if self.op_a == Op::None { [m, k] } else { [k, m] }
    }

    /// Rows and columns of B as stored.
    pub fn stored_b(&self) -> [usize; 2] {
        let [_, n, k] = self.shape;
        if self.op_b == Op::None { [k, n] } else { [n, k] }
    }

    /// The leading dimensions as cuBLAS wants them: never 0, even for a matrix of no columns.
    pub(crate) fn leading_for_cublas(&self) -> [i64; 3] {
        self.leading.map(|ld| ld.max(1) as i64)
    }

    /// cuBLAS's numbers for the operations on A and B. Conjugation does nothing to real numbers, and cuBLASLt does
    /// not take it for them.
    pub(crate) fn operations(&self) -> [c_int; 2] {
        let real = !matches!(self.element, GemmType::C64 | GemmType::C128);
        [self.op_a, self.op_b].map(|op| match op {
            Op::ConjugateTranspose if real => Op::Transpose as c_int,
            other => other as c_int,
        })
    }

    /// cuBLAS's number for the arithmetic.
    pub(crate) fn compute_type(&self) -> c_int {
        match (self.element.scale(), self.math) {
            (GemmType::F64 | GemmType::C128, Math::Pedantic) => 71,
            (GemmType::F64 | GemmType::C128, _) => 70,
            (_, Math::Pedantic) => 69,
            (GemmType::F32 | GemmType::C64, Math::Tf32) if self.element == self.element.scale() => 77,
            _ => 68,
        }
    }
}

/// A scalar in the bytes of its type.
pub(crate) fn scalar(kind: GemmType, [re, im]: [f64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    match kind {
        GemmType::F64 => put(0, &re.to_ne_bytes()),
        GemmType::C128 => {
            put(0, &re.to_ne_bytes());
            put(8, &im.to_ne_bytes());
        }
        GemmType::C64 => {
            put(0, &(re as f32).to_ne_bytes());
            put(4, &(im as f32).to_ne_bytes());
        }
        GemmType::F32 | GemmType::F16 | GemmType::Bf16 => put(0, &(re as f32).to_ne_bytes()),
    }
    bytes
}

/// Where the matrices are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operands {
    /// A.
    pub a: DevicePointer,
    /// B.
    pub b: DevicePointer,
    /// C, read only if beta is not 0.
    pub c: DevicePointer,
}

type Handle = *mut c_void;
/// `cublasXgemm_64`; the scalars and matrices have the function's own type.
type TypedGemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    i64,
    i64,
    i64,
    *const c_void,
    *const c_void,
    i64,
    *const c_void,
    i64,
    *const c_void,
    *mut c_void,
    i64,
) -> c_int;
type GemmEx = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    i64,
    i64,
    i64,
    *const c_void,
    *const c_void,
    c_int,
    i64,
    *const c_void,
    c_int,
    i64,
    *const c_void,
    *mut c_void,
    c_int,
    i64,
    c_int,
    c_int,
) -> c_int;

/// The part of cuBLAS's interface that is used.
struct Functions {
    create: unsafe extern "C" fn(*mut Handle) -> c_int,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    version: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> c_int,
    set_workspace: unsafe extern "C" fn(Handle, *mut c_void, usize) -> c_int,
    set_math: unsafe extern "C" fn(Handle, c_int) -> c_int,
    sgemm: TypedGemm,
    dgemm: TypedGemm,
    cgemm: TypedGemm,
    zgemm: TypedGemm,
    gemm_ex: GemmEx,
}

fn functions() -> Result<&'static Functions> {
    static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();
    FUNCTIONS.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Functions> {
    let loaded = open(Library::Cublas)?;
    // SAFETY: the types are those of cublas_api.h.
    let functions = unsafe {
        Functions {
            create: loaded.function("cublasCreate_v2")?,
            destroy: loaded.function("cublasDestroy_v2")?,
            version: loaded.function("cublasGetVersion_v2")?,
            set_stream: loaded.function("cublasSetStream_v2")?,
            set_workspace: loaded.function("cublasSetWorkspace_v2")?,
            set_math: loaded.function("cublasSetMathMode")?,
            sgemm: loaded.function("cublasSgemm_v2_64")?,
            dgemm: loaded.function("cublasDgemm_v2_64")?,
            cgemm: loaded.function("cublasCgemm_v2_64")?,
            zgemm: loaded.function("cublasZgemm_v2_64")?,
            gemm_ex: loaded.function("cublasGemmEx_64")?,
        }
    };
    loaded.leak();
    Ok(functions)
}

/// Opens cuBLAS or cuBLASLt where it was found, else by the name that the system's loader may know.
pub(crate) fn open(library: Library) -> Result<Loaded> {
    let advice = || locate::advice(library);
    if let Some(path) = locate::find(library).path {
        // cuBLAS needs the cuBLASLt of its own release: the one beside it, not one that the loader may find.
        if library == Library::Cublas
            && let Some(beside) =
                path.file_name().and_then(|n| n.to_str()).map(|n| n.replacen("cublas", "cublasLt", 1))
        {
            preload(path.with_file_name(beside).as_os_str());
        }
        return Loaded::open(library, path.as_os_str(), &advice);
    }
    let names = ["13", "12"].map(|major| PathBuf::from(format!("lib{}.so.{major}", library.stem())));
    let opened = names.iter().find_map(|name| Loaded::open(library, name.as_os_str(), &advice).ok());
    opened.ok_or_else(|| Error::LibraryMissing {
        library,
        reason: format!("no lib{}.so in the usual places", library.stem()),
        advice: advice(),
    })
}

/// Turns a cuBLAS status into a result.
pub(crate) fn check(call: &'static str, code: c_int) -> Result<()> {
    let name = match code {
        0 => return Ok(()),
        1 => "not initialised",
        3 => "allocation failed",
        7 => "invalid value",
        8 => "the GPU lacks a feature it needs",
        11 => "mapping error",
        13 => "execution failed",
        14 => "internal error",
        15 => "not supported",
        _ => "unknown status",
    };
    Err(Error::Cublas { call, code, name })
}

/// The scratch memory cuBLAS is given: what its documentation recommends for the largest GPUs, and more.
pub(crate) const WORKSPACE_BYTES: usize = 64 << 20;

/// cuBLAS on one GPU.
pub struct Cublas {
    device: Device,
    handle: Handle,
    functions: &'static Functions,
    /// Given to cuBLAS, which must not allocate while a graph is recorded.
    workspace: Buffer,
}

// SAFETY: a handle may move between threads; it is not used from two at once, since the type is not `Sync`.
unsafe impl Send for Cublas {}

impl Drop for Cublas {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: created in `new`.
            unsafe { (self.functions.destroy)(self.handle) };
        }
    }
}

impl Cublas {
    /// Loads cuBLAS, if need be, and prepares it for a GPU.
    pub fn new(device: &Device) -> Result<Self> {
        let functions = functions()?;
        device.bind()?;
        let workspace = device.alloc(WORKSPACE_BYTES)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current.
        check("cublasCreate", unsafe { (functions.create)(&mut handle) })?;
        Ok(Self { device: device.clone(), handle, functions, workspace })
    }

    /// The version, as in 130002.
    pub fn version(&self) -> Result<u32> {
        let mut version = 0;
        // SAFETY: the handle is alive.
        check("cublasGetVersion", unsafe { (self.functions.version)(self.handle, &mut version) })?;
        Ok(version as u32)
    }

    /// Enqueues a product: `cublasSgemm` and its kin, and for 16-bit types `cublasGemmEx` summing in single precision.
    pub fn gemm(&self, stream: &Stream, gemm: &Gemm, at: Operands) -> Result<()> {
        self.device.bind()?;
        let f = self.functions;
        let math = match gemm.math {
            Math::Default => 0,
            Math::Pedantic => 2,
            Math::Tf32 => 3,
        };
        // SAFETY: the handle, the stream and the workspace are alive. Setting the stream resets the workspace.
        unsafe {
            check("cublasSetStream", (f.set_stream)(self.handle, stream.raw().cast()))?;
            let memory = self.workspace.pointer().0 as *mut c_void;
            check("cublasSetWorkspace", (f.set_workspace)(self.handle, memory, self.workspace.bytes()))?;
            check("cublasSetMathMode", (f.set_math)(self.handle, math))?;
        }
        let typed = match gemm.element {
            GemmType::F32 => Some(("cublasSgemm", f.sgemm)),
            GemmType::F64 => Some(("cublasDgemm", f.dgemm)),
            GemmType::C64 => Some(("cublasCgemm", f.cgemm)),
            GemmType::C128 => Some(("cublasZgemm", f.zgemm)),
            GemmType::F16 | GemmType::Bf16 => None,
        };
        match typed {
            Some((call, function)) if gemm.output == gemm.element => self.typed(call, function, gemm, at),
            _ => self.mixed(gemm, at),
        }
    }

    fn typed(&self, call: &'static str, function: TypedGemm, gemm: &Gemm, at: Operands) -> Result<()> {
        let [m, n, k] = gemm.shape.map(|size| size as i64);
        let [lda, ldb, ldc] = gemm.leading_for_cublas();
        let [op_a, op_b] = gemm.operations();
        let (alpha, beta) =
            (Scalar(scalar(gemm.element, gemm.alpha)), Scalar(scalar(gemm.element, gemm.beta)));
        // SAFETY: the scalars have the function's type; the operands are the caller's to vouch for.
        check(call, unsafe {
            function(
                self.handle,
                op_b,
                op_a,
                n,
                m,
                k,
                alpha.pointer(),
                at.b.0 as *const c_void,
                ldb,
                at.a.0 as *const c_void,
                lda,
                beta.pointer(),
                at.c.0 as *mut c_void,
                ldc,
            )
        })
    }

    fn mixed(&self, gemm: &Gemm, at: Operands) -> Result<()> {
        const DEFAULT_ALGORITHM: c_int = -1;
        let [m, n, k] = gemm.shape.map(|size| size as i64);
        let [lda, ldb, ldc] = gemm.leading_for_cublas();
        let [op_a, op_b] = gemm.operations();
        let kind = gemm.element.scale();
        let (alpha, beta) = (Scalar(scalar(kind, gemm.alpha)), Scalar(scalar(kind, gemm.beta)));
        let element = gemm.element.data_type();
        // SAFETY: as above; the scalars have the type that the arithmetic implies.
        check("cublasGemmEx", unsafe {
            (self.functions.gemm_ex)(
                self.handle,
                op_b,
                op_a,
                n,
                m,
                k,
                alpha.pointer(),
                at.b.0 as *const c_void,
                element,
                ldb,
                at.a.0 as *const c_void,
                element,
                lda,
                beta.pointer(),
                at.c.0 as *mut c_void,
                gemm.output.data_type(),
                ldc,
                gemm.compute_type(),
                DEFAULT_ALGORITHM,
            )
        })
    }
}

/// A scalar where cuBLAS can read it as any type.
#[repr(C, align(16))]
pub(crate) struct Scalar(pub(crate) [u8; 16]);

impl Scalar {
    pub(crate) fn pointer(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::{Gemm, GemmType, Math, Op, scalar};

    #[test]
    fn packed_leading_dimensions_follow_the_operations() {
        let gemm = Gemm::new(GemmType::F32, [3, 5, 7]);
        assert_eq!(gemm.leading, [7, 5, 5]);
        let gemm = gemm.with_ops(Op::Transpose, Op::ConjugateTranspose);
        assert_eq!((gemm.stored_a(), gemm.stored_b(), gemm.leading), ([7, 3], [5, 7], [3, 7, 5]));
        assert_eq!(Gemm::new(GemmType::F32, [3, 0, 7]).leading_for_cublas(), [7, 1, 1]);
    }

    #[test]
    fn single_precision_is_not_tf32_unless_asked() {
        let gemm = Gemm::new(GemmType::F32, [1, 1, 1]);
        assert_eq!(gemm.compute_type(), 68);
        assert_eq!(Gemm { math: Math::Tf32, ..gemm }.compute_type(), 77);
        assert_eq!(Gemm { math: Math::Pedantic, ..gemm }.compute_type(), 69);
        assert_eq!(Gemm { math: Math::Tf32, ..Gemm::new(GemmType::Bf16, [1, 1, 1]) }.compute_type(), 68);
        assert_eq!(Gemm::new(GemmType::C128, [1, 1, 1]).compute_type(), 70);
    }

    #[test]
    fn scalars_have_the_bytes_of_their_type() {
        assert_eq!(scalar(GemmType::F32, [2.0, 0.0])[..4], 2.0f32.to_ne_bytes());
        assert_eq!(scalar(GemmType::Bf16, [2.0, 0.0])[..4], 2.0f32.to_ne_bytes());
        assert_eq!(scalar(GemmType::C64, [2.0, 3.0])[4..8], 3.0f32.to_ne_bytes());
        assert_eq!(scalar(GemmType::C128, [2.0, 3.0])[8..], 3.0f64.to_ne_bytes());
    }
}
