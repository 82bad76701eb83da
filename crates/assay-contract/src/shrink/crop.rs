//! Inputs of a smaller shape, cut out of those of a larger one.

use std::collections::BTreeMap;

use assay_reference::{Dims, Inputs, Limits, Signature, Tensor};

/// Which part of an axis is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// Its beginning.
    First,
    /// Its end.
    Last,
    /// From this index of the dimension on, as far as there is room.
    From(i64),
}

/// The part of every input that a smaller shape has room for. `None` where an axis would grow.
pub(super) fn crop(
    signature: &Signature,
    inputs: &Inputs,
    (from, to): (&Dims, &Dims),
    anchor: Anchor,
) -> Option<Inputs> {
    let mut cropped = Inputs::default();
    for tensor in &signature.inputs {
        let (old, new) = (sizes(tensor, from)?, sizes(tensor, to)?);
        let grows = old.iter().zip(&new).any(|(old, new)| new > old);
        let elements = inputs.tensors.get(&tensor.name)?;
        if grows || elements.len() != old.iter().product::<usize>() {
            return None;
        }
        let starts: Vec<usize> = (0..old.len())
            .map(|axis| start(tensor, axis, (old[axis], new[axis]), (from, to), anchor))
            .collect();
        let window = window(elements, &old, &new, &starts);
        cropped.tensors.insert(tensor.name.clone(), window);
    }
    Some(cropped)
}

fn sizes(tensor: &Tensor, dims: &Dims) -> Option<Vec<usize>> {
    let size = |extent: &assay_reference::Extent| usize::try_from(extent.eval(dims).ok()?).ok();
    tensor.shape.iter().map(size).collect()
}

/// Where the part of an axis starts. An axis that is no dimension itself follows in proportion.
fn start(
    tensor: &Tensor,
    axis: usize,
    (old, new): (usize, usize),
    (from, to): (&Dims, &Dims),
    anchor: Anchor,
) -> usize {
    let room = old - new;
    match anchor {
        Anchor::First => 0,
        Anchor::Last => room,
        Anchor::From(index) => {
            let names = tensor.shape[axis].names();
            let changed = names.iter().find(|name| from.get(**name) != to.get(**name));
            let size = changed.and_then(|name| from.get(*name)).copied().unwrap_or(1).max(1);
            ((index.max(0) as usize) * old / size as usize).min(room)
        }
    }
}

/// Brings the elements of inputs whose range is promised into the range at a smaller shape. `None`
/// where distinct values have no room left.
pub(super) fn keep_promises(
    inputs: &mut Inputs,
    limits: &BTreeMap<String, Limits>,
    dims: &Dims,
) -> Option<()> {
    for (name, limits) in limits {
        let Some(range) = limits.range_at(dims) else { continue };
        let Some(elements) = inputs.tensors.get_mut(name) else { continue };
        let span = range.end - range.start;
        if span <= 0 || (limits.distinct && elements.len() as i64 > span) {
            return None;
        }
        let mut taken: Vec<i64> = Vec::new();
        for element in elements {
            let mut value = range.start + (*element as i64 - range.start).rem_euclid(span);
            while limits.distinct && taken.contains(&value) {
                value = range.start + (value + 1 - range.start).rem_euclid(span);
            }
            taken.push(value);
            *element = value as f64;
        }
    }
    Some(())
}

/// The elements of a box inside a row-major tensor.
fn window(elements: &[f64], old: &[usize], new: &[usize], starts: &[usize]) -> Vec<f64> {
    let count: usize = new.iter().product();
    let mut window = Vec::with_capacity(count);
    for place in 0..count {
        let (mut rest, mut stride, mut at) = (place, 1, 0);
        for axis in (0..new.len()).rev() {
            at += (starts[axis] + rest % new[axis]) * stride;
            rest /= new[axis];
            stride *= old[axis];
        }
        window.push(elements[at]);
    }
    window
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_num::Format;
    use assay_reference::dims;

    fn signature(shape: &[&str]) -> Signature {
        let x = Tensor::new("x", Format::F32, shape).expect("extents");
        Signature { inputs: vec![x], ..Signature::default() }
    }

    fn cropped(shape: &[&str], anchor: Anchor) -> Option<Vec<f64>> {
        let (from, to) = (dims([("rows", 3), ("cols", 4)]), dims([("rows", 3), ("cols", 2)]));
        let inputs = Inputs::new([("x", (0..12).map(f64::from).collect())]);
        let cropped = crop(&signature(shape), &inputs, (&from, &to), anchor)?;
        cropped.tensors.get("x").cloned()
    }

    #[test]
    fn a_crop_keeps_the_first_the_last_or_a_window_of_an_axis() {
        let first = [0.0, 1.0, 4.0, 5.0, 8.0, 9.0];
        assert_eq!(cropped(&["rows", "cols"], Anchor::First), Some(first.to_vec()));
        let last = first.map(|value| value + 2.0);
        assert_eq!(cropped(&["rows", "cols"], Anchor::Last), Some(last.to_vec()));
        let window = first.map(|value| value + 1.0);
        assert_eq!(cropped(&["rows", "cols"], Anchor::From(1)), Some(window.to_vec()));
        assert_eq!(cropped(&["rows", "cols"], Anchor::From(9)), Some(last.to_vec()));
    }

    #[test]
    fn promised_indices_stay_in_range_and_distinct() {
        let end = |text: &str| assay_reference::Extent::parse(text).expect("an extent");
        let range = Some([end("0"), end("pages")]);
        let limits = Limits { range, distinct: true, exact: None };
        let limits = BTreeMap::from([("table".to_owned(), limits)]);
        let mut inputs = Inputs::new([("table", vec![7.0, 3.0, 1.0])]);
        assert!(keep_promises(&mut inputs, &limits, &dims([("pages", 2)])).is_none());
        assert!(keep_promises(&mut inputs, &limits, &dims([("pages", 3)])).is_some());
        assert_eq!(inputs.tensors["table"], [1.0, 0.0, 2.0]);
    }

    #[test]
    fn an_axis_that_would_grow_is_refused() {
        assert_eq!(cropped(&["rows", "8 - cols"], Anchor::First), None);
    }
}
