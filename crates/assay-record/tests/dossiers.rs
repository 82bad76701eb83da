//! Dossiers: entries that keep value, status and reason in step, and JSON that reads back.

use assay_record::{
    DOSSIER_SCHEMA, Dossier, DossierError, Entry, EntryStatus, Figure, Peer, ProbedDevice,
};

fn figure(value: f64) -> Figure {
    Figure { value, samples: 20, p5: value * 0.99, p95: value * 1.01, sm_clock_mhz: Some(1755.0) }
}

fn read(value: f64) -> Entry {
    Entry::measured("dram_read", "B/s", "a stream of 16-byte loads", figure(value))
}

fn dossier(entries: Vec<Entry>) -> Dossier {
    Dossier {
        schema: DOSSIER_SCHEMA,
        assay_version: "0.1.0".into(),
        command: "assay probe".into(),
        date: "2026-11-30T12:00:00Z".into(),
        seed: 1,
        quick: true,
        device: ProbedDevice {
            name: "NVIDIA H200".into(),
            backend: "cuda".into(),
            architecture: "sm_90".into(),
            driver: Some("CUDA 13.0".into()),
            multiprocessors: 132,
            memory_bytes: 1 << 37,
            l2_bytes: Some(60 << 20),
            sm_clock_max_mhz: Some(1980),
            memory_clock_max_mhz: None,
            memory_bus_bits: None,
        },
        before: None,
        after: None,
        entries,
        peers: Vec::new(),
        peers_missing: Vec::new(),
        incomplete: None,
        seconds: 1.5,
    }
}

#[test]
fn a_dossier_reads_back_as_it_was_written() {
    let curve = Entry::measured("l2_knee", "B/s", "read over sizes", figure(5e7))
        .along("bytes", vec![(2e6, 9e12), (1e6, 9.5e12)])
        .trusted(0.6, "inferred from a curve");
    let entries = vec![read(4.4e12), curve, Entry::unsupported("dsm", "ns", "a chase", "sm_80")];
    let before = dossier(entries);
    let json = before.to_json().expect("JSON");
    let after = Dossier::from_json(&json).expect("its own JSON");
    assert_eq!(before, after);
    assert_eq!(after.value("dram_read"), Some(4.4e12));
    assert_eq!(after.value("dsm"), None);
    assert_eq!(after.entry("l2_knee").map(|entry| entry.points[0].0), Some(1e6), "by ascending x");
}

#[test]
fn a_figure_over_the_silicons_limit_is_a_failed_probe() {
    let entry = read(5.0e12).within(Some(4.9e12), "the memory's clock and bus");
    assert_eq!(entry.status, EntryStatus::Failed);
    assert_eq!((entry.value, entry.p5, entry.p95), (None, None, None));
    assert!(entry.reason.as_deref().unwrap_or_default().contains("5.0000e12 B/s is over"));
    let entry = read(4.8e12).within(Some(4.9e12), "the memory's clock and bus");
    assert_eq!(entry.status, EntryStatus::Measured);
    assert!(entry.part_of_limit().is_some_and(|part| (0.97..0.99).contains(&part)));
}

#[test]
fn what_is_no_number_is_never_a_value() {
    for wrong in [f64::NAN, f64::INFINITY] {
        let entry = read(wrong);
        assert_eq!((entry.status, entry.value), (EntryStatus::Failed, None));
        assert!(entry.reason.is_some());
        let curve = read(1.0).along("bytes", vec![(1.0, wrong), (2.0, 3.0)]);
        assert_eq!(curve.points, [(2.0, 3.0)]);
        let unlimited = read(1.0).within(Some(wrong), "nowhere");
        assert_eq!(unlimited.limit, None);
    }
    let json = dossier(vec![read(f64::NAN)]).to_json().expect("JSON");
    assert!(json.contains("\"value\": null"), "{json}");
    assert!(Dossier::from_json(&json).is_ok());
}

#[test]
fn a_newer_or_foreign_text_says_what_it_is() {
    let mut newer = dossier(Vec::new());
    newer.schema = DOSSIER_SCHEMA + 1;
    let error = Dossier::from_json(&newer.to_json().expect("JSON"));
    assert!(matches!(error, Err(DossierError::Newer { found }) if found > 1));
    assert!(matches!(Dossier::from_json("{}"), Err(DossierError::NoSchema)));
    assert!(matches!(Dossier::from_json("{\"schema\": 1}"), Err(DossierError::Malformed(_))));
    assert!(matches!(Dossier::from_json("not JSON"), Err(DossierError::Malformed(_))));
}

fn peer(name: &str, value: f64, spread: f64) -> Peer {
    Peer {
        entry: "dram_read".into(),
        name: name.into(),
        version: "1".into(),
        value,
        unit: "B/s".into(),
        n: 30,
        spread,
    }
}

#[test]
fn an_entry_stands_to_the_best_of_its_peers_and_is_below_it_only_beyond_both_spreads() {
    let mut dossier = dossier(vec![read(4.4e12)]);
    let standing = |dossier: &Dossier| {
        let standing = dossier.standing(&dossier.entries[0])?;
        Some((standing.peer.name.clone(), standing.times, standing.below))
    };
    assert_eq!(standing(&dossier), None, "there is no peer");
    dossier.peers = vec![peer("slow", 2.2e12, 1e9), peer("other", 9e12, 0.0)];
    dossier.peers[1].entry = "dram_write".into();
    assert_eq!(standing(&dossier), Some(("slow".into(), 2.0, false)));
    dossier.peers.push(peer("fast", 4.5e12, 2e11));
    let (name, times, below) = standing(&dossier).expect("two peers");
    assert_eq!((name.as_str(), below), ("fast", false), "within the peer's own spread");
    assert!((times - 4.4 / 4.5).abs() < 1e-12, "{times}");
    dossier.peers[2].spread = 5e10;
    assert!(standing(&dossier).expect("two peers").2, "the control: a steadier peer");
    dossier.entries[0].p95 = Some(4.48e12);
    assert!(!standing(&dossier).expect("two peers").2, "within the entry's own spread");
    let json = dossier.to_json().expect("JSON");
    assert_eq!(Dossier::from_json(&json).expect("its own JSON"), dossier);
}

#[test]
fn of_times_the_shorter_is_the_better() {
    let launch = Entry::measured("launch_queued", "ns", "trains of kernels", figure(4000.0));
    let mut dossier = dossier(vec![launch]);
    let of =
        |value| Peer { entry: "launch_queued".into(), unit: "ns".into(), ..peer("p", value, 9.0) };
    dossier.peers = vec![of(8000.0), of(5000.0)];
    let standing = dossier.standing(&dossier.entries[0]).expect("two peers");
    assert_eq!((standing.peer.value, standing.times, standing.below), (5000.0, 1.25, false));
    dossier.peers.push(of(3000.0));
    assert!(dossier.standing(&dossier.entries[0]).expect("three peers").below);
}

#[test]
fn an_entry_without_a_value_and_a_dossier_of_before_there_were_peers_have_no_standing() {
    let mut new = dossier(vec![read(4.4e12).within(Some(1.0), "too low a limit")]);
    new.peers = vec![peer("any", 1e12, 0.0)];
    assert_eq!(new.standing(&new.entries[0]), None);
    let json = dossier(vec![read(4.4e12)]).to_json().expect("JSON");
    assert!(!json.contains("peers"), "an old dossier has no such key");
    assert!(Dossier::from_json(&json).expect("it reads").peers.is_empty());
}

#[test]
fn the_best_of_several_ways_is_a_lower_bound_unless_it_lies_close_to_the_limit() {
    let trusted = |value, limit| {
        let entry = read(value).trusted(0.95, "every byte was checked");
        entry.within(limit, "a source").best_of_ways()
    };
    let close = trusted(4.4e12, Some(4.8e12));
    assert_eq!(
        (close.confidence, close.confidence_reason.as_str()),
        (0.95, "every byte was checked")
    );
    let far = trusted(1.2e12, Some(4.8e12));
    assert!(far.confidence <= 0.8, "{far:?}");
    assert!(far.confidence_reason.contains("a lower bound at 25 % of the limit"), "{far:?}");
    let unknown = trusted(1.2e12, None);
    assert!(unknown.confidence <= 0.8 && unknown.confidence_reason.contains("no limit of this"));
    let failed = trusted(9e12, Some(4.8e12));
    assert_eq!((failed.status, failed.confidence), (EntryStatus::Failed, 0.0));
}
