//! The clock under load: the heaviest kernel there is, run window after window.

use assay_device::Device;
use assay_num::Format;
use assay_record::{Entry, Figure};

use super::fma::{Orbits, Pipe};
use super::rate::calibrate;
use super::span::{Spans, quantile};
use super::{Probe, ProbeContext, ProbeError, Quantity, rates};

const LOAD_METHOD: &str = "the clock of every multiprocessor in windows of some 20 ms of the \
     heaviest load: wgmma of bf16 on random data where there is such, else fused multiply-add; \
     the value is the median window's, the curve is over seconds";
const SAG_METHOD: &str = "how far the slowest window of the load fell below the fastest, as a \
     part of it";

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
            let windows = windows(context)?;
            Ok(entries(load, sag, &windows))
        })
    },
};

/// One window: seconds since the first, the clock in MHz.
type Window = (f64, f64);

fn windows(context: &mut ProbeContext<'_>) -> Result<Vec<Window>, ProbeError> {
    let (count, target_ns) = if context.quick { (12, 1e7) } else { (60, 2e7) };
    if context.architecture() == 90 {
        let bench = rates::heaviest(context)?;
        let found = take(context.device, count, target_ns, |device, rounds| {
            bench.run(device, rounds, super::products::PAIRS)
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
) -> Result<Vec<Window>, ProbeError> {
    let rounds = calibrate(target_ns, 1 << 24, |rounds| run(device, rounds))?;
    let mut windows: Vec<Window> = Vec::new();
    let mut begin = None;
    for _ in 0..count {
        let spans = run(device, rounds)?;
        let start = *begin.get_or_insert(spans.start_ns());
        let seconds = spans.start_ns().saturating_sub(start) as f64 / 1e9;
        windows.push((seconds, spans.sm_clock_mhz()));
    }
    Ok(windows)
}

fn entries(load: &Quantity, sag: &Quantity, windows: &[Window]) -> Vec<Entry> {
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
        value: fallen(at(0.0)),
        samples,
        p5: fallen(at(0.95)),
        p95: fallen(at(0.05)),
        sm_clock_mhz: Some(at(0.5)),
    };
    let why = "cycles against the device's nanoseconds, on every multiprocessor";
    vec![
        load.measured(clock).trusted(0.95, why).along("s", windows.to_vec()),
        sag.measured(fall).trusted(0.9, "of windows of some 20 ms: shorter sags do not show"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_falls_by_a_tenth_sags_by_a_tenth() {
        let windows = [(0.0, 2000.0), (0.1, 1900.0), (0.2, 1800.0)];
        let [load, sag] = LOAD_PROBE.quantities else { panic!("two quantities") };
        let made = entries(load, sag, &windows);
        assert_eq!(made[0].value, Some(1900.0));
        assert!((made[1].value.unwrap() - 0.1).abs() < 1e-12);
        assert_eq!(made[0].points, windows);
    }

    #[test]
    fn a_stopped_clock_is_a_failed_entry() {
        let [load, sag] = LOAD_PROBE.quantities else { panic!("two quantities") };
        let made = entries(load, sag, &[(0.0, f64::NAN)]);
        assert!(made.iter().all(|entry| entry.value.is_none()));
    }
}
