//! Owners of device memory, and buffers with guards made of them.

use std::ffi::c_void;
use std::sync::Arc;

use super::context::Context;
use super::status;
use crate::buffer::{
    Allocation, GUARD_BYTES, GuardDamage, Layout, Side, check_range, find_damage, guard_pattern,
};
use crate::error::DeviceError;

/// A range of device memory.
pub(super) struct Memory {
    context: Arc<Context>,
    address: u64,
    bytes: u64,
}

impl Memory {
    /// Allocates; `requested` is what the message calls the size.
    pub(super) fn allocate(
        context: &Arc<Context>,
        bytes: u64,
        requested: u64,
    ) -> Result<Memory, DeviceError> {
        let exhausted = |available| DeviceError::OutOfMemory { requested, available };
        let size = usize::try_from(bytes).map_err(|_| exhausted(None))?;
        let mut address = 0;
        let code = context.raw(|f| {
            // SAFETY: the pointer is to a live u64 and the context is current.
            unsafe { (f.memory_allocate)(&raw mut address, size) }
        });
        if code == status::OUT_OF_MEMORY {
            return Err(exhausted(free_bytes(context)));
        }
        status::check(context.functions(), "cuMemAlloc", code)?;
        Ok(Memory { context: Arc::clone(context), address, bytes })
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Fills a range. The fill may still be under way when this returns.
    fn fill(&self, offset: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        check_range(self.bytes, offset, length)?;
        if length == 0 {
            return Ok(());
        }
        self.context.call("cuMemsetD8", |f| {
            // SAFETY: the range was checked to lie in this live allocation.
            unsafe { (f.memory_fill)(self.address + offset, byte, length as usize) }
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        check_range(self.bytes, offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.call("cuMemcpyHtoD", |f| {
            let from = bytes.as_ptr().cast::<c_void>();
            // SAFETY: the device range was checked to lie in this live allocation; the host
            // range is the slice, which the call has read when it returns.
            unsafe { (f.memory_to_device)(self.address + offset, from, bytes.len()) }
        })?;
        // A copy from pageable memory may return before its last part has reached the device, and a
        // non-blocking stream does not wait for it (CUDA Driver API, API synchronization behavior).
        self.context.synchronize()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        check_range(self.bytes, offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.call("cuMemcpyDtoH", |f| {
            let to = bytes.as_mut_ptr().cast::<c_void>();
            // SAFETY: the device range was checked to lie in this live allocation; the host
            // range is the slice, borrowed mutably until the copy is complete.
            unsafe { (f.memory_to_host)(to, self.address + offset, bytes.len()) }
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the address came from cuMemAlloc and is not used again; the driver waits for
        // work that uses it. An error cannot be acted on.
        let _ = self.context.raw(|f| unsafe { (f.memory_free)(self.address) });
    }
}

fn free_bytes(context: &Context) -> Option<u64> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both pointers are to live usizes and the context is current.
    let code = context.raw(|f| unsafe { (f.memory_info)(&raw mut free, &raw mut total) });
    (code == status::SUCCESS).then_some(free as u64)
}

/// A poisoned payload between two guards.
pub(super) struct Buffer {
    memory: Memory,
    layout: Layout,
}

impl Buffer {
    pub(super) fn allocate(
        context: &Arc<Context>,
        allocation: &Allocation,
    ) -> Result<Buffer, DeviceError> {
        let layout = allocation.layout()?;
        let memory = Memory::allocate(context, layout.total, allocation.bytes)?;
        memory.write(0, &guard_pattern(layout.start))?;
        memory.fill(layout.start, allocation.bytes, allocation.poison)?;
        memory.write(layout.end, &guard_pattern(GUARD_BYTES))?;
        context.synchronize()?;
        Ok(Buffer { memory, layout })
    }

    /// A payload alone, holding whatever the memory held before.
    pub(super) fn bare(context: &Arc<Context>, bytes: u64) -> Result<Buffer, DeviceError> {
        let memory = Memory::allocate(context, bytes.max(1), bytes)?;
        Ok(Buffer { memory, layout: Layout { start: 0, end: bytes, total: bytes } })
    }

    /// Whether there are guards around the payload.
    fn is_guarded(&self) -> bool {
        self.layout.total > self.layout.end
    }

    pub(super) fn bytes(&self) -> u64 {
        self.layout.end - self.layout.start
    }

    /// The address of a range of the payload.
    pub(super) fn place(&self, offset: u64, bytes: u64) -> Result<u64, DeviceError> {
        check_range(self.bytes(), offset, bytes)?;
        Ok(self.address() + offset)
    }

    pub(super) fn address(&self) -> u64 {
        self.memory.address() + self.layout.start
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        check_range(self.bytes(), offset, bytes.len() as u64)?;
        self.memory.write(self.layout.start + offset, bytes)
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        check_range(self.bytes(), offset, bytes.len() as u64)?;
        self.memory.read(self.layout.start + offset, bytes)
    }

    pub(super) fn damage(&self) -> Result<Option<GuardDamage>, DeviceError> {
        if !self.is_guarded() {
            return Ok(None);
        }
        let mut before = vec![0; self.layout.start as usize];
        self.memory.read(0, &mut before)?;
        let mut after = vec![0; GUARD_BYTES as usize];
        self.memory.read(self.layout.end, &mut after)?;
        Ok(find_damage(Side::After, &after).or_else(|| find_damage(Side::Before, &before)))
    }
}
