//! Lowers logic, shifts, bit fields and the integer operations that no float shares.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Modifier, Type};

use super::body::{Body, Lowered, Unsupported};
use crate::arithmetic::{bits, integer};
use crate::convert;
use crate::execute::effect::{CarryKind, CarryOperation, Effect};
use crate::execute::frame::{COMBINE_AND, COMBINE_OR, COMBINE_XOR, Compute, NEGATE_R, Operands};

/// Picks a lane function by an integer type.
macro_rules! by_integer {
    ($body:expr, $ty:expr, $lane:ty, $($path:tt)+) => {
        match $ty {
            Type::U16 | Type::B16 => Some($body.pick::<$($path)+<u16>>()),
            Type::S16 => Some($body.pick::<$($path)+<i16>>()),
            Type::U32 | Type::B32 => Some($body.pick::<$($path)+<u32>>()),
            Type::S32 => Some($body.pick::<$($path)+<i32>>()),
            Type::U64 | Type::B64 => Some($body.pick::<$($path)+<u64>>()),
            Type::S64 => Some($body.pick::<$($path)+<i64>>()),
            _ => None,
        }
    };
    ($body:expr, $ty:expr, $($path:tt)+) => {
        $crate::lower::arithmetic::by_integer!($body, $ty, (), $($path)+)
    };
}
pub(crate) use by_integer;

/// Picks a lane function by a width.
macro_rules! by_width {
    ($body:expr, $bits:expr, $($path:tt)+) => {
        match $bits {
            16 => Some($body.pick::<$($path)+<u16>>()),
            32 => Some($body.pick::<$($path)+<u32>>()),
            64 => Some($body.pick::<$($path)+<u64>>()),
            _ => None,
        }
    };
}

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    match i.opcode.base {
        Base::And | Base::Or | Base::Xor | Base::Not | Base::Cnot => logic(body, i, ty),
        Base::Shl => {
            let function = by_width!(body, ty.bits(), integer::ShiftLeft);
            body.simple(i, function, &[ty, ty, Type::U32])
        }
        Base::Shr => {
            let function = by_integer!(body, ty, integer::ShiftRight);
            body.simple(i, function, &[ty, ty, Type::U32])
        }
        Base::Shf => funnel(body, i),
        Base::Bfe => {
            let function = by_integer!(body, ty, bits::ExtractField);
            body.simple(i, function, &[ty, ty, Type::U32, Type::U32])
        }
        Base::Bfi => insert_field(body, i, ty),
        Base::Bfind => find_leading(body, i, ty),
        Base::Brev => {
            let function = by_width!(body, ty.bits(), bits::Reverse);
            body.simple(i, function, &[ty, ty])
        }
        Base::Clz => {
            let function = by_width!(body, ty.bits(), bits::LeadingZeros);
            body.simple(i, function, &[Type::U32, ty])
        }
        Base::Popc => {
            let function = by_width!(body, ty.bits(), bits::PopulationCount);
            body.simple(i, function, &[Type::U32, ty])
        }
        Base::Prmt => permute(body, i),
        Base::Lop3 => logic3(body, i),
        Base::Sad => {
            let function = by_integer!(body, ty, integer::SumOfDifferences);
            body.simple(i, function, &[ty; 4])
        }
        Base::Dp4a | Base::Dp2a => dot(body, i),
        Base::Fns => {
            let function = Some(body.pick::<bits::FindNthSet>());
            body.simple(i, function, &[Type::B32, Type::B32, Type::B32, Type::S32])
        }
        Base::Bmsk => {
            let function = Some(body.pick::<bits::BitMask>());
            body.flagged(i, function, &[Type::B32; 3], wraps(i))
        }
        Base::Szext => {
            let signed = ty.is_signed();
            let extend = body.pick::<bits::SignExtend>();
            let function = if signed { extend } else { body.pick::<bits::ZeroExtend>() };
            body.flagged(i, Some(function), &[Type::B32; 3], wraps(i))
        }
        Base::Rem => {
            let function = by_integer!(body, ty, integer::Remainder);
            body.simple(i, function, &[ty; 3])
        }
        Base::Mul24 | Base::Mad24 => product24(body, i, ty),
        Base::Addc | Base::Subc | Base::Madc => carry(body, i, ty),
        Base::Selp => select(body, i, ty),
        _ => Err(Unsupported),
    }
}

fn wraps(i: &Instruction) -> u16 {
    u16::from(i.opcode.has(Modifier::Wrap))
}

impl Body<'_, '_> {
    /// An instruction whose operands are a destination and up to three sources of these types.
    pub(crate) fn simple(
        &mut self,
        i: &Instruction,
        function: Option<Compute>,
        types: &[Type],
    ) -> Lowered {
        self.flagged(i, function, types, 0)
    }

    /// As [`Body::simple`], with flags for the function.
    pub(crate) fn flagged(
        &mut self,
        i: &Instruction,
        function: Option<Compute>,
        types: &[Type],
        flags: u16,
    ) -> Lowered {
        let function = function.ok_or(Unsupported)?;
        let mut operands = self.operands(i, types)?;
        operands.flags = flags;
        self.run(function, operands);
        Ok(())
    }

    /// Destination and sources of these types.
    pub(crate) fn operands(&mut self, i: &Instruction, types: &[Type]) -> Lowered<Operands> {
        let mut operands = Operands::default();
        for (number, &ty) in types.iter().enumerate() {
            let operand = i.operands.get(number).ok_or(Unsupported)?;
            let (bits, float) = (ty.bits(), ty.is_float());
            match number {
                0 => operands.d = self.destination(operand, bits)?,
                1 => operands.a = self.source(operand, bits, float)?,
                2 => operands.b = self.source(operand, bits, float)?,
                _ => operands.c = self.source(operand, bits, float)?,
            }
        }
        Ok(operands)
    }
}

fn logic(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    if ty == Type::Pred {
        return predicate_logic(body, i);
    }
    let bits = ty.bits();
    let function = match i.opcode.base {
        Base::And => by_width!(body, bits, bits::And),
        Base::Or => by_width!(body, bits, bits::Or),
        Base::Xor => by_width!(body, bits, bits::Xor),
        Base::Not => by_width!(body, bits, bits::Not),
        _ => by_width!(body, bits, integer::LogicalNot),
    };
    let types = [ty; 3];
    let count = if matches!(i.opcode.base, Base::Not | Base::Cnot) { 2 } else { 3 };
    body.simple(i, function, &types[..count])
}

/// Logic on predicates, as an effect-free combination: `p = a op b`.
fn predicate_logic(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (p, _) = body.predicates(&i.operands[0])?;
    let (a, not_a) = body.source_predicate(&i.operands[1])?;
    let (b, not_b) = match i.operands.get(2) {
        Some(operand) => body.source_predicate(operand)?,
        None => (crate::execute::frame::ALWAYS, false),
    };
    let code = match i.opcode.base {
        Base::And => COMBINE_AND,
        Base::Or => COMBINE_OR,
        // `not` has no second operand; it is `xor` with the predicate that is always true.
        Base::Xor | Base::Not => COMBINE_XOR,
        _ => return Err(Unsupported),
    };
    predicate_operation(body, p, (a, not_a), (b, not_b), code);
    Ok(())
}

/// `p = a op b` on predicates; `op` is one of the `COMBINE_*` codes.
pub(super) fn predicate_operation(
    body: &mut Body<'_, '_>,
    p: u16,
    a: (u16, bool),
    b: (u16, bool),
    code: u16,
) {
    let flags = code | if a.1 { PREDICATE_NOT_A } else { 0 } | if b.1 { NEGATE_R } else { 0 };
    let operands = Operands { p, q: a.0, r: b.0, flags, ..Operands::default() };
    body.run(combine_predicates, operands);
}

/// The first source of a predicate operation is inverted.
const PREDICATE_NOT_A: u16 = 1 << 9;

/// `p = q op r`, all predicates.
///
/// # Safety
/// As for [`Compute`].
unsafe fn combine_predicates(
    frame: &mut crate::execute::frame::Frame,
    operands: &Operands,
    mask: u32,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let inverted = |flag: u16| if operands.flags & flag == 0 { 0 } else { !0 };
        let a = frame.predicate(operands.q) ^ inverted(PREDICATE_NOT_A);
        let b = frame.predicate(operands.r) ^ inverted(NEGATE_R);
        let (result, _) = crate::execute::frame::combine(operands.flags, a, b);
        frame.set_predicate(operands.p, result, mask);
    }
}

fn funnel(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let left = i.opcode.has(Modifier::Left);
    let function = match (left, i.opcode.has(Modifier::Wrap)) {
        (true, false) => body.pick::<bits::FunnelLeftClamp>(),
        (true, true) => body.pick::<bits::FunnelLeftWrap>(),
        (false, false) => body.pick::<bits::FunnelRightClamp>(),
        (false, true) => body.pick::<bits::FunnelRightWrap>(),
    };
    body.simple(i, Some(function), &[Type::B32, Type::B32, Type::B32, Type::U32])
}

fn insert_field(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    let d = body.destination(&i.operands[0], ty.bits())?;
    let a = body.source(&i.operands[1], ty.bits(), false)?;
    let b = body.source(&i.operands[2], ty.bits(), false)?;
    let position = body.source(&i.operands[3], 32, false)?;
    let length = body.source(&i.operands[4], 32, false)?;
    let c = body.temporary(32);
    let pack = if ty.bits() == 64 {
        body.pick::<bits::PackField64>()
    } else {
        body.pick::<bits::PackField32>()
    };
    body.run(pack, Operands { d: c, a: position, b: length, ..Operands::default() });
    let function = match ty.bits() {
        32 => body.pick::<bits::InsertField32>(),
        64 => body.pick::<bits::InsertField64>(),
        _ => return Err(Unsupported),
    };
    body.run(function, Operands { d, a, b, c, ..Operands::default() });
    Ok(())
}

fn find_leading(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    let function = by_integer!(body, ty, bits::FindLeading);
    let flags = u16::from(i.opcode.has(Modifier::ShiftAmount));
    body.flagged(i, function, &[Type::U32, ty], flags)
}

fn permute(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let modes =
        [Modifier::F4e, Modifier::B4e, Modifier::Rc8, Modifier::Ecl, Modifier::Ecr, Modifier::Rc16];
    let types = [Type::B32; 4];
    match modes.iter().position(|&mode| i.opcode.has(mode)) {
        None => {
            let function = body.pick::<bits::Permute>();
            body.simple(i, Some(function), &types)
        }
        Some(mode) => {
            let function = body.pick::<bits::PermuteMode>();
            body.flagged(i, Some(function), &types, mode as u16 + 1)
        }
    }
}

fn logic3(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let Operand::Immediate(table) = i.operands[4] else {
        return Err(Unsupported);
    };
    let function = match table & 0xff {
        0x78 => body.pick::<bits::Logic3XorAnd>(),
        0xea => body.pick::<bits::Logic3AndOr>(),
        0x96 => body.pick::<bits::Logic3Xor>(),
        _ => body.pick::<bits::Logic3>(),
    };
    let mut operands = body.operands(i, &[Type::B32; 4])?;
    operands.immediate = table & 0xff;
    body.run(function, operands);
    match i.operands.get(5) {
        Some(predicate) => logic3_predicate(body, i, operands.d, predicate),
        None => Ok(()),
    }
}

/// `lop3.BoolOp d|p, ..., q`: `p` is `(d != 0) BoolOp q`.
fn logic3_predicate(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    result: u32,
    predicate: &Operand,
) -> Lowered {
    let Operand::Pair(_, p) = &i.operands[0] else {
        return Err(Unsupported);
    };
    let discarded = crate::execute::frame::DISCARDED;
    let p = p.map_or(discarded, |id| body.predicate_of(id));
    let (r, negated) = body.source_predicate(predicate)?;
    let combination = if i.opcode.has(Modifier::And) { COMBINE_AND } else { COMBINE_OR };
    let flags = combination | if negated { NEGATE_R } else { 0 };
    let b = body.constant_bits(0, 32);
    let function = body.pick::<crate::arithmetic::compare::DifferOrNan<u32>>();
    body.run(function, Operands { a: result, b, p, q: discarded, r, flags, ..Operands::default() });
    Ok(())
}

fn dot(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let signed: Vec<bool> = i.opcode.types.iter().map(|ty| ty.is_signed()).collect();
    let &[signed_a, signed_b] = &signed[..] else {
        return Err(Unsupported);
    };
    let types = [Type::B32; 4];
    if i.opcode.base == Base::Dp2a {
        let high = u16::from(i.opcode.has(Modifier::Hi));
        let flags = u16::from(signed_a) | u16::from(signed_b) << 1 | high << 2;
        let function = body.pick::<integer::Dot2>();
        return body.flagged(i, Some(function), &types, flags);
    }
    let function = match (signed_a, signed_b) {
        (false, false) => body.pick::<integer::Dot4UU>(),
        (false, true) => body.pick::<integer::Dot4US>(),
        (true, false) => body.pick::<integer::Dot4SU>(),
        (true, true) => body.pick::<integer::Dot4SS>(),
    };
    body.simple(i, Some(function), &types)
}

fn product24(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    let (high, signed) = (i.opcode.has(Modifier::Hi), ty.is_signed());
    let adds = i.opcode.base == Base::Mad24;
    let saturates = i.opcode.has(Modifier::Sat);
    let function = match (adds, high, signed, saturates) {
        (false, false, false, _) => body.pick::<integer::Low24U>(),
        (false, false, true, _) => body.pick::<integer::Low24S>(),
        (false, true, false, _) => body.pick::<integer::High24U>(),
        (false, true, true, _) => body.pick::<integer::High24S>(),
        (true, false, false, _) => body.pick::<integer::LowAdd24U>(),
        (true, false, true, _) => body.pick::<integer::LowAdd24S>(),
        (true, true, false, _) => body.pick::<integer::HighAdd24U>(),
        (true, true, true, false) => body.pick::<integer::HighAdd24S>(),
        (true, true, true, true) => body.pick::<integer::HighAddSaturating24S>(),
    };
    let types = [Type::B32; 4];
    body.simple(i, Some(function), &types[..if adds { 4 } else { 3 }])
}

/// The carry instructions: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
pub(super) fn carry(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    let operation = match i.opcode.base {
        Base::Add | Base::Addc => CarryOperation::Add,
        Base::Sub | Base::Subc => CarryOperation::Subtract,
        _ if i.opcode.has(Modifier::Lo) => CarryOperation::MultiplyAddLow,
        _ if ty.is_signed() => CarryOperation::MultiplyAddHighS,
        _ => CarryOperation::MultiplyAddHighU,
    };
    let kind = CarryKind {
        operation,
        wide: ty.bits() == 64,
        carry_in: matches!(i.opcode.base, Base::Addc | Base::Subc | Base::Madc),
        carry_out: i.opcode.has(Modifier::CarryOut),
    };
    let products = !matches!(operation, CarryOperation::Add | CarryOperation::Subtract);
    let types = [ty; 4];
    let mut operands = body.operands(i, &types[..if products { 4 } else { 3 }])?;
    operands.r = body.carry;
    operands.p = body.carry;
    body.effect(Effect::Carry(kind), operands);
    Ok(())
}

fn select(body: &mut Body<'_, '_>, i: &Instruction, ty: Type) -> Lowered {
    let types = [ty; 3];
    let mut operands = body.operands(i, &types)?;
    let (predicate, negated) = body.source_predicate(&i.operands[3])?;
    if negated {
        std::mem::swap(&mut operands.a, &mut operands.b);
    }
    operands.r = predicate;
    let function = crate::execute::frame::select(ty.bits() == 64, body.context.wide);
    body.run(function, operands);
    Ok(())
}

/// `Low16` and friends are used by moves between widths.
pub(super) fn truncation(body: &Body<'_, '_>) -> Compute {
    body.pick::<convert::Low16>()
}
