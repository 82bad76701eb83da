//! References of GPU kernels: one formula, evaluated in several domains.
//!
//! A [`Formula`] says in text what a kernel computes in real numbers. Checked against a
//! [`Signature`] it becomes a [`Program`], which evaluates to values, to the class each output must
//! have, to values with error bounds, to a replay in a narrower accumulator, and to the depth of
//! its chains of roundings.
//!
//! # The language
//!
//! ```text
//! mean[r] = sum(k in 0..cols: x[r, k] * x[r, k]) / cols
//! y[r, c] = bf16(x[r, c] * rsqrt(mean[r] + eps)) * w[c]
//! ```
//!
//! - A statement is `name[i, j] = expression`; what it reads is defined above it. An index runs
//!   over the output's axis, or over the first axis that it walks by itself; `name[i in 0..n]`
//!   states it. `#` starts a comment.
//! - Values: `+ - * /`, unary minus, `select(condition, a, b)`, the functions `exp exp2 log log2
//!   sqrt rsqrt tanh sin cos erf abs floor max min`, the literal `inf`. Indices and dims used as
//!   values are exact real numbers.
//! - Rounding: `bf16(e)` rounds where it stands; `near(bf16, e)` is rounded once on the way.
//! - Reductions: `sum | max | min | prod(k in a..b if condition: term)`.
//! - Recurrences: `h[t] = scan(t, prev = initial: step)`, where `prev` in the step is `h[t - 1]`,
//!   and `initial` at t = 0.
//! - Conditions: comparisons joined by `&& || !`. The branch that is not taken reads nothing.
//! - Indices and bounds: `+ - * / %`, `min`, `max` of whole numbers, `/` and `%` towards minus
//!   infinity, and gathers such as `x[index[i], j]`. A comparison of two of these is one of whole
//!   numbers.
//! - `bits(word, i, n)`: field i of n bits of a whole number, least significant first.

pub mod builder;
pub mod fill;
pub mod rule;

mod arithmetic;
mod ast;
mod bound;
mod bound_sum;
mod build;
mod check;
mod count;
mod depth;
mod error;
mod evaluate;
mod extent;
mod families;
mod formula;
mod frame;
mod functions;
mod limits;
mod machine;
mod open;
mod order;
mod parse;
mod plan;
mod print;
mod range;
mod reads;
mod real;
mod reductions;
mod region;
mod rounding;
mod run;
mod scan;
mod schedule;
mod signature;
mod tensor_core;
mod tile;
mod token;
mod variance;

pub use arithmetic::{Arithmetic, Division, Exponential, HyperbolicTangent, Root, TensorCores};
pub use ast::ReduceOperation;
pub use count::{Operations, Uncountable};
pub use error::{EvaluationError, FormulaError};
pub use evaluate::{Bounded, Drop, Evaluation, FixtureProblem, Order, ProblemKind, Replay};
pub use extent::{Dims, Extent};
pub use formula::Formula;
pub use frame::{MAX_ELEMENTS, MAX_VISITS};
pub use limits::Limits;
pub use plan::Program;
pub use reductions::{Reduction, ReductionRead};
pub use signature::{Inputs, Signature, Tensor, dims};
