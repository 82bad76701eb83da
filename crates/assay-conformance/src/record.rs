//! What a real GPU gave, pinned: a line for the device, then a line for each program.

use assay_device::{Device, DeviceError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::outcome::{Comparison, compare, digest, worst};
use crate::program::{Check, Program};
use crate::run::{Ran, run, run_grouped};

/// The version of the file.
const SCHEMA: u32 = 1;

/// Where a record is from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The version of the file: 1.
    pub schema: u32,
    /// The device's name.
    pub device: String,
    /// Its architecture.
    pub architecture: String,
    /// Its driver.
    pub driver: String,
    /// When it ran, in UTC.
    pub date: String,
    /// The command.
    pub command: String,
    /// The seed of all operands.
    pub seed: u64,
}

impl Head {
    /// The head of what a device gives now.
    pub fn of(device: &dyn Device, date: &str, command: &str, seed: u64) -> Head {
        let facts = device.facts();
        Head {
            schema: SCHEMA,
            device: facts.name.clone(),
            architecture: facts.architecture.clone(),
            driver: facts.driver.clone().unwrap_or_default(),
            date: date.to_string(),
            command: command.to_string(),
            seed,
        }
    }
}

/// What the device and the emulator gave for one program.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The program's name.
    pub form: String,
    /// How many cases ran.
    pub cases: usize,
    /// The digest of the device's results, NaN payloads left out; of exact programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The device's largest error as a part of the stated bound; of approximate programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<f64>,
    /// The emulator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator_worst: Option<f64>,
    /// Cases for which the ISA states no bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unstated: usize,
    /// The device's compiler rejects the form.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rejected: bool,
    /// The device's compiler crashes on the form.
    #[serde(default, skip_serializing_if = "is_false")]
    pub crashes: bool,
    /// The emulator does not run the form.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unsupported: bool,
    /// Cases in which the emulator gives a NaN with another payload or sign.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nan_payloads: usize,
    /// Cases in which it gives something else.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub differing: usize,
    /// The digest of the emulator's results, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<String>,
    /// Some of the cases that differ: operands, the device's results, the emulator's, in
    /// hexadecimal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<[String; 3]>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A record: where it is from, and an entry for each thing that ran, in the order of its list.
#[derive(Clone, PartialEq, Debug)]
pub struct Record<E = Entry> {
    /// Where it is from.
    pub head: Head,
    /// One entry for each program, or for each class of tiles or transfer.
    pub entries: Vec<E>,
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A line is not what this version writes.
    #[error("line {line} of the record: {source}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Another version wrote it.
    #[error("the record has schema {found}, and this version reads {SCHEMA}")]
    Schema {
        /// The version found.
        found: u32,
    },
    /// Not even a head.
    #[error("the record is empty")]
    Empty,
}

impl<E: Serialize + DeserializeOwned> Record<E> {
    /// Reads a record.
    ///
    /// # Errors
    /// [`RecordError`] with the line.
    pub fn read(text: &str) -> Result<Record<E>, RecordError> {
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let (line, head) = lines.next().ok_or(RecordError::Empty)?;
        let head: Head =
            serde_json::from_str(head).map_err(|source| RecordError::Line { line, source })?;
        if head.schema != SCHEMA {
            return Err(RecordError::Schema { found: head.schema });
        }
        let entries = lines.map(|(line, text)| {
            serde_json::from_str(text).map_err(|source| RecordError::Line { line, source })
        });
        Ok(Record { head, entries: entries.collect::<Result<_, _>>()? })
    }

    /// Writes a record: one line for the head and one for each entry.
    ///
    /// # Errors
    /// Never, in practice: all its parts have a form in JSON.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string(&self.head)? + "\n";
        for entry in &self.entries {
            text.push_str(&serde_json::to_string(entry)?);
            text.push('\n');
        }
        Ok(text)
    }
}

impl Record {
    /// The entry of a form.
    pub fn entry(&self, form: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.form == form)
    }
}

/// Runs programs on a device and on the emulator, `kernels` in one module, and gives `each` how
/// they compare.
///
/// # Errors
/// What either device answers, other than that it rejects or does not support a program.
pub fn measure(
    device: &mut dyn Device,
    emulator: &mut dyn Device,
    programs: &[Program],
    kernels: usize,
    seed: u64,
    mut each: impl FnMut(Entry),
) -> Result<(), DeviceError> {
    for group in programs.chunks(kernels.max(1)) {
        let mut emulated = Vec::new();
        run(emulator, group, seed, |_, _, ran| emulated.push(ran))?;
        let mut emulated = emulated.into_iter();
        run_grouped(device, group, kernels, seed, |program, inputs, ran| {
            let emulated = emulated.next().unwrap_or(Ran::Unsupported);
            each(entry(program, inputs, &ran, &emulated));
        })?;
    }
    Ok(())
}

fn entry(program: &Program, inputs: &[u64], device: &Ran, emulator: &Ran) -> Entry {
    let mut entry = Entry { form: program.name.clone(), cases: program.cases, ..Entry::default() };
    let Ran::Results(real) = device else {
        entry.rejected = true;
        return entry;
    };
    match program.check {
        Check::Bounded => {
            let (largest, unstated) = worst(program, inputs, real);
            (entry.worst, entry.unstated) = (Some(rounded(largest)), unstated);
        }
        Check::Exact | Check::Runs => entry.digest = Some(hexadecimal(digest(program, real))),
    }
    let Ran::Results(emulated) = emulator else {
        entry.unsupported = true;
        // What one warp got, for whoever teaches it to the emulator.
        let operands = inputs.chunks(program.inputs.len().max(1));
        let rows = operands.zip(real.chunks(program.outputs.len().max(1))).take(WARP);
        entry.examples = rows
            .map(|(operands, got)| [words_of(operands), words_of(got), String::new()])
            .collect();
        return entry;
    };
    if program.check == Check::Bounded {
        entry.emulator_worst = Some(rounded(worst(program, inputs, emulated).0));
        return entry;
    }
    let Comparison { nan_payloads, differing, examples } = compare(program, inputs, real, emulated);
    (entry.nan_payloads, entry.differing) = (nan_payloads, differing);
    if differing > 0 {
        entry.emulator = Some(hexadecimal(digest(program, emulated)));
        let shown = examples.iter().map(|example| {
            [&example.operands, &example.first, &example.second].map(|words| words_of(words))
        });
        entry.examples = shown.collect();
    }
    entry
}

/// Lanes of a warp.
const WARP: usize = 32;

/// Four digits say how much of a bound was used, and infinity has no form in JSON.
fn rounded(error: f64) -> f64 {
    (error.min(1e9) * 1e4).ceil() / 1e4
}

fn hexadecimal(digest: u64) -> String {
    format!("{digest:016x}")
}

fn words_of(words: &[u64]) -> String {
    words.iter().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(" ")
}

/// Holds what a device gave for a program against its entry of the record.
///
/// # Errors
/// One sentence that says what is not as recorded.
pub fn check(entry: &Entry, program: &Program, inputs: &[u64], ran: &Ran) -> Result<(), String> {
    let name = &program.name;
    if entry.cases != program.cases {
        return Err(format!("{name}: {} cases, {} in the record", program.cases, entry.cases));
    }
    let Ran::Results(results) = ran else {
        let expected = entry.rejected || entry.unsupported;
        return if expected { Ok(()) } else { Err(format!("{name}: no longer runs: {ran:?}")) };
    };
    if entry.rejected {
        return Ok(());
    }
    if program.check == Check::Bounded {
        let (largest, _) = worst(program, inputs, results);
        // A GPU may leave its maker's bound; the page says so, and it may not get worse.
        let within = largest <= entry.worst.unwrap_or(1.0).max(1.0);
        let message = || format!("{name}: an error of {largest} times the stated bound");
        return if within { Ok(()) } else { Err(message()) };
    }
    let found = Some(hexadecimal(digest(program, results)));
    let expected = if entry.differing > 0 { &entry.emulator } else { &entry.digest };
    if &found == expected {
        return Ok(());
    }
    Err(if entry.differing > 0 && found == entry.digest {
        format!("{name}: agrees with the device now, and the record says that it differs")
    } else {
        format!("{name}: its results have the digest {found:?}, the record says {expected:?}")
    })
}

/// Brings an entry up to an emulator that agrees with the device now.
pub fn settled(entry: &Entry, program: &Program, ran: &Ran) -> Entry {
    let Ran::Results(results) = ran else { return entry.clone() };
    let agrees = entry.digest == Some(hexadecimal(digest(program, results)));
    if !agrees {
        return entry.clone();
    }
    Entry {
        unsupported: false,
        differing: 0,
        emulator: None,
        examples: Vec::new(),
        ..entry.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_it_was_written() {
        let head = Head {
            schema: SCHEMA,
            device: "a".into(),
            architecture: "sm_90".into(),
            driver: "b".into(),
            date: "c".into(),
            command: "d".into(),
            seed: 7,
        };
        let examples = vec![["1 2".to_string(), "3".to_string(), "4".to_string()]];
        let entry = Entry {
            form: "add.f32".into(),
            cases: 9,
            worst: Some(0.3),
            differing: 1,
            examples,
            ..Entry::default()
        };
        let record = Record { head, entries: vec![entry] };
        let text = record.write().unwrap();
        assert_eq!(Record::read(&text).unwrap(), record);
        let fails = |text: &str| Record::<Entry>::read(text).is_err();
        assert!(fails(""));
        assert!(fails(&text.replace("\"schema\":1", "\"schema\":2")));
        assert!(fails(&text.replace("cases", "crates")));
    }
}
