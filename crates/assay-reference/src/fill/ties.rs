//! Inputs for kernels that choose by computed scores: small whole numbers, most of them 0, so that
//! the scores are exact in fp32 and many are equal. Only then has a tie one right answer.

use assay_num::random::SplitMix64;

use crate::Inputs;

use super::layout::Layout;
use super::values;

/// Builds one run.
pub fn build(layout: &Layout, random: &mut SplitMix64) -> Inputs {
    let mut inputs = layout.zeros();
    for tensor in layout.filled() {
        let mut random = random.fork(&tensor.name);
        let Some(elements) = inputs.tensors.get_mut(&tensor.name) else { continue };
        elements.fill_with(|| match (tensor.format.is_float(), random.below(8)) {
            (false, _) => values::ordinary(tensor.format, &mut random),
            (true, 0) => values::nearest(tensor.format, 1.0),
            (true, 1) => values::nearest(tensor.format, -1.0),
            (true, _) => 0.0,
        });
    }
    inputs
}
