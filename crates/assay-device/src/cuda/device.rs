//! The CUDA device: handles, waiting, and what a dead context means for later calls.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::{Context, Event, Stream};
use super::driver::Driver;
use super::graph::{self, Graph, Kept};
use super::host::HostBuffer;
use super::memory::Buffer;
use super::module::{Kernel, Module, check_kind};
use super::perturb::Perturbation;
use super::transfer::{self, HostRange};
use crate::buffer::{Allocation, GuardDamage, check_range};
use crate::check::{check_launch, check_tensor_map};
use crate::device::{Device, Image};
use crate::error::DeviceError;
use crate::facts::{DeviceFacts, KernelFacts};
use crate::handle::{BufferId, EventId, GraphId, HostBufferId, ModuleId, StreamId};
use crate::host::{HostKind, check_apart};
use crate::launch::{Argument, Launch, LaunchReport};
use crate::timing::TimingFacts;
use assay_emulator::TensorMap;

/// How many kernels a fault's message names at most.
const SUSPECTS: usize = 4;

/// An NVIDIA GPU in a context of its own.
pub struct CudaDevice {
    context: Arc<Context>,
    facts: DeviceFacts,
    timing: Option<TimingFacts>,
    modules: HashMap<ModuleId, Loaded>,
    buffers: HashMap<BufferId, Buffer>,
    host: HashMap<HostBufferId, HostBuffer>,
    streams: HashMap<StreamId, Stream>,
    events: HashMap<EventId, Event>,
    graphs: HashMap<GraphId, Graph>,
    perturbation: Option<Perturbation>,
    capture: Option<Capture>,
    /// Kernels started since the device was last known to be well.
    running: Vec<String>,
    /// What the device died of.
    lost: Option<String>,
}

struct Loaded {
    module: Arc<Module>,
    kernels: HashMap<String, Arc<Kernel>>,
}

struct Capture {
    stream: StreamId,
    kept: Kept,
}

impl CudaDevice {
    /// Opens the GPU of that number, in the driver's order.
    ///
    /// # Errors
    /// [`DeviceError::DriverMissing`], [`DeviceError::DriverTooOld`],
    /// [`DeviceError::SymbolMissing`] or [`DeviceError::NoSuchDevice`].
    pub fn open(ordinal: u32) -> Result<CudaDevice, DeviceError> {
        Self::with_driver(Driver::shared()?, ordinal)
    }

    /// As [`CudaDevice::open`], with a driver's library from an unusual place. Loading runs the
    /// library's code: give only a path that you trust as you trust a program that you start.
    ///
    /// # Errors
    /// As [`CudaDevice::open`].
    pub fn open_with_library(path: &str, ordinal: u32) -> Result<CudaDevice, DeviceError> {
        Self::with_driver(Arc::new(Driver::load(&[path])?), ordinal)
    }

    fn with_driver(driver: Arc<Driver>, ordinal: u32) -> Result<CudaDevice, DeviceError> {
        let facts = driver.facts(ordinal)?;
        // A driver that does not tell one of them tells none; nothing but measuring needs them.
        let timing = driver.timing_facts(ordinal).ok();
        let context = Context::create(driver, ordinal)?;
        let stream = Stream::create(&context)?;
        Ok(CudaDevice {
            facts,
            timing,
            modules: HashMap::new(),
            buffers: HashMap::new(),
            host: HashMap::new(),
            streams: HashMap::from([(StreamId::DEFAULT, stream)]),
            events: HashMap::new(),
            graphs: HashMap::new(),
            perturbation: None,
            capture: None,
            running: Vec::new(),
            lost: None,
            context,
        })
    }

    /// Refuses a call on a dead device.
    fn alive(&self) -> Result<(), DeviceError> {
        match &self.lost {
            Some(cause) => Err(DeviceError::Lost { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Refuses a call on a dead device and during a capture.
    fn idle(&self) -> Result<(), DeviceError> {
        self.alive()?;
        match self.capture {
            Some(_) => Err(DeviceError::InvalidRequest {
                reason: "a capture is under way: only launches are allowed".to_string(),
                hint: "call end_capture first".to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Takes note of how a call into the driver went.
    fn note<T>(&mut self, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        let mut error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if let DeviceError::Fault(fault) = &mut error
            && !self.running.is_empty()
        {
            fault.description = format!("{}, in {}", fault.description, suspects(&self.running));
        }
        if error.poisons_device() {
            self.lost.get_or_insert_with(|| match &error {
                DeviceError::Lost { cause } => cause.clone(),
                other => other.to_string(),
            });
        }
        Err(error)
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        let waited = self.context.synchronize();
        self.note(waited)?;
        self.running.clear();
        Ok(())
    }

    fn buffer(&self, buffer: BufferId) -> Result<&Buffer, DeviceError> {
        self.buffers.get(&buffer).ok_or_else(|| unknown("buffer", buffer.number()))
    }

    fn stream(&self, stream: StreamId) -> Result<&Stream, DeviceError> {
        self.streams.get(&stream).ok_or_else(|| unknown("stream", stream.number()))
    }

    fn host_buffer(&self, buffer: HostBufferId) -> Result<&HostBuffer, DeviceError> {
        self.host.get(&buffer).ok_or_else(|| unknown("host buffer", buffer.number()))
    }

    fn event(&self, event: EventId) -> Result<&Event, DeviceError> {
        self.events.get(&event).ok_or_else(|| unknown("event", event.number()))
    }

    fn kernel(&mut self, module: ModuleId, symbol: &str) -> Result<Arc<Kernel>, DeviceError> {
        let loaded =
            self.modules.get_mut(&module).ok_or_else(|| unknown("module", module.number()))?;
        if let Some(kernel) = loaded.kernels.get(symbol) {
            return Ok(Arc::clone(kernel));
        }
        let found = Kernel::find(&loaded.module, symbol).map(Arc::new);
        if let Ok(kernel) = &found {
            loaded.kernels.insert(symbol.to_string(), Arc::clone(kernel));
        }
        self.note(found)
    }

    fn value(&self, argument: &Argument) -> Result<Vec<u8>, DeviceError> {
        let (buffer, offset) = match argument {
            Argument::Bytes(bytes) => return Ok(bytes.clone()),
            Argument::Buffer(buffer) => (*buffer, 0),
            Argument::BufferOffset(buffer, offset) => (*buffer, *offset),
        };
        let buffer = self.buffer(buffer)?;
        check_range(buffer.bytes(), offset, 0)?;
        Ok((buffer.address() + offset).to_le_bytes().to_vec())
    }

    fn remember(&mut self, symbol: &str) {
        if !self.running.iter().any(|running| running == symbol) {
            self.running.push(symbol.to_string());
        }
    }
}

impl Drop for CudaDevice {
    /// Nothing may be given back while the device still works with it.
    fn drop(&mut self) {
        if self.lost.is_none() && self.capture.is_none() {
            let _ = self.context.synchronize();
        }
    }
}

fn unknown(kind: &'static str, number: u64) -> DeviceError {
    DeviceError::UnknownHandle { kind, number }
}

fn check_recorded(event: &Event) -> Result<(), DeviceError> {
    if event.is_recorded() {
        return Ok(());
    }
    Err(DeviceError::InvalidRequest {
        reason: "an event has no time before it is recorded".to_string(),
        hint: "call record_event for it first".to_string(),
    })
}

fn suspects(running: &[String]) -> String {
    match running {
        [only] => only.clone(),
        several if several.len() <= SUSPECTS => format!("one of {}", several.join(", ")),
        many => {
            format!("one of {} and {} more", many[..SUSPECTS].join(", "), many.len() - SUSPECTS)
        }
    }
}

impl Device for CudaDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn load(&mut self, image: &Image) -> Result<ModuleId, DeviceError> {
        self.idle()?;
        check_kind(image)?;
        let module = Module::load(&self.context, image);
        let module = Arc::new(self.note(module)?);
        let id = ModuleId::new();
        self.modules.insert(id, Loaded { module, kernels: HashMap::new() });
        Ok(id)
    }

    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        self.idle()?;
        if !self.modules.contains_key(&module) {
            return Err(unknown("module", module.number()));
        }
        self.wait()?;
        self.modules.remove(&module);
        Ok(())
    }

    fn kernel_facts(&mut self, module: ModuleId, symbol: &str) -> Result<KernelFacts, DeviceError> {
        self.alive()?;
        Ok(self.kernel(module, symbol)?.facts().clone())
    }

    fn occupancy(
        &mut self,
        module: ModuleId,
        symbol: &str,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Option<u32>, DeviceError> {
        self.alive()?;
        let kernel = self.kernel(module, symbol)?;
        let told = kernel.occupancy(block_threads, dynamic_shared_bytes);
        self.note(told).map(Some)
    }

    fn allocate(&mut self, allocation: &Allocation) -> Result<BufferId, DeviceError> {
        self.idle()?;
        let buffer = Buffer::allocate(&self.context, allocation);
        let buffer = self.note(buffer)?;
        let id = BufferId::new();
        self.buffers.insert(id, buffer);
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        self.idle()?;
        self.buffers.remove(&buffer).map(drop).ok_or_else(|| unknown("buffer", buffer.number()))
    }

    fn write(&mut self, buffer: BufferId, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.idle()?;
        check_range(self.buffer(buffer)?.bytes(), offset, bytes.len() as u64)?;
        self.wait()?;
        let written = self.buffer(buffer)?.write(offset, bytes);
        self.note(written)
    }

    fn read(&mut self, buffer: BufferId, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.idle()?;
        check_range(self.buffer(buffer)?.bytes(), offset, bytes.len() as u64)?;
        self.wait()?;
        let read = self.buffer(buffer)?.read(offset, bytes);
        self.note(read)
    }

    fn address(&self, buffer: BufferId) -> Result<u64, DeviceError> {
        Ok(self.buffer(buffer)?.address())
    }

    fn tensor_map(&mut self, buffer: BufferId, map: &TensorMap) -> Result<Argument, DeviceError> {
        self.alive()?;
        let address = self.buffer(buffer)?.address().wrapping_add(map.address);
        check_tensor_map(&TensorMap { address, ..*map })?;
        let encoded = super::tensor::encode(&self.context, address, map);
        self.note(encoded).map(Argument::Bytes)
    }

    fn guard_damage(&mut self, buffer: BufferId) -> Result<Option<GuardDamage>, DeviceError> {
        self.idle()?;
        self.buffer(buffer)?;
        self.wait()?;
        let damage = self.buffer(buffer)?.damage();
        self.note(damage)
    }

    fn launch(
        &mut self,
        stream: StreamId,
        launch: &Launch<'_>,
    ) -> Result<LaunchReport, DeviceError> {
        self.alive()?;
        let kernel = self.kernel(launch.module, launch.symbol)?;
        check_launch(&self.facts, kernel.facts(), launch)?;
        let values: Result<Vec<_>, _> =
            launch.arguments.iter().map(|argument| self.value(argument)).collect();
        let values = values?;
        let started = kernel.launch(self.stream(stream)?, launch, &values);
        match &mut self.capture {
            Some(capture) if capture.stream == stream => {
                capture.kept.modules.push(Arc::clone(kernel.module()));
            }
            _ => self.remember(launch.symbol),
        }
        self.note(started)?;
        Ok(LaunchReport::default())
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.idle()?;
        self.wait()
    }

    fn perturb(&mut self, kind: u32) -> Result<(), DeviceError> {
        self.idle()?;
        if kind.is_multiple_of(4) {
            return Ok(());
        }
        let perturbation = if let Some(made) = self.perturbation.take() {
            made
        } else {
            let made = Perturbation::new(&self.context);
            self.note(made)?
        };
        let started = perturbation.start(kind, self.facts.multiprocessors);
        self.perturbation = Some(perturbation);
        self.note(started)
    }

    fn create_stream(&mut self) -> Result<StreamId, DeviceError> {
        self.idle()?;
        let stream = Stream::create(&self.context);
        let stream = self.note(stream)?;
        let id = StreamId::new();
        self.streams.insert(id, stream);
        Ok(id)
    }

    fn destroy_stream(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        self.idle()?;
        if stream == StreamId::DEFAULT {
            return Err(DeviceError::InvalidRequest {
                reason: "the default stream cannot be destroyed".to_string(),
                hint: "destroy only what create_stream gave".to_string(),
            });
        }
        let finished = self.stream(stream)?.synchronize();
        self.streams.remove(&stream);
        self.note(finished)
    }

    fn create_event(&mut self) -> Result<EventId, DeviceError> {
        self.idle()?;
        let event = Event::create(&self.context);
        let event = self.note(event)?;
        let id = EventId::new();
        self.events.insert(id, event);
        Ok(id)
    }

    fn destroy_event(&mut self, event: EventId) -> Result<(), DeviceError> {
        self.idle()?;
        self.events.remove(&event).map(drop).ok_or_else(|| unknown("event", event.number()))
    }

    fn record_event(&mut self, event: EventId, stream: StreamId) -> Result<(), DeviceError> {
        self.alive()?;
        self.stream(stream)?;
        let (Some(found), Some(place)) = (self.events.get_mut(&event), self.streams.get(&stream))
        else {
            return Err(unknown("event", event.number()));
        };
        let recorded = match &mut self.capture {
            Some(capture) if capture.stream == stream => {
                found.capture(place).map(|owner| capture.kept.events.push(owner))
            }
            _ => found.record(place),
        };
        self.note(recorded)
    }

    fn elapsed_ns(&mut self, start: EventId, end: EventId) -> Result<u64, DeviceError> {
        self.idle()?;
        let (start, end) = (self.event(start)?, self.event(end)?);
        check_recorded(start)?;
        check_recorded(end)?;
        let elapsed = start.until(end);
        self.note(elapsed)
    }

    fn begin_capture(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        self.idle()?;
        let begun = graph::begin(self.stream(stream)?);
        self.note(begun)?;
        self.capture = Some(Capture { stream, kept: Kept::default() });
        Ok(())
    }

    fn end_capture(&mut self, stream: StreamId) -> Result<GraphId, DeviceError> {
        self.alive()?;
        let capture = match self.capture.take() {
            Some(capture) if capture.stream == stream => capture,
            other => {
                self.capture = other;
                return Err(DeviceError::InvalidRequest {
                    reason: "no capture is under way on this stream".to_string(),
                    hint: "call begin_capture on it first".to_string(),
                });
            }
        };
        let graph = Graph::end(self.stream(stream)?, capture.kept);
        let graph = self.note(graph)?;
        let id = GraphId::new();
        self.graphs.insert(id, graph);
        Ok(id)
    }

    fn launch_graph(&mut self, graph: GraphId, stream: StreamId) -> Result<(), DeviceError> {
        self.idle()?;
        let found = self.graphs.get(&graph).ok_or_else(|| unknown("graph", graph.number()))?;
        let started = found.launch(self.stream(stream)?);
        self.remember("a captured graph");
        self.note(started)
    }

    fn destroy_graph(&mut self, graph: GraphId) -> Result<(), DeviceError> {
        self.idle()?;
        if !self.graphs.contains_key(&graph) {
            return Err(unknown("graph", graph.number()));
        }
        self.wait()?;
        self.graphs.remove(&graph);
        Ok(())
    }

    fn allocate_bare(&mut self, bytes: u64) -> Result<BufferId, DeviceError> {
        self.idle()?;
        let buffer = Buffer::bare(&self.context, bytes);
        let buffer = self.note(buffer)?;
        let id = BufferId::new();
        self.buffers.insert(id, buffer);
        Ok(id)
    }

    fn fill(
        &mut self,
        stream: StreamId,
        buffer: BufferId,
        offset: u64,
        bytes: u64,
        value: u8,
    ) -> Result<(), DeviceError> {
        self.alive()?;
        let to = self.buffer(buffer)?.place(offset, bytes)?;
        let filled = transfer::fill(self.stream(stream)?, to, bytes, value);
        self.note(filled)
    }

    fn copy(
        &mut self,
        stream: StreamId,
        (from, from_offset): (BufferId, u64),
        (to, to_offset): (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.alive()?;
        let from = self.buffer(from)?.place(from_offset, bytes)?;
        let to = self.buffer(to)?.place(to_offset, bytes)?;
        check_apart(from, to, bytes)?;
        let copied = transfer::copy(self.stream(stream)?, from, to, bytes);
        self.note(copied)
    }

    fn allocate_host(&mut self, bytes: u64, kind: HostKind) -> Result<HostBufferId, DeviceError> {
        self.idle()?;
        let buffer = HostBuffer::allocate(&self.context, bytes, kind);
        let buffer = self.note(buffer)?;
        let id = HostBufferId::new();
        self.host.insert(id, buffer);
        Ok(id)
    }

    fn free_host(&mut self, buffer: HostBufferId) -> Result<(), DeviceError> {
        self.idle()?;
        self.host_buffer(buffer)?;
        self.wait()?;
        self.host.remove(&buffer);
        Ok(())
    }

    fn host_bytes(&mut self, buffer: HostBufferId) -> Result<&mut [u8], DeviceError> {
        self.idle()?;
        self.host_buffer(buffer)?;
        self.wait()?;
        let found = self.host.get_mut(&buffer);
        Ok(found.ok_or_else(|| unknown("host buffer", buffer.number()))?.view())
    }

    fn host_address(&self, buffer: HostBufferId) -> Result<u64, DeviceError> {
        self.host_buffer(buffer)?.address()
    }

    fn store_host_word(
        &mut self,
        buffer: HostBufferId,
        offset: u64,
        word: u32,
    ) -> Result<(), DeviceError> {
        self.host_buffer(buffer)?.store(offset, word)
    }

    fn load_host_word(&mut self, buffer: HostBufferId, offset: u64) -> Result<u32, DeviceError> {
        self.host_buffer(buffer)?.load(offset)
    }

    fn copy_to_device(
        &mut self,
        stream: StreamId,
        (from, from_offset): (HostBufferId, u64),
        (to, to_offset): (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        // A graph could outlive the host's buffer, so that no such copy is captured.
        self.idle()?;
        let from = HostRange::new(self.host_buffer(from)?, from_offset, bytes)?;
        let to = self.buffer(to)?.place(to_offset, bytes)?;
        let copied = transfer::copy_to_device(self.stream(stream)?, from, to, bytes);
        self.note(copied)
    }

    fn copy_to_host(
        &mut self,
        stream: StreamId,
        (from, from_offset): (BufferId, u64),
        (to, to_offset): (HostBufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.idle()?;
        let from = self.buffer(from)?.place(from_offset, bytes)?;
        let to = HostRange::new(self.host_buffer(to)?, to_offset, bytes)?;
        let copied = transfer::copy_to_host(self.stream(stream)?, from, to, bytes);
        self.note(copied)
    }

    fn query(&mut self, event: EventId) -> Result<bool, DeviceError> {
        self.idle()?;
        let found = self.event(event)?;
        check_recorded(found)?;
        let reached = found.is_reached();
        self.note(reached)
    }

    fn reset_persisting_l2(&mut self) -> Result<(), DeviceError> {
        self.idle()?;
        let reset = transfer::reset_persisting(&self.context);
        self.note(reset)
    }

    fn timing_facts(&self) -> Option<TimingFacts> {
        self.timing
    }
}
