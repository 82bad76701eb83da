//! How to measure: what the caches hold, how often, how long, how exactly.

use crate::MeasureError;

/// What the caches hold when a timed span begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cache {
    /// Nothing of what the kernel reads: the L2 cache is flushed before every span, outside of it.
    #[default]
    Cold,
    /// Whatever the launch before left there.
    Warm,
}

/// How a kernel is to be measured. Start from [`Plan::default`] and set what differs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// What the caches hold when a span begins. With several launches in a span only the first
    /// finds it so.
    pub cache: Cache,
    /// Whether the launches are captured once and replayed as a graph. What is measured then is
    /// the period: from one launch to the next, without the flushes between them.
    pub graph: bool,
    /// Calls of the work in one timed span; the duration is divided by it.
    pub launches_per_sample: u32,
    /// Samples without which nothing ends.
    pub least_samples: u32,
    /// Samples after which all ends.
    pub most_samples: u32,
    /// Wall time after which all ends, in seconds.
    pub time_limit_s: f64,
    /// Calls before the first sample: they load code and fill caches.
    pub warm_up_launches: u32,
    /// The half width of the median's interval, over the median, at which to stop.
    pub interval_rel: f64,
    /// The confidence of every interval.
    pub confidence: f64,
    /// How far a sample's clock may lie from the others', over their clock, before it is rejected.
    pub clock_tolerance_rel: f64,
    /// How long the stream may be held while work is put into it, in seconds.
    pub hold_limit_s: f64,
    /// The seed of every random choice (the bootstrap's).
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            cache: Cache::Cold,
            graph: false,
            launches_per_sample: 1,
            least_samples: 20,
            most_samples: 2000,
            time_limit_s: 2.0,
            warm_up_launches: 3,
            interval_rel: 0.002,
            confidence: 0.95,
            clock_tolerance_rel: 0.01,
            hold_limit_s: 5.0,
            seed: 1,
        }
    }
}

/// Launches that the queue of a held stream surely takes.
const MOST_LAUNCHES_HELD: u32 = 512;

impl Plan {
    /// As the default, for kernels that find their data in the cache.
    #[must_use]
    pub fn warm() -> Plan {
        Plan { cache: Cache::Warm, ..Plan::default() }
    }

    /// Refuses a plan that no device can carry out.
    ///
    /// # Errors
    /// [`MeasureError::Plan`].
    pub fn check(&self) -> Result<(), MeasureError> {
        let wrong = |reason: &str| Err(MeasureError::Plan { reason: reason.to_owned() });
        let in_unit = |value: f64| value > 0.0 && value < 1.0;
        if self.launches_per_sample == 0 {
            return wrong("a span needs at least one launch");
        }
        if self.launches_per_sample > MOST_LAUNCHES_HELD {
            return wrong("a span takes at most 512 launches");
        }
        if self.least_samples < 2 || self.most_samples < self.least_samples {
            return wrong("the least number of samples is 2, and the most is no smaller than it");
        }
        if !(self.time_limit_s > 0.0 && self.hold_limit_s > 0.0) {
            return wrong("a time limit is a positive number of seconds");
        }
        if !(in_unit(self.confidence) && in_unit(self.clock_tolerance_rel)) {
            return wrong("a confidence and a tolerance lie between 0 and 1");
        }
        if self.interval_rel.is_nan() || self.interval_rel < 0.0 {
            return wrong("the width of an interval is not negative");
        }
        Ok(())
    }
}
