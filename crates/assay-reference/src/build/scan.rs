//! Builds the stage of a scan: a statement whose elements follow from each other along one index.

use super::{Built, StageBuilder};
use crate::ast::{Expr, ExprKind, Reduce, Scan, mentions, mentions_in_reduce};
use crate::check::Checker;
use crate::error::{FormulaError, Span};
use crate::plan::{Node, NodeId, StageScan};

/// The value of the step before, as a scan's step calls it.
pub(super) struct Carry {
    name: String,
    node: NodeId,
}

impl<'e> StageBuilder<'e> {
    /// Plans `scan` over all variables and returns its stage.
    pub(super) fn scan(mut self, checker: &mut Checker<'_>, scan: &'e Scan) -> Built<usize> {
        let axis = self.scanned_axis(checker, scan)?;
        self.check_carry(checker, scan)?;
        if mentions(&scan.initial, &scan.index) {
            let message =
                format!("the initial value comes before every step and has no `{}`", scan.index);
            let hint = format!("use `{}` in the step, after the colon", scan.index);
            return Err(checker.error(scan.initial.span, message).with_hint(hint));
        }
        let initial = self.value(checker, &scan.initial)?;
        let node = self.node(Node::Carry, scan.carry_span);
        self.carry = Some(Carry { name: scan.carry.clone(), node });
        let root = self.value(checker, &scan.step)?;
        if !mentions(&scan.step, &scan.carry) {
            let message = format!("the step never uses `{}`, so nothing is carried", scan.carry);
            let hint = "write the step as a plain statement, without `scan`";
            return Err(checker.error(scan.carry_span, message).with_hint(hint));
        }
        let rank = self.variables.len();
        let mut stage = self.finish(rank, root, None, scan.index.clone());
        stage.scan = Some(StageScan { axis, initial, carry: node });
        checker.add_stage(stage)
    }

    fn scanned_axis(&self, checker: &Checker<'_>, scan: &Scan) -> Built<usize> {
        self.variable(&scan.index).ok_or_else(|| {
            let message = format!("`{}` is no index of this statement", scan.index);
            let indices: Vec<&str> = self.variables.iter().map(|v| v.name.as_str()).collect();
            let hint = if indices.is_empty() {
                "a scan walks an index of its statement: `h[t] = scan(t, prev = 0: ...)`".to_owned()
            } else {
                format!("a scan walks one of: {}", indices.join(", "))
            };
            checker.error(scan.index_span, message).with_hint(hint)
        })
    }

    /// The carry has a name of its own.
    fn check_carry(&self, checker: &Checker<'_>, scan: &Scan) -> Built<()> {
        let Scan { carry, carry_span, .. } = scan;
        let own = self.variable(carry).is_some() || *carry == self.statement;
        if own || checker.is_taken(carry) {
            return Err(checker.name_taken(carry, *carry_span));
        }
        Ok(())
    }

    /// The carry's node, where `name` is the carry.
    pub(super) fn carried(&self, name: &str) -> Option<NodeId> {
        self.carry.as_ref().filter(|carry| carry.name == name).map(|carry| carry.node)
    }

    /// Refuses a reduction whose terms would need the carry.
    pub(super) fn check_carry_free(
        &self,
        checker: &Checker<'_>,
        (reduce, span): (&Reduce, Span),
    ) -> Built<()> {
        let Some(Carry { name, .. }) = &self.carry else { return Ok(()) };
        if reduce.index == *name {
            return Err(checker.name_taken(name, reduce.index_span));
        }
        if mentions_in_reduce(reduce, name) {
            let message = format!("`{name}` cannot be used inside a reduction");
            let hint = "a scan carries each element by itself; reduce over the scan in a statement \
                        of its own";
            return Err(checker.error(span, message).with_hint(hint));
        }
        Ok(())
    }

    /// True if `condition` depends on the carry, which no other stage knows.
    pub(super) fn needs_carry(&self, condition: &Expr) -> bool {
        self.carry.as_ref().is_some_and(|carry| mentions(condition, &carry.name))
    }

    /// The error of a name that is read as a tensor and is none.
    pub(super) fn no_source(&self, checker: &Checker<'_>, name: &str, span: Span) -> FormulaError {
        if self.carried(name).is_some() {
            let message = format!("`{name}` is the value of the step before and has no axes");
            return checker.error(span, message).with_hint(format!("write `{name}` alone"));
        }
        if name == self.statement {
            let message = format!("`{name}` cannot read itself");
            let hint = match &self.carry {
                Some(carry) => format!("the value of the step before is `{}`", carry.name),
                None => format!("write a recurrence as `{name}[t] = scan(t, prev = 0: ...)`"),
            };
            return checker.error(span, message).with_hint(hint);
        }
        checker.unknown_name(name, span, &self.variables)
    }
}

/// The scan that `expr` is, if it is one.
pub(super) fn scan_of(expr: &Expr) -> Option<&Scan> {
    match &expr.kind {
        ExprKind::Scan(scan) => Some(scan),
        _ => None,
    }
}
