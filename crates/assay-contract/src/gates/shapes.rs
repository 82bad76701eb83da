//! Stub.
use assay_record::{Gate, GateResult};
use super::{GateContext, not_applicable};
use crate::subject::Subject;
/// Runs the gate.
pub fn check(_subject: &mut dyn Subject, _context: &GateContext<'_>) -> GateResult {
    not_applicable(Gate::Shapes, "not written yet")
}
