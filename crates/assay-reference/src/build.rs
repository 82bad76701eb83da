//! Builds the stages of a formula: looks names up, types expressions, hoists reductions.

mod scan;

use std::collections::HashMap;

use crate::ast::{Expr, ExprKind, Function, Operator, Reduce, mentions, mentions_in_reduce};
use crate::check::Checker;
use crate::error::{FormulaError, Span};
use crate::extent::Extent;
use crate::plan::{Access, Binary, Int, IntId, Node, NodeId, Source, Stage, StageReduction, Unary};

/// An index in scope.
#[derive(Clone)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// One past its largest value, where that depends on dims alone.
    pub(crate) extent: Option<Extent>,
}

/// The condition under which an expression is evaluated, as written: true or false.
type Guard<'e> = (&'e Expr, bool);

/// A stage being built.
pub(crate) struct StageBuilder<'e> {
    variables: Vec<Variable>,
    ints: Vec<Int>,
    nodes: Vec<Node>,
    spans: Vec<Span>,
    int_ids: HashMap<Int, IntId>,
    node_ids: HashMap<Node, NodeId>,
    /// Conditions around the expression being built, outermost first.
    guards: Vec<Guard<'e>>,
    /// Their conjunction as a node.
    guard: Option<NodeId>,
    /// In a scan's step, the value of the step before.
    carry: Option<scan::Carry>,
    statement: String,
}

type Built<T> = Result<T, FormulaError>;

impl<'e> StageBuilder<'e> {
    pub(crate) fn new(variables: Vec<Variable>, statement: &str) -> Self {
        Self {
            variables,
            ints: Vec::new(),
            nodes: Vec::new(),
            spans: Vec::new(),
            int_ids: HashMap::new(),
            node_ids: HashMap::new(),
            guards: Vec::new(),
            guard: None,
            carry: None,
            statement: statement.to_owned(),
        }
    }

    /// Plans `expr` over all variables and returns its stage.
    pub(crate) fn statement(mut self, checker: &mut Checker<'_>, expr: &'e Expr) -> Built<usize> {
        if let Some(scan) = scan::scan_of(expr) {
            return self.scan(checker, scan);
        }
        if let ExprKind::Reduce(reduce) = &expr.kind {
            let free = self.free_variables(reduce);
            if free.len() == self.variables.len() {
                return self.reduction_stage(checker, reduce, &free);
            }
        }
        let root = self.value(checker, expr)?;
        let rank = self.variables.len();
        let stage = self.finish(rank, root, None, String::new());
        checker.add_stage(stage)
    }

    fn finish(
        self,
        rank: usize,
        root: NodeId,
        reduction: Option<StageReduction>,
        index: String,
    ) -> Stage {
        let Self { ints, nodes, spans, statement, .. } = self;
        let (scan, difference) = (None, None);
        Stage { rank, ints, nodes, spans, root, reduction, scan, difference, statement, index }
    }

    fn int(&mut self, int: Int) -> IntId {
        if let Some(id) = self.int_ids.get(&int) {
            return *id;
        }
        self.ints.push(int.clone());
        self.int_ids.insert(int, self.ints.len() - 1);
        self.ints.len() - 1
    }

    fn node(&mut self, node: Node, span: Span) -> NodeId {
        if let Some(id) = self.node_ids.get(&node) {
            return *id;
        }
        self.nodes.push(node.clone());
        self.spans.push(span);
        self.node_ids.insert(node, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn literal(&mut self, value: f64, span: Span) -> NodeId {
        self.node(Node::Literal(value.to_bits()), span)
    }

    fn variable(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|v| v.name == name)
    }

    /// A real value.
    fn value(&mut self, checker: &mut Checker<'_>, expr: &'e Expr) -> Built<NodeId> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Number { value, .. } => Ok(self.literal(*value, span)),
            ExprKind::Name(name) => self.named_value(checker, name, span),
            ExprKind::Read { name, indices } => {
                let access = self.access(checker, name, indices, span)?;
                Ok(self.node(Node::Read(access), span))
            }
            ExprKind::Negate(operand) => {
                let operand = self.value(checker, operand)?;
                Ok(self.node(Node::Unary(Unary::Negate, operand), span))
            }
            ExprKind::Binary { operator, left, right } => {
                self.arithmetic(checker, expr, *operator, (left, right))
            }
            ExprKind::Call { function, arguments } => {
                self.call(checker, *function, arguments, span)
            }
            ExprKind::Reduce(reduce) => self.hoist(checker, reduce, span),
            ExprKind::Not(_) => Err(checker.condition_as_value(span)),
            ExprKind::Scan(_) => Err(checker.nested_scan(span)),
        }
    }

    fn named_value(&mut self, checker: &mut Checker<'_>, name: &str, span: Span) -> Built<NodeId> {
        if let Some(carry) = self.carried(name) {
            return Ok(carry);
        }
        if let Some(scalar) = checker.scalar(name) {
            return Ok(self.node(Node::Scalar(scalar), span));
        }
        if self.variable(name).is_some() || checker.dim(name).is_some() {
            let int = self.named_int(checker, name, span)?;
            return Ok(self.node(Node::Whole(int), span));
        }
        let access = self.access(checker, name, &[], span)?;
        Ok(self.node(Node::Read(access), span))
    }

    fn arithmetic(
        &mut self,
        checker: &mut Checker<'_>,
        expr: &Expr,
        operator: Operator,
        (left, right): (&'e Expr, &'e Expr),
    ) -> Built<NodeId> {
        let binary = match operator {
            Operator::Add => Binary::Add,
            Operator::Subtract => Binary::Subtract,
            Operator::Multiply => Binary::Multiply,
            Operator::Divide => Binary::Divide,
            Operator::Remainder => return Err(checker.remainder_of_values(expr.span)),
            _ => return Err(checker.condition_as_value(expr.span)),
        };
        let (a, b) = (self.value(checker, left)?, self.value(checker, right)?);
        Ok(self.node(Node::Binary(binary, a, b), expr.span))
    }

    fn call(
        &mut self,
        checker: &mut Checker<'_>,
        function: Function,
        arguments: &'e [Expr],
        span: Span,
    ) -> Built<NodeId> {
        match function {
            Function::Select => return self.select(checker, arguments, span),
            Function::Bits => return self.bits(checker, arguments, span),
            _ => {}
        }
        let mut result = self.value(checker, &arguments[0])?;
        for argument in &arguments[1..] {
            let next = self.value(checker, argument)?;
            let binary = if function == Function::Max { Binary::Max } else { Binary::Min };
            result = self.node(Node::Binary(binary, result, next), span);
        }
        let node = match function {
            Function::Round(format) => Node::Round(format, result),
            Function::Near(format) => Node::Near(format, result),
            _ => match unary(function) {
                Some(unary) => Node::Unary(unary, result),
                None => return Ok(result),
            },
        };
        Ok(self.node(node, span))
    }

    /// Both branches are computed; reads in the branch not taken are not done.
    fn select(
        &mut self,
        checker: &mut Checker<'_>,
        arguments: &'e [Expr],
        span: Span,
    ) -> Built<NodeId> {
        let condition = self.condition(checker, &arguments[0])?;
        let guard = |taken| ((&arguments[0], taken), condition);
        let yes = self.guarded(checker, guard(true), |builder, checker| {
            builder.value(checker, &arguments[1])
        })?;
        let no = self.guarded(checker, guard(false), |builder, checker| {
            builder.value(checker, &arguments[2])
        })?;
        Ok(self.node(Node::Select(condition, yes, no), span))
    }

    /// Builds under the further condition `guard`, whose node is `condition`.
    fn guarded<T>(
        &mut self,
        checker: &mut Checker<'_>,
        (guard, condition): (Guard<'e>, NodeId),
        build: impl FnOnce(&mut Self, &mut Checker<'_>) -> Built<T>,
    ) -> Built<T> {
        let outer = self.guard;
        let span = guard.0.span;
        let own = if guard.1 { condition } else { self.node(Node::Not(condition), span) };
        self.guard = Some(match outer {
            Some(outer) => self.node(Node::And(outer, own), span),
            None => own,
        });
        self.guards.push(guard);
        let built = build(self, checker);
        self.guards.pop();
        self.guard = outer;
        built
    }

    fn bits(
        &mut self,
        checker: &mut Checker<'_>,
        arguments: &'e [Expr],
        span: Span,
    ) -> Built<NodeId> {
        let word = self.value(checker, &arguments[0])?;
        let field = self.integer(checker, &arguments[1])?;
        let width = self.integer(checker, &arguments[2])?;
        Ok(self.node(Node::Field { word, field, width }, span))
    }

    /// A condition.
    fn condition(&mut self, checker: &mut Checker<'_>, expr: &'e Expr) -> Built<NodeId> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Not(operand) => {
                let operand = self.condition(checker, operand)?;
                Ok(self.node(Node::Not(operand), span))
            }
            ExprKind::Binary { operator: Operator::And, left, right } => {
                let left_node = self.condition(checker, left)?;
                let right_node =
                    self.guarded(checker, ((&**left, true), left_node), |builder, checker| {
                        builder.condition(checker, right)
                    })?;
                Ok(self.node(Node::And(left_node, right_node), span))
            }
            ExprKind::Binary { operator: Operator::Or, left, right } => {
                let left_node = self.condition(checker, left)?;
                let right_node =
                    self.guarded(checker, ((&**left, false), left_node), |builder, checker| {
                        builder.condition(checker, right)
                    })?;
                Ok(self.node(Node::Or(left_node, right_node), span))
            }
            ExprKind::Binary { operator, left, right } if operator.compares() => {
                self.comparison(checker, *operator, (left, right), span)
            }
            _ => Err(checker.value_as_condition(span)),
        }
    }

    fn comparison(
        &mut self,
        checker: &mut Checker<'_>,
        operator: Operator,
        (left, right): (&'e Expr, &'e Expr),
        span: Span,
    ) -> Built<NodeId> {
        if self.is_whole(checker, left) && self.is_whole(checker, right) {
            let (a, b) = (self.integer(checker, left)?, self.integer(checker, right)?);
            return Ok(self.node(Node::CompareWhole(operator, a, b), span));
        }
        let (a, b) = (self.value(checker, left)?, self.value(checker, right)?);
        Ok(self.node(Node::Compare(operator, a, b), span))
    }

    /// Whether `expr` is made of whole numbers, dims and indices alone.
    fn is_whole(&self, checker: &Checker<'_>, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Number { whole, .. } => whole.is_some(),
            ExprKind::Name(name) => self.variable(name).is_some() || checker.dim(name).is_some(),
            ExprKind::Negate(operand) => self.is_whole(checker, operand),
            ExprKind::Binary { operator, left, right } => {
                operator.spelling().1 >= 4
                    && self.is_whole(checker, left)
                    && self.is_whole(checker, right)
            }
            ExprKind::Call { function: Function::Max | Function::Min, arguments } => {
                arguments.iter().all(|argument| self.is_whole(checker, argument))
            }
            _ => false,
        }
    }

    /// A whole number in an index, a bound or a comparison of such.
    fn integer(&mut self, checker: &mut Checker<'_>, expr: &'e Expr) -> Built<IntId> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Number { whole: Some(whole), .. } => Ok(self.int(Int::Literal(*whole))),
            ExprKind::Name(name) => self.named_int(checker, name, span),
            ExprKind::Read { name, indices } => {
                let access = self.access(checker, name, indices, span)?;
                Ok(self.int(Int::Gather(access)))
            }
            ExprKind::Negate(operand) => {
                let zero = self.int(Int::Literal(0));
                let operand = self.integer(checker, operand)?;
                Ok(self.int(Int::Operation(Operator::Subtract, zero, operand)))
            }
            ExprKind::Binary { operator, left, right } if operator.spelling().1 >= 4 => {
                let (a, b) = (self.integer(checker, left)?, self.integer(checker, right)?);
                Ok(self.int(Int::Operation(*operator, a, b)))
            }
            ExprKind::Call { function: function @ (Function::Max | Function::Min), arguments } => {
                self.integer_extreme(checker, *function, arguments)
            }
            _ => Err(checker.value_as_index(span)),
        }
    }

    fn integer_extreme(
        &mut self,
        checker: &mut Checker<'_>,
        function: Function,
        arguments: &'e [Expr],
    ) -> Built<IntId> {
        let mut result = self.integer(checker, &arguments[0])?;
        for argument in &arguments[1..] {
            let next = self.integer(checker, argument)?;
            result = self.int(match function {
                Function::Max => Int::Largest(result, next),
                _ => Int::Least(result, next),
            });
        }
        Ok(result)
    }

    fn named_int(&mut self, checker: &mut Checker<'_>, name: &str, span: Span) -> Built<IntId> {
        if let Some(variable) = self.variable(name) {
            return Ok(self.int(Int::Index(variable)));
        }
        if let Some(dim) = checker.dim(name) {
            return Ok(self.int(Int::Dim(dim)));
        }
        if checker.scalar(name).is_some() || self.carried(name).is_some() {
            return Err(checker.value_as_index(span));
        }
        if checker.source(name).is_some() {
            let access = self.access(checker, name, &[], span)?;
            return Ok(self.int(Int::Gather(access)));
        }
        Err(self.no_source(checker, name, span))
    }

    fn access(
        &mut self,
        checker: &mut Checker<'_>,
        name: &str,
        indices: &'e [Expr],
        span: Span,
    ) -> Built<Access> {
        let Some(source) = checker.source(name) else {
            return Err(self.no_source(checker, name, span));
        };
        checker.check_read(source, indices, span, &self.variables)?;
        let indices: Built<Vec<IntId>> =
            indices.iter().map(|index| self.integer(checker, index)).collect();
        Ok(Access { source, indices: indices?, guard: self.guard })
    }

    /// Makes a stage of `reduce` and reads it.
    fn hoist(
        &mut self,
        checker: &mut Checker<'_>,
        reduce: &'e Reduce,
        span: Span,
    ) -> Built<NodeId> {
        self.check_carry_free(checker, (reduce, span))?;
        let free = self.free_variables(reduce);
        let stage = self.reduction_stage(checker, reduce, &free)?;
        let indices = free.iter().map(|&v| self.int(Int::Index(v))).collect();
        let access = Access { source: Source::Hoisted(stage), indices, guard: None };
        Ok(self.node(Node::Read(access), span))
    }

    /// The variables that `reduce` depends on.
    fn free_variables(&self, reduce: &Reduce) -> Vec<usize> {
        let mentioned = |name: &str| mentions_in_reduce(reduce, name);
        (0..self.variables.len()).filter(|&v| mentioned(&self.variables[v].name)).collect()
    }

    /// The stage of `reduce` over the variables `free`.
    fn reduction_stage(
        &self,
        checker: &mut Checker<'_>,
        reduce: &'e Reduce,
        free: &[usize],
    ) -> Built<usize> {
        if self.variable(&reduce.index).is_some() || checker.is_taken(&reduce.index) {
            return Err(checker.name_taken(&reduce.index, reduce.index_span));
        }
        let variables = free.iter().map(|&v| self.variables[v].clone()).collect();
        let mut inner = StageBuilder::new(variables, &self.statement);
        let guards = self.guards_over(free);
        let (root, reduction) = inner.reduce_under(checker, &guards, reduce)?;
        let stage = inner.finish(free.len(), root, Some(reduction), reduce.index.clone());
        checker.add_hoisted(stage)
    }

    /// The guards that depend on no other variables than `free`.
    fn guards_over(&self, free: &[usize]) -> Vec<Guard<'e>> {
        let bound = |condition: &Expr| {
            let mut others = (0..self.variables.len()).filter(|v| !free.contains(v));
            others.all(|v| !mentions(condition, &self.variables[v].name))
                && !self.needs_carry(condition)
        };
        self.guards.iter().copied().filter(|(condition, _)| bound(condition)).collect()
    }

    /// Builds the reduction's bounds and term under each of `guards`.
    fn reduce_under(
        &mut self,
        checker: &mut Checker<'_>,
        guards: &[Guard<'e>],
        reduce: &'e Reduce,
    ) -> Built<(NodeId, StageReduction)> {
        let Some((first, rest)) = guards.split_first() else { return self.reduce(checker, reduce) };
        let condition = self.condition(checker, first.0)?;
        self.guarded(checker, (*first, condition), |builder, checker| {
            builder.reduce_under(checker, rest, reduce)
        })
    }

    fn reduce(
        &mut self,
        checker: &mut Checker<'_>,
        reduce: &'e Reduce,
    ) -> Built<(NodeId, StageReduction)> {
        let from = self.integer(checker, &reduce.from)?;
        let to = self.integer(checker, &reduce.to)?;
        let operation = reduce.operation;
        let extent = checker.dims_only(&reduce.to);
        self.variables.push(Variable { name: reduce.index.clone(), extent });
        let root = self.term(checker, reduce)?;
        Ok((root, StageReduction { operation, from, to }))
    }

    /// The reduction's term; where its condition is false, the operation's neutral value.
    fn term(&mut self, checker: &mut Checker<'_>, reduce: &'e Reduce) -> Built<NodeId> {
        let Some(condition) = &reduce.condition else { return self.value(checker, &reduce.body) };
        let own = self.condition(checker, condition)?;
        let body = self.guarded(checker, ((condition, true), own), |builder, checker| {
            builder.value(checker, &reduce.body)
        })?;
        let neutral = self.literal(reduce.operation.neutral(), condition.span);
        Ok(self.node(Node::Select(own, body, neutral), reduce.body.span))
    }
}

/// The node of a one-argument function.
fn unary(function: Function) -> Option<Unary> {
    Some(match function {
        Function::Exp => Unary::Exp,
        Function::Exp2 => Unary::Exp2,
        Function::Log => Unary::Log,
        Function::Log2 => Unary::Log2,
        Function::Sqrt => Unary::Sqrt,
        Function::Rsqrt => Unary::Rsqrt,
        Function::Tanh => Unary::Tanh,
        Function::Sin => Unary::Sin,
        Function::Cos => Unary::Cos,
        Function::Erf => Unary::Erf,
        Function::Abs => Unary::Abs,
        Function::Floor => Unary::Floor,
        _ => return None,
    })
}
