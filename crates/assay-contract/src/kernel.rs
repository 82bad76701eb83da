//! The `Kernel` trait: what a kernel under test can do. A manifest kernel answers all of it from
//! its spec; a Rust type overrides what its spec cannot say.

use std::collections::BTreeMap;

use assay_record::Gate;
use assay_reference::{Bounded, Dims, Evaluation, Inputs, Replay};

use crate::launcher::Launcher;
use crate::spec::Spec;
use crate::subject::{Evaluated, RunError, RunRequest, RunResult};

/// A kernel under test.
pub trait Kernel: Send + Sync {
    /// Its contract.
    fn spec(&self) -> &Spec;

    /// The inputs for one gate at one shape; `None` leaves them to the family's fills.
    fn prepare(&self, _gate: Gate, _dims: &Dims, _seed: u64) -> Option<Inputs> {
        None
    }

    /// Runs all launches once and waits. A kernel that is no device code computes here and leaves
    /// the launcher alone.
    ///
    /// # Errors
    /// Whatever kept the outputs from being made.
    fn run(
        &self,
        launcher: &mut Launcher<'_>,
        request: &RunRequest<'_>,
    ) -> Result<RunResult, RunError> {
        launcher.run(self.spec(), request)
    }

    /// Elements of each output at a shape.
    ///
    /// # Errors
    /// A shape that does not evaluate to at least one element along each axis.
    fn count(&self, dims: &Dims) -> Result<BTreeMap<String, usize>, RunError> {
        let outputs = self.spec().signature.outputs.iter();
        outputs
            .map(|tensor| {
                let shape = crate::layout::sizes(&tensor.name, &tensor.shape, dims)?;
                Ok((tensor.name.clone(), shape.iter().product()))
            })
            .collect()
    }

    /// Real-number values and error bounds of each output; `None` if a rule judges the kernel.
    fn reference(&self, evaluation: &Evaluation<'_>) -> Option<Evaluated<Bounded>> {
        self.spec().bounds(evaluation)
    }

    /// Each output with the sums carried in another format; `None` if a rule judges the kernel.
    fn simulate(
        &self,
        evaluation: &Evaluation<'_>,
        replay: &Replay,
    ) -> Option<Evaluated<Vec<f64>>> {
        self.spec().replays(evaluation, replay)
    }

    /// The name of the kernel whose bytes this one must equal.
    fn replaced(&self) -> Option<&str> {
        self.spec().replaces.as_deref()
    }
}
