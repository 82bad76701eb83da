//! Host twins: functions that compute a kernel's outputs on the host, in fp32 and in the order that
//! the kernel states, so that its bytes can be compared and not only its errors bounded.
//!
//! A twin is named in a manifest (`twin = "split_k_gemv"`). To add one, write a file beside this
//! one and give it a row in [`TWINS`].

mod selective_scan;
mod split_k_gemv;

use std::collections::BTreeMap;

use assay_reference::{Dims, Inputs, Signature};

use crate::subject::RunError;

/// A function that gives a kernel's bytes.
pub struct Twin {
    /// Its name in manifests.
    pub name: &'static str,
    /// The inputs it takes, with the number of axes of each.
    pub inputs: &'static [(&'static str, usize)],
    /// The outputs it gives.
    pub outputs: &'static [&'static str],
    compute: fn(&TwinInputs<'_>) -> Result<Computed, RunError>,
}

/// The elements of each output, row-major; an output of another format than f32 is rounded to it.
pub type Computed = BTreeMap<&'static str, Vec<f32>>;

/// Every twin.
pub const TWINS: [Twin; 2] = [split_k_gemv::TWIN, selective_scan::TWIN];

/// The twin called `name`.
pub fn named(name: &str) -> Option<&'static Twin> {
    const { &TWINS }.iter().find(|twin| twin.name == name)
}

impl Twin {
    /// The bytes of each output, dense and row-major in its declared format.
    ///
    /// # Errors
    /// A tensor that the twin needs and the kernel has not.
    pub fn bytes(
        &self,
        signature: &Signature,
        dims: &Dims,
        inputs: &Inputs,
    ) -> Result<BTreeMap<String, Vec<u8>>, RunError> {
        let computed = (self.compute)(&TwinInputs { signature, dims, inputs })?;
        let outputs = signature.outputs.iter().filter_map(|tensor| {
            let values = computed.get(tensor.name.as_str())?;
            let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            Some((tensor.name.clone(), tensor.format.encode_slice(&values)))
        });
        Ok(outputs.collect())
    }

    /// What the twin needs and `signature` has not, for a message.
    pub fn missing(&self, signature: &Signature) -> Option<String> {
        let axes = |name: &str| {
            let tensor = signature.inputs.iter().find(|tensor| tensor.name == name);
            tensor.map(|tensor| tensor.shape.len())
        };
        let input = self.inputs.iter().find(|(name, rank)| axes(name) != Some(*rank));
        if let Some((name, rank)) = input {
            return Some(format!("an input `{name}` with {rank} axes"));
        }
        let has = |name: &&str| signature.outputs.iter().any(|tensor| tensor.name == **name);
        let output = self.outputs.iter().find(|name| !has(name));
        output.map(|name| format!("an output `{name}`"))
    }
}

impl std::fmt::Debug for Twin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Twin({})", self.name)
    }
}

/// What a twin computes from.
pub struct TwinInputs<'a> {
    signature: &'a Signature,
    dims: &'a Dims,
    inputs: &'a Inputs,
}

impl TwinInputs<'_> {
    /// The elements of an input as fp32 numbers, row-major.
    ///
    /// # Errors
    /// An input that is not there.
    pub fn values(&self, name: &str) -> Result<Vec<f32>, RunError> {
        let elements = self.inputs.tensors.get(name).ok_or_else(|| missing(name))?;
        Ok(elements.iter().map(|value| *value as f32).collect())
    }

    /// The extents of an input of two axes.
    ///
    /// # Errors
    /// An input that is not there or has another number of axes.
    pub fn matrix(&self, name: &str) -> Result<[usize; 2], RunError> {
        let tensor = self.signature.inputs.iter().find(|tensor| tensor.name == name);
        let tensor = tensor.ok_or_else(|| missing(name))?;
        let shape = crate::layout::sizes(name, &tensor.shape, self.dims)?;
        shape.try_into().map_err(|_| missing(name))
    }
}

fn missing(name: &str) -> RunError {
    RunError::request(format!("the twin needs an input `{name}` with two axes"))
}
