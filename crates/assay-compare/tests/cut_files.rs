//! Files that were cut off, at every byte: what is whole is compared, what is not says so, and
//! nothing panics.

mod scratch;

use std::io::{Cursor, Write};

use assay_compare::{ArrayFile, Options, compare_sources};
use assay_record::Outcome;
use scratch::Scratch;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn npy(values: &[f32]) -> Vec<u8> {
    let text =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len());
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{text:<117}\n").bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn values(count: usize, factor: f32) -> Vec<f32> {
    (0..count).map(|at| (at as f32 + 1.0) * factor).collect()
}

const COUNTS: [(&str, usize); 3] = [("a", 40), ("b", 7), ("c", 90)];

/// An archive of three arrays. A `piped` one has its sizes behind its members, as one has that was
/// written where nobody can go back.
fn archive(method: CompressionMethod, large: bool, piped: bool) -> Vec<u8> {
    let options = SimpleFileOptions::default().compression_method(method).large_file(large);
    let mut bytes = Vec::new();
    if piped {
        let mut archive = ZipWriter::new_stream(&mut bytes);
        for (name, count) in COUNTS {
            archive.start_file(format!("{name}.npy"), options).expect("started");
            archive.write_all(&npy(&values(count, 0.5))).expect("written");
        }
        archive.finish().expect("finished");
        return bytes;
    }
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, count) in COUNTS {
        archive.start_file(format!("{name}.npy"), options).expect("started");
        archive.write_all(&npy(&values(count, 0.5))).expect("written");
    }
    archive.finish().expect("finished").into_inner()
}

fn find(bytes: &[u8], what: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|&at| bytes[at..].starts_with(what)).collect()
}

/// How each array of a file compares to what it should be: the elements that hold, if any.
fn held(file: &ArrayFile, scale: f32) -> Vec<(String, Option<(u64, Outcome)>)> {
    let one = |name: &str| {
        let count = COUNTS.iter().find(|(known, _)| *known == name)?.1;
        let right = Scratch::of("right.npy", &npy(&values(count, scale)));
        let mut right = ArrayFile::open(&right.0).ok()?.source("", None).ok()?;
        let mut source = file.source(name, None).ok()?;
        let found = compare_sources(&mut *right, &mut *source, &Options::default()).ok()?;
        assert!(found.outcome != Outcome::Pass || found.identical == count as u64, "{name}");
        assert_eq!(found.identical, found.compared, "{name}: what is read is right");
        Some((found.identical, found.outcome))
    };
    file.entries().iter().map(|entry| (entry.name.clone(), one(&entry.name))).collect()
}

#[test]
fn an_archive_cut_at_any_byte_gives_every_whole_array_and_says_that_it_was_cut() {
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        for (large, piped) in [(false, false), (true, false), (false, true), (true, true)] {
            let bytes = archive(method, large, piped);
            let kind = format!("{method} {large} {piped}");
            let starts = find(&bytes, b"PK\x03\x04");
            let list = find(&bytes, b"PK\x01\x02")[0];
            assert_eq!(starts.len(), 3, "{kind}");
            for cut in 0..bytes.len() {
                let scratch = Scratch::of("cut", &bytes[..cut]);
                let Ok(file) = ArrayFile::open(&scratch.0) else {
                    assert!(cut < starts[0] + 30 + 5 + 20, "{kind} at {cut}");
                    continue;
                };
                assert!(file.damage().is_some(), "{kind} at {cut}");
                let found = held(&file, 0.5);
                // Where a member ends the next begins, or the list.
                let ends = [starts[1], starts[2], list];
                for (at, (name, count)) in COUNTS.iter().enumerate() {
                    if ends[at] > cut {
                        continue;
                    }
                    let whole = (name.to_string(), Some((*count as u64, Outcome::Pass)));
                    assert_eq!(found[at], whole, "{kind} at {cut}");
                }
            }
            let scratch = Scratch::of("whole", &bytes);
            let file = ArrayFile::open(&scratch.0).expect("opened");
            assert!(file.damage().is_none() && held(&file, 0.5).len() == 3, "{kind}");
        }
    }
}

#[test]
fn the_last_array_of_a_cut_archive_is_compared_as_far_as_it_goes() {
    for piped in [false, true] {
        let bytes = archive(CompressionMethod::Stored, true, piped);
        let list = find(&bytes, b"PK\x01\x02")[0];
        let descriptor = if piped { 24 } else { 0 };
        let scratch = Scratch::of("part", &bytes[..list - descriptor - 42]);
        let found = held(&ArrayFile::open(&scratch.0).expect("opened"), 0.5);
        assert_eq!(found[2], ("c".to_owned(), Some((79, Outcome::Unproven))), "{piped}");
    }
}

#[test]
fn an_archive_whose_writer_was_stopped_gives_what_it_had_written() {
    // numpy writes a header without sizes, and comes back to it when the array is complete.
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let mut bytes = archive(method, true, false);
        let (last, list) = (find(&bytes, b"PK\x03\x04")[2], find(&bytes, b"PK\x01\x02")[0]);
        bytes.truncate(list - 8);
        bytes[last + 14..last + 18].fill(0);
        let extra = find(&bytes[last..], &[1, 0, 16, 0])[0] + last;
        bytes[extra + 4..extra + 20].fill(0);
        let scratch = Scratch::of("stopped", &bytes);
        let found = held(&ArrayFile::open(&scratch.0).expect("opened"), 0.5);
        assert_eq!(found[1], ("b".to_owned(), Some((7, Outcome::Pass))), "{method}");
        let (elements, outcome) = found[2].1.expect("compared");
        assert!(elements > 60 && outcome == Outcome::Unproven, "{method}: {elements}");
    }
}

#[test]
fn damage_inside_a_cut_archive_is_found_by_its_checksums() {
    for piped in [false, true] {
        let mut bytes = archive(CompressionMethod::Stored, false, piped);
        bytes.truncate(find(&bytes, b"PK\x01\x02")[0]);
        let value = find(&bytes, &3.5f32.to_le_bytes())[0];
        bytes[value] ^= 1;
        let scratch = Scratch::of("damaged", &bytes);
        let file = ArrayFile::open(&scratch.0).expect("opened");
        let mut source = file.source("a", None).expect("a source");
        let mut out = Vec::new();
        let said = source.read(0, 40, &mut out).expect_err("damaged").to_string();
        assert!(said.contains("CRC-32"), "{said}");
    }
}

#[test]
fn other_files_cut_at_any_byte_never_panic_and_never_pass() {
    let array = npy(&values(40, 0.5));
    let header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[40],\"data_offsets\":[0,160]}}";
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header.bytes());
    tensors.extend(&array[128..]);
    for (name, bytes) in [("", &array), ("a", &tensors)] {
        let whole = Scratch::of("all", bytes);
        let whole = ArrayFile::open(&whole.0).expect("opened");
        let mut compared = 0;
        for cut in 0..bytes.len() {
            let scratch = Scratch::of("cut-other", &bytes[..cut]);
            let Ok(file) = ArrayFile::open(&scratch.0) else { continue };
            let Ok(mut source) = file.source(name, None) else { continue };
            let mut right = whole.source(name, None);
            let Ok(right) = &mut right else { panic!("a source") };
            if let Ok(found) = compare_sources(&mut **right, &mut *source, &Options::default()) {
                assert_eq!(found.outcome, Outcome::Unproven, "{cut}");
                compared += 1;
            }
        }
        assert_eq!(compared, 160 - 4, "from the first whole element on");
    }
}
