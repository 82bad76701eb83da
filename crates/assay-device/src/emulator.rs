//! The emulator as a device: PTX on this computer's own cores.
//!
//! A launch runs to its end, or to its fault, before it returns, and one device runs on one
//! thread: for more, open more. A fault leaves the device as good as before. Around every buffer
//! lies memory that belongs to nobody, so a stray access is a [`DeviceError::Fault`] with the PTX
//! line; only the few bytes that a misalignment puts in front of a buffer are the buffer's own to
//! the emulator, and hold a guard pattern instead. Images other than PTX are unsupported, and so
//! are events: there is no clock whose time would mean anything for a GPU. For tests of what
//! measures there is one that is made up, an [`EmulatedClock`].

mod clock;
mod transfer;
mod translate;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use assay_emulator::TensorModel;
use assay_emulator::{
    AllocationError, Approximation, LaunchConfig, MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK,
    Machine, MachineConfig, Program, TensorMap, Timers, Watch,
};
pub use clock::{ClockCourse, EmulatedClock};

use crate::buffer::{
    ALIGNMENT, Allocation, GuardDamage, Side, check_range, find_damage, guard_pattern,
};
use crate::check::{check_launch, check_tensor_map};
use crate::device::{Device, Image};
use crate::error::DeviceError;
use crate::facts::{DeviceFacts, KernelFacts};
use crate::handle::{BufferId, EventId, GraphId, HostBufferId, ModuleId, StreamId};
use crate::host::{HostKind, check_apart, check_mapped};
use crate::launch::{Argument, Launch, LaunchReport, Schedule};
use crate::timing::TimingFacts;
use clock::Clock;
use transfer::{HostBuffer, Transfer};
use translate::{not_compiled, refused, rejected, translate_fault};

/// What to emulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EmulatorOptions {
    /// The architecture whose rules apply: 80 for `sm_80`.
    pub architecture: u32,
    /// Whose tensor cores it has; `None` for those of the architecture.
    pub tensor_model: Option<TensorModel>,
    /// Multiprocessors: how many blocks are on the device at one time.
    pub multiprocessors: u32,
    /// Device memory, in bytes. Taken from the computer only as far as it is used.
    pub memory_bytes: u64,
    /// Where approximate instructions may end up inside their bounds: a seed, or `None` for the
    /// nearest value.
    pub approximation: Option<u64>,
    /// Which bare multiply and add pairs are fused, as a compiler may: a seed, or `None` for none.
    pub contraction: Option<u64>,
    /// Threads that one launch may use; 0 for as many as there are cores. One by default, because
    /// whoever has many cases runs them side by side, each on a device of its own.
    pub workers: u32,
    /// A made-up clock for events and timers; `None` for no events.
    pub clock: Option<EmulatedClock>,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        EmulatorOptions {
            architecture: 80,
            tensor_model: None,
            multiprocessors: MachineConfig::default().multiprocessors,
            memory_bytes: 4 << 30,
            approximation: None,
            contraction: None,
            workers: 1,
            clock: None,
        }
    }
}

/// The emulator.
pub struct EmulatorDevice {
    machine: Machine,
    clock: Option<Clock>,
    options: EmulatorOptions,
    facts: DeviceFacts,
    modules: HashMap<ModuleId, Arc<Loaded>>,
    buffers: HashMap<BufferId, Buffer>,
    streams: HashSet<StreamId>,
    host: HashMap<HostBufferId, HostBuffer>,
    graphs: HashMap<GraphId, Vec<Work>>,
    capture: Option<(StreamId, Vec<Work>)>,
    /// The budget of every launch in place of its own.
    budget: Option<u64>,
}

/// A module and what messages call it.
struct Loaded {
    name: String,
    program: Program,
}

/// A payload with `misalign` bytes of guard in front of it, in one allocation.
struct Buffer {
    base: u64,
    misalign: u64,
    bytes: u64,
}

/// What a graph runs again.
enum Work {
    Launch(Box<Ready>),
    Transfer(Transfer),
    Record(EventId),
}

/// A launch that passed every check.
struct Ready {
    module: Arc<Loaded>,
    symbol: String,
    config: LaunchConfig,
}

impl EmulatorDevice {
    /// An emulated device with nothing loaded.
    pub fn new(options: EmulatorOptions) -> Self {
        let config = MachineConfig {
            tensor_model: options.tensor_model,
            multiprocessors: options.multiprocessors,
            memory_bytes: options.memory_bytes,
            workers: options.workers,
            ..MachineConfig::of(options.architecture)
        };
        EmulatorDevice {
            facts: facts(&options, &config),
            machine: Machine::new(config),
            clock: options.clock.map(Clock::new),
            options,
            modules: HashMap::new(),
            buffers: HashMap::new(),
            streams: HashSet::from([StreamId::DEFAULT]),
            host: HashMap::new(),
            graphs: HashMap::new(),
            capture: None,
            budget: None,
        }
    }

    /// Refuses a call during a capture.
    fn idle(&self) -> Result<(), DeviceError> {
        match self.capture {
            Some(_) => Err(DeviceError::InvalidRequest {
                reason: "a capture is under way: only launches are allowed".to_string(),
                hint: "call end_capture first".to_string(),
            }),
            None => Ok(()),
        }
    }

    /// The made-up clock.
    fn clock(&mut self) -> Result<&mut Clock, DeviceError> {
        let what = "events: the emulator has no clock that means anything for a GPU";
        self.clock.as_mut().ok_or_else(|| DeviceError::Unsupported { what: what.to_string() })
    }

    fn buffer(&self, buffer: BufferId) -> Result<&Buffer, DeviceError> {
        self.buffers.get(&buffer).ok_or_else(|| unknown("buffer", buffer.number()))
    }

    fn module(&self, module: ModuleId) -> Result<&Arc<Loaded>, DeviceError> {
        self.modules.get(&module).ok_or_else(|| unknown("module", module.number()))
    }

    fn check_stream(&self, stream: StreamId) -> Result<(), DeviceError> {
        if self.streams.contains(&stream) {
            return Ok(());
        }
        Err(unknown("stream", stream.number()))
    }

    fn value(&self, argument: &Argument) -> Result<Vec<u8>, DeviceError> {
        let (buffer, offset) = match argument {
            Argument::Bytes(bytes) => return Ok(bytes.clone()),
            Argument::Buffer(buffer) => (*buffer, 0),
            Argument::BufferOffset(buffer, offset) => (*buffer, *offset),
        };
        let buffer = self.buffer(buffer)?;
        check_range(buffer.bytes, offset, 0)?;
        Ok((buffer.address() + offset).to_le_bytes().to_vec())
    }

    /// Frees a module's variables, unless a graph or the table of modules still needs them.
    fn release(&mut self, module: Arc<Loaded>) {
        if let Some(unused) = Arc::into_inner(module) {
            self.machine.unload(&unused.program);
        }
    }

    /// Checks a launch and puts it into the machine's form.
    fn ready(&self, launch: &Launch<'_>) -> Result<Ready, DeviceError> {
        let module = Arc::clone(self.module(launch.module)?);
        check_launch(&self.facts, &module.kernel_facts(launch.symbol)?, launch)
            .map_err(|error| module.with_shared_line(launch.symbol, error))?;
        if launch.cluster != [1; 3] && self.options.architecture < 90 {
            let what = format!("clusters on sm_{}; sm_90 has them", self.options.architecture);
            return Err(DeviceError::Unsupported { what });
        }
        let mut parameters = Vec::new();
        let layout = module.program.parameters(launch.symbol).unwrap_or_default();
        for (argument, place) in launch.arguments.iter().zip(layout) {
            parameters.resize(place.offset as usize, 0);
            parameters.extend(self.value(argument)?);
        }
        let (schedule, poison) = translate_schedule(launch.schedule);
        let config = LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            cooperative: launch.cooperative,
            shared_bytes: launch.shared_bytes,
            parameters,
            schedule,
            poison,
            timers: Timers::default(),
            approximation: match self.options.approximation {
                Some(seed) => Approximation::Seeded(seed),
                None => Approximation::Nearest,
            },
            contract_multiply_add: self.options.contraction,
            instruction_budget: self.budget.unwrap_or(launch.instruction_budget),
        };
        Ok(Ready { module, symbol: launch.symbol.to_string(), config })
    }
}

/// The schedule, and what shared memory and registers hold at first. The latter varies along, so
/// that a kernel that reads what it never wrote gives itself away.
fn translate_schedule(schedule: Schedule) -> (assay_emulator::Schedule, u8) {
    match schedule {
        Schedule::InOrder => (assay_emulator::Schedule::InOrder, 0x55),
        Schedule::Reversed => (assay_emulator::Schedule::Reversed, 0xAA),
        Schedule::Seeded(seed) => {
            let poison = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
            (assay_emulator::Schedule::Seeded(seed), poison)
        }
    }
}

/// Runs a launch to its end.
fn run(
    machine: &mut Machine,
    clock: Option<&mut Clock>,
    ready: &Ready,
) -> Result<LaunchReport, DeviceError> {
    let Ready { module, symbol, config } = ready;
    let fault = |fault| translate_fault(&module.name, fault);
    let statistics = match clock {
        None => machine.launch(&module.program, symbol, config).map_err(fault)?,
        Some(clock) => {
            let timers = clock.start();
            let config = LaunchConfig { timers, ..config.clone() };
            let ran = machine.launch(&module.program, symbol, &config).map_err(fault)?;
            clock.finish(timers, ran.warp_instructions);
            ran
        }
    };
    Ok(LaunchReport {
        lane_operations: Some(statistics.lane_operations),
        warp_instructions: Some(statistics.warp_instructions),
        printed: statistics.output,
    })
}

impl Buffer {
    fn address(&self) -> u64 {
        self.base + self.misalign
    }
}

impl Loaded {
    /// A refusal for too much shared memory, with the line of the largest variable there.
    fn with_shared_line(&self, symbol: &str, error: DeviceError) -> DeviceError {
        let largest = self.program.largest_shared(symbol);
        match (error, largest) {
            (DeviceError::InvalidLaunch { symbol, reason, hint }, Some((variable, line)))
                if reason.contains("shared memory") =>
            {
                let place = &self.name;
                let reason = format!("{reason}; the largest is {variable} at {place}:{line}");
                DeviceError::InvalidLaunch { symbol, reason, hint }
            }
            (error, _) => error,
        }
    }

    fn kernel_facts(&self, symbol: &str) -> Result<KernelFacts, DeviceError> {
        let (Some(resources), Some(parameters)) =
            (self.program.resources(symbol), self.program.parameters(symbol))
        else {
            let available = self.program.kernels().into_iter().map(str::to_string).collect();
            return Err(DeviceError::KernelNotFound { symbol: symbol.to_string(), available });
        };
        Ok(KernelFacts {
            registers: resources.registers,
            static_shared: resources.static_shared,
            max_threads: resources
                .max_threads
                .unwrap_or(MAX_THREADS_PER_BLOCK)
                .min(MAX_THREADS_PER_BLOCK),
            local_bytes: resources.local_bytes,
            parameter_sizes: Some(parameters.iter().map(|place| place.size as usize).collect()),
        })
    }
}

/// Memory of the device, at an aligned address.
fn allocated(machine: &mut Machine, bytes: u64) -> Result<u64, DeviceError> {
    machine.allocate(bytes, ALIGNMENT).map_err(|error| match error {
        AllocationError::OutOfMemory { available, .. } => {
            DeviceError::OutOfMemory { requested: bytes, available: Some(available) }
        }
        other => refused("allocate", &other),
    })
}

fn facts(options: &EmulatorOptions, config: &MachineConfig) -> DeviceFacts {
    DeviceFacts {
        name: "emulator".to_string(),
        backend: "emulator".to_string(),
        architecture: format!("sm_{}", options.architecture),
        driver: None,
        multiprocessors: options.multiprocessors,
        warp_size: 32,
        max_threads_per_block: MAX_THREADS_PER_BLOCK,
        max_block: MAX_BLOCK,
        max_grid: MAX_GRID.map(u64::from),
        shared_per_block: 48 << 10,
        shared_per_block_opt_in: config.shared_per_block,
        registers_per_block: config.registers_per_multiprocessor,
        multiprocessor: None,
        memory_bytes: options.memory_bytes,
    }
}

fn unknown(kind: &'static str, number: u64) -> DeviceError {
    DeviceError::UnknownHandle { kind, number }
}

impl Device for EmulatorDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn load(&mut self, image: &Image) -> Result<ModuleId, DeviceError> {
        self.idle()?;
        let Image::Ptx { name, text } = image else {
            return Err(DeviceError::Unsupported {
                what: format!("a {}: the emulator runs PTX only", image.name()),
            });
        };
        let parsed = assay_ptx::parse(text).map_err(|error| rejected(name, error))?;
        let program =
            Program::compile(&parsed).map_err(|error| not_compiled(name, &error.to_string()))?;
        let id = ModuleId::new();
        self.modules.insert(id, Arc::new(Loaded { name: name.clone(), program }));
        Ok(id)
    }

    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        self.idle()?;
        let gone = self.modules.remove(&module);
        self.release(gone.ok_or_else(|| unknown("module", module.number()))?);
        Ok(())
    }

    fn limit_instructions(&mut self, budget: u64) {
        self.budget = Some(budget);
    }

    fn watch(&mut self, watch: Arc<Watch>) {
        self.machine.watch(watch);
    }

    fn kernel_facts(&mut self, module: ModuleId, symbol: &str) -> Result<KernelFacts, DeviceError> {
        self.module(module)?.kernel_facts(symbol)
    }

    fn allocate(&mut self, allocation: &Allocation) -> Result<BufferId, DeviceError> {
        self.idle()?;
        allocation.layout()?;
        let Allocation { bytes, misalign, poison } = *allocation;
        let endless = DeviceError::OutOfMemory { requested: bytes, available: None };
        let base = allocated(&mut self.machine, bytes.checked_add(misalign).ok_or(endless)?)?;
        let filled = self
            .machine
            .write(base, &guard_pattern(misalign))
            .and_then(|()| self.machine.fill(base + misalign, bytes, poison));
        filled.map_err(|error| refused("fill", &error))?;
        let id = BufferId::new();
        self.buffers.insert(id, Buffer { base, misalign, bytes });
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        self.idle()?;
        let base = self.buffer(buffer)?.base;
        self.buffers.remove(&buffer);
        self.machine.free(base).map_err(|error| refused("free", &error))
    }

    fn write(&mut self, buffer: BufferId, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.idle()?;
        let found = self.buffer(buffer)?;
        check_range(found.bytes, offset, bytes.len() as u64)?;
        let address = found.address() + offset;
        self.machine.write(address, bytes).map_err(|error| refused("write", &error))
    }

    fn read(&mut self, buffer: BufferId, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.idle()?;
        let found = self.buffer(buffer)?;
        check_range(found.bytes, offset, bytes.len() as u64)?;
        let address = found.address() + offset;
        self.machine.read(address, bytes).map_err(|error| refused("read", &error))
    }

    fn address(&self, buffer: BufferId) -> Result<u64, DeviceError> {
        Ok(self.buffer(buffer)?.address())
    }

    fn tensor_map(&mut self, buffer: BufferId, map: &TensorMap) -> Result<Argument, DeviceError> {
        let address = self.buffer(buffer)?.address().wrapping_add(map.address);
        let map = TensorMap { address, ..*map };
        check_tensor_map(&map)?;
        Ok(Argument::Bytes(map.encode().to_vec()))
    }

    fn guard_damage(&mut self, buffer: BufferId) -> Result<Option<GuardDamage>, DeviceError> {
        self.idle()?;
        let &Buffer { base, misalign, .. } = self.buffer(buffer)?;
        let mut guard = vec![0; misalign as usize];
        self.machine.read(base, &mut guard).map_err(|error| refused("read", &error))?;
        Ok(find_damage(Side::Before, &guard))
    }

    fn launch(
        &mut self,
        stream: StreamId,
        launch: &Launch<'_>,
    ) -> Result<LaunchReport, DeviceError> {
        self.check_stream(stream)?;
        let ready = self.ready(launch)?;
        match &mut self.capture {
            Some((captured, launches)) if *captured == stream => {
                launches.push(Work::Launch(Box::new(ready)));
                Ok(LaunchReport::default())
            }
            _ => run(&mut self.machine, self.clock.as_mut(), &ready),
        }
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.idle()
    }

    fn create_stream(&mut self) -> Result<StreamId, DeviceError> {
        self.idle()?;
        let id = StreamId::new();
        self.streams.insert(id);
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
        self.check_stream(stream)?;
        self.streams.remove(&stream);
        Ok(())
    }

    fn create_event(&mut self) -> Result<EventId, DeviceError> {
        self.idle()?;
        Ok(self.clock()?.create())
    }

    fn destroy_event(&mut self, event: EventId) -> Result<(), DeviceError> {
        self.idle()?;
        self.clock()?.destroy(event)
    }

    fn record_event(&mut self, event: EventId, stream: StreamId) -> Result<(), DeviceError> {
        self.check_stream(stream)?;
        self.clock()?.check(event)?;
        match &mut self.capture {
            Some((captured, works)) if *captured == stream => {
                works.push(Work::Record(event));
                Ok(())
            }
            _ => self.clock()?.record(event),
        }
    }

    fn elapsed_ns(&mut self, start: EventId, end: EventId) -> Result<u64, DeviceError> {
        self.idle()?;
        let clock = self.clock()?;
        Ok(clock.time(end)?.saturating_sub(clock.time(start)?))
    }

    fn query(&mut self, event: EventId) -> Result<bool, DeviceError> {
        self.idle()?;
        self.clock()?.time(event).map(|_| true)
    }

    fn timing_facts(&self) -> Option<TimingFacts> {
        self.clock.as_ref().map(Clock::facts)
    }

    fn allocate_bare(&mut self, bytes: u64) -> Result<BufferId, DeviceError> {
        self.idle()?;
        let base = allocated(&mut self.machine, bytes)?;
        let id = BufferId::new();
        self.buffers.insert(id, Buffer { base, misalign: 0, bytes });
        Ok(id)
    }

    fn begin_capture(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        self.idle()?;
        self.check_stream(stream)?;
        self.capture = Some((stream, Vec::new()));
        Ok(())
    }

    fn end_capture(&mut self, stream: StreamId) -> Result<GraphId, DeviceError> {
        match self.capture.take() {
            Some((captured, launches)) if captured == stream => {
                let id = GraphId::new();
                self.graphs.insert(id, launches);
                Ok(id)
            }
            other => {
                self.capture = other;
                Err(DeviceError::InvalidRequest {
                    reason: "no capture is under way on this stream".to_string(),
                    hint: "call begin_capture on it first".to_string(),
                })
            }
        }
    }

    fn launch_graph(&mut self, graph: GraphId, stream: StreamId) -> Result<(), DeviceError> {
        self.idle()?;
        self.check_stream(stream)?;
        let works = self.graphs.get(&graph).ok_or_else(|| unknown("graph", graph.number()))?;
        works.iter().try_for_each(|work| match work {
            Work::Launch(ready) => run(&mut self.machine, self.clock.as_mut(), ready).map(|_| ()),
            Work::Transfer(transfer) => transfer.run(&mut self.machine, self.clock.as_mut()),
            Work::Record(event) => self.clock.as_mut().map_or(Ok(()), |clock| clock.record(*event)),
        })
    }

    fn destroy_graph(&mut self, graph: GraphId) -> Result<(), DeviceError> {
        self.idle()?;
        let gone = self.graphs.remove(&graph);
        for work in gone.ok_or_else(|| unknown("graph", graph.number()))? {
            if let Work::Launch(ready) = work {
                self.release(ready.module);
            }
        }
        Ok(())
    }

    fn fill(
        &mut self,
        stream: StreamId,
        buffer: BufferId,
        offset: u64,
        bytes: u64,
        value: u8,
    ) -> Result<(), DeviceError> {
        let to = self.place((buffer, offset), bytes)?;
        self.transfer(stream, Transfer::Fill { to, bytes, value })
    }

    fn copy(
        &mut self,
        stream: StreamId,
        from: (BufferId, u64),
        to: (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let (from, to) = (self.place(from, bytes)?, self.place(to, bytes)?);
        check_apart(from, to, bytes)?;
        self.transfer(stream, Transfer::Copy { from, to, bytes })
    }

    fn allocate_host(&mut self, bytes: u64, kind: HostKind) -> Result<HostBufferId, DeviceError> {
        self.idle()?;
        let buffer = HostBuffer::allocate(&mut self.machine, bytes, kind)?;
        let id = HostBufferId::new();
        self.host.insert(id, buffer);
        Ok(id)
    }

    fn free_host(&mut self, buffer: HostBufferId) -> Result<(), DeviceError> {
        self.idle()?;
        let gone = self.host.remove(&buffer);
        let base = gone.ok_or_else(|| unknown("host buffer", buffer.number()))?.base;
        self.machine.free(base).map_err(|error| refused("free", &error))
    }

    fn host_bytes(&mut self, buffer: HostBufferId) -> Result<&mut [u8], DeviceError> {
        self.idle()?;
        let &HostBuffer { base, bytes, .. } = self.host_buffer(buffer)?;
        self.machine.bytes_mut(base, bytes).map_err(|error| refused("host_bytes", &error))
    }

    fn host_address(&self, buffer: HostBufferId) -> Result<u64, DeviceError> {
        let found = self.host_buffer(buffer)?;
        check_mapped(found.kind)?;
        Ok(found.base)
    }

    fn store_host_word(
        &mut self,
        buffer: HostBufferId,
        offset: u64,
        word: u32,
    ) -> Result<(), DeviceError> {
        let address = self.host_word(buffer, offset)?;
        self.machine.write(address, &word.to_le_bytes()).map_err(|error| refused("write", &error))
    }

    fn load_host_word(&mut self, buffer: HostBufferId, offset: u64) -> Result<u32, DeviceError> {
        let address = self.host_word(buffer, offset)?;
        let mut word = [0; 4];
        self.machine.read(address, &mut word).map_err(|error| refused("read", &error))?;
        Ok(u32::from_le_bytes(word))
    }

    fn copy_to_device(
        &mut self,
        stream: StreamId,
        from: (HostBufferId, u64),
        to: (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let (from, to) = (self.host_place(from, bytes)?, self.place(to, bytes)?);
        self.transfer(stream, Transfer::Copy { from, to, bytes })
    }

    fn copy_to_host(
        &mut self,
        stream: StreamId,
        from: (BufferId, u64),
        to: (HostBufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let (from, to) = (self.place(from, bytes)?, self.host_place(to, bytes)?);
        self.transfer(stream, Transfer::Copy { from, to, bytes })
    }

    fn reset_persisting_l2(&mut self) -> Result<(), DeviceError> {
        self.idle()
    }
}
