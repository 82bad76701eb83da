//! Why arrays cannot be made or compared.

use assay_num::Format;
use thiserror::Error;

use crate::compare::Side;
use crate::source::SourceError;

/// Why a view is not an array.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The shape has more elements than 64 bits count.
    #[error("the shape {0:?} has more elements than can be counted")]
    TooManyElements(Vec<u64>),
    /// There are not as many strides as axes.
    #[error("the shape has {axes} axes and there are {strides} strides")]
    Strides {
        /// Axes of the shape.
        axes: usize,
        /// Strides given.
        strides: usize,
    },
    /// An element lies outside the bytes.
    #[error("the array reaches from element {first} to {last} of a buffer that holds {held}")]
    OutOfRange {
        /// The lowest element that the view reaches.
        first: i128,
        /// The highest.
        last: i128,
        /// Elements in the buffer.
        held: u64,
    },
    /// The bytes are not as many as the elements need.
    #[error("{elements} elements of {format} take {needed} bytes, and there are {found}")]
    Length {
        /// The format.
        format: Format,
        /// How many elements.
        elements: u64,
        /// Bytes that they take.
        needed: u64,
        /// Bytes that are there.
        found: u64,
    },
}

/// Why two arrays cannot be compared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A view is no array.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The shapes differ.
    #[error("the reference has the shape {reference:?} and the candidate {candidate:?}")]
    Shapes {
        /// Of the reference.
        reference: Vec<u64>,
        /// Of the candidate.
        candidate: Vec<u64>,
    },
    /// The formats differ.
    #[error("the reference holds {reference} and the candidate {candidate}")]
    Formats {
        /// Of the reference.
        reference: Format,
        /// Of the candidate.
        candidate: Format,
    },
    /// A tolerance is negative or no number.
    #[error("`{name}` is {value}; it must be a number from 0")]
    Tolerance {
        /// Which.
        name: &'static str,
        /// What it is.
        value: f64,
    },
    /// Nothing could be read at all.
    #[error("the {side} cannot be read")]
    Read {
        /// Which of the two.
        side: Side,
        /// Why.
        #[source]
        source: SourceError,
    },
    /// The device refused or was lost.
    #[error(transparent)]
    Device(#[from] assay_device::DeviceError),
    /// The bands need more, or other, shuffles.
    #[error("{0}")]
    Band(String),
    /// The reference, the candidate or the generator of their inputs failed.
    #[error("the {what} failed: {reason}")]
    Operation {
        /// What failed: `reference`, `candidate` or `generator`.
        what: &'static str,
        /// What it said.
        reason: String,
    },
}
