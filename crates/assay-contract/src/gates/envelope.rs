//! Which shapes of a kernel's served envelope a gate visits.

use std::collections::{BTreeMap, BTreeSet};

use assay_reference::Dims;

use crate::spec::Spec;

/// The tile of each tiled dimension.
pub(super) fn tiles(spec: &Spec) -> BTreeMap<String, i64> {
    spec.dims.iter().filter_map(|(name, dim)| Some((name.clone(), dim.tile?))).collect()
}

/// Gate 3's shapes: every served one, then each tiled dimension at its edges with the others held.
pub(super) fn served_and_edges(spec: &Spec) -> Vec<Dims> {
    let mut shapes = spec.served();
    let held = held(spec);
    for (name, dim) in &spec.dims {
        for size in dim.edges() {
            shapes.push(with(&held, name, size));
        }
    }
    distinct(shapes)
}

/// Two or more small shapes, an odd one among them where the kernel serves one: a served shape, and
/// every tiled dimension a step past its second tile (past its first, where that is not served).
pub(super) fn small(spec: &Spec) -> Vec<Dims> {
    let held = held(spec);
    let mut past = held.clone();
    for (name, dim) in &spec.dims {
        let Some(tile) = dim.tile else { continue };
        let sizes = [2 * tile + dim.step, tile + dim.step, tile, dim.largest(), dim.least];
        let fits = |size: &i64| dim.allows(*size) && *size <= dim.largest();
        if let Some(size) = sizes.into_iter().find(fits) {
            past.insert(name.clone(), size);
        }
    }
    let mut shapes = distinct(vec![past, held.clone()]);
    if shapes.len() < 2 {
        let smallest = |shape: &Dims| shape.values().product::<i64>();
        let mut served = spec.served();
        served.sort_by_key(smallest);
        shapes.extend(served.into_iter().find(|shape| *shape != held));
    }
    shapes
}

/// Gate 4's shapes; `summed` names the dimensions that reductions run over. One with the longest
/// sums and few rows, one with sums a step past a tile and many rows.
pub(super) fn summing(spec: &Spec, summed: &BTreeSet<String>) -> Vec<Dims> {
    let held = held(spec);
    let (mut long, mut many) = (held.clone(), held);
    for (name, dim) in &spec.dims {
        if summed.contains(name) {
            long.insert(name.clone(), dim.largest());
            let edge = dim.tile.map(|tile| tile + dim.step);
            if let Some(edge) = edge.filter(|edge| dim.allows(*edge) && *edge <= dim.largest()) {
                many.insert(name.clone(), edge);
            }
        } else if let Some(most) = dim.served.iter().filter(|size| **size <= 128).max() {
            many.insert(name.clone(), *most);
        }
    }
    let served = spec.cases.clone().unwrap_or_default();
    if served.is_empty() { distinct(vec![long, many]) } else { distinct(served) }
}

/// The shapes a sweep may be at: explicit cases, else every mixture of the served sizes and, in
/// each dimension, the least valid size that gives every value sixteen neighbours.
pub(super) fn sweeping(spec: &Spec) -> Vec<Dims> {
    if let Some(cases) = &spec.cases {
        return distinct(cases.clone());
    }
    let sizes = |all: bool| -> Vec<(&String, Vec<i64>)> {
        spec.dims.iter().map(|(name, dim)| (name, sweeping_sizes(dim, all))).collect()
    };
    let mut choices = sizes(true);
    if choices.iter().map(|(_, sizes)| sizes.len()).product::<usize>() > MOST_SWEEPING {
        choices = sizes(false);
    }
    let mut shapes = vec![Dims::new()];
    for (name, sizes) in choices {
        let extended =
            |shape: &Dims| sizes.iter().map(|size| with(shape, name, *size)).collect::<Vec<Dims>>();
        shapes = shapes.iter().flat_map(extended).take(MOST_SWEEPING).collect();
    }
    shapes
}

/// More shapes than this are not compared for a sweep.
const MOST_SWEEPING: usize = 64;

/// The sizes of one dimension that sweeps choose from: `all` the served ones or the largest, and
/// the least valid one from 16 on.
fn sweeping_sizes(dim: &crate::spec::DimSpec, all: bool) -> Vec<i64> {
    let from = dim.least.max(16);
    let few = (from..from + dim.step.max(1)).find(|size| dim.allows(*size));
    let mut sizes = if all { dim.served.clone() } else { vec![dim.largest()] };
    sizes.extend(few.filter(|size| *size <= dim.largest()));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The shape whose dimensions are those served sizes that are nearest to 8: enough rows to differ,
/// few enough to be quick. With explicit cases, the first of them.
fn held(spec: &Spec) -> Dims {
    if let Some(first) = spec.cases.as_ref().and_then(|cases| cases.first()) {
        return first.clone();
    }
    let nearest = |sizes: &[i64], least: i64| {
        sizes.iter().copied().min_by_key(|size| (size - 8).abs()).unwrap_or(least)
    };
    let size = |dim: &crate::spec::DimSpec| nearest(&dim.served, dim.least);
    spec.dims.iter().map(|(name, dim)| (name.clone(), size(dim))).collect()
}

fn with(shape: &Dims, name: &str, size: i64) -> Dims {
    let mut changed = shape.clone();
    changed.insert(name.to_owned(), size);
    changed
}

fn distinct(shapes: Vec<Dims>) -> Vec<Dims> {
    let mut seen = BTreeSet::new();
    shapes.into_iter().filter(|shape| seen.insert(shape.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::DimSpec;
    use assay_reference::{Signature, dims};

    fn spec() -> Spec {
        let mut spec = Spec::new("k", Signature::default());
        let rows = DimSpec { served: vec![1, 7, 512], tile: None, step: 1, least: 1, most: None };
        let cols =
            DimSpec { served: vec![1000, 4096], tile: Some(1024), step: 4, least: 4, most: None };
        spec.dims = BTreeMap::from([("rows".to_owned(), rows), ("cols".to_owned(), cols)]);
        spec
    }

    fn shape(rows: i64, cols: i64) -> Dims {
        dims([("rows", rows), ("cols", cols)])
    }

    #[test]
    fn gate_3_visits_every_served_shape_and_the_edges_of_tiles() {
        let shapes = served_and_edges(&spec());
        for rows in [1, 7, 512] {
            for cols in [1000, 4096] {
                assert!(shapes.contains(&shape(rows, cols)), "{rows} {cols}");
            }
        }
        for cols in [4, 1020, 1024, 1028, 4096] {
            assert!(shapes.contains(&shape(7, cols)), "{cols}");
        }
        assert_eq!(shapes.len(), 10);
    }

    #[test]
    fn small_shapes_pass_a_tiles_edge_and_are_valid() {
        assert_eq!(small(&spec()), [shape(7, 2052), shape(7, 1000)]);
        let mut spec = spec();
        spec.dims.get_mut("cols").expect("cols").tile = None;
        assert_eq!(small(&spec), [shape(7, 1000), shape(1, 1000)]);
    }

    #[test]
    fn sweeps_choose_among_served_sizes_and_sixteen() {
        let shapes = sweeping(&spec());
        assert_eq!(shapes.len(), 4 * 3);
        assert!(shapes.contains(&shape(16, 16)) && shapes.contains(&shape(512, 4096)));
    }

    #[test]
    fn sums_are_long_in_one_shape_and_many_in_the_other() {
        let summed = BTreeSet::from(["cols".to_owned()]);
        assert_eq!(summing(&spec(), &summed), [shape(7, 4096), shape(7, 1028)]);
    }
}
