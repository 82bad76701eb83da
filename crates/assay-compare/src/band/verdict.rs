//! What a candidate shows against the bands of its elements, and what that comes to.

use assay_num::Class;
use assay_record::{
    BandEvidence, Comparison, Finding, FindingKind, Number, Outcome, Tolerance, WorstElement,
};

use super::lanes::{BLOCK, BlockSum};
use super::spread::{Lean, Spread, side};
use crate::array::coordinates;
use crate::counts::class_index;
use crate::judge::outcome;

/// What a candidate shows against its bands.
pub(super) struct Seen {
    z: f64,
    /// How many of the worst elements to keep.
    room: usize,
    pub(super) elements: u64,
    pub(super) outside: u64,
    pub(super) first_outside: Option<u64>,
    pub(super) other_class: u64,
    pub(super) first_other_class: Option<u64>,
    /// Elements in whose place a zero would be outside.
    pub(super) zero_would_fail: u64,
    /// Elements whose mean is not zero.
    pub(super) nonzero: u64,
    pub(super) max_ratio: f64,
    pub(super) lean: BlockSum,
    pub(super) outward: BlockSum,
    worst: Vec<Worst>,
}

/// An element far out of its band.
#[derive(Clone, Copy)]
pub(super) struct Worst {
    pub(super) ratio: f64,
    pub(super) index: u64,
    pub(super) value: f64,
    pub(super) mean: f64,
}

/// Where the bands come from and how wide they are.
pub(super) struct Measured<'a> {
    pub(super) shuffle: &'a str,
    pub(super) shuffles: u32,
    pub(super) seed: Option<u64>,
    /// In values, and in magnitudes.
    pub(super) leans: [Lean; 2],
    /// Elements with a band.
    pub(super) finite: u64,
    pub(super) widest_ulp: f64,
}

/// The distance from the mean in half widths of the band.
fn ratio(error: f64, half_width: f64) -> f64 {
    // A spread of zero, of integers that no order moves, allows nothing.
    match (error == 0.0, half_width > 0.0) {
        (true, _) => 0.0,
        (false, true) => error.abs() / half_width,
        (false, false) => f64::INFINITY,
    }
}

/// How far an element lies from the mean of its band, in half widths; infinite where it is of a
/// class that no order gives.
pub(super) fn distance(z: f64, value: f64, spread: &Spread, at: usize) -> f64 {
    let classes = spread.classes[at];
    if classes & 1 << class_index(value) == 0 {
        return f64::INFINITY;
    }
    if classes != 1 {
        return 0.0;
    }
    ratio(value - spread.mean[at], z * spread.deviation[at])
}

impl Seen {
    pub(super) fn new(z: f64, room: usize) -> Seen {
        Seen {
            z,
            room,
            elements: 0,
            outside: 0,
            first_outside: None,
            other_class: 0,
            first_other_class: None,
            zero_would_fail: 0,
            nonzero: 0,
            max_ratio: 0.0,
            lean: BlockSum::new(),
            outward: BlockSum::new(),
            worst: Vec::new(),
        }
    }

    /// Looks at the next elements, whose bands `spread` holds from its place `at` on.
    pub(super) fn look(&mut self, values: &[f64], spread: &Spread, at: usize) {
        for (place, &value) in values.iter().enumerate() {
            let at = at + place;
            self.look_at(value, (spread.classes[at], spread.mean[at], spread.deviation[at]));
        }
    }

    fn look_at(&mut self, value: f64, band: (u8, f64, f64)) {
        self.place(value, band);
        self.elements += 1;
        if self.elements.is_multiple_of(BLOCK) {
            self.lean.end_block();
            self.outward.end_block();
        }
    }

    fn place(&mut self, value: f64, (classes, mean, spread): (u8, f64, f64)) {
        let index = self.elements;
        if classes & 1 << class_index(value) == 0 {
            self.other_class += 1;
            self.first_other_class.get_or_insert(index);
        }
        if classes != 1 {
            return;
        }
        let half_width = self.z * spread;
        self.nonzero += u64::from(mean != 0.0);
        self.zero_would_fail += u64::from(ratio(mean, half_width) > 1.0);
        if Class::of(value) != Class::Finite {
            return;
        }
        let error = value - mean;
        let ratio = ratio(error, half_width);
        if ratio > 1.0 {
            self.outside += 1;
            self.first_outside.get_or_insert(index);
        } else if spread > 0.0 {
            // What is outside is found by itself and must not look like a lean of all.
            self.lean.add(index, error / spread);
            self.outward.add(index, side(mean, spread) * error / spread);
        }
        self.max_ratio = self.max_ratio.max(ratio);
        self.keep(Worst { ratio, index, value, mean });
    }

    /// Keeps an element, behind all those seen, if it is among the worst.
    pub(super) fn keep(&mut self, worst: Worst) {
        let place = self.worst.partition_point(|other| other.ratio >= worst.ratio);
        if worst.ratio > 0.0 && place < self.room {
            self.worst.insert(place, worst);
            self.worst.truncate(self.room);
        }
    }

    /// Puts the verdict of the bands in the place of that of a tolerance.
    pub(super) fn decide(&self, mut comparison: Comparison, measured: &Measured<'_>) -> Comparison {
        let decided = [FindingKind::Tolerance, FindingKind::Vacuous, FindingKind::Class];
        comparison.findings.retain(|finding| !decided.contains(&finding.kind));
        let root = (measured.finite.max(1) as f64).sqrt();
        let leans = [self.lean.total() / root, self.outward.total() / root];
        let shape = comparison.shape.clone();
        let mut found = self.elements_outside(&shape);
        found.extend(leaning(leans, measured));
        // The reference's own order is one of those that may be.
        if comparison.identical < comparison.compared {
            comparison.findings.extend(found);
        } else if let Some(finding) = found.first() {
            comparison.notes.push(format!(
                "identical to the reference, though by the shuffles {}: the order of these inputs \
                 is none like any other",
                finding.reason
            ));
        }
        comparison.findings.extend(self.shows_nothing());
        comparison.outcome = outcome(&comparison.findings);
        if comparison.tolerance != Tolerance::EXACT {
            let note = "the bands decide; the tolerance is evidence only".to_owned();
            comparison.notes.push(note);
        }
        comparison.band = Some(self.evidence(leans, measured, &shape));
        comparison
    }

    fn elements_outside(&self, shape: &[u64]) -> Vec<Finding> {
        let place = |index: Option<u64>| index.map(|index| coordinates(shape, index));
        let mut findings = Vec::new();
        let mut add = |kind, elements, first, reason| {
            let outcome = Outcome::Fail;
            findings.push(Finding { kind, outcome, reason, elements, first });
        };
        if self.other_class > 0 {
            let reason = format!(
                "{} elements are of a class (finite, NaN, an infinity) that no order gives",
                self.other_class
            );
            add(FindingKind::Class, self.other_class, place(self.first_other_class), reason);
        }
        if self.outside > 0 {
            let reason = format!(
                "{} of {} outside their band of reduction order, by up to {} half widths",
                self.outside,
                self.elements,
                Number(self.max_ratio)
            );
            add(FindingKind::Band, self.outside, place(self.first_outside), reason);
        }
        findings
    }

    /// Whether a tensor of zeros would have stayed within every band.
    fn shows_nothing(&self) -> Option<Finding> {
        let reason =
            "the bands are wider than every element of the reference, so that a tensor of \
                      zeros would pass too"
                .to_owned();
        (self.nonzero > 0 && self.zero_would_fail == 0).then_some(Finding {
            kind: FindingKind::Vacuous,
            outcome: Outcome::Unproven,
            reason,
            elements: self.nonzero,
            first: None,
        })
    }

    fn evidence(&self, leans: [f64; 2], measured: &Measured<'_>, shape: &[u64]) -> BandEvidence {
        let any = self.elements > 0;
        let [values, magnitudes] = measured.leans;
        BandEvidence {
            shuffle: measured.shuffle.to_owned(),
            shuffles: measured.shuffles,
            seed: measured.seed,
            z: self.z,
            outside: self.outside,
            first_outside: self.first_outside.map(|index| coordinates(shape, index)),
            max_bands: any.then_some(Number(self.max_ratio)),
            widest_ulp: any.then_some(measured.widest_ulp),
            bias: any.then_some(leans[0]),
            bias_mean: any.then_some(values.mean),
            bias_limit: any.then_some(values.limit),
            bias_outward: any.then_some(leans[1]),
            bias_outward_limit: any.then_some(magnitudes.limit),
            worst: self.worst.iter().map(|entry| entry.element(shape)).collect(),
        }
    }
}

/// The first way in which the whole tensor leans: in its values, else in their magnitudes.
fn leaning(leans: [f64; 2], measured: &Measured<'_>) -> Option<Finding> {
    let sides = [["above", "below"], ["away from zero, beyond", "toward zero, below"]];
    let mut ways = leans.into_iter().zip(measured.leans).zip(sides);
    let ((lean, Lean { mean, limit }), [above, below]) =
        ways.find(|((lean, order), _)| (lean - order.mean).abs() > order.limit)?;
    let side = if lean > mean { above } else { below };
    let reason = format!(
        "the tensor leans {side} the reference by {}, where its orders stay within {}",
        Number((lean - mean).abs()),
        Number(limit)
    );
    let (kind, outcome) = (FindingKind::Bias, Outcome::Fail);
    Some(Finding { kind, outcome, reason, elements: measured.finite, first: None })
}

impl Worst {
    fn element(&self, shape: &[u64]) -> WorstElement {
        WorstElement {
            index: self.index,
            coordinates: coordinates(shape, self.index),
            reference: Number(self.mean),
            candidate: Number(self.value),
            ulp: None,
            error: Number(self.value - self.mean),
            margin: Some(Number(self.ratio)),
        }
    }
}
