//! Pieces of both arrays, read by two threads while the pieces before are compared.
//!
//! However large the arrays are, each side holds [`BUFFERS`] pieces at most.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use crate::compare::{Pair, Plan, Side};
use crate::source::{Source, SourceError};

/// Pieces of one side that are held: one that is compared, one that waits, one that is read.
const BUFFERS: usize = 3;

/// Takes all pieces in order; what stops the reading is returned, with its side.
pub(crate) fn each_piece(
    plan: &Plan,
    reference: &mut dyn Source,
    candidate: &mut dyn Source,
    take: &mut dyn FnMut(Pair<'_>, (u64, u64)),
) -> Option<(Side, SourceError)> {
    let mut pieces = plan.pieces();
    if pieces.len() <= 1 {
        // Threads would take longer to start than there is to read.
        let place = pieces.next()?;
        let mut buffers = (Vec::new(), Vec::new());
        return match plan.read(reference, candidate, place, &mut buffers) {
            Ok(pair) => {
                take(pair, place);
                None
            }
            Err(stopped) => Some(stopped),
        };
    }
    thread::scope(|scope| {
        let mut one = Feed::start(scope, plan, (Side::Reference, reference), pieces.clone());
        let mut other = Feed::start(scope, plan, (Side::Candidate, candidate), pieces.clone());
        for place in pieces {
            let pair = match (one.next(place), other.next(place)) {
                (Ok(one), Ok(other)) => (one, other),
                (Err(error), _) => return Some((Side::Reference, error)),
                (_, Err(error)) => return Some((Side::Candidate, error)),
            };
            take(pair, place);
        }
        None
    })
}

/// The pieces of one side.
enum Feed<'a> {
    /// All of it lies in memory.
    Memory(&'a dyn Source),
    /// A thread reads them.
    Thread {
        /// The piece that was taken last.
        piece: Vec<u8>,
        read: Receiver<Result<Vec<u8>, SourceError>>,
        /// Buffers to read into.
        spare: Sender<Vec<u8>>,
    },
}

impl<'a> Feed<'a> {
    fn start<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        plan: &'a Plan,
        (side, source): (Side, &'a mut dyn Source),
        pieces: impl Iterator<Item = (u64, u64)> + Send + 'scope,
    ) -> Feed<'a>
    where
        'a: 'scope,
    {
        if !plan.rounds(side) && source.in_memory(0, plan.elements).is_some() {
            return Feed::Memory(source);
        }
        let (spare, empty) = channel();
        let (give, read) = channel();
        for _ in 0..BUFFERS {
            // Its receiver is here.
            let _ = spare.send(Vec::new());
        }
        scope.spawn(move || {
            for place in pieces {
                let Ok(mut buffer) = empty.recv() else { return };
                let result = plan.fetch(side, source, place, &mut buffer);
                let stops = result.is_err();
                if give.send(result.map(|()| buffer)).is_err() || stops {
                    return;
                }
            }
        });
        Feed::Thread { piece: Vec::new(), read, spare }
    }

    fn next(&mut self, (first, count): (u64, u64)) -> Result<&[u8], SourceError> {
        match self {
            Feed::Memory(source) => source
                .in_memory(first, count)
                .ok_or_else(|| SourceError::Broken("it is in memory no more".to_owned())),
            Feed::Thread { piece, read, spare } => {
                let stopped = || SourceError::Broken("its reading stopped".to_owned());
                let old = std::mem::replace(piece, read.recv().map_err(|_| stopped())??);
                if old.capacity() > 0 {
                    // The thread may have read all there is.
                    let _ = spare.send(old);
                }
                Ok(piece)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use assay_num::Format;

    use super::BUFFERS;
    use crate::compare::{Options, compare, compare_sources};
    use crate::source::{Source, SourceError};
    use crate::{BLOCK, Tensor};

    /// An array whose elements are made as they are read, and what was asked of it.
    struct Made {
        shape: [u64; 1],
        /// Elements from here on differ.
        from: u64,
        /// Elements that can be read.
        readable: u64,
        largest: u64,
        /// The addresses of buffers.
        buffers: BTreeSet<usize>,
    }

    impl Made {
        fn new(elements: u64, from: u64, readable: u64) -> Made {
            Made { shape: [elements], from, readable, largest: 0, buffers: BTreeSet::new() }
        }

        fn bytes(&self, first: u64, count: u64) -> impl Iterator<Item = u8> {
            let value = |at| (at % 1000) as f32 + if at >= self.from { 0.25 } else { 0.0 };
            (first..first + count).flat_map(move |at| value(at).to_le_bytes())
        }
    }

    impl Source for Made {
        fn format(&self) -> Format {
            Format::F32
        }

        fn shape(&self) -> &[u64] {
            &self.shape
        }

        fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
            if first + count > self.readable {
                return Err(SourceError::Broken("it ends".to_owned()));
            }
            out.clear();
            out.extend(self.bytes(first, count));
            self.largest = self.largest.max(count);
            self.buffers.insert(out.as_ptr().addr());
            Ok(())
        }
    }

    const ELEMENTS: u64 = 9_000_007;

    #[test]
    fn a_large_array_is_compared_as_in_memory_and_few_pieces_of_it_are_held() {
        let (mut one, mut other) =
            (Made::new(ELEMENTS, u64::MAX, ELEMENTS), Made::new(ELEMENTS, 5_000_000, ELEMENTS));
        let tensor = |made: &Made| {
            Tensor::new(Format::F32, &made.shape, made.bytes(0, ELEMENTS).collect()).expect("one")
        };
        let (whole, changed) = (tensor(&one), tensor(&other));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
        let options = Options::default();
        let expected = compare(&whole.view(), &changed.view(), &options).expect("compared");
        let found = pool.install(|| compare_sources(&mut one, &mut other, &options));
        assert_eq!(found.expect("compared"), expected);
        assert_eq!(expected.first_different, Some(vec![5_000_000]));
        for made in [one, other] {
            assert!(made.largest <= 64 * BLOCK as u64, "{} elements at once", made.largest);
            assert!(made.buffers.len() <= BUFFERS, "{} buffers", made.buffers.len());
        }
    }

    #[test]
    fn what_was_read_before_the_end_of_either_side_is_compared() {
        for side in 0..2 {
            let mut sides = [0, 1].map(|at| {
                let readable = if at == side { 5_000_000 } else { ELEMENTS };
                Made::new(ELEMENTS, u64::MAX, readable)
            });
            let [one, other] = &mut sides;
            let found = compare_sources(one, other, &Options::default()).expect("compared");
            assert!(found.broke_off.is_some() && found.compared > 0, "{:?}", found.broke_off);
            assert!(found.compared <= 5_000_000, "{}", found.compared);
            assert_eq!(found.identical, found.compared);
        }
    }
}
