//! References for `cub_device.cu`: CUB's kernels, launched as its host code launches them.
//!
//! The sizes of tiles are those of CUB 3.0's tuning for `sm_80`.

use super::data::{whole, words};
use crate::case::{Case, Field, bytes, exact, judged};

/// Keys that a block sorts in one pass, elements that a block scans.
const SORT_TILE: usize = 8064;
const SCAN_TILE: usize = 3840;

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![Case::new("EmptyKernel"), small_reduce(), reduce(), scan(), small_sort(), sort()]
}

/// An argument without members, which takes a byte.
fn nothing(case: Case) -> Case {
    case.value(0_u8)
}

fn small_reduce() -> Case {
    let x = whole(141, 1000, -1000, 1000);
    let case = Case::new("EPiSC_jS9_ii").sized(1, 256).reads(&x);
    let sum: i32 = x.iter().sum();
    nothing(nothing(case.writes(exact(&[sum + 7])).value(1000)).value(7))
}

fn reduce() -> Case {
    let x = whole(142, 30_000, -1000, 1000);
    let sum: i32 = x.iter().sum();
    let tile = 256 * 16;
    let parts: Vec<i32> =
        (0..3).map(|block| x.chunks(tile).skip(block).step_by(3).flatten().sum()).collect();
    // `GridEvenShare`: only the count and the grid are read, the rest the kernel works out.
    let mut share = [0_u32; 10];
    (share[5], share[6]) = (30_000, 3);
    let case = Case::new("18DeviceReduceKernel").sized(3, 256).reads(&x).writes(exact(&parts));
    let case = case.value(30_000).structure(vec![Field::Bytes(bytes(&share))]);
    let case = nothing(nothing(case)).then("EPiSC_iS9_ii").sized(1, 256).again(1);
    nothing(nothing(case.writes(exact(&[sum])).value(3)).value(0))
}

fn scan() -> Case {
    let n = 10_000;
    let x = whole(143, n, -1000, 1000);
    let mut before = 0;
    let mut y = Vec::new();
    for x in &x {
        y.push(before);
        before += x;
    }
    // Status and value of a tile in one word, with a warp of words in front.
    let tiles = n.div_ceil(SCAN_TILE);
    let words = 8 * (tiles + 32);
    let case = Case::new("DeviceScanInitKernel")
        .sized(1, 128)
        .writes(judged(words, |_| Ok(())))
        .value(tiles as u32)
        .then("16DeviceScanKernel")
        .sized(tiles as u32, 320)
        .reads(&x)
        .writes(exact(&y))
        .again(0)
        .value(0);
    nothing(case).value(0_u128).value(n as u32)
}

fn small_sort() -> Case {
    let keys = words(144, 3000);
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    let case = Case::new("SingleTileKernelINS1_5radix")
        .sized(1, 256)
        .reads(&keys)
        .writes(exact(&sorted))
        .value(0_u64)
        .value(0_u64)
        .value(3000)
        .value(0)
        .value(32);
    nothing(case)
}

/// All four passes of a sort of 32-bit keys, eight bits each.
fn sort() -> Case {
    let n = 10_000;
    let keys = words(145, n);
    let blocks = n.div_ceil(SORT_TILE);
    // Buffer 0: counts of all passes. 1: the keys. 2: lookback of the first pass. 3: tickets.
    // 4 and 6: keys between passes.
    let case = Case::new("DeviceRadixSortHistogramKernel")
        .sized(2, 128)
        .updates(vec![0; 4 * 4 * 256], judged(4 * 4 * 256, |_| Ok(())))
        .reads(&keys)
        .value(n as u32)
        .value(0)
        .value(32);
    let mut case = nothing(case).then("DeviceRadixSortExclusiveSumKernel").sized(4, 256).again(0);
    let mut sorted = keys.clone();
    let mut last = Vec::new();
    for shift in [0, 8, 16, 24] {
        last.clone_from(&sorted);
        sorted.sort_by_key(|key| key >> shift & 255);
    }
    for pass in 0..4_u64 {
        let lookback = 4 * 256 * blocks;
        case = case
            .then("DeviceRadixSortOnesweepKernel")
            .sized(blocks as u32, 384)
            .updates(vec![0; lookback], judged(lookback, |_| Ok(())));
        case = match pass {
            0 => case.updates(vec![0; 16], exact(&[blocks as u32; 4])),
            _ => case.structure(vec![Field::Address(3, 4 * pass)]),
        };
        case = case.value(0_u64).structure(vec![Field::Address(0, 4 * 256 * pass)]);
        case = match pass {
            0 => case.writes(exact(&last)).again(1),
            1 => case.writes(exact(&sorted)).again(4),
            2 => case.again(4).again(6),
            _ => case.again(6).again(4),
        };
        case = case.value(0_u64).value(0_u64).value(n as u32).value(8 * pass as u32).value(8);
        case = nothing(case);
    }
    case
}
