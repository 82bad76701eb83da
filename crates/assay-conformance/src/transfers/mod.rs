//! Bulk copies and tensor maps, seen whole: each transfer runs in a few blocks and shows all that
//! it left in both memories.
//!
//! A form of `cp.async.bulk.tensor` says little: what a copy does is in its map. So transfers are a
//! list of their own, by what a map may say, with a record of their own beside the one of forms.

mod kernel;
mod list;
mod plain;

use assay_device::{
    Allocation, Argument, Device, DeviceError, Image, Launch, Schedule, StreamId, TensorMap,
};
use assay_ptx::Type;
use serde::{Deserialize, Serialize};

use crate::values::{Input, Limit, operands};

pub use list::transfers;

/// Bytes of shared memory that a block shows.
pub(crate) const TILE: usize = 4096;
/// Bytes of the tensor.
pub(crate) const TENSOR: usize = 32 << 10;

/// One copy, in every block of a launch.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// What is copied how, in words: the form and what its map says.
    pub name: String,
    /// The instructions that copy and wait, in one thread; see [`kernel`].
    body: String,
    /// The map, over the tensor.
    map: TensorMap,
    /// The kernel makes the map itself, rather than getting it as a parameter.
    made: bool,
    /// The first block's coordinates, and how they move from block to block.
    start: [i32; 5],
    step: [i32; 5],
    blocks: u32,
    /// Blocks of a cluster.
    cluster: u32,
    /// What tensor and tiles hold.
    content: Type,
}

/// What an H200 gave for a transfer.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TransferEntry {
    /// The transfer's name.
    pub transfer: String,
    /// A digest of all bytes.
    pub digest: String,
    /// Why there are none: the device's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The bytes, in hexadecimal, where a device and the emulator differed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

impl Transfer {
    /// The kernel, as a module of its own.
    pub fn text(&self) -> String {
        kernel::text(self)
    }

    /// Runs the transfer and gives the bytes of the tensor and of all tiles behind it.
    ///
    /// # Errors
    /// What the device answers.
    pub fn run(&self, device: &mut dyn Device, schedule: Schedule) -> Result<Vec<u8>, DeviceError> {
        let module = device.load(&Image::ptx("transfer.ptx", self.text()))?;
        let tiles = TILE * self.blocks as usize;
        let sizes = [TENSOR, tiles, tiles, 128 * self.blocks as usize];
        let mut buffers = Vec::new();
        for size in sizes {
            buffers.push(device.allocate(&Allocation::new(size as u64))?);
        }
        for (seed, &(buffer, size)) in
            [(buffers[0], TENSOR), (buffers[1], tiles)].iter().enumerate()
        {
            device.write(buffer, 0, &content(self.content, size, seed as u64))?;
        }
        let mut arguments: Vec<Argument> = buffers.iter().map(|&b| Argument::Buffer(b)).collect();
        arguments.push(device.tensor_map(buffers[0], &self.map)?);
        let launch = Launch {
            grid: [self.blocks, 1, 1],
            cluster: [self.cluster, 1, 1],
            block: [kernel::THREADS, 1, 1],
            arguments,
            schedule,
            ..Launch::new(module, kernel::NAME)
        };
        device.launch(StreamId::DEFAULT, &launch)?;
        device.synchronize()?;
        let mut bytes = vec![0; TENSOR + tiles];
        device.read(buffers[0], 0, &mut bytes[..TENSOR])?;
        device.read(buffers[2], 0, &mut bytes[TENSOR..])?;
        for buffer in buffers {
            device.free(buffer)?;
        }
        device.unload(module)?;
        Ok(bytes)
    }
}

/// Values of a type, the special ones among them.
fn content(ty: Type, bytes: usize, seed: u64) -> Vec<u8> {
    let size = ty.bytes() as usize;
    let words = operands(&[Input { ty, limit: Limit::Any }], bytes / size, seed + 1);
    words.iter().flat_map(|word| word.to_le_bytes()[..size].to_vec()).collect()
}

/// A digest of bytes: any change of any bit changes it.
pub fn transfer_digest(bytes: &[u8]) -> String {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 29;
    }
    format!("{state:016x}")
}
