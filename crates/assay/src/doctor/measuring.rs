//! What there is to measure with: the management library, each GPU's state in it, and activity
//! records.

use assay_device::nvml::{Telemetry, TelemetryError, TelemetrySample, TelemetrySettings};
use assay_device::{Discovery, cuda, cupti};

use super::line;

/// The lines of the section.
pub(super) fn describe(text: &mut String, found: &[Discovery]) {
    line(text, "nvml", &library());
    for (number, gpu) in found.iter().filter(|found| is_gpu(found)).enumerate() {
        line(text, &gpu.name, &state(number as u32));
    }
    line(text, "cupti", &activity());
}

fn is_gpu(found: &Discovery) -> bool {
    found.status.as_ref().is_ok_and(|facts| facts.backend == "cuda")
}

fn library() -> String {
    match Telemetry::library_version() {
        Ok(version) => format!("{version}: clocks, power and temperature are told"),
        Err(error) => missing(&error.reason, error.hint.as_deref()),
    }
}

fn activity() -> String {
    match cupti::describe() {
        Ok(library) => format!("{library}: durations come from the device's own records"),
        Err(error) => missing(&error.reason, error.hint.as_deref()),
    }
}

fn missing(reason: &str, hint: Option<&str>) -> String {
    let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    format!("not usable: {reason}{hint}")
}

fn state(number: u32) -> String {
    let place = cuda::timing_facts(number).ok().and_then(|facts| facts.pci);
    let unknown = || TelemetryError { reason: "its PCI address is unknown".into(), hint: None };
    let opened = place.ok_or_else(unknown).and_then(Telemetry::open_at);
    match opened {
        Ok(telemetry) => describe_state(&telemetry.sample(), &telemetry.settings()),
        Err(error) => missing(&error.reason, error.hint.as_deref()),
    }
}

/// A GPU's state in a line, and what may spoil a measurement.
fn describe_state(sample: &TelemetrySample, settings: &TelemetrySettings) -> String {
    let shown =
        |number: Option<f64>| number.map_or("?".to_owned(), |number| format!("{number:.0}"));
    let mut text = format!(
        "SM {} MHz, memory {} MHz, {} W of {} W, {} \u{b0}C",
        shown(sample.sm_clock_mhz),
        shown(sample.memory_clock_mhz),
        shown(sample.power_w),
        shown(sample.power_limit_w),
        shown(sample.temperature_c),
    );
    for doubt in doubts(sample, settings) {
        text.push_str("\nnote: ");
        text.push_str(&doubt);
    }
    text
}

fn doubts(sample: &TelemetrySample, settings: &TelemetrySettings) -> Vec<String> {
    let mut doubts = Vec::new();
    if sample.is_throttled() {
        let reasons = sample.throttle.join(", ");
        doubts.push(format!("its clocks are held down now: {reasons}"));
    }
    if sample.is_power_limited_below_default() {
        let default = sample.power_limit_default_w.unwrap_or_default();
        doubts.push(format!("its power limit is below the board's own {default:.0} W"));
    }
    if settings.persistence == Some(false) {
        doubts.push("persistence mode is off: each program's first call waits for the GPU".into());
    }
    if settings.mig == Some(true) {
        doubts.push("it is partitioned (MIG): figures are those of a part".into());
    }
    if let Some(others @ 1..) = settings.compute_processes {
        doubts.push(format!("{others} programs compute on it now: measure when none does"));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_gpu_has_one_line_and_no_note() {
        let sample = TelemetrySample {
            sm_clock_mhz: Some(1980.0),
            power_w: Some(114.6),
            power_limit_w: Some(700.0),
            power_limit_default_w: Some(700.0),
            throttle_bits: Some(1),
            throttle: vec!["idle".into()],
            ..TelemetrySample::default()
        };
        let settings = TelemetrySettings { persistence: Some(true), ..Default::default() };
        let text = describe_state(&sample, &settings);
        assert_eq!(text, "SM 1980 MHz, memory ? MHz, 115 W of 700 W, ? \u{b0}C");
    }

    #[test]
    fn whatever_may_spoil_a_measurement_is_a_note() {
        let sample = TelemetrySample {
            power_limit_w: Some(600.0),
            power_limit_default_w: Some(700.0),
            throttle_bits: Some(4),
            throttle: vec!["software power cap".into()],
            ..TelemetrySample::default()
        };
        let settings = TelemetrySettings {
            persistence: Some(false),
            mig: Some(true),
            compute_processes: Some(3),
            ..Default::default()
        };
        let doubts = doubts(&sample, &settings);
        assert_eq!(doubts.len(), 5, "{doubts:?}");
        assert!(doubts[0].contains("software power cap") && doubts[1].contains("700 W"));
        assert!(doubts[4].starts_with("3 programs"));
    }

    #[test]
    fn what_is_missing_says_what_to_install() {
        let text = missing("no library", Some("install it"));
        assert_eq!(text, "not usable: no library\nhint: install it");
    }
}
