//! Device memory, page-locked host memory, and the copies between them.

use std::marker::PhantomData;
use std::sync::Mutex;

use bytemuck::{AnyBitPattern, NoUninit, Pod};
use cudarc::driver::sys;

use crate::device::Device;
use crate::driver::check;
use crate::error::{Error, Result};
use crate::repeated::Repeated;
use crate::stream::{Event, Stream};

/// An address on the GPU, as a kernel's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DevicePointer(pub u64);

impl DevicePointer {
    /// The null pointer, for an operand that the kernel is told not to touch.
    pub const NULL: DevicePointer = DevicePointer(0);

    /// The address so many bytes before.
    #[must_use]
    pub fn before(self, bytes: u64) -> DevicePointer {
        DevicePointer(self.0.saturating_sub(bytes))
    }
}

/// Memory on a GPU, untyped; freed when dropped.
pub struct Buffer {
    device: Device,
    address: u64,
    bytes: usize,
    /// What stands behind the addresses, where it is not memory of their own.
    repeated: Option<Repeated>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.address != 0 && self.repeated.is_none() && self.device.bind().is_ok() {
            // SAFETY: allocated in `Buffer::new`; the driver waits for work that uses it.
            unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

impl Buffer {
    pub(crate) fn new(device: &Device, bytes: usize) -> Result<Self> {
        device.bind()?;
        let mut address = 0;
        // The driver refuses to allocate nothing, yet a matrix may have no elements: its pointer is null.
        if bytes > 0 {
            // SAFETY: the context is current.
            let status = unsafe { sys::cuMemAlloc_v2(&mut address, bytes) };
            if status == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                let (free, total) = device.memory()?;
                return Err(Error::OutOfMemory { wanted: bytes, free, total });
            }
            check("cuMemAlloc", status)?;
        }
        Ok(Self { device: device.clone(), address, bytes, repeated: None })
    }

    pub(crate) fn repeated(device: &Device, bytes: usize, period: usize) -> Result<Self> {
        let repeated = Repeated::new(device, bytes, period)?;
        Ok(Self { device: device.clone(), address: repeated.address(), bytes, repeated: Some(repeated) })
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The GPU it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its first byte.
    pub fn pointer(&self) -> DevicePointer {
        DevicePointer(self.address)
    }

    /// The byte at an offset; the end of the buffer is allowed, as for an empty operand.
    pub fn at(&self, offset: usize) -> Result<DevicePointer> {
        self.range("pointer into a device buffer", offset, 0)?;
        Ok(DevicePointer(self.address + offset as u64))
    }

    /// Copies a slice to `offset` (in bytes), after what the stream holds; the slice is free when this returns.
    pub fn write<T: NoUninit>(&self, stream: &Stream, offset: usize, data: &[T]) -> Result<()> {
        let bytes = std::mem::size_of_val(data);
        self.range("copy to a device buffer", offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        stream.synchronize()?;
        self.write_now(offset, data)
    }

    /// Copies a slice to `offset` (in bytes) at once: no kernel may be using the place.
    pub(crate) fn write_now<T: NoUninit>(&self, offset: usize, data: &[T]) -> Result<()> {
        let bytes = std::mem::size_of_val(data);
        self.range("copy to a device buffer", offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.device.bind()?;
        // SAFETY: the range is within the buffer and the slice is as long as said; the copy is over on return,
        // and the synchronisation makes it visible to streams, which do not wait for the null stream.
        check("cuMemcpyHtoD", unsafe {
            sys::cuMemcpyHtoD_v2(self.address + offset as u64, data.as_ptr().cast(), bytes)
        })?;
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(std::ptr::null_mut()) })
    }

    /// Copies from `offset` (in bytes) into a slice, after what the stream holds.
    pub fn read<T: NoUninit + AnyBitPattern>(
        &self,
        stream: &Stream,
        offset: usize,
        data: &mut [T],
    ) -> Result<()> {
        let bytes = std::mem::size_of_val(data);
        self.range("copy from a device buffer", offset, bytes)?;
        stream.synchronize()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range is within the buffer, the slice is as long as said, and any bits are a T.
        check("cuMemcpyDtoH", unsafe {
            sys::cuMemcpyDtoH_v2(data.as_mut_ptr().cast(), self.address + offset as u64, bytes)
        })
    }

    /// The whole buffer as a vector, after what the stream holds.
    pub fn download<T: Pod>(&self, stream: &Stream) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); self.bytes / size_of::<T>().max(1)];
        self.read(stream, 0, &mut data)?;
        Ok(data)
    }

    /// Enqueues setting every byte.
    pub fn fill(&self, stream: &Stream, byte: u8) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.device.bind()?;
        // SAFETY: the range is the buffer's own.
        check("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(self.address, byte, self.bytes, stream.raw())
        })
    }

    /// Enqueues setting every 32-bit word: a poison such as a signalling pattern, say. Bytes past the last whole
    /// word keep their values.
    pub fn fill_words(&self, stream: &Stream, word: u32) -> Result<()> {
        if self.bytes < 4 {
            return Ok(());
        }
        self.device.bind()?;
        // SAFETY: the range is the buffer's own.
        check("cuMemsetD32Async", unsafe {
            sys::cuMemsetD32Async(self.address, word, self.bytes / 4, stream.raw())
        })
    }

    /// Enqueues a copy of another buffer's bytes into this one.
    pub fn copy_from(
        &self,
        stream: &Stream,
        offset: usize,
        from: &Buffer,
        from_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.range("copy to a device buffer", offset, bytes)?;
        from.range("copy from a device buffer", from_offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.device.bind()?;
        let (to, from) = (self.address + offset as u64, from.address + from_offset as u64);
        // SAFETY: both ranges are within their buffers.
        check("cuMemcpyDtoDAsync", unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream.raw()) })
    }

    fn range(&self, what: &'static str, offset: usize, bytes: usize) -> Result<()> {
        if offset.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            return Ok(());
        }
        let reason = format!("bytes {offset}..{offset}+{bytes} of a buffer of {} bytes", self.bytes);
        Err(Error::Invalid { what, reason })
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({:#x}, {} bytes)", self.address, self.bytes)
    }
}

/// Page-locked host memory, from and to which the GPU copies while the host goes on.
///
/// Looking at the elements waits for the last copy that touches them, so a copy in flight is never seen.
pub struct Pinned<T: Pod> {
    device: Device,
    data: *mut T,
    len: usize,
    last_copy: Mutex<Option<Event>>,
    elements: PhantomData<T>,
}

// SAFETY: it owns its memory, as a vector does; copies in flight are awaited before the elements are seen.
unsafe impl<T: Pod + Send> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Sync> Sync for Pinned<T> {}

impl<T: Pod> Drop for Pinned<T> {
    fn drop(&mut self) {
        let _ = self.wait();
        if self.len > 0 && self.device.bind().is_ok() {
            // SAFETY: allocated in `Pinned::new`, and no copy is in flight.
            unsafe { sys::cuMemFreeHost(self.data.cast()) };
        }
    }
}

impl<T: Pod> Pinned<T> {
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self> {
        device.bind()?;
        let bytes = len.checked_mul(size_of::<T>()).filter(|b| *b <= isize::MAX as usize);
        let bytes = bytes.ok_or(Error::Invalid {
            what: "pinned memory",
            reason: format!("{len} elements are too many"),
        })?;
        let mut data: *mut T = std::ptr::NonNull::dangling().as_ptr();
        if bytes > 0 {
            let mut address = std::ptr::null_mut();
            // SAFETY: the context is current. No write combining: the host reads results back from here.
            check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut address, bytes, 0) })?;
            data = address.cast();
            // SAFETY: the memory is there, and all zero bits are a T.
            unsafe { std::ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        }
        let len = if bytes > 0 { len } else { 0 };
        Ok(Self { device: device.clone(), data, len, last_copy: Mutex::new(None), elements: PhantomData })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, once the last copy is over.
    pub fn slice(&self) -> Result<&[T]> {
        self.wait()?;
        // SAFETY: the memory is ours, initialised, and nothing writes to it: a copy that does needs `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts(self.data, self.len) })
    }

    /// The elements, to be changed, once the last copy is over.
    pub fn slice_mut(&mut self) -> Result<&mut [T]> {
        self.wait()?;
        // SAFETY: as above, and nothing else looks at it.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data, self.len) })
    }

    /// Enqueues a copy of all elements to `offset` (in bytes) of a buffer.
    pub fn copy_to(&self, stream: &Stream, buffer: &Buffer, offset: usize) -> Result<()> {
        let bytes = self.bytes();
        buffer.range("copy to a device buffer", offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.before_copy(stream)?;
        // SAFETY: the range is within the buffer; the host memory outlives the copy, since dropping it waits.
        check("cuMemcpyHtoDAsync", unsafe {
            sys::cuMemcpyHtoDAsync_v2(buffer.address + offset as u64, self.data.cast(), bytes, stream.raw())
        })?;
        self.remember(stream)
    }

    /// Enqueues a copy from `offset` (in bytes) of a buffer into all elements.
    pub fn copy_from(&mut self, stream: &Stream, buffer: &Buffer, offset: usize) -> Result<()> {
        let bytes = self.bytes();
        buffer.range("copy from a device buffer", offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.before_copy(stream)?;
        // SAFETY: as above, and any bits are a T.
        check("cuMemcpyDtoHAsync", unsafe {
            sys::cuMemcpyDtoHAsync_v2(self.data.cast(), buffer.address + offset as u64, bytes, stream.raw())
        })?;
        self.remember(stream)
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Refuses a recorded copy, whose replays would go on behind the back of `slice`; and puts copies on different
    /// streams in order, since only the last one is remembered.
    fn before_copy(&self, stream: &Stream) -> Result<()> {
        if stream.is_capturing()? {
            let reason = "copies of pinned memory cannot be recorded in a graph".to_string();
            return Err(Error::Invalid { what: "asynchronous copy", reason });
        }
        let held = self.last_copy.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        held.as_ref().map_or(Ok(()), |event| stream.wait_for(event))
    }

    fn remember(&self, stream: &Stream) -> Result<()> {
        let event = match stream.record() {
            Ok(event) => event,
            // Without a mark to wait for, wait now.
            Err(error) => return stream.synchronize().and(Err(error)),
        };
        *self.last_copy.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(event);
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let held = self.last_copy.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        held.as_ref().map_or(Ok(()), Event::synchronize)
    }
}
