//! What a probe works with: the device, how thorough to be, and how to end without a value.

use assay_device::{Device, DeviceError, EventId, Image, ModuleId, StreamId, TimingFacts};
use assay_record::{Entry, Figure};
use thiserror::Error;

use super::Quantity;
use crate::statistics::{median, quantile, sorted};
use crate::{MeasureError, Plan, Samples, Stopwatch, Summary, Work};

/// Why a probe has no figure.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device has no such thing.
    #[error("{0}")]
    Unsupported(String),
    /// The kernel did not do what its figure would be counted from, or no steady figure came.
    #[error("{0}")]
    Wrong(String),
}

impl From<MeasureError> for ProbeError {
    fn from(error: MeasureError) -> ProbeError {
        match error {
            MeasureError::Device(error) => ProbeError::Device(error),
            other => ProbeError::Wrong(other.to_string()),
        }
    }
}

/// A device under probes.
pub struct ProbeContext<'a> {
    /// The device. Probes run alone on it.
    pub device: &'a mut dyn Device,
    /// Fewer samples and smaller buffers.
    pub quick: bool,
    /// Where random data and random orders come from.
    pub seed: u64,
    /// The smallest sizes with which a probe still does all that it does: on a device that runs
    /// its launches one instruction after another.
    pub tiny: bool,
    /// The text that the names of wanted quantities contain.
    pub only: Option<String>,
    stopwatch: Option<Stopwatch>,
    lost: Option<String>,
}

/// Samples as a rate, and what makes it doubtful.
#[derive(Clone, PartialEq, Debug)]
pub struct Rate {
    /// The rate, a second.
    pub figure: Figure,
    /// What makes it doubtful.
    pub doubts: Vec<String>,
}

impl Rate {
    /// Of samples each of which did `amount`.
    pub fn of(amount: f64, samples: &Samples) -> Rate {
        let summary = Summary::of(samples);
        let rate = |ns: f64| amount / ns * 1e9;
        let figure = Figure {
            value: rate(summary.median_ns),
            samples: summary.n as u64,
            p5: rate(summary.p95_ns),
            p95: rate(summary.p5_ns),
            sm_clock_mhz: summary.sm_clock_mhz,
        };
        Rate { figure, doubts: samples.doubts.clone() }
    }

    /// The quantity's entry, trusted as far as nothing makes it doubtful.
    pub fn entry(&self, quantity: &Quantity, proof: &str) -> Entry {
        let entry = quantity.measured(self.figure);
        if self.doubts.is_empty() {
            return entry.trusted(0.95, proof);
        }
        entry.trusted(0.5, format!("{proof}, but {}", self.doubts.join("; ")))
    }
}

impl<'a> ProbeContext<'a> {
    /// Probes of a device, short ones if `quick`.
    pub fn new(device: &'a mut dyn Device, quick: bool, seed: u64) -> ProbeContext<'a> {
        let tiny = !device.timing_facts().is_some_and(|facts| facts.asynchronous);
        ProbeContext { device, quick, seed, tiny, only: None, stopwatch: None, lost: None }
    }

    /// What the device was lost of, if it was.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Whether the quantity of that name is asked for.
    pub fn wants(&self, quantity: &Quantity) -> bool {
        self.only.as_ref().is_none_or(|text| quantity.name.contains(text.as_str()))
    }

    /// The architecture's number: 90 of `sm_90`; 0 where it has none.
    pub fn architecture(&self) -> u32 {
        self.device.facts().architecture_number().unwrap_or(0)
    }

    /// Multiprocessors, at least 1.
    pub fn multiprocessors(&self) -> u32 {
        self.device.facts().multiprocessors.max(1)
    }

    /// What the device says of its clocks and caches.
    pub fn timing(&self) -> Option<TimingFacts> {
        self.device.timing_facts()
    }

    /// The L2 cache in bytes; 32 MiB where the device does not say.
    pub fn l2_bytes(&self) -> u64 {
        self.timing().map(|facts| facts.l2_bytes).filter(|bytes| *bytes > 0).unwrap_or(32 << 20)
    }

    /// Loads PTX text.
    ///
    /// # Errors
    /// The device's refusal.
    pub fn load(&mut self, name: &str, ptx: &str) -> Result<ModuleId, ProbeError> {
        Ok(self.device.load(&Image::ptx(name, ptx))?)
    }

    /// Measures `work` with the context's own stopwatch.
    ///
    /// # Errors
    /// [`ProbeError`]; a device without a clock has no figure of any time.
    pub fn measure(&mut self, plan: &Plan, work: &mut Work<'_>) -> Result<Samples, ProbeError> {
        let mut stopwatch = match self.stopwatch.take() {
            Some(stopwatch) => stopwatch,
            None => Stopwatch::new(self.device)?,
        };
        let samples = stopwatch.measure(self.device, plan, work);
        self.stopwatch = Some(stopwatch);
        Ok(samples?)
    }

    /// A plan for work that takes about a millisecond and finds its data where it was left.
    pub fn plan(&self) -> Plan {
        let (least_samples, most_samples, time_limit_s) = match (self.tiny, self.quick) {
            (true, _) => (3, 3, 60.0),
            (false, true) => (15, 40, 0.1),
            (false, false) => (30, 200, 0.5),
        };
        let seed = self.seed;
        Plan { least_samples, most_samples, time_limit_s, seed, ..Plan::warm() }
    }

    /// The rate of `work`, which does `amount` of something each time.
    ///
    /// # Errors
    /// As [`ProbeContext::measure`].
    pub fn rate(&mut self, amount: f64, work: &mut Work<'_>) -> Result<Rate, ProbeError> {
        let plan = self.plan();
        Ok(Rate::of(amount, &self.measure(&plan, work)?))
    }

    /// The way that does most in a nanosecond, from a few launches of each; ways that the device
    /// cannot run are passed over. `work` launches a way and gives the amount that it does.
    ///
    /// # Errors
    /// The device's, and that of the last way where none runs.
    pub fn fastest<W: Clone>(
        &mut self,
        ways: &[W],
        work: &mut dyn FnMut(&mut dyn Device, &W) -> Result<f64, DeviceError>,
    ) -> Result<W, ProbeError> {
        let events = [self.device.create_event()?, self.device.create_event()?];
        let (launches, again) = match (self.tiny, self.quick) {
            (true, _) => (1, 1),
            (false, true) => (3, 9),
            (false, false) => (3, 25),
        };
        let mut found: Vec<(f64, &W)> = Vec::new();
        let mut refused = ProbeError::Unsupported("there is no way to do it here".into());
        for way in ways {
            match time(self.device, events, launches, &[way], work) {
                Ok(rates) => found.extend(rates.first().map(|rate| (*rate, way))),
                Err(error) if error.poisons_device() => return Err(error.into()),
                Err(error) => refused = error.into(),
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        // A few launches do not tell neighbours apart; the first are looked at again, in turns.
        let finals: Vec<&W> = found.iter().take(4).map(|(_, way)| *way).collect();
        let rates = time(self.device, events, again, &finals, work)?;
        let best = (0..finals.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b]));
        for event in events {
            self.device.destroy_event(event)?;
        }
        best.map(|at| finals[at].clone()).ok_or(refused)
    }

    /// The entry that `probe` makes, or the quantity's entry with the reason why it made none.
    /// Remembers a lost device.
    pub fn attempt(
        &mut self,
        quantity: &Quantity,
        probe: impl FnOnce(&mut Self) -> Result<Entry, ProbeError>,
    ) -> Entry {
        probe(self).unwrap_or_else(|error| self.refused(quantity, &error))
    }

    /// As [`ProbeContext::attempt`], for a probe that makes the entries of several quantities.
    pub fn attempt_all(
        &mut self,
        quantities: &[Quantity],
        probe: impl FnOnce(&mut Self) -> Result<Vec<Entry>, ProbeError>,
    ) -> Vec<Entry> {
        probe(self).unwrap_or_else(|error| {
            quantities.iter().map(|quantity| self.refused(quantity, &error)).collect()
        })
    }

    /// The entry of a quantity without a figure, and why; a lost device is remembered.
    pub fn refused(&mut self, quantity: &Quantity, error: &ProbeError) -> Entry {
        match error {
            ProbeError::Unsupported(reason) => quantity.unsupported(reason),
            ProbeError::Device(DeviceError::Unsupported { what }) => {
                quantity.unsupported(format!("the device has no {what}"))
            }
            ProbeError::Device(error) => {
                if error.poisons_device() {
                    self.lost.get_or_insert_with(|| error.to_string());
                }
                quantity.failed(error.to_string())
            }
            ProbeError::Wrong(reason) => quantity.failed(reason),
        }
    }
}

/// What each way does in a nanosecond: the median of a few launches, after one that is not timed.
/// The ways take turns, so that what drifts drifts for all.
fn time<W>(
    device: &mut dyn Device,
    [start, end]: [EventId; 2],
    launches: u32,
    ways: &[&W],
    work: &mut dyn FnMut(&mut dyn Device, &W) -> Result<f64, DeviceError>,
) -> Result<Vec<f64>, DeviceError> {
    let mut amounts = Vec::new();
    for way in ways {
        amounts.push(work(device, way)?);
    }
    let mut spans = vec![Vec::new(); ways.len()];
    for _ in 0..launches {
        for (way, spans) in ways.iter().zip(&mut spans) {
            device.record_event(start, StreamId::DEFAULT)?;
            work(device, way)?;
            device.record_event(end, StreamId::DEFAULT)?;
            spans.push(device.elapsed_ns(start, end)? as f64);
        }
    }
    Ok(amounts.iter().zip(&spans).map(|(amount, spans)| amount / median(spans).max(1.0)).collect())
}

/// The median of values, with their spread; of none a figure that no entry takes for measured.
pub(super) fn figure(values: &[f64], sm_clock_mhz: Option<f64>) -> Figure {
    let ascending = sorted(values);
    let at = |share| if ascending.is_empty() { f64::NAN } else { quantile(&ascending, share) };
    Figure {
        value: at(0.5),
        samples: ascending.len() as u64,
        p5: at(0.05),
        p95: at(0.95),
        sm_clock_mhz,
    }
}
