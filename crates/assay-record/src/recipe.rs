//! The recipe of a fuzzed case: plain text that holds all that is needed to run the case again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::case::{dim_of, is_blank, seed_of};

/// The most axes that a recipe's shape may have.
const MOST_AXES: usize = 8;

/// What repeats one fuzzed case: `silu_f32/count=4099/misalign:1/mixed/seed=1`.
///
/// Five parts: the candidate, its shape (`rows=7,cols=3` of a kernel, `7x3` of an operation, `-`
/// for no axis), how the operands lie in memory, how they are filled, and the seed. No part holds
/// white space or a slash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Recipe {
    /// The candidate.
    pub candidate: String,
    /// The shape.
    pub shape: FuzzShape,
    /// How operands lie in memory, step upon step; dense where empty.
    pub view: Vec<ViewStep>,
    /// How operands are filled.
    pub fill: String,
    /// What the contents are drawn from.
    pub seed: u64,
}

/// The shape of a fuzzed case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FuzzShape {
    /// Dims by name, of a kernel with a manifest.
    Dims(Vec<(String, i64)>),
    /// Sizes along each axis, of an operation; none for a scalar.
    Axes(Vec<u64>),
}

impl FuzzShape {
    /// The product of all sizes; saturating.
    #[must_use]
    pub fn product(&self) -> u64 {
        match self {
            FuzzShape::Dims(dims) => {
                let sizes = dims.iter().map(|(_, size)| u64::try_from(*size).unwrap_or(0));
                sizes.fold(1, u64::saturating_mul)
            }
            FuzzShape::Axes(sizes) => sizes.iter().fold(1, |all, size| all.saturating_mul(*size)),
        }
    }
}

/// One step from a dense tensor to an ugly one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ViewStep {
    /// The last two axes lie in memory in each other's place.
    Transposed,
    /// Neighbours along the last axis lie so many elements apart.
    Strided(u64),
    /// All places along this axis are one place in memory (stride 0).
    Broadcast(u64),
    /// Neighbours along the first axis lie so many elements apart, over memory that nobody uses.
    Pitch(u64),
    /// The first element lies so many elements past an address of full alignment.
    Offset(u64),
    /// Only the first operand takes these steps.
    Alone,
    /// A kernel's buffers start in this alignment class among those that its manifest allows.
    Misalign(u64),
    /// A kernel's outputs lie in its inputs' buffers where its manifest allows it.
    Aliased,
    /// A kernel's inputs repeat along this dim with this period, so that a small reference judges
    /// a tensor of any size.
    Repeated(u64),
}

impl ViewStep {
    fn word(self) -> (&'static str, Option<u64>) {
        match self {
            ViewStep::Transposed => ("transposed", None),
            ViewStep::Strided(by) => ("strided", Some(by)),
            ViewStep::Broadcast(axis) => ("broadcast", Some(axis)),
            ViewStep::Pitch(by) => ("pitch", Some(by)),
            ViewStep::Offset(by) => ("offset", Some(by)),
            ViewStep::Alone => ("alone", None),
            ViewStep::Misalign(class) => ("misalign", Some(class)),
            ViewStep::Aliased => ("aliased", None),
            ViewStep::Repeated(period) => ("repeated", Some(period)),
        }
    }

    fn of(word: &str, number: Option<u64>) -> Option<ViewStep> {
        Some(match (word, number) {
            ("transposed", None) => ViewStep::Transposed,
            ("strided", Some(by)) => ViewStep::Strided(by),
            ("broadcast", Some(axis)) => ViewStep::Broadcast(axis),
            ("pitch", Some(by)) => ViewStep::Pitch(by),
            ("offset", Some(by)) => ViewStep::Offset(by),
            ("alone", None) => ViewStep::Alone,
            ("misalign", Some(class)) => ViewStep::Misalign(class),
            ("aliased", None) => ViewStep::Aliased,
            ("repeated", Some(period)) => ViewStep::Repeated(period),
            _ => return None,
        })
    }
}

impl fmt::Display for ViewStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word() {
            (word, None) => formatter.write_str(word),
            (word, Some(number)) => write!(formatter, "{word}:{number}"),
        }
    }
}

impl fmt::Display for FuzzShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            FuzzShape::Dims(dims) => {
                let pairs = dims.iter().map(|(name, size)| format!("{name}={size}"));
                pairs.collect::<Vec<_>>().join(",")
            }
            FuzzShape::Axes(sizes) => {
                sizes.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
            }
        };
        formatter.write_str(if text.is_empty() { "-" } else { &text })
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<String> = self.view.iter().map(ToString::to_string).collect();
        let view = if steps.is_empty() { "dense".to_owned() } else { steps.join("+") };
        let Recipe { candidate, shape, fill, seed, .. } = self;
        write!(formatter, "{candidate}/{shape}/{view}/{fill}/seed={seed}")
    }
}

/// Why a text is no recipe.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// It has too few or too many parts.
    #[error(
        "`{text}` has {parts} parts; a recipe is `candidate/shape/view/fill/seed=1`, such as \
         `silu_f32/count=4099/misalign:1/mixed/seed=1`"
    )]
    Parts {
        /// The whole text.
        text: String,
        /// How many parts it has.
        parts: usize,
    },
    /// A part is empty or has white space in it.
    #[error("`{text}` has an empty {part}, or white space in it")]
    Blank {
        /// The whole text.
        text: String,
        /// Which part.
        part: &'static str,
    },
    /// The second part is no shape.
    #[error("`{shape}` is no shape, such as `rows=7,cols=4099`, `7x4099` or `-`")]
    Shape {
        /// The part.
        shape: String,
    },
    /// A word of the third part says nothing about a view.
    #[error(
        "`{step}` is no view; they are dense, transposed, strided:N, broadcast:AXIS, pitch:N, \
         offset:N, alone, misalign:N, aliased and repeated:N, joined by `+`"
    )]
    View {
        /// The word.
        step: String,
    },
    /// The last part is no seed.
    #[error("`{seed}` is not a seed, such as `seed=1`")]
    Seed {
        /// The part.
        seed: String,
    },
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let [candidate, shape, view, fill, seed] = parts[..] else {
            return Err(RecipeError::Parts { text: text.to_owned(), parts: parts.len() });
        };
        for (part, name) in [(candidate, "candidate"), (fill, "fill")] {
            if is_blank(part) {
                return Err(RecipeError::Blank { text: text.to_owned(), part: name });
            }
        }
        Ok(Recipe {
            candidate: candidate.to_owned(),
            shape: shape.parse()?,
            view: parse_view(view)?,
            fill: fill.to_owned(),
            seed: parse_seed(seed)?,
        })
    }
}

impl FromStr for FuzzShape {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || RecipeError::Shape { shape: text.to_owned() };
        if text == "-" {
            return Ok(FuzzShape::Axes(Vec::new()));
        }
        if !text.contains('=') {
            let sizes: Result<Vec<u64>, _> = text.split('x').map(str::parse).collect();
            let sizes = sizes.ok().filter(|sizes| sizes.len() <= MOST_AXES);
            return sizes.map(FuzzShape::Axes).ok_or_else(wrong);
        }
        let dims: Option<Vec<(String, i64)>> = text.split(',').map(dim_of).collect();
        dims.map(FuzzShape::Dims).ok_or_else(wrong)
    }
}

fn parse_view(text: &str) -> Result<Vec<ViewStep>, RecipeError> {
    if text == "dense" {
        return Ok(Vec::new());
    }
    let step = |step: &str| {
        let wrong = || RecipeError::View { step: step.to_owned() };
        let (word, number) = match step.split_once(':') {
            None => (step, None),
            Some((word, number)) => (word, Some(number.parse().map_err(|_| wrong())?)),
        };
        ViewStep::of(word, number).ok_or_else(wrong)
    };
    text.split('+').map(step).collect()
}

fn parse_seed(text: &str) -> Result<u64, RecipeError> {
    seed_of(text).ok_or_else(|| RecipeError::Seed { seed: text.to_owned() })
}

impl From<Recipe> for String {
    fn from(recipe: Recipe) -> String {
        recipe.to_string()
    }
}

impl TryFrom<String> for Recipe {
    type Error = RecipeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read_back_from_its_own_text() {
        for text in [
            "silu_f32/count=4099/misalign:1/mixed/seed=1",
            "k/cols=7,rows=3/aliased/mixed/seed=18446744073709551615",
            "add:f32/2x0x3/transposed+offset:3+alone/values/seed=7",
            "add:f32/-/dense/values/seed=0",
            "add:f32/65536x32769/broadcast:0/values/seed=0",
            "k/rows=524289/repeated:61/mixed/seed=2",
        ] {
            let recipe: Recipe = text.parse().expect("it is a recipe");
            assert_eq!(recipe.to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_recipe_says_what_is_wrong_with_it() {
        for (text, words) in [
            ("silu", "has 1 parts"),
            ("/3/dense/values/seed=1", "empty candidate"),
            ("a b/3/dense/values/seed=1", "white space"),
            ("a/3xq/dense/values/seed=1", "is no shape"),
            ("a/1x1x1x1x1x1x1x1x1/dense/values/seed=1", "is no shape"),
            ("a/n=-x/dense/values/seed=1", "is no shape"),
            ("a/3/upside-down/values/seed=1", "is no view"),
            ("a/3/offset/values/seed=1", "is no view"),
            ("a/3/offset:-1/values/seed=1", "is no view"),
            ("a/3/dense/values/seed", "is not a seed"),
        ] {
            let error = text.parse::<Recipe>().expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
