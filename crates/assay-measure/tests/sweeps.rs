//! A sweep of a real kernel by closures: on the emulator with instructions counted, on a GPU timed.
//! One configuration is planted: the fastest, since it reads half of each row, and wrong.

use std::io::Write as _;
use std::time::Instant;

use assay_device::{Allocation, Argument, BufferId, Device, DeviceError, Image, Launch};
use assay_device::{ModuleId, StreamId};
use assay_measure::sweep::{Cache, Gate, Space, Subject, SweepPlan, sweep};
use assay_measure::{Plan, Stopwatch};
use assay_record::{Configuration, RowStatus, SweepVerdict};

const PTX: &str = include_str!("../../../kernels/measure/sweep_sum.ptx");

/// Sums of rows on a device.
struct Sums<'d> {
    device: &'d mut dyn Device,
    stopwatch: Option<Stopwatch>,
    module: ModuleId,
    input: BufferId,
    output: BufferId,
    rows: u32,
    cols: u32,
    /// Whether the gate looks at the sums: the control is that the wrong one wins where not.
    checks: bool,
}

/// Small whole numbers, so that every order of a sum gives the same.
fn element(index: u64) -> f32 {
    (index * 7 % 13) as f32
}

fn axis(configuration: &Configuration, name: &str) -> u32 {
    configuration.get(name).copied().unwrap_or(0) as u32
}

impl<'d> Sums<'d> {
    fn new(device: &'d mut dyn Device, rows: u32, cols: u32) -> Result<Sums<'d>, DeviceError> {
        let module = device.load(&Image::ptx("sweep_sum.ptx", PTX))?;
        let count = u64::from(rows) * u64::from(cols);
        let input = device.allocate(&Allocation::new(4 * count))?;
        let output = device.allocate(&Allocation::new(4 * u64::from(rows)))?;
        let bytes: Vec<u8> = (0..count).flat_map(|index| element(index).to_le_bytes()).collect();
        device.write(input, 0, &bytes)?;
        let asynchronous = device.timing_facts().is_some_and(|facts| facts.asynchronous);
        let stopwatch = asynchronous.then(|| Stopwatch::new(device).expect("a stopwatch"));
        Ok(Sums { device, stopwatch, module, input, output, rows, cols, checks: true })
    }

    fn arguments(&self) -> Vec<Argument> {
        let buffers = [self.input, self.output].map(Argument::Buffer);
        buffers.into_iter().chain([Argument::u32(self.cols)]).collect()
    }
}

fn symbol(configuration: &Configuration) -> String {
    format!("sweep_sum_{}_{}", axis(configuration, "threads"), axis(configuration, "width"))
}

fn launch<'a>(sums: &Sums<'_>, symbol: &'a str, configuration: &Configuration) -> Launch<'a> {
    Launch {
        grid: [sums.rows, 1, 1],
        block: [axis(configuration, "threads"), 1, 1],
        arguments: sums.arguments(),
        ..Launch::new(sums.module, symbol)
    }
}

impl Subject for Sums<'_> {
    fn gate(&mut self, configuration: &Configuration) -> Result<Gate, String> {
        let symbol = symbol(configuration);
        let launch = launch(self, &symbol, configuration);
        match self.device.launch(StreamId::DEFAULT, &launch) {
            Err(DeviceError::KernelNotFound { .. }) => return Ok(Gate::Refused("none".into())),
            other => other.map_err(|error| error.to_string())?,
        };
        let mut sums = vec![0; 4 * self.rows as usize];
        self.device.read(self.output, 0, &mut sums).map_err(|error| error.to_string())?;
        for (row, bytes) in sums.chunks_exact(4).enumerate().filter(|_| self.checks) {
            let found = bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
            let from = row as u64 * u64::from(self.cols);
            let wanted: f32 = (from..from + u64::from(self.cols)).map(element).sum();
            if found != wanted {
                return Ok(Gate::Wrong(format!("row {row} is {found}, not {wanted}")));
            }
        }
        Ok(Gate::Right)
    }

    fn time(&mut self, configuration: &Configuration, samples: u32) -> Result<Vec<f64>, String> {
        let symbol = symbol(configuration);
        let launch = launch(self, &symbol, configuration);
        let Some(stopwatch) = &mut self.stopwatch else {
            let report = self.device.launch(StreamId::DEFAULT, &launch);
            let count = report.map_err(|error| error.to_string())?.warp_instructions;
            return Ok(vec![count.unwrap_or(0) as f64; samples as usize]);
        };
        let samples = samples.max(2);
        let plan = Plan { least_samples: samples, most_samples: samples, ..Plan::default() };
        let mut work =
            |device: &mut dyn Device, stream: StreamId| device.launch(stream, &launch).map(|_| ());
        let taken = stopwatch.measure(self.device, &plan, &mut work);
        taken.map(|taken| taken.duration_ns).map_err(|error| error.to_string())
    }
}

fn configurations() -> Vec<Configuration> {
    let axes = [
        ("threads".to_owned(), vec![32, 64, 128, 256, 512, 1024, 2048]),
        ("width".to_owned(), vec![1, 4]),
    ];
    let space = Space { axes: axes.into(), constraints: Vec::new() };
    space.configurations().expect("configurations").0
}

fn searched(sums: &mut Sums<'_>, race: bool) -> assay_measure::sweep::Search {
    let plan = SweepPlan { race, ..SweepPlan::default() };
    let began = Instant::now();
    let mut now = || began.elapsed().as_secs_f64();
    sweep(&plan, configurations(), sums, &mut Cache::none(), &mut now, &mut |_| {})
}

fn winner(search: &assay_measure::sweep::Search) -> Option<&Configuration> {
    match &search.verdict {
        SweepVerdict::Winner { configuration, .. } => Some(configuration),
        _ => None,
    }
}

#[test]
fn the_fast_wrong_kernel_is_caught_by_its_gate_and_wins_without_one() {
    let mut device = assay_device::open("emulator").expect("an emulator");
    let mut sums = Sums::new(&mut *device, 2, 4096).expect("sums");
    let search = searched(&mut sums, false);
    let status = |threads: i64| {
        let of = |row: &&assay_record::SweepRow| row.configuration["threads"] == threads;
        search.rows.iter().filter(of).map(|row| row.status).collect::<Vec<_>>()
    };
    assert_eq!(status(32), [RowStatus::Wrong; 2]);
    assert_eq!(status(2048), [RowStatus::Refused; 2]);
    assert!(winner(&search).is_some_and(|one| one["threads"] != 32), "{:?}", search.verdict);
    sums.checks = false;
    let careless = searched(&mut sums, false);
    let won = winner(&careless).expect("a winner");
    assert_eq!(won["threads"], 32, "with no gate the wrong one wins: {:?}", careless.verdict);
}

#[test]
fn the_same_configuration_wins_twice_or_none_does_gpu() {
    let mut device = match assay_device::open("cuda") {
        Ok(device) => device,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED the_same_configuration_gpu: {error}");
            return;
        }
    };
    let mut sums = Sums::new(&mut *device, 4096, 8192).expect("sums");
    let mut winners = Vec::new();
    for race in [false, true, false, true] {
        let search = searched(&mut sums, race);
        let _ = writeln!(std::io::stderr(), "SWEEP race {race} {:.2} s", search.spent_s);
        for row in &search.rows {
            let _ = writeln!(
                std::io::stderr(),
                "  {:?} {:?} {:?} ns {:?} n {} rounds {}: {}",
                row.configuration,
                row.status,
                row.median_ns,
                row.interval_ns,
                row.duration_ns.len(),
                row.rounds,
                row.reason
            );
        }
        let _ = writeln!(std::io::stderr(), "  {:?} {:?}", search.verdict, search.stopped);
        assert_eq!(search.stopped, None);
        let wrong = |row: &assay_record::SweepRow| row.status == RowStatus::Wrong;
        assert_eq!(search.rows.iter().filter(|row| wrong(row)).count(), 2);
        winners.extend(winner(&search).cloned());
    }
    winners.dedup();
    assert!(winners.len() <= 1, "{winners:?}");
}
