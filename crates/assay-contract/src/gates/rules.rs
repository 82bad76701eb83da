//! What gates 1 and 3 share about kernels that a rule judges.

use std::collections::BTreeMap;

use assay_record::{CaseName, Evidence, Number, Outcome};
use assay_reference::Signature;
use assay_reference::rule::{Rule, RuleError, Violation};

use super::evidence;
use super::judge::element_name;
use crate::subject::RunResult;

/// Every output's values.
pub(super) fn decode(signature: &Signature, result: &RunResult) -> BTreeMap<String, Vec<f64>> {
    let outputs = signature.outputs.iter().filter_map(|tensor| {
        let bytes = result.outputs.get(&tensor.name)?;
        Some((tensor.name.clone(), tensor.format.decode_slice(bytes)))
    });
    outputs.collect()
}

/// The finding that violations of a rule make; none if there are none.
pub(super) fn finding(
    case: &CaseName,
    rule: &Rule,
    violations: Result<Vec<Violation>, RuleError>,
) -> Option<Evidence> {
    let violations = match violations {
        Ok(violations) => violations,
        Err(error) => return Some(evidence(case, Outcome::Fail, error.to_string())),
    };
    let first = violations.first()?;
    let reason = format!(
        "{} is {:?}, the rule {} gives {:?} ({} elements)",
        element_name(&first.output, &first.element),
        first.got,
        rule.name(),
        first.want,
        violations.len(),
    );
    let mut finding = evidence(case, Outcome::Fail, reason);
    finding.output = Some(first.output.clone());
    finding.element = Some(first.element.clone());
    finding.got = Some(Number(first.got));
    finding.value = Some(Number(first.want));
    Some(finding)
}
