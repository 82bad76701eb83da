//! The worst few elements, found again in the blocks that are known to hold them.

use assay_num::Format;
use assay_record::{Number, WorstElement};

use crate::array::{coordinates, storage};
use crate::counts::{LANES, class_index};
use crate::row::Row;
use crate::scan::{Largest, OTHER_CLASS, Rules};

/// An element that is among the worst, by one measure.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The measure: larger is worse.
    key: u64,
    index: u64,
    reference: f64,
    candidate: f64,
    error: f64,
    ulp: Option<u64>,
}

/// A list of the worst, worst first; of equals the earlier element first.
#[derive(Clone, Debug)]
struct List {
    room: usize,
    entries: Vec<Entry>,
}

impl List {
    fn new(room: usize) -> List {
        List { room, entries: Vec::with_capacity(room) }
    }

    /// Whether an element with that key, after all those seen, would get in.
    fn admits(&self, key: u64) -> bool {
        key > 0
            && self.room > 0
            && (self.entries.len() < self.room
                || self.entries.last().is_some_and(|last| key > last.key))
    }

    fn insert(&mut self, entry: Entry) {
        let order = |other: &Entry| (other.key, u64::MAX - other.index);
        let mine = order(&entry);
        let place = self.entries.partition_point(|other| order(other) > mine);
        if place < self.room {
            self.entries.insert(place, entry);
            self.entries.truncate(self.room);
        }
    }
}

/// The worst elements by distance and by error.
#[derive(Clone, Debug)]
pub(crate) struct Worst {
    by_ulp: List,
    by_error: List,
}

impl Worst {
    pub(crate) fn new(room: usize) -> Worst {
        Worst { by_ulp: List::new(room), by_error: List::new(room) }
    }

    /// The rows (or blocks) that hold elements that get in, of all that come next: as many of the
    /// largest as elements are asked for, by either measure, in order.
    pub(crate) fn choose(&self, all: &[Largest]) -> Vec<usize> {
        let room = self.by_ulp.room.min(all.len());
        let largest = |list: &List, key: &dyn Fn(&Largest) -> u64| {
            let mut places: Vec<usize> =
                (0..all.len()).filter(|&at| list.admits(key(&all[at]))).collect();
            let order = |at: &usize| (u64::MAX - key(&all[*at]), *at);
            if places.len() > room && room > 0 {
                places.select_nth_unstable_by_key(room - 1, order);
            }
            places.truncate(room);
            places
        };
        let mut chosen = largest(&self.by_ulp, &|most| most.key);
        chosen.extend(largest(&self.by_error, &|most| most.error.to_bits()));
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// Looks through rows that start at `index`.
    pub(crate) fn look(
        &mut self,
        rules: &Rules,
        (reference, candidate): (&[u8], &[u8]),
        (index, elements): (u64, usize),
    ) {
        let mut row = Row::new(rules.format);
        let bytes = storage(rules.format, LANES as u64) as usize;
        let rows = reference.chunks(bytes).zip(candidate.chunks(bytes));
        for (at, (one, other)) in rows.enumerate() {
            row.decode(rules.format, one, other);
            let present = LANES.min(elements - at * LANES);
            for lane in 0..present {
                // Most elements are not among the worst, which two comparisons tell.
                let error = row.error[lane].abs().to_bits();
                let wanted = self.by_ulp.admits(row.ulp.get(lane)) || self.by_error.admits(error);
                if row.finite && !wanted {
                    continue;
                }
                self.offer(rules, &row, lane, index + (at * LANES + lane) as u64);
            }
        }
    }

    /// Looks at elements that were found elsewhere: index, the words of both arrays. They come in
    /// the arrays' order, none twice.
    pub(crate) fn look_at(
        &mut self,
        rules: &Rules,
        mut found: impl Iterator<Item = (u64, [u64; 2])>,
    ) {
        let mut row = Row::new(rules.format);
        loop {
            let some: Vec<(u64, [u64; 2])> = found.by_ref().take(LANES).collect();
            if some.is_empty() {
                return;
            }
            let one = pack(rules.format, some.iter().map(|element| element.1[0]));
            let other = pack(rules.format, some.iter().map(|element| element.1[1]));
            row.decode(rules.format, &one, &other);
            for (lane, &(index, ..)) in some.iter().enumerate() {
                self.offer(rules, &row, lane, index);
            }
        }
    }

    fn offer(&mut self, rules: &Rules, row: &Row, lane: usize, index: u64) {
        let (reference, candidate) = (row.reference[lane], row.candidate[lane]);
        let classes = (class_index(reference), class_index(candidate));
        let finite = classes == (0, 0);
        let wrong = classes.0 != classes.1 || (classes == (1, 1) && !rules.equal_nan);
        let (ulp, error) = (row.ulp.get(lane), row.error[lane]);
        let key = if finite {
            ulp
        } else if wrong {
            OTHER_CLASS
        } else {
            0
        };
        let entry = |key| Entry {
            key,
            index,
            reference,
            candidate,
            error: if finite { error } else { f64::NAN },
            ulp: finite.then_some(ulp),
        };
        if self.by_ulp.admits(key) {
            self.by_ulp.insert(entry(key));
        }
        let magnitude = if finite { error.abs().to_bits() } else { 0 };
        if self.by_error.admits(magnitude) {
            self.by_error.insert(entry(magnitude));
        }
    }

    /// Both lists with coordinates: by distance, by error.
    pub(crate) fn finish(
        &self,
        rules: &Rules,
        shape: &[u64],
    ) -> (Vec<WorstElement>, Vec<WorstElement>) {
        let all = |list: &List| {
            list.entries.iter().map(|entry| entry.element(rules, shape)).collect::<Vec<_>>()
        };
        (all(&self.by_ulp), all(&self.by_error))
    }
}

/// Words of a format's bits, one behind the other.
fn pack(format: Format, words: impl Iterator<Item = u64>) -> Vec<u8> {
    let bits = format.bits();
    let (mut bytes, mut waiting, mut held) = (Vec::new(), 0u128, 0);
    for word in words {
        waiting |= u128::from(word) << held;
        held += bits;
        while held >= 8 {
            bytes.push(waiting as u8);
            waiting >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        bytes.push(waiting as u8);
    }
    bytes
}

impl Entry {
    fn element(&self, rules: &Rules, shape: &[u64]) -> WorstElement {
        let allowed = rules.allowed(self.reference);
        let margin = (allowed > 0.0).then(|| Number(self.error.abs() / allowed));
        WorstElement {
            index: self.index,
            coordinates: coordinates(shape, self.index),
            reference: Number(self.reference),
            candidate: Number(self.candidate),
            ulp: self.ulp,
            error: Number(self.error),
            margin,
        }
    }
}
