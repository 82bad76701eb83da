//! Inputs for scans: a state that fp32 carries exactly and a narrower one gets stuck at, and finite
//! data under which a state neither grows without end nor dies.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;

use crate::plan::{Binary, Node, NodeId, Program, Source, Stage, Unary};
use crate::{Inputs, ReduceOperation};

use super::layout::{Layout, Line, ReductionLayout, TensorLayout};
use super::values;

/// Where gate 4's states stay below: f16 ends at 2^16.
const STUCK_AT: f64 = 32768.0;
/// What a tensor inside a decay's exponential is scaled by: a product of two such values stays
/// below 2^-6, and thousands of steps with random signs stay finite.
const IN_EXPONENT: f64 = 1.0 / 16.0;
/// What a tensor that is a factor of the carry is scaled by: magnitudes in [0.25, 1).
const AS_FACTOR: f64 = 0.5;

/// Shapes the inputs of one scan so that its state jumps to a large whole number at the first step
/// and then grows by whole numbers that are each less than half a step of `format` there: fp32
/// holds every state, and one in `format` never moves. `inputs` holds 1 and -1; tensors that are
/// declared to make sums exact get their value.
///
/// The terms must be a product of the inputs they walk, and what multiplies the carry must be 1 or
/// -1; other scans get a bound that is not exact, and the gate says what could not be proved.
pub(super) fn stick(
    layout: &Layout,
    reduction: &ReductionLayout,
    (format, inputs): (Format, &mut Inputs),
    random: &mut SplitMix64,
) {
    make_exact(layout, inputs);
    let walked = reduction.reads.iter().filter_map(|(name, _)| layout.tensor(name));
    let walked: Vec<&TensorLayout> =
        walked.filter(|tensor| tensor.exact.is_none() && tensor.indices.is_none()).collect();
    let with_rows = walked.iter().find(|tensor| tensor.row_axis.is_some());
    let Some(shaped) = with_rows.or(walked.last()).map(|tensor| tensor.name.clone()) else {
        return;
    };
    for tensor in walked {
        let is_shaped = tensor.name == shaped;
        let Some(axis) = reduction.reads.iter().find(|(name, _)| *name == tensor.name) else {
            continue;
        };
        let Some(elements) = inputs.tensors.get_mut(&tensor.name) else { continue };
        for line in tensor.lines(axis.1) {
            if is_shaped {
                let state = largest_state(layout, tensor.format);
                climb(elements, line, (tensor.format, format, state), random);
            } else {
                hold(elements, line);
            }
        }
    }
}

/// Holds the states of scans that a sum reads at what they start from, by zeros in what their steps
/// add, so that the sum's terms are a plain product; the sum with such terms, if it can be so.
pub(super) fn hold_still(
    layout: &Layout,
    reduction: &ReductionLayout,
    inputs: &mut Inputs,
) -> Option<ReductionLayout> {
    let term = reduction.still.clone()?;
    make_exact(layout, inputs);
    let scans = layout.reductions.iter().filter(|r| r.operation == ReduceOperation::Scan);
    let added = scans.flat_map(|scan| &scan.reads).map(|(name, _)| name);
    for name in added.filter(|name| !term.tensors().contains(&name.as_str())) {
        let tensor = layout.tensor(name).filter(|t| t.exact.is_none() && t.indices.is_none());
        if let Some(elements) = tensor.and_then(|_| inputs.tensors.get_mut(name)) {
            elements.fill(0.0);
        }
    }
    Some(ReductionLayout { term, still: None, ..reduction.clone() })
}

/// Gives tensors that are declared to make sums exact their value.
fn make_exact(layout: &Layout, inputs: &mut Inputs) {
    for tensor in layout.filled() {
        if let (Some(exact), Some(elements)) = (tensor.exact, inputs.tensors.get_mut(&tensor.name))
        {
            elements.fill(exact);
        }
    }
}

/// The state to start from: what the sums behind the scan still add exactly.
fn largest_state(layout: &Layout, held_in: Format) -> f64 {
    let sums = layout.reductions.iter().filter(|other| other.operation == ReduceOperation::Sum);
    let terms: f64 = sums.map(|sum| sum.terms.max(1) as f64).product();
    let limit = STUCK_AT.min(2f64.powi(22) / terms).min(held_in.max_finite() / 2.0);
    2f64.powf(limit.max(1.0).log2().floor())
}

/// A large whole number, then numbers of the same sign less than half a step of `narrow` there.
fn climb(
    elements: &mut [f64],
    line: Line,
    (held_in, narrow, state): (Format, Format, f64),
    random: &mut SplitMix64,
) {
    let side = values::sign(random);
    let half = (narrow.ulp(state) / 2.0).max(1.0);
    for place in 0..line.length {
        let growth = match place {
            0 => state,
            _ => (half - 1.0 - random.below((half / 8.0) as u64 + 1) as f64).max(1.0),
        };
        elements[line.at(place)] = values::nearest(held_in, side * growth);
    }
}

/// Gives all places of a line the value of its first, so that a term's sign never changes.
fn hold(elements: &mut [f64], line: Line) {
    let first = (line.length > 0).then(|| elements[line.at(0)]);
    for place in 0..line.length {
        elements[line.at(place)] = first.unwrap_or(1.0);
    }
}

/// Scales the tensors that multiply a carry.
pub(super) fn calm(layout: &Layout, inputs: &mut Inputs) {
    for tensor in layout.filled().filter(|tensor| tensor.scale != 1.0) {
        let elements = inputs.tensors.get_mut(&tensor.name);
        if let Some(elements) = elements.filter(|_| tensor.format.is_float()) {
            for element in elements {
                *element = values::nearest(tensor.format, *element * tensor.scale);
            }
        }
    }
}

/// The inputs that what multiplies a carry is made of, and what ordinary data is scaled by there
/// so that states stay finite and last.
pub fn decays(program: &Program) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for stage in &program.stages {
        if stage.scan.is_some() {
            let mut factors = Vec::new();
            carry_factors(stage, stage.root, &mut factors);
            for factor in factors {
                scale_inputs(program, (stage, factor), AS_FACTOR, (&mut found, 0));
            }
        }
    }
    found
}

/// Adds the nodes that multiply the carry below `node`; says whether the carry is there.
fn carry_factors(stage: &Stage, node: NodeId, factors: &mut Vec<NodeId>) -> bool {
    match &stage.nodes[node] {
        Node::Carry => true,
        Node::Binary(Binary::Multiply, a, b) => {
            let (left, right) =
                (carry_factors(stage, *a, factors), carry_factors(stage, *b, factors));
            factors.extend(right.then_some(*a));
            factors.extend(left.then_some(*b));
            left || right
        }
        other => {
            let operands = other.operands().into_iter();
            operands.fold(false, |found, at| carry_factors(stage, at, factors) | found)
        }
    }
}

/// How many statements deep a factor of the carry is followed.
const DEEPEST: usize = 16;

/// Notes the inputs below a node with what they are scaled by.
fn scale_inputs(
    program: &Program,
    (stage, node): (&Stage, NodeId),
    scale: f64,
    (found, depth): (&mut BTreeMap<String, f64>, usize),
) {
    let scale = match &stage.nodes[node] {
        Node::Unary(Unary::Exp | Unary::Exp2, _) => IN_EXPONENT,
        _ => scale,
    };
    if let Node::Read(access) = &stage.nodes[node] {
        match (access.source, program.stage_of(access.source)) {
            (Source::Input(input), _) => {
                let entry = found.entry(program.signature.inputs[input].name.clone());
                let least = entry.or_insert(scale);
                *least = least.min(scale);
            }
            (_, Some(below)) if depth < DEEPEST => {
                let below = &program.stages[below];
                scale_inputs(program, (below, below.root), scale, (found, depth + 1));
            }
            _ => {}
        }
    }
    for operand in stage.nodes[node].operands() {
        scale_inputs(program, (stage, operand), scale, (found, depth));
    }
}

#[cfg(test)]
mod tests {
    use super::decays;
    use crate::{Formula, Program, Signature, Tensor};
    use assay_num::Format;

    fn program(text: &str) -> Program {
        let tensor = |name| Tensor::new(name, Format::F32, &["n"]).unwrap();
        let signature = Signature {
            dims: vec!["n".into()],
            inputs: ["x", "a", "dt"].map(tensor).into(),
            outputs: vec![tensor("h")],
            ..Signature::default()
        };
        Formula::parse(text).unwrap().check(&signature).unwrap()
    }

    #[test]
    fn what_multiplies_the_carry_is_found_through_statements() {
        let of = |text: &str| decays(&program(text)).into_iter().collect::<Vec<_>>();
        let named = |name: &str, scale: f64| (name.to_owned(), scale);
        assert_eq!(of("h[t] = scan(t, p = 0: p + x[t])"), []);
        assert_eq!(of("h[t] = scan(t, p = 0: a[t] * p + x[t])"), [named("a", 0.5)]);
        let text = "r[t] = exp(dt[t] * a[t])\nh[t] = scan(t, p = 0: r[t] * p + dt[t] * x[t])";
        assert_eq!(of(text), [named("a", 0.0625), named("dt", 0.0625)]);
        assert_eq!(of("h[t] = x[t] + a[t] * dt[t]"), []);
    }
}
