//! The whole engine on a simulated device: what it measures, what it rejects, when it stops, and
//! what it says of work that cannot be measured.

#[allow(dead_code, reason = "its board is of another test")]
mod simulated;

use assay_device::DeviceError;
use assay_measure::{Cache, Ended, MeasureError, Plan, Samples, Stopwatch, Summary};
use simulated::{Noise, Simulated, kernel};

fn measured(noise: Noise, plan: &Plan, ns: u64) -> Result<Samples, MeasureError> {
    let mut device = Simulated::new(noise, 1);
    let mut stopwatch = Stopwatch::new(&mut device)?;
    stopwatch.measure(&mut device, plan, &mut kernel(ns))
}

fn summary(noise: Noise, plan: &Plan, ns: u64) -> Summary {
    Summary::of(&measured(noise, plan, ns).expect("the simulated device measures"))
}

#[test]
fn kernels_from_a_microsecond_to_ten_milliseconds_take_what_they_take() {
    for ns in [1000, 3000, 10_000, 100_000, 1_000_000, 10_000_000] {
        let plan = Plan { time_limit_s: 10.0, ..Plan::default() };
        let found = summary(Noise::QUIET, &plan, ns);
        let most = (0.02 * ns as f64).max(300.0);
        assert!((found.median_ns - ns as f64).abs() <= most, "{ns}: {found:?}");
        assert!(found.lower_ns <= found.median_ns && found.median_ns <= found.upper_ns);
        assert!(found.sm_clock_mhz.is_some_and(|clock| (clock - 1980.0).abs() < 2.0));
        let cycles = found.median_ns * 1.98;
        assert!(found.cycles.is_some_and(|found| (found - cycles).abs() < 0.01 * cycles));
    }
}

#[test]
fn the_cost_of_the_bracket_is_taken_off() {
    let mut device = Simulated::new(Noise::QUIET, 1);
    let stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    let bracket = stopwatch.bracket();
    assert!((bracket.empty_ns - 700.0).abs() < 40.0, "{bracket:?}");
    assert!((bracket.nothing_ns - 1600.0).abs() < 60.0, "{bracket:?}");
    assert_eq!(bracket.step_ns, 32.0);
}

#[test]
fn only_a_cold_plan_flushes_and_never_inside_the_span() {
    let mut device = Simulated::new(Noise::QUIET, 1);
    let mut stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    let plan = Plan { cache: Cache::Warm, ..Plan::default() };
    let warm = stopwatch.measure(&mut device, &plan, &mut kernel(5000)).expect("warm samples");
    assert_eq!(device.flushes, 0);
    let plan = Plan::default();
    let cold = stopwatch.measure(&mut device, &plan, &mut kernel(5000)).expect("cold samples");
    assert_eq!(device.flushes, cold.taken() as u64);
    let (warm, cold) = (Summary::of(&warm).median_ns, Summary::of(&cold).median_ns);
    assert!((warm - cold).abs() < 100.0, "{warm} {cold}");
}

#[test]
fn samples_of_a_sagged_clock_are_rejected_and_counted() {
    let noise = Noise { sagged: 0.2, ..Noise::QUIET };
    let plan = Plan { least_samples: 200, ..Plan::default() };
    let samples = measured(noise, &plan, 50_000).expect("samples");
    let rejected = samples.rejected.len();
    assert!(rejected >= samples.taken() / 20 && rejected <= samples.taken() / 2, "{rejected}");
    assert!(samples.rejected.iter().all(|sample| sample.sm_clock_mhz < 1975.0));
    let found = Summary::of(&samples);
    assert!((found.median_ns - 50_000.0).abs() < 500.0, "{found:?}");
    assert!(samples.doubts.is_empty(), "{:?}", samples.doubts);
    // The control: were the clock not looked at, the slow samples would be among the others.
    let blind = Plan { clock_tolerance_rel: 0.9, ..plan };
    let all = measured(noise, &blind, 50_000).expect("samples");
    assert_eq!(all.rejected.len(), 0);
    assert!(Summary::of(&all).p95_ns > 55_000.0);
}

#[test]
fn a_clock_that_never_settles_is_said() {
    let noise = Noise { wanders: true, sagged_mhz: 1000.0, ..Noise::QUIET };
    let samples = measured(noise, &Plan { time_limit_s: 0.3, ..Plan::default() }, 400_000);
    let doubts = samples.expect("samples").doubts;
    assert!(doubts.iter().any(|doubt| doubt.contains("never settled")), "{doubts:?}");
}

#[test]
fn sampling_ends_when_the_interval_is_narrow_and_sooner_on_a_quiet_device() {
    let plan = Plan { time_limit_s: 20.0, interval_rel: 0.002, ..Plan::default() };
    let quiet = measured(Noise::QUIET, &plan, 100_000).expect("samples");
    assert_eq!(quiet.ended, Ended::Interval);
    let loud = measured(Noise { jitter_rel: 0.02, ..Noise::QUIET }, &plan, 100_000);
    let loud = loud.expect("samples");
    assert!(loud.taken() > 2 * quiet.taken(), "{} {}", loud.taken(), quiet.taken());
    let impatient = Plan { interval_rel: 0.0, ..plan };
    let settled = measured(Noise { step_ns: 1.0, ..Noise::QUIET }, &impatient, 100_000);
    let ended = settled.expect("samples").ended;
    assert!(matches!(ended, Ended::NoiseSettled | Ended::SampleLimit), "{ended:?}");
}

#[test]
fn a_graphs_period_holds_neither_its_launch_nor_its_flushes() {
    for cache in [Cache::Warm, Cache::Cold] {
        let plan = Plan { cache, graph: true, launches_per_sample: 50, ..Plan::default() };
        let found = summary(Noise { jitter_rel: 0.0005, ..Noise::QUIET }, &plan, 2000);
        assert!((found.median_ns - 2000.0).abs() < 60.0, "{cache:?} {found:?}");
    }
}

#[test]
fn work_that_waits_for_the_held_stream_is_a_possible_deadlock() {
    let mut device = Simulated::new(Noise::QUIET, 1);
    let mut stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    let mut work = kernel(1000);
    let waits = stopwatch.measure(&mut device, &Plan::default(), &mut |device, stream| {
        work(device, stream)?;
        device.synchronize()
    });
    let error = waits.expect_err("a held stream cannot be waited for");
    assert!(matches!(error, MeasureError::Deadlock { .. }), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("only launch")));
    // And the stopwatch still works.
    assert!(stopwatch.measure(&mut device, &Plan::default(), &mut kernel(1000)).is_ok());
}

#[test]
fn work_that_launches_nothing_is_no_measurement() {
    let mut device = Simulated::new(Noise::QUIET, 1);
    let mut stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    let nothing = stopwatch.measure(&mut device, &Plan::default(), &mut |_, _| Ok(()));
    assert!(matches!(nothing, Err(MeasureError::NoWork { .. })), "{nothing:?}");
    let short = stopwatch.measure(&mut device, &Plan::default(), &mut kernel(10));
    assert!(matches!(short, Err(MeasureError::NoWork { .. })), "{short:?}");
}

#[test]
fn a_device_lost_in_the_middle_is_an_error_and_no_panic() {
    let mut device = Simulated::new(Noise::QUIET, 1);
    device.dies_after = Some(10);
    let mut stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    let lost = stopwatch.measure(&mut device, &Plan::default(), &mut kernel(1000));
    assert!(matches!(lost, Err(MeasureError::Device(DeviceError::Lost { .. }))), "{lost:?}");
}

#[test]
fn a_plan_that_cannot_be_carried_out_is_refused() {
    let wrong = [
        Plan { launches_per_sample: 0, ..Plan::default() },
        Plan { launches_per_sample: 100_000, ..Plan::default() },
        Plan { least_samples: 0, ..Plan::default() },
        Plan { most_samples: 3, least_samples: 4, ..Plan::default() },
        Plan { time_limit_s: f64::NAN, ..Plan::default() },
        Plan { confidence: 1.0, ..Plan::default() },
        Plan { interval_rel: f64::NAN, ..Plan::default() },
    ];
    for plan in wrong {
        let refused = measured(Noise::QUIET, &plan, 1000);
        assert!(matches!(refused, Err(MeasureError::Plan { .. })), "{plan:?}");
    }
}
