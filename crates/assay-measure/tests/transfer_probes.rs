//! The probes of host transfers and of launches, on the emulator's made-up clock and on a GPU.

use assay_device::emulator::{ClockCourse, EmulatedClock, EmulatorDevice, EmulatorOptions};
use assay_device::fault::{FaultInjecting, FaultPlan};
use assay_device::{Device, open};
use assay_measure::probe::{Probe, ProbeContext, host, launch, run};
use assay_record::{Entry, EntryStatus};

fn emulator(course: ClockCourse) -> EmulatorDevice {
    let clock = Some(EmulatedClock { course, ..EmulatedClock::default() });
    EmulatorDevice::new(EmulatorOptions { clock, ..EmulatorOptions::default() })
}

fn all() -> Vec<Probe> {
    [host::PROBES, launch::PROBES].concat()
}

fn probed(device: &mut dyn Device) -> Vec<Entry> {
    let mut context = ProbeContext::new(device, true, 7);
    run(&mut context, &all(), &mut |_| {})
}

fn entry<'a>(entries: &'a [Entry], name: &str) -> &'a Entry {
    entries.iter().find(|entry| entry.name == name).expect("every quantity has an entry")
}

#[test]
fn every_quantity_is_measured_under_a_steady_clock() {
    let entries = probed(&mut emulator(ClockCourse::Steady));
    assert_eq!(entries.len(), 11);
    for entry in &entries {
        assert_eq!(entry.status, EntryStatus::Measured, "{entry:?}");
        assert!(entry.samples > 0 && entry.p5 <= entry.value && entry.value <= entry.p95);
    }
    // 64 KiB at 1,000 bytes a nanosecond behind 2,000 ns of launching.
    let expected = 65536.0 / (2065.0 * 1e-9);
    assert_eq!(entry(&entries, "host_to_device_pinned").value, Some(expected));
    let within = entry(&entries, "device_to_device");
    assert_eq!(within.points.last(), Some(&(65536.0, 2.0 * expected)), "the driver's own copies");
    assert!(within.value >= Some(2.0 * expected), "{within:?}");
    for name in ["host_to_device_pageable", "device_to_host_pageable"] {
        let method = &entry(&entries, name).method;
        assert!(method.contains("the driver's one copy in a stream: "), "{method}");
    }
    let node = entry(&entries, "graph_node").value.expect("measured");
    let period = entry(&entries, "launch_period").value.expect("measured");
    assert!((node - period).abs() < 50.0, "a node {node} ns, a launch {period} ns");
    assert!((2000.0..2100.0).contains(&node), "{node}");
}

#[test]
fn a_stopped_clock_gives_failures_that_say_so_and_no_figure() {
    let entries = probed(&mut emulator(ClockCourse::Stopped));
    for (name, why) in [
        ("host_to_device_pinned", "no time passed"),
        ("device_to_host_pinned", "no time passed"),
        ("device_to_device", "nothing was measured: the span of 0 ns"),
    ] {
        let entry = entry(&entries, name);
        assert_eq!((entry.status, entry.value), (EntryStatus::Failed, None), "{entry:?}");
        let reason = entry.reason.as_deref().unwrap_or_default();
        assert!(reason.starts_with(why), "{reason}");
    }
    for name in ["graph_node", "launch_period"] {
        assert_eq!(entry(&entries, name).status, EntryStatus::Failed, "{name}");
    }
}

#[test]
fn a_device_without_a_clock_has_none_of_it() {
    let mut device = open("emulator").expect("the emulator opens");
    for entry in probed(&mut *device) {
        assert_eq!(entry.status, EntryStatus::Unsupported, "{entry:?}");
        assert!(entry.reason.is_some());
    }
}

#[test]
fn a_device_lost_between_leaves_the_entries_before_it() {
    for at in [1, 5, 200, 700] {
        let plan = FaultPlan { lose_at_launch: Some(at), ..FaultPlan::default() };
        let entries = probed(&mut FaultInjecting::new(emulator(ClockCourse::Steady), plan));
        assert_eq!(entries.len(), 11);
        assert_eq!(entry(&entries, "device_to_host_pageable").status, EntryStatus::Measured);
        let last = entry(&entries, "event_bracket");
        assert_eq!(last.status, EntryStatus::Failed, "lost at launch {at}");
        let reason = last.reason.as_deref().unwrap_or_default();
        assert!(reason.contains(&format!("lost on plan at launch {at}")), "{reason}");
    }
}

#[test]
fn memory_that_runs_out_fails_one_probe_and_the_others_go_on() {
    let plan = FaultPlan { fail_allocation: Some(1), ..FaultPlan::default() };
    let entries = probed(&mut FaultInjecting::new(emulator(ClockCourse::Steady), plan));
    let failed: Vec<_> = entries.iter().filter(|e| e.status == EntryStatus::Failed).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].reason.as_deref().is_some_and(|reason| reason.contains("memory")));
}

#[test]
fn bytes_that_arrive_wrong_are_found() {
    // Read 1 is that of the comparison after the first copy to the device.
    let flip = Some(assay_device::fault::FlippedBit { read: 1, bit: 8 * 1000 + 3 });
    let plan = FaultPlan { flip, ..FaultPlan::default() };
    let entries = probed(&mut FaultInjecting::new(emulator(ClockCourse::Steady), plan));
    let entry = entry(&entries, "host_to_device_pinned");
    assert_eq!(entry.status, EntryStatus::Failed);
    let reason = entry.reason.as_deref().unwrap_or_default();
    assert!(reason.starts_with("byte 1000 of"), "{reason}");
}

#[test]
fn a_gpus_transfers_and_launches_are_plausible_gpu() {
    let mut device = match open("cuda:0") {
        Ok(device) => device,
        Err(error) => {
            assert!(std::env::var_os("ASSAY_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
            let name = "a_gpus_transfers_and_launches_are_plausible_gpu";
            let line = format!("SKIPPED {name}: {error}\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            return;
        }
    };
    for entry in probed(&mut *device) {
        let line = format!("{entry:?}\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        assert_eq!(entry.status, EntryStatus::Measured, "{entry:?}");
        let value = entry.value.expect("measured");
        let plausible = match entry.unit.as_str() {
            "B/s" => 1e9..1e13,
            _ => 50.0..1e6,
        };
        assert!(plausible.contains(&value), "{entry:?}");
    }
}
