//! What the gates on values share about kernels that a rule judges, or that make a choice.

use std::collections::BTreeMap;

use assay_record::{CaseName, Evidence, Number, Outcome};
use assay_reference::rule::{Rule, RuleError, Violation};
use assay_reference::{Bounded, Evaluation, Inputs, Program, Signature};

use super::judge::element_name;
use super::target::{Judge, Target};
use super::{Tally, evidence};
use crate::subject::{RunResult, Subject};

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

/// What a kernel's choice makes of a run.
pub(super) enum Followed {
    /// It is what the scores without errors give, or there is nothing to choose.
    AsExpected,
    /// It is another right answer to a near tie; the inputs with it, to judge the rest by.
    Otherwise(Inputs),
    /// No scores within their bounds give it.
    Wrong(Box<Evidence>),
    /// The scores cannot be evaluated.
    Unknown(String),
}

/// Rows of choices, and how many of them have more than one right answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choices {
    pub(super) rows: usize,
    pub(super) ambiguous: usize,
}

/// Judges the choice that a kernel made in a run, and counts its rows.
pub(super) fn follow(
    program: &Program,
    (case, evaluation): (&CaseName, &Evaluation<'_>),
    result: &RunResult,
    choices: &mut Choices,
) -> Followed {
    let Some(choice) = program.choice() else { return Followed::AsExpected };
    let output = choice.output();
    let bytes = result.outputs.get(&output.name).map(Vec::as_slice).unwrap_or_default();
    let got = output.format.decode_slice(bytes);
    let judged = match choice.judge(evaluation, &got) {
        Ok(judged) => judged,
        Err(error) => return Followed::Unknown(format!("fixture: {error}")),
    };
    choices.rows += judged.rows;
    choices.ambiguous += judged.ambiguous;
    if let Some(first) = judged.violations.first() {
        let reason = format!(
            "{} is {:?}, and no scores within their bounds give that by {}; without errors they \
             give {:?} ({} of {} rows)",
            element_name(&first.output, &first.element),
            first.got,
            choice.name(),
            first.want,
            judged.violations.len(),
            judged.rows,
        );
        let mut finding = evidence(case, Outcome::Fail, reason);
        finding.output = Some(first.output.clone());
        finding.element = Some(first.element.clone());
        finding.got = Some(Number(first.got));
        finding.value = Some(Number(first.want));
        return Followed::Wrong(Box::new(finding));
    }
    if judged.expected == got {
        return Followed::AsExpected;
    }
    let mut inputs = evaluation.inputs.clone();
    inputs.tensors.insert(output.name.clone(), got);
    Followed::Otherwise(inputs)
}

/// The bounds of a run's outputs given the choice that the kernel made, which is judged first;
/// none, with the finding in `tally`, if the choice is wrong.
pub(super) fn given_choice(
    (subject, target): (&dyn Subject, &Target),
    (case, evaluation): (&CaseName, &Evaluation<'_>),
    (bounded, result): (BTreeMap<String, Bounded>, &RunResult),
    (tally, choices): (&mut Tally, &mut Choices),
) -> Option<BTreeMap<String, Bounded>> {
    let Judge::Formula(program) = &target.judge else { return Some(bounded) };
    let inputs = match follow(program, (case, evaluation), result, choices) {
        Followed::AsExpected => return Some(bounded),
        Followed::Otherwise(inputs) => inputs,
        Followed::Wrong(finding) => {
            tally.find(*finding);
            return None;
        }
        Followed::Unknown(reason) => {
            tally.unproven(case, reason);
            return None;
        }
    };
    match subject.reference(&Evaluation { inputs: &inputs, ..evaluation.clone() })? {
        Ok(bounded) => Some(bounded),
        Err(error) => {
            tally.unproven(case, format!("fixture: {error}"));
            None
        }
    }
}

impl Choices {
    /// Says how many rows could have gone another way; where all could, nothing was shown.
    pub(super) fn report(self, tally: &mut Tally, case: impl FnOnce() -> CaseName) {
        let Choices { rows, ambiguous } = self;
        if rows > 0 && rows == ambiguous {
            tally.unproven(&case(), format!("all {rows} rows have more than one right choice"));
        } else if ambiguous > 0 {
            let share = format!("{ambiguous} of {rows} rows have more than one right choice");
            tally.note(format!("{share}, within the scores' bounds"));
        }
    }
}
