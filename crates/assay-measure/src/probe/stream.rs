//! Streams through device memory: kernels, launches of each, and proof that they moved all bytes.

use assay_device::{Argument, BufferId, Device, DeviceError, Launch, ModuleId, StreamId};

use super::contents::{Contents, Expected, Filler, VECTOR_BYTES, read_word};
use super::{ProbeContext, ProbeError};

const STREAM: &str = include_str!("../../../../kernels/measure/stream.ptx");
const MORE: &str = include_str!("../../../../kernels/measure/stream_more.ptx");
const BULK: &str = include_str!("../../../../kernels/measure/stream_bulk.sm_90.ptx");

/// The kernels of [`STREAM`]; the others are in [`MORE`].
const USUAL: [&str; 13] = [
    "read_4a",
    "read_8b",
    "read_16b",
    "write_1a",
    "write_1b",
    "write_2a",
    "copy_1a",
    "copy_1b",
    "copy_2b",
    "triad_1a",
    "triad_1b",
    "gather_4a",
    "gather_8a",
];

/// What a stream does with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Motion {
    /// Loads everything once and adds it up.
    Read,
    /// Stores everything once.
    Write,
    /// Loads one buffer and stores another.
    Copy,
    /// Loads two buffers and stores a third.
    Triad,
    /// Loads everything once, vector by vector at places that jump about.
    Gather,
}

impl Motion {
    /// Bytes moved for each byte of a buffer.
    pub fn times(self) -> u64 {
        match self {
            Motion::Read | Motion::Write | Motion::Gather => 1,
            Motion::Copy => 2,
            Motion::Triad => 3,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Motion::Read => "read",
            Motion::Write => "write",
            Motion::Copy => "copy",
            Motion::Triad => "triad",
            Motion::Gather => "gather",
        }
    }

    /// Whether it stores nothing.
    pub fn only_reads(self) -> bool {
        matches!(self, Motion::Read | Motion::Gather)
    }
}

/// How many blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocks {
    /// One for each tile.
    Tile,
    /// So many for each multiprocessor, which take tiles in turn.
    Each(u32),
}

/// One way to stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// The kernel.
    pub symbol: String,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks.
    pub blocks: Blocks,
    /// Bytes of a tile, which a block moves at a time.
    pub tile_bytes: u64,
    /// Tiles in shared memory, of bulk copies; 0 for loads and stores.
    pub stages: u32,
    /// Vectors at the end that it never touches: 0, but for a control that proof must catch.
    pub leaves_out: u64,
}

impl Variant {
    fn direct(motion: Motion, flight: u32, way: char, threads: u32, blocks: Blocks) -> Variant {
        Variant {
            symbol: format!("{}_{flight}{way}", motion.name()),
            threads,
            blocks,
            tile_bytes: VECTOR_BYTES * u64::from(flight) * u64::from(threads),
            stages: 0,
            leaves_out: 0,
        }
    }

    fn bulk(each: u32, tile_bytes: u64, stages: u32) -> Variant {
        Variant {
            symbol: "read_bulk".to_owned(),
            threads: 256,
            blocks: Blocks::Each(each),
            tile_bytes,
            stages,
            leaves_out: 0,
        }
    }

    /// The copy that the driver has for everyone, which a library's copies come down to.
    fn driver_copy() -> Variant {
        Variant {
            symbol: "the driver's own copy".to_owned(),
            threads: 0,
            blocks: Blocks::Tile,
            tile_bytes: VECTOR_BYTES,
            stages: 0,
            leaves_out: 0,
        }
    }

    /// Whether it is one of those that win on the devices seen so far.
    pub fn is_usual(&self) -> bool {
        self.is_driver_copy() || self.stages > 0 || USUAL.contains(&self.symbol.as_str())
    }

    /// Whether it is a copy of the driver's and no kernel.
    fn is_driver_copy(&self) -> bool {
        self.threads == 0
    }

    fn shared_bytes(&self) -> u32 {
        self.stages * self.tile_bytes as u32
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_driver_copy() {
            return f.write_str(&self.symbol);
        }
        write!(f, "{} of {} threads, ", self.symbol, self.threads)?;
        match self.blocks {
            Blocks::Tile => write!(f, "a block a tile")?,
            Blocks::Each(n) => write!(f, "{n} blocks a multiprocessor")?,
        }
        match self.stages {
            0 => Ok(()),
            stages => write!(f, ", {stages} tiles of {} bytes", self.tile_bytes),
        }
    }
}

/// Every way to stream that is worth a try on a device of that architecture.
pub fn variants(motion: Motion, architecture: u32) -> Vec<Variant> {
    let mut all = Vec::new();
    if motion == Motion::Copy {
        all.push(Variant::driver_copy());
    }
    let flights: &[u32] = match motion {
        Motion::Read => &[1, 2, 4, 8, 16],
        Motion::Write | Motion::Triad => &[1, 2, 4],
        Motion::Copy | Motion::Gather => &[1, 2, 4, 8],
    };
    for &flight in flights {
        for way in ['a', 'b'] {
            for threads in [256, 512, 1024] {
                for blocks in [Blocks::Tile, Blocks::Each(2048 / threads)] {
                    all.push(Variant::direct(motion, flight, way, threads, blocks));
                }
            }
        }
    }
    if motion == Motion::Read && architecture >= 90 {
        let bulk = [(4, 16, 2), (2, 16, 4), (2, 8, 4), (1, 16, 8), (8, 4, 4)];
        all.extend(bulk.map(|(each, kib, stages)| Variant::bulk(each, kib << 10, stages)));
    }
    all
}

/// Buffers full of random words, and the kernels that stream through them.
pub struct Streams {
    filler: Filler,
    contents: Contents,
    buffers: [BufferId; 3],
    sum: BufferId,
    module: ModuleId,
    /// Not loaded for a quick run: a driver may take a second to compile it.
    more: Option<ModuleId>,
    bulk: Option<ModuleId>,
    multiprocessors: u32,
}

impl Streams {
    /// Fills two buffers of `bytes` bytes, a power of two, and allocates a third.
    ///
    /// # Errors
    /// The device's.
    pub fn new(context: &mut ProbeContext<'_>, bytes: u64) -> Result<Streams, ProbeError> {
        let contents = Contents::within(bytes, context.seed);
        let filler = Filler::new(context)?;
        let module = context.load("stream.ptx", STREAM)?;
        let quick = context.quick && !context.tiny;
        let more = if quick { None } else { Some(context.load("stream_more.ptx", MORE)?) };
        let bulk = match context.architecture() {
            90.. => Some(context.load("stream_bulk.sm_90.ptx", BULK)?),
            _ => None,
        };
        let multiprocessors = context.multiprocessors();
        let device = &mut *context.device;
        let mut allocate = |bytes| device.allocate_bare(bytes);
        let buffers =
            [allocate(contents.bytes())?, allocate(contents.bytes())?, allocate(contents.bytes())?];
        let sum = allocate(4)?;
        filler.fill(device, buffers[0], contents)?;
        let other = Contents { seed: Streams::other(contents), ..contents };
        filler.fill(device, buffers[1], other)?;
        Ok(Streams { filler, contents, buffers, sum, module, more, bulk, multiprocessors })
    }

    fn other(contents: Contents) -> u32 {
        contents.seed ^ 0x5851_F42D
    }

    /// Bytes that a motion moves, in one launch.
    pub fn bytes_moved(&self, motion: Motion) -> u64 {
        motion.times() * self.contents.bytes()
    }

    /// Launches a variant once.
    ///
    /// # Errors
    /// The device's; [`DeviceError::Unsupported`] for bulk copies on a device that has none.
    pub fn launch(
        &self,
        device: &mut dyn Device,
        stream: StreamId,
        variant: &Variant,
    ) -> Result<(), DeviceError> {
        let vectors = self.contents.vectors().saturating_sub(variant.leaves_out);
        let [from, _, to] = self.buffers;
        if variant.is_driver_copy() {
            return device.copy(stream, (from, 0), (to, 0), vectors * VECTOR_BYTES);
        }
        let none = |what: &str| DeviceError::Unsupported { what: what.to_owned() };
        let module = match (variant.stages, variant.is_usual()) {
            (0, true) => self.module,
            (0, false) => self.more.ok_or_else(|| none("unusual streams in a quick run"))?,
            _ => self.bulk.ok_or_else(|| none("bulk copies"))?,
        };
        let tiles = (self.contents.bytes() / variant.tile_bytes).max(1);
        let blocks = match variant.blocks {
            Blocks::Tile => tiles,
            Blocks::Each(each) => tiles.min(u64::from(each * self.multiprocessors)),
        };
        let mut arguments: Vec<Argument> = self.buffers.map(Argument::Buffer).into();
        arguments.extend([
            Argument::u64(vectors),
            Argument::u32(self.contents.bits),
            Argument::u32(self.contents.seed),
            Argument::Buffer(self.sum),
        ]);
        if variant.stages > 0 {
            let tile_bytes = variant.tile_bytes as u32;
            arguments.extend([Argument::u32(tile_bytes), Argument::u32(variant.stages)]);
        }
        let launch = Launch {
            grid: [blocks as u32, 1, 1],
            block: [variant.threads, 1, 1],
            shared_bytes: variant.shared_bytes(),
            arguments,
            ..Launch::new(module, &variant.symbol)
        };
        device.launch(stream, &launch)?;
        Ok(())
    }

    /// Launches a variant once and looks at what it did.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] where it did not read or write all that it is counted for.
    pub fn verify(
        &self,
        device: &mut dyn Device,
        motion: Motion,
        variant: &Variant,
    ) -> Result<(), ProbeError> {
        device.write(self.sum, 0, &[0; 4])?;
        let out = self.buffers[2];
        if !motion.only_reads() {
            let bytes = self.contents.bytes();
            match device.fill(StreamId::DEFAULT, out, 0, bytes, 0xA5) {
                Ok(()) | Err(DeviceError::Unsupported { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.launch(device, StreamId::DEFAULT, variant)?;
        device.synchronize()?;
        if motion.only_reads() {
            let (sum, expected) = (read_word(device, self.sum)?, self.contents.sum());
            return check_sum(&variant.symbol, sum, expected);
        }
        let more = match motion {
            Motion::Triad => (Streams::other(self.contents), 3),
            _ => (0, 0),
        };
        let expected = Expected { more, ..Expected::just(self.contents) };
        match self.filler.count_wrong(device, out, expected)? {
            0 => Ok(()),
            wrong => Err(ProbeError::Wrong(format!(
                "{} left {wrong} of {} vectors wrong",
                variant.symbol,
                self.contents.vectors()
            ))),
        }
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// The device's.
    pub fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        for buffer in self.buffers.into_iter().chain([self.sum]) {
            device.free(buffer)?;
        }
        for module in [Some(self.module), self.more, self.bulk].into_iter().flatten() {
            device.unload(module)?;
        }
        self.filler.free(device)
    }
}

/// Refuses a sum that says that not everything was read.
pub(super) fn check_sum(symbol: &str, sum: u32, expected: u32) -> Result<(), ProbeError> {
    if sum == expected {
        return Ok(());
    }
    Err(ProbeError::Wrong(format!(
        "{symbol} summed what it read to {sum:#010x} and not {expected:#010x}: it did not read \
         everything once"
    )))
}
