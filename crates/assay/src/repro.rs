//! `check --repro`: the smallest inputs behind a failing case, as a file and a command to run it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use assay_contract::run::smallest;
use assay_contract::shrink::Shrunk;
use assay_contract::{Kernel, RunOutcome};
use assay_device::Device;
use assay_record::{CaseName, ExitCode, GateResult, Number, Outcome, Smallest};
use assay_reference::{Inputs, Signature};

use crate::cli::CheckArguments;
use crate::failure::Failure;
use crate::npz;

/// Elements that are written out in words.
const SHOWN: usize = 8;

/// Shrinks a failing case and writes its inputs below `folder`. `None` where nothing fails on one
/// set of inputs alone.
pub(crate) fn shrink(
    case: &CaseName,
    kernels: &[&dyn Kernel],
    device: &mut dyn Device,
    folder: &Path,
) -> Result<Option<Smallest>, Failure> {
    let found = smallest(case, kernels, device)
        .map_err(|error| Failure::request("cannot shrink the case").caused_by(&error))?;
    let Some(shrunk) = found else { return Ok(None) };
    let kernel = kernels.iter().find(|kernel| kernel.spec().name == case.kernel);
    let Some(kernel) = kernel else { return Ok(None) };
    let signature = &kernel.spec().signature;
    let file = folder.join(file_name(&shrunk.case));
    let bytes = save(&file, signature, &shrunk).map_err(|error| {
        Failure::request(format!("cannot write {}", file.display())).caused_by(&error)
    })?;
    Ok(Some(Smallest {
        inputs: words(signature, &shrunk.inputs, &shrunk),
        finding: shrunk.finding,
        file: file.to_string_lossy().into_owned(),
        file_bytes: bytes,
        runs: shrunk.steps as u64,
    }))
}

fn save(file: &Path, signature: &Signature, shrunk: &Shrunk) -> Result<u64, npz::NpzError> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    npz::write(file, &shrunk.case, (signature, &shrunk.dims, &shrunk.inputs))
}

/// The kernel, the gate and the shape, in a name that every file system takes.
fn file_name(case: &CaseName) -> PathBuf {
    let sizes: Vec<String> = case.dims.iter().map(|(name, size)| format!("{name}{size}")).collect();
    format!("{}-{}-{}.npz", case.kernel, case.gate, sizes.join("-")).into()
}

/// What the inputs hold, as far as that can be said in a line: `x[0, 2] = NaN, else 0`.
fn words(signature: &Signature, inputs: &Inputs, shrunk: &Shrunk) -> String {
    let mut parts = Vec::new();
    for tensor in &signature.inputs {
        let Some(values) = inputs.tensors.get(&tensor.name) else { continue };
        let sizes: Vec<usize> = tensor
            .shape
            .iter()
            .map(|extent| extent.eval(&shrunk.dims).map_or(1, |size| size.max(1) as usize))
            .collect();
        parts.push(tensor_words(&tensor.name, &sizes, values));
    }
    parts.join("; ")
}

fn tensor_words(name: &str, sizes: &[usize], values: &[f64]) -> String {
    let same = |value: f64| values.iter().filter(|v| v.to_bits() == value.to_bits()).count();
    let common = [0.0, 1.0].into_iter().max_by_key(|value| same(*value)).unwrap_or(0.0);
    let others = values.iter().enumerate().filter(|(_, v)| v.to_bits() != common.to_bits());
    let mut text = String::new();
    for (place, value) in others.clone().take(SHOWN) {
        let value = Number(*value);
        let _ = write!(text, "{name}{} = {value}, ", index(place, sizes));
    }
    let left = others.count().saturating_sub(SHOWN);
    if left > 0 {
        let _ = write!(text, "{left} more, ");
    }
    if same(common) > 0 {
        let _ = write!(text, "{}{common}", if text.is_empty() { "" } else { "else " });
        return if text.contains('=') { text } else { format!("{name} = {text}") };
    }
    text.trim_end_matches(", ").to_owned()
}

fn index(place: usize, sizes: &[usize]) -> String {
    let mut rest = place;
    let mut indices: Vec<String> = sizes
        .iter()
        .rev()
        .map(|size| {
            let index = rest % size;
            rest /= size;
            index.to_string()
        })
        .collect();
    indices.reverse();
    if indices.is_empty() { String::new() } else { format!("[{}]", indices.join(", ")) }
}

/// Whether the run was of one case that a gate made, and that case failed.
pub(crate) fn shrinks(arguments: &CheckArguments, outcome: &RunOutcome) -> bool {
    let failed = |gate: &GateResult| matches!(gate.outcome, Outcome::Fail | Outcome::Known);
    let mut gates = outcome.kernels.iter().flat_map(|kernel| &kernel.result.gates);
    arguments.repro.is_some() && arguments.inputs.is_none() && gates.any(failed)
}

/// The request with the case that its file of inputs names.
pub(crate) fn with_case(arguments: &CheckArguments) -> Result<CheckArguments, Failure> {
    let mut arguments = arguments.clone();
    if let Some(file) = &arguments.inputs {
        arguments.repro = Some(load(file)?.case);
    }
    Ok(arguments)
}

/// Reads a file of inputs.
pub(crate) fn load(path: &Path) -> Result<npz::Given, Failure> {
    npz::read(path).map_err(|error| {
        Failure::new(ExitCode::Request, format!("cannot use the inputs in {}", path.display()))
            .caused_by(&error)
            .hint("`check --repro CASE` writes such files".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_elements_are_written_out_and_many_are_counted() {
        assert_eq!(tensor_words("x", &[2, 2], &[0.0, 0.0, f64::NAN, 0.0]), "x[1, 0] = NaN, else 0");
        assert_eq!(tensor_words("w", &[3], &[1.0; 3]), "w = 1");
        assert_eq!(tensor_words("w", &[2], &[2.0, -4.0]), "w[0] = 2, w[1] = -4");
        let many: Vec<f64> = (2..20).map(f64::from).collect();
        assert!(tensor_words("x", &[18], &many).ends_with("x[7] = 9, 10 more"));
        assert_eq!(tensor_words("s", &[], &[5.0]), "s = 5");
    }
}
