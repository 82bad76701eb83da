//! From counts and sums to a verdict with its reasons.

use assay_num::Format;
use assay_record::{
    COMPARISON_SCHEMA, ClassPair, Comparison, ErrorEvidence, Finding, FindingKind, Number, Outcome,
    OutputFloor, UlpEvidence,
};

use crate::array::coordinates;
use crate::compare::{Options, Plan};
use crate::counts::{CLASS_NAMES, Counts, HALVES, first, half_octave_start};
use crate::tree::Tree;
use crate::worst::Worst;

/// A whole comparison before it is judged.
pub(crate) struct Seen {
    pub(crate) counts: Counts,
    pub(crate) sums: Tree<3>,
    pub(crate) max_error: f64,
    pub(crate) worst: Worst,
    pub(crate) broke_off: Option<String>,
}

/// Judges what was seen.
pub(crate) fn judge(plan: &Plan, options: &Options, seen: &Seen) -> Comparison {
    let counts = &seen.counts;
    let place = |index: Option<u64>| index.map(|index| coordinates(&plan.shape, index));
    let (worst_ulp, worst_error) = seen.worst.finish(&plan.rules, &plan.shape);
    let error = error_evidence(seen);
    let mut comparison = Comparison {
        schema: COMPARISON_SCHEMA,
        name: None,
        format: plan.rules.format.name().to_owned(),
        rounded_from: plan.rounded_from.map(|format| format.name().to_owned()),
        shape: plan.shape.clone(),
        elements: plan.elements,
        compared: counts.elements,
        broke_off: seen.broke_off.clone(),
        outcome: Outcome::Pass,
        findings: Vec::new(),
        notes: Vec::new(),
        tolerance: options.tolerance,
        identical: counts.identical(),
        outside: counts.outside,
        first_different: place(counts.first_different),
        first_outside: place(counts.first_outside),
        census: census(counts),
        zero_signs: counts.zero_signs,
        zero_would_fail: counts.zero_would_fail,
        ulp: ulp_evidence(counts),
        floor: floor(plan.rules.format, options, &error),
        error,
        worst_ulp,
        worst_error,
        band: None,
    };
    comparison.findings = findings(plan, options, seen, &comparison);
    comparison.notes = notes(&comparison);
    comparison.outcome = outcome(&comparison.findings);
    comparison
}

/// A failure counts for more than a check that shows nothing, and that for more than a pass.
pub(crate) fn outcome(findings: &[Finding]) -> Outcome {
    let any = |outcome| findings.iter().any(|finding| finding.outcome == outcome);
    if any(Outcome::Fail) {
        Outcome::Fail
    } else if any(Outcome::Unproven) {
        Outcome::Unproven
    } else {
        Outcome::Pass
    }
}

fn census(counts: &Counts) -> Vec<ClassPair> {
    let mut pairs = Vec::new();
    for (r, row) in counts.classes.iter().enumerate() {
        for (c, &count) in row.iter().enumerate() {
            let count = if (r, c) == (0, 0) { counts.finite() } else { count };
            if count > 0 {
                let (reference, candidate) = (CLASS_NAMES[r].to_owned(), CLASS_NAMES[c].to_owned());
                pairs.push(ClassPair { reference, candidate, count });
            }
        }
    }
    pairs
}

fn ulp_evidence(counts: &Counts) -> UlpEvidence {
    let finite = counts.finite();
    let mean = |sum: f64| (finite > 0).then(|| sum / finite as f64);
    let below = counts.ulp_sum - counts.ulp_sum_above;
    let end = counts.histogram.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
    UlpEvidence {
        max: counts.max_ulp,
        mean: mean(counts.ulp_sum as f64),
        // Exact integers whose difference is rounded once.
        mean_signed: mean(counts.ulp_sum_above.wrapping_sub(below) as i128 as f64),
        histogram: counts.histogram[..end].to_vec(),
        above: counts.above,
        below: counts.below(),
    }
}

fn error_evidence(seen: &Seen) -> ErrorEvidence {
    let counts = &seen.counts;
    let [errors, references, zeroed] = seen.sums.total();
    let rms = |sum: f64| Number((sum / counts.finite().max(1) as f64).sqrt());
    let top_elements = (counts.elements / 1000).max(1);
    ErrorEvidence {
        max: Number(seen.max_error),
        rms: rms(errors),
        reference_rms: rms(references),
        relative_frobenius: (references > 0.0).then(|| Number((errors / references).sqrt())),
        top_energy: top_energy(counts, errors, seen.max_error, top_elements),
        top_elements,
        zeroed: counts.zeroed,
        zeroed_energy: (references > 0.0).then(|| zeroed / references),
    }
}

/// Bounds on the part of `total` that the `top` largest squares hold.
fn top_energy(counts: &Counts, total: f64, max_error: f64, top: u64) -> Option<[f64; 2]> {
    let all: u64 = counts.halves.iter().sum();
    if all == 0 || !(total > 0.0 && total.is_finite()) {
        return None;
    }
    if all <= top {
        return Some([1.0, 1.0]);
    }
    let power = |bin: usize| half_octave_start(bin).powi(2);
    let largest = max_error * max_error;
    let (mut low, mut high, mut rest_high, mut rest_low) = (0.0, 0.0, 0.0, 0.0);
    let mut left = top;
    for bin in (0..HALVES).rev() {
        let taken = left.min(counts.halves[bin]);
        left -= taken;
        // The first bin has no lower bound, the last no upper one but the largest error.
        let least = if bin == 0 { 0.0 } else { power(bin) };
        let most = if bin == HALVES - 1 { largest } else { power(bin + 1).min(largest) };
        low += taken as f64 * least;
        high += taken as f64 * most;
        rest_low += (counts.halves[bin] - taken) as f64 * least;
        rest_high += (counts.halves[bin] - taken) as f64 * most;
    }
    let lower = (low / total).max(1.0 - rest_high / total);
    let upper = (high / total).min(1.0 - rest_low / total);
    Some([lower.clamp(0.0, 1.0), upper.clamp(0.0, 1.0)])
}

fn floor(format: Format, options: &Options, error: &ErrorEvidence) -> Option<OutputFloor> {
    let (rms, scale) = (error.rms.0, error.reference_rms.0);
    if !(format.is_float() && scale > 0.0 && scale.is_finite()) {
        return None;
    }
    let ulp = ulp_at(format, scale);
    let delta = scale * options.delta.unwrap_or_else(|| Format::F32.unit_roundoff());
    // A difference of a step and more shows as itself.
    let floor = if delta < ulp { (delta * ulp).sqrt() } else { delta };
    Some(OutputFloor { delta, ulp, floor, delta_seen: rms * rms / ulp })
}

/// The distance between neighbouring values of a format at a magnitude.
pub(crate) fn ulp_at(format: Format, magnitude: f64) -> f64 {
    if !format.is_float() {
        return 1.0;
    }
    let magnitude = magnitude.abs().clamp(format.min_normal(), format.max_finite());
    let exponent = (magnitude.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let step = assay_num::power_of_two(exponent + 1) * format.unit_roundoff();
    step.max(format.min_subnormal())
}

fn findings(plan: &Plan, options: &Options, seen: &Seen, so_far: &Comparison) -> Vec<Finding> {
    let counts = &seen.counts;
    let place = |index: Option<u64>| index.map(|index| coordinates(&plan.shape, index));
    let mut all = Vec::new();
    let mut add = |kind, outcome, elements, first, reason: String| {
        all.push(Finding { kind, outcome, reason, elements, first });
    };
    let mismatches = counts.class_mismatches();
    if mismatches > 0 {
        let first = so_far.first_outside.clone().filter(|_| counts.outside == 0);
        let pairs = so_far.census.iter().filter(|pair| pair.reference != pair.candidate);
        let words: Vec<String> = pairs
            .map(|pair| format!("{} {} for {}", pair.count, pair.candidate, pair.reference))
            .collect();
        add(FindingKind::Class, Outcome::Fail, mismatches, first, words.join(", "));
    }
    if counts.nan_pairs() > 0 && !options.equal_nan {
        let reason = format!("{} NaN for NaN, which is not allowed here", counts.nan_pairs());
        add(FindingKind::Nan, Outcome::Fail, counts.nan_pairs(), None, reason);
    }
    if counts.outside > 0 {
        let first = place(first(counts.first_outside, None));
        let reason = format!("{} of {} outside the tolerance", counts.outside, counts.elements);
        add(FindingKind::Tolerance, Outcome::Fail, counts.outside, first, reason);
    }
    if counts.zero_signs > 0 && !options.equal_zeros {
        let reason = format!("{} zeros of the other sign", counts.zero_signs);
        add(FindingKind::ZeroSign, Outcome::Fail, counts.zero_signs, None, reason);
    }
    let share = so_far.error.zeroed_energy.unwrap_or(0.0);
    if share > plan.rules.format.unit_roundoff().min(Format::F16.unit_roundoff()) {
        let reason = format!(
            "{} outputs are exactly 0 where the reference is not; they hold {} of its energy",
            counts.zeroed,
            Number(share)
        );
        add(FindingKind::Zeroed, Outcome::Fail, counts.zeroed, None, reason);
    }
    shows_nothing(so_far, counts, &mut add);
    all
}

/// Why a comparison that passes would not have failed.
fn shows_nothing(
    so_far: &Comparison,
    counts: &Counts,
    add: &mut impl FnMut(FindingKind, Outcome, u64, Option<Vec<u64>>, String),
) {
    if so_far.broke_off.is_some() {
        let reason = format!("only {} of {} compared", counts.elements, so_far.elements);
        add(FindingKind::Nothing, Outcome::Unproven, so_far.elements, None, reason);
    }
    if counts.elements == 0 {
        let reason = "there is no element to compare".to_owned();
        add(FindingKind::Nothing, Outcome::Unproven, 0, None, reason);
        return;
    }
    let nans: u64 = counts.classes[1].iter().sum();
    if nans == counts.elements {
        let reason = "every element of the reference is NaN".to_owned();
        add(FindingKind::Nothing, Outcome::Unproven, nans, None, reason);
        return;
    }
    let nonzero = so_far.error.reference_rms.0 > 0.0;
    if nonzero && counts.zero_would_fail == 0 {
        let reason = "the tolerance is wider than every element of the reference, so that a \
                      tensor of zeros would pass too"
            .to_owned();
        add(FindingKind::Vacuous, Outcome::Unproven, counts.finite(), None, reason);
    }
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let (above, below) = (comparison.ulp.above, comparison.ulp.below);
    let different = above + below;
    let lean = above.abs_diff(below) as f64 / (different.max(1) as f64).sqrt();
    if different >= 64 && lean > 8.0 {
        let side = if above > below { "above" } else { "below" };
        let most = above.max(below);
        notes.push(format!(
            "{most} of the {different} elements that differ lie {side} the reference; a reordered \
             sum leans to neither side"
        ));
    }
    let top = comparison.error.top_elements;
    let energy = comparison.error.top_energy.filter(|_| different > top);
    if let Some([low, _]) = energy.filter(|[low, _]| *low > 0.5) {
        notes.push(format!(
            "the worst {top} of the {different} elements that differ hold at least {} % of the \
             errors' energy: few are wrong, not all a little",
            Number((low * 1000.0).floor() / 10.0)
        ));
    }
    notes
}
