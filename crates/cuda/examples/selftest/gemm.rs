//! The checks of cuBLAS and cuBLASLt, against sums done here in double precision.

use half::{bf16, f16};
use warpwright_cuda::cublas::{Cublas, Gemm, GemmType, Math, Op, Operands};
use warpwright_cuda::cublaslt::CublasLt;
use warpwright_cuda::{Arg, Buffer, Device, Error, LaunchConfig, MeasureOptions, measure};

use crate::checks::{Checked, Outcome, ensure, kernel};

type Complex = [f64; 2];

const TYPES: [GemmType; 6] =
    [GemmType::F32, GemmType::F64, GemmType::C64, GemmType::C128, GemmType::F16, GemmType::Bf16];
const OPS: [Op; 3] = [Op::None, Op::Transpose, Op::ConjugateTranspose];

fn is_complex(element: GemmType) -> bool {
    matches!(element, GemmType::C64 | GemmType::C128)
}

/// Small whole numbers, so that every type holds every sum exactly and results can be compared exactly.
fn numbers(element: GemmType, count: usize, seed: u64) -> Vec<Complex> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as i64 % 3 - 1
    };
    (0..count).map(|_| [next() as f64, if is_complex(element) { next() as f64 } else { 0.0 }]).collect()
}

/// Numbers between -1 and 1 with all their digits: whole numbers draw less power and run faster.
fn fractions(count: usize) -> Vec<Complex> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| [next(), 0.0]).collect()
}

fn encode(element: GemmType, values: &[Complex]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * element.bytes());
    for &[re, im] in values {
        match element {
            GemmType::F32 => bytes.extend((re as f32).to_ne_bytes()),
            GemmType::F64 => bytes.extend(re.to_ne_bytes()),
            GemmType::C64 => bytes.extend([re, im].into_iter().flat_map(|x| (x as f32).to_ne_bytes())),
            GemmType::C128 => bytes.extend([re, im].into_iter().flat_map(f64::to_ne_bytes)),
            GemmType::F16 => bytes.extend(f16::from_f64(re).to_ne_bytes()),
            GemmType::Bf16 => bytes.extend(bf16::from_f64(re).to_ne_bytes()),
        }
    }
    bytes
}

fn decode(element: GemmType, bytes: &[u8]) -> Vec<Complex> {
    let single = |b: &[u8]| f64::from(f32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    let double = |b: &[u8]| f64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    bytes
        .chunks_exact(element.bytes())
        .map(|b| match element {
            GemmType::F32 => [single(b), 0.0],
            GemmType::F64 => [double(b), 0.0],
            GemmType::C64 => [single(b), single(&b[4..])],
            GemmType::C128 => [double(b), double(&b[8..])],
            GemmType::F16 => [f16::from_ne_bytes([b[0], b[1]]).to_f64(), 0.0],
            GemmType::Bf16 => [bf16::from_ne_bytes([b[0], b[1]]).to_f64(), 0.0],
        })
        .collect()
}

fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn plus([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a + c, b + d]
}

fn at(matrix: &[Complex], leading: usize, op: Op, row: usize, column: usize) -> Complex {
    match op {
        Op::None => matrix[row * leading + column],
        Op::Transpose => matrix[column * leading + row],
        Op::ConjugateTranspose => {
            let [re, im] = matrix[column * leading + row];
            [re, -im]
        }
    }
}

/// The definition.
fn reference(gemm: &Gemm, a: &[Complex], b: &[Complex], c: &[Complex]) -> Vec<Complex> {
    let ([m, n, k], [lda, ldb, ldc]) = (gemm.shape, gemm.leading);
    let mut out = c.to_vec();
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let product = |i| times(at(a, lda, gemm.op_a, row, i), at(b, ldb, gemm.op_b, i, column));
        let sum = (0..k).map(product).fold([0.0; 2], plus);
        let place = &mut out[row * ldc + column];
        *place = plus(times(gemm.alpha, sum), times(gemm.beta, *place));
    }
    out
}

/// A problem with its matrices on the GPU and what must come out.
struct Case {
    gemm: Gemm,
    buffers: [Buffer; 3],
    expected: Vec<Complex>,
}

impl Case {
    fn new(device: &Device, gemm: Gemm) -> Result<Self, Error> {
        let [a, b] = [(gemm.stored_a(), 0, 1), (gemm.stored_b(), 1, 2)]
            .map(|(stored, which, seed)| numbers(gemm.element, stored[0] * gemm.leading[which], seed));
        let c = numbers(gemm.output, gemm.shape[0] * gemm.leading[2], 3);
        let expected = reference(&gemm, &a, &b, &c);
        let buffers = [
            device.upload(&encode(gemm.element, &a))?,
            device.upload(&encode(gemm.element, &b))?,
            device.upload(&encode(gemm.output, &c))?,
        ];
        Ok(Self { gemm, buffers, expected })
    }

    fn operands(&self) -> Operands {
        let [a, b, c] = &self.buffers;
        Operands { a: a.pointer(), b: b.pointer(), c: c.pointer() }
    }

    fn is_right(&self, stream: &warpwright_cuda::Stream) -> Result<bool, Error> {
        let bytes: Vec<u8> = self.buffers[2].download(stream)?;
        Ok(decode(self.gemm.output, &bytes) == self.expected)
    }
}

/// Odd sizes, padded rows, both scalars: what a row-major view through a column-major library can get wrong.
fn cases() -> impl Iterator<Item = Gemm> {
    TYPES.into_iter().flat_map(|element| {
        OPS.into_iter().flat_map(move |op_a| {
            OPS.into_iter().map(move |op_b| {
                let mut gemm = Gemm::new(element, [37, 29, 41]).with_ops(op_a, op_b);
                gemm.leading = gemm.leading.map(|ld| ld + 3);
                gemm.alpha = [2.0, if is_complex(element) { -1.0 } else { 0.0 }];
                gemm.beta = [-1.0, if is_complex(element) { 3.0 } else { 0.0 }];
                gemm
            })
        })
    })
}

/// cuBLAS computes what the definition says.
pub fn every_type_and_operation(device: &Device) -> Checked {
    let (cublas, stream) = (Cublas::new(device)?, device.stream()?);
    let mut count = 0;
    for mut gemm in cases() {
        for math in [Math::Default, Math::Pedantic] {
            gemm.math = math;
            let case = Case::new(device, gemm)?;
            cublas.gemm(&stream, &gemm, case.operands())?;
            ensure(case.is_right(&stream)?, || format!("wrong: {gemm:?}"))?;
            count += 1;
        }
    }
    for element in [GemmType::F16, GemmType::Bf16] {
        let gemm = Gemm { output: GemmType::F32, ..Gemm::new(element, [37, 29, 41]) };
        let case = Case::new(device, gemm)?;
        cublas.gemm(&stream, &gemm, case.operands())?;
        ensure(case.is_right(&stream)?, || format!("wrong: {gemm:?}"))?;
        count += 1;
    }
    Ok(Outcome::Passed(format!("{count} products exact, version {}", cublas.version()?)))
}

/// cuBLASLt too, by every algorithm that it proposes.
pub fn every_type_by_lt(device: &Device) -> Checked {
    let (lt, stream) = (CublasLt::new(device)?, device.stream()?);
    let (mut products, mut none) = (0, 0);
    for mut gemm in cases() {
        // Rows at multiples of 16 bytes: cuBLASLt proposes nothing for some types otherwise.
        gemm.leading = gemm.leading.map(|ld| ld.next_multiple_of(16));
        let plan = lt.plan(&gemm, 4);
        let plan = match plan {
            Err(Error::Cublas { code: 15, .. }) => {
                none += 1;
                continue;
            }
            other => other?,
        };
        for proposal in 0..plan.len() {
            let case = Case::new(device, gemm)?;
            plan.run(&stream, proposal, case.operands())?;
            ensure(case.is_right(&stream)?, || format!("wrong by proposal {proposal}: {gemm:?}"))?;
            products += 1;
        }
    }
    ensure(products >= 50, || format!("only {products} products"))?;
    Ok(Outcome::Passed(format!(
        "{products} products exact, {none} without proposal, version {}",
        lt.version()
    )))
}

/// A kernel of ours and cuBLAS agree, and the times are of the right order.
pub fn beside_a_naive_kernel(device: &Device) -> Checked {
    let (cublas, stream) = (Cublas::new(device)?, device.stream()?);
    let naive = kernel(device, "naive_sgemm")?;
    let gemm = Gemm::new(GemmType::F32, [1000, 1100, 900]);
    let [m, n, k] = gemm.shape;
    let a = device.upload(&encode(GemmType::F32, &numbers(GemmType::F32, m * k, 5)))?;
    let b = device.upload(&encode(GemmType::F32, &numbers(GemmType::F32, k * n, 6)))?;
    let (ours, theirs) = (device.alloc(4 * m * n)?, device.alloc(4 * m * n)?);
    for poisoned in [&ours, &theirs] {
        poisoned.fill_words(&stream, f32::NAN.to_bits())?;
    }
    let args = [
        Arg::I32(m as i32),
        Arg::I32(n as i32),
        Arg::I32(k as i32),
        Arg::Pointer(a.pointer()),
        Arg::Pointer(b.pointer()),
        Arg::Pointer(ours.pointer()),
    ];
    let config = LaunchConfig::new([n.div_ceil(32) as u32, m.div_ceil(8) as u32, 1], [32, 8, 1]);
    let operands = Operands { a: a.pointer(), b: b.pointer(), c: theirs.pointer() };
    naive.launch(&stream, &config, &args)?;
    cublas.gemm(&stream, &gemm, operands)?;
    ensure(ours.download::<f32>(&stream)? == theirs.download::<f32>(&stream)?, || {
        "they disagree".to_string()
    })?;
    let options = MeasureOptions::default();
    let slow = measure::graph(&stream, &options, |stream, _| naive.launch(stream, &config, &args))?;
    let fast = measure::graph(&stream, &options, |stream, _| cublas.gemm(stream, &gemm, operands))?;
    ensure(fast.median < slow.median, || format!("{} against {}", fast.median, slow.median))?;
    Ok(Outcome::Passed(format!("naive {:.1} us, cuBLAS {:.1} us", slow.median * 1e6, fast.median * 1e6)))
}

/// The two libraries at a size where the times are known, on random data.
pub fn at_4096(device: &Device) -> Checked {
    let (cublas, lt, stream) = (Cublas::new(device)?, CublasLt::new(device)?, device.stream()?);
    let mut lines = Vec::new();
    for (element, math) in
        [(GemmType::F32, Math::Default), (GemmType::F32, Math::Tf32), (GemmType::Bf16, Math::Default)]
    {
        let gemm = Gemm { math, ..Gemm::new(element, [4096; 3]) };
        let bytes = 4096 * 4096 * element.bytes();
        let sets = measure::rotation(3 * bytes, device.info().l2_bytes);
        let data = encode(element, &fractions(4096 * 4096));
        let mut operands = Vec::new();
        let mut held = Vec::new();
        for _ in 0..sets {
            let [a, b, c] = [device.upload(&data)?, device.upload(&data)?, device.alloc(bytes)?];
            operands.push(Operands { a: a.pointer(), b: b.pointer(), c: c.pointer() });
            held.extend([a, b, c]);
        }
        let options = MeasureOptions::default();
        let plain = measure::graph(&stream, &options, |s, i| cublas.gemm(s, &gemm, operands[i % sets]))?;
        let (index, best) = lt.plan(&gemm, 8)?.best(&stream, &options, |i| operands[i % sets])?;
        let tflops = |seconds: f64| 2.0 * 4096f64.powi(3) / seconds / 1e12;
        lines.push(format!(
            "{element:?} {math:?}: cuBLAS {:.1} TFLOP/s, cuBLASLt {:.1} (proposal {index})",
            tflops(plain.median),
            tflops(best.median)
        ));
        // Single precision on the cores that all GPUs have does not pass 150 TFLOP/s: more would be TF32.
        ensure(element != GemmType::F32 || math == Math::Tf32 || tflops(best.median) < 150.0, || {
            lines.join("; ")
        })?;
        drop(held);
    }
    Ok(Outcome::Passed(lines.join("; ")))
}
