//! Gate 5, limits: every launch at every served shape fits every chip served, by what compilers
//! made of the kernel for that chip. No kernel runs, and no device is needed; where the kernel is
//! loaded on a GPU, that GPU's own word is compared too.
//!
//! A case is a kernel on a chip: `rms_norm_warp_f32/limits/-/sm_86/seed=1/launches`.

mod chip;
mod found;
mod loaded;

use std::collections::BTreeMap;

use assay_limits::{Chip, Problem, fit_cuda};
use assay_record::{CaseName, Gate, GateResult, Outcome};

use super::{GateContext, evidence, not_applicable};
use crate::limits::{Compiled, Served, chips, declared, served_launches};
use crate::spec::{ModuleKind, ModuleRef, Spec, shown};
use crate::subject::Subject;
use chip::{Place, on_chip};
use found::Found;

/// The schedule of every case: all launches of the kernel, in no order that matters.
const SCHEDULE: &str = "launches";
/// The case of what holds on every chip, whatever a compiler makes of the kernel.
const DECLARED: &str = "declared";
/// The case of records that are no longer of the kernel's source.
const RECORDS: &str = "records";

/// Checks all launches of a kernel against the chips that it serves.
pub fn check(subject: &mut dyn Subject, context: &GateContext<'_>) -> GateResult {
    let spec = subject.spec();
    let Some(module) = &spec.module else {
        return not_applicable(Gate::Limits, "the kernel is no code for a chip");
    };
    let mut found = Found::default();
    if module.compiled.stale().is_empty() {
        on_chips(spec, module, context, &mut found);
    } else {
        stale(spec, module, context, &mut found);
    }
    loaded::check(subject, context, &mut found);
    let spec = subject.spec();
    found.finish(spec, context.is_partial())
}

fn case(spec: &Spec, context: &GateContext<'_>, at: &str) -> CaseName {
    CaseName {
        kernel: spec.name.clone(),
        gate: Gate::Limits,
        dims: Vec::new(),
        fill: at.to_owned(),
        seed: context.seed,
        schedule: SCHEDULE.to_owned(),
    }
}

/// What is recorded of other sources says nothing of these.
fn stale(spec: &Spec, module: &ModuleRef, context: &GateContext<'_>, found: &mut Found) {
    let case = case(spec, context, RECORDS);
    if context.wants(&case) {
        found.cases += 1;
        let stale = module.compiled.stale().iter();
        found.findings.extend(stale.map(|why| evidence(&case, Outcome::Fail, why.clone())));
    }
}

fn on_chips(spec: &Spec, module: &ModuleRef, context: &GateContext<'_>, found: &mut Found) {
    let launches = served_launches(spec);
    let chips = served_chips(spec, module);
    if chips.is_empty() {
        return on_no_chip(spec, module, (context, &launches), found);
    }
    for chip in chips {
        let case = case(spec, context, chip.name());
        if context.wants(&case) {
            found.cases += 1;
            on_chip(spec, module, (chip, &launches, &case), found);
        }
    }
}

/// The chips that a kernel names, or else all that one of its symbols was compiled for.
fn served_chips(spec: &Spec, module: &ModuleRef) -> Vec<&'static Chip> {
    let served: Vec<String> = if spec.chips.is_empty() {
        let symbols = spec.launches.iter().map(|launch| launch.symbol.as_str());
        symbols.flat_map(|symbol| module.compiled.chips(symbol)).collect()
    } else {
        spec.chips.clone()
    };
    let is_served = |chip: &&Chip| served.iter().any(|name| name == chip.name());
    chips().all().iter().filter(is_served).collect()
}

/// What the launches ask of every chip, where nobody says what a compiler made of the kernel.
fn on_no_chip(
    spec: &Spec,
    module: &ModuleRef,
    (context, launches): (&GateContext<'_>, &[Served<'_>]),
    found: &mut Found,
) {
    let case = case(spec, context, DECLARED);
    if !context.wants(&case) {
        return;
    }
    found.cases += 1;
    if let Compiled::Unreadable(why) = &module.compiled {
        found.findings.push(evidence(&case, Outcome::Unproven, why.clone()));
        return;
    }
    for ((index, _), (problem, at, on)) in declared_problems(module, launches) {
        let place = Place { spec, index, launch: launches[at].spec, dims: &launches[at].dims };
        let more = match on.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let chip = on.first().copied().unwrap_or_default();
        let rule = problem.rule.name();
        let reason = format!("{place} breaks {rule} of {chip}{more}: {problem}");
        found.findings.push(evidence(&case, Outcome::Fail, reason));
    }
    found.not_applicable = Some(format!(
        "nothing says what a compiler makes of {} for any chip: name its `images` in the manifest",
        module.path.display()
    ));
}

/// The worst breach of each rule by each of the launches, at which launch, and on which chips.
type Declared = BTreeMap<(usize, String), (Problem, usize, Vec<&'static str>)>;

/// What no compile can mend: sizes of grids and blocks, and the bounds that the PTX declares.
fn declared_problems(module: &ModuleRef, launches: &[Served<'_>]) -> Declared {
    let text = match module.kind {
        ModuleKind::Ptx => String::from_utf8_lossy(&module.bytes),
        _ => "".into(),
    };
    let mut worst = Declared::new();
    for (at, served) in launches.iter().enumerate() {
        let kernel = declared(&text, &served.spec.symbol);
        for chip in chips().all() {
            let Chip::Cuda(table) = chip else { continue };
            for problem in fit_cuda(table, &kernel, &served.launch).problems {
                let key = (served.index, problem.rule.name());
                let entry = worst.entry(key).or_insert_with(|| (problem.clone(), at, Vec::new()));
                if problem.asked > entry.0.asked {
                    (entry.0, entry.1) = (problem, at);
                }
                if !entry.2.contains(&chip.name()) {
                    entry.2.push(chip.name());
                }
            }
        }
    }
    worst
}

/// A shape as a sentence names it.
fn at_shape(dims: &assay_reference::Dims) -> String {
    if dims.is_empty() { String::new() } else { format!(" at {}", shown(dims)) }
}
