//! What the tests of the rules share: the built-in chips, and a check of a rule at its boundary.

#![allow(dead_code, reason = "each test file uses its own part")]

use assay_limits::{Chip, Chips, CudaChip, Fit, HipChip, Launch, MetalChip, Rule};

pub(crate) fn cuda(name: &str) -> CudaChip {
    match Chips::built_in().chip(name) {
        Some(Chip::Cuda(chip)) => chip.clone(),
        other => panic!("`{name}` is {other:?}"),
    }
}

pub(crate) fn hip(name: &str) -> HipChip {
    match Chips::built_in().chip(name) {
        Some(Chip::Hip(chip)) => chip.clone(),
        other => panic!("`{name}` is {other:?}"),
    }
}

pub(crate) fn metal(name: &str) -> MetalChip {
    match Chips::built_in().chip(name) {
        Some(Chip::Metal(chip)) => chip.clone(),
        other => panic!("`{name}` is {other:?}"),
    }
}

pub(crate) fn launch(grid: [u64; 3], block: [u64; 3]) -> Launch {
    Launch { grid, block, cluster: [1, 1, 1], dynamic_shared_bytes: 0 }
}

pub(crate) fn rules(fit: &Fit) -> Vec<Rule> {
    fit.problems.iter().map(|problem| problem.rule).collect()
}

/// A rule at its boundary: nothing is wrong with the last value, and this rule alone with the next.
pub(crate) fn boundary(rule: Rule, last: u64, fit: impl Fn(u64) -> Fit) {
    let at = fit(last);
    assert!(at.fits(), "{rule:?} at {last}: {:?} {:?}", at.problems, at.unknown);
    let past = fit(last + 1);
    assert_eq!(rules(&past), [rule], "{rule:?} past {last}");
    assert!(past.occupancy.is_none(), "{rule:?}: what does not fit is not resident");
}

/// Says, past the test harness, that a test was skipped and why.
pub(crate) fn skip(test: &str, reason: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}
