//! The entries of what threads do to each other: atomics on few and many addresses, and barriers.

use assay_device::ModuleId;
use assay_record::{Entry, Figure};

use super::atomics::{Atomic, Field};
use super::barrier::{Waiting, cost};
use super::span::median;
use super::{Probe, ProbeContext, ProbeError, Quantity};
use crate::probe::context::figure;

const ATOMICS: &str = include_str!("../../../../../kernels/measure/atomics.ptx");
const GRID: &str = include_str!("../../../../../kernels/measure/grid_barrier.ptx");
const CLUSTER: &str = include_str!("../../../../../kernels/measure/cluster_barrier.sm_90.ptx");

const ADD_METHOD: &str = "additions without an answer by all threads, consecutive threads on \
     consecutive words; the value is that of one word a thread, the curve goes from one word for \
     all; every word holds the sum of what was added";
const CAS_METHOD: &str = "compare-and-swap, each try from what the last one saw, won or lost; the \
     value is that of one word a thread, the curve goes from one word for all; every word holds \
     the number of tries won";
const GRID_METHOD: &str = "cooperative groups' grid.sync of 256 threads a block, one block a \
     multiprocessor, the difference of a long run and a short one; no block passes before its \
     neighbour; the curve is over the number of blocks";
const CLUSTER_METHOD: &str = "barrier.cluster arrive and wait of 256 threads a block, the \
     difference of a long run and a short one; no block passes before its neighbour; the value is \
     that of 2 blocks, the curve is over the blocks of a cluster";

/// Atomics from one address to one for each thread.
pub(super) const ATOMICS_PROBE: Probe = Probe {
    title: "atomics",
    quantities: &[
        Quantity { name: "atomic_add_f32", unit: "op/s", method: ADD_METHOD },
        Quantity { name: "atomic_add_u32", unit: "op/s", method: ADD_METHOD },
        Quantity { name: "atomic_cas", unit: "op/s", method: CAS_METHOD },
    ],
    run: |context| {
        let module = context.load("atomics.ptx", ATOMICS);
        let kinds = [Atomic::AddF32, Atomic::AddU32, Atomic::Cas];
        let pairs = ATOMICS_PROBE.quantities.iter().zip(kinds);
        let wanted: Vec<_> = pairs.filter(|(quantity, _)| context.wants(quantity)).collect();
        let entries = wanted.into_iter().map(|(quantity, atomic)| {
            context.attempt(quantity, |context| curve(context, quantity, module.clone()?, atomic))
        });
        entries.collect()
    },
};

/// Barriers of the grid and of clusters.
pub(super) const BARRIER_PROBE: Probe = Probe {
    title: "barriers",
    quantities: &[
        Quantity { name: "grid_barrier", unit: "ns", method: GRID_METHOD },
        Quantity { name: "cluster_barrier", unit: "ns", method: CLUSTER_METHOD },
    ],
    run: |context| {
        let [grid, cluster] = BARRIER_PROBE.quantities else { return Vec::new() };
        vec![
            context.attempt(grid, |context| grid_barrier(context, grid)),
            context.attempt(cluster, |context| cluster_barrier(context, cluster)),
        ]
    },
};

fn curve(
    context: &mut ProbeContext<'_>,
    quantity: &Quantity,
    module: ModuleId,
    atomic: Atomic,
) -> Result<Entry, ProbeError> {
    let samples = if context.quick || context.tiny { 3 } else { 9 };
    let (blocks, threads) =
        if context.tiny { (2, 64) } else { (2 * context.multiprocessors(), 1024) };
    let device = &mut *context.device;
    let field = Field::new(device, module, blocks, threads)?;
    let mut points = Vec::new();
    let mut addresses = 1;
    let last = loop {
        let steps = if addresses < 256 { 16 } else { 256 };
        let (mut rates, mut clocks) = (Vec::new(), Vec::new());
        for _ in 0..samples {
            let spans = field.run(device, atomic, addresses, steps)?;
            let operations = f64::from(field.all()) * f64::from(steps);
            rates.push(operations / spans.duration_ns() * 1e9);
            clocks.push(spans.sm_clock_mhz());
        }
        field.verify(device, atomic, addresses, steps)?;
        let figure = figure(&rates, Some(median(clocks.iter().copied())));
        points.push((f64::from(addresses), figure.value));
        if addresses == field.all() {
            break figure;
        }
        addresses = (4 * addresses).min(field.all());
    };
    field.free(device)?;
    let why = "every word was read back and is right; the operations' own latency is hidden by \
         many threads only as far as the device holds them";
    Ok(quantity.measured(last).trusted(0.9, why).along("addresses", points))
}

/// The figure of one barrier, after a look whether it holds.
fn barrier(context: &mut ProbeContext<'_>, waiting: Waiting) -> Result<Figure, ProbeError> {
    let (samples, short, long) = match (context.tiny, context.quick) {
        (true, _) => (1, 1, 3),
        (_, true) => (5, 20, 220),
        _ => (15, 50, 550),
    };
    let device = &mut *context.device;
    waiting.verify(device, short)?;
    waiting.run(device, long)?;
    let (mut costs, mut clocks) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let (few, many) = (waiting.run(device, short)?, waiting.run(device, long)?);
        costs.push(cost((&many, long), (&few, short)));
        clocks.push(many.sm_clock_mhz());
    }
    Ok(figure(&costs, Some(median(clocks.iter().copied()))))
}

fn grid_barrier(context: &mut ProbeContext<'_>, quantity: &Quantity) -> Result<Entry, ProbeError> {
    let module = context.load("grid_barrier.ptx", GRID)?;
    let all = context.multiprocessors();
    let waiting = Waiting { module, blocks: all, threads: 256, cluster: None };
    let figure = barrier(context, waiting)?;
    let mut points = vec![(f64::from(all), figure.value)];
    for blocks in [2, 8, 32].into_iter().filter(|blocks| *blocks < all) {
        let figure = barrier(context, Waiting { blocks, ..waiting })?;
        points.push((f64::from(blocks), figure.value));
    }
    let why = "a difference of two runs in the kernel, on the device's clock";
    Ok(quantity.measured(figure).trusted(0.9, why).along("blocks", points))
}

fn cluster_barrier(
    context: &mut ProbeContext<'_>,
    quantity: &Quantity,
) -> Result<Entry, ProbeError> {
    if context.architecture() < 90 {
        return Err(ProbeError::Unsupported("clusters need sm_90".to_owned()));
    }
    let module = context.load("cluster_barrier.sm_90.ptx", CLUSTER)?;
    let of = |size| Waiting { module, blocks: size, threads: 256, cluster: Some(size) };
    let figure = barrier(context, of(2))?;
    let mut points = vec![(2.0, figure.value)];
    let mut refused = String::new();
    for size in [4, 8, 16] {
        match barrier(context, of(size)) {
            Ok(figure) => points.push((f64::from(size), figure.value)),
            Err(ProbeError::Device(error)) if !error.poisons_device() => {
                refused = format!("; {size} blocks were refused: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    let why = format!("a difference of two runs in the kernel, on the device's clock{refused}");
    Ok(quantity.measured(figure).trusted(0.9, why).along("blocks", points))
}
