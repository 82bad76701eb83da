//! Devices that run nothing, and row sums in Rust, correct and broken.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;

use assay_contract::manifest::{EmbeddedFiles, parse_manifest};
use assay_contract::spec::Spec;
use assay_contract::subject::{RunRequest, RunResult};
use assay_contract::{CheckOptions, FunctionKernel, Kernel, RunOutcome, Silent, run};
use assay_device::Schedule;

pub(crate) mod device;

use device::no_device;

/// The contract of a row sum called `name`, with more lines for its table.
pub(crate) fn row_sum_spec(name: &str, more: &str) -> Spec {
    spec_of(name, "family = \"rows.sum\"", more)
}

/// As [`row_sum_spec`], with another reference.
pub(crate) fn spec_of(name: &str, reference: &str, more: &str) -> Spec {
    let text = format!(
        r#"schema = 1
[module.none]
ptx = "none.ptx"
[kernel.{name}]
module = "none"
{reference}
dims.rows = {{ served = [1, 7] }}
dims.cols = {{ served = [100, 257], tile = 64, step = 1, least = 1 }}
args = [
    {{ name = "x", role = "in", type = "f32", shape = ["rows", "cols"] }},
    {{ name = "y", role = "out", type = "f32", shape = ["rows"] }},
]
launches = [{{ symbol = "none", grid = [1], block = [1], args = ["x", "y"] }}]
{more}
"#
    );
    let files = EmbeddedFiles(&[("none.ptx", b"")]);
    let manifest = parse_manifest("test.toml", &text, &files);
    let shown: Vec<String> = manifest.errors.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    manifest.kernels.into_iter().next().expect("one kernel is declared").into_spec()
}

/// Each row's sum: four chains over quarters of the row, added in the order given.
pub(crate) fn sums(request: &RunRequest<'_>, reversed: bool) -> Vec<f32> {
    let cols = request.dims["cols"] as usize;
    let sum = |row: &[f64]| {
        let quarters = row.chunks(cols.div_ceil(4));
        let mut partials: Vec<f32> =
            quarters.map(|part| part.iter().fold(0.0, |sum, x| sum + *x as f32)).collect();
        if reversed {
            partials.reverse();
        }
        partials.into_iter().fold(0.0, |sum, partial| sum + partial)
    };
    request.inputs.tensors["x"].chunks(cols).map(sum).collect()
}

pub(crate) fn result(y: &[f32]) -> RunResult {
    let bytes = y.iter().flat_map(|value| value.to_le_bytes()).collect();
    RunResult { outputs: BTreeMap::from([("y".to_owned(), bytes)]), ..RunResult::default() }
}

/// A row sum that is right.
pub(crate) fn correct(name: &str, more: &str) -> FunctionKernel {
    FunctionKernel::new(row_sum_spec(name, more), |request| Ok(result(&sums(request, false))))
}

/// A row sum whose partial sums arrive in the order in which blocks run.
pub(crate) fn by_arrival(name: &str, more: &str) -> FunctionKernel {
    FunctionKernel::new(row_sum_spec(name, more), |request| {
        Ok(result(&sums(request, request.schedule == Schedule::Reversed)))
    })
}

/// Runs kernels that need no device.
pub(crate) fn check(kernels: &[&dyn Kernel], options: &CheckOptions) -> RunOutcome {
    run::run(kernels, &|_| Ok(no_device()), options, &Silent)
}

/// All gates, seed 1, one worker.
pub(crate) fn options() -> CheckOptions {
    CheckOptions { threads: 1, ..CheckOptions::default() }
}
