//! `top_k`: the k largest elements of every row, largest first, ties to the lower index.
//! A row with fewer than k elements leaves its last places empty.

use std::collections::BTreeMap;

use super::{Kind, Ranking, RuleError};
use crate::{Dims, Extent};

pub(super) fn kind(parameters: &BTreeMap<String, String>) -> Result<Kind, RuleError> {
    let problem = |problem: String| RuleError::Parameter { rule: "top_k", problem };
    let text = parameters.get("k");
    let text = text.ok_or_else(|| problem("parameter `k` is missing".to_owned()))?;
    let k = Extent::parse(text);
    let k = k.map_err(|error| problem(format!("parameter `k` = `{text}`: {error}")))?;
    Ok(Kind::TopK { k })
}

pub(super) fn places(k: &Extent, dims: &Dims) -> Result<usize, RuleError> {
    let problem = |problem: String| RuleError::Parameter { rule: "top_k", problem };
    let places = k.eval(dims).map_err(|error| problem(format!("parameter `k`: {error}")))?;
    let positive = usize::try_from(places).ok().filter(|places| *places > 0);
    positive.ok_or_else(|| problem(format!("k is {places}; at least one place is needed")))
}

pub(super) fn choose(ranking: Ranking, row: &[f64], places: usize) -> Vec<usize> {
    let before = |a: &usize, b: &usize| ranking.descending(row[*a], row[*b]).then_with(|| a.cmp(b));
    let mut order: Vec<usize> = (0..row.len()).collect();
    if places < row.len() {
        order.select_nth_unstable_by(places, before);
        order.truncate(places);
    }
    order.sort_unstable_by(before);
    order
}
