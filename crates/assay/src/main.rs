//! The command line of Assay, the instrument that tests GPU kernels, and can fail.

mod bench;
mod certify;
mod check;
mod child;
mod cli;
mod compare;
mod console;
mod date;
mod doctor;
mod failure;
mod faults;
mod fuzz;
mod limits;
mod merge;
mod npz;
mod output;
mod parent;
mod pictures;
mod printed;
mod probe;
mod progress;
mod protocol;
mod python;
mod render;
mod repro;
mod stamps;
mod suite;
mod sweep;
mod triton;

use std::panic::catch_unwind;
use std::process;

use assay_record::ExitCode;
use clap::Parser;

use cli::{Cli, Command};
use console::{Color, Console};
use failure::Failure;

/// This version of Assay.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> process::ExitCode {
    let command = Cli::parse().command;
    let exit = catch_unwind(|| run(&command)).unwrap_or_else(|_| {
        let failure = Failure::new(ExitCode::Internal, "assay failed, by no fault of a kernel")
            .hint("please report this with the command and the lines above".to_owned());
        Console::new(Color::Auto).message(&failure);
        ExitCode::Internal
    });
    process::ExitCode::from(exit.code())
}

fn run(command: &Command) -> ExitCode {
    let console = Console::new(match command {
        Command::Bench(arguments) => arguments.color,
        Command::Certify(arguments) => arguments.color,
        Command::Check(arguments) => arguments.color,
        Command::Compare(arguments) => arguments.color,
        Command::Fuzz(arguments) => arguments.color,
        Command::Merge(arguments) => arguments.color,
        Command::Doctor(arguments) => arguments.color,
        Command::Limits(arguments) => arguments.color,
        Command::Stamps(arguments) => arguments.color,
        Command::Sweep(arguments) => arguments.color,
        Command::Child | Command::FuzzChild | Command::ProbeChild => Color::Never,
        Command::Probe(arguments) => arguments.color,
    });
    let result = match command {
        Command::Bench(arguments) => bench::bench(arguments, console),
        Command::Certify(arguments) => certify::certify(arguments, console),
        Command::Check(arguments) => check::check(arguments, console),
        Command::Compare(arguments) => compare::run(arguments, console),
        Command::Fuzz(arguments) => fuzz::run(arguments, console),
        Command::FuzzChild => fuzz::child::run(),
        Command::Merge(arguments) => merge::merge(arguments, console),
        Command::Doctor(_) => {
            console.out(&doctor::examine());
            Ok(ExitCode::Holds)
        }
        Command::Limits(arguments) => limits::limits(arguments, console),
        Command::Probe(arguments) => probe::probe(arguments, console),
        Command::ProbeChild => probe::serve(),
        Command::Stamps(arguments) => stamps::stamps(arguments, console),
        Command::Sweep(arguments) => sweep::sweep(arguments, console),
        Command::Child => child::serve(),
    };
    result.unwrap_or_else(|failure| {
        console.message(&failure);
        failure.exit
    })
}

/// What was typed, without the program's own path.
fn command_line() -> String {
    let words = std::env::args().skip(1);
    std::iter::once("assay".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
