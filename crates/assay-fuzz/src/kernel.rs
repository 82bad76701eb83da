//! Kernels with a manifest as candidates: shapes as ugly as the manifest allows, in buffers as
//! misaligned as it allows, with strides and overlaps where it declares strides.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use assay_contract::DeviceSubject;
use assay_contract::gates::trial::{Footprint, Trial, Tried, footprint, trial};
use assay_contract::repeated::{Repeated, repeated};
use assay_contract::spec::{DimSpec, Spec};
use assay_contract::subject::RunError;
use assay_num::random::SplitMix64;
use assay_record::{FuzzCase, FuzzKind, FuzzShape, FuzzVerdict, Outcome, Recipe, ViewStep};

use crate::candidate::{Candidate, HUGE, Planned, Runner, panic_words, timed};
use crate::shrink;

/// A shape.
type Dims = BTreeMap<String, i64>;

/// How kernels' inputs are filled: rows of all the styles of gate 3.
const FILL: &str = "mixed";
/// Sizes that programs get wrong, before a dim's tile and served sizes add theirs.
const SIZES: [i64; 24] = [
    1, 2, 3, 5, 7, 13, 17, 31, 32, 33, 61, 64, 65, 100, 127, 129, 251, 257, 509, 521, 1000, 1021,
    1031, 2053,
];
/// What a dim is held near while another one varies.
const HELD: i64 = 5;
/// Shapes drawn from the seed.
const DRAWN: usize = 16;
/// The period along the dim that a huge case repeats over: a prime, so that no tile divides it.
const PERIOD: i64 = 61;
/// More blocks than the last two axes of a grid have, and than 16 bits count.
const BLOCKS: u64 = 65_535;

/// What one case may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Elements of the largest tensor of an ordinary case.
    pub elements: u64,
    /// Bytes of the buffers of a huge case.
    pub bytes: u64,
}

/// A kernel with what its cases are.
pub struct KernelCandidate<'a> {
    spec: &'a Spec,
    limits: Limits,
    control_for: Option<String>,
}

impl<'a> KernelCandidate<'a> {
    /// A candidate of the kernel of a spec.
    pub fn new(spec: &'a Spec, limits: Limits) -> KernelCandidate<'a> {
        let broken = |gate| format!("is planted for gate {gate}");
        KernelCandidate { spec, limits, control_for: spec.control_for.map(broken) }
    }

    fn recipe(&self, dims: &Dims, view: Vec<ViewStep>, seed: u64) -> Recipe {
        let dims = dims.iter().map(|(name, size)| (name.clone(), *size)).collect();
        let candidate = self.spec.name.clone();
        Recipe { candidate, shape: shape(dims), view, fill: FILL.to_owned(), seed }
    }

    /// The ordinary shapes, each with what it takes.
    fn shapes(&self, seed: u64) -> Vec<(Dims, Result<Footprint, String>)> {
        let mut shapes = match &self.spec.cases {
            Some(cases) => cases.clone(),
            None => self.chosen(seed),
        };
        let mut seen = BTreeSet::new();
        shapes.retain(|dims| seen.insert(dims.clone()));
        let with = |dims: Dims| {
            let taken = footprint(self.spec, &dims);
            (dims, taken)
        };
        shapes.into_iter().map(with).collect()
    }

    fn chosen(&self, seed: u64) -> Vec<Dims> {
        let dims = &self.spec.dims;
        let sizes: BTreeMap<&String, Vec<i64>> =
            dims.iter().map(|(name, dim)| (name, ugly_sizes(dim))).collect();
        let nearest = |sizes: &[i64]| sizes.iter().copied().min_by_key(|s| (s - HELD).abs());
        let held: Dims = sizes
            .iter()
            .filter_map(|(name, sizes)| Some(((*name).clone(), nearest(sizes)?)))
            .collect();
        let least = dims.iter().map(|(name, dim)| (name.clone(), dim.least)).collect();
        let mut shapes = vec![least, held.clone()];
        for (name, sizes) in &sizes {
            shapes.extend(sizes.iter().map(|size| with(&held, name, *size)));
        }
        let mut random = SplitMix64::new(seed).fork(&self.spec.name);
        for _ in 0..DRAWN {
            let draw = |(name, sizes): (&&String, &Vec<i64>), random: &mut SplitMix64| {
                let at = random.below(sizes.len().max(1) as u64) as usize;
                Some(((*name).clone(), *sizes.get(at)?))
            };
            shapes.push(sizes.iter().filter_map(|pair| draw(pair, &mut random)).collect());
        }
        shapes.extend(self.many_blocks(&held));
        shapes
    }

    /// For each dim that a grid grows with, a shape of more blocks than 16 bits count, everything
    /// else small.
    fn many_blocks(&self, held: &Dims) -> Vec<Dims> {
        let least: Dims =
            held.keys().map(|name| (name.clone(), self.spec.dims[name].least)).collect();
        let blocks = |dims: &Dims| footprint(self.spec, dims).map_or(0, |taken| taken.blocks);
        let grown = |(name, dim): (&String, &DimSpec)| {
            // A dim without a tile is served no further than its largest size.
            dim.tile.or_else(|| (dim.largest() > 1).then_some(1))?;
            let mut size = up(dim, 65_537);
            while blocks(&with(&least, name, size)) <= BLOCKS {
                size = up(dim, size.checked_mul(2).filter(|size| *size < 1 << 26)?);
            }
            let one = blocks(&least).max(1);
            // The same number of blocks at every size: the grid does not grow with it.
            (dim.allows(size) && blocks(&with(&least, name, size)) > one)
                .then(|| with(&least, name, size))
        };
        self.spec.dims.iter().filter_map(grown).collect()
    }

    /// The case of 2^31 elements and more for real: one dim as long as it takes, the others at
    /// their largest served sizes, then at ever larger ones.
    fn huge(&self, seed: u64) -> Vec<Planned> {
        if self.spec.cases.is_some() {
            let dims = self.spec.served().into_iter().next().unwrap_or_default();
            let skip = Some("the manifest serves its own shapes alone".to_owned());
            let recipe = self.recipe(&dims, vec![ViewStep::Repeated(PERIOD as u64)], seed);
            return vec![Planned { recipe, elements: HUGE, skip }];
        }
        let largest: Dims =
            self.spec.dims.iter().map(|(name, dim)| (name.clone(), dim.largest())).collect();
        let mut reasons = Vec::new();
        for name in self.spec.dims.keys() {
            match self.grown(&largest, name) {
                Ok((dims, taken)) => {
                    let limit = self.limits.bytes;
                    let skip = (taken.bytes > limit).then(|| {
                        format!("its buffers take more than the {limit} bytes that it is given")
                    });
                    let period = up(&self.spec.dims[name], PERIOD) as u64;
                    let recipe = self.recipe(&dims, vec![ViewStep::Repeated(period)], seed);
                    return vec![Planned { recipe, elements: taken.elements, skip }];
                }
                Err(why) => reasons.push((name, why)),
            }
        }
        let (_, why) = reasons.pop().unwrap_or((&self.spec.name, "it has no dims".to_owned()));
        let recipe = self.recipe(&largest, vec![ViewStep::Repeated(PERIOD as u64)], seed);
        vec![Planned { recipe, elements: HUGE, skip: Some(why) }]
    }

    /// A shape with one dim long enough for 2^31 elements.
    fn grown(&self, largest: &Dims, name: &str) -> Result<(Dims, Footprint), String> {
        if !repeats_along(self.spec, name) {
            return Err(format!("its outputs do not have `{name}` for their first axis"));
        }
        let dim = &self.spec.dims[name];
        let at = |size: i64| {
            let dims = with(largest, name, size);
            footprint(self.spec, &dims).map(|taken| (dims, taken))
        };
        let (_, one) = at(up(dim, PERIOD))?;
        let each = (one.elements / up(dim, PERIOD) as u64).max(1);
        // One place past the wrap, so that the last one lies wholly beyond it.
        let size = up(dim, i64::try_from(HUGE / each + 1).unwrap_or(i64::MAX));
        if let Some(most) = dim.most.filter(|most| size > *most) {
            return Err(format!("`{name}` is at most {most}"));
        }
        let (dims, taken) = at(size)?;
        if taken.elements < HUGE {
            return Err(format!("no tensor reaches 2^31 elements along `{name}`"));
        }
        Ok((dims, taken))
    }

    /// Planned cases of one shape: dense, misaligned, and in place.
    fn views(&self, (number, dims): (usize, &Dims), taken: &Footprint, seed: u64) -> Vec<Planned> {
        let class = 1 + number as u64 % 15;
        let mut views = vec![vec![]];
        let misaligned = vec![ViewStep::Misalign(class)];
        if taken.threads < 1 << 22 {
            views.push(misaligned);
        } else if number % 2 == 1 {
            views = vec![misaligned];
        }
        if !self.spec.in_place.is_empty() && number % 3 == 0 {
            views.push(vec![ViewStep::Aliased]);
        }
        let most = self.limits.elements;
        let skip = (taken.elements > most)
            .then(|| format!("a tensor has more elements than a case here is given, {most}"));
        let planned = |view| Planned {
            recipe: self.recipe(dims, view, seed),
            elements: taken.elements,
            skip: skip.clone(),
        };
        views.into_iter().map(planned).collect()
    }

    /// Cases of no elements, which are counted where the manifest does not allow them.
    fn empty(&self, seed: u64) -> Option<Planned> {
        let (name, _) = self.spec.dims.iter().next()?;
        let served = self.spec.dims.iter().map(|(name, dim)| (name.clone(), dim.least)).collect();
        let dims = with(&served, name, 0);
        let skip = Some(footprint(self.spec, &dims).err()?);
        Some(Planned { recipe: self.recipe(&dims, vec![], seed), elements: 0, skip })
    }
}

fn shape(dims: Vec<(String, i64)>) -> FuzzShape {
    if dims.is_empty() { FuzzShape::Axes(Vec::new()) } else { FuzzShape::Dims(dims) }
}

fn with(dims: &Dims, name: &str, size: i64) -> Dims {
    let mut changed = dims.clone();
    changed.insert(name.to_owned(), size);
    changed
}

/// The least size from `size` on that a dim allows.
fn up(dim: &DimSpec, size: i64) -> i64 {
    let step = dim.step.max(1);
    let from = size.max(dim.least);
    from.checked_add(step - 1).map_or(from, |sum| sum / step * step)
}

/// The sizes that a dim is tried at: a few fixed ones, those around its tile and those it is
/// served at. One without a tile is tried at none beyond the largest served.
fn ugly_sizes(dim: &DimSpec) -> Vec<i64> {
    let step = dim.step.max(1);
    let mut sizes: Vec<i64> = SIZES.to_vec();
    sizes.extend([dim.least, dim.least + step]);
    sizes.extend(dim.served.iter().flat_map(|size| [*size, size - step, size + step]));
    if let Some(tile) = dim.tile {
        let around = |at: i64| [at - step, at, at + step];
        sizes.extend([tile, 2 * tile, 3 * tile].into_iter().flat_map(around));
    }
    let most = if dim.tile.is_some() { i64::MAX } else { dim.largest() };
    let mut sizes: Vec<i64> = sizes.into_iter().map(|size| up(dim, size)).collect();
    sizes.retain(|size| dim.allows(*size) && *size <= most);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

impl Candidate for KernelCandidate<'_> {
    fn name(&self) -> String {
        self.spec.name.clone()
    }

    fn kind(&self) -> FuzzKind {
        FuzzKind::Kernel
    }

    fn control_for(&self) -> Option<String> {
        self.control_for.clone()
    }

    fn cases(&self, seed: u64) -> Vec<Planned> {
        let mut cases: Vec<(u64, Planned)> = Vec::new();
        for (number, (dims, taken)) in self.shapes(seed).into_iter().enumerate() {
            match taken {
                Ok(taken) => {
                    let views = self.views((number, &dims), &taken, seed);
                    let cost = taken.threads.max(taken.elements);
                    cases.extend(views.into_iter().map(|planned| (cost, planned)));
                }
                Err(why) => {
                    let recipe = self.recipe(&dims, vec![], seed);
                    cases.push((0, Planned { recipe, elements: 0, skip: Some(why) }));
                }
            }
        }
        cases.sort_by_key(|(cost, _)| *cost);
        let cases = cases.into_iter().map(|(_, planned)| planned);
        self.empty(seed).into_iter().chain(cases).chain(self.huge(seed)).collect()
    }

    fn smaller(&self, recipe: &Recipe) -> Vec<Recipe> {
        let FuzzShape::Dims(dims) = &recipe.shape else { return Vec::new() };
        let held: Dims = dims.iter().cloned().collect();
        let huge = recipe.view.iter().any(|step| matches!(step, ViewStep::Repeated(_)));
        let mut smaller = if huge { Vec::new() } else { shrink::simpler(recipe) };
        for (name, size) in dims {
            let Some(dim) = self.spec.dims.get(name) else { continue };
            let sizes = shrink::sizes(u64::try_from(*size).unwrap_or(0));
            let mut sizes: Vec<i64> = sizes.into_iter().map(|size| up(dim, size as i64)).collect();
            sizes.dedup();
            for lower in sizes.into_iter().filter(|lower| lower < size) {
                let dims = with(&held, name, lower);
                if footprint(self.spec, &dims).is_ok() {
                    smaller.push(self.recipe(&dims, recipe.view.clone(), recipe.seed));
                }
            }
        }
        if huge {
            // Each run of these takes seconds; the nearest say most.
            smaller.reverse();
            smaller.truncate(4);
        }
        smaller
    }
}

/// Runs a kernel's cases on the device that it is bound to.
pub struct KernelRunner<'a> {
    subject: DeviceSubject<'a>,
    spent: bool,
}

impl<'a> KernelRunner<'a> {
    /// A runner of a kernel's cases.
    pub fn new(subject: DeviceSubject<'a>) -> KernelRunner<'a> {
        KernelRunner { subject, spent: false }
    }

    fn run_case(&mut self, recipe: &Recipe) -> FuzzCase {
        let skipped = |why: &str| FuzzCase::new(recipe.clone(), FuzzVerdict::Skipped, why);
        let dims: Dims = match &recipe.shape {
            FuzzShape::Dims(dims) => dims.iter().cloned().collect(),
            FuzzShape::Axes(axes) if axes.is_empty() => Dims::new(),
            FuzzShape::Axes(_) => return skipped("a kernel's shape names its dims"),
        };
        let spec = assay_contract::subject::Subject::spec(&self.subject);
        let taken = match footprint(spec, &dims) {
            Ok(taken) => taken,
            Err(why) => return skipped(&why),
        };
        if let Some(why) = misunderstood(spec, recipe) {
            return skipped(&why);
        }
        let tried = match period_of(recipe) {
            None => {
                let (misalign, alias) = placed(recipe);
                trial(&mut self.subject, &Trial { dims: &dims, seed: recipe.seed, misalign, alias })
            }
            Some(period) => {
                let Some(dim) = repeated_dim(spec, &dims) else {
                    return skipped("its outputs have no dim for their first axis");
                };
                let asked = Repeated { dims: &dims, dim: &dim, period, seed: recipe.seed };
                repeated(&mut self.subject, &asked)
            }
        };
        self.spent |= matches!(
            &tried.error,
            Some(RunError::Device { .. } | RunError::Fault { lost_device: true, .. })
        );
        FuzzCase { elements: taken.elements, ..case(recipe, tried) }
    }
}

/// Whether a dim is the first axis of every output, so that a huge case may repeat along it.
fn repeats_along(spec: &Spec, dim: &str) -> bool {
    let mut outputs = spec.signature.outputs.iter();
    outputs.all(|tensor| tensor.shape.first().is_some_and(|extent| extent.as_dim() == Some(dim)))
}

/// The dim that a huge case repeats along.
fn repeated_dim(spec: &Spec, dims: &Dims) -> Option<String> {
    let along = dims.iter().filter(|(name, _)| repeats_along(spec, name));
    along.max_by_key(|(_, size)| **size).map(|(name, _)| name.clone())
}

fn period_of(recipe: &Recipe) -> Option<i64> {
    recipe.view.iter().find_map(|step| match step {
        ViewStep::Repeated(period) => i64::try_from(*period).ok(),
        _ => None,
    })
}

/// What a recipe asks for that a kernel's case has not: nothing else is run in its place.
fn misunderstood(spec: &Spec, recipe: &Recipe) -> Option<String> {
    let known = |step: &ViewStep| {
        matches!(step, ViewStep::Misalign(_) | ViewStep::Aliased | ViewStep::Repeated(_))
    };
    if recipe.fill != FILL {
        return Some(format!("a kernel's inputs are filled as `{FILL}`, not `{}`", recipe.fill));
    }
    if !recipe.view.iter().all(known) {
        return Some("a kernel's view is `misalign:N`, `aliased` or `repeated:N`".to_owned());
    }
    let aliased = recipe.view.contains(&ViewStep::Aliased);
    if aliased && spec.in_place.is_empty() {
        return Some("it declares nothing `in_place`".to_owned());
    }
    let FuzzShape::Dims(dims) = &recipe.shape else { return None };
    if let Some((name, _)) = dims.iter().find(|(name, _)| !spec.dims.contains_key(name)) {
        let known: Vec<&str> = spec.dims.keys().map(String::as_str).collect();
        return Some(format!("it has no dim `{name}`, but {}", known.join(", ")));
    }
    let mut seen = BTreeSet::new();
    if let Some((name, _)) = dims.iter().find(|(name, _)| !seen.insert(name)) {
        return Some(format!("it names two sizes of `{name}`"));
    }
    not_repeated(spec, recipe, &dims.iter().cloned().collect())
}

/// Why inputs cannot repeat as a recipe asks for.
fn not_repeated(spec: &Spec, recipe: &Recipe, dims: &Dims) -> Option<String> {
    let period = recipe.view.iter().find_map(|step| match step {
        ViewStep::Repeated(period) => Some(*period),
        _ => None,
    })?;
    let dim = repeated_dim(spec, dims)?;
    let size = dims.get(&dim).copied().unwrap_or_default();
    let fits = i64::try_from(period).is_ok_and(|period| (1..=size).contains(&period));
    (!fits).then(|| format!("`repeated:{period}` is no part of {size} places along `{dim}`"))
}

/// The alignment class and whether outputs lie in their inputs' buffers.
fn placed(recipe: &Recipe) -> (u64, bool) {
    let class = recipe.view.iter().find_map(|step| match step {
        ViewStep::Misalign(class) => Some(*class),
        _ => None,
    });
    (class.unwrap_or(0), recipe.view.contains(&ViewStep::Aliased))
}

/// A trial as a case of a report.
fn case(recipe: &Recipe, tried: Tried) -> FuzzCase {
    let Tried { result, error } = tried;
    let verdict = match (result.outcome, &error) {
        (_, Some(RunError::Stopped)) => FuzzVerdict::Skipped,
        (Outcome::Pass, _) => FuzzVerdict::Pass,
        (Outcome::Unsupported, _) => FuzzVerdict::Unsupported,
        (Outcome::Fail, None) => FuzzVerdict::Wrong,
        (Outcome::Fail, Some(RunError::Request { .. })) => FuzzVerdict::Launch,
        (Outcome::Fail, Some(_)) => FuzzVerdict::Fault,
        _ => FuzzVerdict::Unproven,
    };
    let notes: Vec<String> =
        result.notes.iter().filter(|n| n.starts_with("parts")).cloned().collect();
    let reason = match notes.first() {
        Some(note) if verdict == FuzzVerdict::Pass => format!("{}; {note}", result.reason),
        _ => result.reason,
    };
    let mut case = FuzzCase::new(recipe.clone(), verdict, reason);
    case.margin = result.margin;
    if let Some(finding) = result.findings.into_iter().next() {
        case.output = finding.output;
        case.element = finding.element;
        (case.got, case.value, case.error) = (finding.got, finding.value, finding.error);
        case.place = finding.place;
    }
    case
}

impl Runner for KernelRunner<'_> {
    fn run(&mut self, recipe: &Recipe) -> FuzzCase {
        timed(|| {
            let run = AssertUnwindSafe(|| self.run_case(recipe));
            catch_unwind(run).unwrap_or_else(|panic| {
                // Assay's own code panicked, which says nothing about the kernel.
                let why = format!("assay panicked: {}", panic_words(&*panic));
                FuzzCase::new(recipe.clone(), FuzzVerdict::Unproven, why)
            })
        })
    }

    fn limit(&mut self, left: Option<Duration>) -> bool {
        self.subject.limit(left)
    }

    fn is_spent(&self) -> bool {
        self.spent
    }
}
