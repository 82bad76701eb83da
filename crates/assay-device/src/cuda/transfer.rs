//! Fills and copies in the order of a stream.

use super::context::{Context, Stream};
use super::host::{HostBuffer, missing};
use crate::buffer::check_range;
use crate::error::DeviceError;

/// A range of a host buffer.
#[derive(Clone, Copy)]
pub(super) struct HostRange<'a> {
    buffer: &'a HostBuffer,
    offset: u64,
}

impl<'a> HostRange<'a> {
    pub(super) fn new(
        buffer: &'a HostBuffer,
        offset: u64,
        bytes: u64,
    ) -> Result<Self, DeviceError> {
        check_range(buffer.bytes(), offset, bytes)?;
        Ok(HostRange { buffer, offset })
    }
}

/// Fills device memory; the caller has checked the range.
pub(super) fn fill(stream: &Stream, to: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
    let context = stream.context();
    let call = context.functions().memory_fill_async.ok_or_else(|| missing("cuMemsetD8Async"))?;
    unless_empty(bytes, context, "cuMemsetD8Async", |bytes| {
        // SAFETY: the range lies in a live buffer of this context, and the stream lives.
        unsafe { call(to, value, bytes, stream.handle()) }
    })
}

/// Copies within device memory; the caller has checked the ranges.
pub(super) fn copy(stream: &Stream, from: u64, to: u64, bytes: u64) -> Result<(), DeviceError> {
    let context = stream.context();
    let call = context.functions().memory_copy_async.ok_or_else(|| missing("cuMemcpyDtoDAsync"))?;
    unless_empty(bytes, context, "cuMemcpyDtoDAsync", |bytes| {
        // SAFETY: both ranges lie in live buffers of this context, apart from each other.
        unsafe { call(to, from, bytes, stream.handle()) }
    })
}

/// Copies to device memory; the caller has checked the device's range.
pub(super) fn copy_to_device(
    stream: &Stream,
    from: HostRange<'_>,
    to: u64,
    bytes: u64,
) -> Result<(), DeviceError> {
    let context = stream.context();
    let call = context.functions().memory_to_device_async;
    let call = call.ok_or_else(|| missing("cuMemcpyHtoDAsync"))?;
    unless_empty(bytes, context, "cuMemcpyHtoDAsync", |bytes| {
        // SAFETY: both ranges lie in live buffers. The host's bytes are freed or lent out only
        // after the device has finished.
        unsafe { call(to, from.buffer.pointer(from.offset), bytes, stream.handle()) }
    })
}

/// Copies from device memory; the caller has checked the device's range.
pub(super) fn copy_to_host(
    stream: &Stream,
    from: u64,
    to: HostRange<'_>,
    bytes: u64,
) -> Result<(), DeviceError> {
    let context = stream.context();
    let call = context.functions().memory_to_host_async;
    let call = call.ok_or_else(|| missing("cuMemcpyDtoHAsync"))?;
    unless_empty(bytes, context, "cuMemcpyDtoHAsync", |bytes| {
        // SAFETY: as in `copy_to_device`.
        unsafe { call(to.buffer.pointer(to.offset), from, bytes, stream.handle()) }
    })
}

fn unless_empty(
    bytes: u64,
    context: &Context,
    name: &str,
    call: impl FnOnce(usize) -> i32,
) -> Result<(), DeviceError> {
    // A range in a live allocation has a length that fits.
    if bytes == 0 { Ok(()) } else { context.call(name, |_| call(bytes as usize)) }
}

/// Makes persisting lines of the L2 cache ordinary.
pub(super) fn reset_persisting(context: &Context) -> Result<(), DeviceError> {
    let call = context.functions().persisting_reset;
    let call = call.ok_or_else(|| missing("cuCtxResetPersistingL2Cache"))?;
    // SAFETY: takes nothing; the context is current.
    context.call("cuCtxResetPersistingL2Cache", |_| unsafe { call() })
}
