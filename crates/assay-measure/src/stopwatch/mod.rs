//! Times what is launched on a device, one span at a time.
//!
//! A span lies between two events. The stream is held by a kernel that waits for a word of the
//! host while everything is put into it, so that the device runs it without a gap and the cost of
//! launching is nowhere in it. Around every span one multiprocessor's clock is read in cycles and
//! in nanoseconds. What an empty span takes is measured first, in the same way, and taken off.

mod activity;
mod bracket;
mod graphs;
mod measure;
pub(crate) mod span;

use std::time::Duration;

use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, EventId, HostBufferId, HostKind, Image,
    Launch, ModuleId, StreamId,
};

use crate::MeasureError;
use crate::watch::{Gauge, Watch};
pub use bracket::Bracket;

/// The kernels around a timed one.
const TIMING: &str = include_str!("../../../../kernels/measure/timing.ptx");

/// Bytes that the flush reads where the device does not say how large its L2 cache is.
const FLUSH_BYTES_UNKNOWN: u64 = 256 << 20;

/// What is timed: it launches on the stream handed over, and does nothing else.
pub type Work<'a> = dyn FnMut(&mut dyn Device, StreamId) -> Result<(), DeviceError> + 'a;

/// A stopwatch on one device. All methods take the device that it was made on.
#[derive(Debug)]
pub struct Stopwatch {
    module: ModuleId,
    stream: StreamId,
    start: EventId,
    end: EventId,
    /// What the hold leaves for the stamp.
    state: BufferId,
    /// What the stamp leaves for the host.
    stamp: BufferId,
    hold: Hold,
    flush: Flush,
    /// Of the last hold.
    ticket: u32,
    multiprocessors: u32,
    bracket: Bracket,
    /// What reads the board's own gauges between samples.
    pub(crate) watch: Option<Watch>,
}

/// Where the hold finds the word that releases it.
#[derive(Debug)]
enum Hold {
    /// In memory of the host, which stores it when all is queued.
    Host { buffer: HostBufferId, address: u64 },
    /// In memory of the device, written before: it holds nothing.
    Device(BufferId),
}

/// What is read to empty the L2 cache.
#[derive(Debug)]
struct Flush {
    buffer: Option<BufferId>,
    bytes: u64,
}

impl Stopwatch {
    /// Loads the kernels, takes the buffers and measures the empty span.
    ///
    /// # Errors
    /// [`MeasureError::Device`], and [`DeviceError::Unsupported`] in it for a device without a
    /// clock that means anything, such as the emulator.
    pub fn new(device: &mut dyn Device) -> Result<Stopwatch, MeasureError> {
        let start = device.create_event()?;
        let end = device.create_event()?;
        let module = device.load(&Image::ptx("timing.ptx", TIMING))?;
        let facts = device.timing_facts();
        let l2_bytes = facts.map_or(0, |facts| facts.l2_bytes);
        let bytes = if l2_bytes == 0 { FLUSH_BYTES_UNKNOWN } else { 2 * l2_bytes };
        let mut stopwatch = Stopwatch {
            module,
            stream: StreamId::DEFAULT,
            start,
            end,
            state: device.allocate(&Allocation::new(6 * 8))?,
            stamp: device.allocate(&Allocation::new(5 * 8))?,
            hold: Hold::new(device)?,
            flush: Flush { buffer: None, bytes: bytes & !15 },
            ticket: 0,
            multiprocessors: device.facts().multiprocessors,
            bracket: Bracket::default(),
            watch: None,
        };
        stopwatch.bracket = bracket::calibrate(&mut stopwatch, device)?;
        Ok(stopwatch)
    }

    /// Has a gauge read between samples, from now on: once before the first and once after the
    /// last, and between them no sooner than `every` after the reading before, nor before nine
    /// times what that one took. With a duration of zero it is read at every sample.
    pub fn watch(&mut self, gauge: Box<dyn Gauge>, every: Duration) {
        self.watch = Some(Watch::new(gauge, every));
    }

    /// What an empty span takes, and the timer's step.
    pub fn bracket(&self) -> &Bracket {
        &self.bracket
    }

    /// Whether a held stream hides the cost of launching.
    pub fn holds(&self) -> bool {
        matches!(self.hold, Hold::Host { .. })
    }

    /// The stream that all is launched on.
    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// Whatever the device still has to say of earlier work.
    pub fn free(self, device: &mut dyn Device) -> Result<(), DeviceError> {
        device.synchronize()?;
        match self.hold {
            Hold::Host { buffer, .. } => device.free_host(buffer)?,
            Hold::Device(buffer) => device.free(buffer)?,
        }
        for buffer in [Some(self.state), Some(self.stamp), self.flush.buffer].into_iter().flatten()
        {
            device.free(buffer)?;
        }
        device.destroy_event(self.start)?;
        device.destroy_event(self.end)?;
        device.unload(self.module)
    }

    /// Keeps the stream from running what comes next, until it is released.
    fn hold(&mut self, device: &mut dyn Device, limit_s: f64) -> Result<(), DeviceError> {
        self.ticket = self.ticket.wrapping_add(1).max(1);
        let flag = match self.hold {
            Hold::Host { address, .. } => Argument::u64(address),
            Hold::Device(buffer) => {
                device.write(buffer, 0, &self.ticket.to_le_bytes())?;
                Argument::Buffer(buffer)
            }
        };
        let limit_ns = (limit_s * 1e9) as u64;
        let arguments = vec![
            flag,
            Argument::u32(self.ticket),
            Argument::u64(limit_ns),
            Argument::Buffer(self.state),
        ];
        device.launch(self.stream, &Launch { arguments, ..Launch::new(self.module, "hold") })?;
        Ok(())
    }

    /// Lets the stream run.
    fn release(&self, device: &mut dyn Device) -> Result<(), DeviceError> {
        match self.hold {
            Hold::Host { buffer, .. } => device.store_host_word(buffer, 0, self.ticket),
            Hold::Device(_) => Ok(()),
        }
    }

    /// Puts a flush of the L2 cache into the stream.
    fn flush(&mut self, device: &mut dyn Device) -> Result<(), DeviceError> {
        let Some(buffer) = self.flush.buffer else { return Ok(()) };
        let arguments = vec![
            Argument::Buffer(buffer),
            Argument::u64(self.flush.bytes / 16),
            Argument::Buffer(self.state),
        ];
        let launch = Launch {
            grid: [self.multiprocessors.max(1) * 4, 1, 1],
            block: [512, 1, 1],
            arguments,
            ..Launch::new(self.module, "flush")
        };
        device.launch(self.stream, &launch)?;
        Ok(())
    }

    /// Takes the buffer that a flush reads, once.
    pub(crate) fn prepare_flush(&mut self, device: &mut dyn Device) -> Result<(), DeviceError> {
        if self.flush.buffer.is_none() {
            let buffer = device.allocate_bare(self.flush.bytes)?;
            match device.fill(self.stream, buffer, 0, self.flush.bytes, 0) {
                Err(error) if !error.is_unsupported() => return Err(error),
                _ => self.flush.buffer = Some(buffer),
            }
        }
        Ok(())
    }

    /// Puts the second reading of the clock into the stream.
    fn stamp(&self, device: &mut dyn Device) -> Result<(), DeviceError> {
        let arguments = vec![Argument::Buffer(self.state), Argument::Buffer(self.stamp)];
        let grid = [self.multiprocessors.max(1) * 2, 1, 1];
        let launch = Launch { grid, arguments, ..Launch::new(self.module, "stamp") };
        device.launch(self.stream, &launch)?;
        Ok(())
    }
}

impl Hold {
    fn new(device: &mut dyn Device) -> Result<Hold, DeviceError> {
        if !device.timing_facts().is_some_and(|facts| facts.asynchronous) {
            return Ok(Hold::Device(device.allocate(&Allocation::new(4))?));
        }
        match device.allocate_host(4, HostKind::Mapped) {
            Ok(buffer) => {
                let address = device.host_address(buffer)?;
                Ok(Hold::Host { buffer, address })
            }
            Err(error) if error.is_unsupported() => {
                Ok(Hold::Device(device.allocate(&Allocation::new(4))?))
            }
            Err(error) => Err(error),
        }
    }
}
