//! Operands: every special value of a type, values near them, and random ones, from a seed.

use assay_num::random::SplitMix64;
use assay_num::{Format, Overflow, Rounding};
use assay_ptx::{Type, TypeKind};

/// One operand that a program loads: a type, and what the ISA allows there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Input {
    /// The type that decides which values are special.
    pub ty: Type,
    /// Which of them may occur.
    pub limit: Limit,
}

/// Which values an operand may have without leaving what the ISA defines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// Every value.
    Any,
    /// Not zero: the quotient by zero is unspecified.
    NonZero,
    /// From 0 up to but not including this.
    Below(u64),
    /// A signed number of at most this magnitude.
    Within(u32),
    /// One of two values, often the same in a whole warp: for votes and matches.
    Clustered,
    /// Parts of a matrix: by turns near one, of any exponent, and with special values among them,
    /// a tile (a warp's cases) at a time.
    Tile,
}

/// Cases of a program by default; all special values of one operand fit.
pub(crate) const CASES: usize = 4096;

/// Cases of an operation of floats, whose special values are many.
pub(crate) const FLOAT_CASES: usize = 16_384;

/// Cases of a program with one operand of 16 bits: every value there is.
pub(crate) const EXHAUSTIVE: usize = 65_536;

/// The operands of all cases, case by case, one word each: a function of the seed and of `inputs`.
pub fn operands(inputs: &[Input], cases: usize, seed: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed).fork(&format!("{inputs:?}"));
    let pools: Vec<Pool> = inputs.iter().map(|input| Pool::new(input.ty)).collect();
    let exhaustive = cases == EXHAUSTIVE && inputs.len() == 1;
    let mut words = Vec::with_capacity(cases * inputs.len());
    for case in 0..cases {
        let start = words.len();
        for (index, (input, pool)) in inputs.iter().zip(&pools).enumerate() {
            let word = if input.limit == Limit::Tile {
                pool.in_tile(input.ty, case, &mut random)
            } else if exhaustive {
                // Two halves: each runs through all values, in different orders.
                (case | (case * 40_503 % EXHAUSTIVE) << 16) as u64
            } else if case < pool.whole.len() || case % 4 == 1 {
                // Each operand at another pace, so that specials meet specials.
                let count = pool.whole.len();
                pool.whole[(case + index * (1 + case / count) * 7) % count]
            } else {
                let earlier = words[start..].last().copied();
                drawn(input.ty, pool, earlier, &mut random)
            };
            words.push(limited(input, word, case, &mut random));
        }
        cancel(inputs, case, &mut words[start..]);
    }
    words
}

/// Every eighth case of a fused multiply-add nearly cancels: c is the rounded -(a * b).
fn cancel(inputs: &[Input], case: usize, words: &mut [u64]) {
    let [a, b, c] = words else { return };
    if case % 8 != 7 || inputs.iter().any(|input| input.ty != inputs[0].ty) {
        return;
    }
    match inputs[0].ty {
        Type::F32 => {
            let product = -f32::from_bits(*a as u32) * f32::from_bits(*b as u32);
            *c = u64::from(product.to_bits());
        }
        Type::F64 => *c = (-f64::from_bits(*a) * f64::from_bits(*b)).to_bits(),
        _ => {}
    }
}

fn limited(input: &Input, word: u64, case: usize, random: &mut SplitMix64) -> u64 {
    let bits = input.ty.bits().clamp(1, 64);
    let word = word & mask(bits);
    match input.limit {
        Limit::NonZero if word == 0 => 1 + random.below(9),
        Limit::Any | Limit::NonZero | Limit::Tile => word,
        Limit::Below(limit) => word % limit,
        Limit::Within(most) => {
            let span = 2 * u64::from(most) + 1;
            ((word % span) as i64 - i64::from(most)) as u64 & mask(bits)
        }
        Limit::Clustered => {
            let warp = case / 32;
            // A third of the warps agree, a third differ in few lanes, a third are mixed.
            let stray = match warp % 3 {
                0 => false,
                1 => random.below(16) == 0,
                _ => random.below(2) == 0,
            };
            (warp as u64 / 3 + u64::from(stray)) & 1
        }
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The special values of a type, and those of its parts.
struct Pool {
    whole: Vec<u64>,
    parts: Vec<u64>,
}

impl Pool {
    fn new(ty: Type) -> Pool {
        let parts = parts(ty).map_or(Vec::new(), |(part, _)| specials(part));
        Pool { whole: specials(ty), parts }
    }
}

impl Pool {
    /// A part of a matrix: see [`Limit::Tile`].
    fn in_tile(&self, ty: Type, case: usize, random: &mut SplitMix64) -> u64 {
        let (part, count) = parts(ty).unwrap_or((ty, 1));
        let specials = if count == 1 { &self.whole } else { &self.parts };
        let bits = part.bits();
        (0..count).fold(0, |sum, index| {
            let word = random.next_u64();
            let special = specials[random.below(specials.len() as u64) as usize];
            let word = match (layout(part), case / 32 % 4) {
                (_, 3) if word.is_multiple_of(24) => special,
                (Some(_), 1) | (None, _) => word,
                (Some((exponent, mantissa)), kind) => {
                    let near = mask(exponent - 1) + word % 5 - 2;
                    let sign = random.next_u64() >> 63 << (exponent + mantissa);
                    // Few bits of mantissa in every other kind: sums that cancel to zero.
                    let kept = if kind == 2 { mask(2) << (mantissa - 2) } else { mask(mantissa) };
                    sign | near << mantissa | word >> 8 & kept
                }
            };
            sum | (word & mask(bits)) << (index * bits)
        })
    }
}

/// A value near a special one, near the operand before it, or anywhere; part by part.
fn drawn(ty: Type, pool: &Pool, earlier: Option<u64>, random: &mut SplitMix64) -> u64 {
    let Some((part, count)) = parts(ty) else {
        return drawn_part(ty, &pool.whole, earlier, random);
    };
    let shift = part.bits();
    (0..count).fold(0, |sum, index| {
        let earlier = earlier.map(|earlier| earlier >> (index * shift));
        let word = drawn_part(part, &pool.parts, earlier, random);
        sum | (word & mask(shift)) << (index * shift)
    })
}

fn drawn_part(ty: Type, pool: &[u64], earlier: Option<u64>, random: &mut SplitMix64) -> u64 {
    let word = random.next_u64();
    let special = pool[random.below(pool.len() as u64) as usize];
    match (layout(ty), random.below(4)) {
        (_, 0) => word,
        (_, 1) => special,
        (Some((exponent, mantissa)), choice) => {
            let bias = mask(exponent - 1);
            let near = match earlier {
                Some(earlier) if choice == 2 => earlier >> mantissa & mask(exponent),
                _ => bias,
            };
            let field = (near + word % 7).saturating_sub(3).min(mask(exponent));
            let sign = word >> 63 << (exponent + mantissa);
            sign | field << mantissa | random.next_u64() & mask(mantissa)
        }
        (None, 2) => special.wrapping_add(word % 5).wrapping_sub(2),
        // Small magnitudes of both signs.
        (None, _) => ((word as i64) >> (word % 64)) as u64,
    }
}

/// The parts of a packed type: their type and number.
pub(crate) fn parts(ty: Type) -> Option<(Type, u32)> {
    Some(match ty {
        Type::F16x2 => (Type::F16, 2),
        Type::Bf16x2 => (Type::Bf16, 2),
        Type::F32x2 => (Type::F32, 2),
        Type::U16x2 => (Type::U16, 2),
        Type::S16x2 => (Type::S16, 2),
        Type::E4m3x2 => (Type::E4m3, 2),
        Type::E5m2x2 => (Type::E5m2, 2),
        _ => return None,
    })
}

/// Bits of the exponent and of the mantissa of a float type.
pub(crate) fn layout(ty: Type) -> Option<(u32, u32)> {
    Some(match ty {
        Type::F16 => (5, 10),
        Type::Bf16 => (8, 7),
        Type::F32 | Type::Tf32 => (8, 23),
        Type::F64 => (11, 52),
        Type::E4m3 => (4, 3),
        Type::E5m2 => (5, 2),
        _ => return None,
    })
}

/// The special values of a type.
pub(crate) fn specials(ty: Type) -> Vec<u64> {
    if let Some((part, count)) = parts(ty) {
        let pool = specials(part);
        let word = |first: usize| {
            (0..count as usize).fold(0, |sum, index| {
                let part = pool[(first + index * (1 + first / 3)) % pool.len()] & mask(part.bits());
                sum | part << (index as u32 * pool_shift(count, ty))
            })
        };
        return (0..pool.len()).map(word).collect();
    }
    let mut all = match (layout(ty), ty.kind()) {
        (_, TypeKind::Predicate) => vec![0, 1],
        (Some((exponent, mantissa)), _) => floats(ty, exponent, mantissa),
        (None, TypeKind::Bits) if ty.bits() == 32 => [integers(32), few_floats(Type::F32)].concat(),
        (None, TypeKind::Bits) if ty.bits() >= 64 => [integers(64), few_floats(Type::F64)].concat(),
        (None, _) => integers(ty.bits().clamp(1, 64)),
    };
    all.sort_unstable();
    all.dedup();
    all
}

fn pool_shift(count: u32, ty: Type) -> u32 {
    ty.bits() / count
}

fn integers(bits: u32) -> Vec<u64> {
    let mut all: Vec<u64> = vec![0, 1, 2, 3, 5, 7, 10];
    for power in [4, 5, 6, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, bits - 1] {
        let power = 1_u64 << power.min(63);
        all.extend([power - 1, power, power + 1, power + power / 2]);
        all.extend([power - 1, power, power + 1].map(u64::wrapping_neg));
    }
    all.extend([u64::MAX, u64::MAX - 1, 0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa]);
    all.iter().map(|word| word & mask(bits)).collect()
}

fn few_floats(ty: Type) -> Vec<u64> {
    floats(ty, if ty == Type::F32 { 8 } else { 11 }, if ty == Type::F32 { 23 } else { 52 })
        .into_iter()
        .step_by(9)
        .collect()
}

/// Zeros, subnormals, extremes, infinities, quiet and signalling NaNs with payloads, ties of the
/// roundings to narrower types, and the edges of the integer types.
fn floats(ty: Type, exponent: u32, mantissa: u32) -> Vec<u64> {
    let (bias, top, ones) = (mask(exponent - 1), mask(exponent), mask(mantissa));
    let mut mantissas = vec![0, 1, 2, ones / 2, ones / 2 + 1, ones / 2 + 2, ones - 1, ones];
    for narrow in [1, 2, 3, 7, 10, 23] {
        if narrow < mantissa {
            // Half a unit in the last place of the narrower type, and its neighbours.
            let half = 1_u64 << (mantissa - narrow - 1);
            mantissas.extend([half, half - 1, half + 1, 3 * half, 3 * half - 1, 3 * half + 1]);
        }
    }
    let fields = [0, 1, 2, bias - 2, bias - 1, bias, bias + 1, bias + 2, top - 2, top - 1, top];
    let mut all = Vec::new();
    for field in fields {
        all.extend(mantissas.iter().map(|m| field << mantissa | m & ones));
    }
    if let Some(format) = format(ty) {
        let steps = [0.5, 1.5, 2.5, 3.5, 0.25, 0.75, 126.5, 127.5, 128.5, 255.5, 1e-3, 3.0, 10.0];
        let narrow = [448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65519.0, 65520.0, 65536.0];
        let tiny = [-7, -8, -9, -10, -14, -15, -16, -17, -24, -25, -126, -127, -133, -134, -149];
        let powers = [7, 8, 15, 16, 23, 24, 31, 32, 63, 64, 126, 127];
        let tiny = tiny.map(assay_num::power_of_two);
        let powers = powers.map(assay_num::power_of_two);
        let tens = [std::f64::consts::PI, std::f64::consts::TAU, std::f64::consts::FRAC_PI_2];
        let values = [&steps[..], &narrow, &tiny, &powers, &tens].concat();
        for value in values {
            let bits = format.encode(value, Rounding::NearestEven, Overflow::Saturate);
            all.extend([bits.saturating_sub(1), bits, bits + 1]);
        }
    }
    let signs = all.iter().map(|bits| bits | 1 << (exponent + mantissa));
    let signs: Vec<u64> = signs.collect();
    all.extend(signs);
    all
}

/// The number format of a float type.
pub(crate) fn format(ty: Type) -> Option<Format> {
    Some(match ty {
        Type::F16 => Format::F16,
        Type::Bf16 => Format::Bf16,
        Type::F32 => Format::F32,
        Type::Tf32 => Format::Tf32,
        Type::F64 => Format::F64,
        Type::E4m3 => Format::E4m3,
        Type::E5m2 => Format::E5m2,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(ty: Type) -> Input {
        Input { ty, limit: Limit::Any }
    }

    #[test]
    fn every_special_value_of_every_operand_occurs() {
        for ty in [Type::F32, Type::F64, Type::F16, Type::S32, Type::B64, Type::F16x2] {
            let inputs = [input(ty); 3];
            let words = operands(&inputs, CASES, 1);
            for index in 0..3 {
                let mut seen: Vec<u64> = words.iter().skip(index).step_by(3).copied().collect();
                seen.sort_unstable();
                let missing =
                    specials(ty).iter().filter(|s| seen.binary_search(s).is_err()).count();
                // A cancelling case may take the third operand's turn.
                assert!(missing * 7 <= specials(ty).len(), "{ty:?} {index}: {missing} missing");
                assert!(index == 2 || missing == 0, "{ty:?} {index}: {missing} missing");
            }
        }
    }

    #[test]
    fn the_special_values_of_f32_hold_zeros_infinities_nans_and_subnormals() {
        let pool = specials(Type::F32);
        let wanted = [
            0_u64,
            0x8000_0000,
            1,
            0x007f_ffff,
            0x0080_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7f80_0001,
            0x7fc0_0000,
            0xffff_ffff,
            0x3f80_8000,
        ];
        for bits in wanted {
            assert!(pool.contains(&bits), "{bits:#x}");
        }
    }

    #[test]
    fn one_operand_of_16_bits_takes_every_value() {
        let mut words = operands(&[input(Type::F16)], EXHAUSTIVE, 1);
        words.sort_unstable();
        assert!(words.iter().enumerate().all(|(index, &word)| word == index as u64));
    }

    #[test]
    fn limits_hold() {
        let zero_free = operands(&[Input { ty: Type::S32, limit: Limit::NonZero }], CASES, 1);
        assert!(zero_free.iter().all(|&word| word != 0));
        let small = operands(&[Input { ty: Type::S32, limit: Limit::Within(33) }], CASES, 1);
        assert!(small.iter().all(|&word| (word as u32 as i32).abs() <= 33));
    }
}
