//! The range domain: what any correct kernel may have at each output, across its rounding points.
//!
//! A kernel that rounds to bf16 between its steps is far from the real-number value, yet each of
//! its steps is nearly decided: between two rounding points its fp32 steps spread over an interval
//! by the error domain's rules, and at a rounding point both ends are rounded to nearest even.
//! Unless the interval holds a tie between two values of the format, one value is left, and with it
//! no spread at all.

use std::collections::BTreeMap;

use crate::error::EvaluationError;
use crate::evaluate::{Bounded, Evaluation};
use crate::frame::Frame;
use crate::plan::{Node, NodeId, Program, Stage};

impl Program {
    /// The interval that holds each output before output rounding, for every correct kernel that
    /// rounds where the formula says `T(e)`: its middle as the value and half its width as the
    /// error, which is 0 where all such kernels agree. Elements whose inputs allow no bound have an
    /// error that is not finite, beside the problems reported.
    ///
    /// Without rounding points this is [`Program::error`].
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn range(
        &self,
        evaluation: &Evaluation<'_>,
    ) -> Result<BTreeMap<String, Bounded>, EvaluationError> {
        let rounds = |stage: &Stage| stage.nodes.iter().any(|n| matches!(n, Node::Round(..)));
        self.bounded_by(evaluation, self.stages.iter().any(rounds))
    }

    /// How many operations on elements and terms one evaluation takes, in any domain.
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn work(&self, evaluation: &Evaluation<'_>) -> Result<f64, EvaluationError> {
        let inputs = self.completed(evaluation)?;
        let evaluation = Evaluation { inputs: &inputs, ..evaluation.clone() };
        Ok(Frame::new(self, &evaluation)?.work())
    }

    /// Whether some step is rounded on the way to an output: any rounding point but one that is
    /// the whole of an output which nothing else reads, in that output's own format.
    pub fn has_rounding_points(&self) -> bool {
        let points = |position: usize, stage: &Stage| {
            let is_point = |(id, node): (NodeId, &Node)| match node {
                Node::Round(format, _) => {
                    id != stage.root || self.only_output(position) != Some(*format)
                }
                _ => false,
            };
            stage.nodes.iter().enumerate().any(is_point)
        };
        self.stages.iter().enumerate().any(|(position, stage)| points(position, stage))
    }

    /// The format of the output that a stage is, if nothing reads the stage.
    fn only_output(&self, position: usize) -> Option<assay_num::Format> {
        let reads = |stage: &Stage| {
            stage.accesses().any(|access| self.stage_of(access.source) == Some(position))
        };
        if self.stages[position].reduction.is_some() || self.stages.iter().any(reads) {
            return None;
        }
        let statement = self.statements.iter().find(|statement| statement.stage == position)?;
        Some(self.signature.outputs[statement.output?].format)
    }
}
