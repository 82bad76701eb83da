//! One kernel of products on tensor cores: its inputs, its launch, and the check of every
//! accumulator that it leaves.

use assay_device::{Argument, BufferId, Device, Launch, ModuleId};
use assay_num::random::SplitMix64;

use super::matrix::{Density, Element, Matrix, accumulator_place, checksum};
use super::span::{SPAN_BYTES, Spans, launch};
use super::{ProbeError, wide};

/// Pairs of products in a round, after which accumulators start at zero again.
pub(crate) const PAIRS: u32 = 256;

/// How a kernel multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// `mma.sync`: a warp holds a tile of so many rows and columns of fragments.
    Warp { rows: usize, columns: usize },
    /// `wgmma` with A in shared memory or in registers.
    Warpgroup { a_in_registers: bool },
}

/// One kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Products {
    pub element: Element,
    pub density: Density,
    pub shape: Shape,
    /// Warps of a block.
    pub warps: u32,
}

impl Products {
    /// The kernel's name.
    pub(crate) fn symbol(&self) -> String {
        let element = self.element.name();
        let sparse = self.density == Density::Sparse;
        match self.shape {
            Shape::Warp { rows, columns } => {
                let sparse = if sparse { "_sparse" } else { "" };
                format!("mma_{element}{sparse}_{rows}x{columns}")
            }
            Shape::Warpgroup { a_in_registers, .. } => {
                let sparse = if sparse { "sparse_" } else { "" };
                let place = if a_in_registers { "registers" } else { "shared" };
                format!("wgmma_{sparse}{element}_{place}")
            }
        }
    }

    /// Words of a thread's accumulators.
    fn accumulators(&self) -> usize {
        match self.shape {
            Shape::Warp { rows, columns } => rows * columns * 4 * self.element.words(),
            Shape::Warpgroup { .. } => wide::ACCUMULATORS,
        }
    }

    /// Threads after which accumulators repeat: all warps, or warpgroups, multiply the same.
    fn period(&self) -> usize {
        match self.shape {
            Shape::Warp { .. } => 32,
            Shape::Warpgroup { .. } => 128,
        }
    }

    /// Operations of one block in one round; a sparse product counts as the dense one.
    pub(crate) fn operations(&self, pairs: u32) -> f64 {
        let depth = self.element.depth() * self.density.times();
        let (products, warps) = match self.shape {
            Shape::Warp { rows, columns } => (2 * rows * columns * 16 * 8, self.warps),
            Shape::Warpgroup { .. } => (2 * wide::STAGES * 64 * wide::COLUMNS, self.warps / 4),
        };
        2.0 * (products * depth) as f64 * f64::from(pairs) * f64::from(warps)
    }
}

/// The matrices of one kernel: of every stage or row of fragments A0 and A1, of every stage or
/// column of fragments B.
pub(crate) struct Inputs {
    pub a: [Vec<Matrix>; 2],
    pub b: Vec<Matrix>,
}

impl Inputs {
    pub(crate) fn random(products: &Products, seed: u64) -> Inputs {
        let mut random = SplitMix64::new(seed).fork(&products.symbol());
        let (rows, fragments, columns, others) = match products.shape {
            Shape::Warp { rows, columns } => (16, rows, 8, columns),
            Shape::Warpgroup { .. } => (64, wide::STAGES, wide::COLUMNS, wide::STAGES),
        };
        let (element, depth) = (products.element, products.element.depth());
        let mut first = Vec::new();
        let mut second = Vec::new();
        for _ in 0..fragments {
            let a = Matrix::random(element, rows, depth, &mut random);
            second.push(a.counterpart(&mut random));
            first.push(a);
        }
        let depth = depth * products.density.times();
        let b = (0..others).map(|_| Matrix::random(element, columns, depth, &mut random));
        let b = b.collect();
        Inputs { a: [first, second], b }
    }

    /// The fragments of `mma.sync` in the kernel's order.
    fn fragments(&self) -> Vec<u32> {
        let a = self.a.iter().flatten().flat_map(|a| a.fragment_a(0));
        a.chain(self.b.iter().flat_map(Matrix::fragment_b)).collect()
    }

    /// The accumulators of one period of threads after `pairs` pairs, thread by thread.
    ///
    /// # Errors
    /// If one could grow past what it holds exactly.
    fn expected(&self, products: &Products, pairs: u32) -> Result<Vec<u32>, ProbeError> {
        let mut registers = Vec::new();
        for thread in 0..products.period() {
            for index in 0..products.accumulators() {
                registers.push(self.accumulator(products, thread, index, i64::from(pairs))?);
            }
        }
        Ok(registers)
    }

    fn accumulator(
        &self,
        products: &Products,
        thread: usize,
        index: usize,
        pairs: i64,
    ) -> Result<u32, ProbeError> {
        let words = products.element.words();
        let (index, word) = (index / words, index % words);
        let (stages, row, column) = match products.shape {
            Shape::Warp { columns, .. } => {
                let (row, column) = accumulator_place(thread, index % 4);
                let (i, j) = (index / 4 / columns, index / 4 % columns);
                (vec![(i, j)], row, column)
            }
            Shape::Warpgroup { .. } => {
                let (row, column) = wide::accumulator_place(thread, index);
                ((0..wide::STAGES).map(|stage| (stage, stage)).collect(), row, column)
            }
        };
        let (mut sum, mut most) = (0, 0);
        for (i, j) in stages {
            let product =
                |half: usize| self.a[half][i].dot(row, &self.b[j], column, products.density);
            let (first, second) = (product(0), product(1));
            sum += first + second;
            most += first.abs();
        }
        let most = most + pairs * sum.abs();
        if most >= products.element.accumulator_limit() {
            let reason = format!("an accumulator may reach {most}, which it does not hold exactly");
            return Err(ProbeError::Wrong(reason));
        }
        Ok((products.element.register(pairs * sum) >> (32 * word)) as u32)
    }
}

/// A kernel with its buffers on a device, ready to be launched.
pub(crate) struct Bench {
    products: Products,
    module: ModuleId,
    symbol: String,
    blocks: u32,
    inputs: Inputs,
    accumulators: BufferId,
    sums: BufferId,
    spans: BufferId,
    fragments: BufferId,
    image: Option<(BufferId, wide::Image)>,
}

impl Bench {
    pub(crate) fn new(
        device: &mut dyn Device,
        module: ModuleId,
        products: Products,
        blocks: u32,
        seed: u64,
    ) -> Result<Bench, ProbeError> {
        let inputs = Inputs::random(&products, seed);
        let threads = u64::from(blocks) * u64::from(products.warps) * 32;
        let image = match products.shape {
            Shape::Warp { .. } => None,
            Shape::Warpgroup { .. } => {
                let image = wide::Image::of(&inputs, &products);
                Some((upload(device, &image.bytes)?, image))
            }
        };
        let fragments = match products.shape {
            Shape::Warp { .. } => inputs.fragments(),
            Shape::Warpgroup { .. } => wide::fragments(&inputs),
        };
        let fragments: Vec<u8> = fragments.iter().flat_map(|word| word.to_le_bytes()).collect();
        Ok(Bench {
            products,
            module,
            symbol: products.symbol(),
            blocks,
            accumulators: device.allocate_bare(threads * 4 * products.accumulators() as u64)?,
            sums: device.allocate_bare(threads * 4)?,
            spans: device.allocate_bare(u64::from(blocks) * SPAN_BYTES)?,
            fragments: upload(device, &fragments)?,
            image,
            inputs,
        })
    }

    /// Runs `rounds` rounds of `pairs` pairs.
    pub(crate) fn run(
        &self,
        device: &mut dyn Device,
        rounds: u32,
        pairs: u32,
    ) -> Result<Spans, ProbeError> {
        let mut arguments = vec![
            Argument::Buffer(self.accumulators),
            Argument::Buffer(self.sums),
            Argument::Buffer(self.spans),
        ];
        let mut shared_bytes = 0;
        if let Some((buffer, image)) = &self.image {
            shared_bytes = image.bytes.len() as u32;
            arguments.extend([Argument::Buffer(*buffer), Argument::u32(shared_bytes)]);
        }
        arguments.push(Argument::Buffer(self.fragments));
        if let Some((_, image)) = &self.image {
            arguments.push(Argument::Bytes(image.places.clone()));
        }
        arguments.extend([Argument::u32(rounds), Argument::u32(pairs)]);
        let kernel = Launch {
            grid: [self.blocks, 1, 1],
            block: [32 * self.products.warps, 1, 1],
            shared_bytes,
            arguments,
            ..Launch::new(self.module, &self.symbol)
        };
        launch(device, &kernel, self.spans)
    }

    /// Makes the results of the runs so far unlike any: those that are checked are the next run's.
    pub(crate) fn forget(&self, device: &mut dyn Device) -> Result<(), ProbeError> {
        let threads = self.blocks as usize * self.products.warps as usize * 32;
        Ok(device.write(self.sums, 0, &vec![0; 4 * threads])?)
    }

    /// Looks at every accumulator and every checksum of the last run.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] with the first that is not what it must be.
    pub(crate) fn verify(
        &self,
        device: &mut dyn Device,
        rounds: u32,
        pairs: u32,
    ) -> Result<(), ProbeError> {
        let expected = self.inputs.expected(&self.products, pairs)?;
        let per_thread = self.products.accumulators();
        let sums: Vec<u32> = expected
            .chunks_exact(per_thread)
            .map(|registers| (0..rounds).fold(0, |sum, _| checksum(sum, registers)))
            .collect();
        let threads = self.blocks as usize * self.products.warps as usize * 32;
        let found = read_words(device, self.accumulators, threads * per_thread)?;
        self.compare("accumulator", &found, &expected)?;
        let found = read_words(device, self.sums, threads)?;
        self.compare("checksum", &found, &sums)
    }

    fn compare(&self, what: &str, found: &[u32], expected: &[u32]) -> Result<(), ProbeError> {
        let pairs = found.iter().zip(expected.iter().cycle());
        let wrong = pairs.enumerate().find(|(_, (found, expected))| found != expected);
        let Some((index, (found, expected))) = wrong else { return Ok(()) };
        let per_thread = expected_per_thread(what, self.products.accumulators());
        let show = |register: u32| match what {
            "accumulator" if self.products.element.words() == 1 => {
                self.products.element.accumulated(u64::from(register)).to_string()
            }
            _ => format!("{register:#010x}"),
        };
        Err(ProbeError::Wrong(format!(
            "{} left {} and not {} in {what} {} of thread {}: not every product was made, or not \
             rightly",
            self.symbol,
            show(*found),
            show(*expected),
            index % per_thread,
            index / per_thread,
        )))
    }

    /// Gives the buffers back.
    pub(crate) fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        let image = self.image.map(|(buffer, _)| buffer);
        let all = [self.accumulators, self.sums, self.spans, self.fragments];
        for buffer in all.into_iter().chain(image) {
            device.free(buffer)?;
        }
        Ok(())
    }
}

fn expected_per_thread(what: &str, accumulators: usize) -> usize {
    if what == "checksum" { 1 } else { accumulators }
}

/// A buffer with these bytes.
pub(crate) fn upload(device: &mut dyn Device, bytes: &[u8]) -> Result<BufferId, ProbeError> {
    let buffer = device.allocate_bare(bytes.len() as u64)?;
    device.write(buffer, 0, bytes)?;
    Ok(buffer)
}

/// The first words of a buffer.
pub(crate) fn read_words(
    device: &mut dyn Device,
    buffer: BufferId,
    count: usize,
) -> Result<Vec<u32>, ProbeError> {
    let mut bytes = vec![0; 4 * count];
    device.read(buffer, 0, &mut bytes)?;
    let (words, _) = bytes.as_chunks::<4>();
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}
