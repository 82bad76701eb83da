//! The kernels of a run: the built-in suite, or manifests in its place, and always the controls.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use assay_contract::Kernel;
use assay_contract::fault::Fault;
use assay_contract::manifest::{
    EmbeddedFiles, Manifest, ManifestError, ManifestKernel, RecordedFiles, load_manifest_with,
    parse_manifest,
};
use assay_contract::spec::SourcePlace;
use assay_limits::Records;
use assay_record::ExitCode;

use crate::cli::CheckArguments;
use crate::console::Console;
use crate::failure::Failure;
use crate::triton::TritonFiles;

/// Every manifest, PTX file and source below `kernels/cuda/`, by its path from there.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/suite_files.rs"));

/// The manifest of the planted controls; every other one holds kernels of the suite.
const CONTROLS: &str = "controls.toml";

/// The kernels that can be run, and what is wrong with those that cannot.
pub(crate) struct Suite {
    kernels: Vec<ManifestKernel>,
    /// The kernels broken on purpose, of which nothing is built in but what they are.
    pub(crate) faults: Vec<Fault>,
    pub(crate) errors: Vec<ManifestError>,
}

impl Suite {
    /// The built-in kernels, or those of the manifests if there are any, and the built-in controls.
    pub(crate) fn load(manifests: &[PathBuf]) -> Suite {
        let mut suite = Suite { kernels: Vec::new(), faults: Vec::new(), errors: Vec::new() };
        let mut places = BTreeMap::new();
        let own: Vec<Manifest> = if manifests.is_empty() {
            built_in().map(embedded).collect()
        } else {
            manifests
                .iter()
                .map(|path| load_manifest_with(path, &TritonFiles::around(path)))
                .collect()
        };
        for manifest in own.into_iter().chain([embedded(CONTROLS)]) {
            suite.add(manifest, &mut places);
        }
        // A kernel that is no longer there has no faults either.
        suite.faults.retain(|fault| places.contains_key(&fault.of));
        suite
    }

    fn add(&mut self, manifest: Manifest, places: &mut BTreeMap<String, SourcePlace>) {
        self.errors.extend(manifest.errors);
        for kernel in manifest.kernels {
            let (name, place) = (kernel.spec().name.clone(), kernel.spec().source.clone());
            if let Some(first) = places.get(&name) {
                self.errors.push(twice(&name, place, first));
            } else {
                places.insert(name, place);
                self.kernels.push(kernel);
            }
        }
        for fault in manifest.faults {
            let (name, place) = (fault.spec.name.clone(), fault.spec.source.clone());
            if let Some(first) = places.get(&name) {
                self.errors.push(twice(&name, place, first));
            } else {
                places.insert(name, place);
                self.faults.push(fault);
            }
        }
    }

    /// Says what is wrong with the manifests, and what a run that goes on without them comes to.
    pub(crate) fn tell_errors(&self, console: Console) -> ExitCode {
        for error in &self.errors {
            let text = format!("error: {error}\n\n").replace("\nhint: ", "\n\nhint: ");
            console.message(&text);
        }
        if self.errors.is_empty() { ExitCode::Holds } else { ExitCode::Request }
    }

    /// The faults, where a run asks for them.
    pub(crate) fn faults_asked_for(&self, arguments: &CheckArguments) -> &[Fault] {
        if arguments.faults.is_some() { &self.faults } else { &[] }
    }

    /// The kernel of a name, taken out of the suite.
    pub(crate) fn take(&mut self, name: &str) -> Option<ManifestKernel> {
        let place = self.kernels.iter().position(|kernel| kernel.spec().name == name)?;
        Some(self.kernels.remove(place))
    }

    /// The kernel of a name, or what is wrong with it.
    pub(crate) fn kernel(&mut self, name: &str) -> Result<ManifestKernel, Failure> {
        if let Some(kernel) = self.take(name) {
            return Ok(kernel);
        }
        let mistake = self.errors.iter().find(|error| error.kernel.as_deref() == Some(name));
        Err(match mistake {
            Some(error) => Failure::request(format!("`{name}` cannot be run: {error}")),
            None => Failure::request(format!("there is no kernel `{name}`"))
                .hint(format!("the kernels are {}", self.names().join(", "))),
        })
    }

    /// The names of all kernels that are no controls.
    pub(crate) fn names(&self) -> Vec<&str> {
        let own = self.kernels.iter().map(Kernel::spec).filter(|spec| !spec.is_control());
        own.map(|spec| spec.name.as_str()).collect()
    }

    /// The kernels as the run takes them.
    pub(crate) fn kernels(&self) -> Vec<&dyn Kernel> {
        self.kernels.iter().map(|kernel| kernel as &dyn Kernel).collect()
    }
}

/// The built-in manifests of kernels, in the order of their names.
fn built_in() -> impl Iterator<Item = &'static str> {
    let manifest = |name: &&str| name.strip_suffix(".toml").is_some() && *name != CONTROLS;
    FILES.iter().map(|(name, _)| *name).filter(manifest)
}

fn twice(name: &str, place: SourcePlace, first: &SourcePlace) -> ManifestError {
    ManifestError {
        kernel: Some(name.to_owned()),
        place,
        source_line: String::new().into(),
        message: format!("a kernel of this name is registered already, at {first}"),
        hint: Some("names must be unique in a run, the built-in controls' included".to_owned()),
    }
}

fn embedded(name: &str) -> Manifest {
    let found = FILES.iter().find(|(file, _)| *file == name);
    let text = found.map_or("".into(), |(_, bytes)| String::from_utf8_lossy(bytes));
    parse_manifest(name, &text, &RecordedFiles::new(EmbeddedFiles(FILES), records()))
}

/// What compilers made of the suite, read once. A test reads it too, so that it can be read.
fn records() -> Arc<Records> {
    static RECORDS: OnceLock<Arc<Records>> = OnceLock::new();
    Arc::clone(RECORDS.get_or_init(|| Arc::new(Records::built_in().unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_suite_loads_without_an_error() {
        let suite = Suite::load(&[]);
        let errors: Vec<String> = suite.errors.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let (controls, kernels): (Vec<_>, Vec<_>) =
            suite.kernels().into_iter().partition(|kernel| kernel.spec().is_control());
        assert!(kernels.len() >= 10 && controls.len() >= 10);
    }

    #[test]
    fn every_gate_has_a_planted_control() {
        let suite = Suite::load(&[]);
        for gate in assay_contract::run::GATES {
            let guards = |kernel: &&dyn Kernel| kernel.spec().control_for == Some(gate);
            assert!(suite.kernels().iter().any(guards), "{gate} has no control");
        }
    }
}
