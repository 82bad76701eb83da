//! Comparisons and selection (ISA 9.7.6) on one lane.

use super::float::{Flushed, Single};
use super::half::{Half, Opened};
use crate::execute::frame::{Element, lanes};

/// What comparisons need; NaN compares false with everything, as in Rust.
pub(crate) trait Comparable: Element {
    type Value: PartialOrd + Copy;
    fn value(self) -> Self::Value;
    fn unordered(self) -> bool;
}

macro_rules! comparable_integers {
    ($($ty:ident)*) => {
        $(impl Comparable for $ty {
            type Value = $ty;
            #[inline(always)]
            fn value(self) -> $ty {
                self
            }
            #[inline(always)]
            fn unordered(self) -> bool {
                false
            }
        })*
    };
}

comparable_integers!(u16 i16 u32 i32 u64 i64);

macro_rules! comparable_floats {
    ($($ty:ident)*) => {
        $(impl Comparable for $ty {
            type Value = $ty;
            #[inline(always)]
            fn value(self) -> $ty {
                self
            }
            #[inline(always)]
            fn unordered(self) -> bool {
                self.is_nan()
            }
        })*
    };
}

comparable_floats!(f32 f64);

impl Comparable for Flushed {
    type Value = f32;
    #[inline(always)]
    fn value(self) -> f32 {
        self.get()
    }
    #[inline(always)]
    fn unordered(self) -> bool {
        self.get().is_nan()
    }
}

impl<H: Half, const HIGH: bool, const FTZ: bool> Comparable for Opened<H, HIGH, FTZ> {
    type Value = f32;
    #[inline(always)]
    fn value(self) -> f32 {
        self.0
    }
    #[inline(always)]
    fn unordered(self) -> bool {
        self.0.is_nan()
    }
}

lanes! {
    /// `.eq`
    Equal<T: Comparable>(a: T, b: T) -> bool { a.value() == b.value() }
    /// `.ne`: false on NaN
    Differ<T: Comparable>(a: T, b: T) -> bool { a.value() < b.value() || a.value() > b.value() }
    /// `.lt`
    Less<T: Comparable>(a: T, b: T) -> bool { a.value() < b.value() }
    /// `.le`
    LessOrEqual<T: Comparable>(a: T, b: T) -> bool { a.value() <= b.value() }
    /// `.gt`
    Greater<T: Comparable>(a: T, b: T) -> bool { a.value() > b.value() }
    /// `.ge`
    GreaterOrEqual<T: Comparable>(a: T, b: T) -> bool { a.value() >= b.value() }
    /// `.equ`
    EqualOrNan<T: Comparable>(a: T, b: T) -> bool {
        a.value() == b.value() || a.unordered() || b.unordered()
    }
    /// `.neu`, and `.ne` of integers
    DifferOrNan<T: Comparable>(a: T, b: T) -> bool { a.value() != b.value() }
    /// `.ltu`
    LessOrNan<T: Comparable>(a: T, b: T) -> bool {
        a.value() < b.value() || a.unordered() || b.unordered()
    }
    /// `.leu`
    LessOrEqualOrNan<T: Comparable>(a: T, b: T) -> bool {
        a.value() <= b.value() || a.unordered() || b.unordered()
    }
    /// `.gtu`
    GreaterOrNan<T: Comparable>(a: T, b: T) -> bool {
        a.value() > b.value() || a.unordered() || b.unordered()
    }
    /// `.geu`
    GreaterOrEqualOrNan<T: Comparable>(a: T, b: T) -> bool {
        a.value() >= b.value() || a.unordered() || b.unordered()
    }
    /// `.num`
    Ordered<T: Comparable>(a: T, b: T) -> bool { !a.unordered() && !b.unordered() }
    /// `.nan`
    Unordered<T: Comparable>(a: T, b: T) -> bool { a.unordered() || b.unordered() }

    /// `slct.*.s32`
    Select32S32(a: u32, b: u32, c: i32) -> u32 { if c >= 0 { a } else { b } }
    /// `slct.*.f32`; NaN selects `b`
    Select32F32<T: Single>(a: u32, b: u32, c: T) -> u32 { if c.get() >= 0.0 { a } else { b } }
    /// `slct.*.s32` of 64 bits
    Select64S32(a: u64, b: u64, c: i32) -> u64 { if c >= 0 { a } else { b } }
    /// `slct.*.f32` of 64 bits
    Select64F32<T: Single>(a: u64, b: u64, c: T) -> u64 { if c.get() >= 0.0 { a } else { b } }
}
