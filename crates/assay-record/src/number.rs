//! A measured number that survives JSON whatever it is.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// An `f64` whose NaN and infinities are written as the strings `"NaN"`, `"+Inf"` and `"-Inf"`,
/// since JSON has no numbers for them. Two NaNs are equal, so that records can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

impl Number {
    fn word(self) -> Option<&'static str> {
        if self.0.is_finite() {
            None
        } else if self.0.is_nan() {
            Some("NaN")
        } else if self.0 > 0.0 {
            Some("+Inf")
        } else {
            Some("-Inf")
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (self.0.is_nan() && other.0.is_nan())
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Number(value)
    }
}

impl fmt::Display for Number {
    /// Short for reading: up to 6 significant digits, or as many as the precision asks for.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = formatter.precision().unwrap_or(6).max(1);
        let text = format!("{:.*e}", digits - 1, self.0);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let plain = (-4..digits as i32).contains(&exponent);
        let shown = if let Some(word) = self.word() {
            word.to_owned()
        } else if plain {
            let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
            trim(&format!("{:.decimals$}", self.0))
        } else {
            format!("{}e{exponent}", trim(mantissa))
        };
        // `pad` would cut at the precision; only the width is meant for the text.
        match formatter.width() {
            Some(width) => write!(formatter, "{shown:>width$}"),
            None => formatter.write_str(&shown),
        }
    }
}

/// A decimal without the zeros that end its fraction.
fn trim(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.word() {
            Some(word) => serializer.serialize_str(word),
            None => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number or one of \"NaN\", \"+Inf\", \"-Inf\"")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
        Ok(Number(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Number, E> {
        match word {
            "NaN" => Ok(Number(f64::NAN)),
            "+Inf" => Ok(Number(f64::INFINITY)),
            "-Inf" => Ok(Number(f64::NEG_INFINITY)),
            _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn a_number_is_shown_short_and_without_needless_zeros() {
        let shown = |value: f64| Number(value).to_string();
        assert_eq!(shown(0.0), "0");
        assert_eq!(shown(-1.5), "-1.5");
        assert_eq!(shown(1.0 / 3.0), "0.333333");
        assert_eq!(shown(1_234_567.0), "1.23457e6");
        assert_eq!(shown(100.0), "100");
        assert_eq!(shown(999_999.9), "1e6");
        assert_eq!(shown(1e-7), "1e-7");
        assert_eq!(shown(f64::NAN), "NaN");
        assert_eq!(shown(f64::NEG_INFINITY), "-Inf");
        assert_eq!(format!("{:.2}", Number(12.345)), "12");
        assert_eq!(format!("{:6.2}", Number(0.5)), "   0.5");
        assert_eq!(format!("{:6.2}", Number(f64::INFINITY)), "  +Inf");
    }
}
