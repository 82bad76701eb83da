//! One span: held, flushed, bracketed, stamped.

use assay_device::{Device, DeviceError, GraphId};

use super::{Stopwatch, Work};
use crate::MeasureError;
use crate::plan::Cache;

/// What one span said.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Span {
    /// Between its events, in nanoseconds.
    pub(crate) elapsed_ns: f64,
    /// The clock of one multiprocessor over it, in MHz, where it could be read.
    pub(crate) sm_clock_mhz: Option<f64>,
}

/// What a span brackets.
pub(crate) enum Content<'w, 'a> {
    /// Nothing.
    Empty,
    /// So many calls of the work.
    Calls(&'w mut Work<'a>, u32),
    /// The replay of a graph.
    Replay(GraphId),
}

/// The words of a stamp: cycles, nanoseconds, whether the hold gave up, how long it held, its
/// ticket.
const STAMP_BYTES: usize = 5 * 8;

impl Stopwatch {
    /// Takes one span.
    pub(crate) fn span(
        &mut self,
        device: &mut dyn Device,
        cache: Cache,
        hold_limit_s: f64,
        content: &mut Content<'_, '_>,
    ) -> Result<Span, MeasureError> {
        self.hold(device, hold_limit_s)?;
        let queued = self.queue(device, cache, content);
        let released = self.release(device);
        // The stream runs again whatever went wrong while it was held.
        let finished = device.synchronize();
        let stamp = self.read_stamp(device);
        if let Ok(Stamp { gave_up: true, held_s, .. }) = stamp {
            return Err(MeasureError::Deadlock { held_s });
        }
        queued?;
        released?;
        finished?;
        let elapsed_ns = device.elapsed_ns(self.start, self.end)? as f64;
        Ok(Span { elapsed_ns, sm_clock_mhz: stamp?.clock_mhz })
    }

    /// Puts everything of a span into the held stream.
    fn queue(
        &mut self,
        device: &mut dyn Device,
        cache: Cache,
        content: &mut Content<'_, '_>,
    ) -> Result<(), DeviceError> {
        if cache == Cache::Cold {
            match device.reset_persisting_l2() {
                Err(error) if !error.is_unsupported() => return Err(error),
                _ => self.flush(device)?,
            }
        }
        device.record_event(self.start, self.stream)?;
        match content {
            Content::Empty => {}
            Content::Calls(work, calls) => {
                for _ in 0..*calls {
                    work(device, self.stream)?;
                }
            }
            Content::Replay(graph) => device.launch_graph(*graph, self.stream)?,
        }
        device.record_event(self.end, self.stream)?;
        self.stamp(device)
    }

    fn read_stamp(&self, device: &mut dyn Device) -> Result<Stamp, DeviceError> {
        let mut bytes = [0; STAMP_BYTES];
        device.read(self.stamp, 0, &mut bytes)?;
        let mut words = bytes.chunks_exact(8).map(|word| {
            word.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        });
        let mut next = || words.next().unwrap_or(0);
        let (cycles, ns, gave_up, held_ns) = (next(), next(), next(), next());
        // A stamp that no block wrote is still that of the span before.
        let own = next() == u64::from(self.ticket);
        Ok(Stamp {
            clock_mhz: (own && cycles > 0 && ns > 0).then(|| cycles as f64 / ns as f64 * 1000.0),
            gave_up: own && gave_up != 0,
            held_s: held_ns as f64 / 1e9,
        })
    }
}

/// What the stamp after a span says.
struct Stamp {
    clock_mhz: Option<f64>,
    gave_up: bool,
    held_s: f64,
}
