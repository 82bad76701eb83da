//! `assay probe`: what a device can do, each quantity by a kernel of its own.

mod child;
mod isolated;
mod peers;
mod table;

pub(crate) use child::serve;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assay_device::{Device, DeviceError};
use assay_measure::probe::{HANG, Probe, Quantity, probes};
use assay_record::{DOSSIER_SCHEMA, Dossier, Entry, EntryStatus, ExitCode};
use clap::Args;

use crate::console::{Color, Console};
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;

/// What can be typed after `assay probe`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct ProbeArguments {
    /// Which GPU: `cuda` or `cuda:1`
    #[arg(long, value_name = "NAME", default_value = "cuda")]
    pub(crate) device: String,
    /// Take fewer samples of smaller buffers: seconds in place of a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Probe only quantities whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Print the names, units and methods of the quantities instead of probing them
    #[arg(long)]
    pub(crate) list: bool,
    /// Then measure what torch, Triton and cupy get of the same things, with the `python3` on the
    /// path, and put it beside the entries
    #[arg(long, conflicts_with = "list")]
    pub(crate) peers: bool,
    /// Stop a group of probes that takes longer than this many seconds; the rest goes on
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) timeout: u64,
    /// Add a probe whose kernel does not end, which `--timeout` must stop
    #[arg(long, hide = true, conflicts_with = "list")]
    pub(crate) control_hang: bool,
    /// The seed of random data and of the orders of chases
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the dossier as JSON to a file, or to stdout in place of the table with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(crate) json: Option<PathBuf>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Probes a device and writes its dossier, whatever became of the probes.
pub(crate) fn probe(arguments: &ProbeArguments, console: Console) -> Result<ExitCode, Failure> {
    if arguments.list {
        return list(arguments.only.as_deref(), console);
    }
    let mut dossier = examine(arguments)?;
    if arguments.peers && dossier.incomplete.is_none() {
        measure_peers(&mut dossier, arguments);
    }
    write(&dossier, arguments.json.as_deref(), console)?;
    if let Some(cause) = &dossier.incomplete {
        return Err(Failure::new(ExitCode::Problems, "the device was lost in the middle")
            .caused_by(&Cause(cause.clone()))
            .hint(
                "what was measured until then has been written; look at the entry at which it \
                 failed, and at the system's log for the driver's own words"
                    .to_owned(),
            ));
    }
    Ok(verdict(&dossier))
}

/// 1 where a probe failed, and 4, which is worse, where the clock never settled under one.
fn verdict(dossier: &Dossier) -> ExitCode {
    let any = |holds: &dyn Fn(&Entry) -> bool| dossier.entries.iter().any(holds);
    let failed = any(&|entry| entry.status == EntryStatus::Failed);
    let unsettled = any(&|entry| entry.confidence_reason.contains("clock never settled"));
    let exit = if failed { ExitCode::Problems } else { ExitCode::Holds };
    if unsettled { exit.worst(ExitCode::Unstable) } else { exit }
}

/// A reason that is only known as words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

fn list(only: Option<&str>, console: Console) -> Result<ExitCode, Failure> {
    let all = probes();
    let named = |quantity: &&Quantity| only.is_none_or(|text| quantity.name.contains(text));
    let quantities: Vec<&Quantity> =
        all.iter().flat_map(|probe| probe.quantities).filter(named).collect();
    if quantities.is_empty() {
        return Err(nothing(only.unwrap_or_default()));
    }
    console.out(&table::quantities(&quantities));
    Ok(ExitCode::Holds)
}

fn nothing(text: &str) -> Failure {
    Failure::request(format!("no quantity has a name with \"{text}\" in it"))
        .hint("`assay probe --list` names them all".to_owned())
}

/// Opens a device on which a probe's figures mean something.
fn open(name: &str) -> Result<Box<dyn Device>, Failure> {
    let hint = "a dossier needs a GPU: run it on one with `--device cuda:N`; `assay doctor` says \
                what this machine has, and `assay certify` judges dossiers of other machines";
    let device = assay_device::open(name).map_err(|error| {
        let exit = match &error {
            DeviceError::OutOfMemory { .. } | DeviceError::Lost { .. } => ExitCode::Problems,
            _ => ExitCode::NoDevice,
        };
        let more = match (&error, error.hint()) {
            // The device's own words offer the emulator, which has nothing to measure.
            (DeviceError::DriverMissing { .. }, _) | (_, None) => hint.to_owned(),
            (_, Some(own)) => format!("{own}; {hint}"),
        };
        Failure::new(exit, format!("cannot probe {name}")).caused_by(&error).hint(more)
    })?;
    if device.timing_facts().is_some_and(|facts| facts.asynchronous) {
        return Ok(device);
    }
    Err(Failure::new(ExitCode::NoDevice, format!("{name} has no clock that means anything"))
        .hint(hint.to_owned()))
}

/// The probes with a quantity that is asked for.
fn chosen(arguments: &ProbeArguments) -> Result<Vec<Probe>, Failure> {
    let text = arguments.only.as_deref().unwrap_or_default();
    let named = |quantity: &Quantity| quantity.name.contains(text);
    let mut chosen = probes();
    chosen.retain(|probe| probe.quantities.iter().any(named));
    if chosen.is_empty() {
        return Err(nothing(text));
    }
    if arguments.control_hang {
        // In the middle, so that there are others before and after it.
        chosen.insert(chosen.len() / 2, HANG);
    }
    Ok(chosen)
}

fn examine(arguments: &ProbeArguments) -> Result<Dossier, Failure> {
    let (began, date) = (Instant::now(), crate::date::now());
    let probes = chosen(arguments)?;
    let progress = Progress::new(probes.len() as u64);
    let request = child::Request {
        protocol: child::PROTOCOL,
        device: arguments.device.clone(),
        quick: arguments.quick,
        seed: arguments.seed,
        only: arguments.only.clone(),
        titles: Vec::new(),
    };
    let limit = Duration::from_secs(arguments.timeout.max(1));
    let plan = isolated::Plan { request, probes, limit, start: &mut isolated::start };
    let found = isolated::probe(plan, &mut |step| match step {
        isolated::Step::Started(title) => progress.at(title),
        isolated::Step::Finished => progress.step(),
    });
    progress.finish();
    let found = found?;
    Ok(Dossier {
        schema: DOSSIER_SCHEMA,
        assay_version: crate::VERSION.to_owned(),
        command: crate::command_line(),
        date,
        seed: arguments.seed,
        quick: arguments.quick,
        device: found.device,
        before: found.before,
        after: found.after,
        entries: found.entries,
        peers: Vec::new(),
        peers_missing: Vec::new(),
        incomplete: found.incomplete,
        seconds: began.elapsed().as_secs_f64(),
    })
}

fn measure_peers(dossier: &mut Dossier, arguments: &ProbeArguments) {
    let progress = Progress::new(1);
    progress.at("peers: python3 starts");
    let mut at = |name: &str| progress.at(&format!("peers: {name}"));
    peers::measure(dossier, &arguments.device, arguments.only.as_deref(), &mut at);
    progress.finish();
}

fn write(dossier: &Dossier, json: Option<&Path>, console: Console) -> Result<(), Failure> {
    let form = ("the dossier has", dossier.to_json());
    output::record(form, json, console, || table::dossier(dossier))
}
