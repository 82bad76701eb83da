//! `assay certify`: whether a device's figures are those of a device that works.

mod gemm;
mod live;
mod render;

use std::fs;
use std::path::{Path, PathBuf};

use assay_measure::certify::{Evidence, certify as judge};
use assay_measure::{dossier_drift, pinned_dossiers, pinned_for};
use assay_record::{CERTIFICATE_SCHEMA, Certificate, Dossier, Drift, Entry, ExitCode};
use clap::Args;

use crate::console::{Color, Console};
use crate::failure::Failure;
use crate::output;
use crate::pictures;

/// What can be typed after `assay certify`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CertifyArguments {
    /// The dossier to judge, as `assay probe --json FILE` wrote it, which needs no GPU; without one
    /// the device is probed now, its chases twice
    #[arg(long, value_name = "FILE")]
    pub(crate) dossier: Option<PathBuf>,
    /// A second dossier of the same device: its chases must repeat the first one's
    #[arg(long, value_name = "FILE", requires = "dossier")]
    pub(crate) again: Option<PathBuf>,
    /// Which GPU to probe: `cuda` or `cuda:1`
    #[arg(long, value_name = "NAME", default_value = "cuda", conflicts_with = "dossier")]
    pub(crate) device: String,
    /// Probe with fewer samples of smaller buffers
    #[arg(long, conflicts_with = "dossier")]
    pub(crate) quick: bool,
    /// The dossier to compare with: a file, or the name of a pinned one such as `h200`; else the
    /// pinned one of the same device, if there is any
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) pinned: Option<String>,
    /// The relative change from the pinned dossier from which on an entry has drifted
    #[arg(long, value_name = "PART", default_value_t = 0.1)]
    pub(crate) tolerance: f64,
    /// The rate of a large fp16 GEMM of a library, in FLOP/s, as measured elsewhere
    #[arg(long, value_name = "FLOPS", conflicts_with = "torch")]
    pub(crate) gemm_flops: Option<f64>,
    /// Measure that GEMM now, with the torch of the `python3` on the path
    #[arg(long)]
    pub(crate) torch: bool,
    /// Draw the dossier's roofline and latency ladder as SVG into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) pictures: Option<PathBuf>,
    /// Write the certificate as JSON to a file, or to stdout in place of the table with `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// When to colour words
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Judges a dossier and writes its certificate.
pub(crate) fn certify(arguments: &CertifyArguments, console: Console) -> Result<ExitCode, Failure> {
    let tolerance = arguments.tolerance;
    if !(tolerance.is_finite() && tolerance >= 0.0) {
        return Err(Failure::request(format!("a tolerance of {tolerance} is no part of anything"))
            .hint("give a number from 0 on, such as --tolerance 0.1".to_owned()));
    }
    let (dossier, again) = dossiers(arguments)?;
    let mut notes = notes(&dossier);
    let gemm = gemm(arguments, &mut notes)?;
    let evidence = Evidence { gemm, chases_again: again };
    let certificate = Certificate {
        schema: CERTIFICATE_SCHEMA,
        assay_version: crate::VERSION.to_owned(),
        command: crate::command_line(),
        date: crate::date::now(),
        device: dossier.device.name.clone(),
        driver: dossier.device.driver.clone(),
        dossier_date: dossier.date.clone(),
        invariants: judge(&dossier, &evidence),
        drift: drift(&dossier, arguments)?,
        notes,
    };
    if let Some(folder) = &arguments.pictures {
        pictures::of_dossier(&dossier, folder)?;
    }
    write(&certificate, arguments.json.as_deref(), console)?;
    Ok(match certificate {
        certificate if !certificate.holds() => ExitCode::Problems,
        certificate if certificate.is_unproven() => ExitCode::Unstable,
        _ => ExitCode::Holds,
    })
}

fn read(path: &Path) -> Result<Dossier, Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::request(format!("cannot read {shown}"))
            .caused_by(&error)
            .hint("`assay probe --json FILE` writes a dossier, on a machine with a GPU".to_owned())
    })?;
    Dossier::from_json(&text).map_err(|error| {
        Failure::request(format!("{shown} is not a dossier that can be judged")).caused_by(&error)
    })
}

/// What makes the dossier itself doubtful.
fn notes(dossier: &Dossier) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(cause) = &dossier.incomplete {
        notes.push(format!("the dossier is incomplete: {cause}"));
    }
    if dossier.quick {
        notes.push("the dossier is of a quick run, with fewer samples of smaller buffers".into());
    }
    for (when, state) in [("before", &dossier.before), ("after", &dossier.after)] {
        if let Some(state) = state.as_ref().filter(|state| !state.throttle.is_empty()) {
            notes.push(format!("clocks were held down {when}: {}", state.throttle.join(", ")));
        }
    }
    notes
}

/// The dossier and the entries of a second run, which may be none.
fn dossiers(arguments: &CertifyArguments) -> Result<(Dossier, Vec<Entry>), Failure> {
    if let Some(path) = &arguments.dossier {
        let again = arguments.again.as_deref().map(read).transpose()?;
        return Ok((read(path)?, again.map(|dossier| dossier.entries).unwrap_or_default()));
    }
    let dossier = live::probe(&arguments.device, arguments.quick, None)?;
    let again = live::probe(&arguments.device, arguments.quick, Some("latency_"))?;
    Ok((dossier, again.entries))
}

/// The rate of a library's GEMM and which that was, where there is one.
fn gemm(
    arguments: &CertifyArguments,
    notes: &mut Vec<String>,
) -> Result<Option<(f64, String)>, Failure> {
    Ok(match arguments.gemm_flops {
        Some(flops) if flops.is_finite() && flops > 0.0 => Some((flops, "as given".to_owned())),
        Some(flops) => {
            return Err(Failure::request(format!("{flops} FLOP/s is no rate of a GEMM")));
        }
        None if arguments.torch => match gemm::measure() {
            Ok(found) => Some(found),
            Err(reason) => {
                notes.push(format!("no GEMM by torch: {reason}"));
                None
            }
        },
        None => None,
    })
}

fn drift(dossier: &Dossier, arguments: &CertifyArguments) -> Result<Option<Drift>, Failure> {
    let pinned = match arguments.pinned.as_deref() {
        None => pinned_for(dossier).map(|(_, pinned)| pinned),
        Some(name) => Some(pinned_named(name)?),
    };
    Ok(pinned.map(|pinned| dossier_drift(dossier, &pinned, arguments.tolerance)))
}

/// A pinned dossier by its name, or a file.
fn pinned_named(name: &str) -> Result<Dossier, Failure> {
    let all = pinned_dossiers().map_err(|error| {
        Failure::new(ExitCode::Internal, "a pinned dossier does not read").caused_by(&error)
    })?;
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    match all.into_iter().find(|(pinned, _)| *pinned == name) {
        Some((_, dossier)) => Ok(dossier),
        None => read(Path::new(name)).map_err(|failure| {
            failure.hint(format!("give a file, or the name of a pinned dossier: {names}"))
        }),
    }
}

fn write(certificate: &Certificate, json: Option<&Path>, console: Console) -> Result<(), Failure> {
    let form = ("the certificate has", certificate.to_json());
    output::record(form, json, console, || render::certificate(certificate))
}
