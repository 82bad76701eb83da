//! Error bounds of reductions.
//!
//! A sum of terms t with errors e, whose longest chain of roundings is d, errs by at most
//! sum e + gamma(d) sum(|t| + e). Exact terms on a grid 2^g with sum|t| < 2^(24+g) have exact
//! partial sums in any order. A sum of squared differences from a computed mean has a rule of its
//! own, since a wrong mean moves all terms together and the first-order change cancels.

use assay_num::{Format, gamma};

use crate::ast::ReduceOperation;
use crate::bound::BoundTile;
use crate::functions::{larger, smaller};
use crate::rounding::{LARGEST, Rounding, UNIT};
use crate::tensor_core::TensorRule;
use crate::tile::Trouble;
use crate::variance::Differences;

/// How one stage's sum errs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumRule {
    /// The declared longest chain of roundings; the number of terms where none is declared.
    pub(crate) depth: Option<f64>,
    /// What the sum is carried in.
    pub(crate) accumulator: Format,
    /// Where tensor cores sum it.
    pub(crate) tensor: Option<TensorRule>,
    /// Where it sums squared differences from a computed mean.
    pub(crate) variance: Option<Differences>,
}

/// Partial sums that are added side by side.
const LANES: usize = 8;
/// One `f64` rounding.
const DOUBLE_UNIT: f64 = 1.0 / (1u64 << 53) as f64;

/// The state of a reduction.
pub(crate) struct BoundSum {
    operation: ReduceOperation,
    terms: f64,
    /// Sums of t, |t| and e.
    value: [f64; LANES],
    magnitude: [f64; LANES],
    error: [f64; LANES],
    /// What additions of `value` lose, for accumulators wider than fp32.
    lost: [f64; LANES],
    compensated: bool,
    /// Whether all terms so far are exact, and the exponent of the finest bit they have.
    exact: bool,
    finest: i32,
    /// The extreme so far, or the product; the largest error, or the product with errors.
    best: f64,
    reach: f64,
    /// The product of the factors larger than 1, which bounds what underflow can grow to.
    growth: f64,
    differences: DifferenceSums,
    /// Trouble of any term, in any lane.
    trouble: Trouble,
    inexact: bool,
}

/// The sums of the variance rule.
#[derive(Default)]
struct DifferenceSums {
    used: bool,
    mean_error: f64,
    /// `sum(2|d|r + r^2 + 2 r e_mean)`
    change: f64,
    /// `sum((|d| + e_mean + r)^2)`
    magnitude: f64,
}

impl BoundSum {
    pub(crate) fn new(operation: Option<ReduceOperation>, terms: i64, compensated: bool) -> Self {
        let operation = operation.unwrap_or(ReduceOperation::Sum);
        Self {
            operation,
            terms: terms as f64,
            value: [0.0; LANES],
            magnitude: [0.0; LANES],
            error: [0.0; LANES],
            lost: [0.0; LANES],
            compensated,
            exact: true,
            finest: i32::MAX,
            best: operation.neutral(),
            reach: if operation == ReduceOperation::Prod { 1.0 } else { 0.0 },
            growth: 1.0,
            differences: DifferenceSums::default(),
            trouble: Trouble::default(),
            inexact: false,
        }
    }

    /// Takes the first `count` lanes as terms.
    pub(crate) fn add(&mut self, tile: &BoundTile, count: usize) {
        self.trouble = self.trouble.joined(tile.trouble);
        self.inexact |= tile.inexact != 0;
        let (values, errors) = (&tile.value[..count], &tile.error[..count]);
        match self.operation {
            ReduceOperation::Sum | ReduceOperation::Scan => self.add_terms(values, errors),
            ReduceOperation::Max => self.extreme(values, errors, larger),
            ReduceOperation::Min => self.extreme(values, errors, smaller),
            ReduceOperation::Prod => self.multiply(values, errors),
        }
    }

    fn add_terms(&mut self, values: &[f64], errors: &[f64]) {
        if self.exact {
            self.exact = errors.iter().all(|e| *e == 0.0);
        }
        if self.exact {
            self.finest = values.iter().map(|v| finest_bit(*v)).fold(self.finest, i32::min);
        }
        for (values, errors) in values.chunks(LANES).zip(errors.chunks(LANES)) {
            for (lane, (value, error)) in values.iter().zip(errors).enumerate() {
                if self.compensated {
                    let (sum, lost) = crate::real::two_sum(self.value[lane], *value);
                    self.value[lane] = sum;
                    self.lost[lane] += lost;
                } else {
                    self.value[lane] += value;
                }
                self.magnitude[lane] += value.abs();
                self.error[lane] += error;
            }
        }
    }

    fn extreme(&mut self, values: &[f64], errors: &[f64], of: fn(f64, f64) -> f64) {
        self.best = values.iter().copied().fold(self.best, of);
        self.reach = errors.iter().copied().fold(self.reach, larger);
    }

    fn multiply(&mut self, values: &[f64], errors: &[f64]) {
        for (value, error) in values.iter().zip(errors) {
            let reach = value.abs() + error;
            self.best *= value;
            self.reach *= reach;
            self.growth *= reach.max(1.0);
            self.exact &= *error == 0.0;
        }
    }

    /// Takes products of exact factors as terms.
    pub(crate) fn add_products(&mut self, a: &[f64], b: &[f64], eta: f64) -> bool {
        if self.operation != ReduceOperation::Sum || self.compensated {
            return false;
        }
        for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
            let rounded = self.add_block(a, b, eta);
            self.exact &= !rounded;
            if self.exact {
                let products = a.iter().zip(b).map(|(a, b)| finest_bit(a * b));
                self.finest = products.fold(self.finest, i32::min);
            }
        }
        true
    }

    /// Adds one block of products; says whether fp32 has to round one.
    fn add_block(&mut self, a: &[f64], b: &[f64], eta: f64) -> bool {
        let (mut rounded, mut count) = ([0.0; LANES], [0.0; LANES]);
        let (mut value, mut magnitude) = (self.value, self.magnitude);
        let mut term = |lane: usize, a: f64, b: f64| {
            let product = a * b;
            let inexact = f64::from(product as f32) != product;
            value[lane] += product;
            magnitude[lane] += product.abs();
            rounded[lane] += if inexact { product.abs() } else { 0.0 };
            count[lane] += if inexact { 1.0 } else { 0.0 };
        };
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for lane in 0..LANES {
                term(lane, a[lane], b[lane]);
            }
        }
        for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
            term(lane, *a, *b);
        }
        (self.value, self.magnitude) = (value, magnitude);
        for lane in 0..LANES {
            self.error[lane] += UNIT * rounded[lane] + eta * count[lane];
        }
        count.iter().any(|count| *count != 0.0)
    }

    /// Takes products of two factors' tiles as tensor cores make them; `root` is the term's tile.
    pub(crate) fn add_elements(
        &mut self,
        rule: &TensorRule,
        root: &BoundTile,
        factors: [&BoundTile; 2],
        count: usize,
    ) {
        self.trouble = self.trouble.joined(root.trouble);
        self.inexact |= root.inexact != 0;
        let terms = rule.terms(root, factors, count);
        for lane in 0..count {
            let (value, error) = (terms.value[lane], terms.error[lane]);
            self.value[lane % LANES] += value;
            self.magnitude[lane % LANES] += terms.reach[lane];
            self.error[lane % LANES] += error;
            self.exact &= error == 0.0;
            self.finest = self.finest.min(finest_bit(value));
        }
    }

    /// Takes squared differences of samples from a mean.
    pub(crate) fn add_differences(
        &mut self,
        [samples, means]: [&BoundTile; 2],
        rounding: Rounding,
        count: usize,
    ) {
        let sums = &mut self.differences;
        sums.used = true;
        for lane in 0..count {
            let (sample, mean) = (samples.value[lane], means.value[lane]);
            let mean_error = means.error[lane];
            let d = (sample - mean).abs();
            let reach = d + mean_error + samples.error[lane];
            // The reference's own difference is rounded to f64.
            let own = 4.0 * DOUBLE_UNIT * (sample.abs() + mean.abs());
            let r = samples.error[lane] + UNIT * reach + rounding.eta + own;
            sums.mean_error = sums.mean_error.max(mean_error);
            sums.change += r * (2.0 * d + r + 2.0 * mean_error);
            sums.magnitude += (d + mean_error + r) * (d + mean_error + r);
        }
    }

    /// Writes value, error and trouble to lane 0.
    pub(crate) fn finish(&self, rule: &SumRule, rounding: Rounding, out: &mut BoundTile) {
        let (value, error, exact) = match self.operation {
            ReduceOperation::Sum | ReduceOperation::Scan => self.finish_sum(rule, rounding),
            ReduceOperation::Max | ReduceOperation::Min => (self.best, self.reach, true),
            ReduceOperation::Prod => self.finish_product(rule, rounding),
        };
        out.value[0] = value;
        out.error[0] = error;
        out.inexact = u128::from(self.inexact || !exact);
        let sum = matches!(self.operation, ReduceOperation::Sum | ReduceOperation::Prod);
        let reach = match self.operation {
            ReduceOperation::Sum => total(&self.magnitude) + total(&self.error),
            _ => self.growth,
        };
        let largest = rule.accumulator.max_finite().min(LARGEST);
        // A sum on tensor cores may err by more than the last place of the largest value.
        let beyond = if rule.tensor.is_some() { error } else { 0.0 };
        let within = reach + beyond <= largest;
        let first = |is: bool| u128::from(is);
        out.trouble = Trouble {
            vanishing: first(self.trouble.vanishing != 0),
            overflow: first(self.trouble.overflow != 0 || sum && !within),
            undecided: first(self.trouble.undecided != 0),
        };
    }

    fn finish_sum(&self, rule: &SumRule, rounding: Rounding) -> (f64, f64, bool) {
        let value = total(&self.value) + total(&self.lost);
        let magnitude = total(&self.magnitude);
        if let Some(tensor) = &rule.tensor {
            return self.finish_tensor(tensor, value, rule, rounding);
        }
        let wide = rule.accumulator == Format::F64;
        if self.is_exact(magnitude, rule.accumulator, rounding) {
            let error = if wide { rounding.leaf(value) } else { 0.0 };
            return (value, error, true);
        }
        let mut error = self.plain_error(magnitude, rule, rounding);
        if self.differences.used {
            error = error.min(self.variance_error(rule, rounding));
        }
        if wide {
            error += UNIT * (value.abs() + error) + rounding.eta;
        }
        (value, error, false)
    }

    /// Whether all partial sums are exact, whatever the order.
    fn is_exact(&self, magnitude: f64, accumulator: Format, rounding: Rounding) -> bool {
        if !self.exact || magnitude == 0.0 {
            return self.exact;
        }
        let bits = accumulator.significand_bits() as i32;
        let grid = assay_num::power_of_two(self.finest.saturating_add(bits).clamp(-1074, 1024));
        let finest = assay_num::power_of_two(self.finest.clamp(-1074, 1023));
        let kept = finest >= rounding.flushed && finest >= accumulator.min_subnormal();
        magnitude < grid && magnitude <= accumulator.max_finite() && kept
    }

    /// The rule of [`crate::tensor_core`]; additions outside of tensor cores count as in any sum.
    fn finish_tensor(
        &self,
        tensor: &TensorRule,
        value: f64,
        rule: &SumRule,
        rounding: Rounding,
    ) -> (f64, f64, bool) {
        let (reach, accumulator) = (total(&self.magnitude), rule.accumulator);
        let (bits, least) = tensor.kept(accumulator);
        let power = |exponent: i32| assay_num::power_of_two(exponent.clamp(-1074, 1024));
        let whole = reach < power(self.finest.saturating_add(bits))
            && reach <= accumulator.max_finite()
            && power(self.finest) >= least.max(rounding.flushed);
        if self.exact && (whole || reach == 0.0) {
            return (value, 0.0, true);
        }
        let outside = rule.depth.unwrap_or(self.terms) * Self::unit(rule);
        let growth = gamma(tensor.growth(self.terms, accumulator) + outside, 1.0);
        let tiny = tensor.underflow(self.terms, accumulator) + self.terms * rounding.flushed;
        let own = 2.0 * self.terms * DOUBLE_UNIT * reach;
        (value, total(&self.error) + growth * (reach + tiny) + tiny + own, false)
    }

    fn unit(rule: &SumRule) -> f64 {
        match rule.accumulator {
            Format::F32 => UNIT,
            format => format.unit_roundoff() * (UNIT * (1u32 << 24) as f64),
        }
    }

    /// sum e + gamma(d) sum(|t| + e), what flushing loses, and what the reference itself rounds.
    fn plain_error(&self, magnitude: f64, rule: &SumRule, rounding: Rounding) -> f64 {
        let depth = rule.depth.unwrap_or(self.terms);
        let errors = total(&self.error);
        let unit = Self::unit(rule);
        let reach = magnitude + errors;
        let own = if self.compensated { 0.0 } else { self.terms * DOUBLE_UNIT * magnitude };
        let flushed = self.terms * rounding.flushed;
        let converted = if unit > UNIT {
            unit * reach + self.terms * rule.accumulator.min_subnormal() / 2.0
        } else {
            0.0
        };
        errors + gamma(depth, unit) * (reach + converted) + converted + flushed + own
    }

    /// `K e_mean^2 + sum(2|d|r + r^2 + 2 r e_mean) + sum(u t + eta) + gamma(d)(1 + u) sum t`.
    fn variance_error(&self, rule: &SumRule, rounding: Rounding) -> f64 {
        let DifferenceSums { mean_error, change, magnitude, .. } = self.differences;
        let depth = rule.depth.unwrap_or(self.terms);
        let unit = Self::unit(rule);
        let narrow = if unit > UNIT { unit + UNIT } else { UNIT };
        // The reference's differences sum to 0 but for its own rounding, far below 1 %.
        let shift = 1.01 * self.terms * mean_error * mean_error;
        let etas = self.terms * (rounding.eta + rounding.flushed);
        let squares = narrow * magnitude + etas;
        let own = self.terms * DOUBLE_UNIT * magnitude;
        shift + change + squares + gamma(depth, unit) * (magnitude + squares) + own
    }

    /// prod(|t| + e)(1 + gamma(d)) - |prod t|, and what underflow can grow to.
    fn finish_product(&self, rule: &SumRule, rounding: Rounding) -> (f64, f64, bool) {
        if self.exact && self.terms <= 1.0 {
            return (self.best, 0.0, true);
        }
        let depth = rule.depth.unwrap_or(self.terms);
        let spread = (self.reach - self.best.abs()).max(0.0);
        let own = self.terms * 2.0 * DOUBLE_UNIT * self.reach;
        let underflow = self.terms * rounding.eta * self.growth;
        let rounded = gamma(depth, Self::unit(rule)) * self.reach;
        (self.best, spread + rounded + own + underflow, false)
    }
}

/// Products per block of [`BoundSum::add_products`].
const BLOCK: usize = 512;

fn total(lanes: &[f64; LANES]) -> f64 {
    let half: [f64; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
    (half[0] + half[2]) + (half[1] + half[3])
}

/// The exponent of the finest bit that a value has; the largest for 0.
fn finest_bit(value: f64) -> i32 {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let significand = if exponent == 0 { fraction } else { fraction | 1 << 52 };
    if significand == 0 {
        return i32::MAX;
    }
    exponent.max(1) - 1075 + significand.trailing_zeros() as i32
}

#[cfg(test)]
mod tests {
    use super::finest_bit;

    #[test]
    fn the_finest_bit_of_a_value_is_its_grid() {
        assert_eq!(finest_bit(1.0), 0);
        assert_eq!(finest_bit(-12.0), 2);
        assert_eq!(finest_bit(0.375), -3);
        assert_eq!(finest_bit(f64::from_bits(1)), -1074);
        assert_eq!(finest_bit(0.0), i32::MAX);
    }
}
