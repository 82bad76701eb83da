//! Bulk copies and tensor maps on the emulator against what an H200 gave, byte for byte.
//!
//! The record is written by the example `transfers` on a GPU. What the GPU refuses, the emulator
//! refuses too.

use std::path::PathBuf;

use assay_conformance::{Record, Transfer, TransferEntry, transfer_digest, transfers};
use assay_device::emulator::{EmulatorDevice, EmulatorOptions};
use assay_device::fault::{FaultInjecting, FaultPlan, FlippedBit};
use assay_device::{Device, DeviceError, Schedule};

fn record() -> Vec<TransferEntry> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../records/h200-transfers.jsonl");
    let text = std::fs::read_to_string(path).expect("the record is there");
    Record::read(&text).expect("the record reads").entries
}

fn emulator() -> EmulatorDevice {
    EmulatorDevice::new(EmulatorOptions { architecture: 90, ..EmulatorOptions::default() })
}

/// How a transfer departs from its entry, if it does.
fn problem(
    device: &mut dyn Device,
    transfer: &Transfer,
    entry: &TransferEntry,
    schedule: Schedule,
) -> Option<String> {
    assert_eq!(transfer.name, entry.transfer, "the record has other transfers");
    let said = match (transfer.run(device, schedule), &entry.error) {
        (Ok(bytes), None) if transfer_digest(&bytes) == entry.digest => return None,
        (Err(DeviceError::Fault(_) | DeviceError::Unsupported { .. }), Some(_)) => return None,
        (Ok(_), None) => "other bytes than the GPU's".to_owned(),
        (Ok(_), Some(error)) => format!("it ran, and the GPU said: {error}"),
        (Err(error), _) => error.to_string(),
    };
    Some(format!("{} {schedule:?}: {said}", transfer.name))
}

#[test]
fn every_transfer_leaves_the_bytes_that_the_gpu_left() {
    let (all, record) = (transfers(), record());

    let mut device = emulator();
    let problems: Vec<String> = all
        .iter()
        .zip(&record)
        .enumerate()
        .filter_map(|(number, (transfer, entry))| {
            // Every schedule gets a third of them.
            let schedules =
                [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(number as u64)];
            problem(&mut device, transfer, entry, schedules[number % 3])
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let settled = record.iter().filter(|entry| entry.error.is_none()).count();
    assert_eq!((settled, record.len()), (201, 258), "transfers as on the H200, and all listed");
}

#[test]
fn control_one_flipped_bit_is_another_digest() {
    let (all, record) = (transfers(), record());
    let flip = FlippedBit { read: 1, bit: 1000 };
    let plan = FaultPlan { flip: Some(flip), ..FaultPlan::default() };
    let mut device = FaultInjecting::new(emulator(), plan);
    let found = problem(&mut device, &all[0], &record[0], Schedule::InOrder);
    assert!(found.is_some_and(|text| text.contains("other bytes")));
}
