//! `top_p`: a draw from the smallest set of the largest probabilities whose mass reaches p.
//!
//! Sorted by `order`, equal ones by index, the probabilities of a row have masses before them: the
//! nucleus is every token before which there is less mass than p, and the draw u takes the token
//! at which the mass first passes u times the nucleus's. A row whose probabilities hold a NaN
//! draws the first of these. Masses are sums of rounded numbers, so a token is right if some
//! probabilities within their bounds, added with the declared number of roundings, give it.

use std::cmp::Ordering;

use crate::rule::RuleError;
use crate::{Dims, Evaluation, Extent, Program};

use super::Parameters;
use super::score::Score;

/// The roundings of the draw itself: of u, of its product with a mass, and of p with a mass.
const DRAW_ROUNDINGS: f64 = 4.0;
/// The unit roundoff of fp32.
const UNIT: f64 = 1.0 / (1u64 << 24) as f64;

/// The rule's parameters.
#[derive(Clone, Debug)]
pub(super) struct TopP {
    /// The mass that is enough.
    p: f64,
    /// The input of random numbers, and what one is worth.
    draw: (String, f64),
    /// The input that tokens are sorted by.
    order: String,
    /// Roundings of a mass; as many as a row has scores where not stated.
    depth: Option<Extent>,
}

/// What a row's draw may give.
pub(super) struct Drawn {
    /// The token that probabilities without errors give.
    pub(super) expected: f64,
    /// Every token that probabilities within their bounds may give.
    pub(super) allowed: Vec<usize>,
}

impl TopP {
    pub(super) fn read(parameters: &Parameters<'_>, scores: &Program) -> Result<TopP, RuleError> {
        let signature = scores.signature();
        let input = |key: &str| {
            let name = parameters.need(key)?;
            let tensor = signature.inputs.iter().find(|tensor| tensor.name == name);
            tensor
                .ok_or_else(|| parameters.wrong(format!("`{key}` is `{name}`, which is no input")))
        };
        let p = parameters.need("p")?;
        let known = signature.scalars.get(p).copied().or_else(|| p.parse().ok());
        let Some(p) = known.filter(|p| *p > 0.0 && *p <= 1.0) else {
            let problem = format!("`p` is `{p}`; write a scalar's name or a number in 0 < p <= 1");
            return Err(parameters.wrong(problem));
        };
        let (draw, order) = (input("draw")?, input("order")?);
        let shape = &signature.outputs[0].shape;
        if order.shape != *shape || draw.shape[..] != shape[..shape.len() - 1] {
            let problem = "`order` has the scores' axes, and `draw` all but the last".to_owned();
            return Err(parameters.wrong(problem));
        }
        let unit = if draw.format.is_float() { 1.0 } else { 1.0 / (1u64 << 32) as f64 };
        let depth = parameters.get("depth").map(Extent::parse).transpose();
        let depth = depth.map_err(|error| parameters.wrong(format!("`depth`: {error}")))?;
        Ok(TopP { p, draw: (draw.name.clone(), unit), order: order.name.clone(), depth })
    }

    /// What row number `row` may draw.
    pub(super) fn draw(&self, scores: &[Score], row: usize, evaluation: &Evaluation<'_>) -> Drawn {
        if let Some(first) = scores.iter().position(|score| score.is_nan()) {
            return Drawn { expected: first as f64, allowed: vec![first] };
        }
        let elements = |name: &str| evaluation.inputs.tensors.get(name);
        let at = |name: &str, place: usize| {
            elements(name).and_then(|values| values.get(place)).copied().unwrap_or(0.0)
        };
        let u = at(&self.draw.0, row) * self.draw.1;
        let mut sorted: Vec<usize> = (0..scores.len()).collect();
        let value = |index: usize| at(&self.order, row * scores.len() + index);
        sorted.sort_by(|a, b| value(*b).partial_cmp(&value(*a)).unwrap_or(Ordering::Equal));
        let sorted_scores: Vec<Score> = sorted.iter().map(|index| scores[*index]).collect();
        let middles: Vec<Score> =
            sorted_scores.iter().map(|score| Score::exact(score.middle())).collect();
        let exact = self.places(&middles, u, 0.0).0;
        let slack = self.slack(scores.len(), evaluation.dims);
        let (first, last) = self.places(&sorted_scores, u, slack);
        Drawn {
            expected: sorted.get(exact).map_or(-1.0, |index| *index as f64),
            allowed: sorted.get(first..=last).unwrap_or_default().to_vec(),
        }
    }

    /// The relative error of a mass.
    fn slack(&self, length: usize, dims: &Dims) -> f64 {
        let depth = self.depth.as_ref().and_then(|depth| depth.size(dims).ok());
        let roundings = depth.map_or(length as f64, |depth| depth as f64) + DRAW_ROUNDINGS;
        roundings * UNIT / (1.0 - roundings * UNIT)
    }

    /// The first and the last place, in sorted order, that a draw of `u` may take.
    fn places(&self, sorted: &[Score], u: f64, slack: f64) -> (usize, usize) {
        let (mut least, mut most) = (Mass::default(), Mass::default());
        let last = sorted.len().saturating_sub(1);
        let masses: Vec<Mass> = sorted
            .iter()
            .scan(Mass::default(), |mass, score| {
                mass.low += score.low.max(0.0);
                mass.high += score.high.max(0.0);
                Some(*mass)
            })
            .collect();
        let with_slack =
            |mass: Mass| Mass { low: mass.low * (1.0 - slack), high: mass.high * (1.0 + slack) };
        // The nucleus ends at the first mass that may, or that must, have reached p.
        let ends = |enough: &dyn Fn(Mass) -> bool| {
            masses.iter().position(|mass| enough(with_slack(*mass))).unwrap_or(last)
        };
        let (soonest, latest) =
            (ends(&|mass| mass.high >= self.p), ends(&|mass| mass.low >= self.p));
        if let (Some(short), Some(long)) = (masses.get(soonest), masses.get(latest)) {
            least = with_slack(*short);
            most = with_slack(*long);
        }
        let passes = |bound: f64, high: bool| {
            let reached = |mass: &Mass| {
                let mass = with_slack(*mass);
                if high { mass.high > bound } else { mass.low > bound }
            };
            masses.iter().position(reached).unwrap_or(latest).min(latest)
        };
        (passes(u * least.low, true), passes(u * most.high, false))
    }
}

/// The mass up to and with a token: the least and the most it may be.
#[derive(Clone, Copy, Debug, Default)]
struct Mass {
    low: f64,
    high: f64,
}
