//! How a kernel computes: which divisions and functions it uses, and how long its sums' chains are.

use std::collections::BTreeMap;

use assay_num::Format;

use crate::extent::Extent;

/// How a kernel divides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Division {
    /// Rounded to nearest (`div.rn`).
    #[default]
    Ieee,
    /// `div.approx`: at most 2 ulp for divisors in 2^-126..2^126, 0 above; `1/b` is `rcp.approx`.
    Approx,
    /// `div.full`: at most 2 ulp over the whole range.
    Full,
}

/// How a kernel takes square roots and their reciprocals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Root {
    /// Rounded to nearest.
    #[default]
    Ieee,
    /// `sqrt.approx` and `rsqrt.approx`.
    Approx,
}

/// How a kernel takes exponentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Exponential {
    /// With a correct reduction of the argument, at most 2 ulp (`expf`).
    #[default]
    Reduced,
    /// `ex2.approx(x * log2(e))`, whose error grows with the argument (`__expf`).
    Ex2,
}

/// How a kernel takes hyperbolic tangents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HyperbolicTangent {
    /// At most 2 ulp (`tanhf`).
    #[default]
    Accurate,
    /// `tanh.approx`, relative error 2^-11.
    Approx,
}

/// How tensor cores make a sum of products.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorCores {
    /// What A and B hold: f16, bf16, tf32, e4m3 or e5m2. Factors that it does not hold count as
    /// converted to it.
    pub elements: Format,
    /// Products that one instruction sums: 16 for `m16n8k16`.
    pub depth: u32,
    /// Instructions on the longest way of a term through one accumulator; where none is given, as
    /// many as there are terms.
    pub chain: Option<Extent>,
}

/// How a kernel's arithmetic differs from one correct rounding of each operation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Arithmetic {
    /// Subnormal operands and results become 0 (`.ftz`).
    pub flush_subnormals: bool,
    /// Division.
    pub division: Division,
    /// Square root.
    pub sqrt: Root,
    /// Reciprocal square root.
    pub rsqrt: Root,
    /// Exponentials, `exp` and `exp2`.
    pub exp: Exponential,
    /// Hyperbolic tangent.
    pub tanh: HyperbolicTangent,
    /// The longest chain of roundings of each reduction, by reduction name; the number of its
    /// terms where none is given.
    pub depth: BTreeMap<String, Extent>,
    /// The format each reduction is carried in, by reduction name; f32 where none is given.
    pub accumulators: BTreeMap<String, Format>,
    /// The sums that tensor cores make, by reduction name. Their depth counts what is added
    /// outside of tensor cores.
    pub tensor_cores: BTreeMap<String, TensorCores>,
}
