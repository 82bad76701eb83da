//! How many registers of a thread hold its share of a matrix (ISA 9.7.14, 9.7.15).

use crate::base::Base;
use crate::modifier::Modifier;
use crate::opcode::Opcode;
use crate::types::{Shape, Type};

/// Matrices that `.x1 .x2 .x4` says; 1 when none is written.
pub(crate) fn matrices(opcode: &Opcode) -> usize {
    match (opcode.has(Modifier::X2), opcode.has(Modifier::X4)) {
        (true, _) => 2,
        (_, true) => 4,
        _ => 1,
    }
}

/// The registers of a fragment and the type of each: `A`, `B`, `C`, `D`, or `L` for the matrix
/// that `wmma.load` or `wmma.store` names.
pub(crate) fn of(opcode: &Opcode, letter: u8) -> Option<(usize, Type)> {
    let shape = opcode.shape?;
    if opcode.base == Base::WgmmaMmaAsync {
        return wgmma(opcode, shape, letter);
    }
    let letter = if letter == b'L' { moved_matrix(opcode) } else { letter };
    let ty = element_type(opcode, letter)?;
    let elements = match letter {
        b'A' if sparse(opcode) => u32::from(shape.m) * u32::from(shape.k) / 2,
        b'A' => u32::from(shape.m) * u32::from(shape.k),
        b'B' => u32::from(shape.k) * u32::from(shape.n),
        _ => u32::from(shape.m) * u32::from(shape.n),
    };
    if let Some(special) = half_exception(opcode, shape, letter, ty) {
        return Some(special);
    }
    share(elements, container_bits(opcode, ty), ty, 32)
}

fn sparse(opcode: &Opcode) -> bool {
    opcode.has(Modifier::Sparse) || opcode.has(Modifier::SparseOrdered)
}

fn moved_matrix(opcode: &Opcode) -> u8 {
    let letters = [(Modifier::MatrixA, b'A'), (Modifier::MatrixB, b'B'), (Modifier::MatrixC, b'C')];
    letters.iter().find(|(modifier, _)| opcode.has(*modifier)).map_or(b'D', |&(_, letter)| letter)
}

fn element_type(opcode: &Opcode, letter: u8) -> Option<Type> {
    let types = &opcode.types;
    match (types.len(), letter) {
        // `wmma.load`, `wmma.store`: one type. `wmma.mma` on f16: D and C, the inputs are f16.
        (1, _) | (2, b'D') => types.first().copied(),
        (2, b'C') => types.get(1).copied(),
        (2, _) => Some(Type::F16),
        (_, b'D') => types.first().copied(),
        (_, b'A') => types.get(1).copied(),
        (_, b'B') => types.get(2).copied(),
        _ => types.get(3).copied(),
    }
}

/// `wmma` holds each f16 input twice, and Volta's m8n8k4 uses quads of threads.
fn half_exception(opcode: &Opcode, shape: Shape, letter: u8, ty: Type) -> Option<(usize, Type)> {
    let input = matches!(letter, b'A' | b'B');
    let wmma = matches!(opcode.base, Base::WmmaLoad | Base::WmmaMma);
    if wmma && input && ty == Type::F16 {
        return Some((8, Type::B32));
    }
    let volta = opcode.base == Base::Mma && shape == Shape { m: 8, n: 8, k: 4 };
    if !volta || ty == Type::F64 {
        return None;
    }
    Some(match (input, ty) {
        (true, _) => (2, Type::B32),
        (false, Type::F32) => (8, Type::F32),
        (false, _) => (4, Type::B32),
    })
}

/// Bits that an element takes in a register: 8 for the narrow floats of `kind::f8f6f4`.
fn container_bits(opcode: &Opcode, ty: Type) -> u32 {
    let packed = opcode.has(Modifier::KindMxf4) || opcode.has(Modifier::KindMxf4nvf4);
    if ty == Type::E2m1 && !packed { 8 } else { ty.bits() }
}

/// Spreads elements over the threads of a warp or warp group.
fn share(elements: u32, bits: u32, ty: Type, threads: u32) -> Option<(usize, Type)> {
    let register = match ty {
        Type::F64 => Type::F64,
        Type::F32 => Type::F32,
        Type::S32 => Type::S32,
        _ => Type::B32,
    };
    let total = elements * bits;
    let per_register = threads * register.bits();
    (total > 0 && total.is_multiple_of(per_register))
        .then_some(((total / per_register) as usize, register))
}

fn wgmma(opcode: &Opcode, shape: Shape, letter: u8) -> Option<(usize, Type)> {
    if letter == b'A' {
        return Some((4, Type::B32));
    }
    let ty = opcode.ty()?;
    share(u32::from(shape.m) * u32::from(shape.n), ty.bits(), ty, 128)
}
