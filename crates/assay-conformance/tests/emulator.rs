//! The emulator against what an H200 gave: the same programs, the same operands, pinned digests.
//!
//! `ASSAY_BLESS=1 cargo test -p assay-conformance --test emulator` takes forms that agree with the
//! GPU now into the record, and writes docs/conformance.md anew. What differs stays in the record
//! until it is measured again on a GPU: see the example `conformance`.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::PathBuf;

use assay_conformance::{
    Entry, Program, Ran, Record, check, explanation, page, programs, run, settled,
};
use assay_device::emulator::{EmulatorDevice, EmulatorOptions};
use assay_device::fault::{FaultInjecting, FaultPlan, FlippedBit};
use assay_device::{Device, DeviceError};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn record_path() -> PathBuf {
    repository().join("records/h200-conformance.jsonl")
}

fn record() -> Record {
    let text = std::fs::read_to_string(record_path()).expect("the record is there");
    Record::read(&text).expect("the record reads")
}

fn emulator() -> Box<dyn Device> {
    let options = EmulatorOptions { architecture: 90, ..EmulatorOptions::default() };
    Box::new(EmulatorDevice::new(options))
}

/// Runs programs and says what is not as their entries say; gives every result to `see`.
fn problems(
    device: &mut dyn Device,
    programs: &[Program],
    entries: &[Entry],
    seed: u64,
    mut see: impl FnMut(&Entry, &Program, &Ran),
) -> Result<Vec<String>, DeviceError> {
    let mut problems = Vec::new();
    let known: HashMap<&str, &Entry> =
        entries.iter().map(|entry| (entry.form.as_str(), entry)).collect();
    run(device, programs, seed, |program, inputs, ran| {
        if let Some(entry) = known.get(program.name.as_str()) {
            see(entry, program, &ran);
            problems.extend(check(entry, program, inputs, &ran).err());
        }
    })?;
    Ok(problems)
}

/// As [`problems`] over all programs, with one device a thread; the blessed entries too.
fn all_problems(programs: &[Program], record: &Record) -> (Vec<String>, Vec<Entry>) {
    let middle = programs.len() / 2;
    let halves = [&programs[..middle], &programs[middle..]];
    let found = std::thread::scope(|scope| {
        let started = halves.map(|part| {
            scope.spawn(move || {
                let mut blessed = Vec::new();
                let (entries, seed) = (&record.entries, record.head.seed);
                let found =
                    problems(&mut *emulator(), part, entries, seed, |entry, program, ran| {
                        blessed.push(settled(entry, program, ran));
                    });
                (found.expect("the emulator runs"), blessed)
            })
        });
        started.map(|thread| thread.join().expect("no thread panics"))
    });
    let [(mut problems, mut blessed), (more, others)] = found;
    problems.extend(more);
    blessed.extend(others);
    (problems, blessed)
}

#[test]
fn the_emulator_gives_what_the_gpu_gave_and_the_page_says_so() {
    let (programs, left_out) = programs();
    let mut record = record();
    let (mut problems, blessed) = all_problems(&programs, &record);
    let blesses = std::env::var_os("ASSAY_BLESS").is_some();
    if blesses && blessed.len() == record.entries.len() {
        record.entries = blessed;
        std::fs::write(record_path(), record.write().expect("it writes")).expect("records/");
        // The next run, without the blessing, says whether all is well.
        problems.clear();
    }
    let shown = problems.iter().take(120).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(problems.is_empty(), "seed {}: {}\n{shown}", record.head.seed, problems.len());
    let known: HashSet<&str> = record.entries.iter().map(|entry| entry.form.as_str()).collect();
    let measured = programs.iter().filter(|program| known.contains(&*program.name)).count();
    assert_eq!(record.entries.len(), measured, "the record has forms that no program is made of");
    // What no GPU has run yet is held against nothing, and said.
    if measured < programs.len() {
        let count = programs.len() - measured;
        let _ = std::io::stderr().write_all(format!("NOT MEASURED {count} forms\n").as_bytes());
    }

    let new = page(&record, &programs, &left_out);
    let path = repository().join("docs/conformance.md");
    if blesses {
        std::fs::write(&path, &new).expect("docs/ can be written");
    }
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = new.lines().zip(old.lines()).find(|(new, old)| new != old);
    let hint = "ASSAY_BLESS=1 cargo test -p assay-conformance --test emulator";
    assert_eq!(differs, None, "docs/conformance.md is of another record: {hint}");
    assert_eq!(new.lines().count(), old.lines().count(), "{hint}");
}

#[test]
fn at_least_300_forms_agree_and_every_difference_has_a_reason() {
    let record = record();
    let agree = |entry: &&Entry| !entry.rejected && !entry.unsupported && entry.differing == 0;
    assert!(record.entries.iter().filter(agree).count() >= 300);
    for entry in &record.entries {
        if entry.differing > 0 {
            assert!(
                explanation(&entry.form).is_some(),
                "{} differs and nobody says why",
                entry.form
            );
        }
        let known = explanation(&entry.form).is_some();
        let worst = entry.worst.filter(|_| !known).into_iter().chain(entry.emulator_worst);
        for worst in worst {
            assert!(worst <= 1.0, "{}: {worst} times its bound", entry.form);
        }
    }
}

/// Whether the emulator, too, refuses a form that this GPU's compiler rejects.
fn refused_everywhere(name: &str) -> bool {
    // Without `.sync` they went with sm_70.
    let unsynchronised = name.starts_with("shfl.") || name.starts_with("vote.");
    // Matrices of 8 bits and fewer, of sm_100 and later.
    let narrow_matrix = name.contains("matrix.sync") && name.contains(".b8");
    // A scale without its modifier, or the modifier without a scale.
    let scale = name.contains(".bf16x2.") && name.contains("scaled") != name.ends_with("with 2");
    unsynchronised || narrow_matrix || scale
}

#[test]
fn what_this_gpus_compiler_rejects_runs_on_the_emulator_or_is_named_here() {
    let record = record();
    let rejected = |form: &str| record.entry(form).is_some_and(|entry| entry.rejected);
    let all = programs().0;
    let chosen: Vec<Program> = all.into_iter().filter(|program| rejected(&program.name)).collect();
    let mut refused = Vec::new();
    run(&mut *emulator(), &chosen, record.head.seed, |program, _, ran| {
        if !matches!(ran, Ran::Results(_)) {
            refused.push(program.name.clone());
        }
    })
    .expect("the emulator runs");
    let surprises: Vec<&String> = refused.iter().filter(|name| !refused_everywhere(name)).collect();
    assert!(surprises.is_empty(), "{surprises:#?}");
    let (all, refused) = (chosen.len(), refused.len());
    assert!(all >= 500 && refused <= 100, "{refused} of {all}");
}

/// The program and the entry of a form.
fn one(form: &str) -> (Program, Entry) {
    let program = programs().0.into_iter().find(|program| program.name == form).expect("a form");
    let entry = record().entry(form).expect("an entry").clone();
    (program, entry)
}

#[test]
fn one_flipped_bit_of_one_result_turns_the_check_red() {
    for form in ["add.rn.f32", "prmt.b32", "ld.global.v4.u32", "ex2.approx.f32"] {
        let (program, entry) = one(form);
        let clean = std::slice::from_ref(&program);
        let entries = std::slice::from_ref(&entry);
        let found = problems(&mut *emulator(), clean, entries, 1, |_, _, _| ()).expect("it runs");
        assert!(found.is_empty(), "{found:?}");
        // The lowest bit of an exact result, and the exponent of a bounded one.
        let bit = if form.contains("approx") { 64 * 900 + 27 } else { 64 * 900 };
        let plan = FaultPlan { flip: Some(FlippedBit { read: 1, bit }), ..FaultPlan::default() };
        let options = EmulatorOptions { architecture: 90, ..EmulatorOptions::default() };
        let mut wrong = FaultInjecting::new(EmulatorDevice::new(options), plan);
        let found = problems(&mut wrong, clean, entries, 1, |_, _, _| ()).expect("it runs");
        assert_eq!(found.len(), 1, "a flipped bit of {form} went unseen");
    }
}

#[test]
fn another_rounding_turns_the_check_red() {
    for (form, wrong) in [("add.rn.f32", "add.rz.f32"), ("cvt.rn.bf16.f32", "cvt.rz.bf16.f32")] {
        let (program, entry) = one(form);
        let (other, _) = one(wrong);
        let mut found = Vec::new();
        run(&mut *emulator(), std::slice::from_ref(&other), 1, |_, inputs, ran| {
            found.extend(check(&entry, &program, inputs, &ran).err());
        })
        .expect("it runs");
        assert_eq!(found.len(), 1, "{wrong} passed as {form}");
    }
}

/// Says past the harness that the GPU's test did not run. `ASSAY_REQUIRE_GPU` makes that a failure.
fn skipped(reason: &str) {
    assert!(std::env::var_os("ASSAY_REQUIRE_GPU").is_none(), "{reason}");
    let line = format!("SKIPPED the_gpu_still_gives_what_it_gave_gpu: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[test]
fn the_gpu_still_gives_what_it_gave_gpu() {
    let mut device = match assay_device::open("cuda:0") {
        Ok(device) => device,
        Err(error) => {
            skipped(&error.to_string());
            return;
        }
    };
    let record = record();
    if device.facts().architecture != record.head.architecture {
        return skipped(&device.facts().architecture);
    }
    let (programs, _) = programs();
    let mut entries = record.entries.clone();
    for entry in &mut entries {
        // Of the GPU its own digests are asked, not what the emulator makes of them.
        (entry.differing, entry.unsupported) = (0, false);
    }
    let found = problems(&mut *device, &programs, &entries, record.head.seed, |_, _, _| ());
    let found = found.expect("the GPU runs");
    assert!(found.is_empty(), "{}\n{}", found.len(), found.join("\n"));
}
