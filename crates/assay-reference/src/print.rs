//! Writes a formula's tree as text that reads back as the same tree.

use std::fmt::{self, Display, Formatter};

use crate::ast::{Expr, ExprKind, Function, Reduce, Scan, Statement};

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if !self.indices.is_empty() {
            write!(f, "[")?;
            for (position, index) in self.indices.iter().enumerate() {
                let comma = if position > 0 { ", " } else { "" };
                write!(f, "{comma}{}", index.name)?;
                if let Some(extent) = &index.extent {
                    write!(f, " in 0..")?;
                    write_expr(f, extent, 4)?;
                }
            }
            write!(f, "]")?;
        }
        write!(f, " = {}", self.value)
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expr(f, self, 0)
    }
}

/// Writes `expr`, in parentheses where its operator binds weaker than `strength`.
fn write_expr(f: &mut Formatter<'_>, expr: &Expr, strength: u8) -> fmt::Result {
    match &expr.kind {
        ExprKind::Number { value, whole } => write_number(f, *value, *whole),
        ExprKind::Name(name) => write!(f, "{name}"),
        ExprKind::Read { name, indices } => {
            write!(f, "{name}[")?;
            write_list(f, indices)?;
            write!(f, "]")
        }
        ExprKind::Negate(operand) => write_unary(f, '-', operand),
        ExprKind::Not(operand) => write_unary(f, '!', operand),
        ExprKind::Binary { operator, left, right } => {
            let (spelling, own) = operator.spelling();
            let open = own < strength;
            write!(f, "{}", if open { "(" } else { "" })?;
            write_expr(f, left, if own == 3 { 4 } else { own })?;
            write!(f, " {spelling} ")?;
            write_expr(f, right, own + 1)?;
            write!(f, "{}", if open { ")" } else { "" })
        }
        ExprKind::Call { function, arguments } => {
            write!(f, "{}(", function.name())?;
            if let Function::Near(format) = function {
                write!(f, "{}, ", format.name())?;
            }
            write_list(f, arguments)?;
            write!(f, ")")
        }
        ExprKind::Reduce(reduce) => write_reduce(f, reduce),
        ExprKind::Scan(scan) => write_scan(f, scan),
    }
}

fn write_unary(f: &mut Formatter<'_>, sign: char, operand: &Expr) -> fmt::Result {
    write!(f, "{sign}")?;
    write_expr(f, operand, 6)
}

fn write_list(f: &mut Formatter<'_>, items: &[Expr]) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        write!(f, "{}", if position > 0 { ", " } else { "" })?;
        write_expr(f, item, 0)?;
    }
    Ok(())
}

fn write_reduce(f: &mut Formatter<'_>, reduce: &Reduce) -> fmt::Result {
    write!(f, "{}({} in ", reduce.operation.name(), reduce.index)?;
    write_expr(f, &reduce.from, 4)?;
    write!(f, "..")?;
    write_expr(f, &reduce.to, 4)?;
    if let Some(condition) = &reduce.condition {
        write!(f, " if {condition}")?;
    }
    write!(f, ": {})", reduce.body)
}

fn write_scan(f: &mut Formatter<'_>, scan: &Scan) -> fmt::Result {
    write!(f, "scan({}, {} = {}: {})", scan.index, scan.carry, scan.initial, scan.step)
}

/// A literal; a fraction keeps its point, so that it does not read back as a whole number.
fn write_number(f: &mut Formatter<'_>, value: f64, whole: Option<i64>) -> fmt::Result {
    match whole {
        Some(whole) => write!(f, "{whole}"),
        None if value.is_infinite() => write!(f, "inf"),
        None => write!(f, "{value:?}"),
    }
}
