//! How many elements have a distance of so many bits, and an error in such a half octave.

use crate::counts::{Counts, HALVES, LANES};

/// Up to so many places are looked for one after the other in a row; where they are more, every
/// element raises its counter.
const MOST: u8 = 48;

/// Counters of a place that are raised in turn, since one counter cannot be raised twice at once.
const TURNS: usize = 8;

/// The places that a byte can name, so that none needs a check.
const PLACES: usize = 256;

const _: () = assert!(HALVES == PLACES, "a byte names every half octave");

/// Where each element of a row is counted.
pub(crate) struct Row {
    /// The number of bits of the distance.
    pub(crate) bits: [u8; LANES],
    /// The half octave of the error, as [`crate::counts::half_octave`] tells it.
    pub(crate) halves: [u8; LANES],
}

impl Row {
    pub(crate) fn new() -> Row {
        Row { bits: [0; LANES], halves: [0; LANES] }
    }
}

pub(crate) struct Tables {
    distances: Table,
    errors: Table,
}

impl Tables {
    pub(crate) fn new() -> Tables {
        Tables { distances: Table::new(), errors: Table::new() }
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, row: &Row) {
        self.distances.count(&row.bits);
        self.errors.count(&row.halves);
    }

    /// Adds everything to the counts.
    pub(crate) fn give(&self, counts: &mut Counts) {
        for (place, count) in counts.histogram.iter_mut().enumerate() {
            *count = count.wrapping_add(self.distances.total(place));
        }
        for (place, count) in counts.halves.iter_mut().enumerate() {
            *count = count.wrapping_add(self.errors.total(place));
        }
        // Errors of zero, which are those of distance 0, are none.
        counts.halves[0] = counts.halves[0].wrapping_sub(self.distances.total(0));
    }
}

/// Counters by place.
struct Table {
    raised: [[u32; PLACES]; TURNS],
    found: [u64; PLACES],
}

impl Table {
    fn new() -> Table {
        Table { raised: [[0; PLACES]; TURNS], found: [0; PLACES] }
    }

    fn total(&self, place: usize) -> u64 {
        let raised: u64 = self.raised.iter().map(|turn| u64::from(turn[place])).sum();
        raised + self.found[place]
    }

    #[inline(always)]
    fn count(&mut self, places: &[u8; LANES]) {
        // All but place 0, which is common where the others are far from it.
        let largest = places.iter().fold(0, |most, &place| most.max(place));
        let least = places.iter().fold(u8::MAX, |least, &place| least.min(place.wrapping_sub(1)));
        // Of a row of zeros this is none.
        let least = usize::from(least) + 1;
        if usize::from(largest) >= least + usize::from(MOST) {
            return self.raise(places);
        }
        let mut zeros = LANES as u64;
        for place in least..=usize::from(largest) {
            let count = find(places, place as u8);
            self.found[place] += count;
            zeros -= count;
        }
        self.found[0] += zeros;
    }

    #[inline(always)]
    fn raise(&mut self, places: &[u8; LANES]) {
        for places in places.as_chunks::<TURNS>().0 {
            for (turn, &place) in self.raised.iter_mut().zip(places) {
                turn[usize::from(place)] += 1;
            }
        }
    }
}

/// How many elements have a place.
#[inline(always)]
fn find(places: &[u8; LANES], wanted: u8) -> u64 {
    places.as_chunks::<256>().0.iter().map(|places| find_in(places, wanted)).sum()
}

#[inline(always)]
fn find_in(places: &[u8; 256], wanted: u8) -> u64 {
    // Within a byte, since more elements are compared at once the narrower the counter is.
    let count = places.iter().fold(0u8, |n, &place| n.wrapping_add(u8::from(place == wanted)));
    let all = count == 0 && places[0] == wanted;
    if all { 256 } else { u64::from(count) }
}
