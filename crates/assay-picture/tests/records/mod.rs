//! Fixed records to draw, of a made-up device.

use assay_picture::{
    Distributions, Histogram, Roof, RoofKind, RoofSource, Roofline, RooflinePoint, Rung,
};
use assay_record::{
    Dossier, Effect, Entry, ErrorMap, Figure, Mark, PhaseStatistics, RejectedSample, Rounds,
    STAMPS_SCHEMA, Series, StampLane, StampOverhead, StampRecord, Verdict, Versus, Watched,
};

fn roof(name: &str, kind: RoofKind, value: f64) -> Roof {
    let source = RoofSource::Measured { sm_clock_mhz: Some(1755.0) };
    Roof { name: name.to_owned(), kind, value, source }
}

fn point(name: &str, bytes: f64, flops: f64, seconds: f64) -> RooflinePoint {
    let name = name.to_owned();
    RooflinePoint { name, bytes, flops, seconds, compute: None, memory: None }
}

/// A device with five compute roofs, two of memory and one from paper.
pub(crate) fn device() -> Roofline {
    let (memory, compute) = (RoofKind::Memory, RoofKind::Compute);
    let paper = Roof { source: RoofSource::Datasheet, ..roof("dram_bus", memory, 4.8e12) };
    let dram = |point: RooflinePoint| RooflinePoint { memory: Some("dram_read".into()), ..point };
    let f32 = |point: RooflinePoint| RooflinePoint { compute: Some("fma_f32".into()), ..point };
    Roofline {
        title: "Made-up H100-like device, driver 580, 2026-11-30".into(),
        roofs: vec![
            roof("dram_read", memory, 4.1e12),
            roof("l2_read", memory, 9.2e12),
            paper,
            roof("fma_f64", compute, 33e12),
            roof("fma_f32", compute, 60e12),
            roof("mma_f16", compute, 640e12),
            roof("wgmma_bf16", compute, 880e12),
            roof("wgmma_e4m3", compute, 1.75e15),
        ],
        points: vec![
            f32(dram(point("softmax_f32", 2.0 * 64e6, 5.0 * 16e6, 40e-6))),
            f32(dram(point("rms_norm_bf16 rows=4096", 64e6, 4.0 * 16e6, 18.5e-6))),
            dram(RooflinePoint {
                compute: Some("wgmma_bf16".into()),
                ..point("matmul_bf16", 3.0 * 8192.0 * 8192.0 * 2.0, 2.0 * 8192f64.powi(3), 1.4e-3)
            }),
            f32(dram(point("miscounted_copy", 512e6, 16e6, 60e-6))),
            point("no_bytes", 0.0, 1.0, 1.0),
        ],
    }
}

/// Many kernels at nearly one place, and roofs close together.
pub(crate) fn crowded() -> Roofline {
    let mut record = device();
    record.title = "Kernels & roofs <crowded>".into();
    for n in 0..12 {
        let rate = 1.0 + 0.01 * f64::from(n);
        record.roofs.push(roof(&format!("mma_kind_{n}"), RoofKind::Compute, 600e12 * rate));
    }
    for n in 0..50 {
        let part = 1.0 + 0.002 * f64::from(n);
        record.points.push(point(&format!("kernel_{n}"), 64e6, 16e6 * part, 20e-6 * part));
    }
    record
}

/// Figures that no honest record has.
pub(crate) fn odd_roofline() -> Roofline {
    let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-300, 1e300];
    let mut record = device();
    record.title = "x".repeat(300);
    record.roofs.extend(odd.map(|value| roof("odd", RoofKind::Compute, value)));
    record.roofs.extend(odd.map(|value| roof("odd", RoofKind::Memory, value)));
    record.points.extend(odd.map(|value| point(&"y".repeat(200), value, value, 1e-3)));
    record.points.push(point("far", 1e-300, 1e300, 1e-300));
    record
}

/// Noise of a fixed generator from 0 to 1.
fn noise(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as f64 / (1u64 << 31) as f64
}

/// 400 samples around 18.5 us, and 30 of a sagged clock.
pub(crate) fn samples() -> Histogram {
    let mut seed = 7;
    let mut around = |ns: f64, width: f64| {
        ns + width * (noise(&mut seed) + noise(&mut seed) + noise(&mut seed) - 1.5)
    };
    Histogram {
        title: "rms_norm_bf16 rows=4096, duration".into(),
        accepted_ns: (0..400).map(|_| around(18_500.0, 220.0)).collect(),
        rejected_ns: (0..30).map(|_| around(19_600.0, 150.0)).collect(),
        throttled_ns: Vec::new(),
        median_interval_ns: Some((18_470.0, 18_530.0)),
    }
}

pub(crate) fn odd_samples() -> Histogram {
    Histogram {
        title: "one sample, and some that are none".into(),
        accepted_ns: vec![f64::NAN, 5.0, f64::INFINITY],
        rejected_ns: vec![f64::NEG_INFINITY],
        throttled_ns: vec![f64::NAN, 7.0],
        median_interval_ns: Some((f64::NAN, 0.0)),
    }
}

pub(crate) fn rungs() -> Vec<Rung> {
    let rung = |name: &str, cycles: f64, spread: f64| Rung {
        name: name.to_owned(),
        cycles,
        nanoseconds: Some(cycles / 1.755),
        spread: Some((cycles - spread, cycles + 2.0 * spread)),
    };
    vec![
        rung("shared", 29.0, 0.3),
        rung("l1", 38.0, 0.5),
        rung("cluster_shared", 190.0, 6.0),
        rung("l2_near", 215.0, 9.0),
        rung("l2_far", 262.0, 12.0),
        rung("dram", 640.0, 40.0),
        rung("tlb_step", 1100.0, 150.0),
    ]
}

/// Stamps of made-up lanes through phases in turn.
pub(crate) fn stamps(lanes: u32, phases: u32) -> StampRecord {
    let mut seed = 11;
    let lane = |lane: u32| {
        let start = 1_000_000 + u64::from(lane % 7) * 320;
        let mut cycles = 77_000 + u64::from(lane) * 13;
        let mut marks: Vec<Mark> = Vec::new();
        for phase in 0..=phases {
            let time_ns = start + (cycles - 77_000 - u64::from(lane) * 13) * 1000 / 1755;
            let phase = (phase < phases).then_some(phase);
            marks.push(Mark { phase, cycles, time_ns });
            cycles += 300 + (noise(&mut seed) * 900.0) as u64;
        }
        StampLane { lane, multiprocessor: lane % 132, marks }
    };
    let lanes: Vec<StampLane> = (0..lanes).map(lane).collect();
    let names = ["load", "wait", "multiply", "reduce", "store", "idle", "copy", "sync", "write"];
    let phases: Vec<String> =
        names.iter().take(phases as usize).map(|name| (*name).to_owned()).collect();
    let statistics = phases.iter().map(|phase| PhaseStatistics {
        phase: phase.clone(),
        spans: lanes.len() as u64,
        cycles_median: 742.5,
        cycles_p5: 331.0,
        cycles_p95: 1180.0,
        cycles_max: 1199.0,
        share: 1.0 / phases.len() as f64,
    });
    StampRecord {
        schema: STAMPS_SCHEMA,
        seed: None,
        equal_output_bytes: None,
        kernel: "staged_sum".into(),
        device: "a made-up device".into(),
        driver: None,
        date: "2026-11-30T00:00:00Z".into(),
        command: "assay stamps".into(),
        statistics: statistics.collect(),
        phases,
        dropped: 3,
        sm_clock_mhz: Some(1755.0),
        overhead: Some(StampOverhead {
            cycles_median: 34.0,
            cycles_p5: 33.0,
            cycles_p95: 40.0,
            samples: 4096,
        }),
        lanes,
        warnings: Vec::new(),
    }
}

/// A tensor of 300 by 512 whose last columns are wrong, with one NaN.
pub(crate) fn errors() -> ErrorMap {
    let mut map = ErrorMap::new("y: candidate against reference", 300, 512, "ulp");
    let mut seed = 3;
    for row in 0..300 {
        for col in 0..512 {
            let size = noise(&mut seed);
            let wrong = if col >= 480 && row > 150 { 5000.0 } else { 1.0 };
            map.add(row, col, if size < 0.97 { 0.0 } else { size * wrong });
        }
    }
    map.add(20, 100, f64::NAN);
    map.limit = Some(4.0);
    map
}

/// A vector.
pub(crate) fn thin() -> ErrorMap {
    let mut map = ErrorMap::new("a vector of 4096", 1, 4096, "bands");
    for col in 0..2048 {
        map.add(0, col, if col % 3 == 0 { 0.25 } else { 0.0 });
    }
    map.limit = Some(1.0);
    map
}

/// A map whose cells are not as many as it says.
pub(crate) fn torn_map() -> ErrorMap {
    ErrorMap { cell_rows: usize::MAX, cell_cols: 3, ..errors() }
}

/// A dossier with rates and latencies, one of them failed.
pub(crate) fn dossier() -> Dossier {
    let figure = |value: f64| Figure {
        value,
        samples: 20,
        p5: 0.99 * value,
        p95: 1.01 * value,
        sm_clock_mhz: Some(1980.0),
    };
    let rate = |name: &str, unit: &str, value: f64| {
        Entry::measured(name, unit, "made up", figure(value)).within(Some(4.8e12), "the bus")
    };
    let latency =
        |name: &str, unit: &str, value: f64| Entry::measured(name, unit, "made up", figure(value));
    let entries = vec![
        rate("dram_read", "B/s", 4.1e12),
        Entry::failed("l2_read", "B/s", "made up", "wrong sums"),
        latency("fma_f32", "FLOP/s", 60e12),
        latency("mma_f16", "FLOP/s", 640e12),
        latency("wgmma_f16", "FLOP/s", 920e12),
        latency("wgmma_f16_sparse", "FLOP/s", 1.8e15),
        latency("latency_dram_cycles", "cycles", 640.0),
        latency("latency_dram_ns", "ns", 323.0),
        latency("latency_shared_cycles", "cycles", 29.0),
    ];
    let text = r#"{ "schema": 1, "assay_version": "0", "command": "",
        "date": "2026-11-30T00:00:00Z", "seed": 1, "quick": false, "seconds": 1.0,
        "entries": [], "device": { "name": "made-up", "backend": "cuda",
        "architecture": "sm_90", "multiprocessors": 132, "memory_bytes": 1 } }"#;
    let mut dossier = Dossier::from_json(text).expect("a dossier");
    dossier.entries = entries;
    dossier
}

/// Samples of about `ns`: one rejected at place 3, and a throttle next to places 3 and 4.
pub(crate) fn series(ns: f64, count: u32) -> Series {
    let mut seed = ns as u64;
    let duration_ns = (0..count).map(|_| ns * (1.0 + 0.01 * noise(&mut seed))).collect();
    let rejected = RejectedSample { duration_ns: ns * 1.1, sm_clock_mhz: Some(1500.0), place: 3 };
    Series {
        duration_ns,
        rejected: vec![rejected],
        n: u64::from(count),
        median_ns: ns * 1.005,
        lower_ns: ns * 1.004,
        upper_ns: ns * 1.006,
        watched: Some(Watched { throttled: vec![3, 4], samples: 11, ..Watched::default() }),
        ..Series::default()
    }
}

pub(crate) fn throttled() -> Histogram {
    let mut series = series(20_000.0, 300);
    let marked = Watched { throttled: (100..190).collect(), ..Watched::default() };
    series.watched = Some(marked);
    Histogram::of("softmax_f32/cols=4096,rows=512, duration, cold cache", &series)
}

fn versus(samples: Option<Rounds>) -> Versus {
    let effect = |rel: f64, half: f64| Effect { rel, lower: rel - half, upper: rel + half };
    Versus {
        baseline: "plain".into(),
        candidate: "changed".into(),
        verdict: Verdict::Slow,
        reason: "+3.01 % in time (+2.76 % to +3.26 %); the noise floor is +0.25 %".into(),
        time: effect(0.0301, 0.0025),
        cycles: Some(effect(0.0298, 0.002)),
        control: Some(effect(0.0003, 0.0022)),
        threshold_rel: 0.01,
        confidence: 0.99,
        rounds: 62,
        rejected_rounds: 2,
        interleaved: samples.is_some(),
        samples,
        watched: None,
    }
}

/// A comparison in turns, with an outlier and two rejected rounds.
pub(crate) fn turns() -> Distributions {
    let mut seed = 5;
    let mut around = |ns: f64| -> Vec<f64> {
        let mut bell = || noise(&mut seed) + noise(&mut seed) + noise(&mut seed) - 1.5;
        (0..64)
            .map(|round| ns * (1.0 + 0.008 * bell()) * if round < 2 { 1.1 } else { 1.0 })
            .collect()
    };
    let (baseline_ns, mut candidate_ns, again_ns) = (around(2e4), around(2.06e4), around(2e4));
    candidate_ns[40] = 9e4;
    let rejected = vec![0, 1];
    let rounds = Rounds { baseline_ns, candidate_ns, again_ns, rejected };
    Distributions::of(&versus(Some(rounds))).expect("rounds")
}

pub(crate) fn apart() -> Distributions {
    let mut versus = versus(None);
    versus.control = None;
    Distributions::of_series(&versus, &series(2e4, 80), &series(2.06e4, 90))
}

pub(crate) fn odd_distributions() -> Distributions {
    let mut record = apart();
    record.rows[0].accepted_ns = vec![f64::NAN, f64::INFINITY];
    record.rows[1].accepted_ns = vec![0.0];
    record.effects.bars[0].1.upper = f64::NAN;
    record.effects.threshold_rel = f64::INFINITY;
    record
}
