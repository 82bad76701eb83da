//! What a kernel registers: its formula, its served shapes, its arguments and launches, and the
//! promises the gates hold it to. Plain data; nothing here reads a file or knows a device.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use assay_num::Format;
use assay_record::Gate;
use assay_reference::{
    Arithmetic, Bounded, Dims, Evaluation, Extent, FixtureProblem, Formula, Limits, Order,
    ProblemKind, Program, Replay, Signature,
};

use crate::limits::Compiled;
use crate::subject::Evaluated;
use crate::twins::Twin;

/// The contract of one kernel.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The kernel's name, `[a-z0-9_]+`, unique in a run.
    pub name: String,
    /// Where the compiled code is; `None` for a kernel that is a Rust function.
    pub module: Option<Arc<ModuleRef>>,
    /// The dimensions that shapes and launches are expressions of.
    pub dims: BTreeMap<String, DimSpec>,
    /// Explicit served shapes; without them, the product of every dimension's served sizes.
    pub cases: Option<Vec<Dims>>,
    /// Every buffer and scalar a launch may name, in the order declared.
    pub arguments: Vec<ArgumentSpec>,
    /// The launches that make one run, in order.
    pub launches: Vec<LaunchSpec>,
    /// The tensors and scalars as the formula sees them.
    pub signature: Signature,
    /// The reference, unless a named rule is.
    pub formula: Option<Formula>,
    /// The checked and planned formula, in the form in which the kernel computes it.
    pub program: Option<Arc<Program>>,
    /// The formula as stated, where the kernel computes it in another form. It decides classes.
    pub stated: Option<Arc<Program>>,
    /// The family whose stored text the formula is and whose fills the gates use.
    pub family: Option<String>,
    /// The stated rule (top-k, argmax) that judges this kernel in place of a formula.
    pub rule: Option<RuleSpec>,
    /// How the kernel computes: depth per reduction, approximations, flushing.
    pub arithmetic: Arithmetic,
    /// The format sums are carried in.
    pub accumulator: Format,
    /// The launch's own orders of summation, for gate 4's replays.
    pub orders: Vec<Order>,
    /// Pairs (output, input) that the caller may place in one buffer.
    pub in_place: Vec<(String, String)>,
    /// The kernel whose bytes this one must equal.
    pub replaces: Option<String>,
    /// The host function whose bytes this one must equal.
    pub twin: Option<&'static Twin>,
    /// How NaN travels from inputs to outputs.
    pub nan: NanRule,
    /// Why the output's own rounding hides an error in the sums, where it does.
    pub hides_sums: Option<String>,
    /// Failures on a shipped kernel that are reported and not hidden.
    pub known: Vec<KnownFinding>,
    /// The gate that this kernel, a planted control, must fail.
    pub control_for: Option<Gate>,
    /// The kernel that the control is a broken copy of.
    pub control_of: Option<String>,
    /// The chips that a control of gate 5 must be red on, and no others; any where empty.
    pub control_chips: Vec<String>,
    /// The chips that it is launched on; where empty, those that it was compiled for.
    pub chips: Vec<String>,
    /// The kernel whose random inputs this one is judged on, where it is a broken build of it.
    pub drawn_as: Option<String>,
    /// The device backends that can run it; empty means all.
    pub backends: Vec<String>,
    /// Warp instructions one launch may take, where the default guess is too small.
    pub budget: Option<Extent>,
    /// The build of it whose phases are stamped, where there is one.
    pub stamps: Option<StampsSpec>,
    /// Where it was registered.
    pub source: SourcePlace,
}

impl Spec {
    /// The formula's values and error bounds of each output, as ranges where it has rounding
    /// points; `None` if a rule judges the kernel.
    pub fn bounds(&self, evaluation: &Evaluation<'_>) -> Option<Evaluated<Bounded>> {
        let mut bounded = self.program.as_ref()?.range(evaluation);
        if let (Some(stated), Ok(bounded), None) = (&self.stated, &mut bounded, &evaluation.drop) {
            match stated.value(evaluation) {
                Ok(values) => note_disagreement(bounded, &values),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(bounded)
    }

    /// Each output with the sums carried in another format; `None` if a rule judges the kernel.
    pub fn replays(
        &self,
        evaluation: &Evaluation<'_>,
        replay: &Replay,
    ) -> Option<Evaluated<Vec<f64>>> {
        Some(self.program.as_ref()?.replay(evaluation, replay))
    }

    /// An empty contract for a kernel called `name`: no dimension, argument or launch yet.
    pub fn new(name: &str, signature: Signature) -> Spec {
        Spec {
            name: name.to_owned(),
            module: None,
            dims: BTreeMap::new(),
            cases: None,
            arguments: Vec::new(),
            launches: Vec::new(),
            signature,
            formula: None,
            program: None,
            stated: None,
            family: None,
            rule: None,
            arithmetic: Arithmetic::default(),
            accumulator: Format::F32,
            orders: Vec::new(),
            in_place: Vec::new(),
            replaces: None,
            twin: None,
            nan: NanRule::Propagate,
            hides_sums: None,
            known: Vec::new(),
            control_for: None,
            control_of: None,
            control_chips: Vec::new(),
            chips: Vec::new(),
            drawn_as: None,
            backends: Vec::new(),
            budget: None,
            stamps: None,
            source: SourcePlace::default(),
        }
    }

    /// Every shape the engine calls the kernel at, in the order written.
    pub fn served(&self) -> Vec<Dims> {
        if let Some(cases) = &self.cases {
            return cases.clone();
        }
        let mut shapes = vec![Dims::new()];
        for (name, dim) in &self.dims {
            shapes = shapes.iter().flat_map(|shape| extend(shape, name, &dim.served)).collect();
        }
        shapes
    }

    /// What callers promise of the kernel's inputs, by name.
    pub fn limits(&self) -> BTreeMap<String, Limits> {
        let promised = self.arguments.iter().filter(|a| a.limits != Limits::default());
        promised.map(|argument| (argument.name.clone(), argument.limits.clone())).collect()
    }

    /// The argument called `name`.
    pub fn argument(&self, name: &str) -> Option<&ArgumentSpec> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// The input that the output called `output` may share a buffer with.
    pub fn in_place_of(&self, output: &str) -> Option<&str> {
        self.in_place.iter().find(|(out, _)| out == output).map(|(_, input)| input.as_str())
    }

    /// True if this kernel is planted to fail a gate.
    pub fn is_control(&self) -> bool {
        self.control_for.is_some()
    }

    /// The known finding registered for `gate`.
    pub fn known_for(&self, gate: Gate) -> Option<&KnownFinding> {
        self.known.iter().find(|finding| finding.gate == gate)
    }

    /// The architecture that the kernel was compiled for, where its module names one.
    pub fn architecture(&self) -> Option<&str> {
        self.module.as_ref()?.architecture()
    }

    /// True if a device of this backend can be asked to run the kernel.
    pub fn runs_on(&self, backend: &str) -> bool {
        self.backends.is_empty() || self.backends.iter().any(|name| name == backend)
    }
}

/// Adds a problem to each output whose value in the form that the kernel computes differs from the
/// stated formula's by more than the roundings of `f64`.
fn note_disagreement(bounded: &mut BTreeMap<String, Bounded>, stated: &BTreeMap<String, Vec<f64>>) {
    for (name, bounded) in bounded {
        let Some(stated) = stated.get(name) else { continue };
        let differs = |place: &usize| {
            let (value, other) = (bounded.value[*place], stated[*place]);
            // The middle of a range may be any number in it away from the value.
            let share = if bounded.ranged { 1.0 } else { 2f64.powi(-20) };
            let slack = bounded.error[*place] * share + other.abs() * 2f64.powi(-40);
            value.is_finite() && other.is_finite() && (value - other).abs() > slack
        };
        let mut places = (0..bounded.value.len().min(stated.len())).filter(differs);
        let Some(first) = places.next() else { continue };
        let count = 1 + places.count() as u64;
        bounded.problems.push(FixtureProblem {
            kind: ProblemKind::Disagreement,
            statement: name.clone(),
            expression: format!("{name}[{first}] = {:e}", bounded.value[first]),
            element: vec![first as i64],
            count,
        });
    }
}

fn extend(shape: &Dims, name: &str, sizes: &[i64]) -> Vec<Dims> {
    let with = |size: &i64| {
        let mut larger = shape.clone();
        larger.insert(name.to_owned(), *size);
        larger
    };
    sizes.iter().map(with).collect()
}

/// A shape for people: `cols=4096,rows=7`.
pub(crate) fn shown(dims: &Dims) -> String {
    let pairs: Vec<String> = dims.iter().map(|(name, size)| format!("{name}={size}")).collect();
    pairs.join(",")
}

/// The compiled code a kernel's symbols are looked up in.
#[derive(Debug, Clone)]
pub struct ModuleRef {
    /// The name the manifest gives it.
    pub name: String,
    /// What the bytes are.
    pub kind: ModuleKind,
    /// The file, as found from the manifest; shown in places such as `row_sum.ptx:42`.
    pub path: PathBuf,
    /// The file's bytes.
    pub bytes: Arc<Vec<u8>>,
    /// The source it was compiled from, for people.
    pub source: Option<PathBuf>,
    /// What compilers made of its kernels, as far as it is known.
    pub compiled: Compiled,
    /// The chips that its kernels are launched on, where they name none themselves.
    pub chips: Vec<String>,
    /// The one architecture that it was compiled for, as its PTX names it (`sm_90a`), where the
    /// manifest asks for one: an emulator is then opened as that chip.
    pub target: Option<String>,
}

impl ModuleRef {
    /// The chip of [`ModuleRef::target`], without the features in its name: `sm_90`.
    pub fn architecture(&self) -> Option<&str> {
        let target = self.target.as_deref()?;
        Some(target.trim_end_matches(|c: char| c.is_ascii_lowercase()))
    }

    /// Whether code for [`ModuleRef::target`] runs on an architecture: on the same and on later
    /// ones, but with the features of one chip (`sm_90a`) only there, with those of a family
    /// (`sm_120f`) only in it.
    pub fn runs_on(&self, architecture: &str) -> bool {
        let Some(target) = self.target.as_deref() else { return true };
        let number = |name: &str| -> Option<u32> {
            let digits = name.strip_prefix("sm_")?;
            digits.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse().ok()
        };
        let (Some(own), Some(other)) = (number(target), number(architecture)) else { return true };
        match target.chars().last() {
            Some('a') => own == other,
            Some('f') => own / 10 == other / 10 && own <= other,
            _ => own <= other,
        }
    }
}

/// A build of a kernel that stamps its phases. Its one launch is the kernel's own, with the buffer
/// of stamps behind the other arguments.
#[derive(Debug, Clone)]
pub struct StampsSpec {
    /// The stamped code.
    pub module: Arc<ModuleRef>,
    /// The kernel's symbol in it.
    pub symbol: String,
    /// The names of the phases, in the order of their numbers.
    pub phases: Vec<String>,
    /// What stamps.
    pub lanes: StampLanes,
    /// Stamps of one lane at the most, its end included.
    pub most: u32,
}

/// What has a lane of stamps of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampLanes {
    /// Every warp.
    Warps,
    /// Every block.
    Blocks,
}

/// The kinds of compiled code a manifest can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleKind {
    /// PTX text.
    Ptx,
    /// An ELF image for one architecture.
    Cubin,
    /// Images for several architectures.
    Fatbin,
    /// Nothing that a device here loads: only images that gate 5 reads.
    Images,
    /// Nothing yet: it would have to be compiled first, and why that was not done.
    Unbuilt(String),
}

/// One dimension of the served envelope; all sizes are counts of elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimSpec {
    /// The sizes the engine calls the kernel at.
    pub served: Vec<i64>,
    /// The size the kernel works through this dimension in, if it has tiles.
    pub tile: Option<i64>,
    /// Every valid size is a multiple of it.
    pub step: i64,
    /// The least valid size.
    pub least: i64,
    /// The largest valid size, where the kernel has one.
    pub most: Option<i64>,
}

impl DimSpec {
    /// True if the kernel promises to be right at `size`.
    pub fn allows(&self, size: i64) -> bool {
        let most = self.most.unwrap_or(i64::MAX);
        (self.least..=most).contains(&size) && size % self.step == 0
    }

    /// The valid sizes in words: `from 4 to 256 in steps of 4`.
    pub fn valid_sizes(&self) -> String {
        let DimSpec { least, step, .. } = self;
        match self.most {
            Some(most) => format!("from {least} to {most} in steps of {step}"),
            None => format!("from {least} on in steps of {step}"),
        }
    }

    /// The largest served size; `least` if none is served.
    pub fn largest(&self) -> i64 {
        self.served.iter().copied().max().unwrap_or(self.least)
    }

    /// The valid sizes gate 3 visits beside the served ones, ascending: the least, a tile minus a
    /// step, a tile, a tile plus a step and the largest served. Empty without a tile.
    pub fn edges(&self) -> Vec<i64> {
        let Some(tile) = self.tile else { return Vec::new() };
        let wanted = [self.least, tile - self.step, tile, tile + self.step, self.largest()];
        let mut sizes: Vec<i64> = wanted.into_iter().filter(|size| self.allows(*size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// A buffer or a scalar that launches pass to the kernel.
#[derive(Debug, Clone)]
pub struct ArgumentSpec {
    /// Its name in `launches` and in the formula.
    pub name: String,
    /// What the kernel does with it.
    pub role: Role,
    /// The format of an element, or of the scalar.
    pub format: Format,
    /// Elements along each axis; empty for scalars and dims.
    pub shape: Vec<Extent>,
    /// Distance in elements between neighbours along each axis; row-major and dense without it.
    pub strides: Option<Vec<Extent>>,
    /// The alignment in bytes that the caller promises; the buffer is also tried at offsets that
    /// keep no more than that.
    pub align: u64,
    /// The scalar's value.
    pub value: Option<f64>,
    /// The integer a `dim` argument passes; its own dimension without it.
    pub extent: Option<Extent>,
    /// True if the caller clears the buffer before every run.
    pub zeroed: bool,
    /// What the caller promises of an input's elements.
    pub limits: Limits,
}

/// What a kernel does with an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Read, and not written.
    In,
    /// Written in full, and judged.
    Out,
    /// Read, then overwritten by the output paired with it in `in_place`.
    InOut,
    /// Free for the kernel to use between and inside its launches.
    Scratch,
    /// A number passed by value.
    Scalar,
    /// A dimension passed by value.
    Dim,
}

impl Role {
    /// True if the argument is memory.
    pub fn is_buffer(self) -> bool {
        !matches!(self, Role::Scalar | Role::Dim)
    }
}

/// One launch: every number an expression of the dims.
#[derive(Debug, Clone)]
pub struct LaunchSpec {
    /// The kernel's symbol in the module.
    pub symbol: String,
    /// Blocks along x, y and z.
    pub grid: [Extent; 3],
    /// Threads along x, y and z.
    pub block: [Extent; 3],
    /// Blocks of a cluster along x, y and z.
    pub cluster: [Extent; 3],
    /// Whether all blocks must be resident together, as for a barrier of the whole grid.
    pub cooperative: bool,
    /// Bytes of dynamic shared memory.
    pub shared: Extent,
    /// Names of the arguments, in the symbol's order.
    pub arguments: Vec<String>,
    /// Where it is written.
    pub source: SourcePlace,
}

/// A rule stated in place of a formula.
#[derive(Debug, Clone)]
pub struct RuleSpec {
    /// `top_k`, `argmax`: a rule of [`assay_reference::rule`].
    pub name: String,
    /// The rule's parameters, as expressions of dims or names of arguments.
    pub parameters: BTreeMap<String, String>,
}

/// How NaN travels from inputs to outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NanRule {
    /// As in arithmetic on the formula.
    Propagate,
    /// As the rule says.
    Stated,
}

/// A gate failure on a shipped kernel: it must keep failing until the entry is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFinding {
    /// The gate that fails.
    pub gate: Gate,
    /// What fails, in a sentence.
    pub what: String,
    /// Since when it is known (year and month).
    pub since: String,
    /// Where it is tracked.
    pub link: String,
}

/// A place in a manifest or a source file.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    /// The file as the user named it.
    pub file: String,
    /// Counted from 1; 0 where unknown.
    pub line: u32,
    /// Counted from 1 in characters; 0 where unknown.
    pub column: u32,
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.file);
        }
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
