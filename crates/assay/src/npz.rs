//! Inputs of a case as a `.npz` file: a zip archive, without compression, of `.npy` arrays (NEP 1
//! of the `numpy` project, format 1.0, little-endian, C order).
//!
//! Every input is an array of its own shape. Floats of up to 32 bits are stored as fp32, which
//! holds all of them exactly, f64 as itself, whole numbers as 64-bit integers. The array `case` is
//! the case's name as text.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use assay_num::Format;
use assay_record::CaseName;
use assay_reference::{Dims, Inputs, Signature};
use thiserror::Error;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The array that holds the name of the case.
const CASE: &str = "case";
/// What every `.npy` begins with: its magic number and version 1.0.
const MAGIC: [u8; 8] = *b"\x93NUMPY\x01\x00";

/// Why a file of inputs cannot be read or written.
#[derive(Debug, Error)]
pub(crate) enum NpzError {
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is no zip archive, or a broken one.
    #[error("it is no .npz file")]
    Zip(#[from] zip::result::ZipError),
    /// An array is not as this program writes them.
    #[error("the array `{name}` {what}")]
    Array {
        /// The array.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// The name of the case is missing or no name.
    #[error("it does not say which case it belongs to: {0}")]
    Case(String),
}

/// A case with its inputs.
#[derive(Debug, PartialEq)]
pub(crate) struct Given {
    pub(crate) case: CaseName,
    pub(crate) inputs: Inputs,
}

/// Writes a case and its inputs; returns the size of the file in bytes.
pub(crate) fn write(
    path: &Path,
    case: &CaseName,
    (signature, dims, inputs): (&Signature, &Dims, &Inputs),
) -> Result<u64, NpzError> {
    let mut archive = ZipWriter::new(File::create(path)?);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    archive.start_file(format!("{CASE}.npy"), options)?;
    archive.write_all(&text_array(&case.to_string()))?;
    for tensor in &signature.inputs {
        let Some(values) = inputs.tensors.get(&tensor.name) else { continue };
        let shape = tensor.shape.iter().map(|extent| extent.eval(dims).unwrap_or(0).max(0));
        archive.start_file(format!("{}.npy", tensor.name), options)?;
        archive.write_all(&array(tensor.format, &shape.collect::<Vec<_>>(), values))?;
    }
    let mut file = archive.finish()?;
    Ok(file.stream_position()?)
}

/// Reads what [`write`] wrote.
pub(crate) fn read(path: &Path) -> Result<Given, NpzError> {
    let mut archive = ZipArchive::new(File::open(path)?)?;
    let (mut inputs, mut case) = (Inputs::default(), None);
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let name = entry.name()?.trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        let wrong = |what: String| NpzError::Array { name: name.clone(), what };
        if name == CASE {
            case = Some(text_of(&bytes).map_err(wrong)?);
        } else {
            let values = values_of(&bytes).map_err(wrong)?;
            inputs.tensors.insert(name, values);
        }
    }
    let case = case.ok_or_else(|| NpzError::Case(format!("there is no array `{CASE}`")))?;
    let case = case.parse().map_err(|error| NpzError::Case(format!("{error}")))?;
    Ok(Given { case, inputs })
}

/// The type of the elements that hold a format's values exactly.
fn element_type(format: Format) -> &'static str {
    match format {
        Format::F64 => "<f8",
        _ if format.is_float() => "<f4",
        _ => "<i8",
    }
}

fn array(format: Format, shape: &[i64], values: &[f64]) -> Vec<u8> {
    let kind = element_type(format);
    let mut bytes = header(kind, shape);
    for value in values {
        match kind {
            "<f8" => bytes.extend(value.to_le_bytes()),
            "<f4" => bytes.extend((*value as f32).to_le_bytes()),
            _ => bytes.extend((*value as i64).to_le_bytes()),
        }
    }
    bytes
}

/// A text as an array without axes, four bytes a character.
fn text_array(text: &str) -> Vec<u8> {
    let mut bytes = header(&format!("<U{}", text.chars().count()), &[]);
    bytes.extend(text.chars().flat_map(|c| u32::from(c).to_le_bytes()));
    bytes
}

/// The header, padded so that the data starts at a multiple of 64 bytes.
fn header(kind: &str, shape: &[i64]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
    let text =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}", axes.join(" "));
    let before = MAGIC.len() + 2;
    let length = (before + text.len() + 1).next_multiple_of(64) - before;
    let mut bytes = MAGIC.to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(before + length - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// The type of an array's elements and their bytes.
fn parts(bytes: &[u8]) -> Result<(String, &[u8]), String> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or("is no .npy array of version 1.0")?;
    let (length, rest) = rest.split_at_checked(2).ok_or("ends in its header")?;
    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
    let (header, data) = rest.split_at_checked(length).ok_or("ends in its header")?;
    let header = String::from_utf8_lossy(header);
    if !header.contains("'fortran_order': False") {
        return Err("is not in C order".to_owned());
    }
    let kind = header.split("'descr': '").nth(1).and_then(|rest| rest.split('\'').next());
    Ok((kind.ok_or("states no type")?.to_owned(), data))
}

fn values_of(bytes: &[u8]) -> Result<Vec<f64>, String> {
    let (kind, data) = parts(bytes)?;
    match kind.as_str() {
        "<f4" => chunks(data).map(|all| all.map(|e| f64::from(f32::from_le_bytes(e))).collect()),
        "<f8" => chunks(data).map(|all| all.map(f64::from_le_bytes).collect()),
        "<i8" => chunks(data).map(|all| all.map(|e| i64::from_le_bytes(e) as f64).collect()),
        _ => Err(format!("holds `{kind}`; inputs are `<f4`, `<f8` or `<i8`")),
    }
}

fn text_of(bytes: &[u8]) -> Result<String, String> {
    let (kind, data) = parts(bytes)?;
    if !kind.starts_with("<U") {
        return Err(format!("holds `{kind}`, not text"));
    }
    let letters = chunks(data)?.map(|e| char::from_u32(u32::from_le_bytes(e)));
    let letters = letters.filter(|letter| *letter != Some('\0'));
    letters.collect::<Option<String>>().ok_or_else(|| "holds no text".to_owned())
}

/// The elements of an array, `N` bytes each.
fn chunks<const N: usize>(data: &[u8]) -> Result<impl Iterator<Item = [u8; N]>, String> {
    if !data.len().is_multiple_of(N) {
        return Err("ends inside an element".to_owned());
    }
    let element = |chunk: &[u8]| {
        let mut bytes = [0; N];
        bytes.copy_from_slice(chunk);
        bytes
    };
    Ok(data.chunks_exact(N).map(element))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_reference::{Tensor, dims};

    fn case() -> CaseName {
        "k/shapes/cols=3,rows=2/given/seed=1/in-order".parse().expect("a case")
    }

    fn signature() -> Signature {
        let tensor = |name, format, shape: &[&str]| Tensor::new(name, format, shape).expect("ok");
        let inputs = vec![
            tensor("x", Format::Bf16, &["rows", "cols"]),
            tensor("d", Format::F64, &["cols"]),
            tensor("at", Format::I32, &["rows"]),
        ];
        Signature { inputs, ..Signature::default() }
    }

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("assay-npz-{}-{name}.npz", std::process::id()))
    }

    #[test]
    fn inputs_are_read_back_as_they_were_written() {
        let path = scratch("round-trip");
        let x = vec![1.0, f64::INFINITY, -0.0, 2.5, f64::NEG_INFINITY, 0.0];
        let inputs =
            Inputs::new([("x", x), ("d", vec![0.1, 1e300, -2.0]), ("at", vec![7.0, -3.0])]);
        let shape = dims([("rows", 2), ("cols", 3)]);
        let bytes = write(&path, &case(), (&signature(), &shape, &inputs)).expect("written");
        assert_eq!(bytes, std::fs::metadata(&path).expect("it is there").len());
        assert_eq!(read(&path).expect("read"), Given { case: case(), inputs });
        std::fs::remove_file(path).expect("removed");
    }

    #[test]
    fn the_data_of_an_array_starts_at_a_multiple_of_64_bytes() {
        for shape in [vec![], vec![1], vec![1000, 4096, 7]] {
            let header = header("<f4", &shape);
            assert_eq!(header.len() % 64, 0);
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_refused_with_a_reason() {
        let path = scratch("broken");
        std::fs::write(&path, b"not a zip").expect("written");
        assert!(read(&path).expect_err("refused").to_string().contains("no .npz file"));
        std::fs::remove_file(path).expect("removed");
        for (bytes, reason) in [
            (b"\x93NUMPY\x02\x00".to_vec(), "version 1.0"),
            ([&MAGIC[..], b"\xff\xff{"].concat(), "ends in its header"),
            ([&header("<f4", &[1])[..], b"abc"].concat(), "ends inside an element"),
            (header("<c8", &[0]), "holds `<c8`"),
        ] {
            let error = values_of(&bytes).expect_err("refused");
            assert!(error.contains(reason), "{error}");
        }
    }
}
