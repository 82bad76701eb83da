//! A board's gauges on a GPU: what one reading takes, and that no measurement is slower for them.

use std::io::Write as _;
use std::time::Duration;

use assay_device::nvml::Telemetry;
use assay_device::{Allocation, Argument, Device, Image, Launch, StreamId};
use assay_measure::{Plan, Stopwatch, Summary};

const WORK: &str = include_str!("../../../kernels/measure/work.ptx");

/// A line past the test harness.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

#[test]
fn readings_between_samples_change_no_median_gpu() {
    let mut device = match assay_device::open("cuda:0") {
        Ok(device) => device,
        Err(error) => {
            assert!(std::env::var_os("ASSAY_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
            return say(&format!("SKIPPED readings_between_samples_gpu: {error}"));
        }
    };
    let module = device.load(&Image::ptx("work.ptx", WORK)).expect("the kernels load");
    let out = device.allocate(&Allocation::new(1 << 22)).expect("a buffer");
    let mut work = |device: &mut dyn Device, stream: StreamId| {
        let arguments = vec![Argument::Buffer(out), Argument::u32(5000)];
        let (grid, block) = ([132, 1, 1], [256, 1, 1]);
        let launch = Launch { grid, block, arguments, ..Launch::new(module, "chain") };
        device.launch(stream, &launch).map(|_| ())
    };
    let mut plain = Stopwatch::new(device.as_mut()).expect("a stopwatch");
    let mut watched = Stopwatch::new(device.as_mut()).expect("a stopwatch");
    let gauge = Telemetry::open(device.as_ref()).expect("NVML comes with the driver");
    // At every sample, which is more than `assay bench` does.
    watched.watch(Box::new(gauge), Duration::ZERO);
    let plan = Plan { least_samples: 100, most_samples: 100, ..Plan::default() };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let samples = plain.measure(device.as_mut(), &plan, &mut work).expect("samples");
        without.push(Summary::of(&samples).median_ns);
        let samples = watched.measure(device.as_mut(), &plan, &mut work).expect("samples");
        with.push(Summary::of(&samples).median_ns);
        let seen = samples.watched.expect("a board was watched");
        say(&format!("WATCHED {seen:?}"));
        assert_eq!(seen.readings, 101);
        assert!(seen.power_w.is_some_and(|power| (20.0..2000.0).contains(&power.median)));
        assert!(seen.temperature_c.is_some_and(|heat| (5.0..110.0).contains(&heat.median)));
        assert!(seen.missing.is_empty(), "{:?}", seen.missing);
    }
    let middle = |values: &[f64]| assay_measure::statistics::median(values);
    let (without, with) = (middle(&without), middle(&with));
    say(&format!("MEDIANS without {without:.1} ns, with {with:.1} ns"));
    assert!((with / without - 1.0).abs() < 0.01, "{without} and {with}");
}
