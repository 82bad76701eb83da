//! Constant expressions (ISA 4.6): what stands where a constant may stand.

use super::cursor::{Cursor, Result};
use crate::lexer::Kind;
use crate::literal::Literal;
use crate::module::Position;

/// The deepest nesting of parentheses and signs.
const DEPTH_LIMIT: u32 = 32;

/// Reads a constant expression.
pub(super) fn constant(cursor: &mut Cursor<'_>) -> Result<Literal> {
    binary(cursor, 0, DEPTH_LIMIT)
}

/// Reads a constant expression that must be an integer.
pub(super) fn integer(cursor: &mut Cursor<'_>) -> Result<i64> {
    let position = cursor.token().position;
    match constant(cursor)? {
        Literal::Integer(value) => Ok(value as i64),
        _ => Err(cursor.error_at(position, "an integer is needed here, not a float")),
    }
}

/// Whether the current token can start a constant expression.
pub(super) fn starts(cursor: &Cursor<'_>) -> bool {
    let token = cursor.token();
    let signs = [b'-', b'+', b'~', b'('];
    token.kind == Kind::Number || signs.iter().any(|&sign| token.is(sign)) || is_warp_size(cursor)
}

fn is_warp_size(cursor: &Cursor<'_>) -> bool {
    let token = cursor.token();
    token.kind == Kind::Word && token.text == "WARP_SZ"
}

/// The binding strength of a binary operator; 0 when the token is none.
fn strength(cursor: &Cursor<'_>) -> u32 {
    match cursor.token().kind {
        Kind::Punctuation(b'|') => 1,
        Kind::Punctuation(b'^') => 2,
        Kind::Punctuation(b'&') => 3,
        Kind::Punctuation(b'<' | b'>') => 4,
        Kind::Punctuation(b'+' | b'-') => 5,
        Kind::Punctuation(b'*' | b'/') => 6,
        _ => 0,
    }
}

fn binary(cursor: &mut Cursor<'_>, least: u32, depth: u32) -> Result<Literal> {
    let mut left = unary(cursor, depth)?;
    loop {
        let binding = strength(cursor);
        if binding <= least {
            return Ok(left);
        }
        let operator = cursor.advance()?;
        if binding == 4 {
            let Kind::Punctuation(sign) = operator.kind else { return Ok(left) };
            cursor.expect(sign)?;
        }
        let right = binary(cursor, binding, depth)?;
        let (Literal::Integer(a), Literal::Integer(b)) = (left, right) else {
            let message = "arithmetic on float constants is not supported";
            return Err(cursor.error_at(operator.position, message));
        };
        left = apply(cursor, operator.text, operator.position, a, b)?;
    }
}

fn apply(
    cursor: &Cursor<'_>,
    operator: &str,
    position: Position,
    a: u64,
    b: u64,
) -> Result<Literal> {
    let value = match operator {
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "<" => a.checked_shl(b.min(64) as u32).unwrap_or(0),
        ">" => a.checked_shr(b.min(64) as u32).unwrap_or(0),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        _ => match (a as i64).checked_div(b as i64) {
            Some(quotient) => quotient as u64,
            None => return Err(cursor.error_at(position, "this constant is divided by zero")),
        },
    };
    Ok(Literal::Integer(value))
}

fn unary(cursor: &mut Cursor<'_>, depth: u32) -> Result<Literal> {
    let token = cursor.token();
    let Some(depth) = depth.checked_sub(1) else {
        return Err(cursor.error_at(token.position, "this constant is nested too deeply"));
    };
    if is_warp_size(cursor) {
        cursor.advance()?;
        return Ok(Literal::Integer(32));
    }
    match token.kind {
        Kind::Punctuation(b'+') => {
            cursor.advance()?;
            unary(cursor, depth)
        }
        Kind::Punctuation(b'-') => {
            cursor.advance()?;
            Ok(negated(unary(cursor, depth)?))
        }
        Kind::Punctuation(b'~') => {
            cursor.advance()?;
            match unary(cursor, depth)? {
                Literal::Integer(value) => Ok(Literal::Integer(!value)),
                _ => Err(cursor.error_at(token.position, "`~` needs an integer")),
            }
        }
        Kind::Punctuation(b'(') => {
            cursor.advance()?;
            let value = binary(cursor, 0, depth)?;
            cursor.expect(b')')?;
            Ok(value)
        }
        _ => cursor.literal(),
    }
}

fn negated(value: Literal) -> Literal {
    match value {
        Literal::Integer(value) => Literal::Integer(value.wrapping_neg()),
        Literal::Float32(bits) => Literal::Float32(bits ^ 0x8000_0000),
        Literal::Float64(bits) => Literal::Float64(bits ^ (1 << 63)),
    }
}
