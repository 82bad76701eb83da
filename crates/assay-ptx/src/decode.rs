//! Decodes the spelling of an opcode by the table.
//!
//! Parts may come in any order: the parts of the base come first, and whatever follows is a type,
//! a space, a shape, a layout, a vector width or a modifier by its spelling alone.

use std::fmt::Write;

use crate::base::Base;
use crate::modifier::{Modifier, Modifiers};
use crate::opcode::Opcode;
use crate::table::{Row, table};
use crate::types::{Layout, Shape, StateSpace, Type};

/// Why a spelling is no opcode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DecodeError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Bytes from the start of the spelling to the guilty part.
    pub(crate) offset: usize,
}

impl DecodeError {
    fn new(offset: usize, message: String, hint: Option<String>) -> DecodeError {
        DecodeError { message, hint, offset }
    }
}

/// Decodes a spelling such as `ld.global.v4.f32`.
pub(crate) fn decode(text: &str) -> Result<(Opcode, &'static Row), DecodeError> {
    let base = find_base(text)?;
    let mut opcode = Opcode {
        base,
        types: Vec::new(),
        spaces: Vec::new(),
        shape: None,
        layouts: Vec::new(),
        vector: 1,
        modifiers: Modifiers::new(),
        writes: false,
        text: text.to_string(),
    };
    let mut offset = base.name().len();
    let rest = text.get(offset..).unwrap_or("");
    for part in rest.split('.').skip(1) {
        if !take_part(&mut opcode, part) {
            return Err(unknown_part(base, part, offset + 1));
        }
        offset += 1 + part.len();
    }
    match find_row(&opcode) {
        Some(row) => {
            opcode.writes = row.writes();
            Ok((opcode, row))
        }
        None => Err(explain(&opcode)),
    }
}

/// The row that an opcode belongs to.
pub(crate) fn find_row(opcode: &Opcode) -> Option<&'static Row> {
    table().rows(opcode.base).iter().find(|row| matches_row(opcode, row))
}

/// The longest base whose parts the spelling starts with.
fn find_base(text: &str) -> Result<Base, DecodeError> {
    let mut end = text.len();
    loop {
        if let Some(base) = text.get(..end).and_then(Base::from_name) {
            return Ok(base);
        }
        match text.get(..end).and_then(|head| head.rfind('.')) {
            Some(dot) => end = dot,
            None => break,
        }
    }
    let word = text.split('.').next().unwrap_or("");
    let families = Base::ALL.iter().filter(|base| base.name().split('.').next() == Some(word));
    let family: Vec<&str> = families.map(|base| base.name()).collect();
    let hint = if family.is_empty() {
        nearest(word, Base::ALL.iter().map(|base| base.name()))
            .map(|name| format!("did you mean `{name}`?"))
    } else {
        Some(format!("known operations of `{word}`: {}", family.join(", ")))
    };
    Err(DecodeError::new(0, format!("unknown opcode `{text}`"), hint))
}

/// Files a part of the spelling; false when it is unknown or written twice.
fn take_part(opcode: &mut Opcode, part: &str) -> bool {
    // `.shared` and types first: no modifier is spelled like one of them.
    if let Some(ty) = Type::from_name(part) {
        opcode.types.push(ty);
    } else if let Some(space) = StateSpace::from_name(part) {
        opcode.spaces.push(space);
    } else if let Some(modifier) = Modifier::from_name(part) {
        if opcode.has(modifier) {
            return false;
        }
        opcode.modifiers.insert(modifier);
    } else if let Some(shape) = Shape::from_name(part) {
        return opcode.shape.replace(shape).is_none();
    } else {
        return take_width_or_layout(opcode, part);
    }
    true
}

fn take_width_or_layout(opcode: &mut Opcode, part: &str) -> bool {
    let width = match part {
        "v2" => 2,
        "v4" => 4,
        "v8" => 8,
        "row" => {
            opcode.layouts.push(Layout::Row);
            return true;
        }
        "col" => {
            opcode.layouts.push(Layout::Column);
            return true;
        }
        _ => return false,
    };
    let first = opcode.vector == 1;
    opcode.vector = width;
    first
}

fn matches_row(opcode: &Opcode, row: &Row) -> bool {
    types_match(opcode, row)
        && spaces_match(&opcode.spaces, row)
        && modifiers_match(opcode.modifiers, row)
        && (opcode.vector == 1 || row.widths.contains(&opcode.vector))
        && opcode.layouts.len() == row.layouts
        && match opcode.shape {
            Some(shape) => row.shapes.iter().any(|rule| rule.allows(shape)),
            None => row.shapes.is_empty(),
        }
}

fn types_match(opcode: &Opcode, row: &Row) -> bool {
    let pairs = opcode.types.iter().zip(&row.types);
    opcode.types.len() == row.types.len() && pairs.into_iter().all(|(&ty, set)| set.has(ty))
}

fn spaces_match(spaces: &[StateSpace], row: &Row) -> bool {
    let mut written = spaces.iter().peekable();
    for slot in &row.spaces {
        match written.peek() {
            Some(space) if slot.allowed.contains(space) => {
                written.next();
            }
            _ if slot.optional => {}
            _ => return false,
        }
    }
    written.next().is_none()
}

fn modifiers_match(modifiers: Modifiers, row: &Row) -> bool {
    let choices = row.choices.iter().all(|choice| {
        let written = modifiers.common(choice.modifiers);
        written <= 1 && (written == 1 || !choice.required)
    });
    choices && modifiers.is_within(row.allowed)
}

/// Says which part of a spelling no row of the base knows.
fn unknown_part(base: Base, part: &str, offset: usize) -> DecodeError {
    let known = Type::from_name(part).is_some() || Modifier::from_name(part).is_some();
    let repeated = known || Shape::from_name(part).is_some() || part.starts_with('v');
    let message = if repeated && !part.is_empty() && known {
        format!("`.{part}` is written twice on `{}`", base.name())
    } else {
        format!("unknown modifier `.{part}` on `{}`", base.name())
    };
    let hint = nearest(part, allowed_names(base).into_iter())
        .map(|name| format!("did you mean `.{name}`?"));
    DecodeError::new(offset, message, hint)
}

/// The modifiers and types that some row of the base allows.
fn allowed_names(base: Base) -> Vec<&'static str> {
    let rows = table().rows(base);
    let modifiers = Modifier::ALL.iter().filter(|&&m| rows.iter().any(|row| row.allowed.has(m)));
    let has_type = |ty: Type| rows.iter().any(|row| row.types.iter().any(|set| set.has(ty)));
    let types = Type::ALL.iter().filter(|&&ty| has_type(ty));
    modifiers.map(|m| m.name()).chain(types.map(|ty| ty.name())).collect()
}

/// Says why an opcode of known parts has no row.
fn explain(opcode: &Opcode) -> DecodeError {
    let rows = table().rows(opcode.base);
    let name = opcode.base.name();
    let place = |part: &str| opcode.text.find(&format!(".{part}")).map_or(0, |dot| dot + 1);
    let stranger = opcode.modifiers.iter().find(|&m| !rows.iter().any(|row| row.allowed.has(m)));
    if let Some(stranger) = stranger {
        let message = format!("`{name}` takes no `.{}`", stranger.name());
        let hint = nearest(stranger.name(), allowed_names(opcode.base).into_iter())
            .map(|name| format!("did you mean `.{name}`?"));
        return DecodeError::new(place(stranger.name()), message, hint);
    }
    let typed: Vec<&Row> = rows.iter().filter(|row| types_match(opcode, row)).collect();
    if typed.is_empty() {
        let written: Vec<String> = opcode.types.iter().map(|t| format!(".{}", t.name())).collect();
        let first = opcode.types.first().map_or(0, |ty| place(ty.name()));
        let message = if written.is_empty() {
            format!("`{name}` needs a type")
        } else {
            format!("`{name}` does not take the type {}", written.concat())
        };
        return DecodeError::new(first, message, Some(forms(rows.iter())));
    }
    let misfit = typed
        .iter()
        .find_map(|row| opcode.modifiers.iter().find(|&m| !row.allowed.has(m)).map(Modifier::name));
    let message = format!("the parts of `{}` do not go together", opcode.text);
    let offset = misfit.filter(|_| typed.len() == 1).map_or(0, place);
    DecodeError::new(offset, message, Some(forms(typed.into_iter())))
}

/// The rows of the table, for a hint.
fn forms<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let shown: Vec<String> = rows.take(3).map(describe).collect();
    format!("known forms: {}", shown.join("; or "))
}

fn describe(row: &Row) -> String {
    let mut text = format!("`{}`", row.base.name());
    for choice in &row.choices {
        let names: Vec<String> =
            choice.modifiers.iter().map(|m| format!(".{}", m.name())).collect();
        let names = names.join(" or ");
        let (open, close) = if choice.required { ("", "") } else { ("[", "]") };
        let _ = write!(text, " {open}{names}{close}");
    }
    if let Some(set) = row.types.first() {
        let names: Vec<&str> =
            Type::ALL.iter().filter(|&&ty| set.has(ty)).map(|ty| ty.name()).collect();
        let _ = write!(text, " on {}", names.join(" "));
    }
    text
}

/// The known name nearest to a word, if one is near enough to be a likely typing error.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + word.len().min(40) / 4;
    names
        .filter(|name| name.len().abs_diff(word.len()) <= limit)
        .map(|name| (distance(word, name), name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Edits from one word to the other: insertions, deletions, replacements and swaps of neighbours.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, &a) in left.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, &b) in right.iter().enumerate() {
            let replaced = row[j] + usize::from(a != b);
            let mut best = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a == right[j - 1] && b == left[i - 1] {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[right.len()]
}
