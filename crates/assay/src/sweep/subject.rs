//! A manifest's kernel under a sweep: each configuration checked in a process of its own, then
//! timed in this one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_contract::manifest::parse_manifest;
use assay_contract::run::GATES_THAT_RUN;
use assay_contract::{CheckOptions, Kernel as _, ManifestKernel, Prepared};
use assay_device::{Device, DeviceError, StreamId};
use assay_measure::sweep::{Gate, Subject};
use assay_measure::{Cache, Plan, Stopwatch};
use assay_record::{Checked, Configuration, KernelResult, Outcome};
use assay_reference::Dims;
use clap::Parser as _;

use super::file::{SweepFile, filled};
use crate::cli::{Cli, Command};
use crate::parent::{self, Children};
use crate::triton::TritonFiles;

/// Configurations whose buffers are kept at a time.
const MOST_READY: usize = 16;

/// What a sweep works on.
pub(super) struct Swept<'a> {
    pub(super) file: &'a SweepFile,
    pub(super) device: &'a mut dyn Device,
    /// The device's name, for the processes that check.
    pub(super) name: &'a str,
    /// `None` on a device with no clock: instructions are counted there.
    pub(super) stopwatch: Option<Stopwatch>,
    pub(super) seed: u64,
    pub(super) warm: bool,
    /// The kernels that are ready to be launched, the one used last at the end.
    ready: Vec<(Configuration, Prepared)>,
}

/// A manifest that lasts as long as its process.
struct Written(PathBuf);

impl Drop for Written {
    fn drop(&mut self) {
        // Nothing depends on it being gone.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl<'a> Swept<'a> {
    pub(super) fn new(
        file: &'a SweepFile,
        device: &'a mut dyn Device,
        name: &'a str,
        stopwatch: Option<Stopwatch>,
    ) -> Swept<'a> {
        Swept { file, device, name, stopwatch, seed: 1, warm: false, ready: Vec::new() }
    }

    /// The kernel of a configuration, or why there is none.
    pub(super) fn kernel(&self, configuration: &Configuration) -> Result<ManifestKernel, String> {
        let text = filled(&self.file.template, configuration)?;
        let path = &self.file.manifest;
        let shown = path.display().to_string();
        let mut manifest = parse_manifest(&shown, &text, &TritonFiles::around(path));
        let wanted = &self.file.kernel;
        let of_kernel = |e: &&assay_contract::ManifestError| {
            e.kernel.as_ref().is_none_or(|kernel| kernel == wanted)
        };
        if let Some(error) = manifest.errors.iter().find(of_kernel) {
            return Err(error.to_string());
        }
        let found = manifest.kernels.iter().position(|kernel| kernel.spec().name == *wanted);
        found
            .map(|at| manifest.kernels.swap_remove(at))
            .ok_or_else(|| format!("{shown} has no kernel `{wanted}`"))
    }

    /// The sizes to time at: those asked for in the largest served shape.
    pub(super) fn dims(&self, kernel: &ManifestKernel) -> Result<Dims, String> {
        let spec = kernel.spec();
        let volume = |dims: &Dims| {
            dims.values().fold(1i128, |all, size| all.saturating_mul(i128::from(*size)))
        };
        let mut dims = spec.served().into_iter().max_by_key(volume).unwrap_or_default();
        for (name, size) in &self.file.dims {
            match spec.dims.get(name) {
                Some(dim) if dim.allows(*size) => dims.insert(name.clone(), *size),
                Some(_) => return Err(format!("`{}` does not serve {name}={size}", spec.name)),
                None => return Err(format!("`{}` has no dim `{name}`", spec.name)),
            };
        }
        Ok(dims)
    }

    /// Writes a configuration's manifest beside the template, whose paths it shares.
    fn written(&self, configuration: &Configuration) -> Result<Written, String> {
        let text = filled(&self.file.template, configuration)?;
        let folder = self.file.manifest.parent().unwrap_or(Path::new(""));
        let path = folder.join(format!(".assay-sweep-{}.toml", std::process::id()));
        std::fs::write(&path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Written(path))
    }

    /// A configuration's result at every gate that runs kernels, each in a process of its own.
    fn checked(&self, configuration: &Configuration) -> Result<KernelResult, String> {
        let manifest = self.written(configuration)?;
        let path = manifest.0.to_string_lossy().into_owned();
        let typed = ["assay", "check", "--device", self.name, "--manifest", &path];
        let Ok(Cli { command: Command::Check(arguments) }) = Cli::try_parse_from(typed) else {
            return Err(format!("the device's name `{}` cannot be passed on", self.name));
        };
        let children = Children::new(&arguments).map_err(|failure| failure.to_string())?;
        let options = CheckOptions { seed: self.seed, ..CheckOptions::default() };
        let judged = GATES_THAT_RUN.into_iter().map(|gate| {
            let request = parent::request(&self.file.kernel, gate, &options, &arguments);
            children.judge(&request, None)
        });
        let merged = judged.fold(Vec::new(), parent::merge);
        let mut first = merged.into_iter().next().ok_or("no gate judged it")?.result;
        // The manifest that was written is gone when somebody reads this.
        let name = self.file.manifest.file_name().unwrap_or_default();
        let shown = name.to_string_lossy();
        first.error = first.error.map(|error| error.replace(&path, &shown));
        Ok(first)
    }

    /// Makes a configuration the last of those that are ready.
    fn make_ready(&mut self, configuration: &Configuration) -> Result<(), String> {
        if let Some(at) = self.ready.iter().position(|(known, _)| known == configuration) {
            let last = self.ready.remove(at);
            self.ready.push(last);
            return Ok(());
        }
        if self.ready.len() >= MOST_READY {
            self.free_oldest()?;
        }
        let kernel = self.kernel(configuration)?;
        let dims = self.dims(&kernel)?;
        let prepared = loop {
            match Prepared::new(self.device, &kernel, &dims, self.seed) {
                Ok(prepared) => break prepared,
                // It may be the memory of the others that it lacks.
                Err(_) if !self.ready.is_empty() => self.free_oldest()?,
                Err(error) => return Err(error.to_string()),
            }
        };
        self.ready.push((configuration.clone(), prepared));
        Ok(())
    }

    fn free_oldest(&mut self) -> Result<(), String> {
        let (_, oldest) = self.ready.remove(0);
        oldest.free(self.device).map_err(|error| error.to_string())
    }

    /// Gives everything back. A lost device has nothing left to give.
    pub(super) fn free(self) {
        let Swept { device, stopwatch, ready, .. } = self;
        for (_, prepared) in ready {
            let _ = prepared.free(device);
        }
        if let Some(stopwatch) = stopwatch {
            let _ = stopwatch.free(device);
        }
    }
}

impl Subject for Swept<'_> {
    fn gate(&mut self, configuration: &Configuration) -> Result<Gate, String> {
        if let Err(why) = self.kernel(configuration).and_then(|kernel| self.dims(&kernel)) {
            return Ok(Gate::Refused(why));
        }
        let result = self.checked(configuration)?;
        if let Some(error) = &result.error {
            return Ok(Gate::Refused(error.clone()));
        }
        let unsupported = result.gates.iter().find(|gate| gate.outcome == Outcome::Unsupported);
        if let Some(gate) = unsupported {
            return Ok(Gate::Refused(gate.reason.clone()));
        }
        Ok(match Checked::of(&result) {
            Ok(_) => Gate::Right,
            Err(error) => Gate::Wrong(error.reason),
        })
    }

    fn time(&mut self, configuration: &Configuration, samples: u32) -> Result<Vec<f64>, String> {
        self.make_ready(configuration)?;
        let Swept { device, stopwatch, ready, .. } = self;
        let Some((_, prepared)) = ready.last() else { return Ok(Vec::new()) };
        let Some(stopwatch) = stopwatch else { return counted(*device, prepared, samples) };
        let samples = samples.max(2);
        let plan = Plan {
            cache: if self.warm { Cache::Warm } else { Cache::Cold },
            least_samples: samples,
            most_samples: samples,
            seed: self.seed,
            ..Plan::default()
        };
        let mut work = |device: &mut dyn Device, stream: StreamId| prepared.launch(device, stream);
        let taken = stopwatch.measure(*device, &plan, &mut work);
        taken.map(|taken| taken.duration_ns).map_err(|error| error.to_string())
    }
}

/// Instructions of warps of one run, for each sample: a device that counts them has no noise.
fn counted(device: &mut dyn Device, prepared: &Prepared, samples: u32) -> Result<Vec<f64>, String> {
    let count = prepared.count(device).map_err(|error: DeviceError| error.to_string())?;
    Ok(vec![count as f64; samples as usize])
}

/// What a cached row must share: the file, the manifest, and every compiled module.
pub(super) fn source(swept: &Swept<'_>, configurations: &[Configuration]) -> String {
    let mut modules: BTreeMap<PathBuf, std::sync::Arc<Vec<u8>>> = BTreeMap::new();
    for kernel in configurations.iter().filter_map(|c| swept.kernel(c).ok()) {
        if let Some(module) = &kernel.spec().module {
            modules.insert(module.path.clone(), std::sync::Arc::clone(&module.bytes));
        }
    }
    let mut source = swept.file.text.clone() + "\0" + &swept.file.template;
    for bytes in modules.values() {
        source.push('\0');
        source.push_str(&String::from_utf8_lossy(bytes));
    }
    source
}
