//! Files that lie, repeat themselves or are none: each is refused with the reason, alone where it
//! can be, and no size that a header claims costs anything.

mod scratch;

use std::path::Path;

use assay_compare::{ArrayFile, Options, compare_sources};
use assay_record::Outcome;
use scratch::Scratch;

fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend((header.len() as u32 + 1).to_le_bytes());
    bytes.extend(format!("{header}\n").bytes());
    bytes.extend(data);
    bytes
}

fn described(shape: &str) -> String {
    format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}")
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}

fn tensor(name: &str, shape: &str, from: u64, to: u64) -> String {
    format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":[{from},{to}]}}")
}

/// Why an array of a file, or the whole file, cannot be read.
fn refusal(bytes: &[u8], name: &str) -> String {
    let scratch = Scratch::of("refused", bytes);
    match ArrayFile::open(&scratch.0) {
        Err(error) => error.to_string(),
        Ok(file) => file.source(name, None).err().map_or(String::new(), |e| e.to_string()),
    }
}

#[test]
fn a_header_that_makes_no_sense_is_refused_with_what_is_wrong_in_it() {
    let cases = [
        (npy(&described("(-8, 16)"), &[]), "`shape` is none: (-8, 16)"),
        (npy(&described("('8', 16)"), &[]), "`shape` is none: ('8', 16)"),
        (npy(&described(&format!("({})", "1, ".repeat(70))), &[0; 4]), "70 axes, more than the 64"),
        (npy("{'descr': '<f4', 'fortran_order': False}", &[]), "says no `shape`"),
        (npy("{'descr': '", &[]), "says no `descr`"),
        (npy("{'descr': <f4}", &[]), "says no `descr`"),
        (npy(&"x".repeat(70_000), &[]), "more than the 65536 that are read"),
        (npy(&described("(2,)"), &[0; 8])[..40].to_vec(), "bytes, of 40 in all"),
        (b"\x93NUMPY\x01".to_vec(), "ends within its header"),
        (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "of version 9"),
    ];
    for (bytes, expected) in cases {
        let said = refusal(&bytes, "");
        assert!(said.contains(expected), "{said}: {expected}");
    }
    let axes = "1,".repeat(65);
    let cases = [
        (format!("{{{}}}", tensor("w", &format!("[{axes}1]"), 0, 4)), "66 axes"),
        (format!("{{{}}}", tensor("w", "[-1]", 0, 4)), "integer `-1`"),
        ("{\"w\":3}".to_owned(), "expected an object with `dtype`, `shape` and `data_offsets`"),
        ("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}".to_owned(), "missing field `data_offsets`"),
        (format!("{{\"w\":{}{}}}", "[".repeat(9000), "]".repeat(9000)), "recursion limit"),
    ];
    for (header, expected) in cases {
        let said = refusal(&safetensors(&header, &[0; 4]), "w");
        assert!(said.contains(expected), "{said}: {expected}");
    }
}

#[test]
fn of_two_arrays_of_one_name_none_is_read_and_the_others_are() {
    let header = [tensor("w", "[2]", 0, 8), tensor("v", "[1]", 16, 20), tensor("w", "[2]", 8, 16)];
    let bytes = safetensors(&format!("{{{}}}", header.join(",")), &[0; 20]);
    assert!(refusal(&bytes, "w").contains("more than one array of that name"));
    assert_eq!(refusal(&bytes, "v"), "");
    let scratch = Scratch::of("twice", &bytes);
    assert_eq!(ArrayFile::open(&scratch.0).expect("opened").entries().len(), 2);
    // An archive that no writer here would make: the second name is made the first by hand.
    for suffix in [".npy", ""] {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        for name in ["w.npy", "x.npy", &format!("y{suffix}")] {
            archive.start_file(name, options).expect("started");
            let array = npy(&described("(1,)"), &[0; 4]);
            std::io::Write::write_all(&mut archive, &array).expect("written");
        }
        let mut bytes = archive.finish().expect("finished").into_inner();
        let name = format!("y{suffix}").into_bytes();
        for at in 0..bytes.len() - 46 {
            let header = match &bytes[at..at + 4] {
                b"PK\x01\x02" => 46,
                b"PK\x03\x04" => 30,
                _ => continue,
            };
            if bytes[at + header..].starts_with(&name) {
                bytes[at + header] = b'w';
            }
        }
        assert!(refusal(&bytes, "w").contains("more than one array of that name"), "{suffix}");
        assert_eq!(refusal(&bytes, "x"), "");
    }
}

#[test]
fn tensors_that_share_bytes_are_refused_and_those_that_do_not_are_read() {
    let read = |tensors: &[String], name: &str| {
        refusal(&safetensors(&format!("{{{}}}", tensors.join(",")), &[0; 32]), name)
    };
    let all = [
        tensor("a", "[2]", 0, 8),
        tensor("b", "[2]", 8, 16),
        tensor("e", "[0]", 12, 12),
        tensor("c", "[3]", 12, 24),
        tensor("d", "[2]", 24, 32),
    ];
    assert!(read(&all, "b").contains("also those of `c`"), "{}", read(&all, "b"));
    assert!(read(&all, "c").contains("also those of `b`"));
    for name in ["a", "d", "e"] {
        assert_eq!(read(&all, name), "", "{name}");
    }
    // One that holds all the others.
    let all = [tensor("all", "[8]", 0, 32), tensor("a", "[1]", 0, 4), tensor("b", "[1]", 8, 12)];
    for name in ["all", "a", "b"] {
        assert!(read(&all, name).contains("also those of"), "{name}");
    }
}

#[test]
fn sizes_whose_product_overflows_beside_a_size_of_zero_are_an_empty_array() {
    let shape = "[4294967296,4294967296,0,4294967296]";
    let bytes = safetensors(&format!("{{{}}}", tensor("w", shape, 0, 0)), &[]);
    let scratch = Scratch::of("zero", &bytes);
    let file = ArrayFile::open(&scratch.0).expect("opened");
    let [mut one, mut other] = [(); 2].map(|()| file.source("w", None).expect("a source"));
    let found = compare_sources(&mut *one, &mut *other, &Options::default()).expect("compared");
    assert_eq!((found.elements, found.outcome), (0, Outcome::Unproven));
    let tensor = file.tensor("w", None).expect("read");
    assert_eq!(tensor.view().elements(), 0);
    let npy = npy(&described("(4294967296, 4294967296, 0)").replace("False", "True"), &[]);
    assert_eq!(refusal(&npy, ""), "");
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let said = |path: &Path| ArrayFile::open(path).expect_err("refused").to_string();
    assert!(said(&std::env::temp_dir()).contains("a folder"));
    if cfg!(unix) {
        assert!(said(Path::new("/dev/null")).contains("a pipe or a device"));
        let pipe = std::env::temp_dir().join(format!("assay-hostile-{}-pipe", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            let pipe = Scratch(pipe);
            assert!(said(&pipe.0).contains("a pipe or a device"));
        }
    }
}

/// Small files of every kind.
fn kinds() -> Vec<Vec<u8>> {
    let array = npy(&described("(2, 3)"), &[1; 24]);
    let turned = npy(&described("(2, 3)").replace("False", "True"), &[1; 24]);
    let tensors = [tensor("a", "[2]", 0, 8), tensor("b", "[3]", 8, 20)];
    let tensors = safetensors(&format!("{{{}}}", tensors.join(",")), &[1; 20]);
    let mut all = vec![array.clone(), turned.clone(), tensors];
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        for large in [false, true] {
            let options = zip::write::SimpleFileOptions::default()
                .compression_method(method)
                .large_file(large);
            let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
            for (name, bytes) in [("a.npy", &array), ("b.npy", &turned)] {
                archive.start_file(name, options).expect("started");
                std::io::Write::write_all(&mut archive, bytes).expect("written");
            }
            let bytes = archive.finish().expect("finished").into_inner();
            // One without its list too.
            let list = bytes.windows(4).position(|four| four == b"PK\x01\x02").expect("a list");
            all.push(bytes[..list].to_vec());
            all.push(bytes);
        }
    }
    all
}

#[test]
fn no_byte_of_a_file_makes_it_panic_or_take_long_whatever_it_says() {
    let mut compared = 0u64;
    for (kind, bytes) in kinds().iter().enumerate() {
        for at in 0..bytes.len() {
            for changed in [0x00, 0xff, bytes[at] ^ 0x01, bytes[at] ^ 0x80, b'9', b'-'] {
                let mut bytes = bytes.clone();
                bytes[at] = changed;
                let scratch = Scratch::of("byte", &bytes);
                let start = std::time::Instant::now();
                let Ok(file) = ArrayFile::open(&scratch.0) else { continue };
                for entry in file.entries() {
                    let _ = file.tensor(&entry.name, None);
                    let _ = file.slices(&entry.name, None);
                    let both = [(); 2].map(|()| file.source(&entry.name, None));
                    if let [Ok(mut one), Ok(mut other)] = both {
                        let options = Options::default();
                        let found = compare_sources(&mut *one, &mut *other, &options);
                        compared += u64::from(found.is_ok());
                    }
                }
                let took = start.elapsed().as_secs();
                assert!(took < 10, "kind {kind}, byte {at} as {changed:#x}: {took} s");
            }
        }
    }
    assert!(compared > 10_000, "many are still files of arrays: {compared}");
}

#[test]
fn thousands_of_arrays_are_found_by_name_in_no_time() {
    let count = 100_000u64;
    let tensors: Vec<String> =
        (0..count).map(|at| tensor(&format!("layer.{at}.w"), "[1]", 4 * at, 4 * at + 4)).collect();
    let bytes = safetensors(&format!("{{{}}}", tensors.join(",")), &vec![0; 4 * count as usize]);
    let scratch = Scratch::of("many", &bytes);
    let file = ArrayFile::open(&scratch.0).expect("opened");
    let start = std::time::Instant::now();
    for at in 0..count {
        let entry = file.entry(&format!("layer.{at}.w")).expect("there");
        assert_eq!(entry.layout().expect("a layout").1, [1]);
    }
    // One after the other this would take minutes.
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
