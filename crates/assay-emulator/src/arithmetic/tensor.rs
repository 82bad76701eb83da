//! Sums of products as tensor cores make them: whose, and by which rule.
//!
//! ISA 9.7.14.5.14 leaves order, rounding and precision open. The rules are the published ones
//! (Fasi, Higham, Mikaitis, Pranesh 2021; Khattak and Mikaitis, arXiv 2512.07004; MMA-Sim, arXiv
//! 2511.10909): products are exact; some of them and the accumulator are aligned to the largest
//! exponent and cut to so many fraction bits; the sum is exact, and its rounding to f32 cuts too.
//!
//! Only [`TensorModel::Hopper`] has been held against hardware here (docs/emulator.md). The others
//! are model only, unverified.

use super::{tensor_fast, tensor_plain};
use crate::execute::frame::host_is_wide;

/// Whose tensor cores sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorModel {
    /// V100. Model only, unverified.
    Volta,
    /// T4 and its like. Model only, unverified.
    Turing,
    /// A100, RTX 30. Model only, unverified.
    Ampere,
    /// L40, RTX 40. Model only, unverified.
    Ada,
    /// H100, H200: bit for bit what an H200 gave.
    Hopper,
    /// B200, RTX 50. Model only, unverified.
    Blackwell,
    /// No chip's: all products of an instruction and the accumulator, rounded once to nearest.
    Exact,
}

impl TensorModel {
    /// All of them, oldest first.
    pub const ALL: [TensorModel; 7] = [
        TensorModel::Volta,
        TensorModel::Turing,
        TensorModel::Ampere,
        TensorModel::Ada,
        TensorModel::Hopper,
        TensorModel::Blackwell,
        TensorModel::Exact,
    ];

    /// The model of an architecture: 90 is `sm_90`. Unknown ones have the next older one's.
    pub fn of(architecture: u32) -> TensorModel {
        match architecture {
            0..75 => TensorModel::Volta,
            75..80 => TensorModel::Turing,
            80..89 => TensorModel::Ampere,
            89 => TensorModel::Ada,
            90..100 => TensorModel::Hopper,
            _ => TensorModel::Blackwell,
        }
    }

    /// The name: `hopper`.
    pub fn name(self) -> &'static str {
        match self {
            TensorModel::Volta => "volta",
            TensorModel::Turing => "turing",
            TensorModel::Ampere => "ampere",
            TensorModel::Ada => "ada",
            TensorModel::Hopper => "hopper",
            TensorModel::Blackwell => "blackwell",
            TensorModel::Exact => "exact",
        }
    }

    /// The model of a name.
    pub fn named(name: &str) -> Option<TensorModel> {
        TensorModel::ALL.into_iter().find(|model| model.name() == name)
    }

    /// How it sums the products of one instruction.
    pub(crate) fn rule(self, path: Path, a: Format, half: bool) -> Rule {
        let result = if half { Output::Half } else { Output::Single };
        let whole = usize::MAX;
        let aligned = |step, fraction| Rule { step, fraction, result, order: Order::Aligned };
        let split = if a.is_byte() { 16 } else { 8 / a.halves() };
        let short = if half { Output::Half } else { Output::Short };
        match (self, path) {
            (TensorModel::Exact, _) => {
                Rule { step: whole, fraction: 0, result, order: Order::Exact }
            }
            (TensorModel::Volta, _) => aligned(4, 23),
            // For later chips the compiler makes this out of multiplications and additions in f32.
            (_, Path::Quad) => Rule { step: whole, fraction: 0, result, order: Order::Fused },
            (TensorModel::Turing, _) => aligned(whole, 24),
            (TensorModel::Ampere | TensorModel::Ada, _) if a.is_byte() => {
                Rule { step: split, fraction: 13, result: short, order: Order::Aligned }
            }
            (TensorModel::Ampere | TensorModel::Ada, _) => aligned(split, 24),
            (TensorModel::Hopper, Path::Wgmma) if a.is_byte() => {
                Rule { step: whole, fraction: 13, result: short, order: Order::Aligned }
            }
            // The compiler makes two instructions on f16 of it, the second on top of the first,
            // and adds the accumulator last.
            (TensorModel::Hopper, _) if a.is_byte() => {
                Rule { step: whole, fraction: 25, result, order: Order::Apart }
            }
            (TensorModel::Hopper | TensorModel::Blackwell, _) => aligned(whole, 25),
        }
    }
}

/// Which instruction sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    /// `mma` and `wmma`.
    Mma,
    /// `mma.m8n8k4` of f16, which only Volta has.
    Quad,
    /// `wgmma`
    Wgmma,
}

/// What an element of A or B is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    F16,
    Bf16,
    /// The low 13 bits of an f32 are ignored.
    Tf32,
    E4m3,
    E5m2,
    E3m2,
    E2m3,
    E2m1,
}

impl Format {
    /// Whether it takes a byte or less.
    pub(crate) fn is_byte(self) -> bool {
        !matches!(self, Format::F16 | Format::Bf16 | Format::Tf32)
    }

    /// Registers of 16 bits that it takes.
    fn halves(self) -> usize {
        if self == Format::Tf32 { 2 } else { 1 }
    }

    /// Bits of its exponent and of its fraction, and how far they lie above bit 0.
    pub(crate) const fn layout(self) -> Layout {
        let (exponent, fraction, low) = match self {
            Format::F16 => (5, 10, 0),
            Format::Bf16 => (8, 7, 0),
            Format::Tf32 => (8, 10, 13),
            Format::E4m3 => (4, 3, 0),
            Format::E5m2 => (5, 2, 0),
            Format::E3m2 => (3, 2, 0),
            Format::E2m3 => (2, 3, 0),
            Format::E2m1 => (2, 1, 0),
        };
        Layout { exponent, fraction, low }
    }

    /// Whether the bits are an infinity or a NaN.
    pub(crate) fn special(self, bits: u32) -> bool {
        let layout = self.layout();
        let magnitude = bits >> layout.low & ((1 << (layout.exponent + layout.fraction)) - 1);
        let top = ((1 << layout.exponent) - 1) << layout.fraction;
        match self {
            Format::E4m3 => magnitude == 0x7f,
            Format::E3m2 | Format::E2m3 | Format::E2m1 => false,
            _ => magnitude >= top,
        }
    }
}

/// Where the fields of a [`Format`] are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) exponent: u32,
    pub(crate) fraction: u32,
    pub(crate) low: u32,
}

/// In which order and with which roundings products are summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// `step` products and the sum so far, aligned and cut, one step after the other.
    Aligned,
    /// As `Aligned`, but from zero, first the even pairs of the depth, then the odd ones, of f16
    /// made of the elements; then the accumulator, rounded to nearest.
    Apart,
    /// Fused multiply-adds in f32 from the first product on, then the accumulator.
    Fused,
    /// One rounding.
    Exact,
}

/// What a sum is rounded to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// f32, toward zero.
    Single,
    /// f32 with 13 fraction bits, toward zero.
    Short,
    /// f16, to nearest.
    Half,
}

/// How products are summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// Products summed at once.
    pub(crate) step: usize,
    /// Fraction bits to which a term is cut; at most 25.
    pub(crate) fraction: u32,
    pub(crate) result: Output,
    pub(crate) order: Order,
}

/// The least exponent that terms are aligned to.
pub(crate) const LEAST: i32 = -133;

/// Elements as they lie in registers, row by row of A, and of B column by column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements<'a> {
    pub(crate) format: Format,
    pub(crate) bits: &'a [u32],
}

impl<'a> Elements<'a> {
    /// One row of A, or one column of B.
    pub(crate) fn line(&self, index: usize, depth: usize) -> Elements<'a> {
        Elements { format: self.format, bits: &self.bits[index * depth..(index + 1) * depth] }
    }
}

/// `c += a * b`, in the bits of f32, or of f16 where the rule has halves.
///
/// `a` has `depth` elements a row, `b` as many a column, `c` as many a row as `b` has columns.
/// Columns are a multiple of eight.
pub(crate) fn multiply_add(
    rule: &Rule,
    a: Elements<'_>,
    b: Elements<'_>,
    depth: usize,
    c: &mut [u32],
) {
    match rule.order {
        Order::Aligned => aligned(rule, a, b, depth, c),
        Order::Apart => apart(rule, a, b, depth, c),
        Order::Fused | Order::Exact => tensor_plain::multiply_add(rule, a, b, depth, c),
    }
}

fn aligned(rule: &Rule, a: Elements<'_>, b: Elements<'_>, depth: usize, c: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if host_is_wide() {
        // SAFETY: the host has what the function is compiled for.
        return unsafe { tensor_fast::multiply_add_wide(rule, a, b, depth, c) };
    }
    tensor_fast::multiply_add(rule, a, b, depth, c);
}

/// The elements of every other pair along the depth, as f16.
fn every_other_pair(from: Elements<'_>, odd: usize) -> Vec<u32> {
    let pairs = from.bits.chunks_exact(2).skip(odd).step_by(2);
    pairs.flatten().map(|&bits| tensor_plain::to_half(from.format, bits)).collect()
}

fn apart(rule: &Rule, a: Elements<'_>, b: Elements<'_>, depth: usize, c: &mut [u32]) {
    let mut sums = vec![0; c.len()];
    for odd in 0..2 {
        let [a, b] = [a, b].map(|matrix| every_other_pair(matrix, odd));
        let [a, b] = [&a, &b].map(|bits| Elements { format: Format::F16, bits });
        aligned(rule, a, b, depth / 2, &mut sums);
    }
    for (c, sum) in c.iter_mut().zip(sums) {
        *c = tensor_plain::add(rule.result, *c, sum);
    }
}

/// `c += a * b` in 32-bit integers that wrap, or saturate. Elements are sign-extended.
pub(crate) fn multiply_add_integers(
    a: &[u32],
    b: &[u32],
    depth: usize,
    c: &mut [u32],
    saturates: bool,
) {
    each_sum(a, b, depth, c, |a, b, c| {
        // At most 128 products of at most 16 bits.
        let products = a.iter().zip(b).map(|(&a, &b)| a as i32 * b as i32);
        let (old, sum) = (c as i32, products.sum());
        if saturates { old.saturating_add(sum) as u32 } else { old.wrapping_add(sum) as u32 }
    });
}

/// `c` plus how many bits both have, or just one has, 32 to an element.
pub(crate) fn multiply_add_bits(
    a: &[u32],
    b: &[u32],
    depth: usize,
    c: &mut [u32],
    conjunction: bool,
) {
    each_sum(a, b, depth, c, |a, b, c| {
        let bits = a.iter().zip(b).map(|(&a, &b)| if conjunction { a & b } else { a ^ b });
        c.wrapping_add(bits.map(u32::count_ones).sum())
    });
}

fn each_sum(
    a: &[u32],
    b: &[u32],
    depth: usize,
    c: &mut [u32],
    sum: impl Fn(&[u32], &[u32], u32) -> u32,
) {
    let depth = depth.max(1);
    let columns = (b.len() / depth).max(1);
    for (a, c) in a.chunks_exact(depth).zip(c.chunks_exact_mut(columns)) {
        for (b, c) in b.chunks_exact(depth).zip(c) {
            *c = sum(a, b, *c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of a fixed sequence.
    struct Words(u64);

    impl Words {
        fn next(&mut self) -> u32 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
        }

        /// An element: of any exponent, near one, subnormal, or now and then special.
        fn element(&mut self, layout: Layout, kind: u32) -> u32 {
            let (word, top) = (self.next(), (1_u32 << layout.exponent) - 1);
            let field = match (kind, word & 63) {
                (3, 0) => top,
                (1, _) => word >> 8 & top,
                (2, _) => word >> 8 & 1,
                _ => ((top >> 1) + (word >> 8) % 5).wrapping_sub(2) & top,
            };
            let fraction = self.next() & ((1 << layout.fraction) - 1);
            let sign = (word >> 31) << (layout.exponent + layout.fraction);
            (sign | field << layout.fraction | fraction) << layout.low
        }
    }

    const FORMATS: [Format; 8] = [
        Format::F16,
        Format::Bf16,
        Format::Tf32,
        Format::E4m3,
        Format::E5m2,
        Format::E3m2,
        Format::E2m3,
        Format::E2m1,
    ];

    #[test]
    fn eight_columns_at_a_time_give_what_one_element_at_a_time_does() {
        let mut words = Words(7);
        for (model, format) in TensorModel::ALL.into_iter().zip(FORMATS.into_iter().cycle()) {
            for round in 0..600 {
                let format = FORMATS[(format as usize + round / 4) % FORMATS.len()];
                let (half, kind) = (round % 8 > 5, round as u32 % 4);
                let path = if round % 3 == 0 { Path::Wgmma } else { Path::Mma };
                let rule = model.rule(path, format, half);
                if rule.order != Order::Aligned {
                    continue;
                }
                let (rows, columns, depth) = (16, 8 + round % 2 * 8, [4, 8, 16, 32][round % 4]);
                let mut line = |count| -> Vec<u32> {
                    (0..count).map(|_| words.element(format.layout(), kind)).collect()
                };
                let (a, b) = (line(rows * depth), line(columns * depth));
                let wide = Layout { exponent: 8, fraction: 23, low: 0 };
                let layout = if half { Format::F16.layout() } else { wide };
                let mut c: Vec<u32> =
                    (0..rows * columns).map(|_| words.element(layout, kind)).collect();
                let [a, b] = [&a, &b].map(|bits| Elements { format, bits });
                let mut plain = c.clone();
                tensor_plain::multiply_add(&rule, a, b, depth, &mut plain);
                multiply_add(&rule, a, b, depth, &mut c);
                assert_eq!(c, plain, "{model:?} {format:?} {half} {kind} {depth}");
            }
        }
    }

    #[test]
    fn every_architecture_has_a_model_and_they_differ() {
        let sums = TensorModel::ALL.map(|model| {
            // 1 + 2^-24 + 2^-25, 2^-24 being half of the last place.
            let rule = model.rule(Path::Mma, Format::F16, false);
            let a = Elements { format: Format::F16, bits: &[0x3c00, 0x0c00, 0x0c00, 0x0800] };
            let b = [0x3c00, 0x0c00, 0x0c00, 0x0800];
            let mut lines = [0; 32];
            lines[..4].copy_from_slice(&b);
            let mut c = [0; 8];
            multiply_add(&rule, a, Elements { format: Format::F16, bits: &lines }, 4, &mut c);
            c[0]
        });
        assert_eq!(sums[0], 0x3f80_0000, "23 bits keep none of it");
        assert!(sums.contains(&0x3f80_0001), "{sums:x?}");
        let models = [70, 75, 80, 86, 89, 90, 100, 120].map(TensorModel::of);
        assert!(models.is_sorted_by_key(|&model| model as u8));
    }
}
