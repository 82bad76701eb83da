//! Ways to damage a text: bytes, tokens, numbers, lines and whole instructions.

use assay_num::random::SplitMix64;

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "31",
    "32",
    "33",
    "64",
    "255",
    "65535",
    "65536",
    "0x7fffffff",
    "0x80000000",
    "0xffffffff",
    "0x7fffffffffffffff",
    "0xffffffffffffffff",
    "1000000007",
    "0f7F800000",
    "0fFFFFFFFF",
    "0d7FF0000000000000",
];

/// Splits a text where words begin and end; words keep dots, percent signs and colons.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (index, c) in text.char_indices() {
        let word = c.is_alphanumeric() || "_$%.:".contains(c);
        if before.is_some_and(|before| !(before && word)) && index > start {
            tokens.push(&text[start..index]);
            start = index;
        }
        before = Some(word);
    }
    tokens.push(&text[start..]);
    tokens
}

fn chosen<'t>(parts: &[&'t str], random: &mut SplitMix64) -> &'t str {
    parts[random.below(parts.len() as u64) as usize]
}

fn damage_bytes(text: &str, random: &mut SplitMix64) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(4) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => bytes.truncate(at),
            _ => drop(bytes.remove(at)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit())
}

fn damage_tokens(text: &str, donor: &str, random: &mut SplitMix64) -> String {
    let mut parts = tokens(text);
    let donors = tokens(donor);
    for _ in 0..=random.below(3) {
        let at = random.below(parts.len() as u64) as usize;
        match random.below(7) {
            0 => drop(parts.remove(at)),
            1 => parts.insert(at, parts[at]),
            2 => parts[at] = chosen(&parts, random),
            3 => parts[at] = chosen(&donors, random),
            4 => {
                let other = random.below(parts.len() as u64) as usize;
                parts.swap(at, other);
            }
            _ => {
                let numbers: Vec<usize> =
                    (0..parts.len()).filter(|&index| is_number(parts[index])).collect();
                if let Some(&index) = numbers.get(at % numbers.len().max(1)) {
                    parts[index] = chosen(NUMBERS, random);
                }
            }
        }
        if parts.is_empty() {
            break;
        }
    }
    parts.concat()
}

/// Exchanges registers of one instruction for others of the text, which mostly still parses.
fn damage_registers(text: &str, random: &mut SplitMix64) -> String {
    let mut parts = tokens(text);
    let registers: Vec<usize> =
        (0..parts.len()).filter(|&index| parts[index].starts_with('%')).collect();
    if registers.is_empty() {
        return text.to_owned();
    }
    for _ in 0..=random.below(3) {
        let to = registers[random.below(registers.len() as u64) as usize];
        let class = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        let wanted = class(parts[to]);
        let alike: Vec<&str> =
            registers.iter().map(|&index| parts[index]).filter(|n| class(n) == wanted).collect();
        parts[to] = chosen(&alike, random);
    }
    parts.concat()
}

/// Removes, repeats, moves or borrows lines: mostly whole instructions.
fn damage_lines(text: &str, donor: &str, random: &mut SplitMix64) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let donors: Vec<&str> = donor.lines().collect();
    for _ in 0..=random.below(3) {
        if lines.is_empty() {
            break;
        }
        let at = random.below(lines.len() as u64) as usize;
        let to = random.below(lines.len() as u64) as usize;
        match random.below(6) {
            0 | 1 => drop(lines.remove(at)),
            2 => lines.insert(to, lines[at]),
            3 => lines.swap(at, to),
            4 => {
                let (first, last) = (at.min(to), at.max(to));
                let piece: Vec<&str> = lines[first..last.min(first + 12)].to_vec();
                lines.splice(to..to, piece);
            }
            _ if !donors.is_empty() => lines.insert(to, chosen(&donors, random)),
            _ => {}
        }
    }
    lines.join("\n")
}

/// A text, damaged in one of these ways or in two.
pub(crate) fn mutate(text: &str, donor: &str, random: &mut SplitMix64) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(2) {
        if text.is_empty() {
            break;
        }
        text = match random.below(8) {
            0 => damage_bytes(&text, random),
            1 | 2 => damage_tokens(&text, donor, random),
            3 | 4 => damage_registers(&text, random),
            _ => damage_lines(&text, donor, random),
        };
    }
    text
}
