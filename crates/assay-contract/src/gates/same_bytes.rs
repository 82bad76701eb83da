//! Gate 3 for kernels that promise another's bytes: they give them where the order of sums shows.
//!
//! Ordinary data seldom tells two orders apart behind a 16-bit output. Gate 2's order fills do, so
//! a kernel that replaces another, or has a twin, is run on these as well, for its bytes alone.

use assay_record::Gate;

use super::repeat_fill::{self, Fill};
use super::shapes::{Prepared, Running};
use super::target::{Judge, case};
use super::{GateContext, envelope};
use crate::spec::Spec;
use crate::subject::Subject;

/// Whether a kernel promises the bytes of a kernel or of a twin.
pub(super) fn is_promised(spec: &Spec) -> bool {
    spec.replaces.is_some() || spec.twin.is_some()
}

/// Compares bytes on gate 2's order fills, at two small shapes.
pub(super) fn check(gate: &mut Running, subject: &mut dyn Subject, context: &GateContext<'_>) {
    let has_sums = matches!(gate.target.judge, Judge::Formula(_));
    if !has_sums || !is_promised(subject.spec()) || gate.tally.failed() {
        return;
    }
    for dims in envelope::small(subject.spec()) {
        gate.shape_failed = false;
        // A shape without fills is gate 2's to report.
        let fills = repeat_fill::fills(subject.spec(), &dims).unwrap_or_default();
        for fill in fills.into_iter().filter(|fill| matches!(fill, Fill::Order(_))) {
            let (case, mut random) = case(subject, context, (Gate::Shapes, &dims), &fill.name());
            if !gate.wants(context, &case) {
                continue;
            }
            match repeat_fill::build(subject.spec(), &dims, fill, &mut random) {
                Ok(inputs) => {
                    gate.bytes_run(subject, &Prepared::new(&case, &dims, &inputs));
                }
                Err(error) => gate.tally.run_error(&case, &error),
            }
        }
    }
}
