//! What a formula is checked against and evaluated on: tensors with formats and shapes, and inputs.

use std::collections::BTreeMap;

use assay_num::Format;

use crate::extent::{Dims, Extent};

/// A named tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Its name in the formula.
    pub name: String,
    /// The format of its elements.
    pub format: Format,
    /// Its extents, outermost first; empty for a single element.
    pub shape: Vec<Extent>,
}

impl Tensor {
    /// A tensor with the extents given as text, `Tensor::new("x", Format::F32, &["rows", "cols"])`.
    ///
    /// # Errors
    /// When an extent does not parse.
    pub fn new(name: &str, format: Format, shape: &[&str]) -> Result<Self, crate::FormulaError> {
        let shape: Result<Vec<Extent>, _> = shape.iter().map(|s| Extent::parse(s)).collect();
        Ok(Self { name: name.to_owned(), format, shape: shape? })
    }
}

/// What a formula may name and must define.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Signature {
    /// Dimensions: integers that shapes are made of.
    pub dims: Vec<String>,
    /// Tensors the formula reads.
    pub inputs: Vec<Tensor>,
    /// Tensors the formula defines.
    pub outputs: Vec<Tensor>,
    /// Real constants, such as `eps`. One that is no fp32 value counts as an inexact literal.
    pub scalars: BTreeMap<String, f64>,
}

/// The input tensors of one evaluation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inputs {
    /// The elements of each tensor in row-major order, as values its format holds exactly.
    pub tensors: BTreeMap<String, Vec<f64>>,
}

impl Inputs {
    /// Inputs from pairs of a name and its elements.
    pub fn new(tensors: impl IntoIterator<Item = (&'static str, Vec<f64>)>) -> Self {
        Self { tensors: tensors.into_iter().map(|(name, v)| (name.to_owned(), v)).collect() }
    }
}

/// Dims from pairs of a name and a value.
pub fn dims<'n>(values: impl IntoIterator<Item = (&'n str, i64)>) -> Dims {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
