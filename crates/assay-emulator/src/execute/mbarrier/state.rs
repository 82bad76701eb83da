//! What an `mbarrier` object holds, and how it goes from phase to phase.

/// The largest count of an object, and of bytes to come.
pub(super) const LARGEST_COUNT: u64 = (1 << 20) - 1;

/// The contents of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// Arrivals of each later phase.
    pub(super) expected: u64,
    /// Arrivals still to come in this phase.
    pub(super) pending: u64,
    /// Bytes still to come; negative where more have come than were announced so far.
    pub(super) bytes: i64,
    /// The parity of the phase.
    pub(super) phase: u64,
}

impl State {
    /// An object after `mbarrier.init`; `None` for a count out of range.
    pub(super) fn new(count: u64) -> Option<State> {
        let valid = (1..=LARGEST_COUNT).contains(&count);
        valid.then_some(State { expected: count, pending: count, bytes: 0, phase: 0 })
    }

    pub(super) fn open(word: u64) -> State {
        State {
            expected: word & LARGEST_COUNT,
            pending: word >> 20 & LARGEST_COUNT,
            bytes: ((word << 1) as i64) >> 41,
            phase: word >> 63,
        }
    }

    pub(super) fn close(self) -> u64 {
        let bytes = self.bytes as u64 & 0x7f_ffff;
        self.expected | self.pending << 20 | bytes << 40 | self.phase << 63
    }

    /// Starts the next phase when this one is complete (ISA 9.7.13.15.6).
    fn advance(mut self) -> State {
        if self.pending == 0 && self.bytes == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
        }
        self
    }

    /// `count` arrivals.
    pub(super) fn arrive(mut self, count: u64) -> Result<State, String> {
        if !(1..=LARGEST_COUNT).contains(&count) {
            return Err(format!("an arrival with a count of {count}; 1 to 1048575 are valid"));
        }
        self.pending = self.pending.checked_sub(count).ok_or_else(|| {
            let pending = self.pending;
            format!("{count} arrivals at an mbarrier that has {pending} pending in this phase")
        })?;
        Ok(self.advance())
    }

    /// `count` threads leave: later phases expect fewer.
    pub(super) fn drop(mut self, count: u64) -> Result<State, String> {
        let expected = self.expected;
        self.expected = expected.checked_sub(count).ok_or_else(|| {
            format!("{count} threads drop out of an mbarrier that expects {expected}")
        })?;
        Ok(self)
    }

    /// One more arrival to come in this phase.
    pub(super) fn one_more(mut self) -> Result<State, String> {
        if self.pending == LARGEST_COUNT {
            return Err("more than 1048575 arrivals pending at an mbarrier".to_owned());
        }
        self.pending += 1;
        Ok(self)
    }

    /// `bytes` more to come.
    pub(super) fn expect(self, bytes: u64) -> Result<State, String> {
        self.with_bytes(i128::from(self.bytes) + i128::from(bytes))
    }

    /// `bytes` have come.
    pub(super) fn complete(self, bytes: u64) -> Result<State, String> {
        Ok(self.with_bytes(i128::from(self.bytes) - i128::from(bytes))?.advance())
    }

    fn with_bytes(self, bytes: i128) -> Result<State, String> {
        if bytes.unsigned_abs() > u128::from(LARGEST_COUNT) {
            return Err(format!("{bytes} bytes to come at an mbarrier; at most 1048575 can be"));
        }
        Ok(State { bytes: bytes as i64, ..self })
    }
}

/// What the phase of an object waits for.
pub(crate) fn describe(word: u64) -> String {
    let State { expected, pending, bytes, phase } = State::open(word);
    format!(
        "{pending} of {expected} arrivals and {bytes} bytes to come in a phase of parity {phase}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_its_parts_apart() {
        for bytes in [-1_048_575, -5, 0, 1, 1_048_575] {
            let state = State { expected: 1000, pending: LARGEST_COUNT, bytes, phase: 1 };
            assert_eq!(State::open(state.close()), state);
        }
    }

    #[test]
    fn the_last_arrival_starts_the_next_phase() {
        let state = State::new(2).unwrap();
        let once = state.arrive(1).unwrap();
        assert_eq!((once.pending, once.phase), (1, 0));
        let twice = once.arrive(1).unwrap();
        assert_eq!((twice.pending, twice.phase), (2, 1));
        assert!(twice.arrive(3).is_err() && twice.arrive(0).is_err());
    }

    #[test]
    fn a_phase_waits_for_bytes_as_for_arrivals_in_any_order() {
        let early = State::new(1).unwrap().complete(16).unwrap();
        assert_eq!((early.bytes, early.phase), (-16, 0));
        let arrived = early.expect(32).unwrap().arrive(1).unwrap();
        assert_eq!((arrived.pending, arrived.bytes, arrived.phase), (0, 16, 0));
        let done = arrived.complete(16).unwrap();
        assert_eq!((done.pending, done.bytes, done.phase), (1, 0, 1));
    }

    #[test]
    fn counts_out_of_range_are_refused() {
        assert!(State::new(0).is_none() && State::new(LARGEST_COUNT + 1).is_none());
        let state = State::new(LARGEST_COUNT).unwrap();
        assert!(state.one_more().is_err());
        assert!(state.expect(LARGEST_COUNT).unwrap().expect(1).is_err());
        assert!(state.complete(LARGEST_COUNT).unwrap().complete(1).is_err());
        assert!(state.drop(LARGEST_COUNT + 1).is_err());
    }
}
