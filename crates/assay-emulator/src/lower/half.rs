//! Lowers f16 and bf16 arithmetic.

use assay_ptx::module::Instruction;
use assay_ptx::opcode::{Base, Modifier, Type};

use super::body::{Body, Lowered, Unsupported};
use super::float::three_operands;
use crate::arithmetic::approximate as approx;
use crate::arithmetic::{float, half};
use crate::convert as cvt;
use crate::execute::frame::{Operands, Slot};

/// Picks a lane function by a half type.
macro_rules! by_half {
    ($body:expr, $ty:expr, $($path:tt)+) => {
        match $ty {
            Type::F16 => $body.pick::<$($path)+<half::OneF16>>(),
            Type::Bf16 => $body.pick::<$($path)+<half::OneBf16>>(),
            Type::F16x2 => $body.pick::<$($path)+<half::TwoF16>>(),
            _ => $body.pick::<$($path)+<half::TwoBf16>>(),
        }
    };
}

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    let flag = |modifier: Modifier, bit: u16| if i.opcode.has(modifier) { bit } else { 0 };
    let mut flags = flag(Modifier::Ftz, half::HALF_FTZ)
        | flag(Modifier::Sat, half::HALF_SATURATE)
        | flag(Modifier::Relu, half::HALF_RELU)
        | flag(Modifier::Oob, half::HALF_OUT_OF_BOUNDS);
    let (function, count) = match i.opcode.base {
        Base::Add => (by_half!(body, ty, half::AddHalf), 3),
        Base::Sub => (by_half!(body, ty, half::SubtractHalf), 3),
        Base::Mul => (by_half!(body, ty, half::MultiplyHalf), 3),
        Base::Fma => (by_half!(body, ty, half::FusedHalf), 4),
        Base::Neg => (by_half!(body, ty, half::NegateHalf), 2),
        Base::Abs => (by_half!(body, ty, half::AbsoluteHalf), 2),
        Base::Min | Base::Max => {
            flags |= flag(Modifier::NanPropagating, half::HALF_NAN_WINS)
                | flag(Modifier::XorSign, half::HALF_XORSIGN)
                | if i.opcode.base == Base::Max { half::HALF_MAXIMUM } else { 0 };
            let function = by_half!(body, ty, half::ExtremumHalf);
            return three_operands(body, i, function, ty, flags);
        }
        Base::Ex2 => (exponential(body, ty), 2),
        Base::Tanh => (tangent(body, ty), 2),
        _ => return Err(Unsupported),
    };
    let types = [ty; 4];
    body.flagged(i, Some(function), &types[..count], flags)
}

/// `add.f32.f16 d, a, c` and its relatives: halves are widened, then it is f32 arithmetic.
pub(super) fn mixed(body: &mut Body<'_, '_>, i: &Instruction, half: Type, flags: u16) -> Lowered {
    let (function, types) = match i.opcode.base {
        Base::Add => (body.pick::<float::SlowAddF32>(), &[Type::F32, half, Type::F32][..]),
        Base::Sub => (body.pick::<float::SlowSubtractF32>(), &[Type::F32, half, Type::F32][..]),
        Base::Fma => (body.pick::<float::SlowFusedF32>(), &[Type::F32, half, half, Type::F32][..]),
        _ => return Err(Unsupported),
    };
    let mut operands = body.operands(i, types)?;
    operands.flags = flags;
    operands.a = widened(body, operands.a, half);
    if i.opcode.base == Base::Fma {
        operands.b = widened(body, operands.b, half);
    }
    body.run(function, operands);
    Ok(())
}

fn widened(body: &mut Body<'_, '_>, a: Slot, half: Type) -> Slot {
    let d = body.temporary(32);
    let widen = match half {
        Type::F16 => body.pick::<cvt::F16ToF32>(),
        _ => body.pick::<cvt::Bf16ToF32>(),
    };
    body.run(widen, Operands { d, a, ..Operands::default() });
    d
}

fn exponential(body: &Body<'_, '_>, ty: Type) -> crate::execute::frame::Compute {
    match ty {
        Type::F16 => body.pick::<approx::ExponentialF16>(),
        Type::Bf16 => body.pick::<approx::ExponentialBf16>(),
        Type::F16x2 => body.pick::<approx::ExponentialF16x2>(),
        _ => body.pick::<approx::ExponentialBf16x2>(),
    }
}

fn tangent(body: &Body<'_, '_>, ty: Type) -> crate::execute::frame::Compute {
    match ty {
        Type::F16 => body.pick::<approx::TangentF16>(),
        Type::Bf16 => body.pick::<approx::TangentBf16>(),
        Type::F16x2 => body.pick::<approx::TangentF16x2>(),
        _ => body.pick::<approx::TangentBf16x2>(),
    }
}
