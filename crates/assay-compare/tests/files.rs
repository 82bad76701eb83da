//! Files of arrays: what numpy and safetensors write is read, compressed or not; what is damaged or
//! lies about its size is compared as far as it goes, or refused with the reason.

mod scratch;

use std::fs::{self, File};
use std::io::Write;

use assay_compare::{ArrayFile, CompareError, NpzWriter, Options, Tensor, compare_sources};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::{Comparison, Outcome};
use scratch::Scratch;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const SEED: u64 = 7;

trait Open {
    fn open(&self) -> ArrayFile;
}

impl Open for Scratch {
    fn open(&self) -> ArrayFile {
        ArrayFile::open(&self.0).expect("opened")
    }
}

/// A `.npy` array of any type.
fn npy(kind: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(10 + length - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(data);
    bytes
}

fn floats(values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy("<f4", "False", &format!("({},)", values.len()), &data)
}

/// Values that compress a little, as outputs of kernels do.
fn values(count: usize) -> Vec<f32> {
    let mut random = SplitMix64::new(SEED);
    (0..count).map(|_| random.below(1 << 20) as f32 / 1024.0).collect()
}

/// An archive; `large` writes sizes of 64 bits.
fn archive(method: CompressionMethod, large: bool, members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(method)
        .compression_level((method == CompressionMethod::Deflated).then_some(1))
        .large_file(large);
    for (name, bytes) in members {
        archive.start_file(*name, options).expect("started");
        archive.write_all(bytes).expect("written");
    }
    archive.finish().expect("finished").into_inner()
}

fn held(one: (&ArrayFile, &str), other: (&ArrayFile, &str)) -> Result<Comparison, CompareError> {
    let source = |(file, name): (&ArrayFile, &str)| file.source(name, None).expect("a source");
    compare_sources(&mut *source(one), &mut *source(other), &Options::default())
}

fn reason(error: &CompareError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    format!("{error}: {}", source.unwrap_or_default())
}

#[test]
fn the_arrays_of_an_archive_are_read_by_name_and_a_broken_one_does_not_hide_the_others() {
    let (a, b) = (floats(&[1.0, 2.0, 3.0]), floats(&[1.0, 2.0, 3.5]));
    let members: [(&str, &[u8]); 3] = [("a.npy", &a), ("b.npy", &b), ("c.npy", b"no array")];
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let scratch = Scratch::of("names", &archive(method, false, &members));
        let file = scratch.open();
        let names: Vec<&str> = file.entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(file.entries()[0].layout().expect("a layout"), (Format::F32, &[3][..]));
        assert!(file.entries()[2].layout().expect_err("broken").to_string().contains("no .npy"));
        assert_eq!(held((&file, "a"), (&file, "a")).expect("compared").outcome, Outcome::Pass);
        let different = held((&file, "a"), (&file, "b")).expect("compared");
        assert_eq!((different.outside, different.first_outside), (1, Some(vec![2])));
        let missing = file.source("d", None).err().expect("missing");
        assert!(missing.to_string().contains("no array `d`"));
        let refused = file.source("a", Some(Format::F16)).err().expect("refused");
        assert!(refused.to_string().contains("take 32 bits"), "{refused}");
    }
}

#[test]
fn a_compressed_array_of_many_pieces_is_the_one_that_is_not_compressed() {
    let array = floats(&values(1_200_000));
    let mut wrong = array.clone();
    let last = wrong.len() - 2;
    wrong[last] ^= 1;
    let members: [(&str, &[u8]); 1] = [("a.npy", &array)];
    let bytes = archive(CompressionMethod::Deflated, true, &members);
    assert!(bytes.len() < array.len() * 9 / 10, "it is compressed");
    let packed = Scratch::of("packed", &bytes);
    let (plain, wrong) = (Scratch::of("plain.npy", &array), Scratch::of("wrong.npy", &wrong));
    let (plain, wrong, packed) = (plain.open(), wrong.open(), packed.open());
    assert_eq!(held((&plain, ""), (&packed, "a")).expect("compared").outcome, Outcome::Pass);
    let different = held((&packed, "a"), (&wrong, "")).expect("compared");
    assert_eq!(different.first_different, Some(vec![1_199_999]));
}

#[test]
fn a_damaged_stream_is_compared_as_far_as_it_goes() {
    let array = floats(&values(1_200_000));
    let plain = Scratch::of("whole.npy", &array);
    let cut = Scratch::of("cut.npy", &array[..array.len() - 42]);
    let comparison = held((&plain.open(), ""), (&cut.open(), "")).expect("compared");
    assert_eq!((comparison.compared, comparison.outcome), (1_199_989, Outcome::Unproven));
    let whole = archive(CompressionMethod::Deflated, false, &[("a.npy", &array)]);
    // What goes wrong inside may decode to something, and only the checksum tells.
    let mut damaged = whole.clone();
    let late = damaged.len() / 20 * 19;
    damaged[late..late + 4096].fill(0);
    let scratch = Scratch::of("damaged", &damaged);
    let comparison = held((&plain.open(), ""), (&scratch.open(), "a")).expect("compared");
    assert!(comparison.broke_off.is_some() && !comparison.passes());
    // A stream of which the list states less than there is ends early.
    let mut short = whole;
    let list = short.windows(4).rposition(|four| four == b"PK\x01\x02").expect("a list");
    short[list + 20..list + 24].copy_from_slice(&(late as u32).to_le_bytes());
    let scratch = Scratch::of("short", &short);
    let comparison = held((&plain.open(), ""), (&scratch.open(), "a")).expect("compared");
    let part = comparison.compared as f64 / 1_200_000.0;
    assert!((0.9..0.96).contains(&part), "{part}");
    assert_eq!(comparison.identical, comparison.compared);
    assert_eq!(comparison.outcome, Outcome::Unproven);
}

#[test]
fn a_checksum_that_does_not_hold_is_said_compressed_or_not() {
    let array = floats(&values(100));
    let plain = Scratch::of("sum.npy", &array);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let mut bytes = archive(method, false, &[("a.npy", &array)]);
        let scratch = Scratch::of("sum", &bytes);
        assert_eq!(
            held((&plain.open(), ""), (&scratch.open(), "a")).expect("compared").outcome,
            Outcome::Pass
        );
        // The list of members states the checksum that counts.
        let list = bytes.windows(4).rposition(|four| four == b"PK\x01\x02").expect("a list");
        bytes[list + 16] ^= 1;
        let scratch = Scratch::of("sum", &bytes);
        let error = held((&plain.open(), ""), (&scratch.open(), "a")).expect_err("refused");
        assert!(reason(&error).contains("CRC-32"), "{}", reason(&error));
    }
}

/// An archive whose list states another size of its only member, before compression.
fn lying(array: &[u8], size: u32) -> Vec<u8> {
    let mut bytes = archive(CompressionMethod::Deflated, false, &[("a.npy", array)]);
    let list = bytes.windows(4).rposition(|four| four == b"PK\x01\x02").expect("a list");
    bytes[list + 24..list + 28].copy_from_slice(&size.to_le_bytes());
    bytes
}

#[test]
fn sizes_that_lie_are_found_and_take_no_memory() {
    let zeros = vec![0u8; 1 << 22];
    // A bomb: the shape claims little, the stream holds a thousand times its size.
    let bomb = npy("<f4", "False", "(4,)", &zeros);
    let small = npy("<f4", "False", "(4,)", &zeros[..16]);
    let plain = Scratch::of("four.npy", &small);
    let cases = [
        ("more than its shape", lying(&bomb, bomb.len() as u32), "takes 16 bytes of f32"),
        ("more than stated", lying(&bomb, small.len() as u32), "go on after"),
        ("less than stated", lying(&small, u32::MAX - 1), "takes 16 bytes of f32"),
        ("less than a header", lying(&small, 20), "its header takes"),
    ];
    for (name, bytes, expected) in cases {
        let scratch = Scratch::of("lying", &bytes);
        let file = scratch.open();
        let said = match file.source("a", None) {
            Err(error) => error.to_string(),
            Ok(mut source) => {
                let mut one = plain.open().source("", None).expect("a source");
                let options = Options::default();
                reason(&compare_sources(&mut *one, &mut *source, &options).expect_err("refused"))
            }
        };
        assert!(said.contains(expected), "{name}: {said}");
    }
    // A shape of 2^40 elements, of which the stream holds none: nothing of that size is reserved.
    let huge = npy("<f4", "True", "(1048576, 1048576)", &[]);
    let scratch = Scratch::of("huge", &lying(&huge, u32::MAX - 1));
    let said = scratch.open().source("a", None).err().expect("refused").to_string();
    assert!(said.contains("up to 1073741824 bytes"), "{said}");
    let tensor = scratch.open().tensor("a", None).expect_err("refused").to_string();
    assert!(tensor.contains("up to 1073741824 bytes"), "{tensor}");
}

#[test]
fn members_of_other_kinds_are_refused_alone() {
    let array = floats(&[1.0]);
    let mut bytes = archive(CompressionMethod::Stored, false, &[("a.npy", &array), ("b", b"")]);
    let list = bytes.windows(4).position(|four| four == b"PK\x01\x02").expect("a list");
    bytes[list + 10] = 12;
    let scratch = Scratch::of("bzip2", &bytes);
    let said = scratch.open().source("a", None).err().expect("refused").to_string();
    assert!(said.contains("numpy.savez_compressed"), "{said}");
    bytes[list + 10] = 0;
    bytes[list + 8] |= 1;
    let scratch = Scratch::of("encrypted", &bytes);
    let said = scratch.open().source("a", None).err().expect("refused").to_string();
    assert!(said.contains("encrypted"), "{said}");
}

#[test]
fn what_is_written_is_read_back_in_every_format_that_numpy_can_hold() {
    let scratch = Scratch::new("round-trip.npz");
    let mut writer = NpzWriter::create(&scratch.0).expect("created");
    let formats: Vec<Format> = Format::ALL.into_iter().filter(|f| !f.is_packed()).collect();
    let mut random = SplitMix64::new(SEED);
    let tensors: Vec<Tensor> = formats
        .iter()
        .map(|&format| {
            let bytes = (0..6 * format.bits() / 8).map(|_| random.next_u64() as u8).collect();
            Tensor::new(format, &[2, 3], bytes).expect("a tensor")
        })
        .collect();
    for tensor in &tensors {
        writer.tensor(tensor.format().name(), tensor).expect("written");
    }
    writer.text("says", "größer").expect("written");
    let packed = Tensor::new(Format::E2m1, &[2], vec![0]).expect("a tensor");
    assert!(writer.tensor("packed", &packed).expect_err("refused").to_string().contains("e2m1"));
    let size = writer.finish().expect("finished");
    assert_eq!(size, fs::metadata(&scratch.0).expect("there").len());
    let file = scratch.open();
    for tensor in &tensors {
        let name = tensor.format().name();
        assert_eq!(file.tensor(name, Some(tensor.format())).expect("read"), *tensor, "{name}");
    }
    assert_eq!(file.text("says").expect("a text"), "größer");
    assert!(file.text("f32").expect_err("no text").to_string().contains("no text"));
    assert!(file.source("says", None).err().expect("text").to_string().contains("text"));
}

#[test]
fn fortran_order_is_turned_and_big_endian_swapped_in_archives_too() {
    let data: Vec<u8> =
        [1.0f64, 4.0, 2.0, 5.0, 3.0, 6.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    let array = npy(">f8", "True", "(2, 3)", &data);
    let bytes = archive(CompressionMethod::Deflated, false, &[("a.npy", &array)]);
    let scratch = Scratch::of("order", &bytes);
    let tensor = scratch.open().tensor("a", None).expect("read");
    assert_eq!(tensor.values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn an_array_is_cut_along_its_first_axis_however_it_is_kept() {
    let part = |count: usize, of: usize| -> Vec<u8> {
        (0..count).flat_map(|at| ((at * 6 % 11 + of) as f32).to_le_bytes()).collect()
    };
    let data = part(6, 0);
    // The first axis of 3 varies fastest.
    let turned: Vec<u8> =
        [0, 2, 4, 1, 3, 5].into_iter().flat_map(|at| data[at * 4..][..4].to_vec()).collect();
    let plain = npy("<f4", "False", "(3, 2)", &data);
    let fortran = npy("<f4", "True", "(3, 2)", &turned);
    let stored = archive(CompressionMethod::Stored, false, &[("a.npy", &plain)]);
    let packed = archive(CompressionMethod::Deflated, false, &[("a.npy", &plain)]);
    for (name, bytes) in [("", &plain), ("", &fortran), ("a", &stored), ("a", &packed)] {
        let scratch = Scratch::of("slices", bytes);
        let mut slices = scratch.open().slices(name, None).expect("cut");
        assert_eq!(slices.len(), 3);
        for (at, slice) in slices.iter_mut().enumerate() {
            assert_eq!(slice.shape(), [2]);
            let mut out = Vec::new();
            slice.read(0, 2, &mut out).expect("read");
            assert_eq!(out, data[at * 8..at * 8 + 8]);
        }
    }
    let scalar = Scratch::of("slices", &npy("<f4", "False", "()", &data[..4]));
    assert!(scalar.open().slices("", None).err().expect("refused").to_string().contains("no axis"));
}

#[test]
fn a_file_is_created_anew_and_errors_of_the_file_system_are_said() {
    let nowhere = std::path::Path::new("/nowhere/at/all.npz");
    assert!(NpzWriter::create(nowhere).err().expect("refused").to_string().contains("No such"));
    assert!(ArrayFile::open(nowhere).is_err());
    let scratch = Scratch::new("empty");
    File::create(&scratch.0).expect("created");
    assert!(ArrayFile::open(&scratch.0).expect_err("refused").to_string().contains("no .npy"));
}
