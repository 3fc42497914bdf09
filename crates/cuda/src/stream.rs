//! Streams (queues of work in order) and events (marks in them).

use std::sync::Arc;

use cudarc::driver::sys;

use crate::device::Device;
use crate::driver::{self, check};
use crate::error::Result;

/// A queue of work on one GPU. Work in one stream runs in order; streams do not wait for one another.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Queue>,
}

struct Queue {
    device: Device,
    stream: sys::CUstream,
}

// SAFETY: the driver allows a stream to be used from any thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `Stream::new`; the driver finishes what is enqueued before it goes.
            unsafe { sys::cuStreamDestroy_v2(self.stream) };
        }
    }
}

impl Stream {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        device.bind()?;
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut stream, flags) })?;
        Ok(Self { inner: Arc::new(Queue { device: device.clone(), stream }) })
    }

    /// The GPU it belongs to.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Waits until everything in it is done; errors of kernels show here.
    pub fn synchronize(&self) -> Result<()> {
        self.device().bind()?;
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw()) })
    }

    /// A mark after what is enqueued now.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.device())?;
        self.record_in(&event)?;
        Ok(event)
    }

    /// Sets an existing mark after what is enqueued now.
    pub fn record_in(&self, event: &Event) -> Result<()> {
        self.device().bind()?;
        // SAFETY: both are alive.
        check("cuEventRecord", unsafe { sys::cuEventRecord(event.event, self.raw()) })
    }

    /// Lets what is enqueued from now on wait for a mark, of this or another stream.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.device().bind()?;
        // SAFETY: both are alive.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw(), event.event, 0) })
    }

    /// Whether what is enqueued now goes into a graph instead of running.
    pub fn is_capturing(&self) -> Result<bool> {
        self.device().bind()?;
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive.
        check("cuStreamIsCapturing", unsafe { sys::cuStreamIsCapturing(self.raw(), &mut status) })?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    pub(crate) fn raw(&self) -> sys::CUstream {
        self.inner.stream
    }
}

/// A mark in a stream, with the time at which it was reached.
pub struct Event {
    device: Device,
    event: sys::CUevent,
}

// SAFETY: the driver allows an event to be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `Event::new`.
            unsafe { sys::cuEventDestroy_v2(self.event) };
        }
    }
}

impl Event {
    /// A mark not set yet.
    pub fn new(device: &Device) -> Result<Self> {
        device.bind()?;
        let mut event = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT as u32;
        // SAFETY: the context is current.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&mut event, flags) })?;
        Ok(Self { device: device.clone(), event })
    }

    /// Waits until it is reached.
    pub fn synchronize(&self) -> Result<()> {
        self.device.bind()?;
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.event) })
    }

    /// Seconds from an earlier mark to this one. Both must have been reached.
    pub fn seconds_since(&self, earlier: &Event) -> Result<f64> {
        self.device.bind()?;
        let elapsed = driver::elapsed_time()?;
        let mut milliseconds = 0f32;
        // SAFETY: both are alive.
        check("cuEventElapsedTime", unsafe { elapsed(&mut milliseconds, earlier.event, self.event) })?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}
