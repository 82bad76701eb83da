//! A kernel made ready to be launched again and again: its buffers filled with ordinary data, its
//! launches packed. Whoever times it needs no more of a contract than this.

use std::collections::BTreeMap;

use assay_device::{Argument, Device, DeviceError, Launch, ModuleId, StreamId};
use assay_num::random::SplitMix64;
use assay_record::Gate;
use assay_reference::fill::shapes::{self as fill, Style};
use assay_reference::{Dims, Inputs};

use crate::gates::ordinary_layout;
use crate::kernel::Kernel;
use crate::launcher::{load, packed, run_error, sizes};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::spec::{LaunchSpec, Role, Spec, StampLanes};
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
        Prepared::build(device, (kernel, kernel.spec()), dims, (seed, None))
    }

    /// As [`Prepared::new`] with the same inputs, of the build that stamps its phases; `stamps` is
    /// the buffer that it takes behind its other arguments.
    ///
    /// # Errors
    /// As [`Prepared::new`], for a kernel that has no such build, and for one whose symbol takes
    /// other parameters.
    pub fn stamped(
        device: &mut dyn Device,
        kernel: &dyn Kernel,
        dims: &Dims,
        (seed, stamps): (u64, &Argument),
    ) -> Result<Prepared, RunError> {
        let mut spec = kernel.spec().clone();
        let Some(build) = spec.stamps.take() else { return Err(no_stamps(&spec)) };
        spec.module = Some(build.module);
        for launch in &mut spec.launches {
            launch.symbol.clone_from(&build.symbol);
        }
        Prepared::build(device, (kernel, &spec), dims, (seed, Some(stamps)))
    }

    fn build(
        device: &mut dyn Device,
        (kernel, spec): (&dyn Kernel, &Spec),
        dims: &Dims,
        (seed, stamps): (u64, Option<&Argument>),
    ) -> Result<Prepared, RunError> {
        let inputs = inputs(kernel, dims, seed)?;
        let request = RunRequest::new(dims, &inputs);
        let bytes = bytes_moved(spec, dims)?;
        let module = load(device, spec)?;
        let made = Memory::allocate(device, spec, &request).and_then(|memory| {
            let mut pack = |launch: &LaunchSpec| {
                let (symbol, mut launch) = packed(spec, launch, &request, (module, &memory))?;
                launch.arguments.extend(stamps.cloned());
                check_stamps(device, &symbol, &launch, stamps)?;
                Ok((symbol, launch))
            };
            match spec.launches.iter().map(&mut pack).collect() {
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

    /// The bytes of every output by name, as they are now. Waits for the device.
    ///
    /// # Errors
    /// The device's.
    pub fn outputs(&self, device: &mut dyn Device) -> Result<BTreeMap<String, Vec<u8>>, RunError> {
        device.synchronize().map_err(|error| run_error(&error))?;
        self.memory.outputs(device)
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

/// How many warps or blocks of a kernel stamp at a shape.
///
/// # Errors
/// For a kernel that has no stamped build, and for a grid or block of more than one axis: lanes
/// are numbered along x.
pub fn stamp_lanes(spec: &Spec, dims: &Dims) -> Result<u32, RunError> {
    let (Some(stamps), Some(launch)) = (&spec.stamps, spec.launches.first()) else {
        return Err(no_stamps(spec));
    };
    let grid = sizes("grid", launch, &launch.grid, dims)?;
    let block = sizes("block", launch, &launch.block, dims)?;
    if [grid, block].iter().any(|sizes| sizes[1..] != [1, 1]) {
        let place = &launch.source;
        let message = format!("{place}: lanes of stamps are numbered along x, and only along it");
        return Err(RunError::request(message));
    }
    let lanes = match stamps.lanes {
        StampLanes::Blocks => u64::from(grid[0]),
        StampLanes::Warps => (u64::from(grid[0]) * u64::from(block[0])).div_ceil(32),
    };
    u32::try_from(lanes).map_err(|_| RunError::request(format!("{lanes} lanes are too many")))
}

fn no_stamps(spec: &Spec) -> RunError {
    RunError::Request {
        message: format!("the kernel `{}` has no stamped build", spec.name),
        hint: Some("add `stamps = { module = ..., phases = [...] }` to its manifest".to_owned()),
    }
}

/// A stamped kernel takes as many parameters as it is passed, and the stamps as the last.
fn check_stamps(
    device: &mut dyn Device,
    symbol: &str,
    launch: &Launch<'_>,
    stamps: Option<&Argument>,
) -> Result<(), RunError> {
    let Some(Argument::Bytes(bytes)) = stamps else { return Ok(()) };
    let facts = device.kernel_facts(launch.module, symbol).map_err(|error| run_error(&error))?;
    let Some(taken) = facts.parameter_sizes else { return Ok(()) };
    if taken.len() == launch.arguments.len() && taken.last() == Some(&bytes.len()) {
        return Ok(());
    }
    Err(RunError::Request {
        message: format!(
            "`{symbol}` takes {} parameters, and its launch passes {} with the stamps as the last",
            taken.len(),
            launch.arguments.len()
        ),
        hint: Some("is it compiled with ASSAY_STAMPS, and ASSAY_STAMPS_PARAMETER last?".to_owned()),
    })
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
