//! Whole probes on the emulator with a made-up clock: entries with values, and bad days.

use assay_device::emulator::{EmulatedClock, EmulatorDevice, EmulatorOptions};
use assay_device::fault::{FaultInjecting, FaultPlan};
use assay_device::{Device, DeviceError};
use assay_measure::probe::{
    Head, ProbeContext, ProbeError, Progress, Quantity, probes, select, take,
};
use assay_record::{Dossier, Entry, EntryStatus, Figure};

fn clocked() -> EmulatorDevice {
    let clock = Some(EmulatedClock { jitter_ns: 3, ..EmulatedClock::default() });
    EmulatorDevice::new(EmulatorOptions { architecture: 90, clock, ..EmulatorOptions::default() })
}

fn head() -> Head {
    Head { assay_version: "0".into(), command: "assay probe".into(), date: "now".into() }
}

/// The dossier of the quantities whose names contain `only`.
fn dossier(device: &mut dyn Device, only: &str) -> Dossier {
    let mut context = ProbeContext::new(device, true, 1);
    context.only = Some(only.to_owned());
    let chosen = select(&context, &probes());
    let mut seen = Vec::new();
    let dossier = take(&mut context, &chosen, head(), &mut |step| {
        if let Progress::Finished(probe, entries) = step {
            seen.push((probe.title, entries.len()));
        }
    });
    assert_eq!(seen.len(), chosen.len(), "progress tells of every probe");
    dossier
}

fn reason(entry: &Entry) -> &str {
    entry.reason.as_deref().unwrap_or_default()
}

#[test]
fn memory_probes_give_an_entry_with_value_spread_and_clock_for_each_quantity() {
    for (only, entries) in [("dram_", 7), ("l2_", 7), ("shared_read", 2), ("latency_", 14)] {
        let dossier = dossier(&mut clocked(), only);
        assert_eq!(dossier.entries.len(), entries, "{only}");
        assert_eq!(dossier.incomplete, None);
        for entry in &dossier.entries {
            // The made-up clock counts instructions, so that figures may well be over a limit, and
            // a curve flat; nothing may be wrong that was moved or chased.
            let excused = reason(entry).contains("is over what the silicon can do")
                || reason(entry).contains("has no step");
            assert!(entry.status == EntryStatus::Measured || excused, "{entry:?}");
            if entry.status == EntryStatus::Measured {
                assert!(entry.samples > 0 && entry.p5 <= entry.p95, "{entry:?}");
                assert!(entry.sm_clock_mhz.is_some(), "{entry:?}");
            }
        }
    }
}

#[test]
fn a_device_without_a_clock_has_no_rates_and_says_why() {
    let mut device = assay_device::open("emulator:sm_90").expect("the emulator opens");
    let dossier = dossier(&mut *device, "dram_");
    let rates: Vec<&Entry> = dossier.entries.iter().filter(|e| e.unit == "B/s").collect();
    assert_eq!(rates.len(), 5);
    for entry in rates {
        assert_eq!(entry.status, EntryStatus::Unsupported, "{entry:?}");
        assert!(reason(entry).contains("events"), "{entry:?}");
    }
}

#[test]
fn an_older_device_has_no_distributed_shared_memory() {
    let clock = Some(EmulatedClock::default());
    let options = EmulatorOptions { architecture: 80, clock, ..EmulatorOptions::default() };
    let dossier = dossier(&mut EmulatorDevice::new(options), "distributed");
    assert_eq!(dossier.entries.len(), 2);
    for entry in &dossier.entries {
        assert_eq!(entry.status, EntryStatus::Unsupported, "{entry:?}");
        assert!(reason(entry).contains("sm_90"), "{entry:?}");
    }
}

#[test]
fn a_device_lost_in_the_middle_leaves_what_was_measured_and_says_where_it_ended() {
    let mut in_the_middle = 0;
    for launch in [1, 40, 200, 400, 800] {
        let plan = FaultPlan { lose_at_launch: Some(launch), ..FaultPlan::default() };
        let dossier = dossier(&mut FaultInjecting::new(clocked(), plan), "dram_");
        assert_eq!(dossier.entries.len(), 7, "lost at launch {launch}");
        let measured = dossier.entries.iter().filter(|entry| entry.value.is_some()).count();
        let lost = dossier.entries.iter().filter(|entry| reason(entry).contains("lost")).count();
        assert_eq!(lost > 0, dossier.incomplete.is_some(), "lost at launch {launch}");
        in_the_middle += u32::from(measured > 0 && lost > 0);
        assert!(Dossier::from_json(&dossier.to_json().expect("JSON")).is_ok());
    }
    assert!(in_the_middle > 0, "some entries before the loss have values");
}

#[test]
fn every_quantity_of_every_probe_has_a_name_of_its_own_a_unit_and_a_method() {
    let mut names = std::collections::BTreeSet::new();
    for probe in probes() {
        for Quantity { name, unit, method } in probe.quantities {
            assert!(names.insert(*name), "{name} twice");
            assert!(!unit.is_empty() && method.len() > 20, "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        }
    }
}

#[test]
fn an_error_becomes_the_entry_that_it_deserves() {
    let quantity = Quantity { name: "a", unit: "B/s", method: "none" };
    let mut device = clocked();
    let mut context = ProbeContext::new(&mut device, true, 1);
    let mut status = |error: ProbeError| context.attempt(&quantity, |_| Err(error)).status;
    let unsupported = DeviceError::Unsupported { what: "streams".into() };
    assert_eq!(status(ProbeError::Device(unsupported)), EntryStatus::Unsupported);
    assert_eq!(status(ProbeError::Unsupported("no".into())), EntryStatus::Unsupported);
    assert_eq!(status(ProbeError::Wrong("no".into())), EntryStatus::Failed);
    let lost = DeviceError::Lost { cause: "it burnt".into() };
    assert_eq!(status(ProbeError::Device(lost)), EntryStatus::Failed);
    assert!(context.lost().is_some_and(|cause| cause.contains("it burnt")));
    let figure = Figure { value: 1.0, samples: 1, p5: 1.0, p95: 1.0, sm_clock_mhz: None };
    let entry = context.attempt(&quantity, |_| Ok(quantity.measured(figure)));
    assert_eq!(entry.value, Some(1.0));
}
