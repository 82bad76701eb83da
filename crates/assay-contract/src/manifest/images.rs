//! `images = [...]` of a module: compiled files that gate 5 reads and no device loads.

use std::path::Path;
use std::sync::Arc;

use assay_image::{Contents, ImageError};
use assay_limits::MetalRecords;

use super::error::ManifestError;
use super::files::Files;
use super::reader::Entry;
use crate::limits::{Compiled, ImageFacts, Images, NamedImage};

/// Reads every file of the list.
pub(super) fn read_images(entry: &Entry<'_>, files: &dyn Files) -> Result<Compiled, ManifestError> {
    let mut images = Images::default();
    for entry in entry.list()? {
        read_file(&entry, files, &mut images)?;
    }
    if images.all.is_empty() {
        let error = entry.error("none of the `images` holds machine code");
        return Err(error.hint("PTX is code for no chip: add what it is compiled to"));
    }
    Ok(Compiled::Images(Arc::new(images)))
}

fn read_file(
    entry: &Entry<'_>,
    files: &dyn Files,
    images: &mut Images,
) -> Result<(), ManifestError> {
    let path = entry.text()?;
    let shown = files.shown(Path::new(path));
    let bytes = files.read(Path::new(path)).map_err(|error| {
        let message = format!("cannot read {}: {error}", shown.display());
        entry.error(message).hint("paths are relative to the manifest")
    })?;
    if Path::new(path).extension().is_some_and(|kind| kind == "json") {
        let text = String::from_utf8_lossy(&bytes);
        let records =
            MetalRecords::parse(&text, path).map_err(|error| entry.error(error.to_string()))?;
        let folder = Path::new(path).parent().unwrap_or(Path::new("")).to_owned();
        images.stale.extend(records.stale(&|source| files.read(&folder.join(source)).ok()));
        images.all.push(NamedImage { name: path.to_owned(), facts: ImageFacts::Metal(records) });
        return Ok(());
    }
    let found = named(path, &bytes).map_err(|error| {
        let error = entry.error(format!("{}: {error}", shown.display()));
        error.hint(
            "`images` are cubins, fatbins, AMDGPU code objects, files that hold them, and records \
             of Metal pipelines (`.json`)",
        )
    })?;
    images.all.extend(found);
    Ok(())
}

/// What one file says of a module's kernels.
pub(super) fn read_image(path: &str, bytes: &[u8]) -> Result<Compiled, ImageError> {
    let stale = Vec::new();
    named(path, bytes).map(|all| Compiled::Images(Arc::new(Images { all, stale })))
}

/// The machine code in a file, each piece with its place there.
fn named(path: &str, bytes: &[u8]) -> Result<Vec<NamedImage>, ImageError> {
    let named = |entry: assay_image::Entry| {
        let facts = match entry.contents {
            Contents::Cuda(image) => ImageFacts::Cuda(image),
            Contents::Hip(image) => ImageFacts::Hip(image),
            Contents::Ptx(_) | Contents::Skipped(_) => return None,
        };
        let place =
            if entry.place.is_empty() { String::new() } else { format!(" {}", entry.place) };
        Some(NamedImage { name: format!("{path}{place}"), facts })
    };
    Ok(assay_image::read(bytes)?.into_iter().filter_map(named).collect())
}
