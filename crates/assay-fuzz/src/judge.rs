//! Judges an operation's outputs by `assay_compare`: the reference, rounded to the output's format,
//! against what came out.

use assay_compare::{Options, Tensor, compare};
use assay_num::Format;
use assay_record::{
    Comparison, Finding, FindingKind, FuzzCase, FuzzVerdict, Number, Outcome, Recipe, Tolerance,
    WorstElement,
};

use crate::tensor::index;

/// The worst elements that a failure keeps, by either measure.
const WORST: usize = 4;

/// The outputs judged so far, with what is right in their places.
pub(crate) struct Judged {
    format: Format,
    tolerance: Tolerance,
    /// The output's shape.
    shape: Vec<u64>,
    /// The parts that were asked for, in order: the first place and how many.
    parts: Vec<(u64, u64)>,
    right: Vec<f64>,
    got: Vec<f64>,
}

impl Judged {
    /// Nothing of an output of that shape.
    pub(crate) fn new(format: Format, tolerance: Tolerance, shape: &[u64]) -> Judged {
        let (parts, right, got) = (Vec::new(), Vec::new(), Vec::new());
        Judged { format, tolerance, shape: shape.to_vec(), parts, right, got }
    }

    /// Takes a run of outputs from a place on.
    pub(crate) fn take(&mut self, start: u64, outputs: &[f64], right: impl Fn(u64) -> f64) {
        let end = start + outputs.len() as u64;
        self.parts.push((start, outputs.len() as u64));
        self.right.extend((start..end).map(right));
        self.got.extend_from_slice(outputs);
    }

    /// What the outputs taken come to; the reason where the tolerance is none.
    pub(crate) fn verdict(&self, recipe: &Recipe) -> Result<FuzzCase, String> {
        let whole: u64 = self.shape.iter().fold(1, |all, size| all.saturating_mul(*size));
        let judged = self.got.len() as u64;
        if judged == 0 {
            let reason = "there is no element, and none was given";
            return Ok(FuzzCase::new(recipe.clone(), FuzzVerdict::Pass, reason));
        }
        if let Some(case) = self.no_number(recipe) {
            return Ok(case);
        }
        let shape = if judged == whole { self.shape.clone() } else { vec![judged] };
        let comparison =
            self.compared(&shape).map_err(|why| format!("nothing judges it: {why}"))?;
        let comparison = if judged == whole { comparison } else { self.placed(comparison, whole) };
        Ok(self.case(recipe, comparison))
    }

    /// A NaN in a format that has none would be rounded to some value before anybody saw it.
    fn no_number(&self, recipe: &Recipe) -> Option<FuzzCase> {
        let pairs = self.got.iter().zip(&self.right);
        let at = pairs.enumerate().find(|(_, (got, right))| got.is_nan() && !right.is_nan())?.0;
        if self.format.has_nan() {
            return None;
        }
        let element = index(&self.shape, self.place(at as u64));
        let format = self.format.name();
        let reason = format!("output{} is NaN, which {format} has not", words(&element));
        let mut case = FuzzCase::new(recipe.clone(), FuzzVerdict::Wrong, reason);
        case.output = Some("output".to_owned());
        (case.element, case.got) = (Some(element), Some(Number(f64::NAN)));
        case.value = self.right.get(at).map(|right| Number(*right));
        Some(case)
    }

    fn compared(&self, shape: &[u64]) -> Result<Comparison, String> {
        let tensor = |values: &[f64]| {
            Tensor::from_values(self.format, shape, values).map_err(|error| error.to_string())
        };
        let options = Options {
            tolerance: self.tolerance,
            equal_nan: true,
            equal_zeros: true,
            worst: WORST,
            ..Options::default()
        };
        let (right, got) = (tensor(&self.right)?, tensor(&self.got)?);
        compare(&right.view(), &got.view(), &options).map_err(|error| error.to_string())
    }

    /// The place in the output of an element that was taken.
    fn place(&self, taken: u64) -> u64 {
        let mut before = 0;
        for (start, length) in &self.parts {
            if taken < before + length {
                return start + (taken - before);
            }
            before += length;
        }
        taken
    }

    /// A comparison of parts in the terms of the whole output.
    fn placed(&self, mut comparison: Comparison, whole: u64) -> Comparison {
        let coordinates = |place: u64| {
            index(&self.shape, place).into_iter().map(|at| at as u64).collect::<Vec<u64>>()
        };
        let moved = |at: &mut Option<Vec<u64>>| {
            if let Some(&[taken]) = at.as_deref() {
                *at = Some(coordinates(self.place(taken)));
            }
        };
        moved(&mut comparison.first_different);
        moved(&mut comparison.first_outside);
        comparison.findings.iter_mut().for_each(|finding| moved(&mut finding.first));
        let worst = comparison.worst_ulp.iter_mut().chain(&mut comparison.worst_error);
        for element in worst {
            element.index = self.place(element.index);
            element.coordinates = coordinates(element.index);
        }
        let (parts, judged) = (self.parts.len(), self.got.len());
        comparison.notes.push(format!("{judged} of {whole} elements, in {parts} parts"));
        (comparison.shape, comparison.elements) = (self.shape.clone(), whole);
        comparison
    }

    fn case(&self, recipe: &Recipe, comparison: Comparison) -> FuzzCase {
        let judged = self.got.len();
        let margin = margin(&comparison);
        let (verdict, reason) = match comparison.outcome {
            Outcome::Fail => (FuzzVerdict::Wrong, String::new()),
            Outcome::Pass => {
                (FuzzVerdict::Pass, format!("{judged} elements are within what is allowed"))
            }
            _ => (FuzzVerdict::Unproven, reasons(&comparison)),
        };
        let mut case = FuzzCase::new(recipe.clone(), verdict, reason);
        case.margin = Some(Number(margin)).filter(|_| verdict != FuzzVerdict::Unproven);
        if verdict != FuzzVerdict::Wrong {
            return case;
        }
        case.reason = reasons(&comparison);
        if let Some(worst) = worst(&comparison) {
            let element: Vec<i64> = worst.coordinates.iter().map(|at| *at as i64).collect();
            let (got, right) = (worst.candidate.0, worst.reference.0);
            case.reason = format!(
                "output{} is {got:e}, right is {right:e}; {}",
                words(&element),
                case.reason
            );
            case.output = Some("output".to_owned());
            case.element = Some(element);
            (case.got, case.value) = (Some(worst.candidate), Some(worst.reference));
            case.error = Some(Number(allowed(worst)));
        }
        case.comparison = Some(Box::new(comparison));
        case
    }
}

/// `[1, 2]`
fn words(element: &[i64]) -> String {
    let words: Vec<String> = element.iter().map(ToString::to_string).collect();
    format!("[{}]", words.join(", "))
}

/// What was found, in words.
fn reasons(comparison: &Comparison) -> String {
    let of = |finding: &&Finding| finding.outcome == comparison.outcome;
    let all = comparison.findings.iter().filter(of).map(|finding| finding.reason.clone());
    all.collect::<Vec<_>>().join("; ")
}

/// The error allowed at an element, beside distances in ulp.
fn allowed(element: &WorstElement) -> f64 {
    element.margin.map_or(0.0, |margin| element.error.0.abs() / margin.0)
}

/// The element that says most: one of another class, else the one farthest over what is allowed.
fn worst(comparison: &Comparison) -> Option<&WorstElement> {
    let other_class = comparison.worst_ulp.first().filter(|element| element.ulp.is_none());
    let all = comparison.worst_ulp.iter().chain(&comparison.worst_error);
    let over = |element: &&WorstElement| over(comparison, element);
    other_class.or_else(|| all.max_by(|one, other| over(one).total_cmp(&over(other))))
}

/// How far an element is from right, in what is allowed.
fn over(comparison: &Comparison, element: &WorstElement) -> f64 {
    let Some(ulp) = element.ulp else { return f64::INFINITY };
    if ulp == 0 {
        return 0.0;
    }
    // Nothing allowed, nothing fits: 1 / 0.
    let by_ulp = ulp as f64 / comparison.tolerance.max_ulp as f64;
    element.margin.map_or(by_ulp, |margin| margin.0.min(by_ulp))
}

/// The largest of the worst elements' distances, in what is allowed.
fn margin(comparison: &Comparison) -> f64 {
    if comparison.finds(FindingKind::Class) {
        return f64::INFINITY;
    }
    let all = comparison.worst_ulp.iter().chain(&comparison.worst_error);
    all.map(|element| over(comparison, element)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        "a:f32/3/dense/values/seed=1".parse().expect("a recipe")
    }

    fn judged(format: Format, tolerance: Tolerance, pairs: &[(f64, f64)]) -> FuzzCase {
        let mut judged = Judged::new(format, tolerance, &[pairs.len() as u64]);
        let got: Vec<f64> = pairs.iter().map(|(_, got)| *got).collect();
        judged.take(0, &got, |place| pairs[place as usize].0);
        judged.verdict(&recipe()).expect("a tolerance")
    }

    fn bf16(tolerance: Tolerance, right: f64, got: f64) -> FuzzVerdict {
        judged(Format::Bf16, tolerance, &[(right, got)]).verdict
    }

    #[test]
    fn an_exact_rule_takes_the_rounded_value_and_no_other() {
        let (step, exact) = (2f64.powi(-7), Tolerance::EXACT);
        assert_eq!(bf16(exact, 1.0 + step / 3.0, 1.0), FuzzVerdict::Pass);
        assert_eq!(bf16(exact, 1.0 + step / 3.0, 1.0 + step), FuzzVerdict::Wrong);
        assert_eq!(bf16(exact, 1.0 + step / 2.0, 1.0 + step), FuzzVerdict::Wrong, "ties to even");
        assert_eq!(bf16(exact, 0.0, -0.0), FuzzVerdict::Pass, "zeros have one value");
    }

    #[test]
    fn a_tolerance_widens_what_is_right() {
        let (step, one) = (2f64.powi(-7), Tolerance::ulp(1));
        assert_eq!(bf16(one, 1.0, 1.0 + step), FuzzVerdict::Pass);
        assert_eq!(bf16(one, 1.0, 1.0 + 3.0 * step), FuzzVerdict::Wrong);
        assert_eq!(bf16(Tolerance::new(0.0, 0.1), 1.0, 1.0 + 3.0 * step), FuzzVerdict::Pass);
        let case = judged(Format::F32, Tolerance::new(0.5, 0.0), &[(1.0, 1.25), (8.0, 8.0)]);
        assert_eq!((case.verdict, case.margin), (FuzzVerdict::Pass, Some(Number(0.5))));
    }

    #[test]
    fn a_tolerance_under_which_zeros_would_pass_proves_nothing() {
        let wide = Tolerance::new(1.0, 0.0);
        assert_eq!(bf16(wide, 0.5, 0.5), FuzzVerdict::Unproven);
        assert_eq!(bf16(Tolerance::new(0.1, 0.0), 0.5, 0.5), FuzzVerdict::Pass);
        let none = Tolerance { atol: -1.0, ..Tolerance::EXACT };
        let mut judged = Judged::new(Format::F32, none, &[1]);
        judged.take(0, &[1.0], |_| 1.0);
        assert!(judged.verdict(&recipe()).expect_err("no tolerance").contains("atol"));
    }

    #[test]
    fn nan_is_right_where_the_reference_has_it_and_nowhere_else() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        let verdict = |right, got| {
            judged(Format::F32, Tolerance::ulp(1), &[(1.0, 1.0), (right, got)]).verdict
        };
        assert_eq!(verdict(nan, nan), FuzzVerdict::Pass);
        assert_eq!(verdict(infinity, infinity), FuzzVerdict::Pass);
        for (right, got) in [(nan, 0.0), (0.0, nan), (infinity, 3e38), (1.0, infinity)] {
            assert_eq!(verdict(right, got), FuzzVerdict::Wrong, "{got} for {right}");
        }
        let unwritten = judged(Format::I8, Tolerance::EXACT, &[(1.0, 1.0), (0.0, nan)]);
        assert_eq!(unwritten.verdict, FuzzVerdict::Wrong, "{unwritten:?}");
        assert_eq!(unwritten.element, Some(vec![1]));
    }

    #[test]
    fn the_worst_element_is_named_with_how_many_are_wrong_and_the_evidence_is_kept() {
        let pairs = [(1.0, 1.0), (1.0, 2.0), (1.0, 9.0), (1.0, 1.5)];
        let case = judged(Format::F32, Tolerance::ulp(1), &pairs);
        assert_eq!((case.element, case.got), (Some(vec![2]), Some(Number(9.0))));
        assert!(case.reason.contains("3 of 4 outside"), "{}", case.reason);
        let comparison = case.comparison.expect("it is kept");
        assert_eq!((comparison.outside, comparison.first_outside), (3, Some(vec![1])));
    }

    #[test]
    fn parts_of_an_output_are_named_by_their_places_in_it() {
        let mut judged = Judged::new(Format::F32, Tolerance::EXACT, &[1 << 20, 1 << 12]);
        judged.take(0, &[1.0, 1.0], |_| 1.0);
        judged.take(1 << 31, &[1.0, 1.0, 5.0], |_| 1.0);
        let case = judged.verdict(&recipe()).expect("a tolerance");
        assert_eq!(case.element, Some(vec![1 << 19, 2]), "{case:?}");
        let comparison = case.comparison.expect("it is kept");
        assert_eq!((comparison.compared, comparison.elements), (5, 1 << 32));
        assert_eq!(comparison.worst_error[0].index, (1 << 31) + 2);
        assert_eq!(comparison.first_different, Some(vec![1 << 19, 2]));
    }
}
