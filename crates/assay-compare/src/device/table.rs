//! Formats of up to 8 bits as a table that the kernels look values and codes up in.

use assay_num::Format;

use crate::row::narrow_code;

/// Patterns of 8 bits.
const PATTERNS: u64 = 256;

/// The value and the code of every pattern, 8 bytes each; repeated past the format's own patterns.
pub(super) fn table(format: Format) -> Vec<u8> {
    let mask = (1u64 << format.bits().min(8)) - 1;
    let pattern = |bits: u64| {
        // Every such value is exact in `f32`, and every code in 32 bits.
        let value = (format.decode(bits & mask) as f32).to_le_bytes();
        let code = (narrow_code(format, bits & mask) as i32).to_le_bytes();
        value.into_iter().chain(code)
    };
    (0..PATTERNS).flat_map(pattern).collect()
}

/// Whether a format is compared by its table.
pub(super) fn has_table(format: Format) -> bool {
    format.bits() <= 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_table_is_the_format_s_own() {
        for format in Format::ALL.into_iter().filter(|&format| has_table(format)) {
            let table = table(format);
            for bits in 0..1 << format.bits() {
                let (entries, _) = table.as_chunks::<8>();
                let [a, b, c, d, ..] = entries[bits as usize];
                let value = f64::from(f32::from_le_bytes([a, b, c, d]));
                let exact = format.decode(bits);
                assert!(value == exact || value.is_nan() && exact.is_nan(), "{format} {bits}");
            }
        }
    }
}
