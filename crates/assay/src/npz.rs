//! Inputs of a case as a `.npz` file.
//!
//! Every input is an array of its own shape. Floats of up to 32 bits are stored as fp32, which
//! holds all of them exactly, f64 as itself, whole numbers as 64-bit integers. The array `case` is
//! the case's name as text. Read back, arrays may be of any type, compressed too.

use std::io;
use std::path::Path;

use assay_compare::{ArrayError, ArrayFile, EntryError, FileError, NpzWriter, Tensor};
use assay_num::Format;
use assay_record::CaseName;
use assay_reference::{Dims, Inputs, Signature};
use thiserror::Error;

/// The array that holds the name of the case.
const CASE: &str = "case";

/// Why a file of inputs cannot be read or written.
#[derive(Debug, Error)]
pub(crate) enum NpzError {
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is no file of arrays, or a broken one.
    #[error("{0}")]
    File(#[from] FileError),
    /// An array cannot be read.
    #[error("the array `{name}`: {why}")]
    Array {
        /// The array.
        name: String,
        /// What is wrong with it.
        why: EntryError,
    },
    /// An input has not as many values as its shape has elements.
    #[error("the input `{0}`: {1}")]
    Input(String, ArrayError),
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
    let mut archive = NpzWriter::create(path)?;
    archive.text(CASE, &case.to_string())?;
    for tensor in &signature.inputs {
        let Some(values) = inputs.tensors.get(&tensor.name) else { continue };
        let sizes = tensor.shape.iter().map(|extent| extent.eval(dims).unwrap_or(0).max(0));
        let shape: Vec<u64> = sizes.map(|size| size as u64).collect();
        let array = Tensor::from_values(kept_as(tensor.format), &shape, values)
            .map_err(|error| NpzError::Input(tensor.name.clone(), error))?;
        archive.tensor(&tensor.name, &array)?;
    }
    Ok(archive.finish()?)
}

/// Reads what [`write`] wrote.
pub(crate) fn read(path: &Path) -> Result<Given, NpzError> {
    let file = ArrayFile::open(path)?;
    let case = match file.text(CASE) {
        Err(EntryError::Missing(name)) => Err(format!("there is no array `{name}`")),
        Err(error) => Err(format!("the array `{CASE}`: {error}")),
        Ok(text) => text.parse().map_err(|error| format!("{error}")),
    };
    let case = case.map_err(NpzError::Case)?;
    let mut inputs = Inputs::default();
    for entry in file.entries().iter().filter(|entry| entry.name != CASE) {
        let array = file
            .tensor(&entry.name, None)
            .map_err(|why| NpzError::Array { name: entry.name.clone(), why })?;
        inputs.tensors.insert(entry.name.clone(), array.values());
    }
    Ok(Given { case, inputs })
}

/// The format that holds a format's values exactly and that numpy has a type for.
fn kept_as(format: Format) -> Format {
    match format {
        Format::F64 => Format::F64,
        _ if format.is_float() => Format::F32,
        _ => Format::I64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_reference::dims;

    fn case() -> CaseName {
        "k/shapes/cols=3,rows=2/given/seed=1/in-order".parse().expect("a case")
    }

    fn signature() -> Signature {
        let tensor = |name, format, shape: &[&str]| {
            assay_reference::Tensor::new(name, format, shape).expect("ok")
        };
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
    fn a_file_that_is_none_of_ours_is_refused_with_a_reason() {
        let path = scratch("broken");
        let refused = || read(&path).expect_err("refused").to_string();
        std::fs::write(&path, b"not a zip").expect("written");
        assert!(refused().contains("no .npy, .npz or .safetensors file"), "{}", refused());
        std::fs::write(&path, b"PK not a zip either").expect("written");
        assert!(refused().contains("no .npz file"), "{}", refused());
        let mut archive = NpzWriter::create(&path).expect("created");
        archive.tensor("x", &Tensor::from_f32(&[1], &[1.0]).expect("a tensor")).expect("added");
        archive.finish().expect("finished");
        assert!(refused().contains("there is no array `case`"), "{}", refused());
        let mut archive = NpzWriter::create(&path).expect("created");
        archive.text(CASE, "no such name").expect("added");
        archive.finish().expect("finished");
        assert!(refused().contains("which case"), "{}", refused());
        let mut archive = NpzWriter::create(&path).expect("created");
        archive.text(CASE, &case().to_string()).expect("added");
        archive.text("x", "text").expect("added");
        archive.finish().expect("finished");
        assert!(refused().contains("the array `x`: its elements are `U4`, text"), "{}", refused());
        std::fs::remove_file(path).expect("removed");
    }
}
