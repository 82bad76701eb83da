//! Operations that every run takes along: one that is right, and others that are wrong as kernels
//! are wrong on ugly shapes. A run in which one of those passes is a failed run.

use assay_num::Format;

use crate::operation::{Operation, Refusal};
use crate::tensor::View;

/// The formats that the planted operations are tried in.
const FORMATS: [Format; 1] = [Format::F32];

/// Writes an output element by element.
#[expect(clippy::unnecessary_wraps, reason = "it ends every operation here")]
fn each(start: u64, outputs: &mut [f64], element: impl Fn(u64) -> f64) -> Result<(), Refusal> {
    for (place, output) in (start..).zip(outputs) {
        *output = element(place);
    }
    Ok(())
}

/// `x + y`, in the format.
fn sum(views: &[View], place: u64) -> f64 {
    views[0].format().round(views[0].linear(place) + views[1].linear(place))
}

/// `2 x`, which is exact.
fn twice(views: &[View], place: u64) -> f64 {
    2.0 * views[0].linear(place)
}

fn unary(
    name: &str,
    op: impl Fn(&[View], u64, &mut [f64]) -> Result<(), Refusal> + Send + Sync + 'static,
) -> Operation {
    Operation { formats: FORMATS.to_vec(), ..Operation::elementwise(name, 1, op, twice) }
}

/// The operation that is right, and the wrong ones.
pub fn planted() -> Vec<Operation> {
    vec![clean(), contiguous(), int32(), misaligned(), tail(), empty()]
}

/// `x + y` by 64-bit indices: right everywhere.
pub fn clean() -> Operation {
    let op = |views: &[View], start: u64, outputs: &mut [f64]| {
        each(start, outputs, |place| sum(views, place))
    };
    let reference = |views: &[View], place| views[0].linear(place) + views[1].linear(place);
    let formats = vec![Format::F32, Format::Bf16];
    Operation { formats, ..Operation::elementwise("fuzz_clean", 2, op, reference) }
}

/// Counts from the first element's address, whatever the strides.
pub fn contiguous() -> Operation {
    let op = |views: &[View], start: u64, outputs: &mut [f64]| {
        each(start, outputs, |place| 2.0 * views[0].load(place as i64))
    };
    unary("fuzz_contiguous", op).planted("takes every operand for contiguous")
}

/// Computes indices and offsets in 32 bits.
pub fn int32() -> Operation {
    let op = |views: &[View], start: u64, outputs: &mut [f64]| {
        each(start, outputs, |place| 2.0 * views[0].load(i64::from(offset_i32(&views[0], place))))
    };
    unary("fuzz_int32_offset", op).planted("computes offsets in an int32")
}

/// An element's offset as a kernel with `int` computes it.
fn offset_i32(view: &View, place: u64) -> i32 {
    let (mut rest, mut offset) = (place as i32, 0i32);
    for (size, stride) in view.shape().iter().zip(view.strides()).rev() {
        // A size past 2^31 wraps too; the remainder by nothing would be a trap.
        let size = (*size as i32).checked_abs().unwrap_or(i32::MAX).max(1);
        offset = offset.wrapping_add((rest % size).wrapping_mul(*stride as i32));
        rest /= size;
    }
    offset
}

/// Loads four neighbours at a time where they are dense, without a look at the address: the lowest
/// four bits of one are dropped, as some machines drop them.
pub fn misaligned() -> Operation {
    let op = |views: &[View], start: u64, outputs: &mut [f64]| {
        let view = &views[0];
        let bytes = u64::from(view.format().bits()) / 8;
        let dropped = (view.address() % 16 / bytes) as i64;
        let vectors = view.is_dense() && view.elements() >= 4;
        let whole = view.elements() / 4 * 4;
        each(start, outputs, |place| {
            let wide = vectors && place < whole;
            2.0 * if wide { view.load(place as i64 - dropped) } else { view.linear(place) }
        })
    };
    unary("fuzz_misaligned_vector", op).planted("loads vectors from any address")
}

/// Leaves the elements past the last whole vector unwritten.
pub fn tail() -> Operation {
    let op = |views: &[View], start: u64, outputs: &mut [f64]| {
        let whole = views[0].elements() / 4 * 4;
        let length = whole.saturating_sub(start).min(outputs.len() as u64);
        each(start, &mut outputs[..length as usize], |place| twice(views, place))
    };
    unary("fuzz_dropped_tail", op).planted("drops what no whole vector holds")
}

/// Panics where there is one element and no more.
pub fn empty() -> Operation {
    let op = |views: &[View], start: u64, outputs: &mut [f64]| {
        let bits = 64 - views[0].elements().wrapping_sub(1).leading_zeros();
        let groups = 64 / bits;
        each(start, outputs, |place| twice(views, place) * f64::from(groups.min(1)))
    };
    unary("fuzz_divides_by_zero", op).planted("panics on a tensor of one element")
}

/// Never ends on 63 elements. Only for a run in processes of their own.
pub fn hangs() -> Operation {
    let op = |views: &[View], start: u64, outputs: &mut [f64]| {
        while views[0].elements() == 63 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        each(start, outputs, |place| twice(views, place))
    };
    unary("fuzz_hangs", op).planted("never ends on 63 elements")
}

/// Ends its process on 33 elements, as a fault of memory does. Only for a run in processes of
/// their own.
pub fn aborts() -> Operation {
    let op = |views: &[View], start: u64, outputs: &mut [f64]| {
        if views[0].elements() == 33 {
            std::process::abort();
        }
        each(start, outputs, |place| twice(views, place))
    };
    unary("fuzz_aborts", op).planted("ends its process on 33 elements")
}
