//! The total order that rules rank elements by.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::RuleError;

/// Where NaN stands among the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NanPlace {
    /// Above +Inf.
    Largest,
    /// Below -Inf.
    Smallest,
}

/// How two elements compare; equal ones are taken in order of their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranking {
    /// Where NaN stands.
    pub nan: NanPlace,
    /// True if -0 stands below +0, as in kernels that compare bits.
    pub signed_zeros: bool,
}

impl Ranking {
    pub(super) fn from_parameters(
        rule: &'static str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Ranking, RuleError> {
        let nan = match parameters.get("nan").map(String::as_str) {
            None | Some("largest") => NanPlace::Largest,
            Some("smallest") => NanPlace::Smallest,
            Some(other) => return Err(unknown(rule, "nan", other, "`largest` or `smallest`")),
        };
        let signed_zeros = match parameters.get("zeros").map(String::as_str) {
            None | Some("equal") => false,
            Some("signed") => true,
            Some(other) => return Err(unknown(rule, "zeros", other, "`equal` or `signed`")),
        };
        Ok(Ranking { nan, signed_zeros })
    }

    /// `Less` if `a` ranks before `b`, that is, if `a` is the larger one.
    pub fn descending(self, a: f64, b: f64) -> Ordering {
        match (a.is_nan(), b.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => self.nan_against_number(),
            (false, true) => self.nan_against_number().reverse(),
            (false, false) if self.signed_zeros => b.total_cmp(&a),
            (false, false) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
        }
    }

    fn nan_against_number(self) -> Ordering {
        match self.nan {
            NanPlace::Largest => Ordering::Less,
            NanPlace::Smallest => Ordering::Greater,
        }
    }
}

fn unknown(rule: &'static str, key: &str, value: &str, known: &str) -> RuleError {
    let problem = format!("parameter `{key}` is `{value}`; write {known}");
    RuleError::Parameter { rule, problem }
}
