//! Addresses behind which the same memory stands again and again: a matrix of any length that lies in the second-level cache.

use cudarc::driver::sys;

use crate::device::Device;
use crate::driver::{self, check};
use crate::error::{Error, Result};
use crate::library::Library;

/// A range of addresses, one piece of memory, and the mappings of the one to the other; undone when dropped.
pub(crate) struct Repeated {
    device: Device,
    address: u64,
    reserved: usize,
    piece: Piece,
    /// Bytes from the start of the range on that are mapped.
    mapped: usize,
}

/// A piece of physical memory.
struct Piece {
    device: Device,
    handle: sys::CUmemGenericAllocationHandle,
    bytes: usize,
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: created in `Piece::new`; mappings, if there are any, keep the memory.
            unsafe { sys::cuMemRelease(self.handle) };
        }
    }
}

impl Piece {
    fn new(device: &Device, properties: &sys::CUmemAllocationProp, bytes: usize) -> Result<Piece> {
        let mut handle = 0;
        // SAFETY: the context is current, and the properties are those whose granularity was asked for.
        let status = unsafe { sys::cuMemCreate(&mut handle, bytes, properties, 0) };
        if status == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let (free, total) = device.memory()?;
            return Err(Error::OutOfMemory { wanted: bytes, free, total });
        }
        check("cuMemCreate", status)?;
        Ok(Piece { device: device.clone(), handle, bytes })
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: mapped and reserved in `Repeated::new`, and kernels that use the addresses are waited for.
            unsafe {
                sys::cuCtxSynchronize();
                if self.mapped > 0 {
                    sys::cuMemUnmap(self.address, self.mapped);
                }
                sys::cuMemAddressFree(self.address, self.reserved);
            }
        }
    }
}

impl Repeated {
    /// So many bytes of addresses at least, behind which stand about so many bytes of memory: as many as the GPU's pages ask for.
    pub(crate) fn new(device: &Device, bytes: usize, period: usize) -> Result<Repeated> {
        device.bind()?;
        const SYMBOL: &str = "cuMemCreate";
        if !driver::has(SYMBOL) {
            let advice = "update the NVIDIA driver to release 440 or later".to_string();
            return Err(Error::SymbolMissing { library: Library::Driver, symbol: SYMBOL, advice });
        }
        let properties = properties(device.info().ordinal);
        let mut page = 0;
        // SAFETY: the context is current, and the properties live during the call.
        check("cuMemGetAllocationGranularity", unsafe {
            sys::cuMemGetAllocationGranularity(
                &mut page,
                &properties,
                sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM,
            )
        })?;
        let Extents { piece, times } = extents(bytes, period, page);
        let (piece, reserved) = (Piece::new(device, &properties, piece)?, piece * times);
        let mut address = 0;
        // SAFETY: the context is current, and the size a multiple of the granularity.
        check("cuMemAddressReserve", unsafe { sys::cuMemAddressReserve(&mut address, reserved, 0, 0, 0) })?;
        let mut repeated = Repeated { device: device.clone(), address, reserved, piece, mapped: 0 };
        for _ in 0..times {
            let (at, bytes) = (address + repeated.mapped as u64, repeated.piece.bytes);
            // SAFETY: the range lies within what is reserved and was not mapped before.
            check("cuMemMap", unsafe { sys::cuMemMap(at, bytes, 0, repeated.piece.handle, 0) })?;
            repeated.mapped += bytes;
        }
        let access = sys::CUmemAccessDesc {
            location: properties.location,
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the whole range is mapped.
        check("cuMemSetAccess", unsafe { sys::cuMemSetAccess(address, reserved, &access, 1) })?;
        Ok(repeated)
    }

    /// The first address.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

/// Memory of this GPU, as cuMemAlloc gives it.
fn properties(ordinal: usize) -> sys::CUmemAllocationProp {
    // SAFETY: it is a structure of numbers and null pointers, of which zero is the usual value.
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = ordinal as i32;
    properties
}

/// The bytes of a piece of memory, and how often it is mapped.
#[derive(Debug, PartialEq)]
struct Extents {
    piece: usize,
    times: usize,
}

/// Whole pages for a period, and whole periods for the bytes; one of each at least.
fn extents(bytes: usize, period: usize, page: usize) -> Extents {
    let piece = period.max(1).next_multiple_of(page.max(1));
    Extents { piece, times: bytes.max(1).div_ceil(piece) }
}

#[cfg(test)]
mod tests {
    use super::{Extents, extents};

    #[test]
    fn pieces_are_whole_pages_and_cover_all_addresses() {
        let page = 2 << 20;
        assert_eq!(extents(10 << 20, 3 << 20, page), Extents { piece: 4 << 20, times: 3 });
        assert_eq!(extents(8 << 20, 4 << 20, page), Extents { piece: 4 << 20, times: 2 });
        assert_eq!(extents(0, 0, page), Extents { piece: page, times: 1 });
    }
}
