//! Fills, copies, host memory and events of the CUDA backend against the driver library made for
//! the purpose, so that the calls are tested where there is no GPU.

mod fake_library;

use assay_device::cuda::CudaDevice;
use assay_device::{Allocation, Device, DeviceError, HostKind, StreamId};
use fake_library::opened;

const DEFAULT: StreamId = StreamId::DEFAULT;

fn device(test: &str, options: &[&str]) -> Option<CudaDevice> {
    Some(opened(test, options)?.expect("the fake opens"))
}

#[test]
fn fills_and_copies_reach_the_driver() {
    let Some(mut device) = device("fills", &[]) else { return };
    let (from, to) = (device.allocate_bare(16).unwrap(), device.allocate_bare(16).unwrap());
    device.fill(DEFAULT, from, 0, 16, 3).expect("fills");
    device.fill(DEFAULT, to, 0, 16, 4).expect("fills");
    device.copy(DEFAULT, (from, 1), (to, 2), 3).expect("copies");
    let mut bytes = [0; 7];
    device.read(to, 0, &mut bytes).expect("reads");
    assert_eq!(bytes, [4, 4, 3, 3, 3, 4, 4]);
}

#[test]
fn host_memory_of_every_kind_copies_both_ways() {
    let Some(mut device) = device("host_memory", &[]) else { return };
    let buffer = device.allocate(&Allocation::new(8)).expect("allocates");
    for kind in [HostKind::Pageable, HostKind::Pinned, HostKind::Mapped] {
        let host = device.allocate_host(8, kind).expect("allocates");
        device.host_bytes(host).expect("shows").copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        device.copy_to_device(DEFAULT, (host, 4), (buffer, 0), 4).expect("copies");
        device.copy_to_host(DEFAULT, (buffer, 0), (host, 0), 4).expect("copies");
        assert_eq!(device.host_bytes(host).expect("shows"), [5, 6, 7, 8, 5, 6, 7, 8]);
        device.free_host(host).expect("frees");
    }
    let mapped = device.allocate_host(8, HostKind::Mapped).expect("allocates");
    device.store_host_word(mapped, 4, 0x0102_0304).expect("stores");
    assert_eq!(device.load_host_word(mapped, 4), Ok(0x0102_0304));
    assert!(device.host_address(mapped).is_ok_and(|address| address != 0));
}

#[test]
fn a_driver_without_the_functions_says_so() {
    let Some(mut device) = device("no_transfers", &["-DNO_TRANSFERS"]) else { return };
    let buffer = device.allocate(&Allocation::new(8)).expect("allocates");
    let unsupported = |error: DeviceError| error.is_unsupported();
    assert!(device.fill(DEFAULT, buffer, 0, 8, 0).is_err_and(unsupported));
    assert!(device.allocate_host(8, HostKind::Pinned).is_err_and(unsupported));
    assert!(device.reset_persisting_l2().is_err_and(unsupported));
    let pageable = device.allocate_host(8, HostKind::Pageable).expect("needs no driver");
    assert!(device.copy_to_device(DEFAULT, (pageable, 0), (buffer, 0), 8).is_err_and(unsupported));
    let event = device.create_event().expect("creates");
    device.record_event(event, DEFAULT).expect("records");
    assert_eq!(device.query(event), Ok(true), "it waits instead");
    device.begin_capture(DEFAULT).expect("begins");
    assert!(device.record_event(event, DEFAULT).is_err_and(unsupported));
}

#[test]
fn an_event_that_is_not_reached_is_no_error() {
    let Some(mut device) = device("not_ready", &[]) else { return };
    let event = device.create_event().expect("creates");
    assert!(device.query(event).is_err(), "never recorded");
    device.record_event(event, DEFAULT).expect("records");
    assert_eq!((device.query(event), device.query(event)), (Ok(false), Ok(true)));
}

#[test]
fn a_capture_takes_events_and_the_graph_keeps_them() {
    let Some(mut device) = device("captured_events", &[]) else { return };
    let (event, buffer) = (device.create_event().unwrap(), device.allocate_bare(8).unwrap());
    device.begin_capture(DEFAULT).expect("begins");
    device.record_event(event, DEFAULT).expect("captures");
    device.fill(DEFAULT, buffer, 0, 8, 0).expect("captures");
    assert!(device.query(event).is_err(), "nothing but what is captured");
    let graph = device.end_capture(DEFAULT).expect("ends");
    device.destroy_event(event).expect("destroys");
    device.launch_graph(graph, DEFAULT).expect("the graph keeps the event");
}

#[test]
fn the_timing_facts_are_the_drivers() {
    let Some(found) = device("timing_facts", &[]) else { return };
    let facts = found.timing_facts().expect("told");
    assert!(facts.asynchronous && !facts.ecc);
    assert_eq!((facts.l2_bytes, facts.l2_persisting_bytes_max), (60 << 20, 39_321_600));
    assert_eq!((facts.sm_clock_max_mhz, facts.memory_clock_max_mhz), (1980.0, 3201.0));
    assert_eq!(
        (facts.memory_bus_bits, facts.copy_engines, facts.pci),
        (6144, 3, Some([0, 0x3b, 0]))
    );
    assert_eq!(facts.memory_bytes_per_s_max().round(), 4_916_736_000_000.0);
    let Some(silent) = device("no_timing", &["-DNO_TIMING"]) else { return };
    assert_eq!(silent.timing_facts(), None, "a driver that does not tell one tells none");
}

#[test]
fn host_memory_that_does_not_suffice_is_out_of_memory() {
    let Some(mut device) = device("host_exhausted", &["-DALLOCATE_CODE=2"]) else { return };
    for kind in [HostKind::Pinned, HostKind::Mapped] {
        let error = device.allocate_host(64, kind).expect_err("refused");
        assert!(matches!(error, DeviceError::OutOfMemory { requested: 64, .. }), "{error:?}");
    }
    let endless = device.allocate_host(u64::MAX, HostKind::Pageable).expect_err("refused");
    assert!(matches!(endless, DeviceError::OutOfMemory { .. }), "{endless:?}");
}
