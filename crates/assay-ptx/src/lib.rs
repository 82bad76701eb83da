//! PTX text to and from a decoded, verified module.
//!
//! A base opcode is one row of a table; its modifiers may come in any order, and one that the row
//! does not list is an error with line and column, never ignored.

pub mod base;
mod error;
pub mod modifier;
pub mod module;
pub mod opcode;
pub mod special;
pub mod types;

pub use base::Base;
pub use error::ParseError;
pub use modifier::{Group, Modifier, Modifiers};
pub use module::{
    Address, AddressBase, Function, FunctionId, FunctionKind, Guard, Initial, Instruction, Label,
    Linkage, Module, Operand, PointerHint, Position, Prototype, Reference, Register, RegisterId,
    Section, SourceLine, Symbol, TargetList, Targets, Tuning, Variable,
};
pub use opcode::Opcode;
pub use special::{Axis, SpecialRegister};
pub use types::{Layout, Shape, StateSpace, Type, TypeKind};

/// Parses PTX text into a verified module.
///
/// # Errors
/// The first thing in the text that is no PTX or that the tables of this crate do not know.
pub fn parse(source: &str) -> Result<Module, ParseError> {
    Err(ParseError::at(source, Position::default(), "the parser is being built".to_string()))
}
