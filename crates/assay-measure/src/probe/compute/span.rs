//! The stamps that every block of a compute probe leaves: its start and end on the clock of its
//! multiprocessor and on the device's own. Rates come from them, so the cost of a launch is not in
//! a rate, and neither is a clock taken at another time.

use assay_device::{BufferId, Device, Launch, StreamId};

use super::ProbeError;
use crate::statistics;

/// Bytes of one block's stamps.
pub(crate) const SPAN_BYTES: u64 = 40;

/// One block's stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    /// Cycles of its multiprocessor at the start and at the end.
    pub cycles: [u64; 2],
    /// Nanoseconds of the device at the start and at the end.
    pub ns: [u64; 2],
    /// The multiprocessor.
    pub multiprocessor: u64,
}

/// The stamps of one launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spans(Vec<Span>);

impl Spans {
    /// Reads what `blocks` blocks left.
    pub(crate) fn read(
        device: &mut dyn Device,
        buffer: BufferId,
        blocks: u32,
    ) -> Result<Spans, ProbeError> {
        let mut bytes = vec![0; blocks as usize * SPAN_BYTES as usize];
        device.read(buffer, 0, &mut bytes)?;
        Spans::of_bytes(&bytes)
    }

    fn of_bytes(bytes: &[u8]) -> Result<Spans, ProbeError> {
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (blocks, _) = words.as_chunks::<5>();
        let span = |&[c0, c1, n0, n1, multiprocessor]: &[u64; 5]| Span {
            cycles: [c0, c1],
            ns: [n0, n1],
            multiprocessor,
        };
        let spans: Vec<Span> = blocks.iter().map(span).collect();
        let backward = |span: &Span| span.cycles[1] < span.cycles[0] || span.ns[1] < span.ns[0];
        if spans.is_empty() || spans.iter().any(backward) {
            return Err(ProbeError::Wrong("a block's clock ran backwards, or not at all".into()));
        }
        Ok(Spans(spans))
    }

    /// From the first block's start to the last block's end, in nanoseconds.
    pub(crate) fn duration_ns(&self) -> f64 {
        let start = self.0.iter().map(|span| span.ns[0]).min().unwrap_or(0);
        let end = self.0.iter().map(|span| span.ns[1]).max().unwrap_or(0);
        end.saturating_sub(start) as f64
    }

    /// The first block's start, in nanoseconds of the device.
    pub(crate) fn start_ns(&self) -> u64 {
        self.0.iter().map(|span| span.ns[0]).min().unwrap_or(0)
    }

    /// The median over blocks of the cycles between the stamps.
    pub(crate) fn cycles(&self) -> f64 {
        median(self.0.iter().map(|span| (span.cycles[1] - span.cycles[0]) as f64))
    }

    /// The median over blocks of the nanoseconds between the stamps.
    pub(crate) fn span_ns(&self) -> f64 {
        median(self.0.iter().map(|span| (span.ns[1] - span.ns[0]) as f64))
    }

    /// The median over blocks of the clock between the stamps, in MHz; NaN for no time at all.
    pub(crate) fn sm_clock_mhz(&self) -> f64 {
        median(self.0.iter().map(|span| {
            let (cycles, ns) = (span.cycles[1] - span.cycles[0], span.ns[1] - span.ns[0]);
            cycles as f64 / ns as f64 * 1e3
        }))
    }

    /// How many multiprocessors took part.
    pub(crate) fn multiprocessors(&self) -> usize {
        let mut all: Vec<u64> = self.0.iter().map(|span| span.multiprocessor).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }
}

/// Launches, waits, and reads the stamps in `spans`.
pub(crate) fn launch(
    device: &mut dyn Device,
    launch: &Launch<'_>,
    spans: BufferId,
) -> Result<Spans, ProbeError> {
    let blocks: u32 = launch.grid.iter().product();
    // Stamps that no block writes must not be read for those of the launch before.
    device.write(spans, 0, &vec![0; blocks as usize * SPAN_BYTES as usize])?;
    device.launch(StreamId::DEFAULT, launch)?;
    device.synchronize()?;
    Spans::read(device, spans, blocks)
}

/// The middle of the values, the mean of two middles; NaN for none.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The quantile, between the two nearest values; NaN for no values.
pub(crate) fn quantile(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    if all.is_empty() { f64::NAN } else { statistics::quantile(&all, part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(spans: &[[u64; 5]]) -> Vec<u8> {
        spans.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn the_clock_and_the_duration_come_from_the_stamps() {
        let spans =
            Spans::of_bytes(&bytes(&[[0, 2000, 100, 1100, 0], [50, 2050, 150, 1150, 1]])).unwrap();
        assert_eq!(spans.duration_ns(), 1050.0);
        assert_eq!(spans.cycles(), 2000.0);
        assert_eq!(spans.sm_clock_mhz(), 2000.0);
        assert_eq!(spans.multiprocessors(), 2);
    }

    #[test]
    fn a_clock_that_runs_backwards_is_refused() {
        assert!(Spans::of_bytes(&bytes(&[[5, 4, 0, 1, 0]])).is_err());
        assert!(Spans::of_bytes(&[]).is_err());
    }

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(values.into_iter()), 2.5);
        assert_eq!(quantile(values.into_iter(), 1.0), 4.0);
        assert!(median([].into_iter()).is_nan());
    }
}
