//! What results say: their digest without NaN payloads, their errors, their differences.

use assay_ptx::Type;

use crate::bounds;
use crate::program::Program;
use crate::values::{layout, parts};

/// A result with every NaN in it replaced by one and the same.
pub fn canonical(ty: Type, word: u64) -> u64 {
    if let Some((part, count)) = parts(ty) {
        let mask = u64::MAX >> (64 - part.bits());
        return (0..count).fold(0, |sum, index| {
            let shift = index * part.bits();
            sum | canonical(part, word >> shift & mask) << shift
        });
    }
    let Some((exponent, mantissa)) = layout(ty) else { return word };
    let top = (1 << exponent) - 1;
    let (field, rest) = (word >> mantissa & top, word & ((1 << mantissa) - 1));
    // e4m3 has no infinities: its one NaN has all bits set.
    let nan = if ty == Type::E4m3 { rest == 7 } else { rest != 0 };
    if field == top && nan { (top << mantissa) | ((1 << mantissa) - 1) } else { word }
}

/// A digest of results, NaN payloads left out: any change of any other bit changes it.
pub fn digest(program: &Program, results: &[u64]) -> u64 {
    let mut state = 0x243f_6a88_85a3_08d3_u64;
    for row in results.chunks(program.outputs.len().max(1)) {
        for (&word, &ty) in row.iter().zip(&program.outputs) {
            state = mixed(state ^ canonical(ty, word));
        }
    }
    state
}

/// A bijection of words that spreads every bit (the finaliser of `SplitMix64`, after a step).
pub(crate) fn mixed(word: u64) -> u64 {
    let mut x = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The largest error of an approximate instruction as a part of its bound, and the cases for
/// which the ISA states none.
pub fn worst(program: &Program, inputs: &[u64], results: &[u64]) -> (f64, usize) {
    let cases = inputs.chunks(program.inputs.len().max(1)).zip(results);
    let mut worst = 0.0_f64;
    let mut unstated = 0;
    for (operands, &got) in cases {
        match bounds::error(&program.opcode, operands, got) {
            Some(error) => worst = worst.max(error),
            None => unstated += 1,
        }
    }
    (worst, unstated)
}

/// Two devices' results of one program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// Cases in which a NaN has another payload or sign, and nothing else differs.
    pub nan_payloads: usize,
    /// Cases that differ in anything else.
    pub differing: usize,
    /// The first few of them: operands, first device's results, second device's.
    pub examples: Vec<Example>,
}

/// One case in which two devices differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// The operands.
    pub operands: Vec<u64>,
    /// The results of the first device.
    pub first: Vec<u64>,
    /// The results of the second device.
    pub second: Vec<u64>,
}

/// Examples that are kept.
const KEPT: usize = 3;

/// Compares two devices' results.
pub fn compare(program: &Program, inputs: &[u64], first: &[u64], second: &[u64]) -> Comparison {
    let width = program.outputs.len().max(1);
    let operands = inputs.chunks(program.inputs.len().max(1));
    let mut comparison = Comparison::default();
    for ((operands, a), b) in operands.zip(first.chunks(width)).zip(second.chunks(width)) {
        if a == b {
            continue;
        }
        let same = program.outputs.iter().zip(a.iter().zip(b));
        let mut same = same.map(|(&ty, (&a, &b))| canonical(ty, a) == canonical(ty, b));
        if same.all(|same| same) {
            comparison.nan_payloads += 1;
            continue;
        }
        comparison.differing += 1;
        if comparison.examples.len() < KEPT {
            let (operands, first, second) = (operands.to_vec(), a.to_vec(), b.to_vec());
            comparison.examples.push(Example { operands, first, second });
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_payloads_and_signs_do_not_count_and_everything_else_does() {
        assert_eq!(canonical(Type::F32, 0xffc0_0001), canonical(Type::F32, 0x7f80_0001));
        assert_ne!(canonical(Type::F32, 0x7f80_0000), canonical(Type::F32, 0x7f80_0001));
        assert_ne!(canonical(Type::F32, 0), canonical(Type::F32, 0x8000_0000));
        assert_eq!(canonical(Type::F16x2, 0xfe01_3c00), canonical(Type::F16x2, 0x7c01_3c00));
        assert_eq!(canonical(Type::E4m3x2, 0x7f7e), 0x7f7e);
        assert_eq!(canonical(Type::E4m3x2, 0xff7e), 0x7f7e);
        assert_eq!(canonical(Type::B32, 0xffc0_0001), 0xffc0_0001);
    }
}
