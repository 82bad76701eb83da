//! Lowers the arithmetic that integers and floats share, the approximate functions and comparisons.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Group, Modifier, Type};

use super::arithmetic::{by_integer, carry};
use super::body::{Body, Lowered, Unsupported};
use super::half;
use crate::arithmetic::approximate as approx;
use crate::arithmetic::compare;
use crate::arithmetic::float::{self, Flushed};
use crate::arithmetic::half::{Bf16, F16, Opened};
use crate::arithmetic::integer;
use crate::arithmetic::soft::Rounding;
use crate::execute::frame::{COMBINE_AND, COMBINE_OR, COMBINE_XOR, Compute, NEGATE_R, Operands};

/// Picks a lane function on f32 with or without `.ftz`.
macro_rules! by_ftz {
    ($body:expr, $ftz:expr, $($path:tt)+) => {
        if $ftz { $body.pick::<$($path)+<Flushed>>() } else { $body.pick::<$($path)+<f32>>() }
    };
}

pub(super) fn lower(body: &mut Body<'_, '_>, number: usize, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::Setp => return compare_instruction(body, i),
        Base::Set => return set(body, i),
        Base::Slct => return select(body, i),
        Base::Testp => return test(body, i),
        _ => {}
    }
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    match ty {
        Type::F32 => single(body, number, i),
        Type::F64 => double(body, i),
        Type::F32x2 => packed_single(body, i),
        Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => half::lower(body, i, ty),
        Type::U16x2 | Type::S16x2 => packed_integer(body, i, ty),
        _ => integers(body, i, ty),
    }
}

pub(super) fn rounding(i: &Instruction) -> Rounding {
    match i.opcode.modifiers.of_group(Group::Rounding) {
        Some(Modifier::Rz | Modifier::Rzi) => Rounding::Zero,
        Some(Modifier::Rm | Modifier::Rmi) => Rounding::Down,
        Some(Modifier::Rp | Modifier::Rpi) => Rounding::Up,
        Some(Modifier::Rna) => Rounding::NearestAway,
        _ => Rounding::Nearest,
    }
}

/// The flags of the slow f32 functions.
fn slow_flags(i: &Instruction) -> u16 {
    let flag = |modifier: Modifier, bit: u16| if i.opcode.has(modifier) { bit } else { 0 };
    float::rounding_flags(rounding(i))
        | flag(Modifier::Ftz, float::FLAG_FTZ)
        | flag(Modifier::Sat, float::FLAG_SATURATE)
        | flag(Modifier::NanPropagating, float::FLAG_NAN)
        | flag(Modifier::XorSign, float::FLAG_XORSIGN)
        | flag(Modifier::Absolute, float::FLAG_ABSOLUTE)
}

fn single(body: &mut Body<'_, '_>, number: usize, i: &Instruction) -> Lowered {
    let ftz = i.opcode.has(Modifier::Ftz);
    let slow = rounding(i) != Rounding::Nearest || i.opcode.has(Modifier::Sat);
    if let Some(narrow @ (Type::F16 | Type::Bf16)) = i.opcode.types.get(1) {
        return half::mixed(body, i, *narrow, slow_flags(i));
    }
    if matches!(i.opcode.base, Base::Add | Base::Sub) && !slow && body.contracted(number, i)? {
        return Ok(());
    }
    let flags = slow_flags(i);
    let approximate = i.opcode.has(Modifier::Approx);
    let function = match i.opcode.base {
        Base::Add if slow => body.pick::<float::SlowAddF32>(),
        Base::Add => by_ftz!(body, ftz, float::AddF32),
        Base::Sub if slow => body.pick::<float::SlowSubtractF32>(),
        Base::Sub => by_ftz!(body, ftz, float::SubtractF32),
        Base::Mul if slow => body.pick::<float::SlowMultiplyF32>(),
        Base::Mul => by_ftz!(body, ftz, float::MultiplyF32),
        Base::Fma | Base::Mad if slow => directed_fma(body, i, ftz),
        Base::Fma | Base::Mad => by_ftz!(body, ftz, float::FusedF32),
        Base::Min | Base::Max => return extremum(body, i, ftz, flags),
        Base::Div if i.opcode.has(Modifier::Full) => by_ftz!(body, ftz, approx::DivideFull),
        Base::Div if approximate => by_ftz!(body, ftz, approx::DivideApproximate),
        Base::Div if slow => body.pick::<float::SlowDivideF32>(),
        Base::Div => by_ftz!(body, ftz, float::DivideF32),
        Base::Copysign => body.pick::<float::CopySignF32>(),
        _ => return single_unary(body, i, ftz, slow, flags),
    };
    let types = [Type::F32; 4];
    let count = if matches!(i.opcode.base, Base::Fma | Base::Mad) { 4 } else { 3 };
    body.flagged(i, Some(function), &types[..count], flags)
}

/// `fma` with a directed rounding or `.sat`, which exponentials are made of; both together are
/// rare.
fn directed_fma(body: &Body<'_, '_>, i: &Instruction, ftz: bool) -> Compute {
    match (rounding(i), i.opcode.has(Modifier::Sat)) {
        (Rounding::Nearest, true) => by_ftz!(body, ftz, float::FusedSaturateF32),
        (Rounding::Down, false) => by_ftz!(body, ftz, float::FusedDownF32),
        (Rounding::Zero, false) => by_ftz!(body, ftz, float::FusedZeroF32),
        (Rounding::Up, false) => by_ftz!(body, ftz, float::FusedUpF32),
        _ => body.pick::<float::SlowFusedF32>(),
    }
}

fn single_unary(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    ftz: bool,
    slow: bool,
    flags: u16,
) -> Lowered {
    let approximate = i.opcode.has(Modifier::Approx);
    let function = match i.opcode.base {
        Base::Abs => by_ftz!(body, ftz, float::AbsoluteF32),
        Base::Neg => by_ftz!(body, ftz, float::NegateF32),
        Base::Rcp if approximate => by_ftz!(body, ftz, approx::ReciprocalApproximate),
        Base::Rcp if slow => body.pick::<float::SlowReciprocalF32>(),
        Base::Rcp => by_ftz!(body, ftz, float::ReciprocalF32),
        Base::Sqrt if approximate => by_ftz!(body, ftz, approx::RootApproximate),
        Base::Sqrt if slow => body.pick::<float::SlowRootF32>(),
        Base::Sqrt => by_ftz!(body, ftz, float::RootF32),
        Base::Rsqrt => by_ftz!(body, ftz, approx::ReciprocalRoot),
        Base::Ex2 => by_ftz!(body, ftz, approx::Exponential),
        Base::Lg2 => by_ftz!(body, ftz, approx::Logarithm),
        Base::Sin => by_ftz!(body, ftz, approx::Sine),
        Base::Cos => by_ftz!(body, ftz, approx::Cosine),
        Base::Tanh => body.pick::<approx::HyperbolicTangent>(),
        _ => return Err(Unsupported),
    };
    body.flagged(i, Some(function), &[Type::F32; 2], flags)
}

fn extremum(body: &mut Body<'_, '_>, i: &Instruction, ftz: bool, flags: u16) -> Lowered {
    let maximum = i.opcode.base == Base::Max;
    let special = flags & (float::FLAG_XORSIGN | float::FLAG_ABSOLUTE) != 0;
    let function = match (maximum, special, flags & float::FLAG_NAN != 0) {
        (true, true, _) => body.pick::<float::SlowMaximumF32>(),
        (false, true, _) => body.pick::<float::SlowMinimumF32>(),
        (true, false, true) => by_ftz!(body, ftz, float::MaximumNanF32),
        (false, false, true) => by_ftz!(body, ftz, float::MinimumNanF32),
        (true, false, false) => by_ftz!(body, ftz, float::MaximumF32),
        (false, false, false) => by_ftz!(body, ftz, float::MinimumF32),
    };
    three_operands(body, i, function, Type::F32, flags)
}

/// `min` and `max` of two or three operands.
pub(super) fn three_operands(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    function: Compute,
    ty: Type,
    flags: u16,
) -> Lowered {
    if i.operands.len() < 4 {
        return body.flagged(i, Some(function), &[ty; 3], flags);
    }
    let all = body.operands(i, &[ty; 4])?;
    let first = body.temporary(ty.bits());
    body.run(function, Operands { d: first, flags, ..all });
    body.run(function, Operands { a: first, b: all.c, flags, ..all });
    Ok(())
}

fn double(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let slow = rounding(i) != Rounding::Nearest;
    let coarse = i.opcode.has(Modifier::Approx);
    let flushes = i.opcode.has(Modifier::Ftz);
    let (function, count) = match i.opcode.base {
        Base::Add if slow => (body.pick::<float::SlowAddF64>(), 3),
        Base::Add => (body.pick::<float::AddF64>(), 3),
        Base::Sub if slow => (body.pick::<float::SlowSubtractF64>(), 3),
        Base::Sub => (body.pick::<float::SubtractF64>(), 3),
        Base::Mul if slow => (body.pick::<float::SlowMultiplyF64>(), 3),
        Base::Mul => (body.pick::<float::MultiplyF64>(), 3),
        Base::Fma | Base::Mad if slow => (body.pick::<float::SlowFusedF64>(), 4),
        Base::Fma | Base::Mad => (body.pick::<float::FusedF64>(), 4),
        Base::Div if slow => (body.pick::<float::SlowDivideF64>(), 3),
        Base::Div => (body.pick::<float::DivideF64>(), 3),
        Base::Min => (body.pick::<float::MinimumF64>(), 3),
        Base::Max => (body.pick::<float::MaximumF64>(), 3),
        Base::Copysign => (body.pick::<float::CopySignF64>(), 3),
        Base::Abs => (body.pick::<float::AbsoluteF64>(), 2),
        Base::Neg => (body.pick::<float::NegateF64>(), 2),
        Base::Rcp if coarse => (body.pick::<approx::ReciprocalF64Coarse>(), 2),
        Base::Rcp if slow => (body.pick::<float::SlowReciprocalF64>(), 2),
        Base::Rcp => (body.pick::<float::ReciprocalF64>(), 2),
        Base::Rsqrt if flushes => (body.pick::<approx::ReciprocalRootF64Coarse>(), 2),
        Base::Rsqrt => (body.pick::<approx::ReciprocalRootF64>(), 2),
        Base::Sqrt if slow => (body.pick::<float::SlowRootF64>(), 2),
        Base::Sqrt => (body.pick::<float::RootF64>(), 2),
        _ => return Err(Unsupported),
    };
    let types = [Type::F64; 4];
    body.flagged(i, Some(function), &types[..count], float::rounding_flags(rounding(i)))
}

fn packed_single(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (function, count) = match i.opcode.base {
        Base::Add => (body.pick::<float::AddF32x2>(), 3),
        Base::Sub => (body.pick::<float::SubtractF32x2>(), 3),
        Base::Mul => (body.pick::<float::MultiplyF32x2>(), 3),
        Base::Fma => (body.pick::<float::FusedF32x2>(), 4),
        _ => return Err(Unsupported),
    };
    let types = [Type::B64; 4];
    body.flagged(i, Some(function), &types[..count], slow_flags(i))
}

fn packed_integer(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    let relu = i.opcode.has(Modifier::Relu);
    let function = match (i.opcode.base, ty, relu) {
        (Base::Add, ..) => body.pick::<integer::AddX2>(),
        (Base::Min, Type::U16x2, _) => body.pick::<integer::MinimumU16x2>(),
        (Base::Max, Type::U16x2, _) => body.pick::<integer::MaximumU16x2>(),
        (Base::Min, _, false) => body.pick::<integer::MinimumS16x2>(),
        (Base::Max, _, false) => body.pick::<integer::MaximumS16x2>(),
        (Base::Min, _, true) => body.pick::<integer::MinimumReluS16x2>(),
        (Base::Max, _, true) => body.pick::<integer::MaximumReluS16x2>(),
        _ => return Err(Unsupported),
    };
    body.simple(i, Some(function), &[Type::B32; 3])
}

fn integers(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    if i.opcode.has(Modifier::CarryOut) {
        return carry(body, i, ty);
    }
    let saturates = i.opcode.has(Modifier::Sat);
    let relu = i.opcode.has(Modifier::Relu);
    let function = match i.opcode.base {
        Base::Add if saturates => by_integer!(body, ty, integer::AddSaturating),
        Base::Add => by_integer!(body, ty, integer::Add),
        Base::Sub if saturates => by_integer!(body, ty, integer::SubtractSaturating),
        Base::Sub => by_integer!(body, ty, integer::Subtract),
        Base::Mul | Base::Mad => return product(body, i, ty),
        Base::Div => by_integer!(body, ty, integer::Divide),
        Base::Min if relu => by_integer!(body, ty, integer::MinimumRelu),
        Base::Min => by_integer!(body, ty, integer::Minimum),
        Base::Max if relu => by_integer!(body, ty, integer::MaximumRelu),
        Base::Max => by_integer!(body, ty, integer::Maximum),
        Base::Abs => by_integer!(body, ty, integer::Absolute),
        Base::Neg => by_integer!(body, ty, integer::Negate),
        _ => return Err(Unsupported),
    };
    let count = if matches!(i.opcode.base, Base::Abs | Base::Neg) { 2 } else { 3 };
    let types = [ty; 3];
    body.simple(i, function, &types[..count])
}

fn product(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    let adds = i.opcode.base == Base::Mad;
    if i.opcode.has(Modifier::Wide) {
        return wide_product(body, i, ty, adds);
    }
    let high = i.opcode.has(Modifier::Hi);
    let saturates = i.opcode.has(Modifier::Sat);
    let function = match (adds, high) {
        (false, false) => by_integer!(body, ty, integer::MultiplyLow),
        (false, true) => by_integer!(body, ty, integer::MultiplyHigh),
        (true, false) => by_integer!(body, ty, integer::MultiplyAddLow),
        (true, true) if saturates => by_integer!(body, ty, integer::MultiplyAddHighSaturating),
        (true, true) => by_integer!(body, ty, integer::MultiplyAddHigh),
    };
    let types = [ty; 4];
    body.simple(i, function, &types[..if adds { 4 } else { 3 }])
}

fn wide_product(body: &mut Body<'_, '_>, i: &Instruction, ty: Type, adds: bool) -> Lowered {
    let (function, wide) = match (adds, ty) {
        (false, Type::U16) => (body.pick::<integer::WideU16>(), Type::U32),
        (false, Type::S16) => (body.pick::<integer::WideS16>(), Type::S32),
        (false, Type::U32) => (body.pick::<integer::WideU32>(), Type::U64),
        (false, Type::S32) => (body.pick::<integer::WideS32>(), Type::S64),
        (true, Type::U16) => (body.pick::<integer::WideAddU16>(), Type::U32),
        (true, Type::S16) => (body.pick::<integer::WideAddS16>(), Type::S32),
        (true, Type::U32) => (body.pick::<integer::WideAddU32>(), Type::U64),
        (true, Type::S32) => (body.pick::<integer::WideAddS32>(), Type::S64),
        _ => return Err(Unsupported),
    };
    let types = [wide, ty, ty, wide];
    body.simple(i, Some(function), &types[..if adds { 4 } else { 3 }])
}

macro_rules! comparison {
    ($body:expr, $operator:expr, $ty:ty) => {
        match $operator {
            Modifier::Eq => Some($body.pick::<compare::Equal<$ty>>()),
            Modifier::Ne => Some($body.pick::<compare::Differ<$ty>>()),
            Modifier::Lt | Modifier::Lo => Some($body.pick::<compare::Less<$ty>>()),
            Modifier::Le | Modifier::Ls => Some($body.pick::<compare::LessOrEqual<$ty>>()),
            Modifier::Gt | Modifier::Hi => Some($body.pick::<compare::Greater<$ty>>()),
            Modifier::Ge | Modifier::Hs => Some($body.pick::<compare::GreaterOrEqual<$ty>>()),
            Modifier::Equ => Some($body.pick::<compare::EqualOrNan<$ty>>()),
            Modifier::Neu => Some($body.pick::<compare::DifferOrNan<$ty>>()),
            Modifier::Ltu => Some($body.pick::<compare::LessOrNan<$ty>>()),
            Modifier::Leu => Some($body.pick::<compare::LessOrEqualOrNan<$ty>>()),
            Modifier::Gtu => Some($body.pick::<compare::GreaterOrNan<$ty>>()),
            Modifier::Geu => Some($body.pick::<compare::GreaterOrEqualOrNan<$ty>>()),
            Modifier::Num => Some($body.pick::<compare::Ordered<$ty>>()),
            Modifier::Nan => Some($body.pick::<compare::Unordered<$ty>>()),
            _ => None,
        }
    };
}

macro_rules! integer_comparison {
    ($body:expr, $operator:expr, $ty:ty) => {
        match $operator {
            Modifier::Eq => Some($body.pick::<compare::Equal<$ty>>()),
            Modifier::Ne => Some($body.pick::<compare::DifferOrNan<$ty>>()),
            Modifier::Lt | Modifier::Lo => Some($body.pick::<compare::Less<$ty>>()),
            Modifier::Le | Modifier::Ls => Some($body.pick::<compare::LessOrEqual<$ty>>()),
            Modifier::Gt | Modifier::Hi => Some($body.pick::<compare::Greater<$ty>>()),
            Modifier::Ge | Modifier::Hs => Some($body.pick::<compare::GreaterOrEqual<$ty>>()),
            _ => None,
        }
    };
}

/// The comparison of a type; `high` takes the upper half of a pair.
fn comparison_of(
    body: &Body<'_, '_>,
    operator: Modifier,
    ty: Type,
    ftz: bool,
    high: bool,
) -> Option<Compute> {
    match ty {
        Type::U16 | Type::B16 => integer_comparison!(body, operator, u16),
        Type::S16 => integer_comparison!(body, operator, i16),
        Type::U32 | Type::B32 => integer_comparison!(body, operator, u32),
        Type::S32 => integer_comparison!(body, operator, i32),
        Type::U64 | Type::B64 => integer_comparison!(body, operator, u64),
        Type::S64 => integer_comparison!(body, operator, i64),
        Type::F32 if ftz => comparison!(body, operator, Flushed),
        Type::F32 => comparison!(body, operator, f32),
        Type::F64 => comparison!(body, operator, f64),
        Type::F16x2 if high && ftz => comparison!(body, operator, Opened<F16, true, true>),
        Type::F16x2 if high => comparison!(body, operator, Opened<F16, true, false>),
        Type::F16 | Type::F16x2 if ftz => comparison!(body, operator, Opened<F16, false, true>),
        Type::F16 | Type::F16x2 => comparison!(body, operator, Opened<F16, false, false>),
        Type::Bf16x2 if high => comparison!(body, operator, Opened<Bf16, true, false>),
        Type::Bf16 | Type::Bf16x2 => comparison!(body, operator, Opened<Bf16, false, false>),
        _ => None,
    }
}

/// Operator and combination of `setp` and `set`.
fn operator(i: &Instruction) -> Lowered<(Modifier, u16)> {
    let modifiers = i.opcode.modifiers;
    let comparison = modifiers.of_group(Group::Comparison).or(modifiers.of_group(Group::Half));
    let combination = match modifiers.of_group(Group::Operation) {
        Some(Modifier::And) => COMBINE_AND,
        Some(Modifier::Or) => COMBINE_OR,
        Some(Modifier::Xor) => COMBINE_XOR,
        _ => 0,
    };
    Ok((comparison.ok_or(Unsupported)?, combination))
}

/// One comparison into predicates.
fn compare_to(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    ty: Type,
    to: (u16, u16),
    high: bool,
) -> Lowered {
    let (operator, combination) = operator(i)?;
    let ftz = i.opcode.has(Modifier::Ftz);
    let function = comparison_of(body, operator, ty, ftz, high).ok_or(Unsupported)?;
    let a = body.source(&i.operands[1], ty.bits(), ty.is_float())?;
    let b = body.source(&i.operands[2], ty.bits(), ty.is_float())?;
    let mut operands =
        Operands { p: to.0, q: to.1, a, b, flags: combination, ..Operands::default() };
    if combination != 0 {
        let (r, negated) = body.source_predicate(i.operands.get(3).ok_or(Unsupported)?)?;
        operands.r = r;
        operands.flags |= if negated { NEGATE_R } else { 0 };
    }
    body.run(function, operands);
    Ok(())
}

fn compare_instruction(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.source_type().ok_or(Unsupported)?;
    let (p, q) = body.predicates(&i.operands[0])?;
    if matches!(ty, Type::F16x2 | Type::Bf16x2) {
        // `p` is the lower half's result and `q` the upper's.
        let low = body.temporary_predicate();
        compare_to(body, i, ty, (low, crate::execute::frame::DISCARDED), false)?;
        compare_to(body, i, ty, (q, crate::execute::frame::DISCARDED), true)?;
        super::arithmetic::predicate_operation(body, p, (low, false), (low, false), COMBINE_AND);
        return Ok(());
    }
    compare_to(body, i, ty, (p, q), false)
}

fn set(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (to, from) =
        (i.opcode.ty().ok_or(Unsupported)?, i.opcode.source_type().ok_or(Unsupported)?);
    let d = body.destination(&i.operands[0], to.bits())?;
    let discarded = crate::execute::frame::DISCARDED;
    let p = body.temporary_predicate();
    let yes: u64 = match to {
        Type::F32 => u64::from(1.0_f32.to_bits()),
        Type::F16 | Type::F16x2 => 0x3c00,
        Type::Bf16 | Type::Bf16x2 => 0x3f80,
        _ => u64::MAX,
    };
    let wide = body.context.wide;
    if matches!(from, Type::F16x2 | Type::Bf16x2) {
        let yes = yes & 0xffff;
        let q = body.temporary_predicate();
        compare_to(body, i, from, (p, discarded), false)?;
        compare_to(body, i, from, (q, discarded), true)?;
        let (low, high) = (body.temporary(32), body.temporary(32));
        let [none, low_yes, high_yes] =
            [0, yes, yes << 16].map(|bits| body.constant_bits(bits, 32));
        let choose = crate::execute::frame::select(false, wide);
        body.run(choose, Operands { d: low, a: low_yes, b: none, r: p, ..Operands::default() });
        body.run(choose, Operands { d: high, a: high_yes, b: none, r: q, ..Operands::default() });
        let or = body.pick::<crate::arithmetic::bits::Or<u32>>();
        body.run(or, Operands { d, a: low, b: high, ..Operands::default() });
        return Ok(());
    }
    compare_to(body, i, from, (p, discarded), false)?;
    let (a, b) = (body.constant_bits(yes, to.bits()), body.constant_bits(0, to.bits()));
    let choose = crate::execute::frame::select(to.bits() == 64, wide);
    body.run(choose, Operands { d, a, b, r: p, ..Operands::default() });
    Ok(())
}

fn select(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (ty, by) = (i.opcode.ty().ok_or(Unsupported)?, i.opcode.source_type().ok_or(Unsupported)?);
    let ftz = i.opcode.has(Modifier::Ftz);
    let function = match (ty.bits() == 64, by) {
        (false, Type::S32) => body.pick::<compare::Select32S32>(),
        (false, Type::F32) => by_ftz!(body, ftz, compare::Select32F32),
        (true, Type::S32) => body.pick::<compare::Select64S32>(),
        (true, Type::F32) => by_ftz!(body, ftz, compare::Select64F32),
        _ => return Err(Unsupported),
    };
    body.simple(i, Some(function), &[ty, ty, ty, by])
}

fn test(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    let class = match i.opcode.modifiers.of_group(Group::NumberClass) {
        Some(Modifier::Finite) => 0,
        Some(Modifier::Infinite) => 1,
        Some(Modifier::Number) => 2,
        Some(Modifier::Notanumber) => 3,
        Some(Modifier::Normal) => 4,
        _ => 5,
    };
    let function = match ty {
        Type::F32 => body.pick::<float::TestF32>(),
        Type::F64 => body.pick::<float::TestF64>(),
        _ => return Err(Unsupported),
    };
    let (p, q) = body.predicates(&i.operands[0])?;
    let a = body.source(&i.operands[1], ty.bits(), true)?;
    body.run(function, Operands { p, q, a, immediate: class, ..Operands::default() });
    Ok(())
}

impl Body<'_, '_> {
    /// Fuses a bare `add.f32` or `sub.f32` with the bare `mul.f32` that made one of its operands,
    /// when the seed says so; gives whether it did.
    fn contracted(&mut self, number: usize, i: &Instruction) -> Lowered<bool> {
        let Some(seed) = self.context.contract else {
            return Ok(false);
        };
        if i.opcode.has(Modifier::Rn) {
            return Ok(false);
        }
        let hash =
            (seed ^ (number as u64) << 20 ^ self.index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if hash >> 62 == 0 {
            return Ok(false);
        }
        let found = [1, 2].into_iter().find_map(|position| {
            let product = product_before(self.source, number, i, position)?;
            Some((position, product, &i.operands[3 - position]))
        });
        let Some((position, product, addend)) = found else {
            return Ok(false);
        };
        let d = self.destination(&i.operands[0], 32)?;
        let a = self.source(&product.operands[1], 32, true)?;
        let b = self.source(&product.operands[2], 32, true)?;
        let c = self.source(addend, 32, true)?;
        let (a, c) = match (i.opcode.base, position) {
            (Base::Sub, 1) => (a, self.negated(c)),
            (Base::Sub, _) => (self.negated(a), c),
            _ => (a, c),
        };
        let function = by_ftz!(self, i.opcode.has(Modifier::Ftz), float::FusedF32);
        self.run(function, Operands { d, a, b, c, ..Operands::default() });
        Ok(true)
    }
}

impl Body<'_, '_> {
    /// A register with the negated f32.
    fn negated(&mut self, a: u32) -> u32 {
        let d = self.temporary(32);
        let negate = self.pick::<float::NegateF32<f32>>();
        self.run(negate, Operands { d, a, ..Operands::default() });
        d
    }
}

/// The bare `mul.f32` in front of instruction `number`, in the same straight line and under the
/// same guard, that made operand `position`, if nothing in between touched what it read.
fn product_before<'m>(
    function: &'m assay_ptx::module::Function,
    number: usize,
    i: &Instruction,
    position: usize,
) -> Option<&'m Instruction> {
    let Operand::Register(wanted) = i.operands[position] else {
        return None;
    };
    let mut written = Vec::new();
    for earlier in (0..number).rev() {
        if function.labels.iter().any(|label| label.target as usize == earlier + 1) {
            return None;
        }
        let product = &function.body[earlier];
        if matches!(product.opcode.base, Base::Bra | Base::Call | Base::BrxIdx | Base::Ret) {
            return None;
        }
        let writes = registers(product.operands.first()?);
        if writes.contains(&wanted) {
            let bare = product.opcode.base == Base::Mul
                && product.opcode.types == [Type::F32]
                && product.opcode.modifiers.of_group(Group::Rounding).is_none()
                && !product.opcode.has(Modifier::Sat)
                && product.opcode.has(Modifier::Ftz) == i.opcode.has(Modifier::Ftz)
                && product.guard == i.guard;
            let reads: Vec<_> = product.operands[1..].iter().flat_map(registers).collect();
            let intact = !reads.iter().any(|read| written.contains(read) || *read == wanted);
            return (bare && intact).then_some(product);
        }
        written.extend(writes);
    }
    None
}

fn registers(operand: &Operand) -> Vec<assay_ptx::module::RegisterId> {
    match operand {
        Operand::Register(id) | Operand::Not(id) => vec![*id],
        Operand::Pair(p, q) => [*p, *q].into_iter().flatten().collect(),
        Operand::Vector(parts) | Operand::List(parts) => parts.iter().flat_map(registers).collect(),
        _ => Vec::new(),
    }
}
