//! The entries of device memory: read, write, copy, triad, and gathering at random.

use assay_device::StreamId;
use assay_record::Entry;

use super::stream::{Motion, Streams, Variant, variants};
use super::{Probe, ProbeContext, ProbeError, Quantity, Rate};
use crate::{Cache, Plan};

/// The probe.
pub(super) const PROBE: Probe = Probe { title: "device memory", quantities: &QUANTITIES, run };

const QUANTITIES: [Quantity; 5] = [
    Quantity {
        name: "dram_read",
        unit: "B/s",
        method: "random words read once and summed, the fastest of several ways to load",
    },
    Quantity {
        name: "dram_write",
        unit: "B/s",
        method: "random words stored once, the fastest of several ways to store",
    },
    Quantity {
        name: "dram_copy",
        unit: "B/s",
        method: "a buffer of random words copied, bytes read and bytes written counted",
    },
    Quantity {
        name: "dram_triad",
        unit: "B/s",
        method: "a = b + 3 c over random words, bytes read and bytes written counted",
    },
    Quantity {
        name: "dram_gather",
        unit: "B/s",
        method: "each 16 bytes of a buffer once, in an order without neighbours; the bytes asked \
                 for are counted, not those that come with them",
    },
];

const MOTIONS: [Motion; 5] =
    [Motion::Read, Motion::Write, Motion::Copy, Motion::Triad, Motion::Gather];

fn run(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    context.attempt_all(&QUANTITIES, |context| {
        let streams = Streams::new(context, buffer_bytes(context))?;
        let mut entries = Vec::new();
        for (quantity, motion) in QUANTITIES.iter().zip(MOTIONS) {
            if context.wants(quantity) && context.lost().is_none() {
                let made =
                    context.attempt(quantity, |context| entry(context, &streams, quantity, motion));
                entries.push(made);
            }
        }
        if context.lost().is_none() {
            streams.free(context.device)?;
        }
        Ok(entries)
    })
}

/// Many times the L2 cache, and no more than a sixteenth of the memory.
pub(super) fn buffer_bytes(context: &ProbeContext<'_>) -> u64 {
    if context.tiny {
        return 64 << 10;
    }
    let wanted: u64 = if context.quick { 2 << 30 } else { 4 << 30 };
    wanted.min(context.device.facts().memory_bytes / 16).max(1 << 20)
}

/// The entry of a motion, by the fastest way to make it.
pub(super) fn entry(
    context: &mut ProbeContext<'_>,
    streams: &Streams,
    quantity: &Quantity,
    motion: Motion,
) -> Result<Entry, ProbeError> {
    let mut all = variants(motion, context.architecture());
    if context.tiny {
        all.truncate(2);
    } else if context.quick {
        all.retain(Variant::is_usual);
    }
    let bytes = streams.bytes_moved(motion) as f64;
    let best = context.fastest(&all, &mut |device, variant| {
        streams.launch(device, StreamId::DEFAULT, variant).map(|()| bytes)
    })?;
    streams.verify(context.device, motion, &best)?;
    // What only reads starts without a byte in the cache. What writes starts with the lines in it
    // that the launch before has written, and must first write them back, as its own last ones
    // will be by the next: that evens out.
    let cache = if motion.only_reads() { Cache::Cold } else { Cache::Warm };
    let plan = Plan { cache, ..context.plan() };
    let samples =
        context.measure(&plan, &mut |device, stream| streams.launch(device, stream, &best))?;
    let rate = Rate::of(bytes, &samples);
    let mut entry = rate.entry(quantity, "every byte was checked");
    entry.method = format!("{}: {best}, {} bytes", quantity.method, bytes as u64);
    let limit = context.timing().map(|facts| facts.memory_bytes_per_s_max());
    let source = "two transfers a clock of the memory over the width of its bus";
    Ok(entry.within(limit, source).best_of_ways())
}
