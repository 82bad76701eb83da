//! The clock under load: the heaviest kernel there is, run window after window.

use std::collections::BTreeSet;

use assay_device::Device;
use assay_device::nvml::Telemetry;
use assay_num::Format;
use assay_record::{Entry, Figure};

use super::fma::{Orbits, Pipe};
use super::rate::calibrate;
use super::span::{Spans, quantile};
use super::{Probe, ProbeContext, ProbeError, Quantity, rates};

const LOAD_METHOD: &str = "the clock of every multiprocessor in windows of some 20 ms of the \
     heaviest load: wgmma of bf16 on random data where there is such, else fused multiply-add; \
     the value is the median window's, the curve is over seconds";
const SAG_METHOD: &str = "how far the clock of the windows of the load fell below that of the \
     fastest, as a part of it; the value is that of the slowest twentieth (p95), p5 that of the \
     fastest twentieth";

/// The clock under load and its sag.
pub(super) const LOAD_PROBE: Probe = Probe {
    title: "clock under load",
    quantities: &[
        Quantity { name: "clock_load", unit: "MHz", method: LOAD_METHOD },
        Quantity { name: "clock_sag", unit: "ratio", method: SAG_METHOD },
    ],
    run: |context| {
        context.attempt_all(LOAD_PROBE.quantities, |context| {
            let [load, sag] = LOAD_PROBE.quantities else { return Ok(Vec::new()) };
            let course = course(context)?;
            Ok(entries(load, sag, &course))
        })
    },
};

/// What happened under the load.
#[derive(Clone, PartialEq, Debug, Default)]
struct Course {
    /// Of each window seconds since the first, and the clock in MHz.
    windows: Vec<(f64, f64)>,
    /// The most power drawn, and the limit in force and by default, in watts.
    power_w: [Option<f64>; 3],
    /// Every reason for which the device said that it held its clocks down.
    throttle: BTreeSet<String>,
}

impl Course {
    /// Asks the device's management library, right after a window.
    fn ask(&mut self, telemetry: &Telemetry) {
        let sample = telemetry.sample();
        let most = self.power_w[0].into_iter().chain(sample.power_w).reduce(f64::max);
        self.power_w = [most, sample.power_limit_w, sample.power_limit_default_w];
        self.throttle.extend(sample.throttle);
    }

    /// Power and reasons in words; nothing where nothing is known.
    fn words(&self) -> String {
        let watts = |power: Option<f64>| power.map_or("?".to_owned(), |w| format!("{w:.0}"));
        let [drawn, limit, default] = self.power_w.map(watts);
        if self.power_w[0].is_none() {
            return String::new();
        }
        let reasons = match self.throttle.len() {
            0 => "no reason given for lower clocks".to_owned(),
            _ => self.throttle.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        };
        format!("; {drawn} W of {limit} W ({default} W by default): {reasons}")
    }
}

/// Windows between two questions to the management library.
const ASKED_EVERY: u32 = 4;

fn course(context: &mut ProbeContext<'_>) -> Result<Course, ProbeError> {
    let (count, target_ns) = match (context.tiny, context.quick) {
        (true, _) => (2, 0.0),
        (_, true) => (12, 1e7),
        _ => (60, 2e7),
    };
    let pairs = if context.tiny { 2 } else { super::products::PAIRS };
    if context.architecture() == 90 {
        let bench = rates::heaviest(context)?;
        let found = take(context.device, count, target_ns, |device, rounds| {
            bench.run(device, rounds, pairs)
        });
        bench.free(context.device)?;
        return found;
    }
    let module = context.load("fma.ptx", rates::FMA)?;
    let pipe = Pipe { format: Format::F32, lanes: 1 };
    let shape = (context.multiprocessors(), 1024);
    let orbits = Orbits::new(context.device, module, pipe, shape, context.seed)?;
    let found = take(context.device, count, target_ns, |device, rounds| orbits.run(device, rounds));
    orbits.free(context.device)?;
    found
}

fn take(
    device: &mut dyn Device,
    count: u32,
    target_ns: f64,
    mut run: impl FnMut(&mut dyn Device, u32) -> Result<Spans, ProbeError>,
) -> Result<Course, ProbeError> {
    let rounds = calibrate(target_ns, 1 << 24, |rounds| run(device, rounds))?;
    let telemetry = Telemetry::open(device).ok();
    let mut course = Course::default();
    let mut begin = None;
    for window in 0..count {
        let spans = run(device, rounds)?;
        let start = *begin.get_or_insert(spans.start_ns());
        let seconds = spans.start_ns().saturating_sub(start) as f64 / 1e9;
        course.windows.push((seconds, spans.sm_clock_mhz()));
        if let Some(telemetry) = telemetry.as_ref().filter(|_| window % ASKED_EVERY == 3) {
            course.ask(telemetry);
        }
    }
    Ok(course)
}

fn entries(load: &Quantity, sag: &Quantity, course: &Course) -> Vec<Entry> {
    let windows = &course.windows;
    let at = |part| quantile(windows.iter().map(|window| window.1), part);
    let samples = windows.len() as u64;
    let clock = Figure {
        value: at(0.5),
        samples,
        p5: at(0.05),
        p95: at(0.95),
        sm_clock_mhz: Some(at(0.5)),
    };
    let fallen = |clock: f64| 1.0 - clock / at(1.0);
    let fall = Figure {
        value: fallen(at(0.05)),
        samples,
        p5: fallen(at(0.95)),
        p95: fallen(at(0.05)),
        sm_clock_mhz: Some(at(0.5)),
    };
    let words = course.words();
    let why = format!("cycles against the device's nanoseconds on every multiprocessor{words}");
    let short = format!("of windows of some 20 ms: shorter sags do not show{words}");
    vec![
        load.measured(clock).trusted(0.95, why).along("s", windows.clone()),
        sag.measured(fall).trusted(0.9, short),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_falls_sags_by_what_its_slowest_windows_lost() {
        let windows = vec![(0.0, 2000.0), (0.1, 1900.0), (0.2, 1800.0)];
        let course = Course {
            windows: windows.clone(),
            power_w: [Some(698.6), Some(600.0), Some(700.0)],
            throttle: ["software power cap".to_owned()].into(),
        };
        let [load, sag] = LOAD_PROBE.quantities else { panic!("two quantities") };
        let made = entries(load, sag, &course);
        assert_eq!(made[0].value, Some(1900.0));
        let why = &made[0].confidence_reason;
        assert!(why.ends_with("; 699 W of 600 W (700 W by default): software power cap"), "{why}");
        assert!((made[1].value.unwrap() - 0.095).abs() < 1e-12);
        assert_eq!(made[1].value, made[1].p95);
        assert_eq!(made[0].points, windows);
    }

    #[test]
    fn a_stopped_clock_is_a_failed_entry() {
        let [load, sag] = LOAD_PROBE.quantities else { panic!("two quantities") };
        let made =
            entries(load, sag, &Course { windows: vec![(0.0, f64::NAN)], ..Course::default() });
        assert!(made.iter().all(|entry| entry.value.is_none()));
    }
}
