//! A kernel made ready to be launched again and again: its buffers filled with ordinary data, its
//! launches packed. Whoever times it needs no more of a contract than this.

use assay_device::{Device, DeviceError, Launch, ModuleId, StreamId};
use assay_num::random::SplitMix64;
use assay_record::Gate;
use assay_reference::fill::shapes::{self as fill, Style};
use assay_reference::{Dims, Inputs};

use crate::gates::ordinary_layout;
use crate::kernel::Kernel;
use crate::launcher::{load, packed, run_error};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::spec::{Role, Spec};
use crate::subject::{RunError, RunRequest};

/// A kernel with its buffers and launches, on one device.
pub struct Prepared {
    module: ModuleId,
    memory: Memory,
    launches: Vec<(String, Launch<'static>)>,
    bytes: u64,
}

impl Prepared {
    /// Loads a kernel, allocates and fills its buffers at a shape, and packs its launches.
    ///
    /// # Errors
    /// What [`crate::Launcher::bind`] refuses, and a shape whose inputs cannot be drawn.
    pub fn new(
        device: &mut dyn Device,
        kernel: &dyn Kernel,
        dims: &Dims,
        seed: u64,
    ) -> Result<Prepared, RunError> {
        let spec = kernel.spec();
        let inputs = inputs(kernel, dims, seed)?;
        let request = RunRequest::new(dims, &inputs);
        let bytes = bytes_moved(spec, dims)?;
        let module = load(device, spec)?;
        let made = Memory::allocate(device, spec, &request).and_then(|memory| {
            let pack = |launch| packed(spec, launch, &request, (module, &memory));
            match spec.launches.iter().map(pack).collect() {
                Ok(launches) => Ok(Prepared { module, memory, launches, bytes }),
                Err(error) => {
                    // The first error is the one to report; freeing is only tidiness after it.
                    let _ = memory.free(device);
                    Err(error)
                }
            }
        });
        if made.is_err() {
            let _ = device.unload(module);
        }
        made
    }

    /// Launches one run of the kernel on a stream. It waits for nothing.
    ///
    /// # Errors
    /// The device's.
    pub fn launch(&self, device: &mut dyn Device, stream: StreamId) -> Result<(), DeviceError> {
        for (symbol, launch) in &self.launches {
            let launch = Launch { symbol, ..launch.clone() };
            device.launch(stream, &launch)?;
        }
        Ok(())
    }

    /// Instructions of warps of one run, on a device that counts them; 0 on one that does not.
    ///
    /// # Errors
    /// The device's.
    pub fn count(&self, device: &mut dyn Device) -> Result<u64, DeviceError> {
        let mut all = 0u64;
        for (symbol, launch) in &self.launches {
            let launch = Launch { symbol, ..launch.clone() };
            let report = device.launch(StreamId::DEFAULT, &launch)?;
            all = all.saturating_add(report.warp_instructions.unwrap_or(0));
        }
        Ok(all)
    }

    /// Bytes that one run must move at least: every input read once, every output written once.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// The device's.
    pub fn free(self, device: &mut dyn Device) -> Result<(), RunError> {
        let freed = self.memory.free(device);
        let unloaded = device.unload(self.module).map_err(|error| run_error(&error));
        freed.and(unloaded)
    }
}

/// Ordinary inputs: magnitudes in [0.5, 2), or what the kernel builds itself.
fn inputs(kernel: &dyn Kernel, dims: &Dims, seed: u64) -> Result<Inputs, RunError> {
    if let Some(inputs) = kernel.prepare(Gate::Shapes, dims, seed) {
        return Ok(inputs);
    }
    let spec = kernel.spec();
    let layout = ordinary_layout(spec, dims, seed).map_err(RunError::request)?;
    let tiny = fill::tiny_scale(spec.signature.scalars.values().copied());
    let mut random = SplitMix64::new(seed).fork(&format!("timed {}", spec.name));
    let styles = vec![Style::Ordinary; layout.rows];
    Ok(fill::build(&layout, &styles, tiny, &mut random))
}

fn bytes_moved(spec: &Spec, dims: &Dims) -> Result<u64, RunError> {
    let mut moved = 0u64;
    for argument in &spec.arguments {
        // What is read and overwritten is written by the output that is counted itself.
        if matches!(argument.role, Role::In | Role::Out | Role::InOut) {
            moved = moved.saturating_add(Layout::of(argument, dims)?.bytes as u64);
        }
    }
    Ok(moved)
}
