//! `[module.*]` tables: compiled code and the source it came from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::ManifestError;
use super::files::Files;
use super::reader::Entry;
use crate::spec::{ModuleKind, ModuleRef};

const KEYS: [&str; 4] = ["cuda", "ptx", "cubin", "fatbin"];
const LATER: [&str; 4] = ["hsaco", "metal", "metallib", "triton"];
const COMPILED: [(&str, ModuleKind); 3] =
    [("ptx", ModuleKind::Ptx), ("cubin", ModuleKind::Cubin), ("fatbin", ModuleKind::Fatbin)];

/// Reads one module and its file.
pub(super) fn read_module(
    name: &str,
    entry: &Entry<'_>,
    files: &dyn Files,
) -> Result<Arc<ModuleRef>, ManifestError> {
    let table = entry.any_table()?;
    if let Some((key, span, _)) = table.named().into_iter().find(|(key, ..)| LATER.contains(key)) {
        let error = entry.source.error(&span, format!("module kind `{key}` is not read yet"));
        return Err(error.hint("give `ptx`, `cubin` or `fatbin`"));
    }
    table.refuse_unknown(&KEYS)?;
    let source = table.get("cuda").map(|cuda| cuda.text().map(PathBuf::from)).transpose()?;
    for (key, kind) in COMPILED {
        if let Some(path) = table.get(key) {
            return load(name, kind, &path, source, files);
        }
    }
    Err(nothing_compiled(entry, source.as_deref()))
}

fn load(
    name: &str,
    kind: ModuleKind,
    entry: &Entry<'_>,
    source: Option<PathBuf>,
    files: &dyn Files,
) -> Result<Arc<ModuleRef>, ManifestError> {
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
    Ok(Arc::new(ModuleRef {
        name: name.to_owned(),
        kind,
        path: path.to_owned(),
        bytes: Arc::new(bytes),
        source,
    }))
}

fn nothing_compiled(entry: &Entry<'_>, source: Option<&Path>) -> ManifestError {
    let Some(source) = source else {
        return entry.error("a module needs `ptx`, `cubin` or `fatbin`");
    };
    let ptx = source.with_extension("ptx");
    let (source, ptx) = (source.display(), ptx.display());
    entry.error(format!("{source} is source only; Assay runs compiled code")).hint(format!(
        "compile it with `nvcc -arch=compute_80 -ptx -O3 {source} -o {ptx}` and add ptx = \"{ptx}\""
    ))
}
