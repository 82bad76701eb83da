//! The memory probes on a GPU: every entry has a value, the ladder is in order, and a kernel that
//! leaves its last tile out is caught there too.

use std::io::Write as _;

use assay_device::{Device, open};
use assay_measure::probe::stream::{Motion, Streams, Variant, variants};
use assay_measure::probe::{ProbeContext, ProbeError, probes, run, select};
use assay_record::{Entry, EntryStatus};

/// The first GPU, or a counted skip with its reason. Where `ASSAY_REQUIRE_GPU` is set a missing
/// GPU fails the test instead.
fn gpu(test: &str) -> Option<Box<dyn Device>> {
    match open("cuda:0") {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("ASSAY_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
            let _ = std::io::stderr().write_all(format!("SKIPPED {test}: {error}\n").as_bytes());
            None
        }
    }
}

fn entries(device: &mut dyn Device, only: &str) -> Vec<Entry> {
    let mut context = ProbeContext::new(device, true, 1);
    context.only = Some(only.to_owned());
    let chosen = select(&context, &probes());
    run(&mut context, &chosen, &mut |_| {})
}

#[test]
fn every_memory_entry_is_measured_and_the_ladder_is_in_order_gpu() {
    let Some(mut device) = gpu("every_memory_entry_is_measured_gpu") else { return };
    let mut all = Vec::new();
    for only in ["dram_", "l2_", "shared_read", "latency_"] {
        all.extend(entries(&mut *device, only));
    }
    for entry in &all {
        assert!(entry.status != EntryStatus::Failed, "{entry:?}");
        assert!(entry.part_of_limit().is_none_or(|part| part > 0.1 && part <= 1.0), "{entry:?}");
    }
    let value = |name: &str| {
        let entry = all.iter().find(|entry| entry.name == name).expect("an entry");
        entry.value.unwrap_or_else(|| panic!("{entry:?}"))
    };
    let ladder = ["shared", "l1", "l2_near", "l2_far", "dram"];
    for unit in ["cycles", "ns"] {
        let steps = ladder.map(|place| value(&format!("latency_{place}_{unit}")));
        assert!(steps.is_sorted(), "{steps:?}");
    }
    assert!(value("l2_read") > value("dram_read"));
    assert!(value("shared_read") > value("l2_read"));
    assert!(value("dram_gather") < value("dram_read"));
}

#[test]
fn a_chase_repeats_within_a_fifth_gpu() {
    let Some(mut device) = gpu("a_chase_repeats_within_a_fifth_gpu") else { return };
    let [first, second] = [0, 1].map(|_| entries(&mut *device, "latency_l2_near_cycles"));
    let (first, second) = (first[0].value.expect("a value"), second[0].value.expect("a value"));
    assert!((first / second - 1.0).abs() < 0.2, "{first} and {second}");
}

#[test]
fn a_stream_that_skips_its_last_tile_is_caught_gpu() {
    let Some(mut device) = gpu("a_stream_that_skips_its_last_tile_is_caught_gpu") else { return };
    let mut context = ProbeContext::new(&mut *device, false, 2);
    let streams = Streams::new(&mut context, 64 << 20).expect("buffers");
    let architecture = context.architecture();
    for motion in [Motion::Read, Motion::Write, Motion::Copy, Motion::Triad, Motion::Gather] {
        for variant in variants(motion, architecture) {
            let proof = streams.verify(context.device, motion, &variant);
            assert!(proof.is_ok(), "{variant}: {proof:?}");
            let leaves_out = (variant.tile_bytes / 16).max(1);
            let control = Variant { leaves_out, ..variant };
            let proof = streams.verify(context.device, motion, &control);
            assert!(matches!(proof, Err(ProbeError::Wrong(_))), "{control}: {proof:?}");
        }
    }
}
