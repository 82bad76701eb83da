//! Writes one small kernel: operands from a buffer, some instructions, results to another.

use std::fmt::Write;

use assay_ptx::Type;

use crate::values::{Input, Limit};

/// The name that every kernel has until it gets its place in a module.
pub(crate) const NAME: &str = "KERNEL";

/// Threads of a block, one case each.
pub(crate) const THREADS: u32 = 128;

/// Bytes of memory that a program with memory operands has for each case.
pub(crate) const ROW: u64 = 32;

/// A constant bank that all programs of a module share: 64 rows of 32 bytes.
pub(crate) const TABLE: &str = "conformance_table";

/// A kernel in the making.
#[derive(Default)]
pub(crate) struct Writer {
    declarations: String,
    body: String,
    registers: u32,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Type>,
    /// Blocks of a cluster; 0 and 1 are none.
    pub(crate) cluster: u32,
}

impl Writer {
    /// Adds instructions.
    pub(crate) fn line(&mut self, text: &str) {
        self.body.push_str(text);
        self.body.push('\n');
    }

    /// Adds a declaration.
    pub(crate) fn declare(&mut self, text: &str) {
        self.declarations.push_str(text);
        self.declarations.push('\n');
    }

    /// A new register for values of a type; `wide` takes 32 bits for values of 8.
    pub(crate) fn register(&mut self, ty: Type, wide: bool) -> String {
        self.registers += 1;
        let class = match (ty, ty.bits()) {
            (Type::Pred, _) => "pred",
            (_, 0..=8) if wide => "b32",
            (Type::U8 | Type::S8, _) | (_, 9..=16) => "b16",
            (_, 0..=8) => "b8",
            (_, 17..=32) => "b32",
            (_, 33..=64) => "b64",
            _ => "b128",
        };
        let name = format!("%{}_{}", class.replace("pred", "p"), self.registers);
        let _ = writeln!(self.declarations, ".reg .{class} {name};");
        name
    }

    /// Declares an operand without loading it and returns its offset in the case's row.
    pub(crate) fn raw_input(&mut self, ty: Type, limit: Limit) -> usize {
        self.inputs.push(Input { ty, limit });
        8 * (self.inputs.len() - 1)
    }

    /// Loads an operand into a new register.
    pub(crate) fn input(&mut self, ty: Type, limit: Limit) -> String {
        if ty.bits() > 64 {
            let low = self.input(Type::B64, limit);
            let high = self.input(Type::B64, limit);
            let register = self.register(ty, false);
            self.line(&format!("mov.b128 {register}, {{{low}, {high}}};"));
            return register;
        }
        let offset = self.raw_input(ty, limit);
        let register = self.register(ty, false);
        if ty == Type::Pred {
            let word = self.register(Type::B32, false);
            self.line(&format!("ld.global.b32 {word}, [%in+{offset}];"));
            self.line(&format!("setp.ne.b32 {register}, {word}, 0;"));
        } else {
            let bits = register_bits(&register);
            self.line(&format!("ld.global.b{bits} {register}, [%in+{offset}];"));
        }
        register
    }

    /// Stores a register as the next result.
    pub(crate) fn output(&mut self, register: &str, ty: Type) {
        if ty.bits() > 64 {
            let low = self.register(Type::B64, false);
            let high = self.register(Type::B64, false);
            self.line(&format!("mov.b128 {{{low}, {high}}}, {register};"));
            self.output(&low, Type::B64);
            self.output(&high, Type::B64);
            return;
        }
        let offset = 8 * self.outputs.len();
        self.outputs.push(ty);
        let word = self.register(Type::B64, false);
        match (ty, register_bits(register)) {
            (Type::Pred, _) => self.line(&format!("selp.u64 {word}, 1, 0, {register};")),
            (_, 64) => self.line(&format!("mov.b64 {word}, {register};")),
            (_, bits) => self.line(&format!("cvt.u64.u{bits} {word}, {register};")),
        }
        self.line(&format!("st.global.b64 [%out+{offset}], {word};"));
    }

    /// The whole kernel.
    pub(crate) fn finish(&self) -> String {
        let (input, output) = (8 * self.inputs.len(), 8 * self.outputs.len());
        format!(
            ".visible .entry {NAME}(.param .u64 {NAME}_in, .param .u64 {NAME}_out, \
             .param .u64 {NAME}_memory)
{{
.reg .b32 %lane, %block, %case;
.reg .b64 %in, %out, %memory;
{}ld.param.u64 %in, [{NAME}_in];
ld.param.u64 %out, [{NAME}_out];
ld.param.u64 %memory, [{NAME}_memory];
mov.u32 %lane, %tid.x;
mov.u32 %block, %ctaid.x;
mad.lo.u32 %case, %block, {THREADS}, %lane;
mad.wide.u32 %in, %case, {input}, %in;
mad.wide.u32 %out, %case, {output}, %out;
mad.wide.u32 %memory, %case, {ROW}, %memory;
{}ret;
}}
",
            self.declarations, self.body
        )
    }
}

/// The bits of a register that [`Writer::register`] named.
fn register_bits(register: &str) -> u32 {
    let class = register.split_once('_').map_or(register, |(class, _)| class);
    class.strip_prefix("%b").and_then(|bits| bits.parse().ok()).unwrap_or(1)
}
