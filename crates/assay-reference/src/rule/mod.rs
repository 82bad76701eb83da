//! Named rules: kernels whose outputs are choices (which elements are largest), not arithmetic.
//!
//! A rule is total: it says what happens to ties, NaN and both zeros, so every output element has
//! one right value and the verdict needs no tolerance. Rules judge the last axis of one input,
//! row by row.

mod arg_max;
pub mod choice;
mod order;
mod top_k;

use std::collections::BTreeMap;

use assay_num::Format;
use thiserror::Error;

use crate::{Dims, Extent, Inputs, Signature, Tensor};

pub use order::{NanPlace, Ranking};

/// A rule bound to the tensors of one kernel.
#[derive(Debug, Clone)]
pub struct Rule {
    kind: Kind,
    ranking: Ranking,
    scores: Tensor,
    values: Option<Tensor>,
    indices: Option<Tensor>,
}

#[derive(Debug, Clone)]
enum Kind {
    TopK { k: Extent },
    ArgMax,
}

/// The rules there are.
pub const NAMES: [&str; 2] = ["argmax", "top_k"];

/// Why a rule cannot judge a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// No rule has this name.
    #[error("no rule is called `{name}`; the rules are argmax and top_k")]
    UnknownRule {
        /// The name asked for.
        name: String,
    },
    /// A parameter is missing, unknown or does not parse.
    #[error("rule {rule}: {problem}")]
    Parameter {
        /// The rule.
        rule: &'static str,
        /// What was wrong and what to write instead.
        problem: String,
    },
    /// The kernel's tensors do not fit the rule.
    #[error("rule {rule}: {problem}")]
    Tensors {
        /// The rule.
        rule: &'static str,
        /// What was wrong and what the rule needs.
        problem: String,
    },
}

/// An output element that the rule forbids.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The output tensor.
    pub output: String,
    /// The element's index along each axis.
    pub element: Vec<i64>,
    /// What the kernel wrote.
    pub got: f64,
    /// What the rule asks for.
    pub want: f64,
}

impl Rule {
    /// The rule called `name`, bound to a kernel's tensors: the one input is ranked along its last
    /// axis, a floating-point output takes the values, an integer output their indices.
    /// Parameters: `k` (an expression of dims; `top_k` only), `nan` (`largest`, `smallest`) and
    /// `zeros` (`equal`, `signed`).
    ///
    /// # Errors
    /// An unknown rule or parameter, or tensors that do not fit.
    pub fn named(
        name: &str,
        parameters: &BTreeMap<String, String>,
        signature: &Signature,
    ) -> Result<Rule, RuleError> {
        let rule = NAMES.into_iter().find(|known| *known == name);
        let Some(rule) = rule else {
            return Err(RuleError::UnknownRule { name: name.to_owned() });
        };
        let known: &[&str] =
            if rule == "top_k" { &["k", "nan", "zeros"] } else { &["nan", "zeros"] };
        if let Some(unknown) = parameters.keys().find(|key| !known.contains(&key.as_str())) {
            let problem = format!("unknown parameter `{unknown}`; known are {}", known.join(", "));
            return Err(RuleError::Parameter { rule, problem });
        }
        let ranking = Ranking::from_parameters(rule, parameters)?;
        let kind = if rule == "top_k" { top_k::kind(parameters)? } else { Kind::ArgMax };
        let scores = only_input(rule, signature)?;
        let values = output(signature, Format::is_float);
        let indices = output(signature, |format| !format.is_float());
        if values.is_none() && indices.is_none() {
            let problem = "needs an output for the values or for the indices".to_owned();
            return Err(RuleError::Tensors { rule, problem });
        }
        Ok(Rule { kind, ranking, scores, values, indices })
    }

    /// The name it was asked for by.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::TopK { .. } => "top_k",
            Kind::ArgMax => "argmax",
        }
    }

    /// The input that is ranked.
    pub fn scores(&self) -> &Tensor {
        &self.scores
    }

    /// How two elements compare.
    pub fn ranking(&self) -> Ranking {
        self.ranking
    }

    /// Places that every row of the outputs has.
    ///
    /// # Errors
    /// A `k` that does not evaluate or is less than 1.
    pub fn places(&self, dims: &Dims) -> Result<usize, RuleError> {
        match &self.kind {
            Kind::ArgMax => Ok(1),
            Kind::TopK { k } => top_k::places(k, dims),
        }
    }

    /// Every output as the rule wants it, row-major. Places past a row's last element hold -Inf and
    /// the index -1.
    ///
    /// # Errors
    /// Shapes that do not evaluate, or an input that is missing or has another length.
    pub fn expected(
        &self,
        dims: &Dims,
        inputs: &Inputs,
    ) -> Result<BTreeMap<String, Vec<f64>>, RuleError> {
        let length = self.row_length(dims)?;
        let places = self.places(dims)?;
        let scores = inputs.tensors.get(&self.scores.name);
        let Some(scores) = scores.filter(|scores| scores.len().is_multiple_of(length)) else {
            let problem = format!("input `{}` is missing or ragged", self.scores.name);
            return Err(RuleError::Tensors { rule: self.name(), problem });
        };
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        for row in scores.chunks_exact(length) {
            let chosen = self.choose(row, places);
            values.extend(chosen.iter().map(|index| row[*index]));
            indices.extend(chosen.iter().map(|index| *index as f64));
            let empty = places - chosen.len();
            values.extend(std::iter::repeat_n(f64::NEG_INFINITY, empty));
            indices.extend(std::iter::repeat_n(-1.0, empty));
        }
        let mut expected = BTreeMap::new();
        if let Some(tensor) = &self.values {
            let rounded = values.iter().map(|value| tensor.format.round(*value)).collect();
            expected.insert(tensor.name.clone(), rounded);
        }
        if let Some(tensor) = &self.indices {
            expected.insert(tensor.name.clone(), indices);
        }
        Ok(expected)
    }

    /// Compares what a kernel wrote with the rule; NaN equals NaN, zeros of either sign are equal.
    /// The violations come in row-major order of each output, at most `limit` of them.
    ///
    /// # Errors
    /// As [`Rule::expected`], or an output that is missing or has another length.
    pub fn check(
        &self,
        dims: &Dims,
        inputs: &Inputs,
        outputs: &BTreeMap<String, Vec<f64>>,
        limit: usize,
    ) -> Result<Vec<Violation>, RuleError> {
        let mut violations = Vec::new();
        let places = self.places(dims)?;
        for (name, want) in self.expected(dims, inputs)? {
            let got = outputs.get(&name).filter(|got| got.len() == want.len());
            let Some(got) = got else {
                let problem = format!("output `{name}` is missing or has another length");
                return Err(RuleError::Tensors { rule: self.name(), problem });
            };
            for (place, (got, want)) in got.iter().zip(&want).enumerate() {
                if got != want && !(got.is_nan() && want.is_nan()) && violations.len() < limit {
                    let element = vec![(place / places) as i64, (place % places) as i64];
                    violations.push(Violation {
                        output: name.clone(),
                        element,
                        got: *got,
                        want: *want,
                    });
                }
            }
        }
        Ok(violations)
    }

    fn choose(&self, row: &[f64], places: usize) -> Vec<usize> {
        match self.kind {
            Kind::TopK { .. } => top_k::choose(self.ranking, row, places),
            Kind::ArgMax => arg_max::choose(self.ranking, row),
        }
    }

    fn row_length(&self, dims: &Dims) -> Result<usize, RuleError> {
        let last = self.scores.shape.last().and_then(|extent| extent.eval(dims).ok());
        last.and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length > 0)
            .ok_or_else(|| RuleError::Tensors {
                rule: self.name(),
                problem: format!("the last axis of `{}` has no length", self.scores.name),
            })
    }
}

fn only_input(rule: &'static str, signature: &Signature) -> Result<Tensor, RuleError> {
    match signature.inputs.as_slice() {
        [scores] if !scores.shape.is_empty() => Ok(scores.clone()),
        inputs => {
            let problem =
                format!("ranks the last axis of one input, and the kernel has {}", inputs.len());
            Err(RuleError::Tensors { rule, problem })
        }
    }
}

fn output(signature: &Signature, fits: impl Fn(Format) -> bool) -> Option<Tensor> {
    signature.outputs.iter().find(|tensor| fits(tensor.format)).cloned()
}

#[cfg(test)]
mod tests;
