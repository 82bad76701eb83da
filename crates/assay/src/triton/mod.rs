//! Triton sources in manifests: compiled ahead of time, with no GPU, where Triton is installed.
//!
//! A child process compiles ([`child`]), a cache keeps what it made ([`cache`]), and a machine
//! without Triton is a reason to skip a kernel, never to pass it ([`find`]).

mod cache;
mod child;
mod find;

use std::io;
use std::path::{Path, PathBuf};

use assay_contract::manifest::{DiskFiles, Files};
use assay_contract::triton::{TritonBuilds, TritonFailure, TritonSource};

use cache::Cache;
use child::{Answer, Job};
pub(crate) use find::{HINT, Triton};

/// Files below a folder, of which Triton sources can be compiled.
pub(crate) struct TritonFiles {
    folder: PathBuf,
    files: DiskFiles,
}

impl TritonFiles {
    /// The files around a manifest.
    pub(crate) fn around(manifest: &Path) -> TritonFiles {
        let folder = manifest.parent().unwrap_or(Path::new("")).to_owned();
        TritonFiles { files: DiskFiles::new(folder.clone()), folder }
    }
}

impl Files for TritonFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn shown(&self, path: &Path) -> PathBuf {
        self.files.shown(path)
    }

    fn triton(&self, source: &TritonSource) -> TritonBuilds {
        match builds(source, &self.folder) {
            Ok(builds) => builds,
            Err(what) => {
                let missing = || Err(TritonFailure::Missing { what: what.clone() });
                source.targets.iter().map(|target| (*target, missing())).collect()
            }
        }
    }
}

/// The builds, from the cache as far as they are there.
fn builds(source: &TritonSource, folder: &Path) -> Result<TritonBuilds, String> {
    let triton = Triton::find()?;
    let cache = Cache::open()?;
    let file = folder.join(&source.file);
    let file = std::path::absolute(&file).unwrap_or(file);
    let jobs = source.targets.iter().map(|target| Job::new(source, &file, *target));
    let jobs: Vec<Job> = jobs.collect();
    let wanted: Vec<Job> =
        jobs.iter().filter(|job| cache.get(job, triton).is_none()).cloned().collect();
    let answers =
        if wanted.is_empty() { Vec::new() } else { child::compile(triton, &cache, &wanted)? };
    let mut builds = TritonBuilds::new();
    for job in &jobs {
        let failed = answers.iter().find_map(|answer| match answer {
            (name, Answer::Failed { message, hint }) if *name == job.name => {
                Some(TritonFailure::Refused { message: message.clone(), hint: hint.clone() })
            }
            _ => None,
        });
        let build = match failed {
            Some(failure) => Err(failure),
            None => cache.get(job, triton).ok_or_else(|| TritonFailure::Missing {
                what: format!("what it made was not found again in {}", cache.shown()),
            }),
        };
        builds.push((job.target, build));
    }
    Ok(builds)
}
