//! Opens the GPU, or says why a test did not run.

#![allow(dead_code, reason = "each test file uses a part")]

use std::io::Write as _;
use std::process::Command;

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

/// Set to the name of the one test that a child process runs.
const ALONE: &str = "ASSAY_TEST_ALONE";

/// Runs `body` in a process of its own, because a kernel that faults on a GPU ends every context
/// that its process has there. `test` is the test's full name. False in that process, where nothing
/// is left to do.
pub(crate) fn alone(test: &str, body: impl FnOnce()) -> bool {
    if std::env::var(ALONE).is_ok_and(|name| name == test) {
        body();
        return false;
    }
    let program = std::env::current_exe().expect("a test knows its own program");
    let mut child = Command::new(program);
    child.args(["--exact", test, "--nocapture"]).env(ALONE, test);
    let output = child.output().expect("the test starts again");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(output.status.success() && ran, "{test} failed in its own process:\n{told}");
    true
}
