//! A fuzzer inside the tests: images are built, then damaged as a seed says, and read. Nothing may
//! panic, and an error must name its field.
//!
//! `ASSAY_FUZZ_RUNS=1000000 cargo test --release -p assay-image --test fuzz` runs a million;
//! `ASSAY_FUZZ_SEED` continues elsewhere. The corpus grows by what the tests of `agreement`
//! compiled, where they ran before.

#![expect(clippy::print_stdout, reason = "a seed and its counts are printed")]

mod common;

use std::panic::catch_unwind;
use std::path::Path;

use common::build::corpus;
use common::random::Random;

/// Executions where nothing asks for more.
const RUNS: u64 = 20_000;
/// The largest image that is mutated: a large one takes long to read.
const LARGEST: usize = 1 << 17;

fn setting(name: &str, default: u64) -> u64 {
    let Some(value) = std::env::var_os(name) else { return default };
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{name} is no number"))
}

/// Images that compilers made: those of `tests/corpus`, and those of other tests.
fn compiled() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("assay-image");
    let mut folders = vec![root, Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")];
    let mut images = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                images.push(bytes);
            }
        }
    }
    images.retain(|bytes| bytes.len() <= LARGEST && assay_image::read(bytes).is_ok());
    images.sort();
    images
}

const INTERESTING: [u64; 12] =
    [0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX / 2, u64::MAX];

fn mutate(image: &mut Vec<u8>, random: &mut Random) {
    if image.is_empty() {
        return;
    }
    let at = random.below(image.len());
    match random.below(7) {
        0 => image[at] ^= 1 << random.below(8),
        1 => image[at] = random.next() as u8,
        2 => {
            let value = INTERESTING[random.below(INTERESTING.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random.below(4)];
            for (byte, value) in image[at..].iter_mut().zip(&value[..width]) {
                *byte = *value;
            }
        }
        3 => image.truncate(at),
        4 => {
            let end = (at + 1 + random.below(64)).min(image.len());
            image.drain(at..end);
        }
        5 => {
            let end = (at + 1 + random.below(64)).min(image.len());
            let piece = image[at..end].to_vec();
            let to = random.below(image.len());
            image.splice(to..to, piece);
        }
        _ => {
            // A word of eight bytes taken from elsewhere: offsets and sizes that exist.
            let from = random.below(image.len());
            let word: Vec<u8> = image[from..].iter().take(8).copied().collect();
            for (byte, value) in image[at..].iter_mut().zip(word) {
                *byte = value;
            }
        }
    }
}

#[test]
fn damaged_images_are_errors_that_name_a_field_and_never_panics() {
    let (runs, seed) = (setting("ASSAY_FUZZ_RUNS", RUNS), setting("ASSAY_FUZZ_SEED", 1));
    let mut images = corpus();
    images.extend(compiled());
    println!("{runs} runs over {} images, seed {seed}", images.len());
    let mut random = Random::new(seed);
    let (mut errors, mut read) = (0_u64, 0_u64);
    for run in 0..runs {
        let mut image = images[random.below(images.len())].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut image, &mut random);
        }
        let result = catch_unwind(|| assay_image::read(&image))
            .unwrap_or_else(|_| panic!("run {run} of seed {seed} panics"));
        match result {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(!error.field.is_empty() && !error.detail.is_empty(), "run {run}: {error}");
                errors += 1;
            }
        }
    }
    println!("{errors} errors, {read} still read");
    assert!(runs < 1000 || (errors > runs / 100 && read > runs / 100), "the mutations reach both");
}
