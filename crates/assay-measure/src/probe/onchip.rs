//! The entries of the L2 cache and of shared memory.

use assay_device::StreamId;
use assay_record::{Entry, Figure};

use super::cached::{Round, Rounds, SharedReads, reads, writes};
use super::context::figure;
use super::{Probe, ProbeContext, ProbeError, Quantity};
use crate::statistics::median;

/// The probe of the L2 cache.
pub(super) const L2: Probe = Probe { title: "L2 cache", quantities: &L2_QUANTITIES, run: run_l2 };

/// The probe of shared memory.
pub(super) const SHARED: Probe =
    Probe { title: "shared memory", quantities: &SHARED_QUANTITIES, run: run_shared };

const L2_QUANTITIES: [Quantity; 3] = [
    Quantity {
        name: "l2_read",
        unit: "B/s",
        method: "a region that fits, read past the L1 caches pass after pass and summed, each line \
                 by one multiprocessor at a time",
    },
    Quantity {
        name: "l2_write",
        unit: "B/s",
        method: "a region that fits, stored again and again",
    },
    Quantity {
        name: "l2_knee",
        unit: "bytes",
        method: "the size at which reading a region again and again has lost half of what it \
                 loses from the smallest regions to those far over the cache; the curve is at \
                 l2_read",
    },
];

const SHARED_QUANTITIES: [Quantity; 2] = [
    Quantity {
        name: "shared_read",
        unit: "B/s",
        method: "16 bytes a thread and load, no bank asked twice, by every multiprocessor",
    },
    Quantity {
        name: "shared_read_per_clock",
        unit: "B/clk/SM",
        method: "the same, by the clock of each multiprocessor: bytes of a block over its cycles",
    },
];

/// Bytes that a multiprocessor of `sm_80` or newer takes from the L2 cache in a clock, at most.
const L2_BYTES_PER_CLOCK: f64 = 64.0;

/// Bytes that shared memory gives in a clock: 32 banks of 4.
const SHARED_BYTES_PER_CLOCK: f64 = 128.0;

fn run_l2(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    context.attempt_all(&L2_QUANTITIES, |context| {
        let l2 = if context.tiny { 32 << 10 } else { context.l2_bytes() };
        let rounds = Rounds::new(context, 4 * l2)?;
        let region = l2 / 4;
        let [read, write, knee] = &L2_QUANTITIES;
        let mut entries = Vec::new();
        if context.wants(read) || context.wants(knee) {
            entries.extend(context.attempt_all(&[*read, *knee], |context| {
                read_and_knee(context, &rounds, region, l2)
            }));
        }
        if context.wants(write) && context.lost().is_none() {
            entries.push(context.attempt(write, |context| {
                let all = writes(region, moves(context));
                let best = fastest(context, &rounds, &all)?;
                round_entry(context, &rounds, write, &best)
            }));
        }
        if context.lost().is_none() {
            rounds.free(context.device)?;
        }
        Ok(entries)
    })
}

fn read_and_knee(
    context: &mut ProbeContext<'_>,
    rounds: &Rounds,
    region: u64,
    l2: u64,
) -> Result<Vec<Entry>, ProbeError> {
    let [read, _, knee] = &L2_QUANTITIES;
    let best = fastest(context, rounds, &reads(region, moves(context)))?;
    let entry = round_entry(context, rounds, read, &best)?;
    let points = curve(context, rounds, &best, l2)?;
    let knee = match knee_of(&points) {
        Some(Knee { bytes, between: (below, above) }) => {
            let samples = points.len() as u64;
            let sm_clock_mhz = entry.sm_clock_mhz;
            knee.measured(Figure { value: bytes, samples, p5: below, p95: above, sm_clock_mhz })
                .trusted(0.7, "inferred from a curve; the percentiles are its points beside it")
        }
        None => knee.failed("the curve over sizes has no step"),
    };
    Ok(vec![entry.along("bytes", points), knee])
}

/// Bytes of a launch: about a millisecond.
fn moves(context: &ProbeContext<'_>) -> u64 {
    match (context.tiny, context.quick) {
        (true, _) => 64 << 10,
        (_, true) => 4 << 30,
        _ => 8 << 30,
    }
}

fn fastest(
    context: &mut ProbeContext<'_>,
    rounds: &Rounds,
    all: &[Round],
) -> Result<Round, ProbeError> {
    let few: Vec<Round> = if context.tiny {
        // Small blocks have small tiles.
        all.iter().take(1).map(|round| Round { threads: 32, ..round.clone() }).collect()
    } else {
        all.to_vec()
    };
    context.fastest(&few, &mut |device, round| {
        rounds.launch(device, StreamId::DEFAULT, round)?;
        Ok(rounds.bytes_moved(round) as f64)
    })
}

fn round_entry(
    context: &mut ProbeContext<'_>,
    rounds: &Rounds,
    quantity: &Quantity,
    best: &Round,
) -> Result<Entry, ProbeError> {
    rounds.verify(context.device, best)?;
    let bytes = rounds.bytes_moved(best) as f64;
    let rate = context.rate(bytes, &mut |device, stream| rounds.launch(device, stream, best))?;
    let mut entry = rate.entry(quantity, "every byte was checked");
    entry.method = format!("{}: {best}, {} bytes", quantity.method, best.bytes);
    let limit = clocked(context, L2_BYTES_PER_CLOCK);
    let source = "64 bytes a clock and multiprocessor at the highest clock";
    Ok(entry.within(limit, source).best_of_ways())
}

/// So many bytes a clock of every multiprocessor, a second, at the highest clock.
fn clocked(context: &ProbeContext<'_>, bytes_per_clock: f64) -> Option<f64> {
    let hertz = context.timing()?.sm_clock_max_mhz * 1e6;
    Some(bytes_per_clock * f64::from(context.multiprocessors()) * hertz)
}

/// Rates of reading over the size of the region.
///
/// Few passes a launch: over many, blocks that find their lines in the cache catch up with those
/// that fetch them, and a region far over the cache looks as if it were in it.
fn curve(
    context: &mut ProbeContext<'_>,
    rounds: &Rounds,
    best: &Round,
    l2: u64,
) -> Result<Vec<(f64, f64)>, ProbeError> {
    let sixteenths: &[u64] = match (context.tiny, context.quick) {
        (true, _) => &[4, 16, 64],
        (_, true) => &[2, 4, 6, 8, 10, 12, 13, 14, 15, 16, 17, 18, 20, 24, 32, 48, 64],
        _ => &[
            2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 32,
            36, 40, 48, 56, 64,
        ],
    };
    let samples = if context.quick { 3 } else { 9 };
    let plan = crate::Plan {
        least_samples: samples,
        most_samples: samples,
        warm_up_launches: 1,
        ..context.plan()
    };
    let mut points = Vec::new();
    for part in sixteenths {
        let bytes = l2 * part / 16;
        let moves = if context.tiny { 2 * bytes } else { (2 * bytes).max(1 << 30) };
        let round = Round { bytes, moves, ..best.clone() };
        let amount = rounds.bytes_moved(&round) as f64;
        let samples =
            context.measure(&plan, &mut |device, stream| rounds.launch(device, stream, &round))?;
        points.push((bytes as f64, amount / median(&samples.duration_ns) * 1e9));
    }
    Ok(points)
}

/// Where a curve steps down.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Knee {
    bytes: f64,
    /// The points of the curve on each side.
    between: (f64, f64),
}

/// Where a curve has come half of the way from its first values down to its last.
fn knee_of(points: &[(f64, f64)]) -> Option<Knee> {
    let part = (points.len() / 4).max(1);
    let of =
        |points: &[(f64, f64)]| median(&points.iter().map(|point| point.1).collect::<Vec<_>>());
    let (high, low) = (of(points.get(..part)?), of(points.get(points.len() - part..)?));
    if high < 1.2 * low {
        return None;
    }
    let middle = f64::midpoint(high, low);
    let step = points.windows(2).find(|pair| pair[0].1 >= middle && pair[1].1 < middle)?;
    let [(x0, y0), (x1, y1)] = [step[0], step[1]];
    let bytes = x0 + (x1 - x0) * (y0 - middle) / (y0 - y1);
    Some(Knee { bytes, between: (x0, x1) })
}

fn run_shared(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    context.attempt_all(&SHARED_QUANTITIES, |context| {
        let (threads, rounds) = if context.tiny { (64, 4) } else { (1024, 8192) };
        let reads = SharedReads::new(context, 1)?;
        let samples = if context.tiny { 3 } else { 15 };
        let bytes = SharedReads::bytes_of_block(threads, rounds) as f64;
        let mut per_clock = Vec::new();
        for _ in 0..samples {
            let cycles = reads.verify(context.device, threads, rounds)?;
            let all: Vec<f64> = cycles.into_iter().map(|cycles| cycles.max(1) as f64).collect();
            per_clock.push(bytes / median(&all));
        }
        let moved = reads.bytes_moved(threads, rounds) as f64;
        let rate = context
            .rate(moved, &mut |device, stream| reads.launch(device, stream, threads, rounds))?;
        reads.free(context.device)?;
        let [total, clock] = &SHARED_QUANTITIES;
        let limit = clocked(context, SHARED_BYTES_PER_CLOCK);
        let source = "32 banks of 4 bytes a clock and multiprocessor at the highest clock";
        let by_clock = clock
            .measured(figure(&per_clock, rate.figure.sm_clock_mhz))
            .trusted(0.95, "every byte was checked; cycles of the block itself")
            .within(Some(SHARED_BYTES_PER_CLOCK), "32 banks of 4 bytes a clock");
        Ok(vec![rate.entry(total, "every byte was checked").within(limit, source), by_clock])
    })
}

#[cfg(test)]
mod tests {
    use super::knee_of;

    #[test]
    fn the_knee_is_where_half_of_the_way_down_is_gone() {
        let curve = |sizes: &[f64], knee: f64| -> Vec<(f64, f64)> {
            sizes.iter().map(|x| (*x, if *x < knee { 10.0 } else { 4.0 })).collect()
        };
        let sizes: Vec<f64> = (1..=40).map(f64::from).collect();
        let found = knee_of(&curve(&sizes, 25.0)).expect("a step");
        assert_eq!(found.between, (24.0, 25.0));
        assert!((24.0..=25.0).contains(&found.bytes), "{found:?}");
        assert_eq!(knee_of(&curve(&sizes, 100.0)), None, "a flat curve has none");
        assert_eq!(knee_of(&[]), None);
    }
}
