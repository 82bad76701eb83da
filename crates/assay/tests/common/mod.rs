//! Runs the real program for the tests beside this folder.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs the program in the folder of fixtures, with nothing in its environment that changes it.
pub(crate) fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"))
        .env_clear()
        .env("PATH", "")
        .env("ASSAY_TOOLCHAIN", "no-such-folder")
        .output()
        .expect("the program starts")
}

/// The exit code, stdout and stderr as one text, without what differs from run to run.
pub(crate) fn recorded(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().map_or("none".to_owned(), |code| code.to_string());
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    normal(&format!(
        "assay {}\nexit code: {code}\n----- stdout -----\n{stdout}----- stderr -----\n{stderr}",
        arguments.join(" ")
    ))
}

/// The text without times and versions.
fn normal(text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let lines = text.lines().map(|line| match line.rsplit_once("  ") {
        // The last column of the table of kernels.
        Some((rest, time)) if is_seconds(time) => format!("{}  TIME", rest.trim_end()),
        _ => line.replace(version, "VERSION"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_seconds(word: &str) -> bool {
    word.trim().strip_suffix(" s").is_some_and(|number| number.parse::<f64>().is_ok())
}

/// Whether this machine has an NVIDIA driver, so that what a machine without one does cannot be
/// seen here.
pub(crate) fn has_driver() -> bool {
    let libraries = ["/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1"];
    Path::new("/proc/driver/nvidia").exists()
        || libraries.iter().any(|path| Path::new(path).exists())
}

pub(crate) fn skipped(test: &str, reason: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}
