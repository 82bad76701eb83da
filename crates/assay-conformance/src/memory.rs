//! Programs around loads, stores, atomics and copies. Each case has memory of its own.

use assay_ptx::forms::{Form, FormOperandKind};
use assay_ptx::{Base, Modifier, StateSpace, Type};

use crate::program::{Check, Skip, destination, instruction};
use crate::values::Limit;
use crate::writer::{ROW, TABLE, THREADS, Writer};

/// What a row holds before a store.
const BACKGROUND: &str = "0xa5a5a5a5a5a5a5a5";

/// 64-bit words of a row.
const WORDS: u64 = ROW / 8;

/// A case's row of memory.
struct Row {
    /// The space as an access to it is written, such as `.shared`; empty for generic.
    space: &'static str,
    /// The register with the row's address.
    address: String,
}

/// Where an opcode's memory lies; generic addresses point to global memory.
fn row(space: StateSpace, writer: &mut Writer) -> Result<Row, Skip> {
    let address = writer.register(Type::B64, false);
    let space = match space {
        StateSpace::Generic | StateSpace::Global => {
            writer.line(&format!("mov.b64 {address}, %memory;"));
            ".global"
        }
        StateSpace::Shared | StateSpace::SharedCta | StateSpace::SharedCluster => {
            let bytes = ROW * u64::from(THREADS);
            writer.declare(&format!(".shared .align 32 .b8 tile[{bytes}];"));
            writer.line(&format!("mov.u64 {address}, tile;"));
            writer.line(&format!("mad.wide.u32 {address}, %lane, {ROW}, {address};"));
            ".shared"
        }
        StateSpace::Local => {
            writer.declare(&format!(".local .align 32 .b8 depot[{ROW}];"));
            writer.line(&format!("mov.u64 {address}, depot;"));
            ".local"
        }
        StateSpace::Const => {
            let index = writer.register(Type::B32, false);
            writer.line(&format!("and.b32 {index}, %lane, 63;"));
            writer.line(&format!("mov.u64 {address}, {TABLE};"));
            writer.line(&format!("mad.wide.u32 {address}, {index}, {ROW}, {address};"));
            ".const"
        }
        _ => return Err("parameters, which every program loads"),
    };
    Ok(Row { space, address })
}

/// Fills a row with the case's operands. A constant row is full already.
fn fill(row: &Row, ty: Type, writer: &mut Writer) {
    for word in 0..WORDS {
        if row.space != ".const" {
            let value = writer.input(ty, Limit::Any);
            let Row { space, address } = row;
            writer.line(&format!("st{space}.b64 [{address}+{}], {value};", 8 * word));
        }
    }
}

fn background(row: &Row, writer: &mut Writer) {
    for word in 0..WORDS {
        let Row { space, address } = row;
        writer.line(&format!("st{space}.b64 [{address}+{}], {BACKGROUND};", 8 * word));
    }
}

/// Stores the whole row as results.
fn read_back(row: &Row, writer: &mut Writer) {
    for word in 0..WORDS {
        let value = writer.register(Type::B64, false);
        let Row { space, address } = row;
        writer.line(&format!("ld{space}.b64 {value}, [{address}+{}];", 8 * word));
        writer.output(&value, Type::B64);
    }
}

/// A policy for `.L2::cache_hint`, where the form takes one.
fn policy(form: &Form, writer: &mut Writer) -> Option<String> {
    let takes = form.operands.iter().any(|o| o.kind == FormOperandKind::CachePolicy);
    takes.then(|| {
        let policy = writer.register(Type::B64, false);
        writer.line(&format!("createpolicy.fractional.L2::evict_last.b64 {policy}, 1.0;"));
        policy
    })
}

/// `ld` and `ldu`.
pub(crate) fn load(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    let read_only = opcode.has(Modifier::Nc) || opcode.base == Base::Ldu;
    let row = if read_only {
        for _ in 0..WORDS {
            writer.raw_input(Type::B64, Limit::Any);
        }
        Row { space: ".global", address: "%in".to_string() }
    } else {
        let row = row(opcode.space(), writer)?;
        fill(&row, Type::B64, writer);
        row
    };
    let mut results = Vec::new();
    let target = form.operands.first().ok_or("a load without a destination")?;
    let target = destination(*target, writer, &mut results)?;
    let mut operands = vec![target, format!("[{}]", row.address)];
    operands.extend(policy(form, writer));
    writer.line(&instruction(&opcode.text, &operands));
    for (register, ty) in results {
        writer.output(&register, ty);
    }
    Ok(Check::Exact)
}

/// `st`.
pub(crate) fn store(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    let row = row(opcode.space(), writer)?;
    background(&row, writer);
    let value = form.operands.get(1).ok_or("a store without a value")?;
    let FormOperandKind::Value(ty) = value.kind else { return Err("a store without a value") };
    let names: Vec<String> =
        (0..value.parts.max(1)).map(|_| writer.input(ty, Limit::Any)).collect();
    let value = match value.parts {
        0 => names.concat(),
        _ => format!("{{{}}}", names.join(", ")),
    };
    let mut operands = vec![format!("[{}]", row.address), value];
    operands.extend(policy(form, writer));
    writer.line(&instruction(&opcode.text, &operands));
    read_back(&row, writer);
    Ok(Check::Exact)
}

/// `atom` and `red`: the old values, where there are some, and the new ones.
pub(crate) fn atomic(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    let ty = opcode.ty().ok_or("an atomic without a type")?;
    let (bits, bytes) = (ty.bits(), ty.bytes());
    let parts = if opcode.vector > 1 { opcode.vector } else { 0 };
    let row = row(opcode.space(), writer)?;
    let swaps = opcode.has(Modifier::Cas);
    let limit = if swaps { Limit::Below(3) } else { Limit::Any };
    for part in 0..u32::from(parts.max(1)) {
        let value = writer.input(ty, limit);
        let Row { space, address } = &row;
        writer.line(&format!("st{space}.b{bits} [{address}+{}], {value};", part * bytes));
    }
    let mut results = Vec::new();
    let mut operands = Vec::new();
    let mut first = true;
    for operand in &form.operands {
        match operand.kind {
            FormOperandKind::Address => operands.push(format!("[{}]", row.address)),
            FormOperandKind::CachePolicy => operands.extend(policy(form, writer)),
            FormOperandKind::Value(_) if operand.destination => {
                operands.push(destination(*operand, writer, &mut results)?);
            }
            FormOperandKind::Value(ty) => {
                let limit = if swaps && first { Limit::Below(3) } else { Limit::Any };
                first = false;
                let count = operand.parts.max(1);
                let names: Vec<String> = (0..count).map(|_| writer.input(ty, limit)).collect();
                let names = names.join(", ");
                operands.push(if operand.parts > 0 { format!("{{{names}}}") } else { names });
            }
            _ => return Err("an atomic with an operand that no template makes"),
        }
    }
    writer.line(&instruction(&opcode.text, &operands));
    for (register, ty) in results {
        writer.output(&register, ty);
    }
    for part in 0..u32::from(parts.max(1)) {
        let value = writer.register(ty, false);
        let Row { space, address } = &row;
        writer.line(&format!("ld{space}.b{bits} {value}, [{address}+{}];", part * bytes));
        writer.output(&value, ty);
    }
    Ok(Check::Exact)
}

/// `cvta`: what was stored through one kind of address is loaded through the other.
pub(crate) fn convert_address(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    if opcode.ty() != Some(Type::U64) {
        return Err("addresses of 32 bits, in modules of 64");
    }
    let row = row(opcode.space(), writer)?;
    fill(&row, Type::B64, writer);
    let space = opcode.space().name();
    let (generic, back) = (writer.register(Type::B64, false), writer.register(Type::B64, false));
    let value = writer.register(Type::B64, false);
    if opcode.has(Modifier::To) {
        writer.line(&format!("cvta.{space}.u64 {generic}, {};", row.address));
        writer.line(&format!("{} {back}, {generic};", opcode.text));
        writer.line(&format!("ld{}.b64 {value}, [{back}+8];", row.space));
    } else {
        writer.line(&format!("{} {generic}, {};", opcode.text, row.address));
        writer.line(&format!("ld.b64 {value}, [{generic}+8];"));
    }
    writer.output(&value, Type::B64);
    Ok(Check::Exact)
}

/// `isspacep` of addresses in four spaces.
pub(crate) fn which_space(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    if matches!(opcode.space(), StateSpace::ParamFunc) {
        return Err("parameters of functions");
    }
    writer.raw_input(Type::B32, Limit::Any);
    for space in [StateSpace::Global, StateSpace::Shared, StateSpace::Local, StateSpace::Const] {
        let row = row(space, writer)?;
        let generic = writer.register(Type::B64, false);
        let found = writer.register(Type::Pred, false);
        writer.line(&format!("cvta{}.u64 {generic}, {};", row.space, row.address));
        writer.line(&format!("{} {found}, {generic};", opcode.text));
        writer.output(&found, Type::Pred);
    }
    Ok(Check::Exact)
}

/// `cp.async` of 16 bytes from global to shared memory, with zeros behind a shorter source.
pub(crate) fn copy(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    for _ in 0..WORDS {
        writer.raw_input(Type::B64, Limit::Any);
    }
    let row = row(StateSpace::Shared, writer)?;
    background(&row, writer);
    let mut operands = vec![format!("[{}]", row.address), "[%in]".to_string(), "16".to_string()];
    for operand in &form.operands {
        match operand.kind {
            FormOperandKind::Value(Type::Pred) => {
                operands.push(writer.input(Type::Pred, Limit::Any));
            }
            FormOperandKind::Value(ty) => operands.push(writer.input(ty, Limit::Below(17))),
            FormOperandKind::CachePolicy => operands.extend(policy(form, writer)),
            _ => {}
        }
    }
    pad(writer);
    writer.line(&instruction(&opcode.text, &operands));
    writer.line("cp.async.commit_group;");
    writer.line("cp.async.wait_group 0;");
    read_back(&row, writer);
    Ok(Check::Exact)
}

/// `ldmatrix`: each lane's row of 16 bytes is its own.
pub(crate) fn load_matrix(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let row = row(StateSpace::Shared, writer)?;
    fill(&row, Type::B64, writer);
    writer.line("bar.warp.sync 0xffffffff;");
    let mut results = Vec::new();
    let target = form.operands.first().ok_or("a load without a destination")?;
    let target = destination(*target, writer, &mut results)?;
    let address = matrix_address(form, &row, writer);
    writer.line(&instruction(&form.opcode.text, &[target, address]));
    for (register, ty) in results {
        writer.output(&register, ty);
    }
    Ok(Check::Exact)
}

/// The row's address in the form's space: shared, or generic where none is written.
fn matrix_address(form: &Form, row: &Row, writer: &mut Writer) -> String {
    if form.opcode.space() != StateSpace::Generic {
        return format!("[{}]", row.address);
    }
    let generic = writer.register(Type::B64, false);
    writer.line(&format!("cvta.shared.u64 {generic}, {};", row.address));
    format!("[{generic}]")
}

/// `stmatrix`: each lane's row is its own, and shows what others put there.
pub(crate) fn store_matrix(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let row = row(StateSpace::Shared, writer)?;
    background(&row, writer);
    let parts = form.operands.get(1).map_or(1, |operand| operand.parts.max(1));
    let names: Vec<String> = (0..parts).map(|_| writer.input(Type::B32, Limit::Any)).collect();
    writer.line("bar.warp.sync 0xffffffff;");
    let values = format!("{{{}}}", names.join(", "));
    let address = matrix_address(form, &row, writer);
    writer.line(&instruction(&form.opcode.text, &[address, values]));
    writer.line("bar.warp.sync 0xffffffff;");
    read_back(&row, writer);
    Ok(Check::Exact)
}

/// Keeps the rows of operands at multiples of 32 bytes.
fn pad(writer: &mut Writer) {
    while !writer.inputs.len().is_multiple_of(4) {
        writer.raw_input(Type::B32, Limit::Any);
    }
}
