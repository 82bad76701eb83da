//! The answer to "does this launch fit this chip": what is wrong, what is not known, what the
//! launcher must ask for, and how many blocks a multiprocessor holds.

use std::fmt;

use serde::Serialize;

use crate::chips::Sourced;
use crate::{Occupancy, Rule};

/// How a launch fits a chip.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Fit {
    /// The rules that the launch breaks; empty if it fits as far as is known.
    pub problems: Vec<Problem>,
    /// What is not known until the kernel is compiled for this chip, a sentence each. Not empty
    /// means that the launch may not be called fitting.
    pub unknown: Vec<String>,
    /// What the launcher must ask of the driver for the launch to run.
    pub needs: Vec<Need>,
    /// How many blocks are resident at once; `None` if the launch does not fit or nothing is known.
    pub occupancy: Option<Occupancy>,
}

/// A fit in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No rule is broken, and nothing is unknown.
    Fits,
    /// A rule is broken.
    DoesNotFit,
    /// No rule is broken, and what would decide is not recorded.
    UnknownUntilCompiled,
}

impl Fit {
    /// The fit in one word: a broken rule outweighs what is unknown.
    pub fn verdict(&self) -> Verdict {
        if !self.problems.is_empty() {
            Verdict::DoesNotFit
        } else if !self.unknown.is_empty() {
            Verdict::UnknownUntilCompiled
        } else {
            Verdict::Fits
        }
    }

    /// True if no rule is broken and nothing is unknown.
    pub fn fits(&self) -> bool {
        self.verdict() == Verdict::Fits
    }

    /// Adds a problem if more is asked than the chip has.
    pub(crate) fn at_most(&mut self, rule: Rule, asked: u64, limit: &Sourced<u64>) {
        if asked > limit.value {
            self.problem(rule, asked, limit.value, limit.unconfirmed);
        }
    }

    /// Adds a problem for each axis that is empty or longer than the chip allows.
    pub(crate) fn axes(&mut self, rules: [Rule; 3], asked: [u64; 3], limit: &Sourced<[u64; 3]>) {
        for ((rule, asked), limit_of_axis) in rules.into_iter().zip(asked).zip(limit.value) {
            if asked == 0 {
                self.problem(Rule::Empty, 0, 1, false);
            } else if asked > limit_of_axis {
                self.problem(rule, asked, limit_of_axis, limit.unconfirmed);
            }
        }
    }

    /// Adds a problem for each axis along which a block is not the one that the kernel requires.
    pub(crate) fn required(&mut self, block: [u64; 3], required: [u32; 3]) {
        let rules = [Rule::RequiredX, Rule::RequiredY, Rule::RequiredZ];
        for ((rule, asked), required) in rules.into_iter().zip(block).zip(required) {
            if asked != u64::from(required) {
                self.problem(rule, asked, required.into(), false);
            }
        }
    }

    /// Adds a problem.
    pub(crate) fn problem(&mut self, rule: Rule, asked: u64, limit: u64, unconfirmed: bool) {
        self.problems.push(Problem { rule, asked, limit, unconfirmed });
    }
}

/// One rule that a launch breaks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problem {
    /// The rule.
    pub rule: Rule,
    /// What the launch asks, in the rule's unit.
    pub asked: u64,
    /// What there is.
    pub limit: u64,
    /// True if no primary source was read for the limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.rule.words();
        let (asked, limit) = (grouped(self.asked), grouped(self.limit));
        let unconfirmed = if self.unconfirmed { " (unconfirmed)" } else { "" };
        let (what, holder, advice) = (words.asked, words.limit, words.advice);
        write!(formatter, "{asked} {what}, {holder} {limit}{unconfirmed}: {advice}")
    }
}

/// What a launcher must ask of the driver before a launch that fits can run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES` of at least so many bytes.
    DynamicShared(u64),
    /// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`, for clusters of so many blocks.
    NonPortableCluster(u64),
}

impl fmt::Display for Need {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::DynamicShared(bytes) => {
                let bytes = grouped(*bytes);
                write!(
                    formatter,
                    "the launcher must opt in to {bytes} bytes of dynamic shared memory"
                )
            }
            Need::NonPortableCluster(blocks) => {
                write!(
                    formatter,
                    "the launcher must allow clusters of {blocks} blocks, not portable"
                )
            }
        }
    }
}

/// A number with a comma after every three digits: 65,535.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
