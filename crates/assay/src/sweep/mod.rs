//! `assay sweep`: the fastest launch configuration of a kernel that is right.

mod file;
mod render;
mod subject;

use std::path::{Path, PathBuf};
use std::time::Instant;

use assay_device::Device;
use assay_measure::Stopwatch;
use assay_measure::sweep::{Cache, SweepPlan, key, sweep as search, to_t4};
use assay_record::{Configuration, ExitCode, SWEEP_SCHEMA, SweepRecord, SweepVerdict};
use clap::Args;

use crate::console::{Color, Console};
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use file::SweepFile;
use subject::{Swept, source};

/// What can be typed after `assay sweep`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SweepArguments {
    /// The axes, constraints and kernel, as docs/measuring.md describes them
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where to run: `cuda` or `cuda:1`; on `emulator` instructions of warps are counted
    #[arg(long, value_name = "NAME", default_value = "cuda")]
    pub(crate) device: String,
    /// Stop after so many seconds, whatever is still to be tried
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    pub(crate) budget: f64,
    /// Drop a configuration only when its interval says that another is faster, not the slower
    /// half after each round
    #[arg(long)]
    pub(crate) race: bool,
    /// Time with the data in the L2 cache
    #[arg(long)]
    pub(crate) warm: bool,
    /// Keep what is found in this file, and use what it knows of the same source, device and driver
    #[arg(long, value_name = "FILE")]
    pub(crate) cache: Option<PathBuf>,
    /// Print the configurations and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// The seed of the inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write all rows in the open format T4 of auto-tuners, as Kernel Tuner does
    #[arg(long, value_name = "FILE")]
    pub(crate) t4: Option<PathBuf>,
    /// Write all rows as JSON to a file, or to stdout in place of the table with `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Sweeps; the record is written whatever ended the search.
pub(crate) fn sweep(arguments: &SweepArguments, console: Console) -> Result<ExitCode, Failure> {
    if !(arguments.budget.is_finite() && arguments.budget > 0.0) {
        return Err(Failure::request(format!("{} s is no budget", arguments.budget)));
    }
    let file = SweepFile::read(&arguments.file)?;
    let (configurations, excluded) = file
        .space
        .configurations()
        .map_err(|error| Failure::request("there is nothing to sweep").caused_by(&error))?;
    if arguments.list {
        console.out(&render::configurations(&configurations, excluded));
        return Ok(ExitCode::Holds);
    }
    for path in [&arguments.json, &arguments.t4] {
        output::expect_to_write(path.as_deref())?;
    }
    let mut device = open(&arguments.device)?;
    let record = searched(arguments, &file, (configurations, excluded), &mut *device)?;
    write(&record, arguments.json.as_deref(), console)?;
    if let Some(path) = &arguments.t4 {
        let text = serde_json::to_string_pretty(&to_t4(&record)).unwrap_or_default() + "\n";
        output::save(path, &text)?;
    }
    Ok(match record.verdict {
        SweepVerdict::Winner { .. } => ExitCode::Holds,
        SweepVerdict::Ambiguous { .. } => ExitCode::Unstable,
        SweepVerdict::Nothing { .. } => ExitCode::Problems,
    })
}

fn open(name: &str) -> Result<Box<dyn Device>, Failure> {
    assay_device::open(name).map_err(|error| {
        let hint = "a sweep needs a GPU; --list shows what it would try, and --device emulator \
                    goes through all of it with instructions counted in place of time";
        let hint = error.hint().map_or(hint.to_owned(), |own| format!("{own}; {hint}"));
        Failure::new(ExitCode::NoDevice, format!("cannot sweep on {name}"))
            .caused_by(&error)
            .hint(hint)
    })
}

fn searched(
    arguments: &SweepArguments,
    file: &SweepFile,
    (configurations, excluded): (Vec<Configuration>, u64),
    device: &mut dyn Device,
) -> Result<SweepRecord, Failure> {
    let facts = device.facts().clone();
    let mut notes = Vec::new();
    let stopwatch = if device.timing_facts().is_some_and(|facts| facts.asynchronous) {
        Some(Stopwatch::new(device).map_err(|error| {
            Failure::new(ExitCode::Unstable, "the device cannot be timed").caused_by(&error)
        })?)
    } else {
        notes.push("instructions of warps are counted here, one as a nanosecond: no time".into());
        None
    };
    let mut swept = Swept::new(file, device, &arguments.device, stopwatch);
    (swept.seed, swept.warm) = (arguments.seed, arguments.warm);
    let dims = shape(&swept, &configurations)?;
    let driver = facts.driver.clone().unwrap_or_default();
    let key = key(&source(&swept, &configurations), &facts.name, &driver);
    let mut cache = match &arguments.cache {
        None => Cache::none(),
        Some(path) => Cache::open(path, &key)
            .map_err(|error| Failure::request("the search cannot go on").caused_by(&error))?,
    };
    notes.extend(file.unused().map(|axis| format!("the manifest has no `{axis}` in a `${{...}}`")));
    if cache.ignored() > 0 {
        notes.push(format!("{} lines of the cache do not read", cache.ignored()));
    }
    let plan =
        SweepPlan { budget_s: arguments.budget, race: arguments.race, ..SweepPlan::default() };
    let (date, began) = (crate::date::now(), Instant::now());
    let progress = Progress::new(0);
    let found = search(
        &plan,
        configurations,
        &mut swept,
        &mut cache,
        &mut || began.elapsed().as_secs_f64(),
        &mut |what| progress.at(what),
    );
    progress.finish();
    swept.free();
    notes.extend(found.stopped);
    Ok(SweepRecord {
        schema: SWEEP_SCHEMA,
        assay_version: crate::VERSION.to_owned(),
        command: crate::command_line(),
        date,
        kernel: file.kernel.clone(),
        dims,
        device: facts.name,
        driver: facts.driver,
        key,
        axes: file.space.axes.clone(),
        constraints: file.space.constraints.iter().map(|c| c.text().to_owned()).collect(),
        excluded,
        race: arguments.race,
        budget_s: arguments.budget,
        spent_s: found.spent_s,
        rows: found.rows,
        verdict: found.verdict,
        notes,
    })
}

/// The sizes of the first configuration that has a kernel; a mistake that all share ends here.
fn shape(
    swept: &Swept<'_>,
    configurations: &[Configuration],
) -> Result<std::collections::BTreeMap<String, i64>, Failure> {
    let mut first = None;
    for configuration in configurations {
        match swept.kernel(configuration).and_then(|kernel| swept.dims(&kernel)) {
            Ok(dims) => return Ok(dims.into_iter().collect()),
            Err(why) => {
                first.get_or_insert(why);
            }
        }
    }
    let why = first.unwrap_or_default();
    Err(Failure::request(format!("no configuration gives a kernel; of the first: {why}")))
}

fn write(record: &SweepRecord, json: Option<&Path>, console: Console) -> Result<(), Failure> {
    let form = ("the sweep has", record.to_json());
    output::record(form, json, console, || render::sweep(record))
}
