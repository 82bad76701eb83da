//! What work buffers hold: words that look random, whose sum is known without reading them, and
//! the plain kernels that fill a buffer with them and look for what differs.
//!
//! The index of a vector of 16 bytes is sent one-to-one to another below 2^bits, so over a whole
//! buffer the sum of the words is that of all numbers below 2^bits, scaled: arithmetic that no
//! kernel takes part in. A kernel that skips a tile, or reads one twice, comes to another sum.

use assay_device::{Argument, BufferId, Device, Launch, ModuleId, StreamId};

use super::{ProbeContext, ProbeError};

const PTX: &str = include_str!("../../../../kernels/measure/contents.ptx");

/// Bytes of a vector.
pub const VECTOR_BYTES: u64 = 16;

/// The multipliers of a vector's four words, and what is added to each.
const WORDS: [(u32, u32); 4] =
    [(0xC2B2_AE3D, 1), (0x27D4_EB2F, 2), (0x1656_67B1, 3), (0x9E37_79B1, 4)];

/// The contents of a buffer of 2^bits vectors; `bits` is from 4 to 31.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents {
    /// The logarithm of the number of vectors.
    pub bits: u32,
    /// What makes them differ from others of that size.
    pub seed: u32,
}

impl Contents {
    /// Contents for the largest power of two of vectors in `bytes` bytes.
    pub fn within(bytes: u64, seed: u64) -> Contents {
        let bits = (bytes / VECTOR_BYTES).max(16).ilog2().clamp(4, 31);
        Contents { bits, seed: seed as u32 }
    }

    /// Vectors of a whole buffer.
    pub fn vectors(self) -> u64 {
        1 << self.bits
    }

    /// Bytes of a whole buffer.
    pub fn bytes(self) -> u64 {
        self.vectors() * VECTOR_BYTES
    }

    /// One-to-one on the numbers below 2^bits.
    pub fn scramble(self, index: u32) -> u32 {
        let (mask, half) = ((1u32 << self.bits) - 1, self.bits >> 1);
        let x = index.wrapping_add(self.seed) & mask;
        let x = x.wrapping_mul(0x9E37_79B1) & mask;
        let x = x ^ (x >> half);
        let x = x.wrapping_mul(0x85EB_CA77) & mask;
        x ^ (x >> half)
    }

    /// The words of the vector at an index.
    pub fn vector(self, index: u32) -> [u32; 4] {
        let x = self.scramble(index);
        WORDS.map(|(times, plus)| x.wrapping_mul(times).wrapping_add(plus))
    }

    /// The sum of all words of a whole buffer, modulo 2^32.
    pub fn sum(self) -> u32 {
        let n = self.vectors();
        // The sum of all numbers below n, a power of two: its half is exact.
        let numbers = ((n / 2) as u32).wrapping_mul((n - 1) as u32);
        let sum = |total: u32, (times, plus): (u32, u32)| {
            total
                .wrapping_add(numbers.wrapping_mul(times))
                .wrapping_add((n as u32).wrapping_mul(plus))
        };
        WORDS.into_iter().fold(0, sum)
    }

    /// The sum of the words of the first `vectors` vectors, modulo 2^32, one by one.
    pub fn sum_of_first(self, vectors: u64) -> u32 {
        let (times, plus) = WORDS.iter().fold((0u32, 0u32), |(a, b), (times, plus)| {
            (a.wrapping_add(*times), b.wrapping_add(*plus))
        });
        let whole = (vectors / self.vectors()) as u32;
        let rest = (vectors % self.vectors()) as u32;
        let add = |total: u32, index| total.wrapping_add(self.scramble(index));
        let numbers: u32 = (0..rest).fold(0, add);
        whole
            .wrapping_mul(self.sum())
            .wrapping_add(numbers.wrapping_mul(times))
            .wrapping_add(rest.wrapping_mul(plus))
    }
}

/// What every vector of a buffer should hold: one contents times a factor plus another times one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The contents, and their factor.
    pub contents: (Contents, u32),
    /// The seed of other contents of that size, and their factor.
    pub more: (u32, u32),
}

impl Expected {
    /// Just these contents.
    pub fn just(contents: Contents) -> Expected {
        Expected { contents: (contents, 1), more: (0, 0) }
    }
}

/// The kernels that fill and check, loaded.
#[derive(Clone, Copy, Debug)]
pub struct Filler {
    module: ModuleId,
    word: BufferId,
    blocks: u32,
}

impl Filler {
    /// Loads them.
    ///
    /// # Errors
    /// The device's refusal.
    pub fn new(context: &mut ProbeContext<'_>) -> Result<Filler, ProbeError> {
        let module = context.load("contents.ptx", PTX)?;
        let word = context.device.allocate_bare(4)?;
        let blocks = context.multiprocessors().min(1024) * 8;
        Ok(Filler { module, word, blocks })
    }

    /// Fills a buffer with a whole contents.
    ///
    /// # Errors
    /// The device's.
    pub fn fill(
        &self,
        device: &mut dyn Device,
        buffer: BufferId,
        contents: Contents,
    ) -> Result<(), ProbeError> {
        let arguments = vec![
            Argument::Buffer(buffer),
            Argument::u64(0),
            Argument::u64(contents.vectors()),
            Argument::u32(contents.bits),
            Argument::u32(contents.seed),
        ];
        self.launch(device, "fill_random", contents, arguments)
    }

    /// How many vectors of a buffer differ from what they should hold.
    ///
    /// # Errors
    /// The device's.
    pub fn count_wrong(
        &self,
        device: &mut dyn Device,
        buffer: BufferId,
        expected: Expected,
    ) -> Result<u32, ProbeError> {
        let Expected { contents: (contents, times), more } = expected;
        device.write(self.word, 0, &[0; 4])?;
        let arguments = vec![
            Argument::Buffer(buffer),
            Argument::u64(contents.vectors()),
            Argument::u32(contents.bits),
            Argument::u32(contents.seed),
            Argument::u32(times),
            Argument::u32(more.0),
            Argument::u32(more.1),
            Argument::Buffer(self.word),
        ];
        self.launch(device, "count_wrong", contents, arguments)?;
        read_word(device, self.word)
    }

    fn launch(
        &self,
        device: &mut dyn Device,
        symbol: &str,
        contents: Contents,
        arguments: Vec<Argument>,
    ) -> Result<(), ProbeError> {
        let blocks = contents.vectors().div_ceil(256).min(u64::from(self.blocks)) as u32;
        let launch = Launch {
            grid: [blocks.max(1), 1, 1],
            block: [256, 1, 1],
            arguments,
            ..Launch::new(self.module, symbol)
        };
        device.launch(StreamId::DEFAULT, &launch)?;
        Ok(device.synchronize()?)
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// The device's.
    pub fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        device.free(self.word)?;
        Ok(device.unload(self.module)?)
    }
}

/// A 32-bit word at the start of a buffer, after everything launched so far.
pub(super) fn read_word(device: &mut dyn Device, buffer: BufferId) -> Result<u32, ProbeError> {
    let mut bytes = [0; 4];
    device.read(buffer, 0, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_place_of_its_own_and_the_sum_is_known_without_them() {
        for (bits, seed) in [(4, 0), (7, 1), (10, 12345), (13, u32::MAX)] {
            let contents = Contents { bits, seed };
            let mut places: Vec<u32> = (0..1 << bits).map(|i| contents.scramble(i)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..1 << bits).collect::<Vec<u32>>(), "{contents:?}");
            let words = (0..1 << bits).flat_map(|i| contents.vector(i));
            let sum = words.fold(0u32, u32::wrapping_add);
            assert_eq!((contents.sum(), contents.sum_of_first(1 << bits)), (sum, sum));
        }
    }

    #[test]
    fn a_part_sums_to_its_own_words_and_a_skipped_tile_to_another_sum() {
        let contents = Contents { bits: 12, seed: 7 };
        let words = (0..1000).flat_map(|i| contents.vector(i));
        assert_eq!(contents.sum_of_first(1000), words.fold(0u32, u32::wrapping_add));
        let tile = |t: u32| {
            (t * 64..(t + 1) * 64).flat_map(|i| contents.vector(i)).fold(0u32, u32::wrapping_add)
        };
        assert!((0..64).all(|t| tile(t) != 0 && tile(t) != tile((t + 1) % 64)));
    }

    #[test]
    fn words_look_random() {
        let contents = Contents { bits: 20, seed: 1 };
        let ones: u32 = (0..4096).flat_map(|i| contents.vector(i)).map(u32::count_ones).sum();
        let part = f64::from(ones) / (4096.0 * 128.0);
        assert!((0.49..0.51).contains(&part), "{part} of the bits are set");
    }
}
