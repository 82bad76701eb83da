//! The entries of latencies: how long one load waits for the one before it, at every level.

use assay_device::{Allocation, Argument, BufferId, Launch, StreamId};
use assay_record::Entry;

use super::chase::{Chase, Chases, Cycle, Level, Stretch, check_end, read_words};
use super::contents::{Contents, Filler};
use super::context::figure;
use super::{Probe, ProbeContext, ProbeError, Quantity};
use crate::statistics::median;

const CLUSTER: &str = include_str!("../../../../kernels/measure/chase_cluster.sm_90.ptx");

/// The probe.
pub(super) const PROBE: Probe = Probe { title: "latencies", quantities: &QUANTITIES, run };

/// Bytes of a cache line, and so the least distance of two nodes that share none.
const LINE: u64 = 128;

macro_rules! quantities {
    ($($place:literal: $method:literal;)*) => {
        [$(
            Quantity {
                name: concat!("latency_", $place, "_cycles"),
                unit: "cycles",
                method: $method,
            },
            Quantity { name: concat!("latency_", $place, "_ns"), unit: "ns", method: $method },
        )*]
    };
}

const QUANTITIES: [Quantity; 14] = quantities! {
    "l1": "a chase through 16 KiB that the L1 cache holds, by loads of 8 bytes";
    "shared": "a chase through 4 KiB of the block's shared memory, by loads of 4 bytes";
    "l2_near": "a chase past the L1 cache through an eighth of the L2 cache's size, which the \
                part of it near the multiprocessor holds";
    "l2_far": "a chase past the L1 cache through three quarters of the L2 cache's size, more \
               than the near part of a divided cache holds";
    "dram": "a chase past the L1 cache over lines that no cache holds, in a region many times \
             the L2 cache's size";
    "tlb_step": "how much longer a load from the L2 cache takes when its lines are spread over \
                 the widest region, one to a page, than when they lie close together";
    "distributed_shared": "a chase through 4 KiB of the shared memory of the other block of a \
                           cluster of two";
};

/// Makes the stretches of one quantity.
type Chaser = fn(&mut Run<'_, '_>) -> Result<Measured, ProbeError>;

const CHASERS: [Chaser; 7] = [
    |run| run.l1(),
    |run| run.shared(),
    |run| run.l2_near(),
    |run| run.l2_far(),
    |run| run.dram(),
    |run| run.tlb_step(),
    |run| run.distributed_shared(),
];

/// The stretches of a quantity, and the curve that goes with them.
#[derive(Default)]
struct Measured {
    stretches: Vec<Stretch>,
    /// Bytes, and a stretch.
    curve: Vec<(u64, Stretch)>,
    /// What was waited for without the thing that is asked for.
    base: Option<Stretch>,
}

/// A run of the probe.
struct Run<'a, 'b> {
    context: &'a mut ProbeContext<'b>,
    chases: Chases,
    /// Samples, and steps of each.
    samples: usize,
    steps: u32,
}

fn run(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    context.attempt_all(&QUANTITIES, |context| {
        let chases = Chases::new(context)?;
        let (samples, steps) = match (context.tiny, context.quick) {
            (true, _) => (2, 32),
            (_, true) => (11, 4096),
            _ => (31, 8192),
        };
        let mut entries = Vec::new();
        for (pair, chaser) in QUANTITIES.as_chunks::<2>().0.iter().zip(CHASERS) {
            if context.lost().is_some() || !pair.iter().any(|quantity| context.wants(quantity)) {
                continue;
            }
            entries.extend(context.attempt_all(pair, |context| {
                let measured = chaser(&mut Run { context, chases, samples, steps })?;
                Ok(measured.entries(pair))
            }));
        }
        if context.lost().is_none() {
            chases.free(context.device)?;
        }
        Ok(entries)
    })
}

impl Measured {
    /// The entries in cycles and in nanoseconds.
    fn entries(&self, [cycles, ns]: &[Quantity; 2]) -> Vec<Entry> {
        let clock = |stretch: &Stretch| stretch.cycles / stretch.ns * 1000.0;
        let clocks: Vec<f64> = self.stretches.iter().map(clock).collect();
        let clock = Some(median(&clocks));
        let entry = |quantity: &Quantity, of: fn(&Stretch) -> f64| {
            let base = self.base.as_ref().map_or(0.0, of);
            let values: Vec<f64> = self.stretches.iter().map(|s| of(s) - base).collect();
            let points = self.curve.iter().map(|(bytes, stretch)| (*bytes as f64, of(stretch)));
            let inferred = quantity.name.contains("_l2_");
            let (confidence, why) = match (self.base, inferred) {
                (Some(_), _) => (0.6, "the difference of two chases, each of which ended right"),
                (_, true) => (0.7, "in which part of the cache a line lies is inferred from sizes"),
                _ => (0.9, "every chase ended where its cycle says"),
            };
            let entry = quantity.measured(figure(&values, clock)).trusted(confidence, why);
            if self.curve.is_empty() { entry } else { entry.along("bytes", points.collect()) }
        };
        vec![entry(cycles, |stretch| stretch.cycles), entry(ns, |stretch| stretch.ns)]
    }
}

impl Run<'_, '_> {
    /// A chase over every `stride` bytes of a region of its own.
    fn lay(&mut self, bytes: u64, stride: u64) -> Result<(BufferId, Chase), ProbeError> {
        let nodes = (bytes / stride).max(2);
        let buffer = self.context.device.allocate_bare(nodes * stride)?;
        let place = (0..nodes).map(|node| node * stride).collect();
        let cycle = Cycle::random(nodes as u32, self.context.seed);
        Ok((buffer, self.chases.lay(self.context.device, buffer, place, cycle)?))
    }

    /// Stretches of a chase whose nodes are in a cache after one time around.
    fn stretches(&mut self, chase: &mut Chase, level: Level) -> Result<Vec<Stretch>, ProbeError> {
        let nodes = chase.nodes();
        let around = if level == Level::L1 { nodes } else { 0 };
        chase.go(self.context.device, level, nodes, 16)?;
        let mut all = Vec::new();
        for _ in 0..self.samples {
            all.push(chase.go(self.context.device, level, around, self.steps)?);
        }
        Ok(all)
    }

    fn in_region(&mut self, bytes: u64, stride: u64, level: Level) -> Result<Measured, ProbeError> {
        let (buffer, mut chase) = self.lay(bytes, stride)?;
        let stretches = self.stretches(&mut chase, level)?;
        self.context.device.free(buffer)?;
        Ok(Measured { stretches, ..Measured::default() })
    }

    fn l1(&mut self) -> Result<Measured, ProbeError> {
        let bytes = if self.context.tiny { 1 << 10 } else { 16 << 10 };
        self.in_region(bytes, LINE / 2, Level::L1)
    }

    fn shared(&mut self) -> Result<Measured, ProbeError> {
        let cycle = Cycle::random(if self.context.tiny { 32 } else { 1024 }, self.context.seed);
        let mut stretches = Vec::new();
        for _ in 0..self.samples {
            let (warm, steps) = (cycle.nodes(), self.steps);
            stretches.push(self.chases.shared(self.context.device, &cycle, warm, steps)?);
        }
        Ok(Measured { stretches, ..Measured::default() })
    }

    fn l2_near(&mut self) -> Result<Measured, ProbeError> {
        let bytes = if self.context.tiny { 8 << 10 } else { self.context.l2_bytes() / 8 };
        self.in_region(bytes, LINE, Level::L2)
    }

    fn l2_far(&mut self) -> Result<Measured, ProbeError> {
        let bytes = if self.context.tiny { 8 << 10 } else { self.context.l2_bytes() / 4 * 3 };
        self.in_region(bytes, LINE, Level::L2)
    }

    /// No node is visited twice, and none since it was laid out and the cache swept.
    fn dram(&mut self) -> Result<Measured, ProbeError> {
        let curve = self.curve()?;
        let times = if self.context.quick { 4 } else { 8 };
        let bytes = if self.context.tiny { 64 << 10 } else { times * self.context.l2_bytes() };
        let stride = 2 * LINE;
        let (buffer, mut chase) = self.lay(bytes.next_power_of_two(), stride)?;
        self.sweep(4 * self.context.l2_bytes())?;
        let visits = self.samples as u64 * u64::from(self.steps);
        if !self.context.tiny && visits > u64::from(chase.nodes()) {
            return Err(ProbeError::Wrong("the region is too small for so many steps".into()));
        }
        let mut stretches = Vec::new();
        for _ in 0..self.samples {
            stretches.push(chase.go(self.context.device, Level::L2, 0, self.steps)?);
        }
        self.context.device.free(buffer)?;
        Ok(Measured { stretches, curve, base: None })
    }

    /// Latency past the L1 cache over the size of a region that is chased around and around.
    fn curve(&mut self) -> Result<Vec<(u64, Stretch)>, ProbeError> {
        let l2 = self.context.l2_bytes();
        let sixteenths: &[u64] = match (self.context.tiny, self.context.quick) {
            (true, _) => return Ok(Vec::new()),
            (_, true) => &[1, 4, 8, 12],
            _ => &[1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 24, 32, 48, 64],
        };
        let mut points = Vec::new();
        for part in sixteenths {
            let bytes = l2 * part / 16;
            let (buffer, mut chase) = self.lay(bytes, LINE)?;
            let around = chase.nodes();
            let stretch = chase.go(self.context.device, Level::L2, around, self.steps)?;
            self.context.device.free(buffer)?;
            points.push((bytes, stretch));
        }
        Ok(points)
    }

    /// Puts other lines into the L2 cache.
    fn sweep(&mut self, bytes: u64) -> Result<(), ProbeError> {
        let bytes = if self.context.tiny { 4 << 10 } else { bytes };
        let filler = Filler::new(self.context)?;
        let contents = Contents::within(bytes.next_power_of_two(), 1);
        let device = &mut *self.context.device;
        let buffer = device.allocate_bare(contents.bytes())?;
        filler.fill(device, buffer, contents)?;
        device.free(buffer)?;
        filler.free(device)
    }

    fn tlb_step(&mut self) -> Result<Measured, ProbeError> {
        let (nodes, least, most) = if self.context.tiny {
            (16u64, 4 << 10, 64 << 10)
        } else {
            (4096, 16 << 20, self.widest())
        };
        let buffer = self.context.device.allocate_bare(most)?;
        let mut measured = Measured::default();
        let mut span = least;
        while span <= most {
            let mut chase = self.spread(buffer, nodes, span)?;
            let stretches = self.stretches(&mut chase, Level::L2)?;
            let cycles: Vec<f64> = stretches.iter().map(|stretch| stretch.cycles).collect();
            let ns: Vec<f64> = stretches.iter().map(|stretch| stretch.ns).collect();
            let middle = Stretch { cycles: median(&cycles), ns: median(&ns) };
            measured.base.get_or_insert(middle);
            measured.curve.push((span, middle));
            measured.stretches = stretches;
            span *= 2;
        }
        self.context.device.free(buffer)?;
        Ok(measured)
    }

    /// A power of two of bytes that the device surely has free, 32 GiB at most.
    fn widest(&self) -> u64 {
        let half = (self.context.device.facts().memory_bytes / 2).max(32 << 20);
        let most: u64 = if self.context.quick { 8 << 30 } else { 32 << 30 };
        1 << half.min(most).ilog2()
    }

    /// Nodes at even distances over a region, each in a line of its own choice, so that they do not
    /// all meet in the same sets of a cache.
    fn spread(&mut self, buffer: BufferId, nodes: u64, span: u64) -> Result<Chase, ProbeError> {
        let stride = (span / nodes).max(LINE);
        let lines = stride / LINE;
        let place = |node: u64| node * stride + node.wrapping_mul(0x9E37_79B1) % lines * LINE;
        let cycle = Cycle::random(nodes as u32, self.context.seed);
        self.chases.lay(self.context.device, buffer, (0..nodes).map(place).collect(), cycle)
    }

    fn distributed_shared(&mut self) -> Result<Measured, ProbeError> {
        if self.context.architecture() < 90 {
            let reason = "clusters begin with sm_90".to_owned();
            return Err(ProbeError::Unsupported(reason));
        }
        let module = self.context.load("chase_cluster.sm_90.ptx", CLUSTER)?;
        let cycle = Cycle::random(if self.context.tiny { 32 } else { 1024 }, self.context.seed);
        let order = cycle.bytes();
        let device = &mut *self.context.device;
        let next = device.allocate_bare(order.len() as u64)?;
        device.write(next, 0, &order)?;
        let out = device.allocate(&Allocation::new(24))?;
        let (warm, steps) = (cycle.nodes(), self.steps);
        let end = u64::from(cycle.after(0, u64::from(warm) + u64::from(steps)));
        let launch = Launch {
            grid: [2, 1, 1],
            cluster: [2, 1, 1],
            shared_bytes: order.len() as u32,
            arguments: vec![
                Argument::Buffer(next),
                Argument::u32(cycle.nodes()),
                Argument::u32(1),
                Argument::u32(warm),
                Argument::u32(steps),
                Argument::Buffer(out),
            ],
            ..Launch::new(module, "chase_cluster")
        };
        let mut stretches = Vec::new();
        for _ in 0..self.samples {
            device.launch(StreamId::DEFAULT, &launch)?;
            let words = read_words(device, out)?;
            check_end(words[0], end)?;
            stretches.push(Stretch::of(words, steps));
        }
        device.free(next)?;
        device.free(out)?;
        device.unload(module)?;
        Ok(Measured { stretches, ..Measured::default() })
    }
}
