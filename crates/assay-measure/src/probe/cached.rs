//! The L2 cache and shared memory, read and written as fast as they go, and proof of what was.

use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, Launch, ModuleId, StreamId,
};

use super::contents::{Contents, Expected, Filler, VECTOR_BYTES, read_word};
use super::stream::check_sum;
use super::{ProbeContext, ProbeError};

const L2: &str = include_str!("../../../../kernels/measure/l2.ptx");
const SHARED: &str = include_str!("../../../../kernels/measure/shared.ptx");

/// Vectors of a tile for each thread of a block.
const TILE_VECTORS: u64 = 4;

/// One way to read or write a region that fits the L2 cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    /// The kernel.
    pub symbol: &'static str,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of each multiprocessor.
    pub each: u32,
    /// The region, in bytes: rounded to whole tiles.
    pub bytes: u64,
    /// Bytes that a launch moves, passing over the region: rounded up to whole tiles of each block.
    pub moves: u64,
    /// Tiles that each block leaves out: 0, but for a control that proof must catch.
    pub leaves_out: u32,
}

impl std::fmt::Display for Round {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Round { symbol, threads, each, .. } = self;
        write!(f, "{symbol} of {threads} threads, {each} blocks a multiprocessor")
    }
}

/// Every way to read the L2 cache that is worth a try.
pub fn reads(bytes: u64, moves: u64) -> Vec<Round> {
    let mut all = Vec::new();
    for symbol in ["l2_read_4", "l2_read_8", "l2_read_16"] {
        for (threads, each) in [(1024, 1), (1024, 2), (512, 4), (256, 8)] {
            all.push(Round { symbol, threads, each, bytes, moves, leaves_out: 0 });
        }
    }
    all
}

/// Every way to write it.
pub fn writes(bytes: u64, moves: u64) -> Vec<Round> {
    let shapes = [(1024, 1), (1024, 2), (512, 1), (512, 4), (256, 8), (128, 16)];
    let of =
        |(threads, each)| Round { symbol: "l2_write", threads, each, bytes, moves, leaves_out: 0 };
    shapes.map(of).to_vec()
}

/// A buffer of random words, and the kernels that go over the start of it again and again.
pub struct Rounds {
    filler: Filler,
    contents: Contents,
    buffer: BufferId,
    sum: BufferId,
    module: ModuleId,
    multiprocessors: u32,
}

/// A round as it is launched: whole tiles.
#[derive(Clone, Copy)]
struct Shape {
    blocks: u32,
    /// Tiles of the region, vectors of a tile, and tiles that each block takes.
    tiles: u32,
    tile_vectors: u64,
    count: u32,
}

impl Shape {
    /// Vectors of the region.
    fn vectors(self) -> u64 {
        u64::from(self.tiles) * self.tile_vectors
    }

    /// Tiles that the blocks take together.
    fn taken(self) -> u64 {
        u64::from(self.blocks) * u64::from(self.count)
    }
}

impl Rounds {
    /// Fills a buffer of at least `bytes` bytes.
    ///
    /// # Errors
    /// The device's.
    pub fn new(context: &mut ProbeContext<'_>, bytes: u64) -> Result<Rounds, ProbeError> {
        let contents = Contents::within(bytes.next_power_of_two(), context.seed);
        let filler = Filler::new(context)?;
        let module = context.load("l2.ptx", L2)?;
        let multiprocessors = context.multiprocessors();
        let device = &mut *context.device;
        let buffer = device.allocate_bare(contents.bytes())?;
        let sum = device.allocate_bare(4)?;
        filler.fill(device, buffer, contents)?;
        Ok(Rounds { filler, contents, buffer, sum, module, multiprocessors })
    }

    fn shape(&self, round: &Round) -> Shape {
        let tile_vectors = u64::from(round.threads) * TILE_VECTORS;
        let tile_bytes = tile_vectors * VECTOR_BYTES;
        let tiles = (round.bytes / tile_bytes).clamp(1, 1 << 24) as u32;
        let blocks = self.multiprocessors * round.each;
        let wanted = round.moves.div_ceil(tile_bytes * u64::from(blocks));
        // A kernel takes four tiles at a time.
        let count = wanted.next_multiple_of(4).clamp(4, 1 << 20) as u32;
        Shape { blocks, tiles, tile_vectors, count }
    }

    /// Bytes that a round moves, in one launch.
    pub fn bytes_moved(&self, round: &Round) -> u64 {
        let shape = self.shape(round);
        shape.taken() * shape.tile_vectors * VECTOR_BYTES
    }

    /// Launches a round once.
    ///
    /// # Errors
    /// The device's; [`DeviceError::OutOfRange`] for a region that the buffer does not hold.
    pub fn launch(
        &self,
        device: &mut dyn Device,
        stream: StreamId,
        round: &Round,
    ) -> Result<(), DeviceError> {
        let shape = self.shape(round);
        let (length, bytes) = (shape.vectors() * VECTOR_BYTES, self.contents.bytes());
        if length > bytes {
            return Err(DeviceError::OutOfRange { offset: 0, length, bytes });
        }
        let launch = Launch {
            grid: [shape.blocks, 1, 1],
            block: [round.threads, 1, 1],
            arguments: vec![
                Argument::Buffer(self.buffer),
                Argument::u32(shape.tiles),
                Argument::u32(shape.count.saturating_sub(round.leaves_out)),
                Argument::u32(self.contents.bits),
                Argument::u32(self.contents.seed),
                Argument::Buffer(self.sum),
            ],
            ..Launch::new(self.module, round.symbol)
        };
        device.launch(stream, &launch).map(|_| ())
    }

    /// Launches a round once and looks at what it did.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] where it did not read or write all that it is counted for.
    pub fn verify(&self, device: &mut dyn Device, round: &Round) -> Result<(), ProbeError> {
        device.write(self.sum, 0, &[0; 4])?;
        if round.symbol == "l2_write" {
            return self.verify_write(device, round);
        }
        self.launch(device, StreamId::DEFAULT, round)?;
        let sum = read_word(device, self.sum)?;
        // Together the blocks take tiles one after another, around and around.
        let shape = self.shape(round);
        let (passes, rest) =
            (shape.taken() / u64::from(shape.tiles), shape.taken() % u64::from(shape.tiles));
        let whole = self.contents.sum_of_first(shape.vectors());
        let part = self.contents.sum_of_first(rest * shape.tile_vectors);
        check_sum(round.symbol, sum, whole.wrapping_mul(passes as u32).wrapping_add(part))
    }

    /// Spoils the region, has it written, and looks for what is not right again.
    fn verify_write(&self, device: &mut dyn Device, round: &Round) -> Result<(), ProbeError> {
        let shape = self.shape(round);
        let taken = (shape.taken() * shape.tile_vectors).min(shape.vectors());
        let other = Contents { seed: !self.contents.seed, ..self.contents };
        self.filler.fill(device, self.buffer, other)?;
        let before = self.filler.count_wrong(device, self.buffer, Expected::just(self.contents))?;
        self.launch(device, StreamId::DEFAULT, round)?;
        device.synchronize()?;
        let after = self.filler.count_wrong(device, self.buffer, Expected::just(self.contents))?;
        self.filler.fill(device, self.buffer, self.contents)?;
        // A few vectors may have been right by chance before.
        let set_right = u64::from(before.saturating_sub(after));
        let chance = self.contents.vectors() - u64::from(before);
        if set_right + chance < taken {
            let text = format!("{} wrote {set_right} of {taken} vectors", round.symbol);
            return Err(ProbeError::Wrong(text));
        }
        Ok(())
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// The device's.
    pub fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        device.free(self.buffer)?;
        device.free(self.sum)?;
        device.unload(self.module)?;
        self.filler.free(device)
    }
}

/// Vectors that a thread of the shared-memory kernel holds, and loads in a round.
const SHARED_AROUND: u32 = 2;
const SHARED_FLIGHT: u32 = 8;

/// Shared memory, read by every block of a grid.
pub struct SharedReads {
    module: ModuleId,
    sum: BufferId,
    cycles: BufferId,
    contents: Contents,
    blocks: u32,
    /// Rounds that every block leaves out: 0, but for a control that proof must catch.
    pub leaves_out: u32,
}

impl SharedReads {
    /// `each` blocks on every multiprocessor.
    ///
    /// # Errors
    /// The device's.
    pub fn new(context: &mut ProbeContext<'_>, each: u32) -> Result<SharedReads, ProbeError> {
        let module = context.load("shared.ptx", SHARED)?;
        let blocks = context.multiprocessors() * each.max(1);
        let contents = Contents { bits: 11, seed: context.seed as u32 };
        let sum = context.device.allocate_bare(4)?;
        let cycles = context.device.allocate(&Allocation::new(u64::from(blocks) * 8))?;
        Ok(SharedReads { module, sum, cycles, contents, blocks, leaves_out: 0 })
    }

    /// Bytes that a block reads in so many rounds.
    pub fn bytes_of_block(threads: u32, rounds: u32) -> u64 {
        u64::from(threads) * u64::from(rounds) * u64::from(SHARED_FLIGHT) * VECTOR_BYTES
    }

    /// Bytes that a launch reads.
    pub fn bytes_moved(&self, threads: u32, rounds: u32) -> u64 {
        u64::from(self.blocks) * SharedReads::bytes_of_block(threads, rounds)
    }

    /// Launches it once; `threads` is at most 1024.
    ///
    /// # Errors
    /// The device's.
    pub fn launch(
        &self,
        device: &mut dyn Device,
        stream: StreamId,
        threads: u32,
        rounds: u32,
    ) -> Result<(), DeviceError> {
        let launch = Launch {
            grid: [self.blocks, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: threads * SHARED_AROUND * VECTOR_BYTES as u32,
            arguments: vec![
                Argument::u32(rounds.saturating_sub(self.leaves_out)),
                Argument::u32(self.contents.bits),
                Argument::u32(self.contents.seed),
                Argument::Buffer(self.sum),
                Argument::Buffer(self.cycles),
            ],
            ..Launch::new(self.module, "shared_read")
        };
        device.launch(stream, &launch).map(|_| ())
    }

    /// Launches it once, looks at what it read, and gives the cycles of each block.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] where it did not read all that it is counted for.
    pub fn verify(
        &self,
        device: &mut dyn Device,
        threads: u32,
        rounds: u32,
    ) -> Result<Vec<u64>, ProbeError> {
        device.write(self.sum, 0, &[0; 4])?;
        self.launch(device, StreamId::DEFAULT, threads, rounds)?;
        let sum = read_word(device, self.sum)?;
        let once = self.contents.sum_of_first(u64::from(threads * SHARED_AROUND));
        let times = self.blocks.wrapping_mul(rounds).wrapping_mul(SHARED_FLIGHT / SHARED_AROUND);
        check_sum("shared_read", sum, once.wrapping_mul(times))?;
        let mut bytes = vec![0; self.blocks as usize * 8];
        device.read(self.cycles, 0, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// The device's.
    pub fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        device.free(self.sum)?;
        device.free(self.cycles)?;
        Ok(device.unload(self.module)?)
    }
}
