//! `assay doctor`: what this machine can run, and what to install for the rest.

mod measuring;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_device::{DeviceFacts, Discovery, discover};

use crate::triton::{HINT, Triton};

/// The whole answer, as text.
pub(crate) fn examine() -> String {
    let mut text = format!("assay {} on {}\n\ndevices\n", crate::VERSION, processor());
    let devices = discover();
    for found in &devices {
        describe_device(&mut text, found);
    }
    text.push_str("\nmeasuring, on a GPU\n");
    measuring::describe(&mut text, &devices);
    text.push_str("\ncompilers, for kernels that are not compiled yet\n");
    for compiler in [nvcc(), triton()] {
        text.push_str(&compiler);
    }
    text
}

fn processor() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let plural = if cores == 1 { "" } else { "s" };
    format!("{cores} core{plural} of {}, {}", std::env::consts::ARCH, vector_units())
}

#[cfg(target_arch = "x86_64")]
fn vector_units() -> &'static str {
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        "with AVX2 and FMA"
    } else {
        "without AVX2 and FMA: the emulator is slower"
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_units() -> &'static str {
    "without AVX2 and FMA: the emulator is slower"
}

fn line(text: &mut String, name: &str, words: &str) {
    let _ = writeln!(text, "  {name:<12} {}", words.replace('\n', "\n               "));
}

fn describe_device(text: &mut String, found: &Discovery) {
    match &found.status {
        Ok(facts) => line(text, &found.name, &describe_facts(facts)),
        Err(error) => {
            line(text, &found.name, &format!("not usable: {error}"));
            if let Some(hint) = error.hint() {
                line(text, "", &format!("hint: {hint}"));
            }
        }
    }
}

fn describe_facts(facts: &DeviceFacts) -> String {
    let driver = facts.driver.as_ref().map(|driver| format!(", {driver}")).unwrap_or_default();
    let name = if facts.name == facts.backend { "" } else { &facts.name };
    let space = if name.is_empty() { "" } else { ", " };
    format!(
        "ready: {name}{space}{}, {} multiprocessors, {} GiB of memory{driver}",
        facts.architecture,
        facts.multiprocessors,
        facts.memory_bytes >> 30,
    )
}

/// The folders of compilers that `cargo xtask toolchain` fills.
fn toolchains() -> Vec<PathBuf> {
    let root =
        std::env::var_os("ASSAY_TOOLCHAIN").map_or_else(|| ".toolchain".into(), PathBuf::from);
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

fn nvcc() -> String {
    let mut text = String::new();
    let wheels = toolchains().into_iter().map(|folder| folder.join("nvidia/cu13/bin/nvcc"));
    match wheels
        .filter(|path| path.is_file())
        .chain(["nvcc".into()])
        .find_map(|path| nvcc_release(&path))
    {
        Some(words) => line(&mut text, "nvcc", &words),
        None => line(
            &mut text,
            "nvcc",
            "not found\nhint: install the CUDA toolkit, or run `cargo xtask toolchain` in Assay's \
             repository",
        ),
    }
    text
}

/// The release that an nvcc names, and where it is.
fn nvcc_release(path: &Path) -> Option<String> {
    let output = Command::new(path).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let release = said.split("release ").nth(1)?.split(',').next()?.to_owned();
    Some(format!("{release}: {}", shown(path)))
}

fn triton() -> String {
    let mut text = String::new();
    match Triton::find() {
        Ok(Triton { folder, release }) => {
            let place = folder.as_deref().map_or("of python3".to_owned(), shown);
            line(&mut text, "triton", &format!("{release}: {place}"));
        }
        Err(_) => line(&mut text, "triton", &format!("not found\nhint: {HINT}")),
    }
    text
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
