//! Sets as files: JSON with a schema, one record a line, so that a changed register is a changed
//! line. Each file but the oldest stores only what differs from the release before it.

use std::collections::BTreeMap;
use std::fmt;

use assay_image::Release;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::set::{Change, RecordSet, Recorded};
use super::{COMMAND, Records};

/// The schema of the files that this version reads and writes.
const SCHEMA: u32 = 1;

/// What every file says of itself.
#[derive(Serialize, Deserialize)]
struct Header {
    schema: u32,
    vendor: String,
    release: Release,
    /// The release whose set this one completes; none for the oldest.
    before: Option<Release>,
}

/// A whole file.
#[derive(Deserialize)]
struct Body<K> {
    options: Vec<String>,
    sources: BTreeMap<String, Digest>,
    /// Records of the set before that are not in this one.
    #[serde(default)]
    absent: Vec<Absent>,
    records: Vec<Line<K>>,
}

#[derive(Serialize, Deserialize)]
struct Absent {
    module: String,
    chip: String,
    name: String,
}

#[derive(Serialize, Deserialize)]
struct Line<K> {
    module: String,
    chip: String,
    #[serde(flatten)]
    kernel: K,
}

/// Files that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("records {file}: {problem}")]
pub struct RecordsError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a file of records.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is no JSON of this shape; the error carries line and column.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Another version of Assay wrote it.
    #[error("schema {0}, where this version reads {SCHEMA}: `{COMMAND}` writes it anew")]
    Schema(u32),
    /// No such vendor.
    #[error("vendor `{0}` is neither `cuda` nor `hip`")]
    Vendor(String),
    /// Two files of one release.
    #[error("{0} has a set already")]
    ReleaseTwice(Release),
    /// One kernel twice.
    #[error("{module}/{symbol} on {chip} is recorded twice")]
    RecordTwice {
        /// The module.
        module: String,
        /// The symbol.
        symbol: String,
        /// The chip.
        chip: String,
    },
    /// It completes a set that is not there.
    #[error(
        "it stores what differs from {}, and the set before it is {}: get the missing file back, \
         or run `{COMMAND}`",
        Named(*.wants),
        Named(*.has)
    )]
    Before {
        /// What it says that it completes.
        wants: Option<Release>,
        /// What there is.
        has: Option<Release>,
    },
    /// A kernel is left out that the set before does not hold.
    #[error("{module}/{symbol} on {chip} is left out, and the set before does not hold it")]
    NotThere {
        /// The module.
        module: String,
        /// The symbol.
        symbol: String,
        /// The chip.
        chip: String,
    },
}

/// A release in a sentence.
struct Named(Option<Release>);

impl fmt::Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(release) => release.fmt(formatter),
            None => formatter.write_str("nothing"),
        }
    }
}

/// A file that is parsed as far as its header.
struct Opened<'a> {
    name: &'a str,
    text: &'a str,
    header: Header,
}

/// The name of a set's file: `cuda-13.0.88.json`.
pub struct FileName<'a, K>(pub &'a RecordSet<K>);

impl<K: Recorded> fmt::Display for FileName<'_, K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}.json", K::VENDOR, self.0.release)
    }
}

pub(super) fn read<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Records, RecordsError> {
    let (mut cuda, mut hip) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let wrong = |problem| RecordsError { file: name.to_owned(), problem };
        let header: Header = serde_json::from_str(text).map_err(|error| wrong(error.into()))?;
        if header.schema != SCHEMA {
            return Err(wrong(Problem::Schema(header.schema)));
        }
        match header.vendor.as_str() {
            "cuda" => cuda.push(Opened { name, text, header }),
            "hip" => hip.push(Opened { name, text, header }),
            _ => return Err(wrong(Problem::Vendor(header.vendor))),
        }
    }
    Ok(Records { cuda: complete(cuda)?, hip: complete(hip)? })
}

/// Completes each set by the one before it.
fn complete<K: Recorded>(mut files: Vec<Opened<'_>>) -> Result<Vec<RecordSet<K>>, RecordsError> {
    files.sort_by_key(|file| file.header.release);
    let mut sets: Vec<RecordSet<K>> = Vec::new();
    for file in files {
        let set = complete_one(&file, sets.last())
            .map_err(|problem| RecordsError { file: file.name.to_owned(), problem })?;
        sets.push(set);
    }
    Ok(sets)
}

fn complete_one<K: Recorded>(
    file: &Opened<'_>,
    before: Option<&RecordSet<K>>,
) -> Result<RecordSet<K>, Problem> {
    let (wants, has) = (file.header.before, before.map(|set| set.release));
    if has == Some(file.header.release) {
        return Err(Problem::ReleaseTwice(file.header.release));
    }
    if wants != has {
        return Err(Problem::Before { wants, has });
    }
    let body: Body<K> = serde_json::from_str(file.text)?;
    // What the file itself holds, so that a record given twice is found.
    let mut own = RecordSet::new(file.header.release, body.options);
    own.sources = body.sources;
    for Line { module, chip, kernel } in body.records {
        if let Some(twice) = own.insert(&module, &chip, kernel) {
            return Err(Problem::RecordTwice { module, symbol: twice.symbol().to_owned(), chip });
        }
    }
    let Some(before) = before else { return Ok(own) };
    let mut whole = before.clone();
    (whole.release, whole.options) = (own.release, own.options.clone());
    whole.sources = own.sources.clone();
    for Absent { module, chip, name } in body.absent {
        if whole.remove(&module, &name, &chip).is_none() {
            return Err(Problem::NotThere { module, symbol: name, chip });
        }
    }
    for (module, chip, kernel) in own.iter() {
        whole.insert(module, chip, kernel.clone());
    }
    Ok(whole)
}

pub(super) fn write<K: Recorded>(sets: &[RecordSet<K>]) -> Vec<(String, String)> {
    let befores = std::iter::once(None).chain(sets.iter().map(Some));
    sets.iter()
        .zip(befores)
        .map(|(set, before)| (FileName(set).to_string(), write_one(set, before)))
        .collect()
}

fn write_one<K: Recorded>(set: &RecordSet<K>, before: Option<&RecordSet<K>>) -> String {
    let header = [
        format!("\"schema\":{SCHEMA}"),
        format!("\"vendor\":{}", json(&K::VENDOR)),
        format!("\"release\":{}", json(&set.release)),
        format!("\"before\":{}", json(&before.map(|set| set.release))),
        format!("\"options\":{}", json(&set.options)),
    ];
    let sources: Vec<String> = set
        .sources
        .iter()
        .map(|(module, digest)| format!("{}:{}", json(module), json(digest)))
        .collect();
    let mut absent = Vec::new();
    let mut records = Vec::new();
    let nothing = RecordSet::new(set.release, Vec::new());
    for difference in before.unwrap_or(&nothing).differences(set, |_, _| true) {
        let (module, chip, name) = (difference.module, difference.chip, difference.symbol);
        match set.get(&module, &name, &chip).filter(|_| difference.change != Change::Gone) {
            None => absent.push(json(&Absent { module, chip, name })),
            Some(kernel) => records.push(line(&module, &chip, kernel)),
        }
    }
    format!(
        "{{{},\n\"sources\":{{{}}},\n\"absent\":[{}],\n\"records\":[{}]}}\n",
        header.join(",\n"),
        lines(&sources),
        lines(&absent),
        lines(&records)
    )
}

impl<K: Recorded> RecordSet<K> {
    /// Every record as a line of a file: a JSON object.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.iter().map(|(module, chip, kernel)| line(module, chip, kernel))
    }
}

fn line<K: Recorded>(module: &str, chip: &str, kernel: &K) -> String {
    let (module, chip) = (module.to_owned(), chip.to_owned());
    json(&Line { module, chip, kernel: kernel.clone() })
}

/// Each on a line of its own.
fn lines(items: &[String]) -> String {
    if items.is_empty() { String::new() } else { format!("\n{}\n", items.join(",\n")) }
}

/// Plain data of strings and numbers, which has no value that JSON lacks.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
