//! Builds the driver library made for the tests.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use assay_device::DeviceError;
use assay_device::cuda::CudaDevice;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_driver/fake.c");

/// Builds the fake driver with the given `-D` options, once for all tests that want the same.
/// `None`, and a line that says so, where there is no C compiler.
pub(crate) fn library(test: &str, options: &[&str]) -> Option<String> {
    static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let name = format!("fake{}.so", options.concat());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut built = BUILT.lock().expect("no test panics while it builds");
    if !built.contains(&path) {
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-shared", "-fPIC", "-o"]).arg(&path).arg(SOURCE).args(options);
        match compiler.output() {
            Ok(output) => assert!(output.status.success(), "the fake driver: {output:?}"),
            Err(error) => {
                let line = format!("SKIPPED {test}: no C compiler `cc`: {error}\n");
                let _ = std::io::stderr().write_all(line.as_bytes());
                return None;
            }
        }
        built.insert(path.clone());
    }
    Some(path.to_string_lossy().into_owned())
}

/// Opens the fake built with the given options. `None` where there is no C compiler.
pub(crate) fn opened(test: &str, options: &[&str]) -> Option<Result<CudaDevice, DeviceError>> {
    library(test, options).map(|path| CudaDevice::open_with_library(&path, 0))
}
