//! Recognises a sum of squared differences from a computed mean.

use crate::plan::{PlannedStatement, Stage};

/// The statement of the mean whose squared differences the stage sums, if that is what it does.
pub(crate) fn mean_of(
    _stages: &[Stage],
    _statements: &[PlannedStatement],
    _stage: usize,
) -> Option<String> {
    None
}
