//! Gate 3's sweeps: every finite value of a 16-bit input, each beside several co-inputs.
//!
//! Values go along lines in ascending order, a block of neighbours to a line, so that a sum over a
//! line has terms of neighbouring magnitudes and a bound worth having; where a block starts differs
//! from one pass over the values to the next, and the order inside a line is random.

use assay_num::random::SplitMix64;
use assay_num::{Format, Overflow, Rounding};

use crate::Inputs;

use super::layout::{Layout, TensorLayout};

/// How often each value is tried, each time beside other co-inputs.
pub const TIMES: usize = 16;

/// Whether every finite value of a format is swept: the 16-bit floats.
pub fn is_swept(format: Format) -> bool {
    format.is_float() && format.bits() == 16
}

/// How many values of each sign a format has that are finite, zero among them.
fn of_each_sign(format: Format) -> usize {
    let largest = format.max_finite();
    format.encode(largest, Rounding::NearestEven, Overflow::Infinity) as usize + 1
}

/// Finite value number `number` of a 16-bit format, ascending, with both zeros.
fn finite_value(format: Format, number: usize) -> f64 {
    let each = of_each_sign(format);
    match number.checked_sub(each) {
        Some(magnitude) => format.decode(magnitude as u64),
        None => format.decode(1 << 15 | (each - 1 - number) as u64),
    }
}

/// The sweep of one input at one shape.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The input.
    pub tensor: String,
    /// How many finite values its format has.
    pub values: usize,
    /// How often each is tried: at least [`TIMES`].
    pub times: usize,
    /// Over how many runs.
    pub runs: usize,
    format: Format,
    /// How often all values are gone through; a value in one element meets several co-inputs where
    /// the element is used several times.
    passes: usize,
    /// Elements a run fills.
    slots: usize,
    /// Which elements are read; empty if all are.
    read: Vec<bool>,
}

impl Sweep {
    /// The sweep of `tensor`, an element of which is used for each of `outputs` elements; none if
    /// the format is not swept or nothing is read.
    pub fn of(layout: &Layout, tensor: &TensorLayout, outputs: usize) -> Option<Sweep> {
        let slots = tensor.count();
        if !is_swept(tensor.format) || slots == 0 {
            return None;
        }
        // What a reduction walks meets a co-input in every term.
        let largest = layout.tensors.iter().map(TensorLayout::count).max().unwrap_or(0);
        let uses = if tensor.is_walked() { outputs.max(largest) } else { outputs };
        let values = 2 * of_each_sign(tensor.format);
        let mut sweep = Sweep {
            tensor: tensor.name.clone(),
            values,
            times: 0,
            runs: 0,
            format: tensor.format,
            passes: 0,
            slots,
            read: Vec::new(),
        };
        sweep.plan((uses / slots).max(1));
        Some(sweep)
    }

    /// The same sweep over the elements that are read, where not all are, given how often each is.
    /// None if none is.
    #[must_use]
    pub fn reading(mut self, counts: &[u32]) -> Option<Sweep> {
        let read = counts.iter().copied().filter(|count| *count > 0);
        self.slots = read.clone().count();
        let least = read.min()?;
        self.read = counts.iter().map(|count| *count > 0).collect();
        self.plan(least as usize);
        Some(self)
    }

    /// Plans passes and runs; each element is used `each` times.
    fn plan(&mut self, each: usize) {
        self.passes = TIMES.div_ceil(each);
        self.times = self.passes * each;
        self.runs = (self.values * self.passes).div_ceil(self.slots);
    }

    /// Writes the values of run `run` over those that `inputs` holds.
    pub fn fill(&self, run: usize, layout: &Layout, inputs: &mut Inputs, random: &mut SplitMix64) {
        let Some(tensor) = layout.tensor(&self.tensor) else { return };
        let Some(elements) = inputs.tensors.get_mut(&self.tensor) else { return };
        let mut lines = match tensor.main_axis() {
            Some(axis) => tensor.lines(axis),
            None => tensor.main_lines(),
        };
        random.shuffle(&mut lines);
        let mut next = run * self.slots;
        for line in lines {
            let mut places: Vec<usize> = (0..line.length).collect();
            random.shuffle(&mut places);
            for place in places {
                if self.read.get(line.at(place)) == Some(&false) {
                    continue;
                }
                elements[line.at(place)] = finite_value(self.format, self.value_number(next));
                next += 1;
            }
        }
    }

    /// Which value comes at place `at` of the whole sweep. Each pass starts elsewhere.
    fn value_number(&self, at: usize) -> usize {
        let at = at % (self.values * self.passes);
        let (pass, at) = (at / self.values, at % self.values);
        (at + pass * (self.values / self.passes + 37)) % self.values
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Formula, Signature, Tensor, dims};

    fn layout(format: Format, rows: i64, cols: i64) -> Layout {
        let tensor =
            |name: &str, shape: &[&str]| Tensor::new(name, format, shape).expect("extents");
        let signature = Signature {
            dims: vec!["rows".to_owned(), "cols".to_owned()],
            inputs: vec![tensor("x", &["rows", "cols"]), tensor("w", &["cols"])],
            outputs: vec![tensor("y", &["rows", "cols"])],
            scalars: BTreeMap::new(),
        };
        let text = "s[r] = sum(k in 0..cols: x[r, k])\ny[r, c] = s[r] * x[r, c] * w[c]";
        let program = Formula::parse(text).and_then(|f| f.check(&signature)).expect("a program");
        let dims = dims([("rows", rows), ("cols", cols)]);
        Layout::of(&program, &dims, (&BTreeMap::new(), 1)).expect("a layout")
    }

    /// How often each value of a tensor came up in all runs.
    fn counts(layout: &Layout, tensor: &str, outputs: usize) -> (Sweep, BTreeMap<u64, usize>) {
        let described = layout.tensor(tensor).expect("a tensor");
        let sweep = Sweep::of(layout, described, outputs).expect("a sweep");
        let mut counts = BTreeMap::new();
        let mut random = SplitMix64::new(3);
        for run in 0..sweep.runs {
            let mut inputs = layout.zeros();
            sweep.fill(run, layout, &mut inputs, &mut random);
            for value in &inputs.tensors[tensor] {
                *counts.entry(value.to_bits()).or_default() += 1;
            }
        }
        (sweep, counts)
    }

    #[test]
    fn finite_values_ascend_from_the_least_to_the_largest() {
        for format in [Format::Bf16, Format::F16] {
            let values: Vec<f64> =
                (0..2 * of_each_sign(format)).map(|n| finite_value(format, n)).collect();
            assert_eq!(values.first(), Some(&format.min_finite()));
            assert_eq!(values.last(), Some(&format.max_finite()));
            assert!(values.is_sorted_by(|a, b| a.total_cmp(b).is_lt()));
        }
    }

    #[test]
    fn every_finite_value_comes_up_sixteen_times() {
        for (format, finite) in [(Format::Bf16, 65280), (Format::F16, 63488)] {
            let layout = layout(format, 48, 500);
            let (sweep, counts) = counts(&layout, "x", 48 * 500);
            assert_eq!((counts.len(), sweep.values, sweep.times), (finite, finite, 16));
            assert!(counts.values().all(|count| *count >= 16));
        }
    }

    #[test]
    fn a_value_that_all_rows_share_meets_a_co_input_in_each() {
        let layout = layout(Format::Bf16, 9, 500);
        let (sweep, counts) = counts(&layout, "w", 9 * 500);
        assert_eq!((sweep.times, sweep.runs), (18, 262));
        assert!(counts.len() == 65280 && counts.values().all(|count| *count >= 2));
    }

    #[test]
    fn a_line_holds_neighbouring_values() {
        let layout = layout(Format::Bf16, 64, 256);
        let tensor = layout.tensor("x").expect("x");
        let sweep = Sweep::of(&layout, tensor, 64 * 256).expect("a sweep");
        let (mut narrow, mut lines) = (0, 0);
        for run in 0..sweep.runs {
            let mut inputs = layout.zeros();
            sweep.fill(run, &layout, &mut inputs, &mut SplitMix64::new(run as u64));
            for line in inputs.tensors["x"].chunks(256) {
                let sizes = line.iter().map(|value| value.abs());
                let (low, high) = sizes.fold((f64::MAX, 0f64), |(l, h), v| (l.min(v), h.max(v)));
                narrow += usize::from(high <= 8.0 * low);
                lines += 1;
            }
        }
        assert!(narrow * 100 >= lines * 97, "{narrow} of {lines}");
    }

    #[test]
    fn only_elements_that_are_read_take_values() {
        let layout = layout(Format::Bf16, 8, 64);
        let tensor = layout.tensor("x").expect("x");
        let counts: Vec<u32> = (0..8 * 64).map(|at| 4 * u32::from(at % 64 < 8)).collect();
        let sweep = Sweep::of(&layout, tensor, 8 * 64).and_then(|sweep| sweep.reading(&counts));
        let sweep = sweep.expect("a sweep");
        assert_eq!((sweep.times, sweep.runs), (16, 65280 * 4 / 64));
        let mut inputs = layout.zeros();
        sweep.fill(3, &layout, &mut inputs, &mut SplitMix64::new(1));
        let unread = inputs.tensors["x"].iter().zip(&counts).filter(|(_, count)| **count == 0);
        assert!(unread.clone().count() == 8 * 56 && unread.clone().all(|(value, _)| *value == 0.0));
    }

    #[test]
    fn wider_formats_are_not_swept() {
        let layout = layout(Format::F32, 4, 4);
        assert!(Sweep::of(&layout, &layout.tensors[0], 16).is_none());
    }
}
