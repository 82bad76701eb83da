//! One entry for people and CI: `cargo xtask <command>`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod ci;
mod faults;
mod hip;
mod kernels;
mod records;
mod sources;
mod tidy;
mod toolchain;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci                     install what the tests need, then run every check there is
  tidy                   check the rules of the code and the invariants of ARCHITECTURE.md
  toolchain [--triton | --records | --hip | --all]
                         install the pinned compilers into .toolchain/, clang from the packages
  kernels [--check]      regenerate the suite's PTX, or report where it differs
  records [--check] [--release R]
                         record what each release of a compiler makes of the suite for every
                         chip, or derive the records of one release again and compare
  faults [--only TEXT]   build the suite's kernels that are broken on purpose";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(toolchain::EXIT_REQUEST);
    };
    match command.as_str() {
        "ci" => ci::command(rest),
        "tidy" => tidy::command(rest),
        "toolchain" => toolchain::command(rest),
        "kernels" => kernels::command(rest),
        "records" => records::command(rest),
        "faults" => faults::command(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("error: there is no command `{command}`\n\n{USAGE}");
            ExitCode::from(toolchain::EXIT_REQUEST)
        }
    }
}
