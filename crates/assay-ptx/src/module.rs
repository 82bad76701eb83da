//! A parsed PTX module: the plain data that the parser makes and that everybody else reads.
//!
//! Every name is resolved: registers are [`RegisterId`]s into [`Function::registers`], variables
//! and functions are [`Symbol`]s, labels are indices into [`Function::body`]. Nested `{ }` scopes
//! are flattened; a name that a scope declares again gets a `$n` suffix, so that names in a
//! function are unique and the printed text parses back to the same module.
//!
//! [`parse`](crate::parse) checks operands against the table of each opcode (see
//! [`verify`](crate::verify)), so a module from the parser can be trusted by an interpreter.

use std::sync::Arc;

use crate::opcode::{Base, Opcode, StateSpace, Type};
use crate::special::{Axis, SpecialRegister};

/// A place in the PTX text. Both count from 1; columns count bytes, for PTX is
/// ASCII text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// A whole PTX file (ISA 11.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Module {
    /// `.version major.minor`.
    pub version: (u32, u32),
    /// The architecture of `.target`, such as `sm_80`.
    pub target: String,
    /// What else `.target` lists, such as `debug` or `texmode_independent`.
    pub target_options: Vec<String>,
    /// `.address_size`, 64 (32 when the directive is missing, as the ISA says).
    pub address_size: u32,
    /// Module-scope `.global`, `.const` and `.shared` variables, in order.
    pub globals: Vec<Variable>,
    /// Kernels, device functions and declarations of external functions, in order.
    pub functions: Vec<Function>,
    /// `.file` entries: number and path.
    pub files: Vec<(u32, String)>,
    /// `.alias` entries: the alias and the function that it stands for, as function indices.
    pub aliases: Vec<(FunctionId, FunctionId)>,
    /// Module-scope `.pragma` strings.
    pub pragmas: Vec<String>,
    /// `.section` blocks (DWARF), kept as text.
    pub sections: Vec<Section>,
}

impl Module {
    /// The module with every position zeroed, to compare modules by what they mean.
    #[must_use]
    pub fn without_positions(mut self) -> Module {
        let erase = |variables: &mut Vec<Variable>| {
            for variable in variables {
                variable.position = Position::default();
            }
        };
        erase(&mut self.globals);
        for function in &mut self.functions {
            function.position = Position::default();
            erase(&mut function.params);
            erase(&mut function.returns);
            erase(&mut function.locals);
            for prototype in &mut function.prototypes {
                erase(&mut prototype.params);
                erase(&mut prototype.returns);
            }
            for instruction in &mut function.body {
                instruction.position = Position::default();
            }
        }
        self
    }

    /// Finds a function by its name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

/// A `.section` block, kept as the text between its braces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// The name with its dot, such as `.debug_str`.
    pub name: String,
    /// The text between the braces.
    pub text: String,
}

/// Index into [`Module::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FunctionId(pub u32);

/// Index into [`Function::registers`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegisterId(pub u32);

impl RegisterId {
    /// The id as an index into [`Function::registers`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a [`Function`] is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FunctionKind {
    /// `.entry`: can be launched.
    Kernel,
    /// `.func` with a body.
    Device,
    /// `.func` (or `.entry`) without a body, such as `vprintf`.
    Declaration,
}

/// Linking directives (ISA 11.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Linkage {
    /// No directive: private to the module.
    #[default]
    Private,
    /// `.visible`.
    Visible,
    /// `.extern`.
    Extern,
    /// `.weak`.
    Weak,
    /// `.common`.
    Common,
}

/// Performance-tuning and cluster directives of a function (ISA 11.4 and 11.7).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tuning {
    /// `.maxntid x, y, z`; missing axes are 1.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid x, y, z`; missing axes are 1.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm n`.
    pub min_blocks: Option<u32>,
    /// `.maxnreg n`.
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster x, y, z`.
    pub required_cluster: Option<[u32; 3]>,
    /// `.maxclusterrank n`.
    pub max_cluster_rank: Option<u32>,
    /// `.explicitcluster`.
    pub explicit_cluster: bool,
    /// `.blocksareclusters`.
    pub blocks_are_clusters: bool,
    /// `.noreturn`.
    pub no_return: bool,
    /// `.abi_preserve n`.
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control n`.
    pub abi_preserve_control: Option<u32>,
}

/// A kernel, a device function or a declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// The symbol, as written (mangled).
    pub name: String,
    /// Where the name stands.
    pub position: Position,
    /// Linking directive.
    pub linkage: Linkage,
    /// Kernel, device function or declaration.
    pub kind: FunctionKind,
    /// `.param` parameters, in order.
    pub params: Vec<Variable>,
    /// Return values of a `.func`, in order (`.param` space).
    pub returns: Vec<Variable>,
    /// Performance-tuning and cluster directives.
    pub tuning: Tuning,
    /// `.attribute(...)` of the function, as text.
    pub attributes: Vec<String>,
    /// `.pragma` strings of the function.
    pub pragmas: Vec<String>,
    /// The registers that the body uses, in order of first use.
    pub registers: Vec<Register>,
    /// Variables declared inside: `.shared`, `.local`, `.param` (call arguments), `.global` and
    /// `.const`.
    pub locals: Vec<Variable>,
    /// The instructions, in order. Falling off the end returns.
    pub body: Vec<Instruction>,
    /// The labels, in order; one may stand behind the last instruction.
    pub labels: Vec<Label>,
    /// `.callprototype` declarations, for indirect calls.
    pub prototypes: Vec<Prototype>,
    /// `.branchtargets` and `.calltargets` lists.
    pub targets: Vec<TargetList>,
}

impl Function {
    /// Whether the function can be launched.
    pub fn is_kernel(&self) -> bool {
        self.kind == FunctionKind::Kernel
    }

    /// The register behind an id.
    ///
    /// # Panics
    /// When the id belongs to another function.
    pub fn register(&self, id: RegisterId) -> &Register {
        &self.registers[id.index()]
    }
}

/// A virtual register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// The name, with its `%` where it has one.
    pub name: String,
    /// The declared type.
    pub ty: Type,
}

/// A name for a place in a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The name, unique in the function.
    pub name: String,
    /// The index of the instruction behind it; `body.len()` at the end.
    pub target: u32,
}

/// A `.callprototype`: the signature of an indirect call (ISA 11.3.3).
#[derive(Clone, PartialEq, Debug)]
pub struct Prototype {
    /// The label of the declaration.
    pub name: String,
    /// Return values.
    pub returns: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// `.noreturn`.
    pub no_return: bool,
}

/// A `.branchtargets` or `.calltargets` list (ISA 11.3.1, 11.3.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetList {
    /// The label of the list.
    pub name: String,
    /// What it lists.
    pub targets: Targets,
}

/// What a [`TargetList`] lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Targets {
    /// Instruction indices, for `brx.idx`.
    Branch(Vec<u32>),
    /// Functions, for indirect calls.
    Call(Vec<FunctionId>),
}

/// A variable or parameter (ISA 5.4).
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// The name, unique in its function or module.
    pub name: String,
    /// Where the name stands.
    pub position: Position,
    /// Linking directive.
    pub linkage: Linkage,
    /// The state space.
    pub space: StateSpace,
    /// The type of one component of one element.
    pub ty: Type,
    /// Components per element: 1, 2, 4 or 8 (`.v2`, `.v4`, `.v8`).
    pub vector: u8,
    /// Array dimensions, outermost first; empty for a scalar. The first is 0 when written `[]`.
    pub dimensions: Vec<u64>,
    /// `.align`, in bytes; `None` means the size of one element.
    pub alignment: Option<u32>,
    /// `.ptr` hint of a kernel parameter.
    pub pointer: Option<PointerHint>,
    /// The initial value; `None` means zero for `.global` and `.const`, unknown elsewhere.
    pub initial: Option<Initial>,
    /// `.attribute(...)`, as text.
    pub attributes: Vec<String>,
}

impl Variable {
    /// Bytes of one element (all its vector components).
    pub fn element_bytes(&self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.vector)
    }

    /// Bytes of the whole variable; 0 for an unsized `[]`. Saturates at `u64::MAX`.
    pub fn size_bytes(&self) -> u64 {
        let elements = self.dimensions.iter().fold(1_u64, |total, &n| total.saturating_mul(n));
        elements.saturating_mul(self.element_bytes())
    }

    /// The alignment in force, in bytes: `.align`, or the size of one element.
    pub fn alignment_bytes(&self) -> u64 {
        self.alignment.map_or_else(|| self.element_bytes().max(1), u64::from)
    }

    /// Whether the size is left open, as for dynamic shared memory (`extern .shared .b8 s[];`).
    pub fn is_unsized(&self) -> bool {
        self.dimensions.first() == Some(&0)
    }
}

/// `.ptr` on a kernel parameter: what the pointer points at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointerHint {
    /// The space pointed at; `None` is generic.
    pub space: Option<StateSpace>,
    /// The alignment promised, in bytes.
    pub alignment: Option<u32>,
}

/// The initial value of a variable. Bytes past the end of `bytes` are zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Initial {
    /// The bytes, little-endian; places of `references` hold zero.
    pub bytes: Vec<u8>,
    /// Addresses that a loader fills in.
    pub references: Vec<Reference>,
}

/// An address inside an initial value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Byte offset inside the variable.
    pub offset: u64,
    /// Bytes to fill: the element size.
    pub width: u8,
    /// Whose address.
    pub symbol: Symbol,
    /// Added to the address.
    pub addend: i64,
    /// `generic(symbol)`: the generic address rather than the one inside its space.
    pub generic: bool,
    /// `0xFF00(symbol)`: the byte of the address that is taken, from the mask; `None` is all.
    pub mask: Option<u64>,
}

/// A resolved name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// Index into [`Module::globals`].
    Global(u32),
    /// Index into [`Function::locals`].
    Local(u32),
    /// Index into [`Function::params`].
    Parameter(u32),
    /// Index into [`Function::returns`].
    Return(u32),
    /// A function.
    Function(FunctionId),
}

/// `@%p` or `@!%p` before an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guard {
    /// A predicate register.
    pub register: RegisterId,
    /// `!`: runs where the predicate is false.
    pub negated: bool,
}

/// `.loc`: the line of the source language that an instruction came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SourceLine {
    /// The number of a [`Module::files`] entry.
    pub file: u32,
    /// The line, from 1.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// One instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// Where it starts in the PTX text.
    pub position: Position,
    /// The predicate that guards it.
    pub guard: Option<Guard>,
    /// The decoded opcode, shared by all instructions with the same spelling.
    pub opcode: Arc<Opcode>,
    /// The operands, destination first.
    ///
    /// `call` always has four: returned values ([`Operand::List`]), callee ([`Operand::Symbol`] or
    /// [`Operand::Register`]), arguments ([`Operand::List`]), and prototype or target list
    /// ([`Operand::Prototype`], [`Operand::Targets`] or [`Operand::Sink`] when there is none).
    pub operands: Vec<Operand>,
    /// The `.loc` in force.
    pub source: Option<SourceLine>,
}

impl Instruction {
    /// The operand that the instruction writes, if any: a register, a vector, a pair, a sink, or
    /// the list of returned values of a `call`.
    pub fn destination(&self) -> Option<&Operand> {
        let first = self.operands.first()?;
        let written = self.opcode.writes || self.opcode.base == Base::Call;
        (written && !matches!(first, Operand::Address(_))).then_some(first)
    }

    /// The operands that the instruction reads: all but the destination.
    pub fn sources(&self) -> &[Operand] {
        let skipped = usize::from(self.destination().is_some());
        self.operands.get(skipped..).unwrap_or(&[])
    }
}

impl Operand {
    /// Calls back with every register in the operand, bases of addresses included.
    pub fn for_each_register(&self, see: &mut impl FnMut(RegisterId)) {
        match self {
            Operand::Register(id) | Operand::Not(id) => see(*id),
            Operand::Pair(first, second) => first.iter().chain(second).for_each(|id| see(*id)),
            Operand::Address(address) => address.register().into_iter().for_each(see),
            Operand::Tensor(address, parts) => {
                address.register().into_iter().for_each(&mut *see);
                for part in parts {
                    part.for_each_register(see);
                }
            }
            Operand::Vector(parts) | Operand::List(parts) => {
                for part in parts {
                    part.for_each_register(see);
                }
            }
            Operand::Immediate(_)
            | Operand::Float32(_)
            | Operand::Float64(_)
            | Operand::Sink
            | Operand::Label(_)
            | Operand::Symbol(..)
            | Operand::Special(..)
            | Operand::Prototype(_)
            | Operand::Targets(_) => {}
        }
    }
}

impl Address {
    /// The register that the address starts from, if any.
    pub fn register(&self) -> Option<RegisterId> {
        match self.base {
            AddressBase::Register(id) => Some(id),
            AddressBase::Variable(_) | AddressBase::None => None,
        }
    }
}

/// An operand (ISA 6).
#[derive(Clone, PartialEq, Debug)]
pub enum Operand {
    /// A register.
    Register(RegisterId),
    /// `!%p`: a predicate register, inverted.
    Not(RegisterId),
    /// An integer constant, sign-extended to 64 bits. Predicate constants are 0 and 1.
    Immediate(u64),
    /// `0f3F800000`: the bits of an f32 constant.
    Float32(u32),
    /// `0d3FF0000000000000` or `1.0`: the bits of an f64 constant.
    Float64(u64),
    /// `[base + offset]`.
    Address(Address),
    /// `[map, {c0, c1}]`: an address and coordinates (or other operands) inside one bracket.
    Tensor(Address, Vec<Operand>),
    /// `{a, b, ...}`.
    Vector(Vec<Operand>),
    /// `a|b`: two destinations; `None` is a sink `_`.
    Pair(Option<RegisterId>, Option<RegisterId>),
    /// `_`: a destination that is thrown away.
    Sink,
    /// A branch target: index into [`Function::body`] (`body.len()` is the end).
    Label(u32),
    /// The address of a symbol plus an offset, as in `mov.u64 %rd1, table + 8`.
    Symbol(Symbol, i64),
    /// A special register; the axis is set for the vector ones such as `%tid.x`.
    Special(SpecialRegister, Option<Axis>),
    /// `(a, b)`: the values or arguments of a `call`.
    List(Vec<Operand>),
    /// Index into [`Function::prototypes`].
    Prototype(u32),
    /// Index into [`Function::targets`].
    Targets(u32),
}

/// `[base + offset]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    /// What the address starts from.
    pub base: AddressBase,
    /// Bytes added.
    pub offset: i64,
}

/// What an [`Address`] starts from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddressBase {
    /// A register that holds an address.
    Register(RegisterId),
    /// A variable.
    Variable(Symbol),
    /// Nothing: the offset is the address.
    None,
}
