//! The measurements of a run: every kernel by itself, then those that are compared in turns.

use std::time::Duration;

use assay_contract::Prepared;
use assay_device::nvml::Telemetry;
use assay_device::{Device, StreamId};
use assay_measure::{
    Cache, MeasureError, Plan, Samples, Stopwatch, VersusPlan, place, probe, series,
};
use assay_record::{BenchRecord, Dossier, ExitCode, Standing, Timing};

use super::compare::bar;
use super::kernels::{Asked, Subject};
use super::{Arguments, Failure, flop};
use crate::progress::Progress;

/// Time between two readings of power, temperature and throttle reasons at least.
const BETWEEN_READINGS: Duration = Duration::from_millis(1);

/// Runs in one replay of a graph.
const REPLAYED: u32 = 20;

/// Measures everything; what is done stays in the record whatever happens later.
pub(super) fn all(
    device: &mut dyn Device,
    asked: &Asked,
    standings: &[Standing],
    (arguments, dossier): (&Arguments, Option<&Dossier>),
    record: &mut BenchRecord,
) -> Result<(), Failure> {
    let telemetry = match Telemetry::open(device) {
        Ok(telemetry) => Some(telemetry),
        Err(error) => {
            let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            record.conditions_reason = Some(format!("{error}{hint}"));
            None
        }
    };
    let conditions = || telemetry.as_ref().map(probe::conditions);
    let mut stopwatch = Stopwatch::new(device).map_err(|error| failed(&error))?;
    if let Ok(gauge) = Telemetry::open(device) {
        stopwatch.watch(Box::new(gauge), BETWEEN_READINGS);
    }
    record.before = conditions();
    let progress = Progress::new(asked.subjects.len() as u64);
    for (subject, standing) in asked.subjects.iter().zip(standings) {
        progress.at(&subject.name());
        let timing = one(device, &mut stopwatch, (subject, standing), (arguments, dossier));
        progress.step();
        match timing {
            Ok(timing) => record.timings.push(timing),
            Err(failure) => {
                record.incomplete = Some(failure.to_string().trim_end().to_owned());
                record.exit_code = failure.exit.code();
                break;
            }
        }
    }
    if arguments.versus && record.incomplete.is_none() {
        turns(device, &mut stopwatch, asked, arguments, record);
    }
    progress.finish();
    record.after = conditions();
    let steady = |timing: &Timing| timing.duration.is_some() && timing.doubts.is_empty();
    let unstable = !record.timings.iter().all(steady);
    if unstable && record.exit_code == ExitCode::Holds.code() {
        record.exit_code = ExitCode::Unstable.code();
    }
    // A device that is lost has nothing left to give back.
    let _ = stopwatch.free(device);
    Ok(())
}

fn plan(arguments: &Arguments) -> Plan {
    Plan {
        cache: if arguments.warm { Cache::Warm } else { Cache::Cold },
        time_limit_s: arguments.time,
        seed: arguments.seed,
        ..Plan::default()
    }
}

/// Times one kernel.
fn one(
    device: &mut dyn Device,
    stopwatch: &mut Stopwatch,
    (subject, standing): (&Subject, &Standing),
    (arguments, dossier): (&Arguments, Option<&Dossier>),
) -> Result<Timing, Failure> {
    let prepared = prepare(device, subject, arguments)?;
    let mut work = |device: &mut dyn Device, stream: StreamId| prepared.launch(device, stream);
    let plan = plan(arguments);
    let duration = stopwatch.measure(device, &plan, &mut work);
    let replays = Plan { graph: true, launches_per_sample: REPLAYED, ..plan };
    let period = match &duration {
        Err(error) => Err(error.clone()),
        Ok(_) => stopwatch.measure(device, &replays, &mut work),
    };
    let recorded = match &duration {
        Ok(_) if arguments.activity => Some(stopwatch.measure_activity(device, &plan, &mut work)),
        _ => None,
    };
    let errors =
        [Some(&duration), Some(&period), recorded.as_ref()].map(|found| found?.as_ref().err());
    let lost = errors.into_iter().flatten().find(|error| is_lost(error)).cloned();
    let moved = prepared.bytes();
    if let Some(error) = lost {
        return Err(failed(&error));
    }
    let freed = prepared.free(device);
    freed.map_err(|error| Failure::new(ExitCode::Internal, error.to_string()))?;
    let bytes = arguments.bytes.or((moved > 0).then_some(moved as f64));
    let found = (duration, period, recorded);
    Ok(timing((subject, standing), found, bytes, (arguments, dossier)))
}

fn prepare(
    device: &mut dyn Device,
    subject: &Subject,
    arguments: &Arguments,
) -> Result<Prepared, Failure> {
    Prepared::new(device, &subject.kernel, &subject.dims, arguments.seed).map_err(|error| {
        Failure::request(format!("`{}` cannot be launched", subject.name())).caused_by(&error)
    })
}

type Found = Result<Samples, MeasureError>;

/// The record of one kernel's samples.
fn timing(
    (subject, standing): (&Subject, &Standing),
    (duration, period, recorded): (Found, Found, Option<Found>),
    bytes: Option<f64>,
    (arguments, dossier): (&Arguments, Option<&Dossier>),
) -> Timing {
    let mut doubts = Vec::new();
    let mut parted = |found: Found| match found {
        Ok(samples) => {
            doubts.extend(samples.doubts.iter().cloned());
            (Some(series(&samples)), None)
        }
        Err(error) => (None, Some(said(&error))),
    };
    let (duration, duration_reason) = parted(duration);
    let (period, period_reason) = parted(period);
    let (recorded, recorded_reason) = recorded.map_or((None, None), parted);
    doubts.dedup();
    let seconds = duration.as_ref().map(|series| series.median_ns / 1e9);
    let rate = |amount: Option<f64>| Some(amount? / seconds?);
    let flop = flop::of(subject, arguments);
    let roofline =
        dossier.and_then(|dossier| place(dossier, &arguments.roof, (bytes, flop.value), seconds?));
    Timing {
        name: subject.name(),
        checked: standing.clone(),
        cache: if arguments.warm { "warm" } else { "cold" }.to_owned(),
        duration,
        duration_reason,
        period,
        period_reason,
        recorded,
        recorded_reason,
        bytes,
        bytes_per_s: rate(bytes),
        flop_per_s: rate(flop.value),
        flop: flop.value,
        flop_source: flop.source,
        flop_counted: flop.counted,
        flop_reason: flop.reason,
        roofline,
        doubts,
    }
}

/// Compares every further kernel with the first, in turns.
fn turns(
    device: &mut dyn Device,
    stopwatch: &mut Stopwatch,
    asked: &Asked,
    arguments: &Arguments,
    record: &mut BenchRecord,
) {
    let Some((first, rest)) = asked.subjects.split_first() else { return };
    let plan = VersusPlan::default();
    let own = self::plan(arguments);
    let plan = VersusPlan {
        plan: Plan {
            cache: own.cache,
            time_limit_s: own.time_limit_s,
            seed: own.seed,
            ..plan.plan
        },
        bar: bar(arguments),
        ..plan
    };
    for candidate in rest {
        match pair(device, stopwatch, &plan, (first, candidate), arguments) {
            Ok(versus) => record.versus.push(versus),
            Err(failure) => {
                record.incomplete = Some(failure.to_string().trim_end().to_owned());
                record.exit_code = failure.exit.code();
                return;
            }
        }
    }
}

fn pair(
    device: &mut dyn Device,
    stopwatch: &mut Stopwatch,
    plan: &VersusPlan,
    (baseline, candidate): (&Subject, &Subject),
    arguments: &Arguments,
) -> Result<assay_record::Versus, Failure> {
    let a = prepare(device, baseline, arguments)?;
    let b = prepare(device, candidate, arguments)?;
    let versus = stopwatch.versus(
        device,
        plan,
        (&baseline.name(), &mut |device, stream| a.launch(device, stream)),
        (&candidate.name(), &mut |device, stream| b.launch(device, stream)),
    );
    let versus = versus.map_err(|error| failed(&error))?;
    for prepared in [a, b] {
        let freed = prepared.free(device);
        freed.map_err(|error| Failure::new(ExitCode::Internal, error.to_string()))?;
    }
    Ok(versus)
}

fn is_lost(error: &MeasureError) -> bool {
    matches!(error, MeasureError::Device(error) if error.poisons_device())
}

fn said(error: &MeasureError) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

fn failed(error: &MeasureError) -> Failure {
    let exit = match error {
        MeasureError::Device(_) => ExitCode::NoDevice,
        _ => ExitCode::Unstable,
    };
    Failure::new(exit, "the measurement failed").caused_by(error).hint(error.hint())
}
