//! Owners of a context and of the streams and events in it. Each holds its context, so the
//! context goes last, whatever the order in which a device drops them.

use std::sync::Arc;

use super::api::{
    Code, EVENT_DEFAULT, EVENT_RECORD_EXTERNAL, Functions, Opaque, STREAM_NON_BLOCKING,
};
use super::driver::Driver;
use super::status;
use crate::error::DeviceError;

/// A context of its own on one device.
pub(super) struct Context {
    driver: Arc<Driver>,
    handle: Opaque,
}

impl Context {
    pub(super) fn create(driver: Arc<Driver>, ordinal: u32) -> Result<Arc<Context>, DeviceError> {
        let device = driver.device(ordinal)?;
        let mut handle = 0;
        let functions = &driver.functions;
        // SAFETY: the pointer is to a live handle and the device number is the driver's own.
        let code = unsafe { (functions.context_create)(&raw mut handle, 0, device) };
        status::check(functions, "cuCtxCreate", code)?;
        Ok(Arc::new(Context { driver, handle }))
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.driver.functions
    }

    /// Makes the context this thread's own and calls into the driver. The number as it is.
    pub(super) fn raw(&self, call: impl FnOnce(&Functions) -> Code) -> Code {
        let functions = self.functions();
        // SAFETY: the context lives until this value is dropped.
        let code = unsafe { (functions.context_set)(self.handle) };
        if code == status::SUCCESS { call(functions) } else { code }
    }

    /// As [`Context::raw`], with the number decoded.
    pub(super) fn call(
        &self,
        name: &str,
        call: impl FnOnce(&Functions) -> Code,
    ) -> Result<(), DeviceError> {
        status::check(self.functions(), name, self.raw(call))
    }

    /// Waits for all work of the context.
    pub(super) fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: takes nothing; `call` has made the context current.
        self.call("cuCtxSynchronize", |f| unsafe { (f.context_synchronize)() })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the handle came from cuCtxCreate and everything made in the context held this
        // owner, so nothing of it is used after this. An error cannot be acted on.
        let _ = unsafe { (self.functions().context_destroy)(self.handle) };
    }
}

/// A stream with no hidden order relative to others.
pub(super) struct Stream {
    context: Arc<Context>,
    handle: Opaque,
}

impl Stream {
    pub(super) fn create(context: &Arc<Context>) -> Result<Stream, DeviceError> {
        let mut handle = 0;
        context.call("cuStreamCreate", |f| {
            // SAFETY: the pointer is to a live handle and the context is current.
            unsafe { (f.stream_create)(&raw mut handle, STREAM_NON_BLOCKING) }
        })?;
        Ok(Stream { context: Arc::clone(context), handle })
    }

    pub(super) fn handle(&self) -> Opaque {
        self.handle
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream lives as long as this value.
        self.context.call("cuStreamSynchronize", |f| unsafe { (f.stream_synchronize)(self.handle) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the handle came from cuStreamCreate and is not used again; the driver lets
        // work already in the stream finish. An error cannot be acted on.
        let _ = self.context.raw(|f| unsafe { (f.stream_destroy)(self.handle) });
    }
}

/// A point in a stream.
pub(super) struct Event {
    owner: Arc<EventOwner>,
    /// Whether it was ever put into a stream: only then does it have a time.
    recorded: bool,
}

/// The driver's event, which a graph that records it keeps as well.
pub(super) struct EventOwner {
    context: Arc<Context>,
    handle: Opaque,
}

impl Event {
    pub(super) fn create(context: &Arc<Context>) -> Result<Event, DeviceError> {
        let mut handle = 0;
        context.call("cuEventCreate", |f| {
            // SAFETY: the pointer is to a live handle and the context is current.
            unsafe { (f.event_create)(&raw mut handle, EVENT_DEFAULT) }
        })?;
        let owner = Arc::new(EventOwner { context: Arc::clone(context), handle });
        Ok(Event { owner, recorded: false })
    }

    pub(super) fn record(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        let EventOwner { context, handle } = &*self.owner;
        // SAFETY: event and stream live, both in this context (a device has only one).
        context.call("cuEventRecord", |f| unsafe { (f.event_record)(*handle, stream.handle) })?;
        self.recorded = true;
        Ok(())
    }

    /// Makes the record a node of the graph that the stream captures, which must keep the answer.
    pub(super) fn capture(&mut self, stream: &Stream) -> Result<Arc<EventOwner>, DeviceError> {
        let EventOwner { context, handle } = &*self.owner;
        let Some(record) = context.functions().event_record_flags else {
            let what = "events in graphs: this driver has no cuEventRecordWithFlags".to_string();
            return Err(DeviceError::Unsupported { what });
        };
        context.call("cuEventRecordWithFlags", |_| {
            // SAFETY: as in `record`; the stream is being captured, which the flag asks for.
            unsafe { record(*handle, stream.handle, EVENT_RECORD_EXTERNAL) }
        })?;
        self.recorded = true;
        Ok(Arc::clone(&self.owner))
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Whether the device has reached it.
    pub(super) fn is_reached(&self) -> Result<bool, DeviceError> {
        let EventOwner { context, handle } = &*self.owner;
        let Some(query) = context.functions().event_query else {
            self.wait()?;
            return Ok(true);
        };
        // SAFETY: the event lives as long as this value.
        match context.raw(|_| unsafe { query(*handle) }) {
            status::NOT_READY => Ok(false),
            code => status::check(context.functions(), "cuEventQuery", code).map(|()| true),
        }
    }

    fn wait(&self) -> Result<(), DeviceError> {
        let EventOwner { context, handle } = &*self.owner;
        // SAFETY: the event lives as long as this value.
        context.call("cuEventSynchronize", |f| unsafe { (f.event_synchronize)(*handle) })
    }

    /// Nanoseconds from this event to a later one. Zero if the other was earlier.
    pub(super) fn until(&self, end: &Event) -> Result<u64, DeviceError> {
        self.wait()?;
        end.wait()?;
        let mut milliseconds = 0.0_f32;
        self.owner.context.call("cuEventElapsedTime", |f| {
            // SAFETY: the pointer is to a live f32 and both events live.
            unsafe { (f.event_elapsed)(&raw mut milliseconds, self.owner.handle, end.owner.handle) }
        })?;
        Ok((f64::from(milliseconds) * 1e6).round() as u64)
    }
}

impl Drop for EventOwner {
    fn drop(&mut self) {
        // SAFETY: the handle came from cuEventCreate and is not used again. An error cannot be
        // acted on.
        let _ = self.context.raw(|f| unsafe { (f.event_destroy)(self.handle) });
    }
}
