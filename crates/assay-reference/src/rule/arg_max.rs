//! `argmax`: the index of the largest element of every row, ties to the lower index.

use super::Ranking;

pub(super) fn choose(ranking: Ranking, row: &[f64]) -> Vec<usize> {
    let mut best = 0;
    for index in 1..row.len() {
        if ranking.descending(row[index], row[best]).is_lt() {
            best = index;
        }
    }
    vec![best]
}
