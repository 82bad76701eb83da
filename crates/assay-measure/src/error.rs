//! Why a measurement could not be made, and what to do about it.

use assay_device::DeviceError;
use thiserror::Error;

/// A measurement that gives no number.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The device refused a call, or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The plan cannot be carried out on any device.
    #[error("this measurement cannot be made: {reason}")]
    Plan {
        /// What is wrong with it.
        reason: String,
    },
    /// The held stream was not released in time.
    #[error(
        "possible deadlock: the stream was held back for {held_s:.1} s while work was put into it"
    )]
    Deadlock {
        /// How long the stream was held, in seconds.
        held_s: f64,
    },
    /// The time between the two events is that of nothing at all.
    #[error(
        "nothing was measured: the span of {span_ns:.0} ns is that of an empty one \
         ({empty_ns:.0} ns)"
    )]
    NoWork {
        /// The median span, in nanoseconds.
        span_ns: f64,
        /// The median span with nothing in it, in nanoseconds.
        empty_ns: f64,
    },
    /// No sample was left to say anything.
    #[error("no sample could be kept: {reason}")]
    NoSamples {
        /// Why.
        reason: String,
    },
}

impl MeasureError {
    /// What to do next, where there is something to say beyond the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            MeasureError::Device(error) => error.hint(),
            MeasureError::Deadlock { .. } => Some(
                "what is timed must only launch: it may not wait for the device, copy to or from \
                 it, or launch more than the device's queue takes (about 1000)"
                    .to_owned(),
            ),
            MeasureError::NoWork { .. } => Some(
                "see that the kernel is launched, on the stream that was handed over, and that \
                 its grid is not empty"
                    .to_owned(),
            ),
            MeasureError::Plan { .. } | MeasureError::NoSamples { .. } => None,
        }
    }
}
