//! CUDA graphs: work recorded once from a stream and replayed with one call.

use cudarc::driver::sys;

use crate::device::Device;
use crate::driver::check;
use crate::error::Result;
use crate::stream::Stream;

/// Recorded work, ready to be replayed. It refers to the memory it was recorded with, which must outlive the replays.
pub struct Graph {
    device: Device,
    executable: sys::CUgraphExec,
}

// SAFETY: the driver allows a graph to be launched from any thread, one at a time; launching takes `&mut self`.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `capture`; the driver defers the end of a graph that still runs.
            unsafe { sys::cuGraphExecDestroy(self.executable) };
        }
    }
}

impl Stream {
    /// Records what `work` enqueues on this stream, without running it.
    ///
    /// Whatever is loaded or allocated at a first call should have been before: run `work` once beforehand.
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        self.recorded(work)?.instantiate(self.device())
    }

    /// The same, not yet made ready to run.
    pub(crate) fn recorded(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Recorded> {
        self.device().bind()?;
        // The relaxed mode lets libraries load their kernels lazily while we record.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is alive.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(self.raw(), mode) })?;
        let recording = Recording { stream: self };
        let done = work(self);
        let ended = recording.end();
        // The work's own complaint comes first: the end of a broken recording only says that it is broken.
        done?;
        ended
    }
}

/// A recording under way; it is ended even if the work panics, so that the stream stays usable.
struct Recording<'a> {
    stream: &'a Stream,
}

impl Recording<'_> {
    fn end(self) -> Result<Recorded> {
        let recorded = self.finish();
        std::mem::forget(self);
        recorded
    }

    fn finish(&self) -> Result<Recorded> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: the stream is alive and recording.
        check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(self.stream.raw(), &mut graph) })?;
        Ok(Recorded { graph })
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

/// A graph not yet made ready to run.
pub(crate) struct Recorded {
    graph: sys::CUgraph,
}

impl Recorded {
    /// The driver's handle, valid as long as this lives.
    pub(crate) fn raw(&self) -> sys::CUgraph {
        self.graph
    }

    fn instantiate(self, device: &Device) -> Result<Graph> {
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is alive.
        check("cuGraphInstantiate", unsafe {
            sys::cuGraphInstantiateWithFlags(&mut executable, self.graph, 0)
        })?;
        Ok(Graph { device: device.clone(), executable })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.graph.is_null() {
            // SAFETY: ended by `Recording::finish`; what was instantiated from it stands on its own.
            unsafe { sys::cuGraphDestroy(self.graph) };
        }
    }
}

impl Graph {
    /// Enqueues all of it.
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        self.device.bind()?;
        // SAFETY: both are alive.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.executable, stream.raw()) })
    }

    /// Sends it to the GPU ahead of the first launch.
    pub fn upload(&mut self, stream: &Stream) -> Result<()> {
        self.device.bind()?;
        // SAFETY: both are alive.
        check("cuGraphUpload", unsafe { sys::cuGraphUpload(self.executable, stream.raw()) })
    }
}
