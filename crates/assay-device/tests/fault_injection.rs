//! The device that fails on plan does so at its moment, and at no other.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use assay_device::fault::{FaultInjecting, FaultPlan, FlippedBit, Hang};
use assay_device::{
    Allocation, BufferId, Device, DeviceError, DeviceFacts, EventId, FaultKind, GuardDamage, Image,
    KernelFacts, Launch, LaunchReport, ModuleId, StreamId, TimingFacts,
};

/// A device with memory, a clock that says 1,000 ns, and kernels that do nothing.
struct Idle {
    facts: DeviceFacts,
    buffers: HashMap<BufferId, Vec<u8>>,
}

impl Idle {
    fn new() -> Self {
        let facts = DeviceFacts {
            name: "idle".into(),
            backend: "idle".into(),
            architecture: "sm_80".into(),
            driver: None,
            multiprocessors: 1,
            warp_size: 32,
            max_threads_per_block: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [1; 3],
            shared_per_block: 0,
            shared_per_block_opt_in: 0,
            registers_per_block: 0,
            multiprocessor: None,
            memory_bytes: 0,
        };
        Idle { facts, buffers: HashMap::new() }
    }
}

impl Device for Idle {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn load(&mut self, _: &Image) -> Result<ModuleId, DeviceError> {
        Ok(ModuleId::new())
    }
    fn unload(&mut self, _: ModuleId) -> Result<(), DeviceError> {
        Ok(())
    }
    fn kernel_facts(&mut self, _: ModuleId, _: &str) -> Result<KernelFacts, DeviceError> {
        Ok(KernelFacts::default())
    }
    fn allocate(&mut self, allocation: &Allocation) -> Result<BufferId, DeviceError> {
        let id = BufferId::new();
        self.buffers.insert(id, vec![allocation.poison; allocation.bytes as usize]);
        Ok(id)
    }
    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        self.buffers.remove(&buffer);
        Ok(())
    }
    fn write(&mut self, buffer: BufferId, _: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.buffers.insert(buffer, bytes.to_vec());
        Ok(())
    }
    fn read(&mut self, buffer: BufferId, _: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        bytes.copy_from_slice(&self.buffers[&buffer][..bytes.len()]);
        Ok(())
    }
    fn address(&self, _: BufferId) -> Result<u64, DeviceError> {
        Ok(0)
    }
    fn guard_damage(&mut self, _: BufferId) -> Result<Option<GuardDamage>, DeviceError> {
        Ok(None)
    }
    fn launch(&mut self, _: StreamId, _: &Launch<'_>) -> Result<LaunchReport, DeviceError> {
        Ok(LaunchReport::default())
    }
    fn synchronize(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn elapsed_ns(&mut self, _: EventId, _: EventId) -> Result<u64, DeviceError> {
        Ok(1000)
    }
    fn timing_facts(&self) -> Option<TimingFacts> {
        Some(TimingFacts {
            asynchronous: true,
            l2_bytes: 1,
            l2_persisting_bytes_max: 0,
            sm_clock_max_mhz: 1.0,
            memory_clock_max_mhz: 1.0,
            memory_bus_bits: 8,
            event_resolution_ns: 1.0,
            copy_engines: 0,
            ecc: false,
            pci: Some([0, 3, 0]),
        })
    }
}

fn with(plan: FaultPlan) -> FaultInjecting<Idle> {
    FaultInjecting::new(Idle::new(), plan)
}

fn launch(device: &mut dyn Device) -> Result<LaunchReport, DeviceError> {
    device.launch(StreamId::DEFAULT, &Launch::new(ModuleId::new(), "k"))
}

#[test]
fn without_a_plan_nothing_fails() {
    let mut device = with(FaultPlan::default());
    assert_eq!((device.facts().name.as_str(), device.facts().backend.as_str()), ("idle", "fault"));
    for _ in 0..5 {
        launch(&mut device).expect("runs");
        let buffer = device.allocate(&Allocation::new(2)).expect("allocates");
        let mut bytes = [0; 2];
        device.read(buffer, 0, &mut bytes).expect("reads");
        assert_eq!(bytes, [0xFF; 2]);
    }
    assert_eq!(device.elapsed_ns(EventId::new(), EventId::new()), Ok(1000));
}

#[test]
fn a_lost_device_stays_lost() {
    let mut device = with(FaultPlan { lose_at_launch: Some(2), ..FaultPlan::default() });
    let buffer = device.allocate(&Allocation::new(1)).expect("allocates");
    launch(&mut device).expect("the first launch runs");
    let lost = launch(&mut device).expect_err("the second does not");
    assert!(matches!(lost, DeviceError::Lost { .. }) && lost.poisons_device(), "{lost:?}");
    assert!(device.read(buffer, 0, &mut [0]).is_err_and(|error| error.poisons_device()));
    assert!(device.synchronize().is_err_and(|error| error.poisons_device()));
    assert!(launch(&mut device).is_err());
}

#[test]
fn only_the_chosen_allocation_fails() {
    let mut device = with(FaultPlan { fail_allocation: Some(2), ..FaultPlan::default() });
    let made: Vec<_> = (0..4).map(|_| device.allocate(&Allocation::new(8)).is_ok()).collect();
    assert_eq!(made, [true, false, true, true]);
}

#[test]
fn only_the_chosen_bit_of_the_chosen_read_is_wrong() {
    let flip = Some(FlippedBit { read: 2, bit: 8 * 4 + 9 });
    let mut device = with(FaultPlan { flip, ..FaultPlan::default() });
    let allocation = Allocation { poison: 0, ..Allocation::new(4) };
    let buffer = device.allocate(&allocation).expect("allocates");
    let mut read = || {
        let mut bytes = [9; 4];
        device.read(buffer, 0, &mut bytes).expect("reads");
        bytes
    };
    assert_eq!([read(), read(), read()], [[0; 4], [0, 2, 0, 0], [0; 4]]);
}

#[test]
fn a_hang_blocks_and_then_loses_the_device() {
    let hang = Some(Hang { launch: 1, lasting: Duration::from_millis(20) });
    let mut device = with(FaultPlan { hang, ..FaultPlan::default() });
    let start = Instant::now();
    let error = launch(&mut device).expect_err("hangs");
    assert!(start.elapsed() >= Duration::from_millis(20));
    let DeviceError::Fault(fault) = &error else { panic!("{error:?}") };
    assert_eq!((fault.kind, error.poisons_device()), (FaultKind::Hang, true));
    assert!(matches!(device.synchronize(), Err(DeviceError::Lost { .. })));
}

#[test]
fn a_slow_clock_shows_less() {
    let mut device = with(FaultPlan { clock_factor: 0.25, ..FaultPlan::default() });
    assert_eq!(device.elapsed_ns(EventId::new(), EventId::new()), Ok(250));
}

#[test]
fn a_device_lost_while_it_is_waited_for_stays_lost() {
    let mut device = with(FaultPlan { lose_at_wait: Some(3), ..FaultPlan::default() });
    let buffer = device.allocate(&Allocation::new(1)).expect("allocates");
    device.synchronize().expect("the first wait ends");
    device.read(buffer, 0, &mut [0]).expect("so does the second");
    let lost = device.elapsed_ns(EventId::new(), EventId::new()).expect_err("the third does not");
    assert!(lost.to_string().contains("wait 3"), "{lost}");
    assert!(launch(&mut device).is_err_and(|error| error.poisons_device()));
    assert!(device.allocate_bare(1).is_err_and(|error| error.poisons_device()));
}

#[test]
fn telemetry_goes_missing_on_plan() {
    let place = |plan| with(plan).timing_facts().map(|facts| facts.pci);
    assert_eq!(place(FaultPlan::default()), Some(Some([0, 3, 0])));
    let without = FaultPlan { without_telemetry: true, ..FaultPlan::default() };
    assert_eq!(place(without), Some(None));
}

#[test]
fn a_boxed_device_can_be_wrapped() {
    let boxed: Box<dyn Device> = Box::new(Idle::new());
    let plan = FaultPlan { lose_at_launch: Some(1), ..FaultPlan::default() };
    let mut device: Box<dyn Device> = Box::new(FaultInjecting::new(boxed, plan));
    assert!(launch(&mut *device).is_err());
    let graphs = with(FaultPlan::default()).begin_capture(StreamId::DEFAULT);
    assert!(graphs.is_err_and(|error| error.is_unsupported()), "a default body says so");
}
