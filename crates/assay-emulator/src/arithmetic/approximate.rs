//! The approximate functions of ISA 9.7.3: `div.approx`, `rcp`, `sqrt`, `rsqrt`, `ex2`, `lg2`,
//! `sin`, `cos`, `tanh`.
//!
//! The ISA only bounds their errors, and real chips differ inside the bounds. By default the result
//! is the real value rounded to nearest. With a seed it is anywhere inside the bound: a fixed
//! function of seed, function and operands, so that the same operands always give the same result,
//! as on a chip, and a run replays exactly.

use super::float::{Single, canonical, flush};
use super::half::{Bf16, F16, HALF_FTZ, Half, flushed};
use crate::execute::frame::{Parameters, lanes};

/// How far a result may lie from the real value.
#[derive(Clone, Copy)]
enum Bound {
    /// Units in the last place of the result.
    Ulps(f64),
    /// A fraction of the real value.
    Relative(f64),
    /// An absolute distance.
    Absolute(f64),
}

/// The f32 for a real value: nearest without a seed, else anywhere inside the bound.
#[inline(always)]
fn place(parameters: Parameters, value: f64, bound: Bound, function: u64, operands: u64) -> f32 {
    let nearest = value as f32;
    if parameters.seed == 0 {
        return canonical(nearest);
    }
    perturbed(parameters.seed, value, bound, mixed(function, operands))
}

fn perturbed(seed: u64, value: f64, bound: Bound, key: u64) -> f32 {
    let nearest = value as f32;
    if !nearest.is_finite() || nearest == 0.0 || !value.is_finite() {
        return canonical(nearest);
    }
    let distance = match bound {
        Bound::Ulps(ulps) => ulps * ulp(value),
        Bound::Relative(fraction) => value.abs() * fraction,
        Bound::Absolute(distance) => distance,
    };
    // 53 bits to [-1, 1].
    let random = (mixed(seed, key) >> 11) as f64 * (2.0 / 9_007_199_254_740_991.0) - 1.0;
    let (low, high) = (value - distance, value + distance);
    let moved = (value + random * distance) as f32;
    // Rounding must not leave the bound.
    if f64::from(moved) > high {
        moved.next_down()
    } else if f64::from(moved) < low {
        moved.next_up()
    } else {
        moved
    }
}

/// The spacing of f32 numbers at a real value.
fn ulp(value: f64) -> f64 {
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    2.0_f64.powi(exponent.max(-126) - 23)
}

/// A hash of two words (the finaliser of `SplitMix64`).
#[inline(always)]
fn mixed(a: u64, b: u64) -> u64 {
    let mut x = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[inline(always)]
fn key(a: f32) -> u64 {
    u64::from(a.to_bits())
}

/// 2 to the power of `x`, as f64. The error is a few units of 2^-53 before the final rounding, and
/// the steps are plain additions and multiplications, so that every host gives the same bits.
#[inline(always)]
pub(crate) fn exp2(x: f64) -> f64 {
    // 1.5 * 2^52: adding it leaves the nearest integer in the low bits.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    // ln(2)^n / n!
    const TERMS: [f64; 13] = [
        std::f64::consts::LN_2,
        0.240_226_506_959_100_7,
        0.055_504_108_664_821_58,
        0.009_618_129_107_628_477,
        0.001_333_355_814_642_844_3,
        0.000_154_035_303_933_816_1,
        1.525_273_380_405_984e-5,
        1.321_548_679_014_431e-6,
        1.017_808_600_923_97e-7,
        7.054_911_620_801_123e-9,
        4.445_538_271_870_811_5e-10,
        2.567_843_599_348_820_5e-11,
        1.369_148_885_390_412_9e-12,
    ];
    let clamped = if x > -400.0 { x } else { -400.0 };
    let clamped = if clamped < 400.0 { clamped } else { 400.0 };
    let shifted = clamped + SHIFT;
    let fraction = clamped - (shifted - SHIFT);
    let mut sum = TERMS[12];
    for index in (0..12).rev() {
        sum = sum * fraction + TERMS[index];
    }
    let mantissa = sum * fraction + 1.0;
    let power = f64::from_bits(mantissa.to_bits().wrapping_add(shifted.to_bits() << 52));
    if x.is_nan() { x } else { power }
}

lanes! {
    /// `div.full.f32`: 2 ulp
    DivideFull<T: Single>([parameters] a: T, b: T) -> T {
        let (a, b) = (a.get(), b.get());
        let quotient = f64::from(a) / f64::from(b);
        let nearest = canonical(a / b);
        T::make(if parameters.seed == 0 || b.is_infinite() {
            nearest
        } else {
            place(parameters, quotient, Bound::Ulps(2.0), 1, key(a) << 32 | key(b))
        })
    }
    /// `div.approx.f32`: 2 ulp; a huge divisor gives 0
    DivideApproximate<T: Single>([parameters] a: T, b: T) -> T {
        let (a, b) = (a.get(), b.get());
        let quotient = f64::from(a) / f64::from(b);
        let plain = if parameters.seed == 0 {
            canonical(a / b)
        } else {
            place(parameters, quotient, Bound::Ulps(2.0), 2, key(a) << 32 | key(b))
        };
        let huge = b.abs() > 8.507_059e37 && b.abs() < f32::INFINITY;
        let zero = if a.abs() < f32::INFINITY { 0.0 * a * b.signum() } else { f32::NAN };
        T::make(canonical(if huge { zero } else { plain }))
    }
    /// `rcp.approx.f32`: 1 ulp
    ReciprocalApproximate<T: Single>([parameters] a: T) -> T {
        let a = a.get();
        T::make(if parameters.seed == 0 {
            canonical(1.0 / a)
        } else {
            place(parameters, 1.0 / f64::from(a), Bound::Ulps(1.0), 3, key(a))
        })
    }
    /// `sqrt.approx.f32`: 2^-23 relative
    RootApproximate<T: Single>([parameters] a: T) -> T {
        let a = a.get();
        T::make(if parameters.seed == 0 {
            canonical(a.sqrt())
        } else {
            let bound = Bound::Relative(1.192_092_895_507_812_5e-7);
            place(parameters, f64::from(a).sqrt(), bound, 4, key(a))
        })
    }
    /// `rsqrt.approx.f32`: 2^-22.9 relative
    ReciprocalRoot<T: Single>([parameters] a: T) -> T {
        let a = a.get();
        let value = 1.0 / f64::from(a).sqrt();
        T::make(place(parameters, value, Bound::Relative(1.277_7e-7), 5, key(a)))
    }
    /// `ex2.approx.f32`: 2 ulp
    Exponential<T: Single>([parameters] a: T) -> T {
        let a = a.get();
        T::make(place(parameters, exp2(f64::from(a)), Bound::Ulps(2.0), 6, key(a)))
    }
}

lanes! {
    once:
    /// `lg2.approx.f32`: 2^-22, absolute on (0.5, 2), else relative
    Logarithm<T: Single>([parameters] a: T) -> T {
        let a = a.get();
        let value = libm::log2(f64::from(a));
        let two_22 = 2.384_185_791_015_625e-7;
        let near_one = a > 0.5 && a < 2.0;
        let bound = if near_one { Bound::Absolute(two_22) } else { Bound::Relative(two_22) };
        T::make(place(parameters, value, bound, 7, key(a)))
    }
    /// `sin.approx.f32`: 2^-20.5 on [-2 pi, 2 pi], 2^-14.7 on [-100 pi, 100 pi]
    Sine<T: Single>([parameters] a: T) -> T {
        let a = a.get();
        T::make(place(parameters, libm::sin(f64::from(a)), circular(a), 8, key(a)))
    }
    /// `cos.approx.f32`, bounded as `sin`
    Cosine<T: Single>([parameters] a: T) -> T {
        let a = a.get();
        T::make(place(parameters, libm::cos(f64::from(a)), circular(a), 9, key(a)))
    }
    /// `tanh.approx.f32`: 2^-11 relative
    HyperbolicTangent([parameters] a: f32) -> f32 {
        let value = libm::tanh(f64::from(a));
        let value = place(parameters, value, Bound::Relative(4.882_812_5e-4), 10, key(a));
        // A perturbed tangent still stays inside [-1, 1], and subnormals pass through.
        let value = if value.abs() > 1.0 { value.signum() } else { value };
        if flush(a) == 0.0 { a } else { value }
    }

    /// `rcp.approx.ftz.f64`: a result with 20 fraction bits from the upper half of the operand
    ReciprocalF64Coarse(a: u64) -> u64 { coarse(a, |x| 1.0 / x) }
    /// `rsqrt.approx.ftz.f64`, and `rsqrt.approx.f64` with more bits than it promises
    ReciprocalRootF64Coarse(a: u64) -> u64 { coarse(a, |x| 1.0 / x.sqrt()) }
    /// `rsqrt.approx.f64`
    ReciprocalRootF64(a: f64) -> f64 { 1.0 / a.sqrt() }

    /// `ex2.approx.f16`
    ExponentialF16([parameters] a: u16) -> u16 {
        half_function::<F16>(parameters, a, exp2, 1.046_5e-3, 11)
    }
    /// `ex2.approx.ftz.bf16`
    ExponentialBf16([parameters] a: u16) -> u16 {
        half_function::<Bf16>(parameters, a, exp2, 7.812_5e-3, 12)
    }
    /// `tanh.approx.f16`
    TangentF16([parameters] a: u16) -> u16 {
        half_function::<F16>(parameters, a, libm::tanh, 4.882_812_5e-4, 13)
    }
    /// `tanh.approx.bf16`
    TangentBf16([parameters] a: u16) -> u16 {
        half_function::<Bf16>(parameters, a, libm::tanh, 3.906_25e-3, 14)
    }
    /// `ex2.approx.f16x2`
    ExponentialF16x2([parameters] a: u32) -> u32 {
        pair(a, |x| half_function::<F16>(parameters, x, exp2, 1.046_5e-3, 11))
    }
    /// `ex2.approx.ftz.bf16x2`
    ExponentialBf16x2([parameters] a: u32) -> u32 {
        pair(a, |x| half_function::<Bf16>(parameters, x, exp2, 7.812_5e-3, 12))
    }
    /// `tanh.approx.f16x2`
    TangentF16x2([parameters] a: u32) -> u32 {
        pair(a, |x| half_function::<F16>(parameters, x, libm::tanh, 4.882_812_5e-4, 13))
    }
    /// `tanh.approx.bf16x2`
    TangentBf16x2([parameters] a: u32) -> u32 {
        pair(a, |x| half_function::<Bf16>(parameters, x, libm::tanh, 3.906_25e-3, 14))
    }
}

fn circular(a: f32) -> Bound {
    const TWO_PI: f32 = std::f32::consts::TAU;
    if a.abs() <= TWO_PI {
        Bound::Absolute(6.743_5e-7)
    } else if a.abs() <= 50.0 * TWO_PI {
        Bound::Absolute(3.757e-5)
    } else {
        // The ISA promises nothing further out; the emulator stays at the last bound.
        Bound::Absolute(3.757e-5)
    }
}

fn pair(a: u32, function: impl Fn(u16) -> u16) -> u32 {
    u32::from(function(a as u16)) | u32::from(function((a >> 16) as u16)) << 16
}

fn half_function<H: Half>(
    parameters: Parameters,
    a: u16,
    function: impl Fn(f64) -> f64,
    relative: f64,
    code: u64,
) -> u16 {
    let value = function(f64::from(H::widen(a)));
    // `ex2.approx.ftz.bf16` flushes; the others have no results below the normal numbers to flush.
    let flushes = if code == 12 { HALF_FTZ } else { 0 };
    let nearest = flushed::<H>(flushes, H::narrow(value as f32));
    if parameters.seed == 0 || !value.is_finite() {
        return nearest;
    }
    let bound = Bound::Relative(relative);
    let moved = perturbed(parameters.seed, value, bound, mixed(code, u64::from(a)));
    let moved = flushed::<H>(flushes, H::narrow(moved));
    let inside = (f64::from(H::widen(moved)) - value).abs() <= value.abs() * relative;
    if inside { moved } else { nearest }
}

/// The f64 functions that only see and only give the upper 32 bits.
fn coarse(a: u64, function: impl Fn(f64) -> f64) -> u64 {
    const UPPER: u64 = 0xffff_ffff_0000_0000;
    let flushed = |bits: u64| if bits & 0x7ff0 << 48 == 0 { bits & 1 << 63 } else { bits };
    let value = function(f64::from_bits(flushed(a & UPPER)));
    if value.is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    let rounded = if value.is_infinite() { value.to_bits() } else { value.to_bits() + (1 << 31) };
    flushed(rounded & UPPER)
}

#[cfg(test)]
mod tests {
    use assay_num::random::SplitMix64;

    use super::*;

    #[test]
    fn exp2_agrees_with_the_library() {
        let mut random = SplitMix64::new(3);
        for _ in 0..200_000 {
            let x = f64::from(random.range(-160.0, 140.0) as f32);
            let (got, want) = (exp2(x), libm::exp2(x));
            assert!((got - want).abs() <= 4e-16 * want, "2^{x}: {got:e}, not {want:e}");
        }
        assert_eq!(exp2(f64::INFINITY) as f32, f32::INFINITY);
        assert_eq!(exp2(f64::NEG_INFINITY) as f32, 0.0);
        assert_eq!(exp2(-0.0), 1.0);
        assert!(exp2(f64::NAN).is_nan());
    }

    #[test]
    fn a_seed_moves_results_inside_the_bound_and_always_the_same_way() {
        let mut random = SplitMix64::new(4);
        let mut moved = 0;
        for _ in 0..50_000 {
            let x = random.range(-20.0, 20.0) as f32;
            let value = exp2(f64::from(x));
            let parameters = Parameters { seed: 99, ..Parameters::default() };
            let got = place(parameters, value, Bound::Ulps(2.0), 6, key(x));
            let again = place(parameters, value, Bound::Ulps(2.0), 6, key(x));
            assert_eq!(got.to_bits(), again.to_bits());
            assert!((f64::from(got) - value).abs() <= 2.0 * ulp(value), "{x}");
            moved += u32::from(got != value as f32);
        }
        assert!(moved > 10_000, "only {moved} results moved");
    }
}
