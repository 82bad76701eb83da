//! What the example prints.

use std::io::Write as _;
use std::time::Duration;

use assay_device::DeviceError;

/// A step's findings.
pub(crate) type Outcome = Result<Vec<String>, DeviceError>;

/// Prints a line.
pub(crate) fn say(title: &str, text: &str) {
    let _ = writeln!(std::io::stdout(), "{title}: {text}");
}

/// Prints how a step went.
pub(crate) fn step(title: &str, took: Duration, outcome: Outcome) {
    match outcome {
        Ok(lines) => {
            say(title, &format!("ok in {took:?}"));
            for line in lines {
                say("  ", &line);
            }
        }
        Err(error) => say(title, &format!("FAILED in {took:?}: {error}")),
    }
}

/// Least, median and largest.
pub(crate) fn quantiles(values: &mut [f64], unit: &str) -> String {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let index = (part * values.len().saturating_sub(1) as f64).round() as usize;
        values.get(index).copied().unwrap_or(f64::NAN)
    };
    format!("{:.3} / {:.3} / {:.3} {unit}", at(0.0), at(0.5), at(1.0))
}

/// The rate at which bytes moved.
pub(crate) fn gib_per_s(bytes: u64, ns: u64) -> f64 {
    bytes as f64 / (1 << 30) as f64 / (ns.max(1) as f64 * 1e-9)
}
