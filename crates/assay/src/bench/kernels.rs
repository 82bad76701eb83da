//! Which kernels at which shape.

use std::str::FromStr;

use assay_contract::{Kernel, ManifestKernel};
use assay_reference::Dims;

use super::Arguments;
use crate::failure::Failure;
use crate::suite::Suite;

/// Sizes of dims, as they were typed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shape(pub(crate) Vec<(String, i64)>);

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let pair = |pair: &str| -> Result<(String, i64), String> {
            let (name, size) =
                pair.split_once('=').ok_or("a shape is written rows=64,cols=4096")?;
            let size = size.trim().parse().ok().filter(|size| *size > 0);
            let size = size.ok_or_else(|| format!("`{pair}` has no positive size"))?;
            Ok((name.trim().to_owned(), size))
        };
        let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
        pairs.map(pair).collect::<Result<_, String>>().map(Shape)
    }
}

/// A kernel at a shape.
pub(super) struct Subject {
    pub(super) kernel: ManifestKernel,
    pub(super) dims: Dims,
}

impl Subject {
    /// `softmax/cols=4096,rows=64`.
    pub(super) fn name(&self) -> String {
        shown(&self.kernel.spec().name, &self.dims)
    }
}

/// A kernel with its sizes: `softmax/cols=4096,rows=64`.
pub(crate) fn shown(kernel: &str, dims: &Dims) -> String {
    let sizes = dims.iter().map(|(name, size)| format!("{name}={size}"));
    format!("{kernel}/{}", sizes.collect::<Vec<_>>().join(","))
}

/// Everything that is to be timed.
pub(super) struct Asked {
    pub(super) subjects: Vec<Subject>,
}

impl Asked {
    /// The kernels of the request, each at its shape.
    pub(super) fn select(arguments: &Arguments) -> Result<Asked, Failure> {
        let mut suite = Suite::load(&arguments.manifest);
        let mut subjects = Vec::new();
        for name in &arguments.kernels {
            let kernel = suite.kernel(name)?;
            let dims = shape_of(&kernel, &arguments.dims)?;
            subjects.push(Subject { kernel, dims });
        }
        Ok(Asked { subjects })
    }
}

/// The largest served shape, with the sizes that were asked for.
pub(crate) fn shape_of(kernel: &ManifestKernel, asked: &Shape) -> Result<Dims, Failure> {
    let spec = kernel.spec();
    let served = spec.served();
    let largest = served.into_iter().max_by_key(|dims| {
        dims.values().fold(1i128, |product, size| product.saturating_mul(i128::from(*size)))
    });
    let mut dims = largest.unwrap_or_default();
    for (name, size) in &asked.0 {
        let Some(dim) = spec.dims.get(name) else { continue };
        if !dim.allows(*size) {
            return Err(Failure::request(format!("`{}` does not serve {name}={size}", spec.name))
                .hint(format!("it serves {name} {}", dim.valid_sizes())));
        }
        dims.insert(name.clone(), *size);
    }
    if let Some((name, _)) = asked.0.iter().find(|(name, _)| !spec.dims.contains_key(name)) {
        let known: Vec<&str> = spec.dims.keys().map(String::as_str).collect();
        return Err(Failure::request(format!("`{}` has no dim `{name}`", spec.name))
            .hint(format!("its dims are {}", known.join(", "))));
    }
    Ok(dims)
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn a_shape_is_pairs_of_names_and_positive_sizes() {
        let parsed = |text: &str| text.parse::<Shape>().map(|shape| shape.0);
        let pairs = vec![("rows".to_owned(), 64), ("cols".to_owned(), 4096)];
        assert_eq!(parsed("rows=64, cols=4096"), Ok(pairs));
        assert_eq!(parsed(""), Ok(Vec::new()));
        for wrong in ["rows", "rows=", "rows=0", "rows=-1", "rows=x", "rows=1=2"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
