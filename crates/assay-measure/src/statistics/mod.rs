//! Statistics of samples that are skewed, correlated, and now and then wrong.
//!
//! Everything here is made of order statistics and of resampling: no sample is taken for a draw
//! of a normal distribution, and none for independent of its neighbours.

mod bootstrap;
mod correlation;
mod order;
mod settle;

pub use bootstrap::{RESAMPLES, block_interval};
pub use correlation::{block_length, effective_samples, rank_correlation};
pub use order::{median, median_interval, midmean, quantile, sorted};
pub use settle::Noise;
