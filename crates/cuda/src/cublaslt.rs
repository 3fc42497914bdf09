//! cuBLASLt, loaded only to compare with: the best of its heuristics' first answers.
//!
//! cuBLAS picks one algorithm; cuBLASLt proposes several in the order it believes in, and the first is not always
//! the fastest. An honest comparison times the first few. Row-major as in [`crate::cublas`].

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::cublas::{Gemm, Operands, Scalar, WORKSPACE_BYTES, check, open, scalar};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::library::Library;
use crate::measure::{self, MeasureOptions, Timing};
use crate::memory::Buffer;
use crate::stream::Stream;

type Handle = *mut c_void;
type Set = unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> c_int;
type Destroy = unsafe extern "C" fn(*mut c_void) -> c_int;

/// An algorithm as cuBLASLt proposes it: `cublasLtMatmulHeuristicResult_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Proposal {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// The part of cuBLASLt's interface that is used.
struct Functions {
    version: unsafe extern "C" fn() -> usize,
    create: unsafe extern "C" fn(*mut Handle) -> c_int,
    destroy: Destroy,
    desc_create: unsafe extern "C" fn(*mut *mut c_void, c_int, c_int) -> c_int,
    desc_set: Set,
    desc_destroy: Destroy,
    layout_create: unsafe extern "C" fn(*mut *mut c_void, c_int, u64, u64, i64) -> c_int,
    layout_destroy: Destroy,
    preference_create: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    preference_set: Set,
    preference_destroy: Destroy,
    heuristic: unsafe extern "C" fn(
        Handle,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        c_int,
        *mut Proposal,
        *mut c_int,
    ) -> c_int,
    matmul: unsafe extern "C" fn(
        Handle,
        *mut c_void,
        *const c_void,
        *const c_void,
        *mut c_void,
        *const c_void,
        *mut c_void,
        *const c_void,
        *const c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *const [u64; 8],
        *mut c_void,
        usize,
        *mut c_void,
    ) -> c_int,
}

const DESC_TRANSA: c_int = 3;
const DESC_TRANSB: c_int = 4;
const PREFERENCE_MAX_WORKSPACE: c_int = 1;

fn functions() -> Result<&'static Functions> {
    static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();
    FUNCTIONS.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Functions> {
    let loaded = open(Library::CublasLt)?;
    // SAFETY: the types are those of cublasLt.h.
    let functions = unsafe {
        Functions {
            version: loaded.function("cublasLtGetVersion")?,
            create: loaded.function("cublasLtCreate")?,
            destroy: loaded.function("cublasLtDestroy")?,
            desc_create: loaded.function("cublasLtMatmulDescCreate")?,
            desc_set: loaded.function("cublasLtMatmulDescSetAttribute")?,
            desc_destroy: loaded.function("cublasLtMatmulDescDestroy")?,
            layout_create: loaded.function("cublasLtMatrixLayoutCreate")?,
            layout_destroy: loaded.function("cublasLtMatrixLayoutDestroy")?,
            preference_create: loaded.function("cublasLtMatmulPreferenceCreate")?,
            preference_set: loaded.function("cublasLtMatmulPreferenceSetAttribute")?,
            preference_destroy: loaded.function("cublasLtMatmulPreferenceDestroy")?,
            heuristic: loaded.function("cublasLtMatmulAlgoGetHeuristic")?,
            matmul: loaded.function("cublasLtMatmul")?,
        }
    };
    loaded.leak();
    Ok(functions)
}

/// Something cuBLASLt made and wants back.
struct Owned {
    pointer: *mut c_void,
    destroy: Destroy,
}

impl Owned {
    fn new(
        call: &'static str,
        destroy: Destroy,
        create: impl FnOnce(*mut *mut c_void) -> c_int,
    ) -> Result<Self> {
        let mut pointer = std::ptr::null_mut();
        check(call, create(&mut pointer))?;
        Ok(Self { pointer, destroy })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by the `create` that belongs to `destroy`.
        unsafe { (self.destroy)(self.pointer) };
    }
}

/// cuBLASLt on one GPU.
pub struct CublasLt {
    device: Device,
    functions: &'static Functions,
    handle: Owned,
    workspace: Buffer,
}

impl CublasLt {
    /// Loads cuBLASLt, if need be, and prepares it for a GPU.
    pub fn new(device: &Device) -> Result<Self> {
        let functions = functions()?;
        device.bind()?;
        // SAFETY: the context is current.
        let handle = Owned::new("cublasLtCreate", functions.destroy, |p| unsafe { (functions.create)(p) })?;
        let workspace = device.alloc(WORKSPACE_BYTES)?;
        Ok(Self { device: device.clone(), functions, handle, workspace })
    }

    /// The version, as in 130002.
    pub fn version(&self) -> usize {
        // SAFETY: it takes nothing.
        unsafe { (self.functions.version)() }
    }

    /// Asks for the first `count` proposals for a product.
    pub fn plan(&self, gemm: &Gemm, count: usize) -> Result<Plan<'_>> {
        self.device.bind()?;
        let f = self.functions;
        let kind = gemm.element.scale();
        // SAFETY, here and below: the numbers are cuBLASLt's and the values have the attributes' types.
        let description = Owned::new("cublasLtMatmulDescCreate", f.desc_destroy, |p| unsafe {
            (f.desc_create)(p, gemm.compute_type(), kind.data_type())
        })?;
        let [op_a, op_b] = gemm.operations();
        for (attribute, op) in [(DESC_TRANSA, op_b), (DESC_TRANSB, op_a)] {
            set("cublasLtMatmulDescSetAttribute", f.desc_set, &description, attribute, &op)?;
        }
        let [lda, ldb, ldc] = gemm.leading_for_cublas();
        let layout = |kind: c_int, [rows, columns]: [usize; 2], leading: i64| {
            // A row-major matrix read by columns has as many rows as ours has columns.
            Owned::new("cublasLtMatrixLayoutCreate", f.layout_destroy, |p| unsafe {
                (f.layout_create)(p, kind, columns as u64, rows as u64, leading)
            })
        };
        let [m, n, _] = gemm.shape;
        let a = layout(gemm.element.data_type(), gemm.stored_a(), lda)?;
        let b = layout(gemm.element.data_type(), gemm.stored_b(), ldb)?;
        let c = layout(gemm.output.data_type(), [m, n], ldc)?;
        let preference = Owned::new("cublasLtMatmulPreferenceCreate", f.preference_destroy, |p| unsafe {
            (f.preference_create)(p)
        })?;
        let room = self.workspace.bytes();
        set(
            "cublasLtMatmulPreferenceSetAttribute",
            f.preference_set,
            &preference,
            PREFERENCE_MAX_WORKSPACE,
            &room,
        )?;

        let blank =
            Proposal { algorithm: [0; 8], workspace_bytes: 0, state: 0, waves: 0.0, reserved: [0; 4] };
        let mut proposals = vec![blank; count.max(1)];
        let mut found = 0;
        check("cublasLtMatmulAlgoGetHeuristic", unsafe {
            (f.heuristic)(
                self.handle.pointer,
                description.pointer,
                b.pointer,
                a.pointer,
                c.pointer,
                c.pointer,
                preference.pointer,
                proposals.len() as c_int,
                proposals.as_mut_ptr(),
                &mut found,
            )
        })?;
        proposals.truncate(found.max(0) as usize);
        proposals.retain(|p| p.state == 0);
        Ok(Plan { lt: self, gemm: *gemm, description, a, b, c, proposals })
    }
}

fn set<T>(call: &'static str, function: Set, owner: &Owned, attribute: c_int, value: &T) -> Result<()> {
    // SAFETY: the caller gives an attribute of the owner's, with a value of the attribute's type.
    check(call, unsafe { function(owner.pointer, attribute, (&raw const *value).cast(), size_of::<T>()) })
}

/// A product, with the algorithms that cuBLASLt proposes for it.
pub struct Plan<'a> {
    lt: &'a CublasLt,
    gemm: Gemm,
    description: Owned,
    a: Owned,
    b: Owned,
    c: Owned,
    proposals: Vec<Proposal>,
}

impl Plan<'_> {
    /// The number of proposals.
    pub fn len(&self) -> usize {
        self.proposals.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.proposals.is_empty()
    }

    /// Enqueues the product by one of the proposals.
    pub fn run(&self, stream: &Stream, proposal: usize, at: Operands) -> Result<()> {
        let Some(chosen) = self.proposals.get(proposal) else {
            let reason = format!("there is no proposal {proposal}: cuBLASLt made {}", self.len());
            return Err(Error::Invalid { what: "cuBLASLt algorithm", reason });
        };
        self.lt.device.bind()?;
        let kind = self.gemm.element.scale();
        let (alpha, beta) = (Scalar(scalar(kind, self.gemm.alpha)), Scalar(scalar(kind, self.gemm.beta)));
        let memory = &self.lt.workspace;
        // SAFETY: the descriptions belong to the product; the operands are the caller's to vouch for.
        check("cublasLtMatmul", unsafe {
            (self.lt.functions.matmul)(
                self.lt.handle.pointer,
                self.description.pointer,
                alpha.pointer(),
                at.b.0 as *const c_void,
                self.b.pointer,
                at.a.0 as *const c_void,
                self.a.pointer,
                beta.pointer(),
                at.c.0 as *const c_void,
                self.c.pointer,
                at.c.0 as *mut c_void,
                self.c.pointer,
                &chosen.algorithm,
                memory.pointer().0 as *mut c_void,
                memory.bytes(),
                stream.raw().cast(),
            )
        })
    }

    /// Times every proposal and gives the number and time of the fastest. `at` gives the operands of launch
    /// number i, so that they can rotate. The winner is timed again with `options`, so that it does not profit
    /// from being the luckiest of many.
    pub fn best(
        &self,
        stream: &Stream,
        options: &MeasureOptions,
        at: impl Fn(usize) -> Operands,
    ) -> Result<(usize, Timing)> {
        let mut fastest: Option<(usize, f64)> = None;
        for proposal in 0..self.len() {
            let quick = MeasureOptions::quick();
            let timing = measure::graph(stream, &quick, |s, i| self.run(s, proposal, at(i)))?;
            if fastest.is_none_or(|(_, seconds)| timing.median < seconds) {
                fastest = Some((proposal, timing.median));
            }
        }
        let Some((proposal, _)) = fastest else {
            let reason = "cuBLASLt proposes no algorithm for this product".to_string();
            return Err(Error::Invalid { what: "cuBLASLt comparison", reason });
        };
        Ok((proposal, measure::graph(stream, options, |s, i| self.run(s, proposal, at(i)))?))
    }
}
