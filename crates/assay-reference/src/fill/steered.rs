//! Gate 4's inputs for sums whose terms are written out: one element decides each term, and all
//! that lies between is held still.

use std::collections::BTreeMap;

use assay_num::random::SplitMix64;

use crate::{Inputs, ReduceOperation};

use super::expression::{Address, Reduced, Scope};
use super::layout::{Layout, ReductionLayout, TensorLayout};
use super::steer::{Form, Path, Plan, Steering};
use super::sums::{Recipe, line_of, symmetric};
use super::term::Term;
use super::values;

/// Shapes the inputs of one sum, which hold small whole numbers so far. False if the terms are not
/// understood; the inputs are then as they were.
pub(super) fn steer(
    layout: &Layout,
    reduction: &ReductionLayout,
    (recipe, inputs): (&Recipe, &mut Inputs),
    random: &mut SplitMix64,
) -> bool {
    let shaped = layout.with_steering(reduction, |steering, scope| {
        let plan = steering.plan.as_ref()?;
        let shaping = Shaping { layout, reduction, steering, scope, plan };
        shaping.hold(inputs);
        shaping.shape((recipe, inputs), random)
    });
    shaped.flatten().is_some()
}

/// Sets what every element is where sums are to be exact and a tensor is not shaped. What a sum is
/// multiplied by on its way out is 1 where it would hide the sum.
pub(super) fn settle(layout: &Layout, reduction: &ReductionLayout, inputs: &mut Inputs) {
    let hiding = layout.with_steering(reduction, |steering, _| {
        let names = steering.multipliers.iter().map(|input| steering.names[*input].clone());
        names.collect::<Vec<String>>()
    });
    let hiding = hiding.unwrap_or_default();
    for tensor in layout.filled() {
        let Some(exact) = tensor.exact else { continue };
        let exact = if exact == 0.0 && hiding.contains(&tensor.name) { 1.0 } else { exact };
        if let Some(elements) = inputs.tensors.get_mut(&tensor.name) {
            elements.fill(exact);
        }
    }
}

/// True if written-out terms are steered by a larger tensor than `shaped` finds for lines: the sums
/// of a score differ from key to key then, as a softmax over them has to see.
pub(super) fn is_wider(
    layout: &Layout,
    reduction: &ReductionLayout,
    shaped: for<'l> fn(&'l Layout, &ReductionLayout) -> Option<&'l TensorLayout>,
) -> bool {
    let Term::Product(_) = reduction.term else { return false };
    let live = layout.with_steering(reduction, |steering, _| {
        let plan = steering.plan.as_ref().filter(|plan| plan.form == Form::Linear)?;
        layout.tensor(&steering.names[plan.live.input])
    });
    let (Some(live), Some(shaped)) = (live.flatten(), shaped(layout, reduction)) else {
        return false;
    };
    live.format.significand_bits() >= 8 && live.count() > shaped.count()
}

struct Shaping<'a> {
    layout: &'a Layout,
    reduction: &'a ReductionLayout,
    steering: &'a Steering,
    scope: &'a Scope<'a>,
    plan: &'a Plan,
}

impl Shaping<'_> {
    fn tensor(&self, input: usize) -> Option<&TensorLayout> {
        self.layout.tensor(&self.steering.names[input])
    }

    /// Writes the inputs that hold one value, and zeros where only first terms of nested sums
    /// count.
    fn hold(&self, inputs: &mut Inputs) {
        let nested = (!self.plan.nested.is_empty()).then_some((self.plan.live.input, 0.0));
        for (input, value) in self.plan.held.iter().copied().chain(nested) {
            let tensor = self.tensor(input).filter(|tensor| tensor.indices.is_none());
            let elements = tensor.and_then(|tensor| inputs.tensors.get_mut(&tensor.name));
            if let Some(elements) = elements {
                elements.fill(value);
            }
        }
    }

    fn paths(&self, address: &Address) -> Vec<Path> {
        let nested: &[Reduced] = &self.plan.nested;
        self.steering.paths(self.scope, (address, nested), None)
    }

    fn shape(
        &self,
        (recipe, inputs): (&Recipe, &mut Inputs),
        random: &mut SplitMix64,
    ) -> Option<()> {
        let (start, terms) = (self.reduction.from as i64, self.reduction.terms);
        let offset = |at: i64| usize::try_from(at - start).ok().filter(|at| *at < terms);
        let mut product = vec![1.0; terms];
        for (number, carrier) in self.plan.carriers.iter().enumerate() {
            let tensor = self.tensor(carrier.input)?;
            // Rows that take other terms see another part of the pattern, which stays plain there.
            let pattern = match (self.steering.varies, number) {
                (true, _) => vec![1.0; terms],
                (false, 0) => symmetric(tensor.format, terms, 2, random),
                (false, _) => symmetric(tensor.format, terms, 1, random),
            };
            let elements = inputs.tensors.get_mut(&tensor.name)?;
            for path in self.paths(carrier) {
                for (at, flat) in path.places {
                    elements[flat] = offset(at).map_or(1.0, |at| pattern[at]);
                }
            }
            product.iter_mut().zip(&pattern).for_each(|(product, factor)| *product *= factor);
        }
        let tensor = self.tensor(self.plan.live.input)?;
        let elements = inputs.tensors.get_mut(&tensor.name)?;
        let exponential = self.plan.form == Form::Exponential;
        let mut whole: BTreeMap<i64, bool> = BTreeMap::new();
        let gain = if exponential { self.plan.gain } else { 1.0 };
        for (row, path) in self.paths(&self.plan.live).into_iter().enumerate() {
            let part: Vec<f64> = path
                .places
                .iter()
                .map(|(at, _)| offset(*at).map_or(1.0, |at| product[at]))
                .collect();
            let centred = self.plan.form == Form::Deviation;
            let line = line_of(recipe, (tensor.format, &part), (row, centred), random);
            for ((at, flat), value) in path.places.iter().zip(line) {
                elements[*flat] = values::nearest(tensor.format, value / gain);
                let stays = whole.entry(*at).or_insert(true);
                *stays &= value == 0.0;
            }
        }
        if exponential {
            self.clear_weighted(inputs, &whole);
        }
        Some(())
    }

    /// Zeros what other sums weigh with these exponentials, except where all of them are exactly 1:
    /// the small ones are rounded, and their errors would hide what this sum loses.
    fn clear_weighted(&self, inputs: &mut Inputs, whole: &BTreeMap<i64, bool>) {
        let sums = self
            .layout
            .reductions
            .iter()
            .filter(|other| other.is_steered() && other.operation == ReduceOperation::Sum);
        for other in sums {
            let Some(steering) = other.steering.as_ref() else { continue };
            let weighs = steering
                .handles
                .iter()
                .any(|handle| handle.shifts && handle.address.input == self.plan.live.input);
            let plan = steering.plan.as_ref().filter(|plan| plan.form == Form::Linear);
            let (Some(plan), true) = (plan, weighs) else { continue };
            let Some(tensor) = self.layout.tensor(&steering.names[plan.live.input]) else {
                continue;
            };
            let Some(elements) = inputs.tensors.get_mut(&tensor.name) else { continue };
            for path in steering.paths(self.scope, (&plan.live, &plan.nested), None) {
                for (at, flat) in path.places {
                    if whole.get(&at) != Some(&true) {
                        elements[flat] = 0.0;
                    }
                }
            }
        }
    }
}
