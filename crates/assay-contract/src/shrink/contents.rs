//! Shrinks what the inputs of a failing case hold: as many zeros as can be, and simple numbers.

use assay_num::Format;
use assay_reference::Inputs;

use super::Search;

/// Sets elements to 0, or else to 1, in ever smaller pieces; then makes the others simple.
pub(super) fn shrink(search: &mut Search<'_>) {
    let names: Vec<String> = search.best.inputs.tensors.keys().cloned().collect();
    let names: Vec<&String> = names.iter().filter(|name| may_change(search, name)).collect();
    for value in [0.0, 1.0] {
        for name in &names {
            if holds(search, name, value) {
                flatten(search, name, value);
            }
        }
    }
    for name in names {
        simplify(search, name);
    }
}

/// Only numbers: an index that points elsewhere is another case, not a simpler one.
fn may_change(search: &Search<'_>, name: &str) -> bool {
    let promised = search.subject.spec().limits().get(name).is_some_and(|l| l.range.is_some());
    !promised && format(search, name).is_some_and(Format::is_float)
}

fn format(search: &Search<'_>, name: &str) -> Option<Format> {
    let mut inputs = search.subject.spec().signature.inputs.iter();
    inputs.find(|tensor| tensor.name == name).map(|tensor| tensor.format)
}

/// True if the tensor's format holds the value exactly.
fn holds(search: &Search<'_>, name: &str, value: f64) -> bool {
    format(search, name).is_some_and(|format| format.round(value) == value)
}

fn element(inputs: &Inputs, name: &str, at: usize) -> Option<f64> {
    inputs.tensors.get(name)?.get(at).copied()
}

/// Sets every piece of a tensor to `value` that can be, halving the pieces each time round.
fn flatten(search: &mut Search<'_>, name: &str, value: f64) {
    let count = search.best.inputs.tensors.get(name).map_or(0, Vec::len);
    let mut piece = count;
    while piece > 0 && search.left > 0 {
        for start in (0..count).step_by(piece) {
            set(search, name, (start, (start + piece).min(count)), value);
        }
        piece /= 2;
    }
}

/// Sets some elements to `value`, those that are 0 already excepted.
fn set(search: &mut Search<'_>, name: &str, (start, end): (usize, usize), value: f64) {
    let mut inputs = search.best.inputs.clone();
    let Some(elements) = inputs.tensors.get_mut(name) else { return };
    let mut changed = false;
    for element in &mut elements[start..end] {
        if *element != 0.0 && element.to_bits() != value.to_bits() {
            (*element, changed) = (value, true);
        }
    }
    let dims = search.best.dims.clone();
    if changed {
        search.keep(&dims, inputs);
    }
}

/// Tries a shorter number in place of every element that is not simple.
fn simplify(search: &mut Search<'_>, name: &str) {
    let count = search.best.inputs.tensors.get(name).map_or(0, Vec::len);
    for at in 0..count {
        let Some(old) = element(&search.best.inputs, name, at) else { return };
        if !old.is_finite() || old == 0.0 || old == 1.0 {
            continue;
        }
        for new in
            simpler(old).into_iter().filter(|new| holds(search, name, *new)).collect::<Vec<_>>()
        {
            let mut inputs = search.best.inputs.clone();
            if let Some(elements) = inputs.tensors.get_mut(name) {
                elements[at] = new;
            }
            let dims = search.best.dims.clone();
            if search.keep(&dims, inputs) {
                break;
            }
        }
    }
}

/// Numbers near `value` that are shorter to write.
fn simpler(value: f64) -> Vec<f64> {
    let power = 2f64.powi(value.abs().log2().floor() as i32).copysign(value);
    let candidates = [1f64.copysign(value), power, 2.0 * power];
    candidates.into_iter().filter(|candidate| *candidate != value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simpler_number_is_a_power_of_two_of_the_same_sign() {
        assert_eq!(simpler(-5.5), [-1.0, -4.0, -8.0]);
        assert_eq!(simpler(-4.0), [-1.0, -8.0]);
    }
}
