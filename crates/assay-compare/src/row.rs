//! A row of elements of any format, decoded into the numbers that every format shares.

use assay_num::Format;

use crate::array::storage;
use crate::counts::LANES;
use crate::table::{Entry, PATTERNS, parts, table};

/// The numbers of one row.
pub(crate) struct Row {
    /// Values of the reference.
    pub(crate) reference: [f64; LANES],
    /// Values of the candidate.
    pub(crate) candidate: [f64; LANES],
    /// Candidate less reference: of floats of up to 32 bits rounded once to `f32`, of 64-bit
    /// integers the exact distance rounded to `f64`.
    pub(crate) error: [f64; LANES],
    /// Distances in steps of the format.
    pub(crate) ulp: Steps,
    /// Whether every value is finite.
    pub(crate) finite: bool,
    table: Option<Box<[Entry; PATTERNS]>>,
}

/// Distances in steps: those of formats of up to 32 bits fit 32 bits.
#[expect(clippy::large_enum_variant, reason = "one row is made for thousands of elements")]
pub(crate) enum Steps {
    /// Of formats of up to 32 bits.
    Narrow([u32; LANES]),
    /// Of 64-bit formats.
    Wide([u64; LANES]),
}

impl Steps {
    pub(crate) fn get(&self, at: usize) -> u64 {
        match self {
            Steps::Narrow(steps) => u64::from(steps[at]),
            Steps::Wide(steps) => steps[at],
        }
    }

    fn clear(&mut self, at: usize) {
        match self {
            Steps::Narrow(steps) => steps[at] = 0,
            Steps::Wide(steps) => steps[at] = 0,
        }
    }
}

impl Row {
    pub(crate) fn new(format: Format) -> Row {
        let ulp =
            if format.bits() == 64 { Steps::Wide([0; LANES]) } else { Steps::Narrow([0; LANES]) };
        let zero = [0.0; LANES];
        let table = table(format);
        Row { reference: zero, candidate: zero, error: zero, ulp, finite: true, table }
    }

    /// Makes an element two equal zeros, so that nothing counts it.
    pub(crate) fn neutralise(&mut self, at: usize) {
        (self.reference[at], self.candidate[at], self.error[at]) = (0.0, 0.0, 0.0);
        self.ulp.clear(at);
    }

    /// Decodes up to [`LANES`] elements; what is missing becomes equal zeros.
    pub(crate) fn decode(&mut self, format: Format, reference: &[u8], candidate: &[u8]) {
        let whole = storage(format, LANES as u64) as usize;
        if reference.len() == whole && candidate.len() == whole {
            self.decode_whole(format, reference, candidate);
        } else {
            let padded = |bytes: &[u8]| {
                let mut padded = bytes.to_vec();
                padded.resize(whole, 0);
                padded
            };
            self.decode_whole(format, &padded(reference), &padded(candidate));
        }
    }

    fn decode_whole(&mut self, format: Format, reference: &[u8], candidate: &[u8]) {
        match format {
            Format::F32 => self.fill::<4>(reference, candidate, f32_value, f32_steps),
            Format::Tf32 => self.fill::<4>(
                reference,
                candidate,
                |word| f32_value(tf32(word)),
                |one, other| f32_steps(tf32(one), tf32(other)) >> 13,
            ),
            Format::F16 => self.fill::<2>(reference, candidate, f16_value, |one, other| {
                short_steps(u16::from_le_bytes(one), u16::from_le_bytes(other))
            }),
            Format::Bf16 => self.fill::<2>(reference, candidate, bf16_value, |one, other| {
                short_steps(u16::from_le_bytes(one), u16::from_le_bytes(other))
            }),
            Format::F64 => self.fill_wide(reference, candidate, f64::from_bits, f64_code),
            Format::I64 => {
                self.fill_wide(reference, candidate, |b| b as i64 as f64, |b| b ^ 1 << 63);
            }
            Format::U64 => self.fill_wide(reference, candidate, |bits| bits as f64, |bits| bits),
            _ => self.fill_one_by_one(format, reference, candidate),
        }
    }

    fn fill<const BYTES: usize>(
        &mut self,
        reference: &[u8],
        candidate: &[u8],
        value: impl Fn([u8; BYTES]) -> f64,
        steps: impl Fn([u8; BYTES], [u8; BYTES]) -> u32,
    ) {
        let Steps::Narrow(ulp) = &mut self.ulp else { return };
        let (reference, _) = reference.as_chunks::<BYTES>();
        let (candidate, _) = candidate.as_chunks::<BYTES>();
        for (place, word) in self.reference.iter_mut().zip(reference) {
            *place = value(*word);
        }
        for (place, word) in self.candidate.iter_mut().zip(candidate) {
            *place = value(*word);
        }
        for ((place, one), other) in ulp.iter_mut().zip(reference).zip(candidate) {
            *place = steps(*one, *other);
        }
        self.subtract(|reference, candidate| {
            // Both are values of `f32`, so the square of the difference is exact in `f64`.
            f64::from(candidate as f32 - reference as f32)
        });
    }

    /// The errors, and whether all values are finite.
    fn subtract(&mut self, error: impl Fn(f64, f64) -> f64) {
        let mut finite = true;
        let pairs = self.reference.iter().zip(&self.candidate);
        for (place, (&reference, &candidate)) in self.error.iter_mut().zip(pairs) {
            *place = error(reference, candidate);
            finite &= reference.abs() <= f64::MAX && candidate.abs() <= f64::MAX;
        }
        self.finite = finite;
    }

    fn fill_wide(
        &mut self,
        reference: &[u8],
        candidate: &[u8],
        value: impl Fn(u64) -> f64,
        code: impl Fn(u64) -> u64,
    ) {
        let Steps::Wide(ulp) = &mut self.ulp else { return };
        let pairs = reference.as_chunks::<8>().0.iter().zip(candidate.as_chunks::<8>().0);
        for (at, (one, other)) in pairs.enumerate().take(LANES) {
            let (one, other) = (u64::from_le_bytes(*one), u64::from_le_bytes(*other));
            (self.reference[at], self.candidate[at]) = (value(one), value(other));
            ulp[at] = code(one).abs_diff(code(other));
        }
        self.subtract(|reference, candidate| candidate - reference);
        self.exact_differences();
    }

    /// The difference of two integers past 2^53 can vanish in `f64`; their distance does not.
    fn exact_differences(&mut self) {
        let Steps::Wide(ulp) = &self.ulp else { return };
        for (error, &steps) in self.error.iter_mut().zip(ulp) {
            if *error == 0.0 && steps != 0 {
                *error = steps as f64;
            }
        }
    }

    /// Elements of a format that no way of its own decodes: of at most 8 bits, looked up, or
    /// integers.
    fn fill_one_by_one(&mut self, format: Format, reference: &[u8], candidate: &[u8]) {
        let Steps::Narrow(ulp) = &mut self.ulp else { return };
        let table = self.table.as_deref();
        let decode = |bytes: &[u8], at: usize| {
            let bits = bits_at(format, bytes, at);
            match table {
                Some(table) => parts(table[bits as usize % PATTERNS]),
                None => (format.decode(bits), narrow_code(format, bits)),
            }
        };
        for (at, ulp) in ulp.iter_mut().enumerate() {
            let (one, other) = (decode(reference, at), decode(candidate, at));
            (self.reference[at], self.candidate[at]) = (one.0, other.0);
            *ulp = one.1.abs_diff(other.1) as u32;
        }
        let is_float = format.is_float();
        self.subtract(|reference, candidate| {
            let exact = candidate - reference;
            if is_float { f64::from(exact as f32) } else { exact }
        });
    }
}

/// The bits of an element of a format of at most 32 bits.
#[inline(always)]
pub(crate) fn bits_at(format: Format, bytes: &[u8], at: usize) -> u64 {
    let bits = format.bits() as usize;
    let (first, shift) = (at * bits / 8, at * bits % 8);
    let last = (at * bits + bits - 1) / 8;
    let word = bytes[first..=last].iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
    word >> shift & ((1 << bits) - 1)
}

/// A number that grows by one from each value of the format to the next; both zeros have one.
pub(crate) fn narrow_code(format: Format, bits: u64) -> i64 {
    let sign = 1 << (format.bits() - 1);
    match format {
        Format::E8m0 => bits as i64,
        _ if format.is_float() => {
            let magnitude = (bits & (sign - 1)) as i64;
            if bits & sign == 0 { magnitude } else { -magnitude }
        }
        // Integers are their own codes, and exact in `f64`.
        _ => format.decode(bits) as i64,
    }
}

fn f32_value(word: [u8; 4]) -> f64 {
    f64::from(f32::from_le_bytes(word))
}

fn f32_steps(one: [u8; 4], other: [u8; 4]) -> u32 {
    f32_code(u32::from_le_bytes(one)).abs_diff(f32_code(u32::from_le_bytes(other)))
}

#[inline(always)]
pub(crate) fn f32_code(bits: u32) -> i32 {
    let bits = bits as i32;
    let sign = bits >> 31;
    ((bits & i32::MAX) ^ sign) - sign
}

/// The bits below a tensor float's fraction count for nothing.
fn tf32(word: [u8; 4]) -> [u8; 4] {
    (u32::from_le_bytes(word) & !0x1fff).to_le_bytes()
}

fn f16_value(word: [u8; 2]) -> f64 {
    f64::from(f16_single(u32::from(u16::from_le_bytes(word))))
}

/// The value of a half's bits.
#[inline(always)]
pub(crate) fn f16_single(bits: u32) -> f32 {
    let magnitude = bits & 0x7fff;
    // Shifted into place, a half is an f32 whose exponent is 112 too small; multiplying puts that
    // right for normals and subnormals alike.
    let finite = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    let other = f32::from_bits(0x7f80_0000 | magnitude << 13);
    let wide = if magnitude < 0x7c00 { finite } else { other };
    f32::from_bits(wide.to_bits() | (bits >> 15) << 31)
}

fn bf16_value(word: [u8; 2]) -> f64 {
    f64::from(f32::from_bits(u32::from(u16::from_le_bytes(word)) << 16))
}

fn short_steps(one: u16, other: u16) -> u32 {
    short_code(one).abs_diff(short_code(other))
}

#[inline(always)]
pub(crate) fn short_code(bits: u16) -> i32 {
    let sign = i32::from(bits as i16) >> 31;
    (i32::from(bits & 0x7fff) ^ sign) - sign
}

/// The distance of two values of `f64`.
#[inline(always)]
pub(crate) fn f64_steps(one: u64, other: u64) -> u64 {
    f64_code(one).abs_diff(f64_code(other))
}

#[inline(always)]
fn f64_code(bits: u64) -> u64 {
    let magnitude = bits & (u64::MAX >> 1);
    if bits >> 63 == 0 { 1 << 63 | magnitude } else { (1 << 63) - magnitude }
}
