//! Sums over elements in an order of their own, so that a device adds up the same bits.

use crate::tree;

/// Elements whose sum is a tree; whole blocks are added one after the other.
pub(crate) const BLOCK: u64 = 4096;

/// Lanes of a block: lane `l` adds the elements `l`, `l + 128` and so on.
const LANES: usize = 128;

/// A sum of one number for each element.
#[derive(Clone, Debug)]
pub(super) struct BlockSum {
    /// Of the block at hand.
    lanes: [f64; LANES],
    blocks: f64,
}

impl BlockSum {
    pub(super) fn new() -> BlockSum {
        BlockSum { lanes: [0.0; LANES], blocks: 0.0 }
    }

    /// Adds an element's number; behind the last one of a block comes [`BlockSum::end_block`].
    pub(super) fn add(&mut self, element: u64, value: f64) {
        self.lanes[element as usize % LANES] += value;
    }

    pub(super) fn end_block(&mut self) {
        *self = BlockSum { blocks: self.total(), ..BlockSum::new() };
    }

    /// Adds the sums of whole blocks, and of the last one.
    pub(super) fn add_blocks(&mut self, sums: impl Iterator<Item = f64>) {
        sums.for_each(|sum| self.blocks += sum);
    }

    pub(super) fn total(&self) -> f64 {
        self.blocks + tree::sum(&self.lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_added_once() {
        let (mut all, mut by_blocks) = (BlockSum::new(), BlockSum::new());
        let elements = 2 * BLOCK + 77;
        for element in 0..elements {
            all.add(element, element as f64);
            if (element + 1).is_multiple_of(BLOCK) {
                all.end_block();
            }
        }
        assert_eq!(all.total(), (elements * (elements - 1) / 2) as f64);
        by_blocks.add_blocks([1.5, 2.0].into_iter());
        assert_eq!(by_blocks.total(), 3.5);
    }
}
