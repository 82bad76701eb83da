//! `assay bench`: how long kernels take, and how two of them compare.

mod checked;
mod compare;
mod flop;
mod kernels;
mod measure;
mod pictures;
mod table;

use std::path::{Path, PathBuf};
use std::time::Instant;

use assay_measure::probe;
use assay_record::{BENCH_SCHEMA, BenchRecord, Dossier, ExitCode, Verdict};
use clap::Args;

use crate::check::open;
use crate::console::{Color, Console};
use crate::failure::Failure;
use crate::{VERSION, command_line, date, output};
use kernels::Asked;
pub(crate) use kernels::{Shape, shape_of, shown};

#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Arguments {
    /// Time these kernels of the built-in suite, or of the manifests
    #[arg(value_name = "KERNEL", required_unless_present = "compare")]
    pub(crate) kernels: Vec<String>,
    /// Where to run: `cuda` or `cuda:1`
    #[arg(long, value_name = "NAME", default_value = "cuda")]
    pub(crate) device: String,
    /// Take kernels from this manifest in place of the built-in suite (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,
    /// The shape, as `rows=64,cols=4096`; dims left out take their largest served size
    #[arg(long, value_name = "DIMS", default_value = "")]
    pub(crate) dims: kernels::Shape,
    /// Compare every further kernel with the first, in turns with it
    #[arg(long)]
    pub(crate) versus: bool,
    /// Let kernels find their data in the L2 cache, which is flushed before each run without this
    #[arg(long)]
    pub(crate) warm: bool,
    /// Take the device's own activity records (CUPTI) as well
    #[arg(long)]
    pub(crate) activity: bool,
    /// Trust a report of `assay check` on this device in place of checking now
    #[arg(long, value_name = "FILE", conflicts_with = "unchecked")]
    pub(crate) report: Option<PathBuf>,
    /// Time kernels that nobody checked; the record says so
    #[arg(long)]
    pub(crate) unchecked: bool,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stop each measurement after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub(crate) time: f64,
    /// The smallest difference that counts, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(crate) threshold: f64,
    /// Bytes that one run moves, where the arguments' sizes do not tell
    #[arg(long, value_name = "N")]
    pub(crate) bytes: Option<f64>,
    /// Operations of one run, a multiply-add counted as two; counted from the formula without this
    #[arg(long, value_name = "N")]
    pub(crate) flop: Option<f64>,
    /// Say where kernels stand under the roofs of a dossier, as `assay probe` writes them
    #[arg(long, value_name = "FILE")]
    pub(crate) dossier: Option<PathBuf>,
    /// The dossier's entry that bounds arithmetic
    #[arg(long, value_name = "ENTRY", default_value = "fma_f32")]
    pub(crate) roof: String,
    /// Compare with an earlier record of the same kernels
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Compare two records; nothing is run
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with = "kernels")]
    pub(crate) compare: Option<Vec<PathBuf>>,
    /// Exit with 1 where something is SLOW
    #[arg(long)]
    pub(crate) fail_on_slow: bool,
    /// Draw the samples, the pairs that are compared and, with --dossier, the roofline as SVG into
    /// a folder; into a file that ends in .svg the one pair, or the duration of the one kernel
    #[arg(long, value_name = "FOLDER|FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write every sample as JSON to a file, or to stdout in place of the table with `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Times what was asked for; the exit code says how it ended.
pub(crate) fn bench(arguments: &Arguments, console: Console) -> Result<ExitCode, Failure> {
    refuse_nonsense(arguments)?;
    let dossier = arguments.dossier.as_deref().map(load_dossier).transpose()?;
    let mut others = compare::Others::default();
    let mut record = match &arguments.compare {
        Some(files) => compare::records(files, arguments, &mut others)?,
        None => run(arguments, dossier.as_ref(), &mut others)?,
    };
    let slow = record.versus.iter().any(|versus| versus.verdict == Verdict::Slow);
    let mut exit = ExitCode::from_code(record.exit_code).unwrap_or(ExitCode::Internal);
    if slow && arguments.fail_on_slow {
        exit = exit.worst(ExitCode::Problems);
    }
    record.exit_code = exit.code();
    write(&record, arguments.json.as_deref(), console)?;
    if let Some(path) = &arguments.svg {
        let after = others.after.as_deref().unwrap_or(&record.timings);
        let roofs = dossier.as_ref().map(|dossier| (dossier, arguments.roof.as_str()));
        pictures::draw(&record, (&others.before, after), roofs, path)?;
    }
    Ok(exit)
}

fn refuse_nonsense(arguments: &Arguments) -> Result<(), Failure> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(arguments.time) {
        return Err(Failure::request("--time takes a positive number of seconds"));
    }
    if !(positive(arguments.threshold) && arguments.threshold < 100.0) {
        return Err(Failure::request("--threshold takes a percentage between 0 and 100"));
    }
    let counts = [("--bytes", arguments.bytes), ("--flop", arguments.flop)];
    for (name, count) in counts {
        if count.is_some_and(|count| !positive(count)) {
            return Err(Failure::request(format!("{name} takes a positive number")));
        }
    }
    let alone = if arguments.versus { 2 } else { 1 };
    let file = arguments.svg.as_deref().filter(|path| pictures::is_file(path));
    if let Some(path) = file.filter(|_| arguments.kernels.len() > alone) {
        return Err(pictures::too_many(path));
    }
    if arguments.versus && arguments.kernels.len() < 2 {
        return Err(Failure::request("--versus compares at least two kernels")
            .hint("name the baseline first".to_owned()));
    }
    Ok(())
}

/// Checks and times kernels on a device.
fn run(
    arguments: &Arguments,
    dossier: Option<&Dossier>,
    others: &mut compare::Others,
) -> Result<BenchRecord, Failure> {
    let (began, date) = (Instant::now(), date::now());
    let baseline = arguments.baseline.as_deref().map(compare::load).transpose()?;
    let asked = Asked::select(arguments)?;
    let trusted = checked::trusted(&asked, arguments)?;
    let mut device = open(&arguments.device)?;
    refuse_emulator(arguments, device.as_ref())?;
    let standings = checked::standings(&asked, arguments, trusted.as_ref(), device.facts())?;
    let mut record = BenchRecord {
        schema: BENCH_SCHEMA,
        assay_version: VERSION.to_owned(),
        command: command_line(),
        date,
        seed: arguments.seed,
        device: probe::describe(device.as_ref()),
        before: None,
        after: None,
        conditions_reason: None,
        timings: Vec::new(),
        versus: Vec::new(),
        incomplete: None,
        seconds: 0.0,
        exit_code: ExitCode::Holds.code(),
    };
    measure::all(device.as_mut(), &asked, &standings, (arguments, dossier), &mut record)?;
    if let Some(baseline) = baseline {
        record.versus.extend(compare::by_name(&baseline, &record, arguments));
        others.before = baseline.timings;
    }
    record.seconds = began.elapsed().as_secs_f64();
    Ok(record)
}

/// An emulator's clock says nothing of a GPU.
fn refuse_emulator(
    arguments: &Arguments,
    device: &dyn assay_device::Device,
) -> Result<(), Failure> {
    if device.timing_facts().is_some() {
        return Ok(());
    }
    let name = &arguments.device;
    let message = format!("the device {name} has no clock whose time would mean anything");
    Err(Failure::new(ExitCode::NoDevice, message)
        .hint("time kernels on a GPU: --device cuda".to_owned()))
}

fn load_dossier(path: &Path) -> Result<Dossier, Failure> {
    let text = read(path)?;
    Dossier::from_json(&text).map_err(|error| {
        Failure::request(format!("cannot read {} as a dossier", path.display()))
            .caused_by(&error)
            .hint("`assay probe --json FILE` writes one".to_owned())
    })
}

/// A file's text.
fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::request(format!("cannot read {}", path.display())).caused_by(&error)
    })
}

fn write(record: &BenchRecord, json: Option<&Path>, console: Console) -> Result<(), Failure> {
    let form = ("the record has", record.to_json());
    output::record(form, json, console, || table::render(record))
}
