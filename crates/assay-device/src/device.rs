//! The trait that every machine behind this crate implements.

use crate::buffer::{Allocation, GuardDamage};
use crate::error::DeviceError;
use crate::facts::{DeviceFacts, KernelFacts};
use crate::handle::{BufferId, EventId, GraphId, HostBufferId, ModuleId, StreamId};
use crate::host::HostKind;
use crate::launch::{Argument, Launch, LaunchReport};
use crate::timing::TimingFacts;
use assay_emulator::{TensorMap, Watch};
use std::sync::Arc;

/// Code for a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Image {
    /// PTX text.
    Ptx {
        /// What messages call it: `row_sum.ptx`.
        name: String,
        /// The text.
        text: String,
    },
    /// An NVIDIA ELF image for one architecture.
    Cubin(Vec<u8>),
    /// An NVIDIA container of images.
    Fatbin(Vec<u8>),
}

impl Image {
    /// PTX text with the name that messages give it.
    pub fn ptx(name: impl Into<String>, text: impl Into<String>) -> Image {
        Image::Ptx { name: name.into(), text: text.into() }
    }

    /// What messages call the image.
    pub fn name(&self) -> &str {
        match self {
            Image::Ptx { name, .. } => name,
            Image::Cubin(_) => "cubin",
            Image::Fatbin(_) => "fatbin",
        }
    }
}

/// A machine that loads images, holds buffers and launches kernels.
///
/// A launch may return before the kernel has finished: only [`Device::synchronize`] and
/// [`Device::read`] say that it went well. Both wait for everything launched before them, on all
/// streams. After an error whose [`DeviceError::poisons_device`] holds, every call answers
/// [`DeviceError::Lost`].
///
/// A device may move to another thread. All its resources go with it when it is dropped.
pub trait Device: Send {
    /// Name, limits and sizes.
    fn facts(&self) -> &DeviceFacts;

    /// Loads an image.
    ///
    /// # Errors
    /// [`DeviceError::ModuleRejected`] with the line where it is known,
    /// [`DeviceError::Unsupported`] for a kind of image that the device never runs.
    fn load(&mut self, image: &Image) -> Result<ModuleId, DeviceError>;

    /// Forgets a module. Captured graphs that use it stay usable.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`].
    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError>;

    /// What the device says about a kernel.
    ///
    /// # Errors
    /// [`DeviceError::KernelNotFound`] with the names that there are,
    /// [`DeviceError::UnknownHandle`].
    fn kernel_facts(&mut self, module: ModuleId, symbol: &str) -> Result<KernelFacts, DeviceError>;

    /// How many blocks of a kernel one multiprocessor can hold at a time, as the device counts
    /// them; 0 where not even one fits. `None` where the device allots nothing that could limit
    /// them.
    ///
    /// # Errors
    /// [`DeviceError::KernelNotFound`], [`DeviceError::UnknownHandle`], and a device's refusal of
    /// such a block.
    fn occupancy(
        &mut self,
        module: ModuleId,
        symbol: &str,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Option<u32>, DeviceError> {
        let _ = (module, symbol, block_threads, dynamic_shared_bytes);
        Ok(None)
    }

    /// Allocates a poisoned buffer between two guards (see [`crate::buffer`]).
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], [`DeviceError::InvalidRequest`].
    fn allocate(&mut self, allocation: &Allocation) -> Result<BufferId, DeviceError>;

    /// Gives a buffer back.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`], for a second time too.
    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError>;

    /// Copies bytes into a buffer, after everything launched so far.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`], [`DeviceError::UnknownHandle`], and the faults of earlier
    /// launches.
    fn write(&mut self, buffer: BufferId, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies bytes out of a buffer, after everything launched so far.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn read(&mut self, buffer: BufferId, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// The device address of a buffer's first byte.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`].
    fn address(&self, buffer: BufferId) -> Result<u64, DeviceError>;

    /// An argument that holds a tensor map: 128 bytes by value, for a parameter such as
    /// `.param .align 64 .b8 map[128]`. The map's address counts from the buffer's first byte; the
    /// tensor may be larger than the buffer, which only a copy of what is not there makes an error.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`], [`DeviceError::UnknownHandle`],
    /// [`DeviceError::InvalidRequest`] or the driver's own words for a map that breaks the rules
    /// of `cuTensorMapEncodeTiled`.
    fn tensor_map(&mut self, buffer: BufferId, map: &TensorMap) -> Result<Argument, DeviceError> {
        let _ = (buffer, map);
        unsupported("tensor maps")
    }

    /// Looks for bytes around a buffer that a kernel changed. `None` says that both guards are
    /// whole. A device that faults on the write itself never finds any.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`], and the faults of earlier launches.
    fn guard_damage(&mut self, buffer: BufferId) -> Result<Option<GuardDamage>, DeviceError>;

    /// Stops every launch after so many instructions of warps, whatever the launch itself allows,
    /// where the device counts them.
    fn limit_instructions(&mut self, budget: u64) {
        let _ = budget;
    }

    /// Shows how far each launch is from now on, where the device can tell.
    fn watch(&mut self, watch: Arc<Watch>) {
        let _ = watch;
    }

    /// Checks and starts a launch.
    ///
    /// # Errors
    /// [`DeviceError::InvalidLaunch`] before anything runs, [`DeviceError::KernelNotFound`],
    /// [`DeviceError::UnknownHandle`], [`DeviceError::OutOfRange`] for an argument past its
    /// buffer's end, and on a device that runs it at once the kernel's own
    /// [`DeviceError::Fault`] or [`DeviceError::Unsupported`].
    fn launch(
        &mut self,
        stream: StreamId,
        launch: &Launch<'_>,
    ) -> Result<LaunchReport, DeviceError>;

    /// Waits for everything.
    ///
    /// # Errors
    /// The faults of earlier launches.
    fn synchronize(&mut self) -> Result<(), DeviceError>;

    /// Starts unrelated work beside the next launches, so that their blocks meet other
    /// conditions: kind 0 none, 1 occupied multiprocessors, 2 memory traffic, 3 both, and on
    /// from there with other sizes. Call it right before a launch. A device whose schedule can be
    /// chosen needs none and does nothing.
    ///
    /// # Errors
    /// The faults of earlier launches.
    fn perturb(&mut self, kind: u32) -> Result<(), DeviceError> {
        let _ = kind;
        Ok(())
    }

    /// Creates a stream.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`].
    fn create_stream(&mut self) -> Result<StreamId, DeviceError> {
        unsupported("streams")
    }

    /// Destroys a stream, after its work. [`StreamId::DEFAULT`] stays.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`], [`DeviceError::InvalidRequest`] for the default stream.
    fn destroy_stream(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        let _ = stream;
        unsupported("streams")
    }

    /// Creates an event.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`].
    fn create_event(&mut self) -> Result<EventId, DeviceError> {
        unsupported("events")
    }

    /// Destroys an event.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`].
    fn destroy_event(&mut self, event: EventId) -> Result<(), DeviceError> {
        let _ = event;
        unsupported("events")
    }

    /// Puts an event behind what is in a stream now.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`].
    fn record_event(&mut self, event: EventId, stream: StreamId) -> Result<(), DeviceError> {
        let _ = (event, stream);
        unsupported("events")
    }

    /// Waits for both events and says how long after `start` the device reached `end`, in
    /// nanoseconds, to the resolution of the device's clock (about 500 on NVIDIA GPUs).
    ///
    /// # Errors
    /// [`DeviceError::InvalidRequest`] for an event that was not recorded,
    /// [`DeviceError::UnknownHandle`], and the faults of earlier launches.
    fn elapsed_ns(&mut self, start: EventId, end: EventId) -> Result<u64, DeviceError> {
        let _ = (start, end);
        unsupported("events")
    }

    /// From now on launches on the stream are captured instead of run, and so are
    /// [`Device::fill`], [`Device::copy`] and [`Device::record_event`]. Until
    /// [`Device::end_capture`] nothing else is allowed.
    ///
    /// # Errors
    /// [`DeviceError::InvalidRequest`] if a capture is under way, [`DeviceError::Unsupported`].
    fn begin_capture(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        let _ = stream;
        unsupported("graphs")
    }

    /// Ends the capture and makes a graph of it.
    ///
    /// # Errors
    /// [`DeviceError::InvalidRequest`] if no capture is under way on the stream.
    fn end_capture(&mut self, stream: StreamId) -> Result<GraphId, DeviceError> {
        let _ = stream;
        unsupported("graphs")
    }

    /// Runs a graph's launches again.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`], and on a device that runs it at once the kernels' faults.
    fn launch_graph(&mut self, graph: GraphId, stream: StreamId) -> Result<(), DeviceError> {
        let _ = (graph, stream);
        unsupported("graphs")
    }

    /// Destroys a graph.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`].
    fn destroy_graph(&mut self, graph: GraphId) -> Result<(), DeviceError> {
        let _ = graph;
        unsupported("graphs")
    }

    /// Allocates a buffer without guards and with no promise of what it holds: for probes of
    /// many gigabytes. [`Device::guard_damage`] finds nothing around it.
    ///
    /// # Errors
    /// As [`Device::allocate`].
    fn allocate_bare(&mut self, bytes: u64) -> Result<BufferId, DeviceError> {
        self.allocate(&Allocation::new(bytes))
    }

    /// Fills part of a buffer with one byte, in the stream's order. It may return before the fill
    /// is done.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`], [`DeviceError::UnknownHandle`], [`DeviceError::Unsupported`].
    fn fill(
        &mut self,
        stream: StreamId,
        buffer: BufferId,
        offset: u64,
        bytes: u64,
        value: u8,
    ) -> Result<(), DeviceError> {
        let _ = (stream, buffer, offset, bytes, value);
        unsupported("fills in a stream")
    }

    /// Copies between buffers of the device, in the stream's order. It may return before the copy
    /// is done.
    ///
    /// # Errors
    /// As [`Device::fill`], and [`DeviceError::InvalidRequest`] for two ranges of one buffer that
    /// overlap.
    fn copy(
        &mut self,
        stream: StreamId,
        (from, from_offset): (BufferId, u64),
        (to, to_offset): (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let _ = (stream, from, from_offset, to, to_offset, bytes);
        unsupported("copies in a stream")
    }

    /// Allocates zeroed memory of the host.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] with the host's memory meant, [`DeviceError::Unsupported`].
    fn allocate_host(&mut self, bytes: u64, kind: HostKind) -> Result<HostBufferId, DeviceError> {
        let _ = (bytes, kind);
        unsupported("host buffers")
    }

    /// Gives host memory back, after all work of the device.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`], and the faults of earlier launches.
    fn free_host(&mut self, buffer: HostBufferId) -> Result<(), DeviceError> {
        let _ = buffer;
        unsupported("host buffers")
    }

    /// A host buffer's bytes, after all work of the device: never call it while a kernel waits
    /// for the host, use [`Device::store_host_word`] there.
    ///
    /// # Errors
    /// [`DeviceError::UnknownHandle`], and the faults of earlier launches.
    fn host_bytes(&mut self, buffer: HostBufferId) -> Result<&mut [u8], DeviceError> {
        let _ = buffer;
        unsupported("host buffers")
    }

    /// The address at which kernels find a host buffer of [`HostKind::Mapped`].
    ///
    /// # Errors
    /// [`DeviceError::InvalidRequest`] for another kind, [`DeviceError::UnknownHandle`].
    fn host_address(&self, buffer: HostBufferId) -> Result<u64, DeviceError> {
        let _ = buffer;
        unsupported("host buffers")
    }

    /// Stores a 32-bit word where a running kernel sees it at once. `offset` is a multiple of 4.
    /// Waits for nothing.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`], [`DeviceError::InvalidRequest`] for an offset between words or
    /// a buffer that is not [`HostKind::Mapped`], [`DeviceError::UnknownHandle`].
    fn store_host_word(
        &mut self,
        buffer: HostBufferId,
        offset: u64,
        word: u32,
    ) -> Result<(), DeviceError> {
        let _ = (buffer, offset, word);
        unsupported("host buffers")
    }

    /// Loads a 32-bit word as a running kernel has left it. `offset` is a multiple of 4. Waits for
    /// nothing.
    ///
    /// # Errors
    /// As [`Device::store_host_word`].
    fn load_host_word(&mut self, buffer: HostBufferId, offset: u64) -> Result<u32, DeviceError> {
        let _ = (buffer, offset);
        unsupported("host buffers")
    }

    /// Copies from the host to the device, in the stream's order. From pinned or mapped memory it
    /// may return before the copy is done.
    ///
    /// # Errors
    /// As [`Device::fill`].
    fn copy_to_device(
        &mut self,
        stream: StreamId,
        (from, from_offset): (HostBufferId, u64),
        (to, to_offset): (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let _ = (stream, from, from_offset, to, to_offset, bytes);
        unsupported("copies in a stream")
    }

    /// Copies from the device to the host, in the stream's order. Into pinned or mapped memory it
    /// may return before the copy is done.
    ///
    /// # Errors
    /// As [`Device::fill`].
    fn copy_to_host(
        &mut self,
        stream: StreamId,
        (from, from_offset): (BufferId, u64),
        (to, to_offset): (HostBufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let _ = (stream, from, from_offset, to, to_offset, bytes);
        unsupported("copies in a stream")
    }

    /// Whether the device has reached an event. Waits for nothing.
    ///
    /// # Errors
    /// As [`Device::elapsed_ns`].
    fn query(&mut self, event: EventId) -> Result<bool, DeviceError> {
        let _ = event;
        unsupported("events")
    }

    /// Makes lines that a kernel has asked to stay in the L2 cache ordinary ones again.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] where no line can be asked to stay.
    fn reset_persisting_l2(&mut self) -> Result<(), DeviceError> {
        unsupported("persisting lines of the L2 cache")
    }

    /// What the device says of its clocks and caches, where it has a clock that means anything.
    fn timing_facts(&self) -> Option<TimingFacts> {
        None
    }
}

fn unsupported<T>(what: &str) -> Result<T, DeviceError> {
    Err(DeviceError::Unsupported { what: what.to_string() })
}
