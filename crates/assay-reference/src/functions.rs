//! The real functions, through `libm`, so that references have the same bits on every machine.

use crate::plan::Unary;

/// `operation` of `x`.
pub(crate) fn unary(operation: Unary, x: f64) -> f64 {
    match operation {
        Unary::Negate => -x,
        Unary::Abs => x.abs(),
        Unary::Floor => libm::floor(x),
        Unary::Exp => libm::exp(x),
        Unary::Exp2 => libm::exp2(x),
        Unary::Log => libm::log(x),
        Unary::Log2 => libm::log2(x),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Tanh => libm::tanh(x),
        Unary::Sin => libm::sin(x),
        Unary::Cos => libm::cos(x),
        Unary::Erf => libm::erf(x),
    }
}

/// Applies `operation` to every element; the cheap ones in loops that vectorise.
pub(crate) fn unary_all(operation: Unary, from: &[f64], to: &mut [f64]) {
    let pairs = to.iter_mut().zip(from);
    match operation {
        Unary::Negate => pairs.for_each(|(y, x)| *y = -x),
        Unary::Abs => pairs.for_each(|(y, x)| *y = x.abs()),
        Unary::Sqrt => pairs.for_each(|(y, x)| *y = x.sqrt()),
        Unary::Rsqrt => pairs.for_each(|(y, x)| *y = 1.0 / x.sqrt()),
        _ => pairs.for_each(|(y, x)| *y = unary(operation, *x)),
    }
}

/// The larger; NaN if either is NaN.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller; NaN if either is NaN.
pub(crate) fn smaller(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}
