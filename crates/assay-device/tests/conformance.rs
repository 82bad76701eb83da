//! What every device must do, written once and run on the emulator and, where there is one, on a
//! GPU (`cargo test -p assay-device _gpu`).

#[macro_use]
mod both;
mod common;
mod hardware;

use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, EventId, FaultKind, GUARD_BYTES, GraphId,
    Image, Launch, ModuleId, Side, StreamId, open,
};
use common::{buffer, fill, load, run, words, write_at};
use hardware::{alone, gpu};

conformance! {
    the_facts_are_sensible
    a_new_buffer_is_poisoned_and_its_guards_are_whole
    copies_keep_to_the_buffer
    a_misaligned_buffer_has_the_alignment_class_asked_for
    memory_that_is_not_there_cannot_be_had
    unknown_handles_are_errors
    an_unloaded_module_is_gone
    a_kernel_gets_its_arguments
    a_buffer_argument_may_point_inside
    parameter_sizes_are_told
    arguments_that_do_not_fit_are_refused
    an_impossible_launch_is_refused
    a_missing_kernel_lists_the_others
    a_syntax_error_is_rejected_with_its_line
    a_binary_that_is_none_is_rejected
    a_write_past_the_end_is_caught
    a_write_before_the_start_is_caught
    a_write_at_the_very_edges_is_fine
    a_wild_write_is_a_fault
    a_trap_is_a_fault
    shared_memory_beyond_48_kib_is_granted
    streams_order_their_launches
    a_graph_replays_its_launches
    an_event_pair_tells_a_time_or_is_unsupported
    perturbation_changes_no_result
    a_device_moves_between_threads
}

fn the_facts_are_sensible(device: &mut dyn Device) {
    let facts = device.facts();
    assert!(!facts.name.is_empty());
    assert!(facts.architecture_number().is_some_and(|number| number >= 70), "{facts:?}");
    assert_eq!((facts.warp_size, facts.max_threads_per_block), (32, 1024));
    assert_eq!(facts.max_block, [1024, 1024, 64]);
    assert!(facts.max_grid[0] >= 0x7fff_ffff && facts.multiprocessors >= 1, "{facts:?}");
    assert!(facts.shared_per_block >= 48 << 10, "{facts:?}");
    assert!(facts.shared_per_block_opt_in >= facts.shared_per_block, "{facts:?}");
    assert!(facts.memory_bytes >= 64 << 20, "{facts:?}");
}

fn a_new_buffer_is_poisoned_and_its_guards_are_whole(device: &mut dyn Device) {
    for bytes in [0, 1, 1000] {
        for poison in [0x00, 0x7F] {
            let allocation = Allocation { bytes, misalign: 3, poison };
            let buffer = device.allocate(&allocation).expect("there is memory");
            let mut contents = vec![!poison; bytes as usize];
            device.read(buffer, 0, &mut contents).expect("reads");
            assert!(contents.iter().all(|&byte| byte == poison), "{bytes} bytes of {poison}");
            assert_eq!(device.guard_damage(buffer), Ok(None));
            device.free(buffer).expect("frees");
        }
    }
}

fn copies_keep_to_the_buffer(device: &mut dyn Device) {
    let buffer = buffer(device, 16);
    device.write(buffer, 4, &[1, 2, 3]).expect("writes");
    device.write(buffer, 16, &[]).expect("writes nothing at the end");
    let mut bytes = [0; 5];
    device.read(buffer, 3, &mut bytes).expect("reads");
    assert_eq!(bytes, [0xEE, 1, 2, 3, 0xEE]);
    for (offset, length) in [(12, 5), (17, 0), (u64::MAX, 2)] {
        let mut bytes = vec![9; length];
        let read = device.read(buffer, offset, &mut bytes);
        assert!(matches!(read, Err(DeviceError::OutOfRange { .. })), "{offset}: {read:?}");
        let written = device.write(buffer, offset, &bytes);
        assert!(matches!(written, Err(DeviceError::OutOfRange { .. })), "{offset}: {written:?}");
    }
    assert_eq!(device.guard_damage(buffer), Ok(None));
}

fn a_misaligned_buffer_has_the_alignment_class_asked_for(device: &mut dyn Device) {
    for misalign in [0, 1, 4, 16, 255] {
        let allocation = Allocation { misalign, ..Allocation::new(64) };
        let buffer = device.allocate(&allocation).expect("there is memory");
        assert_eq!(device.address(buffer).expect("known") % 256, misalign);
    }
    let allocation = Allocation { misalign: 256, ..Allocation::new(64) };
    let refused = device.allocate(&allocation);
    assert!(matches!(refused, Err(DeviceError::InvalidRequest { .. })), "{refused:?}");
}

fn memory_that_is_not_there_cannot_be_had(device: &mut dyn Device) {
    let all = device.facts().memory_bytes;
    for bytes in [all + 1, u64::MAX - GUARD_BYTES, u64::MAX] {
        let refused = device.allocate(&Allocation::new(bytes));
        let Err(error @ DeviceError::OutOfMemory { requested, .. }) = refused else {
            panic!("{bytes}: {refused:?}")
        };
        assert_eq!(requested, bytes);
        assert!(error.hint().is_some() && !error.poisons_device());
    }
    let after = buffer(device, 4);
    device.free(after).expect("the device is as it was");
}

fn unknown_handles_are_errors(device: &mut dyn Device) {
    let unknown = |result: Result<(), DeviceError>| {
        assert!(matches!(result, Err(DeviceError::UnknownHandle { .. })), "{result:?}");
    };
    let freed = buffer(device, 8);
    device.free(freed).expect("frees");
    let module = load(device);
    for buffer in [freed, BufferId::new()] {
        unknown(device.free(buffer));
        unknown(device.read(buffer, 0, &mut [0]));
        unknown(device.write(buffer, 0, &[0]));
        unknown(device.address(buffer).map(|_| ()));
        unknown(device.guard_damage(buffer).map(|_| ()));
        let launch = fill(module, buffer, 1, 0);
        unknown(device.launch(StreamId::DEFAULT, &launch).map(|_| ()));
    }
    let buffer = buffer(device, 8);
    let launch = fill(module, buffer, 1, 0);
    unknown(device.launch(StreamId::new(), &launch).map(|_| ()));
    unknown(device.unload(ModuleId::new()));
    unknown(device.kernel_facts(ModuleId::new(), "fill").map(|_| ()));
    unknown(device.destroy_stream(StreamId::new()));
    unknown(device.launch_graph(GraphId::new(), StreamId::DEFAULT));
    unknown(device.destroy_graph(GraphId::new()));
    unknown(device.begin_capture(StreamId::new()));
    let event = device.destroy_event(EventId::new());
    assert!(event.is_err());
}

fn an_unloaded_module_is_gone(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 4);
    device.unload(module).expect("unloads");
    let error = run(device, &fill(module, buffer, 1, 0)).expect_err("gone");
    assert_eq!(error, DeviceError::UnknownHandle { kind: "module", number: module.number() });
    assert!(device.unload(module).is_err());
}

fn a_kernel_gets_its_arguments(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 1000 * 4 + 4);
    let report = run(device, &fill(module, buffer, 1000, 5)).expect("runs");
    let words = words(device, buffer, 1001);
    assert!((0..1000).all(|i| words[i] == 5 + i as u32), "{:?}", &words[..8]);
    assert_eq!(words[1000], 0xEEEE_EEEE, "what the kernel did not write keeps its poison");
    assert!(report.warp_instructions != Some(0));
}

fn a_buffer_argument_may_point_inside(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 12);
    let at = |offset| {
        let mut launch = fill(module, buffer, 1, 77);
        launch.arguments[0] = Argument::BufferOffset(buffer, offset);
        launch
    };
    run(device, &at(4)).expect("runs");
    assert_eq!(words(device, buffer, 3), [0xEEEE_EEEE, 77, 0xEEEE_EEEE]);
    let nothing = Launch { arguments: at(12).arguments, ..at(0) };
    let mut nothing = nothing;
    nothing.arguments[1] = Argument::u32(0);
    run(device, &nothing).expect("one past the end is a fine address for nothing");
    let outside = run(device, &at(13));
    assert!(matches!(outside, Err(DeviceError::OutOfRange { .. })), "{outside:?}");
}

fn parameter_sizes_are_told(device: &mut dyn Device) {
    let module = load(device);
    let facts = device.kernel_facts(module, "sizes").expect("known");
    assert_eq!(facts.parameter_sizes, Some(vec![1, 2, 4, 8, 12]));
    let facts = device.kernel_facts(module, "trap_at_once").expect("known");
    assert_eq!(facts.parameter_sizes, Some(Vec::new()));
    assert_eq!(facts.static_shared, 0);
    assert!(facts.max_threads > 0 && facts.max_threads <= 1024, "{facts:?}");
}

fn arguments_that_do_not_fit_are_refused(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 4);
    let good = fill(module, buffer, 1, 3);
    let mut wrong = Vec::new();
    wrong.push(Launch { arguments: good.arguments[..2].to_vec(), ..good.clone() });
    let mut longer = good.clone();
    longer.arguments.push(Argument::u32(0));
    wrong.push(longer);
    for (index, bytes) in [(0, 4), (1, 8), (1, 0), (2, 3)] {
        let mut launch = good.clone();
        launch.arguments[index] = Argument::Bytes(vec![0; bytes]);
        wrong.push(launch);
    }
    for launch in &wrong {
        refused(device, launch);
    }
    assert_eq!(words(device, buffer, 1), [0xEEEE_EEEE], "nothing ran");
}

fn refused(device: &mut dyn Device, launch: &Launch<'_>) {
    let result = device.launch(StreamId::DEFAULT, launch);
    let Err(error @ DeviceError::InvalidLaunch { .. }) = result else {
        panic!("{launch:?} gave {result:?}")
    };
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error}");
    assert!(!error.poisons_device());
}

fn an_impossible_launch_is_refused(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 4);
    let good = fill(module, buffer, 1, 3);
    let too_much = device.facts().shared_per_block_opt_in + 1;
    let wrong = [
        Launch { block: [0, 1, 1], ..good.clone() },
        Launch { grid: [1, 1, 0], ..good.clone() },
        Launch { block: [1025, 1, 1], ..good.clone() },
        Launch { block: [32, 33, 1], ..good.clone() },
        Launch { block: [1, 1, 65], ..good.clone() },
        Launch { block: [u32::MAX; 3], ..good.clone() },
        Launch { grid: [1, 65536, 1], ..good.clone() },
        Launch { grid: [u32::MAX, 1, 1], ..good.clone() },
        Launch { shared_bytes: too_much, ..good.clone() },
        Launch { shared_bytes: u32::MAX, ..good.clone() },
    ];
    for launch in &wrong {
        refused(device, launch);
    }
    assert_eq!(words(device, buffer, 1), [0xEEEE_EEEE], "nothing ran");
    run(device, &good).expect("the device is as it was");
}

fn a_missing_kernel_lists_the_others(device: &mut dyn Device) {
    let module = load(device);
    for symbol in ["fil", "", "fi\0ll"] {
        let error = device
            .launch(StreamId::DEFAULT, &Launch::new(module, symbol))
            .expect_err("there is no such kernel");
        assert!(matches!(error, DeviceError::KernelNotFound { .. }), "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("increment")), "{error:?}");
    }
}

fn a_syntax_error_is_rejected_with_its_line(device: &mut dyn Device) {
    let broken = KERNELS_BROKEN_AT_LINE_8;
    let error = device.load(&Image::ptx("broken.ptx", broken)).expect_err("rejected");
    let DeviceError::ModuleRejected(rejection) = &error else { panic!("{error:?}") };
    assert_eq!(rejection.line, Some(8), "{error}");
    assert!(
        rejection.source_line.as_deref().is_some_and(|text| text.contains("ad.u32")),
        "{error}"
    );
    assert!(error.to_string().starts_with("broken.ptx:8: "), "{error}");
    for text in ["", "no PTX at all", ".version 7.0\0"] {
        let error = device.load(&Image::ptx("none.ptx", text)).expect_err("rejected");
        assert!(matches!(error, DeviceError::ModuleRejected { .. }), "{text:?}: {error:?}");
    }
    load(device);
}

const KERNELS_BROKEN_AT_LINE_8: &str = "\
.version 7.0
.target sm_75
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<2>;
    mov.u32 %r1, 0;
    ad.u32 %r1, %r1, 1;
    ret;
}
";

fn a_binary_that_is_none_is_rejected(device: &mut dyn Device) {
    for bytes in [Vec::new(), vec![0; 200], b"\x7fELF\x02\x01".to_vec()] {
        for image in [Image::Cubin(bytes.clone()), Image::Fatbin(bytes.clone())] {
            let error = device.load(&image).expect_err("rejected");
            let clear =
                error.is_unsupported() || matches!(error, DeviceError::ModuleRejected { .. });
            assert!(clear, "{error:?}");
        }
    }
}

/// A stray write is a fault with its place, or damage in the guard: never nothing.
fn caught(device: &mut dyn Device, offset: i64, side: Side) {
    let module = load(device);
    let buffer = buffer(device, 64);
    match run(device, &write_at(module, buffer, offset)) {
        Ok(_) => {
            let damage = device.guard_damage(buffer).expect("looks");
            assert_eq!(damage.map(|damage| damage.side), Some(side));
        }
        Err(DeviceError::Fault(fault)) => {
            assert_eq!(fault.kind, FaultKind::OutOfBounds);
            assert!(fault.place.as_deref().is_some_and(|place| place == "kernels.ptx:62"));
        }
        Err(error) => panic!("{error:?}"),
    }
}

fn a_write_past_the_end_is_caught(device: &mut dyn Device) {
    caught(device, 64, Side::After);
}

fn a_write_before_the_start_is_caught(device: &mut dyn Device) {
    caught(device, -4, Side::Before);
}

fn a_write_at_the_very_edges_is_fine(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 64);
    for offset in [0, 60] {
        run(device, &write_at(module, buffer, offset)).expect("inside");
    }
    assert_eq!(device.guard_damage(buffer), Ok(None));
    let words = words(device, buffer, 16);
    assert_eq!((words[0], words[1], words[15]), (7, 0xEEEE_EEEE, 7));
}

/// After a fault a device is either dead, and says so, or as good as before.
fn dead_or_well(device: &mut dyn Device, error: &DeviceError, buffer: BufferId) {
    let later = device.read(buffer, 0, &mut [0; 4]);
    if error.poisons_device() {
        assert!(matches!(later, Err(DeviceError::Lost { .. })), "{later:?}");
        let refused = device.allocate(&Allocation::new(1));
        assert!(matches!(refused, Err(DeviceError::Lost { .. })), "{refused:?}");
    } else {
        later.expect("the device is as it was");
    }
}

fn a_wild_write_is_a_fault(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 64);
    let wild = -(1_i64 << 40);
    let error = run(device, &write_at(module, buffer, wild)).expect_err("faults");
    let DeviceError::Fault(fault) = &error else { panic!("{error:?}") };
    assert!(fault.description.contains("write_at"), "{error}");
    assert_eq!(fault.kind, FaultKind::OutOfBounds, "{error}");
    dead_or_well(device, &error, buffer);
}

fn a_trap_is_a_fault(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 64);
    let error = run(device, &Launch::new(module, "trap_at_once")).expect_err("traps");
    let DeviceError::Fault(fault) = &error else { panic!("{error:?}") };
    assert!(matches!(fault.kind, FaultKind::Trap | FaultKind::Other), "{error}");
    assert!(fault.description.contains("trap_at_once"), "{error}");
    dead_or_well(device, &error, buffer);
}

fn shared_memory_beyond_48_kib_is_granted(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 256 * 4);
    for shared_bytes in [1024, 48 << 10, device.facts().shared_per_block_opt_in] {
        let launch = Launch {
            block: [256, 1, 1],
            shared_bytes,
            arguments: vec![Argument::Buffer(buffer), Argument::u32(shared_bytes)],
            ..Launch::new(module, "reverse")
        };
        run(device, &launch).unwrap_or_else(|error| panic!("{shared_bytes}: {error}"));
        let words = words(device, buffer, 256);
        assert!((0..256).all(|i| words[i] == 255 - i as u32), "{shared_bytes}: {words:?}");
    }
}

fn increment(module: ModuleId, buffer: BufferId, n: u32) -> Launch<'static> {
    let arguments = vec![Argument::Buffer(buffer), Argument::u32(n)];
    Launch { symbol: "increment", arguments, ..fill(module, buffer, n, 0) }
}

fn streams_order_their_launches(device: &mut dyn Device) {
    let module = load(device);
    let stream = device.create_stream().expect("creates");
    let buffer = buffer(device, 4096 * 4);
    device.launch(stream, &fill(module, buffer, 4096, 0)).expect("starts");
    for _ in 0..10 {
        device.launch(stream, &increment(module, buffer, 4096)).expect("starts");
    }
    let words = words(device, buffer, 4096);
    assert!((0..4096).all(|i| words[i] == 10 + i as u32), "a read waits for every stream");
    device.destroy_stream(stream).expect("destroys");
    let gone = device.launch(stream, &increment(module, buffer, 1));
    assert!(matches!(gone, Err(DeviceError::UnknownHandle { .. })), "{gone:?}");
    let kept = device.destroy_stream(StreamId::DEFAULT);
    assert!(matches!(kept, Err(DeviceError::InvalidRequest { .. })), "{kept:?}");
}

fn a_graph_replays_its_launches(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 64 * 4);
    run(device, &fill(module, buffer, 64, 0)).expect("runs");
    device.begin_capture(StreamId::DEFAULT).expect("begins");
    let again = device.begin_capture(StreamId::DEFAULT);
    assert!(matches!(again, Err(DeviceError::InvalidRequest { .. })), "{again:?}");
    for _ in 0..3 {
        let captured = device.launch(StreamId::DEFAULT, &increment(module, buffer, 64));
        captured.expect("captures");
    }
    let refused = device.synchronize();
    assert!(matches!(refused, Err(DeviceError::InvalidRequest { .. })), "{refused:?}");
    let graph = device.end_capture(StreamId::DEFAULT).expect("ends");
    assert_eq!(words(device, buffer, 64)[0], 0, "a capture runs nothing");
    device.unload(module).expect("a graph keeps its module");
    for _ in 0..2 {
        device.launch_graph(graph, StreamId::DEFAULT).expect("starts");
    }
    assert_eq!(words(device, buffer, 64)[63], 63 + 6);
    device.destroy_graph(graph).expect("destroys");
    assert!(device.launch_graph(graph, StreamId::DEFAULT).is_err());
    let none = device.end_capture(StreamId::DEFAULT);
    assert!(matches!(none, Err(DeviceError::InvalidRequest { .. })), "{none:?}");
}

fn an_event_pair_tells_a_time_or_is_unsupported(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 4096 * 4);
    let start = match device.create_event() {
        Ok(event) => event,
        Err(error) => return assert!(error.is_unsupported(), "{error}"),
    };
    let end = device.create_event().expect("creates");
    let early = device.elapsed_ns(start, end);
    assert!(matches!(early, Err(DeviceError::InvalidRequest { .. })), "{early:?}");
    run(device, &fill(module, buffer, 4096, 0)).expect("runs");
    device.record_event(start, StreamId::DEFAULT).expect("records");
    for _ in 0..100 {
        device.launch(StreamId::DEFAULT, &increment(module, buffer, 4096)).expect("starts");
    }
    device.record_event(end, StreamId::DEFAULT).expect("records");
    let elapsed_ns = device.elapsed_ns(start, end).expect("measures");
    assert!((1_000..1_000_000_000).contains(&elapsed_ns), "100 launches took {elapsed_ns} ns");
    device.destroy_event(start).expect("destroys");
    assert!(device.record_event(start, StreamId::DEFAULT).is_err());
}

fn perturbation_changes_no_result(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 4096 * 4);
    for kind in (0..12).chain([u32::MAX]) {
        device.perturb(kind).unwrap_or_else(|error| panic!("kind {kind}: {error}"));
        run(device, &fill(module, buffer, 4096, kind)).expect("runs");
        let words = words(device, buffer, 4096);
        assert!((0..4096).all(|i| words[i] == kind.wrapping_add(i as u32)), "kind {kind}");
        assert_eq!(device.guard_damage(buffer), Ok(None));
    }
}

fn a_device_moves_between_threads(device: &mut dyn Device) {
    let module = load(device);
    let buffer = buffer(device, 40);
    std::thread::scope(|scope| {
        let device = &mut *device;
        let there = scope.spawn(move || run(device, &fill(module, buffer, 10, 1)));
        there.join().expect("no panic").expect("runs on another thread");
    });
    assert_eq!(words(device, buffer, 10)[9], 10, "and back on the first");
}
