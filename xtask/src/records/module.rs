//! The suite's sources as modules of the records.

use std::fs;
use std::path::{Path, PathBuf};

use assay_limits::{Digest, SourceText};

use crate::kernels::sources;
use crate::sources::texts;
use crate::toolchain::repository;

/// One source, which compiles to one module.
pub(super) struct Module {
    /// Its path below the suite without the ending, with `/`: `controls/norms`.
    pub(super) name: String,
    /// Its path below the suite.
    pub(super) source: PathBuf,
    /// It and the headers that it includes.
    texts: Vec<SourceText>,
    /// Roughly how long it takes to compile: the bytes of its PTX.
    weight: u64,
}

impl Module {
    /// A digest of the texts, with the options of a compile.
    pub(super) fn digest(&self, options: &[String]) -> Digest {
        self.digest_with(&[], options)
    }

    /// The same, with headers that the sources find by their names alone.
    pub(super) fn digest_with(&self, headers: &[SourceText], options: &[String]) -> Digest {
        Digest::of(&[&self.texts, headers].concat(), options)
    }
}

/// The folder of the sources.
pub(super) fn suite() -> PathBuf {
    repository().join("kernels/cuda")
}

/// Every module, those that take long first, so that no core waits for the last one.
pub(super) fn all() -> Result<Vec<Module>, String> {
    let suite = suite();
    let sources = sources(&suite).map_err(|error| format!("{}: {error}", suite.display()))?;
    let modules = sources.into_iter().map(|source| one(&suite, source));
    let mut modules = modules.collect::<Result<Vec<Module>, String>>()?;
    modules.sort_by_key(|module| std::cmp::Reverse(module.weight));
    Ok(modules)
}

fn one(suite: &Path, source: PathBuf) -> Result<Module, String> {
    let texts = texts(suite, &source)?
        .into_iter()
        .map(|(path, text)| SourceText { path: slashed(&path), text: text.into_bytes() })
        .collect();
    let ptx = suite.join(&source).with_extension("ptx");
    let weight = fs::metadata(ptx).map_or(0, |metadata| metadata.len());
    Ok(Module { name: slashed(&source.with_extension("")), source, texts, weight })
}

/// A path as it is written on every machine.
fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::{cuda, store::Store};
    use super::*;

    #[test]
    fn every_source_of_the_suite_is_a_module_named_by_its_path() {
        let modules = all().unwrap();
        let count = sources(&suite()).unwrap().len();
        assert_eq!(modules.len(), count);
        assert!(modules.iter().any(|module| module.name == "rms_norm"));
        assert!(modules.iter().any(|module| module.name == "controls/norms"));
    }

    #[test]
    fn a_changed_header_changes_the_digest_of_a_source_that_includes_it() {
        let mut module = one(&suite(), PathBuf::from("rms_norm.cu")).unwrap();
        let before = module.digest(&[]);
        let header = module.texts.iter_mut().find(|text| text.path == "common.cuh").unwrap();
        header.text.push(b'\n');
        assert_ne!(module.digest(&[]), before);
    }
    #[test]
    fn a_source_changed_by_one_byte_makes_its_module_stale_in_every_set() {
        let sets = Store::open().unwrap().records.cuda;
        let mut modules = all().unwrap();
        let today = cuda::digests(&modules);
        let softmax = modules.iter_mut().find(|module| module.name == "softmax").unwrap();
        softmax.texts[0].text.push(b' ');
        let changed = cuda::digests(&modules);
        assert!(!sets.is_empty());
        for set in sets {
            assert_eq!(set.stale_sources(&today), []);
            let stale = set.stale_sources(&changed);
            let said: Vec<String> = stale.iter().map(ToString::to_string).collect();
            let release = set.release;
            assert_eq!(
                said,
                [format!(
                    "stale records of nvcc {release}: what softmax is compiled from has changed; \
                     derive them again with `cargo xtask records --release {release}`"
                )]
            );
        }
    }

    #[test]
    fn a_record_altered_by_one_register_is_stale_and_no_other_record_is() {
        for set in Store::open().unwrap().records.cuda {
            let mut altered = set.clone();
            let mut kernel = set.get("softmax", "softmax_f32", "sm_120").unwrap().clone();
            let registers = kernel.registers;
            kernel.registers += 1;
            altered.insert("softmax", "sm_120", kernel);
            let stale = altered.stale_facts(&set, |_, _| true);
            assert_eq!(stale.len(), 1);
            let said = stale[0].to_string();
            let change = format!("registers {} -> {registers}; derive", registers + 1);
            assert!(said.contains("softmax/softmax_f32 on sm_120: "), "{said}");
            assert!(said.contains(&change), "{said}");
        }
    }
}
