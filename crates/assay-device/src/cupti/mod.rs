//! How long each kernel ran, from the device's own activity records, through CUPTI.
//!
//! An event bracket counts what lies between two events; an activity record counts one kernel,
//! from its start to its end. CUPTI is loaded at run time and its absence is a value with a
//! reason. While records are taken every launch costs more, so take them apart from other times.
//! Names and numbers are those of NVIDIA's CUPTI documentation.

#![expect(unsafe_code, reason = "every call into the library is a foreign one")]

mod api;
mod find;
mod record;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use thiserror::Error;

use api::Functions;
pub use record::KernelRecord;

/// Whether some [`Activity`] takes records: the library has one stream of them a process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Libraries that were loaded. None is ever unloaded, since its own threads may still run.
static LOADED: Mutex<Vec<(String, Arc<Functions>)>> = Mutex::new(Vec::new());

/// Why there are no activity records.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no activity records: {reason}")]
pub struct ActivityError {
    /// What is missing or went wrong.
    pub reason: String,
    /// What to do, where something can be done.
    pub hint: Option<String>,
}

impl ActivityError {
    fn new(reason: impl Into<String>) -> Self {
        ActivityError { reason: reason.into(), hint: None }
    }
}

/// Takes a record of every kernel that this process runs, until it is dropped.
pub struct Activity {
    functions: Arc<Functions>,
}

impl Activity {
    /// Starts to take records. Wait for the device first: what still runs may or may not be
    /// recorded.
    ///
    /// # Errors
    /// [`ActivityError`] for a library that is missing, of an unknown version, or refuses, as it
    /// does where another profiler has the device; and while another `Activity` lives.
    pub fn start() -> Result<Activity, ActivityError> {
        Self::with(library()?)
    }

    /// As [`Activity::start`], with a library from an unusual place. Loading runs the library's
    /// code: give only a path that you trust.
    ///
    /// # Errors
    /// As [`Activity::start`].
    pub fn start_with_library(path: &str) -> Result<Activity, ActivityError> {
        Self::with(load(path)?)
    }

    fn with(functions: Arc<Functions>) -> Result<Activity, ActivityError> {
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Err(ActivityError::new("they are already being taken in this process"));
        }
        // From here on dropping it sets the flag back.
        let activity = Activity { functions };
        record::clear();
        record::install(&activity.functions);
        activity.functions.register()?;
        activity.functions.enable()?;
        Ok(activity)
    }

    /// Ends all buffers of the library and gives the records since the last call, by their start.
    /// Wait for the device first.
    ///
    /// # Errors
    /// [`ActivityError`] if the library fails, or had to drop records.
    pub fn take(&mut self) -> Result<Vec<KernelRecord>, ActivityError> {
        self.functions.flush()?;
        let (mut records, dropped) = record::take();
        if dropped > 0 {
            let reason = format!("{dropped} of them were dropped: take them more often");
            return Err(ActivityError::new(reason));
        }
        records.sort_by_key(|record| record.start_ns);
        Ok(records)
    }

    /// The library's path and version.
    pub fn library(&self) -> String {
        self.functions.describe()
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        // An error cannot be acted on.
        let _ = self.functions.disable();
        let _ = self.functions.flush();
        record::clear();
        TAKEN.store(false, Ordering::SeqCst);
    }
}

/// The path and version of the library that [`Activity::start`] would use. Starts nothing.
///
/// # Errors
/// [`ActivityError`] where there is none, with what to install.
pub fn describe() -> Result<String, ActivityError> {
    library().map(|functions| functions.describe())
}

/// The first library that loads and is of a known version.
fn library() -> Result<Arc<Functions>, ActivityError> {
    let mut reasons = Vec::new();
    for path in find::candidates() {
        match load(&path) {
            Ok(functions) => return Ok(functions),
            Err(error) => reasons.push(error.reason),
        }
    }
    let first = reasons.into_iter().next().unwrap_or_else(|| "there is none to try".to_string());
    let hint = format!(
        "install CUPTI (`pip install nvidia-cuda-cupti`, or the CUDA toolkit), or name its \
         library in {}",
        find::VARIABLE
    );
    Err(ActivityError { reason: first, hint: Some(hint) })
}

fn load(path: &str) -> Result<Arc<Functions>, ActivityError> {
    let mut loaded = LOADED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, functions)) = loaded.iter().find(|(known, _)| known == path) {
        return Ok(Arc::clone(functions));
    }
    let functions = Arc::new(Functions::load(path)?);
    loaded.push((path.to_string(), Arc::clone(&functions)));
    Ok(functions)
}
