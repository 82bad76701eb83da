//! Hash maps for short names. The standard hasher resists chosen collisions, which a parser that
//! one person runs on one file does not need, and takes a tenth of the parser's time.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with names as keys.
pub(crate) type NameMap<K, V> = HashMap<K, V, BuildHasherDefault<NameHasher>>;
/// A set of names.
pub(crate) type NameSet<K> = HashSet<K, BuildHasherDefault<NameHasher>>;

/// Multiplies and rotates, eight bytes at a time.
#[derive(Clone, Copy, Default)]
pub(crate) struct NameHasher(u64);

impl NameHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
        let mut word = [0; 8];
        let rest = chunks.remainder();
        word[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(word) | (rest.len() as u64) << 56);
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        // The map takes the top bits for its tags and the low bits for places: mix both.
        self.0 ^ (self.0 >> 32)
    }
}
