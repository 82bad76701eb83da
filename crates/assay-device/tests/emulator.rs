//! What only the emulator can show: the PTX line of every fault, and hangs that end.

mod common;

use assay_device::emulator::{ClockCourse, EmulatedClock, EmulatorDevice, EmulatorOptions};
use assay_device::{
    Allocation, Argument, Device, DeviceError, FaultKind, Image, KernelFault, Launch, Schedule,
    Side, StreamId,
};
use common::{buffer, fill, load, run, write_at};

const HALF_A_BARRIER: &str = "\
.version 7.0
.target sm_75
.address_size 64
.visible .entry half()
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra done;
    bar.sync 1, 64;
done:
    ret;
}
";

/// Memory of several devices at once, which the emulator has not.
const MULTIMEM: &str = "\
.version 8.1
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .b64 %rd1; .reg .b32 %r1; multimem.st.weak.global.u32 [%rd1], %r1;
    ret;
}
";

/// Each block of a cluster writes its rank.
const RANKS: &str = "\
.version 7.8
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %cluster_ctarank;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    st.global.u32 [%rd3], %r2;
    ret;
}
";

fn device() -> EmulatorDevice {
    EmulatorDevice::new(EmulatorOptions::default())
}

fn fault(result: Result<(), DeviceError>) -> KernelFault {
    match result {
        Err(DeviceError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_kernel_that_never_ends_runs_out_of_its_budget() {
    let mut device = device();
    let module = load(&mut device);
    let launch = Launch { instruction_budget: 10_000, ..Launch::new(module, "forever") };
    let fault = fault(run(&mut device, &launch).map(|_| ()));
    assert_eq!((fault.kind, fault.lost_context), (FaultKind::Hang, false));
    assert!(fault.description.contains("10000 warp instructions"), "{fault}");
    let place = fault.place.unwrap_or_default();
    assert!(place.starts_with("kernels.ptx:"), "{place}");
}

#[test]
fn a_barrier_that_half_a_block_never_reaches_is_a_deadlock() {
    let mut device = device();
    let module = device.load(&Image::ptx("half.ptx", HALF_A_BARRIER)).expect("loads");
    let launch = Launch { block: [64, 1, 1], ..Launch::new(module, "half") };
    let fault = fault(run(&mut device, &launch).map(|_| ()));
    assert_eq!(fault.kind, FaultKind::Deadlock, "{fault}");
    assert!(fault.to_string().contains("11"), "the barrier's line: {fault}");
}

#[test]
fn a_stray_write_names_line_thread_and_buffer() {
    let mut device = device();
    let module = load(&mut device);
    let target = buffer(&mut device, 64);
    let error = run(&mut device, &write_at(module, target, 64)).expect_err("faults");
    let text = error.to_string();
    assert!(text.starts_with("kernels.ptx:62: write_at: out-of-bounds write of 4 bytes"), "{text}");
    assert!(text.contains("past the end"), "{text}");
    assert!(text.ends_with("in block (0,0,0), thread (0,0,0)"), "{text}");
    assert!(error.hint().is_some_and(|hint| hint.contains("index")), "{error:?}");
}

#[test]
fn a_write_into_the_bytes_before_a_misaligned_buffer_shows_in_the_guard() {
    let mut device = device();
    let module = load(&mut device);
    let allocation = Allocation { misalign: 16, ..Allocation::new(64) };
    let target = device.allocate(&allocation).expect("there is memory");
    run(&mut device, &write_at(module, target, -8)).expect("the emulator lets it pass");
    let damage = device.guard_damage(target).expect("looks").expect("finds");
    assert_eq!(damage.side, Side::Before);
    assert!((5..=8).contains(&damage.offset), "{damage}");
    let fault = fault(run(&mut device, &write_at(module, target, -20)).map(|_| ()));
    assert_eq!(fault.kind, FaultKind::OutOfBounds, "further out is nobody's memory");
}

#[test]
fn an_opcode_that_is_not_emulated_is_unsupported_and_no_fault() {
    let mut device = device();
    let module = device.load(&Image::ptx("multimem.ptx", MULTIMEM)).expect("loads");
    let error = run(&mut device, &Launch::new(module, "k")).expect_err("unsupported");
    assert!(error.is_unsupported(), "{error:?}");
    assert!(error.to_string().contains("multimem.st"), "{error}");
    assert!(error.to_string().contains("multimem.ptx:6"), "{error}");
}

#[test]
fn shared_memory_over_the_target_s_limit_is_refused_with_the_largest_variable_and_its_line() {
    let module = |bytes: u32| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 small[64];\n\
             .visible .entry k()\n{{\n.shared .align 16 .b8 tile[{bytes}];\n\
             .reg .b32 %r<3>;\nst.shared.u32 [small], 1;\nst.shared.u32 [tile], 1;\nret;\n}}\n"
        )
    };
    // Kilobytes that a block may have: 99, 163, 227.
    for (architecture, most) in [(86, 99), (80, 163), (90, 227)] {
        for (bytes, fits) in [((most << 10) - 64, true), ((most << 10) + 1, false)] {
            let mut device =
                EmulatorDevice::new(EmulatorOptions { architecture, ..EmulatorOptions::default() });
            let text = module(bytes);
            let loaded = device.load(&Image::ptx("large.ptx", &text)).expect("loads");
            let outcome = run(&mut device, &Launch::new(loaded, "k"));
            assert_eq!(outcome.is_ok(), fits, "sm_{architecture}, {bytes}: {outcome:?}");
            if let Err(error) = outcome {
                let words = format!("over {}; the largest is tile at large.ptx:7", most << 10);
                assert!(error.to_string().contains(&words), "{error}");
            }
        }
    }
}

#[test]
fn clusters_run_on_sm_90_and_are_unsupported_on_sm_80() {
    for architecture in [80, 90] {
        let mut device =
            EmulatorDevice::new(EmulatorOptions { architecture, ..Default::default() });
        let module = device.load(&Image::ptx("ranks.ptx", RANKS)).expect("loads");
        let target = buffer(&mut device, 24);
        let launch = Launch {
            grid: [6, 1, 1],
            cluster: [3, 1, 1],
            arguments: vec![Argument::Buffer(target)],
            ..Launch::new(module, "ranks")
        };
        let result = run(&mut device, &launch);
        if architecture == 80 {
            let error = result.expect_err("unsupported");
            assert!(error.is_unsupported() && error.to_string().contains("sm_80"), "{error}");
        } else {
            result.expect("runs");
            assert_eq!(common::words(&mut device, target, 6), [0, 1, 2, 0, 1, 2]);
        }
    }
}

#[test]
fn every_schedule_gives_a_sound_kernel_the_same_result() {
    let mut device = device();
    let module = load(&mut device);
    let target = buffer(&mut device, 5000 * 4);
    let mut seen = Vec::new();
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(1)] {
        let launch = Launch { schedule, ..fill(module, target, 5000, 3) };
        let report = run(&mut device, &launch).expect("runs");
        assert!(report.lane_operations > report.warp_instructions, "{report:?}");
        seen.push(common::words(&mut device, target, 5000));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(seen[0][4999], 3 + 4999);
}

#[test]
fn a_small_device_runs_out_and_recovers() {
    let options = EmulatorOptions { memory_bytes: 1000, ..EmulatorOptions::default() };
    let mut device = EmulatorDevice::new(options);
    let first = device.allocate(&Allocation::new(600)).expect("fits");
    assert_eq!(
        device.allocate(&Allocation::new(600)),
        Err(DeviceError::OutOfMemory { requested: 600, available: Some(400) })
    );
    device.free(first).expect("frees");
    device.allocate(&Allocation::new(600)).expect("fits again");
}

#[test]
fn a_binary_image_is_unsupported_and_says_why() {
    let error = device().load(&Image::Cubin(vec![1, 2, 3])).expect_err("unsupported");
    assert!(error.is_unsupported() && error.to_string().contains("PTX only"), "{error}");
}

#[test]
fn a_graph_stops_at_the_first_fault() {
    let mut device = device();
    let module = load(&mut device);
    let target = buffer(&mut device, 8);
    device.begin_capture(StreamId::DEFAULT).expect("begins");
    for launch in
        [fill(module, target, 1, 5), write_at(module, target, 100), fill(module, target, 1, 6)]
    {
        device.launch(StreamId::DEFAULT, &launch).expect("captures");
    }
    let graph = device.end_capture(StreamId::DEFAULT).expect("ends");
    let result = device.launch_graph(graph, StreamId::DEFAULT);
    assert_eq!(fault(result).kind, FaultKind::OutOfBounds);
    assert_eq!(common::words(&mut device, target, 1), [5], "the launch after it did not run");
}

fn clocked(course: ClockCourse) -> EmulatorDevice {
    let clock = EmulatedClock { course, ..EmulatedClock::default() };
    EmulatorDevice::new(EmulatorOptions { clock: Some(clock), ..EmulatorOptions::default() })
}

/// The nanoseconds of each of five equal launches.
fn five_durations(device: &mut EmulatorDevice) -> Vec<u64> {
    let module = load(device);
    let target = buffer(device, 4096);
    let (start, end) = (device.create_event().unwrap(), device.create_event().unwrap());
    let one = |_| {
        device.record_event(start, StreamId::DEFAULT).expect("records");
        run(device, &fill(module, target, 1024, 0)).expect("runs");
        device.record_event(end, StreamId::DEFAULT).expect("records");
        assert_eq!(device.query(end), Ok(true));
        device.elapsed_ns(start, end).expect("measures")
    };
    (0..5).map(one).collect()
}

#[test]
fn without_a_clock_there_are_no_events_and_no_timing_facts() {
    let mut device = device();
    assert!(device.create_event().is_err_and(|error| error.is_unsupported()));
    assert_eq!(device.timing_facts(), None);
}

#[test]
fn a_made_up_clock_tells_the_same_time_at_every_run() {
    let steady = five_durations(&mut clocked(ClockCourse::Steady));
    assert!(steady[0] > 2000 && steady.iter().all(|&ns| ns == steady[0]), "{steady:?}");
    let wanders = || five_durations(&mut clocked(ClockCourse::Wanders { least_mhz: 500 }));
    assert_eq!(wanders(), wanders());
    assert!(wanders().windows(2).any(|pair| pair[0] != pair[1]));
    let facts = clocked(ClockCourse::Steady).timing_facts().expect("a clock has facts");
    assert!(!facts.asynchronous && facts.sm_clock_max_mhz == 1000.0, "{facts:?}");
}

#[test]
fn a_made_up_clock_sags_dips_and_stops_on_plan() {
    let full = five_durations(&mut clocked(ClockCourse::Steady))[0];
    let slow = 2000 + 2 * (full - 2000);
    let sagging = ClockCourse::SagsFrom { launch: 3, mhz: 500 };
    assert_eq!(five_durations(&mut clocked(sagging)), [full, full, slow, slow, slow]);
    let dipping = ClockCourse::DipsEvery { launches: 2, mhz: 500 };
    assert_eq!(five_durations(&mut clocked(dipping)), [full, slow, full, slow, full]);
    assert_eq!(five_durations(&mut clocked(ClockCourse::Stopped)), [0; 5]);
}

#[test]
fn a_captured_event_has_the_time_of_the_latest_replay() {
    let mut device = clocked(ClockCourse::Steady);
    let target = device.allocate_bare(1 << 20).expect("there is memory");
    let (start, end) = (device.create_event().unwrap(), device.create_event().unwrap());
    device.begin_capture(StreamId::DEFAULT).expect("begins");
    device.record_event(start, StreamId::DEFAULT).expect("captures");
    device.fill(StreamId::DEFAULT, target, 0, 1 << 20, 0).expect("captures");
    device.record_event(end, StreamId::DEFAULT).expect("captures");
    let graph = device.end_capture(StreamId::DEFAULT).expect("ends");
    assert!(device.elapsed_ns(start, end).is_err(), "nothing has run");
    device.launch_graph(graph, StreamId::DEFAULT).expect("runs");
    assert_eq!(device.elapsed_ns(start, end), Ok(2000 + (1 << 20) / 1000));
}
