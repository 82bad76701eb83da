//! The arithmetic of the kernels under test: correct ones, and copies each broken in one way.

use assay_num::Format;

use crate::subjects::{EPS, Row, THREADS, TILE};

/// An addition.
type Add = fn(f32, f32) -> f32;

/// Adds terms as a block of threads does: strided over the threads, then halves.
fn strided(terms: impl Iterator<Item = f32>, add: Add) -> f32 {
    let mut partials = [0f32; THREADS];
    for (place, term) in terms.enumerate() {
        let partial = &mut partials[place % THREADS];
        *partial = add(*partial, term);
    }
    tree(&mut partials, add)
}

fn tree(partials: &mut [f32], add: Add) -> f32 {
    let mut width = partials.len();
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            partials[lane] = add(partials[lane], partials[lane + width]);
        }
    }
    partials[0]
}

fn plain(a: f32, b: f32) -> f32 {
    a + b
}

fn half(a: f32, b: f32) -> f32 {
    Format::F16.round(f64::from(a) + f64::from(b)) as f32
}

fn bfloat(a: f32, b: f32) -> f32 {
    Format::Bf16.round(f64::from(a) + f64::from(b)) as f32
}

/// The larger, NaN if either is.
fn larger(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) }
}

fn products<'a>(row: &'a Row<'_>) -> impl Iterator<Item = f32> + 'a {
    row.x.iter().zip(row.w).map(|(a, b)| a * b)
}

pub(crate) fn sum(row: &Row<'_>) -> Vec<f32> {
    vec![strided(row.x.iter().copied(), plain)]
}

/// One chain is not the depth that is declared, but for short rows it is far within it.
pub(crate) fn sum_chain(row: &Row<'_>) -> Vec<f32> {
    vec![row.x.iter().sum()]
}

pub(crate) fn sum_in_bf16(row: &Row<'_>) -> Vec<f32> {
    vec![strided(row.x.iter().copied(), bfloat)]
}

/// Loses the last input of a partial last tile.
pub(crate) fn sum_with_short_tail(row: &Row<'_>) -> Vec<f32> {
    let partial = !row.x.len().is_multiple_of(TILE as usize);
    let kept = row.x.len() - usize::from(partial);
    vec![strided(row.x[..kept].iter().copied(), plain)]
}

/// Loses the first input of the second tile.
pub(crate) fn sum_without_a_tile_edge(row: &Row<'_>) -> Vec<f32> {
    let edge = TILE as usize;
    let kept = row.x.iter().enumerate().filter(|(place, _)| *place != edge).map(|(_, x)| *x);
    vec![strided(kept, plain)]
}

pub(crate) fn max(row: &Row<'_>) -> Vec<f32> {
    vec![row.x.iter().copied().fold(f32::NEG_INFINITY, larger)]
}

pub(crate) fn max_that_drops_nan(row: &Row<'_>) -> Vec<f32> {
    vec![row.x.iter().copied().fold(f32::NEG_INFINITY, f32::max)]
}

pub(crate) fn max_from_zero(row: &Row<'_>) -> Vec<f32> {
    vec![row.x.iter().copied().fold(0.0, larger)]
}

pub(crate) fn dot(row: &Row<'_>) -> Vec<f32> {
    vec![strided(products(row), plain)]
}

pub(crate) fn dot_in_half(row: &Row<'_>) -> Vec<f32> {
    vec![strided(products(row), half)]
}

pub(crate) fn dot_in_bf16(row: &Row<'_>) -> Vec<f32> {
    vec![strided(products(row), bfloat)]
}

pub(crate) fn dot_with_half_partials(row: &Row<'_>) -> Vec<f32> {
    let mut partials = [0f32; THREADS];
    for (place, term) in products(row).enumerate() {
        partials[place % THREADS] = half(partials[place % THREADS], term);
    }
    vec![tree(&mut partials, plain)]
}

pub(crate) fn dot_with_bf16_products(row: &Row<'_>) -> Vec<f32> {
    vec![strided(products(row).map(|term| bfloat(term, 0.0)), plain)]
}

pub(crate) fn softmax_with_half_exponentials(row: &Row<'_>) -> Vec<f32> {
    let maximum = row.x.iter().copied().fold(f32::NEG_INFINITY, larger);
    let total = strided(row.x.iter().map(|x| half((x - maximum).exp(), 0.0)), plain);
    row.x.iter().map(|x| (x - maximum).exp() / total).collect()
}

fn softmax_of(row: &[f32], maximum: f32, add: Add) -> Vec<f32> {
    let total = strided(row.iter().map(|x| (x - maximum).exp()), add);
    row.iter().map(|x| (x - maximum).exp() / total).collect()
}

pub(crate) fn softmax(row: &Row<'_>) -> Vec<f32> {
    softmax_of(row.x, row.x.iter().copied().fold(f32::NEG_INFINITY, larger), plain)
}

pub(crate) fn softmax_in_half(row: &Row<'_>) -> Vec<f32> {
    softmax_of(row.x, row.x.iter().copied().fold(f32::NEG_INFINITY, larger), half)
}

pub(crate) fn softmax_from_zero(row: &Row<'_>) -> Vec<f32> {
    softmax_of(row.x, row.x.iter().copied().fold(0.0, larger), plain)
}

pub(crate) fn softmax_without_a_maximum(row: &Row<'_>) -> Vec<f32> {
    softmax_of(row.x, 0.0, plain)
}

/// A tile at a time, rescaling the sum; a first tile of -Inf makes NaN out of -Inf - -Inf.
pub(crate) fn softmax_online_unguarded(row: &Row<'_>) -> Vec<f32> {
    let (mut maximum, mut total) = (f32::NEG_INFINITY, 0f32);
    for tile in row.x.chunks(TILE as usize) {
        let next = tile.iter().copied().fold(maximum, larger);
        let sum = strided(tile.iter().map(|x| (x - next).exp()), plain);
        total = total * (maximum - next).exp() + sum;
        maximum = next;
    }
    row.x.iter().map(|x| (x - maximum).exp() / total).collect()
}

fn norm(row: &Row<'_>, mean_square: f32) -> Vec<f32> {
    let scale = 1.0 / (mean_square + EPS).sqrt();
    row.x.iter().zip(row.w).map(|(x, w)| x * scale * w).collect()
}

pub(crate) fn rms_norm(row: &Row<'_>) -> Vec<f32> {
    norm(row, strided(row.x.iter().map(|x| x * x), plain) / row.x.len() as f32)
}

pub(crate) fn rms_norm_in_bf16(row: &Row<'_>) -> Vec<f32> {
    norm(row, strided(row.x.iter().map(|x| x * x), bfloat) / row.x.len() as f32)
}

pub(crate) fn rms_norm_with_eps_outside(row: &Row<'_>) -> Vec<f32> {
    let mean_square = strided(row.x.iter().map(|x| x * x), plain) / row.x.len() as f32;
    let scale = 1.0 / (mean_square.sqrt() + EPS);
    row.x.iter().zip(row.w).map(|(x, w)| x * scale * w).collect()
}

fn layer_norm_of(row: &Row<'_>, (add_mean, add_variance): (Add, Add)) -> Vec<f32> {
    let count = row.x.len() as f32;
    let mean = strided(row.x.iter().copied(), add_mean) / count;
    let squares = row.x.iter().map(|x| (x - mean) * (x - mean));
    scaled(row, mean, strided(squares, add_variance) / count)
}

fn scaled(row: &Row<'_>, mean: f32, variance: f32) -> Vec<f32> {
    let scale = 1.0 / (variance + EPS).sqrt();
    let elements = row.x.iter().zip(row.w).zip(row.b);
    elements.map(|((x, w), b)| (x - mean) * scale * w + b).collect()
}

pub(crate) fn layer_norm(row: &Row<'_>) -> Vec<f32> {
    layer_norm_of(row, (plain, plain))
}

pub(crate) fn layer_norm_with_bf16_mean(row: &Row<'_>) -> Vec<f32> {
    layer_norm_of(row, (bfloat, plain))
}

pub(crate) fn layer_norm_with_bf16_variance(row: &Row<'_>) -> Vec<f32> {
    layer_norm_of(row, (plain, bfloat))
}

pub(crate) fn layer_norm_in_one_pass(row: &Row<'_>) -> Vec<f32> {
    let count = row.x.len() as f32;
    let mean = strided(row.x.iter().copied(), plain) / count;
    let square = strided(row.x.iter().map(|x| x * x), plain) / count;
    scaled(row, mean, (square - mean * mean).max(0.0))
}

pub(crate) fn silu(row: &Row<'_>) -> Vec<f32> {
    row.x.iter().map(|x| x / (1.0 + (-x).exp())).collect()
}

pub(crate) fn silu_by_a_large_exponential(row: &Row<'_>) -> Vec<f32> {
    row.x.iter().map(|x| x * x.exp() / (1.0 + x.exp())).collect()
}

fn rank(x: f32) -> f32 {
    if x.is_nan() { f32::INFINITY } else { x }
}

/// Indices by value, descending; NaN first, then by index.
pub(crate) fn top_k(row: &[f32], _k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|a, b| {
        let nan = row[*b].is_nan().cmp(&row[*a].is_nan());
        nan.then(rank(row[*b]).partial_cmp(&rank(row[*a])).expect("numbers")).then(a.cmp(b))
    });
    order
}

/// NaN compares false, so it never wins.
pub(crate) fn top_k_without_nan(row: &[f32], k: usize) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    for _ in 0..k.min(row.len()) {
        let mut best: Option<usize> = None;
        for place in (0..row.len()).filter(|place| !taken.contains(place)) {
            if best.is_none_or(|best| row[place] > row[best]) {
                best = Some(place);
            }
        }
        taken.extend(best);
    }
    taken
}

/// Ties to the higher index.
pub(crate) fn top_k_with_late_ties(row: &[f32], k: usize) -> Vec<usize> {
    let reversed: Vec<f32> = row.iter().rev().copied().collect();
    top_k(&reversed, k).into_iter().map(|place| row.len() - 1 - place).collect()
}

/// Never looks at the last element.
pub(crate) fn top_k_without_the_last(row: &[f32], k: usize) -> Vec<usize> {
    top_k(&row[..row.len() - 1], k)
}
