//! What compilers made of a module's kernels, as far as anybody knows: the suite's records, or
//! images that a manifest names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use assay_image::{CudaImage, CudaKernel, HipImage, HipKernel};
use assay_limits::{
    Chip, Digest, MetalRecord, MetalRecords, RecordSet, Recorded, Records, SourceText, StaleReason,
};

use super::chips_named;

/// Where the facts of a module's kernels come from.
#[derive(Debug, Clone, Default)]
pub enum Compiled {
    /// Nobody compiled it here.
    #[default]
    Unknown,
    /// What compilers made of it is recorded.
    Recorded(Arc<RecordedModule>),
    /// Images that hold its kernels.
    Images(Arc<Images>),
    /// An image that cannot be read, and why.
    Unreadable(String),
}

/// A module of recorded compiles.
#[derive(Debug, Clone)]
pub struct RecordedModule {
    /// The records.
    pub records: Arc<Records>,
    /// The module's name there.
    pub module: String,
    /// Records that no longer are of the module's source, a sentence each.
    pub stale: Vec<String>,
}

/// The images of one module.
#[derive(Debug, Clone, Default)]
pub struct Images {
    /// All of them, in the order given.
    pub all: Vec<NamedImage>,
    /// Those that no longer are of the module's source, a sentence each.
    pub stale: Vec<String>,
}

/// One image with its name.
#[derive(Debug, Clone)]
pub struct NamedImage {
    /// The file, with the place in it where it holds several.
    pub name: String,
    /// The facts of its kernels.
    pub facts: ImageFacts,
}

/// The facts of one image.
#[derive(Debug, Clone)]
pub enum ImageFacts {
    /// NVIDIA machine code.
    Cuda(CudaImage),
    /// AMD machine code.
    Hip(HipImage),
    /// Recorded compiles of Metal pipelines.
    Metal(MetalRecords),
}

/// A kernel as it was compiled for one chip.
#[derive(Debug, Clone)]
pub struct Build<'a> {
    /// Who compiled it to these same facts: releases of a compiler, or a file.
    pub by: Vec<String>,
    /// The facts.
    pub facts: Facts<'a>,
}

/// The facts of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Facts<'a> {
    /// On an NVIDIA chip.
    Cuda(&'a CudaKernel),
    /// On an AMD chip.
    Hip(&'a HipKernel),
    /// On an Apple chip.
    Metal(MetalRecord),
}

impl Compiled {
    /// Records that no longer are of the module's source.
    pub fn stale(&self) -> &[String] {
        match self {
            Compiled::Recorded(recorded) => &recorded.stale,
            Compiled::Images(images) => &images.stale,
            Compiled::Unknown | Compiled::Unreadable(_) => &[],
        }
    }

    /// A kernel as each compiler made it for a chip; those that agree are one.
    pub fn builds<'a>(&'a self, symbol: &str, chip: &Chip) -> Vec<Build<'a>> {
        let mut builds: Vec<Build<'a>> = Vec::new();
        for (by, facts) in self.each_build(symbol, chip) {
            match builds.iter_mut().find(|build| build.facts == facts) {
                Some(build) => build.by.push(by),
                None => builds.push(Build { by: vec![by], facts }),
            }
        }
        builds
    }

    fn each_build<'a>(&'a self, symbol: &str, chip: &Chip) -> Vec<(String, Facts<'a>)> {
        match self {
            Compiled::Recorded(recorded) => recorded.builds(symbol, chip),
            Compiled::Images(images) => image_builds(&images.all, symbol, chip),
            Compiled::Unknown | Compiled::Unreadable(_) => Vec::new(),
        }
    }

    /// The names of the chips that a kernel was compiled for.
    pub fn chips(&self, symbol: &str) -> BTreeSet<String> {
        match self {
            Compiled::Recorded(recorded) => recorded.chips(symbol),
            Compiled::Images(images) => {
                images.all.iter().flat_map(|image| image.chips(symbol)).collect()
            }
            Compiled::Unknown | Compiled::Unreadable(_) => BTreeSet::new(),
        }
    }

    /// Everything that decides what gate 5 says, as one text.
    pub fn fingerprint(&self) -> String {
        match self {
            Compiled::Recorded(recorded) => {
                let RecordedModule { records, module, stale } = &**recorded;
                let releases = records.cuda.iter().map(|set| set.release);
                let releases = releases.chain(records.hip.iter().map(|set| set.release));
                format!("{module} {stale:?} {:?}", releases.collect::<Vec<_>>())
            }
            other => format!("{other:?}"),
        }
    }
}

impl RecordedModule {
    /// The records of a CUDA source, a path as `read` takes it, and whether they are of the texts
    /// that `read` gives. Unknown where no set holds the module.
    pub fn of(
        records: Arc<Records>,
        source: &Path,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Compiled {
        let source = source.to_string_lossy().replace('\\', "/");
        let Some(module) = source.strip_suffix(".cu") else { return Compiled::Unknown };
        let texts = texts_of(&source, read);
        // The sets of HIP are of these texts and of the header that makes HIP of them, which only
        // `cargo xtask records --check` has.
        let stale = stale_sets(&records.cuda, module, &texts);
        let module = module.to_owned();
        Compiled::Recorded(Arc::new(RecordedModule { records, module, stale }))
    }

    fn builds(&self, symbol: &str, chip: &Chip) -> Vec<(String, Facts<'_>)> {
        match chip {
            Chip::Cuda(_) => self.of_sets(&self.records.cuda, (symbol, chip), Facts::Cuda),
            Chip::Hip(_) => self.of_sets(&self.records.hip, (symbol, chip), Facts::Hip),
            Chip::Metal(_) => Vec::new(),
        }
    }

    fn of_sets<'a, K: Recorded>(
        &'a self,
        sets: &'a [RecordSet<K>],
        (symbol, chip): (&str, &Chip),
        facts: impl Fn(&'a K) -> Facts<'a>,
    ) -> Vec<(String, Facts<'a>)> {
        let build = |set: &'a RecordSet<K>| {
            let kernel = set.get(&self.module, symbol, chip.name())?;
            Some((format!("{} {}", K::COMPILER, set.release), facts(kernel)))
        };
        sets.iter().filter_map(build).collect()
    }

    fn chips(&self, symbol: &str) -> BTreeSet<String> {
        let Records { cuda, hip } = &*self.records;
        let cuda = cuda.iter().flat_map(|set| set.chips(&self.module, symbol));
        let hip = hip.iter().flat_map(|set| set.chips(&self.module, symbol));
        cuda.chain(hip).map(str::to_owned).collect()
    }
}

/// Why sets do not hold what a module's texts are now, a sentence for each set that does not.
fn stale_sets<K: Recorded>(
    sets: &[RecordSet<K>],
    module: &str,
    texts: &[SourceText],
) -> Vec<String> {
    let mut stale = Vec::new();
    for set in sets {
        let today = BTreeMap::from([(module.to_owned(), Digest::of(texts, &set.options))]);
        let of_module = set
            .stale_sources(&today)
            .into_iter()
            .filter(|stale| !matches!(stale.reason, StaleReason::Removed(_)));
        stale.extend(of_module.map(|stale| stale.to_string()));
    }
    stale
}

/// A source and everything that it includes by a quoted name.
fn texts_of(source: &str, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Vec<SourceText> {
    let (mut texts, mut seen) = (Vec::new(), BTreeSet::new());
    let mut waiting = vec![source.to_owned()];
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let Some(text) = read(&path) else { continue };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let included = String::from_utf8_lossy(&text);
        let included = included.lines().filter_map(included_name);
        waiting.extend(included.map(|name| match folder {
            "" => name.to_owned(),
            _ => format!("{folder}/{name}"),
        }));
        texts.push(SourceText { path, text });
    }
    texts
}

/// The name in `#include "..."`.
fn included_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    rest.trim_start().strip_prefix('"')?.split('"').next()
}

impl NamedImage {
    /// The chips that the image was made for and that a kernel of it can be checked on.
    fn chips(&self, symbol: &str) -> Vec<String> {
        match &self.facts {
            ImageFacts::Metal(records) => metal_chips(records, symbol),
            _ if self.kernel(symbol, "").is_some() => vec![self.architecture().to_owned()],
            _ => Vec::new(),
        }
    }

    /// The architecture without the features in its name; none of a file for several chips.
    fn architecture(&self) -> &str {
        match &self.facts {
            ImageFacts::Cuda(image) => {
                image.architecture.trim_end_matches(|c: char| c.is_ascii_lowercase())
            }
            ImageFacts::Hip(image) => image.architecture.split(':').next().unwrap_or_default(),
            ImageFacts::Metal(_) => "",
        }
    }

    fn kernel(&self, symbol: &str, chip: &str) -> Option<Facts<'_>> {
        match &self.facts {
            ImageFacts::Cuda(image) => {
                image.kernels.iter().find(|kernel| kernel.name == symbol).map(Facts::Cuda)
            }
            ImageFacts::Hip(image) => {
                image.kernels.iter().find(|kernel| kernel.name == symbol).map(Facts::Hip)
            }
            ImageFacts::Metal(records) => records.get(symbol, chip).map(Facts::Metal),
        }
    }

    /// How well the image serves a chip, more being better; `None` if it does not. An NVIDIA image
    /// for `sm_80` also runs on every later chip of its generation (`sm_86`, `sm_89`), unless its
    /// features bind it (`sm_90a`).
    fn serves(&self, chip: &Chip) -> Option<u32> {
        match (&self.facts, chip) {
            (ImageFacts::Metal(_), Chip::Metal(_)) => Some(u32::MAX),
            _ if self.architecture() == chip.name() => Some(u32::MAX),
            (ImageFacts::Cuda(image), Chip::Cuda(chip)) => {
                let (own, other) = (number(&image.architecture)?, number(&chip.name)?);
                (own / 10 == other / 10 && own < other).then_some(own)
            }
            _ => None,
        }
    }
}

/// The chips that a pipeline was compiled for; every chip of the maker where it needs no compile.
fn metal_chips(records: &MetalRecords, pipeline: &str) -> Vec<String> {
    match records.pipelines.get(pipeline) {
        Some(recorded) if recorded.exemption.is_none() => recorded.chips.keys().cloned().collect(),
        Some(_) => chips_named("metal").into_iter().flatten().map(str::to_owned).collect(),
        None => Vec::new(),
    }
}

/// 90 of `sm_90`; nothing for `sm_90a`.
fn number(architecture: &str) -> Option<u32> {
    architecture.strip_prefix("sm_")?.parse().ok()
}

/// The kernel in each of the images that serve the chip best.
fn image_builds<'a>(
    images: &'a [NamedImage],
    symbol: &str,
    chip: &Chip,
) -> Vec<(String, Facts<'a>)> {
    let found: Vec<(u32, &NamedImage, Facts<'a>)> = images
        .iter()
        .filter_map(|image| Some((image.serves(chip)?, image, image.kernel(symbol, chip.name())?)))
        .collect();
    let best = found.iter().map(|(serves, ..)| *serves).max();
    let best = found.into_iter().filter(|(serves, ..)| Some(*serves) == best);
    best.map(|(_, image, facts)| (image.name.clone(), facts)).collect()
}

impl fmt::Display for Build<'_> {
    /// The compilers, each named once: `nvcc 13.0.88, 13.2.86`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = "";
        for (at, by) in self.by.iter().enumerate() {
            let (compiler, release) = by.split_once(' ').unwrap_or((by, ""));
            let comma = if at == 0 { "" } else { ", " };
            if at > 0 && compiler == named && !release.is_empty() {
                write!(formatter, "{comma}{release}")?;
            } else {
                write!(formatter, "{comma}{by}")?;
            }
            named = compiler;
        }
        Ok(())
    }
}
