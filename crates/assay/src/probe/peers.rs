//! What other libraries get of the same device in the same call: a script in a Python of its own
//! measures, and what it says is believed no further than the dossier allows.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use assay_measure::statistics::{quantile, sorted};
use assay_record::{Dossier, Entry, EntryStatus, Peer};
use serde::Deserialize;

use crate::python;

const SCRIPT: &str = include_str!("peers.py");
/// Importing torch may take half a minute, and compiling Triton's kernels another.
const LIMIT: Duration = Duration::from_secs(300);
/// Fewer samples than these have no spread to speak of.
const LEAST_SAMPLES: usize = 3;

/// One line of the script's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    device: Option<String>,
    multiprocessors: u32,
    at: Option<String>,
    entries: Vec<String>,
    name: String,
    version: String,
    unit: String,
    values: Vec<f64>,
    missing: Option<String>,
    end: bool,
}

/// Measures the peers of a dossier's entries and puts them beside them.
///
/// `device` is the name that the dossier's device was opened by; `at` is told what is measured.
pub(super) fn measure(
    dossier: &mut Dossier,
    device: &str,
    only: Option<&str>,
    at: &mut dyn FnMut(&str),
) {
    let folder = match Folder::new() {
        Ok(folder) => folder,
        Err(error) => {
            let why = format!("no peers: the script cannot be written for python3: {error}");
            return dossier.peers_missing.push(why);
        }
    };
    let ordinal = device.strip_prefix("cuda:").unwrap_or("0");
    let extent = if dossier.quick { "quick" } else { "full" };
    let mut command = Command::new("python3");
    command
        .arg(folder.0.join("peers.py"))
        .args([ordinal, extent, only.unwrap_or_default()])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TRITON_CACHE_DIR", folder.0.join("triton"));
    listen(&mut command, LIMIT, dossier, at);
}

/// Runs what measures, and believes what it may.
fn listen(command: &mut Command, limit: Duration, dossier: &mut Dossier, at: &mut dyn FnMut(&str)) {
    let mut heard = Heard::default();
    let end = python::run(command, limit, &mut |text| heard.line(text, dossier, at));
    let why = match (end, heard.ended) {
        (Ok(()), true) => None,
        (Ok(()), false) if heard.gave_up => None,
        (Ok(()), false) => Some("python3 ended before its last peer".to_owned()),
        (Err(why), _) => Some(why),
    };
    if let Some(why) = why {
        let last = heard.at.map(|at| format!("; it was at {at}")).unwrap_or_default();
        let kept = match dossier.peers.len() {
            0 => "there are no peers".to_owned(),
            n => format!("only the {n} figures before that are there"),
        };
        dossier.peers_missing.push(format!("{why}{last}: {kept}"));
    }
}

/// What is known of the script so far.
#[derive(Default)]
struct Heard {
    /// Whether it measures the dossier's device; nothing before it has said so.
    same_device: Option<bool>,
    at: Option<String>,
    ended: bool,
    gave_up: bool,
}

impl Heard {
    fn line(&mut self, text: &str, dossier: &mut Dossier, at: &mut dyn FnMut(&str)) {
        if text.trim().is_empty() {
            return;
        }
        let line: Line = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) => {
                let start: String = text.chars().take(60).collect();
                let why = format!("a line of python3's is no figure (\"{start}\": {error})");
                return dossier.peers_missing.push(why);
            }
        };
        self.ended |= line.end;
        if let Some(name) = &line.device {
            let device = &dossier.device;
            let same = *name == device.name && line.multiprocessors == device.multiprocessors;
            if !same {
                let why = format!("no peers: torch measures {name}, and the dossier is of another");
                dossier.peers_missing.push(why);
            }
            self.same_device = Some(same);
        } else if let Some(name) = line.at {
            at(&name);
            self.at = Some(name);
        } else if let (Some(why), true) = (&line.missing, line.name.is_empty()) {
            self.gave_up = true;
            dossier.peers_missing.push(format!("no peers: {why}"));
        } else if let Some(why) = line.missing {
            dossier.peers_missing.push(format!("no figure of {}: {why}", line.name));
        } else if !line.name.is_empty() && self.same_device != Some(false) {
            match self.judged(&line, dossier) {
                Ok(Some(peer)) => dossier.peers.push(peer),
                Ok(None) => {}
                Err(why) => {
                    dossier.peers_missing.push(format!("no figure of {}: {why}", line.name));
                }
            }
        }
    }

    /// The peer that a line speaks of; none where the dossier has no such entry.
    fn judged(&self, line: &Line, dossier: &Dossier) -> Result<Option<Peer>, String> {
        if self.same_device.is_none() {
            return Err("it did not say of which device".to_owned());
        }
        let known = || line.entries.iter().filter_map(|name| dossier.entry(name));
        let measured = |entry: &&Entry| entry.status == EntryStatus::Measured;
        let Some(entry) = known().find(measured).or_else(|| known().next()) else {
            return Ok(None);
        };
        if line.unit != entry.unit {
            return Err(format!("it is in {}, and {} in {}", line.unit, entry.name, entry.unit));
        }
        let samples = line.values.len();
        if samples < LEAST_SAMPLES {
            return Err(format!("{samples} samples are too few"));
        }
        if !line.values.iter().all(|value| value.is_finite() && *value > 0.0) {
            return Err("a sample is no positive number".to_owned());
        }
        let ascending = sorted(&line.values);
        let value = quantile(&ascending, 0.5);
        if let Some(ceiling) = ceiling(entry, dossier).filter(|ceiling| value > *ceiling) {
            let unit = &entry.unit;
            return Err(format!(
                "{value:.4e} {unit} is over what the silicon can do, {ceiling:.4e} {unit}"
            ));
        }
        Ok(Some(Peer {
            entry: entry.name.clone(),
            name: line.name.clone(),
            version: line.version.clone(),
            value,
            unit: line.unit.clone(),
            n: samples as u64,
            spread: quantile(&ascending, 0.95) - quantile(&ascending, 0.05),
        }))
    }
}

/// What the silicon can do at most at its highest clock: an entry's limit may be that of the clock
/// at which the entry was taken.
fn ceiling(entry: &Entry, dossier: &Dossier) -> Option<f64> {
    let highest = dossier.device.sm_clock_max_mhz.map(f64::from);
    let more = highest.zip(entry.sm_clock_mhz).map_or(1.0, |(highest, clock)| highest / clock);
    entry.limit.map(|limit| limit * more.max(1.0))
}

/// A folder of its own for the script, gone when this is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("assay-peers-{}", std::process::id()));
        fs::create_dir(&path)?;
        let folder = Folder(path);
        fs::write(folder.0.join("peers.py"), SCRIPT)?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use assay_measure::certify::model;

    const HELLO: &str = r#"{"device": "a model of a device", "multiprocessors": 132}"#;
    const END: &str = r#"{"end": true}"#;
    const SUM: &str = r#"{"entries": ["dram_read"], "name": "torch sum", "version": "2",
        "unit": "B/s", "values": [4.0e12, 4.1e12, 4.2e12]}"#;

    /// The dossier after a script that says these lines and then runs a command of the shell's.
    fn heard(lines: &[&str], then: &str) -> Dossier {
        let said: Vec<String> =
            lines.iter().map(|line| format!("echo '{}'", line.replace('\n', " "))).collect();
        let script = format!("{}\n{then}", said.join("\n"));
        let mut dossier = model();
        let mut command = Command::new("sh");
        let limit = Duration::from_millis(if then.contains("sleep") { 300 } else { 60_000 });
        listen(command.args(["-c", &script]), limit, &mut dossier, &mut |_| {});
        dossier
    }

    #[test]
    fn figures_stand_beside_their_entries_with_their_spread() {
        let dossier = heard(&[HELLO, r#"{"at": "torch sum"}"#, SUM, END], "");
        assert_eq!(dossier.peers_missing, Vec::<String>::new());
        let peer = &dossier.peers[0];
        assert_eq!((peer.value, peer.n, peer.unit.as_str()), (4.1e12, 3, "B/s"));
        assert!((peer.spread - 1.8e11).abs() < 1e6, "{peer:?}");
        let entry = dossier.entry("dram_read").expect("an entry");
        assert_eq!(dossier.standing(entry).expect("a peer").peer.name, "torch sum");
    }

    #[test]
    fn a_peer_of_several_entries_stands_beside_the_first_that_has_a_value() {
        let line = SUM.replace("dram_read", "no_such\", \"dram_write\", \"dram_read");
        let dossier = heard(&[HELLO, &line, END], "");
        assert_eq!(dossier.peers[0].entry, "dram_write");
        let none = heard(&[HELLO, &SUM.replace("dram_read", "no_such"), END], "");
        assert!(none.peers.is_empty() && none.peers_missing.is_empty());
    }

    #[test]
    fn what_cannot_be_believed_is_a_sentence_and_never_a_number() {
        let cases = [
            (SUM.replace("B/s", "GB/s"), "it is in GB/s, and dram_read in B/s"),
            (SUM.replace("4.0e12, 4.1e12, 4.2e12", "4e12, 4e12"), "2 samples are too few"),
            (SUM.replace("4.0e12", "-1"), "no positive number"),
            (SUM.replace("4.0e12", "NaN"), "is no figure"),
            (SUM.replace("4.0e12", "1e999"), "is no figure"),
            (SUM.replace("e12", "e13"), "over what the silicon can do"),
            ("Segmentation fault (core dumped)".to_owned(), "is no figure"),
            (r#"{"entries": 7}"#.to_owned(), "is no figure"),
        ];
        for (line, expected) in cases {
            let dossier = heard(&[HELLO, &line, END], "");
            assert!(dossier.peers.is_empty(), "{line}");
            let why = dossier.peers_missing.join("; ");
            assert!(why.contains(expected), "{line}: {why}");
        }
    }

    #[test]
    fn a_script_that_hangs_or_dies_leaves_the_figures_before() {
        let at = r#"{"at": "Triton sum"}"#;
        let dossier = heard(&[HELLO, SUM, at], "exec sleep 600");
        assert_eq!(dossier.peers.len(), 1);
        let why = dossier.peers_missing.join("; ");
        assert!(
            why.contains("did not end in 0.3 s and was stopped; it was at Triton sum"),
            "{why}"
        );
        let dossier = heard(&[HELLO, SUM], "echo out of memory >&2; exit 1");
        assert_eq!(dossier.peers.len(), 1);
        assert!(dossier.peers_missing[0].contains("out of memory: only the 1 figures before"));
        let dossier = heard(&[HELLO], "");
        assert!(
            dossier.peers_missing[0].contains("ended before its last peer: there are no peers")
        );
    }

    #[test]
    fn another_device_or_none_gives_no_peers() {
        let other = HELLO.replace("132", "108");
        let dossier = heard(&[&other, SUM, END], "");
        assert!(dossier.peers.is_empty());
        assert!(dossier.peers_missing[0].contains("the dossier is of another"));
        let dossier = heard(&[SUM, END], "");
        assert!(dossier.peers.is_empty());
        assert!(dossier.peers_missing[0].contains("did not say of which device"));
    }

    #[test]
    fn a_python_without_torch_says_so_in_one_sentence() {
        let dossier = heard(&[r#"{"missing": "python3 imports no torch"}"#], "");
        assert_eq!(dossier.peers_missing, ["no peers: python3 imports no torch"]);
        let mut dossier = model();
        let mut command = Command::new("no-such-python");
        listen(&mut command, LIMIT, &mut dossier, &mut |_| {});
        assert!(dossier.peers.is_empty());
        assert!(dossier.peers_missing[0].starts_with("no-such-python does not start"));
    }
}
