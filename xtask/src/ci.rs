//! `cargo xtask ci`: everything that a change must pass, in one command with counted skips.
//!
//! A step that this machine cannot run (no network for the compilers, no rustfmt) is skipped, said
//! so with its reason, and counted; it never passes by being skipped.

use std::io::{self, BufRead, BufReader, Write as _};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::thread;

use crate::toolchain::{EXIT_REQUEST, EXIT_UNAVAILABLE, repository};

/// What a test writes, past the harness, in front of the reason why it could not run.
const SKIPPED: &str = "SKIPPED ";

/// How many checks passed, failed and were skipped.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// `cargo xtask ci`.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    if !arguments.is_empty() {
        eprintln!("usage: cargo xtask ci");
        return ExitCode::from(EXIT_REQUEST);
    }
    let mut counts = Counts::default();
    for run in [toolchains, format, lints, tests, main_job] {
        counts.add(run());
    }
    println!("\n{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Installs the compilers that some tests call.
fn toolchains() -> Counts {
    let mut counts = Counts::default();
    let Ok(this) = std::env::current_exe() else { return skip("toolchain", "xtask is not found") };
    for arguments in [&["toolchain"][..], &["toolchain", "--triton"], &["toolchain", "--hip"]] {
        let mut command = Command::new(&this);
        let unavailable = i32::from(EXIT_UNAVAILABLE);
        counts.add(match run(command.args(arguments)) {
            Ok(status) if status.code() == Some(unavailable) => {
                // The command has said why; the tests that need the compiler say so again.
                Counts { skipped: 1, ..Counts::default() }
            }
            other => verdict("toolchain", other),
        });
    }
    counts
}

fn format() -> Counts {
    if !has_component("fmt") {
        return skip("format", "rustfmt is not installed: rustup component add rustfmt");
    }
    verdict("format", run(cargo().args(["fmt", "--all", "--check"])))
}

fn lints() -> Counts {
    if !has_component("clippy") {
        return skip("lints", "clippy is not installed: rustup component add clippy");
    }
    let arguments = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    verdict("lints", run(cargo().args(arguments)))
}

/// Runs the tests of the workspace and counts them one by one.
fn tests() -> Counts {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    announce(&command);
    match count_tests(&mut command) {
        Ok((status, counts)) if !status.success() && counts.failed == 0 => {
            println!("FAILED tests: they could not be built or run");
            Counts { failed: 1, ..counts }
        }
        Ok((_, counts)) => counts,
        Err(error) => verdict("tests", Err(error)),
    }
}

fn main_job() -> Counts {
    verdict("check", run(cargo().args(["run", "--quiet", "--release", "--", "check"])))
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository());
    command
}

fn has_component(name: &str) -> bool {
    let output = cargo().args([name, "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Says which command is run, as a person would type it.
fn announce(command: &Command) {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or_default();
    let mut line = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    println!("\n+ {line}");
    // The command's own output must come after its announcement.
    let _ = io::stdout().flush();
}

fn run(command: &mut Command) -> io::Result<ExitStatus> {
    announce(command);
    command.status()
}

fn verdict(step: &str, result: io::Result<ExitStatus>) -> Counts {
    match result {
        Ok(status) if status.success() => Counts { passed: 1, ..Counts::default() },
        Ok(status) => {
            println!("FAILED {step}: {status}");
            Counts { failed: 1, ..Counts::default() }
        }
        Err(error) => {
            println!("FAILED {step}: it could not be started: {error}");
            Counts { failed: 1, ..Counts::default() }
        }
    }
}

fn skip(step: &str, reason: &str) -> Counts {
    println!("\n{SKIPPED}{step}: {reason}");
    Counts { skipped: 1, ..Counts::default() }
}

/// Runs the tests with their output passed on, and counts results and skips in it.
fn count_tests(command: &mut Command) -> io::Result<(ExitStatus, Counts)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let errors = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut counts = Counts::default();
        for line in errors.into_iter().flat_map(lines) {
            counts.add(count_line(&line));
            eprintln!("{line}");
        }
        counts
    });
    let mut counts = Counts::default();
    for line in child.stdout.take().into_iter().flat_map(lines) {
        counts.add(count_line(&line));
        if !is_noise(&line) {
            println!("{line}");
        }
    }
    counts.add(reader.join().unwrap_or_default());
    // A skipped test returns normally, so the harness has counted it as passed.
    counts.passed = counts.passed.saturating_sub(counts.skipped);
    Ok((child.wait()?, counts))
}

fn lines(stream: impl io::Read) -> impl Iterator<Item = String> {
    BufReader::new(stream).split(b'\n').map_while(Result::ok).map(|line| {
        let line = String::from_utf8_lossy(&line);
        line.trim_end_matches('\r').to_owned()
    })
}

/// Lines of the harness that say only that all is well.
fn is_noise(line: &str) -> bool {
    line.is_empty() || line.starts_with("running ") || line.ends_with(" ... ok")
}

/// What one line of the tests' output adds to the counts.
fn count_line(line: &str) -> Counts {
    if line.starts_with(SKIPPED) {
        return Counts { skipped: 1, ..Counts::default() };
    }
    let Some(rest) = line.strip_prefix("test result: ") else { return Counts::default() };
    let number = |label: &str| {
        let before = rest.split(label).next().unwrap_or("").trim_end();
        let digits = before.rsplit(' ').next().unwrap_or("");
        if rest.contains(label) { digits.parse().unwrap_or(0) } else { 0 }
    };
    Counts { passed: number(" passed"), failed: number(" failed"), skipped: number(" ignored") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_results_and_skips_are_counted() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 2 filtered out";
        assert_eq!(count_line(line), Counts { passed: 12, failed: 3, skipped: 1 });
        let line = "SKIPPED toolchain cuda-13.0.88: pip: no network";
        assert_eq!(count_line(line), Counts { skipped: 1, ..Counts::default() });
        assert_eq!(count_line("test a_skipped_test ... ok"), Counts::default());
    }

    #[test]
    fn skipped_tests_are_not_counted_as_passed() {
        let script = "echo 'test result: ok. 5 passed; 0 failed; 0 ignored'; echo 'SKIPPED x' >&2";
        let (status, counts) = count_tests(Command::new("sh").args(["-c", script])).unwrap();
        assert!(status.success());
        assert_eq!(counts, Counts { passed: 4, failed: 0, skipped: 1 });
    }

    #[test]
    fn a_command_that_is_not_there_fails_and_one_that_cannot_run_is_skipped() {
        let missing = verdict("x", Command::new("no-such-program").status());
        assert_eq!(missing, Counts { failed: 1, ..Counts::default() });
        assert_eq!(skip("x", "why"), Counts { skipped: 1, ..Counts::default() });
    }
}
