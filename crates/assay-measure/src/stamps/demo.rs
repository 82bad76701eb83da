//! A stamped kernel to show and to test: sums in stages, on any device.

use assay_device::{Allocation, Argument, Device, Image, Launch, StreamId};
use assay_record::{StampLane, StampOverhead};

use super::{StampBuffer, StampError};
use crate::statistics::quantile;

const PTX: &str = include_str!("../../../../kernels/measure/stamps.ptx");
const THREADS: u32 = 128;
const WARPS: u32 = THREADS / 32;
const TILE: u32 = 1024;
/// Stamps of one warp of the demonstration.
const STAMPS: u32 = 6;
/// Stamps in a row from which the cost of one is found.
const IN_A_ROW: u32 = 512;

/// The phases of the demonstration.
pub const DEMO_PHASES: [&str; 5] = ["load", "wait", "work", "reduce", "store"];

/// What the demonstration gave.
#[derive(Clone, PartialEq, Debug)]
pub struct Demo {
    /// The lanes, one a warp.
    pub lanes: Vec<StampLane>,
    /// Stamps that did not fit.
    pub dropped: u64,
}

/// Runs the demonstration with `blocks` blocks and checks its sums.
///
/// # Errors
/// [`StampError::Wrong`] where a sum is not what it must be, [`StampError::Size`] for no blocks or
/// too many, and the device's.
pub fn demo(device: &mut dyn Device, blocks: u32, rounds: u32) -> Result<Demo, StampError> {
    let too_many = || StampError::Size {
        lanes: blocks,
        capacity: STAMPS,
        why: "of four lanes each are too many".into(),
    };
    let lanes = blocks.checked_mul(WARPS).ok_or_else(too_many)?;
    let stamps = StampBuffer::allocate(device, lanes, STAMPS)?;
    let module = device.load(&Image::ptx("stamps.ptx", PTX))?;
    let input = device.allocate(&Allocation::new(u64::from(blocks) * u64::from(TILE) * 4))?;
    let output = device.allocate(&Allocation::new(u64::from(blocks) * 4))?;
    device.write(input, 0, &contents(blocks))?;
    let arguments = vec![
        Argument::Buffer(input),
        Argument::Buffer(output),
        Argument::u32(rounds),
        stamps.argument(),
    ];
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [THREADS, 1, 1],
        arguments,
        ..Launch::new(module, "staged_sum")
    };
    device.launch(StreamId::DEFAULT, &launch)?;
    let (lanes, dropped) = stamps.read(device)?;
    let mut sums = vec![0; blocks as usize * 4];
    device.read(output, 0, &mut sums)?;
    stamps.free(device)?;
    device.free(input)?;
    device.free(output)?;
    device.unload(module)?;
    checked(&sums)?;
    Ok(Demo { lanes, dropped })
}

/// Small whole numbers, so that every order of a sum gives the same.
fn element(index: u64) -> f32 {
    (index * 7 % 13) as f32
}

fn contents(blocks: u32) -> Vec<u8> {
    let count = u64::from(blocks) * u64::from(TILE);
    (0..count).flat_map(|index| element(index).to_le_bytes()).collect()
}

fn checked(sums: &[u8]) -> Result<(), StampError> {
    for (block, bytes) in sums.chunks_exact(4).enumerate() {
        let found = bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
        let tile = block as u64 * u64::from(TILE)..(block as u64 + 1) * u64::from(TILE);
        let wanted: f32 = tile.map(element).sum();
        if found != wanted {
            return Err(StampError::Wrong { block: block as u32, found, wanted });
        }
    }
    Ok(())
}

/// What one stamp costs: the cycles between stamps with nothing between them, by one warp alone.
///
/// # Errors
/// The device's.
pub fn overhead(device: &mut dyn Device) -> Result<Option<StampOverhead>, StampError> {
    let stamps = StampBuffer::allocate(device, 1, IN_A_ROW)?;
    let module = device.load(&Image::ptx("stamps.ptx", PTX))?;
    let launch = Launch {
        block: [32, 1, 1],
        arguments: vec![stamps.argument()],
        ..Launch::new(module, "stamp_cost")
    };
    // Once to have the code in the instruction cache.
    device.launch(StreamId::DEFAULT, &launch)?;
    device.launch(StreamId::DEFAULT, &launch)?;
    let (lanes, _) = stamps.read(device)?;
    stamps.free(device)?;
    device.unload(module)?;
    Ok(lanes.first().and_then(cost))
}

/// The first stamp and the end read the device's clock too, which the others do not.
fn cost(lane: &StampLane) -> Option<StampOverhead> {
    let marks = lane.marks.get(1..lane.marks.len().checked_sub(1)?)?;
    let mut gaps: Vec<f64> =
        marks.windows(2).map(|pair| pair[1].cycles.saturating_sub(pair[0].cycles) as f64).collect();
    gaps.sort_by(f64::total_cmp);
    (!gaps.is_empty()).then(|| StampOverhead {
        cycles_median: quantile(&gaps, 0.5),
        cycles_p5: quantile(&gaps, 0.05),
        cycles_p95: quantile(&gaps, 0.95),
        samples: gaps.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::{statistics, warnings};

    #[test]
    fn the_demonstration_is_right_and_stamps_every_phase_of_every_warp() {
        let mut device = assay_device::open("emulator:sm_90").expect("an emulator");
        let demo = demo(&mut *device, 6, 20).expect("stamps");
        assert_eq!((demo.lanes.len(), demo.dropped), (24, 0));
        assert_eq!(warnings(&demo.lanes, demo.dropped), Vec::<String>::new());
        let phases = DEMO_PHASES.map(str::to_owned);
        let found = statistics(&phases, &demo.lanes);
        let names: Vec<&str> = found.iter().map(|phase| phase.phase.as_str()).collect();
        assert_eq!(names, DEMO_PHASES);
        assert!(found.iter().all(|phase| phase.spans == 24 && phase.cycles_median > 0.0));
        // Waits hold what other warps do meanwhile; the other phases only their own instructions.
        let (load, work) = (found[0].cycles_median, found[2].cycles_median);
        assert!(work > 10.0 * load, "20 rounds an element are most of the work: {found:?}");
    }

    #[test]
    fn more_work_shows_in_its_own_phase_alone() {
        let mut device = assay_device::open("emulator:sm_90").expect("an emulator");
        let mut medians = |rounds: u32| {
            let lanes = demo(&mut *device, 1, rounds).expect("stamps").lanes;
            statistics(&[], &lanes).iter().map(|phase| phase.cycles_median).collect::<Vec<f64>>()
        };
        let (little, much) = (medians(1), medians(200));
        assert!(much[2] > 5.0 * little[2], "{little:?} {much:?}");
        for phase in [0, 4] {
            assert!(much[phase] < 2.0 * little[phase] + 10.0, "{little:?} {much:?}");
        }
    }

    #[test]
    fn a_stamp_has_a_cost_that_can_be_measured() {
        let mut device = assay_device::open("emulator:sm_90").expect("an emulator");
        let cost = overhead(&mut *device).expect("stamps").expect("a cost");
        assert_eq!(cost.samples, 509);
        assert!(cost.cycles_median >= 1.0 && cost.cycles_p5 <= cost.cycles_median, "{cost:?}");
    }

    #[test]
    fn stamps_that_are_off_leave_not_one_instruction() {
        let off = include_str!("../../../../kernels/measure/stamps_off.ptx");
        let plain = include_str!("../../../../kernels/measure/staged_plain.ptx");
        assert!(off == plain, "the header changes what it is included into");
        assert!(PTX.contains("%clock64") && !off.contains("%clock64"), "and it can: this is on");
    }

    #[test]
    fn buffers_that_cannot_be_are_refused_before_the_device_is_asked() {
        let mut device = assay_device::open("emulator").expect("an emulator");
        for (lanes, capacity) in [(0, 8), (1, 1), (u32::MAX, u32::MAX)] {
            let refused = StampBuffer::allocate(&mut *device, lanes, capacity);
            assert!(matches!(refused, Err(StampError::Size { .. })), "{refused:?}");
        }
        assert!(matches!(demo(&mut *device, 0, 1), Err(StampError::Size { .. })));
        assert!(matches!(demo(&mut *device, u32::MAX, 1), Err(StampError::Size { .. })));
    }
}
