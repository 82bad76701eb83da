//! CUPTI's functions as Rust sees them.

use std::ffi::{CStr, c_char, c_void};

use libloading::Library;

use super::{ActivityError, record};

/// `CUptiResult`.
pub(super) type Code = i32;

pub(super) const SUCCESS: Code = 0;
/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`.
pub(super) const CONCURRENT_KERNEL: i32 = 10;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: buffers that are not full too.
const FLUSH_FORCED: u32 = 1;

/// Versions of the interface whose kernel records have the layout of [`record`]: from CUDA 10.1
/// (`CUpti_ActivityKernel4`) to 13.5 (`CUpti_ActivityKernel11`), each of which only adds fields at
/// the end; a new major version may not.
const KNOWN_VERSIONS: std::ops::Range<u32> = 12..140_000;

type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// The library, and the functions of it that are called.
pub(super) struct Functions {
    path: String,
    version: u32,
    error_string: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    register: unsafe extern "C" fn(Requested, Completed) -> Code,
    enable: unsafe extern "C" fn(i32) -> Code,
    disable: unsafe extern "C" fn(i32) -> Code,
    flush: unsafe extern "C" fn(u32) -> Code,
    next: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Code,
    dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> Code,
    _library: Library,
}

impl Functions {
    pub(super) fn load(path: &str) -> Result<Functions, ActivityError> {
        // SAFETY: loading runs the library's initialisers. The names are those of NVIDIA's
        // CUPTI, or a path that the caller chose to trust.
        let library = unsafe { Library::new(path) }
            .map_err(|error| ActivityError::new(format!("CUPTI does not load: {error}")))?;
        let version = version(&library, path)?;
        if !KNOWN_VERSIONS.contains(&version) {
            let reason = format!("{path} is of version {version}, whose records are not known");
            return Err(ActivityError::new(reason));
        }
        Ok(Functions {
            path: path.to_string(),
            version,
            error_string: symbol(&library, "cuptiGetResultString\0")?,
            register: symbol(&library, "cuptiActivityRegisterCallbacks\0")?,
            enable: symbol(&library, "cuptiActivityEnable\0")?,
            disable: symbol(&library, "cuptiActivityDisable\0")?,
            flush: symbol(&library, "cuptiActivityFlushAll\0")?,
            next: symbol(&library, "cuptiActivityGetNextRecord\0")?,
            dropped: symbol(&library, "cuptiActivityGetNumDroppedRecords\0")?,
            _library: library,
        })
    }

    pub(super) fn describe(&self) -> String {
        format!("{}, version {}", self.path, self.version)
    }

    pub(super) fn register(&self) -> Result<(), ActivityError> {
        // SAFETY: both functions have the declared types and live as long as the program.
        let code = unsafe { (self.register)(record::requested, record::completed) };
        self.check("cuptiActivityRegisterCallbacks", code)
    }

    pub(super) fn enable(&self) -> Result<(), ActivityError> {
        // SAFETY: the kind is one of the enumeration's.
        let code = unsafe { (self.enable)(CONCURRENT_KERNEL) };
        self.check("cuptiActivityEnable", code)
    }

    pub(super) fn disable(&self) -> Result<(), ActivityError> {
        // SAFETY: as in `enable`.
        let code = unsafe { (self.disable)(CONCURRENT_KERNEL) };
        self.check("cuptiActivityDisable", code)
    }

    pub(super) fn flush(&self) -> Result<(), ActivityError> {
        // SAFETY: takes flags; it calls back into `record`, which holds no lock meanwhile.
        let code = unsafe { (self.flush)(FLUSH_FORCED) };
        self.check("cuptiActivityFlushAll", code)
    }

    /// The record after `record` in a buffer of the library's, or the first for null.
    ///
    /// # Safety
    /// `buffer` is one that the library gave back, `valid` bytes of it filled, and `record` null
    /// or an answer of this function for it.
    pub(super) unsafe fn next(&self, buffer: *mut u8, valid: usize, record: *mut u8) -> *mut u8 {
        let mut place = record;
        // SAFETY: as the caller promises; the place is a live pointer.
        let code = unsafe { (self.next)(buffer, valid, &raw mut place) };
        if code == SUCCESS { place } else { std::ptr::null_mut() }
    }

    /// Records that the library dropped for want of space.
    pub(super) fn dropped(&self, context: *mut c_void, stream: u32) -> usize {
        let mut count = 0;
        // SAFETY: context and stream are what the library itself has just named.
        let code = unsafe { (self.dropped)(context, stream, &raw mut count) };
        if code == SUCCESS { count } else { 0 }
    }

    fn check(&self, call: &str, code: Code) -> Result<(), ActivityError> {
        if code == SUCCESS {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: takes any number and writes the given pointer.
        let told = unsafe { (self.error_string)(code, &raw mut text) };
        let name = if told == SUCCESS && !text.is_null() {
            // SAFETY: the library's own NUL-terminated text, which lives as long as the library.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        } else {
            "an unknown error".to_string()
        };
        Err(ActivityError { reason: format!("{call}: {name} ({code})"), hint: hint(code) })
    }
}

/// What to do about the errors that users meet.
fn hint(code: Code) -> Option<String> {
    let text = match code {
        14 | 15 => {
            "CUPTI and the driver may not fit: install the CUPTI of the driver's CUDA release"
        }
        35 | 40 => "profiling needs rights here: see NVIDIA's ERR_NVGPUCTRPERM, or run as root",
        39 => "another profiler is attached to this process: run without it",
        _ => return None,
    };
    Some(text.to_string())
}

fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, ActivityError> {
    // SAFETY: each caller's type is the declaration of the symbol in cupti_activity.h or its
    // neighbours, and the table owns the library for as long as it is called.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    found.map(|found| *found).map_err(|_| {
        let name = name.trim_end_matches('\0');
        ActivityError::new(format!("the library has no function {name}"))
    })
}

fn version(library: &Library, path: &str) -> Result<u32, ActivityError> {
    let ask: unsafe extern "C" fn(*mut u32) -> Code = symbol(library, "cuptiGetVersion\0")?;
    let mut version = 0;
    // SAFETY: the pointer is to a live u32; the function needs no initialisation.
    match unsafe { ask(&raw mut version) } {
        SUCCESS => Ok(version),
        code => Err(ActivityError::new(format!("{path} does not tell its version ({code})"))),
    }
}
