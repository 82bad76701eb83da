//! Judges an operation's outputs by its reference: the reals that round to what came out must
//! reach what the reference allows.

use assay_num::{Format, Overflow, Rounding};

/// What the outputs judged so far showed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Judged {
    /// Elements judged.
    pub(crate) elements: u64,
    /// Elements that are wrong.
    pub(crate) wrong: u64,
    /// The largest error over what is allowed.
    pub(crate) margin: f64,
    /// The wrong element with the largest margin, the first of several.
    pub(crate) worst: Option<Worst>,
}

/// An element that is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Worst {
    /// Its place in row-major order.
    pub(crate) place: u64,
    /// What came out.
    pub(crate) got: f64,
    /// What the reference gives.
    pub(crate) value: f64,
    /// The error allowed.
    pub(crate) error: f64,
    margin: f64,
}

/// How outputs are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) format: Format,
    /// Units in the last place that are allowed beside rounding.
    pub(crate) ulps: f64,
}

impl Rule {
    /// The error that is allowed of a value.
    fn allowed(self, value: f64) -> f64 {
        if self.ulps == 0.0 {
            return 0.0;
        }
        let ulp = 2.0 * self.format.unit_roundoff() * value.abs();
        self.ulps * ulp.max(self.format.min_subnormal())
    }

    /// How far an output is from right, in what is allowed; above 1 is wrong.
    fn margin(self, value: f64, got: f64) -> f64 {
        if value.is_nan() || got.is_nan() {
            return if value.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
        }
        if got == self.format.round(value) {
            return 0.0;
        }
        if value.is_infinite() || got.is_infinite() {
            return f64::INFINITY;
        }
        let bits = self.format.encode(got, Rounding::NearestEven, Overflow::Infinity);
        let (excess, allowed) = (self.format.excess(value, bits), self.allowed(value));
        match excess {
            0.0 if allowed > 0.0 => 0.0,
            _ if allowed > 0.0 => excess / allowed,
            // An exact value has one output, at a tie too.
            _ => f64::INFINITY,
        }
    }
}

impl Judged {
    /// Judges one element.
    pub(crate) fn element(&mut self, rule: Rule, place: u64, (value, got): (f64, f64)) {
        self.elements += 1;
        let margin = rule.margin(value, got);
        self.margin = self.margin.max(margin);
        // Not `margin > 1`: what is no number allows nothing.
        let fits = margin <= 1.0;
        if fits {
            return;
        }
        self.wrong += 1;
        if self.worst.is_none_or(|worst| margin > worst.margin) {
            let error = rule.allowed(value);
            self.worst = Some(Worst { place, got, value, error, margin });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn margin(ulps: f64, value: f64, got: f64) -> f64 {
        Rule { format: Format::Bf16, ulps }.margin(value, got)
    }

    #[test]
    fn an_exact_rule_takes_the_rounded_value_and_no_other() {
        let step = 2f64.powi(-7);
        assert_eq!(margin(0.0, 1.0 + step / 3.0, 1.0), 0.0);
        assert_eq!(margin(0.0, 1.0 + step / 3.0, 1.0 + step), f64::INFINITY);
        assert_eq!(margin(0.0, 1.0 + step / 2.0, 1.0 + step), f64::INFINITY, "ties go to even");
    }

    #[test]
    fn units_in_the_last_place_widen_what_is_right() {
        let step = 2f64.powi(-7);
        assert!(margin(1.0, 1.0, 1.0 + step) <= 1.0);
        assert!(margin(1.0, 1.0, 1.0 + 3.0 * step) > 1.0);
        assert!(margin(2.0, 0.0, 1.0) > 1.0);
    }

    #[test]
    fn nan_is_right_where_the_reference_has_it_and_nowhere_else() {
        assert_eq!(margin(1.0, f64::NAN, f64::NAN), 0.0);
        assert_eq!(margin(1.0, f64::NAN, 0.0), f64::INFINITY);
        assert_eq!(margin(1.0, 0.0, f64::NAN), f64::INFINITY);
        assert_eq!(margin(1.0, f64::INFINITY, f64::INFINITY), 0.0);
        assert!(margin(1.0, f64::INFINITY, 3e38) > 1.0);
        assert!(margin(1.0, 1.0, f64::INFINITY) > 1.0);
    }

    #[test]
    fn the_worst_element_is_kept_with_its_place() {
        let mut judged = Judged::default();
        let rule = Rule { format: Format::F32, ulps: 1.0 };
        judged.element(rule, 5, (1.0, 1.0));
        judged.element(rule, 6, (1.0, 2.0));
        judged.element(rule, 7, (1.0, 9.0));
        let worst = judged.worst.expect("two are wrong");
        assert_eq!((judged.elements, judged.wrong, worst.place, worst.got), (3, 2, 7, 9.0));
    }
}
