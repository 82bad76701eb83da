//! Compares a kernel's bytes with those of its host twin.

use assay_record::{CaseName, Evidence, Number, Outcome};
use assay_reference::{Dims, Inputs, Tensor};

use super::evidence;
use super::judge::element_name;
use crate::layout::Layout;
use crate::spec::Spec;
use crate::subject::{RunError, RunResult};

/// The first element that differs from what the kernel's twin gives, as a finding; none where the
/// kernel has no twin or equals it. Two NaNs are equal whatever their payloads.
pub(super) fn difference(
    case: &CaseName,
    spec: &Spec,
    (dims, inputs): (&Dims, &Inputs),
    result: &RunResult,
) -> Option<Evidence> {
    let twin = spec.twin?;
    let wanted = match twin.bytes(&spec.signature, dims, inputs) {
        Ok(wanted) => wanted,
        Err(error) => return Some(not_run(case, twin.name, &error)),
    };
    let outputs = spec.signature.outputs.iter();
    outputs.filter_map(|tensor| Some((tensor, wanted.get(&tensor.name)?))).find_map(
        |(tensor, wanted)| {
            let got = result.outputs.get(&tensor.name).map(Vec::as_slice).unwrap_or_default();
            first_difference((case, twin.name), (tensor, dims), (got, wanted))
        },
    )
}

fn not_run(case: &CaseName, twin: &str, error: &RunError) -> Evidence {
    evidence(case, Outcome::Unproven, format!("the twin `{twin}` did not run: {error}"))
}

fn first_difference(
    (case, twin): (&CaseName, &str),
    (tensor, dims): (&Tensor, &Dims),
    (got, wanted): (&[u8], &[u8]),
) -> Option<Evidence> {
    if got == wanted {
        return None;
    }
    let layout = Layout::dense(tensor, dims).ok()?;
    if got.len() != wanted.len() {
        let sizes = format!("{} bytes, the twin `{twin}` gives {}", got.len(), wanted.len());
        let reason = format!("`{}` has {sizes}", tensor.name);
        return Some(evidence(case, Outcome::Fail, reason));
    }
    let value = |bits: u64| tensor.format.decode(bits);
    let bits = |element: usize| (layout.bits(got, element), layout.bits(wanted, element));
    let differs = |element: &usize| {
        let (got, wanted) = bits(*element);
        got != wanted && !(value(got).is_nan() && value(wanted).is_nan())
    };
    let mut elements = (0..layout.elements()).filter(differs);
    let first = elements.next()?;
    let count = 1 + elements.count();
    let (got, wanted) = bits(first);
    let reason = format!(
        "{} is {} ({got:#x}), the twin `{twin}` gives {} ({wanted:#x}) ({count} of {} elements)",
        element_name(&tensor.name, &layout.index(first)),
        Number(value(got)),
        Number(value(wanted)),
        layout.elements(),
    );
    let mut finding = evidence(case, Outcome::Fail, reason);
    finding.output = Some(tensor.name.clone());
    finding.element = Some(layout.index(first));
    finding.got = Some(Number(value(got)));
    finding.value = Some(Number(value(wanted)));
    Some(finding)
}
