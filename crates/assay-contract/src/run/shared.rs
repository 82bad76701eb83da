//! What the faults of one kernel have in common: on equal inputs, equal references.
//!
//! A kernel's faults are judged on the kernel's own inputs, so that most of their cases are the
//! same but for the code that runs. Values, bounds and replays are then worked out once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use assay_record::Gate;
use assay_reference::{Bounded, Dims, Evaluation, Inputs, Replay};

use crate::kernel::Kernel;
use crate::launcher::Launcher;
use crate::spec::Spec;
use crate::subject::{Evaluated, RunError, RunRequest, RunResult};

/// Bytes of references that are kept for one kernel; what comes later is worked out each time.
const KEPT_BYTES: usize = 256 << 20;

/// The references of one kernel, by everything that decides them.
#[derive(Default)]
pub(super) struct References {
    bounds: Mutex<Kept<Bounded>>,
    replays: Mutex<Kept<Vec<f64>>>,
}

/// Results by key, up to a number of bytes.
struct Kept<T> {
    results: HashMap<u64, Evaluated<T>>,
    bytes: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { results: HashMap::new(), bytes: 0 }
    }
}

/// The result kept under `key`, or a new one, kept if there is room.
fn kept<T: Clone>(
    store: &Mutex<Kept<T>>,
    key: u64,
    size: impl Fn(&T) -> usize,
    make: impl FnOnce() -> Option<Evaluated<T>>,
) -> Option<Evaluated<T>> {
    let lock = || store.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(result) = lock().results.get(&key) {
        return Some(result.clone());
    }
    let result = make()?;
    let bytes = result.as_ref().map_or(0, |outputs| outputs.values().map(size).sum());
    let mut store = lock();
    if store.bytes + bytes <= KEPT_BYTES {
        store.bytes += bytes;
        store.results.insert(key, result.clone());
    }
    Some(result)
}

fn key(evaluation: &Evaluation<'_>, replay: Option<&Replay>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, size) in evaluation.dims {
        (name, size).hash(&mut hasher);
    }
    for (name, values) in &evaluation.inputs.tensors {
        (name, values.len()).hash(&mut hasher);
        for value in values {
            hasher.write_u64(value.to_bits());
        }
    }
    let dropped = evaluation.drop.as_ref().map(|drop| (&drop.reduction, drop.term));
    (dropped, &evaluation.rows, replay.map(|replay| format!("{replay:?}"))).hash(&mut hasher);
    hasher.finish()
}

/// A kernel that shares its references with others of the same contract.
pub(super) struct Sharing<'a> {
    pub(super) kernel: &'a dyn Kernel,
    pub(super) references: &'a References,
}

impl Kernel for Sharing<'_> {
    fn spec(&self) -> &Spec {
        self.kernel.spec()
    }

    fn prepare(&self, gate: Gate, dims: &Dims, seed: u64) -> Option<Inputs> {
        self.kernel.prepare(gate, dims, seed)
    }

    fn run(
        &self,
        launcher: &mut Launcher<'_>,
        request: &RunRequest<'_>,
    ) -> Result<RunResult, RunError> {
        self.kernel.run(launcher, request)
    }

    fn reference(&self, evaluation: &Evaluation<'_>) -> Option<Evaluated<Bounded>> {
        let size = |bounded: &Bounded| bounded.value.len() * (2 * size_of::<f64>() + 1);
        let make = || self.kernel.reference(evaluation);
        kept(&self.references.bounds, key(evaluation, None), size, make)
    }

    fn simulate(
        &self,
        evaluation: &Evaluation<'_>,
        replay: &Replay,
    ) -> Option<Evaluated<Vec<f64>>> {
        let size = |values: &Vec<f64>| values.len() * size_of::<f64>();
        let make = || self.kernel.simulate(evaluation, replay);
        kept(&self.references.replays, key(evaluation, Some(replay)), size, make)
    }

    fn replaced(&self) -> Option<&str> {
        self.kernel.replaced()
    }
}
