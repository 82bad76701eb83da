//! `assay compare A B`: the tensors of two files held against each other.

mod device;
mod table;

use std::path::{Path, PathBuf};
use std::time::Instant;

use assay_compare::{ArrayFile, CompareError, Options, compare_with_progress, error_map};
use assay_num::Format;
use assay_record::{
    COMPARISON_SCHEMA, Comparison, ComparisonReport, ExitCode, NotCompared, Outcome, Tolerance,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::console::{Color, Console};
use crate::failure::Failure;
use crate::output;
use device::There;

/// What can be typed after `assay compare`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// What is right: a .npy, .npz or .safetensors file
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: PathBuf,
    /// What is tested: a file of any of these kinds
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidate: PathBuf,
    /// Compare only the tensor of this name (repeatable); else all of the reference's
    #[arg(long, value_name = "NAME")]
    pub(crate) tensor: Vec<String>,
    /// Absolute error allowed
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub(crate) atol: f64,
    /// Error allowed as a part of the reference's magnitude
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub(crate) rtol: f64,
    /// Absolute error allowed where the reference is zero; else that of `--atol`
    #[arg(long, value_name = "X")]
    pub(crate) zero_atol: Option<f64>,
    /// Distance allowed, in units in the last place
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_ulp: u64,
    /// Let NaN stand where the reference has NaN
    #[arg(long)]
    pub(crate) equal_nan: bool,
    /// Let zeros of either sign be the same
    #[arg(long)]
    pub(crate) equal_zeros: bool,
    /// Round a reference of another format to the candidate's
    #[arg(long)]
    pub(crate) round: bool,
    /// Take the candidate's bits for this format, as `bf16` kept in 16-bit integers
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) format: Option<Format>,
    /// The same of the reference; else, where its bits are as many, as `--format`
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) reference_format: Option<Format>,
    /// How many of the worst elements to name
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) worst: usize,
    /// Draw where the first tensor that fails differs, else the first, over its last two axes
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write everything as JSON to a file, or to stdout in place of the tables with `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Compare there, piece by piece: cuda, cuda:1, emulator:sm_90; else on the CPU
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

fn format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("the formats are {}", names.join(", "))
    })
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: Console) -> Result<ExitCode, Failure> {
    let start = Instant::now();
    let reference = open(&arguments.reference)?;
    let candidate = open(&arguments.candidate)?;
    let options = options(arguments);
    let mut there = arguments.device.as_deref().map(There::open).transpose()?;
    let mut report = ComparisonReport {
        schema: COMPARISON_SCHEMA,
        assay_version: crate::VERSION.to_owned(),
        command: crate::command_line(),
        date: crate::date::now(),
        reference: arguments.reference.display().to_string(),
        candidate: arguments.candidate.display().to_string(),
        device: there.as_ref().map(There::name),
        comparisons: Vec::new(),
        not_compared: Vec::new(),
        outcome: Outcome::Pass,
        seconds: 0.0,
        exit_code: 0,
    };
    let pairs = pairs(arguments, (&reference, &candidate), &mut report)?;
    for (one, other) in &pairs {
        match pair(arguments, (&reference, &candidate), (one, other), (&options, &mut there)) {
            Ok(mut comparison) => {
                comparison.name = Some(one.clone()).filter(|name| !name.is_empty());
                report.comparisons.push(comparison);
            }
            Err(reason) => {
                let name = Some(one.clone()).filter(|name| !name.is_empty());
                report.not_compared.push(NotCompared { name, reason });
            }
        }
    }
    report.seconds = start.elapsed().as_secs_f64();
    let exit = conclude(&mut report);
    if let Some(path) = &arguments.svg {
        draw(path, arguments, (&reference, &candidate), (&report, &pairs), &options)?;
    }
    write(&report, arguments, console)?;
    Ok(exit)
}

fn open(path: &Path) -> Result<ArrayFile, Failure> {
    ArrayFile::open(path).map_err(|error| {
        let hint = "`assay compare` reads .npy, .npz and .safetensors files";
        Failure::request(format!("cannot read arrays from {}", path.display()))
            .caused_by(&error)
            .hint(hint.to_owned())
    })
}

fn options(arguments: &Arguments) -> Options {
    Options {
        tolerance: Tolerance {
            atol: arguments.atol,
            rtol: arguments.rtol,
            zero_atol: arguments.zero_atol.unwrap_or(arguments.atol),
            max_ulp: arguments.max_ulp,
        },
        equal_nan: arguments.equal_nan,
        equal_zeros: arguments.equal_zeros,
        round_reference: arguments.round,
        worst: arguments.worst,
        delta: None,
    }
}

/// The names to compare, of the reference and of the candidate. Two files of one array each need
/// not agree on its name.
fn pairs(
    arguments: &Arguments,
    (reference, candidate): (&ArrayFile, &ArrayFile),
    report: &mut ComparisonReport,
) -> Result<Vec<(String, String)>, Failure> {
    let (ours, theirs) = (reference.entries(), candidate.entries());
    if let ([one], [other]) = (ours, theirs)
        && arguments.tensor.is_empty()
    {
        return Ok(vec![(one.name.clone(), other.name.clone())]);
    }
    let names: Vec<String> = if arguments.tensor.is_empty() {
        ours.iter().map(|entry| entry.name.clone()).collect()
    } else {
        arguments.tensor.clone()
    };
    if let Some(name) = names.iter().find(|name| !ours.iter().any(|entry| entry.name == **name)) {
        let all: Vec<&str> = ours.iter().map(|entry| entry.name.as_str()).collect();
        return Err(Failure::request(format!("the reference has no tensor `{name}`"))
            .hint(format!("it has {}", all.join(", "))));
    }
    if arguments.tensor.is_empty() {
        for entry in theirs.iter().filter(|entry| !names.contains(&entry.name)) {
            report.not_compared.push(NotCompared {
                name: Some(entry.name.clone()),
                reason: "only the candidate has it".to_owned(),
            });
        }
    }
    Ok(names.into_iter().map(|name| (name.clone(), name)).collect())
}

type Sources = (Box<dyn assay_compare::Source>, Box<dyn assay_compare::Source>);

/// Both tensors of a pair, or why not.
fn sources(
    arguments: &Arguments,
    (reference, candidate): (&ArrayFile, &ArrayFile),
    (one, other): (&str, &str),
) -> Result<Sources, String> {
    let other = candidate
        .source(other, arguments.format)
        .map_err(|error| format!("the candidate: {error}"))?;
    let of_reference = arguments.reference_format.or_else(|| {
        let entry = reference.entries().iter().find(|entry| entry.name == one)?;
        let held = entry.layout().ok()?.0.bits();
        arguments.format.filter(|format| format.bits() == held)
    });
    let one =
        reference.source(one, of_reference).map_err(|error| format!("the reference: {error}"))?;
    Ok((one, other))
}

fn pair(
    arguments: &Arguments,
    files: (&ArrayFile, &ArrayFile),
    (one, other): (&str, &str),
    (options, there): (&Options, &mut Option<There>),
) -> Result<Comparison, String> {
    let (mut one, mut other) = sources(arguments, files, (one, other))?;
    let elements: u64 = other.shape().iter().product();
    let target = if Console::shows_progress() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(elements), target);
    let mut progress = |done| bar.set_position(done);
    let compared = match there {
        Some(there) => there.compare((&mut *one, &mut *other), options, &mut progress),
        None => compare_with_progress(&mut *one, &mut *other, options, &mut progress),
    };
    bar.finish_and_clear();
    compared.map_err(|error| with_causes(&error))
}

/// An error and its causes in one line, and what to do about it.
fn with_causes(error: &CompareError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    if matches!(error, CompareError::Formats { .. }) {
        text.push_str("; `--round` rounds the reference first");
    }
    text
}

fn conclude(report: &mut ComparisonReport) -> ExitCode {
    let any = |outcome| report.comparisons.iter().any(|one| one.outcome == outcome);
    report.outcome = if any(Outcome::Fail) || !report.not_compared.is_empty() {
        Outcome::Fail
    } else if any(Outcome::Unproven) || report.comparisons.is_empty() {
        Outcome::Unproven
    } else {
        Outcome::Pass
    };
    let exit = if report.comparisons.is_empty() {
        ExitCode::Request
    } else if report.outcome == Outcome::Pass {
        ExitCode::Holds
    } else {
        ExitCode::Problems
    };
    report.exit_code = exit.code();
    exit
}

/// Draws the first tensor that does not pass, else the first.
fn draw(
    path: &Path,
    arguments: &Arguments,
    files: (&ArrayFile, &ArrayFile),
    (report, pairs): (&ComparisonReport, &[(String, String)]),
    options: &Options,
) -> Result<(), Failure> {
    let all = || report.comparisons.iter();
    let Some(shown) = all().find(|one| !one.passes()).or_else(|| all().next()) else {
        return Ok(());
    };
    let name = shown.name.clone().unwrap_or_default();
    let Some((one, other)) = pairs.iter().find(|(one, _)| *one == name) else { return Ok(()) };
    let title = if name.is_empty() { "the largest difference of each tile" } else { &name };
    let (mut one, mut other) = sources(arguments, files, (one, other)).map_err(Failure::request)?;
    let map = error_map(title, &mut *one, &mut *other, options)
        .map_err(|error| Failure::request("cannot draw the differences").caused_by(&error))?;
    output::save(path, &assay_picture::heat_map(&map))
}

fn write(
    report: &ComparisonReport,
    arguments: &Arguments,
    console: Console,
) -> Result<(), Failure> {
    let form = ("the comparison has", report.to_json());
    output::record(form, arguments.json.as_deref(), console, || table::report(report))
}
