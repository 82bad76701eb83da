//! The format strings of device-side `printf`.

/// A part of a format string.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    Text(String),
    /// A conversion, as written, and what it takes.
    Argument(String, ArgumentKind),
}

/// What a conversion takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArgumentKind {
    Signed32,
    Signed64,
    Unsigned32,
    Unsigned64,
    Float,
    Character,
    String,
    Pointer,
}

impl ArgumentKind {
    /// Bytes in the argument buffer.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            ArgumentKind::Signed32 | ArgumentKind::Unsigned32 | ArgumentKind::Character => 4,
            _ => 8,
        }
    }
}

/// The most that a launch may print, in bytes: what the CUDA runtime's buffer holds by default.
const MOST: usize = 1 << 20;

/// Appends what a kernel printed; beyond a megabyte it is cut, and the last line says so.
pub(crate) fn append(output: &mut String, text: &str) {
    const CUT: &str = "\n[the rest of what the kernel printed is left out]\n";
    if output.len() + text.len() <= MOST {
        output.push_str(text);
    } else if !output.ends_with(CUT) {
        output.push_str(CUT);
    }
}

/// Splits a format string.
pub(crate) fn pieces(format: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(start) = rest.find('%') {
        pieces.push(Piece::Text(rest[..start].to_owned()));
        let conversion = &rest[start..];
        let end = conversion[1..]
            .find(|c: char| c.is_ascii_alphabetic() && !"hlzjt".contains(c) || c == '%');
        let Some(end) = end.map(|end| end + 2) else {
            rest = conversion;
            break;
        };
        let (specifier, behind) = conversion.split_at(end);
        rest = behind;
        match kind(specifier) {
            Some(kind) => pieces.push(Piece::Argument(specifier.to_owned(), kind)),
            None => pieces.push(Piece::Text("%".to_owned())),
        }
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces
}

fn kind(specifier: &str) -> Option<ArgumentKind> {
    let long = specifier.contains(['l', 'z', 'j', 't']);
    Some(match specifier.chars().last()? {
        'd' | 'i' if long => ArgumentKind::Signed64,
        'd' | 'i' => ArgumentKind::Signed32,
        'u' | 'x' | 'X' | 'o' if long => ArgumentKind::Unsigned64,
        'u' | 'x' | 'X' | 'o' => ArgumentKind::Unsigned32,
        'c' => ArgumentKind::Character,
        's' => ArgumentKind::String,
        'p' => ArgumentKind::Pointer,
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => ArgumentKind::Float,
        _ => return None,
    })
}

/// One argument as text. Width and precision are followed for numbers and strings.
pub(crate) fn render(
    specifier: &str,
    kind: ArgumentKind,
    value: u64,
    string: Option<&str>,
) -> String {
    let flags: String = specifier[1..].chars().take_while(|c| "-+ #0".contains(*c)).collect();
    let digits: String = specifier[1 + flags.len()..]
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let (width, precision) = digits.split_once('.').unwrap_or((&digits, ""));
    let width: usize = width.parse().unwrap_or(0).min(1024);
    let precision: Option<usize> = precision.parse().ok().map(|p: usize| p.min(100));
    let letter = specifier.chars().last().unwrap_or('d');
    let text = match kind {
        ArgumentKind::Signed32 => (value as i32).to_string(),
        ArgumentKind::Signed64 => (value as i64).to_string(),
        ArgumentKind::Unsigned32 | ArgumentKind::Unsigned64 => match letter {
            'x' => format!("{value:x}"),
            'X' => format!("{value:X}"),
            'o' => format!("{value:o}"),
            _ => value.to_string(),
        },
        ArgumentKind::Pointer => format!("{value:#x}"),
        ArgumentKind::Character => char::from(value as u8).to_string(),
        ArgumentKind::String => {
            string.unwrap_or("").chars().take(precision.unwrap_or(usize::MAX)).collect()
        }
        ArgumentKind::Float => float(letter, precision.unwrap_or(6), f64::from_bits(value)),
    };
    let sign = if flags.contains('+') && !text.starts_with('-') { "+" } else { "" };
    let text = format!("{sign}{text}");
    let missing = width.saturating_sub(text.chars().count());
    if flags.contains('-') {
        text + &" ".repeat(missing)
    } else if flags.contains('0') && string.is_none() {
        let (sign, number) = text.split_at(usize::from(text.starts_with(['-', '+'])));
        format!("{sign}{}{number}", "0".repeat(missing))
    } else {
        " ".repeat(missing) + &text
    }
}

fn float(letter: char, precision: usize, value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan".to_owned()
        } else if value > 0.0 {
            "inf".to_owned()
        } else {
            "-inf".to_owned()
        };
    }
    match letter {
        'e' | 'E' => exponential(precision, value),
        'g' | 'G' => general(precision.max(1), value),
        _ => format!("{value:.precision$}"),
    }
}

/// `%g`: significant digits, without zeros behind; an exponent for what is large or small.
fn general(digits: usize, value: f64) -> String {
    let scientific = exponential(digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let bare = |text: &str| {
        let fraction = text.contains('.');
        let bare = if fraction { text.trim_end_matches('0').trim_end_matches('.') } else { text };
        bare.to_owned()
    };
    if power < -4 || power >= digits as i32 {
        return format!("{}e{exponent}", bare(mantissa));
    }
    let places = (digits as i32 - 1 - power).max(0) as usize;
    bare(&format!("{value:.places$}"))
}

fn exponential(precision: usize, value: f64) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_string_splits_at_its_conversions() {
        let found = pieces("a=%d b=%5.2f%% %s\n");
        let kinds: Vec<_> = found
            .iter()
            .filter_map(|piece| match piece {
                Piece::Argument(_, kind) => Some(*kind),
                Piece::Text(_) => None,
            })
            .collect();
        assert_eq!(kinds, [ArgumentKind::Signed32, ArgumentKind::Float, ArgumentKind::String]);
    }

    #[test]
    fn numbers_are_rendered_as_c_does() {
        let bits = |x: f64| x.to_bits();
        assert_eq!(render("%5.2f", ArgumentKind::Float, bits(1.005), None), " 1.00");
        assert_eq!(render("%e", ArgumentKind::Float, bits(12345.678), None), "1.234568e+04");
        assert_eq!(render("%08x", ArgumentKind::Unsigned32, 0xbeef, None), "0000beef");
        assert_eq!(render("%-4d|", ArgumentKind::Signed32, 7, None), "7   ");
        assert_eq!(render("%d", ArgumentKind::Signed32, 0xffff_ffff, None), "-1");
        let general = |x: f64| render("%g", ArgumentKind::Float, bits(x), None);
        assert_eq!([general(0.1), general(1e6), general(123_456.0)], ["0.1", "1e+06", "123456"]);
        assert_eq!([general(1e-5), general(0.0), general(2.5)], ["1e-05", "0", "2.5"]);
    }

    #[test]
    fn output_without_end_is_cut_at_a_megabyte() {
        let mut output = String::new();
        for _ in 0..3000 {
            append(&mut output, &"x".repeat(1000));
        }
        assert!(output.len() < MOST + 100 && output.ends_with("left out]\n"));
    }
}
