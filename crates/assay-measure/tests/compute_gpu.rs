//! The probes of arithmetic on a real GPU: every result right, and the rates those of the silicon.

use std::io::Write as _;

use assay_device::{Device, open};
use assay_measure::probe::compute::{measure_clock, mma_tile_check};
use assay_measure::probe::{ProbeContext, probes, run, select};
use assay_record::{Entry, EntryStatus};

/// A GPU, or `None` and a line that says why there is none. With `ASSAY_REQUIRE_GPU` set, a
/// missing GPU fails the test instead.
fn gpu(test: &str) -> Option<Box<dyn Device>> {
    match open("cuda:0") {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("ASSAY_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
            say(&format!("SKIPPED {test}: {error}"));
            None
        }
    }
}

/// A line past the test harness.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn entries(device: &mut dyn Device, text: &str) -> Vec<Entry> {
    let mut context = ProbeContext::new(device, true, 7);
    context.only = Some(text.to_owned());
    let chosen = select(&context, &probes());
    let made = run(&mut context, &chosen, &mut |_| {});
    for entry in &made {
        let (name, unit) = (&entry.name, &entry.unit);
        let part = entry.part_of_limit().map_or(String::new(), |part| format!(", {part:.4} of it"));
        let value = entry.value.unwrap_or(0.0);
        say(&format!("{name} {value:.6e} {unit}{part} {:?}", entry.reason));
    }
    made
}

#[test]
fn no_probe_of_compute_fails_and_hopper_gives_what_its_silicon_has_gpu() {
    let Some(mut device) = gpu("no_probe_of_compute_fails_gpu") else { return };
    let hopper = device.facts().architecture_number() == Some(90);
    for (text, least) in [("fma_", 0.94), ("wgmma_", 0.9), ("mma_f64", 0.9), ("mma_bf16", 0.6)] {
        for entry in entries(&mut *device, text) {
            assert_ne!(entry.status, EntryStatus::Failed, "{}: {:?}", entry.name, entry.reason);
            let meant = entry.name.starts_with(text) && entry.name.ends_with("_per_clock");
            if hopper && meant && !(text == "mma_bf16" && entry.name.contains("sparse")) {
                let part = entry.part_of_limit().expect("the silicon's limit is known");
                assert!(part >= least, "{}: {part}", entry.name);
            }
        }
    }
}

#[test]
fn atomics_barriers_occupancy_and_the_clock_have_figures_gpu() {
    let Some(mut device) = gpu("atomics_barriers_occupancy_and_the_clock_gpu") else { return };
    for text in ["atomic_", "grid_barrier", "occupancy_", "clock_load"] {
        for entry in entries(&mut *device, text) {
            assert_ne!(entry.status, EntryStatus::Failed, "{}: {:?}", entry.name, entry.reason);
        }
    }
}

#[test]
fn every_tile_of_every_kind_is_exact_gpu() {
    let Some(mut device) = gpu("every_tile_of_every_kind_is_exact_gpu") else { return };
    let check = mma_tile_check(&mut *device, 10, 3).expect("the device stays with us");
    say(&format!("{check:?}"));
    assert!(check.passed(), "{:?}", check.failures);
}

#[test]
fn the_clock_is_one_that_a_gpu_has_gpu() {
    let Some(mut device) = gpu("the_clock_is_one_that_a_gpu_has_gpu") else { return };
    let clock = measure_clock(&mut *device, 1_000_000).expect("the clock runs");
    say(&format!("{clock:.1} MHz"));
    assert!((200.0..4000.0).contains(&clock), "{clock}");
}
