//! The chips that launches are checked against: plain data, every number with its source.
//!
//! A file of chips is TOML: `[source.NAME]` tables that say where numbers come from, and one table
//! a chip, `[cuda.sm_90]`, `[hip.gfx1100]` or `[metal.M1]`, in which every number is
//! `{ value = 64, source = "NAME" }`, with `unconfirmed = true` where no primary source was read.

mod read;
mod tables;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

pub use read::ChipError;
pub(crate) use tables::value;
pub use tables::{CudaChip, HipChip, MetalChip};

/// A number of a chip, with where it comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Sourced<T> {
    /// The number, in the unit that its key names.
    pub value: T,
    /// The name of its source in the file's `[source]` tables.
    pub source: String,
    /// True if no primary source was read for it.
    pub unconfirmed: bool,
}

/// Who makes a chip, as its programming model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// NVIDIA.
    Cuda,
    /// AMD.
    Hip,
    /// Apple.
    Metal,
}

impl fmt::Display for Vendor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Vendor::Cuda => "CUDA",
            Vendor::Hip => "HIP",
            Vendor::Metal => "Metal",
        })
    }
}

/// One chip.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "vendor", rename_all = "lowercase")]
pub enum Chip {
    /// An NVIDIA architecture.
    Cuda(CudaChip),
    /// An AMD architecture.
    Hip(HipChip),
    /// An Apple generation.
    Metal(MetalChip),
}

impl Chip {
    /// The chip's name: `sm_90`, `gfx1100`, `M1`.
    pub fn name(&self) -> &str {
        match self {
            Chip::Cuda(chip) => &chip.name,
            Chip::Hip(chip) => &chip.name,
            Chip::Metal(chip) => &chip.name,
        }
    }

    /// Who makes it.
    pub fn vendor(&self) -> Vendor {
        match self {
            Chip::Cuda(_) => Vendor::Cuda,
            Chip::Hip(_) => Vendor::Hip,
            Chip::Metal(_) => Vendor::Metal,
        }
    }

    /// Key, source and whether it is unconfirmed, of every number.
    pub fn origins(&self) -> Vec<(&'static str, &str, bool)> {
        match self {
            Chip::Cuda(chip) => chip.origins(),
            Chip::Hip(chip) => chip.origins(),
            Chip::Metal(chip) => chip.origins(),
        }
    }

    /// The keys of numbers for which no primary source was read.
    pub fn unconfirmed(&self) -> Vec<&'static str> {
        let all = self.origins().into_iter();
        all.filter(|(_, _, unconfirmed)| *unconfirmed).map(|(key, ..)| key).collect()
    }
}

/// A set of chips, by vendor and then by age.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chips {
    chips: Vec<Chip>,
    sources: BTreeMap<String, String>,
}

impl Chips {
    /// The chips that come with Assay.
    ///
    /// # Panics
    /// Never: a test parses the embedded files.
    pub fn built_in() -> Chips {
        let mut chips = Chips::default();
        for (name, text) in BUILT_IN {
            let parsed = Chips::parse(text, name).and_then(|more| chips.add(more));
            parsed.expect("the embedded chips parse");
        }
        chips
    }

    /// Reads a file of chips; `file` is its name in errors.
    ///
    /// # Errors
    /// If the text is not TOML, or a table lacks a key, has one too many, or one of another type.
    /// The error names file, table and key.
    pub fn parse(text: &str, file: &str) -> Result<Chips, ChipError> {
        read::chips(text, file)
    }

    /// Adds the chips of another file.
    ///
    /// # Errors
    /// If both have a chip of one name.
    pub fn add(&mut self, more: Chips) -> Result<(), ChipError> {
        for chip in &more.chips {
            if self.chip(chip.name()).is_some() {
                return Err(ChipError::Twice { chip: chip.name().to_owned() });
            }
        }
        self.chips.extend(more.chips);
        self.sources.extend(more.sources);
        self.sort();
        Ok(())
    }

    /// Orders the chips by vendor, then as people count them: `sm_90` before `sm_100`.
    fn sort(&mut self) {
        self.chips
            .sort_by_cached_key(|chip| (chip.vendor(), chip.name().len(), chip.name().to_owned()));
    }

    /// The chip of a name.
    pub fn chip(&self, name: &str) -> Option<&Chip> {
        self.chips.iter().find(|chip| chip.name() == name)
    }

    /// All chips, by vendor and then as people count them.
    pub fn all(&self) -> &[Chip] {
        &self.chips
    }

    /// What a source's name stands for.
    pub fn source(&self, name: &str) -> Option<&str> {
        self.sources.get(name).map(String::as_str)
    }
}

const BUILT_IN: [(&str, &str); 3] = [
    ("chips/cuda.toml", include_str!("../chips/cuda.toml")),
    ("chips/hip.toml", include_str!("../chips/hip.toml")),
    ("chips/metal.toml", include_str!("../chips/metal.toml")),
];
