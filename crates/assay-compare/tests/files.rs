//! Archives of arrays: members by name, compressed ones refused with what to do, others kept.

use std::fs::File;
use std::io::Write;

use assay_compare::{ArrayFile, Options, compare_sources};
use assay_num::Format;
use assay_record::Outcome;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A `.npy` array of `f32`.
fn npy(values: &[f32]) -> Vec<u8> {
    let shape = format!("({},)", values.len());
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(10 + length - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

#[test]
fn the_arrays_of_an_archive_are_read_by_name_and_a_broken_one_does_not_hide_the_others() {
    let name = format!("assay-files-{}.npz", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut archive = ZipWriter::new(File::create(&path).expect("created"));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in [
        ("a.npy", npy(&[1.0, 2.0, 3.0])),
        ("b.npy", npy(&[1.0, 2.0, 3.5])),
        ("c.npy", b"no array".to_vec()),
    ] {
        archive.start_file(name, stored).expect("started");
        archive.write_all(&bytes).expect("written");
    }
    archive.finish().expect("finished");
    let file = ArrayFile::open(&path).expect("opened");
    let names: Vec<&str> = file.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(file.entries()[0].layout().expect("a layout"), (Format::F32, &[3][..]));
    assert!(file.entries()[2].layout().expect_err("broken").to_string().contains("no .npy"));
    let source = |name| file.source(name, None).expect("a source");
    let held = |one, other| {
        let (mut one, mut other) = (source(one), source(other));
        compare_sources(&mut *one, &mut *other, &Options::default()).expect("compared")
    };
    assert_eq!(held("a", "a").outcome, Outcome::Pass);
    let different = held("a", "b");
    assert_eq!((different.outside, different.first_outside), (1, Some(vec![2])));
    assert!(file.source("d", None).err().expect("missing").to_string().contains("no array `d`"));
    let refused = file.source("a", Some(Format::F16)).err().expect("refused");
    assert!(refused.to_string().contains("take 32 bits"), "{refused}");
    std::fs::remove_file(path).expect("removed");
}
