//! A device that runs nothing: its kernels only take time, at a clock and with a noise that are
//! made up from a seed. It has a queue that a hold keeps waiting, as a GPU does, so that all of
//! the engine runs on it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, DeviceFacts, EventId, GraphId,
    HostBufferId, HostKind, Image, KernelFacts, Launch, LaunchReport, ModuleId, StreamId,
    TimingFacts,
};
use assay_measure::{Gauge, Reading};
use assay_num::random::SplitMix64;

/// What is wrong with the simulated device's times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// The standard deviation of a span, over it.
    pub(crate) jitter_rel: f64,
    /// How much of a span's deviation the next one inherits, from 0 to 1.
    pub(crate) correlation: f64,
    /// The share of spans that take up to twice as long.
    pub(crate) outliers: f64,
    /// How much longer everything takes after a second of the device's time, over it.
    pub(crate) drift_rel_per_s: f64,
    /// The clock, in MHz.
    pub(crate) clock_mhz: f64,
    /// The clock while it is down, in MHz.
    pub(crate) sagged_mhz: f64,
    /// The share of milliseconds in which it is down.
    pub(crate) sagged: f64,
    /// Whether the clock is anything between the two, another at every millisecond.
    pub(crate) wanders: bool,
    /// The step of the timer, in nanoseconds.
    pub(crate) step_ns: f64,
}

impl Noise {
    /// A good day.
    pub(crate) const QUIET: Noise = Noise {
        jitter_rel: 0.003,
        correlation: 0.0,
        outliers: 0.0,
        drift_rel_per_s: 0.0,
        clock_mhz: 1980.0,
        sagged_mhz: 1600.0,
        sagged: 0.0,
        wanders: false,
        step_ns: 32.0,
    };
}

enum Step {
    Hold {
        ticket: u32,
        limit_ns: f64,
        state: BufferId,
    },
    Stamp {
        state: BufferId,
        out: BufferId,
    },
    Record(EventId),
    /// Work in nanoseconds at the full clock.
    Work(f64),
}

/// The device.
pub(crate) struct Simulated {
    facts: DeviceFacts,
    noise: Noise,
    random: SplitMix64,
    /// The last span's deviation.
    deviation: f64,
    now_ns: f64,
    /// Cycles since the start, kept apart since the clock changes.
    cycles: f64,
    flag: u32,
    queue: Vec<Step>,
    capture: Option<Vec<f64>>,
    graphs: HashMap<GraphId, Vec<f64>>,
    buffers: HashMap<BufferId, Vec<u8>>,
    events: HashMap<EventId, f64>,
    host: HostBufferId,
    /// Flushes so far.
    pub(crate) flushes: u64,
    /// Launches of work after which the device is lost.
    pub(crate) dies_after: Option<u64>,
    launches: u64,
    /// What a board's gauges see of it.
    pub(crate) seen: Arc<Seen>,
}

/// The device from outside: its time, and whether it has something to do.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    now_ns: AtomicU64,
    busy: AtomicBool,
}

/// A gauge on a simulated board, which throttles in a stretch of the device's time.
pub(crate) struct Board {
    pub(crate) seen: Arc<Seen>,
    pub(crate) throttled_ns: Range<u64>,
    /// Readings made while the device had something to do.
    pub(crate) inside: Arc<AtomicU32>,
}

impl Seen {
    /// The device's time, in whole nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}

impl Gauge for Board {
    fn read(&mut self) -> Reading {
        let busy = self.seen.busy.load(Ordering::Relaxed);
        self.inside.fetch_add(u32::from(busy), Ordering::Relaxed);
        let down = self.throttled_ns.contains(&self.seen.now_ns());
        Reading {
            power_w: Some(if down { 690.0 } else { 400.0 }),
            temperature_c: Some(if down { 80.0 } else { 50.0 }),
            throttle_bits: Some(if down { 0x4 } else { 0x1 }),
            missing: Vec::new(),
        }
    }
}

impl Simulated {
    pub(crate) fn new(noise: Noise, seed: u64) -> Simulated {
        let cpu = assay_device::open("emulator").expect("the emulator opens");
        let facts = DeviceFacts { name: "simulated".into(), ..cpu.facts().clone() };
        Simulated {
            facts,
            noise,
            random: SplitMix64::new(seed),
            deviation: 0.0,
            now_ns: 1e6,
            cycles: 1e6,
            flag: 0,
            queue: Vec::new(),
            capture: None,
            graphs: HashMap::new(),
            buffers: HashMap::new(),
            events: HashMap::new(),
            host: HostBufferId::new(),
            flushes: 0,
            dies_after: None,
            launches: 0,
            seen: Arc::default(),
        }
    }

    /// The clock now, in MHz: drawn anew for every millisecond.
    fn clock_mhz(&self) -> f64 {
        let Noise { clock_mhz, sagged_mhz, sagged, wanders, .. } = self.noise;
        let mut draw = SplitMix64::new((self.now_ns / 1e6) as u64 ^ 0x5eed);
        if wanders {
            draw.range(sagged_mhz, clock_mhz)
        } else if draw.unit() < sagged {
            sagged_mhz
        } else {
            clock_mhz
        }
    }

    /// Lets work pass that takes so long at the full clock.
    fn work(&mut self, nominal_ns: f64) {
        let noise = self.noise;
        let own = (1.0 - noise.correlation * noise.correlation).sqrt();
        self.deviation = noise.correlation * self.deviation + own * self.random.normal();
        let mut factor = 1.0 + noise.jitter_rel * self.deviation;
        factor += noise.drift_rel_per_s * self.now_ns / 1e9;
        if self.random.unit() < noise.outliers {
            factor *= 1.0 + self.random.unit();
        }
        let cycles = nominal_ns * factor.max(0.1) * noise.clock_mhz / 1000.0;
        self.pass(cycles / self.clock_mhz() * 1000.0);
    }

    fn pass(&mut self, ns: f64) {
        self.cycles += ns * self.clock_mhz() / 1000.0;
        self.now_ns += ns;
        self.seen.now_ns.store(self.now_ns as u64, Ordering::Relaxed);
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Hold { ticket, limit_ns, state } => {
                let gave_up = self.flag != ticket;
                let start = (self.cycles, self.now_ns);
                let held_ns = if gave_up { limit_ns } else { 20_000.0 };
                self.pass(held_ns);
                let (gave_up, ticket) = (u64::from(gave_up), u64::from(ticket));
                let words = [start.0 as u64, start.1 as u64, 0, gave_up, held_ns as u64, ticket];
                self.store(state, &words);
            }
            Step::Stamp { state, out } => {
                let words = self.words(state);
                let cycles = self.cycles as u64 - words[0];
                let passed = self.now_ns as u64 - words[1];
                self.store(out, &[cycles, passed, words[3], words[4], words[5]]);
            }
            Step::Record(event) => {
                let step = self.noise.step_ns;
                self.events.insert(event, (self.now_ns / step).round() * step);
                self.pass(700.0);
            }
            Step::Work(nominal_ns) => self.work(nominal_ns),
        }
    }

    fn enqueue(&mut self, nominal_ns: f64) {
        match &mut self.capture {
            Some(captured) => captured.push(nominal_ns),
            None => self.queue.push(Step::Work(nominal_ns)),
        }
    }

    fn store(&mut self, buffer: BufferId, words: &[u64]) {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.buffers.insert(buffer, bytes);
    }

    fn words(&self, buffer: BufferId) -> Vec<u64> {
        let bytes = self.buffers.get(&buffer).cloned().unwrap_or_default();
        let word = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap_or_default());
        bytes.chunks_exact(8).map(word).collect()
    }

    fn lost(&self) -> Result<(), DeviceError> {
        match self.dies_after {
            Some(launches) if self.launches > launches => {
                Err(DeviceError::Lost { cause: "it died as planned".into() })
            }
            _ => Ok(()),
        }
    }
}

fn number(argument: &Argument) -> u64 {
    match argument {
        Argument::Bytes(bytes) => {
            bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
        }
        Argument::Buffer(_) | Argument::BufferOffset(..) => 0,
    }
}

fn buffer(argument: &Argument) -> BufferId {
    match argument {
        Argument::Buffer(buffer) | Argument::BufferOffset(buffer, _) => *buffer,
        Argument::Bytes(_) => panic!("the engine passes a buffer here"),
    }
}

impl Device for Simulated {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn timing_facts(&self) -> Option<TimingFacts> {
        Some(TimingFacts {
            asynchronous: true,
            l2_bytes: 1 << 20,
            l2_persisting_bytes_max: 0,
            sm_clock_max_mhz: self.noise.clock_mhz,
            memory_clock_max_mhz: 1000.0,
            memory_bus_bits: 512,
            event_resolution_ns: self.noise.step_ns,
            copy_engines: 0,
            ecc: false,
            pci: None,
        })
    }

    fn load(&mut self, _: &Image) -> Result<ModuleId, DeviceError> {
        Ok(ModuleId::new())
    }

    fn unload(&mut self, _: ModuleId) -> Result<(), DeviceError> {
        Ok(())
    }

    fn kernel_facts(&mut self, _: ModuleId, _: &str) -> Result<KernelFacts, DeviceError> {
        Ok(KernelFacts::default())
    }

    fn allocate(&mut self, _: &Allocation) -> Result<BufferId, DeviceError> {
        Ok(BufferId::new())
    }

    fn free(&mut self, _: BufferId) -> Result<(), DeviceError> {
        Ok(())
    }

    fn write(&mut self, buffer: BufferId, _: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.synchronize()?;
        self.buffers.insert(buffer, bytes.to_vec());
        Ok(())
    }

    fn read(&mut self, buffer: BufferId, _: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.synchronize()?;
        let held = self.buffers.get(&buffer).cloned().unwrap_or_default();
        for (to, from) in bytes.iter_mut().zip(held) {
            *to = from;
        }
        Ok(())
    }

    fn address(&self, _: BufferId) -> Result<u64, DeviceError> {
        Ok(0)
    }

    fn guard_damage(
        &mut self,
        _: BufferId,
    ) -> Result<Option<assay_device::GuardDamage>, DeviceError> {
        Ok(None)
    }

    /// The engine's kernels by name; any other takes the nanoseconds that its argument says.
    fn launch(&mut self, _: StreamId, launch: &Launch<'_>) -> Result<LaunchReport, DeviceError> {
        self.seen.busy.store(true, Ordering::Relaxed);
        let given = &launch.arguments;
        match launch.symbol {
            "hold" => self.queue.push(Step::Hold {
                ticket: number(&given[1]) as u32,
                limit_ns: number(&given[2]) as f64,
                state: buffer(&given[3]),
            }),
            "stamp" => {
                let (state, out) = (buffer(&given[0]), buffer(&given[1]));
                self.queue.push(Step::Stamp { state, out });
            }
            "flush" => {
                self.flushes += 1;
                self.enqueue(25_000.0);
            }
            "nothing" => self.queue.push(Step::Work(900.0)),
            _ => {
                self.launches += 1;
                self.lost()?;
                let nominal_ns = given.first().map_or(0.0, |argument| number(argument) as f64);
                self.enqueue(nominal_ns);
            }
        }
        Ok(LaunchReport::default())
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        for step in std::mem::take(&mut self.queue) {
            self.run(&step);
        }
        self.seen.busy.store(false, Ordering::Relaxed);
        self.lost()
    }

    fn create_event(&mut self) -> Result<EventId, DeviceError> {
        Ok(EventId::new())
    }

    fn destroy_event(&mut self, _: EventId) -> Result<(), DeviceError> {
        Ok(())
    }

    fn record_event(&mut self, event: EventId, _: StreamId) -> Result<(), DeviceError> {
        self.queue.push(Step::Record(event));
        Ok(())
    }

    fn elapsed_ns(&mut self, start: EventId, end: EventId) -> Result<u64, DeviceError> {
        Ok((self.events[&end] - self.events[&start]).max(0.0) as u64)
    }

    fn begin_capture(&mut self, _: StreamId) -> Result<(), DeviceError> {
        self.capture = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&mut self, _: StreamId) -> Result<GraphId, DeviceError> {
        let graph = GraphId::new();
        self.graphs.insert(graph, self.capture.take().unwrap_or_default());
        Ok(graph)
    }

    fn launch_graph(&mut self, graph: GraphId, _: StreamId) -> Result<(), DeviceError> {
        self.queue.push(Step::Work(1500.0));
        let captured = self.graphs[&graph].clone();
        self.queue.extend(captured.into_iter().map(Step::Work));
        Ok(())
    }

    fn destroy_graph(&mut self, graph: GraphId) -> Result<(), DeviceError> {
        self.graphs.remove(&graph);
        Ok(())
    }

    fn allocate_host(&mut self, _: u64, _: HostKind) -> Result<HostBufferId, DeviceError> {
        Ok(self.host)
    }

    fn free_host(&mut self, _: HostBufferId) -> Result<(), DeviceError> {
        Ok(())
    }

    fn host_address(&self, _: HostBufferId) -> Result<u64, DeviceError> {
        Ok(0)
    }

    fn store_host_word(&mut self, _: HostBufferId, _: u64, word: u32) -> Result<(), DeviceError> {
        self.flag = word;
        Ok(())
    }

    fn fill(&mut self, _: StreamId, _: BufferId, _: u64, _: u64, _: u8) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// A kernel that takes so many nanoseconds.
pub(crate) fn kernel(ns: u64) -> impl FnMut(&mut dyn Device, StreamId) -> Result<(), DeviceError> {
    let module = ModuleId::new();
    move |device, stream| {
        let arguments = vec![Argument::u64(ns)];
        device.launch(stream, &Launch { arguments, ..Launch::new(module, "work") }).map(|_| ())
    }
}
