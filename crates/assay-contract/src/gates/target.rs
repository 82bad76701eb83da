//! What the gates on values need of a kernel, taken out of its spec so that it can be run beside.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_device::Schedule;
use assay_num::random::SplitMix64;
use assay_record::{CaseName, Gate};
use assay_reference::fill::{FillError, Layout};
use assay_reference::rule::Rule;
use assay_reference::{Arithmetic, Dims, Limits, Program, Signature};

use super::{GateContext, envelope};
use crate::spec::Spec;
use crate::subject::{RunError, RunRequest, RunResult, Subject};

/// A kernel's reference with all that its fills depend on.
pub(super) struct Target {
    pub(super) judge: Judge,
    /// The formula that decides classes, where bounds come from another form of it.
    pub(super) stated: Option<Arc<Program>>,
    pub(super) signature: Signature,
    pub(super) arithmetic: Arithmetic,
    pub(super) tiles: BTreeMap<String, i64>,
    /// What callers promise of the inputs.
    pub(super) limits: BTreeMap<String, Limits>,
    /// What the inputs that hold indices are drawn from.
    pub(super) seed: u64,
}

/// What says which outputs are right.
#[derive(Clone)]
pub(super) enum Judge {
    /// A formula, with bounds.
    Formula(Arc<Program>),
    /// A rule, exactly.
    Rule(Box<Rule>),
}

impl Target {
    /// Takes the reference out of a spec; the reason if it has none that can be used.
    pub(super) fn of(spec: &Spec, seed: u64) -> Result<Target, String> {
        let judge = match (&spec.program, &spec.rule) {
            (Some(program), _) => Judge::Formula(Arc::clone(program)),
            (None, Some(rule)) => {
                let rule = Rule::named(&rule.name, &rule.parameters, &spec.signature);
                Judge::Rule(Box::new(rule.map_err(|error| error.to_string())?))
            }
            (None, None) => return Err("the kernel has neither a formula nor a rule".to_owned()),
        };
        Ok(Target {
            judge,
            stated: spec.stated.clone(),
            signature: spec.signature.clone(),
            arithmetic: spec.arithmetic.clone(),
            tiles: envelope::tiles(spec),
            limits: spec.limits(),
            seed,
        })
    }

    /// The layout of the kernel's tensors at a shape.
    pub(super) fn layout(&self, dims: &Dims) -> Result<Layout, FillError> {
        match &self.judge {
            Judge::Formula(program) => Layout::of(program, dims, (&self.tiles, self.seed)),
            Judge::Rule(rule) => {
                let mut layout = Layout::of_rule(rule, &self.signature, dims, &self.tiles)?;
                layout.limit(&self.limits, dims, self.seed);
                Ok(layout)
            }
        }
    }
}

/// The case of `gate` at a shape, with its random numbers.
pub(super) fn case(
    subject: &dyn Subject,
    context: &GateContext<'_>,
    (gate, dims): (Gate, &Dims),
    fill: &str,
) -> (CaseName, SplitMix64) {
    let case = context.case(subject.spec(), gate, dims, (fill, Schedule::InOrder));
    let random = context.random(&case);
    (case, random)
}

/// One plain run.
pub(super) fn run(
    subject: &mut dyn Subject,
    dims: &Dims,
    inputs: &assay_reference::Inputs,
) -> Result<RunResult, RunError> {
    subject.run(&RunRequest::new(dims, inputs))
}

/// True if more runs would end the same way, so that the gate should stop.
pub(super) fn is_final(error: &RunError) -> bool {
    !matches!(error, RunError::Fault { lost_device: false, .. })
}
