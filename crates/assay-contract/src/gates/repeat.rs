//! Gate 2, repeat and aliasing: five runs on the same inputs give the same bytes, write every
//! byte of every output, and nothing else.
//!
//! The runs start from two poisons and differ in everything that must not matter: the order in
//! which blocks and warps run, unrelated work beside them, where buffers start within the
//! alignment promised, and whether an output lies in its input's buffer where the spec allows it.

use assay_device::Schedule;
use assay_record::{CaseName, Evidence, Gate, GateResult, Number, Outcome};
use assay_reference::{Dims, Evaluation, Inputs, Order, Replay};

use super::repeat_fill::{Fill, build, fills};
use super::{GateContext, Tally, schedule_name};
use crate::layout::Layout;
use crate::spec::{Role, Spec};
use crate::subject::{Change, RunError, RunRequest, RunResult, Subject};

/// Runs per case.
const RUNS: usize = 5;
/// The poisons taken in turn; no byte equals both.
const POISONS: [u8; 2] = [0x55, 0xAA];
/// How often inputs of the largest shape are drawn anew until the order of the sums shows.
const REDRAWS: usize = 200;
/// How many of the first of those are loud elements scattered over quiet ones.
const SCATTERS: u32 = 4;
/// Shapes visited: the smallest and the largest served, and what lies between.
const SHAPES: usize = 4;
/// Runs the gate. A shape is left at its first failing case: the others show how far it reaches.
pub fn check(subject: &mut dyn Subject, context: &GateContext<'_>) -> GateResult {
    let mut tally = Tally::new(Gate::Repeat);
    let mut order = OrderProof::default();
    let shapes = shapes(subject.spec());
    for dims in &shapes {
        if context.has_enough(&tally) {
            break;
        }
        order.redraws_left = if shapes.last() == Some(dims) { REDRAWS } else { 0 };
        for fill in fills(subject.spec(), dims).unwrap_or_else(|_| vec![Fill::Plain]) {
            let case = case(subject.spec(), context, dims, fill);
            if !context.wants(&case) {
                continue;
            }
            tally.count();
            let inputs = match inputs(subject, context, (&case, dims, fill)) {
                Ok(inputs) => inputs,
                Err(error) => {
                    tally.run_error(&case, &error);
                    break;
                }
            };
            let inputs = if matches!(fill, Fill::Order(_)) {
                order.seek(subject, context, (&case, dims), inputs)
            } else {
                inputs
            };
            if let Some(finding) = five_runs(subject, &case, (dims, &inputs)) {
                tally.find(finding);
                break;
            }
        }
    }
    add_notes(&mut tally, subject.spec());
    if let (Some(case), false, false) = (&order.wanted, order.shown, context.is_partial())
        && tally.all_pass()
    {
        tally.unproven(case, "no input lets the order of the sums show");
    }
    tally.finish()
}

fn case(spec: &Spec, context: &GateContext<'_>, dims: &Dims, fill: Fill) -> CaseName {
    let name = fill.name();
    let mut case = context.case(spec, Gate::Repeat, dims, (&name, Schedule::InOrder));
    case.schedule = format!("{RUNS}-runs");
    case
}

/// The smallest and the largest served shape and two between them.
fn shapes(spec: &Spec) -> Vec<Dims> {
    let mut served = spec.served();
    served.sort_by_key(|dims| dims.values().product::<i64>());
    let last = served.len().saturating_sub(1);
    let mut chosen: Vec<usize> = (0..SHAPES).map(|at| at * last / (SHAPES - 1)).collect();
    chosen.dedup();
    chosen.into_iter().filter_map(|at| served.get(at).cloned()).collect()
}

fn inputs(
    subject: &dyn Subject,
    context: &GateContext<'_>,
    (case, dims, fill): (&CaseName, &Dims, Fill),
) -> Result<Inputs, RunError> {
    if let Some(inputs) = subject.prepare(Gate::Repeat, dims, case.seed) {
        return Ok(inputs);
    }
    build(subject.spec(), dims, fill, &mut context.random(case))
}

/// Whether some order of a sum had to show, and did.
#[derive(Debug, Default)]
struct OrderProof {
    /// The first case whose sums are not exact.
    wanted: Option<CaseName>,
    shown: bool,
    /// How often inputs may still be drawn anew.
    redraws_left: usize,
}

impl OrderProof {
    /// Looks for inputs that show what they must, beginning with a fill's. Outputs in 16 bits hide
    /// what an order changes unless they lie near a tie, so inputs that do not show it are drawn
    /// anew; the last ones are taken where none show it. Sums that are exact in any order ask for
    /// nothing.
    fn seek(
        &mut self,
        subject: &dyn Subject,
        context: &GateContext<'_>,
        (case, dims): (&CaseName, &Dims),
        mut inputs: Inputs,
    ) -> Inputs {
        self.look(subject, case, (dims, &inputs));
        let prepared = subject.prepare(Gate::Repeat, dims, case.seed).is_some();
        while self.wanted.is_some() && !self.shown && !prepared && self.redraws_left > 0 {
            self.redraws_left -= 1;
            let mut random = context.random(case).fork(&format!("redraw {}", self.redraws_left));
            let redraw = (REDRAWS - self.redraws_left) as u32;
            // Ordinary values give the most different outputs, which is what rounding twice asks.
            let fill = if redraw <= SCATTERS { Fill::Scattered(redraw) } else { Fill::Plain };
            let Ok(redrawn) = build(subject.spec(), dims, fill, &mut random) else { break };
            inputs = redrawn;
            self.look(subject, case, (dims, &inputs));
        }
        inputs
    }

    /// Looks at one fill's inputs, until they show what they must. Sums that are exact in any
    /// order ask for nothing.
    fn look(&mut self, subject: &dyn Subject, case: &CaseName, (dims, inputs): (&Dims, &Inputs)) {
        let arithmetic = &subject.spec().arithmetic;
        let evaluation = Evaluation { dims, inputs, arithmetic, drop: None, rows: None };
        if self.wanted.is_none() {
            let bounded = subject.reference(&evaluation).and_then(Result::ok).unwrap_or_default();
            let inexact = bounded.values().any(|output| output.exact_sums.contains(&false));
            self.wanted = inexact.then(|| case.clone());
        }
        if self.wanted.is_some() && !self.shown {
            self.shown = order_shows(subject, &evaluation);
        }
    }
}

/// True if carrying the sums in two orders gives two answers on these inputs, in the bits that the
/// outputs keep: what their rounding hides, no comparison of bytes can see.
fn order_shows(subject: &dyn Subject, evaluation: &Evaluation<'_>) -> bool {
    let accumulator = subject.spec().accumulator;
    let outputs = |order: Order| -> Option<Vec<u64>> {
        let replay = Replay { accumulator, order, partials_fp32: false };
        let outputs = subject.simulate(evaluation, &replay)?.ok()?;
        let mut kept = Vec::new();
        for tensor in &subject.spec().signature.outputs {
            // A choice is no output of the formula: it is made from what the formula computes.
            let values = outputs.get(&tensor.name).into_iter().flatten();
            kept.extend(values.map(|value| tensor.format.round(*value).to_bits()));
        }
        Some(kept)
    };
    let Some(chain) = outputs(Order::Chain) else { return false };
    let others = [Order::Halves, Order::Lanes(32), Order::Chunked { threads: 3 }];
    others.into_iter().filter_map(outputs).any(|other| other != chain)
}

/// One of the runs of a case.
#[derive(Debug, Clone, Copy)]
struct Run {
    number: usize,
    schedule: Schedule,
    poison: u8,
    perturb: u32,
    misalign: u64,
    alias: bool,
}

impl Run {
    fn nth(number: usize, seed: u64, obeys_schedules: bool) -> Run {
        let schedules = [
            Schedule::InOrder,
            Schedule::Reversed,
            Schedule::Seeded(seed),
            Schedule::Seeded(seed.wrapping_add(1)),
            Schedule::Reversed,
        ];
        Run {
            number: number + 1,
            schedule: if obeys_schedules { schedules[number] } else { Schedule::InOrder },
            poison: POISONS[number % POISONS.len()],
            perturb: if obeys_schedules { 0 } else { number as u32 },
            misalign: number as u64,
            alias: number + 1 == RUNS,
        }
    }

    fn request<'a>(self, dims: &'a Dims, inputs: &'a Inputs) -> RunRequest<'a> {
        let Run { schedule, poison, perturb, misalign, alias, .. } = self;
        let plain = RunRequest::new(dims, inputs);
        RunRequest { poison, schedule, perturb, misalign, alias, ..plain }
    }

    fn describe(self, spec: &Spec) -> String {
        let mut parts = vec![schedule_name(self.schedule)];
        if self.perturb > 0 {
            parts.push(format!("beside unrelated work {}", self.perturb));
        }
        if self.misalign > 0 {
            parts.push(format!("alignment class {}", self.misalign));
        }
        if self.alias && !spec.in_place.is_empty() {
            parts.push("in place".to_owned());
        }
        format!("run {} ({})", self.number, parts.join(", "))
    }
}

/// Runs a case; the finding is what it failed by.
pub(super) fn five_runs(
    subject: &mut dyn Subject,
    case: &CaseName,
    (dims, inputs): (&Dims, &Inputs),
) -> Option<Evidence> {
    let mut first: Option<RunResult> = None;
    for number in 0..RUNS {
        let run = Run::nth(number, case.seed, subject.obeys_schedules());
        let result = match subject.run(&run.request(dims, inputs)) {
            Ok(result) => result,
            Err(error) => return Some(run_failed(case, run, (subject.spec(), &error))),
        };
        let judge = Judge { spec: subject.spec(), case, dims, run };
        let finding = judge.stray_write(&result);
        let finding = finding.or_else(|| judge.compare(first.as_ref()?, &result));
        if finding.is_some() {
            return finding;
        }
        first = first.or(Some(result));
    }
    None
}

fn run_failed(case: &CaseName, run: Run, (spec, error): (&Spec, &RunError)) -> Evidence {
    let unsupported = matches!(error, RunError::Unsupported { .. });
    let outcome = if unsupported { Outcome::Unsupported } else { Outcome::Fail };
    let reason =
        if unsupported { error.to_string() } else { format!("{}: {error}", run.describe(spec)) };
    let mut finding = Evidence::new(case.clone(), outcome, reason);
    finding.place = error.place().map(str::to_owned);
    finding
}

/// What judging one run needs.
struct Judge<'a> {
    spec: &'a Spec,
    case: &'a CaseName,
    dims: &'a Dims,
    run: Run,
}

impl Judge<'_> {
    /// A changed input, or a write outside every buffer.
    fn stray_write(&self, result: &RunResult) -> Option<Evidence> {
        if let Some(change) = result.changed_inputs.first() {
            return Some(self.changed_input(change, result.changed_inputs.len()));
        }
        let (argument, damage) = result.guard_damage.first()?;
        let reason = format!("{}: outside `{argument}`: {damage}", self.run.describe(self.spec));
        Some(self.fail(argument, reason))
    }

    fn changed_input(&self, change: &Change, count: usize) -> Evidence {
        let Change { tensor, element, before, after } = change;
        let more = if count > 1 { " (and more)" } else { "" };
        let reason = format!(
            "{}: the input {tensor}{element:?} changed from {before:#x} to {after:#x}{more}",
            self.run.describe(self.spec)
        );
        let mut finding = self.fail(tensor, reason);
        if let Some(argument) = self.spec.argument(tensor) {
            finding.value = Some(Number(argument.format.decode(*before)));
            finding.got = Some(Number(argument.format.decode(*after)));
        }
        finding.element = Some(element.clone());
        finding
    }

    /// The first output byte that was never written, or that differs from the first run's.
    fn compare(&self, first: &RunResult, result: &RunResult) -> Option<Evidence> {
        let outputs = first.outputs.iter().filter_map(|(name, before)| {
            Some((name.as_str(), before.as_slice(), result.outputs.get(name)?.as_slice()))
        });
        let outputs: Vec<_> = outputs.collect();
        let unwritten = outputs.iter().find_map(|output| self.unwritten(*output));
        unwritten.or_else(|| outputs.iter().find_map(|output| self.differs(*output)))
    }

    fn unwritten(&self, (name, before, after): (&str, &[u8], &[u8])) -> Option<Evidence> {
        let poison = (POISONS[0], self.run.poison);
        let poisoned = |(before, after): (&u8, &u8)| (*before, *after) == poison;
        if poison.0 == poison.1 {
            return None;
        }
        let byte = before.iter().zip(after).position(poisoned)?;
        let (layout, element, index) = self.element(name, byte)?;
        let (was, is) = (layout.bits(before, element), layout.bits(after, element));
        let reason = format!(
            "{name}{index:?} was never written: it holds {was:#x} after poison {:#x} and {is:#x} \
             after poison {:#x}",
            poison.0, poison.1
        );
        let mut finding = self.fail(name, reason);
        finding.element = Some(index);
        Some(finding)
    }

    fn differs(&self, (name, before, after): (&str, &[u8], &[u8])) -> Option<Evidence> {
        let byte = before.iter().zip(after).position(|(before, after)| before != after)?;
        let (layout, element, index) = self.element(name, byte)?;
        // Of the elements that share the byte, it may be a later one that differs.
        let same = |element: &usize| layout.bits(before, *element) == layout.bits(after, *element);
        let element = (element..layout.elements()).find(|e| !same(e)).unwrap_or(element);
        let (was, is) = (layout.bits(before, element), layout.bits(after, element));
        let (value, got) = (layout.format.decode(was), layout.format.decode(is));
        let reason = format!(
            "{} gives {name}{index:?} = {} ({is:#x}), run 1 gave {} ({was:#x})",
            self.run.describe(self.spec),
            Number(got),
            Number(value)
        );
        let mut finding = self.fail(name, reason);
        finding.element = Some(index);
        (finding.value, finding.got) = (Some(Number(value)), Some(Number(got)));
        Some(finding)
    }

    fn element(&self, output: &str, byte: usize) -> Option<(Layout, usize, Vec<i64>)> {
        let tensor = self.spec.signature.outputs.iter().find(|tensor| tensor.name == output)?;
        let layout = Layout::dense(tensor, self.dims).ok()?;
        let element = layout.element_of_byte(byte);
        let index = layout.index(element);
        Some((layout, element, index))
    }

    fn fail(&self, output: &str, reason: String) -> Evidence {
        let mut finding = Evidence::new(self.case.clone(), Outcome::Fail, reason);
        finding.output = Some(output.to_owned());
        finding
    }
}

fn add_notes(tally: &mut Tally, spec: &Spec) {
    for argument in &spec.arguments {
        if argument.role == Role::Out && argument.zeroed {
            let name = &argument.name;
            tally.note(format!(
                "`{name}` is cleared before every run, so bytes never written do not show"
            ));
        }
    }
}
