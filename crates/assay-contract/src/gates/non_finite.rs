//! Gate 1, non-finite: what NaN and infinities in the inputs do to the class of every output.
//!
//! No tolerance: an output is finite, NaN, +Inf or -Inf as the formula says. Before the kernel
//! runs, the fixture must be able to tell: its classes differ from one output to another, they
//! survive small changes of the finite data, and an infinity's sign is beyond rounding errors.

use std::collections::{BTreeMap, BTreeSet};

use assay_num::random::SplitMix64;
use assay_num::{Class, Format};
use assay_record::{CaseName, Evidence, Gate, GateResult, Number, Outcome};
use assay_reference::fill::non_finite::{self as fill, Planted};
use assay_reference::fill::{Layout, TensorLayout};
use assay_reference::rule::Rule;
use assay_reference::{
    Bounded, Dims, Evaluation, EvaluationError, Inputs, ProblemKind, Program, Tensor,
};

use super::judge::{element, element_name};
use super::rules::{self, Choices, Followed};
use super::target::{Judge, Target, case, is_final, run};
use super::{GateContext, Tally, envelope, evidence};
use crate::subject::{RunError, RunResult, Subject};

/// How often a run is tried with finite data of its own, where the shape's cannot tell.
const REDRAWS: usize = 16;

/// How many lines a plant is tried on before it stays where nothing shows it.
const LINES_TRIED: usize = 64;

/// Runs the gate.
pub fn check(subject: &mut dyn Subject, context: &GateContext<'_>) -> GateResult {
    let mut tally = Tally::new(Gate::NonFinite);
    let target = match Target::of(subject.spec(), context.seed) {
        Ok(target) => target,
        Err(reason) => {
            tally.not_applicable(reason);
            return tally.finish();
        }
    };
    let mut gate = Running { tally, shape_failed: false, stopped: false };
    for dims in envelope::small(subject.spec()) {
        gate.shape(subject, context, (&target, &dims));
        if context.has_enough(&gate.tally) {
            break;
        }
    }
    gate.tally.finish()
}

/// The gate's verdict on given inputs: none where a class hangs on the finite data or on rounding.
pub(super) fn given(
    subject: &mut dyn Subject,
    case: &CaseName,
    (dims, inputs): (&Dims, &Inputs),
    tally: &mut Tally,
) {
    let target = match Target::of(subject.spec(), case.seed) {
        Ok(target) => target,
        Err(reason) => return tally.not_applicable(reason),
    };
    let classes = match &target.judge {
        Judge::Formula(program) => certain_classes(subject, program, (&target, dims, inputs)),
        Judge::Rule(_) => Some(BTreeMap::new()),
    };
    let Some(classes) = classes else {
        return tally.unproven(case, "a class hangs on the finite data, or on its rounding");
    };
    let result = match run(subject, dims, inputs) {
        Ok(result) => result,
        Err(error) => return tally.run_error(case, &error),
    };
    let finding = match &target.judge {
        Judge::Formula(_) => target.signature.outputs.iter().find_map(|tensor| {
            let classes = classes.get(&tensor.name)?;
            wrong_class(case, (tensor, dims, &result), classes, &|_| String::new())
        }),
        Judge::Rule(rule) => wrong_choice(case, (rule, &target, dims), inputs, &result),
    };
    if let Some(finding) = finding {
        tally.find(finding);
    }
}

/// The classes of the outputs, if neighbouring data and rounding errors give the same.
fn certain_classes(
    subject: &dyn Subject,
    program: &Program,
    (target, dims, inputs): (&Target, &Dims, &Inputs),
) -> Option<BTreeMap<String, Vec<Class>>> {
    let layout = target.layout(dims).ok()?;
    let classes_of =
        |inputs: &Inputs| program.classes(&Evaluation::new(dims, inputs, &target.arithmetic)).ok();
    let classes = classes_of(inputs)?;
    let neighbour = fill::neighbour(inputs, &layout, &mut SplitMix64::new(1));
    let mut tamed = inputs.clone();
    let mut moved = neighbour;
    for tensor in &layout.tensors {
        let (Some(moved), Some(tamed)) =
            (moved.tensors.get_mut(&tensor.name), tamed.tensors.get_mut(&tensor.name))
        else {
            continue;
        };
        for (moved, tamed) in moved.iter_mut().zip(tamed).filter(|(_, tamed)| !tamed.is_finite()) {
            *moved = *tamed;
            *tamed = if tamed.is_nan() { 1.0 } else { tamed.signum() * large(tensor.format) };
        }
    }
    let bounded = subject.reference(&Evaluation::new(dims, &tamed, &target.arithmetic))?.ok()?;
    let uncertain = |(name, classes): (&String, &Vec<Class>)| {
        bounded.get(name).is_some_and(|bounded| uncertain_sign(classes, bounded).is_some())
    };
    let certain = classes_of(&moved)? == classes && !classes.iter().any(uncertain);
    certain.then_some(classes)
}

struct Running {
    tally: Tally,
    /// Whether a case of the shape at hand failed; the other shapes show how far that reaches.
    shape_failed: bool,
    stopped: bool,
}

/// What the runs of one tensor's plants showed of the fixture.
#[derive(Default)]
struct Fixture {
    classes: BTreeSet<Class>,
    /// For each place that held a plant by itself, whether some run with it changed an output.
    places: BTreeMap<usize, bool>,
    all_ran: bool,
}

impl Running {
    fn shape(
        &mut self,
        subject: &mut dyn Subject,
        context: &GateContext<'_>,
        (target, dims): (&Target, &Dims),
    ) {
        self.shape_failed = false;
        let (base_case, random) = case(subject, context, (Gate::NonFinite, dims), "base");
        let layout = match target.layout(dims) {
            Ok(layout) => layout,
            Err(error) => return self.tally.fail(&base_case, error.to_string()),
        };
        let prepared = subject.prepare(Gate::NonFinite, dims, context.seed);
        let is_prepared = prepared.is_some();
        let base = prepared.unwrap_or_else(|| base_of(target, &layout, &random));
        let neighbour = fill::neighbour(&base, &layout, &mut random.fork("neighbour"));
        let setting = Setting { target, dims, layout: &layout, base: &base, neighbour: &neighbour };
        let problem = subject.reference(&setting.evaluation(&base)).and_then(|base| match base {
            Ok(bounded) => meaningless(&bounded),
            Err(error) => Some(fixture_error(&error)),
        });
        if let Some(problem) = problem {
            return self.tally.unproven(&base_case, problem);
        }
        let mut fixtures: BTreeMap<String, Fixture> = BTreeMap::new();
        for planted in fill::runs(&layout, &mut random.fork("runs")) {
            let planted = setting.shown(planted, &mut random.fork("lines"));
            let fixture = fixtures
                .entry(planted.tensor.clone())
                .or_insert_with(|| Fixture { all_ran: true, ..Fixture::default() });
            let (case, own) = case(subject, context, (Gate::NonFinite, dims), &planted.name());
            let redraws = (!is_prepared).then_some(&own);
            if self.stopped || self.shape_failed || !context.wants(&case) {
                fixture.all_ran = false;
                continue;
            }
            self.tally.count();
            self.planted(subject, (&case, &setting, &planted), redraws, fixture);
        }
        for (tensor, mut fixture) in fixtures.into_iter().filter(|(_, fixture)| fixture.all_ran) {
            for place in setting.forget_unread(&tensor, &mut fixture) {
                let at = crate::spec::shown(dims);
                self.tally.note(format!("the formula does not read `{tensor}` at {place} ({at})"));
            }
            if let Some(reason) = fixture.weakness(&tensor) {
                self.tally.unproven(&base_case, reason);
            }
        }
    }

    fn planted(
        &mut self,
        subject: &mut dyn Subject,
        (case, setting, planted): (&CaseName, &Setting<'_>, &Planted),
        redraws: Option<&SplitMix64>,
        fixture: &mut Fixture,
    ) {
        let inputs = planted.apply(setting.base, |value| value);
        let expected =
            setting.expected(subject, planted, &inputs).map(|expected| (inputs, expected));
        let expected = expected.or_else(|reason| {
            let redrawn = redraws.and_then(|random| setting.redrawn(subject, planted, random));
            redrawn.ok_or(reason)
        });
        match expected {
            Err(reason) => {
                self.tally.unproven(case, reason);
                fixture.all_ran = false;
            }
            Ok((inputs, expected)) => {
                fixture.see(&expected, planted);
                match run(subject, setting.dims, &inputs) {
                    Err(error) => self.run_error(case, &error),
                    Ok(result) => match setting.given_choice(case, expected, &inputs, &result) {
                        Ok(expected) => {
                            self.judge((case, setting, planted), &expected, &inputs, &result);
                        }
                        Err(finding) => {
                            self.shape_failed = true;
                            self.tally.find(*finding);
                        }
                    },
                }
            }
        }
    }

    fn run_error(&mut self, case: &CaseName, error: &RunError) {
        self.tally.run_error(case, error);
        self.shape_failed = true;
        self.stopped |= is_final(error);
    }

    fn judge(
        &mut self,
        (case, setting, planted): (&CaseName, &Setting<'_>, &Planted),
        expected: &Expected,
        inputs: &Inputs,
        result: &RunResult,
    ) {
        let finding = match &setting.target.judge {
            Judge::Formula(_) => setting.target.signature.outputs.iter().find_map(|tensor| {
                let because = |element: &[i64]| nearest_plant(setting, planted, element);
                let classes = expected.classes.get(&tensor.name)?;
                wrong_class(case, (tensor, setting.dims, result), classes, &because)
            }),
            Judge::Rule(rule) => {
                wrong_choice(case, (rule, setting.target, setting.dims), inputs, result)
            }
        };
        if let Some(finding) = finding {
            self.shape_failed = true;
            self.tally.find(finding);
        }
    }
}

impl Fixture {
    fn see(&mut self, expected: &Expected, planted: &Planted) {
        self.classes.extend(expected.classes.values().flatten().copied());
        for (plant, _) in &planted.plants {
            if let [(from, to, _)] = plant.stretches[..]
                && from + 1 == to
            {
                *self.places.entry(from).or_default() |= expected.changes;
            }
        }
    }

    /// Why the runs of one tensor prove nothing, if they do not.
    fn weakness(&self, tensor: &str) -> Option<String> {
        if self.classes.len() == 1 && !self.places.values().any(|changes| *changes) {
            let class = self.classes.first()?;
            return Some(format!("every output is {class} whatever is planted in `{tensor}`"));
        }
        let (place, _) = self.places.iter().find(|(_, changes)| !**changes)?;
        Some(format!("nothing planted in `{tensor}` at place {place} changes an output"))
    }
}

/// What a run's outputs must be.
struct Expected {
    /// Each output's classes; empty for kernels that a rule judges.
    classes: BTreeMap<String, Vec<Class>>,
    /// True if some output differs from the one without plants.
    changes: bool,
}

/// One shape with its finite data.
struct Setting<'a> {
    target: &'a Target,
    dims: &'a Dims,
    layout: &'a Layout,
    base: &'a Inputs,
    neighbour: &'a Inputs,
}

impl Setting<'_> {
    fn evaluation<'b>(&'b self, inputs: &'b Inputs) -> Evaluation<'b> {
        Evaluation::new(self.dims, inputs, &self.target.arithmetic)
    }

    /// The run with its plant on a line where it shows, if it is a NaN by itself in a tensor of
    /// which the inputs decide what is read: a page that no sequence holds shows nothing.
    fn shown(&self, planted: Planted, random: &mut SplitMix64) -> Planted {
        let Judge::Formula(program) = &self.target.judge else { return planted };
        let [(plant, _)] = &planted.plants[..] else { return planted };
        let is_nan = matches!(plant.stretches[..], [(_, _, value)] if value.is_nan());
        if !is_nan || !program.gathers(&planted.tensor) {
            return planted;
        }
        let shows =
            |planted: &Planted| self.shows(program, &planted.apply(self.base, |value| value));
        if shows(&planted) {
            return planted;
        }
        let mut lines =
            self.layout.tensor(&planted.tensor).map_or_else(Vec::new, TensorLayout::main_lines);
        random.shuffle(&mut lines);
        let moved = |line| Planted { plants: vec![(plant.clone(), line)], ..planted.clone() };
        lines.into_iter().take(LINES_TRIED).map(moved).find(shows).unwrap_or(planted.clone())
    }

    /// What the outputs must be, or why this fixture could not tell.
    fn expected(
        &self,
        subject: &dyn Subject,
        planted: &Planted,
        inputs: &Inputs,
    ) -> Result<Expected, String> {
        match &self.target.judge {
            Judge::Formula(program) => self.classes(subject, program, planted, inputs),
            Judge::Rule(rule) => {
                let outputs = |inputs| {
                    rule.expected(self.dims, inputs).map_err(|error| format!("fixture: {error}"))
                };
                let same = same_outputs(&outputs(inputs)?, &outputs(self.base)?);
                Ok(Expected { classes: BTreeMap::new(), changes: !same })
            }
        }
    }

    /// The inputs of a run on other finite data, with what its outputs must be: the shape's own may
    /// add up to 0 just where an infinity meets it, and then a small change decides the class.
    fn redrawn(
        &self,
        subject: &dyn Subject,
        planted: &Planted,
        random: &SplitMix64,
    ) -> Option<(Inputs, Expected)> {
        (0..REDRAWS).find_map(|redraw| {
            let random = random.fork(&format!("redraw {redraw}"));
            let base = base_of(self.target, self.layout, &random);
            let neighbour = fill::neighbour(&base, self.layout, &mut random.fork("neighbour"));
            let setting = Setting { base: &base, neighbour: &neighbour, ..*self };
            let bounded = subject.reference(&setting.evaluation(&base));
            let sound = |bounded| meaningless(&bounded).is_none();
            if !bounded.is_none_or(|bounded| bounded.is_ok_and(sound)) {
                return None;
            }
            let inputs = planted.apply(&base, |value| value);
            let expected = setting.expected(subject, planted, &inputs).ok()?;
            Some((inputs, expected))
        })
    }

    fn classes(
        &self,
        subject: &dyn Subject,
        program: &Program,
        planted: &Planted,
        inputs: &Inputs,
    ) -> Result<Expected, String> {
        let of = |inputs: &Inputs| {
            let stated = self.target.stated.as_deref().unwrap_or(program);
            stated.classes(&self.evaluation(inputs)).map_err(|error| fixture_error(&error))
        };
        let classes = of(inputs)?;
        let near = of(&planted.apply(self.neighbour, |value| value))?;
        if classes != near {
            return Err("fixture: small changes of the finite data change a class".to_owned());
        }
        self.check_signs(subject, planted, &classes)?;
        let chosen = |inputs: &Inputs| {
            program.choice().and_then(|choice| choice.expected(&self.evaluation(inputs)).ok())
        };
        let changes = classes != of(self.base)? || chosen(inputs) != chosen(self.base);
        Ok(Expected { classes, changes })
    }

    /// Takes out of the fixture the places that the formula does not read at this shape, such as
    /// keys outside a window: what is planted there has to change nothing, and nothing changed.
    fn forget_unread(&self, tensor: &str, fixture: &mut Fixture) -> Vec<usize> {
        let Judge::Formula(program) = &self.target.judge else { return Vec::new() };
        let silent = |(_, changes): &(&usize, &bool)| !**changes;
        let silent: Vec<usize> = fixture.places.iter().filter(silent).map(|(p, _)| *p).collect();
        let unread: Vec<usize> =
            silent.into_iter().filter(|place| !self.reads(program, tensor, *place)).collect();
        fixture.places.retain(|place, _| !unread.contains(place));
        unread
    }

    /// Whether a NaN at `place` of every line of a tensor changes the class of some output; all
    /// that arithmetic reads does.
    fn reads(&self, program: &Program, tensor: &str, place: usize) -> bool {
        let Some(layout) = self.layout.tensor(tensor) else { return true };
        let mut inputs = self.base.clone();
        if let Some(elements) = inputs.tensors.get_mut(tensor) {
            let lines = layout.main_lines();
            for line in &lines {
                elements[line.at(place)] = f64::NAN;
            }
        }
        self.shows(program, &inputs)
    }

    /// Whether some output's class is another one than without plants.
    fn shows(&self, program: &Program, inputs: &Inputs) -> bool {
        let classes = |inputs: &Inputs| program.classes(&self.evaluation(inputs)).ok();
        classes(inputs).zip(classes(self.base)).is_none_or(|(with, without)| with != without)
    }

    /// What the outputs must be given the choice that the kernel made, if it made one.
    fn given_choice(
        &self,
        case: &CaseName,
        expected: Expected,
        inputs: &Inputs,
        result: &RunResult,
    ) -> Result<Expected, Box<Evidence>> {
        let Judge::Formula(program) = &self.target.judge else { return Ok(expected) };
        let failed = |reason: String| Box::new(evidence(case, Outcome::Unproven, reason));
        let at = (case, &self.evaluation(inputs));
        match rules::follow(program, at, result, &mut Choices::default()) {
            Followed::AsExpected => Ok(expected),
            Followed::Wrong(finding) => Err(finding),
            Followed::Unknown(reason) => Err(failed(reason)),
            Followed::Otherwise(inputs) => {
                let classes = program.classes(&self.evaluation(&inputs));
                let classes = classes.map_err(|error| failed(fixture_error(&error)))?;
                Ok(Expected { classes, ..expected })
            }
        }
    }

    /// An output that is an infinity must have a certain sign: with a large number in place of
    /// each planted infinity, the value must lie beyond its error on the same side.
    fn check_signs(
        &self,
        subject: &dyn Subject,
        planted: &Planted,
        classes: &BTreeMap<String, Vec<Class>>,
    ) -> Result<(), String> {
        let infinite =
            |class: &Class| matches!(class, Class::PositiveInfinity | Class::NegativeInfinity);
        if !classes.values().flatten().any(infinite) {
            return Ok(());
        }
        let tensor = self.layout.tensor(&planted.tensor);
        let large = tensor.map_or(1.0, |tensor| large(tensor.format));
        let finite = |value: f64| if value.is_nan() { 1.0 } else { value.signum() * large };
        let inputs = planted.apply(self.base, finite);
        let bounded = subject.reference(&self.evaluation(&inputs));
        let Some(bounded) = bounded else { return Ok(()) };
        for (name, bounded) in bounded.map_err(|error| fixture_error(&error))? {
            let Some(classes) = classes.get(&name) else { continue };
            if let Some(place) = uncertain_sign(classes, &bounded) {
                return Err(format!("fixture: the sign of {name} at element {place} is uncertain"));
            }
        }
        Ok(())
    }
}

/// The finite data of a shape. Two forms of one formula agree on infinities where nothing cancels
/// them, so those of a kernel that states a second form are positive.
fn base_of(target: &Target, layout: &Layout, random: &SplitMix64) -> Inputs {
    let base = fill::base(layout, &mut random.fork("base"));
    if target.stated.is_some() { fill::positive(base, layout) } else { base }
}

/// A number that swamps ordinary data and overflows no sum of it.
fn large(format: Format) -> f64 {
    let exponent = (format.max_finite().log2() - 1.0).floor().min(24.0);
    2f64.powi(exponent as i32)
}

fn uncertain_sign(classes: &[Class], bounded: &Bounded) -> Option<usize> {
    let certain = |(place, class): (usize, &Class)| {
        let (value, error) = (bounded.value[place], bounded.error[place]);
        // In a range, a value whose error is infinite is the least magnitude there may be.
        let beyond = bounded.ranged && error == f64::INFINITY;
        match class {
            Class::PositiveInfinity => {
                value == f64::INFINITY || value > error || beyond && value > 0.0
            }
            Class::NegativeInfinity => {
                value == f64::NEG_INFINITY || -value > error || beyond && value < 0.0
            }
            Class::Finite | Class::NaN => true,
        }
    };
    let mut places = classes.iter().enumerate();
    places.find(|place| !certain(*place)).map(|(place, _)| place)
}

fn fixture_error(error: &EvaluationError) -> String {
    format!("fixture: {error}")
}

fn same_outputs(a: &BTreeMap<String, Vec<f64>>, b: &BTreeMap<String, Vec<f64>>) -> bool {
    let bits = |outputs: &BTreeMap<String, Vec<f64>>| -> Vec<u64> {
        outputs.values().flatten().map(|value| value.to_bits()).collect()
    };
    bits(a) == bits(b)
}

/// The first output element of the wrong class, as a finding.
fn wrong_class(
    case: &CaseName,
    (tensor, dims, result): (&Tensor, &Dims, &RunResult),
    classes: &[Class],
    because: &dyn Fn(&[i64]) -> String,
) -> Option<Evidence> {
    let bytes = result.outputs.get(&tensor.name).map(Vec::as_slice).unwrap_or_default();
    let got = tensor.format.decode_slice(bytes);
    let is_wrong =
        |place: &usize| got.get(*place).map(|got| Class::of(*got)) != Some(classes[*place]);
    let mut wrong = (0..classes.len()).filter(is_wrong);
    let place = wrong.next()?;
    let count = 1 + wrong.count();
    let element = element(tensor, dims, place);
    let got = got.get(place).copied();
    let reason = format!(
        "{} is {}, the formula gives {}{} ({count} of {} elements)",
        element_name(&tensor.name, &element),
        got.map_or("missing".to_owned(), |got| Class::of(got).to_string()),
        classes[place],
        because(&element),
        classes.len(),
    );
    let mut finding = evidence(case, Outcome::Fail, reason);
    finding.output = Some(tensor.name.clone());
    finding.element = Some(element);
    finding.got = got.map(Number);
    Some(finding)
}

/// Names the plant that lies in the element's row, else the first.
fn nearest_plant(setting: &Setting<'_>, planted: &Planted, element: &[i64]) -> String {
    let row = element.first().copied();
    let in_row = planted.plants.iter().find(|(_, line)| line.row.map(|row| row as i64) == row);
    let Some((plant, line)) = in_row.or(planted.plants.first()) else { return String::new() };
    let layout = setting.layout.tensor(&planted.tensor);
    let at = plant.stretches.first().map_or(0, |(from, _, _)| line.at(*from));
    let place = layout.map(|layout| layout.element(at)).unwrap_or_default();
    format!(" with {} planted at {}", plant.name, element_name(&planted.tensor, &place))
}

/// The first output element that a rule forbids, as a finding.
fn wrong_choice(
    case: &CaseName,
    (rule, target, dims): (&Rule, &Target, &Dims),
    inputs: &Inputs,
    result: &RunResult,
) -> Option<Evidence> {
    let outputs = super::rules::decode(&target.signature, result);
    let violations = rule.check(dims, inputs, &outputs, usize::MAX);
    super::rules::finding(case, rule, violations)
}

/// The first problem that makes a bound meaningless.
pub(super) fn meaningless(bounded: &BTreeMap<String, Bounded>) -> Option<String> {
    let mut problems = bounded.values().flat_map(|bounded| &bounded.problems);
    problems.next().map(|problem| {
        let kind = match problem.kind {
            ProblemKind::Vanishing => "may vanish",
            ProblemKind::Disagreement => "is not what the stated formula gives",
            _ => "may overflow",
        };
        format!("fixture: `{}` in `{}` {kind}", problem.expression, problem.statement)
    })
}
