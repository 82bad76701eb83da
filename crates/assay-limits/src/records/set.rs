//! One set: the facts of kernels by module, symbol and chip, and how two sets differ.

use std::collections::BTreeMap;
use std::fmt;

use assay_image::{CudaKernel, HipKernel, Release};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::digest::Digest;

/// Facts that can be recorded.
pub trait Recorded: Clone + PartialEq + Serialize + DeserializeOwned {
    /// The vendor as files name it: `cuda`.
    const VENDOR: &'static str;
    /// The compiler as people name it: `nvcc`.
    const COMPILER: &'static str;

    /// The symbol.
    fn symbol(&self) -> &str;

    /// The facts without those that no limit depends on.
    #[must_use]
    fn limits_only(self) -> Self;
}

impl Recorded for CudaKernel {
    const VENDOR: &'static str = "cuda";
    const COMPILER: &'static str = "nvcc";

    fn symbol(&self) -> &str {
        &self.name
    }

    /// Without the list of parameters: it would be half of every file, and its sum stays.
    fn limits_only(mut self) -> CudaKernel {
        self.parameters.clear();
        self
    }
}

impl Recorded for HipKernel {
    const VENDOR: &'static str = "hip";
    const COMPILER: &'static str = "clang";

    fn symbol(&self) -> &str {
        &self.name
    }

    /// Without the list of arguments, as for CUDA.
    fn limits_only(mut self) -> HipKernel {
        self.parameters.clear();
        self
    }
}

/// The kernels of one symbol, by chip.
type ByChip<K> = BTreeMap<String, K>;

/// What one release of a compiler made of every kernel for every chip.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordSet<K> {
    /// The compiler's release.
    pub release: Release,
    /// The options of every compile, without the chip and the file names.
    pub options: Vec<String>,
    /// Of each module, a digest of the texts that it was compiled from.
    pub sources: BTreeMap<String, Digest>,
    /// By module, symbol and chip.
    kernels: BTreeMap<String, BTreeMap<String, ByChip<K>>>,
}

impl<K: Recorded> RecordSet<K> {
    /// A set with no records.
    pub fn new(release: Release, options: Vec<String>) -> RecordSet<K> {
        RecordSet { release, options, sources: BTreeMap::new(), kernels: BTreeMap::new() }
    }

    /// Records one kernel; gives the record that it replaces.
    pub fn insert(&mut self, module: &str, chip: &str, kernel: K) -> Option<K> {
        let kernel = kernel.limits_only();
        let symbols = self.kernels.entry(module.to_owned()).or_default();
        let chips = symbols.entry(kernel.symbol().to_owned()).or_default();
        chips.insert(chip.to_owned(), kernel)
    }

    /// Takes one record out.
    pub fn remove(&mut self, module: &str, symbol: &str, chip: &str) -> Option<K> {
        self.kernels.get_mut(module)?.get_mut(symbol)?.remove(chip)
    }

    /// The record of one kernel on one chip.
    pub fn get(&self, module: &str, symbol: &str, chip: &str) -> Option<&K> {
        self.kernels.get(module)?.get(symbol)?.get(chip)
    }

    /// Every record as module, chip and kernel, in the order of module, symbol and chip.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &K)> {
        self.kernels.iter().flat_map(|(module, symbols)| {
            symbols.values().flat_map(move |chips| {
                chips.iter().map(move |(chip, kernel)| (module.as_str(), chip.as_str(), kernel))
            })
        })
    }

    /// The chips on which a kernel is recorded.
    pub fn chips<'a>(&'a self, module: &str, symbol: &str) -> impl Iterator<Item = &'a str> {
        let symbols = self.kernels.get(module);
        let chips = symbols.and_then(|symbols| symbols.get(symbol));
        chips.into_iter().flat_map(|chips| chips.keys().map(String::as_str))
    }

    /// How many kernels are recorded, over all chips.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// True if nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// What a later set compiles differently, among the modules and chips that `within` names.
    pub fn differences(
        &self,
        later: &RecordSet<K>,
        within: impl Fn(&str, &str) -> bool,
    ) -> Vec<Difference> {
        let mut found = Vec::new();
        let at = |module: &str, chip: &str, kernel: &K, change| Difference {
            module: module.to_owned(),
            symbol: kernel.symbol().to_owned(),
            chip: chip.to_owned(),
            change,
        };
        for (module, chip, kernel) in self.iter().filter(|(module, chip, _)| within(module, chip)) {
            match later.get(module, kernel.symbol(), chip) {
                None => found.push(at(module, chip, kernel, Change::Gone)),
                Some(other) if other == kernel => {}
                Some(other) => {
                    let change = Change::Fields(changed_fields(kernel, other));
                    found.push(at(module, chip, kernel, change));
                }
            }
        }
        for (module, chip, kernel) in later.iter().filter(|(module, chip, _)| within(module, chip))
        {
            if self.get(module, kernel.symbol(), chip).is_none() {
                found.push(at(module, chip, kernel, Change::New));
            }
        }
        found.sort();
        found
    }
}

/// One kernel on one chip that two sets hold differently.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Difference {
    /// The module.
    pub module: String,
    /// The symbol.
    pub symbol: String,
    /// The chip.
    pub chip: String,
    /// What differs.
    pub change: Change,
}

/// How a record differs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// Only the later set has the kernel.
    New,
    /// Only the earlier set has it.
    Gone,
    /// Both have it, with other facts.
    Fields(Vec<FieldChange>),
}

/// One fact that differs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FieldChange {
    /// The fact's name: `registers`.
    pub field: String,
    /// Its value in the earlier set; `none` where it has none.
    pub before: String,
    /// Its value in the later set.
    pub after: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{} on {}: ", self.module, self.symbol, self.chip)?;
        match &self.change {
            Change::New => formatter.write_str("not recorded before"),
            Change::Gone => formatter.write_str("no longer compiled"),
            Change::Fields(fields) => {
                for (index, FieldChange { field, before, after }) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{field} {before} -> {after}")?;
                }
                Ok(())
            }
        }
    }
}

/// The facts that differ, by the names that the files use.
fn changed_fields<K: Recorded>(before: &K, after: &K) -> Vec<FieldChange> {
    let (before, after) = (fields(before), fields(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let show = |value: Option<&Value>| value.map_or("none".to_owned(), Value::to_string);
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| FieldChange {
            field: name.clone(),
            before: show(before.get(name)),
            after: show(after.get(name)),
        })
        .collect()
}

fn fields<K: Recorded>(kernel: &K) -> serde_json::Map<String, Value> {
    match serde_json::to_value(kernel) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    }
}
