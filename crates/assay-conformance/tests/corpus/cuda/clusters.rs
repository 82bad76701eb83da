//! References for `clusters.cu`.

use assay_num::Format;

use super::data::{integers, normal};
use crate::case::{Case, bytes, close, exact};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![sum(), histogram(), ring(), push(), gather()]
}

fn words(seed: u64, count: usize, high: i64) -> Vec<i32> {
    integers(seed, count, 0, high).iter().map(|&x| i32::try_from(x).expect("small")).collect()
}

/// Eight blocks of 128 threads in clusters of four: each cluster sums the elements of its threads.
fn sum() -> Case {
    const COUNT: usize = 3000;
    let x = normal(31, COUNT, Format::F32);
    let mut want = [0.0; 2];
    for (index, value) in x.iter().enumerate() {
        want[index % 1024 / 512] += value;
    }
    Case::new("cluster_sum")
        .sized(8, 128)
        .cluster([4, 1, 1])
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &want, 1e-5, 1e-4))
        .value(COUNT as i32)
}

fn histogram() -> Case {
    const BINS: usize = 96;
    let x = words(32, 4000, BINS as i64);
    let mut want = vec![0_i32; BINS];
    for &bin in &x {
        want[bin as usize] += 1;
    }
    Case::new("cluster_histogram")
        .sized(8, 64)
        .cluster([2, 1, 1])
        .shared(4 * BINS as u32 / 2)
        .reads(&x)
        .updates(bytes(&vec![0_i32; BINS]), exact(&want))
        .value(4000_i32)
        .value(BINS as i32 / 2)
}

/// After five steps a row is five blocks on around its cluster of 2 x 2, and five places on.
fn ring() -> Case {
    const STEPS: usize = 5;
    let x = words(33, 8 * 64, 1000);
    let mut want = vec![0; 8 * 64];
    for block in 0..8 {
        let (column, row) = (block % 4, block / 4);
        let rank = column % 2 + 2 * row;
        let target = (rank + STEPS) % 4;
        let there = target / 2 * 4 + column / 2 * 2 + target % 2;
        for place in 0..64 {
            want[there * 64 + (place + STEPS) % 64] = x[block * 64 + place] + STEPS as i32;
        }
    }
    Case::new("cluster_ring")
        .grid([4, 2, 1])
        .block([64, 1, 1])
        .cluster([2, 2, 1])
        .reads(&x)
        .writes(exact(&want))
        .value(STEPS as i32)
}

fn push() -> Case {
    let x = words(34, 3 * 128, 1000);
    let want: Vec<i32> =
        x.chunks(128).flat_map(|row| row.iter().rev().copied().collect::<Vec<_>>()).collect();
    Case::new("cluster_push").sized(6, 128).reads(&x).writes(exact(&want))
}

fn gather() -> Case {
    let x = words(35, 8 * 32, 1000);
    let want: Vec<i32> = x.iter().map(|word| word * 2).collect();
    Case::new("cluster_gather").sized(8, 32).reads(&x).writes(exact(&want))
}
