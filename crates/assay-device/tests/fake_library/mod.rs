//! Builds the libraries made for the tests: a driver and a management library.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use assay_device::DeviceError;
use assay_device::cuda::CudaDevice;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_driver/");

/// Builds the fake driver with the given `-D` options, once for all tests that want the same.
/// `None`, and a line that says so, where there is no C compiler.
pub(crate) fn library(test: &str, options: &[&str]) -> Option<String> {
    build(test, "fake", options)
}

/// As [`library`], the management library.
pub(crate) fn management_library(test: &str, options: &[&str]) -> Option<String> {
    build(test, "nvml", options)
}

/// Builds one of the folder's sources.
pub(crate) fn build(test: &str, source: &str, options: &[&str]) -> Option<String> {
    static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{source}{}.so", options.concat()));
    // Other test programs may build the same one at the same time.
    let own = path.with_extension(format!("{}.so", std::process::id()));
    let mut built = BUILT.lock().expect("no test panics while it builds");
    if !built.contains(&path) {
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-shared", "-fPIC", "-o"]).arg(&own);
        compiler.arg(format!("{FOLDER}{source}.c")).args(options);
        match compiler.output() {
            Ok(output) => assert!(output.status.success(), "the fake {source}: {output:?}"),
            Err(error) => {
                let line = format!("SKIPPED {test}: no C compiler `cc`: {error}\n");
                let _ = std::io::stderr().write_all(line.as_bytes());
                return None;
            }
        }
        std::fs::rename(&own, &path).expect("the folder can be written");
        built.insert(path.clone());
    }
    Some(path.to_string_lossy().into_owned())
}

/// Opens the fake driver built with the given options. `None` where there is no C compiler.
pub(crate) fn opened(test: &str, options: &[&str]) -> Option<Result<CudaDevice, DeviceError>> {
    library(test, options).map(|path| CudaDevice::open_with_library(&path, 0))
}
