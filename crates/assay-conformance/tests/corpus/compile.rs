//! Compiles the corpus at test time, with compilers that `cargo xtask toolchain` installs.
//!
//! What came out is kept under the target folder by a digest of all that went in, so that only a
//! changed source or another compiler costs a compile again. Where a compiler is missing the test
//! says so on a line that starts with SKIPPED.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// PTX text of a compiler.
pub(crate) struct Ptx {
    /// What the census calls it: `rows.cu by nvcc 13.0.88 for 80`.
    pub(crate) name: String,
    /// The text.
    pub(crate) text: String,
    /// The architecture to emulate: 90 for `sm_90a`.
    pub(crate) architecture: u32,
}

/// Who compiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compiler {
    /// nvcc of a release.
    Nvcc(&'static str),
    /// NVRTC of a release, through Python.
    Nvrtc(&'static str),
}

/// One compile of one CUDA source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// The source's name in `tests/corpus/cuda`, without its ending.
    pub(crate) source: &'static str,
    pub(crate) compiler: Compiler,
    /// The target without its prefix: `80`, `90a`.
    pub(crate) target: &'static str,
    /// Options besides the target and the language.
    pub(crate) flags: &'static [&'static str],
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of one toolchain, if it is completely installed.
pub(crate) fn toolchain(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ASSAY_TOOLCHAIN")
        .map_or_else(|| repository().join(".toolchain"), PathBuf::from);
    let folder = root.join(name);
    folder.join("assay-stamp").exists().then_some(folder)
}

/// Says something past the test harness, which `cargo xtask ci` counts where it starts with
/// SKIPPED.
pub(crate) fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The folder of what was compiled, made.
pub(crate) fn cache() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// A name for what comes out of everything in `parts`.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The architecture in a target's name: 90 of `90a`.
pub(crate) fn architecture(target: &str) -> u32 {
    let digits = target.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().expect("a target starts with its number")
}

/// The text in `path`, made by `command` (which writes the file it is given) where it is missing.
///
/// # Errors
/// What the compiler said.
pub(crate) fn made(path: &Path, command: impl FnOnce(&Path) -> Command) -> Result<String, String> {
    static ATTEMPT: AtomicU32 = AtomicU32::new(0);
    if let Ok(text) = fs::read_to_string(path) {
        return Ok(text);
    }
    // Two tests may make the same file: each makes its own and puts it in place when complete.
    let attempt = ATTEMPT.fetch_add(1, Ordering::Relaxed);
    let partial = path.with_extension(format!("{}.{attempt}", std::process::id()));
    let output = command(&partial).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(words(&output));
    }
    fs::rename(&partial, path).map_err(|error| error.to_string())?;
    fs::read_to_string(path).map_err(|error| error.to_string())
}

fn words(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

impl Unit {
    /// What the census calls the unit.
    pub(crate) fn name(&self) -> String {
        let Unit { source, target, flags, .. } = self;
        let by = match self.compiler {
            Compiler::Nvcc(release) => format!("nvcc {release}"),
            Compiler::Nvrtc(release) => format!("NVRTC {release}"),
        };
        format!("{source}.cu, {by}, compute_{target} {}", flags.join(" ")).trim_end().to_string()
    }

    /// Compiles the unit; `Ok(None)` where its compiler is missing, which is said.
    ///
    /// # Errors
    /// What the compiler said.
    pub(crate) fn compile(&self) -> Result<Option<Ptx>, String> {
        let name = self.name();
        let (Compiler::Nvcc(release) | Compiler::Nvrtc(release)) = self.compiler;
        let Some(cuda) = toolchain(&format!("cuda-{release}")) else {
            say(&format!(
                "SKIPPED {name}: nvcc {release} is not installed (cargo xtask toolchain)"
            ));
            return Ok(None);
        };
        let source = repository().join(format!("tests/corpus/cuda/{}.cu", self.source));
        let text = fs::read_to_string(&source).map_err(|error| error.to_string())?;
        let path = cache().join(format!("{}.{}.ptx", self.source, digest(&[&text, &name])));
        let command = match self.compiler {
            Compiler::Nvcc(_) => self.nvcc(&cuda, &source),
            Compiler::Nvrtc(_) => match self.nvrtc(&cuda, &source) {
                Some(command) => command,
                None => return Ok(None),
            },
        };
        let made = made(&path, |to| {
            let mut command = command;
            command.arg(to);
            command
        });
        match made {
            Ok(text) => Ok(Some(Ptx { name, text, architecture: architecture(self.target) })),
            Err(reason) if reason.contains("host compiler") => {
                say(&format!("SKIPPED {name}: nvcc finds no host C++ compiler (install g++)"));
                Ok(None)
            }
            Err(reason) => Err(reason),
        }
    }

    fn nvcc(&self, cuda: &Path, source: &Path) -> Command {
        let mut command = Command::new(cuda.join("nvidia/cu13/bin/nvcc"));
        command.arg(format!("-arch=compute_{}", self.target)).args(["-ptx", "-std=c++17"]);
        command.args(self.flags).arg(source).arg("-o");
        command
    }

    /// NVRTC is a library: a few lines of Python call it.
    fn nvrtc(&self, cuda: &Path, source: &Path) -> Option<Command> {
        let Compiler::Nvrtc(release) = self.compiler else { return None };
        let Some(library) = toolchain(&format!("nvrtc-{release}")) else {
            let hint = "cargo xtask toolchain";
            say(&format!("SKIPPED {}: NVRTC {release} is not installed ({hint})", self.name()));
            return None;
        };
        let include = cuda.join("nvidia/cu13/include");
        let mut command = Command::new("python3");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        // The library loads another one of its folder by name.
        command.env("LD_LIBRARY_PATH", library.join("nvidia/cu13/lib"));
        command.arg(repository().join("tests/corpus/nvrtc.py"));
        command.arg(library.join("nvidia/cu13/lib/libnvrtc.so.13")).arg(source);
        command.arg(format!("-arch=compute_{}", self.target)).arg("-std=c++17");
        command.arg(format!("-I{}", include.display()));
        command.arg(format!("-I{}", include.join("cccl").display()));
        command.args(self.flags).arg("-o");
        Some(command)
    }
}
