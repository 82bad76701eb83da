//! The rate of a library's large fp16 matrix product, by torch in a process of its own.

use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::python;

const SCRIPT: &str = include_str!("gemm.py");
/// Importing torch takes seconds, the product itself far less than one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What the script prints.
#[derive(Deserialize)]
struct Answer {
    flops: f64,
    torch: String,
    samples: u32,
}

/// The rate in FLOP/s and what it is of, or why there is none.
pub(super) fn measure() -> Result<(f64, String), String> {
    let mut out = String::new();
    let mut command = Command::new("python3");
    python::run(command.args(["-c", SCRIPT]), TIMEOUT, &mut |line| out.push_str(line))?;
    let answer: Answer =
        serde_json::from_str(&out).map_err(|error| format!("no answer to read: {error}"))?;
    if !(answer.flops.is_finite() && answer.flops > 0.0) {
        return Err(format!("torch measured {} FLOP/s", answer.flops));
    }
    let source = format!("torch {}, 8192^3, median of {}", answer.torch, answer.samples);
    Ok((answer.flops, source))
}
