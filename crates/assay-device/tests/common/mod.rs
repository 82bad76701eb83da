//! What the device tests share: kernels and launches of them.

#![allow(dead_code, reason = "each test file uses a part")]

use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, Image, Launch, LaunchReport, ModuleId,
    StreamId,
};

/// The kernels that the tests launch.
pub(crate) const KERNELS: &str = include_str!("kernels.ptx");

/// Loads the kernels.
pub(crate) fn load(device: &mut dyn Device) -> ModuleId {
    device
        .load(&Image::ptx("kernels.ptx", KERNELS))
        .unwrap_or_else(|error| panic!("the kernels do not load: {error}; {:?}", error.hint()))
}

/// A buffer of that many bytes, poisoned with `0xEE`.
pub(crate) fn buffer(device: &mut dyn Device, bytes: u64) -> BufferId {
    let allocation = Allocation { poison: 0xEE, ..Allocation::new(bytes) };
    device.allocate(&allocation).expect("there is memory")
}

/// Starts a launch on the default stream and waits for it.
pub(crate) fn run(
    device: &mut dyn Device,
    launch: &Launch<'_>,
) -> Result<LaunchReport, DeviceError> {
    let report = device.launch(StreamId::DEFAULT, launch)?;
    device.synchronize()?;
    Ok(report)
}

/// `fill`: writes `first`, `first + 1`, ... into `n` 32-bit words.
pub(crate) fn fill(module: ModuleId, buffer: BufferId, n: u32, first: u32) -> Launch<'static> {
    Launch {
        grid: [n.div_ceil(64).max(1), 1, 1],
        block: [64, 1, 1],
        arguments: vec![Argument::Buffer(buffer), Argument::u32(n), Argument::u32(first)],
        ..Launch::new(module, "fill")
    }
}

/// `write_at`: writes a word so many bytes behind a buffer's start.
pub(crate) fn write_at(module: ModuleId, buffer: BufferId, offset: i64) -> Launch<'static> {
    let bytes = offset.to_le_bytes().to_vec();
    Launch {
        arguments: vec![Argument::Buffer(buffer), Argument::Bytes(bytes), Argument::u32(7)],
        ..Launch::new(module, "write_at")
    }
}

/// All of a buffer as 32-bit words.
pub(crate) fn words(device: &mut dyn Device, buffer: BufferId, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; count * 4];
    device.read(buffer, 0, &mut bytes).expect("the buffer can be read");
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}
