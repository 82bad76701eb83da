//! The depth domain: the longest chain of roundings behind each output, counted by operation.
//!
//! Each operation counts by its constant, so that a function of 2 ulp counts 4; a reduction counts
//! its declared depth, or the number of its terms.

use std::collections::BTreeMap;

use crate::arithmetic::Arithmetic;
use crate::ast::ReduceOperation;
use crate::extent::Dims;
use crate::plan::{Binary, Node, NodeId, Program, Stage};
use crate::rounding::{Rounding, UNIT};

/// The depth of each output. One that cannot be told for these dims is infinite.
pub(crate) fn depths(
    program: &Program,
    dims: &Dims,
    arithmetic: &Arithmetic,
) -> BTreeMap<String, f64> {
    let rounding = Rounding::new(arithmetic);
    let declared = program.depths(dims, arithmetic).unwrap_or_default();
    let mut of_stage: Vec<f64> = Vec::with_capacity(program.stages.len());
    for (position, stage) in program.stages.iter().enumerate() {
        if stage.scan.is_some() {
            of_stage.push(scan_depth(program, (position, dims), rounding, &of_stage));
            continue;
        }
        let element = stage_depth(program, (stage, stage.root), rounding, (&of_stage, 0.0));
        let declared = declared.get(position).copied().flatten();
        let own = reduction_depth(program, position, dims, declared);
        of_stage.push(element + own + tensor_depth(program, position, dims, arithmetic));
    }
    let outputs = program.statements.iter().filter(|s| s.output.is_some());
    outputs.map(|s| (s.name.clone(), of_stage[s.stage])).collect()
}

/// The roundings of a stage's reduction: none for extremes.
fn reduction_depth(program: &Program, position: usize, dims: &Dims, declared: Option<f64>) -> f64 {
    let Some(reduction) = program.reduction_of_stage[position] else { return 0.0 };
    let reduction = &program.reductions[reduction];
    if matches!(reduction.operation, ReduceOperation::Max | ReduceOperation::Min) {
        return 0.0;
    }
    declared.unwrap_or_else(|| match (reduction.from.eval(dims), reduction.to.eval(dims)) {
        (Ok(from), Ok(to)) => (to as f64 - from as f64).max(0.0),
        _ => f64::INFINITY,
    })
}

/// What tensor cores add to the depth of a sum, in roundings of fp32.
fn tensor_depth(program: &Program, position: usize, dims: &Dims, arithmetic: &Arithmetic) -> f64 {
    let Ok(rules) = program.tensor_rules(dims, arithmetic) else { return f64::INFINITY };
    let Some(rule) = rules.get(position).copied().flatten() else { return 0.0 };
    let terms = reduction_depth(program, position, dims, None);
    let accumulator = program.accumulators(arithmetic)[position];
    rule.growth(terms, accumulator) / UNIT
}

/// The depth of a scan's last step. A step lengthens the carry's chain by a fixed number of
/// roundings, or starts a chain of its own.
fn scan_depth(
    program: &Program,
    (position, dims): (usize, &Dims),
    rounding: Rounding,
    below: &[f64],
) -> f64 {
    let stage = &program.stages[position];
    let Some(scan) = &stage.scan else { return 0.0 };
    let of = |root, carry| stage_depth(program, (stage, root), rounding, (below, carry));
    let steps = program.reduction_of_stage[position]
        .map(|reduction| program.reductions[reduction].to.eval(dims));
    let Some(Ok(steps)) = steps else { return f64::INFINITY };
    let (steps, long) = (steps as f64, (1u64 << 40) as f64);
    let (lengthens, own) = (of(stage.root, long) - long, of(stage.root, f64::NEG_INFINITY));
    let carried = of(scan.initial, 0.0) + steps * lengthens;
    carried.max(own + (steps - 1.0).max(0.0) * lengthens)
}

/// The depth of a node of a stage; `below` holds the stages before it, `carry` is a carry's depth.
fn stage_depth(
    program: &Program,
    (stage, root): (&Stage, NodeId),
    rounding: Rounding,
    (below, carry): (&[f64], f64),
) -> f64 {
    let mut depth: Vec<f64> = Vec::with_capacity(stage.nodes.len());
    for node in &stage.nodes {
        let operands = node.operands().into_iter().map(|operand| depth[operand]);
        let deepest = operands.fold(0.0, f64::max);
        let source: f64 = match node {
            Node::Read(access) => program.stage_of(access.source).map_or(0.0, |s| below[s]),
            Node::Carry => carry,
            _ => 0.0,
        };
        depth.push(deepest.max(source) + own_depth(stage, node, rounding));
    }
    depth[root]
}

fn own_depth(stage: &Stage, node: &Node, rounding: Rounding) -> f64 {
    match node {
        Node::Unary(operation, _) => rounding.function(*operation, 0.0, 0.0),
        Node::Binary(Binary::Max | Binary::Min, ..) => 0.0,
        Node::Binary(Binary::Divide, one, _)
            if stage.nodes[*one] == Node::Literal(1.0f64.to_bits()) =>
        {
            rounding.reciprocal()
        }
        Node::Binary(Binary::Divide, ..) => rounding.division().0,
        Node::Binary(..) | Node::Round(..) | Node::Near(..) => 1.0,
        _ => 0.0,
    }
}
