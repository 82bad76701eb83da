//! Runs bulk copies and tensor maps on a device, holds it against the emulator, and writes what it
//! gave.
//!
//!     cargo run -p assay-conformance --example transfers -- cuda:0 h200-transfers.jsonl
//!
//! A copy that faults ends the process's context, so the work is done by a child that writes as it
//! goes; the transfer at which one dies is recorded with what it said, and the next goes on behind
//! it. `--text NAME` prints a kernel.

mod shared;

use std::error::Error;
use std::fs;
use std::io::Write;
use std::process::Command;

use assay_conformance::{Head, Record, Transfer, TransferEntry, transfer_digest, transfers};
use assay_device::{Device, Schedule};
use shared::{append, now};

/// The seed of what the first buffer holds.
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--text", name] => {
            let all = transfers();
            let found = all.iter().find(|transfer| transfer.name == *name);
            writeln!(std::io::stdout(), "{}", found.ok_or("no such transfer")?.text())?;
            Ok(())
        }
        ["--differences", path] => differences(path),
        [device, path] => parent(device, path),
        [device, path, start] => child(device, path, start.parse()?),
        _ => Err("usage: transfers DEVICE FILE, or transfers --text NAME".into()),
    }
}

/// How many transfers the file has behind its head.
fn done(path: &str) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count().saturating_sub(1))
}

/// Starts children until each transfer has its line.
fn parent(device: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let all = transfers();
    if !fs::exists(path)? {
        let command = format!("transfers {device} {path}");
        append(path, &Head::of(&*assay_device::open(device)?, &now(), &command, SEED))?;
    }
    while let Some(next) = all.get(done(path)) {
        let start = done(path);
        let mut child = Command::new(std::env::current_exe()?);
        let status = child.args([device, path, &start.to_string()]).status()?;
        if !status.success() && done(path) == start {
            let error = Some(format!("the process ended with {status}"));
            let transfer = next.name.clone();
            append(path, &TransferEntry { transfer, error, ..TransferEntry::default() })?;
        }
    }
    Ok(())
}

/// Runs transfers from `start` on, up to the first that fails.
fn child(device: &str, path: &str, start: usize) -> Result<(), Box<dyn Error>> {
    let mut device = assay_device::open(device)?;
    let mut emulator = assay_device::open("emulator:sm_90")?;
    for transfer in transfers().get(start..).unwrap_or(&[]) {
        let entry = measured(transfer, &mut *device, &mut *emulator);
        let failed = entry.error.clone();
        writeln!(std::io::stdout(), "{}: {}", entry.transfer, said(&entry))?;
        append(path, &entry)?;
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Shows where bytes of a file differ from the emulator's.
fn differences(path: &str) -> Result<(), Box<dyn Error>> {
    let mut emulator = assay_device::open("emulator:sm_90")?;
    let all = transfers();
    let record: Record<TransferEntry> = Record::read(&fs::read_to_string(path)?)?;
    for entry in record.entries {
        let found = all.iter().find(|transfer| transfer.name == entry.transfer);
        let (Some(transfer), Some(hex)) = (found, entry.bytes) else { continue };
        let other = transfer.run(&mut *emulator, Schedule::InOrder)?;
        let byte = |at: usize| hex.get(2 * at..2 * at + 2).unwrap_or("");
        let mut shown = 0;
        for (number, word) in other.chunks(4).enumerate() {
            let told: String = (0..4).map(|part| byte(4 * number + 3 - part)).collect();
            let ours: String =
                word.iter().rev().copied().map(two_digits).collect::<Vec<_>>().concat();
            if told != ours && shown < 40 {
                writeln!(
                    std::io::stdout(),
                    "{}: at {:#x} {told}, emulator {ours}",
                    entry.transfer,
                    4 * number
                )?;
                shown += 1;
            }
        }
    }
    Ok(())
}

fn said(entry: &TransferEntry) -> &str {
    match (&entry.error, &entry.bytes) {
        (Some(error), _) => error,
        (None, Some(_)) => "differs from the emulator",
        (None, None) => "as the emulator",
    }
}

fn measured(
    transfer: &Transfer,
    device: &mut dyn Device,
    emulator: &mut dyn Device,
) -> TransferEntry {
    let name = transfer.name.clone();
    match transfer.run(device, Schedule::InOrder) {
        Err(error) => {
            TransferEntry { transfer: name, error: Some(error.to_string()), ..Default::default() }
        }
        Ok(bytes) => {
            let other = transfer.run(emulator, Schedule::InOrder).ok();
            let text =
                |bytes: &[u8]| bytes.iter().copied().map(two_digits).collect::<Vec<_>>().concat();
            TransferEntry {
                transfer: name,
                digest: transfer_digest(&bytes),
                error: None,
                bytes: (other.as_deref() != Some(&bytes[..])).then(|| text(&bytes)),
            }
        }
    }
}

fn two_digits(byte: u8) -> String {
    format!("{byte:02x}")
}
