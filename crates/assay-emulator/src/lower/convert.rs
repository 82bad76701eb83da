//! Lowers `cvt` and `cvt.pack`.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Group, Modifier, Type};

use super::body::{Body, Lowered, Unsupported};
use super::float::rounding;
use crate::convert::narrow::{self, part_bits, random};
use crate::convert::{self as cvt, Conversion, Scalar};
use crate::execute::frame::{Compute, Operands};

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    if i.opcode.base == Base::CvtPack {
        return pack(body, i);
    }
    let &[to, from] = &i.opcode.types[..] else {
        return Err(Unsupported);
    };
    let conversion = Conversion {
        from: scalar(from)?,
        to: scalar(to)?,
        rounding: conversion_rounding(i, from, to),
        to_integral: integral(i) && to.is_float() && from.is_float(),
        ftz: i.opcode.has(Modifier::Ftz),
        sat: i.opcode.has(Modifier::Sat),
        satfinite: i.opcode.has(Modifier::Satfinite),
        relu: i.opcode.has(Modifier::Relu),
    };
    if i.opcode.has(Modifier::Rs) {
        return stochastic(body, i, conversion, to);
    }
    if parts(to) == 2 {
        return pair(body, i, conversion, from, to);
    }
    one(body, i, conversion, from, to)
}

fn scalar(ty: Type) -> Lowered<Scalar> {
    Ok(match ty {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => Scalar::Unsigned(ty.bits()),
        Type::S8 | Type::S16 | Type::S32 | Type::S64 => Scalar::Signed(ty.bits()),
        Type::F16 | Type::F16x2 => Scalar::F16,
        Type::Bf16 | Type::Bf16x2 => Scalar::Bf16,
        Type::F32 => Scalar::F32,
        Type::F64 => Scalar::F64,
        Type::Tf32 => Scalar::Tf32,
        Type::E4m3x2 | Type::E4m3x4 => Scalar::E4m3,
        Type::E5m2x2 | Type::E5m2x4 => Scalar::E5m2,
        Type::E2m3x2 | Type::E2m3x4 => Scalar::E2m3,
        Type::E3m2x2 | Type::E3m2x4 => Scalar::E3m2,
        Type::E2m1x2 | Type::E2m1x4 => Scalar::E2m1,
        Type::Ue8m0x2 => Scalar::Ue8m0,
        _ => return Err(Unsupported),
    })
}

fn parts(ty: Type) -> u32 {
    match ty {
        Type::F16x2
        | Type::Bf16x2
        | Type::E4m3x2
        | Type::E5m2x2
        | Type::E2m3x2
        | Type::E3m2x2
        | Type::E2m1x2
        | Type::Ue8m0x2 => 2,
        Type::E4m3x4 | Type::E5m2x4 | Type::E2m3x4 | Type::E3m2x4 | Type::E2m1x4 => 4,
        _ => 1,
    }
}

fn integral(i: &Instruction) -> bool {
    let roundings = [Modifier::Rni, Modifier::Rzi, Modifier::Rmi, Modifier::Rpi];
    roundings.iter().any(|&modifier| i.opcode.has(modifier))
}

/// The rounding written; without one, conversions are exact, or toward zero to an integer.
fn conversion_rounding(i: &Instruction, from: Type, to: Type) -> crate::arithmetic::soft::Rounding {
    let written = i.opcode.modifiers.of_group(Group::Rounding).is_some();
    if !written && to.is_integer() && from.is_float() {
        return crate::arithmetic::soft::Rounding::Zero;
    }
    rounding(i)
}

/// Packed results: two f32, or two parts of a packed source.
fn pair(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    conversion: Conversion,
    from: Type,
    to: Type,
) -> Lowered {
    let d = body.destination(&i.operands[0], to.bits())?;
    let fast = rounding(i) == crate::arithmetic::soft::Rounding::Nearest
        && !conversion.relu
        && !conversion.satfinite;
    if from == Type::F32 {
        let a = body.source(&i.operands[1], 32, true)?;
        let b = body.source(&i.operands[2], 32, true)?;
        let function = match to {
            Type::Bf16x2 if fast => body.pick::<cvt::PackBf16x2>(),
            Type::F16x2 if fast => body.pick::<cvt::PackF16x2>(),
            _ => body.pick::<narrow::ConvertPair>(),
        };
        body.run(
            function,
            Operands { d, a, b, immediate: conversion.pack(), ..Operands::default() },
        );
        return Ok(());
    }
    if parts(from) != 2 {
        return Err(Unsupported);
    }
    let a = body.source(&i.operands[1], from.bits(), true)?;
    let mut operands = Operands { d, a, immediate: conversion.pack(), ..Operands::default() };
    let scaled = i.opcode.has(Modifier::Scaled);
    let function = match i.operands.get(2) {
        Some(scale) if scaled => {
            operands.b = body.source(scale, 16, false)?;
            body.pick::<narrow::ConvertScaled>()
        }
        None if !scaled => body.pick::<narrow::ConvertParts>(),
        _ => return Err(Unsupported),
    };
    body.run(function, operands);
    Ok(())
}

/// `cvt.rs`: two or four f32 and an operand of random bits.
fn stochastic(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    conversion: Conversion,
    to: Type,
) -> Lowered {
    let d = body.destination(&i.operands[0], to.bits())?;
    let c = body.source(i.operands.last().ok_or(Unsupported)?, 32, false)?;
    let function = body.pick::<narrow::ConvertStochastic>();
    let immediate = conversion.pack();
    let run = |body: &mut Body<'_, '_>, d: u32, a: &Operand, b: &Operand, flags: u16| {
        let (a, b) = (body.source(a, 32, true)?, body.source(b, 32, true)?);
        body.run(function, Operands { d, a, b, c, flags, immediate, ..Operands::default() });
        Ok(())
    };
    let [first, second] = match conversion.to {
        Scalar::F16 => return run(body, d, &i.operands[1], &i.operands[2], random::HALVES_OF_13),
        Scalar::Bf16 => return run(body, d, &i.operands[1], &i.operands[2], random::HALVES_OF_16),
        Scalar::E2m1 => [random::UPPER_BYTES, random::LOWER_BYTES],
        _ => [random::UPPER, random::LOWER],
    };
    let Operand::Vector(values) = &i.operands[1] else { return Err(Unsupported) };
    let [a, b, e, f] = &values[..] else { return Err(Unsupported) };
    let (upper, lower, shifted) = (body.temporary(32), body.temporary(32), body.temporary(32));
    run(body, upper, a, b, first)?;
    run(body, lower, e, f, second)?;
    let shift = body.constant_bits(u64::from(2 * part_bits(conversion.to)), 32);
    let left = body.pick::<crate::arithmetic::integer::ShiftLeft<u32>>();
    body.run(left, Operands { d: shifted, a: upper, b: shift, ..Operands::default() });
    let or = body.pick::<crate::arithmetic::bits::Or<u32>>();
    body.run(or, Operands { d, a: shifted, b: lower, ..Operands::default() });
    Ok(())
}

fn one(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    conversion: Conversion,
    from: Type,
    to: Type,
) -> Lowered {
    let Operand::Register(id) = i.operands[0] else {
        return Err(Unsupported);
    };
    let register_bits = body.register_bits(id);
    let d = body.register(id);
    let a = body.source(&i.operands[1], from.bits(), from.is_float())?;
    let function = match fast(body, conversion, from, to, register_bits) {
        Some(function) => function,
        None => general(body, from.bits() == 64, register_bits),
    };
    body.run(function, Operands { d, a, immediate: conversion.pack(), ..Operands::default() });
    Ok(())
}

fn general(body: &Body<'_, '_>, from_wide: bool, register_bits: u32) -> Compute {
    match (from_wide, register_bits) {
        (false, 64) => body.pick::<cvt::Convert32To64>(),
        (true, 64) => body.pick::<cvt::Convert64To64>(),
        (false, 32) => body.pick::<cvt::Convert32To32>(),
        (true, 32) => body.pick::<cvt::Convert64To32>(),
        (false, _) => body.pick::<cvt::Convert32To16>(),
        (true, _) => body.pick::<cvt::Convert64To16>(),
    }
}

/// The conversions that kernels are full of.
fn fast(
    body: &Body<'_, '_>,
    conversion: Conversion,
    from: Type,
    to: Type,
    register_bits: u32,
) -> Option<Compute> {
    use crate::arithmetic::float::{Flushed, SaturateF32};
    use crate::arithmetic::soft::Rounding;
    let saturates = conversion.sat && !conversion.to_integral && !conversion.relu;
    if saturates && (from, to) == (Type::F32, Type::F32) {
        let kept = body.pick::<SaturateF32<f32>>();
        return Some(if conversion.ftz { body.pick::<SaturateF32<Flushed>>() } else { kept });
    }
    let plain = !conversion.ftz
        && !conversion.sat
        && !conversion.satfinite
        && !conversion.relu
        && !conversion.to_integral;
    if !plain || register_bits != to.bits().max(16) {
        return None;
    }
    let nearest = conversion.rounding == Rounding::Nearest;
    let zero = conversion.rounding == Rounding::Zero;
    Some(match (from, to) {
        (Type::F32, Type::Bf16) if nearest => body.pick::<cvt::F32ToBf16>(),
        (Type::F32, Type::F16) if nearest => body.pick::<cvt::F32ToF16>(),
        (Type::Bf16, Type::F32) => body.pick::<cvt::Bf16ToF32>(),
        (Type::F16, Type::F32) => body.pick::<cvt::F16ToF32>(),
        (Type::F32, Type::F64) => body.pick::<cvt::F32ToF64>(),
        (Type::F64, Type::F32) if nearest => body.pick::<cvt::F64ToF32>(),
        (Type::S32, Type::F32) if nearest => body.pick::<cvt::S32ToF32>(),
        (Type::U32, Type::F32) if nearest => body.pick::<cvt::U32ToF32>(),
        (Type::S32, Type::F64) if nearest => body.pick::<cvt::S32ToF64>(),
        (Type::U32, Type::F64) if nearest => body.pick::<cvt::U32ToF64>(),
        (Type::F32, Type::S32) if zero => body.pick::<cvt::F32ToS32>(),
        (Type::F32, Type::U32) if zero => body.pick::<cvt::F32ToU32>(),
        (Type::U32, Type::U64 | Type::S64) => body.pick::<cvt::U32ToU64>(),
        (Type::S32, Type::S64 | Type::U64) => body.pick::<cvt::S32ToS64>(),
        (Type::U64 | Type::S64, Type::U32 | Type::S32) => body.pick::<cvt::U64ToU32>(),
        (Type::U32 | Type::S32, Type::U16 | Type::S16) | (Type::U16, Type::U32 | Type::S32) => {
            body.pick::<cvt::Low16>()
        }
        (Type::U8, Type::U32 | Type::S32 | Type::U16 | Type::S16)
        | (Type::U32 | Type::S32 | Type::U16 | Type::S16, Type::U8) => body.pick::<cvt::Low8>(),
        (Type::S16, Type::S32 | Type::U32) => body.pick::<cvt::S16ToS32>(),
        (Type::S8, Type::S32 | Type::U32) => body.pick::<cvt::S8ToS32>(),
        (Type::S8, Type::S16 | Type::U16) => body.pick::<cvt::S8ToS16>(),
        (Type::S16, Type::S64 | Type::U64) => body.pick::<cvt::S16ToS64>(),
        (Type::U16, Type::U64 | Type::S64) => body.pick::<cvt::U16ToU64>(),
        (Type::U64 | Type::S64, Type::U16 | Type::S16) => body.pick::<cvt::U64ToU16>(),
        _ => return None,
    })
}

fn pack(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let to = i.opcode.ty().ok_or(Unsupported)?;
    let signed = matches!(to, Type::S16 | Type::S8 | Type::S4 | Type::S2);
    let types = [Type::B32; 4];
    let count = if to.bits() == 16 { 3 } else { 4 };
    let mut operands = body.operands(i, &types[..count])?;
    if i.operands.len() == 3 {
        operands.c = body.constant_bits(0, 32);
    }
    operands.flags = u16::from(!signed);
    operands.immediate = u64::from(to.bits());
    let function = body.pick::<narrow::PackNarrow>();
    body.run(function, operands);
    Ok(())
}
