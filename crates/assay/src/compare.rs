//! `assay compare A B`: the tensors of two files held against each other.

mod bands;
mod device;
mod input;
mod outputs;
mod pairs;
mod picture;
mod table;

use std::path::PathBuf;
use std::time::Instant;

use assay_compare::{CompareError, Options, Source, compare_with_progress};
use assay_num::Format;
use assay_record::{
    COMPARISON_SCHEMA, Comparison, ComparisonReport, ErrorMap, ExitCode, NotCompared, Outcome,
    Tolerance,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::console::{Color, Console};
use crate::failure::Failure;
use crate::output;
use bands::{Computed, Shuffled};
use device::There;
use input::Input;

/// What can be typed after `assay compare`.
#[derive(Clone, Debug, Args)]
#[command(override_usage = "assay compare [OPTIONS] <REFERENCE> <CANDIDATE>
       assay compare [OPTIONS] --sum-of <X> <CANDIDATE>
       assay compare [OPTIONS] --matmul-of <A> <B> <CANDIDATE>")]
pub(crate) struct Arguments {
    /// What is right (left out where it is computed) and what is tested: .npy, .npz or .safetensors
    /// files, or arrays of them as `FILE:NAME`
    #[arg(value_names = ["REFERENCE", "CANDIDATE"], num_args = 0..=2)]
    pub(crate) files: Vec<PathBuf>,
    /// Compare only the tensor of this name (repeatable); else all of the reference's
    #[arg(long, value_name = "NAME")]
    pub(crate) tensor: Vec<String>,
    /// Absolute error allowed
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    #[arg(value_parser = error, allow_hyphen_values = true)]
    pub(crate) atol: f64,
    /// Error allowed as a part of the reference's magnitude
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    #[arg(value_parser = error, allow_hyphen_values = true)]
    pub(crate) rtol: f64,
    /// Absolute error allowed where the reference is zero; else that of `--atol`
    #[arg(long, value_name = "X", value_parser = error, allow_hyphen_values = true)]
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
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = worst)]
    pub(crate) worst: usize,
    /// Draw where the first tensor that fails differs, else the first, over its last two axes
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write everything as JSON to a file, or to stdout in place of the tables with `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Compare there, piece by piece: `cuda`, `cuda:1`, `emulator:sm_90`; else on the CPU
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    // Last, since what comes after it in the help would come under its heading.
    #[command(flatten)]
    pub(crate) bands: bands::BandArguments,
}

/// The most of the worst elements that are named.
const MOST_WORST: usize = 10_000;

/// Elements from which on progress is shown.
const SLOW: u64 = 1 << 22;

/// An error that is allowed.
fn error(text: &str) -> Result<f64, String> {
    let error = text.parse().ok().filter(|error: &f64| *error >= 0.0 && error.is_finite());
    error.ok_or_else(|| "an error that is allowed is a number from 0, such as 1e-6".to_owned())
}

fn worst(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count <= MOST_WORST);
    count.ok_or_else(|| format!("from 0 to {MOST_WORST} elements can be named"))
}

fn format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("the formats are {}", names.join(", "))
    })
}

/// What is right.
enum Reference {
    File(Input),
    Computed(Computed),
}

/// Both sides, and the outputs for shuffled inputs.
struct Sides {
    reference: Reference,
    candidate: Input,
    shuffled: Option<Shuffled>,
}

impl Sides {
    fn open(arguments: &Arguments) -> Result<Sides, Failure> {
        let bands = &arguments.bands;
        let (reference, candidate) = match (&arguments.files[..], bands.are_computed()) {
            ([reference, candidate], false) => {
                (Reference::File(Input::open(reference)?), Input::open(candidate)?)
            }
            ([candidate], true) => {
                let candidate = Input::open(candidate)?;
                let asked = arguments.reference_format.or(arguments.format);
                (Reference::Computed(Computed::load(bands, asked)?), candidate)
            }
            (files, true) => {
                let message = if files.is_empty() {
                    "a reference is computed, and there is no CANDIDATE to compare with it"
                } else {
                    "the reference is computed, so that only CANDIDATE is to be named"
                };
                return Err(Failure::request(message));
            }
            (_, false) => {
                let hint = "`assay compare REFERENCE CANDIDATE`, or `--sum-of X CANDIDATE`, or \
                            `--matmul-of A B CANDIDATE`";
                return Err(
                    Failure::request("there is nothing to compare it with").hint(hint.to_owned())
                );
            }
        };
        let shuffled = (!bands.shuffled.is_empty()).then(|| Shuffled::open(bands)).transpose()?;
        Ok(Sides { reference, candidate, shuffled })
    }
}

impl Sides {
    /// What is said of files that were cut off.
    fn damages(&self) -> Vec<String> {
        let reference = match &self.reference {
            Reference::File(input) => Some(input),
            Reference::Computed(_) => None,
        };
        let shuffled = self.shuffled.iter().flat_map(Shuffled::inputs);
        let all = reference.into_iter().chain([&self.candidate]).chain(shuffled);
        let mut notes: Vec<String> = all
            .filter_map(|input| Some(format!("{}: {}", input.shown, input.file.damage()?)))
            .collect();
        notes.dedup();
        notes
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: Console) -> Result<ExitCode, Failure> {
    let start = Instant::now();
    outputs::expect(arguments)?;
    let sides = Sides::open(arguments)?;
    let options = options(arguments);
    let mut there = arguments.device.as_deref().map(There::open).transpose()?;
    let mut report = ComparisonReport {
        schema: COMPARISON_SCHEMA,
        assay_version: crate::VERSION.to_owned(),
        command: crate::command_line(),
        date: crate::date::now(),
        reference: match &sides.reference {
            Reference::File(input) => input.shown.clone(),
            Reference::Computed(computed) => computed.shown.clone(),
        },
        candidate: sides.candidate.shown.clone(),
        device: there.as_ref().map(There::name),
        comparisons: Vec::new(),
        not_compared: Vec::new(),
        notes: sides.damages(),
        outcome: Outcome::Pass,
        seconds: 0.0,
        exit_code: 0,
    };
    let pairs = pairs::pairs(arguments, &sides, &mut report)?;
    let mut map = None;
    for (one, other) in &pairs {
        let name = Some(if one.is_empty() { other } else { one }).filter(|name| !name.is_empty());
        let is_only = pairs.len() == 1;
        match pair(arguments, &sides, (one, other, is_only), (&options, &mut there, &mut map)) {
            Ok(mut comparison) => {
                comparison.name = name.cloned();
                report.comparisons.push(comparison);
            }
            Err(reason) => report.not_compared.push(NotCompared { name: name.cloned(), reason }),
        }
    }
    report.seconds = start.elapsed().as_secs_f64();
    let exit = conclude(&mut report);
    write(&report, arguments, console)?;
    if let Some(path) = &arguments.svg {
        picture::draw(path, arguments, &sides, (&report, &pairs, map), &options)?;
    }
    Ok(exit)
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

type Sources = (Box<dyn Source>, Box<dyn Source>);

/// Both tensors of a pair, or why not.
fn sources(
    arguments: &Arguments,
    sides: &Sides,
    (one, other): (&str, &str),
) -> Result<Sources, String> {
    let candidate = sides
        .candidate
        .source(other, arguments.format)
        .map_err(|error| format!("the candidate: {error}"))?;
    let reference: Box<dyn Source> = match &sides.reference {
        Reference::File(input) => {
            let format = reference_format(arguments, input, one);
            let source = input.source(one, format);
            source.map_err(|error| format!("the reference: {error}"))?
        }
        Reference::Computed(computed) => {
            Box::new(computed.plain((candidate.format(), candidate.shape()))?)
        }
    };
    Ok((reference, candidate))
}

/// What was asked for of the reference, else what was asked for of the candidate where it fits.
fn reference_format(arguments: &Arguments, reference: &Input, name: &str) -> Option<Format> {
    arguments.reference_format.or_else(|| reference.format_of(name, arguments.format))
}

fn pair(
    arguments: &Arguments,
    sides: &Sides,
    (one, other, is_only): (&str, &str, bool),
    (options, there, map): (&Options, &mut Option<There>, &mut Option<ErrorMap>),
) -> Result<Comparison, String> {
    if let Reference::Computed(computed) = &sides.reference {
        let candidate = sides.candidate.file.tensor(other, arguments.format);
        let candidate = candidate.map_err(|error| format!("the candidate: {error}"))?;
        let title = arguments.svg.is_some().then_some(sides.candidate.shown.as_str());
        let (comparison, drawn) = computed.judge(&candidate, options, (title, there))?;
        *map = drawn;
        return Ok(comparison);
    }
    let (mut reference, mut candidate) = sources(arguments, sides, (one, other))?;
    if let Some(shuffled) = &sides.shuffled {
        let asked = arguments.reference_format.or(arguments.format);
        let of = (one, is_only, asked);
        return shuffled.judge(&mut *reference, &mut *candidate, of, (options, there));
    }
    let bar = elements_bar(candidate.shape());
    let mut progress = |done| bar.set_position(done);
    let compared = match there {
        Some(there) => there.compare((&mut *reference, &mut *candidate), options, &mut progress),
        None => compare_with_progress(&mut *reference, &mut *candidate, options, &mut progress),
    };
    bar.finish_and_clear();
    compared.map_err(|error| with_causes(&error))
}

/// A bar for so many elements; none for so few that it would only flicker.
fn elements_bar(shape: &[u64]) -> ProgressBar {
    let elements = shape.iter().fold(1, |all: u64, &size| all.saturating_mul(size));
    if elements < SLOW { ProgressBar::hidden() } else { progress_bar(elements) }
}

fn progress_bar(steps: u64) -> ProgressBar {
    let target = if Console::shows_progress() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    ProgressBar::with_draw_target(Some(steps), target)
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
    } else if any(Outcome::Unproven) || report.comparisons.is_empty() || !report.notes.is_empty() {
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

fn write(
    report: &ComparisonReport,
    arguments: &Arguments,
    console: Console,
) -> Result<(), Failure> {
    let form = ("the comparison has", report.to_json());
    output::record(form, arguments.json.as_deref(), console, || table::report(report))
}
