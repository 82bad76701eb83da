//! The PTX of the built-in suite and of the examples, generated from the CUDA sources and committed
//! beside them.
//!
//! `cargo xtask kernels` regenerates every file; `--check` regenerates into a temporary folder and
//! reports the first line that differs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;

use crate::toolchain::{self, EXIT_REQUEST, EXIT_UNAVAILABLE};

/// The suite is built for the oldest architecture served; the driver compiles it for newer ones.
pub(crate) const OPTIONS: [&str; 4] = ["-arch=compute_80", "-ptx", "-O3", "-std=c++17"];

/// The folders whose CUDA sources have their PTX beside them.
const FOLDERS: [&str; 4] = ["kernels/cuda", "kernels/measure", "kernels/compare", "examples"];

/// The compiler's options for one source: a name such as `wgmma.sm_90a.cu` asks for that
/// architecture, whose own instructions no older one has.
fn options(source: &Path) -> Vec<String> {
    let mut options: Vec<String> = OPTIONS.iter().map(ToString::to_string).collect();
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    if let Some((_, architecture)) = stem.rsplit_once(".sm_") {
        options[0] = format!("-arch=compute_{architecture}");
    }
    options
}

/// What came of one source.
enum Outcome {
    /// The committed PTX is what the compiler writes.
    Same,
    /// The PTX was written anew.
    Written,
    /// The committed PTX differs, or could not be read; the text says where.
    Differs(String),
    /// The compiler refused the source.
    Rejected(String),
}

/// `cargo xtask kernels [--check]`.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => {
            eprintln!("usage: cargo xtask kernels [--check]");
            return ExitCode::from(EXIT_REQUEST);
        }
    };
    let Some(nvcc) = toolchain::nvcc().filter(|nvcc| nvcc.exists()) else {
        eprintln!("SKIPPED kernels: nvcc is not installed\nhint: cargo xtask toolchain");
        return ExitCode::from(EXIT_UNAVAILABLE);
    };
    if let Err(reason) = host_compiler(&nvcc) {
        eprintln!("SKIPPED kernels: {reason}\nhint: install g++");
        return ExitCode::from(EXIT_UNAVAILABLE);
    }
    match generate_all(&nvcc, check) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Generates every file on as many threads as there are cores; true if none is a problem.
fn generate_all(nvcc: &Path, check: bool) -> io::Result<bool> {
    let roots = FOLDERS.map(|folder| toolchain::repository().join(folder));
    let mut all = Vec::new();
    for root in &roots {
        all.extend(sources(root)?.into_iter().map(|source| (root, source)));
    }
    let scratch = std::env::temp_dir().join(format!("assay-kernels-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let queue = Mutex::new(all.into_iter().enumerate());
    let fine = Mutex::new(true);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((index, (root, source))) =
                    queue.lock().ok().and_then(|mut q| q.next())
                {
                    let fresh = scratch.join(format!("{index}.ptx"));
                    let outcome = generate(nvcc, root, &source, &fresh, check);
                    if !report(&source, &outcome) {
                        fine.lock().map(|mut fine| *fine = false).ok();
                    }
                }
            });
        }
    });
    fs::remove_dir_all(&scratch)?;
    Ok(fine.into_inner().unwrap_or(false))
}

/// Every CUDA source below `root`, as paths relative to it, in order.
pub(crate) fn sources(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "cu") {
                found.push(path.strip_prefix(root).map_or(path.clone(), Path::to_path_buf));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Compiles one source, then compares the result with the committed file or replaces it.
///
/// The compiler is called with a relative path, since names of internal symbols may depend on it.
fn generate(nvcc: &Path, root: &Path, source: &Path, fresh: &Path, check: bool) -> Outcome {
    let compiled = Command::new(nvcc)
        .current_dir(root)
        .args(options(source))
        .arg("-o")
        .arg(fresh)
        .arg(source)
        .output();
    let output = match compiled {
        Ok(output) => output,
        Err(error) => return Outcome::Rejected(error.to_string()),
    };
    if !output.status.success() {
        return Outcome::Rejected(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let committed = root.join(source).with_extension("ptx");
    let compared = fs::read_to_string(fresh).map(|generated| {
        let difference = match fs::read_to_string(&committed) {
            Ok(text) => first_difference(&text, &generated),
            Err(error) => Some(error.to_string()),
        };
        match difference {
            None => Ok(Outcome::Same),
            Some(difference) if check => Ok(Outcome::Differs(difference)),
            Some(_) => fs::write(&committed, generated).map(|()| Outcome::Written),
        }
    });
    compared
        .and_then(|outcome| outcome)
        .unwrap_or_else(|error| Outcome::Rejected(error.to_string()))
}

/// Prints one line; true if the outcome is no problem.
fn report(source: &Path, outcome: &Outcome) -> bool {
    let ptx = source.with_extension("ptx");
    match outcome {
        Outcome::Same => println!("same     {}", ptx.display()),
        Outcome::Written => println!("written  {}", ptx.display()),
        Outcome::Differs(place) => {
            println!("DIFFERS  {}: {place}\nhint: cargo xtask kernels", ptx.display());
        }
        Outcome::Rejected(message) => println!("REJECTED {}: {message}", source.display()),
    }
    matches!(outcome, Outcome::Same | Outcome::Written)
}

/// Where two PTX files differ, apart from the compiler's banner, or nothing.
fn first_difference(committed: &str, generated: &str) -> Option<String> {
    let (committed, generated) = (without_banner(committed), without_banner(generated));
    let mut left = committed.lines();
    let mut right = generated.lines();
    for line in 1.. {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (have, want) if have == want => {}
            (have, want) => {
                let show = |text: Option<&str>| text.unwrap_or("(the end)").trim().to_owned();
                let (have, want) = (show(have), show(want));
                return Some(format!("line {line} after the banner has `{have}`, not `{want}`"));
            }
        }
    }
    None
}

/// The text from its first line that is not a comment: the banner names the compiler's build.
pub(crate) fn without_banner(ptx: &str) -> &str {
    let banner: usize =
        ptx.split_inclusive('\n').take_while(|line| line.starts_with("//")).map(str::len).sum();
    &ptx[banner..]
}

/// nvcc preprocesses with the host's C++ compiler, even for PTX.
pub(crate) fn host_compiler(nvcc: &Path) -> Result<(), String> {
    let nothing = if cfg!(windows) { "NUL" } else { "/dev/null" };
    let output = Command::new(nvcc)
        .args(["-E", "-x", "cu", nothing, "-o", nothing])
        .output()
        .map_err(|error| format!("cannot run {}: {error}", nvcc.display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "//\n// Build ID: 1\n//\n\n.version 9.0\n\tadd.f32 %f1, %f2, %f3;\n";

    #[test]
    fn another_compiler_build_is_no_difference() {
        assert_eq!(first_difference(PTX, &PTX.replace("ID: 1", "ID: 2")), None);
    }

    #[test]
    fn a_changed_instruction_is_a_difference_with_its_line() {
        let changed = PTX.replace("add.f32", "mul.f32");
        let difference = first_difference(PTX, &changed).unwrap();
        assert!(difference.starts_with("line 3 "), "{difference}");
        assert!(difference.contains("add.f32") && difference.contains("mul.f32"));
    }

    #[test]
    fn a_comment_below_the_banner_and_a_missing_end_are_differences() {
        assert!(first_difference(PTX, &PTX.replace("\tadd", "// x\n\tadd")).is_some());
        assert!(first_difference(PTX, PTX.trim_end_matches(";\n")).is_some());
        assert!(first_difference(PTX, &format!("{PTX}\tret;\n")).is_some());
    }

    #[test]
    fn a_source_may_name_its_architecture() {
        assert_eq!(options(Path::new("a/b.cu"))[0], "-arch=compute_80");
        assert_eq!(options(Path::new("a/wgmma.sm_90a.cu"))[0], "-arch=compute_90a");
    }

    #[test]
    fn every_source_has_its_committed_ptx_which_can_be_made_again() {
        for folder in FOLDERS {
            let root = toolchain::repository().join(folder);
            let sources = sources(&root).unwrap();
            assert!(!sources.is_empty(), "{folder}");
            for source in sources {
                let ptx = fs::read_to_string(root.join(&source).with_extension("ptx"));
                let ptx = ptx.unwrap_or_else(|error| panic!("{}: {error}", source.display()));
                // Such a name holds the compiler's process number: no second compile gives it.
                let unnamed = ptx.contains("_GLOBAL__N_");
                assert!(!unnamed, "{}: a variable in an unnamed namespace", source.display());
            }
        }
    }
}
