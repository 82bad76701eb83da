//! Gate 3, shapes: every served shape and the edges of every tile, each output element within its
//! error bound.
//!
//! Before a kernel is judged at a shape, the inputs must be able to fail it: losing the first, the
//! last or a tile-edge term of any reduction moves some output to ten times its bound. Terms that
//! are too quiet for that are made louder, a row each.
//!
//! A kernel with rounding points between its steps is judged by ranges, and besides it goes through
//! every finite value of each 16-bit input: see [`super::sweep`].

use std::collections::BTreeMap;

use assay_num::random::SplitMix64;
use assay_record::{CaseName, Gate, GateResult, Outcome};
use assay_reference::fill::shapes::{self as fill, Style};
use assay_reference::fill::{Layout, ranked, ties};
use assay_reference::rule::Rule;
use assay_reference::{Bounded, Dims, Evaluation, Inputs, Program};

use super::judge::{self, judge, judge_bounded};
use super::loudness::{Loudness, Raised};
use super::non_finite::meaningless;
use super::target::{Judge, Target, case, is_final, run};
use super::{GateContext, Tally, envelope, not_applicable, rules, same_bytes, sweep, twin};
use crate::subject::{RunError, RunResult, Subject};

/// How often the data of a run is drawn until the formula has a bound on it.
const DRAWS: usize = 4;
/// Inputs on which a style of data is tried before rows take it.
const PROBES: usize = 24;

/// Each output's values and error bounds, or why there are none.
type Bounds = Result<BTreeMap<String, Bounded>, String>;

/// Runs the gate.
pub fn check(subject: &mut dyn Subject, context: &GateContext<'_>) -> GateResult {
    let mut tally = Tally::new(Gate::Shapes);
    let target = match Target::of(subject.spec(), context.seed) {
        Ok(target) => target,
        Err(reason) => {
            tally.not_applicable(reason);
            return tally.finish();
        }
    };
    let mut gate = Running::new(tally, target);
    let shapes = envelope::served_and_edges(subject.spec());
    gate.styles = gate.usable_styles(subject, context);
    for dims in shapes {
        gate.shape(subject, context, &dims);
        if context.has_enough(&gate.tally) {
            break;
        }
    }
    same_bytes::check(&mut gate, subject, context);
    sweep::check(&mut gate, subject, context);
    let choices = gate.choices;
    choices.report(&mut gate.tally, || {
        let dims = subject.spec().served().into_iter().next().unwrap_or_default();
        case(subject, context, (Gate::Shapes, &dims), "choices").0
    });
    gate.tally.finish()
}

/// The gate's verdict on given inputs.
pub(super) fn given(
    subject: &mut dyn Subject,
    case: &CaseName,
    (dims, inputs): (&Dims, &Inputs),
    tally: Tally,
) -> GateResult {
    let target = match Target::of(subject.spec(), case.seed) {
        Ok(target) => target,
        Err(reason) => return not_applicable(case.gate, &reason),
    };
    let judge = target.judge.clone();
    let mut gate = Running::new(tally, target);
    // Ranges tell element by element where there is a bound, so that no other is missed.
    let is_sweep = matches!(&judge, Judge::Formula(program) if program.has_rounding_points());
    let prepared = Prepared { is_sweep, ..Prepared::new(case, dims, inputs) };
    match judge {
        // The bytes are compared where there is no bound too.
        Judge::Formula(_) if same_bytes::is_promised(subject.spec()) => {
            gate.bytes_run(subject, &prepared);
            if !gate.tally.failed() {
                gate.judged_run(subject, &prepared);
            }
        }
        Judge::Formula(_) => gate.judged_run(subject, &prepared),
        Judge::Rule(rule) => gate.ruled_run(subject, &rule, &prepared),
    }
    gate.tally.finish()
}

/// The gate at work.
pub(super) struct Running {
    pub(super) tally: Tally,
    pub(super) target: Target,
    /// The styles of data that the formula has bounds on.
    styles: Vec<Style>,
    /// Whether a case of the shape at hand failed; the other shapes show how far that reaches.
    pub(super) shape_failed: bool,
    stopped: bool,
    /// The rows of choices that were judged.
    choices: rules::Choices,
    /// Elements of sweeps judged, and those that had no bound.
    pub(super) swept: (usize, usize),
}

/// One case about to run.
pub(super) struct Prepared<'a> {
    pub(super) case: &'a CaseName,
    pub(super) dims: &'a Dims,
    pub(super) inputs: &'a Inputs,
    /// Whether it is one of a sweep, in which elements without a bound are passed over.
    pub(super) is_sweep: bool,
}

impl<'a> Prepared<'a> {
    /// A case of no sweep.
    pub(super) fn new(case: &'a CaseName, dims: &'a Dims, inputs: &'a Inputs) -> Prepared<'a> {
        Prepared { case, dims, inputs, is_sweep: false }
    }
}

impl Running {
    fn new(tally: Tally, target: Target) -> Running {
        Running {
            tally,
            target,
            styles: Vec::new(),
            shape_failed: false,
            stopped: false,
            choices: rules::Choices::default(),
            swept: (0, 0),
        }
    }

    fn shape(&mut self, subject: &mut dyn Subject, context: &GateContext<'_>, dims: &Dims) {
        self.shape_failed = false;
        let (shape_case, _) = case(subject, context, (Gate::Shapes, dims), "mixed");
        let layout = match self.target.layout(dims) {
            Ok(layout) => layout,
            Err(error) => return self.tally.fail(&shape_case, error.to_string()),
        };
        match self.target.judge.clone() {
            Judge::Formula(program) => {
                self.formula_shape(subject, context, (&program, dims, &layout));
            }
            Judge::Rule(rule) => self.rule_shape(subject, context, (&rule, dims, &layout)),
        }
    }

    /// The styles of data that give the formula no vanishing denominator and no overflow, tried at
    /// the smallest served shape; milder ones take the place of those that do.
    fn usable_styles(&mut self, subject: &dyn Subject, context: &GateContext<'_>) -> Vec<Style> {
        let served = subject.spec().served();
        let smallest = served.iter().min_by_key(|dims| dims.values().product::<i64>());
        let Some((dims, layout)) = smallest.and_then(|d| Some((d, self.target.layout(d).ok()?)))
        else {
            return vec![Style::Ordinary];
        };
        let (_, random) = case(subject, context, (Gate::Shapes, dims), "styles");
        let tiny = fill::tiny_scale(self.target.signature.scalars.values().copied());
        let usable = |style: &Style| {
            (0..PROBES).all(|probe| {
                let rows = vec![*style; layout.rows];
                let mut random = random.fork(&format!("{} {probe}", style.name()));
                let inputs = fill::build(&layout, &rows, tiny, &mut random);
                let evaluation = Evaluation::new(dims, &inputs, &self.target.arithmetic);
                let bounded = subject.reference(&evaluation);
                bounded.is_none_or(|b| b.is_ok_and(|bounded| meaningless(&bounded).is_none()))
            })
        };
        let (mut styles, mut changed) = (Vec::new(), Vec::new());
        for style in fill::styles(&layout) {
            let chosen = Some(style).filter(usable).or(style.milder().filter(usable));
            if chosen != Some(style) {
                let instead = chosen.map_or("left out", Style::name);
                changed.push(format!("{} ({instead})", style.name()));
            }
            styles.extend(chosen);
        }
        if !changed.is_empty() {
            self.tally.note(format!("no bound on rows of values: {}", changed.join(", ")));
        }
        styles
    }

    /// True if the case is to run.
    pub(super) fn wants(&mut self, context: &GateContext<'_>, case: &CaseName) -> bool {
        let left = self.shape_failed && context.leaves_failed_shapes();
        let wanted = !self.stopped && !left && context.wants(case);
        if wanted {
            self.tally.count();
        }
        wanted
    }

    fn formula_shape(
        &mut self,
        subject: &mut dyn Subject,
        context: &GateContext<'_>,
        (program, dims, layout): (&Program, &Dims, &Layout),
    ) {
        if let Some(inputs) = subject.prepare(Gate::Shapes, dims, context.seed) {
            let (case, _) = case(subject, context, (Gate::Shapes, dims), "prepared");
            if self.wants(context, &case) {
                self.judged_run(subject, &Prepared::new(&case, dims, &inputs));
            }
            return;
        }
        let tiny = fill::tiny_scale(self.target.signature.scalars.values().copied());
        let (ties_case, random) = case(subject, context, (Gate::Shapes, dims), "ties");
        let tied = program.choice().map(|_| ties::build(layout, &mut random.fork("rows")));
        for (number, rows) in plan_runs(&self.styles, layout).iter().enumerate() {
            let name = format!("mixed-{number}");
            let (case, random) = case(subject, context, (Gate::Shapes, dims), &name);
            if !self.wants(context, &case) {
                continue;
            }
            let setting = (program, dims, layout, tied.as_ref());
            self.mixed_run(subject, setting, (&case, rows, tiny), &random);
        }
        if let Some(inputs) = tied.filter(|_| self.wants(context, &ties_case)) {
            self.judged_run(subject, &Prepared::new(&ties_case, dims, &inputs));
        }
    }

    /// One run of rows in several styles, with terms made loud. Data on which the formula turns out
    /// to have no bound is drawn again.
    fn mixed_run(
        &mut self,
        subject: &mut dyn Subject,
        (program, dims, layout, tied): (&Program, &Dims, &Layout, Option<&Inputs>),
        (case, rows, tiny): (&CaseName, &[Place], f64),
        random: &SplitMix64,
    ) {
        let styles = styles_of(rows, layout.rows, &self.styles);
        for draw in 1..=DRAWS {
            let label = if draw == 1 { "rows".to_owned() } else { format!("rows {draw}") };
            let mut inputs = fill::build(layout, &styles, tiny, &mut random.fork(&label));
            let mut raised = Vec::new();
            let loudness = Loudness { program, target: &self.target, dims, layout };
            let terms = rows.iter().enumerate().flat_map(|(row, place)| match place {
                Place::Terms(terms) => terms.iter().map(|term| (row, *term)).collect(),
                _ => Vec::new(),
            });
            for (row, (reduction, term)) in terms {
                let shows = |inputs| loudness.shows(subject, inputs, (reduction, term));
                match loudness.raise(subject, &mut inputs, (row, reduction, term)) {
                    Raised::Quiet(_) if tied.is_some_and(shows) => {}
                    other => raised.push(other),
                }
            }
            let prepared = Prepared::new(case, dims, &inputs);
            let bounds = self.bounds(subject, &prepared);
            if matches!(bounds, Some(Err(_))) && draw < DRAWS {
                continue;
            }
            for raised in raised {
                match raised {
                    Raised::Nothing(reason) => self.tally.note(reason),
                    Raised::Quiet(reason) => self.tally.unproven(case, reason),
                    Raised::Loud => {}
                }
            }
            return self.run_within(subject, &prepared, bounds);
        }
    }

    pub(super) fn judged_run(&mut self, subject: &mut dyn Subject, prepared: &Prepared<'_>) {
        let bounds = self.bounds(subject, prepared);
        self.run_within(subject, prepared, bounds);
    }

    /// What the formula allows on a run's inputs, or why it has no bound there.
    fn bounds(&self, subject: &dyn Subject, prepared: &Prepared<'_>) -> Option<Bounds> {
        let evaluation = Evaluation::new(prepared.dims, prepared.inputs, &self.target.arithmetic);
        let bounded = subject.reference(&evaluation)?.map_err(|error| format!("fixture: {error}"));
        Some(bounded.and_then(|bounded| {
            let problem = meaningless(&bounded).filter(|_| !prepared.is_sweep);
            problem.map_or(Ok(bounded), Err)
        }))
    }

    fn run_within(
        &mut self,
        subject: &mut dyn Subject,
        prepared: &Prepared<'_>,
        bounds: Option<Bounds>,
    ) {
        let bounded = match bounds {
            None => return,
            Some(Ok(bounded)) => bounded,
            Some(Err(problem)) => return self.tally.unproven(prepared.case, problem),
        };
        let evaluation = Evaluation::new(prepared.dims, prepared.inputs, &self.target.arithmetic);
        let result = match run(subject, prepared.dims, prepared.inputs) {
            Ok(result) => result,
            Err(error) => return self.run_error(prepared.case, &error),
        };
        let at = (prepared.case, &evaluation);
        let notes = (&mut self.tally, &mut self.choices);
        let bounded = rules::given_choice((subject, &self.target), at, (bounded, &result), notes);
        let Some(bounded) = bounded else {
            self.shape_failed = true;
            return;
        };
        for tensor in &self.target.signature.outputs {
            let Some(bounded) = bounded.get(&tensor.name) else { continue };
            let bytes = result.outputs.get(&tensor.name).map(Vec::as_slice).unwrap_or_default();
            let judge = if prepared.is_sweep { judge_bounded } else { judge };
            let verdict = judge(tensor.format, bounded, bytes);
            self.tally.margin(verdict.margin);
            if prepared.is_sweep {
                self.swept.0 += verdict.elements;
                self.swept.1 += verdict.unbounded;
            }
            if verdict.rejected > 0 {
                self.shape_failed = true;
                let at = (tensor, prepared.dims);
                let finding = judge::finding(prepared.case, at, &verdict, Outcome::Fail);
                if let Some(finding) = finding {
                    self.tally.find(finding);
                }
            }
        }
        self.replaced(subject, prepared, &result);
    }

    /// Runs a kernel for its bytes alone.
    pub(super) fn bytes_run(&mut self, subject: &mut dyn Subject, prepared: &Prepared<'_>) {
        match run(subject, prepared.dims, prepared.inputs) {
            Ok(result) => self.replaced(subject, prepared, &result),
            Err(error) => self.run_error(prepared.case, &error),
        }
    }

    /// A replacement gives the bytes of the kernel it replaces, and any kernel those of its twin.
    fn replaced(&mut self, subject: &mut dyn Subject, prepared: &Prepared<'_>, result: &RunResult) {
        let run = (prepared.dims, prepared.inputs);
        if let Some(finding) = twin::difference(prepared.case, subject.spec(), run, result) {
            self.shape_failed = true;
            self.tally.find(finding);
        }
        let request = crate::subject::RunRequest::new(prepared.dims, prepared.inputs);
        let other = match subject.run_replaced(&request) {
            None => return,
            Some(Err(error)) => {
                let reason = format!("the kernel it replaces did not run: {error}");
                return self.tally.unproven(prepared.case, reason);
            }
            Some(Ok(other)) => other,
        };
        for tensor in &self.target.signature.outputs {
            let (ours, theirs) =
                (result.outputs.get(&tensor.name), other.outputs.get(&tensor.name));
            if ours != theirs {
                self.shape_failed = true;
                let reason = format!(
                    "`{}` differs from what `{}` gives on the same inputs",
                    tensor.name,
                    subject.spec().replaces.as_deref().unwrap_or("the kernel it replaces"),
                );
                self.tally.fail(prepared.case, reason);
            }
        }
    }

    fn run_error(&mut self, case: &CaseName, error: &RunError) {
        self.tally.run_error(case, error);
        self.shape_failed = true;
        self.stopped |= is_final(error);
    }

    fn rule_shape(
        &mut self,
        subject: &mut dyn Subject,
        context: &GateContext<'_>,
        (rule, dims, layout): (&Rule, &Dims, &Layout),
    ) {
        let scores = rule.scores().name.clone();
        let (length, tile) = ranked::extent(layout, &scores);
        let patterns = ranked::patterns(length, tile);
        for (number, patterns) in patterns.chunks(layout.rows.max(1)).enumerate() {
            let name = format!("ranked-{number}");
            let (case, random) = case(subject, context, (Gate::Shapes, dims), &name);
            if !self.wants(context, &case) {
                continue;
            }
            let inputs = ranked::build(layout, &scores, patterns, &mut random.fork("rows"));
            self.ruled_run(subject, rule, &Prepared::new(&case, dims, &inputs));
        }
    }

    fn ruled_run(&mut self, subject: &mut dyn Subject, rule: &Rule, prepared: &Prepared<'_>) {
        let Prepared { case, dims, inputs, .. } = *prepared;
        match run(subject, dims, inputs) {
            Err(error) => self.run_error(case, &error),
            Ok(result) => {
                let outputs = rules::decode(&self.target.signature, &result);
                let violations = rule.check(dims, inputs, &outputs, usize::MAX);
                if let Some(finding) = rules::finding(case, rule, violations) {
                    self.shape_failed = true;
                    self.tally.find(finding);
                }
                self.replaced(subject, prepared, &result);
            }
        }
    }
}

/// What a row is there for.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// A style of data.
    Style(Style),
    /// Terms whose loss must show, each with its reduction first.
    Terms(Vec<(usize, usize)>),
    /// Nothing.
    Free,
}

/// The rows of every run: one for each style and for each critical term of each reduction. A term
/// that is loud in a tensor which rows share takes a run of its own, since it would be as loud to
/// other rows; equal places of several such reductions share one.
fn plan_runs(styles: &[Style], layout: &Layout) -> Vec<Vec<Place>> {
    let rows = layout.rows.max(1);
    let mut own: Vec<Place> = styles.iter().map(|style| Place::Style(*style)).collect();
    let mut shared: BTreeMap<_, Vec<(usize, usize)>> = BTreeMap::new();
    for (number, reduction) in layout.reductions.iter().enumerate() {
        let is_shared = layout.is_loud_to_all(reduction);
        for (term, row) in layout.places(reduction) {
            if is_shared {
                shared.entry((term, row)).or_default().push((number, term));
            } else {
                put(&mut own, Place::Terms(vec![(number, term)]), (row, rows));
            }
        }
    }
    let alone = shared.into_iter().enumerate().map(|(turn, ((_, row), terms))| {
        let mut run = vec![Place::Free; row.unwrap_or(turn % rows)];
        run.push(Place::Terms(terms));
        run
    });
    own.chunks(rows).map(<[Place]>::to_vec).chain(alone).collect()
}

/// Puts a place into the first free row of all runs, or the first that is row `row` of its run.
fn put(places: &mut Vec<Place>, place: Place, (row, rows): (Option<usize>, usize)) {
    let fits = |at: usize| row.is_none_or(|row| at % rows == row);
    let mut at = 0;
    while !fits(at) || places.get(at).is_some_and(|taken| *taken != Place::Free) {
        at += 1;
    }
    places.resize(places.len().max(at + 1), Place::Free);
    places[at] = place;
}

/// The style of every row of a run; rows that nothing needs take turns at all styles.
fn styles_of(places: &[Place], rows: usize, styles: &[Style]) -> Vec<Style> {
    let style = |row: usize| match places.get(row) {
        Some(Place::Style(style)) => *style,
        Some(Place::Terms(_)) => Style::Ordinary,
        Some(Place::Free) | None => {
            styles.get(row % styles.len().max(1)).copied().unwrap_or(Style::Ordinary)
        }
    };
    (0..rows).map(style).collect()
}
