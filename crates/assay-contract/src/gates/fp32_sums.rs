//! Gate 4, fp32 sums: inputs whose sums fp32 does exactly and narrower accumulators get wrong.
//!
//! First the harness shows that it could tell: it replays every sum in f16 and bf16, in several
//! orders, and each replay must miss by a hundred times the bound in at least one fill. Then the
//! kernel has to meet the bound on all of them.

use std::collections::BTreeSet;

use assay_num::Format;
use assay_record::{CaseName, Gate, GateResult, Outcome};
use assay_reference::fill::sums::{self as fill};
use assay_reference::fill::{Layout, ReductionLayout};
use assay_reference::{Dims, Evaluation, Inputs, Order, Program, ReduceOperation};

use super::judge::{self, judge};
use super::non_finite::meaningless;
use super::replays::{Replays, times};
use super::rules::{self, Choices};
use super::target::{Judge, Target, case, is_final, run};
use super::{GateContext, Tally, envelope};
use crate::subject::Subject;

/// How often a sum's fills are drawn, where chance left a replay right: sums of few terms.
const DRAWS: usize = 6;
/// The orders every kernel is replayed in, beside its own.
const ORDERS: [Order; 3] = [Order::Chain, Order::Halves, Order::Lanes(32)];

/// Runs the gate.
pub fn check(subject: &mut dyn Subject, context: &GateContext<'_>) -> GateResult {
    let mut tally = Tally::new(Gate::Fp32Sums);
    let setting = match setting(subject, context.seed) {
        Ok(setting) => setting,
        Err(reason) => {
            tally.not_applicable(reason);
            return tally.finish();
        }
    };
    let proof = Proof::default();
    let mut gate = Running { tally, setting, proof, shape_failed: false, stopped: false };
    for dims in envelope::summing(subject.spec(), &gate.setting.summed) {
        gate.shape(subject, context, &dims);
        if context.has_enough(&gate.tally) {
            break;
        }
    }
    gate.add_notes();
    gate.tally.finish()
}

/// What does not change from shape to shape.
struct Setting {
    target: Target,
    program: std::sync::Arc<Program>,
    orders: Vec<Order>,
    /// The dimensions that sums run over.
    summed: BTreeSet<String>,
    /// Why an output's rounding hides the sums' errors.
    hides: Option<String>,
}

fn setting(subject: &dyn Subject, seed: u64) -> Result<Setting, String> {
    let spec = subject.spec();
    let target = Target::of(spec, seed)?;
    let Judge::Formula(program) = target.judge.clone() else {
        return Err("a rule selects elements and sums nothing".to_owned());
    };
    let sums = || program.reductions().iter().filter(|r| accumulates(r.operation));
    if sums().next().is_none() {
        return Err("the formula has no sum".to_owned());
    }
    if spec.accumulator.significand_bits() < Format::F32.significand_bits() {
        return Err(format!("the kernel declares sums in {}", spec.accumulator.name()));
    }
    let names = sums().flat_map(|sum| [sum.from.names(), sum.to.names()].concat());
    let summed = names.map(str::to_owned).collect();
    let mut orders: Vec<Order> = Vec::new();
    for order in spec.orders.iter().chain(&ORDERS) {
        if !orders.contains(order) {
            orders.push(*order);
        }
    }
    let hides = spec.hides_sums.clone();
    Ok(Setting { target, program, orders, summed, hides })
}

/// True if a reduction carries a number that a narrow format would round.
fn accumulates(operation: ReduceOperation) -> bool {
    matches!(operation, ReduceOperation::Sum | ReduceOperation::Scan)
}

struct Running {
    tally: Tally,
    setting: Setting,
    proof: Proof,
    /// Whether a case of the shape at hand failed; the other shapes show how far that reaches.
    shape_failed: bool,
    stopped: bool,
}

/// What the replays of all sums proved together.
#[derive(Default)]
struct Proof {
    /// Replays that missed by enough.
    proven: usize,
    /// Replays that a declared output hides.
    hidden: usize,
    /// The least that one of the proven missed by, and which it was.
    least: Option<(f64, String)>,
}

impl Running {
    fn shape(&mut self, subject: &mut dyn Subject, context: &GateContext<'_>, dims: &Dims) {
        self.shape_failed = false;
        let (shape_case, _) = case(subject, context, (Gate::Fp32Sums, dims), "sums");
        let Setting { program, target, .. } = &self.setting;
        let layout = match Layout::of(program, dims, (&target.tiles, target.seed)) {
            Ok(layout) => layout,
            Err(error) => return self.tally.fail(&shape_case, error.to_string()),
        };
        for reduction in &layout.reductions {
            if accumulates(reduction.operation) && reduction.terms > 1 {
                self.sum(subject, context, (dims, &layout, reduction));
            }
        }
    }

    fn sum(
        &mut self,
        subject: &mut dyn Subject,
        context: &GateContext<'_>,
        (dims, layout, reduction): (&Dims, &Layout, &ReductionLayout),
    ) {
        let mut replays = Replays::of(layout, reduction, &self.setting.orders);
        let prepared = subject.prepare(Gate::Fp32Sums, dims, context.seed);
        let draws = if prepared.is_some() || !context.draws_again() { 1 } else { DRAWS };
        let mut all_ran = true;
        for draw in 0..draws {
            if draw > 0 && all_ran && replays.unproven().next().is_none() {
                break;
            }
            let at = (dims, layout, reduction);
            all_ran &= self.draw(subject, context, at, (draw, prepared.as_ref()), &mut replays);
        }
        let (case, _) = case(subject, context, (Gate::Fp32Sums, dims), &reduction.name);
        if all_ran {
            self.conclude(&case, reduction, &replays);
        }
    }

    /// Runs every fill of a sum once; true if all of them ran.
    fn draw(
        &mut self,
        subject: &mut dyn Subject,
        context: &GateContext<'_>,
        (dims, layout, reduction): (&Dims, &Layout, &ReductionLayout),
        (draw, prepared): (usize, Option<&Inputs>),
        replays: &mut Replays,
    ) -> bool {
        let mut all_ran = true;
        let mut recipes = fill::recipes(reduction, &self.setting.orders);
        if prepared.is_some() {
            recipes.truncate(1);
        }
        for recipe in recipes {
            let mut name = if prepared.is_some() { "prepared".to_owned() } else { recipe.name() };
            if draw > 0 {
                name = format!("{name}-again-{draw}");
            }
            let name = format!("{}-{name}", reduction.name);
            let (case, random) = case(subject, context, (Gate::Fp32Sums, dims), &name);
            let left = self.shape_failed && context.leaves_failed_shapes();
            if self.stopped || left || !context.wants(&case) {
                all_ran = false;
                continue;
            }
            self.tally.count();
            let inputs = prepared.cloned().unwrap_or_else(|| {
                fill::build(layout, reduction, &recipe, &mut random.fork("terms"))
            });
            self.fill(subject, &case, (dims, layout.rows, &inputs), replays);
        }
        all_ran
    }

    fn fill(
        &mut self,
        subject: &mut dyn Subject,
        case: &CaseName,
        (dims, rows, inputs): (&Dims, usize, &Inputs),
        replays: &mut Replays,
    ) {
        let target = &self.setting.target;
        let evaluation = Evaluation::new(dims, inputs, &target.arithmetic);
        let Some(bounded) = subject.reference(&evaluation) else { return };
        let bounded = match bounded {
            Ok(bounded) => bounded,
            Err(error) => return self.tally.unproven(case, format!("fixture: {error}")),
        };
        if let Some(problem) = meaningless(&bounded) {
            return self.tally.unproven(case, problem);
        }
        if let Err(error) = replays.take(subject, &target.signature, (&evaluation, rows)) {
            return self.tally.unproven(case, format!("fixture: {error}"));
        }
        let result = match run(subject, dims, inputs) {
            Ok(result) => result,
            Err(error) => {
                self.tally.run_error(case, &error);
                self.shape_failed = true;
                self.stopped |= is_final(&error);
                return;
            }
        };
        let (at, counted) = ((case, &evaluation), &mut Choices::default());
        let notes = (&mut self.tally, counted);
        let Some(bounded) = rules::given_choice((subject, target), at, (bounded, &result), notes)
        else {
            self.shape_failed = true;
            return;
        };
        for tensor in &target.signature.outputs {
            let Some(bounded) = bounded.get(&tensor.name) else { continue };
            let bytes = result.outputs.get(&tensor.name).map(Vec::as_slice).unwrap_or_default();
            let verdict = judge(tensor.format, bounded, bytes);
            self.tally.margin(verdict.margin);
            if verdict.rejected > 0 {
                self.shape_failed = true;
                let finding = judge::finding(case, (tensor, dims), &verdict, Outcome::Fail);
                if let Some(finding) = finding {
                    self.tally.find(finding);
                }
            }
        }
    }

    /// Takes what the replays of one sum at one shape proved.
    fn conclude(&mut self, case: &CaseName, reduction: &ReductionLayout, replays: &Replays) {
        let what = match reduction.operation {
            ReduceOperation::Scan => {
                format!("scan `{}` of {} steps", reduction.name, reduction.terms)
            }
            _ => format!("sum `{}` of {} terms", reduction.name, reduction.terms),
        };
        for name in replays.that_cannot_differ() {
            self.tally.note(format!("{what}: {name} cannot differ"));
        }
        self.proof.proven += replays.proven();
        let least =
            replays.least_proven().map(|(missed, name)| (missed, format!("{name}, {what}")));
        let is_less = |(missed, _): &(f64, String)| {
            self.proof.least.as_ref().is_none_or(|(least, _)| missed < least)
        };
        if let Some(least) = least.filter(is_less) {
            self.proof.least = Some(least);
        }
        let unproven: Vec<String> = replays.unproven().collect();
        let Some(first) = unproven.first() else { return };
        if self.setting.hides.is_some() {
            self.proof.hidden += unproven.len();
            for name in unproven {
                self.tally.note(format!("{what}: proved only that {name}"));
            }
        } else {
            let more = unproven.len() - 1;
            let reason = format!("{what}: {first}, and {more} more replays miss too little");
            self.tally.unproven(case, reason);
        }
    }

    fn add_notes(&mut self) {
        if let Some((least, which)) = &self.proof.least {
            let count = self.proof.proven;
            let note = format!(
                "{count} replays in f16 and bf16 miss by at least {} times the bound ({which})",
                times(*least),
            );
            self.tally.note(note);
        }
        match &self.setting.hides {
            Some(reason) if self.proof.hidden > 0 => {
                self.tally.note(format!("declared hidden: {reason}"));
            }
            Some(_) if self.proof.proven > 0 => {
                let note = "`hides_sums` is declared, yet every replay was caught: it can go";
                self.tally.note(note);
            }
            _ => {}
        }
    }
}
