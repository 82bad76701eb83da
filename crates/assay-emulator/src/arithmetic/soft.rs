//! Exact floating-point arithmetic on bits, in every rounding mode, for every binary format.
//!
//! This is the slow and plain path: directed roundings, formats that the host lacks, and the oracle
//! of the tests. Numbers are unpacked to an integer times a power of two, the operation is done
//! exactly (or with a sticky bit), and [`Binary::round`] rounds once.

/// A rounding mode of PTX.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Rounding {
    /// `.rn`: to nearest, ties to even.
    #[default]
    Nearest,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
    /// `.rz`: toward zero.
    Zero,
    /// `.rm`: toward minus infinity.
    Down,
    /// `.rp`: toward plus infinity.
    Up,
}

/// A binary format laid out as sign, exponent, fraction, as in IEEE 754.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Binary {
    /// Bits of the significand, the hidden one included.
    precision: u32,
    /// The exponent of the smallest normal number.
    min_exponent: i32,
    /// The exponent of the largest finite number.
    max_exponent: i32,
}

/// IEEE binary64.
pub(crate) const F64: Binary = Binary { precision: 53, min_exponent: -1022, max_exponent: 1023 };
/// IEEE binary32.
pub(crate) const F32: Binary = Binary { precision: 24, min_exponent: -126, max_exponent: 127 };
/// IEEE binary16.
pub(crate) const F16: Binary = Binary { precision: 11, min_exponent: -14, max_exponent: 15 };
/// bfloat16.
pub(crate) const BF16: Binary = Binary { precision: 8, min_exponent: -126, max_exponent: 127 };

/// A finite number: `mantissa * 2^exponent`, negated when `negative`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exact {
    pub(crate) negative: bool,
    pub(crate) mantissa: u128,
    pub(crate) exponent: i32,
    /// Whether the true value lies strictly between this mantissa and the next.
    pub(crate) sticky: bool,
}

/// What a bit pattern stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    NaN,
    Infinity(bool),
    Finite(Exact),
}

impl Binary {
    fn fraction_bits(self) -> u32 {
        self.precision - 1
    }

    fn exponent_mask(self) -> u64 {
        (self.max_exponent * 2 + 1) as u64
    }

    fn sign_bit(self) -> u64 {
        (self.exponent_mask() + 1) << self.fraction_bits()
    }

    /// The bits of an infinity.
    pub(crate) fn infinity(self, negative: bool) -> u64 {
        self.with_sign(negative, self.exponent_mask() << self.fraction_bits())
    }

    /// The canonical NaN: all bits set but the sign; f64 has the one that the hardware makes.
    pub(crate) fn nan(self) -> u64 {
        if self == F64 { 0xfff8_0000_0000_0000 } else { self.sign_bit() - 1 }
    }

    fn largest(self, negative: bool) -> u64 {
        self.infinity(negative) - 1
    }

    fn with_sign(self, negative: bool, magnitude: u64) -> u64 {
        if negative { magnitude | self.sign_bit() } else { magnitude }
    }

    /// Takes a bit pattern apart.
    pub(crate) fn unpack(self, bits: u64) -> Value {
        let negative = bits & self.sign_bit() != 0;
        let fraction = bits & ((1 << self.fraction_bits()) - 1);
        let biased = (bits >> self.fraction_bits()) & self.exponent_mask();
        if biased == self.exponent_mask() {
            return if fraction == 0 { Value::Infinity(negative) } else { Value::NaN };
        }
        let hidden = if biased == 0 { 0 } else { 1 << self.fraction_bits() };
        let exponent = self.min_exponent + (biased.max(1) as i32 - 1) - self.fraction_bits() as i32;
        let mantissa = u128::from(fraction | hidden);
        Value::Finite(Exact { negative, mantissa, exponent, sticky: false })
    }

    /// Rounds an exact number to this format; values past the largest become infinity or the
    /// largest number, as the mode says.
    pub(crate) fn round(self, value: Exact, mode: Rounding) -> u64 {
        if value.mantissa == 0 {
            return self.with_sign(value.negative, 0);
        }
        let length = 128 - value.mantissa.leading_zeros() as i32;
        let top = (value.exponent + length - 1).max(self.min_exponent);
        let quantum = top - self.fraction_bits() as i32;
        let (kept, half, rest) = split(value.mantissa, quantum - value.exponent);
        let inexact_below_half = rest || value.sticky;
        let up = match mode {
            Rounding::Nearest => half && (inexact_below_half || kept & 1 == 1),
            Rounding::NearestAway => half,
            Rounding::Zero => false,
            Rounding::Down => value.negative && (half || inexact_below_half),
            Rounding::Up => !value.negative && (half || inexact_below_half),
        };
        // A carry out of the fraction moves into the exponent field by itself.
        let biased = (quantum - self.min_exponent + self.fraction_bits() as i32) as u64;
        let magnitude = if kept >> self.fraction_bits() == 0 {
            kept + u64::from(up)
        } else {
            (biased << self.fraction_bits()) + kept + u64::from(up)
        };
        self.overflow(value.negative, magnitude, mode)
    }

    fn overflow(self, negative: bool, magnitude: u64, mode: Rounding) -> u64 {
        if magnitude < self.infinity(false) {
            return self.with_sign(negative, magnitude);
        }
        let to_largest = match mode {
            Rounding::Nearest | Rounding::NearestAway => false,
            Rounding::Zero => true,
            Rounding::Down => !negative,
            Rounding::Up => negative,
        };
        if to_largest { self.largest(negative) } else { self.infinity(negative) }
    }

    /// `a + b`.
    pub(crate) fn add(self, a: u64, b: u64, mode: Rounding) -> u64 {
        let one = Exact { negative: false, mantissa: 1, exponent: 0, sticky: false };
        self.fma_values(self.unpack(a), Value::Finite(one), self.unpack(b), mode)
    }

    /// `a * b`.
    pub(crate) fn multiply(self, a: u64, b: u64, mode: Rounding) -> u64 {
        match multiply(self.unpack(a), self.unpack(b)) {
            Value::NaN => self.nan(),
            Value::Infinity(negative) => self.infinity(negative),
            Value::Finite(exact) => self.round(exact, mode),
        }
    }

    /// `a * b + c` with one rounding.
    pub(crate) fn fma(self, a: u64, b: u64, c: u64, mode: Rounding) -> u64 {
        self.fma_values(self.unpack(a), self.unpack(b), self.unpack(c), mode)
    }

    fn fma_values(self, a: Value, b: Value, c: Value, mode: Rounding) -> u64 {
        match (multiply(a, b), c) {
            (Value::NaN, _) | (_, Value::NaN) => self.nan(),
            (Value::Infinity(x), Value::Infinity(y)) if x != y => self.nan(),
            (Value::Infinity(negative), _) | (_, Value::Infinity(negative)) => {
                self.infinity(negative)
            }
            (Value::Finite(product), Value::Finite(addend)) => {
                self.round(add(product, addend, mode), mode)
            }
        }
    }

    /// `a / b`.
    pub(crate) fn divide(self, a: u64, b: u64, mode: Rounding) -> u64 {
        match (self.unpack(a), self.unpack(b)) {
            (Value::NaN, _) | (_, Value::NaN) | (Value::Infinity(_), Value::Infinity(_)) => {
                self.nan()
            }
            (Value::Infinity(x), Value::Finite(y)) => self.infinity(x != y.negative),
            (Value::Finite(x), Value::Infinity(y)) => self.with_sign(x.negative != y, 0),
            (Value::Finite(x), Value::Finite(y)) => self.divide_finite(x, y, mode),
        }
    }

    fn divide_finite(self, x: Exact, y: Exact, mode: Rounding) -> u64 {
        let negative = x.negative != y.negative;
        match (x.mantissa, y.mantissa) {
            (0, 0) => return self.nan(),
            (_, 0) => return self.infinity(negative),
            _ => {}
        }
        let x = normalised(x, 127);
        let mantissa = x.mantissa / y.mantissa;
        let sticky = !x.mantissa.is_multiple_of(y.mantissa);
        let exponent = x.exponent - y.exponent;
        self.round(Exact { negative, mantissa, exponent, sticky }, mode)
    }

    /// The square root of `a`; negative numbers give NaN, -0 gives -0.
    pub(crate) fn square_root(self, a: u64, mode: Rounding) -> u64 {
        match self.unpack(a) {
            Value::NaN | Value::Infinity(true) => self.nan(),
            Value::Infinity(false) => self.infinity(false),
            Value::Finite(x) if x.mantissa == 0 => a,
            Value::Finite(x) if x.negative => self.nan(),
            Value::Finite(x) => {
                let mut x = normalised(x, 126);
                if x.exponent & 1 != 0 {
                    x.mantissa >>= 1;
                    x.exponent += 1;
                }
                let mantissa = x.mantissa.isqrt();
                let sticky = mantissa * mantissa != x.mantissa;
                let root = Exact { negative: false, mantissa, exponent: x.exponent / 2, sticky };
                self.round(root, mode)
            }
        }
    }
}

/// `mantissa` shifted right by `shift`: what is kept, the first bit lost, whether any other is set.
fn split(mantissa: u128, shift: i32) -> (u64, bool, bool) {
    match shift {
        ..=0 => ((mantissa << -shift) as u64, false, false),
        1..=127 => {
            let half = 1_u128 << (shift - 1);
            let kept = (mantissa >> shift) as u64;
            (kept, mantissa & half != 0, mantissa & (half - 1) != 0)
        }
        128 => (0, mantissa >> 127 != 0, mantissa << 1 != 0),
        _ => (0, false, mantissa != 0),
    }
}

fn multiply(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::NaN, _) | (_, Value::NaN) => Value::NaN,
        (Value::Infinity(x), Value::Infinity(y)) => Value::Infinity(x != y),
        (Value::Infinity(sign), Value::Finite(exact))
        | (Value::Finite(exact), Value::Infinity(sign)) => {
            if exact.mantissa == 0 {
                Value::NaN
            } else {
                Value::Infinity(sign != exact.negative)
            }
        }
        (Value::Finite(x), Value::Finite(y)) => Value::Finite(Exact {
            negative: x.negative != y.negative,
            mantissa: x.mantissa * y.mantissa,
            exponent: x.exponent + y.exponent,
            sticky: false,
        }),
    }
}

/// Shifts a non-zero mantissa left so that its top bit is bit `top - 1`.
fn normalised(value: Exact, top: u32) -> Exact {
    let length = 128 - value.mantissa.leading_zeros();
    let shift = top - length;
    Exact { mantissa: value.mantissa << shift, exponent: value.exponent - shift as i32, ..value }
}

fn add(x: Exact, y: Exact, mode: Rounding) -> Exact {
    if x.mantissa == 0 && y.mantissa == 0 {
        let negative = if x.negative == y.negative { x.negative } else { mode == Rounding::Down };
        return Exact { negative, ..x };
    }
    if x.mantissa == 0 {
        return y;
    }
    if y.mantissa == 0 {
        return x;
    }
    // Two bits of headroom: one for the carry, one so that a sticky borrow stays positive.
    let (x, y) = (normalised(x, 126), normalised(y, 126));
    let ((big, small), distance) = if (x.exponent, x.mantissa) >= (y.exponent, y.mantissa) {
        ((x, y), x.exponent - y.exponent)
    } else {
        ((y, x), y.exponent - x.exponent)
    };
    let distance = distance.min(127);
    let shifted = small.mantissa >> distance;
    let sticky = small.mantissa & ((1_u128 << distance) - 1) != 0;
    let mantissa = if big.negative == small.negative {
        big.mantissa + shifted
    } else {
        big.mantissa - shifted - u128::from(sticky)
    };
    let negative = if mantissa == 0 { mode == Rounding::Down } else { big.negative };
    Exact { negative, mantissa, exponent: big.exponent, sticky }
}

#[cfg(test)]
mod tests {
    use assay_num::random::SplitMix64;

    use super::*;

    fn interesting(random: &mut SplitMix64) -> f32 {
        let bits = random.next_u64();
        match bits >> 61 {
            0 => f32::from_bits((bits as u32) & 0x807f_ffff),
            1 => [0.0, -0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX][bits as usize % 6],
            2 | 3 => f32::from_bits((bits as u32 & 0x81ff_ffff) | 0x3f00_0000),
            _ => f32::from_bits(bits as u32),
        }
    }

    fn same(got: u64, want: f32) -> bool {
        got as u32 == want.to_bits() || (want.is_nan() && got == F32.nan())
    }

    #[test]
    fn nearest_operations_equal_the_host() {
        let mut random = SplitMix64::new(1);
        for _ in 0..200_000 {
            let (a, b, c) =
                (interesting(&mut random), interesting(&mut random), interesting(&mut random));
            let (x, y, z) = (a.to_bits() as u64, b.to_bits() as u64, c.to_bits() as u64);
            let mode = Rounding::Nearest;
            assert!(same(F32.add(x, y, mode), a + b), "{a:e} + {b:e}");
            assert!(same(F32.multiply(x, y, mode), a * b), "{a:e} * {b:e}");
            assert!(same(F32.divide(x, y, mode), a / b), "{a:e} / {b:e}");
            assert!(same(F32.square_root(x, mode), a.sqrt()), "sqrt {a:e}");
            assert!(same(F32.fma(x, y, z, mode), a.mul_add(b, c)), "{a:e} * {b:e} + {c:e}");
        }
    }

    #[test]
    fn double_operations_equal_the_host() {
        let mut random = SplitMix64::new(2);
        for _ in 0..100_000 {
            let mut next = || {
                let bits = random.next_u64();
                let near = (bits & 0x800f_ffff_ffff_ffff) | ((1000 + random.below(60)) << 52);
                if random.below(8) == 0 { bits } else { near }
            };
            let (x, y, z) = (next(), next(), next());
            let (a, b, c) = (f64::from_bits(x), f64::from_bits(y), f64::from_bits(z));
            if a.is_nan() || b.is_nan() || c.is_nan() {
                continue;
            }
            let check = |got: u64, want: f64| {
                assert!(got == want.to_bits() || want.is_nan(), "{a:e} {b:e} {c:e}: {want:e}");
            };
            check(F64.add(x, y, Rounding::Nearest), a + b);
            check(F64.multiply(x, y, Rounding::Nearest), a * b);
            check(F64.divide(x, y, Rounding::Nearest), a / b);
            check(F64.square_root(x, Rounding::Nearest), a.sqrt());
            check(F64.fma(x, y, z, Rounding::Nearest), a.mul_add(b, c));
        }
    }

    #[test]
    fn directed_roundings_bracket_the_exact_sum() {
        let one = u64::from(1.0_f32.to_bits());
        let tiny = u64::from(1e-30_f32.to_bits());
        assert_eq!(F32.add(one, tiny, Rounding::Zero), one);
        assert_eq!(F32.add(one, tiny, Rounding::Down), one);
        assert_eq!(F32.add(one, tiny, Rounding::Up), one + 1);
        let minus = u64::from((-1e-30_f32).to_bits());
        assert_eq!(F32.add(one, minus, Rounding::Zero), one - 1);
        assert_eq!(F32.add(one, minus, Rounding::Up), one);
        let max = u64::from(f32::MAX.to_bits());
        assert_eq!(F32.add(max, max, Rounding::Zero), max);
        assert_eq!(F32.add(max, max, Rounding::Up), F32.infinity(false));
    }
}
