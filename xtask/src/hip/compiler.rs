//! Compiling one source for one chip, and reading what came out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_image::{HipImage, Release};

use super::readelf;
use crate::toolchain::repository;

/// The chips that clang 19 compiles for. It does not know gfx950, which LLVM 20 was the first to.
pub(crate) const CHIPS: [&str; 7] =
    ["gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201", "gfx90a", "gfx942"];

/// A code object of the device alone, from the source alone: neither `ROCm`'s headers and libraries
/// nor the host's.
const OPTIONS: [&str; 9] = [
    "-xhip",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-nogpulib",
    "-nogpuinc",
    "-ffreestanding",
    "-O3",
    "-std=c++17",
    // A loop that is not unrolled as its pragma asks is no fault.
    "-Wno-pass-failed",
];

/// An installed clang.
pub(crate) struct Compiler {
    pub(super) clang: PathBuf,
    /// `llvm-readelf` of the same release, where it is installed.
    pub(super) readelf: Option<PathBuf>,
    pub(crate) release: Release,
}

impl Compiler {
    /// What is compiled from a source below `kernels/cuda` for a chip; `scratch` is a file that is
    /// written on the way. An error says what the compiler said, or where two readers disagree.
    pub(crate) fn image(
        &self,
        source: &Path,
        chip: &str,
        scratch: &Path,
    ) -> Result<HipImage, String> {
        self.compile(source, chip, scratch)?;
        let bytes = fs::read(scratch).map_err(|error| error.to_string())?;
        let image = assay_image::read_code_object(&bytes).map_err(|error| error.to_string())?;
        if image.architecture != chip {
            return Err(format!("compiled for {}, not {chip}", image.architecture));
        }
        if let Some(readelf) = &self.readelf {
            readelf::check(readelf, scratch, &image)?;
        }
        Ok(image)
    }

    fn compile(&self, source: &Path, chip: &str, to: &Path) -> Result<(), String> {
        let kernels = repository().join("kernels");
        let output = Command::new(&self.clang)
            .current_dir(kernels.join("cuda"))
            .args(OPTIONS)
            .arg(format!("--offload-arch={chip}"))
            .arg("-I")
            .arg(kernels.join("hip"))
            .arg("-o")
            .args([to, source])
            .output()
            .map_err(|error| format!("cannot run {}: {error}", self.clang.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let first = message.lines().find(|line| line.contains("error:"));
        Err(first.unwrap_or("the compiler failed without an error").to_owned())
    }
}
