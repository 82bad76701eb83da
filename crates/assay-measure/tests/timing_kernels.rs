//! The kernels of the stopwatch, and those it is tried on, run on the emulator.

use assay_device::emulator::{ClockCourse, EmulatedClock, EmulatorDevice, EmulatorOptions};
use assay_device::{Allocation, Argument, BufferId, Device, Image, Launch, ModuleId, StreamId};
use assay_measure::{Cache, Plan, Stopwatch, Summary};

const TIMING: &str = include_str!("../../../kernels/measure/timing.ptx");
const WORK: &str = include_str!("../../../kernels/measure/work.ptx");

fn emulator(course: ClockCourse) -> EmulatorDevice {
    let clock = EmulatedClock { course, ..EmulatedClock::default() };
    let options = EmulatorOptions { architecture: 90, clock: Some(clock), ..Default::default() };
    EmulatorDevice::new(options)
}

fn load(device: &mut dyn Device, text: &str) -> ModuleId {
    device.load(&Image::ptx("kernels.ptx", text)).expect("the kernels load")
}

fn launch(
    device: &mut dyn Device,
    (module, symbol): (ModuleId, &str),
    (grid, block): (u32, u32),
    arguments: Vec<Argument>,
) {
    let (grid, block) = ([grid, 1, 1], [block, 1, 1]);
    let launch = Launch { grid, block, arguments, ..Launch::new(module, symbol) };
    device.launch(StreamId::DEFAULT, &launch).expect("the kernel runs");
}

fn words(device: &mut dyn Device, buffer: BufferId, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count * 8];
    device.read(buffer, 0, &mut bytes).expect("it is read");
    let word = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap_or_default());
    bytes.chunks_exact(8).map(word).collect()
}

fn floats(device: &mut dyn Device, buffer: BufferId, count: usize) -> Vec<f32> {
    let mut bytes = vec![0; count * 4];
    device.read(buffer, 0, &mut bytes).expect("it is read");
    let word = |word: &[u8]| f32::from_le_bytes(word.try_into().unwrap_or_default());
    bytes.chunks_exact(4).map(word).collect()
}

fn buffer(device: &mut dyn Device, bytes: u64) -> BufferId {
    device.allocate(&Allocation { poison: 0, ..Allocation::new(bytes) }).expect("a buffer")
}

#[test]
fn a_hold_ends_with_its_ticket_and_gives_up_without() {
    let mut device = emulator(ClockCourse::Steady);
    let module = load(&mut device, TIMING);
    let (flag, state, out) =
        (buffer(&mut device, 4), buffer(&mut device, 48), buffer(&mut device, 40));
    device.write(flag, 0, &7u32.to_le_bytes()).expect("it is written");
    for (ticket, gave_up) in [(7, 0), (8, 1)] {
        let arguments = vec![
            Argument::Buffer(flag),
            Argument::u32(ticket),
            Argument::u64(2000),
            Argument::Buffer(state),
        ];
        launch(&mut device, (module, "hold"), (1, 1), arguments);
        launch(&mut device, (module, "nothing"), (1, 1), Vec::new());
        let arguments = vec![Argument::Buffer(state), Argument::Buffer(out)];
        launch(&mut device, (module, "stamp"), (64, 1), arguments);
        let found = words(&mut device, out, 5);
        assert!(found[0] > 0 && found[1] > 0, "{found:?}");
        assert_eq!((found[2], found[4]), (gave_up, u64::from(ticket)), "{found:?}");
        assert_eq!(found[3] >= 2000, gave_up == 1, "{found:?}");
    }
}

#[test]
fn a_flush_writes_nothing() {
    let mut device = emulator(ClockCourse::Steady);
    let module = load(&mut device, TIMING);
    let (bytes, never) = (buffer(&mut device, 1 << 12), buffer(&mut device, 8));
    let arguments = vec![Argument::Buffer(bytes), Argument::u64(256), Argument::Buffer(never)];
    launch(&mut device, (module, "flush"), (2, 64), arguments);
    assert_eq!(words(&mut device, never, 1), [0]);
}

#[test]
fn work_does_what_its_size_says() {
    let mut device = emulator(ClockCourse::Steady);
    let module = load(&mut device, WORK);
    let (to, from) = (buffer(&mut device, 1 << 12), buffer(&mut device, 1 << 12));
    launch(&mut device, (module, "chain"), (2, 32), vec![Argument::Buffer(to), Argument::u32(3)]);
    // ((x / 2 + 1) / 2 + 1) / 2 + 1
    let expected = |thread: usize| (thread % 32) as f32 / 8.0 + 1.75;
    let found = floats(&mut device, to, 64);
    assert!(found.iter().enumerate().all(|(thread, value)| *value == expected(thread)));

    let data: Vec<f32> = (0..1024u32).map(|n| (n % 9) as f32).collect();
    let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
    device.write(from, 0, &bytes).expect("it is written");
    for rounds in [0, 5] {
        let tail = vec![
            Argument::Buffer(to),
            Argument::Buffer(from),
            Argument::u64(256),
            Argument::u32(rounds),
        ];
        launch(&mut device, (module, "stream_copy"), (2, 64), tail.clone());
        assert_eq!(floats(&mut device, to, 1024), data);
        launch(&mut device, (module, "stream_sum"), (1, 64), tail);
        let sums: f32 = floats(&mut device, to, 64).iter().sum();
        assert_eq!(sums, data.iter().sum::<f32>());
    }
}

#[test]
fn the_stopwatch_runs_its_own_kernels_on_a_device_that_starts_them_at_once() {
    let mut device = emulator(ClockCourse::Steady);
    let module = load(&mut device, WORK);
    let out = buffer(&mut device, 1 << 12);
    let mut stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    assert!(!stopwatch.holds());
    let mut median = |rounds: u32| {
        let plan = Plan { cache: Cache::Warm, ..Plan::default() };
        let samples = stopwatch.measure(&mut device, &plan, &mut |device, stream| {
            let arguments = vec![Argument::Buffer(out), Argument::u32(rounds)];
            let block = [32, 1, 1];
            let launch = Launch { block, arguments, ..Launch::new(module, "chain") };
            device.launch(stream, &launch).map(|_| ())
        });
        Summary::of(&samples.expect("samples"))
    };
    let (short, long) = (median(1000), median(2000));
    // The made-up clock takes a nanosecond for each instruction of a warp.
    assert!(long.median_ns - short.median_ns >= 1000.0, "{short:?} {long:?}");
    assert!(long.sm_clock_mhz.is_some_and(|clock| clock > 1.0), "{long:?}");
}

#[test]
fn a_clock_that_stands_still_is_no_measurement() {
    let mut device = emulator(ClockCourse::Stopped);
    let module = load(&mut device, WORK);
    let out = buffer(&mut device, 1 << 12);
    let mut stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    let plan = Plan { cache: Cache::Warm, ..Plan::default() };
    let found = stopwatch.measure(&mut device, &plan, &mut |device, stream| {
        let arguments = vec![Argument::Buffer(out), Argument::u32(100)];
        let launch = Launch { arguments, ..Launch::new(module, "chain") };
        device.launch(stream, &launch).map(|_| ())
    });
    assert!(found.is_err(), "{found:?}");
}
