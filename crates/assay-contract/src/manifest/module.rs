//! `[module.*]` tables: compiled code, the source it came from, and what gate 5 may know of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_limits::Records;

use super::error::ManifestError;
use super::files::{Files, recorded};
use super::images::{read_image, read_images};
use super::kernel::read_chips;
use super::reader::{Entry, Table};
use super::triton::{TritonModule, read_triton};
use crate::limits::Compiled;
use crate::spec::{ModuleKind, ModuleRef};

const KEYS: [&str; 8] = ["cuda", "ptx", "cubin", "fatbin", "triton", "images", "records", "chips"];
const LATER: [&str; 3] = ["hsaco", "metal", "metallib"];
/// What says of a module what a Triton source says itself.
const NOT_OF_TRITON: [&str; 6] = ["cuda", "ptx", "cubin", "fatbin", "images", "records"];
const COMPILED: [(&str, ModuleKind); 3] =
    [("ptx", ModuleKind::Ptx), ("cubin", ModuleKind::Cubin), ("fatbin", ModuleKind::Fatbin)];

/// What kernels are taken from.
#[derive(Debug, Clone)]
pub(super) enum Module {
    /// Compiled code.
    Code(Arc<ModuleRef>),
    /// A Triton source, compiled for its targets, and the chips that its kernels are launched on.
    Triton(Arc<TritonModule>, Vec<String>),
    /// The entry of a Triton source with a mistake in it.
    Broken(ManifestError),
}

/// Reads one module and its files.
pub(super) fn read_module(
    name: &str,
    entry: &Entry<'_>,
    files: &dyn Files,
) -> Result<Module, ManifestError> {
    let table = entry.any_table()?;
    if let Some((key, span, _)) = table.named().into_iter().find(|(key, ..)| LATER.contains(key)) {
        let error = entry.source.error(&span, format!("module kind `{key}` is not read yet"));
        return Err(error.hint("give `ptx`, `cubin` or `fatbin`, or `images` for gate 5 alone"));
    }
    table.refuse_unknown(&KEYS)?;
    if let Some(triton) = table.get("triton") {
        if let Some(entry) = NOT_OF_TRITON.iter().find_map(|key| table.get(key)) {
            let message = format!("a module with `triton` has no `{}`", entry.path);
            let error = entry.error(message).hint("Triton compiles the source for each target");
            return Ok(Module::Broken(error));
        }
        let chips = table.get("chips").map(|chips| read_chips(&chips)).transpose()?;
        return Ok(match read_triton(name, &triton, files) {
            Ok(module) => Module::Triton(Arc::new(module), chips.unwrap_or_default()),
            Err(error) => Module::Broken(error),
        });
    }
    let source = table.get("cuda").map(|cuda| cuda.text().map(PathBuf::from)).transpose()?;
    let mut module = code(name, (entry, &table), source, files)?;
    module.compiled = compiled(&table, &module, files)?;
    if let Some(chips) = table.get("chips") {
        module.chips = read_chips(&chips)?;
    }
    Ok(Module::Code(Arc::new(module)))
}

/// The code that a device loads; none where the module only has images.
fn code(
    name: &str,
    (entry, table): (&Entry<'_>, &Table<'_>),
    source: Option<PathBuf>,
    files: &dyn Files,
) -> Result<ModuleRef, ManifestError> {
    for (key, kind) in COMPILED {
        if let Some(path) = table.get(key) {
            return load(name, kind, &path, source, files);
        }
    }
    let Some(images) = table.get("images") else {
        return Err(nothing_compiled(entry, source.as_deref()));
    };
    let first = images.list()?.first().map(Entry::text).transpose()?.map(PathBuf::from);
    Ok(module(name, ModuleKind::Images, first.unwrap_or_default(), Vec::new(), source))
}

fn module(
    name: &str,
    kind: ModuleKind,
    path: PathBuf,
    bytes: Vec<u8>,
    source: Option<PathBuf>,
) -> ModuleRef {
    let (name, bytes) = (name.to_owned(), Arc::new(bytes));
    let (compiled, chips, target) = (Compiled::Unknown, Vec::new(), None);
    ModuleRef { name, kind, path, bytes, source, compiled, chips, target }
}

fn load(
    name: &str,
    kind: ModuleKind,
    entry: &Entry<'_>,
    source: Option<PathBuf>,
    files: &dyn Files,
) -> Result<ModuleRef, ManifestError> {
    let path = Path::new(entry.text()?);
    let shown = files.shown(path);
    let bytes = files.read(path).map_err(|error| {
        let message = format!("module `{name}`: cannot read {}: {error}", shown.display());
        entry.error(message).hint("paths are relative to the manifest")
    })?;
    if kind == ModuleKind::Ptx && std::str::from_utf8(&bytes).is_err() {
        let message = format!("module `{name}`: {} is no text", shown.display());
        return Err(entry.error(message).hint("give compiled images as `cubin` or `fatbin`"));
    }
    Ok(module(name, kind, path.to_owned(), bytes, source))
}

/// What compilers made of the module: the images named, or records, or its own machine code.
fn compiled(
    table: &Table<'_>,
    module: &ModuleRef,
    files: &dyn Files,
) -> Result<Compiled, ManifestError> {
    if let Some(images) = table.get("images") {
        return read_images(&images, files);
    }
    if let Some(entry) = table.get("records") {
        let Some(source) = &module.source else {
            return Err(entry.error("`records` needs `cuda`, the source that they are of"));
        };
        let records = read_records(&entry, files)?;
        return Ok(recorded(&Arc::new(records), source, files));
    }
    match (&module.kind, &module.source) {
        (ModuleKind::Ptx, Some(source)) => Ok(files.recorded(source)),
        (ModuleKind::Cubin | ModuleKind::Fatbin, _) => {
            Ok(read_image(&module.path.display().to_string(), &module.bytes).unwrap_or_else(
                |error| Compiled::Unreadable(format!("{}: {error}", module.path.display())),
            ))
        }
        _ => Ok(Compiled::Unknown),
    }
}

fn read_records(entry: &Entry<'_>, files: &dyn Files) -> Result<Records, ManifestError> {
    let path = entry.text()?;
    let shown = files.shown(Path::new(path));
    let bytes = files
        .read(Path::new(path))
        .map_err(|error| entry.error(format!("cannot read {}: {error}", shown.display())))?;
    let text = String::from_utf8_lossy(&bytes);
    Records::read([(path, text.as_ref())]).map_err(|error| entry.error(error.to_string()))
}

fn nothing_compiled(entry: &Entry<'_>, source: Option<&Path>) -> ManifestError {
    let Some(source) = source else {
        return entry.error("a module needs `ptx`, `cubin`, `fatbin` or `triton`");
    };
    let ptx = source.with_extension("ptx");
    let (source, ptx) = (source.display(), ptx.display());
    entry.error(format!("{source} is source only; Assay runs compiled code")).hint(format!(
        "compile it with `nvcc -arch=compute_80 -ptx -O3 {source} -o {ptx}` and add ptx = \"{ptx}\""
    ))
}
