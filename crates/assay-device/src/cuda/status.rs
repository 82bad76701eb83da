//! What the driver's error numbers mean.

use std::ffi::{CStr, c_char};

use super::api::{Code, Functions};
use crate::error::{DeviceError, FaultKind, KernelFault};

pub(super) const SUCCESS: Code = 0;
pub(super) const INVALID_VALUE: Code = 1;
pub(super) const OUT_OF_MEMORY: Code = 2;
pub(super) const STUB_LIBRARY: Code = 34;
pub(super) const NO_DEVICE: Code = 100;
pub(super) const NO_BINARY_FOR_GPU: Code = 209;
pub(super) const UNSUPPORTED_PTX_VERSION: Code = 222;
pub(super) const NOT_FOUND: Code = 500;
pub(super) const NOT_READY: Code = 600;
pub(super) const LAUNCH_OUT_OF_RESOURCES: Code = 701;
pub(super) const INVALID_CLUSTER_SIZE: Code = 912;

/// The sort of fault that kills a context, or `None` for an error that leaves it usable.
fn fatal(code: Code) -> Option<FaultKind> {
    Some(match code {
        700 => FaultKind::OutOfBounds,
        702 => FaultKind::Hang,
        710 | 715 => FaultKind::Trap,
        716 => FaultKind::Misaligned,
        // Stack overflow, wrong address space, wrong program counter, unspecified failure.
        714 | 717 | 718 | 719 | 721 => FaultKind::Other,
        _ => return None,
    })
}

/// The driver is shutting down, or the hardware or context is gone.
fn gone(code: Code) -> bool {
    matches!(code, 4 | 46 | 214 | 220 | 226 | 709)
}

/// Turns a call's answer into a result.
pub(super) fn check(functions: &Functions, call: &str, code: Code) -> Result<(), DeviceError> {
    if code == SUCCESS { Ok(()) } else { Err(decode(functions, call, code)) }
}

/// The error that a number stands for.
pub(super) fn decode(functions: &Functions, call: &str, code: Code) -> DeviceError {
    let (name, text) = words(functions, code);
    if let Some(kind) = fatal(code) {
        let description = format!("{text} ({name})");
        return DeviceError::Fault(KernelFault {
            kind,
            description,
            place: None,
            hint: None,
            lost_context: true,
        });
    }
    if gone(code) {
        return DeviceError::Lost { cause: format!("{call} failed with {name} ({code}): {text}") };
    }
    DeviceError::Api { call: call.to_string(), code, name, text }
}

/// The driver's name and description of an error.
pub(super) fn words(functions: &Functions, code: Code) -> (String, String) {
    let name = word(functions.error_name, code).unwrap_or_else(|| "an unknown error".to_string());
    let text = word(functions.error_string, code)
        .unwrap_or_else(|| "the driver has no words for it".to_string());
    (name, text)
}

type Wording = unsafe extern "system" fn(Code, *mut *const c_char) -> Code;

fn word(ask: Wording, code: Code) -> Option<String> {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: `ask` is cuGetErrorName or cuGetErrorString, which only write the given pointer,
    // for any number, with or without a context.
    let answer = unsafe { ask(code, &raw mut text) };
    if answer != SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: on success the pointer is a NUL-terminated string that lives as long as the
    // library, which `functions` keeps loaded while this runs.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}
