//! What all stored records have in common: JSON, indented, with a `schema` key that tells the
//! version of their layout.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Why a text is no record of a kind; each kind has its own words for it.
pub(crate) enum Unread {
    /// A later version wrote it, with this schema.
    Newer(u64),
    /// It has no schema that was ever written.
    NoSchema,
    /// It is not JSON, or a key is missing or of the wrong kind.
    Malformed(serde_json::Error),
}

/// The record as JSON, ending in a line break.
pub(crate) fn to_json(record: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(record).map(|json| json + "\n")
}

/// Reads a record of a schema up to `known`. Unknown keys are ignored.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str, known: u32) -> Result<T, Unread> {
    let value: Value = serde_json::from_str(text).map_err(Unread::Malformed)?;
    match value.get("schema").and_then(Value::as_u64) {
        None | Some(0) => Err(Unread::NoSchema),
        Some(found) if found > u64::from(known) => Err(Unread::Newer(found)),
        Some(_) => serde_json::from_value(value).map_err(Unread::Malformed),
    }
}
