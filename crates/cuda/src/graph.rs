//! CUDA graphs: captured work of a stream, replayed as one launch.

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUgraph, CUgraphExec};
use crate::stream::Stream;

/// Work captured from a stream.
#[derive(Debug)]
pub struct Graph {
    context: Context,
    raw: CUgraph,
}

/// An instantiated graph. It keeps no buffer or module alive: the objects that its launches
/// use must outlive it.
#[derive(Debug)]
pub struct GraphExec {
    context: Context,
    raw: CUgraphExec,
}

impl Stream {
    /// Captures the work that `work` enqueues on this stream, without running it.
    ///
    /// During the capture, waits for the stream and allocations on this thread fail; other
    /// threads are not affected. The default stream cannot be captured.
    pub fn capture<E: From<CudaError>>(
        &self,
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        let driver = self.context().driver();
        let begin = || -> Result<(), CudaError> {
            let _current = self.context().enter()?;
            // SAFETY: the handle lives as long as `self`.
            unsafe {
                cu!(
                    driver,
                    cuStreamBeginCapture_v2(self.raw(), ffi::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
                )
            }
        };
        begin()?;
        // The capture must end even if `work` fails or panics, so a guard ends it.
        let capture = Capture(Some(self));
        work(self)?;
        Ok(capture.end()?)
    }

    /// Returns whether this stream is being captured.
    pub fn is_capturing(&self) -> Result<bool, CudaError> {
        let _current = self.context().enter()?;
        let mut status = 0;
        // SAFETY: writes one int; the handle lives as long as `self`.
        unsafe {
            cu!(
                self.context().driver(),
                cuStreamIsCapturing(self.raw(), &mut status)
            )
        }?;
        Ok(status != ffi::CU_STREAM_CAPTURE_STATUS_NONE)
    }
}

/// Guard of a stream that is being captured; ends the capture on drop.
struct Capture<'a>(Option<&'a Stream>);

impl Capture<'_> {
    fn end(mut self) -> Result<Graph, CudaError> {
        match self.0.take() {
            Some(stream) => end(stream),
            None => Err(CudaError::bad_argument(
                "capture",
                "the capture has already ended",
            )),
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            let _ = end(stream);
        }
    }
}

fn end(stream: &Stream) -> Result<Graph, CudaError> {
    let context = stream.context();
    let _current = context.enter()?;
    let mut raw = CUgraph::NULL;
    // SAFETY: writes one handle; destroyed when `Graph` is dropped.
    unsafe { cu!(context.driver(), cuStreamEndCapture(stream.raw(), &mut raw)) }?;
    Ok(Graph {
        context: context.clone(),
        raw,
    })
}

impl Graph {
    /// Instantiates the graph; the result can be launched any number of times.
    pub fn instantiate(&self) -> Result<GraphExec, CudaError> {
        let _current = self.context.enter()?;
        let mut raw = CUgraphExec::NULL;
        // SAFETY: writes one handle; destroyed when `GraphExec` is dropped.
        unsafe {
            cu!(
                self.context.driver(),
                cuGraphInstantiateWithFlags(&mut raw, self.raw, 0)
            )
        }?;
        Ok(GraphExec {
            context: self.context.clone(),
            raw,
        })
    }
}

impl GraphExec {
    /// Launches the graph on `stream`; does not wait.
    pub fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        self.context
            .expect_same(stream.context(), || "launch of a graph".into())?;
        let _current = self.context.enter()?;
        // SAFETY: both handles live as long as their owners.
        unsafe { cu!(self.context.driver(), cuGraphLaunch(self.raw, stream.raw())) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: created once, destroyed once.
            let _ = unsafe { cu!(self.context.driver(), cuGraphDestroy(self.raw)) };
        }
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: created once, destroyed once; running launches continue.
            let _ = unsafe { cu!(self.context.driver(), cuGraphExecDestroy(self.raw)) };
        }
    }
}
