//! Operations that are Rust closures: what is tried, what is right, and how operands are made.

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::Tolerance;

use crate::tensor::View;

/// A candidate that declines a case, with its reason. That is no failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

/// Writes the output's elements from a place in row-major order on, as many as there is room for.
type Range = dyn Fn(&[View], u64, &mut [f64]) -> Result<(), Refusal> + Send + Sync;
/// The whole output in row-major order.
type Whole = dyn Fn(&[View]) -> Result<Vec<f64>, Refusal> + Send + Sync;
/// The right value of one output element.
type Reference = dyn Fn(&[View], u64) -> f64 + Send + Sync;
/// One element of an operand, by the operand's number.
type Make = dyn Fn(usize, &mut SplitMix64) -> f64 + Send + Sync;
/// The shapes of operands and output at a case's shape.
type Shapes = dyn Fn(&[u64]) -> Option<OperationShapes> + Send + Sync;

/// How an operation computes.
pub enum Body {
    /// Any run of its output's elements, as the blocks of a grid do: of an output of 2^31 elements
    /// only some runs are asked for.
    Range(Box<Range>),
    /// All at once.
    Whole(Box<Whole>),
}

/// The shapes of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationShapes {
    /// Of every operand.
    pub operands: Vec<Vec<u64>>,
    /// Of the output.
    pub output: Vec<u64>,
}

/// A function of tensors under test, with its reference.
pub struct Operation {
    /// Its name, `[a-z0-9_]+`.
    pub name: String,
    /// The formats it is tried in; a candidate each.
    pub formats: Vec<Format>,
    /// What is tried.
    pub body: Body,
    /// What is right, in f64: a value that the output's format rounds.
    pub reference: Box<Reference>,
    /// Shapes of operands and output at a case's shape; `None` where it has no meaning there.
    pub shapes: Box<Shapes>,
    /// The elements of operands; each is rounded to the format.
    pub make: Box<Make>,
    /// What is allowed between the reference, rounded to the output's format, and the output. Zeros
    /// of either sign are the same, and NaN may stand where the reference has NaN.
    pub tolerance: Tolerance,
    /// What is wrong with it, if it is planted to be found.
    pub control_for: Option<String>,
}

impl Operation {
    /// An operation whose operands and output all have the case's shape, filled with normal
    /// deviates, correctly rounded in f32.
    pub fn elementwise(
        name: &str,
        operands: usize,
        op: impl Fn(&[View], u64, &mut [f64]) -> Result<(), Refusal> + Send + Sync + 'static,
        reference: impl Fn(&[View], u64) -> f64 + Send + Sync + 'static,
    ) -> Operation {
        let shapes = move |shape: &[u64]| {
            let operands = vec![shape.to_vec(); operands];
            Some(OperationShapes { operands, output: shape.to_vec() })
        };
        Operation {
            name: name.to_owned(),
            formats: vec![Format::F32],
            body: Body::Range(Box::new(op)),
            reference: Box::new(reference),
            shapes: Box::new(shapes),
            make: Box::new(|_, random| random.normal()),
            tolerance: Tolerance::EXACT,
            control_for: None,
        }
    }

    /// The operation, held to a tolerance in place of the value correctly rounded.
    #[must_use]
    pub fn within(mut self, tolerance: Tolerance) -> Operation {
        self.tolerance = tolerance;
        self
    }

    /// The operation, planted to be found.
    #[must_use]
    pub fn planted(mut self, what: &str) -> Operation {
        self.control_for = Some(what.to_owned());
        self
    }
}
