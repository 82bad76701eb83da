//! The memory probes' kernels on the emulator at small sizes: each does what it is counted for,
//! and one that leaves a part out is caught.

use assay_device::{BufferId, Device};
use assay_measure::probe::cached::{Round, Rounds, SharedReads, reads, writes};
use assay_measure::probe::chase::{Chases, Cycle, Level};
use assay_measure::probe::contents::{Contents, Expected, Filler};
use assay_measure::probe::stream::{Blocks, Motion, Streams, Variant, variants};
use assay_measure::probe::{ProbeContext, ProbeError};

const MOTIONS: [Motion; 5] =
    [Motion::Read, Motion::Write, Motion::Copy, Motion::Triad, Motion::Gather];

fn emulator() -> Box<dyn Device> {
    assay_device::open("emulator:sm_90").expect("the emulator opens")
}

fn is_wrong<T: std::fmt::Debug>(result: &Result<T, ProbeError>) -> bool {
    matches!(result, Err(ProbeError::Wrong(_)))
}

/// Variants of one size of block, so that a small buffer has several tiles.
fn small_variants(motion: Motion) -> Vec<Variant> {
    let few = |variant: &Variant| variant.threads <= 256 && variant.stages <= 4;
    variants(motion, 90).into_iter().filter(few).collect()
}

#[test]
fn every_stream_moves_all_of_its_bytes() {
    let mut device = emulator();
    let mut context = ProbeContext::new(&mut *device, true, 3);
    let streams = Streams::new(&mut context, 128 << 10).expect("buffers");
    for motion in MOTIONS {
        let all = small_variants(motion);
        assert!(all.len() >= 12, "{motion:?}");
        for variant in all {
            let proof = streams.verify(context.device, motion, &variant);
            assert!(proof.is_ok(), "{variant}: {proof:?}");
        }
    }
    streams.free(context.device).expect("all is given back");
}

#[test]
fn a_stream_that_skips_its_last_tile_is_caught() {
    let mut device = emulator();
    let mut context = ProbeContext::new(&mut *device, true, 4);
    let streams = Streams::new(&mut context, 64 << 10).expect("buffers");
    for motion in MOTIONS {
        let all = small_variants(motion);
        let others = |variant: &&Variant| variant.stages > 0 || variant.threads == 0;
        for variant in all.iter().take(2).chain(all.iter().filter(others)) {
            let leaves_out = (variant.tile_bytes / 16).max(1);
            let control = Variant { leaves_out, ..variant.clone() };
            let proof = streams.verify(context.device, motion, &control);
            assert!(is_wrong(&proof), "{control}: {proof:?}");
        }
    }
}

#[test]
fn a_device_without_bulk_copies_says_so() {
    let mut device = assay_device::open("emulator").expect("the emulator opens");
    let mut context = ProbeContext::new(&mut *device, true, 1);
    let streams = Streams::new(&mut context, 4 << 10).expect("buffers");
    assert!(variants(Motion::Read, 80).iter().all(|variant| variant.stages == 0));
    let bulk =
        Variant { stages: 2, blocks: Blocks::Each(1), ..variants(Motion::Read, 80)[0].clone() };
    let refused = streams.verify(context.device, Motion::Read, &bulk);
    assert!(matches!(refused, Err(ProbeError::Device(error)) if error.is_unsupported()));
}

#[test]
fn every_round_over_a_cached_region_reads_or_writes_all_of_it() {
    let mut device = emulator();
    let mut context = ProbeContext::new(&mut *device, true, 5);
    let rounds = Rounds::new(&mut context, 64 << 10).expect("a buffer");
    let all = reads(18 << 10, 300 << 10).into_iter().chain(writes(18 << 10, 300 << 10));
    // One warp a block keeps the emulator quick.
    for round in all.filter(|round| round.each == 1).map(|round| Round { threads: 32, ..round }) {
        let proof = rounds.verify(context.device, &round);
        assert!(proof.is_ok(), "{round}: {proof:?}");
        // A block that leaves its last tiles out, and for writes all of them.
        let leaves_out = if round.symbol == "l2_write" { u32::MAX } else { 4 };
        let control = Round { leaves_out, ..round };
        let proof = rounds.verify(context.device, &control);
        assert!(is_wrong(&proof), "{control} leaving out: {proof:?}");
    }
    let far = Round { bytes: 1 << 20, ..reads(1 << 20, 1 << 20)[0].clone() };
    assert!(rounds.verify(context.device, &far).is_err(), "a region past the buffer's end");
    rounds.free(context.device).expect("all is given back");
}

#[test]
fn shared_memory_is_read_as_often_as_counted() {
    let mut device = emulator();
    let mut context = ProbeContext::new(&mut *device, true, 6);
    let mut reads = SharedReads::new(&mut context, 1).expect("buffers");
    reads.leaves_out = 1;
    let proof = reads.verify(context.device, 64, 3);
    assert!(is_wrong(&proof), "a round less is caught: {proof:?}");
    reads.leaves_out = 0;
    let cycles = reads.verify(context.device, 64, 3).expect("the right sum");
    assert_eq!(cycles.len() as u32, context.multiprocessors());
    assert_eq!(SharedReads::bytes_of_block(64, 3), 64 * 3 * 8 * 16);
    reads.free(context.device).expect("all is given back");
}

fn lay(
    device: &mut dyn Device,
    chases: &Chases,
    nodes: u32,
    stride: u64,
) -> (BufferId, assay_measure::probe::chase::Chase) {
    let buffer = device.allocate_bare(u64::from(nodes) * stride).expect("a buffer");
    let place = (0..u64::from(nodes)).map(|node| node * stride).collect();
    let chase = chases.lay(device, buffer, place, Cycle::random(nodes, 9)).expect("a chase");
    (buffer, chase)
}

#[test]
fn a_chase_ends_where_its_cycle_says_at_every_level() {
    let mut device = emulator();
    let mut context = ProbeContext::new(&mut *device, true, 7);
    let chases = Chases::new(&mut context).expect("kernels");
    let (buffer, mut chase) = lay(context.device, &chases, 100, 128);
    for level in [Level::L1, Level::L2] {
        for steps in [16, 64, 1600] {
            let stretch = chase.go(context.device, level, 32, steps).expect("the right end");
            assert!(stretch.cycles >= 0.0 && stretch.ns >= 0.0);
        }
    }
    assert_eq!(chase.each(context.device, 16, 50).expect("the right end").len(), 50);
    let cycle = Cycle::random(64, 1);
    chases.shared(context.device, &cycle, 64, 160).expect("the right end");
    context.device.free(buffer).expect("a buffer");
    chases.free(context.device).expect("all is given back");
}

#[test]
fn a_chase_whose_links_were_broken_is_caught() {
    let mut device = emulator();
    let mut context = ProbeContext::new(&mut *device, true, 8);
    let chases = Chases::new(&mut context).expect("kernels");
    let (buffer, mut chase) = lay(context.device, &chases, 32, 64);
    // Node 0 leads to itself: the chase stays in one line, which any cache holds.
    let address = context.device.address(buffer).expect("an address");
    context.device.write(buffer, 0, &address.to_le_bytes()).expect("a write");
    let proof = chase.go(context.device, Level::L2, 0, 48);
    assert!(is_wrong(&proof), "{proof:?}");
}

#[test]
fn one_wrong_word_of_a_buffer_is_counted() {
    let mut device = emulator();
    let mut context = ProbeContext::new(&mut *device, true, 2);
    let filler = Filler::new(&mut context).expect("kernels");
    let contents = Contents { bits: 8, seed: 11 };
    let device = &mut *context.device;
    let buffer = device.allocate_bare(contents.bytes()).expect("a buffer");
    filler.fill(device, buffer, contents).expect("a fill");
    let count = |device: &mut dyn Device| {
        filler.count_wrong(device, buffer, Expected::just(contents)).expect("a count")
    };
    assert_eq!(count(device), 0);
    let mut found = [0; 16];
    device.read(buffer, 16 * 77, &mut found).expect("a read");
    let words = found.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
    assert_eq!(words.collect::<Vec<_>>(), contents.vector(77), "as the host makes it");
    found[5] ^= 0x10;
    device.write(buffer, 16 * 77, &found).expect("a write");
    assert_eq!(count(device), 1);
}
