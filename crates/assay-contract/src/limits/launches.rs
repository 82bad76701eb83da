//! The launches of a kernel over all shapes that it is served at, each once.

use std::collections::HashSet;

use assay_limits::Launch;
use assay_reference::{Dims, Extent};

use crate::spec::{LaunchSpec, Spec};

/// One launch that some served shape asks for.
#[derive(Debug, Clone)]
pub(crate) struct Served<'s> {
    /// Which of the kernel's launches, from 0.
    pub(crate) index: usize,
    /// The launch as the spec has it.
    pub(crate) spec: &'s LaunchSpec,
    /// Its sizes.
    pub(crate) launch: Launch,
    /// The first shape that asks for it.
    pub(crate) dims: Dims,
}

/// Every launch at every served shape; launches of one symbol that are equal in all sizes are one.
/// A size that does not evaluate counts as none, which no chip runs.
pub(crate) fn served_launches(spec: &Spec) -> Vec<Served<'_>> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for dims in spec.served() {
        for (index, of) in spec.launches.iter().enumerate() {
            let launch = launch_at(of, &dims);
            if seen.insert((index, launch)) {
                all.push(Served { index, spec: of, launch, dims: dims.clone() });
            }
        }
    }
    all
}

fn launch_at(spec: &LaunchSpec, dims: &Dims) -> Launch {
    let size = |extent: &Extent| {
        let value = extent.eval(dims).ok();
        value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
    };
    let triple = |extents: &[Extent; 3]| extents.each_ref().map(size);
    Launch {
        grid: triple(&spec.grid),
        block: triple(&spec.block),
        cluster: triple(&spec.cluster),
        dynamic_shared_bytes: size(&spec.shared),
    }
}
