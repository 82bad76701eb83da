//! Every variant of the memory probes' kernels on one device, a row each, to choose from.
//!
//!     cargo run -p assay-measure --example probe_variants -- cuda [l2]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its rows are for people")]

use assay_device::{Device, DeviceError, StreamId};
use assay_measure::probe::cached::{Round, Rounds, SharedReads, reads, writes};
use assay_measure::probe::chase::{Chases, Cycle, Level};
use assay_measure::probe::stream::{Motion, Streams, variants};
use assay_measure::probe::{Head, ProbeContext, ProbeError, Progress, probes, take};

/// What prints the rows of one part.
type Section = fn(&mut ProbeContext<'_>) -> Result<(), ProbeError>;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "cuda".into());
    let only = std::env::args().nth(2).unwrap_or_default();
    let mut device = match assay_device::open(&name) {
        Ok(device) => device,
        Err(error) => return eprintln!("error: {error}"),
    };
    eprintln!("{} {:?}", device.facts().name, device.timing_facts());
    if only.starts_with("dossier") {
        return dossier(&mut *device, only == "dossier-quick");
    }
    let mut context = ProbeContext::new(&mut *device, false, 1);
    let sections: [(&str, Section); 5] = [
        ("shared", shared),
        ("l2", l2),
        ("latencies", latencies),
        ("tlb", tlb),
        ("streams", streams),
    ];
    for (name, section) in sections {
        if name.contains(&only) {
            println!("== {name}");
            if let Err(error) = section(&mut context) {
                println!("{name}: {error}");
            }
        }
    }
}

/// The dossier of all probes, as JSON.
fn dossier(device: &mut dyn Device, quick: bool) {
    let mut context = ProbeContext::new(device, quick, 1);
    let (assay_version, command) = ("0".into(), "probe_variants".into());
    let head = Head { assay_version, command, date: String::new() };
    let began = std::time::Instant::now();
    let dossier = take(&mut context, &probes(), head, &mut |step| {
        if let Progress::Finished(probe, entries) = step {
            let seconds = began.elapsed().as_secs_f64();
            eprintln!("{seconds:.1} s: {}, {} entries", probe.title, entries.len());
        }
    });
    match dossier.to_json() {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("error: {error}"),
    }
}

/// Nanoseconds of each of `samples` launches, in order of size.
fn times(
    device: &mut dyn Device,
    samples: usize,
    mut work: impl FnMut(&mut dyn Device) -> Result<(), DeviceError>,
) -> Result<Vec<f64>, ProbeError> {
    let (start, end) = (device.create_event()?, device.create_event()?);
    work(device)?;
    let mut all = Vec::new();
    for _ in 0..samples {
        device.record_event(start, StreamId::DEFAULT)?;
        work(device)?;
        device.record_event(end, StreamId::DEFAULT)?;
        all.push(device.elapsed_ns(start, end)? as f64);
    }
    device.destroy_event(start)?;
    device.destroy_event(end)?;
    all.sort_by(f64::total_cmp);
    Ok(all)
}

fn streams(context: &mut ProbeContext<'_>) -> Result<(), ProbeError> {
    let architecture = context.architecture();
    let streams = Streams::new(context, 4 << 30)?;
    let device = &mut *context.device;
    for motion in [Motion::Read, Motion::Write, Motion::Copy, Motion::Triad, Motion::Gather] {
        let mut rows = Vec::new();
        for variant in variants(motion, architecture) {
            let timed =
                times(device, 5, |device| streams.launch(device, StreamId::DEFAULT, &variant));
            match timed {
                Ok(ns) => {
                    let rate = streams.bytes_moved(motion) as f64 / ns[2];
                    println!("{motion:?} {rate:.1} GB/s {variant}");
                    rows.push((rate, variant));
                }
                Err(error) => println!("{variant}: {error}"),
            }
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (rate, variant) in rows.iter().take(4) {
            let proof = streams.verify(device, motion, variant);
            println!("TOP {motion:?} {rate:.1} GB/s {variant}: {proof:?}");
        }
        if let Some((_, variant)) = rows.first() {
            let ns =
                times(device, 40, |device| streams.launch(device, StreamId::DEFAULT, variant))?;
            let rate = |ns: f64| streams.bytes_moved(motion) as f64 / ns;
            println!(
                "BEST {motion:?} median {:.1} best {:.1} worst {:.1}",
                rate(ns[20]),
                rate(ns[0]),
                rate(ns[39])
            );
        }
    }
    streams.free(device)
}

fn l2(context: &mut ProbeContext<'_>) -> Result<(), ProbeError> {
    let rounds = Rounds::new(context, 256 << 20)?;
    let device = &mut *context.device;
    for (title, all) in [("read", reads(16 << 20, 4 << 30)), ("write", writes(16 << 20, 4 << 30))] {
        let mut rows = Vec::new();
        for round in all {
            let timed = times(device, 5, |device| rounds.launch(device, StreamId::DEFAULT, &round));
            match timed {
                Ok(ns) => rows.push((rounds.bytes_moved(&round) as f64 / ns[2], round)),
                Err(error) => println!("{round}: {error}"),
            }
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (rate, round) in &rows {
            println!("{title} {rate:.1} GB/s {round}");
        }
        let Some((_, best)) = rows.first() else { continue };
        println!("{best}: {:?}", rounds.verify(device, best));
        for mib in [1u64, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256] {
            let bytes = mib << 20;
            let round = Round { bytes, moves: (2 * bytes).max(1 << 30), ..best.clone() };
            let ns = times(device, 5, |device| rounds.launch(device, StreamId::DEFAULT, &round))?;
            let rate = rounds.bytes_moved(&round) as f64 / ns[2];
            println!("CURVE {title} {mib} MiB {rate:.1} GB/s");
        }
    }
    rounds.free(device)
}

fn shared(context: &mut ProbeContext<'_>) -> Result<(), ProbeError> {
    for (threads, each) in [(256, 1), (512, 1), (1024, 1), (512, 2), (1024, 2), (512, 4)] {
        let reads = SharedReads::new(context, each)?;
        let device = &mut *context.device;
        let rounds = 4096;
        let mut cycles = reads.verify(device, threads, rounds)?;
        cycles.sort_unstable();
        let bytes = SharedReads::bytes_of_block(threads, rounds) * u64::from(each);
        let middle = cycles[cycles.len() / 2];
        let ns =
            times(device, 9, |device| reads.launch(device, StreamId::DEFAULT, threads, rounds))?;
        println!(
            "shared {threads} threads x {each}: {:.2} B/clk/SM, {:.1} GB/s",
            bytes as f64 / middle as f64,
            reads.bytes_moved(threads, rounds) as f64 / ns[4]
        );
        reads.free(device)?;
    }
    Ok(())
}

fn latencies(context: &mut ProbeContext<'_>) -> Result<(), ProbeError> {
    let chases = Chases::new(context)?;
    let device = &mut *context.device;
    let cycle = Cycle::random(1024, 1);
    for _ in 0..3 {
        println!("shared {:?}", chases.shared(device, &cycle, 1024, 16384)?);
    }
    for (level, stride, sizes) in [
        (Level::L1, 64u64, vec![4u64, 16, 64, 128, 192, 224, 256, 512]),
        (Level::L1, 128, vec![16, 64, 128]),
        (
            Level::L2,
            128,
            vec![
                64, 256, 1024, 4096, 8192, 12288, 16384, 20480, 24576, 28672, 32768, 40960, 49152,
                57344, 65536, 98304, 131_072, 262_144, 524_288,
            ],
        ),
    ] {
        for kib in sizes {
            let nodes = ((kib << 10) / stride) as u32;
            let buffer = device.allocate_bare(kib << 10)?;
            let place = (0..u64::from(nodes)).map(|node| node * stride).collect();
            let mut chase = chases.lay(device, buffer, place, Cycle::random(nodes, kib))?;
            let warm = nodes.min(1 << 19);
            let mut found = Vec::new();
            chase.go(device, level, warm, 16)?;
            for _ in 0..3 {
                let warm = if level == Level::L1 { nodes } else { 0 };
                found.push(chase.go(device, level, warm, 16384)?);
            }
            found.sort_by(|a, b| a.cycles.total_cmp(&b.cycles));
            let each = match level {
                Level::L1 => String::new(),
                Level::L2 => histogram(&chase.each(device, 0, 8192)?),
            };
            println!(
                "{level:?} {kib} KiB by {stride}: {:.1} cycles {:.1} ns ({:.1}..{:.1}) {each}",
                found[1].cycles, found[1].ns, found[0].cycles, found[2].cycles
            );
            device.free(buffer)?;
        }
    }
    chases.free(device)
}

/// How many steps took how many cycles, in bins of 16.
fn histogram(steps: &[u32]) -> String {
    let mut bins = std::collections::BTreeMap::new();
    for step in steps {
        *bins.entry(step / 16 * 16).or_insert(0) += 1;
    }
    let shown = bins.iter().filter(|(_, count)| **count >= steps.len() / 100);
    shown.map(|(bin, count)| format!("{bin}:{count}")).collect::<Vec<_>>().join(" ")
}

fn tlb(context: &mut ProbeContext<'_>) -> Result<(), ProbeError> {
    let chases = Chases::new(context)?;
    let device = &mut *context.device;
    let bytes = 64u64 << 30;
    let buffer = device.allocate_bare(bytes)?;
    for nodes in [4096u32, 16384] {
        for shift in 24..=36 {
            let span = 1u64 << shift;
            let stride = span / u64::from(nodes);
            if stride < 128 {
                continue;
            }
            // A line of its own in each stride, so that all do not meet in the same sets.
            let lines = stride / 128;
            let place = (0..u64::from(nodes))
                .map(|node| node * stride + (node * 0x9E37_79B1 % lines) * 128)
                .collect();
            let mut chase = chases.lay(device, buffer, place, Cycle::random(nodes, 3))?;
            chase.go(device, Level::L2, nodes, 16)?;
            let found = chase.go(device, Level::L2, 0, 32768)?;
            let each = histogram(&chase.each(device, 0, 8192)?);
            let mib = span >> 20;
            println!(
                "{nodes} lines in {mib} MiB: {:.1} cycles {:.1} ns {each}",
                found.cycles, found.ns
            );
        }
    }
    device.free(buffer)?;
    chases.free(device)
}
