//! Programs that two blocks of a cluster run together.

use assay_ptx::forms::Form;
use assay_ptx::{Modifier, StateSpace, Type};

use crate::mbarrier::{CLUSTER_SYNC, mapped};
use crate::program::{Check, Skip, instruction};
use crate::values::Limit;
use crate::writer::{THREADS, Writer};

/// Bytes of shared memory for each thread.
const ROW: u32 = 32;

/// `mapa`: what the other block's thread wrote is read through the mapped address.
pub(crate) fn map(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let (wide, generic) = width(form)?;
    let own = row(writer);
    let value = writer.input(Type::B32, Limit::Any);
    let (rank, result) = (other_rank(writer), writer.register(Type::B32, false));
    let (from, to) = (address(writer, &own, wide, generic), writer.register(wide, false));
    writer.line(&format!("st.shared.b32 [{own}], {value};\n{CLUSTER_SYNC}"));
    writer.line(&instruction(&form.opcode.text, &[to.clone(), from, rank]));
    let space = if generic { "" } else { ".shared::cluster" };
    writer.line(&format!("ld{space}.b32 {result}, [{to}];\n{CLUSTER_SYNC}"));
    writer.output(&result, Type::B32);
    Ok(Check::Exact)
}

/// `getctarank` of an own address, and of one mapped to either block.
pub(crate) fn rank(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let (wide, generic) = width(form)?;
    let own = row(writer);
    let target = writer.input(Type::B32, Limit::Below(2));
    let from = address(writer, &own, wide, generic);
    let to = writer.register(wide, false);
    writer.cluster = 2;
    let (space, ty) = (if generic { "" } else { ".shared::cluster" }, wide.bits());
    writer.line(&format!("mapa{space}.u{ty} {to}, {from}, {target};"));
    for address in [from, to] {
        let rank = writer.register(Type::B32, false);
        writer.line(&instruction(&form.opcode.text, &[rank.clone(), address]));
        writer.output(&rank, Type::B32);
    }
    Ok(Check::Exact)
}

/// `barrier.cluster`: what the other block's thread wrote before is read after.
pub(crate) fn barrier(form: &Form, writer: &mut Writer) -> Check {
    let own = row(writer);
    let value = writer.input(Type::B32, Limit::Any);
    let result = writer.register(Type::B32, false);
    let there = mapped(writer, &own);
    let text = format!("{};", form.opcode.text);
    let (arrive, wait) = if form.opcode.has(Modifier::Wait) {
        ("barrier.cluster.arrive.aligned;", text.as_str())
    } else {
        (text.as_str(), "barrier.cluster.wait.aligned;")
    };
    writer.line(&format!("st.shared.b32 [{own}], {value};"));
    // A relaxed arrival orders nothing by itself.
    writer.line(&format!("fence.acq_rel.cluster;\n{arrive}\n{wait}"));
    writer.line(&format!("ld.shared::cluster.b32 {result}, [{there}];\n{CLUSTER_SYNC}"));
    writer.output(&result, Type::B32);
    Check::Exact
}

/// `st.async` and `red.async`: each thread's values go to the other block, which waits for them.
pub(crate) fn store(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let ty = form.opcode.ty().ok_or("an asynchronous store without a type")?;
    if form.opcode.space() == StateSpace::Global {
        return Err("it needs a chip of the next family");
    }
    let generic = form.opcode.space() == StateSpace::Generic;
    let own = row(writer);
    writer.declare(".shared .align 8 .b64 gate;\n.reg .b64 %gate;\n.reg .pred %one, %done;");
    let parts = form.operands.get(1).map_or(0, |operand| operand.parts);
    let (count, bytes) = (u32::from(parts.max(1)), ty.bytes());
    let before: Vec<String> = (0..count).map(|_| writer.input(ty, Limit::Any)).collect();
    let values: Vec<String> = (0..count).map(|_| writer.input(ty, Limit::Any)).collect();
    let value = if parts == 0 { values.concat() } else { format!("{{{}}}", values.join(", ")) };
    let bits = ty.bits();
    for (part, old) in before.iter().enumerate() {
        writer.line(&format!("st.shared.b{bits} [{own}+{}], {old};", part as u32 * bytes));
    }
    let total = THREADS * count * bytes;
    writer.line(&format!(
        "mov.u64 %gate, gate;
setp.ne.u32 %one, %lane, 0;
@%one bra MADE;
mbarrier.init.shared.b64 [%gate], 1;
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%gate], {total};
fence.mbarrier_init.release.cluster;
MADE:
{CLUSTER_SYNC}"
    ));
    let (to, gate) = (mapped(writer, &own), mapped(writer, "%gate"));
    let addresses = if generic {
        [to, gate].map(|shared| {
            let address = writer.register(Type::B64, false);
            writer.line(&format!("cvta.shared::cluster.u64 {address}, {shared};"));
            address
        })
    } else {
        [to, gate]
    };
    let [to, gate] = addresses.map(|address| format!("[{address}]"));
    writer.line(&instruction(&spelled(form), &[to, value, gate]));
    writer
        .line("WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%gate], 0;");
    writer.line("@!%done bra WAIT;");
    for part in 0..count {
        let result = writer.register(ty, false);
        writer.line(&format!("ld.shared.b{bits} {result}, [{own}+{}];", part * bytes));
        writer.output(&result, ty);
    }
    writer.line(CLUSTER_SYNC);
    Ok(Check::Exact)
}

/// The opcode with its parts in the order that the assembler wants.
fn spelled(form: &Form) -> String {
    let (opcode, mechanism) = (&form.opcode, ".mbarrier::complete_tx::bytes");
    let text = opcode.text.replace(mechanism, "").replace(".shared::cluster", "");
    let space = if opcode.space() == StateSpace::SharedCluster { ".shared::cluster" } else { "" };
    let front = if opcode.has(Modifier::Relaxed) {
        "red.async.relaxed.cluster"
    } else if opcode.text.contains(".weak") {
        "st.async.weak"
    } else {
        "st.async"
    };
    let rest = text.strip_prefix(front).unwrap_or_default();
    format!("{front}{space}{mechanism}{rest}")
}

/// The type of the form's address, and whether it is a generic one.
fn width(form: &Form) -> Result<(Type, bool), Skip> {
    let generic = form.opcode.space() == StateSpace::Generic;
    match form.opcode.ty() {
        Some(Type::U64) => Ok((Type::B64, generic)),
        Some(Type::U32) if !generic => Ok((Type::B32, false)),
        _ => Err("generic addresses of 32 bits, in modules of 64"),
    }
}

/// The thread's row in shared memory: a register of 64 bits.
fn row(writer: &mut Writer) -> String {
    writer.declare(&format!(".shared .align 32 .b8 tile[{}];", ROW * THREADS));
    let own = writer.register(Type::B64, false);
    writer.line(&format!("mov.u64 {own}, tile;\nmad.wide.u32 {own}, %lane, {ROW}, {own};"));
    own
}

fn other_rank(writer: &mut Writer) -> String {
    writer.cluster = 2;
    let rank = writer.register(Type::B32, false);
    writer.line(&format!("mov.u32 {rank}, %cluster_ctarank;\nxor.b32 {rank}, {rank}, 1;"));
    rank
}

/// A shared address as the form takes it.
fn address(writer: &mut Writer, own: &str, ty: Type, generic: bool) -> String {
    let to = writer.register(ty, false);
    match (generic, ty) {
        (true, _) => writer.line(&format!("cvta.shared.u64 {to}, {own};")),
        (_, Type::B32) => writer.line(&format!("cvt.u32.u64 {to}, {own};")),
        _ => writer.line(&format!("mov.b64 {to}, {own};")),
    }
    to
}
