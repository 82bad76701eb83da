//! All launches of a kernel against one chip.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use assay_limits::{Chip, Fit, Launch, Occupancy, Problem, fit_cuda, fit_hip, fit_metal};
use assay_record::{CaseName, ChipFit, ChipOccupancy, Outcome};
use assay_reference::Dims;

use super::at_shape;
use super::found::Found;
use crate::gates::evidence;
use crate::limits::{Build, Facts, Served, declared};
use crate::spec::{LaunchSpec, ModuleKind, ModuleRef, Spec};

/// Checks the launches against what was compiled for the chip.
pub(super) fn on_chip(
    spec: &Spec,
    module: &ModuleRef,
    (chip, launches, case): (&Chip, &[Served<'_>], &CaseName),
    found: &mut Found,
) {
    let mut seen = Seen::default();
    let builds: Vec<Vec<Build<'_>>> =
        spec.launches.iter().map(|launch| module.compiled.builds(&launch.symbol, chip)).collect();
    for (at, served) in launches.iter().enumerate() {
        if builds[served.index].is_empty() {
            seen.not_compiled(module, chip, (at, served));
        }
        for build in &builds[served.index] {
            seen.add((at, served), fit(chip, &build.facts, &served.launch), &build.to_string());
        }
    }
    let compiled_by: Vec<String> = builds.iter().flatten().flat_map(|b| b.by.clone()).collect();
    seen.tell(spec, (chip.name(), launches, case), compiled_by, found);
}

/// A launch of a kernel against a chip of the same maker.
fn fit(chip: &Chip, facts: &Facts<'_>, launch: &Launch) -> Fit {
    match (chip, facts) {
        (Chip::Cuda(chip), Facts::Cuda(kernel)) => fit_cuda(chip, kernel, launch),
        (Chip::Hip(chip), Facts::Hip(kernel)) => fit_hip(chip, kernel, launch),
        (Chip::Metal(chip), Facts::Metal(record)) => fit_metal(chip, record, launch),
        // Builds are looked up by chip, so their makers agree.
        _ => Fit::default(),
    }
}

/// What the launches showed on one chip so far.
#[derive(Default)]
struct Seen {
    /// The worst breach of each rule by each launch: the problem, the served launch, the compiler.
    problems: BTreeMap<(usize, String), (Problem, usize, String)>,
    unknown: BTreeSet<String>,
    least: Option<(Occupancy, usize)>,
}

impl Seen {
    fn add(&mut self, (at, served): (usize, &Served<'_>), fit: Fit, by: &str) {
        for problem in fit.problems {
            let key = (served.index, problem.rule.name());
            let worst = self.problems.get(&key);
            if worst.is_none_or(|(seen, ..)| problem.asked > seen.asked) {
                self.problems.insert(key, (problem, at, by.to_owned()));
            }
        }
        self.unknown.extend(fit.unknown);
        if let Some(occupancy) = fit.occupancy {
            let share = |of: &Occupancy| f64::from(of.warps) / f64::from(of.warps_max.max(1));
            if self.least.as_ref().is_none_or(|(least, _)| share(&occupancy) < share(least)) {
                self.least = Some((occupancy, at));
            }
        }
    }

    /// What can be said of a symbol that nobody compiled for the chip.
    fn not_compiled(&mut self, module: &ModuleRef, chip: &Chip, served: (usize, &Served<'_>)) {
        let symbol = &served.1.spec.symbol;
        self.unknown.insert(format!(
            "`{symbol}` is unknown on {} until it is compiled for it: no record and no image of \
             the manifest holds it",
            chip.name()
        ));
        if let (Chip::Cuda(table), ModuleKind::Ptx) = (chip, &module.kind) {
            let kernel = declared(&String::from_utf8_lossy(&module.bytes), symbol);
            let mut fit = fit_cuda(table, &kernel, &served.1.launch);
            fit.occupancy = None;
            self.add(served, fit, "");
        }
    }

    fn tell(
        self,
        spec: &Spec,
        (chip, launches, case): (&str, &[Served<'_>], &CaseName),
        compiled_by: Vec<String>,
        found: &mut Found,
    ) {
        let problems = self.problems.len() as u64;
        for ((index, rule), (problem, at, by)) in self.problems {
            let place = Place { spec, index, launch: launches[at].spec, dims: &launches[at].dims };
            let by = if by.is_empty() { by } else { format!(" ({by})") };
            let reason = format!("{place} breaks {rule} of {chip}: {problem}{by}");
            found.findings.push(evidence(case, Outcome::Fail, reason));
        }
        let unknown = self.unknown.into_iter();
        found.findings.extend(unknown.map(|why| evidence(case, Outcome::Unproven, why)));
        found.chips.push(ChipFit {
            chip: chip.to_owned(),
            compiled_by: each_once(compiled_by),
            launches: launches.len() as u64,
            problems,
            occupancy: self.least.map(|(occupancy, at)| stored(&occupancy, &launches[at])),
            loaded: Vec::new(),
        });
    }
}

fn each_once(mut names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn stored(occupancy: &Occupancy, served: &Served<'_>) -> ChipOccupancy {
    ChipOccupancy {
        symbol: served.spec.symbol.clone(),
        block_threads: served.launch.threads(),
        dynamic_shared_bytes: served.launch.dynamic_shared_bytes,
        blocks: occupancy.blocks,
        warps: occupancy.warps,
        warps_max: occupancy.warps_max,
        place: occupancy.place.to_string(),
        binding: occupancy.binding.iter().map(ToString::to_string).collect(),
    }
}

/// A launch in a sentence: `rms_norm` at cols=4096,rows=7; with its number where there are several.
pub(super) struct Place<'a> {
    pub(super) spec: &'a Spec,
    pub(super) index: usize,
    pub(super) launch: &'a LaunchSpec,
    pub(super) dims: &'a Dims,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.spec.launches.len() > 1 {
            write!(formatter, "launch {} of ", self.index + 1)?;
        }
        write!(formatter, "`{}`{}", self.launch.symbol, at_shape(self.dims))
    }
}
