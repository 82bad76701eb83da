//! Compiling one source for one chip, and reading what came out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_image::{HipImage, Release};

use super::readelf;
use crate::toolchain::repository;

/// Every chip that there are limits for, those that clang 19 compiles for first: it does not know
/// gfx950, which came with LLVM 20.
const CHIPS: [&str; 8] =
    ["gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201", "gfx90a", "gfx942", "gfx950"];

/// A code object of the device alone, from the source alone: neither `ROCm`'s headers and libraries
/// nor the host's.
pub(crate) const OPTIONS: [&str; 9] = [
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
    /// The program, and what stands before its options.
    pub(super) clang: PathBuf,
    pub(super) first: Option<&'static str>,
    /// A folder with its linker, where it does not find that by itself.
    pub(super) linker: Option<PathBuf>,
    /// `llvm-readelf` of clang 19, where it is installed.
    pub(super) readelf: Option<PathBuf>,
    pub(crate) release: Release,
}

impl Compiler {
    /// The chips that it compiles for.
    pub(crate) fn chips(&self) -> &'static [&'static str] {
        if self.release.major < 20 { &CHIPS[..7] } else { &CHIPS }
    }

    /// Reads a file that was compiled for a chip. An error says where two readers disagree.
    pub(crate) fn read(&self, file: &Path, chip: &str) -> Result<HipImage, String> {
        let bytes = fs::read(file).map_err(|error| error.to_string())?;
        let image = assay_image::read_code_object(&bytes).map_err(|error| error.to_string())?;
        if image.architecture != chip {
            return Err(format!("compiled for {}, not {chip}", image.architecture));
        }
        if let Some(readelf) = &self.readelf {
            readelf::check(readelf, file, &image)?;
        }
        Ok(image)
    }

    /// Compiles a source below `kernels/cuda` for a chip. An error is the compiler's first.
    pub(crate) fn compile(&self, source: &Path, chip: &str, to: &Path) -> Result<(), String> {
        let kernels = repository().join("kernels");
        let output = Command::new(&self.clang)
            .current_dir(kernels.join("cuda"))
            .args(self.first)
            .args(OPTIONS)
            .args(self.linker.iter().map(|folder| format!("-B{}", folder.display())))
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
