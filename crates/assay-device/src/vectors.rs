//! Work on this computer's own processor, compiled once more for wider vectors than every
//! processor of its kind has.
//!
//! The results are the same bits: wider registers hold more elements of a loop, and no product is
//! fused with a sum.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "what is compiled for more than the target has is called so")
)]

/// What work may be compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vectors {
    /// What every processor of the target has.
    Baseline,
    /// AVX2 and the bit instructions that came with it (x86-64-v3 but for fused products).
    Avx2,
}

impl Vectors {
    /// The widest that this processor has.
    #[must_use]
    pub fn widest() -> Vectors {
        if Vectors::Avx2.present() { Vectors::Avx2 } else { Vectors::Baseline }
    }

    /// Whether this processor has them.
    #[must_use]
    pub fn present(self) -> bool {
        match self {
            Vectors::Baseline => true,
            Vectors::Avx2 => has_avx2(),
        }
    }

    /// Does work with these vectors, or with the baseline's where this processor lacks them.
    ///
    /// Only what is inlined is compiled for them, so `work` itself, which may stand behind that
    /// attribute as an argument, and its functions want `#[inline(always)]`.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        #[cfg(target_arch = "x86_64")]
        if self == Vectors::Avx2 && has_avx2() {
            // SAFETY: the processor has every feature that the function asks for.
            return unsafe { with_avx2(work) };
        }
        work()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(test)]
mod tests {
    use super::Vectors;

    #[test]
    fn sums_are_the_same_bits_at_every_width() {
        let terms: Vec<f32> = (0..1000).map(|at| 0.1 + at as f32 * 1e-3).collect();
        let sum = || terms.iter().map(|term| term * term + 1e-3).sum::<f32>().to_bits();
        assert_eq!(Vectors::Avx2.run(sum), Vectors::Baseline.run(sum));
        assert!(Vectors::widest().present());
    }
}
