//! A boxed device is a device.

use crate::buffer::{Allocation, GuardDamage};
use crate::device::{Device, Image};
use crate::error::DeviceError;
use crate::facts::{DeviceFacts, KernelFacts};
use crate::handle::{BufferId, EventId, GraphId, HostBufferId, ModuleId, StreamId};
use crate::host::HostKind;
use crate::launch::{Argument, Launch, LaunchReport};
use crate::timing::TimingFacts;
use assay_emulator::{TensorMap, Watch};
use std::sync::Arc;

/// So that wrappers take [`crate::open`]'s answer.
impl<D: Device + ?Sized> Device for Box<D> {
    fn facts(&self) -> &DeviceFacts {
        (**self).facts()
    }
    fn load(&mut self, image: &Image) -> Result<ModuleId, DeviceError> {
        (**self).load(image)
    }
    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        (**self).unload(module)
    }
    fn kernel_facts(&mut self, module: ModuleId, symbol: &str) -> Result<KernelFacts, DeviceError> {
        (**self).kernel_facts(module, symbol)
    }
    fn occupancy(
        &mut self,
        module: ModuleId,
        symbol: &str,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Option<u32>, DeviceError> {
        (**self).occupancy(module, symbol, block_threads, dynamic_shared_bytes)
    }
    fn allocate(&mut self, allocation: &Allocation) -> Result<BufferId, DeviceError> {
        (**self).allocate(allocation)
    }
    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        (**self).free(buffer)
    }
    fn write(&mut self, buffer: BufferId, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        (**self).write(buffer, offset, bytes)
    }
    fn read(&mut self, buffer: BufferId, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        (**self).read(buffer, offset, bytes)
    }
    fn address(&self, buffer: BufferId) -> Result<u64, DeviceError> {
        (**self).address(buffer)
    }
    fn tensor_map(&mut self, buffer: BufferId, map: &TensorMap) -> Result<Argument, DeviceError> {
        (**self).tensor_map(buffer, map)
    }
    fn guard_damage(&mut self, buffer: BufferId) -> Result<Option<GuardDamage>, DeviceError> {
        (**self).guard_damage(buffer)
    }
    fn launch(
        &mut self,
        stream: StreamId,
        launch: &Launch<'_>,
    ) -> Result<LaunchReport, DeviceError> {
        (**self).launch(stream, launch)
    }
    fn synchronize(&mut self) -> Result<(), DeviceError> {
        (**self).synchronize()
    }
    fn perturb(&mut self, kind: u32) -> Result<(), DeviceError> {
        (**self).perturb(kind)
    }
    fn create_stream(&mut self) -> Result<StreamId, DeviceError> {
        (**self).create_stream()
    }
    fn destroy_stream(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        (**self).destroy_stream(stream)
    }
    fn create_event(&mut self) -> Result<EventId, DeviceError> {
        (**self).create_event()
    }
    fn destroy_event(&mut self, event: EventId) -> Result<(), DeviceError> {
        (**self).destroy_event(event)
    }
    fn record_event(&mut self, event: EventId, stream: StreamId) -> Result<(), DeviceError> {
        (**self).record_event(event, stream)
    }
    fn elapsed_ns(&mut self, start: EventId, end: EventId) -> Result<u64, DeviceError> {
        (**self).elapsed_ns(start, end)
    }
    fn begin_capture(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        (**self).begin_capture(stream)
    }
    fn end_capture(&mut self, stream: StreamId) -> Result<GraphId, DeviceError> {
        (**self).end_capture(stream)
    }
    fn launch_graph(&mut self, graph: GraphId, stream: StreamId) -> Result<(), DeviceError> {
        (**self).launch_graph(graph, stream)
    }
    fn destroy_graph(&mut self, graph: GraphId) -> Result<(), DeviceError> {
        (**self).destroy_graph(graph)
    }
    fn limit_instructions(&mut self, budget: u64) {
        (**self).limit_instructions(budget);
    }
    fn watch(&mut self, watch: Arc<Watch>) {
        (**self).watch(watch);
    }
    fn allocate_bare(&mut self, bytes: u64) -> Result<BufferId, DeviceError> {
        (**self).allocate_bare(bytes)
    }
    fn fill(
        &mut self,
        stream: StreamId,
        buffer: BufferId,
        offset: u64,
        bytes: u64,
        value: u8,
    ) -> Result<(), DeviceError> {
        (**self).fill(stream, buffer, offset, bytes, value)
    }
    fn copy(
        &mut self,
        stream: StreamId,
        from: (BufferId, u64),
        to: (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        (**self).copy(stream, from, to, bytes)
    }
    fn allocate_host(&mut self, bytes: u64, kind: HostKind) -> Result<HostBufferId, DeviceError> {
        (**self).allocate_host(bytes, kind)
    }
    fn free_host(&mut self, buffer: HostBufferId) -> Result<(), DeviceError> {
        (**self).free_host(buffer)
    }
    fn host_bytes(&mut self, buffer: HostBufferId) -> Result<&mut [u8], DeviceError> {
        (**self).host_bytes(buffer)
    }
    fn host_address(&self, buffer: HostBufferId) -> Result<u64, DeviceError> {
        (**self).host_address(buffer)
    }
    fn store_host_word(
        &mut self,
        buffer: HostBufferId,
        offset: u64,
        word: u32,
    ) -> Result<(), DeviceError> {
        (**self).store_host_word(buffer, offset, word)
    }
    fn load_host_word(&mut self, buffer: HostBufferId, offset: u64) -> Result<u32, DeviceError> {
        (**self).load_host_word(buffer, offset)
    }
    fn copy_to_device(
        &mut self,
        stream: StreamId,
        from: (HostBufferId, u64),
        to: (BufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        (**self).copy_to_device(stream, from, to, bytes)
    }
    fn copy_to_host(
        &mut self,
        stream: StreamId,
        from: (BufferId, u64),
        to: (HostBufferId, u64),
        bytes: u64,
    ) -> Result<(), DeviceError> {
        (**self).copy_to_host(stream, from, to, bytes)
    }
    fn query(&mut self, event: EventId) -> Result<bool, DeviceError> {
        (**self).query(event)
    }
    fn reset_persisting_l2(&mut self) -> Result<(), DeviceError> {
        (**self).reset_persisting_l2()
    }
    fn timing_facts(&self) -> Option<TimingFacts> {
        (**self).timing_facts()
    }
}
