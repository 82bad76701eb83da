//! Sums in one fixed tree: neighbours are added, then neighbouring sums, and so on up.
//!
//! The tree depends on the number of terms alone, not on how they were cut into pieces or on which
//! thread or device took which, so every run gives the same bits.

/// The sum of a power of two of terms.
pub(crate) fn sum<const N: usize>(terms: &[f64; N]) -> f64 {
    let mut level = *terms;
    let mut width = N;
    while width > 1 {
        width /= 2;
        for at in 0..width {
            level[at] = level[2 * at] + level[2 * at + 1];
        }
    }
    level[0]
}

/// Takes terms one at a time; holds one sum for each level that waits for its right neighbour.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Tree<const N: usize> {
    count: u64,
    waiting: Vec<[f64; N]>,
}

impl<const N: usize> Tree<N> {
    /// Adds the next terms, one for each of the `N` sums.
    pub(crate) fn push(&mut self, mut terms: [f64; N]) {
        self.count += 1;
        // As many carries as the count ends in zero bits.
        for _ in 0..self.count.trailing_zeros() {
            if let Some(left) = self.waiting.pop() {
                terms = add(left, terms);
            }
        }
        self.waiting.push(terms);
    }

    /// The sums of all terms so far.
    pub(crate) fn total(&self) -> [f64; N] {
        let mut levels = self.waiting.iter().rev();
        let first = levels.next().copied().unwrap_or([0.0; N]);
        levels.fold(first, |right, &left| add(left, right))
    }
}

fn add<const N: usize>(left: [f64; N], right: [f64; N]) -> [f64; N] {
    std::array::from_fn(|at| left[at] + right[at])
}

#[cfg(test)]
mod tests {
    use super::{Tree, sum};

    #[test]
    fn a_tree_fed_term_by_term_gives_the_sum_of_the_whole_tree() {
        let terms: [f64; 64] = std::array::from_fn(|at| 0.1 + at as f64 * 1e-3);
        let mut tree = Tree::<1>::default();
        for term in terms {
            tree.push([term]);
        }
        assert_eq!(tree.total(), [sum(&terms)]);
        assert_eq!(Tree::<2>::default().total(), [0.0; 2]);
    }
}
