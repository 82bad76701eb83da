//! The compilers that the project's tests call, installed from wheels into a cached folder.
//!
//! Nothing here is vendored: the wheels stay under `.toolchain/` (or `$ASSAY_TOOLCHAIN`), which Git
//! ignores. A machine without Python or a network lacks them, which is a reason to skip, not to
//! fail: [`EXIT_UNAVAILABLE`].

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use crate::hip;

/// What a command exits with when a compiler cannot be had on this machine.
pub(crate) const EXIT_UNAVAILABLE: u8 = 3;

/// What a command exits with when its arguments are wrong.
pub(crate) const EXIT_REQUEST: u8 = 2;

/// A set of wheels in a folder of its own. They go in with one `pip` command, because a second one
/// into the same folder would skip the `nvidia/` tree that the first has made.
pub(crate) struct Toolchain {
    /// The folder below the toolchain root; its name carries the release.
    folder: &'static str,
    /// The wheels, pinned.
    packages: &'static [&'static str],
    /// Roughly how much is downloaded.
    download_megabytes: u32,
}

/// nvcc 13.0, which writes PTX ISA 9.0: the newest that driver 580 accepts.
pub(crate) const CUDA: Toolchain = Toolchain {
    folder: "cuda-13.0.88",
    packages: &[
        "nvidia-cuda-nvcc==13.0.88",
        "nvidia-nvvm==13.0.88",
        "nvidia-cuda-crt==13.0.88",
        "nvidia-cuda-runtime==13.0.96",
        "nvidia-cuda-cccl==13.0.85",
    ],
    download_megabytes: 104,
};

/// The later releases of nvcc that kernels are recorded for; each bumps only what it must.
const CUDA_13_2: Toolchain = Toolchain {
    folder: "cuda-13.2.86",
    packages: &[
        "nvidia-cuda-nvcc==13.2.86",
        "nvidia-nvvm==13.2.86",
        "nvidia-cuda-crt==13.2.86",
        "nvidia-cuda-runtime==13.2.86",
        "nvidia-cuda-cccl==13.2.86",
    ],
    download_megabytes: 115,
};

/// nvcc 13.3.
const CUDA_13_3: Toolchain = Toolchain {
    folder: "cuda-13.3.73",
    packages: &[
        "nvidia-cuda-nvcc==13.3.73",
        "nvidia-nvvm==13.3.73",
        "nvidia-cuda-crt==13.3.73",
        "nvidia-cuda-runtime==13.3.29",
        "nvidia-cuda-cccl==13.3.3.3.1",
    ],
    download_megabytes: 121,
};

/// nvcc 13.5.
const CUDA_13_5: Toolchain = Toolchain {
    folder: "cuda-13.5.37",
    packages: &[
        "nvidia-cuda-nvcc==13.5.37",
        "nvidia-nvvm==13.5.37",
        "nvidia-cuda-crt==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-cccl==13.3.5.0.6",
    ],
    download_megabytes: 129,
};

/// Every release of nvcc that kernels are recorded for, oldest first.
const CUDA_RELEASES: [Toolchain; 4] = [CUDA, CUDA_13_2, CUDA_13_3, CUDA_13_5];

/// NVIDIA's own reader of images, which reads those of older releases too.
const CUOBJDUMP: Toolchain = Toolchain {
    folder: "cuobjdump-13.5.37",
    packages: &["nvidia-cuda-cuobjdump==13.5.37"],
    download_megabytes: 1,
};

/// Libraries with kernels of every architecture in them, which the readers of images are held
/// against: one with LZ4 and both generations of headers, one with zstd.
const LIBRARIES: Toolchain = Toolchain {
    folder: "nvjpeg-13.3.2.43",
    packages: &["nvidia-nvjpeg==13.3.2.43", "nvidia-nvjpeg-cu12==12.4.0.76"],
    download_megabytes: 9,
};

/// NVRTC, the compiler as a library, of the release that [`CUDA`] has.
const NVRTC: Toolchain = Toolchain {
    folder: "nvrtc-13.0.88",
    packages: &["nvidia-cuda-nvrtc==13.0.88"],
    download_megabytes: 90,
};

/// Triton, which compiles ahead of time with neither a GPU nor torch.
pub(crate) const TRITON: Toolchain =
    Toolchain { folder: "triton-3.6.0", packages: &["triton==3.6.0"], download_megabytes: 188 };

/// What the emulator's speed is compared with, besides Triton's interpreter, which needs numpy.
const PEERS: Toolchain = Toolchain {
    folder: "peers-numba-0.61.2",
    packages: &["numpy==2.2.6", "numba==0.61.2"],
    download_megabytes: 62,
};

/// Zig, for the clang 22 that is in it, with its linker and all of LLVM's targets: Debian 12 has
/// nothing newer than clang 19, which does not know gfx950.
const ZIG: Toolchain =
    Toolchain { folder: "zig-0.17.1", packages: &["ziglang==0.17.1"], download_megabytes: 100 };

/// Libraries that hold kernels for many of AMD's chips, in compressed bundles: the readers of code
/// objects are held against them. What the wheel asks for besides is of no use here.
const ROCM_LIBRARIES: Toolchain = Toolchain {
    folder: "bitsandbytes-0.50.2",
    packages: &["--no-deps", "bitsandbytes==0.50.2"],
    download_megabytes: 43,
};

/// Every set of wheels.
const ALL: [Toolchain; 10] = [
    CUDA,
    NVRTC,
    CUOBJDUMP,
    LIBRARIES,
    TRITON,
    CUDA_13_2,
    CUDA_13_3,
    CUDA_13_5,
    ZIG,
    ROCM_LIBRARIES,
];

/// Why a compiler cannot be had here.
#[derive(Debug)]
pub(crate) struct Unavailable {
    /// What is missing or went wrong.
    pub(crate) reason: String,
    /// What a person can do about it.
    pub(crate) hint: &'static str,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\nhint: {}", self.reason, self.hint)
    }
}

/// The root of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The folder that Cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// The folder that holds every toolchain.
fn toolchains() -> PathBuf {
    std::env::var_os("ASSAY_TOOLCHAIN")
        .map_or_else(|| repository().join(".toolchain"), PathBuf::from)
}

/// The CUDA compiler, where it is installed.
pub(crate) fn nvcc() -> Option<PathBuf> {
    let folder = CUDA.path_in(&toolchains());
    CUDA.is_complete(&folder).then(|| folder.join("nvidia/cu13/bin/nvcc"))
}

/// The CUDA compilers that are installed, oldest first, each with its release.
pub(crate) fn nvccs() -> Vec<(&'static str, PathBuf)> {
    let root = toolchains();
    let installed = CUDA_RELEASES.iter().filter(|toolchain| {
        let folder = toolchain.path_in(&root);
        toolchain.is_complete(&folder)
    });
    installed
        .map(|toolchain| {
            let nvcc = toolchain.path_in(&root).join("nvidia/cu13/bin/nvcc");
            (toolchain.folder.trim_start_matches("cuda-"), nvcc)
        })
        .collect()
}

/// A program that is clang 22 when it is called with `clang` in front of the options.
pub(crate) fn newer_clang() -> Option<PathBuf> {
    let folder = ZIG.path_in(&toolchains());
    ZIG.is_complete(&folder).then(|| folder.join("ziglang/zig"))
}

/// The library for one release of `ROCm`, where it is installed.
#[cfg(test)]
pub(crate) fn rocm_library(release: &str) -> Option<PathBuf> {
    let folder = ROCM_LIBRARIES.path_in(&toolchains());
    let name = format!("bitsandbytes/libbitsandbytes_rocm{release}.so");
    ROCM_LIBRARIES.is_complete(&folder).then(|| folder.join(name))
}

/// `cuobjdump`, where it is installed.
pub(crate) fn cuobjdump() -> Option<PathBuf> {
    let folder = CUOBJDUMP.path_in(&toolchains());
    CUOBJDUMP.is_complete(&folder).then(|| folder.join("nvidia/cu13/bin/cuobjdump"))
}

/// `cargo xtask toolchain [--triton | --peers | --records | --hip | --all]`.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let wanted: &[Toolchain] = match arguments[..] {
        [] => &[CUDA, NVRTC, CUOBJDUMP, LIBRARIES],
        ["--triton"] => &[TRITON],
        ["--peers"] => &[CUDA, TRITON, PEERS],
        ["--records"] => &[CUDA, CUDA_13_2, CUDA_13_3, CUDA_13_5, ZIG],
        ["--hip"] => &[ROCM_LIBRARIES],
        ["--all"] => &ALL,
        _ => {
            eprintln!(
                "usage: cargo xtask toolchain [--triton | --peers | --records | --hip | --all]"
            );
            return ExitCode::from(EXIT_REQUEST);
        }
    };
    let mut missing = false;
    for toolchain in wanted {
        match toolchain.install(&toolchains(), "python3") {
            Ok(folder) => println!("{} is installed in {}", toolchain.folder, folder.display()),
            Err(unavailable) => {
                eprintln!("SKIPPED toolchain {}: {unavailable}", toolchain.folder);
                missing = true;
            }
        }
    }
    if matches!(arguments[..], ["--hip" | "--all"]) {
        missing |= !install_clang();
    }
    if missing { ExitCode::from(EXIT_UNAVAILABLE) } else { ExitCode::SUCCESS }
}

/// Installs clang for AMD GPUs; true if it is there.
fn install_clang() -> bool {
    match hip::install() {
        Ok(compiler) => println!("clang {} is installed", compiler.release),
        Err(unavailable) => {
            eprintln!("SKIPPED toolchain clang-19: {unavailable}");
            return false;
        }
    }
    true
}

impl Toolchain {
    fn path_in(&self, toolchains: &Path) -> PathBuf {
        toolchains.join(self.folder)
    }

    /// The stamp lists the wheels, so that changed pins are installed anew.
    fn stamp(&self) -> String {
        self.packages.join("\n") + "\n"
    }

    fn is_complete(&self, folder: &Path) -> bool {
        fs::read_to_string(folder.join("assay-stamp")).is_ok_and(|found| found == self.stamp())
    }

    /// Installs the wheels unless they are there already.
    ///
    /// They are unpacked beside their folder and moved into it once complete, so that neither an
    /// interrupted install nor two at the same time can leave half of one.
    fn install(&self, toolchains: &Path, python: &str) -> Result<PathBuf, Unavailable> {
        let folder = self.path_in(toolchains);
        if self.is_complete(&folder) {
            return Ok(folder);
        }
        eprintln!("installing {} (about {} MB)", self.folder, self.download_megabytes);
        let partial = toolchains.join(format!(".{}.{}", self.folder, std::process::id()));
        let result = fs::create_dir_all(&partial)
            .map_err(|error| cannot_write(&partial, &error))
            .and_then(|()| self.pip_install(&partial, python))
            .and_then(|()| self.publish(&partial, &folder));
        // What was published is no longer here; what failed is of no use.
        let _ = fs::remove_dir_all(&partial);
        result.map(|()| folder)
    }

    fn pip_install(&self, target: &Path, python: &str) -> Result<(), Unavailable> {
        let quiet =
            ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
        let output = Command::new(python)
            .args(quiet)
            .args([OsStr::new("--target"), target.as_os_str()])
            .args(self.packages)
            .env("PIP_ROOT_USER_ACTION", "ignore")
            .output()
            .map_err(|error| Unavailable {
                reason: format!("cannot run {python}: {error}"),
                hint: "install Python 3 with pip",
            })?;
        if output.status.success() { Ok(()) } else { Err(pip_failed(&output)) }
    }

    fn publish(&self, partial: &Path, folder: &Path) -> Result<(), Unavailable> {
        let publish = || -> io::Result<()> {
            fs::write(partial.join("assay-stamp"), self.stamp())?;
            if folder.exists() && !self.is_complete(folder) {
                fs::remove_dir_all(folder)?;
            }
            fs::rename(partial, folder)
        };
        match publish() {
            // Somebody else has installed the same wheels meanwhile.
            Err(_) if self.is_complete(folder) => Ok(()),
            other => other.map_err(|error| cannot_write(folder, &error)),
        }
    }
}

fn pip_failed(output: &Output) -> Unavailable {
    let message = String::from_utf8_lossy(&output.stderr);
    let last = message.lines().rev().find(|line| !line.trim().is_empty());
    Unavailable {
        reason: format!("pip: {}", last.unwrap_or("it failed without a word").trim()),
        hint: "the wheels come from PyPI: check the network and `python3 -m pip --version`",
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Unavailable {
    Unavailable {
        reason: format!("cannot write {}: {error}", path.display()),
        hint: "set ASSAY_TOOLCHAIN to a folder that can be written",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("assay-toolchain-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_missing_python_is_a_reason_to_skip() {
        let folder = scratch("python");
        let error = CUDA.install(&folder, "no-such-python").unwrap_err();
        assert!(error.reason.contains("no-such-python"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing may be left behind");
    }

    #[test]
    fn a_failing_pip_leaves_nothing_behind() {
        let folder = scratch("pip");
        let error = CUDA.install(&folder, "false").unwrap_err();
        assert!(error.reason.starts_with("pip: "), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn only_a_stamp_with_the_same_pins_counts_as_installed() {
        let folder = CUDA.path_in(&scratch("stamp"));
        fs::create_dir_all(&folder).unwrap();
        assert!(!CUDA.is_complete(&folder));
        fs::write(folder.join("assay-stamp"), "nvidia-cuda-nvcc==12.0\n").unwrap();
        assert!(!CUDA.is_complete(&folder));
        fs::write(folder.join("assay-stamp"), CUDA.stamp()).unwrap();
        assert!(CUDA.is_complete(&folder));
    }

    #[test]
    fn an_interrupted_install_is_replaced() {
        let root = scratch("replaced");
        let (partial, folder) = (root.join("partial"), CUDA.path_in(&root));
        fs::create_dir_all(&partial).unwrap();
        fs::create_dir_all(folder.join("half")).unwrap();
        CUDA.publish(&partial, &folder).unwrap();
        assert!(CUDA.is_complete(&folder) && !folder.join("half").exists());
    }
}
