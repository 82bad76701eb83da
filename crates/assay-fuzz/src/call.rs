//! One call for one closure against another.

use assay_record::{FuzzCandidate, Tolerance};

use crate::closure::OperationCandidate;
use crate::fuzz::{Options, Silent, fuzz};
use crate::operation::{Body, Operation};
use crate::tensor::View;

/// Takes a closure in `f32` through the ugly envelope, against one that says what is right.
///
/// `candidate` gives its whole output for operands of one shape, which is the output's too;
/// `reference` gives the right value at one place of it, in row-major order. Cases of 2^31 elements
/// are reported as skipped: [`Operation::elementwise`] computes parts of its output, and runs them.
/// Other formats, shapes and contents are fields of [`Operation`].
///
/// ```
/// use assay_fuzz::{View, fuzz_shapes};
/// use assay_record::{Outcome, Tolerance};
///
/// let add = |x: &[View]| {
///     (0..x[0].elements()).map(|at| x[0].linear(at) + x[1].linear(at)).collect()
/// };
/// let right = |x: &[View], at: u64| x[0].linear(at) + x[1].linear(at);
/// assert_eq!(fuzz_shapes("add", 2, add, right, Tolerance::ulp(1)).outcome, Outcome::Pass);
///
/// // One that takes its operands for contiguous.
/// let cheat = |x: &[View]| {
///     (0..x[0].elements() as i64).map(|at| x[0].load(at) + x[1].load(at)).collect()
/// };
/// let found = fuzz_shapes("cheat", 2, cheat, right, Tolerance::ulp(1));
/// assert_eq!(found.outcome, Outcome::Fail);
/// let first = &found.failures[0];
/// assert_eq!(first.smallest.as_ref().unwrap_or(&first.case).elements, 2);
/// ```
pub fn fuzz_shapes(
    name: &str,
    operands: usize,
    candidate: impl Fn(&[View]) -> Vec<f64> + Send + Sync + 'static,
    reference: impl Fn(&[View], u64) -> f64 + Send + Sync + 'static,
    tolerance: Tolerance,
) -> FuzzCandidate {
    let nothing = |_: &[View], _: u64, _: &mut [f64]| Ok(());
    let operation = Operation {
        body: Body::Whole(Box::new(move |views| Ok(candidate(views)))),
        ..Operation::elementwise(name, operands, nothing, reference)
    };
    let mut found = operation.within(tolerance).fuzz(&Options::default());
    // There is one format.
    found.remove(0)
}

impl Operation {
    /// Takes the operation through its cases in this process, in each of its formats.
    pub fn fuzz(self, options: &Options) -> Vec<FuzzCandidate> {
        let each = |mut own: OperationCandidate| fuzz(&own.clone(), &mut own, options, &Silent);
        OperationCandidate::of(vec![self]).into_iter().map(each).collect()
    }
}
