//! The CUDA backend against a driver library made for the purpose, so that what a missing, old,
//! broken or failing driver does is tested where there is no GPU.

mod fake_library;

use assay_device::cuda::{CudaDevice, REQUIRED_FUNCTIONS};
use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, FaultKind, Image, Launch, ModuleId,
    StreamId,
};
use fake_library::{library, opened};

/// Opens the fake, which must work, and loads its module.
fn ready(test: &str, options: &[&str]) -> Option<(CudaDevice, ModuleId, BufferId)> {
    let mut device = opened(test, options)?.expect("the fake opens");
    let module = device.load(&Image::ptx("a.ptx", "text")).expect("the fake loads anything");
    let buffer = device.allocate(&Allocation::new(64)).expect("the fake has memory");
    Some((device, module, buffer))
}

fn start(
    device: &mut CudaDevice,
    (module, symbol): (ModuleId, &str),
    buffer: BufferId,
    value: u32,
) -> Result<(), DeviceError> {
    let arguments = vec![Argument::Buffer(buffer), Argument::u32(value)];
    let launch = Launch { arguments, ..Launch::new(module, symbol) };
    device.launch(StreamId::DEFAULT, &launch).map(|_| ())
}

#[test]
fn a_library_that_is_not_there_is_a_missing_driver() {
    let error = CudaDevice::open_with_library("/nowhere/libcuda.so.1", 0).err();
    assert!(matches!(error, Some(DeviceError::DriverMissing { .. })), "{error:?}");
    let hint = error.and_then(|error| error.hint()).unwrap_or_default();
    assert!(hint.contains("--device emulator"), "{hint}");
}

#[test]
fn an_old_driver_is_named_before_its_missing_functions() {
    let options = ["-DVERSION=11080", "-DONLY_VERSION"];
    let Some(result) = opened("old_driver", &options) else { return };
    let error = result.err().expect("refused");
    assert_eq!(
        error.to_string(),
        "the NVIDIA driver is too old: it serves CUDA 11.8, Assay needs 12.0"
    );
    assert!(error.hint().is_some_and(|hint| hint.contains("update the NVIDIA driver")));
}

#[test]
fn a_missing_function_is_named() {
    let Some(result) = opened("missing_function", &["-DNO_GRAPHS"]) else { return };
    let error = result.err().expect("refused");
    assert!(
        matches!(&error, DeviceError::SymbolMissing { symbol, .. } if symbol == "cuGraphLaunch"),
        "{error:?}"
    );
    assert!(REQUIRED_FUNCTIONS.contains(&"cuGraphLaunch"));
}

#[test]
fn a_driver_without_a_gpu_has_no_device() {
    for (test, option) in [("no_device_init", "-DINIT_CODE=100"), ("no_device", "-DDEVICES=0")] {
        let Some(result) = opened(test, &[option]) else { return };
        let error = result.err().expect("refused");
        assert!(matches!(error, DeviceError::NoSuchDevice { .. }), "{option}: {error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("nvidia-smi")), "{option}");
    }
}

#[test]
fn a_device_number_too_large_lists_what_there_is() {
    let Some(path) = library("two_devices", &["-DDEVICES=2"]) else { return };
    let error = CudaDevice::open_with_library(&path, 2).err().expect("refused");
    assert_eq!(error.to_string(), "there is no device cuda:2");
    assert_eq!(error.hint().as_deref(), Some("available: cuda:0, cuda:1"));
}

#[test]
fn a_toolkits_stub_is_no_driver() {
    let Some(result) = opened("stub", &["-DINIT_CODE=34"]) else { return };
    let error = result.err().expect("refused");
    assert!(matches!(error, DeviceError::DriverMissing { .. }), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("LD_LIBRARY_PATH")));
}

#[test]
fn another_failure_of_the_driver_keeps_its_name_and_number() {
    let Some(result) = opened("mismatch", &["-DINIT_CODE=803"]) else { return };
    assert_eq!(
        result.err().map(|error| error.to_string()).as_deref(),
        Some(
            "cuInit failed with CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): words of the fake driver"
        )
    );
    let Some(result) = opened("unnamed", &["-DINIT_CODE=999"]) else { return };
    let text = result.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("an unknown error (999)"), "{text}");
}

#[test]
fn the_facts_are_the_drivers() {
    let Some((device, ..)) = ready("facts", &[]) else { return };
    let facts = device.facts();
    assert_eq!((facts.name.as_str(), facts.architecture.as_str()), ("Fake GPU", "sm_90"));
    assert!(facts.driver.as_deref().is_some_and(|driver| driver.ends_with("CUDA 12.4")));
    assert_eq!(facts.max_grid, [0x7fff_ffff, 65535, 65535]);
    assert_eq!((facts.shared_per_block_opt_in, facts.memory_bytes), (232_448, 1 << 30));
    assert_eq!(facts.architecture_number(), Some(90));
    let shared = facts.multiprocessor.expect("a GPU's multiprocessor allots");
    assert_eq!((shared.threads, shared.blocks, shared.registers), (2048, 32, 65536));
    assert_eq!((shared.shared_bytes, shared.reserved_shared_bytes), (233_472, 1024));
}

#[test]
fn the_occupancy_is_the_drivers() {
    let Some((mut device, module, _)) = ready("occupancy", &[]) else { return };
    let mut blocks = |threads, bytes| device.occupancy(module, "store", threads, bytes);
    assert_eq!(blocks(256, 0), Ok(Some(8)));
    assert_eq!(blocks(256, 60_000), Ok(Some(3)));
    assert!(blocks(4096, 0).is_err(), "the driver refuses such a block");
    assert!(device.occupancy(module, "stroe", 32, 0).is_err());
}

#[test]
fn memory_that_does_not_suffice_says_how_much_is_free() {
    let Some(result) = opened("out_of_memory", &["-DALLOCATE_CODE=2"]) else { return };
    let mut device = result.expect("the fake opens");
    assert_eq!(
        device.allocate(&Allocation::new(10_000)),
        Err(DeviceError::OutOfMemory { requested: 10_000, available: Some(4096) })
    );
    let endless = device.allocate(&Allocation::new(u64::MAX)).err();
    assert!(matches!(endless, Some(DeviceError::OutOfMemory { .. })), "{endless:?}");
}

#[test]
fn the_compilers_complaint_comes_with_its_line() {
    let Some(result) = opened("rejected", &["-DLOAD_CODE=218"]) else { return };
    let mut device = result.expect("the fake opens");
    let error = device.load(&Image::ptx("bad.ptx", "first\nsecond\n")).expect_err("rejected");
    assert_eq!(error.to_string(), "bad.ptx:2: the fake dislikes this\n  | second");
    assert!(error.hint().is_some_and(|hint| hint.contains("line 2")), "{error:?}");
}

#[test]
fn a_ptx_version_too_new_says_what_to_do() {
    let Some(result) = opened("new_ptx", &["-DLOAD_CODE=222"]) else { return };
    let mut device = result.expect("the fake opens");
    let error = device.load(&Image::ptx("new.ptx", "x")).expect_err("rejected");
    assert!(error.hint().is_some_and(|hint| hint.contains("update the driver")), "{error}");
}

#[test]
fn a_kernel_that_is_not_there_lists_those_that_are() {
    let Some((mut device, module, _)) = ready("kernels", &[]) else { return };
    let error = device.kernel_facts(module, "stroe").expect_err("unknown");
    assert_eq!(error.to_string(), "the module has no kernel stroe");
    assert_eq!(
        error.hint().as_deref(),
        Some("the module's kernels: store, damage_before, damage_after")
    );
    let Some((mut device, module, _)) = ready("no_listing", &["-DNO_LISTING"]) else { return };
    let error = device.kernel_facts(module, "stroe").expect_err("unknown");
    assert_eq!(error.hint(), None, "an older driver lists none");
    assert!(device.kernel_facts(module, "st\0re").is_err(), "a NUL in a name is no panic");
}

#[test]
fn arguments_reach_the_kernel() {
    let Some((mut device, module, buffer)) = ready("arguments", &[]) else { return };
    start(&mut device, (module, "store"), buffer, 0x0403_0201).expect("runs");
    let mut bytes = [0; 6];
    device.read(buffer, 0, &mut bytes).expect("reads");
    assert_eq!(bytes, [1, 2, 3, 4, 0xFF, 0xFF], "the value, then poison");
}

#[test]
fn arguments_of_the_wrong_sizes_never_reach_the_driver() {
    let Some((mut device, module, buffer)) = ready("wrong_arguments", &[]) else { return };
    let mut run = |arguments| {
        let launch = Launch { arguments, ..Launch::new(module, "store") };
        device.launch(StreamId::DEFAULT, &launch)
    };
    let few = run(vec![Argument::Buffer(buffer)]);
    assert!(matches!(few, Err(DeviceError::InvalidLaunch { .. })), "{few:?}");
    let wide = run(vec![Argument::Buffer(buffer), Argument::u64(0)]);
    assert!(matches!(wide, Err(DeviceError::InvalidLaunch { .. })), "{wide:?}");
}

#[test]
fn a_driver_that_cannot_tell_parameters_is_not_trusted_with_any() {
    let options = ["-DNO_PARAMETERS"];
    let Some((mut device, module, buffer)) = ready("no_parameters", &options) else { return };
    let error = start(&mut device, (module, "store"), buffer, 1).expect_err("refused");
    assert!(error.is_unsupported(), "{error:?}");
}

#[test]
fn a_write_beside_the_buffer_shows_in_the_guard() {
    let Some((mut device, module, buffer)) = ready("guards", &[]) else { return };
    assert_eq!(device.guard_damage(buffer), Ok(None));
    start(&mut device, (module, "damage_after"), buffer, 64 + 9).expect("runs");
    let damage = device.guard_damage(buffer).expect("looks").expect("finds");
    assert!(damage.to_string().starts_with("10 bytes after the buffer"), "{damage}");
    let other = device.allocate(&Allocation::new(0)).expect("an empty buffer");
    start(&mut device, (module, "damage_before"), other, 0).expect("runs");
    let damage = device.guard_damage(other).expect("looks").expect("finds");
    assert!(damage.to_string().starts_with("1 byte before the buffer"), "{damage}");
}

#[test]
fn a_fault_kills_the_device_and_names_the_kernel() {
    let options = ["-DSYNCHRONIZE_CODE=700"];
    let Some((mut device, module, buffer)) = ready("fault", &options) else { return };
    start(&mut device, (module, "store"), buffer, 1).expect("starts");
    let error = device.synchronize().expect_err("faults");
    let DeviceError::Fault(fault) = &error else { panic!("{error:?}") };
    assert_eq!((fault.kind, fault.lost_context), (FaultKind::OutOfBounds, true));
    assert_eq!(
        error.to_string(),
        "words of the fake driver (CUDA_ERROR_ILLEGAL_ADDRESS), in store"
    );
    assert!(error.poisons_device());
    let later = device.read(buffer, 0, &mut [0]).expect_err("dead");
    assert!(matches!(&later, DeviceError::Lost { cause } if cause.contains("in store")));
    assert!(device.allocate(&Allocation::new(1)).is_err_and(|error| error.poisons_device()));
}

#[test]
fn each_sort_of_fault_is_told_apart() {
    let sorts = [("timeout", 702, FaultKind::Hang), ("misaligned", 716, FaultKind::Misaligned)];
    for (test, code, kind) in sorts {
        let option = format!("-DSYNCHRONIZE_CODE={code}");
        let Some((mut device, module, buffer)) = ready(test, &[&option]) else { return };
        start(&mut device, (module, "store"), buffer, 1).expect("starts");
        let error = device.synchronize().expect_err("faults");
        let DeviceError::Fault(fault) = error else { panic!("{error:?}") };
        assert_eq!(fault.kind, kind);
    }
    let options = ["-DSYNCHRONIZE_CODE=214"];
    let Some((mut device, module, buffer)) = ready("ecc", &options) else { return };
    start(&mut device, (module, "store"), buffer, 1).expect("starts");
    let error = device.synchronize().expect_err("lost");
    assert!(matches!(error, DeviceError::Lost { .. }), "{error:?}");
}

#[test]
fn a_launch_over_the_devices_resources_leaves_it_alive() {
    let options = ["-DLAUNCH_CODE=701"];
    let Some((mut device, module, buffer)) = ready("resources", &options) else { return };
    let error = start(&mut device, (module, "store"), buffer, 1).expect_err("refused");
    assert!(matches!(error, DeviceError::InvalidLaunch { .. }), "{error:?}");
    assert_eq!(device.synchronize(), Ok(()));
}

#[test]
fn clusters_without_their_launch_function_are_unsupported() {
    let Some((mut device, module, buffer)) = ready("clusters", &[]) else { return };
    let arguments = vec![Argument::Buffer(buffer), Argument::u32(0)];
    let launch =
        Launch { arguments, grid: [2, 1, 1], cluster: [2, 1, 1], ..Launch::new(module, "store") };
    let error = device.launch(StreamId::DEFAULT, &launch).expect_err("refused");
    assert!(error.is_unsupported(), "{error:?}");
}

#[test]
fn a_capture_refuses_everything_but_launches() {
    let Some((mut device, module, buffer)) = ready("capture", &[]) else { return };
    device.begin_capture(StreamId::DEFAULT).expect("begins");
    let refused = device.read(buffer, 0, &mut [0]).expect_err("refused");
    assert!(matches!(refused, DeviceError::InvalidRequest { .. }), "{refused:?}");
    assert!(device.begin_capture(StreamId::DEFAULT).is_err());
    start(&mut device, (module, "store"), buffer, 1).expect("captures");
    let graph = device.end_capture(StreamId::DEFAULT).expect("ends");
    assert!(device.end_capture(StreamId::DEFAULT).is_err());
    device.unload(module).expect("the graph keeps the module");
    device.launch_graph(graph, StreamId::DEFAULT).expect("launches");
    device.destroy_graph(graph).expect("destroys");
    assert!(device.destroy_graph(graph).is_err());
}

#[test]
fn events_need_recording() {
    let Some((mut device, ..)) = ready("events", &[]) else { return };
    let (start, end) = (device.create_event().unwrap(), device.create_event().unwrap());
    assert!(device.elapsed_ns(start, end).is_err());
    device.record_event(start, StreamId::DEFAULT).expect("records");
    device.record_event(end, StreamId::DEFAULT).expect("records");
    assert_eq!(device.elapsed_ns(start, end), Ok(1_500_000));
    device.destroy_event(end).expect("destroys");
    assert!(device.elapsed_ns(start, end).is_err());
}
