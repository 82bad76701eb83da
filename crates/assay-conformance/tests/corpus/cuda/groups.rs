//! References for `groups.cu`.

use assay_num::Format;

use super::data::{normal, whole};
use crate::case::{Case, bytes, close, exact, exact_bytes, judged, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![grid_steps(), tiles(), coalesced(), block_barrier(), producer_consumer(), staged()]
}

/// What cooperative groups allot for a grid that synchronises: its address reaches the kernel
/// through `%envreg1` and `%envreg2`, which the device serves.
fn grid_steps() -> Case {
    let (n, steps) = (200, 5);
    let mut a = whole(31, n, -100, 100);
    let first = a.clone();
    let mut b = vec![0; n];
    for step in 0..steps {
        for i in 0..n {
            b[i] = a[(i + n - 37) % n] + step;
        }
        std::mem::swap(&mut a, &mut b);
    }
    // After an odd number of steps the newest values lie in the second buffer.
    Case::new("grid_steps")
        .sized(3, 64)
        .cooperatively()
        .updates(bytes(&first), exact(&b))
        .updates(bytes(&vec![0; n]), exact(&a))
        .value(200)
        .value(5)
}

fn tiles() -> Case {
    let x = whole(32, 128, 0, 100);
    let mut y = Vec::new();
    for (at, &v) in x.iter().enumerate() {
        let (warp, lane) = (&x[at / 32 * 32..][..32], at % 32);
        let (tile, rank) = (&x[at / 8 * 8..][..8], at % 8);
        let same = warp.iter().filter(|&&other| other & 3 == v & 3);
        let odd = |other: &&i32| **other & 1 == v & 1;
        y.extend([
            tile.iter().sum(),
            warp.iter().copied().max().unwrap_or(0),
            tile[..=rank].iter().sum(),
            warp[..lane].iter().fold(0, |all, v| all ^ v),
            tile[(rank + 1).min(7)],
            i32::from(tile.iter().any(|&v| v > 90)),
            same.copied().min().unwrap_or(0),
            (tile.iter().filter(odd).count() * 16 + tile[..rank].iter().filter(odd).count()) as i32,
        ]);
    }
    Case::new("tiles").sized(1, 128).reads(&x).writes(exact(&y))
}

fn coalesced() -> Case {
    let x = whole(33, 256, 0, 1000);
    let mut kept: Vec<i32> = x.iter().copied().filter(|v| v % 3 == 0).collect();
    let count = kept.len() as u32;
    kept.sort_unstable();
    let judge = move |got: &[u8]| {
        let words =
            got.chunks_exact(4).map(|word| i32::from_le_bytes([0, 1, 2, 3].map(|i| word[i])));
        let mut got: Vec<i32> = words.collect();
        got.sort_unstable();
        if got == kept { Ok(()) } else { Err("other elements were kept".to_string()) }
    };
    Case::new("coalesced")
        .sized(2, 128)
        .reads(&x)
        .writes(judged(4 * count as usize, judge))
        .updates(bytes(&[0_u32]), exact(&[count]))
        .in_any_order()
}

fn block_barrier() -> Case {
    let x = normal(34, 512, Format::F32);
    let y = (0..512).map(|i| 2.0 * x[i / 256 * 256 + 255 - ((i % 256) ^ 64)]);
    let y: Vec<f64> = y.collect();
    Case::new("block_barrier")
        .sized(2, 256)
        .reads_as(Format::F32, &x)
        .writes(exact_bytes(pack(Format::F32, &y)))
}

/// Sums over the rounds of one place of each.
fn sums(x: &[f64], width: usize, place: impl Fn(usize) -> usize) -> Vec<f64> {
    (0..width).map(|i| x.chunks(width).map(|round| round[place(i)]).sum()).collect()
}

fn producer_consumer() -> Case {
    let x = normal(35, 64 * 7, Format::F32);
    Case::new("producer_consumer")
        .sized(1, 128)
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &sums(&x, 64, |i| 63 - i), 1e-6, 1e-6))
        .value(7)
}

fn staged() -> Case {
    let x = normal(36, 128 * 5, Format::F32);
    Case::new("staged")
        .sized(1, 128)
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &sums(&x, 128, |i| i ^ 1), 1e-6, 1e-6))
        .value(5)
}
