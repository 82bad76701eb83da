//! The file that says what to sweep, and the manifest in which an axis's value stands for its name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_measure::sweep::{Expression, Space};
use assay_record::Configuration;
use serde::Deserialize;

use crate::failure::Failure;

/// The newest schema that is read.
const SCHEMA: u32 = 1;
/// A file larger than this is no sweep and no manifest.
const MOST_BYTES: u64 = 1 << 24;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: u32,
    manifest: PathBuf,
    kernel: String,
    #[serde(default)]
    dims: BTreeMap<String, i64>,
    axes: BTreeMap<String, Vec<i64>>,
    #[serde(default)]
    constraints: Vec<String>,
}

/// What to sweep.
pub(super) struct SweepFile {
    /// The manifest with `${...}` in it.
    pub(super) manifest: PathBuf,
    /// Its text.
    pub(super) template: String,
    /// The kernel.
    pub(super) kernel: String,
    /// The sizes to time it at; the largest served where left out.
    pub(super) dims: BTreeMap<String, i64>,
    /// The configurations.
    pub(super) space: Space,
    /// The file's own text.
    pub(super) text: String,
}

impl SweepFile {
    pub(super) fn read(path: &Path) -> Result<SweepFile, Failure> {
        let text = text_of(path)?;
        let hint = "docs/measuring.md shows a whole file of a sweep";
        let wrong = |what: String| {
            Failure::request(format!("{}: {what}", path.display())).hint(hint.to_owned())
        };
        let written: Written = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if written.schema == 0 || written.schema > SCHEMA {
            return Err(wrong(format!("schema {} is not known here", written.schema)));
        }
        if written.axes.is_empty() {
            return Err(wrong("there are no axes".to_owned()));
        }
        let constraints = written.constraints.iter().map(|text| Expression::parse(text));
        let constraints =
            constraints.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let manifest = folder.join(&written.manifest);
        let template = text_of(&manifest)?;
        Ok(SweepFile {
            manifest,
            template,
            kernel: written.kernel,
            dims: written.dims,
            space: Space { axes: written.axes, constraints },
            text,
        })
    }
}

impl SweepFile {
    /// Axes that no expression of the manifest names: their values cannot make a difference.
    pub(super) fn unused(&self) -> impl Iterator<Item = &str> {
        let parts = self.template.split("${").skip(1);
        let inside: Vec<&str> = parts.filter_map(|part| part.split('}').next()).collect();
        let named = move |axis: &str| inside.iter().any(|text| text.contains(axis));
        self.space.axes.keys().map(String::as_str).filter(move |axis| !named(axis))
    }
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let unread = || Failure::request(format!("cannot read {}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| unread().caused_by(&error))?.len();
    if size > MOST_BYTES {
        return Err(unread().hint(format!("it has over {MOST_BYTES} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| unread().caused_by(&error))
}

/// A text with every `${expression}` replaced by its value at a configuration.
pub(super) fn filled(template: &str, configuration: &Configuration) -> Result<String, String> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, behind) = after.split_once('}').ok_or("a `${` has no `}`")?;
        let value = Expression::parse(inside).and_then(|inside| inside.value(configuration));
        text.push_str(before);
        text.push_str(&value.map_err(|error| error.to_string())?.to_string());
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_in_a_template_are_replaced_by_their_values() {
        let configuration = [("block".to_owned(), 128)].into();
        let filled = |text: &str| filled(text, &configuration);
        let text = "block = [${block}] symbol = \"sum_${block / 32}\" ${ block*2 }";
        assert_eq!(filled(text), Ok("block = [128] symbol = \"sum_4\" 256".to_owned()));
        assert_eq!(filled("no dollars"), Ok("no dollars".to_owned()));
        assert!(
            filled("${block").is_err() && filled("${other}").is_err() && filled("${}").is_err()
        );
    }
}
