//! The SIMD video instructions (ISA 9.7.17): two or four small integers in a word.
//!
//! No compiler emits them but for `vabsdiff4` and its like behind intrinsics, so one lane function
//! does them all and takes the operation as data.

use crate::execute::frame::lanes;

/// What happens to each pair of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VideoOperation {
    Add,
    Subtract,
    Average,
    Distance,
    Minimum,
    Maximum,
    Equal,
    Differ,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl VideoOperation {
    const ALL: [VideoOperation; 12] = [
        VideoOperation::Add,
        VideoOperation::Subtract,
        VideoOperation::Average,
        VideoOperation::Distance,
        VideoOperation::Minimum,
        VideoOperation::Maximum,
        VideoOperation::Equal,
        VideoOperation::Differ,
        VideoOperation::Less,
        VideoOperation::LessOrEqual,
        VideoOperation::Greater,
        VideoOperation::GreaterOrEqual,
    ];

    fn apply(self, a: i32, b: i32) -> i32 {
        match self {
            VideoOperation::Add => a + b,
            VideoOperation::Subtract => a - b,
            // Rounds half away from zero.
            VideoOperation::Average => (a + b + i32::from(a + b >= 0)) >> 1,
            VideoOperation::Distance => (a - b).abs(),
            VideoOperation::Minimum => a.min(b),
            VideoOperation::Maximum => a.max(b),
            VideoOperation::Equal => i32::from(a == b),
            VideoOperation::Differ => i32::from(a != b),
            VideoOperation::Less => i32::from(a < b),
            VideoOperation::LessOrEqual => i32::from(a <= b),
            VideoOperation::Greater => i32::from(a > b),
            VideoOperation::GreaterOrEqual => i32::from(a >= b),
        }
    }
}

/// A SIMD video instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Video {
    pub(crate) operation: VideoOperation,
    /// Bits of a part: 8 or 16.
    pub(crate) bits: u32,
    pub(crate) signed_a: bool,
    pub(crate) signed_b: bool,
    pub(crate) signed_d: bool,
    /// Clamps to the range of the result's type.
    pub(crate) saturates: bool,
    /// Adds all parts and `c` instead of packing them.
    pub(crate) adds: bool,
}

impl Video {
    /// As the immediate of an instruction.
    pub(crate) fn pack(self) -> u64 {
        let flags = [self.signed_a, self.signed_b, self.signed_d, self.saturates, self.adds];
        let flags = flags.iter().enumerate().fold(0, |all, (n, flag)| all | u64::from(*flag) << n);
        self.operation as u64 | u64::from(self.bits) << 8 | flags << 16
    }

    fn unpack(packed: u64) -> Video {
        let flag = |n: u32| packed >> (16 + n) & 1 == 1;
        Video {
            operation: VideoOperation::ALL[packed as usize & 0xff],
            bits: (packed >> 8) as u32 & 0xff,
            signed_a: flag(0),
            signed_b: flag(1),
            signed_d: flag(2),
            saturates: flag(3),
            adds: flag(4),
        }
    }

    fn part(self, word: u32, shift: u32, signed: bool) -> i32 {
        let left = 32 - self.bits;
        let part = word >> shift << left;
        if signed { (part as i32) >> left } else { (part >> left) as i32 }
    }

    fn run(self, a: u32, b: u32, c: u32) -> u32 {
        let mask = (1_u32 << self.bits) - 1;
        let (low, high) = if self.signed_d {
            (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        } else {
            (0, mask as i32)
        };
        let mut result = if self.adds { c } else { 0 };
        for shift in (0..32).step_by(self.bits as usize) {
            let (x, y) = (self.part(a, shift, self.signed_a), self.part(b, shift, self.signed_b));
            let value = self.operation.apply(x, y);
            let value = if self.saturates { value.clamp(low, high) } else { value };
            result = if self.adds {
                result.wrapping_add(value as u32)
            } else {
                result | (value as u32 & mask) << shift
            };
        }
        result
    }
}

lanes! {
    once:
    /// Any SIMD video instruction
    VideoLane([parameters] a: u32, b: u32, c: u32) -> u32 {
        Video::unpack(parameters.immediate).run(a, b, c)
    }
}
