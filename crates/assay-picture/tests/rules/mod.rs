//! What holds of every picture: texts lie inside it and apart from each other.
//!
//! Widths are reckoned here by another rule than the pictures' own: the advance widths of a wide
//! sans-serif font, as a round figure per sort of character.

struct Text {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    words: String,
}

/// Every broken rule, in words.
pub(crate) fn broken(svg: &str) -> Vec<String> {
    let (width, height) = size(svg);
    let texts: Vec<Text> = svg.lines().filter_map(text).collect();
    let mut found = Vec::new();
    for (index, a) in texts.iter().enumerate() {
        if a.left < -0.5 || a.right > width + 0.5 || a.top < -0.5 || a.bottom > height + 0.5 {
            found.push(format!("{:?} leaves the picture", a.words));
        }
        for b in &texts[..index] {
            let across = a.left < b.right && b.left < a.right;
            if across && a.top < b.bottom && b.top < a.bottom {
                found.push(format!("{:?} and {:?} overlap", a.words, b.words));
            }
        }
    }
    found
}

fn size(svg: &str) -> (f64, f64) {
    let numbers = svg.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split('"').next());
    let numbers: Vec<f64> =
        numbers.unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

fn text(line: &str) -> Option<Text> {
    let rest = line.strip_prefix("<text")?;
    let value = |name: &str| {
        let mark = format!(" {name}=\"");
        rest.split(&mark).nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned)
    };
    let number = |name: &str| value(name).and_then(|value| value.parse::<f64>().ok());
    let words = rest.split('>').nth(1)?.strip_suffix("</text")?;
    let words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let (size, x, y) = (number("font-size")?, number("x")?, number("y")?);
    let width = size * words.chars().map(advance).sum::<f64>();
    let left = match value("text-anchor")?.as_str() {
        "middle" => x - width / 2.0,
        "end" => x - width,
        _ => x,
    };
    let (top, bottom) = (y - 0.76 * size, y + 0.2 * size);
    Some(Text { left, right: left + width, top, bottom, words })
}

fn advance(c: char) -> f64 {
    match c {
        'i' | 'l' | 'j' => 0.278,
        '.' | ',' | ' ' | ':' | ';' | '·' => 0.337,
        'f' | 't' | 'r' | '(' | ')' | '/' | '-' | 'I' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' => 0.97,
        'A'..='Z' | '+' | '<' | '>' | '=' => 0.75,
        _ => 0.63,
    }
}
