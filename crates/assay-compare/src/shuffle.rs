//! Inputs in another order, one that a reduction's result may depend on in its rounding alone.

use std::fmt;

use assay_num::random::SplitMix64;

use crate::array::{Tensor, storage};
use crate::error::CompareError;

/// What a user's own shuffle does: the inputs, permuted.
type Permute<'a> = Box<dyn Fn(&[Tensor], &mut SplitMix64) -> Result<Vec<Tensor>, String> + 'a>;

/// How to permute the inputs of a reference.
pub struct Shuffle<'a> {
    name: String,
    kind: Kind<'a>,
}

enum Kind<'a> {
    LastDim,
    MatmulK,
    Own(Permute<'a>),
}

impl fmt::Debug for Shuffle<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Shuffle").field(&self.name).finish()
    }
}

impl<'a> Shuffle<'a> {
    /// For reductions along the last axis: it is permuted, the same way in the first input and in
    /// every other one whose last axis has the same size.
    #[must_use]
    pub fn last_dim() -> Shuffle<'a> {
        Shuffle { name: "last_dim".to_owned(), kind: Kind::LastDim }
    }

    /// For products of matrices: the last axis of the first input and the last but one of the
    /// second are permuted the same way.
    #[must_use]
    pub fn matmul_k() -> Shuffle<'a> {
        Shuffle { name: "matmul_k".to_owned(), kind: Kind::MatmulK }
    }

    /// Any other: a function from the inputs to permuted ones.
    pub fn own(
        name: impl Into<String>,
        permute: impl Fn(&[Tensor], &mut SplitMix64) -> Result<Vec<Tensor>, String> + 'a,
    ) -> Shuffle<'a> {
        Shuffle { name: name.into(), kind: Kind::Own(Box::new(permute)) }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn apply(
        &self,
        inputs: &[Tensor],
        random: &mut SplitMix64,
    ) -> Result<Vec<Tensor>, CompareError> {
        match &self.kind {
            Kind::LastDim => last_dim(inputs, random),
            Kind::MatmulK => matmul_k(inputs, random),
            Kind::Own(permute) => permute(inputs, random)
                .map_err(|why| CompareError::Band(format!("the shuffle failed: {why}"))),
        }
    }
}

fn last_dim(inputs: &[Tensor], random: &mut SplitMix64) -> Result<Vec<Tensor>, CompareError> {
    let size = inputs.first().and_then(|input| input.shape().last().copied());
    let Some(size) = size else {
        let reason = "last_dim shuffles the last axis of the first input, which has none";
        return Err(CompareError::Band(reason.to_owned()));
    };
    let order = permutation(size, random);
    let permuted = |input: &Tensor| match input.shape().last() {
        Some(&last) if last == size => input.permuted(input.shape().len() - 1, &order),
        _ => input.clone(),
    };
    Ok(inputs.iter().map(permuted).collect())
}

fn matmul_k(inputs: &[Tensor], random: &mut SplitMix64) -> Result<Vec<Tensor>, CompareError> {
    let axes = match inputs {
        [a, b, ..] => match (a.shape(), b.shape()) {
            ([.., k], [.., rows, _]) if k == rows => Some((*k, b.shape().len() - 2)),
            _ => None,
        },
        _ => None,
    };
    let Some((k, axis)) = axes else {
        let shapes: Vec<_> = inputs.iter().map(|input| format!("{:?}", input.shape())).collect();
        return Err(CompareError::Band(format!(
            "matmul_k takes inputs of the shapes [.., M, K] and [.., K, N], not {}",
            shapes.join(" and ")
        )));
    };
    let order = permutation(k, random);
    let mut permuted = inputs.to_vec();
    permuted[0] = inputs[0].permuted(inputs[0].shape().len() - 1, &order);
    permuted[1] = inputs[1].permuted(axis, &order);
    Ok(permuted)
}

fn permutation(size: u64, random: &mut SplitMix64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..size).collect();
    random.shuffle(&mut order);
    order
}

impl Tensor {
    /// The tensor with one axis in another order: place `i` holds what was at `order[i]`.
    pub(crate) fn permuted(&self, axis: usize, order: &[u64]) -> Tensor {
        let shape = self.shape();
        if self.bytes().is_empty() {
            // Its other sizes may come to more than can be counted.
            return self.clone();
        }
        let inner: u64 = shape[axis + 1..].iter().product();
        let outer: u64 = shape[..axis].iter().product();
        let size = order.len() as u64;
        let mut bytes = Vec::with_capacity(self.bytes().len());
        if self.format().is_packed() {
            let values = self.values();
            let mut moved = Vec::with_capacity(values.len());
            for row in 0..outer {
                for &from in order {
                    let start = ((row * size + from) * inner) as usize;
                    moved.extend_from_slice(&values[start..start + inner as usize]);
                }
            }
            bytes = self.format().encode_slice(&moved);
        } else {
            let width = storage(self.format(), inner) as usize;
            for row in 0..outer {
                for &from in order {
                    let start = (row * size + from) as usize * width;
                    bytes.extend_from_slice(&self.bytes()[start..start + width]);
                }
            }
        }
        Tensor::new(self.format(), shape, bytes).unwrap_or_else(|_| self.clone())
    }
}
