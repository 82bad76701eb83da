//! The ugly envelope of operations: shapes from none to three axes, and the views of each.

use assay_num::random::SplitMix64;
use assay_record::ViewStep;

use crate::candidate::HUGE;

/// Shapes drawn from the seed, beside the fixed ones.
const DRAWN: usize = 12;
/// The most elements of a drawn shape.
const MOST_DRAWN: u64 = 20_000;

/// One shape with one view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ugly {
    pub(crate) shape: Vec<u64>,
    pub(crate) view: Vec<ViewStep>,
}

/// Shapes that programs get wrong: none, empty, one, primes, and one off every usual tile.
fn shapes() -> Vec<Vec<u64>> {
    let mut shapes: Vec<Vec<u64>> = vec![vec![]];
    let lengths = [
        0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 509, 1000,
        1023, 1024, 1025, 4099, 65_537,
    ];
    shapes.extend(lengths.map(|length| vec![length]));
    let planes = [
        [0, 3],
        [3, 0],
        [0, 0],
        [1, 1],
        [1, 7],
        [7, 1],
        [2, 3],
        [17, 31],
        [33, 65],
        [64, 64],
        [65, 129],
        [127, 3],
        [3, 127],
        [257, 67],
        [1, 4099],
        [4099, 1],
        [65_537, 1],
    ];
    shapes.extend(planes.map(|plane| plane.to_vec()));
    let solids = [
        [0, 2, 3],
        [2, 0, 3],
        [2, 3, 0],
        [1, 1, 1],
        [2, 3, 5],
        [7, 1, 33],
        [5, 17, 13],
        [3, 65, 7],
        [16, 16, 17],
    ];
    shapes.extend(solids.map(|solid| solid.to_vec()));
    shapes
}

/// Shapes drawn at random, of one to three axes.
fn drawn(random: &mut SplitMix64) -> Vec<Vec<u64>> {
    let mut one = || {
        let axes = 1 + random.below(3);
        let mut left = MOST_DRAWN;
        let mut shape = Vec::new();
        for _ in 0..axes {
            // Small sizes as often as large ones.
            let most = 1 + random.below(left.clamp(1, 300));
            let size = 1 + random.below(most);
            left /= size;
            shape.push(size);
        }
        shape
    };
    (0..DRAWN).map(|_| one()).collect()
}

/// The views that a shape has.
fn views(shape: &[u64]) -> Vec<Vec<ViewStep>> {
    let mut views = vec![vec![]];
    if shape.contains(&0) {
        return views;
    }
    views.extend([1, 3].map(|by| vec![ViewStep::Offset(by)]));
    let long = |axis: usize| shape.get(axis).is_some_and(|size| *size > 1);
    if (0..shape.len()).any(long) {
        views.push(vec![ViewStep::Strided(2)]);
        views.push(vec![ViewStep::Strided(3), ViewStep::Offset(1), ViewStep::Alone]);
    }
    if shape.len() >= 2 && long(shape.len() - 1) && long(shape.len() - 2) {
        views.push(vec![ViewStep::Transposed]);
        views.push(vec![ViewStep::Transposed, ViewStep::Alone]);
        views.push(vec![ViewStep::Transposed, ViewStep::Offset(1)]);
    }
    for axis in (0..shape.len()).filter(|axis| long(*axis)) {
        views.push(vec![ViewStep::Broadcast(axis as u64)]);
    }
    views
}

/// More tiles of any usual size than 16 bits count, along each axis.
fn many_tiles() -> Vec<Ugly> {
    let shapes = [vec![65_536 * 64 + 1], vec![65_536 * 16 + 1, 3], vec![3, 65_536 * 32 + 1]];
    let views = [vec![], vec![ViewStep::Offset(1)]];
    let each = |shape: Vec<u64>| views.clone().map(|view| Ugly { shape: shape.clone(), view });
    shapes.into_iter().flat_map(each).collect()
}

/// Shapes of 2^31 elements and more that take no such memory, and rows further apart than an
/// `i32` counts. Those without a stride of 0 hold as many values of their own.
fn huge() -> Vec<Ugly> {
    let broadcast = |axis| vec![ViewStep::Broadcast(axis)];
    let ugly = |shape: &[u64], view| Ugly { shape: shape.to_vec(), view };
    vec![
        ugly(&[3, 5], vec![ViewStep::Pitch(1 << 30)]),
        ugly(&[HUGE + 1], vec![]),
        ugly(&[65_537, 32_769], vec![ViewStep::Offset(1)]),
        ugly(&[HUGE], broadcast(0)),
        ugly(&[HUGE + 1], broadcast(0)),
        ugly(&[65_536, 32_769], broadcast(0)),
        ugly(&[32_769, 65_536], broadcast(1)),
        ugly(&[1 << 16, 1 << 16, 3], broadcast(1)),
    ]
}

/// The envelope, cheap cases first.
pub(crate) fn envelope(seed: u64) -> Vec<Ugly> {
    let mut random = SplitMix64::new(seed).fork("shapes");
    let all = shapes().into_iter().chain(drawn(&mut random));
    let with_views = all.flat_map(|shape| {
        let ugly = views(&shape).into_iter();
        ugly.map(|view| Ugly { shape: shape.clone(), view }).collect::<Vec<_>>()
    });
    let mut cases: Vec<Ugly> = with_views.collect();
    let elements = |ugly: &Ugly| ugly.shape.iter().product::<u64>();
    cases.sort_by_key(elements);
    cases.dedup();
    cases.extend(many_tiles());
    cases.extend(huge());
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_holds_every_kind_of_ugliness() {
        let cases = envelope(1);
        let some = |wanted: &dyn Fn(&Ugly) -> bool| cases.iter().any(wanted);
        for axes in 0..=3 {
            assert!(some(&|ugly| ugly.shape.len() == axes), "{axes} axes");
        }
        assert!(some(&|ugly| ugly.shape.contains(&0)));
        assert!(some(&|ugly| ugly.view == [ViewStep::Transposed]));
        assert!(some(&|ugly| ugly.view == [ViewStep::Offset(1)]));
        assert!(some(&|ugly| ugly.view == [ViewStep::Broadcast(0)]));
        assert!(some(&|ugly| ugly.shape.iter().product::<u64>() >= HUGE));
        assert!(some(&|ugly| ugly.shape.iter().any(|size| *size > 65_535 * 64)));
        let real = |ugly: &Ugly| ugly.shape.iter().product::<u64>() > HUGE && ugly.view.is_empty();
        assert!(some(&real), "2^31 elements and more without a stride of 0");
        assert_eq!(cases, envelope(1));
        assert_ne!(cases, envelope(2));
    }
}
