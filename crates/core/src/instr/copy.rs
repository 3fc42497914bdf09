//! Asynchronous copies: `cp.async` and the tensor memory accelerator.

use super::{
    Around, Behaviour, By, Caching, Completion, Extent, OperandAccess, OperandSpec, Place, Record,
    WindowSpec, integer, read, write,
};
use crate::dtype::DType;
use crate::ir::Space;
use crate::target::Capability;

const fn shared(dtype: DType, shape: &'static [Extent], place: Place) -> WindowSpec {
    WindowSpec { dtype: Some(dtype), space: Some(Space::Shared), shape, place }
}

const fn global(dtype: DType, shape: &'static [Extent], place: Place) -> WindowSpec {
    WindowSpec { dtype: Some(dtype), space: None, shape, place }
}

const BOX: &[Extent] = &[Extent::Multiple(8, 256), Extent::Fixed(64)];

/// `cp_async16(dst, src, valid)`: 16 bytes, of which the elements from `valid` on become zero and are not read. There
/// are forms of 8 and 4 bytes for rows that do not start at multiples of 16. `cp_async16_ca` leaves them in the first-level cache too.
const fn cp_async(name: &'static str, bytes: i64, operands: &'static [OperandSpec]) -> Record {
    let caching = if bytes < 16 { Caching::All } else { Caching::Global };
    copied(name, (bytes, caching), operands)
}

const fn cp_async_ca(name: &'static str, operands: &'static [OperandSpec]) -> Record {
    copied(name, (16, Caching::All), operands)
}

const fn copied(
    name: &'static str,
    (bytes, caching): (i64, Caching),
    operands: &'static [OperandSpec],
) -> Record {
    Record {
        name,
        threads: 1,
        operands,
        meaning: "for e in 0..E { d[e] = e < valid ? a[e] : 0 }",
        completion: Completion::CpAsync,
        behaviour: Behaviour::CopyAsync { bytes, caching },
        needs: &[Capability::CpAsync],
    }
}

const fn pieces(dtype: DType, shape: &'static [Extent], bytes: i64) -> [OperandSpec; 3] {
    [
        write("d", shared(dtype, shape, Place::Rows(bytes))),
        read("a", global(dtype, shape, Place::Aligned(bytes))),
        integer("valid"),
    ]
}

const S1: &[Extent] = &[Extent::Fixed(1)];
const S2: &[Extent] = &[Extent::Fixed(2)];
const S4: &[Extent] = &[Extent::Fixed(4)];
const S8: &[Extent] = &[Extent::Fixed(8)];

/// A box in swizzled shared memory and in a tensor; the one that is written first.
const fn boxes(dtype: DType, load: bool) -> [OperandSpec; 2] {
    let (tile, tensor) = (shared(dtype, BOX, Place::Swizzle128), global(dtype, BOX, Place::TensorMap));
    if load { [write("d", tile), read("a", tensor)] } else { [write("d", tensor), read("a", tile)] }
}

const fn bulk_load(name: &'static str, operands: &'static [OperandSpec]) -> Record {
    Record {
        name,
        threads: 1,
        operands,
        meaning: "for i in 0..R, j in 0..64 { d[i, j] = inside(a, i, j) ? a[i, j] : 0 }",
        completion: Completion::Mbarrier,
        behaviour: Behaviour::BulkLoad,
        needs: &[Capability::Tma, Capability::Mbarrier],
    }
}

/// `tma_load(dst, src)`: a box of rows as they lie; what of it lies outside the tensor becomes zero. So columns behind a row make rows of the
/// box as long as banks of shared memory want them.
const fn bulk_load_of_rows(name: &'static str, operands: &'static [OperandSpec]) -> Record {
    Record {
        meaning: "for i in 0..R, j in 0..N { d[i, j] = inside(a, i, j) ? a[i, j] : 0 }",
        ..bulk_load(name, operands)
    }
}

/// Rows of whole pieces of 16 bytes, of which a box has 256 at most, and 256 numbers in each; a number of complex128 is two.
const fn rows(dtype: DType, shape: &'static [Extent]) -> [OperandSpec; 2] {
    [write("d", shared(dtype, shape, Place::Box)), read("a", global(dtype, shape, Place::TensorMap))]
}

const ROWS1: &[Extent] = &[Extent::Multiple(1, 256), Extent::Multiple(1, 128)];
const ROWS2: &[Extent] = &[Extent::Multiple(1, 256), Extent::Multiple(2, 256)];
const ROWS4: &[Extent] = &[Extent::Multiple(1, 256), Extent::Multiple(4, 256)];

const fn bulk_store(name: &'static str, operands: &'static [OperandSpec]) -> Record {
    Record {
        name,
        threads: 1,
        operands,
        meaning: "for i in 0..R, j in 0..64 { if inside(d, i, j) { d[i, j] = a[i, j] } }",
        completion: Completion::BulkGroup,
        behaviour: Behaviour::BulkStore,
        needs: &[Capability::Tma],
    }
}

/// `bulk_copy(dst, src, valid)`: a run of 16-byte pieces, of which the elements from `valid` on become zero and are not
/// read. One instruction of one thread moves all of it; the threads of its warp share out the zeros.
const fn bulk_copy(name: &'static str, operands: &'static [OperandSpec]) -> Record {
    Record {
        name,
        threads: 32,
        operands,
        meaning: "for e in 0..E { d[e] = e < valid ? a[e] : 0 }",
        completion: Completion::Mbarrier,
        behaviour: Behaviour::BulkCopy,
        needs: &[Capability::Tma, Capability::Mbarrier],
    }
}

/// `prefetch_l2(a)`: the sector of an element is brought to the second-level cache, where what is stored to a part of it then finds the
/// rest. Nothing is read, so nobody has to have written it. `_before` and `_behind` leave it out where the element begins or ends it: where
/// nothing of it belongs to somebody else. `copy_l2...` does so by an asynchronous copy for which the thread waits with its others.
const fn prefetch(name: &'static str, around: Around, by: By) -> Record {
    Record {
        name,
        threads: 1,
        operands: &[OperandSpec {
            name: "a",
            access: OperandAccess::Named,
            window: Some(WindowSpec { dtype: None, space: None, shape: S1, place: Place::Element }),
        }],
        meaning: "",
        completion: Completion::InOrder,
        behaviour: Behaviour::Prefetch(around, by),
        needs: match by {
            By::Asking => &[],
            By::Copying => &[Capability::CpAsync],
        },
    }
}

/// The most elements of a run: as many as shared memory could hold of the smallest.
const LONGEST: i64 = 1 << 16;
const RUN1: &[Extent] = &[Extent::Multiple(1, LONGEST)];
const RUN2: &[Extent] = &[Extent::Multiple(2, LONGEST)];
const RUN4: &[Extent] = &[Extent::Multiple(4, LONGEST)];

const fn runs(dtype: DType, shape: &'static [Extent]) -> [OperandSpec; 3] {
    [
        write("d", shared(dtype, shape, Place::Run)),
        read("a", global(dtype, shape, Place::Aligned(16))),
        integer("valid"),
    ]
}

/// `bulk_write(dst, src, valid)`: the other way, by one thread; elements from `valid` on are not written.
const fn bulk_write(name: &'static str, operands: &'static [OperandSpec]) -> Record {
    Record {
        name,
        threads: 1,
        operands,
        meaning: "for e in 0..E { if e < valid { d[e] = a[e] } }",
        completion: Completion::BulkGroup,
        behaviour: Behaviour::BulkWrite,
        needs: &[Capability::Tma],
    }
}

/// The same of complex numbers that stand in shared memory as real ones, the two parts of each one after the other.
const fn bulk_write_of_parts(name: &'static str, operands: &'static [OperandSpec]) -> Record {
    Record {
        meaning: "for e in 0..E { if e < valid { d[e] = a[2*e] + times_i(a[2*e + 1]) } }",
        ..bulk_write(name, operands)
    }
}

const fn written(to: DType, from: DType, shapes: [&'static [Extent]; 2]) -> [OperandSpec; 3] {
    [
        write("d", global(to, shapes[0], Place::Aligned(16))),
        read("a", shared(from, shapes[1], Place::Run)),
        integer("valid"),
    ]
}

pub(super) const RECORDS: &[Record] = &[
    cp_async("cp_async16", 16, &pieces(DType::Bf16, S8, 16)),
    cp_async("cp_async16_f16", 16, &pieces(DType::F16, S8, 16)),
    cp_async("cp_async16_f32", 16, &pieces(DType::F32, S4, 16)),
    cp_async("cp_async16_f64", 16, &pieces(DType::F64, S2, 16)),
    cp_async("cp_async16_c64", 16, &pieces(DType::C64, S2, 16)),
    cp_async("cp_async16_c128", 16, &pieces(DType::C128, S1, 16)),
    cp_async_ca("cp_async16_ca", &pieces(DType::Bf16, S8, 16)),
    cp_async_ca("cp_async16_ca_f16", &pieces(DType::F16, S8, 16)),
    cp_async_ca("cp_async16_ca_f32", &pieces(DType::F32, S4, 16)),
    cp_async_ca("cp_async16_ca_f64", &pieces(DType::F64, S2, 16)),
    cp_async_ca("cp_async16_ca_c64", &pieces(DType::C64, S2, 16)),
    cp_async_ca("cp_async16_ca_c128", &pieces(DType::C128, S1, 16)),
    cp_async("cp_async8_f32", 8, &pieces(DType::F32, S2, 8)),
    cp_async("cp_async8_f64", 8, &pieces(DType::F64, S1, 8)),
    cp_async("cp_async8_c64", 8, &pieces(DType::C64, S1, 8)),
    cp_async("cp_async4_f32", 4, &pieces(DType::F32, S1, 4)),
    prefetch("prefetch_l2", Around::Element, By::Asking),
    prefetch("prefetch_l2_before", Around::Before, By::Asking),
    prefetch("prefetch_l2_behind", Around::Behind, By::Asking),
    prefetch("copy_l2_before", Around::Before, By::Copying),
    prefetch("copy_l2_behind", Around::Behind, By::Copying),
    bulk_copy("bulk_copy_f32", &runs(DType::F32, RUN4)),
    bulk_copy("bulk_copy_f64", &runs(DType::F64, RUN2)),
    bulk_copy("bulk_copy_c64", &runs(DType::C64, RUN2)),
    bulk_copy("bulk_copy_c128", &runs(DType::C128, RUN1)),
    bulk_write("bulk_write_f32", &written(DType::F32, DType::F32, [RUN4, RUN4])),
    bulk_write("bulk_write_f64", &written(DType::F64, DType::F64, [RUN2, RUN2])),
    bulk_write("bulk_write_c64", &written(DType::C64, DType::C64, [RUN2, RUN2])),
    bulk_write("bulk_write_c128", &written(DType::C128, DType::C128, [RUN1, RUN1])),
    bulk_write_of_parts("bulk_write_c64_f32", &written(DType::C64, DType::F32, [RUN2, RUN4])),
    bulk_write_of_parts("bulk_write_c128_f64", &written(DType::C128, DType::F64, [RUN1, RUN2])),
    bulk_load("tma_load_sw128", &boxes(DType::Bf16, true)),
    bulk_load("tma_load_sw128_f16", &boxes(DType::F16, true)),
    bulk_load_of_rows("tma_load_f32", &rows(DType::F32, ROWS4)),
    bulk_load_of_rows("tma_load_f64", &rows(DType::F64, ROWS2)),
    bulk_load_of_rows("tma_load_c64", &rows(DType::C64, ROWS2)),
    bulk_load_of_rows("tma_load_c128", &rows(DType::C128, ROWS1)),
    bulk_store("tma_store_sw128", &boxes(DType::Bf16, false)),
    bulk_store("tma_store_sw128_f16", &boxes(DType::F16, false)),
];
