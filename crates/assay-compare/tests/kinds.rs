//! Every type that numpy and safetensors write is read as its format or refused with the reason;
//! damaged files never panic.

mod scratch;

use std::io::{Cursor, Write};

use assay_compare::{ArrayFile, NpzWriter, Options, Tensor, compare_sources};
use assay_num::Format;
use proptest::prelude::*;
use scratch::Scratch;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A `.npy` array; the description is Python text, quotes included.
fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

fn safetensors(dtype: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!(
        "{{\"x\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[0,{}]}}}}",
        data.len()
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn types_of_numpy_are_read_as_their_formats() {
    let kinds = [
        ("<f2", Format::F16),
        ("<f4", Format::F32),
        ("<f8", Format::F64),
        ("|b1", Format::U8),
        ("|i1", Format::I8),
        ("|u1", Format::U8),
        ("<i2", Format::I16),
        ("<u2", Format::U16),
        ("<i4", Format::I32),
        ("<u4", Format::U32),
        ("<i8", Format::I64),
        ("<u8", Format::U64),
    ];
    for (kind, format) in kinds {
        let width = format.bits() as usize / 8;
        let values: Vec<f64> = [0.0, 1.0, 2.0, 3.0, 100.0, 5.0].to_vec();
        let mut data = format.encode_slice(&values);
        let little = Scratch::of("little", &npy(&format!("'{kind}'"), "False", "(2, 3)", &data));
        data.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        let big = format!("'>{}'", &kind[1..]);
        let big = Scratch::of("big", &npy(&big, "False", "(2, 3)", &data));
        for file in [&little, &big] {
            let read = ArrayFile::open(&file.0).expect("opened").tensor("", None).expect("read");
            assert_eq!((read.format(), read.values()), (format, values.clone()), "{kind}");
        }
    }
}

#[test]
fn types_that_numpy_does_not_name_need_a_format_of_their_size() {
    // As numpy writes arrays of the package `ml_dtypes`: bfloat16, and floats of 8 bits.
    let cases = [
        ("<V2", Format::Bf16, vec![0x80, 0x3f, 0x00, 0xc0], vec![1.0, -2.0]),
        ("|V2", Format::F16, vec![0x00, 0x3c, 0x00, 0xc0], vec![1.0, -2.0]),
        ("|V1", Format::E4m3, vec![0x38, 0xc0], vec![1.0, -2.0]),
        ("<f1", Format::E5m2, vec![0x3c, 0xc0], vec![1.0, -2.0]),
        ("|V1", Format::E8m0, vec![0x7f, 0x80], vec![1.0, 2.0]),
    ];
    for (kind, format, data, values) in cases {
        let file = Scratch::of("raw", &npy(&format!("'{kind}'"), "False", "(2,)", &data));
        let file = ArrayFile::open(&file.0).expect("opened");
        let refused = file.source("", None).err().expect("refused").to_string();
        assert!(refused.contains("say which with `--format`"), "{refused}");
        let other = file.source("", Some(Format::F32)).err().expect("refused").to_string();
        assert!(other.contains("and f32 takes 32"), "{other}");
        assert_eq!(file.tensor("", Some(format)).expect("read").values(), values, "{kind}");
    }
}

#[test]
fn other_types_of_numpy_are_refused_with_the_reason() {
    let cases = [
        ("'|O'", "Python objects"),
        ("'<c8'", "complex"),
        ("'<c16'", "complex"),
        ("'<f16'", "no format that is compared"),
        ("'<U3'", "text"),
        ("'|S3'", "text"),
        ("'<M8[ns]'", "times"),
        ("'<m8[s]'", "times"),
        ("'|V3'", "no format that is compared"),
        ("[('a', '<f4'), ('shape', '<i2')]", "records"),
        ("''", "no format that is compared"),
        ("'é'", "no format that is compared"),
    ];
    for (descr, reason) in cases {
        let file = Scratch::of("other", &npy(descr, "False", "(1,)", &[0; 16]));
        let file = ArrayFile::open(&file.0).expect("opened");
        let refused = file.source("", None).err().expect("refused").to_string();
        assert!(refused.contains(reason), "{descr}: {refused}");
        assert!(file.tensor("", None).is_err());
    }
}

#[test]
fn headers_that_do_not_hold_together_are_refused_with_the_reason() {
    let cases = [
        (npy("'<f4'", "Maybe", "(1,)", &[0; 4]), "fortran_order"),
        (npy("'<f4'", "False", "(1", &[0; 4]), "shape"),
        (npy("'<f4'", "False", "(-1,)", &[0; 4]), "shape"),
        (npy("'<f4'", "False", "1", &[0; 4]), "shape"),
        (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "of version 9"),
        (b"\x93NUMPY\x01\x00\xff\xff{".to_vec(), "its header takes 65535 bytes"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "its header takes 4294967295 bytes"),
        (b"\x93NUMPY\x01\x00\x01\x00{".to_vec(), "says no `descr`"),
    ];
    for (bytes, reason) in cases {
        let file = Scratch::of("header", &bytes);
        let file = ArrayFile::open(&file.0).expect("opened");
        let refused = file.source("", None).err().expect("refused").to_string();
        assert!(refused.contains(reason), "{reason}: {refused}");
    }
}

#[test]
fn types_of_safetensors_are_read_as_their_formats_and_others_refused() {
    let kinds = [
        ("F64", Format::F64),
        ("F32", Format::F32),
        ("F16", Format::F16),
        ("BF16", Format::Bf16),
        ("F8_E4M3", Format::E4m3),
        ("F8_E5M2", Format::E5m2),
        ("F8_E8M0", Format::E8m0),
        ("F4", Format::E2m1),
        ("BOOL", Format::U8),
        ("U8", Format::U8),
        ("I8", Format::I8),
        ("U16", Format::U16),
        ("I16", Format::I16),
        ("U32", Format::U32),
        ("I32", Format::I32),
        ("U64", Format::U64),
        ("I64", Format::I64),
    ];
    for (dtype, format) in kinds {
        let values = [1.0, 2.0, 4.0, 1.0, 0.5, 1.0, 4.0, 2.0].map(|value| format.round(value));
        let data = format.encode_slice(&values);
        let file = Scratch::of("tensors", &safetensors(dtype, "[2,4]", &data));
        let file = ArrayFile::open(&file.0).expect("opened");
        let read = file.tensor("x", None).expect("read");
        assert_eq!((read.format(), read.values()), (format, values.to_vec()), "{dtype}");
    }
    let refused = ["C64", "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "", "f32"];
    for dtype in refused {
        let file = Scratch::of("tensors", &safetensors(dtype, "[1]", &[0; 8]));
        let file = ArrayFile::open(&file.0).expect("opened");
        let error = file.source("x", None).err().expect("refused").to_string();
        assert!(error.contains(&format!("its elements are `{dtype}`")), "{error}");
    }
    let lies = [("[3]", "takes 12 bytes"), ("[18446744073709551615,2]", "more elements")];
    for (shape, reason) in lies {
        let file = Scratch::of("tensors", &safetensors("F32", shape, &[0; 8]));
        let file = ArrayFile::open(&file.0).expect("opened");
        let error = file.source("x", None).err().expect("refused").to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// Reads all that there is to read of a file, whatever it holds.
fn exercise(file: &Scratch) {
    let Ok(file) = ArrayFile::open(&file.0) else { return };
    for entry in file.entries() {
        let _ = file.text(&entry.name);
        let _ = file.tensor(&entry.name, None);
        let _ = file.slices(&entry.name, None);
        let sources = (file.source(&entry.name, None), file.source(&entry.name, None));
        if let (Ok(mut one), Ok(mut other)) = sources {
            let _ = compare_sources(&mut *one, &mut *other, &Options::default());
        }
    }
}

/// An archive of an array in either order.
fn archive(method: CompressionMethod, data: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for fortran in ["False", "True"] {
        archive.start_file(format!("{fortran}.npy"), options).expect("started");
        let shape = format!("(2, {})", data.len() / 8);
        archive.write_all(&npy("'<f4'", fortran, &shape, data)).expect("written");
    }
    archive.finish().expect("finished").into_inner()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn arrays_are_read_back_as_they_were_written(
        shape in prop::collection::vec(0u64..5, 0..4),
        format in prop::sample::select(Format::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        prop_assume!(!format.is_packed());
        let bytes = shape.iter().product::<u64>() * u64::from(format.bits()) / 8;
        let mut random = assay_num::random::SplitMix64::new(seed);
        let bytes = (0..bytes).map(|_| random.next_u64() as u8).collect();
        let tensor = Tensor::new(format, &shape, bytes).expect("a tensor");
        let file = Scratch::new("round-trip");
        let mut writer = NpzWriter::create(&file.0).expect("created");
        writer.tensor("x", &tensor).expect("written");
        writer.finish().expect("finished");
        let read = ArrayFile::open(&file.0).expect("opened").tensor("x", Some(format));
        prop_assert_eq!(read.expect("read"), tensor);
    }

    #[test]
    fn damaged_files_never_panic(
        kind in 0usize..5,
        data in prop::collection::vec(any::<u8>(), 1..64),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let data = data.repeat(8);
        let count = data.len() / 4;
        let mut bytes = match kind {
            0 => npy("'<f4'", "False", &format!("({count},)"), &data),
            1 => npy("'>f4'", "True", &format!("(2, {})", count / 2), &data),
            2 => archive(CompressionMethod::Stored, &data),
            3 => archive(CompressionMethod::Deflated, &data),
            _ => safetensors("F32", &format!("[{count}]"), &data),
        };
        for (at, byte) in &damage {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if let Some(end) = end {
            bytes.truncate(end.index(bytes.len()));
        }
        exercise(&Scratch::of("damaged", &bytes));
    }
}
