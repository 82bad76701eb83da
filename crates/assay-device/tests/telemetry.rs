//! Telemetry from a management library made for the purpose, without one, and from a GPU.

mod fake_library;
mod hardware;

use assay_device::nvml::{Telemetry, TelemetryError};
use fake_library::management_library;
use hardware::gpu;

fn opened(test: &str, options: &[&str]) -> Option<Result<Telemetry, TelemetryError>> {
    let path = management_library(test, options)?;
    Some(Telemetry::open_with_library(&path, [0, 0x3b, 0]))
}

#[test]
fn every_answer_is_told_in_its_unit_and_what_is_not_has_a_reason() {
    let Some(telemetry) = opened("telemetry", &["-DREASONS=0x24ULL"]) else { return };
    let telemetry = telemetry.expect("the fake opens");
    let sample = telemetry.sample();
    assert_eq!((sample.sm_clock_mhz, sample.memory_clock_mhz), (Some(1755.0), Some(3201.0)));
    assert_eq!((sample.power_w, sample.temperature_c), (None, Some(41.0)));
    assert_eq!((sample.power_limit_w, sample.power_limit_default_w), (Some(650.0), Some(700.0)));
    assert_eq!(sample.throttle, ["software power cap", "software thermal slowdown"]);
    assert_eq!(sample.missing, ["power: Not Supported"]);
    assert!(sample.is_throttled() && sample.is_power_limited_below_default());
    let settings = telemetry.settings();
    assert_eq!((settings.persistence, settings.mig), (Some(true), None));
    assert_eq!((settings.sm_clock_max_mhz, settings.compute_processes), (Some(1980), Some(2)));
    assert_eq!(settings.pcie_bytes_per_s_max, Some(63_015_384_608));
    assert_eq!((settings.library.as_deref(), settings.driver), (Some("13.580.1"), None));
}

#[test]
fn a_gpu_that_is_lost_while_it_is_watched_leaves_reasons_and_no_error() {
    let Some(telemetry) = opened("lost", &["-DLOST"]) else { return };
    let sample = telemetry.expect("the fake opens").sample();
    assert_eq!(sample.sm_clock_mhz, None);
    assert!(sample.missing.contains(&"SM clock: GPU is lost".to_string()), "{sample:?}");
}

#[test]
fn a_library_that_does_not_start_or_know_the_gpu_says_so() {
    let Some(refused) = opened("refused", &["-DINIT_CODE=9"]) else { return };
    let error = refused.err().expect("refused");
    assert_eq!(error.to_string(), "no telemetry: NVML does not start: Driver Not Loaded");
    let Some(path) = management_library("elsewhere", &[]) else { return };
    let error = Telemetry::open_with_library(&path, [1, 2, 3]).err().expect("not there");
    assert!(error.to_string().contains("00000001:02:03.0: Not Found"), "{error}");
}

#[test]
fn a_missing_library_says_what_to_do() {
    let error = Telemetry::open_with_library("/nowhere/libnvidia-ml.so.1", [0; 3]).err();
    let error = error.expect("not there");
    assert!(error.to_string().contains("NVML does not load"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("utility")));
}

#[test]
fn a_device_that_is_no_gpu_has_no_telemetry() {
    let device = assay_device::open("emulator").expect("the emulator opens");
    let error = Telemetry::open(&*device).err().expect("none");
    assert!(error.to_string().contains("PCI"), "{error}");
}

#[test]
fn a_gpus_state_is_plausible_gpu() {
    let Some(device) = gpu("a_gpus_state_is_plausible_gpu") else { return };
    let telemetry = match Telemetry::open(&*device) {
        Ok(telemetry) => telemetry,
        Err(error) => return hardware::skip("a_gpus_state_is_plausible_gpu", &error.to_string()),
    };
    let sample = telemetry.sample();
    assert!(sample.sm_clock_mhz.is_some_and(|mhz| (50.0..5000.0).contains(&mhz)), "{sample:?}");
    assert!(sample.temperature_c.is_some_and(|c| (5.0..120.0).contains(&c)), "{sample:?}");
    assert!(sample.throttle_bits.is_some(), "{sample:?}");
}
