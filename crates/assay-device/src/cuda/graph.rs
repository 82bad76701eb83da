//! Captured launches.

use std::sync::Arc;

use super::api::{CAPTURE_RELAXED, Opaque};
use super::context::{Context, EventOwner, Stream};
use super::module::Module;
use crate::error::DeviceError;

/// From here on launches on the stream are captured.
pub(super) fn begin(stream: &Stream) -> Result<(), DeviceError> {
    // SAFETY: the stream lives, and is no legacy stream, which could not be captured.
    stream.context().call("cuStreamBeginCapture", |f| unsafe {
        (f.capture_begin)(stream.handle(), CAPTURE_RELAXED)
    })
}

/// What a graph's nodes need for as long as it lives.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) modules: Vec<Arc<Module>>,
    pub(super) events: Vec<Arc<EventOwner>>,
}

/// An executable graph. It keeps the modules of its kernels loaded, and its events.
pub(super) struct Graph {
    context: Arc<Context>,
    executable: Opaque,
    _kept: Kept,
}

impl Graph {
    /// Ends the stream's capture and makes it executable.
    pub(super) fn end(stream: &Stream, kept: Kept) -> Result<Graph, DeviceError> {
        let context = Arc::clone(stream.context());
        let mut captured = 0;
        context.call("cuStreamEndCapture", |f| {
            // SAFETY: the stream lives and the pointer is to a live handle.
            unsafe { (f.capture_end)(stream.handle(), &raw mut captured) }
        })?;
        let mut executable = 0;
        let made = context.call("cuGraphInstantiate", |f| {
            // SAFETY: the pointer is to a live handle and the graph is the one just captured.
            unsafe { (f.graph_instantiate)(&raw mut executable, captured, 0) }
        });
        // SAFETY: the captured graph is not used again; the executable one is independent of it.
        let _ = context.raw(|f| unsafe { (f.graph_destroy)(captured) });
        made?;
        Ok(Graph { context, executable, _kept: kept })
    }

    pub(super) fn launch(&self, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: graph and stream live; its kernels' modules are kept by the graph. A buffer
        // that was freed since is an address fault on the device, not here.
        self.context.call("cuGraphLaunch", |f| unsafe {
            (f.graph_launch)(self.executable, stream.handle())
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle came from cuGraphInstantiate and is not used again. An error cannot
        // be acted on.
        let _ = self.context.raw(|f| unsafe { (f.graph_executable_destroy)(self.executable) });
    }
}
