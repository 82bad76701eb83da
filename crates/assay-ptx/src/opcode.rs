//! A decoded opcode: base x types x spaces x an order-free set of modifiers.
//!
//! `atom.global.gpu.acq_rel.add.f32` and `atom.acq_rel.gpu.global.add.f32` decode to the same
//! parts and differ only in [`Opcode::text`]. What depends on order stays in order: types (`cvt`
//! has destination then source), spaces (`cp.async.ca.shared.global`: destination then source) and
//! matrix layouts (`mma ... .row.col`: A then B).

use crate::decode::decode;
use crate::error::ParseError;
use crate::module::Position;

pub use crate::base::Base;
pub use crate::modifier::{Group, Modifier, Modifiers};
pub use crate::types::{Layout, Shape, StateSpace, Type};

/// A decoded opcode. Instructions of one spelling share one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opcode {
    /// The operation.
    pub base: Base,
    /// The types in the order written; usually destination first.
    pub types: Vec<Type>,
    /// The state spaces in the order written; empty is generic. Destination first.
    pub spaces: Vec<StateSpace>,
    /// The matrix shape, such as `m16n8k16`.
    pub shape: Option<Shape>,
    /// Matrix layouts in the order written: A then B for `mma`, one for `wmma.load`.
    pub layouts: Vec<Layout>,
    /// Components moved at once: 1, or 2, 4, 8 for `.v2`, `.v4`, `.v8`.
    pub vector: u8,
    /// Everything else.
    pub modifiers: Modifiers,
    /// Whether the first operand is a destination. Where PTX lets the destination be left out
    /// (`mbarrier.arrive`), an address that stands first is none:
    /// [`Instruction::destination`](crate::Instruction::destination) knows.
    pub writes: bool,
    /// The spelling in the source, such as `ld.global.v4.f32`.
    pub text: String,
}

impl Opcode {
    /// Decodes a spelling such as `atom.global.gpu.acq_rel.add.f32`.
    ///
    /// # Errors
    /// A base that the table does not have, a part that its rows do not list, or parts that do not
    /// go together; the column is that of the guilty part.
    pub fn parse(text: &str) -> Result<Opcode, ParseError> {
        decode(text).map(|(opcode, _)| opcode).map_err(|error| {
            let position = Position { line: 1, column: error.offset as u32 + 1 };
            let mut shown = ParseError::at(text, position, error.message);
            shown.hint = error.hint;
            shown
        })
    }

    /// Whether a modifier is written.
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers.has(modifier)
    }

    /// The comparison of `set` and `setp`; `.lo` and `.hi` are the unsigned ones there.
    pub fn comparison(&self) -> Option<Modifier> {
        let compares = matches!(self.base, Base::Set | Base::Setp | Base::Vset2 | Base::Vset4);
        let halves = [Modifier::Lo, Modifier::Hi];
        let half = halves.into_iter().find(|&modifier| compares && self.has(modifier));
        half.or_else(|| self.modifiers.of_group(Group::Comparison))
    }

    /// The first type, if any: the destination's, or the only one.
    pub fn ty(&self) -> Option<Type> {
        self.types.first().copied()
    }

    /// The last type, if any: the source's where there are two.
    pub fn source_type(&self) -> Option<Type> {
        self.types.last().copied()
    }

    /// The first state space; [`StateSpace::Generic`] when none is written.
    pub fn space(&self) -> StateSpace {
        self.spaces.first().copied().unwrap_or(StateSpace::Generic)
    }
}
