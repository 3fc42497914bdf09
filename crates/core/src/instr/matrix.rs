//! Matrix instructions: `ldmatrix`, `mma.sync`, `wgmma`.

use super::{Behaviour, Completion, Extent, OperandSpec, Place, Record, WindowSpec, read, update, write};
use crate::dtype::DType;
use crate::ir::Space;
use crate::target::Capability;

const fn fragment(dtype: DType, shape: &'static [Extent], place: Place) -> WindowSpec {
    WindowSpec { dtype: Some(dtype), space: Some(Space::Reg), shape, place }
}

const fn shared(dtype: DType, shape: &'static [Extent], place: Place) -> WindowSpec {
    WindowSpec { dtype: Some(dtype), space: Some(Space::Shared), shape, place }
}

const S16X16: &[Extent] = &[Extent::Fixed(16), Extent::Fixed(16)];
const S16X8: &[Extent] = &[Extent::Fixed(16), Extent::Fixed(8)];

const fn mma_operands(dtype: DType) -> [OperandSpec; 3] {
    [
        update("d", fragment(DType::F32, S16X8, Place::Fragment("D16x8"))),
        read("a", fragment(dtype, S16X16, Place::Fragment("A16x16"))),
        read("b", fragment(dtype, S16X8, Place::FragmentColumns("B16x16", 8))),
    ]
}

const MMA_16X8X16: &str = "for i in 0..16, j in 0..8, k in 0..16 { d[i, j] += f32(a[i, k]) * f32(b[k, j]) }";
const M16N8K16: Behaviour = Behaviour::Multiply { m: 16, n: 8, k: 16, conjugate: false };

const fn ldmatrix_operands(dtype: DType, place: &'static str) -> [OperandSpec; 2] {
    [
        write("d", fragment(dtype, S16X16, Place::Fragment(place))),
        read("a", shared(dtype, S16X16, Place::Rows(16))),
    ]
}

const COPY_16X16: &str = "for i in 0..16, j in 0..16 { d[i, j] = a[i, j] }";
const TURN_16X16: &str = "for i in 0..16, j in 0..16 { d[i, j] = a[j, i] }";

/// Rows of A and of B^T need no transposition on their way to registers, columns do; `turned` says that shared memory
/// holds the transposed matrix.
const fn ldmatrix(name: &'static str, operands: &'static [OperandSpec], is_b: bool, turned: bool) -> Record {
    Record {
        name,
        threads: 32,
        operands,
        meaning: if turned { TURN_16X16 } else { COPY_16X16 },
        completion: Completion::InOrder,
        behaviour: Behaviour::LoadMatrix { transposed: is_b != turned, turned },
        needs: &[Capability::Ldmatrix],
    }
}

const S64XN: &[Extent] = &[Extent::Fixed(64), Extent::Multiple(8, 256)];
const S64X16: &[Extent] = &[Extent::Fixed(64), Extent::Fixed(16)];
const SNX16: &[Extent] = &[Extent::Multiple(8, 256), Extent::Fixed(16)];

const fn wgmma_operands(dtype: DType) -> [OperandSpec; 3] {
    [
        update("d", fragment(DType::F32, S64XN, Place::Fragment("D64xN"))),
        read("a", shared(dtype, S64X16, Place::Swizzle128)),
        read("b", shared(dtype, SNX16, Place::Swizzle128)),
    ]
}

const fn wgmma(name: &'static str, operands: &'static [OperandSpec]) -> Record {
    Record {
        name,
        threads: 128,
        operands,
        meaning: "for i in 0..64, j in 0..N, k in 0..16 { d[i, j] += f32(a[i, k]) * f32(b[j, k]) }",
        completion: Completion::Wgmma,
        behaviour: Behaviour::WarpgroupMultiply { k: 16 },
        needs: &[Capability::Wgmma],
    }
}

const M16: Extent = Extent::Fixed(16);
const N8: Extent = Extent::Fixed(8);
const K4: Extent = Extent::Fixed(4);
const K8: Extent = Extent::Fixed(8);
const K16: Extent = Extent::Fixed(16);

const fn wide_f64_operands(
    a: &'static str,
    b: &'static str,
    a_shape: &'static [Extent],
    b_shape: &'static [Extent],
) -> [OperandSpec; 3] {
    [
        update("d", fragment(DType::F64, S16X8, Place::Fragment("D16x8"))),
        read("a", fragment(DType::F64, a_shape, Place::Fragment(a))),
        read("b", fragment(DType::F64, b_shape, Place::Fragment(b))),
    ]
}

/// The f64 instructions of 16 rows and `k` terms.
const fn wide_f64(name: &'static str, operands: &'static [OperandSpec], k: i64) -> Record {
    Record {
        name,
        threads: 32,
        operands,
        meaning: match k {
            4 => "for i in 0..16, j in 0..8, k in 0..4 { d[i, j] += a[i, k] * b[k, j] }",
            8 => PRODUCT_16X8X8,
            _ => "for i in 0..16, j in 0..8, k in 0..16 { d[i, j] += a[i, k] * b[k, j] }",
        },
        completion: Completion::InOrder,
        behaviour: Behaviour::Multiply { m: 16, n: 8, k, conjugate: false },
        needs: &[Capability::MmaF64Wide],
    }
}

const M8: Extent = Extent::Fixed(8);
const PRODUCT_16X8X8: &str = "for i in 0..16, j in 0..8, k in 0..8 { d[i, j] += a[i, k] * b[k, j] }";

const fn operands_of(
    dtype: DType,
    fragments: [&'static str; 3],
    d: &'static [Extent],
    a: &'static [Extent],
    b: &'static [Extent],
) -> [OperandSpec; 3] {
    [
        update("d", fragment(dtype, d, Place::Fragment(fragments[0]))),
        read("a", fragment(dtype, a, Place::Fragment(fragments[1]))),
        read("b", fragment(dtype, b, Place::Fragment(fragments[2]))),
    ]
}

const COMPLEX_8X8X4: [OperandSpec; 3] =
    operands_of(DType::C128, ["D8x8", "A8x4", "B4x8"], &[M8, N8], &[M8, K4], &[K4, N8]);
const COMPLEX_16X8X4: [OperandSpec; 3] =
    operands_of(DType::C128, ["D16x8", "A16x4", "B4x8"], &[M16, N8], &[M16, K4], &[K4, N8]);
const COMPLEX_16X8X8: [OperandSpec; 3] =
    operands_of(DType::C128, ["D16x8", "A16x8", "B8x8"], &[M16, N8], &[M16, K8], &[K8, N8]);
const SPLIT_16X8X8: [OperandSpec; 3] =
    operands_of(DType::F32, ["D16x8", "A16x8", "B8x8"], &[M16, N8], &[M16, K8], &[K8, N8]);
const SPLIT_COMPLEX_16X8X8: [OperandSpec; 3] =
    operands_of(DType::C64, ["D16x8", "A16x8", "B8x8"], &[M16, N8], &[M16, K8], &[K8, N8]);

/// Products of f32 numbers, each of three products of tf32 parts (3xTF32), or of complex numbers made of such: the
/// instruction takes numbers apart in registers. Exact arithmetic sees no difference; in floating point the error has
/// a bound of its own.
const fn split(
    name: &'static str,
    operands: &'static [OperandSpec],
    conjugate: bool,
    meaning: &'static str,
) -> Record {
    Record {
        name,
        threads: 32,
        operands,
        meaning,
        completion: Completion::InOrder,
        behaviour: Behaviour::Multiply { m: 16, n: 8, k: 8, conjugate },
        needs: &[Capability::MmaTf32],
    }
}

/// Products of complex numbers, made of instructions on their real and imaginary parts: four, or two larger ones.
const fn complex(
    name: &'static str,
    operands: &'static [OperandSpec],
    [m, k]: [i64; 2],
    conjugate: bool,
    meaning: &'static str,
) -> Record {
    let needs: &[Capability] = if m == 8 { &[Capability::MmaF64] } else { &[Capability::MmaF64Wide] };
    Record {
        name,
        threads: 32,
        operands,
        meaning,
        completion: Completion::InOrder,
        behaviour: Behaviour::Multiply { m, n: 8, k, conjugate },
        needs,
    }
}

pub(super) const RECORDS: &[Record] = &[
    Record {
        name: "mma_m16n8k16_bf16",
        threads: 32,
        operands: &mma_operands(DType::Bf16),
        meaning: MMA_16X8X16,
        completion: Completion::InOrder,
        behaviour: M16N8K16,
        needs: &[Capability::MmaBf16],
    },
    Record {
        name: "mma_m16n8k16_f16",
        threads: 32,
        operands: &mma_operands(DType::F16),
        meaning: MMA_16X8X16,
        completion: Completion::InOrder,
        behaviour: M16N8K16,
        needs: &[Capability::MmaF16],
    },
    Record {
        name: "mma_m8n8k4_f64",
        threads: 32,
        operands: &[
            update("d", fragment(DType::F64, &[Extent::Fixed(8), Extent::Fixed(8)], Place::Fragment("D8x8"))),
            read("a", fragment(DType::F64, &[Extent::Fixed(8), Extent::Fixed(4)], Place::Fragment("A8x4"))),
            read("b", fragment(DType::F64, &[Extent::Fixed(4), Extent::Fixed(8)], Place::Fragment("B4x8"))),
        ],
        meaning: "for i in 0..8, j in 0..8, k in 0..4 { d[i, j] += a[i, k] * b[k, j] }",
        completion: Completion::InOrder,
        behaviour: Behaviour::Multiply { m: 8, n: 8, k: 4, conjugate: false },
        needs: &[Capability::MmaF64],
    },
    wide_f64("mma_m16n8k4_f64", &wide_f64_operands("A16x4", "B4x8", &[M16, K4], &[K4, N8]), 4),
    wide_f64("mma_m16n8k8_f64", &wide_f64_operands("A16x8", "B8x8", &[M16, K8], &[K8, N8]), 8),
    wide_f64("mma_m16n8k16_f64", &wide_f64_operands("A16x16_f64", "B16x8", &[M16, K16], &[K16, N8]), 16),
    complex(
        "mma_m8n8k4_c128",
        &COMPLEX_8X8X4,
        [8, 4],
        false,
        "for i in 0..8, j in 0..8, k in 0..4 { d[i, j] += a[i, k] * b[k, j] }",
    ),
    complex(
        "mma_m8n8k4_c128_conj",
        &COMPLEX_8X8X4,
        [8, 4],
        true,
        "for i in 0..8, j in 0..8, k in 0..4 { d[i, j] += conj(a[i, k]) * b[k, j] }",
    ),
    complex(
        "mma_m16n8k4_c128",
        &COMPLEX_16X8X4,
        [16, 4],
        false,
        "for i in 0..16, j in 0..8, k in 0..4 { d[i, j] += a[i, k] * b[k, j] }",
    ),
    complex(
        "mma_m16n8k4_c128_conj",
        &COMPLEX_16X8X4,
        [16, 4],
        true,
        "for i in 0..16, j in 0..8, k in 0..4 { d[i, j] += conj(a[i, k]) * b[k, j] }",
    ),
    complex("mma_m16n8k8_c128", &COMPLEX_16X8X8, [16, 8], false, PRODUCT_16X8X8),
    complex(
        "mma_m16n8k8_c128_conj",
        &COMPLEX_16X8X8,
        [16, 8],
        true,
        "for i in 0..16, j in 0..8, k in 0..8 { d[i, j] += conj(a[i, k]) * b[k, j] }",
    ),
    split("mma_m16n8k8_f32", &SPLIT_16X8X8, false, PRODUCT_16X8X8),
    split("mma_m16n8k8_c64", &SPLIT_COMPLEX_16X8X8, false, PRODUCT_16X8X8),
    split(
        "mma_m16n8k8_c64_conj",
        &SPLIT_COMPLEX_16X8X8,
        true,
        "for i in 0..16, j in 0..8, k in 0..8 { d[i, j] += conj(a[i, k]) * b[k, j] }",
    ),
    ldmatrix("ldmatrix_x4", &ldmatrix_operands(DType::Bf16, "A16x16"), false, false),
    ldmatrix("ldmatrix_x4_trans", &ldmatrix_operands(DType::Bf16, "B16x16"), true, false),
    ldmatrix("ldmatrix_x4_trans_turned", &ldmatrix_operands(DType::Bf16, "A16x16"), false, true),
    ldmatrix("ldmatrix_x4_turned", &ldmatrix_operands(DType::Bf16, "B16x16"), true, true),
    ldmatrix("ldmatrix_x4_f16", &ldmatrix_operands(DType::F16, "A16x16"), false, false),
    ldmatrix("ldmatrix_x4_trans_f16", &ldmatrix_operands(DType::F16, "B16x16"), true, false),
    ldmatrix("ldmatrix_x4_trans_turned_f16", &ldmatrix_operands(DType::F16, "A16x16"), false, true),
    ldmatrix("ldmatrix_x4_turned_f16", &ldmatrix_operands(DType::F16, "B16x16"), true, true),
    wgmma("wgmma_bf16_sw128", &wgmma_operands(DType::Bf16)),
    wgmma("wgmma_f16_sw128", &wgmma_operands(DType::F16)),
];
