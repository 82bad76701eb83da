//! Tiles of `mma` and `wgmma`, by the hundred thousand: programs whose operands are parts of whole
//! matrices.
//!
//! Each form runs in five classes of values, in chunks that all start from the seed. A record
//! keeps a digest for each chunk: every bit counts, those of NaNs too.

use assay_num::random::SplitMix64;
use assay_ptx::forms::{Form, FormOperandKind, each_form};
use assay_ptx::{Base, Group, Layout, Modifier, Opcode, Type};

use crate::outcome::mixed;
use crate::program::{Program, program};
use crate::values::layout;
use crate::wgmma;

/// Threads of a chunk: 1,024 tiles of a warp, or 256 of four warps.
pub const CHUNK_THREADS: usize = 1024 * 32;

/// What the values of a tile are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Near one.
    Normal,
    /// Of every exponent.
    Wide,
    /// Products of neighbours along the depth cancel, or nearly.
    Cancelling,
    /// Subnormal numbers and the least normal ones, beside others.
    Subnormal,
    /// Zeros, infinities, NaNs and largest numbers among others.
    Special,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 5] =
        [Class::Normal, Class::Wide, Class::Cancelling, Class::Subnormal, Class::Special];

    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            Class::Normal => "normal",
            Class::Wide => "wide",
            Class::Cancelling => "cancelling",
            Class::Subnormal => "subnormal",
            Class::Special => "special",
        }
    }
}

/// Which matrix a word is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The accumulators.
    C,
    /// Which elements of a sparse A are kept; the type is A's.
    Metadata,
}

/// What an operand of a program holds: elements of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    /// The matrix.
    pub part: Part,
    /// The type of an element.
    pub ty: Type,
    /// The place among the registers of the matrix.
    pub register: usize,
}

/// A program that multiplies one tile a warp, or a warpgroup.
#[derive(Clone, Debug)]
pub struct TileForm {
    /// The program; a case for each thread.
    pub program: Program,
    /// What each of its operands holds.
    pub contents: Vec<Content>,
    /// Threads that share a tile.
    pub lanes: usize,
}

impl TileForm {
    /// Tiles of a chunk.
    pub fn chunk_tiles(&self) -> usize {
        CHUNK_THREADS / self.lanes
    }

    /// The operands of a chunk, thread by thread: a function of all that is given.
    pub fn operands(&self, class: Class, chunk: usize, seed: u64) -> Vec<u64> {
        let name = format!("{} {} {chunk}", self.program.name, class.name());
        let mut random = SplitMix64::new(seed).fork(&name);
        let mut words = Vec::with_capacity(CHUNK_THREADS * self.contents.len());
        for _ in 0..CHUNK_THREADS {
            let start = words.len();
            for content in &self.contents {
                let earlier = self.partner(*content).map(|place| words[start + place]);
                words.push(word(*content, class, earlier, &mut random));
            }
        }
        words
    }

    /// The operand that holds the neighbours along the depth, where they are not in the same word.
    fn partner(&self, content: Content) -> Option<usize> {
        let count = self.contents.iter().filter(|other| other.part == content.part).count();
        let step = count / 2;
        let whole = content.ty.bits() == 32 && content.part != Part::C && content.register >= step;
        let register = content.register.checked_sub(step).filter(|_| whole && step > 0)?;
        let other = Content { register, ..content };
        self.contents.iter().position(|content| *content == other)
    }
}

/// All forms that have tiles: `mma` and `wgmma` of floats and of signed integers, dense and sparse.
pub fn tile_forms() -> Vec<TileForm> {
    let mut forms = Vec::new();
    each_form(Base::Mma, wanted, |form| {
        let Ok(plain) = program(&form) else { return };
        let plain = compilers_order(Program { cases: CHUNK_THREADS, ..plain });
        let contents = contents(&form);
        if let Some(other) = last_selector(&form.opcode) {
            let text = plain.text.replacen(", 0;\n", &format!(", {other};\n"), 1);
            let name = format!("{} with selector {other}", plain.name);
            let program = Program { name, text, ..plain.clone() };
            forms.push(TileForm { program, contents: contents.clone(), lanes: 32 });
        }
        forms.push(TileForm { program: plain, contents, lanes: 32 });
    });
    forms.extend(wgmma::tile_forms());
    forms
}

/// Compilers take `.sp` right behind `mma` alone.
fn compilers_order(program: Program) -> Program {
    let own = program.opcode.text.clone();
    let Some(sparsity) = [".sp::ordered_metadata", ".sp"].into_iter().find(|s| own.contains(s))
    else {
        return program;
    };
    let rest = own.replacen(sparsity, "", 1);
    let name = rest.replacen("mma", &format!("mma{sparsity}"), 1);
    Program { text: program.text.replacen(&own, &name, 1), name, ..program }
}

fn sparse(opcode: &Opcode) -> bool {
    opcode.modifiers.of_group(Group::Sparsity).is_some()
}

fn wanted(opcode: &Opcode) -> bool {
    let scaled = [Group::Kind, Group::ScaleVector];
    let plain = !scaled.into_iter().any(|group| opcode.modifiers.of_group(group).is_some());
    let [_, a, b, ..] = *opcode.types.as_slice() else { return false };
    let types = [Type::F16, Type::Bf16, Type::Tf32, Type::S8, Type::E4m3, Type::E5m2];
    let few = !sparse(opcode) || a == b && !opcode.has(Modifier::Satfinite);
    let known =
        types.contains(&a) && types.contains(&b) || sparse(opcode) && a == Type::S4 && a == b;
    plain && few && known && opcode.layouts == [Layout::Row, Layout::Column]
}

/// Another selector than 0 that picks the threads with metadata, where there are some.
fn last_selector(opcode: &Opcode) -> Option<u32> {
    let (shape, a) = (opcode.shape?, *opcode.types.get(1)?);
    let chunk = match a.bits() {
        32 => 2,
        4 => 8,
        _ => 4,
    };
    let threads = u32::from(shape.k) / chunk / 4;
    let last = (4 / threads.max(1)).saturating_sub(1);
    (opcode.has(Modifier::Sparse) && last > 0).then_some(last)
}

/// What the operands of a form hold, in the order in which its program loads them.
fn contents(form: &Form) -> Vec<Content> {
    let parts = [Part::A, Part::B, Part::C, Part::Metadata];
    let sources = form.operands.iter().filter(|operand| !operand.destination);
    let mut contents = Vec::new();
    for ((index, operand), part) in sources.enumerate().zip(parts) {
        if operand.kind == FormOperandKind::Constant {
            continue;
        }
        let place = if part == Part::Metadata { 1 } else { index + 1 };
        let Some(&ty) = form.opcode.types.get(place) else { continue };
        let registers = usize::from(operand.parts.max(1));
        contents.extend((0..registers).map(|register| Content { part, ty, register }));
    }
    contents
}

/// A word of a matrix. `earlier` is the word with the neighbours along the depth.
fn word(content: Content, class: Class, earlier: Option<u64>, random: &mut SplitMix64) -> u64 {
    let Content { part, ty, .. } = content;
    let bits = ty.bits().min(32);
    if part == Part::Metadata {
        return metadata(ty, random);
    }
    let mut word = 0;
    let mut before = earlier;
    for place in 0..32 / bits {
        let paired = class == Class::Cancelling && (earlier.is_some() || place % 2 == 1);
        let element = match (before, layout(ty)) {
            (Some(before), Some((exponent, mantissa))) if paired && part != Part::C => {
                neighbour(part, before, exponent + mantissa, random)
            }
            (_, Some((exponent, mantissa))) => float(content, class, exponent, mantissa, random),
            _ => integer(part, class, bits, random),
        };
        word |= element << (place * bits);
        before = Some(element).filter(|_| earlier.is_none()).or(earlier);
    }
    word
}

/// What cancels with the neighbour: the negative in A, the same in B, now and then a little off.
fn neighbour(part: Part, before: u64, sign: u32, random: &mut SplitMix64) -> u64 {
    let off = u64::from(random.below(4) == 0);
    let flipped = if part == Part::A { before ^ 1 << sign } else { before };
    flipped ^ off
}

fn float(
    content: Content,
    class: Class,
    exponent: u32,
    mantissa: u32,
    random: &mut SplitMix64,
) -> u64 {
    let word = random.next_u64();
    let top = (1_u64 << exponent) - 1;
    let fraction = word & ((1 << mantissa) - 1);
    let draw = word >> 40;
    let near = (top >> 1) + draw % 7 - 3.min(top >> 1);
    let field = match (class, content.part) {
        (Class::Wide, _) => draw % (top + 1),
        (Class::Cancelling, Part::C) => (top >> 1) - (draw % 12).min(top >> 1),
        (Class::Normal | Class::Special | Class::Cancelling, _) => near,
        (Class::Subnormal, Part::B) if !draw.is_multiple_of(4) => (draw >> 2) % (top + 1),
        (Class::Subnormal, _) => draw % 3 / 2,
    };
    let sign = (word >> 63) << (exponent + mantissa);
    let bits = sign | field << mantissa | fraction;
    if class == Class::Special && (word >> 32 & 0xff) < 12 {
        let specials = [0, top << mantissa, top << mantissa | fraction | 1, (top << mantissa) - 1];
        return sign | specials[(word >> 30 & 3) as usize];
    }
    // Only e4m3 has numbers with the largest exponent.
    let highest = if content.ty == Type::E4m3 {
        bits | 1 << (exponent + mantissa) == u64::MAX >> 56
    } else {
        field == top
    };
    if highest { bits ^ 1 << mantissa } else { bits }
}

fn integer(part: Part, class: Class, bits: u32, random: &mut SplitMix64) -> u64 {
    let word = random.next_u64();
    let highest = u64::MAX >> (65 - bits);
    let value = match (class, part) {
        (Class::Wide | Class::Special, Part::C) => {
            (highest ^ (word >> 63 << (bits - 1))) ^ word >> 52
        }
        (Class::Special | Class::Wide, _) if word >> 62 == 0 => highest + (word >> 61 & 1),
        (Class::Subnormal, _) => word % 3,
        _ => word,
    };
    value & (u64::MAX >> (64 - bits))
}

/// Eight fields of which each names two different places, in order.
fn metadata(ty: Type, random: &mut SplitMix64) -> u64 {
    let fields: &[u64] = if ty.bits() == 32 { &[14, 4] } else { &[4, 8, 9, 12, 13, 14] };
    (0..8).fold(0, |word, place| {
        word | fields[random.below(fields.len() as u64) as usize] << (4 * place)
    })
}

/// The digest of a chunk's results.
pub fn chunk_digest(results: &[u64]) -> u64 {
    results.iter().fold(0x1319_8a2e_0370_7344, |state, &word| mixed(state ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_fit_their_programs_and_repeat() {
        let forms = tile_forms();
        assert!(forms.len() > 60, "{}", forms.len());
        for form in &forms {
            assert_eq!(form.contents.len(), form.program.inputs.len(), "{}", form.program.name);
        }
        let first = forms[0].operands(Class::Wide, 3, 1);
        assert_eq!(first, forms[0].operands(Class::Wide, 3, 1));
        assert_ne!(first, forms[0].operands(Class::Wide, 4, 1));
    }

    #[test]
    fn only_the_special_class_has_infinities_and_nans() {
        for form in tile_forms().iter().filter(|form| form.program.name.contains(".e5m2.e5m2.f32"))
        {
            for class in Class::ALL {
                let words = form.operands(class, 0, 1);
                let special = |word: u64| word.to_le_bytes()[..4].iter().any(|b| b & 0x7c == 0x7c);
                let a = words.chunks(form.contents.len()).any(|row| special(row[0]));
                assert_eq!(a, class == Class::Special, "{class:?}");
            }
        }
    }
}
