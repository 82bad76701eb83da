//! What can be typed.

use std::path::PathBuf;
use std::str::FromStr;

use assay_record::{CaseName, Gate, Part};
use clap::{Args, Parser, Subcommand};

use crate::console::Color;
use crate::fuzz::FuzzArguments;

const EXIT_CODES: &str = "\
Exit codes, the first that applies:
  70  an internal error
   2  the request is wrong: an option, a manifest, or nothing selected
   3  there is no such device
   4  a measurement was unstable
   1  problems were found: a gate failed, a planted control did not, a known finding is stale
   0  everything asked for holds";

/// Tests GPU kernels against their contract: gates that can fail, and controls that must.
#[derive(Debug, Parser)]
#[command(name = "assay", version, after_help = EXIT_CODES, disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Time kernels that passed their checks, and say how two of them compare
    #[command(after_help = EXIT_CODES)]
    Bench(Box<crate::bench::Arguments>),
    /// Hold a device's dossier against invariants that every working device satisfies
    #[command(after_help = EXIT_CODES)]
    Certify(Box<crate::certify::CertifyArguments>),
    /// Run kernels and planted controls through the gates
    #[command(after_help = EXIT_CODES)]
    Check(Box<CheckArguments>),
    /// Hold the tensors of two files against each other: how far apart, where, in which way
    #[command(after_help = EXIT_CODES)]
    Compare(Box<crate::compare::Arguments>),
    /// Run kernels over ugly shapes: odd, huge, misaligned; each case by a recipe that repeats it
    #[command(after_help = EXIT_CODES)]
    Fuzz(Box<FuzzArguments>),
    /// Run one candidate's cases, as a `fuzz` asks on stdin
    #[command(hide = true)]
    FuzzChild,
    /// Put the reports of all parts of a run (`check --shard`) together
    #[command(after_help = EXIT_CODES)]
    Merge(MergeArguments),
    /// Say which chips the kernels of compiled images fit, how full, and why not
    #[command(after_help = EXIT_CODES)]
    Limits(Box<LimitsArguments>),
    /// Measure what a GPU can do, each quantity by a kernel of its own, as a dossier
    #[command(after_help = EXIT_CODES)]
    Probe(crate::probe::ProbeArguments),
    /// Run probes, as a `probe` asks on stdin
    #[command(hide = true)]
    ProbeChild,
    /// Show phase stamps on a demonstration: when each warp was where, and what a stamp costs
    #[command(after_help = EXIT_CODES)]
    Stamps(crate::stamps::StampsArguments),
    /// Find the fastest launch configuration of a kernel that is right
    #[command(after_help = EXIT_CODES)]
    Sweep(crate::sweep::SweepArguments),
    /// Say what this machine can run, and what to install for the rest
    Doctor(DoctorArguments),
    /// Judge one kernel at one gate, as a `check` asks on stdin
    #[command(hide = true)]
    Child,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArguments {
    /// Where to run: `emulator`, `emulator:sm_90`, `cuda` or `cuda:1`
    #[arg(long, value_name = "NAME", default_value = "emulator")]
    pub(crate) device: String,
    /// Run only cases whose name contains this text; their gates' controls run too
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Print the names of the cases instead of running them
    #[arg(long)]
    pub(crate) list: bool,
    /// Check the kernels of this manifest in place of the built-in suite (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,
    /// Run only this gate, by name or number (repeatable)
    #[arg(long, value_name = "GATE")]
    pub(crate) gate: Vec<Gate>,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run one case again, by the name that a report gives it; where it fails, shrink its inputs
    #[arg(long, value_name = "CASE", conflicts_with_all = ["only", "gate", "seed"])]
    pub(crate) repro: Option<CaseName>,
    /// Run the case of a file of inputs, as `--repro` writes them
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["only", "gate", "seed", "repro", "list"])]
    pub(crate) inputs: Option<PathBuf>,
    /// Where `--repro` writes the smallest inputs that it finds
    #[arg(long, value_name = "FOLDER", default_value = "assay-repro")]
    pub(crate) save: PathBuf,
    /// Write every measurement as JSON to a file, or to stdout in place of the tables with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(crate) json: Option<PathBuf>,
    /// Print what each gate could show besides its verdict, and how it made its inputs
    #[arg(long)]
    pub(crate) notes: bool,
    /// Run the faults too: kernels broken on purpose, whose builds (`cargo xtask faults`) lie there
    #[arg(long, value_name = "DIR")]
    pub(crate) faults: Option<PathBuf>,
    /// Write the matrix of faults and gates as Markdown
    #[arg(long, value_name = "FILE", requires = "faults", conflicts_with_all = ["list", "repro"])]
    pub(crate) matrix: Option<PathBuf>,
    /// Run one of several equal parts, such as `1/3`; `merge` puts their reports together
    #[arg(long, value_name = "K/N", conflicts_with_all = ["list", "repro", "matrix"])]
    pub(crate) shard: Option<Part>,
    /// Judge every kernel at every gate in a process of its own, as is always done on a GPU
    #[arg(long)]
    pub(crate) isolate: bool,
    /// Stop each launch on the emulator after this many instructions of warps; else each kernel's
    /// own `budget`, or what its sizes suggest
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<u64>,
    /// Stop such a process when one case takes longer than this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) timeout: u64,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// The report of each part, as `check --shard K/N --json FILE` wrote it
    #[arg(required = true, value_name = "FILE")]
    pub(crate) reports: Vec<PathBuf>,
    /// Write the whole report as JSON to a file, or to stdout in place of the tables with `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the matrix of faults and gates as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) matrix: Option<PathBuf>,
    /// Print what each gate could show besides its verdict, and how it made its inputs
    #[arg(long)]
    pub(crate) notes: bool,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LimitsArguments {
    /// A cubin, fatbin, AMDGPU code object, offload bundle, or an executable or library that holds
    /// some; without one, the built-in suite's launches are checked
    #[arg(value_name = "IMAGE")]
    pub(crate) images: Vec<PathBuf>,
    /// Threads of a block, as `256` or `32x8`; else the kernel's own bound, else 256
    #[arg(long, value_name = "N")]
    pub(crate) block: Option<Block>,
    /// Dynamic shared memory of a block, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) shared: u64,
    /// Check only kernels whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// On a Mac with Xcode: record what the `.metal` files of a folder compile to for each chip
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["images", "block", "shared", "only", "chip", "chips", "json"])]
    pub(crate) offline: Option<PathBuf>,
    /// Check against this chip, as `sm_90` or `gfx1100` (repeatable); else all that have code
    #[arg(long, value_name = "NAME")]
    pub(crate) chip: Vec<String>,
    /// Add the chips of a TOML file, as docs/limits.md describes them (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) chips: Vec<PathBuf>,
    /// Write everything as JSON to a file, or to stdout in place of the table with `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Threads of a block along x, y and z.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block(pub(crate) [u64; 3]);

impl FromStr for Block {
    type Err = String;

    fn from_str(text: &str) -> Result<Block, String> {
        let axes: Result<Vec<u64>, _> = text.split('x').map(str::parse).collect();
        match axes.as_deref() {
            Ok([x]) => Ok(Block([*x, 1, 1])),
            Ok([x, y]) => Ok(Block([*x, *y, 1])),
            Ok([x, y, z]) => Ok(Block([*x, *y, *z])),
            _ => Err("a block is one to three numbers, as 256 or 32x8".to_owned()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[cfg(test)]
mod tests {
    use super::Cli;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
