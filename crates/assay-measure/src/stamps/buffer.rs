//! The buffer of stamps on the device.

use assay_device::{Allocation, Argument, BufferId, Device};
use assay_record::{Mark, StampLane};

use super::StampError;

/// The largest buffer, in bytes.
pub const MOST_BYTES: u64 = 1 << 28;

/// The phase that stands for the end of a lane.
const END: u64 = 0xFFFF;
/// Bits of a mark's first word that hold cycles; the phase is above them.
const CYCLE_BITS: u32 = 48;
/// Set beside a lane's multiprocessor once the lane has run.
const RAN: u64 = 1 << 32;

/// A buffer for the stamps of one launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StampBuffer {
    buffer: BufferId,
    lanes: u32,
    capacity: u32,
    address: u64,
}

impl StampBuffer {
    /// A buffer for `lanes` warps or blocks with up to `capacity` stamps each, the end included.
    ///
    /// # Errors
    /// [`StampError::Size`] where it holds nothing or exceeds [`MOST_BYTES`], and the device's.
    pub fn allocate(
        device: &mut dyn Device,
        lanes: u32,
        capacity: u32,
    ) -> Result<StampBuffer, StampError> {
        let size = |why: String| StampError::Size { lanes, capacity, why };
        if lanes == 0 || capacity < 2 {
            return Err(size("hold no phase: a lane needs two stamps, its end included".into()));
        }
        let bytes = u64::from(lanes).saturating_mul(words(capacity) * 8);
        if bytes > MOST_BYTES {
            return Err(size(format!("take {bytes} bytes, over the most of {MOST_BYTES}")));
        }
        let buffer = device.allocate(&Allocation { bytes, misalign: 0, poison: 0 })?;
        let address = device.address(buffer)?;
        Ok(StampBuffer { buffer, lanes, capacity, address })
    }

    /// What the kernel's parameter `AssayStamps` takes.
    pub fn argument(&self) -> Argument {
        let mut bytes = self.address.to_le_bytes().to_vec();
        bytes.extend(self.lanes.to_le_bytes());
        bytes.extend(self.capacity.to_le_bytes());
        Argument::Bytes(bytes)
    }

    /// The lanes that stamped, and how many stamps of all did not fit. Waits for the device.
    ///
    /// # Errors
    /// The faults of earlier launches.
    pub fn read(&self, device: &mut dyn Device) -> Result<(Vec<StampLane>, u64), StampError> {
        let lane_bytes = words(self.capacity) as usize * 8;
        let mut bytes = vec![0; self.lanes as usize * lane_bytes];
        device.read(self.buffer, 0, &mut bytes)?;
        let mut lanes = Vec::new();
        let mut dropped = 0;
        for (lane, bytes) in bytes.chunks_exact(lane_bytes).enumerate() {
            if let Some((lane, more)) = decoded(lane as u32, bytes, self.capacity) {
                lanes.push(lane);
                dropped += more;
            }
        }
        Ok((lanes, dropped))
    }

    /// Gives the buffer back.
    ///
    /// # Errors
    /// The device's.
    pub fn free(self, device: &mut dyn Device) -> Result<(), StampError> {
        Ok(device.free(self.buffer)?)
    }
}

/// Words of one lane.
fn words(capacity: u32) -> u64 {
    2 + 2 * u64::from(capacity)
}

/// A lane's marks up to the first that was never made, and how many did not fit.
fn decoded(lane: u32, bytes: &[u8], capacity: u32) -> Option<(StampLane, u64)> {
    let word = |index: usize| {
        let bytes = bytes.get(8 * index..8 * index + 8)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    };
    let (count, ran) = (word(0)?, word(1)?);
    if ran & RAN == 0 {
        return None;
    }
    let mark = |index: usize| {
        let (first, time_ns) = (word(2 + 2 * index)?, word(3 + 2 * index)?);
        let phase = first >> CYCLE_BITS;
        let cycles = first & ((1 << CYCLE_BITS) - 1);
        let phase = (phase != END).then_some(phase as u32);
        (first != 0).then_some(Mark { phase, cycles, time_ns })
    };
    let marks: Vec<Mark> = (0..capacity as usize).map_while(mark).collect();
    let dropped = count.saturating_sub(u64::from(capacity));
    Some((StampLane { lane, multiprocessor: ran as u32, marks }, dropped))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_lane_reads_back_as_it_was_written() {
        let lane = bytes(&[2, RAN | 7, (1 << 48) + 100, 5000, (END << 48) + 160, 5040]);
        let (lane, dropped) = decoded(3, &lane, 2).expect("a lane");
        assert_eq!((lane.lane, lane.multiprocessor, dropped), (3, 7, 0));
        let marks = [
            Mark { phase: Some(1), cycles: 100, time_ns: 5000 },
            Mark { phase: None, cycles: 160, time_ns: 5040 },
        ];
        assert_eq!(lane.marks, marks);
    }

    #[test]
    fn lanes_that_never_ran_are_none_and_stamps_past_the_end_are_counted() {
        assert!(decoded(0, &bytes(&[0; 6]), 2).is_none());
        let (lane, dropped) = decoded(0, &bytes(&[9, RAN, 1, 1, 2, 0]), 2).expect("a lane");
        assert_eq!((lane.marks.len(), dropped), (2, 7));
        let (lane, dropped) = decoded(0, &bytes(&[0, RAN, 1, 1, 0, 0]), 2).expect("a lane");
        assert_eq!((lane.marks.len(), dropped), (1, 0), "a lane that ended in the middle");
    }
}
