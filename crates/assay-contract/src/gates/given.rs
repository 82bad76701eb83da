//! A case whose inputs are given, in place of those that a gate makes: what `--repro` runs again,
//! and what shrinking asks at every step.
//!
//! The verdict is the gate's own, on one set of inputs. What a gate proves about its fixtures (that
//! a lost term would show, that half-precision sums would miss) is not asked here: these inputs
//! were found by a fixture that could tell.

use assay_record::{CaseName, Gate, GateResult};
use assay_reference::{Dims, Inputs};

use super::{Tally, non_finite, not_applicable, repeat, shapes};
use crate::subject::Subject;

/// The fill of a case whose inputs come from a file.
pub const FILL: &str = "given";

/// Runs a kernel on given inputs at the case's gate: FAIL with its finding, UNPROVEN where the gate
/// has no verdict on such inputs, else PASS.
pub fn given(
    subject: &mut dyn Subject,
    case: &CaseName,
    (dims, inputs): (&Dims, &Inputs),
) -> GateResult {
    let mut tally = Tally::new(case.gate);
    tally.count();
    match case.gate {
        Gate::NonFinite => non_finite::given(subject, case, (dims, inputs), &mut tally),
        Gate::Repeat => {
            if let Some(finding) = repeat::five_runs(subject, case, (dims, inputs)) {
                tally.find(finding);
            }
        }
        Gate::Shapes | Gate::Fp32Sums => {
            return shapes::given(subject, case, (dims, inputs), tally);
        }
        Gate::Limits => return not_applicable(case.gate, "limits have no inputs"),
    }
    tally.finish()
}
