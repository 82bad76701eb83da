//! Choices: outputs that a rule picks from scores which a formula computes, as a router picks
//! experts by their logits and a sampler a token by its probability.
//!
//! A kernel computes its scores with rounding errors, so near ties have more than one right answer.
//! A choice is right if some scores, each within its error bound, would give it. Everything else
//! the kernel writes is judged given its choice: the formula reads the choice as it reads an input.

mod ordered;
mod prefix;
mod score;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use assay_num::Class;

use super::{NanPlace, RuleError, Violation};
use crate::{
    Arithmetic, Bounded, Dims, Evaluation, EvaluationError, Extent, Formula, FormulaError, Inputs,
    Program, Signature, Tensor, reductions,
};

use prefix::TopP;
use score::Score;

/// The rules that choose.
pub const NAMES: [&str; 2] = ["top_k", "top_p"];

/// A rule bound to the scores of one formula and to the output that takes the choice.
#[derive(Clone, Debug)]
pub struct Choice {
    kind: Kind,
    /// The part of the formula that computes the scores, with them as its only output.
    scores: Program,
    /// The output that takes the choice.
    output: Tensor,
    nan: NanPlace,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The largest scores, in order.
    TopK,
    /// One index, drawn from the smallest set of largest scores whose mass is enough.
    TopP(TopP),
}

/// What a kernel's choice was found to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Elements that no scores within their bounds give, in row-major order.
    pub violations: Vec<Violation>,
    /// What the scores without errors give.
    pub expected: Vec<f64>,
    /// Rows that have another right answer as well.
    pub ambiguous: usize,
    /// Rows judged.
    pub rows: usize,
}

/// Why a choice cannot be bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// A parameter, or a tensor that does not fit.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The formula does not fit the kernel's tensors.
    #[error(transparent)]
    Formula(#[from] FormulaError),
}

impl Choice {
    /// Checks `formula` against a kernel's `signature` and binds the rule called `name` to it; the
    /// program carries the choice. Parameters: `of`, the statement that computes the scores, along
    /// its last axis; `into`, the integer output that takes the choice; `nan` (`largest`,
    /// `smallest`; `top_k` alone). `top_p` also takes `p` (a scalar or a number), `draw` (an input
    /// of random numbers, one a row: fractions, or whole numbers of 2^-32), `order` (an input of
    /// the scores' shape, by which they are sorted) and `depth` (roundings on the way of a score
    /// into a mass).
    ///
    /// # Errors
    /// An unknown rule or parameter, tensors that do not fit, or a formula that does not check.
    pub fn bind(
        name: &str,
        parameters: &BTreeMap<String, String>,
        formula: &Formula,
        signature: &Signature,
    ) -> Result<Program, ChoiceError> {
        let Some(rule) = NAMES.into_iter().find(|known| *known == name) else {
            return Err(RuleError::UnknownRule { name: name.to_owned() }.into());
        };
        let parameters = Parameters { rule, given: parameters };
        parameters.refuse_unknown()?;
        let into = parameters.need("into")?;
        let mut given = signature.clone();
        let place = given.outputs.iter().position(|tensor| tensor.name == into);
        let output = place.map(|place| given.outputs.remove(place));
        let output = output.filter(|tensor| !tensor.format.is_float());
        let Some(output) = output else {
            return Err(parameters.wrong(format!("`{into}` is no integer output")).into());
        };
        given.inputs.push(output.clone());
        let program = formula.check_used(&given, parameters.need("of")?)?;
        given.inputs.pop();
        let scores = scores(&parameters, formula, (&program, given))?;
        let choice = Self::checked(&parameters, scores, output)?;
        Ok(program.with_choice(choice))
    }

    fn checked(
        parameters: &Parameters<'_>,
        scores: Program,
        output: Tensor,
    ) -> Result<Choice, RuleError> {
        let nan = match parameters.get("nan") {
            None | Some("largest") => NanPlace::Largest,
            Some("smallest") => NanPlace::Smallest,
            Some(other) => {
                let problem = format!("`nan` is `{other}`; write `largest` or `smallest`");
                return Err(parameters.wrong(problem));
            }
        };
        let tensor = &scores.signature().outputs[0];
        let leading = tensor.shape.len().saturating_sub(1);
        let rank = output.shape.len();
        let fits = if parameters.rule == "top_p" {
            rank == leading
        } else {
            rank == leading || rank == leading + 1
        };
        if tensor.shape.is_empty() || !fits || output.shape[..leading] != tensor.shape[..leading] {
            let problem = format!(
                "`{}` needs the axes of `{}`{}",
                output.name,
                tensor.name,
                if parameters.rule == "top_p" { " but its last" } else { ", its last of any size" },
            );
            return Err(parameters.wrong(problem));
        }
        let kind = match parameters.rule {
            "top_p" => Kind::TopP(TopP::read(parameters, &scores)?),
            _ => Kind::TopK,
        };
        Ok(Choice { kind, scores, output, nan })
    }

    /// The rule's name.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::TopK => "top_k",
            Kind::TopP(_) => "top_p",
        }
    }

    /// The output that takes the choice.
    pub fn output(&self) -> &Tensor {
        &self.output
    }

    /// What the scores without errors give, row-major; rows outside `evaluation.rows` hold 0.
    ///
    /// # Errors
    /// When the scores cannot be evaluated.
    pub fn expected(&self, evaluation: &Evaluation<'_>) -> Result<Vec<f64>, EvaluationError> {
        let sizes = self.sizes(evaluation.dims)?;
        let rows = self.rows(evaluation, &sizes);
        let asked = Evaluation { drop: None, rows: rows.clone(), ..evaluation.clone() };
        let name = &self.scores.signature().outputs[0].name;
        let values = self.scores.value(&asked)?.remove(name).unwrap_or_default();
        let mut chosen = vec![0.0; sizes.rows * sizes.places];
        let first = rows.map_or(0, |rows| rows.start as usize * sizes.below_first);
        for (number, row) in values.chunks_exact(sizes.length.max(1)).enumerate() {
            let scores: Vec<Score> = row.iter().map(|value| Score::exact(*value)).collect();
            let picked = self.pick(&scores, (first + number, &sizes), evaluation);
            let start = (first + number) * sizes.places;
            chosen[start..start + sizes.places].copy_from_slice(&picked);
        }
        Ok(chosen)
    }

    /// Judges what a kernel wrote into the choice's output.
    ///
    /// # Errors
    /// When the scores cannot be evaluated.
    pub fn judge(
        &self,
        evaluation: &Evaluation<'_>,
        got: &[f64],
    ) -> Result<Judged, EvaluationError> {
        let sizes = self.sizes(evaluation.dims)?;
        let whole = Evaluation { drop: None, rows: None, ..evaluation.clone() };
        let expected = self.expected(&whole)?;
        let scores = self.bounded_scores(&whole)?;
        let mut judged =
            Judged { violations: Vec::new(), expected, ambiguous: 0, rows: sizes.rows };
        for (row, scores) in scores.chunks_exact(sizes.length.max(1)).enumerate() {
            let places = row * sizes.places..(row + 1) * sizes.places;
            let missing = vec![f64::NAN; sizes.places];
            let got = got.get(places.clone()).unwrap_or(&missing);
            let want = &judged.expected[places];
            let at = (row, &sizes);
            if self.is_ambiguous(scores, want, at, evaluation) {
                judged.ambiguous += 1;
            }
            if let Some(place) = self.wrong_place(scores, got, at, evaluation) {
                judged.violations.push(Violation {
                    output: self.output.name.clone(),
                    element: sizes.element(row, place),
                    got: got[place],
                    want: want[place],
                });
            }
        }
        Ok(judged)
    }

    fn pick(
        &self,
        scores: &[Score],
        (row, sizes): (usize, &Sizes),
        evaluation: &Evaluation<'_>,
    ) -> Vec<f64> {
        match &self.kind {
            Kind::TopK => ordered::pick(self.nan, scores, sizes.places),
            Kind::TopP(rule) => vec![rule.draw(scores, row, evaluation).expected],
        }
    }

    fn wrong_place(
        &self,
        scores: &[Score],
        got: &[f64],
        (row, _): (usize, &Sizes),
        evaluation: &Evaluation<'_>,
    ) -> Option<usize> {
        match &self.kind {
            Kind::TopK => ordered::wrong_place(self.nan, scores, got),
            Kind::TopP(rule) => {
                let allowed = rule.draw(scores, row, evaluation).allowed;
                (!allowed.iter().any(|index| *index as f64 == got[0])).then_some(0)
            }
        }
    }

    fn is_ambiguous(
        &self,
        scores: &[Score],
        want: &[f64],
        (row, _): (usize, &Sizes),
        evaluation: &Evaluation<'_>,
    ) -> bool {
        match &self.kind {
            Kind::TopK => ordered::is_ambiguous(self.nan, scores, want),
            Kind::TopP(rule) => rule.draw(scores, row, evaluation).allowed.len() > 1,
        }
    }

    /// Every score with its bound.
    fn bounded_scores(&self, whole: &Evaluation<'_>) -> Result<Vec<Score>, EvaluationError> {
        let name = &self.scores.signature().outputs[0].name;
        let arithmetic = self.known_depths(whole.arithmetic);
        let whole = Evaluation { arithmetic: &arithmetic, ..whole.clone() };
        let Bounded { value, error, .. } =
            self.scores.error(&whole)?.remove(name).unwrap_or_default();
        let classes = self.scores.classes(&whole)?.remove(name).unwrap_or_default();
        let score = |((value, error), class): ((&f64, &f64), &Class)| match class {
            Class::Finite => Score::within(*value, *error),
            Class::NaN => Score::exact(f64::NAN),
            Class::PositiveInfinity => Score::exact(f64::INFINITY),
            Class::NegativeInfinity => Score::exact(f64::NEG_INFINITY),
        };
        Ok(value.iter().zip(&error).zip(&classes).map(score).collect())
    }

    /// The arithmetic without the depths of reductions that the scores do not have.
    fn known_depths(&self, arithmetic: &Arithmetic) -> Arithmetic {
        let mut known = arithmetic.clone();
        known.depth.retain(|name, _| reductions::find(self.scores.reductions(), name).is_some());
        known
    }

    fn sizes(&self, dims: &Dims) -> Result<Sizes, EvaluationError> {
        let size = |extent: &Extent| extent.size(dims).map(|size| size as usize);
        let shape = &self.scores.signature().outputs[0].shape;
        let shape: Vec<usize> = shape.iter().map(size).collect::<Result<_, _>>()?;
        let output: Vec<usize> = self.output.shape.iter().map(size).collect::<Result<_, _>>()?;
        let leading = shape.len() - 1;
        Ok(Sizes {
            rows: shape[..leading].iter().product(),
            below_first: shape[..leading].iter().skip(1).product(),
            length: shape[leading],
            places: output[leading..].iter().product(),
            output,
        })
    }

    /// The rows to evaluate, where the scores' first axis can be restricted.
    fn rows(&self, evaluation: &Evaluation<'_>, sizes: &Sizes) -> Option<Range<i64>> {
        let rows = evaluation.rows.clone()?;
        let has_rows = self.scores.signature().outputs[0].shape.len() > 1;
        let fits = has_rows && rows.end as usize * sizes.below_first <= sizes.rows;
        fits.then_some(rows)
    }
}

/// A choice's tensors at one shape.
struct Sizes {
    /// Rows of scores.
    rows: usize,
    /// Rows under one index of the scores' first axis.
    below_first: usize,
    /// Scores in a row.
    length: usize,
    /// Places in a row of the choice.
    places: usize,
    /// The choice's shape.
    output: Vec<usize>,
}

impl Sizes {
    /// The index along each axis of a place of the choice.
    fn element(&self, row: usize, place: usize) -> Vec<i64> {
        let mut rest = row * self.places + place;
        let mut element: Vec<i64> = Vec::new();
        for size in self.output.iter().rev() {
            element.push((rest % (*size).max(1)) as i64);
            rest /= (*size).max(1);
        }
        element.reverse();
        element
    }
}

impl Program {
    /// The same program, one of whose inputs is a choice.
    fn with_choice(mut self, choice: Choice) -> Program {
        self.choice = Some(Arc::new(choice));
        self
    }

    /// The choice that the program reads as an input, if a rule makes one.
    pub fn choice(&self) -> Option<&Choice> {
        self.choice.as_deref()
    }

    /// The inputs with the choice that the scores without errors give, unless they hold one.
    pub(crate) fn completed<'a>(
        &self,
        evaluation: &Evaluation<'a>,
    ) -> Result<Cow<'a, Inputs>, EvaluationError> {
        let inputs = evaluation.inputs;
        let Some(choice) = &self.choice else { return Ok(Cow::Borrowed(inputs)) };
        if inputs.tensors.contains_key(&choice.output.name) {
            return Ok(Cow::Borrowed(inputs));
        }
        let mut completed = inputs.clone();
        completed.tensors.insert(choice.output.name.clone(), choice.expected(evaluation)?);
        Ok(Cow::Owned(completed))
    }
}

/// A rule's parameters as written.
struct Parameters<'a> {
    rule: &'static str,
    given: &'a BTreeMap<String, String>,
}

impl Parameters<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(String::as_str)
    }

    fn need(&self, key: &str) -> Result<&str, RuleError> {
        self.get(key).ok_or_else(|| self.wrong(format!("`{key}` is missing")))
    }

    fn wrong(&self, problem: String) -> RuleError {
        RuleError::Parameter { rule: self.rule, problem }
    }

    fn refuse_unknown(&self) -> Result<(), RuleError> {
        let known: &[&str] = match self.rule {
            "top_p" => &["of", "into", "p", "draw", "order", "depth"],
            _ => &["of", "into", "nan"],
        };
        match self.given.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                let known = known.join(", ");
                Err(self.wrong(format!("unknown parameter `{key}`; known are {known}")))
            }
        }
    }
}

/// The part of a formula that computes the scores.
fn scores(
    parameters: &Parameters<'_>,
    formula: &Formula,
    (program, mut signature): (&Program, Signature),
) -> Result<Program, ChoiceError> {
    let of = parameters.need("of")?;
    let statement = program.statements.iter().find(|statement| statement.name == of);
    let Some((statement, part)) = statement.zip(formula.part(of)) else {
        return Err(parameters.wrong(format!("the formula has no statement `{of}`")).into());
    };
    signature.outputs = vec![Tensor {
        name: of.to_owned(),
        format: assay_num::Format::F32,
        shape: statement.shape.clone(),
    }];
    Ok(part.check(&signature)?)
}

#[cfg(test)]
mod tests;
