//! Lowers what a warp does with matrices: `ldmatrix`, `stmatrix`, `movmatrix` and dense `mma`.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Layout, Modifier, Shape, Type};

use super::body::{Body, Lowered, Unsupported};
use super::{float, memory};
use crate::execute::effect::Effect;
use crate::execute::frame::{Operands, Slot};
use crate::execute::matrix::{Matrix, MatrixAccess, Multiply};

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

/// `mma` without sparsity and scales.
fn multiply(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (Some(shape), [d, a, b, c]) = (i.opcode.shape, i.opcode.types.as_slice()) else {
        return Err(Unsupported);
    };
    let volta = shape.m == 8 && shape.k == 4 && *a != Type::F64;
    let dense = i.opcode.layouts == [Layout::Row, Layout::Column] && i.operands.len() == 4;
    if volta || !dense || shape.n != 8 {
        return Err(Unsupported);
    }
    let multiply = Multiply {
        rows: shape.m as u8,
        depth: shape.k,
        a: matrix(*a)?,
        b: matrix(*b)?,
        c: matrix(*c)?,
        d: matrix(*d)?,
        saturates: i.opcode.has(Modifier::Satfinite),
        conjunction: i.opcode.has(Modifier::And),
        rounding: float::rounding(i),
    };
    let lists =
        [sources(body, &i.operands[1], multiply.a)?, sources(body, &i.operands[2], multiply.b)?];
    let mut last = sources(body, &i.operands[3], multiply.c)?;
    for (slot, part) in last[4..].iter_mut().zip(parts(&i.operands[0])) {
        *slot = body.destination(part, multiply.d.register_bits())?;
    }
    let c = memory::add_list(body, lists[0]);
    memory::add_list(body, lists[1]);
    memory::add_list(body, last);
    body.effect(Effect::Multiply(multiply), Operands { c, ..Operands::default() });
    Ok(())
}

fn sources(body: &mut Body<'_, '_>, operand: &Operand, matrix: Matrix) -> Lowered<[Slot; 8]> {
    let mut list = [0; 8];
    let float = matches!(matrix, Matrix::F32 | Matrix::F64);
    for (slot, part) in list.iter_mut().zip(parts(operand)) {
        *slot = body.source(part, matrix.register_bits(), float)?;
    }
    Ok(list)
}

pub(super) fn matrix(ty: Type) -> Lowered<Matrix> {
    Ok(match ty {
        Type::F16 => Matrix::F16,
        Type::Bf16 => Matrix::Bf16,
        Type::Tf32 => Matrix::Tf32,
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
