//! Compares what a kernel wrote with what its reference allows, element by element.
//!
//! An element passes if the reals that round to what the kernel wrote, in the output's format, meet
//! the interval that the reference gives. How far they lie beyond its middle, over half its width,
//! is the margin.

use assay_num::Format;
use assay_record::{CaseName, Evidence, Number, Outcome};
use assay_reference::{Bounded, Dims, Tensor};

use super::evidence;

/// What one output of one run showed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    /// The largest excess over error bound; 0 where every element rounds from its value.
    pub(super) margin: f64,
    /// Elements judged.
    pub(super) elements: usize,
    /// Elements beyond their bound.
    pub(super) rejected: usize,
    /// Elements that the reference has no bound for, where these are passed over.
    pub(super) unbounded: usize,
    /// Whether the reference's intervals are ranges over rounding points.
    pub(super) ranged: bool,
    /// The element with the largest margin; none if all margins are 0.
    pub(super) worst: Option<Worst>,
}

/// The element that came nearest to its bound, or went furthest beyond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Worst {
    /// Its place in row-major order.
    pub(super) place: usize,
    /// What the kernel wrote.
    pub(super) got: f64,
    /// The reference's value before output rounding.
    pub(super) value: f64,
    /// The error bound.
    pub(super) error: f64,
    /// The distance from `value` to the reals that round to `got`.
    pub(super) excess: f64,
    /// The excess over the error; infinite if the two are 0 and `got` is the wrong side of a tie.
    pub(super) margin: f64,
}

/// Excess over error bound; 0 without excess, infinite for any excess over an exact value.
pub(super) fn ratio(excess: f64, error: f64) -> f64 {
    match excess {
        0.0 => 0.0,
        _ if error > 0.0 => excess / error,
        _ => f64::INFINITY,
    }
}

/// Judges the bytes of an output of format `format`, an element for each of `bounded`'s.
pub(super) fn judge(format: Format, bounded: &Bounded, bytes: &[u8]) -> Verdict {
    judge_where(format, bounded, bytes, |_| true)
}

/// As [`judge`], but passes over the elements that have no bound.
pub(super) fn judge_bounded(format: Format, bounded: &Bounded, bytes: &[u8]) -> Verdict {
    judge_where(format, bounded, bytes, f64::is_finite)
}

fn judge_where(
    format: Format,
    bounded: &Bounded,
    bytes: &[u8],
    wanted: impl Fn(f64) -> bool,
) -> Verdict {
    let got = format.decode_slice(bytes);
    let (elements, ranged) = (bounded.value.len(), bounded.ranged);
    let mut verdict =
        Verdict { margin: 0.0, elements, rejected: 0, unbounded: 0, ranged, worst: None };
    for (place, (value, error)) in bounded.value.iter().zip(&bounded.error).enumerate() {
        let got = got.get(place).copied().unwrap_or(f64::NAN);
        if !wanted(*error) {
            verdict.unbounded += 1;
            continue;
        }
        // The excess is at most the distance, so most elements need no preimage.
        let distance = (got - value).abs();
        if distance == 0.0 || (distance <= *error && distance <= verdict.margin * error) {
            continue;
        }
        let excess = excess(format, *value, got);
        // An exact value at a tie has one side to go to.
        let wrong_side = excess == 0.0 && *error == 0.0 && !rounds_to(format, *value, got);
        let margin = if wrong_side { f64::INFINITY } else { ratio(excess, *error) };
        // Not `excess > error`: a bound that is no number allows nothing.
        let fits = excess <= *error && !wrong_side;
        verdict.rejected += usize::from(!fits);
        if margin > verdict.margin || (!fits && verdict.worst.is_none()) {
            verdict.margin = verdict.margin.max(margin);
            verdict.worst =
                Some(Worst { place, got, value: *value, error: *error, excess, margin });
        }
    }
    verdict
}

/// Whether `value` rounds to `got`, a value of `format`.
fn rounds_to(format: Format, value: f64, got: f64) -> bool {
    use assay_num::{Overflow, Rounding};
    let bits = format.encode(got, Rounding::NearestEven, Overflow::Infinity);
    format.preimage(bits).contains(value)
}

/// The distance from `value` to the reals that round to `got`, a value of `format`.
pub(super) fn excess(format: Format, value: f64, got: f64) -> f64 {
    use assay_num::{Overflow, Rounding};
    let bits = format.encode(got, Rounding::NearestEven, Overflow::Infinity);
    format.excess(value, bits)
}

/// The index along each axis of the element at `place` of a tensor.
pub(super) fn element(tensor: &Tensor, dims: &Dims, place: usize) -> Vec<i64> {
    let sizes = tensor.shape.iter().map(|extent| extent.eval(dims).unwrap_or(1).max(1));
    let sizes: Vec<i64> = sizes.collect();
    let mut rest = place as i64;
    let mut element: Vec<i64> = sizes
        .iter()
        .rev()
        .map(|size| {
            let index = rest % size;
            rest /= size;
            index
        })
        .collect();
    element.reverse();
    element
}

/// Names an element for a person: `y[3, 17]`.
pub(super) fn element_name(tensor: &str, element: &[i64]) -> String {
    let indices: Vec<String> = element.iter().map(ToString::to_string).collect();
    format!("{tensor}[{}]", indices.join(", "))
}

/// The finding that an output's worst element makes; of a run in which nothing is off, none.
pub(super) fn finding(
    case: &CaseName,
    (tensor, dims): (&Tensor, &Dims),
    verdict: &Verdict,
    outcome: Outcome,
) -> Option<Evidence> {
    let worst = verdict.worst?;
    let element = element(tensor, dims, worst.place);
    let allowed = if verdict.ranged {
        let (low, high) = (worst.value - worst.error, worst.value + worst.error);
        format!("which no real in its range [{low:e}, {high:e}] rounds to")
    } else {
        format!(
            "{:.3e} beyond the reals near {:e}; allowed are {:.3e}",
            worst.excess, worst.value, worst.error
        )
    };
    let reason = format!(
        "{} is {:e}, {allowed} ({} of {} elements)",
        element_name(&tensor.name, &element),
        worst.got,
        verdict.rejected,
        verdict.elements,
    );
    let mut finding = evidence(case, outcome, reason);
    finding.output = Some(tensor.name.clone());
    finding.element = Some(element);
    finding.got = Some(Number(worst.got));
    finding.value = Some(Number(worst.value));
    finding.error = Some(Number(worst.error));
    finding.excess = Some(Number(worst.excess));
    finding.margin = Some(Number(worst.margin));
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(value: f64, error: f64) -> Bounded {
        Bounded { value: vec![value], error: vec![error], ..Bounded::default() }
    }

    fn margin(format: Format, bounded: &Bounded, got: f64) -> (f64, usize) {
        let verdict = judge(format, bounded, &format.encode_slice(&[got]));
        (verdict.margin, verdict.rejected)
    }

    #[test]
    fn a_value_inside_the_preimage_has_no_excess() {
        let bounded = bounded(1.0 + 2f64.powi(-9), 0.0);
        assert_eq!(margin(Format::Bf16, &bounded, 1.0), (0.0, 0));
        assert_eq!(margin(Format::Bf16, &bounded, 1.0 + 2f64.powi(-7)), (f64::INFINITY, 1));
    }

    #[test]
    fn the_margin_is_excess_over_error() {
        let bounded = bounded(1.0, 1e-3);
        let got = 1.0 + 2f64.powi(-7);
        let (margin, rejected) = margin(Format::Bf16, &bounded, got);
        assert_eq!((margin, rejected), (2f64.powi(-8) / 1e-3, 1));
    }

    #[test]
    fn nan_and_infinity_are_beyond_every_bound() {
        for got in [f64::NAN, f64::INFINITY] {
            let (margin, rejected) = margin(Format::F32, &bounded(1.0, 0.5), got);
            assert!(margin > 1e30 && rejected == 1, "{got}: {margin}");
        }
    }

    #[test]
    fn a_bound_that_is_no_number_allows_nothing() {
        let (_, rejected) = margin(Format::F32, &bounded(1.0, f64::NAN), 1.5);
        assert_eq!(rejected, 1);
    }

    #[test]
    fn an_exact_value_at_a_tie_rounds_to_even_and_nowhere_else() {
        let tie = 1.0 + 2f64.powi(-8);
        assert_eq!(margin(Format::Bf16, &bounded(tie, 0.0), 1.0), (0.0, 0));
        let up = 1.0 + 2f64.powi(-7);
        assert_eq!(margin(Format::Bf16, &bounded(tie, 0.0), up), (f64::INFINITY, 1));
        // With the least spread both are possible.
        assert_eq!(margin(Format::Bf16, &bounded(tie, 1e-12), up), (0.0, 0));
    }

    #[test]
    fn a_range_of_two_neighbours_has_both_and_no_third() {
        let step = 2f64.powi(-7);
        let two = bounded(1.0 + step / 2.0, step / 2.0);
        for got in [1.0, 1.0 + step] {
            assert_eq!(margin(Format::F32, &two, got).1, 0, "{got}");
        }
        for got in [1.0 - step, 1.0 + 2.0 * step] {
            assert_eq!(margin(Format::F32, &two, got).1, 1, "{got}");
            assert_eq!(margin(Format::Bf16, &two, got).1, 1, "{got}");
        }
    }

    #[test]
    fn elements_without_a_bound_are_passed_over_where_that_is_asked_for() {
        let mut mixed = bounded(1.0, f64::INFINITY);
        mixed.value.push(1.0);
        mixed.error.push(0.0);
        let verdict = judge_bounded(Format::F32, &mixed, &Format::F32.encode_slice(&[7.0, 2.0]));
        assert_eq!((verdict.unbounded, verdict.rejected), (1, 1));
    }

    #[test]
    fn elements_are_named_by_their_indices() {
        let tensor = Tensor::new("y", Format::F32, &["rows", "cols"]).expect("extents");
        let dims = assay_reference::dims([("rows", 3), ("cols", 5)]);
        assert_eq!(element(&tensor, &dims, 13), [2, 3]);
        assert_eq!(element_name("y", &[2, 3]), "y[2, 3]");
    }
}
