//! What Triton made, kept by a digest of everything that decides it.
//!
//! `$ASSAY_CACHE`, or `assay` in the user's cache folder, holds one folder a build: PTX, machine
//! code, facts, and the digests of all Python files that the source imports from around itself.
//! Where one of those has changed, the build counts as absent.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use assay_contract::limits::{Compiled, ImageFacts, Images, NamedImage};
use assay_contract::triton::TritonBuild;
use assay_image::Contents;
use assay_limits::{Digest, SourceText};
use serde::{Deserialize, Serialize};

use super::child::{Facts, Job, SCRIPT};
use super::find::Triton;

/// The folder of all builds.
pub(super) struct Cache {
    root: PathBuf,
}

/// What is kept of a build besides its code.
#[derive(Serialize, Deserialize)]
struct Kept {
    facts: Facts,
    sources: Vec<(String, Digest)>,
}

/// A folder that is gone when its owner is.
pub(super) struct Workplace(PathBuf);

impl Workplace {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Cache {
    /// The cache of this user, made if need be.
    pub(super) fn open() -> Result<Cache, String> {
        let root = root().join("triton");
        match fs::create_dir_all(&root) {
            Ok(()) => Ok(Cache { root }),
            Err(error) => {
                let shown = root.display();
                Err(format!("cannot write {shown} ({error}): set ASSAY_CACHE to another folder"))
            }
        }
    }

    pub(super) fn shown(&self) -> String {
        self.root.display().to_string()
    }

    /// A new, empty folder.
    pub(super) fn workplace(&self) -> Result<Workplace, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.root.join(format!("new-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(|error| self.unwritable(&error))?;
        Ok(Workplace(path))
    }

    fn unwritable(&self, error: &std::io::Error) -> String {
        format!("cannot write {} ({error}): set ASSAY_CACHE to another folder", self.shown())
    }

    /// A build, if it is there and none of its sources has changed.
    pub(super) fn get(&self, job: &Job, triton: &Triton) -> Option<TritonBuild> {
        let folder = self.root.join(key(job, triton)?);
        let kept: Kept = serde_json::from_slice(&fs::read(folder.join("build.json")).ok()?).ok()?;
        for (path, digest) in &kept.sources {
            if digest_of(path)? != *digest {
                return None;
            }
        }
        let path = folder.join(format!("{}.ptx", job.name));
        let ptx = fs::read_to_string(&path).ok()?;
        let compiled = machine_code(&folder.join(format!("{}.cubin", job.name)));
        Some(TritonBuild { ptx, path, compiled, facts: kept.facts.into() })
    }

    /// Keeps what a job left in a folder.
    pub(super) fn put(
        &self,
        job: &Job,
        triton: &Triton,
        (facts, sources): (Facts, &[String]),
        made: &Path,
    ) -> Result<(), String> {
        let Some(key) = key(job, triton) else { return Ok(()) };
        let digests = sources.iter().filter_map(|path| Some((path.clone(), digest_of(path)?)));
        let kept = Kept { facts, sources: digests.collect() };
        let new = self.workplace()?;
        let written = (|| {
            for kind in ["ptx", "cubin"] {
                let name = format!("{}.{kind}", job.name);
                fs::rename(made.join(&name), new.path().join(&name))?;
            }
            fs::write(new.path().join("build.json"), serde_json::to_vec(&kept)?)?;
            let folder = self.root.join(key);
            match fs::rename(new.path(), &folder) {
                // Somebody else was faster, and made the same.
                Err(_) if self.get(job, triton).is_some() => Ok(()),
                // What is there is stale.
                Err(_) => {
                    fs::remove_dir_all(&folder)?;
                    fs::rename(new.path(), &folder)
                }
                Ok(()) => Ok(()),
            }
        })();
        written.map_err(|error| self.unwritable(&error))
    }
}

/// `$ASSAY_CACHE`, or the user's cache folder, or that of temporary files.
fn root() -> PathBuf {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(root) = of("ASSAY_CACHE") {
        return PathBuf::from(root);
    }
    let home = || of("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let caches = of("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    caches.unwrap_or_else(std::env::temp_dir).join("assay")
}

/// The name of a build's folder; none if the source is gone.
fn key(job: &Job, triton: &Triton) -> Option<String> {
    let text = fs::read(&job.file).ok()?;
    let source = SourceText { path: job.file.clone(), text };
    let job = serde_json::to_string(job).ok()?;
    let options = [SCRIPT.to_owned(), triton.release.clone(), job];
    Some(Digest::of(&[source], &options).to_string())
}

fn digest_of(path: &str) -> Option<Digest> {
    let text = fs::read(path).ok()?;
    Some(Digest::of(&[SourceText { path: path.to_owned(), text }], &[]))
}

/// What Triton's assembler made of the PTX, for gate 5.
fn machine_code(path: &Path) -> Compiled {
    let Ok(bytes) = fs::read(path) else { return Compiled::Unknown };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match assay_image::read(&bytes) {
        Ok(entries) => {
            let cuda = entries.into_iter().filter_map(|entry| match entry.contents {
                Contents::Cuda(image) => {
                    Some(NamedImage { name: name.clone(), facts: ImageFacts::Cuda(image) })
                }
                _ => None,
            });
            Compiled::Images(Arc::new(Images { all: cuda.collect(), stale: Vec::new() }))
        }
        Err(error) => Compiled::Unreadable(format!("{name}: {error}")),
    }
}
