//! The search for the fastest launch configuration that is right.
//!
//! A [`Space`] is axes and constraints; a [`Subject`] checks and times one configuration; [`sweep`]
//! takes all through a gate, times what is right in rounds that the slower ones leave, and holds
//! two finals. A winner has won both; else the answer is that there is none.

mod cache;
mod engine;
mod expression;
mod space;
mod t4;

use assay_record::Configuration;

pub use cache::{Cache, CacheError, Known, key};
pub use engine::{Search, SweepPlan, sweep};
pub use expression::{Expression, ExpressionError};
pub use space::{MOST_CONFIGURATIONS, Space, SpaceError};
pub use t4::to_t4;

/// What the gate says of a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gate {
    /// Its results are right.
    Right,
    /// They are not; why.
    Wrong(String),
    /// It does not compile, load or launch; why.
    Refused(String),
}

/// Something with configurations, on a device.
pub trait Subject {
    /// Whether a configuration is right. Asked once for each before it is ever timed.
    ///
    /// # Errors
    /// What ends the whole search, such as a lost device.
    fn gate(&mut self, configuration: &Configuration) -> Result<Gate, String>;

    /// Takes about so many samples of a configuration, in nanoseconds. Fewer are no error; none is
    /// taken as a refusal.
    ///
    /// # Errors
    /// What ends the whole search.
    fn time(&mut self, configuration: &Configuration, samples: u32) -> Result<Vec<f64>, String>;
}
