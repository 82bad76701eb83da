//! From a form of the table to a program: what it loads, the instruction, what it stores.

use std::collections::BTreeMap;

use assay_ptx::forms::{Form, FormOperand, FormOperandKind};
use assay_ptx::{Base, Modifier, Opcode, Type};

use crate::values::{CASES, EXHAUSTIVE, FLOAT_CASES, Input, Limit};
use crate::writer::Writer;
use crate::{cluster, mbarrier, memory, select, sync, wgmma, wmma};

/// What a program's results are compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// The same bits on every device, NaN payloads aside.
    Exact,
    /// The true value, within the bound that the ISA states.
    Bounded,
    /// Nothing: the instruction has no result; that it runs is all there is to see.
    Runs,
}

/// A kernel around one instruction.
#[derive(Clone, Debug)]
pub struct Program {
    /// The form's name: the opcode, and the operands where one opcode has several lists of them.
    pub name: String,
    /// The opcode.
    pub opcode: Opcode,
    /// The kernel's text, without the module's head, under a name to be replaced.
    pub(crate) text: String,
    /// The operands, one 64-bit word each.
    pub inputs: Vec<Input>,
    /// The types of the results, one 64-bit word each.
    pub outputs: Vec<Type>,
    /// Blocks of a cluster that it runs in; 1 without clusters.
    pub cluster: u32,
    /// How many cases it runs: a multiple of the threads of a block.
    pub cases: usize,
    /// What its results are compared with.
    pub check: Check,
}

/// Why no program is made of a form.
pub(crate) type Skip = &'static str;

/// All programs, in the order of the table, and the bases of which no program is made, each with
/// its reason.
pub fn programs() -> (Vec<Program>, Vec<(Base, &'static str)>) {
    let mut programs: Vec<Program> = Vec::new();
    let mut left_out: Vec<(Base, &'static str)> = Vec::new();
    for &base in Base::ALL {
        for form in select::forms(base) {
            match program(&form) {
                Ok(program) => programs.push(program),
                Err(reason) if !left_out.contains(&(base, reason)) => left_out.push((base, reason)),
                Err(_) => {}
            }
        }
        if base == Base::WgmmaMmaAsync {
            programs.extend(wgmma::layouts());
        }
    }
    name_apart(&mut programs);
    (programs, left_out)
}

/// Numbers the programs of one opcode that take their operands in several ways.
fn name_apart(programs: &mut [Program]) {
    let mut start = 0;
    while start < programs.len() {
        let same = |program: &&Program| program.name == programs[start].name;
        let count = programs[start..].iter().take_while(same).count();
        if count > 1 {
            for program in &mut programs[start..start + count] {
                let operands = program.inputs.len();
                program.name = format!("{} with {operands}", program.name);
            }
        }
        start += count;
    }
    // Some take as many operands in another way: the table's second and third of them say so.
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for program in programs {
        let times = seen.entry(program.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            program.name = format!("{} ({times})", program.name);
        }
    }
}

/// The form's opcode, and what tells it from another form of that opcode.
fn name(form: &Form) -> String {
    let opcode = &form.opcode;
    let bare = !opcode.has(Modifier::ExpectTx) && !opcode.has(Modifier::NoComplete);
    let more = match (opcode.base, form.operands.len()) {
        (Base::WgmmaMmaAsync, _) if wgmma::in_registers(form) => " with A in registers",
        (Base::WmmaLoad | Base::WmmaStore, 3) => " with a stride",
        (Base::MbarrierArrive | Base::MbarrierArriveDrop, 3) if bare => " with a count",
        (Base::MbarrierTryWait, 4) => " with a time",
        _ => "",
    };
    format!("{}{more}", opcode.text)
}

/// The program of a form.
pub(crate) fn program(form: &Form) -> Result<Program, Skip> {
    let mut writer = Writer::default();
    let check = write(form, &mut writer)?;
    if writer.outputs.is_empty() {
        return Err("no result to see");
    }
    let cases = cases(form, &writer);
    Ok(Program {
        name: name(form),
        cluster: writer.cluster.max(1),
        opcode: form.opcode.clone(),
        text: writer.finish(),
        inputs: writer.inputs,
        outputs: writer.outputs,
        cases,
        check,
    })
}

fn write(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    match opcode.base {
        Base::Ld | Base::Ldu => memory::load(form, writer),
        Base::St => memory::store(form, writer),
        Base::Atom | Base::Red => memory::atomic(form, writer),
        Base::Cvta => memory::convert_address(form, writer),
        Base::Isspacep => memory::which_space(form, writer),
        Base::CpAsync => memory::copy(form, writer),
        Base::Ldmatrix => memory::load_matrix(form, writer),
        Base::Stmatrix => memory::store_matrix(form, writer),
        Base::WmmaLoad | Base::WmmaStore | Base::WmmaMma => wmma::product(form, writer),
        Base::WgmmaMmaAsync => wgmma::product(form, writer),
        Base::Bar | Base::Barrier | Base::BarWarpSync => sync::barrier(form, writer),
        Base::Membar
        | Base::Fence
        | Base::FenceProxy
        | Base::FenceMbarrierInit
        | Base::Prefetch
        | Base::Prefetchu
        | Base::Applypriority
        | Base::Nanosleep
        | Base::Griddepcontrol
        | Base::Pmevent
        | Base::CpAsyncCommitGroup
        | Base::CpAsyncWaitGroup
        | Base::CpAsyncWaitAll
        | Base::WgmmaFence
        | Base::WgmmaCommitGroup
        | Base::WgmmaWaitGroup => sync::without_result(form, writer),
        Base::Createpolicy => Err("its result is opaque; `.L2::cache_hint` forms use it"),
        Base::Bra | Base::BrxIdx | Base::Call | Base::Ret | Base::Exit => {
            Err("control flow, which has tests of its own")
        }
        Base::Mapa => cluster::map(form, writer),
        Base::Getctarank => cluster::rank(form, writer),
        Base::BarrierCluster => Ok(cluster::barrier(form, writer)),
        Base::StAsync | Base::RedAsync => cluster::store(form, writer),
        Base::MbarrierInit
        | Base::MbarrierInval
        | Base::MbarrierExpectTx
        | Base::MbarrierCompleteTx
        | Base::MbarrierArrive
        | Base::MbarrierArriveDrop
        | Base::MbarrierTestWait
        | Base::MbarrierTryWait
        | Base::MbarrierPendingCount
        | Base::CpAsyncMbarrierArrive => mbarrier::mbarrier(form, writer),
        Base::Trap | Base::Brkpt => Err("it ends the launch"),
        Base::Alloca | Base::Stacksave | Base::Stackrestore => {
            Err("its result is an address of the device")
        }
        _ => registers(form, writer),
    }
}

/// An instruction on registers alone.
fn registers(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    carry_in(opcode, writer);
    let mut texts = Vec::new();
    let mut results = Vec::new();
    let mut sources = 0;
    for &operand in &form.operands {
        if operand.destination {
            texts.push(destination(operand, writer, &mut results)?);
        } else {
            texts.push(source(opcode, operand, sources, writer)?);
            sources += 1;
        }
    }
    writer.line(&instruction(&opcode.text, &texts));
    carry_out(opcode, writer);
    for (register, ty) in results {
        writer.output(&register, ty);
    }
    let approximate = opcode.has(Modifier::Approx) || opcode.has(Modifier::Full);
    Ok(if approximate { Check::Bounded } else { Check::Exact })
}

/// `opcode operands;`
pub(crate) fn instruction(opcode: &str, operands: &[String]) -> String {
    format!("{opcode} {};", operands.join(", "))
}

/// The registers of a destination, filed as results.
pub(crate) fn destination(
    operand: FormOperand,
    writer: &mut Writer,
    results: &mut Vec<(String, Type)>,
) -> Result<String, Skip> {
    let (ty, parts) = shape(operand)?;
    let mut names = Vec::new();
    for _ in 0..parts.max(1) {
        let name = writer.register(ty, operand.wider);
        results.push((name.clone(), ty));
        names.push(name);
    }
    if parts > 0 {
        return Ok(format!("{{{}}}", names.join(", ")));
    }
    let name = names.concat();
    if !operand.pair {
        return Ok(name);
    }
    let second = writer.register(Type::Pred, false);
    results.push((second.clone(), Type::Pred));
    Ok(format!("{name}|{second}"))
}

/// The registers of a source, loaded, or a literal where the ISA wants one or a mask is meant.
pub(crate) fn source(
    opcode: &Opcode,
    operand: FormOperand,
    index: usize,
    writer: &mut Writer,
) -> Result<String, Skip> {
    if operand.kind == FormOperandKind::Constant {
        // A table for `lop3` in which every bit of every operand matters.
        return Ok(if opcode.base == Base::Lop3 { "0x1b" } else { "0" }.to_string());
    }
    let (ty, parts) = shape(operand)?;
    let limit = match rule(opcode, index) {
        Rule::Literal(text) => return Ok(text.to_string()),
        Rule::Limit(limit) => limit,
    };
    if parts == 0 {
        return Ok(writer.input(ty, limit));
    }
    let ty = if opcode.base == Base::Mma { element(opcode, index, ty) } else { ty };
    let names: Vec<String> = (0..parts).map(|_| writer.input(ty, limit)).collect();
    Ok(format!("{{{}}}", names.join(", ")))
}

/// The type of an operand's parts and their number, 0 without braces.
fn shape(operand: FormOperand) -> Result<(Type, u8), Skip> {
    match operand.kind {
        FormOperandKind::Value(ty) => Ok((ty, operand.parts)),
        FormOperandKind::Pack(ty) => Ok((
            match ty.bits() {
                16 => Type::B8,
                32 => Type::B16,
                64 => Type::B32,
                _ => Type::B64,
            },
            2,
        )),
        _ => Err("an operand that no template makes yet"),
    }
}

/// What the registers of a matrix hold, so that they get values that mean something to it.
fn element(opcode: &Opcode, index: usize, ty: Type) -> Type {
    match opcode.types.get(index + 1) {
        Some(Type::F16) => Type::F16x2,
        Some(Type::Bf16) => Type::Bf16x2,
        Some(Type::Tf32) => Type::F32,
        _ => ty,
    }
}

enum Rule {
    Literal(&'static str),
    Limit(Limit),
}

/// What a source may be: the ISA leaves a few values undefined, and masks name the whole warp.
fn rule(opcode: &Opcode, index: usize) -> Rule {
    const WARP: Rule = Rule::Literal("0xffffffff");
    let integer = opcode.ty().is_some_and(Type::is_integer);
    match (opcode.base, index) {
        (Base::Div | Base::Rem, 1) if integer => Rule::Limit(Limit::NonZero),
        (Base::Shfl, 3) | (Base::Vote | Base::Match | Base::Redux, 1) | (Base::Elect, 0) => WARP,
        (Base::Vote | Base::Match, 0) => Rule::Limit(Limit::Clustered),
        (Base::Mma, _) => Rule::Limit(Limit::Tile),
        (Base::Fns, 1) => Rule::Limit(Limit::Below(32)),
        (Base::Fns, 2) => Rule::Limit(Limit::Within(33)),
        _ => Rule::Limit(Limit::Any),
    }
}

/// Sets the carry flag from two more operands, where the instruction reads it.
fn carry_in(opcode: &Opcode, writer: &mut Writer) {
    let set = match opcode.base {
        Base::Addc | Base::Madc => "add.cc.u32",
        Base::Subc => "sub.cc.u32",
        _ => return,
    };
    let (a, b) = (writer.input(Type::U32, Limit::Any), writer.input(Type::U32, Limit::Any));
    let sum = writer.register(Type::U32, false);
    writer.line(&format!("{set} {sum}, {a}, {b};"));
}

/// Stores the carry flag where the instruction writes it, before anything else can.
fn carry_out(opcode: &Opcode, writer: &mut Writer) {
    if !opcode.has(Modifier::CarryOut) {
        return;
    }
    let take = if matches!(opcode.base, Base::Sub | Base::Subc) { "subc.u32" } else { "addc.u32" };
    let flag = writer.register(Type::U32, false);
    writer.line(&format!("{take} {flag}, 0, 0;"));
    writer.output(&flag, Type::U32);
}

fn cases(form: &Form, writer: &Writer) -> usize {
    let opcode = &form.opcode;
    let float = |ty: &Type| ty.is_float() && ty.bits() >= 32;
    let compares = matches!(opcode.base, Base::Set | Base::Setp | Base::Selp | Base::Slct);
    let memory = matches!(opcode.base, Base::Ld | Base::Ldu | Base::St | Base::Atom | Base::Red);
    let narrow = matches!(writer.inputs.as_slice(), [one] if exhaustible(one));
    let tiles = [Base::WgmmaMmaAsync, Base::WmmaMma, Base::WmmaLoad, Base::WmmaStore];
    if tiles.contains(&opcode.base) {
        CASES
    } else if narrow && !memory {
        EXHAUSTIVE
    } else if opcode.types.iter().any(float) && !compares && !memory {
        FLOAT_CASES
    } else {
        CASES
    }
}

/// Whether 65,536 cases show every value, or every value in each half.
fn exhaustible(input: &Input) -> bool {
    use Type::{B16, Bf16, Bf16x2, E4m3x2, E5m2x2, F16, F16x2, S16, U16};
    let types = [B16, Bf16, Bf16x2, E4m3x2, E5m2x2, F16, F16x2, S16, U16];
    input.limit == Limit::Any && types.contains(&input.ty)
}
