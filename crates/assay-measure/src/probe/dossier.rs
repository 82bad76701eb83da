//! A whole dossier: the device, its state before and after, and every entry.

use std::time::Instant;

use assay_device::Device;
use assay_device::nvml::Telemetry;
use assay_record::{Conditions, DOSSIER_SCHEMA, Dossier, ProbedDevice};

use super::{Probe, ProbeContext, Progress, run};

/// What a dossier says of how it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The version of Assay.
    pub assay_version: String,
    /// The command line.
    pub command: String,
    /// When the run started, in UTC, as `2026-11-29T21:00:00Z`.
    pub date: String,
}

/// Runs the probes that the context asks for and puts what they find together. It always ends in
/// a dossier: where the device is lost in the middle, it holds what was found until then, and why
/// there is no more.
pub fn take(
    context: &mut ProbeContext<'_>,
    probes: &[Probe],
    head: Head,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Dossier {
    let began = Instant::now();
    let telemetry = Telemetry::open(context.device);
    let conditions = || match &telemetry {
        Ok(telemetry) => Some(conditions(telemetry)),
        Err(error) => {
            Some(Conditions { missing: vec![error.to_string()], ..Conditions::default() })
        }
    };
    let before = conditions();
    let device = describe(context.device);
    let entries = run(context, probes, progress);
    let Head { assay_version, command, date } = head;
    Dossier {
        schema: DOSSIER_SCHEMA,
        assay_version,
        command,
        date,
        seed: context.seed,
        quick: context.quick,
        device,
        before,
        after: conditions(),
        entries,
        peers: Vec::new(),
        peers_missing: Vec::new(),
        incomplete: context.lost().map(str::to_owned),
        seconds: began.elapsed().as_secs_f64(),
    }
}

/// The device as it describes itself.
pub fn describe(device: &dyn Device) -> ProbedDevice {
    let facts = device.facts();
    let timing = device.timing_facts();
    let clock = |mhz: f64| (mhz >= 1.0).then_some(mhz.round() as u32);
    ProbedDevice {
        name: facts.name.clone(),
        backend: facts.backend.clone(),
        architecture: facts.architecture.clone(),
        driver: facts.driver.clone(),
        multiprocessors: facts.multiprocessors,
        memory_bytes: facts.memory_bytes,
        l2_bytes: timing.map(|facts| facts.l2_bytes).filter(|bytes| *bytes > 0),
        sm_clock_max_mhz: timing.and_then(|facts| clock(facts.sm_clock_max_mhz)),
        memory_clock_max_mhz: timing.and_then(|facts| clock(facts.memory_clock_max_mhz)),
        memory_bus_bits: timing.map(|facts| facts.memory_bus_bits).filter(|bits| *bits > 0),
    }
}

/// The device's state now, as its management library tells it.
pub fn conditions(telemetry: &Telemetry) -> Conditions {
    let sample = telemetry.sample();
    Conditions {
        sm_clock_mhz: sample.sm_clock_mhz,
        memory_clock_mhz: sample.memory_clock_mhz,
        power_w: sample.power_w,
        power_limit_w: sample.power_limit_w,
        power_limit_default_w: sample.power_limit_default_w,
        temperature_c: sample.temperature_c,
        throttle: sample.throttle,
        missing: sample.missing,
    }
}
