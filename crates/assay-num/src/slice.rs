//! Whole tensors: little-endian bytes to values and back, without a call per element.

use crate::{Format, Overflow, Rounding};

impl Format {
    /// The values of a tensor's bytes, in order. Bytes past the last whole value are ignored;
    /// packed formats give as many values as the bytes have room for.
    #[must_use]
    pub fn decode_slice(self, bytes: &[u8]) -> Vec<f64> {
        match self {
            Format::F64 => words(bytes, f64::from_le_bytes),
            Format::F32 => words(bytes, |word| f64::from(f32::from_le_bytes(word))),
            Format::Tf32 => words(bytes, |word| self.decode(u64::from(u32::from_le_bytes(word)))),
            Format::F16 => words(bytes, |word| half_to_f64(u16::from_le_bytes(word))),
            Format::Bf16 => words(bytes, |word| {
                f64::from(f32::from_bits(u32::from(u16::from_le_bytes(word)) << 16))
            }),
            Format::E4m3 | Format::E5m2 | Format::E8m0 => {
                let table = self.table();
                bytes.iter().map(|&byte| table[usize::from(byte)]).collect()
            }
            Format::U2 => unpacked::<2, 1, 4>(self, bytes),
            Format::U3 => unpacked::<3, 3, 8>(self, bytes),
            Format::E2m1 | Format::U4 => unpacked::<4, 1, 2>(self, bytes),
            Format::U5 => unpacked::<5, 5, 8>(self, bytes),
            Format::U6 => unpacked::<6, 3, 4>(self, bytes),
            Format::I8 => bytes.iter().map(|&byte| f64::from(byte as i8)).collect(),
            Format::U8 => bytes.iter().map(|&byte| f64::from(byte)).collect(),
            Format::I16 => words(bytes, |word| f64::from(i16::from_le_bytes(word))),
            Format::U16 => words(bytes, |word| f64::from(u16::from_le_bytes(word))),
            Format::I32 => words(bytes, |word| f64::from(i32::from_le_bytes(word))),
            Format::U32 => words(bytes, |word| f64::from(u32::from_le_bytes(word))),
            Format::I64 => words(bytes, |word| i64::from_le_bytes(word) as f64),
            Format::U64 => words(bytes, |word| u64::from_le_bytes(word) as f64),
        }
    }

    /// The bytes of a tensor of these values, each rounded to nearest even with overflow to
    /// infinity. A last byte that packed values do not fill is padded with zero bits.
    #[must_use]
    pub fn encode_slice(self, values: &[f64]) -> Vec<u8> {
        match self {
            Format::F64 => bytes_of(values, |value| nearest(Format::F64, value).to_le_bytes()),
            Format::F32 => bytes_of(values, |value| nearest_f32(value).to_le_bytes()),
            Format::Bf16 => {
                bytes_of(values, |value| nearest_short::<7, 8>(self, value).to_le_bytes())
            }
            Format::F16 => {
                bytes_of(values, |value| nearest_short::<10, 5>(self, value).to_le_bytes())
            }
            Format::U2 => packed::<2, 1, 4>(self, values),
            Format::U3 => packed::<3, 3, 8>(self, values),
            Format::E2m1 | Format::U4 => packed::<4, 1, 2>(self, values),
            Format::U5 => packed::<5, 5, 8>(self, values),
            Format::U6 => packed::<6, 3, 4>(self, values),
            _ => match self.bits() {
                8 => bytes_of(values, |value| [nearest(self, value) as u8]),
                16 => bytes_of(values, |value| (nearest(self, value) as u16).to_le_bytes()),
                32 => bytes_of(values, |value| (nearest(self, value) as u32).to_le_bytes()),
                _ => bytes_of(values, |value| nearest(self, value).to_le_bytes()),
            },
        }
    }

    /// The value of every pattern of a format of at most 8 bits.
    fn table(self) -> [f64; 256] {
        std::array::from_fn(|bits| self.decode(bits as u64))
    }
}

/// The values of a stream of elements of `BITS` bits, of which `PER_GROUP` fill `BYTES` bytes.
fn unpacked<const BITS: usize, const BYTES: usize, const PER_GROUP: usize>(
    format: Format,
    bytes: &[u8],
) -> Vec<f64> {
    let table = format.table();
    let mut values = Vec::with_capacity(bytes.len() * 8 / BITS);
    let (groups, rest) = bytes.as_chunks::<BYTES>();
    let stream = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |all, b| all << 8 | u64::from(*b));
    let element =
        |stream: u64, at: usize| table[(stream >> (at * BITS)) as usize & ((1 << BITS) - 1)];
    for group in groups {
        let stream = stream(group);
        values.extend((0..PER_GROUP).map(|at| element(stream, at)));
    }
    let last = stream(rest);
    values.extend((0..rest.len() * 8 / BITS).map(|at| element(last, at)));
    values
}

/// The stream of elements of `BITS` bits, of which `PER_GROUP` fill `BYTES` bytes.
fn packed<const BITS: usize, const BYTES: usize, const PER_GROUP: usize>(
    format: Format,
    values: &[f64],
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(format.storage_bytes(values.len()) + BYTES);
    for group in values.chunks(PER_GROUP) {
        let join = |stream: u64, value: &f64| stream << BITS | nearest(format, *value);
        let stream = group.iter().rev().fold(0, join);
        bytes.extend_from_slice(&stream.to_le_bytes()[..BYTES]);
    }
    bytes.truncate(format.storage_bytes(values.len()));
    bytes
}

fn nearest(format: Format, value: f64) -> u64 {
    format.encode(value, Rounding::NearestEven, Overflow::Infinity)
}

fn nearest_f32(value: f64) -> u32 {
    // The bits of a converted NaN are not specified, so they are chosen here.
    if value.is_nan() { 0x7fc0_0000 } else { (value as f32).to_bits() }
}

/// Nearest even for an IEEE format of 16 bits whose normal values are found by one addition.
///
/// The dropped bits of the significand are rounded by adding just under half a step, and one more
/// if the kept part is odd; a carry moves into the exponent by itself.
fn nearest_short<const FRACTION: u32, const EXPONENT: u32>(format: Format, value: f64) -> u16 {
    let bias = (1u64 << (EXPONENT - 1)) - 1;
    let bits = value.to_bits();
    let magnitude = bits & (u64::MAX >> 1);
    let exponent = magnitude >> 52;
    let least_normal = 1023 - bias + 1;
    if exponent < least_normal || exponent >= 1023 + bias {
        return nearest(format, value) as u16;
    }
    let dropped = 52 - FRACTION;
    let odd = magnitude >> dropped & 1;
    let rounded = (magnitude + (1 << (dropped - 1)) - 1 + odd) >> dropped;
    let rebased = rounded - ((1023 - bias) << FRACTION);
    ((bits >> 63) << 15 | rebased) as u16
}

fn half_to_f64(bits: u16) -> f64 {
    let magnitude = u32::from(bits & 0x7fff);
    let sign = u32::from(bits >> 15) << 31;
    // Shifted into place, a half is an f32 whose exponent is 112 too small; multiplying puts that
    // right for normals and subnormals alike.
    let wide = if magnitude < 0x7c00 {
        f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23)
    } else {
        f32::from_bits(0x7f80_0000 | magnitude << 13)
    };
    f64::from(f32::from_bits(wide.to_bits() | sign))
}

fn words<const BYTES: usize>(bytes: &[u8], value: impl Fn([u8; BYTES]) -> f64) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|&word| value(word)).collect()
}

fn bytes_of<const BYTES: usize>(values: &[f64], word: impl Fn(f64) -> [u8; BYTES]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * BYTES];
    for (place, &value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
        *place = word(value);
    }
    bytes
}
