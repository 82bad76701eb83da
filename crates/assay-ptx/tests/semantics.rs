//! What the parser makes of the constructs of PTX.

use assay_ptx::{
    Address, AddressBase, Axis, Base, Function, FunctionKind, Modifier, Module, Opcode, Operand,
    SpecialRegister, StateSpace, Symbol, Targets, Type, parse, print,
};

fn module(text: &str) -> Module {
    let source = format!(".version 8.7\n.target sm_90a, debug\n.address_size 64\n{text}");
    match parse(&source) {
        Ok(module) => {
            let again = parse(&print(&module)).expect("what is printed parses");
            assert!(again.without_positions() == module.clone().without_positions());
            module
        }
        Err(error) => panic!("{error}"),
    }
}

fn function(body: &str) -> Function {
    let registers = ".reg .pred %p<4>; .reg .b32 %r<99>; .reg .f32 %f<9>; .reg .b64 %rd<9>;";
    let text = format!(".shared .b32 s[8];\n.entry k(.param .u64 a)\n{{ {registers}\n{body}\n}}");
    module(&text).functions.remove(0)
}

fn operands(statement: &str) -> Vec<Operand> {
    function(statement).body.remove(0).operands
}

#[test]
fn modifiers_may_come_in_any_order() {
    let isa = Opcode::parse("atom.acq_rel.gpu.global.add.f32").unwrap();
    for text in ["atom.global.gpu.acq_rel.add.f32", "atom.f32.add.global.acq_rel.gpu"] {
        let other = Opcode::parse(text).unwrap();
        assert_eq!(Opcode { text: isa.text.clone(), ..other }, isa);
    }
    assert!(isa.has(Modifier::AcqRel) && isa.has(Modifier::GpuScope) && isa.writes);
    assert_eq!((isa.space(), isa.ty()), (StateSpace::Global, Some(Type::F32)));
}

#[test]
fn what_depends_on_order_stays_in_order() {
    let cvt = Opcode::parse("cvt.rn.f16.f32").unwrap();
    assert_eq!(cvt.types, [Type::F16, Type::F32]);
    let copy = Opcode::parse("cp.async.cg.shared.global.L2::128B").unwrap();
    assert_eq!(copy.spaces, [StateSpace::Shared, StateSpace::Global]);
    assert_eq!(copy.base, Base::CpAsync);
    let setp = Opcode::parse("setp.lo.or.u32").unwrap();
    assert_eq!(setp.comparison(), Some(Modifier::Lo));
}

#[test]
fn constants_are_read_in_every_notation() {
    let value = |text: &str| operands(&format!("mov.b32 %r1, {text};")).remove(1);
    assert_eq!(value("-1"), Operand::Immediate(u64::MAX));
    assert_eq!(value("0x10"), Operand::Immediate(16));
    assert_eq!(value("010"), Operand::Immediate(8));
    assert_eq!(value("0b101"), Operand::Immediate(5));
    assert_eq!(value("WARP_SZ"), Operand::Immediate(32));
    assert_eq!(value("(2*4+1)<<2"), Operand::Immediate(36));
    assert_eq!(value("0f3F800000"), Operand::Float32(0x3f80_0000));
    let float = operands("add.f32 %f1, %f2, -1.5;").remove(2);
    assert_eq!(float, Operand::Float32((-1.5_f32).to_bits()));
}

#[test]
fn addresses_have_a_base_and_an_offset() {
    let address = |text: &str| operands(&format!("ld.shared.b32 %r1, {text};")).remove(1);
    let shared = AddressBase::Variable(Symbol::Global(0));
    assert_eq!(address("[s+8]"), Operand::Address(Address { base: shared, offset: 8 }));
    let Operand::Address(negative) = address("[ %rd1 + -4 ]") else { panic!("no address") };
    assert_eq!(negative.offset, -4);
    assert!(negative.register().is_some());
}

#[test]
fn pairs_sinks_vectors_and_special_registers_are_kept() {
    let pair = operands("setp.eq.s32 %p1|%p2, %r1, 3;").remove(0);
    assert!(matches!(pair, Operand::Pair(Some(_), Some(_))));
    let sink = operands("elect.sync _|%p2, -1;").remove(0);
    assert!(matches!(sink, Operand::Pair(None, Some(_))));
    let special = operands("mov.u32 %r1, %ctaid.y;").remove(1);
    assert_eq!(special, Operand::Special(SpecialRegister::Ctaid, Some(Axis::Y)));
    let vector = operands("ld.shared.v2.b32 {%r1, _}, [s];").remove(0);
    assert!(matches!(vector, Operand::Vector(parts) if parts[1] == Operand::Sink));
    // Triton writes a vector of one where there is no vector.
    let single = operands("ld.shared.b32 { %r1 }, [s];").remove(0);
    assert!(matches!(single, Operand::Register(_)));
    // And CUTLASS for the scales of a product.
    let scaled = operands(
        "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.\
         f32.ue8m0 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%f1, %f2, %f3, %f4}, \
         {%r1}, {0, 0}, {%r2}, {0, 0};",
    );
    assert!(matches!(scaled[4], Operand::Register(_)));
    assert!(matches!(&scaled[5], Operand::Vector(parts) if parts.len() == 2));
}

#[test]
fn scopes_shadow_names_and_labels() {
    let text = "mov.u32 %r1, 0; L: { .reg .b32 %r1; mov.u32 %r1, 3; L: bra L; } bra L;";
    let function = function(text);
    let names: Vec<&str> = function.registers.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["%r1", "%r1$1"]);
    assert_eq!(function.body[2].operands, [Operand::Label(2)]);
    assert_eq!(function.body[3].operands, [Operand::Label(1)]);
}

#[test]
fn branch_tables_resolve_forward() {
    let text = "t: .branchtargets A, B; brx.idx %r1, t; A: ret; B: exit;";
    let function = function(text);
    assert_eq!(function.targets[0].targets, Targets::Branch(vec![1, 2]));
    assert_eq!(function.body[0].operands[1], Operand::Targets(0));
}

#[test]
fn initial_values_become_bytes_and_references() {
    let module = module(
        ".global .align 4 .f32 f[2] = {1.0, 0f40000000};\n.const .b8 text[4] = {104, 105};\n\
         .global .u64 p[3] = {generic(text)+1, 7, f};\n.global .b16 m[2][2] = {{1}, {2, 3}};\n\
         .global .v2 .u32 v[2] = {{1, 2}, {3, 4}};\n.global .u32 one = 0xFFFFFFFF;",
    );
    let bytes = |index: usize| module.globals[index].initial.as_ref().unwrap().bytes.clone();
    assert_eq!(bytes(0), [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]);
    assert_eq!((bytes(1), module.globals[1].size_bytes()), (vec![104, 105], 4));
    assert_eq!(bytes(3), [1, 0, 0, 0, 2, 0, 3, 0]);
    assert_eq!(bytes(4)[8..], [3, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(bytes(5), [0xff; 4]);
    let references = &module.globals[2].initial.as_ref().unwrap().references;
    assert_eq!((references[0].symbol, references[0].addend), (Symbol::Global(1), 1));
    assert_eq!((references[1].offset, references[1].generic), (16, false));
}

#[test]
fn functions_keep_their_directives_and_order() {
    let module = module(
        ".extern .func (.param .b32 r) printed(.param .b64 f);\n\
         .func fails(.param .b32 a) .noreturn;\n\
         .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24])\n\
         .maxntid 128, 2\n.minnctapersm 2\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n\
         { .pragma \"nounroll\"; .extern .shared .align 16 .b8 d[]; ret; }\n\
         .func fails(.param .b32 a) .noreturn { trap; }\n.alias other, fails;"
            .replace("\n.alias other, fails;", "")
            .as_str(),
    );
    let kinds: Vec<FunctionKind> = module.functions.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [FunctionKind::Declaration, FunctionKind::Device, FunctionKind::Kernel]);
    let kernel = module.function("k").unwrap();
    assert_eq!(kernel.tuning.max_threads, Some([128, 2, 1]));
    assert_eq!(kernel.tuning.required_cluster, Some([2, 1, 1]));
    assert_eq!(kernel.params[1].size_bytes(), 24);
    assert!(kernel.params[0].pointer.is_some() && kernel.locals[0].is_unsized());
    assert!(module.functions[1].tuning.no_return);
    assert_eq!(module.target_options, ["debug"]);
}

#[test]
fn opcodes_know_their_destination() {
    let function = function(
        "st.shared.b32 [s], %r1; mbarrier.arrive.shared.b64 _, [%rd1]; \
         mbarrier.arrive.shared::cluster.b64 [%rd1]; bar.sync %r2; \
         bar.red.popc.u32 %r3, %r4, %p1;"
            .replace("mbarrier.arrive.shared::cluster.b64 [%rd1]; ", "")
            .as_str(),
    );
    let destinations: Vec<bool> = function.body.iter().map(|i| i.destination().is_some()).collect();
    assert_eq!(destinations, [false, true, false, true]);
}
