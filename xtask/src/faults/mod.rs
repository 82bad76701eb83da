//! The builds of the suite's kernels that are broken on purpose.
//!
//! `cargo xtask faults` compiles every `[fault.*]` entry of the suite's manifests from the source
//! of its kernel, with `-DASSAY_FAULT="define"`, into `target/faults/`: `softmax/max_from_zero.ptx`
//! for that fault of `softmax.cu`. `assay check --faults target/faults` runs them. Entries of one
//! source that share a define share one build, and what has been built from the same text by the
//! same compiler is kept.

mod build;
mod plan;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use crate::kernels::host_compiler;
use crate::toolchain::{self, EXIT_REQUEST, EXIT_UNAVAILABLE};
use build::{Builder, Made};
use plan::{Build, plan};

/// `cargo xtask faults [--only TEXT]`.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    let only = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => "",
        ["--only", text] => text,
        _ => {
            eprintln!("usage: cargo xtask faults [--only TEXT]");
            return ExitCode::from(EXIT_REQUEST);
        }
    };
    let Some(nvcc) = toolchain::nvcc().filter(|nvcc| nvcc.exists()) else {
        eprintln!("SKIPPED faults: nvcc is not installed\nhint: cargo xtask toolchain");
        return ExitCode::from(EXIT_UNAVAILABLE);
    };
    if let Err(reason) = host_compiler(&nvcc) {
        eprintln!("SKIPPED faults: {reason}\nhint: install g++");
        return ExitCode::from(EXIT_UNAVAILABLE);
    }
    let suite = toolchain::repository().join("kernels/cuda");
    let builds = match plan(&suite, only) {
        Ok(builds) => builds,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if builds.is_empty() && !only.is_empty() {
        eprintln!("error: no fault has `{only}` in its name or its kernel's");
        return ExitCode::from(EXIT_REQUEST);
    }
    let folder = toolchain::target().join("faults");
    if !make_all(&Builder::new(nvcc, suite, folder.clone()), &builds) {
        return ExitCode::FAILURE;
    }
    println!("\n{} builds in {}", builds.len(), folder.display());
    ExitCode::SUCCESS
}

/// Makes and checks all builds on as many threads as there are cores; true if none is a problem.
fn make_all(builder: &Builder, builds: &[Build]) -> bool {
    if let Err(error) = fs::create_dir_all(&builder.folder) {
        eprintln!("error: cannot write {}: {error}", builder.folder.display());
        return false;
    }
    let queue = Mutex::new(builds.iter());
    let fine = Mutex::new(true);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(build) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    if !report(build, &builder.make(build)) {
                        fine.lock().map(|mut fine| *fine = false).ok();
                    }
                }
            });
        }
    });
    fine.into_inner().unwrap_or(false)
}

/// Prints one line; true if the build is no problem.
fn report(build: &Build, made: &Result<Made, String>) -> bool {
    let path = shown(&build.path());
    match made {
        Ok(Made::Kept) => println!("kept     {path}"),
        Ok(Made::Built) => println!("built    {path}"),
        Err(reason) => println!("BROKEN   {path}: {}", reason.trim_end()),
    }
    made.is_ok()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
