//! What a real GPU made of tiles, pinned: a line for the device, then one for each form and class.

use assay_device::{Device, DeviceError};
use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::run::{Ran, run_words};
use crate::tiles::{Class, TileForm, chunk_digest};

/// What a device and the emulator gave for the tiles of one form and class.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileEntry {
    /// The program's name.
    pub form: String,
    /// The class's name; empty when the form is rejected.
    pub class: String,
    /// Tiles of a chunk.
    pub tiles: usize,
    /// The digest of each chunk's results on the device.
    pub digests: Vec<String>,
    /// The device's compiler rejects the form.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
    /// The emulator does not run the form.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsupported: bool,
    /// Chunks whose results the emulator has otherwise, in whatever thread.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub differing: usize,
    /// The digest of each chunk on the emulator, where some differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emulator: Vec<String>,
    /// The first tiles that differ: the place of the first thread, then for each thread of the tile
    /// operands, the device's results and the emulator's, in hexadecimal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<(usize, Vec<[String; 3]>)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A record of tiles: one entry for each form and class.
pub type TileRecord = Record<TileEntry>;

impl TileRecord {
    /// What the record says of a form and class.
    pub fn entry(&self, form: &str, class: Class) -> Option<&TileEntry> {
        let own = |entry: &&TileEntry| {
            entry.form == form && (entry.class == class.name() || entry.rejected)
        };
        self.entries.iter().find(own)
    }
}

/// Examples that are kept of a form and class.
const KEPT: usize = 2;

/// Runs so many chunks of a form and class on a device and on the emulator.
///
/// # Errors
/// What either device answers, other than that it rejects or does not support the form.
pub fn measure_tiles(
    device: &mut dyn Device,
    emulator: &mut dyn Device,
    form: &TileForm,
    class: Class,
    chunks: usize,
    seed: u64,
) -> Result<TileEntry, DeviceError> {
    let mut entry = TileEntry {
        form: form.program.name.clone(),
        class: class.name().to_string(),
        tiles: form.chunk_tiles(),
        ..TileEntry::default()
    };
    for chunk in 0..chunks {
        let words = form.operands(class, chunk, seed);
        let real = match run_words(device, &form.program, &words)? {
            Ran::Results(results) => results,
            Ran::Rejected(_) | Ran::Unsupported => {
                entry.rejected = true;
                return Ok(entry);
            }
        };
        entry.digests.push(hexadecimal(chunk_digest(&real)));
        let Ran::Results(emulated) = run_words(emulator, &form.program, &words)? else {
            entry.unsupported = true;
            continue;
        };
        entry.emulator.push(hexadecimal(chunk_digest(&emulated)));
        examples(form, &words, &real, &emulated, &mut entry);
    }
    count(&mut entry);
    Ok(entry)
}

/// Runs the chunks of an entry on the emulator again, and holds them against the device's digests.
/// Examples go: what they say of the emulator may no longer be so.
///
/// # Errors
/// What the emulator answers, other than that it does not support the form.
pub fn judge_tiles(
    emulator: &mut dyn Device,
    form: &TileForm,
    class: Class,
    entry: &mut TileEntry,
    seed: u64,
) -> Result<(), DeviceError> {
    entry.unsupported = false;
    entry.emulator.clear();
    entry.examples.clear();
    for chunk in 0..entry.digests.len() {
        let words = form.operands(class, chunk, seed);
        let Ran::Results(results) = run_words(emulator, &form.program, &words)? else {
            entry.unsupported = true;
            entry.emulator.clear();
            break;
        };
        entry.emulator.push(hexadecimal(chunk_digest(&results)));
    }
    count(entry);
    Ok(())
}

/// Counts the chunks that differ; where none does, the emulator's digests say nothing.
fn count(entry: &mut TileEntry) {
    let pairs = entry.digests.iter().zip(&entry.emulator);
    entry.differing = pairs.filter(|(real, emulated)| real != emulated).count();
    if entry.differing == 0 {
        entry.emulator.clear();
    }
}

fn examples(form: &TileForm, words: &[u64], real: &[u64], emulated: &[u64], entry: &mut TileEntry) {
    let (inputs, outputs) = (form.program.inputs.len(), form.program.outputs.len().max(1));
    let size = form.lanes * outputs;
    for (tile, (a, b)) in real.chunks(size).zip(emulated.chunks(size)).enumerate() {
        if a == b || entry.examples.len() >= KEPT {
            continue;
        }
        let first = tile * form.lanes;
        let operands = words[first * inputs..].chunks(inputs).take(form.lanes);
        let rows = operands.zip(a.chunks(outputs).zip(b.chunks(outputs)));
        let rows = rows.map(|(operands, (a, b))| [operands, a, b].map(words_of)).collect();
        entry.examples.push((first, rows));
    }
}

/// Holds what a device makes of the operands of the first chunk against the entry of its form and
/// class: the emulator's digest where the record has one, else the GPU's.
///
/// # Errors
/// One sentence that says what is not as recorded, or what the device answers.
pub fn check_tiles(
    device: &mut dyn Device,
    form: &TileForm,
    operands: &[u64],
    entry: &TileEntry,
) -> Result<(), String> {
    let name = format!("{} {}", entry.form, entry.class);
    let ran = run_words(device, &form.program, operands);
    match ran.map_err(|error| format!("{name}: {error}"))? {
        Ran::Results(results) => {
            let found = Some(hexadecimal(chunk_digest(&results)));
            let known = if entry.differing > 0 { &entry.emulator } else { &entry.digests };
            let expected = known.first().cloned();
            if found == expected {
                return Ok(());
            }
            Err(format!("{name}: digest {found:?}, the record says {expected:?}"))
        }
        Ran::Unsupported if entry.unsupported => Ok(()),
        other => Err(format!("{name}: no longer runs: {other:?}")),
    }
}

fn hexadecimal(digest: u64) -> String {
    format!("{digest:016x}")
}

fn words_of(words: &[u64]) -> String {
    words.iter().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(" ")
}
