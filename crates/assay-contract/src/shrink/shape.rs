//! Shrinks the shape of a failing case, one dimension after the other.

use assay_reference::Dims;

use super::Search;
use super::crop::{Anchor, crop, keep_promises};
use crate::spec::{DimSpec, Spec};

/// Lowers every dimension as far as the case still fails, until none can be lowered further.
pub(super) fn shrink(search: &mut Search<'_>) {
    let names: Vec<String> = search.best.dims.keys().cloned().collect();
    let mut lowered = true;
    while lowered && search.left > 0 {
        lowered = false;
        for name in &names {
            lowered |= lower(search, name);
        }
    }
}

/// Takes the smallest size of one dimension at which the case still fails.
fn lower(search: &mut Search<'_>, name: &str) -> bool {
    let from = search.best.dims.clone();
    for to in candidates(search.subject.spec(), &from, name) {
        for anchor in anchors(search, name) {
            let spec = search.subject.spec();
            let cut = crop(&spec.signature, &search.best.inputs, (&from, &to), anchor);
            let Some(mut inputs) = cut else { continue };
            let fits = keep_promises(&mut inputs, &spec.limits(), &to).is_some();
            if fits && search.keep(&to, inputs) {
                return true;
            }
        }
    }
    false
}

/// The failing element first, where the dimension is an axis of the output.
fn anchors(search: &Search<'_>, name: &str) -> Vec<Anchor> {
    let finding = &search.best.finding;
    let output = search.subject.spec().signature.outputs.iter();
    let mut output = output.filter(|tensor| Some(&tensor.name) == finding.output.as_ref());
    let index = output.next().and_then(|tensor| {
        let axis = tensor.shape.iter().position(|extent| extent.as_dim() == Some(name))?;
        finding.element.as_ref()?.get(axis).copied()
    });
    let mut anchors: Vec<Anchor> = index.map(Anchor::From).into_iter().collect();
    anchors.extend([Anchor::First, Anchor::Last]);
    anchors
}

/// Shapes with a smaller `name` that the kernel is made for, the smallest first.
fn candidates(spec: &Spec, from: &Dims, name: &str) -> Vec<Dims> {
    if let Some(cases) = &spec.cases {
        let is_smaller = |dims: &&Dims| {
            dims.iter().all(|(name, size)| from.get(name).is_some_and(|old| size <= old))
                && dims.get(name) < from.get(name)
        };
        let mut smaller: Vec<Dims> = cases.iter().filter(is_smaller).cloned().collect();
        smaller.sort_by_key(|dims| dims.values().product::<i64>());
        return smaller;
    }
    let Some((dim, current)) = spec.dims.get(name).zip(from.get(name).copied()) else {
        return Vec::new();
    };
    let with = |size: i64| {
        let mut to = from.clone();
        to.insert(name.to_owned(), size);
        to
    };
    sizes(dim, current).into_iter().map(with).collect()
}

/// Sizes below `current`, ascending: the least, a few steps, the edges of the tile, and halves.
fn sizes(dim: &DimSpec, current: i64) -> Vec<i64> {
    let step = dim.step.max(1);
    let mut sizes = vec![dim.least, current - step];
    sizes.extend((0..5).map(|power| step << power));
    if let Some(tile) = dim.tile {
        sizes.extend([tile - step, tile, tile + step, 2 * tile, 2 * tile + step]);
    }
    let halves = std::iter::successors(Some(current / 2), |size| (*size > 1).then_some(size / 2));
    sizes.extend(halves.take(8).map(|size| size / step * step));
    sizes.retain(|size| dim.allows(*size) && (1..current).contains(size));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_sizes_are_valid_and_hold_the_edges_of_the_tile() {
        let dim = DimSpec { served: vec![4096], tile: Some(1024), step: 4, least: 4, most: None };
        let sizes = sizes(&dim, 4096);
        for size in [4, 8, 64, 1020, 1024, 1028, 2048, 2052, 4092] {
            assert!(sizes.contains(&size), "{size} of {sizes:?}");
        }
        assert!(sizes.iter().all(|size| dim.allows(*size) && *size < 4096));
        assert!(sizes.is_sorted());
    }

    #[test]
    fn the_least_size_has_none_below_it() {
        let dim = DimSpec { served: vec![8], tile: None, step: 8, least: 8, most: None };
        assert!(sizes(&dim, 8).is_empty());
    }
}
