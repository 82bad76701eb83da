//! Fills, copies and host buffers of the emulator. Host buffers lie in the emulated memory too, so
//! that kernels find the mapped ones; each is done before its call returns.

use assay_emulator::Machine;

use super::clock::Clock;
use super::{EmulatorDevice, Work, allocated, refused, unknown};
use crate::buffer::check_range;
use crate::error::DeviceError;
use crate::handle::{BufferId, HostBufferId, StreamId};
use crate::host::{HostKind, check_mapped, check_word};

/// Host memory, in one allocation.
pub(super) struct HostBuffer {
    pub(super) base: u64,
    pub(super) bytes: u64,
    pub(super) kind: HostKind,
}

impl HostBuffer {
    pub(super) fn allocate(
        machine: &mut Machine,
        bytes: u64,
        kind: HostKind,
    ) -> Result<HostBuffer, DeviceError> {
        let base = allocated(machine, bytes)?;
        Ok(HostBuffer { base, bytes, kind })
    }
}

/// A fill or copy that passed every check.
pub(super) enum Transfer {
    Fill { to: u64, bytes: u64, value: u8 },
    Copy { from: u64, to: u64, bytes: u64 },
}

impl Transfer {
    pub(super) fn run(
        &self,
        machine: &mut Machine,
        clock: Option<&mut Clock>,
    ) -> Result<(), DeviceError> {
        let (done, moved) = match *self {
            Transfer::Fill { to, bytes, value } => (machine.fill(to, bytes, value), bytes),
            Transfer::Copy { from, to, bytes } => (machine.copy(from, to, bytes), bytes),
        };
        done.map_err(|error| refused("transfer", &error))?;
        if let Some(clock) = clock {
            clock.transfer(moved);
        }
        Ok(())
    }
}

impl EmulatorDevice {
    /// The address of a range of a buffer.
    pub(super) fn place(
        &self,
        (buffer, offset): (BufferId, u64),
        bytes: u64,
    ) -> Result<u64, DeviceError> {
        let buffer = self.buffer(buffer)?;
        check_range(buffer.bytes, offset, bytes)?;
        Ok(buffer.address() + offset)
    }

    pub(super) fn host_buffer(&self, buffer: HostBufferId) -> Result<&HostBuffer, DeviceError> {
        self.host.get(&buffer).ok_or_else(|| unknown("host buffer", buffer.number()))
    }

    /// The address of a range of a host buffer. A graph could outlive the buffer, so that copies
    /// from and to the host are not captured.
    pub(super) fn host_place(
        &self,
        (buffer, offset): (HostBufferId, u64),
        bytes: u64,
    ) -> Result<u64, DeviceError> {
        self.idle()?;
        let buffer = self.host_buffer(buffer)?;
        check_range(buffer.bytes, offset, bytes)?;
        Ok(buffer.base + offset)
    }

    /// The address of a word of mapped memory.
    pub(super) fn host_word(&self, buffer: HostBufferId, offset: u64) -> Result<u64, DeviceError> {
        let buffer = self.host_buffer(buffer)?;
        check_mapped(buffer.kind)?;
        check_word(buffer.bytes, offset)?;
        Ok(buffer.base + offset)
    }

    /// Does a transfer, or captures it.
    pub(super) fn transfer(
        &mut self,
        stream: StreamId,
        transfer: Transfer,
    ) -> Result<(), DeviceError> {
        self.check_stream(stream)?;
        match &mut self.capture {
            Some((captured, works)) if *captured == stream => {
                works.push(Work::Transfer(transfer));
                Ok(())
            }
            _ => transfer.run(&mut self.machine, self.clock.as_mut()),
        }
    }
}
