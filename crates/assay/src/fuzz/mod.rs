//! `assay fuzz`: candidates over the ugly shapes, each case with a recipe that repeats it.

pub(crate) mod child;
mod kept;
mod render;
mod units;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use assay_fuzz::fuzz;
use assay_record::{ExitCode, FuzzCandidate, FuzzReport, Recipe};
use clap::Args;

use crate::check::open;
use crate::console::{Color, Console};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::suite::Suite;
use crate::{date, output};
use kept::{Form, Kept};
use units::{Unit, Units};

/// Children at a time on a GPU, each of which prepares inputs on a core.
const CHILDREN: usize = 4;

#[derive(Clone, Debug, Args)]
pub(crate) struct FuzzArguments {
    /// Where kernels run: `emulator`, `emulator:sm_90`, `cuda` or `cuda:1`
    #[arg(long, value_name = "NAME", default_value = "emulator")]
    pub(crate) device: String,
    /// Run only cases whose recipe contains this text; the planted operations run too
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Print the recipes instead of running them
    #[arg(long)]
    pub(crate) list: bool,
    /// Fuzz the kernels of this manifest in place of the built-in suite (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run one case again, by its recipe; where it fails, shrink it
    #[arg(long, value_name = "RECIPE", conflicts_with_all = ["only", "seed", "list"])]
    pub(crate) repro: Option<Recipe>,
    /// Stop after about this many seconds, shared out after the controls; launches of the emulator
    /// and processes of their own are stopped then, and what is left is counted
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) budget: Option<f64>,
    /// Run every candidate in a process of its own, as is always done on a GPU
    #[arg(long)]
    pub(crate) isolate: bool,
    /// Stop such a process when one case takes longer than this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Write everything found as JSON to a file, or to stdout in place of the tables with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(crate) json: Option<PathBuf>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// A time that is positive and no longer than a day.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "a time is a number of seconds from 0.001 to 86400".to_owned())
}

/// Runs what was asked for; the exit code says how it ended.
pub(crate) fn run(arguments: &FuzzArguments, console: Console) -> Result<ExitCode, Failure> {
    let suite = Suite::load(&arguments.manifest);
    let broken = suite.tell_errors(console);
    let kernels = suite.kernels();
    if kernels.iter().all(|kernel| kernel.spec().is_control()) {
        // What is wrong has been said above.
        return Ok(broken.worst(ExitCode::Request));
    }
    output::expect_to_write(arguments.json.as_deref())?;
    let facts = open(&arguments.device)?.facts().clone();
    let units = Units::new(&kernels, &facts, arguments);
    let chosen = units.chosen(arguments)?;
    if arguments.list {
        list(&chosen, arguments, console);
        return Ok(broken);
    }
    let started = date::now();
    expect_planted_panics();
    let start = Instant::now();
    let form = Form { arguments, broken, started, facts: &facts, start };
    let kept = Kept::new(&form);
    let candidates = run_all(&units, &chosen, arguments, &kept);
    refuse_a_case_that_is_none(&candidates, arguments)?;
    let report = form.report(candidates, Vec::new());
    write(&report, arguments, console)?;
    Ok(ExitCode::from_code(report.exit_code).unwrap_or(ExitCode::Internal))
}

/// Prints the recipes of the candidates that were asked for.
fn list(chosen: &[Unit<'_>], arguments: &FuzzArguments, console: Console) {
    let (mut count, mut text) = (0, String::new());
    for unit in chosen.iter().filter(|unit| !unit.is_beside(arguments)) {
        for planned in assay_fuzz::selected(&*unit.candidate(), &unit.options(arguments, None)) {
            count += 1;
            let why = planned.skip.map(|why| format!("  (skipped: {why})")).unwrap_or_default();
            text.extend([planned.recipe.to_string(), why, "\n".to_owned()]);
        }
    }
    console.out(&text);
    console.message(&format_args!("cases: {count}; seed: {}\n", arguments.seed));
}

/// Takes every candidate through its cases, several at a time.
fn run_all(
    units: &Units<'_>,
    chosen: &[Unit<'_>],
    arguments: &FuzzArguments,
    kept: &Kept<'_>,
) -> Vec<FuzzCandidate> {
    let cases: usize = chosen.iter().map(|unit| unit.count(arguments)).sum();
    let bar = Progress::new(cases as u64);
    let end = arguments.budget.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if units.isolated { threads.min(CHILDREN) } else { threads };
    let next = AtomicUsize::new(0);
    let found: Vec<Mutex<Option<FuzzCandidate>>> =
        chosen.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
            && let Some(unit) = chosen.get(at)
        {
            let limited = end.filter(|_| !unit.is_planted());
            let share = limited.map(|end| share(end, chosen.len() - at, threads));
            let options = unit.options(arguments, share);
            let candidate = unit.candidate();
            let one = unit.with_runner(units, arguments, |runner| {
                fuzz(&*candidate, runner, &options, &Telling(&bar))
            });
            *found[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(one);
            kept.keep(chosen, &found);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(chosen.len()) {
            scope.spawn(work);
        }
        work();
    });
    bar.finish();
    let taken = |slot: Mutex<Option<_>>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.into_iter().filter_map(taken).collect()
}

/// Keeps quiet about panics of planted operations, which are meant to.
fn expect_planted_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|place| place.file().ends_with("planted.rs")) {
            usual(info);
        }
    }));
}

/// The part of the time left that one of the candidates left may take.
fn share(end: Instant, left: usize, threads: usize) -> Duration {
    let time = end.saturating_duration_since(Instant::now());
    let at_a_time = threads.min(left).max(1);
    time.mul_f64(at_a_time as f64 / left.max(1) as f64)
}

/// Tells the bar of every case.
struct Telling<'a>(&'a Progress);

impl assay_fuzz::Progress for Telling<'_> {
    fn case(&self, recipe: &Recipe, _done: usize, _of: usize) {
        self.0.at_case(&recipe.to_string());
        self.0.step();
    }
}

/// Refuses the recipe of a case that could not be run at all.
fn refuse_a_case_that_is_none(
    candidates: &[FuzzCandidate],
    arguments: &FuzzArguments,
) -> Result<(), Failure> {
    let Some(recipe) = &arguments.repro else { return Ok(()) };
    let skips = candidates.iter().flat_map(|candidate| &candidate.skipped);
    match skips.into_iter().next() {
        Some(skip) => {
            let hint = format!("--list --only {}/ prints the recipes of it", recipe.candidate);
            let message = format!("cannot run {recipe}: {}", skip.reason);
            Err(Failure::request(message).hint(hint))
        }
        None => Ok(()),
    }
}

fn write(report: &FuzzReport, arguments: &FuzzArguments, console: Console) -> Result<(), Failure> {
    let form = ("the report has", report.to_json());
    let tables = || render::report(report, arguments);
    output::record(form, arguments.json.as_deref(), console, tables)
}
