//! The buffers that CUPTI fills, and the records in them.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::{CONCURRENT_KERNEL, Functions};

/// One kernel, as the device recorded it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelRecord {
    /// The kernel's symbol.
    pub name: String,
    /// When it started, in nanoseconds of a clock that all records of a process share.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// A number that rises with each launch.
    pub correlation: u32,
    /// The library's number of the stream.
    pub stream: u32,
}

impl KernelRecord {
    /// How long it ran, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Offsets in `CUpti_ActivityKernel4` to `CUpti_ActivityKernel11`, which are packed and begin
/// alike.
mod offset {
    pub(super) const KIND: usize = 0;
    pub(super) const START: usize = 16;
    pub(super) const END: usize = 24;
    pub(super) const STREAM: usize = 48;
    pub(super) const CORRELATION: usize = 92;
    pub(super) const NAME: usize = 104;
    /// Bytes of a record that are read.
    pub(super) const ALL: usize = 112;
}

/// `CUPTI_ACTIVITY_KIND_KERNEL`, which a library may give in place of the concurrent kind.
const KERNEL: i32 = 3;
/// Bytes of a buffer, some thousands of records.
const BUFFER_BYTES: usize = 1 << 20;
/// The most records that are kept until they are taken; further ones count as dropped.
const MOST: usize = 1 << 20;

/// What the callbacks fill, which get no pointer of ours to fill it through.
struct Collected {
    functions: Option<Arc<Functions>>,
    records: Vec<KernelRecord>,
    dropped: usize,
}

static COLLECTED: Mutex<Collected> =
    Mutex::new(Collected { functions: None, records: Vec::new(), dropped: 0 });

fn collected() -> MutexGuard<'static, Collected> {
    COLLECTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the library whose buffers come.
pub(super) fn install(functions: &Arc<Functions>) {
    collected().functions = Some(Arc::clone(functions));
}

/// Forgets all records.
pub(super) fn clear() {
    let _ = take();
}

/// The records so far, and how many were dropped.
pub(super) fn take() -> (Vec<KernelRecord>, usize) {
    let mut collected = collected();
    let records = std::mem::take(&mut collected.records);
    (records, std::mem::take(&mut collected.dropped))
}

/// Where a buffer comes from and goes to. The alignment is what CUPTI asks for.
fn layout() -> Layout {
    Layout::from_size_align(BUFFER_BYTES, 8).unwrap_or_else(|_| Layout::new::<u64>())
}

/// `CUpti_BuffersCallbackRequestFunc`: gives the library a buffer.
///
/// # Safety
/// The library calls it, with pointers to places of its own.
pub(super) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    bytes: *mut usize,
    most: *mut usize,
) {
    // SAFETY: the size of the layout is not zero. Zeroed, so that no byte is ever uninitialised.
    let memory = unsafe { alloc_zeroed(layout()) };
    // SAFETY: the library gives three places to write to. A null buffer of no bytes is how it is
    // told that there is none; it then drops records and counts them.
    unsafe {
        *buffer = memory;
        *bytes = if memory.is_null() { 0 } else { layout().size() };
        *most = 0;
    }
}

/// `CUpti_BuffersCallbackCompleteFunc`: takes a buffer back and reads its records.
///
/// # Safety
/// The library calls it, with a buffer that [`requested`] gave it and no longer uses.
pub(super) unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _bytes: usize,
    valid: usize,
) {
    if buffer.is_null() {
        return;
    }
    let functions = collected().functions.clone();
    if let Some(functions) = functions {
        // SAFETY: the library filled `valid` bytes of its buffer.
        let records = unsafe { read_all(&functions, buffer, valid.min(layout().size())) };
        let dropped = functions.dropped(context, stream);
        let mut collected = collected();
        let room = MOST.saturating_sub(collected.records.len());
        collected.dropped += dropped + records.len().saturating_sub(room);
        collected.records.extend(records.into_iter().take(room));
    }
    // SAFETY: the buffer came from `requested` with this layout, and nothing refers to it now.
    unsafe { dealloc(buffer, layout()) };
}

/// # Safety
/// `buffer` is one that [`requested`] gave and the library filled `valid` bytes of.
unsafe fn read_all(functions: &Functions, buffer: *mut u8, valid: usize) -> Vec<KernelRecord> {
    let mut records = Vec::new();
    let mut place = std::ptr::null_mut();
    // A record takes more bytes than one, so a library that never ends is not followed for ever.
    for _ in 0..=valid {
        // SAFETY: as this function's caller promises; the place is the answer before.
        place = unsafe { functions.next(buffer, valid, place) };
        if place.is_null() {
            break;
        }
        let offset = (place as usize).wrapping_sub(buffer as usize);
        if offset.checked_add(4).is_none_or(|end| end > valid) {
            break;
        }
        // SAFETY: four bytes from the place on lie in the buffer.
        let kind: i32 = unsafe { field(place, offset::KIND) };
        let whole = offset + offset::ALL <= valid;
        if whole && matches!(kind, KERNEL | CONCURRENT_KERNEL) {
            // SAFETY: it is a kernel's record, all of whose bytes read lie in the buffer, of a
            // library whose version has this layout.
            records.push(unsafe { read(place) });
        }
    }
    records
}

/// # Safety
/// `record` points to a kernel's record of at least `offset::ALL` bytes.
unsafe fn read(record: *const u8) -> KernelRecord {
    // SAFETY: all offsets lie inside, as the caller promises.
    let (start_ns, end_ns, correlation, stream, name) = unsafe {
        (
            field(record, offset::START),
            field(record, offset::END),
            field(record, offset::CORRELATION),
            field(record, offset::STREAM),
            field::<usize>(record, offset::NAME),
        )
    };
    let name = name as *const c_char;
    let name = if name.is_null() {
        String::new()
    } else {
        // SAFETY: the library's own NUL-terminated text, alive during the callback.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    };
    KernelRecord { name, start_ns, end_ns, correlation, stream }
}

/// # Safety
/// A `T`, any of whose bits are a value, lies at the offset.
unsafe fn field<T: Copy>(record: *const u8, offset: usize) -> T {
    // SAFETY: as the caller promises; packed, so the address need not be aligned.
    unsafe { record.add(offset).cast::<T>().read_unaligned() }
}
