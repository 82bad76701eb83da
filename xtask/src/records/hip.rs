//! The releases of clang, and what each makes of the suite for AMD's chips.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use assay_image::{HipKernel, Release};
use assay_limits::{Digest, RecordSet, SourceText};

use super::in_parallel;
use super::module::Module;
use crate::hip::{self, Compiler, OPTIONS};
use crate::toolchain::{Unavailable, repository, target};

/// One release of clang.
pub(super) struct Clang {
    pub(super) release: Release,
    compiler: Compiler,
    /// The headers that stand in for CUDA's.
    headers: Vec<SourceText>,
    images: PathBuf,
}

/// A module for a chip.
type Item<'a> = (&'a Module, &'static str);

/// The headers that stand in for CUDA's, which every source reads.
fn headers() -> Result<Vec<SourceText>, String> {
    let folder = repository().join("kernels/hip");
    let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut texts = Vec::new();
    for entry in fs::read_dir(&folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read(&path).map_err(cannot)?;
        texts.push(SourceText { path: format!("../hip/{name}"), text });
    }
    Ok(texts)
}

fn options() -> Vec<String> {
    OPTIONS.map(str::to_owned).to_vec()
}

/// The digest of each module as it would be compiled today.
pub(super) fn digests(modules: &[Module]) -> Result<BTreeMap<String, Digest>, String> {
    let (headers, options) = (headers()?, options());
    let digest = |module: &Module| (module.name.clone(), module.digest_with(&headers, &options));
    Ok(modules.iter().map(digest).collect())
}

impl Clang {
    /// Every release that is installed, oldest first, or why there is none.
    pub(super) fn installed() -> Result<Vec<Clang>, Unavailable> {
        let compilers = hip::installed()?;
        let clangs = compilers.into_iter().map(|compiler| {
            let release = compiler.release;
            let images = target().join("records").join(format!("clang-{release}"));
            let headers = headers().unwrap_or_default();
            Clang { release, compiler, headers, images }
        });
        Ok(clangs.collect())
    }

    /// Compiles every module for every chip; every problem with any of them.
    pub(super) fn derive(&self, modules: &[Module]) -> Result<RecordSet<HipKernel>, Vec<String>> {
        let options = options();
        let mut set = RecordSet::new(self.release, options.clone());
        let mut problems = Vec::new();
        let chips = self.compiler.chips();
        let items: Vec<Item<'_>> = modules
            .iter()
            .flat_map(|module| chips.iter().map(move |chip| (module, *chip)))
            .collect();
        let derived = in_parallel(&items, |item| self.derive_one(*item));
        for ((module, chip), kernels) in items.iter().zip(derived) {
            match kernels {
                Ok(kernels) => {
                    for kernel in kernels {
                        set.insert(&module.name, chip, kernel);
                    }
                }
                Err(problem) => problems.push(format!("{} for {chip}: {problem}", module.name)),
            }
        }
        for module in modules {
            let digest = module.digest_with(&self.headers, &options);
            set.sources.insert(module.name.clone(), digest);
        }
        if problems.is_empty() { Ok(set) } else { Err(problems) }
    }

    /// The kernels of one module for one chip, which two readers agree on. What was compiled from
    /// the same texts already is not compiled again.
    fn derive_one(&self, (module, chip): Item<'_>) -> Result<Vec<HipKernel>, String> {
        let path = self.images.join(chip).join(format!("{}.co", module.name));
        let cannot = |error: std::io::Error| format!("{}: {error}", path.display());
        let stamp = path.with_extension("stamp");
        let wanted = module.digest_with(&self.headers, &options()).to_string();
        if fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
            fs::create_dir_all(path.parent().unwrap_or(&self.images)).map_err(cannot)?;
            self.compiler.compile(&module.source, chip, &path)?;
            fs::write(&stamp, wanted).map_err(cannot)?;
        }
        Ok(self.compiler.read(&path, chip)?.kernels)
    }
}
