//! Rows of elements of at most 8 bits, looked up one by one.

use assay_num::Format;

use crate::counts::LANES;
use crate::row::bits_at;
use crate::table::{Entry, PATTERNS, table};

/// What looking up needs from row to row.
pub(super) struct LookUp {
    pub(super) table: Box<[Entry; PATTERNS]>,
    pub(super) reference: Words,
    pub(super) candidate: Words,
}

/// The values and codes of a row.
pub(super) struct Words {
    packed: [u8; LANES],
    words: [Entry; LANES],
}

impl LookUp {
    /// None of a format that has no table.
    pub(super) fn new(format: Format) -> Option<LookUp> {
        let words = || Words { packed: [0; LANES], words: [[0; 8]; LANES] };
        let table = table(format)?;
        Some(LookUp { table, reference: words(), candidate: words() })
    }
}

impl Words {
    #[inline(always)]
    pub(super) fn look_up(
        &mut self,
        table: &[Entry; PATTERNS],
        format: Format,
        bytes: &[u8],
    ) -> &[Entry; LANES] {
        let patterns = bytes.first_chunk().filter(|_| format.bits() == 8).unwrap_or_else(|| {
            for (at, pattern) in self.packed.iter_mut().enumerate() {
                *pattern = bits_at(format, bytes, at) as u8;
            }
            &self.packed
        });
        for (word, &pattern) in self.words.iter_mut().zip(patterns) {
            *word = table[usize::from(pattern)];
        }
        &self.words
    }
}
