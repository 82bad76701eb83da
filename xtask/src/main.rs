//! One entry for people and CI: `cargo xtask <command>`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod kernels;
mod toolchain;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, rest)) if command == "toolchain" => toolchain::command(rest),
        Some((command, rest)) if command == "kernels" => kernels::command(rest),
        _ => {
            eprintln!("usage: cargo xtask (toolchain | kernels) [options]");
            ExitCode::from(toolchain::EXIT_REQUEST)
        }
    }
}
