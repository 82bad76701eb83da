//! What a barrier of the whole grid costs, and one of a cluster.

use assay_device::{Argument, Device, Launch, ModuleId};

use super::ProbeError;
use super::products::{read_words, upload};
use super::span::{SPAN_BYTES, Spans, launch};

/// A grid whose blocks wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    pub module: ModuleId,
    pub blocks: u32,
    pub threads: u32,
    /// Blocks of a cluster that wait for each other; `None` for all blocks of the grid.
    pub cluster: Option<u32>,
}

impl Waiting {
    fn kernel<'a>(&self, symbol: &'a str, arguments: Vec<Argument>) -> Launch<'a> {
        Launch {
            grid: [self.blocks, 1, 1],
            block: [self.threads, 1, 1],
            cluster: [self.cluster.unwrap_or(1), 1, 1],
            cooperative: self.cluster.is_none(),
            arguments,
            ..Launch::new(self.module, symbol)
        }
    }

    /// Passes `steps` barriers.
    pub(crate) fn run(&self, device: &mut dyn Device, steps: u32) -> Result<Spans, ProbeError> {
        let spans = device.allocate_bare(u64::from(self.blocks) * SPAN_BYTES)?;
        let symbol = if self.cluster.is_some() { "cluster_barrier" } else { "grid_barrier" };
        let arguments = vec![Argument::Buffer(spans), Argument::u32(steps)];
        let found = launch(device, &self.kernel(symbol, arguments), spans);
        device.free(spans)?;
        found
    }

    /// Sees that no block passes a barrier before its neighbour has come to it.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] if one did.
    pub(crate) fn verify(&self, device: &mut dyn Device, steps: u32) -> Result<(), ProbeError> {
        let posts = upload(device, &vec![0; 4 * self.blocks as usize])?;
        let late = upload(device, &[0; 4])?;
        let cluster = self.cluster.is_some();
        let symbol = if cluster { "cluster_barrier_holds" } else { "grid_barrier_holds" };
        let arguments = vec![Argument::Buffer(posts), Argument::Buffer(late), Argument::u32(steps)];
        device.launch(assay_device::StreamId::DEFAULT, &self.kernel(symbol, arguments))?;
        let posted = read_words(device, posts, self.blocks as usize)?;
        let late_posts = read_words(device, late, 1)?;
        device.free(posts)?;
        device.free(late)?;
        if posted.iter().any(|post| *post != steps) {
            return Err(ProbeError::Wrong(format!("{symbol}: not every step was made")));
        }
        match late_posts.first() {
            Some(0) => Ok(()),
            _ => Err(ProbeError::Wrong(format!("{symbol}: a block passed before its neighbour"))),
        }
    }
}

/// Nanoseconds of one barrier, from a long run and a short one.
pub(crate) fn cost(long: (&Spans, u32), short: (&Spans, u32)) -> f64 {
    let steps = f64::from(long.1.saturating_sub(short.1));
    (long.0.span_ns() - short.0.span_ns()) / steps
}
