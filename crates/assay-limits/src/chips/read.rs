//! Reads files of chips. An error names the file, the table and the key.

use std::collections::BTreeMap;

use toml::{Table, Value as Toml};

use super::{Chip, Chips, CudaChip, HipChip, MetalChip, Sourced};

/// What is wrong with a file of chips.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChipError {
    /// Not TOML.
    #[error("{file}: {message}")]
    Syntax {
        /// The file's name.
        file: String,
        /// What the TOML reader says, with line and column.
        message: String,
    },
    /// A key of a table is missing, unknown or wrong.
    #[error("{file}:{} `{key}` {wrong}", in_table(table))]
    Key {
        /// The file's name.
        file: String,
        /// The table: `cuda.sm_90`; empty for the file's own keys.
        table: String,
        /// The key in it.
        key: String,
        /// What is wrong with it.
        wrong: String,
    },
    /// Two files have a chip of one name.
    #[error("the chip `{chip}` is there already: give yours another name")]
    Twice {
        /// The name.
        chip: String,
    },
}

fn in_table(table: &str) -> String {
    if table.is_empty() { String::new() } else { format!(" [{table}]") }
}

/// Reads a whole file.
pub(super) fn chips(text: &str, file: &str) -> Result<Chips, ChipError> {
    let syntax = |error: toml::de::Error| ChipError::Syntax {
        file: file.to_owned(),
        message: error.to_string().trim_end().to_owned(),
    };
    let mut document: Table = text.parse().map_err(syntax)?;
    let sources = sources(document.remove("source"), file)?;
    let mut chips = Vec::new();
    for (vendor, tables) in &document {
        let wrong = "is no table of chips: write [cuda.NAME], [hip.NAME], [metal.NAME] or \
                     [source.NAME]";
        let error = || key_error(file, "", vendor, wrong);
        if !["cuda", "hip", "metal"].contains(&vendor.as_str()) {
            return Err(error());
        }
        for (name, table) in tables.as_table().ok_or_else(error)? {
            let place = format!("{vendor}.{name}");
            let table = table.as_table().ok_or_else(|| {
                key_error(file, vendor, name, "must be a table of numbers, one chip")
            })?;
            let mut reader = Reader { file, place, name, table: table.clone(), sources: &sources };
            chips.push(chip(vendor, &mut reader)?);
            reader.finish()?;
        }
    }
    let mut chips = Chips { chips, sources };
    chips.sort();
    Ok(chips)
}

fn chip(vendor: &str, reader: &mut Reader<'_>) -> Result<Chip, ChipError> {
    Ok(match vendor {
        "cuda" => Chip::Cuda(CudaChip::read(reader)?),
        "hip" => Chip::Hip(HipChip::read(reader)?),
        _ => Chip::Metal(MetalChip::read(reader)?),
    })
}

fn sources(table: Option<Toml>, file: &str) -> Result<BTreeMap<String, String>, ChipError> {
    let Some(table) = table else { return Ok(BTreeMap::new()) };
    let wrong = "must be a text that says where the numbers stand";
    let table = table.as_table().ok_or_else(|| key_error(file, "", "source", wrong))?;
    let text = |(name, text): (&String, &Toml)| {
        let text = text.as_str().ok_or_else(|| key_error(file, "source", name, wrong))?;
        Ok((name.clone(), text.to_owned()))
    };
    table.iter().map(text).collect()
}

fn key_error(file: &str, table: &str, key: &str, wrong: &str) -> ChipError {
    ChipError::Key {
        file: file.to_owned(),
        table: table.to_owned(),
        key: key.to_owned(),
        wrong: wrong.to_owned(),
    }
}

/// One chip's table, emptied key by key.
pub(super) struct Reader<'a> {
    file: &'a str,
    place: String,
    name: &'a str,
    table: Table,
    sources: &'a BTreeMap<String, String>,
}

impl Reader<'_> {
    pub(super) fn name(&self) -> &str {
        self.name
    }

    fn error(&self, key: &str, wrong: &str) -> ChipError {
        key_error(self.file, &self.place, key, wrong)
    }

    pub(super) fn text(&mut self, key: &str) -> Result<String, ChipError> {
        match self.table.remove(key) {
            Some(Toml::String(text)) => Ok(text),
            Some(_) => Err(self.error(key, "must be a text")),
            None => Err(self.error(key, "is missing")),
        }
    }

    /// A key's number, source and whether it is unconfirmed; `None` where it is missing.
    fn number<T>(
        &mut self,
        key: &str,
        shape: &str,
        read: impl Fn(&Toml) -> Option<T>,
    ) -> Result<Option<Sourced<T>>, ChipError> {
        let Some(entry) = self.table.remove(key) else { return Ok(None) };
        let form =
            format!("must be {{ value = {shape}, source = \"NAME\" }}, of whole numbers from 1 up");
        let Toml::Table(mut entry) = entry else { return Err(self.error(key, &form)) };
        let value = entry.remove("value").and_then(|value| read(&value));
        let value = value.ok_or_else(|| self.error(key, &form))?;
        let Some(Toml::String(source)) = entry.remove("source") else {
            return Err(self.error(key, &form));
        };
        if !self.sources.contains_key(&source) {
            let wrong = format!("names the source `{source}`, which [source] does not have");
            return Err(self.error(key, &wrong));
        }
        let unconfirmed = match entry.remove("unconfirmed") {
            None => false,
            Some(Toml::Boolean(unconfirmed)) => unconfirmed,
            Some(_) => {
                return Err(self.error(key, "has `unconfirmed`, which must be true or false"));
            }
        };
        if let Some((extra, _)) = entry.iter().next() {
            return Err(self.error(key, &format!("has the unknown key `{extra}`")));
        }
        Ok(Some(Sourced { value, source, unconfirmed }))
    }

    /// Refuses what no key has taken.
    fn finish(&self) -> Result<(), ChipError> {
        match self.table.iter().next() {
            Some((key, _)) => Err(self.error(key, "is no key of a chip")),
            None => Ok(()),
        }
    }
}

/// What a key may hold.
pub(super) trait Value: Sized {
    fn read(reader: &mut Reader<'_>, key: &str) -> Result<Self, ChipError>;

    /// The source's name and whether the number is unconfirmed.
    fn origin(&self) -> Option<(&str, bool)>;
}

/// Whole and at least 1, so that no rule divides by nothing.
fn positive(value: &Toml) -> Option<u64> {
    value.as_integer().and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0)
}

fn list(value: &Toml) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(positive).collect()
}

/// The shape of a sourced value: how errors show it, and how it is read.
trait Shape: Sized {
    const FORM: &'static str;

    fn read(value: &Toml) -> Option<Self>;
}

impl Shape for u64 {
    const FORM: &'static str = "64";

    fn read(value: &Toml) -> Option<u64> {
        positive(value)
    }
}

impl Shape for Vec<u64> {
    const FORM: &'static str = "[8, 16]";

    fn read(value: &Toml) -> Option<Vec<u64>> {
        list(value).filter(|list| !list.is_empty() && list.is_sorted())
    }
}

impl Shape for [u64; 3] {
    const FORM: &'static str = "[1024, 1024, 64]";

    fn read(value: &Toml) -> Option<[u64; 3]> {
        list(value)?.try_into().ok()
    }
}

impl Shape for String {
    const FORM: &'static str = "\"applegpu_g13g\"";

    fn read(value: &Toml) -> Option<String> {
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

impl<T: Shape> Value for Sourced<T> {
    fn read(reader: &mut Reader<'_>, key: &str) -> Result<Sourced<T>, ChipError> {
        let value = reader.number(key, T::FORM, T::read)?;
        value.ok_or_else(|| reader.error(key, "is missing"))
    }

    fn origin(&self) -> Option<(&str, bool)> {
        Some((&self.source, self.unconfirmed))
    }
}

impl<T: Shape> Value for Option<Sourced<T>> {
    fn read(reader: &mut Reader<'_>, key: &str) -> Result<Option<Sourced<T>>, ChipError> {
        reader.number(key, T::FORM, T::read)
    }

    fn origin(&self) -> Option<(&str, bool)> {
        self.as_ref().and_then(Value::origin)
    }
}
