//! What can be fuzzed: something with an envelope of cases, each run by its recipe alone.

use std::time::Duration;

use assay_record::{FuzzCase, FuzzKind, Recipe};

/// A case of an envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// What repeats it.
    pub recipe: Recipe,
    /// Logical elements of its largest tensor.
    pub elements: u64,
    /// Why it is not to be run, where that is known beforehand.
    pub skip: Option<String>,
}

/// From here on a count of elements needs more than an `i32`.
pub const HUGE: u64 = 1 << 31;

/// Something that is fuzzed: what its cases are. A [`Runner`] runs them, here or elsewhere.
pub trait Candidate {
    /// Its name, the first part of its recipes.
    fn name(&self) -> String;

    /// What it is.
    fn kind(&self) -> FuzzKind;

    /// What is wrong with it, if it is planted to be found.
    fn control_for(&self) -> Option<String>;

    /// Its envelope, cheap cases first. The same seed gives the same cases.
    fn cases(&self, seed: u64) -> Vec<Planned>;

    /// Recipes that are a step smaller than one that fails, the smallest first.
    fn smaller(&self, recipe: &Recipe) -> Vec<Recipe>;
}

/// Something that runs a candidate's cases: the candidate itself, or a process that holds it.
pub trait Runner {
    /// Runs one case. Whatever the candidate does is a verdict; one that hangs or ends its process
    /// is survived by [`crate::Isolated`] alone.
    fn run(&mut self, recipe: &Recipe) -> FuzzCase;

    /// Gives every case from now on no more than so much time; `None` takes the limit away. A case
    /// that is stopped so is `Skipped`. Whether it can stop one at all: code of this
    /// process that does not end cannot be interrupted.
    fn limit(&mut self, left: Option<Duration>) -> bool {
        let _ = left;
        false
    }

    /// Whether cases run in a process of their own, which is ended when its time is spent.
    fn is_apart(&self) -> bool {
        false
    }

    /// Whether nothing more can be run in this process, as after the loss of a device.
    fn is_spent(&self) -> bool {
        false
    }
}

/// A case with the time that it took.
pub(crate) fn timed(run: impl FnOnce() -> FuzzCase) -> FuzzCase {
    let start = std::time::Instant::now();
    let mut case = run();
    case.seconds = start.elapsed().as_secs_f64();
    case
}

/// The words of a panic.
pub(crate) fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
