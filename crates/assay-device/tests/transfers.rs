//! Fills, copies, host memory and what graphs take of them: on the emulator and, where there is
//! one, on a GPU.

#[macro_use]
mod both;
mod common;
mod hardware;

use assay_device::{
    Allocation, Argument, Device, DeviceError, HostBufferId, HostKind, Launch, StreamId, open,
};
use common::{buffer, fill, load, run, words, write_at};
use hardware::{alone, gpu};

conformance! {
    a_fill_keeps_to_its_range
    a_copy_keeps_to_its_ranges_and_never_overlaps
    every_kind_of_host_memory_starts_zeroed_and_copies_both_ways
    kernels_and_the_host_see_each_others_words_in_mapped_memory
    only_mapped_memory_has_an_address
    a_graph_takes_fills_and_copies_but_nothing_of_the_host
    a_bare_buffer_is_all_payload
    freed_host_memory_is_unknown
    ranges_past_the_end_are_refused_before_anything_moves
    the_timing_facts_are_sensible_where_there_are_any
    persisting_lines_can_be_reset_or_it_says_why_not
}

const DEFAULT: StreamId = StreamId::DEFAULT;

fn bytes(device: &mut dyn Device, buffer: assay_device::BufferId, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    device.read(buffer, 0, &mut bytes).expect("the buffer can be read");
    bytes
}

fn a_fill_keeps_to_its_range(device: &mut dyn Device) {
    let target = buffer(device, 100);
    device.fill(DEFAULT, target, 10, 50, 0x3c).expect("fills");
    device.fill(DEFAULT, target, 100, 0, 1).expect("an empty fill at the end is fine");
    let found = bytes(device, target, 100);
    let expected = |i: usize| if (10..60).contains(&i) { 0x3c } else { 0xEE };
    assert!((0..100).all(|i| found[i] == expected(i)), "{found:?}");
    assert_eq!(device.guard_damage(target), Ok(None));
}

fn a_copy_keeps_to_its_ranges_and_never_overlaps(device: &mut dyn Device) {
    let module = load(device);
    let (from, to) = (buffer(device, 4 << 20), buffer(device, 4 << 20));
    run(device, &fill(module, from, 1 << 20, 5)).expect("runs");
    device.copy(DEFAULT, (from, 4), (to, 8), (4 << 20) - 8).expect("copies");
    let found = words(device, to, 1 << 20);
    assert_eq!((found[1], found[2], found[(1 << 20) - 1]), (0xEEEE_EEEE, 6, 5 + (1 << 20) - 2));
    device.copy(DEFAULT, (to, 0), (to, 64), 64).expect("neighbours in one buffer");
    let overlap = device.copy(DEFAULT, (to, 0), (to, 63), 64);
    assert!(matches!(overlap, Err(DeviceError::InvalidRequest { .. })), "{overlap:?}");
}

fn every_kind_of_host_memory_starts_zeroed_and_copies_both_ways(device: &mut dyn Device) {
    let target = buffer(device, 10_000);
    for (n, kind) in
        [HostKind::Pageable, HostKind::Pinned, HostKind::Mapped].into_iter().enumerate()
    {
        let host = device.allocate_host(10_000, kind).expect("there is memory");
        let back = device.allocate_host(10_000, kind).expect("there is memory");
        assert!(device.host_bytes(host).expect("can be seen").iter().all(|&byte| byte == 0));
        let byte = |i: usize| (i * 7 + n) as u8;
        let view = device.host_bytes(host).expect("can be written");
        assert_eq!(view.len(), 10_000);
        view.iter_mut().enumerate().for_each(|(i, place)| *place = byte(i));
        device.copy_to_device(DEFAULT, (host, 1), (target, 3), 9_000).expect("copies");
        device.copy_to_host(DEFAULT, (target, 3), (back, 2), 9_000).expect("copies");
        let view = device.host_bytes(back).expect("waits and shows");
        assert!((0..9_000).all(|i| view[i + 2] == byte(i + 1)), "{kind:?}");
        assert_eq!((view[1], view[9_002]), (0, 0), "{kind:?}");
        device.free_host(host).expect("frees");
    }
}

fn kernels_and_the_host_see_each_others_words_in_mapped_memory(device: &mut dyn Device) {
    let module = load(device);
    let host = device.allocate_host(64, HostKind::Mapped).expect("there is memory");
    let address = device.host_address(host).expect("mapped");
    device.store_host_word(host, 4, 40).expect("stores");
    let increment = Launch {
        block: [64, 1, 1],
        arguments: vec![Argument::u64(address), Argument::u32(16)],
        ..Launch::new(module, "increment")
    };
    run(device, &increment).expect("runs");
    assert_eq!(device.load_host_word(host, 4), Ok(41));
    assert_eq!(device.host_bytes(host).expect("shows")[60..], [1, 0, 0, 0]);
    let between = device.store_host_word(host, 2, 1);
    assert!(matches!(between, Err(DeviceError::InvalidRequest { .. })), "{between:?}");
    let past = device.load_host_word(host, 64);
    assert!(matches!(past, Err(DeviceError::OutOfRange { .. })), "{past:?}");
}

fn only_mapped_memory_has_an_address(device: &mut dyn Device) {
    for kind in [HostKind::Pageable, HostKind::Pinned] {
        let host = device.allocate_host(8, kind).expect("there is memory");
        let address = device.host_address(host);
        assert!(matches!(address, Err(DeviceError::InvalidRequest { .. })), "{address:?}");
        let word = device.load_host_word(host, 0);
        assert!(word.is_err_and(|error| error.to_string().contains(kind.name())));
    }
}

fn a_graph_takes_fills_and_copies_but_nothing_of_the_host(device: &mut dyn Device) {
    let module = load(device);
    let (from, to) = (buffer(device, 256), buffer(device, 256));
    let host = device.allocate_host(256, HostKind::Pinned).expect("there is memory");
    device.begin_capture(DEFAULT).expect("begins");
    device.fill(DEFAULT, from, 0, 256, 1).expect("captures");
    device.launch(DEFAULT, &increment(module, from)).expect("captures");
    device.copy(DEFAULT, (from, 0), (to, 0), 256).expect("captures");
    let refused = device.copy_to_device(DEFAULT, (host, 0), (from, 0), 8);
    assert!(matches!(refused, Err(DeviceError::InvalidRequest { .. })), "{refused:?}");
    let refused = device.copy_to_host(DEFAULT, (from, 0), (host, 0), 8);
    assert!(matches!(refused, Err(DeviceError::InvalidRequest { .. })), "{refused:?}");
    let graph = device.end_capture(DEFAULT).expect("ends");
    assert_eq!(words(device, to, 1), [0xEEEE_EEEE], "a capture runs nothing");
    for _ in 0..2 {
        device.launch_graph(graph, DEFAULT).expect("starts");
        assert_eq!(words(device, to, 64), [0x0101_0102; 64], "filled anew each time");
    }
}

fn increment(module: assay_device::ModuleId, buffer: assay_device::BufferId) -> Launch<'static> {
    Launch {
        block: [64, 1, 1],
        arguments: vec![Argument::Buffer(buffer), Argument::u32(64)],
        ..Launch::new(module, "increment")
    }
}

fn a_bare_buffer_is_all_payload(device: &mut dyn Device) {
    let module = load(device);
    for words in [0, 1, 100_000] {
        let bare = device.allocate_bare(words * 4).expect("there is memory");
        assert_eq!(device.address(bare).expect("known") % 256, 0);
        run(device, &fill(module, bare, words as u32, 9)).expect("runs");
        if words > 0 {
            let last = words as i64 * 4 - 4;
            run(device, &write_at(module, bare, last)).expect("the last word is its own");
        }
        assert_eq!(device.guard_damage(bare), Ok(None), "there is no guard to damage");
        let past = device.fill(DEFAULT, bare, 0, words * 4 + 1, 0);
        assert!(matches!(past, Err(DeviceError::OutOfRange { .. })), "{past:?}");
        device.free(bare).expect("frees");
    }
    let endless = device.allocate_bare(u64::MAX);
    assert!(matches!(endless, Err(DeviceError::OutOfMemory { .. })), "{endless:?}");
}

fn freed_host_memory_is_unknown(device: &mut dyn Device) {
    let target = buffer(device, 8);
    let host = device.allocate_host(8, HostKind::Mapped).expect("there is memory");
    device.free_host(host).expect("frees");
    let unknown = |error: DeviceError| matches!(error, DeviceError::UnknownHandle { .. });
    assert!(device.free_host(host).is_err_and(unknown), "a second time");
    assert!(device.host_bytes(host).is_err_and(unknown));
    assert!(device.host_address(host).is_err_and(unknown));
    assert!(device.store_host_word(host, 0, 1).is_err_and(unknown));
    assert!(device.copy_to_device(DEFAULT, (host, 0), (target, 0), 8).is_err_and(unknown));
    assert!(device.free_host(HostBufferId::new()).is_err_and(unknown), "another device's");
}

fn ranges_past_the_end_are_refused_before_anything_moves(device: &mut dyn Device) {
    let (target, other) = (buffer(device, 16), buffer(device, 16));
    let host = device.allocate_host(16, HostKind::Pinned).expect("there is memory");
    let outside = |error: DeviceError| matches!(error, DeviceError::OutOfRange { .. });
    for (offset, length) in [(8, 9), (17, 0), (u64::MAX, 2), (0, u64::MAX)] {
        assert!(device.fill(DEFAULT, target, offset, length, 0).is_err_and(outside));
        assert!(device.copy(DEFAULT, (target, offset), (other, 0), length).is_err_and(outside));
        let up = device.copy_to_device(DEFAULT, (host, offset), (target, 0), length);
        assert!(up.is_err_and(outside), "{offset} {length}");
        let down = device.copy_to_host(DEFAULT, (target, 0), (host, offset), length);
        assert!(down.is_err_and(outside), "{offset} {length}");
    }
    assert_eq!(bytes(device, target, 16), [0xEE; 16]);
}

fn the_timing_facts_are_sensible_where_there_are_any(device: &mut dyn Device) {
    let Some(facts) = device.timing_facts() else { return };
    assert!((100.0..10_000.0).contains(&facts.sm_clock_max_mhz), "{facts:?}");
    assert!(facts.l2_bytes >= 1 << 16 && facts.memory_bus_bits >= 32, "{facts:?}");
    assert!(facts.event_resolution_ns > 0.0, "{facts:?}");
    let limit = facts.memory_bytes_per_s_max();
    assert!((1e10..1e14).contains(&limit), "{limit}");
}

fn persisting_lines_can_be_reset_or_it_says_why_not(device: &mut dyn Device) {
    if let Err(error) = device.reset_persisting_l2() {
        assert!(error.is_unsupported(), "{error}");
    }
    let _ = device.allocate(&Allocation::new(8)).expect("and the device is well after it");
}
