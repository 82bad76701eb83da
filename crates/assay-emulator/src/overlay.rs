//! What one worker of a launch wrote to an allocation, kept apart from the allocation itself.
//!
//! A launch whose blocks run on several threads leaves memory alone until all of them are done and
//! it is known that they did not meet: see [`crate::launch`].

use std::ops::Range;

const WORD: usize = u64::BITS as usize;

/// Bytes written, and which. What was not written is zero here and costs no memory.
#[derive(Debug)]
pub(crate) struct Overlay {
    bytes: Box<[u8]>,
    /// A bit a byte.
    written: Box<[u64]>,
    /// The words of `written` that may not be zero.
    touched: Option<Range<usize>>,
}

impl Overlay {
    /// Nothing written to an allocation of so many bytes.
    pub(crate) fn new(length: usize) -> Overlay {
        Overlay {
            bytes: vec![0; length].into_boxed_slice(),
            written: vec![0; length.div_ceil(WORD)].into_boxed_slice(),
            touched: None,
        }
    }

    /// Bytes that are about to be written, all of them. `None` outside the allocation.
    #[inline]
    pub(crate) fn write(&mut self, start: usize, length: usize) -> Option<&mut [u8]> {
        let bytes = self.bytes.get_mut(start..start.checked_add(length)?)?;
        if length > 0 {
            let (first, last) = (start / WORD, (start + length - 1) / WORD);
            let old = self.touched.take().unwrap_or(first..last + 1);
            self.touched = Some(old.start.min(first)..old.end.max(last + 1));
            let from = u64::MAX << (start % WORD);
            let to = u64::MAX >> (WORD - 1 - (start + length - 1) % WORD);
            if first == last {
                self.written[first] |= from & to;
            } else {
                self.written[first] |= from;
                self.written[last] |= to;
                self.written[first + 1..last].fill(u64::MAX);
            }
        }
        Some(bytes)
    }

    /// Whether a byte was written here and is among those of `union`; if none is, ours are added.
    pub(crate) fn meets(&self, union: &mut [u64]) -> bool {
        let touched = self.touched.clone().unwrap_or(0..0);
        let pairs = || self.written.get(touched.clone()).into_iter().flatten().zip(touched.clone());
        if pairs().any(|(word, index)| union[index] & word != 0) {
            return true;
        }
        for (word, index) in pairs() {
            union[index] |= word;
        }
        false
    }

    /// Words that [`Overlay::meets`] needs for a union.
    pub(crate) fn words(&self) -> usize {
        self.written.len()
    }

    /// Copies what was written to where it belongs.
    pub(crate) fn apply(&self, to: &mut [u8]) {
        let touched = self.touched.clone().unwrap_or(0..0);
        let mut index = touched.start;
        while index < touched.end {
            let word = self.written[index];
            let start = index * WORD;
            if word == u64::MAX {
                let rest = &self.written[index..touched.end];
                let run = rest.iter().take_while(|word| **word == u64::MAX).count();
                let end = (start + run * WORD).min(to.len());
                to[start..end].copy_from_slice(&self.bytes[start..end]);
                index += run;
                continue;
            }
            let mut rest = word;
            while rest != 0 {
                let at = start + rest.trailing_zeros() as usize;
                to[at] = self.bytes[at];
                rest &= rest - 1;
            }
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_is_copied() {
        let mut overlay = Overlay::new(1000);
        for (start, length) in [(0, 1), (60, 8), (128, 256), (500, 3), (999, 1)] {
            overlay.write(start, length).unwrap().fill(7);
        }
        assert!(overlay.write(999, 2).is_none());
        let mut bytes = vec![1; 1000];
        overlay.apply(&mut bytes);
        let written = |at: usize| matches!(at, 0 | 60..68 | 128..384 | 500..503 | 999);
        assert!((0..1000).all(|at| bytes[at] == if written(at) { 7 } else { 1 }));
    }

    #[test]
    fn overlays_meet_where_both_wrote_a_byte() {
        let (mut a, mut b) = (Overlay::new(300), Overlay::new(300));
        a.write(0, 70).unwrap();
        b.write(70, 200).unwrap();
        let mut union = vec![0; a.words()];
        assert!(!a.meets(&mut union));
        assert!(!b.meets(&mut union));
        b.write(69, 1).unwrap();
        let mut union = vec![0; a.words()];
        assert!(!a.meets(&mut union));
        assert!(b.meets(&mut union));
        assert!(!Overlay::new(300).meets(&mut union));
    }
}
