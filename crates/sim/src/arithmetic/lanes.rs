//! The operations that cost time, on all lanes of a warp at once, compiled for several instruction sets and chosen
//! when the program starts.

use super::Arithmetic;

/// `registers[d] += registers[a] * registers[b]`, lane by lane; the numbers are register slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MultiplyAdd {
    pub d: u32,
    pub a: u32,
    pub b: u32,
}

/// What the processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Nothing beyond what every processor of the architecture has.
    Plain,
    /// AVX2 and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The kernels for a domain at a level.
#[derive(Clone, Copy)]
pub(crate) struct Kernels<A> {
    /// Many multiply-adds on whole registers of `W` lanes.
    pub multiply_adds: unsafe fn(registers: *mut A, list: &[MultiplyAdd]),
}

impl Level {
    /// The best that this processor has.
    pub fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Level::Avx2;
            }
        }
        Level::Plain
    }
}

impl<A: Arithmetic> Kernels<A> {
    /// The kernels for registers of `W` lanes.
    pub fn new<const W: usize>(level: Level) -> Kernels<A> {
        match level {
            Level::Plain => Kernels { multiply_adds: multiply_adds_plain::<A, W> },
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Kernels { multiply_adds: multiply_adds_avx2::<A, W> },
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Kernels { multiply_adds: multiply_adds_avx512::<A, W> },
        }
    }
}

/// # Safety
/// Every slot in `list` must lie inside the register file at `registers`, which has `W` lanes to a slot.
#[inline(always)]
unsafe fn multiply_adds_body<A: Arithmetic, const W: usize>(registers: *mut A, list: &[MultiplyAdd]) {
    for op in list {
        // SAFETY: the caller promises that the slots lie inside. The arrays are copied before the result is
        // written, so it does not matter whether they overlap.
        unsafe {
            let d = registers.add(op.d as usize * W).cast::<[A; W]>();
            let a = *registers.add(op.a as usize * W).cast::<[A; W]>();
            let b = *registers.add(op.b as usize * W).cast::<[A; W]>();
            let mut sum = *d;
            for lane in 0..W {
                sum[lane] = sum[lane].mul_add(a[lane], b[lane]);
            }
            *d = sum;
        }
    }
}

/// # Safety
/// As [`multiply_adds_body`].
unsafe fn multiply_adds_plain<A: Arithmetic, const W: usize>(registers: *mut A, list: &[MultiplyAdd]) {
    // SAFETY: the caller's promise is passed on.
    unsafe { multiply_adds_body::<A, W>(registers, list) }
}

/// # Safety
/// As [`multiply_adds_body`], on a processor with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi2")]
unsafe fn multiply_adds_avx2<A: Arithmetic, const W: usize>(registers: *mut A, list: &[MultiplyAdd]) {
    // SAFETY: the caller's promise is passed on.
    unsafe { multiply_adds_body::<A, W>(registers, list) }
}

/// # Safety
/// As [`multiply_adds_body`], on a processor with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx2,fma,bmi2")]
unsafe fn multiply_adds_avx512<A: Arithmetic, const W: usize>(registers: *mut A, list: &[MultiplyAdd]) {
    // SAFETY: the caller's promise is passed on.
    unsafe { multiply_adds_body::<A, W>(registers, list) }
}
