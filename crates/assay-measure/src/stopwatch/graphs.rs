//! Spans of graphs. What surrounds the launches inside a graph is measured by a second graph that
//! has all of it and none of them, and taken off.

use assay_device::{Device, DeviceError, GraphId};

use super::span::{Content, Span};
use super::{Stopwatch, Work};
use crate::MeasureError;
use crate::plan::{Cache, Plan};

/// Two graphs whose times differ by that of the launches of one sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Graphs {
    /// With the launches: cold, each after a flush; warm, one more than in a sample.
    full: GraphId,
    /// Without: cold, the flushes alone; warm, one launch.
    less: GraphId,
}

impl Stopwatch {
    /// Captures the graphs of a plan.
    pub(super) fn capture(
        &mut self,
        device: &mut dyn Device,
        plan: &Plan,
        work: &mut Work<'_>,
    ) -> Result<Graphs, DeviceError> {
        let launches = plan.launches_per_sample;
        let stream = self.stream;
        if plan.cache == Cache::Warm {
            let mut warm = |watch: &mut Stopwatch, device: &mut dyn Device, times: u32| {
                watch
                    .captured(device, |_, device| (0..times).try_for_each(|_| work(device, stream)))
            };
            let full = warm(self, device, launches + 1)?;
            return Ok(Graphs { full, less: warm(self, device, 1)? });
        }
        let full = self.captured(device, |watch, device| {
            (0..launches).try_for_each(|_| {
                watch.flush(device)?;
                work(device, stream)
            })
        })?;
        let less = self.captured(device, |watch, device| {
            (0..launches).try_for_each(|_| watch.flush(device))
        })?;
        Ok(Graphs { full, less })
    }

    /// What is launched meanwhile, as a graph. A capture that fails is ended all the same.
    fn captured(
        &mut self,
        device: &mut dyn Device,
        launch: impl FnOnce(&mut Stopwatch, &mut dyn Device) -> Result<(), DeviceError>,
    ) -> Result<GraphId, DeviceError> {
        device.begin_capture(self.stream)?;
        let launched = launch(self, device);
        let graph = device.end_capture(self.stream);
        launched?;
        graph
    }

    /// The difference of both graphs' spans, as one span. Its clock is the slower of the two's.
    pub(super) fn graph_span(
        &mut self,
        device: &mut dyn Device,
        plan: &Plan,
        graphs: Graphs,
    ) -> Result<Span, MeasureError> {
        let mut span = |graph: GraphId| {
            let mut content = Content::Replay(graph);
            self.span(device, Cache::Warm, plan.hold_limit_s, &mut content)
        };
        let (less, full) = (span(graphs.less)?, span(graphs.full)?);
        let clock = match (full.sm_clock_mhz, less.sm_clock_mhz) {
            (Some(full), Some(less)) => Some(full.min(less)),
            (known, _) => known,
        };
        Ok(Span { elapsed_ns: full.elapsed_ns - less.elapsed_ns, sm_clock_mhz: clock })
    }
}

impl Graphs {
    /// Gives both back.
    pub(super) fn destroy(self, device: &mut dyn Device) -> Result<(), DeviceError> {
        device.destroy_graph(self.full)?;
        device.destroy_graph(self.less)
    }
}
