//! Runs a manifest's launches on a device: loads the module, lays out guarded and poisoned
//! buffers, packs arguments, launches, and reads back outputs and evidence of misbehaviour.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use assay_device::{
    Argument, Device, DeviceError, DeviceFacts, FaultKind, Image, Launch, LaunchReport, ModuleId,
    StreamId,
};
use assay_num::{Overflow, Rounding};
use assay_reference::{Dims, Extent};

use crate::layout::Layout;
use crate::memory::Memory;
use crate::meter::Meter;
use crate::spec::{ArgumentSpec, LaunchSpec, ModuleKind, ModuleRef, Role, Spec, shown};
use crate::subject::{Loaded, RunError, RunRequest, RunResult};

/// A device with the modules loaded so far.
pub struct Launcher<'d> {
    pub(crate) device: &'d mut dyn Device,
    modules: BTreeMap<String, ModuleId>,
    meter: Meter,
}

impl<'d> Launcher<'d> {
    /// A launcher that has loaded nothing yet.
    pub fn new(device: &'d mut dyn Device) -> Launcher<'d> {
        Launcher { device, modules: BTreeMap::new(), meter: Meter::default() }
    }

    /// What the device says about itself.
    pub fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }

    /// Launches from now on stop after about so much time together, where the device counts
    /// instructions: those still running then end in [`RunError::Stopped`]. `None` takes the limit
    /// away. Whether the device can be held to it.
    pub fn limit(&mut self, time: Option<Duration>) -> bool {
        self.meter.limit(time);
        self.device.facts().backend != "cuda"
    }

    /// Loads the kernel's module and checks that every launch names a symbol of it and passes what
    /// the symbol takes.
    ///
    /// # Errors
    /// [`RunError::Request`] for code that the device rejects, a missing symbol or arguments that
    /// do not fit; [`RunError::Unsupported`] for a kind of image that the device never runs.
    pub fn bind(&mut self, spec: &Spec) -> Result<(), RunError> {
        self.check_target(spec)?;
        self.check_memory(spec)?;
        let module = self.module(spec)?;
        for launch in &spec.launches {
            let place = |message: String| format!("{}: {message}", launch.source);
            let facts = self
                .device
                .kernel_facts(module, &launch.symbol)
                .map_err(|error| at_place(run_error(&error), place))?;
            if let Some(sizes) = facts.parameter_sizes {
                check_parameters(spec, launch, &sizes)
                    .map_err(|message| RunError::request(place(message)))?;
            }
        }
        Ok(())
    }

    /// Code for one architecture says nothing of a device of another that does not run it.
    fn check_target(&self, spec: &Spec) -> Result<(), RunError> {
        let (Some(module), facts) = (&spec.module, self.device.facts()) else { return Ok(()) };
        if module.runs_on(&facts.architecture) {
            return Ok(());
        }
        let (target, own) = (module.target.as_deref().unwrap_or_default(), &facts.architecture);
        Err(RunError::Unsupported {
            what: format!("module `{}` is compiled for {target}, the device is {own}", module.name),
        })
    }

    /// Refuses shapes before anybody builds inputs for them that no memory holds.
    fn check_memory(&self, spec: &Spec) -> Result<(), RunError> {
        let available = self.device.facts().memory_bytes;
        for dims in spec.served() {
            let mut bytes = 0u64;
            for argument in spec.arguments.iter().filter(|argument| argument.role.is_buffer()) {
                bytes = bytes.saturating_add(Layout::of(argument, &dims)?.bytes as u64);
            }
            if bytes > available {
                let (place, at) = (&spec.source, shown(&dims));
                let message = format!(
                    "{place}: the buffers take {bytes} bytes at {at}, the device's memory has \
                     {available}"
                );
                let hint = Some("serve smaller sizes, or use a larger device".to_owned());
                return Err(RunError::Request { message, hint });
            }
        }
        Ok(())
    }

    /// Runs every launch of `spec` once and waits for the end.
    ///
    /// # Errors
    /// See [`RunError`]; memory is given back in every case.
    pub fn run(&mut self, spec: &Spec, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        let module = self.module(spec)?;
        let memory = Memory::allocate(self.device, spec, request)?;
        let result = self.launch_all(module, spec, request, &memory);
        let freed = memory.free(self.device);
        let result = result?;
        freed?;
        Ok(result)
    }

    /// What the device says of one of the kernel's symbols, in blocks of so many threads and
    /// dynamic shared bytes.
    ///
    /// # Errors
    /// As [`Launcher::bind`].
    pub fn loaded(
        &mut self,
        spec: &Spec,
        symbol: &str,
        (threads, shared_bytes): (u32, u32),
    ) -> Result<Loaded, RunError> {
        let module = self.module(spec)?;
        let kernel = self.device.kernel_facts(module, symbol).map_err(|error| run_error(&error))?;
        let blocks = self.device.occupancy(module, symbol, threads, shared_bytes);
        Ok(Loaded { kernel, blocks: blocks.map_err(|error| run_error(&error))? })
    }

    fn launch_all(
        &mut self,
        module: ModuleId,
        spec: &Spec,
        request: &RunRequest<'_>,
        memory: &Memory,
    ) -> Result<RunResult, RunError> {
        let (mut lane_operations, mut printed) = (0, String::new());
        for launch in &spec.launches {
            let report = self.launch(module, spec, (launch, request), memory)?;
            lane_operations += report.lane_operations.unwrap_or(0);
            printed.push_str(&report.printed);
        }
        self.device.synchronize().map_err(|error| run_error(&error))?;
        let result = memory.collect(self.device, request)?;
        Ok(RunResult { lane_operations, printed, ..result })
    }

    pub(crate) fn launch(
        &mut self,
        module: ModuleId,
        spec: &Spec,
        (launch, request): (&LaunchSpec, &RunRequest<'_>),
        memory: &Memory,
    ) -> Result<LaunchReport, RunError> {
        let (_, packed) = packed(spec, launch, request, (module, memory))?;
        let own = packed.instruction_budget;
        let allowed = self.meter.allowed(own);
        let packed = Launch { symbol: &launch.symbol, instruction_budget: allowed, ..packed };
        if request.perturb > 0 {
            self.device.perturb(request.perturb).map_err(|error| run_error(&error))?;
        }
        let start = Instant::now();
        let result = self.device.launch(StreamId::DEFAULT, &packed);
        self.meter.take(&result, (allowed, own), start.elapsed())?;
        result.map_err(|error| {
            let error = explain_hang(run_error(&error), &error);
            at_place(error, |message| format!("{}: {message}", launch.source))
        })
    }

    pub(crate) fn module(&mut self, spec: &Spec) -> Result<ModuleId, RunError> {
        let module = module_of(spec)?;
        let key = format!("{}:{}", spec.source.file, module.path.display());
        if let Some(loaded) = self.modules.get(&key) {
            return Ok(*loaded);
        }
        let loaded = load(self.device, spec)?;
        self.modules.insert(key, loaded);
        Ok(loaded)
    }
}

impl Drop for Launcher<'_> {
    fn drop(&mut self) {
        for module in std::mem::take(&mut self.modules).into_values() {
            // A device that died has nothing left to unload.
            let _ = self.device.unload(module);
        }
    }
}

fn module_of(spec: &Spec) -> Result<&ModuleRef, RunError> {
    spec.module.as_deref().ok_or_else(|| RunError::Internal {
        message: format!("kernel {} has no module to launch from", spec.name),
    })
}

/// Loads a kernel's module.
pub(crate) fn load(device: &mut dyn Device, spec: &Spec) -> Result<ModuleId, RunError> {
    let image = image(module_of(spec)?).map_err(|what| RunError::Unsupported { what })?;
    device.load(&image).map_err(|error| run_error(&error))
}

/// A launch with every number worked out, beside the symbol that it lacks.
pub(crate) fn packed(
    spec: &Spec,
    launch: &LaunchSpec,
    request: &RunRequest<'_>,
    (module, memory): (ModuleId, &Memory),
) -> Result<(String, Launch<'static>), RunError> {
    let dims = request.dims;
    let packed = Launch {
        grid: sizes("grid", launch, &launch.grid, dims)?,
        block: sizes("block", launch, &launch.block, dims)?,
        cluster: sizes("cluster", launch, &launch.cluster, dims)?,
        cooperative: launch.cooperative,
        shared_bytes: number("shared", launch, &launch.shared, dims)?,
        arguments: pack(spec, launch, dims, memory)?,
        schedule: request.schedule,
        instruction_budget: budget(spec, launch, dims)?,
        ..Launch::new(module, "")
    };
    Ok((launch.symbol.clone(), packed))
}

/// The code that a device loads, or why there is none.
fn image(module: &ModuleRef) -> Result<Image, String> {
    let bytes = module.bytes.as_ref();
    Ok(match &module.kind {
        ModuleKind::Images => {
            return Err(format!(
                "module `{}` has images for gate 5 alone: give its `ptx`, `cubin` or `fatbin`",
                module.name
            ));
        }
        ModuleKind::Unbuilt(why) => return Err(why.clone()),
        ModuleKind::Ptx => {
            Image::ptx(module.path.display().to_string(), String::from_utf8_lossy(bytes))
        }
        ModuleKind::Cubin => Image::Cubin(bytes.clone()),
        ModuleKind::Fatbin => Image::Fatbin(bytes.clone()),
    })
}

/// The arguments of a launch, in the symbol's order.
fn pack(
    spec: &Spec,
    launch: &LaunchSpec,
    dims: &Dims,
    memory: &Memory,
) -> Result<Vec<Argument>, RunError> {
    let one = |name: &String| {
        let argument = spec.argument(name).ok_or_else(|| unknown_argument(launch, name))?;
        if argument.role.is_buffer() {
            let buffer = memory.buffer(name).ok_or_else(|| unknown_argument(launch, name))?;
            return Ok(Argument::Buffer(buffer));
        }
        scalar_bytes(argument, dims).map(Argument::Bytes)
    };
    launch.arguments.iter().map(one).collect()
}

fn unknown_argument(launch: &LaunchSpec, name: &str) -> RunError {
    RunError::request(format!("{}: no argument is called `{name}`", launch.source))
}

/// A scalar's or dim's bytes, little endian.
pub(crate) fn scalar_bytes(argument: &ArgumentSpec, dims: &Dims) -> Result<Vec<u8>, RunError> {
    let ArgumentSpec { name, format, .. } = argument;
    let bits = if argument.role == Role::Dim {
        let extent = argument.extent.clone().unwrap_or_else(|| Extent::dim(name));
        let value = extent
            .eval(dims)
            .map_err(|error| RunError::request(format!("argument `{name}`: {error}")))?;
        let bits = value as u64 & (u64::MAX >> (64 - format.bits()));
        if format.decode(bits) != value as f64 {
            let format = format.name();
            return Err(RunError::request(format!("argument `{name}`: {value} fits no {format}")));
        }
        bits
    } else {
        let value = argument.value.unwrap_or(0.0);
        format.encode(value, Rounding::NearestEven, Overflow::Infinity)
    };
    Ok(bits.to_le_bytes()[..format.storage_bytes(1)].to_vec())
}

fn check_parameters(spec: &Spec, launch: &LaunchSpec, sizes: &[usize]) -> Result<(), String> {
    let LaunchSpec { symbol, arguments, .. } = launch;
    if arguments.len() != sizes.len() {
        let (passed, taken) = (arguments.len(), sizes.len());
        return Err(format!("the launch passes {passed} arguments, `{symbol}` takes {taken}"));
    }
    for (name, size) in arguments.iter().zip(sizes) {
        let Some(argument) = spec.argument(name) else { continue };
        let bytes = if argument.role.is_buffer() { 8 } else { argument.format.storage_bytes(1) };
        if bytes != *size {
            return Err(format!(
                "argument `{name}` has {bytes} bytes, `{symbol}` takes {size} in its place"
            ));
        }
    }
    Ok(())
}

pub(crate) fn sizes(
    what: &str,
    launch: &LaunchSpec,
    extents: &[Extent; 3],
    dims: &Dims,
) -> Result<[u32; 3], RunError> {
    let mut all = [1; 3];
    for (size, extent) in all.iter_mut().zip(extents) {
        *size = number(what, launch, extent, dims)?;
    }
    Ok(all)
}

fn number(what: &str, launch: &LaunchSpec, extent: &Extent, dims: &Dims) -> Result<u32, RunError> {
    let fail =
        |why: String| RunError::request(format!("{}: {what} `{extent}`: {why}", launch.source));
    let value = extent.eval(dims).map_err(|error| fail(error.to_string()))?;
    u32::try_from(value).map_err(|_| fail(format!("{value} is no 32-bit count")))
}

/// Warp instructions after which a launch counts as never ending: far above what any kernel needs
/// that walks its buffers a few hundred times, and small enough to wait for.
fn budget(spec: &Spec, launch: &LaunchSpec, dims: &Dims) -> Result<u64, RunError> {
    const BASE: u64 = 4_000_000;
    const PER_ELEMENT: u64 = 200;
    const PER_WARP: u64 = 4_000;
    if let Some(budget) = &spec.budget {
        let value = budget.eval(dims).map_err(|e| RunError::request(format!("budget: {e}")))?;
        return Ok(u64::try_from(value).unwrap_or(0));
    }
    let count = |extents: &[Extent]| -> u64 {
        let sizes = extents.iter().map(|extent| extent.eval(dims).unwrap_or(1).max(1) as u64);
        sizes.fold(1, u64::saturating_mul)
    };
    let elements = spec.arguments.iter().map(|argument| count(&argument.shape));
    let elements = elements.fold(0, u64::saturating_add);
    let threads = count(&launch.grid).saturating_mul(count(&launch.block));
    let work = elements.saturating_mul(PER_ELEMENT);
    Ok(BASE.saturating_add(work).saturating_add((threads / 32).saturating_mul(PER_WARP)))
}

fn explain_hang(error: RunError, cause: &DeviceError) -> RunError {
    let hang = matches!(cause, DeviceError::Fault(fault) if fault.kind == FaultKind::Hang);
    match error {
        RunError::Fault { description, place, lost_device } if hang => RunError::Fault {
            description: format!(
                "{description} (a kernel that needs more states `budget`; `--budget N` allows N)"
            ),
            place,
            lost_device,
        },
        other => other,
    }
}

fn at_place(error: RunError, place: impl Fn(String) -> String) -> RunError {
    match error {
        RunError::Request { message, hint } => RunError::Request { message: place(message), hint },
        other => other,
    }
}

/// What a device's refusal means for the kernel.
pub(crate) fn run_error(error: &DeviceError) -> RunError {
    match error {
        DeviceError::Unsupported { what } => RunError::Unsupported { what: what.clone() },
        DeviceError::Fault(fault) => RunError::Fault {
            description: fault.description.clone(),
            place: fault.place.clone(),
            lost_device: fault.lost_context,
        },
        DeviceError::ModuleRejected { .. }
        | DeviceError::KernelNotFound { .. }
        | DeviceError::OutOfMemory { .. }
        | DeviceError::InvalidLaunch { .. }
        | DeviceError::InvalidRequest { .. } => {
            RunError::Request { message: error.to_string(), hint: error.hint() }
        }
        DeviceError::OutOfRange { .. } | DeviceError::UnknownHandle { .. } => {
            RunError::Internal { message: error.to_string() }
        }
        _ => RunError::Device { message: error.to_string() },
    }
}
