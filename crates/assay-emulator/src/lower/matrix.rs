//! Lowers what a warp does with matrices: `ldmatrix`, `stmatrix`, `movmatrix` and `mma`.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Group, Layout, Modifier, Shape, Type};

use super::body::{Body, Lowered, Unsupported};
use super::{float, memory};
use crate::arithmetic::tensor_scaled::Scale;
use crate::execute::effect::Effect;
use crate::execute::fragment::Matrix;
use crate::execute::frame::{Operands, Slot};
use crate::execute::matrix::MatrixAccess;
use crate::execute::multiply::{Multiply, Variant};

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::Ldmatrix => access(body, i, 1, 0),
        Base::Stmatrix => access(body, i, 0, 1),
        Base::Movmatrix => {
            let d = body.destination(&i.operands[0], 32)?;
            let a = body.source(&i.operands[1], 32, false)?;
            body.effect(Effect::MoveMatrix, Operands { d, a, ..Operands::default() });
            Ok(())
        }
        Base::Mma => multiply(body, i),
        _ => Err(Unsupported),
    }
}

fn parts(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

/// Matrices of 8 by 8 elements of 16 bits between shared memory and registers.
fn access(body: &mut Body<'_, '_>, i: &Instruction, address: usize, values: usize) -> Lowered {
    let eight = i.opcode.shape == Some(Shape { m: 8, n: 8, k: 0 });
    if !eight || i.opcode.ty() != Some(Type::B16) {
        return Err(Unsupported);
    }
    let address = memory::address_operand(&i.operands[address])?;
    let space = memory::space(body, i, address)?;
    let at = body.address(address)?;
    let values = parts(&i.operands[values]);
    let loads = i.opcode.base == Base::Ldmatrix;
    let mut list = [0; 8];
    for (slot, part) in list.iter_mut().zip(values) {
        *slot = if loads { body.destination(part, 32)? } else { body.source(part, 32, false)? };
    }
    let matrices = MatrixAccess {
        space,
        wide_address: at.wide,
        count: values.len() as u8,
        transposed: i.opcode.has(Modifier::Trans),
    };
    let c = memory::add_list(body, list);
    let operands = Operands { a: at.slot, c, immediate: at.offset as u64, ..Operands::default() };
    let effect = if loads { Effect::LoadMatrix(matrices) } else { Effect::StoreMatrix(matrices) };
    body.effect(effect, operands);
    Ok(())
}

/// `mma` of every kind.
fn multiply(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let Some(shape) = i.opcode.shape else { return Err(Unsupported) };
    let [d, a, b, c] = *i.opcode.types.get(..4).ok_or(Unsupported)? else {
        return Err(Unsupported);
    };
    let bytes = i.opcode.has(Modifier::KindF8f6f4) || i.opcode.has(Modifier::KindMxf8f6f4);
    let multiply = Multiply {
        rows: shape.m as u8,
        depth: shape.k,
        a: matrix(a, bytes)?,
        b: matrix(b, bytes)?,
        c: matrix(c, bytes)?,
        d: matrix(d, bytes)?,
        saturates: i.opcode.has(Modifier::Satfinite),
        conjunction: i.opcode.has(Modifier::And),
        rounding: float::rounding(i),
        variant: variant(i, shape, a)?,
    };
    let lists = [
        sources(body, &i.operands[1], multiply.a)?,
        sources(body, &i.operands[2], multiply.b)?,
        sources(body, &i.operands[3], multiply.c)?,
        destinations(body, &i.operands[0], multiply.d)?,
        extras(body, &i.operands[4..], multiply.variant)?,
    ];
    let [c, ..] = lists.map(|list| memory::add_list(body, list));
    body.effect(Effect::Multiply(multiply), Operands { c, ..Operands::default() });
    Ok(())
}

fn variant(i: &Instruction, shape: Shape, a: Type) -> Lowered<Variant> {
    let layouts = i.opcode.layouts.as_slice();
    if shape.m == 8 && shape.k == 4 && a == Type::F16 {
        let [a, b] = *layouts else { return Err(Unsupported) };
        let (a_by_columns, b_by_rows) = (a == Layout::Column, b == Layout::Row);
        return Ok(Variant::Quad { a_by_columns, b_by_rows });
    }
    if layouts != [Layout::Row, Layout::Column] || shape.n != 8 {
        return Err(Unsupported);
    }
    if i.opcode.has(Modifier::Sparse) || i.opcode.has(Modifier::SparseOrdered) {
        // Fields for four rows' chunks of 16 bits take one lane of four, two or all.
        let chunk = match a.bits() {
            32 => 2,
            4 => 8,
            _ => 4,
        };
        let lanes = u64::from(shape.k / chunk / 4).max(1);
        return match i.operands.get(5) {
            Some(&Operand::Immediate(selector)) if selector < 4 / lanes => {
                Ok(Variant::Sparse { selector: selector as u8 })
            }
            _ => Err(Unsupported),
        };
    }
    if !i.opcode.has(Modifier::BlockScale) {
        return Ok(Variant::Dense);
    }
    let scale = match i.opcode.types.get(4) {
        Some(Type::Ue8m0) => Scale::Ue8m0,
        Some(Type::Ue4m3) => Scale::Ue4m3,
        _ => return Err(Unsupported),
    };
    let vectors = match i.opcode.modifiers.of_group(Group::ScaleVector) {
        Some(Modifier::ScaleVec4X) => 4,
        Some(Modifier::ScaleVec2X) => 2,
        Some(_) => 1,
        // What the two kinds have that may leave it out.
        None if i.opcode.has(Modifier::KindMxf8f6f4) => 1,
        None => 2,
    };
    Ok(Variant::Scaled { vectors, scale })
}

/// Metadata, or the scales of A and B, each with the byte and the lanes that have them.
fn extras(body: &mut Body<'_, '_>, operands: &[Operand], variant: Variant) -> Lowered<[Slot; 8]> {
    let mut list = [0; 8];
    match (variant, operands) {
        (Variant::Sparse { .. }, [metadata, ..]) => list[0] = body.source(metadata, 32, false)?,
        (Variant::Scaled { .. }, [a, of_a, b, of_b]) => {
            let selectors = [of_a, of_b].map(parts);
            let ([byte_a, thread_a], [byte_b, thread_b]) = (selectors[0], selectors[1]) else {
                return Err(Unsupported);
            };
            for (slot, operand) in list.iter_mut().zip([a, byte_a, thread_a, b, byte_b, thread_b]) {
                *slot = body.source(operand, 32, false)?;
            }
        }
        (Variant::Scaled { .. } | Variant::Sparse { .. }, _) => return Err(Unsupported),
        _ => {}
    }
    Ok(list)
}

fn sources(body: &mut Body<'_, '_>, operand: &Operand, matrix: Matrix) -> Lowered<[Slot; 8]> {
    let mut list = [0; 8];
    let float = matches!(matrix, Matrix::F32 | Matrix::F64);
    for (slot, part) in list.iter_mut().zip(parts(operand)) {
        *slot = body.source(part, matrix.register_bits(), float)?;
    }
    Ok(list)
}

fn destinations(body: &mut Body<'_, '_>, operand: &Operand, matrix: Matrix) -> Lowered<[Slot; 8]> {
    let mut list = [0; 8];
    for (slot, part) in list.iter_mut().zip(parts(operand)) {
        *slot = body.destination(part, matrix.register_bits())?;
    }
    Ok(list)
}

/// What a type means in a fragment; short floats may each take a byte.
pub(super) fn matrix(ty: Type, bytes: bool) -> Lowered<Matrix> {
    Ok(match ty {
        Type::F16 => Matrix::F16,
        Type::Bf16 => Matrix::Bf16,
        Type::Tf32 => Matrix::Tf32,
        Type::E4m3 => Matrix::E4m3,
        Type::E5m2 => Matrix::E5m2,
        Type::E3m2 => Matrix::E3m2,
        Type::E2m3 => Matrix::E2m3,
        Type::E2m1 if bytes => Matrix::E2m1Byte,
        Type::E2m1 => Matrix::E2m1,
        Type::F32 => Matrix::F32,
        Type::F64 => Matrix::F64,
        Type::S32 => Matrix::S32,
        Type::S8 => Matrix::S8,
        Type::U8 => Matrix::U8,
        Type::S4 => Matrix::S4,
        Type::U4 => Matrix::U4,
        Type::B1 => Matrix::B1,
        _ => return Err(Unsupported),
    })
}
