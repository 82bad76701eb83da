//! The integers of a comparison: exact, and the same in whatever order they are added.

use assay_num::Class;

/// Elements that are summed side by side, each lane by itself, before lanes are added.
pub const LANES: usize = 512;

/// Elements whose sums are one term of the tree over the whole tensor.
pub const BLOCK: usize = 32 * LANES;

/// Half octaves of errors that are told apart.
pub(crate) const HALVES: usize = 256;

/// The half octave that bin 0 stands for: errors from `2^-100`, whose exponent is biased by 1023.
/// A bin holds errors from `2^e` or `1.5 * 2^e` up to the next of these; the first and the last bin
/// hold also what lies beyond.
pub(crate) const FIRST_HALF: i32 = 2 * (1023 - 100);

/// Everything that is counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Elements compared.
    pub elements: u64,
    /// Pairs of classes, the reference's first: finite, NaN, +Inf, -Inf. The pair of two finite
    /// ones is what the others leave of `elements`.
    pub classes: [[u64; 4]; 4],
    /// Distances of finite pairs by their number of bits.
    pub histogram: [u64; 65],
    /// The sum of all distances.
    pub ulp_sum: u128,
    /// The sum of those of candidates above their reference.
    pub ulp_sum_above: u128,
    /// Candidates above their reference.
    pub above: u64,
    /// Zeros whose sign differs.
    pub zero_signs: u64,
    /// Candidates that are zero where the reference is not.
    pub zeroed: u64,
    /// Finite pairs outside the tolerance.
    pub outside: u64,
    /// References in whose place a zero would lie outside the tolerance.
    pub zero_would_fail: u64,
    /// Errors that are not zero, by half octaves from `2^-100` on.
    pub halves: [u64; HALVES],
    /// The largest distance of a finite pair.
    pub max_ulp: u64,
    /// The index of the first element that is not identical.
    pub first_different: Option<u64>,
    /// The index of the first element outside the tolerance or of another class.
    pub first_outside: Option<u64>,
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            elements: 0,
            classes: [[0; 4]; 4],
            histogram: [0; 65],
            ulp_sum: 0,
            ulp_sum_above: 0,
            above: 0,
            zero_signs: 0,
            zeroed: 0,
            outside: 0,
            zero_would_fail: 0,
            halves: [0; HALVES],
            max_ulp: 0,
            first_different: None,
            first_outside: None,
        }
    }
}

impl Counts {
    /// Adds the counts of other elements.
    pub fn merge(&mut self, other: &Counts) {
        self.elements += other.elements;
        for (mine, theirs) in self.classes.iter_mut().flatten().zip(other.classes.iter().flatten())
        {
            *mine += theirs;
        }
        add(&mut self.histogram, &other.histogram);
        add(&mut self.halves, &other.halves);
        self.ulp_sum += other.ulp_sum;
        self.ulp_sum_above += other.ulp_sum_above;
        self.above += other.above;
        self.zero_signs += other.zero_signs;
        self.zeroed += other.zeroed;
        self.outside += other.outside;
        self.zero_would_fail += other.zero_would_fail;
        self.max_ulp = self.max_ulp.max(other.max_ulp);
        self.first_different = first(self.first_different, other.first_different);
        self.first_outside = first(self.first_outside, other.first_outside);
    }

    /// Pairs of which one at least is not finite.
    #[must_use]
    pub fn not_finite(&self) -> u64 {
        self.classes.iter().flatten().sum::<u64>() - self.classes[0][0]
    }

    /// Pairs of finite values.
    #[must_use]
    pub fn finite(&self) -> u64 {
        self.elements - self.not_finite()
    }

    /// Pairs whose classes differ.
    #[must_use]
    pub fn class_mismatches(&self) -> u64 {
        let pairs = (0..4).flat_map(|r| (0..4).map(move |c| (r, c)));
        pairs.filter(|(r, c)| r != c).map(|(r, c)| self.classes[r][c]).sum()
    }

    /// Pairs of NaN and NaN.
    #[must_use]
    pub fn nan_pairs(&self) -> u64 {
        self.classes[1][1]
    }

    /// Elements of equal value and, for zeros, equal sign.
    #[must_use]
    pub fn identical(&self) -> u64 {
        self.histogram[0] - self.zero_signs + self.classes[2][2] + self.classes[3][3]
    }

    /// Finite candidates below their reference.
    #[must_use]
    pub fn below(&self) -> u64 {
        self.finite() - self.histogram[0] - self.above
    }
}

/// The place of a class in [`Counts::classes`].
pub(crate) fn class_index(value: f64) -> usize {
    match Class::of(value) {
        Class::Finite => 0,
        Class::NaN => 1,
        Class::PositiveInfinity => 2,
        Class::NegativeInfinity => 3,
    }
}

/// The words for the places of [`Counts::classes`].
pub(crate) const CLASS_NAMES: [&str; 4] = ["finite", "NaN", "+Inf", "-Inf"];

/// The bin of an error.
pub(crate) fn half_octave(error: f64) -> usize {
    let half = (error.abs().to_bits() >> 51) as i32;
    (half - FIRST_HALF).clamp(0, HALVES as i32 - 1) as usize
}

/// The least error of a bin but the first.
pub(crate) fn half_octave_start(bin: usize) -> f64 {
    let half = (bin as i32 + FIRST_HALF) as u64;
    f64::from_bits(half << 51)
}

/// The smaller of two indices, where there are any.
pub(crate) fn first(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

fn add<const N: usize>(mine: &mut [u64; N], theirs: &[u64; N]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine += theirs;
    }
}
