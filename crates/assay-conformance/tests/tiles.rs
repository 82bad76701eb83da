//! The emulator's tensor cores against what an H200 made of tiles: the first chunk of every form
//! and class.
//!
//! The example holds all chunks against the record, and brings it up to date:
//!
//!     cargo run --release -p assay-conformance --example conformance -- \
//!         judge records/h200-tiles.jsonl

use std::collections::HashSet;
use std::path::PathBuf;

use assay_conformance::{Class, TileForm, TileRecord, check_tiles, tile_forms};
use assay_device::emulator::{EmulatorDevice, EmulatorOptions, TensorModel};

/// Forms, by the start of their names, of which chunks differ, and why.
const KNOWN: &[(&str, &str)] = &[];

fn record() -> TileRecord {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../records/h200-tiles.jsonl");
    let text = std::fs::read_to_string(path).expect("the record is there");
    TileRecord::read(&text).expect("the record reads")
}

fn emulator(tensor_model: Option<TensorModel>) -> EmulatorDevice {
    let options = EmulatorOptions { architecture: 90, tensor_model, ..EmulatorOptions::default() };
    EmulatorDevice::new(options)
}

fn named(name: &str) -> Vec<TileForm> {
    tile_forms().into_iter().filter(|form| form.program.name == name).collect()
}

/// What is not as recorded of some forms, whose operands somebody may have changed; how many chunks
/// were held against the record.
fn problems(
    forms: &[TileForm],
    record: &TileRecord,
    model: Option<TensorModel>,
    change: fn(&mut [u64]),
) -> (Vec<String>, usize) {
    let mut device = emulator(model);
    let (mut problems, mut held) = (Vec::new(), 0);
    for (form, class) in forms.iter().flat_map(|form| Class::ALL.map(|class| (form, class))) {
        let entry = record.entry(&form.program.name, class);
        let Some(entry) = entry.filter(|entry| !entry.rejected) else { continue };
        let mut operands = form.operands(class, 0, record.head.seed);
        change(&mut operands);
        problems.extend(check_tiles(&mut device, form, &operands, entry).err());
        held += 1;
    }
    (problems, held)
}

#[test]
fn the_first_tiles_of_every_form_and_class_are_what_the_gpu_gave() {
    let (forms, record) = (tile_forms(), record());
    let (front, back) = forms.split_at(forms.len() / 2);
    let found = std::thread::scope(|scope| {
        let started =
            [front, back].map(|part| scope.spawn(|| problems(part, &record, None, |_| ())));
        started.map(|thread| thread.join().expect("no thread panics"))
    });
    let [(mut problems, held), (more, others)] = found;
    problems.extend(more);
    let shown = problems.join("\n");
    assert!(problems.is_empty(), "seed {}: {}\n{shown}", record.head.seed, problems.len());
    assert!(held + others >= 450, "only {held} and {others} entries fit forms");
}

#[test]
fn every_form_and_class_has_its_entry_and_every_entry_its_form() {
    let (forms, record) = (tile_forms(), record());
    for (form, class) in forms.iter().flat_map(|form| Class::ALL.map(|class| (form, class))) {
        let name = &form.program.name;
        let entry = record.entry(name, class);
        let entry = entry.unwrap_or_else(|| panic!("{name} {} is not recorded", class.name()));
        let tiles = entry.digests.len() * form.chunk_tiles() * Class::ALL.len();
        assert!(entry.rejected || tiles >= 102_400, "{name}: {tiles} tiles");
        assert!(!entry.unsupported, "{name} is not emulated");
    }
    let names: HashSet<&str> = forms.iter().map(|form| form.program.name.as_str()).collect();
    for entry in &record.entries {
        assert!(names.contains(entry.form.as_str()), "{} is no form", entry.form);
    }
}

#[test]
fn what_differs_is_listed_with_a_reason_and_what_is_listed_differs() {
    let record = record();
    for entry in record.entries.iter().filter(|entry| entry.differing > 0) {
        let known = KNOWN.iter().any(|(start, _)| entry.form.starts_with(start));
        assert!(known, "{} {}: {} chunks differ", entry.form, entry.class, entry.differing);
    }
    for (start, reason) in KNOWN {
        let mut own = record.entries.iter().filter(|entry| entry.form.starts_with(start));
        assert!(own.any(|entry| entry.differing > 0), "{start} agrees by now: {reason}");
    }
}

#[test]
fn another_chip_s_model_turns_the_check_red() {
    let forms = named("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    let record = record();
    for model in TensorModel::ALL {
        let (found, held) = problems(&forms, &record, Some(model), |_| ());
        assert_eq!(held, Class::ALL.len());
        // Blackwell sums what 16 bits multiply as Hopper does.
        let same = matches!(model, TensorModel::Hopper | TensorModel::Blackwell);
        assert_eq!(found.is_empty(), same, "{model:?}: {found:?}");
    }
}

#[test]
fn a_flipped_bit_of_an_operand_turns_the_check_red() {
    let forms = named("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32");
    let (found, held) = problems(&forms, &record(), None, |operands| operands[0] ^= 1);
    // The byte of B is zero for all eight columns in no class.
    assert_eq!((found.len(), held), (Class::ALL.len(), Class::ALL.len()), "{found:?}");
}
