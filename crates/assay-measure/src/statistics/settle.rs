//! Whether more samples would still change what is known of the noise.

use super::order::{quantile, sorted};

/// Looks back over which the noise must have stayed the same.
const WINDOW: usize = 8;

/// How far the noise of any look may lie from the middle of the window, over it.
const SAME_REL: f64 = 0.05;

/// The noise (interquartile range over median) at each look so far.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Noise {
    looks: Vec<f64>,
}

impl Noise {
    /// Takes note of the noise of ascending samples.
    pub fn look(&mut self, ascending: &[f64]) {
        let middle = quantile(ascending, 0.5);
        let range = quantile(ascending, 0.75) - quantile(ascending, 0.25);
        self.looks.push(if middle > 0.0 { range / middle } else { 0.0 });
    }

    /// Whether the last looks agree.
    pub fn is_settled(&self) -> bool {
        let Some(start) = self.looks.len().checked_sub(WINDOW) else { return false };
        let window = sorted(&self.looks[start..]);
        let middle = quantile(&window, 0.5);
        window.iter().all(|noise| (noise - middle).abs() <= SAME_REL * middle)
    }
}
