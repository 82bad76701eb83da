//! Lowers `wmma`.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Layout, Modifier, Type};

use super::body::{Body, Lowered, Unsupported};
use super::{float, matrix, memory};
use crate::execute::effect::Effect;
use crate::execute::fragment::Matrix;
use crate::execute::frame::{Operands, Slot};
use crate::execute::wmma::{Fragment, TileAccess, TileMultiply};

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::WmmaLoad => access(body, i, 1, 0),
        Base::WmmaStore => access(body, i, 0, 1),
        Base::WmmaMma => multiply(body, i),
        _ => Err(Unsupported),
    }
}

/// What a load or store moves. A layout is along the lines of all but B, whose lines are columns.
fn moved(i: &Instruction) -> Lowered<(Fragment, bool)> {
    let (Some(shape), Some(ty)) = (i.opcode.shape, i.opcode.ty()) else {
        return Err(Unsupported);
    };
    let (a, b) = (i.opcode.has(Modifier::MatrixA), i.opcode.has(Modifier::MatrixB));
    let (lines, length) = match (a, b) {
        (true, _) => (shape.m, shape.k),
        (_, true) => (shape.n, shape.k),
        _ => (shape.m, shape.n),
    };
    let along = if b { Layout::Column } else { Layout::Row };
    let across = i.opcode.layouts.first() != Some(&along);
    let fragment = Fragment {
        matrix: matrix::matrix(ty, false)?,
        lines: lines as u8,
        length: length as u8,
        accumulator: !a && !b,
    };
    // Elements of less than a byte cannot run across.
    if across && fragment.matrix.bits() < 8 { Err(Unsupported) } else { Ok((fragment, across)) }
}

fn access(body: &mut Body<'_, '_>, i: &Instruction, address: usize, values: usize) -> Lowered {
    let (fragment, across) = moved(i)?;
    let address = memory::address_operand(&i.operands[address])?;
    let space = memory::space(body, i, address)?;
    let at = body.address(address)?;
    let loads = i.opcode.base == Base::WmmaLoad;
    let list = registers(body, &i.operands[values], fragment.matrix, loads)?;
    let b = match i.operands.get(2) {
        Some(stride) => body.source(stride, 32, false)?,
        None => body.constant_bits(0, 32),
    };
    let strided = i.operands.len() > 2;
    let tile = TileAccess { fragment, across, space, wide_address: at.wide, strided };
    let c = memory::add_list(body, list);
    let operands =
        Operands { a: at.slot, b, c, immediate: at.offset as u64, ..Operands::default() };
    body.effect(if loads { Effect::LoadTile(tile) } else { Effect::StoreTile(tile) }, operands);
    Ok(())
}

fn multiply(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let Some(shape) = i.opcode.shape else { return Err(Unsupported) };
    let (d, input, c) = match *i.opcode.types.as_slice() {
        [d, c] => (d, Type::F16, c),
        [d, a, b, c] if a == b => (d, a, c),
        _ => return Err(Unsupported),
    };
    let multiply = TileMultiply {
        rows: shape.m as u8,
        columns: shape.n as u8,
        depth: shape.k as u8,
        input: matrix::matrix(input, false)?,
        c: matrix::matrix(c, false)?,
        d: matrix::matrix(d, false)?,
        saturates: i.opcode.has(Modifier::Satfinite),
        conjunction: i.opcode.has(Modifier::And),
        rounding: float::rounding(i),
    };
    // On floats it went with PTX 6.5.
    if multiply.saturates && d != Type::S32 {
        return Err(Unsupported);
    }
    let types = [multiply.input, multiply.input, multiply.c, multiply.d];
    let mut lists = [[0; 8]; 4];
    for ((list, matrix), operand) in lists.iter_mut().zip(types).zip([1, 2, 3, 0]) {
        *list = registers(body, &i.operands[operand], matrix, operand == 0)?;
    }
    let c = body.context.code.lists.len() as Slot;
    for list in lists {
        memory::add_list(body, list);
    }
    body.effect(Effect::MultiplyTiles(multiply), Operands { c, ..Operands::default() });
    Ok(())
}

fn registers(
    body: &mut Body<'_, '_>,
    operand: &Operand,
    matrix: Matrix,
    written: bool,
) -> Lowered<[Slot; 8]> {
    let parts = match operand {
        Operand::Vector(parts) => parts,
        other => std::slice::from_ref(other),
    };
    let float = matches!(matrix, Matrix::F32 | Matrix::F64);
    let mut list = [0; 8];
    for (slot, part) in list.iter_mut().zip(parts) {
        *slot = if written {
            body.destination(part, matrix.register_bits())?
        } else {
            body.source(part, matrix.register_bits(), float)?
        };
    }
    Ok(list)
}
