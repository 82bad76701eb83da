//! The depth domain: the longest chain of roundings behind each output, counted by operation.
//!
//! Each operation counts by its constant, so that a function of 2 ulp counts 4; a reduction counts
//! its declared depth, or the number of its terms.

use std::collections::BTreeMap;

use crate::arithmetic::Arithmetic;
use crate::ast::ReduceOperation;
use crate::extent::Dims;
use crate::plan::{Binary, Node, Program, Stage};
use crate::rounding::Rounding;

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
        let element = stage_depth(program, stage, rounding, &of_stage);
        let declared = declared.get(position).copied().flatten();
        of_stage.push(element + reduction_depth(program, position, dims, declared));
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

/// The depth of a stage's element or term.
fn stage_depth(program: &Program, stage: &Stage, rounding: Rounding, below: &[f64]) -> f64 {
    let mut depth: Vec<f64> = Vec::with_capacity(stage.nodes.len());
    for node in &stage.nodes {
        let operands = node.operands().into_iter().map(|operand| depth[operand]);
        let deepest = operands.fold(0.0, f64::max);
        let source = match node {
            Node::Read(access) => program.stage_of(access.source).map_or(0.0, |s| below[s]),
            _ => 0.0,
        };
        depth.push(deepest.max(source) + own_depth(stage, node, rounding));
    }
    depth[stage.root]
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
