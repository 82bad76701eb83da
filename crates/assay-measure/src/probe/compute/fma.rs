//! Rates of fused multiply-add outside tensor cores.

use assay_device::{Argument, BufferId, Device, Launch, ModuleId};
use assay_num::random::SplitMix64;
use assay_num::{Format, Overflow, Rounding};

use super::ProbeError;
use super::products::upload;
use super::span::{SPAN_BYTES, Spans, launch};

/// Independent orbits of a thread, and steps of each in a round, as the kernel has them.
const CHAINS: usize = 8;
const STEPS: u32 = 32;

/// A type of numbers, with how many of them one operation takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pipe {
    pub format: Format,
    pub lanes: usize,
}

/// All pipes.
pub(crate) const PIPES: [Pipe; 4] = [
    Pipe { format: Format::F64, lanes: 1 },
    Pipe { format: Format::F32, lanes: 1 },
    Pipe { format: Format::F16, lanes: 2 },
    Pipe { format: Format::Bf16, lanes: 2 },
];

impl Pipe {
    /// The kernel's name.
    pub(crate) fn symbol(self) -> String {
        format!("fma_{}", self.format.name())
    }

    fn bytes(self) -> usize {
        self.format.bits() as usize / 8
    }

    /// x*x + c, rounded once. Halves are exact in double before that: orbits keep to [-2, 2].
    fn step(self, x: f64, c: f64) -> f64 {
        match self.format {
            Format::F64 => x.mul_add(x, c),
            Format::F32 => f64::from((x as f32).mul_add(x as f32, c as f32)),
            _ => self.format.round(x * x + c),
        }
    }

    fn encode(self, values: &[f64]) -> Vec<u8> {
        let size = self.bytes();
        let bits = |value: &f64| {
            self.format.encode(*value, Rounding::NearestEven, Overflow::Infinity).to_le_bytes()
        };
        values.iter().flat_map(|value| bits(value).into_iter().take(size)).collect()
    }
}

/// The kernel of one pipe with its buffers.
pub(crate) struct Orbits {
    pipe: Pipe,
    module: ModuleId,
    symbol: String,
    blocks: u32,
    threads: u32,
    /// Values where the orbits start, thread by thread, and one constant for each chain.
    starts: Vec<f64>,
    constants: Vec<f64>,
    inputs: BufferId,
    ends: BufferId,
    spans: BufferId,
}

impl Orbits {
    pub(crate) fn new(
        device: &mut dyn Device,
        module: ModuleId,
        pipe: Pipe,
        (blocks, threads): (u32, u32),
        seed: u64,
    ) -> Result<Orbits, ProbeError> {
        let mut random = SplitMix64::new(seed).fork(&pipe.symbol());
        let values = CHAINS * pipe.lanes;
        let mut draw = |count: usize, low: f64, high: f64| -> Vec<f64> {
            (0..count).map(|_| pipe.format.round(random.range(low, high))).collect()
        };
        let starts = draw(threads as usize * values, 0.1, 0.9);
        let constants = draw(values, -1.95, -1.75);
        let bytes = [pipe.encode(&starts), pipe.encode(&constants)].concat();
        let ends = u64::from(blocks) * (starts.len() * pipe.bytes()) as u64;
        Ok(Orbits {
            pipe,
            module,
            symbol: pipe.symbol(),
            blocks,
            threads,
            starts,
            constants,
            inputs: upload(device, &bytes)?,
            ends: device.allocate_bare(ends)?,
            spans: device.allocate_bare(u64::from(blocks) * SPAN_BYTES)?,
        })
    }

    /// Operations of the whole grid: a step is a product and a sum.
    pub(crate) fn operations(&self, rounds: u32) -> f64 {
        let steps = f64::from(STEPS) * f64::from(rounds) * self.starts.len() as f64;
        2.0 * steps * f64::from(self.blocks)
    }

    pub(crate) fn run(&self, device: &mut dyn Device, rounds: u32) -> Result<Spans, ProbeError> {
        let kernel = Launch {
            grid: [self.blocks, 1, 1],
            block: [self.threads, 1, 1],
            arguments: vec![
                Argument::Buffer(self.ends),
                Argument::Buffer(self.spans),
                Argument::Buffer(self.inputs),
                Argument::u32(rounds),
            ],
            ..Launch::new(self.module, &self.symbol)
        };
        launch(device, &kernel, self.spans)
    }

    /// Follows so many orbits of a block step by step and looks for their ends, and for the same
    /// ends in every block.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] with the first that ends elsewhere.
    pub(crate) fn verify(
        &self,
        device: &mut dyn Device,
        rounds: u32,
        followed: usize,
    ) -> Result<(), ProbeError> {
        let (steps, size) = (rounds.saturating_mul(STEPS), self.pipe.bytes());
        let mut found = vec![0; self.starts.len() * size * self.blocks as usize];
        device.read(self.ends, 0, &mut found)?;
        let mut blocks = found.chunks_exact(self.starts.len() * size);
        let first = blocks.next().unwrap_or_default();
        let apart = (self.starts.len() / followed.max(1)).max(1) | 1;
        for (index, start) in self.starts.iter().enumerate().step_by(apart) {
            let c = self.constants[index % self.constants.len()];
            let end = (0..steps).fold(*start, |x, _| self.pipe.step(x, c));
            if first[index * size..][..size] != self.pipe.encode(&[end]) {
                return Err(self.wrong(&format!("orbit {index}"), steps));
            }
        }
        match blocks.position(|block| block != first) {
            Some(block) => Err(self.wrong(&format!("an orbit of block {}", block + 1), steps)),
            None => Ok(()),
        }
    }

    fn wrong(&self, what: &str, steps: u32) -> ProbeError {
        let symbol = &self.symbol;
        ProbeError::Wrong(format!("{symbol}: {what} does not end where {steps} steps lead"))
    }

    pub(crate) fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        for buffer in [self.inputs, self.ends, self.spans] {
            device.free(buffer)?;
        }
        Ok(())
    }
}
