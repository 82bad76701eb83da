//! Reads TOML tables key by key: every unknown key and every value of the wrong kind is an error
//! with its place.

use std::ops::Range;

use assay_num::Format;
use assay_reference::Extent;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ManifestError, Source, nearest_hint};
use super::formula::place;
use crate::spec::SourcePlace;

/// A value with the way to it (`dims.rows.served`), for messages.
#[derive(Clone)]
pub(super) struct Entry<'t> {
    pub(super) source: &'t Source<'t>,
    pub(super) path: String,
    pub(super) span: Range<usize>,
    value: &'t DeValue<'t>,
}

impl<'t> Entry<'t> {
    pub(super) fn new(
        source: &'t Source<'t>,
        path: impl Into<String>,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Entry<'t> {
        Entry { source, path: path.into(), span: value.span(), value: value.get_ref() }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ManifestError {
        self.source.error(&self.span, message)
    }

    pub(super) fn place(&self) -> SourcePlace {
        self.source.place(self.span.start)
    }

    fn wrong(&self, wanted: &str) -> ManifestError {
        let found = self.value.type_str();
        self.error(format!("`{}` must be {wanted}, found {} {found}", self.path, article(found)))
    }

    pub(super) fn text(&self) -> Result<&'t str, ManifestError> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    pub(super) fn flag(&self) -> Result<bool, ManifestError> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub(super) fn is_text(&self) -> bool {
        self.value.is_str()
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub(super) fn integer(&self) -> Result<i64, ManifestError> {
        let integer = self.value.as_integer().ok_or_else(|| self.wrong("a whole number"))?;
        i64::from_str_radix(integer.as_str(), integer.radix())
            .map_err(|_| self.error(format!("`{}` does not fit 64 bits", self.path)))
    }

    pub(super) fn number(&self) -> Result<f64, ManifestError> {
        if self.value.is_integer() {
            return self.integer().map(|value| value as f64);
        }
        let float = self.value.as_float().ok_or_else(|| self.wrong("a number"))?;
        float.as_str().parse().map_err(|_| self.wrong("a number"))
    }

    pub(super) fn list(&self) -> Result<Vec<Entry<'t>>, ManifestError> {
        let array = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let entry = |(at, value)| Entry::new(self.source, format!("{}[{at}]", self.path), value);
        Ok(array.iter().enumerate().map(entry).collect())
    }

    /// Opens a table whose keys must be among `known`.
    pub(super) fn table(&self, known: &[&str]) -> Result<Table<'t>, ManifestError> {
        let table = self.any_table()?;
        table.refuse_unknown(known)?;
        Ok(table)
    }

    /// Opens a table whose keys are names.
    pub(super) fn any_table(&self) -> Result<Table<'t>, ManifestError> {
        let entries = self.value.as_table().ok_or_else(|| self.wrong("a table"))?;
        Ok(Table { entry: self.clone(), entries })
    }

    /// An integer expression of dims: a string or a plain number.
    pub(super) fn extent(&self) -> Result<Extent, ManifestError> {
        if !self.is_text() {
            let value = self.integer().map_err(|_| self.wrong("an expression of dims"))?;
            return Ok(Extent::constant(value));
        }
        Extent::parse(self.text()?).map_err(|error| place(self, error))
    }

    pub(super) fn format(&self) -> Result<Format, ManifestError> {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let at = self.choice("number format", &names)?;
        Ok(Format::ALL[at])
    }

    /// The position in `words` of the string that stands here.
    pub(super) fn choice(&self, what: &str, words: &[&str]) -> Result<usize, ManifestError> {
        let text = self.text()?;
        words.iter().position(|word| *word == text).ok_or_else(|| {
            self.error(format!("unknown {what} `{text}`")).maybe_hint(nearest_hint(text, words))
        })
    }

    /// A name: lower-case letters, digits and underscores.
    pub(super) fn name(&self) -> Result<&'t str, ManifestError> {
        let text = self.text()?;
        check_name(text).map_err(|why| self.error(why))?;
        Ok(text)
    }
}

/// A table that is being read.
pub(super) struct Table<'t> {
    pub(super) entry: Entry<'t>,
    entries: &'t DeTable<'t>,
}

impl<'t> Table<'t> {
    pub(super) fn root(source: &'t Source<'t>, table: &'t Spanned<DeTable<'t>>) -> Table<'t> {
        // The document's own table is no value, so it gets an empty one to stand for it.
        static NOTHING: DeValue<'static> = DeValue::Boolean(false);
        let entry = Entry { source, path: String::new(), span: table.span(), value: &NOTHING };
        Table { entry, entries: table.get_ref() }
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry<'t>> {
        let (_, value) = self.entries.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(Entry::new(self.entry.source, self.path_of(key), value))
    }

    pub(super) fn need(&self, key: &str) -> Result<Entry<'t>, ManifestError> {
        let missing = || self.entry.error(format!("`{}` is missing", self.path_of(key)));
        self.get(key).ok_or_else(missing)
    }

    /// Names and values in the order written; the entry's span is the key's.
    pub(super) fn named(&self) -> Vec<(&'t str, Range<usize>, Entry<'t>)> {
        let mut rows: Vec<_> = self
            .entries
            .iter()
            .map(|(key, value)| {
                let name = key.get_ref().as_ref();
                (name, key.span(), Entry::new(self.entry.source, self.path_of(name), value))
            })
            .collect();
        rows.sort_by_key(|(_, span, _)| span.start);
        rows
    }

    pub(super) fn refuse_unknown(&self, known: &[&str]) -> Result<(), ManifestError> {
        for (name, span, _) in self.named() {
            if !known.contains(&name) {
                let error = self.entry.source.error(&span, format!("unknown key `{name}`"));
                return Err(error.maybe_hint(nearest_hint(name, known)));
            }
        }
        Ok(())
    }

    fn path_of(&self, key: &str) -> String {
        if self.entry.path.is_empty() {
            return key.to_owned();
        }
        format!("{}.{key}", self.entry.path)
    }
}

/// Says why `name` cannot be a kernel's, tensor's or dim's name.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(legal) {
        return Err(format!(
            "`{name}` is no name: names are lower-case letters, digits and underscores"
        ));
    }
    Ok(())
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
