//! How a fill steers the terms of a reduction: which element each term follows from, what must be
//! held still for that, and which terms a row takes at all.
//!
//! Terms are written out through statements ([`super::expression`]), so that it does not matter
//! whether a factor is an input, a statement over inputs, gathered, scaled or masked.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{Access, Binary, Int, Node, NodeId, Program, Source, Stage, Unary};
use crate::{Dims, Inputs, ReduceOperation};

use super::expression::{Address, Reduced, Scope, Value, of_stage};
use super::layout::{TensorLayout, critical_places};
use super::term::Term;

/// Combinations of a stage's axes that are looked at.
const MOST_TUPLES: usize = 1 << 16;
/// Combinations of a row whose elements are made loud.
const MOST_IN_ROW: usize = 64;

/// What a term does with the element it is steered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Linear,
    Square,
    Deviation,
    Exponential,
}

/// How the terms of a sum are shaped by one element each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// The element that decides a term.
    pub(super) live: Address,
    pub(super) form: Form,
    /// What the element is multiplied by before it counts.
    pub(super) gain: f64,
    /// Reductions between the element and the term, of which only the first term is used.
    pub(super) nested: Vec<Reduced>,
    /// Factors that differ from term to term.
    pub(super) carriers: Vec<Address>,
    /// Inputs, by position, that hold one value everywhere.
    pub(super) held: Vec<(usize, f64)>,
}

/// An element that a term follows from.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    pub(super) address: Address,
    /// The reductions around it, inside the term.
    pub(super) nested: Vec<Reduced>,
    /// True if the term is large where the element's part is larger than others', not large itself.
    pub(super) shifts: bool,
    /// What has to become large: the term, or the argument of an exponential in it.
    pub(super) argument: Value,
}

/// Everything a fill needs to steer one reduction at one shape.
#[derive(Clone, Debug)]
pub(super) struct Steering {
    pub(super) reduced: Reduced,
    pub(super) plan: Option<Plan>,
    pub(super) handles: Vec<Handle>,
    /// The extent of each axis of the reduction's stage.
    extents: Vec<i64>,
    /// The axis that follows the rows of the first output.
    row_axis: Option<usize>,
    /// Inputs, by position, that the sum is multiplied by on its way to an output.
    pub(super) multipliers: Vec<usize>,
    /// Names of the inputs by position.
    pub(super) names: Vec<String>,
    /// Where groups or pages end along the reduced index.
    periods: Vec<i64>,
    /// True if terms are left out under conditions, or bounds differ, so that rows differ.
    pub(super) varies: bool,
}

impl Steering {
    /// How to steer the reduction of a stage.
    pub(super) fn of(
        program: &Program,
        dims: &Dims,
        stage: usize,
        tensors: &[TensorLayout],
    ) -> Option<Steering> {
        let reduced = of_stage(program, dims, stage)?;
        let inputs = &program.signature.inputs;
        let by_position: Vec<Option<&TensorLayout>> =
            inputs.iter().map(|input| tensors.iter().find(|t| t.name == input.name)).collect();
        let variable = reduced.variable;
        let planner = Planner { tensors: &by_position, variable };
        let plan = planner.plan(&reduced.term).filter(Plan::is_consistent);
        let mut periods = Vec::new();
        reduced.term.periods(variable, &mut periods);
        let conditional = has_condition(&reduced.term);
        let bounds_vary = (0..variable).any(|v| reduced.from.uses(v) || reduced.to.uses(v))
            || program.reduction_of_stage[stage].is_some_and(|r| program.reductions[r].bounds_vary);
        Some(Steering {
            plan,
            handles: handles(&reduced, &by_position),
            extents: extents(program, dims)?.get(&stage)?.clone(),
            row_axis: row_axis(program, stage),
            multipliers: multipliers(program, stage),
            names: inputs.iter().map(|input| input.name.clone()).collect(),
            periods,
            varies: conditional || bounds_vary,
            reduced,
        })
    }

    /// The inputs by position, as expressions are evaluated in.
    pub(super) fn tensors<'a>(&self, tensors: &'a [TensorLayout]) -> Vec<Option<&'a TensorLayout>> {
        self.names.iter().map(|name| tensors.iter().find(|t| t.name == *name)).collect()
    }

    /// The combinations of the stage's axes; of axes that `uses` says nothing depends on, the first
    /// index alone.
    fn tuples(&self, row: Option<usize>, uses: impl Fn(usize) -> bool) -> Vec<Vec<i64>> {
        let mut tuples: Vec<Vec<i64>> = vec![Vec::new()];
        for (axis, extent) in self.extents.iter().enumerate() {
            let range = match row {
                Some(row) if self.row_axis == Some(axis) => row as i64..row as i64 + 1,
                _ if uses(axis) => 0..*extent,
                _ => 0..1,
            };
            let longer = tuples.iter().flat_map(|tuple| {
                range.clone().map(move |at| tuple.iter().copied().chain([at]).collect())
            });
            tuples = longer.take(MOST_TUPLES).collect();
        }
        tuples
    }

    /// The axes that bounds and conditions depend on.
    fn decides(&self, axis: usize) -> bool {
        self.reduced.from.uses(axis)
            || self.reduced.to.uses(axis)
            || (self.varies && self.reduced.term.uses(axis))
    }

    /// The values of the reduced index whose terms take something from the inputs.
    fn active(&self, scope: &Scope<'_>, tuple: &[i64]) -> Vec<i64> {
        let Some((from, to)) = scope.bounds(&self.reduced, tuple) else { return Vec::new() };
        if !self.varies {
            return (from..to).collect();
        }
        let mut variables = tuple.to_vec();
        variables.push(0);
        let mut read = |at: &i64| {
            variables[self.reduced.variable] = *at;
            scope.is_read(&self.reduced.term, self.reduced.variable, &variables)
        };
        (from..to).filter(|at| read(at)).collect()
    }

    /// The least first index and the most terms over all combinations of axes.
    pub(super) fn span(&self, scope: &Scope<'_>) -> Option<(i64, i64)> {
        let uses = |axis| self.reduced.from.uses(axis) || self.reduced.to.uses(axis);
        let bounds: Vec<(i64, i64)> = self
            .tuples(None, uses)
            .iter()
            .filter_map(|tuple| scope.bounds(&self.reduced, tuple))
            .collect();
        let from = bounds.iter().map(|(from, _)| *from).min()?;
        Some((from, bounds.iter().map(|(from, to)| to - from).max()?))
    }

    /// The terms that kernels lose first in a row, counted from the row's first: its first and
    /// last, and both sides of edges of tiles, groups and pages.
    pub(super) fn critical(
        &self,
        scope: &Scope<'_>,
        row: usize,
        tile: Option<usize>,
    ) -> Vec<usize> {
        let tuples = self.tuples(Some(row), |_| false);
        let Some(tuple) = tuples.first() else { return Vec::new() };
        let Some((from, to)) = scope.bounds(&self.reduced, tuple) else { return Vec::new() };
        let active = self.active(scope, tuple);
        let (Some(first), Some(last)) = (active.first(), active.last()) else { return Vec::new() };
        let periods = self.periods.iter().filter_map(|period| usize::try_from(*period).ok());
        let mut places: BTreeSet<i64> = BTreeSet::from([*first, *last]);
        for period in periods.chain(tile) {
            places.extend(
                critical_places(to.max(0) as usize, Some(period)).iter().map(|p| *p as i64),
            );
        }
        let is_active = |at: &i64| active.binary_search(at).is_ok();
        places.into_iter().filter(is_active).map(|at| (at - from) as usize).collect()
    }

    /// How many terms a row takes.
    pub(super) fn terms_in(&self, scope: &Scope<'_>, row: usize) -> usize {
        let tuples = self.tuples(Some(row), |_| false);
        tuples.first().map_or(0, |tuple| self.active(scope, tuple).len())
    }

    /// The elements at `address` that the terms follow from, a path for each different one: the
    /// reduced index's value and the element's flat index of every term that is not left out.
    pub(super) fn paths(
        &self,
        scope: &Scope<'_>,
        (address, nested): (&Address, &[Reduced]),
        row: Option<usize>,
    ) -> Vec<Path> {
        let uses = |axis| address.uses(axis) || self.decides(axis);
        let mut seen = BTreeSet::new();
        let mut paths = Vec::new();
        for tuple in self.tuples(row, uses) {
            let mut variables = tuple.clone();
            variables.push(0);
            let mut places = Vec::new();
            for at in self.active(scope, &tuple) {
                variables.truncate(self.reduced.variable + 1);
                variables[self.reduced.variable] = at;
                first_of(scope, nested, &mut variables);
                places.extend(scope.flat(address, &variables).map(|flat| (at, flat)));
            }
            let ends = places.first().zip(places.last()).map(|(a, b)| (a.1, b.1, places.len()));
            if ends.is_some_and(|ends| seen.insert(ends)) {
                paths.push(Path { places });
            }
        }
        paths
    }

    /// The combinations of axes of a row at which `address` differs, and the reduced index of the
    /// term that is `term` after the first.
    pub(super) fn places_in_row(
        &self,
        scope: &Scope<'_>,
        address: &Address,
        (row, term): (usize, usize),
    ) -> Vec<Vec<i64>> {
        let uses = |axis| address.uses(axis) || self.decides(axis);
        let tuples = self.tuples(Some(row), uses);
        let at = |mut tuple: Vec<i64>| {
            let (from, to) = scope.bounds(&self.reduced, &tuple)?;
            let place = from + term as i64;
            tuple.push(place);
            (place < to).then_some(tuple)
        };
        tuples.into_iter().take(MOST_IN_ROW).filter_map(at).collect()
    }
}

/// Elements that one sum's terms follow from.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// The reduced index and the flat index of the element, a pair for each term.
    pub(super) places: Vec<(i64, usize)>,
}

/// Sets the variables of `nested` to the first index of each.
fn first_of(scope: &Scope<'_>, nested: &[Reduced], variables: &mut Vec<i64>) {
    for inner in nested {
        let first = scope.whole(&inner.from, variables).unwrap_or(0);
        if variables.len() <= inner.variable {
            variables.resize(inner.variable + 1, 0);
        }
        variables[inner.variable] = first;
    }
}

impl Plan {
    fn linear(live: Address) -> Plan {
        let (nested, carriers, held) = (Vec::new(), Vec::new(), Vec::new());
        Plan { live, form: Form::Linear, gain: 1.0, nested, carriers, held }
    }

    fn with_gain(mut self, gain: f64) -> Option<Plan> {
        self.gain *= gain;
        (self.gain != 0.0 && self.gain.is_finite()).then_some(self)
    }

    /// True if nothing is asked to be two things at once.
    fn is_consistent(&self) -> bool {
        let mut held: BTreeMap<usize, f64> = BTreeMap::new();
        let agrees = |(input, value): &(usize, f64)| {
            *held.entry(*input).or_insert(*value) == *value && *input != self.live.input
        };
        let held_agrees = { self.held.iter().all(agrees) };
        let carries = |input: usize| self.carriers.iter().filter(|c| c.input == input).count();
        let alone =
            |carrier: &Address| carries(carrier.input) == 1 && carrier.input != self.live.input;
        let is_held =
            |carrier: &Address| self.held.iter().any(|(input, _)| *input == carrier.input);
        held_agrees && self.carriers.iter().all(|carrier| alone(carrier) && !is_held(carrier))
    }

    /// The term as fills know it; `names` are the inputs' by position.
    pub(super) fn term(&self, names: &[String]) -> Term {
        let name = names[self.live.input].clone();
        match self.form {
            Form::Linear if self.carriers.is_empty() => Term::Linear(name),
            Form::Linear => {
                let carriers = self.carriers.iter().map(|carrier| names[carrier.input].clone());
                Term::Product([name].into_iter().chain(carriers).collect())
            }
            Form::Square => Term::Square(name),
            Form::Deviation => Term::Deviation(name),
            Form::Exponential => Term::Exponential(name),
        }
    }
}

/// Finds plans.
struct Planner<'a> {
    tensors: &'a [Option<&'a TensorLayout>],
    variable: usize,
}

impl Planner<'_> {
    fn plan(&self, value: &Value) -> Option<Plan> {
        match value {
            Value::Element(address) => self.element(address),
            Value::Unary(Unary::Negate, a) => self.plan(a)?.with_gain(-1.0),
            Value::Unary(Unary::Exp, a) => self.exponential(a, 1.0),
            Value::Unary(Unary::Exp2, a) => self.exponential(a, std::f64::consts::LN_2),
            Value::Binary(Binary::Multiply, ..) => self.product(value),
            Value::Binary(Binary::Divide, a, b) if !b.uses(self.variable) => {
                self.plan(a)?.with_gain(1.0 / known(b).unwrap_or(1.0))
            }
            Value::Binary(operation @ (Binary::Add | Binary::Subtract), a, b) => {
                self.sum(*operation, a, b)
            }
            Value::Select(_, a, b) => match (a.uses(self.variable), b.uses(self.variable)) {
                (true, false) => self.plan(a),
                (false, true) => self.plan(b),
                _ => None,
            },
            Value::Reduced(inner) if inner.operation == ReduceOperation::Sum => {
                let mut plan = self.plan(&inner.term)?;
                plan.nested.insert(0, (**inner).clone());
                (plan.form == Form::Linear).then_some(plan)
            }
            _ => None,
        }
    }

    fn element(&self, address: &Address) -> Option<Plan> {
        let tensor = (*self.tensors.get(address.input)?)?;
        let usable = address.uses(self.variable) && tensor.indices.is_none();
        usable.then(|| Plan::linear(address.clone()))
    }

    fn exponential(&self, argument: &Value, gain: f64) -> Option<Plan> {
        let mut plan = self.plan(argument)?.with_gain(gain)?;
        let usable = plan.form == Form::Linear && plan.carriers.is_empty();
        plan.form = Form::Exponential;
        usable.then_some(plan)
    }

    /// One side follows from an element; the other is the same for every term, or held at 0.
    fn sum(&self, operation: Binary, a: &Value, b: &Value) -> Option<Plan> {
        let sign = if operation == Binary::Subtract { -1.0 } else { 1.0 };
        match (a.uses(self.variable), b.uses(self.variable)) {
            (true, false) => self.plan(a),
            (false, true) => self.plan(b)?.with_gain(sign),
            _ => {
                let with_other_still = |live: &Value, other: &Value| {
                    let mut plan = self.plan(live)?;
                    let zero = self.zero(other, &plan)?;
                    plan.held.push((zero, 0.0));
                    Some(plan)
                };
                with_other_still(a, b).or_else(|| with_other_still(b, a)?.with_gain(sign))
            }
        }
    }

    /// An input that makes `value` 0 by being 0, and that the plan does not use.
    fn zero(&self, value: &Value, plan: &Plan) -> Option<usize> {
        match value {
            Value::Element(address) => {
                let tensor = (*self.tensors.get(address.input)?)?;
                let used = plan.live.input == address.input
                    || plan.carriers.iter().any(|carrier| carrier.input == address.input)
                    || plan
                        .held
                        .iter()
                        .any(|(held, value)| *held == address.input && *value != 0.0);
                let can = tensor.exact.is_none_or(|exact| exact == 0.0)
                    && tensor.indices.is_none()
                    && tensor.format.min_finite() <= 0.0;
                (can && !used).then_some(address.input)
            }
            Value::Binary(Binary::Multiply, a, b) => {
                self.zero(a, plan).or_else(|| self.zero(b, plan))
            }
            Value::Binary(Binary::Divide, a, _) | Value::Unary(Unary::Negate, a) => {
                self.zero(a, plan)
            }
            Value::Binary(Binary::Subtract, a, b) if !b.uses(self.variable) => self.zero(a, plan),
            Value::Reduced(inner) => self.zero(&inner.term, plan),
            Value::Select(_, a, b) if !b.uses(self.variable) => self.zero(a, plan),
            _ => None,
        }
    }

    fn product(&self, value: &Value) -> Option<Plan> {
        let mut factors = Vec::new();
        flatten(value, &mut factors);
        let (varying, fixed): (Vec<&Value>, Vec<&Value>) =
            factors.into_iter().partition(|factor| factor.uses(self.variable));
        let mut plan = match varying.as_slice() {
            [alone] => self.plan(alone)?,
            [a, b] if a == b => self.square(a)?,
            _ => self.live_of(&varying)?,
        };
        for factor in fixed {
            match factor {
                Value::Known(known) => plan = plan.with_gain(*known)?,
                Value::Element(address) => plan.held.push((address.input, self.one(address)?)),
                _ => {}
            }
        }
        Some(plan)
    }

    fn square(&self, factor: &Value) -> Option<Plan> {
        let mut plan = self.plan(factor)?;
        let usable = plan.form == Form::Linear && plan.carriers.is_empty();
        let offset = matches!(factor, Value::Binary(Binary::Subtract, _, b)
            if !b.uses(self.variable) && known(b).is_none());
        plan.form = if offset { Form::Deviation } else { Form::Square };
        usable.then_some(plan)
    }

    /// Of several factors, one to steer by, the others to go along or to hold at 1.
    fn live_of(&self, factors: &[&Value]) -> Option<Plan> {
        let plans: Vec<Option<Plan>> = factors.iter().map(|factor| self.plan(factor)).collect();
        let rank = |plan: &Plan| {
            let tensor = (*self.tensors.get(plan.live.input)?)?;
            let wide = tensor.format.min_finite() < 0.0 && tensor.format.significand_bits() >= 8;
            let fine = !plan.live.is_coarse(self.variable) && tensor.exact.is_none();
            let linear = plan.form == Form::Linear;
            Some((linear, fine, plan.nested.is_empty(), wide, tensor.count()))
        };
        let ranked = plans
            .iter()
            .enumerate()
            .filter_map(|(at, plan)| Some((rank(plan.as_ref()?)?, std::cmp::Reverse(at))));
        let (_, std::cmp::Reverse(chosen)) = ranked.max()?;
        let mut plan = plans[chosen].clone().filter(|plan| plan.form == Form::Linear)?;
        for (at, factor) in factors.iter().enumerate().filter(|(at, _)| *at != chosen) {
            self.go_along(&mut plan, factor, plans[at].as_ref())?;
        }
        Some(plan)
    }

    /// Adds a factor beside the one that is steered by.
    fn go_along(&self, plan: &mut Plan, factor: &Value, own: Option<&Plan>) -> Option<()> {
        if let Some(own) = own.filter(|own| own.form == Form::Linear && own.nested.is_empty()) {
            let tensor = (*self.tensors.get(own.live.input)?)?;
            plan.held.extend(own.held.iter().copied());
            if own.live.is_coarse(self.variable) || tensor.exact.is_some() {
                plan.held.push((own.live.input, self.one(&own.live)?));
            } else {
                plan.carriers.push(own.live.clone());
                plan.carriers.extend(own.carriers.iter().cloned());
            }
            return Some(());
        }
        // An exponential is 1 where its argument is 0.
        let Value::Unary(Unary::Exp | Unary::Exp2, argument) = unmasked(factor, self.variable)
        else {
            return None;
        };
        plan.held.push((self.zero(argument, plan)?, 0.0));
        Some(())
    }

    /// What a factor is held at.
    fn one(&self, address: &Address) -> Option<f64> {
        Some((*self.tensors.get(address.input)?)?.exact.unwrap_or(1.0))
    }
}

/// The branch of a select that varies.
fn unmasked(value: &Value, variable: usize) -> &Value {
    match value {
        Value::Select(_, a, b) if !b.uses(variable) => unmasked(a, variable),
        Value::Select(_, a, b) if !a.uses(variable) => unmasked(b, variable),
        _ => value,
    }
}

fn known(value: &Value) -> Option<f64> {
    match value {
        Value::Known(value) => Some(*value),
        Value::Unary(Unary::Negate, a) => known(a).map(|value| -value),
        _ => None,
    }
}

fn flatten<'v>(value: &'v Value, factors: &mut Vec<&'v Value>) {
    match value {
        Value::Binary(Binary::Multiply, a, b) => {
            flatten(a, factors);
            flatten(b, factors);
        }
        other => factors.push(other),
    }
}

fn has_condition(value: &Value) -> bool {
    match value {
        Value::Select(..) => true,
        Value::Unary(_, a) => has_condition(a),
        Value::Binary(_, a, b) => has_condition(a) || has_condition(b),
        Value::Reduced(inner) => has_condition(&inner.term),
        _ => false,
    }
}

/// The elements that a term follows from, direct factors first, tensors with rows before others.
fn handles(reduced: &Reduced, tensors: &[Option<&TensorLayout>]) -> Vec<Handle> {
    let extreme = matches!(reduced.operation, ReduceOperation::Max | ReduceOperation::Min);
    let mut found = Vec::new();
    collect(&reduced.term, reduced.variable, (extreme, &reduced.term), &mut found);
    let mut seen = BTreeSet::new();
    found.retain(|handle: &Handle| {
        let tensor = tensors.get(handle.address.input).copied().flatten();
        tensor.is_some_and(|t| t.indices.is_none()) && seen.insert(handle.address.input)
    });
    found.sort_by_key(|handle| {
        let tensor = tensors[handle.address.input];
        (handle.shifts, tensor.is_none_or(|tensor| tensor.row_axis.is_none()))
    });
    found
}

fn collect(value: &Value, variable: usize, around: (bool, &Value), found: &mut Vec<Handle>) {
    if let Value::Unary(Unary::Exp | Unary::Exp2, argument) = value {
        return collect(argument, variable, (true, argument), found);
    }
    match value {
        Value::Binary(_, a, b) | Value::Select(_, a, b) => {
            collect(a, variable, around, found);
            collect(b, variable, around, found);
        }
        Value::Unary(_, a) => collect(a, variable, around, found),
        other => other.elements(&mut Vec::new(), &mut |address, nested| {
            if address.uses(variable) {
                found.push(Handle {
                    address: address.clone(),
                    nested: nested.iter().map(|inner| (*inner).clone()).collect(),
                    shifts: around.0,
                    argument: still(around.1, variable),
                });
            }
        }),
    }
}

/// The value with addends that are the same for every term left out.
fn still(value: &Value, variable: usize) -> Value {
    match value {
        Value::Binary(operation @ (Binary::Add | Binary::Subtract), a, b) => {
            let part = |side: &Value| {
                if side.uses(variable) { still(side, variable) } else { Value::Known(0.0) }
            };
            Value::Binary(*operation, Box::new(part(a)), Box::new(part(b)))
        }
        Value::Select(_, a, b) if !b.uses(variable) => still(a, variable),
        other => other.clone(),
    }
}

/// The extents of every stage's axes.
fn extents(program: &Program, dims: &Dims) -> Option<BTreeMap<usize, Vec<i64>>> {
    let mut found: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for statement in &program.statements {
        let shape = statement.shape.iter().map(|extent| extent.eval(dims).ok());
        found.insert(statement.stage, shape.collect::<Option<_>>()?);
    }
    for (position, stage) in program.stages.iter().enumerate().rev() {
        let Some(outer) = found.get(&position).cloned() else { continue };
        for access in stage.accesses() {
            let Source::Hoisted(inner) = access.source else { continue };
            let extent = |index: &usize| match &stage.ints[*index] {
                Int::Index(variable) => outer.get(*variable).copied(),
                _ => None,
            };
            if let Some(inner_extents) = access.indices.iter().map(extent).collect() {
                found.entry(inner).or_insert(inner_extents);
            }
        }
    }
    Some(found)
}

/// The axis of a stage that is the first axis of the first output.
fn row_axis(program: &Program, wanted: usize) -> Option<usize> {
    let first = program.statements.iter().find(|statement| statement.output == Some(0))?;
    let mut pending = vec![(first.stage, 0)];
    let mut seen = BTreeSet::new();
    while let Some((position, axis)) = pending.pop() {
        if position == wanted {
            return Some(axis);
        }
        let stage = &program.stages[position];
        for access in stage.accesses() {
            let Some(inner) = program.stage_of(access.source) else { continue };
            let is_row = |index: &usize| stage.ints[*index] == Int::Index(axis);
            let Some(place) = access.indices.iter().position(is_row) else { continue };
            if seen.insert((inner, place)) {
                pending.push((inner, place));
            }
        }
    }
    None
}

/// The inputs that what a stage computes is multiplied by before it reaches an output.
fn multipliers(program: &Program, wanted: usize) -> Vec<usize> {
    let mut depends = vec![false; program.stages.len()];
    depends[wanted] = true;
    let mut found = BTreeSet::new();
    for (position, stage) in program.stages.iter().enumerate() {
        let reads =
            |access: &Access| program.stage_of(access.source).is_some_and(|inner| depends[inner]);
        if position != wanted && stage.accesses().any(reads) {
            for node in &stage.nodes {
                let Node::Binary(Binary::Multiply, a, b) = node else { continue };
                for (one, other) in [(*a, *b), (*b, *a)] {
                    if node_reads(stage, one, &reads) {
                        inputs_of(stage, other, &mut found);
                    }
                }
            }
            depends[position] = true;
        }
    }
    found.into_iter().collect()
}

fn node_reads(stage: &Stage, node: NodeId, reads: &dyn Fn(&Access) -> bool) -> bool {
    match &stage.nodes[node] {
        Node::Read(access) => reads(access),
        other => other.operands().into_iter().any(|inner| node_reads(stage, inner, reads)),
    }
}

fn inputs_of(stage: &Stage, node: NodeId, found: &mut BTreeSet<usize>) {
    match &stage.nodes[node] {
        Node::Read(Access { source: Source::Input(input), .. }) => {
            found.insert(*input);
        }
        Node::Binary(Binary::Multiply, a, b) => {
            inputs_of(stage, *a, found);
            inputs_of(stage, *b, found);
        }
        Node::Unary(Unary::Negate, a) | Node::Round(_, a) | Node::Near(_, a) => {
            inputs_of(stage, *a, found);
        }
        _ => {}
    }
}

/// Makes the term at `variables` of a handle large: `(flat index, new value)` of each element to
/// change, before rounding to the tensor's format.
pub(super) fn raise(
    scope: &Scope<'_>,
    steering: &Steering,
    handle: &Handle,
    (variables, strength, side): (&[i64], u32, f64),
) -> Vec<(usize, f64)> {
    let places = nested_places(scope, &handle.nested, variables);
    let element = |at: &Vec<i64>| {
        let flat = scope.flat(&handle.address, at)?;
        let address = Value::Element(handle.address.clone());
        Some((flat, scope.number(&address, at)?))
    };
    if !handle.shifts {
        let factor = 16f64.powi(strength as i32);
        let alone = handle.nested.is_empty();
        let louder = |value: f64| side * factor * if alone { value.abs().max(0.5) } else { value };
        let changed = places.iter().filter_map(element);
        return changed.map(|(flat, value)| (flat, louder(value))).collect();
    }
    let reach = [4.0, 110.0, 200.0][(strength as usize).clamp(1, 3) - 1];
    shift(scope, steering, handle, (variables, side, reach), &places).unwrap_or_default()
}

/// Every combination of the indices of nested reductions.
fn nested_places(scope: &Scope<'_>, nested: &[Reduced], variables: &[i64]) -> Vec<Vec<i64>> {
    let mut places = vec![variables.to_vec()];
    for inner in nested {
        let longer = places.iter().flat_map(|at| {
            let (from, to) = scope.bounds(inner, at).unwrap_or((0, 0));
            (from..to).map(move |index| {
                let mut at = at.clone();
                at.resize(at.len().max(inner.variable + 1), 0);
                at[inner.variable] = index;
                at
            })
        });
        places = longer.take(MOST_TUPLES).collect();
    }
    places
}

/// Moves what is compared or exponentiated `reach` beyond all other terms'.
fn shift(
    scope: &Scope<'_>,
    steering: &Steering,
    handle: &Handle,
    (variables, side, reach): (&[i64], f64, f64),
    places: &[Vec<i64>],
) -> Option<Vec<(usize, f64)>> {
    let index = steering.reduced.variable;
    let now = scope.number(&handle.argument, variables)?;
    let mut other = variables.to_vec();
    let mut extreme = f64::NEG_INFINITY;
    for at in steering.active(scope, &variables[..index]) {
        other[index] = at;
        if at != variables[index] {
            extreme = extreme.max(side * scope.number(&handle.argument, &other)?);
        }
    }
    let extreme = if extreme.is_finite() { extreme } else { 0.0 };
    let wanted = side * (extreme + reach) - now;
    let slopes: Vec<(usize, f64, f64)> =
        places.iter().filter_map(|at| slope(scope, handle, at)).collect();
    let square: f64 = slopes.iter().map(|(_, _, slope)| slope * slope).sum();
    if square == 0.0 {
        return None;
    }
    Some(slopes.into_iter().map(|(flat, held, s)| (flat, held + wanted * s / square)).collect())
}

/// An element, what it holds, and how fast the handle's argument changes with it.
fn slope(scope: &Scope<'_>, handle: &Handle, at: &[i64]) -> Option<(usize, f64, f64)> {
    let flat = scope.flat(&handle.address, at)?;
    let held = scope.number(&Value::Element(handle.address.clone()), at)?;
    let with = |value: f64| {
        let changed = replaced(&handle.argument, &handle.address, value, &handle.nested);
        scope.number(&changed, at)
    };
    Some((flat, held, with(1.0)? - with(0.0)?))
}

/// The argument with the handle's element replaced by a number and nested sums by their one term.
fn replaced(value: &Value, address: &Address, by: f64, nested: &[Reduced]) -> Value {
    let of = |inner: &Value| Box::new(replaced(inner, address, by, nested));
    match value {
        Value::Element(own) if own == address => Value::Known(by),
        Value::Unary(unary, a) => Value::Unary(*unary, of(a)),
        Value::Binary(binary, a, b) => Value::Binary(*binary, of(a), of(b)),
        Value::Select(condition, a, b) => Value::Select(condition.clone(), of(a), of(b)),
        Value::Reduced(inner) if nested.iter().any(|n| n.variable == inner.variable) => {
            *of(&inner.term)
        }
        other => other.clone(),
    }
}

/// Inputs with elements changed; what was there before is given back.
pub(super) fn write(
    inputs: &mut Inputs,
    tensor: &TensorLayout,
    changes: Vec<(usize, f64)>,
) -> Vec<(usize, f64)> {
    let Some(elements) = inputs.tensors.get_mut(&tensor.name) else { return Vec::new() };
    changes
        .into_iter()
        .map(|(flat, value)| {
            let value = super::values::nearest(tensor.format, value);
            (flat, std::mem::replace(&mut elements[flat], value))
        })
        .collect()
}
