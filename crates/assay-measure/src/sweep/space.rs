//! The configurations of a search: the product of its axes, less what the constraints rule out.

use std::collections::BTreeMap;

use assay_record::Configuration;
use thiserror::Error;

use super::{Expression, ExpressionError};

/// The most configurations of a product.
pub const MOST_CONFIGURATIONS: usize = 65_536;

/// Axes and constraints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    /// The values of each axis.
    pub axes: BTreeMap<String, Vec<i64>>,
    /// What every configuration has to satisfy: each is not 0.
    pub constraints: Vec<Expression>,
}

/// Why there is no such space.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// An axis with no values, or one twice.
    #[error("the axis `{axis}` {reason}")]
    Axis {
        /// The axis.
        axis: String,
        /// What is wrong with it.
        reason: String,
    },
    /// More configurations than [`MOST_CONFIGURATIONS`].
    #[error("the axes have over {MOST_CONFIGURATIONS} configurations")]
    TooMany,
    /// Constraints that leave nothing.
    #[error("no configuration satisfies every constraint")]
    Empty,
    /// A constraint that cannot be evaluated.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
}

impl Space {
    /// The configurations in a fixed order, and how many the constraints ruled out.
    ///
    /// # Errors
    /// [`SpaceError`].
    pub fn configurations(&self) -> Result<(Vec<Configuration>, u64), SpaceError> {
        let mut all = vec![Configuration::new()];
        for (axis, values) in &self.axes {
            Self::check(axis, values)?;
            if all.len().saturating_mul(values.len()) > MOST_CONFIGURATIONS {
                return Err(SpaceError::TooMany);
            }
            let with = |configuration: &Configuration, value: i64| {
                let mut more = configuration.clone();
                more.insert(axis.clone(), value);
                more
            };
            all = all.iter().flat_map(|c| values.iter().map(move |v| with(c, *v))).collect();
        }
        let count = all.len();
        let mut kept = Vec::new();
        for configuration in all {
            if self.allows(&configuration)? {
                kept.push(configuration);
            }
        }
        if kept.is_empty() {
            return Err(SpaceError::Empty);
        }
        let excluded = (count - kept.len()) as u64;
        Ok((kept, excluded))
    }

    fn check(axis: &str, values: &[i64]) -> Result<(), SpaceError> {
        let wrong = |reason: &str| {
            Err(SpaceError::Axis { axis: axis.to_owned(), reason: reason.to_owned() })
        };
        let distinct: std::collections::BTreeSet<i64> = values.iter().copied().collect();
        if values.is_empty() {
            return wrong("has no values");
        }
        if distinct.len() < values.len() {
            return wrong("has a value twice");
        }
        Ok(())
    }

    fn allows(&self, configuration: &Configuration) -> Result<bool, ExpressionError> {
        for constraint in &self.constraints {
            if constraint.value(configuration)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(axes: &[(&str, &[i64])], constraints: &[&str]) -> Space {
        let parsed = constraints.iter().map(|text| Expression::parse(text).expect("well formed"));
        Space {
            axes: axes.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect(),
            constraints: parsed.collect(),
        }
    }

    #[test]
    fn a_space_is_the_product_less_what_is_ruled_out() {
        let axes: [(&str, &[i64]); 2] = [("block", &[64, 128, 256]), ("items", &[1, 4])];
        let (all, excluded) = space(&axes, &[]).configurations().expect("configurations");
        assert_eq!((all.len(), excluded), (6, 0));
        let few = space(&axes, &["block * items <= 256"]).configurations();
        let (few, excluded) = few.expect("configurations");
        assert_eq!((few.len(), excluded), (4, 2));
    }

    #[test]
    fn spaces_that_cannot_be_are_refused() {
        let of = |axes: &[(&str, &[i64])], constraints: &[&str]| {
            space(axes, constraints).configurations().err()
        };
        assert!(matches!(of(&[("a", &[])], &[]), Some(SpaceError::Axis { .. })));
        assert!(matches!(of(&[("a", &[1, 1])], &[]), Some(SpaceError::Axis { .. })));
        assert_eq!(of(&[("a", &[1])], &["a > 1"]), Some(SpaceError::Empty));
        assert!(matches!(of(&[("a", &[1])], &["b > 1"]), Some(SpaceError::Expression(_))));
        let many: Vec<i64> = (0..300).collect();
        assert_eq!(of(&[("a", &many), ("b", &many)], &[]), Some(SpaceError::TooMany));
    }
}
