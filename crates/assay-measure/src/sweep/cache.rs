//! What earlier searches found, as one line of JSON a fact, so that a search that was ended in the
//! middle goes on where it was.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use assay_record::Configuration;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Gate;

/// A cache larger than this is not read.
const MOST_BYTES: u64 = 1 << 28;

/// Why a cache cannot be used.
#[derive(Debug, Error)]
#[error("the cache {path} cannot be used")]
pub struct CacheError {
    /// The file.
    pub path: String,
    /// Why.
    #[source]
    pub cause: io::Error,
}

/// What is known of a configuration.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Known {
    /// What its gate said.
    pub gate: Option<Gate>,
    /// The samples of its rounds, in nanoseconds.
    pub duration_ns: Vec<f64>,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    configuration: Configuration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gate: Option<Word>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    duration_ns: Vec<f64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Right,
    Wrong,
    Refused,
}

/// Facts of one key: of one source on one device with one driver.
#[derive(Debug, Default)]
pub struct Cache {
    key: String,
    known: BTreeMap<Configuration, Known>,
    file: Option<(PathBuf, File)>,
    ignored: u64,
}

/// The key of a source on a device with a driver: rows of another key are of no use. It is FNV-1a
/// over all three.
pub fn key(source: &str, device: &str, driver: &str) -> String {
    let parts = [source, device, driver];
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{hash:016x}")
}

impl Cache {
    /// A cache that lasts as long as it is held.
    pub fn none() -> Cache {
        Cache::default()
    }

    /// The facts of a key in a file, which is made if it is not there. Lines that do not read, such
    /// as a last one cut short, are counted and left out.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn open(path: &Path, key: &str) -> Result<Cache, CacheError> {
        let failed = |cause| CacheError { path: path.display().to_string(), cause };
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        let mut text = String::new();
        (&file).take(MOST_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(failed(io::Error::other(format!("it has over {MOST_BYTES} bytes"))));
        }
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        let file = Some((path.to_owned(), file));
        let mut cache = Cache { key: key.to_owned(), file, ..Cache::default() };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Line>(line) {
                Ok(line) if line.key == key => cache.take(line),
                Ok(_) => {}
                Err(_) => cache.ignored += 1,
            }
        }
        Ok(cache)
    }

    /// What is known of a configuration.
    pub fn known(&self, configuration: &Configuration) -> Option<&Known> {
        self.known.get(configuration)
    }

    /// Configurations of which something is known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Lines that did not read.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Keeps what a gate said.
    pub(super) fn gated(&mut self, of: &Configuration, gate: &Gate) -> Result<(), String> {
        let (word, reason) = match gate {
            Gate::Right => (Word::Right, ""),
            Gate::Wrong(why) => (Word::Wrong, why.as_str()),
            Gate::Refused(why) => (Word::Refused, why.as_str()),
        };
        self.keep(Line {
            key: self.key.clone(),
            configuration: of.clone(),
            gate: Some(word),
            reason: reason.to_owned(),
            duration_ns: Vec::new(),
        })
    }

    /// Keeps samples.
    pub(super) fn timed(&mut self, of: &Configuration, samples: &[f64]) -> Result<(), String> {
        self.keep(Line {
            key: self.key.clone(),
            configuration: of.clone(),
            gate: None,
            reason: String::new(),
            duration_ns: samples.to_vec(),
        })
    }

    fn keep(&mut self, line: Line) -> Result<(), String> {
        if let Some((path, file)) = &mut self.file {
            let text = serde_json::to_string(&line).map_err(|error| error.to_string())? + "\n";
            let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
            written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        self.take(line);
        Ok(())
    }

    fn take(&mut self, line: Line) {
        let known = self.known.entry(line.configuration).or_default();
        match line.gate {
            Some(Word::Right) => known.gate = Some(Gate::Right),
            Some(Word::Wrong) => known.gate = Some(Gate::Wrong(line.reason)),
            Some(Word::Refused) => known.gate = Some(Gate::Refused(line.reason)),
            None => {}
        }
        let usable = line.duration_ns.into_iter().filter(|ns| ns.is_finite() && *ns >= 0.0);
        known.duration_ns.extend(usable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(block: i64) -> Configuration {
        [("block".to_owned(), block)].into()
    }

    #[test]
    fn a_file_gives_back_what_was_kept_under_its_key_and_survives_a_torn_line() {
        let path = std::env::temp_dir().join(format!("assay-cache-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let ours = key("source", "device", "driver");
        let mut cache = Cache::open(&path, &ours).expect("a cache");
        cache.gated(&configuration(64), &Gate::Wrong("no".into())).expect("written");
        cache.gated(&configuration(128), &Gate::Right).expect("written");
        cache.timed(&configuration(128), &[1.5, 2.5]).expect("written");
        drop(cache);
        let torn = std::fs::read_to_string(&path).expect("a file") + "{\"key\": \"x\", \"conf";
        std::fs::write(&path, torn).expect("written");
        let mut cache = Cache::open(&path, &ours).expect("a cache");
        assert_eq!((cache.len(), cache.ignored()), (2, 1));
        let known = cache.known(&configuration(128)).expect("a fact");
        assert_eq!(
            (known.gate.clone(), known.duration_ns.clone()),
            (Some(Gate::Right), vec![1.5, 2.5])
        );
        cache.timed(&configuration(128), &[3.5]).expect("written");
        let again = Cache::open(&path, &ours).expect("a cache");
        assert_eq!(again.known(&configuration(128)).map(|known| known.duration_ns.len()), Some(3));
        let other = Cache::open(&path, &key("source", "device", "another driver"));
        assert!(other.expect("a cache").is_empty());
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_key_tells_sources_devices_and_drivers_apart() {
        let all = [key("a", "b", "c"), key("ab", "", "c"), key("a", "bc", ""), key("a", "b", "d")];
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
