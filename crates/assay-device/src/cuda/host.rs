//! Owners of host memory that the device copies from and to.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::api::HOST_DEVICE_MAP;
use super::context::Context;
use super::status;
use crate::error::DeviceError;
use crate::host::{HostKind, check_mapped, check_word};

/// Pages of the driver's own allocations.
const PAGE: usize = 4096;
/// Pages of [`HostKind::LargePages`].
const LARGE_PAGE: usize = 2 << 20;

/// Zeroed host memory.
pub(super) struct HostBuffer {
    context: Arc<Context>,
    /// The address of the first byte, a number so that it may move between threads.
    start: usize,
    bytes: usize,
    kind: HostKind,
    /// Where kernels find it, if it is mapped.
    mapped: Option<u64>,
}

impl HostBuffer {
    pub(super) fn allocate(
        context: &Arc<Context>,
        bytes: u64,
        kind: HostKind,
    ) -> Result<HostBuffer, DeviceError> {
        let exhausted = || DeviceError::OutOfMemory { requested: bytes, available: None };
        let size = usize::try_from(bytes).map_err(|_| exhausted())?;
        let start = match kind {
            HostKind::Pageable | HostKind::LargePages => {
                pageable(size, page(kind)).ok_or_else(exhausted)?
            }
            HostKind::Pinned | HostKind::Mapped => pinned(context, size, kind)?,
        };
        let mut buffer =
            HostBuffer { context: Arc::clone(context), start, bytes: size, kind, mapped: None };
        if kind == HostKind::Mapped {
            buffer.mapped = Some(buffer.find_mapped()?);
        }
        Ok(buffer)
    }

    fn find_mapped(&self) -> Result<u64, DeviceError> {
        let Some(find) = self.context.functions().host_address else {
            return Err(missing("cuMemHostGetDevicePointer"));
        };
        let mut address = 0;
        self.context.call("cuMemHostGetDevicePointer", |_| {
            // SAFETY: the pointer is to a live u64, and the start is that of live memory that
            // cuMemHostAlloc mapped; the flags must be 0.
            unsafe { find(&raw mut address, self.start as *mut c_void, 0) }
        })?;
        Ok(address)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Where kernels find it.
    pub(super) fn address(&self) -> Result<u64, DeviceError> {
        check_mapped(self.kind)?;
        self.mapped.ok_or_else(|| missing("mapped host memory"))
    }

    /// A byte's address for the driver. The caller has checked that it lies inside.
    pub(super) fn pointer(&self, offset: u64) -> *mut c_void {
        (self.start + offset as usize) as *mut c_void
    }

    /// All bytes. No work of the device may be under way.
    pub(super) fn view(&mut self) -> &mut [u8] {
        // SAFETY: the memory is live, zeroed when it was allocated, and of this length. The caller
        // has waited for the device, and cannot start new work while it holds this borrow of the
        // device's own table.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, self.bytes) }
    }

    /// One word that kernels see too.
    pub(super) fn word(&self, offset: u64) -> Result<&AtomicU32, DeviceError> {
        check_mapped(self.kind)?;
        check_word(self.bytes(), offset)?;
        let pointer = self.pointer(offset).cast::<u32>();
        // SAFETY: the word was checked to lie in this live allocation, whose start is a page's,
        // at a multiple of 4. The host reaches it through atomics only while the device works;
        // `view` borrows the buffer mutably, so that no such reference lives beside it.
        Ok(unsafe { AtomicU32::from_ptr(pointer) })
    }

    pub(super) fn store(&self, offset: u64, word: u32) -> Result<(), DeviceError> {
        self.word(offset)?.store(word, Ordering::SeqCst);
        Ok(())
    }

    pub(super) fn load(&self, offset: u64) -> Result<u32, DeviceError> {
        Ok(self.word(offset)?.load(Ordering::SeqCst))
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if matches!(self.kind, HostKind::Pageable | HostKind::LargePages) {
            let layout = layout(self.bytes, page(self.kind));
            // SAFETY: the memory came from this layout in `pageable` and is not used again: the
            // device waits for its work before it drops a buffer.
            unsafe { std::alloc::dealloc(self.start as *mut u8, layout) };
            return;
        }
        let Some(free) = self.context.functions().host_free else { return };
        // SAFETY: the memory came from cuMemHostAlloc and is not used again. An error cannot be
        // acted on.
        let _ = self.context.raw(|_| unsafe { free(self.start as *mut c_void) });
    }
}

/// How large a pageable kind's pages are to be.
fn page(kind: HostKind) -> usize {
    if kind == HostKind::LargePages { LARGE_PAGE } else { PAGE }
}

/// Whole pages, at least one.
fn layout(bytes: usize, page: usize) -> std::alloc::Layout {
    let size = bytes.max(1).checked_next_multiple_of(page).unwrap_or(page);
    std::alloc::Layout::from_size_align(size, page)
        .unwrap_or_else(|_| std::alloc::Layout::new::<[u8; PAGE]>())
}

/// Pages of ordinary memory, each touched, so that a first copy measures no page faults.
fn pageable(bytes: usize, page: usize) -> Option<usize> {
    let layout = layout(bytes, page);
    if layout.size() < bytes {
        return None;
    }
    // SAFETY: the size is not zero.
    let start = unsafe { std::alloc::alloc(layout) };
    if start.is_null() {
        return None;
    }
    if page == LARGE_PAGE {
        ask_for_large_pages(start, layout.size());
    }
    for offset in (0..layout.size()).step_by(PAGE) {
        // SAFETY: the page lies in the live allocation, whose size is a multiple of it; a volatile
        // write of its first byte is not left out.
        unsafe { start.add(offset).write_volatile(0) };
        let rest = PAGE - 1;
        // SAFETY: as above, the rest of the same page.
        unsafe { start.add(offset + 1).write_bytes(0, rest) };
    }
    Some(start as usize)
}

/// Tells the system that large pages would be welcome, before any of them is touched.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(start: *mut u8, bytes: usize) {
    /// `MADV_HUGEPAGE` of Linux.
    const HUGE_PAGE: i32 = 14;
    unsafe extern "C" {
        fn madvise(start: *mut c_void, length: usize, advice: i32) -> i32;
    }
    // SAFETY: the range is a live allocation of whole pages of its own; the advice changes only
    // how the system backs them. A refusal leaves ordinary pages, which serve as well.
    let _ = unsafe { madvise(start.cast(), bytes, HUGE_PAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_: *mut u8, _: usize) {}

fn pinned(context: &Arc<Context>, bytes: usize, kind: HostKind) -> Result<usize, DeviceError> {
    let functions = context.functions();
    let (Some(allocate), true) = (functions.host_allocate, functions.host_free.is_some()) else {
        return Err(missing("cuMemHostAlloc"));
    };
    let flags = if kind == HostKind::Mapped { HOST_DEVICE_MAP } else { 0 };
    let mut start = std::ptr::null_mut();
    // SAFETY: the pointer is to a live pointer and the size is not zero.
    let code = context.raw(|_| unsafe { allocate(&raw mut start, bytes.max(1), flags) });
    if code == status::OUT_OF_MEMORY {
        return Err(DeviceError::OutOfMemory { requested: bytes as u64, available: None });
    }
    status::check(functions, "cuMemHostAlloc", code)?;
    // SAFETY: the driver has just given so many bytes, which nothing else refers to yet.
    unsafe { start.cast::<u8>().write_bytes(0, bytes) };
    Ok(start as usize)
}

pub(super) fn missing(function: &str) -> DeviceError {
    DeviceError::Unsupported { what: format!("{function}: this driver does not have it") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_what_is_asked_for_and_never_less() {
        for bytes in [0, 1, 4095, 4096, 4097, 1 << 20] {
            for page in [PAGE, LARGE_PAGE] {
                let layout = layout(bytes, page);
                assert!(layout.size() >= bytes.max(1), "{bytes}");
                assert!(layout.size().is_multiple_of(page), "{bytes}");
            }
        }
        assert_eq!(pageable(usize::MAX, PAGE), None);
        assert_eq!(pageable(usize::MAX / 2, LARGE_PAGE), None);
    }

    #[test]
    fn large_pages_are_whole_and_zeroed() {
        let bytes = (3 << 20) + 5;
        let start = pageable(bytes, LARGE_PAGE).expect("a few megabytes");
        assert!(start.is_multiple_of(LARGE_PAGE));
        // SAFETY: `pageable` gave so many initialised bytes, which nothing else refers to.
        let seen = unsafe { std::slice::from_raw_parts(start as *const u8, bytes) };
        assert!(seen.iter().all(|byte| *byte == 0));
        // SAFETY: the memory came from this layout and is not used again.
        unsafe { std::alloc::dealloc(start as *mut u8, layout(bytes, LARGE_PAGE)) };
    }
}
