//! Inputs for the gates, made from a formula's reductions and not from its name: what is planted,
//! what is made loud and what is made an integer follows from what the terms are made of.
//!
//! Every fill is decided by a shape and a generator of random numbers, and holds only values that
//! the tensors' formats hold exactly.

mod expression;
mod layout;
pub mod non_finite;
mod order;
pub mod ranked;
mod scan;
pub mod shapes;
mod steer;
mod steered;
pub mod sums;
pub mod sweep;
mod term;
pub mod ties;
pub mod values;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::rule::Rule;
use crate::{Dims, Program, Signature};

pub use layout::{Layout, Line, ReductionLayout, TensorLayout, critical_places};
pub use order::{first_places, order_name, terms_per_accumulator};
pub use scan::decays;
pub use term::{Step, Term};

/// Why no fill can be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FillError {
    /// A tensor has no shape at these dims.
    #[error("tensor `{tensor}` has no shape at {dims:?}; its extents must be 0 or more there")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The dims.
        dims: Dims,
    },
}

impl Layout {
    /// The layout of a formula's tensors at a shape; `tiles` gives the tile of each tiled dim, and
    /// the inputs that hold indices are drawn from `seed`.
    ///
    /// # Errors
    /// An extent that does not evaluate or is negative.
    pub fn of(
        program: &Program,
        dims: &Dims,
        (tiles, seed): (&BTreeMap<String, i64>, u64),
    ) -> Result<Layout, FillError> {
        let mut reductions = Vec::new();
        for (number, reduction) in program.reductions().iter().enumerate() {
            let place = |extent: &crate::Extent| extent.eval(dims).ok();
            let bounds = place(&reduction.from).zip(place(&reduction.to));
            let (from, to) = bounds.filter(|(from, to)| 0 <= *from && from <= to).unwrap_or((0, 0));
            let stage = program.reduction_of_stage.iter().position(|of| *of == Some(number));
            let described = stage.map(|stage| term::classify(program, stage));
            let (term, reads) = described.unwrap_or((Term::Other(Vec::new()), Vec::new()));
            reductions.push(ReductionLayout {
                name: reduction.name.clone(),
                operation: reduction.operation,
                from: from as usize,
                terms: (to - from) as usize,
                bounds_vary: reduction.bounds_vary,
                tile: layout::tile_of(&reduction.to, dims, tiles),
                term,
                still: stage.and_then(|stage| term::still(program, stage)),
                steps: reads.iter().map(|(tensor, _, step)| (tensor.clone(), *step)).collect(),
                reads: reads.into_iter().map(|(tensor, axis, _)| (tensor, axis)).collect(),
                steering: None,
            });
        }
        // A choice follows from the other inputs: no fill writes it, no plant lies in it.
        let chosen = |name: &str| program.choice().is_some_and(|c| c.output().name == name);
        for reduction in &mut reductions {
            reduction.reads.retain(|(name, _)| !chosen(name));
        }
        let walked: Vec<_> = reductions.iter().flat_map(|r| r.reads.clone()).collect();
        let signature = program.signature();
        let mut tensors = layout::tensors(signature, dims, tiles, &walked)?;
        tensors.retain(|tensor| !chosen(&tensor.name));
        let decays = scan::decays(program);
        for tensor in &mut tensors {
            tensor.scale = decays.get(&tensor.name).copied().unwrap_or(1.0);
        }
        let mut layout = Layout { tensors, reductions, rows: layout::rows(signature, dims) };
        layout.limit(program.limits(), dims, seed);
        layout.steer(program, dims);
        Ok(layout)
    }

    /// The layout of the tensors of a kernel that a rule judges: the rule walks the last axis of
    /// the input it ranks.
    ///
    /// # Errors
    /// As [`Layout::of`].
    pub fn of_rule(
        rule: &Rule,
        signature: &Signature,
        dims: &Dims,
        tiles: &BTreeMap<String, i64>,
    ) -> Result<Layout, FillError> {
        let scores = rule.scores();
        let walked = [(scores.name.clone(), scores.shape.len() - 1)];
        let tensors = layout::tensors(signature, dims, tiles, &walked)?;
        Ok(Layout { tensors, reductions: Vec::new(), rows: layout::rows(signature, dims) })
    }
}

#[cfg(test)]
mod steered_tests;
#[cfg(test)]
mod tests;
