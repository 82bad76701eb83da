//! From what each chip showed to the gate's result.

use std::collections::BTreeSet;

use assay_record::{ChipFit, Evidence, Gate, GateResult, Outcome};

use crate::spec::Spec;

/// Findings that a result keeps: each is another launch, rule or chip, so more than other gates do.
const FINDINGS_KEPT: usize = 64;

/// What all cases showed so far.
#[derive(Default)]
pub(super) struct Found {
    pub(super) cases: u64,
    pub(super) findings: Vec<Evidence>,
    pub(super) chips: Vec<ChipFit>,
    pub(super) notes: Vec<String>,
    /// Why nothing could be checked but what is declared.
    pub(super) not_applicable: Option<String>,
}

impl Found {
    /// The result of the gate. A control that names its chips has to be red on exactly those.
    pub(super) fn finish(mut self, spec: &Spec, is_partial: bool) -> GateResult {
        let (mut outcome, mut reason) = self.verdict();
        if let Some(wrong) = wrong_chips(spec, &self.findings).filter(|_| !is_partial) {
            // A control that is red where it must not be shows no more than a green one.
            outcome = if outcome == Outcome::Fail { Outcome::Unproven } else { outcome };
            reason = wrong;
        }
        self.findings.sort_by_key(|finding| finding.outcome != Outcome::Fail);
        self.findings.truncate(FINDINGS_KEPT);
        GateResult {
            gate: Gate::Limits,
            outcome,
            reason,
            cases: self.cases,
            margin: None,
            findings: self.findings,
            notes: self.notes,
            chips: self.chips,
        }
    }

    fn verdict(&self) -> (Outcome, String) {
        for outcome in [Outcome::Fail, Outcome::Unproven] {
            let mut found = self.findings.iter().filter(|finding| finding.outcome == outcome);
            if let Some(first) = found.next() {
                let more = match found.count() {
                    0 => String::new(),
                    count => format!(" (and {count} more)"),
                };
                return (outcome, first.reason.clone() + &more);
            }
        }
        if let Some(reason) = &self.not_applicable {
            return (Outcome::NotApplicable, reason.clone());
        }
        if self.cases == 0 {
            return (Outcome::Unproven, "no case ran".to_owned());
        }
        let launches: u64 = self.chips.iter().map(|chip| chip.launches).sum();
        (Outcome::Pass, format!("{launches} launches fit {} chips", self.chips.len()))
    }
}

/// The chips that a control is red on, where they are not those that it names.
fn wrong_chips(spec: &Spec, findings: &[Evidence]) -> Option<String> {
    if spec.control_chips.is_empty() {
        return None;
    }
    let red = findings.iter().filter(|finding| finding.outcome == Outcome::Fail);
    let red: BTreeSet<&str> = red.map(|finding| finding.case.fill.as_str()).collect();
    let wanted: BTreeSet<&str> = spec.control_chips.iter().map(String::as_str).collect();
    let names = |chips: &BTreeSet<&str>| match chips.len() {
        0 => "no chip".to_owned(),
        _ => chips.iter().copied().collect::<Vec<_>>().join(", "),
    };
    (red != wanted).then(|| format!("red on {}, to be red on {}", names(&red), names(&wanted)))
}
