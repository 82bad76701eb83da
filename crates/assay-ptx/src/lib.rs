//! PTX text to and from a decoded, verified module.
//!
//! A base opcode is one row of a table; its modifiers may come in any order, and one that the row
//! does not list is an error with line and column, never ignored.

pub mod base;
mod call;
mod check;
pub mod control_flow;
mod decode;
mod error;
pub mod forms;
mod fragment;
mod hash;
mod lexer;
mod literal;
pub mod liveness;
pub mod modifier;
pub mod module;
pub mod opcode;
mod parser;
pub mod print;
#[cfg(test)]
mod row_tests;
pub mod special;
mod table;
pub mod types;
pub mod verify;

pub use base::Base;
pub use error::ParseError;
pub use modifier::{Group, Modifier, Modifiers};
pub use module::{
    Address, AddressBase, Function, FunctionId, FunctionKind, Guard, Initial, Instruction, Label,
    Linkage, Module, Operand, PointerHint, Position, Prototype, Reference, Register, RegisterId,
    Section, SourceLine, Symbol, TargetList, Targets, Tuning, Variable,
};
pub use opcode::Opcode;
pub use parser::parse;
pub use print::print;
pub use special::{Axis, SpecialRegister};
pub use types::{Layout, Shape, StateSpace, Type, TypeKind};
pub use verify::{VerifyError, verify};
