//! `assay stamps`: the phases of a kernel that a manifest registers, or of a demonstration, and
//! what a stamp costs.

mod kernel;
mod render;

use std::path::{Path, PathBuf};

use assay_device::{Device, DeviceError};
use assay_measure::stamps::{
    DEMO_PHASES, HEADER, StampError, demo, overhead, sm_clock_mhz, statistics, warnings,
};
use assay_picture::timeline;
use assay_record::{ExitCode, STAMPS_SCHEMA, StampRecord};
use clap::Args;

use crate::bench::Shape;
use crate::console::{Color, Console};
use crate::failure::Failure;
use crate::output;
use crate::pictures;

/// What can be typed after `assay stamps`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StampsArguments {
    /// The kernel to stamp; a demonstration of Assay's own without one
    #[arg(value_name = "KERNEL")]
    pub(crate) kernel: Option<String>,
    /// Take the kernel from this manifest (repeatable)
    #[arg(long, value_name = "FILE", requires = "kernel")]
    pub(crate) manifest: Vec<PathBuf>,
    /// Its shape, as `rows=64,cols=4096`; dims left out take their largest served size
    #[arg(long, value_name = "DIMS", default_value = "", requires = "kernel")]
    pub(crate) dims: Shape,
    /// The seed of its inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where to run: `cuda`, `cuda:1`, or `emulator`, whose cycles are instructions of a warp
    #[arg(long, value_name = "NAME", default_value = "emulator")]
    pub(crate) device: String,
    /// Blocks of the demonstration, of four warps each
    #[arg(long, value_name = "N", default_value_t = 8, conflicts_with = "kernel")]
    pub(crate) blocks: u32,
    /// Steps of work on every element
    #[arg(long, value_name = "N", default_value_t = 64, conflicts_with = "kernel")]
    pub(crate) rounds: u32,
    /// Print the header to include, and nothing else
    #[arg(long, exclusive = true)]
    pub(crate) header: bool,
    /// Draw the timeline as SVG into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the stamps as JSON to a file, or to stdout in place of the table with `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Runs the kernel or the demonstration, and shows what its stamps say.
pub(crate) fn stamps(arguments: &StampsArguments, console: Console) -> Result<ExitCode, Failure> {
    if arguments.header {
        Console::out_plain(HEADER);
        return Ok(ExitCode::Holds);
    }
    let mut device = assay_device::open(&arguments.device).map_err(|error| refused(&error))?;
    let record = match &arguments.kernel {
        Some(name) => kernel::record(&mut *device, name, arguments)?,
        None => record(&mut *device, arguments).map_err(|error| stopped(&error))?,
    };
    if let Some(path) = &arguments.svg {
        pictures::save(path, &timeline(&record))?;
    }
    write(&record, arguments.json.as_deref(), console)?;
    Ok(if record.warnings.is_empty() { ExitCode::Holds } else { ExitCode::Problems })
}

fn refused(error: &DeviceError) -> Failure {
    let hint = "without a GPU, `--device emulator` shows how stamps work";
    let hint = error.hint().map_or(hint.to_owned(), |own| format!("{own}; {hint}"));
    Failure::new(ExitCode::NoDevice, "there is no such device").caused_by(error).hint(hint)
}

fn stopped(error: &StampError) -> Failure {
    let exit = match error {
        StampError::Size { .. } => ExitCode::Request,
        _ => ExitCode::Problems,
    };
    let hint = match error {
        StampError::Device(error) => error.hint(),
        StampError::Size { .. } => {
            Some("choose a smaller shape, or --blocks from 1 to a million".to_owned())
        }
        _ => None,
    };
    Failure::new(exit, "there are no stamps").caused_by(error).hint(hint)
}

fn record(device: &mut dyn Device, arguments: &StampsArguments) -> Result<StampRecord, StampError> {
    let overhead = overhead(device)?;
    let demo = demo(device, arguments.blocks, arguments.rounds)?;
    let phases = DEMO_PHASES.map(str::to_owned).to_vec();
    let facts = device.facts();
    Ok(StampRecord {
        schema: STAMPS_SCHEMA,
        seed: None,
        equal_output_bytes: None,
        kernel: "staged_sum".to_owned(),
        device: facts.name.clone(),
        driver: facts.driver.clone(),
        date: crate::date::now(),
        command: crate::command_line(),
        statistics: statistics(&phases, &demo.lanes),
        phases,
        dropped: demo.dropped,
        sm_clock_mhz: sm_clock_mhz(&demo.lanes),
        overhead,
        warnings: warnings(&demo.lanes, demo.dropped),
        lanes: demo.lanes,
    })
}

fn write(record: &StampRecord, json: Option<&Path>, console: Console) -> Result<(), Failure> {
    let form = ("the stamps have", record.to_json());
    output::record(form, json, console, || render::stamps(record))
}
