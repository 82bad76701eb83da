//! The compilers that `cargo xtask toolchain` installs, and what `cuobjdump` says of an image.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_image::{Contents, CudaImage, Entry};

fn toolchains() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("ASSAY_TOOLCHAIN").map_or_else(|| repository.join(".toolchain"), PathBuf::from)
}

/// The folder of one toolchain, if it is completely installed.
fn installed(name: &str) -> Option<PathBuf> {
    let folder = toolchains().join(name);
    folder.join("assay-stamp").exists().then_some(folder)
}

/// A file of a toolchain; `None`, said past the test harness, where it is not installed.
pub(crate) fn find(test: &str, toolchain: &str, file: &str) -> Option<PathBuf> {
    let found = installed(toolchain).map(|folder| folder.join(file)).filter(|path| path.exists());
    if found.is_none() {
        skip(test, &format!("{toolchain} is not installed (cargo xtask toolchain)"));
    }
    found
}

pub(crate) fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}

pub(crate) fn cuobjdump(test: &str) -> Option<PathBuf> {
    find(test, "cuobjdump-13.5.37", "nvidia/cu13/bin/cuobjdump")
}

/// An empty folder for one test's files.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("assay-image").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Runs a program to its end; its stdout. `None` where nvcc finds no host compiler.
pub(crate) fn run(program: &Path, arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() && words.contains("host compiler") {
        return None;
    }
    assert!(output.status.success(), "{} {arguments:?}: {words}", program.display());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// One kernel as `cuobjdump -res-usage` prints it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Usage {
    pub(crate) name: String,
    pub(crate) registers: u32,
    pub(crate) stack: u32,
    pub(crate) shared: u32,
}

/// The kernels of every image of a file, images sorted, as `cuobjdump -res-usage` prints them.
pub(crate) fn usages(cuobjdump: &Path, file: &Path) -> Vec<Vec<Usage>> {
    let folder = file.parent().expect("a file lies in a folder");
    let file = file.to_str().expect("a path in UTF-8");
    let text = run(cuobjdump, &["-res-usage", file], folder).expect("cuobjdump runs");
    let images = text.split("Resource usage:").skip(1).map(usages_of_image);
    let mut images: Vec<Vec<Usage>> = images.collect();
    images.sort();
    images
}

fn usages_of_image(text: &str) -> Vec<Usage> {
    let mut usages = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.trim().strip_prefix("Function ") else { continue };
        let figures = lines.next().unwrap_or_default();
        let figure = |key: &str| {
            let word = figures.split_ascii_whitespace().find_map(|word| word.strip_prefix(key));
            word.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        // What has no parameters in constant memory is a function that a kernel calls.
        if figures.contains("CONSTANT[0]:") {
            usages.push(Usage {
                name: name.trim_end_matches(':').to_owned(),
                registers: figure("REG:"),
                stack: figure("STACK:"),
                shared: figure("SHARED:"),
            });
        }
    }
    usages.sort();
    usages
}

/// The same of what was read here. From `sm_90` on `cuobjdump` counts the reserved KiB too: always
/// where a kernel declares shared memory, and where it declares none by whether its image has a
/// section for it, which `shown` tells.
pub(crate) fn facts(entries: &[Entry], shown: &[Vec<Usage>]) -> Vec<Vec<Usage>> {
    let images = entries.iter().filter_map(|entry| match &entry.contents {
        Contents::Cuda(image) => Some(facts_of_image(image, shown)),
        _ => None,
    });
    let mut images: Vec<Vec<Usage>> = images.collect();
    images.sort();
    images
}

fn facts_of_image(image: &CudaImage, shown: &[Vec<Usage>]) -> Vec<Usage> {
    let digits: String = image.architecture.chars().filter(char::is_ascii_digit).collect();
    let reserves = digits.parse::<u32>().expect("an architecture has a number") >= 90;
    let usages = image.kernels.iter().map(|kernel| {
        let mut usage = Usage {
            name: kernel.name.clone(),
            registers: kernel.registers,
            stack: kernel.stack_bytes,
            shared: kernel.static_shared_bytes,
        };
        let with_reserved = Usage { shared: usage.shared + 1024, ..usage.clone() };
        let shown = || shown.iter().any(|image| image.contains(&with_reserved));
        if reserves && (usage.shared > 0 || shown()) {
            usage = with_reserved;
        }
        usage
    });
    let mut usages: Vec<Usage> = usages.collect();
    usages.sort();
    usages
}
