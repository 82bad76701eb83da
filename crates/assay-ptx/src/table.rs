//! The opcode table, read once from `rows.txt`: what each base allows.

use std::sync::OnceLock;

use crate::base::Base;
use crate::modifier::{Modifier, Modifiers};
use crate::types::{Shape, StateSpace, Type};

/// The text of the table; its head explains the columns.
const TEXT: &str = include_str!("rows.txt");

/// A set of types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TypeSet(u128);

const _: () = assert!(Type::ALL.len() <= 128, "a type needs a bit of its own");

impl TypeSet {
    pub(crate) fn has(self, ty: Type) -> bool {
        self.0 >> (ty as u32) & 1 == 1
    }

    fn insert(&mut self, ty: Type) {
        self.0 |= 1 << (ty as u32);
    }
}

/// One position of a state space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SpaceSlot {
    pub(crate) allowed: Vec<StateSpace>,
    pub(crate) optional: bool,
}

/// Modifiers of which at most one, or exactly one, is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    pub(crate) modifiers: Modifiers,
    pub(crate) required: bool,
}

/// A matrix shape that a row allows; `n` of `None` is any multiple of 8 from 8 to 256.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ShapeRule {
    m: u16,
    n: Option<u16>,
    k: u16,
}

impl ShapeRule {
    pub(crate) fn allows(self, shape: Shape) -> bool {
        let columns = match self.n {
            Some(n) => shape.n == n,
            None => shape.n.is_multiple_of(8) && (8..=256).contains(&shape.n),
        };
        self.m == shape.m && self.k == shape.k && columns
    }

    /// A shape that the rule allows.
    pub(crate) fn example(self) -> Shape {
        Shape { m: self.m, n: self.n.unwrap_or(8), k: self.k }
    }

    fn read(word: &str) -> Option<ShapeRule> {
        if let Some((m, k)) = word.split_once("n*k") {
            let m = m.strip_prefix('m')?.parse().ok()?;
            return Some(ShapeRule { m, n: None, k: k.parse().ok()? });
        }
        let shape = Shape::from_name(word)?;
        Some(ShapeRule { m: shape.m, n: Some(shape.n), k: shape.k })
    }
}

/// What an operand slot is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    /// The type at an index of the opcode's types.
    Nth(u8),
    /// Twice as wide as type 0.
    Wide,
    /// A fixed type.
    Fixed(Type),
    /// An address in a register, 32 or 64 bits, or a symbol.
    AddressValue,
    /// `[ ]`.
    Address,
    /// `[map, {coordinates}]`.
    Tensor,
    /// An integer constant.
    Constant,
    /// A vector whose parts fill type 0.
    Pack,
    /// A matrix fragment: `A`, `B`, `C`, `D`, or `L` for what `wmma.load` and `wmma.store` move.
    Fragment(u8),
    Label,
    Targets,
    Call,
}

/// How many values a slot takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Many {
    /// One.
    One,
    /// As many as the vector width says; one when it is 1.
    Width,
    /// A vector of exactly so many.
    Exactly(u8),
    /// A vector of as many as `.x1 .x2 .x4` says, times this.
    Count(u8),
    /// A vector of any length.
    Any,
}

/// One operand of a row.
#[expect(clippy::struct_excessive_bools, reason = "each is one mark of the operand language")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub(crate) shown: Shown,
    pub(crate) many: Many,
    pub(crate) destination: bool,
    pub(crate) wider: bool,
    pub(crate) pair: bool,
    /// The pair cannot be left out.
    pub(crate) only_pair: bool,
    pub(crate) symbol: bool,
    pub(crate) special: bool,
    /// The slot exists only with this modifier.
    pub(crate) only_with: Option<Modifier>,
}

impl Slot {
    /// A plain source of a type.
    pub(crate) fn source(ty: Type) -> Slot {
        Slot {
            shown: Shown::Fixed(ty),
            many: Many::One,
            destination: false,
            wider: false,
            pair: false,
            only_pair: false,
            symbol: false,
            special: false,
            only_with: None,
        }
    }
}

/// One row: a base with one kind of types.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) base: Base,
    pub(crate) types: Vec<TypeSet>,
    pub(crate) spaces: Vec<SpaceSlot>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) allowed: Modifiers,
    /// Vector widths allowed beside 1.
    pub(crate) widths: Vec<u8>,
    pub(crate) shapes: Vec<ShapeRule>,
    pub(crate) layouts: usize,
    pub(crate) forms: Vec<Vec<Slot>>,
    /// The row as written, for messages.
    pub(crate) text: &'static str,
}

impl Row {
    /// Whether the first operand is a destination.
    pub(crate) fn writes(&self) -> bool {
        self.forms.iter().any(|form| form.first().is_some_and(|slot| slot.destination))
    }
}

/// The whole table, sorted by base.
pub(crate) struct Table {
    rows: Vec<Row>,
    /// The range of rows of each base.
    ranges: Vec<(usize, usize)>,
}

impl Table {
    /// The rows of a base.
    pub(crate) fn rows(&self, base: Base) -> &[Row] {
        let (start, end) = self.ranges.get(base.index()).copied().unwrap_or((0, 0));
        self.rows.get(start..end).unwrap_or(&[])
    }
}

/// The table. Lines that do not read are left out; a test proves that there are none.
pub(crate) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut rows: Vec<Row> = read(TEXT).into_iter().filter_map(Result::ok).collect();
        rows.sort_by_key(|row| row.base);
        let mut ranges = vec![(0, 0); Base::ALL.len()];
        for (index, row) in rows.iter().enumerate() {
            let range = &mut ranges[row.base.index()];
            if range.1 == 0 {
                range.0 = index;
            }
            range.1 = index + 1;
        }
        Table { rows, ranges }
    })
}

type Definitions = Vec<(&'static str, String)>;

fn read(text: &'static str) -> Vec<Result<Row, String>> {
    let mut definitions = Definitions::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.strip_prefix('$').and_then(|rest| rest.split_once(" = ")) {
            Some((name, value)) => definitions.push((name, expand(value, &definitions))),
            None => rows.push(read_row(line, &definitions)),
        }
    }
    rows
}

/// Replaces `$name` alternatives by what they stand for.
fn expand(word: &str, definitions: &Definitions) -> String {
    let parts = word.split('|').map(|part| {
        let (bang, name) = match part.strip_prefix('!') {
            Some(rest) => ("!", rest),
            None => ("", part),
        };
        let Some(name) = name.strip_prefix('$') else { return part.to_string() };
        let (name, mark) = match name.strip_suffix('?') {
            Some(rest) => (rest, "?"),
            None => (name, ""),
        };
        match definitions.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => format!("{bang}{value}{mark}"),
            None => part.to_string(),
        }
    });
    parts.collect::<Vec<_>>().join("|")
}

fn read_row(line: &'static str, definitions: &Definitions) -> Result<Row, String> {
    let fail = |what: &str| Err(format!("{what} in: {line}"));
    let columns: Vec<&str> = line.split(';').map(str::trim).collect();
    let [name, types, spaces, modifiers, operands] = columns[..] else {
        return fail("not five columns");
    };
    let Some(base) = Base::from_name(name) else { return fail("unknown base") };
    let mut row = Row {
        base,
        types: Vec::new(),
        spaces: Vec::new(),
        choices: Vec::new(),
        allowed: Modifiers::new(),
        widths: Vec::new(),
        shapes: Vec::new(),
        layouts: 0,
        forms: Vec::new(),
        text: line,
    };
    for word in types.split_whitespace() {
        let Some(set) = read_types(&expand(word, definitions)) else { return fail(word) };
        row.types.push(set);
    }
    for word in spaces.split_whitespace() {
        let Some(slot) = read_space(&expand(word, definitions)) else { return fail(word) };
        row.spaces.push(slot);
    }
    for word in modifiers.split_whitespace() {
        if read_modifier(&expand(word, definitions), &mut row).is_none() {
            return fail(word);
        }
    }
    for form in operands.split(" / ") {
        let slots: Option<Vec<Slot>> = form.split_whitespace().map(read_slot).collect();
        let Some(slots) = slots else { return fail(form) };
        row.forms.push(slots);
    }
    Ok(row)
}

fn read_types(word: &str) -> Option<TypeSet> {
    let mut set = TypeSet::default();
    for name in word.split('|') {
        set.insert(Type::from_name(name)?);
    }
    Some(set)
}

fn read_space(word: &str) -> Option<SpaceSlot> {
    let (word, optional) = match word.strip_suffix('?') {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    let allowed: Option<Vec<_>> = word.split('|').map(StateSpace::from_name).collect();
    Some(SpaceSlot { allowed: allowed?, optional })
}

fn read_modifier(word: &str, row: &mut Row) -> Option<()> {
    let (word, required) = match word.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    if let Some(count) = word.strip_prefix("layouts:") {
        row.layouts = count.parse().ok()?;
        return Some(());
    }
    let mut modifiers = Modifiers::new();
    for name in word.split('|') {
        if let Some(modifier) = Modifier::from_name(name) {
            modifiers.insert(modifier);
            row.allowed.insert(modifier);
        } else if let Some(width) = name.strip_prefix('v') {
            row.widths.push(width.parse().ok()?);
        } else {
            row.shapes.push(ShapeRule::read(name)?);
        }
    }
    if !modifiers.is_empty() {
        row.choices.push(Choice { modifiers, required });
    }
    Some(())
}

fn read_slot(word: &str) -> Option<Slot> {
    let mut slot = Slot::source(Type::B32);
    slot.destination = word.starts_with('=');
    let mut rest = word.strip_prefix('=').unwrap_or(word);
    if let Some((shown, modifier)) = conditional(rest) {
        slot.shown = shown;
        slot.only_with = Some(modifier);
        return Some(slot);
    }
    if let Some((name, mark)) = rest.split_once('|') {
        slot.pair = true;
        slot.only_pair = mark == "P";
        rest = name;
    }
    if let Some((name, count)) = rest.split_once('{') {
        slot.many = read_many(count.strip_suffix('}')?)?;
        rest = name;
    }
    while let Some(last) = rest.chars().last().filter(|c| "~*@%".contains(*c)) {
        match last {
            '~' => slot.wider = true,
            '*' => slot.many = Many::Width,
            '@' => (slot.symbol, slot.special) = (true, true),
            _ => slot.special = true,
        }
        rest = &rest[..rest.len() - 1];
    }
    slot.shown = read_shown(rest)?;
    Some(slot)
}

fn conditional(word: &str) -> Option<(Shown, Modifier)> {
    match word {
        "hint" => Some((Shown::Fixed(Type::B64), Modifier::L2CacheHint)),
        "mcast" => Some((Shown::Fixed(Type::B16), Modifier::MulticastCluster)),
        "cpmask" => Some((Shown::Fixed(Type::B16), Modifier::CpMask)),
        _ => None,
    }
}

fn read_many(count: &str) -> Option<Many> {
    match count {
        "" => Some(Many::Any),
        "x" => Some(Many::Count(1)),
        "2x" => Some(Many::Count(2)),
        digits => digits.parse().ok().map(Many::Exactly),
    }
}

fn read_shown(word: &str) -> Option<Shown> {
    Some(match word {
        "w" => Shown::Wide,
        "addr" => Shown::AddressValue,
        "[]" => Shown::Address,
        "[t]" => Shown::Tensor,
        "#" => Shown::Constant,
        "pack" => Shown::Pack,
        "A" | "B" | "C" | "D" | "L" => Shown::Fragment(word.as_bytes()[0]),
        "label" => Shown::Label,
        "targets" => Shown::Targets,
        "call" => Shown::Call,
        _ => match word.parse::<u8>() {
            Ok(index) => Shown::Nth(index),
            Err(_) => Shown::Fixed(Type::from_name(word)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{Base, TEXT, read, table};

    #[test]
    fn every_line_of_the_table_reads() {
        let problems: Vec<String> = read(TEXT).into_iter().filter_map(Result::err).collect();
        assert!(problems.is_empty(), "{problems:#?}");
    }

    #[test]
    fn a_broken_line_is_noticed() {
        let broken = "add ; s32 ; ; nonsense ; =0 0 0\nadd ; s32 ; ; ; =0 zero 0\nadd ; s32";
        assert!(read(broken).iter().all(Result::is_err));
    }

    #[test]
    fn every_base_has_a_row() {
        for &base in Base::ALL {
            assert!(!table().rows(base).is_empty(), "{} has no row", base.name());
        }
    }

    #[test]
    fn type_indices_stay_inside_the_types_of_their_row() {
        for row in Base::ALL.iter().flat_map(|&base| table().rows(base)) {
            for slot in row.forms.iter().flatten() {
                if let super::Shown::Nth(index) = slot.shown {
                    assert!(usize::from(index) < row.types.len(), "{}", row.text);
                }
            }
        }
    }
}
