//! Tensor maps: the descriptions by which the bulk tensor copy engine (TMA) finds a tile in global memory.

use cudarc::driver::sys;

use crate::driver::{self, check};
use crate::error::{Error, Result};
use crate::library::Library;
use crate::memory::DevicePointer;

/// The type of a tensor map's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorType {
    /// 8-bit unsigned.
    U8,
    /// 16-bit unsigned, for any 16-bit type that is only moved.
    U16,
    /// 32-bit unsigned.
    U32,
    /// 32-bit signed.
    I32,
    /// 64-bit unsigned.
    U64,
    /// 64-bit signed.
    I64,
    /// Half precision.
    F16,
    /// The 16-bit format with single precision's exponent.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Single precision, rounded to TF32 on the way.
    Tf32,
}

impl TensorType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            TensorType::U8 => 1,
            TensorType::U16 | TensorType::F16 | TensorType::Bf16 => 2,
            TensorType::U32 | TensorType::I32 | TensorType::F32 | TensorType::Tf32 => 4,
            TensorType::U64 | TensorType::I64 | TensorType::F64 => 8,
        }
    }

    fn raw(self) -> sys::CUtensorMapDataType {
        use sys::CUtensorMapDataType as D;
        match self {
            TensorType::U8 => D::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            TensorType::U16 => D::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            TensorType::U32 => D::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            TensorType::I32 => D::CU_TENSOR_MAP_DATA_TYPE_INT32,
            TensorType::U64 => D::CU_TENSOR_MAP_DATA_TYPE_UINT64,
            TensorType::I64 => D::CU_TENSOR_MAP_DATA_TYPE_INT64,
            TensorType::F16 => D::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            TensorType::Bf16 => D::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            TensorType::F32 => D::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            TensorType::F64 => D::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
            TensorType::Tf32 => D::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        }
    }
}

/// How 16-byte pieces of a tile are permuted in shared memory, against bank conflicts. The tile's innermost
/// extent may have at most as many bytes as the swizzle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swizzle {
    /// As in global memory.
    #[default]
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl Swizzle {
    /// The span of the pattern in bytes, if there is one.
    pub fn span(self) -> Option<usize> {
        match self {
            Swizzle::None => None,
            Swizzle::Bytes32 => Some(32),
            Swizzle::Bytes64 => Some(64),
            Swizzle::Bytes128 => Some(128),
        }
    }

    fn raw(self) -> sys::CUtensorMapSwizzle {
        use sys::CUtensorMapSwizzle as S;
        match self {
            Swizzle::None => S::CU_TENSOR_MAP_SWIZZLE_NONE,
            Swizzle::Bytes32 => S::CU_TENSOR_MAP_SWIZZLE_32B,
            Swizzle::Bytes64 => S::CU_TENSOR_MAP_SWIZZLE_64B,
            Swizzle::Bytes128 => S::CU_TENSOR_MAP_SWIZZLE_128B,
        }
    }
}

/// What a tensor map describes. Dimensions go from the innermost (contiguous) outwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapSpec {
    /// The type of the elements.
    pub element: TensorType,
    /// The first element; a multiple of 16.
    pub address: DevicePointer,
    /// The extents, in elements.
    pub extents: Vec<u64>,
    /// The distances in bytes between neighbours in every dimension but the innermost; multiples of 16.
    pub strides: Vec<u64>,
    /// The extents of the tile that one copy moves, in elements.
    pub tile: Vec<u32>,
    /// The permutation in shared memory.
    pub swizzle: Swizzle,
}

impl TensorMapSpec {
    /// A row-major matrix: `rows` by `columns`, rows `row_bytes` apart, in tiles of `tile_rows` by `tile_columns`.
    pub fn matrix(
        element: TensorType,
        address: DevicePointer,
        [rows, columns]: [u64; 2],
        row_bytes: u64,
        [tile_rows, tile_columns]: [u32; 2],
    ) -> Self {
        Self {
            element,
            address,
            extents: vec![columns, rows],
            strides: vec![row_bytes],
            tile: vec![tile_columns, tile_rows],
            swizzle: Swizzle::None,
        }
    }

    /// With a permutation in shared memory.
    pub fn swizzled(mut self, swizzle: Swizzle) -> Self {
        self.swizzle = swizzle;
        self
    }

    /// The rules of the copy engine, so that the message can say which is broken: the driver only says
    /// "invalid value".
    fn broken_rule(&self) -> Option<String> {
        let rank = self.extents.len();
        if !(1..=5).contains(&rank) || self.strides.len() != rank - 1 || self.tile.len() != rank {
            return Some(format!(
                "{rank} extents need {} strides and as many tile extents, and at most 5 dimensions are possible",
                rank.saturating_sub(1)
            ));
        }
        if !self.address.0.is_multiple_of(16) || self.address == DevicePointer::NULL {
            return Some(format!("the address {:#x} must be a multiple of 16 and not null", self.address.0));
        }
        if let Some(extent) = self.extents.iter().find(|e| **e == 0 || **e > 1 << 32) {
            return Some(format!("the extent {extent} must be from 1 to 2^32"));
        }
        if let Some(stride) = self.strides.iter().find(|s| !s.is_multiple_of(16) || **s >= 1 << 40) {
            return Some(format!("the stride of {stride} bytes must be a multiple of 16 and below 2^40"));
        }
        if let Some(extent) = self.tile.iter().find(|t| !(1..=256).contains(*t)) {
            return Some(format!("the tile's extent {extent} must be from 1 to 256"));
        }
        let inner = self.tile[0] as usize * self.element.bytes();
        if !inner.is_multiple_of(16) {
            return Some(format!(
                "the tile's innermost extent has {inner} bytes, which must be a multiple of 16"
            ));
        }
        match self.swizzle.span() {
            Some(span) if inner > span => {
                Some(format!("the tile's innermost extent has {inner} bytes, and the swizzle spans {span}"))
            }
            _ => None,
        }
    }
}

/// A tensor map, ready to be passed to a kernel by value. Elements outside the tensor are read as zero.
#[derive(Debug, Clone, Copy)]
pub struct TensorMap {
    raw: sys::CUtensorMap,
}

impl TensorMap {
    /// Encodes a description.
    pub fn encode(spec: &TensorMapSpec) -> Result<Self> {
        if let Some(reason) = spec.broken_rule() {
            return Err(Error::Invalid { what: "tensor map", reason });
        }
        driver::ready()?;
        const SYMBOL: &str = "cuTensorMapEncodeTiled";
        if !driver::has(SYMBOL) {
            let advice = "update the NVIDIA driver to release 525 or later".to_string();
            return Err(Error::SymbolMissing { library: Library::Driver, symbol: SYMBOL, advice });
        }
        let steps = vec![1u32; spec.extents.len()];
        let mut raw = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: every array has as many elements as the rank asks for (`broken_rule`), and `raw` is aligned by its type.
        check(SYMBOL, unsafe {
            sys::cuTensorMapEncodeTiled(
                &mut raw,
                spec.element.raw(),
                spec.extents.len() as u32,
                spec.address.0 as *mut _,
                spec.extents.as_ptr(),
                spec.strides.as_ptr(),
                spec.tile.as_ptr(),
                steps.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                spec.swizzle.raw(),
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        })?;
        Ok(Self { raw })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.raw.opaque)
    }
}

#[cfg(test)]
mod tests {
    use super::{Swizzle, TensorMap, TensorMapSpec, TensorType};
    use crate::error::Error;
    use crate::memory::DevicePointer;

    fn spec() -> TensorMapSpec {
        TensorMapSpec::matrix(TensorType::Bf16, DevicePointer(4096), [128, 64], 128, [64, 64])
    }

    fn complaint(spec: TensorMapSpec) -> String {
        match TensorMap::encode(&spec) {
            Err(Error::Invalid { reason, .. }) => reason,
            other => panic!("expected a complaint, got {other:?}"),
        }
    }

    #[test]
    fn broken_rules_are_named_without_a_driver() {
        assert!(spec().swizzled(Swizzle::Bytes128).broken_rule().is_none());
        assert!(complaint(spec().swizzled(Swizzle::Bytes64)).contains("spans 64"));
        assert!(complaint(TensorMapSpec { address: DevicePointer(8), ..spec() }).contains("multiple of 16"));
        assert!(complaint(TensorMapSpec { strides: vec![130], ..spec() }).contains("stride"));
        assert!(complaint(TensorMapSpec { strides: vec![], ..spec() }).contains("strides"));
        assert!(complaint(TensorMapSpec { tile: vec![64, 512], ..spec() }).contains("512"));
        assert!(complaint(TensorMapSpec { tile: vec![4, 64], ..spec() }).contains("8 bytes"));
        assert!(complaint(TensorMapSpec { extents: vec![64, 0], ..spec() }).contains("extent 0"));
    }
}
