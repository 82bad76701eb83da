//! What it costs to start kernels: one by one, in trains, as graphs, and in the eyes of the device.
//! The kernel does nothing.

use std::time::Instant;

use assay_device::{Device, DeviceError, EventId, GraphId, Launch, ModuleId, StreamId};
use assay_record::{Entry, Figure};

use super::context::figure;
use super::host::clock_now;
use super::{HOST_CLOCK, Probe, ProbeContext, ProbeError, Quantity};
use crate::statistics::median;
use crate::{MeasureError, Plan, Stopwatch, Summary};

const TIMING: &str = include_str!("../../../../kernels/measure/timing.ptx");

const QUEUED: Quantity = Quantity {
    name: "launch_queued",
    unit: "ns",
    method: "trains of kernels that do nothing, from the first launch until the device is idle by \
             the host's clock, over the launches of a train; the median at the longest train",
};
const ROUND_TRIP: Quantity = Quantity {
    name: "launch_round_trip",
    unit: "ns",
    method: "one kernel that does nothing and the wait for it, by the host's clock; the median",
};
const GRAPH_ROUND_TRIP: Quantity = Quantity {
    name: "graph_round_trip",
    unit: "ns",
    method: "the replay of a graph of one kernel that does nothing and the wait for it, by the \
             host's clock; the median",
};
const GRAPH_NODE: Quantity = Quantity {
    name: "graph_node",
    unit: "ns",
    method: "replays of chains of kernels that do nothing, between two events; the slope between \
             the shortest and the longest chain",
};
const PERIOD: Quantity = Quantity {
    name: "launch_period",
    unit: "ns",
    method: "kernels that do nothing, queued behind one that holds the stream, between two events \
             less an empty bracket, over their number: what the device itself takes for each",
};
const BRACKET: Quantity = Quantity {
    name: "event_bracket",
    unit: "ns",
    method: "two events with nothing between them behind a kernel that holds the stream; the \
             median",
};

/// The probes of this module.
pub const PROBES: &[Probe] = &[
    Probe { title: "launch cost", quantities: &[QUEUED, ROUND_TRIP], run: launches },
    Probe { title: "graph cost", quantities: &[GRAPH_ROUND_TRIP, GRAPH_NODE], run: graphs },
    Probe { title: "launch period", quantities: &[PERIOD, BRACKET], run: periods },
];

/// The entry of a median, and the clock that it was taken at.
fn entry(
    quantity: &Quantity,
    samples: &[f64],
    sm_clock_mhz: Option<f64>,
) -> Result<Entry, ProbeError> {
    let figure = figure(samples, sm_clock_mhz);
    let has_passed = figure.value > 0.0;
    if !has_passed {
        return Err(ProbeError::Wrong("no time passed".to_owned()));
    }
    Ok(quantity.measured(figure))
}

/// Samples of each kind of thing.
fn samples(context: &ProbeContext<'_>) -> usize {
    if context.quick { 20 } else { 100 }
}

fn nothing(device: &mut dyn Device, module: ModuleId) -> Result<(), DeviceError> {
    device.launch(StreamId::DEFAULT, &Launch::new(module, "nothing")).map(|_| ())
}

/// Refuses devices whose launches say nothing about a GPU's.
fn timed(context: &ProbeContext<'_>) -> Result<(), ProbeError> {
    match context.timing() {
        Some(_) => Ok(()),
        None => Err(ProbeError::Unsupported("the device has no clock that means anything".into())),
    }
}

fn by_host_clock() -> String {
    format!("{HOST_CLOCK}: it depends on the host's processor and what else it does")
}

fn launches(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    context.attempt_all(&[QUEUED, ROUND_TRIP], |context| {
        timed(context)?;
        let (module, samples) = (context.load("timing.ptx", TIMING)?, samples(context));
        let most = if context.quick { 256 } else { 1024 };
        let device = &mut *context.device;
        let made = (|| {
            let mut points = Vec::new();
            let mut longest = Vec::new();
            for train in [1, 4, 16, 64, 256, 1024_u32].into_iter().filter(|train| *train <= most) {
                let count = if train > 64 { samples / 4 } else { samples };
                longest = trains(device, module, train, count.max(5))?;
                points.push((f64::from(train), median(&longest)));
            }
            let single = trains(device, module, 1, samples)?;
            let clock = clock_now(device);
            let queued = entry(&QUEUED, &longest, clock)?.along("launches", points);
            Ok(vec![
                queued.trusted(0.8, by_host_clock()),
                entry(&ROUND_TRIP, &single, clock)?.trusted(0.8, by_host_clock()),
            ])
        })();
        device.unload(module)?;
        made
    })
}

/// The nanoseconds of a launch in each of some trains.
fn trains(
    device: &mut dyn Device,
    module: ModuleId,
    train: u32,
    count: usize,
) -> Result<Vec<f64>, ProbeError> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..train {
            nothing(device, module)?;
        }
        device.synchronize()?;
        times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(train));
    }
    Ok(times)
}

fn graphs(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    context.attempt_all(&[GRAPH_ROUND_TRIP, GRAPH_NODE], |context| {
        timed(context)?;
        let (module, samples) = (context.load("timing.ptx", TIMING)?, samples(context));
        let device = &mut *context.device;
        let events = [device.create_event()?, device.create_event()?];
        let made = graph_entries(device, module, events, samples);
        events.into_iter().try_for_each(|event| device.destroy_event(event))?;
        device.unload(module)?;
        made
    })
}

fn graph_entries(
    device: &mut dyn Device,
    module: ModuleId,
    events: [EventId; 2],
    samples: usize,
) -> Result<Vec<Entry>, ProbeError> {
    let chains = [1, 8, 64, 512_u32];
    let mut points = Vec::new();
    let (mut trips, mut slopes) = (Vec::new(), Vec::new());
    let mut shortest = 0.0;
    for nodes in chains {
        let graph = chain(device, module, nodes)?;
        let replayed = replays(device, graph, events, samples);
        device.destroy_graph(graph)?;
        let (by_host, by_device) = replayed?;
        points.push((f64::from(nodes), median(&by_device) / f64::from(nodes)));
        if nodes == 1 {
            (trips, shortest) = (by_host, median(&by_device));
        } else {
            let more = f64::from(nodes - 1);
            slopes = by_device.iter().map(|ns| (ns - shortest) / more).collect();
        }
    }
    let clock = clock_now(device);
    let trip = entry(&GRAPH_ROUND_TRIP, &trips, clock)?.trusted(0.8, by_host_clock());
    let node = entry(&GRAPH_NODE, &slopes, clock)?.along("nodes", points);
    Ok(vec![trip, node.trusted(0.9, "each node waits for the one before; others may overlap")])
}

/// A graph of kernels that run one after another.
fn chain(device: &mut dyn Device, module: ModuleId, nodes: u32) -> Result<GraphId, ProbeError> {
    device.begin_capture(StreamId::DEFAULT)?;
    let captured = (0..nodes).try_for_each(|_| nothing(device, module));
    let graph = device.end_capture(StreamId::DEFAULT);
    captured?;
    Ok(graph?)
}

/// The nanoseconds of replays by the host's clock, each waited for, and between two events.
fn replays(
    device: &mut dyn Device,
    graph: GraphId,
    [start, end]: [EventId; 2],
    samples: usize,
) -> Result<(Vec<f64>, Vec<f64>), ProbeError> {
    let (mut by_host, mut by_device) = (Vec::new(), Vec::new());
    for n in 0..=samples {
        device.synchronize()?;
        let begun = Instant::now();
        device.launch_graph(graph, StreamId::DEFAULT)?;
        device.synchronize()?;
        let host_ns = begun.elapsed().as_secs_f64() * 1e9;
        device.record_event(start, StreamId::DEFAULT)?;
        device.launch_graph(graph, StreamId::DEFAULT)?;
        device.record_event(end, StreamId::DEFAULT)?;
        let device_ns = device.elapsed_ns(start, end)? as f64;
        // The first replay uploads the graph.
        if n > 0 {
            by_host.push(host_ns);
            by_device.push(device_ns);
        }
    }
    Ok((by_host, by_device))
}

fn periods(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    context.attempt_all(&[PERIOD, BRACKET], |context| {
        timed(context)?;
        let (module, samples) = (context.load("timing.ptx", TIMING)?, samples(context) as u32);
        let device = &mut *context.device;
        let mut stopwatch = Stopwatch::new(device).map_err(unmeasured)?;
        let plan = Plan {
            launches_per_sample: 200,
            least_samples: samples.min(20),
            most_samples: samples,
            ..Plan::warm()
        };
        let measured = stopwatch.measure(device, &plan, &mut |device, stream| {
            device.launch(stream, &Launch::new(module, "nothing")).map(|_| ())
        });
        let bracket = *stopwatch.bracket();
        stopwatch.free(device)?;
        device.unload(module)?;
        let summary = Summary::of(&measured.map_err(unmeasured)?);
        let period = Figure {
            value: summary.median_ns,
            samples: summary.n as u64,
            p5: summary.p5_ns,
            p95: summary.p95_ns,
            sm_clock_mhz: summary.sm_clock_mhz,
        };
        let half = bracket.spread_ns / 2.0;
        let empty = Figure {
            value: bracket.empty_ns,
            samples: 48,
            p5: bracket.empty_ns - half,
            p95: bracket.empty_ns + half,
            sm_clock_mhz: summary.sm_clock_mhz,
        };
        Ok(vec![PERIOD.measured(period), BRACKET.measured(empty)])
    })
}

/// A measurement that gave no number, as a probe's end.
fn unmeasured(error: MeasureError) -> ProbeError {
    match error {
        MeasureError::Device(error) => ProbeError::Device(error),
        other => ProbeError::Wrong(other.to_string()),
    }
}
