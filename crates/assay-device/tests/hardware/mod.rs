//! Opens the GPU, or says why a test did not run.

use std::io::Write as _;

use assay_device::{Device, DeviceError, open};

/// A GPU, or `None` and a line that says why there is none. With `ASSAY_REQUIRE_GPU` set, a
/// missing GPU fails the test instead.
pub(crate) fn gpu(test: &str) -> Option<Box<dyn Device>> {
    let error = match open("cuda:0") {
        Ok(device) => return Some(device),
        Err(error) => error,
    };
    let absent = matches!(
        error,
        DeviceError::DriverMissing { .. }
            | DeviceError::DriverTooOld { .. }
            | DeviceError::NoSuchDevice { .. }
    );
    assert!(absent, "there is a GPU, but it does not open: {error}");
    assert!(std::env::var_os("ASSAY_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
    skip(test, &error.to_string());
    None
}

/// Says, past the test harness, that a test did not run.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
