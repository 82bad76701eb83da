//! Programs around barriers and instructions without a result.

use assay_ptx::forms::{Form, FormOperandKind};
use assay_ptx::{Base, Modifier, StateSpace, Type};

use crate::program::{Check, Skip, instruction};
use crate::values::Limit;
use crate::writer::{THREADS, Writer};

/// `bar`, `barrier` and `bar.warp`: what one thread writes before, another reads after; reductions
/// give their result.
pub(crate) fn barrier(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    if opcode.has(Modifier::Red) {
        return reduction(form, writer);
    }
    let value = writer.input(Type::B32, Limit::Any);
    let (own, other) = (writer.register(Type::B32, false), writer.register(Type::B32, false));
    writer.declare(&format!(".shared .align 4 .b8 slots[{}];", 4 * THREADS));
    writer.line(&format!("mov.u32 {own}, slots;"));
    writer.line(&format!("mad.lo.u32 {own}, %lane, 4, {own};"));
    // Another warp's slot, or inside the warp the neighbour's.
    let distance = if opcode.base == Base::BarWarpSync { 4 } else { 256 };
    writer.line(&format!("xor.b32 {other}, {own}, {distance};"));
    let text = written(form);
    let result = writer.register(Type::B32, false);
    if opcode.has(Modifier::Arrive) {
        let early = writer.register(Type::Pred, false);
        let waits = text.replace("arrive", "sync");
        writer.line(&format!("setp.lt.u32 {early}, %lane, 64;"));
        writer.line(&format!("mov.b32 {result}, {value};"));
        writer.line(&format!("@{early} st.shared.b32 [{own}], {value};"));
        writer.line(&format!("@!{early} bra WAITS;\n{text}\nbra DONE;\nWAITS:\n{waits}"));
        writer.line(&format!("ld.shared.b32 {result}, [{other}];\nDONE:"));
    } else {
        writer.line(&format!("st.shared.b32 [{own}], {value};"));
        writer.line(&text);
        writer.line(&format!("ld.shared.b32 {result}, [{other}];"));
    }
    writer.output(&result, Type::B32);
    Ok(Check::Exact)
}

/// A barrier's instruction: barrier 1, all threads of the block, the whole warp.
fn written(form: &Form) -> String {
    let opcode = &form.opcode;
    let operands: Vec<String> = match (opcode.base, form.operands.len()) {
        (Base::BarWarpSync, _) => vec!["0xffffffff".to_string()],
        (_, 1) => vec!["1".to_string()],
        _ => vec!["1".to_string(), THREADS.to_string()],
    };
    instruction(&opcode.text, &operands)
}

fn reduction(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    let value = writer.input(Type::Pred, Limit::Clustered);
    let ty = opcode.ty().ok_or("a reduction without a type")?;
    let result = writer.register(ty, false);
    let mut operands = vec![result.clone(), "1".to_string()];
    if form.operands.len() > 3 {
        operands.push(THREADS.to_string());
    }
    operands.push(value);
    writer.line(&instruction(&opcode.text, &operands));
    writer.output(&result, ty);
    Ok(Check::Exact)
}

/// Fences, prefetches and hints: the operand comes back as it was.
pub(crate) fn without_result(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    let value = writer.input(Type::B64, Limit::Any);
    let mut operands = Vec::new();
    for operand in &form.operands {
        operands.push(match operand.kind {
            FormOperandKind::Address if opcode.base == Base::FenceProxy => {
                return Err("it takes a tensor map");
            }
            FormOperandKind::Address => match opcode.space() {
                StateSpace::Local | StateSpace::Const | StateSpace::Param => {
                    return Err("a prefetch of memory other than global");
                }
                _ => "[%in]".to_string(),
            },
            FormOperandKind::Constant if opcode.base == Base::Applypriority => "128".to_string(),
            FormOperandKind::Constant => "1".to_string(),
            FormOperandKind::Value(Type::U32) => "20".to_string(),
            _ => return Err("an operand that no template makes yet"),
        });
    }
    if opcode.base == Base::Applypriority {
        return Err("it needs whole lines of 128 bytes");
    }
    if opcode.has(Modifier::ProxyTensormap) || opcode.text.contains("tensormap") {
        return Err("it takes a tensor map");
    }
    writer.line(&instruction(&opcode.text, &operands));
    writer.output(&value, Type::B64);
    Ok(Check::Runs)
}
