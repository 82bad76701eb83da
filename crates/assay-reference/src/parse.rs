//! Reads a formula's text into its tree. Recursion is bounded, so that no text overflows the stack.

use crate::ast::{
    Expr, ExprKind, Function, Operator, Reduce, ReduceOperation, Scan, Statement, StatementIndex,
    rounding_format,
};
use crate::error::{FormulaError, Span};
use crate::token::{Token, tokens};

/// The deepest tree that is read. The planner and the domains recurse over it.
pub(crate) const MAX_DEPTH: usize = 128;
/// The longest text that is read, in bytes.
pub(crate) const MAX_LENGTH: usize = 1 << 16;

/// The statements of `text`.
pub(crate) fn statements(text: &str) -> Result<Vec<Statement>, FormulaError> {
    let mut parser = Parser::new(text)?;
    let mut found = Vec::new();
    while parser.skip_semicolons() {
        found.push(parser.statement()?);
    }
    if found.is_empty() {
        let error = FormulaError::new(text, Span::default(), "the formula is empty");
        return Err(error.with_hint("write a statement such as `y[i] = 2 * x[i]`"));
    }
    Ok(found)
}

/// One expression that is the whole of `text`.
pub(crate) fn expression(text: &str) -> Result<Expr, FormulaError> {
    let mut parser = Parser::new(text)?;
    let found = parser.expression(0)?.0;
    parser.expect_end()?;
    Ok(found)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    at: usize,
    /// How many expressions the one being read stands in.
    nesting: usize,
}

/// An expression and how deep its tree is.
type Deep = (Expr, usize);

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, FormulaError> {
        if text.len() > MAX_LENGTH {
            let message = format!("the formula is longer than {MAX_LENGTH} bytes");
            return Err(FormulaError::new(text, Span::default(), message));
        }
        Ok(Self { text, tokens: tokens(text)?, at: 0, nesting: 0 })
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    fn following(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn error(&self, span: Span, message: impl Into<String>) -> FormulaError {
        FormulaError::new(self.text, span, message)
    }

    fn unexpected(&self, wanted: &str) -> FormulaError {
        self.error(self.span(), format!("expected {wanted}, found {}", self.token().describe()))
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token(), Token::Symbol(s) if *s == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Name(name) if name == word)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), FormulaError> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), FormulaError> {
        if self.is_word(word) {
            self.advance();
            return Ok(());
        }
        Err(self.unexpected(&format!("`{word}`")))
    }

    fn expect_name(&mut self, what: &str) -> Result<(String, Span), FormulaError> {
        let span = self.span();
        let Token::Name(name) = self.token().clone() else { return Err(self.unexpected(what)) };
        if is_reserved(&name) {
            let message = format!("`{name}` is a word of the language and cannot be {what}");
            return Err(self.error(span, message).with_hint("choose another name"));
        }
        self.advance();
        Ok((name, span))
    }

    fn expect_end(&self) -> Result<(), FormulaError> {
        if *self.token() == Token::End {
            return Ok(());
        }
        Err(self.unexpected("the end of the expression"))
    }

    /// Skips `;` and says whether anything is left.
    fn skip_semicolons(&mut self) -> bool {
        while self.take(";") {}
        *self.token() != Token::End
    }

    fn statement(&mut self) -> Result<Statement, FormulaError> {
        let (name, start) = self.expect_name("the name of a statement")?;
        let mut indices = Vec::new();
        if self.take("[") {
            indices = self.statement_indices()?;
        }
        let span = start.to(self.tokens[self.at.saturating_sub(1)].1);
        self.expect("=")?;
        let is_scan = self.is_word("scan") && matches!(self.following(), Token::Symbol("("));
        let value = if is_scan { self.scan()? } else { self.expression(0)?.0 };
        Ok(Statement { name, indices, value, span })
    }

    /// `scan(t, carry = initial: step)`, and nothing after it in the statement.
    fn scan(&mut self) -> Result<Expr, FormulaError> {
        let start = self.span();
        self.advance();
        self.expect("(")?;
        let (index, index_span) = self.expect_name("the index that a scan walks")?;
        self.expect(",")?;
        let (carry, carry_span) = self.expect_name("a name for the value of the step before")?;
        self.expect("=")?;
        let (initial, _) = self.expression(0)?;
        self.expect(":")?;
        let (step, _) = self.expression(0)?;
        self.expect(")")?;
        let span = start.to(self.tokens[self.at - 1].1);
        if self.operator(0).is_some() {
            return Err(self.nested_scan(span));
        }
        let scan = Scan { index, index_span, carry, carry_span, initial, step };
        Ok(Expr { kind: ExprKind::Scan(Box::new(scan)), span })
    }

    fn nested_scan(&self, span: Span) -> FormulaError {
        let message = "a scan is the whole right side of a statement and no part of an expression";
        self.error(span, message)
            .with_hint("write `h[t] = scan(t, prev = 0: ...)` as a statement of its own")
    }

    fn statement_indices(&mut self) -> Result<Vec<StatementIndex>, FormulaError> {
        let mut indices = Vec::new();
        while !self.take("]") {
            if !indices.is_empty() {
                self.expect(",")?;
            }
            indices.push(self.statement_index()?);
        }
        Ok(indices)
    }

    fn statement_index(&mut self) -> Result<StatementIndex, FormulaError> {
        let (name, span) = self.expect_name("an index")?;
        if !self.is_word("in") {
            return Ok(StatementIndex { name, extent: None, span });
        }
        self.advance();
        if !matches!(self.token(), Token::Number { whole: Some(0), .. }) {
            return Err(self.unexpected("`0`, where the indices of a statement start"));
        }
        self.advance();
        self.expect("..")?;
        let (extent, _) = self.expression(4)?;
        Ok(StatementIndex { name, extent: Some(extent), span })
    }

    /// An expression whose operators bind at least as strongly as `strength`.
    fn expression(&mut self, strength: u8) -> Result<Deep, FormulaError> {
        self.enter()?;
        let mut left = self.unary()?;
        while let Some(operator) = self.operator(strength) {
            let (_, own) = operator.spelling();
            self.advance();
            let right = self.expression(own + 1)?;
            if operator.compares() && self.operator(3).is_some_and(Operator::compares) {
                let error = self.error(self.span(), "comparisons do not chain");
                return Err(error.with_hint("write `a < b && b < c`"));
            }
            left = self.joined(operator, left, right)?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn joined(&self, operator: Operator, left: Deep, right: Deep) -> Result<Deep, FormulaError> {
        let span = left.0.span.to(right.0.span);
        let depth = self.deeper(left.1.max(right.1), span)?;
        let (left, right) = (Box::new(left.0), Box::new(right.0));
        Ok((Expr { kind: ExprKind::Binary { operator, left, right }, span }, depth))
    }

    fn enter(&mut self) -> Result<(), FormulaError> {
        self.nesting = self.deeper(self.nesting, self.span())?;
        Ok(())
    }

    fn deeper(&self, depth: usize, span: Span) -> Result<usize, FormulaError> {
        if depth < MAX_DEPTH {
            return Ok(depth + 1);
        }
        let message = format!("the expression nests deeper than {MAX_DEPTH} levels");
        Err(self.error(span, message).with_hint("name a part of it in a statement of its own"))
    }

    fn operator(&self, strength: u8) -> Option<Operator> {
        let Token::Symbol(symbol) = self.token() else { return None };
        Operator::ALL.into_iter().find(|o| {
            let (spelling, own) = o.spelling();
            spelling == *symbol && own >= strength
        })
    }

    fn unary(&mut self) -> Result<Deep, FormulaError> {
        let start = self.span();
        let negate = self.is("-");
        if !negate && !self.is("!") {
            return self.primary();
        }
        self.enter()?;
        self.advance();
        let (operand, depth) = self.unary()?;
        self.nesting -= 1;
        let span = start.to(operand.span);
        let depth = self.deeper(depth, span)?;
        let operand = Box::new(operand);
        let kind = if negate { ExprKind::Negate(operand) } else { ExprKind::Not(operand) };
        Ok((Expr { kind, span }, depth))
    }

    fn primary(&mut self) -> Result<Deep, FormulaError> {
        let span = self.span();
        match self.token().clone() {
            Token::Number { value, whole } => {
                self.advance();
                Ok((Expr { kind: ExprKind::Number { value, whole }, span }, 1))
            }
            Token::Name(name) => self.named(&name),
            Token::Symbol("(") => {
                self.advance();
                let mut inner = self.expression(0)?;
                inner.0.span = span.to(self.span());
                self.expect(")")?;
                Ok(inner)
            }
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn named(&mut self, name: &str) -> Result<Deep, FormulaError> {
        let start = self.span();
        if name == "inf" {
            self.advance();
            let kind = ExprKind::Number { value: f64::INFINITY, whole: None };
            return Ok((Expr { kind, span: start }, 1));
        }
        if matches!(self.following(), Token::Symbol("(")) {
            return self.call(name);
        }
        let (name, _) = self.expect_name("a value")?;
        if !self.take("[") {
            return Ok((Expr { kind: ExprKind::Name(name), span: start }, 1));
        }
        let (indices, depth) = self.arguments("]")?;
        let span = start.to(self.tokens[self.at - 1].1);
        Ok((Expr { kind: ExprKind::Read { name, indices }, span }, self.deeper(depth, span)?))
    }

    /// Comma-separated expressions up to `close`, and the depth of the deepest.
    fn arguments(&mut self, close: &str) -> Result<(Vec<Expr>, usize), FormulaError> {
        let (mut found, mut deepest) = (Vec::new(), 0);
        while !self.take(close) {
            if !found.is_empty() {
                self.expect(",")?;
            }
            let (argument, depth) = self.expression(0)?;
            deepest = deepest.max(depth);
            found.push(argument);
        }
        Ok((found, deepest))
    }

    fn call(&mut self, name: &str) -> Result<Deep, FormulaError> {
        let start = self.span();
        self.advance();
        self.advance();
        let reduction = ReduceOperation::NAMES.iter().find(|(n, _)| *n == name);
        if let Some((_, operation)) = reduction {
            let binds = matches!(self.following(), Token::Name(word) if word == "in");
            if binds {
                return self.reduction(*operation, start);
            }
        }
        let function = self.function(name, start)?;
        let (arguments, depth) = self.arguments(")")?;
        let span = start.to(self.tokens[self.at - 1].1);
        self.check_arity(function, arguments.len(), span)?;
        let depth = self.deeper(depth, span)?;
        Ok((Expr { kind: ExprKind::Call { function, arguments }, span }, depth))
    }

    /// The function called `name`; for `near` its format is read too.
    fn function(&mut self, name: &str, span: Span) -> Result<Function, FormulaError> {
        if let Some((_, function)) = Function::NAMES.iter().find(|(n, _)| *n == name) {
            return Ok(*function);
        }
        if let Some(format) = rounding_format(name) {
            return Ok(Function::Round(format));
        }
        match name {
            "near" => self.near(),
            "scan" => Err(self.nested_scan(span)),
            "sum" | "prod" => Err(self
                .error(span, format!("`{name}` needs an index"))
                .with_hint(format!("write `{name}(k in 0..cols: x[k])`"))),
            _ => Err(self.unknown_function(name, span)),
        }
    }

    fn near(&mut self) -> Result<Function, FormulaError> {
        let span = self.span();
        let format = match self.token() {
            Token::Name(name) => rounding_format(name),
            _ => None,
        };
        let Some(format) = format else {
            let error = self.error(span, "`near` needs a number format first");
            return Err(error.with_hint("write `near(bf16, e)`"));
        };
        self.advance();
        self.expect(",")?;
        Ok(Function::Near(format))
    }

    fn unknown_function(&self, name: &str, span: Span) -> FormulaError {
        let known = Function::NAMES.iter().map(|(n, _)| *n).chain(["sum", "prod", "near"]);
        let error = self.error(span, format!("there is no function `{name}`"));
        match nearest(name, known) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error.with_hint("functions: exp, log, sqrt, rsqrt, tanh, max, select, ..."),
        }
    }

    fn check_arity(&self, function: Function, got: usize, span: Span) -> Result<(), FormulaError> {
        let (least, most) = function.arity();
        if (least..=most).contains(&got) {
            return Ok(());
        }
        let wanted = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        let message = format!("`{}` takes {wanted} arguments, not {got}", function.name());
        Err(self.error(span, message))
    }

    /// `k in a..b if cond: body)`, after the opening parenthesis.
    fn reduction(&mut self, operation: ReduceOperation, start: Span) -> Result<Deep, FormulaError> {
        let (index, index_span) = self.expect_name("an index")?;
        self.expect_word("in")?;
        let (from, first) = self.expression(4)?;
        self.expect("..")?;
        let (to, second) = self.expression(4)?;
        let mut depth = first.max(second);
        let mut condition = None;
        if self.is_word("if") {
            self.advance();
            let (found, deep) = self.expression(0)?;
            depth = depth.max(deep);
            condition = Some(found);
        }
        self.expect(":")?;
        let (body, deep) = self.expression(0)?;
        self.expect(")")?;
        let span = start.to(self.tokens[self.at - 1].1);
        let depth = self.deeper(depth.max(deep), span)?;
        let reduce = Reduce { operation, index, index_span, from, to, condition, body };
        Ok((Expr { kind: ExprKind::Reduce(Box::new(reduce)), span }, depth))
    }
}

/// Words that name no index, tensor or statement.
fn is_reserved(name: &str) -> bool {
    matches!(name, "in" | "if" | "inf" | "scan" | "near")
}

/// The name nearest to `wrong`, if one is within two edits.
pub(crate) fn nearest<'n>(wrong: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let close = known.map(|name| (edits(wrong, name), name)).min_by_key(|(distance, _)| *distance);
    close.filter(|(distance, name)| *distance <= 2 && *distance < name.len()).map(|(_, name)| name)
}

/// The number of insertions, deletions and substitutions between two names.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
