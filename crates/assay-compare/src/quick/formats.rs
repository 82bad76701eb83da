//! What the loops ask of formats whose values `f32` holds.

use super::Found;
use super::steps::{PART, near_halves, near_words};
use crate::counts::LANES;
use crate::row::{f32_code, short_code};

/// The bytes of an element.
pub(super) trait Word: Copy {
    /// The words of a whole row.
    fn row(bytes: &[u8]) -> Option<&[Self; LANES]>;
}

impl<const BYTES: usize> Word for [u8; BYTES] {
    #[inline(always)]
    fn row(bytes: &[u8]) -> Option<&[Self; LANES]> {
        bytes.as_chunks::<BYTES>().0.first_chunk()
    }
}

/// A format whose values `f32` holds.
pub(super) trait Narrow {
    type Word: Word;

    /// The value, if it is finite; the bits of two are equal if the elements are.
    fn value(word: Self::Word) -> f32;

    /// A number that grows by one from each value to the next; both zeros have one.
    fn code(word: Self::Word) -> i32;

    /// Whether everything is finite that [`Narrow::value`] makes so.
    #[inline(always)]
    fn finite(_: &[Self::Word; LANES]) -> bool {
        true
    }

    /// The distances of a part whose pairs are of one sign, if it is such and there is a faster way
    /// than by codes.
    #[inline(always)]
    fn near(_: Part<'_, Self>, _: &mut [u8; PART], _: &mut Found) -> Option<()> {
        None
    }
}

/// The words of a part of both rows.
pub(super) type Part<'a, F> = (&'a [<F as Narrow>::Word; PART], &'a [<F as Narrow>::Word; PART]);

/// The words of both rows.
pub(super) type Pair<'a, F> = (&'a [<F as Narrow>::Word; LANES], &'a [<F as Narrow>::Word; LANES]);

pub(super) struct F32;
pub(super) struct Tf32;
pub(super) struct F16;
pub(super) struct Bf16;
pub(super) struct Int16<const SIGNED: bool>;

/// A format of at most 8 bits, whose elements were looked up in its [`crate::table`].
pub(super) struct Small;

impl Narrow for F32 {
    type Word = [u8; 4];

    #[inline(always)]
    fn value(word: [u8; 4]) -> f32 {
        f32::from_le_bytes(word)
    }

    #[inline(always)]
    fn code(word: [u8; 4]) -> i32 {
        f32_code(u32::from_le_bytes(word))
    }

    #[inline(always)]
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()> {
        let bits_of = u32::from_le_bytes;
        near_words(|at| (bits_of(pair.0[at]), bits_of(pair.1[at])), 0, bits, found)
    }
}

impl Tf32 {
    #[inline(always)]
    fn bits(word: [u8; 4]) -> u32 {
        u32::from_le_bytes(word) & !0x1fff
    }
}

impl Narrow for Tf32 {
    type Word = [u8; 4];

    #[inline(always)]
    fn value(word: [u8; 4]) -> f32 {
        f32::from_bits(Self::bits(word))
    }

    #[inline(always)]
    fn code(word: [u8; 4]) -> i32 {
        f32_code(Self::bits(word)) >> 13
    }

    #[inline(always)]
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()> {
        near_words(|at| (Self::bits(pair.0[at]), Self::bits(pair.1[at])), 13, bits, found)
    }
}

impl Narrow for F16 {
    type Word = [u8; 2];

    #[inline(always)]
    fn value(word: [u8; 2]) -> f32 {
        // Sign and exponent in the places of an f32's; the exponent is 112 too small, of normals
        // and subnormals alike.
        let wide = (i32::from(i16::from_le_bytes(word)) << 13) as u32 & 0x8fff_e000;
        f32::from_bits(wide) * f32::from_bits((127 + 112) << 23)
    }

    #[inline(always)]
    fn code(word: [u8; 2]) -> i32 {
        short_code(u16::from_le_bytes(word))
    }

    #[inline(always)]
    fn finite(words: &[[u8; 2]; LANES]) -> bool {
        let magnitudes = words.iter().map(|&word| u16::from_le_bytes(word) & 0x7fff);
        magnitudes.fold(0, u16::max) < 0x7c00
    }

    #[inline(always)]
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()> {
        let bits_of = u16::from_le_bytes;
        near_halves(|at| (bits_of(pair.0[at]), bits_of(pair.1[at])), bits, found)
    }
}

impl Narrow for Bf16 {
    type Word = [u8; 2];

    #[inline(always)]
    fn value(word: [u8; 2]) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes(word)) << 16)
    }

    #[inline(always)]
    fn code(word: [u8; 2]) -> i32 {
        short_code(u16::from_le_bytes(word))
    }

    #[inline(always)]
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()> {
        F16::near(pair, bits, found)
    }
}

impl<const SIGNED: bool> Int16<SIGNED> {
    #[inline(always)]
    fn integer(word: [u8; 2]) -> i32 {
        if SIGNED { i16::from_le_bytes(word).into() } else { u16::from_le_bytes(word).into() }
    }
}

impl<const SIGNED: bool> Narrow for Int16<SIGNED> {
    type Word = [u8; 2];

    #[inline(always)]
    fn value(word: [u8; 2]) -> f32 {
        Self::integer(word) as f32
    }

    #[inline(always)]
    fn code(word: [u8; 2]) -> i32 {
        Self::integer(word)
    }
}

impl Narrow for Small {
    type Word = [u8; 8];

    #[inline(always)]
    fn value([a, b, c, d, ..]: [u8; 8]) -> f32 {
        f32::from_le_bytes([a, b, c, d])
    }

    #[inline(always)]
    fn code([.., a, b, c, d]: [u8; 8]) -> i32 {
        i32::from_le_bytes([a, b, c, d])
    }
}
