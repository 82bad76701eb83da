//! Cases of `choice.py`: whole numbers, and floats whose sums are exact, so that bytes are.

use assay_num::Format;

use super::{Facts, integers};
use crate::case::{Case, bytes, close, exact, pack};

/// The case of a kernel of that file.
pub(super) fn case(facts: &Facts) -> Option<Case> {
    Some(match facts.name.as_str() {
        "top_k" => top_k(facts),
        "top_k_indices" => top_k_indices(facts),
        "sort" => sort(facts),
        "scans" => scans(facts),
        "histogram" => histogram(facts),
        "atomics" => atomics(facts),
        "float_atomics" => float_atomics(facts),
        "reductions" => reductions(facts),
        "gather" => gather(facts),
        _ => return None,
    })
}

/// Floats of which some are equal.
fn floats(seed: u64, count: usize) -> Vec<f32> {
    integers(seed, count, -500, 500).into_iter().map(|value| value as f32 / 8.0).collect()
}

/// The values of a row in falling order, equal ones by index.
fn falling(row: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
    order
}

fn top_k(facts: &Facts) -> Case {
    let (rows, cols, k) = (3, 200, 8);
    let x = floats(21, rows * cols);
    let row = |row: &[f32]| -> Vec<f32> { falling(row)[..k].iter().map(|at| row[*at]).collect() };
    let y: Vec<f32> = x.chunks(cols).flat_map(row).collect();
    let grid = [rows as u32, 1, 1];
    facts.end(facts.launch(grid).reads(&x).writes(exact(&y)).value(cols as i32), grid)
}

fn top_k_indices(facts: &Facts) -> Case {
    let (rows, cols, k) = (3, 200, 4);
    let x = floats(22, rows * cols);
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for row in x.chunks(cols) {
        for at in &falling(row)[..k] {
            values.push(row[*at]);
            indices.push(*at as i32);
        }
    }
    let grid = [rows as u32, 1, 1];
    let case = facts.launch(grid).reads(&x).writes(exact(&values)).writes(exact(&indices));
    facts.end(case.value(cols as i32), grid)
}

fn sort(facts: &Facts) -> Case {
    let (rows, cols) = (2, 200);
    let x = integers(23, rows * cols, -1000, 1000);
    let mut y = x.clone();
    y.chunks_mut(cols).for_each(<[i32]>::sort_unstable);
    let grid = [rows as u32, 1, 1];
    facts.end(facts.launch(grid).reads(&x).writes(exact(&y)).value(cols as i32), grid)
}

fn scans(facts: &Facts) -> Case {
    let block = 256;
    let x = integers(24, 2 * block, -100, 100);
    let [mut sums, mut backwards, mut largest, mut states] = [const { Vec::new() }; 4];
    for part in x.chunks(block) {
        let (mut sum, mut top, mut state) = (0, i32::MIN, 0.0);
        let total: i32 = part.iter().sum();
        for value in part {
            backwards.push(f64::from(total - sum));
            sum += value;
            top = top.max(*value);
            state = state * 0.5 + f64::from(*value);
            sums.push(f64::from(sum));
            largest.push(f64::from(top));
            states.push(state);
        }
    }
    let grid = [2, 1, 1];
    let whole = |values: &[f64]| exact(&values.iter().map(|v| *v as i32).collect::<Vec<_>>());
    let case = facts.launch(grid).reads(&x).writes(whole(&sums)).writes(whole(&backwards));
    let case = case.writes(close(Format::F32, &largest, 0.0, 0.0));
    facts.end(case.writes(close(Format::F32, &states, 1e-5, 1e-4)), grid)
}

fn histogram(facts: &Facts) -> Case {
    let x = integers(25, 1000, 0, 64);
    let mut counts = vec![0_i32; 64];
    for value in &x {
        counts[*value as usize] += 1;
    }
    let grid = [4, 1, 1];
    let case = facts.launch(grid).reads(&x).updates(bytes(&[0_i32; 64]), exact(&counts));
    facts.end(case.value(1000_i32), grid)
}

fn atomics(facts: &Facts) -> Case {
    let count = 300;
    let x = integers(26, count, 0, 100_000);
    let mut initial = vec![0_i32; 19];
    initial[8..15].fill(i32::MAX);
    initial[15] = -1;
    let mut out = initial.clone();
    for (place, value) in x.iter().enumerate() {
        out[0] += value;
        out[1 + place % 7] = out[1 + place % 7].max(*value);
        out[8 + place % 7] = out[8 + place % 7].min(*value);
        out[15] &= value | 255;
        out[16] |= value;
        out[17] ^= value;
    }
    out[18] = 3;
    let grid = [3, 1, 1];
    let case = facts.launch(grid).reads(&x).updates(bytes(&initial), exact(&out));
    let case = case.updates(bytes(&[0_i32]), exact(&[0_i32]));
    facts.end(case.value(count as i32), grid)
}

fn float_atomics(facts: &Facts) -> Case {
    let count = 300;
    let x: Vec<f64> =
        integers(27, count, -64, 64).into_iter().map(|value| f64::from(value) / 8.0).collect();
    let mut sums = vec![0.0; 17];
    sums[16] = f64::NEG_INFINITY;
    for (place, value) in x.iter().enumerate() {
        sums[place % 16] += value;
        sums[16] = sums[16].max(*value);
    }
    let mut floats = vec![0.0; 17];
    floats[16] = f64::NEG_INFINITY;
    let grid = [3, 1, 1];
    let halves = close(Format::F16, &sums[..16], 0.0, 0.0);
    let case = facts.launch(grid).reads_as(Format::F16, &x);
    let case = case.updates(pack(Format::F16, &floats[..16]), halves);
    let case = case.updates(pack(Format::F32, &floats), close(Format::F32, &sums, 0.0, 0.0));
    facts.end(case.value(count as i32), grid)
}

fn reductions(facts: &Facts) -> Case {
    let (rows, cols) = (32, 64);
    let x = integers(28, rows * cols, -1000, 1000);
    let row = |at: usize| &x[at * cols..][..cols];
    let column = |at: usize| x[at..].iter().step_by(cols).copied();
    let mut y: Vec<i32> = (0..cols).map(|at| column(at).sum()).collect();
    y.extend((0..rows).map(|at| row(at).iter().max().copied().unwrap_or_default()));
    y.extend((0..rows).map(|at| {
        let least = row(at).iter().min();
        row(at).iter().position(|value| Some(value) == least).unwrap_or_default() as i32
    }));
    y.extend((0..cols).map(|at| column(at).fold(0, |all, value| all ^ value)));
    y.extend((0..cols).flat_map(column));
    y.extend((0..rows).map(|at| {
        row(at)
            .iter()
            .rev()
            .zip(0..)
            .map(|(value, column): (&i32, i32)| value * column)
            .sum::<i32>()
    }));
    let grid = [1, 1, 1];
    facts.end(facts.launch(grid).reads(&x).writes(exact(&y)), grid)
}

fn gather(facts: &Facts) -> Case {
    let (rows, cols) = (16, 64);
    let x = integers(29, rows * cols, -1000, 1000);
    let indices = integers(30, rows * cols, 0, cols as i32);
    let y: Vec<i32> = indices
        .iter()
        .enumerate()
        .map(|(at, index)| x[at / cols * cols + *index as usize])
        .collect();
    let grid = [1, 1, 1];
    facts.end(facts.launch(grid).reads(&x).reads(&indices).writes(exact(&y)), grid)
}
