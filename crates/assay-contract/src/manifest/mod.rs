//! Manifests: kernels of any engine, in any language, registered by a TOML file.
//!
//! Loading is partial: each kernel that cannot be read gives one error with its place, and the
//! others still load.

mod arguments;
mod check;
mod contract;
mod error;
mod fault;
mod files;
mod formula;
mod images;
mod kernel;
mod module;
mod reader;
mod stamps;
mod triton;

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeTable;

pub use error::ManifestError;
pub use files::{DiskFiles, EmbeddedFiles, Files, RecordedFiles};

use crate::fault::Fault;
use crate::kernel::Kernel;
use crate::spec::{SourcePlace, Spec};
use error::Source;
use module::Module;
use reader::Table;

/// The version of the manifest format that this build reads.
pub const SCHEMA: i64 = 1;

const KEYS: [&str; 4] = ["schema", "module", "kernel", "fault"];

/// A kernel registered by a manifest: everything it does follows from its spec.
#[derive(Debug)]
pub struct ManifestKernel {
    spec: Spec,
}

impl ManifestKernel {
    /// A kernel that is what `spec` says.
    pub fn new(spec: Spec) -> ManifestKernel {
        ManifestKernel { spec }
    }

    /// The contract alone.
    pub fn into_spec(self) -> Spec {
        self.spec
    }
}

impl Kernel for ManifestKernel {
    fn spec(&self) -> &Spec {
        &self.spec
    }
}

/// What a manifest holds.
#[derive(Debug, Default)]
pub struct Manifest {
    /// The kernels that can be run, in the order written.
    pub kernels: Vec<ManifestKernel>,
    /// The kernels broken on purpose, in the order written.
    pub faults: Vec<Fault>,
    /// What is wrong with the others, in the order written.
    pub errors: Vec<ManifestError>,
}

/// Loads a manifest and the modules it names from disk.
pub fn load_manifest(path: &Path) -> Manifest {
    let folder = path.parent().unwrap_or(Path::new(""));
    load_manifest_with(path, &DiskFiles::new(folder))
}

/// Loads a manifest from disk; `files` finds and compiles what it names.
pub fn load_manifest_with(path: &Path, files: &dyn Files) -> Manifest {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse_manifest(&file, &text, files),
        Err(error) => Manifest { errors: vec![unreadable(file, &error)], ..Manifest::default() },
    }
}

fn unreadable(file: String, error: &std::io::Error) -> ManifestError {
    ManifestError {
        kernel: None,
        place: SourcePlace { file, line: 0, column: 0 },
        source_line: Box::default(),
        message: format!("cannot read the manifest: {error}"),
        hint: Some("give the path of a TOML file with [kernel.*] tables".to_owned()),
    }
}

/// Reads a manifest's text; `file` names it in messages.
pub fn parse_manifest(file: &str, text: &str, files: &dyn Files) -> Manifest {
    let source = Source { file, text };
    let (table, syntax) = DeTable::parse_recoverable(text);
    let mut manifest = Manifest::default();
    for error in &syntax {
        let span = error.span().unwrap_or(0..0);
        manifest.errors.push(source.error(&span, format!("no TOML: {}", error.message())));
    }
    if manifest.errors.is_empty() {
        read_root(&Table::root(&source, &table), files, &mut manifest);
    }
    manifest
}

fn read_root(root: &Table<'_>, files: &dyn Files, manifest: &mut Manifest) {
    if let Err(error) = check_root(root) {
        manifest.errors.push(error);
        return;
    }
    let modules = read_modules(root, files);
    for (name, span, entry) in root.get("kernel").map(|e| children(&e)).unwrap_or_default() {
        let place = entry.source.place(span.start);
        match kernel::read_kernel(name, &place, &entry, &modules) {
            Ok(kernels) => {
                let specs = kernels.specs.into_iter();
                manifest.kernels.extend(specs.map(|spec| ManifestKernel { spec }));
                let errors = kernels.errors.into_iter();
                manifest.errors.extend(errors.map(|error| error.of_kernel(name)));
            }
            Err(error) => manifest.errors.push(error.of_kernel(name)),
        }
    }
    read_faults(root, manifest);
    let reported: Vec<SourcePlace> = manifest.errors.iter().map(|e| e.place.clone()).collect();
    let unused = modules.into_values().flat_map(|module| match module {
        Ok(Module::Triton(module, _)) => module.errors.clone(),
        Ok(Module::Code(_)) => Vec::new(),
        Ok(Module::Broken(error)) | Err(error) => vec![error],
    });
    manifest.errors.extend(unused.filter(|error| !reported.contains(&error.place)));
}

/// Faults are read after all kernels, since they may stand before their kernel.
fn read_faults(root: &Table<'_>, manifest: &mut Manifest) {
    let around = fault::Around { root, kernels: &manifest.kernels };
    for (name, span, entry) in root.get("fault").map(|e| children(&e)).unwrap_or_default() {
        match fault::read_fault((name, &span), &entry, &around) {
            Ok(faults) => manifest.faults.extend(faults),
            Err(error) => manifest.errors.push(error.of_fault(name)),
        }
    }
}

fn check_root(root: &Table<'_>) -> Result<(), ManifestError> {
    root.refuse_unknown(&KEYS)?;
    let schema = root.need("schema").map_err(|error| error.hint("write `schema = 1`"))?;
    let version = schema.integer()?;
    if version != SCHEMA {
        let message = format!("schema {version} is unknown; this build reads schema {SCHEMA}");
        return Err(schema.error(message).hint("a newer Assay may read it"));
    }
    for section in ["module", "kernel", "fault"] {
        if let Some(entry) = root.get(section) {
            entry.any_table()?;
        }
    }
    if root.get("kernel").is_none() {
        return Err(root
            .entry
            .error("the manifest registers no kernel")
            .hint("add a [kernel.<name>] table"));
    }
    Ok(())
}

type Modules = BTreeMap<String, Result<Module, ManifestError>>;

fn read_modules(root: &Table<'_>, files: &dyn Files) -> Modules {
    let modules = root.get("module").map(|entry| children(&entry)).unwrap_or_default();
    let read = |(name, _, entry): (&str, _, reader::Entry<'_>)| {
        (name.to_owned(), module::read_module(name, &entry, files))
    };
    modules.into_iter().map(read).collect()
}

type Child<'t> = (&'t str, std::ops::Range<usize>, reader::Entry<'t>);

/// The tables of a section; messages name the kernel already, so paths start below it.
fn children<'t>(section: &reader::Entry<'t>) -> Vec<Child<'t>> {
    let mut rows = section.any_table().map(|table| table.named()).unwrap_or_default();
    for (_, _, entry) in &mut rows {
        entry.path.clear();
    }
    rows
}
