//! A device that misbehaves on plan, around any other device.
//!
//! Whoever uses devices has bad days to survive: a device that vanishes, memory that runs out, a
//! wrong bit, a kernel that never ends, a clock that lies. [`FaultInjecting`] brings one about at
//! a chosen moment, the same every time, with no hardware at fault.

use std::sync::Arc;
use std::time::Duration;

use crate::buffer::{Allocation, GuardDamage};
use crate::device::{Device, Image};
use crate::error::{DeviceError, FaultKind, KernelFault};
use crate::facts::{DeviceFacts, KernelFacts};
use crate::handle::{BufferId, EventId, GraphId, HostBufferId, ModuleId, StreamId};
use crate::host::HostKind;
use crate::launch::{Argument, Launch, LaunchReport};
use crate::timing::TimingFacts;
use assay_emulator::{TensorMap, Watch};

/// What goes wrong and when. Counts start from 1. The default is that nothing does.
#[derive(Clone, PartialEq, Debug)]
pub struct FaultPlan {
    /// The launch at which the device is lost, for good.
    pub lose_at_launch: Option<u64>,
    /// The allocation that fails for want of memory, alone.
    pub fail_allocation: Option<u64>,
    /// A bit that arrives wrong.
    pub flip: Option<FlippedBit>,
    /// A launch that does not end.
    pub hang: Option<Hang>,
    /// The wait for the device (a synchronisation, a read, or a question for the time between
    /// events) at which it is lost, for good.
    pub lose_at_wait: Option<u64>,
    /// What the device's clock shows for each second that passes: 0 for a clock that stands still.
    pub clock_factor: f64,
    /// Whether nothing tells the device's clocks, power and temperature.
    pub without_telemetry: bool,
}

impl Default for FaultPlan {
    fn default() -> Self {
        FaultPlan {
            lose_at_launch: None,
            fail_allocation: None,
            flip: None,
            hang: None,
            lose_at_wait: None,
            clock_factor: 1.0,
            without_telemetry: false,
        }
    }
}

/// One bit of what one read of a buffer yields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlippedBit {
    /// The read, from 1.
    pub read: u64,
    /// The bit, from the first byte's lowest; taken modulo the read's length.
    pub bit: u64,
}

/// A launch that blocks its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hang {
    /// The launch, from 1.
    pub launch: u64,
    /// How long it blocks before the device gives up and is lost.
    pub lasting: Duration,
}

/// A device with a [`FaultPlan`].
pub struct FaultInjecting<D> {
    inner: D,
    facts: DeviceFacts,
    plan: FaultPlan,
    launches: u64,
    allocations: u64,
    reads: u64,
    waits: u64,
    lost: Option<String>,
}

impl<D: Device> FaultInjecting<D> {
    /// Wraps a device. Its facts stay, except that the backend is now `fault`.
    pub fn new(inner: D, plan: FaultPlan) -> Self {
        let facts = DeviceFacts { backend: "fault".to_string(), ..inner.facts().clone() };
        FaultInjecting {
            inner,
            facts,
            plan,
            launches: 0,
            allocations: 0,
            reads: 0,
            waits: 0,
            lost: None,
        }
    }

    /// The device inside, while the wrapper has not lost it.
    fn inner(&mut self) -> Result<&mut D, DeviceError> {
        match &self.lost {
            Some(cause) => Err(DeviceError::Lost { cause: cause.clone() }),
            None => Ok(&mut self.inner),
        }
    }

    /// What the plan has in store for the next launch.
    fn before_launch(&mut self) -> Result<(), DeviceError> {
        self.inner()?;
        self.launches += 1;
        if self.plan.lose_at_launch == Some(self.launches) {
            self.lost = Some(format!("lost on plan at launch {}", self.launches));
            self.inner()?;
        }
        match self.plan.hang {
            Some(hang) if hang.launch == self.launches => Err(self.hang(hang.lasting)),
            _ => Ok(()),
        }
    }

    /// What the plan has in store for the next wait.
    fn before_wait(&mut self) -> Result<&mut D, DeviceError> {
        self.inner()?;
        self.waits += 1;
        if self.plan.lose_at_wait == Some(self.waits) {
            self.lost = Some(format!("lost on plan at wait {}", self.waits));
        }
        self.inner()
    }

    /// What the plan has in store for the next allocation.
    fn before_allocation(&mut self, requested: u64) -> Result<(), DeviceError> {
        self.inner()?;
        self.allocations += 1;
        if self.plan.fail_allocation == Some(self.allocations) {
            return Err(DeviceError::OutOfMemory { requested, available: Some(0) });
        }
        Ok(())
    }

    fn hang(&mut self, lasting: Duration) -> DeviceError {
        std::thread::sleep(lasting);
        self.lost = Some(format!("launch {} hung on plan", self.launches));
        DeviceError::Fault(KernelFault {
            kind: FaultKind::Hang,
            description: format!("launch {} did not end in {lasting:?}", self.launches),
            place: None,
            hint: None,
            lost_context: true,
        })
    }
}

impl<D: Device> Device for FaultInjecting<D> {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn load(&mut self, image: &Image) -> Result<ModuleId, DeviceError> {
        self.inner()?.load(image)
    }

    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        self.inner()?.unload(module)
    }

    fn kernel_facts(&mut self, module: ModuleId, symbol: &str) -> Result<KernelFacts, DeviceError> {
        self.inner()?.kernel_facts(module, symbol)
    }

    fn occupancy(
        &mut self,
        module: ModuleId,
        symbol: &str,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Option<u32>, DeviceError> {
        self.inner()?.occupancy(module, symbol, block_threads, dynamic_shared_bytes)
    }

    fn allocate(&mut self, allocation: &Allocation) -> Result<BufferId, DeviceError> {
        self.before_allocation(allocation.bytes)?;
        self.inner()?.allocate(allocation)
    }

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        self.inner()?.free(buffer)
    }

    fn write(&mut self, buffer: BufferId, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.inner()?.write(buffer, offset, bytes)
    }

    fn read(&mut self, buffer: BufferId, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.before_wait()?.read(buffer, offset, bytes)?;
        self.reads += 1;
        if let Some(flip) = self.plan.flip
            && flip.read == self.reads
            && !bytes.is_empty()
        {
            let bit = flip.bit % (bytes.len() as u64 * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        Ok(())
    }

    fn address(&self, buffer: BufferId) -> Result<u64, DeviceError> {
        self.inner.address(buffer)
    }

    fn tensor_map(&mut self, buffer: BufferId, map: &TensorMap) -> Result<Argument, DeviceError> {
        self.inner()?.tensor_map(buffer, map)
    }

    fn guard_damage(&mut self, buffer: BufferId) -> Result<Option<GuardDamage>, DeviceError> {
        self.inner()?.guard_damage(buffer)
    }

    fn limit_instructions(&mut self, budget: u64) {
        self.inner.limit_instructions(budget);
    }

    fn launch(
        &mut self,
        stream: StreamId,
        launch: &Launch<'_>,
    ) -> Result<LaunchReport, DeviceError> {
        self.before_launch()?;
        self.inner()?.launch(stream, launch)
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.before_wait()?.synchronize()
    }

    fn perturb(&mut self, kind: u32) -> Result<(), DeviceError> {
        self.inner()?.perturb(kind)
    }

    fn create_stream(&mut self) -> Result<StreamId, DeviceError> {
        self.inner()?.create_stream()
    }

    fn destroy_stream(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        self.inner()?.destroy_stream(stream)
    }

    fn create_event(&mut self) -> Result<EventId, DeviceError> {
        self.inner()?.create_event()
    }

    fn destroy_event(&mut self, event: EventId) -> Result<(), DeviceError> {
        self.inner()?.destroy_event(event)
    }

    fn record_event(&mut self, event: EventId, stream: StreamId) -> Result<(), DeviceError> {
        self.inner()?.record_event(event, stream)
    }

    fn elapsed_ns(&mut self, start: EventId, end: EventId) -> Result<u64, DeviceError> {
        let elapsed = self.before_wait()?.elapsed_ns(start, end)?;
        Ok((elapsed as f64 * self.plan.clock_factor).round() as u64)
    }

    fn begin_capture(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        self.inner()?.begin_capture(stream)
    }

    fn end_capture(&mut self, stream: StreamId) -> Result<GraphId, DeviceError> {
        self.inner()?.end_capture(stream)
    }

    fn launch_graph(&mut self, graph: GraphId, stream: StreamId) -> Result<(), DeviceError> {
        self.before_launch()?;
        self.inner()?.launch_graph(graph, stream)
    }

    fn destroy_graph(&mut self, graph: GraphId) -> Result<(), DeviceError> {
        self.inner()?.destroy_graph(graph)
    }

    fn watch(&mut self, watch: Arc<Watch>) {
        self.inner.watch(watch);
    }

    fn allocate_bare(&mut self, bytes: u64) -> Result<BufferId, DeviceError> {
        self.before_allocation(bytes)?;
        self.inner()?.allocate_bare(bytes)
    }

    fn fill(
        &mut self,
        stream: StreamId,
        buffer: BufferId,
        offset: u64,
        bytes: u64,
        value: u8,
    ) -> Result<(), DeviceError> {
        self.inner()?.fill(stream, buffer, offset, bytes, value)
    }

    fn copy(
        &mut self,
        stream: StreamId,
        from: (BufferId, u64),
        to: (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.inner()?.copy(stream, from, to, bytes)
    }

    fn allocate_host(&mut self, bytes: u64, kind: HostKind) -> Result<HostBufferId, DeviceError> {
        self.before_allocation(bytes)?;
        self.inner()?.allocate_host(bytes, kind)
    }

    fn free_host(&mut self, buffer: HostBufferId) -> Result<(), DeviceError> {
        self.inner()?.free_host(buffer)
    }

    fn host_bytes(&mut self, buffer: HostBufferId) -> Result<&mut [u8], DeviceError> {
        self.inner()?.host_bytes(buffer)
    }

    fn host_address(&self, buffer: HostBufferId) -> Result<u64, DeviceError> {
        self.inner.host_address(buffer)
    }

    fn store_host_word(
        &mut self,
        buffer: HostBufferId,
        offset: u64,
        word: u32,
    ) -> Result<(), DeviceError> {
        self.inner()?.store_host_word(buffer, offset, word)
    }

    fn load_host_word(&mut self, buffer: HostBufferId, offset: u64) -> Result<u32, DeviceError> {
        self.inner()?.load_host_word(buffer, offset)
    }

    fn copy_to_device(
        &mut self,
        stream: StreamId,
        from: (HostBufferId, u64),
        to: (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.inner()?.copy_to_device(stream, from, to, bytes)
    }

    fn copy_to_host(
        &mut self,
        stream: StreamId,
        from: (BufferId, u64),
        to: (HostBufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.inner()?.copy_to_host(stream, from, to, bytes)
    }

    fn query(&mut self, event: EventId) -> Result<bool, DeviceError> {
        self.inner()?.query(event)
    }

    fn reset_persisting_l2(&mut self) -> Result<(), DeviceError> {
        self.inner()?.reset_persisting_l2()
    }

    fn timing_facts(&self) -> Option<TimingFacts> {
        let facts = self.inner.timing_facts()?;
        let pci = if self.plan.without_telemetry { None } else { facts.pci };
        Some(TimingFacts { pci, ..facts })
    }
}
