//! Devices that fail while they are measured: every probe and the stopwatch end with a reason, and
//! what was measured before stays.

use assay_device::emulator::{ClockCourse, EmulatedClock, EmulatorDevice, EmulatorOptions};
use assay_device::fault::{FaultInjecting, FaultPlan};
use assay_device::{Device, DeviceError};
use assay_measure::probe::{Probe, ProbeContext, host, launch, probes, run};
use assay_measure::{MeasureError, Plan, Stopwatch};
use assay_record::{Entry, EntryStatus};

fn emulator(course: ClockCourse) -> EmulatorDevice {
    let clock = Some(EmulatedClock { course, ..EmulatedClock::default() });
    EmulatorDevice::new(EmulatorOptions { architecture: 90, clock, ..Default::default() })
}

fn faulty(plan: FaultPlan) -> FaultInjecting<EmulatorDevice> {
    FaultInjecting::new(emulator(ClockCourse::Steady), plan)
}

/// Warp instructions after which a launch ends: these tests are about what goes wrong, so that a
/// kernel made for a GPU's size may as well end early.
const BUDGET: u64 = 20_000;

/// Runs probes; the entries, and what the device was lost of.
fn probed(device: &mut dyn Device, probes: &[Probe]) -> (Vec<Entry>, Option<String>) {
    device.limit_instructions(BUDGET);
    let mut context = ProbeContext::new(device, true, 3);
    let entries = run(&mut context, probes, &mut |_| {});
    (entries, context.lost().map(str::to_owned))
}

/// Every entry has either a value or a reason.
fn check_entries(title: &str, entries: &[Entry]) {
    for entry in entries {
        let has_value = entry.status == EntryStatus::Measured;
        assert_eq!(entry.value.is_some(), has_value, "{title}: {entry:?}");
        assert_eq!(entry.reason.is_none(), has_value, "{title}: {entry:?}");
    }
}

/// The probes whose work on the emulator is small, so that they may go on for a while.
fn small() -> Vec<Probe> {
    [host::PROBES, launch::PROBES].concat()
}

#[test]
fn each_probe_survives_a_device_that_is_lost_under_it() {
    let at_once = FaultPlan { lose_at_launch: Some(1), ..FaultPlan::default() };
    for probe in probes() {
        survives(&probe, &at_once);
    }
    for at in [1, 2, 5, 30] {
        for probe in small() {
            survives(&probe, &FaultPlan { lose_at_launch: Some(at), ..FaultPlan::default() });
            survives(&probe, &FaultPlan { lose_at_wait: Some(at), ..FaultPlan::default() });
        }
    }
}

/// Every quantity has its entry, and where the device was lost one of them says so.
fn survives(probe: &Probe, plan: &FaultPlan) {
    let (entries, lost) = probed(&mut faulty(plan.clone()), &[*probe]);
    let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let wanted: Vec<_> = probe.quantities.iter().map(|quantity| quantity.name).collect();
    assert_eq!(names, wanted, "{} under {plan:?}", probe.title);
    check_entries(probe.title, &entries);
    if let Some(cause) = lost {
        let failed = entries.iter().any(|entry| {
            entry.status == EntryStatus::Failed
                && entry.reason.as_deref().is_some_and(|reason| reason.contains("lost"))
        });
        assert!(failed, "{}: lost of {cause}, but no entry says so", probe.title);
    }
}

#[test]
fn once_the_device_is_lost_the_other_probes_say_so_and_are_not_tried() {
    let plan = FaultPlan { lose_at_launch: Some(1), ..FaultPlan::default() };
    let mut device = faulty(plan);
    let all = probes();
    let (entries, lost) = probed(&mut device, &all);
    let wanted: usize = all.iter().map(|probe| probe.quantities.len()).sum();
    assert_eq!(entries.len(), wanted);
    check_entries("all", &entries);
    assert!(lost.is_some_and(|cause| cause.contains("lost on plan at launch 1")));
    let last = entries.last().expect("there are probes");
    let reason = last.reason.as_deref().unwrap_or_default();
    assert!(reason.starts_with("not run: the device was lost before it"), "{reason}");
}

#[test]
fn each_probe_survives_memory_that_runs_out() {
    for probe in small() {
        let plan = FaultPlan { fail_allocation: Some(1), ..FaultPlan::default() };
        let (entries, lost) = probed(&mut faulty(plan), &[probe]);
        check_entries(probe.title, &entries);
        assert_eq!(lost, None, "{}: memory that runs out loses no device", probe.title);
    }
}

/// Measures one kernel, as often as it takes.
fn timed(device: &mut dyn Device) -> Result<assay_measure::Samples, MeasureError> {
    let module = device.load(&assay_device::Image::ptx("spin.ptx", KERNEL))?;
    let mut stopwatch = Stopwatch::new(device)?;
    let plan = Plan { most_samples: 40, ..Plan::warm() };
    stopwatch.measure(device, &plan, &mut |device, stream| {
        device.launch(stream, &assay_device::Launch::new(module, "spin")).map(|_| ())
    })
}

const KERNEL: &str = "\
.version 7.0
.target sm_80
.address_size 64
.visible .entry spin()
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    mov.u32 %r1, 0;
again:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 500;
    @%p1 bra again;
    ret;
}
";

#[test]
fn a_stopwatch_ends_with_the_devices_own_words_wherever_it_is_lost() {
    let mut ended = 0;
    for at in [1, 2, 3, 10, 50, 150, 200, 260, 300] {
        for plan in [
            FaultPlan { lose_at_launch: Some(at), ..FaultPlan::default() },
            FaultPlan { lose_at_wait: Some(at), ..FaultPlan::default() },
        ] {
            match timed(&mut faulty(plan)) {
                Ok(samples) => assert!(samples.taken() > 0),
                Err(MeasureError::Device(error)) => {
                    assert!(matches!(error, DeviceError::Lost { .. }), "{error:?}");
                    assert!(error.hint().is_some());
                    ended += 1;
                }
                Err(other) => panic!("lost at {at}: {other}"),
            }
        }
    }
    assert!(ended > 10, "only {ended} of 18 plans came true");
}

#[test]
fn a_clock_that_stands_still_measures_nothing() {
    let error = timed(&mut emulator(ClockCourse::Stopped)).expect_err("no time passes");
    let no_work = matches!(error, MeasureError::NoWork { .. } | MeasureError::NoSamples { .. });
    assert!(no_work, "{error:?}");
    let plan = FaultPlan { clock_factor: 0.0, ..FaultPlan::default() };
    let error = timed(&mut faulty(plan)).expect_err("no time passes");
    let no_work = matches!(error, MeasureError::NoWork { .. } | MeasureError::NoSamples { .. });
    assert!(no_work, "{error:?}");
}

#[test]
fn samples_of_a_clock_that_dips_are_rejected_and_one_that_wanders_is_doubted() {
    let steady = timed(&mut emulator(ClockCourse::Steady)).expect("measures");
    assert!(steady.rejected.is_empty() && steady.doubts.is_empty(), "{:?}", steady.doubts);
    let dips = ClockCourse::DipsEvery { launches: 11, mhz: 600 };
    let dipping = timed(&mut emulator(dips)).expect("measures");
    assert!(!dipping.rejected.is_empty(), "every eleventh launch was slow");
    let wanders = ClockCourse::Wanders { least_mhz: 400 };
    match timed(&mut emulator(wanders)) {
        Ok(samples) => assert!(!samples.doubts.is_empty(), "{samples:?}"),
        Err(error) => assert!(matches!(error, MeasureError::NoSamples { .. }), "{error:?}"),
    }
}
