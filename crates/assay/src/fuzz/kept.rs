//! The report of a run, and what is kept of one that is ended from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use assay_device::DeviceFacts;
use assay_record::{DeviceRecord, ExitCode, FUZZ_SCHEMA, FuzzCandidate, FuzzReport, FuzzSummary};

use super::FuzzArguments;
use super::units::Unit;
use crate::{VERSION, command_line};

/// Time between two writings of what was found so far.
const EVERY: Duration = Duration::from_secs(2);

/// What a report says beside what was found.
pub(crate) struct Form<'a> {
    pub(crate) arguments: &'a FuzzArguments,
    /// What was wrong with the manifests.
    pub(crate) broken: ExitCode,
    pub(crate) started: String,
    pub(crate) facts: &'a DeviceFacts,
    pub(crate) start: Instant,
}

impl Form<'_> {
    /// The report of candidates that are done, and of those that are not by name.
    pub(crate) fn report(
        &self,
        candidates: Vec<FuzzCandidate>,
        unfinished: Vec<String>,
    ) -> FuzzReport {
        let (arguments, facts) = (self.arguments, self.facts);
        let summary = FuzzSummary::of(&candidates);
        let one = arguments.repro.is_some();
        let is_problem = |found: &FuzzCandidate| {
            // A control's own case is right to fail.
            let planted = found.control_for.is_some();
            if one && planted { found.counts.failed == 0 } else { found.is_problem() }
        };
        let problems = candidates.iter().any(is_problem) || !unfinished.is_empty();
        let exit = if problems { ExitCode::Problems } else { ExitCode::Holds };
        FuzzReport {
            schema: FUZZ_SCHEMA,
            assay_version: VERSION.to_owned(),
            command: command_line(),
            date: self.started.clone(),
            seed: arguments.repro.as_ref().map_or(arguments.seed, |recipe| recipe.seed),
            device: DeviceRecord {
                name: facts.name.clone(),
                backend: facts.backend.clone(),
                driver: facts.driver.clone(),
                architecture: facts.architecture.clone(),
            },
            isolated: arguments.isolate || facts.backend == "cuda",
            budget_s: arguments.budget,
            seconds: Some(self.start.elapsed().as_secs_f64()),
            unfinished,
            candidates,
            summary,
            exit_code: exit.worst(self.broken).code(),
        }
    }
}

/// Writes what was found so far beside the file of the report and puts it in its place, so that a
/// run that is ended leaves a whole report of what it had done.
pub(crate) struct Kept<'a> {
    form: &'a Form<'a>,
    /// The file, where one is asked for that can be replaced, and when it was written last.
    path: Option<PathBuf>,
    last: Mutex<Instant>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(form: &'a Form<'a>) -> Kept<'a> {
        let is_file = |path: &&PathBuf| path.as_path() != Path::new("-") && is_plain(path);
        let asked = form.arguments.json.as_ref().filter(|_| form.arguments.repro.is_none());
        Kept { form, path: asked.filter(is_file).cloned(), last: Mutex::new(form.start) }
    }

    /// Writes what is done, if that is due. A file that cannot be written is told of at the end.
    pub(crate) fn keep(&self, chosen: &[Unit<'_>], found: &[Mutex<Option<FuzzCandidate>>]) {
        let Some(path) = &self.path else { return };
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.elapsed() < EVERY {
            return;
        }
        let (mut done, mut rest) = (Vec::new(), Vec::new());
        for (unit, slot) in chosen.iter().zip(found) {
            match &*slot.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(one) => done.push(one.clone()),
                None => rest.push(unit.candidate().name()),
            }
        }
        if let Ok(json) = self.form.report(done, rest).to_json() {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".part");
            let part = path.with_file_name(name);
            if fs::write(&part, json).and_then(|()| fs::rename(&part, path)).is_err() {
                let _ = fs::remove_file(&part);
            }
        }
        *last = Instant::now();
    }
}

/// Whether a path is a file or none yet, and no device or pipe.
fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |kind| kind.is_file())
}
