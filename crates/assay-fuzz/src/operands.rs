//! Makes the operands of an operation's case: memory, and the view of it that a recipe asks for.

use std::sync::Arc;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::ViewStep;

use crate::operation::Operation;
use crate::tensor::{Storage, View};

/// The most elements that are stored for one operand.
const MOST_STORED: u64 = 1 << 26;
/// From so many elements on those of a dense operand are made when they are looked at.
const MADE_FROM: u64 = 1 << 18;
/// Keeps the seeds of neighbouring elements apart: any odd number but the generator's own step.
const SPREAD: u64 = 0xD1B5_4A32_D192_ED03;
/// From so many elements on memory is taken by pages, where elements lie.
const SPARSE_FROM: u64 = 1 << 24;

/// Where elements of a shape lie.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    /// Sizes without the axes that are one place in memory.
    stored: Vec<u64>,
    strides: Vec<i64>,
    offset: u64,
    len: u64,
}

/// Lays a shape out as the steps say; the reason where no memory holds it.
fn plan(shape: &[u64], steps: &[ViewStep]) -> Result<Plan, String> {
    let mut stored = shape.to_vec();
    for step in steps {
        if let ViewStep::Broadcast(axis) = step
            && let Some(size) = stored.get_mut(*axis as usize)
        {
            *size = (*size).min(1);
        }
    }
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if steps.contains(&ViewStep::Transposed) && order.len() >= 2 {
        let last = order.len() - 1;
        order.swap(last - 1, last);
    }
    let apart = steps.iter().find_map(|step| match step {
        ViewStep::Strided(by) => Some(*by),
        _ => None,
    });
    let mut strides = vec![0u64; shape.len()];
    let mut next = apart.unwrap_or(1);
    for axis in order.into_iter().rev() {
        strides[axis] = next;
        next = next.checked_mul(stored[axis].max(1)).ok_or("its strides pass 2^64")?;
    }
    let mut offset = 0;
    for step in steps {
        match step {
            ViewStep::Pitch(by) => strides.iter_mut().take(1).for_each(|first| *first = *by),
            ViewStep::Offset(by) => offset = *by,
            _ => {}
        }
    }
    let zero = |axis: usize| steps.contains(&ViewStep::Broadcast(axis as u64));
    for (axis, stride) in strides.iter_mut().enumerate() {
        *stride = if zero(axis) { 0 } else { *stride };
    }
    finish(stored, &strides, offset)
}

fn finish(stored: Vec<u64>, strides: &[u64], offset: u64) -> Result<Plan, String> {
    let empty = stored.contains(&0);
    let span = |span: u64, (size, stride): (&u64, &u64)| {
        span.checked_add(size.saturating_sub(1).checked_mul(*stride)?)
    };
    let span = stored.iter().zip(strides).try_fold(u64::from(!empty), span);
    let span = if empty { Some(0) } else { span };
    let len = span.and_then(|span| span.checked_add(offset)).filter(|len| *len < 1 << 48);
    let len = len.ok_or("no memory is that large")?;
    let strides = strides.iter().map(|stride| *stride as i64).collect();
    Ok(Plan { stored, strides, offset, len })
}

/// Makes one operand; the reason where no memory holds it.
pub(crate) fn operand(
    shape: &[u64],
    steps: &[ViewStep],
    format: Format,
    mut element: impl FnMut() -> f64,
) -> Result<View, String> {
    let plan = plan(shape, steps)?;
    let count = plan.stored.iter().fold(1u64, |all, size| all.saturating_mul(*size));
    if count > MOST_STORED {
        return Err(format!(
            "{count} elements would lie in this process's memory, which is given {MOST_STORED}"
        ));
    }
    let mut storage = Storage::new(format, plan.len, plan.len > SPARSE_FROM);
    let mut index = vec![0u64; plan.stored.len()];
    for _ in 0..count {
        let at = index.iter().zip(&plan.strides).map(|(index, stride)| index * *stride as u64);
        storage.store(plan.offset + at.sum::<u64>(), format.round(element()));
        step(&mut index, &plan.stored);
    }
    let (strides, offset) = (plan.strides, plan.offset);
    Ok(View { storage: Arc::new(storage), shape: shape.to_vec(), strides, offset })
}

/// A long operand without gaps, whose elements are made when they are looked at; none where it is
/// short or of another layout.
fn long(
    shape: &[u64],
    steps: &[ViewStep],
    format: Format,
    element: impl Fn(u64) -> f64 + Send + Sync + 'static,
) -> Option<View> {
    let count = shape.iter().fold(1u64, |all, size| all.saturating_mul(*size));
    let dense = |step: &ViewStep| matches!(step, ViewStep::Offset(_) | ViewStep::Alone);
    if count < MADE_FROM || !steps.iter().all(dense) {
        return None;
    }
    let Plan { strides, offset, len, .. } = plan(shape, steps).ok()?;
    let storage = Storage::made(format, (offset, len), element);
    Some(View { storage: Arc::new(storage), shape: shape.to_vec(), strides, offset })
}

/// The next index in row-major order.
fn step(index: &mut [u64], sizes: &[u64]) {
    for (index, size) in index.iter_mut().zip(sizes).rev() {
        *index += 1;
        if *index < *size {
            return;
        }
        *index = 0;
    }
}

/// All operands of a case; where a step says `alone`, only the first is not dense.
pub(crate) fn operands(
    operation: &Arc<Operation>,
    shapes: &[Vec<u64>],
    steps: &[ViewStep],
    format: Format,
    random: &SplitMix64,
) -> Result<Vec<View>, String> {
    let alone = steps.contains(&ViewStep::Alone);
    let one = |(number, shape): (usize, &Vec<u64>)| {
        let steps = if alone && number > 0 { &[] } else { steps };
        let mut random = random.fork(&format!("operand {number}"));
        let (own, seed) = (Arc::clone(operation), random.clone().next_u64());
        let made = move |place: u64| {
            let mut random = SplitMix64::new(seed.wrapping_add(place.wrapping_mul(SPREAD)));
            (own.make)(number, &mut random)
        };
        match long(shape, steps, format, made) {
            Some(view) => Ok(view),
            None => operand(shape, steps, format, || (operation.make)(number, &mut random)),
        }
    };
    shapes.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(shape: &[u64], steps: &[ViewStep]) -> View {
        let mut next = 0.0;
        let element = || {
            next += 1.0;
            next - 1.0
        };
        operand(shape, steps, Format::F32, element).expect("it fits")
    }

    fn all(view: &View) -> Vec<f64> {
        (0..view.elements()).map(|place| view.linear(place)).collect()
    }

    #[test]
    fn every_view_holds_the_same_elements_in_row_major_order() {
        let expected: Vec<f64> = (0..6).map(f64::from).collect();
        for steps in [
            vec![],
            vec![ViewStep::Transposed],
            vec![ViewStep::Strided(3)],
            vec![ViewStep::Offset(5)],
            vec![ViewStep::Pitch(1 << 30)],
            vec![ViewStep::Transposed, ViewStep::Strided(2), ViewStep::Offset(1)],
        ] {
            let view = counted(&[2, 3], &steps);
            assert_eq!(all(&view), expected, "{steps:?}");
            assert_eq!(view.storage.strays(), None, "{steps:?}");
            assert_eq!(view.is_dense(), !steps.iter().any(|s| !matches!(s, ViewStep::Offset(_))));
        }
    }

    #[test]
    fn a_broadcast_axis_is_one_place_in_memory() {
        let view = counted(&[1 << 31, 3], &[ViewStep::Broadcast(0)]);
        assert_eq!(view.strides(), [0, 1]);
        assert_eq!(view.elements(), 3 << 31);
        assert_eq!(view.at(&[2_000_000_000, 2]), 2.0);
    }

    #[test]
    fn a_long_dense_operand_has_a_value_of_its_own_at_every_place() {
        let made = |steps: &[ViewStep]| long(&[1 << 20, 1 << 12], steps, Format::F32, |n| n as f64);
        let view = made(&[ViewStep::Offset(3)]).expect("it is dense");
        assert_eq!(view.elements(), 1 << 32);
        for place in [0u64, 5, 1 << 23, 1 << 31, (1 << 32) - 256] {
            assert_eq!(view.linear(place), place as f64);
        }
        assert_eq!(view.storage.strays(), None);
        assert!(view.load(-1).is_nan() && view.load(1 << 32).is_nan());
        assert_eq!(view.storage.strays(), Some((1, 3 + (1 << 32))), "what lies before is a gap");
        assert!(made(&[ViewStep::Transposed]).is_none());
        assert!(long(&[1000], &[], Format::F32, |n| n as f64).is_none(), "short ones are stored");
    }

    #[test]
    fn empty_shapes_and_scalars_are_made() {
        assert_eq!(all(&counted(&[], &[])), [0.0]);
        assert!(all(&counted(&[3, 0, 2], &[ViewStep::Offset(1)])).is_empty());
    }

    #[test]
    fn what_no_memory_holds_is_refused_in_words() {
        let made = |shape: &[u64], steps: &[ViewStep]| operand(shape, steps, Format::F32, || 0.0);
        let error = made(&[1 << 31], &[]).expect_err("8 GB");
        assert!(error.contains("2147483648 elements"), "{error}");
        assert!(made(&[u64::MAX, u64::MAX], &[]).is_err());
        assert!(made(&[3, 3], &[ViewStep::Pitch(u64::MAX)]).is_err());
        assert!(made(&[3], &[ViewStep::Offset(u64::MAX)]).is_err());
    }
}
