//! Formats of up to 8 bits as a table in which values and codes are looked up.

use assay_num::Format;

use crate::row::narrow_code;

/// Patterns of 8 bits.
pub(crate) const PATTERNS: usize = 256;

/// The value of a pattern as an `f32`, and its code in 32 bits, both little-endian.
pub(crate) type Entry = [u8; 8];

/// The value and the code.
#[inline(always)]
pub(crate) fn parts([a, b, c, d, e, f, g, h]: Entry) -> (f64, i64) {
    let value = f64::from(f32::from_le_bytes([a, b, c, d]));
    (value, i64::from(i32::from_le_bytes([e, f, g, h])))
}

/// The entry of every pattern, repeated past the format's own patterns. None of wider formats.
pub(crate) fn table(format: Format) -> Option<Box<[Entry; PATTERNS]>> {
    if !has_table(format) {
        return None;
    }
    let mask = (1u64 << format.bits()) - 1;
    Some(Box::new(std::array::from_fn(|at| {
        let bits = at as u64 & mask;
        // Every such value is exact in `f32`, and every code in 32 bits.
        let [a, b, c, d] = (format.decode(bits) as f32).to_le_bytes();
        let [e, f, g, h] = (narrow_code(format, bits) as i32).to_le_bytes();
        [a, b, c, d, e, f, g, h]
    })))
}

/// Whether a format is compared by its table.
pub(crate) fn has_table(format: Format) -> bool {
    format.bits() <= 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_table_is_the_format_s_own() {
        for format in Format::ALL.into_iter().filter(|&format| has_table(format)) {
            let table = table(format).expect("a table");
            for bits in 0..1 << format.bits() {
                let (value, code) = parts(table[bits as usize]);
                let exact = format.decode(bits);
                assert!(value == exact || value.is_nan() && exact.is_nan(), "{format} {bits}");
                assert_eq!(code, narrow_code(format, bits), "{format} {bits}");
            }
        }
    }
}
