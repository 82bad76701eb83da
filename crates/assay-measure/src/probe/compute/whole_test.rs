//! All probes of compute from end to end, on an emulator with a clock.

use assay_device::emulator::{EmulatedClock, EmulatorDevice, EmulatorOptions};
use assay_record::{Entry, EntryStatus};

use super::super::run;
use super::{PROBES, ProbeContext};

fn entries(architecture: u32, only: Option<&str>) -> Vec<Entry> {
    let clock = Some(EmulatedClock::default());
    let options =
        EmulatorOptions { architecture, multiprocessors: 2, clock, ..EmulatorOptions::default() };
    let mut device = EmulatorDevice::new(options);
    let mut context = ProbeContext::new(&mut device, true, 7);
    context.only = only.map(str::to_owned);
    run(&mut context, &PROBES, &mut |_| {})
}

#[test]
fn every_entry_has_a_value_or_is_over_the_silicons_limit_on_an_emulated_clock() {
    // An emulated instruction takes a cycle whatever it does, so some rates pass their limits.
    for entry in entries(90, None) {
        let reason = entry.reason.clone().unwrap_or_default();
        let over = reason.contains("over what the silicon can do");
        let allots_nothing = entry.name.starts_with("occupancy");
        assert!(entry.value.is_some() || over || allots_nothing, "{}: {reason}", entry.name);
    }
}

#[test]
fn only_what_is_asked_for_is_made() {
    let names = |only| -> Vec<String> {
        entries(90, Some(only)).into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(names("fma_f64"), ["fma_f64", "fma_f64_per_clock"]);
    assert_eq!(names("atomic_cas"), ["atomic_cas"]);
}

#[test]
fn an_older_device_lacks_what_it_lacks_and_says_so() {
    for entry in entries(80, Some("wgmma_")) {
        assert_eq!(entry.status, EntryStatus::Unsupported, "{}", entry.name);
        assert!(entry.reason.is_some_and(|reason| reason.contains("sm_90a")), "{}", entry.name);
    }
}
