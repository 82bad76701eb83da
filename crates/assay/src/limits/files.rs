//! The files that were named, and the images in them.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use assay_image::{Contents, Entry};
use assay_record::ExitCode;

use crate::failure::Failure;

/// The largest file that is read.
const MOST_BYTES: u64 = 1 << 32;

/// One file and its images.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) entries: Vec<Entry>,
}

/// All that was named.
#[derive(Default)]
pub(crate) struct Inventory {
    pub(crate) files: Vec<File>,
}

impl Inventory {
    /// Reads a file.
    pub(crate) fn add(&mut self, path: &Path) -> Result<(), Failure> {
        let shown = path.display().to_string();
        let wrong = format!("cannot read images from {shown}");
        let bytes = bytes(path).map_err(|failure| failure.of(&wrong))?;
        let entries = assay_image::read(&bytes).map_err(|error| {
            let hint = "what is read: CUDA ELF images (cubins), fatbins, AMDGPU code objects, \
                        offload bundles, and ELF executables, libraries and object files of 64 \
                        bits that hold them";
            Failure::request(&wrong).caused_by(&error).hint(hint.to_owned())
        })?;
        self.files.push(File { path: shown, entries });
        Ok(())
    }

    fn contents(&self) -> impl Iterator<Item = &Contents> {
        self.files.iter().flat_map(|file| &file.entries).map(|entry| &entry.contents)
    }

    pub(crate) fn has_kernels(&self) -> bool {
        self.contents().any(|contents| match contents {
            Contents::Cuda(image) => !image.kernels.is_empty(),
            Contents::Hip(image) => !image.kernels.is_empty(),
            Contents::Ptx(_) | Contents::Skipped(_) => false,
        })
    }

    pub(crate) fn has_ptx(&self) -> bool {
        self.contents().any(|contents| matches!(contents, Contents::Ptx(_)))
    }

    /// What was found and has no kernels to read, each sort once.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = String> {
        let mut reasons: Vec<String> = self
            .contents()
            .filter_map(|contents| match contents {
                Contents::Skipped(skipped) => {
                    Some(format!("{} for {}", skipped.why, skipped.architecture))
                }
                _ => None,
            })
            .collect();
        reasons.sort();
        reasons.dedup();
        reasons.into_iter()
    }
}

/// Why a file cannot be read.
enum Unreadable {
    Io(std::io::Error),
    TooLarge,
}

impl Unreadable {
    fn of(self, message: &str) -> Failure {
        let failure = Failure::new(ExitCode::Request, message);
        match self {
            Unreadable::Io(error) => failure.caused_by(&error),
            Unreadable::TooLarge => failure.hint(format!(
                "it has more than {} GiB; name the images themselves",
                MOST_BYTES >> 30
            )),
        }
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let file = fs::File::open(path).map_err(Unreadable::Io)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(Unreadable::Io)?;
    if bytes.len() as u64 > MOST_BYTES { Err(Unreadable::TooLarge) } else { Ok(bytes) }
}
