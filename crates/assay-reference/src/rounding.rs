//! How much an operation of a kernel may err: the constants of the error rules, with sources.
//!
//! The unit is u = 2^-24. A constant c says that the result differs from the real function of the
//! operands by at most c u times its magnitude. An error of n ulp is c = 2n, since an ulp is at
//! most 2u times the value.

use assay_num::Format;

use crate::arithmetic::{Arithmetic, Division, Exponential, HyperbolicTangent, Root};
use crate::functions::unary;
use crate::plan::Unary;

/// The unit roundoff of fp32, widened by the little that `f64` references err themselves: every
/// node's value is within a few 2^-53 of the real number, which 2^-20 of u covers 500 times over.
pub(crate) const UNIT: f64 = (1.0 + 1.0 / (1u32 << 20) as f64) / (1u32 << 24) as f64;
/// 2^126, where approximate division starts to return 0. Source: PTX ISA, `div.approx.f32`.
pub(crate) const APPROXIMATE_DIVISOR_LIMIT: f64 = (1u128 << 126) as f64;
/// The largest finite fp32 value.
pub(crate) const LARGEST: f64 = f32::MAX as f64;

/// The constants of one kernel's arithmetic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    /// What underflow adds to each rounding: half the least subnormal, or with flushing the least
    /// normal value.
    pub(crate) eta: f64,
    /// Below this magnitude values become 0.
    pub(crate) flushed: f64,
    division: Division,
    sqrt: Root,
    rsqrt: Root,
    exp: Exponential,
    tanh: HyperbolicTangent,
}

impl Rounding {
    pub(crate) fn new(arithmetic: &Arithmetic) -> Self {
        let flush = arithmetic.flush_subnormals;
        let normal = Format::F32.min_normal();
        Self {
            eta: if flush { normal } else { Format::F32.min_subnormal() / 2.0 },
            flushed: if flush { normal } else { 0.0 },
            division: arithmetic.division,
            sqrt: arithmetic.sqrt,
            rsqrt: arithmetic.rsqrt,
            exp: arithmetic.exp,
            tanh: arithmetic.tanh,
        }
    }

    /// Whether fp32 holds `value` and does not flush it.
    #[inline]
    pub(crate) fn holds(&self, value: f64) -> bool {
        f64::from(value as f32) == value && (value.abs() >= self.flushed || value == 0.0)
    }

    /// The error of a leaf: a constant or an input that fp32 may not hold.
    #[inline]
    pub(crate) fn leaf(&self, value: f64) -> f64 {
        if value.is_infinite() || self.holds(value) {
            0.0
        } else if value.abs() < self.flushed {
            value.abs()
        } else {
            UNIT * value.abs() + self.eta
        }
    }

    /// The constant of `a / b`, and whether it returns 0 for large divisors.
    ///
    /// Source: PTX ISA, `div`: `.approx` and `.full` at most 2 ulp.
    pub(crate) fn division(&self) -> (f64, bool) {
        match self.division {
            Division::Ieee => (1.0, false),
            Division::Approx => (4.0, true),
            Division::Full => (4.0, false),
        }
    }

    /// The constant of `1 / b`. Source: PTX ISA, `rcp.approx.f32`: at most 1 ulp.
    pub(crate) fn reciprocal(&self) -> f64 {
        match self.division {
            Division::Ieee => 1.0,
            Division::Approx => 2.0,
            Division::Full => 4.0,
        }
    }

    /// The constant of a function of `argument`, which itself may err by `error`.
    ///
    /// Sources: PTX ISA for `sqrt.approx` (2^-23), `rsqrt.approx` (2^-22.9), `tanh.approx` (2^-11)
    /// and `ex2.approx` (2 ulp). The CUDA C++ Programming Guide, "Mathematical Functions", states
    /// for the rest n ulp from the correctly rounded result, hence n + 1/2 ulp from the real one,
    /// so that c is 2n + 1: n is 1 for `expf`, `logf` and `log2f` and 2 for `exp2f`, `tanhf`,
    /// `sinf`, `cosf` and `erff`. `exp` gets 4, for kernels' own reductions around `ex2.approx`.
    #[inline]
    pub(crate) fn function(&self, operation: Unary, argument: f64, error: f64) -> f64 {
        match operation {
            Unary::Negate | Unary::Abs | Unary::Floor => 0.0,
            Unary::Sqrt => {
                if self.sqrt == Root::Ieee {
                    1.0
                } else {
                    2.0
                }
            }
            Unary::Rsqrt => {
                if self.rsqrt == Root::Ieee {
                    1.0
                } else {
                    2.2
                }
            }
            // The product with log2(e) is rounded, and so is that constant.
            Unary::Exp if self.exp == Exponential::Ex2 => 4.0 + 1.25 * (argument.abs() + error),
            Unary::Tanh if self.tanh == HyperbolicTangent::Approx => 8192.0,
            Unary::Exp => 4.0,
            Unary::Log | Unary::Log2 => 3.0,
            Unary::Exp2 | Unary::Tanh | Unary::Sin | Unary::Cos | Unary::Erf => 5.0,
        }
    }
}

/// The error that an argument's error `error` makes in a function whose value is `value`; none
/// where the argument may leave the function's domain.
///
/// Each is the largest change over the interval around the argument, or a bound of it.
#[inline]
pub(crate) fn propagated(operation: Unary, argument: f64, error: f64, value: f64) -> Option<f64> {
    let leaves = match operation {
        Unary::Sqrt => argument < 0.0 || error > argument,
        Unary::Rsqrt | Unary::Log | Unary::Log2 => argument <= error,
        _ => false,
    };
    if leaves {
        return None;
    }
    if error == 0.0 {
        return Some(0.0);
    }
    let relative = error / argument;
    let root = (1.0 - relative).max(0.0).sqrt();
    Some(match operation {
        Unary::Negate | Unary::Abs | Unary::Sin | Unary::Cos => error,
        // The slopes are at most 1 and 2/sqrt(pi), and vanish away from 0.
        Unary::Tanh => saturating(operation, argument, error, value, error),
        Unary::Erf => saturating(operation, argument, error, value, 1.13 * error),
        Unary::Floor => {
            let (low, high) = (libm::floor(argument - error), libm::floor(argument + error));
            (high - value).max(value - low)
        }
        Unary::Exp => value * libm::expm1(error),
        Unary::Exp2 => value * libm::expm1(error * std::f64::consts::LN_2),
        // 1 - sqrt(1 - r) without cancellation.
        Unary::Sqrt => value * relative / (1.0 + root),
        Unary::Rsqrt => value * relative / ((1.0 + root) * root),
        Unary::Log => -libm::log1p(-relative),
        Unary::Log2 => -libm::log1p(-relative) * std::f64::consts::LOG2_E,
    })
}

/// The largest change of a rising function over the interval around its argument: `steepest`
/// bounds it near 0, and the function's values at the interval's ends do everywhere.
///
/// Without the ends, a gate such as `1 + tanh(x)` would be uncertain wherever `x` is large.
fn saturating(operation: Unary, argument: f64, error: f64, value: f64, steepest: f64) -> f64 {
    let change = |to: f64| (unary(operation, to) - value).abs();
    let ends = change(argument + error).max(change(argument - error));
    steepest.min(ends + 2.0 * f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::propagated;
    use crate::functions::unary;
    use crate::plan::Unary;

    const FUNCTIONS: [Unary; 13] = [
        Unary::Negate,
        Unary::Abs,
        Unary::Floor,
        Unary::Exp,
        Unary::Exp2,
        Unary::Log,
        Unary::Log2,
        Unary::Sqrt,
        Unary::Rsqrt,
        Unary::Tanh,
        Unary::Sin,
        Unary::Cos,
        Unary::Erf,
    ];

    #[test]
    fn a_saturated_function_passes_on_no_error_of_its_argument() {
        for operation in [Unary::Tanh, Unary::Erf] {
            for argument in [-1e21f64, -40.0, 40.0, 1e21] {
                let error = argument.abs() / 4.0;
                let bound = propagated(operation, argument, error, unary(operation, argument));
                assert!(bound.is_some_and(|bound| bound < 1e-8), "{operation:?} {argument}");
            }
        }
    }

    #[test]
    fn a_propagated_error_covers_the_function_over_the_argument_s_interval() {
        for operation in FUNCTIONS {
            for argument in [-3.5f64, -1.0, -0.01, 0.0, 0.02, 0.7, 1.0, 4.25, 11.0] {
                for error in [0.0, 1e-6, 0.01, 0.6] {
                    let value = unary(operation, argument);
                    let Some(bound) = propagated(operation, argument, error, value) else {
                        continue;
                    };
                    for step in -20..=20 {
                        let other = unary(operation, argument + error * f64::from(step) / 20.0);
                        let slack = 1e-14 * (1.0 + value.abs());
                        assert!((other - value).abs() <= bound + slack, "{operation:?} {argument}");
                    }
                }
            }
        }
    }
}
