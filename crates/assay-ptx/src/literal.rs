//! Integer and floating-point literals (ISA 4.5).

/// The value of a literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Literal {
    /// An integer.
    Integer(u64),
    /// The bits of an f32 (`0f...`).
    Float32(u32),
    /// The bits of an f64 (`0d...` or a decimal).
    Float64(u64),
}

/// Reads a literal without a sign; `Err` says what is wrong.
pub(crate) fn read(text: &str) -> Result<Literal, String> {
    let lower = text.as_bytes().get(1).map(u8::to_ascii_lowercase);
    let body = text.get(2..).unwrap_or("");
    if text.starts_with('0') && matches!(lower, Some(b'f' | b'd')) {
        return read_float_bits(text, body, lower == Some(b'f'));
    }
    if text.starts_with('0') && matches!(lower, Some(b'x' | b'b')) {
        return read_integer(text, body, if lower == Some(b'x') { 16 } else { 2 });
    }
    if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return match text.parse::<f64>() {
            Ok(value) => Ok(Literal::Float64(value.to_bits())),
            Err(_) => Err(format!("`{text}` is no number")),
        };
    }
    let octal = text.len() > 1 && text.starts_with('0') && text != "0U";
    if octal { read_integer(text, &text[1..], 8) } else { read_integer(text, text, 10) }
}

fn read_float_bits(text: &str, digits: &str, single: bool) -> Result<Literal, String> {
    let expected = if single { 8 } else { 16 };
    let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(digits, 16) {
        Ok(bits) if digits.len() == expected && hexadecimal && single => {
            Ok(Literal::Float32(bits as u32))
        }
        Ok(bits) if digits.len() == expected && hexadecimal => Ok(Literal::Float64(bits)),
        _ => Err(format!("`{text}` needs exactly {expected} hexadecimal digits")),
    }
}

fn read_integer(text: &str, digits: &str, radix: u32) -> Result<Literal, String> {
    let digits = digits.strip_suffix('U').unwrap_or(digits);
    if digits.starts_with('+') {
        return Err(format!("`{text}` is no number"));
    }
    match u64::from_str_radix(digits, radix) {
        Ok(value) => Ok(Literal::Integer(value)),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            Err(format!("`{text}` does not fit in 64 bits"))
        }
        Err(_) => Err(format!("`{text}` is no number")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Literal, read};

    #[test]
    fn integers_are_read_in_all_four_radixes() {
        for text in ["31", "0x1F", "0X1fU", "037", "0b11111", "31U"] {
            assert_eq!(read(text), Ok(Literal::Integer(31)), "{text}");
        }
        assert_eq!(read("0"), Ok(Literal::Integer(0)));
        assert_eq!(read("0U"), Ok(Literal::Integer(0)));
        assert_eq!(read("0xFFFFFFFFFFFFFFFF"), Ok(Literal::Integer(u64::MAX)));
    }

    #[test]
    fn floats_are_read_as_bits_and_as_decimals() {
        assert_eq!(read("0f3F800000"), Ok(Literal::Float32(0x3f80_0000)));
        assert_eq!(read("0dBFF0000000000000"), Ok(Literal::Float64((-1.0_f64).to_bits())));
        for text in ["1.5", "15e-1", "0.15e1", "1.5E+0"] {
            assert_eq!(read(text), Ok(Literal::Float64(1.5_f64.to_bits())), "{text}");
        }
    }

    #[test]
    fn malformed_literals_are_errors() {
        let malformed = ["0x", "09", "0f3F80", "0f3F80000G", "12abc", "0b2", "1e", "0x1_0"];
        for text in malformed.into_iter().chain(["0xFFFFFFFFFFFFFFFFF", "0f+F800000"]) {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
