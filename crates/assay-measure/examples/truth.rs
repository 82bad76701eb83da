//! Holds the stopwatch against other clocks, and its verdicts against kernels of known difference.
//!
//!     cargo run -p assay-measure --example truth -- kernels cuda:0 > kernels.json
//!     cargo run -p assay-measure --example truth -- measure cuda:0 > measured.jsonl
//!     ncu --metrics gpu__time_duration.sum --clock-control none --cache-control all --csv \
//!         truth launch cuda:0 > profiled.csv
//!     cargo run -p assay-measure --example truth -- same cuda:0 500 0.04 > same.jsonl
//!     cargo run -p assay-measure --example truth -- slower cuda:0 100 0.02 0.04 > slower.jsonl
//!
//! `kernels` says what is launched, so that other programs can launch the same; `measure` times
//! it; `launch` only launches it, for a profiler to time; `same` compares kernels with themselves
//! and `slower` with copies of themselves that take that share longer.

use std::error::Error;
use std::io::Write as _;
use std::time::Instant;

use assay_device::{Argument, BufferId, Device, DeviceError, Image, Launch, ModuleId, StreamId};
use assay_measure::{Cache, Plan, Samples, Stopwatch, Summary, VersusPlan, Work};
use assay_record::Versus;
use serde_json::{Value, json};

const WORK: &str = include_str!("../../../kernels/measure/work.ptx");

/// Bytes of each of the two buffers.
const BUFFER_BYTES: u64 = 4 << 30;

/// Launches of each kernel that a profiler sees.
const PROFILED: u32 = 7;

/// One kernel with its size.
#[derive(Clone, Copy)]
struct Job {
    symbol: &'static str,
    grid: u32,
    block: u32,
    /// Words of 16 bytes; 0 for a chain.
    size: u64,
    /// Rounds of a chain, or those that every thread dallies.
    rounds: u64,
}

impl Job {
    fn chain(rounds: u64) -> Job {
        Job { symbol: "chain", grid: 132, block: 128, size: 0, rounds }
    }

    fn memory(symbol: &'static str, bytes: u64) -> Job {
        let grid = (bytes / 16 / 256).clamp(1, 132 * 8) as u32;
        Job { symbol, grid, block: 256, size: bytes / 16, rounds: 0 }
    }

    fn name(&self) -> String {
        let Job { symbol, size, rounds, .. } = self;
        match (size, rounds) {
            (0, rounds) => format!("{symbol}/{rounds}"),
            (size, 0) => format!("{symbol}/{size}"),
            (size, rounds) => format!("{symbol}/{size}+{rounds}"),
        }
    }

    fn arguments(&self, buffers: [BufferId; 2]) -> Vec<Argument> {
        let [to, from] = buffers.map(Argument::Buffer);
        match self.symbol {
            "chain" => vec![to, Argument::u32(self.rounds as u32)],
            _ => vec![to, from, Argument::u64(self.size), Argument::u32(self.rounds as u32)],
        }
    }

    fn described(&self) -> Value {
        let Job { symbol, grid, block, size, rounds } = *self;
        let arguments = if symbol == "chain" {
            json!([{"buffer": 0}, {"u32": rounds}])
        } else {
            json!([{"buffer": 0}, {"buffer": 1}, {"u64": size}, {"u32": rounds}])
        };
        json!({"name": self.name(), "symbol": symbol, "grid": grid, "block": block,
               "arguments": arguments, "buffer_bytes": BUFFER_BYTES})
    }
}

/// From one microsecond to ten milliseconds, of arithmetic and of memory.
fn jobs() -> Vec<Job> {
    let chains = [1, 400, 1500, 5000, 25_000, 100_000, 500_000, 4_500_000].map(Job::chain);
    let copies = [1 << 12, 1 << 18, 1 << 22, 1 << 25, 1 << 28, 1 << 31];
    let sums = [1 << 16, 1 << 20, 1 << 24, 1 << 27, 1 << 30, 1 << 32];
    let copies = copies.map(|bytes| Job::memory("stream_copy", bytes));
    let sums = sums.map(|bytes| Job::memory("stream_sum", bytes));
    chains.into_iter().chain(copies).chain(sums).collect()
}

struct Bench {
    device: Box<dyn Device>,
    module: ModuleId,
    buffers: [BufferId; 2],
}

impl Bench {
    fn open(name: &str) -> Result<Bench, DeviceError> {
        let mut device = assay_device::open(name)?;
        let module = device.load(&Image::ptx("work.ptx", WORK))?;
        let buffers = [device.allocate_bare(BUFFER_BYTES)?, device.allocate_bare(BUFFER_BYTES)?];
        for buffer in buffers {
            device.fill(StreamId::DEFAULT, buffer, 0, BUFFER_BYTES, 0x3c)?;
        }
        device.synchronize()?;
        Ok(Bench { device, module, buffers })
    }

    /// A closure that launches a job.
    fn work(
        &self,
        job: Job,
    ) -> impl FnMut(&mut dyn Device, StreamId) -> Result<(), DeviceError> + use<> {
        let launch = Launch {
            grid: [job.grid, 1, 1],
            block: [job.block, 1, 1],
            arguments: job.arguments(self.buffers),
            ..Launch::new(self.module, job.symbol)
        };
        move |device, stream| device.launch(stream, &launch).map(|_| ())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["kernels", _] => {
            let all: Vec<Value> = jobs().iter().map(Job::described).collect();
            say(&Value::from(all));
        }
        ["measure", device] => measure(&mut Bench::open(device)?)?,
        ["launch", device] => launch(&mut Bench::open(device)?)?,
        ["same", device, times, limit_s] => {
            trials(&mut Bench::open(device)?, times.parse()?, 0.0, limit_s.parse()?)?;
        }
        ["slower", device, times, share, limit_s] => {
            trials(&mut Bench::open(device)?, times.parse()?, share.parse()?, limit_s.parse()?)?;
        }
        _ => return Err("see the head of this example for its arguments".into()),
    }
    Ok(())
}

/// Writes a line of the record.
fn say(line: &Value) {
    // A reader that has gone away misses nothing.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn launch(bench: &mut Bench) -> Result<(), DeviceError> {
    for job in jobs() {
        let mut work = bench.work(job);
        for _ in 0..PROFILED {
            work(&mut *bench.device, StreamId::DEFAULT)?;
        }
        bench.device.synchronize()?;
    }
    Ok(())
}

fn measure(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let mut stopwatch = Stopwatch::new(&mut *bench.device)?;
    let bracket = *stopwatch.bracket();
    say(&json!({"device": bench.device.facts().name, "driver": bench.device.facts().driver,
               "empty_ns": bracket.empty_ns, "spread_ns": bracket.spread_ns,
               "nothing_ns": bracket.nothing_ns, "step_ns": bracket.step_ns,
               "holds": stopwatch.holds()}));
    say(&waits(bench, &mut stopwatch)?);
    for job in jobs() {
        let mut work = bench.work(job);
        let mut line = json!({"name": job.name()});
        let quick = Plan { time_limit_s: 0.2, ..Plan::default() };
        let warm = Plan { cache: Cache::Warm, ..quick };
        let period = Plan { graph: true, launches_per_sample: 10, ..quick };
        for (name, plan) in [
            ("cold", quick),
            ("warm", warm),
            ("cold_period", period),
            ("warm_period", Plan { cache: Cache::Warm, ..period }),
        ] {
            let found = stopwatch.measure(&mut *bench.device, &plan, &mut work);
            line[name] = match found {
                Ok(samples) => described(&samples),
                Err(error) => json!({"error": error.to_string()}),
            };
        }
        say(&line);
    }
    // Last, since records change what launches cost.
    for job in jobs() {
        let plan = Plan { time_limit_s: 0.1, ..Plan::default() };
        let mut work = bench.work(job);
        let found = match stopwatch.measure_activity(&mut *bench.device, &plan, &mut work) {
            Ok(samples) => described(&samples),
            Err(error) => json!({"error": error.to_string()}),
        };
        say(&json!({"recorded": job.name(), "found": found}));
    }
    Ok(())
}

/// Kernels that wait on the global timer and say how long they did.
fn waits(bench: &mut Bench, stopwatch: &mut Stopwatch) -> Result<Value, Box<dyn Error>> {
    let mut all = Vec::new();
    for wanted_ns in [1000, 5000, 50_000] {
        let arguments = vec![Argument::Buffer(bench.buffers[0]), Argument::u64(wanted_ns)];
        let launch = Launch { arguments, ..Launch::new(bench.module, "wait_for") };
        let plan = Plan { time_limit_s: 0.1, ..Plan::warm() };
        let samples = stopwatch.measure(&mut *bench.device, &plan, &mut |device, stream| {
            device.launch(stream, &launch).map(|_| ())
        })?;
        let mut inner = [0; 8];
        bench.device.read(bench.buffers[0], 0, &mut inner)?;
        all.push(json!({"inner_ns": u64::from_le_bytes(inner), "measured": described(&samples)}));
    }
    Ok(json!({ "waits": all }))
}

fn described(samples: &Samples) -> Value {
    let summary = Summary::of(samples);
    json!({"median_ns": summary.median_ns, "lower_ns": summary.lower_ns,
           "upper_ns": summary.upper_ns, "iqr_ns": summary.iqr_ns, "n": summary.n,
           "rejected": summary.rejected, "sm_clock_mhz": summary.sm_clock_mhz,
           "cycles": summary.cycles, "ended": format!("{:?}", samples.ended),
           "wall_s": samples.wall_s, "doubts": samples.doubts})
}

/// Compares kernels with themselves, or with copies that take `share` longer.
fn trials(bench: &mut Bench, times: u32, share: f64, limit_s: f64) -> Result<(), Box<dyn Error>> {
    let mut stopwatch = Stopwatch::new(&mut *bench.device)?;
    let subjects = [
        Job::chain(5000),
        Job::memory("stream_copy", 1 << 24),
        Job::chain(25_000),
        Job::memory("stream_sum", 1 << 27),
    ];
    let mut pairs = Vec::new();
    for job in subjects {
        let slowed = slowed(bench, &mut stopwatch, job, share)?;
        pairs.push((job, slowed));
    }
    let began = Instant::now();
    let mut counts = std::collections::BTreeMap::new();
    for trial in 0..times {
        let (job, slowed) = pairs[trial as usize % pairs.len()];
        let mut asked = VersusPlan::default();
        asked.plan.time_limit_s = limit_s;
        asked.plan.seed = u64::from(trial) + 1;
        let (mut a, mut b) = (bench.work(job), bench.work(slowed));
        let versus: Versus = stopwatch.versus(
            &mut *bench.device,
            &asked,
            (&job.name(), &mut a),
            (&slowed.name(), &mut b),
        )?;
        *counts.entry(versus.verdict.to_string()).or_insert(0) += 1;
        say(&serde_json::to_value(&versus)?);
    }
    let seconds = began.elapsed().as_secs_f64();
    say(&json!({"verdicts": counts, "trials": times, "share": share,
                          "seconds": seconds}));
    Ok(())
}

/// The job with as many rounds more as make it take `share` longer, found by secants through long
/// comparisons: far longer than the trials, so that they know the difference far better.
fn slowed(
    bench: &mut Bench,
    stopwatch: &mut Stopwatch,
    job: Job,
    share: f64,
) -> Result<Job, Box<dyn Error>> {
    if share == 0.0 {
        return Ok(job);
    }
    let mut asked = VersusPlan { narrow: 0.05, ..VersusPlan::default() };
    asked.plan.time_limit_s = 0.5;
    let mut effect = |rounds: u64| -> Result<f64, Box<dyn Error>> {
        let later = Job { rounds: job.rounds + rounds, ..job };
        let (mut a, mut b) = (bench.work(job), bench.work(later));
        let pair = (("baseline", &mut a as &mut Work<'_>), ("later", &mut b as &mut Work<'_>));
        Ok(stopwatch.versus(&mut *bench.device, &asked, pair.0, pair.1)?.time.rel)
    };
    let (mut low, mut high) = ((0, 0.0), (64, effect(64)?));
    for _ in 0..6 {
        if (high.1 - share).abs() < 0.0005 {
            break;
        }
        if high.1 < share {
            let next = if high.1 > low.1 { secant(low, high, share) } else { high.0 * 4 };
            low = high;
            high = (next.clamp(high.0 + 1, high.0 * 4), 0.0);
            high.1 = effect(high.0)?;
        } else {
            let next = secant(low, high, share).clamp(low.0, high.0);
            let found = effect(next)?;
            if found < share {
                low = (next, found);
            } else {
                high = (next, found);
            }
            if next == low.0 || found >= share && (found - share).abs() < 0.0005 {
                high = (next, found);
                break;
            }
        }
    }
    say(&json!({"job": job.name(), "rounds_more": high.0, "rel": high.1}));
    Ok(Job { rounds: job.rounds + high.0, ..job })
}

/// Where a line through both points meets `share`.
fn secant(low: (u64, f64), high: (u64, f64), share: f64) -> u64 {
    let slope = (high.1 - low.1) / (high.0 - low.0).max(1) as f64;
    low.0 + ((share - low.1) / slope).round().max(1.0) as u64
}
